// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/collectives.h"

#include <sched.h>
#include <algorithm>
#include <cassert>
#include <cstring>

namespace turnpoint::probe {

namespace {

constexpr std::int64_t kSlot = static_cast<std::int64_t>(SharedRegion::kSlotFloats);

void copy(float* to, const float* from, std::int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}

void add(float* to, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

Group Communicator::all() const { return group_of(ranks()); }

Group Communicator::group_of(int size) const {
  Group group(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) group[static_cast<std::size_t>(i)] = rank() / size * size + i;
  return group;
}

int Communicator::index_in(const Group& group) const {
  const auto it = std::find(group.begin(), group.end(), rank());
  assert(it != group.end());
  return static_cast<int>(it - group.begin());
}

void Communicator::count_all_reduce(std::int64_t count, std::int64_t members, std::int64_t mine) {
  const auto n = static_cast<double>(members);
  sent_bytes_ += 2.0 * 4.0 * static_cast<double>(count) * (n - 1) / n;
  received_ += (members - 1) * mine + count - mine;
}

void Communicator::count_gather(std::int64_t count, std::int64_t members) {
  sent_bytes_ += 4.0 * static_cast<double>(count) * static_cast<double>(members - 1);
  received_ += count * (members - 1);
}

void Communicator::take_counts(Communicator& other) {
  sent_bytes_ += std::exchange(other.sent_bytes_, 0);
  received_ += other.take_received();
}

SharedCommunicator::SharedCommunicator(SharedRegion& region, int rank)
    : Communicator(rank, region.ranks()), region_(region) {}

bool SharedCommunicator::wait_until(const SharedRegion::Counter& counter, std::uint64_t value) const {
  // A short spin for ranks that run side by side, then the core is given to the one waited for.
  for (std::uint64_t spins = 0; counter.load(std::memory_order_acquire) < value; ++spins) {
    if (spins < 200) continue;
    if (spins % 64 == 0 && region_.aborted()) return false;
    sched_yield();
  }
  return true;
}

bool SharedCommunicator::barrier(const Group& group) {
  for (const int peer : group)
    if (peer != rank()) region_.arrived(rank(), peer).fetch_add(1, std::memory_order_acq_rel);
  for (const int peer : group)
    if (peer != rank() &&
        !wait_until(region_.arrived(peer, rank()), region_.arrived(rank(), peer).load(std::memory_order_relaxed)))
      return false;
  return !region_.aborted();
}

// In each collective the slots are free again for any other group when it ends: the last barrier says so.

bool SharedCommunicator::all_reduce(const Group& group, float* data, std::int64_t count) {
  const auto members = static_cast<std::int64_t>(group.size());
  const int me = index_in(group);
  const auto part = [&](std::int64_t size, std::int64_t index) { return size * index / members; };
  std::int64_t owned = 0;
  for (std::int64_t at = 0; at < count; at += kSlot) {
    const std::int64_t size = std::min(kSlot, count - at), first = part(size, me), last = part(size, me + 1);
    copy(region_.in(rank()), data + at, size);
    if (!barrier(group)) return false;
    float* sum = region_.out(rank());
    copy(sum + first, region_.in(group[0]) + first, last - first);
    for (std::size_t peer = 1; peer < group.size(); ++peer)
      add(sum + first, region_.in(group[peer]) + first, last - first);
    owned += last - first;
    if (!barrier(group)) return false;
    for (std::int64_t peer = 0; peer < members; ++peer) {
      const std::int64_t from = part(size, peer), to = part(size, peer + 1);
      copy(data + at + from, region_.out(group[static_cast<std::size_t>(peer)]) + from, to - from);
    }
  }
  count_all_reduce(count, members, owned);
  return barrier(group);
}

bool SharedCommunicator::all_gather(const Group& group, const float* in, float* out, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kSlot) {
    const std::int64_t size = std::min(kSlot, count - at);
    copy(region_.in(rank()), in + at, size);
    if (!barrier(group)) return false;
    for (std::size_t peer = 0; peer < group.size(); ++peer)
      copy(out + static_cast<std::int64_t>(peer) * count + at, region_.in(group[peer]), size);
    if (!barrier(group)) return false;
  }
  count_gather(count, static_cast<std::int64_t>(group.size()));
  return true;
}

bool SharedCommunicator::reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) {
  const auto members = static_cast<std::int64_t>(group.size());
  const std::int64_t chunk = kSlot / members, me = index_in(group);
  for (std::int64_t at = 0; at < count; at += chunk) {
    const std::int64_t size = std::min(chunk, count - at);
    for (std::int64_t peer = 0; peer < members; ++peer)
      copy(region_.in(rank()) + peer * size, in + peer * count + at, size);
    if (!barrier(group)) return false;
    copy(out + at, region_.in(group[0]) + me * size, size);
    for (std::size_t peer = 1; peer < group.size(); ++peer) add(out + at, region_.in(group[peer]) + me * size, size);
    if (!barrier(group)) return false;
  }
  count_gather(count, members);
  return true;
}

bool SharedCommunicator::all_to_all(const Group& group, const float* in, float* out, std::int64_t count) {
  const auto members = static_cast<std::int64_t>(group.size());
  const std::int64_t chunk = kSlot / members, me = index_in(group);
  for (std::int64_t at = 0; at < count; at += chunk) {
    const std::int64_t size = std::min(chunk, count - at);
    for (std::int64_t peer = 0; peer < members; ++peer)
      copy(region_.in(rank()) + peer * size, in + peer * count + at, size);
    if (!barrier(group)) return false;
    for (std::int64_t peer = 0; peer < members; ++peer)
      copy(out + peer * count + at, region_.in(group[static_cast<std::size_t>(peer)]) + me * size, size);
    if (!barrier(group)) return false;
  }
  count_sent(count * (members - 1));
  return true;
}

bool SharedCommunicator::broadcast(const Group& group, float* data, std::int64_t count, int root) {
  for (std::int64_t at = 0; at < count; at += kSlot) {
    const std::int64_t size = std::min(kSlot, count - at);
    if (rank() == root) copy(region_.in(root), data + at, size);
    if (!barrier(group)) return false;
    if (rank() != root) copy(data + at, region_.in(root), size);
    if (!barrier(group)) return false;
  }
  if (rank() == root) count_sent(count);
  return true;
}

bool SharedCommunicator::send_receive(int to, const float* in, int from, float* out, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kSlot) {
    const std::int64_t size = std::min(kSlot, count - at);
    if (to >= 0) {
      copy(region_.in(rank()), in + at, size);
      region_.posted(rank(), to).fetch_add(1, std::memory_order_acq_rel);
    }
    if (from >= 0) {
      // What this rank has taken so far tells which chunk is next.
      auto& taken = region_.taken(rank(), from);
      if (!wait_until(region_.posted(from, rank()), taken.load(std::memory_order_relaxed) + 1)) return false;
      copy(out + at, region_.in(from), size);
      taken.fetch_add(1, std::memory_order_acq_rel);
    }
    if (to >= 0 && !wait_until(region_.taken(to, rank()), region_.posted(rank(), to).load(std::memory_order_relaxed)))
      return false;
  }
  if (to >= 0) count_sent(count);
  return !region_.aborted();
}

}  // namespace turnpoint::probe
