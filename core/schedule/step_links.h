// SPDX-License-Identifier: Apache-2.0
// Which operators of a model work step by step along the sequence, and which of them follow one another in step.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "core/schedule/cell_parts.h"

namespace turnpoint {

struct StepwiseOperator {
  std::int64_t steps = 0;
  CellProgram cell;
};

/// Recurrent operators of more than one step; and elementwise operators and concatenations without parameters that read
/// such an operator's sequence and make one of the same length (residuals, dropout and attention's input between two).
class StepLinks {
 public:
  StepLinks(const Model& model, bool in_parts);
  /// Null where the operator runs as a whole.
  const StepwiseOperator* find(OperatorId id) const;
  /// Whether one of the two reads the other's sequence position by position, views looked through as far as they keep
  /// the sequence as a dimension of its own.
  bool in_step(OperatorId a, OperatorId b) const;

 private:
  OperatorId producer_in_step(TensorId tensor, std::int64_t steps) const;
  void link(OperatorId consumer, std::int64_t steps);

  const Model& model_;
  std::map<OperatorId, StepwiseOperator> operators_;
  std::set<std::pair<OperatorId, OperatorId>> links_;
};

}  // namespace turnpoint
