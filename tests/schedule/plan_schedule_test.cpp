// SPDX-License-Identifier: Apache-2.0
// The simulated clock of sharding plans: what must hold of every plan of every method, whatever it does.
#include "core/schedule/plan_schedule.h"

#include <fmt/format.h>

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>
#include <cmath>
#include <functional>
#include <set>

#include "core/plan/evaluator.h"
#include "core/search/registry.h"
#include "core/simulation/trace.h"
#include "plan/parameter_edits.h"
#include "schedule/plan_rules.h"
#include "schedule/without_slowdown.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Of a role: 0 computes, 1 and 2 are links inside nodes and between them.
double sum_on(const LoweredPlan& lowered, std::uint32_t kind) {
  double sum = 0;
  for (std::size_t i = 0; i < lowered.items.size(); ++i)
    if (lowered.items.lane[i] != kNone && lowered.items.lane[i] % 3 == kind) sum += lowered.items.duration_s[i];
  return sum;
}

double longest_path(const LaneItems& items) {
  std::vector<double> end(items.size(), 0);
  double longest = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::uint32_t k = items.wait_begin[i]; k < items.wait_begin[i + 1]; ++k)
      end[i] = std::max(end[i], end[items.wait_for[k]]);
    end[i] += items.duration_s[i];
    longest = std::max(longest, end[i]);
  }
  return longest;
}

std::int64_t counted_bytes(const LoweredPlan& lowered) {
  std::int64_t bytes = lowered.roles[0].persistent_bytes;
  for (std::size_t b = 0; b < lowered.buffers.size(); ++b)
    if (lowered.counted[b]) bytes += lowered.buffers.bytes[b];
  return bytes;
}

/// The most that is there at once of what the additive accounting leaves out.
std::int64_t transient_peak(const LoweredPlan& lowered, const LaneTimes& times) {
  LoweredPlan rest = lowered;
  for (std::size_t b = 0; b < rest.buffers.size(); ++b)
    if (rest.counted[b]) rest.buffers.bytes[b] = 0;
  return memory_over_time(rest.buffers, times, {0}, false)[0].peak_bytes;
}

Plan without_network(Plan plan) {
  const auto clear = [](std::vector<ReshardStep>& steps) {
    for (ReshardStep& step : steps) step.time_s = 0;
  };
  for (auto& op : plan.operators) each_list(op, clear), op.cost[NetworkPart::offload] = 0;
  for (auto& reshard : plan.reshards)
    for (const ReshardRole role : kReshardRoles) clear(reshard.steps(role));
  return plan;
}

struct Tally {
  int plans = 0, counted_exactly = 0;
  double most_saved = 0;
};

QString fault_of(const Scenario& scenario, const PlanLowering& lowering, const Plan& plan, Tally& tally) {
  const auto lowered = lowering.lower(plan);
  if (!lowered) return QString::fromStdString(lowered.error().message());
  const LaneTimes times = run_lanes(lowered->items);
  const CostBreakdown& cost = plan.cost;
  const double compute = sum_on(*lowered, 0), inside = sum_on(*lowered, 1), between = sum_on(*lowered, 2),
               network = inside + between;
  if (!close(compute, cost.compute_s())) return QString("compute %1, additive %2").arg(compute).arg(cost.compute_s());
  if (!close(network, cost.network_s())) return QString("network %1, additive %2").arg(network).arg(cost.network_s());
  const double most = cost.time_s() * (1 + 1e-12);
  const double least = std::max({compute, inside, between, longest_path(lowered->items)}) * (1 - 1e-12);
  if (times.makespan_s > most || times.makespan_s < least)
    return QString("time %1 outside %2 to %3").arg(times.makespan_s).arg(least).arg(most);
  const auto free = lowering.lower(without_network(plan));
  if (const double alone = run_lanes(free->items).makespan_s; !close(alone, cost.compute_s()))
    return QString("without a network %1, not %2").arg(alone).arg(cost.compute_s());
  const bool in_parts = plan.micro_batches() > 1;  // every part has buffers of its own, one after the other
  if (!in_parts && counted_bytes(*lowered) > cost.memory_bytes())
    return QString("counts %1 bytes, additive %2").arg(counted_bytes(*lowered)).arg(cost.memory_bytes());
  const auto memory = memory_over_time(lowered->buffers, times, lowered->persistent(), true)[0];
  if (memory.peak_bytes > counted_bytes(*lowered) + transient_peak(*lowered, times)) return "peak above its parts";
  if (const auto& last = memory.samples.back(); last.activation_bytes + last.copy_bytes + last.workspace_bytes != 0)
    return "something is never freed";
  if (!in_parts)
    if (const QString what = PlanRules(scenario, plan, *lowered, times).fault(); !what.isEmpty()) return what;
  if (lowered->items.size() < 300)  // the slow one is cubic
    if (const QString slow = compare_with_slow(*lowered, times, memory); !slow.isEmpty()) return slow;
  const auto evaluated = evaluate_plan(scenario, plan);
  if (!evaluated) return QString::fromStdString(evaluated.error().message());
  ++tally.plans;
  tally.counted_exactly += counted_bytes(*lowered) == cost.memory_bytes();
  tally.most_saved = std::max(tally.most_saved, 1 - times.makespan_s / cost.time_s());
  return {};
}

