// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/trainer.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "core/base/text.h"
#include "core/plan/learning.h"
#include "core/search/trinity/advantages.h"
#include "core/search/trinity/saved_state.h"
#include "core/search/trinity/trials.h"

namespace turnpoint::trinity {

namespace {

constexpr std::uint64_t kWeightsPurpose = 1ull << 62, kMaskPurpose = 1ull << 63, kLessonPurpose = 1ull << 61,
                        kRefiningPurpose = 1ull << 59;

Error other_settings() {
  return bad_input("the saved state of learning is of other settings; searched again, it begins anew");
}

class Trainer {
 public:
  Trainer(const TaskGraph& graph, const placement::PlacementRequest& request, const Settings& settings,
          const RunContext& context, const Beginning& begin, const SavedState* state)
      : graph_(graph),
        request_(request),
        settings_(settings),
        context_(context),
        pool_(context.threads),
        evaluation_(graph, request, pool_.threads()),
        // What was once tried out for the state need not be tried again.
        to_learn_(state ? ToLearn{make_problem(graph, request, settings.units, state->groups, state->joining)}
                        : problem_to_learn(graph, request, settings, begin.placement != nullptr, evaluation_, context)),
        random_(stream_of(request.seed, kWeightsPurpose)),
        policy_(partition_shape(), schedule_shape(), problem_.device_features, problem_.features, random_),
        partition_adam_(policy_.weights().partition.size()),
        schedule_adam_(policy_.weights().schedule.size()),
        baseline_(settings.baseline_n) {
    double slowest = 1e300;
    for (std::uint32_t d = 0; d < request.devices; ++d) slowest = std::min(slowest, graph.speed_of(d));
    const double work = std::accumulate(graph.time_s.begin(), graph.time_s.end(), 0.0) / slowest;
    failing_ = reward_of_seconds(settings.failing_seconds.value_or(10 * work));
  }

  Expected<Learnt> run(const Beginning& begin, std::optional<SavedState> state,
                       const std::function<void(const Iteration&)>& watch) {
    if (state) {
      if (auto done = go_on(std::move(*state)); !done) return done.error();
      tell(fmt::format("going on after iteration {}", learnt_.iterations), spent_fraction());
    } else if (begin.placement) {
      const std::uint64_t tried = evaluation_.calls();
      auto known = evaluation_.of_placement(*begin.placement, 0);
      if (!known) return known.error();
      take_best(std::move(*known));
      learnt_.begun = begin.by;
      begun_with_ = learnt_.best.fits() ? std::optional(learnt_.best.seconds) : std::nullopt;
      if (begun_with_) learning_->begin_with(*begun_with_);
      if (!to_learn_.pieces)
        if (auto chosen = evaluation_.go_by(*begin.placement); !chosen) return chosen.error();
      // What is tried out is drawn, and counts as it does where learning begins with nothing.
      calls_before_ = evaluation_.calls() - tried;
      if (!to_learn_.pieces) {
        own_ = learnt_.best;
        drawn_ = own_->score();
        const Decided decided = decisions_of(problem_, request_.devices, begin.placement->device);
        if (settings_.joined_groups) lean_towards(decided.group_of);
        teach(decided);
      }
    }
    take_tried();
    // Without a lean every unit would be in a group of its own choice, so that neighbours are torn apart and nearly
    // every tensor is sent: of such placements the best is everything on one device, and nothing leads from there. So
    // groups begin as pieces that exchange little; where they go is to be learnt, and units may leave them.
    if (!state && to_learn_.pieces && settings_.joined_groups)
      lean_towards(joined_pieces(graph_, problem_.units, problem_.groups));
    // Choosing how units are joined may have spent what a small budget has.
    while ((!spent() || (to_learn_.pieces && learnt_.iterations == 0)) && !context_.cancelled())
      if (auto done = iterate(watch); !done) return done.error();
    learnt_.stopped = context_.cancelled();
    if (!learnt_.stopped) keep_state();
    if (!have_best_) return cancelled_error();
    learnt_.calls = calls();
    return std::move(learnt_);
  }

