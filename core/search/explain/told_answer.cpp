// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/told_answer.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/plan/resemblance.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr double kSame = 1e-9;  // relative, as far as two evaluations of one plan agree

std::string costs(const ResultPoint& point) {
  return fmt::format("{} and {}", format_bytes(point.memory_bytes), format_seconds(point.time_s));
}

/// "3.5 %"; of little as many digits as say something.
std::string share(double part) {
  const double percent = 100 * std::abs(part);
  return percent >= 0.1 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.1g} %", percent);
}

std::string certainty(const ForcedPlan& plan) {
  if (!plan.within) return "no plan with it needs less memory";
  if (plan.gap == 0) return "exactly: no plan with it is faster";
  return fmt::format("within {}: no plan with it is faster by more", share(plan.gap));
}

std::string signed_bytes(std::int64_t bytes) {
  if (bytes == 0) return "-";
  return (bytes < 0 ? "\u2212" : "+") + format_bytes(std::abs(bytes));
}

std::string signed_seconds(double seconds) {
  if (seconds == 0) return "-";
  return (seconds < 0 ? "\u2212" : "+") + format_seconds(std::abs(seconds));
}

/// Columns are padded by characters, of which signs and dashes are several bytes each.
std::string padded(const std::string& text, std::size_t width) {
  const auto characters = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  return characters < width ? std::string(width - characters, ' ') + text : text;
}

std::string row(const std::string& layer, const DifferenceParts& parts) {
  std::string line = fmt::format("  {:<28.28}", layer);
  for (const double seconds :
       {parts.time_s(), parts.compute_s, parts.recompute_s, parts.weights_s, parts.activations_s, parts.offload_s})
    line += padded(signed_seconds(seconds), 12);
  return line + padded(signed_bytes(parts.memory_bytes), 12);
}

json parts_json(const DifferenceParts& parts) {
  return {{"memory_bytes", parts.memory_bytes}, {"time_s", parts.time_s()},     {"compute_s", parts.compute_s},
          {"recompute_s", parts.recompute_s},   {"weights_s", parts.weights_s}, {"activations_s", parts.activations_s},
          {"offload_s", parts.offload_s}};
}

json point_json(const ResultPoint& point) { return {{"memory_bytes", point.memory_bytes}, {"time_s", point.time_s}}; }

json forced_json(const ForcedPlan& plan, const Model& model, double than_s) {
  json made = point_json(plan.point);
  made["within"] = plan.within;
  made["exact"] = plan.gap == 0;
  made["gap"] = plan.gap;
  made["slower"] = plan.point.time_s / than_s - 1;
  made["words"] = describe(resemblance_of(*plan.plan, model));
  return made;
}

}  // namespace

std::string slower_words(double seconds, double than_seconds) {
  const double slower = seconds / than_seconds - 1;
  if (std::abs(slower) <= kSame) return "as fast";
  return fmt::format("{} ({}) {}", share(slower), format_seconds(std::abs(seconds - than_seconds)),
                     slower < 0 ? "faster" : "slower");
}

std::vector<std::string> describe(const PlanDifference& difference) {
  std::vector<std::string> lines;
  if (difference.layers.empty() && difference.changes.empty()) return {"Nothing changes."};
  lines.push_back("Where the difference comes from:");
  std::string head = fmt::format("  {:<28}", "layer");
  for (const char* title : {"time", "computing", "again", "weights", "activations", "host", "memory"})
    head += padded(title, 12);
  lines.push_back(std::move(head));
  for (const auto& layer : difference.layers) lines.push_back(row(layer.name, layer.parts));
  lines.push_back(row("all", difference.total));
  if (!difference.changes.empty()) lines.push_back("What changes:");
  for (const PlanChange& change : difference.changes)
    lines.push_back(fmt::format("  {}{}: {} \u2192 {}", change.tensor ? "tensor " : "", describe_place(change),
                                change.was, change.is));
  return lines;
}

std::vector<std::string> describe(const ForcedAnswer& answer, const Model& model) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Point {}, {} by plain sums: {}", answer.index, costs(answer.point),
                              describe(resemblance_of(*answer.plan, model))));
  for (std::size_t r = 0; r < answer.rules.size(); ++r) {
    const auto& [named, forced] = answer.reach[r];
    std::string line =
        fmt::format("Forced: {} \u2014 {} in {} of {} operator{}", answer.rules[r].pattern,
                    describe(answer.rules[r].choice), forced.size(), named.size(), named.size() == 1 ? "" : "s");
    if (forced.size() < named.size()) line += "; the others are free";
    lines.push_back(line + ".");
  }
  if (answer.already) {
    lines.push_back("The point's plan does so already: the choice costs nothing.");
  } else {
    const ForcedPlan& plan = answer.same_memory;
    lines.push_back(
        plan.within ? fmt::format("Within the point's memory: {}, {} ({}).", costs(plan.point),
                                  slower_words(plan.point.time_s, answer.point.time_s), certainty(plan))
                    : fmt::format("No plan with it fits in the point's memory; the one that needs least takes {}, {}.",
                                  costs(plan.point), slower_words(plan.point.time_s, answer.point.time_s)));
    lines.push_back("  " + describe(resemblance_of(*plan.plan, model)));
  }
  const ForcedPlan& fitting = answer.fitting;
  lines.push_back(
      fitting.within
          ? fmt::format("Fastest with it in the devices' memory: {} ({}).", costs(fitting.point), certainty(fitting))
          : fmt::format("No plan with it fits in the devices' memory; the least is {}.", costs(fitting.point)));
  if (!answer.already) {
    auto more = describe(answer.difference);
    lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return lines;
}

nlohmann::json to_json(const PlanDifference& difference) {
  json layers = json::array(), changes = json::array();
  for (const auto& layer : difference.layers) {
    layers.push_back(parts_json(layer.parts));
    layers.back()["layer"] = layer.name;
  }
  for (const PlanChange& change : difference.changes)
    changes.push_back({{"what", change.tensor ? "tensor" : "operator"},
                       {"layers", change.layers},
                       {"names", change.names},
                       {"was", change.was},
                       {"is", change.is}});
  return {{"total", parts_json(difference.total)}, {"layers", std::move(layers)}, {"changes", std::move(changes)}};
}

nlohmann::json explanation_json(const ForcedAnswer& answer, const Result& result) {
  const Model& model = *result.scenario->model;
  json point = point_json(answer.point);
  point["index"] = answer.index;
  point["words"] = describe(resemblance_of(*answer.plan, model));
  json rules = json::array();
  for (std::size_t r = 0; r < answer.rules.size(); ++r) {
    json operators = json::array();
    for (const OperatorId op : answer.reach[r].forced) operators.push_back(model.operators[op].name);
    rules.push_back({{"pattern", answer.rules[r].pattern},
                     {"choice", to_string(answer.rules[r].choice)},
                     {"named", answer.reach[r].named.size()},
                     {"operators", std::move(operators)}});
  }
  json document = {{"format", "turnpoint/explanation@1"},
                   {"method", result.method},
                   {"point", std::move(point)},
                   {"force", std::move(rules)},
                   {"already", answer.already},
                   {"same_memory", forced_json(answer.same_memory, model, answer.point.time_s)},
                   {"difference", to_json(answer.difference)}};
  document["fitting"] = forced_json(answer.fitting, model, answer.point.time_s);
  return document;
}

}  // namespace turnpoint
