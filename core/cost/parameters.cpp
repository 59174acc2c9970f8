// SPDX-License-Identifier: Apache-2.0
#include "core/cost/parameters.h"

#include <algorithm>
#include <utility>

#include "core/model/shard_format.h"

namespace turnpoint {

namespace {

bool fills_rows(const MemoryChoice& choice) { return choice.whole_rows && choice.update == Update::sharded_weights; }

/// Parameters are cut one by one, the last shards filled up.
bool pads(const MemoryChoice& choice) { return choice.shares_out() && (fills_rows(choice) || choice.tiles); }

}  // namespace

int gathered_bytes(const MemoryChoice& choice, bool products_alone, const ParameterBytes& bytes) {
  return choice.gather == WeightGather::before_forward_bf16 && products_alone ? std::min(bytes.weight, 2)
                                                                              : bytes.weight;
}

bool holds_tiles(const Cluster& cluster) { return cluster.library == Library::torus; }

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

std::int64_t GroupElements::padded(const Parameter& parameter, const MemoryChoice& choice, std::int64_t shards) {
  if (!fills_rows(choice)) return padded_elements(parameter.shape, shards, parameter.keeps_dimensions);
  return (parameter.rows + shards - 1) / shards * shards * (parameter.elements / parameter.rows);
}

void GroupElements::add(const Parameter& parameter) {
  all_ += parameter.elements;
  parameters_.push_back(parameter);
}

bool GroupElements::any_for_products_alone() const {
  return std::any_of(parameters_.begin(), parameters_.end(), [](const Parameter& one) { return one.products_alone; });
}

std::int64_t GroupElements::shard(const MemoryChoice& choice, std::int64_t shards) const {
  if (shards <= 1 || !pads(choice)) return (all_ + shards - 1) / shards;
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters_) elements += padded(parameter, choice, shards) / shards;
  return elements;
}

std::int64_t GroupElements::held_bytes(const MemoryChoice& choice, std::int64_t shards,
                                       const ParameterBytes& bytes) const {
  if (shards <= 1) return all_ * bytes.weight;
  if (choice.update == Update::sharded_weights) return shard(choice, shards) * bytes.weight;
  std::int64_t held = 0;
  GroupElements rounded;
  for (const Parameter& parameter : parameters_) {
    const int gathered = gathered_bytes(choice, parameter.products_alone, bytes);
    held += parameter.elements * gathered;
    if (gathered < bytes.weight) rounded.add(parameter);
  }
  return held + rounded.shard(choice, shards) * bytes.weight;
}

ParameterTraffic GroupElements::traffic(const MemoryChoice& choice, std::int64_t shards,
                                        const ParameterBytes& bytes) const {
  ParameterTraffic traffic;
  for (const Parameter& parameter : parameters_) {
    const bool filled = shards > 1 && pads(choice);
    const auto elements = static_cast<double>(filled ? padded(parameter, choice, shards) : parameter.elements);
    const double weight_bytes = elements * gathered_bytes(choice, parameter.products_alone, bytes);
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

GroupElements::Parameter local_parameter(const Model& model, const TensorUses& uses, OperatorId id, std::uint32_t input,
                                         const Mesh& mesh, const Layout& layout, Optimizer optimizer) {
  const Tensor& tensor = model.tensors[model.operators[id].inputs[input].tensor];
  GroupElements::Parameter parameter;
  parameter.elements = local_elements(mesh, layout, tensor.shape);
  parameter.shape = tensor.shape;
  for (std::size_t d = 0; d < parameter.shape.size(); ++d)
    parameter.shape[d] /= mesh.size_of(layout.mask(static_cast<std::int8_t>(d)));
  parameter.rows = parameter.shape.empty() ? 1 : parameter.shape[0];
  parameter.reads = uses.parameter_reads[id.index][input];
  parameter.rerun_reads = parameter.reads + uses.rerun_reads[id.index][input];
  parameter.keeps_dimensions = optimizer == Optimizer::adafactor && tensor.shape.size() >= 2;
  parameter.products_alone = uses.products_alone[id.index][input];
  return parameter;
}

void price_steps(StepPrices& prices, const ParameterGroup& group, const ParameterTraffic& traffic,
                 const MemoryChoice& choice, ParameterSteps& out) {
  const Mesh& mesh = prices.model().mesh();
  const std::uint32_t shards = group.shards(choice);
  const std::uint32_t scattered = shards & group.partial, sliced = shards & ~group.partial,
                      reduced = group.partial & ~shards;
  out.group = group;
  for (const ParameterRole role : kParameterRoles) out.steps(role).clear();
  const double message = choice.update == Update::sharded_weights ? traffic.messages.layer : traffic.messages.bucket;
  const auto step = [&](ReshardMove move, std::uint32_t axes, double bytes) {
    return prices.step(move, axes, bytes, message);
  };
  if (shards && choice.update == Update::sharded_weights)
    for (const double bytes : choice.recompute ? traffic.rerun_read_bytes : traffic.read_bytes) {
      // What is read less often is left out of the later gathers of a layer, which stay as large.
      const double rest = message > 1 ? traffic.weight_bytes / bytes : 1;
      out.gather.push_back(prices.step(ReshardMove::all_gather, shards, bytes, message * rest));
    }
  double held = traffic.gradient_bytes;
  if (scattered) out.sync.push_back(step(ReshardMove::reduce_scatter, scattered, held));
  held /= static_cast<double>(mesh.size_of(scattered));
  if (sliced) out.sync.push_back(step(ReshardMove::slice, sliced, held));
  held /= static_cast<double>(mesh.size_of(sliced));
  if (reduced) out.sync.push_back(step(ReshardMove::all_reduce, reduced, held));
  if (shards && choice.update != Update::sharded_weights)
    out.spread.push_back(step(ReshardMove::all_gather, shards, traffic.weight_bytes));
}

}  // namespace turnpoint
