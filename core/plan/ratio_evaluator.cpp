// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_evaluator.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <set>

#include "core/cost/operator_cost.h"
#include "core/model/operator_kind.h"
#include "core/plan/loop_lengths.h"

namespace turnpoint {

namespace {

using Halves = std::array<double, 2>;

/// How one half holds a tensor: a share of a dimension, all of it, or a sum that the other half has the rest of.
struct Held {
  int dim = Layout::kReplicated;
  Halves share{1, 1};
  friend auto operator<=>(const Held&, const Held&) = default;
};

/// Part of the tensor that a half receives so that what it holds becomes what is wanted.
double fetched(const Held& from, const Held& to, std::size_t half) {
  const double had = from.share[half], wanted = to.share[half];
  if (from.dim == Layout::kReplicated || from == to) return 0;
  if (from.dim == Layout::kPartial) return to.dim == Layout::kReplicated ? 1 : wanted;
  if (to.dim == Layout::kReplicated) return 1 - had;
  return from.dim == to.dim ? std::max(0.0, wanted - had) : wanted * (1 - had);
}

NetworkPart kind_of_exchange(const Held& from, const Held& to) {
  const bool whole = to.dim == Layout::kReplicated;
  if (from.dim == Layout::kPartial) return whole ? NetworkPart::all_reduce : NetworkPart::reduce_scatter;
  return whole ? NetworkPart::all_gather : NetworkPart::all_to_all;
}

/// What one part needs: times on its slowest device, memory of its fullest.
struct PartCosts {
  std::vector<CostBreakdown> operators;
  std::vector<std::int64_t> device_memory;  ///< in the plan's order
  std::vector<double> device_compute_s;     ///< likewise
  std::vector<RatioPlan::Exchange> flows;   ///< by TensorUses::flows
};

class Evaluation {
 public:
  Evaluation(const Scenario& scenario, const RatioPlan& plan)
      : scenario_(scenario),
        plan_(plan),
        model_(*scenario.model),
        cluster_(*scenario.cluster),
        settings_(scenario.settings),
        uses_(analyse_tensor_uses(model_)),
        counted_(parameter_bytes(settings_, settings_.accounting)),
        real_(parameter_bytes(settings_, Accounting::full)),
        nodes_(real_nodes(cluster_)) {
    for (const RealNode& node : nodes_) node_of_.insert(node_of_.end(), static_cast<std::size_t>(node.devices), &node);
  }

  Expected<PartCosts> run() {
    if (auto checked = check_tree(); !checked) return checked.error();
    return part(plan_.whole(), plan_.cuts.empty() ? RatioPlan::kNoCut : 0, 0, loop_lengths(model_));
  }

 private:
  /// Halves of halves: a tree that is deeper than this was not made by halving.
  static constexpr int kMostLevels = 64;

  Error bad(const std::string& what) const { return bad_input(fmt::format("ratio plan: {}", what), model_.name); }

  Expected<void> check_tree() const {
    const auto devices = static_cast<std::uint32_t>(cluster_.devices());
    if (settings_.precision == Precision::fp8)
      return usage_error("a ratio plan is not priced in 8 bits: use fp32 or bf16");
    std::vector<std::uint32_t> order = plan_.order;
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(devices);
    std::iota(all.begin(), all.end(), 0u);
    if (order != all) return bad(fmt::format("its order does not name each of {} devices once", devices));
    if (plan_.parts.empty()) return bad("it has no parts");
    std::vector<int> levels(plan_.parts.size(), 0);
    for (std::size_t p = 0; p < plan_.parts.size(); ++p) {
      const RatioPlan::Part& one = plan_.parts[p];
      if (one.devices == 1) continue;
      if (one.halves[0] >= p || one.halves[1] >= p ||
          plan_.parts[one.halves[0]].devices + plan_.parts[one.halves[1]].devices != one.devices)
        return bad(fmt::format("part {} is not made of two parts before it", p));
      levels[p] = 1 + std::max(levels[one.halves[0]], levels[one.halves[1]]);
      if (levels[p] > kMostLevels) return bad(fmt::format("part {} is cut over more than {} levels", p, kMostLevels));
    }
    if (plan_.parts.back().devices != devices) return bad("its parts do not hold all devices");
    for (std::size_t c = 0; c < plan_.cuts.size(); ++c) {
      const RatioPlan::Cut& cut = plan_.cuts[c];
      const bool in_range = cut.part < plan_.parts.size() && cut.share.size() == model_.operators.size();
      if (!in_range || !(cut.ratio > 0 && cut.ratio < 1))
        return bad(fmt::format("cut {} needs a part, a ratio between 0 and 1, and a share for each operator", c));
    }
    return {};
  }

