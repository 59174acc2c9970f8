// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/sweep_tab.h"

#include <QClipboard>
#include <QGuiApplication>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "app/content_digest.h"
#include "app/file_path.h"
#include "app/kept_work.h"
#include "app/voice.h"
#include "core/base/json.h"
#include "core/import/source/hidden_size.h"
#include "core/scenario/scenario_json.h"
#include "core/search/placement_search.h"
#include "views/common/counted.h"

namespace turnpoint::app {

namespace {

const QString kSweepPurpose = QStringLiteral("sweep");

/// Where a scenario's settings have the quantity; empty: nowhere.
const char* setting_of(Varied quantity) {
  switch (quantity) {
    case Varied::batch: return "batch";
    case Varied::sequence: return "sequence";
    case Varied::devices: return "devices";
    default: return "";
  }
}

}  // namespace

/// Where the worker leaves its answers while it goes on.
struct SweepTab::Mailbox {
  std::mutex mutex;
  std::vector<VariationCell> found;
  std::optional<Error> error;
  QElapsedTimer clock;
};

SweepTab::SweepTab(const TabParts& parts) : ViewTab(parts, "sweep", tr("Sweep"), new views::SweepView(parts.window)) {
  using View = views::SweepView;
  connect(view_, &View::run_requested, this, &SweepTab::start);
  connect(view_, &View::stop_requested, this, [this] { work_.tasks.cancel_purpose(kSweepPurpose); });
  connect(view_, &View::use_requested, this, &SweepTab::use);
  connect(view_, &View::turning_chosen, this, &SweepTab::show);
  connect(view_, &View::export_requested, this, &SweepTab::ask_export);
  connect(view_, &View::price_edited, this,
          [this](double price) { work_.document.set_option("price-per-hour", price, 0); });
  connect(view_->chart(), &views::SweepChart::picked_changed, this, &SweepTab::show_use);
  connect(&work_.document, &Document::scenario_changed, this, &SweepTab::scenario_changed);
  connect(&work_.document, &Document::model_changed, this, &SweepTab::show);
  connect(&work_.runner, &SearchRunner::runs_changed, this, &SweepTab::show);
  connect(&work_.runner, &SearchRunner::result_changed, this, &SweepTab::pick_wanted, Qt::QueuedConnection);
  connect(&work_.clock, &SimulatedClock::changed, this, &SweepTab::show);
  connect(&work_.tasks, &TaskManager::changed, this, [this] {
    if (running_ && looked_at_) show_state();
  });
}

void SweepTab::looked_at_changed(bool looked_at) {
  looked_at_ = looked_at;
  if (looked_at) show();
}

VariationSubject SweepTab::subject() const {
  const ScenarioState& state = work_.document.state();
  return {state.source, state.cluster, state.scenario->hardware, state.scenario->settings, state.scenario};
}

std::string SweepTab::subject_key(Varied quantity) const {
  const ScenarioState& state = work_.document.state();
  if (!state.scenario) return {};
  nlohmann::json object = write_scenario(*state.scenario);
  for (const char* key : {"taken", "price_per_hour", setting_of(quantity)}) object.erase(key);
  if (quantity == Varied::devices) object.erase("reserved_bytes");  // which depends on how many there are
  // Files and profiles may have changed under the same name.
  object["content"] = state.unbound;
  if (const auto sized = hidden_size_of(*state.source); sized && quantity == Varied::hidden) {
    object["model"] = (*sized)->with_hidden(1);
    object["content"] = text_digest((*sized)->others() + write_hardware_profile(*state.cluster));
  }
  return object.dump();
}

std::vector<views::SweepOffer> SweepTab::offers() const {
  std::vector<views::SweepOffer> list;
  if (!work_.document.scenario()) return list;
  const VariationSubject of = subject();
  for (const VariedQuantity& one : varied_quantities()) {
    const auto can = check_can_vary(one.quantity, of);
    list.push_back(
        {one.quantity, can ? QString() : views::to_qt(can.error().message()), usual_values(one.quantity, of)});
  }
  return list;
}

/// As the list shows them: what the scenario refuses is not checked there.
std::vector<VariedMethod> SweepTab::methods() const {
  std::vector<VariedMethod> list;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled && run.refusal.empty()) list.push_back({run.method, run.parameters});
  return list;
}

