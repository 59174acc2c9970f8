// SPDX-License-Identifier: Apache-2.0
// Points come back as they were, one by one and all together, and neighbours take little.
#include <QTest>

#include "core/frontier/packed_points.h"
#include "frontier/problems.h"

using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

bool equal(const Point& a, const Point& b) {
  return a.memory == b.memory && a.time == b.time && a.configs == b.configs &&
         a.node_alternatives == b.node_alternatives && a.edge_alternatives == b.edge_alternatives;
}

/// Numbers of one byte and of as many as there can be.
std::uint32_t any_number(Generator& g, std::uint32_t largest) {
  return g.chance(0.1) ? largest - g.number(0, 3) : g.chance(0.3) ? g.number(0, largest) : g.number(0, 200);
}

/// Each much like the one before, some of other sizes.
std::vector<Point> random_points(Generator& g, std::size_t count) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || g.chance(0.02)) {
      Point fresh;
      fresh.configs.resize(g.number(0, 40));
      fresh.node_alternatives.resize(g.number(0, 40));
      fresh.edge_alternatives.resize(g.number(0, 40));
      for (auto& choice : fresh.configs) choice = any_number(g, ~std::uint32_t(0) - 1);
      for (auto& choice : fresh.node_alternatives) choice = static_cast<std::uint16_t>(any_number(g, 65535));
      for (auto& choice : fresh.edge_alternatives) choice = static_cast<std::uint16_t>(any_number(g, 65535));
      points.push_back(fresh);
    } else {
      points.push_back(points.back());
    }
    Point& point = points.back();
    point.memory = g.number(0, 1000000);
    point.time = g.real(0, 1);
    for (auto& choice : point.configs)
      if (g.chance(0.1)) choice = any_number(g, ~std::uint32_t(0) - 1);
    for (auto& choice : point.edge_alternatives)
      if (g.chance(0.1)) choice = static_cast<std::uint16_t>(any_number(g, 65535));
  }
  return points;
}

}  // namespace

class PackedPointsTest : public QObject {
  Q_OBJECT

 private slots:
  void points_come_back() {
    QVERIFY(PackedPoints().empty() && PackedPoints().all().empty());
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Generator g(seed);
      const std::vector<Point> points = random_points(g, g.number(1, 400));
      const PackedPoints packed(points);
      QCOMPARE(packed.size(), points.size());
      const std::vector<Point> all = packed.all();
      QCOMPARE(all.size(), points.size());
      for (std::size_t i = 0; i < points.size(); ++i)
        QVERIFY(equal(all[i], points[i]) && equal(packed.at(i), points[i]));
    }
  }

  void neighbours_take_little() {
    Generator g(3);
    std::vector<Point> points(1);
    points[0].configs.assign(3000, 7);
    points[0].node_alternatives.assign(3000, 1);
    points[0].edge_alternatives.assign(6000, 2);
    while (points.size() < 1000) {
      points.push_back(points.back());
      for (int i = 0; i < 10; ++i) points.back().configs[g.number(0, 2999)] = g.number(0, 80);
    }
    const std::size_t plain = points.size() * (3000 * 4 + 9000 * 2);
    QVERIFY2(PackedPoints(points).bytes() * 50 < plain, std::to_string(PackedPoints(points).bytes()).c_str());
  }
};

QTEST_APPLESS_MAIN(PackedPointsTest)
#include "packed_points_test.moc"
