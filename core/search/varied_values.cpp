// SPDX-License-Identifier: Apache-2.0
// What can be varied, over which values, and the scenario at a value.
#include <fmt/format.h>
#include <algorithm>
#include <iterator>

#include "core/base/text.h"
#include "core/import/source/hidden_size.h"
#include "core/search/objectives.h"
#include "core/search/scenario_of.h"
#include "core/search/variation.h"

namespace turnpoint {

namespace {

constexpr VariedQuantity kQuantities[] = {
    {Varied::batch, "batch", "Batch", "samples"},
    {Varied::sequence, "sequence", "Sequence", "tokens"},
    {Varied::devices, "devices", "Devices", ""},
    {Varied::micro_batches, "micro-batches", "Micro-batches", ""},
    {Varied::hidden, "hidden", "Hidden size", "channels"},
};
/// By the order of Varied: what scenarios, methods and models take of each.
constexpr std::int64_t kMost[] = {1 << 24, 1 << 24, 65536, 1 << 20, 1 << 22};

std::int64_t most_of(Varied quantity) { return kMost[static_cast<std::size_t>(quantity)]; }

Expected<std::int64_t> read_value(Varied quantity, std::string_view text) {
  const auto value = parse_int(text);
  if (value && *value >= 1 && *value <= most_of(quantity)) return *value;
  return usage_error(
      fmt::format("{}: '{}' is no whole number between 1 and {}", quantity_of(quantity).key, text, most_of(quantity)));
}

/// One part of a list: a number, or two with dots between them.
Expected<void> read_part(Varied quantity, std::string_view part, std::vector<std::int64_t>& values) {
  const auto dots = part.find("..");
  const auto first = read_value(quantity, part.substr(0, dots));
  if (!first) return first.error();
  values.push_back(*first);
  if (dots == std::string_view::npos) return {};
  const auto last = read_value(quantity, part.substr(dots + 2));
  if (!last) return last.error();
  if (*last < *first)
    return usage_error(fmt::format("{}: '{}' ends below where it begins", quantity_of(quantity).key, part));
  for (std::int64_t value = 2 * *first; value < *last; value *= 2) values.push_back(value);
  values.push_back(*last);
  return {};
}

/// What the model, or its graph, says against another value than its own; empty: nothing.
std::string stays_as_it_is(Varied quantity, const Scenario& scenario, std::int64_t value) {
  if (quantity == Varied::batch && scenario.model->batch != value) return "has one batch and no other";
  if (quantity == Varied::sequence && scenario.model->sequence != value) return "has one sequence and no other";
  if (quantity == Varied::devices && scenario.cluster->devices() != value)
    return fmt::format("has {} devices, all of which are taken", scenario.cluster->devices());
  return {};
}

constexpr std::string_view kMicroBatchesIs = "micro-batches=";

std::string without_micro_batches(const std::string& parameters) {
  std::string others;
  if (parameters.empty()) return others;
  for (const auto part : split(parameters, ':'))
    if (!part.starts_with(kMicroBatchesIs)) others += fmt::format("{}{}", others.empty() ? "" : ":", part);
  return others;
}

}  // namespace

std::span<const VariedQuantity> varied_quantities() { return kQuantities; }

const VariedQuantity& quantity_of(Varied quantity) { return kQuantities[static_cast<std::size_t>(quantity)]; }

Expected<std::vector<std::int64_t>> parse_varied_values(Varied quantity, std::string_view text) {
  std::vector<std::int64_t> values;
  for (std::string_view part : split(text, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (auto read = read_part(quantity, part, values); !read) return read.error();
    if (values.size() > 4 * VariedAxis::kMostValues) break;  // whatever they are, they are too many
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() > VariedAxis::kMostValues)
    return usage_error(fmt::format("{}: more than {} values", quantity_of(quantity).key, VariedAxis::kMostValues));
  return values;
}

Expected<VariedAxis> parse_varied_axis(std::string_view text) {
  const auto equals = text.find('=');
  const std::string key(text.substr(0, equals));
  std::vector<std::string> keys;
  for (const VariedQuantity& one : kQuantities) {
    keys.emplace_back(one.key);
    if (one.key != key) continue;
    if (equals == std::string_view::npos || equals + 1 == text.size())
      return usage_error(fmt::format("'{}' names no values: {}=8,16,32 or {}=8..512", key, key, key));
    auto values = parse_varied_values(one.quantity, text.substr(equals + 1));
    if (!values) return values.error();
    return VariedAxis{one.quantity, std::move(*values)};
  }
  Error error = usage_error(fmt::format("'{}' cannot be varied; {} can", key, fmt::join(keys, ", ")));
  if (const std::string close = closest_match(key, keys); !close.empty()) error.hint = "did you mean '" + close + "'?";
  return error;
}

std::int64_t own_value(Varied quantity, const VariationSubject& subject) {
  switch (quantity) {
    case Varied::batch: return subject.scenario->tasks ? 0 : subject.scenario->model->batch;
    case Varied::sequence: return subject.scenario->model->sequence;
    case Varied::devices: return subject.scenario->cluster->devices();
    case Varied::micro_batches: return 0;
    case Varied::hidden: break;
  }
  const auto sized = hidden_size_of(*subject.source);
  return sized ? (*sized)->hidden() : 0;
}

Expected<void> check_can_vary(Varied quantity, const VariationSubject& subject) {
  const bool of_tasks = subject.scenario->tasks != nullptr;
  if (of_tasks && quantity != Varied::devices)
    return usage_error(fmt::format("is a task graph, which has no {} to choose", quantity_of(quantity).key),
                       subject.source->source());
  if (quantity == Varied::sequence && subject.scenario->model->sequence <= 0)
    return usage_error("has no sequence to choose", subject.source->source());
  if (quantity == Varied::devices && subject.scenario->cluster->mixed())
    return usage_error("is of unlike devices, all of which are taken", subject.hardware);
  if (quantity == Varied::hidden)
    if (const auto sized = hidden_size_of(*subject.source); !sized) return sized.error();
  return {};
}

std::vector<std::int64_t> usual_values(Varied quantity, const VariationSubject& subject) {
  constexpr std::int64_t kMicroBatches[] = {1, 2, 4, 8, 16};
  std::vector<std::int64_t> values;
  if (!check_can_vary(quantity, subject)) return values;
  if (quantity == Varied::micro_batches) {
    std::copy_if(std::begin(kMicroBatches), std::end(kMicroBatches), std::back_inserter(values),
                 [&](std::int64_t parts) { return subject.scenario->model->batch % parts == 0; });
    return values;
  }
  const std::int64_t own = own_value(quantity, subject);
  if (quantity == Varied::devices) {
    // More than there are take methods with many choices long: who wants them types them.
    const ClusterPtr& whole = subject.cluster ? subject.cluster : subject.scenario->cluster;
    for (const int count : doubling_counts(*whole))
      if (count >= own / 8) values.push_back(count);
    values.push_back(own);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }
  for (const std::int64_t part : {4, 2, 1})
    if (own % part == 0) values.push_back(own / part);
  for (const std::int64_t times : {2, 4})
    if (own <= most_of(quantity) / times) values.push_back(own * times);
  return values;
}

Expected<ScenarioPtr> varied_scenario(const VariationSubject& subject, Varied quantity, std::int64_t value,
                                      const ModelOpener& open) {
  if (quantity == Varied::micro_batches) return subject.scenario;
  Settings settings = subject.settings;
  ModelSourcePtr source = subject.source;
  if (quantity == Varied::batch) settings.batch = value;
  if (quantity == Varied::sequence) settings.sequence = value;
  if (quantity == Varied::devices) settings.devices = static_cast<int>(value);
  if (quantity == Varied::hidden) {
    const auto sized = hidden_size_of(*source);
    if (!sized) return sized.error();
    auto opened = open((*sized)->with_hidden(value));
    if (!opened) return opened.error();
    source = std::move(*opened);
  }
  auto scenario = scenario_on(*source, subject.cluster, subject.hardware, settings);
  if (!scenario) return scenario.error();
  if (auto why = stays_as_it_is(quantity, **scenario, value); !why.empty())
    return usage_error(why, quantity == Varied::devices ? subject.hardware : source->source());
  return scenario;
}

std::string varied_parameters(const VariedMethod& method, Varied quantity, std::int64_t value) {
  if (quantity != Varied::micro_batches) return method.parameters;
  const std::string others = without_micro_batches(method.parameters);
  return fmt::format("{}{}{}{}", others, others.empty() ? "" : ":", kMicroBatchesIs, value);
}

std::vector<VariedMethod> varied_methods(std::vector<VariedMethod> methods, Varied quantity) {
  if (quantity != Varied::micro_batches) return methods;
  std::vector<VariedMethod> each_once;
  for (VariedMethod& method : methods) {
    method.parameters = without_micro_batches(method.parameters);
    const auto same = [&](const VariedMethod& other) { return other.name() == method.name(); };
    if (std::none_of(each_once.begin(), each_once.end(), same)) each_once.push_back(std::move(method));
  }
  return each_once;
}

}  // namespace turnpoint
