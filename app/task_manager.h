// SPDX-License-Identifier: Apache-2.0
// Everything long-running. One purpose runs one task at a time and keeps only the newest waiting request; work happens
// on a std::jthread with a stop token, results come back on the interface thread.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"

namespace turnpoint::app {

enum class TaskOutcome {
  finished,
  cancelled,   ///< by the user or at the end of the program
  superseded,  ///< a newer request of the same purpose took its place
  failed,      ///< memory or threads ran out, as `failed` has said: its result is not there
};

/// What happens to a running task when a newer request of its purpose arrives; a waiting one is always replaced.
enum class Preempt {
  stop_running,   ///< the running task is asked to stop
  let_it_finish,  ///< a short pass goes on, so that a stream of requests cannot starve its own results
};

struct TaskInfo {
  quint64 id = 0;
  QString purpose, title, phase;
  double fraction = -1;  ///< negative: unknown; does not fall while a phase lasts or comes again
  qint64 elapsed_ms = 0;
  qint64 risen_ms = 0;  ///< of elapsed_ms, when `fraction` last changed
  bool waiting = false, stopping = false;
};

class TaskManager : public QObject {
  Q_OBJECT
 public:
  /// Called on the interface thread exactly once per task.
  using Done = std::function<void(TaskOutcome)>;
  /// Runs on a worker; leaves its result where Done finds it (a shared_ptr both hold).
  using Work = std::function<void(const RunContext&)>;

  explicit TaskManager(QObject* parent = nullptr);
  ~TaskManager() override;  ///< asks everything to stop and waits

  quint64 start(const QString& purpose, const QString& title, Work work, Done done,
                Preempt preempt = Preempt::stop_running);
  void cancel(quint64 id);
  void cancel_purpose(const QString& purpose);
  void cancel_all();

  std::vector<TaskInfo> tasks() const;  ///< newest first
  std::optional<TaskInfo> newest() const;
  bool busy() const { return !lanes_.empty(); }
  quint64 started() const { return last_id_; }

 signals:
  void changed();  ///< the list, or progress of a task (at most 20 times a second per task)
  void idle();     ///< the last task ended
  void failed(const Error& error, const QString& title);  ///< once per task of TaskOutcome::failed, before its Done

 private:
  struct Task;
  struct Lane {
    std::shared_ptr<Task> running, waiting;
  };

  void launch(Lane& lane, std::shared_ptr<Task> task);
  void start_thread(Task* raw);  ///< throws where the system starts no more
  void ended(const QString& purpose, quint64 id);

  std::map<QString, Lane> lanes_;
  quint64 last_id_ = 0;
  bool closing_ = false;
};

}  // namespace turnpoint::app
