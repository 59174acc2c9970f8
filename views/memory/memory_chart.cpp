// SPDX-License-Identifier: Apache-2.0
// Painting of one device's memory over time.
#include "views/memory/memory_chart.h"

#include <QElapsedTimer>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

constexpr double kLeft = 62, kTop = 24, kRight = 16, kLegend = 150, kLegendFrom = 620, kTickPixels = 84;
constexpr double kNoteBack = 0.82, kNearLimit = 3;
constexpr qsizetype kLongestName = 48;

constexpr std::array<const char*, 4> kPartNames = {
    QT_TRANSLATE_NOOP("MemoryChart", "Persistent"), QT_TRANSLATE_NOOP("MemoryChart", "Activations"),
    QT_TRANSLATE_NOOP("MemoryChart", "Copies"), QT_TRANSLATE_NOOP("MemoryChart", "Workspace")};

std::array<QColor, 4> part_colors(const ThemeColors& theme) {
  return {theme.memory[0], theme.memory[3], theme.memory[4], theme.memory[5]};
}

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= least * (1 - 1e-12)) return digit * power;
  return 10 * power;
}

/// The last two parts of a path, at most as long as a label may be.
QString running_name(std::string_view name) {
  const QString text = to_qt(name.substr(0, 400)).section(u'/', -2, -1, QString::SectionSkipEmpty);
  return text.size() > kLongestName ? text.left(kLongestName - 1) + QChar(0x2026) : text;
}

/// Words on the plot keep a veil of the ground behind them, so that they stay readable on any colour.
void draw_note(QPainter& painter, const QRectF& box, const QString& text, const QColor& color,
               const ThemeColors& theme) {
  QColor back = theme.base;
  back.setAlphaF(float(kNoteBack));
  painter.fillRect(box.adjusted(-3, 0, 3, 0), back);
  painter.setPen(color);
  painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, text);
}

QRectF label_rect(const MemoryChart::Frame& f, const TimeTicks& ticks, int index, const QFontMetricsF& metrics) {
  return tick_label_rect(ticks, index, f.window, metrics, f.plot.left() - 24, f.plot.right() + 10, f.ruler.top() + 6);
}

}  // namespace

MemoryChart::Frame MemoryChart::frame(QSizeF size) const {
  Frame f;
  const QFontMetricsF small(secondary_font(font()));
  const double ruler = std::ceil(small.height()) + 10;
  const double legend = size.width() >= kLegendFrom ? kLegend : 0;
  f.plot = QRectF(kLeft, kTop, std::max(40.0, size.width() - kLeft - kRight - legend),
                  std::max(30.0, size.height() - kTop - ruler));
  f.ruler = QRectF(f.plot.left(), f.plot.bottom(), f.plot.width(), ruler);
  if (legend > 0) f.legend = QRectF(f.plot.right() + kRight, kTop, legend, f.plot.height());
  f.window = time().window(f.plot.left(), f.plot.width());
  double most = 1;
  if (summary_ && device_ < summary_->devices()) {
    const Schedule::Device& device = summary_->schedule()->devices[device_];
    most = std::max(1.0, double(device.peak_bytes) * 1.12);
    const double limit = double(device.memory_limit);
    const bool near = limit <= kNearLimit * double(device.peak_bytes);
    if (device.memory_limit != kUnlimitedBytes && (show_limit_ || near)) most = std::max(most, limit * 1.1);
  }
  const ByteUnit unit = byte_unit_for(most);
  const double intervals = std::max(2.0, std::floor(f.plot.height() / 34));
  f.step_bytes = std::max(unit.bytes == 1 ? 1.0 : 0.0, round_step(most / unit.bytes / intervals)) * unit.bytes;
  f.top_bytes = std::max(most, f.step_bytes);
  return f;
}

std::array<std::int64_t, 4> MemoryChart::parts(std::size_t sample) const {
  const MemorySample& s = summary_->samples(device_)[sample];
  return {summary_->schedule()->devices[device_].persistent_bytes, s.activation_bytes, s.copy_bytes, s.workspace_bytes};
}

