// SPDX-License-Identifier: Apache-2.0
// What the frontier chart says of several methods: who gives the line, what fits outside the searched space, how many
// plans there are.
#include <QRegularExpression>
#include <QtTest>
#include <cmath>

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

class FrontierWordsTest : public QObject {
  Q_OBJECT

 private slots:
  // On the simulated clock another method may beat the searched line: the envelope is the best of all, by name.
  void the_envelope_takes_the_best_of_every_method() {
    ChartData data = chart_of({point(3, 2), point(8, 1.2), point(15, 1.1)}, 80);
    data.clock = Clock::simulated;
    ChartSeries other = data.series[0];
    other.method = "fsdp", other.title = QStringLiteral("Fully sharded"), other.frontier = false;
    auto one = std::make_shared<Result>(*other.result);
    one->points = {point(12, 0.9)};
    other.result = one;
    data.series.push_back(other);
    data.envelope = lower_left(data);
    QVERIFY(data.envelope);
    // Brute force: of every memory the best time of anybody.
    for (const double gib : {3.0, 5.0, 8.0, 11.9, 12.0, 20.0}) {
      double best = 1e9, line = 1e9;
      for (const auto& s : data.series)
        for (const auto& p : s.result->points)
          if (double(p.memory_bytes) <= gib * kGiB) best = std::min(best, p.time_s);
      for (const auto& p : data.envelope->result->points)
        if (double(p.memory_bytes) <= gib * kGiB) line = p.time_s;
      QCOMPARE(line, best);
    }
    QCOMPARE(data.envelope->from.back().method, std::string("fsdp"));
    QCOMPARE(data.envelope->from.size(), std::size_t(3));
    QVERIFY(data.envelope_words().startsWith(QStringLiteral("FT to 12")));
    QVERIFY(data.envelope_words().endsWith(QStringLiteral("Fully sharded from there")));
    QVERIFY(data.envelope->result->turning_point == std::optional<std::size_t>(1));
    FrontierChart chart;
    SelectionModel selection;
    chart.set_selection(&selection);
    chart.resize(900, 600);
    chart.set_data(data);
    chart.pick_turning_point();
    QCOMPARE(selection.point()->index, std::size_t(1));
    // Both marks stand at the line, each with the method whose plan it is.
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const QString svg = svg_of(chart).section(QStringLiteral("</desc>"), 1);
    QCOMPARE(svg.count(QStringLiteral("Turning point 8")), 1);
    QCOMPARE(svg.count(QStringLiteral("Fastest that fits 12")), 1);
    QCOMPARE(svg.count(QStringLiteral("a plan of FT")), 1);
    QCOMPARE(svg.count(QStringLiteral("a plan of Fully sharded")), 1);
    data.series[1].stale = true;  // of another scenario: no part of the line
    QCOMPARE(lower_left(data)->from.back().method, std::string("ft"));
  }

  // Nothing of the searched space fits, yet a split of the user's own does: the words say both.
  void what_fits_outside_the_searched_space_is_counted() {
    FrontierChart chart;
    chart.resize(900, 600);
    ChartData data = chart_of({point(35, 30), point(60, 20)}, 30);
    for (ResultPoint& p : const_cast<Result&>(*data.series[0].result).points) p.fits = false;
    for (const auto& [name, gib] : {std::pair{"manual:dp=4:tp=2:pp=2", 22.0}, std::pair{"megatron", 26.0}}) {
      ChartSeries own = data.series[0];
      own.method = name, own.title = QString::fromLatin1(name), own.frontier = false;
      auto one = std::make_shared<Result>(*own.result);
      one->points = {point(gib, 40)};
      one->turning_point.reset();
      own.result = one;
      data.series.push_back(own);
    }
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const QString svg = svg_of(chart).section(QStringLiteral("</desc>"), 1);
    QVERIFY(svg.contains(QStringLiteral("No plan without micro-batches fits 30")));
    QVERIFY(svg.contains(QStringLiteral("manual:dp=4:tp=2:pp=2 fits with 22")));
    QVERIFY(svg.contains(QStringLiteral("and 1 other method fits")));
  }

