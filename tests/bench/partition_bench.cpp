// SPDX-License-Identifier: Apache-2.0
// AccPar, HyPar and One Weird Trick beside data parallelism on the nine networks of AccPar's evaluation.
//   build/bench/partition_bench
// First by the paper's own count: boards of 180 and 420 TFLOP/s, links of 8 Gbit/s, 16-bit elements, batch 512; what
// cuts exchange plus the slower half's work. Then by our prices, on presets. Speed-ups are over data parallelism; the
// paper's averages stand below. Its link speeds are from memory (resources/manual/mathematics.md, 4), so only order and
// direction are to be compared.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "core/hardware/cluster.h"
#include "core/import/source/model_source.h"
#include "core/search/accpar/hierarchy.h"
#include "core/search/accpar/model_layers.h"
#include "core/search/registry.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::accpar;

constexpr const char* kNetworks[] = {"lenet", "alexnet",  "vgg11",    "vgg13",   "vgg16",
                                     "vgg19", "resnet18", "resnet34", "resnet50"};
constexpr std::int64_t kBatch = 512;
constexpr double kLink = 1e9, kOld = 180e12, kNew = 420e12;

Bisection boards(bool unlike, int each) {
  const DeviceTree old = group_of("v2", kLink, device("v2", kOld, 64e9), each),
                   now = group_of("v3", kLink, device("v3", kNew, 128e9), each);
  return unlike ? *bisect(group("boards", kLink, {old, now})) : *bisect(now);
}

ModelPtr network(const char* name) {
  const auto source = open_model(std::string("builtin:") + name);
  return source ? *(*source)->bind({kBatch, 0}) : nullptr;
}

struct Row {
  std::vector<double> speedups;
};

void print(const char* title, const std::vector<std::string>& columns, const std::vector<Row>& rows,
           const char* published) {
  std::printf("\n%s\n%-10s", title, "");
  for (const auto& column : columns) std::printf("%16s", column.c_str());
  std::vector<double> sum(columns.size(), 0), count(columns.size(), 0);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    std::printf("\n%-10s", kNetworks[n]);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double value = rows[n].speedups[c];
      if (std::isnan(value)) {
        std::printf("%16s", "too small");
        continue;
      }
      std::printf("%16.2f", value);
      sum[c] += value, ++count[c];
    }
  }
  std::printf("\n%-10s", "average");
  for (std::size_t c = 0; c < columns.size(); ++c) std::printf("%16.2f", sum[c] / count[c]);
  std::printf("\n%s\n", published);
}

void by_the_papers_count(bool unlike) {
  std::vector<Row> rows;
  for (const char* name : kNetworks) {
    const LayerGraph graph = layers_of(*network(name))->graph;
    const Bisection devices = boards(unlike, 128);
    const auto total = [&](const Options& options) {
      const auto found = search(graph, devices, options);
      return found ? cost_of(graph, devices, *found, Objective::time, 2).total : std::nan("");
    };
    Options accpar;
    const double whole = total(Options::data_parallel());
    const auto best = best_of_all(graph, devices, accpar);
    rows.push_back({{whole / total(Options::one_weird_trick()), whole / total(Options::hypar()), whole / total(accpar),
                     best ? whole / best->cost.total : std::nan("")}});
  }
  print(unlike ? "By the paper's count, 128 old and 128 new boards" : "By the paper's count, 128 new boards",
        {"OWT", "HyPar", "AccPar", "best of all"}, rows,
        unlike ? "published: OWT 2.98, HyPar 3.78, AccPar 6.30" : "published: OWT 2.94, HyPar 3.51, AccPar 3.86");
}

double seconds_by(const char* method, std::string_view parameters, const ScenarioPtr& scenario) {
  const auto searcher = make_searcher(**find_method(method), parameters);
  const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
  return result ? (*result)->points.front().time_s : std::nan("");
}

void by_our_prices(const char* title, const char* hardware) {
  std::vector<Row> rows;
  for (const char* name : kNetworks) {
    Settings settings;
    settings.batch = kBatch;
    settings.precision = Precision::bf16;
    const auto scenario = make_scenario(network(name), *open_hardware(hardware), hardware, settings);
    const double whole = seconds_by("data-parallel", "", *scenario);
    rows.push_back(
        {{whole / seconds_by("owt", "", *scenario), whole / seconds_by("hypar", "", *scenario),
          whole / seconds_by("accpar", "ratio=exact", *scenario), whole / seconds_by("accpar", "", *scenario)}});
  }
  print(title, {"owt", "hypar", "accpar alone", "accpar"}, rows, hardware);
}

}  // namespace

int main() {
  for (const bool unlike : {true, false}) by_the_papers_count(unlike);
  by_our_prices("By our prices, bf16, unlike boards; data parallelism at the weakest one's speed",
                "tpu-v2-64x2+tpu-v3-64x2");
  by_our_prices("By our prices, bf16, V100 and A100", "v100-16gb-4x8+a100-80gb-4x8");
  by_our_prices("By our prices, bf16, equal boards", "tpu-v3-64x2");
  return 0;
}
