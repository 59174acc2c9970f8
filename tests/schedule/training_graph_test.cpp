// SPDX-License-Identifier: Apache-2.0
// The training graph of a model: as much time as the additive evaluation on one device, as many bytes of parameters and
// states, acyclic, parameters together with their updates, and micro-batches.
#include "core/schedule/training_graph.h"

#include <fmt/format.h>

#include <QtTest>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/import/source/model_source.h"
#include "core/plan/evaluator.h"
#include "core/simulation/simulator.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

ScenarioPtr scenario_of(const std::string& model, std::int64_t batch, const char* hardware = "v100-16gb-2x4") {
  const auto source = open_model("builtin:" + model);
  if (!source) return nullptr;
  const auto bound = (*source)->bind({batch, 0});
  if (!bound) return nullptr;
  Settings settings;
  settings.batch = batch;
  const auto scenario = make_scenario(*bound, *open_hardware(hardware), hardware, settings);
  return scenario ? *scenario : nullptr;
}

/// What the evaluator says of the plan that splits nothing, on one device of the same kind.
CostBreakdown additive(const Scenario& scenario) {
  Settings settings = scenario.settings;
  settings.devices = 1;
  const auto alone = make_scenario(scenario.model, scenario.cluster, scenario.hardware, settings);
  Plan plan;
  plan.mesh = make_mesh(*(*alone)->cluster);
  plan.operators.resize(scenario.model->operators.size());
  const auto cost = evaluate_plan(**alone, plan);
  if (!cost) qFatal("%s", cost.error().message().c_str());
  return *cost;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

Placement on_one(const TaskGraph& graph) {
  Placement placement;
  placement.device.assign(graph.task_count(), 0);
  return placement;
}

const char* const kModels[] = {"lenet", "alexnet", "resnet18", "inception-v3", "bert-large",
                               "gpt2",  "lstm-lm", "ncf",      "mixtral-8x7b", "gnmt"};

}  // namespace

class TrainingGraphTest : public QObject {
  Q_OBJECT

 private slots:
  void times_are_those_of_one_device_data() {
    QTest::addColumn<QString>("model");
    for (const char* name : kModels) QTest::newRow(name) << name;
  }
  void times_are_those_of_one_device() {
    QFETCH(QString, model);
    const auto scenario = scenario_of(model.toStdString(), 8);
    QVERIFY(scenario);
    const auto graph = training_graph(*scenario);
    QVERIFY2(graph, graph ? "" : graph.error().message().c_str());
    CostBreakdown cost = additive(*scenario);
    const TaskGraph& g = **graph;
    QVERIFY2(close(sum(g.time_s), cost.compute_s()),
             fmt::format("{} instead of {}", sum(g.time_s), cost.compute_s()).c_str());
    std::map<TaskKind, double> by_kind;
    for (TaskIndex t = 0; t < g.task_count(); ++t) by_kind[g.kind[t]] += g.time_s[t];
    QVERIFY(close(by_kind[TaskKind::forward], cost[ComputePart::forward]));
    QVERIFY(close(by_kind[TaskKind::backward], cost[ComputePart::backward]));
    QVERIFY(close(by_kind[TaskKind::update], cost[ComputePart::update]));
    const auto persistent = std::accumulate(g.persistent_bytes.begin(), g.persistent_bytes.end(), std::int64_t(0));
    QCOMPARE(persistent, cost[MemoryPart::parameters] + cost[MemoryPart::optimizer]);

    // One device simply runs everything; its memory lies between the parameters and all that the evaluator would keep.
    const auto simulation = simulate(g, on_one(g));
    QVERIFY(simulation);
    QVERIFY(close(simulation->makespan_s, cost.compute_s()));
    QVERIFY(simulation->devices[0].peak_bytes > persistent);
  }

