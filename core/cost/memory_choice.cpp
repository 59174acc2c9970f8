// SPDX-License-Identifier: Apache-2.0
#include "core/cost/memory_choice.h"

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

std::vector<std::uint32_t> sharing_groups(const Mesh& mesh, std::uint32_t whole_axes) {
  // From the inside out: what inner axes make up already needs no outer one.
  std::map<std::int64_t, std::uint32_t> by_size{{1, 0}};
  for (int a = mesh.count() - 1; a >= 0; --a) {
    if (!(whole_axes >> a & 1u)) continue;
    const std::map<std::int64_t, std::uint32_t> inner = by_size;
    for (const auto& [size, axes] : inner)
      by_size.try_emplace(size * mesh.axes[static_cast<std::size_t>(a)].size, axes | 1u << a);
  }
  std::vector<std::uint32_t> groups;
  for (const auto& [size, axes] : by_size)
    if (size > 1) groups.push_back(axes);
  return groups;
}

std::vector<MemoryChoice> enumerate_choices(const Mesh& mesh, std::uint32_t whole_axes, const ChoiceSwitches& offered) {
  std::uint32_t inside = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == kIntraNode) inside |= 1u << a;
  inside &= whole_axes;
  std::vector<MemoryChoice> updates{{}};
  if (offered.update_sharding && whole_axes) {
    for (const Update update : {Update::sharded_state, Update::sharded, Update::sharded_weights}) {
      if (update == Update::sharded_state && !offered.whole_gradients) continue;
      updates.push_back({update, whole_axes, false, false});
      if (inside && inside != whole_axes) updates.push_back({update, inside, false, false});
    }
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
