// SPDX-License-Identifier: Apache-2.0
// Kernels that are not fused (core/cost/eager_kernels.h) in plans: searches, the evaluator, halves and the simulated
// clock agree on what they cost.
#include <QtTest>

#include "core/plan/evaluator.h"
#include "core/schedule/simulated_points.h"
#include "cost/eager_models.h"
#include "plan/ratio_plans.h"

using namespace turnpoint;
using namespace turnpoint::test;

class EagerPlansTest : public QObject {
  Q_OBJECT

 private slots:
  // gelu and gelu_new differ in nothing else: what one of two alike operators costs is not the other's cost.
  void searches_and_the_evaluator_agree() {
    ModelBuilder b("two activations", "test", 8, 0);
    TensorId x = b.input("x", {8, 256}, {DimName::batch, DimName::channel}, ElementType::f32);
    for (const char* detail : {"gelu", "gelu_new", "gelu", "gelu_new"}) {
      x = b.linear(std::string(detail) + "_in", x, b.parameter("w", {256, 256}));
      const TensorId one[] = {x};
      x = b.elementwise(detail, detail, one, {.flop_per_element = 8, .saves_input = {true}});
    }
    const ModelPtr activations = finished(b, x);
    for (const ModelPtr& model : {activations, llama(), llama(R"(, "tie_word_embeddings": true)", 8)})
      for (const char* method : {"ft", "ft:micro-batches=2", "data-parallel", "fsdp", "manual:dp=2:tp=2"}) {
        const auto scenario = scenario_on(model, "a100-80gb-1x4", eager_in_16_bits);
        const auto result = run(method, scenario);
        if (!result && std::string(method) == "manual:dp=2:tp=2") {
          QCOMPARE(model, activations);  // nothing that a tensor group could split
          continue;
        }
        QVERIFY2(result, method);
        const auto usual = run(method, scenario_on(model, "a100-80gb-1x4", in_16_bits));
        QVERIFY2(usual, method);
        QVERIFY2((*result)->points.back().time_s > (*usual)->points.back().time_s, method);
        const std::size_t points = (*result)->points.size();
        for (const std::size_t k : {std::size_t(0), points / 3, points / 2, points - 1}) {
          const auto plan = std::get<PlanPtr>((*result)->plans->plan(k));
          const auto cost = evaluate_plan(*(*result)->scenario, *plan);
          QVERIFY2(cost, method);
          QVERIFY2(close(cost->time_s(), (*result)->points[k].time_s),
                   qPrintable(QString("%1 %2 %3 %4 %5")
                                  .arg(method)
                                  .arg(k)
                                  .arg(model->name.c_str())
                                  .arg(cost->time_s())
                                  .arg((*result)->points[k].time_s)));
          QCOMPARE(cost->memory_bytes(), (*result)->points[k].memory_bytes);
        }
      }
  }

  void halves_agree() {
    for (const auto& [method, precision] : {std::pair{"data-parallel", Precision::fp32},
                                            {"data-parallel", Precision::bf16},
                                            {"accpar", Precision::fp32},
                                            {"hypar", Precision::bf16}}) {
      const auto scenario = scenario_on(llama(), "v100-16gb-1x2", [of = precision](Settings& s) {
        s.precision = of;
        s.kernels = Kernels::eager, s.collectives = Collectives::rings, s.bucket_bytes = 0;
        s.attention = Attention::unfused, s.split_loss = false;
      });
      const auto result = run(method, scenario);
      QVERIFY2(result, method);
      Plan plan = (*result)->plans->sharding(0);
      auto made = evaluate_ratio_plan(*scenario, in_halves(*scenario->model, plan));
      QVERIFY2(made, method);
      for (const ComputePart part : {ComputePart::forward, ComputePart::backward})
        QVERIFY2(close(made->cost[part], plan.cost[part]), method);
      if (std::string(method) == "data-parallel") QCOMPARE(made->cost.memory_bytes(), plan.cost.memory_bytes());
    }
  }

  // What stands between kernels is held on the simulated clock as well.
  void peaks_hold_it() {
    const auto peak = [](const std::function<void(Settings&)>& change) {
      const auto scenario = scenario_on(llama("", 64), "a100-80gb-1x1", change);
      const auto result = run("data-parallel", scenario);
      const auto curve = simulated_curve(**result, 1, {});
      return curve->cost.front().memory_bytes;
    };
    const std::int64_t tokens = 64 * 64;
    const auto usual = peak([](Settings&s) { s.precision = Precision::bf16; }), now = peak(eager_in_16_bits);
    // At the loss: five norms of 512 channels, two activations of 1,024 and the loss itself.
    QCOMPARE(now - usual, tokens * (5 * 512 * 4 + 2 * 1024 * 2 + 1000 * 8));
  }
};

QTEST_APPLESS_MAIN(EagerPlansTest)
#include "eager_plans_test.moc"
