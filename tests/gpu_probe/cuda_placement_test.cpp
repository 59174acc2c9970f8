// SPDX-License-Identifier: Apache-2.0
// Placed steps on a CUDA device, which is emulated: all ranks share it, against the unpartitioned step in double by
// plain loops of the CPU; and the real turnpoint-probe, which proves and times them so.
#include <fmt/format.h>
#include <QtTest>
#include <random>

#include "core/probe/step_client.h"
#include "core/validation/compare_placement.h"
#include "core/validation/placement_step.h"
#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/recurrent_models.h"
#include "gpu_probe/step/cuda/run.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step_checks.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

// Of a tensor's largest element, and of its root mean square, as cuda_step_test has them.
constexpr double kLargest = 5e-4, kTypical = 1e-4;

/// What is wrong with a placed step on the device; empty: nothing.
std::string fault(const StepJob& job, const step::StepOptions& options) {
  const auto run = step::run_placement(step::on_cuda(), job, options, 1);
  if (!run) return run.error().message();
  const auto whole = step::run_whole(step::in_double(), *job.model, job.plan, options);
  if (!whole) return "unpartitioned: " + whole.error().message();
  const auto compared = step::compare(*job.model, job.plan, run->step, *whole);
  if (!compared) return compared.error().message();
  if (auto all = step::check_all_computed(job, *compared, *whole); !all) return all.error().message();
  for (std::size_t kind = 0; kind < step::kComparedKinds; ++kind)
    if (!(compared->typical[kind] < kTypical) || !(compared->worst[kind] < kLargest))
      return "differs by " + std::to_string(compared->worst[kind]) + " at " + compared->where;
  if (!(compared->loss < kLargest)) return "loss differs by " + std::to_string(compared->loss);
  // What CPU ranks receive has been compared with the graph's edges (step_placement_test).
  const auto here = step::run_placement(step::in_double(), job, options);
  if (!here || here->received_bytes != run->received_bytes) return "other bytes than CPU ranks";
  return {};
}

/// The same in bf16: off by what rounding explains, and by some of it.
std::string fault_in_bf16(const StepJob& job, step::StepOptions options) {
  options.record = true;
  if (auto fine = step::compute_on_gpu_in(ProbePrecision::bf16); !fine) return fine.error().message();
  const auto run = step::run_placement(step::on_cuda(), job, options, 1);
  (void)step::compute_on_gpu_in(ProbePrecision::fp32);
  if (!run) return run.error().message();
  const auto whole = step::run_whole(step::in_double(), *job.model, job.plan, options);
  if (!whole) return "unpartitioned: " + whole.error().message();
  const auto compared = step::compare(*job.model, job.plan, run->step, *whole);
  if (!compared) return compared.error().message();
  if (auto all = step::check_all_computed(job, *compared, *whole); !all) return all.error().message();
  const StepRounding off = step::rounding_of(*job.model, options, run->step, *whole, *compared);
  if (!off.holds())
    return fmt::format("loss off by {} of {}, gradients by {} of {} at {}", off.loss_error, off.loss_tolerance,
                       off.gradient_error, off.gradient_tolerance, off.where);
  if (off.gradient_error < 1e-5) return "nothing was rounded";
  const auto here = step::run_placement(step::in_double(), job, options);
  if (!here || here->received_bytes != run->received_bytes) return "other bytes than CPU ranks";
  return {};
}

void in_halves(Settings& settings) { settings.precision = Precision::bf16; }

}  // namespace

class CudaPlacementTest : public QObject {
  Q_OBJECT

  static StepChoice choice() {
    StepChoice made;
    made.backend = ProbeBackend::cuda;
    made.warm_up = 1, made.steps = 3, made.budget_s = 30;
    return made;
  }