ModelPtr small_model(const QString& name) {
  if (name == "mlp") return mlp();
  if (name == "residual") return residual();
  return name == "attention" ? attention() : convolution();
}

}  // namespace

class PlanScheduleTest : public QObject {
  Q_OBJECT
 private slots:
  void every_plan_data();
  void every_plan();
  void larger_models_data();
  void larger_models();
  void data_parallel_by_hand();
  void gathers_by_hand();
  void new_weights_before_forward_by_hand();
  void one_device_is_the_sum();
  void computing_slows_beside_communication();
  void a_schedule_is_whole();
  void the_trace_is_json();
  void bad_plans();
};

void PlanScheduleTest::every_plan_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<QString>("hardware");
  QTest::addColumn<QString>("method");
  const QStringList methods = {"ft:micro-batches=1",
                               "ft:micro-batches=2",
                               "data-parallel",
                               "fsdp:zero=1",
                               "fsdp:zero=2",
                               "fsdp",
                               "optcnn",
                               "tofu",
                               "mesh-tensorflow"};
  for (const QString model : {"mlp", "residual", "attention", "convolution"})
    for (const QString hardware : {"v100-16gb-1x1", "v100-16gb-1x4", "v100-16gb-2x2"})
      for (const QString& method : methods)
        QTest::addRow("%s %s %s", qPrintable(model), qPrintable(hardware), qPrintable(method))
            << model << hardware << method;
}

void PlanScheduleTest::every_plan() {
  QFETCH(QString, model);
  QFETCH(QString, hardware);
  QFETCH(QString, method);
  const auto scenario = scenario_on(small_model(model), hardware.toStdString());
  const auto result = run(method.toStdString(), scenario);
  if (!result) QSKIP(result.error().message().c_str());
  const PlanLowering lowering(*scenario);
  Tally tally;
  const std::size_t points = (*result)->points.size(), step = std::max<std::size_t>(1, points / 200);
  for (std::size_t k = 0; k < points; k += step) {
    const QString fault = fault_of(*scenario, lowering, (*result)->plans->sharding(k), tally);
    QVERIFY2(fault.isEmpty(), qPrintable(QString("point %1: %2").arg(k).arg(fault)));
  }
  QVERIFY(tally.plans > 0);
  // Copies that the sum counts and no backward reads are the exception (views, shared tensors).
  const bool by_rule = method.startsWith("data-parallel") || method.startsWith("fsdp");
  if (by_rule) QCOMPARE(tally.counted_exactly, tally.plans);
  if (method == "ft:micro-batches=1" || method == "mesh-tensorflow")
    QVERIFY(tally.counted_exactly * 10 >= tally.plans * 7);
  qInfo("%d plans, %d of which count as the additive accounting does; overlap saves up to %.1f %%", tally.plans,
        tally.counted_exactly, 100 * tally.most_saved);
}

