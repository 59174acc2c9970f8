// SPDX-License-Identifier: Apache-2.0
// TensorFlow graphs opened as the task graphs that they are: a task per node, shapes that follow, variables with what
// writes them, one round of a loop, and what hostile graphs get to hear.
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/hardware/cluster.h"
#include "core/import/task_graph.h"
#include "core/simulation/simulator.h"
#include "processor_clock.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& more = {}) {
  std::string text = "node {\n name: \"" + name + "\"\n op: \"" + op + "\"\n";
  for (const auto& input : inputs) text += " input: \"" + input + "\"\n";
  return text + more + "}\n";
}

std::string attribute(const std::string& key, const std::string& value) {
  return " attr { key: \"" + key + "\" value { " + value + " } }\n";
}

std::string typed(const std::string& sizes) {
  std::string shape;
  for (std::size_t begin = 0; begin < sizes.size();) {
    const auto end = std::min(sizes.find(' ', begin), sizes.size());
    shape += "dim { size: " + sizes.substr(begin, end - begin) + " } ";
    begin = end + 1;
  }
  return attribute("dtype", "type: DT_FLOAT") + attribute("shape", "shape { " + shape + "}");
}

/// One layer, its gradient and its update, as TensorFlow 1 writes them.
std::string layer() {
  return node("x", "Placeholder", {}, typed("-1 8")) + node("w", "VariableV2", {}, typed("8 4")) +
         node("m", "VariableV2", {}, typed("8 4")) + node("w/read", "Identity", {"w"}) +
         node("w/init", "TruncatedNormal", {}, attribute("dtype", "type: DT_FLOAT")) +
         node("w/Assign", "Assign", {"w", "w/init"}) + node("dense/MatMul", "MatMul", {"x:0", "w/read"}) +
         node("dense/Relu", "Relu", {"dense/MatMul"}) +
         node("gradients/dense/Relu_grad/ReluGrad", "ReluGrad", {"dense/MatMul", "dense/Relu"}) +
         node("gradients/dense/MatMul_grad/MatMul", "MatMul", {"x", "gradients/dense/Relu_grad/ReluGrad"},
              attribute("transpose_a", "b: true")) +
         node("train/update", "ApplyMomentum", {"w", "m", "gradients/dense/MatMul_grad/MatMul"}) +
         node("train", "NoOp", {"^train/update"});
}

std::map<std::string, TaskIndex> by_name(const TaskGraph& g) {
  std::map<std::string, TaskIndex> at;
  for (TaskIndex t = 0; t < g.task_count(); ++t) at[std::string(g.names[t])] = t;
  return at;
}

std::int64_t edge_bytes(const TaskGraph& g, TaskIndex from, TaskIndex to) {
  for (EdgeIndex e = g.out_begin[from]; e < g.out_begin[from + 1]; ++e)
    if (g.out_to[e] == to) return g.out_bytes[e];
  return -1;
}

}  // namespace

class TensorflowTaskGraphTest : public QObject {
  Q_OBJECT

