// SPDX-License-Identifier: Apache-2.0
// Functions that work element by element, softmax, losses and reductions; and the table of control flow.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

namespace {

const std::unordered_map<std::string_view, const char*>& unary_kinds() {
  // Quantisation rounds and clips element by element; Relu6 and clip_by_value clip.
  static const std::unordered_map<std::string_view, const char*> table = {{"Relu", "Relu"},
                                                                          {"Relu6", "Clip"},
                                                                          {"LeakyRelu", "LeakyRelu"},
                                                                          {"Elu", "Elu"},
                                                                          {"Selu", "Selu"},
                                                                          {"Sigmoid", "Sigmoid"},
                                                                          {"Tanh", "Tanh"},
                                                                          {"Exp", "Exp"},
                                                                          {"Expm1", "Exp"},
                                                                          {"Log", "Log"},
                                                                          {"Log1p", "Log"},
                                                                          {"Sqrt", "Sqrt"},
                                                                          {"Rsqrt", "Reciprocal"},
                                                                          {"Reciprocal", "Reciprocal"},
                                                                          {"Inv", "Reciprocal"},
                                                                          {"Neg", "Neg"},
                                                                          {"Abs", "Abs"},
                                                                          {"Floor", "Floor"},
                                                                          {"Ceil", "Ceil"},
                                                                          {"Round", "Round"},
                                                                          {"Rint", "Round"},
                                                                          {"Sign", "Sign"},
                                                                          {"Sin", "Sin"},
                                                                          {"Cos", "Cos"},
                                                                          {"Tan", "Tan"},
                                                                          {"Asin", "Asin"},
                                                                          {"Acos", "Acos"},
                                                                          {"Atan", "Atan"},
                                                                          {"Sinh", "Sinh"},
                                                                          {"Cosh", "Cosh"},
                                                                          {"Asinh", "Asinh"},
                                                                          {"Acosh", "Acosh"},
                                                                          {"Atanh", "Atanh"},
                                                                          {"Erf", "Erf"},
                                                                          {"Erfc", "Erf"},
                                                                          {"Softplus", "Softplus"},
                                                                          {"Softsign", "Softsign"},
                                                                          {"LogicalNot", "Not"},
                                                                          {"IsNan", "IsNaN"},
                                                                          {"IsInf", "IsInf"},
                                                                          {"LRN", "LRN"},
                                                                          {"ClipByValue", "Clip"},
                                                                          {"Dequantize", "Clip"},
                                                                          {"QuantizeV2", "Clip"},
                                                                          {"QuantizeAndDequantize", "Clip"},
                                                                          {"QuantizeAndDequantizeV2", "Clip"},
                                                                          {"QuantizeAndDequantizeV3", "Clip"},
                                                                          {"QuantizeAndDequantizeV4", "Clip"},
                                                                          {"FakeQuantWithMinMaxArgs", "Clip"},
                                                                          {"FakeQuantWithMinMaxVars", "Clip"},
                                                                          {"FakeQuantWithMinMaxVarsPerChannel", "Clip"},
                                                                          {"L2Loss", "Abs"}};
  return table;
}

const std::unordered_map<std::string_view, const char*>& binary_kinds() {
  static const std::unordered_map<std::string_view, const char*> table = {
      {"Add", "Add"},         {"AddV2", "Add"},
      {"AddN", "Sum"},        {"AccumulateNV2", "Sum"},
      {"Sub", "Sub"},         {"Mul", "Mul"},
      {"Div", "Div"},         {"RealDiv", "Div"},
      {"FloorDiv", "Div"},    {"TruncateDiv", "Div"},
      {"DivNoNan", "Div"},    {"MulNoNan", "Mul"},
      {"Xdivy", "Div"},       {"Mod", "Mod"},
      {"FloorMod", "Mod"},    {"TruncateMod", "Mod"},
      {"Pow", "Pow"},         {"Maximum", "Max"},
      {"Minimum", "Min"},     {"Equal", "Equal"},
      {"Greater", "Greater"}, {"GreaterEqual", "GreaterOrEqual"},
      {"Less", "Less"},       {"LessEqual", "LessOrEqual"},
      {"LogicalAnd", "And"},  {"LogicalOr", "Or"},
      {"Atan2", "Div"}};
  return table;
}

bool is_comparison(std::string_view kind) {
  for (const char* name :
       {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not", "IsNaN", "IsInf"})
    if (kind == name) return true;
  return false;
}

/// DataType as ONNX numbers it, for casts.
std::int64_t cast_code(DataType type) {
  switch (type) {
    case DataType::f64: return 11;
    case DataType::f16: return 10;
    case DataType::bf16: return 16;
    case DataType::i64: return 7;
    case DataType::i32: return 6;
    case DataType::i16: return 5;
    case DataType::i8:
    case DataType::qint8: return 3;
    case DataType::u8:
    case DataType::quint8: return 2;
    case DataType::u16: return 4;
    case DataType::u32: return 12;
    case DataType::u64: return 13;
    case DataType::boolean: return 9;
    default: return 1;
  }
}

}  // namespace

void Lowering::on_unary() {
  if (!needs(1)) return;
  Value& x = in(0);
  const std::string kind = unary_kinds().at(node_->op);
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first;
  const auto name = first_order ? x.name : plain(x);
  if (failed()) return;
  const bool reduces = node_->op == "L2Loss";
  auto y = emit(kind, {name});
  if (reduces) y = emit("ReduceSum", {y}, Attributes().set("keepdims", std::int64_t{0}), "sum");
  set(0, tensor(y, reduces ? MaybeShape(Shape{}) : x.shape, is_comparison(kind) ? DataType::boolean : x.type,
                first_order && !reduces));
}

/// Shape arithmetic whose operands the file knows; the rest is folded when sizes are bound.
bool Lowering::fold_integers(std::string_view kind) {
  if (count() != 2) return false;
  const auto a = constants(0), b = constants(1);
  if (!a || !b || a->size() != 1 || b->size() != 1) return false;
  const auto x = static_cast<std::uint64_t>(a->front()), y = static_cast<std::uint64_t>(b->front());
  std::uint64_t result = 0;
  if (kind == "Add")
    result = x + y;
  else if (kind == "Sub")
    result = x - y;
  else if (kind == "Mul")
    result = x * y;
  else
    return false;
  set_constant({static_cast<std::int64_t>(result)}, in(0).rank() == 0 && in(1).rank() == 0, in(0).type);
  return true;
}

void Lowering::on_binary() {
  if (count() == 0 || !needs(count())) return;
  const std::string kind = binary_kinds().at(node_->op);
  if (fold_integers(kind) || (kind == "Mul" && dropout())) return;
  std::vector<std::size_t> operands(count());
  for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = i;
  bool first_order = false;
  MaybeShape shape;
  const auto names = aligned(operands, first_order, shape);
  if (failed()) return;
  set(0, tensor(emit(kind, names), shape, is_comparison(kind) ? DataType::boolean : in(0).type, first_order));
}

void Lowering::on_square() {
  if (!needs(1)) return;
  Value& x = in(0);
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first;
  const auto name = first_order ? x.name : plain(x);
  if (!failed()) set(0, tensor(emit("Mul", {name, name}), x.shape, x.type, first_order));
}

void Lowering::on_squared_difference() {
  if (!needs(2)) return;
  bool first_order = false;
  MaybeShape shape;
  const auto names = aligned({0, 1}, first_order, shape);
  if (failed()) return;
  const auto difference = emit("Sub", names, {}, "difference");
  set(0, tensor(emit("Mul", {difference, difference}), shape, in(0).type, first_order));
}

void Lowering::on_not_equal() {
  if (!needs(2)) return;
  bool first_order = false;
  MaybeShape shape;
  const auto names = aligned({0, 1}, first_order, shape);
  if (!failed())
    set(0, tensor(emit("Not", {emit("Equal", names, {}, "equal")}), shape, DataType::boolean, first_order));
}

void Lowering::on_select() {
  if (!needs(3)) return;
  if (random_mask(node_->inputs[0], 0)) return set_dropout(1);
  bool first_order = false;
  MaybeShape shape;
  // The older form takes one condition per row.
  const bool rows = node_->op == "Select" && in(0).rank() == 1 && in(1).rank() > 1;
  if (rows) {
    std::vector<std::int64_t> axes;
    for (std::size_t d = 1; d < in(1).rank(); ++d) axes.push_back(static_cast<std::int64_t>(d));
    const auto condition = emit("Unsqueeze", {plain(0), integers("axes", axes)}, {}, "rows");
    const auto names = aligned({1, 2}, first_order, shape);
    if (failed()) return;
    return set(0, tensor(emit("Where", {condition, names[0], names[1]}), shape, in(1).type, first_order));
  }
  const auto names = aligned({0, 1, 2}, first_order, shape);
  if (!failed()) set(0, tensor(emit("Where", names), shape, in(1).type, first_order));
}

/// Whether a value is random numbers turned into a mask: dropout, as it is written out.
bool Lowering::random_mask(Edge edge, int depth) const {
  if (edge.node < 0 || depth > 8) return false;
  const auto& node = graph_.nodes[static_cast<std::size_t>(edge.node)];
  if (node.op.starts_with("RandomUniform") || node.op.starts_with("StatelessRandomUniform")) return true;
  static constexpr std::array<std::string_view, 12> kSteps = {"Floor", "Cast",    "Identity", "GreaterEqual",
                                                              "Less",  "Greater", "Add",      "AddV2",
                                                              "Sub",   "Mul",     "RealDiv",  "LessEqual"};
  if (node.inputs.size() > 2 || std::find(kSteps.begin(), kSteps.end(), node.op) == kSteps.end()) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& e) { return random_mask(e, depth + 1); });
}

