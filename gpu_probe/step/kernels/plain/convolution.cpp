// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three spatial dimensions, grouped and transposed, and pooling.
#include <algorithm>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step {

namespace {

// Calls visit(x, w, y) with element offsets for every multiply-accumulate.
template <class Visit>
void for_each_mac(const Geometry& g, const Visit& visit) {
  const std::size_t n = g.spatial.size();
  std::int64_t small_positions = 1, large_positions = 1, taps = 1;
  for (const auto& s : g.spatial) small_positions *= s.small, large_positions *= s.large, taps *= s.kernel;
  // Pairs of positions once, then channels.
  struct Pair {
    std::int64_t small, large, tap;
  };
  std::vector<Pair> pairs;
  for (std::int64_t p = 0; p < small_positions; ++p) {
    for (std::int64_t t = 0; t < taps; ++t) {
      std::int64_t rest_p = p, rest_t = t, large = 0, stride = 1;
      bool inside = true;
      for (std::size_t d = n; d-- > 0;) {
        const Spatial& s = g.spatial[d];
        const std::int64_t at = (rest_p % s.small) * s.stride + rest_t % s.kernel - s.pad;
        inside = inside && at >= 0 && at < s.large;
        large += at * stride;
        stride *= s.large;
        rest_p /= s.small;
        rest_t /= s.kernel;
      }
      if (inside) pairs.push_back({p, large, t});
    }
  }
  const std::int64_t x_positions = g.transposed ? small_positions : large_positions,
                     y_positions = g.transposed ? large_positions : small_positions;
  for (std::int64_t b = 0; b < g.batch; ++b)
    for (std::int64_t group = 0; group < g.groups; ++group)
      for (std::int64_t o = 0; o < g.out; ++o)
        for (std::int64_t i = 0; i < g.in; ++i) {
          const std::int64_t x = ((b * g.groups + group) * g.in + i) * x_positions,
                             y = ((b * g.groups + group) * g.out + o) * y_positions,
                             w = (g.transposed ? (group * g.in + i) * g.out + o : (group * g.out + o) * g.in + i) *
                                 taps;
          for (const Pair& p : pairs)
            visit(x + (g.transposed ? p.small : p.large), w + p.tap, y + (g.transposed ? p.large : p.small));
        }
}

template <class Visit>
void for_each_output(const Shape& y, const Visit& visit) {
  std::int64_t positions = 1;
  for (std::size_t d = 2; d < y.size(); ++d) positions *= y[d];
  std::int64_t at = 0;
  for (std::int64_t b = 0; b < y[0]; ++b)
    for (std::int64_t c = 0; c < y[1]; ++c)
      for (std::int64_t p = 0; p < positions; ++p) visit(c, at++);
}

template <class Real>
Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Real *x = in[0]->data.data(), *w = in[1]->data.data();
  Real* y = out[0]->data.data();
  for_each_mac(geometry(at, in[0]->region.extent, in[1]->region.extent, out[0]->region.extent),
               [&](auto ox, auto ow, auto oy) { y[oy] += x[ox] * w[ow]; });
  if (in.size() > 2 && at.adds_once)
    for_each_output(out[0]->region.extent, [&](auto c, auto oy) { y[oy] += in[2]->as<Real>()[index_of(c)]; });
  return {};
}

template <class Real>
Expected<void> backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const Real* dy = gradient[0]->data.data();
  const auto extent = [&](std::size_t k) -> const Shape& { return (in[k] ? in[k] : result[k])->region.extent; };
  if (result[0] && !in[1]) return at.error("backward needs its weight, which is not there");
  if (result[1] && !in[0]) return at.error("backward needs its input, which is not there");
  if (result[0] || result[1]) {
    if (!in[0] && !result[0]) return at.error("backward needs its input, which is not there");
    const Geometry g = geometry(at, extent(0), extent(1), gradient[0]->region.extent);
    if (result[0])
      for_each_mac(g, [&, w = in[1]->as<Real>(), d = result[0]->as<Real>()](auto ox, auto ow, auto oy) {
        d[ox] += dy[oy] * w[ow];
      });
    if (result[1])
      for_each_mac(g, [&, x = in[0]->as<Real>(), d = result[1]->as<Real>()](auto ox, auto ow, auto oy) {
        d[ow] += dy[oy] * x[ox];
      });
  }
  if (in.size() > 2 && result[2])
    for_each_output(gradient[0]->region.extent, [&](auto c, auto oy) { result[2]->as<Real>()[index_of(c)] += dy[oy]; });
  return {};
}

