// SPDX-License-Identifier: Apache-2.0
#include "views/common/table_setup.h"
#include "views/common/elided_label.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QShortcut>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>

namespace turnpoint::views {

TableBar make_table_bar(const TableBarWords& words, QWidget* parent) {
  TableBar bar;
  bar.widget = new QWidget(parent);
  bar.widget->setObjectName(words.name);
  auto* row = new QHBoxLayout(bar.widget);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(10);
  if (!words.filter_placeholder.isEmpty()) {
    bar.filter = new QLineEdit(bar.widget);
    bar.filter->setPlaceholderText(words.filter_placeholder);
    bar.filter->setClearButtonEnabled(true);
    bar.filter->setAccessibleName(words.filter_purpose);
    bar.filter->setMinimumWidth(120);
    bar.filter->setMaximumWidth(260);
    row->addWidget(bar.filter, 1);
  }
  bar.summary = new Elided<QLabel>(bar.widget);
  bar.summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  bar.copy = new QToolButton(bar.widget);
  bar.copy->setText(words.copy);
  bar.copy->setToolTip(words.copy_tip);
  row->addWidget(bar.summary, 2);
  row->addWidget(bar.copy);
  return bar;
}

void connect_copy(const TableBar& bar, QWidget* view, const std::function<void()>& copy) {
  QObject::connect(bar.copy, &QToolButton::clicked, view, copy);
  auto* keys = new QShortcut(QKeySequence::Copy, view);
  keys->setContext(Qt::WidgetWithChildrenShortcut);
  QObject::connect(keys, &QShortcut::activated, view, copy);
}

void set_up_table(QTreeView* table, const QString& accessible_name) {
  table->setFrameShape(QFrame::NoFrame);
  table->setUniformRowHeights(true);
  table->setAlternatingRowColors(true);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setAllColumnsShowFocus(true);
  table->setAccessibleName(accessible_name);
  table->header()->setStretchLastSection(true);
  table->header()->setSectionsMovable(false);
}

void stack_table(QWidget* view, const TableBar& bar, QTreeView* table, QLabel* empty) {
  auto* all = new QVBoxLayout(view);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(bar.widget);
  all->addWidget(table, 1);
  if (empty) all->addWidget(empty, 1);
}

QLabel* make_empty_words(const QString& words, QWidget* parent) {
  auto* label = new QLabel(words, parent);
  label->setAlignment(Qt::AlignCenter);
  label->setWordWrap(true);
  label->setEnabled(false);
  return label;
}

}  // namespace turnpoint::views
