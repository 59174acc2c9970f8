// SPDX-License-Identifier: Apache-2.0
// Markers that cover each other: one name for all, a fan under the pointer, each in reach of pointer and keys.
#include "views/frontier/marker_groups.h"

#include <QMouseEvent>
#include <QtTest>

#include "views/frontier/frontier_chart.h"
#include "views/frontier/label_placer.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr double kGiB = 1073741824.0;

ResultPtr answer(std::vector<std::pair<double, double>> points) {
  auto scenario = std::make_shared<Scenario>();
  scenario->model = std::make_shared<Model>();
  scenario->cluster = std::make_shared<Cluster>();
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  for (const auto& [gib, seconds] : points) {
    ResultPoint p;
    p.memory_bytes = static_cast<std::int64_t>(gib * kGiB);
    p.time_s = seconds, p.compute_s = 0.7 * seconds, p.network_s = 0.3 * seconds;
    p.fits = true;
    result->points.push_back(p);
  }
  return result;
}

ChartSeries series(const char* method, const char* title, bool frontier,
                   std::vector<std::pair<double, double>> points) {
  return {method, QString::fromLatin1(title), frontier, false, answer(std::move(points))};
}

/// Four methods at one place, a fifth apart, before a frontier.
ChartData piled() {
  ChartData data;
  data.series.push_back(series("ft", "FT", true, {{2, 3}, {4, 2}, {8, 1.2}, {12, 1}}));
  for (const char* method : {"optcnn", "data-parallel", "megatron", "mesh-tensorflow"})
    data.series.push_back(series(method, method, std::string(method) == "mesh-tensorflow", {{9, 2}}));
  data.series.push_back(series("tofu", "ToFu", false, {{11, 2.6}}));
  return data;
}

struct ShownChart {
  ChartData data;
  SelectionModel selection;
  FrontierChart chart;
  explicit ShownChart(ChartData given) : data(std::move(given)) {
    chart.set_selection(&selection);
    chart.resize(900, 600);
    chart.set_data(data);
    chart.show();
    (void)QTest::qWaitForWindowExposed(&chart);
    QTest::qWait(40);
  }
  QWidget* plot() { return chart.findChild<QWidget*>(QString(), Qt::FindDirectChildrenOnly); }
  QPoint at(std::size_t which) const { return chart.position_of(data.series[which].result->points[0]); }
  void point_to(QPoint position) {
    QMouseEvent move(QEvent::MouseMove, QPointF(position), QPointF(plot()->mapToGlobal(position)), Qt::NoButton,
                     Qt::NoButton, {});
    QApplication::sendEvent(plot(), &move);
  }
  QString svg() {
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("chart.svg"));
    if (!chart.save_svg(path)) return {};
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()).section(QStringLiteral("</desc>"), 1)
                                          : QString();
  }
};

}  // namespace

class MarkerGroupsTest : public QObject {
  Q_OBJECT

 private slots:
  void near_markers_are_one_group_and_long_lines_are_none() {
    ChartState state;
    state.data = piled();
    state.data.series.push_back(series("near", "near", false, {{9.05, 2.0}}));
    std::vector<std::pair<double, double>> many;
    for (int i = 0; i < 100; ++i) many.push_back({9 + i * 0.01, 2});
    state.data.series.push_back(series("long", "long", true, many));
    const auto pixel = [](const ResultPoint& p) {
      return QPointF(double(p.memory_bytes) / kGiB * 100, p.time_s * 100);
    };
    const auto groups = marker_groups(state, pixel);
    std::size_t members = 0, largest = 0;
    for (const MarkerGroup& group : groups) {
      members += group.members.size();
      largest = std::max(largest, group.members.size());
      for (const PickedPoint& member : group.members) QVERIFY(member.method != "long");
    }
    QCOMPARE(largest, std::size_t(5));  // four and the near one
    QCOMPARE(members, std::size_t(4 + 4 + 1 + 1));
    // What is hidden belongs to none.
    state.show_others = false;
    QCOMPARE(marker_groups(state, pixel).size(), std::size_t(4));
  }

  void where_names_have_no_room_their_number_stands() {
    ChartData data = piled();
    QVERIFY(ShownChart(data).svg().contains(u"optcnn, data-parallel, +2"));
    for (std::size_t i = 1; i <= 4; ++i) data.series[i].title = QStringLiteral("a method of a long name");
    const QString svg = ShownChart(data).svg();
    QVERIFY(!svg.contains(u"long name") && svg.contains(u"4 methods"));
  }