bool MemoryChart::drawable() const { return summary_ && device_ < summary_->devices() && summary_->recorded(device_); }

void MemoryChart::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  const double ratio = devicePixelRatioF();
  const QSize pixels = (QSizeF(size()) * ratio).toSize();
  if (frame_.size() != pixels) {
    frame_ = QPixmap(pixels);
    frame_.setDevicePixelRatio(ratio);
    frame_stale_ = true;
  }
  if (frame_stale_) {
    QElapsedTimer clock;
    clock.start();
    QPainter painter(&frame_);
    painter.setFont(font());
    paint(painter, size(), theme);
    painter.end();
    frame_stale_ = false;
    last_frame_ns_ = clock.nsecsElapsed();
  }
  QPainter painter(this);
  painter.drawPixmap(0, 0, frame_);
  if (!drawable()) return;
  paint_cursor(painter, frame(), theme);
  if (hand_.rests()) paint_hover(painter, hover_text_, pointer_, rect(), theme, font());
}

void MemoryChart::paint(QPainter& painter, QSizeF size, const ThemeColors& theme) {
  painter.fillRect(QRectF(QPointF(0, 0), size), theme.base);
  limit_words_.clear();
  if (!drawable()) {
    painter.setPen(theme.secondary);
    QString words = message_;
    if (summary_ && summary_->devices() == 0) words = tr("This schedule has no devices.");
    if (summary_ && summary_->devices() > 0 && !(summary_->schedule()->makespan_s > 0))
      words = tr("Every task of this schedule takes no time, so nothing is held over time.");
    else if (summary_ && device_ < summary_->devices())
      words = tr("Memory over time was not recorded for %1; its peak is %2.")
                  .arg(to_qt(summary_->schedule()->devices[device_].name),
                       memory_text(summary_->schedule()->devices[device_].peak_bytes));
    painter.drawText(QRectF(QPointF(16, 0), QSizeF(size.width() - 32, size.height())),
                     Qt::AlignCenter | Qt::TextWordWrap, words);
    return;
  }
  const Frame f = frame(size);
  paint_scale(painter, f, theme);
  paint_areas(painter, f, theme);
  paint_limit(painter, f, theme);
  paint_peak(painter, f, theme);
  paint_legend(painter, f, theme);
}

void MemoryChart::paint_scale(QPainter& painter, const Frame& f, const ThemeColors& theme) const {
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setFont(small);
  const ByteUnit unit = byte_unit_for(f.top_bytes);
  painter.setPen(theme.secondary);
  painter.drawText(QRectF(0, 4, kLeft - 8, metrics.height()), Qt::AlignRight | Qt::AlignVCenter, unit.name);
  const int decimals = std::clamp(int(std::ceil(-std::log10(f.step_bytes / unit.bytes) - 1e-9)), 0, 6);
  for (int i = 0; i * f.step_bytes <= f.top_bytes * (1 + 1e-9); ++i) {
    const double y = std::round(f.y(i * f.step_bytes));
    painter.setPen(i == 0 ? theme.border : theme.grid);
    painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
    painter.setPen(theme.secondary);
    if (y > f.plot.top() + 2)
      painter.drawText(QRectF(0, y - metrics.height() / 2, kLeft - 8, metrics.height()),
                       Qt::AlignRight | Qt::AlignVCenter, grouped_number(i * f.step_bytes / unit.bytes, decimals));
  }
  const TimeTicks ticks = time_ticks(f.window, kTickPixels);
  if (!ticks.base_text.isEmpty())
    painter.drawText(QRectF(0, f.ruler.top() + 6, kLeft - 8, metrics.height()), Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(ticks.base_text, Qt::ElideLeft, kLeft - 8));
  for (int i = 0; i < ticks.count; ++i) {
    const double x = f.window.x(ticks.at(i));
    painter.setPen(theme.axis);
    painter.drawLine(QPointF(std::round(x), f.plot.bottom()), QPointF(std::round(x), f.plot.bottom() + 4));
    painter.setPen(theme.secondary);
    painter.drawText(label_rect(f, ticks, i, metrics), Qt::AlignLeft | Qt::AlignVCenter, ticks.label(i));
  }
}

