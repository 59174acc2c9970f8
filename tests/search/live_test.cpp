// SPDX-License-Identifier: Apache-2.0
// A slider that is dragged: what is searched over a narrowed structure is a restriction of the whole search, every
// point drawn is a plan that evaluates to it, and the curve is near the exact frontier of a searcher that knows nothing
// of the moves before.
#include <QtTest>
#include <cmath>
#include <random>

#include "core/frontier/solver.h"
#include "core/plan/evaluator.h"
#include "core/search/frontier_tracking/costs.h"
#include "core/search/frontier_tracking/narrow.h"
#include "core/search/registry.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using test::builtin;
using test::close;
using test::scenario_on;

namespace {

constexpr const char* kHardware = "v100-16gb-2x4";

ScenarioPtr moved(const ScenarioPtr& scenario, double inter, double intra, double latency = 1, double speed = 1) {
  auto next = std::make_shared<Scenario>(*scenario);
  next->settings.factors.latency = latency;
  next->settings.factors.device_speed = speed;
  next->settings.factors.inter_bandwidth = inter;
  next->settings.factors.intra_bandwidth = intra;
  return next;
}

// By which share of the frontier's ranges its points must be raised to be reached by the curve.
double distance(const Result& curve, const Result& frontier) {
  const auto& f = frontier.points;
  const double range_m = std::max(1.0, double(f.back().memory_bytes - f.front().memory_bytes)),
               range_t = std::max(1e-300, f.front().time_s - f.back().time_s);
  double worst = 0;
  for (const ResultPoint& p : f) {
    double nearest = 1e300;
    for (const ResultPoint& q : curve.points)
      nearest = std::min(
          nearest, std::max({0.0, double(q.memory_bytes - p.memory_bytes) / range_m, (q.time_s - p.time_s) / range_t}));
    worst = std::max(worst, nearest);
  }
  return worst;
}

// Whether some plan of the exact frontier lies below what the curve says no plan can be below.
bool disproves(const Result& frontier, const Result& curve) {
  for (const ResultPoint& p : frontier.points) {
    double least = HUGE_VAL;
    for (const auto& step : curve.lower_bound)
      if (step.memory <= p.memory_bytes) least = step.time;
    if (p.time_s < least * (1 - 1e-12)) return true;
  }
  return false;
}

// The first point of the curve that lies below the exact frontier, if any.
bool beats(const Result& curve, const Result& frontier) {
  for (const ResultPoint& q : curve.points) {
    bool reached = false;
    for (const ResultPoint& p : frontier.points)
      reached = reached || (p.memory_bytes <= q.memory_bytes && p.time_s <= q.time_s * (1 + 1e-12));
    if (!reached) return true;
  }
  return false;
}

}  // namespace

class LiveTest : public QObject {
  Q_OBJECT

 private slots:
  /// Narrowed to random states, every random choice costs what it costs in the whole problem.
  void a_narrowed_structure_is_a_part_of_the_whole() {
    std::mt19937_64 random(3);
    for (const ModelPtr& model : {test::mlp(), test::residual(), test::attention()}) {
      const auto scenario = scenario_on(model, kHardware);
      const auto whole = search::build_structure(*scenario, {}, {});
      QVERIFY(whole.has_value());
      ThreadPool pool(2);
      const search::Prices prices(scenario, *whole);
      const auto all = search::price_problem(prices, pool, {});
      QVERIFY(all.has_value());
      search::WantedStates wanted(**whole);
      for (int i = 0; i < 5; ++i) {
        frontier::Point plan;
        for (const auto& variable : (*whole)->variables)
          plan.configs.push_back(static_cast<std::uint32_t>(random() % variable.size()));
        wanted.add(plan);
      }
      const auto kept = wanted.states();
      const auto narrow = search::narrow_structure(**whole, kept);
      const search::Prices few(scenario, narrow, &prices);
      const auto part = search::price_problem(few, pool, {});
      QVERIFY(part.has_value());
      QVERIFY(frontier::validate(part->problem).has_value());
      const auto &a = part->problem, &b = all->problem;
      QCOMPARE(a.nodes.size(), b.nodes.size());
      QCOMPARE(a.edges.size(), b.edges.size());
      for (int trial = 0; trial < 50; ++trial) {
        std::vector<std::uint32_t> now, old;
        for (std::size_t v = 0; v < kept.size(); ++v) {
          now.push_back(static_cast<std::uint32_t>(random() % kept[v].size()));
          old.push_back(kept[v][now.back()]);
          const auto x = a.nodes[v].costs[now.back()], y = b.nodes[v].costs[old.back()];
          QVERIFY(std::equal(x.begin(), x.end(), y.begin(), y.end()));
        }
        for (std::size_t e = 0; e < a.edges.size(); ++e) {
          const auto entry = [e](const frontier::Problem& problem, const std::vector<std::uint32_t>& configs) {
            const frontier::Edge& edge = problem.edges[e];
            return edge.costs[edge.from_class[configs[edge.from]] * edge.columns + edge.to_class[configs[edge.to]]];
          };
          const auto x = entry(a, now), y = entry(b, old);
          QVERIFY(std::equal(x.begin(), x.end(), y.begin(), y.end()));
        }
      }
    }
  }

