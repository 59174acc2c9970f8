// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/update_method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <optional>

#include "core/base/text.h"
#include "core/plan/beyond_switches.h"
#include "core/plan/one_plan.h"
#include "core/plan/one_stage.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/restricted.h"
#include "core/search/method/moved_by_hand.h"
#include "core/search/method/notes.h"
#include "core/search/method/ratio_result.h"
#include "core/search/update_sharding/data_parallel_updates.h"
#include "core/search/update_sharding/decision_words.h"
#include "core/search/update_sharding/planned_updates.h"
#include "core/search/update_sharding/ratio_plan_updates.h"

namespace turnpoint::search {

namespace {

using namespace update_sharding;

constexpr double kMostSteps = 1e9;  // more than any training has
constexpr std::string_view kOther = "of", kNoOther = "none", kAsSet[] = {"scenario"};
constexpr double kAsScenario = -1;

/// The loop around the step: what its parameters say goes before the scenario's settings.
struct AskedLoop {
  std::optional<std::int64_t> checkpoint, summary, evaluation;

  TrainingLoop within(const Settings& settings) const {
    TrainingLoop loop;
    loop.checkpoint_every = checkpoint.value_or(settings.checkpoint_every);
    loop.summary_every = summary.value_or(settings.summary_every);
    loop.evaluation_every = evaluation.value_or(settings.evaluation_every);
    return loop;
  }
};

const std::vector<OptionRecord>& update_sharding_options() {
  const auto every = [](std::string_view key, std::string_view text, std::string_view help) {
    return OptionRecord{key, text, "steps", OptionType::integer, kAsScenario, kAsScenario, kMostSteps, kAsSet, help};
  };
  static const std::vector<OptionRecord> kOptions = {
      every("checkpoint", "Checkpoint every",
            "Steps between checkpoints, which need weights and optimizer state whole; 0: never"),
      every("summary", "Summary every", "Steps between summaries, which need the weights whole; 0: never"),
      every("evaluation", "Evaluation every", "Steps between evaluations, which read the weights; 0: never"),
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
  UpdateShardingOf(std::string of, std::unique_ptr<Searcher> searcher, AskedLoop loop, RatioMoves moves,
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
    PlannedUpdates updates = updates_on(*stage, splits, loop_.within(scenario->settings));
    auto answer = answer_with(scenario, *stage, with_choices(*stage, splits, updates.choices));
    if (!answer) return answer.error();
    auto told = std::make_shared<Result>(**answer);
    const bool shards_gradients = std::any_of(updates.choices.begin(), updates.choices.end(),
                                              [](const auto& one) { return one.update == Update::sharded; });
    std::string held = words_of_held(updates.held, "One device", shards_gradients);
    if (!pipeline_words.empty()) {
      const auto fullest = fullest_stage(*scenario, plan, splits, updates.choices);
      if (!fullest) return fullest.error();
      held = words_of_fullest(*fullest);
    }
    told->explanations.push_back(fmt::format("{} on the splits of the fastest plan of '{}'.{} {}",
                                             count_of(updates.weights), of_, pipeline_words, held));
    told->weights = std::move(updates.weights);
    told->whole_updates = (*before)->plans->sharding(0).cost;
    return told;
  }

  Expected<std::shared_ptr<Result>> sharded(const ScenarioPtr& scenario, const RatioPlan& plan,
                                            const RunContext& context) const {
    auto made = moved_updates(*scenario, plan, moves_, loop_.within(scenario->settings), context);
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
        count_of(made->updates.weights), of_, by_hand, words_of_fullest(made->updates.held)));
    told->weights = std::move(made->updates.weights);
    told->whole_updates = moves_.empty() ? plan.cost : made->splits.cost;
    return told;
  }

