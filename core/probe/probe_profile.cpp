// SPDX-License-Identifier: Apache-2.0
#include "core/probe/probe_profile.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/cost/calibration.h"
#include "core/cost/row_alignment.h"
#include "core/hardware/cache_misses.h"
#include "core/hardware/measured/calibrate_links.h"
#include "core/hardware/naming.h"
#include "core/probe/probe_items.h"

namespace turnpoint {

namespace {

constexpr double kUsualNetwork = 1.25e9, kUsualNetworkLatency = 30e-6;
constexpr double kLargeBytes = 8e6, kLargeGpuBytes = 2e8;
constexpr double kMostLatencyBytes = 4096;

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// The items that count for a profile, with their place in it.
class Profile {
 public:
  Profile(const ProbeMessages& messages, const ClusterPtr& base, bool tf32)
      : hello_(*messages.hello()), gpu_(hello_.backend == "cuda"), tf32_(tf32) {
    for (const auto& item : messages.items())
      if (item.not_measured.empty()) items_.push_back(&item);
    if (!gpu_)
      for (const ProbeItem* item : items_)
        if (item->op.kind == "launch") beside_kernel_s_ = item->time_s;
    start(base);
  }

  Expected<MeasuredProfile> run(const ProbeMessages& messages) {
    if (items_.empty()) return Error{ErrorCode::device, "nothing was measured", {}, {}};
    const auto& nodes = hello_.node_ranks;
    if (std::any_of(nodes.begin(), nodes.end(), [&](int ranks) { return ranks != nodes.front(); }))
      return Error{ErrorCode::device,
                   fmt::format("the hosts have {} ranks", fmt::join(nodes, ", ")),
                   {},
                   "a profile is of equal nodes: start as many on each"};
    rates();
    find_caches();
    signatures();
    collectives();
    MeasuredProfile made;
    fit(made.errors);
    if (!gpu_ || !cluster_.collectives.empty()) links();
    note(messages);
    made.cluster = std::make_shared<Cluster>(std::move(cluster_));
    return made;
  }

 private:
  void start(const ClusterPtr& base) {
    const ProbeDevice& device = hello_.devices[static_cast<std::size_t>(hello_.device)];
    const int devices = gpu_ ? std::max<int>(1, static_cast<int>(hello_.devices.size())) : hello_.ranks;
    const std::string key = gpu_ ? preset_key_of(device.name) : std::string();
    const int nodes = std::max<int>(1, static_cast<int>(hello_.node_ranks.size()));
    known_ = base != nullptr || !key.empty();
    if (base)
      cluster_ = *base;
    else if (!key.empty())
      cluster_ = **cluster_preset(key + shape_suffix(nodes, devices / nodes));
    else
      cluster_.nodes = nodes, cluster_.devices_per_node = devices / nodes;
    cluster_.device.memory_bytes = device.memory_bytes;
    cluster_.topology = hello_.topology;
    if (!known_) {
      cluster_.device.name = device.name;
      cluster_.name = (gpu_ ? "gpu" : "cpu") + shape_suffix(nodes, devices / nodes);
      cluster_.title = cluster_title(nodes, devices / nodes, device.name);
      if (nodes > 1) cluster_.links[kInterNode].name = gpu_ ? "network" : "TCP";
      cluster_.links[kIntraNode].name = gpu_ ? "PCIe" : "shared memory";
    }
  }

  std::optional<Precision> place(const ProbeItem& item) const {
    if (item.op.precision == ProbePrecision::bf16) return Precision::bf16;
    const bool product = item.op.kind == "matmul" || item.op.kind == "convolution" || item.op.kind == "recurrent";
    if (tf32_ && product) {
      if (item.op.precision == ProbePrecision::tf32) return Precision::fp32;
      return std::nullopt;
    }
    return item.op.precision == ProbePrecision::fp32 ? std::optional(Precision::fp32) : std::nullopt;
  }

  /// Of an operator in a step. A core launches its kernels itself, while GPUs work through a queue of them.
  double seconds_of(const ProbeItem& item) const { return item.time_s + beside_kernel_s_; }