// --- pooling ---------------------------------------------------------------------------------------------------------

// Calls visit(offsets of the window in x, offset in y) for every window.
template <class Visit>
void for_each_window(const Shape& x, const Shape& y, const Visit& visit) {
  const std::size_t n = x.size() - 2;
  std::int64_t x_positions = 1, y_positions = 1;
  for (std::size_t d = 2; d < x.size(); ++d) x_positions *= x[d], y_positions *= y[d];
  std::vector<std::int64_t> window;
  Shape first(n), last(n), at(n);
  for (std::int64_t p = 0; p < y_positions; ++p) {
    std::int64_t rest = p;
    for (std::size_t d = n; d-- > 0;) {
      const std::int64_t o = rest % y[d + 2];
      rest /= y[d + 2];
      first[d] = o * x[d + 2] / y[d + 2];
      last[d] = ((o + 1) * x[d + 2] + y[d + 2] - 1) / y[d + 2];
    }
    window.clear();
    at = first;
    for (bool more = true; more;) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < n; ++d) offset = offset * x[d + 2] + at[d];
      window.push_back(offset);
      more = false;
      for (std::size_t d = n; d-- > 0 && !more;) {
        if (++at[d] < last[d])
          more = true;
        else
          at[d] = first[d];
      }
    }
    for (std::int64_t c = 0; c < x[0] * x[1]; ++c) visit(window, c * x_positions, c * y_positions + p);
  }
}

template <class Real>
std::int64_t largest_of(const Real* x, const std::vector<std::int64_t>& window, std::int64_t base) {
  std::int64_t best = base + window.front();
  for (const auto o : window)
    if (x[index_of(base + o)] > x[index_of(best)]) best = base + o;
  return best;
}

template <class Real>
Expected<void> pool_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const bool maximum = takes_maximum(at);
  const Real* x = in[0]->data.data();
  for_each_window(in[0]->region.extent, out[0]->region.extent, [&](const auto& window, auto base, auto o) {
    Real& y = out[0]->as<Real>()[index_of(o)];
    if (maximum) {
      y = x[index_of(largest_of(x, window, base))];
    } else {
      for (const auto w : window) y += x[index_of(base + w)] / static_cast<Real>(window.size());
    }
  });
  return {};
}

template <class Real>
Expected<void> pool_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  const bool maximum = takes_maximum(at);
  if (maximum && !in[0]) return at.error("backward needs its input, which is not there");
  for_each_window(result[0]->region.extent, gradient[0]->region.extent, [&](const auto& window, auto base, auto o) {
    const Real dy = gradient[0]->as<Real>()[index_of(o)];
    if (maximum) {
      result[0]->as<Real>()[index_of(largest_of<Real>(in[0]->data.data(), window, base))] += dy;
    } else {
      for (const auto w : window) result[0]->as<Real>()[index_of(base + w)] += dy / static_cast<Real>(window.size());
    }
  });
  return {};
}

}  // namespace

const HostKernel HostKernels::convolution{
    {forward<double>, backward<double>},
    {forward<float>, backward<float>, fast::convolution_forward, fast::convolution_backward}};
const HostKernel HostKernels::pooling{
    {pool_forward<double>, pool_backward<double>},
    {pool_forward<float>, pool_backward<float>, fast::pooling_forward, fast::pooling_backward}};

}  // namespace turnpoint::step
