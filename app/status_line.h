// SPDX-License-Identifier: Apache-2.0
// The window's last line: what the curve is worth, its figures, the running task; and the chart's state above it.
#pragma once

#include <QObject>

class QLabel;
class QStatusBar;

namespace turnpoint::views {
class ChartHeader;
class MessageBar;
}  // namespace turnpoint::views

namespace turnpoint::app {

class ActionSet;
struct Workspace;

class StatusLine : public QObject {
  Q_OBJECT
 public:
  StatusLine(Workspace& work, const ActionSet& actions, const views::MessageBar& messages, views::ChartHeader& header,
             QStatusBar* bar);
  /// In the place of the figures: in the status bar's own way a tip would cover the verdict beside them.
  void show_tip(const QString& tip);

 private:
  void show();

  Workspace& work_;
  const ActionSet& actions_;
  const views::MessageBar& messages_;
  views::ChartHeader& header_;
  QStatusBar* bar_;
  QLabel *state_label_, *figures_label_, *change_label_, *seed_label_, *memory_label_, *message_label_;
  QString figures_, tip_;
};

}  // namespace turnpoint::app
