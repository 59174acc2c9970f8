// SPDX-License-Identifier: Apache-2.0
// Sharded updates, offload and recomputation of one operator against figures worked by hand, and who may recompute.
#include <fmt/format.h>
#include <QtTest>
#include <array>
#include <map>
#include <random>
#include <set>

#include "cost/round_setting.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

std::int64_t part(const CostBreakdown& cost, MemoryPart which) { return cost.memory[static_cast<std::size_t>(which)]; }
double part(const CostBreakdown& cost, ComputePart which) { return cost.compute[static_cast<std::size_t>(which)]; }
double part(const CostBreakdown& cost, NetworkPart which) { return cost.network[static_cast<std::size_t>(which)]; }

std::set<std::string> running_again(const ModelPtr& model, RunAgain how) {
  std::set<std::string> names;
  const auto uses = analyse_tensor_uses(*model);
  for (std::size_t i = 0; i < uses.run_again.size(); ++i)
    if (uses.run_again[i] == how) names.insert(model->operators[OperatorId(i)].name);
  return names;
}

}  // namespace

class MemoryChoiceTest : public QObject {
  Q_OBJECT

 private slots:
  // fc1 of the mlp on 4 devices of one node, data parallel: 32 x 64 + 64 parameters, Adam, fp32.
  void sharded_update_by_hand() {
    const Setting s(test::mlp(), 1, 4, [](Settings& settings) { settings.optimizer = Optimizer::adam; });
    const OperatorId id = s.find("fc1");
    const auto split = data_parallel_configuration(s.scenario.model->operators[id], s.resharding->mesh());
    const std::int64_t parameters = 32 * 64 + 64;
    const double ring = 3 * (1e-6 + parameters * 4.0 / 4 / 1e10);

    const auto plain = s.costs->cost(id, split).breakdown;
    const auto sharded = s.costs->cost(id, split, {Update::sharded, 0b11, false, false}, true);
    QCOMPARE(part(sharded.breakdown, MemoryPart::parameters), parameters * 4);
    QCOMPARE(part(sharded.breakdown, MemoryPart::gradients), parameters);
    QCOMPARE(part(sharded.breakdown, MemoryPart::optimizer), parameters * 2);
    QVERIFY(close(part(sharded.breakdown, NetworkPart::reduce_scatter), ring));
    QVERIFY(close(part(sharded.breakdown, NetworkPart::all_gather), ring));
    QCOMPARE(part(sharded.breakdown, NetworkPart::all_reduce), 0.0);
    QVERIFY(close(part(sharded.breakdown, ComputePart::update), parameters / 4 * 28.0 / 1e11 + 1e-6));
    QCOMPARE(sharded.parameters.size(), std::size_t(1));
    QCOMPARE(sharded.parameters[0].sync.size(), std::size_t(1));
    QCOMPARE(sharded.parameters[0].sync[0].move, ReshardMove::reduce_scatter);
    QCOMPARE(sharded.parameters[0].spread.size(), std::size_t(1));

    // Data needs no gradient, so the first layer reads its weight in forward alone.
    const auto first = s.costs->cost(id, split, {Update::sharded_weights, 0b11, false, false}).breakdown;
    QCOMPARE(part(first, MemoryPart::parameters), parameters);
    QVERIFY(close(part(first, NetworkPart::all_gather), ring));
    // It does so once more if it runs again; without sharded weights that takes nothing.
    const auto again = s.costs->cost(id, split, {Update::sharded_weights, 0b11, false, true}).breakdown;
    QVERIFY(close(part(again, NetworkPart::all_gather), 2 * ring));
    QCOMPARE(part(s.costs->cost(id, split, {Update::sharded, 0b11, false, true}).breakdown, NetworkPart::all_gather),
             part(sharded.breakdown, NetworkPart::all_gather));
    // Others gather the weight before forward and before backward, and the bias along with it.
    const OperatorId later = s.find("fc2");
    const auto weights =
        s.costs
            ->cost(later, data_parallel_configuration(s.scenario.model->operators[later], s.resharding->mesh()),
                   {Update::sharded_weights, 0b11, false, false})
            .breakdown;
    const double both_ring = 3 * (1e-6 + (64 + 1) * 16 * 4.0 / 4 / 1e10);
    QVERIFY(close(part(weights, NetworkPart::all_gather), 2 * both_ring));
    QVERIFY(close(part(weights, NetworkPart::reduce_scatter), both_ring));
    QVERIFY(part(plain, NetworkPart::all_reduce) > 0);
  }

