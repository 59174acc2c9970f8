// SPDX-License-Identifier: Apache-2.0
// What one process of a run over several does on its host, whether it controls the run or not: memory that the ranks
// of the host share, doors for those of other hosts, and its own ranks.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpu_probe/ranks/launch.h"
#include "gpu_probe/transport/crew.h"

namespace turnpoint::probe {

/// Grows with every change of what the processes of a run say to each other.
inline constexpr int kHostProtocol = 2;
/// Seconds between signs of life of the processes, and without one before the other side counts as gone.
inline constexpr double kPing = 1, kSilence = 20;
const char* program_version();

/// How this process introduces itself: rank and size, version, node, cores it may use, memory.
nlohmann::json introduction(const Launch& launch);

class HostPart {
 public:
  HostPart(const Launch& launch, int job_file) : launch_(launch), crew_(job_file) {}
  ~HostPart();

  /// Answers "prepare" (which start this is; how many ranks here; whether this process makes the node's memory, and
  /// for how many) with "ready": ports and, if made, where the memory is.
  Expected<nlohmann::json> prepare(const nlohmann::json& order);
  /// Does "start": options of the ranks, who else there is, where the node's memory is.
  Expected<void> start(const nlohmann::json& order);
  LocalCrew& crew() { return crew_; }
  /// The address under which rank 0's host was reached, for peers that are on it.
  void set_home(std::string address) { home_ = std::move(address); }

 private:
  void close_files();

  const Launch& launch_;
  LocalCrew crew_;
  std::string home_;
  std::optional<SharedRegion> region_;
  std::vector<Socket> doors_;
  Socket peers_;
};

}  // namespace turnpoint::probe
