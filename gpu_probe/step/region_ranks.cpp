// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/region_ranks.h"

#include <sched.h>
#include <algorithm>
#include <cstring>
#include <span>

#include "gpu_probe/ranks/collectives.h"

namespace turnpoint::step::TURNPOINT_REAL {

namespace {

class RegionCommunicator : public Communicator {
 public:
  RegionCommunicator(probe::SharedRegion& region, int rank)
      : region_(region),
        rank_(rank)
#ifdef TURNPOINT_STEP_FLOAT
        ,
        slots_(region, rank)
#endif
  {
  }
  int rank() const override { return rank_; }
  int ranks() const override { return region_.ranks(); }
  void give_up() override { region_.abort(); }

  // Chunk by chunk, both directions at once, so that a ring in which all send first does not wait for itself. A chunk
  // is in the sender's slot from when it is posted until its receiver has taken it; nothing is posted for an empty
  // message.
  Expected<void> exchange(int to, std::span<const Real> out, int from, std::span<Real> in) override {
    if (to == rank_ || from == rank_) {
      if (to != from || out.size() != in.size())
        return Error{ErrorCode::device, "a rank exchanges with itself and another at once", {}, {}};
      std::copy(out.begin(), out.end(), in.begin());
      return {};
    }
    constexpr std::size_t kChunk = probe::SharedRegion::kSlotFloats * sizeof(float) / sizeof(Real);
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
        std::memcpy(region_.in(rank_), out.data() + sent, size * sizeof(Real));
        posted.fetch_add(1, std::memory_order_acq_rel);
        sent += size;
        moved = true;
      }
      if (got < in.size() && their_posted.load(std::memory_order_acquire) > taken.load(std::memory_order_relaxed)) {
        const std::size_t size = std::min(kChunk, in.size() - got);
        std::memcpy(in.data() + got, region_.in(from), size * sizeof(Real));
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

#ifdef TURNPOINT_STEP_FLOAT
  // In float the collectives are those that are measured, where they can do it: with equal pieces.
  Expected<void> all_reduce(const Group& group, std::span<float> data) override {
    return through_slots(slots_.all_reduce(group, data.data(), static_cast<std::int64_t>(data.size())));
  }
  Expected<void> all_gather(const Group& group, const Cuts& cuts, std::span<float> data) override {
    if (!equal(cuts)) return Communicator::all_gather(group, cuts, data);
    const float* mine = data.data() + cuts[place_in(group)];
    return through_slots(slots_.all_gather(group, mine, data.data(), cuts[1]));
  }
  Expected<void> reduce_scatter(const Group& group, const Cuts& cuts, std::span<float> data) override {
    if (!equal(cuts)) return Communicator::reduce_scatter(group, cuts, data);
    float* mine = data.data() + cuts[place_in(group)];
    return through_slots(slots_.reduce_scatter(group, data.data(), mine, cuts[1]));
  }

 private:
  std::size_t place_in(const Group& group) const {
    return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
  }
  static bool equal(const Cuts& cuts) {
    for (std::size_t i = 1; i < cuts.size(); ++i)
      if (cuts[i] - cuts[i - 1] != cuts[1]) return false;
    return cuts.front() == 0;
  }
  Expected<void> through_slots(bool fine) {
    received_ += slots_.take_received();
    if (fine) return {};
    return Error{ErrorCode::device, "another rank gave up", {}, {}};
  }
#endif

 private:
  probe::SharedRegion& region_;
  int rank_;
#ifdef TURNPOINT_STEP_FLOAT
  probe::Communicator slots_;
#endif
};

void fill(std::span<const Real> with, std::span<Real> to) {
  for (std::size_t at = 0; at < to.size(); at += with.size()) {
    if (with.empty()) return std::fill(to.begin(), to.end(), Real(0.5));
    const std::size_t count = std::min(with.size(), to.size() - at);
    std::copy(with.begin(), with.begin() + static_cast<std::ptrdiff_t>(count),
              to.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

class LoneCommunicator : public Communicator {
 public:
  LoneCommunicator(int ranks, int rank) : ranks_(ranks), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void give_up() override {}
  Expected<void> exchange(int, std::span<const Real> out, int, std::span<Real> in) override {
    fill(out, in);
    return {};
  }
  Expected<void> all_gather(const Group& group, const Cuts& cuts, std::span<Real> data) override {
    const auto me = static_cast<std::size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
    const auto piece = [&](std::size_t i) {
      return data.subspan(static_cast<std::size_t>(cuts[i]), static_cast<std::size_t>(cuts[i + 1] - cuts[i]));
    };
    for (std::size_t i = 0; i < group.size(); ++i)
      if (i != me) fill(piece(me), piece(i));
    return {};
  }
  Expected<void> reduce_scatter(const Group&, const Cuts&, std::span<Real>) override { return {}; }
  Expected<void> all_reduce(const Group&, std::span<Real>) override { return {}; }

 private:
  int ranks_, rank_;
};

}  // namespace

std::unique_ptr<Communicator> lone_communicator(int ranks, int rank) {
  return std::make_unique<LoneCommunicator>(ranks, rank);
}

std::unique_ptr<Communicator> region_communicator(probe::SharedRegion& region, int rank) {
  return std::make_unique<RegionCommunicator>(region, rank);
}

}  // namespace turnpoint::step::TURNPOINT_REAL
