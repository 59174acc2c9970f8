// SPDX-License-Identifier: Apache-2.0
// How a policy learns to place, over its iterations: reward with its moving baseline, the best time so far against the
// time it began with, and how undecided it is. Three plots, side by side where there is room, which share the axis of
// iterations. Paints itself.
#pragma once

#include <QWidget>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/learning.h"

namespace turnpoint::views {

struct ThemeColors;

struct LearningData {
  std::string method;  ///< registry name, for its colour
  std::vector<LearningPoint> points;
  std::optional<double> begun_s;  ///< time of the placement that it began with
  QString nothing;                ///< words in place of the plots; empty: there are some

  friend bool operator==(const LearningData&, const LearningData&) = default;
};

/// What an iteration came to, in words of one line each.
QString iteration_text(const LearningPoint& point);
/// "Best 105 ms, 3.2 % faster than it began · iteration 120, 1 920 placements tried": what is cut where there is no
/// room is what matters least. Empty without an iteration.
QString course_text(const LearningData& data);

/// Mouse: hovering reads an iteration. Keyboard: left, right, Home, End, Escape.
class LearningChart : public QWidget {
  Q_OBJECT
 public:
  enum class Plot { reward, time, entropy };
  static constexpr std::size_t kPlots = 3;

  explicit LearningChart(QWidget* parent = nullptr);

  void set_data(LearningData data);
  const LearningData& data() const { return data_; }
  void paint_to(QPainter& painter, QSizeF size) const;

  // For tests.
  QRectF plot_area(Plot plot) const;
  std::optional<std::size_t> point_at(QPointF position) const;  ///< index of the iteration nearest in its plot
  /// Where a value of an iteration is drawn.
  QPointF position_of(Plot plot, const LearningPoint& point, double value) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Scale;  ///< from iterations and values to pixels, of one plot
  std::array<Scale, kPlots> scales_for(QSizeF size) const;
  void paint_axes(QPainter& painter, const Scale& scale) const;
  void paint_curves(QPainter& painter, const Scale& scale) const;
  void read(std::optional<std::size_t> point);

  LearningData data_;
  std::optional<std::size_t> read_;  ///< the iteration that is read
};

}  // namespace turnpoint::views
