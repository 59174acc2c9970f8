// SPDX-License-Identifier: Apache-2.0
// Layers, states and one level: against the figures of hand-worked layers, against the paper's tables, against every
// assignment there is, and against the engine of core/frontier.
#include <QtTest>

#include "core/frontier/solver.h"
#include "search/accpar/networks.h"

using namespace turnpoint;
using namespace turnpoint::accpar;

namespace {

const Halves kVolume{};

LevelChoice chosen(const LayerGraph& graph, Space space, Programme programme, const Halves& halves = kVolume,
                   double ratio = 0.5) {
  auto choice = choose_types(graph, shares_of(graph, space, ratio, false), halves, programme);
  if (!choice) qFatal("%s", choice.error().message().c_str());
  return std::move(*choice);
}

double cost_of_space(const LayerGraph& graph, Space space) { return chosen(graph, space, Programme::exact).cost; }

std::vector<int> numbers(const std::vector<Type>& types) {
  std::vector<int> result;
  for (const Type type : types) result.push_back(int(type));
  return result;
}

double cost_at(const LayerGraph& graph, const std::vector<int>& numbers, const Halves& halves, double ratio) {
  std::vector<Type> types;
  for (const int number : numbers) types.push_back(kAllTypes[std::size_t(number)]);
  return level_cost(graph, types, std::vector<double>(types.size(), ratio), halves);
}

struct Exhaustive {
  double least = 0;
  int plans = 0;
};
Exhaustive exhaustive(const LayerGraph& graph) {
  Exhaustive result;
  test::each_assignment(graph.layers.size(), [&](const std::vector<int>& types) {
    const double volume = test::volume_by_tables(graph, types);
    if (result.plans == 0 || volume < result.least)
      result = {volume, 1};
    else if (volume == result.least)
      ++result.plans;
  });
  return result;
}

double by_engine(const LayerGraph& graph, const Halves& halves, double ratio) {
  const Shares shares = shares_of(graph, Space::all, ratio, false);
  RunContext context;
  context.threads = 1;
  const auto answer =
      frontier::Solver().solve(frontier_problem(graph, shares, level_prices(graph, shares, halves)), {}, context);
  if (!answer || !answer->exact) qFatal("the engine did not solve it");
  return answer->points.back().time;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// The network read from back to front: inputs and outputs change places, and with them types II and III.
LayerGraph reversed(const LayerGraph& graph) {
  const auto n = static_cast<std::uint32_t>(graph.layers.size());
  LayerGraph result;
  for (std::uint32_t l = n; l-- > 0;) {
    const Layer& layer = graph.layers[l];
    result.layers.push_back(fully_connected(layer.name, layer.lengths[0], layer.lengths[2], layer.lengths[1]));
  }
  for (std::uint32_t l = 1; l < n; ++l) result.edges.push_back(edge_between(result, l - 1, l));
  return result;
}

}  // namespace

class AccParLevelTest : public QObject {
  Q_OBJECT

 private slots:
  void a1_one_layer() {
    const Layer layer = fully_connected("fc", 4, 8, 6);
    QCOMPARE(layer.input, 32.0);
    QCOMPARE(layer.output, 24.0);
    QCOMPARE(layer.weights, 48.0);
    QCOMPARE(layer.summed(Type::batch), 48.0);
    QCOMPARE(layer.summed(Type::reduction), 24.0);
    QCOMPARE(layer.summed(Type::output), 32.0);
    QCOMPARE(layer.flop(Phase::forward), 360.0);
    QCOMPARE(layer.flop(Phase::backward), 352.0);
    QCOMPARE(layer.flop(Phase::gradient), 336.0);
    QCOMPARE(layer.flop(), 1048.0);
  }

  void flop_of_a_convolution() {
    const Layer layer = convolution("conv", 2, 3, 8 * 8, 9, 5, 4 * 4);
    QCOMPARE(layer.flop(Phase::forward), 2.0 * 5 * 16 * (2 * 3 * 9 - 1));
    QCOMPARE(layer.flop(Phase::backward), 2.0 * 3 * 64 * (2 * 5 * 9 - 1));
    QCOMPARE(layer.flop(Phase::gradient), 3.0 * 5 * 9 * (2 * 2 * 16 - 1));
  }

