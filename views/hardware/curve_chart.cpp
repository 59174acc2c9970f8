// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/curve_chart.h"

#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/hardware/curve_key.h"
#include "views/hardware/curve_ticker.h"

namespace turnpoint::views {

namespace {

constexpr int kRight = 18, kBottom = 24, kTop = 8, kNear_px = 14;
constexpr double kMargin = 1.25;  // of the fitted ranges, as a factor

QString spread_text(const MeasuredPoint& point) {
  if (point.spread.q3_s <= 0) return {};
  return QObject::tr("quartiles %1 to %2").arg(time_text(point.spread.q1_s), time_text(point.spread.q3_s));
}

QString falls_text(int count) {
  return count == 1 ? QObject::tr("1 time falls where the size grows")
                    : QObject::tr("%1 times fall where the size grows").arg(count);
}

}  // namespace

CurveChart::CurveChart(QWidget* parent) : QWidget(parent), plot_(new QCustomPlot(this)), key_(new CurveKey(this)) {
  setObjectName(QStringLiteral("curve_chart"));
  setMinimumSize(240, 120);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* head = new QVBoxLayout();
  head->setContentsMargins(12, 4, 12, 0);
  head->addWidget(key_);
  column->addLayout(head);
  column->addWidget(plot_, 1);
  plot_->setFocusPolicy(Qt::NoFocus);
  plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  plot_->setMouseTracking(true);
  plot_->installEventFilter(this);
  plot_->xAxis->setScaleType(QCPAxis::stLogarithmic);
  plot_->yAxis->setScaleType(QCPAxis::stLogarithmic);
  plot_->xAxis->setTicker(QSharedPointer<SizeTicker>::create());
  plot_->yAxis->setTicker(QSharedPointer<DecadeTicker>::create());
  plot_->axisRect()->setAutoMargins(QCP::msNone);
  connect(plot_, &QCustomPlot::mouseDoubleClick, this, &CurveChart::fit);
  apply_theme();
}

CurveChart::~CurveChart() = default;

QString CurveChart::axis_label() const { return bandwidth_ ? tr("Bytes over time") : tr("Time"); }

void CurveChart::apply_theme() {
  const ThemeColors& colors = theme_colors(palette());
  plot_->setBackground(colors.base);
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
    axis->setBasePen(QPen(colors.axis));
    axis->setTickPen(QPen(colors.axis));
    axis->setSubTickPen(Qt::NoPen);
    axis->setTickLabelFont(secondary_font(font()));
    axis->setTickLabelColor(colors.secondary);
    axis->setTickLengthIn(0);
    axis->setTickLengthOut(axis == plot_->xAxis ? 4 : 0);
    axis->setTickLabelPadding(5);
    axis->grid()->setPen(QPen(colors.grid));
    axis->grid()->setZeroLinePen(Qt::NoPen);
    axis->grid()->setSubGridVisible(false);
  }
  rebuild();
}

void CurveChart::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) apply_theme();
}

void CurveChart::set_chart(CurveChartData chart) {
  chart_ = std::move(chart);
  rebuild();
  fit();
  setAccessibleName(chart_.title);
  setAccessibleDescription(describe());
}

void CurveChart::set_bandwidth(bool on) {
  if (on == bandwidth_) return;
  bandwidth_ = on;
  rebuild();
  fit();
}

void CurveChart::add_lines() {
  const ThemeColors& colors = theme_colors(palette());
  const auto line = [&](const std::vector<CurvePoint>& points, double low, double high, const QPen& pen) {
    QVector<double> x, y;
    for (const auto& point : points)
      if (point.bytes >= low && point.bytes <= high) x << point.bytes, y << height(point.bytes, point.time_s);
    if (x.size() < 2) return;
    QCPGraph* graph = plot_->addGraph();
    graph->setData(x, y, true);
    graph->setPen(pen);
    graph->setAdaptiveSampling(true);
  };
  const auto dashes = [](const QColor& color, double width, QVector<double> pattern) {
    QPen pen(color, width);
    pen.setDashPattern(std::move(pattern));
    pen.setCapStyle(Qt::FlatCap);
    return pen;
  };
  constexpr double kAll = std::numeric_limits<double>::infinity();
  // Where it is all there is, the formula is what plans are costed with: drawn as such.
  const bool alone = chart_.read.empty();
  line(chart_.formula, 0, kAll, dashes(alone ? colors.accent : colors.secondary, alone ? 1.8 : 1.4, {1, 1.8}));
  line(chart_.read, 0, chart_.least, dashes(colors.accent, 1.4, {4, 3}));
  line(chart_.read, chart_.most, kAll, dashes(colors.accent, 1.4, {4, 3}));
  line(chart_.read, chart_.least, chart_.most, QPen(colors.accent, 1.4));
}

