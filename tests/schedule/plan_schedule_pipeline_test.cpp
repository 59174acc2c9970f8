// SPDX-License-Identifier: Apache-2.0
// Pipelines on the simulated clock against the closed 1F1B recursion of core/search/baselines, where both assume the
// same, and against bounds where they do not.
#include <QtTest>
#include <cmath>
#include <numeric>

#include "core/plan/evaluator.h"
#include "core/schedule/plan_schedule.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/pipeline_schedule.h"
#include "plan/parameter_edits.h"
#include "schedule/without_slowdown.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

Plan plan_of(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return (*result)->plans->sharding(0);
}

/// Nothing takes time but computing and, if wanted, sends between stages.
Plan without_collectives(Plan plan, bool sends) {
  const auto clear = [](std::vector<ReshardStep>& steps) {
    for (ReshardStep& step : steps) step.time_s = 0;
  };
  for (auto& op : plan.operators) each_list(op, clear), op.cost[NetworkPart::offload] = 0;
  for (auto& reshard : plan.reshards)
    for (const ReshardRole role : kReshardRoles) clear(reshard.steps(role));
  for (auto& sum : plan.pipeline->tied) sum.time_s = 0, clear(sum.gather), clear(sum.sync), clear(sum.spread);
  if (sends) return plan;
  for (auto* times : {&plan.pipeline->send_s, &plan.pipeline->send_back_s})
    for (double& seconds : *times) seconds = 0;
  return plan;
}

/// When the last stage has updated its weights, by the closed recursion; receiving is counted with the receiver.
double closed_form(const Plan& plan) {
  const PlanPipeline& p = *plan.pipeline;
  std::vector<search::StageTimes> runs(static_cast<std::size_t>(p.runs()));
  std::vector<double> update(static_cast<std::size_t>(p.stages), 0);
  for (PlanOperator op : plan.operators) {
    const auto r = static_cast<std::size_t>(p.run_of(op));
    runs[r].forward += op.cost[ComputePart::forward];
    runs[r].backward += op.cost[ComputePart::backward] + op.cost[ComputePart::recompute];
    if (p.recompute && p.layer_of[op.op.index] >= 0) runs[r].backward += op.cost[ComputePart::forward];
    update[static_cast<std::size_t>(op.stage)] += op.cost[ComputePart::update];
  }
  for (std::size_t r = 0; r + 1 < runs.size(); ++r) {
    runs[r + 1].forward += p.send_s[r];
    runs[r].backward += p.send_back_s[r];
  }
  const auto ends = search::ends_of_passes(runs, p.micro_batches, p.chunks, p.forwards_first);
  double last = 0;
  for (std::size_t s = 0; s < update.size(); ++s) last = std::max(last, ends[s] + update[s]);
  // A copy of another stage's weight is updated when both have their gradients, behind all else.
  for (const auto& sum : p.tied) {
    const auto owner = static_cast<std::size_t>(sum.owner), user = static_cast<std::size_t>(sum.user);
    last = std::max(last, std::max(ends[owner], ends[user] + update[user]) + sum.update_s);
  }
  return last;
}

ModelPtr small_gpt(std::int64_t batch = 32) { return builtin("gpt2?layers=4&hidden=512&sequence=32", batch); }

const char* const kSplits[] = {"manual:dp=2:tp=2:pp=4:micro-batches=8",
                               "manual:dp=8:pp=2:micro-batches=4",
                               "manual:tp=4:pp=4:micro-batches=2",
                               "manual:tp=8:pp=2:micro-batches=1",
                               "manual:tp=4:pp=4:micro-batches=16:recompute",
                               "manual:tp=4:pp=4:micro-batches=16:recompute=selective",
                               "manual:dp=4:pp=4:micro-batches=4:recompute=selective:zero=3",
                               "manual:dp=4:tp=4:sequence-parallel:recompute=selective",
                               "manual:dp=4:pp=4:micro-batches=4:recompute:zero=3",
                               "manual:dp=4:tp=2:pp=2:micro-batches=4:zero=1",
                               "manual:dp=4:tp=2:pp=2:micro-batches=4:zero=2",
                               "manual:dp=4:tp=2:pp=2:micro-batches=4:zero=3",
                               "manual:tp=4:pp=4:micro-batches=8:sequence-parallel",
                               "manual:dp=2:tp=4:pp=2:vp=2:micro-batches=4",
                               "manual:dp=2:tp=4:pp=2:vp=2:micro-batches=8:recompute:zero=2",
                               "manual:tp=8:pp=2:vp=2:micro-batches=2:sequence-parallel",
                               "manual:dp=16:micro-batches=2:zero=2",
                               "manual:dp=16:recompute"};

}  // namespace

