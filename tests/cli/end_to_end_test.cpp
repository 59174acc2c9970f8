// SPDX-License-Identifier: Apache-2.0
// The command line end to end, as a user or a script meets it: exit codes, what goes where, and the whole job of
// searching, exporting and solving, run through the program itself.
#include <sys/resource.h>
#include <unistd.h>

#include <QDir>
#include <QHash>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include "cli/command_line.h"
#include "sanitized.h"
#include "send_signal.h"

using namespace turnpoint::test;

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Processor time of a running process (proc(5): fields 14 and 15 of stat, in clock ticks).
double cpu_seconds(qint64 process) {
  QFile file(QString("/proc/%1/stat").arg(process));
  if (!file.open(QIODevice::ReadOnly)) return 0;
  const auto fields = file.readAll().split(' ');
  return fields.size() > 15
             ? (fields[13].toDouble() + fields[14].toDouble()) / static_cast<double>(sysconf(_SC_CLK_TCK))
             : 0;
}

QJsonObject object_of(const QByteArray& text) { return QJsonDocument::fromJson(text).object(); }

QByteArray contents(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void write(const QString& path, const QByteArray& text) {
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  QCOMPARE(file.write(text), qint64(text.size()));
}

// JSON with single quotes, which read better in sources.
QByteArray json(const char* text) { return QByteArray(text).replace('\'', '"'); }

// Three operators in a chain with two configurations each; its frontier was worked out by hand over all eight choices.
const QByteArray kChain = json(
    "{'format': 'turnpoint/frontier-problem@1', "
    "'nodes': [{'name': 'a', 'costs': [[4, 2], [2, 5]]}, {'name': 'b', 'costs': [[6, 3], [3, 4]]}, {'name': 'c', "
    "'costs': [[5, 1], [1, 6]]}], "
    "'edges': [{'from': 0, 'to': 1, 'costs': [[[0, 0], [0, 2]], [[0, 3], [0, 1]]]}, "
    "{'from': 1, 'to': 2, 'costs': [[[0, 0], [0, 4]], [[0, 2], [0, 0]]]}]}");

const QStringList kSmallSearch = {"search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--batch", "64"};

}  // namespace

class EndToEndTest : public QObject {
  Q_OBJECT

 private:
  QTemporaryDir folder_;
  QString path(const char* name) const { return folder_.filePath(name); }

