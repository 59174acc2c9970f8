// SPDX-License-Identifier: Apache-2.0
// Results written piece by piece. The oracle is the text of the whole document's tree.
#include <QtTest>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/plan_io/result_json.h"
#include "core/plan_io/result_text.h"
#include "plan/hand_plan.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::test;
using nlohmann::json;

namespace {

class PlansByHand : public PlanSource {
 public:
  explicit PlansByHand(ScenarioPtr scenario) : scenario_(std::move(scenario)) {}
  AnyPlan plan(std::size_t k) const override { return std::make_shared<const Plan>(hand_plan(*scenario_, k + 1)); }
  PlanKind kind(std::size_t) const override { return PlanKind::sharding; }

 private:
  ScenarioPtr scenario_;
};

/// A convex curve of so many points.
std::shared_ptr<Result> curve(std::size_t points) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario_on(mlp(), "v100-16gb-2x8");
  result->method = "ft";
  result->gap = 0.001;
  result->search_s = 0.25;
  result->notes = {"a note", "a \"second\"\nof two lines"};
  for (std::size_t i = 0; i < points; ++i) {
    const double x = 1 + static_cast<double>(i), time = 1 / x;
    result->points.push_back({static_cast<std::int64_t>(x * 1e8), time, time * 0.75, time * 0.25, i + 3 < points});
    result->lower_bound.push_back({static_cast<std::int64_t>(x * 1e8), time * 0.999});
  }
  result->turning_point = find_turning_point(result->points);
  result->near_best = find_near_best(result->points);
  result->plans = std::make_shared<PlansByHand>(result->scenario);
  return result;
}

struct Written {
  std::string text;
  Expected<void> ended;
  std::size_t pieces = 0;
};

Written written(const std::vector<ResultPtr>& results, bool as_list, std::size_t plans, RunContext context = {}) {
  Written made;
  made.ended = write_results_text(
      results, as_list, {plans},
      [&](std::string_view piece) {
        made.text += piece;
        ++made.pieces;
        return Expected<void>();
      },
      context);
  return made;
}

std::vector<std::size_t> with_plans(const json& document) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < document["plans"].size(); ++i)
    if (!document["plans"][i].is_null()) points.push_back(i);
  return points;
}

}  // namespace

class ResultTextTest : public QObject {
  Q_OBJECT

 private slots:
  void the_text_is_that_of_the_tree() {
    auto empty = curve(0);
    auto plain = curve(3);
    plain->plans = nullptr;
    plain->lower_bound.clear();
    plain->notes.clear();
    const std::vector<ResultPtr> all = {curve(37), plain, empty, curve(1)};
    for (const int threads : {1, 2, 5}) {
      RunContext context;
      context.threads = threads;
      for (const std::size_t plans : {std::size_t(0), WrittenPlans::kAll}) {
        for (const auto& one : all) {
          const Written text = written({one}, false, plans, context);
          QVERIFY(text.ended);
          QVERIFY(text.text == write_result(*one, plans > 0).dump(1) + "\n");
        }
        const Written text = written(all, true, plans, context);
        QVERIFY(text.ended);
        QVERIFY(text.text == write_results(all, plans > 0).dump(1) + "\n");
      }
    }
    QVERIFY(written({}, true, 0).text == write_results({}, false).dump(1) + "\n");
  }

  void some_plans_leave_null_for_the_others() {
    const auto result = curve(37);
    const json all = write_result(*result, true);
    SchemaCheck schemas(TURNPOINT_SOURCE_DIR "/resources/schemas");
    for (const std::size_t most : {std::size_t(1), std::size_t(2), std::size_t(8), std::size_t(36), std::size_t(99)}) {
      const Written text = written({result}, false, most);
      QVERIFY(text.ended);
      json document = json::parse(text.text);
      QCOMPARE(schemas.check("result@1", document), std::string());
      QVERIFY(with_plans(document) == points_with_plans(*result, most));
      QCOMPARE(document["plans"].size(), std::size_t(37));
      for (std::size_t i = 0; i < 37; ++i)
        QVERIFY(document["plans"][i].is_null() || document["plans"][i] == all["plans"][i]);
      document["plans"] = all["plans"];
      QVERIFY(document == all);
    }
  }

