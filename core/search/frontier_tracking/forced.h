// SPDX-License-Identifier: Apache-2.0
// What a person asks of single operators, as a restriction of a search that is there already: of its choices those stay
// that do as asked. The structure keeps its states, so that nothing else becomes impossible, and most of its prices.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/search/frontier_tracking/costs.h"

namespace turnpoint::search {

/// Whether an operator runs again in backward, as far as it can, or never.
enum class ForcedAgain : std::uint8_t { free, keep, again };

/// Which choices of an operator are left.
struct Forced {
  std::function<bool(OperatorId, const Configuration&)> split;  ///< on the structure's mesh; empty: all
  std::function<bool(const MemoryChoice&)> choice;              ///< empty: all. Running again is not its matter
  ForcedAgain again = ForcedAgain::free;
};
/// [operator]; null: it is free. Operators that share one are equal where they were equal before, if its functions say
/// the same of both.
using ForcedOperators = std::vector<std::shared_ptr<const Forced>>;

/// The choices of an operator that are left under one configuration, by rising memory; of what was dominated by choices
/// that are gone, too. Empty: none.
std::vector<OperatorCostModel::Alternative> forced_alternatives(const Prices& prices, const Variable& variable,
                                                                std::size_t configuration, const Forced& forced);

/// Whether anything is left of the operator's choices.
bool can_be_forced(const Prices& prices, OperatorId op, const Forced& forced);

/// A priced problem of which only that is left. Plans of `problem` become plans of `priced` by as_priced().
class ForcedProblem {
 public:
  /// `free`: the prices of a whole structure, `problem` what price_problem() has made of them.
  ForcedProblem(const std::shared_ptr<const Prices>& free, const PricedProblem& problem, const ForcedOperators& forced);

  const frontier::Problem& problem() const { return problem_; }
  const PricedProblem& priced() const { return priced_; }
  const std::shared_ptr<const Prices>& prices() const { return prices_; }
  /// The same choices where entries of pairs have all their alternatives.
  void as_priced(frontier::Point& plan) const;

 private:
  std::shared_ptr<const Prices> prices_;
  PricedProblem priced_;       ///< its operators' entries are those that are left
  frontier::Problem problem_;  ///< the same, and so are the pairs'
  /// [pair]: of an entry's points in problem_, back to back, which alternatives they are; null: all.
  std::vector<std::shared_ptr<const std::vector<std::uint16_t>>> alternatives_;
};

}  // namespace turnpoint::search
