// SPDX-License-Identifier: Apache-2.0
// Which operators are alike to a search: equal in all that their configurations, layouts and costs depend on.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/tensor_use.h"
#include "core/model/model.h"

namespace turnpoint {
struct EagerKernels;
}

namespace turnpoint::search {

struct AccessTraits {
  TensorRole role{};
  ElementType type{};
  bool requires_gradient = false, saved = false;
  bool counted = false;  ///< an output's memory is counted with the operator
  std::vector<std::int64_t> shape;
  std::vector<std::vector<std::uint8_t>> walks;
  friend auto operator<=>(const AccessTraits&, const AccessTraits&) = default;
};

struct OperatorTraits {
  RunAgain again{};
  OperatorKind kind{};
  std::vector<LoopDimension> dims;
  const EagerKernels* eager = nullptr;
  double forward_flop = 0, backward_flop = 0, forward_passes = 0, backward_passes = 0;
  std::vector<AccessTraits> inputs, outputs;
  std::vector<bool> owns_parameter;
  std::vector<int> parameter_reads, rerun_reads;
  double layer_parameters = 0;  ///< what sharded weights travel with
  /// Where a method chooses them: alike operators may be given different ones.
  std::vector<Configuration> configurations;
  MemoryChoice choice;
  friend auto operator<=>(const OperatorTraits&, const OperatorTraits&) = default;
};

OperatorTraits traits_of(const Model& model, const TensorUses& uses, OperatorId id, RunAgain again);

}  // namespace turnpoint::search
