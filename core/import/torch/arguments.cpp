// SPDX-License-Identifier: Apache-2.0
// What a node of the program is called with, as ONNX values and attributes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/import/torch/lowering.h"

namespace turnpoint::torch_program {

using Kind = Argument::Kind;

std::int64_t whole_number(double number) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (std::isnan(number)) return 0;
  if (number >= kBeyond) return Limits::max();
  return number <= -kBeyond ? Limits::min() : static_cast<std::int64_t>(number);
}

const Argument* Lowering::argument(std::string_view name) const {
  for (const auto& [key, given] : node_->inputs)
    if (key == name) return &given;
  return nullptr;
}

bool Lowering::has(std::string_view name) const {
  const auto* given = argument(name);
  return given && given->kind != Kind::none;
}

const std::string& Lowering::first_tensor() const {
  static const std::string none;
  for (const auto& [key, given] : node_->inputs)
    if ((given.kind == Kind::tensor || given.kind == Kind::tensors) && !given.tensors.empty())
      return given.tensors.front();
  return none;
}

std::string Lowering::tensor(const std::string& name) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  fail("reads '" + name + "', which nothing makes");
  return {};
}

std::string Lowering::scalar(double number, DataType type) {
  const bool real = tensorflow::is_floating(type);
  const std::string name = out_.unique(node_->name + "/number");
  if (real)
    out_.initializer(name, {DataType::f32, {}, true, {}, {number}});
  else
    out_.initializer(name, {DataType::i64, {}, true, {whole_number(number)}, {}});
  return name;
}

std::string Lowering::scalar(const Number& number) {
  if (number.name.empty()) {
    const std::string name = out_.unique(node_->name + "/number");
    out_.initializer(name, {DataType::i64, {}, true, {number.value}, {}});
    return name;
  }
  const auto found = numbers_.find(number.name);
  if (found != numbers_.end()) return found->second;
  fail("reads the number '" + number.name + "', which nothing makes");
  return {};
}

std::string Lowering::list(const std::vector<std::int64_t>& numbers) {
  const std::string name = out_.unique(node_->name + "/list");
  out_.initializer(name, {DataType::i64, {static_cast<std::int64_t>(numbers.size())}, true, numbers, {}});
  return name;
}

std::string Lowering::list(const std::vector<Number>& numbers) {
  std::vector<std::int64_t> known;
  for (const Number& number : numbers)
    if (number.name.empty()) known.push_back(number.value);
  if (known.size() == numbers.size()) return list(known);
  Names parts;
  const std::string axes = list(std::vector<std::int64_t>{0});
  for (const Number& number : numbers)
    parts.push_back(number.name.empty() ? list(std::vector<std::int64_t>{number.value})
                                        : emit("Unsqueeze", {scalar(number), axes}));
  Attributes first;
  first.set("axis", std::int64_t{0});
  return emit("Concat", std::move(parts), std::move(first));
}

std::string Lowering::value(const Argument& given) {
  if (given.kind == Kind::tensor && !given.tensors.empty()) return tensor(given.tensors.front());
  const auto* like = meta(first_tensor());
  const DataType type = like ? like->type : DataType::f32;
  if (given.kind == Kind::integers && !given.integers.empty()) {
    const Number& number = given.integers.front();
    return number.name.empty() && tensorflow::is_floating(type) ? scalar(double(number.value), type) : scalar(number);
  }
  if (given.kind == Kind::reals && !given.reals.empty()) return scalar(given.reals.front(), DataType::f32);
  if (given.kind == Kind::flag) return scalar(given.flag ? 1 : 0, type);
  fail("has an argument that is neither a tensor nor a number");
  return {};
}

std::string Lowering::value(std::string_view name) {
  const auto* given = argument(name);
  if (given && given->kind != Kind::none) return value(*given);
  fail("has no argument '" + std::string(name) + "'");
  return {};
}

Lowering::Names Lowering::tensors(std::string_view name) {
  Names made;
  if (const auto* given = argument(name); given && (given->kind == Kind::tensors || given->kind == Kind::tensor))
    for (const auto& one : given->tensors) made.push_back(one.empty() ? std::string() : tensor(one));
  if (made.empty()) fail("has no list of tensors '" + std::string(name) + "'");
  return made;
}

std::vector<Number> Lowering::numbers(std::string_view name) {
  const auto* given = argument(name);
  return given && given->kind == Kind::integers ? given->integers : std::vector<Number>();
}

std::int64_t Lowering::integer(std::string_view name, std::int64_t otherwise) {
  const auto given = numbers(name);
  if (given.empty()) return otherwise;
  if (!given.front().name.empty()) fail("'" + std::string(name) + "' depends on the size of the input");
  return given.front().value;
}

std::vector<std::int64_t> Lowering::integers(std::string_view name, std::size_t count) {
  std::vector<std::int64_t> made;
  for (const Number& number : numbers(name)) {
    if (!number.name.empty()) fail("'" + std::string(name) + "' depends on the size of the input");
    made.push_back(number.value);
  }
  if (made.size() == 1 && count > 1) made.resize(count, made.front());
  return made;
}

double Lowering::real(std::string_view name, double otherwise) const {
  const auto* given = argument(name);
  if (!given) return otherwise;
  if (given->kind == Kind::reals && !given->reals.empty()) return given->reals.front();
  if (given->kind == Kind::integers && !given->integers.empty()) return double(given->integers.front().value);
  return otherwise;
}

bool Lowering::flag(std::string_view name, bool otherwise) const {
  const auto* given = argument(name);
  return given && given->kind == Kind::flag ? given->flag : otherwise;
}

std::vector<Size> Lowering::sizes_of(std::string_view name) {
  const auto* given = argument(name);
  const auto* known = given && !given->tensors.empty() ? meta(given->tensors.front()) : nullptr;
  if (known) return known->sizes;
  fail("the shape of its argument '" + std::string(name) + "' is not in the file");
  return {};
}

std::size_t Lowering::rank_of(std::string_view name) { return sizes_of(name).size(); }

/// A dimension from 0 on; a scalar is counted as having one, as PyTorch does.
std::int64_t Lowering::axis(std::string_view name, std::int64_t otherwise, std::size_t rank) {
  const auto count = std::int64_t(std::max<std::size_t>(rank, 1));
  const auto given = integer(name, otherwise), made = given < 0 ? given + count : given;
  if (made < 0 || made >= count) {
    fail("dimension " + std::to_string(given) + " of " + std::to_string(rank));
    return 0;
  }
  return made;
}

DataType Lowering::result_type() const {
  const auto* made = node_->outputs.empty() ? nullptr : meta(node_->outputs.front());
  return made ? made->type : DataType::f32;
}

}  // namespace turnpoint::torch_program
