// SPDX-License-Identifier: Apache-2.0
// A sweep as small multiples: time of a step, peak memory, and price or rate, side by side over the same values, a line
// for each method. What fits nowhere at a value is marked above. Paints itself.
#pragma once

#include <QWidget>
#include <optional>
#include <utility>
#include <vector>

#include "views/sweep/sweep_data.h"

namespace turnpoint::views {

struct ThemeColors;

/// Mouse: hovering reads a value, a click picks it and the method whose mark is nearest, a double click asks for it.
/// Keyboard: left and right for values, up and down for methods, Enter, Escape.
class SweepChart : public QWidget {
  Q_OBJECT
 public:
  struct Picked {
    std::int64_t value = 0;
    std::string method;
    friend bool operator==(const Picked&, const Picked&) = default;
  };

  explicit SweepChart(QWidget* parent = nullptr);

  void set_data(SweepData data);
  const SweepData& data() const { return data_; }
  void set_picked(std::optional<Picked> picked);
  const std::optional<Picked>& picked() const { return picked_; }

  void paint_to(QPainter& painter, QSizeF size) const;

  // For tests.
  QRectF plot_area(SweepFigure figure) const;
  /// Where a cell is marked: on its line, or above where no plan fits; nullopt: nowhere.
  std::optional<QPointF> position_of(const VariationCell& cell, SweepFigure figure) const;
  std::int64_t value_at(QPointF position) const;  ///< 0: none

 signals:
  void picked_changed();
  void requested();  ///< what is picked: double click or Enter

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Panel;  ///< from values to pixels, for one figure and size
  std::vector<Panel> panels_for(QSizeF size) const;
  void set_range(Panel& panel) const;
  std::vector<QRectF> legend_places(double width) const;
  void paint_legend(QPainter& painter, double width) const;
  void paint_axes(QPainter& painter, const Panel& panel) const;
  void paint_values(QPainter& painter, const Panel& panel) const;
  void paint_limit(QPainter& painter, const Panel& panel) const;
  void paint_misfits(QPainter& painter, const Panel& panel) const;
  void paint_line(QPainter& painter, const Panel& panel, const std::string& method) const;
  void paint_picked(QPainter& painter, const Panel& panel) const;
  QColor color_of(const std::string& method) const;
  bool shows() const { return data_.nothing.isEmpty() && data_.sweep; }
  /// Methods that fit nowhere at some value, each with a row of its own above the lines.
  std::vector<std::string> misfits() const;
  std::optional<QPointF> mark_at(const Panel& panel, const VariationCell& cell) const;
  std::optional<Picked> nearest(QPointF position) const;
  void step(int values, int methods);

  SweepData data_;
  std::optional<Picked> picked_;
  std::int64_t hovered_ = 0;
};

}  // namespace turnpoint::views