/// Every column shows its fullest sample, so that the outline is the maximum of what lies below a pixel.
void MemoryChart::paint_areas(QPainter& painter, const Frame& f, const ThemeColors& theme) const {
  const int width = int(f.plot.width());
  const double makespan = time().makespan();
  std::array<QPolygonF, 4> outlines;
  const double limit = double(summary_->schedule()->devices[device_].memory_limit);
  double begin = f.plot.right(), behind = f.plot.left();
  for (auto& outline : outlines) outline.reserve(2 * width + 4);
  for (int x = 0; x < width; ++x) {
    const double left = f.plot.left() + x;
    const double from = f.window.at(left), to = f.window.at(left + 1);
    if (to <= 0 || (from >= makespan && makespan > 0)) continue;
    const auto bytes = parts(summary_->fullest(device_, std::max(from, 0.0), to));
    begin = std::min(begin, left), behind = left + 1;
    double sum = 0;
    for (std::size_t part = 0; part < 4; ++part) {
      sum += double(bytes[part]);
      const double y = f.y(sum);
      QPolygonF& outline = outlines[part];
      // Level stretches need two points only.
      if (outline.size() >= 2 && outline.back().y() == y) {
        outline.back().setX(left + 1);
      } else {
        outline << QPointF(left, y) << QPointF(left + 1, y);
      }
    }
  }
  if (behind <= begin) return;
  const auto colors = part_colors(theme);
  painter.save();
  painter.setClipRect(f.plot.adjusted(0, 0, 0, 1));
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(Qt::NoPen);
  for (std::size_t part = 4; part-- > 0;) {
    QPolygonF& outline = outlines[part];
    outline << QPointF(behind, f.plot.bottom()) << QPointF(begin, f.plot.bottom());
    painter.setBrush(colors[part]);
    painter.drawPolygon(outline);
  }
  if (summary_->over(device_)) {
    // Hatched, so that the parts stay visible.
    painter.setClipRect(QRectF(f.plot.left(), f.plot.top(), f.plot.width(), f.y(limit) - f.plot.top()));
    QColor veil = theme.error;
    veil.setAlphaF(0.35f);
    for (const QBrush& brush : {QBrush(veil), QBrush(theme.dark ? theme.base : theme.error, Qt::BDiagPattern)}) {
      painter.setBrush(brush);
      painter.drawPolygon(outlines[3]);
    }
  }
  painter.restore();
  if (selection_ && follows() && selection_->time_range()) {
    const auto [from, to] = *selection_->time_range();
    const double left = std::max(f.window.x(from), f.plot.left()), right = std::min(f.window.x(to), f.plot.right());
    QColor fill = theme.accent;
    fill.setAlphaF(0.18f);
    if (right >= left) {
      painter.fillRect(QRectF(left, f.plot.top(), std::max(1.0, right - left), f.plot.height()), fill);
      painter.setPen(theme.accent);
      painter.drawLine(QPointF(left, f.plot.top()), QPointF(left, f.plot.bottom()));
      painter.drawLine(QPointF(right, f.plot.top()), QPointF(right, f.plot.bottom()));
    }
  }
}

