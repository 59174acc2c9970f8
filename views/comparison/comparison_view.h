// SPDX-License-Identifier: Apache-2.0
// The methods of the chart side by side, as a table; picking a row picks its plan in every view.
#pragma once

#include <QJsonObject>
#include <QLabel>
#include <QPointer>
#include <QSortFilterProxyModel>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>
#include <array>

#include "views/common/selection_model.h"
#include "views/common/table_setup.h"
#include "views/comparison/comparison_model.h"

namespace turnpoint::views {

class ComparisonView : public QWidget {
  Q_OBJECT
 public:
  explicit ComparisonView(QWidget* parent = nullptr);

  void set_data(const ChartData& chart);
  void set_selection(SelectionModel* selection);

  QJsonObject save_state() const;  ///< sorting
  void restore_state(const QJsonObject& state);

  /// All rows with their head, tabs between columns.
  QString rows_as_text() const;
  QWidget* tool_bar() const { return bar_.widget; }
  QTreeView* table() const { return table_; }
  ComparisonModel* model() const { return model_; }
  QString summary() const { return bar_.summary->text(); }

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_tool_bar();
  void make_table();
  void show_selection();
  void pick_row();
  void update_summary();
  void fit_columns();
  int content_width(int column) const;
  void spread_columns();

  ComparisonModel* model_;
  QSortFilterProxyModel* sorted_;
  QTreeView* table_;
  QLabel* empty_;
  TableBar bar_;
  std::array<int, ComparisonModel::kColumns> least_width_{};    ///< heading and figures whole
  std::array<int, ComparisonModel::kColumns> content_width_{};  ///< figures whole, the heading elided
  std::array<int, ComparisonModel::kColumns> fitted_{};         ///< 0: not fitted yet
  QPointer<SelectionModel> selection_;
  QStringList names_;
  bool changing_selection_ = false;
};

}  // namespace turnpoint::views
