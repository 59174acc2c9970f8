// SPDX-License-Identifier: Apache-2.0
// All devices small: the outline of each one's memory over the whole makespan under its limit. A click picks one.
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>

#include "views/common/theme_colors.h"
#include "views/memory/memory_summary.h"

namespace turnpoint::views {

class DeviceStrip : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit DeviceStrip(QWidget* parent = nullptr);

  void set_summary(MemorySummaryPtr summary);
  void set_device(std::uint32_t device);  ///< the one on show
  std::uint32_t device() const { return device_; }
  QRectF row(std::uint32_t device) const;           ///< in the viewport
  std::uint32_t device_at(QPointF position) const;  ///< kNone: none
  qint64 last_frame_ns() const { return last_frame_ns_; }
  void paint(QPainter& painter, const QRectF& area, const ThemeColors& theme) const;
  QSize sizeHint() const override;

 signals:
  void device_picked(std::uint32_t device);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  double pitch() const;
  double scale_bytes() const;  ///< at the top of every row
  void update_scroll_bar();
  void paint_row(QPainter& painter, std::uint32_t device, const QRectF& row, const ThemeColors& theme) const;

  MemorySummaryPtr summary_;
  std::uint32_t device_ = kNone;
  qint64 last_frame_ns_ = 0;
};

}  // namespace turnpoint::views
