// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/moved_bound.h"

#include <algorithm>
#include <limits>

#include "core/frontier/pareto.h"

namespace turnpoint::search {

namespace {

constexpr std::size_t kMostKnown = 16;
constexpr double kMostSteps = 1000;  // of a bound, about: it is moved and drawn anew in every frame

// Apart from what scales times and from what is only compared with.
bool same_question(const Scenario& a, const Scenario& b) {
  Settings x = a.settings, y = b.settings;
  for (Settings* s : {&x, &y}) {
    s->factors = {};
    s->memory_limit = 0;
    s->price_per_hour = 0;
    s->seed = 0;
  }
  return a.model == b.model && a.cluster == b.cluster && x == y;
}

// Steps close together become one that is below them all.
std::vector<frontier::CostPoint> fewer_steps(const std::vector<frontier::CostPoint>& bound) {
  std::vector<frontier::CostPoint> result;
  const double range_m = std::max(1.0, static_cast<double>(bound.back().memory - bound.front().memory)),
               range_t = std::max(1e-300, bound.front().time - bound.back().time);
  double start = 0;  // time at the first of those that became the last one
  for (const frontier::CostPoint& step : bound) {
    const bool close = result.size() > 1 && static_cast<double>(step.memory - result.back().memory) / range_m +
                                                    (start - step.time) / range_t <
                                                2 / kMostSteps;
    if (close) {
      result.back().time = step.time;
    } else {
      result.push_back(step);
      start = step.time;
    }
  }
  return result;
}

struct Ratios {
  double compute = 1, network = 1;
};
Ratios ratios(const WhatIf& from, const WhatIf& to) {
  const double speed = from.device_speed / to.device_speed;
  return {std::min(1.0, speed), std::min({1.0, from.intra_bandwidth / to.intra_bandwidth,
                                          from.inter_bandwidth / to.inter_bandwidth, to.latency / from.latency})};
}

}  // namespace

double least_compute_seconds(const Structure& structure, const PricedProblem& priced) {
  double total = 0;
  for (std::size_t v = 0; v < structure.variables.size(); ++v) {
    if (!structure.variables[v].choices) continue;
    const auto& seconds = priced.operators[structure.variables[v].cost_group].seconds;
    if (!seconds.empty()) total += *std::min_element(seconds.begin(), seconds.end());
  }
  return total;
}

double least_passes_seconds(const Prices& prices, ThreadPool& pool, const RunContext& context) {
  const Structure& s = prices.structure();
  std::vector<double> least(s.cost_groups, 0);
  pool.for_each(s.cost_groups, [&](std::size_t g, int) {
    if (context.cancelled()) return;
    const Variable& variable = s.variables[s.group_example[g]];
    double& own = least[g] = std::numeric_limits<double>::infinity();
    for (const Configuration& split : variable.choices->configurations)
      own = std::min(own, prices.operators().passes_s(variable.op, split));
  });
  double total = 0;
  for (const Variable& variable : s.variables)
    if (variable.choices) total += least[variable.cost_group];
  return total * s.micro_batches;
}

void MovedBounds::forget_what_is_replaced(const Scenario& scenario) {
  std::erase_if(known_, [&](const Known& known) {
    return !same_question(known.scenario, scenario) || known.scenario.settings.factors == scenario.settings.factors;
  });
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
}

void MovedBounds::add(const Scenario& scenario, double least_compute_s) {
  forget_what_is_replaced(scenario);
  known_.push_back({scenario, {{0, least_compute_s}}, least_compute_s});
}

void MovedBounds::add(const Scenario& scenario, const frontier::Answer& answer, double least_compute_s) {
  if (!answer.certified || answer.points.empty()) return;
  forget_what_is_replaced(scenario);
  std::vector<frontier::CostPoint> bound = answer.lower_bound;
  if (bound.empty())
    for (const auto& point : answer.points) bound.push_back({point.memory, point.time});
  known_.push_back({scenario, fewer_steps(bound), least_compute_s});
}

std::vector<frontier::CostPoint> MovedBounds::at(const Scenario& scenario) const {
  std::vector<std::vector<frontier::CostPoint>> moved;
  std::vector<std::int64_t> steps;
  for (const Known& known : known_) {
    if (!same_question(known.scenario, scenario)) continue;
    const auto [s, r] = ratios(known.scenario.settings.factors, scenario.settings.factors);
    moved.push_back(known.bound);
    for (auto& point : moved.back()) {
      point.time = s >= r ? r * point.time + (s - r) * known.least_compute_s : s * point.time;
      steps.push_back(point.memory);
    }
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<frontier::CostPoint> best;
  for (const std::int64_t memory : steps) {
    double time = 0;
    for (const auto& bound : moved) time = std::max(time, frontier::time_at(bound, memory));
    if (time < std::numeric_limits<double>::infinity() && (best.empty() || time < best.back().time))
      best.push_back({memory, time});
  }
  return best;
}

void certify(frontier::Answer& answer, std::vector<frontier::CostPoint> bound) {
  answer.exact = false;
  answer.certified = !bound.empty();
  answer.gap = 0;
  for (const auto& point : answer.points) {
    const double least = frontier::time_at(bound, point.memory);
    if (point.time > 0 && least < point.time) answer.gap = std::max(answer.gap, (point.time - least) / point.time);
  }
  // Between two points of the answer the bound may fall further: the gap is that of the point before the fall.
  for (const auto& step : bound) {
    const auto above = std::upper_bound(answer.points.begin(), answer.points.end(), step.memory,
                                        [](std::int64_t m, const frontier::Point& p) { return m < p.memory; });
    if (above == answer.points.begin()) continue;
    const double reached = std::prev(above)->time;
    if (reached > 0 && step.time < reached) answer.gap = std::max(answer.gap, (reached - step.time) / reached);
  }
  answer.lower_bound = std::move(bound);
  answer.lines.clear();
}

}  // namespace turnpoint::search
