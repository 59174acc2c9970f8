// SPDX-License-Identifier: Apache-2.0
#include "core/plan/resemblance.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

#include "core/cost/operator_cost.h"
#include "core/model/operator_kind.h"
#include "core/plan/iteration_cost.h"

namespace turnpoint {

namespace {

/// What an axis can be of a plan: tensor parallel stands for all that cut weights or what follows from it.
enum class Family : std::uint8_t { none, data, context, spatial, expert, tensor };
constexpr std::size_t kFamilies = 6;
constexpr double kSplits = 0.1;  ///< of the time, by which an axis is more than repeated work

Family family_of(Parallel parallel) {
  switch (parallel) {
    case Parallel::none: return Family::none;
    case Parallel::data: return Family::data;
    case Parallel::context: return Family::context;
    case Parallel::spatial: return Family::spatial;
    case Parallel::expert: return Family::expert;
    default: return Family::tensor;
  }
}

Parallel by_name(DimName name) {
  switch (name) {
    case DimName::batch: return Parallel::data;
    case DimName::sequence:
    case DimName::key_sequence:
    case DimName::time: return Parallel::context;
    case DimName::depth:
    case DimName::height:
    case DimName::width:
    case DimName::window: return Parallel::spatial;
    case DimName::head:
    case DimName::head_channel: return Parallel::heads;
    case DimName::expert: return Parallel::expert;
    case DimName::vocabulary: return Parallel::vocabulary;
    default: return Parallel::channels;
  }
}

bool has_weight(const Model& model, const Operator& op) {
  if (!record_of(op.kind).products && op.kind != OperatorKind::embedding) return false;
  return std::ranges::any_of(
      op.inputs, [&](const Access& access) { return model.tensors[access.tensor].role == TensorRole::parameter; });
}

bool weight_walks(const Model& model, const Operator& op, std::uint8_t loop) {
  return std::ranges::any_of(op.inputs, [&](const Access& access) {
    return model.tensors[access.tensor].role == TensorRole::parameter &&
           std::ranges::any_of(access.walks,
                               [&](const auto& walk) { return std::ranges::find(walk, loop) != walk.end(); });
  });
}

/// Of a product: what it reads of tokens lies by expert. A router only makes scores of experts.
bool has_experts(const Model& model, const Operator& op) {
  if (!has_weight(model, op))
    return std::ranges::any_of(op.dims, [](const LoopDimension& dim) { return dim.name == DimName::expert; });
  return std::ranges::any_of(op.inputs, [&](const Access& access) {
    const Tensor& tensor = model.tensors[access.tensor];
    return tensor.role != TensorRole::parameter && std::ranges::find(tensor.dims, DimName::expert) != tensor.dims.end();
  });
}

/// Tensor groups repeat it.
bool is_router(const Model& model, const Operator& op) {
  const bool scores = std::ranges::any_of(op.dims, [](const LoopDimension& d) { return d.name == DimName::expert; });
  return scores && has_weight(model, op) && !has_experts(model, op);
}

/// Of ZeRO; 0: whole.
std::size_t zero_stage_of(Update update) {
  switch (update) {
    case Update::replicated: return 0;
    case Update::sharded_state: return 1;
    case Update::sharded: return 2;
    case Update::sharded_weights: return 3;
  }
  return 0;
}

class Reader {
 public:
  using AxisFlags = std::vector<char>;

  /// `cut_of_all`: of a part of the plan, the axes that the whole plan takes as tensor parallel; empty: it is the
  /// whole.
  Reader(const Plan& plan, const Model& model, std::vector<const PlanOperator*> part, AxisFlags cut_of_all)
      : plan_(plan),
        model_(model),
        axes_(std::size_t(plan.mesh.count())),
        part_(std::move(part)),
        cut_of_all_(std::move(cut_of_all)) {}

  Resemblance run() {
    count();
    settle_shards();
    Chosen chosen(part_.size(), 1);
    static_cast<Ways&>(made_) = take(chosen);
    if (const Ways rest = take(chosen); rest.share > Resemblance::kWorthSaying) made_.second = rest;
    return made_;
  }

  /// [axis]: most of this is tensor parallel along it.
  AxisFlags cut_axes() {
    count();
    AxisFlags cut;
    for (const Family family : strategy_of(Chosen(part_.size(), 1)).axes) cut.push_back(family == Family::tensor);
    return cut;
  }

