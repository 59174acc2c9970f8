// SPDX-License-Identifier: Apache-2.0
// Placement methods as search methods: what they place, what factors and limits do, and that nobody else takes a task
// graph. Oracles: run_placement itself, the simulator, the additive cost of one device, and scaling laws of the rules.
#include <fmt/format.h>
#include <QtTest>
#include <algorithm>
#include <map>
#include <numeric>

#include "core/scenario/task_scenario.h"
#include "core/schedule/training_graph.h"
#include "core/search/objectives.h"
#include "core/search/placement/graph_options.h"
#include "core/search/placement/placed.h"
#include "core/search/placement_registry.h"
#include "core/search/placement_search.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"
#include "core/simulation/simulator.h"
#include "search/scenarios.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

ModelPtr named(const char* name) {
  auto model = std::make_shared<Model>();
  model->name = model->source = name;
  return model;
}

ScenarioPtr of_tasks(TaskGraphPtr graph, const std::function<void(Settings&)>& change = {},
                     const std::string& hardware = kFileHardware) {
  Settings settings;
  settings.devices = 3;
  if (change) change(settings);
  ClusterPtr cluster;
  if (hardware != kFileHardware) cluster = *open_hardware(hardware);
  const auto scenario = make_task_scenario(std::move(graph), named("random"), cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

/// By hand, without a simulation: a tensor goes once to each other device that reads it, as large as its largest reader
/// there takes it.
std::int64_t most_sent(const TaskGraph& graph, const Placement& placement) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> sent;
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    std::map<std::uint32_t, std::int64_t> to;
    for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e) {
      std::int64_t& bytes = to[placement.device[graph.out_to[e]]];
      bytes = std::max(bytes, graph.out_bytes[e]);
    }
    for (const auto& [device, bytes] : to)
      if (device != placement.device[t]) sent[{placement.device[t], device}] += bytes;
  }
  std::int64_t most = 0;
  for (const auto& [pair, bytes] : sent) most = std::max(most, bytes);
  return most;
}

/// The fastest: where everything fits, what the method answers; points before it are what it met besides.
const ResultPoint& fastest(const ResultPtr& result) { return result->points.back(); }
const PlacementPlan& plan_of(const ResultPtr& result) {
  return *std::get<PlacementPlanPtr>(result->plans->plan(result->points.size() - 1));
}

}  // namespace

class PlacementSearchTest : public QObject {
  Q_OBJECT

