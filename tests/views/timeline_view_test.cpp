// SPDX-License-Identifier: Apache-2.0
// The timeline through real events, offscreen.
#include "views/timeline/timeline_view.h"

#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QSet>
#include <QSignalSpy>
#include <QSvgGenerator>
#include <QTest>
#include <QTimer>
#include <QWheelEvent>

#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/schedule_fixture.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_words.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

struct Shown {
  SelectionModel selection;
  TimelineView view;
  SchedulePtr schedule;
  explicit Shown(SchedulePtr s, QSize size = QSize(1000, 420)) : schedule(std::move(s)) {
    selection.follow_schedule(schedule);
    view.set_selection(&selection);
    view.set_message({});
    view.set_schedule(schedule);
    view.resize(size);
    view.show();
    (void)QTest::qWaitForWindowExposed(&view);
  }
  TimelineCanvas* canvas() { return view.canvas(); }
  QWidget* surface() { return view.canvas()->viewport(); }
  TimelineLayout layout() { return canvas()->view().layout; }
  /// An item in the middle of a device's compute lane, brought close.
  std::uint32_t shown_item(std::uint32_t device, double where = 0.5) {
    for (const Schedule::Lane& lane : schedule->lanes)
      if (lane.device == device && lane.kind == LaneKind::compute) {
        const auto item = lane.begin + std::uint32_t((lane.end - lane.begin) * where);
        canvas()->reveal(item, true);
        return item;
      }
    return kNone;
  }
  QPoint point_of(std::uint32_t item) { return canvas()->item_rect(item).center().toPoint(); }
};

void point_at(QWidget* widget, QPoint position, Qt::MouseButtons buttons = Qt::NoButton,
              Qt::KeyboardModifiers modifiers = {}) {
  QMouseEvent move(QEvent::MouseMove, QPointF(position), QPointF(widget->mapToGlobal(position)), Qt::NoButton, buttons,
                   modifiers);
  QApplication::sendEvent(widget, &move);
}

void drag(QWidget* widget, QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {}) {
  QTest::mousePress(widget, Qt::LeftButton, modifiers, from);
  for (int i = 1; i <= 4; ++i) point_at(widget, from + (to - from) * i / 4, Qt::LeftButton, modifiers);
  QTest::mouseRelease(widget, Qt::LeftButton, modifiers, to);
}

void turn_wheel(QWidget* widget, QPoint position, int angle, Qt::KeyboardModifiers modifiers = {}) {
  QWheelEvent event(QPointF(position), QPointF(widget->mapToGlobal(position)), {}, QPoint(0, angle), Qt::NoButton,
                    modifiers, Qt::NoScrollPhase, false);
  QApplication::sendEvent(widget, &event);
}

bool has(const QImage& image, const QRect& area, const QColor& color) {
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x)
      if (image.rect().contains(x, y) && image.pixel(x, y) == color.rgb()) return true;
  return false;
}

}  // namespace

class TimelineViewTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { QApplication::setPalette(make_palette(false)); }

  void every_device_has_its_lane_in_its_colours() {
    Shown s(fixture::pipeline());
    const std::uint32_t item = s.shown_item(1);
    const QImage image = s.surface()->grab().toImage();
    const auto& theme = theme_colors(s.view.palette());
    const auto kind = s.schedule->graph->kind[s.schedule->task[item]];
    QCOMPARE(image.pixelColor(s.point_of(item).x(), int(s.canvas()->item_rect(item).top()) + 2).rgb(),
             theme.compute[std::size_t(kind)].rgb());
    QVERIFY(s.view.words().contains(QStringLiteral("busy")));
  }

  void a_click_picks_the_task_and_its_operator() {
    Shown s(fixture::pipeline());
    const std::uint32_t item = s.shown_item(2);
    QTest::mouseClick(s.surface(), Qt::LeftButton, {}, s.point_of(item));
    const TaskIndex task = s.schedule->task[item];
    QVERIFY(s.selection.tasks() == std::set<TaskIndex>{task});
    QVERIFY(s.selection.operators().contains(s.schedule->operator_of_task(task)));
    QCOMPARE(s.canvas()->current(), item);
    // Ctrl adds and takes away; the ground clears.
    const std::uint32_t other = item + 1;
    QTest::mouseClick(s.surface(), Qt::LeftButton, Qt::ControlModifier, s.point_of(other));
    QVERIFY(s.selection.tasks().contains(s.schedule->task[other]));
    QVERIFY(s.selection.tasks().contains(task));
    QTest::mouseClick(s.surface(), Qt::LeftButton, {},
                      QPoint(int(s.layout().lanes.right()) - 2, int(s.layout().row_top(0)) + 6));
    s.canvas()->setFocus();
    QTest::keyClick(s.canvas(), Qt::Key_Escape);
    QTest::keyClick(s.canvas(), Qt::Key_Escape);
    QVERIFY(s.selection.tasks().empty());
  }

  void hover_says_what_it_is_and_tells_others() {
    Shown s(fixture::pipeline());
    const std::uint32_t item = s.shown_item(1);
    point_at(s.surface(), s.point_of(item));
    QCOMPARE(s.selection.hovered_task(), s.schedule->task[item]);
    QVERIFY(s.selection.hovered_time().has_value());
    QVERIFY(*s.selection.hovered_time() >= s.schedule->start_s[item] &&
            *s.selection.hovered_time() <= s.schedule->end_s[item]);
    const QString words = plain_text(s.canvas()->hover_text());
    QVERIFY(words.contains(to_qt(s.schedule->graph->names[s.schedule->task[item]])));
    QVERIFY(words.contains(QStringLiteral("device 1")));
    QEvent leave(QEvent::Leave);
    QApplication::sendEvent(s.surface(), &leave);
    QCOMPARE(s.selection.hovered_task(), kNone);
    QVERIFY(!s.selection.hovered_time());
    QVERIFY(s.canvas()->hover_text().empty());
  }

  void transfers_name_both_ends() {
    Shown s(fixture::pipeline());
    std::uint32_t transfer = 0;
    while (!s.schedule->is_transfer(transfer)) ++transfer;
    s.canvas()->reveal(transfer, true);
    point_at(s.surface(), s.point_of(transfer));
    const QString words = plain_text(s.canvas()->hover_text());
    QVERIFY2(words.contains(QStringLiteral("device 0 \u2192 device 1")), qPrintable(words));
    QVERIFY(words.contains(QStringLiteral("transfer")));
    QVERIFY(words.contains(QStringLiteral("MiB")));
  }

  void the_wheel_zooms_about_the_pointer() {
    Shown s(fixture::pipeline());
    const QPoint at(600, int(s.layout().row_top(1)) + 10);
    const double before = s.canvas()->view().window.at(at.x());
    for (int i = 0; i < 20; ++i) turn_wheel(s.surface(), at, 120);
    QVERIFY(s.canvas()->time().to() - s.canvas()->time().from() < s.schedule->makespan_s / 50);
    QVERIFY(std::abs(s.canvas()->view().window.at(at.x()) - before) < s.schedule->makespan_s * 1e-6);
    const double from = s.canvas()->time().from();
    turn_wheel(s.surface(), at, -120, Qt::ShiftModifier);
    QVERIFY(s.canvas()->time().from() > from);
    QVERIFY(s.view.words().contains(QStringLiteral("on show")));
    QTest::keyClick(s.canvas(), Qt::Key_F);
    QVERIFY(s.canvas()->time().fitted());
  }

  void a_drag_pans_and_shift_picks_a_range() {
    Shown s(fixture::pipeline());
    s.canvas()->show_time(0.2, 0.4);
    const QPoint a(400, int(s.layout().row_top(3)) + 8);
    drag(s.surface(), a, a - QPoint(100, 0));
    QVERIFY(s.canvas()->time().from() > 0.21);
    QVERIFY(s.selection.tasks().empty());
    const double from = s.canvas()->view().window.at(400), to = s.canvas()->view().window.at(500);
    drag(s.surface(), a, a + QPoint(100, 0), Qt::ShiftModifier);
    QVERIFY(s.selection.time_range().has_value());
    QVERIFY(std::abs(s.selection.time_range()->first - from) < 1e-9);
    QVERIFY(std::abs(s.selection.time_range()->second - to) < 1e-9);
    // On the ruler no key is needed, and a click there clears it.
    drag(s.surface(), QPoint(600, 5), QPoint(550, 5));
    QVERIFY(std::abs(s.selection.time_range()->second - s.canvas()->view().window.at(600)) < 1e-9);
    QTest::mouseClick(s.surface(), Qt::LeftButton, {}, QPoint(650, 5));
    QVERIFY(!s.selection.time_range());
  }

  void a_double_click_fits_a_task_and_then_everything() {
    Shown s(fixture::pipeline());
    const std::uint32_t item = s.shown_item(2);
    QTest::mouseDClick(s.surface(), Qt::LeftButton, {}, s.point_of(item));
    const QRectF rect = s.canvas()->item_rect(item), lanes = s.layout().lanes;
    QVERIFY(rect.width() > lanes.width() / 2 && rect.left() >= lanes.left() && rect.right() <= lanes.right());
    QTest::mouseDClick(s.surface(), Qt::LeftButton, {}, QPoint(500, int(s.layout().row_top(0)) + 1));
    QVERIFY(s.canvas()->time().fitted());
  }

  void the_overview_moves_the_window() {
    Shown s(fixture::pipeline());
    s.canvas()->show_time(0.0, 0.1);
    const QRectF strip = s.layout().overview;
    QTest::mouseClick(s.surface(), Qt::LeftButton, {},
                      QPointF(strip.left() + strip.width() * 0.7, strip.center().y()).toPoint());
    const double middle = (s.canvas()->time().from() + s.canvas()->time().to()) / 2;
    QVERIFY(std::abs(middle - 0.7 * s.schedule->makespan_s) < s.schedule->makespan_s * 0.01);
    QVERIFY(std::abs(s.canvas()->time().to() - s.canvas()->time().from() - 0.1) < 1e-6);
  }

  void the_gutter_picks_a_device() {
    Shown s(fixture::pipeline());
    const QPoint at(20, int(s.layout().row_top(2) + s.layout().pitch / 2));
    QTest::mouseClick(s.surface(), Qt::LeftButton, {}, at);
    QCOMPARE(s.selection.device(), 2u);
    point_at(s.surface(), at);
    QVERIFY(plain_text(s.canvas()->hover_text()).contains(QStringLiteral("peak memory")));
    QTest::mouseClick(s.surface(), Qt::LeftButton, {}, at);
    QCOMPARE(s.selection.device(), kNone);
  }

  void keys_walk_items_and_devices() {
    Shown s(fixture::pipeline());
    s.canvas()->setFocus();
    QTest::keyClick(s.canvas(), Qt::Key_Right);
    const std::uint32_t first = s.canvas()->current();
    QVERIFY(first != kNone);
    QTest::keyClick(s.canvas(), Qt::Key_Right);
    QCOMPARE(s.canvas()->current(), first + 1);
    QTest::keyClick(s.canvas(), Qt::Key_Left);
    QCOMPARE(s.canvas()->current(), first);
    QVERIFY(s.selection.tasks().contains(s.schedule->task[first]));
    QTest::keyClick(s.canvas(), Qt::Key_Down);
    QVERIFY(s.schedule->is_transfer(s.canvas()->current()));
    QTest::keyClick(s.canvas(), Qt::Key_Return);
    QVERIFY(!s.canvas()->time().fitted());
    QTest::keyClick(s.canvas(), Qt::Key_Home);
    QVERIFY(s.canvas()->time().fitted());
    QTest::keyClick(s.canvas(), Qt::Key_Plus);
    QVERIFY(!s.canvas()->time().fitted());
    QVERIFY(!s.canvas()->accessibleDescription().isEmpty());
  }

  void what_is_picked_elsewhere_comes_into_sight() {
    Shown s(fixture::layered(4000, 64, fixture::Placing::scattered), QSize(900, 300));
    QVERIFY(s.canvas()->verticalScrollBar()->maximum() > 0);
    s.canvas()->show_time(0, s.schedule->makespan_s / 40);
    TaskIndex task = 0;
    while (s.schedule->device_of[task] != 60 ||
           s.schedule->start_s[s.schedule->item_of[task]] < s.schedule->makespan_s / 2)
      ++task;
    s.selection.pick_tasks({task});
    QVERIFY(s.layout().lanes.intersects(s.canvas()->item_rect(s.schedule->item_of[task])));
    const double span = s.canvas()->time().to() - s.canvas()->time().from();
    QVERIFY(std::abs(span - s.schedule->makespan_s / 40) < span * 1e-6);
    s.selection.pick_device(3);
    QVERIFY(s.layout().first_device() <= 3);
    s.selection.pick_time_range(std::pair(0.0, s.schedule->makespan_s / 50));
    QVERIFY(s.canvas()->time().from() <= 0);
  }

  void search_goes_from_match_to_match() {
    Shown s(fixture::pipeline());
    s.view.find_box()->setText(QStringLiteral("l3/attention:mb1"));
    QTest::keyClick(s.view.find_box(), Qt::Key_Return);
    QCOMPARE(s.selection.tasks().size(), std::size_t(1));
    const TaskIndex task = *s.selection.tasks().begin();
    QCOMPARE(to_qt(s.schedule->graph->names[task]), QStringLiteral("L3/attention:mb1"));
    const QRectF rect = s.canvas()->item_rect(s.schedule->item_of[task]);
    QVERIFY(rect.width() > 100 && s.layout().lanes.contains(rect.center()));
    s.view.find_box()->setText(QStringLiteral("L3/attention"));
    QTest::keyClick(s.view.find_box(), Qt::Key_Return);
    QVERIFY(*s.selection.tasks().begin() != task);
    QTest::keyClick(s.view.find_box(), Qt::Key_Return, Qt::ShiftModifier);
    QCOMPARE(*s.selection.tasks().begin(), task);
  }

  void picked_items_stand_out() {
    Shown s(fixture::pipeline());
    const std::uint32_t item = s.shown_item(1);
    const auto& theme = theme_colors(s.view.palette());
    const QColor full = theme.compute[std::size_t(s.schedule->graph->kind[s.schedule->task[item]])];
    s.selection.pick_tasks({s.schedule->task[item]});
    const QImage image = s.surface()->grab().toImage();
    const QRect rect = s.canvas()->item_rect(item).toRect(), other = s.canvas()->item_rect(item + 1).toRect();
    QVERIFY(has(image, rect, full));
    QVERIFY(has(image, rect.adjusted(-1, -1, 1, 1), theme.text));
    QVERIFY(!has(image, other.adjusted(4, 4, -8, -4), full));
  }

  void the_critical_path_stands_out() {
    Shown s(fixture::pipeline());
    QSet<std::uint32_t> path;
    for (const auto item : s.schedule->critical) path.insert(item);
    std::uint32_t off = s.schedule->lanes[0].begin;
    while (path.contains(off)) ++off;
    s.canvas()->reveal(off, true);
    s.view.path_button()->click();
    QVERIFY(s.canvas()->critical());
    const QImage image = s.surface()->grab().toImage();
    const auto& theme = theme_colors(s.view.palette());
    QVERIFY(!has(image, s.canvas()->item_rect(off).toRect().adjusted(4, 4, -8, -4), theme.compute[0]));
    s.canvas()->reveal(s.schedule->critical.front(), true);
    const QImage on = s.surface()->grab().toImage();
    QVERIFY(has(on, s.canvas()->item_rect(s.schedule->critical.front()).toRect(), theme.compute[0]));
  }

  void the_menu_copies_and_zooms() {
    Shown s(fixture::pipeline());
    const std::uint32_t item = s.shown_item(1);
    const auto choose = [&](const QString& text) {
      QTimer::singleShot(0, [&] {
        auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
        QVERIFY(menu);
        for (QAction* action : menu->actions())
          if (action->text() == text) action->trigger();
        menu->close();
      });
      QContextMenuEvent event(QContextMenuEvent::Mouse, s.point_of(item), s.surface()->mapToGlobal(s.point_of(item)));
      QApplication::sendEvent(s.surface(), &event);
    };
    choose(QStringLiteral("Copy name"));
    QCOMPARE(QApplication::clipboard()->text(), to_qt(s.schedule->graph->names[s.schedule->task[item]]));
    choose(QStringLiteral("Copy start and end in seconds"));
    const QStringList times = QApplication::clipboard()->text().split(u'\t');
    QCOMPARE(times.size(), 2);
    QCOMPARE(times[0].toDouble(), s.schedule->start_s[item]);
    QCOMPARE(times[1].toDouble(), s.schedule->end_s[item]);
    QSignalSpy exports(&s.view, &TimelineView::export_requested);
    choose(QStringLiteral("Picture as SVG\u2026"));
    QCOMPARE(exports.size(), 1);
    QCOMPARE(exports[0][0].toString(), QStringLiteral("svg"));
  }

  void another_schedule_starts_afresh() {
    Shown s(fixture::pipeline());
    s.canvas()->show_time(0.1, 0.2);
    s.selection.pick_tasks({3});
    const auto other = fixture::plain(5, 1e-3);
    // Picks of the old schedule mean nothing in the new one.
    s.view.set_schedule(other);
    QVERIFY(s.canvas()->time().fitted());
    QCOMPARE(s.canvas()->time().makespan(), other->makespan_s);
    QVERIFY(s.canvas()->view().picked->empty());
    s.selection.follow_schedule(other);
    s.selection.pick_tasks({3});
    QCOMPARE(s.canvas()->view().picked->size(), std::size_t(1));
    s.view.set_schedule(nullptr);
    s.view.set_message(QStringLiteral("being simulated"));
    QVERIFY(!s.view.color_box()->isEnabled());
    s.surface()->grab();
    for (const auto key : {Qt::Key_Left, Qt::Key_F, Qt::Key_Escape, Qt::Key_Return}) QTest::keyClick(s.canvas(), key);
    QTest::mouseClick(s.surface(), Qt::LeftButton, {}, QPoint(100, 100));
    turn_wheel(s.surface(), QPoint(100, 100), 120);
  }

  void hundreds_of_devices_scroll() {
    Shown s(fixture::layered(3000, 256, fixture::Placing::scattered), QSize(900, 300));
    QVERIFY(s.layout().pitch >= 12);
    turn_wheel(s.surface(), QPoint(20, 100), -1200);
    QVERIFY(s.layout().first_device() > 10);
    const std::uint32_t device = s.layout().device_at(120);
    QTest::mouseClick(s.surface(), Qt::LeftButton, {}, QPoint(20, 120));
    QCOMPARE(s.selection.device(), device);
  }

  // A grey picture tells nothing: where all tasks are of the one kind that says nothing, colours mean something else.
  void colours_mean_what_tells_tasks_apart_until_the_user_says_otherwise() {
    const auto of_kind = [](TaskKind kind, int scopes) {
      TaskGraphBuilder builder;
      for (int t = 0; t < 40; ++t) {
        TaskGraphBuilder::Task task;
        const std::string name = fmt::format("n{}", t);
        task.name = name, task.kind = kind, task.time_s = 1e-3 * (1 + t % 7);
        if (scopes > 0) task.scope = builder.scope(fmt::format("part{}", t % scopes));
        builder.add_task(task);
      }
      auto graph = builder.finish("kinds");
      if (!graph) qFatal("%s", graph.error().message().c_str());
      Placement placement;
      placement.devices = 2;
      placement.device.assign((*graph)->task_count(), 0);
      return fixture::simulated(*graph, placement);
    };
    TimelineView view;
    view.set_schedule(of_kind(TaskKind::other, 0));
    QCOMPARE(view.color_box()->currentIndex(), int(TimelineColor::duration));
    view.set_schedule(of_kind(TaskKind::other, 5));
    QCOMPARE(view.color_box()->currentIndex(), int(TimelineColor::layer));
    view.set_schedule(of_kind(TaskKind::forward, 0));
    QCOMPARE(view.color_box()->currentIndex(), int(TimelineColor::kind));
    // What was chosen stays, here and in a session.
    view.color_box()->setCurrentIndex(int(TimelineColor::layer));
    emit view.color_box()->activated(int(TimelineColor::layer));
    view.set_schedule(of_kind(TaskKind::other, 0));
    QCOMPARE(view.color_box()->currentIndex(), int(TimelineColor::layer));
    TimelineView other;
    other.restore_state(view.save_state());
    other.set_schedule(of_kind(TaskKind::other, 0));
    QCOMPARE(other.color_box()->currentIndex(), int(TimelineColor::layer));
  }

  void state_and_pictures() {
    Shown s(fixture::pipeline());
    s.view.color_box()->setCurrentIndex(2);
    s.view.path_button()->setChecked(true);
    TimelineView other;
    other.restore_state(s.view.save_state());
    QCOMPARE(other.color_box()->currentIndex(), 2);
    QVERIFY(other.path_button()->isChecked());
    other.restore_state({{QStringLiteral("colour"), 77}});
    QCOMPARE(other.color_box()->currentIndex(), 2);
    QByteArray svg;
    QBuffer buffer(&svg);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(QSize(800, 300));
    QPainter painter(&generator);
    s.view.paint_to(painter, QSize(800, 300));
    painter.end();
    QVERIFY(svg.contains("device 2"));
  }
};

QTEST_MAIN(TimelineViewTest)
#include "timeline_view_test.moc"