class PlanSchedulePipelineTest : public QObject {
  Q_OBJECT
 private slots:
  void without_a_network_it_is_1f1b();
  void one_micro_batch_sends_as_the_closed_form();
  void bounds();
  void memory_of_many_replicas();
  void a_gradient_stands_beside_its_sum();
  void memory();
  void one_stage_is_the_plain_plan();
  void a_small_one_by_the_rules();
  void a_copy_is_updated_where_it_is();
  void sums_behind_backward_hide_nothing();
  void all_forwards_first();
  void a_copy_is_gathered_where_it_is_read();
};

void PlanSchedulePipelineTest::without_a_network_it_is_1f1b() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  const PlanLowering lowering(*scenario);
  for (const char* split : kSplits) {
    const Plan plan = without_collectives(plan_of(split, scenario), false);
    const auto cost = simulate_plan(lowering, plan);
    QVERIFY2(cost.has_value(), split);
    QVERIFY2(close(cost->time_s, closed_form(plan)),
             qPrintable(QString("%1: %2, closed form %3").arg(split).arg(cost->time_s).arg(closed_form(plan))));
  }
}

// With one micro-batch nothing is there that could overlap but a send and what its stage still computes.
void PlanSchedulePipelineTest::one_micro_batch_sends_as_the_closed_form() {
  const auto scenario = without_slowdown(scenario_on(small_gpt(), "v100-16gb-2x8"));
  for (const char* split : {"manual:tp=8:pp=2", "manual:tp=4:pp=4", "manual:dp=2:tp=2:pp=4:recompute"}) {
    const Plan plan = without_collectives(plan_of(split, scenario), true);
    QVERIFY(plan.pipeline->send_s[0] > 0);
    const auto cost = simulate_plan(PlanLowering(*scenario), plan);
    QVERIFY2(cost.has_value(), split);
    QVERIFY2(close(cost->time_s, closed_form(plan)),
             qPrintable(QString("%1: %2, closed form %3").arg(split).arg(cost->time_s).arg(closed_form(plan))));
  }
}

void PlanSchedulePipelineTest::bounds() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  const PlanLowering lowering(*scenario);
  for (const char* split : kSplits) {
    const Plan plan = plan_of(split, scenario);
    const auto lowered = lowering.lower(plan);
    QVERIFY2(lowered.has_value(), split);
    const LaneTimes times = run_lanes(lowered->items);
    const double sum = std::accumulate(lowered->items.duration_s.begin(), lowered->items.duration_s.end(), 0.0);
    double busiest = 0;
    for (const auto& lane : times.run) {
      double busy = 0;
      for (const std::uint32_t i : lane) busy += lowered->items.duration_s[i];
      busiest = std::max(busiest, busy);
    }
    const auto bare = simulate_plan(lowering, without_collectives(plan, false));
    QVERIFY2(times.makespan_s <= sum && times.makespan_s >= busiest * (1 - 1e-12), split);
    QVERIFY2(times.makespan_s >= bare->time_s * (1 - 1e-12), split);
    // Holding both ends of a send costs a little more than the closed form; overlap wins more than that elsewhere.
    QVERIFY2(times.makespan_s <= 1.25 * plan.cost.time_s(),
             qPrintable(QString("%1: %2 against %3").arg(split).arg(times.makespan_s).arg(plan.cost.time_s())));
  }
}

