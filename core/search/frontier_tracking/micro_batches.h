// SPDX-License-Identifier: Apache-2.0
// Micro-batches in methods that solve a frontier problem: the batch goes through the network in equal parts, one behind
// the other, and the update follows once. For a given number of them that is the same problem, made of one micro-batch
// (resources/manual/costs.md, 5): forward and backward as often as there are parts, synchronisation and update once,
// kept tensors of one part. Over all numbers the frontier is the lower envelope of theirs.
#pragma once

#include <vector>

#include "core/base/options.h"
#include "core/search/frontier_tracking/sweep.h"

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

/// micro-batches=all, as a number.
constexpr int kEveryMicroBatch = 0;

/// "micro-batches=N"; "all", the value 0: every number. Where none is given, `otherwise`.
std::vector<OptionRecord> micro_batch_options(int otherwise);
/// "gap=G" and "time-limit=S", of methods whose searches may end early.
std::vector<OptionRecord> ending_options();

/// The numbers that are tried where all are asked for: 1, and divisors of the batch, each at least twice the one
/// before, into which the network can be cut. Under the papers' accounting 1 alone, since the papers have no others.
std::vector<int> micro_batch_numbers(const Scenario& scenario);

/// Adds the parameters to a method.
void take_micro_batches(Method& method, MicroBatching how);

}  // namespace turnpoint::search
