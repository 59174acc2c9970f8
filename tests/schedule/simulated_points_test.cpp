// SPDX-License-Identifier: Apache-2.0
// Points on the simulated clock: the same on any number of threads, cancelled at once, and what a chart draws of them.
#include "core/schedule/simulated_points.h"
#include "core/plan_io/result_json.h"

#include <QtTest>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

RunContext on_threads(int threads) {
  RunContext context;
  context.threads = threads;
  return context;
}

ResultPtr searched() {
  static const ResultPtr result = [] {
    const auto found = run("ft", scenario_on(test::attention(16, 32), "v100-16gb-2x4"));
    if (!found) qFatal("%s", found.error().message().c_str());
    return *found;
  }();
  return result;
}

std::vector<std::size_t> all_of(const Result& result) {
  std::vector<std::size_t> indices(result.points.size());
  std::iota(indices.begin(), indices.end(), std::size_t(0));
  return indices;
}

}  // namespace

class SimulatedPointsTest : public QObject {
  Q_OBJECT
 private slots:
  void the_same_on_any_number_of_threads() {
    const auto result = searched();
    QVERIFY(result->points.size() > 100);
    const auto indices = all_of(*result);
    const auto one = simulate_points(*result, indices, on_threads(1));
    const auto four = simulate_points(*result, indices, on_threads(4));
    QVERIFY(one.has_value() && four.has_value());
    QVERIFY(*one == *four);
    // Each is what its plan gives by itself, and never slower than its sum.
    const PlanLowering lowering(*result->scenario);
    for (std::size_t k = 0; k < indices.size(); k += 37) {
      const auto alone = simulate_plan(lowering, result->plans->sharding(k));
      QVERIFY(alone.has_value() && *alone == (*one)[k]);
      QVERIFY((*one)[k].time_s <= result->points[k].time_s * (1 + 1e-12));
      QVERIFY((*one)[k].time_s >= result->points[k].compute_s * (1 - 1e-9));
    }
    const std::vector<std::size_t> some{5, 3, 5};
    const auto picked = simulate_points(*result, some, on_threads(2));
    QVERIFY(picked.has_value() && (*picked)[0] == (*one)[5] && (*picked)[1] == (*one)[3] && (*picked)[2] == (*one)[5]);
  }

  void progress_and_cancel() {
    const auto result = searched();
    std::stop_source source;
    RunContext context = on_threads(1);
    context.stop = source.get_token();
    int reports = 0;
    double last = 0;
    context.progress = [&](const Progress& progress) {
      ++reports;
      last = progress.fraction;
      if (progress.fraction > 0) source.request_stop();
    };
    const auto stopped = simulate_points(*result, all_of(*result), context);
    QVERIFY(!stopped && stopped.error().code == ErrorCode::cancelled);
    QCOMPARE(reports, 2);
    QVERIFY(last > 0 && last < 1);
  }

  void results_are_filled() {
    const auto result = searched();
    QVERIFY(!result->points[0].simulated_time_s);
    const auto filled = with_simulated_points(result, on_threads(0));
    QVERIFY(filled.has_value());
    QVERIFY((*filled)->points == result->points);  // the same points, simulated or not
    const auto document = write_result(**filled, false), plain = write_result(*result, false);
    QCOMPARE(document["clock"].get<std::string>(), std::string("additive"));
    for (std::size_t k = 0; k < result->points.size(); ++k) {
      QCOMPARE(document["points"][k]["simulated_time_s"].get<double>(), *(*filled)->points[k].simulated_time_s);
      QCOMPARE(document["points"][k]["simulated_memory_bytes"].get<std::int64_t>(),
               *(*filled)->points[k].simulated_memory_bytes);
      QVERIFY(!plain["points"][k].contains("simulated_time_s"));
    }
  }

  void few_points_always_are() {
    const auto scenario = scenario_on(test::attention(), "v100-16gb-2x2");
    for (const char* method : {"data-parallel", "fsdp", "tofu", "optcnn", "manual:dp=2:tp=1:pp=1:zero=1"}) {
      const auto result = run(method, scenario);
      if (!result) continue;
      for (const auto& point : (*result)->points)
        QVERIFY2(point.simulated_time_s && point.simulated_memory_bytes, method);
    }
  }

  void what_is_drawn() {
    const auto result = searched();
    const auto curve = simulated_curve(*result, 40, on_threads(2));
    QVERIFY(curve.has_value());
    QVERIFY(curve->index.size() <= 40 && curve->index.size() > 20 && !curve->complete);
    QVERIFY(std::is_sorted(curve->index.begin(), curve->index.end()));
    const std::set<std::size_t> drawn(curve->index.begin(), curve->index.end());
    QCOMPARE(drawn.size(), curve->index.size());
    QVERIFY(drawn.contains(0) && drawn.contains(result->points.size() - 1));
    for (const auto& special : {result->turning_point, result->near_best, result->fastest_that_fits()})
      if (special) QVERIFY(drawn.contains(*special));
    // The line: exactly those that none beats, each pair compared.
    std::set<std::size_t> line(curve->line.begin(), curve->line.end());
    for (std::size_t i = 0; i < curve->cost.size(); ++i) {
      bool beaten = false;
      for (std::size_t j = 0; j < curve->cost.size(); ++j) {
        const auto &a = curve->cost[i], &b = curve->cost[j];
        beaten = beaten || (b.memory_bytes <= a.memory_bytes && b.time_s <= a.time_s &&
                            (b.memory_bytes < a.memory_bytes || b.time_s < a.time_s || j < i));
      }
      QCOMPARE(line.contains(i), !beaten);
    }
    for (std::size_t k = 1; k < curve->line.size(); ++k) {
      QVERIFY(curve->cost[curve->line[k]].memory_bytes > curve->cost[curve->line[k - 1]].memory_bytes);
      QVERIFY(curve->cost[curve->line[k]].time_s < curve->cost[curve->line[k - 1]].time_s);
    }
    const auto whole = simulated_curve(*result, 1u << 20, on_threads(0));
    QVERIFY(whole.has_value() && whole->complete && whole->index.size() == result->points.size());
  }

  void what_cannot_be() {
    const auto result = searched();
    const std::vector<std::size_t> beyond{result->points.size()};
    const auto none = simulate_points(*result, beyond, {});
    QVERIFY(!none && none.error().code == ErrorCode::usage);
    Result bare = *result;
    bare.plans = nullptr;
    QVERIFY(!simulated_curve(bare, 40, {}).has_value());
    // A placement is simulated already.
    bare.clock = Clock::simulated;
    const auto same = simulated_curve(bare, 40, {});
    QVERIFY(same.has_value());
    QCOMPARE(same->cost[0].time_s, bare.points[0].time_s);
    QCOMPARE(same->cost[0].memory_bytes, bare.points[0].memory_bytes);
    bare.points.clear();
    const auto empty = simulated_curve(bare, 40, {});
    QVERIFY(empty.has_value() && empty->index.empty() && empty->line.empty());
  }
};

QTEST_APPLESS_MAIN(SimulatedPointsTest)
#include "simulated_points_test.moc"
