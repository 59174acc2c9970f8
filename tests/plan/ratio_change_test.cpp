// SPDX-License-Identifier: Apache-2.0
// A ratio plan with another ratio at one cut.
#include "core/plan/ratio_change.h"

#include <QtTest>
#include <numeric>

#include "core/plan/ratio_evaluator.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

RatioPlanPtr plan_of(const ScenarioPtr& scenario, const char* method = "accpar") {
  return std::get<RatioPlanPtr>(answer_of(method, scenario)->plans->plan(0));
}

/// What the devices of a part compute, one with another.
double compute_of(const RatioPlan& plan, std::uint32_t first, std::uint32_t end) {
  double seconds = 0;
  for (std::uint32_t i = first; i < end; ++i) seconds += plan.device_compute_s[plan.order[i]];
  return seconds;
}

}  // namespace

class RatioChangeTest : public QObject {
  Q_OBJECT

 private slots:
  // Moved away and back by the same cut the plan is what it was, to a unit of rounding.
  void the_same_ratio_changes_nothing() {
    for (const char* hardware : {"v100-16gb-1x3", "v100-16gb-1x6", "v100-16gb-1x4+a100-80gb-1x2"}) {
      const auto scenario = scenario_on(builtin("alexnet", 240), hardware);
      const RatioPlanPtr plan = plan_of(scenario);
      for (std::uint32_t c = 0; c < plan->cuts.size(); ++c) {
        const auto same = with_ratio(*scenario, *plan, c, plan->cuts[c].ratio);
        QVERIFY2(same.has_value(), same ? "" : same.error().message().c_str());
        QCOMPARE(same->cost.time_s(), plan->cost.time_s());
        QVERIFY(same->device_memory == plan->device_memory && same->device_compute_s == plan->device_compute_s);
      }
    }
  }

  // More for the first half is more work and memory there, less in the other, at every step.
  void work_moves_with_the_ratio() {
    const auto scenario = scenario_on(builtin("vgg11", 256), "v100-16gb-1x4+a100-80gb-1x2");
    const RatioPlanPtr plan = plan_of(scenario);
    double before = 0;
    for (const double ratio : {0.1, 0.25, 0.5, 0.75, 0.9}) {
      const auto changed = with_ratio(*scenario, *plan, 0, ratio);
      QVERIFY(changed.has_value());
      QCOMPARE(changed->cuts.front().ratio, ratio);
      const double part = compute_of(*changed, 0, 4) / compute_of(*changed, 0, 6);
      QVERIFY(part > before);
      before = part;
      // Every unit is somewhere: both evaluations of the whole agree.
      const auto again = evaluate_ratio_plan(*scenario, *changed);
      QVERIFY(again && again->cost.time_s() == changed->cost.time_s());
      for (const RatioPlan::Cut& cut : changed->cuts)
        for (const RatioPlan::Share& share : cut.share) QVERIFY(share.loop < 0 || share.first > 0);
    }
    // The method's own ratio is not far from the best there is.
    QVERIFY(with_ratio(*scenario, *plan, 0, 0.9)->cost.compute_s() > plan->cost.compute_s() * 1.1);
    QVERIFY(with_ratio(*scenario, *plan, 0, 0.05)->cost.compute_s() > plan->cost.compute_s() * 1.1);
  }

  // The second half is left with one sample or channel, which its own cut does not divide any more.
  void what_is_too_small_is_not_cut() {
    const auto scenario = scenario_on(builtin("lenet", 12), "v100-16gb-1x3");
    const RatioPlanPtr plan = plan_of(scenario, "accpar:ratio=equal");
    const auto changed = with_ratio(*scenario, *plan, 0, 0.999);
    QVERIFY2(changed.has_value(), changed ? "" : changed.error().message().c_str());
    QCOMPARE(changed->cuts.size(), std::size_t(2));
  }

