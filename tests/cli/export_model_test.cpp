// SPDX-License-Identifier: Apache-2.0
// The script that writes PyTorch models without their weights: its usage with python3 alone, a model where PyTorch is.
#include <QFile>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include "tests/cli/command_line.h"

using namespace turnpoint::test;

namespace {

Run script(const QStringList& arguments) {
  return run_program(QStringLiteral("python3"),
                     QStringList{TURNPOINT_SOURCE_DIR "/packaging/export_model.py"} + arguments);
}

/// Whether these modules are there to be imported.
bool has_modules(const char* names) {
  return run_program(QStringLiteral("python3"), {"-c", QStringLiteral("import ") + names}).code == 0;
}

}  // namespace

class ExportModelTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    if (QStandardPaths::findExecutable(QStringLiteral("python3")).isEmpty()) QSKIP("python3 is not installed");
  }

  void help_needs_no_library() {
    const Run help = script({"--help"});
    QVERIFY2(help.code == 0, help.err);
    for (const char* part : {"OUT.onnx", "module:callable", "--batch", "--sequence", "without its weights"})
      QVERIFY2(help.out.contains(part), part);
  }

  void wrong_usage_needs_no_library_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("words");
    QTest::newRow("nothing") << QStringList{} << 2 << "required: CONFIG|FOLDER|module:callable, OUT.onnx";
    QTest::newRow("no result") << QStringList{"config.json"} << 2 << "required: OUT.onnx";
    QTest::newRow("batch") << QStringList{"c", "o", "--batch", "0"} << 2 << "'0' is no whole number of at least 1";
    QTest::newRow("sequence") << QStringList{"c", "o", "--sequence", "-3"} << 2 << "--sequence";
    QTest::newRow("absent") << QStringList{"nosuch", "o"} << 1 << "nosuch: no such file, and not module:callable";
    QTest::newRow("folder") << QStringList{"EMPTY", "o"} << 1 << "the folder holds no config.json";
    QTest::newRow("no json") << QStringList{"BROKEN", "o"} << 1 << "Expecting";
    QTest::newRow("list") << QStringList{"LIST", "o"} << 1 << "must be an object";
    QTest::newRow("no family") << QStringList{"NAMELESS", "o"} << 1 << "has no model_type";
  }
  void wrong_usage_needs_no_library() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, words);
    QTemporaryDir folder;
    const auto written = [&](const char* name, const char* text) {
      QFile file(folder.filePath(QLatin1String(name)));
      return file.open(QIODevice::WriteOnly) && file.write(text) > 0;
    };
    QVERIFY(written("BROKEN", "{") && written("LIST", "[]") && written("NAMELESS", "{}") && QDir(folder.path()).mkdir("EMPTY"));
    for (QString& argument : arguments)
      if (argument.size() > 3 && argument.isUpper()) argument = folder.filePath(argument);
    const Run refused = script(arguments);
    QCOMPARE(refused.code, code);
    QVERIFY2(refused.err.contains(words.toUtf8()) && !refused.err.contains("Traceback"), refused.err);
  }

  void a_config_becomes_a_graph_without_weights() {
    if (!has_modules("torch, transformers, onnxscript")) QSKIP("torch, transformers and onnxscript are not all installed");
    QTemporaryDir folder;
    const QString config = folder.filePath("config.json"), out = folder.filePath("out.onnx");
    QFile file(config);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 100,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": false})");
    file.close();
    const Run made = script({config, out, "--sequence", "16"});
    QVERIFY2(made.code == 0, made.err);
    const Run ours = run({"inspect", config, "--json"}), theirs = run({"inspect", out, "--json"});
    QVERIFY2(theirs.code == kDone, theirs.err);
    QCOMPARE(theirs.object()["parameters"].toInteger(), ours.object()["parameters"].toInteger());
  }
};

QTEST_GUILESS_MAIN(ExportModelTest)
#include "export_model_test.moc"
