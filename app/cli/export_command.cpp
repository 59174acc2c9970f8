// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/chosen_point.h"
#include "app/cli/commands.h"
#include "app/cli/one_result.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/export/format.h"
#include "core/export/nearest.h"
#include "core/import/task_graph.h"
#include "core/plan_io/plan_read.h"
#include "core/search/explain/told_answer.h"
#include "core/search/reopen.h"

namespace turnpoint::cli {

namespace {

struct ExportArguments {
  std::string file, method, to, out;
  std::optional<std::string> point;
  bool nearest = false;
  int threads = 0;
};

/// What goes to files besides a result of several methods, which a result file is itself.
bool writes(const ExportFormat& format) { return format.for_plans() || format.points; }

/// "svg (not of placements)": what each does and does not take, in one line of help.
std::string formats_help() {
  std::vector<std::string> words;
  for (const ExportFormat& format : export_formats()) {
    if (!writes(format)) continue;
    std::vector<std::string> not_of;
    for (const PlanKind kind : kPlanKinds)
      if (format.for_plans() && !format.accepts(kind)) not_of.emplace_back(plural_of(kind));
    words.push_back(std::string(format.key) + (not_of.empty() ? "" : fmt::format(" (not of {})", listed(not_of))));
  }
  return listed(words);
}

Expected<const ExportFormat*> format_of(const std::string& key) {
  const ExportFormat* format = find_format(key);
  if (format && writes(*format)) return format;
  std::vector<std::string> known;
  for (const ExportFormat& each : export_formats())
    if (writes(each)) known.emplace_back(each.key);
  return usage_error(fmt::format("--to knows {}, not '{}'", listed(known), key));
}

int write_or_report(const std::string& out, const Expected<std::string>& text) {
  return text ? write_output(out, *text) : report(text.error());
}

/// By what the plan says of itself; whether that is true is checked when it is read.
PlanKind kind_of_held(const nlohmann::json& plan) {
  if (!plan.is_object()) return PlanKind::sharding;
  if (plan.value("kind", nlohmann::json()) == "placement") return PlanKind::placement;
  if (plan.value("kind", nlohmann::json()) == "ratio") return PlanKind::ratio;
  return plan.contains("pipeline") ? PlanKind::pipeline : PlanKind::sharding;
}

/// The plan of a file whose model or hardware is gone: as far as the file itself goes.
Expected<std::string> text_alone(const ExportFormat& format, const nlohmann::json& plan, const std::string& where,
                                 const std::string& missing) {
  const auto needs = [&](std::string_view what) {
    return bad_input(fmt::format("no such file; --to {} needs {}", format.key, what), missing);
  };
  const PlanKind kind = kind_of_held(plan);
  if (!format.accepts(kind)) return usage_error(refusal_of(format, kind, FormatNames::keys));
  if (kind == PlanKind::placement) {
    if (!format.held) return needs("the tasks that it places");
    if (const auto read = read_placement(plan.dump(-1, ' ', true), where); !read) return read.error();
    return format.held(plan);
  }
  if (kind == PlanKind::ratio) {
    if (!format.held) return needs("the model and the hardware of the result");
    return format.held(plan);
  }
  if (!format.held && !format.plan_alone) return needs("the model and the hardware of the result");
  const auto read = read_plan_alone(plan, where);
  if (!read) return read.error();
  if (format.held) return format.held(plan);
  auto text = format.plan_alone(*read);
  return text ? text : needs(text.error().what);
}

int export_alone(const ExportArguments& arguments, const ExportFormat& format, const nlohmann::json& plan,
                 std::size_t point, const std::string& missing) {
  if (plan.is_null())
    return report(bad_input(fmt::format("no such file; {} holds no plan of point {}", arguments.file, point), missing));
  const auto text = text_alone(format, plan, fmt::format("{}: plans[{}]", arguments.file, point), missing);
  if (!text) return report(text.error());
  std::fprintf(stderr, "note: %s is gone: the plan is written as %s has it, its costs unchecked\n", missing.c_str(),
               arguments.file.c_str());
  return write_output(arguments.out, *text);
}

int write_with_remarks(const ExportArguments& arguments, const ExportFormat& format, const ExportSource& source,
                       const std::string& text) {
  for (const std::string& remark : export_remarks(format, source)) std::fprintf(stderr, "note: %s\n", remark.c_str());
  return write_output(arguments.out, text);
}

/// "14.2 GiB and 812 ms".
std::string words_of(const ResultPoint& point) {
  return fmt::format("{} and {}", format_bytes(point.memory_bytes), format_seconds(point.time_s));
}

/// Where the engine can run no plan of a result: the split of the user's own that comes nearest to the point's plan, if
/// it can run that. `none` says the rest.
int export_split(const ExportArguments& arguments, const ExportFormat& format, const Result& result, std::size_t asked,
                 bool some_fit, const Error& none, const RunContext& context) {
  const auto split = nearest_split(result, asked, context);
  if (!split && split.error().code == ErrorCode::cancelled) return report(split.error());
  if (!split || !*split) return report(none);
  const NamedStrategy& near = **split;
  const auto file = offered_split(format, *near.result, some_fit);
  if (!file) return report(none);
  std::fprintf(stderr, "note: %s\nnote: nearest to point %zu is a split of one's own that %s can run, %s, %s%s: %s\n",
               none.message().c_str(), asked, std::string(format.name).c_str(), near.name.c_str(),
               words_of(near.point).c_str(), near.point.fits ? "" : ", which does not fit",
               words_beside(near.point, result.points[asked]).c_str());
  if (format.remarks)
    for (const std::string& remark : file->otherwise) std::fprintf(stderr, "note: %s\n", remark.c_str());
  return write_output(arguments.out, file->text);
}

/// The fastest point that fits and that the engine takes, where it refuses the one that was asked for.
int export_nearest(const ExportArguments& arguments, const ExportFormat& format, const nlohmann::json& document,
                   const Result& result, std::size_t asked, const Error& refusal) {
  const auto points = read_points(document, arguments.file);
  if (!points) return report(points.error());
  const bool held = holds_plans(document);
  const auto& all = (*points)->points;
  const bool some_fit = std::ranges::any_of(all, &ResultPoint::fits);
  std::vector<std::size_t> order = nearest_order(all);
  if (held) std::erase_if(order, [&](std::size_t k) { return document["plans"][k].is_null(); });
  const RunContext context = command_context(arguments.threads);
  ResultPtr again;  // of a file without plans
  const ExportFormat* const engines[] = {&format};
  const auto all_found = nearest_plans(
      engines, order,
      [&](std::span<const std::size_t> some) -> Expected<ResultPtr> {
        if (again) return again;
        auto opened = reopen_result(document, arguments.file, {some.begin(), some.end()}, context);
        if (opened && !held) again = *opened;
        return opened;
      },
      context);
  if (!all_found) return report(all_found.error());
  if (const auto& found = all_found->front()) {
    const std::size_t k = found->point;
    std::fprintf(stderr, "note: %s\nnote: point %zu, %s, is the fastest %sthat %s can run: %s than point %zu\n",
                 refusal.message().c_str(), k, words_of(all[k]).c_str(), some_fit ? "that fits and " : "",
                 std::string(format.name).c_str(), words_beside(all[k], all[asked]).c_str(), asked);
    if (format.remarks)
      for (const std::string& remark : found->file.otherwise) std::fprintf(stderr, "note: %s\n", remark.c_str());
    return write_output(arguments.out, found->file.text);
  }
  Error none = refusal;
  const bool one = order.size() == 1;
  none.what += fmt::format("; of the result's {} point{}{}, {} can run none", order.size(), one ? "" : "s",
                           !some_fit ? ""
                           : one     ? " that fits"
                                     : " that fit",
                           format.name);
  return export_split(arguments, format, result, asked, some_fit, none, context);
}

int run_export(const ExportArguments& arguments) {
  const auto format = format_of(arguments.to);
  if (!format) return report(format.error());
  if (arguments.nearest && !(*format)->engine)
    return report(usage_error(
        fmt::format("--nearest is for engines, which cannot run every plan; --to {} writes all", (*format)->key)));
  auto read = read_json_file(arguments.file);
  if (!read) return report(read.error());
  const auto document = one_result(std::move(*read), arguments.method, arguments.file);
  if (!document) return report(document.error());
  const auto points = read_points(*document, arguments.file);
  if (!points) return report(points.error());
  if ((*format)->points) return write_or_report(arguments.out, (*format)->points(**points));
  std::size_t chosen = 0;
  if (holds_plans(*document) || (*points)->points.empty()) {
    const auto point = chosen_point(arguments.point, **points);
    if (!point) return report(point.error());
    chosen = *point;
    if (const std::string missing = missing_file(*document, arguments.file); !missing.empty())
      return export_alone(arguments, **format, (*document)["plans"][chosen], chosen, missing);
  }
  const auto result = reopen_result(*document, arguments.file, {chosen}, command_context(arguments.threads));
  if (!result) return report(result.error());
  const auto point = chosen_point(arguments.point, **result);
  if (!point) return report(point.error());
  if (holds_plans(*document) && (*format)->held && !(*document)["plans"][chosen].is_null())  // checked by now
    return write_or_report(arguments.out, (*format)->held((*document)["plans"][chosen]));
  const ExportSource source{{}, *result, *point};
  const auto text = export_text(**format, source, FormatNames::keys);
  if (text) return write_with_remarks(arguments, **format, source, *text);
  if (arguments.nearest) return export_nearest(arguments, **format, *document, **result, *point, text.error());
  return report(text.error());
}

}  // namespace

void add_export_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("export", "Write the plan of one point of a result, or its points");
  auto arguments = std::make_shared<ExportArguments>();
  sub->add_option("result", arguments->file, "A turnpoint/result@1 file")->required()->type_name("RESULT.json");
  sub->add_option("--method", arguments->method, "Which result, where the file holds those of several methods");
  sub->add_option("--point", arguments->point,
                  "Index, turning, min-time or min-memory; default turning, or min-time where nothing turns");
  sub->add_option("--to", arguments->to, formats_help())->required();
  sub->add_flag("--nearest", arguments->nearest,
                "Where an engine cannot run the point, the fastest that fits and that it can run, and what that costs");
  sub->add_option("--out", arguments->out, "File; default standard output");
  sub->add_option("--threads", arguments->threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  sub->callback([&command, arguments] { command.run = [arguments] { return run_export(*arguments); }; });
}

}  // namespace turnpoint::cli
