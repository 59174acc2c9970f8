// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/searcher.h"

#include <chrono>
#include <optional>

#include "core/base/parallel.h"
#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/plans.h"

namespace turnpoint::search {

namespace {

enum class Objective { frontier, least_time };

// Memory is of no concern to the method: a single objective is left, and its optimum is the one point of the answer.
void forget_memory(frontier::Problem& problem) {
  for (auto& node : problem.nodes)
    for (auto& point : node.costs.mutable_points()) point.memory = 0;
  for (auto& edge : problem.edges)
    for (auto& point : edge.costs.mutable_points()) point.memory = 0;
}

class ConfigurationSearcher : public Searcher {
 public:
  ConfigurationSearcher(std::string method, SearchSpace space, Objective objective)
      : method_(std::move(method)), space_(std::move(space)), objective_(objective) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    if (!structure_ || !same_structure(*structure_, *scenario)) {
      auto built = build_structure(*scenario, space_, context);
      if (!built) return built.error();
      structure_ = *built;
      prices_.reset();
      routes_.clear();
    }
    if (!pool_ || threads_ != context.threads) {
      pool_.emplace(context.threads);
      threads_ = context.threads;
    }
    const auto prices = std::make_shared<const Prices>(scenario, structure_, prices_.get());
    const bool keep_routes = pass == SearchPass::coarse && !routes_.empty() && pairs_of_layouts() > kFewPairs;
    auto priced = price_problem(*prices, *pool_, context, &routes_, keep_routes);
    if (!priced) {
      if (!keep_routes) routes_.clear();  // perhaps half filled
      return priced.error();
    }
    prices_ = prices;

    frontier::SolveOptions options;
    options.pass = pass == SearchPass::coarse && objective_ == Objective::frontier ? frontier::Pass::coarse
                                                                                   : frontier::Pass::exact;
    frontier::Problem* problem = &priced->problem;
    frontier::Problem timeless;
    if (objective_ == Objective::least_time) {
      timeless = priced->problem;
      forget_memory(timeless);
      problem = &timeless;
    }
    auto answer = solver_.solve(*problem, options, context);
    if (!answer) return answer.error();
    if (objective_ == Objective::least_time || space_.only) keep_fastest(priced->problem, *answer);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return make_result(method_, scenario, prices, *priced, std::move(*answer), elapsed.count());
  }

 private:
  // Few reshardings are searched anew even while a slider is dragged.
  static constexpr std::size_t kFewPairs = 25000;

  std::size_t pairs_of_layouts() const {
    std::size_t pairs = 0;
    for (const PairTable& table : structure_->tables) pairs += table.from.size() * table.to.size();
    return pairs;
  }

  static void keep_fastest(const frontier::Problem& problem, frontier::Answer& answer) {
    answer.points.erase(answer.points.begin(), answer.points.end() - 1);
    frontier::Point& point = answer.points.front();
    const frontier::CostPoint cost = frontier::evaluate(problem, point);
    point.memory = cost.memory;
    point.time = cost.time;
    answer.lower_bound.clear();
  }

  std::string method_;
  SearchSpace space_;
  Objective objective_;
  std::shared_ptr<const Structure> structure_;
  std::shared_ptr<const Prices> prices_;
  RouteBook routes_;
  frontier::Solver solver_;
  std::optional<ThreadPool> pool_;
  int threads_ = 0;
};

}  // namespace

std::unique_ptr<Searcher> make_frontier_tracking() {
  return std::make_unique<ConfigurationSearcher>("ft", SearchSpace{}, Objective::frontier);
}

std::unique_ptr<Searcher> make_data_parallel() {
  const auto only = [](OperatorId, const Operator& op, const Mesh& mesh) {
    return std::vector<Configuration>{data_parallel_configuration(op, mesh)};
  };
  return std::make_unique<ConfigurationSearcher>("data-parallel", SearchSpace{only, false, {}}, Objective::frontier);
}

std::unique_ptr<Searcher> make_optcnn() {
  return std::make_unique<ConfigurationSearcher>("optcnn", SearchSpace{nullptr, false, {}}, Objective::least_time);
}

}  // namespace turnpoint::search
