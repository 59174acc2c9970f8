// SPDX-License-Identifier: Apache-2.0
// Plans read back from result files: the very plan that was written, and nothing that costs something else.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/export/writers.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "core/plan_io/result_json.h"
#include "core/probe/plan_record.h"
#include "core/search/reopen.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;
using nlohmann::json;

namespace {

constexpr const char* kOneLayer = "gpt2?layers=1&sequence=16";

/// Searched on the model as its scenario names it, so that it can be opened again.
json written(const std::string& method, const char* model = "gpt2?layers=2&sequence=64") {
  const auto result = run(method, scenario_on(builtin(model, 16), "v100-16gb-1x4"));
  if (!result) qFatal("%s", result.error().message().c_str());
  return write_result(**result, true);
}

}  // namespace

class ReopenTest : public QObject {
  Q_OBJECT
  int partial_gradients_ = 0;

 private slots:
  void cleanupTestCase() { QVERIFY(partial_gradients_ > 0); }
  // Oracle: what another process of ours would be told of the plan, to the last bit.
  void a_plan_comes_back_as_it_was_data() {
    QTest::addColumn<QString>("method");
    for (const char* method :
         {"ft", "data-parallel", "optcnn", "tofu", "mesh-tensorflow", "fsdp", "fsdp:zero=1", "fsdp:zero=3", "megatron",
          "manual:dp=2:tp=2:zero=1", "manual:pp=2:micro-batches=4", "manual:dp=2:pp=2:micro-batches=2:zero=3:recompute",
          "manual:tp=2:pp=2:micro-batches=4:recompute=selective"})
      QTest::newRow(method) << method;
  }
  void a_plan_comes_back_as_it_was() {
    QFETCH(QString, method);
    const auto scenario = scenario_on(builtin("gpt2?layers=2&sequence=64", 16), "v100-16gb-1x4");
    const auto result = run(method.toStdString(), scenario);
    QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
    const std::size_t points = (*result)->points.size();
    for (std::size_t k = 0; k < points; k += std::max<std::size_t>(1, points / 7)) {
      const Plan plan = (*result)->plans->sharding(k);
      json document = json::parse(write_plan(*scenario, plan).dump());
      const auto read = read_plan(document, "p.json", *scenario);
      QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
      const auto of_one_pass = [](Plan one) {  // records know no pipeline; write_plan() has it
        one.pipeline.reset();
        return write_plan_record(one);
      };
      QVERIFY(of_one_pass(*read) == of_one_pass(plan));
      QVERIFY(write_plan(*scenario, *read) == document);
      const auto alone = read_plan_alone(document, "p.json");
      QVERIFY2(alone.has_value(), alone ? "" : alone.error().message().c_str());
      QVERIFY(alone->parts);
      QCOMPARE(write_plan_csv(*alone), write_plan_csv(*scenario, plan));
      // A resharding ends without partial sums (resources/manual/costs.md, 2), whatever is partial on the way back.
      for (const json& item : document["reshards"]) QVERIFY2(item["to"]["partial"].empty(), item.dump().c_str());
      if (plan.pipeline) continue;  // older than these, files of pipelines are searched again
      // Files of before parts, `again` and `gradient_partial` were written mean the same plan.
      for (const char* list : {"operators", "reshards"})
        for (json& item : document[list]) {
          item.erase("parts");
          item.erase("again");
          if (!item.contains("gradient_partial")) continue;
          for (const char* end : {"from", "to"})
            for (const json& axis : item["gradient_partial"][end]) item[end]["partial"].push_back(axis);
          item.erase("gradient_partial");
          ++partial_gradients_;
        }
      const auto old = read_plan(document, "p.json", *scenario);
      QVERIFY2(old.has_value(), old ? "" : old.error().message().c_str());
      for (std::size_t i = 0; i < plan.reshards.size(); ++i) {
        QVERIFY(old->reshards[i].keep == plan.reshards[i].keep || plan.reshards[i].forward.empty());
        QVERIFY(old->reshards[i].from == plan.reshards[i].from && old->reshards[i].to == plan.reshards[i].to);
      }
      QVERIFY(!read_plan_alone(document, "p.json")->parts);
    }
  }

