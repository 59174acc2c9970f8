// SPDX-License-Identifier: Apache-2.0
#include "views/plan/engine_view.h"

#include <QApplication>
#include <QClipboard>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "views/common/note_label.h"
#include "views/common/table_setup.h"

namespace turnpoint::views {

namespace {

constexpr int kRowRoom = 10;  // pixels above and below a row's text
constexpr int kListWidth = 340, kDetailsWidth = 700;
constexpr qsizetype kPreview = 200000;  // characters that a text box shows at once

QPushButton* make_push_button(const QString& text, const QString& tip, const char* name, QWidget* parent) {
  auto* button = new QPushButton(text, parent);
  button->setToolTip(tip);
  button->setObjectName(QString::fromLatin1(name));
  button->setAutoDefault(false);
  return button;
}

QString short_verdict(const EngineTarget& target) {
  if (!target.looked_at) return target.stopped ? EngineView::tr("stopped") : QStringLiteral("…");
  if (target.nearest_point) return EngineView::tr("cannot run it, but %1").arg(target.nearest_name);
  if (!target.refusal.isEmpty()) return EngineView::tr("cannot run it");
  if (target.otherwise.isEmpty()) return EngineView::tr("as planned");
  const auto ways = target.otherwise.size();
  return ways == 1 ? EngineView::tr("otherwise in one way") : EngineView::tr("otherwise in %1 ways").arg(ways);
}

QString with_stop(const QString& sentence) { return sentence.endsWith(u'.') ? sentence : sentence + u'.'; }

QString capital(QString sentence) {
  if (!sentence.isEmpty()) sentence[0] = sentence[0].toUpper();
  return sentence;
}

QString whole_verdict(const EngineTarget& target) {
  if (target.stopped) return EngineView::tr("Looking at the plan was stopped.");
  if (!target.looked_at) return EngineView::tr("Looking at it…");
  if (!target.refusal.isEmpty())
    return EngineView::tr("%1 cannot run this plan: %2").arg(target.name, with_stop(target.refusal));
  if (target.otherwise.isEmpty()) return EngineView::tr("%1 runs the plan as it is.").arg(target.name);
  QString text = EngineView::tr("%1 runs the plan, otherwise in:").arg(target.name);
  for (const QString& way : target.otherwise) text += QStringLiteral("\n•  ") + with_stop(capital(way));
  return text;
}

}  // namespace

EngineView::EngineView(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("engine_view"));
  plan_ = new QLabel(this);
  plan_->setObjectName(QStringLiteral("engine_plan"));
  plan_->setWordWrap(true);
  plan_->setTextFormat(Qt::PlainText);
  list_ = new QTreeWidget(this);
  list_->setObjectName(QStringLiteral("engine_list"));
  list_->setHeaderLabels({tr("Engine"), tr("The plan")});
  set_up_table(list_, tr("Engines"));
  list_->setRootIsDecorated(false);
  connect(list_, &QTreeWidget::currentItemChanged, this, &EngineView::show_chosen);
  auto* split = new QSplitter(Qt::Horizontal, this);
  split->setChildrenCollapsible(false);
  split->addWidget(list_);
  split->addWidget(make_details());
  split->setStretchFactor(1, 1);
  split->setSizes({kListWidth, kDetailsWidth});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(plan_);
  column->addWidget(split, 1);
  show_chosen();
}

QWidget* EngineView::make_details() {
  auto* details = new QWidget(this);
  name_ = new QLabel(details);
  name_->setObjectName(QStringLiteral("engine_name"));
  QFont bold = name_->font();
  bold.setBold(true);
  name_->setFont(bold);
  about_ = new NoteLabel(details);
  about_->setWordWrap(true);
  verdict_ = new QLabel(details);
  verdict_->setObjectName(QStringLiteral("engine_verdict"));
  verdict_->setWordWrap(true);
  verdict_->setTextFormat(Qt::PlainText);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  nearest_words_ = new QLabel(details);
  nearest_words_->setObjectName(QStringLiteral("engine_nearest"));
  nearest_words_->setWordWrap(true);
  nearest_words_->setTextFormat(Qt::PlainText);
  nearest_ = make_push_button({}, {}, "engine_nearest_button", details);
  nearest_row_ = new QWidget(details);
  auto* nearest_row = new QHBoxLayout(nearest_row_);
  nearest_row->setContentsMargins(0, 4, 0, 0);
  nearest_row->addWidget(nearest_);
  nearest_row->addStretch(1);
  filler_ = new QWidget(details);  // in the place of a preview
  start_row_ = make_start(details);
  preview_ = new QPlainTextEdit(details);
  preview_->setObjectName(QStringLiteral("engine_preview"));
  preview_->setAccessibleName(tr("The file"));
  preview_->setReadOnly(true);
  preview_->setLineWrapMode(QPlainTextEdit::NoWrap);
  preview_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  auto* column = new QVBoxLayout(details);
  column->setContentsMargins(12, 0, 0, 0);
  for (QWidget* part :
       std::initializer_list<QWidget*>{name_, about_, verdict_, nearest_words_, nearest_row_, start_row_})
    column->addWidget(part);
  column->addWidget(preview_, 1);
  column->addWidget(filler_, 1);
  column->addLayout(make_buttons(details));
  connect_buttons();
  return details;
}

QWidget* EngineView::make_start(QWidget* details) {
  auto* made = new QWidget(details);
  auto* row = new QHBoxLayout(made);
  row->setContentsMargins(0, 0, 0, 0);
  start_ = new QLineEdit(made);
  start_->setObjectName(QStringLiteral("engine_start"));
  start_->setReadOnly(true);
  start_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  auto* label = new QLabel(tr("Start"), made);
  label->setBuddy(start_);
  copy_start_ = make_push_button(tr("Copy command"), tr("Copy the command that starts it"), "engine_copy_start", made);
  row->addWidget(label);
  row->addWidget(start_, 1);
  row->addWidget(copy_start_);
  return made;
}

