// SPDX-License-Identifier: Apache-2.0
#include <QtTest>
#include <clocale>
#include <locale>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/text.h"
#include "core/export/writers.h"
#include "core/plan/result.h"
#include "core/plan_io/result_json.h"
#include "plan/hand_plan.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr std::int64_t kGiB = std::int64_t(1) << 30;

/// Without the line that a result has whose peaks nobody has simulated.
std::vector<std::string> callout(const Result& result) {
  auto lines = describe_turning_point(result);
  if (lines.back() != "By the plain sum; peak not simulated yet") return {"says nothing of sums"};
  lines.pop_back();
  return lines;
}

ResultPoint point(double gib, double time_s, bool fits = true) {
  ResultPoint p;
  p.memory_bytes = static_cast<std::int64_t>(gib * static_cast<double>(kGiB));
  p.time_s = time_s;
  p.compute_s = time_s * 0.75;
  p.network_s = time_s - p.compute_s;
  p.fits = fits;
  return p;
}

class HandPlans : public PlanSource {
 public:
  explicit HandPlans(ScenarioPtr scenario) : scenario_(std::move(scenario)) {}
  AnyPlan plan(std::size_t k) const override { return std::make_shared<const Plan>(hand_plan(*scenario_, k + 1)); }
  PlanKind kind(std::size_t) const override { return PlanKind::sharding; }

 private:
  ScenarioPtr scenario_;
};

Result result_of(std::vector<ResultPoint> points) {
  Result result;
  result.scenario = scenario_on(mlp(), "v100-16gb-2x8");
  result.method = "ft";
  result.exact = true;
  result.gap = 0;
  result.search_s = 0.25;
  result.points = std::move(points);
  result.turning_point = find_turning_point(result.points);
  result.near_best = find_near_best(result.points);
  result.plans = std::make_shared<HandPlans>(result.scenario);
  return result;
}

}  // namespace

class ResultTest : public QObject {
  Q_OBJECT

 private slots:
  void the_gap_at_a_point_is_read_off_the_bound_below_it() {
    Result result = result_of({point(1, 10), point(2, 4), point(4, 2)});
    QCOMPARE(gap_at(result, 1).value(), 0.0);  // exact
    result.gap = 0.5;
    QVERIFY(!gap_at(result, 1));  // stated, but no bound to read
    result.lower_bound = {{kGiB, 5.0}, {2 * kGiB + 1, 1.5}};
    QCOMPARE(gap_at(result, 0).value(), 0.5);
    QCOMPARE(gap_at(result, 1).value(), 0.0);  // the bound of one byte less lies above it
    QCOMPARE(gap_at(result, 2).value(), 0.25);
    result.gap.reset();
    QVERIFY(!gap_at(result, 1));
  }
  // By hand: scaled points (0,1), (.25,.25), (.5,.125), (1,0); 1-x-y = .5 and .375, so the second one.
  void turning_point_by_hand() {
    const std::vector<ResultPoint> points = {point(4, 1.0), point(6, 0.4), point(8, 0.3), point(12, 0.2)};
    QCOMPARE(find_turning_point(points), std::optional<std::size_t>(1));
  }
  void turning_point_needs_three_points_and_a_bend() {
    QVERIFY(!find_turning_point({}));
    QVERIFY(!find_turning_point({point(1, 1)}));
    QVERIFY(!find_turning_point({point(1, 2), point(2, 1)}));
    QVERIFY(!find_turning_point({point(0, 1), point(1, 0.5), point(2, 0)}));  // on the chord
    QVERIFY(!find_turning_point({point(0, 1), point(1, 0.9), point(2, 0)}));  // above it
    // Distance to the chord (1 - x - y) / sqrt 2: 0.0495 is too little, 0.0502 enough.
    QVERIFY(!find_turning_point({point(0, 1), point(1, 0.43), point(2, 0)}));
    QVERIFY(find_turning_point({point(0, 1), point(1, 0.429), point(2, 0)}));
  }
  void turning_point_takes_the_lower_index_on_ties() {
    QCOMPARE(find_turning_point({point(0, 4), point(1, 2), point(2, 1), point(4, 0)}), std::optional<std::size_t>(1));
  }
  void turning_point_looks_at_what_fits() {
    // Without the limit the bend is at index 3; with it, inside the first three points, at 1.
    std::vector<ResultPoint> points = {point(0, 10), point(1, 9), point(2, 8.9), point(3, 1), point(10, 0.9)};
    QCOMPARE(find_turning_point(points), std::optional<std::size_t>(3));
    points[3].fits = points[4].fits = false;
    QCOMPARE(find_turning_point(points), std::optional<std::size_t>(1));
    for (auto& p : points) p.fits = false;
    QCOMPARE(find_turning_point(points), std::optional<std::size_t>(3));
  }
  void slow_points_are_considered_where_no_faster_one_fits() {
    // Scaled without the first: (0,1), (1/8,1/9), (1,0). With it the bend is at the second point.
    Result result = result_of({point(0.1, 100), point(1, 10), point(2, 2), point(9, 1)});
    find_marks(result);
    QCOMPARE(result.turning_point, std::optional<std::size_t>(1));
    QCOMPARE(result.first_considered(), std::size_t(0));
    result.slowest_considered_s = 10;
    find_marks(result);
    QCOMPARE(result.turning_point, std::optional<std::size_t>(2));
    QCOMPARE(result.near_best, std::optional<std::size_t>(3));
    QCOMPARE(result.first_considered(), std::size_t(1));
    for (std::size_t i = 1; i < 4; ++i) result.points[i].fits = false;
    find_marks(result);
    QVERIFY(!result.turning_point);  // one point that fits
    QCOMPARE(result.near_best, std::optional<std::size_t>(0));
    QCOMPARE(result.first_considered(), std::size_t(0));
    result.points[0].fits = false;  // where nothing fits, the slow one is of no use either
    QCOMPARE(result.first_considered(), std::size_t(1));
  }
  // The definition once more, by brute force over random frontiers: largest distance between point and chord line.
  void turning_point_is_farthest_from_the_chord() {
    std::mt19937_64 random(11);
    int found = 0;
    for (int trial = 0; trial < 500; ++trial) {
      std::vector<ResultPoint> points;
      double memory = 1, time = 100;
      const int count = 1 + static_cast<int>(random() % 12);
      for (int i = 0; i < count; ++i) {
        points.push_back(point(memory, time));
        memory += 0.1 + static_cast<double>(random() % 1000) / 100;
        time *= 0.2 + static_cast<double>(random() % 790) / 1000;
      }
      const double x0 = static_cast<double>(points.front().memory_bytes),
                   x1 = static_cast<double>(points.back().memory_bytes);
      const double y0 = points.front().time_s, y1 = points.back().time_s;
      std::optional<std::size_t> best;
      double farthest = 0;
      for (std::size_t i = 0; i < points.size() && points.size() > 2; ++i) {
        const double x = (static_cast<double>(points[i].memory_bytes) - x0) / (x1 - x0),
                     y = (points[i].time_s - y1) / (y0 - y1);
        const double along = (x * 1 + (y - 1) * -1) / 2;  // foot of the perpendicular on (0,1) + t (1,-1)
        const double distance = std::hypot(x - along, y - (1 - along));
        if (x + y < 1 && distance > farthest * (1 + 1e-12)) {
          farthest = distance;
          best = i;
        }
      }
      if (farthest < 0.05) best.reset();
      QCOMPARE(find_turning_point(points), best);
      found += best.has_value();
    }
    QVERIFY(found > 100);
  }

