// SPDX-License-Identifier: Apache-2.0
// AccPar, HyPar and One Weird Trick beside data parallelism on the nine networks of AccPar's evaluation.
//   build/bench/partition_bench [--json FILE]
// First by the paper's own count (tests/search/partition_study.h), then by our prices, on presets. Speed-ups are over
// data parallelism; the paper's averages stand below. Its link speeds are from memory (resources/manual/mathematics.md,
// 4), so only order and direction are to be compared. FILE gets the tables as resources/figures has them.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/figure_tables.h"
#include "search/partition_study.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::test;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kTooSmall = "Empty: a layer is smaller than the devices; averages leave it out.";

std::string cell(double value) { return std::isnan(value) ? std::string() : fmt::format("{:.2f}", value); }

/// Rows of numbers by network, and their averages below.
class SpeedupTable {
 public:
  SpeedupTable(std::string title, std::string conditions, std::vector<std::string> columns)
      : table_{std::move(title), std::move(conditions), std::move(columns), {}, {}}, sums_(table_.columns.size() - 1) {}

  void add(const std::string& name, const std::vector<double>& values) {
    table_.rows.push_back({name});
    for (std::size_t c = 0; c < values.size(); ++c) {
      table_.rows.back().push_back(cell(values[c]));
      if (std::isnan(values[c])) continue;
      sums_[c].first += values[c], ++sums_[c].second;
    }
  }
  FigureTable take(std::vector<std::string> notes) {
    table_.rows.push_back({"average"});
    for (const auto& [sum, count] : sums_) table_.rows.back().push_back(cell(sum / count));
    table_.notes = std::move(notes);
    return std::move(table_);
  }

 private:
  FigureTable table_;
  std::vector<std::pair<double, int>> sums_;
};

std::string published(const Speedups& averages) {
  return fmt::format("Averages of the paper: OWT {:.2f}, HyPar {:.2f}, AccPar {:.2f}.", averages.owt, averages.hypar,
                     averages.accpar);
}

FigureTable paper_table(bool unlike) {
  SpeedupTable table(
      unlike ? "By the paper's count, 128 old and 128 new boards" : "By the paper's count, 128 new boards",
      "links of 8 Gbit/s, 180 and 420 TFLOP/s a board, 16-bit elements, batch 512",
      {"network", "OWT", "HyPar", "AccPar", "best of all"});
  const accpar::Bisection devices = partition_boards(unlike, unlike ? 8 : 7);
  for (const char* name : kPartitionNetworks) {
    const accpar::LayerGraph graph = accpar::layers_of(*partition_network(name))->graph;
    const Speedups found = by_the_papers_count(graph, devices);
    const auto best = accpar::best_of_all(graph, devices, accpar::Options());
    const double whole = paper_count(graph, devices, accpar::Options::data_parallel());
    table.add(name, {found.owt, found.hypar, found.accpar, best ? whole / best->cost.total : kNone});
  }
  return table.take({published(unlike ? kPublishedUnlike : kPublishedEqual), kTooSmall});
}

FigureTable price_table(const char* title, const char* hardware, double links, const Speedups* averages = nullptr) {
  SpeedupTable table(title,
                     links == 1
                         ? fmt::format("batch 512, hardware {}", hardware)
                         : fmt::format("batch 512, hardware {}, links at {:.3g} of their speed", hardware, links),
                     {"network", "owt", "hypar", "accpar alone", "accpar"});
  for (const char* name : kPartitionNetworks) {
    const ScenarioPtr scenario = partition_scenario(name, hardware, links);
    const Speedups found = by_our_prices(scenario);
    const double alone =
        partition_seconds(scenario, "data-parallel") / partition_seconds(scenario, "accpar", "ratio=exact");
    table.add(name, {found.owt, found.hypar, alone, found.accpar});
  }
  std::vector<std::string> notes = {
      "accpar alone is `accpar:ratio=exact`; accpar keeps the fastest of its own, equal shares, HyPar's, One Weird "
      "Trick's and data parallelism's.",
      kTooSmall};
  if (averages) notes.insert(notes.begin(), published(*averages));
  return table.take(std::move(notes));
}

