// SPDX-License-Identifier: Apache-2.0
// Sizes between the measured ones: found where a made-up curve bends or jumps, nowhere else, until the line through
// what was measured is the curve. The oracle is the made-up curve itself.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "core/hardware/refine_curve.h"

using namespace turnpoint;

namespace {

using Device = std::function<double(double)>;

std::vector<TimedSize> powers_of_two(const Device& device, int from, int to, double spread = 0) {
  std::vector<TimedSize> curve;
  for (int i = from; i <= to; ++i) curve.push_back({std::int64_t(1) << i, device(std::ldexp(1.0, i)), spread});
  return curve;
}

/// Measures what is asked for until nothing is, and returns those sizes.
std::vector<std::int64_t> refine(std::vector<TimedSize>& curve, const Device& device, const RefineRule& rule,
                                 double spread = 0) {
  std::vector<std::int64_t> added;
  while (const auto next = next_midpoint(curve, rule)) {
    const auto at = std::find_if(curve.begin(), curve.end(), [&](const auto& p) { return p.bytes >= next->bytes; });
    if (at == curve.end() || at == curve.begin() || at->bytes == next->bytes || added.size() > 1000) return {-1};
    curve.insert(at, {next->bytes, device(static_cast<double>(next->bytes)), spread});
    added.push_back(next->bytes);
  }
  return added;
}

/// Largest relative error of the curve read between its points, away from `jump` by more than a tenth.
double worst_error(const std::vector<TimedSize>& curve, const Device& device, double jump) {
  std::vector<CurvePoint> points;
  for (const auto& p : curve) points.push_back({static_cast<double>(p.bytes), p.time_s});
  double worst = 0;
  for (double bytes = points.front().bytes; bytes <= points.back().bytes; bytes *= 1.01)
    if (std::abs(std::log(bytes / jump)) > 0.1)
      worst = std::max(worst, std::abs(curve_time(points, bytes, Interpolation::time) - device(bytes)) / device(bytes));
  return worst;
}

}  // namespace

class RefineCurveTest : public QObject {
  Q_OBJECT

 private slots:
  void a_straight_line_needs_nothing() {
    const Device line = [](double bytes) { return 5e-6 + bytes / 1e9; };
    auto curve = powers_of_two(line, 6, 24);
    QVERIFY(refine(curve, line, {}).empty());
    QVERIFY(!next_midpoint({}, {}));
    QVERIFY(!next_midpoint(std::span(curve).first(2), {}));
  }

  void midpoints_land_at_the_kink_data() {
    QTest::addColumn<double>("kink");
    QTest::addColumn<bool>("jump");
    for (const double kink : {45000.0, 50000.0, 100000.0, 3000.0, 700000.0}) {
      QTest::addRow("jump at %g", kink) << kink << true;
      QTest::addRow("bend at %g", kink) << kink << false;
    }
  }
  void midpoints_land_at_the_kink() {
    QFETCH(double, kink);
    QFETCH(bool, jump);
    // Another algorithm from there on: three times as long at once, or four times as long a byte.
    const Device device = [=](double bytes) {
      const double before = 5e-6 + bytes / 1e9;
      if (bytes < kink) return before;
      return jump ? 3 * before : before + 5 * (bytes - kink) / 1e9;
    };
    auto curve = powers_of_two(device, 6, 24);
    const double untouched = worst_error(curve, device, kink);
    const auto added = refine(curve, device, {});
    QVERIFY2(!added.empty() && added.size() < 16, qPrintable(QString::number(added.size())));
    const double below = std::exp2(std::floor(std::log2(kink))), above = 2 * below;
    for (const auto bytes : added)
      QVERIFY2(static_cast<double>(bytes) >= below / 2 && static_cast<double>(bytes) <= 2 * above,
               qPrintable(QString::number(bytes)));
    QVERIFY(std::any_of(added.begin(), added.end(), [&](auto bytes) {
      return static_cast<double>(bytes) > below && static_cast<double>(bytes) < above;
    }));
    const double error = worst_error(curve, device, kink);
    QVERIFY2(error <= untouched && error < 0.1, qPrintable(QString("%1 %2").arg(untouched).arg(error)));
    if (jump) {  // neighbours of the jump are as close as they may be
      const auto after =
          std::find_if(curve.begin(), curve.end(), [&](const auto& p) { return double(p.bytes) >= kink; });
      QVERIFY(double(after->bytes) / double((after - 1)->bytes) < 1.2);
    }
  }

  void noise_is_no_kink() {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> factor(0.8, 1.2);
    const Device noisy = [&](double bytes) { return (5e-6 + bytes / 1e9) * factor(random); };
    auto curve = powers_of_two(noisy, 6, 24, 0.45);
    QVERIFY(refine(curve, noisy, {}, 0.45).empty());
    // The same times given as exact do ask for more.
    for (auto& point : curve) point.spread = 0;
    QVERIFY(next_midpoint(curve, {}));
  }

  void it_ends_on_any_curve_and_keeps_the_unit() {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> factor(0.2, 5);
    for (int round = 0; round < 50; ++round) {
      const Device wild = [&](double) { return 1e-5 * factor(random); };
      auto curve = powers_of_two(wild, 6, 20);
      RefineRule rule;
      rule.unit = 64;
      const auto added = refine(curve, wild, rule);
      QVERIFY(added != std::vector<std::int64_t>{-1});
      for (const auto bytes : added) QCOMPARE(bytes % 64, 0);
      for (std::size_t i = 1; i < curve.size(); ++i) QVERIFY(curve[i - 1].bytes < curve[i].bytes);
    }
  }
};

QTEST_GUILESS_MAIN(RefineCurveTest)
#include "refine_curve_test.moc"
