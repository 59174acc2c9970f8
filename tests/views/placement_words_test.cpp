// SPDX-License-Identifier: Apache-2.0
// Placements in words and rows, and charts of markers alone or on the simulated clock.
#include <QtTest>

#include "search/small_graphs.h"
#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/theme_colors.h"
#include "views/frontier/chart_data.h"
#include "views/plan/placement_words.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

/// Ten tasks of a second each, one a device as far as they reach; by hand, not simulated.
PlacementPlan placement_on(std::uint32_t devices) {
  TaskGraphBuilder builder;
  for (int i = 0; i < 10; ++i) {
    TaskGraphBuilder::Task task;
    task.name = "matmul";
    task.kind = TaskKind::forward;
    task.time_s = 1;
    task.output_bytes = 1 << 20;
    task.scope = builder.scope("layer/a");
    builder.add_task(task);
  }
  for (int i = 1; i < 10; ++i) builder.add_edge(0, i);
  PlacementPlan plan;
  plan.graph = *builder.finish("words");
  plan.placement.devices = devices;
  plan.busy_s.assign(devices, 0);
  for (std::uint32_t t = 0; t < 10; ++t) {
    plan.placement.device.push_back(t % devices);
    plan.busy_s[t % devices] += 1;
  }
  plan.makespan_s = 4;
  plan.one_device_s = 10;
  for (std::uint32_t d = 0; d < devices; ++d) {
    plan.peak_bytes.push_back(std::int64_t(d + 1) << 20);
    plan.limit_bytes.push_back(kUnlimitedBytes);
  }
  return plan;
}

ResultPtr result_of(const std::vector<ResultPoint>& points, bool tasks) {
  auto scenario = std::make_shared<Scenario>();
  if (tasks) scenario->tasks = test::chain(1, 3);
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->points = points;
  return result;
}

}  // namespace

class PlacementWordsTest : public QObject {
  Q_OBJECT

 private slots:
  void what_a_placement_is_worth() {
    const PlacementPlan plan = placement_on(4);
    const QString words = describe_placement(plan);
    for (const char* part : {"10 tasks on 4 devices", "2.50", "10.0 s", "device 0", "75%"})
      QVERIFY2(QString(words).replace(QChar(0x00A0), u' ').contains(part), qPrintable(words));
    QVERIFY(!words.contains("Fits"));  // there is nothing to fit into
  }

  void what_devices_send_each_other() {
    PlacementPlan plan = placement_on(4);
    const auto words = [&] { return QString(describe_placement(plan)).replace(QChar(0x00A0), u' '); };
    QVERIFY2(words().contains("Devices send each other nothing."), qPrintable(words()));
    plan.peak_communication_bytes = 3 << 20;
    QVERIFY2(words().contains("At most 3.00 MiB go from one device to one other."), qPrintable(words()));
    plan = placement_on(1);
    QVERIFY2(!words().contains("other"), qPrintable(words()));  // there is none
  }

  void limits_and_shortages() {
    PlacementPlan plan = placement_on(2);
    plan.limit_bytes = {4 << 20, 4 << 20};
    plan.moved_tasks = 3;
    QVERIFY(describe_placement(plan).contains("Fits every device"));
    QVERIFY(describe_placement(plan).contains("3 tasks were moved"));
    plan.limit_bytes[1] = 1 << 20;
    plan.shortage = PlacementShortage{1, 0.5, 1 << 20};
    const QString words = QString(describe_placement(plan)).replace(QChar(0x00A0), u' ');
    QVERIFY2(words.contains("Does not fit: device 1 lacks 1.00 MiB at 500 ms."), qPrintable(words));
    const auto rows = device_rows(plan, theme_colors(QPalette()));
    QCOMPARE(rows.size(), std::size_t(2));
    QCOMPARE(rows[1].color, theme_colors(QPalette()).error);
    QVERIFY(rows[0].color != rows[1].color);
    QCOMPARE(rows[0].share, QString("25%"));
  }

