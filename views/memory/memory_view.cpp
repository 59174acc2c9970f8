// SPDX-License-Identifier: Apache-2.0
#include "views/memory/memory_view.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/picture_export.h"
#include "views/common/toggle_button.h"
#include "views/memory/device_strip.h"
#include "views/memory/memory_chart.h"

namespace turnpoint::views {

namespace {

constexpr int kStripFrom = 520;  // narrower views show one device only

}  // namespace

MemoryView::MemoryView(QWidget* parent, TimeZoomPtr zoom)
    : QWidget(parent), chart_(new MemoryChart(zoom, this)), strip_(new DeviceStrip(this)) {
  setObjectName(QStringLiteral("memory_view"));
  make_tool_bar();
  connect(fit_button_, &QToolButton::clicked, zoom.get(), &TimeZoom::fit);
  auto* body = new QHBoxLayout;
  body->setContentsMargins(0, 0, 0, 0);
  body->setSpacing(0);
  body->addWidget(strip_);
  body->addWidget(chart_, 1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tool_bar_);
  column->addLayout(body, 1);
  setFocusProxy(chart_);
  connect(strip_, &DeviceStrip::device_picked, this, [this](std::uint32_t device) {
    if (selection_) return selection_->pick_device(device);
    strip_->set_device(device);
    chart_->set_device(device);
    update_words();
  });
  connect(chart_, &MemoryChart::device_stepped, this, [this](int direction) {
    if (!summary_ || chart_->device() == kNone) return;
    const auto last = std::int64_t(summary_->devices()) - 1;
    const auto next = std::clamp<std::int64_t>(std::int64_t(chart_->device()) + direction, 0, last);
    emit strip_->device_picked(std::uint32_t(next));
  });
  connect(chart_, &MemoryChart::window_changed, this, &MemoryView::update_words);
  connect(chart_, &MemoryChart::export_requested, this, &MemoryView::export_requested);
  set_prepared(nullptr);
  set_message(tr("Pick a plan or a placement to see its memory over time."));
}

std::shared_ptr<const MemorySummary> MemoryView::prepare(SchedulePtr schedule) {
  return MemorySummary::make(std::move(schedule));
}

void MemoryView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("memory_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(6);
  words_ = new NoteLabel(tool_bar_);
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  row->addWidget(words_, 1);
  strip_button_ = new ToggleButton(tool_bar_);
  strip_button_->setText(tr("All devices"));
  strip_button_->setToolTip(tr("Every device small, beside the one on show"));
  scale_button_ = new ToggleButton(tool_bar_);
  scale_button_->setText(tr("Scale to limit"));
  scale_button_->setToolTip(tr("Show the whole of the device's memory even where far less is used"));
  for (ToggleButton* button : {strip_button_, scale_button_}) {
    button->setCheckable(true);
    row->addWidget(button);
  }
  strip_button_->setChecked(true);
  fit_button_ = icon_button(tool_bar_, QStringLiteral("fit"), tr("Fit"), tr("Fit the whole schedule (F)"));
  export_button_ = make_export_button(tool_bar_, this);
  row->addWidget(fit_button_);
  row->addWidget(export_button_);
  connect(strip_button_, &QToolButton::toggled, this, &MemoryView::arrange);
  connect(scale_button_, &QToolButton::toggled, chart_, &MemoryChart::set_show_limit);
}

void MemoryView::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  chart_->set_selection(selection);
  if (selection_) connect(selection_, &SelectionModel::device_changed, this, &MemoryView::show_device);
  show_device();
}

void MemoryView::set_schedule(SchedulePtr schedule) {
  if (summary_ && summary_->schedule() == schedule) return;
  set_prepared(prepare(std::move(schedule)));
}

void MemoryView::set_prepared(std::shared_ptr<const MemorySummary> summary) {
  summary_ = std::move(summary);
  chart_->set_summary(summary_);
  strip_->set_summary(summary_);
  for (QWidget* widget : std::initializer_list<QWidget*>{strip_button_, scale_button_, fit_button_, export_button_})
    widget->setEnabled(summary_ && summary_->recorded());
  strip_button_->setEnabled(summary_ && summary_->devices() > 1);
  arrange();
  show_device();
}

void MemoryView::set_message(const QString& message) {
  message_ = message;
  chart_->set_message(message);
  update_words();
}

void MemoryView::arrange() {
  strip_->setVisible(strip_button_->isChecked() && summary_ && summary_->devices() > 1 && width() >= kStripFrom);
}

void MemoryView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

void MemoryView::show_device() {
  std::uint32_t device = kNone;
  if (summary_) {
    const bool follows = selection_ && (!selection_->schedule() || selection_->schedule() == summary_->schedule());
    device = follows && selection_->device() < summary_->devices() ? selection_->device() : summary_->fullest_device();
  }
  strip_->set_device(device);
  chart_->set_device(device);
  update_words();
}

void MemoryView::update_words() {
  QString text;
  if (summary_ && chart_->device() != kNone) {
    const Schedule::Device& device = summary_->schedule()->devices[chart_->device()];
    if (!message_.isEmpty()) text = message_ + QStringLiteral(" \u00b7 ");
    text += to_qt(device.name) + tr(": peak %1").arg(memory_text(device.peak_bytes));
    if (device.memory_limit != kUnlimitedBytes) text += tr(" of %1").arg(memory_text(device.memory_limit));
    text += tr(" at %1").arg(time_text(device.peak_at_s));
    if (const std::size_t over = summary_->devices_over())
      text += QStringLiteral(" \u00b7 ") + tr("%1 of %2 devices over their memory").arg(over).arg(summary_->devices());
  }
  words_->setText(text);
  words_->setToolTip(text);
}

QString MemoryView::words() const { return words_->text(); }

void MemoryView::paint_to(QPainter& painter, QSize size) {
  const ThemeColors& theme = theme_colors(palette());
  painter.fillRect(QRect(QPoint(0, 0), size), theme.base);
  const int side = strip_->isVisibleTo(this) ? strip_->width() : 0;
  if (side > 0) strip_->paint(painter, QRectF(0, 0, side, size.height()), theme);
  painter.save();
  painter.translate(side, 0);
  chart_->paint(painter, QSizeF(size.width() - side, size.height()), theme);
  painter.restore();
}

QJsonObject MemoryView::save_state() const {
  return {{QStringLiteral("all_devices"), strip_button_->isChecked()},
          {QStringLiteral("scale_to_limit"), scale_button_->isChecked()}};
}

void MemoryView::restore_state(const QJsonObject& state) {
  strip_button_->setChecked(state.value(QLatin1String("all_devices")).toBool(true));
  scale_button_->setChecked(state.value(QLatin1String("scale_to_limit")).toBool());
}

}  // namespace turnpoint::views
