// SPDX-License-Identifier: Apache-2.0
// What people ask of operators, in practitioners' words: "layer7/*: tp=4, *.mlp.*: recompute". No axes, no layouts.
//
//   FORCE   = RULE { "," RULE }
//   RULE    = PATTERN ":" CHOICE | CHOICE          a choice alone is for the last pattern
//   PATTERN = a name; * stands for any characters, ? for one
//   CHOICE  = dp | dp=N | tp=N | cp=N | ep=N       N devices share the batch (dp alone: all of them), the weights or
//                                                  heads, the sequence, the experts
//           | column | row | vocabulary            how a product with a weight, or a look-up, is split on some axis
//           | repeated                             every device computes all of it
//           | replicated | sharded | zero=0..3     weights whole on every device; ZeRO's stages, `sharded` being 3
//           | offload                              optimizer state at the host
//           | keep | recompute                     what backward reads is kept, or computed again
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/search/frontier_tracking/forced.h"

namespace turnpoint {

struct ForcedChoice {
  enum class Kind : std::uint8_t {
    data,
    tensor,
    context,
    expert,
    column,
    row,
    vocabulary,
    repeated,
    replicated,
    zero,
    offload,
    keep,
    recompute,
  };
  Kind kind = Kind::data;
  std::int64_t number = 0;  ///< of ways, or ZeRO's stage; of `data` 0: all devices
  friend bool operator==(const ForcedChoice&, const ForcedChoice&) = default;
};
/// As it is written: "tp=4".
std::string to_string(const ForcedChoice& choice);
/// For people: "tensor parallel 4", "weights sharded (ZeRO-3)".
std::string describe(const ForcedChoice& choice);

struct ForceRule {
  std::string pattern;
  ForcedChoice choice;
};
/// Usage error: no rule, a choice before any pattern, a choice that there is not.
Expected<std::vector<ForceRule>> parse_force(std::string_view text);

namespace search {

/// Operators that a rule is about, and those that it is forced on: of the others none could take the choice, or, where
/// it is tp=N, they follow those that set the strategy.
struct RuleReach {
  std::vector<OperatorId> named, forced;
};
struct AppliedForce {
  ForcedOperators operators;
  std::vector<RuleReach> rules;  ///< one a rule
};
/// Usage error: a pattern that names nothing; a choice that no operator that it names can take, with those that one of
/// them has; choices of one operator that cannot go together.
Expected<AppliedForce> apply_force(const std::vector<ForceRule>& rules, const Prices& prices);

/// The choices that any of these operators has, in the order of the grammar.
std::vector<ForcedChoice> choices_of(const Prices& prices, const std::vector<OperatorId>& operators);
/// Those of the named operators that a rule with this choice is forced on (RuleReach).
std::vector<OperatorId> reach_of(const Prices& prices, const std::vector<OperatorId>& named,
                                 const ForcedChoice& choice);

/// Whether the plan's operator does so already.
bool does_already(const Model& model, const Mesh& mesh, const PlanOperator& op, const ForcedChoice& choice);

}  // namespace search

}  // namespace turnpoint
