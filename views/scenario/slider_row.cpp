// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/slider_row.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/theme_colors.h"
#include "views/common/typed_undo.h"
#include "views/scenario/what_if_slider.h"

namespace turnpoint::views {

namespace {

// Unique over all rows: merging compares gestures only.
quint64 next_gesture() {
  static quint64 last = 0;
  return ++last;
}

}  // namespace

SliderRow::SliderRow(const QString& key, const QString& label, FactorQuantity quantity, QWidget* parent)
    : QWidget(parent), key_(key), quantity_(quantity) {
  setObjectName(key);
  label_ = new QLabel(label, this);
  absolute_ = new QLabel(this);
  absolute_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  slider_ = new WhatIfSlider(this);
  slider_->setAccessibleName(label);
  box_ = new FactorBox(quantity, this);
  box_->setAccessibleName(tr("%1, factor").arg(label));
  box_->setToolTip(tr("A factor such as 0.5 or ×0.5, or an absolute value with its unit"));
  leave_spent_undo(box_);
  box_->setFixedWidth(box_->fontMetrics().horizontalAdvance(QStringLiteral("×88.88")) + 36);
  reset_ = new QToolButton(this);
  reset_->setIcon(themed_icon(QStringLiteral("reset")));
  reset_->setAutoRaise(true);
  reset_->setToolTip(tr("Back to ×1"));
  reset_->setAccessibleName(tr("Reset %1").arg(label));

  // Two lines of their own, not one grid: an edited row's bold words must not take room from slider and box below, and
  // with it widen the whole dock.
  auto* words = new QHBoxLayout;
  words->setSpacing(6);
  words->addWidget(label_, 1);
  words->addWidget(absolute_);
  auto* controls = new QHBoxLayout;
  controls->setSpacing(6);
  controls->addWidget(slider_, 1);
  controls->addWidget(box_);
  controls->addWidget(reset_);
  auto* lines = new QVBoxLayout(this);
  lines->setContentsMargins(0, 2, 0, 2);
  lines->setSpacing(0);
  lines->addLayout(words);
  lines->addLayout(controls);

  connect(slider_, &WhatIfSlider::gesture_began, this, [this] { gesture_ = next_gesture(); });
  connect(slider_, &WhatIfSlider::factor_moved, this, &SliderRow::edit);
  connect(box_, &QDoubleSpinBox::valueChanged, this, [this](double factor) {
    gesture_ = next_gesture();
    edit(factor);
  });
  connect(reset_, &QToolButton::clicked, this, [this] {
    gesture_ = next_gesture();
    edit(1);
  });
  show_value();
}

void SliderRow::set_range(double minimum, double maximum) {
  const QSignalBlocker quiet(box_);
  box_->setRange(minimum, maximum);
}

void SliderRow::set_value(double factor, double baseline) {
  factor_ = factor;
  baseline_ = baseline;
  show_value();
}

void SliderRow::set_disabled_reason(const QString& reason) {
  reason_ = reason;
  for (QWidget* part : {static_cast<QWidget*>(label_), static_cast<QWidget*>(slider_), static_cast<QWidget*>(box_)})
    part->setEnabled(reason.isEmpty());
  show_value();
}

void SliderRow::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_value();
}

void SliderRow::edit(double factor) {
  if (factor == factor_) return;
  factor_ = factor;
  show_value();
  emit factor_edited(key_, factor, gesture_);
}

void SliderRow::show_value() {
  const bool edited = factor_ != 1 && reason_.isEmpty();
  const QSignalBlocker quiet(box_);
  box_->set_baseline(baseline_);
  box_->setValue(factor_);
  slider_->set_factor(factor_);
  const QString value = baseline_ > 0 ? quantity_text(quantity_, baseline_ * factor_) : tr("as stated");
  absolute_->setText(reason_.isEmpty() ? (baseline_ > 0 || factor_ == 1 ? value : factor_text(factor_)) : reason_);
  slider_->setAccessibleDescription(factor_text(factor_) + u' ' + absolute_->text());
  QFont weight = font();
  weight.setBold(edited);
  label_->setFont(weight);
  absolute_->setFont(weight);
  QPalette tinted = palette();
  const ThemeColors& colors = theme_colors(tinted);
  tinted.setColor(QPalette::WindowText, edited ? colors.accent : reason_.isEmpty() ? colors.text : colors.disabled);
  absolute_->setPalette(tinted);
  reset_->setEnabled(edited);
}

}  // namespace turnpoint::views
