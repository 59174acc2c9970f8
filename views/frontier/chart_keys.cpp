// SPDX-License-Identifier: Apache-2.0
// The chart by keyboard: from plan to plan, from method to method.
#include <QApplication>
#include <QClipboard>
#include <QKeyEvent>
#include <algorithm>

#include "views/common/format.h"
#include "views/frontier/chart_private.h"
#include "views/frontier/plan_steps.h"

namespace turnpoint::views {

void FrontierChart::keyPressEvent(QKeyEvent* event) {
  const bool plain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier));
  const Stride stride = event->modifiers() & Qt::ShiftModifier ? Stride::every : Stride::visible;
  switch (event->key()) {
    case Qt::Key_Left: return step_pick(-1, stride);
    case Qt::Key_Right: return step_pick(1, stride);
    case Qt::Key_Up: return step_method(-1);
    case Qt::Key_Down: return step_method(1);
    case Qt::Key_Home: return pick_first();
    case Qt::Key_End: return pick_last();
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoom(1.25);
    case Qt::Key_Minus: return zoom(0.8);
    case Qt::Key_0:
      if (event->modifiers() & Qt::ControlModifier) return fit();
      break;
    case Qt::Key_T:
      if (plain) return pick_turning_point();
      break;
    case Qt::Key_C:
      if (plain || event->matches(QKeySequence::Copy)) return copy_point();
      break;
    case Qt::Key_Escape:
      if (p_->selection) {
        close_fan();
        if (p_->selection->hovered_point())
          p_->selection->hover_point(std::nullopt);
        else
          p_->selection->pick_operators({});
      }
      return;
    default: break;
  }
  QWidget::keyPressEvent(event);
}

void FrontierChart::step_pick(int steps, Stride stride) {
  const ChartSeries* series = p_->state.data.subject();
  if (!p_->selection || !series) return;
  const auto& picked = p_->selection->point();
  std::size_t index = 0;
  if (p_->state.data.markers_only()) return step_marker(steps);
  if (picked && p_->state.find_point(picked)) {
    series = p_->state.data.find(picked->method);
    index = stepped_plan(series->result->points, picked->index, steps, stride == Stride::every ? 0 : kVisiblyApart_px,
                         [this](const ResultPoint& p) { return pixel_of(p); });
  }
  p_->selection->pick_point(PickedPoint{series->method, index});
}

void FrontierChart::step_marker(int steps) {
  // By rising memory, as along a line.
  std::vector<const ChartSeries*> answers;
  for (const auto& s : p_->state.data.series)
    if (p_->state.visible(s) && !s.result->points.empty() && drawable(s.result->points.front())) answers.push_back(&s);
  if (answers.empty()) return;
  std::stable_sort(answers.begin(), answers.end(), [](const ChartSeries* a, const ChartSeries* b) {
    return a->result->points.front().memory_bytes < b->result->points.front().memory_bytes;
  });
  const auto& picked = p_->selection->point();
  const auto at = std::find_if(answers.begin(), answers.end(),
                               [&](const ChartSeries* s) { return picked && s->method == picked->method; });
  std::ptrdiff_t index = at == answers.end() ? 0 : (at - answers.begin()) + steps;
  index = std::clamp<std::ptrdiff_t>(index, 0, std::ptrdiff_t(answers.size()) - 1);
  p_->selection->pick_point(PickedPoint{answers[std::size_t(index)]->method, 0});
}

void FrontierChart::step_method(int steps) {
  if (!p_->selection) return;
  // As the chart's labels read, from the top: of the picked method the picked plan, of each other one its fastest.
  std::vector<PickedPoint> answers;
  const auto& picked = p_->selection->point();
  for (const ChartSeries& series : p_->state.data.series) {
    if (!p_->state.visible(series) || series.line_points().empty()) continue;
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < series.result->points.size(); ++i)
      if (drawable(series.result->points[i]) &&
          (!last || series.result->points[i].time_s < series.result->points[*last].time_s))
        last = i;
    if (picked && picked->method == series.method && p_->state.find_point(picked)) last = picked->index;
    if (last) answers.push_back({series.method, *last});
  }
  if (answers.empty()) return;
  const auto time = [&](const PickedPoint& p) { return p_->state.data.find(p.method)->result->points[p.index].time_s; };
  std::stable_sort(answers.begin(), answers.end(),
                   [&](const PickedPoint& a, const PickedPoint& b) { return time(a) > time(b); });
  const auto at = std::find_if(answers.begin(), answers.end(),
                               [&](const PickedPoint& p) { return picked && p.method == picked->method; });
  std::ptrdiff_t index = at == answers.end() ? 0 : (at - answers.begin()) + steps;
  index = std::clamp<std::ptrdiff_t>(index, 0, std::ptrdiff_t(answers.size()) - 1);
  p_->selection->pick_point(answers[std::size_t(index)]);
}

void FrontierChart::pick_first() {
  if (p_->selection && p_->state.data.markers_only()) return step_marker(-int(p_->state.data.series.size()));
  if (const ChartSeries* series = p_->state.data.subject(); series && p_->selection)
    p_->selection->pick_point(PickedPoint{series->method, 0});
}

void FrontierChart::pick_last() {
  if (p_->selection && p_->state.data.markers_only()) return step_marker(int(p_->state.data.series.size()));
  const ChartSeries* series = p_->state.data.subject();
  if (!series || !p_->selection) return;
  p_->selection->pick_point(PickedPoint{series->method, series->result->points.size() - 1});
}

void FrontierChart::pick_turning_point() {
  const ChartSeries* series = p_->state.data.subject();
  if (!series || !p_->selection) return;
  if (const auto& best = p_->state.data.envelope) {
    if (const auto turning = best->result->turning_point) p_->selection->pick_point(best->from[*turning]);
    return;
  }
  if (series->result->turning_point)
    p_->selection->pick_point(PickedPoint{series->method, *series->result->turning_point});
}

void FrontierChart::copy_point() {
  const auto picked = p_->selection ? p_->selection->point() : std::nullopt;
  const ResultPoint* point = p_->state.find_point(picked);
  if (!point) return;
  QApplication::clipboard()->setText(tr("%1 · %2 (compute %3, network %4), %5")
                                         .arg(memory_words(point->memory_bytes), time_words(point->time_s),
                                              time_words(point->compute_s), time_words(point->network_s),
                                              p_->state.data.find(picked->method)->title));
}

}  // namespace turnpoint::views
