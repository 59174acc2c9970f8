// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/search_mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cassert>

#include "core/plan/on_mesh.h"

namespace turnpoint::search {

namespace {

int axes_of(const Mesh& mesh, int level) {
  return static_cast<int>(
      std::count_if(mesh.axes.begin(), mesh.axes.end(), [&](const MeshAxis& axis) { return axis.level == level; }));
}

// Merges the neighbours of `level` with the smallest product, the outermost of equals.
void merge_one(Mesh& mesh, int level) {
  std::size_t best = 0;
  int least = 0;
  for (std::size_t i = 0; i + 1 < mesh.axes.size(); ++i) {
    if (mesh.axes[i].level != level || !mesh.axes[i].same_link(mesh.axes[i + 1])) continue;
    const int product = mesh.axes[i].size * mesh.axes[i + 1].size;
    if (least == 0 || product < least) best = i, least = product;
  }
  assert(least > 0);
  mesh.axes[best].size = least;
  mesh.axes.erase(mesh.axes.begin() + static_cast<std::ptrdiff_t>(best) + 1);
}

}  // namespace

Mesh search_mesh(const Cluster& cluster, int axes) {
  Mesh mesh = make_mesh(cluster);
  if (mesh.count() <= kSearchAxes) return mesh;
  while (mesh.count() > axes) {
    const int across = axes_of(mesh, kInterNode), inside = axes_of(mesh, kIntraNode);
    merge_one(mesh, across >= inside ? kInterNode : kIntraNode);
  }
  return mesh;
}

std::string merged_axes_note(const Cluster& cluster, const Mesh& searched) {
  if (searched.count() == make_mesh(cluster).count()) return {};
  std::vector<int> across, inside;
  for (const auto& axis : searched.axes) (axis.level == kInterNode ? across : inside).push_back(axis.size);
  const auto part = [](const std::vector<int>& sizes, int all) {
    return sizes.empty() ? fmt::format("{}", all) : fmt::format("{}", fmt::join(sizes, " \u00d7 "));
  };
  return fmt::format(
      "searched as {} nodes of {} devices, neighbouring axes of the mesh taken together: exact and gap are over plans "
      "that split no finer",
      part(across, cluster.nodes), part(inside, cluster.devices_per_node));
}

Plan on_full_mesh(Plan plan, const Mesh& full) {
  if (plan.mesh.count() == full.count()) return plan;
  std::vector<int> from;
  std::int64_t covered = 1;
  for (int a = 0; const MeshAxis& axis : full.axes) {
    from.push_back(a);
    covered *= axis.size;
    if (covered == plan.mesh.axes[static_cast<std::size_t>(a)].size) ++a, covered = 1;
  }
  return on_mesh(std::move(plan), full, from);
}

}  // namespace turnpoint::search
