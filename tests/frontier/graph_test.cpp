// SPDX-License-Identifier: Apache-2.0
// What a problem repeats is read once: the factor graph is the same as where every table has contents of its own.
#include "core/frontier/graph.h"

#include <QTest>

#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::detail;
using namespace turnpoint::frontier::test;

namespace {

constexpr std::uint32_t kConfigs = 4, kLayouts = 3;

/// Nodes, edges and lists of classes drawn from a few of each, so that parts of some are equal and parts are not.
Problem repetitive(std::uint64_t seed) {
  Generator g(seed);
  std::vector<CostTable> nodes(2), edges(3);
  for (CostTable& table : nodes)
    for (std::uint32_t c = 0; c < kConfigs; ++c) table.add(random_entry(g, {}));
  for (CostTable& table : edges)
    for (std::uint32_t i = 0; i < kLayouts * kLayouts; ++i) table.add(random_entry(g, {}));
  std::vector<std::vector<std::uint32_t>> lists(3);
  for (auto& list : lists)
    for (std::uint32_t c = 0; c < kConfigs; ++c) list.push_back(g.number(0, kLayouts - 1));
  const auto some = [&](const auto& all) { return all[g.number(0, static_cast<std::uint32_t>(all.size() - 1))]; };
  Problem problem;
  for (std::uint32_t i = 0; i < 30; ++i) {
    problem.nodes.emplace_back();
    problem.nodes.back().costs = some(nodes);
  }
  for (const auto& [from, to] : random_graph(g, static_cast<std::uint32_t>(seed % 9), 30)) {
    Edge edge{from, to, some(lists), some(lists), kLayouts, kLayouts, {}};
    edge.costs = some(edges);
    problem.edges.push_back(std::move(edge));
  }
  return problem;
}

Problem with_contents_of_its_own(Problem problem) {
  for (Node& node : problem.nodes) node.costs.mutable_points();
  for (Edge& edge : problem.edges) edge.costs.mutable_points();
  return problem;
}

}  // namespace

class GraphTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void repeated_parts_make_the_same_graph() {
    ThreadPool pool(2);
    std::size_t fewer = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Problem shared = repetitive(seed), apart = with_contents_of_its_own(shared);
      QVERIFY(apart.nodes[0].costs.identity() != shared.nodes[0].costs.identity());
      const Graph a = build_graph(shared, pool), b = build_graph(apart, pool);
      QVERIFY(a.same_structure(b));
      QCOMPARE(a.state_of, b.state_of);
      QCOMPARE(a.leaves.size(), b.leaves.size());
      for (std::size_t i = 0; i < a.leaves.size(); ++i) QVERIFY(*a.leaves[i] == *b.leaves[i]);
      for (std::size_t i = 0; i < a.variables.size(); ++i) {
        QCOMPARE(a.variables[i].leaf, b.variables[i].leaf);
        QCOMPARE(a.variables[i].origin, b.variables[i].origin);
        QCOMPARE(a.origins[i].config, b.origins[i].config);
        QCOMPARE(a.origins[i].alternative, b.origins[i].alternative);
      }
      for (std::size_t k = 0; k < a.factors.size(); ++k) QCOMPARE(a.factors[k].leaf, b.factors[k].leaf);
      fewer += a.leaves.size() < shared.nodes.size() + shared.edges.size();
    }
    QVERIFY(fewer > 250);
  }
};

QTEST_GUILESS_MAIN(GraphTest)
#include "graph_test.moc"
