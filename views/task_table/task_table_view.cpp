// SPDX-License-Identifier: Apache-2.0
#include "views/task_table/task_table_view.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QHeaderView>
#include <QLayout>
#include <QScrollBar>
#include <algorithm>

#include "views/common/counted.h"
#include "views/common/table_setup.h"
#include "views/common/toggle_button.h"
#include "views/plan_table/plan_delegates.h"

namespace turnpoint::views {
namespace {

/// More tasks than this, picked elsewhere, are not marked one by one.
constexpr std::size_t kMostMarked = 2000;
/// Names measured for their column's width.
constexpr int kMostMeasured = 2000;

}  // namespace

TaskTableView::TaskTableView(QWidget* parent) : QWidget(parent), model_(new TaskTableModel(this)) {
  setObjectName(QStringLiteral("task_table_view"));
  model_->set_palette(palette());
  make_tool_bar();
  make_table();
  message_ = make_empty_words(tr("The tasks of the picked plan stand here."), this);
  stack_table(this, bar_, table_, message_);
  update_words();
}

TaskTableView::~TaskTableView() = default;

void TaskTableView::make_tool_bar() {
  bar_ = make_table_bar(
      {QStringLiteral("task_table_tool_bar"), tr("Filter: name, layer, kind"), tr("Filter of the task table"),
       tr("Copy rows"), tr("Copy the picked rows, or all, with tabs between columns (Ctrl+C)")},
      this);
  connect_copy(bar_, this, [this] { QApplication::clipboard()->setText(rows_as_text()); });
  connect(bar_.filter, &QLineEdit::textChanged, this, &TaskTableView::wish);
  without_time_ = new ToggleButton(bar_.widget);
  without_time_->setText(tr("Without time"));
  without_time_->setCheckable(true);
  without_time_->setObjectName(QStringLiteral("tasks_without_time"));
  without_time_->setToolTip(tr("Show also tasks that take no time: waits, views and inputs"));
  bar_.widget->layout()->addWidget(without_time_);
  connect(without_time_, &QToolButton::toggled, this, &TaskTableView::wish);
}

void TaskTableView::make_table() {
  table_ = new QTreeView(this);
  table_->setModel(model_);
  table_->setRootIsDecorated(false);
  set_up_table(table_, tr("Tasks, one row each"));
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setMouseTracking(true);
  table_->setItemDelegate(new PlanRowDelegate(this));
  // Not the view's own sorting, which would do it on the interface thread.
  QHeaderView* head = table_->header();
  head->setSectionsClickable(true);
  head->setSortIndicatorShown(true);
  head->setSortIndicator(int(sorted_by_), Qt::AscendingOrder);
  connect(head, &QHeaderView::sortIndicatorChanged, this, [this](int column, Qt::SortOrder order) {
    sorted_by_ = TaskColumn(std::clamp(column, 0, int(TaskColumn::kCount) - 1));
    descending_ = order == Qt::DescendingOrder;
    wish();
  });
  head->moveSection(head->visualIndex(int(TaskColumn::sent)), head->visualIndex(int(TaskColumn::output)) + 1);
  table_->viewport()->installEventFilter(this);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &TaskTableView::pick_rows);
  connect(table_, &QTreeView::entered, this, [this](const QModelIndex& index) {
    if (selection_ && selection_->schedule() == schedule_) selection_->hover_task(model_->task_at(index.row()));
  });
}

void TaskTableView::set_selection(SelectionModel* selection) {
  if (selection_) selection_->disconnect(this);
  selection_ = selection;
  const auto follow = [this] {
    schedule_ = selection_ ? selection_->schedule() : nullptr;
    // Rows of another schedule mean other tasks.
    changing_selection_ = true;
    model_->set_rows(nullptr);
    changing_selection_ = false;
    wish();
  };
  if (selection_) {
    connect(selection_, &SelectionModel::schedule_changed, this, follow);
    connect(selection_, &SelectionModel::tasks_changed, this, &TaskTableView::show_picked);
  }
  follow();
}

