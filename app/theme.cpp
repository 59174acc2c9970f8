// SPDX-License-Identifier: Apache-2.0
#include "app/theme.h"

#include <QApplication>
#include <QStyle>

#include "views/common/theme_colors.h"

namespace turnpoint::app {

namespace {
Theme applied = Theme::system;
constexpr const char* kThemeKeys[] = {"system", "light", "dark"};
}  // namespace

void apply_theme(Theme theme) {
  static const QString desktops_style = QApplication::style()->objectName();
  applied = theme;
  QApplication::setStyle(theme == Theme::system ? desktops_style : QStringLiteral("Fusion"));
  QApplication::setPalette(theme == Theme::system ? QPalette() : views::make_palette(theme == Theme::dark));
}

Theme applied_theme() { return applied; }

QString theme_key(Theme theme) { return QString::fromLatin1(kThemeKeys[static_cast<int>(theme)]); }

std::optional<Theme> theme_of_key(const QString& key) {
  for (const Theme theme : {Theme::system, Theme::light, Theme::dark})
    if (key == theme_key(theme)) return theme;
  return std::nullopt;
}

}  // namespace turnpoint::app
