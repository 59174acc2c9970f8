// SPDX-License-Identifier: Apache-2.0
#include "core/export/engines/engine_settings.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "core/cost/selective_operators.h"
#include "core/cost/tensor_use.h"
#include "core/model/operator_kind.h"
#include "core/plan/one_stage.h"
#include "core/plan/resemblance.h"

namespace turnpoint {

namespace {

/// What the devices along an axis are to each other, outermost first as engines number devices; `idle` and `foreign`
/// are what no engine has.
enum class AxisUse : std::uint8_t { stage, data, context, tensor, expert, idle, foreign };
constexpr std::size_t kAxisUses = 7;

AxisUse use_of(const Model& model, const Operator& op, int loop) {
  switch (parallel_of(model, op, loop)) {
    case Parallel::none: return AxisUse::idle;
    case Parallel::data: return AxisUse::data;
    case Parallel::context: return AxisUse::context;
    case Parallel::spatial: return AxisUse::foreign;
    case Parallel::expert: return AxisUse::expert;
    default: return AxisUse::tensor;
  }
}

bool holds_weight(const Model& model, const Operator& op) {
  return std::ranges::any_of(
      op.inputs, [&](const Access& access) { return model.tensors[access.tensor].role == TensorRole::parameter; });
}

/// Whose lying decides what an engine is told; the others follow.
bool decides(const Model& model, const Operator& op) {
  return op.kind == OperatorKind::attention || (op.kind == OperatorKind::embedding && holds_weight(model, op)) ||
         record_of(op.kind).products;
}

/// A product of each expert: what it reads of tokens lies by expert, too. The router's only makes scores of them.
bool of_experts(const Model& model, const Operator& op) {
  return record_of(op.kind).products && std::ranges::any_of(op.inputs, [&](const Access& access) {
           const Tensor& tensor = model.tensors[access.tensor];
           return tensor.role == TensorRole::activation &&
                  std::ranges::find(tensor.dims, DimName::expert) != tensor.dims.end();
         });
}

int loop_called(const Operator& op, DimName name) {
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (op.dims[l].name == name && can_split(op, static_cast<int>(l), false)) return static_cast<int>(l);
  return -1;
}

class PlanAsSettings {
 public:
  PlanAsSettings(const Scenario& scenario, const Plan& plan, std::string_view engine)
      : plan_(plan), engine_(engine), axes_(static_cast<std::size_t>(plan.mesh.count())) {
    made_.model = plan.pipeline && plan.pipeline->micro_batch ? plan.pipeline->micro_batch : scenario.model;
    made_.micro_batches = plan.micro_batches();
    made_.batch = scenario.model->batch;
    if (const auto& pipeline = plan.pipeline) {
      made_.stages = pipeline->stages, made_.chunks = pipeline->chunks;
      made_.forwards_first = pipeline->forwards_first && pipeline->stages > 1;
      made_.reduces_meanwhile = !pipeline->sums_behind, made_.beside_products = pipeline->beside_products;
    }
    auto roles = find_transformer_roles(model(), scenario.settings.split_windows);
    if (roles)
      made_.roles = std::move(*roles);
    else
      made_.no_roles = roles.error().what;
  }

  Expected<EngineSettings> run() {
    if (auto error = name_axes()) return *error;
    if (auto error = check_deciding()) return *error;
    look_at_others();
    look_at_positions();
    if (auto error = name_runs()) return *error;
    if (auto error = name_updates()) return *error;
    if (auto error = name_again()) return *error;
    made_.micro_batch = made_.batch / (made_.data * made_.micro_batches);
    return made_;
  }

 private:
  using Failure = std::optional<Error>;
  const Model& model() const { return *made_.model; }
  const Operator& op_of(const PlanOperator& planned) const { return model().operators[planned.op]; }
  int size(std::size_t axis) const { return plan_.mesh.axes[axis].size; }
  int tensor_loop(OperatorId op) const { return made_.roles ? made_.roles->tensor_parallel_loop(model(), op) : -1; }
  /// Tables and logits: what tensor parallelism splits by words, where these can be divided.
  bool by_words(OperatorId id) const {
    const int loop = tensor_loop(id);
    return loop >= 0 && model().operators[id].dims[std::size_t(loop)].name == DimName::vocabulary;
  }

  Error refused(const std::string& why) const {
    Error error = usage_error(why);
    error.hint = fmt::format("nearest is {}", words_of(made_));
    return error;
  }

