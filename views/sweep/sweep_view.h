// SPDX-License-Identifier: Apache-2.0
// The tab about one quantity varied: what is varied and over which values, Run, the small multiples, whose scenario
// they are of, and the offer to take what is picked.
#pragma once

#include <QJsonObject>
#include <QWidget>
#include <map>

#include "views/sweep/sweep_chart.h"

class QComboBox;
class QDoubleSpinBox;
class QHBoxLayout;
class QLineEdit;
class QPushButton;
class QToolButton;

namespace turnpoint::views {

class NoteLabel;
class ToggleButton;

/// What may be varied of the open scenario.
struct SweepOffer {
  Varied quantity = Varied::batch;
  QString reason;                   ///< why it cannot be; empty: it can
  std::vector<std::int64_t> usual;  ///< values where nobody typed some
  friend bool operator==(const SweepOffer&, const SweepOffer&) = default;
};

struct SweepState {
  bool running = false;
  double fraction = -1;  ///< below 0: not known
  QString words;         ///< what is asked now, or how it ended; may be empty
  bool can_run = false;  ///< a scenario is open, and a method is checked
};

class SweepView : public QWidget {
  Q_OBJECT
 public:
  explicit SweepView(QWidget* parent = nullptr);

  void set_offers(std::vector<SweepOffer> offers);
  void set_data(SweepData shown);
  void set_state(const SweepState& state);
  /// 0: neither typed nor known of the hardware. `typed`: the box holds the scenario's own price, else the hardware's.
  void set_price(double price_per_hour, bool typed);
  /// What "use" would do with what is picked: its words, and why not; the button is off where there is nothing to do.
  void set_use(const QString& text, const QString& tip, bool enabled);

  Varied quantity() const;
  void choose(Varied quantity);
  bool turning() const;

  QJsonObject save_state() const;
  void restore_state(const QJsonObject& state);
  void paint_to(QPainter& painter, QSize size) { chart_->paint_to(painter, size); }

  QWidget* tool_bar() const { return tool_bar_; }
  SweepChart* chart() const { return chart_; }
  QComboBox* quantity_box() const { return quantity_box_; }
  QLineEdit* values_line() const { return values_line_; }
  QPushButton* run_button() const { return run_button_; }
  QPushButton* use_button() const { return use_button_; }
  ToggleButton* turning_button() const { return turning_button_; }
  QDoubleSpinBox* price_box() const { return price_box_; }
  QToolButton* export_button() const { return export_button_; }
  QString state_words() const;
  QString subject_words() const;

 signals:
  void run_requested(const turnpoint::VariedAxis& axis);
  void stop_requested();
  void use_requested();  ///< what is picked in the chart
  void turning_chosen();
  void price_edited(double price_per_hour);      ///< 0: the hardware's again
  void export_requested(const QString& suffix);  ///< "csv", "json", "svg", "png"; "copy": to the clipboard

 private:
  void make_subject_row(QHBoxLayout* row);
  void make_tool_bar();
  void make_export_menu();
  const SweepOffer* offer() const;  ///< of the chosen quantity
  void show_values();
  void show_state();
  void run();

  QWidget* tool_bar_;
  SweepChart* chart_;
  NoteLabel *subject_, *words_;
  QComboBox* quantity_box_;
  QLineEdit* values_line_;
  QPushButton *run_button_, *use_button_;
  ToggleButton* turning_button_;
  QDoubleSpinBox* price_box_;
  QToolButton* export_button_;
  std::vector<SweepOffer> offers_;
  std::map<Varied, QString> typed_;
  SweepState state_;
};

}  // namespace turnpoint::views
