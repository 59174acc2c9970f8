// SPDX-License-Identifier: Apache-2.0
// Searches that end before their whole frontier is proven: at a gap, against the whole frontiers of every number of
// micro-batches by themselves, and at a limit of time.
#include <QtTest>

#include "core/frontier/pareto.h"
#include "core/search/frontier_tracking/micro_batches.h"
#include "core/search/frontier_tracking/sweep.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

frontier::CostList staircase_of(const Result& result) {
  frontier::CostList costs;
  for (const ResultPoint& point : result.points) costs.push_back({point.memory_bytes, point.time_s});
  return costs;
}

/// The lower envelope of the whole frontiers of every number of micro-batches, each searched by itself.
frontier::CostList whole_frontier(const ScenarioPtr& scenario) {
  frontier::CostList all;
  for (const int number : search::micro_batch_numbers(*scenario)) {
    const auto one = run("ft:gap=0:micro-batches=" + std::to_string(number), scenario);
    if (!one || !(*one)->exact) qFatal("number %d has no whole frontier", number);
    all = frontier::unite(all, staircase_of(**one));
  }
  return all;
}

bool same_costs(const frontier::CostList& a, const frontier::CostList& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.memory == y.memory && std::abs(x.time - y.time) <= 1e-12 * y.time;
  });
}

ScenarioPtr alexnet() {
  return scenario_on(builtin("alexnet", 256), "v100-16gb-1x4", [](Settings&) {});
}

}  // namespace

class EndsEarlyTest : public QObject {
  Q_OBJECT

 private slots:
  /// What is certified holds against every point of the whole frontier that is considered, and a wider gap needs no
  /// more points. The least memory is there, too.
  void a_gap_that_is_enough_is_kept() {
    const auto scenario = alexnet();
    const frontier::CostList whole = whole_frontier(scenario);
    std::size_t finer = SIZE_MAX;
    for (const double gap : {0.001, 0.02, 0.2}) {
      const auto result = run(fmt::format("ft:gap={}", gap), scenario);
      QVERIFY(result.has_value());
      QCOMPARE((*result)->method_options, fmt::format("gap={}", gap));
      QVERIFY((*result)->gap && *(*result)->gap <= gap * (1 + 1e-6));
      const frontier::CostList found = staircase_of(**result);
      for (const auto& best : whole) {
        const double reached = frontier::time_at(found, best.memory);
        if (reached == INFINITY) continue;  // less memory than any plan that was found: the bound says so
        if (best.time <= (*result)->slowest_considered_s) QVERIFY(reached * (1 - gap) <= best.time * (1 + 1e-9));
        QVERIFY(reached >= best.time * (1 - 1e-9));
      }
      QVERIFY(found.front().memory <= whole.front().memory * (1 + gap));
      QVERIFY2(found.size() <= finer, qPrintable(QString::number(gap)));
      finer = found.size();
    }
  }

  /// Of all numbers of micro-batches, finer and coarser than usual.
  void every_number_is_searched_to_the_gap_asked_for() {
    const auto scenario =
        scenario_on(builtin("lenet", 1024), "b200-180gb-4x8", [](Settings& s) { s.precision = Precision::bf16; });
    const auto usual = run("ft", scenario), finer = run("ft:gap=0.0004", scenario),
               coarser = run("ft:gap=0.02", scenario);
    QVERIFY(usual && finer && coarser);
    QVERIFY(!(*usual)->exact && *(*usual)->gap > 0.0004);
    QVERIFY(*(*usual)->gap <= search::kOpenGap * (1 + 1e-6));
    QVERIFY(*(*finer)->gap <= 0.0004 * (1 + 1e-6));
    QVERIFY(*(*coarser)->gap <= 0.02 * (1 + 1e-6));
    // Each stands above what the other has proven.
    for (const auto& [a, b] : {std::pair(*usual, *finer), std::pair(*coarser, *finer)})
      for (const ResultPoint& point : a->points)
        QVERIFY(point.time_s >= frontier::time_at(b->lower_bound, point.memory_bytes) * (1 - 1e-9));
  }

  /// A gap between the engine's own levels is proven, and not the next one as far as little work goes.
  void a_wide_gap_is_proven() {
    const auto scenario = scenario_on(builtin("alexnet", 128), "p100-16gb-2x8", [](Settings&) {});
    const auto result = run("ft:gap=0.01", scenario);
    QVERIFY(result && (*result)->gap && *(*result)->gap <= 0.01 * (1 + 1e-6));
  }

  void no_gap_is_the_whole_frontier_of_every_number() {
    const auto scenario = alexnet();
    const auto result = run("ft:gap=0", scenario);
    QVERIFY(result && (*result)->exact);
    QVERIFY(same_costs(staircase_of(**result), whole_frontier(scenario)));
    const auto usual = run("ft", scenario);  // which is content with less
    QVERIFY(usual.has_value());
    for (const frontier::CostPoint& point : staircase_of(**usual))
      QVERIFY(frontier::time_at(staircase_of(**result), point.memory) <= point.time * (1 + 1e-9));
    QVERIFY((*usual)->exact || *(*usual)->gap <= search::kOpenGap * (1 + 1e-6));
  }

  /// However short the time, there are plans, with what is certain of them, and a word of it.
  void a_limit_of_time_leaves_a_first_answer() {
    const auto scenario = scenario_on(builtin("gpt2", 64), "v100-16gb-2x4", [](Settings&) {});
    for (const std::string method : {"ft:time-limit=0.001", "ft:micro-batches=4:time-limit=0.001"}) {
      const auto result = run(method, scenario);
      QVERIFY2(result.has_value(), method.c_str());
      QVERIFY((*result)->points.size() > 2 && !(*result)->exact);
      QVERIFY((*result)->gap && *(*result)->gap > search::kOpenGap && !(*result)->lower_bound.empty());
      QCOMPARE((*result)->notes.size(), std::size_t(1));
      QVERIFY((*result)->notes[0].starts_with("The search ended at its limit of 0.001 s. "));
    }
    const auto all = run("ft", scenario);
    const auto early = run("ft:time-limit=0.001", scenario);
    QVERIFY(all && early && *(*all)->gap < *(*early)->gap);
    QVERIFY((*all)->notes.empty());
    const auto enough = run("ft:time-limit=1000", scenario);  // time was not short
    QVERIFY(enough && (*enough)->notes.empty() && (*enough)->points == (*all)->points);
  }

  void parameters_out_of_range_are_refused() {
    for (const std::string method : {"ft:gap=-0.1", "ft:gap=1.5", "ft:gap=nan", "ft:time-limit=-1", "optcnn:gap=0.1",
                                     "data-parallel:time-limit=1"}) {
      const auto choice = choose_method(method);
      QVERIFY(choice.has_value());
      QVERIFY2(!make_searcher(*choice->method, choice->parameters).has_value(), method.c_str());
    }
  }
};

QTEST_APPLESS_MAIN(EndsEarlyTest)
#include "ends_early_test.moc"
