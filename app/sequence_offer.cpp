// SPDX-License-Identifier: Apache-2.0
#include "app/sequence_offer.h"

#include <QAction>

#include "app/actions.h"
#include "app/voice.h"
#include "app/workspace.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {
const QString kSequencePurpose = QStringLiteral("longest sequence");
}  // namespace

SequenceOffer::SequenceOffer(Workspace& work, const ActionSet& actions, Voice& voice)
    : QObject(&voice), work_(work), actions_(actions), voice_(voice) {
  connect(&work_.document, &Document::scenario_changed, this, &SequenceOffer::scenario_changed);
  connect(actions_[ActionId::longest_sequence], &QAction::triggered, this, &SequenceOffer::search);
  scenario_changed();
}

void SequenceOffer::scenario_changed() {
  work_.tasks.cancel_purpose(kSequencePurpose);
  voice_.bar().clear_errors(kSequencePurpose);
  const ScenarioPtr& scenario = work_.document.scenario();
  actions_.allow(ActionId::longest_sequence, !scenario ? tr("Nothing is open.")
                                             : scenario->tasks || scenario->model->sequence <= 0
                                                 ? tr("The model has no sequence to choose.")
                                                 : QString());
}

void SequenceOffer::search() {
  auto found = std::make_shared<std::optional<Expected<std::optional<LongestSequence>>>>();
  work_.tasks.start(
      kSequencePurpose, tr("Longest sequence that fits"),
      [found, source = work_.document.state().source, scenario = work_.document.scenario()](const RunContext& context) {
        found->emplace(longest_sequence(*source, scenario, context));
      },
      [this, found](TaskOutcome outcome) {
        if (outcome != TaskOutcome::finished || !*found) return;
        if (**found)
          tell(***found);
        else if ((**found).error().code != ErrorCode::cancelled)
          voice_.report_about((**found).error(), tr("Longest sequence that fits"), kSequencePurpose);
      });
}

void SequenceOffer::tell(const std::optional<LongestSequence>& found) {
  const Scenario& scenario = *work_.document.scenario();
  // Notes go by themselves, and with them the button.
  views::Message message{views::Message::Kind::warning, {}, {}, kSequencePurpose};
  if (!found) {
    message.what = tr("No sequence of batch %1, whole, fits %2, however short; micro-batches may make room.")
                       .arg(scenario.model->batch)
                       .arg(views::memory_text(scenario.memory_limit()));
  } else {
    message.what = tr("Longest sequence that fits with batch %1, whole: about %2.")
                       .arg(scenario.model->batch)
                       .arg(found->sequence);
    switch (found->end) {
      case LongestSequence::End::too_large: message.where = tr("A longer one was found that does not fit."); break;
      case LongestSequence::End::not_taken: message.where = tr("The model does not take the next longer one."); break;
      case LongestSequence::End::not_tried: message.where = tr("Longer ones are not looked at."); break;
    }
    if (found->sequence != scenario.model->sequence) {
      message.action = tr("Use sequence %1").arg(found->sequence);
      message.act = [this, sequence = found->sequence] { work_.document.set_option("sequence", double(sequence), 0); };
    }
  }
  voice_.bar().show_message(std::move(message));
}

}  // namespace turnpoint::app
