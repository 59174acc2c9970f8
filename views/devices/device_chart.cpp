// SPDX-License-Identifier: Apache-2.0
#include "views/devices/device_chart.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

constexpr double kMargin = 12, kKey = 26, kGap = 10;  // px: around all, the row of the key, between levels
constexpr double kLeastRow = 40, kMostRow = 84;       // px
constexpr double kBar = 5, kStrip = 4, kReach = 4;    // px: of a bar, of the strip of types, of the mouse
constexpr double kLeastText = 44, kTwoLines = 62;     // px: width with words, height with a second line
constexpr double kHair = 2;                           // px: narrower blocks are not drawn

QFont smaller(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 0.9);
  return font;
}

/// In steps that people can say, so that a plan that is kept has a short name.
double rounded(double ratio) {
  return std::clamp(std::round(200 * ratio) / 200, DeviceChart::kLeastRatio, 1 - DeviceChart::kLeastRatio);
}

QString names_of_types(std::size_t type) {
  return type == 0   ? QObject::tr("by batch (I)")
         : type == 1 ? QObject::tr("by reduction (II)")
                     : QObject::tr("by output (III)");
}

}  // namespace

DeviceChart::DeviceChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("device_chart"));
  setMinimumSize(240, 120);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Devices, and what part of the work each has"));
}

void DeviceChart::set_blocks(DeviceBlocks blocks) {
  const bool same_cuts = blocks.blocks.size() == blocks_.blocks.size();
  blocks_ = std::move(blocks);
  hovered_.reset();
  if (!same_cuts) held_.reset(), current_.reset();
  if (!current_ && !blocks_.empty() && can_move(0)) current_ = 0;
  setAccessibleDescription(describe(blocks_));
  update();
}

bool DeviceChart::can_move(std::size_t block) const { return blocks_.blocks[block].cut != RatioPlan::kNoCut; }

int DeviceChart::shown_levels(QSizeF size) const {
  const double room = size.height() - 2 * kMargin - kKey + kGap;
  return std::clamp(int(room / (kLeastRow + kGap)) - 1, 0, blocks_.levels);
}

QRectF DeviceChart::rect_in(std::size_t block, QSizeF size) const {
  const DeviceBlock& one = blocks_.blocks[block];
  const int levels = shown_levels(size);
  if (one.level > levels) return {};
  const double room = size.height() - 2 * kMargin - kKey + kGap;
  const double row = std::clamp(room / (levels + 1) - kGap, kLeastRow, kMostRow);
  const double width = size.width() - 2 * kMargin;
  return {kMargin + one.left * width, kMargin + one.level * (row + kGap), one.width * width, row};
}

/// Between the halves of a block, one level below it.
QRectF DeviceChart::border_in(std::size_t block, QSizeF size) const {
  if (!can_move(block) || block + 1 >= blocks_.blocks.size()) return {};
  const QRectF first = rect_in(block + 1, size);
  return first.isEmpty() ? QRectF() : QRectF(first.right() - kReach, first.top(), 2 * kReach, first.height());
}

std::optional<std::size_t> DeviceChart::border_at(QPointF at) const {
  for (std::size_t b = 0; b < blocks_.blocks.size(); ++b)
    if (rect_of(b).width() > 4 * kReach && border_in(b, size()).contains(at)) return b;
  return std::nullopt;
}

std::optional<std::size_t> DeviceChart::block_at(QPointF at) const {
  for (std::size_t b = 0; b < blocks_.blocks.size(); ++b)
    if (rect_of(b).contains(at)) return b;
  return std::nullopt;
}

double DeviceChart::ratio_at(std::size_t block, double x) const {
  const QRectF whole = rect_of(block);
  return rounded((x - whole.left()) / whole.width());
}

void DeviceChart::mousePressEvent(QMouseEvent* event) {
  held_ = event->button() == Qt::LeftButton ? border_at(event->position()) : std::nullopt;
  if (!held_) return;
  current_ = held_;
  held_cut_ = blocks_.blocks[*held_].cut;
  held_ratio_ = blocks_.blocks[*held_ + 1].ratio;
  update();
}

