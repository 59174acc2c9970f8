// SPDX-License-Identifier: Apache-2.0
// Keeps the results in step with the scenario: a coarse pass at once, an exact one when the hand rests, then the other
// methods one after another. Last good results stay until better ones replace them. What was answered before is not
// searched again: exact answers are kept by their questions.
//
// Invariant, whatever is edited, undone, opened or switched at whatever moment: once settled, every enabled method that
// the scenario does not refuse has an exact result of the present scenario, or has failed for it, or was stopped by the
// user while this scenario was asked for.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/carried_answers.h"
#include "app/figures_store.h"
#include "app/kept_answers.h"
#include "app/live_answer.h"
#include "app/search_backend.h"
#include "core/search/registry.h"

namespace turnpoint::app {

class Document;
class TaskManager;
enum class TaskOutcome;

/// Of a method's tasks.
inline QString search_purpose(const std::string& name) {
  return QStringLiteral("search:") + QString::fromStdString(name);
}

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
  quint64 task = 0;                  ///< newest, 0: none
  std::string question;              ///< what the present scenario asks of this method; empty: no scenario
  std::string asked;                 ///< what the newest task was asked
  ScenarioPtr stopped_for;           ///< the scenario that it failed on, or that the user stopped it on
  std::string nothing_kept;          ///< why the search that the user stopped has left no answer; may be empty
  bool again = false;                ///< to be searched although there is an answer
  bool carried = false;              ///< `result` came with a session: the search that finds its plans is still to come
  std::shared_ptr<LiveAnswer> live;  ///< of the newest task that runs or ran
  std::shared_ptr<const Learning> learning;  ///< of a method that learns: how it goes, or went last
  std::string learnt_for;                    ///< the question that `learning` is about
  ResultPtr so_far;                          ///< the newest of what a search had while it ran

  const std::string& label() const { return is_own() ? title : method->label(); }  ///< in charts
  bool is_own() const { return name != method->name; }  ///< a split or variant of the user's own
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
  /// The method whose parameters are splits of the user's own: a row for each of those, none for itself; null: none.
  const Method* split_method() const { return splits_; }

  void set_enabled(const std::string& name, bool on);
  /// A split of the user's own, as the parameters of split_method(), or a variant of another method ("fsdp:zero=2").
  /// Usage error where they mean nothing; one that the scenario refuses is kept, with the reason.
  Expected<void> add_split(const std::string& parameters, bool enabled = true);
  void remove_split(const std::string& name);
  /// All of them as add_split() takes them.
  std::vector<std::string> splits() const;
  void set_enabled_methods(const std::vector<std::string>& names);
  /// Searches again, exactly, every enabled method, those that failed or were stopped included.
  void search_all();
  void search(const std::string& name);
  /// The user's own word: the method stays stopped until the scenario changes or it is asked for.
  void cancel(const std::string& name);
  void stop_all();
  /// Answers of a session that is about to open: shown where they are asked for, until the search that follows brings
  /// the plans.
  void offer(const std::vector<CarriedAnswer>& answers);
  /// The exact answers to the present scenario, for a session to carry.
  std::vector<CarriedAnswer> answers() const;
  /// States of a session that is about to open: the first search of each of these methods goes on from there. One of
  /// another graph or of other settings is an error of that search, and is kept until the method learns anew.
  void offer_learning(const std::vector<SavedLearning>& saved);
  /// What methods that learn can go on from, for a session to keep.
  std::vector<SavedLearning> learning() const;
  /// Several results change at once and this signal is not the last of them.
  bool more_follow() const { return more_follow_; }
  const KeptAnswers& kept() const { return kept_; }
  /// Answers' figures are kept in this folder too, for windows to come.
  void keep_figures_in(const QString& folder);

  /// No slider is being moved.
  bool hand_rests() const { return !frame_.isActive() && !rest_.isActive(); }
  /// Nothing running, waiting or about to start.
  bool settled() const;
  /// The subject's result belongs to the present scenario and is not coarse.
  bool up_to_date() const;
  /// While nothing else runs, the subject's search gets ready for sliders.
  bool getting_ready() const { return getting_ready_ != 0; }
  double last_change_s() const { return last_change_s_; }  ///< from edit to new curve; 0: none yet

