// SPDX-License-Identifier: Apache-2.0
// Meshes and layouts in Mesh-TensorFlow's sense: which groupings of the axes there are, which logical dimensions can be
// split, and which of them cannot share a mesh dimension.
#pragma once

#include <vector>

#include "core/cost/logical_dims.h"

namespace turnpoint::search {

/// Axis masks of the dimensions of one mesh, outermost first.
using MeshDims = std::vector<std::uint32_t>;

struct NamedDims {
  LogicalDims dims;
  std::vector<int> name_of;  ///< [class]: its name, -1: never split
  int names = 0;
  std::vector<std::vector<char>> conflicts;  ///< [name][name]: both occur in one operator
};

/// All groupings into one to `most` dimensions of neighbouring axes.
std::vector<MeshDims> enumerate_meshes(const Mesh& mesh, int most);

/// Names for the model's logical dimensions such that all layouts of all meshes are no more than `most_layouts`.
NamedDims name_dims(const Model& model, bool split_windows, const std::vector<MeshDims>& meshes, double most_layouts);

}  // namespace turnpoint::search
