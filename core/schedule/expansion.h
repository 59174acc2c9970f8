// SPDX-License-Identifier: Apache-2.0
// A task of a whole training graph and the tasks of its time steps that replace it, numbered one after the other.
#pragma once

#include <cstdint>

#include "core/model/task_graph.h"
#include "core/schedule/step_links.h"

namespace turnpoint {

/// One task of the whole graph and the tasks that replace it: `per_step` of them for each direction and position.
struct Expansion {
  TaskIndex first = 0;
  std::uint32_t directions = 1, per_step = 1;
  std::int64_t steps = 0;  ///< 0: the task stays as it is
  const StepwiseOperator* op = nullptr;
  std::int64_t count() const { return steps == 0 ? 1 : std::int64_t(directions) * steps * per_step; }
  std::int64_t pieces() const { return std::int64_t(directions) * steps; }
  TaskIndex at(std::uint32_t direction, std::int64_t position, std::uint32_t part) const {
    return first + TaskIndex((direction * steps + position) * per_step + part);
  }
  /// Where a direction is after `step` steps forward.
  std::int64_t position(std::uint32_t direction, std::int64_t step) const {
    return direction % 2 == 0 ? step : steps - 1 - step;
  }
};

}  // namespace turnpoint
