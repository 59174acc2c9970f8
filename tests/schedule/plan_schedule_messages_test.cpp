// SPDX-License-Identifier: Apache-2.0
// Gradients that travel together on the simulated clock: a message begins when the last of them is there, and holds its
// lane for as long as one collective of its size takes.
#include <QtTest>
#include <cmath>
#include <map>

#include "core/cost/collectives.h"
#include "core/schedule/plan_lowering.h"
#include "core/simulation/lanes.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr double kMiB = 1 << 20;

struct Laid {
  LoweredPlan lowered;
  LaneTimes times;
  std::map<OperatorId, double> gradient_s;  ///< when its backward has ended
  std::vector<std::size_t> items;           ///< that exchange gradients, in their order
};

Laid lay(const ScenarioPtr& scenario, const Plan& plan) {
  auto lowered = PlanLowering(*scenario).lower(plan);
  if (!lowered) qFatal("%s", lowered.error().message().c_str());
  Laid laid{std::move(*lowered), {}, {}, {}};
  laid.times = run_lanes(laid.lowered.items);
  for (std::size_t i = 0; i < laid.lowered.tasks.size(); ++i) {
    const PlanTask& task = laid.lowered.tasks[i];
    if (task.kind == PlanTaskKind::backward) laid.gradient_s[task.op] = laid.times.end_s[i];
    if (task.kind == PlanTaskKind::gradients) laid.items.push_back(i);
  }
  return laid;
}

}  // namespace

class PlanScheduleMessagesTest : public QObject {
  Q_OBJECT

 private slots:
  void a_message_waits_for_its_last_gradient() {
    const auto scenario = scenario_on(builtin("gpt2?layers=4&hidden=512&sequence=128", 16), "h100-80gb-2x8",
                                      [](Settings& s) { s.bucket_bytes = 10 * std::int64_t(kMiB); });
    const auto result = run("data-parallel", scenario);
    QVERIFY(result.has_value());
    const Laid laid = lay(scenario, (*result)->plans->sharding(0));
    const Mesh mesh = make_mesh(*scenario->cluster);
    const DeviceGroup all = mesh.group((1u << mesh.count()) - 1);
    const double sent = 2.0 * (all.size - 1) / all.size;  // bytes received for one of a gradient
    int filled = 0;
    for (std::size_t first = 0; first < laid.items.size();) {
      // A gradient larger than a bucket is a message of its own.
      double bytes = 0, ready = 0, busy = 0;
      std::size_t end = first;
      while (end < laid.items.size() && bytes < 10 * kMiB * (1 - 1e-9)) {
        const PlanTask& task = laid.lowered.tasks[laid.items[end]];
        if (bytes > 0 && task.bytes / sent > 10 * kMiB) break;
        bytes += task.bytes / sent;
        busy += laid.lowered.items.duration_s[laid.items[end]];
        ready = std::max(ready, laid.gradient_s.at(task.op));
        ++end;
      }
      for (std::size_t i = first; i < end; ++i) QVERIFY(laid.times.start_s[laid.items[i]] >= ready * (1 - 1e-12));
      if (end - first > 1 && bytes >= 10 * kMiB * (1 - 1e-9)) {
        ++filled;
        // The last gradient may go beyond the bucket, whose price per byte it pays.
        const double one = collectives_of(*scenario).time(Collective::all_reduce, all, 10 * kMiB).value;
        QVERIFY(std::abs(busy / one - bytes / (10 * kMiB)) < 1e-6);
      }
      first = end;
    }
    QVERIFY(filled > 3);
  }

  // Without messages every gradient is exchanged as soon as it is there.
  void alone_they_do_not_wait() {
    const auto scenario = scenario_on(builtin("vgg11", 256), "h100-80gb-2x8", [](Settings& s) { s.bucket_bytes = 0; });
    const Laid laid = lay(scenario, (*run("data-parallel", scenario))->plans->sharding(0));
    double free = 0;
    for (const std::size_t i : laid.items) {
      const double ready = laid.gradient_s.at(laid.lowered.tasks[i].op);
      QVERIFY(laid.times.start_s[i] <= std::max(ready, free) * (1 + 1e-12));
      free = std::max(free, laid.times.end_s[i]);
    }
  }
};

QTEST_APPLESS_MAIN(PlanScheduleMessagesTest)
#include "plan_schedule_messages_test.moc"
