// SPDX-License-Identifier: Apache-2.0
// The clock switch in the real window on the real core: what is drawn, what is picked, what a session keeps.
#include <QAction>
#include <QLabel>
#include <QTemporaryDir>
#include <QtTest>

#include "app/document.h"
#include "app/search_runner.h"
#include "app/simulated_clock.h"
#include "real_window.h"
#include "views/frontier/frontier_chart.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const views::ChartData& drawn_in(const Real& real) { return part<views::FrontierChart>(real.window)->data(); }

std::size_t picked_in(const Real& real) { return real.window->work().document.selection().point()->index; }

}  // namespace

class ClockWindowTest : public QObject {
  Q_OBJECT

 private slots:
  void the_clock_switch_moves_every_sharding_point() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    const views::ChartData before = part<views::FrontierChart>(real.window)->data();
    QCOMPARE(before.clock, Clock::additive);
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    const views::ChartData& after = part<views::FrontierChart>(real.window)->data();
    QCOMPARE(after.clock, Clock::simulated);
    QCOMPARE(after.series.size(), before.series.size());
    for (const views::ChartSeries& series : after.series) {
      const ResultPtr& result = real.window->work().runner.find(series.method)->result;
      QCOMPARE(series.result->points.size(), result->points.size());
      std::size_t drawn = 0;
      for (std::size_t i = 0; i < result->points.size(); ++i) {
        if (!views::drawable(series.result->points[i])) continue;
        ++drawn;
        // The same plan, by the simulator itself.
        QCOMPARE(series.result->points[i].time_s, simulated_seconds(*result->scenario, result->plans->sharding(i)));
        QVERIFY(series.result->points[i].time_s <= result->points[i].time_s * (1 + 1e-9));
      }
      QVERIFY(drawn > 0 && drawn <= app::SimulatedClock::kMost);
    }
    QVERIFY(part<views::PlanPanel>(real.window)->findChild<QLabel*>("picked_where")->text().contains("simulated"));
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    QCOMPARE(part<views::FrontierChart>(real.window)->data(), before);
  }

  void the_clock_follows_a_slider() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    action(real, "pin")->trigger();
    QVERIFY(!part<views::FrontierChart>(real.window)->data().pinned.empty());
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    // Plain sums that were pinned are no company for simulated figures.
    QVERIFY(part<views::FrontierChart>(real.window)->data().pinned.empty());
    QVERIFY(!action(real, "pin")->isEnabled());
    const double before =
        part<views::FrontierChart>(real.window)->data().find("data-parallel")->result->points[0].time_s;
    views::SliderRow* row = part<views::ScenarioPanel>(real.window)->slider_row("device-speed-scale");
    row->slider()->setFocus();
    for (int i = 0; i < 4; ++i) QTest::keyClick(row->slider(), Qt::Key_PageUp);
    QVERIFY(real.settle());
    const views::ChartSeries* moved = part<views::FrontierChart>(real.window)->data().find("data-parallel");
    QVERIFY(moved->result->points[0].time_s < before);
    QCOMPARE(moved->result->scenario, real.window->work().document.scenario());
    QCOMPARE(part<views::FrontierChart>(real.window)->data().subject()->result->scenario,
             real.window->work().document.scenario());
    action(real, "simulated_clock")->trigger();
    QVERIFY(!part<views::FrontierChart>(real.window)->data().pinned.empty());
    QVERIFY(real.settle());
  }

  void sessions_keep_the_clock() {
    QTemporaryDir folder;
    const QString path = folder.filePath("clock.turnpoint");
    {
      Real real;
      real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
      QVERIFY(real.settle());
      action(real, "simulated_clock")->trigger();
      QVERIFY(real.settle());
      QVERIFY(real.window->sessions().save(path));
    }
    Real real;
    QVERIFY(real.open(path));
    QVERIFY(action(real, "simulated_clock")->isChecked());
    QCOMPARE(part<views::FrontierChart>(real.window)->data().clock, Clock::simulated);
    QVERIFY(part<views::FrontierChart>(real.window)->data().subject()->line);
  }

  // Whatever moves, the picked plan is one that the chart draws: the fastest that fits by the clock that is shown, or
  // the turning point, or the nearest to what was picked by hand.
  void the_pick_is_on_the_line_that_is_drawn() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    QCOMPARE(picked_in(real), *drawn_in(real).subject()->result->fastest_that_fits());
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    const auto whole = drawn_in(real).subject()->result;
    QCOMPARE(picked_in(real), *whole->fastest_that_fits());
    const auto least_of = [](const Result& result) {
      std::int64_t least = INT64_MAX;
      for (const ResultPoint& point : result.points)
        if (views::drawable(point)) least = std::min(least, point.memory_bytes);
      return least;
    };
    const std::int64_t least = least_of(*whole);
    for (const std::int64_t limit : {whole->points[picked_in(real)].memory_bytes * 2 / 3, least * 11 / 10, least / 2}) {
      real.window->work().document.set_option("memory-limit", double(limit), 0);
      QVERIFY(real.settle());
      const Result& now = *drawn_in(real).subject()->result;
      QVERIFY(views::drawable(now.points[picked_in(real)]));
      QCOMPARE(now.fastest_that_fits().has_value(), limit > least / 2);
      if (const auto fastest = now.fastest_that_fits())
        QCOMPARE(picked_in(real), *fastest);
      else
        QCOMPARE(now.points[picked_in(real)].memory_bytes, least_of(now));
    }
    real.window->work().document.set_option("memory-limit", 0.0, 0);
    QVERIFY(real.settle());
    part<views::FrontierChart>(real.window)->pick_turning_point();
    QCOMPARE(picked_in(real), *drawn_in(real).subject()->result->turning_point);
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    QCOMPARE(picked_in(real), *drawn_in(real).subject()->result->turning_point);

    // One that was not simulated: its neighbour stands for it as long as the clock is shown.
    std::size_t hidden = 1;
    while (hidden + 1 < whole->points.size() && views::drawable(whole->points[hidden])) ++hidden;
    QVERIFY(hidden + 1 < whole->points.size());
    real.window->work().document.selection().pick_point(views::PickedPoint{drawn_in(real).subject()->method, hidden});
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    QVERIFY(views::drawable(drawn_in(real).subject()->result->points[picked_in(real)]));
    action(real, "simulated_clock")->trigger();
    QVERIFY(real.settle());
    QCOMPARE(picked_in(real), hidden);
  }
};

QTEST_MAIN(ClockWindowTest)
#include "clock_window_test.moc"
