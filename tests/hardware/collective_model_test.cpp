// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/collective_model.h"

#include <QTest>
#include <array>
#include <cmath>
#include <random>

#include "core/hardware/library.h"

using namespace turnpoint;

namespace {

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

Cluster flat(int nodes, int per_node) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.devices_per_node = per_node;
  cluster.links[kIntraNode] = {"intra", 10e9, 5e-6};
  cluster.links[kInterNode] = {"inter", 2e9, 20e-6};
  return cluster;
}

DeviceGroup inside(int size, int concurrent = 1) { return {size, 1, size, concurrent}; }

}  // namespace

class CollectiveModelTest : public QObject {
  Q_OBJECT

 private slots:
  void ring_formulas() {
    const CollectiveModel model(flat(1, 8), {});
    const double n = 80000, a = 5e-6, b = 10e9;
    QVERIFY(close(model.time(Collective::all_gather, inside(4), n).value, 3 * (a + n / 4 / b)));
    QVERIFY(close(model.time(Collective::reduce_scatter, inside(8), n).value, 7 * (a + n / 8 / b)));
    QVERIFY(close(model.time(Collective::all_reduce, inside(8), n).value, 14 * (a + n / 8 / b)));
    QVERIFY(close(model.time(Collective::all_to_all, inside(4), n).value, a + n * 3 / 4 / b));
    QVERIFY(close(model.time(Collective::send, inside(2), n).value, a + n / b));
    QVERIFY(close(model.time(Collective::broadcast, inside(8), n).value, a + n / b));
    QCOMPARE(model.time(Collective::all_reduce, inside(1), n).value, 0.0);
    QCOMPARE(model.time(Collective::all_reduce, inside(8), 0).value, 0.0);
  }

  // resources/manual/mathematics.md, F6, which charges one latency per collective.
  void rescheduling_oracle() {
    const CollectiveModel model(flat(1, 4), {}, CollectiveModel::Pricing::one_latency);
    QVERIFY(close(model.time(Collective::all_to_all, inside(4), 20000).value, 6.5e-6));
    QVERIFY(close(model.time(Collective::all_gather, inside(4), 80000).value, 11e-6));
    QVERIFY(close(model.time(Collective::reduce_scatter, inside(2), 40000).value, 7e-6));
    QVERIFY(close(model.time(Collective::all_reduce, inside(2), 40000).value, 9e-6));
    QVERIFY(close(model.time(Collective::all_gather, inside(2), 40000).value, 7e-6));
  }

  void node_bandwidth_is_shared() {
    const CollectiveModel model(flat(2, 8), {});
    const double n = 1e6;
    const auto gather = [&](int per_node, int concurrent) {
      return model.time(Collective::all_gather, {2 * per_node, 2, per_node, concurrent}, n).value;
    };
    QVERIFY(close(gather(1, 1), 20e-6 + n / 2 / 2e9));
    QVERIFY(close(gather(1, 8), 20e-6 + n / 2 / (2e9 / 8)));
    QVERIFY(close(gather(8, 1), 15 * (20e-6 + n / 16 / 2e9)));
    // All eight members of a node send into the network at once.
    QVERIFY(close(model.time(Collective::all_to_all, {16, 2, 8, 1}, n).value, 20e-6 + n * 15 / 16 / (2e9 / 8)));
    // Eight pairs over four nodes: each node carries four of them.
    const CollectiveModel four(flat(4, 8), {});
    QVERIFY(close(four.time(Collective::all_gather, {2, 2, 1, 8}, n).value, 20e-6 + n / 2 / (2e9 / 4)));
  }