/// "Hierarchy 2 to 9 on Vgg19".
FigureTable level_table() {
  FigureTable table{"VGG-19 on 4 to 512 boards, half of them old",
                    "speed-ups over data parallelism; links of 8 Gbit/s, batch 512",
                    {"levels", "boards", "OWT by count", "HyPar by count", "AccPar by count", "owt", "hypar", "accpar"},
                    {},
                    {"By count: the paper's own. The others by our prices, presets tpu-v2 and tpu-v3 with links slowed "
                     "down to 8 Gbit/s.",
                     "The paper states that OWT and HyPar saturate while AccPar keeps growing; its figures are lost."}};
  const accpar::LayerGraph graph = accpar::layers_of(*partition_network("vgg19"))->graph;
  for (int levels = 2; levels <= 9; ++levels) {
    const Speedups count = by_the_papers_count(graph, partition_boards(true, levels));
    const Speedups prices = by_our_prices(unlike_boards("vgg19", levels, kPaperLinks));
    table.rows.push_back({fmt::format("{}", levels), fmt::format("{}", 1 << levels), cell(count.owt), cell(count.hypar),
                          cell(count.accpar), cell(prices.owt), cell(prices.hypar), cell(prices.accpar)});
  }
  return table;
}

FigureTable type_table() {
  FigureTable table{"AlexNet's types, level by level",
                    "by the paper's count, 128 new boards, links of 8 Gbit/s, batch 512",
                    {"level"},
                    {},
                    {"I: by batch, II: by reduction, III: by output."}};
  const accpar::LayerGraph graph = accpar::layers_of(*partition_network("alexnet"))->graph;
  for (const accpar::Layer& layer : graph.layers) table.columns.push_back(layer.name.substr(layer.name.rfind('/') + 1));
  const auto found = accpar::search(graph, partition_boards(false, 7), accpar::Options());
  int level = 0;
  for (const auto& types : types_to_the_first_device(*found)) {
    table.rows.push_back({fmt::format("{}", ++level)});
    for (const accpar::Type type : types) table.rows.back().emplace_back(accpar::to_string(type));
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && !(argc == 3 && std::strcmp(argv[1], "--json") == 0))
    return std::fprintf(stderr, "usage: partition_bench [--json FILE]\n"), 2;
  FigurePage page{"partition_bench",
                  "Partitions of unlike and equal devices",
                  "Speed-ups over data parallelism on the nine networks of AccPar's evaluation, by the paper's own "
                  "count and by our prices. Differences from the published averages: our networks are those of "
                  "torchvision, where the published program has chains in their place; its link speeds are not in "
                  "print.",
                  {}};
  const auto add = [&](FigureTable table) {
    print_figures(table);
    page.tables.push_back(std::move(table));
  };
  for (const bool unlike : {true, false}) add(paper_table(unlike));
  add(price_table("By our prices, bf16, unlike boards, links of 8 Gbit/s", "tpu-v2-64x2+tpu-v3-64x2", kPaperLinks,
                  &kPublishedUnlike));
  add(price_table("By our prices, bf16, equal boards, links of 8 Gbit/s", "tpu-v3-64x2", kPaperLinksEqual,
                  &kPublishedEqual));
  add(price_table("By our prices, bf16, unlike boards; data parallelism at the weakest one's speed",
                  "tpu-v2-64x2+tpu-v3-64x2", 1));
  add(price_table("By our prices, bf16, V100 and A100", "v100-16gb-4x8+a100-80gb-4x8", 1));
  add(price_table("By our prices, bf16, equal boards", "tpu-v3-64x2", 1));
  add(level_table());
  add(type_table());
  if (argc == 3 && !write_figures(page, argv[2])) return std::fprintf(stderr, "%s cannot be written\n", argv[2]), 1;
  return 0;
}
