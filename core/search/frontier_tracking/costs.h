// SPDX-License-Identifier: Apache-2.0
// Prices of a structure under one scenario: fills the frontier problem and answers what a choice costs in detail.
#pragma once

#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/cost/operator_cost.h"
#include "core/frontier/problem.h"
#include "core/search/frontier_tracking/structure.h"

namespace turnpoint::search {

/// Times of one pair of layouts, seconds.
struct PairTimes {
  double forward = 0, backward = 0;
  double restore = 0;  ///< from the copy after to the producer's layout, where the table allows it
  double again = 0;    ///< one more forward run of the producer, where the table allows it
  bool producer_again = false, consumer_again = false;  ///< whether either runs again of its own choice
};

/// Owns the cost models of one scenario, or of one micro-batch of it, whose plans are then priced as iterations through
/// all; immutable after construction, shared by the plans of its result.
class Prices {
 public:
  /// Which models' cheapest ways tensors go.
  using Finders = std::vector<std::shared_ptr<const ReshardingModel>>;

  /// `before`, if given, is an earlier price list of the same structure, whose layout graphs are shared. With `finders`
  /// no resharding takes another way than one of theirs.
  Prices(ScenarioPtr scenario, std::shared_ptr<const Structure> structure, const Prices* before = nullptr,
         Finders finders = {});

  const Scenario& scenario() const { return *scenario_; }
  const ScenarioPtr& scenario_pointer() const { return scenario_; }
  const Structure& structure() const { return *structure_; }
  const std::shared_ptr<const ReshardingModel>& resharding() const { return resharding_; }
  /// The cheapest way of a pair's tensor, of those that it may go.
  ReshardPath path(const PairTable& table, const Layout& from, const Layout& to) const;
  const OperatorCostModel& operators() const { return *operators_; }
  /// An operator's alternatives under one configuration, in the order in which the frontier problem lists them.
  std::vector<OperatorCostModel::Alternative> alternatives(const Variable& variable, std::size_t configuration) const;

 private:
  bool keeps_what_it_can_remake(OperatorId id) const;

  ScenarioPtr scenario_;
  std::shared_ptr<const Structure> structure_;
  std::shared_ptr<const ReshardingModel> resharding_;
  Finders finders_;
  std::unique_ptr<OperatorCostModel> operators_;
};

/// What one alternative of a pair's entry means.
enum class Copy : std::uint8_t {
  none,     ///< nothing is kept for the consumer
  source,   ///< the consumer reads the source's layout and that copy is kept
  after,    ///< the resharded copy is kept
  before,   ///< the copy before is kept; backward repeats the forward resharding
  restore,  ///< the copy after alone is kept; backward makes the producer's from it, which the producer reads
  again,    ///< nothing is kept for the consumer; backward repeats the producer's run and the forward resharding
};

/// The alternatives of a pair in layouts `from` and `to`, in the order in which the frontier problem lists them. At
/// most three; none where the two cannot go together. Which ones they are does not depend on the times.
struct PairAlternative {
  Copy copy = Copy::none;
  std::int64_t memory = 0;
  std::int64_t produced = 0;  ///< the part of memory that is the copy as its producer left it
  double time = 0;
  double compute = 0;  ///< the part of time that is the producer's run
};
struct PairAlternatives {
  PairAlternative item[3];
  int count = 0;
};
PairAlternatives pair_alternatives(const PairTable& table, const Mesh& mesh, const Layout& from, const Layout& to,
                                   const PairTimes& times);

/// Whether backward needs no collective from `to`'s gradient to `from`'s: the gradients meet while still partial.
bool gradients_meet(const PairTable& table, const Layout& from, const Layout& to);

/// What of an operator's times is computing, by the points of its cost table.
struct OperatorCompute {
  std::vector<std::uint32_t> offsets;  ///< of the table
  std::vector<double> seconds;
};
/// The same of a pair: its producer's second run, which some points are. Empty where the tensor is never made again.
struct PairCompute {
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint8_t> again;  ///< per point: whether it is one
  std::vector<double> row_s;        ///< per layout of the producer
};

struct PricedProblem {
  frontier::Problem problem;               ///< may be forgotten; what follows stays
  std::vector<OperatorCompute> operators;  ///< [cost group]
  std::vector<PairCompute> pairs;          ///< [pair table]

  /// Compute part of a plan's time; the rest is network.
  double compute_seconds(const Structure& structure, const frontier::Point& point) const;
};

/// The cost table of an operator, by configuration, and what of it is computing.
frontier::CostTable operator_costs(const Prices& prices, const Variable& variable, OperatorCompute& computed);

/// The routes by which tensors were resharded when the structure was priced, one entry per distinct question.
using RouteBook = std::vector<ReshardRoutes>;

/// The frontier problem of the structure at these prices. Equal pairs share their tables. Cancelled where asked.
/// `routes` gains the ways that are the cheapest; with `keep_routes` nothing is searched, and every resharding goes the
/// cheapest of its old ways, which is achievable but perhaps no longer the cheapest of all (a slider being dragged).
Expected<PricedProblem> price_problem(const Prices& prices, ThreadPool& pool, const RunContext& context,
                                      RouteBook* routes = nullptr, bool keep_routes = false);

}  // namespace turnpoint::search