 private:
  PartitionShape partition_shape() const {
    PartitionShape shape;
    shape.units = problem_.units.count();
    shape.width = problem_.features.width;
    shape.types = problem_.features.types;
    shape.groups = problem_.groups;
    shape.own_width = settings_.own_width;
    shape.clipping = settings_.clipping;
    return shape;
  }
  ScheduleShape schedule_shape() const {
    ScheduleShape shape;
    shape.groups = problem_.groups;
    shape.width = problem_.group_width();
    shape.devices = request_.devices;
    shape.device_width = Problem::kDeviceFeatures;
    shape.hidden = settings_.hidden;
    shape.reads_group = settings_.reads_group;
    shape.clipping = settings_.clipping;
    return shape;
  }

  /// Placements tried by learning, without those that it begins with.
  std::uint64_t calls() const { return evaluation_.calls() - calls_before_ + calls_until_state_; }
  bool spent() const {
    const Budget& budget = settings_.budget;
    if (budget.iterations && learnt_.iterations >= *budget.iterations) return true;
    if (budget.calls && calls() >= *budget.calls) return true;
    return budget.seconds && elapsed() >= *budget.seconds;
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count() + seconds_until_state_;
  }
  void tell(const std::string& words, double fraction) const {
    if (context_.progress) context_.progress({words, fraction, learning_});
  }
  void take_best(Evaluated evaluated) {
    learnt_.best = std::move(evaluated);
    have_best_ = true;
    learning_->keep(learnt_.best.placement);
  }
  /// What learning itself has found. What it begins with stands beside it, so that both go their ways alike.
  void take_own(Evaluated evaluated) {
    if (own_ && !evaluated.verdict.better_than(own_->verdict, request_.objective)) return;
    if (!have_best_ || evaluated.verdict.better_than(learnt_.best.verdict, request_.objective)) take_best(evaluated);
    own_ = std::move(evaluated);
  }
  /// What was drawn to choose pieces is simulated and counts.
  void take_tried() {
    if (!to_learn_.tried) return;
    best_rollout_ = rollout_of(to_learn_.tried->decided);
    drawn_ = to_learn_.tried->best.score();
    take_own(std::move(to_learn_.tried->best));
  }
  /// Between iterations of which the numbers alone decide, so that a search that goes on does the same.
  Expected<void> refine_own() {
    const std::uint64_t every = settings_.refined_every / settings_.rollouts;
    if (every == 0 || learnt_.iterations % every != 0 || !own_ || context_.cancelled()) return {};
    std::uint64_t most = every * settings_.rollouts;
    if (settings_.budget.calls)
      most = std::min(most, *settings_.budget.calls - std::min(*settings_.budget.calls, calls()));
    if (most == 0) return {};
    const std::uint64_t seed = stream_of(request_.seed, kRefiningPurpose, learnt_.iterations).next();
    auto made = evaluation_.refined(*own_, most, seed, context_);
    if (!made) return made.error();
    take_own(std::move(*made));
    return {};
  }
  double spent_fraction() const {
    const Budget& budget = settings_.budget;
    double fraction = 0;
    if (budget.iterations) fraction = std::max(fraction, double(learnt_.iterations) / double(*budget.iterations));
    if (budget.calls) fraction = std::max(fraction, double(calls()) / double(*budget.calls));
    if (budget.seconds) fraction = std::max(fraction, elapsed() / *budget.seconds);
    return std::min(fraction, 1.0);
  }

  double reward_of_seconds(double seconds) const {
    return settings_.reward == RewardKind::runtime ? runtime_reward(seconds)
                                                   : trinity_reward(settings_.weights, seconds, 0, 0);
  }
  double reward_of(const Evaluated& evaluated) const {
    return settings_.reward == RewardKind::runtime
               ? runtime_reward(evaluated.seconds)
               : trinity_reward(settings_.weights, evaluated.seconds, double(evaluated.peak_communication),
                                double(evaluated.peak_memory));
  }

