// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/solver.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/discard.h"
#include "core/frontier/crossings.h"
#include "core/frontier/orders.h"
#include "core/frontier/packed_points.h"
#include "core/frontier/wide.h"

namespace turnpoint::frontier {

using namespace detail;

struct Solver::Impl {
  std::unique_ptr<ThreadPool> pool;
  int threads = -1;
  Graph graph;                     // of the previous call: its structure decides whether `plan` still holds
  std::shared_ptr<Orders> orders;  // null: its own
  std::shared_ptr<const Elimination> plan;
  std::size_t max_table = 0;
  bool unchanged = false;         // the same costs, too
  std::vector<LaneBlock> blocks;  // working memory
  double live_buckets = 0;        // 0: no move was made
  double moved_products = 0;      // of points, that the last move of a slider took
  std::vector<Point> previous;    // plans of the last answer, thinned out; at new costs they are a good start
  PackedPoints packed_previous;   // or here: many solvers may wait, and packing takes too long for a slider's moves
  struct Begun {
    PackedPoints plans;
    std::vector<HalfPlane> planes;
  };
  std::optional<Begun> begun;        // after Pass::bounds
  std::optional<Achieved> repriced;  // after begin_coarse()
  Work work;                         // of the last call

  void live(Engine& engine, Achieved& achieved, const SolveOptions& options) {
    const Policy& policy = options.policy;
    const double fewest = 1 / policy.drag_open;  // a bucket hides no more than may stay hidden
    if (live_buckets == 0) live_buckets = policy.first_buckets;
    if (options.live_rests) {
      const double finer = moved_products > 0 ? options.live_products / moved_products : 1;
      engine.live(achieved, std::clamp(live_buckets * finer, live_buckets, policy.most_buckets), options.live_products,
                  true);
      return;
    }
    moved_products = engine.live(achieved, live_buckets, options.live_products, false);
    if (moved_products == 0) return;
    if (moved_products > options.live_products)
      live_buckets = std::max(fewest, live_buckets / 2);
    else if (moved_products * 5 < options.live_products)
      live_buckets = std::min(policy.most_buckets, live_buckets * 2);
  }

  void keep(std::vector<Point> plans, bool live) {
    packed_previous = live ? PackedPoints() : PackedPoints(plans);
    previous = live ? std::move(plans) : std::vector<Point>();
  }
  std::vector<Point> kept() const { return packed_previous.empty() ? previous : packed_previous.all(); }
  void forget_kept() {
    previous.clear();
    packed_previous = {};
  }

  void need_pool(const RunContext& context) {
    if (pool && threads == context.threads) return;
    pool = std::make_unique<ThreadPool>(context.threads);
    threads = context.threads;
  }

  /// Lists over the states of the hull, of so many products, and, of `products`, exact ones over all; true if the whole
  /// frontier was found.
  bool refine(Engine& engine, Achieved& achieved, const SolveOptions& options, double restricted, double products,
              const Control& control, CostList& floor) {
    control.report("coarse frontier", 0);
    const bool near = plan->terms >= options.restrict_terms && engine.restricted(achieved, options.buckets, restricted);
    if (!near && options.pass == Pass::coarse) engine.coarse(achieved, options.buckets);
    return products > 0 && !control.stopped() &&
           engine.exact(achieved, std::min(products, options.max_products), floor, options.whole_products);
  }

