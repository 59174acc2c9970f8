// SPDX-License-Identifier: Apache-2.0
// Operators that only re-arrange: views (free), concatenation, splitting and slicing.
#include <numeric>

#include "core/model/builder.h"
#include "core/model/builder_detail.h"

namespace turnpoint {
using namespace builder_detail;

namespace {

/// Name of a dimension made by merging what `names` lists, outermost first.
DimName merged_name(const Dims& names) {
  bool spatial = true;
  for (const auto name : names) spatial = spatial && is_spatial(name);
  return spatial ? DimName::sequence : names.front();
}

}  // namespace

/// At every place of the row-major order where both shapes can be cut alike, one factor ends. Where the remaining sizes
/// have no common factor (3 x 4 against 2 x 6), nothing is walked until the products meet again: no cut is legal there.
CommonFactors builder_detail::common_factors(const Shape& from, const Shape& to) {
  CommonFactors result{{}, Walks(from.size()), Walks(to.size())};
  std::size_t i = 0, j = 0;
  std::int64_t a = 1, b = 1;
  for (;;) {
    while (a == 1 && i < from.size()) a = from[i++];
    while (b == 1 && j < to.size()) b = to[j++];
    if (a == 1 || b == 1) break;
    const auto common = std::gcd(a, b);
    if (common > 1) {
      const auto index = static_cast<std::uint8_t>(std::min<std::size_t>(result.sizes.size(), 255));
      result.sizes.push_back(common);
      result.from[i - 1].push_back(index);
      result.to[j - 1].push_back(index);
      a /= common;
      b /= common;
      continue;
    }
    while (a != b) {
      auto& smaller = a < b ? a : b;
      auto& at = a < b ? i : j;
      const auto& shape = a < b ? from : to;
      if (at == shape.size()) return result;
      smaller *= shape[at++];
    }
    a = b = 1;
  }
  return result;
}

TensorId ModelBuilder::reshape(std::string name, TensorId x, Shape shape, Dims dims, std::string detail) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  if (!check_shape(name, shape)) return broken(name, "a reshape to an impossible shape");
  if (product(shape) != product(in.shape)) return broken(name, "a reshape changes the number of elements");
  const auto factors = common_factors(in.shape, shape);
  std::vector<const std::vector<std::uint8_t>*> source(factors.sizes.size());
  Dims factor_names(factors.sizes.size(), DimName::other);
  std::vector<bool> whole(factors.sizes.size(), false);
  for (std::size_t d = 0; d < in.shape.size(); ++d) {
    const auto& walk = factors.from[d];
    for (std::size_t k = 0; k < walk.size(); ++k) {
      whole[walk[k]] = walk.size() == 1 && factors.sizes[walk[k]] == in.shape[d];
      // Parts of a channel dimension are heads; of any other dimension only the outermost keeps the meaning.
      const bool head = in.dims[d] == DimName::channel && walk.size() > 1;
      factor_names[walk[k]] = head                           ? (k == 0 ? DimName::head : DimName::head_channel)
                              : k == 0                       ? in.dims[d]
                              : in.dims[d] == DimName::batch ? DimName::head
                                                             : DimName::other;
    }
  }
  if (dims.size() != shape.size()) {
    dims.assign(shape.size(), DimName::other);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto& walk = factors.to[d];
      if (walk.empty()) continue;
      Dims names;
      for (const auto loop : walk) names.push_back(factor_names[loop]);
      const bool rejoined = walk.size() > 1 && (names.front() == DimName::head);
      dims[d] = walk.size() == 1 ? names.front() : rejoined ? DimName::channel : merged_name(names);
    }
  }
  auto op = start(std::move(name), OperatorKind::view, std::move(detail));
  for (std::size_t f = 0; f < factors.sizes.size(); ++f)
    op.dims.push_back(parallel_dim(factor_names[f], factors.sizes[f]));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (factors.to[d].size() == 1 && !whole[factors.to[d].front()]) op.dims[factors.to[d].front()].name = dims[d];
  }
  op.inputs = {{x, factors.from, false}};
  op.outputs = {{{}, factors.to, false}};
  return add_operator(std::move(op), std::move(shape), std::move(dims), in.type);
}

