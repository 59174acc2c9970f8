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
  if (sizes.expert % sizes.context != 0) return std::nullopt;
  const auto expert = take_axes(mesh, sizes.expert / sizes.context, axes.data, axes.tensor | axes.context);
  if (!expert) return std::nullopt;
  axes.expert = *expert | axes.context;
  return axes;
}

std::optional<std::uint32_t> sharing_axes(const Mesh& mesh, const ParallelAxes& axes, int shard) {
  if (shard == 0) return axes.alike();
  return take_axes(mesh, shard, axes.alike(), axes.tensor);
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

/// Axes by what they split.
struct OuterAxes {
  std::uint32_t batch = 0, sequence = 0, expert = 0;
};

/// What data, context and expert groups split; tensor groups come behind.
std::vector<OuterAxes> outer_axes(const Operator& op, const Mesh& mesh, const ExpertLoop& expert,
                                  const ParallelAxes& axes) {
  if (!axes.expert || expert.loop < 0) return {{axes.data, axes.context, 0}};
  const OuterAxes by_experts{axes.data & ~axes.expert, 0, axes.expert};
  if (expert.inside) return {by_experts};
  const std::uint32_t context = axes.expert & axes.context;
  std::vector<OuterAxes> ways{{axes.data, 0, context}};
  if (!context) return ways;
  if (context != axes.expert) ways.push_back(by_experts);
  const int batch = named_loop(op, DimName::batch);
  if (batch >= 0 && op.dims[static_cast<std::size_t>(batch)].size % mesh.size_of(axes.alike()) == 0)
    ways.push_back({axes.alike(), 0, 0});
  return ways;
}

Configuration outer_configuration(const Operator& op, const Mesh& mesh, const ExpertLoop& expert,
                                  const OuterAxes& axes) {
  Configuration configuration;
  const int batch = named_loop(op, DimName::batch), sequence = named_loop(op, DimName::sequence);
  if (batch >= 0) put(op, mesh, axes.batch, batch, true, configuration);
  if (axes.expert) put(op, mesh, axes.expert, expert.loop, false, configuration);
  if (sequence >= 0 && axes.sequence) put(op, mesh, axes.sequence, sequence, false, configuration);
  return configuration;
}

/// Gives tensor groups their part.
void split_by_tensor(const Model& model, OperatorId id, const Mesh& mesh, const SplitRules& rules,
                     Configuration& configuration) {
  const Operator& op = model.operators[id];
  const std::uint32_t tensor = rules.axes.tensor;
  // The loader hands the members of a tensor group the same samples.
  if (!tensor || !rules.roles || op.kind == OperatorKind::input) return;
  const int loop = rules.roles->tensor_parallel_loop(model, id);
  if (loop >= 0 && put(op, mesh, tensor, loop, false, configuration)) return;
  const bool loss = op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics;
  // Where words are split, every member has the statistics of all.
  if (reads_statistics(op) &&
      splits_words(model, op, split_configurations(model, statistics_of(model, op), mesh, rules).front()))
    return;
  if (!rules.sequence_parallel && !loss) return;
  if (is_weighted_product(model, op)) return;
  const int batch = named_loop(op, DimName::batch), sequence = named_loop(op, DimName::sequence);
  if (sequence >= 0 && put(op, mesh, tensor, sequence, false, configuration)) return;
  if (loss && batch >= 0) put(op, mesh, tensor, batch, false, configuration);
}

}  // namespace

std::vector<Configuration> split_configurations(const Model& model, OperatorId id, const Mesh& mesh,
                                                const SplitRules& rules) {
  const Operator& op = model.operators[id];
  const ExpertLoop expert = rules.axes.expert ? rules.experts.of[id.index] : ExpertLoop();
  std::vector<Configuration> configurations;
  for (const OuterAxes& outer : outer_axes(op, mesh, expert, rules.axes)) {
    configurations.push_back(outer_configuration(op, mesh, expert, outer));
    split_by_tensor(model, id, mesh, rules, configurations.back());
  }
  return configurations;
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
