// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/engine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/discard.h"
#include "core/frontier/slopes.h"

namespace turnpoint::frontier::detail {

namespace {

/// Neighbouring slopes often have one best plan; it is costed once.
std::vector<Point> make_distinct_points(const Graph& graph, std::vector<Choice> choices) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto end = choices.begin() + static_cast<std::ptrdiff_t>(kept);
    if (std::find(choices.begin(), end, choices[i]) == end && kept++ != i) choices[kept - 1] = std::move(choices[i]);
  }
  std::vector<Choice> by_table(choices.front().size(), Choice(kept));
  for (std::size_t i = 0; i < kept; ++i)
    for (std::size_t table = 0; table < by_table.size(); ++table) by_table[table][i] = choices[i][table];
  std::vector<Point> points(kept);
  make_points(graph, by_table, points);
  return points;
}

/// Gaps that are proven one after the other of the fastest plan within a limit.
std::vector<double> tolerances_of(const Policy& policy) {
  std::vector<double> tolerances;
  for (int level = -3; level < 3; ++level) tolerances.push_back(policy.gap / std::pow(policy.next_gap, level));
  tolerances.push_back(0);
  return tolerances;
}

/// Of lists that fit into the memory that a search may take.
std::size_t most_points(const Policy& policy) { return policy.bytes / ListTable::kPointBytes; }

bool in_use(const Slack& slack) {
  for (std::size_t g = 0; g < kLanes; ++g)
    if (slack[g][0] > -kInfinity) return true;
  return false;
}

}  // namespace

void first_weights(const Dag& dag, std::vector<double>& memory, std::vector<double>& time) {
  double range_m = 1, range_t = 0;
  for (const auto& table : dag.tables) {
    if (!table.leaf || table.leaf->memory.empty()) continue;
    const auto [m0, m1] = std::minmax_element(table.leaf->memory.begin(), table.leaf->memory.end());
    const auto [t0, t1] = std::minmax_element(table.leaf->time.begin(), table.leaf->time.end());
    range_m += static_cast<double>(*m1 - *m0);
    range_t += *t1 - *t0;
  }
  if (!(range_t > 0)) range_t = 1;
  memory.assign({1 / range_m, 0});
  time.assign({0, 1 / range_t});
  for (std::size_t i = 2; i < kLanes; ++i) {
    const double ratio = std::exp2(1.6 * (double(i) - 8.5));
    memory.push_back(ratio / (1 + ratio) / range_m);
    time.push_back(1 / (1 + ratio) / range_t);
  }
}

bool Engine::lanes(const std::vector<double>& memory, const std::vector<double>& time, std::vector<Point>* plans,
                   bool beside) {
  const std::size_t count = (memory.size() + kLanes - 1) / kLanes, first = beside ? used_ : 0;
  used_ = first + count;
  if (blocks_.size() < used_) blocks_.resize(used_);
  std::size_t entries = 0;
  for (const auto& table : dag_.tables) entries += table.entries;
  const std::size_t bytes = std::max<std::size_t>(1, entries * kLanes * sizeof(float) * 2);
  large_ = bytes * used_ > policy_.bytes;
  side_by_side_ = large_ ? std::clamp<std::size_t>(policy_.bytes / bytes, 1, std::size_t(pool_.threads())) : used_;
  for (std::size_t b = 0; large_ && b < first; ++b) blocks_[b].release();
  std::vector<char> ok(count, 0);
  std::vector<std::vector<Point>> found(count);
  std::atomic<std::size_t> begun{0};
  const auto run = [&](std::size_t b) {
    control_.report("bounds", double(begun++) / double(count));
    LaneBlock& block = blocks_[first + b];
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::size_t i = std::min(b * kLanes + l, memory.size() - 1);
      block.weight_memory[l] = memory[i];
      block.weight_time[l] = time[i];
    }
    ok[b] = block.inside(dag_, control_, std::min(side_by_side_, count) == 1 ? &pool_ : nullptr);
    if (ok[b] && plans) found[b] = make_distinct_points(graph_, block.trace(dag_));
    if (large_) block.release();
  };
  for_blocks(count, run);
  for (const char o : ok)
    if (!o) {
      infeasible_ = !control_.cancelled();
      return false;
    }
  for (const LaneBlock& block : used().subspan(first)) append_half_planes(block, planes_);
  if (plans)
    for (auto& f : found) std::move(f.begin(), f.end(), std::back_inserter(*plans));
  return true;
}

bool Engine::relane(Achieved& achieved, std::size_t count) {
  std::vector<double> memory, time;
  std::vector<Point> plans;
  choose_weights(achieved, count, memory, time);
  if (!lanes(memory, time, &plans)) return false;
  achieved.add(std::move(plans));
  return true;
}

