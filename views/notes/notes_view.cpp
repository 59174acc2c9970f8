// SPDX-License-Identifier: Apache-2.0
#include "views/notes/notes_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QStackedWidget>
#include <QTextBrowser>
#include <QTextDocument>
#include <QTextTable>
#include <QVBoxLayout>

#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"

namespace turnpoint::views {

namespace {

/// The line below a table's head may have cells of one or two dashes; Qt's reader wants three.
QString with_wide_rules(const QString& markdown) {
  static const QRegularExpression rule(QStringLiteral("^ {0,3}\\|?( *:?-+:? *\\|)+( *:?-+:?)? *$"));
  static const QRegularExpression dashes(QStringLiteral("(?<!-)-{1,2}(?!-)"));
  QStringList lines = markdown.split(u'\n');
  bool code = false;
  for (QString& line : lines) {
    const QString begin = line.trimmed().left(3);
    if (begin == QStringLiteral("```") || begin == QStringLiteral("~~~")) code = !code;
    if (!code && rule.match(line).hasMatch()) line.replace(dashes, QStringLiteral("---"));
  }
  return lines.join(u'\n');
}

}  // namespace

NotesView::NotesView(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("notes_view"));
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("notes_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  title_label_ = new QLabel(tool_bar_);
  title_label_->setTextFormat(Qt::PlainText);
  title_label_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  QFont bold = font();
  bold.setBold(true);
  title_label_->setFont(bold);
  edit_button_ = new ToggleButton(tool_bar_);
  edit_button_->setText(tr("Edit"));
  edit_button_->setToolTip(tr("Write the notes, in Markdown; they are saved with the session"));
  edit_button_->setCheckable(true);
  row->addWidget(title_label_, 1);
  row->addWidget(edit_button_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  stack_ = new QStackedWidget(this);
  page_ = new QTextBrowser(stack_);
  page_->setFrameShape(QFrame::NoFrame);
  page_->setOpenLinks(false);  // notes come from files; nothing is fetched or opened
  page_->setAccessibleName(tr("Notes"));
  page_->document()->setDocumentMargin(12);
  editor_ = new QPlainTextEdit(stack_);
  editor_->setFrameShape(QFrame::NoFrame);
  editor_->setAccessibleName(tr("Notes as text"));
  stack_->addWidget(page_);
  stack_->addWidget(editor_);
  column->addWidget(stack_);
  connect(edit_button_, &QToolButton::toggled, this, [this](bool on) {
    if (on)
      editor_->setPlainText(notes_);
    else
      notes_ = editor_->toPlainText();
    show_page();
    stack_->setCurrentWidget(on ? static_cast<QWidget*>(editor_) : page_);
    if (on) editor_->setFocus();
  });
  show_page();
}

void NotesView::set_notes(const QString& title, const QString& markdown) {
  title_ = title;
  notes_ = markdown;
  editor_->setPlainText(markdown);
  edit_button_->setChecked(false);
  title_label_->setText(title.isEmpty() ? tr("Notes") : title);
  notes_ = markdown;
  show_page();
}

QString NotesView::notes() const { return edit_button_->isChecked() ? editor_->toPlainText() : notes_; }

void NotesView::show_page() {
  if (title_label_->text().isEmpty()) title_label_->setText(tr("Notes"));
  if (notes_.trimmed().isEmpty()) {
    page_->setPlainText(tr("No notes. Press Edit to write some; they are saved with the session."));
  } else {
    // GitHub's dialect is the one with tables. Without HTML: what a file says is text, not a page.
    page_->document()->setMarkdown(
        with_wide_rules(notes_),
        QTextDocument::MarkdownFeatures(QTextDocument::MarkdownDialectGitHub) | QTextDocument::MarkdownNoHTML);
    style_tables();
  }
}

/// Qt draws the tables of Markdown without lines and with cells that touch.
void NotesView::style_tables() {
  for (QTextFrame* frame : page_->document()->rootFrame()->childFrames()) {
    auto* const table = qobject_cast<QTextTable*>(frame);
    if (!table) continue;
    QTextTableFormat format = table->format();
    format.setBorder(1);
    format.setBorderStyle(QTextFrameFormat::BorderStyle_Solid);
    format.setBorderBrush(theme_colors(palette()).border);
    format.setBorderCollapse(true);
    format.setCellPadding(4);
    format.setCellSpacing(0);
    format.setTopMargin(6);
    format.setBottomMargin(6);
    table->setFormat(format);
    for (int column = 0; column < table->columns(); ++column) {
      QTextTableCell head = table->cellAt(0, column);
      QTextCharFormat cell = head.format();
      cell.setBackground(theme_colors(palette()).head);
      head.setFormat(cell);
    }
  }
}

void NotesView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) show_page();
}

}  // namespace turnpoint::views
