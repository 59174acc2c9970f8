// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/dimension_axes.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/export/jax/python.h"

namespace turnpoint::jax {

namespace {

std::int64_t ways(const Mesh& mesh, const std::vector<int>& axes) {
  std::int64_t count = 1;
  for (const int a : axes) count *= mesh.axes[static_cast<std::size_t>(a)].size;
  return count;
}

}  // namespace

DimensionAxes dimension_axes(const Layout& layout, std::size_t dimensions) {
  DimensionAxes axes;
  for (std::size_t d = 0; d < dimensions; ++d) axes.push_back(axes_of(layout.mask(static_cast<std::int8_t>(d))));
  return axes;
}

std::string partition_spec(const Mesh& mesh, const DimensionAxes& axes) {
  std::vector<std::string> entries;
  for (const auto& dimension : axes)
    entries.push_back(dimension.empty()       ? "None"
                      : dimension.size() == 1 ? literal(mesh.axes[static_cast<std::size_t>(dimension.front())].name)
                                              : axis_tuple(mesh, dimension));
  return fmt::format("P({})", joined(entries));
}

std::int64_t elements_on_one(const Mesh& mesh, const DimensionAxes& axes, const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) elements *= shape[d] / ways(mesh, axes[d]);
  return elements;
}

std::optional<DimensionAxes> cut_further(const Mesh& mesh, DimensionAxes axes, const std::vector<std::int64_t>& shape,
                                         std::uint32_t cut, const std::vector<bool>& preferred) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < shape.size(); ++d) order.push_back(d);
  const auto rank = [&](std::size_t d) { return std::pair(!preferred[d], !axes[d].empty()); };
  std::ranges::stable_sort(order, [&](std::size_t one, std::size_t other) { return rank(one) < rank(other); });
  const auto divides = [&](std::size_t d, std::int64_t by) { return shape[d] % (ways(mesh, axes[d]) * by) == 0; };
  const std::vector<int> added = axes_of(cut);
  for (const std::size_t d : order)
    if (divides(d, ways(mesh, added))) {
      axes[d].insert(axes[d].end(), added.begin(), added.end());
      return axes;
    }
  for (const int a : added) {
    const auto fits = std::ranges::find_if(order, [&](std::size_t d) { return divides(d, ways(mesh, {a})); });
    if (fits == order.end()) return std::nullopt;
    axes[*fits].push_back(a);
  }
  return axes;
}

}  // namespace turnpoint::jax