void SweepTab::start(const VariedAxis& axis) {
  if (running_ || !work_.document.scenario()) return;
  VariationRequest request{subject(), axis, {}, [&backend = work_.backend](const std::string& specification) {
                             return backend.open_model(specification);
                           }};
  std::map<std::string, ResultPtr> answered;
  for (const MethodRun& run : work_.runner.runs()) {
    // Of a session an answer may have no plans, by whose peaks fitting would be judged.
    const bool whole = run.result && !run.coarse && run.result->plans && !search::stopped_early(*run.result);
    if (whole && run.result->scenario == work_.document.scenario()) answered[run.name] = run.result;
  }
  request.methods = varied_methods(methods(), axis.quantity);
  if (request.methods.empty()) return;
  request.known = [answered = std::move(answered)](const std::string& method) {
    const auto found = answered.find(method);
    return found == answered.end() ? nullptr : found->second;
  };
  sweep_ = std::make_shared<const Variation>(variation_of(request));
  subject_key_ = subject_key(axis.quantity);
  ended_words_.clear();
  auto mailbox = std::make_shared<Mailbox>();
  mailbox->clock.start();
  running_ = mailbox;
  work_.tasks.start(
      kSweepPurpose, tr("Sweep"),
      [this, mailbox, request = std::move(request)](const RunContext& context) {
        const auto done = run_variation(request, context, [&](const VariationCell& cell) {
          {
            const std::lock_guard lock(mailbox->mutex);
            mailbox->found.push_back(cell);
          }
          QMetaObject::invokeMethod(
              this, [this, mailbox] { take(mailbox); }, Qt::QueuedConnection);
        });
        if (!done) mailbox->error = done.error();
      },
      [this, mailbox](TaskOutcome outcome) { ended(mailbox, outcome == TaskOutcome::finished); });
  show();
}

void SweepTab::take(const std::shared_ptr<Mailbox>& mailbox) {
  if (mailbox != running_) return;
  std::vector<VariationCell> found;
  {
    const std::lock_guard lock(mailbox->mutex);
    found.swap(mailbox->found);
  }
  if (found.empty()) return;
  auto next = std::make_shared<Variation>(*sweep_);
  for (VariationCell& cell : found) next->put(std::move(cell));
  next->search_s = double(mailbox->clock.elapsed()) / 1e3;
  sweep_ = std::move(next);
  show();
}

void SweepTab::ended(const std::shared_ptr<Mailbox>& mailbox, bool finished) {
  if (mailbox != running_) return;
  take(mailbox);
  running_.reset();
  const bool cancelled = mailbox->error && mailbox->error->code == ErrorCode::cancelled;
  const std::size_t asked = sweep_->methods.size() * sweep_->axis.values.size();
  if (mailbox->error && !cancelled) {
    voice_.report(*mailbox->error, tr("Sweep"));
  } else if (!finished || cancelled) {
    ended_words_ = tr("stopped with %1 of %2 answers").arg(sweep_->cells.size()).arg(asked);
  }
  if (sweep_->cells.empty()) sweep_.reset();
  show();
}

void SweepTab::scenario_changed() {
  if (wanted_ && sweep_ && work_.document.scenario()) {
    const bool own =
        wanted_->quantity == Varied::micro_batches || own_value(wanted_->quantity, subject()) == wanted_->value;
    if (!own || subject_key(wanted_->quantity) != subject_key_) wanted_.reset();
  }
  show();
}

std::shared_ptr<const Variation> SweepTab::priced() const {
  const auto price = work_.document.scenario()->price_per_hour();
  auto next = std::make_shared<Variation>(*sweep_);
  for (VariationCell& cell : next->cells)
    if (cell.devices > 0) cell.price_per_hour = price;
  return next;
}

