// SPDX-License-Identifier: Apache-2.0
#include <QtTest>
#include <map>
#include <random>

#include "core/export/layered_layout.h"

using namespace turnpoint;

namespace {
using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
}

class LayeredLayoutTest : public QObject {
  Q_OBJECT

 private slots:
  void empty_and_single() {
    QCOMPARE(layered_layout(0, {}).layers, 0);
    const auto one = layered_layout(1, {});
    QCOMPARE(one.layers, 1);
    QCOMPARE(one.width, 1.0);
  }
  void a_chain_is_a_column() {
    const auto layout = layered_layout(4, {{0, 1}, {1, 2}, {2, 3}});
    QCOMPARE(layout.layers, 4);
    for (const auto& node : layout.nodes) QVERIFY(std::abs(node.x - layout.nodes[0].x) < 1e-9);
  }
  void long_edges_pass_beside() {
    const auto layout = layered_layout(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}});
    QCOMPARE(layout.edges[3].size(), std::size_t(4));
    for (std::size_t i = 1; i <= 2; ++i) QVERIFY(std::abs(layout.edges[3][i].x - layout.nodes[i].x) >= 1 - 1e-9);
  }
  void a_crossing_is_removed() {
    const auto layout = layered_layout(6, {{0, 4}, {0, 5}, {1, 3}, {2, 3}, {2, 4}});
    // 3 is read from 1 and 2, 4 from 0 and 2, 5 from 0: the order 0 2 1 over 5 4 3 has no crossing.
    const auto crosses = [&](std::size_t a, std::size_t b) {
      const auto &p = layout.edges[a], &q = layout.edges[b];
      return (p.front().x - q.front().x) * (p.back().x - q.back().x) < -1e-9;
    };
    int crossings = 0;
    for (std::size_t a = 0; a < 5; ++a)
      for (std::size_t b = 0; b < a; ++b) crossings += crosses(a, b);
    QCOMPARE(crossings, 0);
  }
  void sources_stand_above_their_reader() {
    const auto layout = layered_layout(5, {{0, 1}, {1, 2}, {3, 4}, {2, 4}});
    QCOMPARE(layout.nodes[3].y, 2.0);
  }
  void random_graphs_keep_their_promises() {
    std::mt19937_64 random(5);
    for (int trial = 0; trial < 60; ++trial) {
      const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 60);
      Edges edges;
      for (std::uint32_t n = 1; n < count; ++n)
        for (std::uint64_t k = random() % 4; k > 0; --k)
          edges.emplace_back(static_cast<std::uint32_t>(random() % n), n);
      const auto layout = layered_layout(count, edges);
      std::map<int, std::vector<double>> rows;
      for (std::uint32_t n = 0; n < count; ++n) rows[static_cast<int>(layout.nodes[n].y)].push_back(layout.nodes[n].x);
      for (auto& [y, row] : rows) {
        std::sort(row.begin(), row.end());
        QVERIFY(row.front() >= -1e-9 && row.back() <= layout.width - 1 + 1e-9);
        for (std::size_t i = 1; i < row.size(); ++i) QVERIFY(row[i] - row[i - 1] >= 1 - 1e-6);
      }
      for (std::size_t e = 0; e < edges.size(); ++e) {
        const auto& line = layout.edges[e];
        for (std::size_t i = 1; i < line.size(); ++i) QCOMPARE(line[i].y - line[i - 1].y, 1.0);
        QCOMPARE(line.back().y, layout.nodes[edges[e].second].y);
      }
    }
  }
  void cycles_do_no_harm() {
    const auto layout = layered_layout(3, {{0, 1}, {1, 2}, {2, 0}, {1, 1}});
    QCOMPARE(layout.layers, 3);
    QCOMPARE(layout.edges[2].size(), std::size_t(2));
  }
};

QTEST_APPLESS_MAIN(LayeredLayoutTest)
#include "layered_layout_test.moc"
