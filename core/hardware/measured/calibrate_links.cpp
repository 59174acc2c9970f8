// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/measured/calibrate_links.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "core/hardware/collective_model.h"
#include "core/hardware/logs/log_text.h"

namespace turnpoint {

namespace {

constexpr double kLeastBandwidthSize = 1 << 20, kMostLatencySize = 64 << 10;  // bytes
constexpr const char* kLevels[] = {"between nodes", "inside a node"};

/// What a link can be; a broken log may say anything.
bool is_rate(double bytes_per_s) { return bytes_per_s >= 1 && bytes_per_s <= 1e15; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return logs::quantile(values, 0.5);
}

/// What the field of a link must be for the library to charge `wanted` seconds; nullopt where nothing makes it so.
std::optional<double> solve(Cluster cluster, int level, double LinkLevel::*field, double low, double high,
                            Collective kind, const DeviceGroup& group, double bytes, double wanted) {
  const auto time = [&](double value) {
    cluster.links[level].*field = value;
    return CollectiveModel(cluster, {}).time(kind, group, bytes).value;
  };
  const bool rises = time(high) > time(low);
  if ((time(low) - wanted) * (time(high) - wanted) > 0) return std::nullopt;
  for (int i = 0; i < 100; ++i) {
    const double middle = std::sqrt(low * high);
    ((time(middle) < wanted) == rises ? low : high) = middle;
  }
  return high;
}

/// Larger groups first; among equals more devices a node.
std::pair<int, int> rank(const DeviceGroup& group) { return {group.size, group.per_node}; }

/// Fits one level to the curves of its largest measured group; false where none was measured.
bool fit_curves(Cluster& cluster, int level, std::vector<std::string>& notes) {
  std::map<Collective, std::vector<CurvePoint>> curves;
  DeviceGroup largest;
  for (const auto& sample : cluster.collectives) {
    const bool at_level = (sample.group.nodes > 1) == (level == kInterNode) && sample.group.concurrent == 1;
    if (!at_level || !in_rings(sample.kind) || rank(sample.group) < rank(largest)) continue;
    if (rank(sample.group) > rank(largest)) curves.clear();
    largest = sample.group;
    curves[sample.kind].push_back({sample.bytes, sample.time_s});
  }
  std::vector<double> bandwidths, latencies;
  Cluster bare = cluster;
  bare.collectives.clear();
  LinkLevel& link = bare.links[level];
  const auto fit = [&](double LinkLevel::*field, double low, double high, bool smallest, std::vector<double>& values) {
    for (const auto& [kind, points] : curves) {
      const auto [least, most] = std::minmax_element(points.begin(), points.end(),
                                                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
      const CurvePoint& point = smallest ? *least : *most;
      if (smallest ? point.bytes > kMostLatencySize : point.bytes < kLeastBandwidthSize) continue;
      if (const auto value = solve(bare, level, field, low, high, kind, largest, point.bytes, point.time_s))
        values.push_back(*value);
    }
    if (!values.empty()) link.*field = median(values);
  };
  // A library's own hops are known; what a small message takes beyond them is how long it takes to begin.
  const bool launches = bare.library != Library::ring && link.latency_s > 0;
  // Each depends a little on the other.
  for (int round = 0; round < 3; ++round) {
    latencies.clear();
    bandwidths.clear();
    if (launches) fit(&LinkLevel::launch_s, 1e-12, 1, true, latencies);
    if (latencies.empty()) fit(&LinkLevel::latency_s, 1e-12, 1, true, latencies);
    fit(&LinkLevel::bandwidth, 1, 1e15, false, bandwidths);
  }
  if (bandwidths.empty()) return false;
  link.origin = Origin::calibrated;
  cluster.links[level] = link;
  const std::string launch = link.launch_s > 0 ? format_seconds(link.launch_s) + " to begin and " : "";
  notes.push_back(fmt::format("link {}: {:.1f} GB/s, {}{} a step, fitted to collectives of {} devices{}",
                              kLevels[level], link.bandwidth / 1e9, launch, format_seconds(link.latency_s),
                              largest.size, latencies.empty() ? " (latency: the preset's)" : ""));
  return true;
}

bool fit_figures(const std::vector<MeasuredLog>& logs, Cluster& cluster, int level, std::vector<std::string>& notes) {
  std::vector<double> ring, pair;
  DeviceGroup largest;
  for (const auto& log : logs)
    for (const auto& figure : log.figures) {
      const bool at_level = (figure.group.nodes > 1) == (level == kInterNode);
      if (!is_rate(figure.value)) continue;
      if (figure.figure == Figure::device_to_device && level == kIntraNode) pair.push_back(figure.value);
      if (figure.figure != Figure::bus_bandwidth || !at_level) continue;
      if (figure.kind == Collective::send) {
        pair.push_back(figure.value);
      } else if (rank(figure.group) >= rank(largest)) {
        if (rank(figure.group) > rank(largest)) ring.clear();
        largest = figure.group;
        ring.push_back(figure.value);
      }
    }
  const auto& values = ring.empty() ? pair : ring;
  if (values.empty()) return false;
  cluster.links[level].bandwidth = median(values);
  cluster.links[level].origin = Origin::calibrated;
  notes.push_back(fmt::format("link {}: {:.1f} GB/s, from measured bandwidths without sizes", kLevels[level],
                              cluster.links[level].bandwidth / 1e9));
  return true;
}

/// Curves of sends between two devices are the last resort: a ring may use more links than a pair.
bool fit_sends(Cluster& cluster, int level, std::vector<std::string>& notes) {
  CurvePoint largest;
  for (const auto& sample : cluster.collectives)
    if (sample.kind == Collective::send && (sample.group.nodes > 1) == (level == kInterNode) &&
        sample.bytes > largest.bytes)
      largest = {sample.bytes, sample.time_s};
  if (largest.bytes < kLeastBandwidthSize || !is_rate(largest.bytes / largest.time_s)) return false;
  cluster.links[level].bandwidth = largest.bytes / largest.time_s;
  cluster.links[level].origin = Origin::calibrated;
  notes.push_back(fmt::format("link {}: {:.1f} GB/s, from sends between two devices", kLevels[level],
                              cluster.links[level].bandwidth / 1e9));
  return true;
}

/// NVLinks of the devices that presets are known for.
int nvlinks_of(std::string_view device) {
  constexpr std::pair<std::string_view, int> kCounts[] = {{"P100", 4},  {"V100", 6},  {"A100", 12},  {"H100", 18},
                                                          {"H200", 18}, {"B200", 18}, {"GB200", 18}, {"GB300", 18}};
  for (const auto& [name, count] : kCounts)
    if (device.starts_with(name)) return count;
  return 0;
}

}  // namespace

void calibrate_links(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  for (const int level : {kIntraNode, kInterNode})
    if (!fit_curves(cluster, level, notes) && !fit_figures(logs, cluster, level, notes))
      fit_sends(cluster, level, notes);
}

void take_topology(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  for (const auto& log : logs) {
    const std::string name = logs::file_name(log.path);
    if (log.topology) {
      const Topology& topology = *log.topology;
      if (topology.devices != cluster.devices_per_node)
        notes.push_back(fmt::format("{} shows {} devices in a node, the profile has {}", name, topology.devices,
                                    cluster.devices_per_node));
      const bool told = std::any_of(topology.links.begin(), topology.links.end(), [](const auto& row) {
        return std::any_of(row.begin(), row.end(), [](const auto& link) { return !link.empty() && link != "X"; });
      });
      const bool xgmi = told && std::any_of(topology.links.front().begin(), topology.links.front().end(),
                                            [](const auto& link) { return link == "xGMI"; });
      const int full = nvlinks_of(cluster.device.name);
      LinkLevel& link = cluster.links[kIntraNode];
      if (told && full > 0 && topology.nvlinks_per_device > 0 && topology.nvlinks_per_device < full) {
        link.bandwidth *= static_cast<double>(topology.nvlinks_per_device) / full;
        notes.push_back(fmt::format("{}: {} NVLinks a device instead of {}: link scaled to {:.1f} GB/s", name,
                                    topology.nvlinks_per_device, full, link.bandwidth / 1e9));
      } else if (told && full > 0 && topology.nvlinks_per_device == 0 && !xgmi && cluster.host_link_bandwidth > 0) {
        link.name = "PCIe";
        link.bandwidth = cluster.host_link_bandwidth;
        notes.push_back(fmt::format("{}: no NVLink: devices exchange over PCIe, {:.1f} GB/s as the host link", name,
                                    link.bandwidth / 1e9));
      }
    }
    for (const auto& figure : log.figures)
      if (figure.figure == Figure::node_network && is_rate(figure.value)) {
        cluster.links[kInterNode].bandwidth = figure.value;
        cluster.links[kInterNode].name = "network";
        notes.push_back(
            fmt::format("{}: {:.0f} GB/s between nodes, the sum of a node's network cards", name, figure.value / 1e9));
      }
  }
}

}  // namespace turnpoint
