// SPDX-License-Identifier: Apache-2.0
// Annealing and random search as placement methods: against optima found by trying everything, their budgets, and the
// frontier of what they met, every point of which is simulated again.
#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/import/source/model_source.h"
#include "core/plan_io/result_json.h"
#include "core/plan_io/task_graph_json.h"
#include "core/scenario/task_scenario.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/list_schedule.h"
#include "core/search/placement/placed.h"
#include "core/search/placement_registry.h"
#include "core/search/placement_search.h"
#include "core/search/registry.h"
#include "core/search/reopen.h"
#include "core/search/scenario_of.h"
#include "core/simulation/simulator.h"
#include "search/scenarios.h"
#include "search/small_graphs.h"
#include "simulation/layered_dag.h"

using namespace turnpoint;
using namespace turnpoint::placement;
using namespace turnpoint::test;

namespace {

using Wall = std::chrono::steady_clock;
constexpr const char *kAnnealing = "simulated-annealing", *kRandom = "random-search";

Expected<SimulatedPlacement> place(const std::string& text, const TaskGraph& graph, const PlacementRequest& request,
                                   const RunContext& context = {}) {
  const auto choice = choose_placement_method(text);
  if (!choice) return choice.error();
  return run_placement(*choice->method, graph, request, context, choice->parameters);
}

double seconds_since(Wall::time_point begin) { return std::chrono::duration<double>(Wall::now() - begin).count(); }

/// Every device per task that leaves groups together.
template <class Body>
void every_assignment(const TaskGraph& graph, std::uint32_t devices, Body&& body) {
  Placement placement;
  placement.devices = devices;
  placement.device.assign(graph.task_count(), 0);
  for (;;) {
    if (check_colocation(graph, placement, "test")) body(placement);
    std::size_t t = 0;
    while (t < graph.task_count() && ++placement.device[t] == devices) placement.device[t++] = 0;
    if (t == graph.task_count()) return;
  }
}

/// Every order of the devices' tasks that can end, with its simulation.
template <class Body>
void every_order(const TaskGraph& graph, Placement placement, Simulator& simulator, Body&& body) {
  placement.order.assign(placement.devices, {});
  for (TaskIndex t = 0; t < graph.task_count(); ++t) placement.order[placement.device[t]].push_back(t);
  Simulation simulation;
  for (;;) {
    if (simulator.run(graph, placement, simulation)) body(placement, simulation);
    std::uint32_t d = 0;
    while (d < placement.devices && !std::next_permutation(placement.order[d].begin(), placement.order[d].end())) ++d;
    if (d == placement.devices) return;
  }
}

struct Optimum {
  double makespan_s = std::numeric_limits<double>::infinity();
  double within_s = std::numeric_limits<double>::infinity();  ///< of those that need at most `limit`
};

std::int64_t most(const Simulation& simulation) {
  std::int64_t bytes = 0;
  for (const auto& device : simulation.devices) bytes = std::max(bytes, device.peak_bytes);
  return bytes;
}

/// Whether some device is idle while a task is ready on it, which can save memory. Devices that run what is ready by
/// rank never do that, so what they can reach is less.
bool waits_on_purpose(const TaskGraph& graph, const Placement& placement, const Simulation& simulation) {
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    double ready = 0;
    for (const TaskIndex from : graph.predecessors(t))
      if (placement.device[from] == placement.device[t]) ready = std::max(ready, simulation.end_s[from]);
    for (const SimulatedTransfer& sent : simulation.transfers) {
      const auto of = graph.predecessors(t);
      if (sent.to == placement.device[t] && std::find(of.begin(), of.end(), sent.source) != of.end())
        ready = std::max(ready, sent.end_s);
    }
    // From then on its device has to be busy until it starts: what runs in between fills the whole time.
    double busy = 0;
    for (const TaskIndex other : simulation.run_on(placement.device[t]))
      busy += std::max(
          0.0, std::min(simulation.end_s[other], simulation.start_s[t]) - std::max(simulation.start_s[other], ready));
    if (busy < simulation.start_s[t] - ready - 1e-9) return true;
  }
  return false;
}

