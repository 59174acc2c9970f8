// SPDX-License-Identifier: Apache-2.0
// Bandwidth sliders on the built-in models, 16 devices (2 x 8 V100): time from a move to the new coarse curve, and how
// far that curve lies from the exact frontier at the last position.
//   build/bench/slider_bench [hardware] [model ...]
// One line per model, each made in a process of its own: most layouts of a tensor; milliseconds per move (median and
// 95th percentile of 40, and CPU per move); distance of the last curve from the frontier, of the curve that follows
// within 250 ms of rest, and of the time alone while dragging; gap of the reference where it is not exact; peak memory.
// Distance: the least share of the frontier's ranges by which memory and time of every point must be raised to be
// reached by the curve. It is what the eye sees; at a steep end the time alone at equal memory says little.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/import/model_source.h"
#include "core/search/frontier_tracking/structure.h"
#include "core/search/method.h"

namespace {

using namespace turnpoint;

constexpr int kMoves = 40;

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

ScenarioPtr moved(const ScenarioPtr& scenario, int step) {
  auto next = std::make_shared<Scenario>(*scenario);
  const double factor = std::exp2(3.0 * std::sin(0.37 * step));
  next->settings.factors.inter_bandwidth = factor;
  next->settings.factors.intra_bandwidth = step % 3 ? 1.0 : 1.0 / factor;
  return next;
}

struct Error {
  double distance = 0, time = 0;  // shares of the frontier's ranges
};

Error error_of(const Result& curve, const Result& frontier) {
  const auto &c = curve.points, &f = frontier.points;
  const double range_m = std::max(1.0, double(f.back().memory_bytes - f.front().memory_bytes)),
               range_t = std::max(1e-300, f.front().time_s - f.back().time_s);
  Error error;
  for (const ResultPoint& p : f) {
    double nearest = 1e300, time = c.front().time_s;
    for (const ResultPoint& q : c) {
      nearest = std::min(
          nearest, std::max({0.0, double(q.memory_bytes - p.memory_bytes) / range_m, (q.time_s - p.time_s) / range_t}));
      if (q.memory_bytes <= p.memory_bytes) time = q.time_s;
    }
    error.distance = std::max(error.distance, nearest);
    error.time = std::max(error.time, (time - p.time_s) / range_t);
  }
  return error;
}

ScenarioPtr open(const std::string& model_name, const std::string& hardware) {
  const auto source = open_model(model_name);
  if (!source) return nullptr;
  const Settings settings;
  const auto model = (*source)->bind({settings.batch, settings.sequence});
  const auto cluster = open_hardware(hardware);
  if (!model || !cluster) return nullptr;
  const auto scenario = make_scenario(*model, *cluster, hardware, settings);
  return scenario ? *scenario : nullptr;
}

std::size_t most_layouts(const Scenario& scenario) {
  const auto structure = search::build_structure(scenario, {}, {});
  std::size_t most = 0;
  for (const auto& table : (*structure)->tables) most = std::max({most, table.from.size(), table.to.size()});
  return most;
}

int measure(const std::string& name, const std::string& hardware) {
  const ScenarioPtr scenario = open(name, hardware);
  if (!scenario) return 1;
  const auto searcher = (*find_method("ft"))->make();
  // A window has sketched and searched exactly before anyone drags.
  if (!searcher->run(scenario, SearchPass::coarse, {}) || !searcher->run(scenario, SearchPass::exact, {})) return 1;
  std::vector<double> ms;
  ResultPtr last;
  const double cpu = cpu_s();
  for (int step = 1; step <= kMoves; ++step) {
    const double begin = wall_s();
    const auto result = searcher->run(moved(scenario, step), SearchPass::coarse, {});
    if (!result) return 1;
    ms.push_back((wall_s() - begin) * 1e3);
    last = *result;
  }
  const double cpu_ms = (cpu_s() - cpu) / kMoves * 1e3;
  const double begin = wall_s();
  const auto rest = searcher->run(moved(scenario, kMoves), SearchPass::coarse, {});
  const double rest_ms = (wall_s() - begin) * 1e3;
  const auto exact = (*find_method("ft"))->make()->run(moved(scenario, kMoves), SearchPass::exact, {});
  if (!rest || !exact) return 1;
  std::sort(ms.begin(), ms.end());
  const Error dragging = error_of(*last, **exact), at_rest = error_of(**rest, **exact);
  std::printf("%-24s %5zu %7.1f %7.1f %7.1f %8.3f %8.3f %7.0f %8.3f %8.2f %6.0f\n", name.c_str(),
              most_layouts(*scenario), ms[ms.size() / 2], ms[ms.size() * 95 / 100], cpu_ms, dragging.distance * 100,
              at_rest.distance * 100, rest_ms, dragging.time * 100, (*exact)->gap.value_or(0) * 100, peak_mib());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string hardware = argc > 1 ? argv[1] : "v100-16gb-2x8";
  std::vector<std::string> models(argv + std::min(argc, 2), argv + argc);
  if (models.empty())
    for (const auto& model : builtin_models()) models.push_back("builtin:" + model.name);
  std::printf("%-24s %5s %7s %7s %7s %8s %8s %7s %8s %8s %6s\n", "model", "lay.", "ms p50", "ms p95", "cpu ms",
              "drag %", "rest %", "rest ms", "time %", "ref gap%", "MiB");
  std::fflush(stdout);
  int failed = 0;
  for (const std::string& name : models) {
    const pid_t child = fork();
    if (child == 0) {
      const int code = measure(name, hardware);
      std::fflush(stdout);
      _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::printf("%-24s failed\n", name.c_str());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}
