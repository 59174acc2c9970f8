// SPDX-License-Identifier: Apache-2.0
#include "app/window_size.h"

#include <QScreen>
#include <QStyle>
#include <QTimer>
#include <QWidget>
#include <algorithm>

namespace turnpoint::app {

namespace {

/// Window managers put the frame around a window some time after it was shown.
constexpr int kFrameAfter_ms = 400;

bool fills_screen(const QWidget& window) { return window.isMaximized() || window.isFullScreen(); }

void fit(QWidget& window, const QMargins& frame) {
  const QRect now = window.geometry(), fitted = fitted_window(now, window.screen()->availableGeometry(), frame);
  if (fitted == now) return;
  // Where it is to stand is the window manager's business, unless part of it would be out of sight.
  if (fitted.topLeft() == now.topLeft())
    window.resize(fitted.size());
  else
    window.setGeometry(fitted);
}

}  // namespace

QRect fitted_window(const QRect& wanted, const QRect& available, const QMargins& frame) {
  const QRect room = available.marginsRemoved(frame);
  const QSize size = wanted.size().boundedTo(room.size());
  return {QPoint(std::clamp(wanted.left(), room.left(), room.left() + room.width() - size.width()),
                 std::clamp(wanted.top(), room.top(), room.top() + room.height() - size.height())),
          size};
}

void place_first_window(QWidget& window, QSize asked) {
  if (asked.isValid()) {
    window.setWindowState(window.windowState() & ~(Qt::WindowMaximized | Qt::WindowFullScreen));
    window.resize(asked);
    return;
  }
  if (fills_screen(window)) return;
  const int title = window.style()->pixelMetric(QStyle::PM_TitleBarHeight), side = 4;
  // Only the size: before it is shown, a window that nobody has placed yet says that it stands in the corner.
  const QRect screen = window.screen()->availableGeometry();
  window.resize(
      fitted_window(QRect(screen.topLeft(), window.size()), screen, QMargins(side, title, side, side)).size());
  QTimer::singleShot(kFrameAfter_ms, &window, [&window] {
    if (!window.isVisible() || fills_screen(window)) return;
    const QRect inner = window.geometry(), outer = window.frameGeometry();
    fit(window, QMargins(inner.left() - outer.left(), inner.top() - outer.top(), outer.right() - inner.right(),
                         outer.bottom() - inner.bottom()));
  });
}

}  // namespace turnpoint::app
