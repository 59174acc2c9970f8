// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/searcher.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/base/parallel.h"
#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/micro_batches.h"
#include "core/search/frontier_tracking/moved_bound.h"
#include "core/search/frontier_tracking/moved_ways.h"
#include "core/search/frontier_tracking/narrow.h"
#include "core/search/frontier_tracking/plans.h"
#include "core/search/frontier_tracking/sharding_run.h"

namespace turnpoint::search {

namespace {

// Memory is of no concern to the method: a single objective is left, and its optimum is the one point of the answer.
void forget_memory(frontier::Problem& problem) {
  for (auto& node : problem.nodes)
    for (auto& point : node.costs.mutable_points()) point.memory = 0;
  for (auto& edge : problem.edges)
    for (auto& point : edge.costs.mutable_points()) point.memory = 0;
}

class ConfigurationSearcher : public Searcher {
 public:
  ConfigurationSearcher(std::string method, SearchSpace space, Objective objective, Sweep* sweep, const Enough& enough)
      : method_(std::move(method)),
        space_(std::move(space)),
        objective_(objective),
        sweep_(sweep),
        enough_(enough),
        orders_(sweep ? sweep->orders : nullptr),
        micro_batch_(space_.micro_batches),
        solver_(orders_) {}

  Expected<ResultPtr> run(const ScenarioPtr& whole, SearchPass pass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    const auto part = micro_batch_.of(whole);
    if (!part) return part.error();
    const ScenarioPtr& scenario = *part;
    asked_ = whole;
    std::optional<Move> ahead = std::exchange(ahead_, std::nullopt);  // is made now or never
    if (sweep_ && sweep_->ask == Sweep::Ask::bound) return only_bound(*scenario);
    if (sweep_ && sweep_->ask == Sweep::Ask::forget) return forget();
    if (sweep_ && sweep_->ask == Sweep::Ask::moves) return expect_moves();
    const bool swept = sweep_ && sweep_->share < 1, survey = sweep_ && sweep_->ask == Sweep::Ask::survey;
    if (!structure_ || !same_structure(*structure_, *scenario)) {
      if (auto built = rebuild(*scenario, context); !built) return built.error();
      ahead.reset();
    }
    if (survey) sampled_.clear();
    if (survey || pass == SearchPass::coarse) surveyed_.reset();
    need_pool(context);
    if (sweep_ && sweep_->ask == Sweep::Ask::floor) return only_floor(scenario, context);
    if (sweep_ && sweep_->ask == Sweep::Ask::within) return only_within(context, start);
    const bool moves = pass == SearchPass::coarse && wanted_;
    if (sweep_) sweep_->moved = moves;
    // Asked again for the same, the hand rests. A number that joins the others there is narrow still.
    const bool rests = live_scenario_ && same_scenario(*live_scenario_, *scenario);
    if (sweep_ && sweep_->ask == Sweep::Ask::prices)
      return moves ? price_ahead(scenario, rests, context) : ResultPtr(without_points());
    if (moves) {
      if (!ahead || !same_scenario(ahead->prices->scenario(), *scenario)) ahead.reset();
      return run_live(scenario, rests, std::move(ahead), context, start);
    }
    const bool goes_on =
        surveyed_ && pass == SearchPass::exact && !survey && same_scenario(prices_->scenario(), *scenario);
    Expected<PricedProblem> priced = goes_on ? *std::exchange(surveyed_, std::nullopt) : price(scenario, context);
    if (!priced) return priced.error();
    frontier::SolveOptions options;
    options.pass = survey                                                            ? frontier::Pass::bounds
                   : pass == SearchPass::coarse && objective_ == Objective::frontier ? frontier::Pass::coarse
                                                                                     : frontier::Pass::exact;
    if (pass == SearchPass::exact) end_early(options, start, swept);
    if (swept) join(options);
    if (swept && !survey && pairs_of_layouts() <= kFewPairs) options.whole_products = kFewPairsProducts;
    auto answer = goes_on ? solver_.go_on(options, context) : solve(priced->problem, options, context);
    if (!answer) return answer.error();
    if (sweep_) sweep_->work = solver_.work();
    if (objective_ == Objective::least_time || space_.only) {
      keep_fastest(priced->problem, *answer);
    } else {
      bounds_.add(*scenario, *answer, least_compute_seconds(*structure_, *priced));
      if (swept) {
        sample(answer->points);
      } else {
        want(answer->points);
      }
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    auto result = make_result(method_, asked_, prices_, *priced, std::move(*answer), elapsed.count(), &*pool_);
    if (swept) pool_.reset();  // others want the threads
    if (survey && solver_.has_bounds()) {
      surveyed_ = std::move(*priced);
      surveyed_->problem = {};  // the solver has what it needs of it; all numbers' together would take gigabytes
    }
    return result;
  }

  // What the first moves of a slider would have to wait for: the states, the narrowed problem and how finely it can be
  // searched in time.
  Expected<void> get_ready(const ScenarioPtr& whole, const RunContext& context) override {
    const auto part = micro_batch_.of(whole);
    if (!part) return part.error();
    need_pool(context);
    if (!prices_ || !same_scenario(prices_->scenario(), **part))
      if (auto done = survey_late(*part, context); !done) return done;
    if (!wanted_ || !prices_ || !same_scenario(prices_->scenario(), **part)) return {};
    if (auto done = note_routes(context); !done) return done;
    if (tried_) return spare_threads();
    asked_ = whole;
    if (auto done = look_far(**part, context); !done) return done;
    if (auto done = learn_ways(**part, context); !done) return done;
    for (int move = 0; move < kMovesTried; ++move) {
      const auto drawn = run_live(*part, false, {}, context, {});
      live_scenario_.reset();
      if (!drawn) return drawn.error();
    }
    tried_ = true;
    return spare_threads();
  }

 private:
  // Problems with few pairs of layouts are searched over all states when a slider comes to rest, and to the end where
  // a sweep would stop at a gap, if that takes no more than a tenth of a second.
  static constexpr std::size_t kFewPairs = 80000;
  static constexpr double kFewPairsProducts = 5e7;
  static constexpr std::size_t kPlansLookedAt = 1500;  // of an answer, for the states that they use
  // How far above what all numbers of micro-batches reach a plan may lie, a part of its time, to be looked at, too: at
  // other prices it may lead. Too large only costs time; slider_bench judges both on networks that were not looked at.
  static constexpr double kNear = 0.02;
  static constexpr std::size_t kManyStates = 2000;         // beyond so many, those of the newest answer alone
  static constexpr std::size_t kManyPairsAtRest = 180000;  // at rest: beyond, it takes longer than the hand waits
  static constexpr double kLiveProducts = 1.5e6;           // of points, for one move of a slider
  static constexpr int kMovesTried = 3;                // before the first one, to learn how many buckets that allows
  static constexpr std::size_t kManyVariables = 1000;  // passes over the whole of a deep network take too long at rest
  static constexpr double kRestProducts = 7e6;         // for the last one, the hand at rest
  struct LinkFactors {
    double inter, intra;
  };
  static constexpr LinkFactors kFar[] = {{0.125, 1}, {0.35, 1}, {3, 1}, {8, 1}, {8, 0.125}, {0.125, 8}};

  Expected<void> rebuild(const Scenario& scenario, const RunContext& context) {
    auto built = build_structure(scenario, space_, context);
    if (!built) return built.error();
    structure_ = *built;
    prices_.reset();
    surveyed_.reset();
    routes_.clear();
    wanted_.reset();
    bounds_ = {};
    looked_far_ = 0;
    tried_ = false;
    live_structure_.reset();
    ways_ = {};
    live_scenario_.reset();
    sampled_.clear();
    return {};
  }

  Expected<PricedProblem> price(const ScenarioPtr& scenario, const RunContext& context) {
    routes_.clear();
    const auto prices = std::make_shared<const Prices>(scenario, structure_, prices_.get());
    auto priced = price_problem(*prices, *pool_, context);
    if (priced) prices_ = prices;
    return priced;
  }

  Expected<frontier::Answer> solve(const frontier::Problem& problem, const frontier::SolveOptions& options,
                                   const RunContext& context) {
    if (objective_ != Objective::least_time) return solver_.solve(problem, options, context);
    frontier::Problem timeless = problem;
    forget_memory(timeless);
    return solver_.solve(timeless, options, context);
  }

  // Others of a sweep want them.
  Expected<void> spare_threads() {
    if (sweep_) pool_.reset();
    return {};
  }

  void need_pool(const RunContext& context) {
    if (pool_ && threads_ == context.threads) return;
    pool_.emplace(context.threads);
    threads_ = context.threads;
  }

  void end_early(frontier::SolveOptions& options, std::chrono::steady_clock::time_point start, bool swept) const {
    options.enough_gap = enough_.gap.value_or(0);
    options.time_limit_s = seconds_until(swept ? sweep_->until : deadline_of(enough_, start));
  }

  // What is shared with the searches of other numbers of micro-batches.
  void join(frontier::SolveOptions& options) const {
    options.known = sweep_->known;
    options.slowest = sweep_->slowest;
    options.enough_gap = sweep_->enough_gap;
    options.max_products *= sweep_->share;
    options.live_products *= sweep_->share;
  }

  // Of a sweep's answer only what all numbers have found tells which plans are of use (get_ready).
  void sample(const std::vector<frontier::Point>& points) {
    if (points.empty()) return;
    for (std::size_t i = 0; i < points.size(); i += std::max<std::size_t>(1, points.size() / kPlansLookedAt))
      sampled_.push_back(points[i]);
    sampled_.push_back(points.back());
  }

  Expected<ResultPtr> expect_moves() {
    std::vector<frontier::Point> near;
    for (const frontier::Point& point : sampled_)
      if (point.memory >= sweep_->known.front().memory &&
          point.time <= (1 + kNear) * frontier::time_at(sweep_->known, point.memory))
        near.push_back(point);
    if (near.empty() && !sampled_.empty()) near.push_back(sampled_.back());
    sampled_.clear();
    if (!near.empty()) want(near);
    return ResultPtr(without_points());
  }

  // What earlier answers prove at these prices.
  Expected<ResultPtr> only_bound(const Scenario& scenario) const {
    auto result = without_points();
    result->lower_bound = bounds_.at(scenario);
    if (!result->lower_bound.empty()) result->gap = 1;
    return ResultPtr(std::move(result));
  }

  // Nothing is said of more memory.
  Expected<ResultPtr> only_within(const RunContext& context, std::chrono::steady_clock::time_point start) {
    const auto priced = price_problem(*prices_, *pool_, context);
    if (!priced) return priced.error();
    frontier::SolveOptions options;
    join(options);
    options.time_limit_s = seconds_until(sweep_->until);
    const frontier::Solver::Within within{sweep_->within.memory, sweep_->within.time};
    auto answers = frontier::Solver(orders_).fastest(priced->problem, {&within, 1}, {}, options, context);
    if (!answers) return answers.error();
    frontier::Answer& answer = answers->front();
    answer.exact = false;
    answer.gap = 1;
    answer.lower_bound.push_back({std::max(within.memory, answer.lower_bound.front().memory) + 1, 0});
    sample(answer.points);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    auto result = make_result(method_, asked_, prices_, *priced, std::move(answer), elapsed.count(), &*pool_);
    pool_.reset();  // others want the threads
    return result;
  }

  Expected<ResultPtr> only_floor(const ScenarioPtr& scenario, const RunContext& context) {
    const Prices prices(scenario, structure_, prices_.get());
    const double floor = least_passes_seconds(prices, *pool_, context);
    if (context.cancelled()) return cancelled_error();
    if (bounds_.at(*scenario).empty()) bounds_.add(*scenario, floor);
    auto result = without_points();
    result->lower_bound = {{0, floor}};
    result->bounds = {{space_.micro_batches, {{floor, 0}}}};
    result->gap = 1;
    pool_.reset();  // others want the threads
    return ResultPtr(std::move(result));
  }

  // A number that a sweep left out, for a slider that may bring it in: its fastest plan, as of every number none of
  // whose plans was near.
  Expected<void> survey_late(const ScenarioPtr& scenario, const RunContext& context) {
    if (!sweep_ || !structure_ || !same_structure(*structure_, *scenario)) return {};
    const auto priced = price(scenario, context);
    if (!priced) return priced.error();
    frontier::SolveOptions options;
    options.pass = frontier::Pass::bounds;
    join(options);
    const auto answer = solver_.solve(priced->problem, options, context);
    if (!answer) return answer.error();
    solver_.forget_bounds();
    bounds_.add(*scenario, *answer, least_compute_seconds(*structure_, *priced));
    if (!answer->points.empty()) want({answer->points.back()});
    return {};
  }

  Expected<ResultPtr> forget() {
    surveyed_.reset();
    solver_.forget_bounds();
    return ResultPtr(without_points());
  }

  std::shared_ptr<Result> without_points() const {
    auto result = std::make_shared<Result>();
    result->scenario = asked_;
    result->method = method_;
    return result;
  }

  // What plans of the whole search use is what a slider's moves are searched over.
  void want(const std::vector<frontier::Point>& points) {
    if (!wanted_ || wanted_->count() > kManyStates) wanted_.emplace(*structure_);
    const std::size_t before = wanted_->count();
    for (std::size_t i = 0; i < points.size(); i += std::max<std::size_t>(1, points.size() / kPlansLookedAt))
      wanted_->add(points[i]);
    wanted_->add(points.back());
    if (wanted_->count() != before) live_structure_.reset();
  }

  void narrow() {
    if (live_structure_) return;
    live_structure_ = narrow_structure(*structure_, wanted_->states());
    live_prices_.reset();
  }

  // A move of a slider: the narrowed problem at prices of its own; at rest reshardings are searched anew, and small
  // problems have all states.
  struct Move {
    bool all_states = false;
    std::shared_ptr<const Prices> prices;
    PricedProblem priced;
  };

  Expected<Move> price_move(const ScenarioPtr& scenario, bool rests, const RunContext& context) {
    const bool all_states = rests && pairs_of_layouts() <= kFewPairs;
    if (rests && !all_states && !deep() && pairs_of_layouts() <= kManyPairsAtRest)
      if (auto done = look_around(scenario, Look::hull, context); !done) return done.error();
    narrow();
    if (all_states) {
      const auto prices = std::make_shared<const Prices>(scenario, structure_, prices_.get());
      auto priced = price_problem(*prices, *pool_, context);
      if (!priced) return priced.error();
      return Move{all_states, prices, std::move(*priced)};
    }
    auto priced = price_narrowed(scenario, rests ? MovedWays::Search::always : MovedWays::Search::far, context);
    if (!priced) return priced.error();
    live_prices_ = priced->prices;
    return Move{all_states, std::move(priced->prices), std::move(priced->problem)};
  }

  frontier::SolveOptions move_options(bool rests) const {
    frontier::SolveOptions options;
    options.pass = frontier::Pass::coarse;
    // The deeper the network, the less of the time at rest is left for products.
    const double left = deep() ? 5.6 * kManyVariables / static_cast<double>(structure_->variables.size()) : 1;
    options.live_products = rests ? kRestProducts * left : kLiveProducts;
    options.live_rests = rests;
    if (sweep_ && sweep_->share < 1) join(options);
    return options;
  }

  Expected<ResultPtr> price_ahead(const ScenarioPtr& scenario, bool rests, const RunContext& context) {
    auto move = price_move(scenario, rests, context);
    if (!move) return move.error();
    auto kept = solver_of(*move).begin_coarse(move->priced.problem, move_options(rests), context);
    if (!kept) return kept.error();
    sweep_->kept = std::move(*kept);
    ahead_ = std::move(*move);
    return ResultPtr(without_points());
  }

  /// `ahead`: the move, if it was priced ahead and nothing was asked since.
  Expected<ResultPtr> run_live(const ScenarioPtr& scenario, bool rests, std::optional<Move> ahead,
                               const RunContext& context, std::chrono::steady_clock::time_point start) {
    const bool begun = ahead.has_value();
    Expected<Move> move = begun ? std::move(*ahead) : price_move(scenario, rests, context);
    if (!move) return move.error();
    live_scenario_ = scenario;
    frontier::SolveOptions options = move_options(rests);
    options.begun = begun;
    auto answer = solver_of(*move).solve(move->priced.problem, options, context);
    if (!answer) return answer.error();
    if (sweep_ && !sweep_->known.empty()) forget_what_others_reach(answer->points);
    // Bounds of the narrowed problem say nothing of other plans.
    certify(*answer, bounds_.at(*scenario));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return make_result(method_, asked_, move->prices, move->priced, std::move(*answer), elapsed.count(), &*pool_);
  }

  // The plan of least memory stays: it tells how slow plans are considered.
  void forget_what_others_reach(std::vector<frontier::Point>& points) const {
    const auto reached = [&](const frontier::Point& point) {
      return frontier::time_at(sweep_->known, point.memory) < point.time;
    };
    points.erase(std::remove_if(points.begin() + 1, points.end(), reached), points.end());
  }

  frontier::Solver& solver_of(const Move& move) { return move.all_states ? solver_ : live_solver_; }
  bool deep() const { return structure_->variables.size() > kManyVariables; }

  // Of the last exact search, which only a slider will ask for.
  Expected<void> note_routes(const RunContext& context) {
    if (!routes_.empty()) return {};
    const auto priced = price_problem(*prices_, *pool_, context, &routes_);
    if (priced) return {};
    routes_.clear();  // perhaps half filled
    return priced.error();
  }

  enum class Look {
    hull,     ///< its plans: quickly, for where the hand rests
    between,  ///< and what a coarse pass finds between them: along a long chord plans use what neither end does
  };

  // What these plans of the whole problem at these prices use is wanted, too. Reshardings go the ways of the last
  // exact search, which is near enough to see what matters.
  Expected<void> look_around(const ScenarioPtr& scenario, Look look, const RunContext& context) {
    if (routes_.empty()) return {};
    const Prices prices(scenario, structure_, prices_.get());
    auto priced = price_problem(prices, *pool_, context, &routes_, true);
    if (!priced) return priced.error();
    frontier::SolveOptions options;
    options.pass = frontier::Pass::coarse;
    options.hull_only = look == Look::hull;
    auto answer = solver_.solve(priced->problem, options, context);
    if (!answer) return answer.error();
    if (!answer->points.empty()) want(answer->points);
    return {};
  }

  Expected<MovedWays::Priced> price_narrowed(const ScenarioPtr& scenario, MovedWays::Search search,
                                             const RunContext& context) {
    const Prices* known = live_prices_ ? live_prices_.get() : prices_.get();
    return ways_.price(scenario, live_structure_, known, search, *pool_, context);
  }

  // The ways of the first moves: those of where the sliders stand, and of where they may go.
  Expected<void> learn_ways(const Scenario& scenario, const RunContext& context) {
    narrow();
    if (auto here = price_narrowed(at(scenario, {1, 1}), MovedWays::Search::always, context); !here)
      return here.error();
    for (const LinkFactors& far : kFar)
      if (auto there = price_narrowed(at(scenario, far), MovedWays::Search::always, context); !there)
        return there.error();
    return {};
  }

  // Where sliders may go, other configurations are of use: once, before anything is dragged. Most closely where moves
  // are searched.
  Expected<void> look_far(const Scenario& scenario, const RunContext& context) {
    const Look look = sweep_ && !sweep_->of_use ? Look::hull : Look::between;
    for (; looked_far_ < std::size(kFar); ++looked_far_)
      if (auto done = look_around(at(scenario, kFar[looked_far_]), look, context); !done) return done;
    return {};
  }

  static ScenarioPtr at(const Scenario& scenario, const LinkFactors& factors) {
    auto there = std::make_shared<Scenario>(scenario);
    there->settings.factors.inter_bandwidth *= factors.inter;
    there->settings.factors.intra_bandwidth *= factors.intra;
    return there;
  }

  std::size_t pairs_of_layouts() const {
    std::size_t pairs = 0;
    for (const PairTable& table : structure_->tables) pairs += table.from.size() * table.to.size();
    return pairs;
  }

  std::string method_;
  SearchSpace space_;
  Objective objective_;
  Sweep* sweep_;
  Enough enough_;
  std::shared_ptr<frontier::Orders> orders_;
  std::vector<frontier::Point> sampled_;  // of the sweep's last answers
  OneMicroBatch micro_batch_;             // what is searched; all below speak of it
  ScenarioPtr asked_;                     // of the result
  std::shared_ptr<const Structure> structure_;
  std::shared_ptr<const Prices> prices_;
  RouteBook routes_;
  std::optional<PricedProblem> surveyed_;  // by a sweep whose search may follow
  std::optional<WantedStates> wanted_;
  MovedBounds bounds_;  // what exact and whole coarse searches at other positions have proven
  std::shared_ptr<const Structure> live_structure_;  // narrowed to what is wanted
  std::shared_ptr<const Prices> live_prices_;
  MovedWays ways_;             // of the narrowed structure
  ScenarioPtr live_scenario_;  // of the last move
  std::optional<Move> ahead_;  // priced for the next run
  frontier::Solver live_solver_;
  std::size_t looked_far_ = 0;  // how many of kFar
  bool tried_ = false;          // moves, since then
  frontier::Solver solver_;
  std::optional<ThreadPool> pool_;
  int threads_ = 0;
};

}  // namespace

std::unique_ptr<Searcher> search_configurations(std::string method, SearchSpace space, Objective objective,
                                                Sweep* sweep, const Enough& enough) {
  return std::make_unique<ConfigurationSearcher>(std::move(method), std::move(space), objective, sweep, enough);
}

}  // namespace turnpoint::search
