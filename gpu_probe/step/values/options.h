// SPDX-License-Identifier: Apache-2.0
// What a step is carried out with.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/model.h"

namespace turnpoint::step {

enum class UpdateRule : std::uint8_t { sgd, momentum, adam, lars, lamb, adafactor };
/// Numbers of optimizer state beside each weight; Adafactor's are of rows and columns.
constexpr int states_of(UpdateRule rule) {
  const bool none = rule == UpdateRule::sgd || rule == UpdateRule::adafactor;
  return rule == UpdateRule::adam || rule == UpdateRule::lamb ? 2 : none ? 0 : 1;
}
/// Whether it scales a parameter's step by norms of the whole parameter.
constexpr bool is_layer_wise(UpdateRule rule) {
  return rule == UpdateRule::lars || rule == UpdateRule::lamb || rule == UpdateRule::adafactor;
}

/// Where every loop of an operator begins and how long it is, part by part.
using LoopParts = std::vector<std::vector<std::array<std::int64_t, 2>>>;

struct StepOptions {
  std::uint64_t seed = 1;
  int micro_batches = 1;  ///< that a step goes through before its update, each with data of its own
  /// As the plan's scenario counts them: bytes of a floating-point element, and per parameter element.
  int floating_bytes = 4, weight_bytes = 4, gradient_bytes = 4, optimizer_bytes = 8;
  UpdateRule rule = UpdateRule::adam;
  double learning_rate = 0.05;
  /// Per operator and loop dimension, over how many shares statistics are taken (LoopRange::shares); empty: one.
  std::vector<std::vector<std::int64_t>> shares;
  /// Per operator, unlike parts over each of which statistics are taken instead; empty: there are none.
  std::vector<LoopParts> parts;
  bool record = false;  ///< keep a copy of everything that can be compared
  bool one_step =
      false;  ///< no step follows, so that the optimizer state is drawn where the update reads it and is not held
  bool quick = false;  ///< weights that are drawn quickly, each rank its own: for times, not for comparisons
  bool plain = false;  ///< no kernel but the plain loops, whatever is faster
  /// If set, the initial value of a parameter's element (the first of tied ones) instead of the one drawn for it: to
  /// continue from other weights, or to see what a change of one does.
  std::function<double(TensorId parameter, std::int64_t index, double drawn)> initial;
};
int element_bytes(const Tensor& tensor, const StepOptions& options);

}  // namespace turnpoint::step
