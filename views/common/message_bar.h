// SPDX-License-Identifier: Apache-2.0
// Errors and notes above the chart, never a dialog: what, where and why, copy, dismiss; several queue as "1 of 3".
#pragma once

#include <QFrame>
#include <deque>
#include <functional>

class QLabel;
class QTimer;
class QToolButton;

namespace turnpoint::views {

struct Message {
  enum class Kind { note, warning, error };
  Kind kind = Kind::error;
  QString what;   ///< one line
  QString where;  ///< one line: place, reason, what to do; may be empty
  QString about =
      {};  ///< what failed; succeeding in it takes errors and warnings about it away; empty: only the user does
  QString action = {};  ///< on a button that calls `act` and takes the message away; empty: none
  std::function<void()> act = {};
  std::function<void()> dismissed = {};  ///< the user did not want it
};

class MessageBar : public QFrame {
  Q_OBJECT
 public:
  explicit MessageBar(QWidget* parent = nullptr);

  /// Errors come before notes, of each kind the newest first; the same text twice is shown once.
  void show_message(Message message);
  /// It succeeded now: what is said of its failure no longer holds.
  void clear_errors(const QString& about);
  /// From now on it lies over `area`, right below `above` where that is visible, else at the top, as high as its words
  /// need; nothing makes room for it. Both outlive it.
  void hang_below(QWidget* above, QWidget* area);
  int count() const { return static_cast<int>(queue_.size()); }
  const Message* current() const { return queue_.empty() ? nullptr : &queue_.front(); }

 public slots:
  void dismiss();

 signals:
  void count_changed(int count);
  /// How much of the area it hangs over, from where it hangs; 0: none.
  void covers(int height);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void copy();
  void place();

  QWidget *above_ = nullptr, *area_ = nullptr;

  std::deque<Message> queue_;
  QLabel *icon_, *what_, *where_, *position_;
  void act();

  QToolButton *act_, *copy_, *dismiss_;
  QTimer* leave_;
};

}  // namespace turnpoint::views