  void a2_between_layers() {
    // The entry at one half and at a quarter, with A = 24 elements either way.
    const double half[3][3] = {{0, 12, 12}, {12, 12, 0}, {12, 0, 12}};
    const double quarter[3][3] = {{0, 9, 18}, {18, 18, 0}, {9, 0, 18}};
    const LayerGraph graph = chain({fully_connected("a", 4, 8, 6), fully_connected("b", 4, 6, 4)});
    for (std::size_t from = 0; from < 3; ++from)
      for (std::size_t to = 0; to < 3; ++to)
        for (const double ratio : {0.5, 0.25}) {
          const Pair pair = edge_charge(graph.edges[0], {graph.layers[0], kAllTypes[from], ratio},
                                        {graph.layers[1], kAllTypes[to], ratio}, kVolume);
          QCOMPARE(pair[0], ratio == 0.5 ? half[from][to] : quarter[from][to]);
          QCOMPARE(pair[0], test::table_volume(int(from), int(to), 24, 24, ratio));
          QCOMPARE(pair[1], test::table_volume(int(from), int(to), 24, 24, 1 - ratio));
        }
  }

  void the_rule_makes_the_shortcut_table() {
    LayerGraph graph = chain({fully_connected("a", 4, 6, 8), fully_connected("b", 4, 8, 6)});
    const Edge edge = shortcut_around(graph, 0, 1);
    QCOMPARE(edge.forward, 24.0);
    for (std::size_t from = 0; from < 3; ++from)
      for (std::size_t to = 0; to < 3; ++to)
        for (const double ratio : {0.5, 0.25})
          QCOMPARE(edge_charge(edge, {graph.layers[0], kAllTypes[from], ratio}, {graph.layers[1], kAllTypes[to], ratio},
                               kVolume)[0],
                   test::shortcut_volume(int(from), int(to), 24, 24, ratio));
  }

  /// Whole units give layers shares that differ a little: a half fetches the rows it lacks, and no more.
  void shares_that_differ() {
    QCOMPARE(fetched(State::rows, 0.25, State::rows, 0.5), 0.25);
    QCOMPARE(fetched(State::rows, 0.5, State::rows, 0.25), 0.0);
    QCOMPARE(fetched(State::rows, 0.25, State::columns, 0.5), 0.375);
    QCOMPARE(fetched(State::columns, 0.25, State::whole, 0.5), 0.75);
    QCOMPARE(fetched(State::whole, 0.25, State::rows, 0.5), 0.0);
  }

  void what_is_left_after_a_cut() {
    for (const Type type : kAllTypes) {
      Layer layer = fully_connected("fc", 8, 16, 32);
      cut(layer, type, 0.25);
      const Layer small = fully_connected("fc", type == Type::batch ? 2 : 8, type == Type::reduction ? 4 : 16,
                                          type == Type::output ? 8 : 32);
      QCOMPARE(layer.lengths, small.lengths);
      QCOMPARE(layer.input, small.input);
      QCOMPARE(layer.output, small.output);
      QCOMPARE(layer.weights, small.weights);
      QCOMPARE(layer.flop(), small.flop());
    }
  }

  /// Heads, groups, experts: the third type takes whole ones, asks for their features alone and sums nothing.
  void groups_are_cut_first() {
    Layer layer = fully_connected("heads", 8, 16, 4);
    layer.groups = 4, layer.input *= 4, layer.input_error *= 4, layer.output *= 4, layer.weights *= 4;
    QCOMPARE(layer.units(Type::output), 4.0);
    QCOMPARE(layer.summed(Type::output), 0.0);
    QVERIFY(in_state(Type::output, layer.grouped()) == State::columns);
    cut(layer, Type::output, 0.5);
    QCOMPARE(layer.groups, 2.0);
    QCOMPARE(layer.input, 256.0);
    QCOMPARE(layer.lengths[2], 4.0);
    cut(layer, Type::output, 0.5);
    QCOMPARE(layer.units(Type::output), 4.0);  // of the one group that is left
    QCOMPARE(layer.summed(Type::output), 128.0);
    QVERIFY(in_state(Type::output, layer.grouped()) == State::whole);
  }

  /// Projections by their outputs, attention by heads, the last product by its inputs: one sum forward, one backward.
  void heads_cost_two_sums() {
    Layer heads = fully_connected("heads", 4, 1, 1);
    heads.kind = LayerKind::attention;
    heads.groups = 8, heads.input = heads.input_error = heads.output = 32, heads.weights = 0;
    const LayerGraph graph = chain({fully_connected("project", 4, 8, 8), heads, fully_connected("out", 4, 8, 8)});
    QCOMPARE(cost_at(graph, {2, 2, 1}, kVolume, 0.5), 64.0);
    QCOMPARE(cost_at(graph, {0, 0, 0}, kVolume, 0.5), 128.0);
    QCOMPARE(chosen(graph, Space::all, Programme::exact).cost, 64.0);
  }

