// SPDX-License-Identifier: Apache-2.0
// The tab about a ratio plan's devices: who has which part of the work, what another part would come to, and the plan
// with such parts for keeps.
#pragma once

#include <QWidget>

#include "core/plan/ratio_change.h"
#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"

class QLabel;
class QPushButton;
class QStackedWidget;

namespace turnpoint::views {

class DeviceChart;
class NoteLabel;

class DevicesView : public QWidget {
  Q_OBJECT
 public:
  explicit DevicesView(QWidget* parent = nullptr);

  /// As it was found; null: there is no plan of this kind.
  void set_plan(const RatioPlanPtr& plan, const ScenarioPtr& scenario);
  /// What a request for these moves came to; null: it could not be made, `why` says why.
  void set_changed(const RatioPlanPtr& plan, const RatioMoves& moves, const QString& why);
  void paint_to(QPainter& painter, QSize size) const;

  QWidget* tool_bar() const { return tool_bar_; }
  DeviceChart* chart() const { return chart_; }
  QPushButton* keep_button() const { return keep_; }
  QPushButton* reset_button() const { return reset_; }
  QString words() const;

 signals:
  /// The plan, as it was found, is wanted with these moves; set_changed() answers.
  void change_requested(const RatioPlanPtr& plan, const RatioMoves& moves);
  void keep_requested(const RatioMoves& moves);  ///< what is on show is wanted as a plan of its own
  void put_back();  ///< the plan is on show as it was found; what was requested is not wanted any more

 private:
  void show_plan();

  QWidget* tool_bar_;
  NoteLabel* words_;
  QPushButton *keep_, *reset_;
  QStackedWidget* pages_;
  QLabel* empty_;
  DeviceChart* chart_;
  RatioPlanPtr found_, shown_;           ///< of the method; on show
  RatioMoves base_moves_, shown_moves_;  ///< from what was found to where a movement begins; to what is on show
  ScenarioPtr scenario_;
  QString why_;
};

}  // namespace turnpoint::views
