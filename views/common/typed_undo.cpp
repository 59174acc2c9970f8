// SPDX-License-Identifier: Apache-2.0
#include "views/common/typed_undo.h"

#include <QAbstractSpinBox>
#include <QKeyEvent>
#include <QLineEdit>

namespace turnpoint::views {

namespace {

/// On the widget that has the focus: a key that it does not claim here goes to the shortcuts of the window.
class UndoKeys : public QObject {
 public:
  UndoKeys(QWidget* box, QLineEdit* line) : QObject(box), line_(line) {
    box->installEventFilter(this);
    taken_ = line->text();
    // Both what was entered and what is shown anew is no longer something typed.
    connect(line, &QLineEdit::editingFinished, this, [this] { taken_ = line_->text(); });
    connect(line, &QLineEdit::textChanged, this, [this](const QString& text) {
      if (!line_->isModified()) taken_ = text;
    });
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::ShortcutOverride) return QObject::eventFilter(watched, event);
    auto* key = static_cast<QKeyEvent*>(event);
    const bool undo = key->matches(QKeySequence::Undo), redo = key->matches(QKeySequence::Redo);
    const bool typed = line_->text() != taken_;
    if ((undo && !(typed && line_->isUndoAvailable())) || (redo && !line_->isRedoAvailable())) {
      event->ignore();
      return true;
    }
    return QObject::eventFilter(watched, event);
  }

 private:
  QLineEdit* line_;
  QString taken_;
};

}  // namespace

void leave_spent_undo(QAbstractSpinBox* box) {
  if (auto* line = box->findChild<QLineEdit*>()) new UndoKeys(box, line);
}

void leave_spent_undo(QLineEdit* line) { new UndoKeys(line, line); }

}  // namespace turnpoint::views
