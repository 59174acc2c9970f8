// SPDX-License-Identifier: Apache-2.0
// Step jobs on a GPU through the real turnpoint-probe, the GPU being emulated: the part of one device timed by the
// device's clock, all ranks of a plan on one device, and what is said where something is missing.
#include <QFile>
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/cost/operator_cost.h"
#include "core/probe/step_client.h"
#include "core/search/method/method.h"
#include "core/validation/compare.h"
#include "core/validation/step_of.h"
#include "gpu_probe/emulated_gpu/probe.h"
#include "gpu_probe/step_jobs.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

StepJob on_gpu(const ScenarioPtr& scenario, const Plan& plan) {
  StepJob job = test::job_of(scenario, plan);
  job.backend = ProbeBackend::cuda;
  return job;
}

}  // namespace

class CudaProbeTest : public QObject {
  Q_OBJECT
  std::optional<test::EmulatedProbe> gpu_;

  ProbeLaunch launch() { return gpu_->launch(); }
  ScenarioPtr mlp_ = test::scenario_on(test::mlp(12), "v100-16gb-1x2");

 private slots:
  void initTestCase() {
    if (const auto why = test::no_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
  }
  void init() { gpu_.emplace(); }
  void cleanup() {
    const std::string wrong = gpu_ ? gpu_->wrong() : "";
    gpu_.reset();
    QVERIFY2(wrong.empty(), wrong.c_str());
  }

  void a_slice() {
    for (const auto& model : {test::mlp(12), test::block()}) {
      const auto scenario = test::scenario_on(model, "v100-16gb-2x2");
      const auto result = test::run("ft:micro-batches=1", scenario);
      StepJob job = on_gpu(scenario, (*result)->plans->sharding((*result)->points.size() / 2));
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
      QVERIFY(test::notes_say(*m, "exchanges were not made") && test::notes_say(*m, "tf32 off"));
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
    const auto result = test::run("ft:micro-batches=1", mlp_);
    const Plan plan = (*result)->plans->sharding(0);
    const auto m = measure_step(launch(), on_gpu(mlp_, plan), {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(m->ranks == 2 && m->cores == 1 && m->numerics && m->numerics->precision == "fp32");
    QVERIFY(m->numerics->tolerance <= 1e-3 && m->numerics->loss_error < 1e-4 && m->numerics->activation_error < 1e-4 &&
            m->numerics->gradient_error < 1e-4 && m->numerics->update_error < 1e-4);
    QVERIFY(test::notes_say(*m, "not those of separate devices") && test::notes_say(*m, "in double on the CPU"));
    QVERIFY(m->planned_bytes > 0 && std::abs(m->received_bytes - m->planned_bytes) < 1e-6 * m->planned_bytes);
    for (const auto& exchange : m->exchanges) QVERIFY(exchange.time);
  }

  void tf32_is_said() {
    const auto result = test::run("data-parallel", mlp_);
    StepJob job = on_gpu(mlp_, (*result)->plans->sharding(0));
    job.precision = ProbePrecision::tf32;
    job.mode = StepMode::slice;
    const auto m = measure_step(launch(), job, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(test::notes_say(*m, "in tf32"));
  }

  void bf16_holds_what_the_plan_says_data() {
    QTest::addColumn<ModelPtr>("model");
    for (const auto& model : test::step_models()) QTest::newRow(model.name) << model.make();
    QTest::newRow("LeNet") << test::builtin("lenet", 16);
  }
  /// Memory of every kind and at its peak, bytes sent, and what rounding makes of the numbers.
  void bf16_holds_what_the_plan_says() {
    QFETCH(ModelPtr, model);
    for (const char* hardware : {"a100-80gb-1x1", "a100-80gb-1x2"}) {
      const auto scenario = test::scenario_on(model, hardware, [](Settings& settings) {
        settings.precision = Precision::bf16;
        settings.loss = LossPrecision::as_activations;  // as the probe's kernels have it
      });
      const auto result = test::run("ft:micro-batches=1", scenario);
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      for (const std::size_t point : std::set<std::size_t>{0, (*result)->points.size() - 1}) {
        const Plan plan = (*result)->plans->sharding(point);
        StepChoice choice;
        choice.backend = ProbeBackend::cuda;
        choice.warm_up = 1, choice.steps = 3;
        const auto job = step_job_of(*scenario, plan, choice);
        QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
        const auto m = measure_step(launch(), *job, {});
        QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
        CostBreakdown cost = plan.cost;
        QCOMPARE(m->memory.parameters, cost[MemoryPart::parameters]);
        QCOMPARE(m->memory.gradients, cost[MemoryPart::gradients]);
        QCOMPARE(m->memory.optimizer, cost[MemoryPart::optimizer]);
        QCOMPARE(m->memory.kept, cost[MemoryPart::activations] + cost[MemoryPart::copies]);
        QVERIFY(std::abs(m->received_bytes - m->planned_bytes) <= 1e-9 * m->planned_bytes);
        // The allocator rounds each of the small models' tensors, a few hundred bytes, up to 64.
        const auto predicted = serial_peak(*scenario, plan);
        QVERIFY(predicted.has_value());
        const bool small = model->operators.size() > 0 && *predicted < 200'000;
        const double off = double(m->memory.peak) - double(*predicted),
                     allowed = small ? 64.0 * 4 * double(model->operators.size()) + 0.05 * double(*predicted)
                                     : 0.01 * double(*predicted);
        QVERIFY2(std::abs(off) <= allowed,
                 qPrintable(QString("predicted %1, held %2").arg(*predicted).arg(m->memory.peak)));
        QVERIFY(m->numerics && m->numerics->precision == "fp32" && m->numerics->gradient_error < 1e-4);
        QVERIFY(m->numerics->rounding && m->numerics->rounding->gradient_error > 1e-4);
        QVERIFY2(m->numerics->rounding->holds(), m->numerics->rounding->where.c_str());
        QVERIFY(test::notes_say(*m, "tensors in bf16") && !test::notes_say(*m, "tf32"));
      }
    }
  }

  void convolutions_without_cudnn_are_said() {
    const auto scenario = test::scenario_on(test::convolution(6), "a100-80gb-1x1",
                                            [](Settings& settings) { settings.precision = Precision::bf16; });
    StepJob job = on_gpu(scenario, (*test::run("ft:micro-batches=1", scenario))->plans->sharding(0));
    job.precision = ProbePrecision::bf16;
    const auto with = measure_step(launch(), job, {});
    qputenv("TURNPOINT_EMULATED_GPU_NO_CONVOLUTIONS", "1");
    const auto without = measure_step(launch(), job, {});
    QVERIFY2(with && without, without ? "" : without.error().message().c_str());
    QVERIFY(!test::notes_say(*with, "cuDNN does not take") && test::notes_say(*without, "cuDNN does not take"));
    QVERIFY(without->numerics->rounding && without->numerics->rounding->holds());
  }

  /// Older generations have no matrix units for it.
  void bf16_is_refused_where_it_is_missing() {
    qputenv("TURNPOINT_EMULATED_GPU_MAJOR", "7");
    const auto result = test::run("data-parallel", mlp_);
    StepJob job = on_gpu(mlp_, (*result)->plans->sharding(0));
    job.precision = ProbePrecision::bf16;
    for (const auto mode : {StepMode::slice, StepMode::ranks}) {
      job.mode = mode;
      const auto m = measure_step(launch(), job, {});
      QVERIFY(!m.has_value());
      QVERIFY2(m.error().message().find("does not multiply in bf16, which needs sm_80") != std::string::npos,
               m.error().message().c_str());
    }
  }

  void what_is_missing_is_said() {
    const auto result = test::run("data-parallel", mlp_);
    StepJob job = on_gpu(mlp_, (*result)->plans->sharding(0));
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
    job = on_gpu(large, (*plans)->plans->sharding(0));
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
    StepJob job = on_gpu(mlp_, (*result)->plans->sharding(0));
    for (auto& op : job.plan.operators) op.parameters.clear();
    const auto m = measure_step(launch(), job, {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().message().find("not summed") != std::string::npos, m.error().message().c_str());
    QCOMPARE(m.error().code, ErrorCode::bad_input);
  }
};

QTEST_GUILESS_MAIN(CudaProbeTest)
#include "cuda_probe_test.moc"
