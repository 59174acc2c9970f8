// SPDX-License-Identifier: Apache-2.0
// How an array lies on the mesh as JAX says it: per dimension the axes that split it, in their order. Unlike a Layout,
// that order may be any: the pieces of a weight's update lie within the part that a device reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/layout.h"

namespace turnpoint::jax {

using DimensionAxes = std::vector<std::vector<int>>;  ///< [dimension]: axes of the mesh, the outermost first

DimensionAxes dimension_axes(const Layout& layout, std::size_t dimensions);
/// "P(("y", "x"), None)".
std::string partition_spec(const Mesh& mesh, const DimensionAxes& axes);
/// Elements on one device.
std::int64_t elements_on_one(const Mesh& mesh, const DimensionAxes& axes, const std::vector<std::int64_t>& shape);

/// The axes of the mask as further splits of an array that lies so: all on one dimension if one can be divided, a
/// preferred one first and then one that nothing splits, else each axis where it fits. nullopt: no PartitionSpec says
/// that.
std::optional<DimensionAxes> cut_further(const Mesh& mesh, DimensionAxes axes, const std::vector<std::int64_t>& shape,
                                         std::uint32_t cut, const std::vector<bool>& preferred);

}  // namespace turnpoint::jax
