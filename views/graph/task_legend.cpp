// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_legend.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/graph/graph_painter.h"
#include "views/graph/task_hover.h"

namespace turnpoint::views {

namespace {

constexpr int kColumnGap = 12;
constexpr int kFewestRows = 2;  // a row and one that says how many more there are

std::vector<TaskLegendRow> device_rows(const TaskFigures& figures) {
  std::vector<TaskLegendRow> rows;
  if (!figures.schedule) return rows;
  const double span = figures.schedule->makespan_s;
  const std::size_t devices = figures.load_s.size();
  const auto share = [&](double load) { return span > 0 ? share_text(load / span) : QString(); };
  const std::size_t own = devices <= kDeviceColors ? devices : kOtherDevice;
  for (std::size_t d = 0; d < own; ++d)
    rows.push_back({device_slot(std::uint32_t(d)),
                    device_text(figures, std::uint32_t(d)),
                    share(figures.load_s[d]),
                    std::uint32_t(d),
                    {}});
  if (own == devices) return rows;
  double load = 0;
  for (std::size_t d = own; d < devices; ++d) load += figures.load_s[d];
  rows.push_back(
      {kOtherDevice, TaskLegend::tr("%1 others").arg(devices - own), share(load / double(devices - own)), kNone, {}});
  return rows;
}

std::vector<TaskLegendRow> scope_rows(const TaskFigures& figures) {
  const TaskHierarchy& h = *figures.hierarchy;
  std::vector<TaskLegendRow> rows;
  std::vector<QString> last;
  std::vector<double> times;
  for (const auto& child : h.children_of(figures.scope_group)) {
    const std::uint32_t begin = child.is_group ? h.groups[child.index].task_begin : h.position[child.index];
    const std::uint32_t end = child.is_group ? h.groups[child.index].task_end : begin + 1;
    const QString name = to_qt(child.is_group ? std::string(h.names[child.index]) : h.label(child.index));
    const std::size_t slot = figures.scope_slot[begin];
    const double time = child.is_group ? h.groups[child.index].time_s() : h.graph->time_s[child.index];
    if (rows.empty() || rows.back().color != slot) {
      rows.push_back({slot, name, {}, kNone, {begin, end}});
      last.push_back(name), times.push_back(time);
    } else {
      rows.back().positions[1] = end, last.back() = name, times.back() += time;
    }
  }
  const std::vector<QString> shares = shares_text(times);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (last[r] != rows[r].text) rows[r].text += QStringLiteral(" \u2026 ") + last[r];
    rows[r].value = shares[r];
  }
  return rows;
}

std::vector<TaskLegendRow> cluster_rows(const TaskFigures& figures) {
  if (figures.cluster_slot.empty()) return {};
  const TaskHierarchy& h = *figures.hierarchy;
  std::vector<double> seconds(kDeviceColors, 0);
  std::vector<int> tasks(kDeviceColors, 0);
  for (std::size_t p = 0; p < h.order.size(); ++p) {
    seconds[figures.cluster_slot[p]] += figures.graph().time_s[h.order[p]];
    ++tasks[figures.cluster_slot[p]];
  }
  const std::vector<QString> shares = shares_text(seconds);
  const auto counted_tasks = [&](std::size_t slot) {
    return counted(std::size_t(tasks[slot]), task_text("1 task"), task_text("%1 tasks"));
  };
  std::vector<TaskLegendRow> rows;
  for (std::size_t s = 0; s < figures.named_clusters.size(); ++s)
    rows.push_back({s,
                    TaskLegend::tr("cluster %1 \u00b7 %2").arg(figures.named_clusters[s]).arg(counted_tasks(s)),
                    shares[s],
                    kNone,
                    {}});
  if (const std::size_t others = figures.clusters - rows.size(); others > 0)
    rows.push_back({kOtherDevice,
                    TaskLegend::tr("%1 others \u00b7 %2").arg(others).arg(counted_tasks(kOtherDevice)),
                    shares[kOtherDevice],
                    kNone,
                    {}});
  return rows;
}

std::vector<TaskLegendRow> heat_rows(const TaskScene& scene, TaskColor color) {
  std::vector<TaskLegendRow> rows;
  if (scene.heat_bounds[3] <= 0) return rows;
  const auto text = [&](double v) { return color == TaskColor::time ? time_text(v) : memory_text(std::int64_t(v)); };
  for (std::size_t step = 0; step < 5; ++step)
    rows.push_back({step,
                    step == 0 ? TaskLegend::tr("below %1").arg(text(scene.heat_bounds[0]))
                              : TaskLegend::tr("from %1").arg(text(scene.heat_bounds[step - 1])),
                    {},
                    kNone,
                    {}});
  return rows;
}

}  // namespace

