// SPDX-License-Identifier: Apache-2.0
#include "core/cost/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/cost/measured_models.h"

namespace turnpoint {

namespace {

constexpr int kTerms = 3;  // per launch, per GFLOP, per MB
constexpr double kGiga = 1e9, kMega = 1e6, kMicro = 1e-6;
constexpr int kRounds = 40, kSweeps = 2000;
constexpr double kExponent = 0.5;  // between equal relative and equal absolute errors
constexpr double kOutlier = 0.2;   // relative error from which a row counts less

using Key = std::tuple<std::string, std::string, Precision>;

/// Rows of a least-squares problem: a few entries each.
struct System {
  std::vector<std::vector<std::pair<std::size_t, double>>> rows;
  std::vector<double> wanted, scale;  ///< microseconds; the measured time that errors are relative to
  std::size_t unknowns = 0;
};

double predicted(const System& system, std::size_t row, const std::vector<double>& x) {
  double sum = 0;
  for (const auto& [column, value] : system.rows[row]) sum += value * x[column];
  return sum;
}

/// Coordinate descent on the normal equations; x stays non-negative.
void descend(const System& system, const std::vector<double>& weight, std::vector<double>& x) {
  const std::size_t n = system.unknowns;
  std::vector<double> gram(n * n, 0), right(n, 0);
  for (std::size_t r = 0; r < system.rows.size(); ++r)
    for (const auto& [i, a] : system.rows[r]) {
      right[i] += weight[r] * a * system.wanted[r];
      for (const auto& [k, b] : system.rows[r]) gram[i * n + k] += weight[r] * a * b;
    }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!(gram[i * n + i] > 0)) continue;
      double rest = right[i];
      for (std::size_t k = 0; k < n; ++k)
        if (k != i) rest -= gram[i * n + k] * x[k];
      const double next = std::max(0.0, rest / gram[i * n + i]);
      moved = std::max(moved, std::abs(next - x[i]) / std::max(1e-12, std::abs(next)));
      x[i] = next;
    }
    if (moved < 1e-9) break;
  }
}

std::vector<double> solve(const System& system) {
  std::vector<double> x(system.unknowns, 0), weight(system.rows.size());
  std::vector<double> damping(system.rows.size(), 1);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t r = 0; r < weight.size(); ++r) weight[r] = damping[r] / std::pow(system.scale[r], 2 * kExponent);
    descend(system, weight, x);
    for (std::size_t r = 0; r < weight.size(); ++r) {
      const double error = std::abs(predicted(system, r, x) - system.wanted[r]) / system.scale[r];
      damping[r] = error <= kOutlier ? 1 : kOutlier / error;
    }
  }
  return x;
}

Key key_of(const MeasuredWork& row, const MeasuredWork::Part& part) { return {part.kind, row.phase, row.precision}; }

std::array<double, kTerms> terms(const PhaseWork& work) { return {work.launches, work.flop / kGiga, work.bytes / kMega}; }

}  // namespace

std::vector<OperatorFit> fit_operators(const std::vector<MeasuredWork>& rows, const std::vector<double>& beside) {
  std::map<Key, std::size_t> index;
  std::map<Key, int> samples;
  System system;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::map<std::size_t, double> entries;
    std::set<Key> met;
    for (const auto& part : rows[r].parts) {
      const std::size_t first = kTerms * index.emplace(key_of(rows[r], part), index.size()).first->second;
      met.insert(key_of(rows[r], part));
      const auto values = terms(part.work);
      for (std::size_t t = 0; t < kTerms; ++t) entries[first + t] += values[t];
    }
    for (const Key& key : met) ++samples[key];
    system.rows.emplace_back(entries.begin(), entries.end());
    system.wanted.push_back((rows[r].time_s - (r < beside.size() ? beside[r] : 0)) / kMicro);
    system.scale.push_back(rows[r].time_s / kMicro);
  }
  system.unknowns = kTerms * index.size();
  const auto x = solve(system);
  std::vector<OperatorFit> fits;
  for (const auto& [key, i] : index) {
    const auto& [kind, phase, precision] = key;
    OperatorFit fit{kind,
                    phase,
                    precision,
                    x[kTerms * i] * kMicro,
                    x[kTerms * i + 1] * kMicro / kGiga,
                    x[kTerms * i + 2] * kMicro / kMega,
                    samples[key]};
    if (fit.launch_s + fit.s_per_flop + fit.s_per_byte > 0) fits.push_back(std::move(fit));
  }
  return fits;
}

std::optional<double> fitted_seconds(const std::vector<OperatorFit>& fits, const MeasuredWork& row) {
  double sum = 0;
  for (const auto& part : row.parts) {
    const auto fit = std::find_if(fits.begin(), fits.end(), [&](const OperatorFit& f) {
      return f.kind == part.kind && f.phase == row.phase && f.precision == row.precision;
    });
    if (fit == fits.end()) return std::nullopt;
    sum += part.work.launches * fit->launch_s + part.work.flop * fit->s_per_flop + part.work.bytes * fit->s_per_byte;
  }
  return sum;
}

ClusterPtr with_operator_fits(const ClusterPtr& cluster, const std::vector<MeasuredLog>& logs,
                              std::vector<std::string>& notes) {
  std::vector<MeasuredWork> rows;
  for (const auto& log : logs)
    for (auto& row : measured_work(log))
      if (!row.exchange) rows.push_back(std::move(row));
  if (rows.empty()) return cluster;
  auto result = std::make_shared<Cluster>(*cluster);
  result->fits = fit_operators(rows);
  std::vector<double> errors;
  for (const auto& row : rows)
    if (const auto seconds = fitted_seconds(result->fits, row))
      errors.push_back(std::abs(*seconds - row.time_s) / row.time_s);
  if (!errors.empty()) {
    std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    notes.push_back(fmt::format("operators: {} fits to {} measured times, median error {:.1f} %", result->fits.size(),
                                rows.size(), errors[errors.size() / 2] * 100));
  }
  return result;
}

void calibrate(HardwareReport& report) {
  if (!report.cluster) return;
  report.cluster = with_operator_fits(report.cluster, report.logs, report.notes);
  report.coverage = coverage(*report.cluster);
}

}  // namespace turnpoint
