// SPDX-License-Identifier: Apache-2.0
// A plan as annotations of the user's own model: how each of its parameters, their optimizer states, its data and its
// tensors lie on the mesh, by the names that the user's code has. No line of the plan is in it: XLA finds collectives.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/transformer_roles.h"
#include "core/export/jax/dimension_axes.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::jax {

/// What a dimension is for, as the rules of Flax and MaxText call it: "embed", "mlp"; empty: nothing splits it.
using LogicalNames = std::vector<std::string>;

struct AnnotatedParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  DimensionAxes read;   ///< as operators read it
  DimensionAxes state;  ///< of its optimizer state, where the update is shared out
  int zero = 0;         ///< stage, as DeepSpeed numbers them
  LogicalNames logical;
  const DimensionAxes& stored() const { return zero == 3 ? state : read; }  ///< between steps
};

/// A tensor that an operator makes, or the copy of it that one reader takes.
struct AnnotatedTensor {
  std::string name;  ///< of a reader's copy: "maker -> reader"
  std::vector<std::int64_t> shape;
  std::vector<std::string> dims;
  std::vector<DimensionAxes> layouts;  ///< one after the other
  LogicalNames logical;
};

struct Annotated {
  std::vector<AnnotatedParameter> parameters;
  std::vector<AnnotatedTensor> data, tensors;
  std::vector<std::string>
      notes;             ///< a sentence each, without full stop, of what the file does otherwise than the plan
  std::string no_roles;  ///< why dimensions have no logical names; empty: they have

  /// Usage error: in one sentence the operator, how it lies, what JAX is not told of, and what is nearest.
  static Expected<Annotated> of(const Scenario& scenario, const Plan& plan);
};

/// Logical axis rules, where one mapping covers all parameters and tensors.
struct LogicalRules {
  std::vector<std::pair<std::string, std::vector<int>>> rules;  ///< by name; axes of the mesh
  std::string none;                                             ///< why there are none; empty: there are
};
LogicalRules logical_rules(const Annotated& annotated, const Mesh& mesh);

}  // namespace turnpoint::jax
