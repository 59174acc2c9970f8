// SPDX-License-Identifier: Apache-2.0
// Which work follows from one gradient's reduction and is done alike by all replicas: the update of a weight, to be
// shared out as one, and who would need its values whole again.
//
// A cluster grows from the result of an all-reduce of all replicas over redundant elementwise work of the same shape,
// over the weights and auxiliaries that this work reads, and over what else is computed from these alone. Sums over
// such values become sums of parts, of which only the result travels. Any other reader needs the value gathered.
//
// Source: Xu et al., arXiv 2004.13336, 3 and 4.
#pragma once

#include <string>
#include <vector>

#include "core/search/update_sharding/redundancy.h"

namespace turnpoint::update_sharding {

/// Why somebody needs a value whole.
enum class GatherReason : std::uint8_t {
  program_output,     ///< it goes to the host
  not_redundant,      ///< the reader does different work on every replica: forward and backward
  unshardable,        ///< redundant work that has no sharded implementation
  carried_elsewhere,  ///< the loop carries it to where it would have to be sharded otherwise
  branch_result,      ///< a branch hands it on
};

struct ForcedGather {
  ValueId value;         ///< of the cluster's computation
  InstructionId reader;  ///< invalid: the results of the computation, or of the branch
  ComputationId branch;  ///< in which the reader is, and the gather can go; invalid: none
  GatherReason why = GatherReason::unshardable;
  double frequency = 1;    ///< times an iteration
  bool product = false;    ///< the reader takes it as a factor of a matrix product or convolution, or in 16 bits
  bool of_weight = false;  ///< the value follows from the weight before the update alone
};

/// A value of the loop before and after its step.
struct CarriedPair {
  std::string name;
  ParameterRole role = ParameterRole::other;
  std::uint32_t position = 0;  ///< among the parameters and the results of the body
  ValueId before, after;
  bool stays = false;  ///< both are in the cluster, so that it can stay sharded from step to step
};

struct UpdateCluster {
  InstructionId reduction;
  ValueId gradient;  ///< the reduction's result
  ComputationId computation;
  std::vector<std::int64_t> shape;
  std::vector<InstructionId> sharded;  ///< elementwise work, in the order in which it runs
  std::vector<InstructionId> partial;  ///< sums over sharded values
  std::vector<CarriedPair> pairs;      ///< weights and auxiliaries that it reads
  std::vector<ForcedGather> gathers;
  /// Bytes read and written that no fusion avoids: what is elementwise, constant or spread costs nothing inside.
  double gradient_bytes = 0, input_bytes = 0, output_bytes = 0;  ///< inputs with the gradient
  std::vector<double> round_elements;  ///< of the sums that need no other sum first, that need those of round 0, ...
  bool keeps_dimensions = false;       ///< some sum has more than one element: rows or columns

  std::int64_t elements() const;
  /// How often an iteration needs the value whole: 1 at most, and less where only branches do.
  double frequency(ValueId value) const;
};

/// One for each reduction of a gradient whose update is redundant, in the order of the program.
/// Error: what check() says of the program.
Expected<std::vector<UpdateCluster>> find_clusters(const Program& program);

}  // namespace turnpoint::update_sharding
