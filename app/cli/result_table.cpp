// SPDX-License-Identifier: Apache-2.0
#include "app/cli/result_table.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "app/cli/search_objective.h"
#include "core/base/text.h"
#include "core/schedule/simulated_points.h"

namespace turnpoint::cli {

namespace {

using Row = std::vector<std::string>;

constexpr std::size_t kPlansShown = 12;
constexpr std::size_t kTried = 64;  ///< plans simulated in search of the fastest that fits

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Costs of some points of a result on the simulated clock, each computed once.
class SimulatedPlans {
 public:
  SimulatedPlans(const Result& result, const RunContext& context) : result_(result), context_(context) {}

  Expected<void> add(const std::vector<std::size_t>& indices) {
    std::vector<std::size_t> wanted;
    for (const std::size_t i : indices)
      if (result_.plans && !known_.contains(i)) wanted.push_back(i);
    if (wanted.empty()) return {};
    const auto costs = simulate_points(result_, wanted, context_);
    if (!costs && costs.error().code == ErrorCode::cancelled) return costs.error();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      known_[wanted[i]] = costs ? std::optional((*costs)[i]) : std::nullopt;  // what cannot be simulated has none
    return {};
  }

  std::optional<SimulatedCost> of(std::size_t index) const {
    const auto found = known_.find(index);
    return found == known_.end() ? std::nullopt : found->second;
  }
  bool fits(std::size_t index) const {
    const auto cost = of(index);
    return cost ? cost->memory_bytes <= result_.scenario->memory_limit() : result_.points[index].fits;
  }

  /// The fastest whose simulated peak fits: from the fastest that fits by its sums towards less memory, and what was
  /// simulated besides.
  Expected<std::optional<std::size_t>> fastest_that_fits() {
    std::optional<std::size_t> best;
    auto at = result_.fastest_that_fits();
    for (std::size_t tried = 0; at && !best && tried < kTried; ++tried) {
      if (auto done = add({*at}); !done) return done.error();
      if (fits(*at)) best = at;
      at = *at > 0 ? std::optional(*at - 1) : std::nullopt;
    }
    for (const auto& [index, cost] : known_)
      if (cost && fits(index) && (!best || result_.points[index].time_s < result_.points[*best].time_s)) best = index;
    return best;
  }

