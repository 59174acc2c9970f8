// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/import/onnx/binder.h"
#include "core/import/onnx/tensor_data.h"

namespace turnpoint::onnx {

std::optional<std::int64_t> element_count(const Shape& shape) {
  std::int64_t total = 1;
  for (const auto size : shape) {
    if (size < 1 || total > (std::int64_t{1} << 60) / size) return std::nullopt;
    total *= size;
  }
  return total;
}

bool Binder::needs(const Node& node, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!has(node, i)) return fail(node, "input " + std::to_string(i) + " is missing"), false;
  }
  return true;
}

TensorId Binder::operand(const Node& node, std::size_t i) { return materialise(node.input(i), false); }

std::optional<TensorId> Binder::optional_weight(const Node& node, std::size_t i) {
  if (!has(node, i)) return std::nullopt;
  return weight(node, i);
}

TensorId Binder::materialise(int index, bool weight_slot, bool buffer) {
  Value& value = values_[index];
  if (value.kind == Value::Kind::constant && weight_slot && is_floating(value.type) && !value.shape.empty()) {
    value.kind = Value::Kind::parameter;
    value.root = index;
    value.tensor = {};
  }
  if (value.kind == Value::Kind::tensor && !value.groups.empty()) {
    if (!value.flat.valid())
      value.flat = builder_->reshape(graph_.values[index].name + "/merged", value.tensor, value.shape);
    return value.flat;
  }
  if (value.kind != Value::Kind::parameter) {
    if (!value.tensor.valid()) value.tensor = builder_->constant(graph_.values[index].name, value.shape, value.type);
    return value.tensor;
  }
  Value& root = values_[value.root];
  const Shape own = value.transposed ? Shape(value.shape.rbegin(), value.shape.rend()) : value.shape;
  if (!root.tensor.valid()) {
    const auto& name = graph_.values[value.root].name;
    root.tensor = buffer ? builder_->buffer(name, own) : builder_->parameter(name, own);
    root_shape_[value.root] = own;
  }
  if (value.tensor.valid() && index != value.root) return value.tensor;
  TensorId tensor = root.tensor;
  if (root_shape_[value.root] != own) tensor = builder_->reshape(graph_.values[index].name, tensor, own);
  if (value.transposed) tensor = builder_->transpose(graph_.values[index].name, tensor, {1, 0});
  if (index != value.root) value.tensor = tensor;
  return tensor;
}

std::optional<Shape> Binder::constant_integers(const Node& node, std::size_t i) const {
  if (!has(node, i)) return std::nullopt;
  const auto& value = values_[node.input(i)];
  if (value.kind != Value::Kind::constant || !value.data || value.data->floating()) return std::nullopt;
  return value.data->integers;
}

std::optional<Shape> Binder::list(const Node& node, const char* attribute, std::size_t input) const {
  if (const auto* found = node.attribute(attribute)) return found->ints;
  return constant_integers(node, input);
}

bool Binder::list_unknown(const Node& node, const char* attribute, std::size_t input) const {
  return !node.attribute(attribute) && has(node, input) && !constant_integers(node, input);
}

std::optional<double> Binder::scalar(const Node& node, std::size_t i) const {
  if (!has(node, i)) return std::nullopt;
  const auto& value = values_[node.input(i)];
  if (value.kind != Value::Kind::constant || !value.data || value.data->size() != 1) return std::nullopt;
  return value.data->real(0);
}

std::size_t Binder::first_of(const std::vector<std::uint8_t>& groups, std::size_t d) {
  if (groups.empty()) return d;
  std::size_t first = 0;
  for (std::size_t k = 0; k < d; ++k) first += groups[k];
  return first;
}

