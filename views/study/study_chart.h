// SPDX-License-Identifier: Apache-2.0
// The figures of a study of batches: a small plot for each network over the numbers of devices, all with the same axes.
// Paints itself.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "core/search/batch_study.h"

namespace turnpoint::views {

enum class StudyFigure {
  batch,                ///< the largest that fits, the paper's, and what ideal data parallelism would have
  speed_up,             ///< with the first method, at the largest batches and at the paper's
  methods_at_reported,  ///< all methods' samples a second over the first one's on the fewest devices
  methods_at_largest,
};

/// One curve of a plot: a value for each number of devices, 0 where there is none.
struct StudyLine {
  QString title;
  std::string method;  ///< whose colour; empty: none's
  bool dashed = false;
  bool hollow = false;  ///< of a method that splits operators: those that place tasks have the same shapes
  std::vector<double> values;
};
/// What a figure draws of a network, the first line strongest.
std::vector<StudyLine> study_lines(const BatchStudy& study, const StudiedNetwork& network, StudyFigure figure,
                                   const std::string& graph);
/// All that is known of a network on a number of devices, a line for each method.
QString study_text(const BatchStudy& study, const StudiedNetwork& network, int devices, StudyFigure figure,
                   const std::string& graph);

/// Mouse: hovering reads a network's count. Keyboard: left, right, Home, End, Escape.
class StudyChart : public QWidget {
  Q_OBJECT
 public:
  explicit StudyChart(QWidget* parent = nullptr);

  void set_study(std::shared_ptr<const BatchStudy> study);
  void show_figure(StudyFigure figure, const std::string& graph);
  const BatchStudy* study() const { return study_.get(); }
  StudyFigure figure() const { return figure_; }
  const std::string& graph() const { return graph_; }
  void paint_to(QPainter& painter, QSizeF size) const;

  // For tests.
  QRectF plot_area(std::size_t network) const;
  QPointF position_of(std::size_t network, std::size_t count, double value) const;
  /// Network and count under the pointer.
  std::optional<std::pair<std::size_t, std::size_t>> at(QPointF position) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Scale;  ///< from counts and values to pixels, of one plot
  std::vector<Scale> scales_for(QSizeF size) const;
  void make_lines();
  void paint_legend(QPainter& painter, QSizeF size) const;
  void paint_mark(QPainter& painter, const StudyLine& line, QPointF at, const QColor& color) const;
  void paint_plot(QPainter& painter, const Scale& scale, std::size_t network) const;
  void read(std::optional<std::pair<std::size_t, std::size_t>> what, QPoint global);
  QColor color_of(const StudyLine& line) const;

  std::shared_ptr<const BatchStudy> study_;
  StudyFigure figure_ = StudyFigure::batch;
  std::string graph_;
  std::vector<std::vector<StudyLine>> lines_;  ///< by network
  std::optional<std::pair<std::size_t, std::size_t>> read_;
};

}  // namespace turnpoint::views
