// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/plan_steps.h"

#include <QtTest>
#include <cmath>

using namespace turnpoint;
using namespace turnpoint::views;

namespace {
constexpr double kGiB = 1073741824.0;
}

class PlanStepsTest : public QObject {
  Q_OBJECT

 private slots:
  void steps_go_to_what_looks_different() {
    std::vector<ResultPoint> points;
    for (int i = 0; i < 1000; ++i) points.push_back(ResultPoint{.memory_bytes = std::int64_t((4 + i * 1e-3) * kGiB), .time_s = 2 - i * 1e-3});
    const auto pixel = [&](const ResultPoint& p) { return QPointF(double(p.memory_bytes) / kGiB * 100, 0); };
    // A tenth of a pixel from plan to plan.
    QCOMPARE(stepped_plan(points, 0, 1, 1.95, pixel), std::size_t(20));
    QCOMPARE(stepped_plan(points, 0, 3, 1.95, pixel), std::size_t(60));
    QCOMPARE(stepped_plan(points, 500, -1, 1.95, pixel), std::size_t(480));
    QCOMPARE(stepped_plan(points, 500, -1, 0, pixel), std::size_t(499));
    QCOMPARE(stepped_plan(points, 990, 1, 2.0, pixel), std::size_t(999));
    QCOMPARE(stepped_plan(points, 999, 1, 2.0, pixel), std::size_t(999));
    QCOMPARE(stepped_plan(points, 5, -4, 2.0, pixel), std::size_t(0));
    points[520].time_s = std::nan("");
    QCOMPARE(stepped_plan(points, 500, 1, 1.95, pixel), std::size_t(521));
    for (std::size_t i = 990; i < 1000; ++i) points[i].time_s = std::nan("");
    QCOMPARE(stepped_plan(points, 980, 1, 1.95, pixel), std::size_t(989));
    QCOMPARE(stepped_plan(points, 989, 1, 0, pixel), std::size_t(989));
  }
};

QTEST_MAIN(PlanStepsTest)
#include "plan_steps_test.moc"
