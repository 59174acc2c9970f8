// SPDX-License-Identifier: Apache-2.0
// export --nearest: the fastest point that fits and that an engine can run, found here by asking for every point alone;
// from results that hold their plans and from those that do not.
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"

using namespace turnpoint::test;

class NearestTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  QString path(const char* name) const { return folder_.filePath(name); }

 private slots:
  void initTestCase() {
    QStringList search{"search",     "builtin:llama-2-7b?layers=2&hidden=1024&width=2048&sequence=1024",
                       "--hardware", "v100-16gb-1x8",
                       "--batch",    "128",
                       "--method",   "megatron",
                       "--out"};
    QCOMPARE(run(search + QStringList{path("points.json")}).code, kDone);
    QCOMPARE(run(search + QStringList{path("plans.json"), "--plans"}).code, kDone);
  }

  void the_fastest_that_the_engine_can_run_data() {
    QTest::addColumn<QString>("file");
    QTest::newRow("searched again") << path("points.json");
    QTest::newRow("held plans") << path("plans.json");
  }
  void the_fastest_that_the_engine_can_run() {
    QFETCH(QString, file);
    const int points = int(run({"export", file, "--to", "points-csv"}).out.count("\r\n")) - 1;
    QVERIFY(points >= 2);
    int fastest = -1, refused = -1;
    for (int k = 0; k < points; ++k) {
      const Run alone = run({"export", file, "--point", QString::number(k), "--to", "deepspeed"});
      if (alone.code == kDone) fastest = k;  // points lie by rising memory and falling time, and here all fit
      if (alone.code == kUsage) refused = k;
    }
    QVERIFY(fastest >= 0 && refused >= 0);
    const Run asked = run({"export", file, "--point", QString::number(refused), "--to", "deepspeed"});
    QVERIFY2(asked.out.isEmpty() && asked.err.contains(": DeepSpeed's file splits the batch alone (nearest is data"),
             asked.err);
    const Run near = run({"export", file, "--point", QString::number(refused), "--to", "deepspeed", "--nearest"});
    QCOMPARE(near.code, kDone);
    QCOMPARE(near.out, run({"export", file, "--point", QString::number(fastest), "--to", "deepspeed"}).out);
    const QString says = QString("note: point %1, ").arg(fastest);
    const QString costs = QString("%1 than point %2").arg(fastest > refused ? "more" : "less").arg(refused);
    QVERIFY2(
        near.err.contains(says.toUtf8()) && near.err.contains("is the fastest that fits and that DeepSpeed can run"),
        near.err);
    QVERIFY2(near.err.contains(costs.toUtf8()), near.err);
    // A point that the engine can run stays as it is.
    const Run same = run({"export", file, "--point", QString::number(fastest), "--to", "deepspeed", "--nearest"});
    QVERIFY2(same.code == kDone && same.err.isEmpty() && same.out == near.out, same.err);
  }

  // Of three points, made of three results, the engine can run two: the faster one is taken.
  void the_fastest_of_several() {
    nlohmann::json all;
    for (const char* split : {"tp=2:zero=3:recompute=full", "zero=1:recompute=full", "zero=3"}) {
      QCOMPARE(run({"search", "builtin:llama-2-7b?layers=2&hidden=1024&width=2048&sequence=1024", "--hardware",
                    "v100-16gb-1x8", "--batch", "128", "--method", QString("manual:") + split, "--plans", "--out",
                    path("one.json")})
                   .code,
               kDone);
      std::ifstream in(path("one.json").toStdString());
      auto one = nlohmann::json::parse(in);
      if (all.is_null()) {
        all = std::move(one);
        continue;
      }
      QVERIFY(one["points"][0]["memory_bytes"] > all["points"].back()["memory_bytes"] &&
              one["points"][0]["time_s"] < all["points"].back()["time_s"]);
      all["points"].push_back(one["points"][0]);
      all["plans"].push_back(one["plans"][0]);
    }
    std::ofstream(path("three.json").toStdString()) << all.dump();
    const Run near = run({"export", path("three.json"), "--point", "0", "--to", "deepspeed", "--nearest"});
    QVERIFY2(near.code == kDone && near.err.contains("note: point 2, "), near.err);
    QCOMPARE(nlohmann::json::parse(near.out.toStdString())["zero_optimization"]["stage"], 3);
  }

  // Where the engine runs no plan of the result, the split that comes nearest: one that fits where a plan does, and of
  // a kind that the engine takes.
  void a_split_of_ones_own_comes_nearest() {
    const auto search = [this](const char* out, const QStringList& more) {
      return run(QStringList{"search", "builtin:gpt2?layers=2&hidden=256&sequence=64", "--hardware", "v100-16gb-1x4",
                             "--batch", "64", "--out", path(out), "--method"} +
                 more)
          .code;
    };
    const auto near = [this](const char* engine) {
      return run({"export", path("one.json"), "--to", engine, "--nearest"});
    };
    QCOMPARE(search("one.json", {"optcnn"}), kDone);
    QCOMPARE(search("own.json", {"manual"}), kDone);
    const Run own = run({"export", path("own.json"), "--to", "deepspeed"});
    const Run split = near("deepspeed");
    QVERIFY2(split.code == kDone && own.code == kDone, split.err + own.err);
    QVERIFY2(split.err.contains("of the result's 1 point that fits, DeepSpeed can run none") &&
                 split.err.contains("nearest to point 0 is a split of one's own that DeepSpeed can run, manual, "),
             split.err);
    QCOMPARE(split.out, own.out);

    QCOMPARE(search("one.json", {"optcnn", "--memory-limit", "400MiB"}), kDone);
    QCOMPARE(search("own.json", {"manual", "--memory-limit", "400MiB"}), kInfeasible);
    const Run large = near("deepspeed");
    QVERIFY2(large.code == kUsage && large.out.isEmpty(), large.err);
    QVERIFY2(large.err.contains("that fits, DeepSpeed can run none") && !large.err.contains("one's own"), large.err);

    QCOMPARE(search("one.json", {"manual:pp=2:micro-batches=4"}), kDone);
    const Run staged = near("jax");
    QVERIFY2(staged.code == kUsage && staged.out.isEmpty(), staged.err);
    QVERIFY2(staged.err.contains("JAX can run none") && !staged.err.contains("one's own"), staged.err);
  }

  void nothing_near_is_said() {
    const QString file = path("stages.json");
    QCOMPARE(run({"search", "builtin:gpt2?layers=4&hidden=512&sequence=32", "--hardware", "v100-16gb-1x4", "--batch",
                  "32", "--method", "manual:pp=4:micro-batches=4", "--out", file})
                 .code,
             kDone);
    const Run none = run({"export", file, "--to", "deepspeed", "--nearest"});
    QCOMPARE(none.code, kUsage);
    QVERIFY2(none.err.contains("the plan has 4 stages") &&
                 none.err.contains("of the result's 1 point that fits, DeepSpeed can run none"),
             none.err);
    // Remarks that a file has no room for.
    QCOMPARE(run({"search", "builtin:gpt2?layers=4&hidden=512&sequence=32", "--hardware", "v100-16gb-1x4", "--batch",
                  "32", "--method", "manual:recompute=full", "--out", file})
                 .code,
             kDone);
    const Run told = run({"export", file, "--to", "deepspeed"});
    QVERIFY2(told.code == kDone && told.err.contains("note: layers run again only where the model says so"), told.err);
  }
};

QTEST_APPLESS_MAIN(NearestTest)
#include "nearest_test.moc"
