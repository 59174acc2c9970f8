// SPDX-License-Identifier: Apache-2.0
// Collectives between the ranks of one host through shared memory, over any group of them. Data go through slots in
// chunks; groups may run at the same time and a rank may be in one group now and in another next. Sums are taken in
// rank order, so every member holds the same bits. All return false once a rank has died (SharedRegion::abort).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu_probe/ranks/shared_region.h"

namespace turnpoint::probe {

/// Ranks that work together, ascending.
using Group = std::vector<int>;

class Communicator {
 public:
  Communicator(SharedRegion& region, int rank);

  int rank() const { return rank_; }
  int ranks() const { return region_.ranks(); }
  Group all() const;
  /// The consecutive group of this size that this rank is in.
  Group group_of(int size) const;

  // Counts are elements. In each, every member of the group calls with the same counts; this rank must be a member.
  [[nodiscard]] bool barrier(const Group& group);
  [[nodiscard]] bool all_reduce(const Group& group, float* data, std::int64_t count);
  /// `out` has count x members elements, in the order of the group.
  [[nodiscard]] bool all_gather(const Group& group, const float* in, float* out, std::int64_t count);
  /// `in` has count x members elements; this rank receives the sum of its part.
  [[nodiscard]] bool reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count);
  /// Part i of `in` goes to member i; part i of `out` comes from it; count elements each.
  [[nodiscard]] bool all_to_all(const Group& group, const float* in, float* out, std::int64_t count);
  [[nodiscard]] bool broadcast(const Group& group, float* data, std::int64_t count, int root);
  /// Sends `in` to rank `to` and receives `out` from rank `from`; -1: neither. Both may be given at once.
  [[nodiscard]] bool send_receive(int to, const float* in, int from, float* out, std::int64_t count);

  /// Bytes that this rank has sent in the ring's counting, as design.md 5.4 has it: what a plan predicts.
  double sent_bytes() const { return sent_bytes_; }
  /// Elements read from other ranks' slots in all-reduces, all-gathers and reduce-scatters, since the last call.
  std::int64_t take_received() { return std::exchange(received_, 0); }

 private:
  bool wait_until(const SharedRegion::Counter& counter, std::uint64_t value) const;
  int index_in(const Group& group) const;

  SharedRegion& region_;
  int rank_;
  double sent_bytes_ = 0;
  std::int64_t received_ = 0;
};

}  // namespace turnpoint::probe