 private:
  Family family(const PlanOperator& op, std::size_t axis) const {
    return family_of(parallel_of(model_, model_.operators[op.op], op.split.axis[axis]));
  }
  double seconds(const PlanOperator& op) const { return of_iteration(op, plan_.micro_batches()).compute_s(); }
  std::int64_t size(std::size_t axis) const { return plan_.mesh.axes[axis].size; }

  /// What else there is follows these, and is often as slow only because it is small.
  bool deciding(const Operator& op) const { return !has_products_ || sets_the_strategy(model_, op); }

  /// Of what the pipeline names to run again, the part has some.
  bool runs_again_here() const {
    const std::vector<int>& layer_of = plan_.pipeline->layer_of;
    if (cut_of_all_.empty() || layer_of.size() != plan_.operators.size()) return true;
    return std::ranges::any_of(part_, [&](const PlanOperator* op) { return layer_of[op->op.index] >= 0; });
  }

  void count() {
    made_ = {};
    made_.devices = plan_.mesh.devices();
    if (const auto& pipeline = plan_.pipeline) {
      made_.stages = pipeline->stages, made_.chunks = pipeline->chunks, made_.micro_batches = pipeline->micro_batches;
      const bool again = pipeline->recompute && runs_again_here();
      made_.layers_again = again && !pipeline->selective;
      made_.cores_again = again && pipeline->selective;
      made_.forwards_first = pipeline->forwards_first, made_.sums_behind = pipeline->sums_behind;
      made_.beside_products = pipeline->beside_products;
    }
    for (const PlanOperator* each : part_) {
      const PlanOperator& planned = *each;
      const Operator& op = model_.operators[planned.op];
      made_.recomputed += planned.choice.recompute;
      made_.offloaded += planned.choice.offload;
      if (!planned.parameters.empty()) {
        ++made_.weighted;
        if (const std::size_t stage = zero_stage_of(planned.choice.update)) ++made_.zero[stage];
        made_.gathered_first += planned.choice.gathers_first();
      }
      if (!sets_the_strategy(model_, op)) continue;
      count_shards(planned);
      has_products_ = has_products_ || seconds(planned) > 0;
      multiplies_ = multiplies_ || op.kind != OperatorKind::embedding;
      std::array<bool, kParallels> met{};
      for (std::size_t a = 0; a < axes_; ++a) met[std::size_t(parallel_of(model_, op, planned.split.axis[a]))] = true;
      for (std::size_t p = 1; p < met.size(); ++p) made_.operators[p] += met[p];
    }
  }

  void count_shards(const PlanOperator& planned) {
    const std::size_t stage = zero_stage_of(planned.choice.update);
    for (const ParameterSteps& steps : planned.parameters) {
      const std::uint32_t shards = steps.group.shards(planned.choice);
      if (shards == 0) continue;
      const std::int64_t copies = plan_.mesh.size_of(steps.group.partial & ~shards);
      if (met_shards_[stage] && made_.copies[stage] != copies) alike_[stage] = false;
      met_shards_[stage] = true, made_.copies[stage] = copies;
      made_.shards[stage] = std::max(made_.shards[stage], plan_.mesh.size_of(shards));
    }
  }
  /// Says nothing of groups that are not alike, nor of those that hold the only copy.
  void settle_shards() {
    for (std::size_t stage = 0; stage < made_.copies.size(); ++stage)
      if (!alike_[stage] || made_.copies[stage] == 1) made_.shards[stage] = made_.copies[stage] = 1;
  }

  struct Strategy {
    std::vector<Family> axes, of_experts;
    bool decided = false;  ///< by operators without experts
  };
  using Chosen = std::vector<char>;  ///< [operator of the part]

  static Family most(const std::array<double, kFamilies>& seconds) {
    const double split = std::accumulate(seconds.begin() + 1, seconds.end(), 0.0);
    if (!(split > kSplits * (split + seconds[0]))) return Family::none;
    return static_cast<Family>(std::max_element(seconds.begin() + 1, seconds.end()) - seconds.begin());
  }

