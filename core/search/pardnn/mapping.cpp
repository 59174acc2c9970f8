// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

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
        traffic_(costs.devices(), 0),
        members_(g_.groups.size()) {
    for (TaskIndex t = 0; t < g_.task_count(); ++t)
      if (g_.colocate[t] != kNone) members_[g_.colocate[t]].push_back(t);
  }

  std::vector<std::uint32_t> run(Mapping mapping, const RunContext& context) {
    prepare_times();
    for (std::uint32_t k = 0; k < costs_.devices(); ++k)
      load_.emplace_back(mapping == Mapping::guided ? 0 : times_.size());
    for (std::uint32_t c = 0; c < clusters_.primaries; ++c) assign(c, c % costs_.devices(), mapping);
    const auto order = visiting_order(mapping);
    if (mapping == Mapping::dominated && !merge_dominated(order, context)) return {};
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (is_carried(order[i]) || is_mapped(order[i])) continue;
      if (i % 4096 == 0) {
        if (context.cancelled()) return {};
        context.report("mapping", double(i) / double(order.size()));
      }
      assign(order[i], mapping == Mapping::guided ? least_loaded() : least_in_window(order[i]), mapping);
    }
    // Groups whose tasks are all without time, and so are carried by nobody.
    for (const std::uint32_t c : order)
      if (device_[clusters_.tasks[clusters_.begin[c]]] == kNone)
        assign(c, mapping == Mapping::guided ? least_loaded() : least_in_window(c), mapping);
    return std::move(device_);
  }

 private:
  /// A task without time that shares its device with others: where those go decides. So a parameter, which has no time,
  /// and its update are one node to the mapping, which stands where the update does.
  bool is_carried(std::uint32_t c) const {
    const TaskIndex t = clusters_.tasks[clusters_.begin[c]];
    return clusters_.begin[c + 1] - clusters_.begin[c] == 1 && g_.time_s[t] == 0 && g_.colocate[t] != kNone;
  }

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

  bool is_mapped(std::uint32_t c) const { return !mapped_.empty() && mapped_[c] != 0; }
  double load(std::uint32_t d, std::pair<std::uint32_t, std::uint32_t> window) const {
    return load_[d].before(window.second) - load_[d].before(window.first);
  }
  double work_of(std::uint32_t c) const {
    double work = 0;
    for (std::uint32_t i = clusters_.begin[c]; i < clusters_.begin[c + 1]; ++i)
      work += costs_.task_s(clusters_.tasks[i]);
    return work;
  }

  /// The released tests, over growing prefixes of the clusters by weight, those of short windows first, again and again
  /// while something joins. False if cancelled.
  bool merge_dominated(const std::vector<std::uint32_t>& order, const RunContext& context) {
    constexpr int kRepeats = 4;  // beyond which hardly anything joins
    mapped_.assign(clusters_.size(), 0);
    Fenwick work(times_.size());
    double transfers = 0;
    for (TaskIndex t = 0; t < g_.task_count(); ++t) work.add(position_[t], costs_.task_s(t));
    for (EdgeIndex e = 0; e < g_.edge_count(); ++e) transfers += costs_.edge_s(e);
    // Where transfers are dear and little can run side by side, clusters that are still to be mapped no longer count
    // against a device.
    const double parallel = costs_.total_task_s() / std::max(work_of(0), 1e-300);
    const bool relaxed = std::ceil(transfers / std::max(costs_.total_task_s(), 1e-300)) >= std::max(10.0, 2 * parallel);
    for (const bool mapped_only : {false, true}) {
      if (mapped_only && !relaxed) break;
      for (const std::size_t prefix : {order.size() / 2, order.size()}) {
        std::vector<std::uint32_t> some(order.begin(), order.begin() + std::ptrdiff_t(prefix));
        std::stable_sort(some.begin(), some.end(), [&](std::uint32_t a, std::uint32_t b) { return span(a) < span(b); });
        bool joined = true;
        for (int repeat = 0; joined && repeat < kRepeats; ++repeat) {
          joined = false;
          for (std::size_t i = 0; i < some.size(); ++i) {
            if (i % 4096 == 0 && context.cancelled()) return false;
            if (is_mapped(some[i]) || is_carried(some[i])) continue;
            const auto d = dominating(some[i], work, mapped_only);
            if (!d) continue;
            assign(some[i], *d, Mapping::dominated);
            mapped_[some[i]] = 1;
            joined = true;
          }
        }
      }
    }
    return true;
  }
  std::uint32_t span(std::uint32_t c) const {
    const auto [begin, end] = window(c);
    return end - begin;
  }

  /// The device that a cluster is to join, by one of the four tests of loads in its window.
  std::optional<std::uint32_t> dominating(std::uint32_t c, const Fenwick& work, bool mapped_only) {
    double all = measure_traffic(c);
    if (mapped_only) all = std::accumulate(traffic_.begin(), traffic_.end(), 0.0);
    const auto d = std::uint32_t(std::max_element(traffic_.begin(), traffic_.end()) - traffic_.begin());
    const double exchanged = traffic_[d];
    if (exchanged < all - exchanged || exchanged <= g_.links.latency_of(0, costs_.devices() > 1 ? 1 : 0))
      return std::nullopt;
    const auto w = window(c);
    double most = 0, least = load(0, w), mapped = 0;
    for (std::uint32_t k = 0; k < costs_.devices(); ++k) {
      const double here = load(k, w);
      most = std::max(most, here), least = std::min(least, here), mapped += here;
    }
    const double own = work_of(c), joined = load(d, w) + own, devices = costs_.devices();
    const double in_window = work.before(w.second) - work.before(w.first);
    const double head_waits = std::max(0.0, top_[clusters_.tasks[clusters_.begin[c]]] - times_[w.first]);
    const double elsewhere = least + own + exchanged + head_waits + std::max(0.0, in_window - mapped) / devices;
    const bool joins = in_window / devices >= joined || std::max(most, elsewhere) >= joined ||
                       joined <= own + exchanged || exchanged >= most - least;
    return joins ? std::optional(d) : std::nullopt;
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
      if (group != kNone && group_[group] == kNone) {
        group_[group] = d;
        for (const TaskIndex member : members_[group]) device_[member] = d;
      }
      device_[t] = d;
      total_[d] += costs_.task_s(t, d);
      if (mapping != Mapping::guided) load_[d].add(position_[t], costs_.task_s(t, d));
    }
  }

  const ScheduleCosts& costs_;
  const TaskGraph& g_;
  const Clusters& clusters_;
  std::vector<std::uint32_t> device_, group_, position_, touched_;
  std::vector<double> top_, times_, total_, traffic_;
  std::vector<Fenwick> load_;
  std::vector<char> mapped_;                     ///< by cluster: by the tests of the released mapping
  std::vector<std::vector<TaskIndex>> members_;  ///< by group
};

}  // namespace

std::vector<std::uint32_t> map_clusters(const ScheduleCosts& costs, const Clusters& clusters, Mapping mapping,
                                        const RunContext& context) {
  if (clusters.tasks.empty()) return {};
  return Mapper(costs, clusters).run(mapping, context);
}

}  // namespace turnpoint::pardnn
