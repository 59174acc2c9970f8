// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/pipeline.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/plan/beside_products.h"
#include "core/plan/on_mesh.h"
#include "core/plan/one_plan.h"
#include "core/plan/one_stage.h"
#include "core/plan/pipeline_order.h"
#include "core/plan/tied_copy.h"
#include "core/search/baselines/fsdp.h"
#include "core/search/baselines/manual.h"
#include "core/search/baselines/megatron.h"
#include "core/search/baselines/parallel_axes.h"
#include "core/search/baselines/pipeline_part.h"
#include "core/search/baselines/pipeline_schedule.h"

namespace turnpoint::search {

namespace {

/// Costs one split: units are the layers, with what stands before and behind them.
class Pipeline {
 public:
  Pipeline(const Scenario& scenario, const Scenario& one_stage, const TransformerRoles* roles, const ManualSplit& split,
           Plan plan)
      : scenario_(scenario),
        one_stage_(one_stage),
        micro_batch_(one_stage.model),
        model_(*micro_batch_),
        roles_(roles && roles->layers > 0 ? roles : nullptr),
        split_(split),
        plan_(std::move(plan)),
        uses_(analyse_tensor_uses(model_)) {
    units_.resize(static_cast<std::size_t>(roles_ ? roles_->layers : 0) + 2);
    cores_.resize(roles_ && split.selective ? roles_->attentions.size() : 0);
  }

  /// Runs of layers as a plan has them already, in place of the split's cut.
  void take_runs_of(const Plan& plan) {
    layer_of_ = plan.pipeline->layer_of;
    run_of_unit_.assign(units_.size(), 0);
    run_of_unit_.back() = plan.pipeline->runs() - 1;
    for (const PlanOperator& op : plan.operators) run_of_unit_[unit_of(op.op)] = plan.pipeline->run_of(op);
  }

  std::shared_ptr<Result> run() {
    fill_units();
    cut_into_runs();
    if (leave_reads_to_other_stages()) {
      const bool cut = split_.cut == ManualSplit::Cut::time && layer_of_.empty();
      fill_units();
      if (cut) run_of_unit_.clear(), cut_into_runs();
      if (cut && leave_reads_to_other_stages()) fill_units();
    }
    fill_cores();
    move_copies_to_readers();
    schedule();
    auto result = std::make_shared<Result>();
    ResultPoint point;
    point.memory_bytes = *std::max_element(stage_bytes_.begin(), stage_bytes_.end());
    point.time_s = time_s_;
    point.compute_s = compute_s_;
    point.network_s = std::max(0.0, time_s_ - compute_s_);
    point.fits = point.memory_bytes <= scenario_.memory_limit();
    result->points.push_back(point);
    result->plans = std::make_shared<GivenPlan>(unrolled(point));
    return result;
  }

 private:
  // Unit 0 stands before the first layer, the last one behind the last layer.
  std::size_t unit_of(OperatorId id) const {
    return roles_ ? static_cast<std::size_t>(roles_->layer_of[id.index] + 1) : 0;
  }
  std::size_t first_reader(TensorId tensor, OperatorId producer) const {
    std::size_t unit = std::numeric_limits<std::size_t>::max();
    for (const auto& use : model_.uses[tensor]) unit = std::min(unit, unit_of(use.op));
    return model_.uses[tensor].empty() ? unit_of(producer) : unit;
  }
  int run_of(std::size_t unit) const { return run_of_unit_[unit]; }
  int stage_of(std::size_t unit) const { return run_of_unit_[unit] % split_.stages; }
  std::size_t runs() const { return std::size_t(split_.stages) * std::size_t(split_.chunks); }

