// SPDX-License-Identifier: Apache-2.0
// What the readers of measured logs share: lines with their numbers, cells, numbers, and the collecting of samples.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/hardware/logs/line_reader.h"
#include "core/hardware/logs/measured_log.h"

namespace turnpoint::logs {

inline constexpr std::size_t kMaximumCells = 2048;
inline constexpr double kMiB = 1048576;

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> words(std::string_view text);      ///< at blanks, at most kMaximumCells
std::vector<std::string_view> csv_cells(std::string_view line);  ///< at commas, trimmed, quotes around a cell dropped
bool all_digits(std::string_view text);
std::string lower(std::string_view text);
/// Text for a message: at most 40 characters, unprintable ones replaced.
std::string shown(std::string_view text);
/// The whole number right after `prefix` in a file name ("2nodes" by suffix: number right before it); nullopt if none.
std::optional<int> number_after(std::string_view name, std::string_view prefix);
std::optional<int> number_before(std::string_view name, std::string_view suffix);
/// File name without folders.
std::string file_name(const std::string& path);

/// A number from a file: finite and within [minimum, maximum], else the reason ("is not a number", "is negative").
struct Number {
  double value = 0;
  std::string problem;
  explicit operator bool() const { return problem.empty(); }
};
Number number(std::string_view text, double minimum = 0, double maximum = 1e18);

/// Builds a MeasuredLog sample by sample. What is out of range becomes a problem with its line instead of a sample.
class LogBuilder {
 public:
  LogBuilder(LogKind kind, const std::string& path);

  void warn(int line, std::string what);
  void note(int line, std::string what);
  /// One timed collective; false where it was refused.
  bool time(int line, Collective kind, const DeviceGroup& group, double bytes, double time_s, RepeatSpread spread = {},
            std::string_view variant = {}, int repeats = 1);
  bool figure(int line, Figure figure, double value, std::string label, Collective kind = Collective::all_reduce,
              DeviceGroup group = {});
  bool op(MeasuredOperator sample);

  MeasuredLog& log() { return log_; }
  /// Sorts, merges repeated sizes, looks for curves that fall. Bad input if nothing was read.
  Expected<MeasuredLog> finish();

 private:
  void add_problem(LogProblem::Severity severity, int line, std::string what);
  void make_curve(const std::tuple<Collective, DeviceGroup, std::string>& key, std::vector<MeasuredPoint>& points);
  void look_for_falls(const MeasuredCurve& curve);

  MeasuredLog log_;
  std::size_t samples_ = 0;
  std::map<std::tuple<Collective, DeviceGroup, std::string>, std::vector<MeasuredPoint>> points_;
};

/// Where a linear interpolation between sorted values reaches `fraction`.
double quantile(const std::vector<double>& sorted, double fraction);

/// A group of `size` devices spread over nodes of at most `per_node`; a size that does not divide evenly is kept on one
/// node.
DeviceGroup group_over(int size, int nodes);

}  // namespace turnpoint::logs