void DeviceChart::mouseMoveEvent(QMouseEvent* event) {
  if (held_) {
    const double ratio = ratio_at(*held_, event->position().x());
    if (ratio == held_ratio_) return;
    held_ratio_ = ratio;
    emit ratio_moved(held_cut_, ratio);
  } else {
    hovered_ = border_at(event->position());
    setCursor(hovered_ ? Qt::SplitHCursor : Qt::ArrowCursor);
  }
  update();
}

void DeviceChart::mouseReleaseEvent(QMouseEvent*) {
  if (!held_) return;
  held_.reset();
  emit ratio_set(held_cut_, held_ratio_);
  update();
}

void DeviceChart::leaveEvent(QEvent*) {
  hovered_.reset();
  update();
}

/// To the next block that is cut, or the one before.
void DeviceChart::move_current(int by) {
  const auto count = static_cast<std::ptrdiff_t>(blocks_.blocks.size());
  for (auto at = static_cast<std::ptrdiff_t>(*current_) + by; at >= 0 && at < count; at += by)
    if (can_move(std::size_t(at)) && !border_in(std::size_t(at), size()).isEmpty()) {
      current_ = std::size_t(at);
      break;
    }
  update();
}

void DeviceChart::keyPressEvent(QKeyEvent* event) {
  const int key = event->key();
  if (!current_ || (key != Qt::Key_Left && key != Qt::Key_Right && key != Qt::Key_Up && key != Qt::Key_Down))
    return QWidget::keyPressEvent(event);
  if (key == Qt::Key_Up || key == Qt::Key_Down) return move_current(key == Qt::Key_Down ? 1 : -1);
  const double before = blocks_.blocks[*current_ + 1].ratio;
  const double ratio = rounded(before + (key == Qt::Key_Right ? kKeyStep : -kKeyStep));
  if (ratio != before) emit ratio_set(blocks_.blocks[*current_].cut, ratio);
}

bool DeviceChart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto block = block_at(help->pos());
  if (block)
    QToolTip::showText(help->globalPos(), describe(blocks_.blocks[*block]), this);
  else
    QToolTip::hideText();
  return true;
}

void DeviceChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint_to(painter, size());
}

void DeviceChart::paint_to(QPainter& painter, QSize size) const {
  painter.fillRect(QRect({}, size), theme_colors(palette()).base);
  painter.setRenderHint(QPainter::Antialiasing);
  for (std::size_t b = 0; b < blocks_.blocks.size(); ++b) draw_block(painter, b, size);
  draw_border(painter, size);
  if (!blocks_.empty()) draw_key(painter, size);
}

void DeviceChart::draw_block(QPainter& painter, std::size_t index, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  const DeviceBlock& block = blocks_.blocks[index];
  QRectF rect = rect_in(index, size);
  if (rect.width() < kHair) return;
  if (rect.width() > 3) rect.adjust(0.5, 0.5, -1.5, -0.5);
  painter.setPen(QPen(colors.border, 1));
  painter.setBrush(colors.alternate);
  painter.drawRect(rect);
  const QRectF inner = rect.adjusted(5, 3, -5, -4);
  if (inner.width() > kLeastText) {
    QFont bold = font();
    bold.setBold(true);
    const QString share = block.level == 0 ? QString() : portion_text(block.ratio);
    const double taken = share.isEmpty() ? 0 : QFontMetricsF(font()).horizontalAdvance(share) + 8;
    painter.setFont(bold);
    painter.setPen(colors.text);
    const QRectF line(inner.left(), inner.top(), inner.width(), QFontMetricsF(bold).height());
    const double room = line.width() - taken;
    if (room > 28)
      painter.drawText(line.adjusted(0, 0, -taken, 0), Qt::AlignLeft | Qt::AlignVCenter,
                       QFontMetricsF(bold).elidedText(block.devices, Qt::ElideRight, room));
    painter.setFont(font());
    painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, share);
    if (rect.height() >= kTwoLines) {
      const QFont small = smaller(font());
      painter.setFont(small);
      painter.setPen(colors.secondary);
      const QString figures = tr("%1 · %2").arg(time_text(block.compute_s), memory_text(block.memory_bytes));
      painter.drawText(QRectF(inner.left(), line.bottom(), inner.width(), QFontMetricsF(small).height()),
                       Qt::AlignLeft | Qt::AlignVCenter,
                       QFontMetricsF(small).elidedText(figures, Qt::ElideRight, inner.width()));
    }
  }
  // What its slowest device computes, of the slowest of all; below it what its fullest one holds, of what fits.
  const auto bar = [&](double top, double part, const QColor& color) {
    const QRectF whole(inner.left(), top, inner.width(), kBar);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colors.grid);
    painter.drawRect(whole);
    painter.setBrush(color);
    painter.drawRect(QRectF(whole.left(), whole.top(), whole.width() * std::clamp(part, 0.0, 1.0), kBar));
  };
  if (inner.width() > 4) {
    bar(inner.bottom() - 2 * kBar - 3, blocks_.slowest_s > 0 ? block.compute_s / blocks_.slowest_s : 0,
        colors.compute[0]);
    bar(inner.bottom() - kBar, block.memory_part, block.memory_part > 1 ? colors.error : colors.memory[3]);
  }
  // How the cut below divides its layers.
  const int layers = block.types[0] + block.types[1] + block.types[2];
  if (layers == 0 || block.level >= shown_levels(size)) return;
  double left = rect.left();
  for (std::size_t t = 0; t < block.types.size(); ++t) {
    const double width = rect.width() * block.types[t] / layers;
    painter.fillRect(QRectF(left, rect.bottom() + 2, width, kStrip), colors.configuration[t]);
    left += width;
  }
}

