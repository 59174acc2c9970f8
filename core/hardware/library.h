// SPDX-License-Identifier: Apache-2.0
// What a communication library charges for a collective: the least of the algorithms that it has, each by its formula
// (resources/manual/costs.md, 4). The shape of the formulas and the constants of NCCL are those by which NCCL itself
// chooses (src/graph/tuning.cc of 2.28): a latency and a bandwidth for every algorithm and protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/hardware/cluster.h"

namespace turnpoint {

enum class Algorithm : std::uint8_t {
  direct,            ///< one message to each: sends, broadcasts, all-to-all
  ring,              ///< g - 1 steps from neighbour to neighbour
  tree,              ///< up and down a double tree of nodes, a chain inside each
  parallel_trees,    ///< NCCL's PAT: gathers and scatters over nodes of one rank each
  switch_reduction,  ///< NCCL's NVLS: the switch of a node adds up
  switch_tree,       ///< that inside the nodes, a double tree between them
  one_shot,          ///< everybody reads from all others at once, inside a node
  two_phase          ///< inside the nodes, then along the rows and columns of the torus that joins them
};
const char* to_string(Algorithm algorithm);  ///< "switch_tree", the spelling of the files
std::optional<Algorithm> parse_algorithm(std::string_view name);

struct LibraryInfo {
  Library library;
  const char* key;          ///< of the hardware profile's field `library`
  const char* title;        ///< for people: "NCCL 2.23 and later"
  const char* about;        ///< which algorithms it has, a sentence
  double overlap_slowdown;  ///< Cluster's, where a profile has none
};
std::span<const LibraryInfo> libraries();
const LibraryInfo& info_of(Library library);
std::optional<Library> parse_library(std::string_view key);

inline bool reduces(Collective kind) { return kind == Collective::all_reduce; }
/// Gathers, scatters, and both one after the other.
inline bool in_rings(Collective kind) {
  return reduces(kind) || kind == Collective::all_gather || kind == Collective::reduce_scatter;
}

/// The links that one group of a collective has for itself.
struct GroupLinks {
  double inside_bandwidth = 0, across_bandwidth = 0;  ///< bytes/s of one device; of one flow out of a node
  double inside_latency = 0, across_latency = 0;      ///< s, one hop; across: the mean of a ring's
  bool switch_reduces = false;                        ///< the switch inside a node adds up
  double latency_scale = 1;                           ///< of what the library itself takes; the hops are scaled already
  double launch_s = 0;                                ///< beyond what the library takes
  std::optional<double> tree_across_latency = {};     ///< the mean of a tree's hops across; nullopt: as a ring's
  double tree_latency() const { return tree_across_latency.value_or(across_latency); }
};

/// A price in two parts, so that factors and curves can act on either.
struct Quote {
  Algorithm algorithm = Algorithm::direct;
  double latency_s = 0, transfer_s = 0;
  double time_s() const { return latency_s + transfer_s; }
};

/// `bytes` as CollectiveModel::time() takes them; `group` has two devices or more.
Quote cheapest_quote(Library library, Collective kind, const DeviceGroup& group, const GroupLinks& links, double bytes);
/// The same of one algorithm; nullopt where the library has none such for this collective and group.
std::optional<Quote> quote_of(Library library, Algorithm algorithm, Collective kind, const DeviceGroup& group,
                              const GroupLinks& links, double bytes);

}  // namespace turnpoint
