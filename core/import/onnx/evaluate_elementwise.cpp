// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "core/import/onnx/evaluate_detail.h"

namespace turnpoint::onnx::detail {

std::optional<std::int64_t> integer_result(const std::string& kind, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  if (kind == "Add") return static_cast<std::int64_t>(ua + ub);
  if (kind == "Sub") return static_cast<std::int64_t>(ua - ub);
  if (kind == "Mul") return static_cast<std::int64_t>(ua * ub);
  if (kind == "Div" || kind == "Mod") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
    if (kind == "Div") return a / b;
    const auto rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (kind == "Min") return std::min(a, b);
  if (kind == "Max") return std::max(a, b);
  if (kind == "Pow") {
    const double value = std::pow(static_cast<double>(a), static_cast<double>(b));
    if (!(std::abs(value) < 9e15)) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  if (kind == "And") return a && b;
  if (kind == "Or") return a || b;
  if (kind == "Xor") return !a != !b;
  return std::nullopt;
}

std::optional<double> real_result(const std::string& kind, double a, double b) {
  if (kind == "Add") return a + b;
  if (kind == "Sub") return a - b;
  if (kind == "Mul") return a * b;
  if (kind == "Div") return a / b;
  if (kind == "Min") return std::min(a, b);
  if (kind == "Max") return std::max(a, b);
  if (kind == "Pow") return std::pow(a, b);
  return std::nullopt;
}

namespace {

std::optional<bool> comparison(const std::string& kind, double a, double b) {
  if (kind == "Equal") return a == b;
  if (kind == "Greater") return a > b;
  if (kind == "GreaterOrEqual") return a >= b;
  if (kind == "Less") return a < b;
  if (kind == "LessOrEqual") return a <= b;
  return std::nullopt;
}

}  // namespace

ConstantPtr binary(const Node& node, const Constant& a, const Constant& b) {
  const auto shape = broadcast(a.shape, b.shape);
  const auto count = shape ? elements(*shape) : std::nullopt;
  if (!count) return nullptr;
  const BroadcastIndex ia(*shape, a.shape), ib(*shape, b.shape);
  const bool compares = comparison(node.kind, 0, 0).has_value();
  Constant result{compares ? ElementType::boolean : a.type, *shape, {}, {}};
  for (std::size_t i = 0; i < *count; ++i) {
    if (compares) {
      const bool equal_integers = !a.floating() && !b.floating() && node.kind == "Equal";
      result.integers.push_back(equal_integers ? a.integers[ia(i)] == b.integers[ib(i)]
                                               : *comparison(node.kind, a.real(ia(i)), b.real(ib(i))));
    } else if (result.floating()) {
      const auto value = real_result(node.kind, a.real(ia(i)), b.real(ib(i)));
      if (!value) return nullptr;
      result.reals.push_back(*value);
    } else {
      if (b.floating()) return nullptr;
      const auto value = integer_result(node.kind, a.integers[ia(i)], b.integers[ib(i)]);
      if (!value) return nullptr;
      result.integers.push_back(*value);
    }
  }
  return keep(std::move(result));
}

ConstantPtr unary(const Node& node, const Constant& a) {
  Constant result = a;
  const std::string& kind = node.kind;
  if (kind == "Not") {
    for (auto& v : result.integers) v = !v;
    return a.floating() ? nullptr : keep(std::move(result));
  }
  for (auto& v : result.integers) {
    if (kind == "Sign")
      v = (v > 0) - (v < 0);
    else if (kind == "Neg")
      v = static_cast<std::int64_t>(-static_cast<std::uint64_t>(v));
    else if (kind == "Abs")
      v = v < 0 ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(v)) : v;
    else
      return nullptr;
  }
  for (auto& v : result.reals) {
    if (kind == "Sign")
      v = (v > 0) - (v < 0);
    else if (kind == "Neg")
      v = -v;
    else if (kind == "Abs")
      v = std::abs(v);
    else if (kind == "Sqrt")
      v = std::sqrt(v);
    else if (kind == "Floor")
      v = std::floor(v);
    else if (kind == "Ceil")
      v = std::ceil(v);
    else if (kind == "Round")
      v = std::nearbyint(v);
    else if (kind == "Exp")
      v = std::exp(v);
    else if (kind == "Log")
      v = std::log(v);
    else if (kind == "Sin")
      v = std::sin(v);
    else if (kind == "Cos")
      v = std::cos(v);
    else if (kind == "Reciprocal")
      v = 1 / v;
    else
      return nullptr;
  }
  return keep(std::move(result));
}

ConstantPtr cast(const Constant& a, ElementType type) {
  Constant result{type, a.shape, {}, {}};
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_floating(type)) {
      result.reals.push_back(a.real(i));
    } else if (type == ElementType::boolean) {
      result.integers.push_back(a.floating() ? a.reals[i] != 0 : a.integers[i] != 0);
    } else if (a.floating()) {
      if (!(std::abs(a.reals[i]) < 9.2e18)) return nullptr;
      result.integers.push_back(static_cast<std::int64_t>(a.reals[i]));
    } else {
      result.integers.push_back(a.integers[i]);
    }
  }
  return keep(std::move(result));
}

ConstantPtr cast(const Node& node, const Constant& a) {
  static constexpr std::pair<std::int64_t, ElementType> kTypes[] = {
      {1, ElementType::f32},  {2, ElementType::u8},   {3, ElementType::i8},      {5, ElementType::i16},
      {6, ElementType::i32},  {7, ElementType::i64},  {9, ElementType::boolean}, {10, ElementType::f16},
      {11, ElementType::f64}, {12, ElementType::i32}, {13, ElementType::i64},    {16, ElementType::bf16}};
  for (const auto& [code, type] : kTypes)
    if (code == node.integer("to", 0)) return cast(a, type);
  return nullptr;
}

}  // namespace turnpoint::onnx::detail
