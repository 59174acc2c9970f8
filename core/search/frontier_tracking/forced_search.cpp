// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/forced_search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "core/search/frontier_tracking/plans.h"

namespace turnpoint::search {

struct ForcedSearch::One {
  explicit One(int number) : micro_batches(number), part(number) {}
  int micro_batches;
  OneMicroBatch part;
  std::shared_ptr<const Prices> prices;
  PricedProblem priced;
  frontier::Solver solver;
  std::map<std::int64_t, double> free_bound;  ///< by memory: no plan within it is faster, nothing forced
};

namespace {

constexpr std::string_view kForcedMethod = "ft";  // whose plans these are
constexpr double kProducts = 1e7;                 // of points, for one question of one number: tenths of a second
constexpr double kRounding = 1e-6;                // of a cost: bounds are made of floats
constexpr double kOpen = 0.001;                   // what other numbers may still save without a search of their own

}  // namespace

ForcedSearch::ForcedSearch(ScenarioPtr scenario, const std::vector<int>& micro_batches)
    : scenario_(std::move(scenario)) {
  for (const int number : micro_batches) numbers_.push_back(std::make_unique<One>(number));
}
ForcedSearch::~ForcedSearch() = default;

bool ForcedSearch::is_over(std::vector<int> micro_batches) const {
  return std::ranges::is_permutation(micro_batches, numbers_, {}, {},
                                     [](const auto& one) { return one->micro_batches; });
}

void ForcedSearch::begin_with(int micro_batches) {
  const auto found = std::ranges::find(numbers_, micro_batches, [](const auto& one) { return one->micro_batches; });
  if (found != numbers_.end()) std::rotate(numbers_.begin(), found, found + 1);
}

Expected<void> ForcedSearch::prepare(One& one, const RunContext& context) {
  if (one.prices) return {};
  const auto part = one.part.of(scenario_);
  if (!part) return part.error();
  SearchSpace space;
  space.micro_batches = one.micro_batches;
  const auto structure = build_structure(**part, space, context);
  if (!structure) return structure.error();
  ThreadPool pool(context.threads);
  auto prices = std::make_shared<const Prices>(*part, *structure);
  auto priced = price_problem(*prices, pool, context);
  if (!priced) return priced.error();
  one.priced = std::move(*priced);
  one.prices = std::move(prices);
  return {};
}

Expected<std::shared_ptr<const Prices>> ForcedSearch::prices(const RunContext& context) {
  if (auto done = prepare(*numbers_.front(), context); !done) return done.error();
  return numbers_.front()->prices;
}

/// Within one memory, over all numbers so far.
struct ForcedSearch::Best {
  std::int64_t limit = 0;
  std::shared_ptr<const ForcedProblem> problem;
  frontier::Point point;
  double bound = std::numeric_limits<double>::infinity();                ///< no plan within the memory is faster
  std::int64_t memory_bound = std::numeric_limits<std::int64_t>::max();  ///< no plan needs less memory

  bool fits() const { return problem && point.memory <= limit; }
  bool is_beaten_by(const frontier::Point& other) const {
    if (!problem) return true;
    if (fits() != (other.memory <= limit)) return !fits();
    return fits() ? other.time < point.time : other.memory < point.memory;
  }
};

Expected<void> ForcedSearch::improve(One& one, const Ask& ask, const std::vector<std::int64_t>& limits,
                                     std::vector<Best>& best, const RunContext& context) {
  if (auto done = prepare(one, context); !done) return done;
  std::shared_ptr<const ForcedProblem> problem;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    frontier::SolveOptions options;
    options.memory_limit = std::max<std::int64_t>(1, limits[i]);
    options.max_products = kProducts;
    options.enough_gap = kOpen;
    if (best[i].fits()) {
      // Whoever is forced is no faster than who is free, of which a look at the hull tells enough.
      const auto [it, fresh] = one.free_bound.try_emplace(limits[i], 0);
      if (fresh) {
        options.known = {{0, 0}};
        const auto free = one.solver.fastest(one.priced.problem, options, context);
        if (!free) return free.error();
        it->second = free->lower_bound.front().time;
      }
      if (it->second >= best[i].point.time * (1 - kOpen)) {
        best[i].bound = std::min(best[i].bound, it->second);
        continue;
      }
      options.known = {{0, best[i].point.time}};
    }
    if (!problem) {
      const auto forced = ask(*one.prices);
      if (!forced) return forced.error();
      problem = std::make_shared<const ForcedProblem>(one.prices, one.priced, *forced);
    }
    auto answer = one.solver.fastest(problem->problem(), options, context);
    if (!answer) return answer.error();
    best[i].bound = std::min(best[i].bound, answer->lower_bound.front().time);
    best[i].memory_bound = std::min(best[i].memory_bound, answer->lower_bound.front().memory);
    if (answer->points.empty() || !best[i].is_beaten_by(answer->points.front())) continue;
    best[i].problem = problem;
    best[i].point = std::move(answer->points.front());
  }
  return {};
}

Expected<std::vector<ResultPtr>> ForcedSearch::fastest(const Ask& ask, const std::vector<std::int64_t>& limits,
                                                       const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Best> best(limits.size());
  for (std::size_t i = 0; i < limits.size(); ++i) best[i].limit = limits[i];
  std::optional<Error> refusal;
  for (std::size_t n = 0; n < numbers_.size(); ++n) {
    context.report("forced choice", static_cast<double>(n) / static_cast<double>(numbers_.size()));
    const auto done = improve(*numbers_[n], ask, limits, best, context);
    if (done) continue;
    if (done.error().code == ErrorCode::cancelled) return done.error();
    if (!refusal) refusal = done.error();
  }
  std::vector<ResultPtr> results;
  for (Best& one : best) {
    if (!one.problem)
      return refusal ? *refusal
                     : Error{ErrorCode::infeasible,
                             "no plan with it was found, which proves nothing: there are too many",
                             {},
                             {}};
    one.problem->as_priced(one.point);
    frontier::Answer answer;
    const double cost = one.fits() ? one.point.time : static_cast<double>(one.point.memory),
                 least = one.fits() ? one.bound : static_cast<double>(one.memory_bound);
    answer.exact = least >= cost * (1 - kRounding);
    answer.gap = answer.exact ? 0 : (cost - least) / cost;
    answer.points.push_back(std::move(one.point));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    results.push_back(make_result(std::string(kForcedMethod), scenario_, one.problem->prices(), one.problem->priced(),
                                  std::move(answer), elapsed.count()));
  }
  return results;
}

}  // namespace turnpoint::search
