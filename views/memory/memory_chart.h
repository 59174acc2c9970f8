// SPDX-License-Identifier: Apache-2.0
// One device's memory over time as stacked parts, with its limit, its peak and what is missing in words.
#pragma once

#include <QPointer>
#include <QWidget>
#include <optional>

#include "views/common/selection_model.h"
#include "views/graph/hover_text.h"
#include "views/memory/memory_summary.h"
#include "views/time/time_hand.h"

namespace turnpoint::views {

class MemoryChart : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryChart(TimeZoomPtr zoom, QWidget* parent = nullptr);

  void set_summary(MemorySummaryPtr summary);
  void set_selection(SelectionModel* selection);
  void set_device(std::uint32_t device);
  void set_message(const QString& message);
  /// The limit is on the scale even where the device stays far below it; else only where it comes near.
  void set_show_limit(bool on);

  std::uint32_t device() const { return device_; }
  const TimeView& time() const { return zoom_->time(); }
  void show_time(double from, double to) { zoom_->show(from, to); }

  struct Frame {
    QRectF plot, ruler, legend;
    TimeWindow window;
    double top_bytes = 1;   ///< at the top of the plot
    double step_bytes = 1;  ///< between grid lines
    double y(double bytes) const { return plot.bottom() - plot.height() * bytes / top_bytes; }
  };
  Frame frame(QSizeF size) const;
  Frame frame() const { return frame(size()); }
  /// The four parts at the top of a pixel column: persistent, activations, copies, workspace.
  std::array<std::int64_t, 4> parts(std::size_t sample) const;
  const HoverText& hover_text() const { return hover_text_; }
  QString limit_words() const { return limit_words_; }  ///< as last painted
  qint64 last_frame_ns() const { return last_frame_ns_; }
  void paint(QPainter& painter, QSizeF size, const ThemeColors& theme);

 signals:
  void window_changed();
  void device_stepped(int direction);  ///< Up or Down
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
  void leaveEvent(QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  bool follows() const;
  bool drawable() const;
  void moved();
  void stale();
  void set_hover(QPointF position);
  void clear_hover();
  HoverText words_at(double instant, double pixel, std::size_t most) const;
  void paint_scale(QPainter& painter, const Frame& f, const ThemeColors& theme) const;
  void paint_areas(QPainter& painter, const Frame& f, const ThemeColors& theme) const;
  void paint_limit(QPainter& painter, const Frame& f, const ThemeColors& theme);
  void paint_peak(QPainter& painter, const Frame& f, const ThemeColors& theme) const;
  void paint_legend(QPainter& painter, const Frame& f, const ThemeColors& theme) const;
  void paint_cursor(QPainter& painter, const Frame& f, const ThemeColors& theme) const;

  MemorySummaryPtr summary_;
  QPointer<SelectionModel> selection_;
  std::uint32_t device_ = kNone;
  QString message_, limit_words_;
  bool show_limit_ = false;
  TimeZoomPtr zoom_;
  TimeHand hand_;
  HoverText hover_text_;
  QPointF pointer_;
  QPixmap frame_;
  bool frame_stale_ = true;
  qint64 last_frame_ns_ = 0;
};

}  // namespace turnpoint::views
