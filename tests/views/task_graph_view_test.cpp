// SPDX-License-Identifier: Apache-2.0
// The task graph view through real events, offscreen. With TURNPOINT_SCREENSHOTS=<folder> it also writes pictures.
#include "views/graph/task_graph_view.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <random>

#include "core/model/task_hierarchy.h"
#include "send_signal.h"
#include "views/common/theme_colors.h"
#include "views/graph/layout_service.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_legend.h"
#include "views/task_graph_fixture.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

struct Shown {
  SelectionModel selection;
  TaskGraphView view;
  TaskGraphPtr graph;
  SchedulePtr schedule;
  explicit Shown(TaskGraphPtr g, std::uint32_t devices = 0, QSize size = QSize(1100, 420)) : graph(std::move(g)) {
    view.set_selection(&selection);
    view.resize(size);
    view.show();
    (void)QTest::qWaitForWindowExposed(&view);
    if (devices > 0) {
      schedule = fixture::in_stages(graph, devices);
      selection.follow_schedule(schedule);
      view.set_schedule(schedule);
    } else {
      view.set_task_graph(graph);
    }
    settle();
  }
  void settle() {
    QTest::qWait(30);
    (void)QTest::qWaitFor([this] { return !view.busy(); }, 20000);
    QTest::qWait(60);
    (void)QTest::qWaitFor([this] { return !view.busy(); }, 20000);
  }
  const TaskScene& scene() const { return *view.canvas()->scene(); }
  int box(const QString& name) const {
    for (std::size_t b = 1; b < scene().boxes.size(); ++b)
      if (scene().boxes[b].name == name) return int(b);
    return -1;
  }
  QPoint point(int box) const {
    return view.canvas()->to_device(scene().boxes[std::size_t(box)].rect.center()).toPoint();
  }
  QPoint title(int box) const {
    return view.canvas()->to_device(scene().boxes[std::size_t(box)].rect.topLeft() + QPointF(9, 11)).toPoint();
  }
  TaskIndex task(const std::string& name) const {
    for (TaskIndex t = 0; t < graph->task_count(); ++t)
      if (graph->names[t] == name) return t;
    return kNone;
  }
  QWidget* surface() const { return view.canvas()->viewport(); }
  void unfold(const QString& name) {
    QTest::mouseDClick(surface(), Qt::LeftButton, {}, point(box(name)));
    settle();
  }
};

/// QTest::mouseMove moves the cursor at times and sends an event at others; this always sends one.
void point_at(QWidget* widget, QPoint position) {
  QMouseEvent move(QEvent::MouseMove, QPointF(position), QPointF(widget->mapToGlobal(position)), Qt::NoButton,
                   Qt::NoButton, {});
  QApplication::sendEvent(widget, &move);
}

/// Rows of tasks without names that say anything, most of which read from rows far before them as well.
TaskGraphPtr nameless_tasks(int tasks, int lanes) {
  TaskGraphBuilder builder;
  std::mt19937 random(1);
  for (int t = 0; t < tasks; ++t) {
    const std::string name = "n" + std::to_string(t);
    TaskGraphBuilder::Task task;
    task.name = name, task.kind = TaskKind::other, task.time_s = 1e-4, task.output_bytes = 1 << 16;
    builder.add_task(task);
    if (t < lanes) continue;
    builder.add_edge(TaskIndex(t - lanes), TaskIndex(t));
    builder.add_edge(TaskIndex(random() % unsigned(t - t % lanes)), TaskIndex(t));
  }
  auto graph = builder.finish("nameless");
  if (!graph) qFatal("%s", graph.error().message().c_str());
  return *graph;
}

int count_pixels(const QImage& image, QColor color) {
  int found = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) found += image.pixelColor(x, y).rgb() == color.rgb();
  return found;
}

QString all_words(const HoverText& text) { return plain_text(text); }

}  // namespace

class TaskGraphViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    QApplication::setStyle(QStringLiteral("Fusion"));
    QApplication::setPalette(make_palette(false));
  }

  void layers_stand_in_order_and_unfold() {
    Shown shown(fixture::layered_tasks(6), 3);
    QCOMPARE(shown.scene().boxes.size(), std::size_t(7));
    for (int l = 0; l + 1 < 6; ++l)
      QVERIFY(shown.box(QStringLiteral("layer%1").arg(l)) < shown.box(QStringLiteral("layer%1").arg(l + 1)));
    QVERIFY(shown.scene().boxes[1].detail.contains(QStringLiteral("9 tasks")));
    shown.unfold(QStringLiteral("layer2"));
    QVERIFY(shown.scene().boxes[std::size_t(shown.box(QStringLiteral("layer2")))].open);
    // Forward tasks with what is folded to them, in order.
    const int norm = shown.box(QStringLiteral("norm")), out = shown.box(QStringLiteral("out"));
    QVERIFY(norm > 0 && out > norm);
    QVERIFY(shown.scene().boxes[std::size_t(norm)].fold);
    QVERIFY(shown.scene().boxes[std::size_t(norm)].rect.right() < shown.scene().boxes[std::size_t(out)].rect.left());
    // Boxes lie inside the open one and do not cover each other.
    for (const TaskBox& a : shown.scene().boxes) {
      if (a.parent < 0) continue;
      QVERIFY(shown.scene().boxes[std::size_t(a.parent)].rect.contains(a.rect));
      for (const TaskBox& b : shown.scene().boxes)
        if (&a != &b && a.parent == b.parent) QVERIFY(!a.rect.intersects(b.rect));
    }
    shown.unfold(QStringLiteral("in"));
    QVERIFY(shown.box(QStringLiteral("in:gradient")) > 0);
    QVERIFY(shown.box(QStringLiteral("in:update")) > 0);
    QTest::mouseClick(shown.surface(), Qt::LeftButton, {}, shown.title(shown.box(QStringLiteral("layer2"))));
    shown.settle();
    QCOMPARE(shown.scene().boxes.size(), std::size_t(7));
  }

  // A hundred thousand tasks without names: bands of depth that can be read, near lines, the others of what is picked.
  void a_crowded_level_shows_near_lines_and_the_others_of_what_is_picked() {
    Shown shown(nameless_tasks(3000, 30), 0, QSize(1100, 420));
    const TaskScene& scene = shown.scene();
    QVERIFY(scene.boxes.size() > 20);
    QVERIFY(scene.boxes[1].name.startsWith(QStringLiteral("depth 0")));
    QVERIFY(scene.lines_left_out > 0);
    // Wrapped like text: boxes are large enough to be read.
    const double zoom = shown.view.canvas()->zoom();
    QVERIFY2(scene.typical_width * zoom > 50,
             qPrintable(QStringLiteral("%1 px at %2").arg(scene.typical_width * zoom).arg(zoom)));
    const auto built = build_task_hierarchy(shown.graph);
    const TaskHierarchy& hierarchy = *built;
    for (std::size_t l = 0; l < scene.lines(); ++l) QVERIFY(scene.line_edge[l] < hierarchy.groups[0].edge_end);
    QVERIFY(scene.lines() <= 3 * scene.boxes.size());
    // Drawn and left out together are all of a box's lines.
    for (int box = 1; box < int(scene.boxes.size()); ++box) {
      const auto ordinal = std::uint32_t(box - 1);
      std::size_t all = 0, drawn = 0;
      for (const auto& edge : hierarchy.edges_of(0)) all += edge.from == ordinal || edge.to == ordinal;
      for (const auto e : scene.line_edge)
        drawn += hierarchy.edges[e].from == ordinal || hierarchy.edges[e].to == ordinal;
      QCOMPARE(drawn + lines_left_out_of(scene, hierarchy, box, 100000).size(), all);
      QVERIFY(lines_left_out_of(scene, hierarchy, box, 2).size() <= 2);
    }
    // Under the pointer the others appear.
    int box = -1;
    for (int b = 1; b < int(scene.boxes.size()) && box < 0; ++b)
      if (lines_left_out_of(scene, hierarchy, b, 9).size() >= 3) box = b;
    QVERIFY(box > 0);
    const QImage before = shown.view.canvas()->grab().toImage();
    point_at(shown.surface(), shown.point(box));
    const QImage after = shown.view.canvas()->grab().toImage();
    const QColor accent = theme_colors(shown.view.palette()).accent;
    const auto bluish = [&](const QImage& image) {
      int found = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
          const QColor c = image.pixelColor(x, y);
          found += std::abs(c.red() - accent.red()) < 90 && std::abs(c.green() - accent.green()) < 70 &&
                   std::abs(c.blue() - accent.blue()) < 50;
        }
      return found;
    };
    QVERIFY2(bluish(after) > bluish(before) + 30,
             qPrintable(QStringLiteral("%1, %2").arg(bluish(before)).arg(bluish(after))));
  }

  void tasks_that_nothing_joins_are_a_grid() {
    TaskGraphBuilder builder;
    for (int t = 0; t < 3000; ++t) {
      const std::string name = "task" + std::to_string(t);
      TaskGraphBuilder::Task task;
      task.name = name;
      task.time_s = 1e-3;
      builder.add_task(task);
    }
    Shown shown(*builder.finish("loose"));
    const QSizeF size = shown.scene().size;
    QVERIFY2(size.width() > size.height(), qPrintable(QStringLiteral("%1 x %2").arg(size.width()).arg(size.height())));
    QVERIFY(shown.view.canvas()->zoom() > 0.4);
    // Nobody was asked about a level without edges.
    QCOMPARE(shown.view.layout_service()->levels_answered(), 0);
  }

  void picking_goes_both_ways() {
    Shown shown(fixture::layered_tasks(6), 3);
    QTest::mouseClick(shown.surface(), Qt::LeftButton, {}, shown.point(shown.box(QStringLiteral("layer1"))));
    QCOMPARE(shown.selection.tasks().size(), std::size_t(9));
    for (const TaskIndex t : shown.selection.tasks()) QVERIFY(shown.graph->names[t].starts_with("layer1/"));
    QTest::mouseClick(shown.surface(), Qt::LeftButton, Qt::ControlModifier,
                      shown.point(shown.box(QStringLiteral("layer3"))));
    QCOMPARE(shown.selection.tasks().size(), std::size_t(18));
    // A task picked elsewhere marks the smallest box on show.
    const TaskIndex gelu = shown.task("layer4/gelu:gradient");
    shown.selection.pick_tasks({gelu});
    QCOMPARE(shown.view.canvas()->picked_boxes(), std::vector<int>{shown.box(QStringLiteral("layer4"))});
    shown.unfold(QStringLiteral("layer4"));
    QCOMPARE(shown.view.canvas()->picked_boxes(), std::vector<int>{shown.box(QStringLiteral("gelu"))});
    shown.view.reveal({gelu});
    shown.settle();
    QCOMPARE(shown.view.canvas()->picked_boxes(), std::vector<int>{shown.box(QStringLiteral("gelu:gradient"))});
    QTest::keyClick(shown.view.canvas(), Qt::Key_Escape);
    QVERIFY(shown.selection.tasks().empty());
  }

  void hover_names_what_lies_there() {
    Shown shown(fixture::layered_tasks(6), 3);
    point_at(shown.surface(), shown.point(shown.box(QStringLiteral("layer1"))));
    const QString group = all_words(shown.view.canvas()->hover_text());
    QVERIFY2(group.contains(QStringLiteral("9 tasks: 4 forward, 4 backward, 1 update")), qPrintable(group));
    QVERIFY2(group.contains(QStringLiteral("device 0 100%")), qPrintable(group));
    QVERIFY2(group.contains(QStringLiteral("layer0/out")), qPrintable(group));
    shown.unfold(QStringLiteral("layer1"));
    shown.unfold(QStringLiteral("in"));
    point_at(shown.surface(), shown.point(shown.box(QStringLiteral("in:gradient"))));
    QCOMPARE(shown.selection.hovered_task(), shown.task("layer1/in:gradient"));
    const QString task = all_words(shown.view.canvas()->hover_text());
    for (const char* part : {"layer1/in:gradient", "backward", "device 0", "output 1.00", "reads 2 from", "sends 2 to"})
      QVERIFY2(task.contains(QLatin1String(part)), qPrintable(task));
    // The line from layer 1 to layer 2 crosses devices.
    int line = -1;
    const auto& hierarchy = *build_task_hierarchy(shown.graph);
    for (std::size_t l = 0; l < shown.scene().lines(); ++l) {
      const auto& edge = hierarchy.edges[shown.scene().line_edge[l]];
      if (shown.scene().line_edge[l] < hierarchy.groups[0].edge_end && edge.from == 1 && edge.to == 2) line = int(l);
    }
    QVERIFY(line >= 0);
    QVERIFY(shown.scene().line_heat[std::size_t(line)] > 0);
    const QPointF a = shown.scene().points[shown.scene().point_begin[std::size_t(line)]],
                  b = shown.scene().points[shown.scene().point_begin[std::size_t(line)] + 1];
    point_at(shown.surface(), shown.view.canvas()->to_device((a + b) / 2).toPoint());
    const QString words = all_words(shown.view.canvas()->hover_text());
    QVERIFY2(words.contains(QStringLiteral("layer1 \u2192 layer2")), qPrintable(words));
    QVERIFY2(words.contains(QStringLiteral("between devices")), qPrintable(words));
    QEvent leave(QEvent::Leave);
    QApplication::sendEvent(shown.surface(), &leave);
    QVERIFY(shown.view.canvas()->hover_text().empty());
    QCOMPARE(shown.selection.hovered_task(), kNone);
  }

  void devices_have_colours_and_a_picked_one_stands_out() {
    Shown shown(fixture::layered_tasks(6), 3);
    const auto& palette = device_palette(theme_colors(shown.view.palette()));
    const QImage all = shown.surface()->grab().toImage();
    for (int d = 0; d < 3; ++d) QVERIFY(count_pixels(all, palette[std::size_t(d)]) > 300);
    auto* legend = shown.view.findChild<TaskLegend*>();
    QVERIFY(legend);
    QCOMPARE(legend->rows().size(), std::size_t(3));
    QCOMPARE(legend->rows()[1].text, QStringLiteral("device 1"));
    QTest::mouseClick(legend, Qt::LeftButton, {}, legend->row_rect(1).center());
    QCOMPARE(shown.selection.device(), 1u);
    QCoreApplication::processEvents();
    const QImage one = shown.surface()->grab().toImage();
    QVERIFY(count_pixels(one, palette[1]) > 300);
    QCOMPARE(count_pixels(one, palette[0]), 0);
    QTest::mouseClick(legend, Qt::LeftButton, {}, legend->row_rect(1).center());
    QCOMPARE(shown.selection.device(), kNone);
  }

  void without_a_placement_scopes_give_the_colours() {
    Shown shown(fixture::layered_tasks(4));
    auto* legend = shown.view.findChild<TaskLegend*>();
    QCOMPARE(legend->rows().size(), std::size_t(4));
    QCOMPARE(legend->rows()[2].text, QStringLiteral("layer2"));
    QTest::mouseClick(legend, Qt::LeftButton, {}, legend->row_rect(2).center());
    QCOMPARE(shown.selection.tasks().size(), std::size_t(9));
    shown.view.set_schedule(fixture::in_stages(shown.graph, 2));
    shown.settle();
    QCOMPARE(legend->rows().size(), std::size_t(2));
    // Time and bytes by steps of heat.
    auto* color = shown.view.findChild<QComboBox*>();
    for (const int index : {1, 2}) {
      color->setCurrentIndex(index);
      QCOMPARE(legend->rows().size(), std::size_t(5));
    }
  }

  void search_unfolds_to_what_it_finds() {
    Shown shown(fixture::layered_tasks(30), 3);
    auto* search = shown.view.findChild<QLineEdit*>();
    QVERIFY(search);
    search->setFocus();
    QTest::keyClicks(search, QStringLiteral("LAYER17/gelu"));
    QTest::keyClick(search, Qt::Key_Return);
    shown.settle();
    QCOMPARE(shown.selection.tasks(), std::set<TaskIndex>{shown.task("layer17/gelu")});
    QVERIFY(shown.scene().boxes[std::size_t(shown.box(QStringLiteral("layer17")))].open);
    QTest::keyClick(search, Qt::Key_Return);
    shown.settle();
    QCOMPARE(shown.selection.tasks(), std::set<TaskIndex>{shown.task("layer17/gelu:gradient")});
    const QRectF seen = shown.view.canvas()->visible_scene();
    QVERIFY(seen.intersects(shown.scene().boxes[std::size_t(shown.view.canvas()->picked_boxes().front())].rect));
    search->clear();
    QTest::keyClicks(search, QStringLiteral("no such task"));
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY(shown.view.findChild<QLineEdit*>()->text().size() > 3);
  }

  void keys_walk_and_fold() {
    Shown shown(fixture::layered_tasks(5), 2);
    auto* canvas = shown.view.canvas();
    canvas->setFocus(Qt::TabFocusReason);
    QTest::keyClick(canvas, Qt::Key_Home);
    QCOMPARE(shown.scene().boxes[std::size_t(canvas->current_box())].name, QStringLiteral("layer0"));
    QTest::keyClick(canvas, Qt::Key_Right);
    QCOMPARE(shown.scene().boxes[std::size_t(canvas->current_box())].name, QStringLiteral("layer1"));
    QVERIFY(canvas->accessibleDescription().contains(QStringLiteral("layer1")));
    QTest::keyClick(canvas, Qt::Key_Return);
    shown.settle();
    QVERIFY(shown.scene().boxes[std::size_t(shown.box(QStringLiteral("layer1")))].open);
    QTest::keyClick(canvas, Qt::Key_C, Qt::ControlModifier);
    QVERIFY(QApplication::clipboard()->text().contains(QStringLiteral("layer1")));
    QTest::keyClick(canvas, Qt::Key_Backspace);
    shown.settle();
    QVERIFY(!shown.scene().boxes[std::size_t(shown.box(QStringLiteral("layer1")))].open);
    const double before = canvas->zoom();
    QTest::keyClick(canvas, Qt::Key_Plus);
    QVERIFY(canvas->zoom() > before);
    QTest::keyClick(canvas, Qt::Key_F);
    QVERIFY(canvas->fitted());
  }

  void the_menu_copies_names_and_unfolds() {
    Shown shown(fixture::layered_tasks(5), 2);
    const auto choose = [&](const QString& text) {
      bool done = false;
      QTimer::singleShot(50, &shown.view, [&] {
        auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
        if (!menu) return;
        for (QAction* action : menu->actions())
          if (action->text() == text && action->isEnabled()) action->trigger(), done = true;
        menu->close();
      });
      const QPoint at = shown.point(shown.box(QStringLiteral("layer2")));
      QContextMenuEvent event(QContextMenuEvent::Mouse, at, shown.surface()->mapToGlobal(at));
      QApplication::sendEvent(shown.surface(), &event);
      shown.settle();
      return done;
    };
    QVERIFY(choose(QStringLiteral("Copy name")));
    QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("layer2"));
    QVERIFY(choose(QStringLiteral("Show in the timeline")));
    QCOMPARE(shown.selection.tasks().size(), std::size_t(9));
    QVERIFY(choose(QStringLiteral("Unfold everything inside")));
    QVERIFY(shown.box(QStringLiteral("gelu:gradient")) > 0);
  }

  void without_the_layout_process_the_view_is_complete() {
    Shown shown(fixture::layered_tasks(8), 2);
    shown.view.layout_service()->set_program(QStringLiteral("/nonexistent/turnpoint-layout"));
    shown.unfold(QStringLiteral("layer3"));
    QVERIFY(shown.box(QStringLiteral("gelu")) > 0);
    QVERIFY(!shown.view.layout_service()->trouble().isEmpty());
    for (const TaskBox& box : shown.scene().boxes) QVERIFY(box.rect.width() > 10 && box.rect.height() > 10);
  }

  void a_killed_layout_process_does_not_stop_the_view() {
    Shown shown(fixture::layered_tasks(8), 2);
    auto* layouts = shown.view.layout_service();
    if (layouts->process_id() == 0) QSKIP("the layout process is not built");
    QVERIFY(turnpoint::test::send_signal(layouts->process_id(), SIGKILL));
    shown.unfold(QStringLiteral("layer3"));
    QVERIFY(shown.box(QStringLiteral("gelu")) > 0);
    QVERIFY(!shown.view.busy());
  }

  void state_comes_back_before_or_after_the_graph() {
    const auto graph = fixture::layered_tasks(6);
    QJsonObject state;
    {
      Shown shown(graph, 2);
      shown.unfold(QStringLiteral("layer2"));
      shown.view.findChild<QComboBox*>()->setCurrentIndex(2);
      state = shown.view.save_state();
    }
    SelectionModel selection;
    TaskGraphView early;
    early.resize(1000, 400);
    early.set_selection(&selection);
    early.restore_state(state);
    QCOMPARE(early.save_state(), state);
    early.show();
    QSignalSpy ready(&early, &TaskGraphView::ready);
    early.set_task_graph(graph);
    QTRY_VERIFY(ready.size() > 0);
    QCOMPARE(early.save_state(), state);
    // A graph of the same names keeps what is unfolded, another one does not.
    early.set_task_graph(fixture::layered_tasks(6));
    QTRY_VERIFY(!early.busy());
    QTest::qWait(50);
    QCOMPARE(early.save_state(), state);
    early.set_task_graph(fixture::layered_tasks(3));
    QTRY_VERIFY(!early.busy());
    QTest::qWait(50);
    QVERIFY(early.save_state() != state);
    early.set_task_graph(nullptr);
    QVERIFY(!early.canvas()->scene());
  }

  void the_newest_graph_wins_and_closing_while_busy_is_clean() {
    SelectionModel selection;
    auto view = std::make_unique<TaskGraphView>();
    view->set_selection(&selection);
    view->resize(900, 300);
    view->show();
    for (const int layers : {400, 3, 300, 7}) view->set_task_graph(fixture::layered_tasks(layers));
    QTRY_VERIFY(!view->busy() && view->canvas()->scene());
    QTRY_COMPARE(view->canvas()->scene()->boxes.size(), std::size_t(8));
    view->set_task_graph(fixture::layered_tasks(500));
    view.reset();
    QTest::qWait(100);
  }

  void long_names_and_small_windows() {
    TaskGraphBuilder builder;
    builder.name = "long";
    for (int i = 0; i < 40; ++i) {
      const std::string scope = fmt::format("a_rather_long_scope_name_of_a_block_{}/inner", i / 4);
      const std::string name = fmt::format("{}/Operation_with_a_very_long_name_number_{}_of_many", scope, i);
      TaskGraphBuilder::Task task;
      task.name = name, task.kind = TaskKind::forward, task.time_s = 1e-3 * i, task.scope = builder.scope(scope);
      task.output_bytes = 1000 * i;
      const auto id = builder.add_task(task);
      if (id > 0) builder.add_edge(id - 1, id);
    }
    Shown shown(*builder.finish("long"), 16, QSize(420, 220));
    QVERIFY(!shown.view.findChild<TaskLegend*>()->isVisible());
    QVERIFY(shown.view.canvas()->zoom() > 0.1);
    QImage picture(900, 400, QImage::Format_ARGB32);
    QPainter painter(&picture);
    shown.view.paint_to(painter, picture.size());
    painter.end();
    QVERIFY(count_pixels(picture, device_palette(theme_colors(shown.view.palette()))[3]) > 20);
  }

  void pictures() {
    const QString folder = qEnvironmentVariable("TURNPOINT_SCREENSHOTS");
    if (folder.isEmpty()) QSKIP("set TURNPOINT_SCREENSHOTS to a folder");
    QDir().mkpath(folder);
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      Shown shown(fixture::layered_tasks(24), 4, QSize(1600, 500));
      shown.unfold(QStringLiteral("layer7"));
      shown.view.grab().save(folder +
                             (dark ? QStringLiteral("/task-graph-dark.png") : QStringLiteral("/task-graph.png")));
    }
    QApplication::setPalette(make_palette(false));
  }
};

QTEST_MAIN(TaskGraphViewTest)
#include "task_graph_view_test.moc"
