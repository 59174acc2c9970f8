// SPDX-License-Identifier: Apache-2.0
#include "core/model/fold_views.h"

#include "core/model/builder_detail.h"
#include "core/model/remove_from.h"

namespace turnpoint {
using namespace builder_detail;

namespace {

Shape sizes_of(const std::vector<LoopDimension>& dims, const std::vector<std::uint8_t>& walk) {
  Shape sizes;
  for (const auto loop : walk) sizes.push_back(dims[loop].size);
  return sizes;
}

/// `second` after `first`, where they meet at the tensor that `first` writes; false where the two cannot be aligned.
bool compose(const Operator& first, Operator& second) {
  const auto &middle_out = first.outputs.front().walks, &middle_in = second.inputs.front().walks;
  std::vector<LoopDimension> dims;
  std::vector<std::vector<std::uint8_t>> of_first(first.dims.size()), of_second(second.dims.size());
  for (std::size_t d = 0; d < middle_out.size(); ++d) {
    const auto a = sizes_of(first.dims, middle_out[d]), b = sizes_of(second.dims, middle_in[d]);
    if (product(a) != product(b)) return false;
    const auto factors = common_factors(a, b);
    double covered = 1;
    for (const auto size : factors.sizes) covered *= static_cast<double>(size);
    if (covered != product(a) || dims.size() + factors.sizes.size() > kMaxDims) return false;
    const auto base = static_cast<std::uint8_t>(dims.size());
    for (const auto size : factors.sizes) dims.push_back({DimName::other, DimRole::parallel, size, true});
    for (std::size_t k = 0; k < a.size(); ++k) {
      for (const auto f : factors.from[k]) of_first[middle_out[d][k]].push_back(static_cast<std::uint8_t>(base + f));
    }
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (const auto f : factors.to[k]) of_second[middle_in[d][k]].push_back(static_cast<std::uint8_t>(base + f));
    }
  }
  const auto name_from = [&](const Operator& op, const Walks& pieces) {
    for (std::size_t loop = 0; loop < pieces.size(); ++loop) {
      if (pieces[loop].size() == 1 && dims[pieces[loop].front()].name == DimName::other)
        dims[pieces[loop].front()].name = op.dims[loop].name;
    }
  };
  name_from(second, of_second);
  name_from(first, of_first);
  const auto translate = [&](const Walks& walks, const Walks& pieces) {
    Walks result(walks.size());
    for (std::size_t d = 0; d < walks.size(); ++d) {
      for (const auto loop : walks[d]) result[d].insert(result[d].end(), pieces[loop].begin(), pieces[loop].end());
      for (std::size_t k = 1; k < result[d].size(); ++k) dims[result[d][k]].splittable = false;
    }
    return result;
  };
  const auto in = translate(first.inputs.front().walks, of_first),
             out = translate(second.outputs.front().walks, of_second);
  for (auto& dim : dims) {
    const auto plain = parallel_dim(dim.name, dim.size);
    dim.role = plain.role;
    dim.splittable = dim.splittable && plain.splittable;
  }
  second.dims = std::move(dims);
  second.inputs = {{first.inputs.front().tensor, in, false}};
  second.outputs.front().walks = out;
  return true;
}

}  // namespace

void fold_views(Model& model, std::vector<TensorId>& results) {
  std::vector<int> readers(model.tensors.size(), 0);
  for (const auto& op : model.operators) {
    for (const auto& access : op.inputs) ++readers[access.tensor.index];
  }
  for (const auto id : results) readers[id.index] += 2;  // kept whatever else happens
  std::vector<bool> gone(model.operators.size(), false), gone_tensor(model.tensors.size(), false);
  for (auto& op : model.operators) {
    if (!op.is_view() || op.inputs.size() != 1 || op.outputs.size() != 1) continue;
    const auto between = op.inputs.front().tensor;
    const auto producer = model.tensors[between].producer;
    if (!producer.valid() || readers[between.index] != 1) continue;
    const auto& first = model.operators[producer];
    if (!first.is_view() || first.inputs.size() != 1 || first.outputs.size() != 1 || !compose(first, op)) continue;
    if (first.detail != op.detail) op.detail = "View";
    gone[producer.index] = gone_tensor[between.index] = true;
  }
  remove_from(model, gone, gone_tensor, results);
}

}  // namespace turnpoint
