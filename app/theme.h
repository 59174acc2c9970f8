// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the desktop has it: of the whole program, while it runs.
#pragma once

#include <QString>
#include <optional>

namespace turnpoint::app {

enum class Theme { system, light, dark };

/// Takes the desktop's style and palette again, or those of the mock-up in either theme. Needs the QApplication; the
/// first call is what "the desktop's" is from then on.
void apply_theme(Theme theme);
/// What was applied last.
Theme applied_theme();

/// "system", "light", "dark": in settings.
QString theme_key(Theme theme);
std::optional<Theme> theme_of_key(const QString& key);

}  // namespace turnpoint::app
