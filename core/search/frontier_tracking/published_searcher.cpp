// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/published_searcher.h"

#include <array>

#include "core/frontier/published.h"
#include "core/search/frontier_tracking/sharding_run.h"

namespace turnpoint::search {

namespace {

constexpr std::array<std::string_view, 2> kHeuristics = {"weighted", "memory"};

class PublishedSearcher : public Searcher {
 public:
  PublishedSearcher(std::string method, std::string parameters, frontier::PublishedOptions options)
      : method_(std::move(method)), parameters_(std::move(parameters)), options_(options) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const auto solve = [&](const Structure&, const PricedProblem& priced) -> Expected<frontier::Answer> {
      auto answer = frontier::solve_published(priced.problem, options_, context);
      if (answer) return std::move(*answer);
      Error error = answer.error();
      if (error.where.empty()) error.where = method_;
      return error;
    };
    const auto result = run_sharding(method_, scenario, SearchSpace{}, solve, context);
    if (!result || parameters_.empty()) return result;
    auto named = std::make_shared<Result>(**result);
    named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }

 private:
  std::string method_, parameters_;
  frontier::PublishedOptions options_;
};

const std::vector<OptionRecord>& published_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"time-limit",
       "Time limit",
       "s",
       OptionType::real,
       0,
       60,
       1e9,
       {},
       "Wall time after which the search gives up; 0: none"},
      {"heuristic", "Heuristic elimination", "", OptionType::choice, 0, 0, 0, kHeuristics,
       "Which configuration a heuristic elimination fixes"},
  };
  return kOptions;
}

Expected<std::unique_ptr<Searcher>> make(const std::string& method, frontier::PublishedAlgorithm algorithm,
                                         std::string_view text) {
  const auto parameters = read_parameters("method " + method, published_options(), text);
  if (!parameters) return parameters.error();
  frontier::PublishedOptions options;
  options.algorithm = algorithm;
  options.time_limit_s = parameters->number("time-limit");
  options.heuristic = parameters->choice("heuristic") == "memory" ? frontier::PublishedHeuristic::least_memory
                                                                  : frontier::PublishedHeuristic::weighted;
  return std::unique_ptr<Searcher>(std::make_unique<PublishedSearcher>(method, std::string(text), options));
}

/// What both have in common.
Method as_published(std::string name, frontier::PublishedAlgorithm algorithm) {
  return {
      .name = name,
      .paper = "TensorOpt, arXiv 2004.10856",
      .frontier = true,
      .for_comparison = true,
      .holds_everything_once = true,
      .options = published_options(),
      .make_with = [name, algorithm](std::string_view text) { return make(name, algorithm, text); },
  };
}

}  // namespace

Method published_method() {
  Method method = as_published("ft-published", frontier::PublishedAlgorithm::dynamic_programme);
  method.title = "FT as published";
  method.description = "The paper's Algorithms 1 to 3 as printed, for comparison";
  method.parameter_words = "; parameters time-limit=SECONDS, heuristic";
  return method;
}

Method published_elimination_method() {
  Method method = as_published("ft-published-elimination", frontier::PublishedAlgorithm::elimination);
  method.title = "FT-Elimination as published";
  method.description = "The paper's baseline: elimination to two operators, then brute force";
  method.parameter_words = "; same parameters as ft-published";
  return method;
}

}  // namespace turnpoint::search
