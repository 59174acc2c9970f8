// SPDX-License-Identifier: Apache-2.0
// Update sharding beside the figures that its paper published (Xu et al., arXiv 2004.13336, Table 1 and text).
//   build/bench/update_sharding_bench [--json FILE]
// Prints the steps of tests/search/published_steps.h with every update whole and with updates shared out, the memory of
// Adam and of plain gradient descent, and how far the Transformer's figure depends on what the paper does not state.
// Ends with 1 where a bar is missed. FILE gets the tables as resources/figures has them.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "bench/figure_tables.h"
#include "core/schedule/simulated_points.h"
#include "search/published_steps.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::test;

/// A step whole and shared out.
struct Pair {
  ResultPtr whole, shared;
  double change() const { return change_percent(time(whole), time(shared)); }
  static double time(const ResultPtr& result) { return result->points.front().time_s; }
};

Expected<Pair> both(const PublishedStep& step, Optimizer optimizer, const StepOptions& options = {}) {
  const auto scenario = published_scenario(step, optimizer, options);
  if (!scenario) return scenario.error();
  const auto whole = published_result("data-parallel", *scenario),
             shared = published_result("update-sharding", *scenario);
  if (!whole) return whole.error();
  if (!shared) return shared.error();
  return Pair{*whole, *shared};
}

std::string ms(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }
std::string gib(std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 1073741824.0); }
std::string name_of(const PublishedStep& step) { return fmt::format("{}, {} cores", step.network, step.cores); }

std::string published(const PublishedStep& step) {
  if (step.percent == kNoSuchRun) return "no such run";
  if (step.percent == kLost) return "in a figure only";
  if (step.replicated_ms > 0)
    return fmt::format("{} -> {} ms, {:.1f} %", step.replicated_ms, step.sharded_ms, step.percent);
  return fmt::format("about {:.0f} %", step.percent);
}

std::string bar(const PublishedStep& step) {
  if (step.most_percent == 0) return "never slower";
  return fmt::format("{:.0f} to {:.0f} %", step.most_percent, step.least_percent);
}

class Bench {
 public:
  bool steps(std::vector<FigureTable>& tables) {
    FigureTable table{
        "A training step, updates whole and shared out",
        "TPU v3 by cores, one replica each; 16-bit products, fp32 gradients and states; 256 tokens a sentence",
        {"step", "batch", "optimizer", "whole, ms", "update whole, ms", "shared, ms", "update shared, ms", "shards",
         "change", "published", "bar"},
        {},
        {"An update alone is what reads gradient, weight and states and writes the latter two, without the sum "
         "of gradients before it and the gather of weights behind it.",
         "Shards: over how many cores the weight with the longest update is shared out.",
         "The paper's table has no NCF on 2,048 cores; the batch is that of 32."}};
    for (const PublishedStep& step : kPublishedSteps) {
      const auto pair = both(step, step.optimizer);
      if (!pair) return failed(pair.error());
      UpdateSeconds whole, shared;
      int shards = 1;
      double longest = 0;
      for (const WeightUpdate& one : pair->shared->weights) {
        whole += one.whole, shared += one.chosen;
        if (one.whole.update > longest) longest = one.whole.update, shards = one.shards;
      }
      const double change = pair->change();
      missed(change > step.most_percent || change < step.least_percent, name_of(step));
      table.rows.push_back({name_of(step), fmt::format("{}", step.batch), to_string(step.optimizer),
                            ms(Pair::time(pair->whole)), ms(whole.update), ms(Pair::time(pair->shared)),
                            ms(shared.update), fmt::format("{}", shards), fmt::format("{:+.1f} %", change),
                            published(step), bar(step)});
    }
    tables.push_back(std::move(table));
    return true;
  }

