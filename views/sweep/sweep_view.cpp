// SPDX-License-Identifier: Apache-2.0
#include "views/sweep/sweep_view.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSignalBlocker>
#include <QStandardItemModel>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/elided_label.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/picture_export.h"
#include "views/common/price_box.h"
#include "views/common/toggle_button.h"
#include "views/common/typed_undo.h"

namespace turnpoint::views {

SweepView::SweepView(QWidget* parent) : QWidget(parent), chart_(new SweepChart(this)) {
  setObjectName(QStringLiteral("sweep_view"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 4, 8, 2);
  row->setSpacing(8);
  make_subject_row(row);
  column->addLayout(row);
  column->addWidget(chart_, 1);
  make_tool_bar();
  connect(chart_, &SweepChart::requested, this, &SweepView::use_requested);
  set_use({}, {}, false);
  set_data({});
}

void SweepView::make_subject_row(QHBoxLayout* row) {
  subject_ = new Elided<NoteLabel>(this);
  subject_->setObjectName(QStringLiteral("sweep_subject"));
  row->addWidget(subject_, 1);
  turning_button_ = new ToggleButton(this);
  turning_button_->setText(tr("Turning points"));
  turning_button_->setCheckable(true);
  turning_button_->setToolTip(tr("The turning point of each curve in place of its fastest plan that fits"));
  row->addWidget(turning_button_);
  price_box_ = new QDoubleSpinBox(this);
  price_box_->setObjectName(QStringLiteral("sweep_price"));
  set_up_price_box(*price_box_);
  leave_spent_undo(price_box_);
  price_box_->setFixedWidth(price_box_->fontMetrics().horizontalAdvance(tr("$888.88 / h")) + 40);
  auto* label = new QLabel(tr("Price"), this);
  label->setBuddy(price_box_);
  row->addWidget(label);
  row->addWidget(price_box_);
  connect(turning_button_, &QToolButton::toggled, this, &SweepView::turning_chosen);
  connect(price_box_, &QDoubleSpinBox::valueChanged, this, &SweepView::price_edited);
}

void SweepView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("sweep_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(8);
  quantity_box_ = new QComboBox(tool_bar_);
  quantity_box_->setObjectName(QStringLiteral("sweep_quantity"));
  quantity_box_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  quantity_box_->setAccessibleName(tr("What is varied"));
  quantity_box_->setToolTip(tr("What is varied, everything else as it stands"));
  for (const VariedQuantity& one : varied_quantities())
    quantity_box_->addItem(quantity_text(one.quantity), int(one.quantity));
  auto* label = new QLabel(tr("Vary"), tool_bar_);
  label->setBuddy(quantity_box_);
  row->addWidget(label);
  row->addWidget(quantity_box_);
  values_line_ = new QLineEdit(tool_bar_);
  values_line_->setObjectName(QStringLiteral("sweep_values"));
  values_line_->setAccessibleName(tr("Values"));
  values_line_->setToolTip(tr("Values, separated by commas; 8..512 doubles from 8 on until 512"));
  const QString usual = QStringLiteral("128,256,512,1024,2048");
  values_line_->setMinimumWidth(values_line_->fontMetrics().horizontalAdvance(usual.left(8)) + 24);
  values_line_->setMaximumWidth(values_line_->fontMetrics().horizontalAdvance(usual) + 24);
  leave_spent_undo(values_line_);
  row->addWidget(values_line_);
  run_button_ = new QPushButton(tool_bar_);
  run_button_->setObjectName(QStringLiteral("sweep_run"));
  row->addWidget(run_button_);
  words_ = new NoteLabel(tool_bar_);
  words_->setObjectName(QStringLiteral("sweep_words"));
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  row->addWidget(words_, 1);
  use_button_ = new QPushButton(tool_bar_);
  use_button_->setObjectName(QStringLiteral("sweep_use"));
  row->addWidget(use_button_);
  export_button_ = make_export_button(tool_bar_, this);
  row->addWidget(export_button_);
  make_export_menu();
  connect(quantity_box_, &QComboBox::activated, this, &SweepView::show_values);
  connect(values_line_, &QLineEdit::textEdited, this, [this](const QString& text) {
    typed_[quantity()] = text;
    show_state();
  });
  connect(values_line_, &QLineEdit::returnPressed, this, &SweepView::run);
  connect(run_button_, &QPushButton::clicked, this, [this] {
    if (state_.running)
      emit stop_requested();
    else
      run();
  });
  connect(use_button_, &QPushButton::clicked, this, &SweepView::use_requested);
}

void SweepView::make_export_menu() {
  export_button_->setToolTip(tr("Export this sweep"));
  QMenu* menu = export_button_->menu();
  const auto add = [&](const QString& text, const char* what) {
    menu->addAction(text, this, [this, what] { emit export_requested(QString::fromLatin1(what)); });
  };
  menu->addSeparator();
  add(tr("Numbers as CSV…"), "csv");
  add(tr("Sweep as JSON…"), "json");
  add(tr("Copy the table"), "copy");
}

const SweepOffer* SweepView::offer() const {
  const auto found = std::find_if(offers_.begin(), offers_.end(),
                                  [this](const SweepOffer& one) { return one.quantity == quantity(); });
  return found == offers_.end() ? nullptr : &*found;
}

void SweepView::set_offers(std::vector<SweepOffer> offers) {
  if (offers == offers_) return;
  offers_ = std::move(offers);
  auto* items = qobject_cast<QStandardItemModel*>(quantity_box_->model());
  for (int i = 0; items && i < items->rowCount(); ++i) {
    const auto found = std::find_if(offers_.begin(), offers_.end(), [&](const SweepOffer& one) {
      return int(one.quantity) == quantity_box_->itemData(i).toInt();
    });
    const bool can = found != offers_.end() && found->reason.isEmpty();
    items->item(i)->setEnabled(can || offers_.empty());
    items->item(i)->setToolTip(found == offers_.end() ? QString() : found->reason);
  }
  show_values();
}

void SweepView::show_values() {
  const auto typed = typed_.find(quantity());
  const SweepOffer* of = offer();
  const QString text = typed != typed_.end() && !typed->second.trimmed().isEmpty() ? typed->second
                       : of                                                        ? values_text(of->usual)
                                                                                   : QString();
  if (!values_line_->hasFocus() || text != values_line_->text()) values_line_->setText(text);
  show_state();
}

void SweepView::set_data(SweepData shown) {
  export_button_->setEnabled(shown.sweep && !shown.sweep->cells.empty());
  QString of = shown.sweep && shown.nothing.isEmpty() ? subject_text(*shown.sweep) : QString();
  if (shown.stale) of = tr("Of another scenario than the one that is open: %1").arg(of);
  subject_->setText(of);
  subject_->setToolTip(of);
  chart_->set_data(std::move(shown));
}

void SweepView::set_state(const SweepState& state) {
  state_ = state;
  show_state();
}

void SweepView::show_state() {
  QString text = state_.words;
  if (state_.running)
    text = state_.fraction >= 0 ? progress_text(state_.fraction) + (text.isEmpty() ? QString() : u' ' + text) : text;
  const SweepOffer* of = offer();
  const auto values = parse_varied_values(quantity(), values_line_->text().toStdString());
  QString wrong;
  if (of && !of->reason.isEmpty())
    wrong = of->reason;
  else if (of && !values)
    wrong = values_line_->text().trimmed().isEmpty() ? tr("no values") : to_qt(values.error().what);
  if (!state_.running && !wrong.isEmpty()) text = wrong;
  words_->setText(text);
  words_->setToolTip(text);
  values_line_->setEnabled(of && of->reason.isEmpty());
  run_button_->setText(state_.running ? tr("Stop") : tr("Run"));
  run_button_->setEnabled(state_.running || (state_.can_run && wrong.isEmpty() && of));
  run_button_->setToolTip(state_.running ? tr("Stops the sweep; what it has found stays")
                                         : tr("Asks every checked method at each value, exactly, in the background"));
}

void SweepView::run() {
  auto values = parse_varied_values(quantity(), values_line_->text().toStdString());
  if (!values || !run_button_->isEnabled() || state_.running) return;
  emit run_requested({quantity(), std::move(*values)});
}

void SweepView::set_price(double price_per_hour, bool typed) { show_price(*price_box_, price_per_hour, typed); }

void SweepView::set_use(const QString& text, const QString& tip, bool enabled) {
  use_button_->setText(text.isEmpty() ? tr("Use…") : text);
  use_button_->setToolTip(tip.isEmpty() ? tr("Click a point in the chart first") : tip);
  use_button_->setEnabled(enabled);
}

Varied SweepView::quantity() const { return static_cast<Varied>(quantity_box_->currentData().toInt()); }

void SweepView::choose(Varied quantity) {
  quantity_box_->setCurrentIndex(quantity_box_->findData(int(quantity)));
  show_values();
}

bool SweepView::turning() const { return turning_button_->isChecked(); }
QString SweepView::state_words() const { return words_->text(); }
QString SweepView::subject_words() const { return subject_->isVisibleTo(this) ? subject_->text() : QString(); }

QJsonObject SweepView::save_state() const {
  QJsonObject typed;
  for (const auto& [quantity, text] : typed_) typed[to_qt(quantity_of(quantity).key)] = text;
  return {{QStringLiteral("quantity"), to_qt(quantity_of(quantity()).key)},
          {QStringLiteral("values"), typed},
          {QStringLiteral("turning"), turning_button_->isChecked()}};
}

void SweepView::restore_state(const QJsonObject& state) {
  typed_.clear();
  const QJsonObject typed = state[QStringLiteral("values")].toObject();
  Varied chosen = Varied::batch;
  for (const VariedQuantity& one : varied_quantities()) {
    const QString key = to_qt(one.key);
    if (const QString text = typed[key].toString(); !text.isEmpty()) typed_[one.quantity] = text.left(1000);
    if (state[QStringLiteral("quantity")].toString() == key) chosen = one.quantity;
  }
  turning_button_->setChecked(state[QStringLiteral("turning")].toBool());
  choose(chosen);
}

}  // namespace turnpoint::views
