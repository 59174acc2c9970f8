// SPDX-License-Identifier: Apache-2.0
#include "core/cost/operator_cost.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <tuple>

#include "core/cost/calibration.h"
#include "core/cost/eager_kernels.h"
#include "core/cost/local_sizes.h"
#include "core/cost/logical_dims.h"
#include "core/cost/row_alignment.h"
#include "core/cost/side_kernels.h"
#include "core/cost/summed_elements.h"
#include "core/model/operator_kind.h"
#include "core/model/split_loss.h"

namespace turnpoint {

namespace {

NetworkPart part_of(ReshardMove move) {
  switch (move) {
    case ReshardMove::all_gather: return NetworkPart::all_gather;
    case ReshardMove::reduce_scatter: return NetworkPart::reduce_scatter;
    case ReshardMove::all_to_all: return NetworkPart::all_to_all;
    case ReshardMove::permute: return NetworkPart::permute;
    case ReshardMove::all_reduce:
    case ReshardMove::slice: break;
  }
  return NetworkPart::all_reduce;
}

}  // namespace

int element_bytes(const Tensor& tensor, Precision precision) {
  if (!is_floating(tensor.type)) return size_of(tensor.type);
  return precision == Precision::fp32 ? 4 : 2;
}

std::int64_t local_bytes(const Mesh& mesh, const Layout& layout, const Tensor& tensor, Precision precision) {
  return local_elements(mesh, layout, tensor.shape) * element_bytes(tensor, precision);
}

void add_network(CostBreakdown& cost, const std::vector<ReshardStep>& steps) {
  for (const auto& step : steps) cost[part_of(step.move)] += step.time_s;
}

namespace {

void add_once(CostBreakdown& once, const ParameterSteps& steps, Update update) {
  if (!sums_every_micro_batch(update)) add_network(once, steps.sync);
  add_network(once, steps.spread);
}

void take_once(CostBreakdown& once, const CostBreakdown& all) {
  const auto update = static_cast<std::size_t>(ComputePart::update);
  const auto offload = static_cast<std::size_t>(NetworkPart::offload);
  once.compute[update] = all.compute[update];
  once.network[offload] = all.network[offload];
}

}  // namespace

CostBreakdown once_an_iteration(const CostBreakdown& cost, const std::vector<ParameterSteps>& parameters,
                                Update update) {
  CostBreakdown once;
  for (const ParameterSteps& steps : parameters) add_once(once, steps, update);
  take_once(once, cost);
  return once;
}

OperatorCostModel::OperatorCostModel(const Scenario& scenario, const TensorUses& uses,
                                     const ReshardingModel& resharding, int micro_batches)
    : scenario_(scenario),
      uses_(uses),
      resharding_(resharding),
      micro_batches_(micro_batches),
      messages_(scenario, uses),
      bytes_(parameter_bytes(scenario.settings, scenario.settings.accounting)),
      times_(scenario) {
  const Model& model = *scenario.model;
  if (summed_elements(scenario.settings.optimizer, {1, 1}).empty()) return;
  for (std::size_t o = 0; o < model.operators.size(); ++o)
    for (std::size_t k = 0; k < model.operators[OperatorId(o)].inputs.size(); ++k)
      if (uses.owns_parameter[o][k])
        add_rounds(all_sums_, summed_elements(scenario.settings.optimizer,
                                              model.tensors[model.operators[OperatorId(o)].inputs[k].tensor].shape));
}

bool multiplies_eight_bits(const Model& model, const Operator& op) {
  return is_weighted_product(model, op) && std::none_of(op.dims.begin(), op.dims.end(), [](const LoopDimension& dim) {
           return dim.name == DimName::vocabulary;
         });
}

std::int64_t loss_excess_bytes(const Settings& settings, const Model& model, const Operator& op,
                               const Configuration& split, const Mesh& mesh) {
  const bool loss =
      op.kind == OperatorKind::loss_statistics || (op.kind == OperatorKind::cross_entropy && !reads_statistics(op));
  if (!loss || settings.precision == Precision::fp32 || settings.loss != LossPrecision::fp32 ||
      settings.accounting == Accounting::paper)
    return 0;
  const Tensor& logits = model.tensors[op.inputs.front().tensor];
  const Layout layout = forward_layout(op, op.inputs.front(), false, split, mesh.count()).without_partial();
  return local_elements(mesh, layout, logits.shape) * (4 - element_bytes(logits, settings.precision));
}

std::int64_t held_inside_bytes(const Settings& settings, const Model& model, const Operator& op,
                               const Configuration& split, const Mesh& mesh) {
  const EagerKernels* eager = eager_kernels(settings, op);
  if (!eager) return loss_excess_bytes(settings, model, op, split, mesh);
  return std::int64_t(eager_kept_bytes(settings, op, *eager, local_eager_elements(model, op, split, mesh)));
}

std::string fitted_kind(const Model& model, const Operator& op) {
  if (reads_statistics(op))  // what takes time are the statistics
    return std::string(record_of(OperatorKind::elementwise).timed_as);
  std::string kind(record_of(op.kind).timed_as);
  if (op.kind == OperatorKind::matmul && op.inputs.size() > 1 &&
      model.tensors[op.inputs[1].tensor].role == TensorRole::activation)
    return kind + " of activations";
  if (op.kind != OperatorKind::convolution || op.inputs.size() < 2) return kind;
  const auto& kernel = model.tensors[op.inputs[1].tensor].shape;
  const auto &from = model.tensors[op.inputs[0].tensor].shape, &to = model.tensors[op.outputs[0].tensor].shape;
  if (kernel.size() < 3 || from.size() != kernel.size() || to.size() != kernel.size()) return kind;
  kind = fmt::format("{} {}", kind, fmt::join(kernel.begin() + 2, kernel.end(), "x"));
  // A strided one cannot use the fast algorithms that an unstrided one can.
  const std::int64_t stride = (from[2] + to[2] / 2) / to[2];
  return stride > 1 ? fmt::format("{} stride {}", kind, stride) : kind;
}

namespace {

// The papers' accounting knows of no such thing; 8-bit engines pad their operands.
Rows rows_on_device(const Scenario& scenario, const Mesh& mesh, const Operator& op, const Configuration& configuration,
                    Precision computed_in) {
  if (op.kind != OperatorKind::matmul || computed_in != Precision::bf16 ||
      scenario.settings.accounting == Accounting::paper)
    return Rows::aligned;
  return rows_of(*scenario.model, op, local_dims(op, mesh, configuration));
}

}  // namespace

double OperatorCostModel::phase_seconds(const Operator& op, const Configuration& configuration, bool backward) const {
  const Model& model = *scenario_.model;
  const Mesh& mesh = resharding_.mesh();
  const bool eight_bits = scenario_.settings.precision == Precision::fp8 && multiplies_eight_bits(model, op);
  const Precision computed_in = eight_bits ? Precision::fp8 : plain_precision(scenario_.settings.precision);
  const PhaseWork todo = work(op, configuration, backward);
  const DeviceType& device = scenario_.cluster->device;
  const double beside = beside_s(todo);  // a measured time is that of one kernel
  const EagerKernels* eager = eager_kernels(scenario_.settings, op);
  if (times_.any_measured() && !(eager && eager->instead)) {
    const std::vector<std::int64_t> dims = local_dims(op, mesh, configuration);
    if (const auto seconds = times_.measured(computed_in, record_of(op.kind).timed_as, dims, backward))
      return *seconds + beside;
  }
  const Rows rows = rows_on_device(scenario_, mesh, op, configuration, computed_in);
  const double speed = scenario_.settings.factors.device_speed;
  if (times_.any_fit()) {
    const std::string kind = fitted_kind(model, op);
    const OperatorFit* fit = times_.fit(computed_in, fitted_kind_of(kind, rows), backward);
    const bool exact = fit != nullptr;
    if (!exact && rows != Rows::aligned) fit = times_.fit(computed_in, kind, backward);
    if (!fit && op.kind == OperatorKind::convolution)
      fit = times_.fit(computed_in, record_of(op.kind).timed_as, backward);
    if (fit) {
      double s_per_flop = fit->s_per_flop;
      if (!exact && rows != Rows::aligned)
        s_per_flop = std::max(s_per_flop, 1 / unaligned_rate(device, rows, device.peak_bf16) / speed);
      return todo.launches * fit->launch_s + todo.flop * s_per_flop + todo.bytes * fit->s_per_byte + beside;
    }
  }
  const bool products = record_of(op.kind).products;
  double rate = eight_bits ? times_.eight_bit_flop_per_second
                : products ? times_.flop_per_second
                           : times_.vector_flop_per_second;
  if (rows != Rows::aligned) rate = speed * unaligned_rate(device, rows, rate / speed);
  const double launch =
      products && scenario_.settings.accounting == Accounting::full ? device.product_launch() : device.launch_s;
  const SideKernels side = side_kernels(scenario_, op, configuration, mesh, backward);
  return std::max(todo.flop / rate, todo.bytes / times_.bytes_per_second) + launch + beside +
         side.bytes / times_.bytes_per_second + side.kernels * device.launch_s +
         (eight_bits ? cast_seconds(op, configuration, backward) : 0);
}

double OperatorCostModel::beside_s(const PhaseWork& work) const {
  return work.beside_bytes / times_.bytes_per_second + work.more_kernels * scenario_.cluster->device.launch_s;
}

// What forward multiplies, or the gradient that backward does, is read in 16 bits and written in 8, with a scale each.
double OperatorCostModel::cast_seconds(const Operator& op, const Configuration& configuration, bool backward) const {
  const Mesh& mesh = resharding_.mesh();
  std::int64_t elements = 0;
  for (const Access& access : backward ? op.outputs : op.inputs)
    if (scenario_.model->tensors[access.tensor].shape.size() > 1)  // a bias is added in 16 bits
      elements +=
          local_elements(mesh, forward_layout(op, access, backward, configuration, mesh.count()).without_partial(),
                         scenario_.model->tensors[access.tensor].shape);
  return 3.0 * static_cast<double>(elements) / times_.bytes_per_second + scenario_.cluster->device.launch_s;
}

PhaseWork OperatorCostModel::work(const Operator& op, const Configuration& configuration, bool backward) const {
  const Model& model = *scenario_.model;
  const Mesh& mesh = resharding_.mesh();
  double split = 1;
  for (int a = 0; a < mesh.count(); ++a)
    if (configuration.axis[static_cast<std::size_t>(a)] >= 0) split *= mesh.axes[static_cast<std::size_t>(a)].size;
  double bytes = 0;
  const auto bytes_of = [&](const Access& access, bool is_output) {
    const Layout layout = forward_layout(op, access, is_output, configuration, mesh.count()).without_partial();
    return static_cast<double>(local_bytes(mesh, layout, model.tensors[access.tensor], scenario_.settings.precision));
  };
  const auto add = [&](const Access& access, bool is_output) {
    const double times = times_moved(op, access, model.tensors[access.tensor], is_output, backward);
    if (times > 0) bytes += times * bytes_of(access, is_output);
  };
  for (const auto& access : op.inputs) add(access, false);
  for (const auto& access : op.outputs) add(access, true);
  // Forward writes the probabilities, in fp32; backward reads those instead of logits.
  if (const std::int64_t excess = loss_excess_bytes(scenario_.settings, model, op, configuration, mesh); excess > 0)
    bytes += static_cast<double>(backward ? excess : 2 * excess);
  bytes *= backward ? op.backward_passes : op.forward_passes;
  PhaseWork todo{(backward ? op.backward_flop : op.forward_flop) / split, bytes};
  if (op.kind == OperatorKind::recurrent) todo.launches = launches_of(op, local_dims(op, mesh, configuration));
  if (const EagerKernels* eager = eager_kernels(scenario_.settings, op))
    charge_eagerly(scenario_.settings, op, *eager, backward, local_eager_elements(model, op, configuration, mesh),
                   todo);
  if (const Access* table = cleared_table(model, op, backward, scenario_.settings.accounting))
    todo.beside_bytes += bytes_of(*table, false), ++todo.more_kernels;
  return todo;
}

CostBreakdown OperatorCostModel::plain_passes(OperatorId id, const Configuration& configuration) const {
  const Model& model = *scenario_.model;
  const Operator& op = model.operators[id];
  CostBreakdown passes;
  if (op.kind == OperatorKind::input || op.is_view()) return passes;
  passes[ComputePart::forward] = phase_seconds(op, configuration, false);
  bool any_gradient = false;
  for (const auto& access : op.inputs) any_gradient |= model.tensors[access.tensor].requires_gradient;
  if (any_gradient) passes[ComputePart::backward] = phase_seconds(op, configuration, true);
  return passes;
}

// What of an operator's cost no memory choice changes, and what each needs to know.
struct OperatorCostModel::Base {
  CostBreakdown fixed;                                ///< forward, backward
  std::int64_t internal_bytes = 0, output_bytes = 0;  ///< saved inside it; outputs without reader that backward reads
  bool recomputes_internals = false;                  ///< may have them again from inputs that are kept
  bool carries_recompute = false;                     ///< may have its outputs again, if its neighbours agree
  const Operator* op = nullptr;
  struct Held {
    ParameterGroup group;
    ParameterTraffic traffic;  ///< without padding
    GroupElements elements;
    std::vector<double> sums;  ///< by round: elements that its update sums over shards
  };
  std::vector<Held> parameters;  ///< by group
};

OperatorCostModel::Base OperatorCostModel::base(OperatorId id, const Configuration& configuration) const {
  Base result;
  const Model& model = *scenario_.model;
  const Operator& op = model.operators[id];
  result.op = &op;
  const Mesh& mesh = resharding_.mesh();
  const Precision precision = scenario_.settings.precision;
  if (op.kind == OperatorKind::input || op.is_view()) return result;

  result.fixed = plain_passes(id, configuration);

  // Bytes that travel do not depend on what the accounting chooses to count.
  const ParameterBytes real = parameter_bytes(scenario_.settings, Accounting::full);
  for (ParameterGroup& group : parameter_groups(model, uses_, id, configuration, mesh.count())) {
    Base::Held held;
    double whole = 0;
    for (const std::uint32_t k : group.inputs) {
      whole += elements_of(model.tensors[op.inputs[k].tensor]);
      const Layout layout = gradient_layout(op, op.inputs[k], false, configuration, mesh.count());
      const auto local = local_parameter(model, uses_, id, k, mesh, layout, scenario_.settings.optimizer);
      held.elements.add(local);
      if (!all_sums_.empty()) add_rounds(held.sums, summed_elements(scenario_.settings.optimizer, local.shape));
    }
    held.traffic = held.elements.traffic({}, 1, real);
    held.traffic.messages = messages_.sizes(id, whole, held.traffic.gradient_bytes);
    held.group = std::move(group);
    result.parameters.push_back(std::move(held));
  }
  for (const auto& access : op.outputs) {
    const Tensor& tensor = model.tensors[access.tensor];
    if (!access.saved || !counted_with_operator(model, op, access)) continue;
    const std::int64_t bytes = local_bytes(
        mesh, forward_layout(op, access, true, configuration, mesh.count()).without_partial(), tensor, precision);
    (tensor.role == TensorRole::internal ? result.internal_bytes : result.output_bytes) += bytes;
  }
  const bool eager = eager_kernels(scenario_.settings, op) != nullptr;
  result.internal_bytes += held_inside_bytes(scenario_.settings, model, op, configuration, mesh);
  result.carries_recompute = uses_.run_again[id.index] == RunAgain::carried;
  // Where the output may run again, that is another choice, made with its readers; what stands between kernels is then
  // counted in any case, though a run makes it anew.
  const bool with_output = eager && uses_.run_again[id.index] != RunAgain::never;
  result.recomputes_internals = result.internal_bytes > 0 && !with_output && internals_can_be_recomputed(model, op);
  return result;
}

/// What the choices of one operator have in common while they are priced.
struct OperatorCostModel::Pricing {
  StepPrices prices;
  ParameterSteps steps;  ///< of the newest
};

OperatorCostModel::Cost OperatorCostModel::apply(const Base& base, const MemoryChoice& choice, bool with_steps,
                                                 Pricing& pricing) const {
  Cost result;
  CostBreakdown& out = result.breakdown;
  out = base.fixed;
  const bool no_internals = choice.recompute && base.recomputes_internals,
             no_outputs = choice.recompute && base.carries_recompute;
  if (no_internals || no_outputs) out[ComputePart::recompute] = out[ComputePart::forward];
  out[ComputePart::backward] += accumulation_s(base, choice);
  if (!no_internals && !no_outputs) out[MemoryPart::activations] += base.internal_bytes;
  if (!no_outputs) out[MemoryPart::activations] += base.output_bytes;
  const ParameterBytes real = parameter_bytes(scenario_.settings, Accounting::full);
  double offloaded_bytes = 0;
  for (const auto& [group, traffic, elements, sums] : base.parameters) {
    const std::int64_t shards = resharding_.mesh().size_of(group.shards(choice)), whole = elements.all(),
                       updated = elements.shard(choice, shards);
    out[MemoryPart::parameters] += elements.held_bytes(choice, shards, bytes_);
    out[MemoryPart::gradients] += (choice.update == Update::sharded_state ? whole : updated) * bytes_.gradient;
    if (!choice.offload) out[MemoryPart::optimizer] += updated * bytes_.optimizer;
    offloaded_bytes += choice.offload ? 2.0 * static_cast<double>(updated) * real.optimizer : 0;
    ParameterTraffic own;  // padded, or of gathers in another precision
    const bool otherwise = shards > 1 && (choice.whole_rows || choice.tiles || choice.gathers_first());
    if (otherwise) own = elements.traffic(choice, shards, real), own.messages = traffic.messages;
    ParameterSteps& steps = pricing.steps;
    price_steps(pricing.prices, group, otherwise ? own : traffic, choice, steps);
    for (const ParameterRole role : kParameterRoles) add_network(out, steps.steps(role));
    out[ComputePart::update] += scaling_bytes(scenario_, group, elements) / times_.bytes_per_second;
    add_once(result.once, steps, choice.update);
    if (with_steps) result.parameters.push_back(steps);
  }
  if (const double bytes = update_bytes(base, choice); bytes > 0)
    out[ComputePart::update] += update_seconds(bytes) + sums_s(base, choice);
  if (offloaded_bytes > 0) out[NetworkPart::offload] = offloaded_bytes / scenario_.cluster->host_link_bandwidth;
  take_once(result.once, out);
  return result;
}

// Products of 16 and 8 bits add to the sum themselves where kernels are fused (Megatron-LM, Transformer Engine), so
// that they read the sum instead of writing a gradient of their own. Everything else is added by a kernel per
// parameter.
double OperatorCostModel::addition_s(const Operator& op, double elements, std::size_t parameters,
                                     bool scattered) const {
  const Settings& settings = scenario_.settings;
  const ParameterBytes real = parameter_bytes(settings, Accounting::full);
  if (!scattered && settings.kernels == Kernels::fused && settings.precision != Precision::fp32 &&
      is_weighted_product(*scenario_.model, op))
    return elements * (2 * real.gradient - real.weight) / times_.bytes_per_second;
  const double bytes = elements * (2 * real.gradient + (scattered ? real.gradient : real.weight));
  const auto kernels = static_cast<double>(parameters);
  if (!times_.sums) return kernels * scenario_.cluster->device.launch_s + bytes / times_.bytes_per_second;
  return kernels * times_.sums->launch_s + elements * times_.sums->s_per_flop + bytes * times_.sums->s_per_byte;
}

int OperatorCostModel::additions() const {
  return scenario_.settings.accounting == Accounting::paper ? 0 : micro_batches_ - 1;
}

double OperatorCostModel::accumulation_s(const Base& base, const MemoryChoice& choice) const {
  if (additions() == 0) return 0;
  double seconds = 0;
  for (const auto& [group, traffic, elements, sums] : base.parameters) {
    const std::int64_t shards = resharding_.mesh().size_of(group.shards(choice));
    const bool scattered = shards > 1 && sums_every_micro_batch(choice.update);
    const auto summed = static_cast<double>(scattered ? elements.shard(choice, shards) : elements.all());
    seconds += addition_s(*base.op, summed, group.inputs.size(), scattered);
  }
  return seconds * additions() / micro_batches_;
}

double OperatorCostModel::accumulation_s(OperatorId id, const Configuration& configuration,
                                         const MemoryChoice& choice) const {
  return accumulation_s(base(id, configuration), choice);
}

double OperatorCostModel::update_bytes(const Base& base, const MemoryChoice& choice) const {
  double bytes = 0;
  for (const auto& [group, traffic, elements, sums] : base.parameters) {
    const std::int64_t updated = elements.shard(choice, resharding_.mesh().size_of(group.shards(choice)));
    bytes += static_cast<double>(updated) * bytes_per_update(scenario_.settings, scenario_.cluster->library);
  }
  return bytes;
}

double OperatorCostModel::sums_s(const Base& base, const MemoryChoice& choice) const {
  double seconds = 0;
  for (const Base::Held& held : base.parameters) seconds += sums_s(held.sums, held.group.shards(choice));
  return seconds;
}

double OperatorCostModel::sums_s(const std::vector<double>& sums, std::uint32_t shards) const {
  constexpr double kBytesEach = 4;  // norms are summed in fp32
  double seconds = 0;
  for (std::size_t r = 0; shards && r < sums.size(); ++r)
    if (const double elements = sums[r]; elements > 0)
      seconds +=
          resharding_
              .step(ReshardMove::all_reduce, shards, elements * kBytesEach, std::max(1.0, all_sums_[r] / elements))
              .time_s;
  return seconds;
}

double OperatorCostModel::update_bytes(OperatorId id, const Configuration& configuration,
                                       const MemoryChoice& choice) const {
  return update_bytes(base(id, configuration), choice);
}

double OperatorCostModel::update_s(std::int64_t elements, std::uint32_t shards,
                                   const std::vector<std::int64_t>& local) const {
  return update_seconds(static_cast<double>(elements) *
                        bytes_per_update(scenario_.settings, scenario_.cluster->library)) +
         sums_s(summed_elements(scenario_.settings.optimizer, local), shards);
}

double OperatorCostModel::update_seconds(double bytes) const {
  if (times_.update) return times_.update->launch_s + bytes * times_.update->s_per_byte;
  return bytes / times_.update_bytes_per_second + scenario_.cluster->device.launch_s;
}

OperatorCostModel::Cost OperatorCostModel::cost(OperatorId id, const Configuration& configuration,
                                                const MemoryChoice& choice, bool with_steps) const {
  Pricing pricing{StepPrices(resharding_), {}};
  return apply(base(id, configuration), choice, with_steps, pricing);
}

std::vector<OperatorCostModel::Alternative> OperatorCostModel::alternatives(OperatorId id,
                                                                            const Configuration& configuration,
                                                                            bool again) const {
  return alternatives(id, configuration, again, {});
}

std::vector<OperatorCostModel::Alternative> OperatorCostModel::alternatives(
    OperatorId id, const Configuration& configuration, bool again,
    const std::function<bool(const MemoryChoice&)>& accepts) const {
  const Base held = base(id, configuration);
  std::vector<ParameterGroup> groups;
  bool rounds = false;  // a gather in 16 bits
  for (const auto& parameter : held.parameters) {
    groups.push_back(parameter.group);
    rounds = rounds || (bytes_.weight > 2 && parameter.elements.any_for_products_alone());
  }
  const Settings& settings = scenario_.settings;
  const bool has_state = !held.parameters.empty() && bytes_.optimizer > 0;
  const auto choices = enumerate_choices(
      sharing_groups(resharding_.mesh(), groups),
      {settings.update_sharding, settings.offload && has_state && scenario_.cluster->host_link_bandwidth > 0,
       settings.recompute && held.recomputes_internals, micro_batches_ > 1 || accepts, holds_tiles(*scenario_.cluster),
       settings.gathers == Gathers::bf16 && rounds});
  Pricing pricing{StepPrices(resharding_), {}};
  std::vector<Alternative> all;
  std::vector<std::tuple<std::int64_t, double, std::size_t>> order;  // memory, time, place in `all`
  all.reserve(choices.size());
  order.reserve(choices.size());
  for (MemoryChoice choice : choices) {
    choice.recompute = choice.recompute || again;
    if (accepts && !accepts(choice)) continue;
    const CostBreakdown& cost = all.emplace_back(choice, iteration(apply(held, choice, false, pricing))).breakdown;
    order.emplace_back(cost.memory_bytes(), cost.time_s(), order.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<Alternative> result;
  double fastest = std::numeric_limits<double>::infinity();
  for (const auto& [memory, time, at] : order)
    if (time < fastest) result.push_back(all[at]), fastest = time;
  return result;
}

}  // namespace turnpoint
