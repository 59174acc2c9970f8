// SPDX-License-Identifier: Apache-2.0
// The tab about a ratio plan's devices: blocks as the plan has them, borders that mouse and keys move, words.
#include <QPushButton>
#include <QSignalSpy>
#include <QStackedWidget>
#include <QtTest>

#include "core/plan/ratio_change.h"
#include "search/partition_cases.h"
#include "views/common/format.h"
#include "views/devices/device_chart.h"
#include "views/devices/devices_view.h"
#include "views/plan/ratio_words.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::views;

namespace {

RatioPlanPtr plan_of(const ScenarioPtr& scenario) {
  return std::get<RatioPlanPtr>(answer_of("accpar", scenario)->plans->plan(0));
}

ScenarioPtr unlike() { return scenario_on(builtin("vgg11", 240), "v100-16gb-1x4+a100-80gb-1x2"); }

}  // namespace

class DevicesViewTest : public QObject {
  Q_OBJECT

 private slots:
  void blocks_are_the_plan() {
    const auto scenario = unlike();
    const RatioPlanPtr plan = plan_of(scenario);
    const DeviceBlocks blocks = blocks_of(*plan, *scenario);
    QCOMPARE(blocks.levels, 3);
    QCOMPARE(blocks.blocks.size(), std::size_t(11));  // six devices and five cuts
    const DeviceBlock& whole = blocks.blocks.front();
    QCOMPARE(whole.width, 1.0);
    QCOMPARE(whole.types[0] + whole.types[1] + whole.types[2], int(plan->layers.size()));
    QCOMPARE(whole.compute_s, blocks.slowest_s);
    double devices = 0;
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      const DeviceBlock& block = blocks.blocks[b];
      if (block.count == 1) {
        devices += block.width;
        const std::uint32_t device = plan->order[block.first];
        QCOMPARE(block.compute_s, plan->device_compute_s[device]);
        QCOMPARE(block.memory_bytes, plan->device_memory[device]);
      } else {
        const DeviceBlock &first = blocks.blocks[b + 1],
                          second = *std::find_if(blocks.blocks.begin() + std::ptrdiff_t(b) + 2, blocks.blocks.end(),
                                                 [&](const DeviceBlock&other) { return other.parent == b; });
        QCOMPARE(first.ratio, plan->cuts[block.cut].ratio);
        QVERIFY(std::abs(first.width + second.width - block.width) < 1e-12);
        QCOMPARE(first.count + second.count, block.count);
      }
    }
    QVERIFY(std::abs(devices - 1) < 1e-12);
    const QString words = describe(blocks.blocks[1]);
    QVERIFY2(words.startsWith(QStringLiteral("4 × V100-16GB: ")) && words.contains(QStringLiteral("by batch (I)")),
             qPrintable(words));
  }

  // Whole per cents of a border between them would be 53 and 48.
  void halves_are_a_hundred_together() {
    const auto scenario = unlike();
    const auto moved = with_ratio(*scenario, *plan_of(scenario), 0, 0.525);
    QVERIFY(moved);
    const DeviceBlocks blocks = blocks_of(*moved, *scenario);
    const QString words = describe(blocks);
    QVERIFY2(words.contains("52.5% of its part of the work, 52.5% of all"), qPrintable(words));
    QVERIFY2(words.contains("47.5% of its part of the work, 47.5% of all"), qPrintable(words));
    DevicesView view;
    view.set_plan(std::make_shared<const RatioPlan>(*moved), scenario);
    const QString described = view.chart()->accessibleDescription();
    QVERIFY2(described.contains("52.5%") && described.contains("47.5%"), qPrintable(described));
    const QString in_words = describe_ratio(*moved, *scenario);
    QVERIFY2(in_words.contains("V100-16GB 52.5%, ") && in_words.contains("47.5%."), qPrintable(in_words));
  }

  void a_border_is_moved_by_the_mouse_and_put_back() {
    const auto scenario = unlike();
    const RatioPlanPtr plan = plan_of(scenario);
    DevicesView view;
    int asked = 0;
    connect(&view, &DevicesView::change_requested, &view, [&](const RatioPlanPtr& from, const RatioMoves& moves) {
      ++asked;
      QCOMPARE(from, plan);  // however often it is asked on the way, from what was found
      QCOMPARE(moves.size(), std::size_t(1));
      view.set_changed(std::make_shared<const RatioPlan>(*with_moves(*scenario, *from, moves)), moves, {});
    });
    view.resize(800, 320);
    view.set_plan(plan, scenario);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    DeviceChart* chart = view.chart();
    QVERIFY(!view.reset_button()->isEnabled());
    const QRectF whole = chart->rect_of(0), first = chart->rect_of(1);
    const auto at = [&](double ratio) {
      return QPointF(whole.left() + ratio * whole.width(), first.center().y()).toPoint();
    };
    QTest::mouseMove(chart, at(plan->cuts[0].ratio));
    QCOMPARE(chart->cursor().shape(), Qt::SplitHCursor);
    QTest::mousePress(chart, Qt::LeftButton, {}, at(plan->cuts[0].ratio));
    for (const double ratio : {0.6, 0.7, 0.8}) QTest::mouseMove(chart, at(ratio));
    QTest::mouseRelease(chart, Qt::LeftButton, {}, at(0.8));
    QVERIFY(asked >= 2);
    QVERIFY(std::abs(chart->blocks().blocks[1].ratio - 0.8) < 0.01);
    QVERIFY(view.reset_button()->isEnabled());
    QVERIFY2(view.words().contains(QStringLiteral("against what was found")) && view.words().contains(u'+'),
             qPrintable(view.words()));
    QSignalSpy put_back(&view, &DevicesView::put_back);
    view.reset_button()->click();
    QCOMPARE(put_back.size(), 1);
    QCOMPARE(chart->blocks().blocks[1].ratio, plan->cuts[0].ratio);
    QVERIFY(!view.words().contains(QStringLiteral("against")));
  }

  void keys_move_the_border_of_the_block_that_they_chose() {
    const auto scenario = unlike();
    DevicesView view;
    QSignalSpy asked(&view, &DevicesView::change_requested);
    view.resize(800, 320);
    view.set_plan(plan_of(scenario), scenario);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    DeviceChart* chart = view.chart();
    QCOMPARE(*chart->current(), std::size_t(0));
    const auto last = [&] { return asked.last()[1].value<RatioMoves>().back(); };
    QTest::keyClick(chart, Qt::Key_Right);
    QCOMPARE(last().cut, 0u);
    QVERIFY(std::abs(last().ratio - chart->blocks().blocks[1].ratio - 0.01) <= 0.0025);
    QCOMPARE(last().ratio, std::round(200 * last().ratio) / 200);
    QTest::keyClick(chart, Qt::Key_Down);
    QCOMPARE(*chart->current(), std::size_t(1));
    QTest::keyClick(chart, Qt::Key_Left);
    QCOMPARE(last().cut, 1u);
    QVERIFY(last().ratio < 0.5);
    QTest::keyClick(chart, Qt::Key_Up);
    QCOMPARE(*chart->current(), std::size_t(0));
    view.set_changed(nullptr, {}, QStringLiteral("it cannot be"));
    QVERIFY(!view.keep_button()->isEnabled());
    QVERIFY(view.words().endsWith(QStringLiteral("it cannot be")));
  }

  // Many steps at one border are one move, another border is another; what is kept is what is on show.
  void what_is_on_show_can_be_kept() {
    const auto scenario = unlike();
    const RatioPlanPtr plan = plan_of(scenario);
    DevicesView view;
    connect(&view, &DevicesView::change_requested, &view, [&](const RatioPlanPtr& from, const RatioMoves& moves) {
      view.set_changed(std::make_shared<const RatioPlan>(*with_moves(*scenario, *from, moves)), moves, {});
    });
    QSignalSpy kept(&view, &DevicesView::keep_requested);
    view.resize(800, 320);
    view.set_plan(plan, scenario);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QVERIFY(!view.keep_button()->isEnabled());
    view.keep_button()->click();
    QVERIFY(kept.isEmpty());
    for (int step = 0; step < 5; ++step) QTest::keyClick(view.chart(), Qt::Key_Right);
    QTest::keyClick(view.chart(), Qt::Key_Down);
    for (int step = 0; step < 3; ++step) QTest::keyClick(view.chart(), Qt::Key_Left);
    view.keep_button()->click();
    QCOMPARE(kept.size(), 1);
    const auto moves = kept.last()[0].value<RatioMoves>();
    QCOMPARE(moves.size(), std::size_t(2));
    QCOMPARE(moves[0].cut, 0u);
    QCOMPARE(moves[1].cut, 1u);
    const auto made = with_moves(*scenario, *plan, moves);
    QVERIFY(made && view.words().contains(time_text(made->cost.time_s())));
    QCOMPARE(view.chart()->blocks().blocks[1].ratio, moves[0].ratio);
    view.reset_button()->click();
    QVERIFY(!view.keep_button()->isEnabled());
    QTest::keyClick(view.chart(), Qt::Key_Left);
    view.keep_button()->click();
    QCOMPARE(kept.last()[0].value<RatioMoves>().size(), std::size_t(1));
  }

  // What has no room is not drawn, and said; nothing is drawn of no plan.
  void low_and_empty_views() {
    const auto scenario = unlike();
    DevicesView view;
    view.resize(400, 150);
    view.set_plan(plan_of(scenario), scenario);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QVERIFY(!view.chart()->rect_of(0).isEmpty());
    QVERIFY(view.chart()->rect_of(3).isEmpty());
    QVERIFY(!view.grab().isNull());
    view.set_plan(nullptr, nullptr);
    QVERIFY(view.chart()->blocks().empty() && !view.chart()->isVisible());
    QVERIFY(!view.reset_button()->isEnabled() && view.words().isEmpty());
    view.set_changed(nullptr, {}, QStringLiteral("late"));
    QVERIFY(view.words().isEmpty());
  }
};

QTEST_MAIN(DevicesViewTest)
#include "devices_view_test.moc"
