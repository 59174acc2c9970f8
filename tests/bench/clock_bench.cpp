// SPDX-License-Identifier: Apache-2.0
// Additive and simulated clock side by side: how often the two orders of plans disagree, what overlap is worth, and
// what one schedule costs. `clock_bench [--full | --large | MODEL...]`; 16 V100, the study's networks and some
// transformers.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/import/source/model_source.h"
#include "core/schedule/simulated_points.h"
#include "core/search/registry.h"

using namespace turnpoint;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kSample = 200;  // points of a frontier

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Entry {
  std::string method;
  double additive_s, simulated_s;
  std::int64_t additive_bytes, simulated_bytes;
};

/// Pairs of plans that the two clocks order differently, among all pairs that both tell apart.
struct Disagreement {
  std::size_t pairs = 0, discordant = 0;
  double share() const { return pairs == 0 ? 0 : double(discordant) / double(pairs); }
  double tau() const { return pairs == 0 ? 1 : 1 - 2 * share(); }
};

template <class Get>
Disagreement disagreement(const std::vector<Entry>& entries, Get&& get) {
  Disagreement found;
  for (std::size_t i = 0; i < entries.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto [a, x] = get(entries[i]);
      const auto [b, y] = get(entries[j]);
      if (a == b || x == y) continue;
      ++found.pairs;
      found.discordant += (a < b) != (x < y);
    }
  return found;
}

ScenarioPtr scenario_of(const std::string& name) {
  const auto source = open_model("builtin:" + name);
  if (!source) return nullptr;
  Settings settings;
  const auto model = (*source)->bind({settings.batch, settings.sequence});
  const auto cluster = open_hardware("v100-16gb-2x8");
  if (!model || !cluster) return nullptr;
  const auto scenario = make_scenario(*model, *cluster, "v100-16gb-2x8", settings);
  return scenario ? *scenario : nullptr;
}

std::vector<std::string> methods_for(bool transformer) {
  std::vector<std::string> methods = {"ft",          "data-parallel", "optcnn", "tofu", "mesh-tensorflow",
                                      "fsdp:zero=1", "fsdp:zero=2",   "fsdp"};
  if (transformer)
    for (const char* more : {"megatron", "manual:dp=2:tp=4:pp=2:micro-batches=8", "manual:tp=8:pp=2:micro-batches=8",
                             "manual:dp=4:tp=4:zero=1", "manual:dp=2:tp=4:pp=2:micro-batches=8:recompute"})
      methods.push_back(more);
  return methods;
}

void add_entries(const std::string& name, const Result& result, std::vector<Entry>& entries) {
  const auto curve = simulated_curve(result, kSample, {});
  if (!curve) {
    std::printf("  %s: %s\n", name.c_str(), curve.error().message().c_str());
    return;
  }
  for (std::size_t i = 0; i < curve->index.size(); ++i) {
    const ResultPoint& point = result.points[curve->index[i]];
    entries.push_back({name, point.time_s, curve->cost[i].time_s, point.memory_bytes, curve->cost[i].memory_bytes});
  }
}

struct Costs {
  double unroll_s = 0, schedule_s = 0;
  std::size_t items = 0;
};

/// Of one point, best of several runs.
Costs costs_of(const Result& result) {
  Costs best{1e9, 1e9, 0};
  const std::size_t point = result.points.size() / 2;
  const PlanLowering lowering(*result.scenario);
  for (int i = 0; i < 10; ++i) {
    auto start = Clock::now();
    const Plan plan = result.plans->sharding(point);
    best.unroll_s = std::min(best.unroll_s, seconds_since(start));
    start = Clock::now();
    const auto cost = simulate_plan(lowering, plan);
    if (cost) best.schedule_s = std::min(best.schedule_s, seconds_since(start));
    if (i == 0)
      if (const auto lowered = lowering.lower(plan)) best.items = lowered->items.size();
  }
  return best;
}

