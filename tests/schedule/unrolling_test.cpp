// SPDX-License-Identifier: Apache-2.0
// Unrolled recurrent steps: sums are those of the whole graph, a small graph edge by edge, steps that follow one
// another, micro-batches, parts, both directions, and bounds.
#include "core/schedule/unrolling.h"

#include <fmt/format.h>

#include <QtTest>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/hardware/cluster.h"
#include "core/import/source/model_source.h"
#include "core/schedule/cell_parts.h"
#include "core/simulation/simulator.h"

using namespace turnpoint;

namespace {

ScenarioPtr scenario_of(const std::string& model, std::int64_t batch) {
  const auto source = open_model("builtin:" + model);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto bound = (*source)->bind({batch, 0});
  if (!bound) qFatal("%s", bound.error().message().c_str());
  Settings settings;
  settings.batch = batch;
  const char* hardware = "v100-32gb-1x4";
  const auto scenario = make_scenario(*bound, *cluster_preset(hardware), hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

TrainingGraph graph_of(const Scenario& scenario, const TrainingGraphOptions& options) {
  auto made = training_graph_of(scenario, options);
  if (!made) qFatal("%s", made.error().message().c_str());
  return std::move(*made);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// Of one operator in one role: seconds, output bytes, persistent bytes.
struct Sums {
  double time_s = 0;
  std::int64_t output = 0, persistent = 0;
};
using Key = std::pair<std::uint32_t, TaskRole>;
std::map<Key, Sums> sums_of(const TrainingGraph& made) {
  std::map<Key, Sums> sums;
  const TaskGraph& g = *made.graph;
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    Sums& s = sums[{made.operator_of[t].index, made.role[t]}];
    s.time_s += g.time_s[t];
    s.output += g.output_bytes[t];
    s.persistent += g.persistent_bytes[t];
  }
  return sums;
}

Placement on_one(const TaskGraph& graph) {
  Placement placement;
  placement.device.assign(graph.task_count(), 0);
  return placement;
}

std::map<std::string, TaskIndex> by_name(const TaskGraph& g) {
  std::map<std::string, TaskIndex> at;
  for (TaskIndex t = 0; t < g.task_count(); ++t) at[std::string(g.names[t])] = t;
  return at;
}

/// "from > to bytes" of all edges that concern the operator.
std::set<std::string> edges_of(const TaskGraph& g, const std::string& op) {
  std::set<std::string> edges;
  for (TaskIndex t = 0; t < g.task_count(); ++t)
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const auto from = std::string(g.names[t]), to = std::string(g.names[g.out_to[e]]);
      if (from.starts_with(op) || to.starts_with(op)) edges.insert(fmt::format("{} > {} {}", from, to, g.out_bytes[e]));
    }
  return edges;
}

const char* const kModels[] = {"lstm-lm", "rnn", "gnmt", "nmt-2", "char-crn", "e3d?layers=2&hidden=32", "resnet18"};

}  // namespace

class UnrollingTest : public QObject {
  Q_OBJECT

