// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/hardware_content.h"
#include "core/hardware/collective_model.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/hardware/topology_view.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kMostFigures = 200;
constexpr QChar kDash(0x2013), kTimes(0x00D7);

QString range_text(double least, double most) {
  return least == most ? size_text(most) : size_text(least) + u' ' + kDash + u' ' + size_text(most);
}

class ContentBuilder {
 public:
  ContentBuilder(const ClusterPtr& cluster, const HardwareReport* report) : report_(report) { out_.cluster = cluster; }

  HardwareContent build() {
    if (out_.cluster) {
      out_.title = to_qt(out_.cluster->title);
      out_.curves = curves_of(*out_.cluster);
      add_coverage();
      add_links();
    } else if (report_) {
      out_.title = report_->logs.size() == 1 ? QObject::tr("1 measured file, no profile")
                                             : QObject::tr("%1 measured files, no profile").arg(report_->logs.size());
      add_measured_curves();
    }
    if (report_ && !report_->no_cluster.empty()) {
      // The core speaks of an option of the command line; here a button offers the same.
      const QString why = to_qt(report_->no_cluster).section(QStringLiteral(" (give --base"), 0, 0);
      out_.not_in_use = out_.cluster ? QObject::tr("This profile is not in use: %1").arg(why)
                                     : QObject::tr("No profile could be made: %1").arg(why);
    }
    if (report_) {
      add_figures();
      add_remarks();
    }
    if (out_.cluster)
      for (const auto& note : out_.cluster->notes) add_note({}, to_qt(note));
    std::stable_sort(out_.remarks.begin(), out_.remarks.end(),
                     [](const RemarkRow& a, const RemarkRow& b) { return a.kind < b.kind; });
    for (const auto& remark : out_.remarks) out_.warnings += remark.kind == RemarkRow::Kind::warning;
    return std::move(out_);
  }

 private:
  int add(HardwareRow row) {
    const int at = static_cast<int>(out_.rows.size());
    (row.parent < 0 ? out_.top : out_.rows[static_cast<std::size_t>(row.parent)].children).push_back(at);
    out_.rows.push_back(std::move(row));
    return at;
  }
  HardwareRow& row(int at) { return out_.rows[static_cast<std::size_t>(at)]; }
  int heading(const QString& name) {
    HardwareRow made;
    made.name = name;
    return add(std::move(made));
  }
  int heading_of(Collective kind) {
    int& at = headings_[static_cast<std::size_t>(kind)];
    if (at < 0) {
      at = heading(collective_text(kind));
      row(at).collective = kind;
    }
    return at;
  }
  int curve_of(Collective kind, const DeviceGroup& group) const {
    for (std::size_t i = 0; i < out_.curves.size(); ++i)
      if (out_.curves[i].kind == kind && out_.curves[i].group == group) return static_cast<int>(i);
    return -1;
  }

  void add_coverage() {
    const Cluster& cluster = *out_.cluster;
    const CollectiveModel model(cluster, {});
    int operators = -1;
    std::array<int, 3> collectives{};
    for (const auto& item : coverage(cluster)) {
      HardwareRow made;
      made.origin = item.origin;
      if (item.samples > 0) made.samples = grouped_number(static_cast<double>(item.samples), 0);
      if (item.what == CoverageItem::What::operators) {
        if (operators < 0) operators = heading(QObject::tr("Operators"));
        made.kind = HardwareRow::Kind::operators;
        made.name = to_qt(item.name);
        made.parent = operators;
      } else {
        const auto kind = parse_collective(item.name);
        if (!kind) continue;
        made.kind = HardwareRow::Kind::collective;
        made.collective = *kind;
        made.group = item.group;
        made.name = group_text(item.group, cluster.devices());
        made.parent = heading_of(*kind);
        if (item.most_bytes > 0) made.value = range_text(item.least_bytes, item.most_bytes);
        DeviceGroup used = item.group;
        if (item.origin == Origin::measured && model.origin(*kind, item.group, &used) == Origin::measured)
          made.curve = curve_of(*kind, used);
        if (made.curve >= 0 && used != item.group) {
          made.note = used.size != item.group.size ? QObject::tr("on a pair")
                      : used.concurrent == 1       ? QObject::tr("alone")
                                                   : QObject::tr("with %1 at once").arg(used.concurrent);
          made.tool_tip = QObject::tr("Taken from the curve measured on %1").arg(group_text(used, cluster.devices()));
        }
        if (item.group.concurrent == 1 && item.group.size < cluster.devices())
          made.tool_tip = QObject::tr("Measured with one such group alone; a plan runs as many at once as fit");
        ++collectives[static_cast<std::size_t>(item.origin)];
      }
      add(std::move(made));
    }
    summarise(collectives);
  }

