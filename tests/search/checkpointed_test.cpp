// SPDX-License-Identifier: Apache-2.0
// data-parallel:recompute: data parallelism with checkpointing, as much as memory asks for.
#include <QtTest>
#include <cmath>

#include "core/import/source/model_source.h"
#include "core/plan/evaluator.h"
#include "core/schedule/simulated_points.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"

using namespace turnpoint;

namespace {

ScenarioPtr scenario_with(const std::string& model, std::int64_t memory_limit) {
  const auto source = open_model("builtin:" + model);
  Settings settings;
  settings.batch = 64;
  settings.devices = 4;
  settings.memory_limit = memory_limit;
  // What it does is no matter of the switches.
  settings.recompute = false;
  const auto scenario = scenario_of(**source, "v100-32gb-1x4", settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

ResultPtr found_by(const std::string& text, const ScenarioPtr& scenario) {
  const auto choice = choose_method(text);
  if (!choice) qFatal("%s", choice.error().message().c_str());
  auto searcher = make_searcher(*choice->method, choice->parameters);
  if (!searcher) qFatal("%s", searcher.error().message().c_str());
  const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

SimulatedCost peak_of(const ResultPtr& result) {
  const std::size_t index[] = {0};
  const auto cost = simulate_points(*result, index, {});
  if (!cost) qFatal("%s", cost.error().message().c_str());
  return cost->front();
}

}  // namespace

class CheckpointedTest : public QObject {
  Q_OBJECT

 private slots:
  /// From all the memory there is down to less than anything needs.
  void as_little_runs_again_as_gives_room() {
    for (const char* model : {"resnet18", "inception-v3", "wrn?layers=40"}) {
      const auto plain = found_by("data-parallel", scenario_with(model, 0));
      QCOMPARE(plain->points.size(), std::size_t(1));
      const std::int64_t needs = peak_of(plain).memory_bytes;
      double before = plain->points[0].time_s;
      bool more = false, none = false;
      for (const double part : {2.0, 1.0, 0.99, 0.97, 0.95, 0.9, 0.8, 0.6, 0.01}) {
        const auto limit = std::int64_t(part * double(needs));
        const auto scenario = scenario_with(model, limit);
        const auto found = found_by("data-parallel:recompute", scenario);
        QCOMPARE(found->points.size(), std::size_t(1));
        QCOMPARE(found->method_options, std::string("recompute"));
        QVERIFY(found->traits.recomputes);
        QCOMPARE(found->scenario, scenario);
        // The evaluator, which knows nothing of searches, prices the plan alike.
        const Plan& plan = found->plans->sharding(0);
        const auto cost = evaluate_plan(*scenario, plan);
        QVERIFY(cost.has_value());
        QCOMPARE(cost->memory_bytes(), found->points[0].memory_bytes);
        QVERIFY(std::abs(cost->time_s() / found->points[0].time_s - 1) < 1e-9);
        std::size_t again = 0;
        for (const PlanOperator& configuration : plan.operators) {
          QVERIFY(!configuration.choice.offload);
          again += configuration.choice.recompute;
        }
        QVERIFY(found->points[0].time_s >= before * (1 - 1e-12));  // less memory is never faster
        before = found->points[0].time_s;
        if (part >= 1) {
          QCOMPARE(found->points[0].time_s, plain->points[0].time_s);
          continue;
        }
        const bool fits = peak_of(found).memory_bytes <= limit;
        QVERIFY(!fits || !none);
        if (fits) {
          more = true;
          QVERIFY(again > 0 && found->points[0].time_s > plain->points[0].time_s);
        } else {
          none = true;
          QVERIFY(found->points[0].memory_bytes <= plain->points[0].memory_bytes);
        }
      }
      QVERIFY2(none, model);
      QVERIFY2(more, model);
    }
  }

  void whole_batches_alone() {
    const auto choice = choose_method("data-parallel:recompute:micro-batches=2");
    QVERIFY(choice.has_value());
    const auto refused = make_searcher(*choice->method, choice->parameters);
    QVERIFY(!refused && refused.error().code == ErrorCode::usage);
    QVERIFY(QString::fromStdString(refused.error().what).contains("a batch that goes through whole"));
    QVERIFY(!refusal_of(*choice->method, choice->parameters, *scenario_with("lenet", 0)).empty());
    QVERIFY(refusal_of(*choice->method, "recompute", *scenario_with("lenet", 0)).empty());
  }
};

QTEST_APPLESS_MAIN(CheckpointedTest)
#include "checkpointed_test.moc"
