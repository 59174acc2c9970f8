// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/crossings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

namespace turnpoint::frontier::detail {

namespace {

/// The edges at every node, one after the other, and the nodes such that edges lead forward.
struct Incidence {
  std::vector<std::uint32_t> begin, edges, order;

  explicit Incidence(const Problem& problem) : begin(problem.nodes.size() + 1, 0), edges(2 * problem.edges.size()) {
    for (const Edge& edge : problem.edges) ++begin[edge.from + 1], ++begin[edge.to + 1];
    for (std::size_t v = 1; v < begin.size(); ++v) begin[v] += begin[v - 1];
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t k = 0; k < problem.edges.size(); ++k) {
      edges[next[problem.edges[k].from]++] = k;
      edges[next[problem.edges[k].to]++] = k;
    }
    arrange(problem);
  }
  std::span<const std::uint32_t> at(std::uint32_t v) const {
    return {edges.data() + begin[v], edges.data() + begin[v + 1]};
  }

 private:
  /// Nodes in their own order, but each after those that lead to it: the layouts of shared tensors stand behind all
  /// operators. On a cycle, as far as that goes.
  void arrange(const Problem& problem) {
    const auto nodes = static_cast<std::uint32_t>(problem.nodes.size());
    std::vector<char> met(nodes, 0);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack;  // node, next of its edges
    order.reserve(nodes);
    for (std::uint32_t first = 0; first < nodes; ++first) {
      if (met[first]) continue;
      met[first] = 1;
      stack.emplace_back(first, begin[first]);
      while (!stack.empty()) {
        const auto [v, k] = stack.back();
        if (k == begin[v + 1]) {
          order.push_back(v);
          stack.pop_back();
          continue;
        }
        ++stack.back().second;
        const std::uint32_t from = problem.edges[edges[k]].from;
        if (met[from]) continue;
        met[from] = 1;
        stack.emplace_back(from, begin[from]);
      }
    }
  }
};

/// Turns one plan into another: part by part, what saves most time for its memory first, and in a part node by node.
/// Parts of the difference between the plans do not touch, so that each may be turned or not whatever becomes of the
/// others.
class Crossing {
 public:
  Crossing(const Problem& problem, const Incidence& incidence, const Point& from, const Point& to)
      : problem_(problem), incidence_(incidence), to_(to), now_(from) {
    const double memory = static_cast<double>(to.memory - from.memory), time = to.time - from.time;
    weight_memory_ = std::abs(time);
    weight_time_ = std::abs(memory);
    collect_parts();
    sort_parts(memory < 0);
  }

  /// Calls visit(step, plan) after every step that leaves a plan without forbidden combinations, but for the last.
  template <class Visit>
  void run(const Visit& visit) {
    std::size_t step = 0;
    for (const Part& part : parts_) {
      for (std::size_t i = part.begin; i < part.end; ++i) {
        if (part.edge)
          turn_edge(order_[i]);
        else
          turn(order_[i]);
        if (++step < order_.size() && forbidden_ == 0) visit(step, now_);
      }
    }
  }

 private:
  static constexpr std::uint16_t kForbidden = 0xffff;

  /// Nodes that are joined, or a single edge between nodes that stay; and what turning all of it costs.
  struct Part {
    std::size_t begin = 0, end = 0;  ///< in order_
    bool edge = false;
    double memory = 0, time = 0, angle = 0;

    void count(const CostPoint& to, const CostPoint& from) {
      memory += static_cast<double>(to.memory - from.memory);
      time += to.time - from.time;
    }
  };

