// SPDX-License-Identifier: Apache-2.0
// Shared-out updates of ratio plans on the simulated clock: halves of equal devices run as the sharding plan with
// sharded updates does, and a finger on paper finds every instant of two unlike devices.
#include <QtTest>

#include "core/plan/ratio_charges.h"
#include "core/schedule/plan_schedule.h"
#include "core/schedule/ratio_lowering.h"
#include "core/search/update_sharding/planned_updates.h"
#include "plan/ratio_plans.h"
#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

class RatioUpdatesScheduleTest : public QObject {
  Q_OBJECT

 private slots:
  void halves_of_equal_devices_run_as_a_sharding_plan() {
    int plans = 0, shared = 0, same_peak = 0;
    for (const auto& [name, model] : networks_to_cut(5, 12)) {
      const auto scenario = scenario_on(model, "v100-16gb-1x2", [&](Settings& s) {
        s.collectives = Collectives::rings;
        s.bucket_bytes = 0;
        s.optimizer = plans % 2 ? Optimizer::lamb : Optimizer::adam;
      });
      const Plan whole = answer_of("data-parallel", scenario)->plans->sharding(0);
      RatioPlan halves = in_halves(*scenario->model, whole);
      halves.cuts[0].updates.assign(whole.operators.size(), 0);
      std::vector<MemoryChoice> choices;
      for (const PlanOperator& op : whole.operators) {
        choices.push_back(op.choice);
        if (op.parameters.empty()) continue;
        choices.back().update = Update::sharded, choices.back().update_axes = 1;
        halves.cuts[0].updates[op.op.index] = 0.5;
        ++shared;
      }
      const Plan sharded = update_sharding::with_choices(*scenario, whole, choices);
      const auto expected = simulate_plan(PlanLowering(*scenario), sharded);
      const auto made = simulate_plan(*scenario, halves);
      QVERIFY(expected && made);
      QVERIFY2(close(made->time_s, expected->time_s), name.c_str());
      ++plans;
      same_peak += made->memory_bytes == expected->memory_bytes;
      // Where gradients of a tied table meet the two may keep them for unlike times.
      QVERIFY2(std::abs(double(made->memory_bytes) / double(expected->memory_bytes) - 1) < 0.05, name.c_str());
    }
    QVERIFY2(plans >= 20 && shared > 100 && same_peak >= plans - 2,
             qPrintable(QString("%1 %2 %3").arg(plans).arg(shared).arg(same_peak)));
  }

  // 3 of 12 rows and a quarter of the update on a V100, the rest on an A100: the gradient is scattered once both have
  // it, each updates at its own pace, and the new weights go round once the slower one is done.
  void unlike_devices_by_hand() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    RatioPlan shares = cut_by("batch", 3, *scenario);
    shares.cuts[0].updates = {0, 0.25};
    const RatioPlan plan = *evaluate_ratio_plan(*scenario, shares);
    const auto lowered = lower_ratio_plan(*scenario, plan);
    QVERIFY(lowered.has_value());
    const LaneTimes times = run_lanes(lowered->items);
    const RatioCharges charges(*scenario, plan);
    CostBreakdown cost[2] = {charges.device_cost(OperatorId(1), 0, {3, 10, 8}),
                             charges.device_cost(OperatorId(1), 1, {9, 10, 8})};
    double computed = 0, updated = 0;
    for (CostBreakdown& one : cost) {
      computed = std::max(computed, one[ComputePart::forward] + one[ComputePart::backward]);
      updated = std::max(updated, one[ComputePart::update]);
    }
    CostBreakdown all = plan.operators.back().cost;
    const double scattered = computed + all[NetworkPart::reduce_scatter];
    int updates = 0, gathers = 0;
    for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
      const PlanTask& task = lowered->tasks[i];
      if (task.kind == PlanTaskKind::update && task.op == OperatorId(1)) {
        QVERIFY(close(times.start_s[i], scattered));
        QVERIFY(close(lowered->items.duration_s[i], cost[task.role][ComputePart::update]));
        ++updates;
      }
      if (task.kind != PlanTaskKind::new_weights) continue;
      QVERIFY(close(times.start_s[i], scattered + updated));
      QCOMPARE(task.bytes, 0.75 * 80 * 4);
      ++gathers;
    }
    QVERIFY(updates == 2 && gathers == 1);
    QVERIFY(close(times.makespan_s, scattered + updated + all[NetworkPart::all_gather]));
    // Weights with two moments of the own share; then rows, and either the gradient of the result or, once that is
    // gone, the gradient of the weights, of which the own share is cut out while all of it is there.
    const auto memory = memory_over_time(lowered->buffers, times, lowered->persistent(), false);
    const std::int64_t rows[] = {3, 9}, own[] = {20, 60};
    for (const std::size_t d : {0u, 1u})
      QCOMPARE(memory[d].peak_bytes, 80 * 4 + own[d] * 8 + 80 * 4 + std::max(rows[d] * (10 + 8), own[d]) * 4);
  }

  // A part that both halves compute alike has nothing to scatter: its shard is cut out of what is there.
  void shards_of_repeated_work_are_cut_out() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x2");
    RatioPlan plan = cut_by("batch", 6, *scenario);
    plan.cuts[0].share = {{}, {}};
    plan.cuts[0].updates = {0, 0.5};
    const auto lowered = lower_ratio_plan(*scenario, *evaluate_ratio_plan(*scenario, plan));
    QVERIFY(lowered.has_value());
    int gathers = 0;
    for (const PlanTask& task : lowered->tasks) {
      QVERIFY(task.kind != PlanTaskKind::gradients);
      gathers += task.kind == PlanTaskKind::new_weights;
    }
    QCOMPARE(gathers, 1);
    QVERIFY(std::find(lowered->buffers.bytes.begin(), lowered->buffers.bytes.end(), 40 * 4) !=
            lowered->buffers.bytes.end());
  }
};

QTEST_APPLESS_MAIN(RatioUpdatesScheduleTest)
#include "ratio_updates_schedule_test.moc"
