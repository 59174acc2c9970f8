// SPDX-License-Identifier: Apache-2.0
// Reshapes, transposes and everything that only moves elements around.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/import/onnx/binder.h"
#include "core/model/builder_detail.h"

namespace turnpoint::onnx {

void Binder::on_reshape(const Node& node) {
  if (!needs(node, 1)) return;
  const auto target = graph_.opset < 5 && node.attribute("shape") ? std::optional<Shape>(node.integers("shape"))
                                                                  : constant_integers(node, 1);
  if (!target) return fail(node, "its target shape depends on data, so no shape is known");
  reshape_to(node, *target);
}

void Binder::reshape_to(const Node& node, Shape target) {
  const Shape from = shape(node, 0);
  const auto total = element_count(from);
  if (!total) return fail(node, "its input has an impossible size");
  std::int64_t known = 1;
  std::ptrdiff_t unknown = -1;
  bool valid = true;
  for (std::size_t d = 0; d < target.size(); ++d) {
    if (target[d] == 0 && node.integer("allowzero", 0) == 0 && d < from.size()) target[d] = from[d];
    if (target[d] == -1 && unknown < 0) {
      unknown = static_cast<std::ptrdiff_t>(d);
    } else if (target[d] < 1 || known > *total / target[d]) {
      valid = false;
    } else {
      known *= target[d];
    }
  }
  if (valid && unknown >= 0) {
    valid = *total % known == 0;
    if (valid) target[static_cast<std::size_t>(unknown)] = *total / known;
  } else {
    valid = valid && known == *total;
  }
  std::int64_t outer = 1;
  if (reference_ && node.output(0) >= 0 && old_shape(node.input(0))) {
    const auto& old = (*reference_)[static_cast<std::size_t>(node.outputs[0])];
    const auto expected = old ? rebatched(node, *old, outer) : std::nullopt;
    if (expected && element_count(*expected) == total) {
      target = *expected;
      valid = true;
    }
  }
  if (!valid) {
    const auto text = [](const Shape& s) {
      std::string out;
      for (const auto size : s) out += (out.empty() ? "" : ", ") + std::to_string(size);
      return "[" + out + "]";
    };
    return fail(node, "a tensor of shape " + text(from) + " cannot be reshaped to " + text(target));
  }
  if (target == from) return alias(node, 0, node.inputs[0]);
  if (view_of_parameter(node, target)) return;
  regroup(node, target);
  if (node.output(0) >= 0) values_[node.outputs[0]].outer = outer;
}

/// Reshapes, but keeps the batch as a dimension of its own where the target merges it with others.
void Binder::regroup(const Node& node, const Shape& target) {
  const Value& value = in(node, 0);
  const auto x = value.kind == Value::Kind::tensor ? value.tensor : operand(node, 0);
  const Shape from = builder_->tensor(x).shape;
  const Dims names = builder_->tensor(x).dims;
  const auto factors = builder_detail::common_factors(from, target);
  std::vector<DimName> origin(factors.sizes.size(), DimName::other);
  for (std::size_t d = 0; d < from.size(); ++d) {
    for (const auto factor : factors.from[d]) origin[factor] = names[d];
  }
  Shape parts;
  std::vector<std::uint8_t> groups;
  for (std::size_t d = 0; d < target.size(); ++d) {
    const auto& walk = factors.to[d];
    std::int64_t product = 1;
    bool batch = false;
    for (const auto factor : walk) {
      product *= factors.sizes[factor];
      batch = batch || origin[factor] == DimName::batch;
    }
    if (walk.size() > 1 && batch && product == target[d]) {
      for (const auto factor : walk) parts.push_back(factors.sizes[factor]);
      groups.push_back(static_cast<std::uint8_t>(walk.size()));
    } else {
      parts.push_back(target[d]);
      groups.push_back(1);
    }
  }
  if (parts.size() > 16) return set(node, 0, builder_->reshape(operator_name(node), x, target, {}, node.kind));
  set(node, 0, parts == from ? x : builder_->reshape(operator_name(node), x, parts, {}, node.kind), std::move(groups));
}

void Binder::on_flatten(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape from = shape(node, 0);
  auto at = node.integer("axis", 1);
  if (at < 0) at += static_cast<std::int64_t>(from.size());
  if (at < 0 || at > static_cast<std::int64_t>(from.size())) return fail(node, "axis is out of range");
  const auto outer = element_count({from.begin(), from.begin() + at}),
             inner = element_count({from.begin() + at, from.end()});
  if (!outer || !inner) return fail(node, "its input has an impossible size");
  reshape_to(node, {*outer, *inner});
}

void Binder::on_transpose(const Node& node) {
  if (!needs(node, 1)) return;
  const std::size_t rank = shape(node, 0).size();
  auto order = node.integers("perm");
  if (order.empty()) {
    order.resize(rank);
    std::iota(order.rbegin(), order.rend(), std::int64_t{0});
  }
  std::vector<int> permutation;
  Shape shape_out;
  bool identity = true;
  for (std::size_t d = 0; d < order.size(); ++d) {
    if (order[d] < 0 || order[d] >= static_cast<std::int64_t>(rank))
      return fail(node, "perm is no permutation of its input's dimensions");
    permutation.push_back(static_cast<int>(order[d]));
    shape_out.push_back(shape(node, 0)[static_cast<std::size_t>(order[d])]);
    identity = identity && order[d] == static_cast<std::int64_t>(d);
  }
  if (identity && order.size() == rank) return alias(node, 0, node.inputs[0]);
  Value& from = in(node, 0);
  if (from.kind == Value::Kind::parameter && permutation == std::vector<int>{1, 0} && node.output(0) >= 0) {
    Value value = from;
    value.shape = shape_out;
    value.transposed = !from.transposed;
    value.tensor = {};
    values_[node.outputs[0]] = std::move(value);
    return;
  }
  if (from.groups.empty()) return set(node, 0, builder_->transpose(operator_name(node), operand(node, 0), permutation));
  std::vector<int> of_parts;
  std::vector<std::uint8_t> groups;
  for (const int p : permutation) {
    const auto d = static_cast<std::size_t>(p);
    groups.push_back(from.groups[d]);
    for (std::size_t k = 0; k < from.groups[d]; ++k) of_parts.push_back(static_cast<int>(first_of(from.groups, d) + k));
  }
  set(node, 0, builder_->transpose(operator_name(node), from.tensor, of_parts), std::move(groups));
}

void Binder::on_squeeze(const Node& node) {
  if (!needs(node, 1)) return;
  if (list_unknown(node, "axes", 1)) return fail(node, "its axes are not constant");
  const Shape from = shape(node, 0);
  const auto axes = list(node, "axes", 1);
  std::vector<bool> removed(from.size(), false);
  if (!axes) {
    for (std::size_t d = 0; d < from.size(); ++d) removed[d] = from[d] == 1;
  } else {
    for (const auto a : *axes) {
      const auto at = axis(node, a, from.size());
      if (!at) return;
      if (from[*at] != 1) return fail(node, "squeezes a dimension of size " + std::to_string(from[*at]));
      removed[*at] = true;
    }
  }
  Shape target;
  Dims dims;
  const bool plain = in(node, 0).kind == Value::Kind::tensor && in(node, 0).groups.empty();
  const Dims names = plain ? builder_->tensor(in(node, 0).tensor).dims : Dims(from.size(), DimName::other);
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (removed[d]) continue;
    target.push_back(from[d]);
    dims.push_back(names[d]);
  }
  if (target == from) return alias(node, 0, node.inputs[0]);
  if (view_of_parameter(node, target)) return;
  if (!in(node, 0).groups.empty()) return regroup(node, target);
  const auto x = operand(node, 0);
  set(node, 0, builder_->reshape(operator_name(node), x, target, dims, node.kind));
}

