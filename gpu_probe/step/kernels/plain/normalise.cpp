// SPDX-License-Identifier: Apache-2.0
// Softmax, layer and batch normalisation: each works on sets of elements that no plan splits, or on a rank's own share.
#include <algorithm>
#include <cmath>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step {

namespace {

using Strides = std::vector<std::int64_t>;

// Calls `visit(offsets of the set's elements in the four tensors)` for every set: loops in `within` run inside a set,
// each share or part of them by itself, the others number the sets.
template <class Visit>
void for_each_set(const LocalOperator& at, const std::vector<bool>& within, const std::array<Strides, 4>& strides,
                  const Visit& visit) {
  std::vector<std::array<std::int64_t, 4>> elements;
  const auto in_part = [&](const std::vector<std::array<std::int64_t, 2>>& part, bool in_shares) {
    Strides outer, inner;
    std::array<Strides, 4> step = strides;
    std::array<std::int64_t, 4> first{};
    for (std::size_t l = 0; l < at.loops.size(); ++l) {
      const auto [offset, size] = part[l];
      const std::int64_t shares = !within[l] ? size : in_shares ? at.loops[l].shares : 1;
      outer.push_back(shares);
      inner.push_back(within[l] ? size / shares : 1);
      for (std::size_t t = 0; t < 4; ++t) {
        first[t] += offset * strides[t][l];
        step[t][l] *= inner.back();
      }
    }
    for_each<4>(outer, step, [&](const auto&, auto base) {
      for (std::size_t t = 0; t < 4; ++t) base[t] += first[t];
      elements.clear();
      for_each<4>(inner, strides, [&](const auto&, const auto& o) {
        elements.push_back({base[0] + o[0], base[1] + o[1], base[2] + o[2], base[3] + o[3]});
      });
      visit(elements);
    });
  };
  if (at.parts) {
    for (const auto& part : *at.parts) in_part(part, false);
    return;
  }
  std::vector<std::array<std::int64_t, 2>> whole;
  for (const LoopRange& loop : at.loops) whole.push_back({0, loop.size});
  in_part(whole, true);
}

// --- softmax ---------------------------------------------------------------------------------------------------------

template <class Real>
Expected<void> softmax_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto x_strides = at.strides(at.op().inputs[0], *in[0]);
  const Real* x = in[0]->data.data();
  Real* y = out[0]->data.data();
  for_each_set(at, softmax_loop(at), {x_strides, x_strides, x_strides, x_strides}, [&](const auto& set) {
    double largest = x[index_of(set.front()[0])], total = 0;
    for (const auto& o : set) largest = std::max<double>(largest, x[index_of(o[0])]);
    for (const auto& o : set) total += std::exp(x[index_of(o[0])] - largest);
    for (const auto& o : set) {
      const double shifted = x[index_of(o[0])] - largest;
      y[index_of(o[0])] = static_cast<Real>(logarithmic(at) ? shifted - std::log(total) : std::exp(shifted) / total);
    }
  });
  return {};
}

template <class Real>
Expected<void> softmax_backward(const LocalOperator& at, Inputs, Inputs out, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!out[0]) return at.error("backward needs its output, which is not there");
  const auto strides = at.strides(at.op().inputs[0], *out[0]);
  const Real *y = out[0]->data.data(), *dy = gradient[0]->data.data();
  Real* dx = result[0]->data.data();
  for_each_set(at, softmax_loop(at), {strides, strides, strides, strides}, [&](const auto& set) {
    double total = 0;
    for (const auto& o : set) total += dy[index_of(o[0])] * (logarithmic(at) ? 1 : y[index_of(o[0])]);
    for (const auto& o : set) {
      const auto i = index_of(o[0]);
      dx[i] += static_cast<Real>(logarithmic(at) ? dy[i] - std::exp(y[i]) * total : y[i] * (dy[i] - total));
    }
  });
  return {};
}

// --- normalisations --------------------------------------------------------------------------------------------------

struct Moments {
  double mean = 0, inverse = 0;
};
template <class Real, class Set>
Moments moments(const Real* x, const Set& set, bool centred) {
  Moments m;
  double squares = 0;
  for (const auto& o : set) m.mean += x[index_of(o[0])];
  m.mean = centred ? m.mean / static_cast<double>(set.size()) : 0;
  for (const auto& o : set) squares += (x[index_of(o[0])] - m.mean) * (x[index_of(o[0])] - m.mean);
  m.inverse = 1 / std::sqrt(squares / static_cast<double>(set.size()) + kEpsilon);
  return m;
}

