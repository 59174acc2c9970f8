// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/library.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace turnpoint {

namespace {

constexpr const char* kAlgorithmNames[] = {"direct",           "ring",        "tree",     "parallel_trees",
                                           "switch_reduction", "switch_tree", "one_shot", "two_phase"};

// Kernels that communicate take processors and memory of the device from those that compute: both take 1.126 times as
// long at once, the larger of what Galvatron measured of the two beside NCCL on a node of eight GPUs (its
// profile_overlap). RCCL's kernels are built alike. The network of a TPU has processors of its own.
constexpr double kKernelsBeside = 1.126;
constexpr LibraryInfo kLibraries[] = {
    {Library::ring, "ring", "rings",
     "Rings over all devices, whatever the links; what a profile without a library has.", 1},
    {Library::nccl, "nccl", "NCCL 2.23 and later",
     "Rings; trees and, where the switch reduces, NVLS for all-reduce; PAT for gathers over nodes of one rank.",
     kKernelsBeside},
    {Library::nccl_2_18, "nccl-2.18", "NCCL 2.18 to 2.22",
     "Rings; trees and, where the switch reduces, NVLS for all-reduce.", kKernelsBeside},
    {Library::nccl_2_12, "nccl-2.12", "NCCL before 2.18", "Rings; trees for all-reduce.", kKernelsBeside},
    {Library::rccl, "rccl", "RCCL", "Rings; trees for all-reduce; direct exchange inside a node for small messages.",
     kKernelsBeside},
    {Library::torus, "torus", "rings of a torus", "Rings, along the axes of a torus one after the other.", 1}};

/// How a library moves bytes, at the price of latency: the factors are of the level's hop latency and bandwidth.
struct Protocol {
  double launch_s;                                            ///< of a ring; trees differ by a fifth of a microsecond
  double ring_inside, ring_across, tree_inside, tree_across;  ///< hops
  double posting_s;    ///< least time of a step inside a node while others cross the network
  double inside_part;  ///< of the bandwidth
  double across_part, across_most;
};

// LL, LL128 and Simple. NCCL's hops are 0.6 / 1.9 / 3.4 us over NVLink and 1 / 2.5 / 5.7 us over PCIe, nearly the same
// ratios; the latency of a level inside a node is that of Simple. Between nodes they are 2.7 / 4 / 14 us, a tree's 5 /
// 8.5 / 14, where the presets have the 5 us that a step takes in the mean of a ring over two nodes. LL moves a flag
// with every word; its bandwidth ends at 39, 88, 141 and 282 GB/s on Volta, Ampere, Hopper and Blackwell, a third of
// their links', and at 19 to 45 GB/s between nodes.
constexpr Protocol kProtocols[] = {
    {6.6e-6, 0.6 / 3.4, 2.7 / 5, 0.6 / 3.4, 5.0 / 5, 1e-6, 0.3, 0.5, 30e9},
    {14e-6, 1.9 / 3.4, 4.0 / 5, 1.25 / 3.4, 8.5 / 5, 1e-6, 0.92, 0.92, 1e18},
    {8.4e-6, 1, 14.0 / 5, 4 / 3.4, 14.0 / 5, 3e-6, 1, 1, 1e18},
};
constexpr double kNetworkHop = 14.0 / 5;  // of a message over the network, in latencies of the level
// NVLS takes 25 us where an NVLink hop takes 3.4, and 18 us a network hop of its tree. In parts of the bandwidth of a
// ring, every byte passing once, NCCL counts on 0.80 (Hopper) and 0.69 (Blackwell), and 0.74 was published of eight
// H100 (480 GB/s in the measure in which their ring reaches 370): one number, within 5 % of the latter two.
constexpr double kSwitchHops = 25 / 3.4, kSwitchTreeHops = 18.0 / 5, kSwitchPart = 0.72;
// A step of a gather or scatter inside a node takes up to kRamp longer than its hop and its block, half of it where the
// block has kHalfRamp: the link is filled and drained in every step, and that takes a time of its own however fast the
// link is. All-reduces cut their blocks into slices that follow one another and have no such ramp. Both numbers follow
// from an all-gather of eight A100s (nccl-tests, less the 23 us that its host takes for any size): it is met within 9 %
// from 2 MiB to 8 GiB, of which without them up to 43 % are missing. NVLS moves its bytes once; its ramp, half of it
// where the message has kHalfSwitchRamp, follows from an all-reduce of eight H200s. Gathers, scatters and all-reduces
// of B200s, which had no part in it, judge both (prices_bench): ramps of so many bytes, which faster links pass sooner,
// are off by 30 % there, these by 16.
constexpr double kRamp = 13e-6, kSwitchRamp = 41e-6, kHalfRamp = 1048576, kHalfSwitchRamp = 16 * 1048576;
// Trees reach 0.92 of the bandwidth.
constexpr double kTreePart = 0.92;
// What a network card's wire carries of payload, between two observations: an all-reduce of 2 GiB by trees over two
// nodes reaches 41.8 of 50 GB/s (nccl-tests, EFA), which is 0.91 beside the trees' own 0.92; EDR cards were seen at 7.5
// to 10.9 of 12.5 GB/s in training. No other measurement judges it yet.
constexpr double kCardPart = 0.85;
// A hop of a torus takes about a microsecond.
constexpr double kTorusInside = 1 / 3.4, kTorusAcross = 1.0 / 5;
// PAT: log2 of the nodes in network hops by 3.5, and 2.8 us a rank; 0.75 of the bandwidth.
constexpr double kPatLaunch = 8e-6, kPatHops = kNetworkHop / 3.5, kPatRank = 2.8e-6, kPatPart = 0.75;

bool is_nccl(Library library) {
  return library == Library::nccl || library == Library::nccl_2_18 || library == Library::nccl_2_12;
}
/// Those that choose among protocols.
bool has_protocols(Library library) { return is_nccl(library) || library == Library::rccl; }

/// Rounds of a collective that gathers or scatters once; an all-reduce does both.
double rounds(Collective kind) { return reduces(kind) ? 2 : 1; }

bool has(Library library, Algorithm algorithm, Collective kind, const DeviceGroup& group, const GroupLinks& links) {
  const bool one_node = group.nodes == 1;
  switch (algorithm) {
    case Algorithm::direct: return !in_rings(kind);
    case Algorithm::ring: return in_rings(kind);
    case Algorithm::tree: return has_protocols(library) && reduces(kind) && group.size > 2;
    case Algorithm::parallel_trees:
      return library == Library::nccl && in_rings(kind) && !reduces(kind) && !one_node && group.per_node == 1;
    case Algorithm::switch_reduction:
    case Algorithm::switch_tree: {
      const bool known = library == Library::nccl || library == Library::nccl_2_18;
      return known && links.switch_reduces && reduces(kind) && group.per_node > 2 &&
             one_node == (algorithm == Algorithm::switch_reduction);
    }
    case Algorithm::one_shot: return library == Library::rccl && in_rings(kind) && one_node;
    case Algorithm::two_phase: return library == Library::torus && in_rings(kind) && group.nodes > 1;
  }
  return false;
}

/// The slowest part of what a ring passes through.
double ring_bandwidth(const DeviceGroup& group, double inside, double across) {
  if (group.nodes == 1) return inside;
  return group.per_node > 1 ? std::min(inside, across) : across;
}

double slowest_hop(const DeviceGroup& group, double inside, double across) {
  if (group.nodes == 1) return inside;
  return group.per_node > 1 ? std::max(inside, across) : across;
}

/// What these bytes cost beside themselves, less than `most` and half of it at `half` bytes.
double ramp_s(double bytes, double most, double half) { return most * bytes / (bytes + half); }

Quote plain_ring(Library library, Collective kind, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  const bool torus = library == Library::torus;
  const double hop = slowest_hop(group, links.inside_latency * (torus ? kTorusInside : 1),
                                 links.across_latency * (torus ? kTorusAcross : 1));
  const double steps = rounds(kind) * (group.size - 1);
  return {Algorithm::ring, steps * hop,
          steps * bytes / group.size / ring_bandwidth(group, links.inside_bandwidth, links.across_bandwidth)};
}

Quote ring(const Protocol& protocol, Collective kind, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  const double steps = rounds(kind) * (group.size - 1);
  const double crossing = group.nodes == 1 ? 0 : group.per_node == 1 ? steps : rounds(kind) * (group.nodes - 1);
  const double posting = group.nodes == 1 ? 0 : protocol.posting_s * links.latency_scale;
  const double inside = std::max(protocol.ring_inside * links.inside_latency, posting);
  // With one rank to a node the network's hop is a tree's.
  const double across = group.per_node == 1 ? protocol.tree_across : protocol.ring_across;
  const double block = bytes / group.size, ramp = reduces(kind) ? 0 : ramp_s(block, kRamp, kHalfRamp);
  const double inside_s = block / (protocol.inside_part * links.inside_bandwidth) + ramp * links.latency_scale,
               across_s = block / std::min(protocol.across_part * links.across_bandwidth, protocol.across_most);
  // A step is as long as the slowest link takes for it.
  const double slowest_s = group.nodes == 1 ? inside_s : group.per_node == 1 ? across_s : std::max(inside_s, across_s);
  return {
      Algorithm::ring,
      protocol.launch_s * links.latency_scale + (steps - crossing) * inside + crossing * across * links.across_latency,
      steps * slowest_s};
}

/// Each of the two trees carries half of the bytes. Of two nodes each is the root of one and sends its half up and down
/// once; of more, one that has two children in one tree and none in the other sends up twice and down twice.
double tree_network(const DeviceGroup& group, double bytes, double bandwidth) {
  return group.nodes == 1 ? 0 : (group.nodes == 2 ? 1 : 2) * bytes / (kTreePart * bandwidth);
}

Quote tree(const Protocol& protocol, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  const double inside_hops = 2.0 * (group.per_node - 1), across_hops = 2 * std::log2(group.nodes);
  const double across =
      tree_network(group, bytes, std::min(protocol.across_part * links.across_bandwidth, protocol.across_most));
  const double inside =
      group.per_node == 1 ? 0 : 2 * bytes / (kTreePart * protocol.inside_part * links.inside_bandwidth);
  return {Algorithm::tree,
          (protocol.launch_s + 0.2e-6) * links.latency_scale +
              inside_hops * protocol.tree_inside * links.inside_latency +
              across_hops * protocol.tree_across * links.tree_latency(),
          std::max(inside, across)};
}

Quote one_of_protocols(Algorithm algorithm, Collective kind, const DeviceGroup& group, const GroupLinks& links,
                       double bytes) {
  std::optional<Quote> least;
  for (const Protocol& protocol : kProtocols) {
    const Quote quote =
        algorithm == Algorithm::tree ? tree(protocol, group, links, bytes) : ring(protocol, kind, group, links, bytes);
    if (!least || quote.time_s() < least->time_s()) least = quote;
  }
  return *least;
}

/// Inside the nodes, then over the nodes as a square torus: along its rows, then its columns. What is left to send
/// shrinks with every phase, so that all together send what one ring does.
Quote two_phase(Collective kind, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  const double hops = 2 * (std::sqrt(group.nodes) - 1);
  const double inside = (group.per_node - 1.0) / group.per_node * bytes / links.inside_bandwidth;
  // Between nodes all devices of a node send at once what is theirs: together a node's part of the whole.
  const double across = (group.nodes - 1.0) / group.nodes * bytes / links.across_bandwidth;
  return {Algorithm::two_phase,
          rounds(kind) *
              ((group.per_node - 1) * kTorusInside * links.inside_latency + hops * kTorusAcross * links.across_latency),
          rounds(kind) * ((group.per_node > 1 ? inside : 0) + across)};
}

Quote switched(Algorithm algorithm, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  const double ramp = ramp_s(bytes, kSwitchRamp, kHalfSwitchRamp) * links.latency_scale;
  const double inside = bytes / (kSwitchPart * links.inside_bandwidth) + ramp,
               hops = kSwitchHops * links.inside_latency;
  if (algorithm == Algorithm::switch_reduction) return {algorithm, hops, inside};
  return {algorithm, hops + 2 * std::log2(group.nodes) * kSwitchTreeHops * links.tree_latency(),
          std::max(inside, tree_network(group, bytes, links.across_bandwidth))};
}

Quote parallel_trees(const DeviceGroup& group, const GroupLinks& links, double bytes) {
  return {Algorithm::parallel_trees,
          (kPatLaunch + kPatRank * group.size) * links.latency_scale +
              std::log2(group.nodes) * kPatHops * links.tree_latency(),
          (group.size - 1.0) / group.size * bytes / (kPatPart * links.across_bandwidth)};
}

Quote one_shot(Collective kind, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  const double read = (group.size - 1.0) * (reduces(kind) ? bytes : bytes / group.size);
  return {Algorithm::one_shot, kProtocols[0].launch_s * links.latency_scale + links.inside_latency,
          read / links.inside_bandwidth};
}

/// In an all-to-all every member of a node sends into the network, so they share what the group has of it.
Quote direct(Library library, Collective kind, const DeviceGroup& group, const GroupLinks& links, double bytes) {
  GroupLinks shared = links;
  double sent = bytes;
  if (kind == Collective::all_to_all) {
    shared.across_bandwidth /= std::max(1, group.per_node);
    sent *= (group.size - 1.0) / group.size;
  }
  const double bandwidth = ring_bandwidth(group, shared.inside_bandwidth, shared.across_bandwidth);
  const double network = has_protocols(library) ? kNetworkHop : 1;
  return {Algorithm::direct, slowest_hop(group, links.inside_latency, network * links.across_latency),
          sent / bandwidth};
}

Quote price(Library library, Algorithm algorithm, Collective kind, const DeviceGroup& group, GroupLinks links,
            double bytes) {
  if (has_protocols(library)) links.across_bandwidth *= kCardPart;
  switch (algorithm) {
    case Algorithm::direct: return direct(library, kind, group, links, bytes);
    case Algorithm::ring:
      if (!has_protocols(library)) return plain_ring(library, kind, group, links, bytes);
      return one_of_protocols(algorithm, kind, group, links, bytes);
    case Algorithm::tree: return one_of_protocols(algorithm, kind, group, links, bytes);
    case Algorithm::parallel_trees: return parallel_trees(group, links, bytes);
    case Algorithm::switch_reduction:
    case Algorithm::switch_tree: return switched(algorithm, group, links, bytes);
    case Algorithm::one_shot: return one_shot(kind, group, links, bytes);
    case Algorithm::two_phase: return two_phase(kind, group, links, bytes);
  }
  return {};
}

}  // namespace