  void near_best_is_the_least_memory_within_five_percent() {
    std::vector<ResultPoint> points = {point(1, 2), point(2, 1.06), point(3, 1.05), point(4, 1.0)};
    QCOMPARE(find_near_best(points), std::optional<std::size_t>(2));
    points[3].fits = false;
    QCOMPARE(find_near_best(points), std::optional<std::size_t>(1));
    QVERIFY(!find_near_best({}));
  }

  void callout_compares_with_the_fastest_that_fits() {
    const Result result =
        result_of({point(4, 4), point(9.6, 0.812), point(12, 0.8), point(15.7, 0.790), point(30, 0.7, false)});
    QCOMPARE(callout(result),
             (std::vector<std::string>{"Turning point 9.6 GiB \u00b7 812 ms",
                                       "Above it more memory buys little:", "\u22122.7% time for +6.1 GiB"}));
  }
  void callout_variants() {
    // A tenth or more is not little.
    QCOMPARE(callout(result_of({point(1, 10), point(1.5, 1.3), point(2, 1.0)})),
             (std::vector<std::string>{"Turning point 1.5 GiB \u00b7 1\u2009300 ms",
                                       "Above it more memory buys less:", "\u221223% time for +512 MiB"}));
    QCOMPARE(describe_turning_point(result_of({point(4, 1)})), (std::vector<std::string>{"One plan only"}));
    QCOMPARE(callout(result_of({point(4, 2), point(8, 1)})),
             (std::vector<std::string>{"No turning point: memory keeps paying"}));
    QCOMPARE(callout(result_of({point(10, 0.9), point(15.7, 0.79), point(18.2, 0.3, false), point(60, 0.2, false)})),
             (std::vector<std::string>{"Turning point 18.2 GiB does not fit; best that fits 15.7 GiB \u00b7 790 ms"}));
    QCOMPARE(callout(result_of({point(18, 2, false), point(20, 1, false)})),
             (std::vector<std::string>{
                 "No plan without micro-batches fits " + format_bytes(result_of({}).scenario->memory_limit()),
                 "The least any plan needs is 18.0 GiB \u00b7 2\u2009000 ms"}));
  }