  /// What the device that is the fullest holds of a pipeline whose `splits` are those of one stage, whatever the
  /// scenario's accounting leaves out; of ZeRO's stages 1 to 3 over all devices of a stage that hold the same of a
  /// weight.
  static Expected<FullestDevice> fullest_stage(const Scenario& scenario, const Plan& plan, const Plan& splits,
                                               std::vector<MemoryChoice> choices) {
    const ScenarioPtr counted = with_all_counted(scenario);
    const auto stage = one_stage_of(*counted, plan.pipeline->stages, plan.pipeline->micro_batches);
    if (!stage) return stage.error();
    std::optional<Error> failed;
    const auto cost_of = [&](Plan made) {
      const auto answer = answer_with(counted, **stage, std::move(made));
      if (!answer && !failed) failed = answer.error();
      return answer ? (*answer)->plans->sharding(0).cost : CostBreakdown{};
    };
    FullestDevice fullest;
    fullest.inside = held_on(cost_of(with_choices(**stage, splits, choices)));
    CostBreakdown whole = cost_of(with_whole_updates(**stage, splits));
    fullest.whole = held_on(whole);
    whole[MemoryPart::gradients] = 0;
    fullest.outside = held_on(whole);
    for (std::size_t zero = 0; zero < 3; ++zero) {
      for (MemoryChoice& choice : choices) {
        choice = whole_update(choice);
        choice.update = kZeroStages[zero], choice.update_axes = (1u << splits.mesh.count()) - 1;
      }
      fullest.zero[zero] = held_on(cost_of(with_choices(**stage, splits, choices)));
    }
    if (failed) return *failed;
    return fullest;
  }

  std::string of_;
  std::unique_ptr<Searcher> searcher_;
  AskedLoop loop_;
  RatioMoves moves_;  ///< of the parts of its plan, where that is a ratio plan
  std::string parameters_;
};

class UpdateSharding : public Searcher {
 public:
  UpdateSharding(AskedLoop loop, std::string parameters) : loop_(loop), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    auto updates = data_parallel_updates(*scenario, loop_.within(scenario->settings));
    if (!updates) return updates.error();
    if (context.cancelled()) return cancelled_error();
    SearchSpace space;
    space.only = [](OperatorId, const Operator& op, const Mesh& on) {
      return std::vector<Configuration>{data_parallel_configuration(op, on)};
    };
    space.choices = std::move(updates->choices);
    std::string note = note_of(updates->weights);
    if (!note.empty()) note += ' ' + words_of_held(updates->held, "One replica", updates->shards_gradients);
    return result_in(scenario, space, ReshardingModel::Ways::fewest, parameters_, std::move(note),
                     std::move(updates->weights), context);
  }

 private:
  static std::string note_of(const std::vector<WeightUpdate>& weights) {
    if (weights.empty()) return {};
    const WeightUpdate& longest = *std::max_element(
        weights.begin(), weights.end(), [](const auto& a, const auto& b) { return a.whole.total() < b.whole.total(); });
    return fmt::format("{}. '{}' is {}.", count_of(weights), longest.weight, longest.reason);
  }

  AskedLoop loop_;
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

/// Its own parameters in the words of their records: "never" is an older word for 0.
Expected<std::string> own_parameters(const Asked& asked) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(asked.own, ':')) {
    const std::size_t value = part.find('=') + 1;
    if (value > 0 && part.substr(value).starts_with('-'))
      return usage_error(fmt::format("method update-sharding: {} steps apart is never", part.substr(value)));
    const bool never = value > 0 && part.substr(value) == "never";
    parts.push_back(never ? std::string(part.substr(0, value)) + '0' : std::string(part));
  }
  return fmt::format("{}", fmt::join(parts, ":"));
}

Expected<AskedLoop> loop_of(const Asked& asked) {
  const auto own = own_parameters(asked);
  if (!own) return own.error();
  const auto parameters = read_parameters("method update-sharding", update_sharding_options(), *own);
  if (!parameters) return parameters.error();
  const auto asked_for = [&](std::string_view key) {
    const int steps = parameters->integer(key);
    return steps == kAsScenario ? std::nullopt : std::optional<std::int64_t>(steps);
  };
  return AskedLoop{asked_for("checkpoint"), asked_for("summary"), asked_for("evaluation")};
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
  auto made = moved_updates(scenario, plan, moves, loop->within(scenario.settings), context);
  if (!made) return made.error();
  return std::move(made->updates.plan);
}

std::string update_sharding_refuses(const OtherMethods& others, const Scenario& scenario, std::string_view text) {
  const Asked asked = take_apart(text);
  if (const auto loop = loop_of(asked); !loop) return loop.error().what;
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
          "summary=N, evaluation=N: steps between those instead of the scenario's",
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