 private slots:
  void sums_are_those_of_the_whole_graph_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("micro_batches");
    QTest::addColumn<bool>("in_parts");
    QTest::addColumn<bool>("whole_layers");
    for (const char* model : kModels)
      for (const int micro_batches : {1, 3})
        for (const bool in_parts : {false, true})
          for (const bool whole_layers : {false, true})
            QTest::addRow("%s, %d, %s, %s", model, micro_batches, in_parts ? "parts" : "steps",
                          whole_layers ? "whole layers" : "weights")
                << model << micro_batches << in_parts << whole_layers;
  }
  void sums_are_those_of_the_whole_graph() {
    QFETCH(QString, model);
    QFETCH(int, micro_batches);
    QFETCH(bool, in_parts);
    const auto scenario = scenario_of(model.toStdString(), 3);
    QFETCH(bool, whole_layers);
    const TrainingGraph whole = graph_of(*scenario, {micro_batches, false, false, whole_layers}),
                        made = graph_of(*scenario, {micro_batches, true, in_parts, whole_layers});
    const bool recurrent = model != "resnet18";
    QCOMPARE(made.graph->task_count() > whole.graph->task_count(), recurrent);
    const auto expected = sums_of(whole), found = sums_of(made);
    QCOMPARE(found.size(), expected.size());
    for (const auto& [key, sums] : expected) {
      const auto at = found.find(key);
      QVERIFY(at != found.end());
      QVERIFY(close(at->second.time_s, sums.time_s));
      // Both directions of GNMT's first layer make a gradient of what they read.
      const bool twice = key.second == TaskRole::backward && model == "gnmt" &&
                         scenario->model->operators[OperatorId(key.first)].name == "encoder/layer0/lstm";
      QCOMPARE(at->second.persistent, sums.persistent);
      const Operator& op = scenario->model->operators[OperatorId(key.first)];
      if (whole_layers || op.kind != OperatorKind::recurrent) {
        QCOMPARE(at->second.output, sums.output * (twice ? 2 : 1));
        continue;
      }
      // Every step writes the running sum of its weights' gradients anew, and hands over the gradients of its gates.
      if (key.second == TaskRole::weight_gradient) QCOMPARE(at->second.output, sums.output * time_steps(op));
      if (key.second == TaskRole::forward) QCOMPARE(at->second.output, sums.output);
      if (key.second == TaskRole::backward) QVERIFY(at->second.output >= sums.output);
    }
    // Everything still runs, and on one device for as long as before; parameters stay with their updates.
    const auto one = simulate(*made.graph, on_one(*made.graph)), before = simulate(*whole.graph, on_one(*whole.graph));
    QVERIFY(one && before);
    QVERIFY(close(one->makespan_s, before->makespan_s));
    if (!whole_layers) return;
    std::map<std::uint32_t, std::set<std::uint32_t>> groups;
    for (TaskIndex t = 0; t < made.graph->task_count(); ++t)
      groups[made.operator_of[t].index].insert(made.graph->colocate[t]);
    for (const auto& [op, ids] : groups) QCOMPARE(ids.size(), std::size_t(1));
  }

  void two_layers_of_two_steps_edge_by_edge() {
    // Batch 2, 4 units, 2 steps, fp32: a step's output has 32 bytes, its gates 128; the states it hands on are two
    // vectors. The gradients of 4 x 4 x (4 + 4 + 2) weights have 640 bytes.
    const auto scenario = scenario_of("lstm-lm?layers=2&hidden=4&sequence=2", 2);
    const TrainingGraph made = graph_of(*scenario, {1, true, false, true});
    const TaskGraph& g = *made.graph;
    const std::set<std::string> expected = {
        "layer0/lstm/step0 > layer1/lstm/step0 32",
        "layer0/lstm/step1 > layer1/lstm/step1 32",
        "layer1/lstm/step0 > layer1/lstm/step1 64",
        "layer1/lstm/step0 > head/logits 32",
        "layer1/lstm/step1 > head/logits 32",
        "layer1/lstm/step0 > head/logits:weight-gradient 32",
        "layer1/lstm/step1 > head/logits:weight-gradient 32",
        // What backward keeps: own steps, and the input.
        "layer1/lstm/step0 > layer1/lstm/step0:input-gradient 160",
        "layer1/lstm/step1 > layer1/lstm/step1:input-gradient 160",
        "layer1/lstm/step0 > layer1/lstm/step0:weight-gradient 160",
        "layer1/lstm/step1 > layer1/lstm/step1:weight-gradient 160",
        "layer0/lstm/step0 > layer1/lstm/step0:input-gradient 32",
        "layer0/lstm/step1 > layer1/lstm/step1:input-gradient 32",
        "layer0/lstm/step0 > layer1/lstm/step0:weight-gradient 32",
        "layer0/lstm/step1 > layer1/lstm/step1:weight-gradient 32",
        // Backward in reverse, into the layer below step by step.
        "head/logits:input-gradient > layer1/lstm/step0:input-gradient 64",
        "head/logits:input-gradient > layer1/lstm/step1:input-gradient 64",
        "layer1/lstm/step1:input-gradient > layer1/lstm/step0:input-gradient 64",
        "layer1/lstm/step0:input-gradient > layer0/lstm/step0:input-gradient 32",
        "layer1/lstm/step1:input-gradient > layer0/lstm/step1:input-gradient 32",
        // Gradients of weights after their step's backward, into one buffer.
        "layer1/lstm/step0:input-gradient > layer1/lstm/step0:weight-gradient 0",
        "layer1/lstm/step1:input-gradient > layer1/lstm/step1:weight-gradient 0",
        "layer1/lstm/step1:weight-gradient > layer1/lstm/step0:weight-gradient 0",
        "layer1/lstm/step1:weight-gradient > layer1/lstm:update 640",
        "layer1/lstm/step0:weight-gradient > layer1/lstm:update 0",
    };
    const auto found = edges_of(g, "layer1/lstm");
    for (const auto& edge : found) QVERIFY2(expected.contains(edge), edge.c_str());
    for (const auto& edge : expected) QVERIFY2(found.contains(edge), edge.c_str());
    const auto at = by_name(g);
    QCOMPARE(g.output_bytes[at.at("layer1/lstm/step1:weight-gradient")], std::int64_t(640));
    QCOMPARE(g.output_bytes[at.at("layer1/lstm/step0:weight-gradient")], std::int64_t(0));
    QCOMPARE(g.output_bytes[at.at("layer1/lstm/step0")], std::int64_t(160));
    // What is no recurrent operator waits for all steps and feeds all.
    const auto below = edges_of(g, "embed/tokens");
    for (const char* edge : {"embed/tokens > layer0/lstm/step0 64", "embed/tokens > layer0/lstm/step1 64",
                             "layer0/lstm/step0:input-gradient > embed/tokens:gradient 32",
                             "layer0/lstm/step1:input-gradient > embed/tokens:gradient 32"})
      QVERIFY2(below.contains(edge), edge);
  }