  void fill_units() {
    std::ranges::fill(units_, PipelinePart{});
    for (const PlanOperator& op : plan_.operators) {
      PipelinePart& part = units_[unit_of(op.op)];
      CostBreakdown cost = op.cost;
      part.forward_compute += cost[ComputePart::forward];
      part.backward_compute += cost[ComputePart::backward] + cost[ComputePart::recompute];
      part.again_compute += cost[ComputePart::recompute];
      part.once_compute += cost[ComputePart::update];
      for (const ParameterSteps& steps : op.parameters) part.add_parameters(steps, op.choice.update);
      for (const MemoryPart held : {MemoryPart::parameters, MemoryPart::gradients, MemoryPart::optimizer})
        part.held[held] += cost[held];
      for (const MemoryPart kept : {MemoryPart::activations, MemoryPart::copies, MemoryPart::workspace})
        part.kept[kept] += cost[kept];
    }
    for (const PlanReshard& reshard : plan_.reshards) {
      const bool weight = model_.tensors[reshard.tensor].role == TensorRole::parameter;
      const std::size_t unit =
          reshard.consumer.valid() ? unit_of(reshard.consumer) : first_reader(reshard.tensor, reshard.producer);
      PipelinePart& part = units_[unit];
      part.forward_network += seconds(reshard.forward);
      const std::vector<ReshardStep> backward = reshard.backward();
      part.backward_network += seconds(backward);
      add_network(part.forward_steps, reshard.forward);
      add_network(part.backward_steps, backward);
      CostBreakdown cost = reshard.cost;
      for (const MemoryPart kept : {MemoryPart::activations, MemoryPart::copies})
        (weight ? part.held : part.kept)[kept] += cost[kept];
    }
  }

  // What of a core runs again, and what it need not keep then: whatever only the core itself reads.
  void fill_cores() {
    if (cores_.empty()) return;
    std::vector<char> leaves(model_.operators.size(), 0);
    for (const TensorFlow& flow : uses_.flows)
      for (const auto& use : flow.consumers)
        leaves[flow.producer.index] |= roles_->core_of[use.op.index] != roles_->core_of[flow.producer.index];
    for (const PlanOperator& op : plan_.operators) {
      const int core = roles_->core_of[op.op.index];
      if (core < 0) continue;
      CostBreakdown cost = op.cost;
      PipelinePart& part = cores_[static_cast<std::size_t>(core)];
      part.forward_compute += cost[ComputePart::forward];
      if (!leaves[op.op.index]) part.kept[MemoryPart::activations] += cost[MemoryPart::activations];
    }
    for (const PlanReshard& reshard : plan_.reshards) {
      const int core = roles_->core_of[reshard.producer.index];
      if (core < 0 || leaves[reshard.producer.index]) continue;
      PipelinePart& part = cores_[static_cast<std::size_t>(core)];
      part.forward_network += seconds(reshard.forward);
      add_network(part.forward_steps, reshard.forward);
      CostBreakdown cost = reshard.cost;
      for (const MemoryPart kept : {MemoryPart::activations, MemoryPart::copies}) part.kept[kept] += cost[kept];
    }
  }

  void cut_into_runs() {
    if (!run_of_unit_.empty()) return;
    run_of_unit_.assign(units_.size(), 0);
    if (runs() == 1) return;
    std::vector<double> times;
    for (std::size_t u = 1; u + 1 < units_.size(); ++u) times.push_back(units_[u].forward() + units_[u].backward());
    times.front() += units_.front().forward() + units_.front().backward();
    times.back() += units_.back().forward() + units_.back().backward();
    const auto first = split_.cut == ManualSplit::Cut::time ? balanced_stages(times, int(runs()))
                                                            : equal_stages(int(times.size()), int(runs()));
    for (std::size_t r = 0; r < runs(); ++r)
      for (std::size_t l = static_cast<std::size_t>(first[r]); l < times.size(); ++l)
        run_of_unit_[l + 1] = static_cast<int>(r);
    run_of_unit_.back() = int(runs()) - 1;
  }

  /// Stages are as the runs say. Gathers of sharded weights for users on other stages are those stages' own
  /// (add_tied_weights()), which leaves owners fewer. Whether any owner's changed.
  bool leave_reads_to_other_stages() {
    for (PlanOperator& op : plan_.operators) op.stage = stage_of(unit_of(op.op));
    const TensorUses here = uses_on_stages(model_, plan_);
    const ReshardingModel resharding(plan_.mesh, collectives_of(one_stage_),
                                     one_stage_.cluster->device.memory_bandwidth);
    const OperatorCostModel costs(one_stage_, here, resharding, split_.micro_batches);
    bool changed = false;
    for (const ParameterTie& tie : here.ties) {
      PlanOperator& op = plan_.operators[tie.owner.index];
      if (op.choice.update != Update::sharded_weights) continue;
      auto priced = costs.cost(op.op, op.split, op.choice, true);
      if (priced.breakdown.network == op.cost.network) continue;
      op.cost.network = priced.breakdown.network;
      op.parameters = std::move(priced.parameters);
      changed = true;
    }
    return changed;
  }

