// SPDX-License-Identifier: Apache-2.0
// Memory over time through real events, offscreen.
#include "views/memory/memory_view.h"

#include <QApplication>
#include <QBuffer>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QSvgGenerator>
#include <QTest>
#include <QWheelEvent>

#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/memory/device_strip.h"
#include "views/memory/memory_chart.h"
#include "views/schedule_fixture.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

struct Shown {
  SelectionModel selection;
  MemoryView view;
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
  MemoryChart* chart() { return view.chart(); }
};

void point_at(QWidget* widget, QPoint position, Qt::MouseButtons buttons = Qt::NoButton,
              Qt::KeyboardModifiers modifiers = {}) {
  QMouseEvent move(QEvent::MouseMove, QPointF(position), QPointF(widget->mapToGlobal(position)), Qt::NoButton, buttons,
                   modifiers);
  QApplication::sendEvent(widget, &move);
}

SchedulePtr tight() {
  fixture::PipelineOptions options;
  options.limit = std::int64_t(4) << 30;
  return fixture::pipeline(options);
}

}  // namespace

class MemoryViewTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { QApplication::setPalette(make_palette(false)); }

  void the_fullest_device_is_shown_until_one_is_picked() {
    Shown s(fixture::pipeline());
    std::uint32_t fullest = 0;
    for (std::uint32_t d = 0; d < 4; ++d)
      if (s.schedule->devices[d].peak_bytes > s.schedule->devices[fullest].peak_bytes) fullest = d;
    QCOMPARE(s.chart()->device(), fullest);
    s.selection.pick_device(3);
    QCOMPARE(s.chart()->device(), 3u);
    QVERIFY(s.view.words().startsWith(QStringLiteral("device 3")));
    QTest::mouseClick(s.view.strip()->viewport(), Qt::LeftButton, {}, s.view.strip()->row(1).center().toPoint());
    QCOMPARE(s.selection.device(), 1u);
    QCOMPARE(s.chart()->device(), 1u);
    QTest::keyClick(s.chart(), Qt::Key_Down);
    QCOMPARE(s.selection.device(), 2u);
    QTest::keyClick(s.view.strip(), Qt::Key_Up);
    QCOMPARE(s.selection.device(), 1u);
    s.selection.pick_device(kNone);
    QCOMPARE(s.chart()->device(), fullest);
  }

  void every_column_reaches_its_maximum() {
    // The highest painted pixel of a column is the direct maximum over all samples below it.
    Shown s(fixture::layered(6000, 4, fixture::Placing::scattered));
    const auto frame = s.chart()->frame();
    const QImage image = s.chart()->grab().toImage();
    const auto& theme = theme_colors(s.view.palette());
    const std::uint32_t d = s.chart()->device();
    const auto& samples = s.schedule->memory[d];
    int compared = 0;
    for (int x = 3; x < int(frame.plot.width()) - 3; x += 5) {
      const double from = frame.window.at(frame.plot.left() + x), to = frame.window.at(frame.plot.left() + x + 1);
      std::int64_t most = 0;
      for (std::size_t i = 0; i < samples.size(); ++i)
        if (samples[i].time_s < to && (i + 1 == samples.size() || samples[i + 1].time_s > from))
          most = std::max(most, s.schedule->total_at(d, samples[i]));
      const double expected = frame.y(double(most));
      const auto at = [&](int y) { return image.pixelColor(int(frame.plot.left()) + x, y); };
      const auto filled = [&](int y) { return at(y) == theme.memory[3] || at(y) == theme.memory[4]; };
      int top = int(frame.plot.top());
      while (top < int(frame.plot.bottom()) && !filled(top)) ++top;
      // Words and marks on the plot may hide a column's top.
      if (top >= int(frame.plot.bottom()) - 1 || (at(top - 1) != theme.base && at(top - 1) != theme.grid)) continue;
      QVERIFY2(std::abs(top - expected) <= 1.01, qPrintable(QStringLiteral("%1: %2 %3").arg(x).arg(top).arg(expected)));
      ++compared;
    }
    QVERIFY2(compared > 20, qPrintable(QString::number(compared)));
  }

  void what_is_missing_is_said() {
    Shown s(tight());
    s.chart()->grab();
    const Schedule::Device& device = s.schedule->devices[s.chart()->device()];
    const QString words = s.chart()->limit_words();
    QVERIFY2(words.contains(memory_text(device.peak_bytes - device.memory_limit) + QStringLiteral(" missing")),
             qPrintable(words));
    QVERIFY(words.contains(time_text(device.peak_at_s)));
    QVERIFY(s.view.words().contains(QStringLiteral("4 of 4 devices over")));
    Shown fits(fixture::pipeline());
    fits.chart()->grab();
    QVERIFY(!fits.chart()->limit_words().contains(QStringLiteral("missing")));
    QVERIFY(fits.chart()->limit_words().contains(QStringLiteral("16.0")));
  }

  void a_limit_far_away_is_out_of_the_scale_unless_wanted() {
    fixture::PipelineOptions roomy;
    roomy.limit = std::int64_t(80) << 30;
    Shown s(fixture::pipeline(roomy));
    const double peak = double(s.schedule->devices[s.chart()->device()].peak_bytes);
    QVERIFY(s.chart()->frame().top_bytes >= peak && s.chart()->frame().top_bytes < 2 * peak);
    s.chart()->grab();
    QVERIFY(s.chart()->limit_words().contains(QStringLiteral("beyond the scale")));
    s.view.scale_button()->click();
    QVERIFY(s.chart()->frame().top_bytes >= double(roomy.limit));
    s.chart()->grab();
    QVERIFY(!s.chart()->limit_words().contains(QStringLiteral("beyond the scale")));
  }

  void hover_adds_up() {
    Shown s(fixture::pipeline());
    const auto frame = s.chart()->frame();
    point_at(s.chart(), QPointF(frame.plot.left() + 200.0, frame.plot.center().y()).toPoint());
    QVERIFY(s.selection.hovered_time().has_value());
    const HoverText& text = s.chart()->hover_text();
    QVERIFY(text.size() >= 7);
    const QString words = plain_text(text);
    const std::uint32_t d = s.chart()->device();
    const auto summary = MemoryView::prepare(s.schedule);
    const auto sample =
        summary->fullest(d, *s.selection.hovered_time(), *s.selection.hovered_time() + frame.window.per_pixel());
    const auto parts = s.chart()->parts(sample);
    QCOMPARE(parts[0] + parts[1] + parts[2] + parts[3], summary->total(d, sample));
    QCOMPARE(text.front().right, memory_text(summary->total(d, sample)));
    QVERIFY(words.contains(QStringLiteral("tensors")));
    QEvent leave(QEvent::Leave);
    QApplication::sendEvent(s.chart(), &leave);
    QVERIFY(!s.selection.hovered_time());
    QVERIFY(s.chart()->hover_text().empty());
  }

  void wheel_drag_and_keys() {
    Shown s(fixture::pipeline());
    const auto frame = s.chart()->frame();
    const QPoint at = frame.plot.center().toPoint();
    const double still = frame.window.at(at.x());
    for (int i = 0; i < 10; ++i) {
      QWheelEvent wheel(QPointF(at), QPointF(s.chart()->mapToGlobal(at)), {}, QPoint(0, 120), Qt::NoButton, {},
                        Qt::NoScrollPhase, false);
      QApplication::sendEvent(s.chart(), &wheel);
    }
    QVERIFY(!s.chart()->time().fitted());
    QVERIFY(std::abs(s.chart()->frame().window.at(at.x()) - still) < s.schedule->makespan_s * 1e-6);
    const double from = s.chart()->time().from();
    QTest::mousePress(s.chart(), Qt::LeftButton, {}, at);
    point_at(s.chart(), at - QPoint(40, 0), Qt::LeftButton);
    point_at(s.chart(), at - QPoint(80, 0), Qt::LeftButton);
    QTest::mouseRelease(s.chart(), Qt::LeftButton, {}, at - QPoint(80, 0));
    QVERIFY(s.chart()->time().from() > from);
    QTest::mouseDClick(s.chart(), Qt::LeftButton, {}, at);
    QVERIFY(s.chart()->time().fitted());
    QTest::keyClick(s.chart(), Qt::Key_P);
    const double peak = s.schedule->devices[s.chart()->device()].peak_at_s;
    QVERIFY(s.chart()->time().from() <= peak && s.chart()->time().to() >= peak && !s.chart()->time().fitted());
    QTest::keyClick(s.chart(), Qt::Key_Home);
    QVERIFY(s.chart()->time().fitted());
  }

  void range_and_cursor_are_shared_with_the_timeline() {
    Shown s(fixture::pipeline());
    TimelineView timeline;
    timeline.set_selection(&s.selection);
    timeline.set_schedule(s.schedule);
    timeline.resize(900, 300);
    timeline.show();
    (void)QTest::qWaitForWindowExposed(&timeline);
    timeline.canvas()->show_time(0, 0.05);
    const auto frame = s.chart()->frame();
    const QPoint a(int(frame.plot.left()) + 300, int(frame.ruler.center().y())), b = a + QPoint(60, 0);
    QTest::mousePress(s.chart(), Qt::LeftButton, {}, a);
    point_at(s.chart(), a + QPoint(30, 0), Qt::LeftButton);
    point_at(s.chart(), b, Qt::LeftButton);
    QTest::mouseRelease(s.chart(), Qt::LeftButton, {}, b);
    QVERIFY(s.selection.time_range().has_value());
    const auto range = *s.selection.time_range();
    QVERIFY(std::abs(range.first - frame.window.at(a.x())) < 1e-9 &&
            std::abs(range.second - frame.window.at(b.x())) < 1e-9);
    QVERIFY(timeline.canvas()->time().from() <= range.first && timeline.canvas()->time().to() >= range.second);
    // The cursor of one view is drawn in the other.
    s.selection.hover_time(std::nullopt);
    const QImage without = timeline.canvas()->viewport()->grab().toImage();
    point_at(s.chart(), QPoint(a.x() + 20, int(frame.plot.center().y())));
    QVERIFY(timeline.canvas()->viewport()->grab().toImage() != without);
    QTest::mouseClick(s.chart(), Qt::LeftButton, {}, a);
    QVERIFY(!s.selection.time_range());
  }

  void odd_schedules_are_said_in_words() {
    Shown unrecorded(fixture::plain(12, 1e-3, false));
    QVERIFY(!unrecorded.view.scale_button()->isEnabled());
    unrecorded.chart()->grab();
    for (const SchedulePtr& schedule : {fixture::plain(3, 0), fixture::plain(1, 1.0), SchedulePtr()}) {
      Shown s(schedule, QSize(420, 200));
      QVERIFY(!s.view.strip()->isVisible());
      s.view.grab();
      point_at(s.chart(), QPoint(120, 60));
      for (const auto key : {Qt::Key_Left, Qt::Key_Plus, Qt::Key_P, Qt::Key_Escape, Qt::Key_Down, Qt::Key_Home})
        QTest::keyClick(s.chart(), key);
      QTest::mouseClick(s.chart(), Qt::LeftButton, {}, QPoint(120, 60));
    }
  }

  void state_and_pictures() {
    Shown s(tight());
    s.view.scale_button()->setChecked(true);
    MemoryView other;
    other.restore_state(s.view.save_state());
    QVERIFY(other.scale_button()->isChecked());
    QByteArray svg;
    QBuffer buffer(&svg);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(QSize(900, 300));
    QPainter painter(&generator);
    s.view.paint_to(painter, QSize(900, 300));
    painter.end();
    QVERIFY(svg.contains("device 2"));
    QVERIFY(svg.contains("missing"));
  }
};

QTEST_MAIN(MemoryViewTest)
#include "memory_view_test.moc"
