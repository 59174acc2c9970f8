// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/scenario_panel.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSpinBox>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/text.h"
#include "core/scenario/task_scenario.h"
#include "views/common/calm.h"
#include "views/common/check_outline.h"
#include "views/common/elided_label.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/price_box.h"
#include "views/common/section_head.h"
#include "views/common/typed_undo.h"
#include "views/scenario/method_settings.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/shape_boxes.h"
#include "views/scenario/slider_row.h"

namespace turnpoint::views {

namespace {

/// These rows are always there, in this order; all others are under "More settings".
constexpr std::string_view kFront[] = {"devices", "batch", "sequence", "precision", "optimizer"};

/// Of one line whatever is open, or all rows below would move under the pointer.
QLabel* make_caption(QGridLayout& grid, int row, const QString& name, QWidget* parent) {
  auto* caption = new Elided<NoteLabel>(parent);
  caption->setObjectName(name);
  grid.addWidget(caption, row, 0, 1, 2);
  return caption;
}

bool is_factor(const OptionRecord& option) { return option.key.ends_with("-scale"); }

FactorQuantity quantity_of(const QString& key) {
  if (key.contains(u"bandwidth")) return FactorQuantity::bandwidth;
  if (key.contains(u"latency")) return FactorQuantity::latency;
  if (key.contains(u"memory")) return FactorQuantity::memory;
  return FactorQuantity::speed;
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
  fit_width();
}

bool ScenarioPanel::eventFilter(QObject* watched, QEvent* event) {
  const bool done = QScrollArea::eventFilter(watched, event);
  if (watched == widget() && event->type() == QEvent::LayoutRequest) fit_width();
  return done;
}

void ScenarioPanel::fit_width() {
  setMinimumWidth(std::max(260, widget()->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width()));
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
    if (auto* box = qobject_cast<QComboBox*>(buddy); box && box->lineEdit()) box->lineEdit()->setAccessibleName(text);
    grid->addWidget(label, row, 0);
  };
  model_box_ = new SpecificationBox(QStringLiteral("model_box"), this);
  add_label(tr("Model"), model_box_);
  grid->addWidget(model_box_, row++, 1);
  model_note_ = make_caption(*grid, row++, QStringLiteral("model_note"), this);
  taken_note_ = make_caption(*grid, row++, QStringLiteral("taken_note"), this);
  hardware_box_ = new SpecificationBox(QStringLiteral("hardware_box"), this);
  add_label(tr("Hardware"), hardware_box_);
  grid->addWidget(hardware_box_, row++, 1);
  hardware_note_ = make_caption(*grid, row++, QStringLiteral("hardware_note"), this);

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
    QWidget* editor = option.key == "devices" ? make_shape_boxes() : make_editor(option);
    if (option.key == "sequence" && batch_line) {
      auto* label = new QLabel(tr("× seq"), this);
      label->setBuddy(editor);
      editor->setAccessibleName(to_qt(option.text));
      batch_line->addWidget(label);
      batch_line->addWidget(editor, 1);
      continue;
    }
    add_label(to_qt(option.text), editor == shape_ ? shape_->nodes() : editor);
    if (option.key == "batch") {
      batch_line = new QHBoxLayout;
      batch_line->setSpacing(8);
      batch_line->addWidget(editor, 1);
      grid->addLayout(batch_line, row++, 1);
    } else {
      grid->addWidget(editor, row++, 1);
    }
  }
  if (!switches.empty()) {
    auto* label = new QLabel(tr("Allow"), this);
    label->setToolTip(tr("What methods that choose per operator may do to save memory"));
    grid->addWidget(label, row, 0, Qt::AlignTop);
    auto* pairs = new QGridLayout;
    pairs->setHorizontalSpacing(2);
    pairs->setVerticalSpacing(2);
    pairs->setColumnStretch(2, 1);
    for (int i = 0; const OptionRecord* option : switches) {
      pairs->addWidget(make_editor(*option), i / 2, i % 2);
      ++i;
    }
    grid->addLayout(pairs, row++, 1);
  }
  limit_line_ = new QLineEdit(this);
  limit_line_->setObjectName(QStringLiteral("memory_limit_line"));
  limit_line_->setPlaceholderText(tr("none: the file states no memory"));
  limit_line_->setToolTip(tr("What must fit on one device, such as 14.5GiB; empty for no limit"));
  limit_line_->setClearButtonEnabled(true);
  leave_spent_undo(limit_line_);
  limit_label_ = new QLabel(tr("Limit"), this);
  limit_label_->setBuddy(limit_line_);
  limit_line_->setAccessibleName(tr("Memory limit"));
  limit_label_->hide();
  limit_line_->hide();
  grid->addWidget(limit_label_, row, 0);
  grid->addWidget(limit_line_, row++, 1);
  connect(limit_line_, &QLineEdit::editingFinished, this, [this] {
    const QString text = limit_line_->text().simplified().remove(u' ');
    const auto bytes = text.isEmpty() ? std::optional<std::int64_t>(0) : parse_bytes(text.toStdString());
    if (bytes && limit_line_->isModified() && view_.scenario && *bytes != view_.scenario->settings.memory_limit)
      emit option_edited(QStringLiteral("memory-limit"), static_cast<double>(*bytes), 0);
    else
      show_limit();
  });
  tasks_note_ = new NoteLabel(this);
  tasks_note_->setObjectName(QStringLiteral("tasks_note"));
  tasks_note_->setWordWrap(true);
  tasks_note_->setText(tr("Times and bytes are those of the file: batch, precision and optimizer are in them."));
  tasks_note_->hide();
  column->addLayout(grid);
  column->addWidget(tasks_note_);

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

