// SPDX-License-Identifier: Apache-2.0
// A plan's collectives by kind and ranks, summed up here from the plan's steps by another way, and a report of what an
// engine measured beside them, with quartiles by hand.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/validation/engine/compare_engine.h"
#include "core/validation/validate_plans.h"
#include "export/engines/received.h"
#include "export/jax/collectives.h"
#include "plan/hand_plan.h"
#include "plan_io/schema_check.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// By kind and the group of rank 0, of steps that the plan carries out once; groups by comparing places of devices.
std::map<std::pair<std::string, std::vector<int>>, std::pair<std::int64_t, double>> by_hand(const Plan& plan) {
  std::map<std::pair<std::string, std::vector<int>>, std::pair<std::int64_t, double>> found;
  const auto add = [&](const std::vector<ReshardStep>& steps) {
    for (const ReshardStep& step : steps) {
      if (step.move == ReshardMove::slice) continue;
      std::vector<int> ranks;
      if (step.move != ReshardMove::permute) ranks = groups_along(plan.mesh, step.axes).front();
      auto& row = found[{to_string(step.move), ranks}];
      row.first += 1;
      row.second += step.bytes;
    }
  };
  for (const PlanReshard& reshard : plan.reshards)
    for (const ReshardRole role : kReshardRoles) add(reshard.steps(role));
  for (const PlanOperator& op : plan.operators)
    for (const ParameterSteps& steps : op.parameters)
      for (const auto* list : {&steps.gather, &steps.sync, &steps.spread}) add(*list);
  return found;
}

ScenarioPtr llama_on(const char* hardware) {
  const QTemporaryDir folder;
  const std::string path = folder.filePath("config.json").toStdString();
  std::ofstream(path) << config_of("llama", 8, false);
  const auto source = open_model(path);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({16, 64});
  if (!model) qFatal("%s", model.error().message().c_str());
  return scenario_on(*model, hardware);
}

EngineMeasurement sample_measurement(int ranks) {
  EngineMeasurement m;
  m.engine = "pytorch 9.9";
  m.backend = "cpu";
  m.ranks = ranks;
  m.cores = 2;
  m.times_s = {0.5, 0.1, 0.4, 0.2};
  m.losses = {3, 2};
  m.parameters = 1000;
  m.peak = 5000;
  m.numerics = EngineMeasurement::Numerics{1e-7, 2e-4, "fp32", "w"};
  m.collectives = {{"all_reduce", {0, 1}, 2, 64}, {"broadcast", {0, 1, 2, 3}, 1, 8}};
  m.notes = {"a note"};
  return m;
}

}  // namespace

class CompareEngineTest : public QObject {
  Q_OBJECT