std::vector<TaskLegendRow> task_legend_rows(const TaskFigures& figures, const TaskScene& scene, TaskColor color) {
  switch (color) {
    case TaskColor::device: return device_rows(figures);
    case TaskColor::scope: return scope_rows(figures);
    case TaskColor::cluster: return cluster_rows(figures);
    case TaskColor::time:
    case TaskColor::bytes: break;
  }
  return heat_rows(scene, color);
}

TaskLegend::TaskLegend(TaskCanvas* canvas, QWidget* parent) : SceneLegend(canvas, parent), canvas_(canvas) {
  const QFontMetrics metrics(graph_small_font(font()));
  setFixedWidth(kPad * 2 + 2 * (kSwatch + 6) + kColumnGap +
                2 * metrics.horizontalAdvance(QStringLiteral("device 15 100%")) + 8);
}

void TaskLegend::set_figures(TaskFiguresPtr figures, TaskColor color, bool critical_path) {
  figures_ = std::move(figures);
  color_ = color, critical_path_ = critical_path;
  rows_ = figures_ && canvas_->scene() ? task_legend_rows(*figures_, *canvas_->scene(), color)
                                       : std::vector<TaskLegendRow>{};
  mini_map()->refresh();
  resizeEvent(nullptr);
  update();
}

void TaskLegend::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  if (selection_)
    connect(selection_, &SelectionModel::device_changed, this, [this] {
      mini_map()->refresh();
      update();
    });
}

int TaskLegend::lines_high() const {
  const bool left_out = canvas_->scene() && canvas_->scene()->lines_left_out > 0 && figures_ && figures_->schedule;
  return row_height() * ((figures_ && figures_->schedule ? 4 : 3) + left_out);
}

/// Two columns as soon as one would push the mini-map away.
int TaskLegend::columns() const {
  const int one = kPad + row_height() * (int(rows_.size()) + 1) + 6 + lines_high() + kLeastMap + kPad;
  return rows_.size() > 3 && one > height() && color_ == TaskColor::device ? 2 : 1;
}

int TaskLegend::drawn_rows() const {
  const int room = (height() - 2 * kPad - 6 - lines_high()) / row_height() - 1;
  return std::min(int(rows_.size()), columns() * std::max(room, kFewestRows));
}

int TaskLegend::lines_top() const {
  return kPad + row_height() * (1 + std::max(rows_high(), rows_.empty() ? 2 : 1)) + 6;
}

QRect TaskLegend::row_rect(int row) const {
  const int high = rows_high(), width = (this->width() - 2 * kPad - (columns() - 1) * kColumnGap) / columns();
  const int column = high > 0 ? row / high : 0;
  return {kPad + column * (width + kColumnGap), kPad + row_height() * (1 + row - column * high), width, row_height()};
}

int TaskLegend::row_at(QPoint position) const {
  for (int r = 0; r < drawn_rows(); ++r)
    if (row_rect(r).contains(position)) return r;
  return -1;
}

void TaskLegend::resizeEvent(QResizeEvent*) { place_map(lines_top() + lines_high() + 4); }

void TaskLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint_ground(painter);
  if (!figures_) return;
  paint_rows(painter);
  paint_lines(painter);
}

void TaskLegend::paint_rows(QPainter& painter) const {
  const ThemeColors& theme = theme_colors(palette());
  const QRect line = first_line();
  paint_title(painter, line,
              color_ == TaskColor::device    ? tr("Devices")
              : color_ == TaskColor::scope   ? tr("Scopes")
              : color_ == TaskColor::cluster ? tr("Clusters")
              : color_ == TaskColor::time    ? tr("Time per box")
                                             : tr("Bytes per box"));
  if (rows_.empty()) {
    painter.drawText(line.adjusted(0, row_height(), 0, 2 * row_height()),
                     Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                     color_ == TaskColor::device    ? tr("Nothing is placed yet.")
                     : color_ == TaskColor::cluster ? tr("The method on show makes no clusters.")
                                                    : tr("All zero."));
    return;
  }
  if (color_ == TaskColor::device || color_ == TaskColor::scope || color_ == TaskColor::cluster)
    painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, color_ == TaskColor::device ? tr("busy") : tr("of time"));
  TaskPaint paint;
  paint.theme = &theme, paint.color = color_;
  paint.device = selection_ ? selection_->device() : kNone;
  const auto colors = TaskPainter::colors(paint);
  for (int r = 0; r < drawn_rows(); ++r) {
    const QRect row = row_rect(r);
    if (stands_for_more(r)) {
      painter.setPen(theme.secondary);
      painter.drawText(row.adjusted(kSwatch + 6, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                       tr("%1 more").arg(rows_.size() - std::size_t(r)));
      break;
    }
    const auto& entry = rows_[std::size_t(r)];
    if (entry.device != kNone && entry.device == paint.device)
      painter.fillRect(row.adjusted(-3, 0, 3, 0), theme.accent_background);
    paint_row(painter, row, colors[entry.color], entry.text, entry.value);
  }
}

