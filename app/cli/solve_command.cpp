// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli solve: a frontier problem from a file, its frontier to a file or standard output.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/base/json.h"
#include "core/frontier/solver.h"

namespace turnpoint::cli {

namespace {

struct SolveArguments {
  std::string problem, method = "exact", out;
  int threads = 0;
};

int solve(const SolveArguments& arguments) {
  if (arguments.method != "exact" && arguments.method != "coarse")
    return report(usage_error("method '" + arguments.method + "' of solve is not built yet"));
  const auto document = read_json_file(arguments.problem);
  if (!document) return report(document.error());
  const auto begin = std::chrono::steady_clock::now();
  const auto problem = frontier::read_problem(*document, arguments.problem);
  if (!problem) return report(problem.error());
  frontier::SolveOptions options;
  options.pass = arguments.method == "coarse" ? frontier::Pass::coarse : frontier::Pass::exact;
  frontier::Solver solver;
  auto answer = solver.solve(*problem, options, command_context(arguments.threads));
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
  sub->add_option("--out", arguments->out, "File for the answer; standard output without it");
  sub->callback([arguments, &command] { command.run = [arguments] { return solve(*arguments); }; });
}

}  // namespace turnpoint::cli
