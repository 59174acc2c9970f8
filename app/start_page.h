// SPDX-License-Identifier: Apache-2.0
// The centre while no model is open: open, recent files, samples.
#pragma once

#include <QWidget>

#include "app/actions.h"

class QCheckBox;
class QVBoxLayout;

namespace turnpoint::app {

/// A model on a machine that can be opened without asking.
struct Sample {
  const char* title;
  const char* model;  ///< specification
  const char* hardware;
};
/// The first one is what the first start opens.
std::span<const Sample> samples();

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(const ActionSet& actions, QWidget* parent = nullptr);
  static QString title_of(const Sample& sample);  ///< "GPT-2 on 2 x 8 V100"
  void set_recent(const QStringList& paths);
  void set_opens_sample(bool on);
  /// The uppermost of the page that something else hides: its buttons begin below.
  void keep_clear(int top);

 signals:
  void path_chosen(const QString& path);
  void sample_chosen(int index);
  void study_chosen(int index);
  void opens_sample_changed(bool on);

 private:
  QVBoxLayout* recent_;
  QCheckBox* opens_sample_;
};

}  // namespace turnpoint::app