bool Engine::hull(Achieved& achieved) {
  if (achieved.empty()) {
    std::vector<double> memory, time;
    std::vector<Point> plans;
    first_weights(dag_, memory, time);
    if (!lanes(memory, time, &plans)) return false;
    achieved.add(std::move(plans));
  }
  return relane(achieved, kLanes);
}

bool Engine::closed_hull(Achieved& achieved) { return hull(achieved) && close_chords(achieved); }

bool Engine::hull_at(Achieved& achieved, std::span<const std::int64_t> limits, std::span<const BoundLine> like) {
  std::vector<double> memory, time;
  first_weights(dag_, memory, time);
  weights_along(like, limits, kLanes, memory, time);
  // Along a chord of the hull lies its bound.
  const auto is_open = [&](std::int64_t limit) {
    const auto chord = achieved.chord_at(limit);
    if (!chord) return false;
    const auto& [a, b] = *chord;
    const double at =
        a.time - (a.time - b.time) * static_cast<double>(limit - a.memory) / static_cast<double>(b.memory - a.memory);
    return time_bound(planes_, limit) < at * (1 - policy_.gap / (policy_.next_gap * policy_.next_gap));
  };
  for (;;) {
    std::vector<Point> plans;
    if (!lanes(memory, time, &plans)) return false;
    achieved.add(std::move(plans));
    if (std::ranges::none_of(limits, is_open)) return true;
    const std::vector<double> asked = memory;
    weights_at(achieved, limits, kLanes, memory, time);
    if (memory == asked || control_.stopped()) return true;  // what is left is rounding
  }
}

void Engine::improve_at(Achieved& achieved, std::int64_t limit, double max_products) {
  const Graph part = hull_states(achieved);
  const Elimination plan = eliminate(part, dag_.plan->largest_table, control_.stop(), policy_);
  if (plan.too_wide || control_.stopped()) return;
  std::vector<LaneBlock> blocks;
  Engine engine(part, plan, pool_, control_, limit, blocks, policy_);
  if (!engine.hull_at(achieved, {&limit, 1})) return;
  const double best = time_at(achieved.staircase(), limit);
  const auto slack = slack_below(engine.used(), static_cast<double>(limit) + 1, best);
  if (!slack) return;
  double products = 0;
  if (engine.lists(achieved, *slack, max_products, products) != ListResult::done && !control_.stopped())
    engine.beam(achieved, policy_.most_buckets, 1, *slack);
}

bool Engine::prove_at(Achieved& achieved, std::int64_t limit, double known, double tolerance, double& max_products) {
  const double wanted = std::min(known, time_at(achieved.staircase(), limit)) * (1 - tolerance);
  const auto slack = slack_below(used(), static_cast<double>(limit) + 1, wanted);
  if (!slack) return true;
  double products = 0;
  if (wanted < kInfinity) achieved.know({{0, wanted}});
  const ListResult result = lists(achieved, *slack, max_products, products);
  achieved.know({});
  max_products -= products;
  return result == ListResult::done;
}

double Engine::fastest_at(Achieved& achieved, std::int64_t limit, double known, double max_products) {
  improve_at(achieved, limit, max_products * policy_.hull_share);
  // Most often little is left open, and one pass shows all of it.
  double few = std::min(max_products, policy_.instant_products);
  if (prove_at(achieved, limit, known, 0, few)) return 0;
  double proven = 1;
  for (const double tolerance : tolerances_of(policy_)) {
    if (control_.stopped() || !prove_at(achieved, limit, known, tolerance, max_products)) break;
    if (!(std::min(known, time_at(achieved.staircase(), limit)) < kInfinity)) return 0;  // nothing fits
    proven = tolerance;
    if (proven <= enough_gap_) break;
  }
  return proven;
}

/// What is found at some slopes opens new chords, behind which more may hide: asks at their slopes until little can.
bool Engine::close_chords(Achieved& achieved) {
  for (std::vector<double> asked;;) {
    std::vector<double> memory, time;
    open_chords(planes_, achieved, kLanes, policy_.closed, memory, time);
    if (memory.empty() || memory == asked || control_.stopped()) return true;  // what is left is rounding
    asked = memory;
    std::vector<Point> plans;
    if (!lanes(memory, time, &plans, true)) return false;
    achieved.add(std::move(plans));
  }
}

std::int64_t Engine::effective_limit(const Achieved& achieved) const {
  return limit_ <= 0 ? 0 : std::max(limit_, achieved.points().front().memory);
}

