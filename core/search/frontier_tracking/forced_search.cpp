// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/forced_search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "core/frontier/pareto.h"
#include "core/search/frontier_tracking/plans.h"

namespace turnpoint::search {

struct ForcedSearch::One {
  explicit One(int number) : micro_batches(number), part(number) {}
  int micro_batches;
  OneMicroBatch part;
  std::shared_ptr<const Prices> prices;
  std::optional<PricedProblem> priced;
  std::vector<frontier::BoundLine> lines;     ///< no plan of it lies below, nothing forced; empty: not known
  std::map<std::int64_t, double> free_bound;  ///< the same by memory, of what was asked for want of lines
};

namespace {

constexpr std::string_view kForcedMethod = "ft";  // whose plans these are
constexpr double kProducts = 1e7;                 // of points, for one question of one number: tenths of a second
constexpr double kNear = 0.02;                    // slower than the plan: what choices of a layer mostly cost
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

void ForcedSearch::know(const std::vector<NumberBound>& bounds) {
  for (const NumberBound& bound : bounds)
    for (const auto& one : numbers_)
      if (one->micro_batches == bound.micro_batches) one->lines = bound.lines;
}

Expected<void> ForcedSearch::prepare(One& one, const RunContext& context) {
  if (one.prices) return {};
  const auto part = one.part.of(scenario_);
  if (!part) return part.error();
  SearchSpace space;
  space.micro_batches = one.micro_batches;
  const auto structure = build_structure(**part, space, context);
  if (!structure) return structure.error();
  one.prices = std::make_shared<const Prices>(*part, *structure);
  return {};
}

Expected<void> ForcedSearch::price(One& one, const RunContext& context) {
  if (one.priced) return {};
  if (auto done = prepare(one, context); !done) return done;
  ThreadPool pool(context.threads);
  auto priced = price_problem(*one.prices, pool, context);
  if (!priced) return priced.error();
  one.priced = std::move(*priced);
  return {};
}

Expected<double> ForcedSearch::free_bound(One& one, std::int64_t limit, const RunContext& context) {
  if (!one.lines.empty()) return frontier::time_above(one.lines, static_cast<double>(limit));
  if (const auto known = one.free_bound.find(limit); known != one.free_bound.end()) return known->second;
  if (auto done = price(one, context); !done) return done.error();
  // A look at the hull tells enough.
  const frontier::Solver::Within within{std::max<std::int64_t>(1, limit), 0};
  const auto free = solver_.fastest(one.priced->problem, {&within, 1}, {}, {}, context);
  if (!free) return free.error();
  return one.free_bound[limit] = free->front().lower_bound.front().time;
}

Expected<std::shared_ptr<const Prices>> ForcedSearch::prices(const RunContext& context) {
  if (auto done = prepare(*numbers_.front(), context); !done) return done.error();
  return numbers_.front()->prices;
}

Expected<void> ForcedSearch::get_ready(std::int64_t memory, double time_s, const RunContext& context) {
  const std::int64_t limit = std::max<std::int64_t>(1, memory);
  for (One* one : likeliest_first({&limit, 1})) {
    const bool first = one == numbers_.front().get();
    if (!first && frontier::time_above(one->lines, static_cast<double>(limit)) > time_s * (1 + kNear)) continue;
    context.report("prices");
    if (auto done = price(*one, context); !done) return done;
    if (!first) continue;
    const frontier::Solver::Within within{limit, 0};
    const auto free = solver_.fastest(one->priced->problem, {&within, 1}, one->lines, {}, context);
    if (!free) return free.error();
  }
  return {};
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

Expected<void> ForcedSearch::improve(One& one, const Ask& ask, std::vector<Best>& best, const RunContext& context) {
  std::vector<Best*> asked;
  std::vector<frontier::Solver::Within> within;
  for (Best& of : best) {
    const std::int64_t limit = std::max<std::int64_t>(1, of.limit);
    if (!of.fits()) {
      asked.push_back(&of);
      within.push_back({limit});
      continue;
    }
    // Whoever is forced is no faster than who is free.
    const auto bound = free_bound(one, limit, context);
    if (!bound) return bound.error();
    if (*bound >= of.point.time * (1 - kOpen)) {
      of.bound = std::min(of.bound, *bound);
      continue;
    }
    asked.push_back(&of);
    within.push_back({limit, of.point.time});
  }
  if (asked.empty()) return {};
  if (auto done = price(one, context); !done) return done;
  const auto forced = ask(*one.prices);
  if (!forced) return forced.error();
  const auto problem = std::make_shared<const ForcedProblem>(one.prices, *one.priced, *forced);
  frontier::SolveOptions options;
  options.max_products = kProducts;
  options.enough_gap = kOpen;
  auto answers = solver_.fastest(problem->problem(), within, one.lines, options, context);
  if (!answers) return answers.error();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    frontier::Answer& answer = (*answers)[i];
    Best& of = *asked[i];
    of.bound = std::min(of.bound, answer.lower_bound.front().time);
    of.memory_bound = std::min(of.memory_bound, answer.lower_bound.front().memory);
    if (answer.points.empty() || !of.is_beaten_by(answer.points.front())) continue;
    of.problem = problem;
    of.point = std::move(answer.points.front());
  }
  return {};
}

std::vector<ForcedSearch::One*> ForcedSearch::likeliest_first(std::span<const std::int64_t> limits) const {
  std::vector<One*> order;
  for (const auto& one : numbers_) order.push_back(one.get());
  const auto least = [&](const One* one) {
    double sum = 0;
    for (const std::int64_t limit : limits) sum += frontier::time_above(one->lines, static_cast<double>(limit));
    return sum;
  };
  std::stable_sort(order.begin() + 1, order.end(), [&](const One* a, const One* b) { return least(a) < least(b); });
  return order;
}

Expected<std::vector<ResultPtr>> ForcedSearch::fastest(const Ask& ask, const std::vector<std::int64_t>& limits,
                                                       const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Best> best(limits.size());
  for (std::size_t i = 0; i < limits.size(); ++i) best[i].limit = limits[i];
  std::optional<Error> refusal;
  const std::vector<One*> order = likeliest_first(limits);
  for (std::size_t n = 0; n < order.size(); ++n) {
    context.report("forced choice", static_cast<double>(n) / static_cast<double>(order.size()));
    const auto done = improve(*order[n], ask, best, context);
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
