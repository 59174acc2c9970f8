// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/library.h"

#include <QTest>
#include <cmath>
#include <random>

using namespace turnpoint;

namespace {

constexpr double kMicro = 1e-6;

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// Eight H100 a node: hops of 3.4 us and 370 GB/s inside, 5 us and 400 GB/s a node between.
GroupLinks hopper() { return {370e9, 400e9, 3.4e-6, 5e-6, true, 1}; }

DeviceGroup servers(int nodes, int per_node = 8) { return {nodes * per_node, nodes, per_node, 1}; }

double seconds(Library library, Algorithm algorithm, Collective kind, const DeviceGroup& group, double bytes,
               const GroupLinks& links = hopper()) {
  const auto quote = quote_of(library, algorithm, kind, group, links, bytes);
  return quote && quote->algorithm == algorithm ? quote->time_s() : -1;
}

}  // namespace

class LibraryTest : public QObject {
  Q_OBJECT

 private slots:
  // The constants of NCCL's tuning.cc in microseconds, put together by hand.
  void nccl_by_hand() {
    const auto nccl = [](Algorithm algorithm, Collective kind, const DeviceGroup& group, double bytes) {
      return seconds(Library::nccl, algorithm, kind, group, bytes) / kMicro;
    };
    const double tiny = 1e-6, huge = 1e15, mib = 1048576;
    // Inside a node: LL, 14 and 7 hops of 0.6.
    QVERIFY(close(nccl(Algorithm::ring, Collective::all_reduce, servers(1), tiny), 6.6 + 14 * 0.6));
    QVERIFY(close(nccl(Algorithm::ring, Collective::all_gather, servers(1), tiny), 6.6 + 7 * 0.6));
    QVERIFY(close(nccl(Algorithm::tree, Collective::all_reduce, servers(1), tiny), 6.8 + 14 * 0.6));
    QVERIFY(close(nccl(Algorithm::switch_reduction, Collective::all_reduce, servers(1), tiny), 25));
    // Eight nodes: 14 of a ring's 126 steps cross the network, the others post for a microsecond.
    QVERIFY(close(nccl(Algorithm::ring, Collective::all_reduce, servers(8), tiny), 6.6 + 112 * 1 + 14 * 2.7));
    QVERIFY(close(nccl(Algorithm::tree, Collective::all_reduce, servers(8), tiny), 6.8 + 14 * 0.6 + 6 * 5));
    QVERIFY(close(nccl(Algorithm::switch_tree, Collective::all_reduce, servers(8), tiny), 25 + 6 * 18));
    // 1,024 ranks on 128 nodes: gathers stay linear, about 1.2 ms.
    QVERIFY(close(nccl(Algorithm::ring, Collective::all_gather, servers(128), tiny), 6.6 + 896 * 1 + 127 * 2.7));
    // One rank a node.
    QVERIFY(close(nccl(Algorithm::ring, Collective::all_gather, servers(16, 1), tiny), 6.6 + 15 * 5));
    QVERIFY(close(nccl(Algorithm::parallel_trees, Collective::all_gather, servers(16, 1), tiny),
                  8 + 4 * 14 / 3.5 + 2.8 * 16));
    // Large messages: Simple and all of the bandwidth, 3.4 us a hop, and through the switch 1.3 MiB more for each of
    // eight devices.
    QVERIFY(
        close(nccl(Algorithm::ring, Collective::all_reduce, servers(1), huge), 8.4 + 14 * 3.4 + huge * 14 / 8 / 370e3));
    QVERIFY(close(nccl(Algorithm::switch_reduction, Collective::all_reduce, servers(1), huge),
                  25 + (huge + 8 * 1.3 * mib) / (0.72 * 370e3)));
    QVERIFY(close(nccl(Algorithm::ring, Collective::reduce_scatter, servers(8), huge),
                  8.4 + 56 * 3.4 + 7 * 14 + huge * 63 / 64 / (0.85 * 400e3)));
    QVERIFY(close(nccl(Algorithm::tree, Collective::all_reduce, servers(2), huge),
                  8.6 + 14 * 4 + 2 * 14 + huge * 2 / (0.92 * 370e3)));
    // All goes out once where two nodes are the roots of one tree each, twice where there are more.
    GroupLinks slow = hopper();
    slow.across_bandwidth = 10e9;
    const auto trees = [&](int nodes) {
      return (seconds(Library::nccl, Algorithm::tree, Collective::all_reduce, servers(nodes), huge, slow) -
              (8.6 + 14 * 4 + 2 * std::log2(nodes) * 14) * kMicro) *
             0.92 * 0.85 * 10e9 / huge;
    };
    QVERIFY(close(trees(2), 1));
    QVERIFY(close(trees(4), 2));
    QVERIFY(close(trees(64), 2));
  }

