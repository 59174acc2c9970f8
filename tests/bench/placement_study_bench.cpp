// SPDX-License-Identifier: Apache-2.0
// The ParDNN study, printed: `placement_study_bench [--only MODEL] [--whole-layers] [--no-sharding] [--no-counted]`;
// `--grid` prints the grid of LSTM cells instead, `--rows` all methods at the study's own batches. See
// tests/search/placement_study.h for what is measured, and on what.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "search/placement_study.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct Arguments {
  std::string only;
  bool whole_layers = false, sharding = true, with_counted = true, grid = false, rows = false;
};

std::string fail(const Error& error) { return "failed: " + error.message(); }

std::string throughput(const Expected<ResultPoint>& point, std::int64_t batch, double base) {
  if (!point) return fail(point.error());
  char text[64];
  if (point->fits)
    std::snprintf(text, sizeof text, "%8.3f s (x%.2f)", point->time_s, double(batch) / point->time_s / base);
  else
    std::snprintf(text, sizeof text, "needs %.1f GiB", double(point->memory_bytes) / double(1 << 30));
  return text;
}

/// Samples per second that speed-ups are over, or 0 before something has fitted.
double run_model(const StudyModel& model, const Arguments& arguments) {
  double base = 0;
  std::int64_t before = 1;
  for (std::size_t i = 0; i < kStudyDevices.size(); ++i) {
    const int devices = kStudyDevices[i];
    const auto largest = largest_batch(model, devices, before, arguments.whole_layers);
    if (!largest) {
      std::printf("  %s\n", fail(largest.error()).c_str());
      continue;
    }
    const std::string study = model.batches[i] ? std::to_string(model.batches[i]) : "-";
    if (largest->batch == 0) {
      std::printf("  %2d devices: nothing fits (study %s)\n", devices, study.c_str());
      continue;
    }
    const double rate = double(largest->batch) / largest->placement.makespan_s;
    if (base == 0) base = rate;
    before = largest->batch;
    std::printf("  %2d devices: batch %5lld (study %4s)  %8.3f s  x%-6.2f %5zu moved, search %.2f s", devices,
                static_cast<long long>(largest->batch), study.c_str(), largest->placement.makespan_s, rate / base,
                largest->placement.moved, largest->placement.search_s);
    std::fflush(stdout);
    if (arguments.sharding) {
      const auto parallel = data_parallel_with_checkpointing(model, largest->batch, devices);
      std::printf("  DP+checkpointing %s", throughput(parallel, largest->batch, base).c_str());
      std::fflush(stdout);
      const auto mesh = mesh_tensorflow(model, largest->batch, devices);
      std::printf("  mesh %s", throughput(mesh, largest->batch, base).c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return base;
}

/// The graph at the study's node count on sixteen devices, with the largest micro-batch that fits.
void run_counted(const StudyModel& model, double base) {
  const auto how = counted(model);
  if (!how) {
    std::printf("  %s\n", fail(how.error()).c_str());
    return;
  }
  const int micro_batches = how->options.micro_batches;
  for (std::int64_t samples = 1;; samples *= 2) {
    const auto placed = place(model, samples, 16, how->options);
    if (!placed) {
      std::printf("  %s\n", fail(placed.error()).c_str());
      return;
    }
    if (samples == 1)
      std::printf("  %zu tasks (study %lld, %+.1f %%): steps %s, micro-batches %d; on 16 devices:\n", placed->tasks,
                  static_cast<long long>(model.tasks), 100 * (double(placed->tasks) / double(model.tasks) - 1),
                  how->options.cells_in_parts ? "in parts" : "whole", micro_batches);
    if (!placed->fits) return;
    const double batch = double(micro_batches) * double(samples);
    std::printf("    batch %6.0f  %8.3f s  x%-6.2f %5zu moved, search %.2f s\n", batch, placed->makespan_s,
                base > 0 ? batch / placed->makespan_s / base : 0, placed->moved, placed->search_s);
    std::fflush(stdout);
  }
}

/// Speed-ups over one device of a grid of LSTM cells: with weights that travel, and with layers that stay whole.
int print_grid() {
  for (const std::int64_t batch : {256, 1024})
    for (const bool whole_layers : {false, true}) {
      std::printf("LSTM grid, %lld samples, %s:\n", static_cast<long long>(batch),
                  whole_layers ? "layers whole" : "weights travel");
      for (const char* method : {"pardnn-published", "pardnn", "heft", "layered-expert"}) {
        std::printf("  %-17s", method);
        for (const int devices : {2, 4, 8, 16}) {
          const auto grid = lstm_grid(batch, devices, whole_layers);
          if (!grid) return std::printf("%s\n", fail(grid.error()).c_str()), 1;
          const auto row = place(**grid, devices, method);
          if (!row) return std::printf("%s\n", fail(row.error()).c_str()), 1;
          std::printf("  %5.2f", row->one_device_s / row->makespan_s);
          std::fflush(stdout);
        }
        std::printf("\n");
      }
    }
  return 0;
}

/// At the study's own batches: each method's time, and whose placement `pardnn` is.
int print_rows(const std::string& only) {
  int rows = 0, own = 0, slower = 0;
  for (const StudyModel& model : study_models()) {
    if (!only.empty() && only != model.name) continue;
    for (std::size_t i = 1; i < kStudyDevices.size(); ++i) {
      if (model.batches[i] == 0) continue;
      std::printf("%-11s %2d devices, batch %4lld:", model.name.c_str(), kStudyDevices[i],
                  static_cast<long long>(model.batches[i]));
      double ours = 0, published = 0;
      std::string won;
      for (const char* method : {"pardnn-published", "pardnn", "heft", "pipedream", "layered-expert"}) {
        const auto placed = place(model, model.batches[i], kStudyDevices[i], study_options(), method);
        if (!placed) return std::printf("%s\n", fail(placed.error()).c_str()), 1;
        std::printf("  %s %.4g s%s", method, placed->makespan_s, placed->fits ? "" : " (does not fit)");
        std::fflush(stdout);
        if (std::strcmp(method, "pardnn") == 0) ours = placed->makespan_s, won = placed->origin;
        if (std::strcmp(method, "pardnn-published") == 0) published = placed->makespan_s;
      }
      std::printf("  from %s\n", won.c_str());
      ++rows;
      own += won.find("cluster") != std::string::npos || won.find("printed") != std::string::npos;
      slower += ours > published;
    }
  }
  std::printf("%d rows; ParDNN's own clusters won %d; slower than as printed %d\n", rows, own, slower);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      arguments.only = argv[++i];
    else if (std::strcmp(argv[i], "--whole-layers") == 0)
      arguments.whole_layers = true;
    else if (std::strcmp(argv[i], "--no-sharding") == 0)
      arguments.sharding = false;
    else if (std::strcmp(argv[i], "--no-counted") == 0)
      arguments.with_counted = false;
    else if (std::strcmp(argv[i], "--grid") == 0)
      arguments.grid = true;
    else if (std::strcmp(argv[i], "--rows") == 0)
      arguments.rows = true;
    else
      return std::fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
  }
  if (arguments.grid) return print_grid();
  if (arguments.rows) return print_rows(arguments.only);
  const auto begin = std::chrono::steady_clock::now();
  for (const StudyModel& model : study_models()) {
    if (!arguments.only.empty() && arguments.only != model.name) continue;
    std::printf("%s\n", model.name.c_str());
    std::fflush(stdout);
    const double base = run_model(model, arguments);
    if (arguments.with_counted) run_counted(model, base);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::printf("%.0f s in all\n", elapsed.count());
  return 0;
}
