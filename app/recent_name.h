// SPDX-License-Identifier: Apache-2.0
// What a file is called in lists of recent files.
#pragma once

#include <QString>

namespace turnpoint::app {

/// The file's name, of a config.json that of what it configures: its folder, or what is said inside where the folder is
/// a hash or says nothing. "?as=FAMILY" behind a path is kept.
QString recent_name(const QString& path);
/// The path without what follows a question mark, where that alone is no file.
QString file_of(const QString& specification);

}  // namespace turnpoint::app
