// SPDX-License-Identifier: Apache-2.0
// models, hardware, inspect and the exit codes, through the program itself.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

class ListingTest : public QObject {
  Q_OBJECT

  struct Run {
    int code = -1;
    QByteArray out, err;
  };
  static Run run(const QStringList& arguments) {
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", arguments);
    Run result;
    if (!process.waitForFinished(60000) || process.exitStatus() != QProcess::NormalExit) return result;
    result.code = process.exitCode();
    result.out = process.readAllStandardOutput();
    result.err = process.readAllStandardError();
    return result;
  }

 private slots:
  // Each line begins with the name that other commands take.
  void listed_names_work() {
    const Run models = run({"models"});
    QCOMPARE(models.code, 0);
    const auto lines = models.out.split('\n');
    QVERIFY(lines.size() > 15);
    for (const auto& line : lines) {
      if (line.isEmpty()) continue;
      const QString name = line.split(' ').first();
      const Run inspect = run({"inspect", name, "--json"});
      QVERIFY2(inspect.code == 0, inspect.err);
    }
    const Run hardware = run({"hardware"});
    QCOMPARE(hardware.code, 0);
    for (const char* name : {"v100-16gb-2x8 ", "a100-80gb-4x8 ", "h100-80gb-1x8 ", "v100-16gb-1x2 ", "h100-80gb-1x4 "})
      QVERIFY2(("\n" + hardware.out).contains(QByteArray("\n") + name), name);
  }

  void json_lists() {
    for (const char* command : {"models", "hardware"}) {
      const Run listing = run({command, "--json"});
      QCOMPARE(listing.code, 0);
      const auto list = QJsonDocument::fromJson(listing.out).array();
      QVERIFY(list.size() >= 15);
      for (const auto& entry : list) QVERIFY(!entry.toObject()["name"].toString().isEmpty());
    }
  }

  // Exactly the keys of the contract.
  void inspect_keys() {
    const Run inspect = run({"inspect", "builtin:gpt2", "--json", "--batch", "2", "--sequence", "128"});
    QCOMPARE(inspect.code, 0);
    const auto object = QJsonDocument::fromJson(inspect.out).object();
    QStringList keys = object.keys();
    QStringList expected = {"name",
                            "source",
                            "operators",
                            "parameters",
                            "buffers",
                            "active_parameters",
                            "parameter_bytes",
                            "macs_forward",
                            "macs_backward",
                            "activation_bytes",
                            "symbolic_dimensions",
                            "warnings"};
    keys.sort();
    expected.sort();
    QCOMPARE(keys, expected);
    QCOMPARE(object["parameters"].toDouble(), 124439808.0);
    QCOMPARE(object["parameter_bytes"].toDouble(), 4 * 124439808.0);
    QCOMPARE(object["macs_forward"].toDouble(), 2 * 128.0 * (12 * (12 * 768.0 * 768 + 2 * 128 * 768) + 768 * 50257.0));
    QVERIFY(object["warnings"].isArray() && object["symbolic_dimensions"].isArray());
  }

