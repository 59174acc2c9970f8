// SPDX-License-Identifier: Apache-2.0
// Bandwidth sliders on the built-in models, 16 devices (2 x 8 V100): time from a move to the new coarse curve, and how
// far that curve lies from the exact frontier at the last position and at one of slow links between nodes.
//   build/bench/slider_bench [hardware] [model ...]
// One line per model, each made in a process of its own: most layouts of a tensor; seconds from the exact answer until
// its sliders are ready (nobody waits for that); milliseconds per move (median and 95th percentile of 40, and CPU per
// move) and the median of the same moves with one micro-batch alone; distance of the
// curves from the frontier while dragging, of the curves that follow at rest (the worse of both positions) and their
// milliseconds, and of the time alone while dragging; gap of the reference where it is not exact; peak memory; which
// bars are missed: 50 ms at the 95th percentile, 0.5 % (4 % above 12 layouts) while dragging, 0.5 % within 250 ms at
// rest. The exit code is 1 if any is.
// Distance: the least share of the ranges by which memory and time of every point must be raised to be reached by the
// curve, over the points that are considered (Result::first_considered): those that the chart shows. It is what the eye
// sees; at a steep end the time alone at equal memory says little.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/import/source/model_source.h"
#include "core/search/frontier_tracking/structure.h"
#include "core/search/registry.h"

namespace {

using namespace turnpoint;

constexpr int kMoves = 40, kSlowMove = 30;  // at the latter, links between nodes have an eighth of their speed
constexpr std::size_t kFewLayouts = 12;
constexpr double kMostMs = 50, kMostRestMs = 250, kMostDistance = 0.04, kMostDistanceOfFew = 0.005;
constexpr int kFailed = 1, kMissed = 2;

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
  const std::size_t first = frontier.first_considered();
  const double range_m = std::max(1.0, double(f.back().memory_bytes - f[first].memory_bytes)),
               range_t = std::max(1e-300, f[first].time_s - f.back().time_s);
  Error error;
  for (std::size_t i = first; i < f.size(); ++i) {
    const ResultPoint& p = f[i];
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

struct Moves {
  std::vector<double> ms;  // sorted
  double ready_s = 0;
  double cpu_ms = 0;  // of one
  ResultPtr last, slow;
};

std::optional<Moves> drag(Searcher& searcher, const ScenarioPtr& scenario) {
  // A window has sketched and searched exactly before anyone drags.
  if (!searcher.run(scenario, SearchPass::coarse, {}) || !searcher.run(scenario, SearchPass::exact, {}))
    return std::nullopt;
  Moves moves;
  moves.ready_s = -wall_s();
  if (!searcher.get_ready(scenario, {})) return std::nullopt;
  moves.ready_s += wall_s();
  const double cpu = cpu_s();
  for (int step = 1; step <= kMoves; ++step) {
    const double begin = wall_s();
    const auto result = searcher.run(moved(scenario, step), SearchPass::coarse, {});
    if (!result) return std::nullopt;
    moves.ms.push_back((wall_s() - begin) * 1e3);
    moves.last = *result;
    if (step == kSlowMove) moves.slow = moves.last;
  }
  moves.cpu_ms = (cpu_s() - cpu) / kMoves * 1e3;
  std::sort(moves.ms.begin(), moves.ms.end());
  return moves;
}

int measure(const std::string& name, const std::string& hardware) {
  const ScenarioPtr scenario = open(name, hardware);
  if (!scenario) return kFailed;
  const Method& ft = **find_method("ft");
  const auto one = drag(**make_searcher(ft, "micro-batches=1"), scenario);
  const auto searcher = std::move(*make_searcher(ft));
  const auto moves = drag(*searcher, scenario);
  if (!one || !moves) return kFailed;
  double rest_ms = 0;
  const auto rest_at = [&](int step) {  // asked again for what the last move asked
    const double begin = wall_s();
    auto result = searcher->run(moved(scenario, step), SearchPass::coarse, {});
    rest_ms = std::max(rest_ms, (wall_s() - begin) * 1e3);
    return result;
  };
  const auto rest = rest_at(kMoves);
  if (!searcher->run(moved(scenario, kSlowMove), SearchPass::coarse, {})) return kFailed;
  const auto rest_slow = rest_at(kSlowMove);
  const auto exact_at = [&](int step) {
    return (*make_searcher(ft))->run(moved(scenario, step), SearchPass::exact, {});
  };
  const auto exact = exact_at(kMoves), exact_slow = exact_at(kSlowMove);
  if (!rest || !rest_slow || !exact || !exact_slow) return kFailed;
  const Error fast = error_of(*moves->last, **exact), slowed = error_of(*moves->slow, **exact_slow);
  const double distance = std::max(fast.distance, slowed.distance),
               rest_distance =
                   std::max(error_of(**rest, **exact).distance, error_of(**rest_slow, **exact_slow).distance),
               p95 = moves->ms[moves->ms.size() * 95 / 100];
  const std::size_t layouts = most_layouts(*scenario);
  std::string missed;
  if (p95 > kMostMs) missed += " ms";
  if (distance > (layouts > kFewLayouts ? kMostDistance : kMostDistanceOfFew)) missed += " drag";
  if (rest_distance > kMostDistanceOfFew) missed += " rest";
  if (rest_ms > kMostRestMs) missed += " rest-ms";
  std::printf("%-24s %5zu %7.2f %7.1f %7.1f %7.1f %7.1f %8.3f %8.3f %7.0f %8.3f %8.2f %6.0f %s\n", name.c_str(),
              layouts, moves->ready_s, moves->ms[kMoves / 2], p95, moves->cpu_ms, one->ms[kMoves / 2], distance * 100,
              rest_distance * 100, rest_ms, std::max(fast.time, slowed.time) * 100, (*exact)->gap.value_or(0) * 100,
              peak_mib(), missed.empty() ? "met" : ("missed:" + missed).c_str());
  return missed.empty() ? 0 : kMissed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string hardware = argc > 1 ? argv[1] : "v100-16gb-2x8";
  if (const auto opened = open_hardware(hardware); !opened) {
    std::fprintf(stderr, "%s\n", opened.error().message().c_str());
    return 2;
  }
  std::vector<std::string> models(argv + std::min(argc, 2), argv + argc);
  if (models.empty())
    for (const auto& model : builtin_models()) models.push_back("builtin:" + model.name);
  std::printf("%-24s %5s %7s %7s %7s %7s %7s %8s %8s %7s %8s %8s %6s\n", "model", "lay.", "ready s", "ms p50", "ms p95",
              "cpu ms", "one mb", "drag %", "rest %", "rest ms", "time %", "ref gap%", "MiB");
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
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
    if (code != 0 && code != kMissed) std::printf("%-24s failed\n", name.c_str());
    std::fflush(stdout);  // or the next child prints it again
    failed += code != 0;
  }
  return failed == 0 ? 0 : 1;
}
