// SPDX-License-Identifier: Apache-2.0
// What the window tells its user and asks for: messages over the chart, dialogs for files, which remember their folder.
#pragma once

#include <QObject>
#include <functional>

#include "core/base/expected.h"
#include "views/common/message_bar.h"

class QFileDialog;

namespace turnpoint::app {

class AppSettings;

class Voice : public QObject {
  Q_OBJECT
 public:
  /// All ways to open something replace one another: after a bad file a good one is the answer.
  static QString about_opening() { return QStringLiteral("opening"); }
  using Then = std::function<void(const QString& path)>;

  Voice(AppSettings& settings, views::MessageBar& bar, QWidget* window);

  views::MessageBar& bar() { return bar_; }
  void report(const Error& error, const QString& what_failed) { report_about(error, what_failed, what_failed); }
  /// `about`: what takes the message away once it succeeds (views::MessageBar::clear_errors).
  void report_about(const Error& error, const QString& what_failed, const QString& about);
  void note(const QString& what, const QString& where = {});
  /// What was written at `path`; else the error of one who wanted to.
  void tell_written(bool done, const QString& path, const QString& what_failed);

  void ask_open(const QString& title, const QString& filter, Then then);
  void ask_open_several(const QString& title, const QString& filter, std::function<void(const QStringList&)> then);
  void ask_save(const QString& title, const QString& suggestion, const QString& filter, Then then);

 signals:
  /// The user takes up what a message offers in the place of what failed.
  void open_instead(const QString& path);

 private:
  QFileDialog* dialog(const QString& title, const QString& filter);

  AppSettings& settings_;
  views::MessageBar& bar_;
  QWidget* window_;
};

/// "SVG files (*.svg)".
QString filter_of(const QString& suffix);

}  // namespace turnpoint::app