  /// False if cancelled.
  bool prepare(const Problem& problem, const SolveOptions& options, const RunContext& context) {
    need_pool(context);
    begun.reset();
    repriced.reset();
    Graph next = build_graph(problem, *pool, context.stop);
    if (context.cancelled()) return false;
    const bool same = max_table == options.max_table && next.same_structure(graph);
    unchanged = same && next.leaves.size() == graph.leaves.size() &&
                std::equal(next.leaves.begin(), next.leaves.end(), graph.leaves.begin(),
                           [](const auto& a, const auto& b) { return *a == *b; });
    graph = std::move(next);
    if (same) return true;
    max_table = options.max_table;
    forget_kept();
    const std::size_t widest = std::min(options.max_table, std::size_t(1) << 31);
    plan = orders ? orders->of(graph, widest, context.stop, options.policy)
                  : std::make_shared<const Elimination>(eliminate(graph, widest, context.stop, options.policy));
    if (!context.cancelled()) return true;
    max_table = 0;  // never equal: the next call starts afresh
    return false;
  }
};

namespace {

/// Says at the end of a call what was done.
struct Noted {
  const Control& control;
  Work& work;
  ~Noted() { work = control.work(); }
};

constexpr double kRounding = 1e-6;  // of a cost: bounds are made of floats

/// Memory and time at the costs of this problem; false where the plan uses a forbidden combination. Where an entry has
/// fewer alternatives than it had, the last.
bool cost_anew(const Problem& problem, Point& plan) {
  CostPoint sum;
  const auto add = [&](std::span<const CostPoint> entry, std::uint16_t& alternative) {
    if (entry.empty()) return false;
    if (alternative >= entry.size()) alternative = static_cast<std::uint16_t>(entry.size() - 1);
    sum.memory += entry[alternative].memory;
    sum.time += entry[alternative].time;
    return true;
  };
  for (std::size_t i = 0; i < problem.nodes.size(); ++i)
    if (!add(problem.nodes[i].costs[plan.configs[i]], plan.node_alternatives[i])) return false;
  for (std::size_t k = 0; k < problem.edges.size(); ++k) {
    const Edge& edge = problem.edges[k];
    const std::size_t row = edge.from_class[plan.configs[edge.from]], column = edge.to_class[plan.configs[edge.to]];
    if (!add(edge.costs[row * edge.columns + column], plan.edge_alternatives[k])) return false;
  }
  plan.memory = sum.memory;
  plan.time = sum.time;
  return true;
}

/// Plans of an earlier answer at the costs of this problem.
std::vector<Point> recost(const Problem& problem, std::vector<Point> plans, ThreadPool& pool) {
  std::vector<char> valid(plans.size(), 0);
  pool.for_each(
      plans.size(), [&](std::size_t i, int) { valid[i] = cost_anew(problem, plans[i]); }, 16);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (valid[i] && kept++ != i) plans[kept - 1] = std::move(plans[i]);
  plans.resize(kept);
  return plans;
}

/// At most about `count` of them: the corners of the hull, and the others evenly.
std::vector<Point> thin(const Achieved& achieved, std::size_t count) {
  const auto& points = achieved.points();
  std::vector<char> keep(points.size(), 0);
  for (const std::size_t i : achieved.hull()) keep[i] = 1;
  for (std::size_t i = 0; i < points.size(); i += 1 + points.size() / count) keep[i] = 1;
  std::vector<Point> result;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (keep[i]) result.push_back(points[i]);
  return result;
}

/// How many plans do where there is little time, fewer of a deep network.
std::size_t few_plans(const Problem& problem, const Policy& policy) {
  const std::size_t count = policy.few_choices / std::max<std::size_t>(1, problem.nodes.size());
  return std::min(std::max(count, policy.enough_plans), policy.kept_plans);
}

}  // namespace

Solver::Solver(std::shared_ptr<Orders> orders) : impl_(std::make_unique<Impl>()) { impl_->orders = std::move(orders); }
Solver::~Solver() = default;

namespace {

Error infeasible() {
  return {ErrorCode::infeasible, "the problem has no solution: every combination is forbidden", {}, {}};
}
Error too_wide() {
  return {
      ErrorCode::infeasible, "no solution was found, and the problem is too wide to prove that there is none", {}, {}};
}

/// No plan needs less memory.
double memory_bound(const std::vector<HalfPlane>& planes) {
  double bound = 0;
  for (const HalfPlane& plane : planes)
    if (plane.weight_time == 0 && plane.weight_memory > 0) bound = std::max(bound, plane.bound / plane.weight_memory);
  return bound;
}

Answer finish(Achieved& achieved, bool exact, const std::vector<HalfPlane>& planes, std::int64_t limit,
              const CostList& floor = {}) {
  Answer answer;
  answer.exact = exact && !achieved.is_limited();
  if (!answer.exact) {
    Certificate certificate = certify(planes, within(achieved.costs(), limit), limit, floor);
    answer.gap = achieved.is_limited() ? certify(planes, within(achieved.staircase(), limit), limit, floor).gap
                                       : certificate.gap;
    answer.lower_bound = std::move(certificate.lower_bound);
  } else if (achieved.knows()) {  // plans that do not improve on it are not among the points
    answer.lower_bound = within(achieved.staircase(), limit);
  }
  auto& points = achieved.points();
  answer.lines = bound_lines(planes);
  if (answer.exact && answer.lines.empty()) answer.lines = lines_below(achieved.costs());
  if (limit > 0) {
    const auto above = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.memory > limit; });
    points.erase(std::max(above, points.begin() + 1), points.end());
  }
  answer.points = std::move(points);
  return answer;
}

}  // namespace

