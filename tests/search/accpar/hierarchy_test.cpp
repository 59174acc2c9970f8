// SPDX-License-Identifier: Apache-2.0
// Trees of devices cut in two, and assignments over all their levels.
#include <QtTest>
#include <numeric>

#include "search/accpar/networks.h"

using namespace turnpoint;
using namespace turnpoint::accpar;

namespace {

constexpr double kOld = 180e12, kNew = 420e12, kLink = 1e9;

/// As many old boards as new ones in one group, by turns.
DeviceTree mixed_boards(int each) {
  std::vector<DeviceTree> boards;
  for (int i = 0; i < each; ++i)
    boards.push_back(device("old", kOld, 64e9)), boards.push_back(device("new", kNew, 128e9));
  return group("boards", kLink, std::move(boards));
}

Bisection halves_of_tree(const DeviceTree& tree) {
  auto result = bisect(tree);
  if (!result) qFatal("%s", result.error().message().c_str());
  return std::move(*result);
}

Assignment found_by(const LayerGraph& graph, const Bisection& devices, const Options& options) {
  auto found = search(graph, devices, options);
  if (!found) qFatal("%s", found.error().message().c_str());
  return std::move(*found);
}

std::string refusal(const DeviceTree& tree) {
  const auto refused = bisect(tree);
  return refused ? "accepted" : refused.error().message();
}

/// The cost of an assignment once more, by every device and cut and without sharing anything.
double walked_cost(const LayerGraph& graph, const Bisection& devices, const Assignment& assignment, std::uint32_t index,
                   std::uint32_t part) {
  if (index == kDevice) {
    double time = 0;
    for (const Layer& layer : graph.layers) time += layer.flop() / devices.parts[part].flops;
    return time;
  }
  const Cut& here = assignment.cuts[index];
  const Part& whole = devices.parts[part];
  double exchange = 0;
  const auto main = main_inputs(graph);
  const auto seconds = [&](const Pair& elements, std::size_t half) {
    return elements[half] * 2 / whole.bandwidth[half];
  };
  const auto own = [&](std::size_t l) {
    return layer_charge(graph.layers[l], here.types[l], here.shares[l], Halves{Rates{0, 1}, Rates{0, 1}});
  };
  for (std::size_t l = 0; l < graph.layers.size(); ++l)
    if (main[l] == kNoEdge) exchange += std::max(seconds(own(l), 0), seconds(own(l), 1));
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& edge = graph.edges[e];
    Pair pair = edge_charge(edge, {graph.layers[edge.from], here.types[edge.from], here.shares[edge.from]},
                            {graph.layers[edge.to], here.types[edge.to], here.shares[edge.to]}, Halves{});
    if (main[edge.to] == e)
      for (std::size_t h = 0; h < 2; ++h) pair[h] += own(edge.to)[h];
    exchange += std::max(seconds(pair, 0), seconds(pair, 1));
  }
  std::vector<double> others;
  for (const double share : here.shares) others.push_back(1 - share);
  return exchange +
         std::max(walked_cost(cut(graph, here.types, here.shares), devices, assignment, here.next[0], whole.halves[0]),
                  walked_cost(cut(graph, here.types, others), devices, assignment, here.next[1], whole.halves[1]));
}

}  // namespace

class AccParHierarchyTest : public QObject {
  Q_OBJECT

 private slots:
  void equal_devices_are_halved() {
    const Bisection devices = test::equal_devices(7);
    QCOMPARE(devices.parts.size(), std::size_t(8));  // one of every size
    QCOMPARE(devices.parts.back().levels, 7);
    QCOMPARE(devices.parts.back().devices, 128u);
    QCOMPARE(devices.parts.back().flops, 128.0);
    QVERIFY(devices.parts.back().alike());
    QCOMPARE(devices.order.size(), std::size_t(128));
    // A flat group of as many is halved likewise; its halves exchange over all their links.
    const Bisection flat = halves_of_tree(group_of("flat", 3, device("d", 1, 1), 128));
    QCOMPARE(flat.parts.size(), std::size_t(8));
    QCOMPARE(flat.parts.back().bandwidth[0], 3.0 * 64);
    QCOMPARE(flat.parts[1].bandwidth[0], 3.0);
  }

