// SPDX-License-Identifier: Apache-2.0
// From the scenario to what the panel's rows show.
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLayout>
#include <QLineEdit>
#include <QSpinBox>
#include <QToolButton>
#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "core/scenario/task_scenario.h"
#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/price_box.h"
#include "views/common/section_head.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/shape_boxes.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/specification_box.h"
#include "views/scenario/what_if_slider.h"

namespace turnpoint::views {

namespace {

double baseline_of(const QString& key, const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  if (key.contains(u"intra")) return cluster.links[kIntraNode].bandwidth;
  if (key.contains(u"inter")) return cluster.links[kInterNode].bandwidth;
  if (key.contains(u"latency")) return cluster.links[cluster.nodes > 1 ? kInterNode : kIntraNode].latency_s;
  if (key.contains(u"memory")) return static_cast<double>(cluster.device.memory_bytes);
  const Precision precision = scenario.settings.precision;
  return precision == Precision::fp8 ? cluster.device.peak_fp8 : cluster.device.peak(precision);
}

/// What a task graph has in its file already: these rows have nothing to say about it.
bool is_of_models(const QString& key) {
  for (const char16_t* mine : {u"devices", u"seed", u"price-per-hour"})
    if (key == mine) return false;
  return true;
}

/// "bf16 and sequence 4096 as its file says": what was taken and is still so.
QString stated_words(const Scenario& scenario) {
  QStringList stated;
  for (const TakenSetting& taken : scenario.taken)
    if (taken.stated)
      stated << (taken.key == "precision" ? to_qt(taken.value) : to_qt(taken.key) + u' ' + to_qt(taken.value));
  return stated.isEmpty() ? QString() : QObject::tr("%1: its own").arg(stated.join(QStringLiteral(", ")));
}

/// A caption that may be cut says all of it in its tool tip.
void say(QLabel& caption, const QString& text) {
  caption.setText(text);
  caption.setToolTip(text);
}

/// Nothing stands for what the hardware says of its reserve.
void show_bytes(QDoubleSpinBox& box, const QString& key, double bytes, const Scenario* scenario) {
  if (key == u"reserve") {
    const std::int64_t own = scenario ? scenario->cluster->device.reserve_bytes : 0;
    box.setSpecialValueText(own > 0 ? memory_text(own) : QObject::tr("none"));
  }
  box.setValue(bytes / kMebibyte);
}

bool is_as_file(const ScenarioView& view) {
  return view.scenario && view.scenario->tasks && view.scenario->hardware == kFileHardware;
}

}  // namespace

void ScenarioPanel::set_choices(std::vector<Choice> models, std::vector<Choice> hardware) {
  model_choices_ = std::move(models);
  hardware_choices_ = std::move(hardware);
  show_model();
  show_machine();
}

void ScenarioPanel::set_methods(std::vector<MethodRow> rows) {
  int on = 0, able = 0;
  std::vector<bool> enabled;
  for (const MethodRow& row : rows) {
    on += row.enabled;
    able += row.state != MethodRow::State::refused;
    enabled.push_back(row.enabled);
  }
  methods_head_->set_value(tr("%1 of %2 on").arg(on).arg(able));
  methods_.set_rows(std::move(rows));
  // Until the user ticks one, whoever opens a model or a session decides which are used; then rows stay where they are.
  const bool changed = enabled != enabled_;
  enabled_ = std::move(enabled);
  if (std::exchange(fold_again_, false) || (changed && folds_by_itself_)) methods_list_->fold_again();
}

void ScenarioPanel::set_scenario(const ScenarioView& view) {
  const bool same_model = view_.scenario && view.scenario && view_.scenario->model == view.scenario->model &&
                          view_.model_specification == view.model_specification;
  const bool same_machine = view_.scenario && view.scenario && view_.scenario->cluster == view.scenario->cluster &&
                            view_.hardware_specification == view.hardware_specification;
  view_ = view;
  // While a slider is dragged only the sliders change; refilling the boxes sixty times a second would be waste.
  if (!same_model) fold_again_ = folds_by_itself_ = true;  // other methods suit another model
  if (!same_model) show_model();
  if (!same_machine || !same_model) show_machine();
  show_options();
  show_limit();
  show_sliders();
}

void ScenarioPanel::show_model() {
  const Model* model = view_.scenario ? view_.scenario->model.get() : nullptr;
  model_box_->fill(model_choices_, view_.model_specification, model ? to_qt(model->name) : QString());
  if (const TaskGraph* tasks = view_.scenario ? view_.scenario->tasks.get() : nullptr) {
    QStringList parts{counted(double(tasks->task_count()), tr("1 task"), tr("%1 tasks")),
                      counted(double(tasks->edge_count()), tr("1 edge"), tr("%1 edges"))};
    const auto held = std::accumulate(tasks->persistent_bytes.begin(), tasks->persistent_bytes.end(), std::int64_t(0));
    const auto made = std::accumulate(tasks->output_bytes.begin(), tasks->output_bytes.end(), std::int64_t(0));
    if (held > 0) parts << tr("%1 persistent").arg(memory_text(held));
    if (made > 0) parts << tr("%1 of tensors").arg(memory_text(made));
    if (tasks->groups.size() > 0) parts << counted(double(tasks->groups.size()), tr("1 group"), tr("%1 groups"));
    say(*model_note_, parts.join(QStringLiteral(" · ")));
    return;
  }
  say(*model_note_, model ? tr("%1 parameters · %2 operators")
                                .arg(to_qt(format_count(static_cast<double>(model->parameters))))
                                .arg(model->operators.size())
                          : tr("none open"));
  if (const auto found = editors_.find(QStringLiteral("sequence")); found != editors_.end())
    found->second->setEnabled(model && model->sequence > 0);
}

void ScenarioPanel::show_machine() {
  const Cluster* cluster = view_.scenario ? view_.scenario->cluster.get() : nullptr;
  std::vector<Choice> choices = hardware_choices_;
  if (view_.scenario && view_.scenario->tasks)
    choices.insert(choices.begin(), {tr("As the file says"), QString::fromLatin1(kFileHardware),
                                     tr("The links and devices that the task graph's own file describes")});
  hardware_box_->fill(choices, view_.hardware_specification, cluster ? to_qt(cluster->title) : QString());
  if (!cluster) {
    say(*hardware_note_, QString());
    return;
  }
  if (is_as_file(view_)) {
    const bool stated = !view_.scenario->tasks->out_seconds.empty();
    const bool limited = cluster->device.memory_bytes != kUnlimitedBytes;
    say(*hardware_note_, (stated ? tr("transfer times stated") : tr("links of the file")) +
                             (limited ? tr(" · %1 a device").arg(memory_text(cluster->device.memory_bytes))
                                      : tr(" · no memory stated")));
    return;
  }
  const bool measured = !cluster->collectives.empty() || !cluster->operators.empty();
  QStringList links;
  if (cluster->devices_per_node > 1) links << to_qt(cluster->links[kIntraNode].name);
  if (cluster->nodes > 1) links << to_qt(cluster->links[kInterNode].name);
  if (!cluster->pods.empty()) links << tr("pods of %1 nodes").arg(cluster->pods.front().nodes);
  say(*hardware_note_, (measured ? tr("measured") : tr("nominal")) +
                           (links.isEmpty() ? QString() : QStringLiteral(" · ") + links.join(QStringLiteral(", "))));
}

void ScenarioPanel::show_options() {
  const bool open = view_.scenario != nullptr;
  taken_note_->setText(open ? stated_words(*view_.scenario) : QString());
  taken_note_->setToolTip(open ? to_qt(words_of(view_.scenario->taken)) : QString());
  for (const auto& [key, editor] : editors_) {
    const QSignalBlocker quiet(editor);
    if (!open)
      editor->setEnabled(false);
    else if (key != u"sequence")
      editor->setEnabled(!(view_.scenario->tasks && is_of_models(key)));
    double value = get_option(open ? view_.scenario->settings : Settings(), key.toStdString());
    // Zero means "the default" in these two; the boxes show what that is.
    if (open && key == u"sequence" && value == 0) value = static_cast<double>(view_.scenario->model->sequence);
    if (open && key == u"batch" && value == 0) value = static_cast<double>(view_.scenario->model->batch);
    if (auto* box = qobject_cast<QComboBox*>(editor)) box->setCurrentIndex(static_cast<int>(value));
    if (auto* box = qobject_cast<QSpinBox*>(editor)) box->setValue(static_cast<int>(std::min(value, 2147483647.0)));
    if (auto* box = qobject_cast<QDoubleSpinBox*>(editor)) {
      if (key == u"price-per-hour")
        show_price(*box, open ? view_.scenario->price_per_hour().value_or(0) : value, value > 0);
      else
        show_bytes(*box, key, value, view_.scenario.get());
    }
    if (auto* box = qobject_cast<QCheckBox*>(editor)) box->setChecked(value != 0);
  }
  if (shape_) shape_->show_shape(view_);
  tasks_note_->setVisible(open && view_.scenario->tasks != nullptr);
}

QWidget* ScenarioPanel::editor_of(const QString& key) const {
  if (key == u"devices" && shape_) return shape_->nodes()->isEnabled() ? shape_->nodes() : shape_->devices();
  if (SliderRow* row = slider_row(key)) return row->slider();
  const auto found = editors_.find(key);
  return found != editors_.end() ? found->second : nullptr;
}

bool ScenarioPanel::has_setting(const QString& key) const {
  const QWidget* editor = editor_of(key);
  return editor && (editor->isEnabled() || slider_row(key));
}

void ScenarioPanel::focus_setting(const QString& key) {
  QWidget* editor = editor_of(key);
  if (!editor) return;
  auto* more = findChild<QToolButton*>(QStringLiteral("more_settings"));
  if (more && !editor->isVisibleTo(this)) more->setChecked(true);
  editor->setFocus(Qt::ShortcutFocusReason);
  widget()->layout()->activate();
  ensureWidgetVisible(editor);
}

void ScenarioPanel::show_limit() {
  const bool shown = is_as_file(view_) && view_.scenario->cluster->device.memory_bytes == kUnlimitedBytes;
  limit_label_->setVisible(shown);
  limit_line_->setVisible(shown);
  if (!shown || limit_line_->hasFocus()) return;
  const std::int64_t limit = view_.scenario->settings.memory_limit;
  limit_line_->setText(limit > 0 ? memory_text(limit) : QString());
}

void ScenarioPanel::show_sliders() {
  bool any = false;
  for (const auto& [key, row] : sliders_) {
    if (!view_.scenario) {
      row->set_disabled_reason(tr("no model open"));
      continue;
    }
    const Cluster& cluster = *view_.scenario->cluster;
    QString reason;
    if (key.contains(u"intra") && cluster.devices_per_node < 2) reason = tr("1 device per node");
    if (key.contains(u"inter") && cluster.nodes < 2) reason = tr("1 node");
    if (key.contains(u"latency") && cluster.devices() < 2) reason = tr("1 device");
    const bool as_file = is_as_file(view_);
    if (as_file && key.contains(u"memory") && cluster.device.memory_bytes == kUnlimitedBytes) reason = tr("not stated");
    if (as_file && key.contains(u"latency") && reason.isEmpty()) {
      if (!view_.scenario->tasks->out_seconds.empty())
        reason = tr("in the file's times");
      else if (cluster.links[kIntraNode].latency_s == 0)
        reason = tr("none in the file");
    }
    const double factor = get_option(view_.scenario->settings, key.toStdString());
    any = any || factor != 1;
    // The file's seconds have no rate behind them: the slider then says its factor alone.
    const bool no_rate = as_file && (key.contains(u"speed") ||
                                     (key.contains(u"bandwidth") && !view_.scenario->tasks->out_seconds.empty()));
    row->set_value(factor, no_rate ? 0 : baseline_of(key, *view_.scenario));
    row->set_disabled_reason(reason);
  }
  what_if_head_->set_link(tr("Reset all"), any);
}

}  // namespace turnpoint::views
