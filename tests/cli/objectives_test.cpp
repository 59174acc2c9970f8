// SPDX-License-Identifier: Apache-2.0
// --objective, end to end: what is written, against the whole frontiers of the same program, the schema and the exit
// codes.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "plan_io/schema_check.h"

using nlohmann::json;

using namespace turnpoint::test;

namespace {

json parsed(const Run& run) { return json::parse(run.out.toStdString(), nullptr, false); }

const QStringList kSearch = {"search", "builtin:lenet", "--hardware", "v100-16gb-2x4", "--batch", "64"};

std::string against_schema(const std::string& name, const json& document) {
  return turnpoint::test::SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check(name, document);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

std::int64_t least_memory(const json& result) { return result["points"].front()["memory_bytes"]; }

}  // namespace

class CliObjectivesTest : public QObject {
  Q_OBJECT

 private:
  QTemporaryDir folder_;
  QString path(const char* name) const { return folder_.filePath(name); }
  std::map<int, json> frontiers_;

  static QStringList limited(std::int64_t bytes, const QStringList& more) {
    return kSearch + QStringList{"--memory-limit", QString::number(bytes)} + more;
  }

 private slots:
  void initTestCase() {
    for (const int devices : {1, 2, 3, 4, 8}) {
      const Run whole = run(kSearch + QStringList{"--devices", QString::number(devices)});
      QCOMPARE(whole.code, kDone);
      frontiers_[devices] = parsed(whole);
      QVERIFY(frontiers_[devices]["points"].size() > 0);
      QVERIFY(!frontiers_[devices].contains("objective"));
    }
  }

  void mini_time_is_the_fastest_within_the_limit() {
    const json& points = frontiers_[8]["points"];
    QVERIFY(points.size() > 4);
    const std::size_t k = points.size() / 2;
    const std::int64_t limit = points[k]["memory_bytes"].get<std::int64_t>() + 1;
    const Run one = run(limited(limit, {"--objective", "mini-time", "--plans"}));
    QCOMPARE(one.code, kDone);
    const json document = parsed(one);
    QCOMPARE(against_schema("result@1", document), std::string());
    QCOMPARE(document["objective"].get<std::string>(), std::string("mini-time"));
    QCOMPARE(document["points"].size(), std::size_t(1));
    QCOMPARE(document["plans"].size(), std::size_t(1));
    QCOMPARE(document["points"][0]["memory_bytes"].get<std::int64_t>(), points[k]["memory_bytes"].get<std::int64_t>());
    QVERIFY(close(document["points"][0]["time_s"], points[k]["time_s"]));
    QVERIFY(document["points"][0]["fits"].get<bool>());
    QVERIFY(document["turning_point"].is_null());
    QVERIFY(!document.contains("price_per_iteration"));
  }

  void nothing_fits() {
    const std::int64_t least = least_memory(frontiers_[8]);
    const Run one = run(limited(least - 1, {"--objective", "mini-time"}));
    QCOMPARE(one.code, kInfeasible);
    const json document = parsed(one);
    QCOMPARE(against_schema("result@1", document), std::string());
    QCOMPARE(least_memory(document), least);
    QVERIFY(!document["points"][0]["fits"].get<bool>());
    QVERIFY2(one.err.contains("no plan fits"), one.err);
    const Run one_batch = run(limited(1, {"--objective", "mini-time", "--method", "ft:micro-batches=1"}));
    QVERIFY2(one_batch.code == kInfeasible && one_batch.err.contains("no plan without micro-batches fits"),
             one_batch.err);

    std::int64_t least_of_all = least;
    for (const auto& [devices, whole] : frontiers_) least_of_all = std::min(least_of_all, least_memory(whole));
    const Run fewest = run(limited(least_of_all - 1, {"--objective", "mini-parallelism"}));
    QCOMPARE(fewest.code, kInfeasible);
    QCOMPARE(least_memory(parsed(fewest)), least_of_all);
    const Run all = run(limited(least_of_all - 1, {"--objective", "profile"}));
    QCOMPARE(all.code, kInfeasible);
    QCOMPARE(against_schema("results@1", parsed(all)), std::string());
    QCOMPARE(parsed(all)["results"].size(), std::size_t(4));
  }

  void mini_parallelism_finds_the_fewest_devices() {
    for (const int wanted : {1, 2, 4, 8}) {
      const std::int64_t limit = least_memory(frontiers_[wanted]);
      int expected = 0;
      for (const auto& [devices, whole] : frontiers_)
        if (!expected && least_memory(whole) <= limit) expected = devices;
      const Run one = run(limited(limit, {"--objective", "mini-parallelism"}));
      QCOMPARE(one.code, kDone);
      const json document = parsed(one);
      QCOMPARE(against_schema("result@1", document), std::string());
      QCOMPARE(document["scenario"]["devices"].get<int>(), expected);
      QCOMPARE(document["objective"].get<std::string>(), std::string("mini-parallelism"));
      QVERIFY(document["points"][0]["fits"].get<bool>());
    }
    // --devices is the upper end.
    const std::int64_t tight = least_memory(frontiers_[8]);
    QVERIFY(tight < least_memory(frontiers_[4]));
    QCOMPARE(run(limited(tight, {"--objective", "mini-parallelism", "--devices", "4"})).code, kInfeasible);
  }

