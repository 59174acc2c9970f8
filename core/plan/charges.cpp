// SPDX-License-Identifier: Apache-2.0
#include "core/plan/charges.h"

#include <fmt/format.h>
#include <map>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/tensor_use.h"
#include "core/plan/shard_padding.h"
#include "core/plan/tied_copy.h"

namespace turnpoint {

namespace {

// Executes a plan symbolically: follows every tensor from layout to layout, one collective at a time.
class PlanFollower {
 public:
  PlanFollower(const Scenario& scenario, const Plan& plan, int micro_batches)
      : scenario_(scenario),
        model_(*scenario.model),
        plan_(plan),
        mesh_(make_mesh(*scenario.cluster)),
        collectives_(collectives_of(scenario)),
        resharding_(mesh_, collectives_,
                    scenario.cluster->device.memory_bandwidth * scenario.cluster->device.memory_efficiency),
        uses_(uses_on_stages(model_, plan)),
        messages_(scenario, uses_),
        operators_(scenario, uses_, resharding_, micro_batches) {}

  Expected<std::vector<PlanCharge>> run() {
    if (plan_.operators.size() != model_.operators.size())
      return bad(fmt::format("has {} operators, the model {}", plan_.operators.size(), model_.operators.size()));
    for (const auto& reshard : plan_.reshards) reshard_of_[key(reshard.tensor, reshard.consumer)].push_back(&reshard);
    for (std::size_t i = 0; i < plan_.operators.size(); ++i)
      if (auto done = add_operator(OperatorId(i)); !done) return done.error();
    for (const auto& flow : uses_.flows)
      if (auto done = add_flow(flow); !done) return done.error();
    for (const auto& tie : uses_.ties)
      if (auto done = add_tie(tie); !done) return done.error();
    if (used_reshards_ != plan_.reshards.size()) return bad("has a resharding that no consumer asked for");
    return std::move(charges_);
  }

 private:
  using When = PlanCharge::When;
  using Key = std::pair<TensorId, OperatorId>;
  static Key key(TensorId tensor, OperatorId consumer) { return {tensor, consumer}; }
  /// What one operator or one way of a tensor costs, by when it is paid.
  struct Phases {
    CostBreakdown forward, backward, once;
  };

  void charge(OperatorId payer, OperatorId maker, const Phases& phases) {
    charges_.push_back({payer, maker, When::forward, phases.forward});
    charges_.push_back({payer, maker, When::backward, phases.backward});
    charges_.push_back({payer, maker, When::once, phases.once});
  }

  Error bad(std::string what) const { return bad_input("plan " + what, model_.name); }
  Error bad(const std::string& at, std::string what) const {
    return bad_input("plan: " + what, model_.name + ": " + at);
  }

  Expected<void> add_operator(OperatorId id) {
    const Operator& op = model_.operators[id];
    const Configuration& split = plan_.operators[id.index].split;
    std::vector<std::int64_t> factor(op.dims.size(), 1);
    for (int a = 0; a < mesh_.count(); ++a) {
      const int dim = split.axis[static_cast<std::size_t>(a)];
      if (dim < Configuration::kRepeat || dim >= static_cast<int>(op.dims.size()))
        return bad(op.name, "splits a dimension it does not have");
      if (dim >= 0) factor[static_cast<std::size_t>(dim)] *= mesh_.axes[static_cast<std::size_t>(a)].size;
    }
    for (std::size_t d = 0; d < op.dims.size(); ++d) {
      if (factor[d] == 1) continue;
      if (!op.dims[d].splittable)
        return bad(op.name, fmt::format("splits dimension '{}', which cannot be", to_string(op.dims[d].name)));
      if (op.dims[d].size % factor[d] != 0)
        return bad(op.name, fmt::format("splits {} {} ways", op.dims[d].size, factor[d]));
    }
    const MemoryChoice& choice = plan_.operators[id.index].choice;
    // Network time is priced from the plan's own steps, not from what the cost model would have chosen.
    CostBreakdown own = operators_.cost(id, split, choice).breakdown;
    Phases phases;
    phases.forward[ComputePart::forward] = own[ComputePart::forward];
    for (const MemoryPart part : {MemoryPart::activations, MemoryPart::copies, MemoryPart::workspace})
      phases.forward[part] = own[part];
    for (const ComputePart part : {ComputePart::backward, ComputePart::recompute}) phases.backward[part] = own[part];
    phases.once[ComputePart::update] = own[ComputePart::update];
    for (const MemoryPart part : {MemoryPart::parameters, MemoryPart::gradients, MemoryPart::optimizer})
      phases.once[part] = own[part];
    phases.once[NetworkPart::offload] = own[NetworkPart::offload];
    if (auto synced = add_sync(id, op, phases); !synced) return synced;
    charge(id, id, phases);
    return {};
  }