bool Lowering::dropout() {
  if (count() != 2) return false;
  const bool left = random_mask(node_->inputs[0], 0), right = random_mask(node_->inputs[1], 0);
  // In the middle of making the mask itself, the other factor is a number.
  if (left == right || in(left ? 1 : 0).rank() == 0) return false;
  return set_dropout(left ? 1 : 0), true;
}

void Lowering::set_dropout(std::size_t i) {
  Value* x = &in(i);
  // The scaling by 1 / (1 - rate) belongs to it.
  const auto& scaling = graph_.nodes[static_cast<std::size_t>(node_->inputs[i].node)];
  if ((scaling.op == "RealDiv" || scaling.op == "Mul") && scaling.inputs.size() == 2) {
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      auto& values = values_[static_cast<std::size_t>(scaling.inputs[k].node)];
      auto& number = values_[static_cast<std::size_t>(scaling.inputs[1 - k].node)];
      const auto port = static_cast<std::size_t>(scaling.inputs[k].port),
                 other = static_cast<std::size_t>(scaling.inputs[1 - k].port);
      if (port < values.size() && other < number.size() && number[other].shape && number[other].rank() == 0 &&
          values[port].kind == Value::Kind::tensor && values[port].rank() > 0) {
        x = &values[port];
        break;
      }
    }
  }
  const bool first_order = x->kind == Value::Kind::tensor && x->channels_first;
  const auto name = first_order ? x->name : plain(*x);
  const auto ratio = out_.unique(node_->name + "/ratio"), training = out_.unique(node_->name + "/training");
  out_.initializer(ratio, {DataType::f32, {}, true, {}, {0.5}});
  out_.initializer(training, {DataType::boolean, {}, true, {1}, {}});
  if (!failed()) set(0, tensor(emit("Dropout", {name, ratio, training}), x->shape, x->type, first_order));
}