void Engine::prune(const std::vector<Slack>& slack) {
  std::vector<std::size_t> open;
  for (std::size_t b = 0; b < used_; ++b)
    if (in_use(slack[b])) open.push_back(b);
  for_blocks(open.size(), [&](std::size_t i) {
    LaneBlock& block = blocks_[open[i]];
    if (large_ && !block.inside(dag_, control_, std::min(side_by_side_, open.size()) == 1 ? &pool_ : nullptr)) return;
    block.outside(dag_, slack[open[i]], control_, large_);
    if (large_) block.release();
  });
}

/// As many side by side as there is room for; one alone has the threads to itself.
void Engine::for_blocks(std::size_t count, const std::function<void(std::size_t)>& run) {
  if (std::min(side_by_side_, count) <= 1) {
    for (std::size_t b = 0; b < count; ++b) run(b);
    return;
  }
  for (std::size_t begin = 0; begin < count; begin += side_by_side_)
    pool_.for_each(std::min(side_by_side_, count - begin), [&](std::size_t b, int) { run(begin + b); });
}

void Engine::add_bounds(const std::vector<Slack>& slack, ListOptions& options) const {
  for (std::size_t b = 0; b < used_; ++b)
    if (in_use(slack[b])) options.bounds.push_back(&blocks_[b]);
}

void Engine::collect(const std::vector<ListTable>& lists, Achieved& achieved) {
  const ListTable& root = lists[dag_.root];
  std::vector<std::uint32_t> wanted;
  const auto& points = achieved.points();
  const double range_m = points.empty() ? 1 : std::max(1.0, double(points.back().memory - points.front().memory)),
               range_t = points.empty() ? 1 : std::max(1e-300, points.front().time - points.back().time);
  for (std::uint32_t i = 0; i < root.points(); ++i) {
    if (achieved.covers(root.memory[i], root.time[i])) continue;
    if (apart_ > 0 && !wanted.empty() &&
        double(root.memory[i] - root.memory[wanted.back()]) / range_m +
                (root.time[wanted.back()] - root.time[i]) / range_t <
            apart_)
      continue;
    wanted.push_back(i);
  }
  if (wanted.size() > max_plans_) {  // evenly
    for (std::size_t i = 0; i < max_plans_; ++i) wanted[i] = wanted[wanted.size() * i / max_plans_];
    wanted.resize(max_plans_);
  }
  unroll(lists, wanted, achieved);
}

void Engine::unroll(const std::vector<ListTable>& lists, std::span<const std::uint32_t> wanted, Achieved& achieved) {
  constexpr std::size_t kTogether = 64;  // their choices stay in the second-level cache
  std::vector<Point> plans(wanted.size());
  std::vector<std::vector<Choice>> choices(static_cast<std::size_t>(pool_.threads()));
  pool_.for_each((wanted.size() + kTogether - 1) / kTogether, [&](std::size_t part, int worker) {
    if (control_.cancelled()) return;
    const std::size_t begin = part * kTogether, size = std::min(kTogether, wanted.size() - begin);
    std::vector<Choice>& own = choices[static_cast<std::size_t>(worker)];
    trace_lists(dag_, lists, wanted.subspan(begin, size), own);
    make_points(graph_, own, std::span(plans).subspan(begin, size));
  });
  if (!control_.cancelled()) achieved.add(std::move(plans));
}

std::size_t Engine::plans_within(std::size_t bytes) const {
  return std::max<std::size_t>(1, bytes / (sizeof(Point) + 6 * graph_.variables.size() + 2 * graph_.factors.size()));
}

/// One quantised pass; false if there was no room for its points.
bool Engine::beam(Achieved& achieved, double buckets, double width_share, const std::vector<Slack>& slack,
                  double* products) {
  prune(slack);
  if (control_.stopped()) return true;
  const auto& points = achieved.points();
  std::int64_t high = points.back().memory;
  if (limit_ > 0) high = std::min(high, effective_limit(achieved));
  const double range = static_cast<double>(high - points.front().memory);
  ListOptions options;
  options.width = std::max<std::int64_t>(1, static_cast<std::int64_t>(range * width_share / std::max(1.0, buckets)));
  add_bounds(slack, options);
  options.max_points = most_points(policy_);
  std::vector<ListTable> lists;
  const ListResult result = run_lists(dag_, options, pool_, control_, "coarse frontier", lists, products);
  if (result == ListResult::done) collect(lists, achieved);
  return result != ListResult::too_large;
}