  // As the first reader behind a run has it.
  void add_sent(TensorId tensor, int after_run, BoundaryBytes& bytes) const {
    for (const auto& use : model_.uses[tensor]) {
      if (run_of(unit_of(use.op)) <= after_run) continue;
      const Operator& op = model_.operators[use.op];
      const Layout layout =
          gradient_layout(op, op.inputs[use.input], false, plan_.operators[use.op.index].split, plan_.mesh.count())
              .without_partial();
      bytes[held_alike_in_node(plan_.mesh, layout, model_.tensors[tensor].shape.size())] +=
          double(local_bytes(plan_.mesh, layout, model_.tensors[tensor], scenario_.settings.precision));
      return;
    }
  }

  // The plan counts a copy that consumers keep with its producer where no resharding lies between; across a boundary
  // the copy that was received is the one kept.
  void move_copies_to_readers() {
    for (const TensorFlow& flow : uses_.flows) {
      if (flow.producer_saves || flow.producer_is_view || !flow.any_consumer_saves()) continue;
      std::size_t reader = std::numeric_limits<std::size_t>::max();
      for (std::size_t c = 0; c < flow.consumers.size(); ++c)
        if (flow.consumer_saves[c]) reader = std::min(reader, unit_of(flow.consumers[c].op));
      const std::size_t maker = unit_of(flow.producer);
      if (reader == maker) continue;
      const bool resharded = std::any_of(plan_.reshards.begin(), plan_.reshards.end(), [&](const PlanReshard& r) {
        CostBreakdown cost = r.cost;
        return r.tensor == flow.tensor && cost[MemoryPart::activations] > 0;
      });
      if (resharded) continue;
      const Operator& op = model_.operators[flow.producer];
      const Layout layout = forward_layout(op, op.outputs[flow.output], true,
                                           plan_.operators[flow.producer.index].split, plan_.mesh.count())
                                .without_partial();
      const std::int64_t bytes =
          local_bytes(plan_.mesh, layout, model_.tensors[flow.tensor], scenario_.settings.precision);
      const std::int64_t moved = std::min(bytes, units_[maker].kept[MemoryPart::activations]);
      units_[maker].kept[MemoryPart::activations] -= moved;
      units_[reader].kept[MemoryPart::activations] += moved;
    }
  }

  // Sends of one micro-batch over the boundary behind `run`.
  StageTimes crossing(int run, const CollectiveModel& collectives) const {
    BoundaryBytes there, back;
    for (const TensorFlow& flow : uses_.flows) {
      if (run_of(unit_of(flow.producer)) > run || flow.producer_is_view ||
          model_.tensors[flow.tensor].role != TensorRole::activation)
        continue;
      add_sent(flow.tensor, run, there);
      if (model_.tensors[flow.tensor].requires_gradient) add_sent(flow.tensor, run, back);
    }
    const auto seconds_of = [&](const BoundaryBytes& bytes) {
      return send_between_stages(collectives, *scenario_.cluster, plan_.mesh, split_.stages, run % split_.stages,
                                 (run + 1) % split_.stages, bytes);
    };
    return {seconds_of(there), seconds_of(back)};
  }

  std::uint32_t whole_axes(const Layout& layout) const {
    return layout.mask(Layout::kReplicated) & ((1u << plan_.mesh.count()) - 1);
  }

  DeviceGroup pair_between(int one, int other) const {
    return pair_of_stages(*scenario_.cluster, split_.stages, one, other);
  }