void Lowering::on_cast() {
  if (!needs(1)) return;
  Value& x = in(0);
  const auto* attribute = node_->attribute("DstT");
  const DataType type = attribute && attribute->type ? *attribute->type : DataType::f32;
  if (x.kind == Value::Kind::weight && is_floating(type) && is_floating(x.type)) return set(0, x);
  if (const auto values = constants(0); values && !is_floating(type) && x.rank() <= 1)
    return set_constant(*values, x.rank() == 0, type);
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first;
  const auto name = first_order ? x.name : plain(x);
  if (!failed())
    set(0, tensor(emit("Cast", {name}, Attributes().set("to", cast_code(type))), x.shape, type, first_order));
}

void Lowering::on_softmax() {
  if (!needs(1)) return;
  Value& x = in(0);
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first;
  const auto name = first_order ? x.name : plain(x);
  const Attributes attributes = Attributes().set("axis", std::int64_t{first_order ? 1 : -1});
  if (!failed()) set(0, tensor(emit(node_->op, {name}, attributes), x.shape, x.type, first_order));
}

void Lowering::on_cross_entropy() {
  if (!needs(2)) return;
  const auto x = plain(0), labels = plain(1);
  if (failed()) return;
  const auto logarithm = emit("LogSoftmax", {x}, Attributes().set("axis", std::int64_t{-1}), "log_softmax");
  const auto chosen = emit("Mul", {logarithm, labels}, {}, "chosen");
  const auto loss =
      emit("ReduceSum", {chosen, integers("classes", {-1})}, Attributes().set("keepdims", std::int64_t{0}));
  MaybeShape shape = in(0).shape;
  if (shape && !shape->empty()) shape->pop_back();
  set(1, tensor(logarithm, in(0).shape, in(0).type));
  set(0, tensor(loss, shape, in(0).type));
}

