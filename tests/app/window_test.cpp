// SPDX-License-Identifier: Apache-2.0
// The window through real events: load, drag, pick, undo, export, cancel, errors, sessions, closing while running.
#include <QClipboard>
#include <QDropEvent>
#include <QFile>
#include <QLabel>
#include <QMimeData>
#include <QSignalSpy>
#include <QSpinBox>
#include <QToolButton>
#include <QUndoStack>
#include <nlohmann/json.hpp>

#include "app/session.h"
#include "app/task_strip.h"
#include "core/base/json.h"
#include "core/export/format.h"
#include "views/common/theme_colors.h"
#include "views/scenario/methods_list.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Presses on the handle, moves in steps, releases.
void drag_slider(views::WhatIfSlider* slider, double to_factor, int steps, int pause_ms) {
  const int y = slider->height() / 2, from = slider->handle_x(slider->factor()), to = slider->handle_x(to_factor);
  QTest::mousePress(slider, Qt::LeftButton, {}, QPoint(from, y));
  for (int i = 1; i <= steps; ++i) {
    QMouseEvent move(QEvent::MouseMove, QPointF(from + (to - from) * i / steps, y),
                     slider->mapToGlobal(QPointF(from + (to - from) * i / steps, y)), Qt::NoButton, Qt::LeftButton,
                     Qt::NoModifier);
    QApplication::sendEvent(slider, &move);
    if (pause_ms) QTest::qWait(pause_ms);
  }
  QTest::mouseRelease(slider, Qt::LeftButton, {}, QPoint(to, y));
}

}  // namespace

class WindowTest : public QObject {
  Q_OBJECT

 private slots:
  void opens_a_scenario_without_a_question() {
    WindowFixture f;
    QVERIFY(!f.document().scenario());
    // Without a model there is no chart to pick a point in.
    QTRY_VERIFY(part<views::PlanPanel>(f.window)
                    ->findChild<QLabel*>(QStringLiteral("no_plan"))
                    ->text()
                    .startsWith("Open a model"));
    QVERIFY(f.open());
    QCOMPARE(f.document().scenario()->cluster->devices(), 16);
    QVERIFY(f.chart().data().subject());
    QCOMPARE(f.chart().data().subject()->result->points.size(), std::size_t(58));
    QVERIFY(!f.chart().data().subject()->coarse);
    QCOMPARE(f.chart().data().series.size(), std::size_t(3));
    // The fastest plan that fits is picked, and its plan is there. The fake's plans cannot be simulated: by its sum.
    QVERIFY(f.document().selection().point());
    const Result& shown = *f.chart().data().subject()->result;
    const std::size_t fastest = *shown.fastest_that_fits();
    QCOMPARE(f.document().selection().point()->index, fastest);
    QVERIFY(!shown.fits_by_peak && f.chart().describe().contains("peak not simulated yet"));
    QVERIFY(f.window->work().loader.plan());
    QVERIFY(part<views::PlanPanel>(f.window)->reshard_model()->rowCount() > 0);
    QCOMPARE(fake_world().coarse_runs.load(), 1);
    QCOMPARE(fake_world().exact_runs.load(), 1);
    QCOMPARE(fake_world().other_runs.load(), 2);
  }

