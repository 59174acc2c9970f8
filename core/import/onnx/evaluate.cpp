// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/evaluate.h"

#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "core/import/onnx/evaluate_detail.h"

namespace turnpoint::onnx {

using namespace detail;

namespace {

std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

std::size_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::size_t total = 1;
  for (std::size_t d = begin; d < end; ++d) total *= static_cast<std::size_t>(shape[d]);
  return total;
}

ConstantPtr gather(const Node& node, const Constant& data, const Constant& indices) {
  const auto axis = axis_of(node.integer("axis", 0), data.shape.size());
  if (!axis || indices.floating()) return nullptr;
  Shape shape(data.shape.begin(), data.shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, data.shape.end());
  if (!elements(shape)) return nullptr;
  const std::size_t outer = product(data.shape, 0, *axis), inner = product(data.shape, *axis + 1, data.shape.size());
  const auto size = data.shape[*axis];
  Constant result{data.type, shape, {}, {}};
  for (std::size_t o = 0; o < outer; ++o) {
    for (auto index : indices.integers) {
      if (index < 0) index += size;
      if (index < 0 || index >= size) return nullptr;
      for (std::size_t i = 0; i < inner; ++i)
        push(result, data, (o * static_cast<std::size_t>(size) + static_cast<std::size_t>(index)) * inner + i);
    }
  }
  return keep(std::move(result));
}

ConstantPtr concat(const Node& node, const Inputs& inputs) {
  if (inputs.empty() || !inputs[0]) return nullptr;
  const auto axis = axis_of(node.integer("axis", 1), inputs[0]->shape.size());
  if (!axis) return nullptr;
  Shape shape = inputs[0]->shape;
  shape[*axis] = 0;
  for (const auto& input : inputs) {
    if (!input || input->shape.size() != shape.size()) return nullptr;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != *axis && input->shape[d] != shape[d]) return nullptr;
    }
    shape[*axis] += input->shape[*axis];
    if (!elements(shape)) return nullptr;
  }
  Constant result{inputs[0]->type, shape, {}, {}};
  const std::size_t outer = product(shape, 0, *axis);
  for (std::size_t o = 0; o < outer; ++o) {
    for (const auto& input : inputs) {
      const std::size_t run = product(input->shape, *axis, input->shape.size());
      for (std::size_t i = 0; i < run; ++i) push(result, *input, o * run + i);
    }
  }
  return keep(std::move(result));
}

/// Axes of a node that has them as an attribute or as input `at`.
std::optional<Shape> axes_of(const Node& node, const Inputs& inputs, std::size_t at) {
  if (const auto* attribute = node.attribute("axes")) return attribute->ints;
  if (at < inputs.size() && inputs[at] && !inputs[at]->floating()) return inputs[at]->integers;
  return node.input(at) < 0 ? std::optional<Shape>(Shape{}) : std::nullopt;
}

ConstantPtr with_shape(const Constant& a, Shape shape) {
  const auto count = elements(shape);
  if (!count || *count != a.size()) return nullptr;
  Constant result = a;
  result.shape = std::move(shape);
  return keep(std::move(result));
}

ConstantPtr unsqueeze(const Node& node, const Inputs& inputs) {
  const auto axes = axes_of(node, inputs, 1);
  if (!axes) return nullptr;
  const std::size_t rank = inputs[0]->shape.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const auto a : *axes) {
    const auto axis = axis_of(a, rank);
    if (!axis || added[*axis]) return nullptr;
    added[*axis] = true;
  }
  Shape shape;
  for (std::size_t d = 0, from = 0; d < rank; ++d) shape.push_back(added[d] ? 1 : inputs[0]->shape[from++]);
  return with_shape(*inputs[0], std::move(shape));
}

ConstantPtr squeeze(const Node& node, const Inputs& inputs) {
  const auto axes = axes_of(node, inputs, 1);
  if (!axes) return nullptr;
  const auto& from = inputs[0]->shape;
  std::vector<bool> removed(from.size(), false);
  for (std::size_t d = 0; axes->empty() && d < from.size(); ++d) removed[d] = from[d] == 1;
  for (const auto a : *axes) {
    const auto axis = axis_of(a, from.size());
    if (!axis || from[*axis] != 1) return nullptr;
    removed[*axis] = true;
  }
  Shape shape;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (!removed[d]) shape.push_back(from[d]);
  }
  return with_shape(*inputs[0], std::move(shape));
}

