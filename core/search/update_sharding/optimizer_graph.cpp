// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/optimizer_graph.h"

#include <numeric>

namespace turnpoint::update_sharding {

namespace {

/// Arithmetic on values of one weight's shape, with scalars spread over it.
class WeightArithmetic {
 public:
  WeightArithmetic(Builder& builder, const OptimizerNumbers& numbers, ValueId weight)
      : b_(builder), n_(numbers), shape_(builder.value(weight).shape) {}

  UpdatedWeight sgd(ValueId g, ValueId w) { return {minus(w, times(g, n_.rate)), {}}; }

  UpdatedWeight momentum(ValueId g, ValueId w, ValueId v) {
    const ValueId next = plus(times(v, n_.momentum), g);
    return {minus(w, times(next, n_.rate)), {next}};
  }

  UpdatedWeight lars(ValueId g, ValueId w, ValueId v) {
    const ValueId weight_norm = norm(w), gradient_norm = norm(g);
    ValueId below = plus(gradient_norm, scalar_times(weight_norm, n_.weight_decay));
    below = plus(below, b_.constant(n_.epsilon));
    const ValueId local = over(scalar_times(weight_norm, n_.trust), below);
    const ValueId decayed = plus(g, times(w, n_.weight_decay));
    const ValueId next = plus(times(v, n_.momentum), spread_times(decayed, scalar_times(local, n_.rate)));
    return {minus(w, next), {next}};
  }

  UpdatedWeight adam(const StepScalars& step, ValueId g, ValueId w, ValueId m, ValueId v, bool trust) {
    const ValueId first = plus(times(m, n_.beta1), times(g, 1 - n_.beta1));
    const ValueId second = plus(times(v, n_.beta2), times(product(g, g), 1 - n_.beta2));
    const ValueId root = b_.apply(Function::square_root, {over(second, spread(step.second_correction))});
    ValueId update = over(over(first, spread(step.first_correction)), plus(root, filled(n_.epsilon)));
    if (!trust) return {minus(w, times(update, n_.rate)), {first, second}};
    update = plus(update, times(w, n_.weight_decay));
    const ValueId ratio = over(norm(w), plus(norm(update), b_.constant(n_.epsilon)));
    return {minus(w, spread_times(update, scalar_times(ratio, n_.rate))), {first, second}};
  }

  UpdatedWeight factored(ValueId g, ValueId w, ValueId rows, ValueId columns) {
    std::vector<int> leading(shape_.size() - 1);
    std::iota(leading.begin(), leading.end(), 0);
    const int last = static_cast<int>(shape_.size()) - 1;
    const auto elements = static_cast<double>(b_.value(w).elements());
    const auto width = static_cast<double>(shape_.back());
    const ValueId squares = plus(product(g, g), filled(1e-30));
    const ValueId next_rows = blend(rows, b_.reduce(squares, {last}, "rows"), width);
    const ValueId next_columns = blend(columns, b_.reduce(squares, leading, "columns"), elements / width);
    const ValueId mean = scalar_times(b_.sum(next_rows), width / elements);
    const ValueId estimate = over(
        product(b_.broadcast(next_rows, shape_, leading), b_.broadcast(next_columns, shape_, {last})), spread(mean));
    return {clipped(g, w, estimate), {next_rows, next_columns}};
  }

  UpdatedWeight unfactored(ValueId g, ValueId w, ValueId v) {
    const ValueId next = blend(v, plus(product(g, g), filled(1e-30)), 1);
    return {clipped(g, w, next), {next}};
  }