void TaskTableView::set_message(const QString& message) { message_->setText(message); }

void TaskTableView::wish() {
  TaskRowsRequest request{schedule_, bar_.filter->text().toStdString(), sorted_by_, descending_,
                          without_time_->isChecked()};
  if (working_)
    next_ = std::move(request);
  else
    start(std::move(request));
  update_words();
}

void TaskTableView::start(TaskRowsRequest request) {
  if (!request.schedule) return arrived(nullptr);
  working_ = true;
  worker_ = std::jthread([this, request = std::move(request)]() mutable {
    TaskRowsPtr rows;
    try {
      rows = make_task_rows(std::move(request));
    } catch (const std::bad_alloc&) {  // the table stays empty; a task that needs memory says that there is none
    }
    // The destructor waits for this thread, so that `this` is there to be posted to.
    QMetaObject::invokeMethod(
        this, [this, rows = std::move(rows)] { arrived(rows); }, Qt::QueuedConnection);
  });
}

void TaskTableView::arrived(TaskRowsPtr rows) {
  working_ = false;
  if (next_) {
    TaskRowsRequest request = std::move(*next_);
    next_.reset();
    start(std::move(request));
    if (working_ && rows && rows->request.schedule != schedule_) return;
  }
  if (rows && rows->request.schedule != schedule_) rows = nullptr;
  changing_selection_ = true;
  model_->set_rows(std::move(rows));
  changing_selection_ = false;
  table_->setColumnHidden(int(TaskColumn::scope), schedule_ && schedule_->graph->scopes.size() <= 1);
  const TaskRowsPtr& shown = model_->rows();
  table_->setColumnHidden(int(TaskColumn::sent), !shown || shown->peak_communication_bytes == 0);
  fit_columns();
  update_words();
  show_picked();
}

void TaskTableView::fit_columns() {
  // Before it is looked at it has no width to share out.
  if (columns_fitted_ || model_->rowCount() == 0 || !isVisible()) return;
  columns_fitted_ = true;
  // The rows that can be seen say how wide. Names of tasks are the longest: they take what the other columns leave, and
  // no less than a quarter.
  const int bar = table_->verticalScrollBar()->isVisible() ? 0 : table_->verticalScrollBar()->sizeHint().width();
  const int room = table_->viewport()->width() - bar, widest = std::max(160, room / 4),
            last = model_->columnCount() - 1;
  std::vector<int> figures;
  int taken = 0;
  for (int column = 0; column <= last; ++column) {
    table_->resizeColumnToContents(column);
    if (column == int(TaskColumn::name) || table_->isColumnHidden(column)) continue;
    figures.push_back(column);
    taken += std::min(widest, table_->columnWidth(column));
  }
  // A little air where there is room for it.
  const int air = std::clamp((room - widest - taken) / std::max(1, int(figures.size())), 0, 8);
  for (const int column : figures) table_->setColumnWidth(column, std::min(widest, table_->columnWidth(column)) + air);
  taken += air * int(figures.size());
  // Those of collectives are longer than those that stand first.
  const QFontMetrics metrics(table_->font());
  const int step = 1 + model_->rowCount() / kMostMeasured;
  int name = table_->columnWidth(int(TaskColumn::name));
  for (int row = 0; row < model_->rowCount(); row += step)
    name = std::max(name, metrics.horizontalAdvance(model_->index(row, int(TaskColumn::name)).data().toString()) + 16);
  table_->setColumnWidth(int(TaskColumn::name), std::min(name, std::max(widest, room - taken)));
}

