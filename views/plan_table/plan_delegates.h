// SPDX-License-Identifier: Apache-2.0
// How cells of the plan table are painted: a colour swatch before the configuration, a bar for the share of time.
#pragma once

#include <QStyledItemDelegate>

namespace turnpoint::views {

class PlanTableModel;

/// Rows of one height, a little air, names elided in the middle.
class PlanRowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

class SwatchDelegate : public PlanRowDelegate {
 public:
  using PlanRowDelegate::PlanRowDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

class ShareDelegate : public PlanRowDelegate {
 public:
  ShareDelegate(const PlanTableModel* rows, QObject* parent) : PlanRowDelegate(parent), rows_(rows) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  const PlanTableModel* rows_;
};

}  // namespace turnpoint::views