 private slots:
  void every_method_answers_as_place_does() {
    int pairs_differ = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 40);
      const ScenarioPtr scenario = of_tasks(graph);
      for (const auto& method : placement::placement_methods()) {
        if (method.unavailable && !method.unavailable().empty()) continue;
        if (learns(method.name)) continue;  // for seconds each time; tests/search/trinity has them
        const auto found = run(method.name, scenario);
        QVERIFY2(found, method.name.c_str());
        const Result& result = **found;
        const auto placed = placement::run_placement(method, *graph, search::placement_request(*scenario), {});
        QVERIFY(placed);
        QVERIFY(result.points.size() == 1 || method.frontier);
        const ResultPoint& point = fastest(*found);
        QCOMPARE(point.time_s, placed->makespan_s);
        QCOMPARE(point.memory_bytes, *std::max_element(placed->peak_bytes.begin(), placed->peak_bytes.end()));
        QCOMPARE(plan_of(*found).placement.device, placed->placement.device);
        QCOMPARE(point.fits, placed->fits());
        for (std::size_t k = 0; k < result.points.size(); ++k)
          QCOMPARE(*result.points[k].peak_communication_bytes,
                   most_sent(*graph, std::get<PlacementPlanPtr>(result.plans->plan(k))->placement));
        QCOMPARE(placed->peak_communication_bytes, most_sent(*graph, placed->placement));
        pairs_differ += placed->peak_communication_bytes > 0;
        QCOMPARE(result.clock, Clock::simulated);
        // The split of the time: what the busiest device computes, by hand.
        std::vector<double> busy(3);
        for (TaskIndex t = 0; t < graph->task_count(); ++t) busy[placed->placement.device[t]] += graph->time_s[t];
        QVERIFY(close(point.compute_s, *std::max_element(busy.begin(), busy.end())));
        QVERIFY(close(point.compute_s + point.network_s, point.time_s));
      }
    }
    QVERIFY2(pairs_differ > 20, "hardly any placement sends anything");
  }

  void only_placement_methods_take_a_task_graph() {
    const ScenarioPtr scenario = of_tasks(chain(1, 5));
    int taken = 0;
    for (const Method& method : methods()) {
      const std::string reason = refusal_of(method, {}, *scenario);
      taken += reason.empty();
      QCOMPARE(reason.find("task graph") != std::string::npos, !method.places);
    }
    QVERIFY(taken >= 7);
    QVERIFY(!run("manual:tp=2", scenario));
  }

  /// Faster devices, links and latencies by the same factor: every duration shrinks alike, and so does the end.
  void factors_scale_everything_alike() {
    for (std::uint64_t seed = 30; seed < 40; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 60);
      const auto plain = run("heft", of_tasks(graph));
      const auto scaled = run("heft", of_tasks(graph, [](Settings& s) {
                                s.factors.intra_bandwidth = 4;
                                s.factors.latency = 0.25;
                                s.factors.device_speed = 4;
                              }));
      QVERIFY(plain && scaled);
      QVERIFY(close((*scaled)->points[0].time_s * 4, (*plain)->points[0].time_s));
      QCOMPARE(plan_of(*scaled).placement.device, plan_of(*plain).placement.device);
      QCOMPARE((*scaled)->points[0].memory_bytes, (*plain)->points[0].memory_bytes);
    }
  }

  void stated_seconds_follow_the_bandwidth() {
    TaskGraphBuilder builder;
    builder.add_task({"a", TaskKind::forward, 1.0, 10});
    builder.add_task({"b", TaskKind::forward, 1.0, 10});
    builder.add_edge(0, 1, 10, 6.0);
    const TaskGraphPtr graph = *builder.finish("stated");
    const ScenarioPtr scenario = of_tasks(graph, [](Settings& s) { s.factors.intra_bandwidth = 2; });
    const TaskGraphPtr placed = placed_tasks(*scenario);
    QCOMPARE(placed->transfer_s(0, 0, 1), 3.0);
    QCOMPARE(graph->transfer_s(0, 0, 1), 6.0);  // what was opened stays
    QCOMPARE(placed_tasks(*of_tasks(graph)), graph);
  }

  void memory_of_the_file_and_of_the_user() {
    const TaskGraphPtr graph = random_task_graph(7, 60, [](TaskGraphBuilder& b) { b.alike.memory_bytes = 1 << 20; });
    QCOMPARE(of_tasks(graph)->memory_limit(), std::int64_t(1) << 20);
    QCOMPARE(of_tasks(graph, [](Settings& s) { s.factors.device_memory = 0.5; })->memory_limit(), std::int64_t(1)
                                                                                                      << 19);
    QCOMPARE(of_tasks(random_task_graph(7, 60))->memory_limit(), kUnlimitedBytes);
    const auto free = run("pardnn", of_tasks(graph));
    QVERIFY(free && (*free)->points[0].fits);
    const auto tight = run("pardnn", of_tasks(graph, [](Settings& s) { s.memory_limit = 1; }));
    QVERIFY(tight);
    QVERIFY(!(*tight)->points[0].fits);
    const auto& shortage = plan_of(*tight).shortage;
    QVERIFY(shortage && shortage->bytes == (plan_of(*tight).peak_bytes[shortage->device] - 1));
    // The device memory slider reaches the placed graph.
    const auto halved = placed_tasks(*of_tasks(graph, [](Settings& s) { s.factors.device_memory = 0.5; }));
    QCOMPARE(halved->memory_of(0), std::int64_t(1) << 19);
  }

  void hardware_replaces_links_and_devices() {
    const TaskGraphPtr graph = random_task_graph(3, 30);
    const ScenarioPtr scenario = of_tasks(
        graph, [](Settings& s) { s.devices = 16; }, "v100-16gb-2x8");
    const TaskGraphPtr placed = placed_tasks(*scenario);
    const Cluster& cluster = *scenario->cluster;
    QCOMPARE(placed->links.bandwidth_of(0, 7), cluster.links[kIntraNode].bandwidth);
    QCOMPARE(placed->links.bandwidth_of(0, 8), cluster.links[kInterNode].bandwidth);
    QCOMPARE(placed->links.latency_of(15, 7), cluster.links[kInterNode].latency_s);
    QCOMPARE(placed->memory_of(15), cluster.device.memory_bytes - cluster.device.reserve_bytes);
    QVERIFY(cluster.device.reserve_bytes > 0);
    QCOMPARE(placed->links.contention, graph->links.contention);
    QCOMPARE(placed->time_s, graph->time_s);
    // Each device's own memory and links; between nodes the slower network, out of a pod what leads out of it.
    const ScenarioPtr joined = of_tasks(
        graph, [](Settings& s) { s.devices = 8; }, "v100-16gb-1x4+a100-40gb-1x2+a100-40gb-1x2");
    const TaskGraphPtr unlike = placed_tasks(*joined);
    const ClusterPtr old = *cluster_preset("v100-16gb-1x4"), fast = *cluster_preset("a100-40gb-1x2");
    QCOMPARE(unlike->links.bandwidth_of(0, 3), old->links[kIntraNode].bandwidth);
    QCOMPARE(unlike->links.bandwidth_of(4, 5), fast->links[kIntraNode].bandwidth);
    QCOMPARE(unlike->links.bandwidth_of(5, 6), fast->links[kInterNode].bandwidth);
    QCOMPARE(unlike->links.bandwidth_of(6, 3), old->links[kInterNode].bandwidth);
    QVERIFY(old->links[kInterNode].bandwidth < fast->links[kInterNode].bandwidth);
    QVERIFY(unlike->memory_of(4) > unlike->memory_of(3) * 2);
    QCOMPARE(placed->speed_of(15), 1.0);
    QVERIFY(describe_task_speeds(*scenario).empty());
    const TaskGraphPtr pods = placed_tasks(*of_tasks(
        graph, [](Settings& s) { s.devices = 8; }, "v100-16gb-2x2x2@0.5"));
    QCOMPARE(pods->links.bandwidth_of(0, 2), old->links[kInterNode].bandwidth);
    QCOMPARE(pods->links.bandwidth_of(2, 4), old->links[kInterNode].bandwidth / 2);
    QVERIFY(pods->links.latency_of(2, 4) > pods->links.latency_of(0, 2));
  }

  // The file's times are the slower device's; the faster one gains what its slower gain is. By hand from the presets.
  void unlike_devices_have_their_own_speeds() {
    const TaskGraphPtr graph = random_task_graph(3, 30);
    const char* const kUnlike = "v100-16gb-1x8+a100-40gb-1x4";
    const DeviceType slow = (*cluster_preset("v100-16gb-1x8"))->device,
                     fast = (*cluster_preset("a100-40gb-1x4"))->device;
    const double bytes =
        fast.memory_bandwidth * fast.memory_efficiency / (slow.memory_bandwidth * slow.memory_efficiency);
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const double flop =
          precision == Precision::fp32
              ? fast.peak_fp32 * fast.flop_efficiency / (slow.peak_fp32 * slow.flop_efficiency)
              : fast.peak_bf16 * fast.flop_efficiency_16bit / (slow.peak_bf16 * slow.flop_efficiency_16bit);
      const ScenarioPtr scenario = of_tasks(
          graph,
          [&](Settings& s) {
            s.devices = 0;
            s.precision = precision;
            s.factors.device_speed = 2;
          },
          kUnlike);
      const TaskGraphPtr placed = placed_tasks(*scenario);
      QCOMPARE(placed->devices.size(), std::size_t(12));
      for (std::uint32_t d = 0; d < 12; ++d) QCOMPARE(placed->speed_of(d), 2 * (d < 8 ? 1 : std::min(flop, bytes)));
      QVERIFY(std::min(flop, bytes) > 1.1);
      QCOMPARE(placed->time_s, graph->time_s);
      const std::string said = describe_task_speeds(*scenario);
      QVERIFY2(said.find("on " + slow.name) != std::string::npos &&
                   said.find(fmt::format("{:.2f} times as fast on {}", std::min(flop, bytes), fast.name)) !=
                       std::string::npos,
               said.c_str());
      const auto found = run("heft", scenario);
      QVERIFY(found && std::count((*found)->explanations.begin(), (*found)->explanations.end(), said) == 1);
    }
  }

  void devices_of_the_file() {
    const auto with = [](auto change) { return random_task_graph(1, 10, change); };
    QCOMPARE((*cluster_of_file(*with([](TaskGraphBuilder&) {}), 0))->devices(), kDefaultPlacementDevices);
    QCOMPARE((*cluster_of_file(*with([](TaskGraphBuilder& b) { b.intended_devices = 5; }), 0))->devices(), 5);
    const auto listed = with([](TaskGraphBuilder& b) { b.devices = {{100, 1}, {50, 2}}; });
    QCOMPARE((*cluster_of_file(*listed, 0))->devices(), 2);
    QCOMPARE((*cluster_of_file(*listed, 0))->device.memory_bytes, std::int64_t(50));
    QCOMPARE((*cluster_of_file(*listed, 1))->device.memory_bytes, std::int64_t(100));
    const auto many = cluster_of_file(*listed, 3);
    QVERIFY(!many && many.error().code == ErrorCode::usage);
  }

  /// On a model, one device takes the additive time of the plan on one device: both are the one evaluator's.
  void a_model_s_training_graph_is_placed() {
    const ModelPtr model = builtin("lenet", 64);
    const ScenarioPtr four = scenario_on(model, "v100-16gb-1x4");
    const ScenarioPtr one = scenario_on(model, "v100-16gb-1x4", [](Settings& s) { s.devices = 1; });
    const auto single = run("single-device", four), plain = run("data-parallel", one);
    QVERIFY(single && plain);
    QVERIFY(close((*single)->points[0].time_s, (*plain)->points[0].time_s));
    const PlacementPlan& plan = plan_of(*single);
    QCOMPARE(plan.operator_of.size(), plan.graph->task_count());
    QVERIFY(close(plan.one_device_s, (*single)->points[0].time_s));
    for (TaskIndex t = 0; t < plan.graph->task_count(); ++t) {
      const std::string name(plan.graph->names[t]);
      QVERIFY(name.starts_with(model->operators[plan.operator_of[t]].name));
    }
    const auto pardnn = run("pardnn", four);
    QVERIFY(pardnn && fastest(*pardnn).time_s <= (*single)->points[0].time_s);
  }

  /// What is said of the graph may stand anywhere among the method's own, and no method sees it.
  void parameters_are_the_graph_s_or_the_method_s() {
    const auto read = [](const char* method, const char* text) {
      return search::read_placement_parameters(**placement::find_placement_method(method), text);
    };
    const char* const text = "calls=5:micro-batches=4:seconds=2:recurrent=parts:whole-layers";
    const auto mixed = read("simulated-annealing", text);
    QVERIFY2(mixed, mixed ? "" : mixed.error().message().c_str());
    QCOMPARE(mixed->text, std::string(text));
    QCOMPARE(mixed->own, std::string("calls=5:seconds=2"));
    QCOMPARE(mixed->of_the_graph, std::string("micro-batches=4:recurrent=parts:whole-layers"));
    QCOMPARE(mixed->graph.micro_batches, 4);
    QVERIFY(mixed->graph.unrolled_steps && mixed->graph.cells_in_parts && mixed->graph.whole_layers);
    for (const char* method : {"simulated-annealing", "heft"}) {
      const auto whole = read(method, "recurrent=whole"), nothing = read(method, "");
      QVERIFY(whole && whole->own.empty() && nothing && nothing->own.empty() && nothing->of_the_graph.empty());
      QVERIFY(!whole->graph.unrolled_steps && !whole->graph.cells_in_parts && !whole->graph.whole_layers);
      QVERIFY(nothing->graph.unrolled_steps && !nothing->graph.cells_in_parts && !nothing->graph.whole_layers);
      QCOMPARE(nothing->graph.micro_batches, 1);
    }
    // Who knows nothing of its own says what is known of the graph.
    const auto unknown = read("heft", "calls=5:micro-batches=2"), own = read("simulated-annealing", "passes=5");
    QVERIFY(!unknown && !own);
    QVERIFY2(unknown.error().message().find("whole-layers") != std::string::npos, unknown.error().message().c_str());
    QVERIFY2(own.error().message().find("calls") != std::string::npos, own.error().message().c_str());
    QVERIFY(!read("heft", "micro-batches=0"));
  }

  /// What the answer began as, and what later stages gained on it, in words; nothing gained is said as well.
  void the_answer_says_what_it_began_as() {
    int gained = 0, not_gained = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed)
      for (const char* parameters : {"from=round-robin:calls=48", "from=best:calls=48"}) {
        const ScenarioPtr scenario = of_tasks(random_task_graph(seed, 14));
        const auto result =
            (*make_searcher(**find_method("trinity"), parameters))->run(scenario, SearchPass::exact, {});
        QVERIFY(result.has_value());
        const PlacementPlan& plan = plan_of(*result);
        QCOMPARE((*result)->explanations.size(), std::size_t(1));
        const QString words = QString::fromStdString((*result)->explanations.front());
        QVERIFY2(words.contains("began as \"the answer of "), qPrintable(words));
        const double before = plan.stages.front().makespan_s;
        if (plan.makespan_s < before) {
          ++gained;
          const QString per_cent =
              QString::fromStdString(fmt::format("{:.2g} %", 100 * (1 - plan.makespan_s / before)));
          QVERIFY2(words.contains("made it " + per_cent + " faster"), qPrintable(words));
        } else {
          ++not_gained;
          QVERIFY2(words.contains("no later stage made it faster"), qPrintable(words));
        }
      }
    QVERIFY(gained > 3 && not_gained > 3);
  }

  /// A slider: the placement found before on the links of now, then a full answer; the same again costs nothing.
  void coarse_passes_simulate_the_last_placement() {
    const TaskGraphPtr graph = random_task_graph(11, 80);
    const auto searcher = *make_searcher(**find_method("pardnn"));
    const ScenarioPtr before = of_tasks(graph), after = of_tasks(graph, [](Settings&s) { s.factors.latency = 9; });
    const auto first = searcher->run(before, SearchPass::coarse, {});
    QVERIFY(first);
    QCOMPARE(*searcher->run(before, SearchPass::exact, {}), *first);
    const auto moved = searcher->run(after, SearchPass::coarse, {});
    QVERIFY(moved);
    QCOMPARE(plan_of(*moved).placement.device, plan_of(*first).placement.device);
    const auto again = simulate(*placed_tasks(*after), plan_of(*first).placement);
    QCOMPARE(fastest(*moved).time_s, again->makespan_s);
    const auto full = searcher->run(after, SearchPass::exact, {});
    QVERIFY(full && *full != *moved);
    QCOMPARE(fastest(*full).time_s, fastest(*run("pardnn", after)).time_s);
  }

  void cancelled_runs_say_so() {
    std::stop_source stop;
    stop.request_stop();
    RunContext context;
    context.stop = stop.get_token();
    const auto searcher = *make_searcher(**find_method("pardnn"));
    const auto ended = searcher->run(of_tasks(chain(1, 50)), SearchPass::exact, context);
    QVERIFY(!ended && ended.error().code == ErrorCode::cancelled);
  }

  /// Of a method that keeps its best when it is stopped: a result with plans and a note, which is not taken for the
  /// answer when the same is asked again.
  void a_stopped_search_has_a_result() {
    const ScenarioPtr scenario = of_tasks(random_task_graph(8, 40));
    const auto searcher = *make_searcher(**find_method("trinity"), "from=heft:iterations=6");
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    context.progress = [&](const Progress& progress) {
      if (progress.phase.starts_with("iteration 2,")) stop.request_stop();
    };
    const auto early = searcher->run(scenario, SearchPass::exact, context);
    QVERIFY(early);
    QCOMPARE((*early)->notes.size(), std::size_t(1));
    QVERIFY2((*early)->notes.front().starts_with("The search was stopped early"), (*early)->notes.front().c_str());
    QVERIFY(plan_of(*early).stages.back().name.ends_with(" in 2 iterations, stopped early"));
    const auto whole = searcher->run(scenario, SearchPass::exact, {});
    QVERIFY(whole && *whole != *early);
    QVERIFY((*whole)->notes.empty());
    QCOMPARE(*searcher->run(scenario, SearchPass::exact, {}), *whole);
  }

  void objectives_cut_the_devices_of_a_file() {
    const ScenarioPtr scenario = of_tasks(random_task_graph(5, 50), [](Settings& s) { s.devices = 4; });
    const auto all = profile(contender(**find_method("heft")), scenario, {1, 2, 4}, {});
    QVERIFY(all);
    QCOMPARE(all->size(), std::size_t(3));
    for (std::size_t i = 0; i < 3; ++i) {
      QCOMPARE((*all)[i]->scenario->cluster->devices(), 1 << i);
      QVERIFY((*all)[i]->plans->kind(0) == PlanKind::placement);
    }
    const TaskGraph& graph = *scenario->tasks;
    QVERIFY(close((*all)[0]->points[0].time_s, std::accumulate(graph.time_s.begin(), graph.time_s.end(), 0.0)));
  }
};

QTEST_APPLESS_MAIN(PlacementSearchTest)
#include "placement_search_test.moc"
