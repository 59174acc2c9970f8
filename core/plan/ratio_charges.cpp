// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_charges.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/cost/eager_kernels.h"
#include "core/cost/operator_cost.h"
#include "core/cost/side_kernels.h"
#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

using Halves = std::array<double, 2>;

/// Halves of halves: a tree that is deeper than this was not made by halving.
constexpr int kMostRatioLevels = 64;

}  // namespace

/// How one half holds a tensor: a share of a dimension, all of it, or a sum that the other half has the rest of.
struct RatioCharges::Held {
  int dim = Layout::kReplicated;
  Halves share{1, 1};
  friend auto operator<=>(const Held&, const Held&) = default;

  /// Part of the tensor that a half receives so that what it holds becomes what is wanted.
  double fetched_for(const Held& wanted_state, std::size_t half) const {
    const double had = share[half], wanted = wanted_state.share[half];
    if (dim == Layout::kReplicated || *this == wanted_state) return 0;
    if (dim == Layout::kPartial) return wanted_state.dim == Layout::kReplicated ? 1 : wanted;
    if (wanted_state.dim == Layout::kReplicated) return 1 - had;
    return dim == wanted_state.dim ? std::max(0.0, wanted - had) : wanted * (1 - had);
  }
  NetworkPart move_to(const Held& wanted) const {
    const bool whole = wanted.dim == Layout::kReplicated;
    if (dim == Layout::kPartial) return whole ? NetworkPart::all_reduce : NetworkPart::reduce_scatter;
    return whole ? NetworkPart::all_gather : NetworkPart::all_to_all;
  }
  Held without_partial() const { return {dim == Layout::kPartial ? Layout::kReplicated : dim, share}; }
};

struct RatioCharges::Ends {
  const RatioPlan::Cut& cut;
  const LoopLengths& lengths;
  const RatioLink& link;
};

RatioCharges::RatioCharges(const Scenario& scenario, const RatioPlan& plan)
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
  if (plan.shards_updates()) {
    shared_out_.assign(model_.operators.size(), 0);
    for (const RatioPlan::Cut& cut : plan.cuts)
      for (std::size_t o = 0; o < std::min(cut.updates.size(), shared_out_.size()); ++o)
        if (cut.updates[o] != 0) shared_out_[o] = 1;
    place_of_.assign(node_of_.size(), 0);
    for (std::uint32_t p = 0; p < plan.order.size(); ++p)
      if (plan.order[p] < place_of_.size()) place_of_[plan.order[p]] = p;
  }
  if (plan.reruns.empty()) return;
  again_of_.assign(node_of_.size(), kNoRerun);
  for (const RatioPlan::Rerun& rerun : plan.reruns) {
    for (const std::uint32_t device : rerun.devices)
      if (device < again_of_.size()) again_of_[device] = static_cast<std::uint32_t>(again_.size());
    again_.push_back(looked_up(rerun));
  }
}

Error RatioCharges::bad(const std::string& what) const {
  return bad_input(fmt::format("ratio plan: {}", what), model_.name);
}

Expected<void> RatioCharges::check_tree() const {
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
    if (levels[p] > kMostRatioLevels)
      return bad(fmt::format("part {} is cut over more than {} levels", p, kMostRatioLevels));
  }
  if (plan_.parts.back().devices != devices) return bad("its parts do not hold all devices");
  for (std::size_t c = 0; c < plan_.cuts.size(); ++c) {
    const RatioPlan::Cut& cut = plan_.cuts[c];
    const bool in_range = cut.part < plan_.parts.size() && cut.share.size() == model_.operators.size();
    if (!in_range || !(cut.ratio > 0 && cut.ratio < 1))
      return bad(fmt::format("cut {} needs a part, a ratio between 0 and 1, and a share for each operator", c));
  }
  if (auto checked = check_reruns(); !checked) return checked;
  return check_updates();
}

double RatioCharges::elements(const Operator& op, const Access& access, const Lengths& lengths) const {
  double count = 1;
  for (const std::int64_t size : local_shape(op, access, lengths)) count *= static_cast<double>(size);
  return count;
}

std::vector<std::int64_t> RatioCharges::local_shape(const Operator& op, const Access& access,
                                                    const Lengths& lengths) const {
  std::vector<std::int64_t> shape = model_.tensors[access.tensor].shape;
  for (std::size_t d = 0; d < shape.size() && d < access.walks.size(); ++d)
    for (const std::uint8_t loop : access.walks[d])
      if (lengths[loop] != op.dims[loop].size) shape[d] = shape[d] * lengths[loop] / op.dims[loop].size;
  return shape;
}

