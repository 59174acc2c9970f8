// SPDX-License-Identifier: Apache-2.0
// Plans of many micro-batches, simulated by a few of them, against their whole schedules.
#include <QTest>
#include <algorithm>
#include <cmath>

#include "core/schedule/plan_schedule.h"
#include "core/search/registry.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

/// Empty, or how the two differ.
std::string difference(const Scenario& scenario, const PlanLowering& lowering, const Plan& plan) {
  const auto cost = simulate_plan(lowering, plan);
  const auto whole = plan_schedule(scenario, plan);
  if (!cost || !whole) return cost ? whole.error().message() : cost.error().message();
  std::int64_t peak = 0;
  for (const auto& device : (*whole)->devices) peak = std::max(peak, device.peak_bytes);
  if (cost->memory_bytes != peak) return std::to_string(cost->memory_bytes) + " bytes, whole " + std::to_string(peak);
  const double makespan = (*whole)->makespan_s;
  if (std::abs(cost->time_s - makespan) > 1e-9 * makespan)
    return std::to_string(cost->time_s) + " s, whole " + std::to_string(makespan);
  return {};
}

}  // namespace

class FewMicroBatchesTest : public QObject {
  Q_OBJECT

 private slots:
  void plans_that_are_typed_data();
  void plans_that_are_typed();
  void plans_of_a_frontier();
  void a_backlog_that_grows();
  void far_more_than_can_be_simulated();
};

void FewMicroBatchesTest::plans_that_are_typed_data() {
  QTest::addColumn<QString>("method");
  for (const char* method :
       {"manual:dp=4:micro-batches=32", "manual:dp=4:zero=3:micro-batches=64", "manual:dp=4:zero=2:micro-batches=48",
        "manual:tp=2:dp=2:micro-batches=32:recompute=full", "manual:pp=4:micro-batches=64",
        "manual:pp=2:dp=2:zero=1:micro-batches=32", "manual:pp=2:vp=2:dp=2:micro-batches=48",
        "manual:pp=4:micro-batches=63:recompute=selective", "manual:pp=2:tp=2:micro-batches=31:zero=2"})
    QTest::newRow(method) << method;
}

void FewMicroBatchesTest::plans_that_are_typed() {
  QFETCH(QString, method);
  const int batches = method.section("micro-batches=", 1).section(':', 0, 0).toInt();
  for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x2", "a100-80gb-4x1"}) {
    const auto model = (*open_model("builtin:gpt2?layers=4&hidden=128"))->bind({batches * 8, 32});
    QVERIFY(model.has_value());
    const auto scenario = test::scenario_on(*model, hardware);
    const auto result = test::run(method.toStdString(), scenario);
    QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
    QVERIFY(!(*result)->points.empty());
    const std::string fault = difference(*scenario, PlanLowering(*scenario), (*result)->plans->sharding(0));
    QVERIFY2(fault.empty(), (hardware + (": " + fault)).c_str());
  }
}

void FewMicroBatchesTest::plans_of_a_frontier() {
  int many = 0;
  for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x2"}) {
    const auto scenario = test::scenario_on(test::attention(128), hardware);
    const auto result = test::run("ft", scenario);
    QVERIFY(result.has_value());
    const PlanLowering lowering(*scenario);
    for (std::size_t i = 0; i < (*result)->points.size(); i += 1 + (*result)->points.size() / 200) {
      const Plan plan = (*result)->plans->sharding(i);
      const std::string fault = difference(*scenario, lowering, plan);
      QVERIFY2(fault.empty(), ("point " + std::to_string(i) + ": " + fault).c_str());
      many += plan.micro_batches() > 9;
    }
  }
  QVERIFY2(many > 25, std::to_string(many).c_str());
}

/// Gradients that every micro-batch sends and that queue for links far too slow: what waits, and the peak with it,
/// grows from one to the next. With links a little too slow it takes long to be seen.
void FewMicroBatchesTest::a_backlog_that_grows() {
  const auto model = (*open_model("builtin:gpt2?layers=4&hidden=128"))->bind({512, 32});
  QVERIFY(model.has_value());
  int compared = 0;
  for (const ModelPtr& net : {*model, test::mlp(1 << 16)})
    for (double speed = 1e-3; speed < 2; speed *= 1.25)
      for (const char* method : {"manual:dp=4:zero=2:micro-batches=64", "manual:dp=4:zero=3:micro-batches=64",
                                 "manual:pp=4:micro-batches=64", "manual:pp=2:dp=2:zero=2:micro-batches=64"}) {
        auto scenario = std::make_shared<Scenario>(*test::scenario_on(net, "v100-16gb-4x1"));
        scenario->settings.factors.inter_bandwidth = speed;
        const auto result = test::run(method, scenario);
        if (!result) continue;  // a net without layers has no stages
        const std::string fault = difference(*scenario, PlanLowering(*scenario), (*result)->plans->sharding(0));
        QVERIFY2(fault.empty(), (method + (" at " + std::to_string(speed)) + ": " + fault).c_str());
        ++compared;
      }
  QVERIFY2(compared > 200, std::to_string(compared).c_str());  // of 35 speeds, four plans and two
}

/// By what each further one takes between two numbers that are simulated whole.
void FewMicroBatchesTest::far_more_than_can_be_simulated() {
  const auto seconds = [](int batches) {
    const auto scenario = test::scenario_on(test::mlp(4 * batches), "v100-16gb-1x4");
    const auto result = test::run("manual:dp=4:zero=1:micro-batches=" + std::to_string(batches), scenario);
    const Plan plan = (*result)->plans->sharding(0);
    return batches > 1000 ? simulate_plan(PlanLowering(*scenario), plan)->time_s
                          : (*plan_schedule(*scenario, plan))->makespan_s;
  };
  const double each = (seconds(128) - seconds(64)) / 64, expected = seconds(64) + ((1 << 16) - 64) * each;
  QVERIFY(std::abs(seconds(1 << 16) - expected) <= 1e-6 * expected);
}

QTEST_APPLESS_MAIN(FewMicroBatchesTest)
#include "few_micro_batches_test.moc"
