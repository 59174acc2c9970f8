// SPDX-License-Identifier: Apache-2.0
// Runs the built command line and takes what it says.
#pragma once

#include <QByteArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStringList>

namespace turnpoint::test {

inline constexpr int kDone = 0, kUsage = 2, kBadInput = 3, kInfeasible = 4, kInterrupted = 130;

struct Run {
  int code = -1;  ///< -1: it did not end by itself within five minutes
  QByteArray out, err;
  QJsonObject object() const { return QJsonDocument::fromJson(out).object(); }
};

inline Run run_program(const QString& program, const QStringList& arguments) {
  QProcess process;
  process.start(program, arguments);
  Run result;
  if (!process.waitForFinished(300000) || process.exitStatus() != QProcess::NormalExit) return result;
  result.code = process.exitCode();
  result.out = process.readAllStandardOutput();
  result.err = process.readAllStandardError();
  return result;
}

inline Run run(const QStringList& arguments) {
  return run_program(QStringLiteral(TURNPOINT_BINARY_DIR "/turnpoint-cli"), arguments);
}

}  // namespace turnpoint::test