Expected<Answer> Solver::solve(const Problem& problem, const SolveOptions& options, const RunContext& context) {
  const Policy& policy = options.policy;
  const Control control(context, options.time_limit_s);
  const Noted noted{control, impl_->work};
  if (context.cancelled()) return cancelled_error();
  context.report("frontier structure", 0);
  std::optional<Achieved> repriced = std::exchange(impl_->repriced, std::nullopt);
  if (!options.begun) repriced.reset();
  if (!repriced && !impl_->prepare(problem, options, context)) return cancelled_error();
  Achieved achieved;
  if (impl_->plan->too_wide) {
    achieved.know(options.known, options.slowest);
    const WideResult wide = solve_wide(impl_->graph, options, *impl_->pool, control, achieved);
    if (control.cancelled()) return cancelled_error();
    if (wide.infeasible) return infeasible();
    if (achieved.empty()) return too_wide();
    if (options.pass == Pass::bounds) impl_->begun = {PackedPoints(achieved.points()), wide.planes};
    return finish(achieved, false, wide.planes, options.memory_limit);
  }
  Engine engine(impl_->graph, *impl_->plan, *impl_->pool, control, options.memory_limit, impl_->blocks, policy,
                options.enough_gap);
  CostList floor;
  const bool live = options.live_products > 0;
  bool quick = false, coarse = options.pass == Pass::coarse;
  bool exact = !live && impl_->plan->terms <= options.direct_terms && engine.direct(achieved);
  if (!exact && !control.cancelled()) {
    // A move of a slider leaves plans of its own behind; what is quicker keeps those of the last full run. An exact
    // pass is to say the same whatever was asked before it.
    if (coarse && repriced)
      achieved = std::move(*repriced);
    else if (coarse)
      achieved.add(recost(problem, impl_->kept(), *impl_->pool));
    achieved.know(options.known, options.slowest);
    // While a slider moves, the plans of the last full run at the new costs and those of the new hull are frontier
    // enough. Asked again at the same costs, the hand rests: then there is time for more.
    const bool known = achieved.points().size() >= policy.enough_plans;
    quick = coarse && !live &&
            (options.hull_only || (known && !impl_->unchanged && impl_->plan->terms > options.direct_terms));
    const bool bounded = options.hull_only ? engine.hull(achieved) : engine.closed_hull(achieved);
    if (bounded && !options.hull_only)
      add_crossings(problem, achieved, live ? few_plans(problem, policy) : policy.crossings, *impl_->pool);
    if (bounded && live) {
      impl_->live(engine, achieved, options);
    } else if (bounded && options.pass == Pass::bounds) {
      impl_->begun = {PackedPoints(achieved.points()), engine.half_planes()};
      free_memory(impl_->blocks);  // many solvers may wait
    } else if (bounded && !quick) {
      const double restricted = !coarse            ? options.max_products * policy.hull_share
                                : impl_->unchanged ? policy.short_products
                                                   : 0,
                   allowed = !coarse                                                          ? options.max_products
                             : impl_->plan->terms <= options.direct_terms || impl_->unchanged ? policy.short_products
                                                                                              : 0;
      exact = impl_->refine(engine, achieved, options, restricted, allowed, control, floor);
    }
  }
  if (control.cancelled()) {
    if (live) impl_->keep(thin(achieved, few_plans(problem, policy)), true);
    discard(std::move(achieved));
    return cancelled_error();
  }
  if (engine.infeasible()) return infeasible();
  if (!quick) impl_->keep(thin(achieved, live ? few_plans(problem, policy) : policy.kept_plans), live);
  return finish(achieved, exact, engine.half_planes(), options.memory_limit, floor);
}

Expected<std::vector<CostPoint>> Solver::begin_coarse(const Problem& problem, const SolveOptions& options,
                                                      const RunContext& context) {
  if (context.cancelled() || !impl_->prepare(problem, options, context)) return cancelled_error();
  Achieved& achieved = impl_->repriced.emplace();
  achieved.add(recost(problem, impl_->kept(), *impl_->pool));
  return achieved.staircase();
}

namespace {

/// What Solver::fastest says of these plans. `proven`: no plan within the limit is faster.
Answer fastest_of(const std::vector<Point>& points, std::int64_t limit, bool whole,
                  const std::vector<HalfPlane>& planes, double proven) {
  Answer answer;
  answer.lower_bound.push_back(
      {static_cast<std::int64_t>(std::floor(memory_bound(planes))), std::max(proven, time_bound(planes, limit))});
  if (points.empty()) return answer;
  const auto above =
      std::find_if(points.begin(), points.end(), [&](const Point& point) { return point.memory > limit; });
  const bool fits = above != points.begin();
  answer.points.push_back(fits ? *std::prev(above) : points.front());
  const Point& point = answer.points.front();
  CostPoint& bound = answer.lower_bound.front();
  if (whole) bound = {points.front().memory, fits ? point.time : kInfinity};
  if (fits) bound.time = std::min(bound.time, point.time);
  bound.memory = std::min(bound.memory, points.front().memory);
  const double cost = fits ? point.time : static_cast<double>(point.memory),
               least = fits ? bound.time : static_cast<double>(bound.memory);
  if (cost > 0 && least < cost * (1 - kRounding)) answer.gap = (cost - least) / cost;
  answer.exact = answer.gap == 0;
  return answer;
}

/// What is found within some memories, one after the other.
struct Fastest {
  Achieved achieved;
  std::vector<HalfPlane> planes;
  std::vector<double> proven;  // of each memory: no plan within it is faster
  bool whole = false;          // every plan of the frontier is known
};

void improve_within(Engine& engine, const Solver::Within& one, const SolveOptions& options, Fastest& found,
                    double& proven) {
  const auto& [memory, known] = one;
  const double gap = engine.fastest_at(found.achieved, memory, known, options.max_products);
  if (gap < 1) proven = std::min(known, time_at(found.achieved.staircase(), memory)) * (1 - gap);
}

}  // namespace

