// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli training-graph: one training iteration of a model as a task graph, which `place`, `simulate` and other
// programs read.
#include <fmt/format.h>
#include <cstdio>
#include <list>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/scenario_arguments.h"
#include "core/base/text.h"
#include "core/plan_io/task_graph_json.h"
#include "core/search/placement/placed.h"

namespace turnpoint::cli {

namespace {

struct TrainingGraphArguments {
  ScenarioArguments scenario;
  std::list<std::pair<const OptionRecord*, std::string>> values;  // a list, since the parser keeps references
  std::list<std::pair<const OptionRecord*, bool>> flags;
  std::string out;

  std::string parameters() const {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ":") + part; };
    for (const auto& [option, value] : values)
      if (!value.empty()) add(fmt::format("{}={}", option->key, value));
    for (const auto& [option, on] : flags)
      if (on) add(std::string(option->key));
    return text;
  }
};

int write_training_graph(const TrainingGraphArguments& arguments) {
  if (const int refused = check_output(arguments.out); refused != kDone) return refused;
  const auto options = search::read_graph_options("training-graph", arguments.parameters());
  if (!options) return report(options.error());
  const auto scenario = open_scenario(arguments.scenario);
  if (!scenario) return report(scenario.error());
  if ((*scenario)->tasks)
    return report(usage_error(fmt::format("{} is a task graph already", arguments.scenario.model)));
  const auto placed = search::graph_to_place(**scenario, *options);
  if (!placed) return report(placed.error());
  const TaskGraph& graph = *placed->graph;
  if (const int written = write_output(arguments.out, write_task_graph(graph)); written != kDone) return written;
  std::fprintf(stderr, "%s\n",
               fmt::format("{}: {} tasks, {} edges, {} on one device", graph.name, graph.task_count(),
                           graph.edge_count(), format_seconds(search::one_device_seconds(graph, 1)))
                   .c_str());
  return kDone;
}

}  // namespace

void add_training_graph_command(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<TrainingGraphArguments>();
  CLI::App* sub = app.add_subcommand("training-graph", "Write a training iteration of a model as a task graph");
  add_scenario_arguments(*sub, arguments->scenario);
  for (const OptionRecord& option : search::graph_options()) {
    const std::string name = fmt::format("--{}", option.key);
    if (option.type == OptionType::flag)
      sub->add_flag(name, arguments->flags.emplace_back(&option, false).second, std::string(option.help));
    else
      sub->add_option(name, arguments->values.emplace_back(&option, std::string()).second,
                      fmt::format("{}{}", option.help,
                                  option.choices.empty() ? "" : fmt::format("; {}", fmt::join(option.choices, ", "))));
  }
  sub->add_option("--out", arguments->out, "File for the task graph; standard output without it");
  sub->callback([arguments, &command] { command.run = [arguments] { return write_training_graph(*arguments); }; });
}

}  // namespace turnpoint::cli
