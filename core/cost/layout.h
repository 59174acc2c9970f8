// SPDX-License-Identifier: Apache-2.0
// The device mesh, how one tensor lies on it (layout), and which axes split which loop dimensions (configuration).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/hardware/cluster.h"
#include "core/model/model.h"

namespace turnpoint {

/// Most mesh axes we handle: those of 2^16 devices, the most that a scenario may have.
inline constexpr int kMaxAxes = 16;

struct MeshAxis {
  std::string name;  ///< "y", "x", "z", ... as shown to people, unique
  int size = 2;      ///< a prime
  int level = kIntraNode;
  int pod_level = 0;  ///< between nodes: 0 inside a pod, l between pods of Cluster::pods[l - 1]
  bool same_link(const MeshAxis& other) const { return level == other.level && pod_level == other.pod_level; }
};

/// The cluster's devices as a grid, one axis per prime factor of the number of pods, of the nodes of a pod, then of the
/// devices per node, outermost first (2 x 8: node 2, then 2 2 2). Axis 0 is the outermost. Beyond kMaxAxes factors the
/// smallest neighbours of one level are merged into one axis, so that any cluster has a mesh.
struct Mesh {
  std::vector<MeshAxis> axes;
  int count() const { return static_cast<int>(axes.size()); }
  int devices() const;
  /// The group of devices that differ only in the axes of `axis_mask`, with the number of such groups.
  DeviceGroup group(std::uint32_t axis_mask) const;
  std::int64_t size_of(std::uint32_t axis_mask) const;  ///< product of sizes
};
Mesh make_mesh(const Cluster& cluster);

/// How one tensor lies on the mesh: per axis, the tensor dimension it splits, kReplicated, or kPartial. Several axes on
/// one dimension split it in mesh order, the outermost axis into the largest pieces.
struct Layout {
  static constexpr std::int8_t kReplicated = -1;
  static constexpr std::int8_t kPartial = -2;
  std::array<std::int8_t, kMaxAxes> axis{};  ///< entries beyond the mesh's count are kReplicated
  Layout() { axis.fill(kReplicated); }
  friend auto operator<=>(const Layout&, const Layout&) = default;

  bool has_partial() const;
  Layout without_partial() const;               ///< partial axes become replicated
  std::uint32_t mask(std::int8_t value) const;  ///< axes with this value
};
/// Elements of one device's part.
std::int64_t local_elements(const Mesh& mesh, const Layout& layout, const std::vector<std::int64_t>& shape);
/// "(batch yx, partial z)"; "replicated" if nothing is split.
std::string describe(const Mesh& mesh, const Layout& layout, const std::vector<DimName>& dims);

/// Which axes split which loop dimensions of one operator: per axis a loop dimension index or kRepeat.
struct Configuration {
  static constexpr std::int8_t kRepeat = -1;
  std::array<std::int8_t, kMaxAxes> axis{};
  Configuration() { axis.fill(kRepeat); }
  friend auto operator<=>(const Configuration&, const Configuration&) = default;
};
/// "batch yx · out-channel z"; "repeated" if nothing is split.
std::string describe(const Mesh& mesh, const Configuration& configuration, const Operator& op);

/// The loop dimension that a split of this tensor dimension belongs to: the first walker of more than one element;
/// splits of the dimensions after it would be strided. nullopt: nothing that could be split walks it.
std::optional<int> outermost_walker(const Operator& op, const std::vector<std::uint8_t>& walks);

/// Whether a loop dimension may be split at all: splittable, of more than one element, no window unless those may be
/// split, and the outermost walker of every tensor dimension that it shares with others.
bool can_split(const Operator& op, int loop, bool split_windows);

/// The layouts that a configuration implies for one access.
///   forward:  the layout the operator reads (input) or leaves (output, with partial axes for split reductions);
///   gradient: for an input, the layout in which backward leaves its gradient: partial on axes that split a loop
///             dimension the tensor does not walk, except where that loop is summed over and the tensor is added to the
///             sum (a bias: every rank has its whole gradient); for an output, the layout in which backward wants the
///             gradient (forward without partial).
Layout forward_layout(const Operator& op, const Access& access, bool is_output, const Configuration& configuration,
                      int axes);
Layout gradient_layout(const Operator& op, const Access& access, bool is_output, const Configuration& configuration,
                       int axes);

/// All legal configurations of an operator in canonical axis order (resources/manual/costs.md, 1 and 2), repeat
/// included: every split dimension divisible by the product of its splits, splittable and the outermost walker of each
/// merged tensor dimension, and at most two dimensions of one tensor split per level. Axes of one level and size are
/// interchangeable, so they are handed out in one order: batch-like dimensions take the outermost axes, repeats the
/// middle, channel-like ones the innermost; where several channel-like dimensions are split both orders are kept.
/// Deterministic order; the first is the most batch-parallel.
std::vector<Configuration> enumerate_configurations(const Model& model, const Operator& op, const Mesh& mesh,
                                                    bool split_windows);

/// The last two of those rules: whole quotients, and at most two dimensions of one tensor split per level.
bool divides_evenly(const Operator& op, const Mesh& mesh, const Configuration& configuration);
bool splits_at_most_two_dims_per_level(const Operator& op, const Mesh& mesh, const Configuration& configuration);

/// The data-parallel configuration: as many axes as divide it on the operator's batch dimension, the others repeat.
Configuration data_parallel_configuration(const Operator& op, const Mesh& mesh);

}  // namespace turnpoint
