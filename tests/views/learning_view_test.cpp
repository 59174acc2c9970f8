// SPDX-License-Identifier: Apache-2.0
// The tab of methods that learn: words, what is drawn where, both themes, and reading it by mouse and keys.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>

#include "views/common/format.h"
#include "views/common/theme_colors.h"
#include "views/learning/learning_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

using Plot = LearningChart::Plot;

/// Reward rises by a tenth an iteration, the best time falls in two steps, entropy falls from 2 to 0.
std::vector<LearningPoint> some_points(std::uint64_t count = 20) {
  std::vector<LearningPoint> points;
  for (std::uint64_t i = 1; i <= count; ++i) {
    LearningPoint point;
    point.iteration = i;
    point.calls = 16 * i;
    point.reward = -2 + 0.1 * double(i);
    point.baseline = -2.1 + 0.1 * double(i);
    point.best_s = i < 5 ? 0.100 : i < 12 ? 0.096 : 0.090;
    point.entropy = 2 * (1 - double(i) / double(count));
    points.push_back(point);
  }
  return points;
}

LearningView::Course course(const char* method, std::vector<LearningPoint> points, bool running = true) {
  return {method, QString::fromLatin1(method).toUpper(), running, false, {method, std::move(points), 0.100, {}}};
}

QString plain(QString words) { return words.replace(QChar(0x00A0), u' ').replace(QChar(0x2009), u' '); }

/// Pixels of nearly this colour in a rectangle.
int pixels_like(const QImage& image, const QRectF& where, const QColor& color, int tolerance = 40) {
  int found = 0;
  const QRect area = where.toAlignedRect().intersected(image.rect());
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x) {
      const QColor at = image.pixelColor(x, y);
      found +=
          std::abs(at.red() - color.red()) + std::abs(at.green() - color.green()) + std::abs(at.blue() - color.blue()) <
          tolerance;
    }
  return found;
}

}  // namespace

class LearningViewTest : public QObject {
  Q_OBJECT

 private slots:
  void the_gain_in_words_nothing_included() {
    LearningView view;
    QVERIFY(view.words().isEmpty());
    QVERIFY(view.chart()->data().nothing.contains("learns"));
    QVERIFY(view.show_button()->isHidden());
    view.set_courses({course("trinity", {})});
    QCOMPARE(view.chart()->data().nothing, QString("TRINITY has yet to finish its first iteration"));
    view.set_courses({course("trinity", some_points(4))});
    QCOMPARE(plain(view.words()),
             QString("Best 100 ms, no faster than it began · iteration 4, 64 placements tried · TRINITY"));
    view.set_courses({course("trinity", some_points(20))});
    QVERIFY2(plain(view.words()).startsWith("Best 90.0 ms, 10 % faster than it began"), qPrintable(view.words()));
    auto nothing_fits = some_points(3);
    for (LearningPoint& point : nothing_fits) point.best_s = point.reward = point.baseline = std::nullopt;
    view.set_courses({course("trinity", nothing_fits)});
    QVERIFY2(view.words().startsWith("No placement fits yet"), qPrintable(view.words()));
    view.set_courses({course("trinity", {}, false)});
    QVERIFY(view.chart()->data().nothing.contains("ended before"));
  }

  void one_of_several_is_chosen() {
    LearningView view;
    view.set_courses({course("trinity", some_points(5)), course("hierarchical", some_points(9))});
    QVERIFY(!view.method_box()->isHidden());
    QCOMPARE(view.chosen(), std::string("hierarchical"));
    view.choose("trinity");
    QCOMPARE(view.chart()->data().points.size(), std::size_t(5));
    view.set_courses({course("trinity", some_points(6)), course("hierarchical", some_points(10))});
    QCOMPARE(view.chosen(), std::string("trinity"));  // it stays
    QCOMPARE(view.chart()->data().points.size(), std::size_t(6));
    QSignalSpy asked(&view, &LearningView::placement_requested);
    view.show_button()->click();
    QCOMPARE(asked.takeFirst()[0].value<std::string>(), std::string("trinity"));
    auto shown = course("hierarchical", some_points(10));
    shown.shown_elsewhere = true;
    view.set_courses({shown});
    QVERIFY(view.method_box()->isHidden());
    QVERIFY(!view.show_button()->isEnabled());
  }

