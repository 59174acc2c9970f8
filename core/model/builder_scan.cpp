// SPDX-License-Identifier: Apache-2.0
// Scans: a state that is carried over the sequence and read at every position.
#include "core/model/builder.h"
#include "core/model/builder_detail.h"

namespace turnpoint {
using namespace builder_detail;

TensorId ModelBuilder::scan(std::string name, std::string detail, std::vector<LoopDimension> dims,
                            std::span<const ScanOperand> operands, Walks out_walks, Dims out_dims,
                            const ScanWork& scan_work) {
  if (operands.empty()) return broken(name, "a scan without operands");
  auto op = start(std::move(name), OperatorKind::scan, std::move(detail));
  const auto shape_of = [&](const Walks& walks) {
    Shape shape;
    for (const auto& walk : walks) {
      std::int64_t size = 1;
      for (const auto loop : walk) size *= dims[loop].size;
      shape.push_back(size);
    }
    return shape;
  };
  for (const Walks* walks : {static_cast<const Walks*>(&out_walks), &scan_work.state_walks})
    for (const auto& walk : *walks)
      for (const auto loop : walk)
        if (loop >= dims.size()) return broken(op.name, "a scan walks a loop dimension that does not exist");
  for (const auto& [id, walks] : operands) {
    if (!usable(op.name, {id})) return broken(op.name, "an operand is missing");
    for (const auto& walk : walks)
      for (const auto loop : walk)
        if (loop >= dims.size()) return broken(op.name, "a scan walks a loop dimension that does not exist");
    const Shape walked = shape_of(walks);
    if (walked.size() != tensor(id).shape.size()) return broken(op.name, "the sizes of a scan's operands do not agree");
    for (std::size_t d = 0; d < walked.size(); ++d)
      if (!walks[d].empty() && walked[d] != tensor(id).shape[d])
        return broken(op.name, "the sizes of a scan's operands do not agree");
    op.inputs.push_back({id, walks, true});
  }
  const Shape shape = shape_of(out_walks), kept = shape_of(scan_work.state_walks);
  op.dims = std::move(dims);
  op.outputs = {{{}, std::move(out_walks), false}};
  op.forward_macs = scan_work.macs;
  op.forward_flop = 2 * scan_work.macs + scan_work.pointwise_flop;
  // Every gradient passes through the state: all of them together cost the scan twice.
  BackwardWork work{4 * scan_work.macs + 2 * scan_work.pointwise_flop, {}, {}};
  const ElementType type = tensor(operands.front().tensor).type;
  const auto y = add_operator(std::move(op), shape, std::move(out_dims), type, work);
  if (error_) return y;
  const auto producer = tensor(y).producer;
  if (model_.operators[producer].backward_flop > 0) model_.operators[producer].backward_macs = 2 * scan_work.macs;
  if (!kept.empty())
    add_output(producer, tensor(y).name + "/states", kept, Dims(kept.size(), DimName::other), type,
               TensorRole::internal, scan_work.state_walks, true);
  return y;
}

}  // namespace turnpoint
