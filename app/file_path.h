// SPDX-License-Identifier: Apache-2.0
// A path as Qt's dialogs name it, for the core.
#pragma once

#include <QString>
#include <filesystem>

namespace turnpoint::app {

inline std::filesystem::path to_path(const QString& path) { return {path.toStdU16String()}; }

}  // namespace turnpoint::app