  void a_fan_stays_inside_and_keeps_its_markers_apart() {
    const QRectF frame(0, 0, 400, 300);
    for (const std::size_t count : {2, 3, 7, 12})
      for (const QPointF at : {QPointF(200, 150), QPointF(398, 2), QPointF(0, 300)}) {
        const MarkerFan fan = fan_of({at, std::vector<PickedPoint>(count)}, frame);
        QCOMPARE(fan.at.size(), count);
        for (std::size_t i = 0; i < count; ++i) {
          QVERIFY(frame.contains(fan.at[i]));
          QVERIFY(fan.covers(fan.at[i]));
          QCOMPARE(fan.nearest(fan.at[i] + QPointF(2, -1)), i);
          for (std::size_t j = 0; j < i; ++j) QVERIFY(QLineF(fan.at[i], fan.at[j]).length() > 14);
        }
      }
  }

  void a_group_has_one_name() {
    QCOMPARE(group_title({"A"}), QStringLiteral("A"));
    QCOMPARE(group_title({"A", "B", "C"}), QStringLiteral("A, B, C"));
    QCOMPARE(group_title({"A", "B", "C", "D", "E"}), QStringLiteral("A, B, +3"));
    ShownChart s(piled());
    const QString svg = s.svg();
    QVERIFY2(svg.contains(QStringLiteral("optcnn, data-parallel, +2")), qPrintable(svg.right(4000)));
    QVERIFY(!svg.contains(QStringLiteral(">megatron<")));
    QVERIFY(svg.contains(QStringLiteral("ToFu")));
  }

  void words_keep_away_from_markers_that_they_do_not_name() {
    using Side = LabelPlacer::Side;
    LabelPlacer placer(QRectF(0, 0, 400, 200));
    placer.keep_off({100, 100}, 16);
    placer.keep_off({150, 104}, 16);
    // To the right they would end up beside the other marker.
    const auto at = placer.place({100, 100}, {44, 12}, 9, {Side::right, Side::left});
    QVERIFY(at && at->right() < 100);
    const auto other = placer.place({150, 104}, {44, 12}, 9, {Side::left, Side::right});
    QVERIFY(other && other->left() > 150);
    // Hemmed in on all sides: further away, with a line that passes no other marker.
    LabelPlacer full(QRectF(0, 0, 400, 200));
    full.keep_off({200, 100}, 16);
    for (const QPointF near : {QPointF(225, 100), QPointF(175, 100), QPointF(200, 78), QPointF(200, 122)})
      full.keep_off(near, 16);
    QVERIFY(!full.place({200, 100}, {60, 12}, 9, {Side::right, Side::left, Side::above, Side::below}));
    const auto led = full.place_away({200, 100}, {60, 12});
    QVERIFY(led);
    QVERIFY(QLineF(nearest_in(*led, {200, 100}), QPointF(200, 100)).length() > 20);
  }

  void the_fan_opens_under_the_pointer_and_each_marker_is_in_reach() {
    ShownChart s(piled());
    const QPoint middle = s.at(1);
    s.point_to(middle);
    QVERIFY(s.selection.hovered_point());
    ChartState state;
    state.data = s.data;
    const MarkerGroup group{QPointF(middle),
                            {{"optcnn", 0}, {"data-parallel", 0}, {"megatron", 0}, {"mesh-tensorflow", 0}}};
    const MarkerFan fan = fan_of(group, QRectF(s.chart.plot_area()));
    std::set<std::string> reached;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      s.point_to(fan.at[i].toPoint());
      QVERIFY(s.selection.hovered_point());
      QCOMPARE(s.selection.hovered_point()->method, group.members[i].method);
      QTest::mouseClick(s.plot(), Qt::LeftButton, {}, fan.at[i].toPoint());
      QCOMPARE(s.selection.point()->method, group.members[i].method);
      reached.insert(s.selection.point()->method);
    }
    QCOMPARE(reached.size(), std::size_t(4));
    s.chart.grab();  // fan and read-out are drawn
    // Away from it the chart is as before.
    s.point_to(s.at(5));
    QCOMPARE(s.selection.hovered_point()->method, std::string("tofu"));
    s.point_to(fan.at[2].toPoint());
    QVERIFY(!s.selection.hovered_point() || s.selection.hovered_point()->method != "megatron" ||
            QLineF(fan.at[2], QPointF(middle)).length() < 24);
  }

  void keys_go_from_method_to_method() {
    ShownChart s(piled());
    s.selection.pick_point(PickedPoint{"ft", 1});
    std::set<std::string> seen{"ft"};
    for (int i = 0; i < 8; ++i) {
      QTest::keyClick(&s.chart, Qt::Key_Up);
      seen.insert(s.selection.point()->method);
    }
    const std::string top = s.selection.point()->method;
    for (int i = 0; i < 12; ++i) {
      QTest::keyClick(&s.chart, Qt::Key_Down);
      seen.insert(s.selection.point()->method);
    }
    QCOMPARE(seen.size(), s.data.series.size());
    QVERIFY(s.selection.point()->method != top);
  }
};

QTEST_MAIN(MarkerGroupsTest)
#include "marker_groups_test.moc"
