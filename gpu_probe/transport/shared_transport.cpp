// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <algorithm>
#include <cstring>

#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

// Chunk by chunk, both directions at once, so that a ring in which all send first does not wait for itself. A chunk is
// in the sender's one slot from when it is posted until its receiver has taken it, so peers are served in turn; nothing
// is posted for an empty message.
bool SharedTransport::exchange(std::span<const Part> parts) {
  constexpr std::size_t kAtOnce = SharedRegion::kSlotFloats * sizeof(float);
  const auto place = [&](const Part& part) { return places_[static_cast<std::size_t>(part.peer)]; };
  const auto slot_free = [&](const Part& part) {
    return region_.taken(place(part), place_).load(std::memory_order_acquire) ==
           region_.posted(place_, place(part)).load(std::memory_order_relaxed);
  };
  std::vector<std::size_t> got(parts.size(), 0);
  std::size_t sending = 0, sent = 0, receiving = 0;
  for (const auto& part : parts) receiving += part.in.empty() ? 0 : 1;
  for (std::uint64_t spins = 0; sending < parts.size() || receiving > 0; ++spins) {
    bool moved = false;
    if (sending < parts.size() && slot_free(parts[sending])) {
      const Part& part = parts[sending];
      const std::size_t size = std::min(kAtOnce, part.out.size() - sent);
      if (size > 0) {
        std::memcpy(region_.in(place_), part.out.data() + sent, size);
        region_.posted(place_, place(part)).fetch_add(1, std::memory_order_acq_rel);
        sent += size;
      } else {
        ++sending;
        sent = 0;
      }
      moved = true;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (got[i] == part.in.size()) continue;
      auto& taken = region_.taken(place_, place(part));
      if (region_.posted(place(part), place_).load(std::memory_order_acquire) <= taken.load(std::memory_order_relaxed))
        continue;
      const std::size_t size = std::min(kAtOnce, part.in.size() - got[i]);
      std::memcpy(part.in.data() + got[i], region_.in(place(part)), size);
      taken.fetch_add(1, std::memory_order_acq_rel);
      got[i] += size;
      receiving -= got[i] == part.in.size() ? 1 : 0;
      moved = true;
    }
    if (moved || spins < 200) continue;
    if (region_.aborted()) return false;
    sched_yield();
  }
  return true;
}

bool MixedTransport::exchange(std::span<const Part> parts) {
  std::vector<Part> near, far;
  for (const auto& part : parts) (is_inside_[static_cast<std::size_t>(part.peer)] ? near : far).push_back(part);
  return (near.empty() || inside_->exchange(near)) && (far.empty() || between_->exchange(far));
}

void MixedTransport::abort() {
  inside_->abort();
  between_->abort();
}

}  // namespace turnpoint::probe
