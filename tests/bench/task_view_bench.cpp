// SPDX-License-Identifier: Apache-2.0
// The task graph view on graphs of the seeded recipe, software rendering at 1920x1080, offscreen:
//   first paint   from the graph in memory until hierarchy, first level and picture are there; bar 2 s of processor
//                 time of all threads, with the time on the clock beside it
//   frame         the worst of a sweep of zooms and places with everything unfolded as far as the view goes; bar 16 ms
//   memory        largest resident set of the process; bar 1.5 GiB
// Frames are processor time of the interface thread, the median of five. Exits 1 above a bar.
//   build/bench/task_view_bench [tasks]
#include <time.h>

#include <QApplication>
#include <QComboBox>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QScrollBar>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/search/placement_registry.h"
#include "core/simulation/schedule.h"
#include "simulation/layered_dag.h"
#include "views/graph/layout_service.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_graph_bar.h"
#include "views/graph/task_graph_view.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::views;

constexpr double kPaintBar = 2, kFrameBar = 16e-3, kMemoryBar = 1.5;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

double peak_gib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::atof(line.c_str() + 6) / (1 << 20);
  return 0;
}

/// The layered graph with the scopes that a network of stages, blocks and cells has.
TaskGraphPtr with_scopes(const TaskGraphPtr& plain, std::uint64_t forward) {
  TaskGraphBuilder builder;
  builder.reserve(plain->task_count(), plain->edge_count());
  builder.name = "layered with scopes";
  for (TaskIndex t = 0; t < plain->task_count(); ++t) {
    const std::uint64_t at = t < forward ? t : t < 2 * forward ? 2 * forward - 1 - t : 0;
    const std::uint64_t layer = at / test::LayeredDag::kLanes;
    TaskGraphBuilder::Task task;
    task.name = plain->names[t];
    task.kind = plain->kind[t];
    task.time_s = plain->time_s[t];
    task.output_bytes = plain->output_bytes[t];
    if (task.kind != TaskKind::update)
      task.scope = builder.scope(fmt::format("stage{}/block{}/cell{}", layer / 480, layer / 48, layer / 4));
    builder.add_task(task);
  }
  for (TaskIndex t = 0; t < plain->task_count(); ++t)
    for (const TaskIndex to : plain->successors(t)) builder.add_edge(t, to);
  builder.links = plain->links;
  auto graph = builder.finish(builder.name);
  return graph ? *graph : nullptr;
}

SchedulePtr place(const TaskGraphPtr& graph) {
  placement::PlacementRequest request;
  request.devices = 16;
  const auto method = placement::find_placement_method("pardnn");
  RunContext context;
  const auto result = placement::run_placement(**method, *graph, request, context);
  if (!result) return nullptr;
  const auto simulation = simulate(*graph, result->placement, true);
  return simulation ? make_schedule(graph, result->placement, *simulation) : nullptr;
}

void settle(const TaskGraphView& view) {
  for (int quiet = 0; quiet < 3; quiet = view.busy() ? 0 : quiet + 1) {
    QEventLoop loop;
    QTimer::singleShot(20, &loop, &QEventLoop::quit);
    loop.exec();
  }
}

double frame_seconds(TaskCanvas& canvas) {
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    // One pixel to and fro makes the frame stale.
    canvas.verticalScrollBar()->setValue(canvas.verticalScrollBar()->value() + (i % 2 == 0 ? 1 : -1));
    const double begin = thread_seconds();
    canvas.viewport()->repaint();
    seconds.push_back(thread_seconds() - begin);
  }
  std::nth_element(seconds.begin(), seconds.begin() + 2, seconds.end());
  return seconds[2];
}

double sweep(TaskGraphView& view) {
  TaskCanvas& canvas = *view.canvas();
  canvas.fit();
  double worst = 0, at = 0;
  std::vector<double> zooms{canvas.zoom()};
  for (double zoom = 0.006; zoom < 4; zoom *= 1.3) zooms.push_back(zoom);
  for (const double zoom : zooms) {
    canvas.set_zoom(zoom, {700, 400});
    double slowest = 0;
    const QSizeF size = canvas.scene_size();
    for (const double place : {0.02, 0.1, 0.25, 0.5}) {
      canvas.center_on({size.width() * place, size.height() * place});
      slowest = std::max(slowest, frame_seconds(canvas));
    }
    std::printf("    zoom %6.3f  %6.2f ms\n", zoom, slowest * 1e3);
    if (slowest > worst) worst = slowest, at = zoom;
  }
  std::printf("  worst frame %.2f ms at zoom %.3f%s\n", worst * 1e3, at, worst < kFrameBar ? "" : "  BAR MISSED");
  return worst;
}

bool measure(const TaskGraphPtr& graph, const SchedulePtr& schedule) {
  std::printf("%s: %zu tasks, %zu edges\n", graph->name.c_str(), graph->task_count(), graph->edge_count());
  SelectionModel selection;
  TaskGraphView view;
  view.set_selection(&selection);
  view.resize(1920, 1080);
  view.show();
  settle(view);
  QElapsedTimer clock;
  clock.start();
  const double begin = process_seconds();
  view.set_task_graph(graph);
  while (!view.canvas()->scene()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  view.canvas()->viewport()->repaint();
  const double first = process_seconds() - begin, first_clock = double(clock.nsecsElapsed()) * 1e-9;
  settle(view);
  std::printf("  first paint %.3f s (on the clock %.3f s), all levels by Graphviz after %.3f s%s\n", first, first_clock,
              double(clock.elapsed()) * 1e-3, first < kPaintBar ? "" : "  BAR MISSED");
  clock.restart();
  selection.follow_schedule(schedule);
  view.set_schedule(schedule);
  settle(view);
  std::printf("  coloured by device after %.3f s\n", double(clock.elapsed()) * 1e-3);
  clock.restart();
  emit view.findChild<TaskGraphBar*>()->fold_chosen(TaskFold::everything);
  settle(view);
  std::printf("  everything unfolded after %.3f s: %zu boxes, %zu lines\n", double(clock.elapsed()) * 1e-3,
              view.canvas()->scene()->boxes.size(), view.canvas()->scene()->lines());
  const double frame = sweep(view);
  return first < kPaintBar && frame < kFrameBar;
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication app(argc, argv);
  const std::uint64_t tasks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 187742;
  const auto dag = test::layered_dag(tasks, 1);
  const auto plain = test::layered_graph(dag);
  const auto scoped = with_scopes(plain, dag.forward);
  bool good = plain && scoped;
  for (const auto& graph : {plain, scoped}) {
    const auto schedule = graph ? place(graph) : nullptr;
    good = schedule && measure(graph, schedule) && good;
  }
  const double memory = peak_gib();
  std::printf("largest resident set %.2f GiB%s\n", memory, memory < kMemoryBar ? "" : "  BAR MISSED");
  return good && memory < kMemoryBar ? 0 : 1;
}