  void a_drag_is_one_undo_step_with_coarse_passes_and_one_exact() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().coarse_runs = fake_world().exact_runs = 0;
    const int coarse_before = f.runner().coarse_started();
    auto* row = f.row("intra-bandwidth-scale");
    QVERIFY(row);
    drag_slider(row->slider(), 0.5, 12, 8);
    QCOMPARE(f.document().undo_stack().count(), 1);
    const double dragged = f.scenario_settings().factors.intra_bandwidth;
    QVERIFY2(dragged > 0.45 && dragged < 0.55, qPrintable(QString::number(dragged)));
    QVERIFY(f.settle());
    // Twelve moves in about a hundred milliseconds: a frame's coalescer lets at most one search a frame start.
    const int coarse = f.runner().coarse_started() - coarse_before;
    QVERIFY2(coarse >= 1 && coarse <= 12, qPrintable(QString::number(coarse)));
    QCOMPARE(fake_world().exact_runs.load(), 1);
    QCOMPARE(f.chart().data().subject()->result->scenario, f.document().scenario());
    f.document().undo_stack().undo();
    QCOMPARE(f.scenario_settings().factors.intra_bandwidth, 1.0);
    QVERIFY(f.settle());
    f.document().undo_stack().redo();
    QCOMPARE(f.scenario_settings().factors.intra_bandwidth, dragged);
  }

  void a_slow_coarse_pass_is_not_starved_by_a_moving_hand() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().coarse_ms = 60;
    fake_world().cancelled_runs = 0;
    int curves = 0;
    connect(&f.runner(), &app::SearchRunner::result_changed, this,
            [&](const QString& method) { curves += method == u"ft"; });
    for (int i = 0; i < 60; ++i) {
      f.document().set_option("intra-bandwidth-scale", 1 - 0.01 * i, 99);
      QTest::qWait(10);
    }
    QVERIFY2(curves >= 3, qPrintable(QString::number(curves)));
    QCOMPARE(fake_world().cancelled_runs.load(), 0);
    QVERIFY(f.settle());
    QCOMPARE(f.chart().data().subject()->result->scenario, f.document().scenario());
    QCOMPARE(f.document().undo_stack().count(), 1);
  }

  void one_slider_step_is_two_coarse_one_exact_and_few_replots() {
    WindowFixture f;
    QVERIFY(f.open());
    QTest::qWait(50);
    fake_world().coarse_runs = fake_world().exact_runs = 0;
    fake_world().other_ms = 0;
    const int replots = f.chart().replots();
    auto* slider = f.row("latency-scale")->slider();
    slider->setFocus();
    QTest::keyClick(slider, Qt::Key_Right);
    QVERIFY(std::abs(f.scenario_settings().factors.latency - 1.05) < 1e-9);
    QVERIFY(f.settle());
    QTest::qWait(50);
    QCOMPARE(fake_world().coarse_runs.load(), 2);  // at once, and refined when the hand rests
    QCOMPARE(fake_world().exact_runs.load(), 1);
    // The edit, the coarse curves, the exact curve, two other methods; plan and selection use the overlay.
    const int drawn = f.chart().replots() - replots;
    QVERIFY2(drawn >= 2 && drawn <= 8, qPrintable(QString::number(drawn)));
  }

  void slider_keys() {
    WindowFixture f;
    QVERIFY(f.open());
    auto* slider = f.row("device-speed-scale")->slider();
    QTest::keyClick(slider, Qt::Key_PageUp);
    QCOMPARE(f.scenario_settings().factors.device_speed, 2.0);
    QTest::keyClick(slider, Qt::Key_Home);
    QCOMPARE(f.scenario_settings().factors.device_speed, 1.0);
    QTest::keyClick(slider, Qt::Key_PageDown);
    QCOMPARE(f.scenario_settings().factors.device_speed, 0.5);
    QCOMPARE(f.document().undo_stack().count(), 3);
  }

  void factor_box_takes_absolute_values() {
    WindowFixture f;
    QVERIFY(f.open());
    auto* box = f.row("intra-bandwidth-scale")->box();
    box->setFocus();
    box->selectAll();
    QTest::keyClicks(box, QStringLiteral("65 GB/s"));
    QTest::keyClick(box, Qt::Key_Return);
    QVERIFY(std::abs(f.scenario_settings().factors.intra_bandwidth - 0.5) < 1e-6);
    box->selectAll();
    QTest::keyClicks(box, QStringLiteral("x0.25"));
    QTest::keyClick(box, Qt::Key_Return);
    QCOMPARE(f.scenario_settings().factors.intra_bandwidth, 0.25);
    box->selectAll();
    QTest::keyClicks(box, QStringLiteral("nonsense"));
    QTest::keyClick(box, Qt::Key_Return);
    QCOMPARE(f.scenario_settings().factors.intra_bandwidth, 0.25);
  }

  void click_picks_and_keys_walk() {
    WindowFixture f;
    QVERIFY(f.open());
    QTest::qWait(30);
    const auto& points = f.chart().data().subject()->result->points;
    const QPoint at = f.chart().position_of(points[40]);
    QTest::mouseClick(f.plot(), Qt::LeftButton, {}, at);
    QCOMPARE(f.document().selection().point()->method, std::string("ft"));
    QCOMPARE(f.document().selection().point()->index, std::size_t(40));
    QTest::keyClick(&f.chart(), Qt::Key_Left);
    QCOMPARE(f.document().selection().point()->index, std::size_t(39));
    QTest::keyClick(&f.chart(), Qt::Key_Home);
    QCOMPARE(f.document().selection().point()->index, std::size_t(0));
    QTest::keyClick(&f.chart(), Qt::Key_End);
    QCOMPARE(f.document().selection().point()->index, points.size() - 1);
    QTest::keyClick(&f.chart(), Qt::Key_T);
    QCOMPARE(f.document().selection().point()->index, *f.chart().data().subject()->result->turning_point);
    QTest::keyClick(&f.chart(), Qt::Key_C);
    QVERIFY(QApplication::clipboard()->text().contains(QStringLiteral("GiB")));
    QVERIFY(f.settle());
    QCOMPARE(f.window->work().loader.index(), f.document().selection().point()->index);
  }

  void hover_uses_the_overlay_only() {
    WindowFixture f;
    QVERIFY(f.open());
    QTest::qWait(50);
    const int replots = f.chart().replots();
    QTest::mouseMove(f.plot(), f.chart().position_of(f.chart().data().subject()->result->points[20]));
    QTRY_VERIFY(f.document().selection().hovered_point().has_value());
    QCOMPARE(f.document().selection().hovered_point()->index, std::size_t(20));
    QTest::qWait(30);
    QCOMPARE(f.chart().replots(), replots);
  }

  void the_memory_line_moves_the_memory_slider() {
    WindowFixture f;
    QVERIFY(f.open());
    QTest::qWait(30);
    const QPoint line = f.chart().limit_position();
    QVERIFY(f.chart().plot_area().contains(line));
    QTest::mousePress(f.plot(), Qt::LeftButton, {}, line);
    for (int i = 1; i <= 10; ++i) {
      const QPointF to(line.x() - 20.0 * i, line.y());
      QMouseEvent move(QEvent::MouseMove, to, f.plot()->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
      QApplication::sendEvent(f.plot(), &move);
    }
    QTest::mouseRelease(f.plot(), Qt::LeftButton, {}, line - QPoint(200, 0));
    QVERIFY(f.scenario_settings().factors.device_memory < 0.9);
    QCOMPARE(f.document().undo_stack().count(), 1);
    QCOMPARE(f.row("device-memory-scale")->slider()->factor(), f.scenario_settings().factors.device_memory);
    QVERIFY(f.settle());
    QVERIFY(f.chart().data().memory_limit < (16LL << 30));
  }

  void user_zoom_survives_recompute() {
    WindowFixture f;
    QVERIFY(f.open());
    QTest::keyClick(&f.chart(), Qt::Key_Plus);
    const views::ChartRange zoomed = f.chart().visible_range();
    f.document().set_option("inter-bandwidth-scale", 0.25, 0);
    QVERIFY(f.settle());
    QCOMPARE(f.chart().visible_range().x_high, zoomed.x_high);
    QCOMPARE(f.chart().visible_range().y_high, zoomed.y_high);
    QTest::keyClick(&f.chart(), Qt::Key_0, Qt::ControlModifier);
    QVERIFY(!f.chart().user_zoomed());
    QVERIFY(f.chart().visible_range().x_high != zoomed.x_high);
  }

  void cancel_stops_within_a_tenth_of_a_second_and_keeps_the_curve() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().exact_ms = 3600000;
    f.runner().search_all();
    QTRY_VERIFY(part<app::TaskStrip>(f.window)->isVisible());
    QTest::mouseClick(part<app::TaskStrip>(f.window)->cancel_button(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(f.runner().find("ft")->state != app::MethodRun::State::running, 60000);
    QCOMPARE(f.runner().find("ft")->state, app::MethodRun::State::cancelled);
    QVERIFY(f.chart().data().subject());
    QCOMPARE(f.window->voice().bar().count(), 0);
  }

  void newest_wins() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().exact_ms = 3000;
    f.document().set_option("optimizer", 0, 0);
    QTRY_VERIFY(f.runner().find("ft")->pass == SearchPass::exact &&
                f.runner().find("ft")->state == app::MethodRun::State::running);
    fake_world().exact_ms = 20;
    f.document().set_option("optimizer", 1, 0);
    QVERIFY(f.settle());
    QCOMPARE(f.chart().data().subject()->result->scenario->settings.optimizer, Optimizer::momentum);
    QVERIFY(fake_world().cancelled_runs.load() >= 1);  // another method may have run beside it
  }

  void errors_go_to_the_bar_and_lose_nothing() {
    WindowFixture f;
    QVERIFY(f.open());
    const ScenarioPtr before = f.document().scenario();
    f.window->opener().open_path(QStringLiteral("/nowhere/gpt2.onnx"));
    QTRY_VERIFY(f.window->voice().bar().isVisible());
    QVERIFY(f.window->voice().bar().current()->what.contains(QStringLiteral("Einsum")));
    QVERIFY(f.window->voice().bar().current()->where.contains(QStringLiteral("node 412")));
    QCOMPARE(f.document().scenario(), before);
    QCOMPARE(f.document().undo_stack().count(), 0);
    // A second one queues, the same one does not.
    f.document().set_option("devices", 12, 0);
    QTRY_COMPARE(f.window->voice().bar().count(), 2);
    QCOMPARE(f.document().scenario(), before);
    QCOMPARE(part<views::ScenarioPanel>(f.window)->findChild<QSpinBox*>(QStringLiteral("devices"))->value(), 8);
    f.window->voice().bar().dismiss();
    QCOMPARE(f.window->voice().bar().count(), 1);
    f.window->voice().bar().dismiss();
    QVERIFY(!f.window->voice().bar().isVisible());
  }

  void a_failing_search_says_so_in_its_row() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().fail_search = true;
    f.runner().search("optcnn");
    QTRY_COMPARE(f.runner().find("optcnn")->state, app::MethodRun::State::failed);
    const auto& rows = part<views::ScenarioPanel>(f.window)->methods_model()->rows();
    QVERIFY(rows[2].status.contains(QStringLiteral("tables do not agree")));
    QVERIFY(rows[3].status.contains(QStringLiteral("needs layer names")));
  }

  void what_a_method_said_stands_in_its_row_and_with_its_plan() {
    WindowFixture f;
    fake_world().noted = true;
    QVERIFY(f.open());
    fake_world().noted = false;
    const auto& rows = part<views::ScenarioPanel>(f.window)->methods_model()->rows();
    QVERIFY(rows[0].notes.isEmpty());
    QCOMPARE(rows[1].notes, QStringLiteral("Note: the batch does not divide"));
    auto* notes = part<views::PlanPanel>(f.window)->findChild<QLabel*>(QStringLiteral("result_notes"));
    QVERIFY(!notes->isVisible());
    f.document().selection().pick_point(views::PickedPoint{"data-parallel", 0});
    QVERIFY(f.settle());
    QVERIFY(notes->isVisible() && notes->text().contains(QStringLiteral("does not divide")));
  }

  void methods_can_be_switched_off() {
    WindowFixture f;
    QVERIFY(f.open());
    auto* list = part<views::ScenarioPanel>(f.window)->findChild<views::MethodsList*>();
    const QModelIndex optcnn = list->model()->index(2, 0);
    const QRect row = list->visualRect(optcnn);
    QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, QPoint(row.left() + 8, row.center().y()));
    QVERIFY(!f.runner().find("optcnn")->enabled);
    QCOMPARE(f.chart().data().series.size(), std::size_t(2));
    QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, QPoint(row.left() + 8, row.center().y()));
    QVERIFY(f.settle());
    QCOMPARE(f.chart().data().series.size(), std::size_t(3));
  }

  void a_method_switched_off_by_a_session_is_not_waited_for() {
    WindowFixture f;
    fake_world().other_ms = 300;
    f.window->opener().open_scenario("builtin:transformer-s", "v100-16gb-2x8", 0);
    QTRY_COMPARE(f.runner().find("optcnn")->state, app::MethodRun::State::waiting);
    f.runner().set_enabled_methods({"ft", "data-parallel"});
    QVERIFY(f.settle());
    QVERIFY(!f.runner().find("optcnn")->result);
  }

  void batch_is_bound_again_and_undone() {
    WindowFixture f;
    QVERIFY(f.open());
    auto* batch = part<views::ScenarioPanel>(f.window)->findChild<QSpinBox*>(QStringLiteral("batch"));
    batch->setFocus();
    batch->selectAll();
    QTest::keyClicks(batch, QStringLiteral("512"));
    QTest::keyClick(batch, Qt::Key_Return);
    QTRY_COMPARE(f.document().scenario()->model->batch, std::int64_t(512));
    QVERIFY(f.settle());
    f.document().undo_stack().undo();
    QCOMPARE(f.document().scenario()->model->batch, std::int64_t(256));
    QCOMPARE(batch->value(), 256);
    // A batch the model refuses: one message, the box goes back.
    batch->selectAll();
    QTest::keyClicks(batch, QStringLiteral("13"));
    QTest::keyClick(batch, Qt::Key_Return);
    QTRY_VERIFY(f.window->voice().bar().isVisible());
    QCOMPARE(batch->value(), 256);
  }

  void session_round_trip() {
    WindowFixture f;
    QVERIFY(f.open());
    f.document().set_option("intra-bandwidth-scale", 0.5, 0);
    QVERIFY(f.settle());
    f.window->actions()[app::ActionId::pin]->trigger();
    f.document().selection().pick_point(views::PickedPoint{"ft", 50});
    QVERIFY(f.settle());
    const QString path = f.folder.filePath(QStringLiteral("a.turnpoint"));
    QVERIFY(f.window->sessions().save(path));

    WindowFixture g;
    g.window->opener().open_path(path);
    QTRY_VERIFY(g.document().scenario());
    QVERIFY(g.settle());
    QCOMPARE(g.scenario_settings(), f.scenario_settings());
    QCOMPARE(g.document().pinned().size(), std::size_t(1));
    QCOMPARE(g.document().pinned()[0].points.size(), std::size_t(58));
    QVERIFY(g.document().pinned()[0].label.contains(QStringLiteral("0.50")));
    QCOMPARE(g.document().selection().point()->index, std::size_t(50));
  }

  void broken_sessions_give_one_message() {
    WindowFixture f;
    QVERIFY(f.open());
    const ScenarioPtr before = f.document().scenario();
    const char* const broken[] = {
        "",
        "{",
        "[]",
        R"({"format": "turnpoint/session@2"})",
        R"({"format": "turnpoint/session@1"})",
        R"({"format": "turnpoint/session@1", "scenario": {"model": 3}})",
        R"({"format": "turnpoint/session@1", "scenario": {"model": "builtin:x", "hardware": "v100-16gb-2x8", "settings": {"batch": "many"}}})",
        R"({"format": "turnpoint/session@1", "scenario": {"model": "builtin:x", "hardware": "v100-16gb-2x8"}, "pinned": [{"label": "a", "method": "ft", "points": [{}]}]})"};
    for (const char* text : broken) {
      const QString path = f.folder.filePath(QStringLiteral("bad.turnpoint"));
      QFile file(path);
      QVERIFY(file.open(QIODevice::WriteOnly));
      file.write(text);
      file.close();
      while (f.window->voice().bar().count() > 0) f.window->voice().bar().dismiss();
      f.window->sessions().open(path);
      QTRY_COMPARE(f.window->voice().bar().count(), 1);
      QVERIFY2(f.window->voice().bar().current()->where.contains(QStringLiteral("bad.turnpoint")), text);
      QCOMPARE(f.document().scenario(), before);
    }
  }

  void exports() {
    WindowFixture f;
    QVERIFY(f.open());
    // The plans of this world cannot be carried out: they have no schedule, and no engine takes them.
    for (const ExportFormat& format : export_formats()) {
      if (format.key == "trace" || format.engine) continue;
      if (format.for_plans() && !format.accepts(PlanKind::sharding)) continue;
      const QString path = f.folder.filePath(QString::fromUtf8(format.file));
      f.window->exports().export_to(format, path);
      QTRY_VERIFY2(QFile(path).size() > 0, format.title().c_str());
    }
    const auto plan = read_json_file(f.folder.filePath(QStringLiteral("plan.json")).toStdString());
    QVERIFY(plan);
    QCOMPARE((*plan)["format"].get<std::string>(), std::string("turnpoint/plan@1"));
    QCOMPARE((*plan)["operators"].size(), f.document().scenario()->model->operators.size());
    const auto results = read_json_file(f.folder.filePath(QStringLiteral("results.json")).toStdString());
    QVERIFY(results);
    QCOMPARE((*results)["results"].size(), std::size_t(3));
    for (const char* name : {"c.svg", "c.png"}) {
      const QString path = f.folder.filePath(QString::fromLatin1(name));
      QVERIFY(f.window->exports().export_chart(path));
      QVERIFY(QFile(path).size() > 1000);
    }
    QVERIFY(!f.window->exports().export_chart(QStringLiteral("/nowhere/c.png")));
  }

  void dropped_files_open() {
    WindowFixture f;
    QVERIFY(f.open());
    f.document().set_option("latency-scale", 2, 0);
    QVERIFY(f.window->sessions().save(f.folder.filePath(QStringLiteral("d.turnpoint"))));
    f.document().undo_stack().undo();
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(f.folder.filePath(QStringLiteral("d.turnpoint")))});
    QDropEvent drop(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    static_cast<QObject*>(f.window.get())->event(&drop);  // notify() would want a drag under way
    QTRY_COMPARE(f.scenario_settings().factors.latency, 2.0);
  }

  void the_palette_follows() {
    WindowFixture f;
    QVERIFY(f.open());
    const QPalette before = QApplication::palette();
    QApplication::setPalette(views::make_palette(true));
    QTest::qWait(50);
    const QColor dark =
        f.window->grab().toImage().pixelColor(f.chart().mapTo(f.window.get(), QPoint(6, f.chart().height() / 2)));
    QVERIFY2(dark.lightness() < 60, qPrintable(dark.name()));
    QApplication::setPalette(views::make_palette(false));
    QTest::qWait(50);
    const QColor light =
        f.window->grab().toImage().pixelColor(f.chart().mapTo(f.window.get(), QPoint(6, f.chart().height() / 2)));
    QVERIFY2(light.lightness() > 200, qPrintable(light.name()));
    QApplication::setPalette(before);
  }

  void everything_focusable_has_a_name() {
    WindowFixture f;
    QVERIFY(f.open());
    QStringList nameless;
    for (const QWidget* widget : f.window->findChildren<QWidget*>()) {
      if (!(widget->focusPolicy() & Qt::TabFocus) || !widget->isVisible()) continue;
      const auto* button = qobject_cast<const QAbstractButton*>(widget);
      const bool inner = QByteArray(widget->metaObject()->className()).startsWith("Q") &&
                         widget->objectName().startsWith(QStringLiteral("qt_"));
      if (widget->accessibleName().isEmpty() && (!button || button->text().isEmpty()) && !inner)
        nameless << QStringLiteral("%1 '%2'").arg(QString::fromLatin1(widget->metaObject()->className()),
                                                  widget->objectName());
    }
    QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(QStringLiteral(", "))));
  }

  void closing_while_running_is_quick_and_clean() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().exact_ms = 3600000;  // were it waited for, the test would not end
    f.runner().search_all();
    QTest::qWait(20);
    f.window->close();
    f.window.reset();
  }
};

QTEST_MAIN(WindowTest)
#include "window_test.moc"