void PlanScheduleTest::larger_models_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<QString>("settings");
  for (const char* model : {"resnet18", "gpt2?layers=2&hidden=256&sequence=64", "lstm-lm?layers=2", "gnmt?layers=2",
                            "mixtral-8x7b?layers=1&sequence=64"})
    for (const char* settings : {"plain", "bf16 lamb", "paper sgd", "nothing but splits"})
      QTest::addRow("%s, %s", model, settings) << model << settings;
}

// Recurrent and convolutional networks, mixtures of experts, tied tables, on two nodes: frontiers at every kind of
// setting, and the methods that leave the frontier's space.
void PlanScheduleTest::larger_models() {
  QFETCH(QString, model);
  QFETCH(QString, settings);
  const auto scenario = scenario_on(builtin(model.toStdString(), 32), "v100-16gb-2x4", [&](Settings& s) {
    if (settings == "bf16 lamb") s.precision = Precision::bf16, s.optimizer = Optimizer::lamb;
    if (settings == "paper sgd") s.accounting = Accounting::paper, s.optimizer = Optimizer::sgd;
    if (settings == "nothing but splits") s.recompute = s.update_sharding = s.offload = false;
  });
  const PlanLowering lowering(*scenario);
  Tally tally;
  for (const char* method :
       {"ft:micro-batches=1", "data-parallel", "fsdp", "fsdp:zero=1", "tofu", "optcnn", "megatron"}) {
    const auto choice = choose_method(method);
    QVERIFY(choice.has_value());
    if (!refusal_of(*choice->method, choice->parameters, *scenario).empty()) continue;
    auto searcher = make_searcher(*choice->method, choice->parameters);
    QVERIFY(searcher.has_value());
    const auto result = (*searcher)->run(scenario, SearchPass::coarse, {});
    if (!result) continue;
    const std::size_t points = (*result)->points.size(), step = std::max<std::size_t>(1, points / 12);
    for (std::size_t k = 0; k < points; k += step) {
      const QString fault = fault_of(*scenario, lowering, (*result)->plans->sharding(k), tally);
      QVERIFY2(fault.isEmpty(), qPrintable(QString("%1 point %2: %3").arg(method).arg(k).arg(fault)));
    }
  }
  QVERIFY(tally.plans > 10);
  if (model.startsWith("gpt2") || model.startsWith("mixtral")) QVERIFY(tally.counted_exactly * 10 >= tally.plans * 9);
  qInfo("%d plans, %d of which count as the additive accounting does; overlap saves up to %.1f %%", tally.plans,
        tally.counted_exactly, 100 * tally.most_saved);
}

// Backward one operator after the other, an all-reduce after each that has weights, one all-reduce at a time; then the
// updates, each as soon as its gradients are there: arithmetic that needs no schedule.
void PlanScheduleTest::data_parallel_by_hand() {
  for (const char* name : {"vgg11", "alexnet", "lenet"}) {
    const auto scenario =
        without_slowdown(scenario_on(builtin(name, 256), "v100-16gb-2x8", [](Settings& s) { s.bucket_bytes = 0; }));
    const auto result = run("data-parallel", scenario);
    QVERIFY(result.has_value());
    const Plan plan = (*result)->plans->sharding(0);
    QVERIFY(plan.reshards.empty());
    double computing = 0, sending = 0, end = 0;
    for (PlanOperator op : plan.operators) computing += op.cost[ComputePart::forward];
    std::vector<std::pair<double, double>> updates;  // may begin, takes
    for (std::size_t i = plan.operators.size(); i-- > 0;) {
      PlanOperator op = plan.operators[i];
      computing += op.cost[ComputePart::backward];
      double there = computing;
      for (const ReshardStep& step : all_steps(op.parameters)) {
        sending = std::max(sending, computing) + step.time_s;
        there = sending;
      }
      if (op.cost[ComputePart::update] > 0) updates.emplace_back(there, op.cost[ComputePart::update]);
    }
    end = std::max(computing, sending);
    double updated = computing;
    for (const auto& [from, takes] : updates) updated = std::max(updated, from) + takes;
    end = std::max(end, updated);
    const auto cost = simulate_plan(PlanLowering(*scenario), plan);
    QVERIFY(cost.has_value());
    QVERIFY2(close(cost->time_s, end), qPrintable(QString("%1: %2, by hand %3").arg(name).arg(cost->time_s).arg(end)));
    QVERIFY((*result)->points.front().simulated_time_s == cost->time_s);
    QVERIFY((*result)->points.front().simulated_memory_bytes == cost->memory_bytes);
    QVERIFY(cost->time_s < plan.cost.time_s());
  }
}