template <class Real>
Expected<void> norm_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Norm norm = norm_of(at);
  const Strides x_strides = at.strides(at.op().inputs[0], *in[0]), none(at.loops.size(), 0);
  const auto operand = [&](int k) {
    return k < 0 ? none : at.strides(at.op().inputs[static_cast<std::size_t>(k)], *in[static_cast<std::size_t>(k)]);
  };
  const Real* x = in[0]->data.data();
  for_each_set(at, norm.within, {x_strides, operand(norm.scale), operand(norm.bias), x_strides}, [&](const auto& set) {
    const Moments m = moments(x, set, norm.centred);
    for (const auto& o : set) {
      const double scale = norm.scale < 0 ? 1 : in[static_cast<std::size_t>(norm.scale)]->as<Real>()[index_of(o[1])];
      const double bias = norm.bias < 0 ? 0 : in[static_cast<std::size_t>(norm.bias)]->as<Real>()[index_of(o[2])];
      out[0]->as<Real>()[index_of(o[0])] = static_cast<Real>((x[index_of(o[0])] - m.mean) * m.inverse * scale + bias);
    }
  });
  return {};
}

template <class Real>
Expected<void> norm_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const Norm norm = norm_of(at);
  if (!in[0]) return at.error("backward needs its input, which is not there");
  const Block* scale = norm.scale < 0 ? nullptr : in[static_cast<std::size_t>(norm.scale)];
  if (norm.scale >= 0 && !scale && result[0])
    return at.error("backward needs its scale, which the model does not save");
  const Strides x_strides = at.strides(at.op().inputs[0], *in[0]), none(at.loops.size(), 0);
  const auto operand = [&](int k) {
    if (k < 0) return none;
    const auto i = static_cast<std::size_t>(k);
    const Block* block = result[i] ? result[i] : in[i];
    return block ? at.strides(at.op().inputs[i], *block) : none;
  };
  const Real *x = in[0]->data.data(), *dy = gradient[0]->data.data();
  for_each_set(at, norm.within, {x_strides, operand(norm.scale), operand(norm.bias), x_strides}, [&](const auto& set) {
    const Moments m = moments(x, set, norm.centred);
    const auto count = static_cast<double>(set.size());
    double sum = 0, sum_x = 0;
    for (const auto& o : set) {
      const auto i = index_of(o[0]);
      const double normal = (x[i] - m.mean) * m.inverse, g = dy[i] * (scale ? scale->as<Real>()[index_of(o[1])] : 1);
      sum += g;
      sum_x += g * normal;
      if (norm.scale >= 0 && result[static_cast<std::size_t>(norm.scale)])
        result[static_cast<std::size_t>(norm.scale)]->as<Real>()[index_of(o[1])] += static_cast<Real>(dy[i] * normal);
      if (norm.bias >= 0 && result[static_cast<std::size_t>(norm.bias)])
        result[static_cast<std::size_t>(norm.bias)]->as<Real>()[index_of(o[2])] += dy[i];
    }
    if (!result[0]) return;
    for (const auto& o : set) {
      const auto i = index_of(o[0]);
      const double normal = (x[i] - m.mean) * m.inverse, g = dy[i] * (scale ? scale->as<Real>()[index_of(o[1])] : 1);
      result[0]->as<Real>()[i] +=
          static_cast<Real>(m.inverse * (g - (norm.centred ? sum / count : 0) - normal * sum_x / count));
    }
  });
  return {};
}

}  // namespace

const HostKernel HostKernels::softmax{
    {softmax_forward<double>, softmax_backward<double>},
    {softmax_forward<float>, softmax_backward<float>, fast::softmax_forward, fast::softmax_backward}};
const HostKernel HostKernels::normalisation{
    {norm_forward<double>, norm_backward<double>},
    {norm_forward<float>, norm_backward<float>, fast::norm_forward, fast::norm_backward}};
const HostKernel HostKernels::batch_normalisation{
    {norm_forward<double>, norm_backward<double>},
    {norm_forward<float>, norm_backward<float>, fast::norm_forward, fast::norm_backward}};

}  // namespace turnpoint::step
