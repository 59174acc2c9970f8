// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/plan/beside_products.h"
#include "core/plan/charges.h"
#include "core/plan/evaluator.h"
#include "core/plan/on_mesh.h"
#include "core/plan/one_stage.h"
#include "core/plan/tied_copy.h"

namespace turnpoint {

namespace {

/// Micro-batches of all stages together: what a schedule of a gigabyte has.
constexpr int kMostSteps = 1 << 26;

struct Run {
  CostBreakdown forward, backward;  ///< of one micro-batch; memory: kept from forward to backward
  CostBreakdown once;               ///< of an iteration; memory: held throughout
  CostBreakdown rerun;              ///< what runs forward again in backward, and what is not kept for it
  CostBreakdown inputs;             ///< kept in its place
  CostBreakdown transient;          ///< of the largest layer while it runs again

  double backward_s() const { return backward.time_s() + rerun.time_s(); }
  std::int64_t kept(std::size_t part) const { return forward.memory[part] - rerun.memory[part] + inputs.memory[part]; }
};

/// When stages end their last backward, and what each keeps of how many micro-batches where it keeps most. Stage s has
/// the runs s, s + stages, ... of all, in the order of (interleaved) 1F1B: its i-th forward and its i-th backward are
/// of micro-batch i / (stages chunks) stages + i mod stages. Where all forwards come first all micro-batches go round.
class Schedule {
 public:
  Schedule(const std::vector<Run>& runs, std::size_t stages, std::size_t batches, bool forwards_first)
      : runs_(runs),
        stages_(stages),
        chunks_(runs.size() / stages),
        steps_(2 * chunks_ * batches),
        round_(forwards_first ? batches : stages),
        forwards_first_(forwards_first) {
    forward_end_.assign(runs.size(), std::vector<double>(batches, kNotYet));
    backward_end_ = forward_end_;
    done_.assign(stages, {});
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages; ++s)
        while (done_[s].steps < steps_ && step(s)) moved = true;
    }
  }
  double end(std::size_t stage) const { return done_[stage].end; }
  /// By chunk: micro-batches in flight.
  const std::vector<int>& most(std::size_t stage) const { return done_[stage].most; }

 private:
  static constexpr double kNotYet = -1;

  struct Done {
    std::size_t steps = 0, forwards = 0, backwards = 0;
    double end = 0;
    std::vector<int> now, most;
    std::int64_t held = 0, largest = -1;
  };

  /// Whether what the stage's next step waits for has ended; if so, it has then ended, too.
  bool step(std::size_t s) {
    Done& me = done_[s];
    const std::size_t behind = stages_ - 1 - s, passes = steps_ / 2;
    const std::size_t ahead = chunks_ == 1 ? behind : 2 * behind + (chunks_ - 1) * stages_;
    const std::size_t warm_up = forwards_first_ ? passes : std::min(passes, ahead);
    const bool forward = me.forwards < passes && me.forwards <= me.backwards + warm_up;
    const std::size_t i = forward ? me.forwards : me.backwards, turn = i / round_ % chunks_;
    const std::size_t chunk = forward ? turn : chunks_ - 1 - turn, run = chunk * stages_ + s,
                      batch = i / (round_ * chunks_) * round_ + i % round_;
    double ready = 0;
    if (forward && run > 0) ready = forward_end_[run - 1][batch];
    if (!forward && run + 1 < runs_.size()) ready = backward_end_[run + 1][batch];
    if (ready == kNotYet) return false;
    me.end = std::max(me.end, ready) + (forward ? runs_[run].forward.time_s() : runs_[run].backward_s());
    (forward ? forward_end_ : backward_end_)[run][batch] = me.end;
    ++(forward ? me.forwards : me.backwards);
    ++me.steps;
    count(me, run, chunk, forward);
    return true;
  }

  void count(Done& me, std::size_t run, std::size_t chunk, bool forward) const {
    me.now.resize(chunks_, 0);
    me.now[chunk] += forward ? 1 : -1;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < std::size_t(kMemoryParts); ++i) bytes += runs_[run].kept(i);
    me.held += forward ? bytes : -bytes;
    if (me.held > me.largest) me.largest = me.held, me.most = me.now;
  }

  const std::vector<Run>& runs_;
  std::size_t stages_, chunks_, steps_;
  std::size_t round_;  ///< micro-batches that go through a run before the next run has its turn
  bool forwards_first_;
  std::vector<std::vector<double>> forward_end_, backward_end_;
  std::vector<Done> done_;
};