TensorId ModelBuilder::transpose(std::string name, TensorId x, std::vector<int> permutation, std::string detail) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  std::vector<bool> seen(in.shape.size(), false);
  bool valid = permutation.size() == in.shape.size();
  for (std::size_t d = 0; valid && d < permutation.size(); ++d) {
    const auto p = static_cast<std::size_t>(permutation[d]);
    valid = permutation[d] >= 0 && p < seen.size() && !seen[p];
    if (valid) seen[p] = true;
  }
  if (!valid) return broken(name, "a transpose whose permutation does not fit its input");
  auto op = start(std::move(name), OperatorKind::view, std::move(detail));
  auto walks = identity_walks(op.dims, in.shape, in.dims);
  Shape shape;
  Dims dims;
  Walks out_walks;
  for (const auto p : permutation) {
    shape.push_back(in.shape[static_cast<std::size_t>(p)]);
    dims.push_back(in.dims[static_cast<std::size_t>(p)]);
    out_walks.push_back(walks[static_cast<std::size_t>(p)]);
  }
  op.inputs = {{x, std::move(walks), false}};
  op.outputs = {{{}, std::move(out_walks), false}};
  return add_operator(std::move(op), std::move(shape), std::move(dims), in.type);
}

TensorId ModelBuilder::concat(std::string name, std::span<const TensorId> operands, int axis) {
  if (operands.empty()) return broken(name, "a concatenation without operands");
  for (const auto id : operands) {
    if (!usable(name, {id})) return broken(name, "an operand is missing");
  }
  Shape shape = tensor(operands.front()).shape;
  if (axis < 0) axis += static_cast<int>(shape.size());
  if (axis < 0 || axis >= static_cast<int>(shape.size()))
    return broken(name, "the axis of a concatenation is out of range");
  const auto along = static_cast<std::size_t>(axis);
  Dims names = tensor(operands.front()).dims;
  shape[along] = 0;
  for (const auto id : operands) {
    const auto& t = tensor(id);
    bool same = t.shape.size() == shape.size();
    for (std::size_t d = 0; same && d < shape.size(); ++d) same = d == along || t.shape[d] == shape[d];
    if (!same || t.shape[along] > kMaxElements - shape[along])
      return broken(name, "the operands of a concatenation do not fit together");
    shape[along] += t.shape[along];
    for (std::size_t d = 0; d < names.size(); ++d) {
      if (names[d] == DimName::other) names[d] = t.dims[d];
    }
  }
  auto op = start(std::move(name), OperatorKind::concat, "Concat");
  Shape common = shape;
  common[along] = 1;
  auto walks = identity_walks(op.dims, common, names);
  for (const auto id : operands) op.inputs.push_back({id, walks, false});
  op.outputs = {{{}, std::move(walks), false}};
  auto type = tensor(operands.front()).type;
  for (const auto id : operands) {
    if (is_floating(tensor(id).type)) type = tensor(id).type;
  }
  return add_operator(std::move(op), std::move(shape), std::move(names), type);
}

TensorId ModelBuilder::slice(std::string name, std::string detail, TensorId x, Shape out_shape) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  if (out_shape.size() != in.shape.size()) return broken(name, "a slice changes the number of dimensions");
  if (!check_shape(name, out_shape)) return broken(name, "a slice has an impossible shape");
  auto op = start(std::move(name), OperatorKind::slice, std::move(detail));
  Shape common = out_shape;
  for (std::size_t d = 0; d < common.size(); ++d) {
    if (common[d] != in.shape[d]) common[d] = 1;
  }
  auto walks = identity_walks(op.dims, common, in.dims);
  op.inputs = {{x, walks, false}};
  op.outputs = {{{}, std::move(walks), false}};
  return add_operator(std::move(op), std::move(out_shape), in.dims, in.type);
}