  /// Among which a reward is shared out.
  double decisions() const { return double(settings_.shared_credit ? problem_.groups : problem_.units.count()); }

  std::vector<float> mask_of(std::uint64_t update) const {
    if (settings_.dropout <= 0) return {};
    std::vector<float> mask(problem_.units.count() * PartitionNetwork<float>::kFirst);
    placement::Random random = stream_of(request_.seed, kMaskPurpose, update);
    networks::draw_dropout(settings_.dropout, random, mask);
    return mask;
  }

  Loss update(const std::vector<Rollout>& rollouts, const std::vector<float>& mask, double entropy) {
    Policy<float>::Blocks gradient;
    Weighting weighting = settings_.learning;
    weighting.entropy = entropy;
    if (settings_.shared_credit) weighting.unit_share = double(problem_.groups) / double(problem_.units.count());
    const Loss loss = policy_.loss(rollouts, weighting, mask, pool_, gradient);
    networks::clip_norm(gradient.partition, settings_.gradient_norm);
    networks::clip_norm(gradient.schedule, settings_.gradient_norm);
    partition_adam_.step(gradient.partition, settings_.rate, policy_.weights().partition);
    schedule_adam_.step(gradient.schedule, settings_.rate, policy_.weights().schedule);
    return loss;
  }

  Rollout rollout_of(const Decided& decided) const {
    Rollout rollout;
    rollout.units.choice = decided.group_of;
    rollout.groups.choice = decided.device_of_group;
    rollout.groups.counts.assign(problem_.groups, 0);
    for (const std::uint32_t g : decided.group_of) rollout.groups.counts[g] = 1;
    rollout.group_features = problem_.group_features(decided.group_of);
    return rollout;
  }

  /// Besides the placement itself the lesson holds partitions that differ from it by some units, of which the groups'
  /// devices are to stay: drawn partitions will differ too.
  void teach(const Decided& decided) {
    constexpr std::size_t kShaken = 3;
    constexpr double kElsewhere = 0.1;
    best_rollout_ = rollout_of(decided);
    for (std::size_t step = 0; step < settings_.teaching && !context_.cancelled(); ++step) {
      // Most of the time is for learning.
      if (settings_.budget.seconds && elapsed() > *settings_.budget.seconds / 3) break;
      tell("learning the placement to begin with", double(step) / double(settings_.teaching));
      placement::Random random = stream_of(request_.seed, kLessonPurpose, step);
      std::vector<Rollout> lesson{*best_rollout_};
      for (std::size_t i = 0; i < kShaken; ++i) {
        Decided shaken = decided;
        for (std::uint32_t& group : shaken.group_of)
          if (random.unit() < kElsewhere) group = random.below(problem_.groups);
        lesson.push_back(rollout_of(shaken));
        lesson.back().units.counts.assign(problem_.units.count(), 0);
        lesson.back().groups.counts = best_rollout_->groups.counts;
      }
      for (Rollout& rollout : lesson) rollout.credit = {.imitation = 1, .share = 1};
      const std::vector<float> mask = mask_of(~std::uint64_t(step));
      // Under a mask that it was not just taught with.
      policy_.remember(mask, pool_, lesson);
      double most = 0;
      for (const Rollout& rollout : lesson) most = std::max(most, surprise(rollout));
      if (most <= settings_.taught) break;
      update(lesson, mask, 0);
    }
  }

  /// Of a partition that is drawn at first, `strays` units in the mean are not where they lean.
  void lean_towards(std::vector<std::uint32_t> group_of) {
    const double others = std::max(1.0, double(problem_.groups) - 1);
    const double elsewhere = std::min(0.5, settings_.strays / double(problem_.units.count()));
    leaning_ = std::move(group_of);
    policy_.lean_towards(leaning_, std::log(others * (1 - elsewhere) / elsewhere));
  }

