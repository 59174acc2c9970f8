// SPDX-License-Identifier: Apache-2.0
// What a collective takes on one cluster: measured where its curve exists, calibrated on the curve of a related group
// where one of those exists, else what the cluster's library charges (resources/manual/costs.md, 4).
#pragma once

#include <array>
#include <vector>

#include "core/hardware/cluster.h"
#include "core/hardware/library.h"

namespace turnpoint {

/// `concurrent` groups that cross nodes share the nodes' bandwidth, spread evenly over the cluster's nodes. Measured
/// curves: a curve is used for its own group shape, inside a node whatever runs beside it; times are divided by the
/// bandwidth factor. A group without a curve, of a level and collective that have one, takes the curve's time in
/// proportion to the bytes that pass the links, at no better bandwidth than any larger message had: so no route of
/// such parts undercuts the whole that was measured.
class CollectiveModel {
 public:
  enum class Pricing : std::uint8_t {
    library,     ///< what the cluster's library has
    rings,       ///< a ring, whatever the library; nothing is calibrated on other groups
    one_latency  ///< a ring that pays one hop however many steps (resources/manual/mathematics.md, F6)
  };
  CollectiveModel(const Cluster& cluster, const WhatIf& factors, Pricing pricing = Pricing::library);

  /// `bytes`: all-reduce, all-gather, reduce-scatter, broadcast: the full tensor n of one group; all-to-all and send:
  /// the local block L. A group of one costs nothing.
  Seconds time(Collective kind, const DeviceGroup& group, double bytes) const;
  /// The algorithm that the library would take. Of a measured time it is the model's guess.
  Algorithm algorithm(Collective kind, const DeviceGroup& group, double bytes) const;
  struct Charge {
    Seconds time;
    Algorithm algorithm = Algorithm::direct;
  };
  Charge charge(Collective kind, const DeviceGroup& group, double bytes) const;  ///< both at once
  /// Where that time comes from; `used`: the group whose measured curve it is. A send inside a node has the curve of a
  /// pair, however many devices exchange.
  Origin origin(Collective kind, const DeviceGroup& group, DeviceGroup* used = nullptr) const;

 private:
  struct Curve {
    Collective kind;
    DeviceGroup group;
    std::vector<CurvePoint> samples;
    std::vector<double> slowest;  ///< s a byte, of this sample and all larger ones
  };
  /// Another group's curve, and what share of its time is charged.
  struct Related {
    const Curve* curve = nullptr;
    double share = 1;
  };
  const Curve* measured(Collective kind, const DeviceGroup& group) const;
  const Curve* curve_of(Collective kind, const DeviceGroup& group) const;
  Related related(Collective kind, const DeviceGroup& group) const;
  /// By its own curve, or where it has none by the other.
  Seconds measured_time(Collective kind, const DeviceGroup& group, double bytes, const Curve* curve,
                        const Related& other) const;
  double related_time(const Related& related, const DeviceGroup& group, Collective kind, double bytes) const;
  int groups_per_node(const DeviceGroup& group) const;
  double network_share(const DeviceGroup& group) const;
  Quote quote(Collective kind, const DeviceGroup& group, const WhatIf& factors, double bytes) const;

  /// A flow out of a node through the pod levels that the group crosses; `factors` scale it.
  void cross_pods(Collective kind, const DeviceGroup& group, const WhatIf& factors, GroupLinks& links) const;

  std::array<LinkLevel, 2> links_;
  std::vector<PodLevel> pods_;
  Library library_;
  int cluster_nodes_ = 1;
  WhatIf factors_;
  Pricing pricing_;
  Interpolation interpolation_;
  std::vector<Curve> curves_;
};

}  // namespace turnpoint
