// SPDX-License-Identifier: Apache-2.0
// Measured curves where the profile has them, ring formulas elsewhere (resources/manual/costs.md, 4).
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/hardware/cluster.h"

namespace turnpoint {

CollectiveModel::CollectiveModel(const Cluster& cluster, const WhatIf& factors, Latency latency)
    : links_(cluster.links),
      cluster_nodes_(std::max(1, cluster.nodes)),
      factors_(factors),
      latency_(latency),
      interpolation_(cluster.interpolation) {
  auto samples = cluster.collectives;
  std::stable_sort(samples.begin(), samples.end(), [](const CollectiveSample& a, const CollectiveSample& b) {
    return std::tie(a.kind, a.group, a.bytes) < std::tie(b.kind, b.group, b.bytes);
  });
  for (const auto& sample : samples) {
    if (curves_.empty() || curves_.back().kind != sample.kind || curves_.back().group != sample.group)
      curves_.push_back({sample.kind, sample.group, {}});
    curves_.back().samples.push_back({sample.bytes, sample.time_s});
  }
}

const CollectiveModel::Curve* CollectiveModel::curve_of(Collective kind, const DeviceGroup& group) const {
  const auto after = [&](const DeviceGroup& wanted) {
    return std::upper_bound(curves_.begin(), curves_.end(), std::tie(kind, wanted),
                            [](const auto& key, const Curve& c) { return key < std::tie(c.kind, c.group); });
  };
  const auto exact = after(group);
  if (exact != curves_.begin() && std::prev(exact)->kind == kind && std::prev(exact)->group == group)
    return &*std::prev(exact);
  // Inside a node neighbours hardly disturb each other: take the curve measured with the most of them at once.
  // Between nodes sharing decides the time, so nothing but the same number will do.
  if (group.nodes != 1) return nullptr;
  DeviceGroup busiest = group;
  busiest.concurrent = std::numeric_limits<int>::max();
  const auto last = after(busiest);
  if (last == curves_.begin()) return nullptr;
  busiest.concurrent = std::prev(last)->group.concurrent;
  return std::prev(last)->kind == kind && std::prev(last)->group == busiest ? &*std::prev(last) : nullptr;
}

const CollectiveModel::Curve* CollectiveModel::measured(Collective kind, const DeviceGroup& group) const {
  const Curve* curve = curve_of(kind, group);
  if (curve || kind != Collective::send || group.nodes != 1 || group.size == 2) return curve;
  return curve_of(kind, {2, 1, 2, group.concurrent});
}

Origin CollectiveModel::origin(Collective kind, const DeviceGroup& group, DeviceGroup* used) const {
  if (const Curve* curve = measured(kind, group)) {
    if (used) *used = curve->group;
    return Origin::measured;
  }
  const Origin inside = links_[kIntraNode].origin, across = links_[kInterNode].origin;
  if (group.nodes <= 1) return inside;
  return group.per_node > 1 ? std::max(inside, across) : across;
}

Seconds CollectiveModel::time(Collective kind, const DeviceGroup& group, double bytes) const {
  if (group.size <= 1 || bytes <= 0) return Seconds(0);
  const double g = group.size;
  const bool crosses = group.nodes > 1;
  const double bandwidth_factor = crosses ? factors_.inter_bandwidth : factors_.intra_bandwidth;

  // The groups of one node share its network. In a ring one member of each node sends into the network; in an
  // all-to-all every member does, so they share it too.
  double bandwidth = links_[kIntraNode].bandwidth * factors_.intra_bandwidth;
  double latency = links_[kIntraNode].latency_s;
  if (crosses) {
    const int groups_per_node = std::max(1, (group.concurrent * group.nodes + cluster_nodes_ - 1) / cluster_nodes_);
    const double flows = groups_per_node * (kind == Collective::all_to_all ? std::max(1, group.per_node) : 1);
    const double share = links_[kInterNode].bandwidth * factors_.inter_bandwidth / flows;
    bandwidth = group.per_node > 1 ? std::min(bandwidth, share) : share;
    latency = group.per_node > 1 ? std::max(latency, links_[kInterNode].latency_s) : links_[kInterNode].latency_s;
  }

  double steps = 1, sent = bytes;  // ring steps, and the bytes that pass one link
  switch (kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      steps = g - 1;
      sent = (g - 1) * bytes / g;
      break;
    case Collective::all_reduce:
      steps = 2 * (g - 1);
      sent = 2 * (g - 1) * bytes / g;
      break;
    case Collective::all_to_all: sent = (g - 1) * bytes / g; break;
    case Collective::broadcast:
    case Collective::send: break;
  }
  if (latency_ == Latency::per_collective) steps = 1;

  if (const Curve* curve = measured(kind, group)) {
    const double total = kind == Collective::all_to_all ? bytes * g : bytes;  // files give all local blocks together
    const double measured_s = curve_time(curve->samples, total, interpolation_, steps * latency);
    // The share of latency in a measured time is not known; the ring's is taken, at most all of it.
    const double latency_s = std::min(measured_s, steps * latency);
    return Seconds((measured_s + (factors_.latency - 1) * latency_s) / bandwidth_factor);
  }
  return Seconds(steps * latency * factors_.latency + sent / bandwidth);
}

}  // namespace turnpoint