// Fully sharded, forward: an operator's weights are gathered while the one before computes, not earlier; one gather at
// a time.
void PlanScheduleTest::gathers_by_hand() {
  for (const char* name : {"vgg11", "alexnet"}) {
    const auto scenario = without_slowdown(scenario_on(builtin(name, 256), "v100-16gb-2x8"));
    const auto result = run("fsdp", scenario);
    QVERIFY(result.has_value());
    const Plan plan = (*result)->plans->sharding(0);
    QVERIFY(plan.reshards.empty());
    const auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY(lowered.has_value());
    const LaneTimes times = run_lanes(lowered->items);
    double computing = 0, gathering = 0, last = 0, before_last = 0;
    std::size_t checked = 0;
    for (PlanOperator op : plan.operators) {
      const auto steps = all_steps(op.parameters);
      if (!steps.empty()) {
        gathering = std::max(gathering, before_last) + steps.front().time_s;
        computing = std::max(computing, gathering);
      }
      computing += op.cost[ComputePart::forward];
      if (!steps.empty()) before_last = last, last = computing;
      for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
        const PlanTask& task = lowered->tasks[i];
        if (task.kind != PlanTaskKind::forward || task.op != op.op || lowered->items.lane[i] == kNone) continue;
        QVERIFY2(close(times.end_s[i], computing), scenario->model->operators[op.op].name.c_str());
        ++checked;
      }
    }
    QVERIFY(checked > 10);
  }
}

// Gathers of new weights begin with the step, one at a time in the order of the operators, each of which waits for its
// own; behind the updates nothing is left. Behind the update all of them would come at the end.
void PlanScheduleTest::new_weights_before_forward_by_hand() {
  for (const char* name : {"vgg11", "alexnet", "lenet"}) {
    const auto scenario =
        without_slowdown(scenario_on(builtin(name, 256), "v100-16gb-1x8", [](Settings& s) { s.bucket_bytes = 0; }));
    const auto result = run("manual:zero=1:gather-first", scenario), behind = run("manual:zero=1", scenario);
    QVERIFY(result.has_value() && behind.has_value());
    const Plan plan = (*result)->plans->sharding(0);
    const auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY(lowered.has_value());
    const LaneTimes times = run_lanes(lowered->items);
    double computing = 0, gathering = 0, updated = 0;
    int gathers = 0, checked = 0;
    for (PlanOperator op : plan.operators) {
      for (const ParameterSteps& steps : op.parameters)
        for (const ReshardStep& step : steps.spread)
          gathering += step.time_s, computing = std::max(computing, gathering), ++gathers;
      computing += op.cost[ComputePart::forward];
      for (std::size_t i = 0; i < lowered->tasks.size(); ++i) {
        const PlanTask& task = lowered->tasks[i];
        if (task.kind == PlanTaskKind::update) updated = std::max(updated, times.end_s[i]);
        if (task.kind != PlanTaskKind::forward || task.op != op.op || lowered->items.lane[i] == kNone) continue;
        QVERIFY2(close(times.end_s[i], computing), scenario->model->operators[op.op].name.c_str());
        ++checked;
      }
    }
    QVERIFY(gathers > 3 && checked >= 9);
    QVERIFY(close(times.makespan_s, updated));
    QVERIFY(close((*result)->points[0].time_s, (*behind)->points[0].time_s));
    QVERIFY(times.makespan_s < (*behind)->points[0].simulated_time_s.value());
  }
}

