// SPDX-License-Identifier: Apache-2.0
// Readers of task graphs and placements: the formats, the real workloads, and what hostile files get to hear.
#include "core/import/task_graph.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <QtTest>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/plan_io/task_graph_json.h"
#include "core/simulation/simulator.h"
#include "plan_io/schema_check.h"
#include "processor_clock.h"
#include "sanitized.h"
#include "simulation/layered_dag.h"
#include "test_data.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

std::string message(std::string_view text, const std::string& where = "g.json") {
  const auto graph = read_task_graph(text, where);
  return graph ? std::string("read") : graph.error().message();
}

std::string with_tasks(const std::string& tasks, const std::string& edges = "[]", const std::string& more = {}) {
  return fmt::format(R"({{"format": "turnpoint/task-graph@1", "tasks": {}, "edges": {}{}}})", tasks, edges, more);
}

json load(const std::filesystem::path& path) {
  std::ifstream in(path);
  return json::parse(in);
}

}  // namespace

class TaskGraphTest : public QObject {
  Q_OBJECT

 private slots:
  void everything_of_the_format() {
    const auto read = read_task_graph(R"({"later": {"tasks": [1, {"a": [[]]}]}, "format": "turnpoint/task-graph@1",
      "edges": [{"from": 0, "to": 1}, {"from": 0, "to": 2, "bytes": 5, "note": {"from": 7}}, {"to": 2, "from": 0, "bytes": 3}],
      "tasks": [{"name": "a", "kind": "forward", "time_s": 1.5, "output_bytes": 4.0, "persistent_bytes": 2, "workspace_bytes": 3,
                 "colocate": "w", "scope": "x/y", "extra": [1, {"time_s": 9}]},
                {"name": "b", "kind": "backward", "colocate": 7}, {"kind": "update", "colocate": "w", "scope": null}],
      "links": {"bandwidth_bytes_per_s": [[0, 2], [3, 0]], "latency_s": 0.5, "contention": "none", "more": [[1]]},
      "devices": [{"memory_bytes": 100, "speed": 2}, {}]})",
                                      "g.json");
    QVERIFY2(read, read ? "" : read.error().message().c_str());
    const TaskGraph& g = **read;
    QCOMPARE(g.task_count(), std::size_t(3));
    QCOMPARE(g.edge_count(), std::size_t(2));
    QCOMPARE(g.out_bytes, (std::vector<std::int64_t>{4, 5}));
    QCOMPARE(g.time_s, (std::vector<double>{1.5, 0, 0}));
    QVERIFY(g.names[0] == "a" && g.names[2] == "task2");
    QVERIFY(g.colocate[0] == g.colocate[2] && g.colocate[0] != g.colocate[1]);
    QVERIFY(g.groups[g.colocate[1]] == "7" && g.scopes[g.scope[0]] == "x/y" && g.scope[2] == 0);
    QVERIFY(g.kind == (std::vector<TaskKind>{TaskKind::forward, TaskKind::backward, TaskKind::update}));
    QCOMPARE(g.links.seconds(1, 0, 6), 2.5);
    QVERIFY(g.links.contention == TaskLinks::Contention::none);
    QCOMPARE(g.device_limit(), 2u);
    QCOMPARE(g.memory_of(0), std::int64_t(100));
    QCOMPARE(g.memory_of(1), kUnlimitedBytes);
    QCOMPARE(g.speed_of(0), 2.0);
  }

  void missing_parts_have_defaults() {
    const auto read = read_task_graph(with_tasks(R"([{"name": "a"}, {"name": "b"}])"), "g");
    QVERIFY(read);
    QCOMPARE((*read)->links.bandwidth, 1e9);
    QCOMPARE((*read)->links.latency, 0.0);
    QVERIFY((*read)->links.contention == TaskLinks::Contention::sender);
    QCOMPARE((*read)->device_limit(), kNone);
  }

  void written_graphs_are_read_again() {
    auto graph = test::layered_graph(test::layered_dag(2000, 3), 4, TaskLinks::Contention::none);
    const std::string text = write_task_graph(*graph);
    QCOMPARE(test::SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("task-graph@1", json::parse(text)),
             std::string());
    const auto again = read_task_graph(text, "again");
    QVERIFY(again);
    QCOMPARE(write_task_graph(**again), text);
    QVERIFY((*again)->time_s == graph->time_s && (*again)->out_to == graph->out_to);
  }

  /// Which of its producer's tensors an edge carries; without a word the only one.
  void tensors_of_edges() {
    const std::string text = with_tasks(R"([{"name": "a", "output_bytes": 9}, {"name": "b"}, {"name": "c"}])",
                                        R"([{"from": 0, "to": 1, "bytes": 4, "tensor": 7}, {"from": 0, "to": 2}])");
    const auto read = read_task_graph(text, "g");
    QVERIFY(read);
    QVERIFY((*read)->out_tensor == (std::vector<std::uint32_t>{7, 0}));
    SentBytes both(**read);
    both.add(0), both.add(1), both.add(0);
    QCOMPARE(both.total(), std::int64_t(13));
    const std::string written = write_task_graph(**read);
    QCOMPARE(test::SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("task-graph@1", json::parse(written)),
             std::string());
    const auto again = read_task_graph(written, "again");
    QVERIFY(again && (*again)->out_tensor == (*read)->out_tensor);
    const auto plain = read_task_graph(with_tasks(R"([{}, {}])", R"([{"from": 0, "to": 1, "tensor": 0}])"), "g");
    QVERIFY(plain && (*plain)->out_tensor.empty());
  }

  void mistakes_are_named_data() {
    QTest::addColumn<std::string>("text");
    QTest::addColumn<std::string>("expected");
    const auto row = [](const char* name, const std::string& text, const std::string& expected) {
      QTest::newRow(name) << text << expected;
    };
    const std::string ab = R"([{"name": "a"}, {"name": "b"}])";
    row("empty", "  \n", "g.json: is empty");
    row("not json", "hello", "g.json: is no task graph: neither a JSON object nor a PipeDream profile");
    row("array", "[1]", "g.json: is no task graph: neither a JSON object nor a PipeDream profile");
    row("truncated", R"({"format": "turnpoint/task-graph@1", "tasks": [{"name": )", "g.json: line 1: not valid JSON: ");
    row("other object", "{\"a\": 1}", "g.json: is no task graph that is known here");
    row("no format", R"({"tasks": []})", "g.json: has no \"format\": \"turnpoint/task-graph@1\"");
    row("other format", R"({"tasks": [], "format": "turnpoint/task-graph@2"})",
        "g.json: the format is not \"turnpoint/task-graph@1\"");
    row("no tasks", R"({"format": "turnpoint/task-graph@1"})", "g.json: has no \"tasks\"");
    row("tasks empty", with_tasks("[]"), "g.json: the graph has no tasks");
    row("tasks number", with_tasks("3"), "g.json: tasks: is not a list");
    row("tasks object", with_tasks("{}"), "g.json: tasks: is not a list");
    row("task number", with_tasks("[{}, 3]"), "g.json: tasks[1]: is not an object");
    row("task list", with_tasks("[{}, []]"), "g.json: tasks[1]: is not an object");
    row("time text", with_tasks(R"([{"time_s": "1"}])"), "g.json: tasks[0].time_s: is not a number");
    row("time list", with_tasks(R"([{"time_s": [1]}])"), "g.json: tasks[0].time_s: is neither a number nor a text");
    row("time negative", with_tasks(R"([{}, {"time_s": -0.5}])"), "g.json: tasks[1].time_s: is negative (-0.5)");
    row("time NaN", with_tasks(R"([{"time_s": NaN}])"), "g.json: line 1: not valid JSON: ");
    row("time infinite", with_tasks(R"([{"time_s": 1e999}])"), "g.json: line 1: not valid JSON: ");
    row("time absurd", with_tasks(R"([{"name": "a", "time_s": 1e300}])"),
        "g.json: time_s of task 0 'a' is absurdly large");
    row("bytes negative", with_tasks(R"([{"output_bytes": -1}])"), "g.json: tasks[0].output_bytes: is negative (-1)");
    row("bytes absurd", with_tasks(R"([{"persistent_bytes": 18446744073709551615}])"),
        "g.json: tasks[0].persistent_bytes: is absurdly large");
    row("bytes overflow",
        with_tasks("[" +
                   [] {
                     std::string tasks;
                     for (int i = 0; i < 600; ++i)
                       tasks += std::string(i ? "," : "") + R"({"output_bytes": 9007199254740992})";
                     return tasks;
                   }() +
                   "]"),
        "g.json: the bytes of all tasks and edges together overflow");
    row("kind", with_tasks(R"([{"kind": "sideways"}])"),
        "g.json: tasks[0].kind: is 'sideways', not forward, backward, update or other");
    row("edge bytes negative", with_tasks(ab, R"([{"from": 0, "to": 1, "bytes": -1}])"),
        "g.json: edges[0].bytes: is negative (-1)");
    row("edge tensor negative", with_tasks(ab, R"([{"from": 0, "to": 1, "tensor": -1}])"),
        "g.json: edges[0].tensor: is -1; tensors are numbered from 0 to 4294967294");
    row("edge tensor text", with_tasks(ab, R"([{"from": 0, "to": 1, "tensor": "x"}])"),
        "g.json: edges[0].tensor: is not a whole number");
    row("edge missing end", with_tasks(ab, R"([{"from": 0}])"), "g.json: edges[0]: has no \"from\" or no \"to\"");
    row("edge fraction", with_tasks(ab, R"([{"from": 0.5, "to": 1}])"), "g.json: edges[0].from: is not a whole number");
    row("edge dangling", with_tasks(ab, R"([{"from": 0, "to": 2}])"),
        "g.json: edge 0 (0 -> 2) names a task that does not exist: there are 2 tasks");
    row("edge far", with_tasks(ab, R"([{"from": 4294967296, "to": 1}])"),
        "g.json: edge 0 (4294967296 -> 1) names a task that does not exist: there are 2 tasks");
    row("self loop", with_tasks(ab, R"([{"from": 1, "to": 1}])"),
        "g.json: the tasks form a cycle: task 1 'b' -> task 1 'b'");
    row("cycle", with_tasks(ab, R"([{"from": 1, "to": 0}, {"from": 0, "to": 1}])"),
        "g.json: the tasks form a cycle: task 1 'b' -> task 0 'a' -> task 1 'b'");
    row("links list", with_tasks(ab, "[]", R"(, "links": [])"), "g.json: links: is not an object");
    row("bandwidth zero", with_tasks(ab, "[]", R"(, "links": {"bandwidth_bytes_per_s": 0})"),
        "g.json: bandwidth_bytes_per_s of links is 0");
    row("bandwidth ragged", with_tasks(ab, "[]", R"(, "links": {"bandwidth_bytes_per_s": [[1, 2], [3]]})"),
        "g.json: links.bandwidth_bytes_per_s: has rows of different lengths");
    row("bandwidth not square", with_tasks(ab, "[]", R"(, "links": {"bandwidth_bytes_per_s": [[1, 2]]})"),
        "g.json: links.bandwidth_bytes_per_s: is not a square matrix");
    row("bandwidth zero inside", with_tasks(ab, "[]", R"(, "links": {"bandwidth_bytes_per_s": [[0, 0], [1, 0]]})"),
        "g.json: bandwidth_bytes_per_s from device 0 to 1 is 0");
    row("matrices differ",
        with_tasks(ab, "[]", R"(, "links": {"bandwidth_bytes_per_s": [[1]], "latency_s": [[0, 1], [1, 0]]})"),
        "g.json: links.latency_s: is a matrix of another size than the one before");
    row("latency negative", with_tasks(ab, "[]", R"(, "links": {"latency_s": -1})"),
        "g.json: latency_s of links is negative (-1)");
    row("contention", with_tasks(ab, "[]", R"(, "links": {"contention": 3})"),
        "g.json: links.contention: is neither \"sender\" nor \"none\"");
    row("speed zero", with_tasks(ab, "[]", R"(, "devices": [{"speed": 0}])"), "g.json: speed of device 0 is 0");
    const std::string workload = R"({"maxFPGAs": 2, "maxSizePerFPGA": 10, "maxCPUs": 1, "nodes": [
      {"id": 3, "fpgaLatency": 1, "size": 0}, {"id": 9, "fpgaLatency": 2, "size": 1}], "edges": [{"sourceId": 3, "destId": 9, "cost": 1}]})";
    const auto changed = [&](const std::string& from, const std::string& to) {
      std::string text = workload;
      return text.replace(text.find(from), from.size(), to);
    };
    row("workload duplicate", changed("\"id\": 9", "\"id\": 3"), "g.json: nodes[1].id: 3 is the id of an earlier node");
    row("workload dangling", changed("\"destId\": 9", "\"destId\": 4"),
        "g.json: edges[0].destId: names node 4, which does not exist");
    row("workload negative", changed("\"size\": 1", "\"size\": -1"), "g.json: nodes[1].size: must be between 0 and");
    row("workload cycle", changed("\"destId\": 9", "\"destId\": 3"),
        "g.json: the tasks form a cycle: task 0 'node 3' -> task 0 'node 3'");
    row("profile number", "node1 -- A -- forward_compute_time=x", "g.json: line 1: forward_compute_time is 'x'");
    row("profile dangling", "node1 -- A -- forward_compute_time=1\n\tnode1 -- node2\n",
        "g.json: line 2: names layer 'node2', which does not exist");
    row("profile twice", "node1 -- A -- forward_compute_time=1\nnode1 -- B -- forward_compute_time=1\n",
        "g.json: line 2: 'node1' is the name of an earlier layer");
    row("profile negative", "node1 -- A -- forward_compute_time=-1", "g.json: line 1: forward_compute_time is '-1'");
  }
  void mistakes_are_named() {
    QFETCH(std::string, text);
    QFETCH(std::string, expected);
    const std::string found = message(text);
    QVERIFY2(found.starts_with(expected), found.c_str());
  }

  void deep_and_long_files_end_quickly() {
    const turnpoint::test::ProcessorClock clock;
    const std::string deep = std::string(200000, '[') + std::string(200000, ']');
    QVERIFY(message(deep).find("neither a JSON object") != std::string::npos);
    QVERIFY(message(with_tasks(deep)).find("tasks[0]: is not an object") != std::string::npos);
    for (const std::string& text : {"{\"a\": " + deep + "}", "{\"nodes\": " + deep + "}",
                                    "{\"maxFPGAs\": 1, \"x\": " + deep + "}", with_tasks("[{\"x\": " + deep + "}]")})
      QVERIFY2(message(text).find("nested deeper") != std::string::npos, message(text).c_str());
    // The largest graph of the study, wrong in its last edge.
    std::string text = write_task_graph(*test::layered_graph(test::layered_dag(187742, 1)));
    const auto last = text.rfind("\"to\": ");
    text.replace(last, 6, "\"to\": -");
    QVERIFY(message(text).find("names a task that does not exist") != std::string::npos);
    text.resize(text.size() / 2);
    QVERIFY(message(text).find("not valid JSON") != std::string::npos);
    const double seconds = double(clock.elapsed()) / 1000;
    QVERIFY2(seconds < 10 * test::kSanitizerFactor, fmt::format("{} s", seconds).c_str());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    QVERIFY2(usage.ru_maxrss < 500 * 1024 * test::kSanitizerFactor, fmt::format("{} KiB", usage.ru_maxrss).c_str());
  }

  void long_cycles_are_shortened() {
    TaskGraphBuilder builder;
    for (int i = 0; i < 1000; ++i) builder.add_task({});
    for (int i = 0; i < 1000; ++i) builder.add_edge(i, (i + 1) % 1000);
    const auto graph = builder.finish("c");
    QVERIFY(!graph);
    QVERIFY(graph.error().what.find("992 more") != std::string::npos);
    QVERIFY(graph.error().what.size() < 300);
  }

  void workloads_of_the_study() {
    REQUIRE_DATA(data);
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data / "placement" / "dnn-partitioning")) {
      if (!entry.is_regular_file() || entry.path().string().find("inputs") == std::string::npos) continue;
      const auto graph = open_task_graph(entry.path().string());
      QVERIFY2(graph, graph ? "" : graph.error().message().c_str());
      const json file = load(entry.path());
      const TaskGraph& g = **graph;
      QCOMPARE(g.task_count(), file["nodes"].size());
      QCOMPARE(g.edge_count(), file["edges"].size());
      QCOMPARE(g.intended_devices, file["maxFPGAs"].get<unsigned>());
      QCOMPARE(g.memory_of(0), std::int64_t(file["maxSizePerFPGA"].get<double>()));
      const double factor = entry.path().string().find("latency-inputs") != std::string::npos ? 1000 : 1;
      std::map<std::int64_t, TaskIndex> index;
      std::map<std::int64_t, std::set<std::uint32_t>> classes;
      for (TaskIndex t = 0; t < g.task_count(); ++t) {
        const auto& node = file["nodes"][t];
        index[node["id"]] = t;
        QCOMPARE(g.time_s[t], node["fpgaLatency"].get<double>());
        QCOMPARE(g.persistent_bytes[t], std::int64_t(node["size"].get<double>()));
        const bool backward = node["isBackwardNode"].is_boolean() ? node["isBackwardNode"].get<bool>()
                                                                  : node["isBackwardNode"].get<int>() != 0;
        QCOMPARE(g.kind[t] == TaskKind::backward, backward);
        if (node.contains("colorClass")) classes[node["colorClass"]].insert(g.colocate[t]);
      }
      for (const auto& [color, groups] : classes) QVERIFY(groups.size() == 1 && !groups.count(kNone));
      QCOMPARE(g.groups.size(), classes.size());
      for (const auto& edge : file["edges"]) {
        const TaskIndex from = index.at(edge["sourceId"]), to = index.at(edge["destId"]);
        const auto row = g.successors(from);
        const auto place = std::size_t(std::find(row.begin(), row.end(), to) - row.begin());
        QVERIFY(place < row.size());
        QCOMPARE(g.transfer_s(g.out_begin[from] + EdgeIndex(place), 0, 1), edge["cost"].get<double>() / factor);
      }
      ++files;
    }
    QCOMPARE(files, 13);
  }

  void profiles_and_piper() {
    REQUIRE_DATA(data);
    const std::pair<const char*, double> milliseconds[] = {
        {"alexnet", 0}, {"vgg16", 0}, {"resnet50", 0}, {"nasnetamobile", 0}, {"gnmt", 0}};
    for (const auto& [name, unused] : milliseconds) {
      const auto path = data / "placement" / "pipedream" / (std::string(name) + ".graph.txt");
      const auto graph = open_task_graph(path.string());
      QVERIFY2(graph, graph ? "" : graph.error().message().c_str());
      // Counted apart, by the words of the lines.
      std::ifstream in(path);
      std::size_t layers = 0, edges = 0;
      double sum = 0, parameters = 0;
      for (std::string line; std::getline(in, line);) {
        const auto figure = [&](const std::string& key) {
          const auto at = line.find(key + "=");
          return at == std::string::npos ? 0.0 : std::strtod(line.c_str() + at + key.size() + 1, nullptr);
        };
        if (line.find("forward_compute_time=") == std::string::npos) {
          edges += line.find(" -- ") != std::string::npos;
          continue;
        }
        ++layers;
        sum += figure("forward_compute_time") + figure("backward_compute_time");
        parameters += figure("parameter_size");
      }
      double seconds = 0, bytes = 0;
      for (const double t : (*graph)->time_s) seconds += t;
      for (const auto b : (*graph)->persistent_bytes) bytes += double(b);
      QCOMPARE((*graph)->task_count(), 2 * layers);
      QCOMPARE((*graph)->edge_count(), 2 * edges + layers);
      QVERIFY(std::abs(seconds - sum * 1e-3) < 1e-9 * sum);
      QCOMPARE(bytes, parameters);
    }
    const auto piper = open_task_graph((data / "placement" / "piper" / "bert32a100.json").string());
    QVERIFY2(piper, piper ? "" : piper.error().message().c_str());
    QCOMPARE((*piper)->task_count(), std::size_t(37));
    QCOMPARE((*piper)->edge_count(), std::size_t(67));
    QCOMPARE((*piper)->links.bandwidth, 25e9);
    QCOMPARE((*piper)->time_s[1], 0.001116);
    QCOMPARE((*piper)->persistent_bytes[1], std::int64_t(401648640));
    QCOMPARE((*piper)->memory_of(3), std::int64_t(80000000000));
  }

  // Each layer's activations go to whoever reads it and to its own backward task, gradients of the same size come back.
  void profiles_send_gradients_back() {
    const auto read = read_task_graph(
        "node1 -- A -- forward_compute_time=1, backward_compute_time=2, activation_size=100, parameter_size=20\n"
        "node2 -- B -- forward_compute_time=3, backward_compute_time=4, activation_size=30, parameter_size=0\n"
        "node3 -- C -- forward_compute_time=5, backward_compute_time=6, activation_size=7, parameter_size=0\n"
        "\tnode1 -- node2\n\tnode1 -- node3\n\tnode2 -- node3\n",
        "profile.txt");
    QVERIFY2(read, read ? "" : read.error().message().c_str());
    const TaskGraph& g = **read;
    std::set<std::string> edges;
    for (TaskIndex t = 0; t < g.task_count(); ++t)
      for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e)
        edges.insert(fmt::format("{} > {}: {}", g.names[t], g.names[g.out_to[e]], g.out_bytes[e]));
    const std::set<std::string> expected = {"node1 A > node2 B: 100",
                                            "node1 A > node3 C: 100",
                                            "node2 B > node3 C: 30",
                                            "node1 A > node1 A (backward): 100",
                                            "node2 B > node2 B (backward): 30",
                                            "node3 C > node3 C (backward): 7",
                                            "node2 B (backward) > node1 A (backward): 100",
                                            "node3 C (backward) > node1 A (backward): 100",
                                            "node3 C (backward) > node2 B (backward): 30"};
    for (const auto& edge : edges) QVERIFY2(expected.count(edge), edge.c_str());
    QCOMPARE(edges.size(), expected.size());
  }

  void every_real_graph_simulates() {
    REQUIRE_DATA(data);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data / "placement")) {
      if (!entry.is_regular_file() || entry.path().string().find("human-experts") != std::string::npos) continue;
      const auto graph = open_task_graph(entry.path().string());
      QVERIFY2(graph, graph ? "" : graph.error().message().c_str());
      Placement one;
      one.device.assign((*graph)->task_count(), 0);
      const auto alone = simulate(**graph, one);
      QVERIFY(alone);
      double sum = 0;
      for (const double t : (*graph)->time_s) sum += t;
      QVERIFY(std::abs(alone->makespan_s - sum) <= 1e-9 * sum);
    }
  }

  void placements() {
    const auto good = read_placement(
        R"({"format": "turnpoint/placement@1", "devices": 2, "device": [0, 1, 0], "cluster": [1, 0, 1],
            "order": [[2, 0], [1]], "method": "x"})",
        "p.json");
    QVERIFY(good);
    QCOMPARE(good->device, (std::vector<std::uint32_t>{0, 1, 0}));
    const auto again = read_placement(write_placement(*good, {"pardnn", 1.5, {}, 0.25, {3, 4}, {1, 2}, {}}), "p.json");
    QVERIFY(again);
    QVERIFY(again->device == good->device && again->order == good->order && again->devices == 2);
    QVERIFY(again->cluster == good->cluster && good->cluster == (std::vector<std::uint32_t>{1, 0, 1}));
    QCOMPARE(test::SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas")
                 .check("placement@1", json::parse(write_placement(*good, {"pardnn", 1.5, 2.5, 0.25, {3, 4}, {1, 2}, 5}))),
             std::string());
    QVERIFY(read_placement(R"({"format": "turnpoint/plan@1", "kind": "placement", "devices": 1, "device": [0]})", "p"));
    const auto fault = [](const char* text) {
      const auto read = read_placement(text, "p.json");
      return read ? std::string("read") : read.error().message();
    };
    QCOMPARE(fault(R"({"devices": 2})"), std::string("p.json: device: is missing"));
    QCOMPARE(fault(R"({"devices": 0, "device": []})"),
             std::string("p.json: devices: must be between 1 and 65536, not 0"));
    QCOMPARE(fault(R"({"devices": 2, "device": [0, 2]})"),
             std::string("p.json: device: is not a list of whole numbers from 0 to 1"));
    QCOMPARE(fault(R"({"devices": 2, "device": [0, -1]})"),
             std::string("p.json: device: is not a list of whole numbers from 0 to 1"));
    for (const char* cluster : {"[0]", "[0, 2]", "[0, -1]", "3"})
      QCOMPARE(fault(fmt::format(R"({{"devices": 2, "device": [0, 1], "cluster": {}}})", cluster).c_str()),
               std::string("p.json: cluster: is not a list of a cluster for every task, numbered from 0"));
    QCOMPARE(fault(R"({"devices": 1, "device": [0], "order": [[1]]})"),
             std::string("p.json: order[0]: is not a list of tasks that the placement has"));
    QCOMPARE(fault(R"({"format": "turnpoint/plan@1", "kind": "sharding"})"),
             std::string("p.json: is a plan of another kind than placement"));
  }
};

QTEST_APPLESS_MAIN(TaskGraphTest)
#include "task_graph_test.moc"