void MemoryChart::paint_limit(QPainter& painter, const Frame& f, const ThemeColors& theme) {
  const Schedule::Device& device = summary_->schedule()->devices[device_];
  if (device.memory_limit == kUnlimitedBytes) return;
  const bool over = summary_->over(device_);
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  const double y = f.y(double(device.memory_limit));
  const bool above = y < f.plot.top() - 1;
  limit_words_ = tr("device memory %1").arg(memory_text(device.memory_limit));
  if (over) {
    limit_words_ +=
        tr(": %1 missing at %2").arg(memory_text(device.peak_bytes - device.memory_limit), time_text(device.peak_at_s));
    if (const auto first = summary_->first_over(device_); first && *first < device.peak_at_s)
      limit_words_ += tr(", over from %1").arg(time_text(*first));
  } else if (above) {
    limit_words_ += tr(", beyond the scale");
  }
  const QColor color = over ? theme.error : theme.text;
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (!above) {
    painter.setPen(QPen(color, 2));
    painter.drawLine(QPointF(f.plot.left(), y), QPointF(f.plot.right(), y));
  }
  painter.setFont(small);
  const double wide = std::min(metrics.horizontalAdvance(limit_words_), f.plot.width() - 8);
  const double top = std::max(above ? 4.0 : y - metrics.height() - 3, 2.0);
  draw_note(painter, QRectF(f.plot.right() - wide - 2, top, wide, metrics.height()),
            metrics.elidedText(limit_words_, Qt::ElideRight, wide + 1), color, theme);
}

void MemoryChart::paint_peak(QPainter& painter, const Frame& f, const ThemeColors& theme) const {
  const Schedule& s = *summary_->schedule();
  const Schedule::Device& device = s.devices[device_];
  const double x = f.window.x(device.peak_at_s), y = f.y(double(device.peak_bytes));
  if (x < f.plot.left() - 1 || x > f.plot.right() + 1) return;
  QString text = tr("peak %1 at %2").arg(memory_text(device.peak_bytes), time_text(device.peak_at_s));
  for (const Schedule::Lane& lane : s.lanes) {
    if (lane.device != device_ || lane.kind != LaneKind::compute) continue;
    const auto begin = s.start_s.begin();
    const auto after = std::upper_bound(begin + lane.begin, begin + lane.end, device.peak_at_s) - begin;
    if (after > lane.begin && s.end_s[std::size_t(after - 1)] > device.peak_at_s)
      text += QStringLiteral(", ") + running_name(s.graph->names[s.task[std::size_t(after - 1)]]);
  }
  const QFont small = secondary_font(font());
  QFont bold = small;
  bold.setBold(true);
  const QFontMetricsF metrics(bold);
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(QPen(theme.text, 1.6));
  painter.setBrush(theme.base);
  painter.drawEllipse(QPointF(x, y), 3.6, 3.6);
  const double wide = std::min(metrics.horizontalAdvance(text) + 1, f.plot.width() - 24);
  QRectF box(x + 9, y - metrics.height() - 5, wide, metrics.height());
  if (box.right() > f.plot.right() - 2) box.moveRight(x - 9);
  if (box.left() < f.plot.left() + 4) box.moveLeft(f.plot.left() + 4);
  // The limit's words stand at the right above its line.
  const double line = f.y(double(device.memory_limit));
  const QRectF taken(f.plot.left(), std::max(line - metrics.height() - 4, 0.0), f.plot.width(), metrics.height() + 6);
  const bool limited = device.memory_limit != kUnlimitedBytes && line >= f.plot.top() - 1;
  if (box.top() < 2 || (limited && box.intersects(taken)))
    box.moveTop(std::max(y + 7, limited && y < line + 4 && y > line - 30 ? line + 6 : 0));
  painter.setFont(bold);
  draw_note(painter, box, metrics.elidedText(text, Qt::ElideMiddle, wide + 1),
            summary_->over(device_) ? theme.error : theme.text, theme);
}

