// SPDX-License-Identifier: Apache-2.0
#include "core/search/annealing/walk.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace turnpoint::annealing {
namespace {

using placement::Objective;
using placement::Random;

constexpr double kTooLong = std::numeric_limits<double>::infinity();

/// What is on the way that decides the makespan is changed most often: elsewhere most changes change nothing.
constexpr double kOnPath = 0.7;
/// Of the rest: ranks; of what is left, two units that change places, and a connected piece of a device's part.
constexpr double kRanks = 0.3, kSwap = 0.3, kPiece = 0.3;
/// Of the tasks on the path that wait for their device: how often the order is changed and not the device.
constexpr double kOrder = 0.3;

/// How often a layer moves, all of it or what it does in one part of the step: unit by unit it would have to climb. At
/// least so often; the other part where there are so few calls that most units are never drawn.
constexpr double kFamily = 0.15, kFamilyOfFew = 0.35, kCallsForUnit = 4;

}  // namespace

Walk::Walk(const placement::ScheduleCosts& costs, const placement::PlacementRequest& request, placement::Met* met)
    : graph_(costs.graph()),
      request_(request),
      met_(request.objective == Objective::makespan ? met : nullptr),
      units_(placement::make_units(costs.graph(), request.limited(costs.graph()))),
      members_(units_.count()),
      device_(units_.count(), 0),
      simulator_(costs.graph(), request.devices) {
  for (TaskIndex t = 0; t < graph_.task_count(); ++t) members_[units_.of_task[t]].push_back(t);
  const auto levels = placement::bottom_levels(costs, 1.0);
  longest_s_ = std::max(costs.total_task_s(), *std::max_element(levels.begin(), levels.end()));
  const double scale = 1 / std::max(1e-300, *std::max_element(levels.begin(), levels.end()));
  for (const double level : levels) bottom_.push_back(float(level * scale));
  rank_ = bottom_;
  for (std::uint32_t d = 0; d < request.devices; ++d) limit_bytes_.push_back(double(request.limit_of(graph_, d)));
  start_s_.resize(graph_.task_count());
  ready_s_.resize(graph_.task_count());
  ran_before_.assign(graph_.task_count(), kNone);
  if (request.devices > 1) find_families();
}

/// What has one scope, "encoder" as well as "encoder/layer3", and what reads one unit's weights or makes their
/// gradient. What is alone or most of the graph is none.
void Walk::find_families() {
  std::map<std::string_view, std::vector<std::uint32_t>> scopes;
  for (std::uint32_t unit = 0; unit < units(); ++unit)
    for (std::string_view path = graph_.scopes[graph_.scope[members_[unit].front()]]; !path.empty();) {
      scopes[path].push_back(unit);
      const auto slash = path.rfind('/');
      path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
    }
  family_of_.resize(units());
  const auto add = [&](std::vector<std::uint32_t> family) {
    if (family.size() < 2 || family.size() * 2 > units()) return;
    for (const std::uint32_t unit : family) family_of_[unit].push_back(std::uint32_t(families_.size()));
    families_.push_back(std::move(family));
  };
  for (auto& [path, family] : scopes) add(std::move(family));
  for (std::uint32_t unit = 0; unit < units(); ++unit) {
    if (units_.persistent[unit] == 0) continue;
    std::vector<std::uint32_t> family{unit};
    family.insert(family.end(), units_.neighbours.begin() + units_.neighbour_begin[unit],
                  units_.neighbours.begin() + units_.neighbour_begin[unit + 1]);
    add(std::move(family));
  }
}

void Walk::set_device(std::uint32_t unit, std::uint32_t device) {
  device_[unit] = device;
  for (const TaskIndex t : members_[unit]) simulator_.move(t, device);
}

void Walk::set_rank(TaskIndex task, float rank) {
  rank_[task] = rank;
  simulator_.set_rank(task, rank);
}

double Walk::begin_at(const Placement& placement) {
  for (std::uint32_t unit = 0; unit < units(); ++unit) set_device(unit, placement.device[members_[unit].front()]);
  for (TaskIndex t = 0; t < rank_.size(); ++t) set_rank(t, bottom_[t]);
  double worth = measure(kTooLong);
  if (!placement.order.empty() && request_.objective == Objective::makespan) {
    // The order as it stands, earlier before later, as far as what is ready allows.
    double most = 1;
    for (const auto& order : placement.order) most = std::max(most, double(order.size()));
    for (const auto& order : placement.order)
      for (std::size_t i = 0; i < order.size(); ++i) set_rank(order[i], float(1 - double(i) / most));
    const double by_order = measure(kTooLong);
    if (by_order > worth) {
      for (TaskIndex t = 0; t < rank_.size(); ++t) set_rank(t, bottom_[t]);
      measure(kTooLong);
    }
    worth = std::min(worth, by_order);
  }
  accept();
  return worth;
}

void Walk::scatter(Random& random) {
  for (std::uint32_t unit = 0; unit < units(); ++unit) set_device(unit, random.below(request_.devices));
  moved_.clear();
  reranked_.clear();
}

