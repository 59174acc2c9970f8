// SPDX-License-Identifier: Apache-2.0
// The engines that plans are exported to, as packaging/engines installs them. They are no part of the build; tests that
// run one skip where it is absent, saying so.
#pragma once

#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
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

struct EngineRun {
  int code = -1;
  QByteArray out, err;
  QJsonObject json() const { return QJsonDocument::fromJson(out).object(); }
};

inline EngineRun run_engine(const QString& python, const QStringList& arguments) {
  QProcess process;
  process.start(python, arguments);
  if (!process.waitForFinished(500000)) {
    process.kill();
    process.waitForFinished();
  }
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, process.readAllStandardOutput(),
          process.readAllStandardError()};
}

}  // namespace turnpoint::test

#define REQUIRE_ENGINE(python, engine)                        \
  const auto python = turnpoint::test::engine_python(engine); \
  if (python.isEmpty()) QSKIP(engine " is absent: 'packaging/engines " engine "' makes this test run")
