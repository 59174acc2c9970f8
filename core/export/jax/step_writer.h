// SPDX-License-Identifier: Apache-2.0
// The lines of one training step of a plan on one device: forward, backward, the sums of gradients, the update.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/export/jax/groups.h"
#include "core/export/jax/kernels.h"
#include "core/export/jax/moves.h"
#include "core/export/jax/ways.h"
#include "core/scenario/scenario.h"

namespace turnpoint::jax {

/// An array of the data that a step is fed with.
struct DataArray {
  TensorId tensor;
  Layout layout;
};

class StepWriter {
 public:
  StepWriter(const Scenario& scenario, const Plan& plan, const Ways& ways, const std::vector<WeightGroup>& groups,
             const std::vector<DataArray>& data);

  /// The body of `step(weights, first, second, data, rate, number)`.
  Expected<std::string> step();
  /// The body of `network(weights, data, number)`, the loss of the network in one piece.
  Expected<std::string> network();

 private:
  const Operator& op_of(OperatorId id) const { return model_.operators[id]; }
  const Tensor& tensor_of(const Access& access) const { return model_.tensors[access.tensor]; }
  Place place_of(OperatorId id) const { return {model_, id, plan_.mesh, plan_.operators[id.index].split}; }
  std::string comment_of(OperatorId id, const char* what) const;

  // Forward.
  Expected<void> forward(OperatorId id);
  Expected<std::vector<std::string>> weights(OperatorId id, bool backward_only, bool rerun);
  Expected<void> read_tied(OperatorId id, std::size_t input, bool in_forward, std::vector<std::string>& values);
  void read_group(std::size_t group, const std::string& suffix);
  Expected<std::string> activation(OperatorId id, std::size_t input);
  Expected<std::string> follow(const std::vector<ReshardStep>& steps, Layout from, const Tensor& tensor,
                               std::string value, const std::string& target, const std::string& what);
  void add_loss(OperatorId id, std::size_t output);

  // Backward.
  Expected<void> backward(OperatorId id);
  Expected<std::vector<std::string>> output_gradients(OperatorId id);
  Expected<std::string> fetch(OperatorId id, std::size_t input);
  Expected<std::string> produced(std::size_t flow);
  Expected<std::string> repeat(const Way& way, const Tensor& tensor, std::string value, const std::string& target);
  Expected<std::vector<std::string>> run_again(OperatorId id);
  Expected<void> send(OperatorId id, std::size_t input, std::string gradient);
  std::string by_one(const Layout& meeting, const Way& way, const std::string& gradient) const;
  void synchronise(std::size_t group);
  void update(std::size_t group);

  std::size_t group_of(OperatorId id, std::size_t input) const;
  static std::string name(const char* letter, std::size_t first, std::size_t second);

  const Scenario& scenario_;
  const Model& model_;
  const Plan& plan_;
  const Ways& ways_;
  const std::vector<WeightGroup>& groups_;
  const std::vector<DataArray>& data_;
  Lines lines_;
  std::vector<std::vector<std::string>> made_;         ///< [operator][output]
  std::vector<std::string> shared_;                    ///< [flow]: the copy that readers share
  std::map<std::pair<int, int>, std::string> copies_;  ///< [flow, reader]: what the reader read in forward
  std::map<int, std::string> tie_copies_;              ///< [tie]
  std::vector<std::vector<std::string>> sums_;         ///< [flow]: gradients that meet
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::string>> weight_sums_;  ///< [operator, input]
  std::map<std::pair<std::size_t, std::size_t>, std::string> fetched_;
  std::map<std::size_t, std::string> shared_again_, restored_;
  std::map<std::size_t, std::vector<std::string>> again_, again_weights_;
  std::vector<int> reads_;            ///< [group]: gathers so far
  std::map<std::string, int> taken_;  ///< names that were given
  std::string fresh(const std::string& wanted);
};

}  // namespace turnpoint::jax