 private:
  const Result& result_;
  const RunContext& context_;
  std::map<std::size_t, std::optional<SimulatedCost>> known_;
};

std::string simulated_peak(const std::optional<SimulatedCost>& cost) {
  return cost ? format_bytes(cost->memory_bytes) : "-";
}
std::string simulated_time(const std::optional<SimulatedCost>& cost) {
  return cost ? format_seconds(cost->time_s) : "-";
}

bool is_of_batches(const Result& result) { return result.objective == to_string(Objective::largest_batch); }

/// "a model, batch 256, 512 tokens a sample, fp32", and the hardware below. `of_batches`: each result has its own.
std::string taken(const Scenario& scenario, bool of_batches) {
  std::string text = scenario.model->name;
  if (!scenario.tasks) {
    if (!of_batches) text += fmt::format(", batch {}", scenario.settings.batch);
    if (scenario.model->sequence > 0) text += fmt::format(", {} tokens a sample", scenario.model->sequence);
    text += fmt::format(", {}", to_string(scenario.settings.precision));
  }
  const Cluster& cluster = *scenario.cluster;
  text += fmt::format("\n{} ({}), {} device{}", cluster.title, scenario.hardware, cluster.devices(),
                      cluster.devices() == 1 ? "" : "s");
  if (scenario.memory_limit() != kUnlimitedBytes)
    text += fmt::format(", {} for each", format_bytes(scenario.memory_limit()));
  if (const std::int64_t reserved = scenario.reserved_bytes(); reserved > 0)
    text += fmt::format(", {} more reserved", format_bytes(reserved));
  return text + "\n";
}

bool is_placed(const ResultPoint& point) { return point.peak_communication_bytes.has_value(); }

/// Of placements, beside memory and time.
std::string peak_sent(const ResultPoint& point) {
  return is_placed(point) ? format_bytes(*point.peak_communication_bytes) : std::string("-");
}
constexpr const char* kPeakSent = "peak communication";

std::string words_about(const Result& result, std::size_t index, const std::optional<std::size_t>& fastest) {
  std::string words;
  const auto add = [&](const char* word) { words += (words.empty() ? "" : ", ") + std::string(word); };
  if (index == 0 && result.points.size() > 1) add("least memory");
  if (result.turning_point && *result.turning_point == index) add("turning point");
  if (fastest && *fastest == index) add("fastest that fits");
  return words;
}

int micro_batches_of(const Result& result, std::size_t index) {
  if (!result.plans || result.plans->kind(index) != PlanKind::pipeline) return 1;
  return result.plans->sharding(index).micro_batches();
}

Expected<std::string> plans_table(const Result& result, SimulatedPlans& simulated) {
  auto shown = spread_points(result, kPlansShown);
  if (auto done = simulated.add(shown); !done) return done.error();
  const auto fastest = simulated.fastest_that_fits();
  if (!fastest) return fastest.error();
  if (*fastest && std::find(shown.begin(), shown.end(), **fastest) == shown.end()) {
    shown.push_back(**fastest);
    std::sort(shown.begin(), shown.end());
  }
  std::vector<Row> rows{
      {"point", "memory", "simulated peak", "time", "computing", "exchanging", "simulated time", "fits", ""}};
  std::vector<int> parts;
  for (const std::size_t i : shown) parts.push_back(micro_batches_of(result, i));
  const bool in_parts = std::any_of(parts.begin(), parts.end(), [](int n) { return n > 1; });
  const bool placed = std::any_of(result.points.begin(), result.points.end(), is_placed);
  if (placed) rows[0].insert(rows[0].begin() + 4, kPeakSent);
  if (in_parts) rows[0].insert(rows[0].begin() + 1, "micro-batches");
  for (std::size_t k = 0; k < shown.size(); ++k) {
    const std::size_t i = shown[k];
    const ResultPoint& point = result.points[i];
    const auto cost = simulated.of(i);
    rows.push_back({std::to_string(i), format_bytes(point.memory_bytes), simulated_peak(cost),
                    format_seconds(point.time_s), format_seconds(point.compute_s), format_seconds(point.network_s),
                    simulated_time(cost), simulated.fits(i) ? "yes" : "no", words_about(result, i, *fastest)});
    if (placed) rows.back().insert(rows.back().begin() + 4, peak_sent(point));
    if (in_parts) rows.back().insert(rows.back().begin() + 1, std::to_string(parts[k]));
  }
  const std::string head =
      shown.size() < result.points.size()
          ? fmt::format("{}: {} of {} plans, least memory first", full_method(result), shown.size(),
                        result.points.size())
          : fmt::format("{}: {} plan{}", full_method(result), shown.size(), shown.size() == 1 ? "" : "s");
  return head + "\n" + aligned(rows);
}

/// Of each result its fastest plan that fits, or its least memory where none does.
Expected<std::string> methods_table(const std::vector<ResultPtr>& results, const RunContext& context) {
  std::vector<Row> rows{
      {"method", "devices", "plans", "memory", "simulated peak", "time", "simulated time", "fits", ""}};
  const bool of_batches = is_of_batches(*results.front());
  const auto add_batch = [&](const std::string& batch, const std::string& rate, const std::string& speed_up) {
    if (of_batches) rows.back().insert(rows.back().begin() + 2, {batch, rate, speed_up});
  };
  const auto figure = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
  };
  const bool placed = std::any_of(results.begin(), results.end(), [](const ResultPtr& one) {
    return std::any_of(one->points.begin(), one->points.end(), is_placed);
  });
  const auto add_sent = [&](const std::string& words) {
    if (placed) rows.back().insert(rows.back().begin() + 6, words);
  };
  add_sent(kPeakSent);
  add_batch("batch", "samples/s", "speed-up");
  for (const auto& result : results) {
    const std::string devices = std::to_string(result->scenario->cluster->devices());
    if (result->points.empty()) {
      rows.push_back({full_method(*result), devices, "0", "-", "-", "-", "-", "-",
                      result->notes.empty() ? "" : result->notes.front()});
      add_sent("-");
      add_batch("-", "-", "-");
      continue;
    }
    SimulatedPlans simulated(*result, context);
    const auto fastest = simulated.fastest_that_fits();
    if (!fastest) return fastest.error();
    const std::size_t best = fastest->value_or(0);
    if (auto done = simulated.add({best}); !done) return done.error();
    const ResultPoint& point = result->points[best];
    const auto cost = simulated.of(best);
    rows.push_back({full_method(*result), devices, std::to_string(result->points.size()),
                    format_bytes(point.memory_bytes), simulated_peak(cost), format_seconds(point.time_s),
                    simulated_time(cost), simulated.fits(best) ? "yes" : "no", *fastest ? "" : "its least memory"});
    add_sent(peak_sent(point));
    add_batch(std::to_string(result->scenario->settings.batch), figure(result->samples_per_second, "{:.4g}"),
              figure(result->speed_up, "{:.2f}"));
  }
  return "Every method's best: its fastest plan that fits\n" + aligned(rows);
}

}  // namespace

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      const bool left = c == 0 || c + 1 == widths.size();
      line += "  " + (left ? row[c] + padding : padding + row[c]);
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

Expected<std::string> results_table(const std::vector<ResultPtr>& results, const RunContext& context) {
  if (results.empty()) return std::string();
  std::string text = taken(*results.front()->scenario, is_of_batches(*results.front()));
  const auto first = std::find_if(results.begin(), results.end(), [](const auto& r) { return !r->points.empty(); });
  if (first != results.end() && (*first)->objective.empty()) {
    SimulatedPlans simulated(**first, context);
    const auto plans = plans_table(**first, simulated);
    if (!plans) return plans.error();
    text += "\n" + *plans;
  }
  if (results.size() > 1 || first == results.end() || !(*first)->objective.empty()) {
    const auto methods = methods_table(results, context);
    if (!methods) return methods.error();
    text += "\n" + *methods;
  }
  const bool simulated = first != results.end();
  if (simulated)
    text += "\nWhether a plan fits is judged by its simulated peak. --json prints all plans, --out FILE keeps them.\n";
  return text;
}

}  // namespace turnpoint::cli