  void a3_short_chain() {
    const LayerGraph graph = test::connected_chain(4, {8, 6, 10, 2});
    for (const Programme programme : {Programme::published, Programme::exact}) {
      const LevelChoice choice = chosen(graph, Space::all, programme);
      QCOMPARE(choice.cost, 56.0);
      QCOMPARE(numbers(choice.types), (std::vector<int>{1, 2, 1}));
      QCOMPARE(chosen(graph, Space::batch_or_reduction, programme).cost, 104.0);
      QCOMPARE(numbers(chosen(graph, Space::batch_or_reduction, programme).types), (std::vector<int>{1, 1, 1}));
      QCOMPARE(chosen(graph, Space::batch, programme).cost, 128.0);
    }
    QCOMPARE(exhaustive(graph).least, 56.0);
  }

  void a4_last_layers_of_alexnet() {
    const LayerGraph graph = test::connected_chain(512, {9216, 4096, 4096, 1000});
    const LevelChoice choice = chosen(graph, Space::all, Programme::published);
    QCOMPARE(choice.cost, 4706304.0);
    QCOMPARE(numbers(choice.types), (std::vector<int>{1, 2, 1}));
    QCOMPARE(cost_of_space(graph, Space::batch_or_reduction), 6803456.0);
    QCOMPARE(cost_of_space(graph, Space::one_weird_trick), 6803456.0);
    QCOMPARE(cost_of_space(graph, Space::batch), 58621952.0);
  }

  void a7_residual_block() {
    LayerGraph graph = test::connected_chain(4, {16, 8, 4, 4, 8, 16});
    const LayerGraph without = graph;
    graph.edges.push_back(shortcut_around(graph, 1, 3));
    const Exhaustive all = exhaustive(graph);
    QCOMPARE(all.least, 152.0);
    QCOMPARE(all.plans, 4);
    QCOMPARE(chosen(graph, Space::all, Programme::published).cost, 152.0);
    QCOMPARE(chosen(graph, Space::all, Programme::exact).cost, 152.0);
    QCOMPARE(by_engine(graph, kVolume, 0.5), 152.0);
    QCOMPARE(cost_at(graph, {1, 1, 1, 2, 2}, kVolume, 0.5), 152.0);
    QCOMPARE(cost_at(without, {1, 1, 1, 2, 2}, kVolume, 0.5), 152.0);  // its shortcut is free
    QCOMPARE(chosen(without, Space::all, Programme::exact).cost, 144.0);
    QCOMPARE(cost_at(without, {1, 1, 2, 1, 2}, kVolume, 0.5), 144.0);
    QCOMPARE(cost_at(graph, {1, 1, 2, 1, 2}, kVolume, 0.5), 160.0);
    // From the state in which the producer leaves the tensor it would be another price.
    LayerGraph other = without;
    other.edges.push_back({0, 3, Side::out, Side::out, 32, 32});
    QCOMPARE(chosen(other, Space::all, Programme::exact).cost, 144.0);
  }

  void a8_chains_are_solved_exactly() {
    std::mt19937_64 random(1);
    for (int i = 0; i < 300; ++i) {
      const LayerGraph graph = test::random_chain(random, 1 + int(random() % 8));
      const double least = exhaustive(graph).least;
      QCOMPARE(chosen(graph, Space::all, Programme::published).cost, least);
      QCOMPARE(chosen(graph, Space::all, Programme::exact).cost, least);
    }
  }

  void a8_residual_networks_are_solved_exactly() {
    std::mt19937_64 random(2);
    int shortcuts = 0, branches = 0;
    for (int i = 0; i < 100; ++i) {
      const LayerGraph graph = test::random_residual(random, 9);
      for (const Edge& edge : graph.edges)
        if (!edge.is_input()) ++(edge.from_side == Side::in ? shortcuts : branches);
      const double least = exhaustive(graph).least;
      QCOMPARE(chosen(graph, Space::all, Programme::published).cost, least);
      QCOMPARE(chosen(graph, Space::all, Programme::exact).cost, least);
    }
    QVERIFY(shortcuts > 30 && branches > 15);
  }