  void summarise(const std::array<int, 3>& collectives) {
    for (HardwareRow& head : out_.rows) {
      if (head.kind != HardwareRow::Kind::heading || head.children.empty()) continue;
      std::array<int, 3> origins{};
      for (const int child : head.children) ++origins[static_cast<std::size_t>(*row(child).origin)];
      for (const Origin origin : {Origin::measured, Origin::calibrated, Origin::modelled}) {
        const int count = origins[static_cast<std::size_t>(origin)], all = static_cast<int>(head.children.size());
        if (count == 0) continue;
        head.state = count == all ? QObject::tr("all %1").arg(origin_text(origin))
                                  : QObject::tr("%1 of %2 %3").arg(count).arg(all).arg(origin_text(origin));
        break;
      }
    }
    QStringList parts;
    for (const Origin origin : {Origin::measured, Origin::calibrated, Origin::modelled})
      if (const int count = collectives[static_cast<std::size_t>(origin)]; count > 0)
        parts << QStringLiteral("%1 %2").arg(count).arg(origin_text(origin));
    if (!parts.isEmpty()) out_.summary = QObject::tr("collectives: %1").arg(parts.join(QStringLiteral(" · ")));
    const int measured = collectives[0], calibrated = collectives[1], modelled = collectives[2];
    if (measured == 0 && calibrated == 0)
      out_.explanation = QObject::tr(
          "Nothing measured: every collective comes from the formulas of its library with nominal link figures.");
    else if (calibrated > 0 && modelled == 0)
      out_.explanation = QObject::tr(
          "What was not measured is calibrated: on the curves of other groups, or by formulas of the library with "
          "fitted "
          "links.");
    else if (calibrated > 0)
      out_.explanation = QObject::tr(
          "What was not measured is calibrated on the curves of other groups or by fitted links, else modelled: "
          "formulas "
          "of the library with nominal links.");
    else if (modelled > 0)
      out_.explanation =
          QObject::tr("What was not measured comes from the formulas of the library with nominal link figures.");
    else
      out_.explanation = QObject::tr("Every collective was measured.");
  }

  void add_measured_curves() {
    for (const auto& log : report_->logs)
      for (const auto& curve : log.curves) {
        if (curve.points.empty()) continue;
        HardwareRow made;
        made.kind = HardwareRow::Kind::collective;
        made.collective = curve.kind;
        made.group = curve.group;
        made.name = group_text(curve.group, curve.group.size * curve.group.concurrent);
        if (!curve.variant.empty()) made.name += QStringLiteral(", ") + to_qt(curve.variant);
        made.origin = Origin::measured;
        made.samples = grouped_number(static_cast<double>(curve.points.size()), 0);
        made.value = range_text(curve.points.front().bytes, curve.points.back().bytes);
        made.tool_tip = to_qt(log.path);
        made.parent = heading_of(curve.kind);
        made.curve = static_cast<int>(out_.curves.size());
        out_.curves.push_back(curve);
        add(std::move(made));
      }
    out_.explanation = QObject::tr("These are the curves as the files have them. No plan is costed with them yet.");
  }

  void add_link(int parent, const LinkLevel& link, const QString& name) {
    HardwareRow made;
    made.kind = HardwareRow::Kind::link;
    made.name = link.name.empty() ? name : to_qt(link.name) + QStringLiteral(", ") + name;
    made.origin = link.origin;
    made.value = bandwidth_text(link.bandwidth);
    made.tool_tip = QObject::tr("%1 a step. ").arg(latency_text(link.latency_s));
    if (link.launch_s > 0)
      made.tool_tip += QObject::tr("A collective takes %1 to begin. ").arg(latency_text(link.launch_s));
    made.tool_tip += link.origin == Origin::calibrated
                         ? QObject::tr("Fitted to measured collectives.")
                         : QObject::tr(
                               "Nominal. Presets hold what collectives reach in public measurements, "
                               "less than the data sheet prints.");
    made.parent = parent;
    add(std::move(made));
  }

