// SPDX-License-Identifier: Apache-2.0
// explain: what a point is, what a forced choice costs and how two points differ, in sentences and as a document, from
// results that hold their plans and from those that do not; and what it refuses.
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "plan_io/schema_check.h"

using namespace turnpoint::test;

class ExplainTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  QString path(const char* name) const { return folder_.filePath(name); }

  Run explain(const QStringList& more) { return run(QStringList{"explain", path("plans.json")} + more); }

 private slots:
  void initTestCase() {
    const QStringList search{"search",     "builtin:gpt2?layers=2&hidden=256&sequence=64",
                             "--hardware", "v100-16gb-1x4",
                             "--batch",    "16",
                             "--method",   "ft:micro-batches=1,manual:pp=2",
                             "--out"};
    QCOMPARE(run(search + QStringList{path("points.json")}).code, kDone);
    QCOMPARE(run(search + QStringList{path("plans.json"), "--max-plans", "20"}).code, kDone);
  }

  void sentences() {
    const Run told = explain({"--method", "ft", "--force", "layer1/*: tp=4"});
    QCOMPARE(told.code, kDone);
    for (const char* says : {"Forced: layer1/* \u2014 tensor parallel 4 in ",
                             "Within the point's memory: ", "Fastest with it in the devices' memory: ",
                             "Where the difference comes from:", "\n  layer1 ", "What changes:", "column parallel 4"})
      QVERIFY2(told.out.contains(says), told.out + "\nlacks " + says);
  }

  void one_answer_from_plans_and_from_points() {
    const QStringList asked{"--method", "ft", "--point", "min-memory", "--force", "*/mlp/up: column", "--json"};
    const Run held = explain(asked), searched = run(QStringList{"explain", path("points.json")} + asked);
    QCOMPARE(held.code, kDone);
    QCOMPARE(searched.out, held.out);
    const auto document = nlohmann::json::parse(held.out.toStdString());
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("explanation@1", document), std::string());
    QCOMPARE(document["force"][0]["operators"], (nlohmann::json{"layer0/mlp/up", "layer1/mlp/up"}));
    QCOMPARE(document["point"]["index"], 0);
    QCOMPARE(document["difference"]["of_stages"], false);
    // Parts of parts add up.
    double seconds = 0;
    std::int64_t bytes = 0;
    for (const auto& layer : document["difference"]["layers"]) {
      bytes += layer["memory_bytes"].get<std::int64_t>();
      for (const char* part : {"compute_s", "recompute_s", "weights_s", "activations_s", "offload_s"})
        seconds += layer[part].get<double>();
    }
    const auto &plan = document["same_memory"], &point = document["point"];
    QCOMPARE(bytes, plan["memory_bytes"].get<std::int64_t>() - point["memory_bytes"].get<std::int64_t>());
    QVERIFY(std::abs(seconds - (plan["time_s"].get<double>() - point["time_s"].get<double>())) <=
            1e-9 * plan["time_s"].get<double>());
  }

  void a_point_and_what_is_near_it() {
    const Run told = explain({"--method", "ft"});
    QCOMPARE(told.code, kDone);
    for (const char* says :
         {"Point ", "Nearest named strategy: manual", "A further 1.0 GiB is worth",
          "A further 1 GB/s inside nodes is worth at least: ", "A further 1 TFLOP/s of every device"})
      QVERIFY2(told.out.contains(says), told.out + "\nlacks " + says);
    const auto document = nlohmann::json::parse(explain({"--method", "ft", "--json"}).out.toStdString());
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("explanation@1", document), std::string());
    QCOMPARE(document["worth"].size(), std::size_t(2));  // one node
    // Layer by layer, each told once and in text as in the document.
    std::vector<std::string> layers;
    for (const auto& line : document["point"]["by_layer"]) {
      for (const auto& layer : line["layers"]) layers.push_back(layer.get<std::string>());
      QVERIFY2(told.out.contains(": " + QByteArray::fromStdString(line["words"].get<std::string>()) + "\n"), told.out);
    }
    QVERIFY2(told.out.contains("\nLayer by layer:\n  embed"), told.out);
    QCOMPARE(layers, (std::vector<std::string>{"embed", "layer0", "layer1", "head"}));
    // Plans with stages are explained as well.
    const Run staged = explain({"--method", "manual:pp=2"});
    QVERIFY2(staged.out.contains("Nearest named strategy: manual:pp=2, "), staged.out + staged.err);
  }

  void ratio_plans() {
    const QStringList search{"search",          "builtin:alexnet",
                             "--hardware",      "v100-16gb-1x2+a100-40gb-1x2",
                             "--batch",         "240",
                             "--method",        "accpar,hypar,owt,data-parallel",
                             "--plans",         "--out",
                             path("ratio.json")};
    QCOMPARE(run(search).code, kDone);
    const auto told = [&](const QStringList& more) { return run(QStringList{"explain", path("ratio.json")} + more); };
    const Run accpar = told({"--method", "accpar"});
    QCOMPARE(accpar.code, kDone);
    for (const char* says :
         {"4 devices cut in two at 2 levels, 8 layers.", "  Cut 1: ", " to 2 \u00d7 V100-16GB", " by batch (I)",
          "Types of layers", "Computing takes ", "The network takes ", "Nearest of the other results: "})
      QVERIFY2(accpar.out.contains(QString::fromUtf8(says).toUtf8()), accpar.out + "\nlacks " + says);
    const auto document = nlohmann::json::parse(told({"--method", "owt", "--json"}).out.toStdString());
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("explanation@1", document), std::string());
    QVERIFY(document["nearest"]["method"] != "owt");
    // Questions to the engine stay refused.
    const Run forced = told({"--method", "accpar", "--force", "*: dp"});
    QCOMPARE(forced.code, kUsage);
    QVERIFY2(forced.err.contains("those of accpar are ratio plans"), forced.err);
    const Run against = told({"--method", "accpar", "--against", "0"});
    QCOMPARE(against.code, kUsage);
    QVERIFY2(against.err.contains("--against is for plans that split operators, not for ratio plans"), against.err);
  }

  void two_points() {
    const QStringList asked{"--method", "ft", "--point", "min-memory", "--against", "min-time"};
    const Run told = explain(asked);
    QCOMPARE(told.code, kDone);
    QVERIFY2(told.out.startsWith("Point 0, ") && told.out.contains("Where the difference comes from:"), told.out);
    const auto document = nlohmann::json::parse(explain(asked + QStringList{"--json"}).out.toStdString());
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("explanation@1", document), std::string());
    const auto &total = document["difference"]["total"], &first = document["point"], &second = document["against"];
    QCOMPARE(total["memory_bytes"].get<std::int64_t>(),
             second["memory_bytes"].get<std::int64_t>() - first["memory_bytes"].get<std::int64_t>());
    QVERIFY(
        std::abs(total["time_s"].get<double>() - (second["time_s"].get<double>() - first["time_s"].get<double>())) <=
        1e-9 * first["time_s"].get<double>());
    QVERIFY(explain({"--method", "ft", "--against", "0", "--point", "0"}).out.contains("\nNothing changes.\n"));
    const auto staged = nlohmann::json::parse(
        explain({"--method", "manual:pp=2", "--point", "0", "--against", "0", "--json"}).out.toStdString());
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("explanation@1", staged), std::string());
    QCOMPARE(staged["difference"]["of_stages"], true);
    QVERIFY(staged["difference"]["layers"].empty());
  }

  void refusals() {
    const auto refused = [&](const QStringList& more, int code, const char* says) {
      const Run run = explain(more);
      QCOMPARE(run.code, code);
      QVERIFY2(run.err.contains(says) && run.err.count('\n') <= 2 && run.out.isEmpty(), run.err);
    };
    refused({"--force", "*: dp"}, kUsage, "choose one with --method");
    refused({"--method", "manual:pp=2", "--force", "*: dp"}, kUsage,
            "choices are forced on plans that split operators and have no stages; those of manual are pipelines");
    refused({"--method", "ft", "--force", "*: tp=3"}, kUsage,
            "no operator that '*' names can be 'tp=3'; 'embed/tokens' can be");
    refused({"--method", "ft", "--against", "999999"}, kUsage, "--against 999999 is outside");
    refused({"--method", "ft", "--against", "0", "--force", "*: dp"}, kUsage, "excludes");
    refused({"--method", "ft", "--point", "999999", "--force", "*: dp"}, kUsage, "--point 999999 is outside");
    QFile file(path("plans.json"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QByteArray moved = file.readAll();
    moved.replace("builtin:gpt2?layers=2&hidden=256&sequence=64", "gone.onnx");
    QFile written(path("gone.json"));
    QVERIFY(written.open(QIODevice::WriteOnly) && written.write(moved) == moved.size());
    written.close();
    const Run gone = run({"explain", path("gone.json"), "--method", "ft", "--force", "*: dp"});
    QCOMPARE(gone.code, kBadInput);
    QVERIFY2(gone.err.contains("gone.onnx: no such file; explain needs the model and the hardware of the result"),
             gone.err);
  }
};

QTEST_APPLESS_MAIN(ExplainTest)
#include "explain_test.moc"
