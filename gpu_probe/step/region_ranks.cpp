// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/region_ranks.h"

#include <sched.h>
#include <algorithm>
#include <cstring>

namespace turnpoint::step {

namespace {

class RegionCommunicator : public Communicator {
 public:
  RegionCommunicator(probe::SharedRegion& region, int rank) : region_(region), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return region_.ranks(); }
  void give_up() override { region_.abort(); }

  // Chunk by chunk, both directions at once, so that a ring in which all send first does not wait for itself. A chunk
  // is in the sender's slot from when it is posted until its receiver has taken it; nothing is posted for an empty
  // message.
  Expected<void> exchange(int to, std::span<const double> out, int from, std::span<double> in) override {
    if (to == rank_ || from == rank_) {
      if (to != from || out.size() != in.size())
        return Error{ErrorCode::device, "a rank exchanges with itself and another at once", {}, {}};
      std::copy(out.begin(), out.end(), in.begin());
      return {};
    }
    constexpr std::size_t kChunk = probe::SharedRegion::kSlotFloats * sizeof(float) / sizeof(double);
    auto &posted = region_.posted(rank_, to), &their_taken = region_.taken(to, rank_);
    auto &their_posted = region_.posted(from, rank_), &taken = region_.taken(rank_, from);
    std::size_t sent = 0, got = 0;
    const auto slot_free = [&] {
      return their_taken.load(std::memory_order_acquire) == posted.load(std::memory_order_relaxed);
    };
    for (std::uint64_t spins = 0; sent < out.size() || got < in.size() || !slot_free(); ++spins) {
      bool moved = false;
      if (sent < out.size() && slot_free()) {
        const std::size_t size = std::min(kChunk, out.size() - sent);
        std::memcpy(region_.in(rank_), out.data() + sent, size * sizeof(double));
        posted.fetch_add(1, std::memory_order_acq_rel);
        sent += size;
        moved = true;
      }
      if (got < in.size() && their_posted.load(std::memory_order_acquire) > taken.load(std::memory_order_relaxed)) {
        const std::size_t size = std::min(kChunk, in.size() - got);
        std::memcpy(in.data() + got, region_.in(from), size * sizeof(double));
        taken.fetch_add(1, std::memory_order_acq_rel);
        got += size;
        moved = true;
      }
      if (moved || spins < 200) continue;
      if (region_.aborted()) return Error{ErrorCode::device, "another rank gave up", {}, {}};
      sched_yield();
    }
    received_ += static_cast<std::int64_t>(in.size());
    return {};
  }

 private:
  probe::SharedRegion& region_;
  int rank_;
};

}  // namespace

std::unique_ptr<Communicator> region_communicator(probe::SharedRegion& region, int rank) {
  return std::make_unique<RegionCommunicator>(region, rank);
}

}  // namespace turnpoint::step
