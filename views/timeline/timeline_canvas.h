// SPDX-License-Identifier: Apache-2.0
// The zooming surface of the timeline: paints a summary and turns mouse and keys into window, selection and hover.
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>
#include <QPointer>

#include "views/common/selection_model.h"
#include "views/graph/hover_text.h"
#include "views/time/time_hand.h"
#include "views/timeline/timeline_painter.h"

namespace turnpoint::views {

class TimelineCanvas : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit TimelineCanvas(TimeZoomPtr zoom, QWidget* parent = nullptr);

  void set_summary(TimelineSummaryPtr summary);
  void set_selection(SelectionModel* selection);
  void set_message(const QString& message);
  void set_color(TimelineColor color);
  void set_critical(bool on);

  const TimelineSummary* summary() const { return summary_.get(); }
  const TimeView& time() const { return zoom_->time(); }
  TimelineColor color() const { return color_; }
  bool critical() const { return critical_; }
  void show_time(double from, double to) { zoom_->show(from, to); }
  /// Brings an item into sight; `closely`: also wide enough to be read.
  void reveal(std::uint32_t item, bool closely);
  void set_current(std::uint32_t item);  ///< the keyboard's place
  std::uint32_t current() const { return current_; }

  /// What there is at a position of the viewport.
  struct Hit {
    enum class Area { nothing, item, idle, gutter, ruler, overview } area = Area::nothing;
    std::uint32_t item = kNone, device = kNone;
    std::uint32_t at_once = 0;  ///< in a lane that is drawn as a density
  };
  Hit hit_at(QPointF position) const;
  QRectF item_rect(std::uint32_t item) const { return TimelinePainter::item_rect(view(), item); }
  TimelinePaint view() const;
  const HoverText& hover_text() const { return hover_text_; }
  qint64 last_frame_ns() const { return last_frame_ns_; }
  void paint_to(QPainter& painter, QSizeF size, const ThemeColors& theme);

 signals:
  void window_changed();
  void export_requested(const QString& suffix);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  TimelineSummaryPtr summary_;
  QPointer<SelectionModel> selection_;
  QString message_;
  TimeZoomPtr zoom_;
  TimeHand hand_;
  TimelineColor color_ = TimelineColor::kind;
  bool critical_ = false;
  TimelinePainter painter_;
  QPixmap frame_;
  bool frame_stale_ = true, changing_selection_ = false;
  std::vector<std::uint32_t> picked_;  ///< rising places
  std::uint32_t current_ = kNone;
  Hit hover_;
  HoverText hover_text_;
  QPointF pointer_;
  double gutter_ = 110;
  qint64 last_frame_ns_ = 0;

  bool follows() const;  ///< whether the selection speaks of this schedule
  TimelineLayout layout() const;
  TimeWindow window() const;
  void window_moved();
  void repaint_all();
  void update_scroll_bar();
  void update_picked();
  void tasks_changed();
  void set_hover(QPointF position);
  void clear_hover();
  void pick(const Hit& hit, bool add);
  void center_overview(double x);
  void step_item(int direction);
  void step_device(int direction);
  void go_to(std::uint32_t item);
  void escape();
  void zoom_to_picked();
  void scroll_to_device(std::uint32_t device);
};

}  // namespace turnpoint::views
