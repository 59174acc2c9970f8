// SPDX-License-Identifier: Apache-2.0
#include "app/explainer.h"

#include <fmt/format.h>
#include <chrono>

#include "app/found_again.h"
#include "app/task_manager.h"
#include "core/base/discard.h"
#include "core/plan/plan_difference.h"
#include "core/search/explain/ratio_story.h"
#include "core/search/explain/told_answer.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {

using ExplainedMade = std::shared_ptr<views::Explained>;

const QString kWhyPurpose = QStringLiteral("why");
constexpr const char* kResultFile = "result.json";  // of the commands that give the same answer

ExplainedMade refusal(const Error& error) {
  auto made = std::make_shared<views::Explained>();
  std::string text = error.message();
  // The command line's word for what the window asks by a click.
  if (text.starts_with("--force: ")) text.erase(0, 9);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  made->sentences = {text};
  made->refused = true;
  return made;
}

void add_command(views::Explained& answer, const PlacedPlan& plan, const std::string& more) {
  answer.why_no_command = why_not_found_again(*plan.result, plan.sketch);
  if (!answer.why_no_command.isEmpty()) return;
  answer.command = views::to_qt(search_command(*plan.result, kResultFile) + "\n" +
                                explain_command(plan.index, kResultFile, more) + "\n");
}

/// Null: such a plan does not split operators.
PlanPtr sharding_of(const PlacedPlan& plan) {
  const AnyPlan any = plan.result->plans->plan(plan.index);
  const PlanPtr* sharding = std::get_if<PlanPtr>(&any);
  return sharding ? *sharding : nullptr;
}

/// Choices are forced on no plan with stages (forced_answer.h).
bool can_be_forced(const PlacedPlan& plan) {
  const PlanPtr sharding = sharding_of(plan);
  return sharding && !(sharding->pipeline && sharding->pipeline->stages > 1);
}

bool names_are_the_same(const Model& a, const Model& b) {
  if (a.operators.size() != b.operators.size() || a.tensors.size() != b.tensors.size()) return false;
  for (std::size_t i = 0; i < a.operators.size(); ++i)
    if (a.operators[OperatorId(i)].name != b.operators[OperatorId(i)].name) return false;
  return true;
}

Expected<ExplainedMade> difference_answer(const PlacedPlan& plan, const Question& question) {
  const ResultPtr& other = question.other.result;
  const std::size_t index = question.other.index;
  const ModelPtr& model = plan.result->scenario->model;
  if (!names_are_the_same(*model, *other->scenario->model))
    return usage_error(
        other->scenario->model->name == model->name
            ? std::string(
                  "the other plan has other operators: precision, attention or the loss are set otherwise there")
            : fmt::format("the other plan is one of {}, whose operators are not those of {}",
                          other->scenario->model->name, model->name));
  const PlanPtr first = sharding_of(plan), second = sharding_of(question.other);
  if (!first || !second)
    return usage_error(
        "plans that split operators can be put beside each other, placements and parts of unlike size "
        "cannot");
  auto made = std::make_shared<views::Explained>();
  made->sentences = sentences(*plan.result, plan.index, *other, index, question.other_of);
  made->difference = std::make_shared<const PlanDifference>(difference_of(*model, *first, *second));
  made->model = model;
  made->price = views::to_qt(slower_words(other->points[index].time_s, plan.result->points[plan.index].time_s));
  if (other == plan.result)
    add_command(*made, plan, fmt::format("--against {}", index));
  else
    made->why_no_command = QObject::tr("A terminal puts points of one result file beside each other, not of two.");
  return made;
}

ExplainedMade forced_answer(const PlacedPlan& plan, const Question& question, ForcedAnswer&& answer) {
  auto made = std::make_shared<views::Explained>();
  made->sentences = sentences(answer, *plan.result);
  made->model = plan.result->scenario->model;
  if (!answer.already) {
    const double with = answer.same_memory.point.time_s;
    made->price = answer.same_memory.within ? views::to_qt(slower_words(with, answer.point.time_s))
                                            : QObject::tr("not in this memory");
    made->difference = std::make_shared<const PlanDifference>(std::move(answer.difference));
  }
  add_command(*made, plan, "--force " + shell_quoted(to_string(question.rules)));
  return made;
}

