// SPDX-License-Identifier: Apache-2.0
// Look-ups by integer data, the way of tokens to experts and back, sums over dimensions, and unknown functions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step {

namespace {

// --- embedding: rows of a table; a rank with a part of the rows adds nothing for the others
// ---------------------------

template <class Real, class Visit>
void for_each_row(const LocalOperator& at, const Block& table, const Block& indices, const Visit& visit) {
  const std::int64_t all = at.input(0).shape[0], channels = table.region.extent[1];
  for (std::size_t i = 0; i < indices.data.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(std::abs(indices.as<Real>()[i])) % all - table.region.offset[0];
    if (row < 0 || row >= table.region.extent[0]) continue;
    for (std::int64_t c = 0; c < channels; ++c)
      visit(index_of(row * channels + c), i * index_of(channels) + index_of(c));
  }
}

template <class Real>
Expected<void> embedding_forward(const LocalOperator& at, Inputs in, Outputs out) {
  for_each_row<Real>(at, *in[0], *in[1], [&](auto row, auto y) { out[0]->as<Real>()[y] = in[0]->as<Real>()[row]; });
  return {};
}
template <class Real>
Expected<void> embedding_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[1]) return at.error("backward needs its indices, which are not there");
  for_each_row<Real>(at, *result[0], *in[1],
                     [&](auto row, auto y) { result[0]->as<Real>()[row] += gradient[0]->as<Real>()[y]; });
  return {};
}

// --- experts
// -----------------------------------------------------------------------------------------------------------

// Token of each (sample, expert, slot): for every expert the tokens with the largest weights, ties in their order.
template <class Real>
std::vector<std::int64_t> chosen(const Block& routing, std::int64_t slots) {
  const auto& e = routing.region.extent;
  std::vector<std::int64_t> result, order(index_of(e[1]));
  for (std::int64_t n = 0; n < e[0]; ++n) {
    for (std::int64_t expert = 0; expert < e[2]; ++expert) {
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
        return routing.as<Real>()[index_of((n * e[1] + a) * e[2] + expert)] >
               routing.as<Real>()[index_of((n * e[1] + b) * e[2] + expert)];
      });
      for (std::int64_t s = 0; s < slots; ++s) result.push_back(order[index_of(s % e[1])]);
    }
  }
  return result;
}

// Calls visit(x, routing, y) for every element of the dispatched tokens.
template <class Real, class Visit>
void for_each_dispatched(const Block& routing, const Shape& y, std::int64_t tokens, const Visit& visit) {
  const auto choice = chosen<Real>(routing, y[2]);
  std::int64_t at = 0;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t e = 0; e < y[1]; ++e)
      for (std::int64_t s = 0; s < y[2]; ++s) {
        const std::int64_t token = choice[index_of((n * y[1] + e) * y[2] + s)];
        for (std::int64_t c = 0; c < y[3]; ++c)
          visit(index_of((n * tokens + token) * y[3] + c), index_of((n * tokens + token) * y[1] + e), index_of(at++));
      }
}

template <class Real>
Expected<void> dispatch_forward(const LocalOperator& at, Inputs in, Outputs out) {
  for_each_dispatched<Real>(*in[1], out[0]->region.extent, at.input(0).shape[1], [&](auto x, auto r, auto y) {
    out[0]->as<Real>()[y] = in[0]->as<Real>()[x] + in[1]->as<Real>()[r];
  });
  return {};
}
template <class Real>
Expected<void> dispatch_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  if (!in[1]) return at.error("backward needs its routing, which is not there");
  for_each_dispatched<Real>(*in[1], gradient[0]->region.extent, at.input(0).shape[1], [&](auto x, auto r, auto y) {
    if (result[0]) result[0]->as<Real>()[x] += gradient[0]->as<Real>()[y];
    if (result[1]) result[1]->as<Real>()[r] += gradient[0]->as<Real>()[y];
  });
  return {};
}

