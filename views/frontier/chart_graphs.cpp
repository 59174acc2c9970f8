// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_graphs.h"

#include <algorithm>
#include <cmath>

#include "views/common/method_marks.h"

namespace turnpoint::views {

namespace {

struct Columns {
  QVector<double> x, y;
  void add(double memory, double time) { x << memory, y << time; }
};

/// What of many thousand points can be told apart on this plot at this zoom; finer than a pixel, so that pictures saved
/// at twice the scale lose nothing either.
class Thinner {
 public:
  explicit Thinner(const QCustomPlot& plot)
      : x_(*plot.xAxis), y_(*plot.yAxis), rect_(plot.axisRect()->rect()), steps_(2 * plot.bufferDevicePixelRatio()) {}

  /// For lines: of each column the first, lowest, highest and last point.
  Columns line(const Columns& all) const {
    if (rect_.isEmpty()) return all;
    Columns kept;
    const auto count = all.x.size();
    for (qsizetype begin = 0, end = 0; begin < count; begin = end) {
      const int wanted = column(all.x[begin]);
      qsizetype low = begin, high = begin;
      for (end = begin; end < count && column(all.x[end]) == wanted; ++end) {
        if (all.y[end] < all.y[low]) low = end;
        if (all.y[end] > all.y[high]) high = end;
      }
      qsizetype last = -1;
      for (const qsizetype i : {begin, std::min(low, high), std::max(low, high), end - 1})
        if (i > last) kept.add(all.x[last = i], all.y[i]);
    }
    return kept;
  }

  /// For markers of `room` pixels: those that overlap neither neighbour, and both ends. Elsewhere the line says it all.
  Columns markers(const Columns& all, double room) const {
    if (rect_.isEmpty()) return all;
    const auto apart = [&](qsizetype i, qsizetype j) {
      return std::hypot(x_.coordToPixel(all.x[i]) - x_.coordToPixel(all.x[j]),
                        y_.coordToPixel(all.y[i]) - y_.coordToPixel(all.y[j])) >= room;
    };
    Columns kept;
    for (qsizetype i = 0, last = all.x.size() - 1; i <= last; ++i)
      if (i == 0 || i == last || (apart(i, i - 1) && apart(i, i + 1))) kept.add(all.x[i], all.y[i]);
    return kept;
  }

 private:
  int column(double x) const {
    return static_cast<int>(std::clamp(x_.coordToPixel(x) - rect_.left(), -1.0, rect_.width() + 1.0) * steps_);
  }
  const QCPAxis &x_, &y_;
  QRect rect_;
  double steps_;
};

/// QCustomPlot puts a pixmap by its size in device pixels, half a marker off where a pixel of the screen is smaller
/// than one of the plot; so markers are put here.
class MarkerGraph : public QCPGraph {
 public:
  MarkerGraph(QCustomPlot& plot, MethodMarker marker, double radius)
      : QCPGraph(plot.xAxis, plot.yAxis), marker_(std::move(marker)) {
    setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, 2 * radius));
  }

 protected:
  void drawScatterPlot(QCPPainter* painter, const QVector<QPointF>& scatters, const QCPScatterStyle&) const override {
    const bool screen = painter->modes() == QCPPainter::pmDefault;
    painter->setAntialiasing(!screen);
    for (const QPointF& at : scatters) screen ? marker_.draw(*painter, at) : marker_.draw_outline(*painter, at);
  }

 private:
  MethodMarker marker_;
};

QCPGraph* fill_graph(QCPGraph* graph, const QString& layer, const Columns& columns, const QPen& pen,
                     QCPGraph::LineStyle style) {
  graph->setLayer(layer);
  graph->setData(columns.x, columns.y, true);
  graph->setPen(pen);
  graph->setLineStyle(style);
  graph->setAntialiased(false);  // axis-parallel steps are crisper without it
  graph->setAntialiasedScatters(false);
  return graph;
}

QCPGraph* add_graph(QCustomPlot& plot, const QString& layer, const Columns& columns, const QPen& pen,
                    QCPGraph::LineStyle style) {
  return fill_graph(plot.addGraph(), layer, columns, pen, style);
}

QPen dashed(const QColor& color, double width, QVector<double> pattern) {
  QPen pen(color, width);
  pen.setDashPattern(std::move(pattern));
  pen.setCapStyle(Qt::FlatCap);
  return pen;
}

QColor series_color(const ChartState& state, const ChartSeries& series) {
  QColor color = state.colors->method(series.method);
  // Of another scenario than the curve beside it: there, but not to be compared with it.
  if (series.stale) color.setAlphaF(0.3F);
  return color;
}

void add_parts(QCustomPlot& plot, const ChartState& state, const ChartSeries& subject) {
  Columns compute, network;
  // What is not considered goes back and forth between numbers of micro-batches.
  const auto& points = subject.result->points;
  for (std::size_t i = subject.result->first_considered(); i < points.size(); ++i) {
    const ResultPoint& p = points[i];
    if (!drawable(p)) continue;
    compute.add(state.units.x(static_cast<double>(p.memory_bytes)), state.units.y(p.compute_s));
    network.add(state.units.x(static_cast<double>(p.memory_bytes)), state.units.y(p.network_s));
  }
  const QPen pen = dashed(state.colors->method(subject.method), 1.3, {1.5, 3});
  for (const Columns& part : {compute, network})
    add_graph(plot, QStringLiteral("parts"), Thinner(plot).line(part), pen, QCPGraph::lsStepLeft)->setAntialiased(true);
}

