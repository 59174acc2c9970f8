// SPDX-License-Identifier: Apache-2.0
// Plans between neighbours on the hull against mixtures made literally, and the slopes at which more is asked.
#include "core/frontier/crossings.h"

#include <QTest>
#include <cmath>
#include <limits>

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

/// The first `turned` nodes as in `to`, the others as in `from`; edges between the two as is best at the slope of both.
/// Empty configs where it is forbidden.
Point mixture(const Problem& problem, const Point& from, const Point& to, std::size_t turned) {
  Point plan = from;
  for (std::size_t v = 0; v < turned; ++v) {
    plan.configs[v] = to.configs[v];
    plan.node_alternatives[v] = to.node_alternatives[v];
  }
  const double wm = std::abs(to.time - from.time), wt = std::abs(double(to.memory - from.memory));
  const auto same = [&](const Point& other, std::size_t v) {
    return plan.configs[v] == other.configs[v] && plan.node_alternatives[v] == other.node_alternatives[v];
  };
  for (std::size_t k = 0; k < problem.edges.size(); ++k) {
    const auto [a, b] = std::pair(problem.edges[k].from, problem.edges[k].to);
    if (same(to, a) && same(to, b) && (!same(from, a) || !same(from, b))) {
      plan.edge_alternatives[k] = to.edge_alternatives[k];
    } else if (!same(from, a) || !same(from, b)) {
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
    int mixtures = 0, new_points = 0;
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
      for (std::size_t turned = 1; turned < problem.nodes.size(); ++turned)
        for (const bool back : {false, true}) {
          const Point mixed = back ? mixture(problem, b, a, turned) : mixture(problem, a, b, turned);
          if (mixed.configs.empty()) continue;
          ++mixtures;
          QVERIFY2(achieved.covers(mixed.memory + std::int64_t(1e-6 * range_m), mixed.time + 1e-6 * range_t) ||
                       mixed.memory < std::min(a.memory, b.memory) || mixed.time < std::min(a.time, b.time),
                   qPrintable(QString("seed %1, %2 nodes turned").arg(seed).arg(turned)));
        }
    }
    QVERIFY2(mixtures > 3000 && new_points > 300,
             qPrintable(QString("%1 mixtures, %2 points").arg(mixtures).arg(new_points)));
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
    const auto all = [&](std::uint32_t config) {
      Point p;
      p.configs.assign(kLayers, config);
      p.node_alternatives.assign(kLayers, 0);
      p.edge_alternatives.assign(kLayers - 1, 0);
      const CostPoint cost = evaluate(problem, p);
      p.memory = cost.memory;
      p.time = cost.time;
      return p;
    };
    ThreadPool pool(1);
    Achieved achieved = with_two(all(0), all(1));
    add_crossings(problem, achieved, 1000, pool);
    QCOMPARE(achieved.points().size(), std::size_t(kLayers) + 1);
    Achieved few = with_two(all(0), all(1));
    add_crossings(problem, few, 40, pool);
    QVERIFY(few.points().size() > 15 && few.points().size() <= 42);
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