  void steps_that_need_not_share_a_device() {
    // As above. Weights are 4 x 4 x (4 + 4) elements and 4 x 4 x 2 of biases, of which backward reads the former.
    const auto scenario = scenario_of("lstm-lm?layers=2&hidden=4&sequence=3", 2);
    const TrainingGraph made = graph_of(*scenario, {1, true});
    const TaskGraph& g = *made.graph;
    const auto found = edges_of(g, "layer1/lstm");
    for (const char* edge : {
             "layer1/lstm:weights > layer1/lstm/step0 640",
             "layer1/lstm:weights > layer1/lstm/step2 640",
             "layer1/lstm:weights > layer1/lstm/step1:input-gradient 512",
             // What a step began with: the cell for its backward, the output for the gradient of its weights.
             "layer1/lstm/step0 > layer1/lstm/step1:input-gradient 32",
             "layer1/lstm/step0 > layer1/lstm/step1:weight-gradient 32",
             "layer1/lstm/step1 > layer1/lstm/step1:input-gradient 160",
             "layer1/lstm/step1:input-gradient > layer1/lstm/step1:weight-gradient 128",
             "layer0/lstm/step1 > layer1/lstm/step1:weight-gradient 32",
             // The running sum.
             "layer1/lstm/step2:weight-gradient > layer1/lstm/step1:weight-gradient 640",
             "layer1/lstm/step1:weight-gradient > layer1/lstm/step0:weight-gradient 640",
             "layer1/lstm/step0:weight-gradient > layer1/lstm:update 640",
         })
      QVERIFY2(found.contains(edge), edge);
    for (const char* edge : {"layer1/lstm/step2:weight-gradient > layer1/lstm:update 0",
                             "layer1/lstm/step1 > layer1/lstm/step1:weight-gradient 160",
                             "layer1/lstm:weights > layer1/lstm/step1:weight-gradient 512"})
      QVERIFY2(!found.contains(edge), edge);
    const auto at = by_name(g);
    QCOMPARE(g.output_bytes[at.at("layer1/lstm/step0:weight-gradient")], std::int64_t(640));
    QCOMPARE(g.output_bytes[at.at("layer1/lstm/step2:weight-gradient")], std::int64_t(640));
    QCOMPARE(g.colocate[at.at("layer1/lstm/step0")], kNone);

    // One sum leaves a device for every run of steps on it: steps 2 and 1 on one, 0 with the weights.
    Placement placement = on_one(g);
    placement.devices = 2;
    for (const char* step : {"layer1/lstm/step2:weight-gradient", "layer1/lstm/step1:weight-gradient"})
      placement.device[at.at(step)] = 1;
    const auto run = simulate(g, placement);
    QVERIFY(run);
    std::int64_t sums = 0, others = 0;
    for (const SimulatedTransfer& transfer : run->transfers)
      (transfer.source == at.at("layer1/lstm/step1:weight-gradient") && transfer.to == 0 && transfer.bytes == 640
           ? sums
           : others) += 1;
    QCOMPARE(sums, std::int64_t(1));
    // To it: two steps' gates, their inputs from below and the states before them.
    QCOMPARE(others, std::int64_t(6));
  }

