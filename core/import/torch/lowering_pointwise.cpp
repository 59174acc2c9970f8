// SPDX-License-Identifier: Apache-2.0
// What works element by element, what reduces, and numbers.
#include <algorithm>

#include "core/import/torch/lowering.h"

namespace turnpoint::torch_program {

namespace {

/// Functions of one tensor, and of two, that ONNX has by another name.
constexpr std::pair<const char*, const char*> kUnary[] = {
    {"relu", "Relu"},         {"sigmoid", "Sigmoid"},     {"tanh", "Tanh"},
    {"exp", "Exp"},           {"sqrt", "Sqrt"},           {"neg", "Neg"},
    {"abs", "Abs"},           {"cos", "Cos"},             {"sin", "Sin"},
    {"log", "Log"},           {"erf", "Erf"},             {"softplus", "Softplus"},
    {"mish", "Mish"},         {"silu", "Swish"},          {"hardswish", "HardSwish"},
    {"elu", "Elu"},           {"selu", "Selu"},           {"celu", "Celu"},
    {"floor", "Floor"},       {"leaky_relu", "LeakyRelu"}, {"hardtanh", "Clip"},
    {"relu6", "Clip"},        {"clamp", "Clip"},          {"clamp_min", "Clip"},
    {"clamp_max", "Clip"},    {"ceil", "Ceil"},           {"round", "Round"},
    {"sign", "Sign"},         {"reciprocal", "Reciprocal"}, {"logical_not", "Not"},
    {"bitwise_not", "Not"},   {"isnan", "IsNaN"},         {"isinf", "IsInf"},
    {"log1p", "Log"},         {"expm1", "Exp"},           {"log2", "Log"},
    {"log_sigmoid", "Softplus"}, {"hardsigmoid", "HardSigmoid"}, {"tan", "Tan"},
    {"asin", "Asin"},         {"acos", "Acos"},           {"atan", "Atan"},
    {"sinh", "Sinh"},         {"cosh", "Cosh"},           {"softsign", "Softsign"}};
constexpr std::pair<const char*, const char*> kBinary[] = {
    {"mul", "Mul"},           {"div", "Div"},         {"pow", "Pow"},           {"remainder", "Mod"},
    {"fmod", "Mod"},          {"maximum", "Max"},     {"minimum", "Min"},       {"eq", "Equal"},
    {"lt", "Less"},           {"le", "LessOrEqual"},  {"gt", "Greater"},        {"ge", "GreaterOrEqual"},
    {"logical_and", "And"},   {"__and__", "And"},     {"bitwise_and", "And"},   {"logical_or", "Or"},
    {"__or__", "Or"},         {"bitwise_or", "Or"},   {"logical_xor", "Xor"},   {"__xor__", "Xor"},
    {"bitwise_xor", "Xor"},   {"floor_divide", "Div"}, {"true_divide", "Div"},  {"prelu", "PRelu"},
    {"_prelu_kernel", "PRelu"}, {"atan2", "Div"}};
constexpr std::pair<const char*, const char*> kReduce[] = {
    {"mean", "ReduceMean"}, {"sum", "ReduceSum"},   {"amax", "ReduceMax"},  {"amin", "ReduceMin"},
    {"prod", "ReduceProd"}, {"any", "ReduceMax"},   {"all", "ReduceMin"},   {"logsumexp", "ReduceLogSumExp"},
    {"var", "ReduceMean"},  {"std", "ReduceMean"},  {"argmax", "ArgMax"},   {"argmin", "ArgMin"}};
/// Arithmetic of sizes.
constexpr std::pair<const char*, const char*> kNumbers[] = {
    {"_operator.add", "Add"}, {"_operator.sub", "Sub"},      {"_operator.mul", "Mul"},
    {"_operator.mod", "Mod"}, {"_operator.floordiv", "Div"}, {"_operator.truediv", "Div"},
    {"math.trunc", ""},       {"sym_int", ""},               {"sym_float", ""},
    {"sym_max", "Max"},       {"sym_min", "Min"}};

template <class List>
std::string onnx_name(const List& list, std::string_view name) {
  for (const auto& [own, other] : list)
    if (name == own) return other;
  return {};
}

}  // namespace

void Lowering::add_pointwise(Table& table) {
  const auto add = [&](Handler handler, std::initializer_list<const char*> kinds) {
    for (const char* kind : kinds) table[kind] = handler;
  };
  for (const auto& [own, other] : kUnary) table[own] = &Lowering::on_unary;
  for (const auto& [own, other] : kBinary) table[own] = &Lowering::on_binary;
  for (const auto& [own, other] : kReduce) table[own] = &Lowering::on_reduce;
  for (const auto& [own, other] : kNumbers) table[own] = &Lowering::on_number;
  add(&Lowering::on_nothing, {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
                              "sym_constrain_range_for_size", "_operator.ge", "_operator.le", "_operator.gt",
                              "_operator.lt", "_operator.eq", "_operator.ne", "_operator.and_", "_operator.or_"});
  add(&Lowering::on_identity, {"contiguous", "clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "feature_dropout",
                               "positive", "view_as", "conj", "resolve_conj", "resolve_neg", "copy", "alpha_dropout"});
  add(&Lowering::on_cast, {"to", "_to_copy", "float", "half", "bfloat16", "bool", "long", "int", "double",
                           "convert_element_type"});
  add(&Lowering::on_like, {"type_as"});
  add(&Lowering::on_rsqrt, {"rsqrt"});
  add(&Lowering::on_square, {"square"});
  add(&Lowering::on_gelu, {"gelu"});
  add(&Lowering::on_scaled_sum, {"add", "sub"});
  add(&Lowering::on_reverse_subtraction, {"rsub"});
  add(&Lowering::on_not_equal, {"ne"});
  add(&Lowering::on_where, {"where"});
  add(&Lowering::on_masked_fill, {"masked_fill"});
  add(&Lowering::on_addcmul, {"addcmul", "addcdiv"});
  add(&Lowering::on_extreme, {"max", "min"});
  add(&Lowering::on_norm_of_all, {"linalg_vector_norm", "norm"});
  add(&Lowering::on_softmax, {"softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax"});
  add(&Lowering::on_cumsum, {"cumsum"});
  add(&Lowering::on_dropout, {"dropout", "native_dropout"});
  add(&Lowering::on_sym_size, {"sym_size"});
}

void Lowering::on_nothing() {}
void Lowering::on_identity() { set(emit("Identity", {tensor(first_tensor())})); }

void Lowering::on_cast() {
  const DataType type = result_type();
  if (type == DataType::invalid || type == DataType::complex64 || type == DataType::complex128)
    return fail("makes numbers of a type that is not supported");
  if (const auto* from = meta(first_tensor()); from && from->type == type) return on_identity();
  Attributes to;
  to.set("to", tensorflow::onnx_type(type));
  set(emit("Cast", {tensor(first_tensor())}, std::move(to)));
}
void Lowering::on_like() { set(emit("CastLike", {value("self"), value("other")})); }

void Lowering::on_unary() { set(emit(onnx_name(kUnary, kind_), {tensor(first_tensor())})); }
void Lowering::on_rsqrt() { set(emit("Reciprocal", {emit("Sqrt", {tensor(first_tensor())})})); }
void Lowering::on_square() {
  const std::string x = tensor(first_tensor());
  set(emit("Mul", {x, x}));
}
void Lowering::on_gelu() {
  Attributes how;
  if (const auto* given = argument("approximate"); given && !given->text.empty()) how.text("approximate", given->text);
  set(emit("Gelu", {tensor(first_tensor())}, std::move(how)));
}

void Lowering::on_binary() {
  if (node_->inputs.size() < 2) return fail("has fewer than two operands");
  set(emit(onnx_name(kBinary, kind_), {value(node_->inputs[0].second), value(node_->inputs[1].second)}));
}

void Lowering::on_scaled_sum() {
  if (node_->inputs.size() < 2) return fail("has fewer than two operands");
  std::string other = value(node_->inputs[1].second);
  if (has("alpha") && real("alpha", 1) != 1) other = emit("Mul", {other, value("alpha")});
  set(emit(kind_ == "add" ? "Add" : "Sub", {value(node_->inputs[0].second), other}));
}
void Lowering::on_reverse_subtraction() { set(emit("Sub", {value("other"), value("self")})); }
void Lowering::on_not_equal() { set(emit("Not", {emit("Equal", {value("self"), value("other")})})); }
void Lowering::on_where() {
  if (!has("other")) return fail("its result has as many elements as hold, which the sizes do not tell");
  set(emit("Where", {value("condition"), value("self"), value("other")}));
}
void Lowering::on_masked_fill() { set(emit("Where", {value("mask"), value("value"), value("self")})); }
void Lowering::on_addcmul() {
  const std::string product = emit(kind_ == "addcmul" ? "Mul" : "Div", {value("tensor1"), value("tensor2")});
  set(emit("Add", {value("self"), product}));
}

void Lowering::on_reduce() {
  const auto rank = rank_of("self");
  std::vector<std::int64_t> axes = integers("dim");
  for (auto& one : axes) one += one < 0 ? std::int64_t(rank) : 0;
  Attributes how;
  const std::string kind = onnx_name(kReduce, kind_);
  how.set("keepdims", std::int64_t{flag("keepdim", false)});
  if (kind == "ArgMax" || kind == "ArgMin") {
    if (axes.size() != 1) return fail("over all elements is not supported");
    how.set("axis", axes.front());
    return set(emit(kind, {value("self")}, std::move(how)));
  }
  set(emit(kind, {value("self"), axes.empty() ? std::string() : list(axes)}, std::move(how)));
}

/// max and min: of all elements, along a dimension with the places, or of two tensors.
void Lowering::on_extreme() {
  const bool largest = kind_ == "max";
  if (overload_ == "other") return set(emit(largest ? "Max" : "Min", {value("self"), value("other")}));
  Attributes how, places;
  how.set("keepdims", std::int64_t{flag("keepdim", false)});
  if (!has("dim")) return set(emit(largest ? "ReduceMax" : "ReduceMin", {value("self")}, std::move(how)));
  const std::int64_t at = axis("dim", -1, rank_of("self"));
  set(0, emit(largest ? "ReduceMax" : "ReduceMin", {value("self"), list(std::vector<std::int64_t>{at})}, how));
  places.set("axis", at).set("keepdims", std::int64_t{flag("keepdim", false)});
  set(1, emit(largest ? "ArgMax" : "ArgMin", {value("self")}, std::move(places)));
}

void Lowering::on_norm_of_all() {
  std::vector<std::int64_t> axes = integers("dim");
  const auto rank = std::int64_t(rank_of("self"));
  for (auto& one : axes) one += one < 0 ? rank : 0;
  Attributes how;
  how.set("keepdims", std::int64_t{flag("keepdim", false)});
  set(emit("ReduceL2", {value("self"), axes.empty() ? std::string() : list(axes)}, std::move(how)));
}

void Lowering::on_softmax() {
  Attributes how;
  how.set("axis", axis("dim", -1, rank_of(node_->inputs.empty() ? "" : node_->inputs.front().first)));
  set(emit(kind_.find("log") == kind_.npos ? "Softmax" : "LogSoftmax", {tensor(first_tensor())}, std::move(how)));
}

void Lowering::on_cumsum() {
  set(emit("CumSum", {value("self"), list(std::vector<std::int64_t>{axis("dim", 0, rank_of("self"))})}));
}

void Lowering::on_dropout() {
  if (!flag("train", false)) return on_identity();
  set(0, emit("Dropout", {tensor(first_tensor()), scalar(real("p", 0.5), DataType::f32)}));
}

/// Sizes are scalars of 64 bits; what is computed of them is known once the input's sizes are.
void Lowering::on_number() {
  if (node_->outputs.empty()) return;
  Names operands;
  for (const auto& [name, given] : node_->inputs) {
    if (given.kind == Argument::Kind::integers && given.integers.size() == 1)
      operands.push_back(scalar(given.integers.front()));
    else
      return;  // of a number with a fraction: whoever reads it says so
  }
  const std::string kind = onnx_name(kNumbers, kind_);
  if (operands.empty() || (!kind.empty() && operands.size() != 2)) return fail("has operands that are no numbers");
  numbers_[node_->outputs.front()] = kind.empty() ? operands.front() : emit(kind, std::move(operands));
}

void Lowering::on_sym_size() {
  if (node_->outputs.empty()) return;
  const auto at = axis("dim", 0, rank_of("self"));
  Attributes first;
  first.set("axis", std::int64_t{0});
  numbers_[node_->outputs.front()] =
      emit("Gather", {emit("Shape", {value("self")}), scalar(Number{at, {}})}, std::move(first));
}

}  // namespace turnpoint::torch_program
