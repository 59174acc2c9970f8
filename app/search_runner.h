// SPDX-License-Identifier: Apache-2.0
// Keeps the results in step with the scenario: a coarse pass at once, an exact one when the hand rests, then the other
// methods one after another. Last good results stay until better ones replace them.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "app/search_backend.h"

namespace turnpoint::app {

class Document;
class TaskManager;
enum class TaskOutcome;

/// One method's place in the list.
struct MethodRun {
  enum class State { idle, waiting, running, done, failed, cancelled };
  const Method* method = nullptr;
  std::string name;        ///< registry name, parameters behind a colon: "manual:tp=4:pp=2"
  std::string parameters;  ///< "tp=4:pp=2"
  std::string title;       ///< the method's; of a split of the user's own its parameters
  bool enabled = false;
  bool enabled_otherwise = false;  ///< its check mark on the other kind of scenario: model or task graph
  std::string refusal;             ///< why it cannot run on this scenario; empty if it can
  State state = State::idle;
  SearchPass pass = SearchPass::exact;         ///< of the running task
  SearchPass newest_pass = SearchPass::exact;  ///< of the task that was asked for last; it may still wait
  ResultPtr result;                            ///< last good
  bool coarse = false;                         ///< `result` is a coarse pass
  std::optional<Error> error;
  quint64 task = 0;  ///< newest, 0: none
};

class SearchRunner : public QObject {
  Q_OBJECT
 public:
  static constexpr int kFrame_ms = 16, kRest_ms = 250;

  SearchRunner(const SearchBackend& backend, TaskManager& tasks, Document& document, QObject* parent = nullptr);

  const std::vector<MethodRun>& runs() const { return runs_; }
  const MethodRun* find(const std::string& name) const;
  /// The frontier method the chart is about; of a task graph, which has no frontier, the first placement method; null
  /// if none is enabled.
  const MethodRun* subject() const;

  void set_enabled(const std::string& name, bool on);
  /// A split of the user's own, as the parameters of `manual`. Usage error where they mean nothing; one that the
  /// scenario refuses is kept, with the reason.
  Expected<void> add_split(const std::string& parameters, bool enabled = true);
  void remove_split(const std::string& name);
  /// Parameters of all of them.
  std::vector<std::string> splits() const;
  void set_enabled_methods(const std::vector<std::string>& names);
  /// Searches again, exactly.
  void search_all();
  void search(const std::string& name);
  void cancel(const std::string& name);
  void stop_all();

  /// No slider is being moved.
  bool hand_rests() const { return !frame_.isActive() && !rest_.isActive(); }
  /// Nothing running, waiting or about to start.
  bool settled() const;
  /// The subject's result belongs to the present scenario and is not coarse.
  bool up_to_date() const;
  double last_change_s() const { return last_change_s_; }  ///< from edit to new curve; 0: none yet

  // Counted for tests: how often a search was asked for.
  int coarse_started() const { return coarse_started_; }
  int exact_started() const { return exact_started_; }

 signals:
  void result_changed(const QString& method);
  void runs_changed();
  void failed(const turnpoint::Error& error, const QString& method_title);
  void became_settled();

 private:
  MethodRun* find_mutable(const std::string& name);
  MethodRun* subject_mutable();
  void scenario_changed(bool live);
  /// Where only the price changed, the results are those of the new scenario, too; false where they are not.
  bool carry_over();
  void start_live();
  void start_coarse();
  void start_exact();
  void start_others();
  void start(MethodRun& run, SearchPass pass);
  void ended(const std::string& name, quint64 task, SearchPass pass, const std::optional<Expected<ResultPtr>>& answer,
             TaskOutcome outcome, qint64 edited_at);
  void refresh_refusals();
  /// Answers about another model say nothing about this one, not even while they are the only ones.
  void forget_other_model();
  /// Between models and task graphs placement methods change their check marks.
  void change_kind();
  void check_settled();

  const SearchBackend& backend_;
  TaskManager& tasks_;
  Document& document_;
  std::vector<MethodRun> runs_;
  const Method* splits_ = nullptr;
  std::vector<std::shared_ptr<Searcher>> searchers_;  ///< parallel to runs_; used by one task at a time
  std::deque<std::string> others_;
  QTimer frame_, rest_;
  ModelPtr model_;         ///< of the scenario that results belong to
  bool of_tasks_ = false;  ///< the scenario has a task graph
  bool exact_follows_ = false, moved_in_frame_ = false;
  QElapsedTimer clock_;
  qint64 edited_at_ = 0;
  double last_change_s_ = 0;
  int coarse_started_ = 0, exact_started_ = 0;
};

}  // namespace turnpoint::app
