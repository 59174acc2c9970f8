// SPDX-License-Identifier: Apache-2.0
#include "views/common/price_box.h"

#include <QDoubleSpinBox>
#include <QObject>
#include <QSignalBlocker>

namespace turnpoint::views {

namespace {
constexpr double kMostPrice = 1e6;
}

void set_up_price_box(QDoubleSpinBox& box) {
  box.setRange(0, kMostPrice);
  box.setDecimals(2);
  box.setSingleStep(0.1);
  box.setPrefix(QStringLiteral("$"));
  box.setSuffix(QObject::tr(" / h"));
  box.setSpecialValueText(QObject::tr("no price"));
  box.setKeyboardTracking(false);
  box.setAccessibleName(QObject::tr("Price of one device for an hour"));
  box.setToolTip(QObject::tr("What one device costs for an hour; with it the cheapest count is marked"));
}

void show_price(QDoubleSpinBox& box, double price_per_hour, bool typed) {
  const QSignalBlocker quiet(&box);
  box.setValue(price_per_hour);
  QFont with = box.parentWidget() ? box.parentWidget()->font() : box.font();
  with.setBold(typed);
  box.setFont(with);
}

}  // namespace turnpoint::views