  /// By time, with unlike halves and any ratio: every assignment again, priced by level_cost(), and the engine.
  void unlike_halves_are_solved_exactly() {
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> between(0.1, 0.9);
    for (int i = 0; i < 60; ++i) {
      const LayerGraph graph = i % 2 ? test::random_residual(random, 9) : test::random_chain(random, 6);
      const Halves halves{Rates{between(random), 20 * between(random)}, Rates{between(random), 20 * between(random)}};
      const double ratio = between(random);
      double least = -1;
      test::each_assignment(graph.layers.size(), [&](const std::vector<int>& types) {
        const double cost = cost_at(graph, types, halves, ratio);
        if (least < 0 || cost < least) least = cost;
      });
      QVERIFY(close(chosen(graph, Space::all, Programme::published, halves, ratio).cost, least));
      QVERIFY(close(chosen(graph, Space::all, Programme::exact, halves, ratio).cost, least));
      QVERIFY(close(by_engine(graph, halves, ratio), least));
    }
  }

  void longer_networks_agree_with_the_engine() {
    std::mt19937_64 random(4);
    for (int i = 0; i < 30; ++i) {
      const LayerGraph graph = test::random_residual(random, 60);
      const double cost = chosen(graph, Space::all, Programme::exact).cost;
      QVERIFY(close(cost, by_engine(graph, kVolume, 0.5)));
      QVERIFY(close(cost, chosen(graph, Space::all, Programme::published).cost));
    }
  }

  /// Branches that cross are no forks in forks: the published programme says so, the other solves them.
  void branches_that_cross() {
    LayerGraph graph = test::connected_chain(8, {16, 16, 16, 16, 16});
    for (const auto& [from, to] : {std::pair{0, 2}, {0, 3}, {1, 3}})
      graph.edges.push_back(edge_between(graph, std::uint32_t(from), std::uint32_t(to)));
    const Shares shares = shares_of(graph, Space::all, 0.5, false);
    const auto refused = choose_types(graph, shares, kVolume, Programme::published);
    QVERIFY(!refused);
    QVERIFY(refused.error().message().find("its branches cross") != std::string::npos);
    QCOMPARE(chosen(graph, Space::all, Programme::exact).cost, exhaustive(graph).least);
  }

  /// Where no table may be as large as a pair of layers.
  void wide_networks_go_to_the_engine() {
    std::mt19937_64 random(9);
    for (int i = 0; i < 20; ++i) {
      const LayerGraph graph = test::random_residual(random, 12);
      const auto choice = choose_types(graph, shares_of(graph, Space::all, 0.5, false), kVolume, Programme::exact,
                                       NextLevel{kVolume, Space::all, false}, {}, 8);
      QVERIFY(choice.has_value());
      QVERIFY(choice->exact);
      QVERIFY(close(choice->cost, chosen(graph, Space::all, Programme::exact).cost));
      QVERIFY(close(choice->cost, level_cost(graph, choice->types, choice->shares, kVolume)));
    }
  }

  /// Every layer reads all before it.
  void dense_networks() {
    LayerGraph graph = test::connected_chain(8, {16, 16, 32, 16, 8, 16, 16, 32, 16});
    for (std::uint32_t to = 2; to < graph.layers.size(); ++to)
      for (std::uint32_t from = 0; from + 1 < to; ++from) graph.edges.push_back(edge_between(graph, from, to));
    QCOMPARE(chosen(graph, Space::all, Programme::exact).cost, exhaustive(graph).least);
  }

  void a8_spaces_in_their_order() {
    std::mt19937_64 random(5);
    std::vector<LayerGraph> graphs{test::golden_alexnet(), test::golden_vgg11(), test::golden_vgg19()};
    for (int i = 0; i < 200; ++i) graphs.push_back(test::random_chain(random, 1 + i % 12));
    for (const LayerGraph& graph : graphs) {
      const double all = cost_of_space(graph, Space::all), two = cost_of_space(graph, Space::batch_or_reduction);
      QVERIFY(all <= two);
      QVERIFY(two <= std::min(cost_of_space(graph, Space::one_weird_trick), cost_of_space(graph, Space::batch)));
    }
  }

  void a8_halves_change_places() {
    std::mt19937_64 random(6);
    for (int i = 0; i < 50; ++i) {
      const LayerGraph graph = test::random_residual(random, 9);
      const Halves halves{Rates{1, 3}, Rates{2, 5}}, swapped{halves[1], halves[0]};
      QVERIFY(close(chosen(graph, Space::all, Programme::exact, halves, 0.3).cost,
                    chosen(graph, Space::all, Programme::exact, swapped, 0.7).cost));
      const Halves same{Rates{1, 3}, Rates{1, 3}};
      std::vector<Type> types = chosen(graph, Space::all, Programme::exact, same).types;
      const Layer& first = graph.layers.front();
      const Pair pair = layer_charge(first, types.front(), 0.5, same);
      QCOMPARE(pair[0], pair[1]);
    }
  }

