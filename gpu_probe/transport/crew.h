// SPDX-License-Identifier: Apache-2.0
// The processes that touch devices: one per rank, children of a probe on their host, each with its own pipe. They die
// with it.
#pragma once

#include <poll.h>
#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/probe_job.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/transport/shared_region.h"

namespace turnpoint::probe {

/// How a rank is started, as arguments of the same program.
struct WorkerOptions {
  int rank = 0, ranks = 1;
  int place = 0, places = 1;  ///< of its host's ranks, which share the region
  int cores = 0;              ///< that all ranks together may use; 0: those of this host
  int job_file = -1, region_file = -1, out_file = -1;
  int listen_file = -1, peers_file = -1;  ///< for ranks on other hosts; -1: there are none
  std::size_t start = 0;                  ///< the first item to measure, as a place in run_order()
  double deadline = 0;                    ///< host_clock() after which no item is begun
  ProbeBackend backend = ProbeBackend::cpu;
  bool choose = false;   ///< only say which backend there is
  bool exchange = true;  ///< GPUs: false once exchanges between them have failed too often
};
std::vector<std::string> worker_arguments(const WorkerOptions& options);
/// False where the arguments are not those of a worker.
bool read_worker_arguments(const std::vector<std::string>& arguments, WorkerOptions& options);

/// The ranks of a run, wherever they are. Nothing here blocks for long.
class Crew {
 public:
  struct Member {
    LineReader lines;
    bool open = true;  ///< more lines may come
    bool ended = false;
    int status = 0;  ///< of waitpid, once it has ended
  };

  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  virtual ~Crew() = default;

  /// Not all hosts are there yet; start() waits for that.
  virtual bool gathering() const { return false; }
  /// Starts `options.ranks` processes.
  virtual Expected<void> start(const WorkerOptions& options) = 0;
  /// Ends all of them, by force. Harmless if there are none.
  virtual void kill() = 0;
  /// Notes who has ended by itself.
  virtual void reap() = 0;
  /// What to wait for until there is something to read().
  virtual void add_files(std::vector<pollfd>& files) = 0;
  /// Takes what has come. Error: the run cannot go on.
  virtual Expected<void> read() = 0;
  std::vector<Member>& members() { return members_; }

 protected:
  std::vector<Member> members_;
};

/// A part of a run's ranks on this host: those from `first` on.
struct Share {
  int first = 0, count = 1;
  int region_file = -1;           ///< memory that other processes share too; -1: these ranks' own
  std::vector<int> listen_files;  ///< of each rank, where ranks of other hosts connect; empty: there are none
};

class LocalCrew : public Crew {
 public:
  explicit LocalCrew(int job_file) : job_file_(job_file) {}
  ~LocalCrew() override { kill(); }

  Expected<void> start(const WorkerOptions& options) override { return start(options, {0, options.ranks, -1, {}}); }
  /// `options.place` is that of the first rank.
  Expected<void> start(WorkerOptions options, const Share& share);
  void kill() override;
  void reap() override;
  void add_files(std::vector<pollfd>& files) override;
  Expected<void> read() override;

 private:
  struct Process {
    pid_t pid = -1;
    int file = -1;  ///< its pipe; -1 once it is closed
  };
  int job_file_;
  std::vector<Process> processes_;
  std::optional<SharedRegion> region_;
  pid_t group_ = -1;
};

/// A rank that ended because another one was gone, which says less than what that one has to say.
inline constexpr int kFollowed = 6;

/// "was ended by signal 11 (Segmentation fault)", "ended with code 5".
std::string describe_end(int status);

}  // namespace turnpoint::probe
