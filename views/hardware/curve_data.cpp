// SPDX-License-Identifier: Apache-2.0
// From a row of the hardware page to the curves of its chart.
#include <QObject>
#include <algorithm>
#include <cmath>

#include "core/hardware/collective_model.h"
#include "views/common/format.h"
#include "views/hardware/hardware_content.h"

namespace turnpoint::views {

namespace {

constexpr double kBeyond = 8;                                   // shown of the extrapolation, as a factor of the size
constexpr double kModelledFrom = 1024, kModelledTo = 1u << 30;  // bytes, where nothing was measured
constexpr int kPerDoubling = 6;

std::vector<double> sizes_between(double low, double high, const std::vector<MeasuredPoint>& points) {
  std::vector<double> sizes;
  const double step = std::pow(2.0, 1.0 / kPerDoubling);
  for (double bytes = low; bytes < high; bytes *= step) sizes.push_back(bytes);
  sizes.push_back(high);
  for (const auto& point : points)
    if (point.bytes > 0) sizes.push_back(point.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// Sizes are whole tensors of the group; the model takes the local block in an all-to-all.
std::vector<CurvePoint> read_at(const CollectiveModel& model, const HardwareRow& row,
                                const std::vector<double>& sizes) {
  std::vector<CurvePoint> curve;
  for (const double bytes : sizes) {
    const double given = row.collective == Collective::all_to_all ? bytes / row.group.size : bytes;
    const double time_s = model.time(row.collective, row.group, given).value;
    if (std::isfinite(time_s) && time_s > 0) curve.push_back({bytes, time_s});
  }
  return curve;
}

QString nothing_text(const HardwareContent& content, const HardwareRow& row) {
  switch (row.kind) {
    case HardwareRow::Kind::operators:
      if (row.origin == Origin::measured)
        return QObject::tr("%1: %2 measured times. Other sizes come from the roofline model.")
            .arg(row.name, row.samples);
      if (row.origin == Origin::calibrated)
        return QObject::tr("%1: the roofline model with an efficiency fitted to measured times.").arg(row.name);
      return QObject::tr(
                 "Nothing measured: time of %1 is FLOP or bytes over the data sheet's peak, less the usual "
                 "losses (%2 of the FLOP/s, %3 of the memory bandwidth).")
          .arg(row.name, share_text(content.cluster ? content.cluster->device.flop_efficiency : 0),
               share_text(content.cluster ? content.cluster->device.memory_efficiency : 0));
    case HardwareRow::Kind::link:
    case HardwareRow::Kind::topology:
    case HardwareRow::Kind::figure: return QObject::tr("%1: %2\n%3").arg(row.name, row.value, row.tool_tip);
    default: return QObject::tr("Pick a group of devices to see its curve.");
  }
}

}  // namespace

bool falls(const std::vector<MeasuredPoint>& points, std::size_t at) {
  return at > 0 && at < points.size() && points[at].time_s < (1 - kVisibleFall) * points[at - 1].time_s;
}

CurveChartData make_curve_chart(const HardwareContent& content, const HardwareRow& row) {
  CurveChartData chart;
  chart.title = row.name;
  chart.origin = row.origin;
  if (row.kind != HardwareRow::Kind::collective) {
    chart.nothing = nothing_text(content, row);
    return chart;
  }
  chart.title = QStringLiteral("%1 · %2").arg(collective_text(row.collective), row.name);
  chart.measured_name = row.note.isEmpty() ? QObject::tr("measured") : QObject::tr("measured %1").arg(row.note);
  double low = kModelledFrom, high = kModelledTo;
  if (row.curve >= 0) {
    for (const auto& point : content.curves[static_cast<std::size_t>(row.curve)].points)
      if (point.bytes > 0 && point.time_s > 0 && std::isfinite(point.bytes) && std::isfinite(point.time_s))
        chart.points.push_back(point);
  }
  if (!chart.points.empty()) {
    chart.least = chart.points.front().bytes;
    chart.most = chart.points.back().bytes;
    low = std::max(1.0, chart.least / kBeyond);
    high = chart.most * kBeyond;
    chart.subtitle = (chart.points.size() == 1 ? QObject::tr("1 size") : QObject::tr("%1 sizes").arg(row.samples));
  }
  const std::vector<double> sizes = sizes_between(low, high, chart.points);
  if (!content.cluster) {
    for (const auto& point : chart.points) chart.read.push_back({point.bytes, point.time_s});
    return chart;
  }
  Cluster bare = *content.cluster;
  bare.collectives.clear();
  const CollectiveModel formula(bare, {}), charged(*content.cluster, {});
  chart.formula = read_at(formula, row, sizes);
  const bool fitted = formula.origin(row.collective, row.group) == Origin::calibrated;
  chart.formula_name = (fitted ? QObject::tr("%1, fitted links") : QObject::tr("%1, nominal links"))
                           .arg(QString::fromUtf8(info_of(bare.library).title));
  DeviceGroup used{0, 0, 0, 0};
  const Origin origin = charged.origin(row.collective, row.group, &used);
  // On a curve of another group, or of another collective of this one.
  const bool on_other = origin == Origin::calibrated && used.size > 0;
  if (row.curve >= 0 || on_other) chart.read = read_at(charged, row, sizes);
  if (on_other) chart.least = low, chart.most = high;  // nothing of it lies beyond
  if (row.curve < 0)
    chart.subtitle = on_other ? QObject::tr("calibrated on the curve of %1").arg(group_text(used, bare.devices()))
                     : fitted ? QObject::tr("calibrated: formulas with fitted links")
                              : QObject::tr("modelled: formulas with nominal links");
  return chart;
}

}  // namespace turnpoint::views