// Of the cluster; the papers count without it. What goes to the host does so beside.
void PlanScheduleTest::computing_slows_beside_communication() {
  const auto scenario = scenario_on(builtin("vgg11", 256), "v100-16gb-2x8");
  const auto result = run("data-parallel", scenario);
  QVERIFY(result.has_value());
  const Plan plan = (*result)->plans->sharding(0);
  const auto alone = without_slowdown(scenario);
  const double slowed_s = simulate_plan(PlanLowering(*scenario), plan)->time_s,
               alone_s = simulate_plan(PlanLowering(*alone), plan)->time_s;
  QVERIFY(slowed_s > 1.01 * alone_s && slowed_s < 1.126 * alone_s);
  const auto made = plan_schedule(*scenario, plan);
  const double computes = (*made)->lanes[0].busy_s;
  QVERIFY(computes > plan.cost.compute_s() && computes < 1.126 * plan.cost.compute_s());
  auto paper = std::make_shared<Scenario>(*scenario);
  paper->settings.accounting = Accounting::paper;
  QCOMPARE(overlap_slowdown(*scenario), 1.126);
  QCOMPARE(overlap_slowdown(*paper), 1.0);
}

// No network, no waiting: the additive time to the last digit or nearly. Memory that the sum counts is all there is
// counted; the peak is that of the moment, above it only by what lives for a moment.
void PlanScheduleTest::one_device_is_the_sum() {
  for (const char* name : {"vgg11", "resnet18", "transformer-s", "lstm-lm"}) {
    const auto scenario = scenario_on(builtin(name, 16), "v100-16gb-1x1");
    const auto result = run("data-parallel", scenario);
    QVERIFY(result.has_value());
    const Plan plan = (*result)->plans->sharding(0);
    const auto lowered = PlanLowering(*scenario).lower(plan);
    QVERIFY(lowered.has_value());
    const LaneTimes times = run_lanes(lowered->items);
    QVERIFY(close(times.makespan_s, plan.cost.time_s()));
    QCOMPARE(counted_bytes(*lowered), plan.cost.memory_bytes());
  }
}

void PlanScheduleTest::a_schedule_is_whole() {
  const auto scenario = without_slowdown(scenario_on(attention(), "v100-16gb-2x2"));
  const auto result = run("fsdp", scenario);
  QVERIFY(result.has_value());
  const Plan plan = (*result)->plans->sharding(0);
  const auto made = plan_schedule(*scenario, plan);
  QVERIFY(made.has_value());
  const Schedule& s = **made;
  QCOMPARE(s.devices.size(), std::size_t(1));
  QCOMPARE(s.devices[0].stands_for, 4u);
  QCOMPARE(s.devices[0].name, std::string("devices 0-3"));
  QCOMPARE(s.devices[0].memory_limit, scenario->memory_limit());
  QCOMPARE(s.lanes.size(), std::size_t(3));
  QVERIFY(close(s.lanes[0].busy_s, plan.cost.compute_s()));
  QVERIFY(close(s.lanes[1].busy_s + s.lanes[2].busy_s, plan.cost.network_s()));
  QVERIFY(s.lanes[1].kind == LaneKind::communication && s.lanes[2].kind == LaneKind::network);
  double last = 0;
  for (const auto& lane : s.lanes)
    for (std::uint32_t i = lane.begin; i < lane.end; ++i) {
      QVERIFY(i == lane.begin || s.start_s[i] >= s.end_s[i - 1]);
      QCOMPARE(s.item_of[s.task[i]], i);
      QVERIFY(s.operator_of_task(s.task[i]).valid());
      QVERIFY(lane.kind == LaneKind::compute ? s.bytes[i] == 0 : s.bytes[i] > 0);
      last = std::max(last, s.end_s[i]);
    }
  QCOMPARE(s.makespan_s, last);
  QVERIFY(!s.critical.empty());
  QCOMPARE(s.start_s[s.critical.front()], 0.0);
  QCOMPARE(s.end_s[s.critical.back()], s.makespan_s);
  std::int64_t peak = 0;
  for (const auto& sample : s.memory[0]) peak = std::max(peak, s.total_at(0, sample));
  QCOMPARE(peak, s.devices[0].peak_bytes);
  const auto cost = simulate_plan(PlanLowering(*scenario), plan);
  QVERIFY(*cost == (SimulatedCost{s.makespan_s, s.devices[0].peak_bytes}));
  std::set<std::string> names;
  for (TaskIndex t = 0; t < s.graph->task_count(); ++t) names.insert(std::string(s.graph->names[t]));
  for (const char* name : {"q forward", "q backward", "q: all-gather of the weights", "q update",
                           "q: reduce-scatter of the weights' gradients"})
    QVERIFY2(names.contains(name),
             qPrintable(QString::fromStdString(fmt::format("{} is not among {}", name, fmt::join(names, ", ")))));
}