  /// An iteration's rollouts: drawn, simulated, and the best of them kept.
  Expected<std::vector<Evaluated>> play(const std::vector<float>& mask, std::vector<Rollout>& rollouts) {
    std::vector<placement::Random> streams;
    for (std::size_t k = 0; k < settings_.rollouts; ++k)
      streams.push_back(stream_of(request_.seed, learnt_.iterations + 1, k));
    const double fading =
        1 - double(learnt_.iterations) / double(std::max<std::uint64_t>(1, settings_.noise_iterations));
    policy_.draw(
        mask, settings_.noise * std::max(0.0, fading),
        [&](const std::vector<std::uint32_t>& group_of) { return problem_.group_features(group_of); }, streams, pool_,
        rollouts);
    std::vector<Evaluated> evaluated(rollouts.size());
    std::vector<std::optional<Error>> errors(rollouts.size());
    pool_.for_each(rollouts.size(), [&](std::size_t k, int worker) {
      auto one =
          evaluation_.of_devices(problem_.devices_of(rollouts[k].units.choice, rollouts[k].groups.choice), worker);
      if (one)
        evaluated[k] = std::move(*one);
      else
        errors[k] = one.error();
    });
    for (const auto& error : errors)
      if (error) return *error;
    for (std::size_t k = 0; k < rollouts.size(); ++k) {
      if (best_rollout_ && !evaluated[k].score().better_than(drawn_)) continue;
      drawn_ = evaluated[k].score();
      best_rollout_ = rollouts[k];
      take_own(evaluated[k]);
    }
    return evaluated;
  }

  /// What failed has the failing reward.
  void give_credit(const std::vector<Evaluated>& evaluated, std::vector<Rollout>& rollouts, Iteration& report) {
    std::vector<Rewarded> batch;
    for (const Evaluated& one : evaluated) batch.push_back({one.fits() ? reward_of(one) : failing_, one.fits()});
    const Advantages made = advantages(batch, settings_.scaled_advantage, baseline_);
    report.mean_reward = made.mean_reward;
    report.failed = made.failed;
    for (std::size_t k = 0; k < rollouts.size(); ++k)
      rollouts[k].credit = {.advantage = made.of_rollout[k], .share = 1 / double(evaluated.size())};
  }

  Expected<void> iterate(const std::function<void(const Iteration&)>& watch) {
    const std::vector<float> mask = mask_of(learnt_.iterations);
    std::vector<Rollout> rollouts;
    auto evaluated = play(mask, rollouts);
    if (!evaluated) return evaluated.error();
    Iteration report;
    give_credit(*evaluated, rollouts, report);
    const std::size_t drawn = rollouts.size();
    if (settings_.imitation > 0 && best_rollout_) {
      rollouts.push_back(*best_rollout_);
      rollouts.back().credit = {.imitation = settings_.imitation, .share = 1 / double(drawn)};
    }
    const double entropy = settings_.fading_entropy
                               ? settings_.learning.entropy * (1 - spent_fraction()) / std::sqrt(decisions())
                               : settings_.learning.entropy;
    for (std::size_t epoch = 0; epoch < settings_.epochs && !context_.cancelled(); ++epoch)
      report.loss = update(rollouts, mask, entropy);
    ++learnt_.iterations;
    if (learnt_.iterations == 1) learnt_.reward_first = report.mean_reward;
    learnt_.reward_last = report.mean_reward;
    rollouts.resize(drawn);
    learnt_.last = std::move(rollouts);
    if (auto done = refine_own(); !done) return done.error();
    report.number = learnt_.iterations;
    report.calls = calls();
    report.best_seconds = learnt_.best.seconds;
    if (!baseline_.empty()) report.baseline = baseline_.value();
    if (watch) watch(report);
    learning_->add(point_of(report));
    // Who is stopped between two updates goes on from an iteration before.
    const double since = std::chrono::duration<double>(std::chrono::steady_clock::now() - state_kept_at_).count();
    if (!context_.cancelled() && since >= settings_.state_every_s) keep_state();
    tell(words_of(report), spent_fraction());
    return {};
  }

