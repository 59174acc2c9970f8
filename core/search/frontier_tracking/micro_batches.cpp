// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/micro_batches.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "core/plan/micro_batch.h"

namespace turnpoint::search {

namespace {

constexpr int kMostMicroBatches = 1 << 20;
constexpr std::string_view kEveryNumber[] = {"all"};  // 0
constexpr double kLongest = 1e6;                      // seconds

/// With the parameters that it was asked for, and a word where time was short.
class Named : public Searcher {
 public:
  Named(std::unique_ptr<Searcher> searcher, std::string parameters, const Enough& enough)
      : searcher_(std::move(searcher)), parameters_(std::move(parameters)), enough_(enough) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    const auto result = searcher_->run(scenario, pass, context);
    if (!result || parameters_.empty()) return result;
    auto named = std::make_shared<Result>(**result);
    named->method_options = parameters_;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const bool open = !named->exact && named->gap.value_or(1) > enough_.gap.value_or(kOpenGap);
    if (pass == SearchPass::exact && enough_.seconds > 0 && spent.count() >= enough_.seconds && open)
      named->notes.push_back(fmt::format(
          "The search ended at its limit of {:g} s. With more time the gap may be smaller; searching again need not "
          "find the same plans.",
          enough_.seconds));
    return ResultPtr(std::move(named));
  }
  Expected<void> get_ready(const ScenarioPtr& scenario, const RunContext& context) override {
    return searcher_->get_ready(scenario, context);
  }

 private:
  std::unique_ptr<Searcher> searcher_;
  std::string parameters_;
  Enough enough_;
};

std::vector<OptionRecord> options_of(const MicroBatching& how) {
  std::vector<OptionRecord> options = micro_batch_options(how.otherwise);
  if (how.may_end) std::ranges::copy(ending_options(), std::back_inserter(options));
  return options;
}

struct ReadParameters {
  int micro_batches;
  Enough enough;
};

Expected<ReadParameters> read_those(const std::string& method, const MicroBatching& how, std::string_view text) {
  const auto options = options_of(how);
  const auto parameters = read_parameters("method " + method, options, text);
  if (!parameters) return parameters.error();
  ReadParameters read{parameters->integer("micro-batches"), {}};
  if (!how.may_end) return read;
  if (parameters->written("gap")) read.enough.gap = parameters->number("gap");
  read.enough.seconds = parameters->number("time-limit");
  return read;
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

std::vector<OptionRecord> micro_batch_options(int otherwise) {
  return {
      {"micro-batches", "Micro-batches", "", OptionType::integer, kEveryMicroBatch, double(otherwise),
       kMostMicroBatches, kEveryNumber,
       "Parts of the batch that go through one after the other; all: every number is searched"},
  };
}

std::vector<OptionRecord> ending_options() {
  return {
      {"gap",
       "Gap",
       "",
       OptionType::real,
       0,
       kOpenGap,
       1,
       {},
       "How much faster a better plan may still be, a part of the time, for the search to end; 0: the whole frontier. "
       "One number of micro-batches is searched to the end unless this is given"},
      {"time-limit",
       "Time limit",
       "s",
       OptionType::real,
       0,
       0,
       kLongest,
       {},
       "Wall time after which the search ends with what it has; what is found then is not reproducible. 0: none"},
  };
}

std::vector<int> micro_batch_numbers(const Scenario& scenario) {
  std::vector<int> numbers{1};
  if (scenario.settings.accounting == Accounting::paper) return numbers;
  const std::int64_t batch = scenario.model->batch;
  for (std::int64_t parts = 2; parts <= std::min<std::int64_t>(batch, kMostMicroBatches); ++parts)
    if (batch % parts == 0 && parts >= 2 * numbers.back() && micro_batch_model(scenario.model, parts))
      numbers.push_back(static_cast<int>(parts));
  return numbers;
}

void take_micro_batches(Method& method, MicroBatching how) {
  method.options = options_of(how);
  method.make = nullptr;
  method.make_with = [name = method.name, how](std::string_view text) -> Expected<std::unique_ptr<Searcher>> {
    const auto read = read_those(name, how, text);
    if (!read) return read.error();
    const auto& [micro_batches, enough] = *read;
    auto searcher = micro_batches == kEveryMicroBatch ? make_sweep(name, how, enough, micro_batch_numbers)
                                                      : how.make(micro_batches, nullptr, enough);
    return std::unique_ptr<Searcher>(std::make_unique<Named>(std::move(searcher), std::string(text), enough));
  };
  method.refuses_with = [name = method.name, how](const Scenario& scenario, std::string_view text) -> std::string {
    const auto read = read_those(name, how, text);
    if (!read) return read.error().what;
    if (read->micro_batches <= 1) return {};
    const auto part = micro_batch_model(scenario.model, read->micro_batches);
    return part ? std::string() : part.error().what;
  };
  method.traits = [name = method.name, how](std::string_view text) {
    const auto read = read_those(name, how, text);
    return MethodTraits{.micro_batches = read && read->micro_batches != 1};
  };
}

}  // namespace turnpoint::search
