// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_legend.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/common/ratio_types.h"

namespace turnpoint::views {

namespace {

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
    rows.push_back({step, words, {}, {}, {}});
  }
  return rows;
}

double time_of(const PlanFigures& figures, const std::vector<OperatorId>& operators) {
  double sum = 0;
  for (const OperatorId op : operators) sum += figures.of(op).time_s();
  return sum;
}

std::vector<GraphLegendRow> ratio_rows(const PlanFigures& figures) {
  const RatioShares& ratio = *figures.ratio();
  std::array<GraphLegendRow, RatioShares::kSteps + 1> steps;
  for (std::uint32_t i = 0; i < figures.model().operators.size(); ++i)
    steps[static_cast<std::size_t>(RatioShares::step_of(ratio.of(OperatorId(i))))].operators.push_back(OperatorId(i));
  std::vector<GraphLegendRow> rows;
  const auto add = [&](int step) {
    GraphLegendRow& row = steps[static_cast<std::size_t>(step)];
    if (row.operators.empty()) return;
    const auto [low, high] = std::minmax_element(row.operators.begin(), row.operators.end(),
                                                 [&](OperatorId a, OperatorId b) { return ratio.of(a) < ratio.of(b); });
    row.color = step;
    row.text = step == RatioShares::kBothStep ? GraphLegend::tr("all, on both halves")
                                              : RatioShares::range(ratio.of(*low), ratio.of(*high));
    row.value = percent(time_of(figures, row.operators) / (figures.time_s > 0 ? figures.time_s : 1));
    rows.push_back(std::move(row));
  };
  for (int step = RatioShares::kSteps - 1; step >= 0; --step) add(step);
  add(RatioShares::kBothStep);
  return rows;
}

/// "batch yx", or "I batch \u2460" of a ratio plan.
QString configuration_words(const PlanFigures& figures, std::uint32_t configuration) {
  if (!figures.ratio() && !figures.typed()) return figures.configurations[configuration].text;
  std::vector<OperatorId> operators;
  for (std::uint32_t i = 0; i < figures.model().operators.size(); ++i)
    if (figures.of(OperatorId(i)).configuration == configuration) operators.push_back(OperatorId(i));
  return typed_split(figures, operators);
}