  // 2^62 bytes are the most that one number may say; what several of them add up to must not pass 2^63.
  void bytes_that_no_64_bits_hold_are_refused_data() {
    QTest::addColumn<QStringList>("pointers");
    QTest::addColumn<QString>("place");
    QTest::newRow("parts of an operator")
        << QStringList{"/operators/0/parts/memory/activations", "/operators/0/parts/memory/parameters"}
        << "operators[0].parts.memory";
    QTest::newRow("operators") << QStringList{"/operators/0/memory_bytes", "/operators/0/parts/memory/parameters",
                                              "/operators/1/memory_bytes", "/operators/1/parts/memory/parameters"}
                               << "operators[1].memory_bytes";
    QTest::newRow("reshardings") << QStringList{"/reshards/0/memory_bytes", "/reshards/1/memory_bytes"}
                                 << "reshards[1].memory_bytes";
  }
  void bytes_that_no_64_bits_hold_are_refused() {
    QFETCH(QStringList, pointers);
    QFETCH(QString, place);
    static const json document = written("megatron");
    json plan = document["plans"][0];
    QVERIFY(plan["operators"].size() > 1 && plan["reshards"].size() > 1);
    for (const char* list : {"operators", "reshards"})
      for (json& item : plan[list]) {
        item["memory_bytes"] = 0;
        if (list == std::string("operators"))
          item["parts"]["memory"] = json::object();
        else
          item.erase("parts");
      }
    for (const QString& pointer : pointers) plan[json::json_pointer(pointer.toStdString())] = std::int64_t(1) << 62;
    const auto alone = read_plan_alone(plan, "p.json");
    QVERIFY(!alone.has_value());
    QVERIFY2(alone.error().message().find(place.toStdString()) != std::string::npos, alone.error().message().c_str());
  }

