// SPDX-License-Identifier: Apache-2.0
// How large the window is when somebody starts it: no larger than the screen, frame and all.
#pragma once

#include <QMargins>
#include <QRect>
#include <QSize>

class QWidget;

namespace turnpoint::app {

/// Where a window belongs that is at `wanted` without its frame: inside `available` with it, as large as it can be.
/// All in device-independent pixels.
QRect fitted_window(const QRect& wanted, const QRect& available, const QMargins& frame);

/// Before the first show. `asked`, if it is a size, is taken as it is and ends a maximised state that was restored;
/// else the window keeps the size it has as far as its screen has room for that. Once the frame is there, whose width
/// nobody knows before, the size is checked again.
void place_first_window(QWidget& window, QSize asked);

}  // namespace turnpoint::app
