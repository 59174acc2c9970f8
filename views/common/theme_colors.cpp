// SPDX-License-Identifier: Apache-2.0
#include "views/common/theme_colors.h"

#include "views/common/method_style.h"

namespace turnpoint::views {

namespace {

QColor hex(unsigned rgb) { return QColor::fromRgb(QRgb(0xff000000u | rgb)); }

ThemeColors make_light() {
  ThemeColors c;
  c.dark = false;
  c.window = hex(0xF2F3F4), c.base = hex(0xFFFFFF), c.alternate = hex(0xF7F8F9), c.head = hex(0xE9EBED);
  c.border = hex(0xCBD0D5), c.grid = hex(0xECEEF0), c.axis = hex(0x8A929A), c.text = hex(0x1D2125);
  c.secondary = hex(0x565E66), c.disabled = hex(0x666E76), c.accent = hex(0x1F5FA8),
  c.accent_background = hex(0xDCE8F6);
  c.no_fit_area = hex(0xF0F1F2), c.pinned = hex(0x9AA2AA), c.ok = hex(0x2B7A4B), c.warning = hex(0x9A5B00);
  c.warning_background = hex(0xFFF4DC), c.error = hex(0xB3261E), c.error_background = hex(0xFCE9E7);
  c.configuration = {hex(0x77AADD), hex(0xEE8866), hex(0x44BB99), hex(0xEEDD88),
                     hex(0xFFAABB), hex(0xBBCC33), hex(0x99DDFF), hex(0xD5D8DB)};
  c.configuration_text = hex(0x14181C);
  c.memory = {hex(0x4477AA), hex(0x66A3CC), hex(0x9CC9DF), hex(0xD9A441), hex(0xC4745A), hex(0xB9BFC5)};
  c.compute = {hex(0x3F6E9E), hex(0x6F9BC6), hex(0xA9C5E0), hex(0x6A7FB8)};
  c.network = {hex(0xC4661F), hex(0xDE9150), hex(0xEDB98A), hex(0xF4D8BE), hex(0xF4D8BE), hex(0x9A4A4A), hex(0xB4B9BF)};
  c.heat = {hex(0xF0DFB0), hex(0xEFC673), hex(0xE8A23F), hex(0xC96C1A), hex(0x86390A)};
  c.ratio = {hex(0x2B6C9E), hex(0x6FA5CC), hex(0xB5D3E7), hex(0xF5EFD3),
             hex(0xF4CB94), hex(0xE29A3B), hex(0xB0540F), hex(0xD5D8DB)};
  return c;
}

ThemeColors make_dark() {
  ThemeColors c;
  c.dark = true;
  c.window = hex(0x26292D), c.base = hex(0x1A1D20), c.alternate = hex(0x1F2226), c.head = hex(0x2E3237);
  c.border = hex(0x42484F), c.grid = hex(0x282C30), c.axis = hex(0x7C858D), c.text = hex(0xE4E7EA);
  c.secondary = hex(0xA9B1B9), c.disabled = hex(0x939CA4), c.accent = hex(0x6FAAE8),
  c.accent_background = hex(0x2B425B);
  c.no_fit_area = hex(0x222529), c.pinned = hex(0x79828A), c.ok = hex(0x6CC28C), c.warning = hex(0xE9B44C);
  c.warning_background = hex(0x3A3120), c.error = hex(0xF2857C), c.error_background = hex(0x402624);
  c.configuration = {hex(0x5F92C4), hex(0xD2775A), hex(0x36A083), hex(0xCDBE74),
                     hex(0xDE8A9C), hex(0xA3B22E), hex(0x8CC8E8), hex(0xC9CDD1)};
  c.configuration_text = hex(0x101316);
  c.memory = {hex(0x5C8FC2), hex(0x86B6DA), hex(0xB7D8E8), hex(0xDDB058), hex(0xD48A70), hex(0x7B838B)};
  c.compute = {hex(0x4F82B5), hex(0x7FA9D3), hex(0xB4CDE6), hex(0x8A9AD0)};
  c.network = {hex(0xC9712E), hex(0xDF9A5E), hex(0xEABF95), hex(0xF1DAC3), hex(0xF1DAC3), hex(0xB86A6A), hex(0x6F767E)};
  c.heat = {hex(0x5A452B), hex(0x80551F), hex(0xA8671F), hex(0xE09B40), hex(0xFBDB98)};
  c.ratio = {hex(0x9CCFF6), hex(0x5C93C4), hex(0x345878), hex(0x4D4936),
             hex(0x7A5420), hex(0xC4842F), hex(0xF8CE83), hex(0x6B727A)};
  return c;
}

}  // namespace

QColor ThemeColors::method(const std::string& name) const {
  const MethodStyle* style = find_method_style(name);
  return !style ? axis : dark ? style->dark : style->light;
}

const ThemeColors& theme_colors(const QPalette& palette) {
  static const ThemeColors light = make_light(), dark = make_dark();
  return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness() ? dark : light;
}

QPalette make_palette(bool dark) {
  QPalette p;
  const ThemeColors c = dark ? make_dark() : make_light();
  p.setColor(QPalette::Window, c.window);
  p.setColor(QPalette::WindowText, c.text);
  p.setColor(QPalette::Base, c.base);
  p.setColor(QPalette::AlternateBase, c.alternate);
  p.setColor(QPalette::Text, c.text);
  p.setColor(QPalette::Button, c.window);
  p.setColor(QPalette::ButtonText, c.text);
  p.setColor(QPalette::ToolTipBase, c.base);
  p.setColor(QPalette::ToolTipText, c.text);
  p.setColor(QPalette::PlaceholderText, c.disabled);
  p.setColor(QPalette::Highlight, c.accent);
  p.setColor(QPalette::HighlightedText, dark ? c.base : hex(0xFFFFFF));
  p.setColor(QPalette::Link, c.accent);
  p.setColor(QPalette::Light, dark ? c.head : hex(0xFFFFFF));
  p.setColor(QPalette::Midlight, c.head);
  p.setColor(QPalette::Mid, c.border);
  p.setColor(QPalette::Dark, c.axis);
  p.setColor(QPalette::Shadow, hex(0x000000));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, c.disabled);
  return p;
}

}  // namespace turnpoint::views