  /// The parts of the difference, their nodes in order, single edges last.
  void collect_parts() {
    constexpr std::uint32_t kNone = ~std::uint32_t(0);
    const auto nodes = static_cast<std::uint32_t>(problem_.nodes.size());
    std::vector<std::uint32_t> part_of(nodes, kNone), open;
    for (std::uint32_t v = 0; v < nodes; ++v) {
      if (part_of[v] != kNone || (!moves(v) && now_.node_alternatives[v] == to_.node_alternatives[v])) continue;
      const auto own = static_cast<std::uint32_t>(parts_.size());
      parts_.emplace_back();
      part_of[v] = own;
      open.push_back(v);
      while (!open.empty()) {
        const std::uint32_t u = open.back();
        open.pop_back();
        ++parts_[own].end;
        parts_[own].count(node_cost(to_, u), node_cost(now_, u));
        if (!moves(u)) continue;
        for (const std::uint32_t k : incidence_.at(u)) {
          const Edge& edge = problem_.edges[k];
          const std::uint32_t other = edge.from == u ? edge.to : edge.from;
          // An edge within the part is met from both of its ends.
          if (!moves(other) || u < other) parts_[own].count(edge_cost(to_, k), edge_cost(now_, k));
          if (!moves(other) || part_of[other] != kNone) continue;
          part_of[other] = own;
          open.push_back(other);
        }
      }
    }
    std::size_t begin = 0;
    for (Part& part : parts_) {
      const std::size_t size = part.end;
      part.begin = part.end = begin;
      begin += size;
    }
    order_.resize(begin);
    for (const std::uint32_t v : incidence_.order)
      if (part_of[v] != kNone) order_[parts_[part_of[v]].end++] = v;
    for (std::uint32_t k = 0; k < problem_.edges.size(); ++k) {
      const Edge& edge = problem_.edges[k];
      if (now_.edge_alternatives[k] == to_.edge_alternatives[k] || moves(edge.from) || moves(edge.to)) continue;
      parts_.push_back({order_.size(), order_.size() + 1, true});
      parts_.back().count(edge_cost(to_, k), edge_cost(now_, k));
      order_.push_back(k);
    }
  }

  /// Towards more memory what saves most time for it comes first, towards less memory last.
  void sort_parts(bool falls) {
    const double sign = falls ? -1 : 1;
    for (Part& part : parts_)
      part.angle = std::atan2(sign * part.time * weight_time_, sign * part.memory * weight_memory_);
    std::stable_sort(parts_.begin(), parts_.end(),
                     [&](const Part& x, const Part& y) { return sign * x.angle < sign * y.angle; });
  }

  const CostPoint& node_cost(const Point& plan, std::uint32_t v) const {
    return problem_.nodes[v].costs[plan.configs[v]][plan.node_alternatives[v]];
  }
  const CostPoint& edge_cost(const Point& plan, std::uint32_t k) const {
    return cell(plan, k)[plan.edge_alternatives[k]];
  }
  /// Its configuration is (still) another one, so that the edges at it change with it.
  bool moves(std::uint32_t v) const { return now_.configs[v] != to_.configs[v]; }
  std::span<const CostPoint> cell(const Point& plan, std::uint32_t k) const {
    const Edge& edge = problem_.edges[k];
    return edge.costs[std::size_t(edge.from_class[plan.configs[edge.from]]) * edge.columns +
                      edge.to_class[plan.configs[edge.to]]];
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
    const std::span<const std::uint32_t> edges = moves(v) ? incidence_.at(v) : std::span<const std::uint32_t>();
    for (const std::uint32_t k : edges) {
      if (now_.edge_alternatives[k] == kForbidden)
        --forbidden_;
      else
        subtract(edge_cost(now_, k));
    }
    subtract(node_cost(now_, v));
    now_.configs[v] = to_.configs[v];
    now_.node_alternatives[v] = to_.node_alternatives[v];
    add(node_cost(now_, v));
    for (const std::uint32_t k : edges) {
      const auto entry = cell(now_, k);
      now_.edge_alternatives[k] = best(k, entry);
      if (now_.edge_alternatives[k] == kForbidden)
        ++forbidden_;
      else
        add(entry[now_.edge_alternatives[k]]);
    }
  }

  void turn_edge(std::uint32_t k) {
    subtract(edge_cost(now_, k));
    now_.edge_alternatives[k] = to_.edge_alternatives[k];
    add(edge_cost(now_, k));
  }

  /// Where both ends are turned, the alternative of the plan that it becomes; else what is best at this slope.
  std::uint16_t best(std::uint32_t k, std::span<const CostPoint> entry) const {
    if (!moves(problem_.edges[k].from) && !moves(problem_.edges[k].to)) return to_.edge_alternatives[k];
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
  std::vector<Part> parts_;
  std::vector<std::uint32_t> order_;  ///< nodes or edges of the parts
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
  std::vector<std::pair<const Point*, const Point*>> chords;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const Point &low = achieved.points()[hull[i - 1]], &high = achieved.points()[hull[i]];
    if (!achieved.covers_chord({low.memory, low.time}, {high.memory, high.time})) chords.emplace_back(&low, &high);
  }
  const std::size_t crossings = 2 * chords.size();
  const auto make = [&](std::size_t i) {
    const Point &low = *chords[i / 2].first, &high = *chords[i / 2].second;
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
