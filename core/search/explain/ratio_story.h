// SPDX-License-Identifier: Apache-2.0
// What a point of a ratio plan is: who has which part of the work, by which types its layers are cut, what its time is
// made of, and which of the other results beside it, of the same scenario, cuts its layers most alike.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/ratio_plan.h"
#include "core/plan/result.h"

namespace turnpoint {

/// How a cut on the way to the first device divides the layers.
struct CutStory {
  std::string first, second;   ///< devices of either half: "4 × V100-16GB"
  double ratio = 0.5;          ///< of the first half, of the work that reaches the cut
  std::array<int, 3> types{};  ///< layers that are cut so, by PartitionType
  int uncut = 0;               ///< layers that both halves do all of
};

/// Neighbouring layers with the same types.
struct LayerRun {
  std::string first, last;  ///< names
  int layers = 0;
  std::vector<std::string> types;  ///< by cut on that way: "I", "II", "III"; "both" where both halves do all of it
};

/// Another result that divides the same devices.
struct AlikeResult {
  std::string method;  ///< with its parameters
  ResultPoint point;
  std::int64_t same = 0, all = 0;  ///< layers, once for every place at which devices are cut: of the same type; of all
};

struct RatioStory {
  std::size_t index = 0;
  ResultPoint point;
  RatioPlanPtr plan;
  std::vector<CutStory> cuts;
  std::vector<LayerRun> layers;
  std::optional<AlikeResult> nearest;
};

/// The point, with the first points of `others`: of those whose plans are ratio plans over the same tree of devices, or
/// sharding plans that split all these layers by their batch alone, on every axis. Nearest is the one with most layers
/// of the same type, of equal ones the faster. Usage error: not a ratio plan.
Expected<RatioStory> ratio_story_of(const Result& result, std::size_t point, const std::vector<ResultPtr>& others);

/// A sentence or an indented line each.
std::vector<std::string> describe(const RatioStory& story, const Result& result);
/// turnpoint/explanation@1.
nlohmann::json explanation_json(const RatioStory& story, const Result& result);

}  // namespace turnpoint
