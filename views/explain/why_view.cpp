// SPDX-License-Identifier: Apache-2.0
#include "views/explain/why_view.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QListWidget>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTextBrowser>
#include <QToolButton>
#include <QTreeView>
#include <algorithm>

#include "views/common/elided_label.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/section_head.h"
#include "views/common/table_setup.h"
#include "views/common/theme_colors.h"
#include "views/explain/difference_model.h"
#include "views/plan_table/plan_delegates.h"

namespace turnpoint::views {

namespace {

constexpr int kOfRole = Qt::UserRole, kIndexRole = Qt::UserRole + 1, kAnswerRole = Qt::UserRole + 2;
constexpr int kListWidth = 320, kLeastListWidth = 200;

/// The question at the left, its short answer at the right, which is never cut.
class QuestionDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return {0, QStyledItemDelegate::sizeHint(option, index).height() + 4};
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const override {
    QStyleOptionViewItem option = given;
    initStyleOption(&option, index);
    const QString answer = index.data(kAnswerRole).toString();
    const ThemeColors& theme = theme_colors(option.palette);
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, theme.accent_background);
    const QRect room = option.rect.adjusted(index.data(kIndexRole).isValid() ? 14 : 6, 0, -6, 0);
    painter->save();
    painter->setFont(option.font);
    const QFont small = secondary_font(option.font);
    const int taken = answer.isEmpty() ? 0 : QFontMetrics(small).horizontalAdvance(answer) + 8;
    const bool enabled = option.state & QStyle::State_Enabled, heading = !index.data(kIndexRole).isValid();
    painter->setPen(enabled || heading ? theme.text : theme.disabled);
    painter->drawText(room.adjusted(0, 0, -taken, 0), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                      option.fontMetrics.elidedText(option.text, Qt::ElideMiddle, room.width() - taken));
    painter->setFont(small);
    painter->setPen(theme.secondary);
    painter->drawText(room, Qt::AlignRight | Qt::AlignVCenter | Qt::TextSingleLine, answer);
    painter->restore();
  }
};

QToolButton* make_button(const QString& text, const QString& tip, const char* name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setToolTip(tip);
  button->setObjectName(QString::fromLatin1(name));
  return button;
}

}  // namespace

WhyView::WhyView(QWidget* parent) : QWidget(parent), model_(new DifferenceModel(this)) {
  setObjectName(QStringLiteral("why_view"));
  make_tool_bar();
  make_list();
  make_answer();
  auto* split = new QSplitter(Qt::Horizontal, this);
  split->setObjectName(QStringLiteral("why_split"));
  split->setChildrenCollapsible(false);
  split->addWidget(list_);
  split->addWidget(answers_);
  split->setStretchFactor(0, 1);  // in a narrow window both give way
  split->setStretchFactor(1, 2);
  split->setSizes({kListWidth, 3 * kListWidth});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tool_bar_);
  column->addWidget(split, 1);
  show_answer();
}

void WhyView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("why_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(8);
  auto* label = new QLabel(tr("Choices for"), tool_bar_);
  part_box_ = new QComboBox(tool_bar_);
  part_box_->setObjectName(QStringLiteral("why_part"));
  part_box_->setAccessibleName(tr("Choices for"));
  part_box_->setToolTip(tr("What the choices in the list are for: click an operator in the graph to ask about it"));
  part_box_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  part_box_->setMinimumContentsLength(24);
  label->setBuddy(part_box_);
  progress_ = new Elided<NoteLabel>(tool_bar_);
  progress_->setObjectName(QStringLiteral("why_progress"));
  stop_ = make_button(tr("Stop"), tr("Stop working out the answer"), "why_stop", tool_bar_);
  graph_ = make_button(tr("Show on graph"), tr("Colour the operators that differ"), "why_graph", tool_bar_);
  copy_ = make_button(tr("Copy answer"), tr("Copy the answer as text, tables included"), "why_copy", tool_bar_);
  command_ = make_button(tr("Copy command"), {}, "why_command", tool_bar_);
  row->addWidget(label);
  row->addWidget(part_box_, 1);
  row->addWidget(progress_, 1);
  for (QToolButton* button : {stop_, graph_, copy_, command_}) row->addWidget(button);
  stop_->hide();
  connect(part_box_, &QComboBox::activated, this, &WhyView::part_chosen);
  connect(stop_, &QToolButton::clicked, this, &WhyView::stop_requested);
  connect(graph_, &QToolButton::clicked, this, &WhyView::graph_requested);
  connect(copy_, &QToolButton::clicked, this, [this] {
    if (answer_) QApplication::clipboard()->setText(answer_->text());
  });
  connect(command_, &QToolButton::clicked, this, [this] {
    if (answer_) QApplication::clipboard()->setText(answer_->command);
  });
}