  /// What most of these operators make of the axes.
  Strategy strategy_of(const Chosen& chosen) const {
    Strategy strategy;
    for (std::size_t a = 0; a < axes_; ++a) {
      std::array<double, kFamilies> all{}, experts{};
      for (std::size_t i = 0; i < part_.size(); ++i) {
        const PlanOperator& op = *part_[i];
        if (chosen[i] && deciding(model_.operators[op.op]))
          (has_experts(model_, model_.operators[op.op]) ? experts : all)[std::size_t(family(op, a))] += seconds(op);
      }
      strategy.axes.push_back(most(all)), strategy.of_experts.push_back(most(experts));
      strategy.decided = strategy.decided || std::accumulate(all.begin(), all.end(), 0.0) > 0;
    }
    // Of experts alone.
    if (!strategy.decided) strategy.axes = strategy.of_experts;
    return strategy;
  }

  /// What multiplies nothing, a norm or a look-up, lies by sequence along the axes of tensor-parallel layers beside it:
  /// that is no context parallelism.
  bool along_cut(std::size_t axis) const { return !multiplies_ && !cut_of_all_.empty() && cut_of_all_[axis]; }

  Ways ways_of(const Strategy& strategy, const Chosen& chosen) const {
    Ways ways;
    for (std::size_t a = 0; a < axes_; ++a) {
      if (strategy.of_experts[a] == Family::expert) ways.expert *= size(a);
      switch (strategy.axes[a]) {
        case Family::none: ways.repeated *= size(a); break;
        case Family::data: ways.data *= size(a); break;
        case Family::context: (along_cut(a) ? ways.tensor : ways.context) *= size(a); break;
        case Family::spatial: ways.spatial *= size(a); break;
        case Family::tensor: ways.tensor *= size(a); break;
        case Family::expert: break;
      }
    }
    // The axes along which stages lie are repeats.
    ways.repeated = std::max<std::int64_t>(1, ways.repeated / made_.stages);
    double norms = 0, by_sequence = 0;
    for (std::size_t i = 0; i < part_.size(); ++i) {
      const PlanOperator& op = *part_[i];
      for (std::size_t a = 0; a < axes_ && chosen[i]; ++a)
        if (strategy.axes[a] == Family::tensor && model_.operators[op.op].kind == OperatorKind::normalisation)
          norms += seconds(op), by_sequence += family(op, a) == Family::context ? seconds(op) : 0;
    }
    ways.sequence_parallel = norms > 0 && by_sequence > norms / 2;
    for (std::size_t a = 0; a < axes_; ++a)
      ways.sequence_parallel = ways.sequence_parallel || (strategy.axes[a] == Family::context && along_cut(a));
    return ways;
  }

  /// An operator without the batch, a table of positions, is the same on all devices.
  bool could(const Operator& op, Family role) const {
    for (std::size_t loop = 0; loop < op.dims.size(); ++loop)
      if (op.dims[loop].splittable && op.dims[loop].size > 1 &&
          family_of(parallel_of(model_, op, static_cast<int>(loop))) == role)
        return true;
    return false;
  }

  /// A product or look-up of a vocabulary that the tensor groups cannot divide: repeated on all their devices, or each
  /// with a part of the sequence.
  bool keeps_words_whole(const PlanOperator& planned, const Strategy& strategy) const {
    const Operator& op = model_.operators[planned.op];
    std::int64_t tensor = 1;
    for (std::size_t a = 0; a < axes_; ++a) {
      if (strategy.axes[a] != Family::tensor) continue;
      if (family(planned, a) != Family::none && family(planned, a) != Family::context) return false;
      tensor *= size(a);
    }
    return has_weight(model_, op) && std::ranges::any_of(op.dims, [&](const LoopDimension& dim) {
             return dim.name == DimName::vocabulary && dim.size % tensor != 0;
           });
  }

  bool follows(const PlanOperator& planned, const Strategy& strategy) const {
    const Operator& op = model_.operators[planned.op];
    const auto& roles = has_experts(model_, op) ? strategy.of_experts : strategy.axes;
    for (std::size_t a = 0; a < axes_; ++a) {
      const Family found = family(planned, a);
      if (found == roles[a] || (found == Family::none && !could(op, roles[a]))) continue;
      // Tokens on their way to experts or back lie as the experts, as all else, or as whole samples.
      if (has_experts(model_, op) && !sets_the_strategy(model_, op) &&
          (found == strategy.axes[a] || found == Family::data))
        continue;
      if (roles[a] == Family::tensor && keeps_words_whole(planned, strategy)) continue;
      const bool beside = roles[a] == Family::tensor && (!sets_the_strategy(model_, op) || is_router(model_, op));
      if (!beside || (found != Family::none && found != Family::context)) return false;
    }
    return true;
  }

