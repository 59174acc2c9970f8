// SPDX-License-Identifier: Apache-2.0
// Everything the hardware page shows of one profile, in words and rows; made off the interface thread.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "core/hardware/measured/profile_builder.h"

namespace turnpoint::views {

/// One line of the list on the left.
struct HardwareRow {
  enum class Kind { heading, collective, operators, link, topology, figure };
  Kind kind = Kind::heading;
  QString name;
  std::optional<Origin> origin;  ///< none: a heading, or a figure that no formula reads
  QString state;                 ///< in place of the badge: "3 of 7 measured"
  QString samples, value;        ///< "993", "2 KiB – 64 MiB"
  QString tool_tip, note;        ///< note: on what other group the curve was measured, in few words
  int parent = -1;
  std::vector<int> children;
  // Collectives only.
  Collective collective = Collective::all_reduce;
  DeviceGroup group;
  int curve = -1;  ///< in HardwareContent::curves; none: not measured

  /// The same for the same thing in another profile.
  QString key() const;
};

/// One line of the table below the chart.
struct RemarkRow {
  enum class Kind { warning, note };
  Kind kind = Kind::note;
  QString path;  ///< empty: said of the profile, not of a file
  int line = 0;  ///< 0: the file as a whole
  QString what;

  QString file() const;  ///< the path's last part
  QString text() const;  ///< "path:line: what", as compilers write it
};

/// The chart of one row.
struct CurveChartData {
  QString title, subtitle;
  std::optional<Origin> origin;
  std::vector<MeasuredPoint> points;
  QString measured_name;            ///< "measured", and on what where that is another group
  std::vector<CurvePoint> read;     ///< what costs are computed with, beyond the measured sizes too
  double least = 0, most = 0;       ///< bytes, between them `read` is interpolated
  std::vector<CurvePoint> formula;  ///< the formula, for comparison; empty without a cluster
  QString formula_name;
  QString nothing;  ///< why there is no chart
};

/// Immutable once made.
struct HardwareContent {
  ClusterPtr cluster;
  QString title;
  QString summary;      ///< "7 measured · 14 calibrated · 21 modelled collectives"
  QString explanation;  ///< where what was not measured comes from
  QString not_in_use;   ///< why this is not the open hardware: no profile could be made of the files, or not kept
  std::vector<HardwareRow> rows;
  std::vector<int> top;
  std::vector<MeasuredCurve> curves;
  std::vector<RemarkRow> remarks;  ///< warnings first
  int warnings = 0;
};
using HardwareContentPtr = std::shared_ptr<const HardwareContent>;

/// Of `cluster`, and of the files that it was made from where `report` is given; of the files alone where there is no
/// cluster.
HardwareContentPtr make_hardware_content(const ClusterPtr& cluster, const HardwareReport* report);

/// `row` of `content.rows`; a few hundred evaluations of the cost model.
CurveChartData make_curve_chart(const HardwareContent& content, const HardwareRow& row);

/// Points whose time is by more than this part below that of the size before: worth a mark, not noise.
inline constexpr double kVisibleFall = 0.05;
bool falls(const std::vector<MeasuredPoint>& points, std::size_t at);

QString collective_text(Collective kind);                   ///< "all-reduce"
QString group_text(const DeviceGroup& group, int devices);  ///< "2 nodes × 4, 2 at once"; `devices` of the cluster
QString origin_text(Origin origin);
QString size_text(double bytes);  ///< "2 KiB", "1.5 MiB": no needless decimals

}  // namespace turnpoint::views
