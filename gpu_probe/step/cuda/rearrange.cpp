// SPDX-License-Identifier: Apache-2.0
// Views, concatenations, slices and sums over dimensions.
#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::in_cuda {

namespace {

Expected<void> view(const LocalOperator& at, const Block& from, const Access& read, Block& to, const Access& written) {
  if (from.data.size() != to.data.size()) return at.error("a view changes the number of elements");
  if (walks_all(at, read) && walks_all(at, written)) {
    move_strided(at.sizes(), from.data.data(), at.strides(read, from), to.data.data(), at.strides(written, to));
    return {};
  }
  const auto order = [](const Access& access) {
    std::vector<std::uint8_t> loops;
    for (const auto& walk : access.walks) loops.insert(loops.end(), walk.begin(), walk.end());
    return loops;
  };
  if (order(read) != order(written)) return at.error("a view that no loops describe cannot be executed");
  copy(from.data.data(), to.data.data(), from.data.size());
  return {};
}
Expected<void> view_forward(const LocalOperator& at, Inputs in, Outputs out) {
  return view(at, *in[0], at.op().inputs[0], *out[0], at.op().outputs[0]);
}
Expected<void> view_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  return view(at, *gradient[0], at.op().outputs[0], *result[0], at.op().inputs[0]);
}

Region at_origin(const Region& region) { return {Shape(region.extent.size(), 0), region.extent}; }

Expected<void> concat_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto parts = places(at, out[0]->region);
  for (std::size_t k = 0; k < in.size(); ++k)
    copy_overlap(parts[k], in[k]->data.data(), at_origin(out[0]->region), out[0]->data.data());
  return {};
}
Expected<void> concat_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  const auto parts = places(at, gradient[0]->region);
  for (std::size_t k = 0; k < in.size(); ++k)
    if (result[k])
      copy_overlap(at_origin(gradient[0]->region), gradient[0]->data.data(), parts[k], result[k]->data.data());
  return {};
}

Expected<void> slice_forward(const LocalOperator& at, Inputs in, Outputs out) {
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!out[k]) continue;
    const auto slice = slice_of(at, k, in[0]->region, out[k]->region);
    if (!slice) return at.error("a slice that repeats its elements unequally often is not carried out on a GPU");
    move_strided(slice->sizes, in[0]->data.data() + slice->start, slice->x, out[k]->data.data(), slice->y);
  }
  return {};
}
Expected<void> slice_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  result[0]->data.clear();
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    if (!gradient[k]) continue;
    const auto slice = slice_of(at, k, result[0]->region, gradient[k]->region);
    if (!slice) return at.error("a slice that repeats its elements unequally often is not carried out on a GPU");
    // What is repeated is summed first; without repeats every element of the part is one of the whole.
    std::size_t elements = 1;
    bool repeats = false;
    Strides sizes, compact;
    for (std::size_t l = 0; l < slice->sizes.size(); ++l)
      repeats = repeats || (slice->x[l] == 0 && slice->sizes[l] > 1);
    if (!repeats) {
      move_strided(slice->sizes, gradient[k]->data.data(), slice->y, result[0]->data.data() + slice->start, slice->x,
                   true);
      continue;
    }
    compact.assign(slice->sizes.size(), 0);
    sizes = slice->sizes;
    for (std::size_t l = sizes.size(); l-- > 0;) {
      if (slice->x[l] == 0) continue;
      compact[l] = static_cast<std::int64_t>(elements);
      elements *= static_cast<std::size_t>(sizes[l]);
    }
    Array sums = Array::scratch(elements);
    const Strides zero = none(sizes.size());
    sum_over(sizes, {compact, slice->y, zero, zero, zero}, SumOf::a, {gradient[k]->data.data(), {}, {}, {}, {}},
             sums.data(), elements);
    for (std::size_t l = 0; l < sizes.size(); ++l)
      if (slice->x[l] == 0) sizes[l] = 1;
    move_strided(sizes, sums.data(), compact, result[0]->data.data() + slice->start, slice->x, true);
  }
  return {};
}

Expected<void> covers(const LocalOperator& at, const Block& x, const Block& y) {
  if (x.data.size() >= y.data.size() && walks_all(at, at.op().inputs[0])) return {};
  return at.error("a reduction has a dimension that no loop walks");
}

Expected<void> reduce_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (auto fine = covers(at, *in[0], *out[0]); !fine) return fine;
  const Reduction how = reduction_of(at);
  const Strides x = at.strides(at.op().inputs[0], *in[0]), y = at.strides(at.op().outputs[0], *out[0]),
                zero = none(at.loops.size());
  if (how == Reduction::maximum) {
    largest_over(at.sizes(), x, y, in[0]->data.data(), {}, out[0]->data.data(), out[0]->data.size());
    return {};
  }
  sum_over(at.sizes(), {y, x, zero, zero, zero}, how == Reduction::squares ? SumOf::squares : SumOf::a,
           {in[0]->data.data(), {}, {}, {}, {}}, out[0]->data.data(), out[0]->data.size(),
           how == Reduction::sum ? 1 : mean_factor(at));
  return {};
}

Expected<void> reduce_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  const Reduction how = reduction_of(at);
  if (at.op().inputs[0].saved && !in[0]) return at.error("backward needs its input, which is not there");
  const Strides x = at.strides(at.op().inputs[0], *result[0]), y = at.strides(at.op().outputs[0], *gradient[0]),
                zero = none(at.loops.size());
  if (how == Reduction::maximum) {
    largest_over(at.sizes(), x, y, in[0]->data.data(), gradient[0]->data.data(), result[0]->data.data(),
                 result[0]->data.size());
    return {};
  }
  Sums spread{};
  spread.of.outer = walk_of<5>(at.sizes(), {x, y, zero, zero, zero});
  spread.of.factor = static_cast<float>(how == Reduction::sum ? 1 : mean_factor(at));
  spread.of.to = address(result[0]->data.data());
  spread.b = address(gradient[0]->data.data());
  spread.what = how == Reduction::squares ? 1 : 0;
  if (spread.what == 1) spread.a = address(in[0]->data.data());
  launch_each("spread", spread.of.outer.count, spread);
  return {};
}

}  // namespace

const Kernel GpuKernels::view{view_forward, view_backward};
const Kernel GpuKernels::concat{concat_forward, concat_backward};
const Kernel GpuKernels::slice{slice_forward, slice_backward};
const Kernel GpuKernels::reduction{reduce_forward, reduce_backward};

}  // namespace turnpoint::step::in_cuda
