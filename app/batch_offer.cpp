// SPDX-License-Identifier: Apache-2.0
#include "app/batch_offer.h"

#include <optional>
#include <utility>

#include "app/voice.h"
#include "app/workspace.h"
#include "core/search/fitting_batch.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {
const QString kBatchPurpose = QStringLiteral("batch that fits");
}  // namespace

BatchOffer::BatchOffer(Workspace& work, Voice& voice) : QObject(&voice), work_(work), voice_(voice) {
  connect(&work_.document, &Document::scenario_changed, this, &BatchOffer::withdraw);
  connect(&work_.judge, &FitJudge::judged_changed, this, &BatchOffer::look);
  connect(&work_.runner, &SearchRunner::became_settled, this, &BatchOffer::look);
}

void BatchOffer::withdraw() {
  work_.tasks.cancel_purpose(kBatchPurpose);
  looked_ = nullptr;
  if (std::exchange(offered_, false)) voice_.bar().clear_errors(kBatchPurpose);
}

void BatchOffer::look() {
  const ScenarioState& state = work_.document.state();
  const MethodRun* subject = work_.runner.subject();
  // Other methods, with micro-batches and pipelines, may fit where `ft` finds nothing: all of them are waited for.
  if (!state.scenario || state.scenario->tasks || !subject || !subject->result || subject->coarse ||
      subject->result->scenario != state.scenario || !work_.runner.settled() || !work_.judge.settled())
    return;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled && run.result && work_.judge.judged(run)->fastest_that_fits()) return;
  if (state.scenario->settings.batch <= 1) return;
  if (std::exchange(looked_, state.scenario) == state.scenario) return;
  search();
}

void BatchOffer::search() {
  auto found = std::make_shared<std::optional<Expected<std::optional<std::int64_t>>>>();
  work_.tasks.start(
      kBatchPurpose, tr("Batch that fits"),
      [found, source = work_.document.state().source, scenario = work_.document.scenario()](const RunContext& context) {
        found->emplace(fitting_batch(*source, scenario, context));
      },
      [this, found](TaskOutcome outcome) {
        if (outcome != TaskOutcome::finished || !*found || !**found) return;
        offered_ = true;
        offer((***found).value_or(0));
      });
}

void BatchOffer::offer(std::int64_t batch) {
  const Scenario& scenario = *work_.document.scenario();
  views::Message message{views::Message::Kind::warning,
                         tr("No plan of the checked methods fits %1 with batch %2.")
                             .arg(views::memory_text(scenario.memory_limit()))
                             .arg(scenario.model->batch),
                         {},
                         kBatchPurpose};
  if (batch > 0) {
    message.where = tr("FT finds one that fits with batch %1.").arg(batch);
    message.action = tr("Use batch %1").arg(batch);
    message.act = [this, batch] { work_.document.set_option("batch", double(batch), 0); };
  } else {
    message.where =
        tr("FT finds none with a smaller batch either. More devices or memory, a shorter sequence or "
           "micro-batches (a split of your own) can help.");
  }
  voice_.bar().show_message(std::move(message));
}

}  // namespace turnpoint::app