  /// The strategy of those chosen, and its share of all computing. Who follows is chosen no more.
  Ways take(Chosen& chosen) const {
    const Strategy strategy = strategy_of(chosen);
    Ways ways = ways_of(strategy, chosen);
    double all = 0, following = 0, whole_words = 0;
    for (std::size_t i = 0; i < part_.size(); ++i) {
      const PlanOperator& op = *part_[i];
      all += seconds(op);
      if (!chosen[i] || !follows(op, strategy)) continue;
      following += seconds(op), chosen[i] = 0;
      if (keeps_words_whole(op, strategy)) whole_words += seconds(op);
      if (deciding(model_.operators[op.op])) note_cuts(op, strategy, ways);
    }
    if (all > 0) ways.share = following / all, ways.whole_words = whole_words / all;
    return ways;
  }

  void note_cuts(const PlanOperator& planned, const Strategy& strategy, Ways& ways) const {
    const Operator& op = model_.operators[planned.op];
    const auto& roles = has_experts(model_, op) ? strategy.of_experts : strategy.axes;
    for (std::size_t a = 0; a < axes_; ++a)
      if (roles[a] == Family::tensor && family(planned, a) == Family::tensor)
        ways.cuts[std::size_t(parallel_of(model_, op, planned.split.axis[a]))] = true;
  }

  const Plan& plan_;
  const Model& model_;
  const std::size_t axes_;
  const std::vector<const PlanOperator*> part_;
  const AxisFlags cut_of_all_;
  Resemblance made_;
  bool has_products_ = false, multiplies_ = false;
  std::array<bool, 4> met_shards_{}, alike_{true, true, true, true};
};

std::vector<const PlanOperator*> all_of(const Plan& plan) {
  std::vector<const PlanOperator*> all;
  all.reserve(plan.operators.size());
  for (const PlanOperator& op : plan.operators) all.push_back(&op);
  return all;
}

std::string operators_text(int count) { return count == 1 ? "1 operator" : fmt::format("{} operators", count); }

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string in_words(const Ways& ways, int stages) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 1) parts.push_back(fmt::format("{} {}", what, count));
  };
  add(stages, "pipeline parallel");
  add(ways.data, "data parallel");
  add(ways.tensor, "tensor parallel");
  if (ways.sequence_parallel && ways.tensor > 1) parts.back() += " with sequence parallelism";
  add(ways.context, "context parallel");
  add(ways.spatial, "spatially parallel");
  if (ways.repeated > 1) parts.push_back(fmt::format("{} devices that compute alike", ways.repeated));
  if (parts.empty()) return "everything on one device";
  const std::string experts = ways.expert > 1 ? fmt::format(", experts over {}", ways.expert) : std::string();
  const std::string words =
      ways.whole_words > Resemblance::kWorthSaying
          ? fmt::format(", the vocabulary whole on each device ({:.0f} % of the computing)", 100 * ways.whole_words)
          : std::string();
  return fmt::format("{}{}{}", fmt::join(parts, " \u00d7 "), experts, words);
}

}  // namespace

const char* to_string(Parallel parallel) {
  switch (parallel) {
    case Parallel::none: return "repeated";
    case Parallel::data: return "data parallel";
    case Parallel::context: return "context parallel";
    case Parallel::spatial: return "spatially parallel";
    case Parallel::expert: return "expert parallel";
    case Parallel::column: return "column parallel";
    case Parallel::row: return "row parallel";
    case Parallel::vocabulary: return "vocabulary parallel";
    case Parallel::heads: return "parallel by heads";
    case Parallel::channels: return "parallel by channels";
  }
  return "?";
}