  void unlike_halves_first() {
    const Bisection devices = halves_of_tree(mixed_boards(128));
    const Part& whole = devices.parts.back();
    QCOMPARE(whole.devices, 256u);
    QCOMPARE(devices.parts[whole.halves[0]].flops, 128 * kOld);
    QCOMPARE(devices.parts[whole.halves[1]].flops, 128 * kNew);
    QVERIFY(!whole.alike());
    for (const std::uint32_t half : whole.halves) QVERIFY(devices.parts[half].alike());
    QCOMPARE(devices.parts.back().levels, 8);
    // The old ones are listed first, each where it stands in the tree.
    for (std::uint32_t i = 0; i < 128; ++i) {
      QCOMPARE(devices.order[i], 2 * i);
      QCOMPARE(devices.order[128 + i], 2 * i + 1);
    }
  }

  void unequal_counts() {
    // Eight of one kind in a host, four of another in another.
    const DeviceTree tree = group(
        "hosts", 10, {group_of("a", 100, device("v100", 1, 16), 8), group_of("b", 200, device("a100", 3, 40), 4)});
    const Bisection devices = halves_of_tree(tree);
    const Part& whole = devices.parts.back();
    QCOMPARE(devices.parts[whole.halves[0]].devices, 8u);
    QCOMPARE(devices.parts[whole.halves[1]].devices, 4u);
    QCOMPARE(whole.bandwidth[0], 10.0);
    QCOMPARE(whole.memory, 8.0 * 16 + 4 * 40);
    QCOMPARE(devices.parts.back().levels, 4);
    // Three equal devices: two and one.
    const Bisection three = halves_of_tree(group_of("three", 5, device("d", 1, 1), 3));
    QCOMPARE(three.parts[three.parts.back().halves[0]].devices, 2u);
    QCOMPARE(three.parts.back().bandwidth[0], 10.0);
    QCOMPARE(three.parts.back().bandwidth[1], 5.0);
    // Three kinds: those that compute most stand alone.
    const Bisection kinds = halves_of_tree(group(
        "kinds", 5, {device("small", 1, 1), device("large", 9, 1), device("middle", 2, 1), device("small", 1, 1)}));
    QCOMPARE(kinds.parts[kinds.parts.back().halves[0]].flops + kinds.parts[kinds.parts.back().halves[1]].flops, 13.0);
    QCOMPARE(kinds.order.size(), std::size_t(4));
  }

  void broken_trees() {
    QCOMPARE(refusal(DeviceTree{}), "the tree has no devices");
    QCOMPARE(refusal(group("rack", 1, {device("d", 1, 1), group("empty", 1, {})})), "group 'empty' has no devices");
    QCOMPARE(refusal(group("pair", 0, {device("d", 1, 1), device("e", 1, 1)})),
             "the link of group 'pair' has a bandwidth that is not above zero");
    QCOMPARE(refusal(group("pair", 1, {device("d", 1, 1), device("e", 0, 1)})),
             "device 'e' has a speed that is not above zero");
    QCOMPARE(refusal(device("d", 1, -1)), "device 'd' has a memory that is no number of bytes");
    QCOMPARE(refusal(group("pair", std::nan(""), {device("d", 1, 1), device("e", 1, 1)})),
             "the link of group 'pair' has a bandwidth that is not above zero");
  }

  void equal_subtrees_are_searched_once() {
    Options options;
    const LayerGraph graph = test::golden_vgg19();
    QCOMPARE(found_by(graph, test::equal_devices(7), options).cuts.size(), std::size_t(7));
    QCOMPARE(found_by(graph, test::equal_devices(9), options).cuts.size(), std::size_t(9));
    // Of two kinds: the cut between them and what is below either.
    options.whole_units = false;
    QCOMPARE(found_by(graph, halves_of_tree(mixed_boards(16)), options).cuts.size(), std::size_t(1 + 4 + 4));
  }

  void one_device_does_all() {
    const LayerGraph graph = test::connected_chain(4, {8, 6});
    const Bisection devices = halves_of_tree(device("d", 100, 1));
    const Assignment found = found_by(graph, devices, Options());
    QVERIFY(found.cuts.empty());
    QCOMPARE(cost_of(graph, devices, found, Objective::time, 2).total, 10.48);
    QCOMPARE(held_by(graph, devices, found, 0).layers[0].weights, 48.0);
  }

  void a3_by_time() {
    // 56 elements of two bytes at eight bytes a second, and half of the FLOP at 100 a second.
    const LayerGraph graph = test::connected_chain(4, {8, 6, 10, 2});
    const Bisection devices = test::equal_devices(1, 100, 8);
    const Assignment found = found_by(graph, devices, Options());
    double flop = 0;
    for (const Layer& layer : graph.layers) flop += layer.flop();
    const AssignmentCost cost = cost_of(graph, devices, found, Objective::time, 2);
    QCOMPARE(cost.exchange, 14.0);
    // A half whose partial sums are added elsewhere has a few additions fewer than half of all.
    double left = 0;
    for (const Layer& layer : held_by(graph, devices, found, 0).layers) left += layer.flop();
    QVERIFY(left < flop / 2 && left > 0.9 * flop / 2);
    QCOMPARE(cost.compute, left / 100);
    QCOMPARE(cost.total, 14 + left / 100);
    QCOMPARE(found.cuts[0].price, 14 + flop / 200);
    QCOMPARE(cost_of(graph, devices, found, Objective::volume, 2).total, 56.0);
  }

