// SPDX-License-Identifier: Apache-2.0
// What a product multiplies and adds where its operands leave dimensions open.
#pragma once

#include <vector>

#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

/// The first operand times another one. Where two operands share the summed loop between them (the keys of a head, and
/// their rotary part that all heads have in common), each holds a part of it, in its last dimension, which the model
/// lets nobody walk.
struct ProductPart {
  std::size_t other = 1;   ///< input
  int loop = -1;           ///< the shared one; -1: the operand walks all its dimensions
  std::int64_t start = 0;  ///< of the part, in the loop
  std::int64_t size = 0;

  std::vector<std::int64_t> sizes(const LocalOperator& at) const;
  std::vector<std::int64_t> strides(const LocalOperator& at, const Block& block) const;  ///< of the other operand
  /// Where the part begins in a block of the first operand with these strides.
  std::int64_t offset(const std::vector<std::int64_t>& strides) const {
    return loop < 0 ? 0 : start * strides[index_of(loop)];
  }
};

struct Product {
  std::vector<ProductPart> parts;
  /// The third operand where it is no part: added where it is walked; or a table that no loop walks (the numbers that
  /// T5 adds by the distance of two positions), of which position p of the result's last dimension takes number p
  /// modulo their count.
  bool bias = false, table = false;
};
/// Error: dimensions that are open in another way.
Expected<Product> product_of(const LocalOperator& at);

/// Neighbours in a table that are added to neighbours along a loop of the result.
struct TableRun {
  std::vector<std::int64_t> sizes, strides;  ///< of the loops of the result; of the table
  std::int64_t from = 0, to = 0;             ///< where the run begins, in the table and in the result
  std::int64_t count = 0;
};
std::vector<TableRun> table_runs(const LocalOperator& at, const std::vector<std::int64_t>& result_strides,
                                 std::size_t elements);

/// The loops of the result alone, for what is added to it: those of stride 0 count once.
std::vector<std::int64_t> loops_of_result(const LocalOperator& at, const std::vector<std::int64_t>& strides);

}  // namespace turnpoint::step
