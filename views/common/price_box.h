// SPDX-License-Identifier: Apache-2.0
// The price of a device for an hour looks the same wherever it can be typed.
#pragma once

class QDoubleSpinBox;

namespace turnpoint::views {

/// "$1.24 / h", two decimals, "no price" for 0; reports when the typing is done.
void set_up_price_box(QDoubleSpinBox& box);
/// The price in force; bold where the user typed it, plain where it is the hardware's.
void show_price(QDoubleSpinBox& box, double price_per_hour, bool typed);

}  // namespace turnpoint::views
