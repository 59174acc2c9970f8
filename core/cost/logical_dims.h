// SPDX-License-Identifier: Apache-2.0
// Logical dimensions of a model: loop dimensions of different operators that are one and the same because a tensor
// carries one into the other ("batch", "the channels of the residual stream", "the heads of layer 3").
//
// Mesh-TensorFlow (arXiv 1811.02084) lets its user name them; here they are found: two loop dimensions are one class
// if they walk the same dimension of the same tensor, outermost walker only, since only that can be split. A tensor
// that attention reads along its keys is renamed there ("memory length"), so the sequence of the queries and that of
// the keys stay apart.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cost/layout.h"
#include "core/model/model.h"

namespace turnpoint {

struct LoopRef {
  OperatorId op;
  int loop = 0;
  friend auto operator<=>(const LoopRef&, const LoopRef&) = default;
};

struct LogicalDims {
  struct Class {
    std::vector<LoopRef> members;   ///< by operator, then loop; those of `input` operators are left out
    bool splittable = true;         ///< every member may be split
    DimName name = DimName::other;  ///< of the first member that has a better one than channel or other
  };
  std::vector<Class> classes;
  std::vector<std::vector<int>> of;  ///< [operator][loop]: class; -1 for loops of an `input` operator
  int at(OperatorId op, int loop) const { return of[op.index][static_cast<std::size_t>(loop)]; }
};

/// `also_equal`, if given, lists further pairs of loop dimensions to be taken for one.
LogicalDims analyse_logical_dims(const Model& model, bool split_windows,
                                 const std::vector<std::pair<LoopRef, LoopRef>>& also_equal = {});

/// Whether an operator multiplies an activation with a weight matrix.
bool is_weighted_product(const Model& model, const Operator& op);
/// Index of the first input that is a parameter of two or more dimensions, views of one included; -1: none.
int weight_input(const Model& model, const Operator& op);

}  // namespace turnpoint