void Binder::on_unsqueeze(const Node& node) {
  if (!needs(node, 1)) return;
  if (list_unknown(node, "axes", 1)) return fail(node, "its axes are not constant");
  const auto axes = list(node, "axes", 1);
  const Shape from = shape(node, 0);
  if (!axes || axes->size() > 32) return fail(node, "its axes are missing");
  const std::size_t rank = from.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const auto a : *axes) {
    const auto at = axis(node, a, rank);
    if (!at) return;
    if (added[*at]) return fail(node, "names an axis twice");
    added[*at] = true;
  }
  Shape target;
  Dims dims;
  const bool plain = in(node, 0).kind == Value::Kind::tensor && in(node, 0).groups.empty();
  const Dims names = plain ? builder_->tensor(in(node, 0).tensor).dims : Dims(from.size(), DimName::other);
  for (std::size_t d = 0, k = 0; d < rank; ++d) {
    target.push_back(added[d] ? 1 : from[k]);
    dims.push_back(added[d] ? DimName::other : names[k]);
    if (!added[d]) ++k;
  }
  if (view_of_parameter(node, target)) return;
  if (!in(node, 0).groups.empty()) return regroup(node, target);
  const auto x = operand(node, 0);
  set(node, 0, builder_->reshape(operator_name(node), x, target, dims, node.kind));
}