  // Four pods of four nodes, a node having a quarter of its network outside of them, at 30 us a hop.
  void pods_are_left_through_their_own_links() {
    Cluster cluster = flat(16, 2);
    cluster.pods = {{4, {"pods", 0.5e9, 30e-6}}};
    const CollectiveModel model(cluster, {}), without(flat(16, 2), {});
    const double n = 1e6;
    const auto time = [&](Collective kind, const DeviceGroup& group) { return model.time(kind, group, n).value; };
    // Inside a pod nothing changes.
    QCOMPARE(time(Collective::all_gather, {8, 4, 2, 4}), without.time(Collective::all_gather, {8, 4, 2, 4}, n).value);
    // A ring over all nodes: 3 of its 15 hops lead out of a pod, whose 2 GB/s it has for itself, as much as its nodes
    // have inside; two such rings share it.
    const double hop = (12 * 20e-6 + 3 * 30e-6) / 15;
    QVERIFY(close(time(Collective::all_gather, {16, 16, 1, 1, {4, 1, 1, 1}}), 15 * (hop + n / 16 / 2e9)));
    QVERIFY(close(time(Collective::all_gather, {16, 16, 1, 2, {4, 1, 1, 1}}), 15 * (hop + n / 16 / 1e9)));
    // A node of each pod, all of them at once: four rings leave each pod.
    QVERIFY(close(time(Collective::all_gather, {4, 4, 1, 8, {4, 1, 1, 1}}), 3 * (30e-6 + n / 4 / (2e9 / 8))));
    // In an exchange of all with all every node of a pod sends out of it.
    QVERIFY(close(time(Collective::all_to_all, {32, 16, 2, 1, {4, 1, 1, 1}}), hop + n * 31 / 32 / (0.5e9 / 2)));
    QVERIFY(close(time(Collective::send, {2, 2, 1, 1, {2, 1, 1, 1}}), 30e-6 + n / 2e9));
    // Where pods have all of their nodes' network and no latency of their own, there might as well be none.
    cluster.pods[0].link = flat(16, 2).links[kInterNode];
    const CollectiveModel open(cluster, {});
    for (const Collective kind : {Collective::all_reduce, Collective::all_gather, Collective::all_to_all})
      for (const int concurrent : {1, 2})
        QVERIFY(close(open.time(kind, {16, 16, 1, concurrent, {4, 1, 1, 1}}, n).value,
                      without.time(kind, {16, 16, 1, concurrent}, n).value));
    WhatIf factors;
    factors.inter_bandwidth = 2, factors.latency = 3;
    cluster.pods = {{4, {"pods", 0.5e9, 30e-6}}};
    QVERIFY(close(CollectiveModel(cluster, factors).time(Collective::send, {2, 2, 1, 1, {2, 1, 1, 1}}, n).value,
                  90e-6 + n / 4e9));
    QCOMPARE(model.origin(Collective::send, {2, 2, 1, 1, {2, 1, 1, 1}}), Origin::modelled);
  }

  // Every library: a slower way out of the pods never makes anything faster, and less of it never does.
  void slower_pods_are_never_faster() {
    std::mt19937 random(11);
    for (int i = 0; i < 3000; ++i) {
      Cluster cluster = flat(16, 8);
      cluster.library = static_cast<Library>(random() % libraries().size());
      cluster.links[kIntraNode].switch_reduces = random() % 2;
      const LinkLevel network = cluster.links[kInterNode];
      const int inner = 1 << (1 + random() % 2);
      const double first = double(1 + random() % 100) / 100, second = first * double(1 + random() % 100) / 100;
      const int nodes = 1 << (1 + random() % 4), per_node = 1 << random() % 4;
      DeviceGroup group{nodes * per_node, nodes, per_node, 16 * 8 / (nodes * per_node), {1, 1, 1, 1}};
      const auto kind = static_cast<Collective>(random() % 6);
      const double bytes = std::pow(10, 3 + double(random() % 600) / 100);
      const double open = CollectiveModel(cluster, {}).time(kind, group, bytes).value;
      group.pods[0] = std::max(2, nodes / inner) > nodes ? 1 : std::max(2, nodes / inner);
      const auto time = [&](double part, double latency) {
        cluster.pods = {{inner, network}};
        cluster.pods[0].link.bandwidth *= part;
        cluster.pods[0].link.latency_s *= latency;
        return CollectiveModel(cluster, {}).time(kind, group, bytes).value;
      };
      QVERIFY(time(first, 1) >= open * (1 - 1e-12));
      QVERIFY(time(second, 1) >= time(first, 1) * (1 - 1e-12));
      QVERIFY(time(first, 2) >= time(first, 1) * (1 - 1e-12));
    }
  }

  void factors_scale_bandwidth_and_latency() {
    const Cluster cluster = flat(2, 8);
    WhatIf factors;
    factors.intra_bandwidth = 0.5;
    factors.inter_bandwidth = 4;
    factors.latency = 3;
    const CollectiveModel model(cluster, factors);
    QVERIFY(close(model.time(Collective::all_gather, inside(8), 8e6).value, 7 * (15e-6 + 1e6 / 5e9)));
    QVERIFY(close(model.time(Collective::all_gather, {2, 2, 1, 1}, 8e6).value, 60e-6 + 4e6 / 8e9));
  }

