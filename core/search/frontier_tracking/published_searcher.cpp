// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/published_searcher.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>

#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/frontier/published.h"
#include "core/search/frontier_tracking/plans.h"

namespace turnpoint::search {

namespace {

constexpr std::array<std::string_view, 2> kHeuristics = {"weighted", "memory"};

class PublishedSearcher : public Searcher {
 public:
  PublishedSearcher(std::string method, std::string parameters, frontier::PublishedOptions options)
      : method_(std::move(method)), parameters_(std::move(parameters)), options_(options) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    const auto structure = build_structure(*scenario, SearchSpace{}, context);
    if (!structure) return structure.error();
    const auto prices = std::make_shared<const Prices>(scenario, *structure);
    ThreadPool pool(context.threads);
    const auto priced = price_problem(*prices, pool, context);
    if (!priced) return priced.error();
    auto answer = frontier::solve_published(priced->problem, options_, context);
    if (!answer) {
      Error error = answer.error();
      if (error.where.empty()) error.where = method_;
      return error;
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const auto result = make_result(method_, scenario, prices, *priced, std::move(*answer), elapsed.count());
    if (parameters_.empty()) return result;
    auto named = std::make_shared<Result>(*result);
    named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }

 private:
  std::string method_, parameters_;
  frontier::PublishedOptions options_;
};

Expected<std::unique_ptr<Searcher>> make(std::string method, frontier::PublishedAlgorithm algorithm,
                                         std::string_view parameters) {
  frontier::PublishedOptions options;
  options.algorithm = algorithm;
  options.time_limit_s = published_options()[0].default_value;
  if (!parameters.empty())
    for (const auto part : split(parameters, ':')) {
      const auto sign = part.find('=');
      const auto key = part.substr(0, sign);
      const auto& records = published_options();
      const auto record = std::find_if(records.begin(), records.end(), [&](const auto& r) { return r.key == key; });
      if (record == records.end() || sign == std::string_view::npos)
        return usage_error(
            fmt::format("method {} knows time-limit=SECONDS and heuristic=weighted or memory, not '{}'", method, part));
      const auto value = parse_option(*record, part.substr(sign + 1));
      if (!value) return usage_error(fmt::format("method {}: {}", method, value.error().what.substr(2)));
      if (key == "heuristic")
        options.heuristic =
            *value == 0 ? frontier::PublishedHeuristic::weighted : frontier::PublishedHeuristic::least_memory;
      else
        options.time_limit_s = *value;
    }
  return std::unique_ptr<Searcher>(
      std::make_unique<PublishedSearcher>(std::move(method), std::string(parameters), options));
}

}  // namespace

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

Expected<std::unique_ptr<Searcher>> make_published(std::string_view parameters) {
  return make("ft-published", frontier::PublishedAlgorithm::dynamic_programme, parameters);
}

Expected<std::unique_ptr<Searcher>> make_published_elimination(std::string_view parameters) {
  return make("ft-published-elimination", frontier::PublishedAlgorithm::elimination, parameters);
}

}  // namespace turnpoint::search
