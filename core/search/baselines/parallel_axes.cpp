// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/parallel_axes.h"

#include <algorithm>

#include "core/model/split_loss.h"

namespace turnpoint::search {

std::optional<ParallelAxes> assign_axes(const Mesh& mesh, int tensor) {
  ParallelAxes axes;
  int left = tensor;
  std::uint32_t inside = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == kIntraNode) inside |= 1u << a;
  for (int a = mesh.count() - 1; a >= 0; --a) {
    const MeshAxis& axis = mesh.axes[static_cast<std::size_t>(a)];
    if (left % axis.size != 0) continue;
    if (axis.level == kInterNode && (axes.tensor & inside) != inside) continue;
    left /= axis.size;
    axes.tensor |= 1u << a;
  }
  if (left != 1) return std::nullopt;
  axes.data = ((1u << mesh.count()) - 1) & ~axes.tensor;
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

}  // namespace

Configuration split_configuration(const Model& model, OperatorId id, const Mesh& mesh, const ParallelAxes& axes,
                                  const TransformerRoles* roles, bool sequence_parallel) {
  const Operator& op = model.operators[id];
  Configuration configuration;
  const int batch = named_loop(op, DimName::batch);
  if (batch >= 0) put(op, mesh, axes.data, batch, true, configuration);
  // The loader hands the members of a tensor group the same samples.
  if (!axes.tensor || !roles || op.kind == OperatorKind::input) return configuration;
  const int loop = roles->tensor_parallel_loop(model, id);
  if (loop >= 0 && put(op, mesh, axes.tensor, loop, false, configuration)) return configuration;
  const bool loss = op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics;
  // Where words are split, every member has the statistics of all.
  if (reads_statistics(op) &&
      splits_words(model, op,
                   split_configuration(model, statistics_of(model, op), mesh, axes, roles, sequence_parallel)))
    return configuration;
  if (!sequence_parallel && !loss) return configuration;
  if (is_weighted_product(model, op)) return configuration;
  const int sequence = named_loop(op, DimName::sequence);
  if (sequence >= 0 && put(op, mesh, axes.tensor, sequence, false, configuration)) return configuration;
  if (loss && batch >= 0) put(op, mesh, axes.tensor, batch, false, configuration);
  return configuration;
}

}  // namespace turnpoint::search