 private slots:
  void collectives_are_those_of_the_plans_steps() {
    const auto scenario = scenario_on(mlp(64), "v100-16gb-2x4");
    std::set<std::string> kinds;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Plan plan = hand_plan(*scenario, seed);
      const auto wanted = by_hand(plan);
      const auto found = planned_collectives(*scenario, plan, true);
      QCOMPARE(found.size(), wanted.size());
      for (const EngineCollective& one : found) {
        kinds.insert(one.kind);
        const auto at = wanted.find({one.kind, one.ranks});
        QVERIFY2(at != wanted.end(), one.kind.c_str());
        QCOMPARE(one.count, at->second.first);
        QVERIFY(std::abs(one.bytes - at->second.second) <= 1e-9 * one.bytes);
      }
    }
    QVERIFY(kinds.size() >= 4);
  }

  // The sums of a layer are made as often as there are parts of the batch; of weights, once.
  void parts_of_a_batch_and_layers_that_run_again() {
    const auto scenario = llama_on("v100-16gb-1x4");
    const auto of = [&](const char* method, std::vector<int> ranks) {
      const auto result = run(method, scenario);
      if (!result) qFatal("%s", result.error().message().c_str());
      const Plan plan = (*result)->plans->sharding(0);
      for (const EngineCollective& one : planned_collectives(*(*result)->scenario, plan, false))
        if (one.kind == "all_reduce" && one.ranks == ranks) return one;
      return EngineCollective();
    };
    const EngineCollective once = of("manual:dp=2:tp=2", {0, 1}),
                           parts = of("manual:dp=2:tp=2:micro-batches=4", {0, 1}),
                           again = of("manual:dp=2:tp=2:recompute=full", {0, 1});
    // Megatron's: two sums a layer in forward and two in backward.
    const std::int64_t layers = 2, sums = 4 * layers;
    QVERIFY(once.count >= sums);
    QCOMPARE(parts.count, 4 * once.count);
    QVERIFY(std::abs(parts.bytes - once.bytes) <= 1e-9 * once.bytes);
    QCOMPARE(again.count, once.count + 2 * layers);
    const EngineCollective weights = of("manual:dp=2:tp=2", {0, 2}),
                           of_parts = of("manual:dp=2:tp=2:micro-batches=4", {0, 2});
    QCOMPARE(of_parts.count, weights.count);
    QVERIFY(weights.count > 0 && std::abs(of_parts.bytes - weights.bytes) <= 1e-9 * weights.bytes);
  }

  // What DTensor does inside an operator is left out on both sides, and said.
  void what_the_loss_sums_is_told_apart() {
    const auto scenario = llama_on("v100-16gb-1x4");
    const auto result = run("manual:dp=2:tp=2", scenario);
    QVERIFY2(result, result ? "" : result.error().message().c_str());
    const Plan plan = (*result)->plans->sharding(0);
    double of_loss = 0, with = 0, without = 0;
    for (const EngineCollective& one : planned_collectives(*(*result)->scenario, plan, true)) with += one.bytes;
    for (const EngineCollective& one : planned_collectives(*(*result)->scenario, plan, false, &of_loss))
      without += one.bytes;
    QVERIFY(of_loss > 0);
    QVERIFY(std::abs(with - without - of_loss) <= 1e-9 * with);
  }

  void a_report_has_all_that_was_measured_and_nothing_else() {
    const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=128&sequence=32", 16), "v100-16gb-1x4");
    const auto result = run("manual:dp=2:tp=2", scenario);
    QVERIFY(result);
    const Plan plan = (*result)->plans->sharding(0);
    const Engine& engine = *find_engine("pytorch");
    const auto report = compare_engine(engine, *(*result)->scenario, plan, sample_measurement(4),
                                       {point_label(**result, 0), "today", false});
    QVERIFY2(report, report ? "" : report.error().message().c_str());
    QCOMPARE(report->engine, std::string("pytorch 9.9"));
    QCOMPARE(*report->step.measured, 0.3);  // between 0.2 and 0.4
    QVERIFY(std::abs(report->step.q1 - 0.175) < 1e-12 && std::abs(report->step.q3 - 0.425) < 1e-12);
    QCOMPARE(report->step.predicted, (*result)->points[0].time_s);
    QVERIFY(!report->execution.measured && !report->network.measured && report->collectives.empty());
    for (const ComparedValue& value : report->operators) QVERIFY(!value.measured);
    const auto memory = [&](const char* name) -> const ComparedValue& {
      return *std::ranges::find(report->memory, name, &ComparedValue::name);
    };
    QCOMPARE(*memory("parameters").measured, 1000.0);
    QCOMPARE(*memory("peak").measured, 5000.0);
    QVERIFY(!memory("gradients").measured && !memory("activations").measured);
    QVERIFY(report->numerics && !report->numerics->holds());  // of gradients
    QCOMPARE(*report->bytes_sent.measured, 72.0);
    const auto row = [&](const char* kind, std::size_t ranks) -> const ComparedExchange& {
      for (const ComparedExchange& one : report->exchanges)
        if (one.kind == kind && one.ranks.size() == ranks) return one;
      qFatal("no row");
    };
    QVERIFY(row("all_reduce", 2).predicted_bytes > 0);
    QCOMPARE(row("broadcast", 4).predicted_count, std::int64_t(0));  // the plan has none
    QCOMPARE(row("broadcast", 4).measured_bytes, 8.0);
    QVERIFY(std::ranges::find(report->notes, "a note") != report->notes.end());
    SchemaCheck schemas{TURNPOINT_SOURCE_DIR "/resources/schemas"};
    const nlohmann::json document = write_validation(*report);
    QCOMPARE(schemas.check("validation@1", document), std::string());
    const auto again = read_validation(nlohmann::json::parse(document.dump()), "r.json");
    QVERIFY2(again, again ? "" : again.error().message().c_str());
    QCOMPARE(write_validation(*again).dump(), document.dump());
    const std::string markdown = write_validation_markdown(*report);
    for (const char* words : {"| broadcast among 4 ranks 0, 1, 2, 3 | 0 | 8 B |", "measured by pytorch 9.9 on cpu",
                              "Loss 3 in the first of 2 steps, 2 in the last"})
      QVERIFY2(markdown.find(words) != std::string::npos, markdown.c_str());
    QVERIFY(write_validation_csv(*report).find("exchange,\"broadcast among 4 ranks 0, 1, 2, 3\",0,8,8,8,-1,measured") !=
            std::string::npos);
    const auto other = compare_engine(engine, *(*result)->scenario, plan, sample_measurement(2), {});
    QVERIFY(!other && other.error().what == "PyTorch ran 2 ranks, and the plan is for 4 devices");
  }

  void what_a_run_needs() {
    const auto scenario = scenario_on(builtin("gpt2?layers=1&hidden=128&sequence=32", 16), "v100-16gb-1x2",
                                      [](Settings& settings) { settings.optimizer = Optimizer::lamb; });
    const auto result = run("data-parallel", scenario);
    QVERIFY(result);
    const Engine& engine = *find_engine("pytorch");
    const auto refused = [&](const Scenario& of, const std::string& code, const char* words) {
      const auto job = engine_job_of(engine, of, (*result)->plans->sharding(0), "", code, {});
      return !job && job.error().message().find(words) != std::string::npos;
    };
    QVERIFY(refused(*scenario, "", "the optimizer lamb is not run under PyTorch"));
    Scenario adam = *scenario;
    adam.settings.optimizer = Optimizer::adam;
    QVERIFY(refused(adam, "", "--model-code FILE.py:FUNCTION names a function that returns your model"));
    QVERIFY(refused(adam, "model.py", "--model-code takes a file and a function in it"));
    QVERIFY(refused(adam, "/nonexistent/model.py:make", "no such file"));
    const std::string here = std::string(TURNPOINT_SOURCE_DIR) + "/README.md";
    const auto job = engine_job_of(engine, adam, (*result)->plans->sharding(0),
                                   "# a plan\n# Note: one thing, which goes on\n# here.\n# Note: another.\n# Names.\n",
                                   here + ":make", {}, 8);
    QVERIFY2(job, job ? "" : job.error().message().c_str());
    QCOMPARE(job->devices, 2);
    QCOMPARE(job->remarks, std::vector<std::string>({"one thing, which goes on here", "another"}));
    const auto document = nlohmann::json::parse(job->document);
    QCOMPARE(document["function"].get<std::string>(), std::string("make"));
    QCOMPARE(document["most_cpu_ranks"].get<int>(), 8);
    QCOMPARE(document["data"].size(), std::size_t(2));
    for (const auto& data : document["data"]) {
      QCOMPARE(data["shape"], nlohmann::json({16, 32}));
      QCOMPARE(data["labels"].get<bool>(), data["name"] == "labels");
      QVERIFY(data["below"].get<int>() > 1000);  // words
    }
  }
};

QTEST_APPLESS_MAIN(CompareEngineTest)
#include "compare_engine_test.moc"
