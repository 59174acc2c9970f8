// SPDX-License-Identifier: Apache-2.0
// A cluster as the cost model sees it: nodes of equal devices, link levels, and what was measured of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/quantities.h"
#include "core/hardware/curve.h"
#include "core/hardware/host_topology.h"

namespace turnpoint {

/// fp8: as bf16, but that products with a weight multiply 8-bit numbers (resources/manual/costs.md, 3).
enum class Precision : std::uint8_t { fp32, bf16, fp8 };
enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send };
const char* to_string(Precision precision);
std::optional<Precision> parse_precision(std::string_view name);
const char* to_string(Collective kind);  ///< "all_reduce", the spelling of the files
std::optional<Collective> parse_collective(std::string_view name);

struct DeviceType {
  std::string name;  ///< "V100-SXM2-16GB"
  std::int64_t memory_bytes = 0;
  double peak_fp32 = 0, peak_bf16 = 0;  ///< FLOP/s, dense; bf16 stands for the device's 16-bit matrix format
  double peak_fp8 = 0;                  ///< FLOP/s, dense; 0: the device has no 8-bit products
  double memory_bandwidth = 0;          ///< bytes/s
  double flop_efficiency = 0.8;         ///< e_f of matrix products and convolutions
  double flop_efficiency_16bit = 0;     ///< the same in the 16-bit format where it differs; 0: it does not
  /// Of 16-bit products whose rows are an odd number of elements, or an even one that is no multiple of 8: e_f where it
  /// is less; 0: as any other.
  double flop_efficiency_odd = 0, flop_efficiency_even = 0;
  double memory_efficiency = 0.85;  ///< e_m
  double launch_s = 5e-6;           ///< per operator and phase
  double product_launch_s = 0;      ///< of products, which fill and drain the device; 0: launch_s
  /// What context, communication library and allocator take of the memory, bytes (resources/manual/costs.md, 9).
  std::int64_t reserve_bytes = 0;
  /// Of the caches that hold what a training step comes back to, as measured; 0: unknown, and measured times are those
  /// of numbers outside them.
  std::int64_t cache_bytes = 0;
  double cache_bandwidth = 0;  ///< bytes/s out of them; with cache_bytes
  std::optional<double> price_per_hour;

  /// Of products of activations; those with a weight have peak_fp8 where they multiply 8-bit numbers.
  double peak(Precision precision) const { return precision == Precision::fp32 ? peak_fp32 : peak_bf16; }
  double efficiency(Precision precision) const {
    return precision != Precision::fp32 && flop_efficiency_16bit > 0 ? flop_efficiency_16bit : flop_efficiency;
  }
  double product_launch() const { return product_launch_s > 0 ? product_launch_s : launch_s; }
};

/// Where a number comes from: timed on the machine; a formula whose constants were fitted to such times; a formula with
/// data-sheet constants.
enum class Origin : std::uint8_t { measured, calibrated, modelled };
const char* to_string(Origin origin);
std::optional<Origin> parse_origin(std::string_view name);

/// One level of links. Level 0 connects nodes, level 1 the devices inside a node.
struct LinkLevel {
  std::string name;                  ///< "NVLink", "InfiniBand EDR"
  double bandwidth = 0;              ///< bytes/s: per device inside a node; per *node* between nodes
  double latency_s = 0;              ///< of one hop
  Origin origin = Origin::modelled;  ///< calibrated where bandwidth or latency were fitted to measurements
  bool switch_reduces = false;       ///< inside a node: its switch adds up (NVLink from the fourth generation on)
  double launch_s = 0;               ///< of a collective, beyond what its library says
};
inline constexpr int kInterNode = 0;
inline constexpr int kIntraNode = 1;

/// A level of the network above level 0, which then connects the nodes of one pod only: this one connects pods.
struct PodLevel {
  int nodes = 1;   ///< of a pod, a multiple of those of the level below
  LinkLevel link;  ///< bandwidth: what each node has of it
};
inline constexpr std::size_t kMaxPodLevels = 4;  ///< racks, rows, halls, sites