// A layer of 4 MB whose activations are nothing: from the second micro-batch on its gradient is made beside the sum.
void PlanSchedulePipelineTest::a_gradient_stands_beside_its_sum() {
  ModelBuilder b("one layer", "test", 8, 0);
  const TensorId x = b.input("x", {8, 1000}, {DimName::batch, DimName::channel}, ElementType::f32);
  const ModelPtr model = finished(b, b.linear("layer", x, b.parameter("w", {1000, 1000})));
  const auto scenario = scenario_on(model, "v100-16gb-1x1", [](Settings& s) { s.optimizer = Optimizer::sgd; });
  const auto peak = [&](const char* split) {
    return simulate_plan(PlanLowering(*scenario), plan_of(split, scenario))->memory_bytes;
  };
  const std::int64_t weight = 4'000'000, activations = 3 * 8 * 1000 * 4;
  QVERIFY(std::abs(peak("manual:dp=1") - 2 * weight) <= activations);
  for (const char* split : {"manual:dp=1:micro-batches=2", "manual:dp=1:micro-batches=8"})
    QVERIFY2(std::abs(peak(split) - 3 * weight) <= activations, split);
}

// More replicas change what is exchanged, not what a device holds, however many axes the mesh has. What a stage has
// been sent by the time at which a gradient is added to its sum depends on when it comes: a few ten-thousandths.
void PlanSchedulePipelineTest::memory_of_many_replicas() {
  std::int64_t before = 0;
  for (const int nodes : {4, 512, 1024, 8192}) {
    const auto scenario = scenario_on(small_gpt(4 * nodes), "h100-80gb-" + std::to_string(nodes) + "x8");
    const Plan plan = plan_of("manual:tp=4:pp=4:micro-batches=2", scenario);
    QVERIFY(evaluate_plan(*scenario, plan).has_value());
    const auto cost = simulate_plan(PlanLowering(*scenario), plan);
    QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
    const double off = before == 0 ? 0 : double(cost->memory_bytes) / double(before) - 1;
    QVERIFY2(std::abs(off) < 5e-4, qPrintable(QString("%1 nodes: %2").arg(nodes).arg(off)));
    before = cost->memory_bytes;
  }
}

void PlanSchedulePipelineTest::memory() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  for (const char* split : kSplits) {
    const Plan plan = plan_of(split, scenario);
    auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY2(lowered.has_value(), split);
    const LaneTimes times = run_lanes(lowered->items);
    const auto whole = memory_over_time(lowered->buffers, times, lowered->persistent(), true);
    for (const auto& role : whole) {
      const MemorySample& last = role.samples.back();
      QVERIFY2(last.activation_bytes + last.copy_bytes + last.workspace_bytes == 0, split);
    }
    // What the stage's sum counts is never more than the sum, but for what has been received for the next block.
    std::vector<std::int64_t> received(lowered->roles.size(), 0);
    for (std::size_t b = 0; b < lowered->buffers.size(); ++b)
      if (lowered->tasks[lowered->buffers.made_by[b]].kind == PlanTaskKind::send)
        received[lowered->buffers.device[b]] += lowered->buffers.bytes[b] / plan.pipeline->micro_batches;
    for (std::size_t b = 0; b < lowered->buffers.size(); ++b)
      if (!lowered->counted[b]) lowered->buffers.bytes[b] = 0;
    const auto counted = memory_over_time(lowered->buffers, times, lowered->persistent(), false);
    for (std::size_t s = 0; s < counted.size(); ++s)
      QVERIFY2(counted[s].peak_bytes <= plan.pipeline->stage_memory_bytes[s] + received[s],
               qPrintable(QString("%1 stage %2: %3, summed %4")
                              .arg(split)
                              .arg(s)
                              .arg(counted[s].peak_bytes)
                              .arg(plan.pipeline->stage_memory_bytes[s] + received[s])));
  }
}

void PlanSchedulePipelineTest::one_stage_is_the_plain_plan() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  const auto roles = find_transformer_roles(*scenario->model, false);
  QVERIFY(roles.has_value());
  for (const int zero : {0, 1, 2, 3}) {
    search::ManualSplit split;
    split.data = 4, split.tensor = 4, split.zero = zero;
    const auto scheduled = search::pipeline_point(scenario, &*roles, split, {});
    QVERIFY(scheduled.has_value());
    const PlanLowering lowering(*scenario);
    const auto one = simulate_plan(lowering, (*scheduled)->plans->sharding(0));
    const auto plain = simulate_plan(lowering, plan_of("manual:tp=4:zero=" + std::to_string(zero), scenario));
    QVERIFY(one.has_value() && plain.has_value());
    QVERIFY(close(one->time_s, plain->time_s));
    QCOMPARE(one->memory_bytes, plain->memory_bytes);
  }
}

