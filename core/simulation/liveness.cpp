// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/liveness.h"

#include <algorithm>

namespace turnpoint {
namespace {

struct Change {
  double at;
  std::int64_t bytes;  ///< negative: freed
  std::uint32_t device;
  BufferKind kind;
};

void apply(MemorySample& now, const Change& change) {
  switch (change.kind) {
    case BufferKind::activation: now.activation_bytes += change.bytes; break;
    case BufferKind::copy: now.copy_bytes += change.bytes; break;
    case BufferKind::workspace: now.workspace_bytes += change.bytes; break;
  }
}

}  // namespace

std::vector<MemoryOverTime> memory_over_time(const Buffers& buffers, const LaneTimes& times,
                                             const std::vector<std::int64_t>& persistent, bool with_samples) {
  std::vector<double> freed(buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) freed[b] = times.end_s[buffers.made_by[b]];
  for (std::size_t k = 0; k < buffers.read_buffer.size(); ++k)
    freed[buffers.read_buffer[k]] = std::max(freed[buffers.read_buffer[k]], times.end_s[buffers.read_item[k]]);
  std::vector<Change> changes;
  changes.reserve(2 * buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const double made = times.start_s[buffers.made_by[b]];
    if (made == freed[b] || buffers.bytes[b] == 0) continue;
    changes.push_back({made, buffers.bytes[b], buffers.device[b], buffers.kind[b]});
    changes.push_back({freed[b], -buffers.bytes[b], buffers.device[b], buffers.kind[b]});
  }
  // All changes of an instant are added up before anything is compared, so their order within it does not matter.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });

  const std::size_t devices = persistent.size();
  std::vector<MemoryOverTime> result(devices);
  std::vector<MemorySample> now(devices);
  std::vector<char> changed(devices, 0);
  for (std::size_t d = 0; d < devices; ++d) {
    result[d].peak_bytes = persistent[d];
    if (with_samples) result[d].samples.push_back({});
  }
  std::vector<std::uint32_t> touched;
  for (std::size_t i = 0; i < changes.size();) {
    const double at = changes[i].at;
    touched.clear();
    for (; i < changes.size() && changes[i].at == at; ++i) {
      const std::uint32_t d = changes[i].device;
      apply(now[d], changes[i]);
      if (!changed[d]) touched.push_back(d), changed[d] = 1;
    }
    for (const std::uint32_t d : touched) {
      changed[d] = 0;
      now[d].time_s = at;
      const std::int64_t total = persistent[d] + now[d].activation_bytes + now[d].copy_bytes + now[d].workspace_bytes;
      if (total > result[d].peak_bytes) result[d].peak_bytes = total, result[d].peak_at_s = at;
      if (!with_samples) continue;
      if (at == 0)
        result[d].samples.back() = now[d];
      else
        result[d].samples.push_back(now[d]);
    }
  }
  return result;
}

}  // namespace turnpoint
