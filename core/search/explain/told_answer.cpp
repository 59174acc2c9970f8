// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/told_answer.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/plan/layer_words.h"
#include "core/plan/resemblance.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr double kSame = 1e-9;  // relative, as far as two evaluations of one plan agree

void append(std::vector<std::string>& lines, std::vector<std::string> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::string costs(const ResultPoint& point) {
  return fmt::format("{} and {}", format_bytes(point.memory_bytes), format_seconds(point.time_s));
}

/// "3.5 %"; of little as many digits as say something.
std::string share(double part) {
  const double percent = 100 * std::abs(part);
  if (percent > 0 && percent < 1e-3) return "less than 0.001 %";
  return percent >= 0.1 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.1g} %", percent);
}

std::string certainty(const ForcedPlan& plan) {
  const char* better = plan.within ? "is faster" : "needs less memory";
  if (plan.gap == 0) return fmt::format("exactly: no plan with it {}", better);
  return fmt::format("within {}: no plan with it {} by more", share(plan.gap), better);
}

/// Of a plan of least memory that does not fit: whether any other may is known where it is exact.
const char* none_fits(const ForcedPlan& least) {
  return least.gap == 0 ? "No plan with it fits" : "No plan with it was found that fits";
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

std::string row(const std::string& layer, const DifferenceParts& parts, bool waits) {
  std::string line = fmt::format("  {:<28.28}", layer);
  for (const double seconds :
       {parts.time_s(), parts.compute_s, parts.recompute_s, parts.weights_s, parts.activations_s, parts.offload_s})
    line += padded(signed_seconds(seconds), 12);
  if (waits) line += padded(signed_seconds(parts.waiting_s), 12);
  return line + padded(signed_bytes(parts.memory_bytes), 12);
}

std::vector<std::string> by_layer(const std::string& title, const Plan& plan, const Model& model) {
  std::vector<std::string> lines;
  for (const LayerWords& line : words_by_layer(plan, model)) lines.push_back("  " + describe(line));
  if (!lines.empty()) lines.insert(lines.begin(), title);
  return lines;
}

json by_layer_json(const Plan& plan, const Model& model) {
  json layers = json::array();
  for (const LayerWords& line : words_by_layer(plan, model)) {
    layers.push_back({{"layers", line.layers}, {"words", line.words}});
    if (!line.stages.empty()) layers.back()["stages"] = line.stages;
  }
  return layers;
}

json parts_json(const DifferenceParts& parts) {
  return {{"memory_bytes", parts.memory_bytes}, {"time_s", parts.time_s()},     {"compute_s", parts.compute_s},
          {"recompute_s", parts.recompute_s},   {"weights_s", parts.weights_s}, {"activations_s", parts.activations_s},
          {"offload_s", parts.offload_s},       {"waiting_s", parts.waiting_s}};
}

json point_json(const ResultPoint& point) { return {{"memory_bytes", point.memory_bytes}, {"time_s", point.time_s}}; }

json forced_json(const ForcedPlan& plan, const Model& model, double than_s) {
  json made = point_json(plan.point);
  made["within"] = plan.within;
  made["exact"] = plan.gap == 0;
  made["gap"] = plan.gap;
  made["slower"] = plan.point.time_s / than_s - 1;
  made["words"] = describe(resemblance_of(*plan.plan, model));
  made["by_layer"] = by_layer_json(*plan.plan, model);
  return made;
}

/// "1.2 GiB more memory".
std::string more_memory(std::int64_t bytes) {
  if (bytes == 0) return "as much memory";
  return fmt::format("{} {} memory", format_bytes(std::abs(bytes)), bytes < 0 ? "less" : "more");
}

std::string more_words(const Worth& worth) {
  switch (worth.of) {
    case Worth::Of::intra_bandwidth: return fmt::format("A further {:.0f} GB/s inside nodes", worth.more / 1e9);
    case Worth::Of::inter_bandwidth: return fmt::format("A further {:.0f} GB/s of every node", worth.more / 1e9);
    case Worth::Of::device_speed:
      return fmt::format("A further {:.0f} TFLOP/s of every device, its memory as much faster,", worth.more / 1e12);
  }
  return {};
}

}  // namespace

nlohmann::json explanation_head(const Result& result, std::size_t index, const std::string& words) {
  json point = point_json(result.points[index]);
  point["index"] = index;
  point["words"] = words;
  return {{"format", "turnpoint/explanation@1"}, {"method", result.method}, {"point", std::move(point)}};
}