  // What most products and attentions make of each axis.
  Failure name_axes() {
    const std::vector<int> among_stages =
        made_.stages > 1 ? stage_axes(plan_.mesh, made_.stages) : std::vector<int>(axes_, 0);
    for (std::size_t a = 0; a < axes_; ++a) {
      if (among_stages[a] < 0) {
        uses_.push_back(AxisUse::stage);
        continue;
      }
      std::array<int, kAxisUses> votes{};
      for (const bool all : {false, true}) {
        for (const PlanOperator& op : plan_.operators)
          if (decides(model(), op_of(op)) && (all || (!of_experts(model(), op_of(op)) && !by_words(op.op))))
            ++votes[std::size_t(use_of(model(), op_of(op), op.split.axis[a]))];
        if (*std::ranges::max_element(votes) > 0) break;
      }
      uses_.push_back(static_cast<AxisUse>(std::ranges::max_element(votes) - votes.begin()));
    }
    for (std::size_t a = 0; a < axes_; ++a) {
      if (uses_[a] == AxisUse::data) made_.data *= size(a);
      if (uses_[a] == AxisUse::context) made_.context *= size(a);
      if (uses_[a] == AxisUse::tensor) made_.tensor *= size(a);
    }
    for (std::size_t a = 0; a < axes_; ++a) {
      if (uses_[a] < AxisUse::expert && (uses_[a] != AxisUse::tensor || made_.roles)) continue;
      for (const PlanOperator& op : plan_.operators)
        if (decides(model(), op_of(op)) && use_of(model(), op_of(op), op.split.axis[a]) == uses_[a])
          return refused(fmt::format("{} is {} over {} devices: {}", op_of(op).name, found(op, a), size(a),
                                     why_foreign(uses_[a])));
      return refused(fmt::format("{} devices have nothing to do with a weight", size(a)));
    }
    for (std::size_t a = 1; a < axes_; ++a)
      if (uses_[a] < uses_[a - 1])
        return refused(fmt::format("{} devices lie further apart than {} devices, which {} has the other way round",
                                   words_of(uses_[a - 1]), words_of(uses_[a]), engine_));
    return std::nullopt;
  }

  static const char* words_of(AxisUse use) {
    switch (use) {
      case AxisUse::data: return "data parallel";
      case AxisUse::context: return "context parallel";
      case AxisUse::tensor: return "tensor parallel";
      default: return "other";
    }
  }
  static std::string words_of(const EngineSettings& settings) { return turnpoint::words_of(settings); }

  std::string why_foreign(AxisUse use) const {
    if (use == AxisUse::tensor)
      return fmt::format("{} splits the matrices of transformers alone, and {}", engine_, made_.no_roles);
    if (use == AxisUse::idle) return fmt::format("with {}, no two devices do the same work", engine_);
    return fmt::format("{} has nothing of the kind", engine_);
  }

  std::string found(const PlanOperator& op, std::size_t axis) const {
    return to_string(parallel_of(model(), op_of(op), op.split.axis[axis]));
  }

  /// The loop that the engine splits along the axis; -1: none.
  int wanted(OperatorId id, std::size_t axis) const {
    const Operator& op = model().operators[id];
    if (uses_[axis] == AxisUse::data) return loop_called(op, DimName::batch);
    if (uses_[axis] == AxisUse::context) return loop_called(op, DimName::sequence);
    if (uses_[axis] != AxisUse::tensor) return -1;
    const int loop = tensor_loop(id);
    if (loop >= 0 && op.dims[std::size_t(loop)].size % made_.tensor == 0) return loop;
    return -1;
  }

  Failure check_deciding() {
    std::vector<char> expert_axes(axes_, 0);
    bool met_experts = false;
    for (const PlanOperator& planned : plan_.operators) {
      const Operator& op = op_of(planned);
      if (!decides(model(), op)) continue;
      const bool experts = of_experts(model(), op);
      for (std::size_t a = 0; a < axes_; ++a) {
        const int loop = planned.split.axis[a];
        const bool by_expert = experts && loop >= 0 && op.dims[std::size_t(loop)].name == DimName::expert;
        if (experts && !met_experts) expert_axes[a] = by_expert;
        if (experts && by_expert != (expert_axes[a] != 0))
          return refused(fmt::format("{} is {} over {} devices, and other experts are not so: {} has one way for all",
                                     op.name, found(planned, a), size(a), engine_));
        if (by_expert) continue;
        // Devices that share a sequence may also take whole samples to the experts that they all have.
        if (experts && uses_[a] == AxisUse::context && loop == loop_called(op, DimName::batch)) continue;
        const int want = wanted(planned.op, a);
        // Words that cannot be divided: the engine pads them, whatever the plan does instead.
        if (want < 0 && uses_[a] == AxisUse::tensor && by_words(planned.op) &&
            (loop < 0 || loop == loop_called(op, DimName::sequence)))
          continue;
        if (loop != want) return mislaid(planned, a, want);
      }
      if (!made_.split_by_weight.valid() && made_.tensor > 1 && splits_tensor(planned))
        made_.split_by_weight = planned.op;
      if (by_words(planned.op) && made_.tensor > 1 && wanted(planned.op, last_tensor_axis()) < 0)
        made_.words_whole = true;
      met_experts = met_experts || experts;
    }
    return name_experts(expert_axes, met_experts);
  }

