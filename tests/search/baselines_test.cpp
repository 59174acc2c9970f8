// SPDX-License-Identifier: Apache-2.0
// The comparison methods: their plans against the independent evaluator, their points against ft's certified frontier.
#include <QtTest>
#include <algorithm>
#include <array>

#include "core/plan/beyond_switches.h"
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
              const auto cost = evaluate_plan(*scenario, (*result)->plans->sharding(k));
              QVERIFY2(cost.has_value(), cost ? "" : qPrintable(at + cost.error().message().c_str()));
              QVERIFY2(cost->memory_bytes() == point.memory_bytes,
                       qPrintable(at + QString("%1 %2").arg(cost->memory_bytes()).arg(point.memory_bytes)));
              QVERIFY2(close(cost->time_s(), point.time_s),
                       qPrintable(at + QString("%1 %2").arg(cost->time_s()).arg(point.time_s)));
              QVERIFY(close(cost->compute_s(), point.compute_s));
            }
          }
  }

  // All but tofu's stored-once tensors are a part of what ft searches under the same switches, as long as they hand
  // axes out in its order (resources/manual/costs.md, 1). With the switches off, tofu is, too, and what is not says so.
  void no_point_that_stays_within_the_switches_lies_below_ft() {
    std::array<int, 2> orders{};
    for (const bool sharding : {true, false}) {
      for (const auto& [name, model] : models()) {
        for (const char* hardware : {"v100-16gb-2x2", "v100-16gb-1x8"}) {
          const auto scenario = scenario_on(
              model, hardware, [&](Settings& s) { s.update_sharding = s.recompute = s.offload = sharding; });
          const auto ft = run("ft:micro-batches=1", scenario);
          QVERIFY(ft.has_value() && (*ft)->exact);
          for (const auto& method : method_texts()) {
            if (method == "tofu" && sharding) continue;
            const auto other = run(method, scenario);
            if (!other && other.error().code == ErrorCode::usage) continue;
            QVERIFY(other.has_value());
            if (!beyond_switches(**other).empty()) continue;
            for (std::size_t k = 0; k < (*other)->points.size(); ++k) {
              const auto& point = (*other)->points[k];
              const bool in_order = hands_axes_out_in_order(*scenario->model, (*other)->plans->sharding(k));
              // Another order may spare a permutation: no more than a collective or two.
              QVERIFY2(best_within(**ft, point.memory_bytes) <= point.time_s * (in_order ? 1 + 1e-9 : 1.1),
                       qPrintable(QString("%1 on %2 by %3").arg(name.c_str(), hardware, method.c_str())));
              orders[in_order]++;
            }
          }
        }
      }
    }
    QVERIFY(orders[true] > 100 && orders[true] > orders[false]);
  }

  // fsdp is nothing without sharded updates; a split may ask for them. Their points say what they were allowed.
  void what_goes_beyond_the_switches_says_so() {
    const auto off =
        scenario_on(test::attention(), "v100-16gb-1x4", [](Settings& s) { s.update_sharding = s.recompute = false; });
    for (const char* method : {"fsdp", "fsdp:zero=1", "manual:dp=4:zero=1"}) {
      const auto result = run(method, off);
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      QVERIFY2(beyond_switches(**result) == std::vector<std::string>{"update-sharding"}, method);
      QVERIFY((*result)->notes.back().find("shards the weight update") != std::string::npos);
    }
    for (const char* method : {"ft", "tofu", "data-parallel", "optcnn", "mesh-tensorflow", "megatron", "manual:dp=4"}) {
      const auto result = run(method, off);
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      QVERIFY2(beyond_switches(**result).empty(), method);
    }
    const auto on = run("fsdp", scenario_on(test::attention(), "v100-16gb-1x4"));
    QVERIFY(on.has_value() && beyond_switches(**on).empty() && (*on)->notes.empty());
  }

  // Every built-in network, made small: the property of the shipped studies (fidelity to the papers hangs on it).
  void no_builtin_network_has_a_marker_below_its_certified_bound() {
    const std::vector<std::pair<std::string, std::int64_t>> names{{"rnn?layers=2&hidden=256", 16},
                                                                  {"transformer?layers=1&hidden=128", 16},
                                                                  {"transformer-s?layers=1", 8},
                                                                  {"wide-resnet?layers=50&width=1", 16},
                                                                  {"vgg11", 16},
                                                                  {"lenet", 16},
                                                                  {"alexnet", 16},
                                                                  {"bert-large?layers=1&hidden=128", 8},
                                                                  {"gpt2?layers=1", 8},
                                                                  {"lstm-lm", 16},
                                                                  {"ncf", 64}};
    int compared = 0;
    for (const auto& [name, batch] : names) {
      const auto scenario = scenario_on(builtin(name, batch), "v100-16gb-2x2", [](Settings& s) {
        s.accounting = Accounting::paper;
        s.update_sharding = s.recompute = s.offload = false;
      });
      const auto ft = run("ft:micro-batches=1", scenario);
      QVERIFY(ft.has_value());
      for (const char* method : {"tofu", "data-parallel", "optcnn", "fsdp", "mesh-tensorflow"}) {
        const auto other = run(method, scenario);
        QVERIFY(other.has_value());
        if (!beyond_switches(**other).empty()) continue;
        for (const auto& point : (*other)->points) {
          // Above the curve, or no further below it than the certificate leaves open.
          const double slack = (*ft)->exact ? 0 : (*ft)->gap.value_or(1);
          QVERIFY2(best_within(**ft, point.memory_bytes) * (1 - slack) <= point.time_s * (1 + 1e-9),
                   qPrintable(QString("%1 by %2").arg(name.c_str(), method)));
          ++compared;
        }
      }
    }
    QVERIFY(compared >= 40);
  }
};

QTEST_APPLESS_MAIN(BaselinesTest)
#include "baselines_test.moc"
