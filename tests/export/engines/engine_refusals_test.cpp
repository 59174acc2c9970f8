// SPDX-License-Identifier: Apache-2.0
// What engines cannot run is refused with the operator and the reason, what they do otherwise is said, and what of a
// plan has no typed settings (context and expert parallel, shards within a node) is told them as it is. Plans are
// typed ones in which the test moves single operators.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/import/source/model_source.h"
#include "export/engines/exported.h"
#include "test_data.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const char* const kNasty = "\"'\\)]\n__import__('os').abort()\xc3\xa4\xff#";

ScenarioPtr gpt_on(const char* hardware, std::int64_t batch = 32) {
  return scenario_on(builtin("gpt2?layers=4&hidden=512&sequence=32", batch), hardware);
}

struct TypedPlan {
  ScenarioPtr scenario;
  Plan plan;
  const Model& model() const {
    return plan.pipeline && plan.pipeline->micro_batch ? *plan.pipeline->micro_batch : *scenario->model;
  }
  PlanOperator& at(const std::string& name) {
    for (PlanOperator& op : plan.operators)
      if (model().operators[op.op].name == name) return op;
    qFatal("no operator %s", name.c_str());
  }
  int loop(const PlanOperator& op, DimName name) const {
    const auto& dims = model().operators[op.op].dims;
    for (std::size_t l = 0; l < dims.size(); ++l)
      if (dims[l].name == name && dims[l].size > 1) return int(l);
    return -1;
  }
};

TypedPlan typed(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return {scenario, (*result)->plans->sharding(0)};
}

QString refusal(const char* key, const TypedPlan& plan) {
  const auto text = find_format(key)->plan(*plan.scenario, plan.plan);
  return text ? QString() : QString::fromStdString(text.error().message());
}
std::string written(const char* key, const TypedPlan& plan) {
  const auto text = find_format(key)->plan(*plan.scenario, plan.plan);
  if (!text) qFatal("%s: %s", key, text.error().message().c_str());
  return *text;
}
int megatron_number(const TypedPlan& plan, const std::string& name) {
  return number_of(options_of(words_of_list(written("megatron", plan), "ARGUMENTS")), name);
}

}  // namespace

class EngineRefusalsTest : public QObject {
  Q_OBJECT

 private slots:
  void rows_where_columns_are() {
    TypedPlan plan = typed("manual:dp=4:tp=2", gpt_on("v100-16gb-1x8"));
    QCOMPARE(refusal("megatron", plan), QString());
    PlanOperator& up = plan.at("layer2/mlp/up");
    up.split.axis[2] = std::int8_t(plan.loop(up, DimName::in_channel));
    QCOMPARE(refusal("megatron", plan),
             "layer2/mlp/up is row parallel over 2 devices, where Megatron-LM has it column "
             "parallel (nearest is data parallel 4 \u00d7 tensor parallel 2)");
    QCOMPARE(refusal("torchtitan", plan),
             "layer2/mlp/up is row parallel over 2 devices, where torchtitan has it column "
             "parallel (nearest is data parallel 4 \u00d7 tensor parallel 2)");
    up.split.axis[2] = Configuration::kRepeat;
    QVERIFY(
        refusal("megatron", plan).startsWith("layer2/mlp/up is repeated over 2 devices, where Megatron-LM has it "));
  }

  void what_splits_matrices_is_not_in_the_file_of_deepspeed() {
    QCOMPARE(
        refusal("deepspeed", typed("manual:dp=4:tp=2", gpt_on("v100-16gb-1x8"))),
        "layer0/attention/q is split by its weight over 2 devices: DeepSpeed's file splits the batch alone (nearest "
        "is data parallel 8)");
    QVERIFY(refusal("deepspeed", typed("manual:dp=4:pp=2:micro-batches=2", gpt_on("v100-16gb-1x8")))
                .startsWith("the plan has 2 stages: "));
  }

