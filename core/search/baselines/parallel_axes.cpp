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
  if (sizes.expert % sizes.context != 0) {
    // Some devices of each context group: take_axes() finds the innermost.
    const auto inside = take_axes(mesh, sizes.expert, axes.context, axes.tensor | ~axes.context);
    if (!inside) return std::nullopt;
    axes.expert = *inside;
    return axes;
  }
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

bool divides_loop(const Operator& op, const Mesh& mesh, int loop, std::uint32_t axes) {
  return loop >= 0 && op.dims[static_cast<std::size_t>(loop)].size % mesh.size_of(axes) == 0;
}

/// What data, context and expert groups split of operators that work with experts, where experts lie on all devices of
/// a context group.
std::vector<OuterAxes> ways_of_whole_groups(const Operator& op, const Mesh& mesh, const ExpertLoop& expert,
                                            const ParallelAxes& axes) {
  const OuterAxes by_experts{axes.data & ~axes.expert, 0, axes.expert};
  if (expert.inside) return {by_experts};
  std::vector<OuterAxes> ways{{axes.data, 0, axes.context}};
  if (!axes.context) return ways;
  if (axes.context != axes.expert) ways.push_back(by_experts);
  if (divides_loop(op, mesh, named_loop(op, DimName::batch), axes.alike())) ways.push_back({axes.alike(), 0, 0});
  return ways;
}

/// The same where several devices of a context group have the same experts: these share the slots of a sample that
/// each expert fills, or have samples of their own.
std::vector<OuterAxes> ways_of_parts(const Operator& op, const Mesh& mesh, const ExpertLoop& expert,
                                     const ParallelAxes& axes) {
  const std::uint32_t with_same = axes.context & ~axes.expert;
  const int batch = named_loop(op, DimName::batch), sequence = named_loop(op, DimName::sequence);
  std::vector<OuterAxes> ways;
  if (divides_loop(op, mesh, sequence, with_same)) ways.push_back({axes.data, with_same, axes.expert});
  if (divides_loop(op, mesh, batch, axes.data | with_same)) ways.push_back({axes.data | with_same, 0, axes.expert});
  if (expert.inside) return ways;
  if (sequence < 0) ways.push_back({axes.data, 0, axes.expert});
  if (divides_loop(op, mesh, expert.loop, axes.context)) ways.push_back({axes.data, 0, axes.context});
  if (axes.expert && divides_loop(op, mesh, batch, axes.alike())) ways.push_back({axes.alike(), 0, 0});
  return ways;
}

/// What data, context and expert groups split; tensor groups come behind.
std::vector<OuterAxes> outer_axes(const Operator& op, const Mesh& mesh, const ExpertLoop& expert,
                                  const ParallelAxes& axes) {
  if (expert.loop < 0 || !(axes.expert | axes.context)) return {{axes.data, axes.context, 0}};
  return (axes.context & ~axes.expert) ? ways_of_parts(op, mesh, expert, axes)
                                       : ways_of_whole_groups(op, mesh, expert, axes);
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
  const bool apart = (rules.axes.expert | rules.axes.context) != 0 && !rules.experts.of.empty();
  const ExpertLoop expert = apart ? rules.experts.of[id.index] : ExpertLoop();
  std::vector<Configuration> configurations;
  for (const OuterAxes& outer : outer_axes(op, mesh, expert, rules.axes)) {
    configurations.push_back(outer_configuration(op, mesh, expert, outer));
    split_by_tensor(model, id, mesh, rules, configurations.back());
  }
  return configurations;
}

std::string expert_context_refusal(const Model& model, const Mesh& mesh, const SplitRules& rules) {
  if (!rules.axes.context || rules.experts.experts == 0) return {};
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    const ExpertLoop& expert = rules.experts.of[i];
    if (expert.loop < 0 || !outer_axes(op, mesh, expert, rules.axes).empty()) continue;
    const int slots = named_loop(op, DimName::sequence);
    const std::int64_t filled = slots < 0 ? 1 : op.dims[static_cast<std::size_t>(slots)].size;
    return fmt::format(
        "{} has {} of each expert and {} in a micro-batch, and the {} devices of a context group with "
        "the same experts can share neither",
        op.name, filled == 1 ? "1 slot" : fmt::format("{} slots", filled),
        model.batch == 1 ? "1 sample" : fmt::format("{} samples", model.batch),
        mesh.size_of(rules.axes.context & ~rules.axes.expert));
  }
  return {};
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
