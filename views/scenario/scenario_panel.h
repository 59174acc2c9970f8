// SPDX-License-Identifier: Apache-2.0
// The left dock: model, hardware, devices, batch, precision, optimizer, what-if sliders, methods. It shows a scenario
// and reports edits; it never changes anything itself. Rows are made from the scenario's option records.
#pragma once

#include <QScrollArea>
#include <map>
#include <span>
#include <vector>

#include "core/base/options.h"
#include "core/scenario/scenario.h"
#include "views/scenario/methods_model.h"
#include "views/scenario/specification_box.h"
#include "views/scenario/split_completer.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;
class QToolButton;
class QVBoxLayout;
class QFormLayout;

namespace turnpoint::views {

class MethodSettings;
struct OtherMethodBoxes;
class MethodsList;
class SectionHead;
class ShapeBoxes;
class SliderRow;

inline constexpr double kMebibyte = 1 << 20;  ///< the unit in which boxes show bytes

/// What the panel shows.
struct ScenarioView {
  ScenarioPtr scenario;  ///< null: nothing open
  QString model_specification, hardware_specification;
  int cluster_devices = 0;  ///< devices of the whole cluster before cutting
  ClusterPtr cluster;       ///< that cluster; null where nothing is open or the file says what there is
};

class ScenarioPanel : public QScrollArea {
  Q_OBJECT
 public:
  explicit ScenarioPanel(std::span<const OptionRecord> options, QWidget* parent = nullptr);

  void set_choices(std::vector<Choice> models, std::vector<Choice> hardware);
  void set_scenario(const ScenarioView& view);
  void set_methods(std::vector<MethodRow> rows);
  /// What the line "Add a split of your own" explains and completes.
  void offer_splits(const SplitWords& words);
  /// Answers split_added: the line is emptied, or keeps its text and says what is wrong with it.
  void show_split_message(const QString& message);
  /// Boxes over the list; the caller hears of what is chosen from them.
  MethodSettings* show_method_settings(const QString& title, std::span<const OptionRecord> options,
                                       const QString& parameters, bool changes, OtherMethodBoxes other);
  MethodsModel* methods_model() { return &methods_; }
  SliderRow* slider_row(const QString& key) const;
  /// Whether a row of the panel edits this option now; and the keyboard on that row, in sight.
  bool has_setting(const QString& key) const;
  void focus_setting(const QString& key);

 signals:
  void model_chosen(const QString& specification);
  void hardware_chosen(const QString& specification);
  void open_model_requested();
  void open_hardware_requested();
  /// `gesture` 0: an edit of its own.
  void option_edited(const QString& key, double value, quint64 gesture);
  void reset_factors_requested();
  void method_toggled(const QString& name, bool enabled);
  void cancel_method_requested(const QString& name);
  void method_clicked(const QString& name);
  /// "tp=4:pp=2", as typed, blanks for colons allowed.
  void split_added(const QString& parameters);
  void split_removed(const QString& name);
  /// The settings of a method, or of a variant of it; empty: a split of one's own.
  void settings_requested(const QString& name);

 protected:
  /// Rows that became wider take the panel with them: there is no horizontal scroll bar to reach what would be cut.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build_machine(QVBoxLayout* column);
  void build_what_if(QVBoxLayout* column);
  void build_methods(QVBoxLayout* column);
  void build_split_line(QVBoxLayout* column);
  QWidget* make_shape_boxes();
  QWidget* editor_of(const QString& key) const;  ///< null: no row edits it
  QWidget* make_editor(const OptionRecord& option);
  void show_model();
  void show_machine();
  void show_options();
  void fit_width();
  void show_limit();
  void show_sliders();

  std::span<const OptionRecord> options_;
  ScenarioView view_;
  std::vector<Choice> model_choices_, hardware_choices_;
  SpecificationBox *model_box_ = nullptr, *hardware_box_ = nullptr;
  QLabel *model_note_ = nullptr, *taken_note_ = nullptr, *hardware_note_ = nullptr, *tasks_note_ = nullptr;
  ShapeBoxes* shape_ = nullptr;
  QLabel* limit_label_ = nullptr;
  QLineEdit* limit_line_ = nullptr;      ///< of a task graph whose file states no memory
  std::map<QString, QWidget*> editors_;  ///< spin boxes, combo boxes and check boxes by option key
  std::map<QString, SliderRow*> sliders_;
  SectionHead *what_if_head_ = nullptr, *methods_head_ = nullptr;
  MethodsModel methods_;
  MethodsList* methods_list_ = nullptr;
  QToolButton* more_methods_ = nullptr;
  bool fold_again_ = true, folds_by_itself_ = true;
  std::vector<bool> enabled_;  ///< by row of the methods
  QLineEdit* split_line_ = nullptr;
  SplitCompleter* split_completer_ = nullptr;  ///< once something is offered
  QLabel* split_note_ = nullptr;
};

}  // namespace turnpoint::views