  void add_links() {
    const Cluster& cluster = *out_.cluster;
    const int parent = heading(QObject::tr("Links"));
    if (!cluster.mixed()) {
      if (cluster.devices_per_node > 1) add_link(parent, cluster.links[kIntraNode], QObject::tr("in a node"));
      if (cluster.nodes > 1) add_link(parent, cluster.links[kInterNode], QObject::tr("between nodes"));
    }
    for (const NodeGroup& group : cluster.groups) {
      const QString device = to_qt(group.device.name);
      if (group.devices_per_node > 1)
        add_link(parent, group.links[kIntraNode],
                 QObject::tr("in a node of %1 %2 %3").arg(group.devices_per_node).arg(kTimes).arg(device));
      add_link(parent, group.links[kInterNode], QObject::tr("out of a node of %1").arg(device));
    }
    for (const PodLevel& level : cluster.pods)
      add_link(parent, level.link, QObject::tr("pods of %1 nodes").arg(level.nodes));
    if (cluster.devices() > 1) {
      HardwareRow library;
      library.kind = HardwareRow::Kind::link;
      library.name = QObject::tr("Collectives by");
      library.value = QString::fromUtf8(info_of(cluster.library).title);
      library.tool_tip = QString::fromUtf8(info_of(cluster.library).about);
      library.parent = parent;
      add(std::move(library));
    }
    HardwareRow host;
    host.kind = HardwareRow::Kind::link;
    host.name = QObject::tr("Device to host");
    host.value =
        cluster.host_link_bandwidth > 0 ? bandwidth_text(cluster.host_link_bandwidth) : QObject::tr("not known");
    host.parent = parent;
    add(std::move(host));
    if (cluster.overlap_slowdown > 1) {
      HardwareRow beside;
      beside.kind = HardwareRow::Kind::link;
      beside.name = QObject::tr("Computing beside communication");
      beside.value = factor_text(cluster.overlap_slowdown);
      beside.tool_tip = QObject::tr("How many times as long both take on the simulated clock while a device does both");
      beside.parent = parent;
      add(std::move(beside));
    }
    add_topology(parent, cluster.topology);
  }

  void add_topology(int parent, const HostTopology& topology) {
    if (!topology.gpus.empty()) {
      HardwareRow between;
      between.kind = HardwareRow::Kind::topology;
      between.name = QObject::tr("GPU to GPU");
      const QString ways = ways_text(topology);
      between.value = ways.isEmpty() ? QObject::tr("1 GPU") : ways;
      between.tool_tip = QObject::tr("How the GPUs of the measured host reach each other; costs do not depend on it");
      between.parent = parent;
      add(std::move(between));
    }
    if (const auto cores = cores_text(topology); !cores.empty()) {
      HardwareRow host;
      host.kind = HardwareRow::Kind::link;
      host.name = QObject::tr("Measured host");
      // The whole text would push the other columns out of sight.
      host.value = topology.cores > 0 ? QObject::tr("%1 cores").arg(topology.cores)
                                      : QObject::tr("%1 NUMA nodes").arg(topology.numa_nodes.size());
      host.tool_tip = to_qt(cores);
      host.parent = parent;
      add(std::move(host));
    }
  }

  static QString figure_value(const MeasuredFigure& figure) {
    switch (figure.figure) {
      case Figure::host_latency:
      case Figure::card_latency:
      case Figure::link_latency: return latency_text(figure.value);
      case Figure::overlap_slowdown: return factor_text(figure.value);
      case Figure::peak_16bit:
      case Figure::peak_32bit: return speed_text(figure.value);
      default: return bandwidth_text(figure.value);
    }
  }

  void add_figures() {
    int parent = -1;
    std::size_t shown = 0;
    for (const auto& log : report_->logs)
      for (const auto& figure : log.figures) {
        if (++shown > kMostFigures) continue;
        if (parent < 0) parent = heading(QObject::tr("Figures in the files"));
        HardwareRow made;
        made.kind = HardwareRow::Kind::figure;
        made.name = to_qt(to_string(figure.figure));
        if (!figure.label.empty()) made.name += QStringLiteral(", ") + to_qt(figure.label);
        made.value = figure_value(figure);
        made.tool_tip = to_qt(log.path) + (figure.line > 0 ? QStringLiteral(":%1").arg(figure.line) : QString());
        made.parent = parent;
        add(std::move(made));
      }
    if (parent >= 0)
      row(parent).state = shown > kMostFigures ? QObject::tr("%1 of %2 shown").arg(kMostFigures).arg(shown)
                                               : grouped_number(static_cast<double>(shown), 0);
  }

  void add_note(const QString& path, const QString& what) {
    for (const auto& remark : out_.remarks)
      if (remark.path == path && remark.what == what) return;
    out_.remarks.push_back({RemarkRow::Kind::note, path, 0, what});
  }

