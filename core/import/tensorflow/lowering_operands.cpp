// SPDX-License-Identifier: Apache-2.0
// Operands in the order an operator wants them, and constants known from the file.
#include <algorithm>
#include <numeric>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

std::vector<int> Lowering::to_first(std::size_t rank) {
  std::vector<int> order{0, static_cast<int>(rank) - 1};
  for (std::size_t d = 1; d + 1 < rank; ++d) order.push_back(static_cast<int>(d));
  return order;
}
std::vector<int> Lowering::to_last(std::size_t rank) {
  std::vector<int> order{0};
  for (std::size_t d = 2; d < rank; ++d) order.push_back(static_cast<int>(d));
  order.push_back(1);
  return order;
}
Shape Lowering::permuted(const Shape& shape, const std::vector<int>& order) {
  Shape result;
  for (const int d : order) result.push_back(shape[static_cast<std::size_t>(d)]);
  return result;
}

namespace {

/// Longer lists are no axes, shapes or bounds.
constexpr std::size_t kMaxConstants = 512;

std::vector<std::int64_t> wide(const std::vector<int>& order) { return {order.begin(), order.end()}; }

}  // namespace

int Lowering::add_weight(std::string name, TensorValue tensor, bool shaped, bool trainable) {
  weights_.push_back({std::move(name), std::move(tensor), shaped, trainable, {}});
  return static_cast<int>(weights_.size()) - 1;
}

std::string Lowering::write_weight(Weight& weight, const std::string& form, const std::vector<int>& order,
                                   Shape shape) {
  if (const auto found = weight.forms.find(form); found != weight.forms.end()) return found->second;
  if (weight.forms.empty()) {
    const auto name = out_.unique(weight.name);
    TensorValue written = weight.tensor;
    const bool same = order.empty() || std::is_sorted(order.begin(), order.end());
    if (!same || shape != written.shape) {
      written.known = false;
      written.shape = std::move(shape);
    }
    if (!weight.trainable && is_floating(written.type) && same) {
      // Beside real variables a constant is a constant.
      out_.node({"Constant", "", name, {}, {name}, Attributes().tensor("value", written)});
    } else {
      out_.initializer(name, written);
    }
    return weight.forms[form] = name;
  }
  // A second form is a view of the first: turned back and, where wanted, into the new order.
  const auto& [first_form, first_name] = *weight.forms.begin();
  std::string name = first_name;
  const auto view = [&](std::string kind, Names inputs, Attributes attributes) {
    const auto made = out_.unique(weight.name + "/" + form);
    out_.node({std::move(kind), "", made, std::move(inputs), {made}, std::move(attributes)});
    return made;
  };
  const auto reshaped = [](const std::string& kind) {
    return kind == "depthwise" || kind == "recurrent" || kind == "row";
  };
  if (reshaped(first_form) || reshaped(form)) {
    const auto target = out_.unique(weight.name + "/shape");
    out_.initializer(target, {DataType::i64, {static_cast<std::int64_t>(shape.size())}, true, shape, {}});
    name = view("Reshape", {name, target}, {});
    return weight.forms[form] = name;
  }
  std::vector<int> stored;
  for (std::size_t i = 0; first_form != "plain" && i < first_form.size(); ++i) stored.push_back(first_form[i] - '0');
  if (!stored.empty()) {
    std::vector<std::int64_t> back(stored.size());
    for (std::size_t d = 0; d < stored.size(); ++d)
      back[static_cast<std::size_t>(stored[d])] = static_cast<std::int64_t>(d);
    name = view("Transpose", {name}, Attributes().set("perm", back));
  }
  if (!order.empty()) name = view("Transpose", {name}, Attributes().set("perm", wide(order)));
  return weight.forms[form] = name;
}

void Lowering::missing_weight(const Value& value) {
  const auto& weight = weights_[static_cast<std::size_t>(value.weight)];
  if (graph_.dangling == 0) return fail("needs the shape of '" + weight.name + "', which the file does not tell");
  error_ = bad_input(std::to_string(graph_.dangling) + " inputs name tensors that the file does not hold (first: " +
                         graph_.first_dangling + "), among them weights whose shapes are needed",
                     graph_.place(*node_));
  error_->hint = "the weights live elsewhere: open the frozen .pb file or the SavedModel";
}

std::string Lowering::plain(Value& value) {
  if (value.kind == Value::Kind::weight) {
    auto& weight = weights_[static_cast<std::size_t>(value.weight)];
    if (!weight.shaped) return missing_weight(value), "";
    return write_weight(weight, "plain", {}, weight.tensor.shape);
  }
  if (!value.channels_first) return value.name;
  if (value.turned.empty())
    value.turned =
        emit("Transpose", {value.name}, Attributes().set("perm", wide(to_last(value.rank()))), "channels_last");
  return value.turned;
}

std::string Lowering::first(Value& value) {
  if (value.kind == Value::Kind::tensor && value.channels_first) return value.name;
  if (value.rank() < 3) return plain(value);
  if (value.turned.empty())
    value.turned =
        emit("Transpose", {plain(value)}, Attributes().set("perm", wide(to_first(value.rank()))), "channels_first");
  return value.turned;
}