  // Sharded inside the node only: scattered there, summed between nodes shard by shard, gathered inside again.
  void sharding_inside_the_node_is_hierarchical() {
    const Setting s(test::mlp(), 2, 4);
    const OperatorId id = s.find("fc1");
    const auto split = data_parallel_configuration(s.scenario.model->operators[id], s.resharding->mesh());
    const auto cost = s.costs->cost(id, split, {Update::sharded, 0b110, false, false}, true);
    QCOMPARE(cost.parameters[0].sync.size(), std::size_t(2));
    QCOMPARE(cost.parameters[0].sync[1].move, ReshardMove::all_reduce);
    QCOMPARE(cost.parameters[0].sync[1].axes, 0b001u);
    QCOMPARE(cost.parameters[0].spread.size(), std::size_t(1));
    const double bytes = 4.0 * (32 * 64 + 64), shard = bytes / 4;
    QVERIFY(close(part(cost.breakdown, NetworkPart::reduce_scatter), 3 * (1e-6 + shard / 1e10)));
    // Four groups, one per device of a node, share the node's 1 GB/s.
    QVERIFY(close(part(cost.breakdown, NetworkPart::all_reduce), 2 * (1e-6 + shard / 2 / (1e9 / 4))));
  }

  // Devices that repeat the same work hold the same gradient: a shard of it is cut off for nothing.
  void repeated_work_can_share_its_update() {
    const Setting s(test::mlp(), 1, 4);
    const OperatorId id = s.find("fc1");
    const auto cost = s.costs->cost(id, Configuration(), {Update::sharded, 0b11, false, false}, true);
    QCOMPARE(part(cost.breakdown, NetworkPart::reduce_scatter), 0.0);
    QCOMPARE(cost.parameters[0].sync.size(), std::size_t(1));
    QCOMPARE(cost.parameters[0].sync[0].move, ReshardMove::slice);
    QCOMPARE(part(cost.breakdown, MemoryPart::optimizer), std::int64_t(32 * 64 + 64) * 8 / 4);
  }

  void offload_crosses_the_host_link_twice() {
    Setting s(test::mlp(), 1, 4, [](Settings& settings) { settings.optimizer = Optimizer::adam; });
    auto cluster = round_cluster(1, 4);
    cluster.host_link_bandwidth = 1e9;
    s.scenario.cluster = std::make_shared<Cluster>(cluster);
    const OperatorId id = s.find("fc1");
    const std::int64_t parameters = 32 * 64 + 64;
    const auto cost = s.costs->cost(id, Configuration(), {Update::replicated, 0, true, false}).breakdown;
    QCOMPARE(part(cost, MemoryPart::optimizer), std::int64_t(0));
    QVERIFY(close(part(cost, NetworkPart::offload), 2.0 * parameters * 8 / 1e9));
    // Offered only where there is a host link and something to move.
    const auto offloads = [&] {
      for (const auto& alternative : s.costs->alternatives(id, Configuration()))
        if (alternative.choice.offload) return true;
      return false;
    };
    QVERIFY(offloads());
    s.scenario.settings.offload = false;
    QVERIFY(!offloads());
    s.scenario.settings.offload = true;
    s.scenario.cluster = std::make_shared<Cluster>(round_cluster(1, 4));
    QVERIFY(!offloads());
  }

  void uneven_shards_round_up() {
    const Setting s(test::mlp(), 1, 3);
    const auto cost =
        s.costs->cost(s.find("fc2"), Configuration(), {Update::sharded_weights, 0b1, false, false}).breakdown;
    QCOMPARE(part(cost, MemoryPart::parameters), std::int64_t(347) * 4);  // 64 x 16 and 16, in three parts
  }

  // The list is a frontier, its ends are the least memory and the least time of all choices, switches take effect.
  void alternatives_are_the_frontier_of_the_choices() {
    for (const bool sharding : {true, false}) {
      Setting s(test::mlp(), 2, 4);
      auto cluster = round_cluster(2, 4);
      cluster.host_link_bandwidth = 2e9;
      s.scenario.cluster = std::make_shared<Cluster>(cluster);
      s.scenario.settings.update_sharding = sharding;
      const OperatorId id = s.find("fc2");
      const auto mesh = s.resharding->mesh();
      for (const auto& split :
           enumerate_configurations(*s.scenario.model, s.scenario.model->operators[id], mesh, false)) {
        const auto list = s.costs->alternatives(id, split);
        QVERIFY(!list.empty());
        for (std::size_t i = 0; i < list.size(); ++i) {
          QVERIFY(sharding || list[i].choice.update == Update::replicated);
          const auto again = s.costs->cost(id, split, list[i].choice).breakdown;
          QCOMPARE(again.memory_bytes(), list[i].breakdown.memory_bytes());
          QCOMPARE(again.time_s(), list[i].breakdown.time_s());
          if (i > 0) {
            QVERIFY(list[i].breakdown.memory_bytes() > list[i - 1].breakdown.memory_bytes());
            QVERIFY(list[i].breakdown.time_s() < list[i - 1].breakdown.time_s());
          }
        }
        for (const auto& choice : enumerate_choices(sharing_groups(mesh, 0b111, 0b111), {sharding, true, false})) {
          const auto cost = s.costs->cost(id, split, choice).breakdown;
          QVERIFY(std::any_of(list.begin(), list.end(), [&](const auto& item) {
            return item.breakdown.memory_bytes() <= cost.memory_bytes() && item.breakdown.time_s() <= cost.time_s();
          }));
        }
      }
    }
  }

