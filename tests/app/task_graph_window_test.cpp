// SPDX-License-Identifier: Apache-2.0
// Task graphs, placements in the real window on the real core, through real events.
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QDropEvent>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QUndoStack>
#include <QtTest>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "app/document.h"
#include "app/plan_loader.h"
#include "app/schedule_loader.h"
#include "app/search_runner.h"
#include "app/tabs/graph_tab.h"
#include "app/task_manager.h"
#include "core/scenario/task_scenario.h"
#include "real_window.h"
#include "views/common/message_bar.h"
#include "views/frontier/frontier_chart.h"
#include "views/memory/memory_view.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const QString kSmall = QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json");

}  // namespace

class TaskGraphWindowTest : public QObject {
  Q_OBJECT

 private slots:
  void a_task_graph_opens_as_it_is() {
    Real real;
    QVERIFY(real.open(kSmall));
    const ScenarioPtr& scenario = real.window->work().document.scenario();
    QVERIFY(scenario && scenario->tasks);
    QCOMPARE(scenario->hardware, std::string(kFileHardware));
    QCOMPARE(scenario->cluster->devices(), 3);
    QVERIFY(real.window->windowTitle().contains("3 devices of its file"));
    // What the file holds already cannot be edited; devices and sliders can.
    for (const char* row : {"batch", "sequence", "precision", "optimizer", "recompute"})
      QVERIFY2(!real.child<QWidget>(row)->isEnabled(), row);
    QVERIFY(real.child<QSpinBox>("devices")->isEnabled());
    QVERIFY(real.child<QLabel>("tasks_note")->isVisible());
    QCOMPARE(real.child<QComboBox>("hardware_box")->currentText(), QString("As the file says"));
    // Those that place come first; the others stand below with their reason.
    const auto& rows = part<views::ScenarioPanel>(real.window)->methods_model()->rows();
    QCOMPARE(rows.front().name, QString("pardnn"));
    QVERIFY(rows.front().enabled);
    QVERIFY(rows.back().status.contains("task graph"));
    // A marker or a line per method, all simulated.
    const views::ChartData& chart = part<views::FrontierChart>(real.window)->data();
    QCOMPARE(chart.subject()->method, std::string("pardnn"));
    QCOMPARE(chart.clock, Clock::simulated);
    QVERIFY(chart.series.size() >= 4);
    QVERIFY(real.child<QLabel>("chart_subtitle")->text().contains("placements of 4 tasks on 3 devices"));
    QVERIFY(!action(real, "simulated_clock")->isEnabled());
    QCOMPARE(real.settings.recent_models().value(0), kSmall);
  }

  void the_picked_placement_is_in_every_view() {
    Real real;
    QVERIFY(real.open(kSmall));
    QVERIFY(real.schedule());
    QCOMPARE(real.schedule()->makespan_s, real.point("pardnn").time_s);
    QVERIFY(tab<app::GraphTab>(real.window)->shows_tasks());
    QVERIFY(placement_on_show(*real.window));
    QVERIFY(part<views::PlanPanel>(real.window)->findChild<QLabel*>("picked_time")->text().contains("s"));
    // Another marker, by the mouse: its schedule follows.
    for (const char* name : {"single-device", "heft", "layered-expert"}) {
      if (real.point(name) == real.point("pardnn")) continue;
      real.click(name);
      QCOMPARE(real.window->work().document.selection().point()->method, std::string(name));
      QVERIFY(real.settle());
      QCOMPARE(real.schedule()->makespan_s, real.point(name).time_s);
      QCOMPARE(placement_on_show(*real.window)->method, std::string(name));
      return;
    }
    QFAIL("all methods found the same");
  }