  void moves_are_achievable_and_near_the_frontier_data() {
    QTest::addColumn<QString>("model");
    for (const char* name : {"mlp", "residual", "attention", "alexnet"}) QTest::newRow(name) << name;
  }
  void moves_are_achievable_and_near_the_frontier() {
    QFETCH(QString, model);
    const ModelPtr network = model == "mlp"         ? test::mlp()
                             : model == "residual"  ? test::residual()
                             : model == "attention" ? test::attention()
                                                    : builtin("alexnet", 64);
    const auto scenario = scenario_on(network, kHardware);
    const auto searcher = std::move(*make_searcher(**find_method("ft"), "micro-batches=1")),
               twin = std::move(*make_searcher(**find_method("ft"), "micro-batches=1"));
    QVERIFY(searcher->run(scenario, SearchPass::exact, {}).has_value());
    QVERIFY(twin->run(scenario, SearchPass::exact, {}).has_value());
    QVERIFY(searcher->get_ready(scenario, {}).has_value() && twin->get_ready(scenario, {}).has_value());
    const std::array<std::array<double, 4>, 12> moves{{{0.5, 1, 1, 1},
                                                       {0.125, 1, 1, 1},
                                                       {0.125, 1, 1, 1},
                                                       {0.125, 4, 1, 1},
                                                       {0.25, 1, 1, 1},
                                                       {0.25, 1, 1, 1},
                                                       {1, 1, 1, 2},
                                                       {3, 2, 1, 4},
                                                       {2, 2, 0.5, 1},
                                                       {2, 2, 0.5, 1},
                                                       {6, 0.25, 1, 0.5},
                                                       {6, 0.25, 1, 0.5}}};
    ScenarioPtr at;
    ResultPtr exact;
    for (std::size_t m = 0; m < moves.size(); ++m) {
      const auto [inter, intra, latency, speed] = moves[m];
      at = moved(scenario, inter, intra, latency, speed);
      const auto drawn = searcher->run(at, SearchPass::coarse, {}), again = twin->run(at, SearchPass::coarse, {});
      QVERIFY(drawn.has_value() && again.has_value());
      const Result& curve = **drawn;
      QCOMPARE(curve.points.size(), (*again)->points.size());
      for (std::size_t i = 0; i < curve.points.size(); ++i) {
        QCOMPARE(curve.points[i].memory_bytes, (*again)->points[i].memory_bytes);
        QVERIFY(curve.points[i].time_s == (*again)->points[i].time_s);
        QVERIFY(i == 0 || (curve.points[i].memory_bytes > curve.points[i - 1].memory_bytes &&
                           curve.points[i].time_s < curve.points[i - 1].time_s));
      }
      for (std::size_t i = 0; i < curve.points.size(); i += 1 + curve.points.size() / 25) {
        const auto cost = evaluate_plan(*at, curve.plans->sharding(i));
        QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
        QCOMPARE(cost->memory_bytes(), curve.points[i].memory_bytes);
        QVERIFY(close(cost->time_s(), curve.points[i].time_s));
      }
      const bool rests = m > 0 && moves[m] == moves[m - 1];
      if (!rests) {
        const auto fresh = (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(at, SearchPass::exact, {});
        QVERIFY(fresh.has_value() && (*fresh)->exact);
        exact = *fresh;
      }
      QVERIFY(!beats(curve, *exact));
      QVERIFY(curve.gap && *curve.gap < 1 && (curve.exact || !curve.lower_bound.empty()));
      QVERIFY(curve.exact || !disproves(*exact, curve));
      const double off = distance(curve, *exact);
      QVERIFY2(off < (rests ? 0.005 : 0.04), qPrintable(QString::number(off)));
    }
  }
};

QTEST_APPLESS_MAIN(LiveTest)
#include "live_test.moc"