void CurveChart::add_points() {
  const ThemeColors& colors = theme_colors(palette());
  falls_marked_ = bars_drawn_ = 0;
  QVector<double> x, y, below, above, bar_x, bar_y, fall_x, fall_y;
  for (std::size_t i = 0; i < chart_.points.size(); ++i) {
    const MeasuredPoint& point = chart_.points[i];
    const double at = height(point.bytes, point.time_s);
    x << point.bytes, y << at;
    if (point.spread.q1_s > 0 && point.spread.q3_s >= point.spread.q1_s) {
      const double one = height(point.bytes, point.spread.q1_s), other = height(point.bytes, point.spread.q3_s);
      bar_x << point.bytes, bar_y << at;
      below << std::max(0.0, at - std::min(one, other));
      above << std::max(0.0, std::max(one, other) - at);
    }
    if (falls(chart_.points, i)) fall_x << point.bytes, fall_y << at;
  }
  if (!bar_x.isEmpty()) {
    QCPGraph* carrier = plot_->addGraph();
    carrier->setData(bar_x, bar_y, true);
    carrier->setPen(Qt::NoPen);
    auto* bars = new QCPErrorBars(plot_->xAxis, plot_->yAxis);
    bars->setDataPlottable(carrier);
    bars->setErrorType(QCPErrorBars::etValueError);
    bars->setData(below, above);
    QColor tint = colors.accent;
    tint.setAlphaF(bar_x.size() > 200 ? 0.35 : 0.8);
    bars->setPen(QPen(tint, 1.2));
    bars->setWhiskerWidth(bar_x.size() > 60 ? 0 : 6);
    bars->setSymbolGap(0);
    bars_drawn_ = static_cast<int>(bar_x.size());
  }
  const auto scatter = [&](const QVector<double>& at_x, const QVector<double>& at_y, const QCPScatterStyle& style) {
    if (at_x.isEmpty()) return;
    QCPGraph* graph = plot_->addGraph();
    graph->setData(at_x, at_y, true);
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(style);
  };
  scatter(x, y, QCPScatterStyle(QCPScatterStyle::ssDisc, QPen(colors.accent), colors.accent, x.size() > 200 ? 3 : 5));
  scatter(
      fall_x, fall_y,
      QCPScatterStyle(QCPScatterStyle::ssDiamond, QPen(colors.error, 1.4), Qt::NoBrush, fall_x.size() > 30 ? 6 : 10));
  falls_marked_ = static_cast<int>(fall_x.size());
}

void CurveChart::rebuild() {
  const ThemeColors& colors = theme_colors(palette());
  plot_->clearPlottables();
  add_lines();
  add_points();
  static_cast<DecadeTicker*>(plot_->yAxis->ticker().data())->bandwidth = bandwidth_;
  std::vector<KeyEntry> entries;
  using Mark = KeyEntry::Mark;
  // Times of a machine shared with others are lower quartiles, as their profile says.
  const bool lower = std::all_of(chart_.points.begin(), chart_.points.end(),
                                 [](const auto& point) { return point.spread.q1_s == point.time_s; });
  if (!chart_.points.empty())
    entries.push_back({Mark::point, colors.accent,
                       bars_drawn_ == 0 ? chart_.measured_name
                       : lower          ? tr("%1, lower quartile").arg(chart_.measured_name)
                                        : tr("%1, median").arg(chart_.measured_name)});
  if (bars_drawn_ > 0) entries.push_back({Mark::bar, colors.accent, tr("quartiles")});
  if (chart_.read.size() > 1)
    entries.push_back(
        {Mark::line, colors.accent, chart_.points.empty() ? tr("what plans are charged") : tr("read between sizes")});
  if (!chart_.read.empty() && (chart_.read.front().bytes < chart_.least || chart_.read.back().bytes > chart_.most))
    entries.push_back({Mark::dashed, colors.accent, tr("beyond them")});
  if (!chart_.formula.empty())
    entries.push_back({Mark::dotted, chart_.read.empty() ? colors.accent : colors.secondary, chart_.formula_name});
  if (falls_marked_ > 0) entries.push_back({Mark::fall, colors.error, falls_text(falls_marked_)});
  key_->set_entries(std::move(entries));
  key_->setVisible(chart_.nothing.isEmpty());
  const QFontMetrics metrics(plot_->yAxis->tickLabelFont());
  plot_->axisRect()->setMargins(
      QMargins(metrics.horizontalAdvance(QStringLiteral("100\u00a0MB/s")) + 20, kTop, kRight, kBottom));
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) axis->setVisible(chart_.nothing.isEmpty());
  count_labels();
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

