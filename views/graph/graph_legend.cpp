// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_legend.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr int kPad = 10, kSwatch = 11;
constexpr int kHeatSteps = 5;

QString percent(double share) {
  if (share > 0 && share < 0.005) return QStringLiteral("<1%");
  return QString::number(std::lround(share * 100)) + QLatin1Char('%');
}

/// Largest value of each heat step, as decorate() assigns them.
std::vector<GraphLegendRow> heat_rows(const PlanFigures& figures, GraphColor color) {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < figures.model().operators.size(); ++i) {
    const OperatorFigures& op = figures.of(OperatorId(i));
    values.push_back(color == GraphColor::memory ? static_cast<double>(op.memory_bytes) : op.time_s());
  }
  std::sort(values.begin(), values.end());
  values.erase(
      std::unique(values.begin(), values.end(), [](double a, double b) { return b - a <= 1e-9 * std::abs(b); }),
      values.end());
  std::vector<GraphLegendRow> rows;
  for (int step = 0; step < kHeatSteps && values.size() > 1; ++step) {
    const auto index = [&](int s) {
      return (static_cast<std::size_t>(s) * (values.size() - 1) + kHeatSteps - 2) / (kHeatSteps - 1);
    };
    const std::size_t low = index(step), high = step + 1 < kHeatSteps ? index(step + 1) - 1 : values.size() - 1;
    if (high < low || high >= values.size()) continue;
    const auto text = [&](double v) {
      return color == GraphColor::memory ? bytes_text(static_cast<std::int64_t>(v)) : seconds_text(v);
    };
    const QString words =
        low == high ? text(values[low]) : text(values[low]) + QStringLiteral(" \u2013 ") + text(values[high]);
    rows.push_back({step, words, {}, {}});
  }
  return rows;
}

}  // namespace

std::vector<GraphLegendRow> legend_rows(const PlanFigures& figures, const ConfigurationColors& colors,
                                        GraphColor color) {
  if (color != GraphColor::configuration) return heat_rows(figures, color);
  std::vector<GraphLegendRow> rows;
  GraphLegendRow other{ConfigurationColors::kOther, {}, {}, {}};
  double other_s = 0;
  const double total = figures.time_s > 0 ? figures.time_s : 1;
  for (std::uint32_t c = 0; c < figures.configurations.size(); ++c) {
    const auto& configuration = figures.configurations[c];
    const int slot = colors.slot(configuration.text);
    if (slot == ConfigurationColors::kOther) {
      other.configurations.push_back(c);
      other_s += configuration.time_s;
    } else {
      rows.push_back({slot, configuration.text, percent(configuration.time_s / total), {c}});
    }
  }
  if (other.configurations.empty()) return rows;
  other.text = other.configurations.size() == 1 ? figures.configurations[other.configurations.front()].text
                                                : GraphLegend::tr("other (%1)").arg(other.configurations.size());
  other.value = percent(other_s / total);
  rows.push_back(std::move(other));
  return rows;
}

MiniMap::MiniMap(SceneCanvas* canvas, QWidget* parent) : QWidget(parent), canvas_(canvas) {
  setAccessibleName(tr("Mini-map of the graph"));
  setCursor(Qt::PointingHandCursor);
  connect(canvas, &SceneCanvas::view_changed, this, qOverload<>(&QWidget::update));
}

void MiniMap::refresh() {
  stale_ = true;
  update();
}

double MiniMap::scale() const {
  const QSizeF scene = canvas_->scene_size();
  if (scene.isEmpty()) return 0;
  return std::min((width() - 6) / scene.width(), (height() - 6) / scene.height());
}

QPointF MiniMap::corner() const {
  const QSizeF drawn = canvas_->scene_size() * scale();
  return {(width() - drawn.width()) / 2, (height() - drawn.height()) / 2};
}

