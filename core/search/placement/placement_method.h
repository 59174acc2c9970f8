// SPDX-License-Identifier: Apache-2.0
// What a placement method is: a task graph and a number of devices go in, a device per task and an order per device
// come out. placement_registry.h lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/options.h"
#include "core/base/progress.h"
#include "core/model/task_graph.h"
#include "core/plan/placement_plan.h"

namespace turnpoint::placement {

enum class Objective : std::uint8_t {
  makespan,  ///< end of one pass through the graph, by the simulator
  max_load,  ///< the busiest device of a pipeline that is always full: its tasks and its transfers, see max_load_s()
};
const char* to_string(Objective objective);

class Met;

struct PlacementRequest {
  std::uint32_t devices = 1;
  std::int64_t memory_limit = kUnlimitedBytes;  ///< per device; the graph's own device memory applies too
  Objective objective = Objective::makespan;
  std::uint64_t seed = 0;  ///< same request, same answer; methods that draw nothing ignore it
  /// Is told of every placement that a search measures for the makespan; run_placement() sees to that. Null: nobody.
  Met* met = nullptr;
  /// What Learning::state() was: a method that learns goes on from there, if it is a state of the same graph, devices
  /// and settings; else it is an error. Null: it begins anew. Other methods do not look at it.
  std::shared_ptr<const std::string> resume = nullptr;

  std::int64_t limit_of(const TaskGraph& graph, std::uint32_t device) const {
    return std::min(memory_limit, graph.memory_of(device));
  }
  bool limited(const TaskGraph& graph) const;
};

struct PlacementMethod {
  std::string name = {};  ///< "pardnn"
  std::string title = {};
  std::string paper = {};        ///< where it is from
  std::string description = {};  ///< one sentence
  bool on_by_default = false;    ///< searched unasked where the scenario is a task graph
  bool default_method = false;   ///< what places where none is named; one of all
  bool for_comparison = false;   ///< for those who ask for it by name: "all" leaves it out
  /// Empty if the method can run in this build, else why not. Not set: it can.
  std::function<std::string()> unavailable = {};
  bool frontier = false;  ///< may answer with several placements, of less memory or less time
  std::vector<OptionRecord> options = {};
  /// Fills placement, stages and moved_tasks; run_placement() adds what is measured.
  using Run = std::function<Expected<SimulatedPlacement>(const TaskGraph&, const PlacementRequest&, const RunContext&)>;
  Run run = {};
  /// For methods with options ("calls=5000", "" for none): what runs, or a usage error saying what they may be. `run`
  /// is then not set.
  std::function<Expected<Run>(std::string_view parameters)> run_with = {};
};
/// Methods that are over at once answer nothing when they are stopped. One that keeps its best so far ends the name of
/// its answer's last stage in these words, for people as well as for whoever has to know that the same request would
/// have another answer.
inline constexpr std::string_view kStoppedEarly = ", stopped early";
inline bool stopped_early(const SimulatedPlacement& placed) {
  return !placed.stages.empty() && placed.stages.back().name.ends_with(kStoppedEarly);
}

/// Usage error where the method does not take these parameters.
Expected<PlacementMethod::Run> run_of(const PlacementMethod& method, std::string_view parameters);

/// Checks the request, runs the method, simulates what it found and says whether it fits. Errors: usage (no device,
/// more devices than the graph knows), cancelled, where it is not stopped_early(): a sentence says that there is no
/// placement to keep; co-location that a method broke.
/// What does not fit is a result, with its shortage. Its `others` are what the method met besides.
Expected<SimulatedPlacement> run_placement(const PlacementMethod& method, const TaskGraph& graph,
                                           const PlacementRequest& request, const RunContext& context,
                                           std::string_view parameters = {});

/// Load of the busiest device: its tasks' time, plus one transfer for every tensor that it receives, plus one for every
/// tensor that any other device wants of it (the longest of the tensor's edges concerned).
double max_load_s(const TaskGraph& graph, const Placement& placement);
std::vector<double> device_loads(const TaskGraph& graph, const Placement& placement);

}  // namespace turnpoint::placement
