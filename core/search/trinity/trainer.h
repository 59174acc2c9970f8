// SPDX-License-Identifier: Apache-2.0
// The learning loop (Trinity, algorithm 1): rollouts are drawn, simulated and rewarded, and the policy moves towards
// what did better than its moving baseline. The best placement met is kept whatever the policy does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/search/trinity/evaluation.h"
#include "core/search/trinity/policy.h"
#include "core/search/trinity/problem.h"
#include "core/search/trinity/reward.h"

namespace turnpoint::trinity {

/// Where learning ends; whichever comes first. At least one is set.
struct Budget {
  std::optional<std::uint64_t> calls;       ///< of the simulator
  std::optional<std::uint64_t> iterations;  ///< batches of rollouts
  std::optional<double> seconds;            ///< of the clock: the only one whose answer depends on the machine

  Expected<void> check() const;  ///< usage error: nothing set, or zero
};

enum class RewardKind : std::uint8_t {
  three_goals,  ///< trinity_reward()
  runtime,      ///< runtime_reward()
};

struct Settings {
  RewardKind reward = RewardKind::three_goals;
  RewardWeights weights;
  Weighting learning;
  Budget budget;
  std::size_t units = 2000;   ///< above, units are joined
  std::size_t groups = 32;    ///< no more than units
  std::size_t rollouts = 16;  ///< an iteration
  std::size_t epochs = 4;     ///< updates an iteration
  std::size_t hidden = 64;    ///< of the long short-term memory
  double rate = 2e-3;         ///< of Adam
  double gradient_norm = 1;   ///< each network's
  double dropout = 0.3;       ///< after the first layer of the partition network
  networks::Clipping clipping{5, 1};
  double noise = 0.1;  ///< largest amount on scores, falling to zero
  std::uint64_t noise_iterations = 500;
  double baseline_n = 9;  ///< of the moving baseline, EMA_N
  /// The bonus falls to nothing as the budget is spent, and is divided by the root of the number of decisions (of
  /// groups with `shared_credit`, else of units): what one of many decisions does to the reward is lost in what the
  /// others do, and a bonus that is not would decide alone.
  bool fading_entropy = true;
  /// A unit's decision has as much of advantage and bonus as there are groups for each unit, at most all of it.
  bool shared_credit = true;
  bool scaled_advantage = true;  ///< divided by the batch's deviation, so that gains of a hundredth count
  std::size_t own_width = 16;    ///< PartitionShape
  bool reads_group = true;       ///< ScheduleShape
  double imitation = 0.3;        ///< weight of the best placement so far among an iteration's rollouts
  std::size_t teaching = 300;    ///< updates at most on what learning begins with
  double taught = 0.05;          ///< mean surprise of a decision, in nats, below which teaching ends
  std::optional<double>
      failing_seconds;  ///< what does not fit counts as so slow; else ten times all work on one device
  double strays = 1;    ///< above 0: units of a drawn partition that at first are not where they lean
  /// Units lean towards groups: where pieces are taken (trials.h) these are pieces that exchange little with one
  /// another, else those that what it begins with is said in.
  bool joined_groups = true;
  /// Placements drawn, after which as many calls refine the best of all that was drawn so far; 0: never.
  std::uint64_t refined_every = 512;
  bool tries_joinings = false;  ///< the units of a large graph are joined as its pieces are faster (Joining)
  /// Instead of `groups`, of these the number whose pieces are faster; empty: `groups`.
  std::vector<std::size_t> tried_groups = {};
  double state_every_s = 1;  ///< of the clock: how often a state is kept to go on from; it decides nothing

  Expected<void> check() const;  ///< usage error: what nothing can be learnt with
};

/// Trinity's settings as printed: Adam 0.1, C = 5, T = 10, noise, one ratio per rollout. It diverges easily.
Settings printed_settings();
/// The predecessor's: plain policy gradient, one update an iteration, -sqrt(seconds).
Settings hierarchical_settings(std::uint32_t devices);

/// The placement that learning begins with, and whose it is.
struct Begun {
  std::string name;
  double makespan_s = 0;
};
struct Beginning {
  Beginning(const Placement* its_placement, Begun begun = {})  // NOLINT: a placement is enough
      : placement(its_placement), by(std::move(begun)) {}
  const Placement* placement;  ///< null: from nothing
  Begun by;
};

/// After an iteration; rewards are of what fits.
struct Iteration {
  std::uint64_t number = 0, calls = 0;
  double mean_reward = 0, baseline = 0;  ///< the moving baseline, after this iteration's rewards
  double best_seconds = 0;
  std::size_t failed = 0;
  Loss loss;
};

struct Learnt {
  Evaluated best;
  std::uint64_t iterations = 0, calls = 0;
  std::vector<Rollout> last;                 ///< of the last iteration, for tests
  bool stopped = false;                      ///< by the user, before the budget was spent
  std::optional<Begun> begun;                ///< what it began with; of a resumed one what it once began with
  double reward_first = 0, reward_last = 0;  ///< mean of the first and of the last iteration's rollouts that fit
};

/// `begin`: the placement that learning begins with and stays the best until a better one is met. The progress that it
/// reports has a Learning for its detail. Same seed, same answer on any number of threads, unless the budget is one of
/// seconds; also where it goes on from a state (PlacementRequest::resume), `begin` being then what the state says.
/// Where it is stopped the best so far is the answer. Errors: settings; a state of another graph or of other settings;
/// cancelled, where it is stopped before there is any placement.
Expected<Learnt> learn(const TaskGraph& graph, const placement::PlacementRequest& request, const Settings& settings,
                       const Beginning& begin, const RunContext& context,
                       const std::function<void(const Iteration&)>& watch = nullptr);

}  // namespace turnpoint::trinity
