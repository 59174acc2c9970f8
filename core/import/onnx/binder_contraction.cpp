// SPDX-License-Identifier: Apache-2.0
// Convolutions, matrix products, einsum and recurrent layers.
#include <algorithm>
#include <cstdlib>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

void Binder::on_convolution(const Node& node) {
  if (!needs(node, 2)) return;
  const Shape x = shape(node, 0), w = shape(node, 1);
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size())
    return fail(node, "a convolution needs an input and a weight of the same rank, 3 to 5");
  const std::size_t spatial = x.size() - 2;
  ConvolutionShape c;
  c.transposed = node.kind == "ConvTranspose";
  c.kernel.assign(w.begin() + 2, w.end());
  c.strides = spatial_attribute(node, "strides", spatial, 1);
  c.dilations = spatial_attribute(node, "dilations", spatial, 1);
  c.groups = node.integer("group", 1);
  if (!pads_of(node, x, c.kernel, c.strides, c.dilations, c.pads_begin, c.pads_end)) return;
  if (c.transposed) {
    const auto extra = spatial_attribute(node, "output_padding", spatial, 0), wanted = node.integers("output_shape");
    if (extra.size() != spatial) return fail(node, "output_padding has the wrong number of dimensions");
    constexpr std::int64_t kLimit = std::int64_t{1} << 30, kLargest = std::int64_t{1} << 60;
    for (std::size_t s = 0; s < spatial; ++s) {
      if (extra[s] <= -kLimit || extra[s] >= kLimit) return fail(node, "output_padding is out of range");
      if (x[s + 2] > kLargest / c.strides[s]) return fail(node, "its result is too large");
      if (wanted.size() == spatial && (wanted[s] < 1 || wanted[s] > kLargest))
        return fail(node, "output_shape is out of range");
      const std::int64_t full = (x[s + 2] - 1) * c.strides[s] + (c.kernel[s] - 1) * c.dilations[s] + 1;
      if (wanted.size() == spatial)
        c.pads_end[s] = full - c.pads_begin[s] - wanted[s];
      else if (node.text("auto_pad", "NOTSET").rfind("SAME", 0) == 0)
        c.pads_end[s] = full - c.pads_begin[s] - x[s + 2] * c.strides[s];
      else
        c.pads_end[s] -= extra[s];
    }
  }
  const auto data = operand(node, 0), kernel = weight(node, 1);
  set(node, 0, builder_->convolution(operator_name(node), data, kernel, optional_weight(node, 2), c));
}

void Binder::on_gemm(const Node& node) {
  if (!needs(node, 2)) return;
  if (shape(node, 0).size() != 2 || shape(node, 1).size() != 2)
    return fail(node, "a general matrix product needs two matrices");
  const Value left = in(node, 0);
  const bool grouped = !left.groups.empty() && left.groups[1] == 1 && node.integer("transA", 0) == 0;
  const auto a = grouped ? left.tensor : operand(node, 0);
  const auto groups = grouped ? left.groups : std::vector<std::uint8_t>();
  Value& right = in(node, 1);
  if (right.kind == Value::Kind::constant) weight(node, 1);
  bool transpose_b = node.integer("transB", 0) != 0;
  TensorId b;
  if (right.kind == Value::Kind::parameter && right.transposed) {
    transpose_b = !transpose_b;
    Value plain = right;
    std::swap(right.shape[0], right.shape[1]);
    right.transposed = false;
    b = weight(node, 1);
    right = plain;
  } else {
    b = weight(node, 1);
  }
  const auto y = builder_->matmul(operator_name(node), a, b, node.integer("transA", 0) != 0, transpose_b, "Gemm");
  if (!has(node, 2)) return set(node, 0, y, groups);
  // Numbers that the file holds there are a weight, be it a single one.
  if (in(node, 2).kind == Value::Kind::constant && graph_.values[node.inputs[2]].initializer) weight(node, 2);
  const auto bias_shape = shape(node, 2);
  const auto n = builder_->tensor(y).shape.empty() ? 1 : builder_->tensor(y).shape.back();
  if (bias_shape.size() == 1 && bias_shape[0] == n && builder_->add_bias(y, weight(node, 2))) return set(node, 0, y, groups);
  set(node, 0, y, groups);
  if (node.output(0) < 0) return;
  const auto terms = grouped_operands({node.outputs[0], node.inputs[2]});
  set(node, 0, builder_->elementwise(operator_name(node) + "/bias", "Add", terms.tensors), terms.groups);
}