Expected<ExplainedMade> ratio_answer(const PlacedPlan& plan, const Question& question) {
  const auto story = ratio_story_of(*plan.result, plan.index, question.beside);
  if (!story) return story.error();
  auto made = std::make_shared<views::Explained>();
  made->sentences = describe(*story, *plan.result);
  if (story->nearest)
    made->why_no_command = QObject::tr(
                               "A terminal finds the nearest method in a file of several results: search with "
                               "--method %1,%2 and explain that.")
                               .arg(views::to_qt(plan.result->method), views::to_qt(story->nearest->method));
  else
    add_command(*made, plan, {});
  return made;
}

}  // namespace

/// What lasts from question to question.
struct Explainer::Kept {
  std::unique_ptr<PointExplainer> explainer;
  PlacedPlan of;

  Expected<PointExplainer*> about(const PlacedPlan& plan) {
    if (explainer && of == plan) return explainer.get();
    auto made = PointExplainer::make(plan.result, plan.index, explainer.get());
    if (!made) return made.error();
    explainer = std::move(*made);
    of = plan;
    return explainer.get();
  }
};

struct Explainer::Work {
  PlacedPlan plan;
  std::optional<Question> question;
  std::optional<AskedPart> part;
  std::shared_ptr<Kept> kept;
  // What came out.
  std::optional<PartChoices> choices;
  views::ExplainedPtr answer;
  bool forced = false;  // choices can be forced on the plan

  void run(const RunContext& context) {
    forced = can_be_forced(plan);
    if (part) find_choices(context);
    if (!question || context.cancelled()) return;
    const auto begin = std::chrono::steady_clock::now();
    const auto found = find_answer(context);
    if (!found && found.error().code == ErrorCode::cancelled) return;
    const ExplainedMade made = found ? *found : refusal(found.error());
    made->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    answer = made;
  }

  void find_choices(const RunContext& context) {
    context.report("choices");
    PartChoices found;
    const auto fail = [&](const Error& error) {
      if (error.code == ErrorCode::cancelled) return;
      found.why_none = error.message();
      choices = std::move(found);
    };
    if (!splits_alike(plan.result->plans->kind(plan.index))) {
      found.why_none = QObject::tr("None: Devices moves parts by hand").toStdString();
      choices = std::move(found);
      return;
    }
    const auto explainer = kept->about(plan);
    if (!explainer) return fail(explainer.error());
    const auto all = (*explainer)->choices(part->operators, context);
    if (!all) return fail(all.error());
    for (const ForcedChoice& choice : *all) {
      const auto already = (*explainer)->does_already(part->operators, choice, context);
      if (!already) return fail(already.error());
      found.choices.push_back({choice, *already});
    }
    choices = std::move(found);
  }

  Expected<ExplainedMade> find_answer(const RunContext& context) {
    if (question->other) return difference_answer(plan, *question);
    if (!question->rules.empty()) {
      const auto explainer = kept->about(plan);
      if (!explainer) return explainer.error();
      auto answered = (*explainer)->force(question->rules, context);
      if (!answered) return answered.error();
      return forced_answer(plan, *question, std::move(*answered));
    }
    if (plan.result->plans->kind(plan.index) == PlanKind::ratio) return ratio_answer(plan, *question);
    context.report("nearest named strategy");
    const auto story = story_of(*plan.result, plan.index, context);
    if (!story) return story.error();
    auto made = std::make_shared<views::Explained>();
    made->sentences = describe(*story, *plan.result);
    add_command(*made, plan, {});
    return made;
  }
};

std::string Question::key() const {
  if (other) return fmt::format("against {} of {}", other.index, static_cast<const void*>(other.result.get()));
  std::string key = to_string(rules);
  for (const ResultPtr& result : beside) key += fmt::format(" beside {}", static_cast<const void*>(result.get()));
  return key;
}

Explainer::Explainer(TaskManager& tasks, QObject* parent)
    : QObject(parent), tasks_(tasks), kept_(std::make_shared<Kept>()) {
  connect(&tasks_, &TaskManager::changed, this, [this] {
    if (busy()) emit changed();
  });
}