/// From the widget's size: the axes learn theirs only when they are painted.
void CurveChart::count_labels() {
  const QFontMetrics metrics(plot_->xAxis->tickLabelFont());
  const QMargins margins = plot_->axisRect()->margins();
  const auto room = [](int pixels, int each) { return std::max(2, pixels / std::max(1, each)); };
  static_cast<SizeTicker*>(plot_->xAxis->ticker().data())->room =
      room(plot_->width() - margins.left() - margins.right(),
           metrics.horizontalAdvance(QStringLiteral("512\u00a0KiB")) + 18);
  static_cast<DecadeTicker*>(plot_->yAxis->ticker().data())->room =
      room(plot_->height() - margins.top() - margins.bottom(), metrics.height() + 10);
}

void CurveChart::fit() {
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  const auto hold = [](double& low, double& high, double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    low = low == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  };
  for (const auto* curve : {&chart_.formula, &chart_.read})
    for (const auto& point : *curve) {
      hold(x_low, x_high, point.bytes);
      hold(y_low, y_high, height(point.bytes, point.time_s));
    }
  for (const auto& point : chart_.points) {
    hold(x_low, x_high, point.bytes);
    hold(y_low, y_high, height(point.bytes, point.time_s));
    hold(y_low, y_high, height(point.bytes, point.spread.q1_s));
    hold(y_low, y_high, height(point.bytes, point.spread.q3_s));
  }
  if (x_high > 0 && y_high > 0) {
    plot_->xAxis->setRange(x_low / kMargin, x_high * kMargin);
    plot_->yAxis->setRange(y_low / kMargin, y_high * kMargin);
  }
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

bool CurveChart::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_) return QWidget::eventFilter(watched, event);
  if (event->type() == QEvent::Resize) count_labels();
  if (event->type() == QEvent::MouseMove) {
    auto* mouse = static_cast<QMouseEvent*>(event);
    const QString text = mouse->buttons() ? QString() : read_out(plot_->mapTo(this, mouse->pos()));
    if (text.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(mouse->globalPosition().toPoint(), text, plot_);
  }
  if (event->type() == QEvent::Paint && !chart_.nothing.isEmpty()) {
    const ThemeColors& colors = theme_colors(palette());
    QPainter painter(plot_);
    painter.fillRect(plot_->rect(), colors.base);
    painter.setPen(colors.secondary);
    painter.drawText(plot_->rect().adjusted(24, 8, -24, -8), Qt::AlignCenter | Qt::TextWordWrap, chart_.nothing);
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

QPoint CurveChart::position_of(const MeasuredPoint& point) const {
  const QPointF in_plot(plot_->xAxis->coordToPixel(point.bytes),
                        plot_->yAxis->coordToPixel(height(point.bytes, point.time_s)));
  return plot_->mapTo(this, in_plot.toPoint());
}

QString CurveChart::read_out(QPoint position) const {
  const MeasuredPoint* nearest = nullptr;
  double least = kNear_px;
  for (const auto& point : chart_.points) {
    const QPoint away = position_of(point) - position;
    const double distance = std::hypot(away.x(), away.y());
    if (distance < least) least = distance, nearest = &point;
  }
  if (!nearest) return {};
  QStringList lines{tr("%1: %2, %3")
                        .arg(size_text(nearest->bytes), time_text(nearest->time_s),
                             bandwidth_text(nearest->bytes / nearest->time_s))};
  if (const QString spread = spread_text(*nearest); !spread.isEmpty()) lines << spread;
  if (nearest->line > 0) lines << tr("line %1 of the file").arg(nearest->line);
  const auto at = static_cast<std::size_t>(nearest - chart_.points.data());
  if (falls(chart_.points, at))
    lines << tr("falls by %1 from %2 at %3")
                 .arg(share_text(1 - nearest->time_s / chart_.points[at - 1].time_s),
                      time_text(chart_.points[at - 1].time_s), size_text(chart_.points[at - 1].bytes));
  return lines.join(u'\n');
}

QString CurveChart::describe() const {
  if (!chart_.nothing.isEmpty()) return chart_.nothing;
  QStringList words{chart_.title, chart_.subtitle};
  if (!chart_.points.empty())
    words << tr("%1 at %2, %3 at %4")
                 .arg(time_text(chart_.points.front().time_s), size_text(chart_.least),
                      time_text(chart_.points.back().time_s), size_text(chart_.most));
  if (falls_marked_ > 0) words << falls_text(falls_marked_);
  return words.join(QStringLiteral(". "));
}

}  // namespace turnpoint::views
