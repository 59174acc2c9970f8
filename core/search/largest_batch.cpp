// SPDX-License-Identifier: Apache-2.0
#include "core/search/largest_batch.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/search/fitting_batch.h"
#include "core/search/scenario_of.h"

namespace turnpoint {

namespace {

constexpr std::int64_t kMostSamples = std::int64_t(1) << 31;
constexpr int kMostRefused = 12;  // doublings or halvings of batches that say nothing, before no other is tried
/// Plans simulated at one batch of an exact search while none fits: a second or two, and a thousand plans at least.
std::size_t most_peaks(const Scenario& scenario) {
  constexpr std::size_t kLeast = 1024, kOperators = 3'000'000;
  return std::max(kLeast, kOperators / std::max<std::size_t>(1, scenario.model->operators.size()));
}

enum class Verdict { fits, does_not_fit, unknown };

/// The fastest plan of `whole` that fits, with what the objective adds.
std::shared_ptr<Result> one_plan(const ResultPtr& whole) {
  auto one = std::make_shared<Result>(*fastest_within_limit(whole));
  if (!one->points.empty() && one->points.front().fits && one->points.front().time_s > 0)
    one->samples_per_second = double(one->scenario->model->batch) / one->points.front().time_s;
  return one;
}

/// Sums by batch of what a method's plans need on one device at least. What holds everything once needs no less of all
/// devices together, however it is shared out.
using NeededOnOne = std::map<std::int64_t, double>;

/// What is known of a batch that does not fit.
struct TooLarge {
  bool refused = false;   ///< nobody looked for a plan
  bool sketched = false;  ///< by a sketch, which has few of the frontier's plans
  bool closer = false;    ///< an exact search was asked as well
  std::size_t plans = 0, simulated = 0;
  std::optional<std::int64_t> least_peak = std::nullopt;
};

class BatchSearch {
 public:
  BatchSearch(const Contender& method, const ModelSource& source, const ScenarioPtr& here, const RunContext& context,
              NeededOnOne& needed)
      : method_(method), source_(source), here_(here), context_(context), needed_(needed) {}

  /// `doublings` of the scenario's own batch, negative for halvings: where to begin, and where it ended.
  Expected<ResultPtr> run(int& doublings) {
    int first = doublings;
    while (size(first) < here_->cluster->devices()) ++first;
    if (const auto done = look_upwards(first); !done) return done.error();
    if (!best_ && size(first) > 1)
      if (const auto done = look_downwards(first); !done) return done.error();
    if (!best_)
      if (const auto done = look_closer(); !done) return done.error();
    if (!best_) return nothing_fits();
    for (std::int64_t before = 0; before < best_->batch;) {
      before = best_->batch;
      if (const auto done = rise(); !done) return done.error();
      if (const auto done = close_in(); !done) return done.error();
      before = best_->batch;
      if (const auto done = look_closer(); !done) return done.error();
    }
    while (size(doublings + 1) <= best_->batch) ++doublings;
    while (size(doublings) > best_->batch) --doublings;
    return answer();
  }

 private:
  struct Found {
    std::int64_t batch = 0;
    ScenarioPtr scenario;
    std::unique_ptr<Searcher> searcher;  ///< its tables serve the exact pass
    ResultPtr result;
    bool sketched = false;
  };

  std::int64_t size(int doublings) const {
    const std::int64_t own = here_->settings.batch;
    return doublings >= 0 ? own << doublings : own >> -doublings;
  }

  /// From the first batch that says something; nothing is concluded from the others.
  Expected<void> look_upwards(int first) {
    Verdict before = Verdict::unknown;
    for (int at = first; size(at) <= kMostSamples; ++at) {
      if (before == Verdict::unknown && at - first > kMostRefused) break;
      const auto verdict = ask(size(at));
      if (!verdict) return verdict.error();
      if (*verdict == Verdict::does_not_fit || (*verdict == Verdict::unknown && before == Verdict::fits)) break;
      before = *verdict;
    }
    return {};
  }

