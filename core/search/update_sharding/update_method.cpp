// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/update_method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "core/cost/collectives.h"
#include "core/cost/tensor_use.h"
#include "core/plan/beyond_switches.h"
#include "core/plan/one_plan.h"
#include "core/plan/one_stage.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/restricted.h"
#include "core/search/method/moved_by_hand.h"
#include "core/search/method/notes.h"
#include "core/search/method/ratio_result.h"
#include "core/search/update_sharding/decision.h"
#include "core/search/update_sharding/decision_words.h"
#include "core/search/update_sharding/planned_updates.h"
#include "core/search/update_sharding/ratio_plan_updates.h"
#include "core/search/update_sharding/training_program.h"

namespace turnpoint::search {

namespace {

using namespace update_sharding;

constexpr double kMasterBytes = 4;  // of a weight as it is updated
constexpr double kMostSteps = 1e9;  // more than any training has
constexpr std::string_view kOther = "of", kNoOther = "none", kNever[] = {"never"};

const std::vector<OptionRecord>& update_sharding_options() {
  const auto every = [](std::string_view key, std::string_view text, std::string_view help) {
    return OptionRecord{key, text, "steps", OptionType::integer, 0, 0, kMostSteps, kNever, help};
  };
  static const std::vector<OptionRecord> kOptions = {
      every("checkpoint", "Checkpoint every",
            "Steps between checkpoints, which need weights and optimizer state whole"),
      every("summary", "Summary every", "Steps between summaries, which need the weights whole"),
      every("evaluation", "Evaluation every", "Steps between evaluations, which read the weights"),
  };
  return kOptions;
}

/// What may stand behind "of=": first the word for nothing, which leaves data parallelism.
struct Others {
  explicit Others(OtherMethods other_methods) : methods(std::move(other_methods)) {
    methods.names.insert(methods.names.begin(), std::string(kNoOther));
    words.assign(methods.names.begin(), methods.names.end());
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

  OtherMethods methods;
  std::vector<std::string_view> words;  ///< views of its names
};

/// All that the method takes, for those who offer it in boxes and lists; `others` must outlive them.
std::vector<OptionRecord> offered_options(const Others& others) {
  std::vector<OptionRecord> options = {
      {kOther, "On the splits of", "", OptionType::choice, 0, 0, double(others.words.size()) - 1, others.words,
       "The method whose fastest plan has its updates sharded; none: data parallelism"}};
  options.insert(options.end(), update_sharding_options().begin(), update_sharding_options().end());
  return options;
}

/// All numbers of replicas that axes of the mesh make up, of those of each number and level the nearest: as `ft` offers
/// them, and as a plan can say.
std::vector<ShardGroups> groups_of(const Mesh& mesh) {
  const int replicas = mesh.devices();
  const std::uint32_t all = (1u << mesh.count()) - 1;
  std::vector<ShardGroups> groups;
  for (const std::uint32_t axes : sharing_groups(mesh, all, all))
    groups.push_back({axes == all ? ShardGroups::Way::all : ShardGroups::Way::rows, replicas,
                      static_cast<int>(mesh.size_of(axes)), axes, all & ~axes});
  if (groups.empty()) groups.push_back({ShardGroups::Way::whole, replicas, 1});
  return groups;
}

DecisionOptions options_of(const Scenario& scenario, const Mesh& mesh, const CollectiveModel& collectives) {
  const Settings& settings = scenario.settings;
  const DeviceType& device = scenario.cluster->device;
  DecisionOptions options;
  options.memory_bandwidth = device.memory_bandwidth * device.memory_efficiency * settings.factors.device_speed;
  options.groups = groups_of(mesh);
  options.price = [&collectives, &mesh](Collective kind, ReplicaSet set, double bytes) {
    return collectives.time(kind, mesh.group(set.axes ? set.axes : (1u << mesh.count()) - 1), bytes).value;
  };
  // What TPUs hold lies in tiles.
  options.layout = scenario.cluster->library == Library::torus ? ShardLayout::reshape_and_pad : ShardLayout::flat;
  options.bucket_bytes = scenario.by_library() ? static_cast<double>(settings.bucket_bytes) : 0;
  // What a plan's update gathers has the precision in which weights are read.
  options.half_products = false;
  return options;
}

TrainingPrecision precision_of(const Settings& settings) {
  TrainingPrecision precision;
  const bool half = settings.precision != Precision::fp32;
  precision.read_weights = half ? 2 : 4;
  precision.gradients = half && settings.gradients == Gradients::as_weights ? 2 : 4;
  precision.auxiliaries = settings.optimizer_state == OptimizerState::bf16 ? 2 : 4;
  return precision;
}

/// What is found of `scenario` in this space, named and told.
Expected<ResultPtr> result_in(const ScenarioPtr& scenario, const SearchSpace& space, ReshardingModel::Ways ways,
                              const std::string& parameters, std::string explanation, std::vector<WeightUpdate> weights,
                              const RunContext& context) {
  const auto result = fastest_with("update-sharding", scenario, space, ways, context);
  if (!result) return result;
  auto named = std::make_shared<Result>(**result);
  named->method_options = parameters;
  if (!explanation.empty()) named->explanations.push_back(std::move(explanation));
  named->weights = std::move(weights);
  named->whole_updates = with_whole_updates(*scenario, named->plans->sharding(0)).cost;
  return ResultPtr(named);
}

std::string count_of(const std::vector<WeightUpdate>& weights) {
  const auto sharded = std::count_if(weights.begin(), weights.end(), [](const auto& one) { return one.sharded(); });
  return fmt::format("The update of {} of {} weights is sharded", sharded, weights.size());
}

/// One point, of a plan that updates were given to.
Expected<ResultPtr> answer_with(const ScenarioPtr& scenario, const Scenario& one_stage, Plan plan) {
  if (plan.pipeline) return pipeline_anew(scenario, one_stage, plan);
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->exact = true;
  result->gap = 0;
  ResultPoint point;
  point.memory_bytes = plan.cost.memory_bytes();
  point.time_s = plan.cost.time_s(), point.compute_s = plan.cost.compute_s(), point.network_s = plan.cost.network_s();
  point.fits = point.memory_bytes <= scenario->memory_limit();
  result->points.push_back(point);
  result->plans = std::make_shared<GivenPlan>(std::move(plan));
  return ResultPtr(std::move(result));
}

/// A ratio plan with parts moved by hand, its updates decided for what that makes. `plan`: with cuts numbered as those
/// of updates_on() are, whatever its updates are.
struct MovedUpdates {
  RatioPlan splits;  ///< updates whole
  RatioPlanUpdates updates;
};
Expected<MovedUpdates> moved_updates(const Scenario& scenario, const RatioPlan& plan, const RatioMoves& moves,
                                     const TrainingLoop& loop, const RunContext& context) {
  auto splits = numbered_as_updated(scenario, plan);
  if (!splits) return splits.error();
  if (!moves.empty()) splits = with_moves(scenario, *splits, moves);
  if (!splits) return splits.error();
  auto updates = updates_on(scenario, *splits, loop, context);
  if (!updates) return updates.error();
  return MovedUpdates{std::move(*splits), std::move(*updates)};
}

/// On the splits of another method's fastest plan. Whatever that plan does beside its updates stays as it is.
class UpdateShardingOf : public Searcher {
 public:
  UpdateShardingOf(std::string of, std::unique_ptr<Searcher> searcher, TrainingLoop loop, RatioMoves moves,
                   std::string parameters)
      : of_(std::move(of)),
        searcher_(std::move(searcher)),
        loop_(loop),
        moves_(std::move(moves)),
        parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    const auto found = searcher_->run(scenario, pass, context);
    if (!found) return found;
    const Result& result = **found;
    if (result.points.empty() || !result.plans) return refuse("has no plan here whose updates could be sharded");
    const AnyPlan any = result.plans->plan(result.fastest_that_fits().value_or(result.points.size() - 1));
    auto answer = visit_plan(
        any, [&](const Plan& plan) { return sharded(scenario, plan); },
        [&](const RatioPlan& plan) { return sharded(scenario, plan, context); },
        [&](const PlacementPlan&) -> Expected<std::shared_ptr<Result>> {
          return refuse("places operators, whose weights have no replicas");
        });
    if (!answer) return answer.error();
    auto named = std::make_shared<Result>(**answer);
    named->method = "update-sharding";
    named->method_options = parameters_;
    named->notes = told_once(result, std::move(named->notes));
    find_marks(*named);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    named->search_s = elapsed.count();
    return ResultPtr(std::move(named));
  }