ConstantPtr reshape(const Node& node, const Inputs& inputs) {
  Shape shape = node.integers("shape");
  if (inputs.size() > 1 && inputs[1] && !inputs[1]->floating())
    shape = inputs[1]->integers;
  else if (shape.empty())
    return nullptr;
  std::size_t known = 1;
  std::ptrdiff_t unknown = -1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && node.integer("allowzero", 0) == 0) {
      if (d >= inputs[0]->shape.size()) return nullptr;
      shape[d] = inputs[0]->shape[d];
    }
    if (shape[d] == -1 && unknown < 0)
      unknown = static_cast<std::ptrdiff_t>(d);
    else if (shape[d] < 0 || shape[d] > static_cast<std::int64_t>(kMaxKeptElements))
      return nullptr;
    else
      known = std::min<std::size_t>(known * static_cast<std::size_t>(shape[d]), 1u << 30);
  }
  if (unknown >= 0) {
    if (known == 0 || inputs[0]->size() % known != 0) return nullptr;
    shape[static_cast<std::size_t>(unknown)] = static_cast<std::int64_t>(inputs[0]->size() / known);
  }
  return with_shape(*inputs[0], std::move(shape));
}

ConstantPtr slice(const Node& node, const Inputs& inputs, std::int64_t opset) {
  const auto& data = *inputs[0];
  const auto list = [&](std::size_t at, const char* key) -> std::optional<Shape> {
    if (opset < 10 && node.attribute(key)) return node.integers(key);
    if (at < inputs.size() && inputs[at] && !inputs[at]->floating()) return inputs[at]->integers;
    return std::nullopt;
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends");
  if (!starts || !ends || starts->size() != ends->size()) return nullptr;
  auto axes = list(3, "axes");
  const auto steps = list(4, "steps");
  if (!axes) {
    if (node.input(3) >= 0) return nullptr;
    axes.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (axes->size() != starts->size() || (steps && steps->size() != starts->size()) || (!steps && node.input(4) >= 0))
    return nullptr;
  std::vector<std::vector<std::size_t>> picks(data.shape.size());
  for (std::size_t d = 0; d < data.shape.size(); ++d) {
    for (std::int64_t i = 0; i < data.shape[d]; ++i) picks[d].push_back(static_cast<std::size_t>(i));
  }
  for (std::size_t k = 0; k < axes->size(); ++k) {
    const auto axis = axis_of((*axes)[k], data.shape.size());
    const std::int64_t step = steps ? (*steps)[k] : 1;
    if (!axis || step == 0 || step == std::numeric_limits<std::int64_t>::min()) return nullptr;
    const std::int64_t size = data.shape[*axis];
    const auto clamp = [&](std::int64_t v, std::int64_t low, std::int64_t high) {
      return std::clamp(v < 0 ? (v < -size ? low : v + size) : v, low, high);
    };
    const std::int64_t begin = step > 0 ? clamp((*starts)[k], 0, size) : clamp((*starts)[k], 0, size - 1);
    const std::int64_t end = step > 0 ? clamp((*ends)[k], 0, size) : clamp((*ends)[k], -1, size - 1);
    picks[*axis].clear();
    if (size == 0) continue;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
      picks[*axis].push_back(static_cast<std::size_t>(i));
      if (step > 0 ? step >= end - i : step <= end - i) break;
      i += step;
    }
  }
  Constant result{data.type, {}, {}, {}};
  for (const auto& pick : picks) result.shape.push_back(static_cast<std::int64_t>(pick.size()));
  const auto count = elements(result.shape);
  if (!count) return nullptr;
  for (std::size_t i = 0; i < *count; ++i) {
    std::size_t rest = i, at = 0, stride = 1;
    for (std::size_t d = picks.size(); d-- > 0;) {
      at += picks[d][rest % picks[d].size()] * stride;
      rest /= picks[d].size();
      stride *= static_cast<std::size_t>(data.shape[d]);
    }
    push(result, data, at);
  }
  return keep(std::move(result));
}

ConstantPtr constant_of_shape(const Node& node, const Constant& dims) {
  const auto* attribute = node.attribute("value");
  const auto value = attribute && attribute->tensor ? attribute->tensor->data : nullptr;
  if (attribute && attribute->tensor && !value) return nullptr;
  if (dims.floating() || !elements(dims.integers)) return nullptr;
  const std::size_t count = *elements(dims.integers);
  Constant result{value ? value->type : ElementType::f32, dims.integers, {}, {}};
  if (result.floating())
    result.reals.assign(count, value && value->size() ? value->real(0) : 0);
  else
    result.integers.assign(count, value && value->size() ? value->integers[0] : 0);
  return keep(std::move(result));
}

ConstantPtr range(const Inputs& inputs) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (i >= inputs.size() || !inputs[i] || inputs[i]->size() != 1) return nullptr;
  }
  const double begin = inputs[0]->real(0), end = inputs[1]->real(0), step = inputs[2]->real(0);
  const double count = std::ceil((end - begin) / step);
  if (!(count <= static_cast<double>(kMaxKeptElements))) return nullptr;
  Constant result{inputs[0]->type, {static_cast<std::int64_t>(std::max(0.0, count))}, {}, {}};
  for (std::int64_t i = 0; i < result.shape[0]; ++i) {
    const double value = begin + static_cast<double>(i) * step;
    if (result.floating())
      result.reals.push_back(value);
    else
      result.integers.push_back(static_cast<std::int64_t>(value));
  }
  return keep(std::move(result));
}

