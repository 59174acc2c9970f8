// SPDX-License-Identifier: Apache-2.0
// `search` and `export` on a task graph, through the program itself.
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include "cli/command_line.h"
using namespace turnpoint::test;

namespace {

const QString kGraph = TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json";

}  // namespace

class SearchTasksTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString path(const char* name) const { return folder_.filePath(QString::fromLatin1(name)); }

 private slots:
  void a_task_graph_needs_no_hardware() {
    const Run searched = run({"search", kGraph, "--devices", "2"});
    QVERIFY2(searched.code == kDone, searched.err);
    const QJsonObject result = searched.object();
    QCOMPARE(result["format"].toString(), QString("turnpoint/result@1"));
    QCOMPARE(result["method"].toString(), QString("pardnn"));
    QCOMPARE(result["clock"].toString(), QString("simulated"));
    QCOMPARE(result["model"].toObject()["tasks"].toInt(), 4);
    QCOMPARE(result["model"].toObject()["source"].toString(), kGraph);
    QCOMPARE(result["scenario"].toObject()["hardware"].toString(), QString("as-file"));
    QCOMPARE(result["scenario"].toObject()["devices"].toInt(), 2);
    const QJsonObject point = result["points"].toArray().last().toObject();
    const QJsonObject placed = run({"place", kGraph, "--devices", "2"}).object();
    QCOMPARE(point["time_s"].toDouble(), placed["makespan_s"].toDouble());
  }

  void all_means_those_that_place() {
    const Run searched = run({"search", kGraph, "--method", "all"});
    QVERIFY2(searched.code == kDone, searched.err);
    const QJsonArray results = searched.object()["results"].toArray();
    QVERIFY(results.size() >= 7);
    for (const auto& one : results) {
      QVERIFY(!one.toObject()["points"].toArray().isEmpty());
      QVERIFY(one.toObject()["method"].toString() != "random-search");
    }
  }

  // METIS prints where it is asked for more parts than it can fill: that must not land in the result.
  void standard_output_holds_the_result_alone() {
    QJsonArray tasks, edges;
    for (int t = 0; t < 23; ++t) {
      tasks.append(
          QJsonObject{{"name", QString("t%1").arg(t)}, {"time_s", t % 5 == 0 ? 9.0 : 0.01}, {"output_bytes", 1000000}});
      if (t > 0) edges.append(QJsonObject{{"from", t - 1}, {"to", t}});
    }
    const QString chain = path("chain.json");
    QFile file(chain);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(
        QJsonDocument(QJsonObject{{"format", "turnpoint/task-graph@1"}, {"tasks", tasks}, {"edges", edges}}).toJson());
    file.close();
    for (const char* method : {"metis", "scotch"}) {
      const Run placed = run({"place", chain, "--devices", "16", "--method", method});
      if (placed.err.contains("this build has no")) continue;
      QVERIFY2(placed.code == kDone, placed.err);
      QVERIFY2(placed.out.startsWith("{") && !placed.object().isEmpty(), placed.out.left(200));
      const Run searched = run({"search", chain, "--devices", "16", "--method", method});
      QVERIFY2(searched.code == kDone, searched.err);
      QVERIFY2(searched.out.startsWith("{") && !searched.object().isEmpty(), searched.out.left(200));
    }
  }

  // What a model's training graph is placed as in a search, and as the file that is written of it, is the same.
  void a_model_goes_to_a_file_of_tasks() {
    const QString graph = path("tasks.json"), of_plan = path("tasks-of-plan.json"), result = path("placed.json");
    constexpr const char* kCells = "builtin:lstm-lm?layers=2&hidden=32&sequence=4";
    struct Case {
      const char *model, *parameters;
      QStringList options;
    };
    const Case cases[] = {
        {"builtin:lenet", "", {}},
        {"builtin:lenet", ":micro-batches=4:whole-layers", {"--micro-batches", "4", "--whole-layers"}},
        {kCells, ":recurrent=parts:micro-batches=2", {"--recurrent", "parts", "--micro-batches", "2"}},
        {kCells, ":recurrent=whole", {"--recurrent", "whole"}},
    };
    for (const Case& each : cases) {
      const QStringList scenario = {each.model, "--hardware", "v100-16gb-2x2", "--batch", "64"};
      const Run written = run(QStringList{"training-graph"} + scenario + each.options + QStringList{"--out", graph});
      QVERIFY2(written.code == kDone && written.err.contains(" tasks, "), written.err);
      const Run placed = run({"place", graph, "--devices", "4", "--method", "heft"});
      QVERIFY2(placed.code == kDone, placed.err);
      const Run searched = run(QStringList{"search"} + scenario +
                               QStringList{"--method", QString("heft") + each.parameters, "--plans", "--out", result});
      QVERIFY2(searched.code == kDone, searched.err);
      const Run exported = run({"export", result, "--point", "0", "--to", "task-graph", "--out", of_plan});
      QVERIFY2(exported.code == kDone, exported.err);
      QFile one(graph), other(of_plan), results(result);
      QVERIFY(one.open(QIODevice::ReadOnly) && other.open(QIODevice::ReadOnly) && results.open(QIODevice::ReadOnly));
      QCOMPARE(one.readAll(), other.readAll());
      const QJsonObject point =
          QJsonDocument::fromJson(results.readAll()).object()["points"].toArray().last().toObject();
      QCOMPARE(placed.object()["makespan_s"].toDouble(), point["time_s"].toDouble());
    }
    const Run refused = run({"training-graph", "builtin:lenet", "--hardware", "v100-16gb-2x2", "--recurrent", "some"});
    QVERIFY2(refused.code == kUsage && refused.err.contains("recurrent"), refused.err);
    const Run uneven = run(
        {"training-graph", "builtin:lenet", "--hardware", "v100-16gb-2x2", "--batch", "64", "--micro-batches", "7"});
    QVERIFY2(uneven.code == kUsage || uneven.code == kBadInput, uneven.err);
    QVERIFY2(run({"training-graph", kGraph}).err.contains("is a task graph already"), "");
  }

  void others_refuse_it_in_words() {
    for (const char* method : {"ft", "data-parallel", "megatron", "manual:tp=2", "ft,optcnn"}) {
      const Run refused = run({"search", kGraph, "--method", method});
      QCOMPARE(refused.code, kUsage);
      QVERIFY2(refused.err.contains("a task graph has none"), refused.err);
    }
  }

  void others_are_left_out_of_a_list() {
    const Run both = run({"search", kGraph, "--method", "heft,optcnn"});
    QVERIFY2(both.code == kDone, both.err);
    QVERIFY2(both.err.contains("method optcnn is left out: splits a model's operators"), both.err);
    const auto results = both.object()["results"].toArray();
    QCOMPARE(results.size(), 2);
    QCOMPARE(results[0]["points"].toArray().size(), 1);
    QVERIFY(results[1]["points"].toArray().isEmpty());
  }

  void plans_are_placements_that_simulate_reads() {
    const QString result = path("result.json"), plan = path("plan.json");
    QCOMPARE(run({"search", kGraph, "--devices", "3", "--method", "heft", "--plans", "--out", result}).code, kDone);
    const Run exported = run({"export", result, "--point", "0", "--to", "json", "--out", plan});
    QVERIFY2(exported.code == kDone, exported.err);
    QFile file(plan);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonObject written = QJsonDocument::fromJson(file.readAll()).object();
    QCOMPARE(written["format"].toString(), QString("turnpoint/plan@1"));
    QCOMPARE(written["kind"].toString(), QString("placement"));
    QFile inside(result);
    QVERIFY(inside.open(QIODevice::ReadOnly));
    const QJsonObject searched = QJsonDocument::fromJson(inside.readAll()).object();
    QCOMPARE(searched["plans"].toArray()[0].toObject(), written);
    const Run simulated = run({"simulate", kGraph, plan});
    QVERIFY2(simulated.code == kDone, simulated.err);
    QCOMPARE(simulated.object()["makespan_s"].toDouble(), written["makespan_s"].toDouble());
    QCOMPARE(searched["points"].toArray()[0].toObject()["time_s"].toDouble(), written["makespan_s"].toDouble());
  }

  void export_says_what_has_changed() {
    QFile original(kGraph);
    QVERIFY(original.open(QIODevice::ReadOnly));
    QJsonObject graph = QJsonDocument::fromJson(original.readAll()).object();
    const QString copy = path("changing.json"), result = path("changing-result.json");
    const auto write = [&] {
      QFile file(copy);
      QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
      file.write(QJsonDocument(graph).toJson());
    };
    write();
    QCOMPARE(run({"search", copy, "--devices", "2", "--method", "heft", "--plans", "--out", result}).code, kDone);
    QCOMPARE(run({"export", result, "--to", "csv"}).code, kDone);
    const QString bare = result + ".bare.json";  // without plans: searched again
    QCOMPARE(run({"search", copy, "--devices", "2", "--method", "heft", "--out", bare}).code, kDone);

    const QJsonObject before = graph;
    QJsonArray tasks = graph["tasks"].toArray();
    tasks.append(QJsonObject{{"name", "new"}, {"time_s", 1.0}});
    graph["tasks"] = tasks;
    write();
    const Run larger = run({"export", result, "--to", "csv"});
    QCOMPARE(larger.code, kBadInput);
    QVERIFY2(larger.err.contains("changing.json', has changed: it has 5 tasks now, not 4") &&
                 larger.err.contains("search it again"),
             larger.err);

    graph = before;
    tasks = graph["tasks"].toArray();
    QJsonObject slower = tasks[0].toObject();
    slower["time_s"] = slower["time_s"].toDouble() + 100;
    tasks[0] = slower;
    graph["tasks"] = tasks;
    write();
    const Run same_size = run({"export", result, "--to", "csv"});
    QCOMPARE(same_size.code, kBadInput);
    QVERIFY2(same_size.err.contains("plans[0]: is not what its scenario gives now: ") &&
                 same_size.err.contains("the task graph '") && same_size.err.contains("search it again"),
             same_size.err);
    const Run again = run({"export", bare, "--to", "csv"});
    QCOMPARE(again.code, kBadInput);
    QVERIFY2(again.err.contains("point 0 is ") && again.err.contains("the task graph '") &&
                 again.err.contains("search it again"),
             again.err);

    graph = before;
    write();
    QCOMPARE(run({"export", result, "--to", "csv"}).code, kDone);
  }

  void added_nodes_are_mentioned() {
    const Run wide =
        run({"search", kGraph, "--hardware", "v100-16gb-2x8", "--devices", "40", "--method", "round-robin"});
    QVERIFY2(wide.code == kDone, wide.err);
    QVERIFY2(wide.err.contains("note: --devices 40: 5 nodes x 8 devices; v100-16gb-2x8 has 2 nodes"), wide.err);
    for (const char* devices : {"4", "8", "16"}) {
      const Run within =
          run({"search", kGraph, "--hardware", "v100-16gb-2x8", "--devices", devices, "--method", "round-robin"});
      QVERIFY2(within.code == kDone && !within.err.contains("note:"), within.err);
    }
  }

  void help_names_every_format() {
    for (const char* command : {"place", "simulate"}) {
      QByteArray help = run({command, "--help"}).out;
      help = help.simplified();
      QVERIFY2(help.contains("a PipeDream profile or a TensorFlow graph"), help);
    }
  }

  void exports() {
    const QString result = path("round.json");
    QCOMPARE(run({"search", kGraph, "--devices", "2", "--method", "round-robin", "--out", result}).code, kDone);
    const Run trace = run({"export", result, "--to", "trace"});
    QVERIFY2(trace.code == kDone, trace.err);
    QVERIFY(QJsonDocument::fromJson(trace.out).object()["traceEvents"].toArray().size() > 4);
    const Run csv = run({"export", result, "--to", "csv"});
    QCOMPARE(csv.out.count("\r\n"), 5);
    const Run dot = run({"export", result, "--to", "dot"});
    QVERIFY(dot.out.startsWith("digraph") && dot.out.count("->") == 4);
    const Run svg = run({"export", result, "--to", "svg"});
    QCOMPARE(svg.code, kUsage);
    QVERIFY2(svg.err.contains("--to svg is not for placements, which go to json, csv, dot, trace and task-graph"), svg.err);
  }

  void limits_and_hardware() {
    const Run tight = run({"search", kGraph, "--devices", "2", "--memory-limit", "60", "--out", path("tight.json")});
    QCOMPARE(tight.code, kInfeasible);
    QVERIFY(QFile::exists(path("tight.json")));
    const Run many = run({"search", kGraph, "--devices", "4"});
    QCOMPARE(many.code, kUsage);
    QVERIFY2(many.err.contains("describes 3"), many.err);
    const Run real = run({"search", kGraph, "--hardware", "v100-16gb-1x8"});
    QVERIFY2(real.code == kDone, real.err);
    QCOMPARE(real.object()["scenario"].toObject()["devices"].toInt(), 8);
    QVERIFY(real.object()["points"].toArray()[0].toObject()["fits"].toBool());
  }

  void what_if_factors_reach_the_links() {
    const auto time = [](const QStringList& more) {
      const Run searched = run(QStringList{"search", kGraph, "--devices", "2", "--method", "round-robin"} + more);
      return searched.object()["points"].toArray()[0].toObject()["time_s"].toDouble();
    };
    const double plain = time({}), slow = time({"--intra-bandwidth-scale", "0.1"}),
                 fast = time({"--device-speed-scale", "2", "--intra-bandwidth-scale", "2"});
    QVERIFY(slow > plain);
    QVERIFY(qAbs(fast * 2 - plain) <= 1e-9 * plain);
  }

  void inspect_says_what_it_is() {
    const Run looked = run({"inspect", kGraph, "--json"});
    QVERIFY2(looked.code == kDone, looked.err);
    QCOMPARE(looked.object()["tasks"].toInt(), 4);
    QCOMPARE(looked.object()["time_s"].toDouble(), 10.0);
    QCOMPARE(looked.object()["persistent_bytes"].toDouble(), 10.0);
  }

  void a_model_has_placements_beside_its_frontier() {
    const Run searched = run({"search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--batch", "64", "--method",
                              "data-parallel,pardnn,single-device"});
    QVERIFY2(searched.code == kDone, searched.err);
    const QJsonArray results = searched.object()["results"].toArray();
    QCOMPARE(results.size(), 3);
    QCOMPARE(results[0].toObject()["clock"].toString(), QString("additive"));
    QCOMPARE(results[1].toObject()["clock"].toString(), QString("simulated"));
  }

  void each_method_is_listed_once() {
    const Run listed = run({"methods", "--json"});
    QSet<QString> names;
    for (const auto& one : QJsonDocument::fromJson(listed.out).array()) {
      const QString name = one.toObject()["name"].toString();
      QVERIFY2(!names.contains(name), qPrintable(name));
      names << name;
      if (name == "pardnn") QVERIFY(one.toObject()["places"].toBool());
      if (name == "ft") QVERIFY(!one.toObject()["places"].toBool());
    }
    QVERIFY(names.contains("scotch") && names.contains("ft"));
  }
};

QTEST_APPLESS_MAIN(SearchTasksTest)
#include "search_tasks_test.moc"
