// SPDX-License-Identifier: Apache-2.0
// The tab about device counts: chart, price box, range, and the offer to take the count that is picked.
#pragma once

#include <QJsonObject>
#include <QWidget>

#include "views/parallelism/parallelism_data.h"

class QComboBox;
class QDoubleSpinBox;
class QPushButton;
class QToolButton;

namespace turnpoint::views {

class NoteLabel;
class ParallelismChart;
class ToggleButton;

/// What goes on while the chart is not complete.
struct ParallelismState {
  bool running = false;
  double fraction = -1;  ///< below 0: not known
  QString words;         ///< "stopped", an error; may be empty
  bool failed = false;   ///< `words` is an error
  bool can_resume = false;
};

class ParallelismView : public QWidget {
  Q_OBJECT
 public:
  explicit ParallelismView(QWidget* parent = nullptr);

  void set_data(ParallelismData shown);
  void set_state(const ParallelismState& state);
  /// 0: neither typed nor known of the hardware. `typed`: the box holds the scenario's own price, else the hardware's.
  void set_price(double price_per_hour, bool typed);
  /// The counts up to which the search may go; `chosen` is one of them.
  void set_ranges(const std::vector<int>& most, int chosen);

  QJsonObject save_state() const;
  void restore_state(const QJsonObject& state);

  QWidget* tool_bar() const { return tool_bar_; }
  ParallelismChart* chart() const { return chart_; }
  QDoubleSpinBox* price_box() const { return price_box_; }
  QComboBox* range_box() const { return range_box_; }
  ToggleButton* batch_button() const { return batch_button_; }
  ToggleButton* throughput_button() const { return throughput_button_; }
  ToggleButton* log_button() const { return log_button_; }
  QPushButton* use_button() const { return use_button_; }
  QToolButton* export_button() const { return export_button_; }
  QToolButton* run_button() const { return run_button_; }
  QString state_words() const;

 signals:
  void price_edited(double price_per_hour);  ///< 0: the hardware's again
  void range_chosen(int most);
  void devices_requested(int devices);
  void batch_requested(int devices, std::int64_t batch);  ///< both become the scenario's
  void largest_batch_chosen(bool on);
  void stop_requested();
  void resume_requested();
  void export_requested(const QString& suffix);  ///< "csv", "svg"

 private:
  void make_tool_bar();
  void show_picked();
  void request(int devices);
  /// The subject's largest batch on so many devices; 0 where it is not what is shown, or not known.
  std::int64_t batch_on(int devices) const;

  QWidget* tool_bar_;
  ParallelismChart* chart_;
  NoteLabel* words_;
  QDoubleSpinBox* price_box_;
  QComboBox* range_box_;
  ToggleButton *batch_button_, *throughput_button_, *log_button_;
  QPushButton* use_button_;
  QToolButton *export_button_, *run_button_;
  bool running_ = false;
};

}  // namespace turnpoint::views