Binder::Grouped Binder::grouped_operands(const std::vector<int>& indices) {
  std::size_t rank = 0;
  for (const int index : indices) rank = std::max(rank, values_[index].shape.size());
  std::vector<Shape> parts(rank);  // per dimension of the result: sizes of its parts where some operand has parts
  bool any = false, agree = true;
  for (const int index : indices) {
    const Value& value = values_[index];
    if (value.kind != Value::Kind::tensor || value.groups.empty()) continue;
    const auto& sizes = builder_->tensor(value.tensor).shape;
    for (std::size_t d = 0; d < value.shape.size(); ++d) {
      if (value.groups[d] == 1) continue;
      const auto first = sizes.begin() + static_cast<std::ptrdiff_t>(first_of(value.groups, d));
      const Shape own(first, first + value.groups[d]);
      auto& known = parts[d + rank - value.shape.size()];
      agree = agree && (known.empty() || known == own);
      known = own;
      any = true;
    }
  }
  Grouped result;
  if (!any || !agree) {
    for (const int index : indices) result.tensors.push_back(materialise(index, false));
    return result;
  }
  for (const auto& part : parts)
    result.groups.push_back(static_cast<std::uint8_t>(std::max<std::size_t>(part.size(), 1)));
  for (const int index : indices) {
    const Value& value = values_[index];
    Shape wanted;
    for (std::size_t d = 0; d < value.shape.size(); ++d) {
      const auto& part = parts[d + rank - value.shape.size()];
      if (part.empty())
        wanted.push_back(value.shape[d]);
      else if (value.shape[d] == 1)
        wanted.insert(wanted.end(), part.size(), 1);
      else
        wanted.insert(wanted.end(), part.begin(), part.end());
    }
    auto tensor = value.kind == Value::Kind::tensor ? value.tensor : materialise(index, false);
    if (builder_->tensor(tensor).shape != wanted)
      tensor = builder_->reshape(graph_.values[index].name + "/parts", tensor, wanted);
    result.tensors.push_back(tensor);
  }
  return result;
}

void Binder::set(const Node& node, std::size_t output, TensorId tensor, std::vector<std::uint8_t> groups) {
  const int index = node.output(output);
  if (index < 0) return;
  const auto& made = builder_->tensor(tensor);
  std::size_t covered = 0;
  bool split = false;
  for (const auto count : groups) {
    covered += count;
    split = split || count != 1;
  }
  if (!split || covered != made.shape.size()) groups.clear();  // a failed operator has no dimensions
  Value value;
  value.kind = Value::Kind::tensor;
  value.type = made.type;
  value.tensor = tensor;
  if (groups.empty()) {
    value.shape = made.shape;
  } else {
    for (std::size_t d = 0, at = 0; d < groups.size(); ++d) {
      std::int64_t size = 1;
      for (std::size_t k = 0; k < groups[d]; ++k) size *= made.shape[at++];
      value.shape.push_back(size);
    }
  }
  value.groups = std::move(groups);
  values_[index] = std::move(value);
}

/// Where the batch lies inside a dimension that was re-bound: as in the operand it came from.
void Binder::track_batch(const Node& node) {
  if (!reference_ || node.kind == "Reshape" || node.kind == "Flatten") return;
  for (const int output : node.outputs) {
    const Shape* old = old_shape(output);
    if (!old || old->size() != values_[output].shape.size()) continue;
    for (std::size_t d = 0; d < old->size(); ++d) {
      if ((*old)[d] == values_[output].shape[d]) continue;
      for (const int input : node.inputs) {
        const Shape* from = old_shape(input);
        if (!from) continue;
        for (std::size_t e = 0; e < from->size() && e < values_[input].shape.size(); ++e) {
          if ((*from)[e] == (*old)[d] && (*from)[e] != values_[input].shape[e])
            values_[output].outer = values_[input].outer;
        }
      }
    }
  }
}

void Binder::alias(const Node& node, std::size_t output, int value) {
  if (node.output(output) >= 0) values_[node.output(output)] = values_[value];
}

void Binder::set_constant(int index, ConstantPtr constant) {
  Value value;
  value.kind = Value::Kind::constant;
  value.type = constant->type;
  value.shape = constant->shape;
  value.data = std::move(constant);
  values_[index] = std::move(value);
}

void Binder::set_unknown_constant(int index, Shape shape, ElementType type) {
  Value value;
  value.kind = Value::Kind::constant;
  value.type = type;
  value.shape = std::move(shape);
  values_[index] = std::move(value);
}

bool Binder::view_of_parameter(const Node& node, Shape new_shape) {
  const Value& from = in(node, 0);
  if (from.kind != Value::Kind::parameter || from.transposed || node.output(0) < 0) return false;
  Value value = from;
  value.shape = std::move(new_shape);
  value.data = nullptr;
  value.tensor = {};
  values_[node.outputs[0]] = std::move(value);
  return true;
}

std::optional<std::size_t> Binder::axis(const Node& node, std::int64_t wanted, std::size_t rank) {
  const std::int64_t result = wanted < 0 ? wanted + static_cast<std::int64_t>(rank) : wanted;
  if (result < 0 || result >= static_cast<std::int64_t>(rank)) {
    fail(node, "axis " + std::to_string(wanted) + " is out of range for " + std::to_string(rank) + " dimensions");
    return std::nullopt;
  }
  return static_cast<std::size_t>(result);
}

