// SPDX-License-Identifier: Apache-2.0
// The chart's own painting on top of QCustomPlot's graphs: backdrop, labels, overlay.
#pragma once

#include <qcustomplot.h>

#include "views/frontier/chart_state.h"
#include "views/frontier/label_placer.h"

namespace turnpoint::views {

inline QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

/// Common base: an item without positions that paints with the plot's axes.
class ChartItem : public QCPAbstractItem {
 public:
  ChartItem(QCustomPlot* plot, const QString& layer, ChartState* state);
  double selectTest(const QPointF&, bool, QVariant*) const override { return -1; }

 protected:
  QPointF pixel(const ResultPoint& point) const;
  double pixel_x(double bytes) const;
  double pixel_y(double seconds) const;
  QRectF area() const { return QRectF(mParentPlot->axisRect()->rect()); }
  /// The steps of a frontier in pixels, for obstacles and bands.
  QPolygonF steps(const std::vector<ResultPoint>& points) const;
  void draw_band(QPainter& painter, const ChartSeries& subject) const;

  ChartState* state_;
};

/// Below the curves: the area that does not fit, and the certified band of a frontier that is not exact.
class BackdropItem : public ChartItem {
 public:
  using ChartItem::ChartItem;

 protected:
  void draw(QCPPainter* painter) override;
};

/// Above the curves: memory line, turning point in words, names at the data, axis titles.
class LabelItem : public ChartItem {
 public:
  using ChartItem::ChartItem;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  /// The part of the plot that nothing lies over.
  QRectF uncovered() const;
  void draw_titles(QPainter& painter);
  void draw_time_title(QPainter& painter, LabelPlacer& placer);
  void draw_limit(QPainter& painter, LabelPlacer& placer);
  QString in_axis_units(QString line, const Result& result) const;
  void draw_callouts(QPainter& painter, LabelPlacer& placer);
  void draw_envelope_callout(QPainter& painter, LabelPlacer& placer);
  /// Words about one point of the subject, with its mark and a leader to it; nullopt: words about all of it. Where they
  /// stand; empty: nowhere.
  QRectF draw_callout(QPainter& painter, LabelPlacer& placer, const std::vector<std::string>& words,
                      const ChartSeries& subject, std::optional<std::size_t> index);
  struct Words {
    QString text;
    QFont font;
    QColor color;
  };
  bool write_beside(QPainter& painter, LabelPlacer& placer, const Words& words, QPointF anchor, double gap,
                    const std::vector<LabelPlacer::Side>& order, bool led = false);
  /// Without `point`: no plan that could be picked.
  void name_at_edge(QPainter& painter, LabelPlacer& placer, const QString& title, const ResultPoint& shown,
                    const std::optional<PickedPoint>& point);
  QString title_of(const ChartSeries& series) const;
  void draw_group_names(QPainter& painter, LabelPlacer& placer, const std::vector<MarkerGroup>& groups);
  void draw_names(QPainter& painter, LabelPlacer& placer, const std::vector<MarkerGroup>& groups);
  void draw_part_names(QPainter& painter, LabelPlacer& placer);
};

/// On its own buffered layer: picked point, hover, read-out. Redrawn without the curves.
class OverlayItem : public ChartItem {
 public:
  using ChartItem::ChartItem;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  void draw_beside_words(QPainter& painter, QPointF from, QPointF to) const;
  /// A point's figures on the two axes.
  struct Tags {
    QString memory, time;
    QRectF below, beside;
  };
  Tags tags_of(const ResultPoint& point) const;
  /// `other`: a point whose tags are to stay readable; null: none.
  void draw_tags(QPainter& painter, const ResultPoint& point, const QColor& fill, const QColor& text,
                 const ResultPoint* other = nullptr);
  void hide_tick_labels(QPainter& painter, QCPAxis* axis, const QRectF& tag);
  void draw_fan(QPainter& painter, const MarkerGroup& group) const;
  void draw_read_out(QPainter& painter, const ResultPoint& point, const ResultPoint* picked);
};

/// Tick labels with thin spaces between thousands; 1-2-5 ticks on a logarithmic axis.
class NumberTicker : public QCPAxisTicker {
 public:
  explicit NumberTicker(const ChartState* state) : state_(state) { setTickCount(7); }
  bool logarithmic = false;

 protected:
  double getTickStep(const QCPRange& range) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  int getSubTickCount(double) override { return 0; }

 private:
  const ChartState* state_;
  int decimals_ = 0;
};

}  // namespace turnpoint::views
