// SPDX-License-Identifier: Apache-2.0
// Collectives between ranks, over any group of them; groups may run at the same time and a rank may be in one group now
// and in another next. Sums are taken in rank order, so every member holds the same bits, whatever carries them. All
// return false once a rank has died.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu_probe/transport/shared_region.h"

namespace turnpoint::probe {

/// Ranks that work together, ascending.
using Group = std::vector<int>;

class Communicator {
 public:
  Communicator(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  virtual ~Communicator() = default;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Group all() const;
  /// The consecutive group of this size that this rank is in.
  Group group_of(int size) const;

  // Counts are elements. In each, every member of the group calls with the same counts; this rank must be a member.
  [[nodiscard]] virtual bool barrier(const Group& group) = 0;
  [[nodiscard]] virtual bool all_reduce(const Group& group, float* data, std::int64_t count) = 0;
  /// `out` has count x members elements, in the order of the group.
  [[nodiscard]] virtual bool all_gather(const Group& group, const float* in, float* out, std::int64_t count) = 0;
  /// `in` has count x members elements; this rank receives the sum of its part.
  [[nodiscard]] virtual bool reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) = 0;
  /// Part i of `in` goes to member i; part i of `out` comes from it; count elements each.
  [[nodiscard]] virtual bool all_to_all(const Group& group, const float* in, float* out, std::int64_t count) = 0;
  [[nodiscard]] virtual bool broadcast(const Group& group, float* data, std::int64_t count, int root) = 0;
  /// Sends `in` to rank `to` and receives `out` from rank `from`; -1: neither. Both may be given at once.
  [[nodiscard]] virtual bool send_receive(int to, const float* in, int from, float* out, std::int64_t count) = 0;

  /// Ranks of one node share memory.
  virtual int node_of(int) const { return 0; }
  /// What carries the data of this group: "shared memory", "TCP".
  virtual const char* carrier(const Group& group) const = 0;

  /// Bytes that this rank has sent in the ring's counting, as resources/manual/costs.md, 4, has it: what a plan
  /// predicts.
  double sent_bytes() const { return sent_bytes_; }
  /// Elements received from other ranks in all-reduces, all-gathers and reduce-scatters, since the last call.
  std::int64_t take_received() { return std::exchange(received_, 0); }

 protected:
  int index_in(const Group& group) const;
  /// What the calls above add to both counts.
  void count_all_reduce(std::int64_t count, std::int64_t members, std::int64_t mine);
  void count_gather(std::int64_t count, std::int64_t members);
  void take_counts(Communicator& other);
  void count_sent(std::int64_t count) { sent_bytes_ += 4.0 * static_cast<double>(count); }

 private:
  int rank_, ranks_;
  double sent_bytes_ = 0;
  std::int64_t received_ = 0;
};

/// Through the memory that the ranks of one host share: data go through slots in chunks.
class SharedCommunicator : public Communicator {
 public:
  SharedCommunicator(SharedRegion& region, int rank);

  [[nodiscard]] bool barrier(const Group& group) override;
  [[nodiscard]] bool all_reduce(const Group& group, float* data, std::int64_t count) override;
  [[nodiscard]] bool all_gather(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool all_to_all(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool broadcast(const Group& group, float* data, std::int64_t count, int root) override;
  [[nodiscard]] bool send_receive(int to, const float* in, int from, float* out, std::int64_t count) override;
  const char* carrier(const Group&) const override { return "shared memory"; }

 private:
  bool wait_until(const SharedRegion::Counter& counter, std::uint64_t value) const;

  SharedRegion& region_;
};

}  // namespace turnpoint::probe
