// SPDX-License-Identifier: Apache-2.0
// Simulations by rank against the simulator itself, which is given the order that comes out: they are to agree to the
// last bit, after any number of changes, and to stop early only where it is certain that they may.
#include "core/simulation/ranked.h"

#include <QtTest>
#include <algorithm>

#include "core/search/placement/placement_method.h"
#include "core/search/placement/random.h"
#include "core/simulation/simulator.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

using placement::Random;

constexpr std::uint32_t kDevices = 3;

/// Random graphs, some with unlike devices and links, or with tasks of several tensors.
TaskGraphPtr graph_of(std::uint64_t seed) {
  return random_task_graph(seed, 5 + seed % 40, [&](TaskGraphBuilder& builder) {
    Random random(seed);
    if (seed % 3 == 1) {
      for (std::uint32_t d = 0; d < kDevices; ++d) builder.devices.push_back({kUnlimitedBytes, 1.0 + d / 2.0});
      builder.links.size = kDevices;
      for (std::uint32_t i = 0; i < kDevices * kDevices; ++i) {
        builder.links.bandwidths.push_back(50 + random.below(100));
        builder.links.latencies.push_back(0.125 * random.below(4));
      }
    }
    if (seed % 4 == 2)
      for (std::uint32_t to = 3; to < 5; ++to) builder.add_tensor(to - 3, to, 1 + to % 2, 40 + to);
  });
}

void change(RankedSimulator& simulator, const TaskGraph& graph, Random& random, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    const TaskIndex t = random.below(graph.task_count());
    if (random.below(2))
      simulator.move(t, random.below(kDevices));
    else
      simulator.set_rank(t, float(random.below(6)) - 3);
  }
}

}  // namespace

class RankedTest : public QObject {
  Q_OBJECT

 private slots:
  void agrees_with_the_simulator_to_the_last_bit() {
    int waiting = 0;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      const TaskGraphPtr graph = graph_of(seed);
      RankedSimulator simulator(*graph, kDevices);
      Random random(seed);
      for (int round = 0; round < 8; ++round) {
        change(simulator, *graph, random, round == 0 ? 40 : 1 + random.below(4));
        QVERIFY(simulator.run({}));
        Placement placement;
        simulator.store(placement);
        const auto exact = simulate(*graph, placement);
        QVERIFY2(exact, exact ? "" : exact.error().message().c_str());
        QCOMPARE(simulator.makespan_s(), exact->makespan_s);
        std::int64_t most = 0;
        for (TaskIndex t = 0; t < graph->task_count(); ++t) {
          QCOMPARE(simulator.start_s(t), exact->start_s[t]);
          QCOMPARE(simulator.end_s(t), exact->end_s[t]);
          waiting += simulator.start_s(t) > simulator.ready_s(t);
        }
        for (std::uint32_t d = 0; d < kDevices; ++d) {
          QCOMPARE(simulator.peak_bytes(d), exact->devices[d].peak_bytes);
          QCOMPARE(simulator.persistent_bytes(d), exact->devices[d].persistent_bytes);
          most = std::max(most, exact->devices[d].peak_bytes);
        }
        QCOMPARE(simulator.largest_peak(), most);
        const double load = placement::max_load_s(*graph, placement);
        QVERIFY(std::abs(simulator.max_load_s() - load) <= 1e-12 * load);
      }
    }
    QVERIFY2(waiting > 1000, "ranks decided nothing");
  }

  /// No device is idle while a task is ready on it, and none of a higher rank is left waiting.
  void the_highest_rank_of_what_is_ready_runs() {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const TaskGraphPtr graph = graph_of(seed);
      RankedSimulator simulator(*graph, kDevices);
      Random random(seed);
      std::vector<float> rank(graph->task_count());
      for (TaskIndex t = 0; t < rank.size(); ++t) {
        rank[t] = float(random.below(6)) - 2;
        simulator.set_rank(t, rank[t]);
        simulator.move(t, random.below(kDevices));
      }
      QVERIFY(simulator.run({}));
      for (TaskIndex a = 0; a < rank.size(); ++a)
        for (TaskIndex b = 0; b < rank.size(); ++b)
          if (simulator.device_of(a) == simulator.device_of(b) && rank[a] > rank[b] &&
              simulator.ready_s(a) < simulator.start_s(b))
            QVERIFY(simulator.start_s(a) <= simulator.start_s(b));
    }
  }

  void what_is_cut_short_is_late_and_needs_as_much() {
    int stopped = 0, ended = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const TaskGraphPtr graph = graph_of(seed);
      RankedSimulator simulator(*graph, kDevices);
      Random random(seed);
      change(simulator, *graph, random, 60);
      QVERIFY(simulator.run({}));
      const double makespan = simulator.makespan_s();
      const std::int64_t peak = simulator.largest_peak();
      for (int i = 0; i < 10; ++i) {
        const RankedSimulator::Cutoff cutoff{makespan * (0.5 + random.unit()),
                                             std::int64_t(double(peak) * (0.5 + random.unit()))};
        const bool done = simulator.run(cutoff);
        if (done) QCOMPARE(simulator.makespan_s(), makespan);
        if (!done) QVERIFY(makespan > cutoff.time_s && peak >= cutoff.bytes);
        // What is not late, or needs less than is asked for, is never cut short.
        if (makespan <= cutoff.time_s || peak < cutoff.bytes) QVERIFY(done);
        ++(done ? ended : stopped);
      }
      QVERIFY(simulator.run({}));  // what was left behind does not matter
      QCOMPARE(simulator.makespan_s(), makespan);
    }
    QVERIFY(stopped > 200 && ended > 200);
  }

  /// Every step begins when the one that it names ends, the first at 0, and the last ends at the makespan.
  void the_critical_path_has_no_gaps() {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const TaskGraphPtr graph = graph_of(seed);
      RankedSimulator simulator(*graph, kDevices);
      Random random(seed);
      change(simulator, *graph, random, 60);
      QVERIFY(simulator.run({}));
      std::vector<RankedSimulator::Step> path;
      simulator.critical_path(path);
      QVERIFY(!path.empty() && path.front().to == kNone);
      QCOMPARE(simulator.end_s(path.front().task), simulator.makespan_s());
      QVERIFY(path.back().to == kNone);
      QCOMPARE(simulator.start_s(path.back().task), 0.0);
      for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        const auto &step = path[i], &before = path[i + 1];
        if (step.to != kNone && !step.waited) QCOMPARE(step.task, before.task);
        if (step.waited) QCOMPARE(before.task, step.before);
        if (step.to == kNone && before.to == kNone)
          QCOMPARE(simulator.start_s(step.task), simulator.end_s(before.task));
        if (step.to == kNone && before.to != kNone) QCOMPARE(before.to, simulator.device_of(step.task));
      }
    }
  }
};

QTEST_APPLESS_MAIN(RankedTest)
#include "ranked_test.moc"
