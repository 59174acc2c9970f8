// SPDX-License-Identifier: Apache-2.0
// The evaluation of AccPar (HPCA 2020): nine networks at batch 512 on boards of TPU v2 and v3, by the paper's own count
// and by our prices. Shared by the benchmark, which prints it, and by the test of the sample study.
//
// By the paper's count: boards of 180 and 420 TFLOP/s, links of 8 Gbit/s, 16-bit elements; what cuts exchange plus the
// slower half's work. The link speed is from memory (resources/manual/mathematics.md, 4).
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "core/hardware/cluster.h"
#include "core/import/source/model_source.h"
#include "core/search/accpar/hierarchy.h"
#include "core/search/accpar/model_layers.h"
#include "core/search/registry.h"

namespace turnpoint::test {

constexpr const char* kPartitionNetworks[] = {"lenet", "alexnet",  "vgg11",    "vgg13",   "vgg16",
                                              "vgg19", "resnet18", "resnet34", "resnet50"};
constexpr std::int64_t kPartitionBatch = 512;
constexpr double kPaperLink = 1e9, kOldBoard = 180e12, kNewBoard = 420e12;

/// Speed-ups over data parallelism; not a number where a layer is smaller than the devices.
struct Speedups {
  double owt = std::numeric_limits<double>::quiet_NaN(), hypar = owt, accpar = owt;
};
/// As published, averages over the nine networks.
constexpr Speedups kPublishedUnlike = {2.98, 3.78, 6.30}, kPublishedEqual = {2.94, 3.51, 3.86};

/// 2^levels boards, half of them old ones if `unlike`.
inline accpar::Bisection partition_boards(bool unlike, int levels) {
  using namespace accpar;
  const auto boards = [](const char* name, double flops, double memory, int count) {
    return count == 1 ? device(name, flops, memory) : group_of(name, kPaperLink, device(name, flops, memory), count);
  };
  const int all = 1 << levels;
  if (!unlike) return *bisect(boards("v3", kNewBoard, 128e9, all));
  return *bisect(
      group("boards", kPaperLink, {boards("v2", kOldBoard, 64e9, all / 2), boards("v3", kNewBoard, 128e9, all / 2)}));
}

inline ModelPtr partition_network(const std::string& name) {
  const auto source = open_model("builtin:" + name);
  if (!source) return nullptr;
  const auto model = (*source)->bind({kPartitionBatch, 0});
  return model ? *model : nullptr;
}

inline double paper_count(const accpar::LayerGraph& graph, const accpar::Bisection& devices,
                          const accpar::Options& options) {
  const auto found = accpar::search(graph, devices, options);
  if (!found) return std::numeric_limits<double>::quiet_NaN();
  return accpar::cost_of(graph, devices, *found, accpar::Objective::time, 2).total;
}

inline Speedups by_the_papers_count(const accpar::LayerGraph& graph, const accpar::Bisection& devices) {
  using accpar::Options;
  const double whole = paper_count(graph, devices, Options::data_parallel());
  return {whole / paper_count(graph, devices, Options::one_weird_trick()),
          whole / paper_count(graph, devices, Options::hypar()), whole / paper_count(graph, devices, Options())};
}

/// Boards joined by links of the presets' speed times `links`.
inline ScenarioPtr partition_scenario(const std::string& network, const std::string& hardware, double links = 1) {
  const ModelPtr model = partition_network(network);
  const auto cluster = open_hardware(hardware);
  if (!model || !cluster) return nullptr;
  Settings settings;
  settings.batch = kPartitionBatch;
  settings.precision = Precision::bf16;
  settings.factors.intra_bandwidth = settings.factors.inter_bandwidth = links;
  const auto scenario = make_scenario(model, *cluster, hardware, settings);
  return scenario ? *scenario : nullptr;
}

/// What slows the links of the presets tpu-v2 (unlike boards have them) and tpu-v3 down to 8 Gbit/s.
constexpr double kPaperLinks = kPaperLink / 124e9, kPaperLinksEqual = kPaperLink / 164e9;

/// 2^levels boards, half of them old ones.
inline ScenarioPtr unlike_boards(const std::string& network, int levels, double links) {
  const std::string shape = levels == 1 ? "1x1" : std::to_string((1 << levels) / 4) + "x2";
  return partition_scenario(network, "tpu-v2-" + shape + "+tpu-v3-" + shape, links);
}

/// Seconds of an iteration; not a number where the method has no answer.
inline double partition_seconds(const ScenarioPtr& scenario, const char* method, std::string_view parameters = "") {
  const auto found = find_method(method);
  const auto searcher = make_searcher(**found, parameters);
  const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
  return result ? (*result)->points.front().time_s : std::numeric_limits<double>::quiet_NaN();
}

inline Speedups by_our_prices(const ScenarioPtr& scenario) {
  const double whole = partition_seconds(scenario, "data-parallel");
  return {whole / partition_seconds(scenario, "owt"), whole / partition_seconds(scenario, "hypar"),
          whole / partition_seconds(scenario, "accpar")};
}

/// "II III II": of every layer, on the way to the first device, a cut a line.
inline std::vector<std::vector<accpar::Type>> types_to_the_first_device(const accpar::Assignment& assignment) {
  std::vector<std::vector<accpar::Type>> levels;
  for (std::uint32_t at = 0; at != accpar::kDevice; at = assignment.cuts[at].next[0])
    levels.push_back(assignment.cuts[at].types);
  return levels;
}

}  // namespace turnpoint::test
