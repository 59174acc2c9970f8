// SPDX-License-Identifier: Apache-2.0
// Both views of time in every state, light and dark, wide and small: something is drawn, and nothing outside of its
// place. With TURNPOINT_SCREENSHOTS=<folder> the pictures are written there, for looking at them.
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QMouseEvent>
#include <QSet>
#include <QTest>
#include <functional>

#include "core/schedule/plan_schedule.h"
#include "search/scenarios.h"
#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/memory/memory_chart.h"
#include "views/memory/memory_view.h"
#include "views/schedule_fixture.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

void keep(const QImage& image, const QString& name) {
  const QString folder = qEnvironmentVariable("TURNPOINT_SCREENSHOTS");
  if (folder.isEmpty()) return;
  QDir().mkpath(folder);
  QVERIFY(image.save(folder + QLatin1Char('/') + name + QStringLiteral(".png")));
}

void point_at(QWidget* widget, QPoint position) {
  QMouseEvent move(QEvent::MouseMove, QPointF(position), QPointF(widget->mapToGlobal(position)), Qt::NoButton,
                   Qt::NoButton, {});
  QApplication::sendEvent(widget, &move);
}

int colors_in(const QImage& image) {
  QSet<QRgb> seen;
  for (int y = 0; y < image.height(); y += 3)
    for (int x = 0; x < image.width(); x += 2) seen.insert(image.pixel(x, y));
  return int(seen.size());
}

}  // namespace

class TimelinePicturesTest : public QObject {
  Q_OBJECT

  template <class View>
  QImage picture(View& view, QSize size) {
    view.resize(size);
    view.show();
    (void)QTest::qWaitForWindowExposed(&view);
    return view.grab().toImage();
  }

 private slots:
  void looks_data() {
    QTest::addColumn<bool>("dark");
    QTest::addColumn<QSize>("size");
    for (const bool dark : {false, true})
      for (const QSize size : {QSize(1600, 420), QSize(900, 300)})
        QTest::addRow("%s %d", dark ? "dark" : "light", size.width()) << dark << size;
  }

  void looks() {
    QFETCH(bool, dark);
    QFETCH(QSize, size);
    const QPalette before = QApplication::palette();
    QApplication::setPalette(make_palette(dark));
    const QString tail =
        QStringLiteral("-%1-%2").arg(dark ? QStringLiteral("dark") : QStringLiteral("light")).arg(size.width());
    const auto both = [&](const QString& name, const SchedulePtr& schedule,
                          const std::function<void(SelectionModel&, TimelineView&, MemoryView&)>& prepare = {}) {
      QVERIFY(schedule);
      SelectionModel selection;
      selection.follow_schedule(schedule);
      TimelineView timeline;
      MemoryView memory;
      timeline.set_selection(&selection);
      memory.set_selection(&selection);
      timeline.set_message({});
      memory.set_message({});
      timeline.set_schedule(schedule);
      memory.set_schedule(schedule);
      picture(timeline, size);
      picture(memory, size);
      if (prepare) prepare(selection, timeline, memory);
      const QImage a = picture(timeline, size), b = picture(memory, size);
      QVERIFY(colors_in(a) > 6);
      QVERIFY(colors_in(b) > 6);
      keep(a, QStringLiteral("timeline-") + name + tail);
      keep(b, QStringLiteral("memory-") + name + tail);
    };
    const auto pipeline = fixture::pipeline();
    both(QStringLiteral("pipeline"), pipeline);
    both(QStringLiteral("critical"), pipeline, [](SelectionModel& s, TimelineView& t, MemoryView&) {
      t.path_button()->setChecked(true);
      s.pick_device(2);
    });
    both(QStringLiteral("picked"), pipeline, [](SelectionModel& s, TimelineView& t, MemoryView& m) {
      s.pick_operators({OperatorId(13u)});
      s.pick_time_range(std::pair(0.1, 0.16));
      t.color_box()->setCurrentIndex(1);
      point_at(m.chart(), QPoint(320, 120));
    });
    both(QStringLiteral("zoomed"), pipeline, [](SelectionModel&, TimelineView& t, MemoryView& m) {
      t.canvas()->show_time(0.1, 0.13);
      m.chart()->show_time(0.1, 0.13);
      t.color_box()->setCurrentIndex(2);
    });
    both(QStringLiteral("hover"), pipeline, [](SelectionModel&, TimelineView& t, MemoryView& m) {
      t.canvas()->show_time(0.26, 0.345);
      const Schedule& shown = *t.canvas()->summary()->schedule();
      const auto& lane = shown.lanes[2];
      const QPointF place = t.canvas()->item_rect(lane.begin + (lane.end - lane.begin) / 3).center();
      point_at(t.canvas()->viewport(), place.x() > 0 ? QPoint(300, int(place.y())) : QPoint(300, 120));
      point_at(m.chart(), QPoint(300, 200));
    });
    fixture::PipelineOptions tight;
    tight.limit = std::int64_t(4) << 30;
    both(QStringLiteral("tight"), fixture::pipeline(tight));
    const auto scenario =
        test::scenario_on(test::builtin("gpt2?layers=4&hidden=1024&sequence=512", 32), "v100-16gb-2x8");
    for (const char* method : {"manual:tp=4:zero=2", "manual:dp=2:tp=2:pp=4:micro-batches=8"}) {
      const auto result = test::run(method, scenario);
      QVERIFY(result.has_value());
      const auto schedule = plan_schedule(*scenario, (*result)->plans->sharding(0));
      QVERIFY(schedule.has_value());
      both(QString::fromLatin1(method).section(u':', 1).replace(u':', u'-'), *schedule,
           [](SelectionModel&, TimelineView& t, MemoryView&) { t.path_button()->setChecked(t.width() < 1000); });
    }
    both(QStringLiteral("layered"), fixture::layered(20000, 16, fixture::Placing::scattered));
    both(QStringLiteral("deep"), fixture::layered(20000, 16, fixture::Placing::lanes),
         [](SelectionModel&, TimelineView& t, MemoryView& m) {
           t.canvas()->show_time(0.0401, 0.0401012);
           m.chart()->show_time(0.0401, 0.0401012);
         });
    both(QStringLiteral("free"), fixture::layered(3000, 6, fixture::Placing::scattered, TaskLinks::Contention::none));
    both(QStringLiteral("many"), fixture::layered(30000, 256, fixture::Placing::scattered));
    both(QStringLiteral("one"), fixture::plain(1, 0.25, true, std::string(300, 'x') + "/a very long name of a task "));
    both(QStringLiteral("unrecorded"), fixture::plain(40, 1e-6, false));
    both(QStringLiteral("instant"), fixture::plain(5, 0));
    TimelineView timeline;
    MemoryView memory;
    timeline.set_message(QStringLiteral("Being simulated: placement pardnn on 16 devices"));
    keep(picture(timeline, size), QStringLiteral("timeline-message") + tail);
    keep(picture(memory, size), QStringLiteral("memory-message") + tail);
    QApplication::setPalette(before);
  }
};

QTEST_MAIN(TimelinePicturesTest)
#include "timeline_pictures_test.moc"
