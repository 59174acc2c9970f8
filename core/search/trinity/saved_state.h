// SPDX-License-Identifier: Apache-2.0
// All that learning goes on from after an iteration, as bytes: networks, optimizers, baseline, incumbents and what was
// met besides. Random numbers need no state: every iteration has streams of its own (trainer.cpp). Of this machine's
// byte order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/learning.h"
#include "core/search/placement/met.h"
#include "core/search/trinity/networks/weights.h"
#include "core/search/trinity/policy.h"
#include "core/search/trinity/trainer.h"

namespace turnpoint::trinity {

struct SavedState {
  std::uint64_t graph = 0, settings = 0;   ///< digests of what it is a state of
  Joining joining = Joining::by_exchange;  ///< how units were joined,
  std::uint64_t groups = 0;                ///< and into how many groups they go
  std::vector<std::uint32_t> leaning;      ///< by unit, the group that it leans towards; empty: none
  Policy<float>::Blocks weights;
  networks::Adam::Moments partition_moments, schedule_moments;
  std::optional<double> baseline;
  std::uint64_t iterations = 0, calls = 0;
  double seconds = 0;  ///< spent until then
  double reward_first = 0, reward_last = 0;
  std::optional<double> begun_s;  ///< of the placement that it began with, where that fits
  std::optional<Begun> begun;
  std::optional<Placement> best;        ///< with order
  std::optional<Placement> own;         ///< likewise, of what was drawn and refined
  annealing::Score drawn;               ///< of the best rollout
  std::optional<Rollout> best_rollout;  ///< its decisions
  std::vector<double> priority;         ///< by task, in which devices run what is ready
  std::vector<placement::Met::Point> met;
  std::vector<LearningPoint> points;
};

/// Whether the decisions can be those of so many units, groups and devices.
bool suits(const Rollout& rollout, const Problem& problem, std::uint32_t devices);

std::string write_saved_state(const SavedState& state);
/// Bad input: bytes that are no such state, or not whole.
Expected<SavedState> read_saved_state(const std::string& bytes);

/// Of everything that a placement's figures depend on.
std::uint64_t digest_of(const TaskGraph& graph, const placement::PlacementRequest& request);
/// Of everything else that learning depends on.
std::uint64_t digest_of(const Settings& settings, std::uint64_t seed);

}  // namespace turnpoint::trinity
