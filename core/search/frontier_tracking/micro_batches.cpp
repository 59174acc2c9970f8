// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/micro_batches.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/plan/micro_batch.h"

namespace turnpoint::search {

namespace {

constexpr int kMostMicroBatches = 1 << 20;
constexpr std::string_view kEveryNumber[] = {"all"};  // 0

/// With the parameters that it was asked for.
class Named : public Searcher {
 public:
  Named(std::unique_ptr<Searcher> searcher, std::string parameters)
      : searcher_(std::move(searcher)), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto result = searcher_->run(scenario, pass, context);
    if (!result || parameters_.empty()) return result;
    auto named = std::make_shared<Result>(**result);
    named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }
  Expected<void> get_ready(const ScenarioPtr& scenario, const RunContext& context) override {
    return searcher_->get_ready(scenario, context);
  }

 private:
  std::unique_ptr<Searcher> searcher_;
  std::string parameters_;
};

Expected<int> read_micro_batches(const std::string& method, int otherwise, std::string_view text) {
  const auto options = micro_batch_options(otherwise);
  const auto parameters = read_parameters("method " + method, options, text);
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

std::vector<OptionRecord> micro_batch_options(int otherwise) {
  return {
      {"micro-batches", "Micro-batches", "", OptionType::integer, kEveryMicroBatch, double(otherwise),
       kMostMicroBatches, kEveryNumber,
       "Parts of the batch that go through one after the other; all: every number is searched"},
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

void take_micro_batches(Method& method, MicroBatching micro_batching) {
  const int otherwise = micro_batching.otherwise;
  method.options = micro_batch_options(otherwise);
  method.make = nullptr;
  method.make_with = [name = method.name,
                      micro_batching](std::string_view text) -> Expected<std::unique_ptr<Searcher>> {
    const auto micro_batches = read_micro_batches(name, micro_batching.otherwise, text);
    if (!micro_batches) return micro_batches.error();
    auto searcher = *micro_batches == kEveryMicroBatch ? make_sweep(name, micro_batching, micro_batch_numbers)
                                                       : micro_batching.make(*micro_batches, nullptr);
    return std::unique_ptr<Searcher>(std::make_unique<Named>(std::move(searcher), std::string(text)));
  };
  method.refuses_with = [name = method.name, otherwise](const Scenario& scenario,
                                                        std::string_view text) -> std::string {
    const auto micro_batches = read_micro_batches(name, otherwise, text);
    if (!micro_batches) return micro_batches.error().what;
    if (*micro_batches <= 1) return {};
    const auto part = micro_batch_model(scenario.model, *micro_batches);
    return part ? std::string() : part.error().what;
  };
  method.traits = [name = method.name, otherwise](std::string_view text) {
    const auto micro_batches = read_micro_batches(name, otherwise, text);
    return MethodTraits{.micro_batches = micro_batches && *micro_batches != 1};
  };
}

}  // namespace turnpoint::search