  // A mixed cluster: every device as fast as the whole model is on its kind, with its own memory.
  void unlike_devices_have_their_own_speeds() {
    const auto alone = [](const char* hardware) { return additive(*scenario_of("alexnet", 8, hardware)).compute_s(); };
    const auto scenario = scenario_of("alexnet", 8, "v100-16gb-1x4+h100-80gb-1x2");
    const TaskGraphPtr graph = *training_graph(*scenario);
    const TaskGraph& g = *graph;
    QCOMPARE(g.devices.size(), std::size_t(6));
    QVERIFY(close(sum(g.time_s) / g.speed_of(3), alone("v100-16gb-1x4")));
    QVERIFY(close(sum(g.time_s) / g.speed_of(4), alone("h100-80gb-1x2")));
    QVERIFY(g.speed_of(4) > 1.5 * g.speed_of(3));
    QCOMPARE(g.memory_of(3), scenario->memory_limit_of(0));
    QVERIFY(g.memory_of(4) > 4 * g.memory_of(3));
    // Pods are no devices: tasks take what they take without them.
    const TaskGraphPtr pods = *training_graph(*scenario_of("alexnet", 8, "v100-16gb-2x2x1@0.5"));
    QVERIFY(close(sum(pods->time_s), alone("v100-16gb-4x1")));
    // Devices of one kind are of speed 1.
    QCOMPARE((*training_graph(*scenario_of("alexnet", 8)))->speed_of(1), 1.0);
  }

  void parameters_stay_with_their_updates() {
    for (const auto& model : {test::mlp(), test::residual(), test::attention()}) {
      Scenario scenario;
      scenario.model = model;
      scenario.cluster = *cluster_preset("v100-16gb-1x4");
      const auto graph = training_graph(scenario);
      QVERIFY(graph);
      const TaskGraph& g = **graph;
      std::size_t updates = 0;
      for (TaskIndex t = 0; t < g.task_count(); ++t) {
        if (g.kind[t] != TaskKind::update) continue;
        ++updates;
        QVERIFY(g.colocate[t] != kNone);
        QVERIFY(!g.predecessors(t).empty());
        QVERIFY(g.successors(t).empty());
        // Weights and their update, and nothing else; weights wait for nothing and are held.
        const auto group = g.colocate[t];
        std::vector<TaskIndex> members;
        for (TaskIndex m = 0; m < g.task_count(); ++m)
          if (g.colocate[m] == group) members.push_back(m);
        QCOMPARE(members.size(), std::size_t(2));
        const TaskIndex weights = members[0] == t ? members[1] : members[0];
        QVERIFY(g.names[weights].ends_with(":weights"));
        QVERIFY(g.predecessors(weights).empty() && !g.successors(weights).empty());
        QCOMPARE(g.time_s[weights], 0.0);
        QVERIFY(g.persistent_bytes[weights] > 0);
        QCOMPARE(g.persistent_bytes[t], std::int64_t(0));
      }
      QVERIFY(updates > 0);
      QCOMPARE(std::count_if(g.colocate.begin(), g.colocate.end(), [](auto group) { return group != kNone; }),
               std::ptrdiff_t(2 * updates));
      QVERIFY(check_colocation(g, on_one(g), "test"));
    }
  }

  void whole_layers_stay_with_their_weights() {
    for (const auto& model : {test::mlp(), test::residual(), test::attention()}) {
      Scenario scenario;
      scenario.model = model;
      scenario.cluster = *cluster_preset("v100-16gb-1x4");
      TrainingGraphOptions options;
      options.whole_layers = true;
      const auto graph = training_graph(scenario, options);
      QVERIFY(graph);
      const TaskGraph& g = **graph;
      std::size_t updates = 0;
      for (TaskIndex t = 0; t < g.task_count(); ++t) {
        QVERIFY(!g.names[t].ends_with(":weights"));
        if (g.kind[t] != TaskKind::update) continue;
        ++updates;
        QVERIFY(g.colocate[t] != kNone);
        for (const TaskIndex from : g.predecessors(t)) QCOMPARE(g.colocate[from], g.colocate[t]);
      }
      QVERIFY(updates > 0);
    }
  }