class PipelineEvaluator {
 public:
  PipelineEvaluator(const Scenario& one_stage, const Scenario& scenario, const Plan& plan, const Plan& alone)
      : scenario_(scenario),
        one_stage_(one_stage),
        model_(*one_stage.model),
        pipeline_(*plan.pipeline),
        plan_(alone),
        uses_(analyse_tensor_uses(model_)),
        collectives_(collectives_of(scenario)),
        runs_(std::size_t(plan.pipeline->runs())) {}

  Expected<PipelineCost> run(const std::vector<PlanCharge>& charges) {
    if (auto legal = check(); !legal) return legal.error();
    for (const PlanCharge& charge : charges) {
      Run& run = runs_[std::size_t(run_of(charge.payer))];
      using When = PlanCharge::When;
      (charge.when == When::forward    ? run.forward
       : charge.when == When::backward ? run.backward
                                       : run.once) += charge.cost;
    }
    if (pipeline_.recompute) run_again(charges);
    sum_tied_weights();
    send_on();
    lay_out();
    return std::move(made_);
  }

 private:
  Error bad(const std::string& at, std::string what) const {
    return bad_input("plan: " + what, model_.name + ": " + at);
  }
  int stage_of(OperatorId id) const { return plan_.operators[id.index].stage; }
  int run_of(OperatorId id) const { return pipeline_.run_of(plan_.operators[id.index]); }
  int layer_of(OperatorId id) const { return pipeline_.layer_of[id.index]; }

  Expected<void> check() const {
    if (pipeline_.chunks > 1 && (pipeline_.stages == 1 || pipeline_.micro_batches % pipeline_.stages != 0))
      return bad("pipeline", fmt::format("takes {} runs in turn on {} stages, which {} micro-batches do not go round",
                                         pipeline_.chunks, pipeline_.stages, pipeline_.micro_batches));
    std::map<int, int> run_of_layer;
    for (const PlanOperator& op : plan_.operators) {
      const std::string& name = model_.operators[op.op].name;
      if (op.stage < 0 || op.stage >= pipeline_.stages)
        return bad(name, fmt::format("is on stage {} of {}", op.stage, pipeline_.stages));
      if (op.chunk < 0 || op.chunk >= pipeline_.chunks)
        return bad(name, fmt::format("is in run {} of {} on its stage", op.chunk, pipeline_.chunks));
      if (pipeline_.recompute && layer_of(op.op) >= 0 &&
          run_of_layer.emplace(layer_of(op.op), run_of(op.op)).first->second != run_of(op.op))
        return bad(name, "is on another stage than the rest of what runs again with it");
    }
    for (const TensorFlow& flow : uses_.flows)
      for (const auto& use : flow.consumers)
        if (run_of(use.op) < run_of(flow.producer))
          return bad(model_.operators[use.op].name, "reads what a later stage makes");
    return {};
  }

  Layout layout_as_read(const Model::Use& use) const {
    const Operator& op = model_.operators[use.op];
    return gradient_layout(op, op.inputs[use.input], false, plan_.operators[use.op.index].split, plan_.mesh.count())
        .without_partial();
  }
  std::int64_t bytes_as_read(const Model::Use& use, TensorId tensor) const {
    return local_bytes(plan_.mesh, layout_as_read(use), model_.tensors[tensor], scenario_.settings.precision);
  }

