// SPDX-License-Identifier: Apache-2.0
#include "app/document.h"

#include <memory>

#include "app/scenario_builder.h"
#include "app/scenario_command.h"
#include "app/start_page.h"
#include "app/task_manager.h"
#include "core/base/named_file.h"
#include "core/scenario/task_scenario.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {
constexpr int kUndoSteps = 200;
const QString kBuild = QStringLiteral("scenario");
}  // namespace

Document::Document(const SearchBackend& backend, TaskManager& tasks, QObject* parent)
    : QObject(parent), backend_(backend), tasks_(tasks) {
  undo_.setUndoLimit(kUndoSteps);
}

ScenarioRequest Document::request() const {
  if (wanted_) return *wanted_;
  ScenarioRequest now{state_.model, state_.hardware, state_.scenario ? state_.scenario->settings : Settings()};
  now.given = given_in(state_);
  now.usual_hardware = usual_hardware_.empty() ? samples().front().hardware : usual_hardware_;
  return now;
}

void Document::apply(const ScenarioState& state, bool live) {
  // An undo while something is still being opened means: not that.
  if (building_) tasks_.cancel_purpose(kBuild);
  const ModelPtr before = state_.scenario ? state_.scenario->model : nullptr;
  state_ = state;
  if (state.hardware != kFileHardware) usual_hardware_ = state.hardware;
  if (before != (state_.scenario ? state_.scenario->model : nullptr)) {
    selection_.pick_operators({});
    emit model_changed();
  }
  emit scenario_changed(live);
}

void Document::push(ScenarioState next, const QString& text, quint64 gesture) {
  undo_.push(new ScenarioCommand(*this, state_, std::move(next), text, gesture));
}

void Document::open_model(const std::string& specification) {
  ScenarioRequest next = request();
  next.model = absolute_name(specification);
  next.given = {false, false, false};  // another model has other defaults
  next.model_chooses_hardware = true;
  build(next, tr("Open %1").arg(views::to_qt(specification)), false);
}

void Document::open_resized(const std::string& specification) {
  ScenarioRequest next = request();
  next.model = absolute_name(specification);
  build(next, tr("Open %1").arg(views::to_qt(specification)), false);
}

void Document::close_model() {
  if (state_.scenario) push({}, tr("Close model"), 0);
}

void Document::open_hardware(const std::string& specification, bool read_again) {
  ScenarioRequest next = request();
  next.read_hardware_again = next.read_hardware_again || read_again;
  if (next.hardware == kFileHardware || specification == kFileHardware) next.settings.memory_limit = 0;
  next.hardware = absolute_name(specification);
  next.model_chooses_hardware = false;
  next.settings.devices = 0;
  build(next, tr("Hardware %1").arg(views::to_qt(specification)), false);
}

void Document::open(const ScenarioRequest& asked, std::function<void()> then) {
  ScenarioRequest wanted = asked;
  wanted.model = absolute_name(asked.model);
  wanted.hardware = absolute_name(asked.hardware);
  build(wanted, tr("Open"), true, std::move(then));
}

void Document::build(const ScenarioRequest& wanted, const QString& text, bool clear_history,
                     std::function<void()> then) {
  auto outcome = std::make_shared<std::optional<Expected<ScenarioState>>>();
  wanted_ = wanted;
  building_ = true;
  emit building_changed();
  const QString title = wanted.model == state_.model ? text : tr("Open %1").arg(views::to_qt(wanted.model));
  tasks_.start(
      kBuild, title,
      [this, wanted, before = state_, outcome](const RunContext&) {
        outcome->emplace(build_scenario(backend_, wanted, before));
      },
      [this, outcome, text, clear_history, then = std::move(then)](TaskOutcome ended) {
        if (ended == TaskOutcome::superseded) return;  // the newer one reports
        building_ = false;
        wanted_.reset();
        emit building_changed();
        if (ended == TaskOutcome::cancelled || !outcome->has_value()) return;
        if (!**outcome) {
          emit failed((*outcome)->error(), text);
          return;
        }
        if (clear_history) {
          undo_.clear();
          apply(***outcome, false);
        } else {
          push(***outcome, text, 0);
        }
        emit built();
        if (then) then();
      });
}

void Document::edit_settings(const Settings& settings, const QString& text, quint64 gesture) {
  if (!state_.scenario) return;
  const ScenarioRequest base = request();
  if (settings == base.settings) return;
  if (building_ || needs_build(state_.scenario->settings, settings)) {
    ScenarioRequest next = base;
    next.settings = settings;
    next.given.batch = next.given.batch || settings.batch != base.settings.batch;
    next.given.sequence = next.given.sequence || settings.sequence != base.settings.sequence;
    next.given.precision = next.given.precision || settings.precision != base.settings.precision;
    build(next, text, false);
    return;
  }
  push(with_settings(state_, settings), text, gesture);
}

void Document::set_option(const std::string& key, double value, quint64 gesture) {
  Settings settings = request().settings;
  turnpoint::set_option(settings, key, value);
  QString label = views::to_qt(key);
  for (const OptionRecord& option : scenario_options())
    if (option.key == key) label = views::to_qt(option.text);
  edit_settings(settings, tr("%1").arg(label), gesture);
}

void Document::set_devices_and_batch(int devices, std::int64_t batch) {
  Settings settings = request().settings;
  turnpoint::set_option(settings, "devices", devices);
  turnpoint::set_option(settings, "batch", static_cast<double>(batch));
  edit_settings(settings, tr("Devices and batch"), 0);
}

void Document::reset_factors() {
  Settings settings = request().settings;
  settings.factors = {};
  edit_settings(settings, tr("Reset what-if"), 0);
}

void Document::set_memory_limit(std::int64_t bytes, quint64 gesture) {
  if (!state_.scenario || bytes <= 0) return;
  Settings settings = request().settings;
  if (state_.scenario->cluster->device.memory_bytes == kUnlimitedBytes) {
    // A task graph whose file states no memory: there is nothing that a factor could scale.
    settings.memory_limit = bytes;
    edit_settings(settings, tr("Memory limit"), gesture);
    return;
  }
  // The line is the memory slider under another hand: an explicit limit would make the two disagree.
  settings.memory_limit = 0;
  const auto with_reserve = static_cast<double>(bytes + state_.scenario->reserved_bytes());
  double factor = with_reserve / static_cast<double>(state_.scenario->cluster->device.memory_bytes);
  if (factor > 0.985 && factor < 1.015) factor = 1;  // the slider's detent
  settings.factors.device_memory = std::min(std::max(factor, 0.125), 8.0);
  edit_settings(settings, tr("Device memory"), gesture);
}

void Document::pin(views::PinnedFrontier frontier) {
  pinned_.push_back(std::move(frontier));
  emit pinned_changed();
}

void Document::set_pinned(std::vector<views::PinnedFrontier> pinned) {
  pinned_ = std::move(pinned);
  emit pinned_changed();
}

bool Document::is_of_this_model(const views::PinnedFrontier& pinned) const {
  return pinned.model.empty() || (state_.scenario && pinned.model == state_.scenario->model->name);
}

std::vector<views::PinnedFrontier> Document::pinned_here() const {
  std::vector<views::PinnedFrontier> here;
  for (const views::PinnedFrontier& each : pinned_)
    if (is_of_this_model(each)) here.push_back(each);
  return here;
}

void Document::clear_pinned() {
  std::erase_if(pinned_, [this](const views::PinnedFrontier& each) { return is_of_this_model(each); });
  emit pinned_changed();
}

}  // namespace turnpoint::app