  // What one owned parameter's gradient and weights weigh, and where they are partial or whole.
  struct Owned {
    double gradient = 0, weight = 0;     ///< bytes, with the rows that fill up shards
    double unpadded = 0;                 ///< bytes of the gradient without these
    double whole = 0;                    ///< elements, unsplit
    std::map<int, double> read_exactly;  ///< times read -> bytes
  };

  // The listed collectives must sum every owned parameter's gradient over exactly the axes on which it is partial, and
  // bring sharded weights to whoever reads them.
  Expected<void> add_sync(OperatorId id, const Operator& op, Phases& phases) {
    const PlanOperator& planned = plan_.operators[id.index];
    std::map<std::pair<std::uint32_t, std::uint32_t>, Owned> owned;
    const ParameterBytes sizes = parameter_bytes(scenario_.settings, Accounting::full);
    const std::uint32_t all = mesh_.count() == 0 ? 0 : (1u << mesh_.count()) - 1;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!uses_.owns_parameter[id.index][k]) continue;
      const Layout gradient = gradient_layout(op, op.inputs[k], false, planned.split, mesh_.count());
      std::uint32_t split = 0;
      for (std::int8_t d = 0; d < static_cast<std::int8_t>(model_.tensors[op.inputs[k].tensor].shape.size()); ++d)
        split |= gradient.mask(d);
      Owned& group = owned[{gradient.mask(Layout::kPartial), all & ~split}];
      const Tensor& tensor = model_.tensors[op.inputs[k].tensor];
      const auto unpadded = static_cast<double>(local_elements(mesh_, gradient, tensor.shape));
      const double elements =
          unpadded * shard_padding(scenario_, mesh_, planned.choice, tensor, gradient, all & ~split);
      group.whole += elements_of(tensor);
      group.unpadded += unpadded * sizes.gradient;
      group.gradient += elements * sizes.gradient;
      group.weight += elements * gathered_bytes(planned.choice, uses_.products_alone[id.index][k], sizes);
      const int reads =
          uses_.parameter_reads[id.index][k] + (planned.choice.recompute ? uses_.rerun_reads[id.index][k] : 0);
      group.read_exactly[reads] += elements * sizes.weight;
    }
    const auto steps = all_steps(planned.parameters);
    std::size_t at = 0;
    for (const auto& [masks, group] : owned) {
      const auto& [partial, whole] = masks;
      const std::uint32_t shards = planned.choice.update == Update::replicated ? 0 : planned.choice.update_axes & whole;
      const MessageSizes messages = messages_.sizes(id, group.whole, group.unpadded);
      message_ = planned.choice.update == Update::sharded_weights ? messages.layer : messages.bucket;
      if (auto done = follow_sync(op, planned.choice.update, steps, at, partial, shards, group, phases); !done)
        return done;
    }
    if (at != steps.size()) return bad(op.name, "synchronises gradients that are whole already");
    return {};
  }

