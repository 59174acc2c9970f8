// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/plan/charges.h"
#include "core/plan/evaluator.h"
#include "core/plan/one_stage.h"

namespace turnpoint {

namespace {

/// Micro-batches of all stages together: what a schedule of a gigabyte has.
constexpr int kMostSteps = 1 << 26;

struct Stage {
  CostBreakdown forward, backward;  ///< of one micro-batch; memory: kept from forward to backward
  CostBreakdown once;               ///< of an iteration; memory: held throughout
  CostBreakdown rerun;              ///< what runs forward again in backward, and what is not kept for it
  CostBreakdown inputs;             ///< kept in its place
  CostBreakdown transient;          ///< of the largest layer while it runs again
};

/// When stages end their last backward, each of its own micro-batches in the order of 1F1B.
class Schedule {
 public:
  Schedule(const std::vector<Stage>& stages, int batches) : stages_(stages), batches_(batches) {
    const std::size_t steps = 2 * std::size_t(batches);
    forward_end_.assign(stages.size(), std::vector<double>(std::size_t(batches), kNotYet));
    backward_end_ = forward_end_;
    std::vector<std::size_t> done(stages.size(), 0);
    ends_.assign(stages.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages.size(); ++s)
        while (done[s] < steps && step(s, done[s])) ++done[s], moved = true;
    }
  }
  double end(std::size_t stage) const { return ends_[stage]; }

 private:
  static constexpr double kNotYet = -1;

  /// Whether what the stage's k-th step waits for has ended; if so, it has then ended, too.
  bool step(std::size_t s, std::size_t k) {
    const auto m = std::size_t(batches_), warm_up = std::min(stages_.size() - 1 - s, m);
    const bool steady = k >= warm_up && k < 2 * m - warm_up;
    const bool forward = k < warm_up || (steady && (k - warm_up) % 2 == 0);
    const std::size_t batch = k < warm_up ? k : !steady ? k - m : (k - warm_up) / 2 + (forward ? warm_up : 0);
    double ready = 0;
    if (forward && s > 0) ready = forward_end_[s - 1][batch];
    if (!forward && s + 1 < stages_.size()) ready = backward_end_[s + 1][batch];
    if (ready == kNotYet) return false;
    const Stage& stage = stages_[s];
    ends_[s] =
        std::max(ends_[s], ready) + (forward ? stage.forward.time_s() : stage.backward.time_s() + stage.rerun.time_s());
    (forward ? forward_end_ : backward_end_)[s][batch] = ends_[s];
    return true;
  }

  const std::vector<Stage>& stages_;
  int batches_;
  std::vector<std::vector<double>> forward_end_, backward_end_;
  std::vector<double> ends_;
};

class PipelineEvaluator {
 public:
  PipelineEvaluator(const Scenario& one_stage, const Scenario& scenario, const Plan& plan, const Plan& alone)
      : scenario_(scenario),
        model_(*one_stage.model),
        pipeline_(*plan.pipeline),
        plan_(alone),
        uses_(analyse_tensor_uses(model_)),
        collectives_(collectives_of(scenario)),
        stages_(std::size_t(plan.pipeline->stages)) {}

  Expected<PipelineCost> run(const std::vector<PlanCharge>& charges) {
    if (auto legal = check(); !legal) return legal.error();
    for (const PlanCharge& charge : charges) {
      Stage& stage = stages_[std::size_t(stage_of(charge.payer))];
      using When = PlanCharge::When;
      (charge.when == When::forward    ? stage.forward
       : charge.when == When::backward ? stage.backward
                                       : stage.once) += charge.cost;
    }
    if (pipeline_.recompute) run_again(charges);
    sum_tied_weights();
    send_between_stages();
    lay_out();
    return std::move(made_);
  }

 private:
  Error bad(const std::string& at, std::string what) const {
    return bad_input("plan: " + what, model_.name + ": " + at);
  }
  int stage_of(OperatorId id) const { return plan_.operators[id.index].stage; }
  int layer_of(OperatorId id) const { return pipeline_.layer_of[id.index]; }

  Expected<void> check() const {
    std::map<int, int> stage_of_layer;
    for (const PlanOperator& op : plan_.operators) {
      const std::string& name = model_.operators[op.op].name;
      if (op.stage < 0 || op.stage >= pipeline_.stages)
        return bad(name, fmt::format("is on stage {} of {}", op.stage, pipeline_.stages));
      if (pipeline_.recompute && layer_of(op.op) >= 0 &&
          stage_of_layer.emplace(layer_of(op.op), op.stage).first->second != op.stage)
        return bad(name, "is on another stage than the rest of what runs again with it");
    }
    for (const TensorFlow& flow : uses_.flows)
      for (const auto& use : flow.consumers)
        if (stage_of(use.op) < stage_of(flow.producer))
          return bad(model_.operators[use.op].name, "reads what a later stage makes");
    return {};
  }