/// What a collective runs on: `concurrent` equal groups at once, each of `size` devices, `per_node` of them in each of
/// `nodes` nodes, which lie in so many `pods` of each pod level.
struct DeviceGroup {
  int size = 1, nodes = 1, per_node = 1, concurrent = 1;
  std::array<int, kMaxPodLevels> pods{1, 1, 1, 1};
  friend auto operator<=>(const DeviceGroup&, const DeviceGroup&) = default;
};

/// A measured time. `bytes` is the full logical tensor of one group (all-gather: after gathering; reduce-scatter:
/// before scattering; all-to-all: the local blocks of all members together).
struct CollectiveSample {
  Collective kind = Collective::all_reduce;
  DeviceGroup group;
  double bytes = 0, time_s = 0;
  double q1_s = 0, q3_s = 0;  ///< quartiles of repeated measurements; 0: not known
};

struct OperatorSample {
  std::string kind;
  std::vector<std::int64_t> dims;
  Precision precision = Precision::fp32;
  std::string phase;  ///< forward | backward
  double time_s = 0;
  double warm_s = 0;  ///< with its numbers in the caches; 0: as time_s
};

/// Fitted to measured times of one kind of operator: launch_s + FLOP * s_per_flop + bytes * s_per_byte, which takes the
/// place of the formula with data-sheet constants (core/cost/calibration.h).
struct OperatorFit {
  std::string kind;   ///< an operator kind, or a kind and a variety of it: "matmul", "convolution 3x3"
  std::string phase;  ///< forward | backward
  Precision precision = Precision::fp32;
  double launch_s = 0, s_per_flop = 0, s_per_byte = 0;
  int samples = 0;  ///< measured times that had a part in it
};

/// The one of the same kind, phase and precision; null where there is none.
const OperatorFit* fit_like(const std::vector<OperatorFit>& fits, const OperatorFit& fit);

/// What carries out collectives; what it charges is in core/hardware/library.h.
enum class Library : std::uint8_t { ring, nccl, nccl_2_18, nccl_2_12, rccl, torus };

/// Nodes of one kind inside a mixed cluster.
struct NodeGroup {
  int nodes = 1;
  DeviceType device;
  int devices_per_node = 1;
  std::array<LinkLevel, 2>
      links;  ///< [kInterNode]: of their own network cards; a level that they lack has no bandwidth
};

inline constexpr double kMostOverlapSlowdown = 10;  ///< more is a mistake of the file that says so

/// Immutable once built.
struct Cluster {
  std::string name;   ///< "v100-16gb-2x8"
  std::string title;  ///< "2 x 8 V100-16GB"
  /// Where nodes have unlike numbers of devices, nodes of the largest size that divides all of them.
  int nodes = 1, devices_per_node = 1;
  /// What methods for equal devices cost with. In a mixed cluster no real device but the weakest of all in every
  /// respect, so that the predicted time and memory hold on every device.
  DeviceType device;
  std::vector<NodeGroup> groups;   ///< two or more in a mixed cluster, their nodes in this order; else empty
  std::array<LinkLevel, 2> links;  ///< [kInterNode], [kIntraNode]
  std::vector<PodLevel> pods;  ///< from the smallest up, each several to the cluster; empty: one network for all nodes
  Library library = Library::ring;
  double host_link_bandwidth = 0;  ///< bytes/s, device to host; 0: unknown
  /// How many times as long computing and communicating take while a device does both (resources/manual/clocks.md).
  double overlap_slowdown = 1;
  std::vector<CollectiveSample> collectives;
  std::vector<OperatorSample> operators;
  std::vector<OperatorFit> fits;
  std::vector<OperatorFit> warm_fits;  ///< of the same kinds, where the numbers lie in the caches; of others as `fits`
  Interpolation interpolation = Interpolation::time;
  HostTopology topology;  ///< of the host that was measured; costs do not depend on it; empty: nothing is told
  std::vector<std::string>
      notes;  ///< what a reader of results must know: conservative costing, assumptions of importers