void PlanSchedulePipelineTest::a_small_one_by_the_rules() {
  const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=128&sequence=16", 8), "v100-16gb-1x4");
  for (const char* split : {"manual:tp=2:pp=2:micro-batches=2", "manual:dp=2:pp=2:micro-batches=4:zero=3:recompute"}) {
    const auto lowered = PlanLowering(*scenario).lower(plan_of(split, scenario));
    QVERIFY(lowered.has_value());
    const LaneTimes times = run_lanes(lowered->items);
    const SlowLanes slow = slow_lanes(lowered->items);
    QVERIFY(times.start_s == slow.start && times.end_s == slow.end);
    const auto memory = memory_over_time(lowered->buffers, times, lowered->persistent(), false);
    for (std::uint32_t s = 0; s < 2; ++s)
      QCOMPARE(memory[s].peak_bytes, slow_peak(lowered->buffers, slow, lowered->roles[s].persistent_bytes, s));
  }
  const auto schedule = plan_schedule(*scenario, plan_of("manual:tp=2:pp=2:micro-batches=2", scenario));
  QVERIFY(schedule.has_value());
  QCOMPARE((*schedule)->devices.size(), std::size_t(2));
  QCOMPARE((*schedule)->devices[1].name, std::string("stage 1"));
  QCOMPARE((*schedule)->devices[1].stands_for, 2u);
  QCOMPARE((*schedule)->end_s[(*schedule)->critical.back()], (*schedule)->makespan_s);
  // Micro-batches are counted from 1.
  const TaskGraph& graph = *(*schedule)->graph;
  int first = 0, second = 0;
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    const auto name = graph.names[t];
    first += name.ends_with("#1"), second += name.ends_with("#2");
    QVERIFY2(!name.ends_with("#0") && !name.ends_with("#3"), std::string(name).c_str());
  }
  QVERIFY(first > 0 && second > 0);
}

// Data parallel replicas that sum gradients behind backward: passes, sums and updates one after the other, as the plain
// sum has it. While backward runs they take less.
void PlanSchedulePipelineTest::sums_behind_backward_hide_nothing() {
  for (const char* hardware : {"v100-16gb-1x8", "v100-16gb-2x8"}) {
    // Without a table of positions, whose gradient is summed where it is made.
    const auto llama = scenario_on(builtin("llama-2-7b?layers=2&sequence=32", 32), hardware);
    for (const std::string split : {"manual:micro-batches=2", "manual", "manual:micro-batches=2:recompute"}) {
      const std::string behind = split + ":reduce-last";
      const Plan last = plan_of(behind.c_str(), llama);
      QVERIFY(last.pipeline && last.pipeline->sums_behind);
      const auto simulated = simulate_plan(PlanLowering(*llama), last);
      QVERIFY(simulated.has_value());
      QVERIFY2(test::close(simulated->time_s, last.cost.time_s()),
               qPrintable(QString("%1: %2 %3")
                              .arg(behind.c_str())
                              .arg(simulated->time_s, 0, 'g', 12)
                              .arg(last.cost.time_s(), 0, 'g', 12)));
      const auto meanwhile = run(split, llama);
      QVERIFY(meanwhile.has_value());
      QVERIFY(test::close((*meanwhile)->points[0].time_s, last.cost.time_s()));
      QVERIFY(simulate_plan(PlanLowering(*llama), (*meanwhile)->plans->sharding(0))->time_s <
              0.999 * simulated->time_s);
    }
    const auto scenario = scenario_on(small_gpt(), hardware);
    // Stages, with a weight that two of them hold: no sum before the stage's last backward has ended.
    const Plan plan = plan_of("manual:tp=2:pp=2:micro-batches=4:zero=1:reduce-last", scenario);
    const auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY(lowered.has_value());
    const auto times = run_lanes(lowered->items);
    std::vector<double> passed(2, 0), begun(2, INFINITY), summed(2, 0), updated(2, INFINITY);
    for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
      const PlanTask& task = lowered->tasks[i];
      if (task.kind == PlanTaskKind::backward) passed[task.role] = std::max(passed[task.role], times.end_s[i]);
      if (task.kind == PlanTaskKind::gradients) begun[task.role] = std::min(begun[task.role], times.start_s[i]);
      if (task.kind == PlanTaskKind::gradients) summed[task.role] = std::max(summed[task.role], times.end_s[i]);
      if (task.kind == PlanTaskKind::update) updated[task.role] = std::min(updated[task.role], times.start_s[i]);
    }
    for (const std::size_t stage : {0u, 1u}) {
      QVERIFY(passed[stage] > 0 && begun[stage] >= passed[stage] * (1 - 1e-12));
      QVERIFY(summed[stage] > passed[stage] && updated[stage] >= summed[stage] * (1 - 1e-12));
    }
  }
}

