// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/kernels/functions.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::step {

namespace {

using X = std::span<const double>;

double weight(std::size_t k) { return operand_weight(k); }

double sum(X x, const Saved&) {
  double total = 0;
  for (const double v : x) total += v;
  return total;
}
double one(X, double, std::size_t, const Saved&) { return 1; }

double difference(X x, const Saved&) {
  double total = x.front();
  for (std::size_t k = 1; k < x.size(); ++k) total -= x[k];
  return total;
}
double difference_slope(X, double, std::size_t k, const Saved&) { return k == 0 ? 1 : -1; }

double linear(X x, const Saved&) {
  double total = 0;
  for (std::size_t k = 0; k < x.size(); ++k) total += weight(k) * x[k];
  return total;
}
double linear_slope(X, double, std::size_t k, const Saved&) { return weight(k); }

double product(X x, const Saved&) {
  double total = 1;
  for (const double v : x) total *= v;
  return total;
}
double product_slope(X x, double, std::size_t k, const Saved&) {
  double total = 1;
  for (std::size_t i = 0; i < x.size(); ++i) total *= i == k ? 1 : x[i];
  return total;
}

double relu(X x, const Saved& s) { return std::max(0.0, sum(x, s)); }
double relu_slope(X, double y, std::size_t, const Saved&) { return y > 0 ? 1 : 0; }

double tanh_of_sum(X x, const Saved& s) { return std::tanh(sum(x, s)); }
double tanh_slope(X, double y, std::size_t, const Saved&) { return 1 - y * y; }

double tanh_of_linear(X x, const Saved& s) { return std::tanh(linear(x, s)); }
double tanh_of_linear_slope(X, double y, std::size_t k, const Saved&) { return (1 - y * y) * weight(k); }

double logistic(double v) { return 1 / (1 + std::exp(-v)); }
double sigmoid(X x, const Saved& s) { return logistic(sum(x, s)); }
double sigmoid_slope(X, double y, std::size_t, const Saved&) { return y * (1 - y); }

double exponential(X x, const Saved& s) { return std::exp(sum(x, s)); }
double exponential_slope(X, double y, std::size_t, const Saved&) { return y; }

double gelu_of(double v) { return 0.5 * v * (1 + std::erf(v * M_SQRT1_2)); }
double gelu_slope_of(double v) {
  return 0.5 * (1 + std::erf(v * M_SQRT1_2)) + v * std::exp(-0.5 * v * v) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
}
double silu_of(double v) { return v * logistic(v); }
double silu_slope_of(double v) { return logistic(v) * (1 + v * (1 - logistic(v))); }

double gelu(X x, const Saved&) { return gelu_of(x[0]); }
double gelu_slope(X x, double, std::size_t, const Saved&) { return gelu_slope_of(x[0]); }
double silu(X x, const Saved&) { return silu_of(x[0]); }
double silu_slope(X x, double, std::size_t, const Saved&) { return silu_slope_of(x[0]); }

double gated_silu(X x, const Saved&) { return silu_of(x[0]) * x[1]; }
double gated_silu_slope(X x, double, std::size_t k, const Saved&) {
  return k == 0 ? silu_slope_of(x[0]) * x[1] : silu_of(x[0]);
}
double gated_gelu(X x, const Saved&) { return gelu_of(x[0]) * x[1]; }
double gated_gelu_slope(X x, double, std::size_t k, const Saved&) {
  return k == 0 ? gelu_slope_of(x[0]) * x[1] : gelu_of(x[0]);
}

double square_of_difference(X x, const Saved&) { return (x[0] - x[1]) * (x[0] - x[1]); }
double square_of_difference_slope(X x, double, std::size_t k, const Saved&) {
  return (k == 0 ? 2 : -2) * (x[0] - x[1]);
}

// Stand-in where inputs are saved: what is not saved goes in linearly, the others as a product of x + x^2 / 4 + 1.
double factor(double v) { return 1 + v + 0.25 * v * v; }
double mixed(X x, const Saved& s) {
  double total = 0, saved = 1;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (s.inputs[k])
      saved *= factor(x[k]);
    else
      total += weight(k) * x[k];
  }
  return total + 0.5 * saved;
}
double mixed_slope(X x, double, std::size_t k, const Saved& s) {
  if (!s.inputs[k]) return weight(k);
  double others = 0.5;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i != k && s.inputs[i]) others *= factor(x[i]);
  return others * (1 + 0.5 * x[k]);
}

// Whether every wanted gradient can read all operands but its own (a product's needs), or all of them.
bool reads(const Saved& s, bool own) {
  for (std::size_t k = 0; k < s.wanted.size(); ++k) {
    if (!s.wanted[k]) continue;
    for (std::size_t i = 0; i < s.inputs.size(); ++i)
      if ((own || i != k) && !s.inputs[i]) return false;
  }
  return true;
}

}  // namespace

double operand_weight(std::size_t k) { return 1.0 - 0.1 * static_cast<double>(k % 8); }

Function function_of(std::string_view name, const Saved& s) {
  const std::size_t count = s.inputs.size();
  const bool any_input = std::find(s.inputs.begin(), s.inputs.end(), true) != s.inputs.end();
  if (name == "Add" || name == "Sum" || name == "Identity" || name == "Cast" || name == "Expand")
    return {FunctionKind::sum, sum, one};
  if (name == "Sub") return {FunctionKind::difference, difference, difference_slope};
  if (name == "Mul" && reads(s, false)) return {FunctionKind::product, product, product_slope};
  if (s.output) {
    if (name == "Relu") return {FunctionKind::relu, relu, relu_slope};
    if (name == "Sigmoid") return {FunctionKind::sigmoid, sigmoid, sigmoid_slope};
    if (name == "Exp") return {FunctionKind::exponential, exponential, exponential_slope};
    if (name.find("Tanh") != std::string_view::npos) return {FunctionKind::tanh, tanh_of_sum, tanh_slope};
    return {FunctionKind::tanh_of_linear, tanh_of_linear, tanh_of_linear_slope};
  }
  if (count == 1 && reads(s, true)) {
    if (name == "Gelu" || name == "gelu") return {FunctionKind::gelu, gelu, gelu_slope};
    if (name == "Swish" || name == "Silu" || name == "silu") return {FunctionKind::silu, silu, silu_slope};
  }
  if (count == 2 && reads(s, true)) {
    if (name.starts_with("Silu*") || name.starts_with("silu*"))
      return {FunctionKind::gated_silu, gated_silu, gated_silu_slope};
    if (name.starts_with("Gelu*") || name.starts_with("gelu*"))
      return {FunctionKind::gated_gelu, gated_gelu, gated_gelu_slope};
    if (name == "SquaredDifference")
      return {FunctionKind::square_of_difference, square_of_difference, square_of_difference_slope};
  }
  if (any_input) return {FunctionKind::mixed, mixed, mixed_slope};
  return {FunctionKind::linear, linear, linear_slope};
}

}  // namespace turnpoint::step