  // resources/manual/mathematics.md, 1.6: 1.5 x 2^20 bytes between 5 GB/s at 2^20 and 8 GB/s at 2^21 takes 241.98 us.
  void measured_curves_interpolate_bandwidth() {
    Cluster cluster = flat(1, 8);
    const double mib = 1048576;
    cluster.interpolation = Interpolation::bandwidth;
    cluster.collectives = {{Collective::all_reduce, inside(8), 2 * mib, 2 * mib / 8e9},
                           {Collective::all_reduce, inside(8), mib, mib / 5e9}};
    const CollectiveModel model(cluster, {});
    const auto time = [&](double bytes) { return model.time(Collective::all_reduce, inside(8), bytes).value; };
    QVERIFY(std::abs(time(1.5 * mib) - 241.98e-6) < 0.005e-6);
    QVERIFY(close(time(mib), mib / 5e9));
    QVERIFY(close(time(8 * mib), 8 * mib / 8e9));
    QVERIFY(close(time(1000), 1000 / 5e9));
    // Whatever runs beside it in the node, but no other shape or kind.
    QVERIFY(close(model.time(Collective::all_reduce, {8, 1, 8, 2}, mib).value, mib / 5e9));
    QVERIFY(!close(model.time(Collective::all_reduce, inside(4), mib).value, mib / 5e9));
    WhatIf factors;
    factors.intra_bandwidth = 0.25;
    QVERIFY(close(CollectiveModel(cluster, factors).time(Collective::all_reduce, inside(8), mib).value, 4 * mib / 5e9));
    factors = {};
    factors.latency = 2;
    QVERIFY(close(CollectiveModel(cluster, factors).time(Collective::all_reduce, inside(8), mib).value,
                  mib / 5e9 + 14 * 5e-6));
    // A measured time shorter than the ring's latency is latency at most as a whole.
    cluster.collectives = {{Collective::all_reduce, inside(8), 1000, 10e-6}};
    QVERIFY(close(CollectiveModel(cluster, factors).time(Collective::all_reduce, inside(8), 1000).value, 20e-6));
  }

  // The default, linear in time; beyond the ends no sample promises more than it shows.
  void measured_curves_interpolate_time() {
    Cluster cluster = flat(1, 8);
    cluster.collectives = {{Collective::all_reduce, inside(8), 4e6, 5e-4},
                           {Collective::all_reduce, inside(8), 1e6, 2e-4}};
    const CollectiveModel model(cluster, {});
    const auto time = [&](double bytes) { return model.time(Collective::all_reduce, inside(8), bytes).value; };
    QVERIFY(close(time(2e6), 3e-4));
    QVERIFY(close(time(8e6), 1e-3));      // the last bandwidth
    QVERIFY(close(time(0.5e6), 1.5e-4));  // the first slope
    QVERIFY(close(time(1), 1e-4 + 1e-10));
    cluster.collectives = {{Collective::all_reduce, inside(8), 4e6, 5e-4},
                           {Collective::all_reduce, inside(8), 1e6, 5e-5}};
    QVERIFY(close(CollectiveModel(cluster, {}).time(Collective::all_reduce, inside(8), 1e3).value,
                  5e-8));  // never below proportional
    cluster.collectives = {{Collective::all_reduce, inside(8), 4e6, 1e-4},
                           {Collective::all_reduce, inside(8), 1e6, 2e-4}};
    QVERIFY(close(CollectiveModel(cluster, {}).time(Collective::all_reduce, inside(8), 1e3).value,
                  2e-4));  // falling: constant
    // One sample: 14 ring steps of 5 us are latency, the rest is in proportion.
    cluster.collectives = {{Collective::all_reduce, inside(8), 1e6, 2e-4}};
    QVERIFY(close(CollectiveModel(cluster, {}).time(Collective::all_reduce, inside(8), 5e5).value, 7e-5 + 6.5e-5));
  }

  void sends_take_the_curve_of_a_pair() {
    Cluster cluster = flat(2, 8);
    cluster.collectives = {{Collective::send, inside(2), 1e6, 1e-4}, {Collective::send, {2, 2, 1, 1}, 1e6, 1e-3}};
    const CollectiveModel model(cluster, {});
    QVERIFY(close(model.time(Collective::send, inside(8), 1e6).value, 1e-4));
    QVERIFY(close(model.time(Collective::send, {2, 2, 1, 1}, 1e6).value, 1e-3));
    QVERIFY(close(model.time(Collective::send, {2, 2, 1, 8}, 1e6).value, 20e-6 + 1e6 / (2e9 / 8)));
    DeviceGroup used;
    QCOMPARE(model.origin(Collective::send, inside(8), &used), Origin::measured);
    QVERIFY(used == inside(2));
    QCOMPARE(model.origin(Collective::send, {4, 2, 2, 1}), Origin::modelled);
  }

