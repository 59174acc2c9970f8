// SPDX-License-Identifier: Apache-2.0
// How plans and bound are brought together: Engine's part of engine.h that proves something.
#include <algorithm>
#include <utility>

#include "core/base/discard.h"
#include "core/frontier/engine.h"

namespace turnpoint::frontier::detail {

namespace {

constexpr double kSame = 1 + 1e-9;  // gaps that differ by less are one
constexpr double kRounding = 1e-6;  // of a gap: what is proven is compared with what was asked for

/// With the gap that is asked for among them.
std::vector<double> levels_to(double gap, const Policy& policy) {
  std::vector<double> levels{policy.gap, policy.gap / policy.next_gap,
                             policy.gap / (policy.next_gap * policy.next_gap)};
  const auto finer = std::find_if(levels.begin(), levels.end(), [&](double level) { return level <= gap * kSame; });
  const bool among = finer != levels.end() && gap <= *finer * kSame;
  if (gap > 0 && !among) levels.insert(finer, gap);
  return levels;
}

}  // namespace

bool Engine::exact(Achieved& achieved, double max_products, CostList& floor, double whole_products) {
  control_.report("bounds", -1);
  const double spent = prove(achieved, enough_gap_, max_products, floor);
  if (spent == kInfinity || control_.stopped()) return false;
  // Where tables alone are that large, bounds for the whole take more than it is worth.
  if (enough_gap_ > 0 && whole_products == 0 &&
      (spent > policy_.instant_products || static_cast<double>(dag_.plan->terms) > policy_.instant_products))
    return false;
  const double most = whole_products > 0 ? whole_products : enough_gap_ > 0 ? policy_.short_products : max_products;
  return find_all(achieved, std::min(most, max_products - spent), floor);
}

/// One gap after the other, down to `gap`; returns the products that it took, infinity if it could not begin.
double Engine::prove(Achieved& achieved, double gap, double max_products, CostList& floor) {
  if (!relane(achieved, policy_.lanes)) return kInfinity;
  double spent = 0;
  for (const double level : levels_to(gap, policy_)) {
    // Finer than what is enough only where that took little, for as much again.
    const bool needed = level * kSame >= gap;
    if (!needed && spent > policy_.short_products) break;
    const double most = needed ? max_products : std::min(max_products, 2 * spent + policy_.instant_products),
                 before = spent;
    if (!prove_level(achieved, level, most, spent, floor)) break;
    if (spent + (spent - before) * policy_.finer > max_products) break;
  }
  return spent;
}

/// Corners, then plans, ever nearer to each other. False where the gap is not proven.
bool Engine::prove_level(Achieved& achieved, double gap, double max_products, double& spent, CostList& floor) {
  const auto proven = [&] { return certify(planes_, within(achieved.staircase(), limit_), limit_, floor).gap <= gap; };
  Needed needed;
  std::size_t open = ~std::size_t(0);                   // corners, when `needed` was last made
  double last = static_cast<double>(dag_.plan->terms);  // products of the round before
  const CostList before_all = achieved.staircase();
  const auto bytes = static_cast<double>(before_all.back().memory - before_all.front().memory);
  // Points that are nearer than a byte are no points. Four times as many take about four times the work where one side
  // of a product is short, which is the rule; where they took less than half of that, tables have more entries than
  // lists have points, and finer lists come at once.
  for (double points = policy_.first_points; points <= std::max(bytes, policy_.first_points); points *= policy_.finer) {
    Needed now = slacks(used(), achieved, effective_limit(achieved), {.of_time = gap * (1 - kRounding)});
    if (now.largest == -kInfinity) {
      floor.insert(floor.end(), now.floor.begin(), now.floor.end());
      return true;
    }
    const auto left = static_cast<std::size_t>(
        std::count_if(now.corners.begin(), now.corners.end(), [](const Needed::Corner& c) { return c.needed; }));
    // Wider regions hold as well, and new ones take time, by the products of tables.
    if (left * 2 < open || static_cast<double>(dag_.plan->terms) * policy_.term_products < last) {
      open = left;
      needed = std::move(now);
      prune(needed.slack);
    }
    if (control_.stopped()) return false;
    const double before = spent;
    if (!raise_floor(achieved, needed, 1 / points, max_products, spent, floor)) return false;
    if (proven()) return true;
    if (!find_plans(achieved, needed, 1 / points, max_products, spent)) return false;
    if (proven()) return true;
    const double products = spent - before;
    if (spent + products * policy_.finer > max_products) return false;
    if (products * 2 < last * policy_.finer && spent + products * policy_.finer * policy_.finer <= max_products)
      points *= policy_.finer;
    last = products;
  }
  return false;
}

/// Lists where `needed` leaves something open, of points that are this share of what is open there apart.
ListOptions Engine::thin_lists(const CostList& staircase, const Needed& needed, double apart,
                               double max_products) const {
  const auto [slowest, fastest] = std::pair(staircase.front(), staircase.back());
  double low = kInfinity, high = 0, fast = kInfinity, slow = 0, left = 0;
  for (const auto& corner : needed.corners) {
    if (corner.needed) {
      low = std::min(low, left);
      high = std::max(high, std::min(corner.memory, static_cast<double>(fastest.memory)));
      fast = std::min(fast, corner.time);
      slow = std::max(slow, std::min(corner.time, slowest.time));
    }
    left = corner.memory;
  }
  const double range_m = static_cast<double>(fastest.memory - slowest.memory), range_t = slowest.time - fastest.time;
  ListOptions options;
  options.achieved = &staircase;
  options.max_products = max_products;
  options.max_points = policy_.bytes / ListTable::kPointBytes;
  options.near_memory = std::max(1.0, std::max(high - low, range_m * policy_.finer / policy_.first_points) * apart);
  options.near_time = std::max(1e-300, std::max(slow - fast, range_t * policy_.finer / policy_.first_points) * apart);
  add_bounds(needed.slack, options);
  return options;
}

/// Plans that far apart. False if stopped or too much.
bool Engine::find_plans(Achieved& achieved, const Needed& needed, double apart, double max_products, double& spent) {
  const CostList staircase = achieved.staircase();
  const ListOptions options = thin_lists(staircase, needed, apart, max_products - spent);
  std::vector<ListTable> lists;
  if (run_lists(dag_, options, pool_, control_, "frontier", lists, &spent) != ListResult::done) return false;
  collect(lists, achieved);
  return !control_.stopped();
}

/// Corners that far apart, below all plans that `needed` has an eye on. False if stopped or too much.
bool Engine::raise_floor(const Achieved& achieved, const Needed& needed, double apart, double max_products,
                         double& spent, CostList& floor) {
  const CostList staircase = achieved.staircase();
  ListOptions options = thin_lists(staircase, needed, apart, max_products - spent);
  options.corners = true;
  std::vector<ListTable> lists;
  if (run_lists(dag_, options, pool_, control_, "bounds", lists, &spent) != ListResult::done) return false;
  append_floor(needed, lists[dag_.root], floor);
  return true;
}

/// All points where the slack leaves something open.
ListResult Engine::open_lists(const Achieved& achieved, const std::vector<Slack>& slack, double max_products,
                              double& products, std::vector<ListTable>& lists) {
  prune(slack);
  if (control_.stopped()) return ListResult::stopped;
  const CostList staircase = achieved.staircase();
  ListOptions options;
  options.achieved = &staircase;
  options.max_products = max_products;
  add_bounds(slack, options);
  const ListResult result = run_lists(dag_, options, pool_, control_, "exact frontier", lists, &products);
  if (control_.cancelled()) discard(std::move(lists));
  return control_.stopped() ? ListResult::stopped : result;
}

ListResult Engine::lists(Achieved& achieved, const std::vector<Slack>& slack, double max_products, double& products) {
  std::vector<ListTable> found;
  const ListResult result = open_lists(achieved, slack, max_products, products, found);
  if (result == ListResult::done) collect(found, achieved);
  return result;
}

bool Engine::find_all(Achieved& achieved, double max_products, CostList& floor) {
  const Needed needed = slacks(used(), achieved, effective_limit(achieved), {});
  if (needed.largest == -kInfinity) {
    floor.insert(floor.end(), needed.floor.begin(), needed.floor.end());
    return true;
  }
  std::vector<ListTable> lists;
  double products = 0;
  if (open_lists(achieved, needed.slack, max_products, products, lists) != ListResult::done) return false;
  const ListTable& root = lists[dag_.root];
  max_plans_ = plans_within(policy_.bytes);
  const bool all = root.points() <= max_plans_;
  if (!all || achieved.is_limited()) append_floor(needed, root, floor);
  collect(lists, achieved);
  return all && !control_.stopped();
}

}  // namespace turnpoint::frontier::detail