QString SweepTab::nothing_words() const {
  if (!work_.document.scenario())
    return tr(
        "Open a model to see how time, peak memory and price change with its batch, sequence, devices, "
        "micro-batches or hidden size");
  if (!methods().empty())
    return tr(
        "Run asks each checked method at each value, everything else as it stands: how long a step of its "
        "fastest plan that fits takes, what it needs, and what it costs");
  return tr("No method is checked; check one in the list of methods");
}

void SweepTab::show() {
  if (!looked_at_) return;
  const ScenarioPtr& scenario = work_.document.scenario();
  views::SweepData data;
  data.simulated = work_.clock.on();
  data.turning = view_->turning();
  for (const MethodRun& run : work_.runner.runs()) data.labels[run.name] = views::to_qt(run.label());
  if (sweep_ && (scenario || !sweep_->cells.empty())) {
    const Varied quantity = sweep_->axis.quantity;
    data.stale = !scenario || subject_key(quantity) != subject_key_;
    data.sweep = data.stale ? sweep_ : priced();
    if (!data.stale) data.current = own_value(quantity, subject());
  } else {
    data.nothing = nothing_words();
  }
  view_->set_offers(offers());
  view_->set_price(scenario ? scenario->price_per_hour().value_or(0) : 0,
                   scenario && scenario->settings.price_per_hour > 0);
  view_->set_data(std::move(data));
  show_state();
  show_use();
}

void SweepTab::show_state() {
  views::SweepState state;
  state.running = running();
  state.can_run = !methods().empty() && work_.document.scenario() && !work_.document.building();
  state.words = ended_words_;
  if (running_) {
    state.words = {};
    for (const TaskInfo& task : work_.tasks.tasks())
      if (task.purpose == kSweepPurpose) state.fraction = task.fraction, state.words = task.phase;
  } else if (sweep_ && state.words.isEmpty()) {
    state.words = views::counted(double(sweep_->cells.size()), tr("1 answer"), tr("%1 answers")) +
                  tr(" in %1").arg(views::search_time_text(sweep_->search_s));
  }
  view_->set_state(state);
}

QString SweepTab::why_not_used() const {
  const auto& picked = view_->chart()->picked();
  const views::SweepData& data = view_->chart()->data();
  if (!picked || !data.sweep) return tr("Click a point in the chart first");
  if (data.stale) return tr("The sweep is of another scenario");
  const VariationCell* cell = data.sweep->find(picked->value, picked->method);
  if (!cell) return tr("Not asked yet");
  return cell->state == VariationCell::State::cannot_be ? views::to_qt(cell->reason) : QString();
}

void SweepTab::show_use() {
  const auto& picked = view_->chart()->picked();
  const views::SweepData& data = view_->chart()->data();
  if (!picked || !data.sweep) return view_->set_use({}, {}, false);
  const Varied quantity = data.sweep->axis.quantity;
  const bool parts = quantity == Varied::micro_batches;
  const QString value = views::value_words(quantity, picked->value);
  const bool own = !parts && picked->value == data.current;
  const QString words = parts ? tr("Add %1, %2").arg(data.label(picked->method), value)
                        : own ? tr("Pick its plan")
                              : tr("Use %1").arg(value);
  const QString why_not = why_not_used();
  const QString tip = parts ? tr("Add this variant to the methods, and pick its plan")
                      : own ? tr("Pick this plan in the chart above")
                            : tr("Make this the scenario, and pick the plan; can be undone");
  view_->set_use(words, why_not.isEmpty() ? tip : why_not, why_not.isEmpty());
}

