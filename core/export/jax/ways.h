// SPDX-License-Identifier: Apache-2.0
// A sharding plan made ready to be written as a program: the way of every tensor from its producer to each reader and
// of its gradient back, which copies backward finds, which parameters travel together. The plan must be legal
// (core/plan/charges.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/tensor_use.h"
#include "core/plan/plan.h"

namespace turnpoint::jax {

/// From where a tensor lies to one reader, or to the copy that all readers share.
struct Way {
  Layout start, goal;                    ///< of the data; `start` is partial where a producer's sum is still to be made
  Layout read;                           ///< `goal`, partial where the reader leaves the gradient so
  Layout back;                           ///< where the gradient is to go
  const PlanReshard* reshard = nullptr;  ///< null: it is read as it lies
  bool saved = false;                    ///< backward reads the tensor through this way
  bool meets = false;                    ///< the gradient stays partial, to be summed with others at the source
  bool moves() const { return start != goal; }
  bool keeps_copy() const { return reshard && (reshard->keep == Keep::after || reshard->keep == Keep::both); }
};

/// A tensor that an operator makes.
struct Flow {
  const TensorFlow* use = nullptr;
  Layout produced;
  std::optional<Way> shared;       ///< to the copy that all readers take it from
  std::vector<Way> ways;           ///< by reader, as in `use`
  bool keeps_source = false;       ///< the producer's own copy is there in backward
  const Way* restoring = nullptr;  ///< the producer's own copy is made again from the one at the end of this way
  Layout meeting() const { return shared ? shared->read : produced.without_partial(); }
};

/// A later use of a parameter that another operator stores.
struct Tie {
  const ParameterTie* use = nullptr;
  Way way;
  bool turned = false;  ///< used as the transpose of what is stored
};

struct Ways {
  TensorUses uses;
  std::vector<Flow> flows;
  std::vector<Tie> ties;
  std::vector<bool> runs_again;               ///< [operator]: its output is made again in backward
  std::vector<std::vector<int>> output_flow;  ///< [operator][output]: index; -1: internal
  /// [operator][input]: of an activation its flow and reader, of a tied parameter its tie; -1: neither.
  std::vector<std::vector<int>> input_flow, input_reader, input_tie;
  std::vector<std::vector<bool>> along;  ///< [operator][input]: a parameter fetched along with those backward reads

  /// Error: the plan lacks a resharding.
  static Expected<std::unique_ptr<const Ways>> of(const Model& model, const Plan& plan);
};

}  // namespace turnpoint::jax