void WhyView::make_list() {
  list_ = new QListWidget(this);
  list_->setObjectName(QStringLiteral("why_list"));
  list_->setAccessibleName(tr("Questions about the picked plan"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setItemDelegate(new QuestionDelegate(list_));
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setMinimumWidth(kLeastListWidth);
  list_->installEventFilter(this);
  connect(list_, &QListWidget::itemClicked, this, &WhyView::ask);
}

void WhyView::make_answer() {
  answers_ = new QSplitter(Qt::Vertical, this);
  answers_->setChildrenCollapsible(false);
  text_ = new QTextBrowser(answers_);
  text_->setObjectName(QStringLiteral("why_answer"));
  text_->setAccessibleName(tr("Answer"));
  text_->setFrameShape(QFrame::NoFrame);
  text_->document()->setDocumentMargin(10);
  table_ = new QTreeView(answers_);
  table_->setObjectName(QStringLiteral("why_table"));
  set_up_table(table_, tr("Where the difference comes from"));
  table_->setModel(model_);
  table_->setItemDelegate(new PlanRowDelegate(table_));
  table_->setRootIsDecorated(false);
  table_->setIndentation(12);
  table_->header()->setStretchLastSection(false);
  answers_->addWidget(text_);
  answers_->addWidget(table_);
  connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    const auto operators = model_->operators_of(index.siblingAtColumn(0));
    if (!operators.empty()) emit operators_picked(operators);
  });
}

