// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_graph_view.h"

#include <QEvent>
#include <QLabel>
#include <QPainter>
#include <QPointer>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/graph/layout_service.h"

namespace turnpoint::views {

struct TaskGraphView::Private {
  TaskGraphPtr graph;
  SchedulePtr schedule;
  QPointer<SelectionModel> selection;
  QJsonObject state;
  LayoutService layouts;
  QWidget* tool_bar = nullptr;
  QLabel* text = nullptr;
};

TaskGraphView::TaskGraphView(QWidget* parent) : QWidget(parent), d_(std::make_unique<Private>()) {
  setObjectName(QStringLiteral("task_graph_view"));
  d_->tool_bar = new QWidget(this);
  d_->text = new QLabel(tr("Open a task graph to see it."), this);
  d_->text->setAlignment(Qt::AlignCenter);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(d_->tool_bar);
  all->addWidget(d_->text, 1);
}

TaskGraphView::~TaskGraphView() = default;

void TaskGraphView::set_selection(SelectionModel* selection) { d_->selection = selection; }

void TaskGraphView::set_task_graph(TaskGraphPtr graph) {
  if (graph == d_->graph) return;
  d_->graph = std::move(graph);
  if (d_->schedule && d_->schedule->graph != d_->graph) d_->schedule = nullptr;
  d_->text->setText(d_->graph ? tr("%1: %2 tasks").arg(to_qt(d_->graph->name)).arg(d_->graph->task_count())
                              : tr("Open a task graph to see it."));
  emit ready();
}

void TaskGraphView::set_schedule(SchedulePtr schedule) {
  if (schedule && schedule->graph != d_->graph) set_task_graph(schedule->graph);
  d_->schedule = std::move(schedule);
}

void TaskGraphView::reveal(const std::set<TaskIndex>&) {}
QJsonObject TaskGraphView::save_state() const { return d_->state; }
void TaskGraphView::restore_state(const QJsonObject& state) { d_->state = state; }
QWidget* TaskGraphView::tool_bar() const { return d_->tool_bar; }
void TaskGraphView::paint_to(QPainter& painter, QSize size) { d_->text->render(&painter, {}, QRect({}, size)); }
TaskCanvas* TaskGraphView::canvas() const { return nullptr; }
LayoutService* TaskGraphView::layout_service() const { return &d_->layouts; }
bool TaskGraphView::busy() const { return false; }
void TaskGraphView::changeEvent(QEvent* event) { QWidget::changeEvent(event); }
void TaskGraphView::resizeEvent(QResizeEvent* event) { QWidget::resizeEvent(event); }

}  // namespace turnpoint::views
