// SPDX-License-Identifier: Apache-2.0
#include "views/plan/legend_table.h"

#include <QPainter>
#include <algorithm>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {
constexpr int kLegendName = 18, kLegendGap = 4;
}

LegendTable::LegendTable(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void LegendTable::set_rows(std::vector<PartRow> rows) {
  const bool resized = rows.size() != rows_.size();
  rows_ = std::move(rows);
  QStringList words;
  for (const PartRow& row : rows_) words << row.name + u' ' + row.value;
  setAccessibleDescription(words.join(QStringLiteral(", ")));
  if (resized) updateGeometry();
  update();
}

int LegendTable::row_height() const { return fontMetrics().height() + 3; }
QSize LegendTable::sizeHint() const { return {120, static_cast<int>(rows_.size()) * row_height()}; }
QSize LegendTable::minimumSizeHint() const { return {80, sizeHint().height()}; }

int LegendTable::width_for(const QStringList& names, const QString& value) const {
  int wide = 0;
  for (const QString& name : names) wide = std::max(wide, fontMetrics().horizontalAdvance(name));
  return kLegendName + wide + kLegendGap + fontMetrics().horizontalAdvance(value);
}

void LegendTable::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  QFont bold = font();
  bold.setBold(true);
  bool shares = false;
  for (const PartRow& row : rows_) shares = shares || !row.share.isEmpty();
  const int share_width = shares ? fontMetrics().horizontalAdvance(QStringLiteral("100%")) + 8 : 0;
  int y = 0;
  for (const PartRow& row : rows_) {
    const int high = row_height();
    int x = 0;
    painter.setFont(row.color.isValid() ? font() : bold);
    if (row.color.isValid()) {
      painter.fillRect(QRect(0, y + (high - 11) / 2, 11, 11), row.color);
      x = kLegendName;
    }
    const QFontMetrics metrics(painter.font());
    const int value_width = metrics.horizontalAdvance(row.value);
    painter.setPen(colors.text);
    const QRect value(width() - share_width - value_width, y, value_width, high);
    painter.drawText(value, Qt::AlignVCenter | Qt::AlignRight, row.value);
    painter.drawText(QRect(x, y, value.left() - x - kLegendGap, high), Qt::AlignVCenter,
                     metrics.elidedText(row.name, Qt::ElideRight, value.left() - x - kLegendGap));
    if (!row.share.isEmpty()) {
      painter.setPen(colors.secondary);
      painter.drawText(QRect(width() - share_width, y, share_width, high), Qt::AlignVCenter | Qt::AlignRight,
                       row.share);
    }
    y += high;
  }
}

}  // namespace turnpoint::views
