// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/coverage_model.h"

#include <QApplication>
#include <QPainter>
#include <algorithm>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

void CoverageModel::set_content(HardwareContentPtr content) {
  beginResetModel();
  content_ = std::move(content);
  endResetModel();
}

const HardwareRow* CoverageModel::row_at(const QModelIndex& index) const {
  if (!index.isValid() || !content_ || index.internalId() >= content_->rows.size()) return nullptr;
  return &content_->rows[index.internalId()];
}

QModelIndex CoverageModel::index_of(int row, int column) const {
  if (!content_ || row < 0 || static_cast<std::size_t>(row) >= content_->rows.size()) return {};
  const int above = content_->rows[static_cast<std::size_t>(row)].parent;
  const auto& siblings = above < 0 ? content_->top : content_->rows[static_cast<std::size_t>(above)].children;
  const auto at = std::find(siblings.begin(), siblings.end(), row);
  return createIndex(static_cast<int>(at - siblings.begin()), column, static_cast<quintptr>(row));
}

QModelIndex CoverageModel::index(int row, int column, const QModelIndex& parent) const {
  if (!content_ || row < 0 || column < 0 || column >= kColumns) return {};
  const auto& children = parent.isValid() ? row_at(parent)->children : content_->top;
  if (static_cast<std::size_t>(row) >= children.size()) return {};
  return createIndex(row, column, static_cast<quintptr>(children[static_cast<std::size_t>(row)]));
}

QModelIndex CoverageModel::parent(const QModelIndex& child) const {
  const HardwareRow* row = row_at(child);
  return row && row->parent >= 0 ? index_of(row->parent) : QModelIndex();
}

int CoverageModel::rowCount(const QModelIndex& parent) const {
  if (!content_ || parent.column() > 0) return 0;
  if (!parent.isValid()) return static_cast<int>(content_->top.size());
  return static_cast<int>(row_at(parent)->children.size());
}

int CoverageModel::columnCount(const QModelIndex&) const { return kColumns; }

QVariant CoverageModel::data(const QModelIndex& index, int role) const {
  const HardwareRow* row = row_at(index);
  if (!row) return {};
  const bool heading = row->kind == HardwareRow::Kind::heading;
  if (role == OriginRole) return row->origin ? QVariant(static_cast<int>(*row->origin)) : QVariant();
  if (role == Qt::ToolTipRole) {
    QString text = row->name;
    if (!row->value.isEmpty()) text += QStringLiteral(": ") + row->value;
    return row->tool_tip.isEmpty() ? text : text + u'\n' + row->tool_tip;
  }
  if (role == Qt::TextAlignmentRole)
    return QVariant(index.column() >= samples ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  if (role == Qt::FontRole && heading && index.column() == name) {
    QFont bold = QApplication::font();
    bold.setBold(true);
    return bold;
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case name: return row->name;
    case origin: return row->origin ? origin_text(*row->origin) : row->state;
    case samples: return row->samples;
    case range: return row->value;
    default: return {};
  }
}

QVariant CoverageModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(section >= samples ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && section == origin)
    return tr(
        "Measured: timed on the machine. Calibrated: a formula with constants fitted to such times.\nModelled: a "
        "formula with nominal figures; presets hold what collectives reach in public measurements.");
  if (role == Qt::ToolTipRole && section == range)
    return tr("Sizes between which a measured curve is interpolated, beyond them extrapolated; figures of links");
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case name: return tr("Group of devices");
    case origin: return tr("Origin");
    case samples: return tr("Sizes");
    case range: return tr("From \u2013 to");
    default: return {};
  }
}

int origin_badge_width(const QFont& font) {
  const QFontMetrics metrics(secondary_font(font));
  int widest = 0;
  for (const Origin origin : {Origin::measured, Origin::calibrated, Origin::modelled})
    widest = std::max(widest, metrics.horizontalAdvance(origin_text(origin)));
  return widest + 14;
}

void paint_origin_badge(QPainter& painter, const QRect& place, Origin origin, const QFont& font,
                        const QPalette& palette) {
  const ThemeColors& colors = theme_colors(palette);
  const QFont small = secondary_font(font);
  const int high = QFontMetrics(small).height() + 2;
  const QRectF badge(place.left() + 0.5, place.center().y() - high / 2 + 0.5, origin_badge_width(font) - 1, high - 1);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(origin == Origin::modelled ? colors.axis : colors.accent, 1,
                      origin == Origin::modelled ? Qt::DashLine : Qt::SolidLine));
  painter.setBrush(origin == Origin::measured     ? QBrush(colors.accent)
                   : origin == Origin::calibrated ? QBrush(colors.accent_background)
                                                  : QBrush(Qt::NoBrush));
  painter.drawRoundedRect(badge, 3, 3);
  painter.setFont(small);
  painter.setPen(origin == Origin::measured     ? colors.base
                 : origin == Origin::calibrated ? colors.text
                                                : colors.secondary);
  painter.drawText(badge, Qt::AlignCenter, origin_text(origin));
  painter.restore();
}

void OriginDelegate::paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const {
  const QVariant origin = index.data(CoverageModel::OriginRole);
  QStyleOptionViewItem option = given;
  initStyleOption(&option, index);
  const QString text = option.text;
  option.text.clear();
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawControl(QStyle::CE_ItemViewItem, &option, painter, option.widget);
  if (origin.isValid()) {
    paint_origin_badge(*painter, option.rect.adjusted(4, 0, 0, 0), static_cast<Origin>(origin.toInt()), option.font,
                       option.palette);
    return;
  }
  painter->save();
  painter->setFont(secondary_font(option.font));
  painter->setPen(theme_colors(option.palette).secondary);
  const QRect room = option.rect.adjusted(4, 0, -2, 0);
  painter->drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                    QFontMetrics(painter->font()).elidedText(text, Qt::ElideRight, room.width()));
  painter->restore();
}

QSize OriginDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  int width = origin_badge_width(option.font);
  if (!index.data(CoverageModel::OriginRole).isValid())
    width = std::max(width, QFontMetrics(secondary_font(option.font)).horizontalAdvance(index.data().toString()));
  return {width + 10, std::max(18, option.fontMetrics.height() + 6)};
}

}  // namespace turnpoint::views