  void values_are_drawn_where_they_belong() {
    for (const QSize size : {QSize(1200, 260), QSize(500, 700)})
      for (const bool dark : {false, true}) {
        LearningView view;
        view.setPalette(make_palette(dark));
        view.resize(size);
        view.set_courses({course("trinity", some_points())});
        LearningChart& chart = *view.chart();
        chart.setPalette(make_palette(dark));
        chart.resize(size);
        const auto& points = chart.data().points;
        // Higher values higher up, later iterations further right, all inside their plots, which do not overlap.
        for (const Plot plot : {Plot::reward, Plot::time, Plot::entropy}) {
          const QRectF area = chart.plot_area(plot);
          QVERIFY(QRectF(QPointF(), QSizeF(size)).contains(area));
          for (const Plot other : {Plot::reward, Plot::time, Plot::entropy})
            QVERIFY(plot == other || !area.intersects(chart.plot_area(other)));
          QPointF before;
          for (const LearningPoint& point : points) {
            const double value = plot == Plot::reward ? *point.reward
                                 : plot == Plot::time ? *point.best_s
                                                      : point.entropy;
            const QPointF at = chart.position_of(plot, point, value);
            QVERIFY(area.adjusted(-1, -1, 1, 1).contains(at));
            if (&point != &points.front()) {
              QVERIFY(at.x() > before.x());
              QVERIFY(plot == Plot::reward ? at.y() < before.y() : at.y() >= before.y());
            }
            before = at;
          }
        }
        QImage image(size, QImage::Format_ARGB32);
        QPainter painter(&image);
        painter.setRenderHint(QPainter::Antialiasing);
        chart.paint_to(painter, size);
        painter.end();
        const ThemeColors& colors = theme_colors(chart.palette());
        for (const Plot plot : {Plot::reward, Plot::time, Plot::entropy})
          QVERIFY(pixels_like(image, chart.plot_area(plot), colors.method("trinity")) > 50);
        // The best time stays at its height until it falls.
        const QPointF fifth = chart.position_of(Plot::time, points[4], 0.096);
        const QPointF eleventh = chart.position_of(Plot::time, points[10], 0.096);
        QVERIFY(pixels_like(image, QRectF(fifth, eleventh).adjusted(2, -2, -2, 2), colors.method("trinity")) >
                0.9 * (eleventh.x() - fifth.x() - 4));
        // What it began with, a line of dashes on the left, where the best is it as well, and on the right alone.
        const QPointF last = chart.position_of(Plot::time, points.back(), 0.100);
        // Between two rows of pixels each has some of its colour: nearer to it than to the ground.
        const int half = (std::abs(colors.secondary.red() - colors.base.red()) +
                          std::abs(colors.secondary.green() - colors.base.green()) +
                          std::abs(colors.secondary.blue() - colors.base.blue())) /
                         2;
        QVERIFY(pixels_like(image, QRectF(last.x() - 60, last.y() - 2, 60, 4), colors.secondary, half) > 10);
      }
  }

  void an_iteration_is_read() {
    LearningView view;
    view.resize(1200, 260);
    view.set_courses({course("trinity", some_points())});
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    LearningChart& chart = *view.chart();
    const auto& points = chart.data().points;
    for (const Plot plot : {Plot::reward, Plot::time, Plot::entropy})
      for (const std::size_t i : {0, 7, 19}) {
        const QPointF at(chart.position_of(plot, points[i], 0).x() + 2, chart.plot_area(plot).center().y());
        QCOMPARE(chart.point_at(at), std::optional(i));
      }
    QVERIFY(!chart.point_at(QPointF(2, 2)));
    QCOMPARE(plain(iteration_text(points[11])).split(u'\n').size(), 5);
    QVERIFY(plain(iteration_text(points[11])).contains("Best so far: 90.0 ms"));
    QVERIFY(iteration_text(points[0]).contains(QStringLiteral("\u22121.9")));
    const QImage before = chart.grab().toImage();
    QTest::keyClick(&chart, Qt::Key_Home);
    const QImage first = chart.grab().toImage();
    QVERIFY(first != before);
    QTest::keyClick(&chart, Qt::Key_Right);
    QVERIFY(chart.grab().toImage() != first);
    QTest::keyClick(&chart, Qt::Key_Left);
    QVERIFY(chart.grab().toImage() == first);
    QTest::keyClick(&chart, Qt::Key_Escape);
    QVERIFY(chart.grab().toImage() == before);
  }

  /// One iteration, equal values, none that fits: there is something to see and nothing ends in numbers that are none.
  void odd_courses() {
    for (std::vector<LearningPoint> points : {some_points(1), std::vector<LearningPoint>(3), some_points(2)}) {
      for (std::size_t i = 0; i < points.size(); ++i) points[i].iteration = i + 1;
      LearningView view;
      view.resize(900, 240);
      view.set_courses({{"trinity", "Trinity", true, false, {"trinity", points, std::nullopt, {}}}});
      QVERIFY(!view.grab().toImage().isNull());
      for (const Plot plot : {Plot::reward, Plot::time, Plot::entropy})
        for (const LearningPoint& point : points) {
          const QPointF at = view.chart()->position_of(plot, point, point.entropy);
          QVERIFY(std::isfinite(at.x()) && std::isfinite(at.y()));
        }
    }
  }
};

QTEST_MAIN(LearningViewTest)
#include "learning_view_test.moc"
