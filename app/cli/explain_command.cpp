// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli explain: what a point is and what is near it; what a choice forced on its operators costs; how two
// points differ.
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/chosen_point.h"
#include "app/cli/commands.h"
#include "app/cli/one_result.h"
#include "core/base/json.h"
#include "core/search/explain/ratio_story.h"
#include "core/search/explain/told_answer.h"
#include "core/search/reopen.h"

namespace turnpoint::cli {

namespace {

struct ExplainArguments {
  std::string file, method, out;
  std::optional<std::string> point, against, force;
  bool json = false;
  int threads = 0;
};

/// The result with the plans of the points that are asked about.
struct Opened {
  ResultPtr result;
  std::size_t point = 0, against = 0;
};

/// The other results of the file that hold plans, each with the first one: nothing is searched again for them.
Expected<std::vector<ResultPtr>> results_beside(const Opened& opened, const std::string& file,
                                                const RunContext& context) {
  std::vector<ResultPtr> results;
  const auto read = read_json_file(file);
  if (!read) return read.error();
  if (!read->contains("results")) return results;
  for (const auto& document : (*read)["results"]) {
    const auto points = read_points(document, file);
    if (!points) return points.error();
    const bool itself =
        (*points)->method == opened.result->method && (*points)->method_options == opened.result->method_options;
    if (itself || (*points)->points.size() != 1 || !holds_plans(document)) continue;
    const auto result = reopen_result(document, file, {0}, context);
    if (!result) return result.error();
    results.push_back(*result);
  }
  return results;
}

Expected<Opened> open_points(const ExplainArguments& arguments, const RunContext& context) {
  auto read = read_json_file(arguments.file);
  if (!read) return read.error();
  const auto document = one_result(std::move(*read), arguments.method, arguments.file);
  if (!document) return document.error();
  const auto points = read_points(*document, arguments.file);
  if (!points) return points.error();
  const auto point = chosen_point(arguments.point, **points);
  if (!point) return point.error();
  const auto against = arguments.against ? chosen_point(arguments.against, **points, "--against") : point;
  if (!against) return against.error();
  if (const std::string missing = missing_file(*document, arguments.file); !missing.empty())
    return bad_input("no such file; explain needs the model and the hardware of the result", missing);
  const auto result = reopen_result(*document, arguments.file, {*point, *against}, context);
  if (!result) return result.error();
  return Opened{*result, *point, *against};
}

int write_told(const ExplainArguments& arguments, const std::vector<std::string>& lines,
               const nlohmann::json& document) {
  if (arguments.json) return write_output(arguments.out, document.dump(2) + "\n");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return write_output(arguments.out, text);
}

int explain_forced(const ExplainArguments& arguments, const std::vector<ForceRule>& rules, const Opened& opened,
                   const RunContext& context) {
  const auto explainer = PointExplainer::make(opened.result, opened.point);
  if (!explainer) return report(explainer.error());
  const auto answer = (*explainer)->force(rules, context);
  if (!answer) return report(answer.error());
  return write_told(arguments, describe(*answer, *opened.result), explanation_json(*answer, *opened.result));
}

int explain_difference(const ExplainArguments& arguments, const Opened& opened) {
  const auto& [result, first, second] = opened;
  std::vector<PlanPtr> plans;
  for (const std::size_t point : {first, second}) {
    const AnyPlan any = result->plans->plan(point);
    const PlanPtr* plan = std::get_if<PlanPtr>(&any);
    if (!plan)
      return report(
          usage_error(fmt::format("--against is for plans that split operators, not for {}", plural_of(kind_of(any)))));
    plans.push_back(*plan);
  }
  const PlanDifference difference = difference_of(*result->scenario->model, *plans[0], *plans[1]);
  return write_told(arguments, describe(difference, *result, first, second),
                    explanation_json(difference, *result, first, second));
}

int explain_ratio(const ExplainArguments& arguments, const Opened& opened, const RunContext& context) {
  const auto others = results_beside(opened, arguments.file, context);
  if (!others) return report(others.error());
  const auto story = ratio_story_of(*opened.result, opened.point, *others);
  if (!story) return report(story.error());
  return write_told(arguments, describe(*story, *opened.result), explanation_json(*story, *opened.result));
}

int run_explain(const ExplainArguments& arguments) {
  const RunContext context = command_context(arguments.threads);
  std::vector<ForceRule> rules;
  if (arguments.force) {
    auto read = parse_force(*arguments.force);
    if (!read) return report(read.error());
    rules = std::move(*read);
  }
  const auto opened = open_points(arguments, context);
  if (!opened) return report(opened.error());
  if (!rules.empty()) return explain_forced(arguments, rules, *opened, context);
  if (arguments.against) return explain_difference(arguments, *opened);
  if (std::holds_alternative<RatioPlanPtr>(opened->result->plans->plan(opened->point)))
    return explain_ratio(arguments, *opened, context);
  const auto story = story_of(*opened->result, opened->point, context);
  if (!story) return report(story.error());
  return write_told(arguments, describe(*story, *opened->result), explanation_json(*story, *opened->result));
}

}  // namespace

void add_explain_command(CLI::App& app, Command& command) {
  auto* sub =
      app.add_subcommand("explain", "Say what a point is, what lies near it, and what other choices would cost");
  auto arguments = std::make_shared<ExplainArguments>();
  sub->add_option("result", arguments->file, "A turnpoint/result@1 file")->required()->type_name("RESULT.json");
  sub->add_option("--method", arguments->method, "Which result, where the file holds those of several methods");
  sub->add_option("--point", arguments->point,
                  "Index, turning, min-time or min-memory; default turning, or min-time where nothing turns");
  auto* force =
      sub->add_option("--force", arguments->force,
                      "The best plan in which operators do as told: 'PATTERN: CHOICE, ...', such as 'layer7/*: tp=4'");
  force->type_name("RULES");
  sub->add_option("--against", arguments->against, "Another point of the result: how that one differs, by layer")
      ->type_name("POINT")
      ->excludes(force);
  sub->add_flag("--json", arguments->json, "Print JSON");
  sub->add_option("--out", arguments->out, "File; default standard output");
  sub->add_option("--threads", arguments->threads, "Threads; 0: all")->check(CLI::Range(0, 1024));
  sub->callback([&command, arguments] { command.run = [arguments] { return run_explain(*arguments); }; });
}

}  // namespace turnpoint::cli
