// SPDX-License-Identifier: Apache-2.0
// A structure with few configurations: those that known plans use. What is searched over it is a restriction of the
// whole search, so that every plan of it is a plan of the whole, at the same cost; and it is small enough to be priced
// and searched within a frame of a slider's move.
#pragma once

#include <memory>
#include <vector>

#include "core/frontier/problem.h"
#include "core/search/frontier_tracking/structure.h"

namespace turnpoint::search {

/// Which configurations of a structure some plans use. Variables that share their choices (equal layers) share what is
/// wanted of them, so that their tables stay one.
class WantedStates {
 public:
  explicit WantedStates(const Structure& structure);

  /// Notes the configurations of a plan of the structure.
  void add(const frontier::Point& plan);
  /// The same where the plan belongs to a structure narrowed to `kept`.
  void add(const frontier::Point& plan, const std::vector<std::vector<std::uint32_t>>& kept);
  /// Per variable the wanted configurations, ascending. Every variable has one at least once a plan was added.
  std::vector<std::vector<std::uint32_t>> states() const;
  /// How many distinct pairs of variable group and configuration are wanted.
  std::size_t count() const { return count_; }

 private:
  void note(std::size_t variable, std::uint32_t configuration);

  std::vector<std::uint32_t> group_of_;    ///< per variable
  std::vector<std::vector<char>> wanted_;  ///< per group and configuration
  std::size_t count_ = 0;
};

/// The structure with the configurations `kept` only (per variable, ascending, not empty, equal for variables that
/// share their choices).
std::shared_ptr<const Structure> narrow_structure(const Structure& structure,
                                                  const std::vector<std::vector<std::uint32_t>>& kept);

}  // namespace turnpoint::search