  /// Best rates become peaks, or shares of the data sheet's.
  void rates() {
    DeviceType& device = cluster_.device;
    double best[2] = {0, 0}, best_odd = 0, best_even = 0, bandwidth = 0, copied = 0, launch = 0, host = 0;
    std::vector<double> streamed;
    for (const ProbeItem* item : items_) {
      const auto precision = place(*item);
      if (item->collective || !precision) continue;
      const double rate = item->op.flop / item->time_s, moved = item->op.bytes / item->time_s;
      // Convolutions have algorithms that need fewer operations than are counted.
      if (item->op.kind == "matmul")
        best[static_cast<int>(*precision)] = std::max(best[static_cast<int>(*precision)], rate);
      if (item->op.fit == fitted_kind_of("matmul", Rows::odd)) best_odd = std::max(best_odd, rate);
      if (item->op.fit == fitted_kind_of("matmul", Rows::even)) best_even = std::max(best_even, rate);
      if (item->op.kind == "launch") launch = item->time_s;
      // The largest copy: smaller ones stay in a cache.
      if (item->op.kind == "copy" && !item->op.dims.empty() && static_cast<double>(item->op.dims[0]) >= copied) {
        const double size = *precision == Precision::bf16 ? 2 : 4;
        copied = static_cast<double>(item->op.dims[0]);
        bandwidth = 2 * size * copied / item->time_s;
      }
      if (item->op.kind == "elementwise" && item->op.bytes > (gpu_ ? kLargeGpuBytes : kLargeBytes))
        streamed.push_back(moved);
      if ((item->op.kind == "host-to-device" || item->op.kind == "device-to-host") && !item->op.dims.empty()) {
        const double speed = static_cast<double>(item->op.dims[0]) / item->time_s;
        host = std::max(host, speed);
      }
    }
    const auto share = [](double reached, double peak) { return std::clamp(reached / peak, 1e-6, 1.0); };
    if (!known_) {
      if (best[0] <= 0) assumed_.push_back("the peak of 1 GFLOP/s is assumed: no matrix product in fp32 was measured");
      device.peak_fp32 = best[0] > 0 ? best[0] : 1e9;
      device.peak_bf16 = best[1] > 0 ? best[1] : device.peak_fp32;
      device.memory_bandwidth = bandwidth > 0 ? bandwidth : std::max(1e9, quantile(streamed, 1));
      if (bandwidth <= 0 && quantile(streamed, 1) < 1e9)
        assumed_.push_back("the memory bandwidth of 1 GB/s is assumed: no copy was measured");
      device.flop_efficiency = 1;
    } else {
      if (best[0] > 0 && !tf32_) device.flop_efficiency = share(best[0], device.peak_fp32);
      if (best[0] > 0 && tf32_) device.peak_fp32 = best[0], device.flop_efficiency = 1;
      if (best[1] > 0) device.flop_efficiency_16bit = share(best[1], device.peak_bf16);
    }
    if (best_odd > 0) device.flop_efficiency_odd = share(best_odd, device.peak_bf16);
    if (best_even > 0) device.flop_efficiency_even = share(best_even, device.peak_bf16);
    const double reached = streamed.empty() ? bandwidth : quantile(streamed, 0.5);
    if (reached > 0) device.memory_efficiency = share(reached, device.memory_bandwidth);
    if (launch > 0) device.launch_s = launch;
    if (launch > 0 && !gpu_)
      assumed_.push_back(fmt::format(
          "a step takes {} for an operator's phase beside its kernel; the times of all operators have that in them",
          format_seconds(launch)));
    if (beside_kernel_s_ <= 0 && !gpu_)
      assumed_.push_back("what a step takes for an operator beside its kernel was not measured, and is in no time");
    if (host > 0) cluster_.host_link_bandwidth = host;
  }

