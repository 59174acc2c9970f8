// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "core/search/pardnn/clusters.h"

namespace turnpoint::pardnn {
namespace {

/// Sums over prefixes of positions that grow one by one.
class Fenwick {
 public:
  explicit Fenwick(std::size_t size) : sum_(size + 1, 0) {}
  void add(std::size_t position, double value) {
    for (std::size_t i = position + 1; i < sum_.size(); i += i & (~i + 1)) sum_[i] += value;
  }
  double before(std::size_t position) const {
    double sum = 0;
    for (std::size_t i = position; i > 0; i &= i - 1) sum += sum_[i];
    return sum;
  }

 private:
  std::vector<double> sum_;
};

class Mapper {
 public:
  Mapper(const ScheduleCosts& costs, const Clusters& clusters)
      : costs_(costs),
        g_(costs.graph()),
        clusters_(clusters),
        device_(g_.task_count(), kNone),
        group_(g_.groups.size(), kNone),
        total_(costs.devices(), 0),
        traffic_(costs.devices(), 0) {}

  std::vector<std::uint32_t> run(Mapping mapping, const RunContext& context) {
    prepare_times();
    for (std::uint32_t k = 0; k < costs_.devices(); ++k)
      load_.emplace_back(mapping == Mapping::level_aware ? times_.size() : 0);
    for (std::uint32_t c = 0; c < clusters_.primaries; ++c) assign(c, c % costs_.devices(), mapping);
    const auto order = visiting_order(mapping);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i % 4096 == 0) {
        if (context.cancelled()) return {};
        context.report("mapping", double(i) / double(order.size()));
      }
      assign(order[i], mapping == Mapping::level_aware ? least_in_window(order[i]) : least_loaded(), mapping);
    }
    return std::move(device_);
  }

 private:
  void prepare_times() {
    // Levels with the primaries' own transfers free: when things roughly happen.
    std::vector<std::uint32_t> place(g_.task_count());
    for (std::uint32_t t = 0; t < place.size(); ++t)
      place[t] = clusters_.cluster[t] < clusters_.primaries ? clusters_.cluster[t] : clusters_.primaries + t;
    top_ = placement::top_levels(costs_, 1.0, &place);
    times_ = top_;
    std::sort(times_.begin(), times_.end());
    // A window needs no finer grain than this, and every device has its own sums over all positions.
    const std::size_t most =
        std::max<std::size_t>(64, std::min<std::size_t>(8192, (std::size_t(1) << 25) / costs_.devices()));
    if (times_.size() > most) {
      std::vector<double> few;
      for (std::size_t i = 0; i < most; ++i) few.push_back(times_[i * times_.size() / most]);
      few.back() = times_.back();
      times_ = std::move(few);
    }
    position_.resize(top_.size());
    for (std::size_t t = 0; t < top_.size(); ++t) position_[t] = position(top_[t]);
  }
  std::uint32_t position(double time) const {
    return std::uint32_t(std::lower_bound(times_.begin(), times_.end(), time) - times_.begin());
  }

  std::vector<std::uint32_t> visiting_order(Mapping mapping) const {
    std::vector<std::uint32_t> order(clusters_.size() - clusters_.primaries);
    std::iota(order.begin(), order.end(), clusters_.primaries);
    const auto head = [&](std::uint32_t c) { return clusters_.tasks[clusters_.begin[c]]; };
    if (mapping == Mapping::guided)
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return top_[head(a)] < top_[head(b)]; });
    return order;  // slicing took the heaviest first
  }

  /// From the end of the head's latest producer to the start of the tail's earliest consumer.
  std::pair<std::uint32_t, std::uint32_t> window(std::uint32_t c) const {
    const TaskIndex head = clusters_.tasks[clusters_.begin[c]], tail = clusters_.tasks[clusters_.begin[c + 1] - 1];
    double begin = 0;
    for (const TaskIndex from : g_.predecessors(head)) begin = std::max(begin, top_[from] + costs_.task_s(from));
    double end = times_.back() * 2 + 1;
    for (const TaskIndex to : g_.successors(tail)) end = std::min(end, top_[to]);
    return {position(begin), std::max(position(end), position_[tail] + 1)};
  }

  /// Transfers between the cluster and each device, each tensor once a device, in traffic_; returns their sum, those
  /// with tasks that are not mapped yet included.
  double measure_traffic(std::uint32_t c) {
    std::fill(traffic_.begin(), traffic_.end(), 0.0);
    double all = 0;
    for (std::uint32_t i = clusters_.begin[c]; i < clusters_.begin[c + 1]; ++i) {
      const TaskIndex t = clusters_.tasks[i];
      for (EdgeIndex place = g_.in_begin[t]; place < g_.in_begin[t + 1]; ++place) {
        const TaskIndex from = g_.in_from[place];
        if (clusters_.cluster[from] == c) continue;
        const double transfer = costs_.edge_s(g_.in_edge[place]);
        all += transfer;
        if (device_[from] != kNone) traffic_[device_[from]] += transfer;
      }
      touched_.clear();
      for (EdgeIndex e = g_.out_begin[t]; e < g_.out_begin[t + 1]; ++e) {
        const TaskIndex to = g_.out_to[e];
        if (clusters_.cluster[to] == c) continue;
        const std::uint32_t d = device_[to];
        if (d != kNone && std::find(touched_.begin(), touched_.end(), d) != touched_.end()) continue;
        all += costs_.edge_s(e);
        if (d == kNone) continue;
        touched_.push_back(d);
        traffic_[d] += costs_.edge_s(e);
      }
    }
    return all;
  }

  std::uint32_t least_in_window(std::uint32_t c) {
    const double all = measure_traffic(c);
    const auto [begin, end] = window(c);
    std::uint32_t best = 0;
    double best_value = 0;
    for (std::uint32_t d = 0; d < costs_.devices(); ++d) {
      const double value = load_[d].before(end) - load_[d].before(begin) + (all - traffic_[d]);
      if (d != 0 && (value > best_value || (value == best_value && traffic_[d] <= traffic_[best]))) continue;
      best = d;
      best_value = value;
    }
    return best;
  }

  std::uint32_t least_loaded() const {
    return std::uint32_t(std::min_element(total_.begin(), total_.end()) - total_.begin());
  }

  void assign(std::uint32_t c, std::uint32_t device, Mapping mapping) {
    for (std::uint32_t i = clusters_.begin[c]; i < clusters_.begin[c + 1]; ++i) {
      const TaskIndex t = clusters_.tasks[i];
      const std::uint32_t group = g_.colocate[t];
      // The first of a group decides for all: what is published moves them together afterwards.
      const std::uint32_t d = group != kNone && group_[group] != kNone ? group_[group] : device;
      if (group != kNone) group_[group] = d;
      device_[t] = d;
      total_[d] += costs_.task_s(t, d);
      if (mapping == Mapping::level_aware) load_[d].add(position_[t], costs_.task_s(t, d));
    }
  }

  const ScheduleCosts& costs_;
  const TaskGraph& g_;
  const Clusters& clusters_;
  std::vector<std::uint32_t> device_, group_, position_, touched_;
  std::vector<double> top_, times_, total_, traffic_;
  std::vector<Fenwick> load_;
};

}  // namespace

std::vector<std::uint32_t> map_clusters(const ScheduleCosts& costs, const Clusters& clusters, Mapping mapping,
                                        const RunContext& context) {
  if (clusters.tasks.empty()) return {};
  return Mapper(costs, clusters).run(mapping, context);
}

}  // namespace turnpoint::pardnn