  // Every number of devices that axes of a level make up, with every one of each other level, by the innermost axes; on
  // nodes of six a two is an axis of its own.
  void groups_are_all_sets_of_axes() {
    using Groups = std::set<std::uint32_t>;
    const auto groups_of = [](const Mesh& mesh, std::uint32_t whole, std::uint32_t summed) {
      const auto list = sharing_groups(mesh, whole, summed);
      for (std::size_t i = 1; i < list.size(); ++i)
        if (mesh.size_of(list[i]) < mesh.size_of(list[i - 1])) qFatal("not by rising number");
      const Groups groups(list.begin(), list.end());
      if (groups.size() != list.size()) qFatal("a group is there twice");
      return groups;
    };
    QCOMPARE(groups_of(mesh_of({2}, {2, 2}), 0b111, 0b111), (Groups{0b100, 0b001, 0b110, 0b101, 0b111}));
    QCOMPARE(groups_of(mesh_of({2}, {2, 3}), 0b110, 0), (Groups{0b010, 0b100, 0b110}));
    QCOMPARE(groups_of(mesh_of({}, {2, 2, 2}), 0b111, 0b111), (Groups{0b100, 0b110, 0b111}));
    // Those that sum and those that repeat are not alike.
    QCOMPARE(groups_of(mesh_of({}, {2, 2}), 0b11, 0b01), (Groups{0b10, 0b01, 0b11}));
    // A parameter that is split inside the nodes lies whole between them alone.
    QCOMPARE(groups_of(mesh_of({2}, {2, 2}), 0b001, 0b001), (Groups{0b001}));
    QCOMPARE(groups_of(mesh_of({2}, {2, 2}), 0, 0), Groups());
    // Against all subsets: one that has as many devices of either level, summing and repeating.
    std::mt19937 random(7);
    for (int i = 0; i < 200; ++i) {
      std::vector<int> outer, inner;
      for (unsigned n = random() % 3; n > 0; --n) outer.push_back(2 + int(random() % 2));
      for (unsigned n = 1 + random() % 3; n > 0; --n) inner.push_back(2 + int(random() % 2));
      const Mesh mesh = mesh_of(outer, inner);
      const std::uint32_t all = 1u << mesh.count(), whole = random() % all, summed = random() % all & whole,
                          outside = (1u << outer.size()) - 1;
      const auto look = [&](std::uint32_t axes) {
        return std::array{mesh.size_of(axes & outside & summed), mesh.size_of(axes & outside & ~summed),
                          mesh.size_of(axes & ~outside & summed), mesh.size_of(axes & ~outside & ~summed)};
      };
      std::set<std::array<std::int64_t, 4>> wanted, found;
      for (std::uint32_t axes = 1; axes < all; ++axes)
        if (!(axes & ~whole)) wanted.insert(look(axes));
      const Groups groups = groups_of(mesh, whole, summed);
      for (const std::uint32_t group : groups) found.insert(look(group));
      QVERIFY(found == wanted);
      QCOMPARE(groups.size(), wanted.size());
      for (const std::uint32_t group : groups) QVERIFY((group & ~whole) == 0);
    }
  }

  // Each way to shard is offered among each group, that of all who hold a parameter and that of all who sum its
  // gradient.
  void updates_are_sharded_among_every_group() {
    std::map<Update, std::set<std::uint32_t>> offered;
    for (const auto& choice :
         enumerate_choices(sharing_groups(mesh_of({2}, {2, 2}), 0b111, 0b011), {true, false, false}))
      offered[choice.update].insert(choice.update_axes);
    const std::set<std::uint32_t> all = {0b100, 0b010, 0b001, 0b110, 0b101, 0b011, 0b111};
    QVERIFY(offered[Update::sharded] == all && offered[Update::sharded_weights] == all);
    QVERIFY(offered[Update::replicated] == std::set<std::uint32_t>{0} && offered.size() == 3);
  }