  bool memory(std::vector<FigureTable>& tables) {
    FigureTable table{"Peak memory of Adam over that of plain gradient descent",
                      "the same steps, peaks of the simulated clock, GiB a core",
                      {"step", "descent, whole", "Adam, whole", "more, whole", "descent, shared", "Adam, shared",
                       "more, shared", "bar"},
                      {},
                      {"The paper gives a formula, states divided by the shards, and no figures of these steps."}};
    for (const PublishedStep& step : kPublishedSteps) {
      const auto adam = both(step, Optimizer::adam), descent = both(step, Optimizer::sgd);
      if (!adam) return failed(adam.error());
      if (!descent) return failed(descent.error());
      std::vector<std::string> row = {name_of(step)};
      for (const bool shared : {false, true}) {
        std::int64_t peaks[2] = {};
        for (const bool is_adam : {false, true}) {
          const Pair& pair = is_adam ? *adam : *descent;
          const std::size_t first[] = {0};
          const auto cost = simulate_points(shared ? *pair.shared : *pair.whole, first, {});
          if (!cost) return failed(cost.error());
          peaks[is_adam] = cost->front().memory_bytes;
        }
        const double more = change_percent(static_cast<double>(peaks[0]), static_cast<double>(peaks[1]));
        row.insert(row.end(), {gib(peaks[0]), gib(peaks[1]), fmt::format("{:+.1f} %", more)});
        if (shared) missed(more > 10, name_of(step) + ", memory");
      }
      row.push_back("at most +10 % shared");
      table.rows.push_back(std::move(row));
    }
    tables.push_back(std::move(table));
    return true;
  }

  /// Nothing is fitted; so it must be shown what the agreement rests on.
  bool what_it_rests_on(std::vector<FigureTable>& tables) {
    FigureTable table{
        "What the Transformer's step on 2,048 cores rests on",
        "one condition changed at a time",
        {"condition", "whole, ms", "shared, ms", "change"},
        {},
        {"The paper states neither how long its sentences are nor in what format gradients are summed; links "
         "of a TPU v3 are from data sheets."}};
    const PublishedStep& step = kPublishedSteps[3];
    const std::pair<const char*, StepOptions> cases[] = {
        {"as above", {}},
        {"64 tokens a sentence", {.sequence = 64}},
        {"128 tokens a sentence", {.sequence = 128}},
        {"16-bit gradients", {.gradients = Gradients::as_weights}},
        {"links half as fast", {.links = 0.5}},
        {"links twice as fast", {.links = 2}},
    };
    for (const auto& [what, options] : cases) {
      const auto pair = both(step, step.optimizer, options);
      if (!pair) return failed(pair.error());
      table.rows.push_back(
          {what, ms(Pair::time(pair->whole)), ms(Pair::time(pair->shared)), fmt::format("{:+.1f} %", pair->change())});
    }
    const auto pair = both(step, step.optimizer);
    if (!pair) return failed(pair.error());
    const std::size_t first[] = {0};
    const auto whole = simulate_points(*pair->whole, first, {}), shared = simulate_points(*pair->shared, first, {});
    if (!whole) return failed(whole.error());
    if (!shared) return failed(shared.error());
    table.rows.push_back({"on the simulated clock, with overlap", ms(whole->front().time_s), ms(shared->front().time_s),
                          fmt::format("{:+.1f} %", change_percent(whole->front().time_s, shared->front().time_s))});
    tables.push_back(std::move(table));
    return true;
  }

  bool all_met() const { return all_met_; }

 private:
  static bool failed(const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return false;
  }
  void missed(bool it_is, const std::string& what) {
    if (!it_is) return;
    all_met_ = false;
    std::printf("MISSED: %s\n", what.c_str());
  }
  bool all_met_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && !(argc == 3 && std::strcmp(argv[1], "--json") == 0))
    return std::fprintf(stderr, "usage: update_sharding_bench [--json FILE]\n"), 2;
  Bench bench;
  FigurePage page{"update_sharding_bench",
                  "Sharding of the weight update",
                  "Training steps with every weight's update whole on every replica (`data-parallel`) and shared out "
                  "(`update-sharding`), beside the figures of the paper (Xu et al., arXiv 2004.13336).",
                  {}};
  if (!bench.steps(page.tables) || !bench.memory(page.tables) || !bench.what_it_rests_on(page.tables)) return 1;
  for (const FigureTable& table : page.tables) print_figures(table);
  if (argc == 3 && !write_figures(page, argv[2])) return std::fprintf(stderr, "%s cannot be written\n", argv[2]), 1;
  return bench.all_met() ? 0 : 1;
}
