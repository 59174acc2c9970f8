// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/why_tab.h"

#include <QComboBox>
#include <QPushButton>
#include <algorithm>

#include "app/actions.h"
#include "app/scenario_words.h"
#include "core/plan/plan_difference.h"
#include "views/common/format.h"
#include "views/plan/plan_panel.h"

namespace turnpoint::app {

namespace {

using Of = views::WhyQuestion::Of;

QString figures(const PlacedPlan& plan) {
  const ResultPoint& point = plan.result->points[plan.index];
  return views::memory_text(point.memory_bytes) + QStringLiteral(" · ") + views::time_text(point.time_s);
}

/// The fastest of the plans that need no more memory; where none does, the one of least.
std::size_t within(const Result& result, std::int64_t bytes) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < result.points.size(); ++i)
    if (result.points[i].memory_bytes <= bytes) found = i;
  return found;
}

bool splits_operators(const Result& result, std::size_t index) {
  return result.plans && index < result.points.size() && splits_alike(result.plans->kind(index));
}

bool can_be_told(const PlacedPlan& plan) {
  if (!plan) return false;
  const PlanKind kind = plan.result->plans->kind(plan.index);
  return splits_alike(kind) || kind == PlanKind::ratio;
}

}  // namespace

WhyTab::WhyTab(const TabParts& parts)
    : ViewTab(parts, "why", tr("Why"), new views::WhyView(parts.window)), panel_(parts.plan_panel) {
  using View = views::WhyView;
  rest_.setSingleShot(true);
  rest_.setInterval(kRest_ms);
  connect(&rest_, &QTimer::timeout, this, &WhyTab::ask_again);
  connect(&work_.loader, &PlanLoader::plan_changed, this, &WhyTab::follow_plan);
  connect(parts.selection(), &views::SelectionModel::operators_changed, this, &WhyTab::follow_operators);
  connect(&work_.document, &Document::pinned_changed, this, &WhyTab::show_questions);
  connect(&work_.runner, &SearchRunner::result_changed, this, [this] {
    if (!work_.runner.more_follow()) show_questions();
  });
  connect(&work_.explainer, &Explainer::changed, this, &WhyTab::show);
  connect(&work_.explainer, &Explainer::wanted, this, [this](bool in_every_layer) {
    emit raise_requested();
    follow_operators();
    if (in_every_layer) choose_every_layer();
    ask(Of::plan, 0);
  });
  connect(panel_.why_button(), &QPushButton::clicked, this, [this] { work_.explainer.want(); });
  connect(view_, &View::part_chosen, this, &WhyTab::choose_part);
  connect(view_, &View::asked, this, &WhyTab::ask);
  connect(view_, &View::stop_requested, this, [this] { work_.explainer.stop(); });
  connect(view_, &View::graph_requested, &work_.explainer, &Explainer::graph_wanted);
  connect(view_, &View::operators_picked, parts.selection(), &views::SelectionModel::pick_operators);
  on(ActionId::why, [this] { work_.explainer.want(); });
  follow_plan();
}

void WhyTab::set_model(const ScenarioPtr&) {
  again_.reset();
  asked_of_ = Of::plan, asked_index_ = 0;
  follow_plan();
}

void WhyTab::looked_at_changed(bool looked_at) {
  looked_at_ = looked_at;
  if (!looked_at) return;
  follow_operators();
  ask_again();
}

void WhyTab::follow_plan() {
  PlacedPlan now{work_.loader.result(), work_.loader.index()};
  now.sketch = std::ranges::any_of(work_.runner.runs(),
                                   [&](const MethodRun& run) { return run.result == now.result && run.coarse; });
  if (!now || !work_.plan_is_of_model() || !can_be_told(now)) now = {};
  if (!(now == plan_)) {
    if (plan_ && !plan_.sketch) before_ = plan_;
    if (const auto& asked = work_.explainer.question()) again_ = asked;
    plan_ = now;
    work_.explainer.set_plan(plan_);
    rest_.start();
  }
  const QString why_not = plan_ ? QString() : nothing_words();
  actions_.allow(ActionId::why, why_not);
  panel_.why_button()->setEnabled(why_not.isEmpty());
  panel_.why_button()->setToolTip(why_not.isEmpty() ? tr("What this plan is, and what other choices would cost")
                                                    : why_not);
  follow_operators();
}

QString WhyTab::nothing_words() const {
  const ScenarioPtr& scenario = work_.document.scenario();
  if (!scenario) return tr("Open a model to ask about its plans.");
  if (scenario->tasks || (work_.loader.picked_plan() && kind_of(*work_.loader.picked_plan()) == PlanKind::placement))
    return tr("Plans that split operators are explained; placements are not.");
  return tr("Pick a point in the chart to ask about its plan.");
}