  void measured_curves_are_not_forced_monotone() {
    Cluster cluster = flat(1, 8);
    cluster.collectives = {{Collective::all_gather, inside(8), 1e6, 2e-4},
                           {Collective::all_gather, inside(8), 2e6, 1e-4}};
    const CollectiveModel model(cluster, {});
    QVERIFY(close(model.time(Collective::all_gather, inside(8), 2e6).value, 1e-4));
    QVERIFY(close(model.time(Collective::all_gather, inside(8), 1e6).value, 2e-4));
  }

  // Many curves in any order: each group gets its own; inside a node the busiest one stands in, between nodes none
  // does.
  void curves_are_found_by_kind_and_group() {
    Cluster cluster = flat(4, 8);
    std::mt19937 random(3);
    std::vector<std::pair<Collective, DeviceGroup>> keys;
    for (int kind = 0; kind < 6; ++kind)
      for (const int nodes : {1, 2, 4})
        for (const int per_node : {1, 2, 4, 8})
          for (const int concurrent : {1, 2, 4})
            if (nodes * per_node > 1)
              keys.push_back({Collective(kind), {nodes * per_node, nodes, per_node, concurrent}});
    std::shuffle(keys.begin(), keys.end(), random);
    for (std::size_t i = 0; i < keys.size(); ++i)
      for (const double bytes : {3e6, 1e6, 2e6})
        cluster.collectives.push_back({keys[i].first, keys[i].second, bytes, 1e-3 * double(i + 1) * bytes});
    const CollectiveModel model(cluster, {});
    const auto time = [&](Collective kind, const DeviceGroup& group) {
      return model.time(kind, group, kind == Collective::all_to_all ? 2e6 / group.size : 2e6).value;
    };
    for (std::size_t i = 0; i < keys.size(); ++i)
      QVERIFY(close(time(keys[i].first, keys[i].second), 1e-3 * double(i + 1) * 2e6));
    for (const auto& [kind, group] : keys) {
      DeviceGroup other = group, busiest = group;
      other.concurrent = 3;
      busiest.concurrent = 4;
      if (group.nodes == 1)
        QCOMPARE(time(kind, other), time(kind, busiest));
      else
        QVERIFY(model.origin(kind, other) != Origin::measured);
    }
  }

  void all_to_all_samples_hold_all_blocks() {
    Cluster cluster = flat(1, 8);
    cluster.collectives = {{Collective::all_to_all, inside(8), 8e6, 1e-3}};
    QVERIFY(close(CollectiveModel(cluster, {}).time(Collective::all_to_all, inside(8), 1e6).value, 1e-3));
  }

