// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli explain: what a choice forced on operators of a point's plan costs.
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/chosen_point.h"
#include "app/cli/commands.h"
#include "app/cli/one_result.h"
#include "core/base/json.h"
#include "core/search/explain/told_answer.h"
#include "core/search/reopen.h"

namespace turnpoint::cli {

namespace {

struct ExplainArguments {
  std::string file, method, force, out;
  std::optional<std::string> point;
  bool json = false;
  int threads = 0;
};

/// The result with the plan of the point that is asked about.
Expected<std::pair<ResultPtr, std::size_t>> open_point(const ExplainArguments& arguments, const RunContext& context) {
  auto read = read_json_file(arguments.file);
  if (!read) return read.error();
  const auto document = one_result(std::move(*read), arguments.method, arguments.file);
  if (!document) return document.error();
  const auto points = read_points(*document, arguments.file);
  if (!points) return points.error();
  const auto point = chosen_point(arguments.point, **points);
  if (!point) return point.error();
  if (const std::string missing = missing_file(*document, arguments.file); !missing.empty())
    return bad_input("no such file; explain needs the model and the hardware of the result", missing);
  const auto result = reopen_result(*document, arguments.file, {*point}, context);
  if (!result) return result.error();
  return std::pair(*result, *point);
}

int run_explain(const ExplainArguments& arguments) {
  const auto rules = parse_force(arguments.force);
  if (!rules) return report(rules.error());
  const RunContext context = command_context(arguments.threads);
  const auto opened = open_point(arguments, context);
  if (!opened) return report(opened.error());
  const auto& [result, point] = *opened;
  const auto explainer = PointExplainer::make(result, point);
  if (!explainer) return report(explainer.error());
  const auto answer = (*explainer)->force(*rules, context);
  if (!answer) return report(answer.error());
  if (arguments.json) return write_output(arguments.out, explanation_json(*answer, *result).dump(2) + "\n");
  std::string text;
  for (const std::string& line : describe(*answer, *result->scenario->model)) text += line + "\n";
  return write_output(arguments.out, text);
}

}  // namespace

void add_explain_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("explain", "Say what a choice would cost that the plan of a point does not make");
  auto arguments = std::make_shared<ExplainArguments>();
  sub->add_option("result", arguments->file, "A turnpoint/result@1 file")->required()->type_name("RESULT.json");
  sub->add_option("--method", arguments->method, "Which result, where the file holds those of several methods");
  sub->add_option("--point", arguments->point,
                  "Index, turning, min-time or min-memory; default turning, or min-time where nothing turns");
  sub->add_option("--force", arguments->force,
                  "The best plan in which operators do as told: 'PATTERN: CHOICE, ...', such as 'layer7/*: tp=4'")
      ->required()
      ->type_name("RULES");
  sub->add_flag("--json", arguments->json, "Print JSON");
  sub->add_option("--out", arguments->out, "File; default standard output");
  sub->add_option("--threads", arguments->threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  sub->callback([&command, arguments] { command.run = [arguments] { return run_explain(*arguments); }; });
}

}  // namespace turnpoint::cli
