// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/crossings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

namespace turnpoint::frontier::detail {

namespace {

/// The edges at every node, one after the other.
struct Incidence {
  std::vector<std::uint32_t> begin, edges;

  explicit Incidence(const Problem& problem) : begin(problem.nodes.size() + 1, 0), edges(2 * problem.edges.size()) {
    for (const Edge& edge : problem.edges) ++begin[edge.from + 1], ++begin[edge.to + 1];
    for (std::size_t v = 1; v < begin.size(); ++v) begin[v] += begin[v - 1];
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t k = 0; k < problem.edges.size(); ++k) {
      edges[next[problem.edges[k].from]++] = k;
      edges[next[problem.edges[k].to]++] = k;
    }
  }
  std::span<const std::uint32_t> at(std::uint32_t v) const {
    return {edges.data() + begin[v], edges.data() + begin[v + 1]};
  }
};

/// Turns one plan into another, node by node.
class Crossing {
 public:
  Crossing(const Problem& problem, const Incidence& incidence, const Point& from, const Point& to)
      : problem_(problem), incidence_(incidence), to_(to), now_(from) {
    const double memory = static_cast<double>(to.memory - from.memory), time = to.time - from.time;
    weight_memory_ = std::abs(time);
    weight_time_ = std::abs(memory);
    for (std::uint32_t v = 0; v < problem.nodes.size(); ++v)
      if (differs(v)) nodes_.push_back(v);
    for (std::uint32_t k = 0; k < problem.edges.size(); ++k)
      if (now_.edge_alternatives[k] != to.edge_alternatives[k] && !differs(problem.edges[k].from) &&
          !differs(problem.edges[k].to))
        loose_.push_back(k);
  }

  /// Calls visit(step, plan) after every step that leaves a plan without forbidden combinations, but for the last.
  template <class Visit>
  void run(const Visit& visit) {
    std::size_t step = 0;
    for (const std::uint32_t v : nodes_) {
      turn(v);
      if (++step < nodes_.size() + loose_.size() && forbidden_ == 0) visit(step, now_);
    }
    for (const std::uint32_t k : loose_) {
      const auto entry = cell(k);
      subtract(entry[now_.edge_alternatives[k]]);
      now_.edge_alternatives[k] = to_.edge_alternatives[k];
      add(entry[now_.edge_alternatives[k]]);
      if (++step < nodes_.size() + loose_.size() && forbidden_ == 0) visit(step, now_);
    }
  }

 private:
  static constexpr std::uint16_t kForbidden = 0xffff;

  bool differs(std::uint32_t v) const {
    return now_.configs[v] != to_.configs[v] || now_.node_alternatives[v] != to_.node_alternatives[v];
  }
  std::span<const CostPoint> cell(std::uint32_t k) const {
    const Edge& edge = problem_.edges[k];
    return edge.costs[std::size_t(edge.from_class[now_.configs[edge.from]]) * edge.columns +
                      edge.to_class[now_.configs[edge.to]]];
  }
  void add(const CostPoint& cost) {
    now_.memory += cost.memory;
    now_.time += cost.time;
  }
  void subtract(const CostPoint& cost) {
    now_.memory -= cost.memory;
    now_.time -= cost.time;
  }

  void turn(std::uint32_t v) {
    for (const std::uint32_t k : incidence_.at(v)) {
      if (now_.edge_alternatives[k] == kForbidden)
        --forbidden_;
      else
        subtract(cell(k)[now_.edge_alternatives[k]]);
    }
    const CostTable& costs = problem_.nodes[v].costs;
    subtract(costs[now_.configs[v]][now_.node_alternatives[v]]);
    now_.configs[v] = to_.configs[v];
    now_.node_alternatives[v] = to_.node_alternatives[v];
    add(costs[now_.configs[v]][now_.node_alternatives[v]]);
    for (const std::uint32_t k : incidence_.at(v)) {
      const auto entry = cell(k);
      now_.edge_alternatives[k] = best(k, entry);
      if (now_.edge_alternatives[k] == kForbidden)
        ++forbidden_;
      else
        add(entry[now_.edge_alternatives[k]]);
    }
  }

