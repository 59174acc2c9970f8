// SPDX-License-Identifier: Apache-2.0
// Where packaging/engines has made the environments in which engines run what is exported for them.
#pragma once

#include <QDir>
#include <QFileInfo>
#include <QString>

namespace turnpoint::test {

/// The Python of an engine's environment; empty: there is none, or it was not finished.
inline QString engine_python(const QString& engine) {
  QString folder = qEnvironmentVariable("TURNPOINT_ENGINES");
  if (folder.isEmpty())
    folder = qEnvironmentVariable("XDG_CACHE_HOME", QDir::homePath() + "/.cache") + "/turnpoint/engines";
  folder += "/" + engine;
  return QFileInfo::exists(folder + "/packages") ? folder + "/bin/python" : QString();
}

}  // namespace turnpoint::test
