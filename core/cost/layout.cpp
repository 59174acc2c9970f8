// SPDX-License-Identifier: Apache-2.0
#include "core/cost/layout.h"

#include <algorithm>
#include <cassert>

namespace turnpoint {

namespace {

// y is the slowest axis, as in the pictures; the others follow inwards.
constexpr const char* kAxisNames[kMaxAxes] = {"y", "x", "z", "w", "v", "u", "t", "s",
                                              "r", "q", "p", "o", "n", "m", "l", "k"};

std::vector<int> prime_factors(int value) {
  std::vector<int> factors;
  for (int p = 2; value > 1; ++p) {
    if (p * p > value) p = value;
    for (; value % p == 0; value /= p) factors.push_back(p);
  }
  return factors;
}

// A cluster of a file beyond 2^16 devices keeps its outermost axes and gets one composite axis per merge, on one level.
void merge_down(std::vector<MeshAxis>& axes) {
  while (axes.size() > kMaxAxes) {
    std::size_t best = axes.size();
    for (std::size_t i = axes.size() - 1; i > 0; --i) {
      if (!axes[i - 1].same_link(axes[i])) continue;
      if (best == axes.size() || axes[i - 1].size * axes[i].size < axes[best - 1].size * axes[best].size) best = i;
    }
    axes[best - 1].size *= axes[best].size;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(best));
  }
}

}  // namespace

int Mesh::devices() const { return static_cast<int>(size_of((1u << count()) - 1)); }

std::int64_t Mesh::size_of(std::uint32_t axis_mask) const {
  std::int64_t product = 1;
  for (int a = 0; a < count(); ++a)
    if (axis_mask >> a & 1u) product *= axes[a].size;
  return product;
}

DeviceGroup Mesh::group(std::uint32_t axis_mask) const {
  DeviceGroup group;
  for (int a = 0; a < count(); ++a) {
    if (!(axis_mask >> a & 1u)) {
      group.concurrent *= axes[a].size;
      continue;
    }
    group.size *= axes[a].size;
    (axes[a].level == kInterNode ? group.nodes : group.per_node) *= axes[a].size;
    // Whoever lies in several pods of one level lies in at least as many of each smaller one.
    for (int l = 0; l < axes[a].pod_level; ++l) group.pods[static_cast<std::size_t>(l)] *= axes[a].size;
  }
  return group;
}

Mesh make_mesh(const Cluster& cluster) {
  Mesh mesh;
  int nodes = cluster.nodes;
  for (std::size_t l = cluster.pods.size(); l > 0; --l) {
    const int level = static_cast<int>(l), of_pod = cluster.pods[l - 1].nodes;
    for (const int size : prime_factors(nodes / of_pod)) mesh.axes.push_back({{}, size, kInterNode, level});
    nodes = of_pod;
  }
  for (const int size : prime_factors(nodes)) mesh.axes.push_back({{}, size, kInterNode});
  for (const int size : prime_factors(cluster.devices_per_node)) mesh.axes.push_back({{}, size, kIntraNode});
  merge_down(mesh.axes);
  for (int a = 0; a < mesh.count(); ++a) mesh.axes[a].name = kAxisNames[a];
  return mesh;
}

bool Layout::has_partial() const { return mask(kPartial) != 0; }

Layout Layout::without_partial() const {
  Layout result = *this;
  for (auto& value : result.axis)
    if (value == kPartial) value = kReplicated;
  return result;
}

std::uint32_t Layout::mask(std::int8_t value) const {
  std::uint32_t mask = 0;
  for (int a = 0; a < kMaxAxes; ++a)
    if (axis[a] == value) mask |= 1u << a;
  return mask;
}

std::int64_t local_elements(const Mesh& mesh, const Layout& layout, const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t extent = shape[d];
    for (int a = 0; a < mesh.count(); ++a)
      if (layout.axis[a] == static_cast<int>(d)) extent /= mesh.axes[a].size;
    elements *= extent;
  }
  return elements;
}

std::optional<int> outermost_walker(const Operator& op, const std::vector<std::uint8_t>& walks) {
  for (const std::uint8_t l : walks)
    if (op.dims[l].size > 1) return l;
  return std::nullopt;
}

namespace {

// The tensor dimension that loop dimension l splits, or -1 where the tensor does not walk it.
int split_dimension(const Operator& op, const Access& access, int l) {
  for (std::size_t d = 0; d < access.walks.size(); ++d) {
    if (outermost_walker(op, access.walks[d]) == l) return static_cast<int>(d);
    assert(op.dims[l].size == 1 ||
           std::find(access.walks[d].begin(), access.walks[d].end(), l) == access.walks[d].end());
  }
  return -1;
}

// Whether every rank finds this input's whole gradient in the output's, whatever loop is summed over: it is no factor
// of the sum but added to it, once (a bias).
bool added_to_sum(const Operator& op, const Access& access) {
  return (op.kind == OperatorKind::matmul || op.kind == OperatorKind::convolution) && !access.saved;
}

Layout implied_layout(const Operator& op, const Access& access, const Configuration& configuration, int axes,
                      bool partial_for_reductions, bool partial_for_all) {
  Layout layout;
  for (int a = 0; a < axes; ++a) {
    const int l = configuration.axis[a];
    if (l == Configuration::kRepeat) continue;
    const int d = split_dimension(op, access, l);
    if (d >= 0) {
      layout.axis[a] = static_cast<std::int8_t>(d);
    } else if (partial_for_all || (partial_for_reductions && op.dims[l].role == DimRole::reduction)) {
      layout.axis[a] = Layout::kPartial;
    }
  }
  return layout;
}

}  // namespace

Layout forward_layout(const Operator& op, const Access& access, bool is_output, const Configuration& configuration,
                      int axes) {
  return implied_layout(op, access, configuration, axes, is_output, false);
}

Layout gradient_layout(const Operator& op, const Access& access, bool is_output, const Configuration& configuration,
                       int axes) {
  Layout layout = implied_layout(op, access, configuration, axes, false, !is_output);
  if (is_output || !added_to_sum(op, access)) return layout;
  for (int a = 0; a < axes; ++a)
    if (layout.axis[a] == Layout::kPartial && op.dims[configuration.axis[a]].role == DimRole::reduction)
      layout.axis[a] = Layout::kReplicated;
  return layout;
}

}  // namespace turnpoint
