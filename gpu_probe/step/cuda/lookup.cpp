// SPDX-License-Identifier: Apache-2.0
// Look-ups by integer data, the way of tokens to experts and back, unknown functions.
#include <optional>

#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step::in_cuda {

namespace {

Lookup lookup_of(const LocalOperator& at, const Region& table, const Block& indices) {
  Lookup l{};
  l.count = static_cast<i64>(indices.data.size());
  l.channels = table.extent[1];
  l.first = table.offset[0];
  l.rows = table.extent[0];
  l.all = at.input(0).shape[0];
  l.indices = address(indices.data.data());
  return l;
}
Expected<void> embedding_forward(const LocalOperator& at, Inputs in, Outputs out) {
  Lookup l = lookup_of(at, in[0]->region, *in[1]);
  l.from = address(in[0]->data.data());
  l.to = address(out[0]->data.data());
  launch_each("embedding_forward", l.count * l.channels, l);
  return {};
}
Expected<void> embedding_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  if (!in[1]) return at.error("backward needs its indices, which are not there");
  Lookup l = lookup_of(at, result[0]->region, *in[1]);
  l.from = address(gradient[0]->data.data());
  const RoomForSums sums(result[0]->data);
  l.sums = address(sums.data());
  launch_each("embedding_backward", l.count * l.channels, l);
  return {};
}

Expected<void> dispatch(const LocalOperator& at, const Block* x, const Block& routing, const Shape& y, const Block* dy,
                        Place to, Place sums, Place routing_sums) {
  Experts e{};
  e.samples = y[0], e.experts = y[1], e.slots_each = y[2], e.channels = y[3];
  e.tokens = at.input(0).shape[1];
  if (routing.region.extent[1] != e.tokens) return at.error("a dispatch of part of the tokens");
  Array chosen = Array::whole_scratch(static_cast<std::size_t>(e.samples * e.experts * e.slots_each));
  static_assert(sizeof(int) == sizeof(float));
  e.chosen = reinterpret_cast<int*>(chosen.data().address);
  e.routing = address(routing.data.data());
  if (x) e.x = address(x->data.data());
  if (dy) e.dy = address(dy->data.data());
  e.to = address(to);
  e.sums = address(sums);
  e.routing_sums = address(routing_sums);
  launch_each("choose_tokens", e.samples * e.experts * e.tokens, e);
  launch_each("dispatch", e.samples * e.experts * e.slots_each * e.channels, e);
  return {};
}
Expected<void> dispatch_forward(const LocalOperator& at, Inputs in, Outputs out) {
  return dispatch(at, in[0], *in[1], out[0]->region.extent, nullptr, out[0]->data.data(), {}, {});
}
Expected<void> dispatch_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!in[1]) return at.error("backward needs its routing, which is not there");
  std::optional<RoomForSums> sums, routing_sums;
  if (result[0]) sums.emplace(result[0]->data);
  if (result[1]) routing_sums.emplace(result[1]->data);
  return dispatch(at, nullptr, *in[1], gradient[0]->region.extent, gradient[0], {}, sums ? sums->data() : Place{},
                  routing_sums ? routing_sums->data() : Place{});
}

Experts combine_of(const LocalOperator& at, const Region& y, const Region& out) {
  Experts e{};
  e.samples = y.extent[0], e.experts = y.extent[1], e.slots_each = y.extent[2], e.channels = y.extent[3];
  e.first_expert = y.offset[1];
  e.first_token = out.offset[1];
  e.tokens = out.extent[1];
  e.all_tokens = at.output(0).shape[1];
  return e;
}
Expected<void> combine_forward(const LocalOperator& at, Inputs in, Outputs out) {
  Experts e = combine_of(at, in[0]->region, out[0]->region);
  e.x = address(in[0]->data.data());
  const RoomForSums sums(out[0]->data);
  e.sums = address(sums.data());
  launch_each("combine", in[0]->region.elements(), e);
  return {};
}
Expected<void> combine_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  if (!in[0]) return at.error("backward needs its input, which is not there");
  Experts e = combine_of(at, in[0]->region, gradient[0]->region);
  e.x = address(in[0]->data.data());
  e.dy = address(gradient[0]->data.data());
  e.to = address(result[0]->data.data());
  result[0]->data.clear();
  launch_each("combine", in[0]->region.elements(), e);
  return {};
}

/// The dimensions of a block that no loop walks.
Walk<1> unwalked(const Access& access, const Region& region) {
  Strides sizes, strides;
  std::int64_t stride = 1;
  for (std::size_t d = access.walks.size(); d-- > 0;) {
    if (access.walks[d].empty()) {
      sizes.push_back(region.extent[d]);
      strides.push_back(stride);
    }
    stride *= region.extent[d];
  }
  return walk_of<1>(sizes, {strides});
}

Unknown unknown_of(const LocalOperator& at, std::size_t k, const Block& x, const Block& y) {
  const Operator& op = at.op();
  Unknown u{};
  u.walk = walk_of<2>(at.sizes(), {at.strides(op.inputs[k], x), at.strides(op.outputs[0], y)});
  u.reads = unwalked(op.inputs[k], x.region);
  u.writes = unwalked(op.outputs[0], y.region);
  u.operand = static_cast<i64>(k);
  u.share = static_cast<float>(1 / static_cast<double>(u.reads.count));
  u.x = address(x.data.data());
  return u;
}
Expected<void> unknown_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (!is_floating(at.output(0).type)) return at.error("an unknown function to integers is not carried out on a GPU");
  const RoomForSums sums(out[0]->data);
  for (std::size_t k = 0; k < in.size(); ++k) {
    Unknown u = unknown_of(at, k, *in[k], *out[0]);
    u.sums = address(sums.data());
    launch_each("unknown_forward", u.walk.count, u);
  }
  return {};
}
Expected<void> unknown_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!result[k]) continue;
    if (!in[k]) return at.error("backward needs an operand that is not there");
    Unknown u = unknown_of(at, k, *in[k], *gradient[0]);
    u.dy = address(gradient[0]->data.data());
    const RoomForSums sums(result[k]->data);
    u.sums = address(sums.data());
    launch_each("unknown_backward", u.walk.count, u);
  }
  return {};
}

}  // namespace

const Kernel GpuKernels::embedding{embedding_forward, embedding_backward};
const Kernel GpuKernels::dispatch{dispatch_forward, dispatch_backward};
const Kernel GpuKernels::combine{combine_forward, combine_backward};
const Kernel GpuKernels::opaque{unknown_forward, unknown_backward};
const Kernel GpuKernels::attention{attention_forward, attention_backward};

}  // namespace turnpoint::step::in_cuda