  Expected<void> look_downwards(int first) {
    for (int at = first - 1; size(at) >= 1; --at) {
      if (!least_ && too_much_ == 0 && first - at > kMostRefused) break;
      const auto verdict = ask(size(at));
      if (!verdict) return verdict.error();
      if (*verdict == Verdict::fits) break;
    }
    return {};
  }

  /// Doubles until a larger batch is known not to fit.
  Expected<void> rise() {
    while (too_large_.upper_bound(best_->batch) == too_large_.end() && 2 * best_->batch <= kMostSamples)
      if (const auto verdict = ask(2 * best_->batch); !verdict) return verdict.error();
    return {};
  }

  /// Between the largest batch that fits and the next one that is known not to.
  Expected<void> close_in() {
    std::int64_t fits = best_->batch;
    const auto above = too_large_.upper_bound(fits);
    if (above == too_large_.end()) return {};
    std::int64_t too_large = above->first;
    const std::int64_t devices = here_->cluster->devices();
    const std::int64_t fine = std::max<std::int64_t>(1, fits / kBatchResolution);
    const std::int64_t divisible = (fine + devices - 1) / devices * devices;
    for (const std::int64_t step : {divisible, fine}) {
      std::int64_t low = fits / step + 1, high = (too_large - 1) / step;  // multiples of the step in between
      while (low <= high) {
        const std::int64_t middle = low + (high - low) / 2;
        const auto verdict = ask(middle * step);
        if (!verdict) return verdict.error();
        if (*verdict == Verdict::fits)
          fits = middle * step, low = middle + 1;
        else
          too_large = middle * step, high = middle - 1;
      }
    }
    return {};
  }

  /// A sketch has few of a frontier's plans, and those with the smallest peaks need not be among them: the smallest
  /// batch that only a sketch found too large is searched exactly.
  Expected<void> look_closer() {
    auto above = best_ ? too_large_.upper_bound(best_->batch) : too_large_.begin();
    while (above != too_large_.end() && above->second.refused) ++above;
    if (above == too_large_.end() || !above->second.sketched || above->second.closer) return {};
    above->second.closer = true;
    if (const auto verdict = ask(above->first, Depth::exact); !verdict) return verdict.error();
    return {};
  }

  enum class Depth {
    sketch,    ///< where the method has sketches
    exact,     ///< in any case
    whatever,  ///< a sketch, even where it is known that nothing can fit
  };

  Expected<Verdict> ask(std::int64_t batch, Depth depth = Depth::sketch) {
    if (context_.cancelled()) return cancelled_error();
    const int devices = here_->cluster->devices();
    if (depth == Depth::sketch && cannot_fit(batch)) {
      too_much_ = too_much_ == 0 ? batch : std::min(too_much_, batch);
      too_large_[batch] = {};
      return Verdict::does_not_fit;
    }
    const auto scenario = with_batch(source_, here_, batch);
    if (!scenario) return without_answer(batch, scenario.error());
    if (auto reason = method_.refuses(**scenario); !reason.empty()) return without_answer(batch, usage_error(reason));
    auto searcher = method_.make();
    const auto pass = method_.frontier && depth != Depth::exact ? SearchPass::coarse : SearchPass::exact;
    const auto found = searcher->run(*scenario, pass, part(batch));
    ++asked_;
    // A placement method has its best so far then, which says nothing about what would have fitted.
    if (context_.cancelled()) return cancelled_error();
    if (!found) return without_answer(batch, found.error());
    search_s_ += (*found)->search_s;
    const bool sketched = pass == SearchPass::coarse && !(*found)->exact;
    const auto judged = judged_by_peaks(*found, part(batch), sketched ? kUntilAnyFits : most_peaks(**scenario));
    if (!judged) return judged.error();
    if ((*judged)->fastest_that_fits()) {
      too_large_.erase(batch);
      if (!best_ || batch > best_->batch) best_ = Found{batch, *scenario, std::move(searcher), *judged, sketched};
      return Verdict::fits;
    }
    if ((*judged)->points.empty()) return without_answer(batch, usage_error("no plan"));
    const auto least = least_peak(**judged);
    too_large_[batch] = {.sketched = sketched,
                         .closer = depth == Depth::exact,
                         .plans = (*judged)->points.size(),
                         .simulated = simulated_plans(**judged),
                         .least_peak = least ? (*judged)->points[*least].simulated_memory_bytes : std::nullopt};
    if (!least_ || batch <= (*least_)->scenario->settings.batch) least_ = *judged;
    if (devices == 1 && method_.holds_everything_once)
      needed_[batch] = static_cast<double>((*found)->points.front().memory_bytes);
    return Verdict::does_not_fit;
  }

