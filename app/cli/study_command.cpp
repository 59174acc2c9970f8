// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli study: asks a study of batches again and writes its file with the answers.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/result_table.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/search/batch_study.h"

namespace turnpoint::cli {

namespace {

struct StudyArguments {
  std::string study, graph, out;
  std::vector<std::string> models;
  int threads = 0;
  bool show = false, json = false;
};

std::string date_of_today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &utc)};
}

/// One row for each network and count: the paper's batch, and what the first method comes to.
std::string study_table(const BatchStudy& study, const std::string& graph) {
  std::vector<std::vector<std::string>> rows{
      {"network", "devices", "largest batch", "speed-up", "paper's batch", "time", "speed-up", ""}};
  for (const StudiedNetwork& network : study.networks) {
    const auto largest = speed_ups(study, network.model, study.methods.front(), graph, false);
    const auto reported = speed_ups(study, network.model, study.methods.front(), graph, true);
    for (std::size_t i = 0; i < study.devices.size(); ++i) {
      StudyCell asked{network.model, study.devices[i], study.methods.front(), graph};
      const StudyCell* most = study.find(asked);
      asked.at_reported = true;
      const StudyCell* there = study.find(asked);
      const auto up = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : std::string("-"); };
      rows.push_back({network.title, std::to_string(study.devices[i]),
                      !most              ? std::string("not asked")
                      : most->batch == 0 ? std::string("none fits")
                                         : std::to_string(most->batch),
                      up(largest[i]), network.reported[i] > 0 ? std::to_string(network.reported[i]) : std::string("-"),
                      !there        ? std::string("-")
                      : there->fits ? format_seconds(there->time_s)
                                    : std::string("does not fit"),
                      up(reported[i]), ""});
    }
  }
  std::string text = aligned(rows);
  for (const bool at_reported : {false, true}) {
    const auto findings = study_findings(study, graph, at_reported);
    if (findings.empty()) continue;
    text += at_reported ? "\nAt the paper's batches:\n" : "\nAt the largest batches:\n";
    for (const std::string& sentence : findings) text += "  " + sentence + "\n";
  }
  return text;
}

int ask_study(const StudyArguments& arguments) {
  if (const int refused = check_output(arguments.out); refused != kDone) return refused;
  const auto text = read_file(arguments.study, std::size_t(64) << 20);
  if (!text) return report(text.error());
  auto study = read_batch_study(*text, arguments.study);
  if (!study) return report(study.error());
  const StudyChoice choice{arguments.models, arguments.graph};
  if (const auto checked = check_study_choice(*study, choice); !checked) return report(checked.error());
  std::optional<Error> error;
  if (!arguments.show) {
    const RunContext context = command_context(arguments.threads);
    std::vector<StudyCell> found;
    const auto done = run_batch_study(*study, choice, context, [&](const StudyCell& cell) {
      study->put(cell);
      found.push_back(cell);
    });
    if (!done) error = done.error();
    if (done && study->all_among(found)) study->made = date_of_today();
  }
  const bool table = !arguments.json && shown_to_a_person(arguments.out);
  const int written =
      write_output(arguments.out, table ? study_table(*study, arguments.graph) : write_batch_study(*study));
  // What was found is in the file first, whatever ended the study.
  if (error && error->code != ErrorCode::cancelled) return report(*error);
  if (written != kDone) return written;
  if (!table)
    for (const bool at_reported : {false, true})
      for (const std::string& sentence : study_findings(*study, arguments.graph, at_reported))
        std::fprintf(stderr, "%s: %s\n", at_reported ? "at the paper's batches" : "at the largest batches",
                     sentence.c_str());
  if (!error) return kDone;
  std::fprintf(stderr,
               "turnpoint-cli: the study was stopped; answers that the study had not asked for again "
               "are unchanged\n");
  return kInterrupted;
}

}  // namespace

void add_study_command(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<StudyArguments>();
  CLI::App* sub = app.add_subcommand(
      "study", "Ask a study of batches again: networks on rising numbers of devices, by several methods");
  sub->add_option("study", arguments->study, "A batch study, as the window's tab Study exports it")->required();
  sub->add_option("--models", arguments->models, "Only these of its models, separated by commas")->delimiter(',');
  sub->add_option("--graph", arguments->graph,
                  "Parameters of all methods that place tasks, such as whole-layers or step-gradients=kept");
  sub->add_flag("--show", arguments->show, "Show the answers that the file has; ask nothing");
  sub->add_flag("--json", arguments->json, "Print the study's file, also on a terminal");
  sub->add_option("--threads", arguments->threads, "Number of threads; 0: all")->check(CLI::Range(0, 4096));
  sub->add_option("--out", arguments->out, "File for the study with its answers; standard output without it");
  sub->callback([arguments, &command] { command.run = [arguments] { return ask_study(*arguments); }; });
}

}  // namespace turnpoint::cli
