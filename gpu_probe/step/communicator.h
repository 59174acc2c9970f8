// SPDX-License-Identifier: Apache-2.0
// Collectives between the ranks of one step. A backend gives one thing, sending to a rank while receiving from one;
// rings over it are here, so that the bytes of every collective are counted where they arrive. Another backend may
// bring collectives of its own.
//
// Pieces need not be equal: `cuts` has one entry more than the group has members, from 0 to the length of `data`;
// member i owns [cuts[i], cuts[i + 1]). Over all members a ring receives exactly (n - 1) x length elements in an
// all-gather or reduce-scatter and twice that in an all-reduce: what resources/manual/costs.md, 4, counts, whatever the
// cuts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/expected.h"
#include "gpu_probe/step/values/place.h"

namespace turnpoint::step {

/// Ranks that work together, in the order of their pieces; the calling rank is one of them.
using Group = std::vector<int>;
using Cuts = std::vector<std::int64_t>;
/// `members` pieces as equal as can be, the first ones longer.
Cuts even_cuts(std::int64_t length, std::size_t members);

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Sends `out` to one rank and receives `in` from one; both may be this rank, neither may be alone. All ranks that
  /// are named do the same. Error: another rank has given up.
  virtual Expected<void> exchange(int to, ConstNumbers out, int from, Numbers in) = 0;
  /// Before a step that is timed: what follows is to begin at once, on all ranks that have a device each.
  virtual Expected<void> line_up() { return {}; }
  /// Whether it chooses by itself how a collective goes, as a communication library does.
  virtual bool has_ways_of_its_own() const { return false; }
  /// Wakes all ranks that wait, with an error.
  virtual void give_up() = 0;

  virtual Expected<void> all_gather(const Group& group, const Cuts& cuts, Numbers data);
  /// Afterwards the caller's own piece holds the sum; the others are not defined.
  virtual Expected<void> reduce_scatter(const Group& group, const Cuts& cuts, Numbers data);
  virtual Expected<void> all_reduce(const Group& group, Numbers data);
  /// Part i of `out` goes to member i; part i of `in` comes from there.
  virtual Expected<void> all_to_all(const Group& group, const std::vector<ConstNumbers>& out,
                                    const std::vector<Numbers>& in);

  /// Elements that have arrived here from other ranks since the last call.
  std::int64_t take_received();

 protected:
  std::int64_t received_ = 0;
};

/// One rank of many, without the others: what they would send is filled with this rank's own numbers.
std::unique_ptr<Communicator> lone_communicator(int ranks, int rank);

/// Ranks as threads of this process: the mailboxes that they share.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks);
  ~ThreadRanks();
  std::unique_ptr<Communicator> communicator(int rank);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace turnpoint::step
