// SPDX-License-Identifier: Apache-2.0
// Annotations for PyTorch: the table and its counts, what is refused, and, in the environment that packaging/engines
// makes, models of Transformers made of the same config.json and laid out by the file on ranks that only pretend: every
// collective of a step in kind, ranks and bytes against the plan's, weights on a rank to the byte.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/import/huggingface/huggingface.h"
#include "engine.h"
#include "export/engines/exported.h"
#include "export/engines/received.h"

using namespace turnpoint;
using namespace turnpoint::test;

class AnnotationsTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  ScenarioPtr scenario_of(const std::string& config, const char* hardware = "v100-16gb-1x8") {
    const std::string path = folder_.filePath("config.json").toStdString();
    std::ofstream(path) << config;
    const auto source = open_model(path);
    if (!source) qFatal("%s", source.error().message().c_str());
    const auto model = (*source)->bind({16, 64});
    if (!model) qFatal("%s", model.error().message().c_str());
    return scenario_on(*model, hardware);
  }

  std::string file_of(const std::string& method, const ScenarioPtr& scenario) {
    const auto result = run(method, scenario);
    if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
    const auto text = exported("pytorch", *result);
    return text ? *text : text.error().message();
  }

  nlohmann::json run_file(const QString& python, const std::string& text, int ranks, int batch,
                          const QStringList& how = {}) {
    const std::string path = folder_.filePath("parallelize.py").toStdString();
    std::ofstream(path) << text;
    const QStringList arguments{QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/export/engines/run_annotations.py"),
                                QString::fromStdString(path),
                                folder_.filePath("config.json"),
                                QString::number(ranks),
                                QString::number(batch),
                                "64"};
    const EngineRun run = run_engine(python, arguments + how);
    auto answer = nlohmann::json::parse(run.out.toStdString(), nullptr, false);
    if (!answer.is_object()) qFatal("%s", run.err.right(3000).constData());
    return answer;
  }

 private slots:
  void the_table_names_modules_and_counts_them() {
    const std::string text =
        file_of("manual:dp=2:tp=4:zero=3:recompute=full", scenario_of(config_of("llama", 8, true)));
    for (const char* line :
         {"MESH = {\"replicate\": 1, \"shard\": 2, \"tensor\": 4}\n", "CHECKPOINT_LAYERS = True\n",
          "    (\"model\\\\.embed_tokens\", 1, RowwiseParallel(input_layouts=Replicate())),\n",
          "    (\"model\\\\.layers\\\\.\\\\d+\\\\.self_attn\\\\.k_proj\", 2, ColwiseParallel()),\n",
          "    (\"model\\\\.layers\\\\.\\\\d+\\\\.mlp\\\\.down_proj\", 2, RowwiseParallel()),\n",
          "    (\"model\\\\.layers\\\\.\\\\d+\", 2),\n", "    (\"lm_head\", \"model.embed_tokens\"),\n",
          "    (\"model\\\\.layers\\\\.\\\\d+\\\\.mlp\", 2, PrepareModuleInput(input_layouts=(Replicate(),), "})
      QVERIFY2(text.find(line) != std::string::npos, (line + text).c_str());
    // Built-in networks have our own names.
    const std::string own =
        file_of("manual:dp=4:tp=2", scenario_on(builtin("gpt2?layers=3&hidden=512&sequence=32", 32), "v100-16gb-1x8"));
    QVERIFY2(own.find("(\"layer\\\\d+\\\\.attention\\\\.out\", 3, RowwiseParallel())") != std::string::npos,
             own.c_str());
    // Words that cannot be divided stay whole, as in the plan.
    QVERIFY(own.find("(\"head") == std::string::npos && own.find("(\"embed") == std::string::npos);
  }

  void what_is_refused() {
    const ScenarioPtr scenario = scenario_of(config_of("llama", 8, false));
    const auto says = [&](const char* method, const char* why) {
      const std::string text = file_of(method, scenario);
      QVERIFY2(text.starts_with(why), text.c_str());
    };
    says("manual:dp=4:pp=2:micro-batches=2", "the plan has 2 stages: annotations leave the model in one piece");
    says("manual:dp=4:tp=2:sequence-parallel", "norms and sums are split by sequence");
    says("manual:dp=8:zero=1", "the optimizer state alone is sharded, among 8 devices (ZeRO-1)");
    says("manual:dp=8:recompute=selective", "the cores of attentions run again");
    const auto other = run("manual:dp=4:tp=2", scenario_of(config_of("qwen3", 8, false)));
    QVERIFY(other);
    QVERIFY(exported("pytorch", *other).error().message().find("modules of the family 'qwen3' are not known here") !=
            std::string::npos);
    // Weights whose names in an ONNX file tell no module.
    auto renamed = std::make_shared<Model>(*builtin("gpt2?layers=2&hidden=512&sequence=32", 32));
    for (auto& tensor : renamed->tensors)
      if (tensor.name.ends_with("up.weight")) tensor.name = "onnx::MatMul_117";
    const std::string text = file_of("manual:dp=4:tp=2", scenario_on(renamed, "v100-16gb-1x8"));
    QVERIFY2(text.starts_with("the weight of layer0/mlp/up is called onnx::MatMul_117 in the file"), text.c_str());
    // The config.json that the plan was made of is gone.
    const ScenarioPtr gone = scenario_of(config_of("llama", 8, false));
    QFile::remove(folder_.filePath("config.json"));
    QVERIFY(file_of("manual:dp=4:tp=2", gone).find("config.json") != std::string::npos);
  }

  void collectives_are_the_plan_s_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("keys");
    QTest::addColumn<bool>("tied");
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("hardware");
    const auto add = [](const char* family, int keys, bool tied, const char* method, const char* hardware) {
      QTest::newRow(qPrintable(QString("%1 %2 %3").arg(family, method, hardware)))
          << family << keys << tied << method << hardware;
    };
    add("llama", 8, false, "manual:dp=2:tp=4:zero=3", "v100-16gb-1x8");
    add("llama", 8, false, "manual:dp=8:zero=3", "v100-16gb-1x8");
    add("mistral", 4, false, "manual:dp=4:tp=2", "v100-16gb-1x8");
    add("qwen2", 4, false, "manual:dp=2:tp=4:zero=2", "v100-16gb-1x8");
    add("llama", 8, false, "manual:dp=16:tp=4:zero=3", "v100-16gb-8x8");
    add("llama", 8, false, "fsdp:group=node", "v100-16gb-2x8");
    add("llama", 8, true, "manual:dp=2:tp=4", "v100-16gb-1x8");
  }
  void collectives_are_the_plan_s() {
    REQUIRE_ENGINE(python, "pytorch");
    QFETCH(QString, family);
    QFETCH(int, keys);
    QFETCH(bool, tied);
    QFETCH(QString, method);
    QFETCH(QString, hardware);
    const ScenarioPtr scenario = scenario_of(config_of(family.toStdString(), keys, tied), qPrintable(hardware));
    const auto result = run(method.toStdString(), scenario);
    QVERIFY(result);
    const Plan plan = (*result)->plans->sharding(0);
    const auto text = exported("pytorch", *result);
    QVERIFY2(text, text ? "" : text.error().message().c_str());
    const int ranks = int(scenario->cluster->devices());
    const int tensor = int(text->find("\"tensor\": 4") != std::string::npos   ? 4
                           : text->find("\"tensor\": 2") != std::string::npos ? 2
                                                                              : 1);
    const auto answer = run_file(python, *text, ranks, 16 * tensor / ranks);
    QVERIFY2(answer["refused"].is_null(), answer.dump().c_str());
    nlohmann::json rows = answer["forward"];
    for (const auto& row : answer["backward"]) rows.push_back(row);
    Received ours = received_by_plan(*scenario, plan);
    const Received theirs = received_by_log(rows);
    // The one difference, which the file tells: a table of tokens is gathered once more.
    const bool gathers_again = text->find("GATHER_AGAIN = True") != std::string::npos;
    QCOMPARE(gathers_again, method.contains("zero=3") || method.startsWith("fsdp"));
    for (const PlanOperator& op : plan.operators)
      if (scenario->model->operators[op.op].kind == OperatorKind::embedding && gathers_again)
        for (const ParameterSteps& steps : op.parameters)
          for (const ReshardStep& step : steps.gather)
            ours[{"all_gather", int(plan.mesh.size_of(step.axes))}] += step.bytes;
    std::string unwrapped = *text;
    for (std::size_t at = 0; (at = unwrapped.find("\n# ", at)) != std::string::npos;) unwrapped.replace(at, 3, " ");
    QCOMPARE(unwrapped.find("gathers the table of tokens once more") != std::string::npos, gathers_again);
    const std::string both = "ours " + told(ours) + "theirs " + told(theirs);
    QCOMPARE(theirs.size(), ours.size());
    for (const auto& [key, bytes] : ours) {
      QVERIFY2(theirs.contains(key), both.c_str());
      QVERIFY2(std::abs(theirs.at(key) - bytes) <= 1e-9 * bytes, both.c_str());
    }
    std::int64_t held = 0;
    for (PlanOperator op : plan.operators) held += op.cost[MemoryPart::parameters];
    // With ZeRO-2 the plan counts weights whole: between forward and backward they are.
    const bool kept = text->find("GATHER_AGAIN = False") != std::string::npos && method.contains("zero=2");
    QCOMPARE(answer["bytes"].get<std::int64_t>() * (kept ? ranks / tensor : 1), held);
  }

  // Four processes that talk, two steps: the loss and all weights of the model in one piece.
  void training_is_that_of_one_piece_data() {
    QTest::addColumn<QString>("method");
    QTest::newRow("tensor groups, sharded") << "manual:dp=2:tp=2:zero=3";
    QTest::newRow("replicated, layers again") << "manual:dp=2:tp=2:recompute=full";
  }
  void training_is_that_of_one_piece() {
    REQUIRE_ENGINE(python, "pytorch");
    QFETCH(QString, method);
    const std::string text = file_of(method.toStdString(), scenario_of(config_of("llama", 8, false), "v100-16gb-1x4"));
    const auto answer = run_file(python, text, 4, 8, {"train"});
    QVERIFY2(answer["loss"] < 1e-5 && answer["weights"] < 1e-5, answer.dump().c_str());
    // The step did something.
    QVERIFY2(answer["steps"][0].get<double>() - answer["steps"][1].get<double>() > 1e-3, answer.dump().c_str());
  }

  // The file checks itself: another model has other modules.
  void another_model_is_refused() {
    REQUIRE_ENGINE(python, "pytorch");
    const std::string text = file_of("manual:dp=2:tp=4:zero=3", scenario_of(config_of("llama", 8, false)));
    std::string other = config_of("llama", 8, false);
    other.replace(other.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 3");
    std::ofstream(folder_.filePath("config.json").toStdString()) << other;
    const auto answer = run_file(python, text, 8, 8);
    QCOMPARE(answer["refused"].get<std::string>(),
             std::string("'model\\\\.layers\\\\.\\\\d+' matches 3 modules of your model, not 2: it is not the plan's"));
  }
};

QTEST_APPLESS_MAIN(AnnotationsTest)
#include "annotations_test.moc"