void PlanScheduleTest::the_trace_is_json() {
  const auto scenario = scenario_on(attention(), "v100-16gb-2x2");
  const auto result = run("tofu", scenario);
  QVERIFY(result.has_value());
  const auto schedule = plan_schedule(*scenario, (*result)->plans->sharding(0));
  QVERIFY(schedule.has_value());
  const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(write_trace(**schedule)));
  std::size_t items = 0, samples = 0, flows = 0;
  double computing = 0;
  for (const auto& value : document.object()["traceEvents"].toArray()) {
    const QJsonObject event = value.toObject();
    items += event["ph"] == "X";
    samples += event["ph"] == "C";
    flows += event["ph"] == "s";
    if (event["ph"] == "X" && event["tid"] == 0) computing += event["dur"].toDouble() * 1e-6;
  }
  QCOMPARE(items, (*schedule)->item_count());
  QCOMPARE(samples, (*schedule)->memory[0].size());
  QVERIFY(flows > 0);
  QVERIFY(std::abs(computing - (*schedule)->lanes[0].busy_s) < 1e-9 * computing);
}

void PlanScheduleTest::bad_plans() {
  const auto scenario =
      scenario_on(attention(), "v100-16gb-2x2", [](Settings& s) { s.collectives = Collectives::rings; });
  const auto result = run("tofu", scenario);
  QVERIFY(result.has_value());
  const Plan good = (*result)->plans->sharding(0);
  QVERIFY(!good.reshards.empty());
  const PlanLowering lowering(*scenario);
  const auto message = [&](const std::function<void(Plan&)>& break_it) {
    Plan plan = good;
    break_it(plan);
    const auto lowered = lowering.lower(plan);
    return lowered ? std::string() : lowered.error().message();
  };
  QCOMPARE(message([](Plan&) {}), std::string());
  const auto says = [&](const std::function<void(Plan&)>& break_it, const char* words) {
    const std::string what = message(break_it);
    QVERIFY2(what.find(words) != std::string::npos, what.c_str());
  };
  says([](Plan& plan) { plan.operators.pop_back(); }, "operators, the model");
  says([](Plan& plan) { std::swap(plan.operators[0], plan.operators[1]); }, "not in the model's order");
  says([](Plan& plan) { plan.operators[2].split.axis[0] = 99; }, "splits a dimension it does not have");
  says([](Plan& plan) { plan.reshards.push_back(plan.reshards.front()); }, "no consumer asked for");
  says([](Plan& plan) { plan.reshards[0].tensor = TensorId(100000); }, "not there");
  says(
      [](Plan& plan) {
        plan.reshards[0].keep = Keep::before, plan.reshards[0].repeated.clear(), plan.reshards[0].forward.resize(3);
      },
      "does not repeat");
  says(
      [](Plan& plan) {
        for (auto& op : plan.operators)
          if (auto* steps = last_steps(op)) steps->pop_back();
      },
      "gradients");
  says([](Plan& plan) { plan.pipeline = PlanPipeline{}, plan.pipeline->stages = 3; }, "parts missing");
}

QTEST_APPLESS_MAIN(PlanScheduleTest)
#include "plan_schedule_test.moc"
