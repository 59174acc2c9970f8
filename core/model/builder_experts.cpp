// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: tokens to their experts and back. The products between are ordinary contractions with an expert
// dimension.
#include "core/model/builder.h"
#include "core/model/builder_detail.h"

namespace turnpoint {
using namespace builder_detail;

namespace {

std::vector<std::uint8_t> walk_of(std::vector<LoopDimension>& dims, LoopDimension dim) {
  return dim.size > 1 ? std::vector<std::uint8_t>{add(dims, dim)} : std::vector<std::uint8_t>{};
}

}  // namespace

TensorId ModelBuilder::dispatch(std::string name, TensorId x, TensorId routing, std::int64_t slots) {
  if (!usable(name, {x, routing})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x), to = tensor(routing);
  if (in.shape.size() != 3 || to.shape.size() != 3 || in.shape[0] != to.shape[0] || in.shape[1] != to.shape[1])
    return broken(name, "the routing of a dispatch does not have the batch and sequence of its tokens");
  Shape shape{in.shape[0], to.shape[2], slots, in.shape[2]};
  if (!check_shape(name, shape)) return broken(name, "a dispatch is too large");
  auto op = start(std::move(name), OperatorKind::gather, "Dispatch");
  const auto n = walk_of(op.dims, {DimName::batch, DimRole::parallel, shape[0], true});
  const auto e = walk_of(op.dims, {DimName::expert, DimRole::parallel, shape[1], true});
  // Which tokens fill a slot is known only where all tokens of the sample are.
  const auto s = walk_of(op.dims, {DimName::sequence, DimRole::parallel, slots, false});
  const auto c = walk_of(op.dims, {DimName::channel, DimRole::parallel, shape[3], true});
  op.inputs = {{x, {n, {}, c}, false}, {routing, {n, {}, e}, true}};
  op.outputs = {{{}, {n, e, s, c}, false}};
  const double elements = product(shape);
  op.forward_flop = elements;
  return add_operator(std::move(op), std::move(shape),
                      {DimName::batch, DimName::expert, DimName::sequence, DimName::channel}, in.type,
                      {elements, {}, {}});
}

TensorId ModelBuilder::combine(std::string name, TensorId y, std::int64_t sequence) {
  if (!usable(name, {y})) return broken(name, "an operand is missing");
  const Tensor in = tensor(y);
  if (in.shape.size() != 4) return broken(name, "a combination of experts needs an operand of four dimensions");
  auto op = start(std::move(name), OperatorKind::gather, "Combine");
  Shape shape{in.shape[0], sequence, in.shape[3]};
  const auto n = walk_of(op.dims, {DimName::batch, DimRole::parallel, shape[0], true});
  const auto s = walk_of(op.dims, {DimName::sequence, DimRole::parallel, shape[1], true});
  const auto c = walk_of(op.dims, {DimName::channel, DimRole::parallel, shape[2], true});
  const auto e = walk_of(op.dims, {DimName::expert, DimRole::reduction, in.shape[1], true});
  op.inputs = {{y, {n, e, {}, c}, true}};
  op.outputs = {{{}, {n, s, c}, false}};
  const double work = 2 * product(in.shape);
  op.forward_flop = work;
  return add_operator(std::move(op), std::move(shape), {DimName::batch, DimName::sequence, DimName::channel}, in.type,
                      {0, {2 * work}, {}});
}

void ModelBuilder::add_idle_parameters(std::int64_t elements) {
  // Models with more parameters than this are refused when they are finished.
  idle_parameters_ = std::min(idle_parameters_ + std::min(elements, kMaxElements), kMaxElements);
}

}  // namespace turnpoint