  Expected<void> follow_sync(const Operator& op, Update update, const std::vector<ReshardStep>& steps, std::size_t& at,
                             std::uint32_t partial, std::uint32_t shards, const Owned& group, Phases& phases) {
    const auto gather = [&](double bytes, auto... costs) -> Expected<void> {
      if (!shards) return {};
      if (at == steps.size() || steps[at].move != ReshardMove::all_gather || steps[at].axes != shards)
        return bad(op.name, "sharded weights are not gathered for whoever reads them");
      CostBreakdown whole;
      price(whole, ReshardMove::all_gather, steps[at++].axes, bytes,
            message_ > 1 ? message_ * group.weight / bytes : 1);
      for (double& seconds : whole.network) seconds /= sizeof...(costs);
      ((*costs += whole), ...);
      return {};
    };
    if (update == Update::sharded_weights) {
      const int most = group.read_exactly.empty() ? 0 : group.read_exactly.rbegin()->first;
      for (int read = 1; read <= most; ++read) {
        double bytes = 0;
        for (const auto& [times, weights] : group.read_exactly) bytes += times >= read ? weights : 0;
        // As often before forward as before backward.
        if (auto done = gather(bytes, &phases.forward, &phases.backward); !done) return done;
      }
    }
    // Where shards are all that is kept of a gradient, every micro-batch scatters its own.
    const bool each = update == Update::sharded || update == Update::sharded_weights;
    std::uint32_t pending = partial | shards;
    double held = group.gradient;
    while (pending) {
      if (at == steps.size()) return bad(op.name, "gradients are not summed over all their axes once");
      const ReshardStep& step = steps[at++];
      const std::uint32_t may = step.move == ReshardMove::reduce_scatter ? partial & shards
                                : step.move == ReshardMove::slice        ? shards & ~partial
                                : step.move == ReshardMove::all_reduce   ? partial & ~shards
                                                                         : 0;
      if (step.axes == 0 || (step.axes & ~(may & pending)))
        return bad(op.name, "gradients are not summed over all their axes once");
      price(each ? phases.backward : phases.once, step.move, step.axes, held, message_);
      if (step.move != ReshardMove::all_reduce) held /= static_cast<double>(mesh_.size_of(step.axes));
      pending &= ~step.axes;
    }
    return update == Update::sharded_weights ? Expected<void>{} : gather(group.weight, &phases.once);
  }

  // A permute takes place among all devices of the levels it crosses; blocks that stay in a node may be the slower
  // ones.
  double permute_seconds(std::uint32_t axes, double bytes) const {
    std::uint32_t inside = 0, across = 0;
    for (int a = 0; a < mesh_.count(); ++a)
      (mesh_.axes[static_cast<std::size_t>(a)].level == kInterNode ? across : inside) |= 1u << a;
    const double local = collectives_.time(Collective::send, mesh_.group(inside), bytes).value;
    return axes & across ? std::max(local, collectives_.time(Collective::send, mesh_.group(across), bytes).value)
                         : local;
  }

  /// Of a message `message` times as large, its part.
  void price(CostBreakdown& cost, ReshardMove move, std::uint32_t axes, double bytes, double message = 1) {
    ReshardStep step;
    step.move = move;
    const auto on = [&](Collective kind) {
      step.time_s = collectives_.time(kind, mesh_.group(axes), bytes * message).value / message;
    };
    switch (move) {
      case ReshardMove::slice: return;
      case ReshardMove::all_gather: on(Collective::all_gather); break;
      case ReshardMove::reduce_scatter: on(Collective::reduce_scatter); break;
      case ReshardMove::all_reduce: on(Collective::all_reduce); break;
      case ReshardMove::all_to_all: on(Collective::all_to_all); break;
      case ReshardMove::permute: step.time_s = permute_seconds(axes, bytes); break;
    }
    add_network(cost, {step});
  }

  // Axes of one dimension in mesh order; `axes` must be its last ones.
  bool is_suffix(const Layout& layout, std::int8_t dim, std::uint32_t axes) const {
    const std::uint32_t all = layout.mask(dim);
    if (!axes || (axes & ~all)) return false;
    const std::uint32_t rest = all & ~axes;
    return rest == 0 || (31 - __builtin_clz(rest)) < __builtin_ctz(axes);
  }

