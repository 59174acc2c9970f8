// SPDX-License-Identifier: Apache-2.0
// Hybrid sharding as it is typed: who takes part in which collective with how many bytes, memory by hand, groups that
// are everybody or nobody, refusals, and random splits against the evaluator and through files.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <random>

#include "core/plan/resemblance.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "search/grouped_plans.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

// Rows of every matrix divide by 16, so that no shard is padded; norms of 1,024 rows do, too.
constexpr const char* kLlama = "llama-2-7b?layers=2&hidden=1024&width=512&sequence=64";
constexpr const char* kMixture = "mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=64";

/// Elements of these parameters on one device of a tensor group of two.
double elements_of(const Model& model, const Operator& op, const ParameterGroup& group, std::uint32_t tensor) {
  double elements = 0;
  for (const std::uint32_t k : group.inputs)
    elements += double(model.tensors[op.inputs[k].tensor].elements()) / (group.whole & tensor ? 1 : 2);
  return elements;
}

/// Bytes that a device receives in the step of this kind, and along which axes; there is one such step at most.
struct Sent {
  double bytes = 0;
  std::uint32_t axes = 0;
};
Sent sent(const std::vector<ReshardStep>& steps, ReshardMove move) {
  Sent found;
  for (const ReshardStep& step : steps) {
    if (step.move != move) continue;
    if (found.axes) qFatal("twice");
    found = {step.bytes, step.axes};
  }
  return found;
}

CostBreakdown cost_of(const std::string& method, const ScenarioPtr& scenario) { return plan_of(method, scenario).cost; }

}  // namespace

class HybridShardingTest : public QObject {
  Q_OBJECT

 private slots:
  // Two nodes of eight devices: axes of the node (1), then 2, 4 and 8 of a node, of which the innermost is the tensor
  // group's. Four devices share one copy: 2 and 4. Groups are two inside each node, so that copies lie along 1 alone.
  void each_collective_has_its_members_and_bytes() {
    const auto scenario = scenario_on(builtin(kLlama, 32), "v100-16gb-2x8");
    const Model& model = *scenario->model;
    const std::map<int, Update> updates = {
        {1, Update::sharded_state}, {2, Update::sharded}, {3, Update::sharded_weights}};
    for (const auto& [zero, update] : updates) {
      const Plan plan = plan_of(fmt::format("manual:tp=2:zero={}:shard=4", zero), scenario);
      int groups = 0;
      for (const PlanOperator& planned : plan.operators) {
        const Operator& op = model.operators[planned.op];
        for (const ParameterSteps& steps : planned.parameters) {
          QCOMPARE(planned.choice.update, update);
          QCOMPARE(steps.group.partial, 7u);
          const double bytes = 4 * elements_of(model, op, steps.group, 8u);
          // A scatter leaves a quarter of the gradients, of which three quarters of the whole were received; two nodes
          // sum what is left as a ring does.
          const Sent scatter = sent(steps.sync, ReshardMove::reduce_scatter),
                     reduce = sent(steps.sync, ReshardMove::all_reduce);
          QCOMPARE(scatter.axes, 6u);
          QCOMPARE(reduce.axes, 1u);
          QVERIFY2(close(scatter.bytes, bytes * 3 / 4) && close(reduce.bytes, 2 * (bytes / 4) / 2), op.name.c_str());
          const auto& gathers = zero == 3 ? steps.gather : steps.spread;
          QVERIFY2(!gathers.empty(), op.name.c_str());
          for (const ReshardStep& gather : gathers) {
            QCOMPARE(gather.move, ReshardMove::all_gather);
            QCOMPARE(gather.axes, 6u);
            QVERIFY2(gather.bytes < bytes * 3 / 4 * (1 + 1e-9), op.name.c_str());
          }
          QVERIFY2(close(gathers.front().bytes, bytes * 3 / 4), op.name.c_str());
          QVERIFY((zero == 3 ? steps.spread : steps.gather).empty());
          ++groups;
        }
      }
      QVERIFY(groups > 15);
    }
  }

