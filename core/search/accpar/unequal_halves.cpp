// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/unequal_halves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cost/layout.h"
#include "core/plan/loop_lengths.h"
#include "core/search/accpar/follow.h"

namespace turnpoint::accpar {

namespace {

using Share = RatioPlan::Share;

class RatioPlanBuilder {
 public:
  RatioPlanBuilder(const Scenario& scenario, const Bisection& devices, const Assignment& assignment,
                   const ModelLayers& layers)
      : model_(*scenario.model),
        split_windows_(scenario.settings.split_windows),
        assignment_(assignment),
        layers_(layers) {
    plan_.order = devices.order;
    for (const accpar::Part& part : devices.parts) plan_.parts.push_back({part.devices, part.halves});
    for (const OperatorId op : layers.operators) plan_.layers.push_back({op, {}});
    for (std::size_t o = 0; o < model_.operators.size(); ++o)
      plan_.follows.push_back(layers.follows(OperatorId(o)) ? layers.layer_of[OperatorId(o)] : RatioPlan::kNoLayer);
  }

  RatioPlan build() {
    if (!assignment_.cuts.empty()) cut(0, plan_.whole(), loop_lengths(model_));
    return std::move(plan_);
  }

 private:
  std::uint32_t cut(std::uint32_t from, std::uint32_t part, const LoopLengths& lengths) {
    const Cut& chosen = assignment_.cuts[from];
    const auto index = static_cast<std::uint32_t>(plan_.cuts.size());
    plan_.cuts.emplace_back();
    for (std::size_t l = 0; l < layers_.operators.size(); ++l)
      plan_.layers[l].type.push_back(static_cast<PartitionType>(chosen.types[l]));
    RatioPlan::Cut made{part, chosen.ratio, std::vector<Share>(lengths.size()), {}};
    for (std::size_t l = 0; l < layers_.operators.size(); ++l) {
      const OperatorId op = layers_.operators[l];
      made.share[op.index] =
          share_of(layers_.loops[l][static_cast<std::size_t>(chosen.types[l])], chosen.shares[l], lengths[op.index]);
    }
    follow_layers(made.share, lengths);
    follow_readers(made.share, lengths);
    std::array<LoopLengths, 2> halves{lengths, lengths};
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      const Share& share = made.share[o];
      if (share.loop < 0) continue;
      halves[0][o][static_cast<std::size_t>(share.loop)] = share.first;
      halves[1][o][static_cast<std::size_t>(share.loop)] -= share.first;
    }
    for (std::size_t h = 0; h < 2; ++h) {
      const std::uint32_t half = plan_.parts[part].halves[h];
      made.next[h] = plan_.parts[half].devices == 1 ? RatioPlan::kNoCut : cut(chosen.next[h], half, halves[h]);
    }
    plan_.cuts[index] = std::move(made);
    return index;
  }

  /// Of the first loop that has two units or more; both halves get one at least.
  static Share share_of(const std::vector<std::uint8_t>& loops, double part, const std::vector<std::int64_t>& lengths) {
    for (const std::uint8_t loop : loops)
      if (const std::int64_t units = lengths[loop]; units > 1)
        return {static_cast<std::int8_t>(loop),
                std::clamp(std::llround(part * static_cast<double>(units)), 1ll, static_cast<long long>(units - 1))};
    return {};
  }

  /// What of a tensor dimension its holder gives the first half, as a part of it; nullopt: the dimension is not cut.
  struct Split {
    int dim;
    double part;
  };
  std::optional<Split> split_of(OperatorId id, const Access& access, bool is_output, const std::vector<Share>& shares,
                                const LoopLengths& lengths) const {
    const Share& share = shares[id.index];
    Configuration one;
    one.axis[0] = share.loop;
    const Layout layout = forward_layout(model_.operators[id], access, is_output, one, 1);
    if (layout.axis[0] < 0) return {};
    return Split{layout.axis[0], static_cast<double>(share.first) /
                                     static_cast<double>(lengths[id.index][static_cast<std::size_t>(share.loop)])};
  }

