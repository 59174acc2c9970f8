// SPDX-License-Identifier: Apache-2.0
// Reports of ratio plans' steps with made-up measurements, and what of such plans is refused.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/validation/compare_ratio.h"
#include "core/validation/ratio_step.h"
#include "core/validation/run_needs.h"
#include "core/validation/validate_plans.h"
#include "plan/ratio_plans.h"
#include "plan_io/schema_check.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

Spread lasting(double seconds) { return {seconds, seconds, seconds, seconds, 5}; }

/// What a machine says that is `slower` times as slow as predicted.
StepMeasurement measured_ratio(const RatioPlan& plan, double slower) {
  StepMeasurement m;
  m.backend = "cpu";
  m.ranks = m.cores = plan.devices();
  m.step = lasting(plan.cost.time_s() * slower);
  for (const auto& item : plan.operators) {
    CostBreakdown cost = item.cost;
    for (const auto& [phase, part] : {std::pair{StepPhase::forward, ComputePart::forward},
                                      {StepPhase::backward, ComputePart::backward},
                                      {StepPhase::update, ComputePart::update}})
      if (cost[part] > 0) m.phases.push_back({item.op, phase, lasting(cost[part] * slower)});
  }
  using Kind = MeasuredMove::Kind;
  for (const auto& exchange : plan.exchanges)
    for (const Kind kind : {Kind::activation, Kind::gradient})
      m.moves.push_back({kind, exchange.tensor, exchange.producer, exchange.all_bytes / 2, exchange.all_bytes,
                         lasting(exchange.seconds * slower / 2)});
  for (const auto& exchange : plan.weights)
    m.moves.push_back({Kind::weight_sum, TensorId(0), exchange.producer, exchange.all_bytes, exchange.all_bytes,
                       lasting(exchange.seconds * slower)});
  for (const auto& move : m.moves) m.received_bytes += move.once_bytes;
  for (std::size_t d = 0; d < plan.device_memory.size(); ++d) {
    m.devices.push_back({0, plan.device_memory[d], lasting(plan.device_compute_s[d] * slower)});
    m.memory.peak = std::max(m.memory.peak, plan.device_memory[d]);
  }
  return m;
}

}  // namespace

class CompareRatioTest : public QObject {
  Q_OBJECT
  const ScenarioPtr scenario_ = test::scenario_on(test::attention(), "v100-16gb-1x1+a100-40gb-1x2");

  ResultPtr searched() const {
    auto result = test::run("accpar", scenario_);
    if (!result) qFatal("%s", result.error().message().c_str());
    return *result;
  }
  /// By chance, so that tensors and weights of all kinds travel.
  RatioPlanPtr plan() const {
    std::mt19937_64 random(11);
    auto made = evaluate_ratio_plan(*scenario_, test::RandomRatioPlan(random, *scenario_).plan());
    if (!made) qFatal("%s", made.error().message().c_str());
    return std::make_shared<const RatioPlan>(std::move(*made));
  }

 private slots:
  void a_machine_as_predicted_and_one_twice_as_slow() {
    const auto planned = plan();
    QVERIFY(!planned->exchanges.empty() && !planned->weights.empty());
    for (const double slower : {1.0, 2.0}) {
      const auto report = compare_ratio(*scenario_, *planned, measured_ratio(*planned, slower), {"accpar", "", false});
      QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
      const auto fine = [&](const ComparedValue& value) {
        return value.measured && (value.predicted == 0 || std::abs(*value.error() - (1 / slower - 1)) < 1e-9);
      };
      for (const auto& value : {report->step, report->execution, report->network})
        QVERIFY2(fine(value), value.name.c_str());
      for (const auto* list : {&report->operators, &report->collectives, &report->phases, &report->devices})
        for (const auto& value : *list) QVERIFY2(fine(value), value.name.c_str());
      QCOMPARE(report->devices.size(), std::size_t(3));
      QCOMPARE(report->devices[1].predicted, planned->device_compute_s[1]);
      QVERIFY(std::abs(report->execution.predicted - planned->cost.compute_s()) < 1e-12);
      for (const auto& value : report->memory) QCOMPARE(*value.measured, value.predicted);
      QCOMPARE(*report->bytes_sent.measured, report->bytes_sent.predicted);
      double all = 0;
      for (const auto* list : {&planned->exchanges, &planned->weights})
        for (const auto& exchange : *list) all += exchange.all_bytes;
      QVERIFY(std::abs(report->bytes_sent.predicted - all) < 1e-6 * all);
    }
  }

  void written_and_read() {
    const auto planned = plan();
    const auto report = compare_ratio(*scenario_, *planned, measured_ratio(*planned, 1.5), {"accpar", "", false});
    QVERIFY(report.has_value());
    const auto document = write_validation(*report);
    test::SchemaCheck schemas{TURNPOINT_SOURCE_DIR "/resources/schemas"};
    QCOMPARE(schemas.check("validation@1", document), std::string());
    QCOMPARE(document["kind"].get<std::string>(), std::string("ratio"));
    const auto again = read_validation(document, "report");
    QVERIFY(again.has_value() && again->ratio && !again->placement && again->by_device());
    QCOMPARE(write_validation(*again), document);
    QVERIFY(write_validation_csv(*report).find("device,computing of device 2,") != std::string::npos);
    QVERIFY(write_validation_markdown(*report).find("| computing of device 2 |") != std::string::npos);
  }

