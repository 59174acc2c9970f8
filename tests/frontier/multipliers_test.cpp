// SPDX-License-Identifier: Apache-2.0
// Lagrange multipliers against every plan of small wide problems.
#include "core/frontier/multipliers.h"
#include "core/frontier/slopes.h"

#include <QTest>
#include <cmath>

#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::detail;
using namespace turnpoint::frontier::test;

namespace {

/// Steps of a recurrence that share weights: every weight is read by every step. Memory is large, for copies of a
/// weight share it in whole bytes.
Problem shared_by_all_steps(Generator& g, std::uint32_t steps, std::uint32_t weights) {
  constexpr std::uint32_t kConfigs = 3;
  const auto entry = [&] { return CostPoint{std::int64_t(g.number(0, 1000)) * 1000000, g.real(0, 1)}; };
  Problem problem;
  for (std::uint32_t v = 0; v < steps + weights; ++v) {
    Node node;
    for (std::uint32_t c = 0; c < kConfigs; ++c) node.costs.add(entry());
    problem.nodes.push_back(node);
  }
  const auto join = [&](std::uint32_t from, std::uint32_t to) {
    Edge edge;
    edge.from = from;
    edge.to = to;
    edge.rows = edge.columns = kConfigs;
    edge.from_class = edge.to_class = {0, 1, 2};
    for (std::uint32_t i = 0; i < kConfigs * kConfigs; ++i) edge.costs.add(entry());
    problem.edges.push_back(edge);
  };
  for (std::uint32_t s = 0; s < steps; ++s) {
    if (s > 0) join(s - 1, s);
    for (std::uint32_t w = 0; w < weights; ++w) join(steps + w, s);
  }
  return problem;
}

double least(const CostList& plans, double weight_memory, double weight_time) {
  double least = std::numeric_limits<double>::infinity();
  for (const CostPoint& p : plans)
    least = std::min(least, weight_memory * static_cast<double>(p.memory) + weight_time * p.time);
  return least;
}

}  // namespace

class MultipliersTest : public QObject {
  Q_OBJECT

 private slots:
  /// Bounds never pass a plan, and towards known plans they rise further than averages bring them.
  void climbing_gains_what_averages_leave() {
    ThreadPool pool(2);
    const RunContext context;
    const Control control(context, 0);
    double left_by_averages = 0, left = 0;
    int closed = 0, lanes = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Generator g(seed * 65537 + 3);
      const Problem problem = shared_by_all_steps(g, g.number(4, 6), g.number(2, 3));
      const CostList truth = brute_force(problem);
      const Graph graph = build_graph(problem, pool);
      const auto cut = find_cut(graph, 4, control);
      const Relaxation relaxation = relax(graph, cut);
      const Elimination plan = eliminate_relaxed(relaxation.graph, 4, control);
      Dag dag;
      build_dag(relaxation.graph, plan, dag);
      Achieved achieved;
      std::vector<Point> plans;
      for (const CostPoint& p : truth) plans.push_back({p.memory, p.time, {}, {}, {}});
      achieved.add(std::move(plans));
      std::vector<double> memory, time;
      choose_weights(achieved, kLanes, memory, time);
      const Policy policy;
      Multipliers multipliers(graph, relaxation, dag, pool, control, policy, memory, time);
      QVERIFY(multipliers.average());
      const auto averaged = multipliers.half_planes();
      QVERIFY(multipliers.climb(achieved));
      const auto climbed = multipliers.half_planes();
      for (std::size_t l = 0; l < kLanes; ++l) {
        const double best = least(truth, climbed[l].weight_memory, climbed[l].weight_time);
        QVERIFY2(climbed[l].bound <= best,
                 qPrintable(
                     QString("seed %1, lane %2: %3 above %4").arg(seed).arg(l).arg(climbed[l].bound - best).arg(best)));
        QVERIFY(climbed[l].bound >= averaged[l].bound - 1e-9 * std::abs(best));
        if (best - averaged[l].bound < 1e-6 * best) continue;
        ++lanes;
        left_by_averages += (best - averaged[l].bound) / best;
        left += (best - climbed[l].bound) / best;
        closed += best - climbed[l].bound < 1e-3 * best;
      }
    }
    const QString figures =
        QString("%1 lanes, %2 closed, %3 left of %4").arg(lanes).arg(closed).arg(left).arg(left_by_averages);
    QVERIFY2(closed * 10 > lanes && left < 0.8 * left_by_averages, qPrintable(figures));
  }

  /// Where memory weighs most, rounding of floats would hide a good part of the time.
  void bounds_are_as_good_as_doubles() {
    ThreadPool pool(2);
    const RunContext context;
    const Control control(context, 0);
    Generator g(5);
    const Problem problem = shared_by_all_steps(g, 5, 2);
    const CostList truth = brute_force(problem);
    const Graph graph = build_graph(problem, pool);
    const Relaxation whole = relax(graph, {});  // nothing is cut: the bound is the best plan
    const Elimination plan = eliminate(graph, std::size_t(1) << 20);
    Dag dag;
    build_dag(whole.graph, plan, dag);
    const Policy policy;
    Multipliers multipliers(graph, whole, dag, pool, control, policy, {1, 0, 1}, {0, 1, 1e9});
    QVERIFY(multipliers.average());
    for (const HalfPlane& plane : multipliers.half_planes()) {
      const double largest = plane.weight_memory * static_cast<double>(std::int64_t(1) << 34) + plane.weight_time * 16;
      const double best = least(truth, plane.weight_memory, plane.weight_time);
      QVERIFY2(plane.bound <= best && plane.bound > best - 1e-11 * largest,
               qPrintable(QString("%1 above %2").arg(plane.bound - best).arg(best)));
    }
  }
};

QTEST_APPLESS_MAIN(MultipliersTest)
#include "multipliers_test.moc"