  // What nobody gave is said with its reason (resources/manual/costs.md, 9); the precision only where the model states
  // one.
  void inspect_says_what_it_took() {
    QTemporaryDir folder;
    QFile config(folder.filePath("config.json"));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write(
        R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
                     "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, "max_position_embeddings": 512,
                     "torch_dtype": "bfloat16"})");
    config.close();
    const Run text = run({"inspect", config.fileName()});
    QVERIFY2(text.code == 0, text.err);
    for (const char* line :
         {"  batch         1 (the default)\n", "  sequence      512 (", "  precision     bf16 (torch_dtype says "})
      QVERIFY2(text.out.contains(line), text.out);
    const auto taken = [](const QStringList& arguments) {
      const Run ran = run(QStringList{"inspect", "--json"} + arguments);
      QStringList keys;
      for (const auto& one : QJsonDocument::fromJson(ran.out).object()["taken"].toArray()) {
        keys += one.toObject()["setting"].toString();
        if (one.toObject()["reason"].toString().isEmpty()) keys += "without a reason";
      }
      return keys.join(' ');
    };
    QCOMPARE(taken({config.fileName()}), QString("precision batch sequence"));
    QCOMPARE(taken({config.fileName(), "--batch", "2", "--sequence", "128"}), QString("precision"));
    QCOMPARE(taken({"builtin:lenet"}), QString("batch"));
  }

  void inspect_counts_one_sample_by_default() {
    const auto macs = [](const QStringList& arguments) {
      return QJsonDocument::fromJson(run(QStringList{"inspect", "--json"} + arguments).out)
          .object()["macs_forward"]
          .toDouble();
    };
    const double one = macs({"builtin:resnet50"});
    QVERIFY(one > 4e9 && one < 4.2e9);
    QCOMPARE(macs({"builtin:resnet50?batch=8"}), 8 * one);
    QCOMPARE(macs({"builtin:resnet50?batch=8", "--batch", "2"}), 2 * one);
  }

  // What is ignored or no model is said.
  void inspect_says_what_it_ignores() {
    const Run ignored = run({"inspect", "builtin:lenet", "--sequence", "77"});
    QCOMPARE(ignored.code, 0);
    QVERIFY2(ignored.err.contains("note: --sequence is ignored"), ignored.err);
    QVERIFY(run({"inspect", "builtin:gpt2", "--sequence", "77"}).err.isEmpty());
    QTemporaryDir folder;
    for (const char* format : {"turnpoint/placement@1", "turnpoint/result@1"}) {
      QFile file(folder.filePath("file.json"));
      QVERIFY(file.open(QIODevice::WriteOnly));
      file.write(QByteArray("{\"format\": \"") + format + "\", \"points\": []}");
      file.close();
      const Run other = run({"inspect", file.fileName()});
      QCOMPARE(other.code, 3);
      QVERIFY2(other.err.contains(QByteArray("file.json: is a ") + format + " file, which is no model"), other.err);
    }
  }

  // A preset is a profile like any other once it is written out.
  void presets_are_written_out() {
    QTemporaryDir folder;
    const QString named = folder.filePath("named.json"), base = folder.filePath("base.json");
    QCOMPARE(run({"hardware", "v100-16gb-2x8", "--out", named}).code, 0);
    QCOMPARE(run({"hardware", "--base", "v100-16gb-2x8", "--out", base}).code, 0);
    QFile one(named), two(base);
    QVERIFY(one.open(QIODevice::ReadOnly) && two.open(QIODevice::ReadOnly));
    const QByteArray text = one.readAll();
    QCOMPARE(text, two.readAll());
    QVERIFY(text.contains("turnpoint/hardware-profile@1"));
    const auto points = [](const QString& hardware) {
      const Run found = run({"search", "builtin:lenet", "--hardware", hardware, "--batch", "16"});
      return QJsonDocument::fromJson(found.out).object()["points"].toArray();
    };
    QVERIFY(!points(named).isEmpty());
    QCOMPARE(points(named), points("v100-16gb-2x8"));
  }

  void exit_codes_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("message");
    const auto row = [](const QStringList& arguments, int code, const char* message) {
      QTest::newRow(qPrintable(arguments.join(' ') + '.')) << arguments << code << QByteArray(message);
    };
    row({"--help"}, 0, "");
    row({"inspect", "--help"}, 0, "");
    row({}, 2, "For example:");
    row({"inspct"}, 2, "did you mean 'inspect'?");
    row({"--frobnicate"}, 2, "turnpoint-cli: ");
    row({"inspect"}, 2, "MODEL is required");
    row({"inspect", "builtin:gpt2", "--frobnicate"}, 2, "--frobnicate");
    row({"inspect", "builtin:gtp2"}, 2, "did you mean 'builtin:gpt2'?");
    row({"inspect", "builtin:gpt2", "--batch", "0"}, 2, "--batch must be between 1 and");
    row({"inspect", "builtin:gpt2", "--batch", "many"}, 2, "--batch expects a number, not 'many'");
    row({"inspect", "builtin:gpt2", "--sequence", "4096"}, 2, "longer than the model's 1024 learned positions");
    row({"inspect", "/nonexistent.onnx"}, 3, "/nonexistent.onnx: no such file");
    row({"place", "graph.json", "--devices", "4"}, 3, "graph.json");
    for (const QString method : {"random-search", "simulated-annealing"}) {
      row({"place", "graph.json", "--devices", "2", "--method", method + ":calls=0"}, 2, "calls must be between 1 and");
      row({"place", "graph.json", "--devices", "2", "--method", method + ":seconds=0"}, 2, "seconds must be above 0");
    }
    row({"place", "graph.json", "--devices", "2", "--method", "heft:calls=5"}, 2, "method heft takes no parameters");
    row({"export", "--help"}, 0, "");
    row({"inspect", "builtin:gpt2?layers=1&layers=2"}, 2, "parameter 'layers' is there twice");
    row({"hardware", "--out", "p.json"}, 2, "a preset is written by");
    row({"hardware", "--base", "v100-16gb-9999", "--out", "-"}, 2, "v100-16gb-9999");
    row({"measure", "--backend", "opencl"}, 2, "--backend knows auto, cpu and cuda, not 'opencl'");
    row({"validate", "r.json", "--backend", "opencl"}, 2, "--backend knows auto, cpu and cuda, not 'opencl'");
  }
  void exit_codes() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QByteArray, message);
    const Run result = run(arguments);
    QVERIFY2(result.code == code, result.err);
    QVERIFY2(result.err.contains(message), result.err);
    if (code == 0)
      QVERIFY(!result.out.isEmpty());
    else
      QVERIFY(result.out.isEmpty());
  }
};

QTEST_APPLESS_MAIN(ListingTest)
#include "listing_test.moc"
