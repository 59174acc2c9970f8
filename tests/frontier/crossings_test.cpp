// SPDX-License-Identifier: Apache-2.0
// Plans between neighbours on the hull against mixtures made literally, and the slopes at which more is asked.
#include "core/frontier/crossings.h"
#include "core/frontier/slopes.h"

#include <QTest>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::detail;
using namespace turnpoint::frontier::test;

namespace {

std::span<const CostPoint> cell(const Problem& problem, std::size_t k, const Point& plan) {
  const Edge& edge = problem.edges[k];
  return edge.costs[edge.from_class[plan.configs[edge.from]] * edge.columns + edge.to_class[plan.configs[edge.to]]];
}

/// A plan at random; empty configs where it is forbidden.
Point random_plan(Generator& g, const Problem& problem) {
  Point plan;
  for (const Node& node : problem.nodes) {
    plan.configs.push_back(g.number(0, static_cast<std::uint32_t>(node.costs.size() - 1)));
    const auto count = node.costs[plan.configs.back()].size();
    if (count == 0) return {};
    plan.node_alternatives.push_back(static_cast<std::uint16_t>(g.number(0, std::uint32_t(count - 1))));
  }
  for (std::size_t k = 0; k < problem.edges.size(); ++k) {
    const auto count = cell(problem, k, plan).size();
    if (count == 0) return {};
    plan.edge_alternatives.push_back(static_cast<std::uint16_t>(g.number(0, std::uint32_t(count - 1))));
  }
  const CostPoint cost = evaluate(problem, plan);
  plan.memory = cost.memory;
  plan.time = cost.time;
  return plan;
}

/// Nodes, or one edge whose ends stay, that are turned together; and what that alone would change.
struct Part {
  std::vector<std::uint32_t> nodes;
  std::optional<std::size_t> edge;
  double memory = 0, time = 0;
};

/// The nodes in `turned` as in `to`, the others as in `from`, and so the edges between nodes that do not move; edges at
/// the seam as is best at the slope of both. Empty configs where it is forbidden.
Point mixture(const Problem& problem, const Point& from, const Point& to, const std::set<std::uint32_t>& turned,
              const std::set<std::size_t>& turned_edges) {
  Point plan = from;
  for (const std::uint32_t v : turned) {
    plan.configs[v] = to.configs[v];
    plan.node_alternatives[v] = to.node_alternatives[v];
  }
  const double wm = std::abs(to.time - from.time), wt = std::abs(double(to.memory - from.memory));
  for (std::size_t k = 0; k < problem.edges.size(); ++k) {
    const auto [a, b] = std::pair(problem.edges[k].from, problem.edges[k].to);
    const bool stays = from.configs[a] == to.configs[a] && from.configs[b] == to.configs[b];
    const bool old = plan.configs[a] == from.configs[a] && plan.configs[b] == from.configs[b],
               fresh = plan.configs[a] == to.configs[a] && plan.configs[b] == to.configs[b];
    if (stays ? turned_edges.contains(k) : fresh) {
      plan.edge_alternatives[k] = to.edge_alternatives[k];
    } else if (!stays && !old) {
      double least = std::numeric_limits<double>::infinity();
      const auto entry = cell(problem, k, plan);
      for (std::size_t i = 0; i < entry.size(); ++i) {
        const double cost = wm * double(entry[i].memory) + wt * entry[i].time;
        if (cost < least) least = cost, plan.edge_alternatives[k] = static_cast<std::uint16_t>(i);
      }
      if (entry.empty()) return {};
    }
  }
  const CostPoint cost = evaluate(problem, plan);
  plan.memory = cost.memory;
  plan.time = cost.time;
  return plan;
}

/// Nodes such that what leads to a node comes before it, else by number.
std::vector<std::uint32_t> forward_order(const Problem& problem) {
  std::vector<std::uint32_t> order;
  std::set<std::uint32_t> met;
  const std::function<void(std::uint32_t)> place = [&](std::uint32_t v) {
    if (!met.insert(v).second) return;
    for (const Edge& edge : problem.edges)
      if (edge.to == v) place(edge.from);
    order.push_back(v);
  };
  for (std::uint32_t v = 0; v < problem.nodes.size(); ++v) place(v);
  return order;
}

/// Parts of the difference that do not touch, what saves most time for its memory first.
std::vector<Part> parts_between(const Problem& problem, const Point& from, const Point& to) {
  const auto moves = [&](std::uint32_t v) { return from.configs[v] != to.configs[v]; };
  std::vector<std::uint32_t> label(problem.nodes.size());
  std::iota(label.begin(), label.end(), 0u);
  for (std::size_t round = 0; round < label.size(); ++round)
    for (const Edge& edge : problem.edges)
      if (moves(edge.from) && moves(edge.to))
        label[edge.from] = label[edge.to] = std::min(label[edge.from], label[edge.to]);
  std::map<std::uint32_t, Part> by_label;
  for (const std::uint32_t v : forward_order(problem))
    if (moves(v) || from.node_alternatives[v] != to.node_alternatives[v]) by_label[label[v]].nodes.push_back(v);
  std::vector<Part> parts;
  for (auto& [first, part] : by_label) parts.push_back(std::move(part));
  for (std::size_t k = 0; k < problem.edges.size(); ++k)
    if (!moves(problem.edges[k].from) && !moves(problem.edges[k].to) &&
        from.edge_alternatives[k] != to.edge_alternatives[k])
      parts.push_back({{}, k});
  const bool falls = to.memory < from.memory;
  const double range_m = std::abs(double(to.memory - from.memory)), range_t = std::abs(to.time - from.time);
  const auto angle = [&](const Part& part) {
    const double sign = falls ? -1 : 1;
    return std::atan2(sign * part.time / range_t, sign * part.memory / range_m);
  };
  for (Part& part : parts) {
    const Point alone = mixture(problem, from, to, {part.nodes.begin(), part.nodes.end()},
                                part.edge ? std::set<std::size_t>{*part.edge} : std::set<std::size_t>{});
    part.memory = double(alone.memory - from.memory);
    part.time = alone.time - from.time;
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const Part& x, const Part& y) {
    return falls ? angle(x) > angle(y) + 1e-9 : angle(x) < angle(y) - 1e-9;
  });
  return parts;
}

