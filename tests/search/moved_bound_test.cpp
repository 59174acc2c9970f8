// SPDX-License-Identifier: Apache-2.0
// What is certain after a slider moved: no plan of the moved scenario lies below the bound that was scaled to it. One
// factor is moved at a time, since among several the strongest hides a mistake in the others.
#include <QtTest>
#include <cmath>

#include "core/frontier/pareto.h"
#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/costs.h"
#include "core/search/frontier_tracking/moved_bound.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

ScenarioPtr with_factors(const ScenarioPtr& scenario, const WhatIf& factors) {
  auto next = std::make_shared<Scenario>(*scenario);
  next->settings.factors = factors;
  return next;
}

struct Solved {
  frontier::Answer answer;
  double least_compute_s = 0;
};

Solved solved(const ScenarioPtr& scenario) {
  const auto structure = search::build_structure(*scenario, {}, {});
  if (!structure) qFatal("%s", structure.error().message().c_str());
  ThreadPool pool(2);
  const search::Prices prices(scenario, *structure);
  const auto priced = search::price_problem(prices, pool, {});
  if (!priced) qFatal("%s", priced.error().message().c_str());
  frontier::Solver solver;
  auto answer = solver.solve(priced->problem, {}, {});
  if (!answer || !answer->exact) qFatal("a small problem is solved exactly");
  return {std::move(*answer), search::least_compute_seconds(**structure, *priced)};
}

}  // namespace

class MovedBoundTest : public QObject {
  Q_OBJECT

 private slots:
  void no_plan_lies_below_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<int>("factor");
    const char* models[] = {"mlp", "residual", "attention"};
    const char* factors[] = {"inter-bandwidth", "intra-bandwidth", "latency", "device-speed"};
    for (int m = 0; m < 3; ++m)
      for (int f = 0; f < 4; ++f) QTest::addRow("%s, %s", models[m], factors[f]) << m << f;
  }

  void no_plan_lies_below() {
    QFETCH(int, model);
    QFETCH(int, factor);
    const ModelPtr network = model == 0 ? test::mlp() : model == 1 ? test::residual() : test::attention();
    const auto base = test::scenario_on(network, "v100-16gb-2x2");
    const Solved known = solved(base);
    search::MovedBounds bounds;
    bounds.add(*base, known.answer, known.least_compute_s);
    double highest = 0;
    for (const double by : {0.05, 0.25, 0.9, 1.0, 1.1, 4.0, 20.0}) {
      WhatIf factors;
      double* const moved[] = {&factors.inter_bandwidth, &factors.intra_bandwidth, &factors.latency,
                               &factors.device_speed};
      *moved[factor] = by;
      const auto scenario = with_factors(base, factors);
      const auto bound = bounds.at(*scenario);
      QVERIFY(!bound.empty());
      const Solved truth = solved(scenario);
      for (const auto& point : truth.answer.points) {
        const double least = frontier::time_at(bound, point.memory);
        QVERIFY2(least <= point.time * (1 + 1e-12),
                 qPrintable(QString("x%1: a plan takes %2 s, the bound says %3").arg(by).arg(point.time).arg(least)));
        highest = std::max(highest, least / point.time);
      }
    }
    QVERIFY(highest > 0.9);  // a bound of nothing would be safe, too
  }

  void other_questions_have_no_bound() {
    const auto base = test::scenario_on(test::mlp(), "v100-16gb-2x4");
    const Solved known = solved(base);
    search::MovedBounds bounds;
    bounds.add(*base, known.answer, known.least_compute_s);
    QVERIFY(!bounds.at(*base).empty());
    const std::function<void(Settings&)> changes[] = {
        [](Settings& s) { s.precision = Precision::bf16; },    [](Settings& s) { s.optimizer = Optimizer::sgd; },
        [](Settings& s) { s.accounting = Accounting::paper; }, [](Settings& s) { s.recompute = false; },
        [](Settings& s) { s.update_sharding = false; },        [](Settings& s) { s.split_windows = true; }};
    for (const auto& change : changes) {
      auto other = std::make_shared<Scenario>(*base);  // the same model on the same hardware
      change(other->settings);
      QVERIFY(bounds.at(*other).empty());
    }
    auto other_model = std::make_shared<Scenario>(*base), other_hardware = std::make_shared<Scenario>(*base);
    other_model->model = test::residual();
    QVERIFY(bounds.at(*other_model).empty());
    other_hardware->cluster = test::scenario_on(test::mlp(), "v100-16gb-2x2")->cluster;
    QVERIFY(bounds.at(*other_hardware).empty());
    const auto limited = test::scenario_on(test::mlp(), "v100-16gb-2x4", [](Settings& s) { s.memory_limit = 1000; });
    auto same_model = std::make_shared<Scenario>(*base);
    same_model->settings = limited->settings;
    QVERIFY(!bounds.at(*same_model).empty());  // a limit is only compared with
  }

  /// The gap counts what the bound falls between two points.
  void a_gap_between_points_is_counted() {
    frontier::Answer answer;
    frontier::Point a, b;
    a.memory = 0, a.time = 10;
    b.memory = 100, b.time = 4;
    answer.points = {a, b};
    search::certify(answer, {{0, 9}, {50, 5}, {100, 4}});
    QVERIFY(answer.certified && !answer.exact);
    QCOMPARE(answer.gap, 0.5);
    answer.lines = {{1, 0}};  // of the narrowed problem alone
    search::certify(answer, {});
    QVERIFY(answer.lines.empty());
    QVERIFY(!answer.certified);
  }
};

QTEST_APPLESS_MAIN(MovedBoundTest)
#include "moved_bound_test.moc"
