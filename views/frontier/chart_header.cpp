// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_header.h"

#include <QAction>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QToolButton>
#include <algorithm>

#include "views/common/elided_label.h"
#include "views/common/icons.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"

namespace turnpoint::views {

ChartHeader::ChartHeader(QWidget* parent) : QWidget(parent) {
  title_ = new QLabel(tr("Memory and time"), this);
  QFont bold = font();
  bold.setBold(true);
  title_->setFont(bold);
  subtitle_ = new Elided<QLabel>(this);
  subtitle_->setObjectName(QStringLiteral("chart_subtitle"));
  state_ = new QLabel(this);
  state_->setObjectName(QStringLiteral("chart_state"));
  for (QLabel* label : {subtitle_, state_}) label->setFont(secondary_font(font()));
  subtitle_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  row_ = new QHBoxLayout(this);
  row_->setContentsMargins(12, 3, 8, 4);
  row_->setSpacing(6);
  row_->addWidget(title_);
  row_->addSpacing(4);
  row_->addWidget(state_);
  row_->addWidget(subtitle_, 1);
  // The toggles come and go with the width, so they must not hold the window open.
  row_->setSizeConstraint(QLayout::SetNoConstraint);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  recolour();
}

void ChartHeader::set_actions(QAction* fit, const QList<QAction*>& toggles) {
  auto* fit_button = new QToolButton(this);
  fit_button->setDefaultAction(fit);
  fit_button->setAutoRaise(true);
  fit_button->setAccessibleName(fit->text());
  menu_ = new QToolButton(this);
  menu_->setText(tr("Show"));
  menu_->setPopupMode(QToolButton::InstantPopup);
  menu_->setAccessibleName(tr("What the chart shows"));
  auto* menu = new QMenu(menu_);
  menu->addActions(toggles);
  menu_->setMenu(menu);
  row_->addWidget(fit_button);
  for (QAction* action : toggles) {
    auto* button = new ToggleButton(this);
    button->setDefaultAction(action);
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    button->setAccessibleName(action->text());
    row_->addWidget(button);
    toggles_ << button;
    connect(action, &QAction::changed, this, &ChartHeader::arrange);
  }
  row_->addWidget(menu_);
  arrange();
}

void ChartHeader::set_subtitle(const QString& text) {
  subtitle_->setText(text);
  subtitle_->setToolTip(text);
}

void ChartHeader::set_state(const QString& text) {
  state_->setText(text);
  state_->setVisible(!text.isEmpty());
}

void ChartHeader::set_progress(double fraction, bool active) {
  if (fraction == fraction_ && active == active_) return;
  fraction_ = fraction;
  active_ = active;
  update(0, height() - 3, width(), 3);
}

void ChartHeader::arrange() {
  if (!menu_) return;
  int wanted = title_->sizeHint().width() + 170;
  for (QToolButton* button : toggles_) wanted += button->sizeHint().width() + row_->spacing();
  const bool wide = width() >= wanted;
  for (QToolButton* button : toggles_) button->setVisible(wide && button->defaultAction()->isVisible());
  menu_->setVisible(!wide);
}

QSize ChartHeader::minimumSizeHint() const { return {title_->sizeHint().width() + 120, row_->minimumSize().height()}; }

void ChartHeader::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

void ChartHeader::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) recolour();
}

void ChartHeader::recolour() {
  const ThemeColors& colors = theme_colors(palette());
  QPalette quiet = palette(), loud = palette();
  quiet.setColor(QPalette::WindowText, colors.secondary);
  loud.setColor(QPalette::WindowText, colors.warning);
  subtitle_->setPalette(quiet);
  state_->setPalette(loud);
}

void ChartHeader::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  painter.setPen(colors.border);
  painter.drawLine(0, height() - 1, width(), height() - 1);
  if (!active_) return;
  const int wide = fraction_ >= 0 ? static_cast<int>(width() * std::min(1.0, fraction_)) : width();
  QColor tint = colors.accent;
  if (fraction_ < 0) tint.setAlpha(110);
  painter.fillRect(0, height() - 2, wide, 2, tint);
}

}  // namespace turnpoint::views