void Engine::coarse(Achieved& achieved, int buckets) {
  // The distance of a frontier from its hull shrinks with the number of operators; where that guess is cheap, it is
  // widened.
  const double guess = 0.2 / static_cast<double>(graph_.variables.size() + 1);
  const auto pass = [&](double count, double delta) {
    const Needed needed = slacks(used(), achieved, effective_limit(achieved), {}, delta);
    // A deep network keeps more points than there is room for: then in wider buckets.
    double products = 0;
    while (!beam(achieved, count / beam_wider_, 1, needed.slack, &products) && beam_wider_ < count) beam_wider_ *= 4;
    return !control_.stopped() && delta < needed.largest && products < policy_.instant_products;
  };
  if (achieved.points().size() < static_cast<std::size_t>(buckets) / 8) {  // slopes from the hull alone are poor
    pass(buckets, guess);
    if (control_.stopped() || !relane(achieved, kLanes)) return;
  }
  // Rounding errors of the operators add up to several buckets, and a beam with four times as many costs little more.
  double delta = guess;
  while (pass(4.0 * buckets, delta)) delta *= 4;
  if (!control_.stopped())
    beam(achieved, 4.0 * buckets / beam_wider_, policy_.steep_width,
         steep(achieved, slacks(used(), achieved, effective_limit(achieved), {}, delta).slack));
}

/// Where the frontier is steep, buckets of equal size are too wide: of these regions those at steep slopes only, for
/// finer ones.
std::vector<Slack> Engine::steep(const Achieved& achieved, std::vector<Slack> regions) const {
  const double range_m = static_cast<double>(achieved.points().back().memory - achieved.points().front().memory),
               range_t = achieved.points().front().time - achieved.points().back().time;
  for (std::size_t b = 0; b < used_; ++b)
    for (std::size_t l = 0; l < kLanes; ++l)
      if (!(blocks_[b].weight_memory[l] * range_m > policy_.steep * blocks_[b].weight_time[l] * range_t))
        regions[b][l].fill(-kInfinity);
  return regions;
}

double Engine::live(Achieved& achieved, double buckets, double allowed, bool thorough) {
  // What a move takes must be worth it: the more, the more must lie open.
  const double dear = static_cast<double>(dag_.plan->terms) * policy_.term_products / allowed,
               hidden = thorough ? policy_.rest_open
                                 : std::clamp(policy_.drag_open * dear, policy_.drag_open, policy_.most_open);
  const auto open = [&] { return slacks(used(), achieved, effective_limit(achieved), {.of_ranges = hidden}); };
  const Needed needed = open();
  if (needed.largest == -kInfinity) return 0;
  double products = 0;
  apart_ = thorough ? policy_.rest_open : policy_.drag_open;
  beam(achieved, buckets, 1, needed.slack, &products);
  if (!thorough || control_.stopped()) return products;
  const std::vector<Slack> regions = steep(achieved, open().slack);
  if (std::any_of(regions.begin(), regions.end(), in_use)) beam(achieved, buckets / 2, policy_.steep_width, regions);
  return products;
}

Graph Engine::hull_states(const Achieved& achieved) const {
  // Layers of one kind are given the same choices, so that their tables stay one.
  std::map<std::uint32_t, std::vector<std::uint32_t>> wanted;
  for (const std::size_t i : achieved.hull())
    for (std::size_t v = 0; v < graph_.variables.size(); ++v)
      wanted[graph_.variables[v].leaf].push_back(graph_.state_of[v][achieved.points()[i].configs[v]]);
  for (auto& [leaf, states] : wanted) {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
  }
  std::vector<std::vector<std::uint32_t>> allowed(graph_.variables.size());
  for (std::size_t v = 0; v < allowed.size(); ++v) allowed[v] = wanted[graph_.variables[v].leaf];
  return restrict_states(graph_, allowed);
}

bool Engine::restricted(Achieved& achieved, int buckets, double max_products) {
  const Graph part = hull_states(achieved);
  const Elimination plan = eliminate(part, dag_.plan->largest_table, control_.stop(), policy_);
  if (plan.too_wide || control_.stopped()) return false;
  std::vector<LaneBlock> blocks;
  Engine engine(part, plan, pool_, control_, limit_, blocks, policy_, enough_gap_);
  engine.max_plans_ = plans_within(policy_.bytes / 4);
  if (max_products > 0) {
    CostList floor;  // says nothing of other states
    engine.prove(achieved, enough_gap_ / policy_.next_gap, max_products, floor);
  } else if (engine.relane(achieved, kLanes)) {
    engine.coarse(achieved, buckets);
  } else {
    return false;
  }
  return true;
}

bool Engine::direct(Achieved& achieved) {
  ListOptions options;
  options.max_points = std::size_t(1) << 20;
  options.max_products = policy_.short_products;
  std::vector<ListTable> lists;
  if (run_lists(dag_, options, pool_, control_, nullptr, lists) != ListResult::done) return false;
  if (lists[dag_.root].points() == 0) infeasible_ = true;
  collect(lists, achieved);
  return true;
}

}  // namespace turnpoint::frontier::detail
