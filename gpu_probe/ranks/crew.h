// SPDX-License-Identifier: Apache-2.0
// The processes that touch devices: one per rank, children of the probe, each with its own pipe. They die with it.
#pragma once

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/probe_job.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/ranks/shared_region.h"

namespace turnpoint::probe {

/// How a rank is started, as arguments of the same program.
struct WorkerOptions {
  int rank = 0, ranks = 1;
  int job_file = -1, region_file = -1, out_file = -1;
  std::size_t start = 0;  ///< the first item to measure, as a place in run_order()
  double deadline = 0;    ///< host_clock() after which no item is begun
  ProbeBackend backend = ProbeBackend::cpu;
  bool choose = false;  ///< only say which backend there is
};
std::vector<std::string> worker_arguments(const WorkerOptions& options);
/// False where the arguments are not those of a worker.
bool read_worker_arguments(const std::vector<std::string>& arguments, WorkerOptions& options);

class Crew {
 public:
  struct Member {
    pid_t pid = -1;
    int file = -1;  ///< its pipe; -1 once it is closed
    LineReader lines;
    int status = 0;  ///< of waitpid, once it has ended
    bool ended = false;
  };

  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { kill(); }

  /// Starts `options.ranks` processes.
  Expected<void> start(WorkerOptions options, int job_file);
  /// Ends all of them, by force, and waits. Harmless if there are none.
  void kill();
  /// Notes who has ended by itself; true if rank 0 has.
  bool reap();
  std::vector<Member>& members() { return members_; }

 private:
  std::vector<Member> members_;
  std::optional<SharedRegion> region_;
  pid_t group_ = -1;
};

/// "was ended by signal 11 (Segmentation fault)", "ended with code 5".
std::string describe_end(int status);

}  // namespace turnpoint::probe
