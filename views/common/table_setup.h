// SPDX-License-Identifier: Apache-2.0
// What all tables of the views have in common: a bar above with a filter, a summary and a button that copies, the table
// itself, and words in its place while it is empty.
#pragma once

#include <functional>

#include <QString>

class QLabel;
class QLineEdit;
class QToolButton;
class QTreeView;
class QWidget;

namespace turnpoint::views {

struct TableBarWords {
  QString name;                                ///< of the bar's object
  QString filter_placeholder, filter_purpose;  ///< empty: no filter
  QString copy, copy_tip;
};

struct TableBar {
  QWidget* widget = nullptr;
  QLineEdit* filter = nullptr;  ///< null: none was asked for
  QLabel* summary = nullptr;
  QToolButton* copy = nullptr;
};
TableBar make_table_bar(const TableBarWords& words, QWidget* parent);
/// Its button and the copy key of `view`, which holds bar and table.
void connect_copy(const TableBar& bar, QWidget* view, const std::function<void()>& copy);

/// Rows of one height in two tints, read only, the last column as wide as there is room.
void set_up_table(QTreeView* table, const QString& accessible_name);

/// Bar, table and, if there is one, the words that stand in the table's place, from top to bottom.
void stack_table(QWidget* view, const TableBar& bar, QTreeView* table, QLabel* empty = nullptr);
/// Grey words in the middle, for stack_table().
QLabel* make_empty_words(const QString& words, QWidget* parent);

}  // namespace turnpoint::views