  /// What a step takes beside its hop and its block: half of 13 us at 1 MiB, two thirds at 2 MiB, whatever the link
  /// carries; by the switch half of 41 us for a message of 16 MiB. All-reduces in rings have none.
  void blocks_ramp() {
    const double mib = 1048576;
    const auto nccl = [](Algorithm algorithm, Collective kind, double bytes) {
      return seconds(Library::nccl, algorithm, kind, servers(1), bytes) / kMicro;
    };
    for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter})
      QVERIFY(close(nccl(Algorithm::ring, kind, 16 * mib), 14 + 7 * (1.9 + 13 * 2.0 / 3 + 2 / 0.92 * mib / 370e3)));
    GroupLinks faster = hopper();
    faster.inside_bandwidth *= 2;
    QVERIFY(close(seconds(Library::nccl, Algorithm::ring, Collective::all_gather, servers(1), 8 * mib, faster) / kMicro,
                  14 + 7 * (1.9 + 13 / 2.0 + 1 / 0.92 * mib / 740e3)));
    QVERIFY(close(nccl(Algorithm::ring, Collective::all_reduce, 256 * mib), 8.4 + 14 * 3.4 + 14 * 32 * mib / 370e3));
    QVERIFY(close(nccl(Algorithm::switch_reduction, Collective::all_reduce, 16 * mib),
                  25 + 41 / 2.0 + 8 * 2 * mib / (0.72 * 370e3)));
    // Over two nodes a step takes as long as the slower link: LL128 inside while the ramp weighs, Simple over a slow
    // network.
    const auto two = [&](double network) {
      GroupLinks links = hopper();
      links.across_bandwidth = network / 0.85;
      return seconds(Library::nccl, Algorithm::ring, Collective::all_gather, servers(2), 32 * mib, links) / kMicro;
    };
    QVERIFY(close(two(400e9), 14 + 14 * 1.9 + 4 + 15 * (13 * 2.0 / 3 + 2 / 0.92 * mib / 370e3)));
    QVERIFY(close(two(40e9), 8.4 + 14 * 3.4 + 14 + 15 * 2 * mib / 40e3));
  }

  void what_libraries_have() {
    const auto has = [](Library library, Algorithm algorithm, Collective kind, const DeviceGroup& group,
                        bool switch_reduces = true) {
      GroupLinks links = hopper();
      links.switch_reduces = switch_reduces;
      return quote_of(library, algorithm, kind, group, links, 1e6).has_value();
    };
    QVERIFY(has(Library::nccl, Algorithm::switch_reduction, Collective::all_reduce, servers(1)));
    QVERIFY(!has(Library::nccl, Algorithm::switch_reduction, Collective::all_reduce, servers(1), false));
    QVERIFY(!has(Library::nccl, Algorithm::switch_reduction, Collective::all_reduce, servers(2)));
    QVERIFY(!has(Library::nccl_2_12, Algorithm::switch_reduction, Collective::all_reduce, servers(1)));
    QVERIFY(!has(Library::nccl_2_18, Algorithm::parallel_trees, Collective::all_gather, servers(8, 1)));
    QVERIFY(!has(Library::nccl, Algorithm::parallel_trees, Collective::all_gather, servers(8, 2)));
    QVERIFY(!has(Library::nccl, Algorithm::tree, Collective::all_gather, servers(8)));
    QVERIFY(!has(Library::ring, Algorithm::tree, Collective::all_reduce, servers(8)));
    QVERIFY(has(Library::rccl, Algorithm::one_shot, Collective::all_reduce, servers(1)));
    QVERIFY(has(Library::torus, Algorithm::two_phase, Collective::all_reduce, servers(64, 2)));
    for (const LibraryInfo& info : libraries()) {
      QCOMPARE(parse_library(info.key), std::optional(info.library));
      QCOMPARE(info_of(info.library).key, info.key);
    }
    QVERIFY(!parse_library("gloo"));
    for (int a = 0; a < 8; ++a) QCOMPARE(parse_algorithm(to_string(Algorithm(a))), std::optional(Algorithm(a)));
    QVERIFY(!parse_algorithm("smoke"));
  }

  // A ring of two is a direct exchange: as many bytes, one hop in each direction.
  void a_ring_of_two_is_one_shot() {
    for (const Collective kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      const auto ring = quote_of(Library::ring, Algorithm::ring, kind, servers(1, 2), hopper(), 1e7);
      const auto shot = quote_of(Library::rccl, Algorithm::one_shot, kind, servers(1, 2), hopper(), 1e7);
      QVERIFY(close(ring->transfer_s, shot->transfer_s));
      QVERIFY(close(ring->latency_s, (kind == Collective::all_reduce ? 2 : 1) * 3.4e-6));
      QVERIFY(close(shot->latency_s, 6.6e-6 + 3.4e-6));
    }
  }

  // 256 hosts of two: along the pair, then 15 steps in each of two directions, there and back.
  void a_torus_goes_along_its_axes() {
    const GroupLinks links{164e9, 164e9, 3.4e-6, 5e-6, false, 1};
    const Quote quote = cheapest_quote(Library::torus, Collective::all_reduce, servers(256, 2), links, 100e6);
    QCOMPARE(quote.algorithm, Algorithm::two_phase);
    QVERIFY(close(quote.latency_s, 2 * (1 + 30) * kMicro));
    QVERIFY(close(quote.transfer_s, 2 * (100e6 / 2 + 100e6 * 255 / 256) / 164e9));
  }

  // No time falls with the bytes, nor with the devices at equal bytes; slower links never make it faster.
  void monotone() {
    std::mt19937 random(5);
    for (int i = 0; i < 20000; ++i) {
      const Library library = libraries()[random() % libraries().size()].library;
      GroupLinks links{1e9 * double(1 + random() % 500),
                       1e9 * double(1 + random() % 500),
                       1e-7 * double(1 + random() % 100),
                       1e-7 * double(1 + random() % 200),
                       random() % 2 == 0,
                       1};
      const auto kind = Collective(random() % 6);
      const int nodes = 1 << random() % 8, per_node = 1 << random() % 4;
      if (nodes * per_node < 2) continue;
      const double bytes = std::pow(2, double(random() % 300) / 10);
      const auto time = [&](const DeviceGroup& group, const GroupLinks& on, double n) {
        return cheapest_quote(library, kind, group, on, n).time_s();
      };
      const double base = time(servers(nodes, per_node), links, bytes);
      QVERIFY(base > 0 && std::isfinite(base));
      QVERIFY(time(servers(nodes, per_node), links, bytes * 1.5) >= base);
      // An all-to-all's members of a node share the network: more of them are another question.
      if (nodes > 1) QVERIFY(time(servers(2 * nodes, per_node), links, bytes) >= base * (1 - 1e-12));
      if (nodes == 1) QVERIFY(time(servers(1, 2 * per_node), links, bytes) >= base * (1 - 1e-12));
      GroupLinks slower = links;
      slower.inside_bandwidth *= 0.7;
      slower.across_latency *= 1.4;
      QVERIFY(time(servers(nodes, per_node), slower, bytes) >= base);
    }
  }
};

QTEST_APPLESS_MAIN(LibraryTest)
#include "library_test.moc"
