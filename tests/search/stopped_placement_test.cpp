// SPDX-License-Identifier: Apache-2.0
// Who stops a placement method keeps the best placement until then, whatever it was doing.
#include <QtTest>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>

#include "core/search/placement/judge.h"
#include "core/search/placement_registry.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::placement;
using namespace turnpoint::test;

namespace {

/// Asks for a stop at the N-th report, and remembers what was being done.
struct StopsAtReport {
  explicit StopsAtReport(int number) {
    context.stop = stop.get_token();
    context.threads = 2;
    context.progress = [this, number](const Progress& progress) {
      if (++reports != number) return;
      phase = progress.phase;
      stop.request_stop();
    };
  }
  std::stop_source stop;
  std::atomic<int> reports = 0;
  std::string phase;
  RunContext context;
};

PlacementRequest request_for(std::uint32_t devices, Objective objective = Objective::makespan) {
  PlacementRequest request;
  request.devices = devices;
  request.objective = objective;
  return request;
}

Expected<SimulatedPlacement> placed_by(const std::string& text, const TaskGraph& graph, const PlacementRequest& request,
                                       const RunContext& context) {
  const auto choice = choose_placement_method(text);
  if (!choice) return choice.error();
  return run_placement(*choice->method, graph, request, context, choice->parameters);
}

/// What is said of a placement is what the simulator says of it, and its last stage says that it was stopped.
void check_kept(const SimulatedPlacement& placed, const TaskGraph& graph, const PlacementRequest& request) {
  QVERIFY(check_placement(graph, placed.placement, "test"));
  QVERIFY(check_colocation(graph, placed.placement, "test"));
  Judge judge(graph, request);
  const auto verdict = judge.measure(placed.placement);
  QVERIFY(verdict.has_value());
  QCOMPARE(placed.makespan_s, verdict->makespan_s);
  QCOMPARE(placed.stages.back().makespan_s, placed.makespan_s);
  QVERIFY2(placed.stages.back().name.ends_with(", stopped early"), placed.stages.back().name.c_str());
  for (std::size_t i = 0; i + 1 < placed.stages.size(); ++i) {
    QVERIFY2(!placed.stages[i].name.ends_with(", stopped early"), placed.stages[i].name.c_str());
    // Where nothing lacks memory time alone decides.
    if (!request.limited(graph)) QVERIFY(placed.makespan_s <= placed.stages[i].makespan_s);
  }
}

double fastest_of(const std::vector<PlacementStage>& stages) {
  double least = stages.front().makespan_s;
  for (const PlacementStage& stage : stages) least = std::min(least, stage.makespan_s);
  return least;
}

/// A limit at which several seeds lack memory, and at which something fits.
std::int64_t tight_limit(const TaskGraph& graph, std::uint32_t devices) {
  const auto whole = placed_by("pardnn", graph, request_for(devices), {});
  return *std::max_element(whole->peak_bytes.begin(), whole->peak_bytes.end()) * 9 / 10;
}

}  // namespace

class StoppedPlacementTest : public QObject {
  Q_OBJECT

 private slots:
  /// At every report there is: as good as all stages until then, and what was met besides stays.
  void pardnn_keeps_its_best() {
    std::set<std::string> kept_in;
    for (const std::uint64_t seed : {5, 6})
      for (const bool limited : {false, true}) {
        const auto graph = random_task_graph(seed, 80);
        PlacementRequest request = request_for(4);
        if (limited) request.memory_limit = tight_limit(*graph, 4);
        int number = 1;
        for (bool ended = false; !ended; number += number < 12 ? 1 : 37) {
          StopsAtReport stopped(number);
          const auto placed = placed_by("pardnn", *graph, request, stopped.context);
          ended = stopped.reports < number;
          if (ended) {
            QVERIFY(placed && !stopped_early(*placed));
            break;
          }
          if (!placed) {
            QCOMPARE(placed.error().code, ErrorCode::cancelled);
            QCOMPARE(stopped.phase, std::string("slicing, mapping and list schedules"));
            continue;
          }
          check_kept(*placed, *graph, request);
          if (QTest::currentTestFailed()) return;
          kept_in.insert(stopped.phase);
        }
        QVERIFY2(number > 5, "it reported too little to be stopped at");
      }
    for (const char* phase : {"refinement: tasks", "refinement: critical path", "memory", "annealing"})
      QVERIFY2(kept_in.contains(phase), phase);
  }

