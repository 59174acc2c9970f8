// SPDX-License-Identifier: Apache-2.0
// The tab about a ratio plan's devices: who has which part of the work, and what another part would come to.
#pragma once

#include <QWidget>

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
  /// What the last request came to; null: it could not be made, `why` says why.
  void set_changed(const RatioPlanPtr& plan, const QString& why);
  void paint_to(QPainter& painter, QSize size) const;

  QWidget* tool_bar() const { return tool_bar_; }
  DeviceChart* chart() const { return chart_; }
  QPushButton* reset_button() const { return reset_; }
  QString words() const;

 signals:
  /// The plan with another ratio at one of its cuts is wanted; set_changed() answers.
  void change_requested(const RatioPlanPtr& plan, std::uint32_t cut, double ratio);
  void put_back();  ///< the plan is on show as it was found; what was requested is not wanted any more

 private:
  void show_plan();

  QWidget* tool_bar_;
  NoteLabel* words_;
  QPushButton* reset_;
  QStackedWidget* pages_;
  QLabel* empty_;
  DeviceChart* chart_;
  RatioPlanPtr found_, base_, shown_;  ///< of the method; that a movement begins with; on show
  ScenarioPtr scenario_;
  QString why_;
};

}  // namespace turnpoint::views