/// The parts that choices can be for, the smallest that holds all that is picked first on show.
void WhyTab::follow_operators() {
  const auto& picked = work_.document.selection().operators();
  const std::string before = std::size_t(part_) < parts_.size() ? parts_[std::size_t(part_)].pattern : std::string();
  std::vector<AskedPart> parts;
  int chosen = 0;
  every_layer_ = -1;
  if (plan_) {
    const Model& model = *plan_.result->scenario->model;
    parts.push_back(asked_whole(model));
    if (work_.explainer.has_choices() && !picked.empty() && picked.rbegin()->index < model.operators.size()) {
      const OperatorId op = *picked.begin();
      const auto layer = asked_layer(model, op);
      const bool in_layer = layer && std::ranges::all_of(picked, [&](OperatorId other) {
                              return std::ranges::find(layer->operators, other) != layer->operators.end();
                            });
      if (picked.size() == 1) {
        parts.push_back(asked_operator(model, op));
        chosen = 1;
        if (const auto alike = asked_in_every_layer(model, op)) {
          every_layer_ = int(parts.size());
          parts.push_back(*alike);
        }
      }
      if (in_layer) {
        parts.push_back(*layer);
        if (picked.size() > 1) chosen = int(parts.size()) - 1;
      }
    }
  }
  const auto same = std::ranges::find(parts, before, &AskedPart::pattern);
  const bool other_parts = !std::ranges::equal(parts, parts_, {}, &AskedPart::pattern, &AskedPart::pattern);
  if (!other_parts && same != parts.end()) chosen = int(same - parts.begin());
  parts_ = std::move(parts);
  QStringList texts;
  for (const AskedPart& part : parts_)
    texts << (part.pattern == "*" ? tr("the whole plan")
              : part.operators.size() == 1
                  ? views::to_qt(part.pattern)
                  : tr("%1 (%2 operators)").arg(views::to_qt(part.pattern)).arg(part.operators.size()));
  view_->set_parts(texts, chosen);
  choose_part(chosen);
}

void WhyTab::choose_part(int index) {
  part_ = index;
  if (looked_at_ && plan_ && std::size_t(part_) < parts_.size())
    work_.explainer.want_choices(parts_[std::size_t(part_)]);
  show();
}

void WhyTab::choose_every_layer() {
  if (every_layer_ < 0) return;
  view_->part_box()->setCurrentIndex(every_layer_);
  choose_part(every_layer_);
}

Question WhyTab::choice_question(std::size_t index) const {
  const AskedPart& part = parts_[std::size_t(part_)];
  return {{{part.pattern, work_.explainer.choices_of(part)->choices[index].choice}}, {}, {}};
}

void WhyTab::ask(Of of, int index) {
  asked_of_ = of, asked_index_ = index;
  again_.reset();
  if (!plan_) return;
  switch (of) {
    case Of::plan: return work_.explainer.ask(plan_question());
    case Of::choice: return work_.explainer.ask(choice_question(std::size_t(index)));
    case Of::difference: return work_.explainer.ask(others_[std::size_t(index)].question);
  }
}

Question WhyTab::plan_question() const {
  Question question;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled && run.result && run.result != plan_.result && run.result->plans && !run.result->points.empty() &&
        run.result->scenario == plan_.result->scenario)
      question.beside.push_back(run.result);
  return question;
}

/// The same of the plan that is on show now; of another plan's neighbours only what it is.
void WhyTab::ask_again() {
  if (!looked_at_ || !plan_ || rest_.isActive() || work_.explainer.question()) return;
  if (!work_.runner.hand_rests()) return rest_.start();
  const bool same = again_ && !again_->other && (again_->rules.empty() || work_.explainer.has_choices());
  const Question question = same && !again_->rules.empty() ? *again_ : plan_question();
  again_.reset();
  if (question.rules.empty()) asked_of_ = Of::plan, asked_index_ = 0;
  work_.explainer.ask(question);
}

void WhyTab::add_pinned(std::vector<Other>& all) const {
  for (const views::PinnedFrontier& pinned : work_.document.pinned_here()) {
    Other other{tr("pinned: %1").arg(pinned.label), {}, {}};
    if (!pinned.result)
      other.why_not =
          tr("A session keeps the figures of pinned frontiers, not their plans. Set its scenario and pin it "
             "again.");
    else if (const std::size_t index = within(*pinned.result, plan_.result->points[plan_.index].memory_bytes);
             splits_operators(*pinned.result, index))
      other.question = {{}, {pinned.result, index, false}, pinned.label.toStdString()};
    else
      other.why_not = tr("Its plans do not split operators.");
    if (pinned.result == plan_.result && other.question.other.index == plan_.index) continue;
    all.push_back(std::move(other));
  }
}

