// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/specification_box.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QLineEdit>
#include <QSignalBlocker>

namespace turnpoint::views {

SpecificationBox::SpecificationBox(const QString& object_name, QWidget* parent) : Calm<QComboBox>(parent) {
  setObjectName(object_name);
  setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  setMinimumContentsLength(10);
  setFocusPolicy(Qt::StrongFocus);
  setMaxVisibleItems(24);
  setEditable(true);
  setInsertPolicy(QComboBox::NoInsert);
  completer_ = new QCompleter(model(), this);
  completer_->setFilterMode(Qt::MatchContains);
  completer_->setCaseSensitivity(Qt::CaseInsensitive);
  completer_->setCompletionMode(QCompleter::PopupCompletion);
  completer_->setMaxVisibleItems(16);
  setCompleter(completer_);
  connect(this, &QComboBox::activated, this, &SpecificationBox::take);
  connect(lineEdit(), &QLineEdit::returnPressed, this, &SpecificationBox::enter);
}

void SpecificationBox::fill(const std::vector<Choice>& choices, const QString& specification, const QString& title) {
  const QSignalBlocker quiet(this);
  clear();
  open_ = -1;
  for (const Choice& choice : choices) {
    if (choice.specification == specification) open_ = count();
    addItem(choice.text, choice.specification);
    setItemData(count() - 1, choice.tool_tip, Qt::ToolTipRole);
  }
  if (open_ < 0 && !specification.isEmpty()) {
    insertItem(0, title, specification);
    open_ = 0;
  }
  insertSeparator(count());
  addItem(tr("Open file\u2026"));
  setItemData(count() - 1, true, kOpensFile);
  setToolTip(specification);
  show_open();
}

void SpecificationBox::show_open() {
  const QSignalBlocker quiet(this);
  setCurrentIndex(open_);
  setEditText(open_ < 0 ? QString() : itemText(open_));
  lineEdit()->setCursorPosition(0);  // of a long name the beginning is shown
}

void SpecificationBox::focusOutEvent(QFocusEvent* event) {
  Calm<QComboBox>::focusOutEvent(event);
  // The list of completions takes the focus while it is open.
  if (event->reason() != Qt::PopupFocusReason) show_open();
}

QString SpecificationBox::meant(const QString& text) const {
  const QString wanted = text.trimmed();
  if (wanted.isEmpty()) return {};
  int first = -1;
  for (int i = 0; i < count(); ++i) {
    const QString specification = itemData(i).toString();
    if (specification.isEmpty()) continue;
    if (itemText(i).compare(wanted, Qt::CaseInsensitive) == 0 ||
        specification.compare(wanted, Qt::CaseInsensitive) == 0)
      return specification;
    if (first < 0 && itemText(i).contains(wanted, Qt::CaseInsensitive)) first = i;
  }
  return first >= 0 ? itemData(first).toString() : wanted;
}

void SpecificationBox::take(int index) {
  const bool wants_file = itemData(index, kOpensFile).toBool();
  const QString specification = itemData(index).toString();
  show_open();
  if (wants_file)
    emit file_wanted();
  else if (!specification.isEmpty())
    emit chosen(specification);
}

void SpecificationBox::enter() {
  // An entry chosen in the open list of completions arrives by activated().
  if (completer_->popup()->isVisible() && completer_->popup()->currentIndex().isValid()) return;
  const QString text = currentText();
  if (open_ >= 0 && text == itemText(open_)) return;
  for (int i = 0; i < count(); ++i)
    if (itemText(i) == text) return;  // QComboBox itself has activated it
  const QString specification = meant(text);
  completer_->popup()->hide();
  show_open();
  if (!specification.isEmpty()) emit chosen(specification);
}

}  // namespace turnpoint::views
