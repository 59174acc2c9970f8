// SPDX-License-Identifier: Apache-2.0
// Frontier tracking on scenarios that nobody chose: model (all built-ins, configs and ONNX files of TURNPOINT_DATA),
// devices, batch, precision and switches are drawn by seed.
//   scenarios_bench [--seeds FIRST:COUNT] [--more FIRST:COUNT] [--row SEED] [--threads N]
// Without --seeds the thirty fixed ones are drawn. Every scenario is searched in a process of its own, so that its
// processor time and its largest memory are its alone; files are opened outside of the time. Prints a row each and
// median, 95th percentile and largest of all; fails where a bar is missed (issue bars: processor seconds at most 2 in
// the median, 8 at the 95th percentile, 20 at most; memory below 1 GiB; gap at most 0.3 %, of mixtures with more than
// 100 layers 0.9 %; 0.1 % at the turning point).
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/import/source/model_source.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"
#include "tests/bench/processor_seconds.h"

namespace {

using namespace turnpoint;

struct Drawn {
  std::string model, hardware;
  Settings settings;
  std::string words;
};

std::vector<std::string> models() {
  std::vector<std::string> found;
  for (const auto& builtin : builtin_models()) found.push_back("builtin:" + std::string(builtin.name));
  const char* folder = std::getenv("TURNPOINT_DATA");
  const std::filesystem::path data = folder ? folder : "../shared/data";
  std::vector<std::string> files;
  for (const char* part : {"hf_config", "onnx/light", "onnx/real"}) {
    if (!std::filesystem::is_directory(data / part)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(data / part)) {
      const auto ending = entry.path().extension();
      if (ending == ".json" || ending == ".onnx") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  found.insert(found.end(), files.begin(), files.end());
  return found;
}

Drawn draw(std::uint64_t seed, const std::vector<std::string>& models) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const auto one_of = [&](const auto& list) { return list[below(std::size(list))]; };
  Drawn drawn;
  drawn.model = models[below(models.size())];
  constexpr const char* kDevices[] = {"p100-16gb", "v100-32gb", "a100-40gb", "a100-80gb", "h100-80gb", "b200-180gb"};
  const std::size_t devices = std::size_t(1) << below(11), a_node = std::min<std::size_t>(devices, below(4) ? 8 : 4);
  const std::size_t kind = below(std::size(kDevices));
  drawn.hardware = std::string(kDevices[kind]) + "-" + std::to_string(devices / a_node) + "x" + std::to_string(a_node);
  Settings& s = drawn.settings;
  s.batch = std::max<std::int64_t>(static_cast<std::int64_t>(devices), std::int64_t(8) << below(10));
  const bool bf16 = kind >= 2 && below(3);
  if (bf16) s.precision = Precision::bf16;
  constexpr Optimizer kOptimizers[] = {Optimizer::adam, Optimizer::adam, Optimizer::momentum, Optimizer::sgd};
  s.optimizer = one_of(kOptimizers);
  s.gradients = bf16 && below(2) ? Gradients::fp32 : Gradients::as_weights;
  s.recompute = below(4) != 0;
  s.offload = below(4) != 0;
  s.update_sharding = below(6) != 0;
  s.kernels = below(4) ? Kernels::fused : Kernels::eager;
  drawn.words = std::string(to_string(s.precision)) + " " + to_string(s.optimizer) +
                (s.gradients == Gradients::fp32 ? " grads=fp32" : "") + (s.recompute ? "" : " -recompute") +
                (s.offload ? "" : " -offload") + (s.update_sharding ? "" : " -update-sharding") +
                (s.kernels == Kernels::eager ? " eager" : "");
  return drawn;
}

struct Found {
  bool done = false;
  double processor_s = 0, wall_s = 0, gap = 0, turning_gap = 0;
  std::size_t points = 0;
  bool exact = false;
  long resident_kib = 0;
  char refused[200] = "";
};

void keep_reason(Found& found, const Error& error) {
  std::snprintf(found.refused, sizeof found.refused, "%s", error.message().c_str());
}

Found search(const Drawn& drawn, int threads) {
  Found found;
  const auto source = open_model(drawn.model);
  if (!source) return keep_reason(found, source.error()), found;
  const auto scenario = scenario_of(**source, drawn.hardware, drawn.settings);
  if (!scenario) return keep_reason(found, scenario.error()), found;
  RunContext context;
  context.threads = threads;
  const double before = test::processor_seconds();
  const auto start = std::chrono::steady_clock::now();
  auto searcher = std::move(*make_searcher(**find_method("ft")));
  const auto result = searcher->run(*scenario, SearchPass::exact, context);
  found.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  found.processor_s = test::processor_seconds() - before;
  if (!result) return keep_reason(found, result.error()), found;
  found.done = true;
  found.points = (*result)->points.size();
  found.exact = (*result)->exact;
  found.gap = (*result)->gap.value_or(NAN);
  if ((*result)->turning_point) found.turning_gap = gap_at(**result, *(*result)->turning_point).value_or(NAN);
  return found;
}

/// In a process of its own.
Found search_apart(const Drawn& drawn, int threads) {
  Found found;
  int ends[2];
  if (pipe(ends) != 0) return found;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    found = search(drawn, threads);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    found.resident_kib = usage.ru_maxrss;
    const bool told = write(ends[1], &found, sizeof found) == sizeof found;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Found told;
  if (child > 0 && read(ends[0], &told, sizeof told) == sizeof told)
    found = told;
  else
    std::snprintf(found.refused, sizeof found.refused, "the process ended without an answer");
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return found;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(share * double(values.size()))) - 1];
}

