// SPDX-License-Identifier: Apache-2.0
#include "views/graph/device_palette.h"

namespace turnpoint::views {

namespace {

/// Neighbouring devices far apart in hue: they meet most often in a strip.
constexpr QRgb kLight[] = {0x77AADD, 0xEE8866, 0x44BB99, 0xEEDD88, 0xFFAABB, 0xBBCC33, 0x99DDFF, 0xAA88CC, 0xC98F5A,
                           0x4F86C6, 0x88C057, 0xDD6FA0, 0xF2B84B, 0x3FA9B5, 0xB7A48A, 0x8C9BE0, 0xD5D8DB};
constexpr QRgb kDark[] = {0x5F92C4, 0xD2775A, 0x36A083, 0xCDBE74, 0xDE8A9C, 0xA3B22E, 0x8CC8E8, 0x9A7BBD, 0xB58050,
                          0x5A8FD0, 0x79AE4C, 0xC8628F, 0xD9A441, 0x45A5B0, 0xA39279, 0x8190D2, 0x7B838B};
static_assert(std::size(kLight) == kDeviceColors && std::size(kDark) == kDeviceColors);

std::array<QColor, kDeviceColors> make(const QRgb (&rgb)[kDeviceColors]) {
  std::array<QColor, kDeviceColors> colors;
  for (std::size_t i = 0; i < kDeviceColors; ++i) colors[i] = QColor::fromRgb(0xff000000u | rgb[i]);
  return colors;
}

}  // namespace

const std::array<QColor, kDeviceColors>& device_palette(const ThemeColors& theme) {
  static const auto light = make(kLight), dark = make(kDark);
  return theme.dark ? dark : light;
}

}  // namespace turnpoint::views
