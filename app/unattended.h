// SPDX-License-Identifier: Apache-2.0
// --screenshot and --export: waits until the window has settled, writes, quits.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

namespace turnpoint::app {

class MainWindow;

class Unattended : public QObject {
  Q_OBJECT
 public:
  Unattended(MainWindow& window, QString screenshot, QString plan, QObject* parent = nullptr);
  int exit_code() const { return exit_code_; }

 private:
  void look();
  void finish();

  MainWindow& window_;
  QString screenshot_, plan_;
  QTimer poll_;
  QElapsedTimer clock_, quiet_;
  int exit_code_ = 0;
};

}  // namespace turnpoint::app