  connect(model_box_, &SpecificationBox::chosen, this, &ScenarioPanel::model_chosen);
  connect(model_box_, &SpecificationBox::file_wanted, this, &ScenarioPanel::open_model_requested);
  connect(hardware_box_, &SpecificationBox::chosen, this, &ScenarioPanel::hardware_chosen);
  connect(hardware_box_, &SpecificationBox::file_wanted, this, &ScenarioPanel::open_hardware_requested);
}

QWidget* ScenarioPanel::make_shape_boxes() {
  shape_ = new ShapeBoxes(this);
  connect(shape_, &ShapeBoxes::hardware_edited, this, &ScenarioPanel::hardware_chosen);
  connect(shape_, &ShapeBoxes::devices_edited, this,
          [this](int devices) { emit option_edited(QStringLiteral("devices"), devices, 0); });
  return shape_;
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
    auto* box = new OutlinedCheckBox(to_qt(option.text), this);
    connect(box, &QCheckBox::clicked, this, [this, key](bool on) { emit option_edited(key, on ? 1 : 0, 0); });
    editor = box;
  } else if (option.type == OptionType::real) {
    auto* box = new Calm<QDoubleSpinBox>(this);
    box->setDecimals(2);
    box->setRange(option.minimum, option.maximum);
    box->setKeyboardTracking(false);
    if (key == u"price-per-hour") set_up_price_box(*box);
    box->setMinimumWidth(64);
    box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    connect(box, &QDoubleSpinBox::valueChanged, this, [this, key](double value) { emit option_edited(key, value, 0); });
    editor = box;
  } else if (option.type == OptionType::bytes) {
    auto* box = new Calm<QDoubleSpinBox>(this);
    box->setDecimals(1);
    box->setRange(0, 1 << 20);
    box->setSuffix(QStringLiteral(" MiB"));
    box->setSpecialValueText(tr("none"));
    box->setKeyboardTracking(false);
    box->setMinimumWidth(64);
    box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    connect(box, &QDoubleSpinBox::valueChanged, this,
            [this, key](double mebibytes) { emit option_edited(key, std::round(mebibytes * kMebibyte), 0); });
    editor = box;
  } else {
    auto* box = new Calm<QSpinBox>(this);
    box->setRange(static_cast<int>(std::max(option.minimum, -2147483648.0)),
                  static_cast<int>(std::min(option.maximum, 2147483647.0)));
    box->setKeyboardTracking(false);
    box->setMinimumWidth(64);
    if (option.key == "sequence") box->setSpecialValueText(QStringLiteral("–"));
    if (option.unit == "steps") box->setSpecialValueText(tr("never"));
    box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    connect(box, &QSpinBox::valueChanged, this, [this, key](int value) { emit option_edited(key, value, 0); });
    editor = box;
  }
  editor->setObjectName(key);
  editor->setFocusPolicy(Qt::StrongFocus);
  if (!option.help.empty()) editor->setToolTip(to_qt(option.help));
  if (auto* box = qobject_cast<QAbstractSpinBox*>(editor)) leave_spent_undo(box);
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
  more_methods_ = new QToolButton(this);
  more_methods_->setObjectName(QStringLiteral("more_methods"));
  more_methods_->setCheckable(true);
  more_methods_->setAutoRaise(true);
  more_methods_->setArrowType(Qt::RightArrow);
  more_methods_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  more_methods_->hide();
  column->addWidget(more_methods_);
  connect(more_methods_, &QToolButton::toggled, this, [this](bool open) {
    more_methods_->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
    methods_list_->set_folded(!open);
  });
  connect(methods_list_, &MethodsList::unused_changed, this, [this](int unused) {
    more_methods_->setVisible(unused > 0);
    more_methods_->setText(tr("More methods (%1)").arg(unused));
  });
  connect(&methods_, &MethodsModel::method_toggled, this, [this](const QString& method, bool on) {
    folds_by_itself_ = false;
    emit method_toggled(method, on);
  });
  connect(methods_list_, &MethodsList::cancel_requested, this, &ScenarioPanel::cancel_method_requested);
  connect(methods_list_, &MethodsList::method_clicked, this, &ScenarioPanel::method_clicked);
  build_split_line(column);
}