  // Checks one collective against the rules of executable moves and returns its price.
  Expected<void> follow(const std::string& at, const Tensor& tensor, const ReshardStep& step, Layout& layout,
                        CostBreakdown& cost) {
    const Layout before = layout, after = step.result;
    std::uint32_t changed = 0;
    for (int a = 0; a < mesh_.count(); ++a)
      if (before.axis[static_cast<std::size_t>(a)] != after.axis[static_cast<std::size_t>(a)]) changed |= 1u << a;
    const auto value = [&](const Layout& l) -> int {  // the one value all changed axes share, or an impossible one
      int found = -100;
      for (int a = 0; a < mesh_.count(); ++a) {
        if (!(changed >> a & 1)) continue;
        const int here = l.axis[static_cast<std::size_t>(a)];
        if (found == -100)
          found = here;
        else if (found != here)
          return -101;
      }
      return found;
    };
    const int from = value(before), to = value(after);
    const int bytes = element_bytes(tensor, scenario_.settings.precision);
    const auto held = [&](const Layout& l) {
      return static_cast<double>(local_elements(mesh_, l, tensor.shape) * bytes);
    };
    const bool out_ok = from >= 0 && is_suffix(before, static_cast<std::int8_t>(from), changed);
    const bool in_ok = to >= 0 && is_suffix(after, static_cast<std::int8_t>(to), changed);
    bool legal = changed != 0;
    double size = held(before);
    switch (step.move) {
      case ReshardMove::all_gather:
        legal = legal && out_ok && to == Layout::kReplicated;
        size = held(after);
        break;
      case ReshardMove::slice: legal = legal && in_ok && from == Layout::kReplicated; break;
      case ReshardMove::all_to_all: legal = legal && out_ok && in_ok; break;
      case ReshardMove::all_reduce: legal = legal && from == Layout::kPartial && to == Layout::kReplicated; break;
      case ReshardMove::reduce_scatter: legal = legal && from == Layout::kPartial && in_ok; break;
      case ReshardMove::permute:
        legal = legal && before.mask(Layout::kPartial) == after.mask(Layout::kPartial);
        for (std::int8_t d = 0; d < static_cast<std::int8_t>(tensor.shape.size()); ++d)
          legal = legal && mesh_.size_of(before.mask(d)) == mesh_.size_of(after.mask(d));
        break;
    }
    if (!legal) return bad(at, std::string("step ") + to_string(step.move) + " cannot be executed");
    price(cost, step.move, changed, size);
    layout = after;
    return {};
  }

  Expected<void> follow_all(const std::string& at, const Tensor& tensor, const std::vector<ReshardStep>& steps,
                            Layout start, const Layout& end, CostBreakdown& cost) {
    for (const ReshardStep& step : steps)
      if (auto done = follow(at, tensor, step, start, cost); !done) return done;
    if (start != end) return bad(at, "the steps do not end in the layout that is read");
    return {};
  }

  // Layout in which somebody reads a tensor, with the axes on which its gradient comes back partial.
  struct Read {
    Layout layout;
    bool saved = false;
  };

  // Partial in both on the same axes: the sum is made later, at the source.
  static bool meets(const Layout& source, const Layout& gradient) {
    Layout rest = gradient;
    for (std::size_t a = 0; a < rest.axis.size(); ++a)
      if (source.axis[a] == Layout::kPartial && rest.axis[a] == Layout::kPartial) rest.axis[a] = Layout::kReplicated;
    return rest == source.without_partial();
  }

