// SPDX-License-Identifier: Apache-2.0
// Splits that somebody types, without stages, drawn by chance, beside the frontier of `ft` and that over all numbers of
// micro-batches: how many lie below a curve by more than its gap says, by how much, and how long the curves take.
//   build/bench/splits_bench [MODEL...]
// Exit 1 where a split lies below the frontier over all numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/frontier/pareto.h"
#include "core/import/source/model_source.h"
#include "core/search/registry.h"

using namespace turnpoint;

namespace {

constexpr int kSplits = 200;
constexpr double kRounding = 1e-9;

struct Case {
  std::string model;
  std::string hardware;
  std::int64_t batch, sequence;
};

/// Legal or not: the method says which.
std::string split_by_chance(std::mt19937_64& random, int devices) {
  const auto power = [&](int most) {
    int value = 1;
    while (value < most && random() % 2) value *= 2;
    return value;
  };
  const int tensor = power(devices), micro_batches = power(128), zero = int(random() % 4), again = int(random() % 4);
  std::string text = fmt::format("dp={}:tp={}:micro-batches={}:zero={}", devices / tensor, tensor, micro_batches, zero);
  if (again < 2) text += again == 0 ? ":recompute=full" : ":recompute=selective";
  if (tensor > 1 && random() % 2) text += ":sequence-parallel";
  return text;
}

ResultPtr searched(const Method& method, const std::string& parameters, const ScenarioPtr& scenario) {
  if (!refusal_of(method, parameters, *scenario).empty()) return nullptr;
  const auto searcher = make_searcher(method, parameters);
  if (!searcher) return nullptr;
  const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
  return result ? *result : nullptr;
}

struct Below {
  int splits = 0;
  double most = 0;
  std::string which;
};

/// Splits that need less time than the curve has at their memory, by more than its gap; or less memory than all of it.
Below below(const Result& curve, const std::vector<std::pair<std::string, ResultPoint>>& splits) {
  frontier::CostList costs;
  for (const ResultPoint& point : curve.points) costs.push_back({point.memory_bytes, point.time_s});
  Below found;
  for (const auto& [text, point] : splits) {
    const double reached = frontier::time_at(costs, point.memory_bytes);
    if (point.time_s >= reached * (1 - curve.gap.value_or(0) - kRounding)) continue;
    ++found.splits;
    const double by = reached == std::numeric_limits<double>::infinity() ? 1 : 1 - point.time_s / reached;
    if (by > found.most) found.most = by, found.which = text;
  }
  return found;
}

bool look_at(const Case& one) {
  const auto source = open_model("builtin:" + one.model);
  const auto cluster = cluster_preset(one.hardware);
  Settings settings;
  settings.batch = one.batch;
  settings.precision = Precision::bf16;
  const auto model = source ? (*source)->bind({one.batch, one.sequence}) : source.error();
  const auto scenario = model && cluster ? make_scenario(*model, *cluster, one.hardware, settings) : model.error();
  if (!scenario) return std::fprintf(stderr, "%s: %s\n", one.model.c_str(), scenario.error().message().c_str()), false;

  std::mt19937_64 random(1);
  std::set<std::string> tried;
  std::vector<std::pair<std::string, ResultPoint>> splits;
  for (int i = 0; i < 20 * kSplits && int(splits.size()) < kSplits; ++i) {
    const std::string text = split_by_chance(random, (*cluster)->devices());
    if (!tried.insert(text).second) continue;
    if (const auto result = searched(split_method(), text, *scenario)) splits.push_back({text, result->points[0]});
  }
  std::printf("%s, batch %ld, %s: %zu splits without stages\n", one.model.c_str(), long(one.batch),
              one.hardware.c_str(), splits.size());
  bool good = true;
  for (const char* parameters : {"micro-batches=1", ""}) {
    const auto curve = searched(default_method(), parameters, *scenario);
    if (!curve) return std::fprintf(stderr, "no curve of %s\n", one.model.c_str()), false;
    const Below found = below(*curve, splits);
    std::printf(
        "  ft %-16s %6.2f s, least memory %7.2f GiB, gap %.2f %%: %3d below%s\n", parameters, curve->search_s,
        double(curve->points[0].memory_bytes) / 0x1p30, 100 * curve->gap.value_or(-1), found.splits,
        found.splits == 0 ? "" : fmt::format(", by up to {:.0f} % ({})", 100 * found.most, found.which).c_str());
    good = found.splits == 0;
  }
  std::fflush(stdout);
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<Case> cases = {{"gpt2?layers=48", "h100-80gb-2x8", 256, 1024},
                                   {"bert-large", "h100-80gb-2x8", 256, 512},
                                   {"llama-2-7b", "h100-80gb-2x8", 256, 4096},
                                   {"llama-2-70b", "h100-80gb-4x8", 256, 4096},
                                   {"mixtral-8x7b", "h100-80gb-2x8", 256, 2048}};
  bool good = true;
  for (const Case& one : cases)
    if (count == 1 || std::find(arguments + 1, arguments + count, one.model) != arguments + count)
      good = look_at(one) && good;
  return good ? 0 : 1;
}