void TaskLegend::paint_lines(QPainter& painter) const {
  const TaskScene* scene = canvas_->scene();
  const ThemeColors& theme = theme_colors(palette());
  const bool placed = !figures_->cut.empty();
  QRect line(kPad, lines_top(), width() - 2 * kPad, row_height());
  paint_title(painter, line, placed ? tr("Lines: sent between devices") : tr("Lines: sent in all"));
  line.translate(0, row_height());
  if (!scene || scene->largest_line <= 0) {
    const bool edges = !scene || figures_->graph().edge_count() > 0;
    painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter,
                     !edges   ? tr("no task needs another")
                     : placed ? tr("nothing crosses devices here")
                              : tr("no sizes are known"));
  } else {
    // Widths follow the square root, so a quarter is half as far above the thinnest.
    const auto width = [&](double part, const QString& text) {
      const QColor& color = part == 0 || !placed ? theme.axis : theme.heat[std::size_t(1 + std::min(3, int(part * 4)))];
      return LineWidth{QPen(color, 1.1 + (placed ? 3.1 : 1.3) * part, Qt::SolidLine, Qt::FlatCap), text};
    };
    const double largest = scene->largest_line;
    std::vector<LineWidth> widths{width(0.5, edge_weight_beside(*figures_, largest / 4, largest)),
                                  width(1, edge_weight_beside(*figures_, largest, largest))};
    if (placed) widths.insert(widths.begin(), width(0, QStringLiteral("0")));
    paint_widths(painter, line, widths, 10);
  }
  line.translate(0, row_height());
  painter.setPen(theme.secondary);
  QString below;
  if (placed && figures_->weight_total > 0)
    below = tr("%1 of %2 crosses")
                .arg(edge_weight_beside(*figures_, figures_->cut_total, figures_->weight_total),
                     edge_weight_text(*figures_, figures_->weight_total));
  const QFontMetrics metrics(painter.font());
  const auto write = [&](const QString& words) {
    painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(words, Qt::ElideRight, line.width()));
  };
  if (!below.isEmpty()) write(below);
  if (scene && scene->lines_left_out > 0) {
    if (!below.isEmpty()) line.translate(0, row_height());
    write(tr("%1 long lines at the pointer").arg(grouped_number(double(scene->lines_left_out), 0)));
  }
  if (!figures_->schedule || !critical_path_) return;
  line.translate(0, row_height());
  painter.setPen(QPen(theme.error, 2));
  painter.drawLine(QPointF(line.left(), line.center().y() + 1), QPointF(line.left() + 16, line.center().y() + 1));
  painter.setPen(theme.secondary);
  painter.drawText(line.adjusted(22, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, tr("critical path"));
}

void TaskLegend::mousePressEvent(QMouseEvent* event) {
  const int row = row_at(event->pos());
  if (row < 0 || stands_for_more(row) || !figures_ || !selection_) return;
  const TaskLegendRow& entry = rows_[std::size_t(row)];
  if (color_ == TaskColor::device && entry.device != kNone)
    return selection_->pick_device(selection_->device() == entry.device ? kNone : entry.device);
  if (entry.positions.size() != 2) return;
  const auto& order = figures_->hierarchy->order;
  selection_->pick_tasks(std::set<TaskIndex>(order.begin() + entry.positions[0], order.begin() + entry.positions[1]));
}

QString TaskLegend::tip_of(int row) const {
  if (stands_for_more(row)) {
    QStringList lines;
    for (auto more = rows_.begin() + row; more != rows_.end(); ++more)
      lines << more->text + QStringLiteral("  ") + more->value;
    return lines.join(u'\n');
  }
  const TaskLegendRow& entry = rows_[std::size_t(row)];
  if (entry.device == kNone) return entry.text;
  return entry.text + QStringLiteral(": ") +
         tr("%1 of computing in %2. Click to see only its tasks.")
             .arg(time_text(figures_->load_s[entry.device]), time_text(figures_->schedule->makespan_s));
}

}  // namespace turnpoint::views