void Walk::go(std::uint32_t unit, std::uint32_t device) {
  if (device_[unit] == device) return;
  moved_.emplace_back(unit, device_[unit]);
  set_device(unit, device);
}

void Walk::rerank(TaskIndex task, float rank) {
  if (rank == rank_[task]) return;
  reranked_.emplace_back(task, rank_[task]);
  set_rank(task, rank);
}

/// By how much decides which of those between pass: from a hundredth of the longest way down to a hundred-thousandth.
void Walk::rank_above(Random& random, TaskIndex task, TaskIndex other) {
  rerank(task, rank_[other] + float(std::pow(10, -2 - 3 * random.unit())));
}

std::uint32_t Walk::neighbour(Random& random, std::uint32_t unit) const {
  const std::uint32_t begin = units_.neighbour_begin[unit], count = units_.neighbour_begin[unit + 1] - begin;
  return count == 0 ? unit : units_.neighbours[begin + random.below(count)];
}

std::uint32_t Walk::elsewhere(Random& random, std::uint32_t unit) const {
  const std::uint32_t from = device_[unit];
  const std::uint32_t to = random.below(2) ? device_[neighbour(random, unit)] : random.below(request_.devices);
  return to != from ? to : (from + 1 + random.below(request_.devices - 1)) % request_.devices;
}

/// The unit and some around it on its device, by a walk.
void Walk::go_with_neighbours(Random& random, std::uint32_t unit, std::uint32_t device) {
  const std::uint32_t from = device_[unit], most = 2 + random.below(random.below(2) ? 24 : 6);
  std::uint32_t at = unit;
  go(unit, device);
  for (std::uint32_t tries = 0; tries < 2 * most && moved_.size() < most; ++tries) {
    const std::uint32_t next = neighbour(random, at);
    const auto moved = [&](const auto& one) { return one.first == next; };
    if (device_[next] != from && std::none_of(moved_.begin(), moved_.end(), moved)) continue;
    at = next;
    go(next, device);
  }
}

/// A layer goes elsewhere: all of it, or what it runs from some instant on, or up to it, forward or backward or both.
void Walk::go_with_family(Random& random) {
  TaskIndex task = random.below(graph_.task_count());
  if (!path_.empty() && random.unit() < kOnPath) task = path_[random.below(path_.size())].task;
  const std::uint32_t unit = units_.of_task[task];
  if (family_of_[unit].empty()) return;
  const auto& family = families_[family_of_[unit][random.below(std::uint32_t(family_of_[unit].size()))]];
  const std::uint32_t from = device_[unit], to = elsewhere(random, unit);
  const bool all_devices = random.below(2), one_kind = random.below(2);
  const std::uint32_t part = random.below(3);
  for (const std::uint32_t one : family) {
    const TaskIndex first = members_[one].front();
    if (!all_devices && device_[one] != from) continue;
    if (part != 2 && one_kind && graph_.kind[first] != graph_.kind[task]) continue;
    if (part == 0 && start_s_[first] < start_s_[task]) continue;
    if (part == 1 && start_s_[first] > start_s_[task]) continue;
    go(one, to);
  }
}

/// A tensor that is sent on the path: one of its ends goes to the other, both go somewhere, or it is sent earlier.
void Walk::change_sending(Random& random, std::size_t at) {
  const auto& step = path_[at];
  const std::uint32_t source = units_.of_task[step.task];
  if (path_[at - 1].to != kNone) return rank_above(random, path_[at - 1].task, step.task);  // which waited for this
  const std::uint32_t reader = units_.of_task[path_[at - 1].task];
  const std::uint32_t way = random.below(step.waited ? 4 : 3);
  if (way == 3) return rank_above(random, step.task, step.before);
  if (way == 2) {
    const std::uint32_t to = random.below(request_.devices);
    go(source, to);
    return go(reader, to);
  }
  const std::uint32_t unit = way == 0 ? reader : source, to = device_[way == 0 ? source : reader];
  if (random.below(2))
    go(unit, to);
  else
    go_with_neighbours(random, unit, to);
}

void Walk::change_path(Random& random) {
  const std::size_t at = random.below(path_.size());
  const auto& step = path_[at];
  if (step.to != kNone) return change_sending(random, at);
  if (step.waited && random.unit() < kOrder) {
    // Before one of those that ran while it waited, most often the first.
    TaskIndex other = step.before;
    while (random.below(8) != 0) {
      const TaskIndex earlier = ran_before_[other];
      if (earlier == kNone || start_s_[earlier] < ready_s_[step.task]) break;
      other = earlier;
    }
    return rank_above(random, step.task, other);
  }
  const std::uint32_t unit = units_.of_task[step.waited && random.below(2) ? step.before : step.task];
  const std::uint32_t to = elsewhere(random, unit);
  if (random.below(3))
    go(unit, to);
  else
    go_with_neighbours(random, unit, to);
}