  void what_annotations_cannot_lay_out() {
    TypedPlan alone = typed("manual:dp=1:tp=2", gpt_on("v100-16gb-1x2"));
    QCOMPARE(refusal("pytorch", alone), QString());
    for (const auto& [precision, why] : {std::pair(Precision::bf16, "the plan computes in bf16 without data parallel"),
                                         std::pair(Precision::fp8, "the plan computes in fp8")}) {
      auto changed = std::make_shared<Scenario>(*alone.scenario);
      changed->settings.precision = precision;
      alone.scenario = changed;
      QVERIFY2(refusal("pytorch", alone).startsWith(why), qPrintable(refusal("pytorch", alone)));
    }
  }

  void queries_keys_and_values_of_one_product() {
    REQUIRE_DATA(folder);
    const auto source = open_model((folder / "onnx/exported/gpt2_dynamo.onnx").string());
    QVERIFY(source.has_value());
    const auto model = (*source)->bind({2, 0});
    QVERIFY(model.has_value());
    const TypedPlan plan = typed("manual:tp=2", scenario_on(*model, "v100-16gb-1x2"));
    QVERIFY2(refusal("pytorch", plan).contains(" is cut into parts by "), qPrintable(refusal("pytorch", plan)));
  }

  void devices_that_do_the_same() {
    TypedPlan plan = typed("data-parallel", gpt_on("v100-16gb-1x8", 4));
    for (const char* key : {"megatron", "torchtitan", "deepspeed"}) {
      QVERIFY2(refusal(key, plan).contains(" is repeated over 2 devices: with "), qPrintable(refusal(key, plan)));
      QVERIFY(refusal(key, plan).contains("no two devices do the same work"));
    }
  }

  void groups_are_neighbours() {
    TypedPlan plan = typed("manual:dp=4:tp=2", gpt_on("v100-16gb-2x4"));
    for (PlanOperator& op : plan.plan.operators) std::swap(op.split.axis[0], op.split.axis[2]);
    const QString why = refusal("megatron", plan);
    QVERIFY2(why.startsWith("tensor parallel devices lie further apart than data parallel devices"), qPrintable(why));
  }

  void one_way_of_updating() {
    TypedPlan plan = typed("manual:dp=8:zero=3", gpt_on("v100-16gb-1x8"));
    QCOMPARE(refusal("torchtitan", plan), QString());
    PlanOperator& down = plan.at("layer1/mlp/down");
    down.choice.update = Update::replicated, down.choice.update_axes = 0;
    for (const char* key : {"megatron", "torchtitan", "deepspeed"}) {
      const QString why = refusal(key, plan);
      QVERIFY2(why.contains("layer1/mlp/down made by every holder") && why.contains(" has one way for all"),
               qPrintable(why));
    }
    TypedPlan offloaded = typed("manual:dp=8:zero=1", gpt_on("v100-16gb-1x8"));
    offloaded.at("layer1/mlp/down").choice.offload = true;
    QVERIFY(refusal("deepspeed", offloaded).startsWith("the optimizer state of layer1/mlp/down lives with the host"));
    for (PlanOperator& op : offloaded.plan.operators) op.choice.offload = true;
    const auto file = nlohmann::json::parse(written("deepspeed", offloaded));
    QCOMPARE(file["zero_optimization"]["offload_optimizer"]["device"], "cpu");
    QVERIFY(refusal("megatron", offloaded).startsWith("the optimizer state of all operators lives with the host"));
  }

  void what_runs_again() {
    TypedPlan plan = typed("manual:dp=8", gpt_on("v100-16gb-1x8"));
    plan.at("layer1/mlp/act").choice.recompute = true;
    for (const char* key : {"megatron", "torchtitan", "deepspeed"})
      QVERIFY2(refusal(key, plan).contains("layer1/mlp/act runs again"), qPrintable(refusal(key, plan)));
  }

  // All but dear operators is all of them.
  void parts_of_all_but_dear_operators() {
    TypedPlan plan = typed("manual:dp=8:recompute=op", gpt_on("v100-16gb-1x8"));
    QCOMPARE(refusal("torchtitan", plan), QString());
    QVERIFY(plan.at("layer1/mlp/norm").choice.recompute);
    plan.at("layer1/mlp/norm").choice.recompute = false;
    QVERIFY2(refusal("torchtitan", plan).contains("runs again and layer1/mlp/norm does not in backward"),
             qPrintable(refusal("torchtitan", plan)));
  }

