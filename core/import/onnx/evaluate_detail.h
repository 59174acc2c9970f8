// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the evaluator of integer sub-graphs: sizes, element copies, broadcasting, element-wise kinds.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/import/onnx/evaluate.h"

namespace turnpoint::onnx::detail {

using Shape = std::vector<std::int64_t>;
using Inputs = std::vector<ConstantPtr>;

/// None too where a size alone is beyond what is kept, though another be 0: sizes are added up and walked along.
inline std::optional<std::size_t> elements(const Shape& shape) {
  std::size_t total = 1;
  for (const auto size : shape) {
    if (size < 0 || size > static_cast<std::int64_t>(kMaxKeptElements)) return std::nullopt;
    if (size > 0 && total > kMaxKeptElements / static_cast<std::size_t>(size)) return std::nullopt;
    total *= static_cast<std::size_t>(size);
  }
  return total;
}

inline ConstantPtr keep(Constant constant) { return std::make_shared<const Constant>(std::move(constant)); }

inline void push(Constant& to, const Constant& from, std::size_t i) {
  if (to.floating())
    to.reals.push_back(from.real(i));
  else
    to.integers.push_back(from.floating() ? static_cast<std::int64_t>(from.reals[i]) : from.integers[i]);
}

/// Row-major index of each element of `shape` in an operand broadcast to it.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& shape, const Shape& operand) : shape_(shape), strides_(shape.size(), 0) {
    std::size_t stride = 1;
    for (std::size_t k = 0; k < operand.size(); ++k) {
      const std::size_t d = operand.size() - 1 - k;
      if (operand[d] != 1) strides_[shape.size() - 1 - k] = stride;
      stride *= static_cast<std::size_t>(operand[d]);
    }
  }
  std::size_t operator()(std::size_t i) const {
    std::size_t at = 0;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const auto size = static_cast<std::size_t>(shape_[d]);
      at += (i % size) * strides_[d];
      i /= size;
    }
    return at;
  }

 private:
  Shape shape_;
  std::vector<std::size_t> strides_;
};

// One element; nullopt where the kind is not understood or the result overflows.
std::optional<std::int64_t> integer_result(const std::string& kind, std::int64_t a, std::int64_t b);
std::optional<double> real_result(const std::string& kind, double a, double b);

// Element-wise kinds of nodes; null where the kind or its operands are not understood.
ConstantPtr binary(const Node& node, const Constant& a, const Constant& b);
ConstantPtr unary(const Node& node, const Constant& a);
ConstantPtr cast(const Node& node, const Constant& a);
ConstantPtr cast(const Constant& a, ElementType type);

}  // namespace turnpoint::onnx::detail
