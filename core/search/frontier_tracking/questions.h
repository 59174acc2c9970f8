// SPDX-License-Identifier: Apache-2.0
// What the pairs of a structure ask the resharding model. Tensors of one shape are asked about together: a search for
// one target layout serves every pair of layouts that ends there, whichever table needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/search/frontier_tracking/structure.h"

namespace turnpoint::search {

/// The times from each layout of `from` to each of `to`.
struct ReshardQuestion {
  std::vector<std::int64_t> shape;
  int element_bytes = 0;
  std::vector<Layout> from, to;
};

struct ReshardQuestions {
  std::vector<ReshardQuestion> questions;
  std::vector<std::size_t> first;  ///< of each question's answers, [from][to], in the list of all
  std::size_t answers = 0;

  /// Where a table finds its times in the list of all answers.
  struct Table {
    std::vector<std::uint32_t> from, from_whole, to, to_whole;  ///< class of layouts -> row or column below
    std::uint32_t from_whole_count = 0, to_whole_count = 0;
    std::vector<std::uint32_t> forward;   ///< [from][to_whole]
    std::vector<std::uint32_t> backward;  ///< [to][from_whole]; empty where the pair has no gradient
    std::vector<std::uint32_t> restore;   ///< [to_whole][from_whole]; empty where the pair never restores

    std::uint32_t forward_of(std::size_t row, std::size_t column) const {
      return forward[from[row] * to_whole_count + to_whole[column]];
    }
    std::uint32_t backward_of(std::size_t row, std::size_t column) const {
      return backward[to[column] * from_whole_count + from_whole[row]];
    }
    std::uint32_t restore_of(std::size_t row, std::size_t column) const {
      return restore[to_whole[column] * from_whole_count + from_whole[row]];
    }
  };
  std::vector<Table> tables;  ///< one per pair table
};

std::shared_ptr<const ReshardQuestions> collect_questions(const std::vector<PairTable>& tables);

}  // namespace turnpoint::search