  /// More samples need no less on one device, and several hold together what one holds. A peak is no less than half of
  /// the sum (judged_by_peaks()).
  bool cannot_fit(std::int64_t batch) const {
    const auto above = needed_.upper_bound(batch);
    if (above == needed_.begin()) return false;
    return 2 * here_->cluster->devices() * static_cast<double>(here_->memory_limit()) < std::prev(above)->second;
  }

  /// A batch that is refused, that the model does not take, or on which the method gave up; other errors are errors.
  Expected<Verdict> without_answer(std::int64_t batch, const Error& error) {
    if (error.code == ErrorCode::cancelled || error.code == ErrorCode::device) return error;
    if (!refused_ || error.code == ErrorCode::infeasible) refused_ = error;
    too_large_.try_emplace(batch, TooLarge{.refused = true});
    return Verdict::unknown;
  }

  /// Where the answer comes from all the same: the smallest batch that was looked at.
  Expected<ResultPtr> nothing_fits() {
    if (!least_ && too_much_ > 0)
      if (const auto verdict = ask(too_much_, Depth::whatever); !verdict) return verdict.error();
    if (!least_) {
      Error error = refused_.value_or(usage_error("no batch suits it"));
      if (error.code != ErrorCode::infeasible) error.code = ErrorCode::usage;
      return error;
    }
    auto one = one_plan(*least_);
    one->search_s = search_s_;
    const std::int64_t batch = one->scenario->settings.batch;
    one->notes.push_back(fmt::format("nothing fits, not even {} sample{}", batch, batch == 1 ? "" : "s"));
    return ResultPtr(std::move(one));
  }

  Expected<ResultPtr> answer() {
    ResultPtr whole = best_->result;
    if (best_->sketched) {
      const auto exact = best_->searcher->run(best_->scenario, SearchPass::exact, part(best_->batch));
      if (!exact && exact.error().code != ErrorCode::infeasible) return exact.error();
      if (exact) {
        search_s_ += (*exact)->search_s;
        const auto judged = judged_by_peaks(*exact, part(best_->batch), most_peaks(*best_->scenario));
        if (!judged) return judged.error();
        if ((*judged)->fastest_that_fits()) whole = *judged;
      }
    }
    auto one = one_plan(whole);
    one->search_s = search_s_;
    auto above = too_large_.upper_bound(best_->batch);
    while (above != too_large_.end() && above->second.refused) ++above;
    if (above != too_large_.end()) one->explanations.push_back(bound_words(best_->batch, above->first, above->second));
    return ResultPtr(std::move(one));
  }

  /// What is certain of the next larger batch, and what was only tried.
  static std::string bound_words(std::int64_t fits, std::int64_t larger, const TooLarge& known) {
    std::string peak;
    if (known.least_peak) peak = fmt::format(", and need {} or more", format_bytes(*known.least_peak));
    if (known.sketched)
      return fmt::format(
          "a batch of {} fits; for one of {} a sketch alone was found, of whose {} plans {} were simulated{}", fits,
          larger, known.plans, known.simulated, peak);
    if (known.simulated == 0 || known.simulated == known.plans)
      return fmt::format("a batch of {} fits, and one of {} does not", fits, larger);
    return fmt::format(
        "a batch of {} fits; for one of {} no plan was found that does: {} of its {} plans were simulated{}", fits,
        larger, known.simulated, known.plans, peak);
  }

