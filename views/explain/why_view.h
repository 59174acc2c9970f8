// SPDX-License-Identifier: Apache-2.0
// Why the picked plan is as it is: what can be asked of it at the left, the answer at the right. It computes nothing:
// who owns it fills the questions and answers them.
#pragma once

#include <QWidget>
#include <set>
#include <vector>

#include "views/explain/explained.h"

class QComboBox;
class QLabel;
class QListWidget;
class QListWidgetItem;
class QSplitter;
class QTextBrowser;
class QToolButton;
class QTreeView;

namespace turnpoint::views {

class DifferenceModel;

/// A question in the list; asking it is one click.
struct WhyQuestion {
  enum class Of { plan, choice, difference };
  Of of = Of::plan;
  int index = 0;    ///< among those of its kind
  QString text;     ///< "tensor parallel 4"
  QString answer;   ///< short, where it is known: "3.5 % slower", "as it is"
  QString why_not;  ///< it cannot be asked; empty: it can
  friend bool operator==(const WhyQuestion&, const WhyQuestion&) = default;
};

class WhyView : public QWidget {
  Q_OBJECT
 public:
  explicit WhyView(QWidget* parent = nullptr);

  /// What choices are for: the whole plan, an operator, its layer.
  void set_parts(const QStringList& parts, int chosen);
  /// `note`: in the place of choices that are not there.
  void set_questions(const std::vector<WhyQuestion>& questions, const QString& choices_note);
  /// Marks the question that the answer on show, or the work that goes on, is for; index -1: none.
  void set_asked(WhyQuestion::Of of, int index);
  /// Null: `words` stand in its place.
  void set_answer(ExplainedPtr answer, const QString& words);
  /// What is being worked out and can be stopped, or what there is to say of the answer on show.
  void set_progress(const QString& words, bool running);

  const ExplainedPtr& answer() const { return answer_; }
  QWidget* tool_bar() const { return tool_bar_; }
  QListWidget* list() const { return list_; }
  QComboBox* part_box() const { return part_box_; }
  QTreeView* table() const { return table_; }
  QString words() const;  ///< of the answer on show, without the table

 signals:
  void part_chosen(int index);
  void asked(turnpoint::views::WhyQuestion::Of of, int index);
  void stop_requested();
  void graph_requested();
  void operators_picked(const std::set<OperatorId>& operators);

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_tool_bar();
  void make_list();
  void make_answer();
  void ask(QListWidgetItem* item);
  void show_answer();

  QWidget* tool_bar_ = nullptr;
  QComboBox* part_box_ = nullptr;
  QLabel* progress_ = nullptr;
  QToolButton *stop_ = nullptr, *graph_ = nullptr, *copy_ = nullptr, *command_ = nullptr;
  QListWidget* list_ = nullptr;
  QSplitter* answers_ = nullptr;
  QTextBrowser* text_ = nullptr;
  QTreeView* table_ = nullptr;
  DifferenceModel* model_;
  std::vector<WhyQuestion> questions_;
  QString choices_note_, instead_;
  ExplainedPtr answer_;
  WhyQuestion::Of asked_of_ = WhyQuestion::Of::plan;
  int asked_index_ = -1;
};

}  // namespace turnpoint::views