  /// From passes through rising numbers of bytes, where they were timed with their numbers in the caches.
  void find_caches() {
    std::vector<CachePass> passes;
    for (const ProbeItem* item : items_)
      if (!item->collective && item->op.kind == kCachePass && !item->op.dims.empty() && item->hot_s > 0)
        passes.push_back({static_cast<double>(item->op.dims[0] * kCachePassBytes), item->hot_s});
    const auto found = fit_cache(passes);
    if (found) {
      cluster_.device.cache_bytes = static_cast<std::int64_t>(found->cache_bytes);
      cluster_.device.cache_bandwidth = 1 / found->warm_s_per_byte;
    } else if (!passes.empty()) {
      assumed_.push_back(
          "no end of the caches was seen in passes through rising numbers of bytes: all times are those of numbers "
          "outside them");
    }
  }

  /// Of an item with its numbers in the caches; 0: not known.
  double warm_seconds_of(const ProbeItem& item) const {
    return cluster_.device.cache_bytes > 0 && item.hot_s > 0 ? item.hot_s + beside_kernel_s_ : 0;
  }
  /// Whether one run after the other found its numbers in the caches, which a step fills with others as well.
  bool lies_in_caches(const ProbeItem& item) const {
    return warm_seconds_of(item) > 0 && 2 * item.op.bytes <= static_cast<double>(cluster_.device.cache_bytes);
  }

  void signatures() {
    struct Times {
      std::vector<double> times, warm;
      OperatorSample sample;
    };
    std::map<std::string, Times> by_signature;
    for (const ProbeItem* item : items_) {
      if (item->collective) continue;
      const auto precision = place(*item);
      // Items without work serve as rates, not as operators.
      if (!precision || item->op.dims.empty() || item->op.flop + item->op.bytes <= 0) continue;
      OperatorSample sample{item->op.kind, item->op.dims, *precision, item->op.backward ? "backward" : "forward",
                            seconds_of(*item)};
      auto& entry = by_signature[fmt::format("{} {} {} {}", sample.kind, fmt::join(sample.dims, "x"),
                                             to_string(sample.precision), sample.phase)];
      entry.times.push_back(sample.time_s);
      entry.warm.push_back(warm_seconds_of(*item));
      entry.sample = std::move(sample);
    }
    for (auto& [signature, entry] : by_signature) {
      const auto [least, most] = std::minmax_element(entry.times.begin(), entry.times.end());
      // Two operators of one signature that differ (a stride, which a signature does not hold) are left to the fits.
      if (*most > 1.1 * *least) {
        ++ambiguous_;
        continue;
      }
      entry.sample.time_s = quantile(entry.times, 0.5);
      entry.sample.warm_s = quantile(entry.warm, 0.5);
      cluster_.operators.push_back(std::move(entry.sample));
    }
  }

  /// Groups of neighbours and of ranks further apart have one shape where they lie inside a node. A plan may use
  /// either, so the curve of the slower ones is what counts.
  void collectives() {
    std::map<std::pair<Collective, DeviceGroup>, std::map<int, std::map<double, const ProbeItem*>>> curves;
    for (const ProbeItem* item : items_)
      if (item->collective)
        curves[{item->collective->kind, item->collective->group}][item->stride][item->collective->bytes] = item;
    std::map<int, std::vector<double>> slower;
    for (const auto& [key, strides] : curves) {
      const auto& nearest = strides.begin()->second;
      const auto* chosen = &nearest;
      double most = 1;
      for (const auto& [stride, points] : strides) {
        std::vector<double> ratios;
        for (const auto& [bytes, item] : points)
          if (const auto same = nearest.find(bytes); same != nearest.end())
            ratios.push_back(item->time_s / same->second->time_s);
        const double ratio = ratios.empty() ? 0 : quantile(ratios, 0.5);
        if (ratio > most) most = ratio, chosen = &points;
        if (&points != &nearest) slower[stride].push_back(ratio);
      }
      for (const auto& [bytes, item] : *chosen) cluster_.collectives.push_back(*item->collective);
    }
    for (const auto& [stride, ratios] : slower)
      assumed_.push_back(
          fmt::format("groups of ranks {} apart take {:.2f} times as long as groups of neighbours (median of {} "
                      "curves); the slower of both counts",
                      stride, quantile(ratios, 0.5), ratios.size()));
  }

