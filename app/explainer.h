// SPDX-License-Identifier: Apache-2.0
// Answers questions about the picked plan in the background, the newest first, and keeps what questions about one
// scenario have in common: the second is answered from the structures and prices that the first has built.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/result.h"
#include "core/search/explain/asked_part.h"
#include "core/search/explain/forced_answer.h"
#include "views/explain/explained.h"

namespace turnpoint::app {

class TaskManager;
enum class TaskOutcome;

/// With micro-batches or without.
constexpr bool splits_alike(PlanKind kind) { return kind == PlanKind::sharding || kind == PlanKind::pipeline; }

/// A point of a result that is there with its plans.
struct PlacedPlan {
  ResultPtr result;
  std::size_t index = 0;
  bool sketch = false;  ///< the result is that of a coarse pass
  friend bool operator==(const PlacedPlan&, const PlacedPlan&) = default;
  explicit operator bool() const { return result && result->plans && index < result->points.size(); }
};

/// What is asked of a plan: with neither rules nor another plan, what it is and what is near it.
struct Question {
  std::vector<ForceRule> rules;
  PlacedPlan other;
  std::string other_of;  ///< what the other one is a point of; empty: of the same result
  /// Of the same scenario: among them the plan is looked for that is nearest to one with parts of unlike size.
  std::vector<ResultPtr> beside = {};
  std::string key() const;
};

/// The choices of a part of the model.
struct PartChoices {
  struct One {
    ForcedChoice choice;
    bool already = false;  ///< the plan does so
  };
  std::vector<One> choices;
  std::string why_none;
};

class Explainer : public QObject {
  Q_OBJECT
 public:
  explicit Explainer(TaskManager& tasks, QObject* parent = nullptr);

  /// The plan that is asked about from now on. What is known of another one is forgotten, but for what all plans of
  /// its scenario have in common.
  void set_plan(const PlacedPlan& plan);
  const PlacedPlan& plan() const { return plan_; }
  /// Its parts could do otherwise one by one; those of a plan with parts of unlike size cannot.
  bool has_choices() const;

  /// Works the answer out, unless it is known. What was asked before and has no answer yet is given up.
  void ask(const Question& question);
  const std::optional<Question>& question() const { return question_; }
  /// To the question that was asked last; null while it is worked out, or where the user stopped it.
  views::ExplainedPtr answer() const;
  /// To any question about this plan; null: it has not been asked, or not been answered.
  views::ExplainedPtr answer_to(const Question& question) const;
  void want_choices(const AskedPart& part);
  /// Null: they are not known yet.
  const PartChoices* choices_of(const AskedPart& part) const;

  bool busy() const { return running_ != 0; }
  bool stopped() const { return stopped_; }  ///< by the user, before there was an answer
  void stop();
  QString progress() const;  ///< of the work that goes on; empty: none does

  /// For whoever has no answers on show: the Why tab comes up and says what the plan is.
  void want(bool in_every_layer = false) { emit wanted(in_every_layer); }

 signals:
  void changed();                    ///< question, answer, choices or what goes on
  void wanted(bool in_every_layer);  ///< choices are to be for the picked operator of every layer
  void graph_wanted();               ///< the graph is to show the answer's difference

 private:
  struct Kept;
  struct Work;
  void start();
  void take(const Work& work, TaskOutcome outcome, quint64 task);
  void get_ready();  ///< for the first question about a choice, while nobody asks

  TaskManager& tasks_;
  PlacedPlan plan_;
  std::optional<Question> question_;
  std::optional<AskedPart> part_;
  struct Answered {
    Question question;  ///< keeps the results alive by whose addresses keys tell them apart
    views::ExplainedPtr answer;
  };
  std::map<std::string, Answered> answers_;     ///< by Question::key()
  std::map<std::string, PartChoices> choices_;  ///< by pattern
  std::shared_ptr<Kept> kept_;                  ///< touched by the task alone
  quint64 running_ = 0;
  std::string running_about_;
  bool stopped_ = false;
  PlacedPlan ready_for_;  ///< what questions about it need has been built, or is being built
};

}  // namespace turnpoint::app