 private slots:
  void help_and_usage_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("text");
    const auto row = [](const QStringList& arguments, int code, const char* text) {
      QTest::addRow("turnpoint-cli %s", qPrintable(arguments.join(' '))) << arguments << code << text;
    };
    row({"--help"}, kDone, "search");
    row({"--version"}, kDone, "turnpoint-cli 0.");
    row({"search", "--help"}, kDone, "--inter-bandwidth-scale");
    row({"solve", "--help"}, kDone, "--threads");
    row({}, kUsage, "");
    row({"serach"}, kUsage, "search");
    row({"--no-such-option"}, kUsage, "no-such-option");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--no-such-option"}, kUsage, "no-such-option");
    row({"search", "builtin:gpt2"}, kUsage, "--hardware");
    row({"search", "builtin:gtp2", "--hardware", "v100-16gb-2x8"}, kUsage, "gpt2");
    row({"search", "builtin:gpt2?colour=2", "--hardware", "v100-16gb-2x8"}, kUsage, "colour");
    row({"search", "builtin:gpt2", "--hardware", "v100-16bg-2x8"}, kUsage, "v100-16gb");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--method", "fft"}, kUsage, "fft");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--method", "ft,"}, kUsage, "empty name");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--method", "ft,all"}, kUsage, "stands alone");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--method", "fsdp,fsdp"}, kUsage, "'fsdp' twice");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--precision", "fp4"}, kUsage, "bf16");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--precision", "fp8"}, kUsage, "no 8-bit numbers");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--batch", "many"}, kUsage, "--batch");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--memory-limit", "16 apples"}, kUsage,
        "--memory-limit");
    row({"search", "builtin:gpt2", "--hardware", "v100-16gb-2x8", "--devices", "9"}, kUsage, "9");
    row({"search", "absent.onnx", "--hardware", "v100-16gb-2x8"}, kBadInput, "absent.onnx");
    row({"inspect", "absent.onnx"}, kBadInput, "absent.onnx");
    row({"solve", "absent.json"}, kBadInput, "absent.json");
    row({"export", "absent.json", "--to", "json"}, kBadInput, "absent.json");
    row({"measure", "--from", "absent.jsonl"}, kBadInput, "absent.jsonl");
    row({"validate", "absent.json", "--point", "turning"}, kBadInput, "absent.json");
  }
  void help_and_usage() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, text);
    const Run result = run(arguments);
    QCOMPARE(result.code, code);
    const QByteArray& where = code == kDone ? result.out : result.err;
    QVERIFY2(where.contains(text.toUtf8()), where);
    if (code != kDone) QCOMPARE(result.out, QByteArray());  // messages never mix with results
  }

  void broken_files_are_bad_input_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("reason");
    QTest::newRow("not JSON") << QByteArray("{\n\"format\": \n}") << "line 3";
    QTest::newRow("nested too deep") << QByteArray(100000, '[') << "nested deeper";
    QTest::newRow("another format") << (json("{'format': 'turnpoint/plan@1'}")) << "format";
    QTest::newRow("empty") << QByteArray() << "";
    QByteArray loop = kChain;
    QTest::newRow("self-loop") << loop.replace("\"to\": 1", "\"to\": 0") << "";
    QByteArray outside = kChain;
    QTest::newRow("index out of range") << outside.replace("\"to\": 2", "\"to\": 7") << "7";
    QByteArray ragged = kChain;
    QTest::newRow("ragged table") << ragged.replace("[[0, 0], [0, 2]]", "[[0, 0]]") << "";
    QByteArray negative = kChain;
    QTest::newRow("negative memory") << negative.replace("[4, 2]", "[-4, 2]") << "";
  }
  void broken_files_are_bad_input() {
    QFETCH(QByteArray, text);
    QFETCH(QString, reason);
    write(path("broken.json"), text);
    for (const QStringList& arguments :
         {QStringList{"solve", path("broken.json")}, QStringList{"export", path("broken.json"), "--to", "json"}}) {
      const Run result = run(arguments);
      QVERIFY2(result.code == kBadInput, result.err);
      QVERIFY2(result.err.contains("broken.json"), result.err);
      if (arguments[0] == "solve") QVERIFY2(result.err.contains(reason.toUtf8()), result.err);
    }
    write(path("broken.onnx"), text);
    const Run inspect = run({"inspect", path("broken.onnx")});
    QVERIFY2(inspect.code == kBadInput, inspect.err);
    QVERIFY2(inspect.err.contains("broken.onnx"), inspect.err);
  }

  void solve_gives_the_five_points_of_the_chain_data() {
    QTest::addColumn<QStringList>("more");
    QTest::newRow("as it is") << QStringList();
    for (const char* threads : {"1", "2", "5"})
      QTest::addRow("%s threads", threads) << QStringList{"--threads", threads};
    QTest::newRow("exact by name") << QStringList{"--method", "exact"};
  }
  void solve_gives_the_five_points_of_the_chain() {
    QFETCH(QStringList, more);
    write(path("chain.json"), kChain);
    const Run result = run(QStringList{"solve", path("chain.json")} + more);
    QVERIFY2(result.code == kDone, result.err);
    const auto answer = object_of(result.out);
    QCOMPARE(answer["format"].toString(), QString("turnpoint/frontier@1"));
    QCOMPARE(answer["exact"].toBool(), true);
    QCOMPARE(answer["gap"].toDouble(-1), 0.0);
    QVERIFY(answer["search_s"].toDouble(-1) >= 0);
    const struct {
      int memory;
      double time;
      QJsonArray configs;
    } expected[] = {
        {6, 16, {1, 1, 1}}, {8, 14, {0, 1, 1}}, {10, 13, {1, 1, 0}}, {12, 11, {0, 1, 0}}, {15, 6, {0, 0, 0}}};
    const auto points = answer["points"].toArray();
    QCOMPARE(points.size(), 5);
    for (int i = 0; i < 5; ++i) {
      QCOMPARE(points[i]["memory"].toInt(), expected[i].memory);
      QCOMPARE(points[i]["time"].toDouble(), expected[i].time);
      QCOMPARE(points[i]["configs"].toArray(), expected[i].configs);
    }
  }

  void a_problem_without_solution_is_infeasible() {
    write(path("forbidden.json"), json("{'format': 'turnpoint/frontier-problem@1', "
                                       "'nodes': [{'name': 'a', 'costs': [[1, 1]]}, {'name': 'b', 'costs': [[1, 1]]}], "
                                       "'edges': [{'from': 0, 'to': 1, 'costs': [[[]]]}]}"));
    const Run result = run({"solve", path("forbidden.json")});
    QVERIFY2(result.code == kInfeasible, result.err);
    QVERIFY2(result.err.contains("forbidden.json"), result.err);
  }

  void a_search_writes_a_result() {
    const Run result = run(kSmallSearch);
    QVERIFY2(result.code == kDone, result.err);
    const auto document = object_of(result.out);
    QCOMPARE(document["format"].toString(), QString("turnpoint/result@1"));
    QCOMPARE(document["method"].toString(), QString("ft"));
    QCOMPARE(document["clock"].toString(), QString("additive"));
    QCOMPARE(document["scenario"]["batch"].toInt(), 64);
    QCOMPARE(document["scenario"]["devices"].toInt(), 4);
    const auto points = document["points"].toArray();
    QVERIFY(!points.isEmpty());
    for (int i = 0; i < points.size(); ++i) {
      const double time = points[i]["time_s"].toDouble(),
                   parts = points[i]["compute_s"].toDouble() + points[i]["network_s"].toDouble();
      QVERIFY(std::abs(time - parts) <= 1e-9 * time);
      if (i == 0) continue;
      QVERIFY(points[i]["memory_bytes"].toDouble() > points[i - 1]["memory_bytes"].toDouble());
      QVERIFY(time < points[i - 1]["time_s"].toDouble());
    }
  }

  void results_do_not_depend_on_threads() {
    QJsonValue first;
    for (const char* threads : {"1", "2", "7"}) {
      const Run result = run(kSmallSearch + QStringList{"--threads", threads, "--plans"});
      QVERIFY2(result.code == kDone, result.err);
      auto document = object_of(result.out);
      QVERIFY(document["search_s"].isDouble());
      document.remove("search_s");
      QCOMPARE(document["plans"].toArray().size(), document["points"].toArray().size());
      if (first.isUndefined() || first.isNull()) first = document;
      QVERIFY(QJsonValue(document) == first);
    }
  }

  // No other method may lie below the exact frontier; faster links never make the best plan slower.
  void methods_and_sliders_agree_with_the_frontier() {
    const auto points_of = [](const QJsonValue& result) { return result["points"].toArray(); };
    const Run all = run(kSmallSearch + QStringList{"--method", "ft,data-parallel,optcnn"});
    QVERIFY2(all.code == kDone, all.err);
    const auto document = object_of(all.out);
    QCOMPARE(document["format"].toString(), QString("turnpoint/results@1"));
    const auto results = document["results"].toArray();
    QCOMPARE(results.size(), 3);
    const auto frontier = points_of(results[0]);
    for (int i = 1; i < 3; ++i) {
      const auto single = points_of(results[i]);
      QCOMPARE(single.size(), 1);
      bool reached = false;
      for (const QJsonValue point : frontier)
        reached |= point["memory_bytes"].toDouble() <= single[0]["memory_bytes"].toDouble() &&
                   point["time_s"].toDouble() <= single[0]["time_s"].toDouble() * (1 + 1e-9);
      QVERIFY2(reached, results[i]["method"].toString().toUtf8());
    }
    const Run faster = run(kSmallSearch + QStringList{"--intra-bandwidth-scale", "4"});
    QVERIFY2(faster.code == kDone, faster.err);
    QVERIFY(points_of(object_of(faster.out)).last()["time_s"].toDouble() <=
            frontier.last()["time_s"].toDouble() * (1 + 1e-9));
  }

  void one_method_gives_one_result() {
    const Run result = run(kSmallSearch + QStringList{"--method", "data-parallel"});
    QVERIFY2(result.code == kDone, result.err);
    const auto document = object_of(result.out);
    QCOMPARE(document["method"].toString(), QString("data-parallel"));
    QCOMPARE(document["points"].toArray().size(), 1);
  }

  void a_limit_that_nothing_fits_still_writes_the_result() {
    const Run result = run(kSmallSearch + QStringList{"--memory-limit", "1KiB", "--out", path("limited.json")});
    QVERIFY2(result.code == kInfeasible, result.err);
    QCOMPARE(result.out, QByteArray());
    QVERIFY2(result.err.contains("1.00 KiB"), result.err);
    const auto document = object_of(contents(path("limited.json")));
    QVERIFY(!document["points"].toArray().isEmpty());
    for (const QJsonValue point : document["points"].toArray()) QVERIFY(!point["fits"].toBool(true));
    // The same without a limit is no failure.
    QCOMPARE(run(kSmallSearch).code, kDone);
  }

  void exports_agree_with_the_result() {
    const Run search = run(kSmallSearch + QStringList{"--out", path("result.json")});
    QVERIFY2(search.code == kDone, search.err);
    const auto points = object_of(contents(path("result.json")))["points"].toArray();
    for (const auto& [name, index] :
         {std::pair<QString, int>{"min-memory", 0}, {"min-time", int(points.size()) - 1}, {"0", 0}}) {
      const Run plan = run({"export", path("result.json"), "--point", name, "--to", "json"});
      QVERIFY2(plan.code == kDone, plan.err);
      const auto document = object_of(plan.out);
      QCOMPARE(document["format"].toString(), QString("turnpoint/plan@1"));
      QCOMPARE(document["kind"].toString(), QString("sharding"));
      double time = 0;
      for (const QJsonValue op : document["operators"].toArray())
        time += op["compute_s"].toDouble() + op["network_s"].toDouble();
      QVERIFY(!document["operators"].toArray().isEmpty());
      QVERIFY(time > 0 && time <= points[index]["time_s"].toDouble() * (1 + 1e-9));
    }
    const Run dot =
        run({"export", path("result.json"), "--point", "min-time", "--to", "dot", "--out", path("plan.dot")});
    QVERIFY2(dot.code == kDone, dot.err);
    QVERIFY(contents(path("plan.dot")).contains("digraph"));
    const Run svg = run({"export", path("result.json"), "--point", "min-time", "--to", "svg"});
    QVERIFY2(svg.code == kDone && svg.out.contains("<svg"), svg.err);
    const Run csv = run({"export", path("result.json"), "--point", "min-time", "--to", "csv"});
    QVERIFY2(csv.code == kDone && csv.out.count('\n') > 2, csv.err);
    QCOMPARE(run({"export", path("result.json"), "--point", "0", "--to", "json", "--out", path("plan.json")}).code,
             kDone);
    const Run no_result = run({"export", path("plan.json"), "--to", "csv"});
    QCOMPARE(no_result.code, kBadInput);
    QVERIFY2(no_result.err.contains("but turnpoint/plan@"), no_result.err);
    QCOMPARE(run({"export", path("result.json"), "--point", "100000", "--to", "json"}).code, kUsage);
    QCOMPARE(run({"export", path("result.json"), "--point", "best", "--to", "json"}).code, kUsage);
    const Run refused = run({"export", path("result.json"), "--point", "0", "--to", "morse"});
    QCOMPARE(refused.code, kUsage);
    QVERIFY2(refused.err.contains(
                 "--to knows json, csv, dot, svg, trace, task-graph, jax, jax:explicit, pytorch, transformers, "
                 "megatron, torchtitan, deepspeed and points-csv, not 'morse'"),
             refused.err);
    const Run table = run({"export", path("result.json"), "--to", "points-csv"});
    QVERIFY2(table.code == kDone && table.out.startsWith("point,memory_bytes,"), table.err);
    QCOMPARE(table.out.count("\r\n"), points.size() + 1);
  }

  // The plan of the file is exported, with its model or without; what needs the model says so.
  void plans_outlive_their_model() {
    write(path("config.json"), json("{'model_type': 'gpt2', 'n_layer': 1, 'n_embd': 32, 'n_head': 2, 'vocab_size': 64, "
                                    "'n_positions': 16}"));
    const auto searched = [&](const QString& out, const QStringList& more) {
      return run(
          QStringList{"search", path("config.json"), "--hardware", "v100-16gb-1x4", "--batch", "8", "--out", out} +
          more);
    };
    const QString with = path("with.json"), without = path("without.json"), placed = path("placed.json");
    const QStringList whole{"--method", "ft:micro-batches=1"};
    QCOMPARE(searched(with, QStringList("--plans") + whole).code, kDone);
    QCOMPARE(searched(without, whole).code, kDone);
    QCOMPARE(searched(placed, {"--plans", "--method", "heft"}).code, kDone);
    QHash<QString, QByteArray> before;
    for (const QString form : {"json", "csv", "dot", "svg", "trace"}) {
      const Run read = run({"export", with, "--point", "0", "--to", form});
      const Run again = run({"export", without, "--point", "0", "--to", form});
      QVERIFY2(read.code == kDone && again.code == kDone, read.err + again.err);
      QCOMPARE(read.out, again.out);
      before[form] = read.out;
    }
    const QByteArray points = run({"export", with, "--to", "points-csv"}).out;
    QVERIFY(points.count("\r\n") > 1);
    QVERIFY(QFile::remove(path("config.json")));
    QCOMPARE(run({"export", with, "--to", "points-csv"}).out, points);
    QCOMPARE(run({"export", without, "--to", "points-csv"}).out, points);
    for (const QString form : {"json", "csv"}) {
      const Run read = run({"export", with, "--point", "0", "--to", form});
      QVERIFY2(read.code == kDone, read.err);
      QCOMPARE(read.out, before[form]);
      QVERIFY2(read.err.contains("config.json is gone") && read.err.contains("unchecked"), read.err);
    }
    const Run drawn = run({"export", with, "--point", "0", "--to", "dot"});
    QCOMPARE(drawn.code, kBadInput);
    QVERIFY2(drawn.err.contains("config.json: no such file") && drawn.err.contains("--to dot needs"), drawn.err);
    QCOMPARE(run({"export", without, "--point", "0", "--to", "json"}).code, kBadInput);
    const Run placement = run({"export", placed, "--to", "json"});
    QVERIFY2(placement.code == kDone, placement.err);
    QCOMPARE(object_of(placement.out)["kind"].toString(), QString("placement"));
    QCOMPARE(run({"export", placed, "--to", "csv"}).code, kBadInput);
    QCOMPARE(run({"export", placed, "--to", "svg"}).code, kUsage);
    QByteArray wrong = contents(with);
    const auto at = wrong.indexOf("\"configuration\": ", wrong.indexOf("\"plans\""));
    wrong.replace(at + 17, 1, "99");
    write(path("wrong.json"), wrong);
    const Run refused = run({"export", path("wrong.json"), "--point", "0", "--to", "json"});
    QCOMPARE(refused.code, kBadInput);
    QVERIFY2(refused.err.contains("wrong.json: plans[0]: operators[0].configuration: 99"), refused.err);
  }

  void settings_of_a_framework_are_a_split_beside_the_others() {
    write(path("ds.json"),
          R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
      "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})");
    const QStringList search{"search",     "builtin:lenet", "--hardware", "v100-16gb-1x4",
                             "--settings", path("ds.json"), "--method",   "data-parallel"};
    const Run found = run(search);
    QVERIFY2(found.code == kDone, found.err);
    const auto results = object_of(found.out)["results"].toArray();
    QCOMPARE(results.size(), 2);
    const auto scenario = results[1].toObject()["scenario"].toObject();
    QCOMPARE(results[1].toObject()["method"].toString(), QString("manual"));
    QCOMPARE(scenario["batch"].toInt(), 32);
    QCOMPARE(scenario["precision"].toString(), QString("bf16"));
    QVERIFY2(found.err.contains("settings of DeepSpeed; taken: batch 32, precision bf16"), found.err);
    QVERIFY2(found.err.contains("manual:dp=4:micro-batches=2:zero=1"), found.err);
    // An option goes before the file, and more samples are more micro-batches.
    const Run other = run(search + QStringList{"--batch", "64"});
    QVERIFY2(other.code == kDone && other.err.contains("manual:dp=4:micro-batches=4:zero=1"), other.err);
    QCOMPARE(object_of(other.out)["results"][0]["scenario"]["batch"].toInt(), 64);
    write(path("notes.yaml"), "a: 1\n");
    QCOMPARE(run({"search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--settings", path("notes.yaml")}).code,
             kBadInput);
  }

  void some_plans_are_written_and_the_others_found_again() {
    const Run all = run(kSmallSearch + QStringList{"--max-plans", "all", "--out", path("all.json")});
    const Run some = run(kSmallSearch + QStringList{"--max-plans", "5", "--out", path("some.json")});
    const Run spread = run(kSmallSearch + QStringList{"--plans"});
    QVERIFY2(all.code == kDone && some.code == kDone && spread.code == kDone, all.err + some.err + spread.err);
    const auto written = [](const QJsonArray& plans) {
      return std::count_if(plans.begin(), plans.end(), [](const QJsonValue& plan) { return plan.isObject(); });
    };
    const auto every = object_of(contents(path("all.json")))["plans"].toArray();
    QVERIFY(every.size() > 200);
    QCOMPARE(written(every), every.size());
    QCOMPARE(written(object_of(spread.out)["plans"].toArray()), 200);
    const auto document = object_of(contents(path("some.json")));
    const auto plans = document["plans"].toArray();
    QCOMPARE(plans.size(), document["points"].toArray().size());
    QCOMPARE(written(plans), 5);
    QVERIFY(plans.first().isObject() && plans.last().isObject());
    QVERIFY(plans[document["turning_point"].toInt()].isObject());
    for (const QString point : {"turning", "1", "min-time"}) {
      const Run from_all = run({"export", path("all.json"), "--point", point, "--to", "json"});
      const Run from_some = run({"export", path("some.json"), "--point", point, "--to", "json"});
      QVERIFY2(from_all.code == kDone && from_some.code == kDone, from_all.err + from_some.err);
      QCOMPARE(from_some.out, from_all.out);
    }
    QCOMPARE(run(kSmallSearch + QStringList{"--max-plans", "0"}).code, kUsage);
  }

  // The limit of a file's size stands for a full disk.
  void a_disk_that_fills_up_leaves_no_half_file() {
    write(path("kept.json"), "what was there");
    QProcess process;
    process.setChildProcessModifier([] {
      const struct rlimit most { 1 << 20, 1 << 20 };
      setrlimit(RLIMIT_FSIZE, &most);
      std::signal(SIGXFSZ, SIG_IGN);
    });
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli",
                  kSmallSearch + QStringList{"--max-plans", "all", "--out", path("kept.json")});
    QVERIFY(process.waitForFinished(120000));
    QCOMPARE(process.exitCode(), kBadInput);
    const QByteArray said = process.readAllStandardError();
    QVERIFY2(said.contains("kept.json: cannot be written: File too large"), said);
    QCOMPARE(contents(path("kept.json")), QByteArray("what was there"));
    QVERIFY(QDir(folder_.path()).entryList({"*.part*"}).isEmpty());
  }

  void an_output_that_cannot_be_written_is_said() {
    const Run result =
        run(kSmallSearch + QStringList{"--method", "data-parallel", "--out", path("absent/result.json")});
    QVERIFY2(result.code == kBadInput, result.err);
    QVERIFY2(result.err.contains("absent/result.json: cannot be written"), result.err);
  }

  void an_interrupt_ends_a_search_with_130() {
    struct rusage earlier {};
    getrusage(RUSAGE_CHILDREN, &earlier);
    const double earlier_children = seconds(earlier.ru_utime) + seconds(earlier.ru_stime);
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli",
                  {"search", "builtin:llama-2-7b", "--hardware", "v100-16gb-4x8", "--out", path("interrupted.json")});
    QVERIFY(process.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(
        turnpoint::test::processor_seconds(process.processId()) > 0.3 * turnpoint::test::kSanitizerFactor ||
            process.state() != QProcess::Running,
        60000);
    if (process.state() != QProcess::Running) QSKIP("the search was over before it could be interrupted");
    const double before = cpu_seconds(process.processId());
    QVERIFY(turnpoint::test::send_signal(process.processId(), SIGINT));
    QVERIFY(process.waitForFinished(120000));
    QVERIFY(process.exitStatus() == QProcess::NormalExit);
    QCOMPARE(process.exitCode(), kInterrupted);
    // Counted in processor time, since other work of the machine must not decide a test.
    struct rusage children {};
    getrusage(RUSAGE_CHILDREN, &children);
    const double after = seconds(children.ru_utime) + seconds(children.ru_stime) - earlier_children;
    QVERIFY2(after - before < 2, qPrintable(QString("%1 s of processor time after the interrupt").arg(after - before)));
    QVERIFY(!QFileInfo::exists(path("interrupted.json")));
  }

  void numbers_stay_english_in_other_locales() {
    QProcess process;
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("LC_ALL", "de_DE.UTF-8");
    process.setProcessEnvironment(environment);
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", kSmallSearch + QStringList{"--intra-bandwidth-scale", "0.5"});
    QVERIFY(process.waitForFinished(120000));
    QCOMPARE(process.exitCode(), kDone);
    QVERIFY(object_of(process.readAllStandardOutput())["points"].toArray().size() > 0);
  }
};

QTEST_GUILESS_MAIN(EndToEndTest)
#include "end_to_end_test.moc"