std::int64_t RatioCharges::bytes_of(const Operator& op, const Access& access, const Lengths& lengths) const {
  return static_cast<std::int64_t>(elements(op, access, lengths)) *
         element_bytes(model_.tensors[access.tensor], settings_.precision);
}

std::int64_t RatioCharges::owned(OperatorId id, const Lengths& lengths) const {
  const Operator& op = model_.operators[id];
  std::int64_t count = 0;
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (uses_.owns_parameter[id.index][k]) count += static_cast<std::int64_t>(elements(op, op.inputs[k], lengths));
  return count;
}

// --- cuts ---

Expected<const RatioPlan::Cut*> RatioCharges::cut_of(std::uint32_t part, std::uint32_t cut) const {
  if (cut >= plan_.cuts.size() || plan_.cuts[cut].part != part)
    return bad(fmt::format("part {} has no cut of its own", part));
  return &plan_.cuts[cut];
}

Expected<std::array<LoopLengths, 2>> RatioCharges::divide(const RatioPlan::Cut& cut, const LoopLengths& lengths) const {
  std::array<LoopLengths, 2> halves{lengths, lengths};
  for (std::size_t o = 0; o < lengths.size(); ++o) {
    const RatioPlan::Share& share = cut.share[o];
    if (share.loop < 0) continue;
    const Operator& op = model_.operators[OperatorId(o)];
    const auto loop = static_cast<std::size_t>(share.loop);
    if (loop >= op.dims.size() || !can_split(op, share.loop, settings_.split_windows))
      return bad(fmt::format("'{}' has no loop {} that could be cut", op.name, share.loop));
    const std::int64_t length = lengths[o][loop];
    if (share.first < 1 || share.first >= length)
      return bad(fmt::format("'{}' gives a part {} of {} {}, which leaves one of two nothing", op.name, share.first,
                             length, to_string(op.dims[loop].name)));
    halves[0][o][loop] = share.first;
    halves[1][o][loop] = length - share.first;
  }
  return halves;
}

// Inside a node every device has its own links; between nodes each node has, all at the slowest one's pace.
RatioLink RatioCharges::link_between(std::uint32_t first, std::uint32_t second, std::uint32_t end) const {
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
  RatioLink link;
  link.inside_node = inside;
  for (std::size_t h = 0; h < 2; ++h)
    link.bytes_per_second[h] =
        rate * static_cast<double>(inside ? (h == 0 ? second - first : end - second) : nodes[h].size());
  link.latency_s = level.latency_s * settings_.factors.latency;
  return link;
}

bool RatioCharges::alike(std::uint32_t first, std::uint32_t second, std::uint32_t end) const {
  if (second - first != end - second) return false;
  // Nodes and pods are numbered as they are met, so that equal numbers mean devices that lie together alike.
  const auto numbered = [&](std::uint32_t from, std::ptrdiff_t nodes) {
    std::map<std::ptrdiff_t, std::size_t> met;
    std::vector<std::size_t> numbers;
    for (std::uint32_t d = from; d < from + (second - first); ++d)
      numbers.push_back(met.emplace((node_of_[plan_.order[d]] - nodes_.data()) / nodes, met.size()).first->second);
    return numbers;
  };
  for (std::uint32_t d = 0; d < second - first; ++d) {
    const RealNode &one = *node_of_[plan_.order[first + d]], &other = *node_of_[plan_.order[second + d]];
    if (one.device != other.device || one.links != other.links) return false;
    if (again_on(plan_.order[first + d]) != again_on(plan_.order[second + d])) return false;
  }
  if (numbered(first, 1) != numbered(second, 1)) return false;
  return std::all_of(cluster_.pods.begin(), cluster_.pods.end(),
                     [&](const PodLevel& pods) { return numbered(first, pods.nodes) == numbered(second, pods.nodes); });
}

bool RatioCharges::one_half_tells(std::uint32_t part, const RatioPlan::Cut& cut,
                                  const std::array<LoopLengths, 2>& halves, std::uint32_t first) const {
  const RatioPlan::Part& here = plan_.parts[part];
  const bool same =
      here.halves[0] == here.halves[1] && cut.next[0] == cut.next[1] && halves[0] == halves[1] &&
      std::all_of(cut.updates.begin(), cut.updates.end(), [](double share) { return share == 0 || share == 0.5; });
  return same && alike(first, first + here.devices / 2, first + here.devices);
}

// --- what the halves of a cut exchange ---

