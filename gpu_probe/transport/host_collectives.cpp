// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/host_collectives.h"

#include <algorithm>
#include <cstring>

namespace turnpoint::probe {

namespace {

constexpr std::int64_t kChunk = std::int64_t(1) << 20;         // floats at a time, so that scratch memory stays small
constexpr std::int64_t kShortMessage = std::int64_t(1) << 14;  // floats that a root sends to everyone itself

std::span<const std::byte> bytes_of(const float* data, std::int64_t count) {
  return std::as_bytes(std::span(data, static_cast<std::size_t>(count)));
}
std::span<std::byte> bytes_in(float* data, std::int64_t count) {
  return std::as_writable_bytes(std::span(data, static_cast<std::size_t>(count)));
}

}  // namespace

HostCommunicator::HostCommunicator(SharedRegion& region, Transport& transport, int rank, std::vector<int> nodes,
                                   std::vector<int> places, std::unique_ptr<Communicator> between)
    : Communicator(rank, static_cast<int>(nodes.size())),
      shared_(region, places[static_cast<std::size_t>(rank)]),
      transport_(transport),
      nodes_(std::move(nodes)),
      places_(std::move(places)),
      between_(std::move(between)) {}

Group HostCommunicator::inside(const Group& group) const {
  Group local;
  for (const int member : group) {
    const auto m = static_cast<std::size_t>(member);
    if (nodes_[m] != nodes_[static_cast<std::size_t>(rank())]) return {};
    local.push_back(places_[m]);
  }
  return local;
}

const char* HostCommunicator::carrier(const Group& group) const {
  return !inside(group).empty() ? "shared memory" : between_ ? between_->carrier(group) : "TCP";
}

bool HostCommunicator::counted(bool fine) {
  take_counts(shared_);
  return fine;
}

bool HostCommunicator::counted_between(bool fine) {
  take_counts(*between_);
  return fine;
}

bool HostCommunicator::barrier(const Group& group) {
  if (const Group local = inside(group); !local.empty()) return shared_.barrier(local);
  if (between_) return counted_between(between_->barrier(group));
  const std::byte out{};
  std::vector<std::byte> in(group.size());
  std::vector<Part> parts;
  for (std::size_t i = 0; i < group.size(); ++i)
    if (group[i] != rank()) parts.push_back({group[i], {&out, 1}, {&in[i], 1}});
  return transport_.exchange(parts);
}

bool HostCommunicator::all_reduce(const Group& group, float* data, std::int64_t count) {
  if (const Group local = inside(group); !local.empty()) return counted(shared_.all_reduce(local, data, count));
  if (between_) return counted_between(between_->all_reduce(group, data, count));
  const auto members = static_cast<std::int64_t>(group.size());
  const std::int64_t me = index_in(group);
  const auto edge = [&](std::int64_t size, std::int64_t index) { return size * index / members; };
  std::int64_t owned = 0;
  std::vector<Part> parts;
  for (std::int64_t at = 0; at < count; at += kChunk) {
    const std::int64_t size = std::min(kChunk, count - at), first = edge(size, me), mine = edge(size, me + 1) - first;
    scratch_.resize(static_cast<std::size_t>(mine * members));
    sum_.resize(static_cast<std::size_t>(mine));
    owned += mine;
    parts.clear();
    for (std::int64_t peer = 0; peer < members; ++peer)
      if (peer != me)
        parts.push_back({group[static_cast<std::size_t>(peer)],
                         bytes_of(data + at + edge(size, peer), edge(size, peer + 1) - edge(size, peer)),
                         bytes_in(scratch_.data() + peer * mine, mine)});
    if (!transport_.exchange(parts)) return false;
    for (std::int64_t peer = 0; peer < members; ++peer) {
      const float* from = peer == me ? data + at + first : scratch_.data() + peer * mine;
      for (std::int64_t i = 0; i < mine; ++i) {
        float& sum = sum_[static_cast<std::size_t>(i)];
        sum = peer == 0 ? from[i] : sum + from[i];
      }
    }
    parts.clear();
    for (std::int64_t peer = 0; peer < members; ++peer)
      if (peer != me)
        parts.push_back({group[static_cast<std::size_t>(peer)], bytes_of(sum_.data(), mine),
                         bytes_in(data + at + edge(size, peer), edge(size, peer + 1) - edge(size, peer))});
    if (!transport_.exchange(parts)) return false;
    std::copy(sum_.begin(), sum_.end(), data + at + first);
  }
  count_all_reduce(count, members, owned);
  return true;
}

bool HostCommunicator::all_gather(const Group& group, const float* in, float* out, std::int64_t count) {
  if (const Group local = inside(group); !local.empty()) return counted(shared_.all_gather(local, in, out, count));
  if (between_) return counted_between(between_->all_gather(group, in, out, count));
  std::vector<Part> parts;
  for (std::size_t peer = 0; peer < group.size(); ++peer) {
    float* to = out + static_cast<std::int64_t>(peer) * count;
    if (group[peer] != rank())
      parts.push_back({group[peer], bytes_of(in, count), bytes_in(to, count)});
    else if (to != in && count > 0)
      std::memmove(to, in, static_cast<std::size_t>(count) * sizeof(float));
  }
  count_gather(count, static_cast<std::int64_t>(group.size()));
  return transport_.exchange(parts);
}

bool HostCommunicator::reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) {
  if (const Group local = inside(group); !local.empty()) return counted(shared_.reduce_scatter(local, in, out, count));
  if (between_) return counted_between(between_->reduce_scatter(group, in, out, count));
  const auto members = static_cast<std::int64_t>(group.size());
  const std::int64_t me = index_in(group), chunk = std::max<std::int64_t>(1, kChunk / members);
  std::vector<Part> parts;
  for (std::int64_t at = 0; at < count; at += chunk) {
    const std::int64_t size = std::min(chunk, count - at);
    scratch_.resize(static_cast<std::size_t>(size * members));
    sum_.resize(static_cast<std::size_t>(size));
    parts.clear();
    for (std::int64_t peer = 0; peer < members; ++peer)
      if (peer != me)
        parts.push_back({group[static_cast<std::size_t>(peer)], bytes_of(in + peer * count + at, size),
                         bytes_in(scratch_.data() + peer * size, size)});
    if (!transport_.exchange(parts)) return false;
    for (std::int64_t peer = 0; peer < members; ++peer) {
      const float* from = peer == me ? in + me * count + at : scratch_.data() + peer * size;
      for (std::int64_t i = 0; i < size; ++i) {
        float& sum = sum_[static_cast<std::size_t>(i)];
        sum = peer == 0 ? from[i] : sum + from[i];
      }
    }
    // Only now: `out` may be this rank's own part of `in`.
    std::copy(sum_.begin(), sum_.end(), out + at);
  }
  count_gather(count, members);
  return true;
}