// GPipe: no backward of a stage begins before its last forward has ended, and every stage keeps all micro-batches.
void PlanSchedulePipelineTest::all_forwards_first() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  for (const char* split : {"manual:dp=4:pp=4:micro-batches=8", "manual:dp=8:pp=2:vp=2:micro-batches=4"}) {
    const Plan turns = plan_of(split, scenario),
               first = plan_of((std::string(split) + ":schedule=gpipe").c_str(), scenario);
    QVERIFY(first.pipeline->forwards_first && !turns.pipeline->forwards_first);
    const Plan quiet = without_collectives(first, false);
    const auto simulated = simulate_plan(PlanLowering(*scenario), quiet);
    QVERIFY2(simulated.has_value() && test::close(simulated->time_s, closed_form(quiet)), split);
    const auto lowered = PlanLowering(*scenario).lower(first);
    QVERIFY(lowered.has_value());
    const auto times = run_lanes(lowered->items);
    std::vector<double> forwards(4, 0), backwards(4, INFINITY);
    for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
      const PlanTask& task = lowered->tasks[i];
      if (task.kind == PlanTaskKind::forward && lowered->items.lane[i] != kNone)
        forwards[task.role] = std::max(forwards[task.role], times.end_s[i]);
      if (task.kind == PlanTaskKind::backward && lowered->items.lane[i] != kNone)
        backwards[task.role] = std::min(backwards[task.role], times.start_s[i]);
    }
    for (int s = 0; s < first.pipeline->stages; ++s)
      QVERIFY(forwards[std::size_t(s)] > 0 && backwards[std::size_t(s)] >= forwards[std::size_t(s)] * (1 - 1e-12));
    QVERIFY(first.pipeline->stage_memory_bytes.back() > turns.pipeline->stage_memory_bytes.back());
    const auto peak = simulate_plan(PlanLowering(*scenario), first)->memory_bytes,
               peak_in_turn = simulate_plan(PlanLowering(*scenario), turns)->memory_bytes;
    if (first.pipeline->chunks == 1)
      QVERIFY2(peak > peak_in_turn, qPrintable(QString("%1: %2 %3").arg(split).arg(peak).arg(peak_in_turn)));
  }
}

