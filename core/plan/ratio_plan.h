// SPDX-License-Identifier: Apache-2.0
// A ratio plan: devices, which may be unlike, are cut into two parts, each part into two again, until every part is one
// device; at each cut every operator gives the first part a share of one of its loops, or both parts do all of it
// (AccPar, HPCA 2020; resources/manual/mathematics.md, 4). With halves of equal devices this is a sharding plan whose
// axes are the levels; a ratio plan's shares may differ from cut to cut and from operator to operator.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/breakdown.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// By which of its three lengths a layer is cut: its batch (I), what is summed over (II), its output (III).
enum class PartitionType : std::uint8_t { batch, reduction, output };
std::string_view to_string(PartitionType type);  ///< "I", "II", "III"

struct RatioPlan {
  /// One device, or two parts of it.
  struct Part {
    std::uint32_t devices = 1;
    std::array<std::uint32_t, 2> halves{};  ///< indices of parts; meaningless for one device
  };
  struct Share {
    std::int8_t loop = -1;   ///< that is cut; -1: both parts do all of it
    std::int64_t first = 0;  ///< of the loop's length here, what the first part has
    friend bool operator==(const Share&, const Share&) = default;
  };
  struct Cut {
    std::uint32_t part = 0;
    double ratio = 0.5;        ///< of the first part, before lengths are cut into whole units; in (0, 1)
    std::vector<Share> share;  ///< by operator
    std::array<std::uint32_t, 2> next{};
    /// By operator: of the weights that both parts hold alike, the share that the first part updates, in (0, 1); behind
    /// the update new weights are gathered. 0: either part updates all that it holds. Empty: 0 for all.
    std::vector<double> updates = {};
    double update_of(OperatorId op) const { return updates.empty() ? 0 : updates[op.index]; }
  };
  /// Where a half is a device.
  static constexpr std::uint32_t kNoCut = 0xffffffff;

  std::vector<std::uint32_t> order;  ///< the cluster's devices as the parts list them, the first half's first
  std::vector<Part> parts;           ///< the last one is the whole
  std::vector<Cut> cuts;             ///< the first one is the whole's; cuts of equal parts may be the same one
  /// The operators that were partitioned as layers, with the type of each at each cut; the others follow.
  struct Layer {
    OperatorId op;
    std::vector<PartitionType> type;  ///< by cut
  };
  std::vector<Layer> layers;
  /// By operator, the layer by which it goes, an index into `layers`; kNoLayer: it is one, or data, or made of data
  /// alone. Empty: not told.
  std::vector<std::uint32_t> follows;
  static constexpr std::uint32_t kNoLayer = 0xffffffff;
  /// What runs forward once more in backward, on the devices that are short of memory: instead of what it would keep
  /// for backward, it keeps what it reads, as far as that is not made again, too. Nothing is exchanged once more.
  struct Rerun {
    std::vector<std::uint32_t> devices;  ///< of the cluster, rising; in no other one of these lists
    std::vector<OperatorId> operators;   ///< rising; no input and no view among them
  };
  std::vector<Rerun> reruns;

  /// What the slowest device of each operator needs, and the network at all levels; memory of `fullest`.
  struct Item {
    OperatorId op;
    CostBreakdown cost;
  };
  std::vector<Item> operators;
  /// Of a tensor between operators, forward and back: what the slower half receives at every cut, summed over levels.
  struct Exchange {
    TensorId tensor;
    OperatorId producer;
    double bytes = 0, seconds = 0;
    double all_bytes = 0;  ///< what all halves receive at all cuts
  };
  std::vector<Exchange> exchanges;  ///< of those that travel at all
  /// The same of an operator's weights, which have no tensor here: sums of their gradients, weights that it shares with
  /// another operator.
  std::vector<Exchange> weights;
  CostBreakdown cost;                       ///< of the whole; memory of the device that needs most
  std::vector<std::int64_t> device_memory;  ///< bytes, by the cluster's devices
  std::vector<double> device_compute_s;     ///< likewise: what the device computes itself, waiting left out

  std::uint32_t whole() const { return static_cast<std::uint32_t>(parts.size() - 1); }
  int devices() const { return static_cast<int>(order.size()); }
  /// Null: nothing runs again there.
  const Rerun* rerun_on(std::uint32_t device) const;
  std::uint32_t fullest_device() const;  ///< of the cluster; the lowest of equal ones
  std::int64_t most_memory() const;      ///< bytes, on that device
  bool shards_updates() const;           ///< of any operator at any cut
};
using RatioPlanPtr = std::shared_ptr<const RatioPlan>;

/// The shares on the way to the first device, an axis a level, for whoever shows plans by configuration: kinds of split
/// and costs are the ratio plan's, sizes are not, and other devices' cuts may be by other types. What runs again on any
/// device does so here.
Plan as_axes(const RatioPlan& plan);
/// Whether every device has room for what it needs: its own memory, or the scenario's limit where one is set.
bool fits(const Scenario& scenario, const RatioPlan& plan);
/// "4 \u00d7 V100-16GB: at most 1.2 GiB of 14.8 GiB on one", a line a kind of device, for people.
std::vector<std::string> describe_devices(const Scenario& scenario, const RatioPlan& plan);

}  // namespace turnpoint