void Lowering::on_sparse_cross_entropy() {
  if (!needs(2)) return;
  const auto x = plain(0);
  const auto labels = emit("Unsqueeze", {plain(1), integers("axes", {-1})}, {}, "labels");
  if (failed()) return;
  const auto logarithm = emit("LogSoftmax", {x}, Attributes().set("axis", std::int64_t{-1}), "log_softmax");
  const auto chosen = emit("GatherElements", {logarithm, labels}, Attributes().set("axis", std::int64_t{-1}), "chosen");
  const auto loss = emit("Squeeze", {chosen, integers("classes", {-1})});
  set(1, tensor(logarithm, in(0).shape, in(0).type));
  set(0, tensor(loss, in(1).shape, in(0).type));
}

void Lowering::on_reduce() {
  if (!needs(2)) return;
  static const std::map<std::string, const char*, std::less<>> kKinds = {
      {"Mean", "ReduceMean"}, {"Sum", "ReduceSum"}, {"Max", "ReduceMax"}, {"Min", "ReduceMin"},
      {"Prod", "ReduceProd"}, {"All", "ReduceMin"}, {"Any", "ReduceMax"}, {"EuclideanNorm", "ReduceL2"}};
  Value& x = in(0);
  const bool keep = node_->flag("keep_dims", false);
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{keep ? 1 : 0});
  const auto axes = constants(1);
  const char* kind = kKinds.find(node_->op)->second;
  if (!axes || !x.shape) {
    const auto name = plain(x), list = plain(1);
    if (!failed()) set(0, tensor(emit(kind, {name, list}, attributes), keep ? x.shape : std::nullopt, x.type));
    return;
  }
  if (axes->empty()) return set(0, x);
  const auto rank = static_cast<std::int64_t>(x.rank());
  std::vector<bool> reduced(x.rank(), false);
  for (const auto axis : *axes) {
    const auto at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      return fail("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) + " dimensions");
    reduced[static_cast<std::size_t>(at)] = true;
  }
  Shape shape;
  bool all_spatial = true;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (!reduced[d] || keep) shape.push_back(reduced[d] ? 1 : (*x.shape)[d]);
    if (d > 0 && d + 1 < x.rank()) all_spatial = all_spatial && reduced[d];
  }
  // Without its spatial dimensions an image has its channels in the same place either way.
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first && (keep || all_spatial);
  const auto order = first_order ? to_first(x.rank()) : std::vector<int>();
  std::vector<std::int64_t> list;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (reduced[first_order ? static_cast<std::size_t>(order[d]) : d]) list.push_back(static_cast<std::int64_t>(d));
  }
  const auto name = first_order ? x.name : plain(x);
  if (!failed())
    set(0, tensor(emit(kind, {name, integers("axes", list)}, attributes), shape, x.type, first_order && keep));
}

void Lowering::on_arg() {
  if (!needs(2)) return;
  Value& x = in(0);
  const auto axis = axis_of(1, x);
  const auto name = plain(x);
  if (failed() || !axis) return;
  MaybeShape shape = x.shape;
  if (shape) shape->erase(shape->begin() + static_cast<std::ptrdiff_t>(*axis));
  set(0, tensor(emit(node_->op, {name}, Attributes().set("axis", *axis).set("keepdims", std::int64_t{0})), shape,
                DataType::i64));
}

void Lowering::add_pointwise(Table& table) {
  for (const auto& [op, kind] : unary_kinds()) table[std::string(op)] = &Lowering::on_unary;
  for (const auto& [op, kind] : binary_kinds()) table[std::string(op)] = &Lowering::on_binary;
  const auto add = [&](Handler handler, std::initializer_list<const char*> ops) {
    for (const char* op : ops) table[op] = handler;
  };
  add(&Lowering::on_square, {"Square"});
  add(&Lowering::on_squared_difference, {"SquaredDifference"});
  add(&Lowering::on_not_equal, {"NotEqual"});
  add(&Lowering::on_select, {"Select", "SelectV2"});
  add(&Lowering::on_cast, {"Cast", "Bitcast"});
  add(&Lowering::on_softmax, {"Softmax", "LogSoftmax"});
  add(&Lowering::on_cross_entropy, {"SoftmaxCrossEntropyWithLogits"});
  add(&Lowering::on_sparse_cross_entropy, {"SparseSoftmaxCrossEntropyWithLogits"});
  add(&Lowering::on_reduce, {"Mean", "Sum", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm"});
  add(&Lowering::on_arg, {"ArgMax", "ArgMin"});
}

}  // namespace turnpoint::tensorflow