  // What came otherwise than the plan counts is told, and so is what several devices of a half all got.
  void other_bytes() {
    const auto planned = plan();
    StepMeasurement m = measured_ratio(*planned, 1);
    const auto has = [&](const StepMeasurement& measured, const char* what) {
      const auto report = compare_ratio(*scenario_, *planned, measured, {});
      if (!report) qFatal("%s", report.error().message().c_str());
      return std::any_of(report->notes.begin(), report->notes.end(),
                         [&](const std::string& note) { return note.find(what) != std::string::npos; });
    };
    QVERIFY(!has(m, "brought other bytes"));
    QVERIFY(has(m, "over all devices"));
    m.moves.front().once_bytes += 4;
    m.received_bytes += 4;
    QVERIFY(has(m, "1 of "));
    QVERIFY(has(m, "brought other bytes"));
    m.received_bytes += 4;
    QVERIFY(!compare_ratio(*scenario_, *planned, m, {}));
    m = measured_ratio(*planned, 1);
    m.devices.pop_back();
    QVERIFY(!compare_ratio(*scenario_, *planned, m, {}));
    QVERIFY(!compare_ratio(*scenario_, *planned, {}, {}));
  }

  void jobs() {
    const auto planned = plan();
    StepChoice choice;
    choice.slow = {1, 2};
    const auto job = step_job_of(*scenario_, *planned, choice);
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    QCOMPARE(job->devices(), 3);
    QCOMPARE(job->slow, choice.slow);
    QCOMPARE(job->ratio->order, planned->order);
    QCOMPARE(job->ratio->cuts.size(), planned->cuts.size());
    for (std::size_t c = 0; c < planned->cuts.size(); ++c)
      for (std::size_t o = 0; o < planned->cuts[c].share.size(); ++o) {
        QCOMPARE(job->ratio->cuts[c].share[o].loop, planned->cuts[c].share[o].loop);
        QCOMPARE(job->ratio->cuts[c].share[o].first, planned->cuts[c].share[o].first);
      }
    const auto refused = [&](const StepChoice& given, const char* why) {
      const auto made = step_job_of(*scenario_, *planned, given);
      QVERIFY2(!made && made.error().what.find(why) != std::string::npos, made ? "" : made.error().what.c_str());
      QCOMPARE(made.error().code, ErrorCode::usage);
    };
    choice.slow = {1, 1, 1, 2};
    refused(choice, "rank 3 is to be slower, and there are ranks 0 to 2");
    choice.slow.clear(), choice.mode = StepMode::slice;
    refused(choice, "one device's part alone cannot be run of a ratio plan");
    choice.mode = StepMode::ranks, choice.backend = ProbeBackend::cuda;
    refused(choice, "runs on CPU ranks alone so far");
    Scenario layered = *scenario_;
    layered.settings.optimizer = Optimizer::lars;
    const auto by_norms = step_job_of(layered, *planned, StepChoice{});
    QVERIFY(by_norms && by_norms->optimizer == "lars");
    // Ranks of other plans have equal parts, all as fast as each other.
    const auto equal = test::run("data-parallel", test::scenario_on(test::mlp(), "v100-16gb-1x2"));
    QVERIFY(equal.has_value());
    choice = {};
    choice.slow = {2};
    const auto sharding = step_job_of(*(*equal)->scenario, (*equal)->plans->plan(0), choice);
    QVERIFY(!sharding && sharding.error().what.find("in ratio plans alone") != std::string::npos);
  }

  // A slow rank makes the whole step slow; memory is that of all devices.
  void needs() {
    const auto planned = plan();
    StepChoice choice;
    const HostRoom host{std::int64_t(1) << 40, 3, nullptr};
    const auto fast = run_needs(*scenario_, *planned, choice, host);
    QVERIFY(fast.has_value());
    CostBreakdown cost = planned->cost;
    QVERIFY(std::abs(fast->step_s - cost.time_s()) < 1e-12);
    choice.slow = {1, 1, 4};
    const auto slow = run_needs(*scenario_, *planned, choice, host);
    QVERIFY(slow && std::abs(slow->step_s - 4 * cost.compute_s() - cost.network_s()) < 1e-12);
    double bytes = 0;
    for (const std::int64_t of : planned->device_memory) bytes += double(of);
    QCOMPARE(slow->ranks_bytes, bytes);
    QVERIFY(!is_preset("local:1+local:1@0.5") && !is_preset("local:2") && is_preset("local:1+v100-16gb-1x2"));
  }

  void nothing_is_calibrated() {
    const auto result = searched();
    const StepRunner runner = [&](const StepJob&, const RunContext&) -> Expected<StepMeasurement> {
      return measured_ratio(*std::get<RatioPlanPtr>(result->plans->plan(0)), 1);
    };
    std::vector<ValidatedPlan> plans;
    auto validated = validate_point(*result, 0, {}, "", runner, {});
    QVERIFY2(validated.has_value(), validated ? "" : validated.error().message().c_str());
    QVERIFY(validated->report.ratio);
    plans.push_back(std::move(*validated));
    const auto made = calibrate_plans(*scenario_, plans);
    QVERIFY(!made && made.error().what.find("calibrate no profile") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(CompareRatioTest)
#include "compare_ratio_test.moc"
