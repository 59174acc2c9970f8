// SPDX-License-Identifier: Apache-2.0
#include "views/timeline/timeline_canvas.h"

#include <QElapsedTimer>
#include <QPaintEvent>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "views/common/section_head.h"
#include "views/timeline/timeline_words.h"

namespace turnpoint::views {

namespace {

constexpr double kReadable = 120;  // pixels of an item that is brought close

}  // namespace

TimelineCanvas::TimelineCanvas(TimeZoomPtr zoom, QWidget* parent)
    : QAbstractScrollArea(parent), zoom_(std::move(zoom)), hand_(viewport(), zoom_) {
  connect(zoom_.get(), &TimeZoom::changed, this, &TimelineCanvas::window_moved);
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Timeline of the devices"));
  setMinimumSize(240, 90);
}

void TimelineCanvas::set_summary(TimelineSummaryPtr summary) {
  if (summary == summary_) return;
  summary_ = std::move(summary);
  zoom_->set_schedule(summary_ ? summary_->schedule() : nullptr);
  current_ = kNone;
  hover_ = {};
  hover_text_.clear();
  hand_.cancel();
  gutter_ = TimelinePainter::gutter_width(summary_.get(), font());
  verticalScrollBar()->setValue(0);
  update_picked();
  update_scroll_bar();
  window_moved();
}

void TimelineCanvas::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  zoom_->follow(selection);
  if (selection_) {
    connect(selection_, &SelectionModel::tasks_changed, this, &TimelineCanvas::tasks_changed);
    connect(selection_, &SelectionModel::schedule_changed, this, [this] {
      update_picked();
      repaint_all();
    });
    connect(selection_, &SelectionModel::time_range_changed, this, &TimelineCanvas::repaint_all);
    connect(selection_, &SelectionModel::device_changed, this, [this] {
      if (follows() && !changing_selection_) scroll_to_device(selection_->device());
      repaint_all();
    });
    const auto marks = [this] { viewport()->update(); };
    connect(selection_, &SelectionModel::hovered_task_changed, this, marks);
    connect(selection_, &SelectionModel::hovered_time_changed, this, marks);
  }
  update_picked();
  repaint_all();
}

void TimelineCanvas::set_message(const QString& message) {
  message_ = message;
  viewport()->update();
}

void TimelineCanvas::set_color(TimelineColor color) {
  color_ = color;
  repaint_all();
}

void TimelineCanvas::set_critical(bool on) {
  critical_ = on;
  repaint_all();
}

bool TimelineCanvas::follows() const {
  return selection_ && summary_ && (!selection_->schedule() || selection_->schedule() == summary_->schedule());
}

TimelineLayout TimelineCanvas::layout() const {
  return TimelineLayout::make(viewport()->size(), summary_.get(), gutter_,
                              QFontMetricsF(secondary_font(font())).height(), verticalScrollBar()->value());
}

TimeWindow TimelineCanvas::window() const {
  const TimelineLayout l = layout();
  return time().window(l.lanes.left(), l.lanes.width());
}

TimelinePaint TimelineCanvas::view() const {
  TimelinePaint view;
  view.summary = summary_.get();
  view.theme = &theme_colors(palette());
  view.layout = layout();
  view.window = time().window(view.layout.lanes.left(), view.layout.lanes.width());
  view.color = color_;
  view.critical = critical_;
  view.picked = &picked_;
  if (follows()) {
    view.device = selection_->device();
    view.range = selection_->time_range();
  }
  view.font = font();
  view.ratio = devicePixelRatioF();
  return view;
}

void TimelineCanvas::repaint_all() {
  frame_stale_ = true;
  viewport()->update();
}

void TimelineCanvas::window_moved() {
  repaint_all();
  emit window_changed();
}

void TimelineCanvas::update_scroll_bar() {
  const TimelineLayout l = layout();
  verticalScrollBar()->setRange(0, std::max(0, int(std::ceil(l.content_height() - l.lanes.height()))));
  verticalScrollBar()->setPageStep(int(l.lanes.height()));
  verticalScrollBar()->setSingleStep(std::max(8, int(l.pitch)));
}

