// SPDX-License-Identifier: Apache-2.0
// What views show of a plan, per operator and per resharding, summed once: times, bytes, words.
#pragma once

#include <QString>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "views/common/configuration_colors.h"
#include "views/common/difference_marks.h"
#include "views/common/ratio_shares.h"

namespace turnpoint::views {

/// Times and bytes are those of an iteration: of all micro-batches together.
struct OperatorFigures {
  std::uint32_t configuration = 0;      ///< index into PlanFigures::configurations
  std::int64_t memory_bytes = 0;        ///< its own and the copies kept for its inputs, per device
  double compute_s = 0, network_s = 0;  ///< its own; network is gradient synchronisation
  double reshard_s = 0;                 ///< of its inputs; what is shared by all consumers counts for the producer
  double time_s() const { return compute_s + network_s + reshard_s; }
};

struct ReshardFigures {
  double bytes = 0, time_s = 0;  ///< received by one device, forward and backward
  int heat = 0;                  ///< 1..4 by rank of bytes within the plan; 0: moves nothing
};

struct ConfigurationFigures {
  QString text;  ///< "batch yx · in-channel z"
  double time_s = 0;
  int operators = 0;
};

/// Immutable once made; holds the plan and the scenario it describes.
class PlanFigures {
 public:
  /// Null where the plan is not one of this model (or there is none). `ratio`: of a ratio plan that `plan` shows;
  /// `typed`: the plan's method cuts layers by types I, II and III.
  static std::shared_ptr<const PlanFigures> make(const ModelPtr& model, std::shared_ptr<const Plan> plan,
                                                 RatioSharesPtr ratio = nullptr,
                                                 DifferenceMarksPtr difference = nullptr, bool typed = false);

  const Model& model() const { return *model_; }
  const Plan& plan() const { return *plan_; }
  const RatioShares* ratio() const { return ratio_.get(); }  ///< null: not a ratio plan
  bool typed() const { return typed_; }                      ///< of a plan that splits operators, by types
  /// Null: the plan stands beside no other.
  const DifferenceMarks* difference() const { return difference_.get(); }
  const OperatorFigures& of(OperatorId op) const { return operators_[op]; }
  const ConfigurationFigures& configuration_of(OperatorId op) const {
    return configurations[operators_[op].configuration];
  }
  /// Index into plan().reshards for what `consumer` reads of `tensor`; -1: it arrives as it was left.
  int reshard(TensorId tensor, OperatorId consumer) const;
  /// "all-reduce over z, all-gather over x"
  QString collectives(const PlanReshard& reshard) const;
  /// "(batch yx, partial z) -> (batch yx)" with an arrow
  QString layouts(const PlanReshard& reshard) const;
  /// "(batch yx)", of the main output; empty where there is none
  QString output_layout(OperatorId op) const;
  /// What the colours of configurations are given out by.
  std::vector<ConfigurationColors::Share> shares() const;
  QString mesh_text() const;  ///< "Mesh y 2 nodes · x 4 · z 2"

  std::vector<ConfigurationFigures> configurations;  ///< largest time first
  std::vector<ReshardFigures> reshards;              ///< like plan().reshards
  double time_s = 0;
  double largest_reshard_bytes = 0, largest_reshard_s = 0;

 private:
  ModelPtr model_;
  std::shared_ptr<const Plan> plan_;
  RatioSharesPtr ratio_;
  bool typed_ = false;
  DifferenceMarksPtr difference_;
  IdVector<OperatorId, OperatorFigures> operators_;
  std::unordered_map<std::uint64_t, int> reshard_of_;
  void add_operators();
  void add_reshards();
};
using PlanFiguresPtr = std::shared_ptr<const PlanFigures>;

QString move_text(ReshardMove move);                      ///< "all-reduce"
QString axes_text(const Mesh& mesh, std::uint32_t axes);  ///< "yx"
/// Three significant digits, fixed; whole numbers from 100 on.
QString figure_text(double value);
QString bytes_text(std::int64_t bytes);  ///< "9.6 GiB"
QString seconds_text(double seconds);    ///< "812 ms"

}  // namespace turnpoint::views
