// SPDX-License-Identifier: Apache-2.0
// Convolutions of one or two spatial dimensions by the same kernels that are measured;
// pooling of any number of dimensions by windows listed once.
#include <algorithm>
#include <map>
#include <optional>

#include "gpu_probe/cpu/convolve.h"
#include "gpu_probe/cpu/pooling.h"
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/fast/nest.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::fast {

namespace {

/// Stride and padding as the plain loops have them (meaning.h). A transposed convolution is the gradient of one whose
/// input is its output.
std::optional<probe::ConvolutionSizes> sizes_of(const LocalOperator& at, const Shape& x, const Shape& w,
                                                const Shape& y) {
  if (x.size() < 3 || x.size() > 4 || w.size() != x.size() || y.size() != x.size()) return std::nullopt;
  return probe::ConvolutionSizes(convolution_call(geometry(at, x, w, y)));
}

void convolve(probe::ConvolutionPhase phase, const probe::ConvolutionSizes& z, const float* a, const float* b,
              float* to) {
  Array scratch = Array::scratch(static_cast<std::size_t>(probe::convolution_scratch(phase, z)));
  probe::convolve(phase, z, a, b, to, scratch.data());
}
bool is_transposed(const LocalOperator& at) { return at.op().detail == "ConvTranspose"; }

/// Channels are the second dimension of y and the only one of the bias.
void add_bias(const Shape& y, const float* bias, float* to) {
  std::int64_t plane = 1;
  for (std::size_t d = 2; d < y.size(); ++d) plane *= y[d];
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t c = 0; c < y[1]; ++c, to += plane)
      for (std::int64_t i = 0; i < plane; ++i) to[i] += bias[c];
}

}  // namespace

bool convolution_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const bool transposed = is_transposed(at);
  const auto z = sizes_of(at, in[0]->region.extent, in[1]->region.extent, out[0]->region.extent);
  if (!z || out.size() != 1) return false;
  const float *x = in[0]->data.data(), *w = in[1]->data.data();
  if (transposed)
    convolve(probe::ConvolutionPhase::data, *z, w, x, out[0]->data.data());
  else
    convolve(probe::ConvolutionPhase::forward, *z, x, w, out[0]->data.data());
  if (in.size() > 2 && at.adds_once) add_bias(out[0]->region.extent, in[2]->data.data(), out[0]->data.data());
  return true;
}

bool convolution_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || (result[0] && !in[1]) || (result[1] && !in[0])) return false;
  const bool transposed = is_transposed(at);
  const auto extent = [&](std::size_t k) -> const Shape& { return (in[k] ? in[k] : result[k])->region.extent; };
  if ((!in[0] && !result[0]) || (!in[1] && !result[1])) return false;
  const Shape& y = gradient[0]->region.extent;
  const auto z = sizes_of(at, extent(0), extent(1), y);
  if (!z) return false;
  using Phase = probe::ConvolutionPhase;
  const float* dy = gradient[0]->data.data();
  if (result[0] && transposed) convolve(Phase::forward, *z, dy, in[1]->data.data(), result[0]->data.data());
  if (result[0] && !transposed) convolve(Phase::data, *z, in[1]->data.data(), dy, result[0]->data.data());
  if (result[1] && transposed) convolve(Phase::filter, *z, dy, in[0]->data.data(), result[1]->data.data());
  if (result[1] && !transposed) convolve(Phase::filter, *z, in[0]->data.data(), dy, result[1]->data.data());
  if (in.size() < 3 || !result[2]) return true;
  result[2]->data.clear();
  std::int64_t plane = 1;
  for (std::size_t d = 2; d < y.size(); ++d) plane *= y[d];
  add_strided({y[0], y[1], plane}, {{y[1] * plane, plane, 1}, dy}, {0, 1, 0}, result[2]->data.data());
  return true;
}

// --- pooling
// -----------------------------------------------------------------------------------------------------------

namespace {

probe::PoolingWindows listed_windows(const Shape& x, const Shape& y) {
  const std::size_t n = x.size() - 2;
  probe::PoolingWindows w;
  w.planes = x[0] * x[1];
  std::int64_t y_plane = 1;
  for (std::size_t d = 2; d < x.size(); ++d) w.x_plane *= x[d], y_plane *= y[d];
  Shape low(n), high(n), at(n);
  for (std::int64_t p = 0; p < y_plane; ++p) {
    w.first.push_back(static_cast<std::int64_t>(w.offsets.size()));
    std::int64_t rest = p;
    for (std::size_t d = n; d-- > 0;) {
      const std::int64_t o = rest % y[d + 2];
      rest /= y[d + 2];
      low[d] = o * x[d + 2] / y[d + 2];
      high[d] = ((o + 1) * x[d + 2] + y[d + 2] - 1) / y[d + 2];
    }
    at = low;
    for (bool more = true; more;) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < n; ++d) offset = offset * x[d + 2] + at[d];
      w.offsets.push_back(offset);
      more = false;
      for (std::size_t d = n; d-- > 0 && !more;) {
        if (++at[d] < high[d])
          more = true;
        else
          at[d] = low[d];
      }
    }
  }
  w.first.push_back(static_cast<std::int64_t>(w.offsets.size()));
  return w;
}

/// Those of a step come again in every step and micro-batch.
const probe::PoolingWindows& windows_of(const Shape& x, const Shape& y) {
  constexpr std::size_t kMostShapes = 32;
  thread_local std::map<std::pair<Shape, Shape>, probe::PoolingWindows> known;
  const auto found = known.find({x, y});
  if (found != known.end()) return found->second;
  if (known.size() >= kMostShapes) known.clear();
  return known.emplace(std::pair(x, y), listed_windows(x, y)).first->second;
}

}  // namespace

bool pooling_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Shape &x = in[0]->region.extent, &y = out[0]->region.extent;
  if (out.size() != 1 || x.size() < 3 || x.size() != y.size()) return false;
  (takes_maximum(at) ? probe::pool_largest : probe::pool_mean)(windows_of(x, y), in[0]->data.data(),
                                                               out[0]->data.data());
  return true;
}

bool pooling_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return false;
  const bool maximum = takes_maximum(at);
  const Shape &x = result[0]->region.extent, &y = gradient[0]->region.extent;
  if ((maximum && !in[0]) || x.size() < 3 || x.size() != y.size()) return false;
  if (maximum)
    probe::pool_largest_backward(windows_of(x, y), in[0]->data.data(), gradient[0]->data.data(),
                                 result[0]->data.data());
  else
    probe::pool_mean_backward(windows_of(x, y), gradient[0]->data.data(), result[0]->data.data());
  return true;
}

}  // namespace turnpoint::step::fast
