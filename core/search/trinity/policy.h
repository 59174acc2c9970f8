// SPDX-License-Identifier: Apache-2.0
// Both networks together: rollouts are drawn from them, and a batch of rollouts becomes a loss with its gradient.
#pragma once

#include <functional>
#include <vector>

#include "core/base/parallel.h"
#include "core/search/trinity/partition_network.h"
#include "core/search/trinity/schedule_network.h"
#include "core/search/trinity/surrogate.h"

namespace turnpoint::trinity {

/// A rollout as the policy sees it: which group each unit went to, and which device each group.
struct Rollout {
  Decisions units, groups;
  std::vector<float> group_features;  ///< groups x width
  Credit credit;
};

/// Mean surprise of its decisions by their `old` probabilities, in nats, of the kind that surprises more.
double surprise(const Rollout& rollout);

/// Of a batch, for tests and for telling how decided the policy is.
struct Loss {
  double value = 0;
  double unit_entropy = 0, group_entropy = 0;  ///< mean per decision, nats
};

template <class Real>
class Policy {
 public:
  struct Blocks {
    std::vector<Real> partition, schedule;
  };
  /// Group features (groups x width) of a partition, by unit.
  using GroupFeatures = std::function<std::vector<float>(const std::vector<std::uint32_t>& group_of)>;

  Policy(const PartitionShape& partition, const ScheduleShape& schedule, std::vector<float> device_features,
         UnitFeatures features, placement::Random& random);

  Blocks& weights() { return weights_; }
  const Blocks& weights() const { return weights_; }
  /// PartitionNetwork::lean_towards().
  void lean_towards(std::vector<std::uint32_t> group_of, double lean) {
    partition_.lean_towards(std::move(group_of), lean);
  }
  std::size_t groups() const { return partition_.shape().groups; }
  std::size_t units() const { return partition_.shape().units; }

  /// Draws one rollout per stream; each stream belongs to one rollout, so that threads change nothing. `noise` is the
  /// largest amount by which scores are shaken while drawing; `old` has the probabilities without it.
  void draw(const std::vector<Real>& mask, double noise, const GroupFeatures& group_features,
            std::vector<placement::Random>& streams, ThreadPool& pool, std::vector<Rollout>& rollouts) const;
  /// Writes the probabilities that the policy gives these decisions into `old`.
  void remember(const std::vector<Real>& mask, ThreadPool& pool, std::vector<Rollout>& rollouts) const;
  /// Loss of the rollouts under their credit, and its gradient. `mask` must be the one that they were drawn with.
  Loss loss(const std::vector<Rollout>& rollouts, const Weighting& weighting, const std::vector<Real>& mask,
            ThreadPool& pool, Blocks& gradient) const;

 private:
  static constexpr std::size_t kChunk = 4;  ///< rollouts side by side, whatever the number of threads
  struct Chunk;

  void decode(const std::vector<Rollout>& rollouts, ThreadPool& pool, std::vector<Chunk>& chunks) const;
  std::vector<Real> side_by_side(const std::vector<Rollout>& rollouts, std::size_t first, std::size_t rows) const;

  UnitFeatures features_;
  PartitionNetwork<Real> partition_;
  ScheduleNetwork<Real> schedule_;
  Blocks weights_;
};

}  // namespace turnpoint::trinity
