// SPDX-License-Identifier: Apache-2.0
// Which mesh axes a hand-made split of a transformer uses for what, and the configuration that follows for each
// operator: tensor groups innermost, data parallelism around them, the pipeline outermost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cost/transformer_roles.h"

namespace turnpoint::search {

/// Bit masks of mesh axes.
struct ParallelAxes {
  std::uint32_t data = 0, tensor = 0;
};

/// Axes of a mesh for tensor groups of `tensor` devices, the others for data parallelism. A group lies inside a node,
/// or is made of whole nodes; nullopt where the mesh has no such groups.
std::optional<ParallelAxes> assign_axes(const Mesh& mesh, int tensor);

/// The configuration of an operator: batch over the data axes (as many as divide it), the dimension of its role over
/// the tensor axes; operators without one repeat their work on those, or with `sequence_parallel` split the sequence
/// (Korthikanti et al. 2022, arXiv 2205.05198), as the loss always does: its rows are needed whole here, where Megatron
/// splits them over the vocabulary. Data is loaded as by every other method. `roles` may be null where `tensor` is 0.
Configuration split_configuration(const Model& model, OperatorId id, const Mesh& mesh, const ParallelAxes& axes,
                                  const TransformerRoles* roles, bool sequence_parallel);

}  // namespace turnpoint::search
