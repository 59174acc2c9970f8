// SPDX-License-Identifier: Apache-2.0
// A tree of layers over the operators of a Model, for drawing and for folding tables.
//
// Paths come from operator scopes ('/'-separated), else from the operators' names. Operators without either are cut
// into the blocks between places where all goes through one tensor, and these into stages of one shape; else into bands
// of consecutive operators, at the places where the fewest tensors are alive. By construction every group but the root
// has 2..400 children (the root has fewer where the model has): chains of single children are merged into one group, a
// group of one operator becomes that operator, and longer levels are cut into bands. Groups of the same shape_class
// hold the same operators (kind, loop dimensions, tensor shapes), nested and connected in the same way.
// No recursion; time is linear in operators, uses and path components (paths deeper than kMaxDepth are cut there).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/model/model.h"

namespace turnpoint {

inline constexpr std::uint32_t kNoGroup = 0xffffffffu;

struct Hierarchy {
  static constexpr std::size_t kMaxChildren = 400;
  static constexpr std::size_t kMaxDepth = 24;

  /// A group (index into groups) or an operator (index into the model's operators).
  struct Child {
    std::uint32_t index = 0;
    bool is_group = false;
    friend bool operator==(const Child&, const Child&) = default;
  };
  struct Group {
    std::string name;  ///< last part of the path, as shown: "layer3", "h/0"
    std::string path;  ///< unique
    std::uint32_t parent = kNoGroup;
    std::uint32_t ordinal = 0;      ///< index among the parent's children
    std::vector<Child> children;    ///< by first operator
    OperatorId first;               ///< smallest operator inside
    std::uint32_t operators = 0;    ///< operators inside, at any depth
    std::uint32_t shape_class = 0;  ///< equal for groups of equal structure
  };

  std::vector<Group> groups;                    ///< [0] is the root; parents precede their children
  IdVector<OperatorId, std::uint32_t> parent;   ///< the group that holds the operator directly
  IdVector<OperatorId, std::uint32_t> ordinal;  ///< index among that group's children
  IdVector<OperatorId, std::uint32_t>
      operator_class;                       ///< equal for operators of equal kind, dimensions and tensor shapes
  IdVector<OperatorId, std::string> label;  ///< name without the path of its group, short

  /// All operators inside, in the model's order.
  std::vector<OperatorId> operators_of(std::uint32_t group) const;
  /// Per group: whether it only contains layers, so that a picture of layers shows its children instead of itself. The
  /// root is one; others are where numbered or equal groups hold most of the operators.
  std::vector<bool> layer_containers() const;
};

Hierarchy build_hierarchy(const Model& model);

/// "layer12" -> "layer", "h/3" -> "h", "12" -> "": the name without its trailing number and separators.
std::string name_stem(const std::string& name);

}  // namespace turnpoint