  void slowest_devices_tell_the_time() {
    const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x4+a100-80gb-1x2");
    const RatioPlanPtr plan = plan_of(scenario);
    QCOMPARE(plan->device_compute_s.size(), std::size_t(6));
    const double slowest = *std::max_element(plan->device_compute_s.begin(), plan->device_compute_s.end());
    QVERIFY(slowest > 0 && slowest <= plan->cost.compute_s() * (1 + 1e-12));
  }

  // Moves one after another are what with_ratio() makes step by step, and texts bring them back to the last bit.
  void moves_follow_one_another() {
    const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x4+a100-80gb-1x2");
    const RatioPlanPtr plan = plan_of(scenario);
    const RatioMoves moves = {{0, 0.6}, {2, 1.0 / 3}, {1, 0.45}};
    RatioPlan step = *plan;
    for (const RatioMove& move : moves) step = *with_ratio(*scenario, step, move.cut, move.ratio);
    const auto made = with_moves(*scenario, *plan, moves);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    QCOMPARE(made->cost.time_s(), step.cost.time_s());
    QVERIFY(made->device_memory == step.device_memory && made->cost.time_s() != plan->cost.time_s());
    const auto read = read_moves(text_of_moves(moves));
    QVERIFY(read && *read == moves);
    QCOMPARE(text_of_moves({{0, 0.6}, {2, 0.25}}), std::string("0@0.6+2@0.25"));
    for (const char* bad : {"", "0", "0@", "@0.5", "x@0.5", "0@1", "0@0", "0@0.5+", "-1@0.5", "0@nan"})
      QVERIFY2(!read_moves(bad) && read_moves(bad).error().code == ErrorCode::usage, bad);
    const auto words = describe_moves(*scenario, *plan, moves);
    QCOMPARE(words.size(), std::size_t(3));
    QVERIFY2(words[0].starts_with("4 \u00d7 V100-16GB: 60.0 % of the work of both halves, not "), words[0].c_str());
    QVERIFY2(words[1].find("33.3 %") != std::string::npos && words[1].starts_with("V100-16GB:"), words[1].c_str());
  }

  void the_same_border_moved_again_is_one_move() {
    const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x4+a100-80gb-1x2");
    const RatioPlanPtr plan = plan_of(scenario);
    RatioMoves moves = moved_further(*plan, {}, {0, 0.6});
    moves = moved_further(*plan, moves, {0, 0.7});
    QVERIFY(moves == RatioMoves({{0, 0.7}}));
    moves = moved_further(*plan, moves, {1, 0.4});
    moves = moved_further(*plan, moves, {1, 0.3});
    QVERIFY(moves == RatioMoves({{0, 0.7}, {1, 0.3}}));
    moves = moved_further(*plan, moves, {0, 0.5});
    QCOMPARE(moves.size(), std::size_t(3));
    // One cut that equal parts share is moved in all of them; then each has its own, which is another one.
    RatioPlan shared = *plan;
    shared.cuts = {plan->cuts[0], plan->cuts[1]};
    shared.cuts[0].next = {1, 1}, shared.cuts[1].next = {RatioPlan::kNoCut, RatioPlan::kNoCut};
    QVERIFY(moved_further(shared, {{1, 0.6}}, {1, 0.7}) == RatioMoves({{1, 0.6}, {1, 0.7}}));
    QVERIFY(moved_further(shared, {{1, 0.6}}, {2, 0.7}) == RatioMoves({{1, 0.6}, {2, 0.7}}));
    QVERIFY(moved_further(shared, {{0, 0.6}}, {0, 0.7}) == RatioMoves({{0, 0.7}}));
  }

  void bad_ratios_are_refused() {
    const auto scenario = scenario_on(builtin("lenet", 60), "v100-16gb-1x3");
    const RatioPlanPtr plan = plan_of(scenario);
    for (const double ratio : {0.0, 1.0, -1.0, 2.0, std::nan("")})
      QCOMPARE(with_ratio(*scenario, *plan, 0, ratio).error().code, ErrorCode::usage);
    QCOMPARE(with_ratio(*scenario, *plan, 99, 0.5).error().code, ErrorCode::usage);
  }
};

QTEST_APPLESS_MAIN(RatioChangeTest)
#include "ratio_change_test.moc"
