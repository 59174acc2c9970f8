// SPDX-License-Identifier: Apache-2.0
// turnpoint-probe: measures devices, in a process of its own that can be ended at any time.
//
//   turnpoint-probe --job FILE|-     one turnpoint/probe-job@1 (kernels to measure) or turnpoint/step-job@1 (a plan's
//                                    step to carry out) in, JSON lines out (resources/schemas/probe-message@1)
//   mpirun -n 4 turnpoint-probe --job FILE      the same over several hosts; only rank 0 reads and prints
//
// Exit codes: 0 done, 2 wrong usage, 3 the job is broken, 5 a device or one of our processes failed, 130 interrupted.
#include <unistd.h>
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/ranks/host_crew.h"
#include "gpu_probe/ranks/host_part.h"
#include "gpu_probe/ranks/step_worker.h"
#include "gpu_probe/ranks/worker.h"

using namespace turnpoint;

namespace {

constexpr std::size_t kMaximumJob = 64u << 20;

constexpr char kHelp[] =
    "turnpoint-probe --job FILE|- [options]\n"
    "Reads one job (turnpoint/probe-job@1 or step-job@1), prints JSON lines.\n"
    "\n"
    "Started several times, by mpirun, srun or by hand, the processes run the job together; only rank 0 reads the job\n"
    "and prints. By hand each is given:\n"
    "  --rank R --size N        which of how many it is\n"
    "  --rendezvous HOST:PORT   where rank 0 listens for the others\n"
    "  --token WORD             any word that all are given (or the environment variable TURNPOINT_TOKEN)\n"
    "  --wait SECONDS           how long to wait for the others [60]\n"
    "  --node NAME              name of this host; processes of one name share memory\n"
    "  --transport auto|tcp|mpi what carries data between hosts [auto]\n";

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
  std::vector<std::string> arguments(argv + 1, argv + argc);
  probe::WorkerOptions options;
  if (probe::read_worker_arguments(arguments, options)) return probe::run_worker(options);
  if (arguments.size() == 1 && arguments[0] == "--version") {
    std::printf("turnpoint-probe %s\n", probe::program_version());
    return probe::kDone;
  }
  if (arguments.size() == 1 && arguments[0] == "--help") {
    std::fputs(kHelp, stdout);
    return probe::kDone;
  }
  const auto job_option = std::find(arguments.begin(), arguments.end(), "--job");
  if (arguments.end() - job_option < 2) {
    std::fputs("turnpoint-probe: expected --job FILE or --job - (see --help)\n", stderr);
    return probe::kUsage;
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string path = job_option[1];
  arguments.erase(job_option, job_option + 2);
  const auto launch = probe::read_launch(arguments, ::getenv, host);
  if (!launch) {
    std::fprintf(stderr, "turnpoint-probe: %s\n", launch.error().message().c_str());
    return probe::kUsage;
  }
  if (launch->rank > 0) return probe::follow(*launch);
  const auto text = read_job(path);
  const std::string where = path == "-" ? "job" : path;
  if (text && probe::is_step_job(*text)) {
    const auto step = parse_step_job(*text, where);
    if (step) return probe::run_step_job(*step, *text, STDOUT_FILENO, *launch);
    probe::print_error(STDOUT_FILENO, step.error());
    return probe::kBadJob;
  }
  const auto job = text ? parse_probe_job(*text, where) : text.error();
  if (!job) {
    probe::print_error(STDOUT_FILENO, job.error());
    return probe::kBadJob;
  }
  return probe::run_job(*job, *text, STDOUT_FILENO, *launch);
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
