// SPDX-License-Identifier: Apache-2.0
// Micro-batches in methods that solve a frontier problem: the batch goes through the network in equal parts, one behind
// the other, and the update follows once. For a given number of them that is the same problem, made of one micro-batch
// (resources/manual/costs.md, 5): forward and backward as often as there are parts, synchronisation and update once,
// kept tensors of one part. Over all numbers the frontier is the lower envelope of theirs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/options.h"
#include "core/frontier/pareto.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

/// One micro-batch of a scenario. Keeps the model that it cuts, so that whoever knows a structure by its model finds it
/// again as long as the scenario's model is the same.
class OneMicroBatch {
 public:
  explicit OneMicroBatch(int micro_batches) : micro_batches_(micro_batches) {}
  /// The scenario itself where it is not cut. Usage error: the batch cannot be cut so.
  Expected<ScenarioPtr> of(const ScenarioPtr& whole);

 private:
  int micro_batches_;
  ModelPtr whole_, part_;
};

/// What the searches of one frontier over several numbers tell each other.
struct Sweep {
  bool survey = false;       ///< plans with a bound, quickly; the same whatever was asked before
  double share = 1;          ///< of the work that a search alone may take
  double enough_gap = 0;     ///< as SolveOptions has it
  frontier::CostList known;  ///< what all have found: only what improves on it is looked for
};

/// "micro-batches=N"; "all", the value 0: every number.
const std::vector<OptionRecord>& micro_batch_options();

/// The numbers that are tried where all are asked for: 1, and divisors of the batch, each at least twice the one
/// before, into which the network can be cut.
std::vector<int> micro_batch_numbers(const Scenario& scenario);

/// Adds the parameter to a method whose searcher, for a given number of micro-batches, is made by `make`. It may follow
/// the sweep that it is part of, which outlives it; null: none.
using MakeMicroBatched = std::function<std::unique_ptr<Searcher>(int micro_batches, const Sweep* sweep)>;
void take_micro_batches(Method& method, const MakeMicroBatched& make);

}  // namespace turnpoint::search
