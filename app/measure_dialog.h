// SPDX-License-Identifier: Apache-2.0
// What "Measure this machine" asks before it starts.
#pragma once

#include <QDialog>

#include "core/probe/measure_machine.h"

class QCheckBox;
class QComboBox;
class QSpinBox;

namespace turnpoint::app {

class MeasureDialog : public QDialog {
  Q_OBJECT
 public:
  /// `model`: the open one, whose operators can be measured too; null where there is none with operators.
  explicit MeasureDialog(ModelPtr model, QWidget* parent = nullptr);

  MeasureOptions options() const;

  QComboBox* backend() const { return backend_; }
  QSpinBox* ranks() const { return ranks_; }
  QSpinBox* budget() const { return budget_; }
  QCheckBox* with_model() const { return with_model_; }
  QCheckBox* fresh() const { return fresh_; }

 private:
  void show_backend();

  ModelPtr model_;
  QComboBox* backend_;
  QSpinBox *ranks_, *budget_;
  QCheckBox *with_model_, *fresh_;
};

}  // namespace turnpoint::app
