// SPDX-License-Identifier: Apache-2.0
// A config.json read as one of a family that the user names, through the program itself.
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include "tests/cli/command_line.h"

using namespace turnpoint::test;

namespace {

constexpr const char* kUnknown =
    R"({"model_type": "brandnew", "strange_rank": 7, "hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 1,
        "num_attention_heads": 4, "intermediate_size": 128, "head_dim": 16})";

}  // namespace

class FamiliesTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    path_ = folder_.filePath(QStringLiteral("config.json"));
    QFile file(path_);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(kUnknown) > 0);
  }

  void an_unknown_family_says_how_it_is_read_all_the_same() {
    const Run refused = run({"inspect", path_});
    QCOMPARE(refused.code, kBadInput);
    for (const char* part :
         {"config.json: model_type: unknown family 'brandnew'", "strange_rank", "--as ", "config.json?as="})
      QVERIFY2(refused.err.contains(part), refused.err);
  }

  // Qwen 3 has two norms of a head's channels that Llama has not; both ways of naming the family mean the same.
  void the_family_is_named_by_option_or_behind_the_path() {
    const auto parameters = [](const Run& run) { return run.object()["parameters"].toInteger(); };
    const Run llama = run({"inspect", path_, "--as", "llama", "--json"});
    QVERIFY2(llama.code == kDone, llama.err);
    const Run qwen = run({"inspect", path_, "--as", "qwen3", "--json"});
    QCOMPARE(parameters(qwen) - parameters(llama), qint64(2 * 16));
    QCOMPARE(parameters(run({"inspect", path_ + "?as=qwen3", "--json"})), parameters(qwen));
  }

  // A question mark may belong to a folder's name; behind a change of the config the family is a further one.
  void the_family_is_named_whatever_the_folder_is_called() {
    QVERIFY(QDir(folder_.path()).mkpath("what?is=this"));
    const QString odd = folder_.filePath("what?is=this/config.json");
    QVERIFY(QFile::copy(path_, odd));
    const Run named = run({"inspect", odd, "--as", "llama", "--json"});
    QVERIFY2(named.code == kDone, named.err);
    const Run resized = run({"inspect", path_ + "?hidden=128", "--as", "llama", "--json"});
    QVERIFY2(resized.code == kDone && resized.out.contains("config.json?hidden=128&as=llama"), resized.err);
    const Run twice = run({"inspect", path_ + "?as=qwen3", "--as", "llama"});
    QVERIFY2(twice.code == kUsage && twice.err.contains("twice"), twice.err);
  }

  void a_search_takes_the_family_too() {
    const QStringList search{"search", path_,      "--hardware",    "v100-16gb-1x2", "--batch",
                             "2",      "--method", "data-parallel", "--json"};
    QCOMPARE(run(search).code, kBadInput);
    const Run done = run(search + QStringList{"--as", "llama"});
    QVERIFY2(done.code == kDone, done.err);
    QVERIFY2(done.out.contains("config.json?as=llama"), done.out.left(400));
  }

  void wrong_names_are_wrong_usage() {
    const Run unknown = run({"inspect", path_, "--as", "nosuch"});
    QCOMPARE(unknown.code, kUsage);
    QVERIFY2(unknown.err.contains("--as 'nosuch' names no known family") && unknown.err.contains("llama"), unknown.err);
    QCOMPARE(run({"inspect", path_, "--as", ""}).code, kUsage);
    QCOMPARE(run({"inspect", "builtin:lenet", "--as", "llama"}).code, kUsage);
  }

 private:
  QTemporaryDir folder_;
  QString path_;
};

QTEST_GUILESS_MAIN(FamiliesTest)
#include "families_test.moc"