  /// Where both ends are turned, the alternative of the plan that it becomes; else what is best at this slope.
  std::uint16_t best(std::uint32_t k, std::span<const CostPoint> entry) const {
    if (!differs(problem_.edges[k].from) && !differs(problem_.edges[k].to)) return to_.edge_alternatives[k];
    std::uint16_t best = kForbidden;
    double least = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(entry.size(), kForbidden); ++i) {
      const double cost = weight_memory_ * static_cast<double>(entry[i].memory) + weight_time_ * entry[i].time;
      if (best != kForbidden && !(cost < least)) continue;
      best = static_cast<std::uint16_t>(i);
      least = cost;
    }
    return best;
  }

  const Problem& problem_;
  const Incidence& incidence_;
  const Point& to_;
  Point now_;
  double weight_memory_ = 0, weight_time_ = 0;
  std::vector<std::uint32_t> nodes_, loose_;
  int forbidden_ = 0;
};

struct Mixture {
  std::int64_t memory = 0;
  double time = 0;
  std::size_t crossing = 0, step = 0;  ///< even: towards more memory, odd: towards less
};

/// Those of the frontier of all, each some way from the one before.
std::vector<Mixture> thinned(std::vector<Mixture> all, const Achieved& achieved, std::size_t count) {
  std::sort(all.begin(), all.end(), [](const Mixture& a, const Mixture& b) {
    return std::tie(a.memory, a.time, a.crossing, a.step) < std::tie(b.memory, b.time, b.crossing, b.step);
  });
  const Point &first = achieved.points().front(), &last = achieved.points().back();
  const double range_m = std::max(1.0, static_cast<double>(last.memory - first.memory)),
               range_t = std::max(1e-300, first.time - last.time), apart = 2.0 / static_cast<double>(count);
  std::vector<Mixture> kept;
  double best = first.time;
  for (const Mixture& c : all) {
    if (!(c.time < best) || achieved.covers(c.memory, c.time)) continue;
    best = c.time;
    if (!kept.empty() &&
        static_cast<double>(c.memory - kept.back().memory) / range_m + (kept.back().time - c.time) / range_t < apart)
      continue;
    kept.push_back(c);
  }
  return kept;
}

}  // namespace

void add_crossings(const Problem& problem, Achieved& achieved, std::size_t count, ThreadPool& pool) {
  const std::vector<std::size_t> hull = achieved.hull();
  if (hull.size() < 2 || count == 0) return;
  const Incidence incidence(problem);
  const std::size_t crossings = 2 * (hull.size() - 1);
  const auto make = [&](std::size_t i) {
    const auto &low = achieved.points()[hull[i / 2]], &high = achieved.points()[hull[i / 2 + 1]];
    return i % 2 == 0 ? Crossing(problem, incidence, low, high) : Crossing(problem, incidence, high, low);
  };
  std::vector<std::vector<Mixture>> found(crossings);
  pool.for_each(crossings, [&](std::size_t i, int) {
    make(i).run([&](std::size_t step, const Point& plan) { found[i].push_back({plan.memory, plan.time, i, step}); });
  });
  std::vector<Mixture> all;
  for (const auto& some : found) all.insert(all.end(), some.begin(), some.end());
  std::vector<std::vector<std::size_t>> wanted(crossings);
  for (const Mixture& c : thinned(std::move(all), achieved, count)) wanted[c.crossing].push_back(c.step);
  std::vector<std::vector<Point>> made(crossings);
  pool.for_each(crossings, [&](std::size_t i, int) {
    if (wanted[i].empty()) return;
    std::sort(wanted[i].begin(), wanted[i].end());
    std::size_t next = 0;
    make(i).run([&](std::size_t step, const Point& plan) {
      if (next == wanted[i].size() || wanted[i][next] != step) return;
      ++next;
      made[i].push_back(plan);
      const CostPoint cost = evaluate(problem, plan);  // sums of differences are not quite those of the parts
      made[i].back().memory = cost.memory;
      made[i].back().time = cost.time;
    });
  });
  std::vector<Point> plans;
  for (auto& some : made) std::move(some.begin(), some.end(), std::back_inserter(plans));
  achieved.add(std::move(plans));
}

}  // namespace turnpoint::frontier::detail