  // What Megatron-LM builds the model from, by the numbers that the networks are known by.
  void sizes_of_models() {
    const TypedPlan llama = typed("manual:dp=8", scenario_on(builtin("llama-2-70b?layers=4", 32), "h100-80gb-1x8"));
    for (const auto& [name, number] : {std::pair("--num-layers", 4),
                                       {"--hidden-size", 8192},
                                       {"--num-attention-heads", 64},
                                       {"--num-query-groups", 8},
                                       {"--kv-channels", 128},
                                       {"--ffn-hidden-size", 28672},
                                       {"--vocab-size", 32000}})
      QCOMPARE(megatron_number(llama, name), number);
    const std::string text = written("megatron", llama);
    for (const char* word : {"--swiglu", "--disable-bias-linear", "--untie-embeddings-and-output-weights", "\"rope\""})
      QVERIFY2(text.find(word) != std::string::npos, word);
    const std::string gpt =
        written("megatron", typed("manual:dp=8", scenario_on(builtin("gpt2", 32), "h100-80gb-1x8")));
    for (const char* word : {"--swiglu", "--disable-bias-linear", "--untie-embeddings-and-output-weights", "\"rope\""})
      QVERIFY2(gpt.find(word) == std::string::npos, word);
    QVERIFY(gpt.find("learned_absolute") != std::string::npos && gpt.find("Note") == std::string::npos);
  }

  void shards_within_a_node() {
    const ScenarioPtr scenario = gpt_on("v100-16gb-2x8");
    const TypedPlan three = typed("fsdp:group=node", scenario), one = typed("fsdp:zero=1:group=node", scenario);
    const auto options = options_of(words_of_list(written("torchtitan", three), "OVERRIDES"));
    QCOMPARE(number_of(options, "--parallelism.data_parallel_replicate_degree"), 2);
    QCOMPARE(number_of(options, "--parallelism.data_parallel_shard_degree"), 8);
    QCOMPARE(megatron_number(one, "--num-distributed-optimizer-instances"), 2);
    QCOMPARE(megatron_number(three, "--num-distributed-optimizer-instances"), 2);
    QVERIFY(written("megatron", three).find("\"--outer-dp-sharding-strategy\", \"no_shard\"") != std::string::npos);
    QVERIFY(refusal("deepspeed", three).startsWith("ZeRO-3 shards among 8 of 16 devices"));
    for (const char* key : {"megatron", "torchtitan"})
      QVERIFY(written(key, three).find("weights sharded (ZeRO-3) over 8, repeated twice.") != std::string::npos);
    const TypedPlan two = typed("fsdp:zero=2:shard=4", scenario);
    QVERIFY(
        refusal("megatron", two).startsWith("ZeRO-2 shards among 4 of 16 devices: Megatron-LM has such groups for "));
    const TypedPlan experts =
        typed("manual:ep=4:zero=3:shard=4",
              scenario_on(builtin("mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=64", 32), "h100-80gb-2x8"));
    QVERIFY(refusal("megatron", experts).startsWith("ZeRO-3 shards among 4 of 16 devices, and experts lie on 4"));
  }

  // PyTorch's fully_shard() takes a mesh of two dimensions: who holds copies, who shares one.
  void groups_that_shard_are_a_mesh_of_two() {
    const ScenarioPtr scenario = gpt_on("v100-16gb-2x8");
    const std::string text = written("pytorch", typed("manual:zero=3:shard=4", scenario));
    QVERIFY2(text.find("MESH = {\"replicate\": 4, \"shard\": 4, \"tensor\": 1}") != std::string::npos, text.c_str());
  }

  // DeepSpeed keeps small weights whole unless told; the plan shards all.
  void all_weights_are_sharded() {
    const auto file = nlohmann::json::parse(written("deepspeed", typed("manual:dp=8:zero=3", gpt_on("v100-16gb-1x8"))));
    QCOMPARE(file["zero_optimization"].value("stage3_param_persistence_threshold", -1), 0);
    QCOMPARE(file["zero_optimization"]["stage"], 3);
  }

