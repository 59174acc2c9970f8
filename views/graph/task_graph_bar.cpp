// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_graph_bar.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMenu>
#include <QToolButton>

#include "views/common/picture_export.h"
#include "views/graph/fit_button.h"

namespace turnpoint::views {

TaskGraphBar::TaskGraphBar(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("task_graph_tool_bar"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(6);
  const auto add_box = [&](const QString& label, const QStringList& choices, const QString& tip) {
    auto* name = new QLabel(label, this);
    auto* box = new QComboBox(this);
    box->addItems(choices);
    box->setAccessibleName(label);
    box->setToolTip(tip);
    name->setBuddy(box);
    names_.push_back(name);
    row->addWidget(name);
    row->addWidget(box);
    row->addSpacing(4);
    return box;
  };
  color_box_ = add_box(tr("Colour"), {tr("Device"), tr("Time"), tr("Bytes"), tr("Scope"), tr("Cluster")},
                       tr("What the colour of a task means; without a placement, scopes stand in for devices"));
  fold_box_ = add_box(tr("Fold"), {tr("Layers"), tr("Everything"), tr("Outline")}, tr("How far the graph is unfolded"));
  critical_ = new ToggleButton(this);
  critical_->setText(tr("Critical path"));
  critical_->setCheckable(true);
  critical_->setChecked(true);
  critical_->setToolTip(tr("Outline the tasks that decide how long an iteration takes"));
  row->addWidget(critical_);
  row->addSpacing(4);
  search_ = new QLineEdit(this);
  search_->setPlaceholderText(tr("Find task or layer"));
  search_->setAccessibleName(tr("Find task or layer"));
  search_->setToolTip(tr("Enter goes to the next match, Shift+Enter to the one before"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(90);
  search_->setMaximumWidth(190);
  search_->installEventFilter(this);
  row->addWidget(search_, 2);
  const auto add_label = [&](int stretch) {
    auto* label = new QLabel(this);
    row->addWidget(label, stretch);
    return label;
  };
  matches_ = add_label(0);
  counts_ = add_label(1);
  counts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  engine_ = add_label(0);
  zoom_ = add_label(0);
  auto* fit_button = new FitButton(this);
  fit_button->setAutoRaise(true);
  fit_button->setFixedSize(26, 24);
  fit_button->setToolTip(tr("Fit the whole graph (F)"));
  fit_button->setAccessibleName(tr("Fit"));
  row->addWidget(fit_button);
  row->addWidget(make_export_button(this, this));

  // What does not fit is left out instead of keeping the window wide.
  row->setSizeConstraint(QLayout::SetNoConstraint);
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  setMinimumHeight(row->minimumSize().height());

  search_timer_.setSingleShot(true);
  search_timer_.setInterval(200);
  connect(&search_timer_, &QTimer::timeout, this, [this] { emit search(search_->text()); });
  connect(search_, &QLineEdit::textChanged, &search_timer_, qOverload<>(&QTimer::start));
  connect(color_box_, &QComboBox::currentIndexChanged, this, &TaskGraphBar::look_changed);
  connect(critical_, &QToolButton::toggled, this, &TaskGraphBar::look_changed);
  connect(fold_box_, &QComboBox::activated, this,
          [this](int index) { emit fold_chosen(static_cast<TaskFold>(index)); });
  connect(fit_button, &QToolButton::clicked, this, &TaskGraphBar::fit);
}

void TaskGraphBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  engine_->setVisible(width() >= 854);
  zoom_->setVisible(width() >= 774);
  counts_->setVisible(width() >= 724);  // whole or not at all: a number without its first digits is another number
  critical_->setVisible(width() >= 554);
  for (QLabel* name : names_) name->setVisible(width() >= 654);
}

bool TaskGraphBar::eventFilter(QObject* object, QEvent* event) {
  if (object == search_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
      if (search_timer_.isActive()) {
        search_timer_.stop();
        emit search(search_->text());
      } else {
        emit next_match(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
      }
      return true;
    }
    if (key->key() == Qt::Key_Escape && !search_->text().isEmpty()) {
      search_->clear();
      return true;
    }
  }
  return QWidget::eventFilter(object, event);
}

void TaskGraphBar::set_words(const Words& words, const QString& matches) {
  counts_->setText(words.counts);
  counts_->setToolTip(words.counts_tip.isEmpty() ? words.counts : words.counts_tip);
  engine_->setText(words.engine);
  engine_->setToolTip(words.engine_tip);
  zoom_->setText(words.zoom);
  matches_->setText(matches);
}

void TaskGraphBar::save_state(QJsonObject& state) const {
  state.insert(QStringLiteral("colour"), color_box_->currentIndex());
  state.insert(QStringLiteral("fold"), fold_box_->currentIndex());
  state.insert(QStringLiteral("critical_path"), critical_->isChecked());
}

void TaskGraphBar::restore_state(const QJsonObject& state) {
  const auto choose = [&](QComboBox* box, const char* key) {
    const int index = state.value(QLatin1String(key)).toInt(box->currentIndex());
    if (index >= 0 && index < box->count()) box->setCurrentIndex(index);
  };
  choose(color_box_, "colour");
  choose(fold_box_, "fold");
  critical_->setChecked(state.value(QLatin1String("critical_path")).toBool(critical_->isChecked()));
}

}  // namespace turnpoint::views