void TimelineCanvas::update_picked() {
  picked_.clear();
  if (!follows()) return;
  const std::vector<TaskIndex> tasks(selection_->tasks().begin(), selection_->tasks().end());
  picked_ = summary_->places_of(tasks);
}

void TimelineCanvas::tasks_changed() {
  update_picked();
  repaint_all();
  if (changing_selection_ || picked_.empty() || !follows()) return;
  // What was picked elsewhere comes into sight, unless some of it is.
  const TimelinePaint v = view();
  const QRectF lanes = v.layout.lanes;
  std::uint32_t first = kNone;
  for (const TaskIndex task : selection_->tasks())
    if (const std::uint32_t own = summary_->schedule()->item_of[task]; own != kNone) {
      if (lanes.intersects(TimelinePainter::item_rect(v, own))) return;
      if (first == kNone) first = own;
    }
  if (first != kNone) reveal(first, false);
}

void TimelineCanvas::scroll_to_device(std::uint32_t device) {
  if (!summary_ || device >= summary_->schedule()->devices.size()) return;
  const TimelineLayout l = layout();
  const double top = device * l.pitch, bottom = top + l.pitch, now = verticalScrollBar()->value();
  if (top < now) verticalScrollBar()->setValue(int(top));
  if (bottom > now + l.lanes.height()) verticalScrollBar()->setValue(int(std::ceil(bottom - l.lanes.height())));
}

void TimelineCanvas::reveal(std::uint32_t item, bool closely) {
  if (!summary_ || item >= summary_->schedule()->item_count()) return;
  const Schedule& s = *summary_->schedule();
  scroll_to_device(s.lanes[summary_->lane_of(item)].device);
  const double from = s.start_s[item], to = s.end_s[item], width = window().width;
  if (closely && (to - from) < (time().to() - time().from()) * kReadable / width) {
    const double span = std::max(to - from, time().least_span()) * std::max(1.0, width / kReadable);
    zoom_->show((from + to - span) / 2, (from + to + span) / 2);
  } else {
    zoom_->reveal(from, to);
  }
}

void TimelineCanvas::set_current(std::uint32_t item) {
  current_ = item;
  setAccessibleDescription(item == kNone ? QString() : plain_text(item_hover(*summary_, item)));
  viewport()->update();
}

TimelineCanvas::Hit TimelineCanvas::hit_at(QPointF position) const {
  Hit hit;
  if (!summary_) return hit;
  const TimelineLayout l = layout();
  if (l.ruler.contains(position) || l.corner.contains(position)) {
    hit.area = Hit::Area::ruler;
    return hit;
  }
  if (l.overview.contains(position)) {
    hit.area = Hit::Area::overview;
    return hit;
  }
  hit.device = l.device_at(position.y());
  if (hit.device == kNone) return hit;
  if (position.x() < l.gutter.right()) {
    hit.area = Hit::Area::gutter;
    return hit;
  }
  if (position.x() > l.lanes.right()) return hit;
  hit.area = Hit::Area::idle;
  const TimeWindow w = window();
  const double low = w.at(position.x() - 1.5), high = w.at(position.x() + 1.5), middle = w.at(position.x());
  for (const TimelineSummary::Lane& lane : summary_->lanes_of(hit.device)) {
    const QRectF bar = l.bar(lane);
    if (position.y() < bar.top() || position.y() >= bar.bottom() || lane.tracks == 0) continue;
    if (lane.density != kNone) {
      const auto running = summary_->running_at(lane, middle);
      if (running.empty()) continue;
      const auto which = std::size_t((position.y() - bar.top()) / bar.height() * double(running.size()));
      hit.item = summary_->item_at(running[std::min(which, running.size() - 1)]);
      hit.at_once = std::uint32_t(running.size());
    } else {
      const auto t = std::uint32_t((position.y() - bar.top()) / bar.height() * lane.tracks);
      const auto& track = summary_->track(lane.first_track + std::min(t, lane.tracks - 1));
      // The item below the pointer, else the longest of those that a pixel cannot tell from it.
      std::uint32_t best = summary_->first_ending_after(track, middle);
      if (best >= track.end || summary_->start_s()[best] > middle) {
        best = kNone;
        std::uint32_t place = summary_->first_ending_after(track, low);
        for (int looked = 0; place < track.end && summary_->start_s()[place] <= high && looked < 64; ++place, ++looked)
          if (best == kNone || summary_->end_s()[place] - summary_->start_s()[place] >
                                   summary_->end_s()[best] - summary_->start_s()[best])
            best = place;
      }
      if (best == kNone) continue;
      hit.item = summary_->item_at(best);
    }
    hit.area = Hit::Area::item;
  }
  return hit;
}