void compare(const std::string& model, bool transformer) {
  const ScenarioPtr scenario = scenario_of(model);
  if (!scenario) return;
  std::printf("%s: %zu operators\n", model.c_str(), scenario->model->operators.size());
  std::vector<Entry> entries;
  for (const std::string& name : methods_for(transformer)) {
    const auto choice = choose_method(name);
    const auto searcher = make_searcher(*choice->method, choice->parameters);
    const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
    if (!result) {
      std::printf("  %-42s %s\n", name.c_str(), result.error().what.c_str());
      continue;
    }
    const std::size_t before = entries.size();
    add_entries(name, **result, entries);
    const Costs costs = costs_of(**result);
    double saved = 0;
    for (std::size_t i = before; i < entries.size(); ++i)
      saved = std::max(saved, entries[i].additive_s / entries[i].simulated_s);
    const std::vector<Entry> mine(entries.begin() + std::ptrdiff_t(before), entries.end());
    const Entry& fastest = entries.back();
    std::printf(
        "  %-42s %6zu points, fastest %.3f s -> %.3f s, %.2f -> %.2f GiB; most overlap x%.3f; a plan: unrolled "
        "in %.2f ms, simulated in %.2f ms (%zu items)\n",
        name.c_str(), (*result)->points.size(), fastest.additive_s, fastest.simulated_s,
        double(fastest.additive_bytes) / (1 << 30), double(fastest.simulated_bytes) / (1 << 30), saved,
        costs.unroll_s * 1e3, costs.schedule_s * 1e3, costs.items);
    if (mine.size() > 1) {
      const auto within = disagreement(mine, [](const Entry& e) { return std::pair(e.additive_s, e.simulated_s); });
      std::printf("  %-42s        within: %.2f %% of %zu pairs discordant in time, tau %.4f\n", "",
                  100 * within.share(), within.pairs, within.tau());
    }
  }
  const auto time = disagreement(entries, [](const Entry& e) { return std::pair(e.additive_s, e.simulated_s); });
  const auto bytes = disagreement(
      entries, [](const Entry& e) { return std::pair(double(e.additive_bytes), double(e.simulated_bytes)); });
  std::printf("  all %zu plans: time %.2f %% of %zu pairs discordant, tau %.4f; memory %.2f %%, tau %.4f\n",
              entries.size(), 100 * time.share(), time.pairs, time.tau(), 100 * bytes.share(), bytes.tau());
  // Between methods: each by its fastest plan.
  std::vector<Entry> best;
  for (const Entry& entry : entries) {
    const auto known = std::find_if(best.begin(), best.end(), [&](const Entry& e) { return e.method == entry.method; });
    if (known == best.end())
      best.push_back(entry);
    else if (entry.additive_s < known->additive_s)
      *known = entry;
  }
  const auto methods = disagreement(best, [](const Entry& e) { return std::pair(e.additive_s, e.simulated_s); });
  std::printf("  fastest plans of %zu methods: %zu of %zu pairs change places, tau %.4f\n", best.size(),
              methods.discordant, methods.pairs, methods.tau());
  std::fflush(stdout);
}

/// Plans of about two thousand operators, without a frontier's search.
void large_plans() {
  const ScenarioPtr scenario = scenario_of("transformer?layers=140");
  if (!scenario) return;
  std::printf("transformer of 140 layers: %zu operators\n", scenario->model->operators.size());
  for (const char* name : {"data-parallel", "fsdp", "megatron", "manual:tp=8:pp=2:micro-batches=8"}) {
    const auto choice = choose_method(name);
    const auto searcher = make_searcher(*choice->method, choice->parameters);
    const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
    if (!result) continue;
    const Costs costs = costs_of(**result);
    std::printf("  %-42s a plan: unrolled in %.2f ms, simulated in %.2f ms (%zu items)\n", name, costs.unroll_s * 1e3,
                costs.schedule_s * 1e3, costs.items);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::pair<std::string, bool>> models = {
      {"rnn", false}, {"wide-resnet", false}, {"vgg16", false}, {"transformer", true}, {"bert-large", true}};
  std::vector<std::pair<std::string, bool>> chosen;
  bool large_only = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--large") == 0)
      large_only = true;
    else if (std::strcmp(argv[i], "--full") == 0)
      models.push_back({"gpt2", true}), models.push_back({"llama-2-7b?batch=64", true});
    else
      chosen.emplace_back(argv[i], std::strstr(argv[i], "resnet") == nullptr && std::strstr(argv[i], "vgg") == nullptr);
  }
  std::printf("%u threads\n", std::thread::hardware_concurrency());
  if (large_only) models.clear();
  for (const auto& [model, transformer] : chosen.empty() ? models : chosen) compare(model, transformer);
  if (chosen.empty()) large_plans();
  return 0;
}
