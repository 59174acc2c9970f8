// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/validation/validation_report.h"

namespace turnpoint {

namespace {

ErrorSummary::Row row_of(const char* name, std::vector<double> errors) {
  ErrorSummary::Row row;
  row.name = name;
  row.plans = static_cast<int>(errors.size());
  if (errors.empty()) return row;
  std::sort(errors.begin(), errors.end());
  row.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  const std::size_t middle = errors.size() / 2;
  row.median = errors.size() % 2 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  row.worst = errors.back();
  return row;
}

/// 1 for the smallest; equal values share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + 1 + end) / 2;
    i = end;
  }
  return ranks;
}

}  // namespace

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.size() < 3) return std::nullopt;
  const auto x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double both = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    first += (x[i] - mean) * (x[i] - mean);
    second += (y[i] - mean) * (y[i] - mean);
  }
  if (first == 0 || second == 0) return std::nullopt;
  return std::clamp(both / std::sqrt(first * second), -1.0, 1.0);
}

ErrorSummary summarise(const std::vector<ValidationReport>& reports) {
  std::vector<double> errors[4], predicted, measured;
  const auto note = [&](int row, const ComparedValue& value) {
    if (const auto error = value.error()) errors[row].push_back(std::abs(*error));
  };
  for (const auto& report : reports) {
    note(0, report.step);
    note(1, report.execution);
    note(2, report.network);
    for (const auto& value : report.memory)
      if (value.name == "peak") note(3, value);
    if (!report.step.measured) continue;
    predicted.push_back(report.step.predicted);
    measured.push_back(*report.step.measured);
  }
  ErrorSummary summary;
  static constexpr const char* kNames[] = {"step", "execution", "network", "memory"};
  for (int row = 0; row < 4; ++row) summary.rows.push_back(row_of(kNames[row], std::move(errors[row])));
  summary.rank_correlation = spearman(predicted, measured);
  return summary;
}

}  // namespace turnpoint