bool WhyView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == list_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if ((key == Qt::Key_Return || key == Qt::Key_Enter) && list_->currentItem()) {
      ask(list_->currentItem());
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

void WhyView::ask(QListWidgetItem* item) {
  const QVariant index = item->data(kIndexRole);
  if (index.isValid() && (item->flags() & Qt::ItemIsEnabled))
    emit asked(static_cast<WhyQuestion::Of>(item->data(kOfRole).toInt()), index.toInt());
}

void WhyView::set_parts(const QStringList& parts, int chosen) {
  const QSignalBlocker quiet(part_box_);
  QStringList now;
  for (int i = 0; i < part_box_->count(); ++i) now << part_box_->itemText(i);
  if (now != parts) {
    part_box_->clear();
    part_box_->addItems(parts);
    for (int i = 0; i < parts.size(); ++i) part_box_->setItemData(i, parts[i], Qt::ToolTipRole);
  }
  part_box_->setCurrentIndex(chosen);
  part_box_->setEnabled(parts.size() > 1);
}

void WhyView::set_questions(const std::vector<WhyQuestion>& questions, const QString& choices_note) {
  if (questions == questions_ && choices_note == choices_note_ && list_->count() > 0) return;
  questions_ = questions;
  choices_note_ = choices_note;
  const int scrolled = list_->verticalScrollBar()->value();
  list_->clear();
  const auto heading = [this](const QString& text) {
    auto* item = new QListWidgetItem(text, list_);
    QFont bold = list_->font();
    bold.setBold(true);
    item->setFont(bold);
    item->setFlags(Qt::NoItemFlags);
  };
  const auto add = [this](const WhyQuestion& question) {
    auto* item = new QListWidgetItem(question.text, list_);
    item->setData(kOfRole, static_cast<int>(question.of));
    item->setData(kIndexRole, question.index);
    item->setData(kAnswerRole, question.answer);
    const QString whole = question.answer.isEmpty() ? question.text : question.text + u'\n' + question.answer;
    item->setToolTip(question.why_not.isEmpty() ? whole : question.text + u'\n' + question.why_not);
    if (!question.why_not.isEmpty()) item->setFlags(Qt::NoItemFlags);
  };
  const auto add_all = [&](WhyQuestion::Of of) {
    for (const WhyQuestion& question : questions_)
      if (question.of == of) add(question);
  };
  add_all(WhyQuestion::Of::plan);
  if (!questions_.empty()) {
    if (std::ranges::any_of(questions_, [](const WhyQuestion& one) { return one.of == WhyQuestion::Of::difference; }))
      heading(tr("Difference to"));
    add_all(WhyQuestion::Of::difference);
    heading(tr("The best plan with"));
    add_all(WhyQuestion::Of::choice);
    if (!choices_note.isEmpty()) {
      auto* item = new QListWidgetItem(choices_note, list_);
      item->setToolTip(choices_note);
      item->setFlags(Qt::NoItemFlags);
    }
  }
  set_asked(asked_of_, asked_index_);
  list_->verticalScrollBar()->setValue(scrolled);
}

void WhyView::set_asked(WhyQuestion::Of of, int index) {
  asked_of_ = of;
  asked_index_ = index;
  for (int row = 0; row < list_->count(); ++row) {
    const QListWidgetItem* item = list_->item(row);
    if (item->data(kIndexRole).isValid() && item->data(kOfRole).toInt() == static_cast<int>(of) &&
        item->data(kIndexRole).toInt() == index)
      return list_->setCurrentRow(row);
  }
  list_->setCurrentRow(-1);
}

void WhyView::set_answer(ExplainedPtr answer, const QString& words) {
  if (answer == answer_ && words == instead_) return;
  answer_ = std::move(answer);
  instead_ = words;
  show_answer();
}

void WhyView::set_progress(const QString& words, bool running) {
  progress_->setText(words);
  progress_->setToolTip(words);
  stop_->setVisible(running);
}

QString WhyView::words() const { return text_->toPlainText(); }

void WhyView::show_answer() {
  const ThemeColors& theme = theme_colors(palette());
  QString html;
  const auto paragraph = [&](const QString& text, int indent, const QColor& color) {
    html += QStringLiteral("<p style='margin:0 0 5px %1px; color:%2'>%3</p>")
                .arg(indent)
                .arg(color.name(), text.toHtmlEscaped());
  };
  if (answer_) {
    for (const std::string& line : answer_->sentences) {
      const bool indented = line.starts_with("  ");
      paragraph(to_qt(line).trimmed(), indented ? 14 : 0,
                answer_->refused ? theme.warning
                : indented       ? theme.secondary
                                 : theme.text);
    }
  } else {
    paragraph(instead_, 0, theme.secondary);
  }
  text_->setHtml(html);
  const bool table = answer_ && answer_->difference;
  model_->set_difference(table ? answer_->difference : nullptr, table ? answer_->model : nullptr);
  table_->setVisible(table);
  if (table) {
    for (int column = 0; column < DifferenceModel::kColumns; ++column) {
      table_->setColumnHidden(column, model_->is_empty(column));
      table_->resizeColumnToContents(column);
    }
    if (const int row = model_->changes_row(); row >= 0) {
      const QModelIndex head = model_->index(row, 0);
      table_->setFirstColumnSpanned(row, {}, true);
      for (int child = 0; child < model_->rowCount(head); ++child) table_->setFirstColumnSpanned(child, head, true);
      table_->expand(head);
    }
    table_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  }
  graph_->setEnabled(table);
  copy_->setEnabled(answer_ != nullptr);
  const bool command = answer_ && !answer_->command.isEmpty();
  command_->setEnabled(command);
  command_->setToolTip(command
                           ? tr("Copy the commands that give the same answer in a terminal:") + u'\n' + answer_->command
                       : answer_ && !answer_->why_no_command.isEmpty() ? answer_->why_no_command
                                                                       : tr("There is no answer yet."));
}

void WhyView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && text_) show_answer();
}

}  // namespace turnpoint::views
