// SPDX-License-Identifier: Apache-2.0
// Ctrl+K: find a command of the window or an operator of the model by any part of its name.
#pragma once

#include <QFrame>
#include <functional>
#include <vector>

class QLabel;
class QLineEdit;
class QListWidget;

namespace turnpoint::app {

struct PaletteEntry {
  QString text;
  QString note;  ///< shortcut or kind, in a column of its own at the right
  std::function<void()> run;
};

/// Every word of `query` must occur in the text; hits at word starts come first. Returns indices, at most `limit`.
std::vector<std::size_t> find_entries(const std::vector<PaletteEntry>& entries, const QString& query,
                                      std::size_t limit);

class CommandPalette : public QFrame {
  Q_OBJECT
 public:
  explicit CommandPalette(QWidget* parent);
  void open(std::vector<PaletteEntry> entries);
  QLineEdit* field() const { return field_; }
  QListWidget* list() const { return list_; }
  QLabel* nothing() const { return nothing_; }  ///< what is said where nothing is found

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void fit_height();
  void run_current();

  std::vector<PaletteEntry> entries_;
  QLineEdit* field_;
  QListWidget* list_;
  QLabel* nothing_;
  int most_height_ = 420;
};

}  // namespace turnpoint::app
