// SPDX-License-Identifier: Apache-2.0
#include "app/actions.h"

#include <QAction>
#include <QCoreApplication>
#include <QKeySequence>
#include <QWidget>
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "core/export/format.h"
#include "views/common/icons.h"

namespace turnpoint::app {

namespace {

using Id = ActionId;
constexpr std::string_view kQuickExport = "json";  // the format with a key of its own
constexpr ActionRecord kTable[] = {
    {Id::open_model, "open_model", QT_TRANSLATE_NOOP("actions", "Open model…"), "Ctrl+O",
     QT_TRANSLATE_NOOP("actions", "Open an ONNX file, a Hugging Face config.json or a task graph"), "open"},
    {Id::open_hardware, "open_hardware", QT_TRANSLATE_NOOP("actions", "Open hardware profile…"), "Ctrl+Shift+O",
     QT_TRANSLATE_NOOP("actions", "Open a measured hardware profile"), "hardware"},
    {Id::open_logs, "open_logs", QT_TRANSLATE_NOOP("actions", "Open measured logs…"), "Ctrl+Shift+L",
     QT_TRANSLATE_NOOP("actions", "Make a hardware profile of logs of nccl-tests, nvbandwidth and others"), ""},
    {Id::open_session, "open_session", QT_TRANSLATE_NOOP("actions", "Open session…"), "Ctrl+Alt+O",
     QT_TRANSLATE_NOOP("actions", "Open a .turnpoint session"), ""},
    {Id::save_session, "save_session", QT_TRANSLATE_NOOP("actions", "Save session"), "Ctrl+S",
     QT_TRANSLATE_NOOP("actions", "Save scenario, pinned frontiers, layout and picked point"), "save"},
    {Id::save_session_as, "save_session_as", QT_TRANSLATE_NOOP("actions", "Save session as…"), "Ctrl+Shift+S",
     QT_TRANSLATE_NOOP("actions", "Save the session under another name"), ""},
    {Id::close_model, "close_model", QT_TRANSLATE_NOOP("actions", "Close model"), "Ctrl+W",
     QT_TRANSLATE_NOOP("actions", "Back to the start page with its samples and recent files; undo opens it again"), ""},
    {Id::new_window, "new_window", QT_TRANSLATE_NOOP("actions", "New window"), "Ctrl+Shift+N",
     QT_TRANSLATE_NOOP("actions", "Open another window beside this one"), ""},
    {Id::quit, "quit", QT_TRANSLATE_NOOP("actions", "Quit"), "Ctrl+Q", QT_TRANSLATE_NOOP("actions", "Close the window"),
     ""},
    {Id::undo, "undo", QT_TRANSLATE_NOOP("actions", "Undo"), "Ctrl+Z",
     QT_TRANSLATE_NOOP("actions", "Take back the last change of the scenario"), "undo"},
    {Id::redo, "redo", QT_TRANSLATE_NOOP("actions", "Redo"), "Ctrl+Shift+Z",
     QT_TRANSLATE_NOOP("actions", "Make the change again"), "redo"},
    {Id::copy_point, "copy_point", QT_TRANSLATE_NOOP("actions", "Copy picked point"), "C",
     QT_TRANSLATE_NOOP("actions", "Copy memory and time of the picked point"), "copy", false, true},
    {Id::why, "why", QT_TRANSLATE_NOOP("actions", "Why this plan?"), "Ctrl+Shift+Y",
     QT_TRANSLATE_NOOP("actions", "What the picked plan is, what other choices would cost, how it differs from others"),
     ""},
    {Id::search_all, "search_all", QT_TRANSLATE_NOOP("actions", "Search all methods"), "F5",
     QT_TRANSLATE_NOOP("actions", "Run every checked method again"), "search"},
    {Id::stop_newest, "stop_newest", QT_TRANSLATE_NOOP("actions", "Stop newest task"), "Shift+F5",
     QT_TRANSLATE_NOOP("actions", "Cancel the task that was started last"), "stop"},
    {Id::stop_all, "stop_all", QT_TRANSLATE_NOOP("actions", "Stop all tasks"), "Ctrl+F5",
     QT_TRANSLATE_NOOP("actions", "Cancel everything that is running"), ""},
    {Id::longest_sequence, "longest_sequence", QT_TRANSLATE_NOOP("actions", "Longest sequence that fits"), "",
     QT_TRANSLATE_NOOP("actions", "Look for the longest sequence with which this batch has a plan that fits"), ""},
    {Id::pin, "pin", QT_TRANSLATE_NOOP("actions", "Pin frontier"), "Ctrl+D",
     QT_TRANSLATE_NOOP("actions", "Keep the present frontier behind the live one"), "pin"},
    {Id::clear_pinned, "clear_pinned", QT_TRANSLATE_NOOP("actions", "Remove pinned frontiers"), "Ctrl+Shift+D",
     QT_TRANSLATE_NOOP("actions", "Remove all pinned frontiers"), ""},
    {Id::reset_factors, "reset_factors", QT_TRANSLATE_NOOP("actions", "Reset what-if"), "Ctrl+Shift+R",
     QT_TRANSLATE_NOOP("actions", "Set all what-if sliders to ×1"), "reset"},
    {Id::measure, "measure", QT_TRANSLATE_NOOP("actions", "Measure this machine…"), "Ctrl+M",
     QT_TRANSLATE_NOOP("actions", "Time operators and collectives on this machine and take it as the hardware"),
     "hardware"},
    {Id::validate, "validate", QT_TRANSLATE_NOOP("actions", "Run this plan here"), "Ctrl+R",
     QT_TRANSLATE_NOOP("actions",
                       "Run the picked plan's training step on this machine and compare it with what was "
                       "predicted"),
     ""},
    {Id::validate_sample, "validate_sample", QT_TRANSLATE_NOOP("actions", "Run 20 sampled plans"), "",
     QT_TRANSLATE_NOOP("actions", "Run plans along the frontier, one after the other, and compare their order"), ""},
    {Id::calibrate, "calibrate", QT_TRANSLATE_NOOP("actions", "Calibrate with this run"), "",
     QT_TRANSLATE_NOOP("actions", "Feed the measured times back into the profile; it becomes the hardware"), ""},
    {Id::open_report, "open_report", QT_TRANSLATE_NOOP("actions", "Open validation report…"), "",
     QT_TRANSLATE_NOOP("actions", "Show a report that was saved before"), ""},
    {Id::save_report, "save_report", QT_TRANSLATE_NOOP("actions", "Save validation report…"), "",
     QT_TRANSLATE_NOOP("actions", "Save the report on show as JSON"), ""},
    {Id::export_report_csv, "export_report_csv", QT_TRANSLATE_NOOP("actions", "Validation report as CSV…"), "",
     QT_TRANSLATE_NOOP("actions", "One row per value, predicted and measured"), ""},
    {Id::export_report_markdown, "export_report_markdown",
     QT_TRANSLATE_NOOP("actions", "Validation report as Markdown…"), "",
     QT_TRANSLATE_NOOP("actions", "The report on show as tables; of several plans their errors too"), ""},
    {Id::export_menu, "export_menu", QT_TRANSLATE_NOOP("actions", "Export"), "Ctrl+E",
     QT_TRANSLATE_NOOP("actions", "Export plan, results or chart"), "export"},
    {Id::engine_dialog, "engine_dialog", QT_TRANSLATE_NOOP("actions", "Plan for an engine…"), "Ctrl+Shift+G",
     QT_TRANSLATE_NOOP("actions", "What each engine can be told of the picked plan, before anything is written"), ""},
    {Id::export_chart_svg, "export_chart_svg", QT_TRANSLATE_NOOP("actions", "Chart as SVG…"), "",
     QT_TRANSLATE_NOOP("actions", "The chart as it is on screen, as vectors"), ""},
    {Id::export_chart_png, "export_chart_png", QT_TRANSLATE_NOOP("actions", "Chart as PNG…"), "",
     QT_TRANSLATE_NOOP("actions", "The chart as it is on screen, at twice its size"), ""},
    {Id::export_chart_pdf, "export_chart_pdf", QT_TRANSLATE_NOOP("actions", "Chart as PDF…"), "",
     QT_TRANSLATE_NOOP("actions", "The chart as it is on screen, as a page of its size"), ""},
    {Id::export_graph_svg, "export_graph_svg", QT_TRANSLATE_NOOP("actions", "Graph as SVG…"), "",
     QT_TRANSLATE_NOOP("actions", "The whole graph as it is folded and coloured, as vectors"), ""},
    {Id::export_graph_png, "export_graph_png", QT_TRANSLATE_NOOP("actions", "Graph as PNG…"), "",
     QT_TRANSLATE_NOOP("actions", "The whole graph as it is folded and coloured"), ""},
    {Id::find, "find", QT_TRANSLATE_NOOP("actions", "Find operator or action…"), "Ctrl+K",
     QT_TRANSLATE_NOOP("actions", "Find an operator of the model or a command of the window"), "find"},
    {Id::next_region, "next_region", QT_TRANSLATE_NOOP("actions", "Next part of the window"), "F6",
     QT_TRANSLATE_NOOP("actions", "Move the keyboard to the next of scenario, chart, tabs, view, plan and bars"), ""},
    {Id::previous_region, "previous_region", QT_TRANSLATE_NOOP("actions", "Previous part of the window"), "Shift+F6",
     QT_TRANSLATE_NOOP("actions", "Move the keyboard to the previous part of the window"), ""},
    {Id::fit_chart, "fit_chart", QT_TRANSLATE_NOOP("actions", "Fit chart"), "Ctrl+0",
     QT_TRANSLATE_NOOP("actions", "Show everything in the chart"), "fit"},
    {Id::zoom_in, "zoom_in", QT_TRANSLATE_NOOP("actions", "Zoom in"), "Ctrl++",
     QT_TRANSLATE_NOOP("actions", "Show less of the chart, larger"), ""},
    {Id::zoom_out, "zoom_out", QT_TRANSLATE_NOOP("actions", "Zoom out"), "Ctrl+-",
     QT_TRANSLATE_NOOP("actions", "Show more of the chart, smaller"), ""},
    {Id::previous_plan, "previous_plan", QT_TRANSLATE_NOOP("actions", "Previous plan"), "Ctrl+Left",
     QT_TRANSLATE_NOOP("actions", "The next plan with less memory that looks different in the chart"), "previous"},
    {Id::next_plan, "next_plan", QT_TRANSLATE_NOOP("actions", "Next plan"), "Ctrl+Right",
     QT_TRANSLATE_NOOP("actions", "The next plan with less time that looks different in the chart"), "next"},
    {Id::previous_point, "previous_point", QT_TRANSLATE_NOOP("actions", "Very next plan with less memory"),
     "Ctrl+Shift+Left", QT_TRANSLATE_NOOP("actions", "The next plan with less memory, however near"), ""},
    {Id::next_point, "next_point", QT_TRANSLATE_NOOP("actions", "Very next plan with less time"), "Ctrl+Shift+Right",
     QT_TRANSLATE_NOOP("actions", "The next plan with less time, however near"), ""},
    {Id::least_memory, "least_memory", QT_TRANSLATE_NOOP("actions", "Plan with least memory"), "Ctrl+Home",
     QT_TRANSLATE_NOOP("actions", "Pick the plan that needs least memory"), ""},
    {Id::least_time, "least_time", QT_TRANSLATE_NOOP("actions", "Plan with least time"), "Ctrl+End",
     QT_TRANSLATE_NOOP("actions", "Pick the fastest plan"), ""},
    {Id::turning_point, "turning_point", QT_TRANSLATE_NOOP("actions", "Turning point"), "Ctrl+T",
     QT_TRANSLATE_NOOP("actions", "Pick the point above which more memory buys less"), ""},
    {Id::show_parts, "show_parts", QT_TRANSLATE_NOOP("actions", "Compute and network"), "",
     QT_TRANSLATE_NOOP("actions", "Show the two parts of the iteration time, dotted"), "", true},
    {Id::show_others, "show_others", QT_TRANSLATE_NOOP("actions", "Other methods"), "",
     QT_TRANSLATE_NOOP("actions", "Show what other methods find"), "", true},
    {Id::show_pinned, "show_pinned", QT_TRANSLATE_NOOP("actions", "Pinned"), "",
     QT_TRANSLATE_NOOP("actions", "Show pinned frontiers"), "", true},
    {Id::log_time, "log_time", QT_TRANSLATE_NOOP("actions", "Log time"), "Ctrl+L",
     QT_TRANSLATE_NOOP("actions", "Logarithmic time axis"), "", true},
    {Id::simulated_clock, "simulated_clock", QT_TRANSLATE_NOOP("actions", "Simulated clock"), "Ctrl+Shift+T",
     QT_TRANSLATE_NOOP("actions", "Show simulated time and memory of every plan instead of plain sums"), "", true},
    {Id::scenario_dock, "scenario_dock", QT_TRANSLATE_NOOP("actions", "Scenario"), "F9",
     QT_TRANSLATE_NOOP("actions", "Show or hide the scenario"), "", true},
    {Id::plan_dock, "plan_dock", QT_TRANSLATE_NOOP("actions", "Plan"), "F10",
     QT_TRANSLATE_NOOP("actions", "Show or hide the plan"), "", true},
    {Id::chart_only, "chart_only", QT_TRANSLATE_NOOP("actions", "Chart only"), "F11",
     QT_TRANSLATE_NOOP("actions", "Hide everything around the chart"), "", true},
    {Id::reset_layout, "reset_layout", QT_TRANSLATE_NOOP("actions", "Restore default layout"), "",
     QT_TRANSLATE_NOOP("actions", "Put all docks back where they were at first"), ""},
    {Id::theme_system, "theme_system", QT_TRANSLATE_NOOP("actions", "As the desktop has it"), "",
     QT_TRANSLATE_NOOP("actions", "Colours and style of the desktop"), "", true},
    {Id::theme_light, "theme_light", QT_TRANSLATE_NOOP("actions", "Light"), "",
     QT_TRANSLATE_NOOP("actions", "Dark text on light ground, now and at the next start"), "", true},
    {Id::theme_dark, "theme_dark", QT_TRANSLATE_NOOP("actions", "Dark"), "",
     QT_TRANSLATE_NOOP("actions", "Light text on dark ground, now and at the next start"), "", true},
    {Id::tasks, "tasks", QT_TRANSLATE_NOOP("actions", "Running tasks…"), "Ctrl+J",
     QT_TRANSLATE_NOOP("actions", "List everything that is running"), ""},
    {Id::help, "help", QT_TRANSLATE_NOOP("actions", "What the chart shows"), "F1",
     QT_TRANSLATE_NOOP("actions", "A page about the chart and its words"), "help"},
    {Id::manual, "read_manual", QT_TRANSLATE_NOOP("actions", "Manual"), "",
     QT_TRANSLATE_NOOP("actions", "How to use the window, what opens, and the rules behind every figure"), ""},
    {Id::shortcuts, "shortcuts", QT_TRANSLATE_NOOP("actions", "Keyboard shortcuts"), "Ctrl+F1",
     QT_TRANSLATE_NOOP("actions", "All commands with their keys"), ""},
    {Id::about, "about", QT_TRANSLATE_NOOP("actions", "About Turnpoint"), "",
     QT_TRANSLATE_NOOP("actions", "Version and licences"), ""},
};

/// The records of formats that can be exported, behind that of their menu.
std::vector<ActionRecord> with_exports() {
  static std::deque<std::string> kept;  // what the records point to
  const auto keep = [](std::string text) { return kept.emplace_back(std::move(text)).c_str(); };
  std::vector<ActionRecord> table;
  for (const ActionRecord& record : kTable) {
    table.push_back(record);
    if (record.id != Id::export_menu) continue;
    for (const ExportFormat& format : export_formats()) {
      std::string key = (format.for_plans() ? "export_plan_" : "export_") + std::string(format.key);
      std::replace(key.begin(), key.end(), '-', '_');
      ActionRecord made{Id::export_format,
                        keep(std::move(key)),
                        keep(format.title() + "…"),
                        format.key == kQuickExport ? "Ctrl+Shift+E" : "",
                        keep(std::string(format.text)),
                        ""};
      made.format = &format;
      table.push_back(made);
    }
  }
  return table;
}

QString tip_of(const QAction& action) {
  const QString keys = action.shortcut().toString(QKeySequence::NativeText);
  return keys.isEmpty() ? action.statusTip() : action.statusTip() + QStringLiteral(" (%1)").arg(keys);
}

}  // namespace

std::span<const ActionRecord> action_table() {
  static const std::vector<ActionRecord> table = with_exports();
  return table;
}

ActionSet::ActionSet(QWidget* window) {
  for (const ActionRecord& record : action_table()) {
    const QString text = QCoreApplication::translate("actions", record.text);
    auto* action = new QAction(text, window);
    action->setObjectName(QString::fromLatin1(record.key));
    const QString tip = QCoreApplication::translate("actions", record.tip);
    if (*record.shortcut && !record.in_chart_only) {
      action->setShortcut(QKeySequence(QString::fromLatin1(record.shortcut), QKeySequence::PortableText));
    }
    action->setStatusTip(tip);
    action->setToolTip(tip_of(*action));
    action->setCheckable(record.checkable);
    if (*record.icon) action->setIcon(views::themed_icon(QString::fromLatin1(record.icon)));
    window->addAction(action);
    all_ << action;
    if (record.format)
      exports_.insert(record.format, action);
    else
      actions_.insert(static_cast<int>(record.id), action);
  }
}

void ActionSet::allow(QAction* action, const QString& why_not) const {
  action->setEnabled(why_not.isEmpty());
  action->setToolTip(why_not.isEmpty() ? tip_of(*action) : tip_of(*action) + u'\n' + why_not);
}

}  // namespace turnpoint::app
