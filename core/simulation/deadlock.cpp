// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/deadlock.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnpoint {

std::string describe_deadlock(const TaskGraph& graph, const Placement& placement,
                              const std::vector<std::uint32_t>& next) {
  // Which tasks have run: those before `next` on their device.
  std::vector<bool> done(graph.task_count(), false);
  for (std::uint32_t d = 0; d < placement.devices; ++d)
    for (std::uint32_t at = 0; at < next[d]; ++at) done[placement.order[d][at]] = true;
  std::uint32_t device = 0;
  while (next[device] >= placement.order[device].size()) ++device;

  // A blocked device's next task misses an input; the device of that input's producer is blocked too, or it would have
  // run it. Following this from device to device closes a ring.
  struct Wait {
    TaskIndex task, missing;
  };
  std::vector<Wait> walk;
  std::vector<std::uint32_t> seen_at(placement.devices, kNone);
  while (seen_at[device] == kNone) {
    seen_at[device] = std::uint32_t(walk.size());
    const TaskIndex task = placement.order[device][next[device]];
    const auto inputs = graph.predecessors(task);
    const TaskIndex missing = *std::find_if(inputs.begin(), inputs.end(), [&](TaskIndex t) { return !done[t]; });
    walk.push_back({task, missing});
    device = placement.device[missing];
  }
  constexpr std::size_t kShown = 6;
  const std::size_t begin = seen_at[device], count = walk.size() - begin;
  std::string text = "the order can never finish: ";
  for (std::size_t i = 0; i < std::min(count, kShown); ++i) {
    const auto [task, missing] = walk[begin + i];
    const TaskIndex ahead = walk[begin + (i + 1) % count].task;
    text += fmt::format("{}device {} cannot run {} before {}", i ? "; " : "", placement.device[task],
                        graph.describe(task), graph.describe(missing));
    if (missing != ahead)
      text += fmt::format(", which device {} runs after {}", placement.device[missing], graph.describe(ahead));
  }
  if (count > kShown) text += fmt::format("; and {} devices more wait in this ring", count - kShown);
  return text;
}

}  // namespace turnpoint