// Calls visit(y, out) for every expert's element whose token is in this rank's part of the sequence.
template <class Visit>
void for_each_combined(const LocalOperator& at, const Region& y, const Region& out, const Visit& visit) {
  const auto& e = y.extent;
  for (std::int64_t n = 0; n < e[0]; ++n)
    for (std::int64_t expert = 0; expert < e[1]; ++expert)
      for (std::int64_t s = 0; s < e[2]; ++s) {
        const std::int64_t token = ((y.offset[1] + expert) * e[2] + s) % at.output(0).shape[1] - out.offset[1];
        if (token < 0 || token >= out.extent[1]) continue;
        for (std::int64_t c = 0; c < e[3]; ++c)
          visit(index_of(((n * e[1] + expert) * e[2] + s) * e[3] + c),
                index_of((n * out.extent[1] + token) * e[3] + c));
      }
}

template <class Real>
Expected<void> combine_forward(const LocalOperator& at, Inputs in, Outputs out) {
  for_each_combined(at, in[0]->region, out[0]->region, [&](auto y, auto o) {
    out[0]->as<Real>()[o] += in[0]->as<Real>()[y] + Real(0.1) * in[0]->as<Real>()[y] * in[0]->as<Real>()[y];
  });
  return {};
}
template <class Real>
Expected<void> combine_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[0]) return at.error("backward needs its input, which is not there");
  for_each_combined(at, in[0]->region, gradient[0]->region, [&](auto y, auto o) {
    result[0]->as<Real>()[y] += gradient[0]->as<Real>()[o] * (1 + Real(0.2) * in[0]->as<Real>()[y]);
  });
  return {};
}

// --- reductions
// --------------------------------------------------------------------------------------------------------

bool covers(const LocalOperator& at, const Block& x, const Block& y) {
  return x.data.size() >= y.data.size() && walks_all(at, at.op().inputs[0]);
}

template <class Real>
Expected<void> reduce_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (!covers(at, *in[0], *out[0])) return at.error("a reduction has a dimension that no loop walks");
  const Reduction how = reduction_of(at);
  const Real factor = how == Reduction::sum ? Real(1) : static_cast<Real>(mean_factor(at));
  std::vector<bool> seen(out[0]->data.size(), false);
  for_each<2>(at.sizes(), {at.strides(at.op().inputs[0], *in[0]), at.strides(at.op().outputs[0], *out[0])},
              [&](const auto&, const auto& o) {
                const Real x = in[0]->as<Real>()[index_of(o[0])];
                Real& y = out[0]->as<Real>()[index_of(o[1])];
                if (how == Reduction::maximum)
                  y = seen[index_of(o[1])] ? std::max(y, x) : x;
                else
                  y += (how == Reduction::squares ? x * x : x) * factor;
                seen[index_of(o[1])] = true;
              });
  return {};
}
template <class Real>
Expected<void> reduce_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  const Reduction how = reduction_of(at);
  if (at.op().inputs[0].saved && !in[0]) return at.error("backward needs its input, which is not there");
  const Real factor = how == Reduction::sum ? Real(1) : static_cast<Real>(mean_factor(at));
  std::vector<std::int64_t> best(gradient[0]->data.size(), -1);
  for_each<2>(at.sizes(), {at.strides(at.op().inputs[0], *result[0]), at.strides(at.op().outputs[0], *gradient[0])},
              [&](const auto&, const auto& o) {
                const Real dy = gradient[0]->as<Real>()[index_of(o[1])];
                auto& largest = best[index_of(o[1])];
                if (how == Reduction::maximum) {
                  if (largest < 0 || in[0]->as<Real>()[index_of(o[0])] > in[0]->as<Real>()[index_of(largest)])
                    largest = o[0];
                } else {
                  result[0]->as<Real>()[index_of(o[0])] +=
                      dy * factor * (how == Reduction::squares ? 2 * in[0]->as<Real>()[index_of(o[0])] : 1);
                }
              });
  // An element of the result that no loop reaches is zero whatever the input is, and has no largest element to pass to.
  if (how == Reduction::maximum)
    for (std::size_t i = 0; i < best.size(); ++i)
      if (best[i] >= 0) result[0]->as<Real>()[index_of(best[i])] += gradient[0]->as<Real>()[i];
  return {};
}

