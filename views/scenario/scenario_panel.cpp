// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/scenario_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QScrollBar>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/section_head.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/slider_row.h"

namespace turnpoint::views {

namespace {

constexpr int kBrowse = Qt::UserRole + 1;
/// These rows are always there, in this order; all others are under "More settings".
constexpr std::string_view kFront[] = {"devices", "batch", "sequence", "precision", "optimizer"};

/// The wheel scrolls the dock; it must not change what the pointer happens to be over.
template <class Editor>
class Calm : public Editor {
 public:
  using Editor::Editor;

 protected:
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

QLabel* make_note(QWidget* parent) {
  auto* note = new NoteLabel(parent);
  note->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  return note;
}

bool is_factor(const OptionRecord& option) { return option.key.ends_with("-scale"); }

FactorQuantity quantity_of(const QString& key) {
  if (key.contains(u"bandwidth")) return FactorQuantity::bandwidth;
  if (key.contains(u"latency")) return FactorQuantity::latency;
  if (key.contains(u"memory")) return FactorQuantity::memory;
  return FactorQuantity::speed;
}

double baseline_of(const QString& key, const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  if (key.contains(u"intra")) return cluster.links[kIntraNode].bandwidth;
  if (key.contains(u"inter")) return cluster.links[kInterNode].bandwidth;
  if (key.contains(u"latency")) return cluster.links[cluster.nodes > 1 ? kInterNode : kIntraNode].latency_s;
  if (key.contains(u"memory")) return static_cast<double>(cluster.device.memory_bytes);
  return cluster.device.peak(scenario.settings.precision);
}

}  // namespace

ScenarioPanel::ScenarioPanel(std::span<const OptionRecord> options, QWidget* parent)
    : QScrollArea(parent), options_(options) {
  setObjectName(QStringLiteral("scenario_panel"));
  setAccessibleName(tr("Scenario"));
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* body = new QWidget(this);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(12, 8, 12, 8);
  column->setSpacing(4);
  build_machine(column);
  build_what_if(column);
  build_methods(column);
  column->addStretch(1);
  setWidget(body);
  // Never narrower than its rows: there is no horizontal scroll bar to reach what would be cut.
  setMinimumWidth(std::max(260, body->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width()));
}

QComboBox* ScenarioPanel::make_specification_box(const QString& name) {
  auto* box = new Calm<QComboBox>(this);
  box->setObjectName(name);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(10);
  box->setFocusPolicy(Qt::StrongFocus);
  box->setMaxVisibleItems(24);
  return box;
}

void ScenarioPanel::build_machine(QVBoxLayout* column) {
  column->addWidget(new SectionHead(tr("Model and machine"), this));
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(1, 1);
  int row = 0;
  const auto add_label = [&](const QString& text, QWidget* buddy) {
    auto* label = new QLabel(text, this);
    label->setBuddy(buddy);
    buddy->setAccessibleName(text);
    grid->addWidget(label, row, 0);
  };
  model_box_ = make_specification_box(QStringLiteral("model_box"));
  add_label(tr("Model"), model_box_);
  grid->addWidget(model_box_, row++, 1);
  model_note_ = make_note(this);
  grid->addWidget(model_note_, row++, 1);
  hardware_box_ = make_specification_box(QStringLiteral("hardware_box"));
  add_label(tr("Hardware"), hardware_box_);
  grid->addWidget(hardware_box_, row++, 1);
  hardware_note_ = make_note(this);
  grid->addWidget(hardware_note_, row++, 1);

  std::vector<const OptionRecord*> rest, switches;
  QHBoxLayout* batch_line = nullptr;  // batch and sequence share a line
  std::vector<const OptionRecord*> front;
  for (const std::string_view key : kFront)
    for (const OptionRecord& option : options_)
      if (option.key == key) front.push_back(&option);
  for (const OptionRecord& option : options_) {
    const bool shown = std::find(std::begin(kFront), std::end(kFront), option.key) != std::end(kFront);
    // The memory slider and the chart's line set the limit.
    if (is_factor(option) || shown || option.key == "memory-limit") continue;
    // Flags that are on by default are what methods may do; users look for them beside the optimizer.
    (option.type == OptionType::flag && option.default_value != 0 ? switches : rest).push_back(&option);
  }
  for (const OptionRecord* record : front) {
    const OptionRecord& option = *record;
    QWidget* editor = make_editor(option);
    if (option.key == "sequence" && batch_line) {
      auto* label = new QLabel(tr("× seq"), this);
      label->setBuddy(editor);
      editor->setAccessibleName(to_qt(option.text));
      batch_line->addWidget(label);
      batch_line->addWidget(editor, 1);
      continue;
    }
    add_label(to_qt(option.text), editor);
    if (option.key == "batch") {
      batch_line = new QHBoxLayout;
      batch_line->setSpacing(8);
      batch_line->addWidget(editor, 1);
      grid->addLayout(batch_line, row++, 1);
    } else if (option.key == "devices") {
      auto* line = new QHBoxLayout;
      line->setSpacing(8);
      line->addWidget(editor, 1);
      devices_note_ = make_note(this);
      devices_note_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
      line->addWidget(devices_note_, 1);
      grid->addLayout(line, row++, 1);
    } else {
      grid->addWidget(editor, row++, 1);
    }
  }
  if (!switches.empty()) {
    auto* label = new QLabel(tr("Allow"), this);
    label->setToolTip(tr("What methods that choose per operator may do to save memory"));
    grid->addWidget(label, row, 0, Qt::AlignTop);
    auto* pairs = new QGridLayout;
    pairs->setHorizontalSpacing(8);
    pairs->setVerticalSpacing(2);
    pairs->setColumnStretch(2, 1);
    for (int i = 0; const OptionRecord* option : switches) {
      pairs->addWidget(make_editor(*option), i / 2, i % 2);
      ++i;
    }
    grid->addLayout(pairs, row++, 1);
  }
  column->addLayout(grid);

  if (!rest.empty()) {
    auto* more = new QToolButton(this);
    more->setText(tr("More settings"));
    more->setObjectName(QStringLiteral("more_settings"));
    more->setCheckable(true);
    more->setAutoRaise(true);
    more->setArrowType(Qt::RightArrow);
    more->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    auto* box = new QWidget(this);
    auto* inner = new QGridLayout(box);
    inner->setContentsMargins(0, 0, 0, 0);
    inner->setHorizontalSpacing(8);
    inner->setVerticalSpacing(4);
    inner->setColumnStretch(1, 1);
    for (int i = 0; const OptionRecord* option : rest) {
      QWidget* editor = make_editor(*option);
      if (option->type == OptionType::flag) {
        inner->addWidget(editor, i++, 0, 1, 2);
      } else {
        auto* label = new QLabel(to_qt(option->text), box);
        label->setBuddy(editor);
        editor->setAccessibleName(label->text());
        inner->addWidget(label, i, 0);
        inner->addWidget(editor, i++, 1);
      }
    }
    box->hide();
    connect(more, &QToolButton::toggled, this, [more, box](bool open) {
      more->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
      box->setVisible(open);
    });
    column->addWidget(more);
    column->addWidget(box);
  }

  const auto connect_box = [this](QComboBox* box, auto chosen, auto browse) {
    connect(box, &QComboBox::activated, this, [this, box, chosen, browse](int index) {
      const bool wants_file = box->itemData(index, kBrowse).toBool();
      const QString specification = box->itemData(index).toString();
      // The box shows the scenario, not the wish: it changes when the model is really open.
      show_model();
      show_machine();
      if (wants_file)
        emit(this->*browse)();
      else
        emit(this->*chosen)(specification);
    });
  };
  connect_box(model_box_, &ScenarioPanel::model_chosen, &ScenarioPanel::open_model_requested);
  connect_box(hardware_box_, &ScenarioPanel::hardware_chosen, &ScenarioPanel::open_hardware_requested);
}

QWidget* ScenarioPanel::make_editor(const OptionRecord& option) {
  const QString key = to_qt(option.key);
  QWidget* editor = nullptr;
  if (option.type == OptionType::choice) {
    auto* box = new Calm<QComboBox>(this);
    for (const auto& choice : option.choices) box->addItem(to_qt(choice));
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(6);
    connect(box, &QComboBox::activated, this, [this, key](int index) { emit option_edited(key, index, 0); });
    editor = box;
  } else if (option.type == OptionType::flag) {
    auto* box = new QCheckBox(to_qt(option.text), this);
    connect(box, &QCheckBox::clicked, this, [this, key](bool on) { emit option_edited(key, on ? 1 : 0, 0); });
    editor = box;
  } else {
    auto* box = new Calm<QSpinBox>(this);
    box->setRange(static_cast<int>(std::max(option.minimum, -2147483648.0)),
                  static_cast<int>(std::min(option.maximum, 2147483647.0)));
    box->setKeyboardTracking(false);
    box->setMinimumWidth(64);
    if (option.key == "sequence" || option.key == "devices") box->setSpecialValueText(QStringLiteral("–"));
    box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    connect(box, &QSpinBox::valueChanged, this, [this, key](int value) { emit option_edited(key, value, 0); });
    editor = box;
  }
  editor->setObjectName(key);
  editor->setFocusPolicy(Qt::StrongFocus);
  if (!option.help.empty()) editor->setToolTip(to_qt(option.help));
  editors_[key] = editor;
  return editor;
}

void ScenarioPanel::build_what_if(QVBoxLayout* column) {
  column->addSpacing(8);
  what_if_head_ = new SectionHead(tr("What if"), this);
  what_if_head_->set_link(tr("Reset all"), false);
  connect(what_if_head_, &SectionHead::clicked, this, &ScenarioPanel::reset_factors_requested);
  column->addWidget(what_if_head_);
  for (const OptionRecord& option : options_) {
    if (!is_factor(option)) continue;
    const QString key = to_qt(option.key);
    auto* row = new SliderRow(key, to_qt(option.text), quantity_of(key), this);
    row->set_range(option.minimum, option.maximum);
    if (!option.help.empty()) row->setToolTip(to_qt(option.help));
    connect(row, &SliderRow::factor_edited, this, &ScenarioPanel::option_edited);
    sliders_[key] = row;
    column->addWidget(row);
  }
}

void ScenarioPanel::build_methods(QVBoxLayout* column) {
  column->addSpacing(8);
  methods_head_ = new SectionHead(tr("Methods"), this);
  column->addWidget(methods_head_);
  methods_list_ = new MethodsList(this);
  methods_list_->setModel(&methods_);
  column->addWidget(methods_list_);
  connect(&methods_, &MethodsModel::method_toggled, this, &ScenarioPanel::method_toggled);
  connect(methods_list_, &MethodsList::cancel_requested, this, &ScenarioPanel::cancel_method_requested);
  connect(methods_list_, &MethodsList::method_clicked, this, &ScenarioPanel::method_clicked);
}

SliderRow* ScenarioPanel::slider_row(const QString& key) const {
  const auto found = sliders_.find(key);
  return found == sliders_.end() ? nullptr : found->second;
}

void ScenarioPanel::set_choices(std::vector<Choice> models, std::vector<Choice> hardware) {
  model_choices_ = std::move(models);
  hardware_choices_ = std::move(hardware);
  show_model();
  show_machine();
}

void ScenarioPanel::set_methods(std::vector<MethodRow> rows) {
  int on = 0;
  for (const MethodRow& row : rows) on += row.enabled;
  methods_head_->set_value(tr("%1 of %2 on").arg(on).arg(rows.size()));
  methods_.set_rows(std::move(rows));
}

void ScenarioPanel::set_scenario(const ScenarioView& view) {
  const bool same_model = view_.scenario && view.scenario && view_.scenario->model == view.scenario->model &&
                          view_.model_specification == view.model_specification;
  const bool same_machine = view_.scenario && view.scenario && view_.scenario->cluster == view.scenario->cluster &&
                            view_.hardware_specification == view.hardware_specification;
  view_ = view;
  // While a slider is dragged only the sliders change; refilling the boxes sixty times a second would be waste.
  if (!same_model) show_model();
  if (!same_machine) show_machine();
  show_options();
  show_sliders();
}

void ScenarioPanel::fill_box(QComboBox* box, const std::vector<Choice>& choices, const QString& specification,
                             const QString& title) {
  const QSignalBlocker quiet(box);
  box->clear();
  int current = -1;
  for (const Choice& choice : choices) {
    if (choice.specification == specification) current = box->count();
    box->addItem(choice.text, choice.specification);
    box->setItemData(box->count() - 1, choice.tool_tip, Qt::ToolTipRole);
  }
  if (current < 0 && !specification.isEmpty()) {
    box->insertItem(0, title, specification);
    current = 0;
  }
  box->insertSeparator(box->count());
  box->addItem(tr("Open file…"));
  box->setItemData(box->count() - 1, true, kBrowse);
  box->setCurrentIndex(current);
  box->setToolTip(specification);
}

void ScenarioPanel::show_model() {
  const Model* model = view_.scenario ? view_.scenario->model.get() : nullptr;
  fill_box(model_box_, model_choices_, view_.model_specification, model ? to_qt(model->name) : QString());
  model_note_->setText(model ? tr("%1 parameters · %2 operators")
                                   .arg(to_qt(format_count(static_cast<double>(model->parameters))))
                                   .arg(model->operators.size())
                             : tr("none open"));
  if (const auto found = editors_.find(QStringLiteral("sequence")); found != editors_.end())
    found->second->setEnabled(model && model->sequence > 0);
}

void ScenarioPanel::show_machine() {
  const Cluster* cluster = view_.scenario ? view_.scenario->cluster.get() : nullptr;
  fill_box(hardware_box_, hardware_choices_, view_.hardware_specification, cluster ? to_qt(cluster->title) : QString());
  if (!cluster) {
    hardware_note_->setText({});
    return;
  }
  const bool measured = !cluster->collectives.empty() || !cluster->operators.empty();
  QStringList links;
  if (cluster->devices_per_node > 1) links << to_qt(cluster->links[kIntraNode].name);
  if (cluster->nodes > 1) links << to_qt(cluster->links[kInterNode].name);
  hardware_note_->setText((measured ? tr("measured") : tr("nominal")) +
                          (links.isEmpty() ? QString() : QStringLiteral(" · ") + links.join(QStringLiteral(", "))));
}

void ScenarioPanel::show_options() {
  const bool open = view_.scenario != nullptr;
  for (const auto& [key, editor] : editors_) {
    const QSignalBlocker quiet(editor);
    if (!open)
      editor->setEnabled(false);
    else if (key != u"sequence")
      editor->setEnabled(true);
    double value = get_option(open ? view_.scenario->settings : Settings(), key.toStdString());
    // Zero means "the default" in these three; the boxes show what that is.
    if (open && key == u"devices" && value == 0) value = view_.scenario->cluster->devices();
    if (open && key == u"sequence" && value == 0) value = static_cast<double>(view_.scenario->model->sequence);
    if (open && key == u"batch" && value == 0) value = static_cast<double>(view_.scenario->model->batch);
    if (auto* box = qobject_cast<QComboBox*>(editor)) box->setCurrentIndex(static_cast<int>(value));
    if (auto* box = qobject_cast<QSpinBox*>(editor)) box->setValue(static_cast<int>(std::min(value, 2147483647.0)));
    if (auto* box = qobject_cast<QCheckBox*>(editor)) box->setChecked(value != 0);
  }
  if (devices_note_) devices_note_->setText(open ? tr("of %1").arg(view_.cluster_devices) : QString());
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
    const double factor = get_option(view_.scenario->settings, key.toStdString());
    any = any || factor != 1;
    row->set_value(factor, baseline_of(key, *view_.scenario));
    row->set_disabled_reason(reason);
  }
  what_if_head_->set_link(tr("Reset all"), any);
}

}  // namespace turnpoint::views
