// SPDX-License-Identifier: Apache-2.0
#include "views/validation/report_delegate.h"

#include <QApplication>
#include <QPainter>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {
constexpr int kSide = 8, kAbove = 4, kBetween = 1;
}  // namespace

QSize ReportDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
  const int second = QFontMetrics(secondary_font(option.font)).height();
  return {80, QFontMetrics(option.font).height() + second + kBetween + 2 * kAbove};
}

void ReportDelegate::paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const {
  QStyleOptionViewItem option = given;
  initStyleOption(&option, index);
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawPrimitive(QStyle::PE_PanelItemViewItem, &option, painter, option.widget);
  const ThemeColors& colors = theme_colors(option.palette);
  const QRect area = option.rect.adjusted(kSide, kAbove, -kSide, -kAbove);
  const auto line = [&](const QFont& font, const QColor& color, int top, const QString& text) {
    painter->setFont(font);
    painter->setPen(color);
    const QFontMetrics metrics(font);
    painter->drawText(QRect(area.left(), top, area.width(), metrics.height()), Qt::AlignLeft | Qt::AlignVCenter,
                      metrics.elidedText(text, Qt::ElideRight, area.width()));
    return top + metrics.height() + kBetween;
  };
  painter->save();
  const int below = line(option.font, colors.text, area.top(), option.text);
  const bool wrong = index.data(Wrong).toBool();
  line(secondary_font(option.font), wrong ? colors.error : colors.secondary, below, index.data(SecondLine).toString());
  painter->restore();
}

}  // namespace turnpoint::views
