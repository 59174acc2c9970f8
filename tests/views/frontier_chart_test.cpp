// SPDX-License-Identifier: Apache-2.0
// The chart without a window around it: ranges, units, labels, points that cannot be drawn.
#include <QPainter>
#include <QtTest>
#include <cmath>
#include <limits>

#include "views/common/format.h"
#include "views/common/method_marks.h"
#include "views/common/selection_model.h"
#include "views/frontier/frontier_chart.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr double kGiB = 1073741824.0;

ResultPoint point(double gib, double seconds) {
  ResultPoint p;
  p.memory_bytes = static_cast<std::int64_t>(gib * kGiB);
  p.time_s = seconds;
  p.compute_s = 0.7 * seconds;
  p.network_s = 0.3 * seconds;
  p.fits = true;
  return p;
}

ChartData chart_of(std::vector<ResultPoint> points, double limit_gib) {
  auto scenario = std::make_shared<Scenario>();
  scenario->model = std::make_shared<Model>();
  scenario->cluster = std::make_shared<Cluster>();
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = "ft";
  result->exact = true;
  result->points = std::move(points);
  ChartData data;
  data.memory_limit = static_cast<std::int64_t>(limit_gib * kGiB);
  data.series.push_back({"ft", QStringLiteral("FT"), true, false, result});
  return data;
}

/// The texts of the chart as it is saved, each as often as it is there.
QString svg_of(FrontierChart& chart) {
  QTemporaryDir folder;
  const QString path = folder.filePath(QStringLiteral("chart.svg"));
  if (!chart.save_svg(path)) return {};
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

}  // namespace

class FrontierChartTest : public QObject {
  Q_OBJECT

 private slots:
  void units_follow_the_data() {
    QCOMPARE(units_for(chart_of({point(4, 0.8), point(8, 0.5)}, 16)).time_name, QStringLiteral("ms"));
    QCOMPARE(units_for(chart_of({point(4, 80), point(8, 12)}, 16)).time_name, QStringLiteral("s"));
    QCOMPARE(units_for(chart_of({point(0.1, 0.8), point(0.2, 0.5)}, 16)).memory_name, QStringLiteral("MiB"));
    const double kib = 1 / 1048576.0;
    QCOMPARE(units_for(chart_of({point(3 * kib, 0.8), point(600 * kib, 0.5)}, 16)).memory_name, QStringLiteral("KiB"));
    QCOMPARE(units_for(chart_of({point(kib, 0.8), point(1024 * kib, 0.5)}, 16)).memory_name, QStringLiteral("MiB"));
    QCOMPARE(units_for(chart_of({point(0.1 * kib, 0.8), point(0.2 * kib, 0.5)}, 16)).memory_name, QStringLiteral("B"));
    const ChartUnits small = units_for(chart_of({point(3 * kib, 0.8), point(600 * kib, 0.5)}, 16));
    QCOMPARE(small.x(600 * 1024.0), 600.0);
    // A task graph that states no bytes needs none.
    QCOMPARE(units_for(chart_of({point(0, 0.5)}, 16)).memory_name, QStringLiteral("GiB"));
  }