  // The turning point, the fastest that fits, both ends and the least memory near the best come first.
  void the_points_with_plans_are_even_and_hold_the_named_ones() {
    for (const std::size_t count : {1u, 2u, 3u, 6u, 7u, 40u, 1001u}) {
      const auto result = curve(count);
      std::vector<std::size_t> named;
      for (const auto& point : {result->turning_point, result->fastest_that_fits(), std::optional<std::size_t>(0),
                                std::optional<std::size_t>(count - 1), result->near_best})
        if (point && std::find(named.begin(), named.end(), *point) == named.end()) named.push_back(*point);
      for (std::size_t most = 0; most <= count + 2; most = most < 20 ? most + 1 : most * 2) {
        const auto points = points_with_plans(*result, most);
        QCOMPARE(points.size(), std::min(most, count));
        QVERIFY(std::adjacent_find(points.begin(), points.end(), std::greater_equal<>()) == points.end());
        QVERIFY(points.empty() || points.back() < count);
        for (std::size_t i = 0; i < std::min(most, named.size()); ++i)
          QVERIFY(std::binary_search(points.begin(), points.end(), named[i]));
        if (most < 10 || most > count) continue;
        // Five were moved at most, so that no stretch between two is more than three steps long.
        for (std::size_t i = 1; i < points.size(); ++i)
          QVERIFY((points[i] - points[i - 1]) * (most - 1) <= 3 * (count - 1) + most);
      }
    }
  }

  void the_estimate_is_near() {
    const auto result = curve(200);
    const double with = static_cast<double>(written({result}, false, WrittenPlans::kAll).text.size()),
                 without = static_cast<double>(written({result}, false, 0).text.size()),
                 estimate = estimated_plan_bytes({result}, {WrittenPlans::kAll});
    QVERIFY2(std::abs(estimate - (with - without)) < 0.2 * (with - without),
             qPrintable(QString("%1 estimated, %2 written").arg(estimate).arg(with - without)));
    QCOMPARE(estimated_plan_bytes({result}, {0}), 0.0);
  }

  void a_sink_that_fails_ends_it() {
    for (const std::size_t fails_at : {std::size_t(0), std::size_t(3), std::size_t(20)}) {
      std::size_t pieces = 0;
      const auto ended = write_results_text(
          {curve(60)}, false, {WrittenPlans::kAll},
          [&](std::string_view) { return pieces++ < fails_at ? Expected<void>() : bad_input("is full", "disk"); }, {});
      QVERIFY(!ended);
      QCOMPARE(ended.error().message(), std::string("disk: is full"));
      QCOMPARE(pieces, fails_at + 1);
    }
  }

  void it_is_cancelled_and_says_how_far_it_is() {
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    context.threads = 2;
    double last = 0;
    std::size_t reports = 0;
    context.progress = [&](const Progress& progress) {
      QCOMPARE(progress.phase, std::string("writing plans"));
      QVERIFY(progress.fraction > last);
      last = progress.fraction;
      ++reports;
    };
    QVERIFY(written({curve(60)}, false, WrittenPlans::kAll, context).ended);
    QCOMPARE(last, 1.0);
    QVERIFY(reports > 4);
    context.progress = [&](const Progress& progress) {
      if (progress.fraction > 0.5) stop.request_stop();
    };
    const Written cut = written({curve(60)}, false, WrittenPlans::kAll, context);
    QVERIFY(!cut.ended && cut.ended.error().code == ErrorCode::cancelled);
  }
};

QTEST_APPLESS_MAIN(ResultTextTest)
#include "result_text_test.moc"