// The stage of a tied weight's user sums the gradient of its copy before the sum of both stages, and updates it behind.
void PlanSchedulePipelineTest::a_copy_is_updated_where_it_is() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  for (const char* split :
       {"manual:dp=2:tp=2:pp=4:micro-batches=8", "manual:dp=4:tp=2:pp=2:micro-batches=4:zero=1",
        "manual:dp=4:tp=2:pp=2:micro-batches=4:zero=2", "manual:dp=4:tp=2:pp=2:micro-batches=4:zero=2:gather-first"}) {
    const Plan plan = plan_of(split, scenario);
    QCOMPARE(plan.pipeline->tied.size(), std::size_t(1));
    const auto& tie = plan.pipeline->tied[0];
    const Update how = plan.operators[tie.owner_op.index].choice.update;
    const auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY2(lowered.has_value(), split);
    const auto times = run_lanes(lowered->items);
    int syncs = 0, updates = 0, gathers = 0;
    double summed = 0, met = 0, updated = 0, read = INFINITY, there = 0;
    for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
      const PlanTask& task = lowered->tasks[i];
      if (task.kind == PlanTaskKind::tied_sum) met = times.end_s[i];
      if (task.op != tie.user_op || int(task.role) != tie.user) continue;
      if (task.kind == PlanTaskKind::gradients) ++syncs, summed = std::max(summed, times.end_s[i]);
      if (task.kind == PlanTaskKind::update) {
        ++updates;
        QVERIFY2(times.end_s[i] - tie.update_s >= met * (1 - 1e-12) && met >= summed + tie.time_s * (1 - 1e-9), split);
        updated = times.end_s[i];
      }
      // The new weights of the step before come ahead of the first forward that reads them.
      if (task.kind == PlanTaskKind::forward) read = std::min(read, times.start_s[i]);
      if (task.kind == PlanTaskKind::weights) ++gathers, there = std::max(there, times.end_s[i]);
      if (task.kind == PlanTaskKind::new_weights) {
        ++gathers;
        QVERIFY2(times.end_s[i] - tie.spread[0].time_s >= updated * (1 - 1e-12), split);
      }
    }
    QVERIFY2(there <= read && (there > 0) == plan.operators[tie.owner_op.index].choice.gathers_first(), split);
    // The logits have no bias: their only weight is the copy.
    const int each = sums_every_micro_batch(how) ? plan.micro_batches() : 1;
    QCOMPARE(syncs, int(tie.sync.size()) * each);
    QCOMPARE(updates, 1);
    QCOMPARE(gathers, int(tie.spread.size()));
    QVERIFY2(tie.update_s > 0 && !tie.sync.empty() && tie.spread.empty() == (how == Update::replicated), split);
  }
}

// Sharded weights: for every micro-batch the last stage gathers its copy before the head's forward and before its
// backward, and holds it whole in between for neither; the table's own reader gathers once.
void PlanSchedulePipelineTest::a_copy_is_gathered_where_it_is_read() {
  const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
  for (const char* split : {"manual:dp=4:tp=2:pp=2:micro-batches=4:zero=3", "manual:dp=4:pp=4:micro-batches=2:zero=3",
                            "manual:dp=4:tp=2:pp=2:vp=2:micro-batches=4:zero=3:recompute"}) {
    const Plan plan = plan_of(split, scenario);
    const auto& tie = plan.pipeline->tied.at(0);
    const auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY2(lowered.has_value(), split);
    const auto times = run_lanes(lowered->items);
    std::map<std::int32_t, std::vector<double>> gathered;  // by micro-batch
    std::map<std::int32_t, double> forward, backward;      // when they begin
    int owners = 0;
    for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
      const PlanTask& task = lowered->tasks[i];
      if (task.kind == PlanTaskKind::weights && task.op == tie.owner_op) {
        QCOMPARE(int(task.role), tie.owner);
        ++owners;
      }
      if (task.op != tie.user_op) continue;
      QCOMPARE(int(task.role), tie.user);
      if (task.kind == PlanTaskKind::weights) gathered[task.micro_batch].push_back(times.end_s[i]);
      PlanOperator op = plan.operators[tie.user_op.index];
      if (task.kind == PlanTaskKind::forward)
        forward[task.micro_batch] = times.end_s[i] - op.cost[ComputePart::forward];
      if (task.kind == PlanTaskKind::backward)
        backward[task.micro_batch] = times.end_s[i] - op.cost[ComputePart::backward];
    }
    QCOMPARE(owners, plan.micro_batches());
    QCOMPARE(gathered.size(), std::size_t(plan.micro_batches()));
    for (auto& [batch, ends] : gathered) {
      QCOMPARE(ends.size(), std::size_t(2));
      QVERIFY2(ends[0] <= forward[batch] * (1 + 1e-12) && ends[1] <= backward[batch] * (1 + 1e-12), split);
      QVERIFY2(ends[1] > ends[0], split);
    }
  }
}

QTEST_APPLESS_MAIN(PlanSchedulePipelineTest)
#include "plan_schedule_pipeline_test.moc"