void MemoryChart::paint_legend(QPainter& painter, const Frame& f, const ThemeColors& theme) const {
  if (f.legend.isEmpty()) return;
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  const auto colors = part_colors(theme);
  const Schedule::Device& device = summary_->schedule()->devices[device_];
  const auto bytes = parts(summary_->at(device_, device.peak_at_s));
  double y = f.legend.top();
  painter.setFont(small);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(theme.secondary);
  painter.drawText(QRectF(f.legend.left(), y, f.legend.width() - 10, metrics.height()), Qt::AlignRight,
                   tr("at the peak"));
  y += metrics.height() + 4;
  const auto line = [&](const QString& name, std::int64_t value, const QColor& color) {
    if (y + metrics.height() > f.legend.bottom()) return;
    if (color.isValid())
      painter.fillRect(QRectF(f.legend.left(), std::round(y + metrics.height() / 2 - 5), 10, 10), color);
    painter.setPen(color.isValid() ? theme.secondary : theme.text);
    const QRectF row(f.legend.left() + 16, y, f.legend.width() - 26, metrics.height());
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, name);
    painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, memory_text(value));
    y += metrics.height() + 5;
  };
  std::int64_t sum = 0;
  for (std::size_t part = 4; part-- > 0;) {
    line(tr(kPartNames[part]), bytes[part], colors[part]);
    sum += bytes[part];
  }
  line(tr("Sum"), sum, {});
}

void MemoryChart::paint_cursor(QPainter& painter, const Frame& f, const ThemeColors& theme) const {
  if (!selection_ || !follows() || !selection_->hovered_time()) return;
  const double instant = *selection_->hovered_time(), x = std::round(f.window.x(instant));
  if (x < f.plot.left() || x > f.plot.right()) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(QPen(theme.axis, 1, Qt::DashLine));
  painter.drawLine(QPointF(x, f.plot.top()), QPointF(x, f.plot.bottom()));
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  const QString text = instant_text(instant, f.window.per_pixel());
  QRectF tag(0, f.ruler.top() + 4, metrics.horizontalAdvance(text) + 10, metrics.height() + 3);
  tag.moveLeft(std::clamp(x - tag.width() / 2, f.plot.left() - 20, f.plot.right() + 10 - tag.width()));
  const TimeTicks ticks = time_ticks(f.window, kTickPixels);
  for (int i = 0; i < ticks.count; ++i)
    if (const QRectF label = label_rect(f, ticks, i, metrics); label.intersects(tag.adjusted(-3, 0, 3, 0)))
      painter.fillRect(label, theme.base);
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.axis);
  painter.drawRoundedRect(tag, 2, 2);
  painter.setFont(small);
  painter.setPen(theme.dark ? theme.base : QColor(Qt::white));
  painter.drawText(tag, Qt::AlignCenter, text);
}

HoverText MemoryChart::words_at(double instant, double pixel, std::size_t most) const {
  const Schedule& s = *summary_->schedule();
  const Schedule::Device& device = s.devices[device_];
  const std::size_t sample = summary_->fullest(device_, instant, instant + pixel);
  const double at = std::max(instant, summary_->samples(device_)[sample].time_s);
  const auto bytes = parts(sample);
  const std::int64_t total = summary_->total(device_, sample);
  HoverText text{{to_qt(device.name) + tr(" at %1").arg(instant_text(at, pixel)), memory_text(total)}};
  for (std::size_t part = 4; part-- > 0;) text.push_back({tr(kPartNames[part]), memory_text(bytes[part])});
  if (device.memory_limit != kUnlimitedBytes)
    text.push_back(total > device.memory_limit ? HoverRow{tr("missing"), memory_text(total - device.memory_limit)}
                                               : HoverRow{tr("free"), memory_text(device.memory_limit - total)});
  if (most == 0) return text;
  const auto live = summary_->live_at(device_, at, most);
  if (!live || live->count == 0) return text;
  text.push_back({live->count > live->largest.size()
                      ? tr("largest of %1 tensors:").arg(grouped_number(double(live->count), 0))
                      : tr("tensors:"),
                  {}});
  for (const LiveTensor& tensor : live->largest) {
    QString name = running_name(s.graph->names[tensor.task]);
    if (tensor.from != kNone) name += tr(" (copy from %1)").arg(to_qt(s.devices[tensor.from].name));
    text.push_back({QStringLiteral("  ") + name, memory_text(tensor.bytes)});
  }
  return text;
}

}  // namespace turnpoint::views
