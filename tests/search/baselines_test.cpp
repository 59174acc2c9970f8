// SPDX-License-Identifier: Apache-2.0
// The comparison methods: their plans against the independent evaluator, their points against ft's certified frontier.
#include <QtTest>

#include "core/plan/evaluator.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

std::vector<std::pair<std::string, ModelPtr>> models() {
  return {{"mlp", test::mlp()},
          {"residual", test::residual()},
          {"attention", test::attention()},
          {"convolution", test::convolution()}};
}

std::vector<std::string> method_texts() {
  return {"data-parallel",
          "optcnn",
          "tofu",
          "mesh-tensorflow",
          "fsdp",
          "fsdp:zero=2",
          "fsdp:zero=1",
          "fsdp:group=node",
          "megatron",
          "megatron:sequence-parallel",
          "manual",
          "manual:zero=1",
          "manual:tp=2:zero=3"};
}

/// Best time on a staircase at most this much memory.
double best_within(const ResultPtr& ft, std::int64_t memory) {
  double best = INFINITY;
  for (const auto& p : ft->points)
    if (p.memory_bytes <= memory) best = std::min(best, p.time_s);
  return best;
}

}  // namespace

class BaselinesTest : public QObject {
  Q_OBJECT

 private slots:
  void every_plan_evaluates_to_its_point() {
    auto all = models();
    all.emplace_back("gpt2", builtin("gpt2?layers=2&hidden=256&sequence=32", 16));
    for (const auto& [name, model] : all)
      for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2", "v100-16gb-2x2", "a100-80gb-2x8", "v100-16gb-1x6"})
        for (const auto& method : method_texts())
          for (const auto accounting : {Accounting::full, Accounting::paper}) {
            const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
              s.accounting = accounting;
              if (accounting == Accounting::paper) s.precision = Precision::bf16;
            });
            const auto result = run(method, scenario);
            if (!result && result.error().code == ErrorCode::usage) continue;  // megatron on no transformer
            const QString at = QString("%1 on %2 by %3: ").arg(name.c_str(), hardware, method.c_str());
            QVERIFY2(result.has_value(), result ? "" : qPrintable(at + result.error().message().c_str()));
            QVERIFY(!(*result)->points.empty());
            for (std::size_t k = 0; k < (*result)->points.size(); ++k) {
              const auto& point = (*result)->points[k];
              const auto cost = evaluate_plan(*scenario, (*result)->plans->plan(k));
              QVERIFY2(cost.has_value(), cost ? "" : qPrintable(at + cost.error().message().c_str()));
              QVERIFY2(cost->memory_bytes() == point.memory_bytes,
                       qPrintable(at + QString("%1 %2").arg(cost->memory_bytes()).arg(point.memory_bytes)));
              QVERIFY2(close(cost->time_s(), point.time_s),
                       qPrintable(at + QString("%1 %2").arg(cost->time_s()).arg(point.time_s)));
              QVERIFY(close(cost->compute_s(), point.compute_s));
            }
          }
  }

  // All but tofu search a part of what ft searches.
  void no_point_lies_below_ft() {
    for (const auto& [name, model] : models()) {
      for (const char* hardware : {"v100-16gb-2x2", "v100-16gb-1x8"}) {
        const auto scenario = scenario_on(model, hardware);
        const auto ft = run("ft", scenario);
        QVERIFY(ft.has_value() && (*ft)->exact);
        for (const auto& method : method_texts()) {
          if (method == "tofu") continue;
          const auto other = run(method, scenario);
          if (!other && other.error().code == ErrorCode::usage) continue;
          QVERIFY(other.has_value());
          for (const auto& point : (*other)->points)
            QVERIFY2(best_within(*ft, point.memory_bytes) <= point.time_s * (1 + 1e-9),
                     qPrintable(QString("%1 on %2 by %3").arg(name.c_str(), hardware, method.c_str())));
        }
      }
    }
  }
};

QTEST_APPLESS_MAIN(BaselinesTest)
#include "baselines_test.moc"
