// SPDX-License-Identifier: Apache-2.0
// The model's or the hardware's box: a list that typing filters, and any other specification ("h100-80gb-16x8", a path)
// typed and entered. It shows what is open, not the wish: the text returns until the scenario really has changed.
#pragma once

#include <vector>

#include <QComboBox>

#include "views/common/calm.h"

class QCompleter;

namespace turnpoint::views {

/// An entry of the box.
struct Choice {
  QString text;
  QString specification;
  QString tool_tip;
};

class SpecificationBox : public Calm<QComboBox> {
  Q_OBJECT
 public:
  SpecificationBox(const QString& object_name, QWidget* parent);

  /// `title`: what `specification` is called where it is none of the choices.
  void fill(const std::vector<Choice>& choices, const QString& specification, const QString& title);
  /// What the text means if it is entered now: an entry's specification, the first that contains it, else itself.
  QString meant(const QString& text) const;

 signals:
  void chosen(const QString& specification);
  void file_wanted();

 protected:
  void focusOutEvent(QFocusEvent* event) override;

 private:
  static constexpr int kOpensFile = Qt::UserRole + 1;  ///< role of the entry that asks for a file
  void take(int index);
  void enter();
  void show_open();

  QCompleter* completer_;
  int open_ = -1;  ///< index of what is open
};

}  // namespace turnpoint::views
