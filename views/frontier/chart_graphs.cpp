// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_graphs.h"

#include <algorithm>

#include "views/common/method_marks.h"

namespace turnpoint::views {

namespace {

struct Columns {
  QVector<double> x, y;
  void add(double memory, double time) { x << memory, y << time; }
};

QCPGraph* add_graph(QCustomPlot& plot, const QString& layer, const Columns& columns, const QPen& pen, QCPGraph::LineStyle style) {
  QCPGraph* graph = plot.addGraph();
  graph->setLayer(layer);
  graph->setData(columns.x, columns.y, true);
  graph->setPen(pen);
  graph->setLineStyle(style);
  graph->setAntialiased(false);  // axis-parallel steps are crisper without it
  graph->setAntialiasedScatters(false);
  return graph;
}

QPen dashed(const QColor& color, double width, QVector<double> pattern) {
  QPen pen(color, width);
  pen.setDashPattern(std::move(pattern));
  pen.setCapStyle(Qt::FlatCap);
  return pen;
}

void add_parts(QCustomPlot& plot, const ChartState& state, const ChartSeries& subject) {
  Columns compute, network;
  for (const auto& p : subject.result->points) {
    if (!drawable(p)) continue;
    compute.add(state.units.x(static_cast<double>(p.memory_bytes)), state.units.y(p.compute_s));
    network.add(state.units.x(static_cast<double>(p.memory_bytes)), state.units.y(p.network_s));
  }
  const QPen pen = dashed(state.colors->method(subject.method), 1.3, {1.5, 3});
  add_graph(plot, QStringLiteral("parts"), compute, pen, QCPGraph::lsStepLeft)->setAntialiased(true);
  add_graph(plot, QStringLiteral("parts"), network, pen, QCPGraph::lsStepLeft)->setAntialiased(true);
}

void add_markers(QCustomPlot& plot, const ChartState& state, const ChartSeries& series, const Columns& points, bool hollow, double radius) {
  if (points.x.isEmpty()) return;
  const QColor color = state.colors->method(series.method);
  const QColor fill = hollow ? state.colors->no_fit_area : color;
  QCPGraph* graph = add_graph(plot, QStringLiteral("main"), points, Qt::NoPen, QCPGraph::lsNone);
  graph->setScatterStyle(QCPScatterStyle(method_marker(QString::fromStdString(series.method), radius, color, hollow, fill, plot.bufferDevicePixelRatio())));
}

void add_series(QCustomPlot& plot, const ChartState& state, const ChartSeries& series, bool subject) {
  Columns line, beyond_line, inside, beyond;
  const double limit = state.units.x(static_cast<double>(state.data.memory_limit));
  for (const auto& p : series.result->points) {
    if (!drawable(p)) continue;
    const double x = state.units.x(static_cast<double>(p.memory_bytes)), y = state.units.y(p.time_s);
    if (state.fits(p)) {
      line.add(x, y);
      inside.add(x, y);
    } else {
      if (beyond_line.x.isEmpty() && !line.x.isEmpty()) {
        // The last fitting step runs on to the memory line, thin beyond it.
        const double last = line.y.last();
        line.add(limit, last);
        beyond_line.add(limit, last);
      }
      beyond_line.add(x, y);
      beyond.add(x, y);
    }
  }
  const QString name = QString::fromStdString(series.method);
  const QColor color = state.colors->method(series.method);
  const bool strong = series.method == state.emphasised;
  if (series.frontier) {
    const double width = (subject ? 2.2 : 1.5) + (strong ? 0.8 : 0);
    const QPen pen = subject && series.coarse ? dashed(color, 1.6, {4, 2}) : QPen(color, width);
    add_graph(plot, QStringLiteral("main"), line, pen, QCPGraph::lsStepLeft);
    if (!beyond_line.x.isEmpty()) add_graph(plot, QStringLiteral("main"), beyond_line, QPen(color, 1), QCPGraph::lsStepLeft);
  }
  const double radius = (series.frontier && !subject ? 2.2 : method_radius(name)) + (strong && !series.frontier ? 1.5 : 0);
  add_markers(plot, state, series, inside, false, radius);
  add_markers(plot, state, series, beyond, true, series.frontier ? std::max(radius, 2.6) : radius);
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
      add_graph(plot, QStringLiteral("pinned"), columns, dashed(state.colors->pinned, 1.5, {6, 3}), QCPGraph::lsStepLeft);
    }
  }
  if (subject && state.show_parts && !state.log_time) add_parts(plot, state, *subject);
  for (const auto& series : state.data.series)
    if (&series != subject && state.visible(series)) add_series(plot, state, series, false);
  if (subject) add_series(plot, state, *subject, true);
}

}  // namespace turnpoint::views