  double elements(const Operator& op, const Access& access, const std::vector<std::int64_t>& lengths) const {
    double count = 1;
    for (const std::int64_t size : local_shape(op, access, lengths)) count *= static_cast<double>(size);
    return count;
  }
  std::vector<std::int64_t> local_shape(const Operator& op, const Access& access,
                                        const std::vector<std::int64_t>& lengths) const {
    std::vector<std::int64_t> shape = model_.tensors[access.tensor].shape;
    for (std::size_t d = 0; d < shape.size() && d < access.walks.size(); ++d)
      for (const std::uint8_t loop : access.walks[d])
        if (lengths[loop] != op.dims[loop].size) shape[d] = shape[d] * lengths[loop] / op.dims[loop].size;
    return shape;
  }

  // --- cuts ---

  Expected<PartCosts> part(std::uint32_t index, std::uint32_t cut_index, std::uint32_t first,
                           const LoopLengths& lengths) {
    const RatioPlan::Part& here = plan_.parts[index];
    if (here.devices == 1) {
      if (cut_index != RatioPlan::kNoCut) return bad("it cuts a single device");
      return device(plan_.order[first], lengths);
    }
    if (cut_index >= plan_.cuts.size() || plan_.cuts[cut_index].part != index)
      return bad(fmt::format("part {} has no cut of its own", index));
    const RatioPlan::Cut& cut = plan_.cuts[cut_index];
    std::array<LoopLengths, 2> halves{lengths, lengths};
    for (std::size_t o = 0; o < lengths.size(); ++o)
      if (auto done = divide(OperatorId(o), cut.share[o], lengths[o], halves); !done) return done.error();
    const std::uint32_t second = first + plan_.parts[here.halves[0]].devices;
    auto costs = part(here.halves[0], cut.next[0], first, halves[0]);
    if (!costs) return costs;
    auto others = part(here.halves[1], cut.next[1], second, halves[1]);
    if (!others) return others;
    unite(*costs, *others);
    exchange(*costs, cut, lengths, rates_between(first, second, second + plan_.parts[here.halves[1]].devices));
    return costs;
  }

  Expected<void> divide(OperatorId id, const RatioPlan::Share& share, const std::vector<std::int64_t>& lengths,
                        std::array<LoopLengths, 2>& halves) const {
    if (share.loop < 0) return {};
    const Operator& op = model_.operators[id];
    const auto loop = static_cast<std::size_t>(share.loop);
    if (loop >= op.dims.size() || !can_split(op, share.loop, settings_.split_windows))
      return bad(fmt::format("'{}' has no loop {} that could be cut", op.name, share.loop));
    if (share.first < 1 || share.first >= lengths[loop])
      return bad(fmt::format("'{}' gives a part {} of {} {}, which leaves one of two nothing", op.name, share.first,
                             lengths[loop], to_string(op.dims[loop].name)));
    halves[0][id.index][loop] = share.first;
    halves[1][id.index][loop] = lengths[loop] - share.first;
    return {};
  }