  std::size_t last_tensor_axis() const {
    return std::size_t(std::find(uses_.rbegin(), uses_.rend(), AxisUse::tensor).base() - uses_.begin()) - 1;
  }
  bool splits_tensor(const PlanOperator& op) const {
    for (std::size_t a = 0; a < axes_; ++a)
      if (uses_[a] == AxisUse::tensor && op.split.axis[a] >= 0) return true;
    return false;
  }

  Failure mislaid(const PlanOperator& planned, std::size_t axis, int want) const {
    const Operator& op = op_of(planned);
    std::int64_t ways = 1;
    for (std::size_t a = 0; a < axes_; ++a)
      if (uses_[a] == uses_[axis] && planned.split.axis[a] == planned.split.axis[axis]) ways *= size(a);
    return refused(fmt::format("{} is {} over {} devices, where {} has it {}", op.name, found(planned, axis), ways,
                               engine_, to_string(parallel_of(model(), op, want))));
  }

  // Experts take the innermost devices besides those that share an expert's matrices.
  Failure name_experts(const std::vector<char>& by_expert, bool met) {
    if (!met) return std::nullopt;
    bool outside = false;
    for (std::size_t a = axes_; a-- > 0;) {
      if (uses_[a] == AxisUse::stage) continue;
      if (uses_[a] == AxisUse::tensor && !by_expert[a]) {
        made_.expert_tensor *= size(a);
        if (made_.expert > 1) return refused(experts_lie("inside the devices that share an expert"));
      } else if (!by_expert[a]) {
        outside = true;
      } else if (outside) {
        return refused(experts_lie("further apart than devices with the same experts"));
      } else {
        made_.expert *= size(a);
      }
    }
    expert_axes_ = by_expert;
    if (made_.context > 1)
      made_.otherwise.push_back(fmt::format(
          "where samples meet experts, devices that share a sequence bring its tokens together in the plan; {} sends "
          "each token from where it lies",
          engine_));
    return std::nullopt;
  }
  std::string experts_lie(const char* how) const {
    for (const PlanOperator& op : plan_.operators)
      if (of_experts(model(), op_of(op)))
        return fmt::format("{} has its experts on devices that lie {}: {} has them the other way round", op_of(op).name,
                           how, engine_);
    return {};
  }

  // Sums, norms and losses: counted, not refused.
  void look_at_others() {
    double by_sequence = 0, norms = 0;
    if (made_.tensor > 1) {
      const std::size_t axis = last_tensor_axis();
      for (const PlanOperator& planned : plan_.operators) {
        const Operator& op = op_of(planned);
        const int sequence = loop_called(op, DimName::sequence);
        if (op.kind != OperatorKind::normalisation || sequence < 0) continue;
        ++norms, by_sequence += planned.split.axis[axis] == sequence;
      }
    }
    made_.sequence_parallel = norms > 0 && by_sequence > norms / 2;
    int count = 0, all = 0;
    std::string first;
    for (const PlanOperator& planned : plan_.operators) {
      const Operator& op = op_of(planned);
      if (decides(model(), op) || op.kind == OperatorKind::input || op.is_view()) continue;
      ++all;
      for (std::size_t a = 0; a < axes_; ++a) {
        if (lies_well(planned, a)) continue;
        if (count++ == 0)
          first = fmt::format("{} first, which is {} over {} devices", op.name, found(planned, a), size(a));
        break;
      }
    }
    if (count > 0)
      made_.otherwise.push_back(
          fmt::format("{} of the {} operators besides products, look-ups and attentions lie otherwise in the plan than "
                      "with {}: {}",
                      count, all, engine_, first));
  }