void Binder::on_matmul(const Node& node) {
  if (!needs(node, 2)) return;
  if (matmul_of_groups(node)) return;
  bool transposed[2] = {false, false};
  TensorId operands[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Value& value = in(node, i);
    // A matrix of fixed numbers in a product is a weight wherever it was written.
    const bool weight_slot = value.shape.size() == 2 && (i == 1 || in(node, 1).kind == Value::Kind::tensor);
    if (value.kind == Value::Kind::constant && weight_slot) materialise(node.input(i), true);
    if (value.kind == Value::Kind::parameter && value.transposed) {
      const Value seen = value;
      std::swap(value.shape[0], value.shape[1]);
      value.transposed = false;
      value.tensor = {};
      operands[i] = materialise(node.input(i), true);
      value = seen;
      transposed[i] = true;
    } else {
      operands[i] = operand(node, i);
    }
  }
  set(node, 0, builder_->matmul(operator_name(node), operands[0], operands[1], transposed[0], transposed[1]));
}

/// Products whose leading dimensions have parts: both operands alike, or a plain matrix on the right.
bool Binder::matmul_of_groups(const Node& node) {
  const Value &left = in(node, 0), &right = in(node, 1);
  const std::size_t rank = left.shape.size();
  if (left.kind != Value::Kind::tensor || rank < 2 || (left.groups.empty() && right.groups.empty())) return false;
  const auto plain_matrix = [](const Value& value) {
    return is_whole(value.groups, value.shape.size() - 1) && is_whole(value.groups, value.shape.size() - 2);
  };
  if (!is_whole(left.groups, rank - 1) || right.shape.size() < 2) return false;
  if (right.kind != Value::Kind::tensor && right.shape.size() == 2) {
    if (right.kind == Value::Kind::constant) materialise(node.inputs[1], true);
    Value& weight_value = in(node, 1);
    const bool transposed = weight_value.kind == Value::Kind::parameter && weight_value.transposed;
    const Value seen = weight_value;
    if (transposed) {
      std::swap(weight_value.shape[0], weight_value.shape[1]);
      weight_value.transposed = false;
      weight_value.tensor = {};
    }
    const auto w = materialise(node.inputs[1], true);
    if (transposed) weight_value = seen;
    set(node, 0, builder_->matmul(operator_name(node), left.tensor, w, false, transposed), left.groups);
    return true;
  }
  // The last two dimensions play different parts; only the leading ones must have the same parts.
  if (right.kind != Value::Kind::tensor || right.shape.size() != rank || rank < 3 || !plain_matrix(left) ||
      !plain_matrix(right))
    return false;
  if (left.groups != right.groups) return false;
  const auto &a = builder_->tensor(left.tensor).shape, &b = builder_->tensor(right.tensor).shape;
  if (!std::equal(a.begin(), a.end() - 2, b.begin())) return false;
  set(node, 0, builder_->matmul(operator_name(node), left.tensor, right.tensor), left.groups);
  return true;
}

void Binder::on_einsum(const Node& node) {
  auto equation = node.text("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  if (equation.find("->") == std::string::npos) {  // implicit: every index that occurs once, in alphabetical order
    std::string out;
    for (char letter = 'A'; letter <= 'z'; ++letter)
      if (std::count(equation.begin(), equation.end(), letter) == 1) out += letter;
    equation += "->" + out;
  }
  const auto arrow = equation.find("->"), comma = equation.find(',');
  if (node.inputs.size() == 1 && equation.find('.') == std::string::npos && comma == std::string::npos)
    return einsum_of_one(node, equation.substr(0, arrow), equation.substr(arrow + 2));
  const bool plain = equation.find('.') == std::string::npos && arrow != std::string::npos &&
                     comma != std::string::npos && comma < arrow;
  if (node.inputs.size() != 2 || !plain || equation.find(',', comma + 1) != std::string::npos) {
    return fail(node, "einsum '" + equation + "' is not supported: two operands without ellipsis are");
  }
  if (!needs(node, 2)) return;
  const std::string terms[] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)},
                    out = equation.substr(arrow + 2);
  const TensorId operands[] = {operand(node, 0), weight(node, 1)};
  std::string letters;
  std::vector<LoopDimension> dims;
  std::vector<std::vector<std::uint8_t>> walks[3];
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& tensor = builder_->tensor(operands[k]);
    if (terms[k].size() != tensor.shape.size())
      return fail(node, "einsum '" + equation + "' does not fit its operands");
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      if (terms[k].find(terms[k][d]) != d)
        return fail(node, "einsum '" + equation + "' repeats an index in one operand, which is not supported");
      auto at = letters.find(terms[k][d]);
      if (at == std::string::npos) {
        at = letters.size();
        letters += terms[k][d];
        DimName name = tensor.dims[d];
        const bool taken = std::any_of(dims.begin(), dims.end(), [&](const auto& dim) { return dim.name == name; });
        if (k == 1 && (name == DimName::sequence || name == DimName::key_sequence) && taken)
          name = DimName::key_sequence;
        else if (k == 1 && (taken || name == DimName::batch || name == DimName::other))
          name = DimName::out_channel;
        dims.push_back({name, DimRole::parallel, tensor.shape[d], name != DimName::key_sequence});
      } else if (dims[at].size != tensor.shape[d]) {
        return fail(node, "einsum '" + equation + "' does not fit its operands");
      }
      walks[k].push_back({static_cast<std::uint8_t>(at)});
    }
  }
  Dims out_dims;
  for (const char letter : out) {
    const auto at = letters.find(letter);
    if (at == std::string::npos || out.find(letter) != out.rfind(letter))
      return fail(node, "einsum '" + equation + "' has an index in its output that is in no operand, or twice");
    walks[2].push_back({static_cast<std::uint8_t>(at)});
    out_dims.push_back(dims[at].name == DimName::out_channel ? DimName::channel : dims[at].name);
  }
  set(node, 0,
      builder_->contraction(operator_name(node), "Einsum", dims, operands[0], walks[0], operands[1], walks[1], walks[2],
                            out_dims));
}

