// SPDX-License-Identifier: Apache-2.0
// Collectives between the ranks of one step. A backend gives sends and receives, or its own collectives; rings over
// sends and receives are here, so that the bytes of every collective can be counted where they arrive.
//
// Pieces need not be equal: `cuts` has one entry more than the group has members, from 0 to the length of `data`;
// member i owns [cuts[i], cuts[i + 1]). Over all members a ring receives exactly (n - 1) x length elements in an
// all-gather or reduce-scatter and twice that in an all-reduce: what design.md 5.4 counts, whatever the cuts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/expected.h"

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

  /// Does not wait for the receiver. Error: another rank has given up.
  virtual Expected<void> send(int to, std::vector<double> data) = 0;
  virtual Expected<std::vector<double>> receive(int from) = 0;
  /// Wakes all ranks that wait, with an error.
  virtual void give_up() = 0;

  virtual Expected<void> all_gather(const Group& group, const Cuts& cuts, std::span<double> data);
  /// Afterwards the caller's own piece holds the sum; the others are not defined.
  virtual Expected<void> reduce_scatter(const Group& group, const Cuts& cuts, std::span<double> data);
  virtual Expected<void> all_reduce(const Group& group, std::span<double> data);
  /// Part i of `parts` goes to member i; part i of the result came from there.
  virtual Expected<std::vector<std::vector<double>>> all_to_all(const Group& group,
                                                                std::vector<std::vector<double>> parts);
  /// Sends to one rank and receives from one; either may be the caller itself.
  virtual Expected<std::vector<double>> exchange(int to, std::vector<double> data, int from);

  /// Elements that have arrived here from other ranks since the last call.
  std::int64_t take_received();

 protected:
  std::int64_t received_ = 0;
};

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