 private:
  /// The other method's notes before those of the plan with its updates given. Of what goes beyond the scenario's
  /// switches whoever asked for this method speaks, of both at once.
  static std::vector<std::string> told_once(const Result& other, std::vector<std::string> own) {
    const std::string beyond = beyond_switches_note(other);
    std::vector<std::string> notes;
    for (const std::string& note : other.notes)
      if (note != beyond && std::find(own.begin(), own.end(), note) == own.end()) notes.push_back(note);
    notes.insert(notes.end(), own.begin(), own.end());
    return notes;
  }

  Error refuse(std::string_view why) const { return bad_input(fmt::format("'{}' {}", of_, why), "update-sharding"); }

  Expected<std::shared_ptr<Result>> sharded(const ScenarioPtr& scenario, const Plan& plan) const {
    if (!moves_.empty()) return refuse("has no parts of unlike size here that could be moved");
    ScenarioPtr stage = scenario;
    Plan splits = plan;
    std::string_view pipeline_words;
    if (plan.pipeline) {
      const auto one_stage = one_stage_of(*scenario, plan.pipeline->stages, plan.pipeline->micro_batches);
      if (!one_stage) return one_stage.error();
      auto alone = on_one_stage(plan, make_mesh(*(*one_stage)->cluster), plan.pipeline->stages);
      if (!alone) return alone.error();
      stage = *one_stage;
      splits = std::move(*alone);
      if (plan.pipeline->stages > 1)
        pipeline_words = " The devices of one stage share out its weights; the step ends with its slowest stage.";
    }
    const auto before = answer_with(scenario, *stage, with_whole_updates(*stage, splits));
    if (!before) return before.error();
    PlannedUpdates updates = updates_on(*stage, splits, loop_);
    auto answer = answer_with(scenario, *stage, with_choices(*stage, splits, updates.choices));
    if (!answer) return answer.error();
    auto told = std::make_shared<Result>(**answer);
    const bool shards_gradients = std::any_of(updates.choices.begin(), updates.choices.end(),
                                              [](const auto& one) { return one.update == Update::sharded; });
    const CostBreakdown whole = (*before)->plans->sharding(0).cost;
    std::string held = words_of_held(updates.held, "One device", shards_gradients);
    if (!pipeline_words.empty()) {
      const auto zero = held_by_zero(scenario, *stage, splits, updates.choices);
      if (!zero) return zero.error();
      held = words_of_fullest(told->plans->sharding(0).cost, whole, *zero);
    }
    told->explanations.push_back(fmt::format("{} on the splits of the fastest plan of '{}'.{} {}",
                                             count_of(updates.weights), of_, pipeline_words, held));
    told->weights = std::move(updates.weights);
    told->whole_updates = whole;
    return told;
  }