/// Between a lower and an upper bound, each of which may be absent (opset 11 and newer).
ConstantPtr clip(const Inputs& inputs) {
  Constant result = *inputs[0];
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    if (!inputs[k]) continue;
    const Constant& bound = *inputs[k];
    if (bound.size() != 1 || bound.floating() != result.floating()) return nullptr;
    for (auto& v : result.reals) v = k == 1 ? std::max(v, bound.reals[0]) : std::min(v, bound.reals[0]);
    for (auto& v : result.integers) v = k == 1 ? std::max(v, bound.integers[0]) : std::min(v, bound.integers[0]);
  }
  return keep(std::move(result));
}

ConstantPtr where(const Constant& condition, const Constant& a, const Constant& b) {
  auto shape = broadcast(a.shape, b.shape);
  if (shape) shape = broadcast(*shape, condition.shape);
  const auto count = shape ? elements(*shape) : std::nullopt;
  if (!count || condition.floating()) return nullptr;
  const BroadcastIndex ic(*shape, condition.shape), ia(*shape, a.shape), ib(*shape, b.shape);
  Constant result{a.type, *shape, {}, {}};
  for (std::size_t i = 0; i < *count; ++i) {
    if (condition.integers[ic(i)])
      push(result, a, ia(i));
    else
      push(result, b, ib(i));
  }
  return keep(std::move(result));
}

ConstantPtr expand(const Constant& a, const Shape& target) {
  const auto shape = broadcast(a.shape, target);
  const auto count = shape ? elements(*shape) : std::nullopt;
  if (!count) return nullptr;
  const BroadcastIndex index(*shape, a.shape);
  Constant result{a.type, *shape, {}, {}};
  for (std::size_t i = 0; i < *count; ++i) push(result, a, index(i));
  return keep(std::move(result));
}

ConstantPtr transpose(const Node& node, const Constant& a) {
  const std::size_t rank = a.shape.size();
  auto order = node.integers("perm");
  for (std::size_t d = rank; order.size() < rank && !node.attribute("perm") && d-- > 0;)
    order.push_back(static_cast<std::int64_t>(d));
  if (order.size() != rank) return nullptr;
  std::vector<std::size_t> strides(rank, 1);
  for (std::size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * static_cast<std::size_t>(a.shape[d]);
  Constant result{a.type, {}, {}, {}};
  std::vector<std::size_t> from;
  for (const auto p : order) {
    if (p < 0 || p >= static_cast<std::int64_t>(rank)) return nullptr;
    result.shape.push_back(a.shape[static_cast<std::size_t>(p)]);
    from.push_back(strides[static_cast<std::size_t>(p)]);
  }
  if (elements(result.shape) != a.size()) return nullptr;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t rest = i, at = 0;
    for (std::size_t d = rank; d-- > 0;) {
      at += rest % static_cast<std::size_t>(result.shape[d]) * from[d];
      rest /= static_cast<std::size_t>(result.shape[d]);
    }
    push(result, a, at);
  }
  return keep(std::move(result));
}

