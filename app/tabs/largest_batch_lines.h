// SPDX-License-Identifier: Apache-2.0
// The largest batch that fits, per method and count of devices, searched in the background for the Parallelism tab.
// Answers belong to the scenario they were asked for: of another one they are old, and shown until new ones come.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/workspace.h"
#include "core/import/source/model_source.h"
#include "core/search/objectives.h"

namespace turnpoint::app {

class LargestBatchLines : public QObject {
  Q_OBJECT
 public:
  /// What one method answered on one count.
  struct Answer {
    std::int64_t batch = 0;         ///< the largest that fits; where none does, the smallest that was tried
    std::int64_t memory_bytes = 0;  ///< of its fastest plan that fits, else the least: the simulated peak
    double time_s = 0;              ///< of that plan
    bool fits = false;
    std::string bound;  ///< what is known of larger batches, a sentence; may be empty
    std::string refusal;
    std::optional<Error> error;
  };
  using Key = std::pair<std::string, int>;
  /// A method by its name in the list, and what runs; an error where its parameters say nothing about one batch.
  struct Line {
    std::string name;
    Expected<Contender> contender;
    std::vector<int> counts = {};  ///< what is missing of it; start() fills it in
  };

  LargestBatchLines(TaskManager& tasks, QObject* parent);

  /// Searches what is missing of these lines on these counts. `whole`: a scenario of the whole cluster; `source`: its
  /// model, unbound. One search runs at a time.
  void start(std::vector<Line> lines, const ModelSourcePtr& source, const ScenarioPtr& whole,
             const std::vector<int>& counts);
  void stop();   ///< the user's own word: nothing goes on until forget_errors()
  void leave();  ///< nobody looks; what was found stays
  /// The scenario is another one; `keep`: old answers may still be shown, as it is of the same model and machine.
  void forget(bool keep);
  void forget_errors();

  bool running() const { return running_ != nullptr; }
  bool stopped() const { return stopped_; }
  double fraction() const;  ///< of the running search; below 0: not known
  bool complete(const std::vector<std::string>& names, const std::vector<int>& counts) const;
  const Answer* answer(const std::string& name, int devices) const;  ///< null: not known yet
  const Answer* old_answer(const std::string& name, int devices) const;
  const Error* failure() const;  ///< of any answer; null: none failed
  std::string refusal() const;   ///< of any answer; empty: none was refused
  int searches() const { return searches_; }

 signals:
  void changed();

 private:
  struct Mailbox;
  static void work(const std::vector<Line>& lines, const ModelSource& source, const ScenarioPtr& whole,
                   const RunContext& context, const std::function<void(const Key&, Answer)>& tell);
  void take(const std::shared_ptr<Mailbox>& mailbox);

  TaskManager& tasks_;
  std::map<Key, Answer> answers_, old_;
  std::shared_ptr<Mailbox> running_;  ///< of the newest task; null: none
  bool stopped_ = false;
  int searches_ = 0;
};

}  // namespace turnpoint::app