  std::int64_t bytes_as_read(const Model::Use& use, TensorId tensor) const {
    const Operator& op = model_.operators[use.op];
    const Layout layout =
        gradient_layout(op, op.inputs[use.input], false, plan_.operators[use.op.index].split, plan_.mesh.count())
            .without_partial();
    return local_bytes(plan_.mesh, layout, model_.tensors[tensor], scenario_.settings.precision);
  }

  /// Layers, or the cores of attentions, keep their inputs (of a core: nothing more than others keep anyway).
  void run_again(const std::vector<PlanCharge>& charges) {
    std::vector<char> leaves(model_.operators.size(), 0);
    for (const TensorFlow& flow : uses_.flows)
      for (const auto& use : flow.consumers) leaves[flow.producer.index] |= layer_of(use.op) != layer_of(flow.producer);
    std::map<int, CostBreakdown> layers;
    std::map<int, int> stages;
    for (const PlanOperator& op : plan_.operators)
      if (layer_of(op.op) >= 0) layers[layer_of(op.op)], stages[layer_of(op.op)] = op.stage;
    for (const PlanCharge& charge : charges) {
      if (charge.when != PlanCharge::When::forward) continue;
      const int layer = layer_of(pipeline_.selective ? charge.maker : charge.payer);
      if (layer < 0) continue;
      CostBreakdown again = charge.cost;
      if (pipeline_.selective) {
        // Of a core its own work, and what only the core itself reads.
        const bool own = charge.payer == charge.maker;
        if (own) again.network = {};
        if (leaves[charge.maker.index]) again.memory = {};
        if (leaves[charge.maker.index] && !own) again = {};
      }
      layers[layer] += again;
    }
    const std::map<int, std::int64_t> entering =
        pipeline_.selective ? std::map<int, std::int64_t>() : entering_layers();
    for (auto& [layer, again] : layers) {
      Stage& stage = stages_[std::size_t(stages[layer])];
      stage.rerun += again;
      const auto found = entering.find(layer);
      const std::int64_t input = found == entering.end() ? 0 : found->second;
      stage.inputs[MemoryPart::activations] += input;
      CostBreakdown rest;
      rest.memory = again.memory;
      rest[MemoryPart::activations] = std::max<std::int64_t>(0, rest[MemoryPart::activations] - input);
      if (rest.memory_bytes() > stage.transient.memory_bytes()) stage.transient = rest;
    }
  }

  /// Bytes of the tensors with gradient that come into each layer, as their first reader there has them.
  std::map<int, std::int64_t> entering_layers() const {
    std::map<int, std::int64_t> bytes;
    for (std::size_t t = 0; t < model_.tensors.size(); ++t) {
      const Tensor& tensor = model_.tensors[TensorId(t)];
      if (!tensor.producer.valid() || tensor.role != TensorRole::activation || !tensor.requires_gradient) continue;
      std::vector<int> seen;
      for (const auto& use : model_.uses[TensorId(t)]) {
        const int layer = layer_of(use.op);
        if (layer < 0 || layer == layer_of(tensor.producer)) continue;
        if (std::find(seen.begin(), seen.end(), layer) != seen.end()) continue;
        seen.push_back(layer);
        bytes[layer] += bytes_as_read(use, TensorId(t));
      }
    }
    return bytes;
  }

  /// A weight of two stages is stored and updated on both; its gradients are summed between them.
  void sum_tied_weights() {
    const auto& settings = scenario_.settings;
    const ParameterBytes counted = parameter_bytes(settings.precision, settings.optimizer, settings.accounting);
    const ParameterBytes real = parameter_bytes(settings.precision, settings.optimizer, Accounting::full);
    for (const ParameterTie& tie : uses_.ties) {
      const int owner = stage_of(tie.owner), user = stage_of(tie.user);
      if (owner == user) continue;
      const Operator& op = model_.operators[tie.user];
      const Access& read = op.inputs[tie.user_input];
      const Layout layout =
          gradient_layout(op, read, false, plan_.operators[tie.user.index].split, plan_.mesh.count()).without_partial();
      const std::int64_t elements = local_elements(plan_.mesh, layout, model_.tensors[read.tensor].shape);
      const MemoryChoice& choice = plan_.operators[tie.owner.index].choice;
      const bool weights = choice.update == Update::sharded_weights,
                 gradients = weights || choice.update == Update::sharded;
      const std::int64_t shards = choice.update == Update::replicated ? 1 : plan_.mesh.size_of(choice.update_axes);
      const auto bytes = [&](bool sharded, int each) { return elements / (sharded ? shards : 1) * each; };
      PlanPipeline::TiedSum sum{owner, user, tie.owner, tie.user};
      sum.time_s = collectives_
                       .time(Collective::all_reduce, pair_of_stages(*scenario_.cluster, pipeline_.stages, owner, user),
                             double(elements) * real.gradient)
                       .value;
      sum.parameter_bytes = bytes(weights, counted.weight);
      sum.gradient_bytes = bytes(gradients, counted.gradient);
      sum.optimizer_bytes = bytes(true, counted.optimizer);
      CostBreakdown& held = stages_[std::size_t(user)].once;
      held[MemoryPart::parameters] += sum.parameter_bytes;
      held[MemoryPart::gradients] += sum.gradient_bytes;
      held[MemoryPart::optimizer] += sum.optimizer_bytes;
      for (const int stage : {owner, user}) stages_[std::size_t(stage)].once[NetworkPart::all_reduce] += sum.time_s;
      made_.tied.push_back(sum);
    }
  }

