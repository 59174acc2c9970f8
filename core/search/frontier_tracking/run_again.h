// SPDX-License-Identifier: Apache-2.0
// Plans of given splits in which operators run again in backward instead of being kept: ft's frontier over what does
// so, and the plan of it in which as little runs again as gives every device room. Room is judged by simulated peaks,
// under the papers' accounting by plain sums.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/search/frontier_tracking/structure.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

/// Without sharded updates and offloading, whatever the scenario's switches say. `space` says the splits and leaves
/// memory choices open. Errors: those of run_sharding().
Expected<ResultPtr> frontier_over_reruns(const std::string& method, const ScenarioPtr& scenario,
                                         const SearchSpace& space, const RunContext& context);

Expected<bool> has_room(const Result& result, std::size_t point, const RunContext& context);
/// Points rise in memory, and so do their peaks but for little. nullopt: the first one has no room.
Expected<std::optional<std::size_t>> last_with_room(const Result& all, const RunContext& context);

/// That point alone, as an answer to `scenario`.
ResultPtr only_point(const ResultPtr& all, const ScenarioPtr& scenario, std::size_t point);

/// `data-parallel:recompute`: the batch over all devices, and as little run again as gives every device room; where
/// nothing does, the plan of the least plain sum.
class CheckpointedDataParallel : public Searcher {
 public:
  explicit CheckpointedDataParallel(std::string parameters) : parameters_(std::move(parameters)) {}
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override;

 private:
  std::string parameters_;
};

}  // namespace turnpoint::search
