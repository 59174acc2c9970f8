// SPDX-License-Identifier: Apache-2.0
// Collectives by tree, in two phases and at once, on ranks that are threads: sums and pieces as worked out here, and as
// many elements received over all members as a ring receives.
#include <QtTest>
#include <atomic>
#include <random>
#include <thread>

#include "gpu_probe/step/ways.h"

using namespace turnpoint;
using namespace turnpoint::step;

namespace {

constexpr Algorithm kWays[] = {
    Algorithm::ring,        Algorithm::tree,           Algorithm::two_phase,       Algorithm::one_shot,
    Algorithm::switch_tree, Algorithm::parallel_trees, Algorithm::switch_reduction};

enum class Kind { reduce, gather, scatter };

double number(int rank, std::size_t at) { return double(rank + 1) * 1000 + double(at); }

struct Case {
  Kind kind;
  CollectiveWay way;
  Group group;
  Cuts cuts;
};

/// Empty if every member ends with what it should; `received` counts the elements that came from others.
std::string fault(const Case& c, int ranks, std::int64_t& received) {
  ThreadRanks all(ranks);
  std::vector<std::vector<double>> data(c.group.size());
  std::vector<std::string> faults(c.group.size());
  std::atomic<std::int64_t> arrived = 0;
  const auto length = std::size_t(c.cuts.back());
  std::vector<std::thread> threads;
  for (std::size_t m = 0; m < c.group.size(); ++m) {
    for (std::size_t i = 0; i < length; ++i) data[m].push_back(number(c.group[m], i));
    threads.emplace_back([&, m] {
      const ComputeIn here(in_double());
      const auto communicator = all.communicator(c.group[m]);
      const Numbers mine(data[m]);
      const auto done = c.kind == Kind::reduce   ? all_reduce(*communicator, c.way, c.group, mine)
                        : c.kind == Kind::gather ? all_gather(*communicator, c.way, c.group, c.cuts, mine)
                                                 : reduce_scatter(*communicator, c.way, c.group, c.cuts, mine);
      if (!done) faults[m] = done.error().message();
      arrived += communicator->take_received();
    });
  }
  for (auto& thread : threads) thread.join();
  received = arrived;
  for (std::size_t m = 0; m < c.group.size(); ++m) {
    if (!faults[m].empty()) return faults[m];
    for (std::size_t piece = 0; piece < c.group.size(); ++piece)
      for (auto i = std::size_t(c.cuts[piece]); i < std::size_t(c.cuts[piece + 1]); ++i) {
        if (c.kind == Kind::scatter && piece != m) continue;
        double wanted = 0;
        for (const int rank : c.group) wanted += number(rank, i);
        if (c.kind == Kind::gather) wanted = number(c.group[piece], i);
        if (data[m][i] != wanted) return "member " + std::to_string(m) + " has another number at " + std::to_string(i);
      }
  }
  return {};
}

}  // namespace

class StepWaysTest : public QObject {
  Q_OBJECT

 private slots:
  // Whole numbers, so that the order of a sum does not matter.
  void every_way_brings_the_same_data() {
    const int ranks = 13;
    std::mt19937 random(7);
    int tried = 0;
    for (const auto& [nodes, inside] :
         {std::pair{1, 2}, {1, 5}, {2, 1}, {2, 2}, {3, 2}, {2, 4}, {5, 1}, {3, 4}, {6, 2}})
      for (const Algorithm algorithm : kWays)
        for (const Kind kind : {Kind::reduce, Kind::gather, Kind::scatter}) {
          Case c{kind, {algorithm, std::size_t(inside)}, {}, {0}};
          std::vector<int> order(ranks);
          for (int r = 0; r < ranks; ++r) order[std::size_t(r)] = r;
          std::shuffle(order.begin(), order.end(), random);
          c.group.assign(order.begin(), order.begin() + nodes * inside);
          // Pieces of any length, none as well.
          for (std::size_t m = 0; m < c.group.size(); ++m) c.cuts.push_back(c.cuts.back() + random() % 5);
          std::int64_t received = 0;
          const std::string wrong = fault(c, ranks, received);
          QVERIFY2(wrong.empty(), (std::string(to_string(algorithm)) + ": " + wrong).c_str());
          const auto others = std::int64_t(c.group.size()) - 1;
          QCOMPARE(received, (kind == Kind::reduce ? 2 : 1) * others * c.cuts.back());
          ++tried;
        }
    QCOMPARE(tried, 9 * 7 * 3);
  }

  // A group that is no whole number of nodes goes in a ring; a plan's step says how many of it share a node.
  void nodes_are_those_of_the_mesh() {
    std::int64_t received = 0;
    QCOMPARE(fault({Kind::reduce, {Algorithm::two_phase, 2}, {0, 1, 2}, {0, 1, 2, 3}}, 3, received), std::string());
    QCOMPARE(received, std::int64_t(2 * 2 * 3));
    Cluster cluster;
    cluster.nodes = 2, cluster.devices_per_node = 6;
    const Mesh mesh = make_mesh(cluster);
    QCOMPARE(mesh.count(), 3);
    ReshardStep step;
    step.algorithm = Algorithm::tree;
    for (const std::uint32_t axes : {0b111u, 0b001u, 0b011u, 0b101u, 0b110u}) {
      step.axes = axes;
      const std::size_t found = way_of(mesh, step).inside;
      std::size_t wanted = 1;
      for (int a = 1; a < 3; ++a)
        if (axes >> a & 1u) wanted *= std::size_t(mesh.axes[std::size_t(a)].size);
      QCOMPARE(found, wanted);
    }
  }
};

QTEST_APPLESS_MAIN(StepWaysTest)
#include "step_ways_test.moc"