  // One way from `source` to `read`; returns whether the source's own copy must be kept for it, or for the producer's
  // backward.
  Expected<bool> add_way(const std::string& at, TensorId id, OperatorId consumer, const Layout& source,
                         bool source_is_output, const Read& read, bool may_meet, Phases& phases, bool second_copy,
                         bool producer_reads) {
    const Tensor& tensor = model_.tensors[id];
    const Layout start = source_is_output ? source : source.without_partial();
    const Layout goal = read.layout.without_partial();
    const bool meet = may_meet && meets(source, read.layout);
    const bool gradient = tensor.requires_gradient && !meet;
    const PlanReshard* reshard = take(id, consumer, source, read.layout);
    if (!reshard) {
      if (start != goal || (gradient && read.layout != source.without_partial()))
        return bad(at, "a needed resharding is missing");
      return read.saved || producer_reads;
    }
    if (auto done = follow_all(at, tensor, reshard->forward, start, goal, phases.forward); !done) return done.error();
    const bool repeated = (reshard->keep == Keep::before || reshard->keep == Keep::again) && start != goal;
    const bool restored =
        producer_reads && tensor.requires_gradient && read.saved && reshard->keep == Keep::after && start != goal;
    if (repeated) {
      if (reshard->repeated.size() != reshard->forward.size())
        return bad(at, "backward does not repeat the resharding");
      if (auto done = follow_all(at, tensor, reshard->repeated, start, goal, phases.backward); !done)
        return done.error();
    } else if (!reshard->repeated.empty()) {
      return bad(at, "repeats a resharding that nobody reads");
    }
    if (restored) {
      if (reshard->restored.empty()) return bad(at, "the producer's copy is neither kept nor made again");
      if (auto done = follow_all(at, tensor, reshard->restored, goal, start, phases.backward); !done)
        return done.error();
    } else if (!reshard->restored.empty()) {
      return bad(at, "brings back a copy that nobody reads");
    }
    if (gradient) {
      if (auto done = follow_all(at, tensor, reshard->gradient, read.layout, source.without_partial(), phases.backward);
          !done)
        return done.error();
    } else if (!reshard->gradient.empty()) {
      return bad(at, "moves a gradient that nobody needs");
    }
    const bool repeats = reshard->keep == Keep::again;
    if (repeats ? rerun_ == Rerun::none : rerun_ == Rerun::always && start != goal)
      return bad(at, repeats ? "has no copy, yet its producer does not run again" : "keeps what is computed again");
    if (!read.saved) return producer_reads;
    if (start == goal || reshard->keep == Keep::again) return true;
    if (reshard->keep == Keep::before) {
      if (source_is_output && source.has_partial()) return bad(at, "keeps a partial sum");
      return true;
    }
    if (reshard->keep == Keep::none) return bad(at, "backward reads a copy that is not kept");
    phases.forward[second_copy && !restored ? MemoryPart::copies : MemoryPart::activations] +=
        local_bytes(mesh_, goal, tensor, scenario_.settings.precision);
    return producer_reads && !restored;
  }

  const PlanReshard* take(TensorId tensor, OperatorId consumer, const Layout& from, const Layout& to) {
    const auto it = reshard_of_.find(key(tensor, consumer));
    if (it == reshard_of_.end()) return nullptr;
    for (auto& candidate : it->second) {
      if (candidate && candidate->from == from && candidate->to == to) {
        const PlanReshard* found = candidate;
        candidate = nullptr;
        ++used_reshards_;
        return found;
      }
    }
    return nullptr;
  }

  Expected<void> add_flow(const TensorFlow& flow) {
    if (flow.consumers.empty()) return {};
    const Tensor& tensor = model_.tensors[flow.tensor];
    const Operator& producer = model_.operators[flow.producer];
    const Layout produced = forward_layout(producer, producer.outputs[flow.output], true,
                                           plan_.operators[flow.producer.index].split, mesh_.count());
    const bool kept_anyway = flow.producer_saves || flow.producer_is_view;
    Layout source = produced;
    bool keep_produced = false, from_output = true;
    const bool runs_again = plan_.operators[flow.producer.index].choice.recompute;
    const RunAgain may = uses_.run_again[flow.producer.index];
    // Kept by consumers alone, or wanted by the one consumer that runs again: either way one more run of the producer.
    bool again = may == RunAgain::folded && runs_again && flow.any_consumer_saves();
    const bool lost = may == RunAgain::carried && runs_again;
    const bool producer_reads = flow.producer_saves && !flow.producer_is_view && !lost;
    rerun_ = again ? Rerun::always : lost ? Rerun::maybe : Rerun::none;
    // A plan may give a tensor of one consumer a stored layout of its own, too.
    const bool stored = flow.shared() || reshard_of_.count(key(flow.tensor, OperatorId())) > 0;
    if (stored) {
      // The shared layout is where the entry without consumer leads; without one, where the producer left it.
      Layout shared = produced.without_partial();
      if (const auto it = reshard_of_.find(key(flow.tensor, OperatorId()));
          it != reshard_of_.end() && it->second.front())
        shared = it->second.front()->to;
      Phases phases;
      const auto kept = add_way(tensor.name, flow.tensor, OperatorId(), produced, true,
                                {shared, flow.any_consumer_saves()}, false, phases, kept_anyway, producer_reads);
      if (!kept) return kept.error();
      charge(first_reader(flow, false), flow.producer, phases);
      keep_produced = *kept;
      source = shared;
      from_output = false;
      rerun_ = Rerun::none;
    }
    for (std::size_t c = 0; c < flow.consumers.size(); ++c) {
      const auto& use = flow.consumers[c];
      const Operator& consumer = model_.operators[use.op];
      // One that keeps this input anyway finds it there.
      if (uses_.run_again[use.op.index] == RunAgain::carried && plan_.operators[use.op.index].choice.recompute &&
          !consumer.inputs[use.input].saved) {
        if (may == RunAgain::carried ? !runs_again && !flow.producer_saves
                                     : may == RunAgain::never && !flow.producer_saves)
          return bad(consumer.name, "runs again from a tensor that is not there");
        again = may == RunAgain::folded;
        rerun_ = Rerun::always;
      }
      const Layout read = gradient_layout(consumer, consumer.inputs[use.input], false,
                                          plan_.operators[use.op.index].split, mesh_.count());
      Phases phases;
      const auto kept = add_way(tensor.name + " -> " + consumer.name, flow.tensor, use.op, source, from_output,
                                {read, flow.consumer_saves[c]}, !from_output, phases, kept_anyway || stored,
                                producer_reads && from_output);
      if (!kept) return kept.error();
      charge(use.op, flow.producer, phases);
      if (!stored) keep_produced = *kept;
    }
    rerun_ = Rerun::none;
    Phases rerun, copy;
    if (again)
      rerun.backward[ComputePart::recompute] =
          operators_.forward_s(flow.producer, plan_.operators[flow.producer.index].split);
    charge(flow.producer, flow.producer, rerun);
    if (keep_produced && !flow.producer_is_view && !lost && (!again || producer_reads))
      copy.forward[MemoryPart::activations] = local_bytes(mesh_, produced, tensor, scenario_.settings.precision);
    const bool for_readers = !flow.producer_saves && flow.any_consumer_saves();
    charge(for_readers ? first_reader(flow, true) : flow.producer, flow.producer, copy);
    return {};
  }