  /// Rule 2 of the simulator: weights go once to each other device, however many tasks read them there, and lie there
  /// as a copy until the last of them; the sum of the gradients comes back once from a run of micro-batches.
  void weights_travel_once_to_a_device() {
    Scenario scenario;
    scenario.model = test::mlp();
    scenario.cluster = *cluster_preset("v100-16gb-1x2");
    const auto made = training_graph_of(scenario, {3});
    QVERIFY(made);
    const TaskGraph& g = *made->graph;
    Placement placement = on_one(g);
    placement.devices = 2;
    const std::int64_t weight = 64 * 16 * 4, bias = 16 * 4;
    for (TaskIndex t = 0; t < g.task_count(); ++t)
      if (g.names[t].starts_with("fc2") && g.colocate[t] == kNone) placement.device[t] = 1;
    const auto run = simulate(g, placement);
    QVERIFY(run);
    int weights = 0, gradients = 0;
    for (const SimulatedTransfer& transfer : run->transfers) {
      const std::string_view name = g.names[transfer.source];
      const bool sum = transfer.to == 0 && name.find("accumulate") != std::string_view::npos;
      const bool held = name.starts_with("fc2:weights");
      if (held || sum) QCOMPARE(transfer.bytes, weight + bias);
      if (held) QCOMPARE(transfer.to, 1u);
      weights += held;
      gradients += sum;
      QVERIFY(name.find(":weight-gradient") == std::string_view::npos);
    }
    QCOMPARE(weights, 1);
    QCOMPARE(gradients, 1);
    // What the owner holds for good: weight, and two moments; nothing of fc2 on the other device but copies.
    QCOMPARE(run->devices[0].persistent_bytes, (64 * 16 + 16 + 32 * 64 + 64) * std::int64_t(12));
    QCOMPARE(run->devices[1].persistent_bytes, std::int64_t(0));
    QVERIFY(run->devices[1].peak_bytes >= weight + bias);
  }

  void a_chain_task_by_task() {
    Scenario scenario;
    scenario.model = test::mlp();  // fc1, relu, fc2 with weights and biases
    scenario.cluster = *cluster_preset("v100-16gb-1x4");
    const auto graph = training_graph(scenario);
    QVERIFY(graph);
    const TaskGraph& g = **graph;
    std::map<std::string, TaskIndex> at;
    for (TaskIndex t = 0; t < g.task_count(); ++t) at[std::string(g.names[t])] = t;
    const std::set<std::string> expected = {"x",
                                            "fc1",
                                            "relu",
                                            "fc2",
                                            "fc1:gradient",
                                            "relu:gradient",
                                            "fc2:input-gradient",
                                            "fc2:weight-gradient",
                                            "fc1:update",
                                            "fc2:update",
                                            "fc1:weights",
                                            "fc2:weights"};
    std::set<std::string> names;
    for (const auto& [name, unused] : at) names.insert(name);
    QVERIFY(names == expected);
    const auto bytes = [&](const char* from, const char* to) {
      const auto row = g.successors(at.at(from));
      const auto found = std::find(row.begin(), row.end(), at.at(to));
      return found == row.end() ? std::int64_t(-1)
                                : g.out_bytes[g.out_begin[at.at(from)] + std::size_t(found - row.begin())];
    };
    QCOMPARE(bytes("x", "fc1"), std::int64_t(64 * 32 * 4));
    QCOMPARE(bytes("fc1", "relu"), std::int64_t(64 * 64 * 4));
    QCOMPARE(bytes("relu", "fc2:weight-gradient"), std::int64_t(64 * 64 * 4));
    QCOMPARE(bytes("relu", "fc2:input-gradient"), std::int64_t(-1));
    QCOMPARE(bytes("fc2:input-gradient", "relu:gradient"), std::int64_t(64 * 64 * 4));
    QCOMPARE(bytes("relu:gradient", "fc1:gradient"), std::int64_t(64 * 64 * 4));
    QCOMPARE(bytes("x", "fc1:gradient"), std::int64_t(64 * 32 * 4));
    QCOMPARE(bytes("fc2:weight-gradient", "fc2:update"), std::int64_t((64 * 16 + 16) * 4));
    QCOMPARE(g.persistent_bytes[at.at("fc2:weights")], std::int64_t((64 * 16 + 16) * 12));  // weight and two moments
    QCOMPARE(bytes("fc2:weights", "fc2"), std::int64_t((64 * 16 + 16) * 4));
    QCOMPARE(bytes("fc2:weights", "fc2:input-gradient"), std::int64_t(64 * 16 * 4));  // the bias is not multiplied with
    QCOMPARE(bytes("fc2:weights", "fc2:weight-gradient"), std::int64_t(-1));
    QCOMPARE(bytes("fc1:weights", "fc1:gradient"), std::int64_t(-1));  // nobody wants the gradient of x
    QVERIFY(g.colocate[at.at("relu")] == kNone);
  }

