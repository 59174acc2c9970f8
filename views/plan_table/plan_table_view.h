// SPDX-License-Identifier: Apache-2.0
// The plan as a table: every operator with its configuration and costs; filter, sort, fold, copy.
#pragma once

#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QSortFilterProxyModel>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>
#include <array>
#include <memory>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "views/common/configuration_colors.h"
#include "views/common/selection_model.h"
#include "views/common/table_setup.h"
#include "views/plan_table/plan_table_model.h"

namespace turnpoint::views {

class PlanTableView : public QWidget {
  Q_OBJECT
 public:
  explicit PlanTableView(QWidget* parent = nullptr);

  void set_model(ModelPtr model);
  /// What stands in the place of rows while there is no model.
  void set_empty_text(const QString& text);
  /// Null: names and kinds only. A plan whose scenario holds another model brings that model along.
  void set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario);
  void set_selection(SelectionModel* selection);
  /// One set of colours for several views; views with the same selection share theirs by themselves.
  void share_colors(std::shared_ptr<ConfigurationColors> colors);

  /// The rows that can be seen, head included, scaled down where they do not fit.
  void paint_to(QPainter& painter, QSize size);
  QJsonObject save_state() const;  ///< open rows, sorting, column widths
  void restore_state(const QJsonObject& state);

  /// Picked rows (all that can be seen where none is) as text: tabs between columns, one line per row, head included.
  QString rows_as_text() const;
  void copy_rows() const;

  QWidget* tool_bar() const { return bar_.widget; }
  QTreeView* tree() const { return tree_; }
  QLineEdit* filter_field() const { return bar_.filter; }
  PlanTableModel* source_model() const { return rows_; }
  QString summary() const { return bar_.summary->text(); }

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  ModelPtr model_;
  QString empty_text_ = tr("Open a model to see its plan.");
  std::shared_ptr<const Hierarchy> hierarchy_;
  std::shared_ptr<const Plan> plan_;
  ScenarioPtr scenario_;
  PlanFiguresPtr figures_;
  std::shared_ptr<ConfigurationColors> colors_ = std::make_shared<ConfigurationColors>();
  QPointer<SelectionModel> selection_;
  bool changing_selection_ = false;
  std::array<int, PlanTableModel::kColumns> least_width_{}, wished_width_{}, full_width_{};
  bool columns_measured_ = false, columns_are_the_users_ = false, fitting_columns_ = false;
  QStringList waiting_keys_;  ///< of a restored state whose model has not come yet

  PlanTableModel* rows_;
  QSortFilterProxyModel* sorted_;
  QTreeView* tree_;
  TableBar bar_;

  void make_tool_bar();
  void make_tree();
  void measure_columns();
  void fit_columns();
  void tint_picked_rows();
  void update_rows();
  void update_summary();
  void show_selection();
  void pick_selection();
  std::vector<QModelIndex> visible_rows() const;  ///< of the proxy, in order
  QStringList expanded_keys() const;
  void expand_keys(const QStringList& keys);
};

}  // namespace turnpoint::views
