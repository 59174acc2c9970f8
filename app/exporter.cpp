// SPDX-License-Identifier: Apache-2.0
#include "app/exporter.h"

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/plan/export.h"
#include "core/plan/placement_export.h"
#include "core/plan/plan_schedule.h"
#include "core/plan/result_text.h"
#include "core/simulation/trace.h"

namespace turnpoint::app {

namespace {

Expected<std::string> placement_text(ExportKind kind, const Scenario& scenario, const PlacementPlan& placement) {
  switch (kind) {
    case ExportKind::plan_json: return write_placement_plan(scenario, placement);
    case ExportKind::plan_csv: return write_placement_csv(placement);
    case ExportKind::plan_dot: return write_placement_dot(placement);
    case ExportKind::plan_trace: return write_placement_trace(placement);
    default: return usage_error("a placement is written as JSON, CSV, Graphviz DOT or a trace, not as SVG");
  }
}

/// What the Timeline draws: every device's computing and sending, pipelines with their micro-batches.
Expected<std::string> plan_trace(const Scenario& scenario, const Plan& plan) {
  const auto schedule = plan_schedule(scenario, plan);
  return schedule ? Expected<std::string>(write_trace(**schedule)) : schedule.error();
}

Expected<void> write_all_results(const ExportInput& input, const TextSink& sink) {
  return write_results_text(input.results, input.results.size() > 1, {}, sink, {});
}

}  // namespace

Expected<std::string> export_text(ExportKind kind, const ExportInput& input) {
  if (kind == ExportKind::results_json || kind == ExportKind::points_csv) {
    if (input.results.empty()) return usage_error("there is no result yet");
    if (kind == ExportKind::points_csv) return write_points_csv(*input.results.front());
    std::string text;
    const auto written = write_all_results(input, [&](std::string_view piece) {
      text += piece;
      return Expected<void>();
    });
    return written ? Expected<std::string>(std::move(text)) : written.error();
  }
  if (!input.picked || !input.picked->plans || input.point >= input.picked->points.size())
    return usage_error("no plan is picked");
  if (const PlacementPlanPtr placement = input.picked->plans->placement(input.point))
    return placement_text(kind, *input.picked->scenario, *placement);
  const Plan plan = input.picked->plans->plan(input.point);
  const Scenario& scenario = *input.picked->scenario;
  switch (kind) {
    case ExportKind::plan_json: return write_plan(scenario, plan).dump(1) + "\n";
    case ExportKind::plan_csv: return write_plan_csv(scenario, plan);
    case ExportKind::plan_dot: return write_plan_dot(scenario, plan);
    case ExportKind::plan_svg: return write_plan_svg(scenario, plan);
    case ExportKind::plan_trace: return plan_trace(scenario, plan);
    default: return usage_error("unknown format");
  }
}

Expected<void> export_to_file(ExportKind kind, const ExportInput& input, const std::filesystem::path& path) {
  if (kind == ExportKind::results_json && !input.results.empty()) {
    auto file = FileWriter::open(path);
    if (!file) return file.error();
    if (auto written = write_all_results(input, [&](std::string_view text) { return file->write(text); }); !written)
      return written.error();
    return file->commit();
  }
  const auto text = export_text(kind, input);
  if (!text) return text.error();
  return write_file_atomically(path, *text);
}

}  // namespace turnpoint::app