struct Range {
  std::uint64_t first = 1, count = 30;
};
bool read_range(const char* text, Range& range) {
  unsigned long long first = 0, count = 0;
  if (std::sscanf(text, "%llu:%llu", &first, &count) != 2) return false;
  range = {first, count};
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Range> ranges{{}};
  int threads = 2;
  for (int i = 1; i < argc; ++i) {
    Range range;
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (option == "--seeds" && read_range(value, range)) {
      ranges = {range};
    } else if (option == "--more" && read_range(value, range)) {
      ranges.push_back(range);
    } else if (option == "--row" && *value) {
      ranges = {{std::strtoull(value, nullptr, 10), 1}};
    } else if (option == "--threads" && *value) {
      threads = std::atoi(value);
    } else {
      std::fprintf(stderr, "scenarios_bench [--seeds FIRST:COUNT] [--more FIRST:COUNT] [--row SEED] [--threads N]\n");
      return 2;
    }
  }
  const auto all = models();
  std::printf("%5s %-28s %-18s %5s %7s %7s %6s %8s %7s %7s  %s\n", "seed", "model", "hardware", "batch", "CPU s", "s",
              "MiB", "points", "gap %", "turn %", "settings");
  std::vector<double> processor, memory, gaps, turning;
  int refused = 0;
  for (const Range& range : ranges)
    for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
      const Drawn drawn = draw(seed, all);
      const std::string name = std::filesystem::path(drawn.model).filename().string();
      const Found found = search_apart(drawn, threads);
      if (!found.done) {
        ++refused;
        std::printf("%5llu %-28.28s %-18s %5lld refused: %s  %s\n", (unsigned long long)seed, name.c_str(),
                    drawn.hardware.c_str(), (long long)drawn.settings.batch, found.refused, drawn.words.c_str());
        continue;
      }
      std::printf("%5llu %-28.28s %-18s %5lld %7.2f %7.2f %6ld %8zu %7.3f %7.3f  %s%s\n", (unsigned long long)seed,
                  name.c_str(), drawn.hardware.c_str(), (long long)drawn.settings.batch, found.processor_s,
                  found.wall_s, found.resident_kib / 1024, found.points, 100 * found.gap, 100 * found.turning_gap,
                  drawn.words.c_str(), found.exact ? " exact" : "");
      processor.push_back(found.processor_s);
      memory.push_back(double(found.resident_kib) / 1024);
      gaps.push_back(100 * found.gap);
      turning.push_back(100 * found.turning_gap);
    }
  if (processor.empty()) return 1;
  const auto line = [](const char* what, const std::vector<double>& values) {
    std::printf("%-16s median %8.3f   95th %8.3f   largest %8.3f\n", what, quantile(values, 0.5),
                quantile(values, 0.95), quantile(values, 1));
  };
  line("CPU s", processor);
  line("MiB", memory);
  line("gap %", gaps);
  line("turning gap %", turning);
  std::printf("%d refused\n", refused);
  const bool met = quantile(processor, 0.5) <= 2 && quantile(processor, 0.95) <= 8 && quantile(processor, 1) <= 20 &&
                   quantile(memory, 1) < 1024 && quantile(gaps, 1) <= 0.3 && quantile(turning, 1) <= 0.1;
  return met ? 0 : 1;
}