std::string slower_words(double seconds, double than_seconds) {
  const double slower = seconds / than_seconds - 1;
  if (std::abs(slower) <= kSame) return "as fast";
  const std::string apart = format_seconds(std::abs(seconds - than_seconds));
  if (slower > 1) return fmt::format("{:.1f} times as long ({} more)", slower + 1, apart);
  return fmt::format("{} ({}) {}", share(slower), apart, slower < 0 ? "faster" : "slower");
}

std::vector<std::string> describe(const PlanDifference& difference) {
  std::vector<std::string> lines;
  if (difference.layers.empty() && difference.total.none() && difference.changes.empty()) return {"Nothing changes."};
  const bool waits = difference.of_stages;
  lines.push_back(waits ? "Where the difference comes from, time in the slowest stage, memory in the largest:"
                        : "Where the difference comes from:");
  std::string head = fmt::format("  {:<28}", waits ? "" : "layer");
  for (const char* title : {"time", "computing", "again", "weights", "activations", "host", "waiting", "memory"})
    if (waits || std::string_view(title) != "waiting") head += padded(title, 12);
  lines.push_back(std::move(head));
  for (const auto& layer : difference.layers) lines.push_back(row(layer.name, layer.parts, waits));
  lines.push_back(row("all", difference.total, waits));
  if (!difference.changes.empty()) lines.push_back("What changes:");
  for (const PlanChange& change : difference.changes)
    lines.push_back(fmt::format("  {}{}: {} \u2192 {}", change.tensor ? "tensor " : "", describe_place(change),
                                change.was, change.is));
  return lines;
}

std::vector<std::string> sentences(const ForcedAnswer& answer, const Result& result) {
  const Model& model = *result.scenario->model;
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
    lines.push_back(plan.within ? fmt::format("Within the point's memory: {}, {} ({}).", costs(plan.point),
                                              slower_words(plan.point.time_s, answer.point.time_s), certainty(plan))
                                : fmt::format("{} in the point's memory; the least takes {}, {} ({}).", none_fits(plan),
                                              costs(plan.point), slower_words(plan.point.time_s, answer.point.time_s),
                                              certainty(plan)));
    lines.push_back("  " + describe(resemblance_of(*plan.plan, model)));
    append(lines, by_layer("Layer by layer:", *plan.plan, model));
  }
  const ForcedPlan& fitting = answer.fitting;
  if (!fitting.within) {
    lines.push_back(fmt::format("{} in the devices' memory; the least takes {} ({}).", none_fits(fitting),
                                costs(fitting.point), certainty(fitting)));
  } else {
    std::string line = fmt::format("Fastest with it in the devices' memory: {}", costs(fitting.point));
    if (answer.fastest)
      line += fmt::format(", {} beside point {}, the fastest that fits",
                          slower_words(fitting.point.time_s, result.points[*answer.fastest].time_s), *answer.fastest);
    lines.push_back(fmt::format("{} ({}).", line, certainty(fitting)));
  }
  return lines;
}

std::vector<std::string> describe(const ForcedAnswer& answer, const Result& result) {
  std::vector<std::string> lines = sentences(answer, result);
  if (!answer.already) append(lines, describe(answer.difference));
  return lines;
}

std::vector<std::string> describe(const PointStory& story, const Result& result) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Point {} of {}, {} by plain sums: {}", story.index, result.method, costs(story.point),
                              describe(story.resembles)));
  if (story.nearest) {
    lines.push_back(fmt::format("Nearest named strategy: {}, {}, {} with {}.", story.nearest->name,
                                costs(story.nearest->point),
                                slower_words(story.nearest->point.time_s, story.point.time_s),
                                more_memory(story.nearest->point.memory_bytes - story.point.memory_bytes)));
    lines.push_back("  " + story.nearest->words);
  } else {
    lines.push_back(fmt::format("No named strategy is near: {}.", story.why_none));
  }
  if (result.turning_point == story.index) {
    std::string line;
    for (const std::string& part : describe_turning_point(result))
      line += (line.empty() ? "" : line.ends_with(':') ? " " : "; ") + part;
    lines.push_back(line + ".");
  }
  if (story.with_more_memory) {
    const ResultPoint& more = result.points[*story.with_more_memory];
    lines.push_back(fmt::format("A further {} is worth: {}, {} (point {}).", format_bytes(PointStory::kMoreMemory),
                                costs(more), slower_words(more.time_s, story.point.time_s), *story.with_more_memory));
  } else {
    lines.push_back(fmt::format("A further {} is worth nothing: no point of the result is faster with it.",
                                format_bytes(PointStory::kMoreMemory)));
  }
  for (const Worth& worth : story.worth)
    lines.push_back(fmt::format("{} is worth at least: {}, {}.", more_words(worth), format_seconds(worth.time_s),
                                slower_words(worth.time_s, story.point.time_s)));
  append(lines, by_layer("Layer by layer:", *story.plan, *result.scenario->model));
  return lines;
}

