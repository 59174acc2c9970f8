// SPDX-License-Identifier: Apache-2.0
// A report in the list: its plan, and below, smaller, how far off the prediction was and what ran it.
#pragma once

#include <QStyledItemDelegate>

namespace turnpoint::views {

class ReportDelegate : public QStyledItemDelegate {
 public:
  enum Role { SecondLine = Qt::UserRole, Wrong };
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace turnpoint::views
