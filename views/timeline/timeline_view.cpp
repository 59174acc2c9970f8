// SPDX-License-Identifier: Apache-2.0
#include "views/timeline/timeline_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/note_label.h"
#include "views/common/picture_export.h"
#include "views/common/toggle_button.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_words.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kMostFound = 1'000'000;

/// Kinds, unless the schedule's tasks are all of one that says nothing; then layers, or where there are none durations.
TimelineColor telling_color(const TimelineSummary& summary) {
  for (const TaskKind kind : {TaskKind::forward, TaskKind::backward, TaskKind::update})
    if (summary.has_class(TimelineColor::kind, std::size_t(kind))) return TimelineColor::kind;
  return summary.layer_count() > 1 ? TimelineColor::layer : TimelineColor::duration;
}

}  // namespace

TimelineView::TimelineView(QWidget* parent, TimeZoomPtr zoom)
    : QWidget(parent), canvas_(new TimelineCanvas(zoom, this)) {
  setObjectName(QStringLiteral("timeline_view"));
  make_tool_bar();
  connect(fit_button_, &QToolButton::clicked, zoom.get(), &TimeZoom::fit);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tool_bar_);
  column->addWidget(canvas_, 1);
  setFocusProxy(canvas_);
  connect(canvas_, &TimelineCanvas::window_changed, this, &TimelineView::update_words);
  connect(canvas_, &TimelineCanvas::export_requested, this, &TimelineView::export_requested);
  set_prepared(nullptr);
  set_message(tr("Pick a plan or a placement to see its timeline."));
}

std::shared_ptr<const TimelineSummary> TimelineView::prepare(SchedulePtr schedule) {
  return TimelineSummary::make(std::move(schedule));
}

void TimelineView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("timeline_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(6);
  auto* label = new QLabel(tr("Colour"), tool_bar_);
  color_box_ = new QComboBox(tool_bar_);
  color_box_->addItems({tr("Kind"), tr("Layer"), tr("Duration")});
  color_box_->setAccessibleName(tr("Colour"));
  color_box_->setToolTip(tr("What the colour of a task means"));
  label->setBuddy(color_box_);
  row->addWidget(label);
  row->addWidget(color_box_);
  path_button_ = new ToggleButton(tool_bar_);
  path_button_->setText(tr("Critical path"));
  path_button_->setCheckable(true);
  path_button_->setToolTip(tr("Highlight a chain of tasks and transfers that decides the makespan"));
  row->addWidget(path_button_);
  find_box_ = new QLineEdit(tool_bar_);
  find_box_->setObjectName(QStringLiteral("timeline_find"));
  find_box_->setPlaceholderText(tr("Find task"));
  find_box_->setClearButtonEnabled(true);
  find_box_->setAccessibleName(tr("Find task"));
  find_box_->setToolTip(tr("Part of a name; Enter shows the next task, Shift+Enter the one before"));
  find_box_->setMaximumWidth(180);
  find_box_->installEventFilter(this);
  row->addWidget(find_box_, 1);
  found_ = new NoteLabel(tool_bar_);
  row->addWidget(found_);
  words_ = new NoteLabel(tool_bar_);
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  words_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  row->addWidget(words_, 2);
  fit_button_ = icon_button(tool_bar_, QStringLiteral("fit"), tr("Fit"), tr("Fit the whole schedule (F)"));
  export_button_ = make_export_button(tool_bar_, this);
  row->addWidget(fit_button_);
  row->addWidget(export_button_);
  connect(color_box_, &QComboBox::currentIndexChanged, this,
          [this](int index) { canvas_->set_color(static_cast<TimelineColor>(index)); });
  connect(color_box_, &QComboBox::activated, this, [this] { color_chosen_ = true; });
  connect(path_button_, &QToolButton::toggled, canvas_, &TimelineCanvas::set_critical);
  connect(find_box_, &QLineEdit::textChanged, this, [this] { found_->clear(); });
}

