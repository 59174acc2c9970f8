// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/largest_batch_lines.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "core/search/largest_batch.h"

namespace turnpoint::app {

namespace {

const QString kBatchPurpose = QStringLiteral("largest-batch");

LargestBatchLines::Answer batch_answer(const Result& result) {
  LargestBatchLines::Answer answer;
  if (result.points.empty()) {
    answer.refusal = result.notes.empty() ? "no plan" : result.notes.front();
    return answer;
  }
  const ResultPoint& point = result.points.front();
  answer.fits = point.fits;
  answer.batch = result.scenario->settings.batch;
  answer.memory_bytes = point.simulated_memory_bytes.value_or(point.memory_bytes);
  answer.time_s = point.time_s;
  const auto& words = point.fits ? result.explanations : result.notes;
  if (!words.empty()) answer.bound = words.back();
  return answer;
}

}  // namespace

/// Where a worker leaves its answers while it goes on.
struct LargestBatchLines::Mailbox {
  std::mutex mutex;
  std::vector<std::pair<Key, Answer>> found;
};

LargestBatchLines::LargestBatchLines(TaskManager& tasks, QObject* parent) : QObject(parent), tasks_(tasks) {}

void LargestBatchLines::start(std::vector<Line> lines, const ModelSourcePtr& source, const ScenarioPtr& whole,
                              const std::vector<int>& counts) {
  for (Line& line : lines)
    for (const int devices : counts)
      if (!answers_.contains({line.name, devices})) line.counts.push_back(devices);
  std::erase_if(lines, [](const Line& line) { return line.counts.empty(); });
  // Methods of one plan answer in seconds, a frontier may take minutes.
  std::stable_partition(lines.begin(), lines.end(),
                        [](const Line& line) { return !line.contender || !line.contender->frontier; });
  if (lines.empty() || running_) return;
  auto mailbox = std::make_shared<Mailbox>();
  running_ = mailbox;
  stopped_ = false;
  ++searches_;
  tasks_.start(
      kBatchPurpose, tr("Largest batch"),
      [this, mailbox, lines = std::move(lines), source, whole](const RunContext& context) {
        work(lines, *source, whole, context, [&](const Key& key, Answer answer) {
          {
            const std::lock_guard lock(mailbox->mutex);
            mailbox->found.emplace_back(key, std::move(answer));
          }
          QMetaObject::invokeMethod(
              this, [this, mailbox] { take(mailbox); }, Qt::QueuedConnection);
        });
      },
      [this, mailbox](TaskOutcome outcome) {
        if (mailbox != running_) {
          emit changed();  // whoever waited for the end of the old search may begin the next
          return;
        }
        take(mailbox);
        running_.reset();
        stopped_ = outcome != TaskOutcome::finished;
        emit changed();
      });
  emit changed();
}

void LargestBatchLines::work(const std::vector<Line>& lines, const ModelSource& source, const ScenarioPtr& whole,
                             const RunContext& context, const std::function<void(const Key&, Answer)>& tell) {
  for (std::size_t i = 0; i < lines.size() && !context.cancelled(); ++i) {
    const Line& line = lines[i];
    RunContext part = context;
    part.progress = [&context, &line, i, count = lines.size()](const Progress& inner) {
      if (context.progress)
        context.progress(
            {line.name + ", " + inner.phase,
             (static_cast<double>(i) + std::clamp(inner.fraction, 0.0, 1.0)) / static_cast<double>(count)});
    };
    std::set<int> answered;
    const auto found = [&](const ResultPtr& result) {
      const int devices = result->scenario->cluster->devices();
      answered.insert(devices);
      tell({line.name, devices}, batch_answer(*result));
    };
    std::optional<Error> error;
    if (!line.contender) {
      error = line.contender.error();
    } else if (const auto results = largest_batches(*line.contender, source, whole, line.counts, part, found);
               !results) {
      error = results.error();
    }
    if (error && error->code == ErrorCode::cancelled) return;
    for (const int devices : line.counts) {
      if (answered.contains(devices)) continue;
      Answer answer;
      if (error && error->code != ErrorCode::usage) {
        answer.error = error;
      } else if (error) {
        answer.refusal = error->what;
      } else {
        const auto here = on_devices(whole, devices);
        answer.refusal = here ? line.contender->refuses(**here) : here.error().what;
        if (answer.refusal.empty()) answer.refusal = "it takes no batch on this many devices";
      }
      tell({line.name, devices}, std::move(answer));
    }
  }
}

void LargestBatchLines::stop() { tasks_.cancel_purpose(kBatchPurpose); }

void LargestBatchLines::leave() {
  if (!running_) return;
  const auto left = running_;
  take(left);
  running_.reset();
  stop();
}

void LargestBatchLines::forget(bool keep) {
  if (keep)
    for (auto& [key, answer] : answers_) old_[key] = answer;
  else
    old_.clear();
  answers_.clear();
  stopped_ = false;
  if (!running_) return;
  running_.reset();
  stop();
}

void LargestBatchLines::forget_errors() {
  stopped_ = false;
  std::erase_if(answers_, [](const auto& entry) { return entry.second.error.has_value(); });
}

void LargestBatchLines::take(const std::shared_ptr<Mailbox>& mailbox) {
  if (mailbox != running_) return;  // of a scenario that is gone
  std::vector<std::pair<Key, Answer>> found;
  {
    const std::lock_guard lock(mailbox->mutex);
    found.swap(mailbox->found);
  }
  for (auto& [key, answer] : found) answers_[key] = std::move(answer);
  if (!found.empty()) emit changed();
}

double LargestBatchLines::fraction() const {
  for (const TaskInfo& task : tasks_.tasks())
    if (task.purpose == kBatchPurpose) return task.fraction;
  return -1;
}

bool LargestBatchLines::complete(const std::vector<std::string>& names, const std::vector<int>& counts) const {
  for (const std::string& name : names)
    for (const int devices : counts)
      if (!answers_.contains({name, devices})) return false;
  return true;
}

const LargestBatchLines::Answer* LargestBatchLines::answer(const std::string& name, int devices) const {
  const auto at = answers_.find({name, devices});
  return at == answers_.end() ? nullptr : &at->second;
}

const LargestBatchLines::Answer* LargestBatchLines::old_answer(const std::string& name, int devices) const {
  const auto at = old_.find({name, devices});
  return at == old_.end() ? nullptr : &at->second;
}

std::string LargestBatchLines::refusal() const {
  for (const auto& [key, answer] : answers_)
    if (!answer.refusal.empty()) return answer.refusal;
  return {};
}

const Error* LargestBatchLines::failure() const {
  for (const auto& [key, answer] : answers_)
    if (answer.error) return &*answer.error;
  return nullptr;
}

}  // namespace turnpoint::app
