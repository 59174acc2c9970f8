// SPDX-License-Identifier: Apache-2.0
// What the task graph's colours of clusters mean, and which layers are unfolded at first.
#include <QHelpEvent>
#include <QToolTip>
#include <QtTest>
#include <algorithm>
#include <numeric>

#include "core/model/task_hierarchy.h"
#include "views/common/format.h"
#include "views/graph/fold_plan.h"
#include "views/graph/task_legend.h"
#include "views/task_graph_fixture.h"

using namespace turnpoint;
using namespace turnpoint::views;

class TaskColorsTest : public QObject {
  Q_OBJECT

 private slots:
  // Clusters of unlike times: the sixteen longest have a colour each, with their shares of the time.
  void clusters_have_colours() {
    const TaskGraphPtr graph = fixture::layered_tasks(8);
    constexpr std::uint32_t kClusters = 30;
    std::vector<std::uint32_t> cluster(graph->task_count());
    std::vector<double> seconds(kClusters, 0);
    for (TaskIndex t = 0; t < cluster.size(); ++t) {
      cluster[t] = t % kClusters;
      seconds[cluster[t]] += graph->time_s[t];
    }
    const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const auto hierarchy = build_task_hierarchy(graph);
    const auto figures = make_task_figures(hierarchy, fixture::in_stages(graph, 2, cluster));
    const auto rows = task_legend_rows(*figures, {}, TaskColor::cluster);
    QCOMPARE(rows.size(), std::size_t(17));
    const auto percent_of = [](const TaskLegendRow& row) { return row.value.chopped(1).toDouble(); };
    for (std::size_t r = 0; r < 16; ++r) {
      const std::uint32_t id = figures->named_clusters[r];
      QVERIFY(rows[r].text.startsWith(QString("cluster %1 ").arg(id)));
      QVERIFY(std::abs(percent_of(rows[r]) - 100 * seconds[id] / total) < 1);
      QCOMPARE(rows[r].color, r);
      if (r > 0) QVERIFY(seconds[id] <= seconds[figures->named_clusters[r - 1]]);
    }
    QVERIFY(rows[16].text.startsWith("14 others"));
    double shown = 0;
    for (const TaskLegendRow& row : rows) shown += percent_of(row);
    QCOMPARE(shown, 100.0);
    for (std::size_t p = 0; p < hierarchy->order.size(); ++p) {
      const auto& named = figures->named_clusters;
      const auto at = std::find(named.begin(), named.end(), cluster[hierarchy->order[p]]);
      QCOMPARE(std::size_t(figures->cluster_slot[p]), std::size_t(at - named.begin()));
    }
    QVERIFY(
        task_legend_rows(*make_task_figures(hierarchy, fixture::in_stages(graph, 2)), {}, TaskColor::cluster).empty());
  }

  // Where clusters leave no room for what lines mean, the last row stands for those that are not drawn.
  void rows_that_do_not_fit_are_counted() {
    const TaskGraphPtr graph = fixture::layered_tasks(8);
    std::vector<std::uint32_t> cluster(graph->task_count());
    for (TaskIndex t = 0; t < cluster.size(); ++t) cluster[t] = t % 30;
    const auto hierarchy = build_task_hierarchy(graph);
    const auto figures = make_task_figures(hierarchy, fixture::in_stages(graph, 2, cluster));
    TaskCanvas canvas;
    canvas.set_scene(std::make_shared<TaskScene>(), figures);
    TaskLegend legend(&canvas);
    legend.resize(legend.width(), 2000);
    legend.set_figures(figures, TaskColor::cluster, true);
    QCOMPARE(legend.drawn_rows(), 17);
    for (int high = 1000; high > 120; high -= 7) {
      legend.resize(legend.width(), high);
      const int drawn = legend.drawn_rows(), row = legend.row_rect(0).height();
      QVERIFY(drawn >= 2 && drawn <= 17);
      // Four lines below the rows: what lines mean.
      if (drawn > 2) QVERIFY(legend.row_rect(drawn - 1).bottom() + 4 * row < high);
      if (drawn > 2 && drawn < 17) QVERIFY(legend.row_rect(drawn - 1).bottom() + 7 * row > high);
    }
    legend.resize(legend.width(), 240);
    const int last = legend.drawn_rows() - 1;
    QHelpEvent help(QEvent::ToolTip, legend.row_rect(last).center(), QPoint());
    legend.show();
    QCoreApplication::sendEvent(&legend, &help);
    QCOMPARE(QToolTip::text().count(u'\n'), 16 - last);
    QVERIFY(QToolTip::text().contains("14 others"));
  }

  // Four layers, one with half of the tasks: time steps that nothing groups.
  void a_layer_of_many_steps_stays_folded() {
    TaskGraphBuilder builder;
    TaskIndex before = kNone;
    for (const auto& [layer, steps] : {std::pair{"one", 30}, {"two", 120}, {"three", 30}, {"four", 30}})
      for (int step = 0; step < steps; ++step) {
        const std::string name = std::string(layer) + "/step" + std::to_string(step);
        TaskGraphBuilder::Task task;
        task.name = name, task.time_s = 1e-3, task.output_bytes = 100, task.scope = builder.scope(layer);
        const TaskIndex now = builder.add_task(task);
        if (before != kNone) builder.add_edge(before, now);
        before = now;
      }
    const auto graph = builder.finish("steps");
    QVERIFY(graph);
    const auto hierarchy = build_task_hierarchy(*graph);
    const OpenGroups open = folded_layers(*hierarchy);
    QCOMPARE(std::count(open.begin(), open.end(), true), std::ptrdiff_t(1));
  }
};

QTEST_MAIN(TaskColorsTest)
#include "task_colors_test.moc"
