// SPDX-License-Identifier: Apache-2.0
// Convolutions and poolings. The model holds sizes and no strides: where more than one stride and padding make them,
// the operator is refused, since the numbers would be another network's.
#include <fmt/format.h>
#include <cmath>

#include "core/export/jax/formulas.h"

namespace turnpoint::jax {

namespace {

struct Window {
  std::int64_t stride = 0, pad = 0;
};

/// The one stride, and padding below `most` on both sides, by which a kernel makes so many positions of others;
/// nullopt: there are several, or none.
std::optional<Window> only_window(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t most) {
  std::optional<Window> found;
  for (std::int64_t stride = 1; stride <= in + 2 * most; ++stride)
    for (std::int64_t pad = 0; pad < most; ++pad) {
      const std::int64_t room = in + 2 * pad - kernel;
      if (room < 0 || room / stride + 1 != out) continue;
      if (out == 1 && stride > 1) continue;  // one position takes no step
      if (found) return std::nullopt;
      found = Window{stride, pad};
    }
  return found;
}

std::optional<std::vector<Window>> windows_of(const Place& place, const std::vector<std::int64_t>& kernel,
                                              bool of_pooling) {
  std::vector<Window> windows;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const auto window = only_window(place.input(0).shape[d + 2], place.output(0).shape[d + 2], kernel[d],
                                    of_pooling ? kernel[d] / 2 + 1 : kernel[d]);
    if (!window) return std::nullopt;
    windows.push_back(*window);
  }
  return windows;
}

/// "strides=(1, 1), pads=((0, 0), (0, 0))".
std::string words_of(const std::vector<Window>& windows) {
  std::vector<std::int64_t> strides;
  std::vector<std::string> pads;
  for (const Window& window : windows) {
    strides.push_back(window.stride);
    pads.push_back(fmt::format("({}, {})", window.pad, window.pad));
  }
  return fmt::format("strides={}, pads=({}{})", tuple_of(strides), joined(pads), pads.size() == 1 ? "," : "");
}

std::vector<std::int64_t> kernel_of(const Place& place) {
  const auto& shape = place.input(1).shape;
  return {shape.begin() + 2, shape.end()};
}

Expected<void> check_convolution(const Place& place) {
  if (place.op().detail != "Conv") return place.refuse(fmt::format("'{}' has no lines yet", place.op().detail));
  if (!windows_of(place, kernel_of(place), false))
    return place.refuse("the model holds no strides, and its sizes have several");
  for (std::size_t k = 0; k < 2; ++k)
    if (place.input(k).requires_gradient && !place.op().inputs[1 - k].saved)
      return place.refuse("backward would read an operand that the model does not keep");
  return {};
}

std::string convolution(const Place& place, const std::string& x, const std::string& w) {
  std::int64_t groups = 1;
  for (std::size_t l = 0; l < place.op().dims.size(); ++l)
    if (place.op().dims[l].name == DimName::group) groups = place.size(l);
  return fmt::format("convolve({}, {}, {}, groups={})", x, w, words_of(*windows_of(place, kernel_of(place), false)),
                     groups);
}

void forward_convolution(const Place& place, const Values& values, Lines& lines) {
  std::string made = convolution(place, values.inputs[0], values.inputs[1]);
  if (values.inputs.size() > 2) {
    const std::uint32_t summed = place.summed_axes();
    made += fmt::format(
        " + by_channel({}, {})",
        summed ? fmt::format("once({}, {})", values.inputs[2], axis_list(place.mesh, summed)) : values.inputs[2],
        place.input(0).shape.size());
  }
  lines.add(values.outputs[0] + " = " + made);
}

void backward_convolution(const Place& place, const Values& values, Lines& lines) {
  const std::string& g = values.gradients[0];
  const auto& shapes = place.op().inputs;
  // A convolution is linear in either operand: its transpose reads the other one alone.
  if (!values.results[0].empty())
    lines.add(fmt::format("{} = transposed(lambda x: {}, {}, {})", values.results[0],
                          convolution(place, "x", values.inputs[1]), tuple_of(place.shape(shapes[0])), g));
  if (!values.results[1].empty())
    lines.add(fmt::format("{} = transposed(lambda w: {}, {}, {})", values.results[1],
                          convolution(place, values.inputs[0], "w"), tuple_of(place.shape(shapes[1])), g));
  if (values.results.size() > 2 && !values.results[2].empty())
    lines.add(fmt::format("{} = over_channels({})", values.results[2], g));
}

/// Sides of the window, which the model tells by its work; empty: not a square one.
std::vector<std::int64_t> pooled(const Place& place) {
  const auto& x = place.input(0).shape;
  const auto& y = place.output(0).shape;
  const std::size_t spatial = x.size() - 2;
  bool global = true;
  for (std::size_t d = 2; d < y.size(); ++d) global = global && y[d] == 1;
  if (global) return {x.begin() + 2, x.end()};
  const double elements = place.op().forward_flop / static_cast<double>(place.output(0).elements());
  const auto side = std::llround(std::pow(elements, 1.0 / static_cast<double>(spatial)));
  if (std::abs(std::pow(static_cast<double>(side), static_cast<double>(spatial)) - elements) > 1e-9 * elements)
    return {};
  return std::vector<std::int64_t>(spatial, side);
}

bool takes_largest(const Operator& op) { return op.detail.find("Max") != std::string::npos; }

Expected<void> check_pooling(const Place& place) {
  const Operator& op = place.op();
  const auto kernel = pooled(place);
  const auto windows = kernel.empty() ? std::nullopt : windows_of(place, kernel, true);
  if (!windows) return place.refuse("the model holds no strides, and its sizes have several");
  const bool average = op.detail.find("Average") != std::string::npos || op.detail.find("Avg") != std::string::npos;
  if (!takes_largest(op) && !average) return place.refuse(fmt::format("'{}' has no lines yet", op.detail));
  for (const Window& window : *windows)
    if (average && window.pad) return place.refuse("the model does not tell whether padding counts in the average");
  if (takes_largest(op) && place.input(0).requires_gradient && !op.inputs[0].saved)
    return place.refuse("backward would read an operand that the model does not keep");
  return {};
}

std::string pooling(const Place& place, const std::string& x) {
  const auto kernel = pooled(place);
  std::int64_t elements = 1;
  for (const auto side : kernel) elements *= side;
  return fmt::format("pool({}, {}, {}, divide={})", x, tuple_of(kernel), words_of(*windows_of(place, kernel, true)),
                     takes_largest(place.op()) ? 0 : elements);
}

void forward_pooling(const Place& place, const Values& values, Lines& lines) {
  lines.add(values.outputs[0] + " = " + pooling(place, values.inputs[0]));
}

void backward_pooling(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  if (takes_largest(place.op()))
    lines.add(fmt::format("{}, = back(lambda x: {}, {})({})", values.results[0], pooling(place, "x"), values.inputs[0],
                          values.gradients[0]));
  else
    lines.add(fmt::format("{} = transposed(lambda x: {}, {}, {})", values.results[0], pooling(place, "x"),
                          tuple_of(place.shape(place.op().inputs[0])), values.gradients[0]));
}

}  // namespace

const Formula kConvolution{check_convolution, forward_convolution, backward_convolution};
const Formula kPooling{check_pooling, forward_pooling, backward_pooling};

}  // namespace turnpoint::jax
