// SPDX-License-Identifier: Apache-2.0
#include "app/cli/asked_methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstdio>

#include "core/base/text.h"
#include "core/cost/transformer_roles.h"

namespace turnpoint::cli {

std::string left_out_of_all() {
  std::vector<std::string> names;
  for (const auto& method : methods())
    if (method.for_comparison) names.push_back(method.name);
  return fmt::format("{}{}{}", fmt::join(names.begin(), names.end() - 1, ", "), names.size() > 1 ? " and " : "",
                     names.back());
}

namespace {

/// The methods that `all` stands for, or those of the list, with their parameters.
Expected<std::vector<MethodChoice>> named_methods(const std::string& list, const Scenario& scenario) {
  std::vector<MethodChoice> named;
  if (list == "all") {
    for (const Method& method : methods())
      if (!method.for_comparison && refusal_of(method, {}, scenario).empty()) named.push_back({&method, {}});
    return named;
  }
  for (const auto part : split(list, ',')) {
    if (part.empty()) return usage_error(fmt::format("--method '{}' has an empty name", list));
    if (part == "all") return usage_error("--method all stands alone, not in a list");
    auto choice = choose_method(part);
    if (!choice) return choice.error();
    named.push_back(std::move(*choice));
  }
  return named;
}

}  // namespace

Expected<std::vector<ChosenMethod>> chosen_methods(const std::string& list, const Scenario& scenario,
                                                   const SearchLimits& limits) {
  auto named = named_methods(list, scenario);
  if (!named) return named.error();
  std::vector<const Method*> asked;
  for (const MethodChoice& one : *named) asked.push_back(one.method);
  if (const auto suit = check_limits(asked, limits); !suit) return suit.error();
  std::vector<ChosenMethod> chosen;
  for (MethodChoice& choice : *named) {
    choice.parameters = with_limits(*choice.method, choice.parameters, limits);
    std::string name = choice.method->name + (choice.parameters.empty() ? "" : ":" + choice.parameters);
    if (std::ranges::find(chosen, name, &ChosenMethod::name) != chosen.end())
      return usage_error(fmt::format("--method has '{}' twice", name));
    auto searcher = make_searcher(*choice.method, choice.parameters);
    if (!searcher) return searcher.error();
    chosen.push_back(
        {std::move(name), choice, std::move(*searcher), refusal_of(*choice.method, choice.parameters, scenario)});
  }
  return chosen;
}

Expected<TrainingSettings> take_settings(const std::string& path, ScenarioArguments& scenario) {
  auto settings = open_training_settings(path);
  if (!settings) return settings;
  const auto text_of = [&](std::string_view key) -> std::string& {
    return std::find_if(scenario.options.begin(), scenario.options.end(), [&](const auto& o) { return o.first == key; })
        ->second;
  };
  std::int64_t devices = parse_int(text_of("devices")).value_or(0);
  if (devices <= 0 && !scenario.hardware.empty()) {
    const auto hardware = open_hardware(scenario.hardware);
    if (!hardware) return hardware.error();
    devices = (*hardware)->devices();
  }
  std::string taken;
  const auto take = [&](std::string_view key, const std::string& value) {
    if (!text_of(key).empty() || value.empty() || value == "0") return;
    text_of(key) = value;
    taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", key, value);
  };
  take("batch", std::to_string(settings->batch_on(devices)));
  take("sequence", std::to_string(settings->sequence));
  take("precision", settings->precision);
  if (const auto batch = parse_int(text_of("batch")); batch && settings->micro_batch > 0)
    settings->global_batch = *batch;
  std::fprintf(stderr, "note: %s: settings of %s%s%s\n", path.c_str(), settings->framework.c_str(),
               taken.empty() ? "" : "; taken: ", taken.c_str());
  return settings;
}

Expected<std::string> with_split(const std::string& methods, const TrainingSettings& settings,
                                 const Scenario& scenario) {
  const auto roles = find_transformer_roles(*scenario.model, scenario.settings.split_windows);
  const auto split = settings.split_on(scenario.cluster->devices(), roles ? roles->layers : 0);
  if (!split) return split.error();
  if (methods == "all") return usage_error("--settings adds a method to a list; --method all stands alone");
  return fmt::format("{},{}:{}", methods, split_method().name, *split);
}

}  // namespace turnpoint::cli