void WhyTab::add_methods(std::vector<Other>& all) const {
  for (const MethodRun& run : work_.runner.runs()) {
    if (!run.enabled || !run.result || run.result == plan_.result || run.result->points.empty()) continue;
    if (run.result->scenario->model != plan_.result->scenario->model) continue;
    const Result& judged = *work_.judge.judged(run);
    const PlacedPlan other{run.result, judged.fastest_that_fits().value_or(judged.points.size() - 1), run.coarse};
    if (!splits_operators(*run.result, other.index)) continue;
    all.push_back({views::to_qt(run.label()), {}, {{}, other, run.label()}});
  }
}

std::vector<WhyTab::Other> WhyTab::others() const {
  std::vector<Other> all;
  if (!plan_ || !work_.explainer.has_choices()) return all;
  const MethodRun* run = work_.picked_run();
  const Result& result = run && run->result == plan_.result ? *work_.judge.judged(*run) : *plan_.result;
  const auto mark = [&](const QString& name, std::optional<std::size_t> index) {
    if (!index || *index == plan_.index) return;
    all.push_back({name, {}, {{}, {plan_.result, *index, false}, {}}});
  };
  mark(tr("turning point"), result.turning_point);
  mark(tr("fastest that fits"), result.fastest_that_fits());
  mark(tr("least memory"), std::size_t(0));
  if (before_ && !(before_ == plan_) && before_.result->scenario->model->name == plan_.result->scenario->model->name) {
    const bool same = before_.result == plan_.result;
    QString of;
    if (!same) {
      of = words_of_other(*before_.result->scenario, *plan_.result->scenario);
      if (of.isEmpty()) of = views::to_qt(before_.result->method);
    }
    all.push_back({tr("picked before"), {}, {{}, before_, of.toStdString()}});
  }
  add_pinned(all);
  add_methods(all);
  return all;
}

void WhyTab::show() {
  show_questions();
  const Explainer& explainer = work_.explainer;
  const views::ExplainedPtr answer = explainer.answer();
  view_->set_progress(explainer.busy() ? explainer.progress()
                      : answer         ? tr("answered in %1").arg(views::time_text(answer->seconds))
                                       : QString(),
                      explainer.busy());
  view_->set_answer(answer, !plan_                 ? nothing_words()
                            : explainer.stopped()  ? tr("Stopped before there was an answer.")
                            : explainer.busy()     ? tr("Working out the answer…")
                            : explainer.question() ? tr("There is no answer.")
                                                   : tr("Click a question."));
}

void WhyTab::show_questions() {
  std::vector<views::WhyQuestion> questions;
  QString note;
  others_ = others();
  const auto known = [&](const Question& question) {
    const auto answer = work_.explainer.answer_to(question);
    return answer ? answer->price : QString();
  };
  const auto& asked = work_.explainer.question();
  if (plan_) {
    questions.push_back({Of::plan, 0, tr("What this plan is"), {}, {}});
    const PartChoices* choices =
        std::size_t(part_) < parts_.size() ? work_.explainer.choices_of(parts_[std::size_t(part_)]) : nullptr;
    for (std::size_t i = 0; choices && i < choices->choices.size(); ++i) {
      const auto& [choice, already] = choices->choices[i];
      const Question question = choice_question(i);
      const QString price = known(question);
      questions.push_back({Of::choice,
                           int(i),
                           views::to_qt(describe(choice)),
                           !price.isEmpty() ? price
                           : already        ? tr("as it is")
                                            : QString(),
                           {}});
      if (asked && asked->key() == question.key()) asked_of_ = Of::choice, asked_index_ = int(i);
    }
    if (!choices)
      note = work_.explainer.busy() ? tr("Finding the choices…") : tr("The choices were not found: that was stopped.");
    else if (!choices->why_none.empty())
      note = views::to_qt(choices->why_none);
    else if (choices->choices.empty())
      note = tr("It has no choice.");
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const Other& other = others_[i];
      const QString price = other.why_not.isEmpty() ? known(other.question) : QString();
      questions.push_back({Of::difference, int(i), other.text,
                           !price.isEmpty()          ? price
                           : other.why_not.isEmpty() ? figures(other.question.other)
                                                     : QString(),
                           other.why_not});
      if (asked && asked->other && asked->key() == other.question.key())
        asked_of_ = Of::difference, asked_index_ = int(i);
    }
  }
  // A choice for another part than the one on show is not in the list.
  const bool listed =
      asked_of_ != Of::choice || !asked || asked->rules.empty() ||
      (std::size_t(part_) < parts_.size() && asked->rules.front().pattern == parts_[std::size_t(part_)].pattern);
  view_->set_questions(questions, note);
  view_->set_asked(asked_of_, asked && listed ? asked_index_ : -1);
}

Tab* why_tab(const TabParts& parts) { return new WhyTab(parts); }

}  // namespace turnpoint::app