  // A learned table with a row for each position goes with the sequence here, and with the weights in engines.
  void look_at_positions() {
    for (const PlanOperator& planned : plan_.operators) {
      const Operator& op = op_of(planned);
      const bool table = std::ranges::any_of(op.inputs, [&](const Access& access) {
        const Tensor& tensor = model().tensors[access.tensor];
        return tensor.role == TensorRole::parameter &&
               std::ranges::find(tensor.dims, DimName::sequence) != tensor.dims.end();
      });
      for (std::size_t a = 0; table && a < axes_; ++a) {
        const int loop = planned.split.axis[a];
        if (uses_[a] != AxisUse::context || loop < 0 || op.dims[std::size_t(loop)].name != DimName::sequence) continue;
        made_.otherwise.push_back(
            fmt::format("{}: of its table of positions a device has the rows of its part of the sequence in the plan; "
                        "with {} it has all of them, whose gradients are summed",
                        op.name, engine_));
        return;
      }
    }
  }

  bool lies_well(const PlanOperator& planned, std::size_t axis) const {
    const Operator& op = op_of(planned);
    const int loop = planned.split.axis[axis];
    // Routing goes with the experts.
    if (!expert_axes_.empty() && expert_axes_[axis] && loop_called(op, DimName::expert) >= 0)
      return loop < 0 || loop == loop_called(op, DimName::expert) || loop == loop_called(op, DimName::batch);
    int want = wanted(planned.op, axis);
    if (uses_[axis] == AxisUse::tensor && want < 0) {
      const bool loss = op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics;
      if (loss && made_.words_whole) return true;  // said once, of the vocabulary
      if (loss) return loop < 0 || op.dims[std::size_t(loop)].name == DimName::vocabulary;
      if (made_.sequence_parallel) want = loop_called(op, DimName::sequence);
      if (want >= 0 && op.dims[std::size_t(want)].size % made_.tensor != 0) want = -1;
    }
    if (loop >= 0 && uses_[axis] == AxisUse::tensor && use_of(model(), op, loop) == AxisUse::tensor && want < 0 &&
        op.dims[std::size_t(loop)].name == DimName::vocabulary)
      return true;
    return loop == want;
  }

  // As many layers for each run as lie in it.
  Failure name_runs() {
    if (made_.stages == 1) return std::nullopt;
    if (!made_.roles)
      return refused(fmt::format("the plan has {} stages, which {} cuts between the layers of a transformer, and {}",
                                 made_.stages, engine_, made_.no_roles));
    const TransformerRoles& roles = *made_.roles;
    std::vector<int> run_of_layer(std::size_t(roles.layers), -1);
    const int last = plan_.pipeline->runs() - 1;
    for (const PlanOperator& planned : plan_.operators) {
      const int layer = roles.layer_of[planned.op.index], run = plan_.pipeline->run_of(planned);
      const bool inside = layer >= 0 && layer < roles.layers;
      int& known = inside ? run_of_layer[std::size_t(layer)] : (layer < 0 ? before_ : behind_);
      if (known < 0) known = run;
      if (known != run || (!inside && run != (layer < 0 ? 0 : last)))
        return refused(fmt::format("{} lies in stage {}, and its layer does not: {} cuts stages between layers",
                                   op_of(planned).name, planned.stage, engine_));
    }
    made_.layers.assign(std::size_t(last) + 1, 0);
    for (std::size_t l = 0; l < run_of_layer.size(); ++l) {
      if (l > 0 && run_of_layer[l] < run_of_layer[l - 1])
        return refused(fmt::format("layer {} lies in an earlier stage than the layer before it", l));
      ++made_.layers[std::size_t(run_of_layer[l])];
    }
    return std::nullopt;
  }

  std::uint32_t mask_of(AxisUse one, AxisUse other) const {
    std::uint32_t mask = 0;
    for (std::size_t a = 0; a < axes_; ++a)
      if (uses_[a] == one || uses_[a] == other) mask |= 1u << a;
    return mask;
  }