  // The slower device decides over an operator's time, the fuller one over memory.
  static void unite(PartCosts& one, const PartCosts& other) {
    const auto fullest = [](const PartCosts& of) {
      return *std::max_element(of.device_memory.begin(), of.device_memory.end());
    };
    const bool other_is_fuller = fullest(other) > fullest(one);
    for (std::size_t o = 0; o < one.operators.size(); ++o) {
      CostBreakdown &a = one.operators[o], b = other.operators[o];
      if (b.time_s() > a.time_s()) a.compute = b.compute, a.network = b.network;
      if (other_is_fuller) a.memory = b.memory;
    }
    for (std::size_t f = 0; f < one.flows.size(); ++f)
      if (other.flows[f].seconds > one.flows[f].seconds) one.flows[f] = other.flows[f];
    one.device_memory.insert(one.device_memory.end(), other.device_memory.begin(), other.device_memory.end());
    one.device_compute_s.insert(one.device_compute_s.end(), other.device_compute_s.begin(),
                                other.device_compute_s.end());
  }

  struct Link {
    Halves bytes_per_second{};
    double latency_s = 0;
  };
  /// Inside a node every device has its own links; between nodes each node has, all at the slowest one's pace.
  Link rates_between(std::uint32_t first, std::uint32_t second, std::uint32_t end) const {
    std::array<std::set<const RealNode*>, 2> nodes;
    for (std::uint32_t d = first; d < end; ++d) nodes[d < second ? 0 : 1].insert(node_of_[plan_.order[d]]);
    const bool inside = nodes[0].size() == 1 && nodes[0] == nodes[1];
    LinkLevel level = (*(*nodes[0].begin())->links)[inside ? kIntraNode : kInterNode];
    for (const auto& half : nodes)
      for (const RealNode* node : half) {
        if (inside) break;
        level.bandwidth = std::min(level.bandwidth, (*node->links)[kInterNode].bandwidth);
        level.latency_s = std::max(level.latency_s, (*node->links)[kInterNode].latency_s);
      }
    for (const PodLevel& pods : cluster_.pods) {
      std::set<std::ptrdiff_t> crossed;
      for (const auto& half : nodes)
        for (const RealNode* node : half) crossed.insert((node - nodes_.data()) / pods.nodes);
      if (crossed.size() > 1)
        level.bandwidth = std::min(level.bandwidth, pods.link.bandwidth), level.latency_s = pods.link.latency_s;
    }
    const double rate =
        level.bandwidth * (inside ? settings_.factors.intra_bandwidth : settings_.factors.inter_bandwidth);
    Link link;
    for (std::size_t h = 0; h < 2; ++h)
      link.bytes_per_second[h] =
          rate * static_cast<double>(inside ? (h == 0 ? second - first : end - second) : nodes[h].size());
    link.latency_s = level.latency_s * settings_.factors.latency;
    return link;
  }

  // --- what the halves of a cut exchange ---

  struct Ends {
    const RatioPlan::Cut& cut;
    const LoopLengths& lengths;
    const Link& link;
  };

  Held held(OperatorId id, const Access& access, bool is_output, bool gradient, const Ends& at) const {
    const RatioPlan::Share& share = at.cut.share[id.index];
    const Operator& op = model_.operators[id];
    Configuration one;
    one.axis[0] = share.loop;
    const Layout layout =
        gradient ? gradient_layout(op, access, is_output, one, 1) : forward_layout(op, access, is_output, one, 1);
    Held made{layout.axis[0], {1, 1}};
    if (made.dim < 0) return made;
    const double first = static_cast<double>(share.first) /
                         static_cast<double>(at.lengths[id.index][static_cast<std::size_t>(share.loop)]);
    made.share = {first, 1 - first};
    return made;
  }

  /// `hops`: the part of the latency that is charged.
  void charge(CostBreakdown& cost, const Held& from, const Held& to, double bytes, const Link& link,
              RatioPlan::Exchange* exchange = nullptr, double hops = 1) const {
    double seconds = 0, received = 0;
    for (std::size_t h = 0; h < 2; ++h) {
      const double there = fetched(from, to, h) * bytes;
      if (there / link.bytes_per_second[h] > seconds) seconds = there / link.bytes_per_second[h], received = there;
    }
    if (seconds == 0) return;
    const NetworkPart part = kind_of_exchange(from, to);
    seconds += (part == NetworkPart::all_reduce ? 2 : 1) * hops * link.latency_s;
    cost[part] += seconds;
    if (exchange) exchange->bytes += received, exchange->seconds += seconds;
  }

