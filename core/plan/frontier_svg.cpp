// SPDX-License-Identifier: Apache-2.0
// The memory-time chart without a window: step line, network and compute parts dotted, device memory, turning point.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/plan/escape.h"
#include "core/plan/export.h"

namespace turnpoint {

namespace {

constexpr double kWidth = 960, kHeight = 540, kLeft = 76, kRight = 24, kTop = 52, kBottom = 52;
constexpr double kGiB = 1073741824.0;
constexpr const char *kAccent = "#1F5FA8", *kSecondary = "#565E66", *kNetwork = "#C4661F", *kCompute = "#3F6E9E";

// 1, 2 or 5 times a power of ten, giving about `wanted` steps.
double tick_step(double range, int wanted) {
  const double raw = range / wanted, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

struct Axes {
  double x_max = 1, y_max = 1;  ///< GiB (or MiB) and seconds (or milliseconds), from 0
  double x_unit = kGiB, y_unit = 1;
  const char *x_name = "GiB", *y_name = "s";

  explicit Axes(const Result& result) {
    double memory = 0, time = 0;
    for (const auto& point : result.points) {
      memory = std::max(memory, static_cast<double>(point.memory_bytes));
      time = std::max(time, point.time_s);
    }
    const double limit = static_cast<double>(result.scenario->memory_limit());
    if (limit > 0 && limit < 2 * memory) memory = std::max(memory, limit);
    if (memory < kGiB) x_unit = 1048576.0, x_name = "MiB";
    if (time < 10) y_unit = 1e-3, y_name = "ms";
    x_max = memory > 0 ? 1.06 * memory / x_unit : 1;
    y_max = time > 0 ? 1.08 * time / y_unit : 1;
  }
  double x(double bytes) const { return kLeft + bytes / x_unit / x_max * (kWidth - kLeft - kRight); }
  double y(double seconds) const { return kHeight - kBottom - seconds / y_unit / y_max * (kHeight - kTop - kBottom); }
};

std::string text(double x, double y, const char* anchor, const std::string& words, const char* colour, int size = 12) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n", x,
                     y, anchor, size, colour, escape_xml(words));
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string draw_axes(const Axes& axes) {
  std::string svg;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const double x_step = tick_step(axes.x_max, 8), y_step = tick_step(axes.y_max, 6);
  for (int i = 0; i * x_step <= axes.x_max; ++i) {
    const double at = axes.x(i * x_step * axes.x_unit);
    svg += line(at, kTop, at, bottom, "stroke=\"#ECEEF0\"");
    svg += text(at, bottom + 18, "middle", fmt::format("{:g}", i * x_step), kSecondary, 11);
  }
  for (int i = 0; i * y_step <= axes.y_max; ++i) {
    const double at = axes.y(i * y_step * axes.y_unit);
    svg += line(kLeft, at, right, at, "stroke=\"#ECEEF0\"");
    svg += text(kLeft - 8, at + 4, "end", fmt::format("{:g}", i * y_step), kSecondary, 11);
  }
  svg +=
      line(kLeft, bottom, right, bottom, "stroke=\"#8A929A\"") + line(kLeft, kTop, kLeft, bottom, "stroke=\"#8A929A\"");
  svg += text(right, bottom + 38, "end", fmt::format("Memory per device ({})", axes.x_name), kSecondary);
  svg += text(kLeft - 52, kTop - 10, "start", fmt::format("Iteration time ({})", axes.y_name), kSecondary);
  return svg;
}

// Steps to the right and down: no plan exists between two plans.
template <class Value>
std::string steps(const Axes& axes, const std::vector<ResultPoint>& points, const Value& value,
                  const std::string& style) {
  if (points.empty()) return {};
  std::string path;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = axes.x(static_cast<double>(points[i].memory_bytes)), y = axes.y(value(points[i]));
    path += i == 0 ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format(" H{:.1f} V{:.1f}", x, y);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" {}/>\n", path, style);
}

std::string draw_limit(const Axes& axes, std::int64_t limit) {
  const double at = axes.x(static_cast<double>(limit)), right = kWidth - kRight, bottom = kHeight - kBottom;
  if (limit <= 0 || at > right) return {};
  return fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#F0F1F2\"/>\n", at, kTop,
                     right - at, bottom - kTop) +
         line(at, kTop, at, bottom, "stroke=\"#565E66\" stroke-dasharray=\"4 3\"") +
         text(at - 6, kTop + 14, "end", "Device memory " + format_bytes(limit), kSecondary, 11);
}

std::string draw_turning_point(const Axes& axes, const Result& result) {
  const auto words = describe_turning_point(result);
  std::string svg;
  double x = kWidth - kRight - 12, y = kTop + 36;
  const char* anchor = "end";
  if (result.turning_point) {
    const ResultPoint& point = result.points[*result.turning_point];
    const double px = axes.x(static_cast<double>(point.memory_bytes)), py = axes.y(point.time_s);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"7\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       px, py, kAccent);
    const bool room = px < kWidth - 280;
    x = room ? px + 14 : px - 14;
    anchor = room ? "start" : "end";
    y = std::max(kTop + 36, py - 16.0 * static_cast<double>(words.size()));
  }
  for (const auto& words_line : words) {
    svg += text(x, y, anchor, words_line, "#1D2125", 12);
    y += 16;
  }
  return svg;
}

}  // namespace

std::string write_frontier_svg(const Result& result) {
  const Axes axes(result);
  std::string svg = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  svg += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#FFFFFF\"/>\n",
      kWidth, kHeight);
  svg += text(kLeft - 52, 24, "start",
              result.scenario->model->name + " on " + result.scenario->cluster->title + ", " + result.method, "#1D2125",
              14);
  svg += draw_limit(axes, result.scenario->memory_limit());
  svg += draw_axes(axes);
  svg += steps(
      axes, result.points, [](const ResultPoint& p) { return p.network_s; },
      fmt::format("stroke=\"{}\" stroke-width=\"1.3\" stroke-dasharray=\"1.5 3\"", kNetwork));
  svg += steps(
      axes, result.points, [](const ResultPoint& p) { return p.compute_s; },
      fmt::format("stroke=\"{}\" stroke-width=\"1.3\" stroke-dasharray=\"1.5 3\"", kCompute));
  svg += steps(
      axes, result.points, [](const ResultPoint& p) { return p.time_s; },
      fmt::format("stroke=\"{}\" stroke-width=\"2.2\"", kAccent));
  for (const auto& point : result.points)
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.3\" fill=\"{}\" stroke=\"{}\"><title>{}, {}</title></circle>\n",
        axes.x(static_cast<double>(point.memory_bytes)), axes.y(point.time_s), point.fits ? kAccent : "#FFFFFF",
        kAccent, format_bytes(point.memory_bytes), format_seconds(point.time_s));
  if (!result.points.empty()) {
    const ResultPoint& last = result.points.back();
    const double x = axes.x(static_cast<double>(last.memory_bytes)) - 4;
    svg += text(x, axes.y(last.network_s) - 5, "end", "network", kNetwork, 11) +
           text(x, axes.y(last.compute_s) - 5, "end", "compute", kCompute, 11);
  }
  return svg + draw_turning_point(axes, result) + "</svg>\n";
}

}  // namespace turnpoint