  // Where another method's plan fits and is faster, the searched line's fastest is called what it is.
  void the_fastest_of_a_method_is_not_called_that_of_all() {
    ChartData data = chart_of({point(3, 2), point(4, 1.3), point(15, 1.1)}, 80);
    const_cast<Result&>(*data.series[0].result).turning_point = 1;
    ChartSeries other = data.series[0];
    other.method = "accpar", other.title = QStringLiteral("AccPar"), other.frontier = false;
    const auto one = [&](ResultPoint alone, Clock clock) {
      auto result = std::make_shared<Result>(*data.series[0].result);
      result->method = "accpar", result->points = {alone}, result->clock = clock;
      result->turning_point.reset();
      return result;
    };
    const auto words = [&](std::optional<ResultPoint> alone, Clock clock = Clock::additive) {
      if (data.series.size() < 2) data.series.push_back(other);
      data.series[1].result = alone ? one(*alone, clock) : nullptr;
      FrontierChart chart;
      chart.resize(900, 600);
      chart.set_data(data);
      chart.show();
      if (!QTest::qWaitForWindowExposed(&chart)) return QString();
      return svg_of(chart).section(QStringLiteral("</desc>"), 1);
    };
    QVERIFY(words(point(9, 0.5)).contains(QStringLiteral("Fastest of FT that fits")));
    QVERIFY(words(point(9, 0.5)).contains(QStringLiteral("Faster and fits: AccPar, 500")));
    // No faster, not fitting, or by another clock: nothing to say.
    ResultPoint too_large = point(9, 0.5);
    too_large.fits = false;
    for (const QString& text :
         {words({}), words(point(9, 1.2)), words(too_large), words(point(9, 0.5), Clock::simulated)})
      QVERIFY(text.contains(QStringLiteral("Fastest that fits")));
  }

  // A turning point beyond the memory line, in a low chart full of words: its words have a line to it.
  void a_callout_leads_to_its_mark() {
    FrontierChart chart;
    chart.resize(585, 430);
    std::vector<ResultPoint> points;
    for (int i = 0; i <= 30; ++i) points.push_back(point(40 + 5 * i, 34 - 0.2 * i));
    for (int i = 1; i <= 30; ++i) points.push_back(point(190 + 12 * i, 28 - 0.03 * i));
    for (ResultPoint& p : points) p.fits = p.memory_bytes < 80 * kGiB;
    ChartData data = chart_of(points, 80);
    chart.set_data(data);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    const QString svg = svg_of(chart).section(QStringLiteral("</desc>"), 1);
    QVERIFY(svg.contains(QStringLiteral("does not fit")) && svg.contains(QStringLiteral("Fastest that fits")));
    // Both marks, the turning point at 190 GiB and the fastest that fits at 75, have a line that begins beside them.
    for (const std::size_t at : {std::size_t(30), std::size_t(7)}) {
      const QPointF mark = chart.position_of(points[at]);
      bool led = false;
      static const QRegularExpression kLine(QStringLiteral("points=\"([-0-9.]+),([-0-9.]+) ([-0-9.]+),([-0-9.]+) \""));
      for (auto found = kLine.globalMatch(svg); found.hasNext();) {
        const auto line = found.next();
        const QLineF drawn(line.captured(1).toDouble(), line.captured(2).toDouble(), line.captured(3).toDouble(),
                           line.captured(4).toDouble());
        // By its place along the memory axis: a saved picture is higher by its title.
        led = led || (std::abs(drawn.x1() - mark.x()) < 2 && drawn.y1() < 380 && drawn.length() > 10);
      }
      QVERIFY2(led, qPrintable(QString::number(at)));
    }
  }

  void plans_are_counted_as_they_can_be_told_apart() {
    std::vector<ResultPoint> points;
    for (int i = 0; i < 2000; ++i)
      points.push_back(point(4 + i * 1e-5, 10 - i * 1e-5));  // all within a thousandth, five times
    const std::size_t apart = distinct_plans(points);
    QVERIFY2(apart >= 4 && apart <= 6, qPrintable(QString::number(apart)));
    QCOMPARE(distinct_place(points, 0), std::size_t(1));
    QCOMPARE(distinct_place(points, 1999), apart);
    QCOMPARE(place_words(12, 372), QStringLiteral("plan 12 of about 370"));
    QCOMPARE(place_words(372, 372), QStringLiteral("plan 372 of 372"));
    QCOMPARE(about_plans(58), QStringLiteral("58"));
    QCOMPARE(about_plans(1937), QStringLiteral("about 1\u2009900"));
  }
};

QTEST_MAIN(FrontierWordsTest)
#include "frontier_words_test.moc"
