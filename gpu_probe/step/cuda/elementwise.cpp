// SPDX-License-Identifier: Apache-2.0
// Elementwise functions with broadcasts and masks.
#include <algorithm>
#include <cmath>

#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/meaning.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step::in_cuda {

namespace {

constexpr std::size_t kMostOperands = 6;

Expected<Elementwise> describe(const LocalOperator& at, const Region& y) {
  const Operator& op = at.op();
  if (op.inputs.size() > kMostOperands) return at.error("an elementwise function of more than six operands");
  if (!walks_all(at, op.outputs[0])) return at.error("an elementwise result has a dimension that no loop walks");
  if (y.extent.size() > 6) return at.error("an elementwise result of more than six dimensions");
  const Call call(at);
  Elementwise e{};
  e.kind = static_cast<i64>(call.function.kind);
  e.operands = static_cast<i64>(op.inputs.size());
  for (std::size_t k = 0; k < op.inputs.size(); ++k) e.saved |= static_cast<i64>(call.inputs[k]) << k;
  e.floating = is_floating(at.output(0).type) ? 1 : 0;
  e.masked = op.outputs.size() > 1 ? 1 : 0;
  e.stream = mixed(mixed(at.seed) ^ (at.id.index + kMaskStream));
  e.threshold = static_cast<u64>(std::ceil(kDropped * 0x1p53));
  e.kept = static_cast<float>(1 / (1 - kDropped));
  e.place.rank = static_cast<i64>(y.extent.size());
  for (std::size_t d = 0; d < y.extent.size(); ++d) {
    e.place.extent[d] = y.extent[d];
    e.place.offset[d] = y.offset[d];
    e.place.whole[d] = at.output(0).shape[d];
  }
  return e;
}

/// Whether a step of the walk is now several elements; `at_result` lie as the result does, `operands` and `gradients`
/// as operands.
i64 packed(Walk<7>& walk, std::span<const Block* const> at_result, Inputs operands, Inputs gradients) {
  std::vector<Walked> arrays;
  const auto add = [&](int array, const Block* block) {
    if (block) arrays.push_back({array, block->data.data()});
  };
  for (const Block* block : at_result) add(0, block);
  for (const Inputs list : {operands, gradients})
    for (std::size_t k = 0; k < list.size(); ++k) add(static_cast<int>(k) + 1, list[k]);
  return in_packs<7>(walk, arrays) ? 1 : 0;
}

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  auto e = describe(at, out[0]->region);
  if (!e) return e.error();
  std::array<Strides, 7> strides;
  strides.fill(none(at.loops.size()));
  strides[0] = at.strides(at.op().outputs[0], *out[0]);
  // A mask alone is made without its operands.
  const bool mask_only = e->masked && std::find(in.begin(), in.end(), nullptr) != in.end();
  for (std::size_t k = 0; k < in.size() && !mask_only; ++k) {
    strides[k + 1] = at.strides(at.op().inputs[k], *in[k]);
    e->x[k] = address(in[k]->data.data());
  }
  e->walk = walk_of<7>(at.sizes(), strides);
  e->to[0] = address(out[0]->data.data());
  if (e->masked && out[1]) e->to[1] = address(out[1]->data.data());
  e->packs = mask_only ? 0 : packed(e->walk, out, in, {});
  launch_each("elementwise_forward", e->walk.count, *e);
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) {
  const Operator& op = at.op();
  auto e = describe(at, gradient[0]->region);
  if (!e) return e.error();
  if (op.outputs[0].saved && !out[0]) return at.error("backward needs its output, which is not there");
  if (e->masked && !out[1]) return at.error("backward needs its mask, which is not there");
  std::array<Strides, 7> strides;
  strides.fill(none(at.loops.size()));
  strides[0] = at.strides(op.outputs[0], *gradient[0]);
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (op.inputs[k].saved && !in[k]) return at.error("backward needs an operand that is not there");
    if (in[k] || result[k]) strides[k + 1] = at.strides(op.inputs[k], in[k] ? *in[k] : *result[k]);
    if (in[k]) e->x[k] = address(in[k]->data.data());
  }
  if (out[0]) e->y = address(out[0]->data.data());
  if (e->masked) e->mask = address(out[1]->data.data());
  e->dy = address(gradient[0]->data.data());
  const Strides sizes = at.sizes();
  e->walk = walk_of<7>(sizes, strides);
  std::vector<const Block*> written(in.size(), nullptr);
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!result[k]) continue;
    bool direct = true;  // else an element of the operand is many of the result
    for (std::size_t l = 0; l < sizes.size(); ++l) direct = direct && (sizes[l] == 1 || strides[k + 1][l] != 0);
    if (direct) {
      if (!walks_all(at, op.inputs[k])) result[k]->data.clear();
      e->to[k] = address(result[k]->data.data());
      written[k] = result[k];
      continue;
    }
    Elementwise one = *e;
    one.wanted = static_cast<i64>(k);
    std::array<Strides, 8> all{strides[k + 1]};
    std::copy(strides.begin(), strides.end(), all.begin() + 1);
    sum_elementwise(sizes, all, one, result[k]->data.data(), result[k]->data.size());
  }
  if (std::all_of(written.begin(), written.end(), [](const Block* block) { return !block; })) return {};
  const std::array<const Block*, 3> at_result{gradient[0], out[0], e->masked ? out[1] : nullptr};
  e->packs = packed(e->walk, at_result, in, written);
  launch_each("elementwise_backward", e->walk.count, *e);
  return {};
}

}  // namespace

const Kernel GpuKernels::elementwise{forward, backward};

}  // namespace turnpoint::step::in_cuda