  // The sequence of queries is split along one axis of a plan that splits the batch along all.
  void context_parallel() {
    TypedPlan plan = typed("manual:dp=8", gpt_on("v100-16gb-1x8"));
    for (PlanOperator& op : plan.plan.operators) op.split.axis[2] = std::int8_t(plan.loop(op, DimName::sequence));
    QCOMPARE(refusal("megatron", plan), QString());
    QCOMPARE(megatron_number(plan, "--context-parallel-size"), 2);
    QCOMPARE(megatron_number(plan, "--micro-batch-size"), 8);
    QVERIFY(written("megatron", plan).find("\"--cp-comm-type\", \"all_gather\"") != std::string::npos);
    QVERIFY(refusal("deepspeed", plan).startsWith("the sequence is split over 2 devices"));
    // torchtitan shards weights among devices that share a sequence, whatever it is told.
    QVERIFY2(refusal("torchtitan", plan).startsWith("2 devices share each sequence and hold whole weights: torchtitan"),
             qPrintable(refusal("torchtitan", plan)));
    const std::string three = written("torchtitan", typed("manual:cp=2:zero=3", gpt_on("v100-16gb-1x8")));
    for (const char* line :
         {"\"--parallelism.context_parallel_degree\", \"2\"", "\"--parallelism.data_parallel_shard_degree\", \"4\"",
          "\"--parallelism.fsdp_reshard_after_forward\", \"always\""})
      QVERIFY2(three.find(line) != std::string::npos, line);
    // Both give a device one part from the front and one from the end.
    const TypedPlan odd =
        typed("manual:cp=2:zero=3", scenario_on(builtin("gpt2?layers=4&hidden=256&sequence=18", 64), "v100-16gb-1x8"));
    QVERIFY2(refusal("megatron", odd).startsWith("a sequence of 18 has no 4 equal parts: Megatron-LM gives each of 2"),
             qPrintable(refusal("megatron", odd)));
    QVERIFY(refusal("torchtitan", odd).startsWith("a sequence of 18 has no 4 equal parts: torchtitan"));
    // torchtitan's tensor groups cut each part once more: 24 in 2 x 4 parts of 3, which two devices cannot share.
    const TypedPlan uneven = typed("manual:cp=4:tp=2:zero=3",
                                   scenario_on(builtin("gpt2?layers=4&hidden=256&sequence=24", 64), "v100-16gb-1x8"));
    QCOMPARE(refusal("megatron", uneven), QString());
    QCOMPARE(
        refusal("torchtitan", uneven),
        "a sequence of 24 has no 16 equal parts: torchtitan gives each of 4 devices one from its front and one from "
        "its end, and asks that each be cut once more for the 2 devices of a tensor group");
  }

  // A row for each position (GPT-2 has 1024): parts in the plan, whole with engines. Nothing of the kind where the
  // table is longer than the sequence, where there is none, or without context groups.
  void tables_of_positions() {
    const auto said = [](const TypedPlan& plan, const char* engine, const char* name) {
      const QString text = QString::fromStdString(written(engine, plan)).replace("\n# ", " ");
      return text.contains(QString("embed/add: of its table of positions a device has the rows of its part of the "
                                   "sequence in the plan; with %1 it has all of them, whose gradients are summed")
                               .arg(name));
    };
    const auto full = scenario_on(builtin("gpt2?layers=2&hidden=512&sequence=1024", 32), "v100-16gb-1x8");
    const TypedPlan learned = typed("manual:cp=2:zero=3", full);
    QVERIFY(said(learned, "megatron", "Megatron-LM") && said(learned, "torchtitan", "torchtitan"));
    const auto rotary =
        scenario_on(builtin("llama-2-7b?layers=2&hidden=1024&width=512&sequence=64", 64), "h100-80gb-1x8");
    for (const TypedPlan& other : {typed("manual:tp=2:zero=3", full), typed("manual:cp=2:zero=3", rotary),
                                   typed("manual:cp=2:zero=3", gpt_on("v100-16gb-1x8"))})
      QVERIFY(!written("megatron", other).empty() &&
              !QString::fromStdString(written("megatron", other)).contains("table of"));
  }

