// SPDX-License-Identifier: Apache-2.0
#include "views/devices/devices_view.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/table_setup.h"
#include "views/devices/device_chart.h"

namespace turnpoint::views {

namespace {

QString figures(const RatioPlan& plan) {
  return QObject::tr("%1, fullest device %2").arg(time_text(plan.cost.time_s()), memory_text(plan.most_memory()));
}

}  // namespace

DevicesView::DevicesView(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("devices_view"));
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("devices_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  words_ = new NoteLabel(tool_bar_);
  words_->setObjectName(QStringLiteral("devices_words"));
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  keep_ = new QPushButton(tr("Keep as a plan"), tool_bar_);
  keep_->setObjectName(QStringLiteral("keep_ratio"));
  keep_->setToolTip(
      tr("The plan with these parts as a row of its own in the list of methods: drawn, picked, exported and saved like "
         "what methods find"));
  reset_ = new QPushButton(tr("As found"), tool_bar_);
  reset_->setToolTip(tr("Back to the parts that the method found"));
  row->addWidget(words_, 1);
  row->addWidget(keep_);
  row->addWidget(reset_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  pages_ = new QStackedWidget(this);
  empty_ = make_empty_words(
      tr("Here stand plans that cut the devices into parts of unlike size: those of AccPar, HyPar "
         "and One Weird Trick for unlike devices, or for a number that is no power of two, and those of update "
         "sharding on their splits."),
      pages_);
  empty_->setWordWrap(true);
  empty_->setMargin(24);
  chart_ = new DeviceChart(pages_);
  pages_->addWidget(empty_);
  pages_->addWidget(chart_);
  column->addWidget(pages_);
  connect(reset_, &QPushButton::clicked, this, [this] {
    set_plan(found_, scenario_);
    emit put_back();
  });
  connect(keep_, &QPushButton::clicked, this, [this] { emit keep_requested(shown_moves_); });
  const auto ask = [this](std::uint32_t cut, double ratio) {
    emit change_requested(found_, moved_further(*found_, base_moves_, {cut, ratio}));
  };
  connect(chart_, &DeviceChart::ratio_moved, this, ask);
  connect(chart_, &DeviceChart::ratio_set, this, ask);
  show_plan();
}

void DevicesView::set_plan(const RatioPlanPtr& plan, const ScenarioPtr& scenario) {
  found_ = shown_ = plan;
  base_moves_.clear(), shown_moves_.clear();
  scenario_ = plan ? scenario : nullptr;
  why_.clear();
  show_plan();
}

void DevicesView::set_changed(const RatioPlanPtr& plan, const RatioMoves& moves, const QString& why) {
  if (!found_) return;
  why_ = why;
  if (plan) shown_ = plan, shown_moves_ = moves;
  if (!chart_->holds_border()) base_moves_ = shown_moves_;
  show_plan();
}

QString DevicesView::words() const { return words_->text(); }

void DevicesView::show_plan() {
  pages_->setCurrentWidget(shown_ ? static_cast<QWidget*>(chart_) : empty_);
  chart_->set_blocks(shown_ ? blocks_of(*shown_, *scenario_) : DeviceBlocks());
  const bool changed = shown_ != found_;
  keep_->setEnabled(changed);
  reset_->setEnabled(changed);
  if (!shown_) return words_->setText({});
  QString text = tr("%1 devices · %2").arg(shown_->devices()).arg(figures(*shown_));
  if (changed)
    text += tr(" · %1 against what was found (%2)")
                .arg(percent_text(shown_->cost.time_s() / found_->cost.time_s() - 1), figures(*found_));
  if (!why_.isEmpty()) text += QStringLiteral(" · ") + why_;
  words_->setText(text);
  words_->setToolTip(changed ? tr("The chart and the Plan dock show the plan as it was found") : QString());
}

void DevicesView::paint_to(QPainter& painter, QSize size) const { chart_->paint_to(painter, size); }

}  // namespace turnpoint::views