  void a_picked_task_stays_picked_from_placement_to_placement() {
    Real real;
    QVERIFY(real.open(real.random_graph(4, 60)));
    views::SelectionModel& selection = real.window->work().document.selection();
    selection.pick_tasks({7});
    for (const char* name : {"single-device", "heft", "layered-expert"}) {
      const SchedulePtr before = real.schedule();
      selection.pick_point(views::PickedPoint{name, 0});
      QVERIFY(QTest::qWaitFor([&] { return real.schedule() && real.schedule() != before; }, 60000));
      QVERIFY(real.settle());
      QCOMPARE(selection.tasks(), std::set<TaskIndex>({7}));
      QVERIFY(!part<views::TimelineView>(real.window)->canvas()->view().picked->empty());
    }
    QVERIFY(real.open(real.random_graph(5, 60)));
    QVERIFY(selection.tasks().empty());
  }

  void a_stopped_schedule_comes_with_the_next_look() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    real.child<QDockWidget>("timeline")->raise();
    QVERIFY(QTest::qWaitFor([&] { return !real.window->work().tasks.tasks().empty() || real.schedule(); }, 60000));
    real.window->work().tasks.cancel_all();
    QVERIFY(real.settle());
    if (!real.schedule()) {
      real.child<QDockWidget>("graph")->raise();
      real.child<QDockWidget>("timeline")->raise();
      QVERIFY(QTest::qWaitFor([&] { return real.schedule() != nullptr; }, 60000));
    }
    QVERIFY(real.settle());
  }

  void keys_walk_through_methods_and_along_a_frontier_by_memory() {
    Real real;
    QVERIFY(real.open(real.random_graph(4, 60)));
    auto* chart = part<views::FrontierChart>(real.window);
    chart->setFocus();
    const auto picked = [&] { return real.window->work().document.selection().point(); };
    const std::size_t all = chart->data().series.size();
    for (std::size_t i = 0; i < all; ++i) QTest::keyClick(chart, Qt::Key_Up);
    std::set<std::string> methods;
    for (std::size_t i = 0; i < all; ++i) {
      methods.insert(picked()->method);
      QTest::keyClick(chart, Qt::Key_Down);
    }
    QCOMPARE(methods.size(), all);
    QTest::keyClick(chart, Qt::Key_Home);
    QCOMPARE(picked()->method, std::string("pardnn"));
    const auto& points = chart->data().find("pardnn")->result->points;
    QVERIFY(points.size() > 1);
    std::vector<std::int64_t> seen;
    for (std::size_t i = 0; i < points.size(); ++i) {
      seen.push_back(points[picked()->index].memory_bytes);
      QTest::keyClick(chart, Qt::Key_Right, Qt::ShiftModifier);
    }
    QVERIFY(std::is_sorted(seen.begin(), seen.end()));
    QVERIFY(seen.back() > seen.front());
    QVERIFY(real.settle());
  }

  void devices_are_edited_and_undone() {
    Real real;
    QVERIFY(real.open(real.random_graph(1, 80)));
    QCOMPARE(real.window->work().document.scenario()->cluster->devices(), kDefaultPlacementDevices);
    auto* devices = real.child<QSpinBox>("devices");
    devices->setFocus();
    devices->selectAll();
    QTest::keyClicks(devices, "4");
    QTest::keyClick(devices, Qt::Key_Return);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario()->cluster->devices() == 4; }, 60000));
    QVERIFY(real.settle());
    QCOMPARE(real.schedule()->devices.size(), std::size_t(4));
    action(real, "undo")->trigger();
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario()->cluster->devices(), kDefaultPlacementDevices);
    QCOMPARE(real.schedule()->devices.size(), std::size_t(kDefaultPlacementDevices));
    QCOMPARE(devices->value(), kDefaultPlacementDevices);
  }

  void more_devices_than_the_file_has_are_refused_in_words() {
    Real real;
    QVERIFY(real.open(kSmall));
    real.window->work().document.set_option("devices", 5, 0);
    QVERIFY(QTest::qWaitFor([&] { return real.window->voice().bar().count() == 1; }, 60000));
    QVERIFY(real.window->voice().bar().current()->what.contains("describes 3"));
    QCOMPARE(real.window->work().document.scenario()->cluster->devices(), 3);
    QVERIFY(real.settle());
  }

  /// The third device of the file has no limit: what is in its peak is not measured by the others'.
  void devices_of_different_memory_have_no_common_line() {
    Real real;
    QVERIFY(real.open(kSmall));
    QVERIFY(part<views::FrontierChart>(real.window)->data().own_limits);
    QCOMPARE(part<views::FrontierChart>(real.window)->data().memory_limit, std::int64_t(0));
    real.window->work().document.set_option("devices", 2, 0);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario()->cluster->devices() == 2; }, 60000));
    QVERIFY(real.settle());
    QVERIFY(!part<views::FrontierChart>(real.window)->data().own_limits);
    QCOMPARE(part<views::FrontierChart>(real.window)->data().memory_limit, std::int64_t(1000));
  }

  void a_slider_moves_the_markers() {
    Real real;
    QVERIFY(real.open(real.random_graph(2, 80)));
    const double before = real.point("pardnn").time_s;
    views::SliderRow* row = part<views::ScenarioPanel>(real.window)->slider_row("device-speed-scale");
    row->slider()->setFocus();
    for (int i = 0; i < 5; ++i) QTest::keyClick(row->slider(), Qt::Key_PageUp);
    QVERIFY(real.window->work().document.scenario()->settings.factors.device_speed > 1);
    QVERIFY(real.settle());
    QVERIFY(real.point("pardnn").time_s < before);
    QVERIFY(!real.window->work().runner.find("pardnn")->coarse);
    QCOMPARE(real.schedule()->makespan_s, real.point(real.window->work().document.selection().point()->method).time_s);
  }

  void a_memory_limit_is_typed_where_the_file_states_none() {
    Real real;
    QVERIFY(real.open(real.random_graph(6, 80)));
    auto* line = real.child<QLineEdit>("memory_limit_line");
    QVERIFY(line->isVisible());
    QVERIFY(!part<views::ScenarioPanel>(real.window)->slider_row("device-memory-scale")->slider()->isEnabled());
    QCOMPARE(part<views::FrontierChart>(real.window)->data().memory_limit, std::int64_t(0));
    line->setFocus();
    QTest::keyClicks(line, "1");  // a byte holds nothing
    QTest::keyClick(line, Qt::Key_Return);
    QVERIFY(
        QTest::qWaitFor([&] { return real.window->work().document.scenario()->settings.memory_limit == 1; }, 60000));
    QVERIFY(real.settle());
    QVERIFY(!real.point("pardnn").fits);
    QCOMPARE(part<views::FrontierChart>(real.window)->data().memory_limit, std::int64_t(1));
    QVERIFY(placement_on_show(*real.window)->shortage.has_value());
    action(real, "undo")->trigger();
    QVERIFY(real.settle());
    QVERIFY(real.point("pardnn").fits);
  }

  void sessions_bring_a_task_graph_back() {
    const QString graph = kSmall;
    QTemporaryDir folder;
    const QString path = folder.filePath("graph.turnpoint");
    {
      Real real;
      QVERIFY(real.open(graph));
      real.window->work().document.set_option("devices", 2, 0);
      QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario()->cluster->devices() == 2; }, 60000));
      QVERIFY(real.settle());
      real.window->work().runner.set_enabled("round-robin", true);
      QVERIFY(real.settle());
      QVERIFY(real.window->sessions().save(path));
    }
    Real real;
    QVERIFY(real.open(path));
    QCOMPARE(real.window->work().document.scenario()->hardware, std::string(kFileHardware));
    QCOMPARE(real.window->work().document.scenario()->cluster->devices(), 2);
    QVERIFY(real.window->work().runner.find("round-robin")->result);
    QVERIFY(real.schedule());
    // A model after that needs hardware, and nobody has named any.
    real.window->work().document.open_model("builtin:lenet");
    QVERIFY(real.settle());
    QVERIFY(!real.window->work().document.scenario()->tasks);
    QCOMPARE(real.window->work().document.scenario()->hardware, std::string("v100-16gb-2x8"));
  }

  void between_models_and_task_graphs() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    QVERIFY(!real.window->work().runner.find("pardnn")->enabled);
    QVERIFY(!tab<app::GraphTab>(real.window)->shows_tasks());
    QVERIFY(real.open(kSmall));
    QVERIFY(real.window->work().runner.find("pardnn")->enabled);
    QVERIFY(!real.window->work().runner.find("ft")->refusal.empty());
    QVERIFY(tab<app::GraphTab>(real.window)->shows_tasks());
    // Back: the hardware that was there before, every split as it was.
    real.window->work().document.open_model("builtin:lenet");
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario()->hardware, std::string("v100-16gb-1x4"));
    QVERIFY(!real.window->work().runner.find("pardnn")->enabled);
    QVERIFY(real.window->work().runner.find("ft")->refusal.empty());
    QVERIFY(!tab<app::GraphTab>(real.window)->shows_tasks());
    QVERIFY(real.child<QWidget>("batch")->isEnabled());
    action(real, "undo")->trigger();
    QVERIFY(real.settle());
    QVERIFY(real.window->work().document.scenario()->tasks);
    QVERIFY(tab<app::GraphTab>(real.window)->shows_tasks());
  }

  void a_task_graph_goes_onto_real_hardware() {
    Real real;
    QVERIFY(real.open(real.random_graph(9, 60)));
    real.window->work().document.open_hardware("v100-16gb-2x8");
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario()->cluster->devices(), 16);
    QCOMPARE(real.schedule()->devices.size(), std::size_t(16));
    QVERIFY(part<views::FrontierChart>(real.window)->data().memory_limit > 0);
    QVERIFY(!real.child<QLineEdit>("memory_limit_line")->isVisible());
    real.window->work().document.open_hardware(kFileHardware);
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario()->cluster->devices(), kDefaultPlacementDevices);
  }

  void dropped_profiles_of_text_open() {
    Real real;
    const QString path = real.folder.filePath("profile.graph.txt");
    std::ofstream(path.toStdString())
        << "node1 -- Input0 -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=0.0, "
           "parameter_size=0.0\n"
           "node2 -- Linear -- forward_compute_time=2.0, backward_compute_time=4.0, activation_size=64.0, "
           "parameter_size=32.0\n"
           "\tnode1 -- node2\n";
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(path)});
    QDropEvent drop(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    static_cast<QObject*>(real.window.get())->event(&drop);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario() != nullptr; }, 60000));
    QVERIFY(real.settle());
    QVERIFY(real.window->work().document.scenario()->tasks);
  }

  void broken_graphs_lose_nothing() {
    Real real;
    QVERIFY(real.open(kSmall));
    const ScenarioPtr before = real.window->work().document.scenario();
    const QString path = real.folder.filePath("cycle.json");
    std::ofstream(path.toStdString())
        << R"({"format": "turnpoint/task-graph@1", "tasks": [{"name": "a"}, {"name": "b"}],
      "edges": [{"from": 0, "to": 1}, {"from": 1, "to": 0}]})";
    real.window->opener().open_path(path);
    QVERIFY(QTest::qWaitFor([&] { return real.window->voice().bar().count() == 1; }, 60000));
    QVERIFY(real.window->voice().bar().current()->what.contains("cycle", Qt::CaseInsensitive));
    QCOMPARE(real.window->work().document.scenario(), before);
    QVERIFY(real.settle());
    QVERIFY(real.schedule());
  }

  void a_model_s_placements_share_the_tabs() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    real.window->work().runner.set_enabled("pardnn", true);
    QVERIFY(real.settle());
    real.window->work().document.selection().pick_point(views::PickedPoint{"pardnn", 0});
    QVERIFY(real.settle());
    QVERIFY(tab<app::GraphTab>(real.window)->shows_tasks());
    QVERIFY(real.schedule() && !real.schedule()->operator_of.empty());
    // An operator picked anywhere is its tasks, and the other way round.
    const OperatorId op = real.schedule()->operator_of.back();
    real.window->work().document.selection().pick_operators({op});
    for (const TaskIndex task : real.window->work().document.selection().tasks())
      QCOMPARE(real.schedule()->operator_of[task], op);
    QVERIFY(!real.window->work().document.selection().tasks().empty());
    real.window->work().document.selection().pick_point(views::PickedPoint{"ft", 0});
    QVERIFY(real.settle());
    QVERIFY(!tab<app::GraphTab>(real.window)->shows_tasks());
    QVERIFY(real.window->work().loader.plan());
  }

  void sharding_plans_have_schedules_while_somebody_looks() {
    Real real;
    action(real, "plan_dock")->trigger();  // hidden: it shows the schedule's peak
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    QVERIFY(!real.schedule());
    real.child<QDockWidget>("timeline")->raise();
    QVERIFY(QTest::qWaitFor([&] { return real.schedule() != nullptr; }, 60000));
    QVERIFY(real.settle());
    const auto simulated =
        simulated_seconds(*real.window->work().document.scenario(), *real.window->work().loader.plan());
    QCOMPARE(real.schedule()->makespan_s, simulated);
    QVERIFY(!part<views::TimelineView>(real.window)->words().isEmpty());
  }

  void the_memory_line_is_dragged() {
    Real real;
    QVERIFY(real.open(real.random_graph(6, 80)));
    const std::int64_t limit = real.point("pardnn").memory_bytes;
    real.window->work().document.set_option("memory-limit", double(limit), 0);
    QVERIFY(real.settle());
    auto* chart = part<views::FrontierChart>(real.window);
    QCOMPARE(chart->data().memory_limit, limit);
    auto* plot = chart->findChild<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
    const QPoint from = chart->limit_position(), to = from - QPoint(80, 0);
    QTest::mousePress(plot, Qt::LeftButton, Qt::NoModifier, from);
    for (int i = 1; i <= 8; ++i) QTest::mouseMove(plot, from + (to - from) * i / 8);
    QTest::mouseRelease(plot, Qt::LeftButton, Qt::NoModifier, to);
    QVERIFY(real.settle());
    const std::int64_t now = real.window->work().document.scenario()->settings.memory_limit;
    QVERIFY2(now > 0 && now < limit, qPrintable(QString::number(now)));
    QVERIFY(!real.point("single-device").fits);
    action(real, "undo")->trigger();  // one gesture, one step
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario()->settings.memory_limit, limit);
  }

  /// Its best so far is drawn and said to be that; asked for again it is searched again.
  void a_stopped_search_keeps_its_best() {
    Real real;
    QVERIFY(real.open(real.random_graph(3, 40)));
    auto& work = real.window->work();
    const std::string name = "trinity:from=heft:iterations=1000000";
    QVERIFY(work.runner.add_split(name).has_value());
    const auto learning = [&] {
      const auto tasks = work.tasks.tasks();
      return std::any_of(tasks.begin(), tasks.end(),
                         [](const app::TaskInfo& task) { return task.phase.contains(QStringLiteral("iteration")); });
    };
    QVERIFY(QTest::qWaitFor(learning, 60000 * test::kSanitizerFactor));
    work.runner.cancel(name);
    QVERIFY(real.settle());
    const app::MethodRun* run = work.runner.find(name);
    QVERIFY(run->state == app::MethodRun::State::cancelled);
    QVERIFY(run->result && !run->result->points.empty());
    QVERIFY(run->result->notes.front().starts_with("The search was stopped early"));
    real.window->work().runner.set_enabled("heft", true);
    QVERIFY(real.settle());
    QVERIFY(work.runner.find(name)->result);
    QVERIFY(real.point(name).time_s <= real.point("heft").time_s);
    work.runner.search(name);
    QVERIFY(QTest::qWaitFor(learning, 60000 * test::kSanitizerFactor));
    QVERIFY(work.runner.find(name)->state == app::MethodRun::State::running);
    work.tasks.cancel_all();
    QVERIFY(real.settle());
  }

  void closing_while_everything_runs() {
    Real real;
    real.window->opener().open_path(real.random_graph(12, 20000));
    QTest::qWait(30);
    real.window->close();
    real.window.reset();
  }
};

QTEST_MAIN(TaskGraphWindowTest)
#include "task_graph_window_test.moc"