  void a8_the_network_reversed() {
    std::mt19937_64 random(7);
    for (int i = 0; i < 200; ++i) {
      const LayerGraph graph = test::random_chain(random, 1 + i % 12);
      QCOMPARE(chosen(graph, Space::all, Programme::exact).cost,
               chosen(reversed(graph), Space::all, Programme::exact).cost);
    }
  }

  /// The lowest type of equal ones as published; of equal ones the one with the better next level otherwise.
  void ties() {
    // One layer whose three tensors are equal: any type costs the same now.
    const LayerGraph graph = chain({fully_connected("fc", 8, 8, 8)});
    const Shares shares = shares_of(graph, Space::all, 0.5, false);
    QCOMPARE(numbers(choose_types(graph, shares, kVolume, Programme::published)->types), std::vector<int>{0});
    std::mt19937_64 random(8);
    int improved = 0;
    for (int i = 0; i < 200; ++i) {
      std::vector<double> widths;
      for (int l = 0; l < 3 + i % 6; ++l) widths.push_back(double(8 << (random() % 3)));
      const LayerGraph tied = test::connected_chain(double(8 << (random() % 3)), widths);
      const auto two_levels = [&](Programme programme) {
        const auto devices = test::equal_devices(2);
        const auto found = search(tied, devices, test::by_volume(Space::all, programme));
        return cost_of(tied, devices, *found, Objective::volume, 2).levels;
      };
      const auto lowest = two_levels(Programme::published), next = two_levels(Programme::exact);
      QCOMPARE(lowest[0], next[0]);
      QVERIFY(next[1] <= lowest[1]);
      improved += next[1] < lowest[1];
      // No tied assignment has a better next level.
      double best = -1;
      test::each_assignment(tied.layers.size(), [&](const std::vector<int>& types) {
        if (cost_at(tied, types, kVolume, 0.5) != next[0]) return;
        std::vector<Type> as_types;
        for (const int type : types) as_types.push_back(kAllTypes[std::size_t(type)]);
        const LayerGraph half = cut(tied, as_types, std::vector<double>(types.size(), 0.5));
        const double then = chosen(half, Space::all, Programme::published).cost;
        if (best < 0 || then < best) best = then;
      });
      QCOMPARE(next[1], best);
    }
    QVERIFY(improved > 5);
    qInfo("of 200 chains the next level was better in %d", improved);
  }

  void a_spine_is_a_chain_of_inputs() {
    LayerGraph graph = test::connected_chain(4, {16, 8, 4, 4, 8, 16});
    QCOMPARE(spine(graph).edges.size(), graph.edges.size());
    graph.edges.push_back(shortcut_around(graph, 1, 3));
    graph.edges.push_back(edge_between(graph, 0, 4));
    const LayerGraph kept = spine(graph);
    QCOMPARE(kept.edges.size(), std::size_t(4));
    for (const Edge& edge : kept.edges) QCOMPARE(edge.from + 1, edge.to);
  }

  void layers_that_are_too_small() {
    const LayerGraph graph = chain({fully_connected("tiny", 1, 1, 1)});
    const auto refused = choose_types(graph, shares_of(graph, Space::all, 0.5, true), kVolume, Programme::exact);
    QVERIFY(!refused);
    QCOMPARE(refused.error().message(),
             "layer 'tiny' is smaller than its group of devices: none of its lengths can be cut once more (use fewer "
             "devices)");
  }

  void broken_graphs() {
    LayerGraph graph = test::connected_chain(4, {8, 8, 8});
    QVERIFY(validate(graph).has_value());
    graph.layers[1].weights = -1;
    QVERIFY(validate(graph).error().message().find("layer 'fc1'") != std::string::npos);
    graph = test::connected_chain(4, {8, 8, 8});
    std::swap(graph.edges[0].from, graph.edges[0].to);
    QVERIFY(validate(graph).error().message().find("comes before") != std::string::npos);
    graph.edges[0].to = 7;
    QVERIFY(validate(graph).error().message().find("does not exist") != std::string::npos);
    QVERIFY(!validate(LayerGraph{}).has_value());
  }
};

QTEST_APPLESS_MAIN(AccParLevelTest)
#include "level_test.moc"
