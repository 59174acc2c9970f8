// SPDX-License-Identifier: Apache-2.0
#include "core/search/largest_batch.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/search/fitting_batch.h"
#include "core/search/scenario_of.h"

namespace turnpoint {

namespace {

constexpr std::int64_t kMostSamples = std::int64_t(1) << 31;
constexpr int kMostRefused = 12;  // doublings or halvings of batches that say nothing, before no other is tried

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

class BatchSearch {
 public:
  BatchSearch(const Contender& method, const ModelSource& source, const ScenarioPtr& here, const RunContext& context,
              NeededOnOne& needed)
      : method_(method), source_(source), here_(here), context_(context), needed_(needed) {}

  /// `doublings` of the scenario's own batch, negative for halvings: where to begin, and where it ended.
  Expected<ResultPtr> run(int& doublings) {
    int first = doublings;
    while (size(first) < here_->cluster->devices()) ++first;
    const auto begun = look_upwards(first);
    if (!begun) return begun.error();
    if (!best_ && size(first) > 1)
      if (const auto done = look_downwards(first); !done) return done.error();
    if (!best_) return nothing_fits();
    doublings = largest_;
    if (const auto done = close_in(); !done) return done.error();
    return answer();
  }

 private:
  struct Found {
    std::int64_t batch = 0;
    ScenarioPtr scenario;
    std::unique_ptr<Searcher> searcher;  ///< its tables serve the exact pass
    ResultPtr result;
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
      if (*verdict == Verdict::fits) largest_ = at;
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
      if (*verdict != Verdict::fits) continue;
      largest_ = at;
      break;
    }
    return {};
  }

  /// Between the largest doubling that fits and the next one.
  Expected<void> close_in() {
    std::int64_t fits = best_->batch, too_large = size(largest_ + 1);
    if (too_large > kMostSamples) return {};
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

  /// `whatever`: even where it is known that it cannot fit.
  Expected<Verdict> ask(std::int64_t batch, bool whatever = false) {
    if (context_.cancelled()) return cancelled_error();
    const int devices = here_->cluster->devices();
    if (!whatever && cannot_fit(batch)) {
      too_much_ = too_much_ == 0 ? batch : std::min(too_much_, batch);
      too_large_.insert(batch);
      return Verdict::does_not_fit;
    }
    const auto scenario = with_batch(source_, here_, batch);
    if (!scenario) return without_answer(scenario.error());
    if (auto reason = method_.refuses(**scenario); !reason.empty()) return without_answer(usage_error(reason));
    auto searcher = method_.make();
    const auto pass = method_.frontier ? SearchPass::coarse : SearchPass::exact;
    const auto found = searcher->run(*scenario, pass, part(batch));
    ++asked_;
    if (!found) return without_answer(found.error());
    search_s_ += (*found)->search_s;
    const auto judged = judged_by_peaks(*found, part(batch));
    if (!judged) return judged.error();
    if ((*judged)->fastest_that_fits()) {
      if (!best_ || batch > best_->batch) best_ = Found{batch, *scenario, std::move(searcher), *judged};
      return Verdict::fits;
    }
    if ((*judged)->points.empty()) return without_answer(usage_error("no plan"));
    too_large_.insert(batch);
    if (!least_ || batch < (*least_)->scenario->settings.batch) least_ = *judged;
    if (devices == 1 && method_.holds_everything_once)
      needed_[batch] = static_cast<double>((*found)->points.front().memory_bytes);
    return Verdict::does_not_fit;
  }

  /// More samples need no less on one device, and several hold together what one holds.
  bool cannot_fit(std::int64_t batch) const {
    const auto above = needed_.upper_bound(batch);
    if (above == needed_.begin()) return false;
    return here_->cluster->devices() * static_cast<double>(here_->memory_limit()) < std::prev(above)->second;
  }

  /// A batch that is refused, that the model does not take, or on which the method gave up; other errors are errors.
  Expected<Verdict> without_answer(const Error& error) {
    if (error.code == ErrorCode::cancelled || error.code == ErrorCode::device) return error;
    if (!refused_ || error.code == ErrorCode::infeasible) refused_ = error;
    return Verdict::unknown;
  }

  /// Where the answer comes from all the same: the smallest batch that was looked at.
  Expected<ResultPtr> nothing_fits() {
    if (!least_ && too_much_ > 0)
      if (const auto verdict = ask(too_much_, true); !verdict) return verdict.error();
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
    if (method_.frontier && !whole->exact) {
      const auto exact = best_->searcher->run(best_->scenario, SearchPass::exact, part(best_->batch));
      if (!exact && exact.error().code != ErrorCode::infeasible) return exact.error();
      if (exact) {
        search_s_ += (*exact)->search_s;
        const auto judged = judged_by_peaks(*exact, part(best_->batch));
        if (!judged) return judged.error();
        if ((*judged)->fastest_that_fits()) whole = *judged;
      }
    }
    auto one = one_plan(whole);
    one->search_s = search_s_;
    if (const auto above = too_large_.upper_bound(best_->batch); above != too_large_.end())
      one->explanations.push_back(fmt::format("a batch of {} fits, and one of {} does not", best_->batch, *above));
    return ResultPtr(std::move(one));
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
  std::set<std::int64_t> too_large_;  ///< batches that do not fit
  std::int64_t too_much_ = 0;         ///< the smallest of them that was not searched, as it cannot fit; 0: none
  int largest_ = 0;                   ///< doublings that fit
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
        fmt::format("--objective largest-batch needs a number of micro-batches of method {}: in as many "
                    "parts as it takes, a batch of any size fits",
                    method.name));
  return contender(method, parameters + (parameters.empty() ? "micro-batches=1" : ":micro-batches=1"));
}

Expected<void> check_batch_can_change(const ModelSource& source, const Scenario& scenario) {
  const auto fixed = [&](const std::string& why) {
    return usage_error(
        fmt::format("--objective largest-batch needs a model whose batch can be chosen: '{}' {}", source.name(), why));
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
