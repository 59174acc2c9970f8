// SPDX-License-Identifier: Apache-2.0
// Draws device blocks, one row a level, and lets the border between two halves be moved.
#pragma once

#include <QWidget>
#include <optional>

#include "views/devices/device_blocks.h"

namespace turnpoint::views {

class DeviceChart : public QWidget {
  Q_OBJECT
 public:
  static constexpr double kLeastRatio = 0.01;  ///< that a hand can give to either half
  static constexpr double kKeyStep = 0.01;

  explicit DeviceChart(QWidget* parent = nullptr);

  void set_blocks(DeviceBlocks blocks);
  const DeviceBlocks& blocks() const { return blocks_; }
  /// Where a block is; empty where it is on a level for which there is no room.
  QRectF rect_of(std::size_t block) const { return rect_in(block, size()); }
  void paint_to(QPainter& painter, QSize size) const;
  /// The block whose halves the arrow keys move; nullopt: nothing is cut.
  std::optional<std::size_t> current() const { return current_; }
  bool holds_border() const { return held_.has_value(); }

 signals:
  void ratio_moved(std::uint32_t cut, double ratio);  ///< while the mouse holds the border
  void ratio_set(std::uint32_t cut, double ratio);    ///< let go, or by a key

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int shown_levels(QSizeF size) const;
  QRectF rect_in(std::size_t block, QSizeF size) const;
  QRectF border_in(std::size_t block, QSizeF size) const;
  std::optional<std::size_t> border_at(QPointF at) const;
  std::optional<std::size_t> block_at(QPointF at) const;
  double ratio_at(std::size_t block, double x) const;
  bool can_move(std::size_t block) const;
  void move_current(int by);
  void draw_block(QPainter& painter, std::size_t index, QSizeF size) const;
  void draw_border(QPainter& painter, QSizeF size) const;
  void draw_key(QPainter& painter, QSizeF size) const;

  DeviceBlocks blocks_;
  std::optional<std::size_t> hovered_, held_, current_;
  std::uint32_t held_cut_ = RatioPlan::kNoCut;  ///< of the plan that was on show when it was taken hold of
  double held_ratio_ = 0.5;
};

}  // namespace turnpoint::views