 private slots:
  void a_layer_task_by_task() {
    const auto read = read_task_graph(layer(), "layer.pbtxt");
    QVERIFY2(read, read ? "" : read.error().message().c_str());
    const TaskGraph& g = **read;
    QCOMPARE(g.task_count(), std::size_t(12));
    const auto at = by_name(g);
    const auto bytes = [&](const char* from, const char* to) { return edge_bytes(g, at.at(from), at.at(to)); };
    // The batch, which the file leaves open, is one sample.
    QCOMPARE(bytes("x", "dense/MatMul"), std::int64_t(1 * 8 * 4));
    QCOMPARE(bytes("w", "w/read"), std::int64_t(8 * 4 * 4));
    QCOMPARE(bytes("dense/MatMul", "dense/Relu"), std::int64_t(1 * 4 * 4));
    QCOMPARE(bytes("gradients/dense/MatMul_grad/MatMul", "train/update"), std::int64_t(8 * 4 * 4));
    QCOMPARE(bytes("train/update", "train"), std::int64_t(0));
    QCOMPARE(g.persistent_bytes[at.at("w")], std::int64_t(8 * 4 * 4));
    QCOMPARE(g.output_bytes[at.at("w")], std::int64_t(0));
    QCOMPARE(g.output_bytes[at.at("w/init")], std::int64_t(0));  // of a shape that does not follow
    // What the default device needs for 2 x 8 x 4 FLOP is less than for the bytes; both are nothing beside the launch.
    const DeviceType device = (*cluster_preset("v100-16gb-1x1"))->device;
    const double moved = double((8 + 32 + 4) * 4);
    QCOMPARE(g.time_s[at.at("dense/MatMul")],
             device.launch_s + moved / (device.memory_bandwidth * device.memory_efficiency));
    QCOMPARE(g.time_s[at.at("x")], 0.0);
    QCOMPARE(g.time_s[at.at("w/read")], 0.0);
    QVERIFY(g.kind[at.at("dense/Relu")] == TaskKind::forward && g.kind[at.at("train/update")] == TaskKind::update);
    QVERIFY(g.kind[at.at("gradients/dense/MatMul_grad/MatMul")] == TaskKind::backward);
    QVERIFY(g.kind[at.at("train")] == TaskKind::other);
    // Both variables of the update, its reader and its initialiser are one group; the rest is free.
    std::set<std::string> together;
    for (const auto& [name, task] : at)
      if (g.colocate[task] != kNone) together.insert(name);
    QVERIFY(together == (std::set<std::string>{"w", "m", "w/read", "w/Assign", "train/update"}));
    QCOMPARE(g.colocate[at.at("w")], g.colocate[at.at("m")]);
    QCOMPARE(g.scopes[g.scope[at.at("dense/Relu")]], std::string_view("dense"));
  }

  void one_round_of_a_loop() {
    const auto read = read_task_graph(node("a", "Const", {}) + node("enter", "Enter", {"a"}) +
                                          node("merge", "Merge", {"enter", "next"}) + node("body", "Tanh", {"merge"}) +
                                          node("next", "NextIteration", {"body"}),
                                      "loop.pbtxt");
    QVERIFY2(read, read ? "" : read.error().message().c_str());
    QCOMPARE((*read)->edge_count(), std::size_t(4));
  }

  void mistakes_are_named() {
    const auto said = [](const std::string& text, const char* part) {
      const auto read = read_task_graph(text, "g.pbtxt");
      const std::string message = read ? std::string("read") : read.error().message();
      QVERIFY2(message.find(part) != std::string::npos && message.find("g.pbtxt") != std::string::npos,
               message.c_str());
    };
    said(node("a", "Relu", {"b"}), "node 'a': its input 'b' is no node of the file");
    said(node("a", "Relu", {}) + node("a", "Relu", {}), "two nodes have this name");
    said(node("a", "Relu", {"b"}) + node("b", "Relu", {"a"}), "cycle");
    said(node("a", "VariableV2", {}, typed("1000000000 1000000000")), "persistent_bytes");
    said("node {", "g.pbtxt");
  }

