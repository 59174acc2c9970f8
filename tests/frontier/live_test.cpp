// SPDX-License-Identifier: Apache-2.0
// Passes under a slider against brute force: what stays hidden is less than an eye follows, and once the slider rests
// next to nothing, on problems whose frontiers lie far from their hulls.
#include <QTest>

#include "core/frontier/solver.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

constexpr double kHidden = 0.02, kHiddenAtRest = 0.0005;  // shares of both ranges, as the engine promises
constexpr double kBucket = 1.0 / 512;                     // of the first pass; one plan stays of each

/// By how much memory and time of every plan must be raised to be reached, as a share of the ranges.
double distance(const CostList& costs, const CostList& truth) {
  const double memory = double(truth.back().memory - truth.front().memory),
               time = truth.front().time - truth.back().time;
  double farthest = 0;
  for (const CostPoint& wanted : truth) {
    double nearest = 1e300;
    for (const CostPoint& p : costs)
      nearest =
          std::min(nearest, std::max({0.0, double(p.memory - wanted.memory) / memory, (p.time - wanted.time) / time}));
    farthest = std::max(farthest, nearest);
  }
  return farthest;
}

void change(Problem& problem, Generator& g) {
  for (Node& node : problem.nodes) {
    const double slower = g.real(0.8, 1.25);
    for (CostPoint& point : node.costs.mutable_points()) point.time *= slower;
  }
}

}  // namespace

class LiveTest : public QObject {
  Q_OBJECT

 private slots:
  void what_an_eye_follows_is_found() {
    int hidden_by_hull = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Generator g(seed);
      Problem problem = bent(seed, 5 + g.number(0, 3));
      SolveOptions options;
      options.pass = Pass::coarse;
      options.direct_terms = 0;
      options.live_products = 1e7;
      Solver solver, hull;
      QVERIFY(solver.solve(problem, options, {}).has_value());
      change(problem, g);
      const CostList truth = brute_force(problem);
      const auto moved = solver.solve(problem, options, {});
      options.live_rests = true;
      const auto rested = solver.solve(problem, options, {});
      options.hull_only = true;
      options.live_products = 0;
      const auto corners = hull.solve(problem, options, {});
      QVERIFY(moved.has_value() && rested.has_value() && corners.has_value());
      for (const auto* answer : {&*moved, &*rested})
        for (const Point& point : answer->points)
          QVERIFY((evaluate(problem, point) == CostPoint{point.memory, point.time}));
      QVERIFY2(distance(costs_of(*moved), truth) <= kHidden + kBucket,
               qPrintable(QString("seed %1: %2").arg(seed).arg(distance(costs_of(*moved), truth))));
      QVERIFY2(distance(costs_of(*rested), truth) <= kHiddenAtRest + kBucket,
               qPrintable(QString("seed %1 at rest: %2").arg(seed).arg(distance(costs_of(*rested), truth))));
      hidden_by_hull += distance(costs_of(*corners), truth) > 2 * kHidden;
    }
    QVERIFY2(hidden_by_hull > 20, qPrintable(QString::number(hidden_by_hull)));  // else nothing was at stake
  }
};

QTEST_APPLESS_MAIN(LiveTest)
#include "live_test.moc"