Expected<std::vector<Answer>> Solver::fastest(const Problem& problem, std::span<const Within> within,
                                              std::span<const BoundLine> like, const SolveOptions& options,
                                              const RunContext& context) {
  const Control control(context, options.time_limit_s);
  const Noted noted{control, impl_->work};
  if (context.cancelled()) return cancelled_error();
  if (within.empty()) return std::vector<Answer>();
  context.report("frontier structure", 0);
  if (!impl_->prepare(problem, options, context)) return cancelled_error();
  Fastest found;
  found.proven.assign(within.size(), 0);
  std::vector<std::int64_t> memories;
  for (const Within& one : within) memories.push_back(one.memory);
  if (impl_->plan->too_wide) {
    SolveOptions one = options;
    for (const std::int64_t memory : memories) {
      one.memory_limit = memory;
      const WideResult wide = solve_wide(impl_->graph, one, *impl_->pool, control, found.achieved);
      found.planes.insert(found.planes.end(), wide.planes.begin(), wide.planes.end());
      found.whole = found.whole || wide.infeasible;
    }
  } else {
    Engine engine(impl_->graph, *impl_->plan, *impl_->pool, control, memories.back(), impl_->blocks, options.policy,
                  options.enough_gap);
    found.whole = impl_->plan->terms <= options.direct_terms && engine.direct(found.achieved);
    if (!found.whole && engine.hull_at(found.achieved, memories, like)) {
      add_crossings(problem, found.achieved, few_plans(problem, options.policy), *impl_->pool);
      found.planes = engine.half_planes();
      for (std::size_t i = 0; i < within.size(); ++i)
        if (time_bound(found.planes, memories[i]) < within[i].known * (1 - options.enough_gap))
          improve_within(engine, within[i], options, found, found.proven[i]);
    }
    found.whole = found.whole || engine.infeasible();
  }
  impl_->forget_kept();
  if (control.cancelled()) return cancelled_error();
  if (found.achieved.empty() && found.whole) return infeasible();
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < within.size(); ++i)
    answers.push_back(fastest_of(found.achieved.points(), memories[i], found.whole, found.planes, found.proven[i]));
  return answers;
}

Expected<Answer> Solver::fastest(const Problem& problem, const SolveOptions& options, const RunContext& context) {
  const Within within{options.memory_limit, time_at(options.known, options.memory_limit)};
  auto answers = fastest(problem, {&within, 1}, {}, options, context);
  if (!answers) return answers.error();
  return std::move(answers->front());
}

Work Solver::work() const { return impl_->work; }
bool Solver::has_bounds() const { return impl_->begun.has_value(); }
void Solver::forget_bounds() {
  impl_->begun.reset();
  impl_->graph.leaves = {};
}

Expected<Answer> Solver::go_on(const SolveOptions& options, const RunContext& context) {
  const Control control(context, options.time_limit_s);
  const Noted noted{control, impl_->work};
  impl_->need_pool(context);
  auto [plans, planes] = *std::exchange(impl_->begun, std::nullopt);
  Achieved achieved;
  achieved.add(plans.all());
  achieved.know(options.known, options.slowest);
  CostList floor;
  bool exact = false;
  if (impl_->plan->too_wide) {
    const WideResult wide = solve_wide(impl_->graph, options, *impl_->pool, control, achieved);
    planes.insert(planes.end(), wide.planes.begin(), wide.planes.end());
  } else {
    Engine engine(impl_->graph, *impl_->plan, *impl_->pool, control, options.memory_limit, impl_->blocks,
                  options.policy, options.enough_gap);
    engine.know(std::move(planes));
    exact = impl_->refine(engine, achieved, options, options.max_products * options.policy.hull_share,
                          options.max_products, control, floor);
    planes = engine.half_planes();
  }
  if (control.cancelled()) {
    discard(std::move(achieved));
    return cancelled_error();
  }
  impl_->keep(thin(achieved, options.policy.kept_plans), false);
  free_memory(impl_->blocks);
  return finish(achieved, exact, planes, options.memory_limit, floor);
}

}  // namespace turnpoint::frontier