  void expert_parallel() {
    const auto scenario = scenario_on(builtin("mixtral-8x7b?layers=2&hidden=1024&width=512&sequence=32", 32),
                                      "h100-80gb-1x8", [](Settings& s) { s.precision = Precision::bf16; });
    TypedPlan plan = typed("manual:dp=8:zero=1", scenario);
    const auto give = [&](std::size_t axis) {
      TypedPlan made = plan;
      for (PlanOperator& op : made.plan.operators)
        if (made.model().operators[op.op].name.find("experts_") != std::string::npos)
          op.split.axis[axis] = std::int8_t(made.loop(op, DimName::expert));
      return made;
    };
    const TypedPlan inner = give(2);
    QCOMPARE(refusal("megatron", inner), QString());
    QCOMPARE(megatron_number(inner, "--expert-model-parallel-size"), 2);
    QCOMPARE(megatron_number(inner, "--num-experts"), 8);
    QCOMPARE(megatron_number(inner, "--moe-router-topk"), 2);
    QVERIFY(refusal("deepspeed", inner).startsWith("experts lie on 2 devices"));
    const TypedPlan whole = typed("manual:dp=8:ep=4", scenario);
    QCOMPARE(megatron_number(whole, "--expert-model-parallel-size"), 4);
    QVERIFY2(refusal("torchtitan", whole).startsWith("experts lie on 4 devices, of which 1 shard weights: torchtitan"),
             qPrintable(refusal("torchtitan", whole)));
    QVERIFY(written("torchtitan", typed("manual:dp=8:ep=4:zero=3", scenario))
                .find("\"--parallelism.expert_parallel_degree\", \"4\"") != std::string::npos);
    const QString outer = refusal("megatron", give(0));
    QVERIFY2(outer.startsWith("layer0/mlp/experts_gate has its experts on devices that lie further apart"),
             qPrintable(outer));
    TypedPlan one = inner;
    PlanOperator& down = one.at("layer1/mlp/experts_down");
    down.split.axis[2] = std::int8_t(one.loop(down, DimName::batch));
    QVERIFY(refusal("megatron", one).contains("layer1/mlp/experts_down is data parallel over 2 devices"));
  }

  // A mixture in tensor groups needs sequence parallelism there.
  void mixtures_in_tensor_groups() {
    const auto scenario = scenario_on(builtin("mixtral-8x7b?layers=2&hidden=1024&width=512&sequence=32", 32),
                                      "h100-80gb-1x8", [](Settings& s) { s.precision = Precision::bf16; });
    QVERIFY(
        refusal("megatron", typed("manual:dp=4:tp=2", scenario)).startsWith("a mixture of experts is split over 2"));
    QCOMPARE(refusal("megatron", typed("manual:dp=4:tp=2:sequence-parallel", scenario)), QString());
  }

  void what_is_no_such_model() {
    const auto lenet = scenario_on(builtin("lenet", 32), "v100-16gb-1x4");
    QVERIFY(refusal("megatron", typed("data-parallel", lenet)).startsWith("Megatron-LM trains transformers, and "));
    QVERIFY(refusal("torchtitan", typed("data-parallel", lenet)).startsWith("torchtitan trains transformers, and "));
    QCOMPARE(refusal("deepspeed", typed("data-parallel", lenet)), QString());
    const auto pair = scenario_on(builtin("transformer-big?layers=2", 32), "v100-16gb-1x4");
    const QString why = refusal("megatron", typed("data-parallel", pair));
    QVERIFY2(why.contains("attends to another stack"), qPrintable(why));
  }

