// SPDX-License-Identifier: Apache-2.0
// A task of a whole training graph and the tasks of its time steps that replace it, numbered one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/cost/device_times.h"
#include "core/model/task_graph.h"
#include "core/model/task_role.h"
#include "core/scenario/scenario.h"
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

/// Piece `i` of `n` of a whole number; the pieces add up to it.
inline std::int64_t piece(std::int64_t total, std::int64_t n, std::int64_t i) {
  return total / n + (i < total % n ? 1 : 0);
}

/// "a:gradient #2" of operator "a" becomes "a/WHAT:gradient #2".
inline std::string inserted(std::string_view name, std::size_t at, const std::string& what) {
  return std::string(name.substr(0, at)) + "/" + what + std::string(name.substr(at));
}

/// Of the gradients of a step's gates, those that backward of this part makes: an equal share of each part that reads a
/// product.
std::int64_t gates_of(const CellProgram& cell, std::int64_t gates, std::uint32_t part);

/// Of the work of a step, the part that this task of it has. `unsplit`: backward makes the gradients of weights, too.
double time_share(const CellProgram& cell, TaskRole role, bool unsplit, std::uint32_t part);

/// Seconds of a task that has this share of the work of another one, which takes `whole_s`, `launch_s` of it however
/// little work there is. A call of its own takes that, too.
double seconds_of_share(double whole_s, double launch_s, double share);
/// Seconds that every call of the operator takes besides its work, where the hardware profile has a fit of its kind;
/// else 0: nobody has measured how its efficiency depends on the size of its work.
double measured_launch_s(const DeviceTimes& times, const Scenario& scenario, const Operator& op, bool backward);

}  // namespace turnpoint