bool HostCommunicator::all_to_all(const Group& group, const float* in, float* out, std::int64_t count) {
  if (const Group local = inside(group); !local.empty()) return counted(shared_.all_to_all(local, in, out, count));
  if (between_) return counted_between(between_->all_to_all(group, in, out, count));
  std::vector<Part> parts;
  for (std::size_t peer = 0; peer < group.size(); ++peer) {
    const std::int64_t at = static_cast<std::int64_t>(peer) * count;
    if (group[peer] != rank())
      parts.push_back({group[peer], bytes_of(in + at, count), bytes_in(out + at, count)});
    else
      std::copy_n(in + at, count, out + at);
  }
  count_sent(count * static_cast<std::int64_t>(group.size() - 1));
  return transport_.exchange(parts);
}

bool HostCommunicator::broadcast(const Group& group, float* data, std::int64_t count, int root) {
  if (const Group local = inside(group); !local.empty())
    return counted(shared_.broadcast(local, data, count, places_[static_cast<std::size_t>(root)]));
  if (between_) return counted_between(between_->broadcast(group, data, count, root));
  if (rank() == root) count_sent(count);
  const auto members = static_cast<std::int64_t>(group.size());
  const bool whole = count < kShortMessage;
  const std::int64_t me = index_in(group);
  const auto edge = [&](std::int64_t index) { return count * index / members; };
  std::vector<Part> parts;
  // Long ones: each member gets a part from the root, and from each other member the part that this one got.
  for (std::int64_t peer = 0; peer < members && rank() == root; ++peer)
    if (peer != me)
      parts.push_back({group[static_cast<std::size_t>(peer)],
                       whole ? bytes_of(data, count) : bytes_of(data + edge(peer), edge(peer + 1) - edge(peer)),
                       {}});
  if (rank() != root)
    parts.push_back({root, {}, whole ? bytes_in(data, count) : bytes_in(data + edge(me), edge(me + 1) - edge(me))});
  if (!transport_.exchange(parts) || whole) return !transport_.lost();
  parts.clear();
  for (std::int64_t peer = 0; peer < members; ++peer) {
    const int other = group[static_cast<std::size_t>(peer)];
    if (peer == me) continue;
    const auto out = other == root ? std::span<const std::byte>() : bytes_of(data + edge(me), edge(me + 1) - edge(me));
    const auto in = rank() == root ? std::span<std::byte>() : bytes_in(data + edge(peer), edge(peer + 1) - edge(peer));
    parts.push_back({other, out, in});
  }
  return transport_.exchange(parts);
}

bool HostCommunicator::send_receive(int to, const float* in, int from, float* out, std::int64_t count) {
  std::vector<Part> parts;
  if (to >= 0) parts.push_back({to, bytes_of(in, count), {}});
  if (from >= 0 && from == to) parts.back().in = bytes_in(out, count);
  if (from >= 0 && from != to) parts.push_back({from, {}, bytes_in(out, count)});
  if (to >= 0) count_sent(count);
  return transport_.exchange(parts);
}

}  // namespace turnpoint::probe