  Expected<std::shared_ptr<Result>> sharded(const ScenarioPtr& scenario, const RatioPlan& plan,
                                            const RunContext& context) const {
    auto made = moved_updates(*scenario, plan, moves_, loop_, context);
    if (!made) return made.error();
    auto told = result_of(scenario, std::move(made->updates.plan));
    std::string by_hand;
    if (!moves_.empty()) {
      const auto found = numbered_as_updated(*scenario, plan);
      by_hand = fmt::format(" with parts moved by hand, for which updates are decided anew ({})",
                            fmt::join(describe_moves(*scenario, *found, moves_), "; "));
    }
    told->explanations.push_back(fmt::format(
        "{} on the splits of the fastest plan of '{}'{}. The devices of both halves of a cut share out a weight's "
        "update where they hold it alike. {}",
        count_of(made->updates.weights), of_, by_hand,
        words_of_fullest(made->updates.plan.cost, made->splits.cost, made->updates.zero)));
    told->weights = std::move(made->updates.weights);
    told->whole_updates = moves_.empty() ? plan.cost : made->splits.cost;
    return told;
  }

  /// What the fullest device holds where weights are held as ZeRO's stages 1 to 3 have it, over all devices of a stage
  /// of the pipeline that hold the same of a weight.
  static Expected<std::array<std::int64_t, 3>> held_by_zero(const ScenarioPtr& scenario, const Scenario& stage,
                                                            const Plan& splits, std::vector<MemoryChoice> choices) {
    std::array<std::int64_t, 3> bytes{};
    for (const Update update : {Update::sharded_state, Update::sharded, Update::sharded_weights}) {
      for (MemoryChoice& choice : choices) {
        choice.update = update, choice.whole_rows = false;
        choice.update_axes = (1u << splits.mesh.count()) - 1;
      }
      const auto answer = answer_with(scenario, stage, with_choices(stage, splits, choices));
      if (!answer) return answer.error();
      bytes[update == Update::sharded_state ? 0
            : update == Update::sharded     ? 1
                                            : 2] = held_on((*answer)->plans->sharding(0).cost);
    }
    return bytes;
  }

