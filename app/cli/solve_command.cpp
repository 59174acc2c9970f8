// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli solve: a frontier problem from a file, its frontier to a file or standard output.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/base/json.h"
#include "core/frontier/published.h"
#include "core/frontier/solver.h"

namespace turnpoint::cli {

namespace {

struct SolveArguments {
  std::string problem, method = "exact", out;
  int threads = 0;
  double time_limit_s = 0;
};

bool is_published(const std::string& method) { return method.rfind("published", 0) == 0; }

Expected<frontier::Answer> answer_of(const SolveArguments& arguments, const frontier::Problem& problem) {
  const RunContext context = command_context(arguments.threads);
  if (is_published(arguments.method)) {
    frontier::PublishedOptions options;
    if (arguments.method == "published-elimination") options.algorithm = frontier::PublishedAlgorithm::elimination;
    options.time_limit_s = arguments.time_limit_s;
    return frontier::solve_published(problem, options, context);
  }
  frontier::SolveOptions options;
  options.pass = arguments.method == "coarse" ? frontier::Pass::coarse : frontier::Pass::exact;
  options.time_limit_s = arguments.time_limit_s;
  return frontier::Solver().solve(problem, options, context);
}

int solve(const SolveArguments& arguments) {
  if (const int refused = check_output(arguments.out); refused != kDone) return refused;
  const auto document = read_json_file(arguments.problem);
  if (!document) return report(document.error());
  const auto begin = std::chrono::steady_clock::now();
  const auto problem = frontier::read_problem(*document, arguments.problem);
  if (!problem) return report(problem.error());
  const auto answer = answer_of(arguments, *problem);
  if (!answer) {
    Error error = answer.error();
    if (error.where.empty()) error.where = arguments.problem;
    return report(error);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return write_output(arguments.out, frontier::write_answer(*answer, seconds).dump() + "\n");
}

}  // namespace

void add_solve_command(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<SolveArguments>();
  CLI::App* sub = app.add_subcommand("solve", "Solve a frontier problem given as JSON");
  sub->add_option("problem", arguments->problem, "File in the format turnpoint/frontier-problem@1")->required();
  sub->add_option("--method", arguments->method, "exact, coarse, published or published-elimination")
      ->check(CLI::IsMember({"exact", "published", "published-elimination", "coarse"}));
  sub->add_option("--threads", arguments->threads, "Threads; 0: as many as the machine has")
      ->check(CLI::Range(0, 1024));
  sub->add_option(
         "--time-limit", arguments->time_limit_s,
         "Seconds after which exact and coarse give what they have, and the published algorithms give up; 0: none")
      ->check(CLI::Range(0.0, 1e9));
  sub->add_option("--out", arguments->out, "File for the answer; standard output without it");
  sub->callback([arguments, &command] { command.run = [arguments] { return solve(*arguments); }; });
}

}  // namespace turnpoint::cli