  void exchange(PartCosts& costs, const RatioPlan::Cut& cut, const LoopLengths& lengths, const Link& link) const {
    const Ends at{cut, lengths, link};
    for (std::size_t f = 0; f < uses_.flows.size(); ++f) exchange_flow(costs, uses_.flows[f], costs.flows[f], at);
    std::vector<double> gradients(lengths.size(), 0);
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      const OperatorId id(o);
      const Operator& op = model_.operators[id];
      for (std::size_t k = 0; k < op.inputs.size(); ++k)
        if (uses_.owns_parameter[o][k] && held(id, op.inputs[k], false, true, at).dim == Layout::kPartial)
          gradients[o] += elements(op, op.inputs[k], lengths[o]) * real_.gradient;
    }
    // Gradients fill messages: an operator pays for its part of one.
    const double bucket = scenario_.by_library() ? static_cast<double>(settings_.bucket_bytes) : 0;
    const double message = std::min(bucket, std::accumulate(gradients.begin(), gradients.end(), 0.0));
    for (std::size_t o = 0; o < lengths.size(); ++o)
      if (const double bytes = gradients[o]; bytes > 0)
        charge(costs.operators[o], Held{Layout::kPartial, {1, 1}}, Held{}, bytes, link, nullptr,
               bytes / std::max(bytes, message));
    for (const ParameterTie& tie : uses_.ties) exchange_tie(costs, tie, at);
  }

  // Readers that want the same share one exchange; so do gradients that lie alike.
  void exchange_flow(PartCosts& costs, const TensorFlow& flow, RatioPlan::Exchange& made_of_it, const Ends& at) const {
    const Operator& producer = model_.operators[flow.producer];
    const Access& made = producer.outputs[flow.output];
    const Tensor& tensor = model_.tensors[flow.tensor];
    const Held left = held(flow.producer, made, true, false, at), wanted_back = without_partial(left);
    const int bytes_each = element_bytes(tensor, settings_.precision);
    const bool back = tensor.requires_gradient && tensor.role == TensorRole::activation;
    const double back_bytes = elements(producer, made, at.lengths[flow.producer.index]) * bytes_each;
    std::set<Held> served, returned;
    for (const Model::Use& use : flow.consumers) {
      const Operator& reader = model_.operators[use.op];
      const Access& read = reader.inputs[use.input];
      CostBreakdown& cost = costs.operators[use.op.index];
      if (const Held wanted = held(use.op, read, false, false, at); served.insert(wanted).second)
        charge(cost, left, wanted, elements(reader, read, at.lengths[use.op.index]) * bytes_each, at.link, &made_of_it);
      if (!back) continue;
      if (const Held gradient = held(use.op, read, false, true, at); returned.insert(gradient).second)
        charge(cost, gradient, wanted_back, back_bytes, at.link, &made_of_it);
    }
  }

  void exchange_tie(PartCosts& costs, const ParameterTie& tie, const Ends& at) const {
    const Operator &owner = model_.operators[tie.owner], &user = model_.operators[tie.user];
    const Access &own = owner.inputs[tie.owner_input], &used = user.inputs[tie.user_input];
    CostBreakdown& cost = costs.operators[tie.user.index];
    charge(cost, held(tie.owner, own, false, false, at), held(tie.user, used, false, false, at),
           elements(user, used, at.lengths[tie.user.index]) * real_.weight, at.link);
    const Held gradient = held(tie.user, used, false, true, at), there = held(tie.owner, own, false, true, at);
    if (gradient.dim != Layout::kPartial || there.dim != Layout::kPartial)  // both parts are summed as one
      charge(cost, gradient, without_partial(there), elements(owner, own, at.lengths[tie.owner.index]) * real_.gradient,
             at.link);
  }

  static Held without_partial(Held held) {
    if (held.dim == Layout::kPartial) held.dim = Layout::kReplicated;
    return held;
  }

  // --- one device ---