void Binder::on_expand(const Node& node) {
  if (!needs(node, 2)) return;
  auto target = constant_integers(node, 1);
  if (!target) return fail(node, "its target shape depends on data, so no shape is known");
  const Shape from = shape(node, 0);
  for (auto& size : *target) {
    if (size < 1) return fail(node, "expands to a dimension of size " + std::to_string(size));
  }
  const std::size_t rank = std::max(target->size(), from.size());
  // A leading 8 in a file of batch 8 is the batch.
  const bool rebinding =
      reference_ && plan_.fixed_batch > 1 && target->size() == rank && (*target)[0] == plan_.fixed_batch;
  if (rebinding && (from.size() < rank || from[0] == 1 || from[0] == batch_)) (*target)[0] = batch_;
  const auto result = broadcast(from, *target);
  if (!result) return fail(node, "its input cannot be expanded to the target shape");
  if (*result == from) return alias(node, 0, node.inputs[0]);
  const auto x = operand(node, 0);
  Dims dims = builder_->tensor(x).dims;
  dims.insert(dims.begin(), rank - dims.size(), DimName::other);
  if ((*result)[0] == batch_ && rank > 1 && (from.size() < rank || from[0] == 1)) dims[0] = DimName::batch;
  if (rank > 1 && dims[rank - 1] == DimName::other) dims[rank - 1] = DimName::channel;
  set(node, 0, builder_->expand(operator_name(node), x, *result, dims));
}

void Binder::on_tile(const Node& node) {
  if (!needs(node, 2)) return;
  auto repeats = constant_integers(node, 1);
  const Shape from = shape(node, 0);
  if (!repeats || repeats->size() != from.size())
    return fail(node, "its repeats are not constant or do not fit its input");
  Shape target = from;
  bool only_ones = true, all_one = true;
  for (std::size_t d = 0; d < from.size(); ++d) {
    auto& repeat = (*repeats)[d];
    if (d == 0 && reference_ && plan_.fixed_batch > 1 && repeat == plan_.fixed_batch && from[0] == 1) repeat = batch_;
    if (repeat < 1 || repeat > (std::int64_t{1} << 40) / std::max<std::int64_t>(from[d], 1))
      return fail(node, "a repeat is out of range");
    target[d] = from[d] * repeat;
    only_ones = only_ones && (repeat == 1 || from[d] == 1);
    all_one = all_one && repeat == 1;
  }
  if (all_one) return alias(node, 0, node.inputs[0]);
  const auto x = operand(node, 0);
  set(node, 0,
      only_ones ? builder_->expand(operator_name(node), x, target)
                : builder_->slice(operator_name(node), "Tile", x, target));
}

}  // namespace turnpoint::onnx