  /// How many batches will be looked at is not known beforehand: each takes a fifth of what is left.
  RunContext part(std::int64_t batch) const {
    RunContext inner = context_;
    if (!context_.progress) return inner;
    double left = 1;
    for (int i = 0; i < asked_; ++i) left *= 0.8;
    inner.progress = [sink = context_.progress, batch, left](const Progress& progress) {
      const double done = progress.fraction < 0 ? 0 : std::min(progress.fraction, 1.0);
      sink({fmt::format("batch {}: {}", batch, progress.phase), 1 - left + 0.2 * left * done});
    };
    return inner;
  }

  const Contender& method_;
  const ModelSource& source_;
  const ScenarioPtr here_;
  const RunContext& context_;
  NeededOnOne& needed_;
  std::optional<Found> best_;
  std::optional<ResultPtr> least_;  ///< of the smallest batch that does not fit
  std::optional<Error> refused_;
  std::map<std::int64_t, TooLarge> too_large_;  ///< by batch
  std::int64_t too_much_ = 0;  ///< the smallest of them that was not searched, as it cannot fit; 0: none
  int asked_ = 0;
  double search_s_ = 0;
};

}  // namespace

Expected<Contender> batch_contender(const Method& method, const std::string& parameters) {
  const auto parts = std::find_if(method.options.begin(), method.options.end(), [](const OptionRecord& option) {
    return option.key == "micro-batches" && !option.choices.empty();  // a choice of an integer: every number
  });
  if (parts == method.options.end()) return contender(method, parameters);
  const auto given = read_parameters("method " + method.name, method.options, parameters);
  if (!given) return given.error();
  if (given->number(parts->key) != parts->minimum) return contender(method, parameters);
  if (given->written(parts->key))
    return usage_error(
        fmt::format("the largest batch needs a number of micro-batches of method {}: in as many "
                    "parts as it takes, a batch of any size fits",
                    method.name));
  return contender(method, parameters + (parameters.empty() ? "micro-batches=1" : ":micro-batches=1"));
}

Expected<void> check_batch_can_change(const ModelSource& source, const Scenario& scenario) {
  const auto fixed = [&](const std::string& why) {
    return usage_error(
        fmt::format("the largest batch needs a model whose batch can be chosen: '{}' {}", source.name(), why));
  };
  if (scenario.tasks) return fixed("is a task graph, which is of one batch");
  const std::int64_t own = scenario.settings.batch;
  std::string why;
  for (const std::int64_t other : {2 * own, own / 2}) {
    if (other < 1) continue;
    const auto model = source.bind({other, scenario.settings.sequence});
    if (model && (*model)->batch == other) return {};
    if (model)
      why = fmt::format("stays at {}", (*model)->batch);
    else if (model.error().code == ErrorCode::cancelled)
      return model.error();
    else if (why.empty())
      why = fmt::format("takes no batch of {}: {}", other,
                        model.error().hint.empty() ? model.error().what : model.error().hint);
  }
  return fixed(why);
}

Expected<std::vector<ResultPtr>> largest_batches(const Contender& method, const ModelSource& source,
                                                 const ScenarioPtr& scenario, const std::vector<int>& counts,
                                                 const RunContext& context,
                                                 const std::function<void(const ResultPtr&)>& found) {
  if (const auto can = check_batch_can_change(source, *scenario); !can) return can.error();
  NeededOnOne needed;
  int doublings = 0;           // more devices mostly take as much as fewer, and more
  std::optional<double> base;  // of the fewest devices
  const auto largest = [&](const ScenarioPtr& here, const RunContext& part) -> Expected<ResultPtr> {
    const auto one = BatchSearch(method, source, here, part, needed).run(doublings);
    if (!one || !(*one)->samples_per_second) return one;
    if (!base) base = (*one)->samples_per_second;
    auto rated = std::make_shared<Result>(**one);
    rated->speed_up = *rated->samples_per_second / *base;
    return ResultPtr(std::move(rated));
  };
  return at_every_count(Objective::largest_batch, method, scenario, counts, context, largest, found);
}

}  // namespace turnpoint