QLayout* EngineView::make_buttons(QWidget* details) {
  copy_ = make_push_button(tr("Copy file"), tr("Copy the file's text"), "engine_copy", details);
  save_ = make_push_button(tr("Save…"), tr("Write the file"), "engine_save", details);
  copy_measure_ = make_push_button(
      tr("Copy measuring commands"),
      tr("Copy the lines for a terminal, on a cluster too, that run some steps of this under the engine and write a "
         "validation report, which the tab Validation opens beside what was predicted"),
      "engine_copy_measure", details);
  auto* buttons = new QHBoxLayout();
  buttons->addWidget(copy_measure_);
  buttons->addStretch(1);
  buttons->addWidget(copy_);
  buttons->addWidget(save_);
  return buttons;
}

void EngineView::connect_buttons() {
  connect(copy_start_, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(start_->text()); });
  connect(copy_measure_, &QPushButton::clicked, this, [this] {
    if (const EngineTarget* target = chosen()) QApplication::clipboard()->setText(target->measure);
  });
  connect(copy_, &QPushButton::clicked, this, [this] {
    if (const EngineTarget* target = chosen()) QApplication::clipboard()->setText(target->text);
  });
  connect(save_, &QPushButton::clicked, this, [this] {
    if (const EngineTarget* target = chosen()) emit save_wanted(target->key);
  });
  connect(nearest_, &QPushButton::clicked, this, [this] {
    const EngineTarget* target = chosen();
    if (!target) return;
    if (target->nearest_point)
      emit point_wanted(*target->nearest_point);
    else if (target->stopped)
      emit look_wanted();
    else
      emit nearest_wanted();
  });
}

void EngineView::set_targets(const QString& plan, std::vector<EngineTarget> targets, const QString& words) {
  targets_ = std::move(targets);
  plan_->setText(targets_.empty() ? words : plan);
  fill_list();
  show_chosen();
}

const EngineTarget* EngineView::chosen() const {
  const int row = list_->indexOfTopLevelItem(list_->currentItem());
  return row >= 0 && std::size_t(row) < targets_.size() ? &targets_[std::size_t(row)] : nullptr;
}

void EngineView::fill_list() {
  const QSignalBlocker quiet(list_);
  const int before = std::max(0, list_->indexOfTopLevelItem(list_->currentItem()));
  const auto count = int(targets_.size());
  while (list_->topLevelItemCount() > count) delete list_->takeTopLevelItem(list_->topLevelItemCount() - 1);
  while (list_->topLevelItemCount() < count) list_->addTopLevelItem(new QTreeWidgetItem());
  for (int i = 0; i < count; ++i) {
    const EngineTarget& target = targets_[std::size_t(i)];
    QTreeWidgetItem* item = list_->topLevelItem(i);
    item->setSizeHint(0, QSize(list_->fontMetrics().horizontalAdvance(target.name) + 2 * kRowRoom,
                               list_->fontMetrics().height() + kRowRoom));
    item->setText(0, target.name);
    item->setText(1, short_verdict(target));
    item->setToolTip(1, whole_verdict(target));
  }
  list_->resizeColumnToContents(0);
  if (count > 0) list_->setCurrentItem(list_->topLevelItem(std::min(before, count - 1)));
}

void EngineView::show_chosen() {
  const EngineTarget* target = chosen();
  const bool runs = target && target->looked_at && target->refusal.isEmpty();
  list_->setVisible(!targets_.empty());
  for (QWidget* part : std::initializer_list<QWidget*>{name_, about_, verdict_}) part->setVisible(target != nullptr);
  for (QWidget* part : std::initializer_list<QWidget*>{preview_, copy_, save_}) part->setVisible(runs);
  filler_->setVisible(!runs);
  copy_measure_->setVisible(runs && !target->measure.isEmpty());
  start_row_->setVisible(runs && !target->start.isEmpty());
  show_nearest(target ? *target : EngineTarget());
  if (!target) return;
  name_->setText(target->name);
  about_->setText(with_stop(target->about));
  verdict_->setText(whole_verdict(*target));
  start_->setText(target->start);
  start_->setCursorPosition(0);
  const bool cut = target->text.size() > kPreview;
  const QString shown = cut ? target->text.left(kPreview) + tr("\n… the file goes on") : target->text;
  if (preview_->toPlainText() != shown) preview_->setPlainText(shown);
}

void EngineView::show_nearest(const EngineTarget& target) {
  const bool refused = target.looked_at && !target.refusal.isEmpty(), open = target.nearest.isEmpty();
  nearest_words_->setVisible(refused && (target.looking_for_nearest || !target.nearest.isEmpty()));
  nearest_words_->setText(target.looking_for_nearest ? tr("Looking for the nearest plan that it can run…")
                                                     : target.nearest);
  nearest_row_->setVisible(target.stopped ||
                           (refused && !target.looking_for_nearest && (open || target.nearest_point)));
  nearest_->setText(target.stopped         ? tr("Look again")
                    : target.nearest_point ? tr("Pick that plan")
                                           : tr("Nearest plans that engines can run"));
  nearest_->setToolTip(target.stopped         ? tr("Look at what each engine can be told of the picked plan")
                       : target.nearest_point ? tr("Pick it in the chart; this window goes with it")
                                              : tr("Look through this curve and the markers for the fastest plan that "
                                                   "fits and that each of the refusing engines can run"));
}

}  // namespace turnpoint::views
