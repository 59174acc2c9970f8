// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN where it has them, else by kernels of our own; pooling.
#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::in_cuda {

namespace {

/// One of the three directions. A transposed convolution is the gradient of one whose input is its output.
enum class Way { forward, data, filter };

ProbeCall call_of(const Geometry& g, Way way) {
  ProbeCall call = convolution_call(g);
  call.kind = way == Way::filter                      ? CallKind::convolution_filter
              : (way == Way::forward) != g.transposed ? CallKind::convolution
                                                      : CallKind::convolution_data;
  return call;
}

void convolve(const Geometry& g, Way way, Place x, Place w, Place y) {
  if (g.spatial.size() <= 2 && Device::get().convolve(call_of(g, way), g.transposed ? y : x, w, g.transposed ? x : y))
    return;
  Convolution c{};
  c.batch = g.batch, c.groups = g.groups, c.out = g.out, c.in = g.in;
  c.rank = static_cast<i64>(g.spatial.size());
  i64 smalls = 1, larges = 1, taps = 1;
  for (std::size_t d = 0; d < g.spatial.size(); ++d) {
    const Spatial& s = g.spatial[d];
    c.small[d] = s.small, c.large[d] = s.large, c.kernel[d] = s.kernel, c.stride[d] = s.stride, c.pad[d] = s.pad;
    smalls *= s.small, larges *= s.large, taps *= s.kernel;
  }
  c.transposed = g.transposed ? 1 : 0;
  c.x = address(x), c.w = address(w), c.y = address(y);
  c.to = address(way == Way::forward ? y : way == Way::data ? x : w);
  const i64 xs = g.transposed ? smalls : larges, ys = g.transposed ? larges : smalls;
  if (way == Way::forward) launch_each("convolution_forward", g.batch * g.groups * g.out * ys, c);
  if (way == Way::data) launch_each("convolution_data", g.batch * g.groups * g.in * xs, c);
  if (way == Way::filter) launch_rows("convolution_filter", g.groups * g.out * g.in * taps, g.batch * smalls, c);
}

Strides channels_of(const Shape& y) {
  std::int64_t plane = 1;
  for (std::size_t d = 2; d < y.size(); ++d) plane *= y[d];
  return {y[0], y[1], plane};
}

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Shape& y = out[0]->region.extent;
  const Geometry g = geometry(at, in[0]->region.extent, in[1]->region.extent, y);
  if (g.spatial.size() > 3) return at.error("a convolution of more than three dimensions");
  convolve(g, Way::forward, in[0]->data.data(), in[1]->data.data(), out[0]->data.data());
  const Strides sizes = channels_of(y);
  if (in.size() > 2 && at.adds_once)
    move_strided(sizes, in[2]->data.data(), {0, 1, 0}, out[0]->data.data(), {sizes[1] * sizes[2], sizes[2], 1}, true);
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  const Shape& y = gradient[0]->region.extent;
  if (result[0] && !in[1]) return at.error("backward needs its weight, which is not there");
  if (result[1] && !in[0]) return at.error("backward needs its input, which is not there");
  if (result[0] || result[1]) {
    const Block *x = in[0] ? in[0] : result[0], *w = in[1] ? in[1] : result[1];
    if (!x) return at.error("backward needs its input, which is not there");
    const Geometry g = geometry(at, x->region.extent, w->region.extent, y);
    const Place dy = gradient[0]->data.data();
    if (result[0]) convolve(g, Way::data, result[0]->data.data(), in[1]->data.data(), dy);
    if (result[1]) convolve(g, Way::filter, in[0]->data.data(), result[1]->data.data(), dy);
  }
  if (in.size() < 3 || !result[2]) return {};
  const Strides sizes = channels_of(y), zero = none(3);
  sum_over(sizes, {Strides{0, 1, 0}, {sizes[1] * sizes[2], sizes[2], 1}, zero, zero, zero}, SumOf::a,
           {gradient[0]->data.data(), {}, {}, {}, {}}, result[2]->data.data(), result[2]->data.size());
  return {};
}

Pool pool_of(const LocalOperator& at, const Shape& x, const Shape& y) {
  Pool pool{};
  pool.planes = x[0] * x[1];
  pool.rank = static_cast<i64>(x.size()) - 2;
  for (std::size_t d = 2; d < x.size(); ++d) pool.x[d - 2] = x[d], pool.y[d - 2] = y[d];
  pool.maximum = takes_maximum(at) ? 1 : 0;
  return pool;
}

Expected<void> pool_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (in[0]->region.extent.size() > 5) return at.error("a pooling of more than three dimensions");
  Pool pool = pool_of(at, in[0]->region.extent, out[0]->region.extent);
  pool.from = address(in[0]->data.data());
  pool.to = address(out[0]->data.data());
  launch_each("pool_forward", out[0]->region.elements(), pool);
  return {};
}

Expected<void> pool_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  Pool pool = pool_of(at, result[0]->region.extent, gradient[0]->region.extent);
  if (pool.maximum && !in[0]) return at.error("backward needs its input, which is not there");
  if (pool.maximum) pool.from = address(in[0]->data.data());
  pool.dy = address(gradient[0]->data.data());
  const RoomForSums sums(result[0]->data);
  pool.sums = address(sums.data());
  launch_each("pool_backward", gradient[0]->region.elements(), pool);
  return {};
}

}  // namespace

const Kernel GpuKernels::convolution{forward, backward};
const Kernel GpuKernels::pooling{pool_forward, pool_backward};

}  // namespace turnpoint::step::in_cuda
