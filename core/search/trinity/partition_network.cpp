// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/partition_network.h"

#include <algorithm>

namespace turnpoint::trinity {

template <class Real>
PartitionNetwork<Real>::PartitionNetwork(const PartitionShape& shape) : shape_(shape) {
  types_ = places_.add(shape.types, shape.type_width, 1);
  own_ = places_.add(shape.units, shape.own_width, 1);
  first_ = networks::Dense::make(places_, shape.width + shape.type_width + shape.own_width, kFirst);
  second_ = networks::Dense::make(places_, kFirst, kSecond);
  out_ = networks::Dense::make(places_, kSecond, shape.groups);
}

template <class Real>
void PartitionNetwork<Real>::forward(const Real* weights, const UnitFeatures& features, const std::vector<Real>& mask,
                                     Trace& trace) const {
  const std::size_t units = shape_.units, width = first_.weight.rows;
  trace.input.resize(units * width);
  for (std::size_t u = 0; u < units; ++u) {
    Real* row = trace.input.data() + u * width;
    row = std::copy_n(features.numbers.data() + u * shape_.width, shape_.width, row);
    row = std::copy_n(weights + types_.offset + features.type[u] * shape_.type_width, shape_.type_width, row);
    std::copy_n(weights + own_.offset + u * shape_.own_width, shape_.own_width, row);
  }
  trace.first.resize(units * kFirst);
  trace.second.resize(units * kSecond);
  trace.scores.resize(units * shape_.groups);
  first_.forward(weights, trace.input.data(), units, trace.first.data());
  networks::relu(trace.first);
  if (!mask.empty()) networks::times(mask, trace.first);
  second_.forward(weights, trace.first.data(), units, trace.second.data());
  networks::relu(trace.second);
  out_.forward(weights, trace.second.data(), units, trace.scores.data());
  networks::clip_scores(shape_.clipping, trace.scores);
  trace.log_probability = trace.scores;
  for (std::size_t u = 0; u < leaning_.size(); ++u)
    trace.log_probability[u * shape_.groups + leaning_[u]] += Real(lean_);
  networks::log_softmax(trace.log_probability.data(), units, shape_.groups, trace.log_probability.data());
}

template <class Real>
void PartitionNetwork<Real>::backward(const Real* weights, const UnitFeatures& features, const std::vector<Real>& mask,
                                      const Trace& trace, std::vector<Real> d_scores, Real* gradient) const {
  const std::size_t units = shape_.units, width = first_.weight.rows;
  networks::clip_scores_backward(shape_.clipping, trace.scores, d_scores);
  std::vector<Real> d_second(units * kSecond), d_first(units * kFirst), d_input(units * width);
  out_.backward(weights, trace.second.data(), d_scores.data(), units, gradient, d_second.data());
  networks::relu_backward(trace.second, d_second);
  second_.backward(weights, trace.first.data(), d_second.data(), units, gradient, d_first.data());
  // What was dropped is zero in `first` and gets nothing; what was kept has the mask's factor.
  if (!mask.empty()) networks::times(mask, d_first);
  networks::relu_backward(trace.first, d_first);
  first_.backward(weights, trace.input.data(), d_first.data(), units, gradient, d_input.data());
  for (std::size_t u = 0; u < units; ++u) {
    const Real* row = d_input.data() + u * width + shape_.width;
    Real* type = gradient + types_.offset + features.type[u] * shape_.type_width;
    for (std::size_t j = 0; j < shape_.type_width; ++j) type[j] += *row++;
    Real* own = gradient + own_.offset + u * shape_.own_width;
    for (std::size_t j = 0; j < shape_.own_width; ++j) own[j] += *row++;
  }
}

template class PartitionNetwork<float>;
template class PartitionNetwork<double>;

}  // namespace turnpoint::trinity
