// SPDX-License-Identifier: Apache-2.0
// The schemas accept the examples of the format's description and refuse what breaks it.
#include <QtTest>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/hardware/cluster.h"
#include "plan_io/schema_check.h"

using nlohmann::json;
using turnpoint::test::SchemaCheck;

class SchemasTest : public QObject {
  Q_OBJECT
  SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

  static std::string read_all(const char* path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool accepts(const char* schema, const char* text) { return schemas_.check(schema, json::parse(text)).empty(); }

 private slots:
  void frontier_problem() {
    QVERIFY(accepts("frontier-problem@1", R"({"format": "turnpoint/frontier-problem@1",
      "nodes": [{"name": "a", "costs": [[4, 1.0], [2, 3.0]]}, {"name": "b", "costs": [[[1, 5.0], [3, 2.0]]]}],
      "edges": [{"from": 0, "to": 1, "costs": [[[0, 0.0]], [[1, 2.0]]]}]})"));
    QVERIFY(accepts("frontier-problem@1",
                    R"({"format": "turnpoint/frontier-problem@1", "nodes": [{"costs": [[]]}], "edges": []})"));
    QVERIFY(!accepts("frontier-problem@1", R"({"format": "turnpoint/frontier-problem@2", "nodes": [], "edges": []})"));
    QVERIFY(!accepts("frontier-problem@1",
                     R"({"format": "turnpoint/frontier-problem@1", "nodes": [{"costs": [[1]]}], "edges": []})"));
    QVERIFY(!accepts("frontier-problem@1",
                     R"({"format": "turnpoint/frontier-problem@1", "nodes": [{"costs": [[-1, 2]]}], "edges": []})"));
    QVERIFY(!accepts("frontier-problem@1",
                     R"({"format": "turnpoint/frontier-problem@1", "nodes": [{"costs": []}], "edges": []})"));
  }
  void frontier_answer() {
    QVERIFY(accepts("frontier@1", R"({"format": "turnpoint/frontier@1", "exact": true, "gap": 0, "search_s": 0.1,
      "points": [{"memory": 3, "time": 8.0, "configs": [1, 0]}], "lower_bound": [{"memory": 3, "time": 7.5}]})"));
    QVERIFY(!accepts("frontier@1", R"({"format": "turnpoint/frontier@1", "exact": true, "gap": 0, "points": []})"));
    QVERIFY(!accepts("frontier@1",
                     R"({"format": "turnpoint/frontier@1", "exact": 1, "gap": 0, "search_s": 0.1, "points": []})"));
  }
  void hardware_profile() {
    for (const char* name : {"v100-16gb-2x8", "a100-80gb-1x8", "h100-80gb-4x8"}) {
      const auto cluster = turnpoint::cluster_preset(name);
      QVERIFY(cluster.has_value());
      auto with_samples = **cluster;
      with_samples.collectives.push_back({turnpoint::Collective::all_reduce, {8, 1, 8, 2}, 1e6, 1e-4});
      with_samples.operators.push_back({"matmul", {16, 16, 16}, turnpoint::Precision::bf16, "forward", 1e-5});
      QCOMPARE(schemas_.check("hardware-profile@1", json::parse(turnpoint::write_hardware_profile(with_samples))),
               std::string());
    }
    QVERIFY(!accepts("hardware-profile@1",
                     R"({"format": "turnpoint/hardware-profile@1", "nodes": 0, "devices_per_node": 1, "links": [],
      "device": {"memory_bytes": 1, "peak_flop_per_s": {"fp32": 1}, "memory_bandwidth_bytes_per_s": 1}})"));
  }
  void batch_study() {
    const std::string shipped = read_all(TURNPOINT_SOURCE_DIR "/resources/studies/pardnn-batches.json");
    QCOMPARE(schemas_.check("batch-study@1", json::parse(shipped)), std::string());
    json broken = json::parse(shipped);
    broken["cells"] = json::array({{{"model", "builtin:e3d"}, {"devices", 2}, {"method", "heft"}, {"batch", 4}}});
    QVERIFY(!schemas_.check("batch-study@1", broken).empty());
    broken["cells"][0]["fits"] = true;  // and how long it takes?
    QVERIFY(!schemas_.check("batch-study@1", broken).empty());
    broken["cells"][0]["time_s"] = 0.5;
    QCOMPARE(schemas_.check("batch-study@1", broken), std::string());
  }
  void placement_and_tasks() {
    QVERIFY(accepts("task-graph@1", R"({"format": "turnpoint/task-graph@1",
      "tasks": [{"name": "a", "kind": "forward", "time_s": 1, "output_bytes": 4, "colocate": "w"}, {"name": "b"}],
      "edges": [{"from": 0, "to": 1, "bytes": 4}], "links": {"bandwidth_bytes_per_s": [[0, 1e9], [1e9, 0]], "contention": "none"}})"));
    QVERIFY(
        !accepts("task-graph@1",
                 R"({"format": "turnpoint/task-graph@1", "tasks": [{"name": "a", "kind": "sideways"}], "edges": []})"));
    QVERIFY(accepts("placement@1",
                    R"({"format": "turnpoint/placement@1", "devices": 2, "device": [0, 1], "order": [[0], [1]]})"));
    QVERIFY(!accepts("placement@1", R"({"format": "turnpoint/placement@1", "devices": 0, "device": []})"));
    QVERIFY(
        accepts("plan@1", R"({"format": "turnpoint/plan@1", "kind": "placement", "devices": 2, "device": [0, 1]})"));
    QVERIFY(!accepts("plan@1", R"({"format": "turnpoint/plan@1", "kind": "guess"})"));
  }
  void validation_and_session() {
    QVERIFY(accepts("validation@1", R"({"format": "turnpoint/validation@1", "hardware": "local", "plan": "p.json",
      "step": {"name": "step", "predicted": 1, "measured": 1.1, "q1": 1, "q3": 1.2, "source": "measured"}, "operators": [], "collectives": [],
      "memory": [{"name": "device 0", "predicted": 1, "measured": null, "source": "modelled"}],
      "numerics": {"loss_error": 0, "gradient_error": 1e-6, "tolerance": 1e-4}, "bytes_sent": {"predicted": 10, "measured": 10}})"));
    QVERIFY(accepts("session@1", R"({"format": "turnpoint/session@1", "scenario": {}, "pinned": [], "point": 3})"));
    QVERIFY(!accepts("session@1", R"({"format": "turnpoint/session@1"})"));
  }
  // A checker that let an unknown rule pass would prove nothing.
  void unknown_rules_are_errors() {
    const std::string folder = QDir::tempPath().toStdString();
    std::ofstream(folder + "/odd@1.schema.json") << R"({"type": "object", "dependentRequired": {}})";
    QVERIFY(!SchemaCheck(folder).check("odd@1", json::object()).empty());
    std::filesystem::remove(folder + "/odd@1.schema.json");
    QVERIFY(!SchemaCheck(folder).check("absent@1", json::object()).empty());
  }
};

QTEST_APPLESS_MAIN(SchemasTest)
#include "schemas_test.moc"
