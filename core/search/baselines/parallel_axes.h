// SPDX-License-Identifier: Apache-2.0
// Which mesh axes a hand-made split of a transformer uses for what, and the configuration that follows for each
// operator: tensor groups innermost, context groups around them, then data parallelism, the pipeline outermost.
//
// Context parallelism (Megatron-LM's and torchtitan's; Llama 3, arXiv 2407.21783, section 3.3.2) splits the sequence of
// every operator; of the tokens that are loaded a device takes its part. Each device has its part of the queries and
// all keys and values, gathered over the group; the gradients of these are summed and scattered. Weights lie on all
// devices of a group, and the sums of their gradients are over data and context groups together.
//
// Expert parallelism (GShard, arXiv 2006.16668) splits the experts among devices that elsewhere share the batch: the
// innermost of these, as engines have it, context groups first. Tokens travel by all-to-all between data-parallel
// devices. Which token an expert takes is known only where the sample's tokens all are. So a context group gathers the
// tokens, hands them to a part of the experts, and sums and scatters what these make, as Megatron-LM's all-gather
// dispatcher does, to the experts of the group or to those of all expert-parallel devices; or, where the batch has
// enough samples, each of its devices takes some of them whole. Where several devices of a context group have the same
// experts (fewer devices share the experts than a sequence), each of them has a part of the slots of a sample that an
// expert fills, or samples of its own. The fastest way is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/transformer_roles.h"
#include "core/search/baselines/expert_loops.h"

namespace turnpoint::search {

/// Devices of a group of each kind; data parallelism has what is left of the devices.
struct GroupSizes {
  int tensor = 1, context = 1;
  /// Devices that share the experts: those of a context group, and of the data-parallel ones as many as make up the
  /// number, a multiple of `context`; or some of a context group, a divisor of it; 1: nobody shares them.
  int expert = 1;
};

/// Bit masks of mesh axes.
struct ParallelAxes {
  std::uint32_t data = 0, context = 0, tensor = 0;
  std::uint32_t expert = 0;  ///< all of `context` and some of `data`, or some of `context`, or none
  /// Along which the weights of all but experts are alike.
  std::uint32_t alike() const { return data | context; }
};

/// Axes of a mesh for groups of these sizes, the others for data parallelism. A group lies inside a node, or is made of
/// whole nodes, context groups around tensor groups; nullopt where the mesh has no such groups, or experts of one
/// sequence would lie across two of them.
std::optional<ParallelAxes> assign_axes(const Mesh& mesh, const GroupSizes& sizes);
/// Of the axes along which weights are alike those among whose devices each copy of a sharded state lies (hybrid
/// sharding): the innermost that make up `shard` devices, those of a node first, as engines lay such groups; 0: all.
/// nullopt where the mesh has no such groups.
std::optional<std::uint32_t> sharing_axes(const Mesh& mesh, const ParallelAxes& axes, int shard);

/// How every operator of one model is split.
struct SplitRules {
  ParallelAxes axes;
  const TransformerRoles* roles = nullptr;  ///< may be null where there is only data parallelism
  bool sequence_parallel = false;
  ExpertLoops experts;  ///< needed where axes.expert is, and of mixtures where axes.context is
};

/// The configurations that an operator may take, mostly one: batch over the data axes (as many as divide it), the
/// sequence over the context axes, the dimension of its role over the tensor axes; operators without one repeat their
/// work on those, or with `sequence_parallel` split the sequence (Korthikanti et al. 2022, arXiv 2205.05198), as the
/// loss always does: its rows are needed whole here, where Megatron splits them over the vocabulary. Data is loaded as
/// by every other method. Several where tokens come to experts or back and sequences are split; none where experts
/// cannot be (expert_context_refusal()).
std::vector<Configuration> split_configurations(const Model& model, OperatorId id, const Mesh& mesh,
                                                const SplitRules& rules);

/// Why operators with experts have no configuration on a mesh; empty: all have, or the model is no mixture.
std::string expert_context_refusal(const Model& model, const Mesh& mesh, const SplitRules& rules);

/// Why the sequences of a model cannot be split over so many devices; empty: they can. Experts are left out.
std::string context_refusal(const Model& model, const ExpertLoops& experts, int context);

}  // namespace turnpoint::search