  Expected<PartCosts> device(std::uint32_t number, const LoopLengths& lengths) const {
    const DeviceType& type = device_of(cluster_, number);
    PartCosts costs;
    costs.operators.resize(lengths.size());
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      const OperatorId id(o);
      const Operator& op = model_.operators[id];
      if (op.kind == OperatorKind::input || op.is_view()) continue;
      CostBreakdown& cost = costs.operators[o];
      bool any_gradient = false;
      for (const Access& access : op.inputs) any_gradient |= model_.tensors[access.tensor].requires_gradient;
      cost[ComputePart::forward] = phase_seconds(op, lengths[o], type, false);
      if (any_gradient) cost[ComputePart::backward] = phase_seconds(op, lengths[o], type, true);
      hold_parameters(id, lengths[o], type, cost);
      hold_own(id, lengths[o], cost);
    }
    for (const TensorFlow& flow : uses_.flows) {
      hold_flow(flow, lengths, costs);
      costs.flows.push_back({flow.tensor, flow.producer});
    }
    std::int64_t bytes = 0;
    double seconds = 0;
    for (const CostBreakdown& cost : costs.operators) bytes += cost.memory_bytes(), seconds += cost.compute_s();
    costs.device_memory = {bytes};
    costs.device_compute_s = {seconds};
    return costs;
  }

  double phase_seconds(const Operator& op, const std::vector<std::int64_t>& lengths, const DeviceType& type,
                       bool backward) const {
    double part = 1, bytes = 0;
    for (std::size_t l = 0; l < lengths.size(); ++l)
      part *= static_cast<double>(lengths[l]) / static_cast<double>(op.dims[l].size);
    const auto add = [&](const Access& access, double times) {
      bytes +=
          times * elements(op, access, lengths) * element_bytes(model_.tensors[access.tensor], settings_.precision);
    };
    for (const Access& access : op.inputs) {
      const Tensor& tensor = model_.tensors[access.tensor];
      if (op.kind == OperatorKind::embedding && tensor.role == TensorRole::parameter) continue;
      add(access, backward ? (access.saved ? 1 : 0) + (tensor.requires_gradient ? 1 : 0) : 1);
    }
    for (const Access& access : op.outputs) {
      const bool internal = model_.tensors[access.tensor].role == TensorRole::internal;
      add(access, backward ? (access.saved ? 1 : 0) + (internal ? 0 : 1) : 1);
    }
    bytes += static_cast<double>(excess(op, lengths)) * (backward ? 1 : 2);
    bytes *= backward ? op.backward_passes : op.forward_passes;
    const double speed = settings_.factors.device_speed;
    const bool products = record_of(op.kind).products;
    const double rate = products ? type.peak(settings_.precision) * type.efficiency(settings_.precision)
                                 : type.peak_fp32 * type.flop_efficiency;
    const double launch = products && settings_.accounting == Accounting::full ? type.product_launch() : type.launch_s;
    return std::max((backward ? op.backward_flop : op.forward_flop) * part / (rate * speed),
                    bytes / (type.memory_bandwidth * type.memory_efficiency * speed)) +
           launch;
  }

  // Probabilities of a loss that is computed in fp32 beside 16-bit logits.
  std::int64_t excess(const Operator& op, const std::vector<std::int64_t>& lengths) const {
    const std::int64_t whole = loss_excess_bytes(settings_, model_, op, Configuration(), Mesh());
    if (whole == 0) return 0;
    const Access& logits = op.inputs.front();
    return static_cast<std::int64_t>(static_cast<double>(whole) * elements(op, logits, lengths) /
                                     static_cast<double>(model_.tensors[logits.tensor].elements()));
  }

  void hold_parameters(OperatorId id, const std::vector<std::int64_t>& lengths, const DeviceType& type,
                       CostBreakdown& cost) const {
    const Operator& op = model_.operators[id];
    std::int64_t owned = 0;
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (uses_.owns_parameter[id.index][k]) owned += static_cast<std::int64_t>(elements(op, op.inputs[k], lengths));
    if (owned == 0) return;
    cost[MemoryPart::parameters] += owned * counted_.weight;
    cost[MemoryPart::gradients] += owned * counted_.gradient;
    cost[MemoryPart::optimizer] += owned * counted_.optimizer;
    // Read the gradient, read and write weight and state, write the 16-bit copy.
    const bool full = settings_.precision == Precision::fp32;
    const double bytes =
        static_cast<double>(owned) * (real_.gradient + 2.0 * (real_.optimizer + (full ? 4 : 0)) + (full ? 0 : 2));
    cost[ComputePart::update] =
        bytes / (type.memory_bandwidth * type.memory_efficiency * settings_.factors.device_speed) + type.launch_s;
  }