  // What is sharded is a part of four of what it was, and nothing else changes.
  void memory_is_that_of_the_group() {
    const auto scenario = scenario_on(builtin(kLlama, 32), "v100-16gb-2x8");
    const auto whole = cost_of("manual:tp=2", scenario);
    for (const int zero : {1, 2, 3})
      for (const int shard : {2, 4, 8}) {
        const auto cost = cost_of(fmt::format("manual:tp=2:zero={}:shard={}", zero, shard), scenario);
        const auto part = [&](MemoryPart which, int from) {
          QCOMPARE(std::int64_t(cost.memory[std::size_t(which)]),
                   std::int64_t(whole.memory[std::size_t(which)]) / (zero >= from ? shard : 1));
        };
        part(MemoryPart::optimizer, 1);
        part(MemoryPart::gradients, 2);
        part(MemoryPart::parameters, 3);
        QCOMPARE(cost.memory[std::size_t(MemoryPart::activations)], whole.memory[std::size_t(MemoryPart::activations)]);
      }
  }

  // The nearest devices first: a group of a node stays in it, one of two nodes is all of both.
  void groups_are_the_nearest_devices() {
    const auto axes = [](const char* method, const char* hardware, const char* model) {
      const auto scenario = scenario_on(builtin(model, 32), hardware);
      const Plan plan = plan_of(method, scenario);
      return plan.operators[named(*scenario->model, "layer0/attention/q").index].choice.update_axes;
    };
    QCOMPARE(axes("manual:zero=3:shard=2", "v100-16gb-4x4", kLlama), 8u);  // axes 1 and 2 are nodes
    QCOMPARE(axes("manual:zero=3:shard=4", "v100-16gb-4x4", kLlama), 12u);
    QCOMPARE(axes("manual:zero=3:shard=8", "v100-16gb-4x4", kLlama), 14u);
    QCOMPARE(axes("fsdp:shard=8", "v100-16gb-4x4", kLlama), 14u);
    QCOMPARE(axes("manual:tp=2:zero=3:shard=2", "v100-16gb-4x4", kLlama), 4u);
    QCOMPARE(axes("manual:cp=2:zero=3:shard=4", "v100-16gb-4x4", kLlama), 12u);  // a context group and one more
    QCOMPARE(axes("manual:pp=2:micro-batches=2:zero=1:shard=4", "v100-16gb-2x8", kLlama), 12u);  // stages are nodes
  }

  void everybody_and_nobody() {
    const auto scenario = bf16_on(kLlama, 64, "h100-80gb-2x8");
    const auto points = [&](const std::string& method) {
      const auto result = run(method, scenario);
      if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
      return (*result)->points;
    };
    for (const std::string split : {"", "tp=2:", "cp=2:", "pp=2:micro-batches=4:", "recompute=op:", "micro-batches=2:"})
      for (const std::string zero : {"1", "2", "3"}) {
        const int alike = split == "tp=2:" || split.starts_with("pp") ? 8 : 16;
        QCOMPARE(points(fmt::format("manual:{}zero={}:shard={}", split, zero, alike)),
                 points(fmt::format("manual:{}zero={}", split, zero)));
        QCOMPARE(points(fmt::format("manual:{}zero={}:shard=1", split, zero)),
                 points(fmt::format("manual:{}zero=0", split)));
      }
    for (const std::string rest : {"", ":zero=2", ":zero=1", ":micro-batches=2", ":recompute=op"}) {
      QCOMPARE(points("fsdp:shard=8" + rest), points("fsdp:group=node" + rest));
      QCOMPARE(points("fsdp:group=node:shard=8" + rest), points("fsdp:group=node" + rest));
    }
    QCOMPARE(points("manual:zero=3:shard=8"), points("fsdp:group=node"));
  }

