// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/parallel_axes.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/model/split_loss.h"

namespace turnpoint::search {

namespace {

std::uint32_t all_axes(const Mesh& mesh) { return (1u << mesh.count()) - 1; }

/// Axes of `free` whose devices are `wanted`, the innermost first; of those between nodes none while an axis inside is
/// neither taken nor `held`.
std::optional<std::uint32_t> take_axes(const Mesh& mesh, int wanted, std::uint32_t free, std::uint32_t held) {
  std::uint32_t inside = 0, taken = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == kIntraNode) inside |= 1u << a;
  for (int a = mesh.count() - 1; a >= 0; --a) {
    const MeshAxis& axis = mesh.axes[static_cast<std::size_t>(a)];
    if (!(free >> a & 1u) || wanted % axis.size != 0) continue;
    if (axis.level == kInterNode && ((taken | held) & inside) != inside) continue;
    wanted /= axis.size;
    taken |= 1u << a;
  }
  if (wanted != 1) return std::nullopt;
  return taken;
}

}  // namespace

std::optional<ParallelAxes> assign_axes(const Mesh& mesh, const GroupSizes& sizes) {
  const std::uint32_t all = all_axes(mesh);
  const auto tensor = take_axes(mesh, sizes.tensor, all, 0);
  if (!tensor) return std::nullopt;
  // Parts of a sequence are cut in the order of the axes, and sequence parallelism cuts those of a context group.
  const std::uint32_t outside = *tensor ? (*tensor & -*tensor) - 1 : all;
  const auto context = take_axes(mesh, sizes.context, outside & all, *tensor);
  if (!context) return std::nullopt;
  ParallelAxes axes;
  axes.tensor = *tensor, axes.context = *context;
  axes.data = all & ~(axes.tensor | axes.context);
  if (sizes.expert == 1) return axes;
  const bool both = sizes.expert % sizes.context == 0;
  const auto expert = both ? take_axes(mesh, sizes.expert / sizes.context, axes.data, axes.tensor | axes.context)
                           : take_axes(mesh, sizes.expert, axes.alike(), axes.tensor);
  if (!expert) return std::nullopt;
  axes.expert = *expert | (both ? axes.context : 0);
  return axes;
}

namespace {

/// Puts the axes of `mask` on a loop dimension, all of them or (with `partly`) as many as divide it.
bool put(const Operator& op, const Mesh& mesh, std::uint32_t mask, int loop, bool partly,
         Configuration& configuration) {
  const std::int64_t size = op.dims[static_cast<std::size_t>(loop)].size;
  std::int64_t split = 1;
  for (int a = 0; a < mesh.count(); ++a)
    if (configuration.axis[static_cast<std::size_t>(a)] == loop) split *= mesh.axes[static_cast<std::size_t>(a)].size;
  if (!partly && size % (split * mesh.size_of(mask)) != 0) return false;
  for (int a = 0; a < mesh.count(); ++a) {
    const int axis = mesh.axes[static_cast<std::size_t>(a)].size;
    if (!(mask >> a & 1u) || size % (split * axis) != 0) continue;
    split *= axis;
    configuration.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(loop);
  }
  return true;
}

int named_loop(const Operator& op, DimName name) {
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (op.dims[l].name == name && can_split(op, static_cast<int>(l), false)) return static_cast<int>(l);
  return -1;
}

OperatorId statistics_of(const Model& model, const Operator& loss) {
  return model.tensors[loss.inputs.front().tensor].producer;
}

bool splits_words(const Model& model, const Operator& loss, const Configuration& of_statistics) {
  const Operator& op = model.operators[statistics_of(model, loss)];
  return std::any_of(of_statistics.axis.begin(), of_statistics.axis.end(), [&](int loop) {
    return loop >= 0 && op.dims[static_cast<std::size_t>(loop)].name == DimName::vocabulary;
  });
}

/// The dimension that data, context and expert groups split; tensor groups come behind.
Configuration outer_configuration(const Model& model, OperatorId id, const Mesh& mesh, const SplitRules& rules) {
  const Operator& op = model.operators[id];
  const ParallelAxes& axes = rules.axes;
  Configuration configuration;
  // Experts have the axes of the batch; where tokens come in and go out only those of the sequence.
  const ExpertLoop expert = axes.expert ? rules.experts.of[id.index] : ExpertLoop();
  const std::uint32_t by_expert = expert.loop < 0 ? 0 : expert.inside ? axes.expert : axes.expert & axes.context;
  const int batch = named_loop(op, DimName::batch), sequence = named_loop(op, DimName::sequence);
  if (batch >= 0) put(op, mesh, axes.data & ~by_expert, batch, true, configuration);
  if (by_expert) put(op, mesh, by_expert, expert.loop, false, configuration);
  if (sequence >= 0 && expert.loop < 0) put(op, mesh, axes.context, sequence, false, configuration);
  return configuration;
}

}  // namespace

Configuration split_configuration(const Model& model, OperatorId id, const Mesh& mesh, const SplitRules& rules) {
  const Operator& op = model.operators[id];
  const ParallelAxes& axes = rules.axes;
  const TransformerRoles* roles = rules.roles;
  Configuration configuration = outer_configuration(model, id, mesh, rules);
  // The loader hands the members of a tensor group the same samples.
  if (!axes.tensor || !roles || op.kind == OperatorKind::input) return configuration;
  const int loop = roles->tensor_parallel_loop(model, id);
  if (loop >= 0 && put(op, mesh, axes.tensor, loop, false, configuration)) return configuration;
  const bool loss = op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics;
  // Where words are split, every member has the statistics of all.
  if (reads_statistics(op) &&
      splits_words(model, op, split_configuration(model, statistics_of(model, op), mesh, rules)))
    return configuration;
  if (!rules.sequence_parallel && !loss) return configuration;
  if (is_weighted_product(model, op)) return configuration;
  const int batch = named_loop(op, DimName::batch), sequence = named_loop(op, DimName::sequence);
  if (sequence >= 0 && put(op, mesh, axes.tensor, sequence, false, configuration)) return configuration;
  if (loss && batch >= 0) put(op, mesh, axes.tensor, batch, false, configuration);
  return configuration;
}

std::string context_refusal(const Model& model, const ExpertLoops& experts, int context) {
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    if (experts.of[i].loop >= 0) continue;
    for (std::size_t l = 0; l < op.dims.size(); ++l) {
      const LoopDimension& dim = op.dims[l];
      if (dim.name != DimName::sequence || dim.size == 1) continue;
      if (dim.size % context != 0)
        return fmt::format("{} has a sequence of {}, which cp={} does not divide", op.name, dim.size, context);
      if (!can_split(op, static_cast<int>(l), false))
        return fmt::format("{} needs its sequence whole, which cp={} would split", op.name, context);
    }
  }
  return {};
}

}  // namespace turnpoint::search