void SweepTab::use() {
  if (!why_not_used().isEmpty()) return;
  const auto picked = *view_->chart()->picked();
  const views::SweepData& data = view_->chart()->data();
  const Varied quantity = data.sweep->axis.quantity;
  const VariationCell* cell = data.sweep->find(picked.value, picked.method);
  std::string name = picked.method;
  if (quantity == Varied::micro_batches) {
    const auto colon = name.find(':');
    const std::string parameters = colon == std::string::npos ? std::string() : name.substr(colon + 1);
    name = name.substr(0, colon) + ':' + varied_parameters({nullptr, parameters}, quantity, picked.value);
  }
  wanted_.reset();
  if (const VariedPlan* plan = views::shown_plan(data, *cell)) wanted_ = Wanted{quantity, picked.value, name, *plan};
  if (quantity == Varied::micro_batches) {
    if (const auto added = work_.runner.add_split(name); !added) voice_.report(added.error(), tr("Sweep"));
  } else if (picked.value != data.current && quantity == Varied::hidden) {
    if (const auto sized = hidden_size_of(*work_.document.state().source))
      work_.document.open_resized((*sized)->with_hidden(picked.value));
  } else if (picked.value != data.current) {
    work_.document.set_option(setting_of(quantity), double(picked.value), 0);
  }
  pick_wanted();
}

/// The search of that scenario finds the same points as the sweep did.
void SweepTab::pick_wanted() {
  if (!wanted_ || !work_.document.scenario() || work_.document.building()) return;
  const MethodRun* run = work_.runner.find(wanted_->method);
  if (!run || !run->result || run->coarse || run->result->scenario != work_.document.scenario()) return;
  if (wanted_->quantity != Varied::micro_batches && own_value(wanted_->quantity, subject()) != wanted_->value) return;
  const VariedPlan& plan = wanted_->plan;
  const auto& points = run->result->points;
  if (plan.point < points.size() && points[plan.point].time_s == plan.time_s &&
      points[plan.point].memory_bytes == plan.memory_bytes)
    work_.document.selection().pick_point(views::PickedPoint{run->name, plan.point});
  wanted_.reset();
}

void SweepTab::ask_export(const QString& what) {
  if (what == QStringLiteral("copy"))
    return QGuiApplication::clipboard()->setText(views::sweep_rows(view_->chart()->data()));
  if (what != QStringLiteral("csv") && what != QStringLiteral("json")) return ask_export_picture(what);
  voice_.ask_save(tr("Export sweep"), QStringLiteral("sweep.") + what, filter_of(what),
                  [this](const QString& path) { export_to(path); });
}

bool SweepTab::export_to(const QString& path) {
  const auto& shown = view_->chart()->data().sweep;
  const bool csv = path.endsWith(QStringLiteral(".csv"), Qt::CaseInsensitive);
  const bool done =
      shown && write_file_atomically(to_path(path), csv ? variation_csv(*shown) : write_variation(*shown)).has_value();
  voice_.tell_written(done, path, tr("Export sweep"));
  return done;
}

QJsonObject SweepTab::save_state() const {
  QJsonObject state = view_->save_state();
  if (sweep_ && !sweep_->cells.empty()) {
    state[QStringLiteral("sweep")] = views::to_qt(write_variation(*sweep_));
    state[QStringLiteral("subject")] = views::to_qt(subject_key_);
  }
  return state;
}

void SweepTab::restore_state(const QJsonObject& state) {
  if (running_) {
    running_.reset();
    work_.tasks.cancel_purpose(kSweepPurpose);
  }
  sweep_.reset();
  wanted_.reset();
  ended_words_.clear();
  if (const QString text = state[QStringLiteral("sweep")].toString(); !text.isEmpty()) {
    auto read = read_variation(text.toStdString(), "session");
    if (read)
      sweep_ = std::make_shared<const Variation>(std::move(*read));
    else
      voice_.report(read.error(), tr("Sweep"));
  }
  subject_key_ = state[QStringLiteral("subject")].toString().toStdString();
  view_->restore_state(state);
  show();
}

void SweepTab::add_to(KeptWork& work) const {
  if (sweep_ && !running_ && !sweep_->cells.empty()) work.sweep = sweep_;
}

Tab* sweep_tab(const TabParts& parts) { return new SweepTab(parts); }

}  // namespace turnpoint::app