std::vector<std::string> sentences(const Result& first_result, std::size_t first, const Result& second_result,
                                   std::size_t second, const std::string& second_of) {
  const ResultPoint &a = first_result.points[first], &b = second_result.points[second];
  const Plan plan = first_result.plans->sharding(first), other = second_result.plans->sharding(second);
  const Model &model = *first_result.scenario->model, &other_model = *second_result.scenario->model;
  const std::string whose = second_of.empty() ? "" : " of " + second_of;
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("Point {}, {} by plain sums: {}", first, costs(a), describe(resemblance_of(plan, model))));
  append(lines, by_layer("Layer by layer:", plan, model));
  lines.push_back(fmt::format("Point {}{}, {}, {} with {}: {}", second, whose, costs(b),
                              slower_words(b.time_s, a.time_s), more_memory(b.memory_bytes - a.memory_bytes),
                              describe(resemblance_of(other, other_model))));
  append(lines, by_layer("Layer by layer:", other, other_model));
  return lines;
}

std::vector<std::string> describe(const PlanDifference& difference, const Result& result, std::size_t first,
                                  std::size_t second) {
  std::vector<std::string> lines = sentences(result, first, result, second, {});
  append(lines, describe(difference));
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
  return {{"total", parts_json(difference.total)},
          {"layers", std::move(layers)},
          {"of_stages", difference.of_stages},
          {"changes", std::move(changes)}};
}

nlohmann::json explanation_json(const PointStory& story, const Result& result) {
  json worth = json::array();
  for (const Worth& one : story.worth) {
    const char* of = one.of == Worth::Of::intra_bandwidth   ? "intra-bandwidth"
                     : one.of == Worth::Of::inter_bandwidth ? "inter-bandwidth"
                                                            : "device-speed";
    worth.push_back({{"of", of}, {"more", one.more}, {"time_s", one.time_s}});
  }
  json document = explanation_head(result, story.index, describe(story.resembles));
  document["point"]["by_layer"] = by_layer_json(*story.plan, *result.scenario->model);
  if (story.nearest) {
    document["nearest"] = point_json(story.nearest->point);
    document["nearest"]["method"] = story.nearest->name;
    document["nearest"]["words"] = story.nearest->words;
    document["nearest"]["slower"] = story.nearest->point.time_s / story.point.time_s - 1;
  } else {
    document["why_none_is_near"] = story.why_none;
  }
  if (story.with_more_memory) {
    document["with_more_memory"] = point_json(result.points[*story.with_more_memory]);
    document["with_more_memory"]["index"] = *story.with_more_memory;
    document["with_more_memory"]["more_bytes"] = PointStory::kMoreMemory;
  }
  document["worth"] = std::move(worth);
  return document;
}

nlohmann::json explanation_json(const PlanDifference& difference, const Result& result, std::size_t first,
                                std::size_t second) {
  const auto words = [&](std::size_t point) {
    return describe(resemblance_of(result.plans->sharding(point), *result.scenario->model));
  };
  const auto layers = [&](std::size_t point) {
    return by_layer_json(result.plans->sharding(point), *result.scenario->model);
  };
  json document = explanation_head(result, first, words(first));
  document["point"]["by_layer"] = layers(first);
  document["against"] = point_json(result.points[second]);
  document["against"]["by_layer"] = layers(second);
  document["against"]["index"] = second;
  document["against"]["words"] = words(second);
  document["difference"] = to_json(difference);
  return document;
}

nlohmann::json explanation_json(const ForcedAnswer& answer, const Result& result) {
  const Model& model = *result.scenario->model;
  json rules = json::array();
  for (std::size_t r = 0; r < answer.rules.size(); ++r) {
    json operators = json::array();
    for (const OperatorId op : answer.reach[r].forced) operators.push_back(model.operators[op].name);
    rules.push_back({{"pattern", answer.rules[r].pattern},
                     {"choice", to_string(answer.rules[r].choice)},
                     {"named", answer.reach[r].named.size()},
                     {"operators", std::move(operators)}});
  }
  json document = explanation_head(result, answer.index, describe(resemblance_of(*answer.plan, model)));
  document["point"]["by_layer"] = by_layer_json(*answer.plan, model);
  document["force"] = std::move(rules);
  document["already"] = answer.already;
  document["same_memory"] = forced_json(answer.same_memory, model, answer.point.time_s);
  document["fitting"] = forced_json(answer.fitting, model, answer.point.time_s);
  document["difference"] = to_json(answer.difference);
  return document;
}

}  // namespace turnpoint
