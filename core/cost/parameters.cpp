// SPDX-License-Identifier: Apache-2.0
#include "core/cost/parameters.h"

#include <algorithm>
#include <utility>

namespace turnpoint {

ParameterGroup parameter_group(const Operator& op, const Access& access, const Configuration& split, int axes) {
  const Layout gradient = gradient_layout(op, access, false, split, axes);
  ParameterGroup group;
  group.partial = gradient.mask(Layout::kPartial);
  for (int a = 0; a < axes; ++a)
    if (gradient.axis[static_cast<std::size_t>(a)] < 0) group.whole |= 1u << a;
  return group;
}

std::vector<ParameterGroup> parameter_groups(const Model& model, const TensorUses& uses, OperatorId id,
                                             const Configuration& split, int axes) {
  const Operator& op = model.operators[id];
  const auto masks = [](const ParameterGroup& group) { return std::pair(group.partial, group.whole); };
  std::vector<ParameterGroup> groups;
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    // A parameter owned elsewhere is stored, summed and updated there; the tie's resharding carries it to and fro.
    if (!uses.owns_parameter[id.index][k]) continue;
    ParameterGroup mine = parameter_group(op, op.inputs[k], split, axes);
    const auto at = std::lower_bound(groups.begin(), groups.end(), mine,
                                     [&](const auto& a, const auto& b) { return masks(a) < masks(b); });
    const bool there = at != groups.end() && masks(*at) == masks(mine);
    (there ? at : groups.insert(at, std::move(mine)))->inputs.push_back(k);
  }
  return groups;
}

ParameterSteps parameter_steps(const ReshardingModel& resharding, ParameterGroup group, const ParameterTraffic& traffic,
                               const MemoryChoice& choice) {
  const Mesh& mesh = resharding.mesh();
  const std::uint32_t shards = group.shards(choice);
  const std::uint32_t scattered = shards & group.partial, sliced = shards & ~group.partial,
                      reduced = group.partial & ~shards;
  ParameterSteps out;
  out.group = std::move(group);
  const double message = choice.update == Update::sharded_weights ? traffic.messages.layer : traffic.messages.bucket;
  const auto step = [&](ReshardMove move, std::uint32_t axes, double bytes) {
    return resharding.step(move, axes, bytes, message);
  };
  if (shards && choice.update == Update::sharded_weights)
    for (const double bytes : choice.recompute ? traffic.rerun_read_bytes : traffic.read_bytes) {
      // What is read less often is left out of the later gathers of a layer, which stay as large.
      const double rest = message > 1 ? traffic.weight_bytes / bytes : 1;
      out.gather.push_back(resharding.step(ReshardMove::all_gather, shards, bytes, message * rest));
    }
  double held = traffic.gradient_bytes;
  if (scattered) out.sync.push_back(step(ReshardMove::reduce_scatter, scattered, held));
  held /= static_cast<double>(mesh.size_of(scattered));
  if (sliced) out.sync.push_back(step(ReshardMove::slice, sliced, held));
  held /= static_cast<double>(mesh.size_of(sliced));
  if (reduced) out.sync.push_back(step(ReshardMove::all_reduce, reduced, held));
  if (shards && choice.update != Update::sharded_weights)
    out.spread.push_back(step(ReshardMove::all_gather, shards, traffic.weight_bytes));
  return out;
}

}  // namespace turnpoint
