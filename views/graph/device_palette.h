// SPDX-License-Identifier: Apache-2.0
// One colour per device, light and dark: sixteen of their own, all further ones share the last. Dark text reads on all.
#pragma once

#include <QColor>
#include <algorithm>
#include <array>
#include <cstdint>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

inline constexpr std::size_t kDeviceColors = 17;
inline constexpr std::size_t kOtherDevice = kDeviceColors - 1;

const std::array<QColor, kDeviceColors>& device_palette(const ThemeColors& theme);
/// kNone (placed nowhere) has the shared colour too.
inline std::size_t device_slot(std::uint32_t device) { return std::min<std::size_t>(device, kOtherDevice); }

}  // namespace turnpoint::views
