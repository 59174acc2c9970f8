// SPDX-License-Identifier: Apache-2.0
// A method's parameters as boxes, over the window until it is used or left: a variant of the method with what is
// chosen.
#pragma once

#include <QFrame>
#include <functional>
#include <span>
#include <vector>

#include "core/base/options.h"

class QLabel;
class QPushButton;

namespace turnpoint::views {

class MethodSettings : public QFrame {
  Q_OBJECT
 public:
  /// `parameters`: what the boxes show at first, text as behind a method's name. `options` must outlive it. `changes`:
  /// a variant is changed, none is added. Parameters that no option is about stay as they are.
  MethodSettings(const QString& title, std::span<const OptionRecord> options, const QString& parameters, bool changes,
                 QWidget* parent);

  QString parameters() const;

 signals:
  void accepted(const QString& parameters);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QWidget* make_editor(const OptionRecord& option, double value, std::size_t index);
  void show_text();
  void accept();

  std::span<const OptionRecord> options_;
  std::vector<double> values_;
  QString others_;  ///< parameters without a box
  QLabel* text_;
  QPushButton* add_;
};

}  // namespace turnpoint::views