  std::string of_;
  std::unique_ptr<Searcher> searcher_;
  TrainingLoop loop_;
  RatioMoves moves_;  ///< of the parts of its plan, where that is a ratio plan
  std::string parameters_;
};

class UpdateSharding : public Searcher {
 public:
  UpdateSharding(TrainingLoop loop, std::string parameters) : loop_(loop), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const CollectiveModel collectives = collectives_of(*scenario);
    const auto program = training_program_of(*scenario->model, scenario->settings.optimizer, loop_,
                                             scenario->cluster->devices(), precision_of(scenario->settings));
    if (!program) return program.error();
    const Mesh mesh = make_mesh(*scenario->cluster);
    const auto decisions = decide_updates(*program, options_of(*scenario, mesh, collectives));
    if (!decisions) return decisions.error();
    if (context.cancelled()) return cancelled_error();
    SearchSpace space;
    space.only = [](OperatorId, const Operator& op, const Mesh& on) {
      return std::vector<Configuration>{data_parallel_configuration(op, on)};
    };
    space.choices = choices_of(*scenario->model, decisions->weights);
    std::vector<WeightUpdate> weights;
    for (const WeightDecision& one : decisions->weights) weights.push_back(told(one, program->replicas));
    std::string note = note_of(weights);
    if (!note.empty())
      note += ' ' + held_by(decisions->weights, program->replicas, precision_of(scenario->settings).read_weights);
    return result_in(scenario, space, ReshardingModel::Ways::fewest, parameters_, std::move(note), std::move(weights),
                     context);
  }

 private:
  /// An operator's parameters are updated together: as the largest of them is to be.
  static std::vector<MemoryChoice> choices_of(const Model& model, const std::vector<WeightDecision>& decisions) {
    const TensorUses uses = analyse_tensor_uses(model);
    std::map<std::string, std::uint32_t> axes_of;
    for (const WeightDecision& one : decisions)
      axes_of[one.weight] = one.chosen.sharded() ? one.chosen.groups.row_axes : 0;
    std::vector<MemoryChoice> choices(model.operators.size());
    for (std::size_t o = 0; o < choices.size(); ++o) {
      const Operator& op = model.operators[OperatorId(o)];
      std::int64_t largest = 0;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const Tensor& tensor = model.tensors[op.inputs[k].tensor];
        const auto found = axes_of.find(tensor.name);
        if (!uses.owns_parameter[o][k] || found == axes_of.end() || tensor.elements() <= largest) continue;
        largest = tensor.elements();
        choices[o].update = found->second ? Update::sharded : Update::replicated;
        choices[o].update_axes = found->second;
      }
    }
    return choices;
  }

  static UpdateSeconds seconds_of(const UpdateChoice& choice) {
    return {choice.time.reduce_s, choice.time.update_s + choice.sums_s, choice.time.gather_s + choice.gathers_s};
  }

  static WeightUpdate told(const WeightDecision& decision, int replicas) {
    WeightUpdate made;
    made.weight = decision.weight, made.reason = decision.reason;
    made.replicas = replicas;
    made.shards = decision.chosen.groups.shards();
    made.padding = decision.chosen.format.padding();
    made.gather_bytes = decision.chosen.gather_element_bytes;
    made.whole = seconds_of(decision.replicated), made.chosen = seconds_of(decision.chosen);
    return made;
  }

  static std::string note_of(const std::vector<WeightUpdate>& weights) {
    if (weights.empty()) return {};
    const WeightUpdate& longest = *std::max_element(
        weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a.whole.total() < b.whole.total(); });
    return fmt::format("{}. '{}' is {}.", count_of(weights), longest.weight, longest.reason);
  }

  /// What a replica holds in the loop and outside it, beside ZeRO's stages; weights are read in so many bytes each.
  static std::string held_by(const std::vector<WeightDecision>& decisions, int replicas, int read_bytes) {
    HeldBytes held;
    bool any = false;
    for (const WeightDecision& one : decisions) {
      UpdateBytes bytes = one.bytes;
      bytes.gathered = bytes.weight / kMasterBytes * read_bytes;
      held.add(bytes, one.chosen.groups.shards(), replicas);
      any = any || one.chosen.sharded();
    }
    return words_of_held(held, "One replica", any);
  }

  TrainingLoop loop_;
  std::string parameters_;
};

/// Its parameters by whose they are.
struct Asked {
  std::string of;              ///< METHOD of "of=METHOD"; empty: data parallelism
  std::string own, of_method;  ///< joined by colons
};

