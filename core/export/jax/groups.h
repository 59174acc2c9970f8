// SPDX-License-Identifier: Apache-2.0
// The parameters of a plan in groups that are summed, cut and updated as one, as an explicit program holds them.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/export/jax/python.h"
#include "core/export/jax/ways.h"

namespace turnpoint::jax {

struct WeightGroup {
  OperatorId op;
  const ParameterSteps* steps = nullptr;
  std::vector<std::uint32_t> inputs;  ///< of the operator
  Update update = Update::replicated;
  bool rows = false;                                     ///< pieces are whole rows
  std::uint32_t scattered = 0, sliced = 0, reduced = 0;  ///< axes of the gradient's steps, in this order
  bool cut() const { return update != Update::replicated; }
  bool weights_cut() const { return update == Update::sharded_weights; }
  std::string order(const Mesh& mesh) const;  ///< axes among which pieces lie, as arguments
};

/// In the order of the operators. Error: what no program of ours can hold yet (state at the host).
Expected<std::vector<WeightGroup>> weight_groups(const Model& model, const Plan& plan, const TensorUses& uses);
/// The table GROUPS of the file.
std::string write_groups(const Model& model, const Plan& plan, const std::vector<WeightGroup>& groups);

}  // namespace turnpoint::jax