  void what_was_changed_is_named_data() {
    QTest::addColumn<QString>("pointer");  // in the plan
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("place");
    QTest::newRow("configuration") << "/operators/1/configuration"
                                   << "99"
                                   << "operators[1].configuration";
    QTest::newRow("axis") << "/configurations/0/repeat"
                          << "[\"q\"]"
                          << "configurations[0].repeat: the mesh has no axis";
    QTest::newRow("operator") << "/operators/1/name"
                              << "\"other\""
                              << "operators[1].name";
    QTest::newRow("bytes of an operator") << "/operators/1/memory_bytes"
                                          << "1"
                                          << "operators[1].parts";
    QTest::newRow("time of an operator") << "/operators/1/compute_s"
                                         << "1"
                                         << "operators[1].parts";
    QTest::newRow("whole cost") << "/cost/parts"
                                << "0"
                                << "";
    QTest::newRow("mesh") << "/mesh/0/size"
                          << "3"
                          << "mesh";
    QTest::newRow("kind") << "/kind"
                          << "\"quilt\""
                          << "kind";
    QTest::newRow("step") << "/reshards/0/steps/0/collective"
                          << "\"broadcast\""
                          << "collective";
    QTest::newRow("step's axes") << "/reshards/0/steps/0/axes"
                                 << "[7]"
                                 << "steps[0].axes";
    QTest::newRow("tensor") << "/reshards/0/tensor"
                            << "\"none\""
                            << "reshards[0].tensor";
  }
  void what_was_changed_is_named() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, place);
    static const json document = written("megatron");
    json changed = document;
    // The plan and its resharding that has a step; pointers speak of that as the first.
    std::size_t with_steps = 0, resharding = 0;
    for (bool found = false; !found; with_steps += !found) {
      QVERIFY(with_steps < changed["plans"].size());
      const json& all = changed["plans"][with_steps]["reshards"];
      for (resharding = 0; resharding < all.size() && all[resharding]["steps"].empty();) ++resharding;
      found = resharding < all.size();
    }
    pointer.replace(QStringLiteral("reshards/0"), QStringLiteral("reshards/%1").arg(resharding));
    place.replace(QStringLiteral("reshards[0]"), QStringLiteral("reshards[%1]").arg(resharding));
    json& plan = changed["plans"][with_steps];
    const json::json_pointer at(pointer.toStdString());
    if (place.isEmpty())
      plan["cost"]["time_s"] = 1, plan["cost"]["network_s"] = plan["cost"]["network_s"].get<double>() + 1;
    else
      plan[at] = json::parse(value.toStdString());
    const auto opened = reopen_result(changed, "r.json", {with_steps}, {});
    QVERIFY(!opened);
    QCOMPARE(opened.error().code, ErrorCode::bad_input);
    const QString message = QString::fromStdString(opened.error().message());
    QVERIFY2(message.startsWith(QString("r.json: plans[%1]: ").arg(with_steps)), qPrintable(message));
    QVERIFY2(message.contains(place), qPrintable(message));
  }

  // Costs that agree with each other, but not with the scenario.
  void costs_are_evaluated_again() {
    json document = written("data-parallel");
    json& plan = document["plans"][0];
    for (json* cost : {&plan["operators"][1], &plan["cost"], &document["points"][0]}) {
      (*cost)["memory_bytes"] = (*cost)["memory_bytes"].get<std::int64_t>() + 8;
      for (const char* parts : {"parts", "memory"}) {
        if (!cost->contains(parts)) continue;
        json& memory = std::string(parts) == "parts" ? (*cost)["parts"]["memory"] : (*cost)["memory"];
        memory["activations"] = memory.value("activations", std::int64_t(0)) + 8;
      }
    }
    const auto opened = reopen_result(document, "r.json", {0}, {});
    QVERIFY(!opened);
    QVERIFY2(opened.error().message().find("comes to") != std::string::npos, opened.error().message().c_str());
    json moved = written("data-parallel");
    moved["points"][0]["time_s"] = 1;
    const auto other = reopen_result(moved, "r.json", {0}, {});
    QVERIFY(!other && other.error().message().find("its point says") != std::string::npos);
  }

  // The plan in the file counts, not what a search would find: here one that no search of that name gives.
  void the_files_plan_is_what_is_opened() {
    json document = written("data-parallel");
    const json fsdp = written("fsdp");
    for (const char* key : {"points", "plans", "near_best"}) document[key] = fsdp[key];
    const auto opened = reopen_result(document, "r.json", {0}, {});
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
    QVERIFY(write_plan(*(*opened)->scenario, (*opened)->plans->sharding(0)) == fsdp["plans"][0]);
    document.erase("plans");  // without plans it is searched again, and that is another one
    QVERIFY(!reopen_result(document, "r.json", {0}, {}));
  }

  // Files of before libraries were known say nothing of collectives: theirs were rings, every operator's by itself.
  void files_from_before_libraries() {
    const auto scenario = scenario_on(builtin("gpt2?layers=2&sequence=64", 16), "v100-16gb-1x4",
                                      [](Settings& s) { s.collectives = Collectives::rings; });
    json document = write_result(**run("fsdp", scenario), true);
    QVERIFY(document["plans"][0].dump().find("message_bytes") == std::string::npos);
    for (const char* key : {"collectives", "bucket_bytes"}) QCOMPARE(document["scenario"].erase(key), std::size_t(1));
    const auto opened = reopen_result(document, "r.json", {0}, {});
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
    QCOMPARE((*opened)->scenario->settings.collectives, Collectives::rings);
    QVERIFY(write_plan(*(*opened)->scenario, (*opened)->plans->sharding(0)) == document["plans"][0]);
    // Today's say.
    document = written("fsdp");
    QVERIFY(document["plans"][0].dump().find("message_bytes") != std::string::npos);
    QCOMPARE((*reopen_result(document, "r.json", {0}, {}))->scenario->settings.collectives, Collectives::library);
  }

  void more_split_loops_than_axes_are_refused() {
    json plan = written("megatron")["plans"][0];
    QVERIFY(read_plan_alone(plan, "p.json").has_value());
    for (int loop = 2; loop < 200; ++loop)
      plan["configurations"][0]["split"]["channel-" + std::to_string(loop)] = json::array();
    const auto alone = read_plan_alone(plan, "p.json");
    QVERIFY(!alone && alone.error().message().find("configurations[0].split") != std::string::npos);
  }

  void pipelines_and_placements_are_checked_too_data() {
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::newRow("pipeline") << "manual:dp=2:pp=2:micro-batches=4"
                              << "/plans/0/pipeline/bubble_s"
                              << "7.5";
    QTest::newRow("pipeline's sends") << "manual:dp=2:pp=2:micro-batches=4"
                                      << "/plans/0/pipeline/send_s/0"
                                      << "7.5";
    QTest::newRow("pipeline's tied weight") << "manual:dp=2:pp=2:micro-batches=4"
                                            << "/plans/0/pipeline/tied/0/time_s"
                                            << "7.5";
    QTest::newRow("pipeline's layer") << "manual:dp=2:pp=2:micro-batches=4:recompute"
                                      << "/plans/0/operators/9/layer"
                                      << "40";
    QTest::newRow("pipeline's stage") << "manual:dp=2:pp=2:micro-batches=4"
                                      << "/plans/0/operators/0/stage"
                                      << "2";
    QTest::newRow("pipeline's stages' memory") << "manual:dp=2:pp=2:micro-batches=4"
                                               << "/plans/0/pipeline/stage_memory_bytes/0"
                                               << "7";
    QTest::newRow("pipeline of no machine") << "manual:dp=2:pp=2:micro-batches=4"
                                            << "/plans/0/pipeline/stages"
                                            << "1000000";
    QTest::newRow("pipeline of no batch") << "manual:dp=2:pp=2:micro-batches=4"
                                          << "/plans/0/pipeline/micro_batches"
                                          << "16777216";
    QTest::newRow("pipeline's split") << "manual:dp=2:pp=2:micro-batches=4"
                                      << "/plans/0/configurations/0/repeat"
                                      << "[]";
    QTest::newRow("placement") << "heft"
                               << "/plans/0/makespan_s"
                               << "7.5";
    QTest::newRow("placement's device") << "heft"
                                        << "/plans/0/device/0"
                                        << "99";
  }
  void pipelines_and_placements_are_checked_too() {
    QFETCH(QString, method);
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    json document = written(method.toStdString());
    const auto opened = reopen_result(document, "r.json", {0}, {});
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
    document[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
    const auto changed = reopen_result(document, "r.json", {0}, {});
    QVERIFY(!changed);
    QVERIFY2(changed.error().message().starts_with("r.json: plans[0]: "), changed.error().message().c_str());
  }

  // Of a file with some plans those that were left out are searched again, and are the same.
  void plans_that_were_left_out_are_found_again() {
    const json whole = written("ft:micro-batches=1", kOneLayer);
    json document = whole;
    document["plans"][0] = nullptr;
    QVERIFY(holds_plans(document));
    const std::size_t last = whole["points"].size() - 1;
    const auto opened = reopen_result(document, "r.json", {0, last}, {});
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
    for (const std::size_t k : {std::size_t(0), last})
      QVERIFY(write_plan(*(*opened)->scenario, (*opened)->plans->sharding(k)) == whole["plans"][k]);
    document["points"][1]["time_s"] = 99.0;  // another search than the file's
    QVERIFY(!reopen_result(document, "r.json", {0}, {}));
    QVERIFY(reopen_result(document, "r.json", {last}, {}));
  }

  void points_are_read_without_a_model() {
    json document = written("ft:micro-batches=1", kOneLayer);
    document["scenario"]["model"] = "gone/away.onnx";
    const auto points = read_points(document, "r.json");
    QVERIFY2(points.has_value(), points ? "" : points.error().message().c_str());
    QCOMPARE((*points)->points.size(), document["points"].size());
    QCOMPARE(json((*points)->turning_point.value_or(9999)),
             document["turning_point"].is_null() ? json(9999) : document["turning_point"]);
    QCOMPARE(missing_file(document, "result.json"), std::string("gone/away.onnx"));
    document["plans"].erase(0);
    QVERIFY(!read_points(document, "r.json"));
  }
};

QTEST_APPLESS_MAIN(ReopenTest)
#include "reopen_test.moc"