  /// Every tensor that is read behind a boundary crosses it, its gradient comes back; the receiver is busy with it.
  void send_between_stages() {
    for (int s = 0; s + 1 < pipeline_.stages; ++s) {
      double there = 0, back = 0;
      for (const TensorFlow& flow : uses_.flows) {
        const Tensor& tensor = model_.tensors[flow.tensor];
        if (tensor.role != TensorRole::activation || flow.producer_is_view || stage_of(flow.producer) > s) continue;
        const auto& uses = model_.uses[flow.tensor];
        const auto behind =
            std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return stage_of(use.op) > s; });
        if (behind == uses.end()) continue;
        const auto bytes = double(bytes_as_read(*behind, flow.tensor));
        there += bytes;
        if (tensor.requires_gradient) back += bytes;
      }
      const DeviceGroup pair = pair_of_stages(*scenario_.cluster, pipeline_.stages, s, s + 1);
      made_.send_s.push_back(collectives_.time(Collective::send, pair, there).value);
      made_.send_back_s.push_back(collectives_.time(Collective::send, pair, back).value);
      stages_[std::size_t(s + 1)].forward[NetworkPart::permute] += made_.send_s.back();
      stages_[std::size_t(s)].backward[NetworkPart::permute] += made_.send_back_s.back();
    }
  }

  void lay_out() {
    const Schedule schedule(stages_, pipeline_.micro_batches);
    const double batches = pipeline_.micro_batches;
    double last = 0;
    std::int64_t largest = -1;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      const auto flying = std::min<std::int64_t>(std::int64_t(stages_.size() - s), pipeline_.micro_batches);
      CostBreakdown memory;
      for (std::size_t i = 0; i < memory.memory.size(); ++i)
        memory.memory[i] = stage.once.memory[i] + stage.transient.memory[i] +
                           flying * (stage.forward.memory[i] - stage.rerun.memory[i] + stage.inputs.memory[i]);
      made_.stage_memory_bytes.push_back(memory.memory_bytes());
      if (memory.memory_bytes() >= largest) largest = memory.memory_bytes(), made_.cost.memory = memory.memory;
      const double end = schedule.end(s) + stage.once.time_s();
      if (end < last * (1 - kSameTime)) continue;
      last = std::max(last, end);
      take_times_of(stage);
      made_.bubble_s =
          schedule.end(s) - batches * (stage.forward.time_s() + stage.backward.time_s() + stage.rerun.time_s());
      if (pipeline_.stages > 1)
        made_.cost[NetworkPart::bubble] = std::max(0.0, end - made_.cost.compute_s() - made_.cost.network_s());
    }
  }

  void take_times_of(Stage stage) {
    const double batches = pipeline_.micro_batches;
    CostBreakdown& cost = made_.cost;
    cost[ComputePart::forward] = batches * stage.forward.compute_s();
    cost[ComputePart::backward] = batches * stage.backward.compute_s();
    cost[ComputePart::update] = stage.once.compute_s();
    cost[ComputePart::recompute] = batches * stage.rerun.compute_s();
    for (std::size_t i = 0; i < cost.network.size(); ++i)
      cost.network[i] = stage.once.network[i] +
                        batches * (stage.forward.network[i] + stage.backward.network[i] + stage.rerun.network[i]);
  }

  /// Of stages that end together the last one is taken, whatever order sums were made in.
  static constexpr double kSameTime = 1e-12;

  const Scenario& scenario_;
  const Model& model_;
  const PlanPipeline& pipeline_;
  const Plan& plan_;
  TensorUses uses_;
  CollectiveModel collectives_;
  std::vector<Stage> stages_;
  PipelineCost made_;
};

}  // namespace

Expected<PipelineCost> evaluate_pipeline(const Scenario& scenario, const Plan& plan) {
  const PlanPipeline& pipeline = *plan.pipeline;
  if (pipeline.stages < 1 || pipeline.micro_batches < 1 || pipeline.layer_of.size() != plan.operators.size())
    return bad_input("plan is a pipeline without stages, micro-batches or layers", scenario.model->name);
  if (pipeline.stages > kMostSteps / pipeline.micro_batches)
    return bad_input("plan has more micro-batches on its stages than a schedule can hold", scenario.model->name);
  const auto one_stage = one_stage_of(scenario, pipeline.stages, pipeline.micro_batches);
  if (!one_stage) return one_stage.error();
  auto alone = on_one_stage(plan, make_mesh(*(*one_stage)->cluster), pipeline.stages);
  if (!alone) return alone.error();
  alone->pipeline.reset();
  const auto charges = charges_of(**one_stage, *alone);
  if (!charges) return charges.error();
  return PipelineEvaluator(**one_stage, scenario, plan, *alone).run(*charges);
}

}  // namespace turnpoint
