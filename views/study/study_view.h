// SPDX-License-Identifier: Apache-2.0
// The tab about a study of batches: its figures, what its paper states, what comes out here, and a button that asks it
// all again.
#pragma once

#include <QJsonObject>
#include <QWidget>
#include <memory>
#include <string>

#include "views/study/study_chart.h"

class QComboBox;
class QLabel;
class QPushButton;
class QScrollArea;
class QToolButton;

namespace turnpoint::views {

class NoteLabel;

class StudyView : public QWidget {
  Q_OBJECT
 public:
  explicit StudyView(QWidget* parent = nullptr);

  void set_study(std::shared_ptr<const BatchStudy> study);
  /// `fraction` below 0: not known. `words`: what is asked now, or how it ended; may be empty.
  void set_running(bool running, double fraction, const QString& words);

  std::string graph() const;  ///< the parameters of placements that are chosen
  void choose(StudyFigure figure, const std::string& graph);

  QJsonObject save_state() const;
  void restore_state(const QJsonObject& state);
  void paint_to(QPainter& painter, QSize size);

  QWidget* tool_bar() const { return tool_bar_; }
  StudyChart* chart() const { return chart_; }
  QComboBox* figure_box() const { return figure_box_; }
  QComboBox* graph_box() const { return graph_box_; }
  QPushButton* run_button() const { return run_button_; }
  QString findings() const;
  QString state_words() const;

 signals:
  void run_requested(const std::string& graph);
  void stop_requested();
  void export_requested(const QString& suffix);  ///< "json", "svg", "png"

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void make_tool_bar();
  void show_chosen();

  std::shared_ptr<const BatchStudy> study_;
  QWidget* tool_bar_;
  StudyChart* chart_;
  QScrollArea* side_;
  QLabel* findings_;
  QComboBox *figure_box_, *graph_box_;
  NoteLabel* words_;
  QPushButton* run_button_;
  bool running_ = false;
};

}  // namespace turnpoint::views