/// Reductions of a whole vector, which is what shape arithmetic uses.
ConstantPtr reduce(const Node& node, const Inputs& inputs) {
  const auto& a = *inputs[0];
  const auto axes = axes_of(node, inputs, 1);
  if (!axes || a.shape.size() > 1 || a.size() == 0) return nullptr;
  const bool keep_dims = node.integer("keepdims", 1) != 0;
  Constant result{a.type, a.shape.empty() || !keep_dims ? Shape{} : Shape{1}, {}, {}};
  const std::string kind = node.kind == "ReduceProd"  ? "Mul"
                           : node.kind == "ReduceSum" ? "Add"
                           : node.kind == "ReduceMax" ? "Max"
                                                      : "Min";
  double real = a.real(0);
  std::int64_t integer = a.floating() ? 0 : a.integers[0];
  for (std::size_t i = 1; i < a.size(); ++i) {
    if (a.floating())
      real = *real_result(kind, real, a.real(i));
    else
      integer = *integer_result(kind, integer, a.integers[i]);
  }
  if (a.floating())
    result.reals = {real};
  else
    result.integers = {integer};
  return keep(std::move(result));
}

ConstantPtr shape_of(const Node& node, const Shape& shape, std::int64_t opset) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t begin = opset >= 15 ? node.integer("start", 0) : 0, end = opset >= 15 ? node.integer("end", rank) : rank;
  begin = std::clamp(begin < 0 ? begin + rank : begin, std::int64_t{0}, rank);
  end = std::clamp(end < 0 ? end + rank : end, begin, rank);
  return keep({ElementType::i64, {end - begin}, {shape.begin() + begin, shape.begin() + end}, {}});
}

}  // namespace

std::optional<std::vector<std::int64_t>> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t k = 0; k < result.size(); ++k) {
    const std::int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1, y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - k] = x == 1 ? y : x;
  }
  return result;
}

ConstantPtr evaluate_cast_like(const Constant& value, ElementType type) { return cast(value, type); }

ConstantPtr evaluate(const Node& node, const Inputs& inputs, const Shape* shape0, std::int64_t opset) {
  const std::string& kind = node.kind;
  if (!node.domain.empty()) return nullptr;
  if (kind == "Shape") return shape0 ? shape_of(node, *shape0, opset) : nullptr;
  if (kind == "Size" && shape0) {
    double total = 1;
    for (const auto size : *shape0) total *= static_cast<double>(size);
    return total < 9e15 ? keep({ElementType::i64, {}, {static_cast<std::int64_t>(total)}, {}}) : nullptr;
  }
  if (inputs.empty() || !inputs[0]) return nullptr;
  const auto& a = *inputs[0];
  const Constant* b = inputs.size() > 1 ? inputs[1].get() : nullptr;
  const Constant* c = inputs.size() > 2 ? inputs[2].get() : nullptr;
  if (kind == "Identity") return inputs[0];
  if (kind == "Cast") return cast(node, a);
  if (kind == "Clip" && !node.attribute("min") && !node.attribute("max")) return clip(inputs);
  if (kind == "ConstantOfShape") return constant_of_shape(node, a);
  if (kind == "Unsqueeze") return unsqueeze(node, inputs);
  if (kind == "Squeeze") return squeeze(node, inputs);
  if (kind == "Reshape") return reshape(node, inputs);
  if (kind == "Concat") return concat(node, inputs);
  if (kind == "Slice") return slice(node, inputs, opset);
  if (kind == "Transpose") return transpose(node, a);
  if (kind == "Range") return range(inputs);
  if (kind == "ReduceProd" || kind == "ReduceSum" || kind == "ReduceMax" || kind == "ReduceMin")
    return reduce(node, inputs);
  if (inputs.size() == 1) return unary(node, a);
  if (!b) return nullptr;
  if (kind == "Gather") return gather(node, a, *b);
  if (kind == "Expand") return b->floating() ? nullptr : expand(a, b->integers);
  if (kind == "Where") return c ? where(a, *b, *c) : nullptr;
  return inputs.size() == 2 ? binary(node, a, *b) : nullptr;
}

}  // namespace turnpoint::onnx