const char* to_string(Algorithm algorithm) { return kAlgorithmNames[static_cast<std::size_t>(algorithm)]; }

std::optional<Algorithm> parse_algorithm(std::string_view name) {
  const auto at = std::find(std::begin(kAlgorithmNames), std::end(kAlgorithmNames), name);
  if (at == std::end(kAlgorithmNames)) return std::nullopt;
  return static_cast<Algorithm>(at - std::begin(kAlgorithmNames));
}

std::span<const LibraryInfo> libraries() { return kLibraries; }

const LibraryInfo& info_of(Library library) { return kLibraries[static_cast<std::size_t>(library)]; }

std::optional<Library> parse_library(std::string_view key) {
  for (const LibraryInfo& info : kLibraries)
    if (key == info.key) return info.library;
  return std::nullopt;
}

std::optional<Quote> quote_of(Library library, Algorithm algorithm, Collective kind, const DeviceGroup& group,
                              const GroupLinks& links, double bytes) {
  if (!has(library, algorithm, kind, group, links)) return std::nullopt;
  Quote quote = price(library, algorithm, kind, group, links, bytes);
  quote.latency_s += links.launch_s;
  return quote;
}

Quote cheapest_quote(Library library, Collective kind, const DeviceGroup& group, const GroupLinks& links,
                     double bytes) {
  std::optional<Quote> least;
  for (std::size_t a = 0; a < std::size(kAlgorithmNames); ++a) {
    const auto quote = quote_of(library, static_cast<Algorithm>(a), kind, group, links, bytes);
    if (quote && (!least || quote->time_s() < least->time_s())) least = quote;
  }
  return *least;
}

}  // namespace turnpoint
