// SPDX-License-Identifier: Apache-2.0
// The page about the hardware: what of it is measured, calibrated or modelled, the curve of one collective, and what
// was wrong with the files.
#pragma once

#include <QJsonObject>
#include <QWidget>

#include "views/hardware/hardware_content.h"

class QLabel;
class QPushButton;
class QSplitter;
class QStackedWidget;
class QTableView;
class QToolButton;
class QTreeView;

namespace turnpoint::views {

class CoverageModel;
class CurveChart;
class NoteLabel;
class RemarkModel;
class SectionHead;
class ToggleButton;
class TopologyView;

class HardwareView : public QWidget {
  Q_OBJECT
 public:
  explicit HardwareView(QWidget* parent = nullptr);

  /// Null: nothing is open. What is picked stays picked where the new content has it too.
  void set_content(HardwareContentPtr content);
  const HardwareContentPtr& content() const { return content_; }
  /// The cluster that could fill in what files without a device do not tell; empty: none is open.
  void set_base(const QString& title);

  /// This machine is being measured: the button waits.
  void set_measuring(bool on);

  QJsonObject save_state() const;  ///< what is picked, and what the chart shows
  void restore_state(const QJsonObject& state);

  QWidget* tool_bar() const { return tool_bar_; }
  QTreeView* tree() const { return tree_; }
  QTableView* remarks() const { return remark_table_; }
  CurveChart* chart() const { return chart_; }
  TopologyView* topology() const { return topology_; }  ///< in the chart's place where its row is picked
  ToggleButton* bandwidth_button() const { return bandwidth_button_; }
  QToolButton* measure_button() const { return measure_button_; }
  QPushButton* base_button() const { return base_button_; }
  QString explanation() const;  ///< the words below the list
  QString empty_text() const;   ///< the words in place of the list; empty where there is one

 signals:
  void open_logs_requested();
  void measure_requested();
  void base_requested();   ///< fill in from the open hardware
  void close_requested();  ///< show the open hardware again

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_tool_bar();
  QWidget* make_banner();
  QWidget* make_list();
  QWidget* make_remarks();
  void tint();
  void show_picked();
  void pick_row();
  void make_room_for_topology();
  void copy_remark(int row) const;

  HardwareContentPtr content_;
  QString wanted_;  ///< key of the picked row, with its heading
  QString base_;
  CoverageModel* rows_;
  RemarkModel* remark_rows_;
  QWidget *tool_bar_, *banner_, *remark_panel_;
  QLabel *title_, *summary_, *banner_text_;
  NoteLabel* explanation_;
  QToolButton *measure_button_, *open_button_;
  QPushButton *base_button_, *close_button_;
  ToggleButton* bandwidth_button_;
  QTreeView* tree_;
  QTableView* remark_table_;
  SectionHead* remark_head_;
  SectionHead* chart_head_;
  QStackedWidget* detail_;
  CurveChart* chart_;
  TopologyView* topology_;
  QSplitter *across_, *down_;
  QList<int> before_topology_;  ///< sizes of `across_` while the matrix has taken more; empty: it has not
};

}  // namespace turnpoint::views
