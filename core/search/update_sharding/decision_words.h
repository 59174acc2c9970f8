// SPDX-License-Identifier: Apache-2.0
// Why a weight's update is sharded or left whole, in words and figures.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/cost/breakdown.h"
#include "core/scenario/scenario.h"
#include "core/search/update_sharding/decision.h"

namespace turnpoint::update_sharding {

const char* words_of_precision(int element_bytes);  ///< in which a weight is gathered: "bf16", "fp32"
/// " with 2.4 % padding", of a part of the weight's elements; empty where it does not count.
std::string words_of_padding(double padding);

/// Sentences on what `holder` ("One replica") holds in the training loop and outside it, and would by ZeRO's stages.
/// `shards_gradients`: of some reduced gradients it keeps its shard alone.
std::string words_of_held(const HeldBytes& held, std::string_view holder, bool shards_gradients);

/// Bytes of weights, gradients and states.
std::int64_t held_on(const CostBreakdown& device);
/// The same of a plan whose devices hold unlike parts, on the device that needs most memory: as its updates are, with
/// whole ones, outside the loop, and by ZeRO's stages 1 to 3, each on the device that is the fullest then.
struct FullestDevice {
  std::int64_t inside = 0, whole = 0, outside = 0;
  std::array<std::int64_t, 3> zero{};
};
std::string words_of_fullest(const FullestDevice& fullest);

/// The scenario with gradients and states counted, too, whatever its accounting leaves out: for what devices hold.
ScenarioPtr with_all_counted(const Scenario& scenario);

/// One sentence without full stop, of a decision that is complete but for it.
std::string reason_of(const Program& program, const UpdateCluster& cluster, const WeightDecision& decision);

}  // namespace turnpoint::update_sharding
