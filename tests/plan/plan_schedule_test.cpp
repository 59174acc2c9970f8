// SPDX-License-Identifier: Apache-2.0
// The simulated clock of sharding plans: what must hold of every plan of every method, whatever it does.
#include "core/plan/plan_schedule.h"

#include <fmt/format.h>

#include <QtTest>
#include <cmath>
#include <numeric>

#include "core/plan/evaluator.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

double sum_on(const LoweredPlan& lowered, std::uint32_t kind) {
  double sum = 0;
  for (std::size_t i = 0; i < lowered.items.size(); ++i)
    if (lowered.items.lane[i] != kNone && lowered.items.lane[i] % 2 == kind) sum += lowered.items.duration_s[i];
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
  for (auto& op : plan.operators) clear(op.gradient_sync), op.cost[NetworkPart::offload] = 0;
  for (auto& reshard : plan.reshards) clear(reshard.forward), clear(reshard.backward);
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
  const double compute = sum_on(*lowered, 0), network = sum_on(*lowered, 1);
  if (!close(compute, cost.compute_s())) return QString("compute %1, additive %2").arg(compute).arg(cost.compute_s());
  if (!close(network, cost.network_s())) return QString("network %1, additive %2").arg(network).arg(cost.network_s());
  const double most = cost.time_s() * (1 + 1e-12);
  const double least = std::max({compute, network, longest_path(lowered->items)}) * (1 - 1e-12);
  if (times.makespan_s > most || times.makespan_s < least)
    return QString("time %1 outside %2 to %3").arg(times.makespan_s).arg(least).arg(most);
  const auto free = lowering.lower(without_network(plan));
  if (const double alone = run_lanes(free->items).makespan_s; !close(alone, cost.compute_s()))
    return QString("without a network %1, not %2").arg(alone).arg(cost.compute_s());
  if (counted_bytes(*lowered) > cost.memory_bytes())
    return QString("counts %1 bytes, additive %2").arg(counted_bytes(*lowered)).arg(cost.memory_bytes());
  const auto memory = memory_over_time(lowered->buffers, times, lowered->persistent(), true)[0];
  if (memory.peak_bytes > counted_bytes(*lowered) + transient_peak(*lowered, times)) return "peak above its parts";
  if (const auto& last = memory.samples.back(); last.activation_bytes + last.copy_bytes + last.workspace_bytes != 0)
    return "something is never freed";
  if (const QString slow = compare_with_slow(*lowered, times, memory); !slow.isEmpty()) return slow;
  const auto evaluated = evaluate_plan(scenario, plan);
  if (!evaluated) return QString::fromStdString(evaluated.error().message());
  ++tally.plans;
  tally.counted_exactly += counted_bytes(*lowered) == cost.memory_bytes();
  tally.most_saved = std::max(tally.most_saved, 1 - times.makespan_s / cost.time_s());
  return {};
}

}  // namespace

class PlanScheduleTest : public QObject {
  Q_OBJECT
 private slots:
  void every_plan_data();
  void every_plan();
};

void PlanScheduleTest::every_plan_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<QString>("hardware");
  QTest::addColumn<QString>("method");
  const QStringList methods = {"ft",   "data-parallel", "fsdp:zero=1", "fsdp:zero=2",
                               "fsdp", "optcnn",        "tofu",        "mesh-tensorflow"};
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
  const ModelPtr network = model == "mlp"         ? mlp()
                           : model == "residual"  ? residual()
                           : model == "attention" ? attention()
                                                  : convolution();
  const auto scenario = scenario_on(network, hardware.toStdString());
  const auto result = run(method.toStdString(), scenario);
  if (!result) QSKIP(result.error().message().c_str());
  const PlanLowering lowering(*scenario);
  Tally tally;
  const std::size_t points = (*result)->points.size(), step = std::max<std::size_t>(1, points / 200);
  for (std::size_t k = 0; k < points; k += step) {
    const QString fault = fault_of(*scenario, lowering, (*result)->plans->plan(k), tally);
    QVERIFY2(fault.isEmpty(), qPrintable(QString("point %1: %2").arg(k).arg(fault)));
  }
  QVERIFY(tally.plans > 0);
  qInfo("%d plans, %d of which count as the additive accounting does; overlap saves up to %.1f %%", tally.plans,
        tally.counted_exactly, 100 * tally.most_saved);
}

QTEST_APPLESS_MAIN(PlanScheduleTest)
#include "plan_schedule_test.moc"
