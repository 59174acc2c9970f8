// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/kernels/product.h"

#include <algorithm>

namespace turnpoint::step {

namespace {

bool walks(const Access& access, int loop) {
  return std::any_of(access.walks.begin(), access.walks.end(),
                     [&](const auto& dim) { return std::find(dim.begin(), dim.end(), loop) != dim.end(); });
}

bool walks_none(const Access& access) {
  return std::all_of(access.walks.begin(), access.walks.end(), [](const auto& dim) { return dim.empty(); });
}

/// The extent of the last dimension, if that is the only one that no loop walks; else 0.
std::int64_t open_extent(const LocalOperator& at, const Access& access) {
  const Shape& shape = at.model->tensors[access.tensor].shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t walked = 1;
    for (const auto loop : access.walks[d]) walked *= at.op().dims[loop].size;
    if (d + 1 == shape.size()) return access.walks[d].empty() ? shape[d] : 0;
    if (walked != shape[d]) return 0;
  }
  return 0;
}

/// The summed loop that two operands share; -1: none.
int shared_loop(const LocalOperator& at, std::int64_t size) {
  const Operator& op = at.op();
  for (std::size_t l = 0; l < op.dims.size(); ++l) {
    const int loop = static_cast<int>(l);
    if (op.dims[l].size == size && at.loops[l].size == size && walks(op.inputs[0], loop) &&
        !walks(op.inputs[1], loop) && !walks(op.inputs[2], loop) && !walks(op.outputs[0], loop))
      return loop;
  }
  return -1;
}

}  // namespace

std::vector<std::int64_t> ProductPart::sizes(const LocalOperator& at) const {
  auto result = at.sizes();
  if (loop >= 0) result[index_of(loop)] = size;
  return result;
}

std::vector<std::int64_t> ProductPart::strides(const LocalOperator& at, const Block& block) const {
  auto result = at.strides(at.op().inputs[other], block);
  if (loop >= 0) result[index_of(loop)] = 1;
  return result;
}

Expected<Product> product_of(const LocalOperator& at) {
  const Operator& op = at.op();
  if (op.inputs.size() < 2 || op.inputs.size() > 3) return at.error("a product of more than two tensors");
  if (!walks_all(at, op.outputs[0])) return at.error("a product's result has a dimension that no loop walks");
  const auto open = [&] { return at.error("a product's operand has a dimension that no loop walks"); };
  if (!walks_all(at, op.inputs[0])) return open();
  const bool three = op.inputs.size() == 3;
  Product product;
  if (walks_all(at, op.inputs[1])) {
    product.parts = {ProductPart()};
    product.bias = three && walks_all(at, op.inputs[2]);
    product.table = three && !product.bias && walks_none(op.inputs[2]) && !op.outputs[0].walks.back().empty();
    if (three && !product.bias && !product.table) return open();
    return product;
  }
  if (!three) return open();
  const std::int64_t first = open_extent(at, op.inputs[1]), second = open_extent(at, op.inputs[2]);
  const int loop = first > 0 && second > 0 ? shared_loop(at, first + second) : -1;
  if (loop < 0) return open();
  product.parts = {{1, loop, 0, first}, {2, loop, first, second}};
  return product;
}

std::vector<TableRun> table_runs(const LocalOperator& at, const std::vector<std::int64_t>& result_strides,
                                 std::size_t elements) {
  const std::size_t loop = at.op().outputs[0].walks.back().back();
  const LoopRange& range = at.loops[loop];
  const auto all = static_cast<std::int64_t>(elements);
  std::vector<TableRun> runs;
  for (std::int64_t done = 0; done < range.size;) {
    TableRun run;
    run.from = (range.offset + done) % all;
    run.count = std::min(all - run.from, range.size - done);
    run.to = done * result_strides[loop];
    run.sizes = loops_of_result(at, result_strides);
    run.sizes[loop] = run.count;
    run.strides.assign(run.sizes.size(), 0);
    run.strides[loop] = 1;
    done += run.count;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<std::int64_t> loops_of_result(const LocalOperator& at, const std::vector<std::int64_t>& strides) {
  auto sizes = at.sizes();
  for (std::size_t l = 0; l < sizes.size(); ++l)
    if (strides[l] == 0) sizes[l] = 1;
  return sizes;
}

}  // namespace turnpoint::step
