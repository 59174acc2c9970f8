// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/schedule_network.h"

#include <algorithm>

#include "core/search/trinity/networks/product.h"

namespace turnpoint::trinity {

using networks::Lstm;

template <class Real>
ScheduleNetwork<Real>::ScheduleNetwork(const ScheduleShape& shape, std::vector<float> device_features)
    : shape_(shape), device_features_(std::move(device_features)) {
  start_ = places_.add(1, shape.embedding, 1);
  embedding_ = places_.add(shape.devices, shape.embedding, 1);
  for (std::size_t l = 0; l < kLayers; ++l) {
    encoder_[l] = Lstm::make(places_, l == 0 ? shape.width : shape.hidden, shape.hidden);
    decoder_[l] = Lstm::make(places_, l == 0 ? input_width() : shape.hidden, shape.hidden);
  }
  attention_ = networks::Attention::make(places_, shape.hidden);
  out_ = networks::Dense::make(places_, shape.hidden, shape.devices);
  out_context_ = places_.add_weight(shape.hidden, shape.devices);
}

template <class Real>
void ScheduleNetwork<Real>::encode(const Real* weights, std::vector<Real> features, std::size_t rows,
                                   Encoded& encoded) const {
  encoded.rows = rows;
  encoded.features = std::move(features);
  const Real* input = encoded.features.data();
  for (std::size_t l = 0; l < kLayers; ++l) {
    encoder_[l].forward(weights, input, shape_.groups, rows, {}, encoded.layers[l]);
    input = encoded.layers[l].outputs();
  }
  encoded.keys = attention_.look_at(weights, input, shape_.groups, rows);
}

template <class Real>
void ScheduleNetwork<Real>::write_input(const Real* weights, const Encoded& encoded, std::size_t group, std::size_t row,
                                        std::size_t before, Real* to) const {
  const bool first = before == shape_.devices;
  const std::size_t word = first ? start_.offset : embedding_.offset + before * shape_.embedding;
  to = std::copy_n(weights + word, shape_.embedding, to);
  for (std::size_t j = 0; j < shape_.device_width; ++j)
    *to++ = first ? Real(0) : Real(device_features_[before * shape_.device_width + j]);
  if (shape_.reads_group)
    std::copy_n(encoded.layers.back().outputs() + (group * encoded.rows + row) * shape_.hidden, shape_.hidden, to);
}

template <class Real>
void ScheduleNetwork<Real>::score(const Real* weights, const Real* outputs, const Real* context, std::size_t rows,
                                  std::vector<Real>& scores) const {
  scores.resize(rows * shape_.devices);
  out_.forward(weights, outputs, rows, scores.data());
  networks::multiply({.m = rows, .n = shape_.devices, .k = shape_.hidden, .add = true}, context,
                     weights + out_context_.offset, scores.data());
  networks::clip_scores(shape_.clipping, scores);
}

template <class Real>
void ScheduleNetwork<Real>::choose_devices(const Real* weights, const Encoded& encoded, const Choose& choose) const {
  const std::size_t rows = encoded.rows, width = input_width();
  std::array<Lstm::State<Real>, kLayers> state;
  for (std::size_t l = 0; l < kLayers; ++l) state[l] = encoded.layers[l].last();
  std::vector<std::size_t> before(rows, shape_.devices);
  std::vector<Real> input(rows * width), scores, log_probability(rows * shape_.devices);
  std::array<Lstm::Trace<Real>, kLayers> layers;
  networks::Attention::Trace<Real> attention;
  for (std::size_t g = 0; g < shape_.groups; ++g) {
    for (std::size_t r = 0; r < rows; ++r) write_input(weights, encoded, g, r, before[r], input.data() + r * width);
    const Real* x = input.data();
    for (std::size_t l = 0; l < kLayers; ++l) {
      decoder_[l].forward(weights, x, 1, rows, state[l], layers[l]);
      state[l] = layers[l].last();
      x = layers[l].outputs();
    }
    attention_.forward(weights, encoded.keys, x, 1, attention);
    score(weights, x, attention.context.data(), rows, scores);
    networks::log_softmax(scores.data(), rows, shape_.devices, log_probability.data());
    for (std::size_t r = 0; r < rows; ++r) before[r] = choose(g, r, log_probability.data() + r * shape_.devices);
  }
}

template <class Real>
void ScheduleNetwork<Real>::decode(const Real* weights, const Encoded& encoded,
                                   const std::vector<std::uint32_t>& device, Decoded& decoded) const {
  const std::size_t rows = encoded.rows, width = input_width(), all = shape_.groups * rows;
  decoded.input.resize(all * width);
  for (std::size_t i = 0; i < all; ++i)
    write_input(weights, encoded, i / rows, i % rows, i < rows ? shape_.devices : device[i - rows],
                decoded.input.data() + i * width);
  const Real* x = decoded.input.data();
  for (std::size_t l = 0; l < kLayers; ++l) {
    decoder_[l].forward(weights, x, shape_.groups, rows, encoded.layers[l].last(), decoded.layers[l]);
    x = decoded.layers[l].outputs();
  }
  attention_.forward(weights, encoded.keys, x, shape_.groups, decoded.attention);
  score(weights, x, decoded.attention.context.data(), all, decoded.scores);
  decoded.log_probability.resize(decoded.scores.size());
  networks::log_softmax(decoded.scores.data(), all, shape_.devices, decoded.log_probability.data());
}

template <class Real>
void ScheduleNetwork<Real>::backward(const Real* weights, const Encoded& encoded,
                                     const std::vector<std::uint32_t>& device, const Decoded& decoded,
                                     std::vector<Real> d_scores, Real* gradient) const {
  const std::size_t rows = encoded.rows, width = input_width(), all = shape_.groups * rows, hidden = shape_.hidden;
  networks::clip_scores_backward(shape_.clipping, decoded.scores, d_scores);
  const Real* outputs = decoded.layers.back().outputs();
  std::vector<Real> d_outputs(all * hidden), d_context(all * hidden), d_keys(all * hidden);
  out_.backward(weights, outputs, d_scores.data(), all, gradient, d_outputs.data());
  networks::multiply({.m = hidden, .n = shape_.devices, .k = all, .transpose_a = true, .add = true},
                     decoded.attention.context.data(), d_scores.data(), gradient + out_context_.offset);
  networks::multiply({.m = all, .n = hidden, .k = shape_.devices, .transpose_b = true}, d_scores.data(),
                     weights + out_context_.offset, d_context.data());
  attention_.backward(weights, encoded.keys, outputs, shape_.groups, decoded.attention, d_context.data(), gradient,
                      d_keys.data(), d_outputs.data());
  std::vector<Real> d_input(all * width), d_layer(all * hidden);
  std::array<Lstm::State<Real>, kLayers> state;
  for (std::size_t l = kLayers; l-- > 0;) {
    const Real* x = l == 0 ? decoded.input.data() : decoded.layers[l - 1].outputs();
    decoder_[l].backward(weights, x, decoded.layers[l], d_outputs.data(), state[l], gradient,
                         l == 0 ? d_input.data() : d_layer.data());
    if (l > 0) d_outputs.swap(d_layer);
  }
  for (std::size_t i = 0; i < all; ++i) {
    const Real* d = d_input.data() + i * width;
    const std::size_t word = i < rows ? start_.offset : embedding_.offset + device[i - rows] * shape_.embedding;
    for (std::size_t j = 0; j < shape_.embedding; ++j) gradient[word + j] += d[j];
    if (!shape_.reads_group) continue;
    d += shape_.embedding + shape_.device_width;
    for (std::size_t j = 0; j < hidden; ++j) d_keys[i * hidden + j] += d[j];
  }
  for (std::size_t l = kLayers; l-- > 0;) {
    const Real* x = l == 0 ? encoded.features.data() : encoded.layers[l - 1].outputs();
    encoder_[l].backward(weights, x, encoded.layers[l], d_keys.data(), state[l], gradient,
                         l == 0 ? nullptr : d_layer.data());
    if (l > 0) d_keys.swap(d_layer);
  }
}

template class ScheduleNetwork<float>;
template class ScheduleNetwork<double>;

}  // namespace turnpoint::trinity