  /// Layers, or the cores of attentions, keep their inputs (of a core: nothing more than others keep anyway).
  void run_again(const std::vector<PlanCharge>& charges) {
    std::vector<char> leaves(model_.operators.size(), 0);
    for (const TensorFlow& flow : uses_.flows)
      for (const auto& use : flow.consumers) leaves[flow.producer.index] |= layer_of(use.op) != layer_of(flow.producer);
    std::map<int, CostBreakdown> layers;
    std::map<int, int> runs;
    for (const PlanOperator& op : plan_.operators)
      if (layer_of(op.op) >= 0) layers[layer_of(op.op)], runs[layer_of(op.op)] = run_of(op.op);
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
      Run& run = runs_[std::size_t(runs[layer])];
      run.rerun += again;
      const auto found = entering.find(layer);
      const std::int64_t input = found == entering.end() ? 0 : found->second;
      run.inputs[MemoryPart::activations] += input;
      CostBreakdown rest;
      rest.memory = again.memory;
      rest[MemoryPart::activations] = std::max<std::int64_t>(0, rest[MemoryPart::activations] - input);
      if (rest.memory_bytes() > run.transient.memory_bytes()) run.transient = rest;
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

  /// A weight of two stages is stored and updated on both, and each sums its gradients; then both sum them.
  void sum_tied_weights() {
    const ParameterBytes real = parameter_bytes(scenario_.settings, Accounting::full);
    for (const ParameterTie& tie : uses_.ties) {
      PlanPipeline::TiedSum sum;
      sum.owner = stage_of(tie.owner), sum.user = stage_of(tie.user);
      sum.owner_op = tie.owner, sum.user_op = tie.user;
      if (sum.owner == sum.user) continue;
      describe_tied_copy(one_stage_, uses_, plan_, tie, sum);
      sum.time_s =
          collectives_
              .time(Collective::all_reduce, pair_of_stages(*scenario_.cluster, pipeline_.stages, sum.owner, sum.user),
                    double(tied_elements(model_, plan_, tie)) * real.gradient)
              .value;
      Run& user = runs_[std::size_t(run_of(tie.user))];
      user.once[MemoryPart::parameters] += sum.parameter_bytes;
      user.once[MemoryPart::gradients] += sum.gradient_bytes;
      user.once[MemoryPart::optimizer] += sum.optimizer_bytes;
      user.once[ComputePart::update] += sum.update_s;
      // Where shards are all that is kept of a gradient, every micro-batch scatters its own.
      const bool each = sums_every_micro_batch(plan_.operators[tie.owner.index].choice.update);
      add_network(each ? user.backward : user.once, sum.sync);
      add_network(user.once, sum.spread);
      // As often before forward as before backward, like those of the owner.
      CostBreakdown half;
      add_network(half, sum.gather);
      for (double& seconds : half.network) seconds /= 2;
      user.forward += half, user.backward += half;
      for (const OperatorId end : {tie.owner, tie.user})
        runs_[std::size_t(run_of(end))].once[NetworkPart::all_reduce] += sum.time_s;
      made_.tied.push_back(std::move(sum));
    }
  }

  /// Every tensor that is read behind a boundary crosses it, its gradient comes back; the receiver is busy with it.
  void send_on() {
    for (int r = 0; r + 1 < pipeline_.runs(); ++r) {
      BoundaryBytes there, back;
      for (const TensorFlow& flow : uses_.flows) {
        const Tensor& tensor = model_.tensors[flow.tensor];
        if (tensor.role != TensorRole::activation || flow.producer_is_view || run_of(flow.producer) > r) continue;
        const auto& uses = model_.uses[flow.tensor];
        const auto behind = std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return run_of(use.op) > r; });
        if (behind == uses.end()) continue;
        const std::uint32_t alike = held_alike_in_node(plan_.mesh, layout_as_read(*behind), tensor.shape.size());
        const auto bytes = double(bytes_as_read(*behind, flow.tensor));
        there[alike] += bytes;
        if (tensor.requires_gradient) back[alike] += bytes;
      }
      const auto seconds_of = [&](const BoundaryBytes& bytes) {
        return send_between_stages(collectives_, *scenario_.cluster, plan_.mesh, pipeline_.stages, r % pipeline_.stages,
                                   (r + 1) % pipeline_.stages, bytes);
      };
      made_.send_s.push_back(seconds_of(there));
      made_.send_back_s.push_back(seconds_of(back));
      runs_[std::size_t(r + 1)].forward[NetworkPart::permute] += made_.send_s.back();
      runs_[std::size_t(r)].backward[NetworkPart::permute] += made_.send_back_s.back();
    }
  }

  void lay_out() {
    const auto stages = std::size_t(pipeline_.stages);
    const Schedule schedule(runs_, stages, std::size_t(pipeline_.micro_batches), pipeline_.forwards_first);
    double last = 0;
    std::int64_t largest = -1;
    for (std::size_t s = 0; s < stages; ++s) {
      CostBreakdown memory, transient;
      double once = 0;
      for (std::size_t c = 0; c < std::size_t(pipeline_.chunks); ++c) {
        const Run& run = runs_[c * stages + s];
        for (std::size_t i = 0; i < memory.memory.size(); ++i)
          memory.memory[i] += run.once.memory[i] + schedule.most(s)[c] * run.kept(i);
        if (run.transient.memory_bytes() > transient.memory_bytes()) transient = run.transient;
        once += run.once.time_s();
      }
      for (std::size_t i = 0; i < memory.memory.size(); ++i) memory.memory[i] += transient.memory[i];
      made_.stage_memory_bytes.push_back(memory.memory_bytes());
      if (memory.memory_bytes() >= largest) largest = memory.memory_bytes(), made_.cost.memory = memory.memory;
      const double end = schedule.end(s) + once;
      if (end < last * (1 - kSameTime)) continue;
      last = std::max(last, end);
      take_times_of(s);
      made_.bubble_s = schedule.end(s);
      for (std::size_t r = s; r < runs_.size(); r += stages)
        made_.bubble_s -= double(pipeline_.micro_batches) * (runs_[r].forward.time_s() + runs_[r].backward_s());
      if (pipeline_.stages > 1)
        made_.cost[NetworkPart::bubble] = std::max(0.0, end - made_.cost.compute_s() - made_.cost.network_s());
    }
  }

  void take_times_of(std::size_t stage) {
    const double batches = pipeline_.micro_batches;
    CostBreakdown& cost = made_.cost;
    cost.compute = {};
    cost.network = {};
    for (std::size_t r = stage; r < runs_.size(); r += std::size_t(pipeline_.stages)) {
      const Run& run = runs_[r];
      const auto again = static_cast<std::size_t>(ComputePart::recompute);  // by operators; run.rerun: by whole layers
      cost[ComputePart::forward] += batches * run.forward.compute_s();
      cost[ComputePart::backward] += batches * (run.backward.compute_s() - run.backward.compute[again]);
      cost[ComputePart::update] += run.once.compute_s();
      cost[ComputePart::recompute] += batches * (run.backward.compute[again] + run.rerun.compute_s());
      for (std::size_t i = 0; i < cost.network.size(); ++i)
        cost.network[i] +=
            run.once.network[i] + batches * (run.forward.network[i] + run.backward.network[i] + run.rerun.network[i]);
    }
  }

  /// Of stages that end together the last one is taken, whatever order sums were made in.
  static constexpr double kSameTime = 1e-12;

  const Scenario &scenario_, &one_stage_;
  const Model& model_;
  const PlanPipeline& pipeline_;
  const Plan& plan_;
  TensorUses uses_;
  CollectiveModel collectives_;
  std::vector<Run> runs_;
  PipelineCost made_;
};

}  // namespace

