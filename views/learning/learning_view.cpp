// SPDX-License-Identifier: Apache-2.0
#include "views/learning/learning_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "views/common/elided_label.h"
#include "views/common/format.h"
#include "views/common/note_label.h"

namespace turnpoint::views {

LearningView::LearningView(QWidget* parent) : QWidget(parent), chart_(new LearningChart(this)) {
  setObjectName(QStringLiteral("learning_view"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(chart_, 1);
  make_tool_bar();
  show_chosen();
}

void LearningView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("learning_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(8);
  method_label_ = new QLabel(tr("Method"), tool_bar_);
  method_box_ = new QComboBox(tool_bar_);
  method_box_->setObjectName(QStringLiteral("learning_method"));
  method_box_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  method_box_->setAccessibleName(tr("Method that learns"));
  method_label_->setBuddy(method_box_);
  words_ = new Elided<NoteLabel>(tool_bar_);
  words_->setObjectName(QStringLiteral("learning_words"));
  show_button_ = new QPushButton(tr("Show its placement"), tool_bar_);
  show_button_->setObjectName(QStringLiteral("learning_show"));
  show_button_->setToolTip(
      tr("Picks the method's best placement so far; graph, timeline and memory follow it as it gets better"));
  for (QWidget* part : {static_cast<QWidget*>(method_label_), static_cast<QWidget*>(method_box_)}) row->addWidget(part);
  row->addWidget(words_, 1);
  row->addWidget(show_button_);
  connect(method_box_, &QComboBox::activated, this, &LearningView::show_chosen);
  connect(show_button_, &QPushButton::clicked, this, [this] {
    if (!chosen().empty()) emit placement_requested(chosen());
  });
}

std::string LearningView::chosen() const { return method_box_->currentData().toString().toStdString(); }

void LearningView::choose(const std::string& method) {
  const int index = method_box_->findData(to_qt(method));
  if (index < 0) return;
  method_box_->setCurrentIndex(index);
  show_chosen();
}

void LearningView::set_courses(std::vector<Course> courses) {
  const bool same = std::equal(courses.begin(), courses.end(), courses_.begin(), courses_.end(),
                               [](const Course& a, const Course& b) { return a.method == b.method; });
  courses_ = std::move(courses);
  if (!same) {
    const std::string before = chosen();
    const QSignalBlocker quiet(method_box_);
    method_box_->clear();
    for (const Course& course : courses_) method_box_->addItem(course.title, to_qt(course.method));
    const int kept = method_box_->findData(to_qt(before));
    method_box_->setCurrentIndex(kept >= 0 ? kept : method_box_->count() - 1);
  }
  show_chosen();
}

void LearningView::show_chosen() {
  const std::string method = chosen();
  const auto course =
      std::find_if(courses_.begin(), courses_.end(), [&](const Course& c) { return c.method == method; });
  const bool there = course != courses_.end();
  method_label_->setVisible(courses_.size() > 1);
  method_box_->setVisible(courses_.size() > 1);
  show_button_->setVisible(there);
  show_button_->setEnabled(there && !course->shown_elsewhere);
  LearningData shown;
  if (there) {
    shown = course->data;
    if (shown.points.empty())
      shown.nothing = course->running ? tr("%1 has yet to finish its first iteration").arg(course->title)
                                      : tr("%1 ended before its first iteration").arg(course->title);
  } else {
    shown.nothing =
        tr("A method that learns to place, such as Trinity, shows here how its reward, its best time and its entropy "
           "go while it learns. Switch one on in the list of methods. While it still looks for what to begin with, "
           "there is nothing to draw.");
  }
  QString words = course_text(shown);
  if (there && !words.isEmpty() && courses_.size() == 1) words += QStringLiteral(" · ") + course->title;
  words_->setText(words);
  words_->setToolTip(words);
  chart_->set_data(std::move(shown));
}

QString LearningView::words() const { return words_->text(); }

void LearningView::paint_to(QPainter& painter, QSize size) { chart_->paint_to(painter, size); }

}  // namespace turnpoint::views
