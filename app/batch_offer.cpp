// SPDX-License-Identifier: Apache-2.0
#include "app/batch_offer.h"

#include <optional>
#include <utility>

#include "app/document.h"
#include "app/fit_judge.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/search/fitting_batch.h"

namespace turnpoint::app {

namespace {
const QString kBatchPurpose = QStringLiteral("batch that fits");
}  // namespace

BatchOffer::BatchOffer(Document& document, SearchRunner& runner, FitJudge& judge, TaskManager& tasks, QObject* parent)
    : QObject(parent), document_(document), runner_(runner), judge_(judge), tasks_(tasks) {
  connect(&document, &Document::scenario_changed, this, &BatchOffer::withdraw);
  connect(&judge, &FitJudge::judged_changed, this, &BatchOffer::look);
  connect(&runner, &SearchRunner::became_settled, this, &BatchOffer::look);
}

void BatchOffer::withdraw() {
  tasks_.cancel_purpose(kBatchPurpose);
  looked_ = nullptr;
  if (std::exchange(offered_, false)) emit withdrawn();
}

void BatchOffer::look() {
  const ScenarioState& state = document_.state();
  const MethodRun* subject = runner_.subject();
  // Other methods, with micro-batches and pipelines, may fit where `ft` finds nothing: all of them are waited for.
  if (!state.scenario || state.scenario->tasks || !subject || !subject->result || subject->coarse ||
      subject->result->scenario != state.scenario || !runner_.settled() || !judge_.settled())
    return;
  for (const MethodRun& run : runner_.runs())
    if (run.enabled && run.result && judge_.judged(run)->fastest_that_fits()) return;
  if (state.scenario->settings.batch <= 1) return;
  if (std::exchange(looked_, state.scenario) == state.scenario) return;
  search();
}

void BatchOffer::search() {
  auto found = std::make_shared<std::optional<Expected<std::optional<std::int64_t>>>>();
  tasks_.start(
      kBatchPurpose, tr("Batch that fits"),
      [found, source = document_.state().source, scenario = document_.scenario()](const RunContext& context) {
        found->emplace(fitting_batch(*source, scenario, context));
      },
      [this, found](TaskOutcome outcome) {
        if (outcome != TaskOutcome::finished || !*found || !**found) return;
        offered_ = true;
        emit this->found((***found).value_or(0));
      });
}

}  // namespace turnpoint::app
