// SPDX-License-Identifier: Apache-2.0
// The ranks of a run over several processes, which mpirun, srun or ssh have started, as the controlling one sees them:
// it waits for the others to come, gives them the job, and hears of their ranks' lines and ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/ranks/host_part.h"
#include "gpu_probe/transport/acceptor.h"

namespace turnpoint::probe {

class HostCrew : public Crew {
 public:
  /// Begins to listen. Usage error where the ranks cannot be spread evenly over the processes that were started; device
  /// error where it cannot listen. The job's text must outlive this; its file is for the ranks of this host.
  static Expected<std::unique_ptr<HostCrew>> make(const Launch& launch, int ranks, const std::string& text,
                                                  int job_file);
  ~HostCrew() override;

  bool gathering() const override { return missing_ > 0; }
  Expected<void> start(const WorkerOptions& options) override;
  void kill() override;
  void reap() override;
  void add_files(std::vector<pollfd>& files) override;
  Expected<void> read() override;

  /// Once all are there: what is said of devices, nodes and cores in place of this host's own.
  void describe(nlohmann::json& hello) const;
  /// What carries data between the ranks, in words.
  std::string transport() const;
  int nodes() const { return static_cast<int>(nodes_.size()); }
  /// A library is in the ranks that cannot be started a second time.
  bool once() const { return carrier_ != "tcp"; }
  /// Ranks that are still waited for: "ranks 1 and 3".
  std::string missing() const;

 private:
  struct Process {
    LineChannel channel;  ///< none for this one
    bool here = false, ready = false;
    std::string node, name, address;
    std::string mpi, no_mpi;  ///< its library; why there is none
    std::vector<int> cores;
    double memory_bytes = 0;
    // Its part of the run.
    int node_index = 0, first = 0, count = 0, place = 0, places = 0;
    bool leads = false;  ///< makes the node's memory
    std::vector<int> ports;
    std::string region;
  };
  HostCrew(const Launch& launch, const std::string& text, int job_file)
      : launch_(launch), text_(text), own_(launch, job_file) {}

  Expected<void> welcome();
  Expected<void> admit(Acceptor::Guest guest);
  Expected<void> admit_introduced(Acceptor::Guest& guest);  ///< throws where a word is of the wrong kind
  void take_part(Process& process, const nlohmann::json& introduction);
  void assign();
  Expected<void> choose_carrier();
  nlohmann::json preparation(const Process& process) const;
  Expected<void> begin();
  Expected<void> listen_to(std::size_t which);
  Expected<void> message(std::size_t which, const std::string& line);
  Expected<void> understood(std::size_t which, const std::string& line);  ///< throws where a word is of the wrong kind
  void take_ready(Process& process, const nlohmann::json& answer);
  std::string name_of(std::size_t which) const;
  int total_cores() const;

  const Launch& launch_;
  const std::string& text_;
  HostPart own_;
  std::optional<Acceptor> door_;
  std::vector<Process> processes_;  ///< by the rank that the launcher gave them
  std::vector<std::string> nodes_;
  std::string carrier_ = "tcp";  ///< "tcp"; "between": MPI between nodes; "mpi": inside nodes too
  std::string no_mpi_;           ///< why it is not MPI although a launcher of it is here
  WorkerOptions options_;
  int ranks_ = 0, each_ = 1, missing_ = 0, run_ = 0;
  bool preparing_ = false, running_ = false;
  double gather_until_ = 0, prepare_until_ = 0, last_ping_ = 0;
};

/// A process of a run that another one controls: does what that one says until it says that all is over, or is gone.
int follow(const Launch& launch);

}  // namespace turnpoint::probe