Parallel parallel_of(const Model& model, const Operator& op, int loop) {
  if (loop < 0 || static_cast<std::size_t>(loop) >= op.dims.size()) return Parallel::none;
  const LoopDimension& dim = op.dims[static_cast<std::size_t>(loop)];
  if (!has_weight(model, op) || !weight_walks(model, op, static_cast<std::uint8_t>(loop)) ||
      dim.name == DimName::expert || dim.name == DimName::vocabulary)
    return by_name(dim.name);
  return dim.role == DimRole::reduction ? Parallel::row : Parallel::column;
}

bool sets_the_strategy(const Model& model, const Operator& op) {
  return has_weight(model, op) || op.kind == OperatorKind::attention;
}

Resemblance resemblance_of(const Plan& plan, const Model& model) { return Reader(plan, model, all_of(plan), {}).run(); }

std::vector<Resemblance> resemblances_of(const Plan& plan, const Model& model,
                                         const std::vector<std::vector<OperatorId>>& parts) {
  const auto cut = Reader(plan, model, all_of(plan), {}).cut_axes();
  std::vector<Resemblance> found;
  found.reserve(parts.size());
  for (const std::vector<OperatorId>& part : parts) {
    std::vector<const PlanOperator*> operators;
    operators.reserve(part.size());
    for (const OperatorId op : part) operators.push_back(&plan.operators[op.index]);
    found.push_back(Reader(plan, model, std::move(operators), cut).run());
  }
  return found;
}

std::string hybrid_words(std::int64_t shards, std::int64_t copies) {
  if (copies <= 1) return {};
  return fmt::format(" over {}, repeated {}", shards, copies == 2 ? "twice" : fmt::format("{} times", copies));
}

std::string describe(const Resemblance& plan) {
  std::string text;
  if (plan.named()) {
    text = capital(in_words(plan, plan.stages));
    if (plan.share < 0.995) text += fmt::format(", for {:.0f} % of the computing", 100 * plan.share);
    if (plan.second)
      text += fmt::format(", {} for {:.0f} %", in_words(*plan.second, plan.stages), 100 * plan.second->share);
  } else {
    text = "Resembles no named strategy";
  }
  if (plan.chunks > 1) text += fmt::format("; {} virtual stages on each device", plan.chunks);
  if (plan.micro_batches > 1) text += fmt::format("; {} micro-batches", plan.micro_batches);
  if (plan.forwards_first) text += ", all forward before the first goes backward";
  if (plan.beside_products) text += "; collectives of tensor groups beside products";
  constexpr const char* kSharded[] = {"", "optimizer state sharded (ZeRO-1)",
                                      "gradients and optimizer state sharded (ZeRO-2)", "weights sharded (ZeRO-3)"};
  for (std::size_t stage = 3; stage > 0; --stage) {
    if (plan.zero[stage] == 0) continue;
    text += fmt::format("; {}", kSharded[stage]);
    const std::string hybrid = hybrid_words(plan.shards[stage], plan.copies[stage]);
    if (plan.zero[stage] < plan.weighted)
      text +=
          fmt::format(" for {} of {}{}", plan.zero[stage], operators_text(plan.weighted), hybrid.empty() ? "" : ",");
    text += hybrid;
  }
  if (plan.gathered_first > 0) text += ", new weights gathered before the next forward";
  if (plan.sums_behind) text += "; gradients summed behind backward";
  if (plan.offloaded > 0) text += fmt::format("; optimizer state of {} at the host", operators_text(plan.offloaded));
  if (plan.layers_again) text += "; checkpointing of layers";
  if (plan.cores_again) text += "; checkpointing of attention cores";
  if (plan.recomputed > 0) text += fmt::format("; checkpointing in {}", operators_text(plan.recomputed));
  return text + ".";
}

std::string describe_products(const Resemblance& plan) {
  std::vector<std::string> parts;
  for (const Parallel parallel :
       {Parallel::column, Parallel::row, Parallel::vocabulary, Parallel::heads, Parallel::expert}) {
    const int count = plan.operators[static_cast<std::size_t>(parallel)];
    if (count == 0) continue;
    parts.push_back(
        fmt::format("{} in {}", to_string(parallel), parts.empty() ? operators_text(count) : std::to_string(count)));
  }
  if (parts.empty()) return {};
  return capital(fmt::format("{}", fmt::join(parts, ", "))) + ".";
}

}  // namespace turnpoint
