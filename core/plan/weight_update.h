// SPDX-License-Identifier: Apache-2.0
// How one weight is updated, and why: what methods that shard updates say of each (resources/manual/mathematics.md, 5).
#pragma once

#include <cstdint>
#include <string>

namespace turnpoint {

/// Of an update at every step, s.
struct UpdateSeconds {
  double reduce = 0;  ///< of its gradient, with adding up those of several micro-batches
  double update = 0;  ///< itself, with sums over shards
  double gather = 0;  ///< of whatever readers want whole
  double total() const { return reduce + update + gather; }
  UpdateSeconds& operator+=(const UpdateSeconds& other) {
    reduce += other.reduce, update += other.update, gather += other.gather;
    return *this;
  }
  friend bool operator==(const UpdateSeconds&, const UpdateSeconds&) = default;
};

struct WeightUpdate {
  std::string weight;  ///< its name; several that are updated together joined by ", "
  int shards = 1, replicas = 1;
  double padding = 0;           ///< elements that the shards have more, as a part of the weight's
  int gather_bytes = 4;         ///< an element, as the weight is gathered
  UpdateSeconds whole, chosen;  ///< replicated on all; as it was decided
  std::string reason;           ///< a sentence with the figures, without full stop
  bool sharded() const { return shards > 1; }
  friend bool operator==(const WeightUpdate&, const WeightUpdate&) = default;
};

}  // namespace turnpoint
