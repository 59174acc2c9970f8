// SPDX-License-Identifier: Apache-2.0
// turnpoint-probe: measures devices, in a process of its own that can be ended at any time.
//
//   turnpoint-probe --job FILE|-     one turnpoint/probe-job@1 (kernels to measure) or turnpoint/step-job@1 (a plan's
//                                    step to carry out) in, JSON lines out (resources/schemas/probe-message@1)
//
// Exit codes: 0 done, 2 wrong usage, 3 the job is broken, 5 a device or one of our processes failed, 130 interrupted.
#include <unistd.h>
#include <clocale>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/ranks/step_worker.h"
#include "gpu_probe/ranks/worker.h"

using namespace turnpoint;

namespace {

constexpr std::size_t kMaximumJob = 64u << 20;

Expected<std::string> read_job(const std::string& path) {
  if (path != "-") return read_file(path, kMaximumJob);
  std::string text;
  char block[65536];
  for (ssize_t n; (n = ::read(STDIN_FILENO, block, sizeof block)) > 0;) {
    text.append(block, static_cast<std::size_t>(n));
    if (text.size() > kMaximumJob) return bad_input("a job above 64 MiB is refused", "standard input");
  }
  return text;
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  probe::WorkerOptions options;
  if (probe::read_worker_arguments(arguments, options)) return probe::run_worker(options);
  if (arguments.size() == 1 && arguments[0] == "--help") {
    std::puts("turnpoint-probe --job FILE|-\nReads one job (turnpoint/probe-job@1 or step-job@1), prints JSON lines.");
    return probe::kDone;
  }
  if (arguments.size() != 2 || arguments[0] != "--job") {
    std::fputs("turnpoint-probe: expected --job FILE or --job - (see --help)\n", stderr);
    return probe::kUsage;
  }
  const auto text = read_job(arguments[1]);
  const std::string where = arguments[1] == "-" ? "job" : arguments[1];
  if (text && probe::is_step_job(*text)) {
    const auto step = parse_step_job(*text, where);
    if (step) return probe::run_step_job(*step, *text, STDOUT_FILENO);
    probe::print_error(STDOUT_FILENO, step.error());
    return probe::kBadJob;
  }
  const auto job = text ? parse_probe_job(*text, where) : text.error();
  if (!job) {
    probe::print_error(STDOUT_FILENO, job.error());
    return probe::kBadJob;
  }
  return probe::run_job(*job, *text, STDOUT_FILENO);
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_ALL, "C");
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    probe::print_error(STDOUT_FILENO, {ErrorCode::device, "out of memory", {}, "ask for smaller items or fewer ranks"});
  } catch (const std::exception& error) {
    probe::print_error(STDOUT_FILENO, {ErrorCode::device, error.what(), {}, {}});
  }
  return probe::kDevice;
}