  void add_remarks() {
    for (const auto& unread : report_->unread) {
      // The file stands in a column of its own; the place in it may follow.
      const QString path = to_qt(unread.path);
      QString where = to_qt(unread.error.where);
      where = where.startsWith(path) ? where.mid(path.size()) : QString();
      while (where.startsWith(u':') || where.startsWith(u' ')) where.remove(0, 1);
      QString what = where.isEmpty() ? QString() : where + QStringLiteral(": ");
      what += to_qt(unread.error.what);
      if (!unread.error.hint.empty()) what += QStringLiteral(" (%1)").arg(to_qt(unread.error.hint));
      out_.remarks.push_back({RemarkRow::Kind::warning, path, 0, QObject::tr("not read: %1").arg(what)});
    }
    for (const auto& log : report_->logs) {
      for (const auto& problem : log.problems)
        out_.remarks.push_back(
            {problem.severity == LogProblem::Severity::warning ? RemarkRow::Kind::warning : RemarkRow::Kind::note,
             to_qt(log.path), problem.line, to_qt(problem.what)});
      if (log.problems_left_out > 0)
        out_.remarks.push_back({RemarkRow::Kind::warning, to_qt(log.path), 0,
                                counted(double(log.problems_left_out), QObject::tr("1 more problem, not listed"),
                                        QObject::tr("%1 more problems, not listed"))});
    }
    for (const auto& note : report_->notes) add_note({}, to_qt(note));
    for (const auto& log : report_->logs) {
      QStringList parts{QObject::tr("read as %1").arg(to_qt(to_string(log.kind)))};
      if (!log.device_name.empty()) parts << to_qt(log.device_name);
      if (log.devices_per_node > 0)
        parts << QStringLiteral("%1 %2 %3").arg(std::max(1, log.nodes)).arg(kTimes).arg(log.devices_per_node);
      if (!log.curves.empty()) parts << QObject::tr("%1 curves").arg(log.curves.size());
      if (!log.figures.empty()) parts << QObject::tr("%1 figures").arg(log.figures.size());
      if (!log.operators.empty()) parts << QObject::tr("%1 operator times").arg(log.operators.size());
      if (log.topology) parts << QObject::tr("topology of %1 devices").arg(log.topology->devices);
      add_note(to_qt(log.path), parts.join(QStringLiteral(", ")));
    }
  }

  HardwareContent out_;
  const HardwareReport* report_;
  std::array<int, 6> headings_{-1, -1, -1, -1, -1, -1};
};

}  // namespace

QString HardwareRow::key() const {
  QString text = QStringLiteral("%1/%2/%3").arg(static_cast<int>(kind)).arg(static_cast<int>(collective)).arg(name);
  return text;
}

QString RemarkRow::file() const { return path.section(u'/', -1); }

QString RemarkRow::text() const {
  QString text = path;
  if (line > 0) text += QStringLiteral(":%1").arg(line);
  return text.isEmpty() ? what : text + QStringLiteral(": ") + what;
}

HardwareContentPtr make_hardware_content(const ClusterPtr& cluster, const HardwareReport* report) {
  return std::make_shared<const HardwareContent>(ContentBuilder(cluster, report).build());
}

QString collective_text(Collective kind) {
  QString text = to_qt(to_string(kind)).replace(u'_', u'-');
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  return text;
}

QString group_text(const DeviceGroup& group, int devices) {
  QString text = group.nodes == 1 ? QObject::tr("%1 in a node").arg(group.per_node)
                                  : QObject::tr("%1 nodes %2 %3").arg(group.nodes).arg(kTimes).arg(group.per_node);
  if (group.concurrent > 1)
    text += QObject::tr(", %1 at once").arg(group.concurrent);
  else if (group.size < devices)
    text += QObject::tr(", alone");
  return text;
}

QString origin_text(Origin origin) {
  switch (origin) {
    case Origin::measured: return QObject::tr("measured");
    case Origin::calibrated: return QObject::tr("calibrated");
    case Origin::modelled: return QObject::tr("modelled");
  }
  return {};
}

QString size_text(double bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) bytes /= 1024, ++unit;
  const bool whole = std::abs(bytes - std::round(bytes)) < 5e-3 * bytes || bytes >= 99.95;
  return grouped_number(bytes, whole ? 0 : 1) + QChar(0x00A0) + QLatin1String(kUnits[unit]);
}

}  // namespace turnpoint::views