void TaskTableView::update_words() {
  const int rows = model_->rowCount();
  table_->setVisible(schedule_ != nullptr);
  message_->setVisible(schedule_ == nullptr);
  bar_.copy->setEnabled(rows > 0);
  if (!schedule_) return bar_.summary->clear();
  if (!model_->rows()) return bar_.summary->setText(tr("being sorted"));
  const auto all = schedule_->graph->task_count();
  const QString counted = std::size_t(rows) == all
                              ? views::counted(double(all), tr("1 task"), tr("%1 tasks"))
                              : tr("%1 of %2 tasks").arg(grouped_number(rows, 0), grouped_number(double(all), 0));
  const TaskRows& shown = *model_->rows();
  QString words = tr("%1 · their times add up to %2").arg(counted, time_text(shown.shown_s));
  if (shown.peak_communication_bytes > 0)
    words += tr(" · peak communication %1, from %2 to %3")
                 .arg(memory_text(shown.peak_communication_bytes), to_qt(schedule_->devices[shown.peak_from].name),
                      to_qt(schedule_->devices[shown.peak_to].name));
  bar_.summary->setText(words);
  bar_.summary->setToolTip(words);
}

void TaskTableView::show_picked() {
  if (changing_selection_ || !selection_ || selection_->schedule() != schedule_ || !model_->rows()) return;
  changing_selection_ = true;
  QItemSelection picked;
  int first = -1;
  for (const TaskIndex task : selection_->tasks()) {
    const int row = model_->row_of(task);
    if (row < 0) continue;
    first = first < 0 ? row : std::min(first, row);
    if (std::size_t(picked.size()) < kMostMarked)
      picked.select(model_->index(row, 0), model_->index(row, model_->columnCount() - 1));
  }
  table_->selectionModel()->select(picked, QItemSelectionModel::ClearAndSelect);
  if (first >= 0) table_->scrollTo(model_->index(first, 0));
  changing_selection_ = false;
}

void TaskTableView::pick_rows() {
  if (changing_selection_ || !selection_ || selection_->schedule() != schedule_ || !model_->rows()) return;
  std::set<TaskIndex> tasks;
  for (const QItemSelectionRange& range : table_->selectionModel()->selection())
    for (int row = range.top(); row <= range.bottom(); ++row) tasks.insert(model_->task_at(row));
  changing_selection_ = true;
  selection_->pick_tasks(std::move(tasks));
  changing_selection_ = false;
}

QString TaskTableView::rows_as_text() const {
  QStringList lines, cells;
  for (int column = 0; column < model_->columnCount(); ++column)
    cells << model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  lines << cells.join(u'\t');
  const auto add = [&](int row) {
    cells.clear();
    for (int column = 0; column < model_->columnCount(); ++column)
      cells << model_->index(row, column).data().toString();
    lines << cells.join(u'\t');
  };
  const auto picked = table_->selectionModel()->selectedRows();
  if (picked.isEmpty())
    for (int row = 0; row < std::min(model_->rowCount(), kMostCopied); ++row) add(row);
  else
    for (const QModelIndex& index : picked) add(index.row());
  return lines.join(u'\n') + u'\n';
}

QJsonObject TaskTableView::save_state() const {
  return {{QStringLiteral("sorted_by"), int(sorted_by_)},
          {QStringLiteral("descending"), descending_},
          {QStringLiteral("without_time"), without_time_->isChecked()}};
}

void TaskTableView::restore_state(const QJsonObject& state) {
  without_time_->setChecked(state[QStringLiteral("without_time")].toBool());
  const int column = state[QStringLiteral("sorted_by")].toInt(int(TaskColumn::start));
  if (column < 0 || column >= int(TaskColumn::kCount)) return;
  table_->header()->setSortIndicator(
      column, state[QStringLiteral("descending")].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
}

void TaskTableView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) {
    model_->set_palette(palette());
    table_->viewport()->update();
  }
  QWidget::changeEvent(event);
}

void TaskTableView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  fit_columns();
}

bool TaskTableView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Leave && selection_) selection_->hover_task(kNone);
  return QWidget::eventFilter(watched, event);
}

}  // namespace turnpoint::views
