// SPDX-License-Identifier: Apache-2.0
// Long rings against the definition: of every factor the shortest way between its ends without it.
#include <QTest>

#include "core/frontier/ring.h"
#include "frontier/problems.h"

using namespace turnpoint::frontier;
using namespace turnpoint::frontier::detail;
using namespace turnpoint::frontier::test;

namespace {

/// A ring of so many variables with some chords, and a tree that hangs from it.
Graph random_ring(Generator& g, std::uint32_t ring, std::uint32_t hanging, std::uint32_t chords) {
  Graph graph;
  graph.variables.resize(ring + hanging);
  const auto add = [&](std::uint32_t a, std::uint32_t b) {
    Factor factor;
    factor.a = a;
    factor.b = b;
    factor.rows = g.chance(0.04) ? 1 : g.number(2, 6);
    factor.columns = g.number(2, 6);
    if (a != b) graph.factors.push_back(factor);
  };
  for (std::uint32_t i = 0; i < ring; ++i) add(i, (i + 1) % ring);
  for (std::uint32_t i = ring; i < ring + hanging; ++i) add(g.number(0, i - 1), i);
  for (std::uint32_t i = 0; i < chords; ++i) add(g.number(0, ring - 1), g.number(0, ring - 1));
  return graph;
}

bool chooses(const Factor& f) { return f.rows > 1 && f.columns > 1; }

/// Factors on the shortest way from one end to the other without the factor itself, by relaxing all of them again and
/// again; 0 if there is no way.
std::size_t way_round(const Graph& graph, std::size_t without) {
  constexpr std::size_t kNone = 1 << 20;
  std::vector<std::size_t> steps(graph.variables.size(), kNone);
  steps[graph.factors[without].a] = 0;
  for (std::size_t round = 0; round < steps.size(); ++round)
    for (std::size_t k = 0; k < graph.factors.size(); ++k) {
      const Factor& f = graph.factors[k];
      if (k == without || !chooses(f)) continue;
      steps[f.a] = std::min(steps[f.a], steps[f.b] + 1);
      steps[f.b] = std::min(steps[f.b], steps[f.a] + 1);
    }
  const std::size_t way = steps[graph.factors[without].b];
  return way >= kNone ? 0 : way;
}

/// The end with fewer classes of the narrowest factor of a ring so long; the last of equals.
std::uint32_t pivot_by_definition(const Graph& graph, std::size_t long_way) {
  std::uint32_t narrowest = kNoPivot, pivot = kNoPivot;
  for (std::size_t k = 0; k < graph.factors.size(); ++k) {
    const Factor& f = graph.factors[k];
    const std::uint32_t width = std::min(f.rows, f.columns);
    if (!chooses(f) || width > narrowest || way_round(graph, k) < long_way) continue;
    narrowest = width;
    pivot = f.columns <= f.rows ? f.b : f.a;
  }
  return pivot;
}

}  // namespace

class RingTest : public QObject {
  Q_OBJECT

 private slots:
  void as_defined() {
    int found = 0, none = 0;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
      Generator g(seed);
      Policy policy;
      policy.short_part = g.number(2, 9);
      const Graph graph = random_ring(g, g.number(3, 14), g.number(0, 12), g.number(0, 2));
      const std::uint32_t pivot = ring_pivot(graph, 1e9, policy);
      QCOMPARE(pivot, pivot_by_definition(graph, policy.short_part));
      ++(pivot == kNoPivot ? none : found);
    }
    QVERIFY(found > 50 && none > 50);
  }

  // Where looking would take more than is allowed, there is none.
  void as_far_as_allowed() {
    Generator g(1);
    Graph graph = random_ring(g, 40, 0, 0);
    for (Factor& f : graph.factors) f.rows = f.columns = 3;
    QVERIFY(ring_pivot(graph, 1e9) != kNoPivot);
    QCOMPARE(ring_pivot(graph, 10), kNoPivot);
  }
};

QTEST_APPLESS_MAIN(RingTest)
#include "ring_test.moc"