  /// The gradients that a concatenation gives its parts are tensors of their own, and a device with two of the parts is
  /// sent both; what the parts gave it is one tensor each.
  void parts_of_a_concatenation_have_their_own_gradients() {
    const auto scenario = scenario_of("inception-v3", 1);
    const auto graph = training_graph(*scenario);
    QVERIFY(graph);
    const TaskGraph& g = **graph;
    std::size_t concatenations = 0;
    for (TaskIndex t = 0; t < g.task_count(); ++t) {
      if (g.names[t].ends_with(":weights")) continue;  // held for good, not made
      SentBytes all(g);
      for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) all.add(e);
      QVERIFY2(all.total() <= g.output_bytes[t], std::string(g.names[t]).c_str());
      if (g.names[t].find("concat:gradient") == std::string_view::npos) continue;
      QCOMPARE(all.total(), g.output_bytes[t]);
      ++concatenations;
    }
    QCOMPARE(concatenations, std::size_t(11));
  }

  void micro_batches_repeat_all_but_the_updates() {
    const auto scenario = scenario_of("resnet18", 4);
    const auto once = training_graph(*scenario), thrice = training_graph(*scenario, {3});
    QVERIFY(once && thrice);
    const auto count = [](const TaskGraph& g, TaskKind kind) { return std::count(g.kind.begin(), g.kind.end(), kind); };
    QCOMPARE(count(**thrice, TaskKind::forward), 3 * count(**once, TaskKind::forward));
    QCOMPARE(count(**thrice, TaskKind::update), count(**once, TaskKind::update));
    const auto accumulations = count(**thrice, TaskKind::backward) - 3 * count(**once, TaskKind::backward);
    QCOMPARE(accumulations, 2 * count(**once, TaskKind::update));
    QVERIFY(simulate(**thrice, on_one(**thrice)));
    QVERIFY(!training_graph(*scenario, {0}));
    QVERIFY(!training_graph(*scenario, {kMaxMicroBatches + 1}));
  }

  /// Of three micro-batches, edge by edge: each adds its own to the sum so far, and the last sum alone goes to the
  /// update; in whole layers all are added to the buffer of the first.
  void gradients_come_back_as_running_sums() {
    Scenario scenario;
    scenario.model = test::mlp();
    scenario.cluster = *cluster_preset("v100-16gb-1x4");
    const std::int64_t gradient = (64 * 16 + 16) * 4;
    const DeviceType& device = scenario.cluster->device;
    const double seconds = 3.0 * double(gradient) / (device.memory_bandwidth * device.memory_efficiency) +
                           device.launch_s;  // two reads and a write
    for (const bool whole : {false, true}) {
      const auto graph = training_graph(scenario, {3, false, false, whole});
      QVERIFY(graph);
      const TaskGraph& g = **graph;
      std::map<std::string, std::map<std::string, std::int64_t>> edges;  // of fc2, between what handles gradients
      int sums = 0;
      for (TaskIndex t = 0; t < g.task_count(); ++t) {
        const std::string name(g.names[t]);
        if (name.starts_with("fc2:accumulate")) {
          ++sums;
          QVERIFY(close(g.time_s[t], seconds));
          QCOMPARE(g.output_bytes[t], whole ? 0 : gradient);
        }
        if (!name.starts_with("fc2:accumulate") && !name.starts_with("fc2:weight-gradient")) continue;
        for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e)
          edges[name][std::string(g.names[g.out_to[e]])] = g.out_bytes[e];
      }
      QCOMPARE(sums, 2);
      const char* const update = "fc2:update #1";
      std::map<std::string, std::map<std::string, std::int64_t>> expected;
      expected["fc2:weight-gradient #1"]["fc2:accumulate #2"] = gradient;
      expected["fc2:weight-gradient #2"]["fc2:accumulate #2"] = gradient;
      expected["fc2:weight-gradient #3"]["fc2:accumulate #3"] = gradient;
      if (whole) {
        expected["fc2:weight-gradient #1"]["fc2:accumulate #3"] = gradient;
        expected["fc2:weight-gradient #1"][update] = gradient;
        expected["fc2:accumulate #2"][update] = expected["fc2:accumulate #3"][update] = 0;
      } else {
        expected["fc2:accumulate #2"]["fc2:accumulate #3"] = expected["fc2:accumulate #3"][update] = gradient;
      }
      QVERIFY(edges == expected);
    }
  }

  /// A table that a product shares, which has a bias of its own: each update is sent the gradient of what it updates, a
  /// tensor for each, and beside them goes the gradient of what was read.
  void updates_are_sent_their_own_gradients() {
    ModelBuilder b("tied", "test", 8, 16);
    const std::int64_t hidden = 32, vocabulary = 64;
    const TensorId tokens = b.input("tokens", {8, 16}, {DimName::batch, DimName::sequence}, ElementType::i64);
    const TensorId table = b.parameter("table", {vocabulary, hidden}, {DimName::vocabulary, DimName::channel});
    TensorId x = b.embedding("embed", table, tokens);
    x = b.normalisation("norm", x, 2, b.parameter("g", {hidden}), b.parameter("h", {hidden}));
    x = b.linear("head", x, b.tied_parameter("table_out", table, {vocabulary, hidden}),
                 b.parameter("bias", {vocabulary}), true, DimName::vocabulary);
    Scenario scenario;
    scenario.model = test::finished(b, x);
    scenario.cluster = *cluster_preset("v100-16gb-1x4");
    QVERIFY(scenario.model);
    const auto graph = training_graph(scenario);
    QVERIFY(graph);
    const TaskGraph& g = **graph;
    std::map<std::string, std::map<std::string, std::int64_t>> sent;
    std::map<std::string, std::int64_t> together;
    for (TaskIndex t = 0; t < g.task_count(); ++t) {
      SentBytes all(g);
      for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
        sent[std::string(g.names[t])][std::string(g.names[g.out_to[e]])] = g.out_bytes[e];
        all.add(e);
      }
      together[std::string(g.names[t])] = all.total();
    }
    const std::int64_t shared = vocabulary * hidden * 4, bias = vocabulary * 4, scales = 2 * hidden * 4,
                       read = 8 * 16 * hidden * 4;
    QCOMPARE(sent["head:weight-gradient"]["embed:update"], shared);
    QCOMPARE(sent["head:weight-gradient"]["head:update"], bias);
    QCOMPARE(sent["embed:gradient"]["embed:update"], shared);
    QCOMPARE(sent["norm:gradient"]["norm:update"], scales);
    QCOMPARE(sent["norm:gradient"]["embed:gradient"], read);
    QCOMPARE(sent["embed:weights"]["head"], shared);
    QCOMPARE(sent["head:weights"]["head"], bias);
    QCOMPARE(together["head:weight-gradient"], shared + bias);
    QCOMPARE(together["norm:gradient"], scales + read);
  }

  /// The gradient of what a normalisation reads asks for its scale, and not for its bias.
  void backward_of_a_normalisation_is_sent_its_scale() {
    const auto scenario = scenario_of("resnet18", 4);
    const auto graph = training_graph(*scenario);
    QVERIFY(graph);
    const TaskGraph& g = **graph;
    std::map<std::string_view, std::int64_t> sent;
    for (TaskIndex t = 0; t < g.task_count(); ++t)
      for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e)
        if (g.names[t] == "stem/norm:weights") sent[g.names[g.out_to[e]]] = g.out_bytes[e];
    const std::map<std::string_view, std::int64_t> expected{{"stem/norm", 2 * 64 * 4}, {"stem/norm:gradient", 64 * 4}};
    QVERIFY(sent == expected);
  }

  /// Data have no gradient, so nothing is scaled back.
  void backward_of_a_normalisation_of_data_is_sent_nothing() {
    ModelBuilder b("norm", "test", 8, 0);
    const TensorId x = b.input("x", {8, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
    Scenario scenario;
    scenario.model = test::finished(b, b.normalisation("norm", x, 1, b.parameter("g", {16}), b.parameter("h", {16})));
    scenario.cluster = *cluster_preset("v100-16gb-1x4");
    const auto graph = training_graph(scenario);
    QVERIFY(graph);
    const TaskGraph& g = **graph;
    for (TaskIndex t = 0; t < g.task_count(); ++t)
      if (g.names[t] == "norm:weights") {
        QCOMPARE(g.successors(t).size(), std::size_t(1));
        QCOMPARE(g.names[g.successors(t)[0]], std::string_view("norm"));
      }
  }

  /// The gradient of a recurrent layer's weights is made of its input, of the states and of the gradients at its gates:
  /// a GRU's new gate has one for each of its two products.
  void weights_of_cells_get_the_gradients_of_gates_data() {
    QTest::addColumn<QString>("cell");
    QTest::addColumn<int>("gates");
    QTest::addColumn<int>("handed");
    QTest::newRow("LSTM") << "LSTM" << 4 << 4;
    QTest::newRow("GRU") << "GRU" << 3 << 4;
    QTest::newRow("RNN") << "RNN" << 1 << 1;
  }
  void weights_of_cells_get_the_gradients_of_gates() {
    QFETCH(QString, cell);
    QFETCH(int, gates);
    QFETCH(int, handed);
    ModelBuilder b("cells", "test", 2, 3);
    const std::int64_t units = 4;
    TensorId x = b.input("x", {2, 3, 4}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
    x = b.linear("stem", x, b.parameter("stem_w", {4, 4}));
    x = b.recurrent("cell", cell.toStdString(), x, b.parameter("w", {1, gates * units, 4}),
                    b.parameter("r", {1, gates * units, units}), b.parameter("b", {1, gates * units}), gates, 1, units,
                    true);
    Scenario scenario;
    scenario.model = test::finished(b, b.linear("head", x, b.parameter("head_w", {units, 4})));
    scenario.cluster = *cluster_preset("v100-16gb-1x4");
    QVERIFY(scenario.model);
    const std::int64_t vectors = 4 * units * 2 * 3;  // of all samples and steps
    for (const bool steps : {false, true}) {
      const auto graph = training_graph(scenario, {1, steps});
      QVERIFY(graph);
      const TaskGraph& g = **graph;
      std::map<std::string, std::int64_t> sent;
      for (TaskIndex t = 0; t < g.task_count(); ++t)
        for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e)
          if (const std::string to(g.names[g.out_to[e]]);
              to.starts_with("cell") && to.ends_with("weight-gradient") && !g.names[t].ends_with("weight-gradient"))
            sent[std::string(g.names[t])] += g.out_bytes[e];
      if (!steps) {
        const std::map<std::string, std::int64_t> expected{
            {"stem", vectors}, {"cell", vectors}, {"cell:input-gradient", handed * vectors}};
        QVERIFY(sent == expected);
        continue;
      }
      QCOMPARE(sent.at("stem"), 3 * vectors);  // all of it to each
      QCOMPARE(sent.at("cell/step0"), vectors / 3);
      QVERIFY(!sent.contains("cell/step2"));
      QCOMPARE(sent.at("cell/step1:input-gradient"), handed * vectors / 3);
    }
  }

  void links_are_those_of_the_cluster() {
    const auto scenario = scenario_of("lenet", 4, "v100-16gb-2x4");
    const auto graph = training_graph(*scenario);
    QVERIFY(graph);
    const Cluster& cluster = *scenario->cluster;
    QCOMPARE((*graph)->device_limit(), 8u);
    QCOMPARE((*graph)->links.bandwidth_of(0, 3), cluster.links[kIntraNode].bandwidth);
    QCOMPARE((*graph)->links.bandwidth_of(3, 4), cluster.links[kInterNode].bandwidth);
    QCOMPARE((*graph)->links.latency_of(7, 0), cluster.links[kInterNode].latency_s);
    QCOMPARE((*graph)->memory_of(5), scenario->memory_limit());
  }
};

QTEST_APPLESS_MAIN(TrainingGraphTest)
#include "training_graph_test.moc"
