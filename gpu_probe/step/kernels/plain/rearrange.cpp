// SPDX-License-Identifier: Apache-2.0
// Views, concatenations and slices: elements change their places only, or are read as they are.
#include <algorithm>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step {

namespace {

// --- views -----------------------------------------------------------------------------------------------------------

// Calls visit(x, y) for every element. Where every dimension is walked the loops say where an element goes; elsewhere
// (a reshape whose sizes have no common factor) the row-major order is kept, which is right if walked loops keep it.
template <class Visit>
Expected<void> for_each_viewed(const LocalOperator& at, const Block& x, const Block& y, const Visit& visit) {
  const Access &from = at.op().inputs[0], &to = at.op().outputs[0];
  if (x.data.size() != y.data.size()) return at.error("a view changes the number of elements");
  if (walks_all(at, from) && walks_all(at, to)) {
    for_each<2>(at.sizes(), {at.strides(from, x), at.strides(to, y)},
                [&](const auto&, const auto& o) { visit(index_of(o[0]), index_of(o[1])); });
    return {};
  }
  const auto order = [](const Access& access) {
    std::vector<std::uint8_t> loops;
    for (const auto& walk : access.walks) loops.insert(loops.end(), walk.begin(), walk.end());
    return loops;
  };
  if (order(from) != order(to)) return at.error("a view that no loops describe cannot be executed");
  for (std::size_t i = 0; i < x.data.size(); ++i) visit(i, i);
  return {};
}

template <class Real>
Expected<void> view_forward(const LocalOperator& at, Inputs in, Outputs out) {
  return for_each_viewed(at, *in[0], *out[0], [&](auto x, auto y) { out[0]->as<Real>()[y] = in[0]->as<Real>()[x]; });
}
template <class Real>
Expected<void> view_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  return for_each_viewed(at, *result[0], *gradient[0],
                         [&](auto x, auto y) { result[0]->as<Real>()[x] += gradient[0]->as<Real>()[y]; });
}

// --- concatenation ---------------------------------------------------------------------------------------------------

Region at_origin(const Region& region) { return {Shape(region.extent.size(), 0), region.extent}; }

Expected<void> concat_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto parts = places(at, out[0]->region);
  for (std::size_t k = 0; k < in.size(); ++k)
    copy_overlap(parts[k], in[k]->data.data(), at_origin(out[0]->region), out[0]->data.data());
  return {};
}
Expected<void> concat_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const auto parts = places(at, gradient[0]->region);
  for (std::size_t k = 0; k < in.size(); ++k)
    if (result[k])
      copy_overlap(at_origin(gradient[0]->region), gradient[0]->data.data(), parts[k], result[k]->data.data(), true);
  return {};
}

// --- slices ----------------------------------------------------------------------------------------------------------

// Calls visit(x, y) for the elements of output k.
template <class Visit>
void for_each_sliced(const LocalOperator& at, std::size_t k, const Region& x, const Region& y, const Visit& visit) {
  const Shape start = slice_start(at, k);
  const std::size_t rank = x.extent.size();
  Shape index(y.extent.size(), 0);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t size = d < index.size() ? y.extent[d] : 1, at_d = d < index.size() ? index[d] : 0;
      const std::int64_t place = size > x.extent[d] ? at_d * x.extent[d] / size : start[d] + at_d;
      from = from * x.extent[d] + place;
    }
    visit(index_of(from), index_of(i));
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < y.extent[d]) break;
      index[d] = 0;
    }
  }
}

template <class Real>
Expected<void> slice_forward(const LocalOperator& at, Inputs in, Outputs out) {
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k])
      for_each_sliced(at, k, in[0]->region, out[k]->region,
                      [&](auto x, auto y) { out[k]->as<Real>()[y] = in[0]->as<Real>()[x]; });
  return {};
}
template <class Real>
Expected<void> slice_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  for (std::size_t k = 0; k < gradient.size(); ++k)
    if (gradient[k])
      for_each_sliced(at, k, result[0]->region, gradient[k]->region,
                      [&](auto x, auto y) { result[0]->as<Real>()[x] += gradient[k]->as<Real>()[y]; });
  return {};
}

}  // namespace

const HostKernel HostKernels::view{
    {view_forward<double>, view_backward<double>},
    {view_forward<float>, view_backward<float>, fast::view_forward, fast::view_backward}};
const HostKernel HostKernels::concat{{concat_forward, concat_backward}, {concat_forward, concat_backward}};
const HostKernel HostKernels::slice{
    {slice_forward<double>, slice_backward<double>},
    {slice_forward<float>, slice_backward<float>, fast::slice_forward, fast::slice_backward}};

}  // namespace turnpoint::step
