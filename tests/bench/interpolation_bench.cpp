// SPDX-License-Identifier: Apache-2.0
// How well a curve of few sizes predicts the others: Vidur's A100 all-reduces, seven group shapes of 993 sizes each.
// The curve is made of the size measured nearest to each power of two; every other size is predicted and compared with
// its median. Beside both interpolations, size / peak bandwidth, the estimate that needs no curve. Fails (exit 1) where
// the default's pooled median error is above 2.5 %.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/hardware/curve.h"
#include "core/hardware/logs/measured_log.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / double(values.size());
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

struct Split {
  std::vector<CurvePoint> curve, others;
};

/// `exact`: only sizes that are powers of two; else the size nearest to each.
Split split(const MeasuredCurve& measured, bool exact) {
  std::set<double> chosen;
  const auto& points = measured.points;
  for (double power = points.front().bytes; power <= points.back().bytes; power *= 2) {
    const auto nearest = std::min_element(points.begin(), points.end(), [&](const auto& a, const auto& b) {
      return std::abs(a.bytes - power) < std::abs(b.bytes - power);
    });
    if (!exact || nearest->bytes == power) chosen.insert(nearest->bytes);
  }
  Split result;
  for (const auto& point : points)
    (chosen.count(point.bytes) ? result.curve : result.others).push_back({point.bytes, point.time_s});
  return result;
}

/// Prints one table; returns the pooled median of the default.
double report(const MeasuredLog& log, bool exact) {
  constexpr const char* kNames[] = {"time-linear (default)", "bandwidth-linear", "size / peak bandwidth"};
  std::vector<double> pooled[3];
  std::printf("\nanchors: %s\n", exact ? "sizes that are powers of two" : "the size nearest to each power of two");
  std::printf("%-22s%10s%12s%20s\n", "median error, %", "time", "bandwidth", "size/peak");
  for (const auto& measured : log.curves) {
    const Split sizes = split(measured, exact);
    double peak = 0;
    for (const auto& point : sizes.curve) peak = std::max(peak, point.bytes / point.time_s);
    std::vector<double> errors[3];
    for (const auto& point : sizes.others) {
      const double predicted[] = {curve_time(sizes.curve, point.bytes, Interpolation::time),
                                  curve_time(sizes.curve, point.bytes, Interpolation::bandwidth), point.bytes / peak};
      for (int i = 0; i < 3; ++i) errors[i].push_back(std::abs(predicted[i] / point.time_s - 1));
    }
    std::printf("%2d devices (%d x %d), %2zu ", measured.group.size, measured.group.nodes, measured.group.per_node,
                sizes.curve.size());
    std::printf("%9.2f%12.2f%20.2f\n", 100 * median(errors[0]), 100 * median(errors[1]), 100 * median(errors[2]));
    for (int i = 0; i < 3; ++i) pooled[i].insert(pooled[i].end(), errors[i].begin(), errors[i].end());
  }
  for (int i = 0; i < 3; ++i)
    std::printf("pooled, %-22s median %6.2f %%, mean %6.2f %% (%zu sizes)\n", kNames[i], 100 * median(pooled[i]),
                100 * mean(pooled[i]), pooled[i].size());
  return median(pooled[0]);
}

}  // namespace

int main() {
  const auto data = test::data_folder();
  if (data.empty()) {
    std::puts("data folder absent: set TURNPOINT_DATA");
    return 0;
  }
  const auto log = read_measured_log((data / "hardware/vidur/network/a100_dgx/all_reduce.csv").string());
  if (!log) {
    std::fprintf(stderr, "%s\n", log.error().message().c_str());
    return 1;
  }
  std::printf("machine: %s, %u threads\n", processor().c_str(), std::thread::hardware_concurrency());
  const double exact = report(*log, true), nearest = report(*log, false);
  const bool good = exact <= 0.025 && nearest <= 0.025;
  std::printf("\nbar: pooled median of the default at most 2.5 %%: %s\n", good ? "met" : "MISSED");
  return good ? 0 : 1;
}
