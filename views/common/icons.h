// SPDX-License-Identifier: Apache-2.0
// Single-colour 16 px SVG icons of resources/icons, tinted from the palette at the moment they are painted.
#pragma once

#include <QIcon>
#include <QString>

namespace turnpoint::views {

/// `name` without folder and suffix. The icon follows later palette changes by itself.
QIcon themed_icon(const QString& name);

}  // namespace turnpoint::views
