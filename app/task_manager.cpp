// SPDX-License-Identifier: Apache-2.0
#include "app/task_manager.h"

#include <QTimer>
#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif
#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>

namespace turnpoint::app {

namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(50);
constexpr char kWayOut[] = "a smaller model, fewer devices, or other programs closed; nothing else is lost";

/// Work steps back where the interface thread wants the processor; threads that it starts inherit this.
void yield_to_interface() {
#ifdef __linux__
  constexpr int kStepsBack = 5;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), getpriority(PRIO_PROCESS, 0) + kStepsBack);
#endif
}

}  // namespace

struct TaskManager::Task {
  quint64 id = 0;
  QString purpose, title;
  Work work;
  Done done;
  QElapsedTimer clock;
  bool superseded = false, stopping = false;

  std::mutex mutex;  ///< guards what the worker reports
  std::string phase;
  double fraction = -1;
  std::set<std::string> phases;  ///< met so far
  qint64 risen_ms = 0;           ///< when `fraction` last changed
  std::optional<Error> error;    ///< what ended the work, where it is no fault of its input
  std::chrono::steady_clock::time_point reported{};
  std::jthread thread;  ///< last: it is waited for before anything that it writes to goes
};

TaskManager::TaskManager(QObject* parent) : QObject(parent) {}

TaskManager::~TaskManager() {
  closing_ = true;
  for (auto& [purpose, lane] : lanes_)
    if (lane.running) lane.running->thread.request_stop();
  // jthread joins; events the workers posted to this object die with it.
  lanes_.clear();
}

quint64 TaskManager::start(const QString& purpose, const QString& title, Work work, Done done, Preempt preempt) {
  auto task = std::make_shared<Task>();
  task->id = ++last_id_;
  task->purpose = purpose;
  task->title = title;
  task->work = std::move(work);
  task->done = std::move(done);
  task->clock.start();
  Lane& lane = lanes_[purpose];
  if (!lane.running) {
    launch(lane, std::move(task));
  } else {
    if (lane.waiting && lane.waiting->done) {
      // Told later, not from inside start(): the caller is still busy with its own state.
      QTimer::singleShot(0, this, [older = lane.waiting->done] { older(TaskOutcome::superseded); });
    }
    lane.waiting = std::move(task);
    if (preempt == Preempt::stop_running) {
      lane.running->superseded = true;
      lane.running->thread.request_stop();
    }
  }
  emit changed();
  return last_id_;
}

void TaskManager::launch(Lane& lane, std::shared_ptr<Task> task) {
  lane.running = task;
  // The worker shares the task, but never touches the manager except by posting to it.
  Task* raw = task.get();
  try {
    start_thread(raw);
  } catch (const std::system_error& error) {
    raw->error = Error{ErrorCode::device, "no thread could be started: " + error.code().message(), {}, kWayOut};
    QTimer::singleShot(0, this, [this, purpose = raw->purpose, id = raw->id] { ended(purpose, id); });
  }
}

void TaskManager::start_thread(Task* raw) {
  raw->thread = std::jthread([this, raw, purpose = raw->purpose, id = raw->id](std::stop_token stop) {
    yield_to_interface();
    RunContext context;
    context.stop = stop;
    context.progress = [this, raw](const Progress& progress) {
      const auto now = std::chrono::steady_clock::now();
      {
        const std::lock_guard lock(raw->mutex);
        raw->phase = progress.phase;
        // Passes of a search begin again at what has been done before: nothing is lost then, and nothing falls. A
        // phase that comes for the first time counts from its own beginning.
        const bool fresh = raw->phases.insert(progress.phase).second;
        if (progress.fraction >= 0 && (fresh || progress.fraction > raw->fraction)) {
          raw->fraction = progress.fraction;
          raw->risen_ms = raw->clock.elapsed();
        }
        if (now - raw->reported < kProgressEvery) return;
        raw->reported = now;
      }
      QMetaObject::invokeMethod(this, &TaskManager::changed, Qt::QueuedConnection);
    };
    try {
      raw->work(context);
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(raw->mutex);
      raw->error = Error{ErrorCode::device, "there is not enough memory for this", {}, kWayOut};
    } catch (const std::system_error& error) {
      const std::lock_guard lock(raw->mutex);
      raw->error = Error{ErrorCode::device, error.code().message(), {}, kWayOut};
    }
    QMetaObject::invokeMethod(
        this, [this, purpose, id] { ended(purpose, id); }, Qt::QueuedConnection);
  });
}

void TaskManager::ended(const QString& purpose, quint64 id) {
  const auto found = lanes_.find(purpose);
  if (found == lanes_.end() || !found->second.running || found->second.running->id != id) return;
  Lane& lane = found->second;
  const std::shared_ptr<Task> task = std::move(lane.running);
  lane.running.reset();
  if (task->thread.joinable()) task->thread.join();
  if (lane.waiting) {
    std::shared_ptr<Task> next = std::move(lane.waiting);
    lane.waiting.reset();
    launch(lane, std::move(next));
  } else {
    lanes_.erase(found);
  }
  if (task->error) emit failed(*task->error, task->title);
  const bool stopped = task->thread.get_stop_token().stop_requested() || task->stopping || task->superseded;
  if (task->done)
    task->done(task->error                           ? TaskOutcome::failed
               : !stopped                            ? TaskOutcome::finished
               : task->superseded && !task->stopping ? TaskOutcome::superseded
                                                     : TaskOutcome::cancelled);
  emit changed();
  if (lanes_.empty()) emit idle();
}

void TaskManager::cancel(quint64 id) {
  for (auto it = lanes_.begin(); it != lanes_.end(); ++it) {
    Lane& lane = it->second;
    if (lane.waiting && lane.waiting->id == id) {
      const auto task = std::move(lane.waiting);
      lane.waiting.reset();
      if (task->done) task->done(TaskOutcome::cancelled);
      emit changed();
      return;
    }
    if (lane.running && lane.running->id == id) {
      lane.running->stopping = true;
      lane.running->thread.request_stop();
      emit changed();
      return;
    }
  }
}

void TaskManager::cancel_purpose(const QString& purpose) {
  const auto found = lanes_.find(purpose);
  if (found == lanes_.end()) return;
  const quint64 running = found->second.running ? found->second.running->id : 0;
  if (found->second.waiting) cancel(found->second.waiting->id);
  if (running) cancel(running);
}

void TaskManager::cancel_all() {
  for (const TaskInfo& task : tasks()) cancel(task.id);
}

std::vector<TaskInfo> TaskManager::tasks() const {
  std::vector<TaskInfo> all;
  const auto add = [&](Task& task, bool waiting) {
    TaskInfo info;
    info.id = task.id;
    info.purpose = task.purpose;
    info.title = task.title;
    info.elapsed_ms = task.clock.elapsed();
    info.waiting = waiting;
    info.stopping = task.stopping;
    const std::lock_guard lock(task.mutex);
    info.phase = QString::fromStdString(task.phase);
    info.fraction = task.fraction;
    info.risen_ms = task.risen_ms;
    all.push_back(std::move(info));
  };
  for (const auto& [purpose, lane] : lanes_) {
    if (lane.running) add(*lane.running, false);
    if (lane.waiting) add(*lane.waiting, true);
  }
  std::sort(all.begin(), all.end(), [](const TaskInfo& a, const TaskInfo& b) { return a.id > b.id; });
  return all;
}

std::optional<TaskInfo> TaskManager::newest() const {
  const auto all = tasks();
  return all.empty() ? std::nullopt : std::make_optional(all.front());
}

}  // namespace turnpoint::app