  void a_bound_of_many_points_is_drawn_in_as_many_as_pixels() {
    ChartData data = chart_of({point(3, 2), point(8, 1), point(20, 0.8)}, 32);
    auto result = std::make_shared<Result>(*data.series[0].result);
    for (int i = 0; i < 200'000; ++i)
      result->lower_bound.push_back({std::int64_t(3 * kGiB) + i * 90'000ll, 1.9 - i * 5.5e-6});
    data.series[0].result = std::move(result);
    FrontierChart chart;
    chart.resize(800, 500);
    chart.set_data(std::move(data));
    QVERIFY2(svg_of(chart).size() < 100'000, "a painter keeps the room of its longest outline");
  }

  void the_view_holds_every_plan_and_a_near_memory_line() {
    const ChartData data = chart_of({point(3, 2), point(8, 1), point(20, 0.8)}, 16);
    const auto range = fitted_range(data, units_for(data), true, true, false);
    QVERIFY(range);
    QCOMPARE(range->y_low, 0.0);
    QCOMPARE(range->x_low, 0.0);
    QVERIFY(range->x_high > 20 && range->x_high < 25);
    QVERIFY(range->y_high > 2000 && range->y_high < 2600);
  }

  void a_far_memory_line_does_not_squeeze_the_curve() {
    const ChartData data = chart_of({point(0.9, 2), point(1.2, 1)}, 80);
    const auto range = fitted_range(data, units_for(data), true, true, false);
    QVERIFY(range);
    QVERIFY(range->x_high < 2);
    QVERIFY2(range->x_low > 0.5, "all plans need nearly the same memory: the axis starts late");
  }

  // A marker that does not fit, half as far again as all else, is named at the edge; one that fits is shown.
  void the_range_is_that_of_the_frontier_and_what_fits() {
    ChartData data = chart_of({point(3, 2), point(8, 1), point(15, 0.8)}, 16);
    ChartSeries other = data.series[0];
    other.method = "data-parallel", other.frontier = false;
    auto one = std::make_shared<Result>(*other.result);
    one->points = {point(21, 0.9)};
    one->points[0].fits = false;
    other.result = one;
    data.series.push_back(other);
    const auto range = fitted_range(data, units_for(data), true, true, false);
    QVERIFY(range && range->x_high < 20);
    one->points[0].fits = true;
    const auto wide = fitted_range(data, units_for(data), true, true, false);
    QVERIFY(wide && wide->x_high > 21);
  }

  void a_steep_end_is_cut() {
    const ChartData data = chart_of({point(1, 100), point(4, 1.2), point(8, 1)}, 16);
    const auto units = units_for(data);
    const auto linear = fitted_range(data, units, true, true, false);
    QVERIFY(linear && linear->y_high <= kSteepest * 1000 * 1.3);
    const auto logarithmic = fitted_range(data, units, true, true, true);
    QVERIFY(logarithmic && logarithmic->y_high >= 100000);
    QVERIFY(logarithmic->y_low > 0);
  }

  // Slower links pinned beside the live curve: all of the pinned one lies above the live one.
  void a_pinned_frontier_is_in_view() {
    ChartData data = chart_of({point(9.1, 2.7), point(9.2, 2.2), point(13, 2)}, 16);
    data.pinned.push_back({QStringLiteral("slow"), "ft", {point(9.1, 18), point(9.5, 6.7), point(13.7, 3.9)}});
    const auto with = fitted_range(data, units_for(data), true, true, false);
    QVERIFY(with && with->y_high > 6700 && with->y_high < 9000 && with->x_high > 13.7);
    const auto without = fitted_range(data, units_for(data), true, false, false);
    QVERIFY(without && without->y_high < 3500);
    data.pinned.front().points = {point(9.1, 180), point(13.7, 39)};  // another order of magnitude: named, not shown
    const auto far = fitted_range(data, units_for(data), true, true, false);
    QVERIFY(far && far->y_high < 3500);
  }

  // Of what is out of view, the arrow says where: one marker beyond each of the four edges.
  void a_name_at_the_edge_points_to_where_its_marker_is() {
    ChartData data = chart_of({point(6, 1.4), point(8, 1.2), point(10, 1)}, 0);
    const struct {
      const char *method, *title, *arrow;
      ResultPoint at;
    } beyond[] = {{"data-parallel", "Rightmost", "\u2192", point(14, 1.2)},
                  {"optcnn", "Topmost", "\u2191", point(8, 1.9)},
                  {"tofu", "Leftmost", "\u2190", point(2.5, 1.2)},
                  {"fsdp", "Lowermost", "\u2193", point(8, 0.5)}};
    for (const auto& each : beyond) {
      ChartSeries other = data.series[0];
      auto one = std::make_shared<Result>(*other.result);
      one->method = each.method;
      one->points = {each.at};
      other.method = each.method, other.title = each.title, other.frontier = false, other.result = one;
      data.series.push_back(other);
    }
    SelectionModel selection;
    FrontierChart chart;
    chart.set_selection(&selection);
    chart.resize(900, 600);
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    selection.pick_point(PickedPoint{"ft", 1});  // zooming keeps it where it is
    for (int i = 0; i < 30; ++i) {
      const bool seen = std::any_of(std::begin(beyond), std::end(beyond), [&](const auto& each) {
        return chart.plot_area().contains(chart.position_of(each.at));
      });
      if (!seen) break;
      chart.zoom(1.1);
    }
    for (const auto& each : beyond) QVERIFY(!chart.plot_area().contains(chart.position_of(each.at)));
    QTest::qWait(30);
    const QString svg = svg_of(chart).section(QStringLiteral("</desc>"), 1);
    for (const auto& each : beyond) {
      const qsizetype at = svg.lastIndexOf(QString::fromUtf8(each.title));  // a callout may name it, too
      QVERIFY2(at >= 0, each.title);
      const QString words = svg.mid(at, svg.indexOf(u'<', at) - at).trimmed();
      QVERIFY2(words.endsWith(QString::fromUtf8(each.arrow)), qPrintable(words));
    }
    // Who clicks the name has the plan.
    QWidget* plot = chart.childAt(chart.rect().center());
    for (const auto& each : beyond) {
      std::optional<QPoint> place;
      for (int x = 0; x < plot->width() && !place; x += 5)
        for (int y = 0; y < plot->height() && !place; y += 5)
          if (const auto named = chart.named_at_edge(QPointF(x, y)); named && named->method == each.method)
            place = QPoint(x, y);
      QVERIFY2(place, each.title);
      QTest::mouseClick(plot, Qt::LeftButton, {}, *place);
      QVERIFY(selection.point() && selection.point()->method == each.method);
    }
  }

  void what_is_not_finite_is_never_drawn() {
    ResultPoint infinite = point(5, 1), broken = point(6, 1);
    infinite.time_s = std::numeric_limits<double>::infinity();
    broken.network_s = std::nan("");
    FrontierChart chart;
    SelectionModel selection;
    chart.set_selection(&selection);
    chart.resize(800, 500);
    chart.set_data(chart_of({point(4, 2), infinite, broken, point(8, 1)}, 16));
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const ChartRange range = chart.visible_range();
    QVERIFY(std::isfinite(range.y_high) && range.y_high < 3000);
    QVERIFY(chart.plot_area().contains(chart.position_of(point(4, 2))));
    QVERIFY(chart.plot_area().contains(chart.position_of(point(8, 1))));
    selection.pick_point(PickedPoint{"ft", 1});
    chart.grab();
    // Keys go from one drawn plan to the next.
    selection.pick_point(PickedPoint{"ft", 0});
    chart.step_pick(1);
    QCOMPARE(selection.point()->index, std::size_t(3));
    chart.step_pick(1);
    QCOMPARE(selection.point()->index, std::size_t(3));
    chart.step_pick(-1);
    QCOMPARE(selection.point()->index, std::size_t(0));
    chart.set_data(chart_of({infinite}, 16));
    chart.grab();
  }

  void keys_step_by_what_can_be_seen() {
    std::vector<ResultPoint> points;
    for (int i = 0; i < 20000; ++i) points.push_back(point(4 + i * 4e-4, 2 - i * 5e-5));
    SelectionModel selection;
    FrontierChart chart;
    chart.set_selection(&selection);
    chart.resize(800, 500);
    chart.set_data(chart_of(points, 16));
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    selection.pick_point(PickedPoint{"ft", 7000});
    QTest::keyClick(&chart, Qt::Key_Right);
    const auto next = selection.point()->index;
    const double apart = QLineF(chart.position_of(points[7000]), chart.position_of(points[next])).length();
    QVERIFY2(next > 7010 && apart >= 1 && apart < 4, qPrintable(QStringLiteral("%1 %2").arg(next).arg(apart)));
    QTest::keyClick(&chart, Qt::Key_Left);
    QCOMPARE(selection.point()->index, std::size_t(7000));
    QTest::keyClick(&chart, Qt::Key_Right, Qt::ShiftModifier);
    QCOMPARE(selection.point()->index, std::size_t(7001));
    // What is larger on the screen is walked in smaller steps.
    for (int i = 0; i < 12; ++i) chart.zoom(1.25);
    QTest::qWait(30);
    selection.pick_point(PickedPoint{"ft", 7000});
    QTest::keyClick(&chart, Qt::Key_Right);
    QVERIFY(selection.point()->index < 7000 + (next - 7000) / 4);
  }

  void zooming_keeps_the_picked_plan_in_view() {
    const std::vector<ResultPoint> points{point(1, 2), point(4, 1.2), point(12, 1)};
    SelectionModel selection;
    FrontierChart chart;
    chart.set_selection(&selection);
    chart.resize(800, 500);
    chart.set_data(chart_of(points, 16));
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    selection.pick_point(PickedPoint{"ft", 0});
    const QPoint before = chart.position_of(points[0]);
    for (int i = 0; i < 8; ++i) chart.zoom(1.25);
    QVERIFY((chart.position_of(points[0]) - before).manhattanLength() <= 2);
    // Out of view it pulls nothing: the middle stays.
    chart.fit();
    selection.pick_point(PickedPoint{"ft", 2});
    for (int i = 0; i < 3; ++i) chart.zoom(2);
    selection.pick_point(PickedPoint{"ft", 0});
    QVERIFY(!chart.plot_area().contains(chart.position_of(points[0])));
    const ChartRange range = chart.visible_range();
    chart.zoom(2);
    QVERIFY(std::abs(chart.visible_range().x_low + chart.visible_range().x_high - range.x_low - range.x_high) < 0.05);
  }

  void figures_in_the_chart_are_in_the_axes_unit() {
    const ChartUnits units = units_for(chart_of({point(0.5, 12), point(8, 8)}, 16));
    QCOMPARE(units.memory_text(0.7 * kGiB, 3), QStringLiteral("0.70\u00a0GiB"));
    QCOMPARE(units.time_text(10.172), QStringLiteral("10\u2009172\u00a0ms"));
    QCOMPARE(units.memory_difference(-0.0031 * kGiB), QStringLiteral("\u22120.0031\u00a0GiB"));
    QCOMPARE(units.memory_difference(1.13 * kGiB), QStringLiteral("+1.1\u00a0GiB"));
    QCOMPARE(units.time_difference(-0.016), QStringLiteral("\u221216\u00a0ms"));
    QCOMPARE(units.time_difference(0), QStringLiteral("0\u00a0ms"));
  }

  void that_nothing_fits_is_said_once() {
    FrontierChart chart;
    chart.resize(800, 500);
    ChartData data = chart_of({point(384, 2790), point(1776, 2309), point(5600, 2263)}, 16);
    for (ResultPoint& p : const_cast<Result&>(*data.series[0].result).points) p.fits = false;
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const QString svg = svg_of(chart).section(QStringLiteral("</desc>"), 1);  // there it is the chart in words
    QCOMPARE(svg.count(QStringLiteral("No plan without micro-batches fits 16.0")), 1);
    QCOMPARE(svg.count(QStringLiteral("smallest needs 384")), 1);
  }

  void the_turning_point_is_told_in_the_axes_unit() {
    FrontierChart chart;
    chart.resize(800, 500);
    ChartData data = chart_of({point(0.3, 14), point(0.7, 10.172), point(8, 9)}, 16);
    const_cast<Result&>(*data.series[0].result).turning_point = 1;
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const QString svg = svg_of(chart).section(QStringLiteral("</desc>"), 1);
    QVERIFY(svg.contains(QStringLiteral("0.7\u00a0GiB")) && !svg.contains(QStringLiteral("MiB")));
    QVERIFY(svg.contains(QStringLiteral("10\u2009172\u00a0ms")) && !svg.contains(QStringLiteral("10.2 s")));
  }

  // A message that stays lies over the top: title, memory line and turning point are told below it, the axes stay.
  void words_keep_clear_of_a_message() {
    for (const double limit : {16.0, 2.0}) {  // in the second nothing fits, which is said at the line's top
      FrontierChart chart;
      chart.resize(900, 560);
      chart.show();
      chart.set_data(chart_of({point(3, 2), point(5, 1.2), point(8, 1), point(20, 0.8)}, limit));
      QVERIFY(QTest::qWaitForWindowExposed(&chart));
      const auto axes = chart.plot_area();
      for (const int height : {70, 0, 120}) {
        chart.keep_clear(height);
        QTest::qWait(30);
        QCOMPARE(chart.plot_area(), axes);
        QVERIFY(chart.words().size() >= (height ? 2u : 1u));
        for (const QRectF& words : chart.words())
          QVERIFY2(words.top() >= height, qPrintable(QString::number(words.top())));
      }
    }
  }

  void a_saved_picture_says_of_what_it_is_and_has_no_pixels() {
    FrontierChart chart;
    chart.resize(800, 500);
    ChartData data = chart_of({point(4, 2), point(8, 1)}, 16);
    data.title = QStringLiteral("gpt2 on 1 H100-80GB");
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const QRect before = chart.plot_area();
    const QString svg = svg_of(chart);
    QVERIFY(svg.count(data.title) >= 2);  // as the document's title, and to be read
    QVERIFY(!svg.contains(QStringLiteral("<image")));
    QTest::qWait(30);
    QCOMPARE(chart.plot_area(), before);
  }

  void what_is_of_another_scenario_is_faint() {
    ChartData data = chart_of({point(4, 2), point(8, 1)}, 16);
    ChartSeries other = data.series[0];
    auto result = std::make_shared<Result>(*other.result);
    result->points = {point(10, 1.5)};
    other.result = result, other.method = "optcnn", other.title = QStringLiteral("OptCNN"), other.frontier = false;
    data.series.push_back(other);
    FrontierChart chart;
    chart.resize(800, 500);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const auto colour = [&](bool stale) {
      data.series[1].stale = stale;
      chart.set_data(data);
      QTest::qWait(50);
      return chart.grab().toImage().pixelColor(chart.position_of(point(10, 1.5)));
    };
    const QColor now = colour(false), before = colour(true);
    QVERIFY2(before.lightness() > now.lightness() + 60, qPrintable(now.name() + before.name()));
    QVERIFY(before.lightness() < 250);
  }

  void an_empty_chart_and_one_plan_are_fine() {
    FrontierChart chart;
    chart.resize(800, 500);
    chart.set_data({});
    chart.grab();
    QVERIFY(!chart.describe().isEmpty());
    chart.set_data(chart_of({point(4, 2)}, 2));
    chart.grab();
    QVERIFY(chart.describe().startsWith(QStringLiteral("FT: 1 plan")));
    QVERIFY(!chart.describe().contains(QStringLiteral("1 plans")));
  }

  void a_thousand_replot_requests_are_one_replot() {
    FrontierChart chart;
    chart.resize(800, 500);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    QTest::qWait(30);
    const int before = chart.replots();
    for (int i = 0; i < 1000; ++i) chart.set_data(chart_of({point(4, 2), point(8, 1 - i * 1e-4)}, 16));
    QTest::qWait(30);
    QCOMPARE(chart.replots(), before + 1);
  }

  void axes_stay_while_values_move_a_little() {
    FrontierChart chart;
    chart.resize(800, 500);
    chart.set_data(chart_of({point(4, 2), point(8, 1)}, 12));
    const ChartRange first = chart.visible_range();
    chart.set_data(chart_of({point(4, 1.8), point(8, 0.95)}, 12));
    QCOMPARE(chart.visible_range().y_high, first.y_high);
    QCOMPARE(chart.visible_range().x_high, first.x_high);
    chart.set_data(chart_of({point(4, 0.4), point(8, 0.2)}, 12));
    QVERIFY(chart.visible_range().y_high < first.y_high);
  }

  void the_line_to_the_axis_spares_the_name_beside_the_point() {
    ChartData data = chart_of({point(8, 1)}, 0);
    data.series[0].frontier = false;
    for (const char* name : {"heft", "pardnn"}) {
      ChartSeries other = data.series[0];
      other.method = name;
      other.title = QStringLiteral("A name beside it");
      data.series.push_back(other);
    }
    SelectionModel selection;
    FrontierChart chart;
    chart.set_selection(&selection);
    chart.resize(800, 500);
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    selection.pick_point(PickedPoint{"pardnn", 0});
    QTest::qWait(50);
    const QImage image = chart.grab().toImage();
    const QPoint at = chart.position_of(point(8, 1));
    // Along the line: accent, a gap as wide as the name, accent again.
    const auto is_accent = [&](int x) {
      for (const int y : {at.y() - 1, at.y(), at.y() + 1})
        if (QColor c = image.pixelColor(x, y); c.blue() > c.red() + 40) return true;
      return false;
    };
    int longest = 0, gap = 0, drawn = 0;
    for (int x = int(chart.plot_area().left()) + 2; x < at.x() - 8; ++x) {
      gap = is_accent(x) ? 0 : gap + 1;
      drawn += gap == 0;
      longest = std::max(longest, gap);
    }
    QVERIFY2(drawn > 100, qPrintable(QString::number(drawn)));
    QVERIFY2(longest > 60, qPrintable(QString::number(longest)));
  }

  void markers_are_centred_at_every_pixel_ratio_data() {
    QTest::addColumn<double>("ratio");
    for (const double ratio : {1.0, 1.25, 1.5, 2.0, 3.0}) QTest::newRow(qPrintable(QString::number(ratio))) << ratio;
  }
  void markers_are_centred_at_every_pixel_ratio() {
    QFETCH(double, ratio);
    for (const double radius : {2.3, 5.0}) {
      for (const bool rendered : {true, false}) {
        const MethodMarker marker(QStringLiteral("ft"), radius, Qt::black, false, Qt::white, ratio);
        QImage image(QSize(40, 30) * ratio, QImage::Format_ARGB32_Premultiplied);
        image.setDevicePixelRatio(ratio);
        image.fill(Qt::white);
        QPainter painter(&image);
        rendered ? marker.draw(painter, {18, 13}) : marker.draw_outline(painter, {18, 13});
        painter.end();
        double weight = 0, x = 0, y = 0;
        for (int row = 0; row < image.height(); ++row)
          for (int column = 0; column < image.width(); ++column) {
            const double ink = 255 - qGray(image.pixel(column, row));
            weight += ink, x += ink * (column + 0.5), y += ink * (row + 0.5);
          }
        QVERIFY(weight > 0);
        QVERIFY2(std::hypot(x / weight / ratio - 18, y / weight / ratio - 13) < 0.75,
                 qPrintable(QStringLiteral("%1, %2").arg(x / weight / ratio).arg(y / weight / ratio)));
      }
    }
  }
};

QTEST_MAIN(FrontierChartTest)
#include "frontier_chart_test.moc"