  void shapes_of_any_kind_end_well() {
    const auto constant = [](const std::string& name, const std::string& values, int count) {
      return node(name, "Const", {},
                  attribute("dtype", "type: DT_INT32") +
                      attribute("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: " +
                                             std::to_string(count) + " } } " + values + " }"));
    };
    const std::string values = "int_val: -1 int_val: 6";
    const auto read = read_task_graph(
        node("x", "Placeholder", {}, typed("3 4")) + constant("to", values, 2) + node("r", "Reshape", {"x", "to"}) +
            constant("order", "int_val: 1 int_val: 0", 2) + node("t", "Transpose", {"r", "order"}) +
            constant("wild", "int_val: 9 int_val: -7", 2) + node("u", "Transpose", {"r", "wild"}) +
            constant("axis", "int_val: 1", 1) + node("c", "ConcatV2", {"r", "r", "axis"}) +
            constant("far", "int_val: 5", 1) + node("d", "ConcatV2", {"r", "r", "far"}) +
            node("p", "MatMul", {"t", "r"}) + node("none", "MatMul", {"x"}) + node("odd", "Mystery", {"x"}),
        "shapes.pbtxt");
    QVERIFY2(read, read ? "" : read.error().message().c_str());
    const TaskGraph& g = **read;
    const auto at = by_name(g);
    QCOMPARE(g.output_bytes[at.at("r")], std::int64_t(12 * 4));
    QCOMPARE(g.output_bytes[at.at("c")], std::int64_t(24 * 4));
    QCOMPARE(g.output_bytes[at.at("p")], std::int64_t(36 * 4));  // 6 x 2 by 2 x 6
    for (const char* name : {"d", "none", "odd"}) QCOMPARE(g.output_bytes[at.at(name)], std::int64_t(0));
  }

  void sizes_beyond_all_bounds() {
    const std::string most = "9223372036854775807";
    const auto read =
        read_task_graph(node("x", "Placeholder", {}, typed(most + " " + most)) +
                            node("axis", "Const", {},
                                 attribute("dtype", "type: DT_INT32") +
                                     attribute("value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 }")) +
                            node("c", "ConcatV2", {"x", "x", "x", "axis"}),
                        "huge.pbtxt");
    QVERIFY(!read && read.error().message().find("huge.pbtxt") != std::string::npos);
    // A sum of very many tensors is read in one pass.
    std::string many = node("x", "Placeholder", {}, typed("2 2"));
    std::vector<std::string> inputs(200000, "x");
    many += node("sum", "AddN", inputs);
    const turnpoint::test::ProcessorClock timer;
    QVERIFY(read_task_graph(many, "many.pbtxt").has_value());
    QVERIFY2(timer.elapsed() < 5000, qPrintable(QString::number(timer.elapsed())));
  }

  void real_graphs() {
    REQUIRE_DATA(data);
    const std::pair<const char*, std::size_t> files[] = {
        {"msra_quantize_train_graph.pbtxt", 461}, {"lstm_frozen.pb", 529}, {"hey_snips_3.pb", 106}};
    for (const auto& [file, nodes] : files) {
      const auto graph = open_task_graph((data / "tf" / file).string());
      QVERIFY2(graph.has_value(), graph ? "" : graph.error().message().c_str());
      const TaskGraph& g = **graph;
      QCOMPARE(g.task_count(), nodes);
      QVERIFY(std::count_if(g.time_s.begin(), g.time_s.end(), [](double s) { return s > 0; }) > 20);
      QVERIFY(std::count_if(g.out_bytes.begin(), g.out_bytes.end(), [](auto b) { return b > 0; }) > 20);
      Placement placement;
      placement.device.assign(g.task_count(), 0);
      QVERIFY(simulate(g, placement).has_value());
    }
    // Variables of the training graph: two layers of weights and biases, each with Adam's two moments.
    const auto graph = open_task_graph((data / "tf/msra_quantize_train_graph.pbtxt").string());
    const TaskGraph& g = **graph;
    std::int64_t variables = 0;
    for (TaskIndex t = 0; t < g.task_count(); ++t)
      if (g.names[t].find("dense") != std::string_view::npos || g.names[t].find("Adam") != std::string_view::npos)
        variables += g.persistent_bytes[t];
    QVERIFY(variables >= 3 * 4 * (256 * 128 + 128 + 128 * 16 + 16));
    const auto elsewhere = open_task_graph((data / "tf/opencv_ssd_text.pbtxt").string());
    QVERIFY(!elsewhere && elsewhere.error().message().find("is no node of the file") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TensorflowTaskGraphTest)
#include "tensorflow_task_graph_test.moc"