void add_markers(QCustomPlot& plot, const ChartState& state, const ChartSeries& series, const Columns& points,
                 bool fits, double radius) {
  if (points.x.isEmpty()) return;
  const QColor color = series_color(state, series);
  // Hollow too: what does things that the scenario switches off.
  const bool hollow = !fits || series.beyond();
  const QColor fill = !fits ? state.colors->no_fit_area : hollow ? state.colors->base : color;
  auto* graph = new MarkerGraph(
      plot,
      MethodMarker(QString::fromStdString(series.method), radius, color, hollow, fill, plot.bufferDevicePixelRatio()),
      radius);
  fill_graph(graph, QStringLiteral("main"), Thinner(plot).markers(points, 2 * radius + 2), Qt::NoPen, QCPGraph::lsNone);
}

void add_series(QCustomPlot& plot, const ChartState& state, const ChartSeries& series, bool subject) {
  Columns line, beyond_line, inside, beyond;
  const double limit = state.units.x(static_cast<double>(state.data.memory_limit));
  if (series.line) {
    // Every point has its mark, wherever it went; the line is told by those that no other one beats.
    for (const auto& p : series.result->points)
      if (drawable(p))
        (state.fits(series, p) ? inside : beyond)
            .add(state.units.x(static_cast<double>(p.memory_bytes)), state.units.y(p.time_s));
  }
  const bool marks = !series.line;
  for (const auto& p : series.line_points()) {
    if (!drawable(p)) continue;
    const double x = state.units.x(static_cast<double>(p.memory_bytes)), y = state.units.y(p.time_s);
    if (state.fits(series, p)) {
      line.add(x, y);
      if (marks) inside.add(x, y);
    } else {
      if (beyond_line.x.isEmpty() && !line.x.isEmpty()) {
        // The last fitting step runs on to the memory line, thin beyond it; a plan whose peak does not fit though its
        // sum does ends it earlier.
        const double last = line.y.last(), end = std::min(limit, x);
        line.add(end, last);
        beyond_line.add(end, last);
      }
      beyond_line.add(x, y);
      if (marks) beyond.add(x, y);
    }
  }
  const QString name = QString::fromStdString(series.method);
  const QColor color = series_color(state, series);
  const bool strong = series.method == state.emphasised;
  if (series.frontier) {
    const double main_width = state.data.envelope ? 1 : 2.2;  // the envelope is the line then
    const double width = (subject ? main_width : 1.5) + (strong ? 0.8 : 0);
    const QPen pen = subject && series.coarse ? dashed(color, 1.6, {4, 2}) : QPen(color, width);
    add_graph(plot, QStringLiteral("main"), Thinner(plot).line(line), pen, QCPGraph::lsStepLeft);
    if (!beyond_line.x.isEmpty())
      add_graph(plot, QStringLiteral("main"), Thinner(plot).line(beyond_line), QPen(color, 1), QCPGraph::lsStepLeft);
  }
  // A handful of plans is read point by point, and a line of one plan has no other mark.
  const double other_radius = series.result->points.size() <= ChartSeries::kFewPlans ? 4 : 2.2;
  const double frontier_radius = subject ? method_radius(name) : other_radius;
  const double radius = series.frontier ? frontier_radius : method_radius(name) + (strong ? 1.5 : 0);
  add_markers(plot, state, series, inside, true, radius);
  add_markers(plot, state, series, beyond, false, series.frontier ? std::max(radius, 2.6) : radius);
}

/// In the colour of whose plan each part is.
void add_envelope(QCustomPlot& plot, const ChartState& state, const ChartEnvelope& envelope) {
  const auto& points = envelope.result->points;
  for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
    Columns part;
    for (end = begin; end < points.size() && envelope.from[end].method == envelope.from[begin].method; ++end)
      part.add(state.units.x(static_cast<double>(points[end].memory_bytes)), state.units.y(points[end].time_s));
    // A plan is the best one up to where the next one begins.
    if (end < points.size()) part.add(state.units.x(static_cast<double>(points[end].memory_bytes)), part.y.last());
    const QColor color = state.colors->method(envelope.from[begin].method);
    add_graph(plot, QStringLiteral("main"), Thinner(plot).line(part), QPen(color, 2.2), QCPGraph::lsStepLeft);
  }
}

}  // namespace

void rebuild_graphs(QCustomPlot& plot, const ChartState& state) {
  plot.clearGraphs();
  const ChartSeries* subject = state.data.subject();
  if (state.show_pinned) {
    for (const auto& pinned : state.data.pinned) {
      Columns columns;
      for (const auto& p : pinned.points)
        if (drawable(p)) columns.add(state.units.x(static_cast<double>(p.memory_bytes)), state.units.y(p.time_s));
      QCPGraph* graph = add_graph(plot, QStringLiteral("pinned"), Thinner(plot).line(columns),
                                  dashed(state.colors->pinned, 1.5, {6, 3}), QCPGraph::lsStepLeft);
      // One answer has no line.
      if (columns.x.size() == 1)
        graph->setScatterStyle(
            QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(state.colors->pinned, 1.5), Qt::NoBrush, 9));
    }
  }
  // Of plain sums alone: where computing and waiting overlap, no two lines add up to a third.
  const bool sums = state.data.clock == Clock::additive;
  if (subject && subject->frontier && !subject->line && state.show_parts && !state.log_time && sums)
    add_parts(plot, state, *subject);
  for (const auto& series : state.data.series)
    if (&series != subject && state.visible(series)) add_series(plot, state, series, false);
  if (subject) add_series(plot, state, *subject, true);
  if (state.data.envelope && state.show_others) add_envelope(plot, state, *state.data.envelope);
}

}  // namespace turnpoint::views
