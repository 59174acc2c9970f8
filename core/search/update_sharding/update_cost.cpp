// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/update_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace turnpoint::update_sharding {

namespace {

ReplicaSet row_of(const ShardGroups& groups) { return {groups.row, 1, groups.row_axes}; }
ReplicaSet column_of(const ShardGroups& groups) { return {groups.columns(), groups.row, groups.column_axes}; }

}  // namespace

Expected<CollectivePrice> ring_price(double bandwidth, double latency_s) {
  if (!(bandwidth > 0)) return bad_input(fmt::format("a link of {} bytes/s carries nothing", bandwidth));
  if (!(latency_s >= 0)) return bad_input(fmt::format("a latency of {} s is below 0", latency_s));
  return CollectivePrice([=](Collective kind, ReplicaSet set, double bytes) {
    const double once = (set.size - 1) * (latency_s + bytes / set.size / bandwidth);
    return kind == Collective::all_reduce ? 2 * once : once;
  });
}

Expected<std::vector<ShardGroups>> shard_groups(int replicas) {
  if (replicas < 1) return bad_input(fmt::format("updates cannot be shared among {} replicas", replicas));
  std::vector<ShardGroups> result{{ShardGroups::Way::whole, replicas, 1}};
  if (replicas == 1) return result;
  result.push_back({ShardGroups::Way::all, replicas, replicas});
  for (const auto way : {ShardGroups::Way::rows, ShardGroups::Way::two_phase})
    for (int row = 2; row <= replicas / 2; ++row)
      if (replicas % row == 0) result.push_back({way, replicas, row});
  return result;
}

double UpdateLinks::part(Collective kind, ReplicaSet set, double bytes) const {
  if (set.size < 2 || bytes <= 0) return 0;
  const double message = std::max(bytes, message_);
  return price_(kind, set, message) * (bytes / message);
}

double UpdateLinks::all_reduce(int replicas, double bytes) const {
  return part(Collective::all_reduce, {replicas, 1}, bytes);
}

double UpdateLinks::scatter(const ShardGroups& groups, double bytes) const {
  const ReplicaSet row = row_of(groups), column = column_of(groups);
  switch (groups.way) {
    case ShardGroups::Way::whole: {
      if (groups.row <= 1 || groups.row == groups.replicas) return all_reduce(groups.replicas, bytes);
      const ShardGroups rows{ShardGroups::Way::rows, groups.replicas, groups.row};
      return scatter(rows, bytes) + gather(rows, bytes);
    }
    case ShardGroups::Way::all: return part(Collective::reduce_scatter, row, bytes);
    case ShardGroups::Way::rows:
    case ShardGroups::Way::two_phase: break;
  }
  // Along columns a message holds one shard of what it held along rows.
  const UpdateLinks shards(price_, message_ / groups.row);
  const auto second = groups.way == ShardGroups::Way::rows ? Collective::all_reduce : Collective::reduce_scatter;
  return part(Collective::reduce_scatter, row, bytes) + shards.part(second, column, bytes / groups.row);
}

double UpdateLinks::gather(const ShardGroups& groups, double bytes) const {
  if (groups.way == ShardGroups::Way::whole) return 0;
  const double along_rows = part(Collective::all_gather, row_of(groups), bytes);
  if (groups.way != ShardGroups::Way::two_phase) return along_rows;
  const UpdateLinks shards(price_, message_ / groups.row);
  return along_rows + shards.part(Collective::all_gather, column_of(groups), bytes / groups.row);
}

double UpdateLinks::sum_of_parts(const ShardGroups& groups, double bytes) const {
  if (groups.way == ShardGroups::Way::whole) return 0;
  if (groups.way == ShardGroups::Way::rows) return part(Collective::all_reduce, row_of(groups), bytes);
  return all_reduce(groups.replicas, bytes);
}

double bytes_sent(const ShardGroups& groups, double bytes) {
  const double row = groups.row, columns = groups.columns();
  return 2 * (row - 1) * (bytes / row) + 2 * (columns - 1) * (bytes / (row * columns));
}

int ring_steps(const ShardGroups& groups) { return 2 * (groups.row - 1) + 2 * (groups.columns() - 1); }

double UpdateBytes::moved() const {
  const double state = std::accumulate(auxiliaries.begin(), auxiliaries.end(), weight);
  return gradient + 2 * (state + copy) + other;
}

const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::replicated: return "replicated";
    case Variant::gathered_after: return "gathered after the update";
    case Variant::stays_sharded: return "stays sharded";
    case Variant::naive: return "everything gathered";
  }
  return "";
}

UpdateTime update_time(const UpdateBytes& bytes, Variant variant, const ShardGroups& groups, double padding,
                       double memory_bandwidth, const UpdateLinks& links) {
  const double whole = bytes.moved() / memory_bandwidth;
  if (variant == Variant::replicated || groups.shards() == 1)
    return {links.scatter(
                {ShardGroups::Way::whole, groups.replicas, groups.way == ShardGroups::Way::whole ? groups.row : 1},
                bytes.gradient),
            whole, 0};
  const double larger = 1 + padding;
  UpdateTime time;
  time.reduce_s = links.scatter(groups, bytes.gradient * larger);
  time.update_s = whole * larger / groups.shards();
  time.gather_s = links.gather(groups, (variant == Variant::stays_sharded ? bytes.gathered : bytes.weight) * larger);
  if (variant == Variant::naive)
    for (const double auxiliary : bytes.auxiliaries) time.gather_s += links.gather(groups, auxiliary * larger);
  return time;
}

MemoryPeaks memory_peaks(double weights, double auxiliaries, double live, Variant variant, int shards, double gathered,
                         bool sharded_checkpoints) {
  const double whole = weights + auxiliaries;
  // Replicated or gathered at every step, nothing is smaller than it was.
  if (shards <= 1 || variant == Variant::replicated || variant == Variant::naive) return {whole + live, whole};
  if (variant == Variant::gathered_after) {
    const double inside = weights + auxiliaries / shards;
    return {inside + live, sharded_checkpoints ? inside : whole};
  }
  return {gathered + whole / shards + live, sharded_checkpoints ? whole / shards : whole};
}

Expected<double> zero_bytes(int stage, double parameters, double state, int devices) {
  if (stage < 0 || stage > 3) return bad_input(fmt::format("ZeRO has no stage {}, but stages 0 to 3", stage));
  if (devices < 1) return bad_input(fmt::format("ZeRO cannot share states among {} devices", devices));
  const double cut = (stage >= 1 ? state : 0) + (stage >= 2 ? 2 : 0) + (stage >= 3 ? 2 : 0);
  return parameters * (4 + state - cut + cut / devices);
}

// Where what is read has less precision than the weight, the weight is a part of the state.
void HeldBytes::add(const UpdateBytes& bytes, int shards, int replicas) {
  const double rounded = bytes.copy > 0 ? bytes.copy : bytes.gathered;
  const bool apart = rounded > 0 && rounded < bytes.weight;
  const double read = apart ? rounded : bytes.weight, gradient = bytes.gradient;
  double state = apart ? bytes.weight : 0;
  for (const double auxiliary : bytes.auxiliaries) state += auxiliary;
  whole += read + gradient + state;
  outside += read + state;
  inside += read + (gradient + state) / shards;
  for (int stage = 1; stage <= 3; ++stage)
    zero[static_cast<std::size_t>(stage - 1)] +=
        (stage >= 3 ? read / replicas : read) + (stage >= 2 ? gradient / replicas : gradient) + state / replicas;
}

}  // namespace turnpoint::update_sharding