  // Brute force over every set of axes on machines of all kinds: none is better than what is offered, and groups within
  // a node that are no whole node are among it where latency counts.
  void no_other_group_would_be_better() {
    int parts = 0, lists = 0;
    std::mt19937 random(11);
    const auto factor = [&] { return std::pow(10.0, int(random() % 5) - 2); };
    for (int turn = 0; turn < 60; ++turn) {
      const int nodes = 1 + int(random() % 3), per_node = random() % 2 ? 4 : 6;
      Setting s(
          test::mlp(), nodes, per_node, [](Settings& settings) { settings.optimizer = Optimizer::adam; },
          [&](Cluster& cluster) {
            cluster.device.memory_bandwidth *= factor();
            for (auto& link : cluster.links) link.latency_s *= factor();
            cluster.links[kInterNode].bandwidth *= 1 + random() % 8;
          });
      for (const char* name : {"fc1", "fc2"}) {
        const OperatorId id = s.find(name);
        const auto mesh = s.resharding->mesh();
        for (const auto& split :
             enumerate_configurations(*s.scenario.model, s.scenario.model->operators[id], mesh, false)) {
          const auto list = s.costs->alternatives(id, split);
          ++lists;
          for (const auto& item : list) {
            const DeviceGroup group = mesh.group(item.choice.update_axes);
            parts += item.choice.update != Update::replicated && group.nodes == 1 && group.size < per_node;
          }
          for (const Update update : {Update::sharded, Update::sharded_weights})
            for (std::uint32_t axes = 1; axes < 1u << mesh.count(); ++axes) {
              const auto cost = s.costs->cost(id, split, {update, axes, false, false}).breakdown;
              QVERIFY2(std::any_of(list.begin(), list.end(),
                                   [&](const auto& item) {
                                     return item.breakdown.memory_bytes() <= cost.memory_bytes() &&
                                            item.breakdown.time_s() <= cost.time_s() * (1 + 1e-12);
                                   }),
                       qPrintable(QString("turn %1: %2 nodes of %3, %4, %5 over axes %6")
                                      .arg(turn)
                                      .arg(nodes)
                                      .arg(per_node)
                                      .arg(name)
                                      .arg(to_string(update))
                                      .arg(axes)));
            }
        }
      }
    }
    QVERIFY2(parts > 0, qPrintable(QString("%1 in %2").arg(parts).arg(lists)));
    qInfo("%d alternatives within parts of a node in %d lists", parts, lists);
  }

  // Producers that keep their own inputs; what they feed may carry the choice on, and so do those whose backward reads
  // none of their weights. Residual sums keep theirs.
  void who_may_run_again() {
    using Names = std::set<std::string>;
    QCOMPARE(running_again(test::attention(), RunAgain::folded),
             (Names{"norm", "q", "k", "v", "scores", "context", "head"}));
    QCOMPARE(running_again(test::attention(), RunAgain::carried), (Names{"embed", "softmax"}));
    QCOMPARE(running_again(test::convolution(), RunAgain::folded), (Names{"bn", "pool"}));
    QCOMPARE(running_again(test::convolution(), RunAgain::carried), (Names{"conv", "relu"}));
    QCOMPARE(running_again(test::residual(), RunAgain::folded), (Names{"fc1"}));
    QCOMPARE(running_again(test::residual(), RunAgain::carried), (Names{"stem", "relu1"}));
  }

  // Without a cut a long chain would keep nothing at all, and hold everything at once when backward begins.
  void chains_are_cut() {
    ModelBuilder b("chain", "test", 64, 0);
    TensorId x = b.input("x", {64, 32}, {DimName::batch, DimName::channel}, ElementType::f32);
    for (int i = 0; i < 12; ++i) x = b.linear(fmt::format("fc{}", i), x, b.parameter(fmt::format("w{}", i), {32, 32}));
    const auto names = running_again(test::finished(b, x), RunAgain::folded);
    // fc0 carries the choice; fc11's output is not kept; of the other ten fc5's is.
    QCOMPARE(names.size(), std::size_t(9));
    QVERIFY(!names.contains("fc0") && !names.contains("fc5") && !names.contains("fc11"));
  }

  // Gates of a recurrent cell are kept inside it; running the cell again frees them.
  void internals_are_recomputed_by_the_operator() {
    ModelBuilder b("lstm", "test", 8, 4);
    const TensorId x =
        b.input("x", {8, 4, 16}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
    const TensorId first = b.linear("in", x, b.parameter("w", {16, 16}));
    const TensorId y = b.recurrent("cell", "LSTM", first, b.parameter("wx", {1, 4 * 32, 16}),
                                   b.parameter("wh", {1, 4 * 32, 32}), std::nullopt, 4, 1, 32, true);
    const Setting s(test::finished(b, y), 1, 2);
    const OperatorId id = s.find("cell");
    const auto plain = s.costs->cost(id, Configuration()).breakdown,
               again = s.costs->cost(id, Configuration(), {Update::replicated, 0, false, true}).breakdown;
    QVERIFY(part(again, MemoryPart::activations) < part(plain, MemoryPart::activations));
    QVERIFY(close(part(again, ComputePart::recompute), part(plain, ComputePart::forward)));
  }
};

QTEST_APPLESS_MAIN(MemoryChoiceTest)
#include "memory_choice_test.moc"
