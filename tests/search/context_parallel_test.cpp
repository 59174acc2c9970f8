// SPDX-License-Identifier: Apache-2.0
// Context parallelism as it is typed: bytes of keys and values, sums of gradients and memory by hand, every operator's
// sequence, refusals, and random splits against the evaluator.
#include <QtTest>
#include <random>

#include "core/search/baselines/manual.h"
#include "search/grouped_plans.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

class ContextParallelTest : public QObject {
  Q_OBJECT

 private slots:
  // Eight devices are axes of 2: the innermost for tensor groups, the others for the context group.
  void keys_and_values_are_gathered_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("key_channels");  // of all heads
    QTest::newRow("as many heads of keys") << "llama-2-7b?layers=2&hidden=1024&width=512&sequence=64" << 1024;
    QTest::newRow("grouped") << "llama-2-70b?layers=2&hidden=1024&width=512&sequence=64" << 8 * 16;
  }
  void keys_and_values_are_gathered() {
    QFETCH(QString, model);
    QFETCH(int, key_channels);
    const auto scenario = bf16_on(model.toStdString(), 8, "h100-80gb-1x8");
    const Plan plan = plan_of("manual:tp=2:cp=4", scenario);
    // 8 samples of 64 positions, half of the channels, two bytes each; three parts of four come from others.
    const double bytes = 8.0 * 64 * key_channels / 2 * 2 * 3 / 4;
    int attentions = 0;
    std::map<std::uint32_t, int> gathered;
    for (const PlanReshard& reshard : plan.reshards) {
      std::uint32_t over = 0;
      for (const ReshardRole role : kReshardRoles)
        for (const ReshardStep& step : reshard.steps(role))
          if (step.move != ReshardMove::slice) over |= step.axes;
      if (!(over & 3u)) continue;
      QVERIFY2(reshard.consumer.valid(), "shared");
      QCOMPARE(scenario->model->operators[reshard.consumer].kind, OperatorKind::attention);
      QCOMPARE(over, 3u);
      ++gathered[reshard.consumer.index];
      QCOMPARE(received(reshard.forward), (std::map<ReshardMove, double>{{ReshardMove::all_gather, bytes}}));
      QCOMPARE(received(reshard.gradient), (std::map<ReshardMove, double>{{ReshardMove::reduce_scatter, bytes}}));
      // A device keeps its part, and gathers the others once more for backward.
      QCOMPARE(reshard.keep, Keep::before);
      QCOMPARE(received(reshard.repeated), received(reshard.forward));
    }
    for (const Operator& op : scenario->model->operators) attentions += op.kind == OperatorKind::attention;
    QCOMPARE(attentions, 2);
    QCOMPARE(gathered.size(), std::size_t(2));
    for (const auto& [op, count] : gathered) QCOMPARE(count, 2);
  }

  // Of tokens and labels a device takes its part, which costs nothing; weights lie on all devices of a group, and their
  // gradients are summed over both kinds.
  void all_sequences_are_split_and_gradients_summed() {
    for (const char* name : {"gpt2?layers=2&hidden=512&sequence=32", "llama-2-70b?layers=2&hidden=1024&sequence=32"}) {
      const auto scenario = scenario_on(builtin(name, 16), "v100-16gb-2x8");
      const Model& model = *scenario->model;
      const Plan plan = plan_of("manual:tp=2:cp=2", scenario);
      QCOMPARE(plan.mesh.count(), 4);
      int sequences = 0, summed = 0;
      for (const PlanOperator& planned : plan.operators) {
        const Operator& op = model.operators[planned.op];
        const int sequence = loop_of(op, DimName::sequence);
        if (sequence >= 0 && op.dims[std::size_t(sequence)].size > 1)
          QVERIFY2((axes_of(planned, sequence) & 7u) == 4u, op.name.c_str());
        QVERIFY2((axes_of(planned, loop_of(op, DimName::batch)) & ~3u) == 0 || op.kind == OperatorKind::cross_entropy ||
                     op.kind == OperatorKind::loss_statistics,
                 op.name.c_str());
        sequences += sequence >= 0;
        for (const ParameterSteps& group : planned.parameters) {
          double elements = 0;
          bool by_position = false;
          for (const std::uint32_t k : group.group.inputs) {
            const Tensor& weight = model.tensors[op.inputs[k].tensor];
            elements += double(weight.elements()) / (group.group.whole & 8u ? 1 : 2);  // whole in a tensor group?
            by_position |= std::ranges::find(weight.dims, DimName::sequence) != weight.dims.end();
          }
          if (by_position) continue;  // a table of positions: a device has its own rows
          QVERIFY2(group.group.partial == 7u, op.name.c_str());
          const auto bytes = received(group.sync);
          QCOMPARE(bytes.size(), std::size_t(1));
          QVERIFY2(close(bytes.at(ReshardMove::all_reduce), 2 * 7.0 / 8 * elements * 4), op.name.c_str());
          ++summed;
        }
      }
      QVERIFY(sequences > 25 && summed > 10);
    }
  }

  // What backward reads of a step is one part of four of each tensor.
  void a_device_keeps_its_part_of_the_sequence() {
    const std::string model = "llama-2-70b?layers=2&hidden=1024&width=512&sequence=2048";
    const auto kept = [&](const std::string& method, const std::string& hardware) {
      auto cost = plan_of(method, bf16_on(model, 4, hardware)).cost;
      return double(cost[MemoryPart::activations] + cost[MemoryPart::copies]);
    };
    const double whole = kept("manual", "h100-80gb-1x1"), part = kept("manual:cp=4", "h100-80gb-1x4");
    QVERIFY2(std::abs(part - whole / 4) < 1e-4 * whole, qPrintable(QString("%1 of %2").arg(part).arg(whole)));
    auto one = plan_of("manual", bf16_on(model, 4, "h100-80gb-1x1")).cost,
         four = plan_of("manual:cp=4", bf16_on(model, 4, "h100-80gb-1x4")).cost;
    QCOMPARE(four[MemoryPart::parameters], one[MemoryPart::parameters]);
    QCOMPARE(four[MemoryPart::optimizer], one[MemoryPart::optimizer]);
  }

  // Sequence parallelism cuts what a context group has left.
  void sequence_parallelism_is_inside() {
    const auto scenario = bf16_on("llama-2-70b?layers=2&hidden=1024&width=512&sequence=64", 8, "h100-80gb-1x8");
    const Plan plan = plan_of("manual:tp=2:cp=2:sequence-parallel", scenario);
    int norms = 0;
    for (const PlanOperator& op : plan.operators) {
      const Operator& what = scenario->model->operators[op.op];
      if (what.kind != OperatorKind::normalisation) continue;
      QCOMPARE(axes_of(op, loop_of(what, DimName::sequence)), 6u);
      ++norms;
    }
    QCOMPARE(norms, 5);
  }

  void zero_shards_over_both_groups() {
    const auto scenario = bf16_on("llama-2-70b?layers=2&hidden=1024&width=512&sequence=64", 8, "h100-80gb-1x8");
    std::array<CostBreakdown, 4> cost;
    for (int zero = 0; zero < 4; ++zero)
      cost[std::size_t(zero)] = plan_of("manual:cp=4:zero=" + std::to_string(zero), scenario).cost;
    const auto near = [](std::int64_t a, std::int64_t b) { return std::abs(a - b) < 65536; };  // rounding up of shards
    QVERIFY(near(cost[1][MemoryPart::optimizer], cost[0][MemoryPart::optimizer] / 8));
    QVERIFY(near(cost[2][MemoryPart::gradients], cost[0][MemoryPart::gradients] / 8));
    QVERIFY(near(cost[3][MemoryPart::parameters], cost[0][MemoryPart::parameters] / 8));
  }

  // Each device has as much to do: causal masks are balanced, as engines do.
  void computing_is_even() {
    const std::string model = "llama-2-70b?layers=1&hidden=8192&width=512&sequence=8192";
    const auto attention_s = [&](const std::string& method, const std::string& hardware) {
      const auto scenario = bf16_on(model, 1, hardware);
      for (const PlanOperator& op : plan_of(method, scenario).operators) {
        const Operator& what = scenario->model->operators[op.op];
        if (what.kind != OperatorKind::attention) continue;
        if (!what.causal) qFatal("no mask");
        CostBreakdown cost = op.cost;
        return cost[ComputePart::forward];
      }
      qFatal("no attention");
    };
    const double whole = attention_s("manual", "h100-80gb-1x1"), part = attention_s("manual:cp=4", "h100-80gb-1x4");
    QVERIFY2(std::abs(4 * part / whole - 1) < 0.05, qPrintable(QString("%1 of %2").arg(part).arg(whole)));
  }

  void groups_of_one_change_nothing() {
    for (const auto& model : {builtin("gpt2?layers=2&hidden=512&sequence=32", 32), small_mixture(32)}) {
      const auto scenario = scenario_on(model, "v100-16gb-2x4");
      for (const std::string text :
           {"manual:tp=2", "manual:pp=2:micro-batches=2:zero=1", "manual:zero=3:recompute=op"}) {
        const auto plain = run(text, scenario), same = run(text + ":cp=1:ep=1", scenario);
        QVERIFY(plain && same);
        QCOMPARE((*plain)->points, (*same)->points);
      }
    }
  }

  void refusals_name_the_numbers() {
    const auto gpt = scenario_on(builtin("gpt2?layers=2&hidden=512&sequence=24", 32), "v100-16gb-2x8");
    const std::vector<std::tuple<ScenarioPtr, std::string, QString>> cases = {
        {gpt, "manual:cp=16", "a sequence of 24 cannot be divided among cp=16 devices"},
        {gpt, "manual:cp=8:tp=2:sequence-parallel", "among cp=8 times tp=2 devices, as sequence-parallel asks"},
        {gpt, "manual:cp=3", "tp=1 times cp=3 times pp=1 does not divide 16 devices"},
        {gpt, "manual:dp=8:cp=4", "dp=8 times tp=1 times cp=4 times pp=1 makes 32 devices, not 16"},
        {gpt, "manual:dp=1048576:tp=1048576:cp=1048576:pp=1048576", "makes 1208925819614629174706176 devices, not 16"},
        {gpt, "manual:cp=0", "cp must be"},
        {scenario_on(builtin("gpt2?layers=2&hidden=384&sequence=24", 24), "v100-16gb-2x3"), "manual:cp=2",
         "cp=2 groups are neither equal parts of a node nor whole nodes on 2 nodes of 3 devices"},
        {scenario_on(builtin("gpt2?layers=2&hidden=384&sequence=24", 24), "v100-16gb-1x6"), "manual:cp=3:tp=2",
         "cp=3 times tp=2 groups are neither"},
        {scenario_on(test::mlp(), "v100-16gb-1x2"), "manual:cp=2", "no attention"},
        {scenario_on(builtin("mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=24", 6), "v100-16gb-1x6"),
         "manual:cp=3:ep=2", "ep=2 is neither a multiple nor a divisor of cp=3"},
        {scenario_on(small_mixture(1), "v100-16gb-1x8"), "manual:cp=8",
         "layer0/mlp/experts_gate has 4 slots of each expert and 1 sample in a micro-batch, and the 8 devices of a "
         "context group with the same experts can share neither"},
        {scenario_on(builtin("transformer-big?layers=2", 32), "v100-16gb-1x2"), "manual:cp=2",
         "encoder/head/norm needs its sequence whole, which cp=2 would split"},
    };
    for (const auto& [scenario, text, part] : cases) {
      const auto result = run(text, scenario);
      QVERIFY2(!result.has_value(), text.c_str());
      QCOMPARE(result.error().code, ErrorCode::usage);
      const auto message = QString::fromStdString(result.error().what);
      QVERIFY2(message.contains(part), qPrintable(QString::fromStdString(text) + ": " + message));
    }
  }

  // With everything else that can be typed; what is planned is what the evaluator says it costs.
  void any_split_costs_what_the_evaluator_says() {
    std::mt19937_64 random(5);
    int answers = 0, in_stages = 0, with_experts = 0;
    const auto llama = builtin("llama-2-70b?layers=4&hidden=1024&width=512&sequence=16", 64);
    for (const auto& model : {llama, builtin("gpt2?layers=4&hidden=512&sequence=16", 64), small_mixture(64)})
      for (const char* hardware : {"h100-80gb-1x8", "v100-16gb-2x8", "a100-80gb-4x4"}) {
        const auto scenario =
            scenario_on(model, hardware, [](Settings& settings) { settings.precision = Precision::bf16; });
        for (int trial = 0; trial < 40; ++trial) {
          const auto pick = [&](std::initializer_list<const char*> from) {
            return std::string(*(from.begin() + std::ptrdiff_t(random() % from.size())));
          };
          std::string text = "manual:cp=" + pick({"1", "2", "4"}) + ":tp=" + pick({"1", "1", "2"}) +
                             ":pp=" + pick({"1", "1", "2"}) + ":micro-batches=" + pick({"1", "2", "4"}) +
                             ":zero=" + pick({"0", "1", "2", "3"}) + ":ep=" + pick({"1", "2", "4", "8"}) +
                             pick({"", ":sequence-parallel"}) +
                             pick({"", ":recompute", ":recompute=op", ":recompute=selective"});
          const auto result = run(text, scenario);
          if (!result) {
            QVERIFY2(result.error().code == ErrorCode::usage, text.c_str());
            continue;
          }
          QVERIFY2(evaluates(scenario, **result), text.c_str());
          ++answers, in_stages += text.find("pp=2") != std::string::npos;
          with_experts += text.find("ep=1") == std::string::npos;
        }
      }
    QVERIFY2(answers > 60 && in_stages > 10 && with_experts > 15,
             qPrintable(QString("%1 %2 %3").arg(answers).arg(in_stages).arg(with_experts)));
  }

  void updates_are_shared_out_on_such_splits() {
    const auto llama = builtin("llama-2-70b?layers=2&hidden=1024&width=512&sequence=16", 32);
    int shared_out = 0;
    for (const auto& [model, splits] : std::vector<std::pair<ModelPtr, std::vector<std::string>>>{
             {llama, {"cp=4", "tp=2:cp=2", "tp=2:cp=2:pp=2:micro-batches=2"}},
             {small_mixture(32), {"cp=4:ep=4", "tp=2:cp=2:ep=2:pp=2:micro-batches=2", "cp=2:ep=4"}}})
      for (const std::string& split : splits) {
        const auto scenario = scenario_on(model, "v100-16gb-1x8");
        const auto result = run("update-sharding:of=manual:" + split, scenario), own = run("manual:" + split, scenario);
        QVERIFY2(result && own, split.c_str());
        QVERIFY2(evaluates(scenario, **result), split.c_str());
        QVERIFY((*result)->points.front().time_s <= (*own)->points.front().time_s * (1 + 1e-12));
        for (const PlanOperator& op : (*result)->plans->sharding(0).operators)
          shared_out += op.choice.update != Update::replicated;
      }
    QVERIFY2(shared_out > 20, std::to_string(shared_out).c_str());
  }
};

QTEST_APPLESS_MAIN(ContextParallelTest)
#include "context_parallel_test.moc"
