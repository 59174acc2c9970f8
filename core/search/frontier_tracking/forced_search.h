// SPDX-License-Identifier: Apache-2.0
// The fastest plan of a memory in which operators do as they are told: what a choice costs. Of the whole frontier that
// is one point, over every number of micro-batches, which takes a small part of the work.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/forced.h"
#include "core/search/frontier_tracking/micro_batches.h"

namespace turnpoint::search {

/// Keeps structures and prices of one scenario from question to question, and what it has found of the free plans. One
/// question at a time.
class ForcedSearch {
 public:
  /// Over these numbers of micro-batches, at least one; the likeliest first.
  ForcedSearch(ScenarioPtr scenario, const std::vector<int>& micro_batches);
  ~ForcedSearch();

  const ScenarioPtr& scenario() const { return scenario_; }
  /// Whether it searches these numbers, in whatever order.
  bool is_over(std::vector<int> micro_batches) const;
  /// From now on this one of its numbers is the likeliest.
  void begin_with(int micro_batches);

  /// What a search of this scenario over all choices has proven of these numbers, which then need no look of their own.
  void know(const std::vector<NumberBound>& bounds);

  /// Builds what questions about a plan of this memory and time will need, as far as numbers may be of use: their
  /// prices, and the structure of the solution. Errors: those of building it; cancelled.
  Expected<void> get_ready(std::int64_t memory, double time_s, const RunContext& context);

  /// What is asked of the operators of a micro-batch's model on the mesh of its structure. Errors end the question.
  using Ask = std::function<Expected<ForcedOperators>(const Prices& prices)>;

  /// What operators can do, by the first of the numbers. Errors: those of building it; cancelled.
  Expected<std::shared_ptr<const Prices>> prices(const RunContext& context);

  /// The fastest plan within each of these memories, bytes, in their order: a result of one point each. Its `exact` and
  /// `gap` are that plan's own. Where none fits, the plan of least memory. Errors: those of `ask`; cancelled;
  /// infeasible where no plan does all that is asked.
  Expected<std::vector<ResultPtr>> fastest(const Ask& ask, const std::vector<std::int64_t>& limits,
                                           const RunContext& context);

 private:
  struct One;
  struct Best;
  Expected<void> prepare(One& one, const RunContext& context);
  Expected<void> price(One& one, const RunContext& context);
  Expected<double> free_bound(One& one, std::int64_t limit, const RunContext& context);
  Expected<void> improve(One& one, const Ask& ask, std::vector<Best>& best, const RunContext& context);
  std::vector<One*> likeliest_first(std::span<const std::int64_t> limits) const;

  ScenarioPtr scenario_;
  frontier::Solver solver_;  ///< of all numbers: most have the same structure
  std::vector<std::unique_ptr<One>> numbers_;
};

}  // namespace turnpoint::search