  void add_tied_weights(const CollectiveModel& collectives) {
    for (const ParameterTie& tie : uses_.ties) {
      PlanPipeline::TiedSum sum;
      sum.owner = stage_of(unit_of(tie.owner)), sum.user = stage_of(unit_of(tie.user));
      sum.owner_op = tie.owner, sum.user_op = tie.user;
      if (sum.owner == sum.user) continue;
      describe_tied_copy(one_stage_, uses_, plan_, tie, sum);
      PipelinePart& holds = units_[unit_of(tie.user)];
      holds.held[MemoryPart::parameters] += sum.parameter_bytes;
      holds.held[MemoryPart::gradients] += sum.gradient_bytes;
      holds.held[MemoryPart::optimizer] += sum.optimizer_bytes;
      holds.once_compute += sum.update_s;
      ParameterSteps copy;
      copy.gather = sum.gather, copy.sync = sum.sync, copy.spread = sum.spread;
      holds.add_parameters(copy, plan_.operators[tie.owner.index].choice.update);
      const double bytes = static_cast<double>(tied_elements(model_, plan_, tie)) *
                           parameter_bytes(scenario_.settings, Accounting::full).gradient;
      sum.time_s = collectives.time(Collective::all_reduce, pair_between(sum.owner, sum.user), bytes).value;
      for (const std::size_t unit : {unit_of(tie.owner), unit_of(tie.user)}) {
        units_[unit].once_network += sum.time_s;
        units_[unit].once_steps[NetworkPart::all_reduce] += sum.time_s;
      }
      tied_.push_back(std::move(sum));
    }
  }

  /// A run of layers on its stage.
  struct Run {
    PipelinePart part;
    PipelinePart again;       ///< what runs forward once more in backward
    CostBreakdown inputs;     ///< kept in its place
    CostBreakdown transient;  ///< of the largest layer while it runs again
    StageTimes times;
    /// Of a micro-batch between its forward and its backward.
    CostBreakdown kept() const {
      CostBreakdown bytes = part.kept;
      for (std::size_t i = 0; i < bytes.memory.size(); ++i) bytes.memory[i] += inputs.memory[i] - again.kept.memory[i];
      return bytes;
    }
  };

  std::vector<Run> make_runs() const {
    std::vector<Run> made(runs());
    for (std::size_t u = 0; u < units_.size(); ++u) {
      Run& run = made[std::size_t(run_of(u))];
      run.part += units_[u];
      const bool layer = roles_ && u > 0 && u + 1 < units_.size();
      if (!split_.recompute || split_.selective || !layer) continue;
      run.again += units_[u];
      CostBreakdown input;
      for (const TensorId tensor : roles_->enters[u - 1]) input[MemoryPart::activations] += bytes_entering(tensor, u);
      run.inputs += input;
      CostBreakdown rest = units_[u].kept;
      rest[MemoryPart::activations] =
          std::max<std::int64_t>(0, rest[MemoryPart::activations] - input[MemoryPart::activations]);
      if (rest.memory_bytes() > run.transient.memory_bytes()) run.transient = rest;
    }
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      Run& run = made[std::size_t(run_of(unit_of(roles_->attentions[c].scores)))];
      run.again += cores_[c];
      if (cores_[c].kept.memory_bytes() > run.transient.memory_bytes()) run.transient = cores_[c].kept;
    }
    for (Run& run : made)
      run.times = {run.part.forward(), run.part.backward() + (split_.recompute ? run.again.forward() : 0)};
    return made;
  }

  void schedule() {
    const CollectiveModel collectives = collectives_of(scenario_);
    add_tied_weights(collectives);
    std::vector<Run> made = make_runs();
    for (std::size_t r = 0; r + 1 < made.size(); ++r) {
      const StageTimes over = crossing(static_cast<int>(r), collectives);
      send_s_.push_back(over.forward);
      send_back_s_.push_back(over.backward);
      made[r + 1].times.forward += over.forward;
      made[r].times.backward += over.backward;
      made[r + 1].part.forward_steps[NetworkPart::permute] += over.forward;
      made[r].part.backward_steps[NetworkPart::permute] += over.backward;
    }
    std::vector<StageTimes> times;
    for (const Run& run : made) times.push_back(run.times);
    const auto ends = ends_of_passes(times, split_.micro_batches, split_.chunks, split_.forwards_first);
    for (int s = 0; s < split_.stages; ++s) take_stage(s, made, ends[std::size_t(s)]);
  }