  bool mixed() const { return groups.size() > 1; }
  int devices() const { return nodes * devices_per_node; }
};
using ClusterPtr = std::shared_ptr<const Cluster>;

/// Drops all measured and fitted times of operators, such as those of another device.
void forget_operator_times(Cluster& cluster);

/// A node as it is, beside what methods for equal devices take it for.
struct RealNode {
  int first_device = 0, devices = 1;
  const DeviceType* device = nullptr;
  const std::array<LinkLevel, 2>* links = nullptr;
};
/// In the order of their devices; valid as long as the cluster lives.
std::vector<RealNode> real_nodes(const Cluster& cluster);
/// The type of one of its devices, counted from 0.
const DeviceType& device_of(const Cluster& cluster, std::uint32_t device);

/// Factors of the what-if sliders; they scale whole curves (measured ones too).
struct WhatIf {
  double intra_bandwidth = 1, inter_bandwidth = 1, latency = 1, device_memory = 1, device_speed = 1;
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// The cluster with so many nodes, whole or not by its pods: pod levels that hold them all go, others become pods of
/// the largest size that divides both, which is conservative.
void set_nodes(Cluster& cluster, int nodes);
/// In how many pods of each level so many neighbouring nodes lie at least.
std::array<int, kMaxPodLevels> pods_of(const Cluster& cluster, int nodes);

/// Presets, "v100-16gb-2x8" = 2 nodes x 8 devices, "h100-80gb-4x32x8@0.5" = 4 pods of 32 such nodes, where half of a
/// node's network leads out of its pod. Any node count and device count is accepted for a known device
/// ("h100-80gb-4x8"); `preset_names` lists the ones shown to people.
Expected<ClusterPtr> cluster_preset(const std::string& name);
/// "v100-16gb-2x8" as another shape of the same device: "v100-16gb-64x8"; nullopt: no preset of one kind of device.
std::optional<std::string> preset_of_shape(const std::string& name, int nodes, int devices_per_node);
struct PresetInfo {
  std::string name, title, note;
};
const std::vector<PresetInfo>& preset_names();
/// "a100-40gb" for the names that drivers and logs use ("NVIDIA A100-SXM4-40GB"); empty where no preset is meant.
std::string preset_key_of(std::string_view device_name);

/// Joins clusters into one whose nodes differ ("tpu-v2-64x2+tpu-v3-64x2", "v100-16gb-1x8+a100-40gb-1x4"): links are the
/// slowest of all at each level, `device` the weakest in every respect, and a note says so. Usage error: too many
/// parts, nodes or devices, parts without a link between nodes.
Expected<ClusterPtr> join_clusters(const std::vector<ClusterPtr>& parts);
/// The weakest of several devices in every respect; priced at their mean, if all have prices.
DeviceType weakest_device(const std::vector<NodeGroup>& groups);

/// turnpoint/hardware-profile@1.
Expected<ClusterPtr> read_hardware_profile(const std::string& path);
Expected<ClusterPtr> parse_hardware_profile(std::string_view text, const std::string& where);
std::string write_hardware_profile(const Cluster& cluster);
/// A path, a preset name, "local", or several of these joined by '+'.
Expected<ClusterPtr> open_hardware(const std::string& specification);

/// The first `devices` devices: up to the devices per node, that many of node 0; above, whole nodes
/// (resources/manual/costs.md, 9), nodes being added beyond the preset's. A mixed cluster takes all. Usage error where
/// it is not a multiple.
Expected<ClusterPtr> with_devices(const ClusterPtr& cluster, int devices);

}  // namespace turnpoint
