// SPDX-License-Identifier: Apache-2.0
// Mesh-TensorFlow (Shazeer et al. 2018, arXiv 1811.02084) as the TensorOpt study simulates it
// (resources/manual/mathematics.md, 1.7): one mesh for all operators, and a logical dimension that is split over a mesh
// dimension is split over it everywhere it occurs.
//
//  - A mesh is a grouping of the cluster's axes, outermost first, into one, two or (up to four axes) three
//    dimensions.
//  - Logical dimensions are found (logical_dims.h); equal layers name theirs alike, as a program with a loop does.
//  Where
//    that still leaves so many that their layouts could not all be tried, dimensions that never meet in an operator get
//    one name, those of one kind first.
//  - A layout gives every logical dimension a mesh dimension or none. Legal: no operator has two dimensions on one mesh
//    dimension, and everything divides.
//  - An operator that needs a dimension whole (the norm, softmax or loss over it, a recurrent layer's input) reads it
//    gathered, under another name as it were; Mesh-TensorFlow sums statistics there instead, which we cannot price.
// All layouts of all meshes are costed; the Pareto-optimal ones are its frontier. No operator recomputes or shards its
// update. Data is loaded as by every other method.
#pragma once

#include "core/search/method/method.h"

namespace turnpoint::search {

Method mesh_tensorflow_method();

}  // namespace turnpoint::search