/// A convolution's kernel with the output channels first. Depthwise: [h, w, in, multiplier] as [in * multiplier, 1, h,
/// w].
std::string Lowering::kernel(std::size_t i, const std::vector<int>& order, bool depthwise) {
  Value& value = in(i);
  if (!value.shape || value.shape->size() != order.size()) {
    if (value.kind == Value::Kind::weight && !weights_[static_cast<std::size_t>(value.weight)].shaped)
      return missing_weight(value), "";
    return fail("its kernel has another number of dimensions than it needs"), "";
  }
  Shape shape = permuted(*value.shape, order);
  if (depthwise) {
    const auto channels = value.shape->at(2), multiplier = value.shape->at(3);
    if (channels < 1 || multiplier < 1 || channels > (std::int64_t{1} << 40) / multiplier || value.shape->at(0) < 1 ||
        value.shape->at(1) < 1)
      return fail("its kernel has an impossible shape"), "";
    shape = {channels * multiplier, 1, value.shape->at(0), value.shape->at(1)};
  }
  if (value.kind == Value::Kind::weight) {
    std::string form = depthwise ? "depthwise" : "";
    for (const int d : order) {
      if (!depthwise) form += static_cast<char>('0' + d);
    }
    return write_weight(weights_[static_cast<std::size_t>(value.weight)], form, order, shape);
  }
  auto turned = emit("Transpose", {plain(value)}, Attributes().set("perm", wide(order)), "kernel");
  if (depthwise) turned = emit("Reshape", {turned, integers("kernel_shape", shape)}, {}, "kernel_view");
  return turned;
}

const TensorValue* Lowering::constant(std::size_t i) const {
  if (!has(i)) return nullptr;
  const Edge edge = node_->inputs[i];
  const auto& value = values_[static_cast<std::size_t>(edge.node)][static_cast<std::size_t>(edge.port)];
  if (value.kind != Value::Kind::weight) return nullptr;
  const auto& weight = weights_[static_cast<std::size_t>(value.weight)];
  return weight.tensor.known ? &weight.tensor : nullptr;
}

std::optional<std::vector<std::int64_t>> Lowering::constants(std::size_t i) const {
  const auto* found = constant(i);
  if (!found || is_floating(found->type) || found->integers.size() > kMaxConstants) return std::nullopt;
  return found->integers;
}

void Lowering::set_constant(std::vector<std::int64_t> values, bool is_scalar, DataType type) {
  TensorValue made{type, {}, true, std::move(values), {}};
  if (!is_scalar) made.shape = {static_cast<std::int64_t>(made.integers.size())};
  Value value;
  value.kind = Value::Kind::weight;
  value.type = type;
  value.shape = made.shape;
  value.weight = add_weight(node_->name, std::move(made), true, false);
  set(0, std::move(value));
}

bool Lowering::channels_last() const {
  const auto format = node_->text("data_format", "NHWC");
  return format.size() < 2 || format[1] != 'C';
}

/// A constant axis, counted from 0 where the rank is known.
std::optional<std::int64_t> Lowering::axis_of(std::size_t i, const Value& x) {
  const auto axis = constants(i);
  if (!axis || axis->size() != 1) return fail("its axis is not a constant"), std::nullopt;
  auto result = axis->front();
  if (x.shape && result < 0) result += static_cast<std::int64_t>(x.rank());
  if (x.shape && (result < 0 || result >= static_cast<std::int64_t>(x.rank())))
    return fail("axis " + std::to_string(axis->front()) + " is out of range for " + std::to_string(x.rank()) +
                " dimensions"),
           std::nullopt;
  return result;
}

MaybeShape Lowering::broadcast(const MaybeShape& a, const MaybeShape& b) {
  if (!a || !b) return std::nullopt;
  Shape result(std::max(a->size(), b->size()), 1);
  for (std::size_t k = 0; k < result.size(); ++k) {
    const std::int64_t x = k < a->size() ? (*a)[a->size() - 1 - k] : 1, y = k < b->size() ? (*b)[b->size() - 1 - k] : 1;
    result[result.size() - 1 - k] = x == 1 ? y : y == 1 ? x : std::max(x, y);
  }
  return result;
}

Lowering::Names Lowering::aligned(const std::vector<std::size_t>& operands, bool& channels_first, MaybeShape& shape) {
  channels_first = false;
  std::size_t rank = 0;
  bool possible = true;
  shape = Shape{};
  for (const auto i : operands) {
    const Value& value = in(i);
    shape = broadcast(shape, value.shape);
    if (value.kind == Value::Kind::tensor && value.channels_first) {
      possible = possible && (rank == 0 || rank == value.rank());
      rank = value.rank();
      channels_first = true;
    }
  }
  for (const auto i : operands) {
    const auto& other = in(i).shape;
    possible = possible && other && (other->size() <= 1 || other->size() == rank);
  }
  channels_first = channels_first && possible;
  Names names;
  for (const auto i : operands) {
    Value& value = in(i);
    if (!channels_first || value.rank() == 0) {
      names.push_back(plain(value));
    } else if (value.rank() == rank) {
      names.push_back(first(value));
    } else {  // one element per channel
      std::vector<std::int64_t> axes(rank - 2);
      std::iota(axes.begin(), axes.end(), std::int64_t{1});
      const bool one = (*value.shape)[0] == 1;
      names.push_back(one ? plain(value)
                          : emit("Unsqueeze", {plain(value), integers("axes", axes)}, {}, "per_channel"));
    }
  }
  return names;
}

std::size_t Lowering::readers(const FlatNode& node) const {
  return readers_[static_cast<std::size_t>(&node - graph_.nodes.data())].size();
}

}  // namespace turnpoint::tensorflow