  // More copies need more memory; between nodes, where links are slow, groups of a node are faster than one of all.
  void what_it_is_for() {
    const auto scenario = scenario_on(builtin("gpt2?layers=4&sequence=256", 64), "v100-16gb-2x8");
    std::int64_t memory = INT64_MAX;
    for (const int shard : {1, 2, 4, 8, 16}) {
      const auto result = run(fmt::format("manual:zero=3:shard={}", shard), scenario);
      QVERIFY((*result)->points.front().memory_bytes < memory);
      memory = (*result)->points.front().memory_bytes;
    }
    QVERIFY((*run("manual:zero=3:shard=8", scenario))->points.front().time_s <
            (*run("manual:zero=3", scenario))->points.front().time_s);
  }

  // Each expert lies on a part of the devices that share a copy, and its shards among the others of these: with experts
  // over 4 and copies of 8 (of 16 devices) an expert is in two shards, and two groups hold copies.
  void experts_are_sharded_inside_the_group() {
    const auto scenario = bf16_on(kMixture, 32, "h100-80gb-2x8");
    const Plan plan = plan_of("manual:ep=4:zero=1:shard=8", scenario), whole = plan_of("manual:ep=4", scenario);
    const OperatorId up = named(*scenario->model, "layer0/mlp/experts_up");
    const ParameterSteps& steps = plan.operators[up.index].parameters.front();
    QCOMPARE(steps.group.partial, 3u);  // the node, and of its axes 2, 4, 8 the first
    QCOMPARE(sent(steps.sync, ReshardMove::reduce_scatter).axes, 2u);
    QCOMPARE(sent(steps.sync, ReshardMove::all_reduce).axes, 1u);
    CostBreakdown part = plan.operators[up.index].cost, all = whole.operators[up.index].cost;
    QCOMPARE(part[MemoryPart::optimizer], all[MemoryPart::optimizer] / 2);
    // Copies of as many devices as experts lie on have each expert once.
    const Plan once = plan_of("manual:ep=4:zero=1:shard=4", scenario);
    const ParameterSteps& unsharded = once.operators[up.index].parameters.front();
    QCOMPARE(received(unsharded.sync), received(whole.operators[up.index].parameters.front().sync));
    QVERIFY(unsharded.gather.empty() && unsharded.spread.empty());
  }

  void words() {
    const auto dense = scenario_on(builtin(kLlama, 32), "v100-16gb-4x8"),
               mixture = scenario_on(builtin(kMixture, 32), "h100-80gb-2x8");
    const auto of = [](const std::string& method, const ScenarioPtr& scenario) {
      return describe(resemblance_of(plan_of(method, scenario), *scenario->model));
    };
    QCOMPARE(of("manual:zero=3:shard=8", dense),
             std::string("Data parallel 32; weights sharded (ZeRO-3) over 8, repeated 4 times."));
    QCOMPARE(
        of("manual:tp=2:cp=2:zero=1:shard=8:micro-batches=2", dense),
        std::string("Data parallel 8 \u00d7 tensor parallel 2 \u00d7 context parallel 2; 2 micro-batches; optimizer "
                    "state sharded (ZeRO-1) over 8, repeated twice."));
    QCOMPARE(of("fsdp:zero=2:group=node", dense),
             std::string("Data parallel 32; gradients and optimizer state sharded (ZeRO-2) over 8, repeated 4 times."));
    QCOMPARE(of("manual:zero=3", dense), std::string("Data parallel 32; weights sharded (ZeRO-3)."));
    QCOMPARE(of("manual:ep=4:zero=3:shard=8", mixture),
             std::string("Data parallel 16, experts over 4; weights sharded (ZeRO-3) over 8, repeated twice."));
  }

