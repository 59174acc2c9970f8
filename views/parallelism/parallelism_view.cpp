// SPDX-License-Identifier: Apache-2.0
#include "views/parallelism/parallelism_view.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/note_label.h"
#include "views/common/price_box.h"
#include "views/common/toggle_button.h"
#include "views/common/typed_undo.h"
#include "views/parallelism/parallelism_chart.h"

namespace turnpoint::views {

ParallelismView::ParallelismView(QWidget* parent) : QWidget(parent), chart_(new ParallelismChart(this)) {
  setObjectName(QStringLiteral("parallelism_view"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(chart_, 1);
  make_tool_bar();
  connect(chart_, &ParallelismChart::count_picked, this, &ParallelismView::show_picked);
  connect(chart_, &ParallelismChart::count_requested, this, &ParallelismView::request);
  show_picked();
}

void ParallelismView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("parallelism_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(8);
  const auto label = [&](const QString& text, QWidget* buddy) {
    auto* made = new QLabel(text, tool_bar_);
    made->setBuddy(buddy);
    row->addWidget(made);
    row->addWidget(buddy);
  };
  range_box_ = new QComboBox(tool_bar_);
  range_box_->setObjectName(QStringLiteral("parallelism_range"));
  range_box_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  range_box_->setAccessibleName(tr("Most devices"));
  range_box_->setToolTip(
      tr("The most devices to search; counts above those of the hardware add nodes of the same kind"));
  label(tr("Up to"), range_box_);
  price_box_ = new QDoubleSpinBox(tool_bar_);
  price_box_->setObjectName(QStringLiteral("parallelism_price"));
  set_up_price_box(*price_box_);
  leave_spent_undo(price_box_);
  price_box_->setFixedWidth(price_box_->fontMetrics().horizontalAdvance(tr("$888.88 / h")) + 40);
  label(tr("Price"), price_box_);
  words_ = new NoteLabel(tool_bar_);
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  run_button_ = new QToolButton(tool_bar_);
  run_button_->setAutoRaise(true);
  row->addWidget(words_, 1);
  row->addWidget(run_button_);
  use_button_ = new QPushButton(tool_bar_);
  row->addWidget(use_button_);
  batch_button_ = new ToggleButton(tool_bar_);
  batch_button_->setObjectName(QStringLiteral("parallelism_batch"));
  batch_button_->setText(tr("Largest batch"));
  batch_button_->setToolTip(
      tr("Searches the largest batch that fits with every checked method, by simulated peaks; it may take minutes"));
  throughput_button_ = new ToggleButton(tool_bar_);
  throughput_button_->setText(tr("Throughput"));
  throughput_button_->setToolTip(tr("Samples per second in place of iteration time"));
  log_button_ = new ToggleButton(tool_bar_);
  log_button_->setText(tr("Log"));
  log_button_->setToolTip(tr("Logarithmic axis: perfect speed-up is a straight line"));
  for (ToggleButton* button : {batch_button_, throughput_button_, log_button_}) {
    button->setCheckable(true);
    row->addWidget(button);
  }
  export_button_ = new QToolButton(tool_bar_);
  export_button_->setIcon(themed_icon(QStringLiteral("export")));
  export_button_->setToolTip(tr("Export this chart or its numbers"));
  export_button_->setAccessibleName(tr("Export"));
  export_button_->setPopupMode(QToolButton::InstantPopup);
  export_button_->setAutoRaise(true);
  auto* menu = new QMenu(export_button_);
  menu->addAction(tr("Numbers as CSV…"), this, [this] { emit export_requested(QStringLiteral("csv")); });
  menu->addAction(tr("Chart as SVG…"), this, [this] { emit export_requested(QStringLiteral("svg")); });
  export_button_->setMenu(menu);
  row->addWidget(export_button_);
  connect(batch_button_, &QToolButton::toggled, this, &ParallelismView::largest_batch_chosen);
  connect(throughput_button_, &QToolButton::toggled, chart_, &ParallelismChart::set_throughput);
  connect(log_button_, &QToolButton::toggled, chart_, &ParallelismChart::set_logarithmic);
  connect(price_box_, &QDoubleSpinBox::valueChanged, this, &ParallelismView::price_edited);
  connect(range_box_, &QComboBox::activated, this,
          [this](int index) { emit range_chosen(range_box_->itemData(index).toInt()); });
  connect(use_button_, &QPushButton::clicked, this, [this] {
    if (chart_->picked() > 0) request(chart_->picked());
  });
  connect(run_button_, &QToolButton::clicked, this, [this] {
    if (running_)
      emit stop_requested();
    else
      emit resume_requested();
  });
  set_state({});
}

void ParallelismView::set_data(ParallelismData shown) {
  export_button_->setEnabled(shown.nothing.isEmpty());
  chart_->set_data(std::move(shown));
  show_picked();
}

void ParallelismView::set_state(const ParallelismState& state) {
  running_ = state.running;
  QString text = state.words;
  if (state.running)
    text = state.fraction >= 0 ? tr("searching, %1").arg(progress_text(state.fraction)) : tr("searching");
  words_->setText(text);
  words_->setToolTip(text);
  run_button_->setIcon(themed_icon(state.running ? QStringLiteral("stop") : QStringLiteral("search")));
  run_button_->setToolTip(state.running ? tr("Stop") : tr("Search the counts that are missing"));
  run_button_->setAccessibleName(run_button_->toolTip());
  run_button_->setVisible(state.running || state.can_resume);
}

void ParallelismView::set_price(double price_per_hour, bool typed) { show_price(*price_box_, price_per_hour, typed); }

void ParallelismView::set_ranges(const std::vector<int>& most, int chosen) {
  const QSignalBlocker quiet(range_box_);
  range_box_->clear();
  for (const int count : most) {
    range_box_->addItem(grouped_number(count, 0), count);
    if (count == chosen) range_box_->setCurrentIndex(range_box_->count() - 1);
  }
  range_box_->setEnabled(most.size() > 1);
}

void ParallelismView::show_picked() {
  const int picked = chart_->picked();
  const std::int64_t batch = batch_on(picked);
  const bool other = picked > 0 && (picked != chart_->data().devices || (batch > 0 && batch != chart_->data().batch));
  use_button_->setText(picked == 0 ? tr("Use…")
                       : batch > 0 ? tr("Use %1, batch %2").arg(devices_text(picked), grouped_number(double(batch), 0))
                                   : tr("Use %1").arg(devices_text(picked)));
  use_button_->setEnabled(other);
  use_button_->setToolTip(picked == 0          ? tr("Click a count in the chart first")
                          : other && batch > 0 ? tr("Make these the scenario's devices and batch; can be undone")
                          : other              ? tr("Make this the scenario's number of devices; can be undone")
                          : batch > 0          ? tr("The scenario has these devices and this batch already")
                                               : tr("The scenario has this many devices already"));
}

std::int64_t ParallelismView::batch_on(int devices) const {
  const ParallelismData& shown = chart_->data();
  const ParallelismPoint* point = shown.largest_batch && shown.subject() ? shown.subject()->at(devices) : nullptr;
  return point && point->fits() ? point->batch : 0;
}

void ParallelismView::request(int devices) {
  const std::int64_t batch = batch_on(devices);
  if (batch > 0)
    emit batch_requested(devices, batch);
  else if (devices != chart_->data().devices)
    emit devices_requested(devices);
}

QString ParallelismView::state_words() const { return words_->text(); }

QJsonObject ParallelismView::save_state() const {
  return {{QStringLiteral("largest_batch"), batch_button_->isChecked()},
          {QStringLiteral("throughput"), throughput_button_->isChecked()},
          {QStringLiteral("log"), log_button_->isChecked()}};
}

void ParallelismView::restore_state(const QJsonObject& state) {
  batch_button_->setChecked(state[QStringLiteral("largest_batch")].toBool());
  throughput_button_->setChecked(state[QStringLiteral("throughput")].toBool());
  log_button_->setChecked(state[QStringLiteral("log")].toBool());
}

}  // namespace turnpoint::views
