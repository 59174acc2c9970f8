// SPDX-License-Identifier: Apache-2.0
// What engines can be told of a plan, before anything is written: engines at the left, at the right what is written for
// the one that is chosen, or why nothing can be. It computes nothing: who owns it fills the engines.
#pragma once

#include <QStringList>
#include <QWidget>
#include <optional>
#include <vector>

#include "views/common/selection_model.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QTreeWidget;

namespace turnpoint::views {

class NoteLabel;

/// What one engine can be told.
struct EngineTarget {
  QString key;             ///< of its export format
  QString name;            ///< "PyTorch"
  QString about;           ///< what its file is, a sentence
  bool stopped = false;    ///< nobody looks at it any more, and nothing is known
  bool looked_at = false;  ///< what follows is known
  QString refusal;         ///< why it cannot run the plan; empty: it can
  QStringList otherwise;   ///< what it does otherwise than the plan, without full stop
  QString text;            ///< of the file
  QString start;           ///< the command that starts it
  QString measure;         ///< lines for a terminal that measure it under the engine; empty: the engine is not measured
  /// Of a refused one: the plan of the chart that it can run, in words; empty: nobody has looked.
  QString nearest, nearest_name;             ///< in a sentence; "point 12", "Megatron"
  std::optional<PickedPoint> nearest_point;  ///< nullopt: it can run none
  bool looking_for_nearest = false;
};

class EngineView : public QWidget {
  Q_OBJECT
 public:
  explicit EngineView(QWidget* parent = nullptr);

  /// `plan`: which one, in words. No targets: `words` stand in their place. What is chosen stays.
  void set_targets(const QString& plan, std::vector<EngineTarget> targets, const QString& words = {});
  const std::vector<EngineTarget>& targets() const { return targets_; }
  const EngineTarget* chosen() const;

  QTreeWidget* list() const { return list_; }
  QLabel* verdict() const { return verdict_; }
  QLineEdit* start() const { return start_; }
  QPlainTextEdit* preview() const { return preview_; }
  QPushButton* copy_button() const { return copy_; }
  QPushButton* save_button() const { return save_; }
  QPushButton* nearest_button() const { return nearest_; }

 signals:
  void save_wanted(const QString& key);
  void look_wanted();                                             ///< once more, after it was stopped
  void nearest_wanted();                                          ///< of all that refuse the plan
  void point_wanted(const turnpoint::views::PickedPoint& point);  ///< the nearest one is to be picked

 private:
  QWidget* make_details();
  QWidget* make_start(QWidget* details);
  QLayout* make_buttons(QWidget* details);
  void connect_buttons();
  void fill_list();
  void show_chosen();
  void show_nearest(const EngineTarget& target);

  std::vector<EngineTarget> targets_;
  QLabel *plan_ = nullptr, *name_ = nullptr, *verdict_ = nullptr, *nearest_words_ = nullptr;
  NoteLabel* about_ = nullptr;
  QTreeWidget* list_ = nullptr;
  QWidget *start_row_ = nullptr, *nearest_row_ = nullptr, *filler_ = nullptr;
  QLineEdit* start_ = nullptr;
  QPlainTextEdit* preview_ = nullptr;
  QPushButton *copy_start_ = nullptr, *copy_measure_ = nullptr, *copy_ = nullptr, *save_ = nullptr, *nearest_ = nullptr;
};

}  // namespace turnpoint::views
