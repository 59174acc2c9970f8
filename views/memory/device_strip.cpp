// SPDX-License-Identifier: Apache-2.0
#include "views/memory/device_strip.h"

#include <QElapsedTimer>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/section_head.h"

namespace turnpoint::views {

namespace {

constexpr double kPad = 8, kMostPitch = 60, kWidth = 196;

}  // namespace

DeviceStrip::DeviceStrip(QWidget* parent) : QAbstractScrollArea(parent) {
  setObjectName(QStringLiteral("memory_strip"));
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFixedWidth(int(kWidth));
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Memory of all devices"));
}

QSize DeviceStrip::sizeHint() const { return {int(kWidth), 200}; }

void DeviceStrip::set_summary(MemorySummaryPtr summary) {
  summary_ = std::move(summary);
  device_ = kNone;
  verticalScrollBar()->setValue(0);
  update_scroll_bar();
  viewport()->update();
}

void DeviceStrip::set_device(std::uint32_t device) {
  device_ = device;
  if (summary_ && device < summary_->devices()) {
    const double top = device * pitch(), bottom = top + pitch(), now = verticalScrollBar()->value();
    if (top < now) verticalScrollBar()->setValue(int(top));
    if (bottom > now + viewport()->height())
      verticalScrollBar()->setValue(int(std::ceil(bottom)) - viewport()->height());
  }
  viewport()->update();
}

double DeviceStrip::pitch() const {
  const double least = std::ceil(QFontMetricsF(secondary_font(font())).height()) + 20;
  const std::size_t devices = summary_ ? summary_->devices() : 0;
  return devices == 0 ? least : std::clamp(std::floor(viewport()->height() / double(devices)), least, kMostPitch);
}

double DeviceStrip::scale_bytes() const {
  double most = double(std::max<std::int64_t>(summary_->largest_peak(), 1));
  // Limits far above every peak would press the outlines flat.
  for (const Schedule::Device& device : summary_->schedule()->devices)
    if (device.memory_limit != kUnlimitedBytes && double(device.memory_limit) < most * 4)
      most = std::max(most, double(device.memory_limit));
  return most * 1.05;
}

void DeviceStrip::update_scroll_bar() {
  const double content = summary_ ? pitch() * double(summary_->devices()) : 0;
  verticalScrollBar()->setRange(0, std::max(0, int(std::ceil(content)) - viewport()->height()));
  verticalScrollBar()->setPageStep(viewport()->height());
  verticalScrollBar()->setSingleStep(int(pitch()));
}

QRectF DeviceStrip::row(std::uint32_t device) const {
  return {0, device * pitch() - verticalScrollBar()->value(), double(viewport()->width()), pitch()};
}

std::uint32_t DeviceStrip::device_at(QPointF position) const {
  if (!summary_ || position.y() < 0) return kNone;
  const double row = (position.y() + verticalScrollBar()->value()) / pitch();
  return row < double(summary_->devices()) ? std::uint32_t(row) : kNone;
}

void DeviceStrip::paintEvent(QPaintEvent*) {
  QElapsedTimer clock;
  clock.start();
  QPainter painter(viewport());
  painter.setFont(font());
  paint(painter, viewport()->rect(), theme_colors(palette()));
  last_frame_ns_ = clock.nsecsElapsed();
}

void DeviceStrip::paint(QPainter& painter, const QRectF& area, const ThemeColors& theme) const {
  painter.save();
  painter.setClipRect(area);
  painter.fillRect(area, theme.window);
  if (summary_)
    for (std::uint32_t d = std::uint32_t(verticalScrollBar()->value() / pitch()); d < summary_->devices(); ++d) {
      QRectF here = row(d).translated(area.topLeft());
      here.setWidth(area.width());
      if (here.top() > area.bottom()) break;
      paint_row(painter, d, here, theme);
    }
  painter.setPen(theme.border);
  painter.drawLine(QPointF(area.right(), area.top()), QPointF(area.right(), area.bottom()));
  painter.restore();
}

void DeviceStrip::paint_row(QPainter& painter, std::uint32_t device, const QRectF& row,
                            const ThemeColors& theme) const {
  const Schedule& s = *summary_->schedule();
  const Schedule::Device& d = s.devices[device];
  const bool shown = device == device_, over = summary_->over(device);
  const QFont small = secondary_font(font());
  QFont name = small;
  name.setBold(shown);
  const QFontMetricsF metrics(small);
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (shown) {
    painter.fillRect(row, theme.accent_background);
    painter.fillRect(QRectF(row.left(), row.top(), 3, row.height()), theme.accent);
  }
  const QRectF words(row.left() + kPad, row.top() + 1, row.width() - 2 * kPad, metrics.height());
  const QString peak = memory_text(d.peak_bytes);
  painter.setFont(small);
  painter.setPen(over ? theme.error : theme.secondary);
  painter.drawText(words, Qt::AlignRight | Qt::AlignVCenter, peak);
  painter.setFont(name);
  painter.setPen(theme.text);
  painter.drawText(words, Qt::AlignLeft | Qt::AlignVCenter,
                   QFontMetricsF(name).elidedText(to_qt(d.name), Qt::ElideRight,
                                                  words.width() - metrics.horizontalAdvance(peak) - 8));

  const QRectF plot(words.left(), words.bottom() + 1, std::floor(words.width()), row.bottom() - words.bottom() - 5);
  painter.fillRect(plot, theme.base);
  const double scale = scale_bytes(), limit = double(d.memory_limit);
  const auto y = [&](double bytes) { return plot.bottom() - plot.height() * std::min(1.0, bytes / scale); };
  const auto piece = [&](double left, double width, double from, double to, const QColor& color) {
    if (to > from) painter.fillRect(QRectF(left, y(to), width, y(from) - y(to)), color);
  };
  const double persistent = double(d.persistent_bytes);
  if (!summary_->recorded(device) || !(s.makespan_s > 0)) {
    // What the peak is made of is not known.
    piece(plot.left(), plot.width(), persistent, double(d.peak_bytes), theme.pinned);
    piece(plot.left(), plot.width(), limit, double(d.peak_bytes), theme.error);
    piece(plot.left(), plot.width(), 0, persistent, theme.memory[0]);
  }
  const int width = summary_->recorded(device) && s.makespan_s > 0 ? int(plot.width()) : 0;
  const auto sample_at = [&](int x) {
    return summary_->fullest(device, x * s.makespan_s / width, (x + 1) * s.makespan_s / width);
  };
  // Columns of one sample are one rectangle per part.
  for (int x = 0, next = 0; x < width; x = next) {
    const std::size_t sample = sample_at(x);
    for (next = x + 1; next < width && sample_at(next) == sample;) ++next;
    const MemorySample& held = summary_->samples(device)[sample];
    const std::int64_t parts[] = {d.persistent_bytes, held.activation_bytes, held.copy_bytes, held.workspace_bytes};
    const QColor colors[] = {theme.memory[0], theme.memory[3], theme.memory[4], theme.memory[5]};
    double sum = 0;
    for (std::size_t part = 0; part < 4; sum += double(parts[part++]))
      piece(plot.left() + x, next - x, sum, sum + double(parts[part]), colors[part]);
    piece(plot.left() + x, next - x, limit, sum, theme.error);
  }
  if (limit <= scale) {
    painter.setPen(QPen(over ? theme.error : theme.text, 1));
    painter.drawLine(QPointF(plot.left(), std::round(y(limit))), QPointF(plot.right() - 1, std::round(y(limit))));
  }
}

void DeviceStrip::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  update_scroll_bar();
  if (device_ != kNone) set_device(device_);
}

void DeviceStrip::mousePressEvent(QMouseEvent* event) {
  if (const std::uint32_t device = device_at(event->position()); device != kNone) emit device_picked(device);
}

void DeviceStrip::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
  if (step == 0 || !summary_ || device_ == kNone) return QAbstractScrollArea::keyPressEvent(event);
  const std::int64_t next = std::int64_t(device_) + step;
  if (next >= 0 && next < std::int64_t(summary_->devices())) emit device_picked(std::uint32_t(next));
}

bool DeviceStrip::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip && summary_) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const std::uint32_t device = device_at(help->pos());
    if (device == kNone) return true;
    const Schedule::Device& d = summary_->schedule()->devices[device];
    QString text = to_qt(d.name) + tr(": peak %1 at %2").arg(memory_text(d.peak_bytes), time_text(d.peak_at_s));
    if (d.stands_for > 1) text += tr(", and %1 more alike").arg(d.stands_for - 1);
    if (summary_->over(device)) text += tr(", %1 missing").arg(memory_text(d.peak_bytes - d.memory_limit));
    QToolTip::showText(help->globalPos(), text, viewport());
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

void DeviceStrip::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) update_scroll_bar();
  QAbstractScrollArea::changeEvent(event);
}

}  // namespace turnpoint::views
