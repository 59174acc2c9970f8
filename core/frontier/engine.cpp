// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/engine.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::frontier::detail {

namespace {

constexpr std::size_t kCoarseLanes = 32, kExactLanes = 64;

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

bool Engine::lanes(const std::vector<double>& memory, const std::vector<double>& time, std::vector<Point>* plans) {
  const std::size_t count = (memory.size() + kLanes - 1) / kLanes;
  blocks_.resize(count);
  std::vector<char> ok(count, 0);
  std::vector<std::vector<Point>> found(count);
  pool_.for_each(count, [&](std::size_t b, int) {
    LaneBlock& block = blocks_[b];
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::size_t i = std::min(b * kLanes + l, memory.size() - 1);
      block.weight_memory[l] = memory[i];
      block.weight_time[l] = time[i];
    }
    ok[b] = block.inside(dag_, control_);
    if (!ok[b] || !plans) return;
    for (int l = 0; l < kLanes; ++l) found[b].push_back(make_point(graph_, block.trace(dag_, l)));
  });
  for (const char o : ok)
    if (!o) {
      infeasible_ = !control_.cancelled();
      return false;
    }
  for (const LaneBlock& block : blocks_) append_half_planes(block, planes_);
  if (plans)
    for (auto& f : found) std::move(f.begin(), f.end(), std::back_inserter(*plans));
  return true;
}

bool Engine::hull(Achieved& achieved, std::vector<double>& weights) {
  std::vector<double> memory(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2)),
      time(weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2), weights.end());
  std::vector<Point> plans;
  const int rounds = memory.empty() ? 2 : 0;
  if (memory.empty()) first_weights(dag_, memory, time);
  for (int round = 0; round <= rounds; ++round) {
    if (round > 0) choose_weights(achieved, round == 1 ? kLanes : kCoarseLanes, memory, time);
    if (!lanes(memory, time, &plans)) return false;
    achieved.add(std::move(plans));
    plans.clear();
  }
  choose_weights(achieved, kCoarseLanes, memory, time);
  weights = memory;
  weights.insert(weights.end(), time.begin(), time.end());
  return true;
}

std::int64_t Engine::effective_limit(const Achieved& achieved) const {
  return limit_ <= 0 ? 0 : std::max(limit_, achieved.points().front().memory);
}

void Engine::prune(const Achieved& achieved) {
  const std::vector<Lanes> slack = slacks(blocks_, achieved, effective_limit(achieved));
  pool_.for_each(blocks_.size(), [&](std::size_t b, int) { blocks_[b].outside(dag_, slack[b], control_); });
}

void Engine::collect(const std::vector<ListTable>& lists, Achieved& achieved) {
  const ListTable& root = lists[dag_.root];
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < root.points(); ++i)
    if (!achieved.covers(root.base + root.memory[i], root.time[i])) wanted.push_back(i);
  std::vector<Point> plans(wanted.size());
  pool_.for_each(wanted.size(), [&](std::size_t i, int) { plans[i] = make_point(graph_, trace_lists(dag_, lists, wanted[i])); }, 16);
  achieved.add(std::move(plans));
}

void Engine::coarse(Achieved& achieved, int buckets) {
  prune(achieved);
  if (control_.stopped()) return;
  const auto& points = achieved.points();
  std::int64_t high = points.back().memory;
  if (limit_ > 0) high = std::min(high, effective_limit(achieved));
  const std::int64_t range = high - points.front().memory;
  ListOptions options;
  options.width = std::max<std::int64_t>(1, range / std::max(1, buckets));
  for (const LaneBlock& block : blocks_) options.bounds.push_back(&block);
  std::vector<ListTable> lists;
  if (run_lists(dag_, options, pool_, control_, nullptr, lists) != ListResult::done) return;
  // Rounded memory says nothing about coverage, so every plan is traced.
  const ListTable& root = lists[dag_.root];
  std::vector<Point> plans(root.points());
  pool_.for_each(plans.size(), [&](std::size_t i, int) { plans[i] = make_point(graph_, trace_lists(dag_, lists, static_cast<std::uint32_t>(i))); }, 16);
  achieved.add(std::move(plans));
}

bool Engine::exact(Achieved& achieved) {
  control_.report("bounds", -1);
  std::vector<double> memory, time;
  choose_weights(achieved, kExactLanes, memory, time);
  std::vector<Point> plans;
  if (!lanes(memory, time, &plans)) return false;
  achieved.add(std::move(plans));
  prune(achieved);
  if (control_.stopped()) return false;
  ListOptions options;
  for (const LaneBlock& block : blocks_) options.bounds.push_back(&block);
  std::vector<ListTable> lists;
  if (run_lists(dag_, options, pool_, control_, "exact frontier", lists) != ListResult::done) return false;
  collect(lists, achieved);
  return true;
}

bool Engine::direct(Achieved& achieved) {
  ListOptions options;
  options.max_points = std::size_t(1) << 20;
  std::vector<ListTable> lists;
  if (run_lists(dag_, options, pool_, control_, nullptr, lists) != ListResult::done) return false;
  if (lists[dag_.root].points() == 0) infeasible_ = true;
  collect(lists, achieved);
  return true;
}

}  // namespace turnpoint::frontier::detail
