// SPDX-License-Identifier: Apache-2.0
// Step jobs on a GPU through the real turnpoint-probe, the GPU being emulated: the part of one device timed by the
// device's clock, all ranks of a plan on one device, and what is said where something is missing.
#include <QFile>
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/cost/operator_cost.h"
#include "core/plan/step_client.h"
#include "core/search/method.h"
#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/step_models.h"
#include "plan/schema_check.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

StepJob job_of(const ScenarioPtr& scenario, const Plan& plan) {
  StepJob job;
  job.model = scenario->model;
  job.plan = plan;
  job.backend = ProbeBackend::cuda;
  const ParameterBytes bytes =
      parameter_bytes(scenario->settings.precision, scenario->settings.optimizer, Accounting::full);
  job.weight_bytes = bytes.weight, job.gradient_bytes = bytes.gradient, job.optimizer_bytes = bytes.optimizer;
  job.optimizer = to_string(scenario->settings.optimizer);
  job.warm_up = 1, job.steps = 3, job.budget_s = 20;
  return job;
}

bool notes_say(const StepMeasurement& m, const char* what) {
  return std::any_of(m.notes.begin(), m.notes.end(),
                     [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

}  // namespace

class CudaProbeTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};
  QByteArray path_;

  ProbeLaunch launch() {
    ProbeLaunch launch;
    launch.program = TURNPOINT_BINARY_DIR "/turnpoint-probe";
    launch.silence_s = 60;
    launch.on_line = [this](const std::string& line) {
      const std::string wrong = schemas_.check("probe-message@1", nlohmann::json::parse(line));
      if (!wrong.empty() && wrong_.empty()) wrong_ = line + ": " + wrong;
    };
    return launch;
  }
  std::string wrong_;
  ScenarioPtr mlp_ = test::scenario_on(test::mlp(12), "v100-16gb-1x2");

 private slots:
  void initTestCase() {
    path_ = qgetenv("LD_LIBRARY_PATH");
    if (const auto why = test::no_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
  }
  void init() { qputenv("LD_LIBRARY_PATH", TURNPOINT_EMULATED_GPU_DIR); }
  void cleanup() {
    qputenv("LD_LIBRARY_PATH", path_);
    qunsetenv("TURNPOINT_EMULATED_GPU_BYTES");
    QVERIFY2(wrong_.empty(), wrong_.c_str());
  }

  void a_slice() {
    for (const auto& model : {test::mlp(12), test::block()}) {
      const auto scenario = test::scenario_on(model, "v100-16gb-2x2");
      const auto result = test::run("ft", scenario);
      StepJob job = job_of(scenario, (*result)->plans->plan((*result)->points.size() / 2));
      job.mode = StepMode::slice;
      job.slice_device = 3;
      std::optional<ProbeHello> hello;
      const auto m = measure_step(launch(), job, {}, &hello);
      QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
      QVERIFY(m->backend == "cuda" && m->mode == StepMode::slice && m->ranks == 1 && m->cores == 1);
      QVERIFY(m->step.samples == 3 && m->step.min_s > 0 && m->step.q1_s <= m->step.q3_s);
      // Exchanges are listed as the plan has them, and never timed.
      QVERIFY(!m->exchanges.empty() && m->planned_bytes > 0 && m->received_bytes == 0);
      for (const auto& exchange : m->exchanges) QVERIFY(!exchange.time);
      QVERIFY(notes_say(*m, "exchanges were not made") && notes_say(*m, "tf32 off"));
      // Every operator but the data's in forward, by the device's clock, and together no more than the step.
      double phases = 0;
      std::size_t forward = 0;
      for (const auto& phase : m->phases) {
        phases += phase.time.median_s;
        forward += phase.phase == StepPhase::forward ? 1 : 0;
        QVERIFY(phase.time.min_s >= 0 && phase.time.samples == 3);
      }
      QVERIFY(forward + 2 >= model->operators.size());
      QVERIFY2(phases > 0 && phases < 2 * m->step.q3_s, qPrintable(QString("%1 of %2").arg(phases).arg(m->step.q3_s)));
      CostBreakdown cost = job.plan.cost;
      QCOMPARE(m->memory.parameters, cost[MemoryPart::parameters]);
      QCOMPARE(m->memory.optimizer, cost[MemoryPart::optimizer]);
      QCOMPARE(m->memory.kept, cost[MemoryPart::activations] + cost[MemoryPart::copies]);
      QVERIFY(m->memory.peak >= m->memory.counted_peak);
    }
  }

  void virtual_devices_prove() {
    const auto result = test::run("ft", mlp_);
    const Plan plan = (*result)->plans->plan(0);
    const auto m = measure_step(launch(), job_of(mlp_, plan), {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(m->ranks == 2 && m->cores == 1 && m->numerics && m->numerics->precision == "fp32");
    QVERIFY(m->numerics->tolerance <= 1e-3 && m->numerics->loss_error < 1e-4 && m->numerics->activation_error < 1e-4 &&
            m->numerics->gradient_error < 1e-4 && m->numerics->update_error < 1e-4);
    QVERIFY(notes_say(*m, "not those of separate devices") && notes_say(*m, "in double on the CPU"));
    QVERIFY(m->planned_bytes > 0 && std::abs(m->received_bytes - m->planned_bytes) < 1e-6 * m->planned_bytes);
    for (const auto& exchange : m->exchanges) QVERIFY(exchange.time);
  }

  void tf32_is_said() {
    const auto result = test::run("data-parallel", mlp_);
    StepJob job = job_of(mlp_, (*result)->plans->plan(0));
    job.precision = ProbePrecision::tf32;
    job.mode = StepMode::slice;
    const auto m = measure_step(launch(), job, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(notes_say(*m, "in tf32"));
  }

  void what_is_missing_is_said() {
    const auto result = test::run("data-parallel", mlp_);
    StepJob job = job_of(mlp_, (*result)->plans->plan(0));
    const auto refused = [&](const char* what) {
      const auto m = measure_step(launch(), job, {});
      if (m) return std::string("nothing");
      if (m.error().code != ErrorCode::device) return "another kind of error: " + m.error().message();
      return m.error().message().find(what) == std::string::npos ? m.error().message() : std::string();
    };
    std::string wrong;
    job.device = 7;
    wrong = refused("there is no GPU 7");
    QVERIFY2(wrong.empty(), wrong.c_str());
    job.device = 0;
    // Little memory: the opening itself, or the step.
    qputenv("TURNPOINT_EMULATED_GPU_BYTES", "1000000");
    wrong = refused("out of memory");
    QVERIFY2(wrong.empty(), wrong.c_str());
    const auto large = test::scenario_on(test::builtin("lenet", 512), "v100-16gb-1x2");
    const auto plans = test::run("data-parallel", large);
    job = job_of(large, (*plans)->plans->plan(0));
    job.mode = StepMode::slice;
    qputenv("TURNPOINT_EMULATED_GPU_BYTES", "72000000");
    wrong = refused("GPU's memory");
    QVERIFY2(wrong.empty(), wrong.c_str());
    // No driver at all.
    qputenv("LD_LIBRARY_PATH", "");
    if (QFile::exists("/proc/driver/nvidia/version")) QSKIP("there is a real driver here");
    wrong = refused("libcuda.so.1");
    QVERIFY2(wrong.empty(), wrong.c_str());
  }

  /// A plan that computes something else is found out on a GPU as well.
  void a_wrong_plan_is_refused() {
    const auto result = test::run("data-parallel", mlp_);
    StepJob job = job_of(mlp_, (*result)->plans->plan(0));
    for (auto& op : job.plan.operators) op.gradient_sync.clear();
    const auto m = measure_step(launch(), job, {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().message().find("not summed") != std::string::npos, m.error().message().c_str());
    QCOMPARE(m.error().code, ErrorCode::bad_input);
  }
};

QTEST_GUILESS_MAIN(CudaProbeTest)
#include "cuda_probe_test.moc"
