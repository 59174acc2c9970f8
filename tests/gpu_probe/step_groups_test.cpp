// SPDX-License-Identifier: Apache-2.0
// Typed context and expert parallelism on ranks: the partitioned step computes what the unpartitioned one computes,
// sends and holds what the plan says.
#include <QtTest>

#include "core/search/registry.h"
#include "gpu_probe/step_checks.h"
#include "search/grouped_plans.h"

using namespace turnpoint;

class StepGroupsTest : public QObject {
  Q_OBJECT

  static void carry_out(const ModelPtr& model, const char* hardware, std::initializer_list<const char*> methods) {
    test::StepStatistics statistics;
    for (const Attention attention : {Attention::fused, Attention::unfused}) {
      const auto scenario = test::scenario_on(model, hardware, [&](Settings& s) { s.attention = attention; });
      for (const char* method : methods) {
        const auto result = test::run(method, scenario);
        QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
        const std::string fault = test::step_fault(*scenario, (*result)->plans->sharding(0), &statistics);
        QVERIFY2(fault.empty(), (std::string(method) + ": " + fault).c_str());
      }
    }
    qInfo("%d plans, %d collectives, largest difference %.1e", statistics.plans, statistics.collectives,
          statistics.worst);
    QVERIFY(statistics.collectives > 20 * int(methods.size()));
  }

 private slots:
  // Causal attention of grouped heads, whose queries lie on four ranks; tied weights and a table of positions.
  void context_groups() {
    carry_out(test::builtin("llama-2-70b?layers=2&hidden=64&width=32&sequence=16", 4), "v100-16gb-1x4",
              {"manual:cp=4", "manual:cp=2:zero=3", "manual:cp=2:tp=2", "manual:cp=2:tp=2:sequence-parallel:zero=1",
               "manual:cp=2:micro-batches=2:zero=2", "manual:cp=4:recompute=op", "update-sharding:of=manual:cp=2"});
    carry_out(test::builtin("gpt2?layers=2&hidden=128&sequence=16", 4), "v100-16gb-2x2",
              {"manual:cp=4:zero=1", "manual:cp=2:tp=2"});
  }

  // Shards in groups of two or four, which other groups repeat.
  void hybrid_groups() {
    carry_out(test::builtin("llama-2-70b?layers=2&hidden=64&width=32&sequence=16", 8), "v100-16gb-2x2",
              {"manual:zero=3:shard=2", "manual:zero=2:shard=2:micro-batches=2", "manual:zero=1:shard=2",
               "fsdp:shard=2:recompute=op", "manual:cp=2:zero=3:shard=2"});
    carry_out(
        test::builtin("llama-2-70b?layers=2&hidden=64&width=32&sequence=16", 8), "v100-16gb-2x4",
        {"manual:tp=2:zero=3:shard=2", "manual:tp=2:sequence-parallel:zero=1:shard=2", "manual:cp=2:zero=2:shard=4"});
    carry_out(test::small_mixture(8), "v100-16gb-2x4", {"manual:ep=2:zero=3:shard=4", "manual:ep=4:zero=1:shard=4"});
  }

  void expert_groups() {
    carry_out(test::small_mixture(8), "v100-16gb-1x4",
              {"manual:ep=4", "manual:ep=2:tp=2", "manual:ep=2:zero=3", "manual:ep=4:micro-batches=2:zero=1"});
    carry_out(test::small_mixture(8), "v100-16gb-2x4",
              {"manual:ep=8", "manual:cp=2:ep=8", "manual:cp=2:ep=2", "manual:cp=4:ep=4:zero=2",
               "manual:cp=2:ep=4:tp=2:sequence-parallel", "update-sharding:of=manual:cp=2:ep=4"});
    // Several devices of a context group have the same experts.
    carry_out(test::small_mixture(8), "v100-16gb-2x4",
              {"manual:cp=2", "manual:cp=4:ep=2:zero=3", "manual:cp=2:tp=2:zero=1:shard=2"});
    carry_out(test::small_mixture(2), "v100-16gb-1x8",
              {"manual:cp=4", "manual:cp=4:ep=2", "manual:cp=8:ep=4", "manual:cp=2:tp=2:sequence-parallel",
               "manual:cp=4:ep=2:tp=2:recompute=op"});
    // Too few samples to deal out whole.
    carry_out(test::small_mixture(2), "v100-16gb-1x8", {"manual:cp=4:ep=8", "manual:cp=4:ep=4"});
  }
};

QTEST_APPLESS_MAIN(StepGroupsTest)
#include "step_groups_test.moc"
