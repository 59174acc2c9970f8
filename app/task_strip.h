// SPDX-License-Identifier: Apache-2.0
// The newest task in the status bar: name, progress, time, cancel; a click lists all.
#pragma once

#include <QTimer>
#include <QWidget>

class QLabel;
class QProgressBar;
class QToolButton;

namespace turnpoint::app {

class TaskManager;

class TaskStrip : public QWidget {
  Q_OBJECT
 public:
  explicit TaskStrip(TaskManager& tasks, QWidget* parent = nullptr);
  void show_list();
  QToolButton* cancel_button() const { return cancel_; }

 private:
  void refresh();

  TaskManager& tasks_;
  QToolButton* name_;
  QProgressBar* bar_;
  QLabel* time_;
  QToolButton* cancel_;
  QTimer tick_, patience_;
  quint64 shown_ = 0;  ///< the newest of the tasks that are not over in a moment
};

}  // namespace turnpoint::app
