// SPDX-License-Identifier: Apache-2.0
#include "app/fit_judge.h"

#include <optional>

#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/schedule/fitting.h"
#include "views/common/format.h"

namespace turnpoint::app {

FitJudge::FitJudge(SearchRunner& runner, TaskManager& tasks, QObject* parent)
    : QObject(parent), runner_(runner), tasks_(tasks) {
  connect(&runner, &SearchRunner::result_changed, this, &FitJudge::update);
}

ResultPtr FitJudge::find(const std::string& method) const {
  const MethodRun* run = runner_.find(method);
  return run ? judged(*run) : nullptr;
}

ResultPtr FitJudge::judged(const MethodRun& run) const {
  const auto found = verdicts_.find(run.name);
  const bool known = found != verdicts_.end() && found->second.of == run.result && found->second.judged;
  return known ? found->second.judged : run.result;
}

void FitJudge::update() {
  for (const MethodRun& run : runner_.runs()) {
    if (!run.result) {
      verdicts_.erase(run.name);
      continue;
    }
    if (!run.enabled || run.coarse || !can_judge_fits(*run.result)) continue;
    const auto there = verdicts_.find(run.name);
    if (there != verdicts_.end() && there->second.of == run.result) continue;
    const auto asked = asked_.find(run.name);
    if (asked != asked_.end() && asked->second == run.result) continue;
    start(run);
  }
}

void FitJudge::start(const MethodRun& run) {
  asked_[run.name] = run.result;
  const auto there = verdicts_.find(run.name);
  auto made = std::make_shared<std::optional<Expected<ResultPtr>>>();
  tasks_.start(
      QStringLiteral("peaks:") + views::to_qt(run.name), tr("Peaks of %1").arg(views::to_qt(run.title)),
      [result = run.result, before = there == verdicts_.end() ? nullptr : there->second.judged,
       made](const RunContext& context) { made->emplace(judge_fits(result, context, before.get())); },
      [this, name = run.name, result = run.result, made](TaskOutcome outcome) {
        if (const auto now = asked_.find(name); now != asked_.end() && now->second == result) asked_.erase(now);
        if (outcome != TaskOutcome::finished || !*made) return;
        const Expected<ResultPtr>& judged = **made;
        if (!judged && judged.error().code == ErrorCode::cancelled) return;
        verdicts_[name] = {result, judged ? *judged : nullptr};
        // Why a plan cannot be simulated is said where its schedule would stand (Timeline, Memory).
        emit judged_changed(views::to_qt(name));
      });
}

}  // namespace turnpoint::app
