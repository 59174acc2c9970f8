// SPDX-License-Identifier: Apache-2.0
// A sharding plan: a configuration per operator and a path per resharding, with itemised costs. Plans are plain values;
// this header is the data, core/plan/evaluator.h the independent arithmetic over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cost/breakdown.h"
#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/resharding.h"
#include "core/model/model.h"

namespace turnpoint {

/// Which copies of a tensor backward keeps where its producer's and consumer's layouts differ.
enum class Keep : std::uint8_t {
  none,    ///< nobody's backward reads it through this resharding
  before,  ///< only the copy before; backward repeats the forward resharding
  after,   ///< the resharded copy
  both,    ///< both copies are kept because somebody needs each
  again,   ///< no copy: the producer runs again in backward, and the resharding with it
};
const char* to_string(Keep keep);

struct PlanOperator {
  OperatorId op;
  Configuration split;
  MemoryChoice choice;
  CostBreakdown cost;  ///< its own: parameters, kept outputs, compute, gradient synchronisation
  std::vector<ReshardStep> gradient_sync;
};

/// One resharding of one tensor, forward and the adjoint in backward. `consumer` invalid: made once and shared by all
/// consumers of the tensor that want it.
struct PlanReshard {
  TensorId tensor;
  OperatorId producer, consumer;
  Layout from, to;
  std::vector<ReshardStep> forward, backward;  ///< backward includes a repeated forward where keep is `before`
  Keep keep = Keep::none;
  CostBreakdown cost;
  double time_s() const { return cost.time_s(); }
};

struct Plan {
  Mesh mesh;
  std::vector<PlanOperator> operators;  ///< one per model operator, same order
  std::vector<PlanReshard> reshards;    ///< only those that move something or keep a copy
  CostBreakdown cost;                   ///< sum over operators and reshards
};

}  // namespace turnpoint