  /// Whatever is cut, every product is computed by exactly one device, and costs are what a plain walk finds.
  void nothing_is_lost() {
    std::mt19937_64 random(21);
    const std::vector<Bisection> trees{
        test::equal_devices(3, 1e3, 50), halves_of_tree(group_of("three", 50, device("d", 1e3, 1), 3)),
        halves_of_tree(group(
            "mixed", 30, {group_of("a", 100, device("v", 1e3, 16), 3), group_of("b", 200, device("w", 3e3, 40), 2)}))};
    for (int i = 0; i < 60; ++i) {
      const LayerGraph graph = i % 2 ? test::random_residual(random, 20) : test::random_chain(random, 6);
      const Bisection& devices = trees[std::size_t(i) % trees.size()];
      Options options;
      options.ratio = std::array{Ratio::equal, Ratio::paper, Ratio::exact}[random() % 3];
      options.whole_units = random() % 2;
      const auto found = search(graph, devices, options);
      if (!found) continue;  // a layer of four units among five devices
      for (std::size_t l = 0; l < graph.layers.size(); ++l) {
        double products = 0;
        for (std::uint32_t place = 0; place < devices.order.size(); ++place) {
          const Layer held = held_by(graph, devices, *found, place).layers[l];
          products += held.products[0];
          for (const double length : held.lengths)
            if (options.whole_units) QCOMPARE(length, std::round(length));
        }
        QVERIFY(std::abs(products - graph.layers[l].products[0]) <= 1e-9 * products);
      }
      const AssignmentCost cost = cost_of(graph, devices, *found, Objective::time, 2);
      const double walked = walked_cost(graph, devices, *found, 0, std::uint32_t(devices.parts.size() - 1));
      QVERIFY(std::abs(cost.total - walked) <= 1e-9 * walked);
      QVERIFY(std::abs(cost.total - cost.compute - cost.exchange) <= 1e-9 * walked);
      QVERIFY(std::abs(std::accumulate(cost.levels.begin(), cost.levels.end(), 0.0) - cost.exchange) <= 1e-9 * walked);
    }
  }

  void faster_halves_get_more() {
    const LayerGraph graph = test::golden_vgg11();
    const Bisection devices = halves_of_tree(mixed_boards(4));
    Options options;
    const Assignment exact = found_by(graph, devices, options);
    options.ratio = Ratio::equal;
    const Assignment equal = found_by(graph, devices, options);
    const auto time = [&](const Assignment& found) { return cost_of(graph, devices, found, Objective::time, 2).total; };
    QVERIFY(exact.cuts[0].ratio < 0.5 && exact.cuts[0].ratio > 0.2);
    QCOMPARE(equal.cuts[0].ratio, 0.5);
    QVERIFY(exact.cuts[0].price < equal.cuts[0].price);
    QVERIFY(time(exact) < time(equal));
    // By volume halves are cut as their speeds are.
    options = Options();
    options.objective = Objective::volume;
    QCOMPARE(found_by(graph, devices, options).cuts[0].ratio, 0.3);
  }

  void the_best_of_all() {
    std::mt19937_64 random(22);
    int rivals = 0;
    for (int i = 0; i < 60; ++i) {
      const LayerGraph graph = i % 2 ? test::random_residual(random, 16) : test::random_chain(random, 8);
      const Bisection devices = i % 3 ? test::equal_devices(2, 1e6, 50)
                                      : halves_of_tree(group("pair", 50, {device("a", 1e6, 1), device("b", 3e6, 1)}));
      const auto best = best_of_all(graph, devices, Options());
      if (!best) continue;
      rivals += best->found_by != "AccPar";
      for (const Options& options :
           {Options(), Options::hypar(), Options::one_weird_trick(), Options::data_parallel()}) {
        const auto rival = search(graph, devices, options);
        if (rival) QVERIFY(best->cost.total <= cost_of(graph, devices, *rival, Objective::time, 2).total * (1 + 1e-9));
      }
    }
    qInfo("another method's assignment was the best %d times of 60", rivals);
  }

