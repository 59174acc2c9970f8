// SPDX-License-Identifier: Apache-2.0
// The list of the hardware page as a two-level tree: collectives, operators, links, figures of the files.
#pragma once

#include <QAbstractItemModel>
#include <QStyledItemDelegate>

#include "views/hardware/hardware_content.h"

namespace turnpoint::views {

class CoverageModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { name, origin, samples, range, kColumns };
  enum Role { OriginRole = Qt::UserRole + 1 };  ///< an int of Origin, invalid where there is none

  using QAbstractItemModel::QAbstractItemModel;
  void set_content(HardwareContentPtr content);
  const HardwareRow* row_at(const QModelIndex& index) const;
  QModelIndex index_of(int row, int column = 0) const;  ///< of HardwareContent::rows

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  HardwareContentPtr content_;
};

/// A badge per origin: filled for measured, tinted for calibrated, outlined for modelled, so that colour is not all.
class OriginDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

void paint_origin_badge(QPainter& painter, const QRect& place, Origin origin, const QFont& font,
                        const QPalette& palette);
int origin_badge_width(const QFont& font);

}  // namespace turnpoint::views