const Shape* Binder::old_shape(int value) const {
  if (!reference_ || value < 0) return nullptr;
  const auto& old = (*reference_)[static_cast<std::size_t>(value)];
  return old && *old != values_[value].shape ? &*old : nullptr;
}

std::optional<Shape> Binder::rebatched(const Node& node, const Shape& old_output, std::int64_t& outer) const {
  const Shape* old_input = old_shape(node.input(0));
  const Value& value = values_[node.input(0)];
  if (!old_input || old_input->size() != value.shape.size()) return std::nullopt;
  Shape result = old_output;
  double before = 1;
  for (std::size_t d = 0; d < value.shape.size(); before *= static_cast<double>((*old_input)[d]), ++d) {
    const std::int64_t old_size = (*old_input)[d], new_size = value.shape[d];
    if (old_size == new_size) continue;
    // Row-major, one step of the batch lies `position` elements' blocks into the tensor. The output dimension that
    // starts there and is exactly the batch takes it, else the one that covers that place.
    const double position = before * static_cast<double>(value.outer);
    std::ptrdiff_t exact = -1, covering = -1;
    double prefix = 1, prefix_of_target = 1;
    for (std::size_t e = 0; e < old_output.size(); ++e) {
      const double next = prefix * static_cast<double>(old_output[e]);
      if (exact < 0 && prefix == position && old_output[e] == plan_.fixed_batch) {
        exact = static_cast<std::ptrdiff_t>(e);
        prefix_of_target = prefix;
      }
      if (exact < 0 && covering < 0 && prefix <= position && position < next) {
        covering = static_cast<std::ptrdiff_t>(e);
        prefix_of_target = prefix;
      }
      prefix = next;
    }
    const auto target = exact >= 0 ? exact : covering;
    if (target < 0) return std::nullopt;
    auto& size = result[static_cast<std::size_t>(target)];
    if (size > (std::int64_t{1} << 62) / std::max<std::int64_t>(new_size, 1) || size * new_size % old_size != 0)
      return std::nullopt;
    size = size * new_size / old_size;
    outer = exact >= 0 ? 1 : static_cast<std::int64_t>(position / prefix_of_target);
  }
  return result;
}

std::optional<ElementType> Binder::cast_type(const Node& node) const { return element_type(node.integer("to", 0)); }

std::vector<std::int64_t> Binder::spatial_attribute(const Node& node, const char* key, std::size_t count,
                                                    std::int64_t otherwise) const {
  auto values = node.integers(key);
  if (values.empty()) values.assign(count, otherwise);
  return values;
}

bool Binder::pads_of(const Node& node, const Shape& input, const Shape& kernel, const Shape& strides,
                     const Shape& dilations, Shape& begin, Shape& end) {
  const std::size_t count = kernel.size();
  begin.assign(count, 0);
  end.assign(count, 0);
  if (strides.size() != count || dilations.size() != count || input.size() != count + 2)
    return fail(node, "an attribute has the wrong number of spatial dimensions"), false;
  for (std::size_t s = 0; s < count; ++s) {
    const bool sane = strides[s] >= 1 && dilations[s] >= 1 && kernel[s] >= 1 && strides[s] < (1 << 30) &&
                      dilations[s] < (1 << 30) && kernel[s] < (1 << 30);
    if (!sane) return fail(node, "a kernel size, stride or dilation is out of range"), false;
  }
  const auto automatic = node.text("auto_pad", "NOTSET");
  const auto pads = node.integers("pads");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (std::size_t s = 0; s < count; ++s) {
      const std::int64_t out = (input[s + 2] + strides[s] - 1) / strides[s];
      const std::int64_t total =
          std::max<std::int64_t>(0, (out - 1) * strides[s] + (kernel[s] - 1) * dilations[s] + 1 - input[s + 2]);
      (automatic == "SAME_UPPER" ? begin : end)[s] = total / 2;
      (automatic == "SAME_UPPER" ? end : begin)[s] = total - total / 2;
    }
  } else if (!pads.empty() && automatic != "VALID") {
    if (pads.size() != 2 * count) return fail(node, "pads do not fit the number of spatial dimensions"), false;
    constexpr std::int64_t kLimit = 1 << 30;  // no amounts: that of the least number is none
    for (const auto pad : pads)
      if (pad < -kLimit || pad > kLimit) return fail(node, "a padding is out of range"), false;
    for (std::size_t s = 0; s < count; ++s) {
      begin[s] = pads[s];
      end[s] = pads[s + count];
    }
  }
  return true;
}

}  // namespace turnpoint::onnx
