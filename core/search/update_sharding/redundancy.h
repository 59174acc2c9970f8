// SPDX-License-Identifier: Apache-2.0
// Which values are the same on all replicas, and which at least on some: work on such values is done more often than
// needed, and can be shared out.
//
// Constants, results of reductions over all replicas, and parameters that the front end marks are the same everywhere.
// What follows from such values by instructions without randomness or side effect is so too. A value that a loop
// carries starts out the same as its first value and is lowered until nothing changes; what is computed under a
// condition is never more alike than the condition.
//
// Sources: Xu et al., arXiv 2004.13336, 3; that a grouped reduction makes values alike inside each group, as
// hlo_replication_analysis of XLA has it.
#pragma once

#include "core/search/update_sharding/program.h"

namespace turnpoint::update_sharding {

/// Which replicas hold the same value: the lowest replica that holds what replica r holds, for each r.
using Alike = std::vector<int>;

class Redundancy {
 public:
  bool redundant(ValueId value) const { return of_[value] == 0; }
  bool same(ValueId value, int a, int b) const {
    const Alike& alike = alike_[of_[value]];
    return alike[static_cast<std::size_t>(a)] == alike[static_cast<std::size_t>(b)];
  }
  const Alike& alike(ValueId value) const { return alike_[of_[value]]; }
  /// Whether some replicas, but not all, are known to hold the same.
  bool partly(ValueId value) const { return of_[value] > 1; }

 private:
  friend Expected<Redundancy> analyse_redundancy(const Program& program);
  std::vector<Alike> alike_;  ///< 0: all alike; 1: none, with one replica the same as 0; others: in between
  IdVector<ValueId, std::uint32_t> of_;
};

/// Error: what check() says of the program.
Expected<Redundancy> analyse_redundancy(const Program& program);

}  // namespace turnpoint::update_sharding