void TimelineCanvas::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  if (!summary_ || summary_->schedule()->item_count() == 0) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), theme.base);
    painter.setPen(theme.secondary);
    const QString words = summary_ ? tr("Nothing runs in this schedule.") : message_;
    painter.drawText(viewport()->rect().adjusted(16, 0, -16, 0), Qt::AlignCenter | Qt::TextWordWrap, words);
    return;
  }
  const TimelinePaint v = view();
  const QSize pixels = (QSizeF(viewport()->size()) * v.ratio).toSize();
  if (frame_.size() != pixels) {
    frame_ = QPixmap(pixels);
    frame_.setDevicePixelRatio(v.ratio);
    frame_stale_ = true;
  }
  if (frame_stale_) {
    QElapsedTimer clock;
    clock.start();
    frame_.fill(theme.base);
    QPainter painter(&frame_);
    painter.setFont(font());
    painter_.paint(painter, v);
    painter.end();
    frame_stale_ = false;
    last_frame_ns_ = clock.nsecsElapsed();
  }
  QPainter painter(viewport());
  painter.drawPixmap(0, 0, frame_);
  if (current_ != kNone && hasFocus()) painter_.paint_item(painter, v, current_, theme.accent);
  if (follows()) {
    if (const TaskIndex task = selection_->hovered_task(); task != kNone && hover_.item == kNone) {
      for (const std::uint32_t item : summary_->items_of(task)) painter_.paint_item(painter, v, item, theme.text);
    }
    if (const auto& instant = selection_->hovered_time()) painter_.paint_cursor(painter, v, *instant);
  }
  if (hover_.item != kNone) {
    for (const std::uint32_t item : summary_->items_of(summary_->schedule()->task[hover_.item]))
      if (item == hover_.item || !summary_->schedule()->is_transfer(hover_.item))
        painter_.paint_item(painter, v, item, theme.text);
  }
  if (summary_->schedule()->makespan_s <= 0) {
    painter.setPen(theme.secondary);
    painter.drawText(v.layout.lanes, Qt::AlignCenter | Qt::TextWordWrap,
                     tr("Every task of this schedule takes no time."));
  }
  if (hand_.rests()) paint_hover(painter, hover_text_, pointer_, viewport()->rect(), theme, font());
}

void TimelineCanvas::paint_to(QPainter& painter, QSizeF size, const ThemeColors& theme) {
  painter.fillRect(QRectF(QPointF(0, 0), size), theme.base);
  if (!summary_) return;
  TimelinePaint v = view();
  v.theme = &theme;
  v.ratio = 1;
  v.layout = TimelineLayout::make(size, summary_.get(), gutter_, QFontMetricsF(secondary_font(font())).height(),
                                  verticalScrollBar()->value());
  v.window = time().window(v.layout.lanes.left(), v.layout.lanes.width());
  TimelinePainter own;
  own.paint(painter, v);
}

void TimelineCanvas::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  update_scroll_bar();
  window_moved();
}

void TimelineCanvas::scrollContentsBy(int, int) {
  clear_hover();
  repaint_all();
}

void TimelineCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) gutter_ = TimelinePainter::gutter_width(summary_.get(), font());
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange ||
      event->type() == QEvent::StyleChange)
    repaint_all();
  QAbstractScrollArea::changeEvent(event);
}

}  // namespace turnpoint::views