bool TimelineView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == find_box_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
      find(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
      return true;
    }
    if (key->key() == Qt::Key_Escape) {
      find_box_->clear();
      canvas_->setFocus();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

void TimelineView::find(int step) {
  if (!summary_) return;
  const auto tasks = find_tasks(*summary_, find_box_->text(), kMostFound);
  if (tasks.empty()) {
    found_->setText(find_box_->text().trimmed().isEmpty() ? QString() : tr("none"));
    return;
  }
  // On from the place that is current, in the order of start.
  const std::uint32_t current = canvas_->current();
  std::size_t next = step > 0 ? 0 : tasks.size() - 1;
  if (current != kNone) {
    const auto at = std::find(tasks.begin(), tasks.end(), summary_->schedule()->task[current]);
    if (at != tasks.end()) next = (std::size_t(at - tasks.begin()) + tasks.size() + std::size_t(step)) % tasks.size();
  }
  const std::uint32_t item = summary_->items_of(tasks[next]).front();
  canvas_->set_current(item);
  if (selection_) selection_->pick_tasks({tasks[next]});
  canvas_->reveal(item, true);
  found_->setText(tr("%1 of %2").arg(grouped_number(double(next + 1), 0), grouped_number(double(tasks.size()), 0)));
}

void TimelineView::set_selection(SelectionModel* selection) {
  selection_ = selection;
  canvas_->set_selection(selection);
}

void TimelineView::set_schedule(SchedulePtr schedule) {
  if (summary_ && summary_->schedule() == schedule) return;
  set_prepared(prepare(std::move(schedule)));
}

void TimelineView::set_prepared(std::shared_ptr<const TimelineSummary> summary) {
  summary_ = std::move(summary);
  canvas_->set_summary(summary_);
  if (summary_ && !color_chosen_) color_box_->setCurrentIndex(static_cast<int>(telling_color(*summary_)));
  found_->clear();
  for (QWidget* widget :
       std::initializer_list<QWidget*>{color_box_, path_button_, find_box_, fit_button_, export_button_})
    widget->setEnabled(summary_ != nullptr);
  path_button_->setEnabled(summary_ && !summary_->critical().empty());
  update_words();
}

void TimelineView::set_message(const QString& message) {
  message_ = message;
  canvas_->set_message(message);
  update_words();
}

void TimelineView::add_export(QAction* action) {
  export_button_->menu()->setToolTipsVisible(true);
  export_button_->menu()->addAction(action);
}

void TimelineView::update_words() {
  QString text;
  if (summary_) {
    if (!message_.isEmpty()) text = message_ + QStringLiteral(" \u00b7 ");
    const double makespan = summary_->schedule()->makespan_s;
    text += tr("%1 simulated").arg(time_text(makespan));
    if (makespan > 0) text += tr(", %1 busy").arg(share_text(summary_->busy_share()));
    const TimeView& time = canvas_->time();
    if (!time.fitted()) text += QStringLiteral(" \u00b7 ") + tr("%1 on show").arg(time_text(time.to() - time.from()));
  }
  words_->setText(text);
  words_->setToolTip(text);
}

QString TimelineView::words() const { return words_->text(); }

void TimelineView::paint_to(QPainter& painter, QSize size) {
  canvas_->paint_to(painter, size, theme_colors(palette()));
}

QJsonObject TimelineView::save_state() const {
  return {{QStringLiteral("colour"), color_box_->currentIndex()},
          {QStringLiteral("colour_chosen"), color_chosen_},
          {QStringLiteral("critical_path"), path_button_->isChecked()}};
}

void TimelineView::restore_state(const QJsonObject& state) {
  const int color = state.value(QLatin1String("colour")).toInt(color_box_->currentIndex());
  if (color >= 0 && color < color_box_->count()) color_box_->setCurrentIndex(color);
  color_chosen_ = state.value(QLatin1String("colour_chosen")).toBool(color > 0);  // older sessions say the colour alone
  path_button_->setChecked(state.value(QLatin1String("critical_path")).toBool());
}

}  // namespace turnpoint::views