  void profile_has_one_result_a_method_and_count() {
    const Run all =
        run(kSearch + QStringList{"--objective", "profile", "--method", "ft,data-parallel", "--price-per-hour", "2.5"});
    QCOMPARE(all.code, kDone);
    const json document = parsed(all);
    QCOMPARE(against_schema("results@1", document), std::string());
    const json& results = document["results"];
    QCOMPARE(results.size(), std::size_t(8));
    const int counts[] = {1, 2, 4, 8};
    for (std::size_t i = 0; i < results.size(); ++i) {
      QCOMPARE(results[i]["method"].get<std::string>(), std::string(i < 4 ? "ft" : "data-parallel"));
      const int devices = counts[i % 4];
      QCOMPARE(results[i]["scenario"]["devices"].get<int>(), devices);
      QCOMPARE(results[i]["points"].size(), std::size_t(1));
      const double time = results[i]["points"][0]["time_s"];
      QVERIFY(close(results[i]["price_per_iteration"], devices * 2.5 / 3600 * time));
      if (i < 4) QVERIFY(close(time, frontiers_[devices]["points"].back()["time_s"]));  // everything fits 16 GiB
    }
    QVERIFY2(all.err.contains("ft on 4 devices"), all.err);
    // One count is a list of one.
    const Run single = run({"search", "builtin:lenet", "--hardware", "v100-16gb-1x1", "--objective", "profile"});
    QCOMPARE(single.code, kDone);
    QCOMPARE(parsed(single)["results"].size(), std::size_t(1));
    QVERIFY(!parsed(single)["results"][0].contains("price_per_iteration"));
  }

  void largest_batch_has_one_result_a_method_and_count() {
    const QStringList asked = {"--objective", "largest-batch", "--method", "ft,data-parallel,pardnn"};
    const Run all = run(limited(4 << 20, asked));
    QVERIFY2(all.code == kDone, all.err);
    const json document = parsed(all);
    QCOMPARE(against_schema("results@1", document), std::string());
    const json& results = document["results"];
    QCOMPARE(results.size(), std::size_t(12));
    const int counts[] = {1, 2, 4, 8};
    double base = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const json& one = results[i];
      QCOMPARE(one["objective"].get<std::string>(), std::string("largest-batch"));
      QCOMPARE(one["scenario"]["devices"].get<int>(), counts[i % 4]);
      QCOMPARE(one["points"].size(), std::size_t(1));
      QVERIFY(one["points"][0]["fits"].get<bool>());
      const double rate = one["scenario"]["batch"].get<double>() / one["points"][0]["time_s"].get<double>();
      if (i % 4 == 0) base = rate;
      QVERIFY(close(one["samples_per_second"], rate));
      QVERIFY(close(one["speed_up"], rate / base));
      QVERIFY(i % 4 == 0 || one["scenario"]["batch"] >= results[i - 1]["scenario"]["batch"]);
    }
    QVERIFY2(all.err.contains("ft:micro-batches=1 on 4 devices") && all.err.contains("samples/s"), all.err);
    const Run none = run(limited(1000, {"--objective", "largest-batch"}));
    QCOMPARE(none.code, kInfeasible);
    QVERIFY(!parsed(none)["results"][0]["points"][0]["fits"].get<bool>());
    QVERIFY(!parsed(none)["results"][0].contains("speed_up"));
  }

  void a_batch_that_cannot_change_is_one_refusal() {
    std::ofstream(path("graph.json").toStdString())
        << R"({"format": "turnpoint/task-graph@1", "tasks": [{"name": "a", "time_s": 1}, {"name": "b", "time_s": 2}],)"
        << R"( "edges": [{"from": 0, "to": 1, "bytes": 1}]})";
    const Run graph = run({"search", path("graph.json"), "--hardware", "v100-16gb-1x4", "--method", "pardnn,heft",
                           "--objective", "largest-batch"});
    QCOMPARE(graph.code, kUsage);
    QVERIFY2(graph.err.count("largest batch") == 1 && graph.err.contains("task graph"), graph.err);
    const Run every = run(kSearch + QStringList{"--objective", "largest-batch", "--method", "ft:micro-batches=all"});
    QCOMPARE(every.code, kUsage);
    QVERIFY2(every.err.contains("micro-batches"), every.err);
  }

  void a_chosen_plan_is_found_again_for_export() {
    const std::int64_t limit = least_memory(frontiers_[2]);
    const QString file = path("one.json");
    QCOMPARE(run(limited(limit, {"--objective", "mini-parallelism", "--out", file})).code, kDone);
    const Run plan = run({"export", file, "--point", "0", "--to", "json"});
    QVERIFY2(plan.code == kDone, plan.err);
    QCOMPARE(against_schema("plan@1", parsed(plan)), std::string());
    std::ifstream in(file.toStdString());
    json document = json::parse(in);
    const auto sum = [&](const json& written) {
      std::int64_t memory = 0;
      for (const char* part : {"operators", "reshards"})
        for (const auto& item : written[part]) memory += item["memory_bytes"].get<std::int64_t>();
      return memory;
    };
    QCOMPARE(sum(parsed(plan)), document["points"][0]["memory_bytes"].get<std::int64_t>());
    // A file that says something else than its scenario gives is not believed.
    document["points"][0]["time_s"] = document["points"][0]["time_s"].get<double>() * 2;
    std::ofstream(path("other.json").toStdString()) << document.dump();
    QCOMPARE(run({"export", path("other.json"), "--point", "0", "--to", "json"}).code, kBadInput);
  }

  void wrong_usage() {
    const Run unknown = run(kSearch + QStringList{"--objective", "mini-memory"});
    QCOMPARE(unknown.code, kUsage);
    QVERIFY2(unknown.err.contains("mini-memory") && unknown.err.contains("mini-time"), unknown.err);
    QCOMPARE(run(kSearch + QStringList{"--price-per-hour", "-1"}).code, kUsage);
  }
};

QTEST_APPLESS_MAIN(CliObjectivesTest)
#include "objectives_test.moc"