  void hold_own(OperatorId id, const std::vector<std::int64_t>& lengths, CostBreakdown& cost) const {
    const Operator& op = model_.operators[id];
    for (const Access& access : op.outputs)
      if (access.saved && counted_with_operator(model_, op, access))
        cost[MemoryPart::activations] += bytes_of(op, access, lengths);
    cost[MemoryPart::activations] += excess(op, lengths);
  }

  /// Once for every shape in which backward will read it; a part of another copy is cut out of that when it is needed.
  void hold_flow(const TensorFlow& flow, const LoopLengths& lengths, PartCosts& costs) const {
    using Shape = std::vector<std::int64_t>;
    const Operator& producer = model_.operators[flow.producer];
    const Access& made = producer.outputs[flow.output];
    const Shape left = local_shape(producer, made, lengths[flow.producer.index]);
    std::set<Shape> read;
    if (flow.producer_copy_is_here()) read.insert(left);
    for (std::size_t c = 0; c < flow.consumers.size(); ++c) {
      const Model::Use& use = flow.consumers[c];
      const Operator& reader = model_.operators[use.op];
      if (flow.consumer_saves[c]) read.insert(local_shape(reader, reader.inputs[use.input], lengths[use.op.index]));
    }
    const auto is_part_of = [](const Shape& a, const Shape& b) {
      return a != b && std::equal(a.begin(), a.end(), b.begin(), b.end(), std::less_equal<>());
    };
    CostBreakdown& cost = costs.operators[flow.producer.index];
    for (const Shape& shape : read) {
      const bool part = std::any_of(read.begin(), read.end(), [&](const Shape& b) { return is_part_of(shape, b); });
      if (part || (flow.producer_is_view && shape == left)) continue;
      std::int64_t bytes = element_bytes(model_.tensors[flow.tensor], settings_.precision);
      for (const std::int64_t size : shape) bytes *= size;
      cost[shape == left ? MemoryPart::activations : MemoryPart::copies] += bytes;
    }
  }

  std::int64_t bytes_of(const Operator& op, const Access& access, const std::vector<std::int64_t>& lengths) const {
    return static_cast<std::int64_t>(elements(op, access, lengths)) *
           element_bytes(model_.tensors[access.tensor], settings_.precision);
  }

  const Scenario& scenario_;
  const RatioPlan& plan_;
  const Model& model_;
  const Cluster& cluster_;
  const Settings& settings_;
  const TensorUses uses_;
  const ParameterBytes counted_, real_;
  const std::vector<RealNode> nodes_;
  std::vector<const RealNode*> node_of_;  // by device
};

}  // namespace

Expected<RatioPlan> evaluate_ratio_plan(const Scenario& scenario, RatioPlan plan) {
  auto costs = Evaluation(scenario, plan).run();
  if (!costs) return costs.error();
  plan.operators.clear();
  plan.cost = {};
  plan.exchanges = std::move(costs->flows);
  std::erase_if(plan.exchanges, [](const auto& exchange) { return exchange.seconds == 0; });
  for (std::size_t o = 0; o < costs->operators.size(); ++o) {
    plan.operators.push_back({OperatorId(o), costs->operators[o]});
    plan.cost += costs->operators[o];
  }
  plan.device_memory.assign(plan.order.size(), 0);
  plan.device_compute_s.assign(plan.order.size(), 0);
  for (std::size_t d = 0; d < plan.order.size(); ++d) {
    plan.device_memory[plan.order[d]] = costs->device_memory[d];
    plan.device_compute_s[plan.order[d]] = costs->device_compute_s[d];
  }
  return plan;
}

}  // namespace turnpoint
