// SPDX-License-Identifier: Apache-2.0
// What an engine is run with, below the ways to run a plan: a launcher that starts its processes, also on other hosts,
// the code that makes the user's model, and the command that does the same on a cluster.
#pragma once

#include <QWidget>

class QLabel;
class QLineEdit;
class QTimer;
class QToolButton;

namespace turnpoint::views {

class EngineFields : public QWidget {
  Q_OBJECT
 public:
  explicit EngineFields(QWidget* parent = nullptr);

  /// What the engine takes. One that runs all devices of a machine in one process takes no launcher, and says so.
  void set_engine(const QString& name, bool one_process, bool takes_model);
  /// Lines for a terminal; empty: `why_none` says why there are none.
  void set_command(const QString& command, const QString& why_none);
  QString launcher() const;    ///< as typed; empty where the engine takes none
  QString model_code() const;  ///< "FILE.py:FUNCTION"; likewise

 signals:
  void changed();  ///< once typing rests, or ends: whoever listens looks at plans and files

 private:
  void choose_code();
  void tell();  ///< at once what has not been told yet

  QTimer* rest_;
  QLabel* one_process_;
  QWidget *launcher_part_, *code_part_;
  QLineEdit *launcher_, *code_;
  QToolButton* copy_;
  QString command_;
};

}  // namespace turnpoint::views
