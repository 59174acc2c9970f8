// SPDX-License-Identifier: Apache-2.0
#include "core/cost/parameters.h"

#include <algorithm>
#include <utility>

namespace turnpoint {

namespace {

bool pads(const MemoryChoice& choice) { return choice.whole_rows && choice.update == Update::sharded_weights; }

}  // namespace

ParameterBytes parameter_bytes(const Settings& settings, Accounting accounting) {
  ParameterBytes bytes;
  bytes.weight = bytes.gradient = settings.precision == Precision::fp32 ? 4 : 2;
  if (settings.gradients == Gradients::fp32) bytes.gradient = 4;
  const int moments = optimizer_state_bytes(settings.optimizer);
  bytes.optimizer = (settings.optimizer_state == OptimizerState::bf16 ? moments / 2 : moments) +
                    (settings.precision == Precision::fp32 ? 0 : 4);
  if (accounting == Accounting::paper) bytes.gradient = bytes.optimizer = 0;
  return bytes;
}

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

std::vector<std::uint32_t> sharing_groups(const Mesh& mesh, const std::vector<ParameterGroup>& parameters) {
  std::vector<std::uint32_t> groups;
  for (const ParameterGroup& group : parameters)
    for (const std::uint32_t axes : sharing_groups(mesh, group.whole, group.partial))
      if (std::find(groups.begin(), groups.end(), axes) == groups.end()) groups.push_back(axes);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return mesh.size_of(a) > mesh.size_of(b); });
  return groups;
}

std::int64_t GroupElements::padded(const Parameter& parameter, std::int64_t shards) {
  return (parameter.rows + shards - 1) / shards * shards * (parameter.elements / parameter.rows);
}

void GroupElements::add(const Parameter& parameter) {
  all_ += parameter.elements;
  parameters_.push_back(parameter);
}

std::int64_t GroupElements::shard(const MemoryChoice& choice, std::int64_t shards) const {
  if (!pads(choice)) return (all_ + shards - 1) / shards;
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters_) elements += padded(parameter, shards) / shards;
  return elements;
}

ParameterTraffic GroupElements::traffic(const MemoryChoice& choice, std::int64_t shards,
                                        const ParameterBytes& bytes) const {
  ParameterTraffic traffic;
  for (const Parameter& parameter : parameters_) {
    const auto elements = static_cast<double>(pads(choice) ? padded(parameter, shards) : parameter.elements);
    const double weight_bytes = elements * bytes.weight;
    traffic.gradient_bytes += elements * bytes.gradient;
    traffic.weight_bytes += weight_bytes;
    const auto add_reads = [&](std::vector<double>& reads, int times) {
      if (reads.size() < static_cast<std::size_t>(times)) reads.resize(static_cast<std::size_t>(times), 0);
      for (int i = 0; i < times; ++i) reads[static_cast<std::size_t>(i)] += weight_bytes;
    };
    add_reads(traffic.read_bytes, parameter.reads);
    add_reads(traffic.rerun_read_bytes, parameter.rerun_reads);
  }
  return traffic;
}

std::int64_t local_rows(const Mesh& mesh, const Layout& layout, const std::vector<std::int64_t>& shape) {
  return shape.empty() ? 1 : shape[0] / mesh.size_of(layout.mask(0));
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
