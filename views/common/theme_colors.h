// SPDX-License-Identifier: Apache-2.0
// The colour table, light and dark, for everything QPalette has no role for.
#pragma once

#include <QColor>
#include <QPalette>
#include <array>
#include <string>

namespace turnpoint::views {

struct ThemeColors {
  bool dark = false;
  QColor window, base, alternate, head, border, grid, axis, text, secondary, disabled;
  QColor accent, accent_background, no_fit_area, pinned, ok, warning, warning_background, error, error_background;
  std::array<QColor, 8> configuration;  ///< the eighth is "other"
  QColor configuration_text;
  std::array<QColor, 6> memory;   ///< in the order of MemoryPart
  std::array<QColor, 4> compute;  ///< forward, backward, update, recompute
  std::array<QColor, 7> network;  ///< all-reduce, all-gather, reduce-scatter, all-to-all, permute, offload, bubble
  std::array<QColor, 5> heat;     ///< cost, low to high
  /// What the stronger half of a ratio plan has: three steps below a half, a half, three above it; all on both halves.
  std::array<QColor, 8> ratio;

  /// The colour of a method's line or marker by its registry name (views/common/method_style.h).
  QColor method(const std::string& name) const;
};

/// Dark where the palette's window is darker than its text.
const ThemeColors& theme_colors(const QPalette& palette);
/// A whole palette of either theme, for --theme and for tests.
QPalette make_palette(bool dark);

}  // namespace turnpoint::views
