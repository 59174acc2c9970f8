// SPDX-License-Identifier: Apache-2.0
#include "core/search/method.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/search/baselines/megatron.h"
#include "core/search/frontier_tracking/published_searcher.h"
#include "core/search/frontier_tracking/searcher.h"

namespace turnpoint {

namespace {

std::string accepts_all(const Scenario&) { return {}; }

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> kMethods = {
      {"ft",
       "FT frontier tracking",
       "TensorOpt, arXiv 2004.10856",
       "Every Pareto-optimal plan over all configurations, by exact variable elimination",
       true,
       {},
       &accepts_all,
       &search::make_frontier_tracking},
      {"data-parallel",
       "Data-parallel",
       "common practice",
       "Every operator splits the batch over all devices; parameters are replicated",
       false,
       {},
       &accepts_all,
       &search::make_data_parallel},
      {"optcnn",
       "OptCNN",
       "OptCNN, arXiv 1802.04924; as the TensorOpt study simulates it",
       "The fastest plan over all configurations, memory ignored",
       false,
       {},
       &accepts_all,
       &search::make_optcnn},
      {"ft-published", "FT as published", "TensorOpt, arXiv 2004.10856",
       "The paper's Algorithms 1 to 3 as printed, for comparison; parameters time-limit=SECONDS, heuristic", true,
       search::published_options(), &accepts_all, nullptr, &search::make_published},
      {"ft-published-elimination", "FT-Elimination as published", "TensorOpt, arXiv 2004.10856",
       "The paper's baseline: elimination to two operators, then brute force; same parameters as ft-published", true,
       search::published_options(), &accepts_all, nullptr, &search::make_published_elimination},
      {"megatron",
       "Megatron",
       "Megatron-LM, arXiv 1909.08053",
       "Tensor groups inside a node times data parallelism, for every size of the groups; parameter sequence-parallel",
       true,
       {},
       &search::megatron_refuses,
       nullptr,
       &search::make_megatron},
  };
  return kMethods;
}

Expected<const Method*> find_method(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& method : methods()) {
    if (method.name == name) return &method;
    names.push_back(method.name);
  }
  Error error = usage_error("no method '" + name + "'");
  if (const auto close = closest_match(name, names); !close.empty()) error.hint = "did you mean " + close + "?";
  return error;
}

Expected<MethodChoice> choose_method(std::string_view text) {
  const auto colon = text.find(':');
  const auto method = find_method(std::string(text.substr(0, colon)));
  if (!method) return method.error();
  return MethodChoice{*method, colon == std::string_view::npos ? std::string() : std::string(text.substr(colon + 1))};
}

Expected<std::unique_ptr<Searcher>> make_searcher(const Method& method, std::string_view parameters) {
  if (method.make_with) return method.make_with(parameters);
  if (!parameters.empty()) return usage_error(fmt::format("method {} takes no parameters", method.name));
  return method.make();
}

}  // namespace turnpoint