  LearningPoint point_of(const Iteration& report) const {
    LearningPoint point;
    point.iteration = report.number;
    point.calls = report.calls;
    if (report.failed < settings_.rollouts) point.reward = report.mean_reward;
    if (!baseline_.empty()) point.baseline = report.baseline;
    if (learnt_.best.fits()) point.best_s = report.best_seconds;
    point.entropy = (report.loss.unit_entropy + report.loss.group_entropy) / 2;
    return point;
  }

  void keep_state() {
    SavedState state;
    state.graph = digest_of(graph_, request_);
    state.settings = digest_of(settings_, request_.seed);
    state.weights = policy_.weights();
    state.partition_moments = partition_adam_.moments();
    state.schedule_moments = schedule_adam_.moments();
    if (!baseline_.empty()) state.baseline = baseline_.value();
    state.iterations = learnt_.iterations;
    state.calls = calls();
    state.seconds = elapsed();
    state.reward_first = learnt_.reward_first;
    state.reward_last = learnt_.reward_last;
    state.begun_s = begun_with_;
    state.begun = learnt_.begun;
    if (have_best_) state.best = learnt_.best.placement;
    if (own_) state.own = own_->placement;
    state.drawn = drawn_;
    state.best_rollout = best_rollout_;
    state.joining = problem_.joining;
    state.groups = problem_.groups;
    state.leaning = leaning_;
    state.priority = evaluation_.priority();
    if (request_.met) state.met = request_.met->points();
    state.points = learning_->points();
    learning_->set_state(write_saved_state(state));
    state_kept_at_ = std::chrono::steady_clock::now();
  }

  /// From a state that keep_state() made of the same graph and settings.
  Expected<void> go_on(SavedState state) {
    const auto& mine = policy_.weights();
    const std::size_t saved = state.weights.partition.size() + state.weights.schedule.size(),
                      needed = mine.partition.size() + mine.schedule.size();
    if (state.weights.partition.size() != mine.partition.size() || saved != needed)
      return bad_input(fmt::format(
          "the saved network has {} weights and this one {}; searched again, learning begins anew", saved, needed));
    if (state.settings != digest_of(settings_, request_.seed) || !suits(state)) return other_settings();
    if (state.best) {
      auto known = evaluation_.of_placement(std::move(*state.best), 0);
      if (!known) return known.error();
      take_best(std::move(*known));
    }
    if (state.own) {
      auto known = evaluation_.of_placement(std::move(*state.own), 0);
      if (!known) return known.error();
      own_ = std::move(*known);
    }
    drawn_ = state.drawn;
    policy_.weights() = std::move(state.weights);
    partition_adam_.set_moments(std::move(state.partition_moments));
    schedule_adam_.set_moments(std::move(state.schedule_moments));
    if (state.baseline) baseline_.set(*state.baseline);
    learnt_.iterations = state.iterations;
    learnt_.reward_first = state.reward_first;
    learnt_.reward_last = state.reward_last;
    learnt_.begun = std::move(state.begun);
    begun_with_ = state.begun_s;
    if (begun_with_) learning_->begin_with(*begun_with_);
    for (const LearningPoint& point : state.points) learning_->add(point);
    best_rollout_ = std::move(state.best_rollout);
    evaluation_.set_priority(std::move(state.priority));
    if (!state.leaning.empty()) lean_towards(std::move(state.leaning));
    if (request_.met)
      for (placement::Met::Point& point : state.met) request_.met->offer(std::move(point));
    calls_before_ = evaluation_.calls();
    calls_until_state_ = state.calls;
    seconds_until_state_ = state.seconds;
    return {};
  }

