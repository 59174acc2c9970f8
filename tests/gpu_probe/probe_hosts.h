// SPDX-License-Identifier: Apache-2.0
// The real turnpoint-probe as several processes that stand for hosts.
#pragma once

#include <unistd.h>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTcpServer>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <memory>

#include "core/hardware/probe_client.h"

namespace turnpoint::test {

inline const QString kProbe = TURNPOINT_BINARY_DIR "/turnpoint-probe";

inline ProbeJob small_job(int ranks) {
  ProbeJob job;
  job.backend = ProbeBackend::cpu;
  job.ranks = ranks;
  job.item_s = 0.005;
  job.budget_s = 60;
  ProbeOperator op;
  op.kind = "softmax";
  op.dims = {16, 64};
  ProbeCall call;
  call.kind = CallKind::softmax;
  call.size = {16, 64};
  op.calls = {call};
  job.operators = {op};
  for (int size = 2; size <= ranks; ++size)
    if (ranks % size == 0)
      for (const auto kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                              Collective::all_to_all, Collective::broadcast, Collective::send})
        job.collectives.push_back({kind, size, 4096});
  return job;
}

/// Measures for half a minute unless something stops it.
inline ProbeJob endless_job(int ranks) {
  ProbeJob job = small_job(ranks);
  job.item_s = 30;
  job.operators.clear();
  job.collectives = {{Collective::all_reduce, ranks, 1 << 20}};
  return job;
}

inline QJsonObject object(const QByteArray& line) { return QJsonDocument::fromJson(line).object(); }

/// A process of a run. They are ended with the test.
class Host {
 public:
  Host(int rank, int size, const QString& meeting, const QStringList& more = {}) {
    QStringList options{"--job",        "-",    "--rank", QString::number(rank), "--size", QString::number(size),
                        "--rendezvous", meeting};
    if (!more.contains("--token"))
      options << "--token"
              << "word";
    if (!more.contains("--node"))
      options << "--node"
              << "host" + QString::number(rank);
    process.setProgram(kProbe);
    process.setArguments(options + more);
  }
  ~Host() {
    process.kill();
    process.waitForFinished(5000);
  }
  void start(const std::string& job = {}) {
    process.start();
    process.write(job.c_str(), static_cast<qint64>(job.size()));
    process.closeWriteChannel();
  }
  bool finished(int limit = 120000) { return process.state() == QProcess::NotRunning || process.waitForFinished(limit); }
  QList<QJsonObject> lines(const QString& type = {}) {
    said += process.readAllStandardOutput();
    QList<QJsonObject> list;
    for (const auto& line : said.split('\n'))
      if (const auto message = object(line); !line.isEmpty() && (type.isEmpty() || message["type"] == type))
        list.append(message);
    return list;
  }
  /// The one error, or what is wrong about there being none or several.
  QString error() {
    const auto errors = lines("error");
    if (errors.size() != 1) return QString("%1 errors: %2").arg(errors.size()).arg(QString(said.right(500)));
    return errors[0]["what"].toString();
  }
  QString complaint() { return complaints += process.readAllStandardError(); }
  bool wait_for(const QByteArray& words, int limit = 120000) {
    for (QElapsedTimer timer = started(); timer.elapsed() < limit && !said.contains(words);) {
      process.waitForReadyRead(100);
      said += process.readAllStandardOutput();
    }
    return said.contains(words);
  }
  static QElapsedTimer started() {
    QElapsedTimer timer;
    timer.start();
    return timer;
  }
  /// The ranks that it has started.
  std::vector<int> ranks() const {
    std::vector<int> list;
    QFile file(QString("/proc/%1/task/%1/children").arg(process.processId()));
    if (file.open(QIODevice::ReadOnly))
      for (const auto& word : file.readAll().split(' '))
        if (!word.trimmed().isEmpty()) list.push_back(word.toInt());
    return list;
  }

  QProcess process;
  QByteArray said;
  QString complaints;
};

inline bool is_gone(int pid) {
  QFile status(QString("/proc/%1/stat").arg(pid));
  return !status.open(QIODevice::ReadOnly) || status.readAll().contains(") Z");
}

/// A place that no other run has. Of this machine only, unless a port is asked for.
inline QString meeting() {
  static int count = 0;
  return QString("local:hosts-test-%1-%2").arg(getpid()).arg(++count);
}
inline QString free_port() {
  QTcpServer server;
  server.listen(QHostAddress::LocalHost);
  return QString("127.0.0.1:%1").arg(server.serverPort());
}

using Hosts = std::vector<std::unique_ptr<Host>>;
inline Hosts hosts(int count, const QString& meeting, const QStringList& more = {}) {
  Hosts list;
  for (int rank = 0; rank < count; ++rank) list.push_back(std::make_unique<Host>(rank, count, meeting, more));
  return list;
}
inline void start(Hosts& list, const std::string& job) {
  for (auto& host : list) host->start(host == list.front() ? job : std::string());
}
/// All have ended, and none has left anybody behind.
inline bool all_end(Hosts& list, const std::vector<int>& ranks = {}, int limit = 120000) {
  QElapsedTimer timer = Host::started();
  for (auto& host : list)
    if (!host->finished(std::max(1, limit - static_cast<int>(timer.elapsed())))) return false;
  bool gone = false;
  while (!gone && timer.elapsed() < limit) {
    gone = std::all_of(ranks.begin(), ranks.end(), is_gone);
    if (!gone) QTest::qWait(20);
  }
  return gone;
}

/// Starts a probe `count` times, as mpirun would; hosts are named after `per_host` neighbours.
inline std::vector<std::string> launcher(const QTemporaryDir& folder, int count, int per_host = 1) {
  const QString path = folder.filePath("launcher");
  QFile file(path);
  if (file.open(QIODevice::WriteOnly))
    file.write(
        "#!/bin/sh\nn=$1 per=$2 at=$3; shift 3; r=1\n"
        "while [ $r -lt $n ]; do\n"
        "  \"$@\" --rank $r --size $n --rendezvous $at --token w --node h$((r / per)) </dev/null &\n"
        "  r=$((r + 1))\ndone\n"
        "exec \"$@\" --rank 0 --size $n --rendezvous $at --token w --node h0\n");
  return {"sh", path.toStdString(), std::to_string(count), std::to_string(per_host), meeting().toStdString()};
}

}  // namespace turnpoint::test