  /// By a slow link the ratio that suits the first cut is not the one that suits all of them.
  void ratios_in_the_end() {
    const LayerGraph graph = test::golden_vgg19();
    const Bisection devices = halves_of_tree(mixed_boards(64));
    const auto total = [&](Ratio ratio) {
      Options options;
      options.ratio = ratio;
      return cost_of(graph, devices, found_by(graph, devices, options), Objective::time, 2).total;
    };
    const auto best = best_of_all(graph, devices, Options());
    QVERIFY(best.has_value());
    QCOMPARE(QString::fromUtf8(best->found_by.data()), "AccPar");
    QVERIFY(total(Ratio::equal) < total(Ratio::exact));
    QCOMPARE(best->cost.total, std::min({total(Ratio::exact), total(Ratio::paper), total(Ratio::equal)}));
  }

  /// A slow link makes an idle half look cheap; every device of it gets its unit all the same.
  void every_device_gets_a_unit() {
    const LayerGraph graph = test::golden_vgg19();
    for (const bool whole : {true, false})
      for (const Ratio ratio : {Ratio::paper, Ratio::exact}) {
        Options options;
        options.whole_units = whole;
        options.ratio = ratio;
        const Bisection devices = halves_of_tree(mixed_boards(64));
        const Assignment found = found_by(graph, devices, options);
        for (const std::uint32_t place : {0u, 31u, 63u, 64u, 127u})
          for (const Layer& layer : held_by(graph, devices, found, place).layers)
            for (const double length : layer.lengths) QVERIFY(length >= (whole ? 1 : 0.1));
      }
    // As many samples as devices: whatever the ratio, one each.
    Options options = Options::data_parallel();
    options.ratio = Ratio::exact;
    const LayerGraph small = test::connected_chain(16, {64, 64});
    const DeviceTree old = group_of("old", kLink, device("old", kOld, 64e9), 8),
                     young = group_of("new", kLink, device("new", kNew, 128e9), 8);
    for (const bool old_first : {true, false}) {
      const Bisection devices =
          halves_of_tree(group("both", kLink, old_first ? std::vector{old, young} : std::vector{young, old}));
      const Assignment found = found_by(small, devices, options);
      for (std::uint32_t place = 0; place < 16; ++place)
        QCOMPARE(held_by(small, devices, found, place).layers[0].lengths[0], 1.0);
    }
  }

  void what_is_refused() {
    const LayerGraph graph = test::connected_chain(4, {64, 64, 64});
    const auto parallel = search(graph, test::equal_devices(3), Options::data_parallel());
    QVERIFY(!parallel);
    QVERIFY(parallel.error().message().starts_with("layer 'fc0' is smaller than its group of devices"));
    QVERIFY(search(graph, test::equal_devices(3), Options()).has_value());
    // Every length says how often it can be halved, since a cut halves one of them: 4 rows twice, 64 columns six times.
    const auto words = [&](const LayerGraph& of, int levels, const Options& by) {
      const auto refused = search(of, test::equal_devices(levels), by);
      return refused ? std::string() : refused.error().message();
    };
    QCOMPARE(
        parallel.error().message(),
        "layer 'fc0' is smaller than its group of devices: its batch can be halved twice, and 8 devices take 3 cuts "
        "one after the other (use fewer devices or a larger batch)");
    QCOMPARE(
        words(graph, 9, Options::hypar()),
        "layer 'fc0' is smaller than its group of devices: its batch can be halved twice and its reduction 6 times, "
        "8 times together, and 512 devices take 9 cuts one after the other (use fewer devices or a larger batch)");
    QCOMPARE(words(test::connected_chain(1, {2, 1, 64}), 4, Options()),
             "layer 'fc0' is smaller than its group of devices: its reduction can be halved once; its batch and its "
             "output cannot be halved, and 16 devices take 4 cuts one after the other (use fewer devices or a larger "
             "batch)");
    Options options;
    options.bytes_per_element = 0;
    QCOMPARE(search(graph, test::equal_devices(1), options).error().message(),
             "an element must have more than zero bytes");
    QVERIFY(!search(LayerGraph{}, test::equal_devices(1), Options()).has_value());
    QCOMPARE(search(graph, Bisection{}, Options()).error().message(), "the tree has no devices");
    std::stop_source source;
    source.request_stop();
    RunContext context;
    context.stop = source.get_token();
    QVERIFY(search(graph, test::equal_devices(1), Options(), context).error().code == ErrorCode::cancelled);
  }
};

QTEST_APPLESS_MAIN(AccParHierarchyTest)
#include "hierarchy_test.moc"
