// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/log_text.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "core/base/text.h"
#include "core/hardware/naming.h"

namespace turnpoint::logs {

namespace {

constexpr double kMaximumBytes = 1e15, kMaximumTime = 1e6, kMinimumTime = 1e-12;  // what profiles hold
constexpr std::size_t kMaximumSamples = 1'000'000;
constexpr int kMaximumGroup = kMaximumDevices;
constexpr double kMaximumRate = 1e18;  // bytes/s, FLOP/s
constexpr double kVisibleFall = 0.05;  // a smaller fall is noise

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> list;
  std::size_t at = 0;
  while (at < text.size() && list.size() < kMaximumCells) {
    while (at < text.size() && blank(text[at])) ++at;
    std::size_t end = at;
    while (end < text.size() && !blank(text[end])) ++end;
    if (end > at) list.push_back(text.substr(at, end - at));
    at = end;
  }
  return list;
}

std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  while (cells.size() < kMaximumCells) {
    const auto end = line.find(',');
    std::string_view cell = trimmed(line.substr(0, end));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return cells;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string result(text.substr(0, kShown));
  for (char& c : result)
    if (!std::isprint(static_cast<unsigned char>(c))) c = '?';
  return text.size() > kShown ? result + "..." : result;
}

std::optional<int> number_after(std::string_view name, std::string_view prefix) {
  for (auto at = name.find(prefix); at != std::string_view::npos; at = name.find(prefix, at + 1)) {
    std::size_t end = at + prefix.size();
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const auto value = parse_int(name.substr(at + prefix.size(), end - at - prefix.size()));
    if (value && *value >= 1 && *value <= kMaximumGroup) return static_cast<int>(*value);
  }
  return std::nullopt;
}

std::optional<int> number_before(std::string_view name, std::string_view suffix) {
  for (auto at = name.find(suffix); at != std::string_view::npos; at = name.find(suffix, at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
    const auto value = parse_int(name.substr(begin, at - begin));
    if (value && *value >= 1 && *value <= kMaximumGroup) return static_cast<int>(*value);
  }
  return std::nullopt;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Number number(std::string_view text, double minimum, double maximum) {
  Number result;
  const auto value = parse_double(text);
  if (!value) {
    const std::string plain = lower(text);
    const bool special = plain.find("nan") != std::string::npos || plain.find("inf") != std::string::npos;
    result.problem = fmt::format("'{}' is not a {}number", shown(text), special ? "finite " : "");
  } else if (*value < 0 && minimum >= 0) {
    result.problem = fmt::format("{} is negative", shown(text));
  } else if (*value < minimum || *value > maximum) {
    result.problem = fmt::format("{} is not between {:g} and {:g}", shown(text), minimum, maximum);
  } else {
    result.value = *value;
  }
  return result;
}

LogBuilder::LogBuilder(LogKind kind, const std::string& path) {
  log_.kind = kind;
  log_.path = path;
}

void LogBuilder::add_problem(LogProblem::Severity severity, int line, std::string what) {
  if (log_.problems.size() >= kMaximumProblems) {
    ++log_.problems_left_out;
    return;
  }
  log_.problems.push_back({severity, line, std::move(what)});
}

void LogBuilder::warn(int line, std::string what) { add_problem(LogProblem::Severity::warning, line, std::move(what)); }
void LogBuilder::note(int line, std::string what) { add_problem(LogProblem::Severity::note, line, std::move(what)); }

bool LogBuilder::time(int line, Collective kind, const DeviceGroup& group, double bytes, double time_s,
                      RepeatSpread spread, std::string_view variant, int repeats) {
  const auto refuse = [&](std::string what) {
    warn(line, std::move(what));
    return false;
  };
  if (group.size < 2 || group.size > kMaximumGroup || group.nodes < 1 || group.nodes > kMaximumNodes ||
      group.per_node > kMaximumDevicesPerNode || group.nodes * group.per_node != group.size)
    return refuse(
        fmt::format("a group of {} devices on {} nodes is no group that a profile holds", group.size, group.nodes));
  if (!std::isfinite(bytes) || bytes < 1 || bytes > kMaximumBytes)
    return refuse(fmt::format("a size of {:g} bytes is not between 1 and {:g}", bytes, kMaximumBytes));
  if (!std::isfinite(time_s) || time_s < kMinimumTime || time_s > kMaximumTime)
    return refuse(fmt::format("a time of {:g} s is not between {:g} and {:g} s", time_s, kMinimumTime, kMaximumTime));
  if (++samples_ > kMaximumSamples) {
    if (samples_ == kMaximumSamples + 1)
      warn(line, fmt::format("more than {} samples: the rest is left out", kMaximumSamples));
    return false;
  }
  for (double* value : {&spread.min_s, &spread.q1_s, &spread.q3_s, &spread.max_s})
    if (!std::isfinite(*value) || *value < 0 || *value > kMaximumTime) *value = 0;
  points_[{kind, group, std::string(variant)}].push_back({bytes, time_s, spread, repeats, line});
  return true;
}

bool LogBuilder::figure(int line, Figure figure, double value, std::string label, Collective kind, DeviceGroup group) {
  if (!std::isfinite(value) || value <= 0 || value > kMaximumRate) {
    warn(line, fmt::format("{}: {:g} is no usable value", shown(label), value));
    return false;
  }
  if (log_.figures.size() >= kMaximumSamples) return false;
  log_.figures.push_back({figure, value, kind, group, std::move(label), line});
  return true;
}

bool LogBuilder::op(MeasuredOperator sample) {
  if (!std::isfinite(sample.time_s) || sample.time_s < kMinimumTime || sample.time_s > kMaximumTime) {
    warn(sample.line, fmt::format("{}: a time of {:g} s is not between {:g} and {:g} s", shown(sample.kind),
                                  sample.time_s, kMinimumTime, kMaximumTime));
    return false;
  }
  if (log_.operators.size() >= kMaximumSamples) return false;
  log_.operators.push_back(std::move(sample));
  return true;
}

double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void LogBuilder::make_curve(const std::tuple<Collective, DeviceGroup, std::string>& key,
                            std::vector<MeasuredPoint>& points) {
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  MeasuredCurve curve{std::get<0>(key), std::get<1>(key), std::get<2>(key), {}, log_.path};
  for (std::size_t i = 0; i < points.size();) {
    std::size_t end = i;
    std::vector<double> times;
    double least = points[i].time_s, most = points[i].time_s;
    int repeats = 0;
    for (; end < points.size() && points[end].bytes == points[i].bytes; ++end) {
      times.push_back(points[end].time_s);
      repeats += points[end].repeats;
      const RepeatSpread& spread = points[end].spread;
      least = std::min(least, spread.min_s > 0 ? spread.min_s : points[end].time_s);
      most = std::max({most, points[end].time_s, spread.max_s});
    }
    MeasuredPoint point = points[i];
    if (times.size() > 1) {
      std::sort(times.begin(), times.end());
      point.time_s = quantile(times, 0.5);
      point.repeats = repeats;
      point.spread = {least, quantile(times, 0.25), quantile(times, 0.75), most};
    }
    curve.points.push_back(point);
    i = end;
  }
  look_for_falls(curve);
  log_.curves.push_back(std::move(curve));
}

void LogBuilder::look_for_falls(const MeasuredCurve& curve) {
  int falls = 0;
  const MeasuredPoint *worst_from = nullptr, *worst_to = nullptr;
  double worst = kVisibleFall;
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const double fall = 1 - curve.points[i].time_s / curve.points[i - 1].time_s;
    if (fall <= kVisibleFall) continue;
    ++falls;
    if (fall > worst) {
      worst = fall;
      worst_from = &curve.points[i - 1];
      worst_to = &curve.points[i];
    }
  }
  if (!worst_to) return;
  warn(worst_to->line, fmt::format("{} of {} x {} devices{}: not monotonic, {} time{} by more than {:.0f} % where the "
                                   "size grows, most from {:.1f} us "
                                   "at {:.0f} bytes to {:.1f} us at {:.0f} bytes; kept as measured",
                                   to_string(curve.kind), curve.group.nodes, curve.group.per_node,
                                   curve.variant.empty() ? "" : " (" + curve.variant + ")", falls,
                                   falls == 1 ? " falls" : "s fall", 100 * kVisibleFall, 1e6 * worst_from->time_s,
                                   worst_from->bytes, 1e6 * worst_to->time_s, worst_to->bytes));
}

Expected<MeasuredLog> LogBuilder::finish() {
  for (auto& [key, points] : points_) make_curve(key, points);
  points_.clear();
  if (log_.curves.empty() && log_.figures.empty() && log_.operators.empty() && !log_.topology) {
    // The first row that was refused, else what was found missing last.
    const LogProblem* reason = nullptr;
    for (const auto& problem : log_.problems) {
      if (problem.severity == LogProblem::Severity::warning) reason = &problem;
      if (problem.what.starts_with("broken row")) break;
    }
    if (!reason) return bad_input(fmt::format("{} without a measurement", to_string(log_.kind)), log_.path);
    return bad_input(fmt::format("{} without a usable row: {}", to_string(log_.kind), reason->what),
                     reason->line > 0 ? fmt::format("{}: line {}", log_.path, reason->line) : log_.path);
  }
  std::stable_sort(log_.problems.begin(), log_.problems.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(log_);
}

DeviceGroup group_over(int size, int nodes) {
  if (nodes < 1 || size % nodes != 0) nodes = 1;
  return {size, nodes, size / nodes, 1};
}

}  // namespace turnpoint::logs
