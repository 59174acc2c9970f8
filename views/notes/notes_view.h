// SPDX-License-Identifier: Apache-2.0
// Notes that belong to the session: Markdown, read as a page, written as text.
#pragma once

#include <QWidget>

class QLabel;
class QPlainTextEdit;
class QStackedWidget;
class QTextBrowser;

namespace turnpoint::views {

class ToggleButton;

class NotesView : public QWidget {
  Q_OBJECT
 public:
  explicit NotesView(QWidget* parent = nullptr);

  void set_notes(const QString& title, const QString& markdown);
  QString title() const { return title_; }
  QString notes() const;  ///< Markdown, as it was set or written

  QWidget* tool_bar() const { return tool_bar_; }
  ToggleButton* edit_button() const { return edit_button_; }
  QTextBrowser* page() const { return page_; }
  QPlainTextEdit* editor() const { return editor_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_page();
  void style_tables();

  QString title_, notes_;
  QWidget* tool_bar_;
  QLabel* title_label_;
  ToggleButton* edit_button_;
  QStackedWidget* stack_;
  QTextBrowser* page_;
  QPlainTextEdit* editor_;
};

}  // namespace turnpoint::views
