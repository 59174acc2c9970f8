// SPDX-License-Identifier: Apache-2.0
// Who does what when: a lane per device for computing and a thinner one for sending, under one time axis.
#pragma once

#include <QJsonObject>
#include <QPointer>
#include <QString>
#include <QWidget>
#include <memory>

#include "core/simulation/schedule.h"
#include "views/time/time_zoom.h"

class QAction;
class QComboBox;
class QLabel;
class QLineEdit;
class QPainter;
class QToolButton;

namespace turnpoint::views {

class NoteLabel;
class TimelineCanvas;
class TimelineSummary;
class ToggleButton;

/// Shows the schedule that set_schedule names; picks, hover, device and time range are those of the selection, as long
/// as it follows the same schedule.
class TimelineView : public QWidget {
  Q_OBJECT
 public:
  explicit TimelineView(QWidget* parent = nullptr, TimeZoomPtr zoom = std::make_shared<TimeZoom>());

  /// What drawing needs beside the schedule itself; may be made on any thread. Null of null.
  static std::shared_ptr<const TimelineSummary> prepare(SchedulePtr schedule);

  void set_selection(SelectionModel* selection);
  /// Null: the message in its place. Prepares on this thread; a large schedule is better given to set_prepared.
  void set_schedule(SchedulePtr schedule);
  void set_prepared(std::shared_ptr<const TimelineSummary> summary);
  /// Why there is no schedule to show, or what it is waiting for. Beside a schedule it stands in the tool bar.
  void set_message(const QString& message);

  QJsonObject save_state() const;  ///< colouring, critical path
  void restore_state(const QJsonObject& state);

  /// The picture as it is on show, for export.
  void paint_to(QPainter& painter, QSize size);

  /// Hand this to QDockWidget::setTitleBarWidget, or leave it on top of the view.
  QWidget* tool_bar() const { return tool_bar_; }
  TimelineCanvas* canvas() const { return canvas_; }
  QComboBox* color_box() const { return color_box_; }
  ToggleButton* path_button() const { return path_button_; }
  QLineEdit* find_box() const { return find_box_; }
  QString words() const;
  /// "Schedule as trace" belongs to the window, which knows the plan; it is offered beside the pictures.
  void add_export(QAction* action);

 signals:
  void export_requested(const QString& suffix);  ///< "png", "svg": the app asks for a file and calls paint_to

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_tool_bar();
  void update_words();
  void find(int step);

  QPointer<SelectionModel> selection_;
  std::shared_ptr<const TimelineSummary> summary_;
  QString message_;
  QWidget* tool_bar_;
  TimelineCanvas* canvas_;
  bool color_chosen_ = false;  ///< by the user; else what the schedule is best told apart by
  QComboBox* color_box_;
  ToggleButton* path_button_;
  QLineEdit* find_box_;
  NoteLabel *found_, *words_;
  QToolButton *fit_button_, *export_button_;
};

}  // namespace turnpoint::views