void Explainer::set_plan(const PlacedPlan& plan) {
  if (plan == plan_) return;
  const bool other_scenario = !plan_ || !plan || plan.result->scenario != plan_.result->scenario;
  plan_ = plan;
  answers_.clear();
  choices_.clear();
  question_.reset();
  part_.reset();
  stopped_ = false;
  running_ = 0;
  ready_for_ = {};
  tasks_.cancel_purpose(kWhyPurpose);  // getting ready for another plan, too
  // Structures and prices of a large network are large.
  if (other_scenario) discard(std::exchange(kept_, std::make_shared<Kept>()));
  emit changed();
}

bool Explainer::has_choices() const { return plan_ && splits_alike(plan_.result->plans->kind(plan_.index)); }

void Explainer::ask(const Question& question) {
  if (!plan_) return;
  question_ = question;
  stopped_ = false;
  if (!answer()) start();
  emit changed();
}

void Explainer::want_choices(const AskedPart& part) {
  if (!plan_) return;
  part_ = part;
  if (!choices_of(part)) start();
}

views::ExplainedPtr Explainer::answer() const { return question_ ? answer_to(*question_) : nullptr; }

views::ExplainedPtr Explainer::answer_to(const Question& question) const {
  const auto found = answers_.find(question.key());
  return found == answers_.end() ? nullptr : found->second.answer;
}

const PartChoices* Explainer::choices_of(const AskedPart& part) const {
  const auto found = choices_.find(part.pattern);
  return found == choices_.end() ? nullptr : &found->second;
}

void Explainer::start() {
  auto work = std::make_shared<Work>();
  work->plan = plan_;
  work->kept = kept_;
  if (question_ && !stopped_ && !answer()) work->question = question_;
  if (part_ && !choices_of(*part_)) work->part = part_;
  const std::string about = fmt::format("{}\n{}", work->question ? "? " + work->question->key() : std::string(),
                                        work->part ? work->part->pattern : std::string());
  if (running_ && about == running_about_) return;  // what is asked again goes on
  running_about_ = about;
  auto id = std::make_shared<quint64>(0);
  *id = running_ = tasks_.start(
      kWhyPurpose, tr("Why"), [work](const RunContext& context) { work->run(context); },
      [this, work, id](TaskOutcome outcome) { take(*work, outcome, *id); });
}

void Explainer::take(const Work& work, TaskOutcome outcome, quint64 task) {
  if (work.plan == plan_) {
    if (work.part && work.choices) choices_[work.part->pattern] = *work.choices;
    if (work.question && work.answer) answers_[work.question->key()] = {*work.question, work.answer};
  }
  if (task != running_) return;
  running_ = 0;
  stopped_ = stopped_ || (outcome == TaskOutcome::cancelled && work.question && !answer());
  emit changed();
  if (outcome == TaskOutcome::finished && running_ == 0 && work.plan == plan_ && work.forced) get_ready();
}

// Under the purpose of questions: what is asked meanwhile ends it, goes on from what it has built, and begins it anew.
void Explainer::get_ready() {
  if (ready_for_ == plan_) return;
  ready_for_ = plan_;
  tasks_.start(
      kWhyPurpose, tr("Ready for Why"),
      [plan = plan_, kept = kept_](const RunContext& context) {
        // What cannot be built is said where it is asked for.
        if (const auto explainer = kept->about(plan)) (void)(*explainer)->get_ready(context);
      },
      [this, plan = plan_](TaskOutcome outcome) {
        if (outcome != TaskOutcome::finished && ready_for_ == plan) ready_for_ = {};
      });
}

void Explainer::stop() { tasks_.cancel_purpose(kWhyPurpose); }

QString Explainer::progress() const {
  for (const TaskInfo& task : tasks_.tasks()) {
    if (task.purpose != kWhyPurpose) continue;
    const QString phase = task.phase.isEmpty() ? tr("working") : task.phase;
    return task.fraction >= 0 ? tr("%1, %2 %").arg(phase).arg(int(100 * task.fraction)) : phase + QStringLiteral("…");
  }
  return {};
}

}  // namespace turnpoint::app