RatioCharges::Held RatioCharges::held(OperatorId id, const Access& access, bool is_output, bool gradient,
                                      const Ends& at) const {
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

// `hops`: the part of the latency that is charged.
void RatioCharges::add(std::vector<RatioExchange>& made, RatioExchange exchange, const Held& from, const Held& to,
                       double bytes, const RatioLink& link, double hops) const {
  for (std::size_t h = 0; h < 2; ++h) {
    const double there = from.fetched_for(to, h) * bytes;
    exchange.both += there;
    if (const double seconds = there / link.bytes_per_second[h]; seconds > exchange.seconds)
      exchange.seconds = seconds, exchange.bytes = there;
  }
  if (exchange.seconds == 0) return;
  exchange.part = from.move_to(to);
  exchange.seconds += (exchange.part == NetworkPart::all_reduce ? 2 : 1) * hops * link.latency_s;
  made.push_back(std::move(exchange));
}

std::vector<RatioExchange> RatioCharges::exchanges(const RatioPlan::Cut& cut, const LoopLengths& lengths,
                                                   const RatioLink& link) const {
  const Ends at{cut, lengths, link};
  std::vector<RatioExchange> made;
  for (std::uint32_t f = 0; f < uses_.flows.size(); ++f) exchange_flow(made, f, at);
  const std::vector<RatioWeights> weights = weights_at(cut, lengths);
  for (std::size_t o = 0; o < weights.size(); ++o)
    exchange_weights(made, OperatorId(o), weights[o], cut.update_of(OperatorId(o)), link);
  for (std::uint32_t t = 0; t < uses_.ties.size(); ++t) exchange_tie(made, t, at);
  return made;
}

int RatioCharges::cut_of_weight(OperatorId id, std::size_t input, const RatioPlan::Cut& cut) const {
  Configuration one;
  one.axis[0] = cut.share[id.index].loop;
  const Operator& op = model_.operators[id];
  return gradient_layout(op, op.inputs[input], false, one, 1).axis[0];
}

void RatioCharges::exchange_weights(std::vector<RatioExchange>& made, OperatorId id, const RatioWeights& there,
                                    double first, const RatioLink& link) const {
  using What = RatioExchange::What;
  const Held summands{Layout::kPartial, {1, 1}}, whole, parts{0, {first, 1 - first}};
  if (there.gradient > 0)
    add(made, {What::weight_gradient, id, 0, {}}, summands, first > 0 ? parts : whole, there.gradient, link,
        there.gradient_hops);
  if (first == 0) return;
  for (const RatioWeights::Sum& sum : there.sums)
    if (sum.bytes > 0) add(made, {What::update_sums, id, 0, {}}, summands, whole, sum.bytes, link, sum.hops);
  if (there.weight > 0) add(made, {What::new_weights, id, 0, {}}, parts, whole, there.weight, link, there.weight_hops);
}

void RatioCharges::exchange_flow(std::vector<RatioExchange>& made, std::uint32_t f, const Ends& at) const {
  using What = RatioExchange::What;
  const TensorFlow& flow = uses_.flows[f];
  const Operator& producer = model_.operators[flow.producer];
  const Access& output = producer.outputs[flow.output];
  const Tensor& tensor = model_.tensors[flow.tensor];
  const Held left = held(flow.producer, output, true, false, at), wanted_back = left.without_partial();
  const int bytes_each = element_bytes(tensor, settings_.precision);
  const bool back = tensor.requires_gradient && tensor.role == TensorRole::activation;
  const double back_bytes = elements(producer, output, at.lengths[flow.producer.index]) * bytes_each;
  std::map<Held, std::vector<std::uint32_t>> served, returned;
  for (std::uint32_t c = 0; c < flow.consumers.size(); ++c) {
    const Model::Use& use = flow.consumers[c];
    const Access& read = model_.operators[use.op].inputs[use.input];
    served[held(use.op, read, false, false, at)].push_back(c);
    returned[held(use.op, read, false, true, at)].push_back(c);
  }
  for (std::uint32_t c = 0; c < flow.consumers.size(); ++c) {
    const Model::Use& use = flow.consumers[c];
    const Operator& reader = model_.operators[use.op];
    const Access& read = reader.inputs[use.input];
    const Held wanted = held(use.op, read, false, false, at), gradient = held(use.op, read, false, true, at);
    if (const auto& sharing = served[wanted]; sharing.front() == c)
      add(made, {What::tensor, use.op, f, sharing}, left, wanted,
          elements(reader, read, at.lengths[use.op.index]) * bytes_each, at.link);
    if (const auto& alike = returned[gradient]; back && alike.front() == c)
      add(made, {What::gradient, use.op, f, alike}, gradient, wanted_back, back_bytes, at.link);
  }
}

void RatioCharges::exchange_tie(std::vector<RatioExchange>& made, std::uint32_t t, const Ends& at) const {
  using What = RatioExchange::What;
  const ParameterTie& tie = uses_.ties[t];
  const Operator &owner = model_.operators[tie.owner], &user = model_.operators[tie.user];
  const Access &own = owner.inputs[tie.owner_input], &used = user.inputs[tie.user_input];
  // Of a matrix that is used as its transpose dimensions are those of what is stored.
  const std::vector<std::int64_t>&stored = model_.tensors[own.tensor].shape, &read = model_.tensors[used.tensor].shape;
  const bool turned = stored.size() == 2 && stored != read;
  const auto at_user = [&](bool gradient) {
    Held there = held(tie.user, used, false, gradient, at);
    if (turned && there.dim >= 0) there.dim = 1 - there.dim;
    return there;
  };
  add(made, {What::weight, tie.user, t, {}}, held(tie.owner, own, false, false, at), at_user(false),
      elements(user, used, at.lengths[tie.user.index]) * real_.weight, at.link);
  const Held gradient = at_user(true), there = held(tie.owner, own, false, true, at);
  if (gradient.dim != Layout::kPartial || there.dim != Layout::kPartial)  // both parts are summed as one
    add(made, {What::tied_gradient, tie.user, t, {}}, gradient, there.without_partial(),
        elements(owner, own, at.lengths[tie.owner.index]) * real_.gradient, at.link);
}

// --- one device ---

CostBreakdown RatioCharges::device_cost(OperatorId id, std::uint32_t number, const Lengths& lengths) const {
  const DeviceType& type = device_of(cluster_, number);
  const Operator& op = model_.operators[id];
  CostBreakdown cost;
  if (op.kind == OperatorKind::input || op.is_view()) return cost;
  bool any_gradient = false;
  for (const Access& access : op.inputs) any_gradient |= model_.tensors[access.tensor].requires_gradient;
  cost[ComputePart::forward] = phase_seconds(op, lengths, type, false);
  if (any_gradient) cost[ComputePart::backward] = phase_seconds(op, lengths, type, true);
  hold_parameters(id, lengths, number, cost);
  if (runs_again(id, number)) {
    cost[ComputePart::recompute] = cost[ComputePart::forward];
    return cost;  // what it keeps inside is made then
  }
  for (const Access& access : op.outputs)
    if (access.saved && counted_with_operator(model_, op, access))
      cost[MemoryPart::activations] += bytes_of(op, access, lengths);
  cost[MemoryPart::activations] += excess(op, lengths);
  return cost;
}

double RatioCharges::phase_seconds(const Operator& op, const Lengths& lengths, const DeviceType& type,
                                   bool backward) const {
  double part = 1, bytes = 0;
  for (std::size_t l = 0; l < lengths.size(); ++l)
    part *= static_cast<double>(lengths[l]) / static_cast<double>(op.dims[l].size);
  const auto add = [&](const Access& access, bool output) {
    const Tensor& tensor = model_.tensors[access.tensor];
    bytes += times_moved(op, access, tensor, output, backward) * elements(op, access, lengths) *
             element_bytes(tensor, settings_.precision);
  };
  for (const Access& access : op.inputs) add(access, false);
  for (const Access& access : op.outputs) add(access, true);
  const EagerKernels* eager = eager_kernels(settings_, op);
  if (!eager) bytes += static_cast<double>(excess(op, lengths)) * (backward ? 1 : 2);
  PhaseWork todo{(backward ? op.backward_flop : op.forward_flop) * part,
                 bytes * (backward ? op.backward_passes : op.forward_passes)};
  if (eager) charge_eagerly(settings_, op, *eager, backward, elements(op, eager_elements(op).access, lengths), todo);
  if (const Access* table = cleared_table(model_, op, backward, settings_.accounting)) {
    todo.beside_bytes +=
        elements(op, *table, lengths) * element_bytes(model_.tensors[table->tensor], settings_.precision);
    ++todo.more_kernels;
  }
  const Access& made = op.outputs.front();
  const SideKernels side =
      side_kernels(settings_, cluster_.library, model_, op, backward,
                   elements(op, made, lengths) * element_bytes(model_.tensors[made.tensor], settings_.precision));
  todo.beside_bytes += side.bytes, todo.more_kernels += side.kernels;
  const double speed = settings_.factors.device_speed;
  const bool products = record_of(op.kind).products;
  const double rate = products ? type.peak(settings_.precision) * type.efficiency(settings_.precision)
                               : type.peak_fp32 * type.flop_efficiency;
  const double launch = products && settings_.accounting == Accounting::full ? type.product_launch() : type.launch_s;
  const double bandwidth = type.memory_bandwidth * type.memory_efficiency * speed;
  return std::max(todo.flop / (rate * speed), todo.bytes / bandwidth) + launch + todo.beside_bytes / bandwidth +
         todo.more_kernels * type.launch_s;
}

// Its probabilities, or what kernels that are not fused keep between them.
std::int64_t RatioCharges::excess(const Operator& op, const Lengths& lengths) const {
  if (const EagerKernels* eager = eager_kernels(settings_, op))
    return std::int64_t(eager_kept_bytes(settings_, op, *eager, elements(op, eager_elements(op).access, lengths)));
  const std::int64_t whole = loss_excess_bytes(settings_, model_, op, Configuration(), Mesh());
  if (whole == 0) return 0;
  const Access& logits = op.inputs.front();
  return static_cast<std::int64_t>(static_cast<double>(whole) * elements(op, logits, lengths) /
                                   static_cast<double>(model_.tensors[logits.tensor].elements()));
}

void RatioCharges::hold_parameters(OperatorId id, const Lengths& lengths, std::uint32_t device,
                                   CostBreakdown& cost) const {
  const std::int64_t count = owned(id, lengths);
  if (count == 0) return;
  const std::int64_t here = updated(id, lengths, updates_on(id, device));
  cost[MemoryPart::parameters] += count * counted_.weight;
  cost[MemoryPart::gradients] += here * counted_.gradient;
  cost[MemoryPart::optimizer] += here * counted_.optimizer;
  cost[ComputePart::update] = update_s(here, device);
}

void RatioCharges::cross(const RatioPlan::Cut& cut, const LoopLengths& lengths, AsLeft& as_left) const {
  const RatioLink nowhere;
  const Ends at{cut, lengths, nowhere};
  for (std::size_t f = 0; f < as_left.size(); ++f) {
    const TensorFlow& flow = uses_.flows[f];
    const Held left = held(flow.producer, model_.operators[flow.producer].outputs[flow.output], true, false, at);
    for (std::size_t c = 0; c < flow.consumers.size(); ++c) {
      const Model::Use& use = flow.consumers[c];
      const bool same = left.dim != Layout::kPartial &&
                        left == held(use.op, model_.operators[use.op].inputs[use.input], false, false, at);
      as_left[f][c] = as_left[f][c] && same;
    }
  }
}

// Once for every shape in which backward will read it; a part of another copy is cut out of that when it is needed.
void RatioCharges::hold_flow(std::uint32_t index, const LoopLengths& lengths, const FlowAgain& again,
                             CostBreakdown& cost) const {
  using Shape = std::vector<std::int64_t>;
  const TensorFlow& flow = uses_.flows[index];
  const Operator& producer = model_.operators[flow.producer];
  const Access& made = producer.outputs[flow.output];
  const Shape left = local_shape(producer, made, lengths[flow.producer.index]);
  std::set<Shape> read;
  if (flow.producer_copy_is_here() && !again.made) read.insert(left);
  for (std::size_t c = 0; c < flow.consumers.size(); ++c) {
    const Model::Use& use = flow.consumers[c];
    const Operator& reader = model_.operators[use.op];
    if (!flow.consumer_saves[c] && !(again.read && (*again.read)[c])) continue;
    if (again.made && (*again.as_left)[c]) continue;
    read.insert(local_shape(reader, reader.inputs[use.input], lengths[use.op.index]));
  }
  const auto is_part_of = [](const Shape& a, const Shape& b) {
    return a != b && std::equal(a.begin(), a.end(), b.begin(), b.end(), std::less_equal<>());
  };
  for (const Shape& shape : read) {
    const bool part = std::any_of(read.begin(), read.end(), [&](const Shape& b) { return is_part_of(shape, b); });
    if (part || (flow.producer_is_view && shape == left)) continue;
    std::int64_t bytes = element_bytes(model_.tensors[flow.tensor], settings_.precision);
    for (const std::int64_t size : shape) bytes *= size;
    cost[shape == left ? MemoryPart::activations : MemoryPart::copies] += bytes;
  }
}

}  // namespace turnpoint
