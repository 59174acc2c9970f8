// SPDX-License-Identifier: Apache-2.0
// The tool bar of the task graph: what colours mean, how far it is unfolded, the critical path, search.
#pragma once

#include <QComboBox>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QTimer>
#include <QWidget>

#include "views/common/toggle_button.h"
#include "views/graph/task_scene.h"

namespace turnpoint::views {

enum class TaskFold { layers, everything, outline };

class TaskGraphBar : public QWidget {
  Q_OBJECT
 public:
  explicit TaskGraphBar(QWidget* parent = nullptr);

  TaskColor color() const { return static_cast<TaskColor>(color_box_->currentIndex()); }
  void set_color(TaskColor color) { color_box_->setCurrentIndex(static_cast<int>(color)); }
  bool critical_path() const { return critical_->isChecked(); }
  void set_fold(TaskFold fold) { fold_box_->setCurrentIndex(static_cast<int>(fold)); }
  QString search_text() const { return search_->text(); }

  struct Words {
    QString counts, counts_tip, engine, engine_tip, zoom;
  };
  void set_words(const Words& words, const QString& matches);
  void save_state(QJsonObject& state) const;
  void restore_state(const QJsonObject& state);

 signals:
  void look_changed();  ///< colour or critical path
  void fold_chosen(TaskFold fold);
  void search(const QString& text);
  void next_match(int step);
  void fit();
  void export_requested(const QString& suffix);  ///< "png", "svg"

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QComboBox *color_box_, *fold_box_;
  ToggleButton* critical_;
  QLineEdit* search_;
  QLabel *matches_, *counts_, *engine_, *zoom_;
  QTimer search_timer_;
  std::vector<QLabel*> names_;  ///< of the boxes
};

}  // namespace turnpoint::views