  /// `who_keeps`: of those whose backward reads it.
  static OperatorId first_reader(const TensorFlow& flow, bool who_keeps) {
    OperatorId first;
    for (std::size_t c = 0; c < flow.consumers.size(); ++c) {
      const OperatorId reader = flow.consumers[c].op;
      if ((flow.consumer_saves[c] || !who_keeps) && (!first.valid() || reader.index < first.index)) first = reader;
    }
    return first;
  }

  Expected<void> add_tie(const ParameterTie& tie) {
    const Operator &owner = model_.operators[tie.owner], &user = model_.operators[tie.user];
    const Access &held = owner.inputs[tie.owner_input], &read = user.inputs[tie.user_input];
    const Layout from = gradient_layout(owner, held, false, plan_.operators[tie.owner.index].split, mesh_.count());
    Layout to = gradient_layout(user, read, false, plan_.operators[tie.user.index].split, mesh_.count());
    if (model_.tensors[read.tensor].shape != model_.tensors[held.tensor].shape)
      for (auto& value : to.axis)
        if (value >= 0) value = static_cast<std::int8_t>(1 - value);
    Phases phases;
    const auto kept = add_way(owner.name + " = " + user.name, held.tensor, tie.user, from, false, {to, true}, true,
                              phases, true, false);
    if (!kept) return kept.error();
    std::swap(phases.once.memory, phases.forward.memory);  // a copy of a weight is no micro-batch's
    charge(tie.user, tie.owner, phases);
    return {};
  }

  const Scenario& scenario_;
  const Model& model_;
  const Plan& plan_;
  Mesh mesh_;
  CollectiveModel collectives_;
  ReshardingModel resharding_;
  TensorUses uses_;
  Messages messages_;
  OperatorCostModel operators_;
  std::map<Key, std::vector<const PlanReshard*>> reshard_of_;
  std::size_t used_reshards_ = 0;
  double message_ = 1;  ///< what the collectives of the group being followed travel in
  /// Whether the way being followed starts at an operator that runs again in backward, so that it repeats the
  /// resharding.
  enum class Rerun { none, maybe, always } rerun_ = Rerun::none;
  std::vector<PlanCharge> charges_;
};

}  // namespace

Expected<std::vector<PlanCharge>> charges_of(const Scenario& scenario, const Plan& plan, int micro_batches) {
  return PlanFollower(scenario, plan, micro_batches).run();
}

}  // namespace turnpoint