void Walk::change_ranks(Random& random) {
  const float by = float((random.unit() - 0.5) * 2 * std::pow(10, -3 * random.unit()));
  if (random.below(2)) {
    const TaskIndex t = random.below(rank_.size());
    return rerank(t, rank_[t] + by);
  }
  // A unit's tasks of all kinds, or of one.
  const std::uint32_t unit = random.below(units());
  const TaskKind kind = graph_.kind[members_[unit][random.below(members_[unit].size())]];
  const bool all = random.below(3) == 0;
  for (const TaskIndex t : members_[unit])
    if (all || graph_.kind[t] == kind) rerank(t, rank_[t] + by);
}

void Walk::change_devices(Random& random) {
  const std::uint32_t unit = random.below(units()), from = device_[unit], to = elsewhere(random, unit);
  const double way = random.unit();
  if (way >= kSwap + kPiece) {
    go(unit, to);
  } else if (way >= kSwap) {
    go_with_neighbours(random, unit, to);
  } else {
    std::uint32_t other = random.below(units());
    for (int tries = 0; tries < 8 && device_[other] != to; ++tries) other = random.below(units());
    go(unit, to);
    if (other != unit && device_[other] == to) go(other, from);
  }
}

void Walk::expect(double calls) {
  family_rate_ = kFamily + kFamilyOfFew / (1 + calls / (kCallsForUnit * double(units())));
}

bool Walk::propose(Random& random) {
  moved_.clear();
  reranked_.clear();
  const bool ordered = request_.objective == Objective::makespan, several = request_.devices > 1;
  if (!ordered && !several) return false;
  constexpr int kTries = 20;
  for (int tries = 0; tries < kTries && moved_.empty() && reranked_.empty(); ++tries) {
    if (ordered && !families_.empty() && random.unit() < family_rate_)
      go_with_family(random);
    else if (ordered && several && random.unit() < kOnPath)
      change_path(random);
    else if (ordered && (!several || random.unit() < kRanks))
      change_ranks(random);
    else
      change_devices(random);
  }
  return !moved_.empty() || !reranked_.empty();
}

/// A device that lacks as much as it has costs twice the longest that anything can take.
double Walk::shortage_s(bool persistent_only, std::int64_t& missing) const {
  missing = 0;
  double parts = 0;
  for (std::uint32_t d = 0; d < request_.devices; ++d) {
    const std::int64_t used = persistent_only ? simulator_.persistent_bytes(d) : simulator_.peak_bytes(d);
    const std::int64_t limit = request_.limit_of(graph_, d);
    if (used <= limit) continue;
    missing += used - limit;
    parts += double(used - limit) / (limit_bytes_[d] + 1);
  }
  return 2 * longest_s_ * parts;
}

double Walk::measure(double limit) {
  ++measurements_;
  std::int64_t missing = 0;
  if (request_.objective == Objective::max_load) {
    const double load = simulator_.max_load_s();
    const double shortage = shortage_s(true, missing);
    remember({missing, load});
    // Smooth, or most changes would change nothing: the twelfth power mean of all loads.
    double sum = 0;
    for (const double one : simulator_.loads()) sum += std::pow(one / std::max(load, 1e-300), 12);
    return load * std::pow(sum, 1.0 / 12) + shortage;
  }
  const std::int64_t of_use = met_ && limit < kTooLong ? met_->least_bytes_within(limit) : 0;
  if (!simulator_.run({limit, of_use})) return kTooLong;
  const double makespan = simulator_.makespan_s(), shortage = shortage_s(false, missing);
  remember({missing, makespan});
  if (met_ && met_->wants(simulator_.largest_peak(), makespan)) {
    placement::Met::Point point{simulator_.largest_peak(), makespan, {}};
    simulator_.store(point.placement);
    met_->offer(std::move(point));
  }
  return makespan + shortage;
}

void Walk::remember(const Score& score) {
  if (!score.better_than(best_)) return;
  best_ = score;
  best_placement_.devices = request_.devices;
  if (request_.objective == Objective::makespan) return simulator_.store(best_placement_);
  best_placement_.device.resize(graph_.task_count());
  for (TaskIndex t = 0; t < graph_.task_count(); ++t) best_placement_.device[t] = simulator_.device_of(t);
}

void Walk::accept() {
  moved_.clear();
  reranked_.clear();
  if (request_.objective == Objective::makespan) look_at_path();
}

void Walk::look_at_path() {
  simulator_.critical_path(path_);
  for (TaskIndex t = 0; t < start_s_.size(); ++t) {
    start_s_[t] = simulator_.start_s(t);
    ready_s_[t] = simulator_.ready_s(t);
    ran_before_[t] = simulator_.ran_before(t);
  }
}

void Walk::put_back() {
  for (auto last = moved_.rbegin(); last != moved_.rend(); ++last) set_device(last->first, last->second);
  for (auto last = reranked_.rbegin(); last != reranked_.rend(); ++last) set_rank(last->first, last->second);
  moved_.clear();
  reranked_.clear();
}

}  // namespace turnpoint::annealing