  void json_follows_its_schema_and_survives_reading() {
    Result result = result_of({point(4, 1.0), point(6, 0.4), point(8, 0.3), point(12, 0.2), point(20, 0.1, false)});
    result.method_options = "dp=4:tp=2";
    const nlohmann::json document = write_result(result, true);
    SchemaCheck schemas(TURNPOINT_SOURCE_DIR "/resources/schemas");
    QCOMPARE(schemas.check("result@1", document), std::string());
    QCOMPARE(document["turning_point"], nlohmann::json(1));
    QCOMPARE(document["points"].size(), std::size_t(5));
    QCOMPARE(document["plans"].size(), std::size_t(5));
    QCOMPARE(document["scenario"]["method_options"], nlohmann::json("dp=4:tp=2"));
    QCOMPARE(document["scenario"]["hardware"], nlohmann::json("v100-16gb-2x8"));
    QCOMPARE(document["model"]["parameters"], nlohmann::json(result.scenario->model->parameters));
    QVERIFY(!write_result(result, false).contains("plans"));
    QCOMPARE(nlohmann::json::parse(document.dump()), document);
    for (std::size_t i = 0; i < result.points.size(); ++i) {
      QCOMPARE(document["points"][i]["time_s"].get<double>(), result.points[i].time_s);
      QCOMPARE(document["points"][i]["memory_bytes"].get<std::int64_t>(), result.points[i].memory_bytes);
    }
    const auto several =
        write_results({std::make_shared<Result>(result), std::make_shared<Result>(result_of({point(4, 1)}))}, false);
    QCOMPARE(schemas.check("results@1", several), std::string());
    QVERIFY(several["results"][1]["turning_point"].is_null());
  }

  void uncertified_and_inexact_results() {
    Result result = result_of({point(4, 1)});
    result.gap.reset();
    QVERIFY(write_result(result, false)["gap"].is_null());
    result.exact = false;
    result.gap = 0.004;
    result.lower_bound = {{4 * kGiB, 0.996}};
    const auto document = write_result(result, false);
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("result@1", document), std::string());
    QCOMPARE(document["lower_bound"][0]["time_s"].get<double>(), 0.996);
  }

  void names_of_any_bytes_stay_json() {
    Result result = result_of({point(4, 1)});
    auto model = std::make_shared<Model>(*result.scenario->model);
    model->name = "a\"b\\c\xff\xed\xa0\x80\n";
    model->source = "\xc3";
    auto scenario = std::make_shared<Scenario>(*result.scenario);
    scenario->model = model;
    result.scenario = scenario;
    const std::string text = write_result(result, false).dump();
    QVERIFY(nlohmann::json::parse(text)["model"]["name"].get<std::string>().rfind("a\"b\\c", 0) == 0);
  }

  /// Of placements; other plans have none, which is not the same as nothing.
  void peak_communication_in_files() {
    Result result = result_of({point(4, 1.5), point(6, 0.4), point(8, 0.3)});
    result.points[1].peak_communication_bytes = 0;
    result.points[2].peak_communication_bytes = 12345;
    const auto points = write_result(result, false)["points"];
    QVERIFY(!points[0].contains("peak_communication_bytes"));
    QCOMPARE(points[1]["peak_communication_bytes"].get<int>(), 0);
    QCOMPARE(points[2]["peak_communication_bytes"].get<int>(), 12345);
    const std::string csv = write_points_csv(result);
    QVERIFY(csv.substr(0, csv.find('\r')).ends_with(",near_best,peak_communication_bytes"));
    std::vector<std::string> ends;
    for (std::size_t at = csv.find('\n') + 1; at < csv.size(); at = csv.find('\n', at) + 1)
      ends.push_back(
          csv.substr(csv.rfind(',', csv.find('\r', at)), csv.find('\r', at) - csv.rfind(',', csv.find('\r', at))));
    QCOMPARE(ends, (std::vector<std::string>{",", ",0", ",12345"}));
  }

  void numbers_do_not_follow_the_locale() {
    struct Comma : std::numpunct<char> {
      char do_decimal_point() const override { return ','; }
      char do_thousands_sep() const override { return '.'; }
      std::string do_grouping() const override { return "\3"; }
    };
    const Result result = result_of({point(4, 1.5), point(6, 0.4), point(8, 0.3)});
    const auto drawing = [&] { return write_plan_svg(*result.scenario, result.plans->sharding(0)); };
    const std::string svg = drawing();
    const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
    std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
    const std::string csv = write_points_csv(result), json = write_result(result, false).dump(), again = drawing();
    std::setlocale(LC_ALL, "C");
    std::locale::global(before);
    QVERIFY(csv.find(",1.5,1.125,0.375,1,") != std::string::npos);
    QVERIFY(json.find("\"time_s\":1.5}") != std::string::npos);
    QCOMPARE(again, svg);
  }
};

QTEST_APPLESS_MAIN(ResultTest)
#include "result_test.moc"