void ScenarioPanel::build_split_line(QVBoxLayout* column) {
  split_line_ = new QLineEdit(this);
  split_line_->setObjectName(QStringLiteral("split_line"));
  split_line_->setPlaceholderText(tr("Add a split of your own…"));
  split_line_->setAccessibleName(tr("Add a split of your own"));
  split_line_->setClearButtonEnabled(true);
  leave_spent_undo(split_line_);
  auto* boxes = new QToolButton(this);
  boxes->setObjectName(QStringLiteral("split_settings"));
  boxes->setText(QStringLiteral("\u2026"));
  boxes->setToolTip(tr("Choose a split by boxes"));
  boxes->setAccessibleName(boxes->toolTip());
  connect(boxes, &QToolButton::clicked, this, [this] { emit settings_requested({}); });
  auto* line = new QHBoxLayout;
  line->setSpacing(4);
  line->addWidget(split_line_, 1);
  line->addWidget(boxes);
  column->addLayout(line);
  split_note_ = new NoteLabel(this);
  split_note_->setObjectName(QStringLiteral("split_note"));
  split_note_->setWordWrap(true);
  split_note_->hide();
  column->addWidget(split_note_);
  connect(split_line_, &QLineEdit::returnPressed, this, [this] {
    if (split_completer_ && split_completer_->is_choosing()) return;
    if (split_completer_) split_completer_->popup()->hide();
    const QString text = split_line_->text().replace(u',', u' ').simplified().replace(u' ', u':');
    if (!text.isEmpty()) emit split_added(text);
  });
  connect(split_line_, &QLineEdit::textEdited, split_note_, &QLabel::hide);
  connect(methods_list_, &MethodsList::variant_requested, this, &ScenarioPanel::split_added);
  connect(methods_list_, &MethodsList::settings_requested, this, &ScenarioPanel::settings_requested);
  connect(methods_list_, &MethodsList::remove_requested, this, &ScenarioPanel::split_removed);
}

MethodSettings* ScenarioPanel::show_method_settings(const QString& title, std::span<const OptionRecord> options,
                                                    const QString& parameters, bool changes, OtherMethodBoxes other) {
  auto* settings = new MethodSettings(title, options, parameters, changes, this, std::move(other));
  settings->adjustSize();
  const QPoint below = split_line_->mapToGlobal(QPoint(0, 0)), list = methods_list_->mapToGlobal(QPoint(0, 0));
  settings->move(list.x() + 24, std::max(0, std::min(list.y() + 24, below.y() - settings->height() - 4)));
  settings->show();
  return settings;
}

void ScenarioPanel::offer_splits(const SplitWords& words) {
  split_line_->setToolTip(split_help(words));
  delete split_completer_;
  split_completer_ = new SplitCompleter(words, split_line_);
}

void ScenarioPanel::show_split_message(const QString& message) {
  split_note_->setText(message);
  split_note_->setVisible(!message.isEmpty());
  if (message.isEmpty()) {
    split_line_->clear();
    return;
  }
  // The line is the last one of the dock: what is said below it would be out of sight. Its place is known once the
  // rows have been laid out with it.
  QTimer::singleShot(0, split_note_, [this] {
    widget()->layout()->activate();
    ensureWidgetVisible(split_note_, 0, 8);
  });
}

SliderRow* ScenarioPanel::slider_row(const QString& key) const {
  const auto found = sliders_.find(key);
  return found == sliders_.end() ? nullptr : found->second;
}

}  // namespace turnpoint::views
