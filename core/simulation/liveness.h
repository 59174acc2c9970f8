// SPDX-License-Identifier: Apache-2.0
// Memory over time from what is made and read by items whose times are known. At one instant frees are counted before
// allocations, so what begins and ends in the same instant never counts (resources/manual/simulator.md, rule 4).
#pragma once

#include <cstdint>
#include <vector>

#include "core/simulation/lanes.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

enum class BufferKind : std::uint8_t {
  activation,  ///< made by computing: tensors, gradients
  copy,        ///< received: the result of a collective or a send
  workspace,   ///< there for a moment: gathered weights, state visiting from the host
};

/// A buffer lives from the start of the item that makes it until all items that read it have ended, that item
/// included.
struct Buffers {
  std::vector<std::int64_t> bytes;
  std::vector<std::uint32_t> made_by, device;
  std::vector<BufferKind> kind;
  std::vector<std::uint32_t> read_buffer, read_item;  ///< pairs

  std::uint32_t add(std::int64_t size, BufferKind what, std::uint32_t item, std::uint32_t on) {
    bytes.push_back(size), kind.push_back(what), made_by.push_back(item), device.push_back(on);
    return std::uint32_t(bytes.size() - 1);
  }
  void read(std::uint32_t buffer, std::uint32_t item) { read_buffer.push_back(buffer), read_item.push_back(item); }
  std::size_t size() const { return bytes.size(); }
};

struct MemoryOverTime {
  std::int64_t peak_bytes = 0;        ///< persistent bytes included
  double peak_at_s = 0;               ///< the first instant of the peak
  std::vector<MemorySample> samples;  ///< if asked for: one per instant at which something changes, the first at 0
};

/// Per device; `persistent` has one entry each.
std::vector<MemoryOverTime> memory_over_time(const Buffers& buffers, const LaneTimes& times,
                                             const std::vector<std::int64_t>& persistent, bool with_samples);

}  // namespace turnpoint
