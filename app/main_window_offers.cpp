// SPDX-License-Identifier: Apache-2.0
// What the window says unasked: which settings it took from a model, and a batch with which something fits.
#include "app/batch_offer.h"
#include "app/document.h"
#include "app/main_window.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"

namespace turnpoint::app {

void MainWindow::connect_offers() {
  connect(document_.get(), &Document::built, this, &MainWindow::say_what_was_taken);
  auto* offer = new BatchOffer(*document_, *runner_, *judge_, *tasks_, this);
  const QString about = QStringLiteral("batch that fits");
  connect(offer, &BatchOffer::withdrawn, this, [this, about] { messages_->clear_errors(about); });
  connect(offer, &BatchOffer::found, this, [this, about](qint64 batch) {
    const Scenario& scenario = *document_->scenario();
    views::Message message{views::Message::Kind::warning,
                           tr("No plan of the checked methods fits %1 with batch %2.")
                               .arg(views::memory_text(scenario.memory_limit()))
                               .arg(scenario.model->batch),
                           {},
                           about};
    if (batch > 0) {
      message.where = tr("FT finds one that fits with batch %1.").arg(batch);
      message.action = tr("Use batch %1").arg(batch);
      message.act = [this, batch] { document_->set_option("batch", double(batch), 0); };
    } else {
      message.where =
          tr("FT finds none with a smaller batch either. More devices or memory, a shorter sequence or "
             "micro-batches (a split of your own) can help.");
    }
    messages_->show_message(std::move(message));
  });
}

/// Once for every model that is opened: what its file did not leave to the user.
void MainWindow::say_what_was_taken() {
  const ScenarioState& state = document_->state();
  // Of a built-in network only what its name says is stated: whoever named it knows.
  if (!state.scenario || state.model.starts_with("builtin:") ||
      std::exchange(said_of_, state.source.get()) == state.source.get())
    return;
  const auto& taken = state.scenario->taken;
  const bool stated = std::any_of(taken.begin(), taken.end(), [](const TakenSetting& one) { return one.stated; });
  if (stated) note(tr("Taken: %1").arg(views::to_qt(words_of(taken))));
}

}  // namespace turnpoint::app
