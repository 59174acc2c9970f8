// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/cli/chosen_point.h"
#include "app/cli/commands.h"
#include "app/cli/one_result.h"
#include "core/base/json.h"
#include "core/import/task_graph.h"
#include "core/plan/export.h"
#include "core/plan/placement_export.h"
#include "core/plan/plan_read.h"
#include "core/plan/plan_schedule.h"
#include "core/search/reopen.h"
#include "core/simulation/trace.h"

namespace turnpoint::cli {

namespace {

struct ExportArguments {
  std::string file, method, point = "turning", to, out;
  int threads = 0;
};

int write_or_report(const std::string& out, const Expected<std::string>& text) {
  return text ? write_output(out, *text) : report(text.error());
}

int export_placement(const ExportArguments& arguments, const Scenario& scenario, const PlacementPlan& plan) {
  if (arguments.to == "json") return write_output(arguments.out, write_placement_plan(scenario, plan));
  if (arguments.to == "trace") return write_or_report(arguments.out, write_placement_trace(plan));
  if (arguments.to == "csv") return write_or_report(arguments.out, write_placement_csv(plan));
  if (arguments.to == "dot") return write_or_report(arguments.out, write_placement_dot(plan));
  return report(
      usage_error(fmt::format("--to {} is not for placements, which go to json, trace, csv and dot", arguments.to)));
}

int export_sharding(const ExportArguments& arguments, const Scenario& scenario, const Plan& plan) {
  if (arguments.to == "json") return write_output(arguments.out, write_plan(scenario, plan).dump(1) + "\n");
  if (arguments.to == "dot") return write_output(arguments.out, write_plan_dot(scenario, plan));
  if (arguments.to == "svg") return write_output(arguments.out, write_plan_svg(scenario, plan));
  if (arguments.to == "csv") return write_output(arguments.out, write_plan_csv(scenario, plan));
  const auto schedule = plan_schedule(scenario, plan);
  return schedule ? write_output(arguments.out, write_trace(**schedule)) : report(schedule.error());
}

/// The plan of a file whose model or hardware is gone: as far as the file itself goes.
int export_alone(const ExportArguments& arguments, const nlohmann::json& plan, std::size_t point,
                 const std::string& missing) {
  const std::string where = fmt::format("{}: plans[{}]", arguments.file, point);
  if (plan.is_null())
    return report(bad_input(fmt::format("no such file; {} holds no plan of point {}", arguments.file, point), missing));
  const auto needs = [&](const char* what) {
    return report(bad_input(fmt::format("no such file; --to {} needs {}", arguments.to, what), missing));
  };
  const auto unchecked = [&] {
    std::fprintf(stderr, "note: %s is gone: the plan is written as %s has it, its costs unchecked\n", missing.c_str(),
                 arguments.file.c_str());
  };
  const bool placement = plan.is_object() && plan.value("kind", nlohmann::json()) == "placement";
  if (arguments.to != "json" && (placement || arguments.to != "csv"))
    return needs(placement ? "the tasks that it places" : "the model and the hardware of the result");
  if (placement) {
    if (const auto read = read_placement(plan.dump(-1, ' ', true), where); !read) return report(read.error());
  } else {
    const auto read = read_plan_alone(plan, where);
    if (!read) return report(read.error());
    if (arguments.to == "csv" && !read->parts) return needs("the model: this file has no parts of costs");
    if (arguments.to == "csv") {
      unchecked();
      return write_output(arguments.out, write_plan_csv(*read));
    }
  }
  unchecked();
  return write_output(arguments.out, plan.dump(1) + "\n");
}

int run_export(const ExportArguments& arguments) {
  static constexpr std::string_view kUnbuilt[] = {"jax", "pytorch", "megatron"};
  static constexpr std::string_view kBuilt[] = {"json", "dot", "svg", "csv", "trace"};
  if (std::find(std::begin(kUnbuilt), std::end(kUnbuilt), arguments.to) != std::end(kUnbuilt))
    return report(usage_error("--to " + arguments.to + " is not built yet"));
  if (std::find(std::begin(kBuilt), std::end(kBuilt), arguments.to) == std::end(kBuilt))
    return report(usage_error("--to knows json, csv, dot, svg and trace, not '" + arguments.to + "'"));
  auto read = read_json_file(arguments.file);
  if (!read) return report(read.error());
  const auto document = one_result(std::move(*read), arguments.method, arguments.file);
  if (!document) return report(document.error());
  const auto points = read_points(*document, arguments.file);
  if (!points) return report(points.error());
  std::size_t chosen = 0;
  if (holds_plans(*document) || (*points)->points.empty()) {
    const auto point = chosen_point(arguments.point, **points);
    if (!point) return report(point.error());
    chosen = *point;
    if (const std::string missing = missing_file(*document, arguments.file); !missing.empty())
      return export_alone(arguments, (*document)["plans"][chosen], chosen, missing);
  }
  const auto result = reopen_result(*document, arguments.file, {chosen}, command_context(arguments.threads));
  if (!result) return report(result.error());
  const auto point = chosen_point(arguments.point, **result);
  if (!point) return report(point.error());
  if (holds_plans(*document) && arguments.to == "json" && !(*document)["plans"][chosen].is_null())  // checked by now
    return write_output(arguments.out, (*document)["plans"][chosen].dump(1) + "\n");
  const Scenario& scenario = *(*result)->scenario;
  if (const PlacementPlanPtr placement = (*result)->plans->placement(*point))
    return export_placement(arguments, scenario, *placement);
  return export_sharding(arguments, scenario, (*result)->plans->plan(*point));
}

}  // namespace

void add_export_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("export", "Write the plan of one point of a result");
  auto arguments = std::make_shared<ExportArguments>();
  sub->add_option("result", arguments->file, "A turnpoint/result@1 file")->required()->type_name("RESULT.json");
  sub->add_option("--method", arguments->method, "Which result, where the file holds those of several methods");
  sub->add_option("--point", arguments->point, "Index, turning, min-time or min-memory")->capture_default_str();
  sub->add_option("--to", arguments->to,
                  "json, csv, dot or trace; of a sharding plan also svg (jax, pytorch and megatron are not built yet)")
      ->required();
  sub->add_option("--out", arguments->out, "File; default standard output");
  sub->add_option("--threads", arguments->threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  sub->callback([&command, arguments] { command.run = [arguments] { return run_export(*arguments); }; });
}

}  // namespace turnpoint::cli