  void of_many_devices_the_fullest_are_named() {
    const PlacementPlan plan = placement_on(64);
    const auto rows = device_rows(plan, theme_colors(QPalette()));
    QCOMPARE(rows.size(), std::size_t(16));
    QVERIFY(rows[0].name.startsWith("device 49"));  // peaks rise with the number
    QVERIFY(rows.back().name.contains("49 more"));
  }

  void stages_that_gained_are_marked() {
    PlacementPlan plan = placement_on(2);
    plan.stages = {{"one device", 10}, {"layers", 12}, {"list schedule, transfers weigh 4", 5}};
    const auto rows = stage_rows(plan, Qt::red);
    QCOMPARE(rows[0].color, QColor(Qt::red));
    QVERIFY(rows[1].color != QColor(Qt::red) && rows[1].share.isEmpty());
    QCOMPARE(rows[2].color, QColor(Qt::red));
    QVERIFY(rows[2].share.contains("50"));
  }

  void a_task_in_facts() {
    const auto facts = describe_task(placement_on(4), 0);
    QStringList all;
    for (const Fact& fact : facts) all << fact.name + u'=' + fact.value;
    const QString text = all.join(u';');
    QVERIFY2(text.contains("Task=matmul") && text.contains("Scope=layer/a") && text.contains("Device=device 0"),
             qPrintable(text));
    QVERIFY2(text.contains("9, of which 7 elsewhere"), qPrintable(text));
  }

  void markers_alone_are_all_in_view() {
    ChartData data;
    const ResultPoint fast{10 << 20, 1, 1, 0, true}, slow{100 << 20, 20, 20, 0, true};
    data.series = {{"pardnn", "ParDNN", false, false, result_of({fast}, true)},
                   {"single-device", "One device", false, false, result_of({slow}, true)}};
    QVERIFY(data.markers_only());
    QCOMPARE(data.subject()->method, std::string("pardnn"));
    const ChartUnits units = units_for(data);
    const auto range = fitted_range(data, units, true, true, false);
    QVERIFY(range && range->y_high >= units.y(20) && range->x_high >= units.x(100 << 20));
    // Without a task graph single answers are nobody's subject.
    data.series = {{"data-parallel", "Data-parallel", false, false, result_of({fast}, false)}};
    QVERIFY(!data.subject() && !data.markers_only());
  }

  void a_task_graph_without_bytes_shows_its_times() {
    ChartData data;
    const ResultPoint fast{0, 1, 1, 0, true}, slow{0, 20, 20, 0, true};
    data.series = {{"pardnn", "ParDNN", false, false, result_of({fast}, true)},
                   {"single-device", "One device", false, false, result_of({slow}, true)}};
    const ChartUnits units = units_for(data);
    for (const std::int64_t limit : {std::int64_t(0), std::int64_t(4) << 30}) {
      data.memory_limit = limit;
      const auto range = fitted_range(data, units, true, true, false);
      QVERIFY(range && range->x_low == 0 && range->x_high > 0 && range->x_high >= units.x(double(limit)));
      QVERIFY(range->y_high >= units.y(20));
    }
    data.series.clear();
    QVERIFY(!fitted_range(data, units, true, true, false));
  }

  void one_is_not_a_plural() {
    QCOMPARE(counted(1, "1 task", "%1 tasks"), QString("1 task"));
    QCOMPARE(counted(0, "1 task", "%1 tasks"), QString("0 tasks"));
    QCOMPARE(counted(2, "1 task", "%1 tasks"), QString("2 tasks"));
  }

  void on_the_simulated_clock_the_line_has_its_own_points() {
    ChartSeries series{"ft", "FT", true, false,
                       result_of({{1, 4, 0, 0, true}, {2, 5, 0, 0, true}, {3, 2, 0, 0, true}}, false)};
    QCOMPARE(series.line_points().size(), std::size_t(3));
    series.line = std::make_shared<const std::vector<std::size_t>>(std::vector<std::size_t>{0, 2});
    QCOMPARE(series.line_points().size(), std::size_t(2));
    QCOMPARE(series.line_points()[1].time_s, 2.0);
  }
};

QTEST_MAIN(PlacementWordsTest)
#include "placement_words_test.moc"