// --- unknown functions: y[walked, u] = sum over operands and over what is not walked of x (1 + x / 4) cos(u + k)
// ------

struct Unwalked {
  std::vector<std::int64_t> offsets;  ///< of the elements of the dimensions that no loop walks
};
Unwalked unwalked(const Access& access, const Region& region) {
  Unwalked result{{0}};
  std::int64_t stride = 1;
  for (std::size_t d = access.walks.size(); d-- > 0;) {
    if (access.walks[d].empty()) {
      std::vector<std::int64_t> next;
      for (std::int64_t i = 0; i < region.extent[d]; ++i)
        for (const auto o : result.offsets) next.push_back(o + i * stride);
      result.offsets = std::move(next);
    }
    stride *= region.extent[d];
  }
  return result;
}

double pattern(std::size_t u, std::size_t k) { return std::cos(static_cast<double>(u % 16 + 3 * k)); }

template <class Real>
Expected<void> opaque_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Operator& op = at.op();
  const auto places = unwalked(op.outputs[0], out[0]->region);
  const auto y_strides = at.strides(op.outputs[0], *out[0]);
  for (std::size_t k = 0; k < in.size(); ++k) {
    const auto reads = unwalked(op.inputs[k], in[k]->region);
    const double share = 1 / static_cast<double>(reads.offsets.size());
    for_each<2>(at.sizes(), {at.strides(op.inputs[k], *in[k]), y_strides}, [&](const auto&, const auto& o) {
      double total = 0;
      for (const auto r : reads.offsets) {
        const double x = in[k]->as<Real>()[index_of(o[0] + r)];
        total += x * (1 + 0.25 * x) * share;
      }
      for (std::size_t u = 0; u < places.offsets.size(); ++u)
        out[0]->as<Real>()[index_of(o[1] + places.offsets[u])] += static_cast<Real>(total * pattern(u, k));
    });
  }
  if (!is_floating(at.output(0).type))
    for (Real& y : std::span(out[0]->as<Real>(), out[0]->data.size())) y = std::floor(std::abs(y));
  return {};
}
template <class Real>
Expected<void> opaque_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const Operator& op = at.op();
  const auto places = unwalked(op.outputs[0], gradient[0]->region);
  const auto y_strides = at.strides(op.outputs[0], *gradient[0]);
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!result[k]) continue;
    if (!in[k]) return at.error("backward needs an operand that is not there");
    const auto reads = unwalked(op.inputs[k], in[k]->region);
    const double share = 1 / static_cast<double>(reads.offsets.size());
    for_each<2>(at.sizes(), {at.strides(op.inputs[k], *in[k]), y_strides}, [&](const auto&, const auto& o) {
      double dy = 0;
      for (std::size_t u = 0; u < places.offsets.size(); ++u)
        dy += gradient[0]->as<Real>()[index_of(o[1] + places.offsets[u])] * pattern(u, k);
      for (const auto r : reads.offsets) {
        const auto i = index_of(o[0] + r);
        result[k]->as<Real>()[i] += static_cast<Real>(dy * share * (1 + 0.5 * in[k]->as<Real>()[i]));
      }
    });
  }
  return {};
}

}  // namespace

const HostKernel HostKernels::embedding{
    {embedding_forward<double>, embedding_backward<double>},
    {embedding_forward<float>, embedding_backward<float>, fast::embedding_forward, fast::embedding_backward}};
const HostKernel HostKernels::dispatch{{dispatch_forward<double>, dispatch_backward<double>},
                                       {dispatch_forward<float>, dispatch_backward<float>}};
const HostKernel HostKernels::combine{{combine_forward<double>, combine_backward<double>},
                                      {combine_forward<float>, combine_backward<float>}};
const HostKernel HostKernels::reduction{
    {reduce_forward<double>, reduce_backward<double>},
    {reduce_forward<float>, reduce_backward<float>, fast::reduction_forward, fast::reduction_backward}};
const HostKernel HostKernels::opaque{{opaque_forward<double>, opaque_backward<double>},
                                     {opaque_forward<float>, opaque_backward<float>}};

}  // namespace turnpoint::step