 private slots:
  void initTestCase() {
    if (const auto why = test::load_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
    const auto opened = step::open_gpu(0);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
  }

  void by_chance_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<bool>("unrolled");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i << false;
    for (int i = 0; i < int(test::recurrent_models().size()); ++i)
      QTest::newRow(test::recurrent_models()[std::size_t(i)].name) << i << true;
  }
  /// Layers kept whole, and every task anywhere.
  void by_chance() {
    QFETCH(int, model);
    QFETCH(bool, unrolled);
    const auto& models = unrolled ? test::recurrent_models() : test::step_models();
    std::mt19937_64 random(static_cast<std::uint64_t>(model) + 11);
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4"}) {
      const auto scenario = test::scenario_on(models[std::size_t(model)].make(), hardware);
      for (const bool whole_layers : {false, true}) {
        const bool ordered = whole_layers == (scenario->cluster->devices() == 2);
        const auto plan = test::placement_by_chance(*scenario, random, ordered, unrolled, whole_layers);
        const auto job = step_job_of(*scenario, plan, choice());
        QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
        const std::string wrong = fault(*job, test::step_options(scenario->settings));
        QVERIFY2(wrong.empty(), (std::string(hardware) + ": " + wrong).c_str());
      }
    }
  }

  void in_bf16_data() { by_chance_data(); }
  void in_bf16() {
    QFETCH(int, model);
    QFETCH(bool, unrolled);
    const auto& models = unrolled ? test::recurrent_models() : test::step_models();
    std::mt19937_64 random(static_cast<std::uint64_t>(model) + 23);
    for (const char* hardware : {"a100-80gb-1x2", "a100-80gb-1x4"}) {
      const auto scenario = test::scenario_on(models[std::size_t(model)].make(), hardware, in_halves);
      const bool whole_layers = scenario->cluster->devices() == 2;
      const auto plan = test::placement_by_chance(*scenario, random, true, unrolled, whole_layers);
      const auto job = step_job_of(*scenario, plan, choice());
      QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
      QVERIFY(job->precision == ProbePrecision::bf16 && job->floating_bytes == 2);
      const std::string wrong = fault_in_bf16(*job, test::step_options(scenario->settings));
      QVERIFY2(wrong.empty(), (std::string(hardware) + ": " + wrong).c_str());
    }
  }

  /// Later steps go on with the weights of the ones before, though rooms of transfers are written to again.
  void several_steps() {
    const auto scenario = test::scenario_on(test::recurrent_stack(4), "v100-16gb-1x3");
    std::mt19937_64 random(3);
    const auto job = step_job_of(*scenario, test::placement_by_chance(*scenario, random, true, true, false), choice());
    const auto options = test::step_options(scenario->settings);
    const auto third = step::run_placement(step::on_cuda(), *job, options, 3),
               first = step::run_placement(step::on_cuda(), *job, options);
    const auto here = step::run_placement(step::in_double(), *job, options, 3);
    QVERIFY(third && first && here);
    QVERIFY(std::abs(third->step.loss - here->step.loss) < 1e-4 * std::abs(here->step.loss));
    QVERIFY(std::abs(third->step.loss - first->step.loss) > 1e-6);
  }

  void through_the_probe_data() {
    QTest::addColumn<bool>("unrolled");
    QTest::addColumn<bool>("halves");
    QTest::newRow("whole") << false << false;
    QTest::newRow("steps") << true << false;
    QTest::newRow("whole, bf16") << false << true;
    QTest::newRow("steps, bf16") << true << true;
  }
  void through_the_probe() {
    QFETCH(bool, unrolled);
    QFETCH(bool, halves);
    if (test::on_real_gpu()) QSKIP("two GPUs are emulated");
    const auto scenario = test::scenario_on(unrolled ? test::recurrent_stack(3) : test::mlp(12), "a100-80gb-1x3",
                                            [halves](Settings& settings) {
                                              if (halves) in_halves(settings);
                                            });
    std::mt19937_64 random(8);
    const auto plan = test::placement_by_chance(*scenario, random, false, unrolled, halves);
    const auto job = step_job_of(*scenario, plan, choice());
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    const QByteArray path = qgetenv("LD_LIBRARY_PATH");
    qputenv("LD_LIBRARY_PATH", TURNPOINT_EMULATED_GPU_DIR);
    // Fewer GPUs than devices: all are virtual ones on the first.
    qputenv("TURNPOINT_EMULATED_GPUS", "2");
    const auto m = measure_step({TURNPOINT_BINARY_DIR "/turnpoint-probe", 60, 0.4, {}}, *job, {});
    StepJob broken = *job;
    broken.placement->transfers.clear();
    const auto refused = measure_step({TURNPOINT_BINARY_DIR "/turnpoint-probe", 60, 0.4, {}}, broken, {});
    qputenv("LD_LIBRARY_PATH", path);
    qunsetenv("TURNPOINT_EMULATED_GPUS");
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(m->backend == "cuda" && m->ranks == 3 && m->cores == 1 && m->step.samples == 3 && m->step.min_s > 0);
    QVERIFY(m->numerics && m->numerics->precision == "fp32" && m->numerics->tolerance <= 1e-3);
    QVERIFY(std::max({m->numerics->loss_error, m->numerics->activation_error, m->numerics->gradient_error,
                      m->numerics->update_error}) < 1e-4);
    QCOMPARE(m->numerics->rounding.has_value(), halves);
    QVERIFY(!halves || m->numerics->rounding->holds());
    QVERIFY(std::any_of(m->notes.begin(), m->notes.end(),
                        [](const std::string& note) { return note.find("virtual devices") != std::string::npos; }));
    QVERIFY(m->received_bytes == m->planned_bytes && m->planned_bytes > 0);
    double busy = 0;
    for (const auto& task : m->tasks) busy += task.time.median_s;
    QVERIFY(busy > 0);
    std::int64_t persistent = 0;
    for (const auto& device : m->devices) {
      QVERIFY(device.peak >= device.persistent);
      persistent += device.persistent;
    }
    for (const auto bytes : plan.graph->persistent_bytes) persistent -= bytes;
    QCOMPARE(persistent, std::int64_t(0));
    QVERIFY(compare_placement(*scenario, plan, *m, {"placed", "", false}).has_value());
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().message().find("no transfer brings") != std::string::npos,
             refused.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(CudaPlacementTest)
#include "cuda_placement_test.moc"
