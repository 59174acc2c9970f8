// SPDX-License-Identifier: Apache-2.0
// The tab about methods that learn: which of them, what it has gained so far, its best placement on the other views,
// and how learning goes.
#pragma once

#include <QWidget>
#include <string>
#include <vector>

#include "views/learning/learning_chart.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace turnpoint::views {

class NoteLabel;

class LearningView : public QWidget {
  Q_OBJECT
 public:
  struct Course {
    std::string method;  ///< registry name with parameters
    QString title;
    bool running = false, shown_elsewhere = false;  ///< the other views show its placement already
    LearningData data;
  };

  explicit LearningView(QWidget* parent = nullptr);

  /// All that learn or have learnt; the newest is chosen where none of the chosen name is left.
  void set_courses(std::vector<Course> courses);
  /// Whichever is chosen; empty: none.
  std::string chosen() const;
  void choose(const std::string& method);

  void paint_to(QPainter& painter, QSize size);

  QWidget* tool_bar() const { return tool_bar_; }
  LearningChart* chart() const { return chart_; }
  QComboBox* method_box() const { return method_box_; }
  QPushButton* show_button() const { return show_button_; }
  QString words() const;

 signals:
  void placement_requested(const std::string& method);

 private:
  void make_tool_bar();
  void show_chosen();

  std::vector<Course> courses_;
  QWidget* tool_bar_;
  LearningChart* chart_;
  QLabel* method_label_;
  QComboBox* method_box_;
  NoteLabel* words_;
  QPushButton* show_button_;
};

}  // namespace turnpoint::views