  void refusals_name_the_numbers() {
    const auto dense = scenario_on(builtin(kLlama, 48), "v100-16gb-2x8"),
               mixture = scenario_on(builtin(kMixture, 48), "v100-16gb-2x8"),
               six = scenario_on(builtin(kLlama, 48), "v100-16gb-2x6");
    const std::vector<std::tuple<ScenarioPtr, std::string, QString>> cases = {
        {dense, "manual:shard=4", "shard=4 needs zero of 1, 2 or 3, which says what is sharded"},
        {dense, "manual:zero=3:shard=3", "shard=3 does not divide the devices of dp=16 that share the batch"},
        {dense, "manual:zero=3:shard=32", "shard=32 does not divide the devices of dp=16 that share the batch"},
        {dense, "manual:tp=2:cp=2:zero=2:shard=16",
         "shard=16 does not divide the devices of dp=4 times cp=2 that share the batch"},
        {dense, "manual:pp=2:micro-batches=2:zero=1:shard=16", "shard=16 does not divide the devices of dp=8"},
        {dense, "manual:zero=3:shard=-1", "shard must be"},
        {dense, "manual:zero=3:shard=9999999", "shard must be"},
        {mixture, "manual:ep=8:zero=3:shard=4",
         "shard=4 is no multiple of ep=8: each copy of the model has all its experts"},
        {six, "manual:zero=3:shard=4",
         "shard=4 groups are neither equal parts of a node nor whole nodes on 2 nodes of 6 devices"},
        {dense, "fsdp:shard=3", "shard=3 does not divide 16 devices"},
        {six, "fsdp:shard=4", "shard=4 groups are neither equal parts of a node nor whole nodes"},
        {dense, "fsdp:group=node:shard=4", "group=node is 8 devices here, and shard=4 says otherwise"},
    };
    for (const auto& [scenario, text, part] : cases) {
      const auto result = run(text, scenario);
      QVERIFY2(!result.has_value(), text.c_str());
      QCOMPARE(result.error().code, ErrorCode::usage);
      const auto message = QString::fromStdString(result.error().what);
      QVERIFY2(message.contains(part), qPrintable(QString::fromStdString(text) + ": " + message));
    }
  }

  // What is planned is what the evaluator says it costs, and a file brings the same plan back.
  void any_split_costs_what_the_evaluator_says() {
    std::mt19937_64 random(3);
    int answers = 0, in_stages = 0, with_experts = 0;
    for (const auto& model :
         {builtin(kLlama, 64), builtin("gpt2?layers=4&hidden=512&sequence=16", 64), small_mixture(64)})
      for (const char* hardware : {"h100-80gb-1x8", "v100-16gb-2x8", "a100-80gb-4x4"}) {
        const auto scenario = scenario_on(model, hardware, [](Settings& s) { s.precision = Precision::bf16; });
        for (int trial = 0; trial < 40; ++trial) {
          const auto pick = [&](std::initializer_list<const char*> from) {
            return std::string(*(from.begin() + std::ptrdiff_t(random() % from.size())));
          };
          const std::string text = "manual:cp=" + pick({"1", "1", "2"}) + ":tp=" + pick({"1", "1", "2"}) +
                                   ":pp=" + pick({"1", "1", "2"}) + ":micro-batches=" + pick({"1", "2", "4"}) +
                                   ":zero=" + pick({"1", "2", "3"}) + ":ep=" + pick({"1", "2", "4"}) +
                                   ":shard=" + pick({"1", "2", "4", "8"}) + pick({"", ":sequence-parallel"}) +
                                   pick({"", ":recompute", ":recompute=op", ":recompute=selective"});
          const auto result = run(text, scenario);
          if (!result) {
            QVERIFY2(result.error().code == ErrorCode::usage, text.c_str());
            continue;
          }
          QVERIFY2(evaluates(scenario, **result), text.c_str());
          const Plan plan = (*result)->plans->sharding(0);
          const auto back = read_plan(write_plan(*scenario, plan), "file", *scenario);
          QVERIFY2(back.has_value(), (text + ": " + (back ? "" : back.error().message())).c_str());
          for (std::size_t i = 0; i < plan.operators.size(); ++i)
            QCOMPARE(back->operators[i].choice, plan.operators[i].choice);
          ++answers, in_stages += text.find("pp=2") != std::string::npos;
          with_experts += model->name == "config" && text.find("ep=1") == std::string::npos;
        }
      }
    QVERIFY2(answers > 120 && in_stages > 20 && with_experts > 10,
             fmt::format("{} {} {}", answers, in_stages, with_experts).c_str());
  }
};

QTEST_APPLESS_MAIN(HybridShardingTest)
#include "hybrid_sharding_test.moc"