  // resources/manual/mathematics.md, F7: no time rises with bandwidth, none falls with bytes, on modelled links.
  void monotone_in_bandwidth_and_bytes() {
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) {
      const Cluster cluster = flat(4, 8);
      const int nodes = 1 << (random() % 3), per_node = 1 << (random() % 4);
      const DeviceGroup group{nodes * per_node, nodes, per_node, int(1 + random() % 8)};
      const auto kind = Collective(random() % 6);
      const double bytes = 1 + random() % 100000000;
      WhatIf faster;
      faster.intra_bandwidth = faster.inter_bandwidth = 1.5;
      const double base = CollectiveModel(cluster, {}).time(kind, group, bytes).value;
      QVERIFY(base >= 0 && std::isfinite(base));
      QVERIFY(CollectiveModel(cluster, faster).time(kind, group, bytes).value <= base);
      QVERIFY(CollectiveModel(cluster, {}).time(kind, group, bytes * 2).value >= base);
    }
  }

  // The parts of a group whose curve was measured cost what they pass on, at the whole's bandwidth.
  void parts_of_a_measured_group() {
    Cluster cluster = flat(1, 8);
    for (const double mib : {1, 4, 16, 64})
      cluster.collectives.push_back({Collective::all_reduce, inside(8), mib * 1048576, 1e-4 + mib * 2e-5});
    const CollectiveModel model(cluster, {});
    const double n = 16 * 1048576, whole = 1e-4 + 16 * 2e-5;
    const auto time = [&](Collective kind, int size) { return model.time(kind, inside(size), n).value; };
    QCOMPARE(time(Collective::all_reduce, 8), whole);
    QVERIFY(close(time(Collective::all_reduce, 4), whole * (3. / 4) / (7. / 8)));
    QVERIFY(close(time(Collective::reduce_scatter, 8), whole / 2));
    QVERIFY(close(time(Collective::all_gather, 2), whole / 2 * (1. / 2) / (7. / 8)));
    QVERIFY(close(model.time(Collective::all_to_all, inside(8), n).value, 5e-6 + n * 7 / 8 / 10e9));
    DeviceGroup used;
    QCOMPARE(model.origin(Collective::all_gather, inside(2), &used), Origin::calibrated);
    QVERIFY(used == inside(8));
    QCOMPARE(model.origin(Collective::all_to_all, inside(8)), Origin::modelled);
    // A small message alone tells nothing of bandwidth.
    cluster.collectives.resize(1);
    QCOMPARE(CollectiveModel(cluster, {}).origin(Collective::all_gather, inside(2)), Origin::modelled);
  }

  // Where the measured curve rises, so do those calibrated on it, whatever protocols the library has.
  void parts_rise_with_the_bytes() {
    for (const auto& [nodes, base] : {std::pair(1, "h100-80gb-1x8"), std::pair(4, "a100-80gb-4x8")}) {
      Cluster cluster = **cluster_preset(base);
      const DeviceGroup whole{8 * nodes, nodes, 8, 1};
      for (double bytes = 64; bytes < 2e9; bytes *= 2)
        cluster.collectives.push_back({Collective::all_reduce, whole, bytes, 30e-6 + bytes / 100e9});
      const CollectiveModel model(cluster, {});
      for (const Collective kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter})
        for (const int per_node : {1, 2, 4, 8}) {
          const DeviceGroup part{per_node * nodes, nodes, per_node, 8 / per_node};
          if (part.size == 1) continue;
          double before = 0;
          for (double bytes = 16; bytes < 4e9; bytes *= 1.1) {
            const double time = model.time(kind, part, bytes).value;
            QVERIFY(time >= before * (1 - 1e-12));
            before = time;
          }
        }
    }
  }

  // Whatever the curve: scattering and gathering over parts, with what stays summed over the others, takes at least the
  // measured time of the whole.
  void no_route_undercuts_a_measured_whole() {
    std::mt19937 random(11);
    for (int i = 0; i < 3000; ++i) {
      Cluster cluster = flat(1 << random() % 3, 8);
      cluster.library = std::array{Library::ring, Library::nccl, Library::rccl, Library::nccl_2_12}[random() % 4];
      cluster.links[kIntraNode].bandwidth = 1e9 * double(1 + random() % 400);
      cluster.links[kInterNode].bandwidth = 1e9 * double(1 + random() % 400);
      const DeviceGroup whole{cluster.devices(), cluster.nodes, 8, 1};
      const bool gathers = random() % 2;
      double time = 1e-5;
      for (double bytes = 1024; bytes < 2e9; bytes *= 2) {
        time *= 1 + double(random() % 1000) / 500;  // plateaus, jumps, and bandwidths that fall again
        cluster.collectives.push_back({Collective::all_reduce, whole, bytes, time});
        if (gathers) cluster.collectives.push_back({Collective::all_gather, whole, bytes, time * 0.7});
      }
      const CollectiveModel model(cluster, {});
      const double n = 1024 * std::pow(2, double(random() % 200) / 10);
      const auto inner = [&](int size) {
        return cluster.nodes == 1 ? inside(size, 8 / size) : DeviceGroup{size, 1, size, cluster.devices() / size};
      };
      const auto t = [&](Collective kind, const DeviceGroup& group, double bytes) {
        return model.time(kind, group, bytes).value;
      };
      for (const int part : {2, 4, 8}) {
        if (part == cluster.devices()) continue;
        const DeviceGroup rest{cluster.devices() / part, cluster.nodes, 8 / part, part};
        const double route = t(Collective::reduce_scatter, inner(part), n) + t(Collective::all_reduce, rest, n / part) +
                             t(Collective::all_gather, inner(part), n);
        QVERIFY2(route >= (1 - 1e-9) * t(Collective::all_reduce, whole, n),
                 qPrintable(QStringLiteral("%1 nodes, part %2, %3 bytes, %4: %5 < %6")
                                .arg(cluster.nodes)
                                .arg(part)
                                .arg(n)
                                .arg(info_of(cluster.library).key)
                                .arg(route)
                                .arg(t(Collective::all_reduce, whole, n))));
        if (!gathers) continue;
        const double gather = t(Collective::all_gather, rest, n / part) + t(Collective::all_gather, inner(part), n);
        QVERIFY(gather >= (1 - 1e-9) * t(Collective::all_gather, whole, n));
      }
    }
  }
};

QTEST_APPLESS_MAIN(CollectiveModelTest)
#include "collective_model_test.moc"
