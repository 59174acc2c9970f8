// SPDX-License-Identifier: Apache-2.0
#include "views/plan_table/plan_delegates.h"

#include <QApplication>
#include <QPainter>
#include <algorithm>

#include "views/common/theme_colors.h"
#include "views/plan_table/plan_table_model.h"

namespace turnpoint::views {

namespace {

constexpr int kSwatch = 11, kPad = 6, kBarHeight = 8;

void paint_background(QPainter* painter, const QStyleOptionViewItem& option) {
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawPrimitive(QStyle::PE_PanelItemViewItem, &option, painter, option.widget);
}

}  // namespace

QSize PlanRowDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  size.setHeight(std::max(18, option.fontMetrics.height() + 7));
  return size;
}

void PlanRowDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  option->textElideMode = Qt::ElideMiddle;
  // Picked and hovered rows are tinted, so that swatches and bars keep their colours.
  const ThemeColors& theme = theme_colors(option->palette);
  for (const auto group : {QPalette::Active, QPalette::Inactive}) {
    option->palette.setColor(group, QPalette::Highlight, theme.accent_background);
    option->palette.setColor(group, QPalette::HighlightedText, theme.text);
  }
}

void SwatchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const {
  QStyleOptionViewItem option = given;
  initStyleOption(&option, index);
  const ThemeColors& theme = theme_colors(option.palette);
  paint_background(painter, option);
  painter->save();
  const QColor color = index.data(PlanTableModel::ColorRole).value<QColor>();
  QRect text = option.rect.adjusted(kPad, 0, -kPad, 0);
  if (color.isValid()) {
    const QRect swatch(text.left(), text.center().y() - kSwatch / 2, kSwatch, kSwatch);
    painter->fillRect(swatch, color);
    painter->setPen(theme.axis);
    painter->drawRect(swatch.adjusted(0, 0, -1, -1));
  }
  text.setLeft(text.left() + kSwatch + kPad);
  painter->setPen(color.isValid() ? theme.text : theme.secondary);
  painter->setFont(option.font);
  painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                    option.fontMetrics.elidedText(option.text, Qt::ElideMiddle, text.width()));
  painter->restore();
}

void ShareDelegate::paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const {
  QStyleOptionViewItem option = given;
  initStyleOption(&option, index);
  const ThemeColors& theme = theme_colors(option.palette);
  paint_background(painter, option);
  if (option.text.isEmpty()) return;
  painter->save();
  const int number = option.fontMetrics.horizontalAdvance(QStringLiteral("00.0%"));
  const QRect room = option.rect.adjusted(kPad, 0, -kPad, 0);
  const int length = std::min(120, room.width() - number - kPad);
  if (length >= 20) {
    const QRect track(room.left(), room.center().y() - kBarHeight / 2, length, kBarHeight);
    const double share = index.data(PlanTableModel::SortRole).toDouble(),
                 largest = std::max(rows_->largest_share(), 1e-12);
    painter->fillRect(track, theme.dark ? theme.head : theme.grid);
    const int filled = static_cast<int>(track.width() * std::min(1.0, share / largest) + 0.5);
    painter->fillRect(QRect(track.topLeft(), QSize(share > 0 ? std::max(1, filled) : 0, kBarHeight)), theme.accent);
  }
  painter->setPen(theme.secondary);
  painter->setFont(option.font);
  const QRect text(room.left() + (length >= 20 ? length + kPad : 0), room.top(), number, room.height());
  painter->drawText(text, Qt::AlignRight | Qt::AlignVCenter, option.text);
  painter->restore();
}

}  // namespace turnpoint::views
