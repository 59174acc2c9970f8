// SPDX-License-Identifier: Apache-2.0
// What each device holds when: one device large, all of them small beside it.
#pragma once

#include <QJsonObject>
#include <QPointer>
#include <QString>
#include <QWidget>
#include <memory>

#include "core/simulation/schedule.h"
#include "views/time/time_zoom.h"

class QPainter;
class QToolButton;

namespace turnpoint::views {

class DeviceStrip;
class MemoryChart;
class MemorySummary;
class NoteLabel;
class ToggleButton;

/// Shows the schedule that set_schedule names. The device on show is the selection's, or the fullest one while none is
/// picked.
class MemoryView : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryView(QWidget* parent = nullptr, TimeZoomPtr zoom = std::make_shared<TimeZoom>());

  /// What drawing needs beside the schedule itself; may be made on any thread. Null of null.
  static std::shared_ptr<const MemorySummary> prepare(SchedulePtr schedule);

  void set_selection(SelectionModel* selection);
  /// Null: the message in its place. Prepares on this thread; a large schedule is better given to set_prepared.
  void set_schedule(SchedulePtr schedule);
  void set_prepared(std::shared_ptr<const MemorySummary> summary);
  /// Why there is no schedule to show, or what it is waiting for. Beside a schedule it stands in the tool bar.
  void set_message(const QString& message);

  QJsonObject save_state() const;  ///< device strip shown, scale
  void restore_state(const QJsonObject& state);

  /// The picture as it is on show, for export.
  void paint_to(QPainter& painter, QSize size);

  /// Hand this to QDockWidget::setTitleBarWidget, or leave it on top of the view.
  QWidget* tool_bar() const { return tool_bar_; }
  MemoryChart* chart() const { return chart_; }
  DeviceStrip* strip() const { return strip_; }
  ToggleButton* scale_button() const { return scale_button_; }
  QString words() const;

 signals:
  void export_requested(const QString& suffix);  ///< "png", "svg": the app asks for a file and calls paint_to

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void make_tool_bar();
  void arrange();
  void show_device();
  void update_words();

  QPointer<SelectionModel> selection_;
  std::shared_ptr<const MemorySummary> summary_;
  QString message_;
  QWidget* tool_bar_;
  MemoryChart* chart_;
  DeviceStrip* strip_;
  ToggleButton *strip_button_, *scale_button_;
  NoteLabel* words_;
  QToolButton *fit_button_, *export_button_;
};

}  // namespace turnpoint::views