  // Counted for tests: how often a search was asked for.
  int coarse_started() const { return coarse_started_; }
  int exact_started() const { return exact_started_; }

 signals:
  void result_changed(const QString& method);
  void learning_changed(const QString& method);  ///< at most 20 times a second
  void runs_changed();
  void failed(const turnpoint::Error& error, const QString& method_title);
  void became_settled();

 private:
  MethodRun* find_mutable(const std::string& name);
  MethodRun* subject_mutable();
  void scenario_changed(bool live);
  /// Starts what is due now: the subject's passes, then the others.
  void advance();
  void start_live();
  void start_others();
  void start(MethodRun& run, SearchPass pass);
  void ended(const std::string& name, quint64 task, SearchPass pass, const std::string& asked,
             const ScenarioPtr& scenario, const std::optional<Expected<ResultPtr>>& answer, TaskOutcome outcome,
             qint64 edited_at);
  /// True where the answer became the result of the run.
  bool take(MethodRun& run, const ResultPtr& answer, SearchPass pass, const std::string& asked);
  /// What runs has something to show.
  void follow_live();
  /// True where what there is so far became the result of the run.
  bool take_live(MethodRun& run);
  /// Of a session, once; or of its own, where the user stopped it. Null: it begins anew.
  std::shared_ptr<const std::string> state_to_go_on_from(const MethodRun& run);
  void forget_learning();
  void ask_questions();
  /// Answers that are there already become results; the names of those that changed.
  /// `figures`: also such as are kept without their plans.
  std::vector<std::string> take_kept(bool figures = true);
  void announce(const std::vector<std::string>& names);
  bool hand_moves() const { return frame_.isActive() || rest_.isActive(); }
  bool is_current(const MethodRun& run) const;
  /// "fsdp:zero=2" by the method's name; anything else is parameters of `manual`.
  MethodChoice chosen(const std::string& text) const;
  /// Whether it has yet to answer the present scenario exactly.
  bool needs_search(const MethodRun& run) const;
  /// Its task is of no use any more; not what the user calls cancelled.
  void withdraw(MethodRun& run);
  void refresh_refusals();
  /// Answers about another model say nothing about this one, not even while they are the only ones. Those about the
  /// model before it are kept all the same; of models further back the figures are enough (keep_figures_in()).
  void forget_other_model();
  /// Between models and task graphs placement methods change their check marks.
  void change_kind();
  void check_settled();
  void get_ready();
  /// Whatever else is asked goes first.
  void make_way();

  const SearchBackend& backend_;
  TaskManager& tasks_;
  Document& document_;
  std::vector<MethodRun> runs_;
  const Method* splits_ = nullptr;
  std::vector<std::shared_ptr<Searcher>> searchers_;  ///< parallel to runs_; used by one task at a time
  std::deque<std::string> others_;
  QTimer frame_, rest_;
  quint64 getting_ready_ = 0;  ///< a task; 0: none
  bool made_way_ = false;      ///< that task, for another one
  struct Readiness {
    std::weak_ptr<Searcher> searcher;
    ScenarioPtr scenario;
  };
  Readiness ready_;        ///< whose curve is ready, or was to be until the user stopped it
  ModelPtr model_;         ///< of the scenario that results belong to
  std::string source_;     ///< of that model: another batch binds it anew
  bool of_tasks_ = false;  ///< the scenario has a task graph
  KeptAnswers kept_;
  std::shared_ptr<FiguresStore> figures_;
  struct Offered {
    std::shared_ptr<const std::string> state;
    bool taken = false;  ///< by a search
  };
  std::map<std::string, Offered> offered_;
  bool offered_for_next_ = false;  ///< the model that they belong to is about to be opened
  bool sketch_due_ = false;        ///< the subject's coarse pass is to come before its exact one
  bool moved_in_frame_ = false, more_follow_ = false;
  QElapsedTimer clock_;
  qint64 edited_at_ = 0;
  double last_change_s_ = 0;
  int coarse_started_ = 0, exact_started_ = 0;
};

}  // namespace turnpoint::app
