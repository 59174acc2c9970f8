// SPDX-License-Identifier: Apache-2.0
// Recurrent cells made of convolutions.
#include "core/model/builder.h"
#include "core/model/builder_detail.h"

namespace turnpoint {
using namespace builder_detail;

TensorId ModelBuilder::convolutional_recurrent(std::string name, std::string detail, TensorId x,
                                               std::span<const TensorId> weights, std::int64_t hidden,
                                               std::int64_t kept, double recall_macs) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  const std::size_t rank = in.shape.size();
  if (rank < 4 || rank > 6 || hidden < 1 || kept < 1)
    return broken(name, "a convolutional cell needs batch, time, channels and one to three spatial dimensions");
  auto op = start(std::move(name), OperatorKind::recurrent, std::move(detail));
  const auto walk = [&](DimName dim, DimRole role, std::int64_t size, bool splittable) {
    return size > 1 ? std::vector<std::uint8_t>{add(op.dims, {dim, role, size, splittable})}
                    : std::vector<std::uint8_t>{};
  };
  const auto n = walk(DimName::batch, DimRole::parallel, in.shape[0], true);
  const auto t = walk(DimName::time, DimRole::parallel, in.shape[1], false);
  const auto h = walk(DimName::out_channel, DimRole::parallel, hidden, true);
  Walks x_walks{n, t, {}}, y_walks{n, t, h};
  Shape shape{in.shape[0], in.shape[1], hidden};
  Dims names{DimName::batch, DimName::sequence, DimName::channel};
  double positions = static_cast<double>(in.shape[0]) * static_cast<double>(in.shape[1]);
  for (std::size_t d = 3; d < rank; ++d) {
    const auto spatial = walk(in.dims[d], DimRole::window, in.shape[d], false);
    x_walks.push_back(spatial);
    y_walks.push_back(spatial);
    shape.push_back(in.shape[d]);
    names.push_back(in.dims[d]);
    positions *= static_cast<double>(in.shape[d]);
  }
  op.inputs.push_back({x, std::move(x_walks), true});
  BackwardWork work{0, {}, {}};
  double macs = recall_macs, input_macs = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!usable(op.name, {weights[i]})) return broken(op.name, "an operand is missing");
    const Tensor w = tensor(weights[i]);
    if (w.shape.size() != rank - 1 || w.shape[0] % hidden != 0)
      return broken(op.name, "a weight of a convolutional cell does not fit its hidden channels");
    auto units = h;
    const auto gates = walk(DimName::gate, DimRole::parallel, w.shape[0] / hidden, false);
    units.insert(units.end(), gates.begin(), gates.end());
    Walks w_walks(w.shape.size());
    w_walks[0] = std::move(units);
    op.inputs.push_back({weights[i], std::move(w_walks), true});
    const double own = positions * static_cast<double>(w.elements());
    macs += own;
    if (i == 0) input_macs = own;
  }
  const double pointwise = 4 * positions * static_cast<double>(hidden) * static_cast<double>(kept);
  op.forward_macs = macs;
  op.forward_flop = 2 * macs + pointwise;
  // The gradient through the states is needed whatever is trained: everything twice but the input's own gradient.
  work.base_flop = 2 * (2 * macs - input_macs) + pointwise;
  work.input_flop = {2 * input_macs};
  work.input_macs = {input_macs};
  for (std::size_t i = 0; i < weights.size(); ++i) work.input_macs.push_back(i == 0 ? 2 * macs - input_macs : 0);
  op.outputs = {{{}, y_walks, true}};
  const auto y = add_operator(std::move(op), shape, names, in.type, work);
  if (error_) return y;
  shape[2] *= kept;
  auto kept_walks = y_walks;
  const auto producer = tensor(y).producer;
  if (kept > 1)
    kept_walks[2].push_back(add(model_.operators[producer].dims, {DimName::other, DimRole::parallel, kept, false}));
  add_output(producer, tensor(y).name + "/gates", std::move(shape), std::move(names), in.type, TensorRole::internal,
             std::move(kept_walks), true);
  return y;
}

}  // namespace turnpoint
