// SPDX-License-Identifier: Apache-2.0
// What a measured host is made of: its GPUs and what joins every pair of them, or its CPU cores. Filled with what the
// driver and the system tell; whatever they do not tell stays empty, with a note that says why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/json_fields.h"

namespace turnpoint {

struct HostGpu {
  std::string name, pci;       ///< "NVIDIA H200", "0000:1b:00.0"
  int nvlinks = 0;             ///< active ones, whatever they end at
  int switch_links = 0;        ///< those of them that end in an NVSwitch
  std::string nvlink_version;  ///< "4.0"; empty: none, or not told
  double nvlink_rate = 0;      ///< bytes/s of one link in one direction; 0: not told
  std::string numa_nodes;      ///< nearest memory: "0", "0-1"; empty: not told
  std::string cores;           ///< nearest CPU cores: "0-15,32-47"
  friend bool operator==(const HostGpu&, const HostGpu&) = default;
};

/// Two GPUs of one host.
struct GpuPair {
  int first = 0, second = 1;   ///< as the host counts them, first < second
  int nvlinks = 0;             ///< active ones straight from one to the other
  std::string nvlink_version;  ///< of these
  int switch_links = 0;        ///< where both have links to NVSwitches: those of the one with fewer
  /// The nearest thing above both on the way over PCIe, as `nvidia-smi topo -m` names it: PSB, PIX, PXB, PHB, NODE,
  /// SYS; empty: not told.
  std::string pcie;
  std::string read, write;  ///< peer-to-peer access: "ok", or why there is none; empty: not told
  friend bool operator==(const GpuPair&, const GpuPair&) = default;
};

struct NumaNode {
  std::string cores, distances;  ///< "0-15", "10 21"
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

struct HostTopology {
  std::vector<HostGpu> gpus;
  std::vector<GpuPair> pairs;
  int sockets = 0, cores = 0;  ///< of CPU ranks, cores that they may use; 0: not told
  std::vector<NumaNode> numa_nodes;
  std::vector<std::string> notes;  ///< what is not known, and why

  bool empty() const { return gpus.empty() && cores == 0 && numa_nodes.empty(); }
  friend bool operator==(const HostTopology&, const HostTopology&) = default;
};

/// How GPU `row` reaches GPU `column`: "X" itself, "NV4" over 4 NVLinks, "NVS" through NVSwitches, else over PCIe; "?"
/// where nothing is told.
std::string topology_cell(const HostTopology& topology, int row, int column);
/// What such a cell means; empty for one that nobody knows.
std::string cell_meaning(const std::string& cell);
/// Of a pair: everything that is known of it, in words.
std::string pair_text(const HostTopology& topology, int row, int column);
/// "4 NVLinks 3.1, 25.8 GB/s each way"; "none"
std::string nvlinks_text(const HostGpu& gpu);
/// Peer-to-peer access between all pairs in a sentence; empty: nothing is told.
std::string peer_text(const HostTopology& topology);
/// "2 sockets, 64 cores, 2 NUMA nodes: 0-31, 32-63"; empty: nothing is told.
std::string cores_text(const HostTopology& topology);
/// The matrix of all GPUs with a legend of what stands in it, notes behind; lines for a terminal.
std::string topology_text(const HostTopology& topology);

/// The keys of `topology` in the probe's hello and in hardware-profile@1. Others are ignored.
HostTopology read_topology(JsonFields fields);
nlohmann::json topology_json(const HostTopology& topology);

}  // namespace turnpoint