  Failure name_updates() {
    const std::uint32_t alike = mask_of(AxisUse::data, AxisUse::context);
    if (plan_.mesh.size_of(alike) == 1) return name_offload();
    const PlanOperator* first = nullptr;
    std::uint32_t among = 0;
    for (const PlanOperator& op : plan_.operators) {
      if (op.parameters.empty()) continue;
      std::uint32_t own = 0;  // axes that split its weights already
      for (std::size_t a = 0; a < axes_; ++a)
        if (of_experts(model(), op_of(op)) && !expert_axes_.empty() && expert_axes_[a]) own |= 1u << a;
      if (plan_.mesh.size_of(alike & ~own) == 1) continue;
      const Update update = op.choice.update;
      const std::uint32_t shards = update == Update::replicated ? 0 : op.choice.update_axes & alike;
      if (!first) first = &op, among = shards;
      if (update != first->choice.update || (shards & ~own) != (among & ~own) ||
          op.choice.gathers_first() != first->choice.gathers_first())
        return refused(fmt::format("{} has its update {} and {} {}: {} has one way for all", op_of(*first).name,
                                   in_words(*first), op_of(op).name, in_words(op), engine_));
    }
    if (!first || among == 0) return name_offload();
    made_.shard_ways = plan_.mesh.size_of(among);
    for (std::uint32_t axis = 0, inner = 0; axis < axes_; ++axis) {
      inner = inner || (among >> axis & 1u);
      if (inner && (alike >> axis & 1u) && !(among >> axis & 1u))
        return refused(fmt::format("{} has its update {}, devices that do not lie side by side", op_of(*first).name,
                                   in_words(*first)));
    }
    made_.gather_first = first->choice.gathers_first();
    if (made_.gather_first && first->choice.gather == WeightGather::before_forward_bf16)
      made_.otherwise.push_back("weights that products alone read are gathered in 2 bytes by the plan, in 4 there");
    if (first->choice.tiles) made_.otherwise.push_back("shards are whole tiles of a TPU in the plan, and flat there");
    made_.zero = first->choice.update == Update::sharded_state ? 1 : first->choice.update == Update::sharded ? 2 : 3;
    return name_offload();
  }

  std::string in_words(const PlanOperator& op) const {
    const std::string words = describe(plan_.mesh, {op.choice.update, op.choice.update_axes, false, false, false});
    return words.empty() ? "made by every holder" : fmt::format("sharded ({})", words);
  }

  Failure name_offload() {
    const PlanOperator *with = nullptr, *without = nullptr;
    for (const PlanOperator& op : plan_.operators)
      if (!op.parameters.empty()) (op.choice.offload ? with : without) = &op;
    if (with && without)
      return refused(
          fmt::format("the optimizer state of {} lives with the host and that of {} does not: {} has one "
                      "way for all",
                      op_of(*with).name, op_of(*without).name, engine_));
    made_.offload = with != nullptr;
    return std::nullopt;
  }

  static bool is_read_in_backward(const TensorUses& uses, OperatorId op) {
    return uses.run_again[op.index] != RunAgain::never && std::ranges::any_of(uses.flows, [&](const TensorFlow& flow) {
             return flow.producer == op && (flow.producer_saves || flow.any_consumer_saves());
           });
  }

  Failure name_again() {
    if (plan_.pipeline && plan_.pipeline->recompute)
      made_.again = plan_.pipeline->selective ? RunsAgain::cores : RunsAgain::layers;
    const auto chooses = [](const PlanOperator& op) { return op.choice.recompute; };
    const auto one = std::ranges::find_if(plan_.operators, chooses);
    if (one == plan_.operators.end()) return std::nullopt;
    const std::vector<char> selective = made_.roles ? selective_operators(model(), *made_.roles) : std::vector<char>();
    const TensorUses uses = analyse_tensor_uses(model());
    for (const PlanOperator& op : plan_.operators) {
      const bool would = !selective.empty() && selective[op.op.index];
      // What no backward reads, nobody makes again.
      if (op.choice.recompute == would || (would && !is_read_in_backward(uses, op.op))) continue;
      return refused(fmt::format(
          "{} {} in backward: {} has whole layers, parts of every layer, or nothing", op_of(would ? *one : op).name,
          would ? fmt::format("runs again and {} does not", op_of(op).name) : "runs again", engine_));
    }
    if (made_.again != RunsAgain::nothing)
      return refused(fmt::format("{} runs again by itself, and layers or cores do besides", op_of(*one).name));
    made_.again = RunsAgain::operators;
    return std::nullopt;
  }

  const Plan& plan_;
  const std::string engine_;
  const std::size_t axes_;
  EngineSettings made_;
  std::vector<AxisUse> uses_;      ///< [axis]
  std::vector<char> expert_axes_;  ///< [axis]: experts lie along it; empty: there are none
  int before_ = -1, behind_ = -1;  ///< runs of what stands before and behind the layers
};

}  // namespace

Expected<EngineSettings> read_engine_settings(const Scenario& scenario, const Plan& plan, std::string_view engine) {
  return PlanAsSettings(scenario, plan, engine).run();
}

}  // namespace turnpoint
