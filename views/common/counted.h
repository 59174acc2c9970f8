// SPDX-License-Identifier: Apache-2.0
// A number of things in words: 1 task, 2 tasks.
#pragma once

#include "views/common/format.h"

namespace turnpoint::views {

/// `one` for exactly one, else `many` with the number in place of %1.
inline QString counted(double number, const QString& one, const QString& many) {
  return number == 1 ? one : many.arg(grouped_number(number, 0));
}

}  // namespace turnpoint::views