  // What the stage holds; and where none ends later, the times are its own.
  void take_stage(int stage, const std::vector<Run>& made, double end_of_passes) {
    std::vector<const Run*> mine;
    for (int c = 0; c < split_.chunks; ++c) mine.push_back(&made[std::size_t(c * split_.stages + stage)]);
    std::vector<std::int64_t> kept_bytes;
    for (const Run* run : mine) kept_bytes.push_back(run->kept().memory_bytes());
    const auto order = pipeline_order(stage, split_.stages, split_.chunks, split_.micro_batches, split_.forwards_first);
    const auto flying = most_in_flight(order, kept_bytes);
    CostBreakdown memory, transient;
    double once = 0;
    for (std::size_t c = 0; c < mine.size(); ++c) {
      const CostBreakdown kept = mine[c]->kept();
      for (std::size_t i = 0; i < memory.memory.size(); ++i)
        memory.memory[i] += mine[c]->part.held.memory[i] + flying[c] * kept.memory[i];
      if (mine[c]->transient.memory_bytes() > transient.memory_bytes()) transient = mine[c]->transient;
      once += mine[c]->part.once_compute + mine[c]->part.once_network;
    }
    for (std::size_t i = 0; i < memory.memory.size(); ++i) memory.memory[i] += transient.memory[i];
    stage_bytes_.push_back(memory.memory_bytes());
    if (stage_bytes_.back() >= *std::max_element(stage_bytes_.begin(), stage_bytes_.end())) largest_ = memory;
    const double end = end_of_passes + once;
    // Of stages that end together the last one, whatever order their sums were made in.
    if (end < time_s_ * (1 - 1e-12)) return;
    time_s_ = std::max(time_s_, end);
    compute_ = {};
    network_ = {};
    bubble_s_ = end_of_passes;
    const double m = split_.micro_batches;
    for (const Run* run : mine) {
      const PipelinePart& part = run->part;
      compute_[ComputePart::forward] += m * part.forward_compute;
      compute_[ComputePart::backward] += m * (part.backward_compute - part.again_compute);
      compute_[ComputePart::recompute] += m * part.again_compute;
      compute_[ComputePart::update] += part.once_compute;
      if (split_.recompute) compute_[ComputePart::recompute] += m * run->again.forward_compute;
      bubble_s_ -= m * (run->times.forward + run->times.backward);
      for (std::size_t i = 0; i < network_.size(); ++i) {
        network_[i] +=
            part.once_steps.network[i] + m * (part.forward_steps.network[i] + part.backward_steps.network[i]);
        if (split_.recompute) network_[i] += m * run->again.forward_steps.network[i];
      }
    }
    compute_s_ = compute_.compute_s();
  }

  std::int64_t bytes_entering(TensorId tensor, std::size_t unit) const {
    for (const auto& use : model_.uses[tensor]) {
      if (unit_of(use.op) != unit) continue;
      const Operator& op = model_.operators[use.op];
      const Layout layout =
          gradient_layout(op, op.inputs[use.input], false, plan_.operators[use.op.index].split, plan_.mesh.count())
              .without_partial();
      return local_bytes(plan_.mesh, layout, model_.tensors[tensor], scenario_.settings.precision);
    }
    return 0;
  }

  Plan unrolled(const ResultPoint& point) {
    const Mesh machine = make_mesh(*scenario_.cluster);
    PlanPipeline& laid_out = plan_.pipeline.emplace();
    split_.tell(laid_out);
    laid_out.bubble_s = bubble_s_, laid_out.stage_memory_bytes = stage_bytes_, laid_out.tied = tied_;
    laid_out.send_s = send_s_, laid_out.send_back_s = send_back_s_;
    laid_out.layer_of = layer_of_, laid_out.micro_batch = micro_batch_;
    Plan plan = on_mesh(plan_, machine, stage_axes(machine, split_.stages));
    for (PlanOperator& op : plan.operators) {
      op.stage = stage_of(unit_of(op.op));
      op.chunk = run_of(unit_of(op.op)) / split_.stages;
    }
    plan.cost = compute_;
    plan.cost.memory = largest_.memory;
    plan.cost.network = network_;
    // Sending to the next stage is a permute, waiting for a stage an item of its own: time_s stays the sum of its
    // parts.
    if (split_.stages > 1) plan.cost[NetworkPart::bubble] = std::max(0.0, point.network_s - plan.cost.network_s());
    if (!layer_of_.empty()) return plan;
    const int layers = roles_ ? roles_->layers : 0;
    for (const auto& op : plan.operators) {
      const int layer = int(unit_of(op.op)) - 1;
      plan.pipeline->layer_of.push_back(layer < layers ? layer : -1);
    }
    if (split_.selective) plan.pipeline->layer_of = roles_->core_of;
    return plan;
  }