  std::vector<MeasuredWork> rows_to_fit(bool warm) const {
    std::vector<MeasuredWork> rows;
    for (const ProbeItem* item : items_) {
      const auto precision = place(*item);
      if (item->collective || !precision || item->op.fit.empty() || item->op.flop + item->op.bytes <= 0) continue;
      if (warm && !lies_in_caches(*item)) continue;
      MeasuredWork row;
      row.name = item->op.kind;
      row.phase = item->op.backward ? "backward" : "forward";
      row.precision = *precision;
      row.time_s = warm ? warm_seconds_of(*item) : seconds_of(*item);
      row.parts = {{item->op.fit, {item->op.flop, item->op.bytes, 0, 0, item->op.launches}}};
      rows.push_back(row);
      // For kernels and strides that were not measured.
      if (item->op.fit.starts_with(item->op.kind + " ") && item->op.kind == "convolution") {
        row.parts.front().kind = item->op.kind;
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }

  static std::vector<OperatorFit> fits_to(const std::vector<MeasuredWork>& rows) {
    std::vector<OperatorFit> fits = fit_operators(rows);
    std::erase_if(fits, [](const OperatorFit& f) { return f.samples < kSizesOfFit; });
    return fits;
  }

  void fit(std::vector<FitError>& errors) {
    const std::vector<MeasuredWork> rows = rows_to_fit(false);
    cluster_.fits = fits_to(rows);
    cluster_.warm_fits = fits_to(rows_to_fit(true));
    std::map<std::tuple<std::string, std::string, Precision>, std::vector<double>> wrong;
    for (const auto& row : rows)
      if (const auto seconds = fitted_seconds(cluster_.fits, row))
        wrong[{row.parts.front().kind, row.phase, row.precision}].push_back(std::abs(*seconds - row.time_s) /
                                                                            row.time_s);
    for (const auto& [key, list] : wrong)
      errors.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), static_cast<int>(list.size()),
                        quantile(list, 0.5), quantile(list, 1)});
  }

  /// Ring constants for the groups that were not measured.
  void assume_network() {
    assumed_.push_back("10 Gbit/s between nodes are assumed: no large collective between them was measured");
  }

  void links() {
    LinkLevel& inside = cluster_.links[kIntraNode];
    if (inside.bandwidth <= 0) inside.bandwidth = cluster_.device.memory_bandwidth / 2;
    LinkLevel& between = cluster_.links[kInterNode];
    const bool unknown = cluster_.nodes > 1 && between.bandwidth <= 0;
    if (unknown) between = {between.name, kUsualNetwork, kUsualNetworkLatency, Origin::modelled};
    std::vector<std::string> notes;
    if (cluster_.collectives.empty()) {
      if (unknown) assume_network();
      return;
    }
    calibrate_links({}, cluster_, notes);
    if (unknown && between.origin == Origin::modelled) assume_network();
    if (inside.latency_s > 0) return;
    // Too few sizes for a fit: what the smallest exchange takes is latency.
    const CollectiveSample* smallest = nullptr;
    for (const auto& sample : cluster_.collectives)
      if (sample.group.nodes <= 1 && sample.bytes <= kMostLatencyBytes && (!smallest || sample.bytes < smallest->bytes))
        smallest = &sample;
    if (!smallest) return assumed_.push_back("the latency of 0 is assumed: no small collective was measured");
    const int around = smallest->group.size - 1;
    const int steps = smallest->kind == Collective::all_reduce ? 2 * around
                      : smallest->kind == Collective::all_gather || smallest->kind == Collective::reduce_scatter
                          ? around
                          : 1;
    inside.latency_s = smallest->time_s / steps;
    assumed_.push_back(fmt::format("the latency of {} a step is that of the smallest {} ({} bytes)",
                                   format_seconds(inside.latency_s), to_string(smallest->kind), smallest->bytes));
  }