  /// What fits is kept before what is faster, since no memory stage follows.
  void what_fits_is_kept() {
    int fits_and_is_slower = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const auto graph = random_task_graph(seed, 60);
      PlacementRequest request = request_for(3);
      request.memory_limit = tight_limit(*graph, 3);
      StopsAtReport stopped(2);
      const auto placed = placed_by("pardnn", *graph, request, stopped.context);
      QVERIFY(placed && stopped_early(*placed));
      const auto& stages = placed->stages;
      const bool faster = std::any_of(stages.begin(), stages.end(), [&](const PlacementStage& stage) {
        return stage.makespan_s < placed->makespan_s;
      });
      // Whoever took the fastest would never have a faster stage.
      fits_and_is_slower += faster && placed->fits();
      QVERIFY(faster || placed->makespan_s == fastest_of(stages));
    }
    QVERIFY2(fits_and_is_slower > 0, "no graph here has a first placement that is faster and lacks memory");
  }

  /// The printed algorithm keeps a mapping once there is one, and what fits before what is faster.
  void printed_keeps_its_best() {
    std::set<std::string> kept_in;
    int fits_and_is_slower = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed)
      for (const bool limited : {false, true}) {
        const auto graph = random_task_graph(seed, 80);
        PlacementRequest request = request_for(4);
        if (limited) request.memory_limit = tight_limit(*graph, 4);
        for (int number = 1;; ++number) {
          StopsAtReport stopped(number);
          const auto placed = placed_by("pardnn-published", *graph, request, stopped.context);
          if (stopped.reports < number) {
            QVERIFY(placed && !stopped_early(*placed));
            break;
          }
          if (!placed) {
            QCOMPARE(placed.error().code, ErrorCode::cancelled);
            continue;
          }
          check_kept(*placed, *graph, request);
          if (QTest::currentTestFailed()) return;
          QVERIFY(!placed->placement.cluster.empty());
          QVERIFY(placed->placement.devices == 4);
          kept_in.insert(stopped.phase);
          const double fastest = fastest_of(placed->stages);
          // Of what was mapped: the memory stage comes later.
          const bool mapped = stopped.phase.starts_with("refinement");
          if (mapped && placed->fits() && fastest < placed->makespan_s) ++fits_and_is_slower;
        }
      }
    for (const char* phase : {"refinement: clusters", "refinement: tasks", "refinement: critical path"})
      QVERIFY2(kept_in.contains(phase), phase);
    QVERIFY2(fits_and_is_slower > 0, "no graph here has a mapping that is faster and lacks memory");
  }

  void searches_keep_their_best() {
    const auto graph = random_task_graph(8, 100);
    for (const Objective objective : {Objective::makespan, Objective::max_load})
      for (const std::string method : {"simulated-annealing", "random-search"}) {
        const PlacementRequest request = request_for(3, objective);
        StopsAtReport stopped(40);
        const auto placed = placed_by(method + ":calls=1000000000", *graph, request, stopped.context);
        QVERIFY2(placed, method.c_str());
        QCOMPARE(placed->stages.size(), std::size_t(1));
        check_kept(*placed, *graph, request);
        if (QTest::currentTestFailed()) return;
        // Whole, it says how many placements there were, and nothing of a stop.
        const auto whole = placed_by(method + ":calls=40", *graph, request, {});
        QVERIFY(whole && !stopped_early(*whole));
        QVERIFY2(whole->stages.back().name.ends_with(" placements"), whole->stages.back().name.c_str());
        // Some hundred placements were tried until then, and a search of ten is no better.
        const auto few = placed_by(method + ":calls=10", *graph, request, {});
        QVERIFY(objective == Objective::makespan ? few->makespan_s >= placed->makespan_s
                                                 : few->max_load_s >= placed->max_load_s);
      }
  }

  void nothing_tried_is_no_answer() {
    const auto graph = random_task_graph(8, 40);
    for (const char* method :
         {"pardnn", "pardnn-published", "heft", "layered-expert", "simulated-annealing", "random-search"}) {
      StopsAtReport stopped(0);
      stopped.stop.request_stop();
      const auto placed = placed_by(method, *graph, request_for(3), stopped.context);
      QVERIFY2(!placed && placed.error().code == ErrorCode::cancelled, method);
      // It says so in a sentence that names the method.
      QCOMPARE(placed.error().what, "method " + std::string(method) +
                                        " was stopped before it had a device for every task, so there is no placement "
                                        "to keep");
    }
  }

  /// By the busiest device: stages first, then what is annealed; never worse than everything on one device.
  void the_busiest_device_too() {
    const auto graph = random_task_graph(9, 60);
    const PlacementRequest request = request_for(3, Objective::max_load);
    const auto one = placed_by("single-device", *graph, request, {});
    for (const int number : {1, 2, 3}) {
      StopsAtReport stopped(number);
      const auto placed = placed_by("pardnn", *graph, request, stopped.context);
      QVERIFY(placed && stopped_early(*placed));
      check_kept(*placed, *graph, request);
      if (QTest::currentTestFailed()) return;
      QVERIFY(placed->max_load_s <= one->max_load_s);
    }
  }
};

QTEST_APPLESS_MAIN(StoppedPlacementTest)
#include "stopped_placement_test.moc"
