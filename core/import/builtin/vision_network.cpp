// SPDX-License-Identifier: Apache-2.0
#include "core/import/builtin/vision_network.h"

#include <fmt/format.h>

namespace turnpoint {

VisionNetwork::VisionNetwork(const NetworkParameters& p, std::int64_t channels, std::int64_t image)
    : builder_(p.name, p.source, p.batch, 0), batch_(p.batch) {
  builder_.set_scope("input");
  x_ = builder_.input("images", {batch_, channels, image, image},
                      {DimName::batch, DimName::channel, DimName::height, DimName::width}, ElementType::f32);
  if (p.sequence != 0)
    builder_.warn(fmt::format("sequence {} has no effect: the model has no sequence dimension", p.sequence));
}

void VisionNetwork::scope(const std::string& name) {
  builder_.set_scope(name);
  prefix_ = name + "/";
}

void VisionNetwork::convolution(const std::string& name, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                                std::int64_t padding, bool bias) {
  convolution(name, out, Pair{kernel, kernel}, stride, Pair{padding, padding}, bias);
}

void VisionNetwork::convolution(const std::string& name, std::int64_t out, Pair kernel, std::int64_t stride,
                                Pair padding, bool bias) {
  const TensorId w = builder_.parameter(prefix_ + name + ".weight", {out, channels(), kernel.first, kernel.second},
                                        {DimName::out_channel, DimName::in_channel, DimName::window, DimName::window});
  std::optional<TensorId> b;
  if (bias) b = builder_.parameter(prefix_ + name + ".bias", {out}, {DimName::out_channel});
  const std::vector<std::int64_t> pads = {padding.first, padding.second};
  const ConvolutionShape shape{{kernel.first, kernel.second}, {stride, stride}, pads, pads, {1, 1}, 1, false};
  x_ = builder_.convolution(prefix_ + name, x_, w, b, shape);
}

void VisionNetwork::depthwise(const std::string& name, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t c = channels();
  const TensorId w = builder_.parameter(prefix_ + name + ".weight", {c, 1, kernel, kernel},
                                        {DimName::group, DimName::in_channel, DimName::window, DimName::window});
  const std::vector<std::int64_t> pads = {kernel / 2, kernel / 2};
  x_ = builder_.convolution(prefix_ + name, x_, w, {},
                            {{kernel, kernel}, {stride, stride}, pads, pads, {1, 1}, c, false});
}

void VisionNetwork::batch_norm(const std::string& name) {
  const std::int64_t c = channels();
  const auto parameter = [&](const char* leaf) {
    return builder_.parameter(prefix_ + name + leaf, {c}, {DimName::channel});
  };
  const TensorId scale = parameter(".weight"), bias = parameter(".bias");
  const TensorId mean = builder_.buffer(prefix_ + name + ".mean", {c});
  const TensorId variance = builder_.buffer(prefix_ + name + ".variance", {c});
  x_ = builder_.batch_normalisation(prefix_ + name, x_, scale, bias, mean, variance);
}

void VisionNetwork::relu(const std::string& name) {
  const TensorId operands[] = {x_};
  x_ = builder_.elementwise(prefix_ + name, "Relu", operands, {.flop_per_element = 1, .saves_output = true});
}

void VisionNetwork::convolution_norm_relu(const std::string& name, std::int64_t out, std::int64_t kernel,
                                          std::int64_t stride) {
  convolution(name, out, kernel, stride, kernel / 2, false);
  batch_norm(name + "_norm");
  relu(name + "_relu");
}

void VisionNetwork::add(const std::string& name, TensorId other) {
  const TensorId operands[] = {x_, other};
  x_ = builder_.elementwise(prefix_ + name, "Add", operands, {.flop_per_element = 1});
}

void VisionNetwork::concat(const std::string& name, const std::vector<TensorId>& parts) {
  x_ = builder_.concat(prefix_ + name, parts, 1);
}

void VisionNetwork::pool(const std::string& name, const char* detail, std::int64_t kernel, std::int64_t stride,
                         std::int64_t padding) {
  const std::int64_t out = (side() + 2 * padding - kernel) / stride + 1;
  const bool saves_input = std::string_view(detail) == "MaxPool";
  x_ = builder_.pooling(prefix_ + name, detail, x_, {batch_, channels(), out, out}, {kernel, kernel}, saves_input);
}

void VisionNetwork::global_pool() {
  x_ = builder_.pooling(prefix_ + "pool", "GlobalAveragePool", x_, {batch_, channels(), 1, 1}, {}, false);
}

void VisionNetwork::flatten() {
  const std::int64_t features = channels() * side() * side();
  x_ = builder_.reshape(prefix_ + "flatten", x_, {batch_, features}, {DimName::batch, DimName::channel}, "Flatten");
}

void VisionNetwork::linear(const std::string& name, std::int64_t out) {
  const std::int64_t in = builder_.tensor(x_).shape[1];
  const TensorId w =
      builder_.parameter(prefix_ + name + ".weight", {in, out}, {DimName::in_channel, DimName::out_channel});
  const TensorId b = builder_.parameter(prefix_ + name + ".bias", {out}, {DimName::out_channel});
  x_ = builder_.linear(prefix_ + name, x_, w, b, false, DimName::channel);
}

Expected<ModelPtr> VisionNetwork::finish() {
  const TensorId labels = builder_.input("labels", {batch_}, {DimName::batch}, ElementType::i64);
  return builder_.finish({builder_.cross_entropy(prefix_ + "loss", x_, labels)});
}

}  // namespace turnpoint