 private:
  ValueId plus(ValueId a, ValueId b) { return b_.apply(Function::add, {a, b}); }
  ValueId minus(ValueId a, ValueId b) { return b_.apply(Function::subtract, {a, b}); }
  ValueId product(ValueId a, ValueId b) { return b_.apply(Function::multiply, {a, b}); }
  ValueId over(ValueId a, ValueId b) { return b_.apply(Function::divide, {a, b}); }
  ValueId spread(ValueId scalar) { return b_.broadcast(scalar, shape_); }
  ValueId filled(double number) { return spread(b_.constant(number)); }
  ValueId times(ValueId a, double number) { return product(a, filled(number)); }
  ValueId spread_times(ValueId a, ValueId scalar) { return product(a, spread(scalar)); }
  ValueId scalar_times(ValueId scalar, double number) { return product(scalar, b_.constant(number)); }
  ValueId norm(ValueId a) { return b_.apply(Function::square_root, {b_.sum(product(a, a), "norm")}); }

  /// The running mean of `old` and a sum over `count` elements.
  ValueId blend(ValueId old, ValueId sum, double count) {
    const Shape shape = b_.value(old).shape;
    const auto scaled = [&](ValueId a, double number) { return product(a, b_.broadcast(b_.constant(number), shape)); };
    return plus(scaled(old, n_.beta2), scaled(sum, (1 - n_.beta2) / count));
  }

  /// The weight less an update whose root mean square is at most `clip`.
  ValueId clipped(ValueId g, ValueId w, ValueId estimate) {
    const ValueId update = over(g, b_.apply(Function::square_root, {estimate}));
    const double elements = static_cast<double>(b_.value(w).elements());
    const ValueId mean = scalar_times(b_.sum(product(update, update), "update's norm"), 1 / elements);
    const ValueId excess = scalar_times(b_.apply(Function::square_root, {mean}), 1 / n_.clip);
    const ValueId divisor = b_.apply(Function::maximum, {b_.constant(1), excess});
    return minus(w, times(over(update, spread(divisor)), n_.rate));
  }

  Builder& b_;
  const OptimizerNumbers& n_;
  Shape shape_;
};

}  // namespace

std::vector<Shape> auxiliary_shapes(Optimizer optimizer, const Shape& weight) {
  switch (optimizer) {
    case Optimizer::sgd: return {};
    case Optimizer::momentum:
    case Optimizer::lars: return {weight};
    case Optimizer::adam:
    case Optimizer::lamb: return {weight, weight};
    case Optimizer::adafactor:
      if (weight.size() < 2) return {weight};
      return {Shape(weight.begin(), weight.end() - 1), {weight.back()}};
  }
  return {};
}

StepScalars step_scalars(Builder& builder, Optimizer optimizer, const OptimizerNumbers& numbers, ValueId step) {
  if (optimizer != Optimizer::adam && optimizer != Optimizer::lamb) return {};
  const auto correction = [&](double beta) {
    const ValueId power = builder.apply(Function::power, {builder.constant(beta), step});
    return builder.apply(Function::subtract, {builder.constant(1), power});
  };
  const ValueId first = correction(numbers.beta1);
  return {first, correction(numbers.beta2)};
}

UpdatedWeight append_update(Builder& builder, Optimizer optimizer, const OptimizerNumbers& numbers,
                            const StepScalars& scalars, ValueId gradient, ValueId weight,
                            const std::vector<ValueId>& auxiliaries) {
  WeightArithmetic arithmetic(builder, numbers, weight);
  const bool vector = builder.value(weight).shape.size() < 2;
  switch (optimizer) {
    case Optimizer::sgd: return arithmetic.sgd(gradient, weight);
    case Optimizer::momentum: return arithmetic.momentum(gradient, weight, auxiliaries[0]);
    case Optimizer::lars:
      return vector ? arithmetic.momentum(gradient, weight, auxiliaries[0])
                    : arithmetic.lars(gradient, weight, auxiliaries[0]);
    case Optimizer::adam:
    case Optimizer::lamb:
      return arithmetic.adam(scalars, gradient, weight, auxiliaries[0], auxiliaries[1],
                             optimizer == Optimizer::lamb && !vector);
    case Optimizer::adafactor:
      return vector ? arithmetic.unfactored(gradient, weight, auxiliaries[0])
                    : arithmetic.factored(gradient, weight, auxiliaries[0], auxiliaries[1]);
  }
  return {weight, auxiliaries};
}

}  // namespace turnpoint::update_sharding
