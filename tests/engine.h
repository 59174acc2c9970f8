// SPDX-License-Identifier: Apache-2.0
// The engines that plans are exported to, as packaging/engines installs them. They are no part of the build; tests that
// run one skip where it is absent, saying so.
#pragma once

#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace turnpoint::test {

/// The interpreter of an engine's environment in TURNPOINT_ENGINES; empty: there is none.
inline std::string engine_python(const std::string& engine) {
  const char* folder = std::getenv("TURNPOINT_ENGINES");
  if (!folder || !*folder) return {};
  const auto environment = std::filesystem::path(folder) / engine;
  std::error_code ec;
  return std::filesystem::exists(environment / "packages", ec) ? (environment / "bin" / "python").string()
                                                               : std::string();
}

struct EngineRun {
  int code = -1;
  QByteArray out, err;
  QJsonObject json() const { return QJsonDocument::fromJson(out).object(); }
};

inline EngineRun run_engine(const std::string& python, const QStringList& arguments) {
  QProcess process;
  process.start(QString::fromStdString(python), arguments);
  if (!process.waitForFinished(300000)) {
    process.kill();
    process.waitForFinished();
  }
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, process.readAllStandardOutput(),
          process.readAllStandardError()};
}

}  // namespace turnpoint::test

#define REQUIRE_ENGINE(python, engine)                        \
  const auto python = turnpoint::test::engine_python(engine); \
  if (python.empty())                                         \
  QSKIP(engine " is absent: 'packaging/engines " engine "' and TURNPOINT_ENGINES make this test run")