  /// Whether all that it holds is of the sizes that are needed here.
  bool suits(const SavedState& state) const {
    const auto of_size = [](const networks::Adam::Moments& moments, std::size_t size) {
      return moments.first.size() == size && moments.second.size() == size;
    };
    const auto placed = [&](const Placement& placement) {
      return placement.devices == request_.devices && check_placement(graph_, placement, "saved").has_value();
    };
    return of_size(state.partition_moments, policy_.weights().partition.size()) &&
           of_size(state.schedule_moments, policy_.weights().schedule.size()) &&
           (state.leaning.empty() || state.leaning.size() == problem_.units.count()) &&
           std::all_of(state.leaning.begin(), state.leaning.end(), [&](auto one) { return one < problem_.groups; }) &&
           (!state.best_rollout || trinity::suits(*state.best_rollout, problem_, request_.devices)) &&
           (state.priority.empty() || state.priority.size() == graph_.task_count()) &&
           (!state.best || placed(*state.best)) && (!state.own || placed(*state.own)) &&
           std::all_of(state.met.begin(), state.met.end(), [&](const auto& met) { return placed(met.placement); });
  }

  /// What whoever waits wants to see: what is gained so far, none included, and whether anything is still being learnt.
  std::string words_of(const Iteration& report) const {
    // What is gained stands first: there is not room for all of it everywhere.
    std::string words = fmt::format("iteration {}, best {}", report.number, format_seconds(report.best_seconds));
    if (begun_with_ && learnt_.best.fits()) words += ", " + gain_words(*begun_with_, report.best_seconds);
    if (report.failed < settings_.rollouts) words += fmt::format(", reward {:.3f}", report.mean_reward);
    if (!baseline_.empty()) words += fmt::format(", baseline {:.3f}", report.baseline);
    return words + fmt::format(", entropy {:.2f}, {} placements tried",
                               (report.loss.unit_entropy + report.loss.group_entropy) / 2, report.calls);
  }

  const TaskGraph& graph_;
  const placement::PlacementRequest& request_;
  const Settings& settings_;
  const RunContext& context_;
  const std::chrono::steady_clock::time_point begun_ =
      std::chrono::steady_clock::now();  ///< before all that takes time
  ThreadPool pool_;
  Evaluation evaluation_;
  ToLearn to_learn_;
  const Problem& problem_ = to_learn_.problem;
  placement::Random random_;
  Policy<float> policy_;
  networks::Adam partition_adam_, schedule_adam_;
  MovingBaseline baseline_;
  double failing_ = 0;
  std::uint64_t calls_before_ = 0;
  Learnt learnt_;
  bool have_best_ = false;
  std::optional<Evaluated> own_;        ///< the best that was drawn, refined or, where it is taught, begun with
  annealing::Score drawn_;              ///< of best_rollout_
  std::optional<double> begun_with_;    ///< seconds of the placement to begin with, if that fits
  std::vector<std::uint32_t> leaning_;  ///< by unit, the group that it leans towards; empty: none
  std::optional<Rollout> best_rollout_;
  std::shared_ptr<Learning> learning_ = std::make_shared<Learning>();
  std::uint64_t calls_until_state_ = 0;  ///< of the state that it goes on from
  double seconds_until_state_ = 0;       ///< likewise
  std::chrono::steady_clock::time_point state_kept_at_ = begun_;
};

}  // namespace

Expected<Learnt> learn(const TaskGraph& graph, const placement::PlacementRequest& request, const Settings& settings,
                       const Beginning& begin, const RunContext& context,
                       const std::function<void(const Iteration&)>& watch) {
  if (auto good = settings.check(); !good) return good.error();
  std::optional<SavedState> state;
  if (request.resume) {
    auto read = read_saved_state(*request.resume);
    if (!read) return read.error();
    if (read->graph != digest_of(graph, request))
      return bad_input(
          "the saved state of learning is of another task graph, or of other devices; searched again, it begins anew");
    // Before anything of that size is made; whether all of it suits is compared later.
    std::size_t most_groups = settings.groups;
    for (const std::size_t number : settings.tried_groups) most_groups = std::max(most_groups, number);
    if (read->groups == 0 || read->groups > most_groups) return other_settings();
    state = std::move(*read);
  }
  Trainer trainer(graph, request, settings, context, begin, state ? &*state : nullptr);
  return trainer.run(begin, std::move(state), watch);
}

}  // namespace turnpoint::trinity