/// Every plan on the way from one to the other.
std::vector<Point> mixtures(const Problem& problem, const Point& from, const Point& to) {
  std::vector<Point> found;
  std::set<std::uint32_t> turned;
  std::set<std::size_t> turned_edges;
  const auto add = [&] {
    if (Point plan = mixture(problem, from, to, turned, turned_edges); !plan.configs.empty())
      found.push_back(std::move(plan));
  };
  for (const Part& part : parts_between(problem, from, to)) {
    for (const std::uint32_t v : part.nodes) {
      turned.insert(v);
      add();
    }
    if (part.edge) {
      turned_edges.insert(*part.edge);
      add();
    }
  }
  return found;
}

/// The plan of these configurations, of everything the first alternative.
Point plan_of(const Problem& problem, const std::function<std::uint32_t(std::uint32_t)>& config) {
  Point plan;
  for (std::uint32_t v = 0; v < problem.nodes.size(); ++v) plan.configs.push_back(config(v));
  plan.node_alternatives.assign(problem.nodes.size(), 0);
  plan.edge_alternatives.assign(problem.edges.size(), 0);
  const CostPoint cost = evaluate(problem, plan);
  plan.memory = cost.memory;
  plan.time = cost.time;
  return plan;
}

Achieved with_two(const Point& a, const Point& b) {
  Achieved achieved;
  achieved.add({a, b});
  return achieved;
}

}  // namespace

class CrossingsTest : public QObject {
  Q_OBJECT