  const Scenario &scenario_, &one_stage_;
  ModelPtr micro_batch_;
  const Model& model_;
  const TransformerRoles* roles_;
  ManualSplit split_;
  Plan plan_;
  TensorUses uses_;
  std::vector<PipelinePart> units_;
  std::vector<PipelinePart> cores_;          ///< by attention, of selective recomputation: what runs again
  std::vector<int> run_of_unit_, layer_of_;  ///< the latter by operator, where a plan says so
  std::vector<std::int64_t> stage_bytes_;
  std::vector<PlanPipeline::TiedSum> tied_;
  std::vector<double> send_s_, send_back_s_;
  CostBreakdown largest_, compute_;
  decltype(CostBreakdown::network) network_{};
  double time_s_ = 0, compute_s_ = 0, bubble_s_ = 0;
};

/// What a search of one micro-batch leaves out: the sums of gradients over all of them.
Plan with_accumulation(const Scenario& one_stage, int micro_batches, Plan plan) {
  if (micro_batches == 1) return plan;
  const TensorUses uses = analyse_tensor_uses(*one_stage.model);
  const ReshardingModel resharding(plan.mesh, collectives_of(one_stage), one_stage.cluster->device.memory_bandwidth);
  const OperatorCostModel costs(one_stage, uses, resharding, micro_batches);
  for (PlanOperator& op : plan.operators)
    op.cost[ComputePart::backward] += costs.accumulation_s(op.op, op.split, op.choice);
  return plan;
}

}  // namespace

Expected<ResultPtr> pipeline_point(const ScenarioPtr& scenario, const TransformerRoles* roles, const ManualSplit& split,
                                   const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  if (split.recompute && (!roles || roles->layers == 0))
    return usage_error("recompute needs layers, and this model has none that could be told apart");
  const auto stage = one_stage_of(*scenario, split.stages, split.micro_batches);
  if (!stage) return stage.error();
  const ScenarioPtr& one_stage = *stage;
  const auto point = grouped_point("manual", one_stage, roles, split.groups(), split.sequence_parallel,
                                   update_choice(split, *one_stage), context, split.by_operator);
  if (!point) return point.error();
  Plan plan = with_accumulation(*one_stage, split.micro_batches, (*point)->plans->sharding(0));
  if (split.beside_products) put_beside_products(*one_stage, plan);
  auto result = Pipeline(*scenario, *one_stage, roles, split, std::move(plan)).run();
  result->scenario = scenario;
  result->method = "manual";
  result->exact = true;
  result->gap = 0;
  if (split.selective && std::all_of(roles->core_of.begin(), roles->core_of.end(), [](int core) { return core < 0; }))
    result->notes.push_back("attention is fused: its cores keep nothing that recompute=selective could make again");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result->search_s = elapsed.count();
  return ResultPtr(std::move(result));
}

Expected<ResultPtr> pipeline_anew(const ScenarioPtr& scenario, const Scenario& one_stage, const Plan& plan) {
  const PlanPipeline& pipeline = *plan.pipeline;
  ManualSplit split;
  split.stages = pipeline.stages, split.micro_batches = pipeline.micro_batches, split.chunks = pipeline.chunks;
  split.recompute = pipeline.recompute, split.selective = pipeline.selective;
  split.forwards_first = pipeline.forwards_first, split.sums_behind = pipeline.sums_behind;
  split.beside_products = pipeline.beside_products;
  std::optional<TransformerRoles> roles;
  if (pipeline.runs() > 1 || pipeline.recompute) {
    auto found = find_transformer_roles(*scenario->model, scenario->settings.split_windows);
    if (!found) return found.error();
    roles = std::move(*found);
  }
  Pipeline made(*scenario, one_stage, roles ? &*roles : nullptr, split, plan);
  made.take_runs_of(plan);
  auto result = made.run();
  result->scenario = scenario;
  result->exact = true;
  result->gap = 0;
  return ResultPtr(std::move(result));
}

}  // namespace turnpoint::search
