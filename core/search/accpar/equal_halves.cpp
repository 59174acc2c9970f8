// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/equal_halves.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>

#include "core/search/accpar/follow.h"

namespace turnpoint::accpar {

namespace {

std::int64_t factors_of_two(std::int64_t size) { return size & -size; }

using Loops = std::vector<std::uint8_t>;

/// Splits loops by axis after axis; what is left of each.
class Splitting {
 public:
  explicit Splitting(const Operator& op) {
    for (const LoopDimension& dim : op.dims) left_.push_back(dim.size);
  }
  /// The first of these loops that halves divide goes to the axis.
  bool split(const Loops& loops, int axis) {
    const auto loop = std::find_if(loops.begin(), loops.end(), [&](std::uint8_t l) { return left_[l] % 2 == 0; });
    return loop != loops.end() && take(*loop, 2, axis);
  }
  bool take(int loop, int size, int axis) {
    if (left_[static_cast<std::size_t>(loop)] % size != 0) return false;
    left_[static_cast<std::size_t>(loop)] /= size;
    configuration.axis[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(loop);
    return true;
  }

  Configuration configuration;

 private:
  std::vector<std::int64_t> left_;
};

/// What axes split where an operator goes by the layout of one of its tensors, as far as it may split that at all.
class Following {
 public:
  Following(const Mesh& mesh, bool split_windows) : mesh_(mesh), split_windows_(split_windows) {}

  Configuration follow(const Operator& op, const Access& access, const Layout& layout) const {
    Splitting splitting(op);
    for (int a = 0; a < mesh_.count(); ++a) {
      const int dim = layout.axis[static_cast<std::size_t>(a)];
      if (dim < 0) continue;
      const auto loop = outermost_walker(op, access.walks[static_cast<std::size_t>(dim)]);
      if (!loop || !can_split(op, *loop, split_windows_)) continue;
      const Splitting before = splitting;
      if (splitting.take(*loop, mesh_.axes[static_cast<std::size_t>(a)].size, a) && !legal(op, splitting.configuration))
        splitting = before;
    }
    return splitting.configuration;
  }

  bool legal(const Operator& op, const Configuration& configuration) const {
    return divides_evenly(op, mesh_, configuration) && splits_at_most_two_dims_per_level(op, mesh_, configuration);
  }

 private:
  const Mesh& mesh_;
  bool split_windows_;
};

}  // namespace

bool in_equal_halves(const Cluster& cluster) {
  const auto halves = [](int count) { return std::has_single_bit(static_cast<unsigned>(count)); };
  return !cluster.mixed() && halves(cluster.nodes) && halves(cluster.devices_per_node);
}

void keep_whole_halves(const Model& model, bool split_windows, ModelLayers& layers) {
  for (std::size_t l = 0; l < layers.operators.size(); ++l)
    restrict_loops(model.operators[layers.operators[l]], l, layers, [&](const Operator& op, std::uint8_t loop) {
      return can_split(op, loop, split_windows) ? factors_of_two(op.dims[loop].size) : 1;
    });
}

std::vector<std::vector<Type>> types_by_level(const Assignment& assignment) {
  std::vector<std::vector<Type>> levels;
  for (std::uint32_t cut = assignment.cuts.empty() ? kDevice : 0; cut != kDevice; cut = assignment.cuts[cut].next[0])
    levels.push_back(assignment.cuts[cut].types);
  return levels;
}

namespace {

/// Layers by their types, what follows them by what it reads, what is made of data alone by its first reader.
class Configuring {
 public:
  Configuring(const Model& model, const Mesh& mesh, bool split_windows, const ModelLayers& layers)
      : model_(model), mesh_(mesh), layers_(layers), following_(mesh, split_windows) {
    configurations.assign(model.operators.size(), Configuration());
  }

  Expected<void> split_layers(const std::vector<std::vector<Type>>& levels) {
    for (std::size_t l = 0; l < layers_.operators.size(); ++l) {
      const Operator& op = model_.operators[layers_.operators[l]];
      Splitting splitting(op);
      for (std::size_t level = 0; level < levels.size(); ++level) {
        const Type type = levels[level][l];
        if (!splitting.split(layers_.loops[l][static_cast<std::size_t>(type)], static_cast<int>(level)) ||
            !following_.legal(op, splitting.configuration))
          return bad_input(
              fmt::format("level {}: type {} cannot halve layer '{}' any further", level + 1, to_string(type), op.name),
              model_.name);
      }
      configurations[layers_.operators[l]] = splitting.configuration;
    }
    return {};
  }

  void follow_layers() {
    for (std::uint32_t o = 0; o < model_.operators.size(); ++o) {
      const OperatorId id(o);
      if (!layers_.follows(id)) continue;
      const Access* operand = followed_operand(model_, layers_, id);
      if (!operand) continue;
      const OperatorId producer = model_.tensors[operand->tensor].producer;
      const Operator& from = model_.operators[producer];
      const Layout left =
          forward_layout(from, output_of(model_, operand->tensor), true, configurations[producer], mesh_.count())
              .without_partial();
      configurations[id] = following_.follow(model_.operators[id], *operand, left);
    }
  }

  void follow_readers() {
    for (std::uint32_t o = model_.operators.size(); o-- > 0;) {
      const OperatorId id(o);
      if (layers_.layer_of[id] != kNoLayer) continue;
      const Operator& op = model_.operators[id];
      const auto& uses = model_.uses[op.outputs.front().tensor];
      if (uses.empty()) continue;
      const Operator& reader = model_.operators[uses.front().op];
      const Layout wanted = forward_layout(reader, reader.inputs[uses.front().input], false,
                                           configurations[uses.front().op], mesh_.count());
      configurations[id] = following_.follow(op, op.outputs.front(), wanted);
    }
  }

  IdVector<OperatorId, Configuration> configurations;

 private:
  const Model& model_;
  const Mesh& mesh_;
  const ModelLayers& layers_;
  Following following_;
};

}  // namespace

Expected<IdVector<OperatorId, Configuration>> configurations_of(const Model& model, const Mesh& mesh,
                                                                bool split_windows, const ModelLayers& layers,
                                                                const std::vector<std::vector<Type>>& levels) {
  Configuring configuring(model, mesh, split_windows, layers);
  if (auto split = configuring.split_layers(levels); !split) return split.error();
  configuring.follow_layers();
  configuring.follow_readers();
  return std::move(configuring.configurations);
}

}  // namespace turnpoint::accpar