std::vector<TensorId> ModelBuilder::split(std::string name, TensorId x, int axis, std::span<const std::int64_t> sizes) {
  if (!usable(name, {x}) || sizes.empty()) return {broken(name, "a split without parts")};
  const Tensor in = tensor(x);
  if (axis < 0) axis += static_cast<int>(in.shape.size());
  std::vector<TensorId> parts;
  if (axis < 0 || axis >= static_cast<int>(in.shape.size())) {
    parts.assign(sizes.size(), broken(name, "the axis of a split is out of range"));
    return parts;
  }
  const auto along = static_cast<std::size_t>(axis);
  std::int64_t total = 0;
  bool valid = true;
  for (const auto size : sizes) {
    valid = valid && size > 0 && size <= in.shape[along] - total;
    if (valid) total += size;
  }
  if (!valid || total != in.shape[along]) {
    parts.assign(sizes.size(), broken(name, "the parts of a split do not add up to its input"));
    return parts;
  }
  auto op = start(std::move(name), OperatorKind::slice, "Split");
  Shape shape = in.shape;
  shape[along] = 1;
  auto walks = identity_walks(op.dims, shape, in.dims);
  op.inputs = {{x, walks, false}};
  op.outputs = {{{}, walks, false}};
  shape[along] = sizes[0];
  parts.push_back(add_operator(std::move(op), shape, in.dims, in.type));
  const auto producer = tensor(parts.front()).producer;
  for (std::size_t k = 1; k < sizes.size() && producer.valid(); ++k) {
    shape[along] = sizes[k];
    parts.push_back(add_output(producer, tensor(parts.front()).name + ":" + std::to_string(k), shape, in.dims, in.type,
                               TensorRole::activation, walks, false));
  }
  return parts;
}

bool ModelBuilder::interleave_parts(TensorId y, std::span<const TensorId> parts) {
  const auto producer = tensor(y).producer;
  if (parts.size() < 2 || !producer.valid() || model_.operators[producer].kind != OperatorKind::matmul) return false;
  auto& product_op = model_.operators[producer];
  auto& whole = model_.tensors[y];
  const auto count = static_cast<std::int64_t>(parts.size());
  if (whole.shape.empty() || whole.shape.back() % count != 0 || whole.shape.back() == count) return false;
  const auto last = product_op.outputs.front().walks.back();
  if (last.size() != 1) return false;
  const auto loop = last.front();
  // The weight and the bias must be the only others that walk the channels, and nobody else may see their order.
  std::vector<TensorId> weights;
  for (const auto& access : product_op.inputs) {
    for (const auto& walk : access.walks) {
      if (std::find(walk.begin(), walk.end(), loop) == walk.end()) continue;
      if (walk.size() != 1 || !is_parameter(access.tensor)) return false;
      weights.push_back(access.tensor);
    }
  }
  const auto is_weight = [&](TensorId id) { return std::find(weights.begin(), weights.end(), id) != weights.end(); };
  for (const auto& t : model_.tensors) {
    if (t.tied_to.valid() && is_weight(t.tied_to)) return false;
  }
  std::vector<OperatorId> cuts;
  std::size_t covered = 0;
  for (std::size_t o = 0; o < model_.operators.size(); ++o) {
    const auto& op = model_.operators[OperatorId(o)];
    for (const auto& access : op.inputs) {
      if (is_weight(access.tensor) && OperatorId(o) != producer) return false;
      if (access.tensor != y) continue;
      if (op.kind != OperatorKind::slice) return false;
      for (const auto& out : op.outputs) {
        const bool listed = std::find(parts.begin(), parts.end(), out.tensor) != parts.end();
        if (!listed || tensor(out.tensor).shape.back() != whole.shape.back() / count) return false;
        ++covered;
      }
      cuts.push_back(OperatorId(o));
    }
  }
  if (covered != parts.size()) return false;

  const auto part = add(product_op.dims, {DimName::other, DimRole::parallel, count, false});
  product_op.dims[loop].size /= count;
  for (auto& access : product_op.inputs) {
    for (auto& walk : access.walks) {
      if (walk == last) walk.push_back(part);
    }
  }
  product_op.outputs.front().walks.push_back({part});
  whole.shape.back() /= count;
  whole.shape.push_back(count);
  whole.dims.push_back(DimName::other);
  for (const auto id : cuts) {
    auto& cut = model_.operators[id];
    const auto& out = tensor(cut.outputs.front().tensor);
    cut.dims.clear();
    const auto walks = identity_walks(cut.dims, out.shape, out.dims);
    for (auto& access : cut.outputs) access.walks = walks;
    cut.inputs.front().walks = walks;
    cut.inputs.front().walks.emplace_back();
  }
  return true;
}

}  // namespace turnpoint