/// Of all orders; within the limit, of those in which nobody waits on purpose.
Optimum optimum_of(const TaskGraph& graph, std::uint32_t devices, std::int64_t limit) {
  Optimum best;
  Simulator simulator;
  every_assignment(graph, devices, [&](const Placement& placement) {
    every_order(graph, placement, simulator, [&](const Placement& ordered, const Simulation& simulation) {
      best.makespan_s = std::min(best.makespan_s, simulation.makespan_s);
      if (most(simulation) <= limit && simulation.makespan_s < best.within_s &&
          !waits_on_purpose(graph, ordered, simulation))
        best.within_s = simulation.makespan_s;
    });
  });
  return best;
}

ScenarioPtr scenario_of_tasks(TaskGraphPtr graph, std::uint64_t seed = 1) {
  Settings settings;
  settings.devices = 3;
  settings.seed = seed;
  auto model = std::make_shared<Model>();
  model->name = model->source = "random";
  const auto scenario = make_task_scenario(std::move(graph), model, {}, kFileHardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

}  // namespace

class AnnealingTest : public QObject {
  Q_OBJECT

 private slots:
  void reaches_the_optimum_of_small_graphs() {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 7);
      const double best = optimum_of(*graph, 2, kUnlimitedBytes).makespan_s;
      PlacementRequest request;
      request.devices = 2;
      const auto found = place(std::string(kAnnealing) + ":calls=5000", *graph, request);
      QVERIFY(found);
      QVERIFY2(found->makespan_s <= best * (1 + 1e-12) && found->makespan_s >= best * (1 - 1e-12),
               qPrintable(QString("seed %1: %2, optimum %3").arg(seed).arg(found->makespan_s).arg(best)));
    }
  }

  void reaches_the_least_maximum_load() {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 9);
      double best = std::numeric_limits<double>::infinity();
      every_assignment(*graph, 3, [&](const Placement& p) { best = std::min(best, max_load_s(*graph, p)); });
      PlacementRequest request;
      request.devices = 3;
      request.objective = placement::Objective::max_load;
      const auto found = place(std::string(kAnnealing) + ":calls=5000", *graph, request);
      QVERIFY(found);
      QVERIFY2(found->max_load_s <= best * (1 + 1e-12),
               qPrintable(QString("seed %1: %2, optimum %3").arg(seed).arg(found->max_load_s).arg(best)));
      QVERIFY(found->others.empty());
    }
  }

  /// Half-way between what the least and the fastest need, so that the limit decides; some placement fits.
  void limits_are_kept_where_something_fits() {
    int decided = 0;
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 6);
      std::int64_t least = kUnlimitedBytes, largest = 0;
      Simulator simulator;
      every_assignment(*graph, 2, [&](const Placement& placement) {
        every_order(*graph, placement, simulator, [&](const Placement&, const Simulation& simulation) {
          least = std::min(least, most(simulation));
          largest = std::max(largest, most(simulation));
        });
      });
      PlacementRequest request;
      request.devices = 2;
      request.memory_limit = least + (largest - least) / 5;
      const Optimum best = optimum_of(*graph, 2, request.memory_limit);
      if (best.within_s == std::numeric_limits<double>::infinity()) continue;  // only by waiting on purpose
      decided += best.within_s > best.makespan_s;
      const auto found = place(std::string(kAnnealing) + ":calls=5000", *graph, request);
      QVERIFY2(found && found->fits(), qPrintable(QString("seed %1, optimum %2").arg(seed).arg(best.within_s)));
      for (const std::int64_t bytes : found->peak_bytes) QVERIFY(bytes <= request.memory_limit);
      QVERIFY2(found->makespan_s <= best.within_s * (1 + 1e-12),
               qPrintable(QString("seed %1: %2, optimum %3").arg(seed).arg(found->makespan_s).arg(best.within_s)));
      request.objective = placement::Objective::max_load;
      const auto loaded = place(std::string(kAnnealing) + ":calls=2000", *graph, request);
      QVERIFY(loaded);
      for (const std::int64_t bytes : loaded->persistent_bytes) QVERIFY(bytes <= request.memory_limit);
    }
    QVERIFY2(decided >= 5, "the limit decided nothing");
  }

  void the_same_seed_finds_the_same_on_any_number_of_threads() {
    const TaskGraphPtr graph = random_task_graph(7, 80);
    int differing = 0;
    for (const std::string name : {kAnnealing, kRandom, "pardnn"}) {
      PlacementRequest request;
      request.devices = 3;
      RunContext one, four;
      one.threads = 1;
      four.threads = 4;
      const std::string text = name == "pardnn" ? name : name + ":calls=600";
      const auto first = place(text, *graph, request, one), again = place(text, *graph, request, four);
      QVERIFY(first && again);
      QCOMPARE(again->placement.device, first->placement.device);
      QCOMPARE(again->placement.order, first->placement.order);
      QCOMPARE(again->others.size(), first->others.size());
      for (std::size_t i = 0; i < first->others.size(); ++i) QCOMPARE(again->others[i].device, first->others[i].device);
      request.seed = 5;
      const auto other = place(text, *graph, request);
      QVERIFY(other);
      differing +=
          other->placement.device != first->placement.device || other->placement.order != first->placement.order;
    }
    QVERIFY2(differing >= 2, "the seed decides nothing");
  }

  void is_never_worse_than_where_it_began() {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 60);
      PlacementRequest request;
      request.devices = 3;
      const ScheduleCosts costs(*graph, 3);
      ListOptions options;
      options.insertion = true;
      Placement start =
          list_schedule(costs, order_by_priority(costs, bottom_levels(costs, 1.0)), options, {}).placement;
      const double begin = simulate(*graph, start)->makespan_s;
      for (const char* text : {"simulated-annealing:calls=1", "simulated-annealing:calls=100"}) {
        const auto found = place(text, *graph, request);
        QVERIFY(found && found->makespan_s <= begin);
      }
      const auto placed = place("pardnn", *graph, request);
      QVERIFY(placed && placed->stages.size() > 2);
      const auto &last = placed->stages.back(), &before = placed->stages[placed->stages.size() - 2];
      QVERIFY2(last.makespan_s <= before.makespan_s, "the improving stage made it worse");
      QCOMPARE(last.makespan_s, placed->makespan_s);
    }
  }

  void more_calls_find_more() {
    const TaskGraphPtr graph = layered_graph(layered_dag(400, 1));
    PlacementRequest request;
    request.devices = 4;
    const auto few = place("simulated-annealing:calls=10", *graph, request);
    const auto many = place("simulated-annealing:calls=4000", *graph, request);
    const auto drawn = place("random-search:calls=4000", *graph, request);
    QVERIFY(few && many && drawn);
    QVERIFY(many->makespan_s < few->makespan_s);
    QVERIFY(many->makespan_s < drawn->makespan_s);
    QVERIFY(place("random-search:calls=1", *graph, request)->makespan_s > drawn->makespan_s);
  }

  void budgets_of_zero_are_refused() {
    for (const std::string name : {kAnnealing, kRandom})
      for (const char* budget : {"calls=0", "seconds=0", "calls=5:seconds=0", "calls=-1", "seconds=-1", "calls=1.5"}) {
        const auto choice = choose_placement_method(name + ":" + budget);
        QVERIFY2(!choice, budget);
        QCOMPARE(choice.error().code, ErrorCode::usage);
        const QString message = QString::fromStdString(choice.error().message());
        QVERIFY2(message.contains(QString::fromStdString("method " + name)), qPrintable(message));
        QVERIFY(!message.contains('\n') && !message.contains(". "));
        // The other door says the same.
        const auto searcher = make_searcher(**find_method(name), budget);
        QVERIFY(!searcher);
        QCOMPARE(QString::fromStdString(searcher.error().message()), message);
      }
    QVERIFY(!choose_placement_method("heft:calls=5"));
    QVERIFY(choose_placement_method("simulated-annealing:calls=5:seconds=0.5"));
  }

  void ends_in_time() {
    const TaskGraphPtr graph = random_task_graph(9, 2000);
    PlacementRequest request;
    request.devices = 3;
    for (const std::string name : {kAnnealing, kRandom}) {
      auto begin = Wall::now();
      const auto found = place(name + ":seconds=0.3", *graph, request);
      QVERIFY(found && !found->placement.device.empty());
      QVERIFY2(seconds_since(begin) >= 0.3 && seconds_since(begin) < 5, "the budget is not kept");
      // So is that of a stop by hand, which keeps the best until then.
      std::stop_source stop;
      RunContext context;
      context.stop = stop.get_token();
      std::atomic<int> reports = 0;
      std::atomic<bool> outside = false;
      context.progress = [&](const Progress& progress) {
        ++reports;
        if (progress.fraction > 1) outside = true;
      };
      std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        stop.request_stop();
      });
      begin = Wall::now();
      const auto stopped = place(name + ":seconds=60", *graph, request, context);
      QVERIFY(stopped && stopped_early(*stopped));
      QVERIFY2(seconds_since(begin) < 5, "it went on");
      QVERIFY(reports >= 1 && !outside);
    }
  }

  void everything_else_is_as_for_other_methods() {
    const TaskGraphPtr groups = random_task_graph(3, 60);
    for (const char* text : {"simulated-annealing:calls=200", "random-search:calls=50"}) {
      PlacementRequest request;
      for (const std::uint32_t devices : {1u, 2u, 7u}) {
        request.devices = devices;
        const auto found = place(text, *groups, request);
        QVERIFY2(found, found ? "" : found.error().message().c_str());
        QVERIFY(check_colocation(*groups, found->placement, "test"));
        const auto again = simulate(*groups, found->placement);
        QVERIFY(again);
        QCOMPARE(again->makespan_s, found->makespan_s);
      }
    }
  }

  /// A result file holds every placement, and whoever opens it has them again, whichever point is asked for.
  void a_file_holds_every_placement() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("graph.json").toStdString();
    std::ofstream(path) << write_task_graph(*random_task_graph(2, 60));
    const auto source = open_model(path);
    QVERIFY(source);
    Settings settings;
    settings.devices = 3;
    const auto scenario = scenario_of(**source, kFileHardware, settings);
    QVERIFY2(scenario, scenario ? "" : scenario.error().message().c_str());
    const auto found = run("simulated-annealing:calls=1500", *scenario);
    QVERIFY(found && (*found)->points.size() > 1);
    for (const bool with_plans : {true, false}) {
      const nlohmann::json document = nlohmann::json::parse(write_result(**found, with_plans).dump());
      for (std::size_t k = 0; k < (*found)->points.size(); ++k) {
        const auto opened = reopen_result(document, path + ".result", {k}, {});
        QVERIFY2(opened, opened ? "" : opened.error().message().c_str());
        QCOMPARE((*opened)->method_options, std::string("calls=1500"));
        QVERIFY((*opened)->points == (*found)->points);
        const auto then = std::get<PlacementPlanPtr>((*found)->plans->plan(k)),
                   now = std::get<PlacementPlanPtr>((*opened)->plans->plan(k));
        QCOMPARE(now->placement.device, then->placement.device);
        QCOMPARE(now->placement.order, then->placement.order);
        QCOMPARE(now->makespan_s, (*found)->points[k].time_s);
      }
    }
  }

  void what_was_met_is_a_frontier() {
    std::size_t several = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const TaskGraphPtr graph = random_task_graph(seed, 60);
      const ScenarioPtr scenario = scenario_of_tasks(graph);
      for (const char* text : {"simulated-annealing:calls=1500", "random-search:calls=300", "pardnn"}) {
        const auto found = run(text, scenario);
        QVERIFY(found);
        const Result& result = **found;
        several += result.points.size() > 1;
        for (std::size_t i = 0; i < result.points.size(); ++i) {
          if (i > 0) {
            QVERIFY(result.points[i].memory_bytes > result.points[i - 1].memory_bytes);
            QVERIFY(result.points[i].time_s < result.points[i - 1].time_s);
          }
          const auto plan = std::get<PlacementPlanPtr>(result.plans->plan(i));
          const auto again = simulate(*graph, plan->placement);
          QVERIFY(again);
          QCOMPARE(again->makespan_s, result.points[i].time_s);
          QCOMPARE(most(*again), result.points[i].memory_bytes);
          QVERIFY(check_colocation(*graph, plan->placement, "test"));
        }
        const auto placed = place(text, *graph, search::placement_request(*scenario));
        QVERIFY(placed);
        QCOMPARE(result.points.back().time_s, placed->makespan_s);
      }
    }
    QVERIFY2(several >= 20, "hardly any frontier");
  }
};

QTEST_APPLESS_MAIN(AnnealingTest)
#include "annealing_test.moc"
