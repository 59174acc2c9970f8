// SPDX-License-Identifier: Apache-2.0
// Distributions of Transformers' own models: the table, what is refused, and, in the environment that packaging/engines
// makes, models of the same config.json that the file loads on four processes that talk: loss and weights of the model
// in one piece, bytes of collectives and of weights beside the plan's.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/import/huggingface/huggingface.h"
#include "engine.h"
#include "export/engines/exported.h"
#include "export/engines/received.h"

using namespace turnpoint;
using namespace turnpoint::test;

class TransformersTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  ScenarioPtr scenario_of(const std::string& config, const std::function<void(Settings&)>& change = {}) {
    const std::string path = folder_.filePath("config.json").toStdString();
    std::ofstream(path) << config;
    const auto source = open_model(path);
    if (!source) qFatal("%s", source.error().message().c_str());
    const auto model = (*source)->bind({16, 64});
    if (!model) qFatal("%s", model.error().message().c_str());
    return scenario_on(*model, "v100-16gb-1x4", change);
  }

  std::string file_of(const char* method, const ScenarioPtr& scenario) {
    const auto result = run(method, scenario);
    if (!result) qFatal("%s: %s", method, result.error().message().c_str());
    const auto text = exported("transformers", *result);
    return text ? *text : text.error().message();
  }

  nlohmann::json run_file(const QString& python, const std::string& text) {
    const QString path = folder_.filePath("distributed.py");
    std::ofstream(path.toStdString()) << text;
    const EngineRun run =
        run_engine(python, {QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/export/engines/run_transformers.py"), path,
                            folder_.filePath("config.json"), "4", "16", "64"});
    auto answer = nlohmann::json::parse(run.out.toStdString(), nullptr, false);
    if (!answer.is_object()) qFatal("%s", run.err.right(3000).constData());
    return answer;
  }

  /// What a rank receives besides what the plan has it receive, as the file's notes say.
  static void add_notes(const Scenario& scenario, const Plan& plan, int tensor, Received& ours) {
    const Model& model = *scenario.model;
    const double part = (tensor - 1.0) / tensor;
    if (tensor > 1) {
      const double logits = 4.0 * 16 * 64 * 512 * tensor / 4;
      ours[{"all_gather", tensor}] += part * logits;
    }
    for (const PlanReshard& reshard : plan.reshards) {
      int products = 0;
      for (const auto& use : model.uses[reshard.tensor])
        products += is_weighted_product(model, model.operators[use.op]);
      for (const ReshardStep& step : reshard.gradient)
        if (products > 1 && step.move == ReshardMove::all_reduce)
          ours[{"all_reduce", int(plan.mesh.size_of(step.axes))}] += (products - 1) * step.bytes;
    }
    for (const PlanOperator& op : plan.operators) {
      const Operator& described = model.operators[op.op];
      for (const ParameterSteps& steps : op.parameters) {
        if (steps.gather.empty()) continue;
        auto& gathered = ours[{"all_gather", int(plan.mesh.size_of(steps.gather.front().axes))}];
        if (described.kind == OperatorKind::embedding)
          for (const ReshardStep& step : steps.gather) gathered += step.bytes;
        else if (described.name.starts_with("head/") && steps.gather.size() > 1)
          gathered -= steps.gather.back().bytes;
      }
    }
  }

 private slots:
  void the_table_names_modules_and_counts_them() {
    const std::string text =
        file_of("manual:dp=2:tp=2:zero=3:recompute=full", scenario_of(config_of("mistral", 4, false)));
    for (const char* line :
         {"SIZES = {\"tp_size\": 2, \"fsdp_size\": 2, \"dp_replicate_size\": 1}\n", "CHECKPOINT_LAYERS = True\n",
          "    \"model.embed_tokens\": (1, \"embedding_rowwise\"),\n",
          "    \"model.layers.*.self_attn.k_proj\": (2, \"colwise\"),\n",
          "    \"model.layers.*.mlp.down_proj\": (2, \"rowwise\"),\n",
          "    \"lm_head\": (1, \"colwise_gather_output\"),\n", "    \"model.layers.*\": (2, \"free_full_weight\"),\n",
          "#   torchrun --nnodes 1 --nproc-per-node 4 TRAIN.py\n"})
      QVERIFY2(text.find(line) != std::string::npos, (line + text).c_str());
    const std::string kept = file_of("manual:dp=4:zero=2", scenario_of(config_of("llama", 8, false)));
    QVERIFY2(kept.find("    \"model.layers.*\": (2, \"keep_full_weight\"),\n") != std::string::npos &&
                 kept.find("TP_PLAN = {\n}\n") != std::string::npos,
             kept.c_str());
    const std::string copies = file_of("manual:dp=2:tp=2", scenario_of(config_of("llama", 8, false)));
    QVERIFY(copies.find("\"fsdp_size\": 1, \"dp_replicate_size\": 2}") != std::string::npos);
  }

  void what_is_refused() {
    const ScenarioPtr scenario = scenario_of(config_of("llama", 8, false));
    const auto says = [&](const std::string& text, const char* why) {
      QVERIFY2(text.find(why) != std::string::npos, text.c_str());
    };
    says(file_of("manual:dp=2:pp=2:micro-batches=2", scenario), "the plan has 2 stages");
    says(file_of("manual:dp=2:tp=2:sequence-parallel", scenario), "norms and sums are split by sequence");
    says(file_of("manual:dp=4:zero=1", scenario), "the optimizer state alone is sharded, among 4 devices (ZeRO-1)");
    says(file_of("manual:dp=2:tp=2", scenario_on(builtin("gpt2?layers=2&hidden=256", 16), "v100-16gb-1x4")),
         "is of no config.json, from which Transformers makes its models (nearest is PyTorch");
    says(file_of("manual:dp=2:tp=2", scenario_of(config_of("qwen3", 8, false))), "modules of the family 'qwen3'");
    const auto sums = [](Gradients gradients) {
      return [gradients](Settings& s) { s.precision = Precision::bf16, s.gradients = gradients; };
    };
    const std::string config = config_of("llama", 8, false);
    says(file_of("manual:dp=2:tp=2", scenario_of(config, sums(Gradients::as_weights))),
         "gradients are summed in 16 bits");
    says(file_of("manual:dp=2:tp=2", scenario_of(config, sums(Gradients::fp32))), "\"fsdp_mixed_precision\": True}");
  }

  void training_is_that_of_one_piece_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("method");
    QTest::newRow("tensor groups, sharded") << "llama"
                                            << "manual:dp=2:tp=2:zero=3";
    QTest::newRow("tensor groups, replicated") << "qwen2"
                                               << "manual:dp=2:tp=2";
    QTest::newRow("gradients sharded") << "mistral"
                                       << "manual:dp=4:zero=2";
  }
  void training_is_that_of_one_piece() {
    REQUIRE_ENGINE(python, "pytorch");
    QFETCH(QString, family);
    QFETCH(QString, method);
    const ScenarioPtr scenario = scenario_of(config_of(family.toStdString(), 4, false));
    const auto result = run(method.toStdString(), scenario);
    QVERIFY(result);
    const Plan plan = (*result)->plans->sharding(0);
    const auto text = exported("transformers", *result);
    QVERIFY2(text, text ? "" : text.error().message().c_str());
    const auto answer = run_file(python, *text);
    QVERIFY2(!answer.contains("refused"), answer.dump().c_str());
    for (const auto& step : answer["losses"])
      QVERIFY2(std::abs(step[0].get<double>() - step[1].get<double>()) < 1e-5, answer.dump().c_str());
    QVERIFY2(answer["weights"] < 1e-5, answer.dump().c_str());
    // The first step did something.
    QVERIFY(answer["losses"][0][1].get<double>() - answer["losses"][1][1].get<double>() > 1e-3);

    const int tensor = method.contains("tp=2") ? 2 : 1;
    Received ours = received_by_plan(*scenario, plan);
    add_notes(*scenario, plan, tensor, ours);
    const Received theirs = received_by_log(answer["rows"]);
    const std::string both = "ours " + told(ours) + "theirs " + told(theirs);
    QCOMPARE(theirs.size(), ours.size());
    for (const auto& [key, bytes] : ours) {
      QVERIFY2(theirs.contains(key), both.c_str());
      QVERIFY2(std::abs(theirs.at(key) - bytes) <= 1e-9 * bytes, both.c_str());
    }
    std::int64_t held = 0;
    for (PlanOperator op : plan.operators) held += op.cost[MemoryPart::parameters];
    // With ZeRO-2 the plan counts weights whole: between forward and backward they are.
    QCOMPARE(answer["bytes"].get<std::int64_t>() * (method.contains("zero=2") ? 4 : 1), held);
  }

  // The file checks itself: another model has other modules.
  void another_model_is_refused() {
    REQUIRE_ENGINE(python, "pytorch");
    const std::string text = file_of("manual:dp=2:tp=2", scenario_of(config_of("llama", 8, false)));
    std::string other = config_of("llama", 8, false);
    other.replace(other.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 3");
    std::ofstream(folder_.filePath("config.json").toStdString()) << other;
    QCOMPARE(
        run_file(python, text)["refused"].get<std::string>(),
        std::string("'model.layers.*.self_attn.q_proj' matches 3 modules of your model, not 2: it is not the plan's"));
  }
};

QTEST_APPLESS_MAIN(TransformersTest)
#include "transformers_test.moc"