std::vector<GraphLegendRow> difference_rows(const PlanFigures& figures) {
  std::vector<GraphLegendRow> rows;
  const QString words[kDifferenceMarks] = {GraphLegend::tr("as before"), GraphLegend::tr("its tensors move otherwise"),
                                           GraphLegend::tr("treated otherwise")};
  for (int m = kDifferenceMarks - 1; m >= 0; --m) {
    GraphLegendRow row{heat_of(DifferenceMark(m)), words[m], {}, {}, {}};
    for (std::uint32_t i = 0; i < figures.model().operators.size(); ++i)
      if ((*figures.difference())[i] == DifferenceMark(m)) row.operators.push_back(OperatorId(i));
    if (row.operators.empty()) continue;
    row.value = QString::number(row.operators.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<GraphLegendRow> legend_rows(const PlanFigures& figures, const ConfigurationColors& colors,
                                        GraphColor color) {
  if (color == GraphColor::ratio) return ratio_rows(figures);
  if (color == GraphColor::difference) return difference_rows(figures);
  if (color != GraphColor::configuration) return heat_rows(figures, color);
  std::vector<GraphLegendRow> rows;
  GraphLegendRow other{ConfigurationColors::kOther, {}, {}, {}, {}};
  double other_s = 0;
  const double total = figures.time_s > 0 ? figures.time_s : 1;
  for (std::uint32_t c = 0; c < figures.configurations.size(); ++c) {
    const auto& configuration = figures.configurations[c];
    const int slot = colors.slot(configuration.text);
    if (slot == ConfigurationColors::kOther) {
      other.configurations.push_back(c);
      other_s += configuration.time_s;
    } else {
      rows.push_back({slot, configuration_words(figures, c), percent(configuration.time_s / total), {c}, {}});
    }
  }
  if (other.configurations.empty()) return rows;
  other.text = other.configurations.size() == 1 ? configuration_words(figures, other.configurations.front())
                                                : GraphLegend::tr("other (%1)").arg(other.configurations.size());
  other.value = percent(other_s / total);
  rows.push_back(std::move(other));
  return rows;
}

GraphLegend::GraphLegend(GraphCanvas* canvas, QWidget* parent) : SceneLegend(canvas, parent) {
  setFixedWidth(width_for_rows());
}

// Types need room beside the loops that they cut.
int GraphLegend::width_for_rows() const {
  const QString widest = key_.empty() ? QStringLiteral("batch yx \u00b7 out-channel z 100%")
                                      : QStringLiteral("I batch \u2460\u2461 \u00b7 III out-channel \u2462 100%");
  return kPad * 2 + kSwatch + 14 + QFontMetrics(graph_small_font(font())).horizontalAdvance(widest);
}

void GraphLegend::set_figures(PlanFiguresPtr figures, const ConfigurationColors& colors, GraphColor color,
                              EdgeMeasure edges) {
  figures_ = std::move(figures);
  color_ = color, edges_ = edges;
  rows_ = figures_ ? legend_rows(*figures_, colors, color) : std::vector<GraphLegendRow>{};
  key_.clear();
  if (figures_ && color == GraphColor::configuration)
    for (const PartitionType type : {PartitionType::batch, PartitionType::reduction, PartitionType::output})
      if (types_of(*figures_)[std::size_t(type)]) key_.push_back(type);
  setFixedWidth(width_for_rows());
  mini_map()->refresh();
  resizeEvent(nullptr);
  update();
}

int GraphLegend::row_at(QPoint position) const {
  const int row = (position.y() - kPad) / row_height() - 1;
  const int lines = static_cast<int>(rows_.size() + key_.size());
  return position.y() > kPad + row_height() && row < lines ? row : -1;
}

QRect GraphLegend::key_line(std::size_t line) const {
  return first_line().translated(0, row_height() * static_cast<int>(rows_.size() + 1 + line));
}

void GraphLegend::resizeEvent(QResizeEvent*) {
  place_map(kPad + row_height() * (figures_ ? static_cast<int>(rows_.size() + key_.size()) + 4 : 5) + 6);
}

QString GraphLegend::beside_title() const {
  const bool shares = color_ == GraphColor::configuration || color_ == GraphColor::ratio;
  if (figures_ && color_ == GraphColor::difference) return tr("operators");
  return figures_ && shares ? tr("of time") : QString();
}

// Names of devices may be long.
QString GraphLegend::title() const {
  const QString whole = !key_.empty()                         ? tr("Type and loops")
                        : color_ == GraphColor::configuration ? tr("Configuration")
                        : color_ == GraphColor::time          ? tr("Time per operator")
                        : color_ == GraphColor::memory        ? tr("Memory per operator")
                        : color_ == GraphColor::difference    ? tr("Difference")
                        : figures_                            ? tr("Part of %1").arg(figures_->ratio()->stronger())
                                                              : tr("Ratio");
  const int beside = QFontMetrics(graph_small_font(font())).horizontalAdvance(beside_title());
  return QFontMetrics(graph_name_font(font()))
      .elidedText(whole, Qt::ElideRight, first_line().width() - (beside > 0 ? beside + kPad : 0));
}

void GraphLegend::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  QPainter painter(this);
  paint_ground(painter);
  const QRect line = first_line();
  paint_title(painter, line, title());
  if (!figures_) {
    painter.drawText(line.adjusted(0, row_height(), 0, row_height() * 4),
                     Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                     tr("No plan picked. Click a point in the chart to see how each operator is split."));
    return;
  }
  painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, beside_title());
  GraphPaint paint;
  paint.theme = &theme, paint.figures = figures_.get(), paint.color = color_;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    paint_row(painter, line.translated(0, row_height() * static_cast<int>(r + 1)),
              GraphPainter::fill_color(paint, rows_[r].color), rows_[r].text, rows_[r].value);
  paint_key(painter);
  paint_edge_scale(painter, key_line(key_.size()).top() + 6);
}

void GraphLegend::paint_key(QPainter& painter) const {
  painter.setPen(theme_colors(palette()).secondary);
  const QFontMetrics metrics(painter.font());
  for (std::size_t k = 0; k < key_.size(); ++k)
    painter.drawText(key_line(k), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(type_words(key_[k]), Qt::ElideRight, key_line(k).width()));
}

void GraphLegend::paint_edge_scale(QPainter& painter, int top) const {
  const ThemeColors& theme = theme_colors(palette());
  const bool bytes = edges_ == EdgeMeasure::bytes;
  const QRect line(kPad, top, width() - 2 * kPad, row_height()), second = line.translated(0, row_height());
  paint_title(painter, line, bytes ? tr("Edge width: resharding bytes") : tr("Edge width: resharding time"));
  const double largest = bytes ? figures_->largest_reshard_bytes : figures_->largest_reshard_s;
  if (largest <= 0) {
    painter.drawText(second, Qt::AlignLeft | Qt::AlignVCenter, tr("nothing is resharded"));
    return;
  }
  const auto pen = [](const QColor& color, double width) { return QPen(color, width, Qt::SolidLine, Qt::FlatCap); };
  const auto text = [&](double value) { return bytes ? bytes_beside(value, largest) : time_beside(value, largest); };
  // Widths follow the square root: a quarter of the largest is drawn half as far above the thinnest.
  paint_widths(painter, second,
               {{pen(theme.axis, 1.2), QStringLiteral("0")},
                {pen(theme.heat[2], 1.2 + 4.3 / 2), text(largest / 4)},
                {pen(theme.heat[4], 1.2 + 4.3), text(largest)}},
               12);
}

void GraphLegend::mousePressEvent(QMouseEvent* event) {
  const int row = row_at(event->pos());
  if (row < 0 || row >= static_cast<int>(rows_.size()) || !figures_ || !selection_) return;
  const auto& wanted = rows_[static_cast<std::size_t>(row)].configurations;
  const auto& listed = rows_[static_cast<std::size_t>(row)].operators;
  std::set<OperatorId> operators(listed.begin(), listed.end());
  for (std::uint32_t i = 0; i < figures_->model().operators.size(); ++i)
    if (std::find(wanted.begin(), wanted.end(), figures_->of(OperatorId(i)).configuration) != wanted.end())
      operators.insert(OperatorId(i));
  if (!operators.empty()) selection_->pick_operators(std::move(operators));
}

QString GraphLegend::tip_of(int row) const {
  if (row >= static_cast<int>(rows_.size())) return type_sentence(key_[static_cast<std::size_t>(row) - rows_.size()]);
  QStringList lines;
  const auto& listed = rows_[static_cast<std::size_t>(row)].operators;
  if (color_ == GraphColor::difference)
    lines << tr("%1: %2 operators, %3")
                 .arg(rows_[static_cast<std::size_t>(row)].text)
                 .arg(listed.size())
                 .arg(seconds_text(time_of(*figures_, listed)));
  else if (!listed.empty())
    lines << tr("%1: %2 operators, %3")
                 .arg(RatioShares::step_words(rows_[static_cast<std::size_t>(row)].color))
                 .arg(listed.size())
                 .arg(seconds_text(time_of(*figures_, listed)))
          << figures_->ratio()->words(listed);
  for (const auto c : rows_[static_cast<std::size_t>(row)].configurations)
    lines << configuration_words(*figures_, c) + QStringLiteral(": ") +
                 tr("%1 operators, %2")
                     .arg(figures_->configurations[c].operators)
                     .arg(seconds_text(figures_->configurations[c].time_s));
  if (lines.size() > 20) lines = lines.mid(0, 20) << tr("and %1 more").arg(lines.size() - 20);
  return lines.join(QLatin1Char('\n'));
}

}  // namespace turnpoint::views
