// SPDX-License-Identifier: Apache-2.0
// Timeline and memory at 1920x1080 in software rendering: 187,742 tasks on 16 devices, placed lane by lane, at
// random, and at random with transfers that overlap. Prints, in processor milliseconds of this thread, how long a
// schedule takes to be prepared and set, and the median and the worst frame over a sweep of zooms and pans. Fails (exit
// 1) where a frame takes 16 ms or setting the schedule 300 ms.
#include <time.h>

#include <QApplication>
#include <QComboBox>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/memory/device_strip.h"
#include "views/memory/memory_chart.h"
#include "views/memory/memory_view.h"
#include "views/schedule_fixture.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_view.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::views;

constexpr double kFrameMs = 16, kSetMs = 300;

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

double spent(const std::function<void()>& what) {
  const double begin = processor_ms();
  what();
  return processor_ms() - begin;
}

/// The whole widget into a picture, as the window's paint does.
double frame_ms(QWidget& view, QImage& target) {
  return spent([&] { view.render(&target); });
}

bool report(const char* placed, const char* what, std::vector<double> frames) {
  std::sort(frames.begin(), frames.end());
  const bool within = frames.back() < kFrameMs;
  std::printf("%-10s %-28s %4zu frames  median %6.2f ms  worst %6.2f ms%s\n", placed, what, frames.size(),
              frames[frames.size() / 2], frames.back(), within ? "" : "  ABOVE THE BAR");
  return within;
}

/// From everything to less than a task, at places across the makespan, with a pan of a third of the window each.
template <class Show>
std::vector<double> sweep(QWidget& view, QImage& target, double makespan, const Show& show) {
  std::vector<double> frames;
  for (double span = makespan; span > makespan * 1e-7; span /= 2.3)
    for (const double at : {0.0, 0.31, 0.5, 0.87}) {
      const double from = at * (makespan - span);
      for (const double step : {0.0, 0.33}) {
        show(from + step * span, from + (1 + step) * span);
        frames.push_back(frame_ms(view, target));
      }
    }
  return frames;
}

bool measure(const char* placed, const SchedulePtr& schedule) {
  bool good = true;
  QImage target(1920, 1080, QImage::Format_ARGB32_Premultiplied);
  SelectionModel selection;
  TimelineView timeline;
  MemoryView memory;
  for (QWidget* view : std::initializer_list<QWidget*>{&timeline, &memory}) {
    view->resize(target.size());
    view->show();
  }
  timeline.set_selection(&selection);
  memory.set_selection(&selection);
  selection.follow_schedule(schedule);
  QApplication::processEvents();

  std::shared_ptr<const TimelineSummary> lanes;
  std::shared_ptr<const MemorySummary> curves;
  const double prepare_lanes = spent([&] { lanes = TimelineView::prepare(schedule); });
  const double prepare_curves = spent([&] { curves = MemoryView::prepare(schedule); });
  const double set_lanes = spent([&] { timeline.set_schedule(schedule); });
  const double set_curves = spent([&] { memory.set_schedule(schedule); });
  std::printf(
      "%-10s %zu items, prepare: timeline %.1f ms, memory %.1f ms; set_schedule: timeline %.1f ms, memory %.1f ms%s\n",
      placed, schedule->item_count(), prepare_lanes, prepare_curves, set_lanes, set_curves,
      std::max(set_lanes, set_curves) < kSetMs ? "" : "  ABOVE THE BAR");
  good &= std::max(set_lanes, set_curves) < kSetMs;
  QApplication::processEvents();

  const auto show_lanes = [&](double from, double to) { timeline.canvas()->show_time(from, to); };
  const auto show_curves = [&](double from, double to) { memory.chart()->show_time(from, to); };
  const double makespan = schedule->makespan_s;
  for (int color = 0; color < 3; ++color) {
    timeline.color_box()->setCurrentIndex(color);
    const char* names[] = {"timeline, kind", "timeline, layer", "timeline, duration"};
    good &= report(placed, names[color], sweep(timeline, target, makespan, show_lanes));
  }
  timeline.path_button()->setChecked(true);
  good &= report(placed, "timeline, critical path", sweep(timeline, target, makespan, show_lanes));
  std::set<TaskIndex> third;
  for (TaskIndex t = 0; t < schedule->graph->task_count(); t += 3) third.insert(t);
  const double pick = spent([&] { selection.pick_tasks(third); });
  std::printf("%-10s a third of all tasks picked: %.1f ms\n", placed, pick);
  good &= report(placed, "timeline, a third picked", sweep(timeline, target, makespan, show_lanes));
  good &= report(placed, "memory", sweep(memory, target, makespan, show_curves));
  // The pointer moves: the frame is kept, marks are drawn over it.
  std::vector<double> hovers;
  timeline.canvas()->show_time(0, makespan);
  for (TaskIndex t = 0; t < schedule->graph->task_count(); t += TaskIndex(schedule->graph->task_count() / 40)) {
    selection.hover_task(t);
    selection.hover_time(schedule->start_s[schedule->item_of[t]]);
    hovers.push_back(frame_ms(timeline, target));
  }
  return report(placed, "timeline, pointer moves", hovers) && good;
}

}  // namespace

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setPalette(make_palette(false));
  bool good = true;
  using fixture::Placing;
  struct Case {
    const char* name;
    Placing placing;
    TaskLinks::Contention contention;
  };
  for (const Case& c : {Case{"lanes", Placing::lanes, TaskLinks::Contention::sender},
                        Case{"scattered", Placing::scattered, TaskLinks::Contention::sender},
                        Case{"overlap", Placing::scattered, TaskLinks::Contention::none}}) {
    const auto schedule = fixture::layered(187742, 16, c.placing, c.contention);
    good &= schedule && measure(c.name, schedule);
  }
  return good ? 0 : 1;
}