/// A transposition, a sum over the indices that are not in the result, or both.
void Binder::einsum_of_one(const Node& node, const std::string& term, const std::string& out) {
  if (!needs(node, 1)) return;
  auto x = operand(node, 0);
  bool fits = term.size() == shape(node, 0).size();
  std::vector<int> order, summed;
  for (const char letter : out) {
    fits = fits && term.find(letter) != std::string::npos && out.find(letter) == out.rfind(letter);
    order.push_back(static_cast<int>(term.find(letter)));
  }
  for (std::size_t d = 0; d < term.size(); ++d) {
    fits = fits && term.find(term[d]) == d;
    if (out.find(term[d]) == std::string::npos) {
      summed.push_back(static_cast<int>(order.size()));
      order.push_back(static_cast<int>(d));
    }
  }
  if (!fits) return fail(node, "einsum '" + term + "->" + out + "' does not fit its operand or repeats an index");
  if (!std::is_sorted(order.begin(), order.end())) x = builder_->transpose(operator_name(node) + "/order", x, order);
  set(node, 0, summed.empty() ? x : builder_->reduction(operator_name(node), "Einsum", x, summed, false));
}

void Binder::on_recurrent(const Node& node) {
  if (!needs(node, 3)) return;
  const Shape x = shape(node, 0), r = shape(node, 2);
  if (x.size() != 3 || r.size() != 3)
    return fail(node, "a recurrent layer needs an input and weights of three dimensions");
  const int gates = node.kind == "LSTM" ? 4 : node.kind == "GRU" ? 3 : 1;
  const int directions = node.text("direction", "forward") == "bidirectional" ? 2 : 1;
  const auto hidden = node.integer("hidden_size", r[2]);
  const bool batch_first = node.integer("layout", 0) == 1;
  const auto name = operator_name(node);
  auto data = operand(node, 0);
  if (batch_first) data = builder_->transpose(name + "/time_first", data, {1, 0, 2});
  auto y = builder_->recurrent(name, node.kind, data, weight(node, 1), weight(node, 2), optional_weight(node, 3), gates,
                               directions, hidden, false);
  if (builder_->error()) return;
  const Shape full = builder_->tensor(y).shape;
  if (node.output(0) >= 0) set(node, 0, batch_first ? builder_->transpose(name + "/batch_first", y, {2, 0, 1, 3}) : y);
  // The states after the last step are a part of the output; the cell state has the same shape and the same origin.
  static constexpr const char* kStates[] = {"", "/last_output", "/last_state"};
  for (std::size_t k = 1; k <= 2; ++k) {
    const int value = node.output(k);
    if (value < 0 || (graph_.values[value].consumers.empty() && !graph_.values[value].result)) continue;
    const auto last = builder_->slice(name + kStates[k], "Slice", y, {1, full[1], full[2], full[3]});
    auto state = builder_->reshape(name + kStates[k] + "/view", last, {full[1], full[2], full[3]});
    if (batch_first) state = builder_->transpose(name + kStates[k] + "/batch_first", state, {1, 0, 2});
    set(node, k, state);
  }
}

}  // namespace turnpoint::onnx