void MiniMap::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  QPainter painter(this);
  if (scale() <= 0) return;
  const double ratio = devicePixelRatioF();
  const QSize pixels = (QSizeF(size()) * ratio).toSize();
  if (stale_ || picture_.size() != pixels) {
    picture_ = QPixmap(pixels);
    picture_.setDevicePixelRatio(ratio);
    picture_.fill(theme.base);
    QPainter inner(&picture_);
    inner.translate(3, 3);
    canvas_->paint_to(inner, QSizeF(width() - 6, height() - 6), theme);
    stale_ = false;
  }
  painter.drawPixmap(0, 0, picture_);
  painter.setPen(theme.border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  const QRectF seen = canvas_->visible_scene();
  const QRectF frame = QRectF(seen.topLeft() * scale() + corner(), seen.size() * scale())
                           .intersected(QRectF(rect()).adjusted(1, 1, -1, -1));
  painter.setPen(QPen(theme.accent, 1.5));
  painter.drawRect(frame);
}

void MiniMap::mousePressEvent(QMouseEvent* event) {
  if (scale() > 0 && event->buttons() & Qt::LeftButton) canvas_->center_on((event->position() - corner()) / scale());
}

void MiniMap::mouseMoveEvent(QMouseEvent* event) { mousePressEvent(event); }

GraphLegend::GraphLegend(GraphCanvas* canvas, QWidget* parent) : QWidget(parent), map_(new MiniMap(canvas, this)) {
  setAccessibleName(tr("Legend"));
  const QFontMetrics metrics(graph_small_font(font()));
  setFixedWidth(kPad * 2 + kSwatch + 14 +
                metrics.horizontalAdvance(QStringLiteral("batch yx \u00b7 out-channel z 100%")));
}

void GraphLegend::set_figures(PlanFiguresPtr figures, const ConfigurationColors& colors, GraphColor color,
                              EdgeMeasure edges) {
  figures_ = std::move(figures);
  color_ = color, edges_ = edges;
  rows_ = figures_ ? legend_rows(*figures_, colors, color) : std::vector<GraphLegendRow>{};
  map_->refresh();
  resizeEvent(nullptr);
  update();
}

int GraphLegend::row_height() const { return QFontMetrics(graph_small_font(font())).height() + 4; }

int GraphLegend::row_at(QPoint position) const {
  const int row = (position.y() - kPad) / row_height() - 1;
  return position.y() > kPad + row_height() && row < static_cast<int>(rows_.size()) ? row : -1;
}

void GraphLegend::resizeEvent(QResizeEvent*) {
  const int text_rows = figures_ ? static_cast<int>(rows_.size()) + 4 : 5;
  const int top = kPad + row_height() * text_rows + 6;
  const int room = height() - top - kPad;
  map_->setVisible(room >= 44);
  map_->setGeometry(kPad, height() - kPad - std::min(room, 110), width() - 2 * kPad, std::min(room, 110));
}

void GraphLegend::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  QPainter painter(this);
  painter.fillRect(rect(), theme.base);
  painter.setPen(theme.border);
  painter.drawLine(0, 0, 0, height());
  const QFont bold = graph_name_font(font()), small = graph_small_font(font());
  const QRect line(kPad, kPad, width() - 2 * kPad, row_height());
  painter.setFont(bold);
  painter.setPen(theme.secondary);
  const QString title = color_ == GraphColor::configuration ? tr("Configuration")
                        : color_ == GraphColor::time        ? tr("Time per operator")
                                                            : tr("Memory per operator");
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, title);
  painter.setFont(small);
  if (!figures_) {
    painter.drawText(line.adjusted(0, row_height(), 0, row_height() * 4),
                     Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                     tr("No plan picked. Click a point in the chart to see how each operator is split."));
    return;
  }
  if (color_ == GraphColor::configuration) painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, tr("of time"));
  const QFontMetrics metrics(small);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const QRect row = line.translated(0, row_height() * static_cast<int>(r + 1));
    const QRect swatch(row.left(), row.center().y() - kSwatch / 2, kSwatch, kSwatch);
    GraphPaint paint;
    paint.theme = &theme, paint.figures = figures_.get(), paint.color = color_;
    painter.fillRect(swatch, GraphPainter::fill_color(paint, rows_[r].color));
    painter.setPen(theme.axis);
    painter.drawRect(swatch.adjusted(0, 0, -1, -1));
    const int value = metrics.horizontalAdvance(rows_[r].value) + 8;
    painter.setPen(theme.text);
    painter.drawText(row.adjusted(kSwatch + 6, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(rows_[r].text, Qt::ElideMiddle, row.width() - kSwatch - 6 - value));
    painter.setPen(theme.secondary);
    painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, rows_[r].value);
  }
  paint_edge_scale(painter, kPad + row_height() * static_cast<int>(rows_.size() + 1) + 6);
}