 private slots:
  void every_mixture_of_two_plans_is_found_or_beaten() {
    ThreadPool pool(2);
    int count = 0, new_points = 0;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
      Generator g(seed * 7919 + 1);
      ProblemShape shape;
      shape.integer_times = false;
      shape.large_memory = seed % 3 == 0;
      const Problem problem = random_problem(seed, g.number(2, 9), shape, static_cast<std::uint32_t>(seed % 9));
      const Point a = random_plan(g, problem), b = random_plan(g, problem);
      if (a.configs.empty() || b.configs.empty()) continue;
      Achieved achieved = with_two(a, b);
      if (achieved.points().size() < 2) continue;  // one is better in both
      add_crossings(problem, achieved, 100000000, pool);
      for (const Point& p : achieved.points()) {
        QVERIFY((evaluate(problem, p) == CostPoint{p.memory, p.time}));
        ++new_points;
      }
      new_points -= 2;
      const double range_m = std::abs(double(a.memory - b.memory)), range_t = std::abs(a.time - b.time);
      for (const bool back : {false, true})
        for (const Point& mixed : back ? mixtures(problem, b, a) : mixtures(problem, a, b)) {
          ++count;
          QVERIFY2(achieved.covers(mixed.memory + std::int64_t(1e-6 * range_m), mixed.time + 1e-6 * range_t) ||
                       mixed.memory < std::min(a.memory, b.memory) || mixed.time < std::min(a.time, b.time),
                   qPrintable(QString("seed %1").arg(seed)));
        }
    }
    QVERIFY2(count > 3000 && new_points > 300,
             qPrintable(QString("%1 mixtures, %2 points").arg(count).arg(new_points)));
  }

  void a_deep_network_has_plans_all_along_a_side_of_its_hull() {
    // Layers that are either small and slow or large and fast; a change between neighbours costs a little time.
    Problem problem;
    constexpr std::uint32_t kLayers = 400;
    for (std::uint32_t v = 0; v < kLayers; ++v) {
      Node node;
      node.costs.add(CostPoint{10, 3.0});
      node.costs.add(CostPoint{30, 1.0});
      problem.nodes.push_back(node);
      if (v == 0) continue;
      Edge edge;
      edge.from = v - 1;
      edge.to = v;
      edge.from_class = edge.to_class = {0, 1};
      edge.rows = edge.columns = 2;
      for (const double time : {0.0, 0.5, 0.5, 0.0}) edge.costs.add(CostPoint{0, time});
      problem.edges.push_back(edge);
    }
    const auto all = [&](std::uint32_t config) { return plan_of(problem, [=](std::uint32_t) { return config; }); };
    ThreadPool pool(1);
    Achieved achieved = with_two(all(0), all(1));
    add_crossings(problem, achieved, 1000, pool);
    QCOMPARE(achieved.points().size(), std::size_t(kLayers) + 1);
    Achieved few = with_two(all(0), all(1));
    add_crossings(problem, few, 40, pool);
    QVERIFY(few.points().size() > 15 && few.points().size() <= 42);
  }

  void shared_tensors_that_stand_behind_all_operators_are_turned_where_they_belong() {
    // Each layer hands its tensor on through a node of its own, which comes after all layers. A seam costs memory.
    Problem problem;
    constexpr std::uint32_t kLayers = 100;
    for (std::uint32_t v = 0; v < 2 * kLayers; ++v) {
      Node node;
      node.costs.add(CostPoint{10, 3.0});
      node.costs.add(CostPoint{30, 1.0});
      problem.nodes.push_back(node);
    }
    const auto join = [&](std::uint32_t from, std::uint32_t to) {
      Edge edge;
      edge.from = from;
      edge.to = to;
      edge.from_class = edge.to_class = {0, 1};
      edge.rows = edge.columns = 2;
      for (const std::int64_t memory : {0, 15, 15, 0}) edge.costs.add(CostPoint{memory, 0});
      problem.edges.push_back(edge);
    };
    for (std::uint32_t v = 0; v < kLayers; ++v) {
      join(v, kLayers + v);
      if (v + 1 < kLayers) join(kLayers + v, v + 1);
    }
    ThreadPool pool(1);
    const Point slow = plan_of(problem, [](std::uint32_t) { return 0u; });
    Achieved achieved = with_two(slow, plan_of(problem, [](std::uint32_t) { return 1u; }));
    add_crossings(problem, achieved, 10000, pool);
    for (std::uint32_t turned = 1; turned < 2 * kLayers; ++turned)
      QVERIFY2(achieved.covers(slow.memory + 20 * turned + 15, slow.time - 2.0 * turned),
               qPrintable(QString::number(turned)));
  }

  void parts_that_do_not_touch_are_turned_by_what_they_save() {
    // Nodes without edges: every second one saves ten times as much for the same memory.
    Problem problem;
    constexpr std::uint32_t kNodes = 50;
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      Node node;
      node.costs.add(CostPoint{0, v % 2 ? 10.0 : 1.0});
      node.costs.add(CostPoint{10, 0.0});
      problem.nodes.push_back(node);
    }
    ThreadPool pool(1);
    Achieved achieved = with_two(plan_of(problem, [](std::uint32_t) { return 0u; }),
                                 plan_of(problem, [](std::uint32_t) { return 1u; }));
    add_crossings(problem, achieved, 10000, pool);
    QVERIFY(achieved.covers(10 * kNodes / 2, kNodes / 2));
    QCOMPARE(achieved.points().size(), std::size_t(kNodes) + 1);
  }

  void any_number_of_threads_gives_the_same() {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Generator g(seed);
      const Problem problem = random_problem(seed, 8, {}, static_cast<std::uint32_t>(seed % 9));
      Achieved one;
      for (int i = 0; i < 20; ++i)
        if (Point plan = random_plan(g, problem); !plan.configs.empty()) one.add({std::move(plan)});
      if (one.empty()) continue;
      Achieved three = one;
      ThreadPool alone(1), several(3);
      add_crossings(problem, one, 50, alone);
      add_crossings(problem, three, 50, several);
      QCOMPARE(one.points().size(), three.points().size());
      for (std::size_t i = 0; i < one.points().size(); ++i)
        QCOMPARE(one.points()[i].configs, three.points()[i].configs);
    }
  }

  void slopes_are_asked_where_plans_may_hide() {
    const auto point = [](std::int64_t memory, double time) {
      Point p;
      p.memory = memory;
      p.time = time;
      return p;
    };
    Achieved achieved;
    achieved.add({point(0, 100), point(20, 40), point(100, 0)});
    // The second chord is proven to be part of the hull; behind the first all between the lines of the ends is open.
    const std::vector<HalfPlane> planes{{1, 0, 0}, {0, 1, 0}, {1, 2, 100}};
    std::vector<double> memory, time;
    open_chords(planes, achieved, 16, 0.01, memory, time);
    QCOMPARE(memory.size(), std::size_t(1));
    QVERIFY(std::abs(memory[0] / time[0] - 3) < 1e-9);  // (100 - 40) / (20 - 0)
    memory.clear();
    time.clear();
    open_chords({{1, 0, 0}, {0, 1, 0}, {1, 2, 100}, {3, 1, 100}}, achieved, 16, 0.01, memory, time);
    QVERIFY(memory.empty());
    open_chords({}, achieved, 1, 0.01, memory, time);
    QCOMPARE(memory.size(), std::size_t(1));
  }
};

QTEST_APPLESS_MAIN(CrossingsTest)
#include "crossings_test.moc"