  /// Backward of a step hands the layer below the gradient of its input, and the step before those of its states:
  /// tensors of their own, of which a device that wants both is sent both.
  void gradients_of_states_and_of_inputs_are_sent_both() {
    const auto scenario = scenario_of("lstm-lm?layers=2&hidden=4&sequence=3", 2);
    const TrainingGraph made = graph_of(*scenario, {1, true});
    const TaskGraph& g = *made.graph;
    const auto at = by_name(g);
    const std::int64_t vector = 4 * 4 * 2;
    const TaskIndex step = at.at("layer1/lstm/step1:input-gradient");
    SentBytes states(g), inputs(g), both(g);
    for (EdgeIndex e = g.out_begin[step]; e < g.out_begin[step + 1]; ++e) {
      const std::string_view to = g.names[g.out_to[e]];
      if (to == "layer1/lstm/step0:input-gradient") states.add(e), both.add(e);
      if (to.starts_with("layer0/lstm")) inputs.add(e), both.add(e);
    }
    QCOMPARE(states.total(), 2 * vector);
    QCOMPARE(inputs.total(), vector);
    QCOMPARE(both.total(), 3 * vector);
  }

  /// Each step hands its own gradient to the update, which all are there for at once; with summed ones there is one.
  void kept_gradients_of_all_steps_are_there_at_the_update() {
    const auto scenario = scenario_of("lstm-lm?layers=2&hidden=2048&sequence=5", 1);
    for (const bool whole_layers : {false, true})
      for (const bool in_parts : {false, true}) {
        const TrainingGraph kept = graph_of(*scenario, {1, true, in_parts, whole_layers, true}),
                            summed = graph_of(*scenario, {1, true, in_parts, whole_layers, false});
        const TaskGraph& g = *kept.graph;
        QCOMPARE(g.task_count(), summed.graph->task_count());
        std::int64_t gradients = 0;  // of all recurrent layers, one step's
        for (const Operator& op : scenario->model->operators)
          if (op.kind == OperatorKind::recurrent)
            for (const Access& access : op.inputs)
              if (const Tensor& tensor = scenario->model->tensors[access.tensor]; tensor.role == TensorRole::parameter)
                gradients += tensor.elements() * 4;
        const auto read_by_updates = [&](const TrainingGraph& made) {
          std::int64_t bytes = 0;
          const TaskGraph& graph = *made.graph;
          for (TaskIndex t = 0; t < graph.task_count(); ++t)
            for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e) {
              const TaskIndex to = graph.out_to[e];
              if (made.role[to] != TaskRole::update) continue;
              if (scenario->model->operators[made.operator_of[to]].kind == OperatorKind::recurrent &&
                  made.role[t] != TaskRole::weights)
                bytes += graph.out_bytes[e];
            }
          return bytes;
        };
        QCOMPARE(read_by_updates(summed), gradients);
        QCOMPARE(read_by_updates(kept), 5 * gradients);
        const auto from_step_to_step = [&](const TrainingGraph& made) {
          int edges = 0;
          for (TaskIndex t = 0; t < made.graph->task_count(); ++t)
            for (const TaskIndex to : made.graph->successors(t))
              edges += made.role[t] == TaskRole::weight_gradient && made.role[to] == TaskRole::weight_gradient;
          return edges;
        };
        QVERIFY(from_step_to_step(summed) > 0);
        QCOMPARE(from_step_to_step(kept), 0);
        // On one device: as long, and all five of them at once; of a running sum there are two, the old one and the
        // new.
        const auto with = simulate(g, on_one(g)), without = simulate(*summed.graph, on_one(*summed.graph));
        QVERIFY(with && without);
        QVERIFY(close(with->makespan_s, without->makespan_s));
        QVERIFY(with->devices[0].peak_bytes >= without->devices[0].peak_bytes + 2 * gradients);
      }
  }

  /// Where a profile has a fit of the kind, a part of a time step takes its share of the work, and all of what a launch
  /// costs however small it is.
  void a_profile_says_what_a_step_of_its_size_takes() {
    const auto plain = scenario_of("lstm-lm?layers=2&hidden=64&sequence=5", 3);
    for (const auto& [cached, in_parts] : {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
      const double outside[2] = {3e-3, 7e-3}, launch[2] = {cached ? 1e-3 : 3e-3, cached ? 2e-3 : 7e-3};
      auto cluster = std::make_shared<Cluster>(*plain->cluster);
      if (cached) cluster->device.cache_bytes = std::int64_t(1) << 40, cluster->device.cache_bandwidth = 1e12;
      for (const bool backward : {false, true}) {
        const auto* phase = backward ? "backward" : "forward";
        cluster->fits.push_back({"recurrent", phase, Precision::fp32, outside[backward], 2e-12, 3e-12, 40});
        cluster->warm_fits.push_back({"recurrent", phase, Precision::fp32, launch[backward], 2e-12, 3e-12, 40});
      }
      Scenario measured = *plain;
      measured.cluster = cluster, measured.settings.factors.device_speed = 2;
      const TrainingGraph made = graph_of(measured, {1, true, in_parts});
      const auto whole = sums_of(graph_of(measured, {1, false})), steps = sums_of(made);
      std::map<Key, std::size_t> pieces;
      for (TaskIndex t = 0; t < made.graph->task_count(); ++t) ++pieces[{made.operator_of[t].index, made.role[t]}];
      int recurrent = 0;
      for (const auto& [key, sums] : whole) {
        const TaskRole role = key.second;
        const bool updates = role == TaskRole::update || role == TaskRole::weights;
        if (measured.model->operators[OperatorId(key.first)].kind != OperatorKind::recurrent || updates) continue;
        // Each half of a backward has half of what a launch costs; five time steps are launched in any case.
        const double each = (role == TaskRole::forward ? launch[0] : launch[1] / 2) / 2;
        QVERIFY(++recurrent && close(steps.at(key).time_s, sums.time_s + double(pieces.at(key) - 5) * each));
      }
      QCOMPARE(recurrent, 6);  // two layers: forward, and the two halves of backward
    }
  }

  void both_directions_read_their_own_weights() {
    const auto scenario = scenario_of("gnmt?sequence=3", 2);
    for (const bool in_parts : {false, true}) {
      const TrainingGraph made = graph_of(*scenario, {1, true, in_parts});
      const TaskGraph& g = *made.graph;
      const auto at = by_name(g);
      const TaskIndex weights = at.at("encoder/layer0/lstm:weights");
      // A device with forward of one direction is sent half of what both together are.
      std::int64_t sent[2] = {0, 0}, both = 0;
      SentBytes all(g), forward(g), reverse(g);
      for (EdgeIndex e = g.out_begin[weights]; e < g.out_begin[weights + 1]; ++e) {
        const bool back = g.names[g.out_to[e]].find("-reverse") != std::string_view::npos;
        all.add(e);
        (back ? reverse : forward).add(e);
      }
      sent[0] = forward.total(), sent[1] = reverse.total(), both = all.total();
      QCOMPARE(sent[0] + sent[1], both);
      QCOMPARE(sent[0], sent[1]);
      std::int64_t elements = 0;
      for (const Operator& op : scenario->model->operators)
        if (op.name == "encoder/layer0/lstm")
          for (const Access& access : op.inputs)
            if (const Tensor& tensor = scenario->model->tensors[access.tensor]; tensor.role == TensorRole::parameter)
              elements += tensor.elements();
      QCOMPARE(both, 4 * elements);
    }
  }

  void layers_run_ahead_of_one_another() {
    // L layers of T equal steps on L devices, without transfers: the forward wave takes T + L - 1 steps.
    const auto scenario = scenario_of("lstm-lm?layers=4&hidden=64&sequence=12", 4);
    const TrainingGraph made = graph_of(*scenario, {1, true});
    const TaskGraph& g = *made.graph;
    std::vector<std::uint32_t> layer(g.task_count(), 0);
    for (TaskIndex t = 0; t < g.task_count(); ++t)
      if (const auto name = g.names[t]; name.starts_with("layer")) layer[t] = std::uint32_t(name[5] - '0');
    TaskGraph quick = g;
    quick.links.bandwidth = 1e30, quick.links.latency = 0;
    quick.links.contention = TaskLinks::Contention::none;
    Placement placement;
    placement.devices = 4, placement.device = layer;
    const auto run = simulate(quick, placement);
    QVERIFY(run);
    const auto at = by_name(g);
    const double step = g.time_s[at.at("layer0/lstm/step0")], begin = run->start_s[at.at("layer0/lstm/step0")];
    const double end = run->end_s[at.at("layer3/lstm/step11")];
    QVERIFY2(std::abs((end - begin) / step - (12 + 4 - 1)) < 1e-6, fmt::format("{}", (end - begin) / step).c_str());
  }

  void both_directions_have_steps_of_their_own() {
    const auto scenario = scenario_of("gnmt?sequence=3", 2);
    const TrainingGraph made = graph_of(*scenario, {1, true});
    const TaskGraph& g = *made.graph;
    const auto at = by_name(g);
    const auto edge = [&](const std::string& from, const std::string& to) {
      const auto row = g.successors(at.at(from));
      return std::find(row.begin(), row.end(), at.at(to)) != row.end();
    };
    const std::string both = "encoder/layer0/lstm";
    QVERIFY(edge(both + "/step0", both + "/step1") && edge(both + "/step1", both + "/step2"));
    QVERIFY(edge(both + "/step2-reverse", both + "/step1-reverse") &&
            edge(both + "/step1-reverse", both + "/step0-reverse"));
    QVERIFY(!edge(both + "/step0-reverse", both + "/step1-reverse"));
    QVERIFY(edge(both + "/step0-reverse:input-gradient", both + "/step1-reverse:input-gradient"));
    // The next layer wants both for each of its steps.
    for (const int step : {0, 1, 2})
      for (const char* direction : {"", "-reverse"})
        QVERIFY(
            edge(fmt::format("{}/step{}{}", both, step, direction), fmt::format("encoder/layer1/lstm/step{}", step)));
    QVERIFY(!edge(both + "/step0", "encoder/layer1/lstm/step1"));
    // Residuals between layers go along step by step.
    QVERIFY(edge("encoder/layer2/lstm/step1", "encoder/layer2/add/step1"));
    QVERIFY(edge("encoder/layer2/add/step1", "encoder/layer3/lstm/step1"));
  }

  void a_step_in_parts() {
    const auto scenario = scenario_of("lstm-lm?layers=1&hidden=4&sequence=2", 2);
    const TrainingGraph made = graph_of(*scenario, {1, true, true});
    const TaskGraph& g = *made.graph;
    const auto at = by_name(g);
    // Twelve parts forward, as many backward, and three parameters, at each of two steps.
    QCOMPARE(std::count_if(at.begin(), at.end(), [](const auto& each) { return each.first.starts_with("layer0/"); }),
             std::ptrdiff_t(2 * (12 + 12 + 3) + 2));
    const auto edge = [&](const std::string& from, const std::string& to) {
      const auto row = g.successors(at.at("layer0/lstm/" + from));
      return std::find(row.begin(), row.end(), at.at("layer0/lstm/" + to)) != row.end();
    };
    QVERIFY(edge("step0/output", "step1/state-product"));
    QVERIFY(edge("step0/cell", "step1/keep"));
    QVERIFY(edge("step1/forget-gate", "step1/keep"));
    QVERIFY(edge("step1/keep:input-gradient", "step1/forget-gate:input-gradient"));
    QVERIFY(edge("step1/state-product:input-gradient", "step0/output:input-gradient"));
    QVERIFY(edge("step1/keep:input-gradient", "step0/cell:input-gradient"));
    QVERIFY(edge("step1/sum:input-gradient", "step1/parameter0:weight-gradient"));
    QVERIFY(!edge("step0/input-product", "step1/input-product"));
    // 2 x 2 x 4 x 16 multiply-accumulates for each product, and a sixteenth of that element by element.
    const double product = g.time_s[at.at("layer0/lstm/step0/input-product")];
    QVERIFY(close(product, g.time_s[at.at("layer0/lstm/step1/state-product")]));
    QVERIFY(g.time_s[at.at("layer0/lstm/step0/keep")] < product);
    // Parts of a step share a device; the gradients of its weights need not.
    QVERIFY(g.colocate[at.at("layer0/lstm/step0/keep")] != kNone);
    QCOMPARE(g.colocate[at.at("layer0/lstm/step0/keep")], g.colocate[at.at("layer0/lstm/step0/output")]);
    QVERIFY(g.colocate[at.at("layer0/lstm/step0/keep")] != g.colocate[at.at("layer0/lstm/step1/keep")]);
    QCOMPARE(g.colocate[at.at("layer0/lstm/step1/parameter0:weight-gradient")], kNone);
    // The buffer of the gates and the output.
    QCOMPARE(g.output_bytes[at.at("layer0/lstm/step0/input-product")], std::int64_t(128));
    QCOMPARE(g.output_bytes[at.at("layer0/lstm/step0/output")], std::int64_t(32));
    QCOMPARE(g.output_bytes[at.at("layer0/lstm/step0/keep")], std::int64_t(0));
  }

  void programs_are_sound_data() {
    QTest::addColumn<QString>("model");
    for (const char* model : {"lstm-lm", "gnmt", "e3d"}) QTest::newRow(model) << model;
  }
  void programs_are_sound() {
    QFETCH(QString, model);
    const auto scenario = scenario_of(model.toStdString(), 2);
    std::size_t cells = 0;
    for (const Operator& op : scenario->model->operators) {
      if (op.kind != OperatorKind::recurrent) continue;
      ++cells;
      const CellProgram cell = cell_program(*scenario->model, op, true);
      QVERIFY(cell.in_parts());
      QVERIFY(close(std::accumulate(cell.share.begin(), cell.share.end(), 0.0), 1));
      QVERIFY(close(std::accumulate(cell.parameter_share.begin(), cell.parameter_share.end(), 0.0), 1));
      std::set<std::uint32_t> read, weights;
      for (std::uint32_t i = 0; i < cell.parts.size(); ++i) {
        for (const std::uint32_t from : cell.parts[i].of) QVERIFY(from < i);
        for (const auto* row : {&cell.parts[i].of, &cell.parts[i].old, &cell.parts[i].all})
          for (const std::uint32_t from : *row) {
            QVERIFY(from < cell.parts.size());
            read.insert(from);
          }
        if (cell.parts[i].work == CellPart::Work::product) QVERIFY(weights.insert(cell.parts[i].weight).second);
      }
      // Every part is for something, and every matrix is used.
      for (std::uint32_t i = 0; i + 1 < cell.parts.size(); ++i) QVERIFY2(read.contains(i), cell.parts[i].name);
      for (const std::uint32_t weight : weights)
        QVERIFY(std::count(cell.parameters.begin(), cell.parameters.end(), weight));
    }
    QVERIFY(cells > 0);
  }

  void too_much_is_refused() {
    const auto scenario = scenario_of("e3d?sequence=4000&layers=4&hidden=8", 1);
    const auto made = training_graph(*scenario, {1, true, true});
    QVERIFY(!made);
    QVERIFY(made.error().message().find("unrolling makes") != std::string::npos);
    QVERIFY(!training_graph(*scenario_of("lstm-lm?sequence=100000&layers=90&hidden=4", 1), {2, true}));
  }
};

QTEST_APPLESS_MAIN(UnrollingTest)
#include "unrolling_test.moc"
