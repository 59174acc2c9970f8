// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_plan.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "core/base/text.h"

namespace turnpoint {

std::string_view to_string(PartitionType type) {
  switch (type) {
    case PartitionType::batch: return "I";
    case PartitionType::reduction: return "II";
    case PartitionType::output: return "III";
  }
  return "";
}

std::int64_t RatioPlan::most_memory() const { return device_memory.empty() ? 0 : device_memory[fullest_device()]; }

std::uint32_t RatioPlan::fullest_device() const {
  return static_cast<std::uint32_t>(std::max_element(device_memory.begin(), device_memory.end()) -
                                    device_memory.begin());
}

bool RatioPlan::shards_updates() const {
  return std::any_of(cuts.begin(), cuts.end(), [](const Cut& cut) {
    return std::any_of(cut.updates.begin(), cut.updates.end(), [](double share) { return share != 0; });
  });
}

const RatioPlan::Rerun* RatioPlan::rerun_on(std::uint32_t device) const {
  for (const Rerun& rerun : reruns)
    if (std::binary_search(rerun.devices.begin(), rerun.devices.end(), device)) return &rerun;
  return nullptr;
}

Plan as_axes(const RatioPlan& plan) {
  static const char* const kLevels[kMaxAxes] = {"\u2460", "\u2461", "\u2462", "\u2463", "\u2464", "\u2465",
                                                "\u2466", "\u2467", "\u2468", "\u2469", "\u246a", "\u246b",
                                                "\u246c", "\u246d", "\u246e", "\u246f"};
  Plan shown;
  for (const RatioPlan::Item& item : plan.operators) {
    PlanOperator op;
    op.op = item.op;
    op.cost = item.cost;
    shown.operators.push_back(std::move(op));
  }
  for (const RatioPlan::Rerun& rerun : plan.reruns)
    for (const OperatorId id : rerun.operators)
      if (id.index < shown.operators.size()) shown.operators[id.index].choice.recompute = true;
  shown.cost = plan.cost;
  for (const RatioPlan::Exchange& exchange : plan.exchanges) {
    PlanReshard reshard;
    reshard.tensor = exchange.tensor, reshard.producer = exchange.producer;
    ReshardStep step;
    step.bytes = exchange.bytes, step.time_s = exchange.seconds;
    reshard.forward.push_back(step);
    shown.reshards.push_back(std::move(reshard));
  }
  int level = 0;
  for (std::uint32_t c = 0; c < plan.cuts.size() && level < kMaxAxes; c = plan.cuts[c].next[0], ++level) {
    shown.mesh.axes.push_back({kLevels[level], 2, kIntraNode});
    for (std::size_t o = 0; o < shown.operators.size() && o < plan.cuts[c].share.size(); ++o)
      shown.operators[o].split.axis[static_cast<std::size_t>(level)] = plan.cuts[c].share[o].loop;
    for (PlanOperator& op : shown.operators) {
      if (plan.cuts[c].update_of(op.op) == 0) continue;
      op.choice.update = Update::sharded;
      op.choice.update_axes |= 1u << level;
    }
  }
  return shown;
}

bool fits(const Scenario& scenario, const RatioPlan& plan) {
  for (std::uint32_t d = 0; d < plan.device_memory.size(); ++d)
    if (plan.device_memory[d] > scenario.memory_limit_of(d)) return false;
  return true;
}

std::vector<std::string> describe_devices(const Scenario& scenario, const RatioPlan& plan) {
  struct Kind {
    int devices = 0;
    std::int64_t most = 0, memory = 0;
  };
  std::vector<std::pair<std::string, Kind>> kinds;
  for (std::uint32_t d = 0; d < plan.device_memory.size(); ++d) {
    const DeviceType& type = device_of(*scenario.cluster, d);
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == type.name; });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), {type.name, {}});
    ++at->second.devices;
    at->second.most = std::max(at->second.most, plan.device_memory[d]);
    at->second.memory = scenario.memory_limit_of(d);
  }
  std::vector<std::string> lines;
  for (const auto& [name, kind] : kinds)
    lines.push_back(fmt::format("{} \u00d7 {}: at most {} of {} on one", kind.devices, name, format_bytes(kind.most),
                                format_bytes(kind.memory)));
  return lines;
}

}  // namespace turnpoint
