// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/micro_batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <map>

#include "core/plan/micro_batch.h"
#include "core/search/method/notes.h"
#include "core/search/method/unite.h"

namespace turnpoint::search {

namespace {

constexpr int kMostMicroBatches = 1 << 20;
constexpr std::string_view kEveryNumber[] = {"all"};  // 0
constexpr double kSurveyShare = 0.4;                  // of the progress that is shown
// How far below what all have found a number's plans may still lie without a search of its own: what an eye on the
// chart cannot tell apart.
constexpr double kOpen = 0.003;

RunContext part_of(const RunContext& whole, int micro_batches, double before, double share) {
  RunContext part = whole;
  if (!whole.progress) return part;
  part.progress = [sink = whole.progress, micro_batches, before, share](const Progress& inner) {
    const double done = inner.fraction < 0 ? 0 : std::min(inner.fraction, 1.0);
    sink({fmt::format("{} micro-batch{}: {}", micro_batches, micro_batches == 1 ? "" : "es", inner.phase),
          before + share * done});
  };
  return part;
}

/// One searcher for each number, kept from run to run.
class MicroBatched : public Searcher {
 public:
  MicroBatched(std::string method, std::string parameters, int micro_batches, MakeMicroBatched make)
      : method_(std::move(method)),
        parameters_(std::move(parameters)),
        micro_batches_(micro_batches),
        make_(std::move(make)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto result =
        micro_batches_ > 0 ? searcher(micro_batches_).run(scenario, pass, context) : run_all(scenario, pass, context);
    if (!result || parameters_.empty()) return result;
    auto named = std::make_shared<Result>(**result);
    named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }

 private:
  Expected<ResultPtr> run_all(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) {
    const auto start = std::chrono::steady_clock::now();
    if (scenario->model != model_) numbers_ = micro_batch_numbers(*scenario), model_ = scenario->model;
    const bool exact = pass == SearchPass::exact && numbers_.size() > 1;
    sweep_ = {.survey = exact, .share = 1 / static_cast<double>(numbers_.size()), .enough_gap = kOpen, .known = {}};
    std::vector<ResultPtr> results, more;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      auto result = search(i, scenario, pass, context, exact ? kSurveyShare : 1);
      if (!result) return result.error();
      results.push_back(std::move(*result));
    }
    sweep_.survey = false;
    for (std::size_t i = 0; exact && i < numbers_.size(); ++i) {
      if (results[i]->exact || gap_above(*results[i], sweep_.known) <= kOpen) continue;
      auto result = search(i, scenario, pass, context, 1 - kSurveyShare);
      if (!result) return result.error();
      more.push_back(std::exchange(results[i], std::move(*result)));
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    auto united = unite_certified(method_, results, more, elapsed.count());
    united->notes = results.front()->notes;
    united->notes.push_back(fmt::format("searched with {} micro-batches", fmt::join(numbers_, ", ")));
    return ResultPtr(std::move(united));
  }

  // The search with the i-th number, whose plans the others then know. `share`: of all progress, that of such searches.
  Expected<ResultPtr> search(std::size_t i, const ScenarioPtr& scenario, SearchPass pass, const RunContext& context,
                             double share) {
    const double each = share / static_cast<double>(numbers_.size()),
                 before = (sweep_.survey || share == 1 ? 0 : kSurveyShare) + each * static_cast<double>(i);
    auto result = searcher(numbers_[i]).run(scenario, pass, part_of(context, numbers_[i], before, each));
    if (!result) return result;
    frontier::CostList found;
    for (const ResultPoint& point : (*result)->points) found.push_back({point.memory_bytes, point.time_s});
    sweep_.known = frontier::unite(sweep_.known, found);
    return result;
  }

  Searcher& searcher(int micro_batches) {
    auto& known = searchers_[micro_batches];
    if (!known) known = make_(micro_batches, micro_batches_ > 0 ? nullptr : &sweep_);
    return *known;
  }

  std::string method_, parameters_;
  int micro_batches_;
  MakeMicroBatched make_;
  ModelPtr model_;  ///< to which the numbers belong
  std::vector<int> numbers_;
  Sweep sweep_;
  std::map<int, std::unique_ptr<Searcher>> searchers_;
};

Expected<int> read_micro_batches(const std::string& method, std::string_view text) {
  const auto parameters = read_parameters("method " + method, micro_batch_options(), text);
  if (!parameters) return parameters.error();
  return parameters->integer("micro-batches");
}

}  // namespace

Expected<ScenarioPtr> OneMicroBatch::of(const ScenarioPtr& whole) {
  if (micro_batches_ == 1) return whole;
  if (whole->model != whole_) {
    const auto part = micro_batch_model(whole->model, micro_batches_);
    if (!part) return part.error();
    whole_ = whole->model;
    part_ = *part;
  }
  auto one = std::make_shared<Scenario>(*whole);
  one->model = part_;
  one->settings.batch = part_->batch;
  return ScenarioPtr(std::move(one));
}

const std::vector<OptionRecord>& micro_batch_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"micro-batches", "Micro-batches", "", OptionType::integer, 0, 1, kMostMicroBatches, kEveryNumber,
       "Parts of the batch that go through one after the other; all: every number is searched"},
  };
  return kOptions;
}

std::vector<int> micro_batch_numbers(const Scenario& scenario) {
  std::vector<int> numbers{1};
  const std::int64_t batch = scenario.model->batch;
  for (std::int64_t parts = 2; parts <= std::min<std::int64_t>(batch, kMostMicroBatches); ++parts)
    if (batch % parts == 0 && parts >= 2 * numbers.back() && micro_batch_model(scenario.model, parts))
      numbers.push_back(static_cast<int>(parts));
  return numbers;
}

void take_micro_batches(Method& method, const MakeMicroBatched& make) {
  method.options = micro_batch_options();
  method.make = nullptr;
  method.make_with = [name = method.name, make](std::string_view text) -> Expected<std::unique_ptr<Searcher>> {
    const auto micro_batches = read_micro_batches(name, text);
    if (!micro_batches) return micro_batches.error();
    return std::unique_ptr<Searcher>(std::make_unique<MicroBatched>(name, std::string(text), *micro_batches, make));
  };
  method.refuses_with = [name = method.name](const Scenario& scenario, std::string_view text) -> std::string {
    const auto micro_batches = read_micro_batches(name, text);
    if (!micro_batches) return micro_batches.error().what;
    if (*micro_batches <= 1) return {};
    const auto part = micro_batch_model(scenario.model, *micro_batches);
    return part ? std::string() : part.error().what;
  };
  method.traits = [name = method.name](std::string_view text) {
    const auto micro_batches = read_micro_batches(name, text);
    return MethodTraits{.micro_batches = micro_batches && *micro_batches != 1};
  };
}

}  // namespace turnpoint::search