  // What operators without weights do otherwise is counted and said.
  void differences_are_said() {
    TypedPlan plan = typed("manual:dp=4:tp=2:sequence-parallel", gpt_on("v100-16gb-1x8"));
    const std::string before = written("megatron", plan);
    QVERIFY2(before.find("lie otherwise") == std::string::npos, before.c_str());
    plan.at("layer1/mlp/norm").split.axis[2] = Configuration::kRepeat;
    std::string after = written("megatron", plan);
    for (std::size_t at = 0; (at = after.find("\n# ", at)) != std::string::npos;) after.replace(at, 3, " ");
    QVERIFY2(after.find("1 of the ") != std::string::npos && after.find("lie otherwise") != std::string::npos &&
                 after.find("layer1/mlp/norm first, which is repeated over 2 devices") != std::string::npos,
             after.c_str());
    const TypedPlan typed_layers = typed("manual:dp=8:recompute=full", gpt_on("v100-16gb-1x8"));
    const auto remarks = find_format("deepspeed")->remarks(*typed_layers.scenario, typed_layers.plan);
    QVERIFY(remarks.size() == 1 && remarks.front().starts_with("layers run again only where the model says so"));
  }

  // Names are never code: quotes, line breaks, what is not ASCII or not UTF-8.
  void names_are_no_code() {
    auto named = std::make_shared<Model>(*builtin("gpt2?layers=2&hidden=512&sequence=32", 32));
    named->name = "a\"b'\\\n__import__('os').abort()\n\xc3\xa4\xf0\x9f\x98\x80\xff #\r\"\"\"";
    const auto scenario = scenario_on(named, "v100-16gb-1x8");
    const TypedPlan plan = typed("manual:dp=4:tp=2:zero=3", scenario);
    QTemporaryDir folder;
    for (const char* key : {"megatron", "torchtitan"}) {
      const std::string text = written(key, plan);
      for (const char c : text) QVERIFY((c >= 0x20 && c < 0x7F) || c == '\n');
      for (std::size_t at = 0; (at = text.find("abort", at)) != std::string::npos; ++at)
        QCOMPARE(text[text.rfind('\n', at) + 1], '#');
      QVERIFY(text.find("abort") != std::string::npos);
      std::ofstream(folder.filePath("plan.py").toStdString()) << text;
      QProcess python;
      python.start("python3", {folder.filePath("plan.py")});
      if (!python.waitForStarted()) QSKIP("there is no Python here to read the file");
      QVERIFY(python.waitForFinished());
      QCOMPARE(python.exitCode(), 0);
      const auto words = words_of_list(text, *key == 'm' ? "ARGUMENTS" : "OVERRIDES");
      QCOMPARE(python.readAllStandardOutput().toStdString(), fmt::format("{}\n", fmt::join(words, "\n")));
    }
  }

  // Nor are those of modules, which are patterns.
  void modules_are_no_code() {
    auto named = std::make_shared<Model>(*builtin("gpt2?layers=2&hidden=512&sequence=32", 32));
    for (auto& tensor : named->tensors)
      if (const auto dot = tensor.name.rfind('.'); tensor.role == TensorRole::parameter && dot != std::string::npos)
        tensor.name.insert(dot, kNasty);
    const std::string text = written("pytorch", typed("manual:dp=4:tp=2", scenario_on(named, "v100-16gb-1x8")));
    for (const char c : text) QVERIFY((c >= 0x20 && c < 0x7F) || c == '\n');
    QVERIFY(text.find("abort") != std::string::npos);
    QTemporaryDir folder;
    std::ofstream(folder.filePath("parallelize.py").toStdString()) << text;
    const std::string up =
        "layer1.mlp.up" + std::string(kNasty).substr(0, std::string(kNasty).find('\xff')) + "\ufffd#";
    QProcess python;
    python.start("python3", {QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/export/engines/read_table.py"),
                             folder.filePath("parallelize.py"), QString::fromStdString(up)});
    if (!python.waitForStarted()) QSKIP("there is no Python here to read the file");
    QVERIFY(python.waitForFinished());
    const QByteArray said = python.readAllStandardOutput();
    QVERIFY2(said == "2\n", said + python.readAllStandardError());
  }
};

QTEST_APPLESS_MAIN(EngineRefusalsTest)
#include "engine_refusals_test.moc"
