// SPDX-License-Identifier: Apache-2.0
#include "app/task_strip.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "app/task_manager.h"
#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/section_head.h"

namespace turnpoint::app {

namespace {

/// Tasks shorter than this never flash up.
constexpr int kPatience_ms = 200, kTick_ms = 200;
constexpr int kLeastName = 120;

/// A guess has no milliseconds.
QString time_words(double seconds) {
  constexpr double kMinutesFrom = 100;
  return seconds < kMinutesFrom ? TaskStrip::tr("%1\u00a0s").arg(int(seconds))
                                : TaskStrip::tr("%1\u00a0min").arg(int(std::ceil(seconds / 60)));
}

QString time_words(const TaskInfo& task) {
  const double seconds = static_cast<double>(task.elapsed_ms) / 1e3;
  if (task.stopping) return TaskStrip::tr("stopping");
  if (task.waiting) return TaskStrip::tr("waiting");
  if (task.fraction > 0.05 && task.fraction < 1 && seconds > 1) {
    // What is left is guessed where the share last rose. A guess that is overdue is none: then the time goes up.
    const double left = static_cast<double>(task.risen_ms) / 1e3 / task.fraction - seconds;
    return (left > 0 ? TaskStrip::tr("%1 · %2 left") : TaskStrip::tr("%1 · %2 so far"))
        .arg(views::progress_text(task.fraction),
             time_words(left > 0 ? std::max(1.0, std::ceil(left)) : std::floor(seconds)));
  }
  return views::search_time_text(seconds);
}

}  // namespace

TaskStrip::TaskStrip(TaskManager& tasks, QWidget* parent) : QWidget(parent), tasks_(tasks) {
  setObjectName(QStringLiteral("task_strip"));
  name_ = new QToolButton(this);
  name_->setAutoRaise(true);
  name_->setToolTip(tr("List all running tasks"));
  name_->setAccessibleName(tr("Running tasks"));
  name_->setFont(views::secondary_font(font()));
  bar_ = new QProgressBar(this);
  bar_->setTextVisible(false);
  bar_->setFixedSize(96, 8);
  bar_->setAccessibleName(tr("Progress of the newest task"));
  time_ = new QLabel(this);
  time_->setFont(views::secondary_font(font()));
  cancel_ = new QToolButton(this);
  cancel_->setObjectName(QStringLiteral("cancel_task"));
  cancel_->setIcon(views::themed_icon(QStringLiteral("close")));
  cancel_->setAutoRaise(true);
  cancel_->setToolTip(tr("Cancel this task"));
  cancel_->setAccessibleName(tr("Cancel the task shown"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 8, 0);
  row->setSpacing(6);
  for (QWidget* part : {static_cast<QWidget*>(name_), static_cast<QWidget*>(bar_), static_cast<QWidget*>(time_),
                        static_cast<QWidget*>(cancel_)})
    row->addWidget(part, 0, Qt::AlignVCenter);
  connect(name_, &QToolButton::clicked, this, &TaskStrip::show_list);
  connect(cancel_, &QToolButton::clicked, this, [this] { tasks_.cancel(shown_); });
  connect(&tasks, &TaskManager::changed, this, &TaskStrip::refresh);
  connect(&tick_, &QTimer::timeout, this, &TaskStrip::refresh);
  tick_.setInterval(kTick_ms);
  patience_.setSingleShot(true);
  patience_.setInterval(kPatience_ms);
  connect(&patience_, &QTimer::timeout, this, &TaskStrip::refresh);
  hide();
}

void TaskStrip::refresh() {
  const auto all = tasks_.tasks();
  if (all.empty()) {
    patience_.stop();
    tick_.stop();
    hide();
    return;
  }
  const auto task =
      std::find_if(all.begin(), all.end(), [](const TaskInfo& each) { return each.elapsed_ms >= kPatience_ms; });
  if (task == all.end()) {
    if (!isVisible() && !patience_.isActive()) patience_.start();
    return;
  }
  shown_ = task->id;
  const QString name = task->phase.isEmpty() ? task->title : task->title + QStringLiteral(": ") + task->phase;
  // No more than a fifth of the window: bar, time and the button that cancels are to stay whole.
  name_->setText(name_->fontMetrics().elidedText(name, Qt::ElideRight, std::max(kLeastName, window()->width() / 5)));
  name_->setToolTip(name + u'\n' + tr("List all running tasks"));  // there it is whole
  bar_->setRange(0, task->fraction >= 0 ? 1000 : 0);
  bar_->setValue(static_cast<int>(task->fraction * 1000));
  time_->setText(time_words(*task));
  cancel_->setEnabled(!task->stopping);
  show();
  if (!tick_.isActive()) tick_.start();
}

void TaskStrip::show_list() {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto all = tasks_.tasks();
  for (const TaskInfo& task : all)
    menu->addAction(views::themed_icon(QStringLiteral("close")),
                    tr("%1 — %2 (click cancels)").arg(task.title, time_words(task)), this,
                    [this, id = task.id] { tasks_.cancel(id); });
  if (all.empty()) menu->addAction(tr("Nothing is running"))->setEnabled(false);
  menu->popup(mapToGlobal(QPoint(0, -menu->sizeHint().height())));
}

}  // namespace turnpoint::app
