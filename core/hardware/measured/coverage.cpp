// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "core/hardware/collective_model.h"
#include "core/hardware/measured/profile_builder.h"

namespace turnpoint {

namespace {

constexpr Collective kKinds[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                 Collective::all_to_all, Collective::broadcast,  Collective::send};

std::vector<int> divisors(int number) {
  std::vector<int> list;
  for (int d = 1; d <= number; ++d)
    if (number % d == 0) list.push_back(d);
  return list;
}

std::vector<DeviceGroup> mesh_groups(const Cluster& cluster) {
  std::vector<DeviceGroup> groups;
  for (const int nodes : divisors(cluster.nodes))
    for (const int per_node : divisors(cluster.devices_per_node))
      if (nodes * per_node > 1)
        groups.push_back(
            {nodes * per_node, nodes, per_node, cluster.devices() / (nodes * per_node), pods_of(cluster, nodes)});
  return groups;
}

struct Range {
  std::size_t samples = 0;
  double least = 0, most = 0;
};

}  // namespace

std::vector<CoverageItem> coverage(const Cluster& cluster) {
  std::map<std::pair<Collective, DeviceGroup>, Range> measured;
  for (const auto& sample : cluster.collectives) {
    Range& range = measured[{sample.kind, sample.group}];
    range.least = range.samples == 0 ? sample.bytes : std::min(range.least, sample.bytes);
    range.most = std::max(range.most, sample.bytes);
    ++range.samples;
  }
  const CollectiveModel model(cluster, {});
  std::vector<CoverageItem> items;
  std::set<std::pair<Collective, DeviceGroup>> listed;
  const auto add = [&](Collective kind, const DeviceGroup& group, const DeviceGroup& used, Origin origin) {
    CoverageItem item{CoverageItem::What::collective, to_string(kind), group, origin, 0, 0, 0};
    if (const auto range = measured.find({kind, used}); origin == Origin::measured && range != measured.end()) {
      item.samples = range->second.samples;
      item.least_bytes = range->second.least;
      item.most_bytes = range->second.most;
      listed.insert({kind, used});
    }
    items.push_back(std::move(item));
  };
  for (const Collective kind : kKinds)
    for (const auto& group : mesh_groups(cluster)) {
      DeviceGroup used = group;
      const Origin origin = model.origin(kind, group, &used);
      add(kind, group, used, origin);
    }
  for (const auto& [key, range] : measured)
    if (!listed.count(key)) add(key.first, key.second, key.second, Origin::measured);

  std::map<std::string, std::size_t> kinds;
  for (const auto& sample : cluster.operators) ++kinds[sample.kind];
  for (const auto& [kind, samples] : kinds)
    items.push_back({CoverageItem::What::operators, kind, {}, Origin::measured, samples, 0, 0});
  std::map<std::string, std::size_t> fitted;
  for (const auto& fit : cluster.fits) fitted[fit.kind] += static_cast<std::size_t>(std::max(0, fit.samples));
  for (const auto& [kind, samples] : fitted)
    if (!kinds.count(kind))
      items.push_back({CoverageItem::What::operators, kind, {}, Origin::calibrated, samples, 0, 0});
  const bool some = !kinds.empty() || !fitted.empty();
  items.push_back(
      {CoverageItem::What::operators, some ? "other operators" : "all operators", {}, Origin::modelled, 0, 0, 0});
  return items;
}

std::vector<MeasuredCurve> curves_of(const Cluster& cluster) {
  std::map<std::pair<Collective, DeviceGroup>, MeasuredCurve> curves;
  for (const auto& sample : cluster.collectives) {
    MeasuredCurve& curve = curves[{sample.kind, sample.group}];
    curve.kind = sample.kind;
    curve.group = sample.group;
    curve.points.push_back({sample.bytes, sample.time_s, {0, sample.q1_s, sample.q3_s, 0}, 1, 0});
  }
  std::vector<MeasuredCurve> list;
  for (auto& [key, curve] : curves) {
    std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    list.push_back(std::move(curve));
  }
  return list;
}

}  // namespace turnpoint