  void note(const ProbeMessages& messages) {
    int noisy = 0, measured = 0, left_out = 0, reused = 0, midpoints = 0;
    std::map<std::string, int> throttled;
    std::string since, until;
    for (const auto& item : messages.items()) {
      if (!item.not_measured.empty())
        ++left_out;
      else
        ++measured;
      noisy += item.noisy ? 1 : 0;
      midpoints += item.midpoint ? 1 : 0;
      if (!item.reused.empty()) {
        ++reused;
        if (since.empty() || item.reused < since) since = item.reused;
        until = std::max(until, item.reused);
      }
      if (!item.throttled.empty()) ++throttled[item.throttled];
    }
    auto& notes = cluster_.notes;
    notes.push_back(fmt::format(
        "measured by turnpoint-probe over {}: {} times ({} of repeated runs, {}), {} of "
        "them spread by more than 5 %",
        hello_.backend, measured, hello_.statistic == "q1" ? "lower quartile" : "median",
        hello_.cold
            ? cluster_.device.cache_bytes > 0 ? "numbers outside the caches and in them" : "numbers outside the caches"
            : "warm caches",
        noisy));
    if (2 * noisy > measured && hello_.statistic == "q1")  // ranks on a host, which shares its time
      notes.push_back("the machine was busy with something else as well: measure everything again when it is idle");
    if (reused > 0)
      notes.push_back(
          fmt::format("{} of these times were taken over from earlier runs, {} to {}", reused, since, until));
    notes.push_back(fmt::format("libraries: {}", fmt::join(hello_.libraries, ", ")));
    if (midpoints > 0)
      notes.push_back(
          fmt::format("{} sizes of collectives lie between the listed ones, where these were off", midpoints));
    if (messages.finished() && messages.result()->unresolved > 0)
      notes.push_back(fmt::format("{} more sizes than there was time for",
                                  messages.result()->unresolved == 1
                                      ? std::string("1 curve of collectives wants")
                                      : fmt::format("{} curves of collectives want", messages.result()->unresolved)));
    if (left_out > 0) notes.push_back(fmt::format("{} items could not be measured", left_out));
    if (ambiguous_ > 0)
      notes.push_back(fmt::format("{} signatures stand for operators that differ; fits tell them apart", ambiguous_));
    for (const auto& [why, count] : throttled)
      notes.push_back(fmt::format("the device slowed itself down ({}) during {} items", why, count));
    if (messages.checks() > 0)
      notes.push_back(fmt::format("{} of {} comparisons of kernels with plain loops failed",
                                  messages.failed_checks().size(), messages.checks()));
    for (const auto& warning : hello_.warnings) notes.push_back(warning);
    if (hello_.node_ranks.size() > 1 && !hello_.topology.empty())
      notes.push_back("the topology is that of the first host");
    notes.insert(notes.end(), assumed_.begin(), assumed_.end());
    if (!messages.finished())
      notes.push_back("the measurement broke off: what is here was measured until then");
    else if (messages.result()->skipped > 0)
      notes.push_back(fmt::format("{} items were left when the time was up", messages.result()->skipped));
    if (gpu_ && cluster_.collectives.empty() && cluster_.devices() > 1)
      notes.push_back("collectives were not measured: their times are modelled from the data sheet");
  }

  const ProbeHello& hello_;
  bool gpu_, tf32_, known_ = false;
  int ambiguous_ = 0;
  double beside_kernel_s_ = 0;  ///< CPU ranks
  std::vector<const ProbeItem*> items_;
  std::vector<std::string> assumed_;  ///< what stands in for figures that were not measured
  Cluster cluster_;
};

}  // namespace

Expected<MeasuredProfile> measured_profile(const ProbeMessages& messages, const ClusterPtr& base, bool tf32) {
  if (!messages.hello()) return Error{ErrorCode::device, "the probe never said what it measures", {}, {}};
  return Profile(messages, base, tf32).run(messages);
}

}  // namespace turnpoint