  Share going_by(OperatorId id, const Access& access, const std::optional<Split>& split,
                 const LoopLengths& lengths) const {
    if (!split) return {};
    const Operator& op = model_.operators[id];
    const auto loop = outermost_walker(op, access.walks[static_cast<std::size_t>(split->dim)]);
    if (!loop || !can_split(op, *loop, split_windows_)) return {};
    return share_of({static_cast<std::uint8_t>(*loop)}, split->part, lengths[id.index]);
  }

  void follow_layers(std::vector<Share>& shares, const LoopLengths& lengths) const {
    for (std::uint32_t o = 0; o < model_.operators.size(); ++o) {
      const OperatorId id(o);
      const Access* operand = layers_.follows(id) ? followed_operand(model_, layers_, id) : nullptr;
      if (!operand) continue;
      const OperatorId producer = model_.tensors[operand->tensor].producer;
      const auto split = split_of(producer, output_of(model_, operand->tensor), true, shares, lengths);
      shares[o] = going_by(id, *operand, split, lengths);
    }
  }

  void follow_readers(std::vector<Share>& shares, const LoopLengths& lengths) const {
    for (std::uint32_t o = static_cast<std::uint32_t>(model_.operators.size()); o-- > 0;) {
      const OperatorId id(o);
      const Access& made = model_.operators[id].outputs.front();
      if (layers_.layer_of[id] != kNoLayer || model_.uses[made.tensor].empty()) continue;
      const Model::Use use = model_.uses[made.tensor].front();
      const auto split = split_of(use.op, model_.operators[use.op].inputs[use.input], false, shares, lengths);
      shares[o] = going_by(id, made, split, lengths);
    }
  }

  const Model& model_;
  bool split_windows_;
  const Assignment& assignment_;
  const ModelLayers& layers_;
  RatioPlan plan_;
};

}  // namespace

DeviceTree tree_of_devices(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  const Settings& settings = scenario.settings;
  std::vector<DeviceTree> nodes;
  double network = std::numeric_limits<double>::infinity();
  for (const RealNode& node : real_nodes(cluster)) {
    const DeviceType& type = *node.device;
    const DeviceTree one = device(
        type.name, type.peak(settings.precision) * type.efficiency(settings.precision) * settings.factors.device_speed,
        static_cast<double>(type.memory_bytes) * settings.factors.device_memory);
    const LinkLevel& inner = (*node.links)[kIntraNode];
    nodes.push_back(node.devices == 1
                        ? one
                        : group_of(inner.name, inner.bandwidth * settings.factors.intra_bandwidth, one, node.devices));
    network = std::min(network, (*node.links)[kInterNode].bandwidth);
  }
  if (nodes.size() == 1) return nodes.front();
  const double factor = settings.factors.inter_bandwidth;
  // Pods of a level are parts of those of the next, and have what their nodes have of it.
  std::string name = cluster.links[kInterNode].name;
  double link = network * factor;
  std::size_t below = 1;
  for (const PodLevel& level : cluster.pods) {
    const std::size_t of_pod = static_cast<std::size_t>(level.nodes) / below;
    std::vector<DeviceTree> pods;
    for (std::size_t first = 0; first < nodes.size(); first += of_pod)
      pods.push_back(group(name, link,
                           {nodes.begin() + static_cast<std::ptrdiff_t>(first),
                            nodes.begin() + static_cast<std::ptrdiff_t>(first + of_pod)}));
    nodes = std::move(pods);
    below = static_cast<std::size_t>(level.nodes);
    name = level.link.name;
    link = std::min(network, level.link.bandwidth) * factor * level.nodes;
  }
  return group(std::move(name), link, std::move(nodes));
}

void keep_splittable(const Model& model, bool split_windows, ModelLayers& layers) {
  for (std::size_t l = 0; l < layers.operators.size(); ++l)
    restrict_loops(model.operators[layers.operators[l]], l, layers, [&](const Operator& op, std::uint8_t loop) {
      return can_split(op, loop, split_windows) ? op.dims[loop].size : 1;
    });
}

RatioPlan ratio_plan_of(const Scenario& scenario, const Bisection& devices, const Assignment& assignment,
                        const ModelLayers& layers) {
  return RatioPlanBuilder(scenario, devices, assignment, layers).build();
}

}  // namespace turnpoint::accpar