void DeviceChart::draw_border(QPainter& painter, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  const auto line_at = [&](std::size_t block, double ratio, const QColor& color, double width) {
    const QRectF whole = rect_in(block, size), half = border_in(block, size);
    if (half.isEmpty()) return;
    const double x = whole.left() + ratio * whole.width();
    painter.setPen(QPen(color, width));
    painter.drawLine(QPointF(x - 0.5, half.top() - 3), QPointF(x - 0.5, half.bottom() + 3));
  };
  if (current_ && hasFocus()) line_at(*current_, blocks_.blocks[*current_ + 1].ratio, colors.accent, 3);
  if (hovered_ && !held_) line_at(*hovered_, blocks_.blocks[*hovered_ + 1].ratio, colors.accent, 2);
  if (!held_) return;
  line_at(*held_, held_ratio_, colors.accent, 2);
  const QRectF whole = rect_in(*held_, size), half = border_in(*held_, size);
  const QString text = QStringLiteral("%1 : %2").arg(portion_text(held_ratio_), portion_text(1 - held_ratio_));
  const QFontMetricsF metrics(font());
  QRectF label(0, 0, metrics.horizontalAdvance(text) + 12, metrics.height() + 4);
  label.moveCenter(
      {std::clamp(whole.left() + held_ratio_ * whole.width(), label.width() / 2, size.width() - label.width() / 2),
       half.center().y()});
  painter.setPen(QPen(colors.accent, 1));
  painter.setBrush(colors.accent_background);
  painter.drawRoundedRect(label, 3, 3);
  painter.setPen(colors.text);
  painter.drawText(label, Qt::AlignCenter, text);
}

void DeviceChart::draw_key(QPainter& painter, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFont small = smaller(font());
  const QFontMetricsF metrics(small);
  painter.setFont(small);
  double x = kMargin;
  const double y = size.height() - kMargin - metrics.height();
  const auto entry = [&](const QColor& color, const QString& text) {
    const double width = 14 + metrics.horizontalAdvance(text) + 16;
    if (x + width > size.width() - kMargin) return;
    painter.fillRect(QRectF(x, y + metrics.height() / 2 - 4, 9, 9), color);
    painter.setPen(colors.secondary);
    painter.drawText(QPointF(x + 14, y + metrics.ascent()), text);
    x += width;
  };
  entry(colors.compute[0], tr("computes, of the slowest device"));
  entry(colors.memory[3], tr("holds, of what fits"));
  for (std::size_t t = 0; t < 3; ++t)
    if (std::any_of(blocks_.blocks.begin(), blocks_.blocks.end(),
                    [&](const DeviceBlock& block) { return block.types[t] > 0; }))
      entry(colors.configuration[t], tr("layers cut %1").arg(names_of_types(t)));
  const int hidden = blocks_.levels - shown_levels(size);
  if (hidden <= 0) return;
  painter.setPen(colors.secondary);
  painter.drawText(QRectF(x, y, std::max(0.0, size.width() - kMargin - x), metrics.height()), Qt::AlignRight,
                   tr("%n more level(s)", nullptr, hidden));
}

}  // namespace turnpoint::views
