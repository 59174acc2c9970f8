// SPDX-License-Identifier: Apache-2.0
// Plans in practitioners' words: what was typed as `manual`, `megatron` and `fsdp` comes back from the plan alone;
// plans made by hand, experts, and mixtures that have no name.
#include <QtTest>
#include <random>

#include "core/plan/resemblance.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

// Its vocabulary of 32,000 words divides by all degrees, as that of GPT-2 (50,257) does not.
constexpr const char* kLlama = "llama-2-7b?layers=4&hidden=1024&sequence=32";

ScenarioPtr on(const ModelPtr& model, const char* hardware) {
  const auto cluster = cluster_preset(hardware);
  Settings settings;
  settings.batch = model->batch, settings.sequence = model->sequence;
  const auto made = make_scenario(model, *cluster, hardware, settings);
  if (!made) qFatal("%s", made.error().message().c_str());
  return *made;
}

Resemblance of_point(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return resemblance_of((*result)->plans->sharding(0), *(*result)->scenario->model);
}

}  // namespace

class ResemblanceTest : public QObject {
  Q_OBJECT

 private slots:
  void typed_settings_come_back_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<bool>("divides");
    QTest::newRow("divided vocabulary") << kLlama << true;
    QTest::newRow("whole vocabulary") << "gpt2?layers=4&sequence=32" << false;
  }

  // Every split of 16 devices that manual takes. Where tensor groups cannot divide the vocabulary, embedding and logits
  // are repeated, which takes most of the time here; the split is what was typed all the same, and that is said.
  void typed_settings_come_back() {
    QFETCH(QString, model);
    QFETCH(bool, divides);
    const ScenarioPtr scenario = on(builtin(model.toStdString(), 32), "v100-16gb-2x8");
    int met = 0;
    for (const int tensor : {1, 2, 4, 8})
      for (const int stages : {1, 2, 4})
        for (const int batches : {1, 4})
          for (const int zero : {0, 1, 2, 3})
            for (const bool sequence : {false, true}) {
              if (16 % (tensor * stages) != 0 || (sequence && tensor == 1)) continue;
              std::string text = "manual:tp=" + std::to_string(tensor) + ":pp=" + std::to_string(stages) +
                                 ":micro-batches=" + std::to_string(batches) + ":zero=" + std::to_string(zero);
              if (sequence) text += ":sequence-parallel";
              if (!run(text, scenario)) continue;
              const Resemblance found = of_point(text, scenario);
              const int data = 16 / (tensor * stages);
              const auto what = text + ": " + describe(found);
              QVERIFY2(found.data == data && found.tensor == tensor && found.stages == stages, what.c_str());
              QVERIFY2(found.micro_batches == batches && found.repeated == 1 && found.context == 1, what.c_str());
              QVERIFY2(found.sequence_parallel == sequence, what.c_str());
              QVERIFY2(found.share > 0.9, what.c_str());
              const bool whole = !divides && tensor > 1;
              QVERIFY2((found.whole_words > 0.3) == whole && (found.whole_words == 0) == !whole, what.c_str());
              QVERIFY2((describe(found).find("the vocabulary whole on each device") != std::string::npos) == whole,
                       what.c_str());
              for (std::size_t stage = 1; stage < found.zero.size(); ++stage)
                QVERIFY2((found.zero[stage] > 0) == (data > 1 && int(stage) == zero), what.c_str());
              QVERIFY2(data == 1 || zero == 0 || found.zero[std::size_t(zero)] == found.weighted, what.c_str());
              ++met;
            }
    QVERIFY2(met > (divides ? 100 : 60), QByteArray::number(met));
  }

  // Context and expert groups, with everything else that can be typed.
  void context_and_experts_come_back() {
    const ScenarioPtr dense = on(builtin(kLlama, 32), "v100-16gb-2x8"),
                      mixture =
                          on(builtin("mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=32", 32), "v100-16gb-2x8");
    int met = 0, with_experts = 0;
    for (const ScenarioPtr& scenario : {dense, mixture})
      for (const int tensor : {1, 2, 4})
        for (const int context : {1, 2, 4, 8})
          for (const int expert : {1, 2, 8})
            for (const int stages : {1, 2})
              for (const int zero : {0, 1, 3}) {
                if ((context == 1 && expert == 1) || (expert > 1 && scenario == dense)) continue;
                const std::string text = fmt::format("manual:tp={}:cp={}:ep={}:pp={}:zero={}:micro-batches=2", tensor,
                                                     context, expert, stages, zero);
                if (!run(text, scenario)) continue;
                const Resemblance found = of_point(text, scenario);
                const auto what = text + ": " + describe(found);
                const int data = 16 / (tensor * context * stages);
                QVERIFY2(found.data == data && found.tensor == tensor && found.context == context, what.c_str());
                QVERIFY2(found.stages == stages && found.expert == expert && found.repeated == 1, what.c_str());
                QVERIFY2(found.share > 0.99 && !found.second, what.c_str());
                QVERIFY2(zero == 0 || data * context == 1 || found.zero[std::size_t(zero)] > 0, what.c_str());
                ++met, with_experts += expert > 1;
              }
    QVERIFY2(met > 60 && with_experts > 20, (std::to_string(met) + " " + std::to_string(with_experts)).c_str());
    QCOMPARE(describe(of_point("manual:dp=2:tp=2:cp=4", dense)),
             std::string("Data parallel 2 \u00d7 tensor parallel 2 \u00d7 context parallel 4."));
    QCOMPARE(describe(of_point("manual:cp=2:ep=8:zero=3", mixture)),
             std::string("Data parallel 8 \u00d7 context parallel 2, experts over 8; weights sharded (ZeRO-3)."));
  }

  void checkpointing_comes_back() {
    const ScenarioPtr scenario = on(builtin(kLlama, 32), "v100-16gb-1x8");
    const Resemblance layers = of_point("manual:recompute", scenario),
                      cores = of_point("manual:recompute=selective", scenario);
    QVERIFY(layers.layers_again && !layers.cores_again && cores.cores_again && !cores.layers_again);
    QVERIFY(describe(layers).find("checkpointing of layers") != std::string::npos);
    QVERIFY(describe(cores).find("checkpointing of attention cores") != std::string::npos);
  }

  // Megatron's layers: queries, keys and values and the first product of the feed-forward part by columns, the products
  // back into the stream by rows, attention by heads, token table and head by vocabulary.
  void products_have_their_names() {
    const ScenarioPtr scenario = on(builtin(kLlama, 32), "v100-16gb-1x8");
    const auto result = run("manual:tp=4", scenario);
    QVERIFY(result.has_value());
    const Plan plan = (*result)->plans->sharding(0);
    const Model& model = *(*result)->scenario->model;
    std::map<std::string, std::set<std::string>> named;
    for (const PlanOperator& planned : plan.operators) {
      const Operator& op = model.operators[planned.op];
      for (int a = 0; a < plan.mesh.count(); ++a) {
        const Parallel parallel = parallel_of(model, op, planned.split.axis[std::size_t(a)]);
        if (parallel != Parallel::none && parallel != Parallel::data)
          named[op.name.substr(op.name.find_last_of('/') + 1)].insert(to_string(parallel));
      }
    }
    const auto is = [&](const char* op, const char* what) {
      return named.count(op) == 1 && named[op] == std::set<std::string>{what};
    };
    for (const char* op : {"q", "k", "v", "gate", "up"}) QVERIFY2(is(op, "column parallel"), op);
    for (const char* op : {"down", "out"}) QVERIFY2(is(op, "row parallel"), op);
    QVERIFY(is("logits", "vocabulary parallel") && is("tokens", "vocabulary parallel"));
    QCOMPARE(resemblance_of(plan, model).operators[std::size_t(Parallel::vocabulary)], 2);
  }

  void other_methods_are_known_again() {
    const ScenarioPtr scenario = on(builtin(kLlama, 32), "v100-16gb-1x8");
    QCOMPARE(describe(of_point("data-parallel", scenario)), std::string("Data parallel 8."));
    QCOMPARE(describe(of_point("fsdp", scenario)), std::string("Data parallel 8; weights sharded (ZeRO-3)."));
    const auto megatron = run("megatron", scenario);
    QVERIFY(megatron.has_value());
    for (std::size_t i = 0; i < (*megatron)->points.size(); ++i) {
      const Resemblance found = resemblance_of((*megatron)->plans->sharding(i), *scenario->model);
      QCOMPARE(found.data * found.tensor, std::int64_t(8));
    }
    const Resemblance alone = of_point("data-parallel", on(test::mlp(64), "v100-16gb-1x1"));
    QCOMPARE(describe(alone), std::string("Everything on one device."));
  }

  // By hand: half of the computing by batch, half by channels on the same axis has no name.
  void a_mixture_without_a_name_is_said_to_have_none() {
    const ScenarioPtr scenario = on(test::mlp(64), "v100-16gb-1x2");
    const auto result = run("data-parallel", scenario);
    QVERIFY(result.has_value());
    Plan plan = (*result)->plans->sharding(0);
    const Model& model = *scenario->model;
    for (PlanOperator& op : plan.operators) {
      op.cost.compute = {};
      if (model.operators[op.op].name == "fc1" || model.operators[op.op].name == "fc2")
        op.cost[ComputePart::forward] = 1;
    }
    QCOMPARE(resemblance_of(plan, model).share, 1.0);
    for (PlanOperator& op : plan.operators) {
      const Operator& what = model.operators[op.op];
      if (what.name != "fc2") continue;
      for (std::size_t d = 0; d < what.dims.size(); ++d)
        if (what.dims[d].role == DimRole::reduction) op.split.axis[0] = std::int8_t(d);
      op.cost[ComputePart::forward] = 0.9;
      QCOMPARE(parallel_of(model, what, op.split.axis[0]), Parallel::row);
    }
    Resemblance found = resemblance_of(plan, model);
    QVERIFY(std::abs(found.share - 1 / 1.9) < 1e-12 && found.data == 2 && found.tensor == 1);
    QVERIFY(found.second && found.second->tensor == 2 && std::abs(found.second->share - 0.9 / 1.9) < 1e-12);
    QCOMPARE(describe(found), std::string("Data parallel 2, for 53 % of the computing, tensor parallel 2 for 47 %."));
    found.share = 0.4;
    QCOMPARE(describe(found), std::string("Resembles no named strategy."));
  }

  // By hand: a layer's experts over all devices, all else and another layer's experts by batch.
  void experts_are_told_beside_the_batch() {
    const ScenarioPtr scenario =
        on(builtin("mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=32", 32), "v100-16gb-1x8");
    const auto result = run("data-parallel", scenario);
    QVERIFY(result.has_value());
    Plan plan = (*result)->plans->sharding(0);
    const Model& model = *scenario->model;
    const auto move = [&](const std::string& layer) {
      int moved = 0;
      for (PlanOperator& planned : plan.operators) {
        const Operator& op = model.operators[planned.op];
        for (std::size_t d = 0; d < op.dims.size(); ++d)
          if (op.dims[d].name == DimName::expert && op.name.starts_with(layer)) {
            for (int a = 0; a < plan.mesh.count(); ++a) planned.split.axis[std::size_t(a)] = std::int8_t(d);
            ++moved;
          }
      }
      return moved;
    };
    QVERIFY(move("layer0") >= 3);
    const Resemblance half = resemblance_of(plan, model);
    QCOMPARE(half.data, std::int64_t(8));
    QVERIFY2(describe(half).find("compute alike") == std::string::npos, describe(half).c_str());
    QVERIFY(move("layer1") >= 3);
    const Resemblance all = resemblance_of(plan, model);
    QVERIFY(all.data == 8 && all.expert == 8 && all.repeated == 1);
    QVERIFY2(describe(all).starts_with("Data parallel 8, experts over 8"), describe(all).c_str());
    QCOMPARE(parallel_of(model, model.operators[OperatorId(0)], -1), Parallel::none);
    QVERIFY(all.operators[std::size_t(Parallel::expert)] > half.operators[std::size_t(Parallel::expert)]);
  }

  // Random plans of the frontier: degrees multiply to the devices where no axis is a repeat of another's work.
  void degrees_multiply_to_the_devices() {
    const ScenarioPtr scenario = on(builtin(kLlama, 32), "v100-16gb-1x8");
    const auto result = run("ft", scenario);
    QVERIFY(result.has_value());
    std::mt19937 random(7);
    for (int i = 0; i < 40; ++i) {
      const Resemblance found =
          resemblance_of((*result)->plans->sharding(random() % (*result)->points.size()), *scenario->model);
      QCOMPARE(found.data * found.tensor * found.context * found.spatial * found.repeated * found.stages,
               found.devices);
      QVERIFY(found.share > 0 && found.share <= 1 && found.recomputed >= 0);
    }
  }
};

QTEST_APPLESS_MAIN(ResemblanceTest)
#include "resemblance_test.moc"
