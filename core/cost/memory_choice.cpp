// SPDX-License-Identifier: Apache-2.0
#include "core/cost/memory_choice.h"

#include <algorithm>
#include <map>

namespace turnpoint {

const char* to_string(Update update) {
  switch (update) {
    case Update::replicated: return "replicated";
    case Update::sharded_state: return "sharded-state";
    case Update::sharded: return "sharded";
    case Update::sharded_weights: return "sharded-weights";
  }
  return "";
}

const char* to_string(WeightGather gather) {
  switch (gather) {
    case WeightGather::after_update: return "after-update";
    case WeightGather::before_forward: return "before-forward";
    case WeightGather::before_forward_bf16: return "before-forward-bf16";
  }
  return "";
}

namespace {

/// By number of devices, one included: the innermost axes that make it up.
std::map<std::int64_t, std::uint32_t> innermost_by_size(const Mesh& mesh, std::uint32_t axes) {
  // From the inside out: what inner axes make up already needs no outer one.
  std::map<std::int64_t, std::uint32_t> by_size{{1, 0}};
  for (int a = mesh.count() - 1; a >= 0; --a) {
    if (!(axes >> a & 1u)) continue;
    const std::map<std::int64_t, std::uint32_t> inner = by_size;
    for (const auto& [size, group] : inner)
      by_size.try_emplace(size * mesh.axes[static_cast<std::size_t>(a)].size, group | 1u << a);
  }
  return by_size;
}

}  // namespace

std::vector<std::uint32_t> sharing_groups(const Mesh& mesh, std::uint32_t whole_axes, std::uint32_t summed_axes) {
  std::vector<std::uint32_t> groups{0};
  for (std::uint32_t left = whole_axes; left;) {
    const auto first = static_cast<std::size_t>(__builtin_ctz(left));
    std::uint32_t alike = 0;
    for (std::size_t a = 0; a < mesh.axes.size(); ++a)
      if (mesh.axes[a].same_link(mesh.axes[first])) alike |= 1u << a;
    alike &= left & (summed_axes >> first & 1u ? summed_axes : ~summed_axes);
    left &= ~alike;
    const std::vector<std::uint32_t> others = std::move(groups);
    groups.clear();
    for (const std::uint32_t other : others)
      for (const auto& [size, axes] : innermost_by_size(mesh, alike)) groups.push_back(other | axes);
  }
  groups.erase(groups.begin());  // one device
  std::stable_sort(groups.begin(), groups.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return mesh.size_of(a) < mesh.size_of(b); });
  return groups;
}

std::vector<MemoryChoice> enumerate_choices(const std::vector<std::uint32_t>& groups, const ChoiceSwitches& offered) {
  std::vector<MemoryChoice> updates{{}};
  if (offered.update_sharding)
    for (const Update update : {Update::sharded_state, Update::sharded, Update::sharded_weights})
      for (const std::uint32_t axes : groups)
        if (update != Update::sharded_state || offered.whole_gradients) {
          updates.push_back({update, axes});
          updates.back().tiles = offered.tiles;
          if (!offered.rounds_gathers || update == Update::sharded_weights) continue;
          updates.push_back(updates.back());
          updates.back().gather = WeightGather::before_forward_bf16;
        }
  std::vector<MemoryChoice> choices;
  for (const bool recompute : {false, true}) {
    if (recompute && !offered.recompute) continue;
    for (const bool offload : {false, true}) {
      if (offload && !offered.offload) continue;
      for (MemoryChoice choice : updates) {
        choice.offload = offload;
        choice.recompute = recompute;
        choices.push_back(choice);
      }
    }
  }
  return choices;
}

}  // namespace turnpoint
