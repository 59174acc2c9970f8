// SPDX-License-Identifier: Apache-2.0
// Asks the layout process for levels, one at a time, without ever blocking. The process is started when first needed,
// killed when what it works on is no longer wanted, and given five seconds a level; where it is missing, dies or is
// late our own layered layout stands in, with the reason.
#pragma once

#include <QHash>
#include <QObject>
#include <QProcess>
#include <QTimer>
#include <vector>

#include "views/graph/level_layout.h"

namespace turnpoint::views {

class LayoutService : public QObject {
  Q_OBJECT
 public:
  explicit LayoutService(QObject* parent = nullptr);
  ~LayoutService() override;

  void set_program(const QString& path);  ///< default: turnpoint-layout beside us, in ../bin or in the PATH
  void set_timeout(int milliseconds) { timeout_ms_ = milliseconds; }

  /// Replaces all that was wanted before; a running level that is not among them is killed. Levels that are known
  /// already cost nothing. `level_ready` follows for each of the others, `finished` when none is left.
  void want(std::vector<LevelRequest> levels);
  void cancel() { want({}); }
  LevelLayoutPtr find(const QByteArray& key) const { return cache_.value(key); }
  bool busy() const { return running_ || !queue_.empty(); }

  /// Why the last level was not laid out by Graphviz; empty if it was.
  const QString& trouble() const { return trouble_; }
  int processes_started() const { return processes_started_; }
  int levels_answered() const { return levels_answered_; }
  qint64 process_id() const { return process_ ? process_->processId() : 0; }

 signals:
  void level_ready();
  void finished();

 private:
  struct Level {
    QByteArray key;
    LevelRequest request;
  };
  QString program_;
  int timeout_ms_ = 5000, processes_started_ = 0, levels_answered_ = 0;
  QProcess* process_ = nullptr;
  QTimer timer_;
  std::vector<Level> queue_;
  Level current_;
  bool running_ = false, missing_ = false;
  QByteArray answer_;
  QString trouble_;
  QHash<QByteArray, LevelLayoutPtr> cache_;

  void advance();
  void start_process();
  void drop_process();
  void read_answer();
  void use_own(const QString& reason);
  void store(LevelLayout layout);
};

}  // namespace turnpoint::views
