// SPDX-License-Identifier: Apache-2.0
// Every command of the window in one table; menus, tool bar, find field and the shortcut list are made from it.
#pragma once

#include <QHash>
#include <QObject>
#include <span>

class QAction;
class QWidget;

namespace turnpoint {
struct ExportFormat;
}

namespace turnpoint::app {

enum class ActionId {
  open_model,
  open_hardware,
  open_logs,
  open_session,
  save_session,
  save_session_as,
  close_model,
  new_window,
  quit,
  undo,
  redo,
  copy_point,
  why,
  search_all,
  stop_newest,
  stop_all,
  longest_sequence,
  pin,
  clear_pinned,
  reset_factors,
  measure,
  validate,
  validate_sample,
  calibrate,
  open_report,
  save_report,
  export_report_csv,
  export_report_markdown,
  export_menu,
  engine_dialog,
  export_format,  ///< one record for each of core/export/format.h, told apart by `format`
  export_chart_svg,
  export_chart_png,
  export_chart_pdf,
  export_graph_svg,
  export_graph_png,
  find,
  next_region,
  previous_region,
  fit_chart,
  zoom_in,
  zoom_out,
  previous_plan,
  next_plan,
  previous_point,
  next_point,
  least_memory,
  least_time,
  turning_point,
  show_parts,
  show_others,
  show_pinned,
  log_time,
  simulated_clock,
  scenario_dock,
  plan_dock,
  chart_only,
  reset_layout,
  theme_system,
  theme_light,
  theme_dark,
  tasks,
  help,
  manual,
  shortcuts,
  about,
};

struct ActionRecord {
  ActionId id;
  const char* key;       ///< stable name, also the QAction's object name
  const char* text;      ///< menu text
  const char* shortcut;  ///< portable form; "" for none
  const char* tip;       ///< one sentence
  const char* icon;      ///< "" for none
  bool checkable = false;
  bool in_chart_only = false;            ///< the key works while the chart has the focus (the chart handles it itself)
  const ExportFormat* format = nullptr;  ///< of export_format
};

std::span<const ActionRecord> action_table();

/// The QActions of one window, made from the table.
class ActionSet {
 public:
  explicit ActionSet(QWidget* window);
  QAction* operator[](ActionId id) const { return actions_.value(static_cast<int>(id)); }
  QAction* operator[](const ExportFormat& format) const { return exports_.value(&format); }
  const QList<QAction*>& all() const { return all_; }
  /// Enabled where `why_not` is empty; else disabled, and the tool tip ends with that sentence.
  void allow(QAction* action, const QString& why_not) const;
  void allow(ActionId id, const QString& why_not) const { allow((*this)[id], why_not); }

 private:
  QHash<int, QAction*> actions_;
  QHash<const ExportFormat*, QAction*> exports_;
  QList<QAction*> all_;  ///< in the table's order
};

}  // namespace turnpoint::app