Asked take_apart(std::string_view text) {
  const std::string of = std::string(kOther) + '=';
  Asked asked;
  std::vector<std::string_view> rest, own;
  for (const std::string_view part : split(text, ':'))
    if (part.starts_with(of))
      asked.of = part.substr(of.size()) == kNoOther ? std::string_view() : part.substr(of.size());
    else
      rest.push_back(part);
  const auto& options = update_sharding_options();
  const auto is_own = [&](std::string_view part) {
    return asked.of.empty() || std::any_of(options.begin(), options.end(), [&](const OptionRecord& option) {
             return part.starts_with(option.key) && part.substr(option.key.size()).starts_with('=');
           });
  };
  const auto others = std::stable_partition(rest.begin(), rest.end(), is_own);
  asked.own = fmt::format("{}", fmt::join(rest.begin(), others, ":"));
  asked.of_method = fmt::format("{}", fmt::join(others, rest.end(), ":"));
  return asked;
}

Expected<TrainingLoop> loop_of(const Asked& asked) {
  const auto parameters = read_parameters("method update-sharding", update_sharding_options(), asked.own);
  if (!parameters) return parameters.error();
  TrainingLoop loop;
  loop.checkpoint_every = parameters->integer("checkpoint");
  loop.summary_every = parameters->integer("summary");
  loop.evaluation_every = parameters->integer("evaluation");
  return loop;
}

Expected<std::unique_ptr<Searcher>> make_update_sharding(const OtherMethods& others, std::string_view text) {
  const Asked asked = take_apart(text);
  const auto loop = loop_of(asked);
  if (!loop) return loop.error();
  if (asked.of.empty()) return with_batch_note(std::make_unique<UpdateSharding>(*loop, std::string(text)));
  // The other method says whether parts of its plan can be moved; they are moved here, since updates follow.
  auto searcher = others.searcher(asked.of, asked.of_method);
  if (!searcher) return searcher.error();
  auto by_hand = take_by_hand(asked.of, asked.of_method);
  if (!by_hand) return by_hand.error();
  if (!by_hand->moves.empty()) searcher = others.searcher(asked.of, by_hand->others);
  if (!searcher) return searcher.error();
  const std::string told = by_hand->others.empty() ? asked.of : asked.of + ':' + by_hand->others;
  return std::unique_ptr<Searcher>(std::make_unique<UpdateShardingOf>(told, std::move(*searcher), *loop,
                                                                      std::move(by_hand->moves), std::string(text)));
}

Expected<RatioPlan> moved_with_updates(const Scenario& scenario, std::string_view text, const RatioPlan& plan,
                                       const RatioMoves& moves, const RunContext& context) {
  const auto loop = loop_of(take_apart(text));
  if (!loop) return loop.error();
  auto made = moved_updates(scenario, plan, moves, *loop, context);
  if (!made) return made.error();
  return std::move(made->updates.plan);
}

std::string update_sharding_refuses(const OtherMethods& others, const Scenario& scenario, std::string_view text) {
  const Asked asked = take_apart(text);
  const auto parameters = read_parameters("method update-sharding", update_sharding_options(), asked.own);
  if (!parameters) return parameters.error().what;
  if (asked.of.empty()) return {};
  return others.refusal(asked.of, asked.of_method, scenario);
}

}  // namespace

Method update_sharding_method(OtherMethods others) {
  // Holds the names that its options speak of.
  const auto choices = std::make_shared<const Others>(std::move(others));
  return {
      .name = "update-sharding",
      .title = "Update sharding",
      .paper = "Xu et al., arXiv 2004.13336",
      .description = "Data-parallel, every weight's update whole or shared out among replicas by what takes least time",
      .parameter_words =
          "; of=METHOD: on the splits of that method's fastest plan, with METHOD's parameters behind it; checkpoint=N, "
          "summary=N, evaluation=N: steps between those",
      .options = offered_options(*choices),
      .other_method = kOther,
      .moved = &moved_with_updates,
      .make_with = [choices](std::string_view text) { return make_update_sharding(choices->methods, text); },
      .refuses_with = [choices](
                          const Scenario& scenario,
                          std::string_view text) { return update_sharding_refuses(choices->methods, scenario, text); },
      .traits =
          [choices](std::string_view text) {
            const Asked asked = take_apart(text);
            MethodTraits traits;
            if (!asked.of.empty()) traits = choices->methods.traits(asked.of, asked.of_method);
            traits.shards_updates = true;
            return traits;
          },
  };
}

}  // namespace turnpoint::search