void GraphLegend::paint_edge_scale(QPainter& painter, int top) const {
  const ThemeColors& theme = theme_colors(palette());
  const QRect line(kPad, top, width() - 2 * kPad, row_height());
  painter.setFont(graph_name_font(font()));
  painter.setPen(theme.secondary);
  painter.drawText(
      line, Qt::AlignLeft | Qt::AlignVCenter,
      edges_ == EdgeMeasure::bytes ? tr("Edge width: resharding bytes") : tr("Edge width: resharding time"));
  painter.setFont(graph_small_font(font()));
  const double largest = edges_ == EdgeMeasure::bytes ? figures_->largest_reshard_bytes : figures_->largest_reshard_s;
  const QRect second = line.translated(0, row_height());
  if (largest <= 0) {
    painter.drawText(second, Qt::AlignLeft | Qt::AlignVCenter, tr("nothing is resharded"));
    return;
  }
  // Widths follow the square root: a quarter of the largest is drawn half as far above the thinnest.
  const double fractions[] = {0, 0.25, 1};
  double x = second.left();
  for (int i = 0; i < 3; ++i) {
    const double value = largest * fractions[i];
    const QString text = i == 0                         ? QStringLiteral("0")
                         : edges_ == EdgeMeasure::bytes ? bytes_beside(value, largest)
                                                        : time_beside(value, largest);
    const double width = 1.2 + 4.3 * std::sqrt(fractions[i]);
    painter.setPen(QPen(i == 0 ? theme.axis : theme.heat[i == 1 ? 2 : 4], width, Qt::SolidLine, Qt::FlatCap));
    painter.drawLine(QPointF(x, second.center().y() + 1), QPointF(x + 16, second.center().y() + 1));
    painter.setPen(theme.secondary);
    const double advance = QFontMetricsF(painter.font()).horizontalAdvance(text);
    painter.drawText(QRectF(x + 20, second.top(), advance + 4, second.height()), Qt::AlignLeft | Qt::AlignVCenter,
                     text);
    x += 20 + advance + 12;
  }
}

void GraphLegend::mousePressEvent(QMouseEvent* event) {
  const int row = row_at(event->pos());
  if (row < 0 || !figures_ || !selection_) return;
  const auto& wanted = rows_[static_cast<std::size_t>(row)].configurations;
  std::set<OperatorId> operators;
  for (std::uint32_t i = 0; i < figures_->model().operators.size(); ++i)
    if (std::find(wanted.begin(), wanted.end(), figures_->of(OperatorId(i)).configuration) != wanted.end())
      operators.insert(OperatorId(i));
  if (!operators.empty()) selection_->pick_operators(std::move(operators));
}

bool GraphLegend::event(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) map_->refresh();
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int row = row_at(help->pos());
  if (row < 0 || !figures_) {
    QToolTip::hideText();
    return true;
  }
  QStringList lines;
  for (const auto c : rows_[static_cast<std::size_t>(row)].configurations)
    lines << figures_->configurations[c].text + QStringLiteral(": ") +
                 tr("%1 operators, %2")
                     .arg(figures_->configurations[c].operators)
                     .arg(seconds_text(figures_->configurations[c].time_s));
  if (lines.size() > 20) lines = lines.mid(0, 20) << tr("and %1 more").arg(lines.size() - 20);
  QToolTip::showText(help->globalPos(), lines.join(QLatin1Char('\n')), this);
  return true;
}

}  // namespace turnpoint::views