Expected<PipelineCost> evaluate_pipeline(const Scenario& scenario, const Plan& plan) {
  const PlanPipeline& pipeline = *plan.pipeline;
  if (pipeline.stages < 1 || pipeline.micro_batches < 1 || pipeline.chunks < 1 ||
      pipeline.layer_of.size() != plan.operators.size())
    return bad_input("plan is a pipeline without stages, micro-batches or layers", scenario.model->name);
  if (pipeline.stages > kMostSteps / pipeline.micro_batches / pipeline.chunks)
    return bad_input("plan has more micro-batches on its stages than a schedule can hold", scenario.model->name);
  const auto one_stage = one_stage_of(scenario, pipeline.stages, pipeline.micro_batches);
  if (!one_stage) return one_stage.error();
  auto alone = on_one_stage(plan, make_mesh(*(*one_stage)->cluster), pipeline.stages);
  if (!alone) return alone.error();
  alone->pipeline.reset();
  auto charges = charges_of(**one_stage, *alone, pipeline.micro_batches);
  if (!charges) return charges.error();
  if (pipeline.beside_products) hide_beside_products(**one_stage, *alone, pipeline.micro_batches, *charges);
  auto made = PipelineEvaluator(**one_stage, scenario, plan, *alone).run(*charges);
  if (!made) return made;
  // What stages do for their copies is said of the machine's mesh, as all steps are.
  Plan tied;
  tied.pipeline.emplace().tied = std::move(made->tied);
  made->tied = std::move(on_mesh(std::move(tied), plan.mesh, stage_axes(plan.mesh, pipeline.stages)).pipeline->tied);
  return made;
}

}  // namespace turnpoint
