// SPDX-License-Identifier: Apache-2.0
// One what-if parameter: label, absolute value, slider, factor box, reset.
#pragma once

#include <QWidget>

#include "views/scenario/factor_box.h"

class QLabel;
class QToolButton;

namespace turnpoint::views {

class WhatIfSlider;

class SliderRow : public QWidget {
  Q_OBJECT
 public:
  SliderRow(const QString& key, const QString& label, FactorQuantity quantity, QWidget* parent = nullptr);

  const QString& key() const { return key_; }
  void set_range(double minimum, double maximum);
  /// The scenario's value: factor, and the absolute value at x1.
  void set_value(double factor, double baseline);
  /// Not applicable here ("1 device per node"); empty enables the row.
  void set_disabled_reason(const QString& reason);
  WhatIfSlider* slider() const { return slider_; }
  FactorBox* box() const { return box_; }

 signals:
  /// `gesture` is equal for all moves of one drag and different between drags.
  void factor_edited(const QString& key, double factor, quint64 gesture);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_value();
  void edit(double factor);

  QString key_;
  FactorQuantity quantity_;
  double factor_ = 1, baseline_ = 0;
  quint64 gesture_ = 0;
  QString reason_;
  QLabel *label_, *absolute_;
  WhatIfSlider* slider_;
  FactorBox* box_;
  QToolButton* reset_;
};

}  // namespace turnpoint::views
