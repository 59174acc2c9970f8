// SPDX-License-Identifier: Apache-2.0
// Methods' plans with parts moved by hand, as variants of the methods: what they cost, say and refuse, and that files
// bring them back.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan/ratio_evaluator.h"
#include "core/plan_io/result_json.h"
#include "core/search/registry.h"
#include "core/search/reopen.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr const char* kUnlike = "v100-16gb-1x4+a100-80gb-1x2";

RatioPlanPtr plan_of(const ResultPtr& result) { return std::get<RatioPlanPtr>(result->plans->plan(0)); }

std::string usage_of(const char* method, const char* parameters) {
  const auto searcher = make_searcher(**find_method(method), parameters);
  return searcher || searcher.error().code != ErrorCode::usage ? std::string() : searcher.error().what;
}

}  // namespace

class MovedByHandTest : public QObject {
  Q_OBJECT

 private slots:
  void the_variant_is_the_plan_with_its_parts_moved() {
    const auto scenario = scenario_on(builtin("vgg11", 240), kUnlike);
    for (const std::string method : {"accpar", "accpar:ratio=equal", "hypar", "owt"}) {
      const ResultPtr found = answer_of(method, scenario);
      const std::string moved = method + ":by-hand=0@0.75+1@0.4";
      const ResultPtr result = answer_of(moved, scenario);
      const auto expected = with_moves(*scenario, *plan_of(found), {{0, 0.75}, {1, 0.4}});
      QVERIFY(expected.has_value());
      const ResultPoint& point = result->points.front();
      QCOMPARE(point.time_s, expected->cost.time_s());
      QCOMPARE(point.memory_bytes, expected->most_memory());
      QCOMPARE(point.fits, fits(*scenario, *expected));
      const auto again = evaluate_ratio_plan(*scenario, *plan_of(result));
      QVERIFY(again && close(again->cost.time_s(), point.time_s) && again->most_memory() == point.memory_bytes);
      QCOMPARE(result->method + ':' + result->method_options, moved);
      const std::string& words = result->explanations.back();
      QVERIFY2(words.starts_with("The plan of " + (*find_method(found->method))->title + ", which takes ") &&
                   words.find("4 \u00d7 V100-16GB: 75.0 % of the work of both halves, not ") != std::string::npos,
               words.c_str());
      // It stands on the simulated clock as the others do.
      QCOMPARE(result->points.front().simulated_time_s.has_value(), found->points.front().simulated_time_s.has_value());
    }
  }

  // What does not fit the devices does not fit by hand either.
  void memory_is_judged_device_by_device() {
    const auto scenario =
        scenario_on(builtin("vgg11", 2400), kUnlike, [](Settings& s) { s.precision = Precision::fp32; });
    bool fits_somewhere = false, overflows_somewhere = false;
    for (const char* moves : {"0@0.02", "0@0.3", "0@0.98"}) {
      const ResultPtr result = answer_of(std::string("accpar:by-hand=") + moves, scenario);
      const bool room = fits(*scenario, *plan_of(result));
      QCOMPARE(result->points.front().fits, room);
      QCOMPARE(result->fastest_that_fits().has_value(), room);
      (room ? fits_somewhere : overflows_somewhere) = true;
    }
    QVERIFY(fits_somewhere && overflows_somewhere);
  }

  void files_bring_it_back() {
    const auto scenario = scenario_on(builtin("alexnet", 240), kUnlike);
    const ResultPtr result = answer_of("hypar:by-hand=0@0.6", scenario);
    for (const bool with_plans : {true, false}) {
      const auto again = reopen_result(write_result(*result, with_plans), "r.json", {0}, {});
      QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
      QCOMPARE((*again)->method_options, result->method_options);
      QCOMPARE((*again)->points.front().time_s, result->points.front().time_s);
      QCOMPARE(plan_of(*again)->cuts.front().ratio, 0.6);
    }
  }

  void parameters_are_made_and_refused() {
    QCOMPARE(with_moves_by_hand("", {{0, 0.6}}), std::string("by-hand=0@0.6"));
    QCOMPARE(with_moves_by_hand("ratio=equal", {{0, 0.6}}), std::string("ratio=equal:by-hand=0@0.6"));
    QCOMPARE(with_moves_by_hand("by-hand=0@0.6:ratio=equal", {{1, 0.25}}),
             std::string("by-hand=0@0.6+1@0.25:ratio=equal"));
    QVERIFY(usage_of("accpar", "by-hand=0").find("such as 0@0.62, not '0'") != std::string::npos);
    QVERIFY(usage_of("accpar", "by-hand=0@2").find("not between 0 and 1") != std::string::npos);
    QVERIFY(usage_of("accpar", "by-hand=0@0.5:by-hand=0@0.6").find("twice") != std::string::npos);
    QVERIFY(usage_of("owt", "by-foot=0@0.5").find("knows the parameters recompute=all|needed, not 'by-foot=0@0.5'") !=
            std::string::npos);
    const auto by_foot = make_searcher(**find_method("owt"), "by-foot=0@0.5");
    QVERIFY(!by_foot && by_foot.error().hint.find("by-hand=CUT@RATIO") != std::string::npos);
    QVERIFY(usage_of("ft", "by-hand=0@0.5").find("not 'by-hand=0@0.5'") != std::string::npos);
    QVERIFY(described(**find_method("hypar"))
                .ends_with("; parameters recompute=all|needed, by-hand=CUT@RATIO[+CUT@RATIO]"));
    // Where halves are equal there is nothing to move; a cut that is not there is said.
    const Method& accpar = **find_method("accpar");
    const auto alike = scenario_on(builtin("alexnet", 240), "v100-16gb-1x4"),
               unlike = scenario_on(builtin("alexnet", 240), kUnlike);
    QVERIFY(refusal_of(accpar, "by-hand=0@0.5", *alike).find("no ratio to move") != std::string::npos);
    QVERIFY(refusal_of(accpar, "by-hand=0@0.5", *unlike).empty() && refusal_of(accpar, "", *alike).empty());
    const auto none = run("accpar:by-hand=77@0.5", unlike);
    QVERIFY(!none && none.error().what.find("none of number 77") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(MovedByHandTest)
#include "moved_by_hand_test.moc"
