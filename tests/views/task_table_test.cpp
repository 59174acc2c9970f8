// SPDX-License-Identifier: Apache-2.0
// The table of tasks: rows against a direct sort and filter, the newest wish, picking and hovering both ways.
#include <QAbstractButton>
#include <QHeaderView>
#include <QtTest>

#include <map>
#include <numeric>

#include "search/small_graphs.h"
#include "views/common/selection_model.h"
#include "views/task_table/task_table_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

SchedulePtr random_schedule(std::uint64_t seed, std::size_t tasks) {
  const auto graph = test::random_task_graph(seed, tasks);
  Placement placement;
  placement.devices = 3;
  for (std::size_t t = 0; t < tasks; ++t) placement.device.push_back(std::uint32_t(t % 3));
  const auto simulation = simulate(*graph, placement, true);
  return make_schedule(graph, placement, *simulation);
}

/// With the tasks that take no time.
struct FullTable : TaskTableView {
  FullTable() { findChild<QAbstractButton*>(QStringLiteral("tasks_without_time"))->setChecked(true); }
};

}  // namespace

class TaskTableTest : public QObject {
  Q_OBJECT

 private slots:
  void rows_are_a_direct_sort() {
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
      const SchedulePtr schedule = random_schedule(seed, 60);
      for (int column = 0; column < int(TaskColumn::kCount); ++column)
        for (const bool descending : {false, true}) {
          const auto rows = make_task_rows({schedule, "", TaskColumn(column), descending, true});
          QCOMPARE(rows->tasks.size(), std::size_t(60));
          for (std::uint32_t row = 0; row < 60; ++row) QCOMPARE(rows->row_of[rows->tasks[row]], row);
          for (std::size_t i = 1; i < 60; ++i) {
            const TaskIndex a = rows->tasks[i - (descending ? 0 : 1)], b = rows->tasks[i - (descending ? 1 : 0)];
            const TaskGraph& g = *schedule->graph;
            if (column == int(TaskColumn::start)) QVERIFY(task_start_s(*schedule, a) <= task_start_s(*schedule, b));
            if (column == int(TaskColumn::name)) QVERIFY(g.names[a] <= g.names[b]);
            if (column == int(TaskColumn::output)) QVERIFY(g.output_bytes[a] <= g.output_bytes[b]);
            if (column == int(TaskColumn::device)) QVERIFY(schedule->device_of[a] <= schedule->device_of[b]);
          }
        }
    }
  }

  // Against a direct sum over what the simulator sent.
  void what_is_sent_is_added_up() {
    TaskRowsPtr rows;
    TaskGraphPtr graph;
    Placement placement;
    std::int64_t most = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      graph = test::random_task_graph(seed, 60);
      placement = {};
      placement.devices = 3;
      for (std::size_t t = 0; t < 60; ++t) placement.device.push_back(std::uint32_t(t % 3));
      const auto simulation = simulate(*graph, placement, true);
      rows = make_task_rows({make_schedule(graph, placement, *simulation), "", TaskColumn::sent, true, true});
      std::vector<std::int64_t> sent(60, 0);
      std::int64_t between[3][3] = {};
      for (const SimulatedTransfer& transfer : simulation->transfers) {
        sent[transfer.source] += transfer.bytes;
        between[transfer.source % 3][transfer.to] += transfer.bytes;
      }
      QCOMPARE(rows->sent_bytes, sent);
      QVERIFY(std::count(sent.begin(), sent.end(), 0) < 60);
      for (std::size_t i = 1; i < 60; ++i) QVERIFY(sent[rows->tasks[i - 1]] >= sent[rows->tasks[i]]);
      most = 0;
      for (const auto& row : between)
        for (const std::int64_t bytes : row) most = std::max(most, bytes);
      QCOMPARE(rows->peak_communication_bytes, most);
      QCOMPARE(between[rows->peak_from][rows->peak_to], most);
      QCOMPARE(peak_communication(*simulation), most);
    }

    FullTable table;
    SelectionModel selection;
    table.set_selection(&selection);
    selection.follow_schedule(rows->request.schedule);
    QTRY_VERIFY(table.findChild<QTreeView*>()->model()->rowCount() == 60);
    QVERIFY(!table.findChild<QTreeView*>()->isColumnHidden(int(TaskColumn::sent)));
    QVERIFY(table.summary().contains(QStringLiteral("peak communication %1, from device %2 to device %3")
                                         .arg(memory_text(most))
                                         .arg(rows->peak_from)
                                         .arg(rows->peak_to)));
    // Of one device nothing is sent, and nothing is said of it.
    placement.devices = 1;
    placement.device.assign(60, 0);
    selection.follow_schedule(make_schedule(graph, placement, *simulate(*graph, placement, true)));
    QTRY_VERIFY(table.findChild<QTreeView*>()->isColumnHidden(int(TaskColumn::sent)));
    QVERIFY(!table.summary().contains("peak communication"));
  }

  // Starts reach the whole schedule's length, durations only that of the longest task: each column has a unit of its
  // own.
  void figures_stand_in_the_unit_of_their_column() {
    const SchedulePtr schedule = random_schedule(4, 200);
    TaskTableModel model;
    model.set_rows(make_task_rows({schedule, "", TaskColumn::duration, true}));
    const auto unit_of = [&](TaskColumn column) {
      return model.headerData(int(column), Qt::Horizontal, Qt::DisplayRole).toString().section(u' ', -1);
    };
    QVERIFY2(unit_of(TaskColumn::start) != unit_of(TaskColumn::duration), qPrintable(unit_of(TaskColumn::start)));
    const std::map<QString, double> per_second{{"s", 1}, {"ms", 1e3}, {"\u00b5s", 1e6}};
    for (const TaskColumn column : {TaskColumn::start, TaskColumn::duration})
      for (int row = 0; row < model.rowCount(); ++row) {
        QString text = model.index(row, int(column)).data().toString();
        const TaskIndex task = model.task_at(row);
        const double wanted =
            (column == TaskColumn::start ? task_start_s(*schedule, task) : task_duration_s(*schedule, task)) *
            per_second.at(unit_of(column));
        QVERIFY2(std::abs(text.remove(u'\u2009').toDouble() - wanted) <= 0.01 * wanted + 0.01, qPrintable(text));
      }
  }

  void filter_wants_every_word_in_any_case() {
    const SchedulePtr schedule = random_schedule(3, 400);
    const TaskGraph& g = *schedule->graph;
    const auto rows = make_task_rows({schedule, "BACKWARD  t1", TaskColumn::start, false, true});
    std::size_t expected = 0;
    double seconds = 0;
    for (TaskIndex t = 0; t < 400; ++t) {
      const bool kept = g.kind[t] == TaskKind::backward && std::string(g.names[t]).find("t1") != std::string::npos;
      expected += kept;
      if (kept) seconds += task_duration_s(*schedule, t);
      QCOMPARE(rows->row_of[t] != kNone, kept);
    }
    QVERIFY(expected > 0);
    QCOMPARE(rows->tasks.size(), expected);
    QVERIFY(std::abs(rows->shown_s - seconds) < 1e-12);
    QVERIFY(make_task_rows({schedule, "no such task", TaskColumn::start, false})->tasks.empty());
  }

  void critical_tasks_come_first() {
    const SchedulePtr schedule = random_schedule(4, 60);
    const auto rows = make_task_rows({schedule, "", TaskColumn::critical, false, true});
    const auto count = std::count(rows->critical.begin(), rows->critical.end(), true);
    QVERIFY(count > 0);
    for (std::size_t row = 0; row < rows->tasks.size(); ++row)
      QCOMPARE(bool(rows->critical[rows->tasks[row]]), row < std::size_t(count));
  }

  void what_takes_no_time_is_left_out_unless_asked() {
    const SchedulePtr schedule = random_schedule(4, 200);
    std::size_t timed = 0;
    for (TaskIndex t = 0; t < 200; ++t) timed += task_duration_s(*schedule, t) > 0;
    QVERIFY(timed > 100 && timed < 200);
    QCOMPARE(make_task_rows({schedule, "", TaskColumn::start, false})->tasks.size(), timed);
    QCOMPARE(make_task_rows({schedule, "", TaskColumn::start, false, true})->tasks.size(), std::size_t(200));
  }

  void follows_picks_and_hovers() {
    SelectionModel selection;
    FullTable view;
    view.set_selection(&selection);
    QVERIFY(view.table()->isHidden());
    selection.follow_schedule(random_schedule(5, 300));
    QTRY_COMPARE(view.model()->rowCount(), 300);
    QVERIFY(view.summary().startsWith("300 tasks"));
    view.resize(1100, 300);
    view.show();
    const auto centre = [&](int row) { return view.table()->visualRect(view.model()->index(row, 0)).center(); };
    QTest::mouseClick(view.table()->viewport(), Qt::LeftButton, {}, centre(2));
    QCOMPARE(selection.tasks(), std::set<TaskIndex>{view.model()->task_at(2)});
    QTest::mouseClick(view.table()->viewport(), Qt::LeftButton, Qt::ControlModifier, centre(4));
    QCOMPARE(selection.tasks().size(), std::size_t(2));
    QCOMPARE(view.rows_as_text().count('\n'), 3);
    // Picked elsewhere: marked and brought into sight.
    const TaskIndex far = view.model()->task_at(290);
    selection.pick_tasks({far});
    QCOMPARE(view.table()->selectionModel()->selectedRows().size(), 1);
    QVERIFY(view.table()->viewport()->rect().contains(centre(290)));
    QCOMPARE(selection.tasks(), std::set<TaskIndex>{far});
    // Sorting keeps what is picked.
    view.table()->header()->setSortIndicator(int(TaskColumn::name), Qt::DescendingOrder);
    QTRY_VERIFY(!view.busy());
    QCOMPARE(selection.tasks(), std::set<TaskIndex>{far});
    QCOMPARE(view.table()->selectionModel()->selectedRows().value(0).row(), view.model()->row_of(far));
    selection.follow_schedule(nullptr);
    QTRY_COMPARE(view.model()->rowCount(), 0);
    QVERIFY(view.table()->isHidden());
  }

  void names_take_the_room_that_figures_leave() {
    auto graph = std::make_shared<TaskGraph>(*test::random_task_graph(7, 300));
    graph->names = {};
    for (int t = 0; t < 300; ++t)
      graph->names.add(t == 250 ? "layer11/mlp/norm: reduce-scatter of the gradient of its scale" : "t");
    Placement placement;
    placement.devices = 3;
    for (std::uint32_t t = 0; t < 300; ++t) placement.device.push_back(t % 3);
    const auto simulation = simulate(*graph, placement, true);
    SelectionModel selection;
    FullTable view;
    view.set_selection(&selection);
    view.resize(1400, 300);
    selection.follow_schedule(make_schedule(graph, placement, *simulation));
    QTRY_COMPARE(view.model()->rowCount(), 300);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    const QFontMetrics metrics(view.table()->font());
    const auto longest =
        metrics.horizontalAdvance(QStringLiteral("layer11/mlp/norm: reduce-scatter of the gradient of its scale"));
    QVERIFY(view.table()->columnWidth(int(TaskColumn::name)) > longest);
    QVERIFY(view.table()->header()->length() <= view.table()->viewport()->width());
  }

  void the_newest_wish_wins() {
    SelectionModel selection;
    FullTable view;
    view.set_selection(&selection);
    selection.follow_schedule(random_schedule(6, 5000));
    for (const char* words : {"t1", "t12", "t123", "t1234"}) view.filter_field()->setText(words);
    QTRY_COMPARE(view.model()->rowCount(), 1);
    QVERIFY(!view.busy());
    QVERIFY(view.summary().startsWith("1 of"));
    // Gone while it works: waits for its own thread.
    auto other = std::make_unique<TaskTableView>();
    other->set_selection(&selection);
    other.reset();
  }

  void sorting_is_remembered() {
    TaskTableView view;
    view.restore_state({{"sorted_by", int(TaskColumn::output)}, {"descending", true}});
    QCOMPARE(view.save_state()["sorted_by"].toInt(), int(TaskColumn::output));
    QCOMPARE(view.save_state()["descending"].toBool(), true);
    view.restore_state({{"sorted_by", 77}});
    QCOMPARE(view.save_state()["sorted_by"].toInt(), int(TaskColumn::output));
  }
};

QTEST_MAIN(TaskTableTest)
#include "task_table_test.moc"
