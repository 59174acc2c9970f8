// SPDX-License-Identifier: Apache-2.0
// Steps on a CUDA device, which is emulated: its kernels, library calls and memory, whole and partitioned, against the
// unpartitioned step in double by plain loops of the CPU. Ranks of a plan share the device and exchange through it.
#include <QtTest>
#include <random>

#include "core/model/split_loss.h"
#include "core/search/registry.h"
#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/step/cuda/run.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

// Of a tensor's largest element, and of its root mean square (step_float_test has the reasons for the first).
constexpr double kLargest = 5e-4, kTypical = 1e-4;

std::string fault(const Model& model, const Plan& plan, const step::StepOptions& options) {
  const auto run = step::run_step(step::on_cuda(), model, plan, options);
  if (!run) return run.error().message();
  const auto whole = step::run_whole(step::in_double(), model, plan, options);
  if (!whole) return "unpartitioned: " + whole.error().message();
  const auto compared = step::compare(model, plan, *run, *whole);
  if (!compared) return compared.error().message();
  for (std::size_t kind = 0; kind < step::kComparedKinds; ++kind) {
    if (compared->elements[kind] == 0) return "nothing was compared";
    if (!(compared->typical[kind] < kTypical))
      return "differs by " + std::to_string(compared->typical[kind]) + " at " + compared->where_typical;
    if (!(compared->worst[kind] < kLargest))
      return "one differs by " + std::to_string(compared->worst[kind]) + " at " + compared->where;
  }
  if (!(compared->loss < kLargest)) return "loss differs by " + std::to_string(compared->loss);
  std::string where;
  if (step::traffic_error(*run, &where) > 1e-12) return "bytes: " + where;
  return {};
}

}  // namespace

class CudaStepTest : public QObject {
  Q_OBJECT

  static void each_model() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }

 private slots:
  void initTestCase() {
    if (const auto why = test::load_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
    const auto opened = step::open_gpu(0);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
  }

  void whole_steps_data() { each_model(); }
  void whole_steps() {
    QFETCH(int, model);
    const auto network = split_loss(test::step_models()[std::size_t(model)].make());
    for (const auto rule : {step::UpdateRule::sgd, step::UpdateRule::momentum, step::UpdateRule::adam}) {
      step::StepOptions options;
      options.record = true;
      options.rule = rule;
      const std::string wrong = fault(*network, step::whole_plan(*network), options);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  void plans_data() { each_model(); }
  void plans() {
    QFETCH(int, model);
    const auto network = test::step_models()[std::size_t(model)].make();
    int plans = 0;
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2"}) {
      const auto cluster = cluster_preset(hardware);
      Settings settings;
      settings.batch = network->batch;
      const auto scenario = make_scenario(network, *cluster, hardware, settings);
      QVERIFY(scenario.has_value());
      for (const char* method : {"ft:micro-batches=1", "tofu", "fsdp", "megatron", "ft:micro-batches=2"}) {
        const auto choice = choose_method(method);
        QVERIFY(choice.has_value());
        if (!refusal_of(*choice->method, choice->parameters, **scenario).empty()) continue;
        const auto result =
            (*make_searcher(*choice->method, choice->parameters))->run(*scenario, SearchPass::exact, {});
        if (!result || (*result)->points.empty() || !(*result)->plans) continue;
        const std::size_t count = (*result)->points.size();
        for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / 2)) {
          Plan plan = (*result)->plans->sharding(p);
          auto options = test::step_options(settings);
          ModelPtr carried_out = (*scenario)->model;
          if (plan.pipeline) {
            carried_out = plan.pipeline->micro_batch;
            options.micro_batches = plan.pipeline->micro_batches;
            plan.pipeline.reset();
          }
          const std::string wrong = fault(*carried_out, plan, options);
          QVERIFY2(wrong.empty(),
                   (std::string(method) + " on " + hardware + ", point " + std::to_string(p) + ": " + wrong).c_str());
          ++plans;
        }
      }
    }
    QVERIFY(plans > 2);
  }
};

QTEST_APPLESS_MAIN(CudaStepTest)
#include "cuda_step_test.moc"
