// SPDX-License-Identifier: Apache-2.0
// The elementwise functions, by the name that the model's source gives them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace turnpoint::step {

/// What backward of an elementwise operator may read.
struct Saved {
  std::span<const bool> inputs;  ///< per operand
  std::span<const bool> wanted;  ///< per operand: a gradient is wanted
  bool output = false;
};

enum class FunctionKind : std::uint8_t {
  sum,
  difference,
  linear,
  product,
  relu,
  tanh,
  tanh_of_linear,
  sigmoid,
  exponential,
  gelu,
  silu,
  gated_silu,
  gated_gelu,
  square_of_difference,
  mixed,
};

/// A function of any number of operands with its derivatives, which read saved values alone.
struct Function {
  FunctionKind kind;
  double (*value)(std::span<const double> x, const Saved& saved);
  /// Derivative by operand k; `x` holds 0 for operands that are not saved, `y` 0 where the output is not.
  double (*slope)(std::span<const double> x, double y, std::size_t k, const Saved& saved);
};
/// How much operand k counts where none may be mistaken for another.
double operand_weight(std::size_t k);
/// The named function if what it needs is saved, else the stand-in of its class: linear (nothing saved), a hyperbolic
/// tangent (output saved), a sum of what is not saved and a smooth product of what is.
Function function_of(std::string_view name, const Saved& saved);

}  // namespace turnpoint::step
