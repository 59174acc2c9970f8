// SPDX-License-Identifier: Apache-2.0
// Two sharding plans of one model beside each other: what every layer costs more or less in the second, in parts that
// add up to the whole difference, and which operators and tensors are treated otherwise, in practitioners' words.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"
#include "core/plan/plan.h"

namespace turnpoint {

/// The second plan's less the first's: bytes on a device, seconds of an iteration.
struct DifferenceParts {
  std::int64_t memory_bytes = 0;
  double compute_s = 0;      ///< forward, backward and update
  double recompute_s = 0;    ///< forward once more, in backward
  double weights_s = 0;      ///< collectives over parameters and their gradients
  double activations_s = 0;  ///< collectives that bring activations and their gradients into other layouts
  double offload_s = 0;      ///< optimizer state to the host and back
  double waiting_s = 0;      ///< of the slowest pipeline stage for others
  double time_s() const { return compute_s + recompute_s + weights_s + activations_s + offload_s + waiting_s; }
  bool none() const;
  DifferenceParts& operator+=(const DifferenceParts& other);
};

/// Operators, or tensors, of several layers whose treatment changes alike.
struct PlanChange {
  bool tensor = false;
  std::vector<std::string> layers;         ///< in the model's order
  std::vector<std::string> names;          ///< within a layer
  std::string was, is;                     ///< "data parallel 8; weights sharded (ZeRO-3)"
  std::vector<OperatorId> operators = {};  ///< of all these layers and names; of tensors those that make them
};

struct PlanDifference {
  struct Layer {
    std::string name;
    DifferenceParts parts;
  };
  /// In the model's order, those with a difference; none where a plan has pipeline stages, whose memory is that of the
  /// largest stage and whose time that of the slowest.
  std::vector<Layer> layers;
  DifferenceParts total;  ///< their sum; where there are none for that reason, of the largest and the slowest stages
  bool of_stages = false;  ///< a plan has pipeline stages
  std::vector<PlanChange> changes;
};

/// Of plans of this model; one with micro-batches or stages may be of one of them.
PlanDifference difference_of(const Model& model, const Plan& first, const Plan& second);

/// "data parallel 4 x column parallel 2; weights sharded (ZeRO-3); runs again in backward".
std::string words_of(const Model& model, const Mesh& mesh, const PlanOperator& op);
/// The path of an operator up to its first numbered part: "layer3", "model.layers.3"; its first part where none is.
std::string layer_name(const Operator& op);
/// "layer0 to layer11", "layer0, layer3", "head".
std::string in_words(const std::vector<std::string>& layers);
/// The same, run by run: "layer0 to layer11", "head".
std::vector<std::string> runs_of(const std::vector<std::string>& layers);
/// "layer0 to layer11: attention/q, attention/k, attention/v".
std::string describe_place(const PlanChange& change);

}  // namespace turnpoint
