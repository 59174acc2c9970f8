// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/collective_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace turnpoint {

namespace {

/// What a curve must hold before other groups are calibrated on it: the bandwidth of a small message is its latency.
constexpr double kLeastRelatedSize = 1 << 20;  // bytes
constexpr std::size_t kLeastRelatedSamples = 2;
/// Where transfers are compared: large enough that nothing but bandwidth counts.
constexpr double kLargeMessage = 1e12;  // bytes

}  // namespace

CollectiveModel::CollectiveModel(const Cluster& cluster, const WhatIf& factors, Pricing pricing)
    : links_(cluster.links),
      pods_(cluster.pods),
      library_(pricing == Pricing::library ? cluster.library : Library::ring),
      cluster_nodes_(std::max(1, cluster.nodes)),
      factors_(factors),
      pricing_(pricing),
      interpolation_(cluster.interpolation) {
  auto samples = cluster.collectives;
  std::stable_sort(samples.begin(), samples.end(), [](const CollectiveSample& a, const CollectiveSample& b) {
    return std::tie(a.kind, a.group, a.bytes) < std::tie(b.kind, b.group, b.bytes);
  });
  for (const auto& sample : samples) {
    if (curves_.empty() || curves_.back().kind != sample.kind || curves_.back().group != sample.group)
      curves_.push_back({sample.kind, sample.group, {}, {}});
    curves_.back().samples.push_back({sample.bytes, sample.time_s});
  }
  for (Curve& curve : curves_) {
    curve.slowest.resize(curve.samples.size());
    double slowest = 0;
    for (std::size_t i = curve.samples.size(); i-- > 0;)
      curve.slowest[i] = slowest = std::max(slowest, curve.samples[i].time_s / curve.samples[i].bytes);
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

/// What passes between nodes for a byte, in parts of a node's bandwidth.
double CollectiveModel::network_share(const DeviceGroup& group) const {
  return groups_per_node(group) * (group.nodes - 1.0) / group.nodes;
}

CollectiveModel::Related CollectiveModel::related(Collective kind, const DeviceGroup& group) const {
  if (curves_.empty() || !in_rings(kind) || pricing_ != Pricing::library) return {};
  Related best;
  std::tuple<bool, double> least{true, std::numeric_limits<double>::infinity()};
  for (const Curve& curve : curves_) {
    if (!in_rings(curve.kind) || (curve.group.nodes > 1) != (group.nodes > 1)) continue;
    if (curve.samples.size() < kLeastRelatedSamples || curve.samples.back().bytes < kLeastRelatedSize) continue;
    const double distance = std::abs(std::log2(double(group.size) / curve.group.size)) +
                            std::abs(std::log2(double(group.nodes) / curve.group.nodes));
    // An all-reduce tells less of a gather than a gather does, and a larger group more than a smaller one.
    const std::tuple candidate{reduces(curve.kind) != reduces(kind),
                               distance + (curve.group.size < group.size ? 0.5 : 0)};
    if (!best.curve || candidate < least) {
      least = candidate;
      best.curve = &curve;
    }
  }
  if (!best.curve) return {};
  const Curve& curve = *best.curve;
  const Quote whole = quote(curve.kind, curve.group, {}, kLargeMessage);
  const Quote own = quote(curve.kind, group, {}, kLargeMessage);
  best.share = own.transfer_s / whole.transfer_s;
  // A library may send less between nodes than a ring would, and the curve of the whole be of that. Parts of it are
  // charged what they send at least, lest they look cheaper than the whole.
  if (group.nodes > 1) best.share = std::max(best.share, network_share(group) / network_share(curve.group));
  if (reduces(curve.kind) != reduces(kind)) best.share *= reduces(kind) ? 2 : 0.5;
  return best;
}

double CollectiveModel::related_time(const Related& related, const DeviceGroup& group, Collective kind,
                                     double bytes) const {
  const Curve& curve = *related.curve;
  const auto larger = std::lower_bound(curve.samples.begin(), curve.samples.end(), bytes,
                                       [](const CurvePoint& point, double b) { return point.bytes < b; });
  const std::size_t at = std::min<std::size_t>(larger - curve.samples.begin(), curve.samples.size() - 1);
  const double time = std::max(curve_time(curve.samples, bytes, interpolation_), curve.slowest[at] * bytes);
  // Of small messages: where a protocol gives way to another is not the same for both, and the time would fall there.
  const double own = quote(kind, group, {}, 1).latency_s, theirs = quote(curve.kind, curve.group, {}, 1).latency_s;
  return related.share * time + std::max(0.0, own - related.share * theirs);
}

Origin CollectiveModel::origin(Collective kind, const DeviceGroup& group, DeviceGroup* used) const {
  if (const Curve* curve = measured(kind, group)) {
    if (used) *used = curve->group;
    return Origin::measured;
  }
  if (const Related other = related(kind, group); other.curve) {
    if (used) *used = other.curve->group;
    return Origin::calibrated;
  }
  const Origin inside = links_[kIntraNode].origin, across = links_[kInterNode].origin;
  if (group.nodes <= 1) return inside;
  Origin worst = group.per_node > 1 ? std::max(inside, across) : across;
  for (std::size_t l = 0; l < pods_.size() && group.pods[l] > 1; ++l) worst = std::max(worst, pods_[l].link.origin);
  return worst;
}

int CollectiveModel::groups_per_node(const DeviceGroup& group) const {
  return std::max(1, (group.concurrent * group.nodes + cluster_nodes_ - 1) / cluster_nodes_);
}

/// Rings and trees leave a pod once each way, whatever they join inside it, so that the pod's part of the level is the
/// flow's; an exchange of everybody with everybody, and the phases of a torus, leave it from every node.
void CollectiveModel::cross_pods(Collective kind, const DeviceGroup& group, const WhatIf& factors,
                                 GroupLinks& links) const {
  const bool from_every_node = !in_rings(kind) || library_ == Library::torus;
  double hops = group.nodes - 1, doublings = std::log2(std::max(1, group.nodes));
  double ring_latency = hops * links.across_latency, tree_latency = doublings * links.across_latency;
  for (std::size_t l = 0; l < pods_.size() && group.pods[l] > 1; ++l) {
    const LinkLevel& link = pods_[l].link;
    const int all = cluster_nodes_ / pods_[l].nodes, crossing = group.pods[l];
    const int groups_of_pod = std::max(1, (group.concurrent * crossing + all - 1) / all);
    const double senders = from_every_node ? std::max(1.0, double(group.nodes) / crossing) : 1;
    links.across_bandwidth = std::min(
        links.across_bandwidth, link.bandwidth * factors.inter_bandwidth * pods_[l].nodes / (groups_of_pod * senders));
    const LinkLevel& below = l == 0 ? links_[kInterNode] : pods_[l - 1].link;
    const double more = (link.latency_s - below.latency_s) * factors.latency;
    ring_latency += (crossing - 1) * more;
    tree_latency += std::log2(crossing) * more;
  }
  if (hops <= 0) return;
  links.across_latency = ring_latency / hops;
  links.tree_across_latency = tree_latency / doublings;
}

Quote CollectiveModel::quote(Collective kind, const DeviceGroup& group, const WhatIf& factors, double bytes) const {
  GroupLinks links;
  links.inside_bandwidth = links_[kIntraNode].bandwidth * factors.intra_bandwidth;
  links.inside_latency = links_[kIntraNode].latency_s * factors.latency;
  if (group.nodes > 1) {
    links.across_bandwidth = links_[kInterNode].bandwidth * factors.inter_bandwidth / groups_per_node(group);
    links.across_latency = links_[kInterNode].latency_s * factors.latency;
  }
  cross_pods(kind, group, factors, links);
  links.launch_s = links_[group.nodes > 1 ? kInterNode : kIntraNode].launch_s * factors.latency;
  links.switch_reduces = links_[kIntraNode].switch_reduces;
  links.latency_scale = factors.latency;
  Quote cheapest = cheapest_quote(library_, kind, group, links, bytes);
  if (pricing_ == Pricing::one_latency && cheapest.algorithm == Algorithm::ring)
    cheapest.latency_s /= (group.size - 1.0) * (reduces(kind) ? 2 : 1);
  return cheapest;
}

Algorithm CollectiveModel::algorithm(Collective kind, const DeviceGroup& group, double bytes) const {
  return group.size <= 1 ? Algorithm::direct : quote(kind, group, factors_, bytes).algorithm;
}

CollectiveModel::Charge CollectiveModel::charge(Collective kind, const DeviceGroup& group, double bytes) const {
  if (group.size <= 1) return {};
  const Quote own = quote(kind, group, factors_, bytes);
  if (bytes <= 0) return {Seconds(0), own.algorithm};
  const Curve* const curve = measured(kind, group);
  const Related other = curve ? Related{} : related(kind, group);
  if (!curve && !other.curve) return {Seconds(own.time_s()), own.algorithm};
  return {measured_time(kind, group, bytes, curve, other), own.algorithm};
}

Seconds CollectiveModel::time(Collective kind, const DeviceGroup& group, double bytes) const {
  if (group.size <= 1 || bytes <= 0) return Seconds(0);
  const Curve* const curve = measured(kind, group);
  const Related other = curve ? Related{} : related(kind, group);
  return curve || other.curve ? measured_time(kind, group, bytes, curve, other)
                              : Seconds(quote(kind, group, factors_, bytes).time_s());
}

Seconds CollectiveModel::measured_time(Collective kind, const DeviceGroup& group, double bytes, const Curve* curve,
                                       const Related& other) const {
  // The share of latency in a measured time is not known; the model's is taken, at most all of it.
  const double latency_s = quote(kind, group, {}, bytes).latency_s;
  const double total = kind == Collective::all_to_all ? bytes * group.size : bytes;  // curves are of all local blocks
  const double measured_s =
      curve ? curve_time(curve->samples, total, interpolation_, latency_s) : related_time(other, group, kind, bytes);
  const double bandwidth_factor = group.nodes > 1 ? factors_.inter_bandwidth : factors_.intra_bandwidth;
  return Seconds((measured_s + (factors_.latency - 1) * std::min(measured_s, latency_s)) / bandwidth_factor);
}

}  // namespace turnpoint
