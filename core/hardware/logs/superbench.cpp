// SPDX-License-Identifier: Apache-2.0
// Results of superbench (microsoft/superbenchmark): an object a node, one a line, of metrics "benchmark[:note]/metric[:rank]".
// Read are nccl-bw and rccl-bw (microseconds and 10^9 bytes/s by size), ib-loopback and ib-traffic (10^9 bytes/s, and
// microseconds) and mem-bw (10^9 bytes/s). Sizes are those of nccl-tests: whole tensors, of all-to-all those of one rank.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"
#include "core/hardware/logs/run_shape.h"

namespace turnpoint::logs {

namespace {

constexpr std::size_t kMostNodes = 100'000;

bool is_benchmark(std::string_view name) {
  for (const char* known : {"nccl-bw", "rccl-bw", "ib-loopback", "ib-traffic", "mem-bw"})
    if (name == known) return true;
  return false;
}

/// "nccl-bw:nvlink/allreduce_8388608_busbw:0" as its benchmark and its metric.
struct Name {
  std::string_view benchmark, metric;
};
std::optional<Name> name_of(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto benchmark = key.substr(0, std::min(slash, key.find(':')));
  if (!is_benchmark(benchmark)) return std::nullopt;
  auto metric = key.substr(slash + 1);
  if (const auto rank = metric.rfind(':'); rank != std::string_view::npos && all_digits(metric.substr(rank + 1)))
    metric = metric.substr(0, rank);
  return Name{benchmark, metric};
}

class SuperbenchReader {
 public:
  explicit SuperbenchReader(const std::string& path) : out_(LogKind::superbench, path) {}

  void node(const nlohmann::json& metrics, int line) {
    if (!metrics.is_object()) return out_.warn(line, "is no object of metrics: left out");
    ++nodes_;
    for (const auto& [key, value] : metrics.items()) {
      const auto name = name_of(key);
      if (!name) continue;
      if (!value.is_number()) {
        if (!value.is_null()) out_.warn(line, fmt::format("'{}' is no number: left out", shown(key)));
        continue;
      }
      const double number = value.get<double>();
      if (!(number > 0) || number > 1e15) continue;  // a test that failed is written as 0
      if (name->benchmark.ends_with("ccl-bw"))
        collective(name->metric, number);
      else
        figure(*name, number, line);
    }
  }

  Expected<MeasuredLog> finish() {
    for (const auto& [kind, sizes] : sizes_) add_curve(kind, sizes);
    for (auto& [key, values] : figures_) {
      std::sort(values.begin(), values.end());
      out_.figure(0, key.first, quantile(values, 0.5), fmt::format("{}, median of {}", key.second, values.size()));
    }
    return out_.finish();
  }

 private:
  struct Size {
    std::vector<double> times, algorithm, bus;
  };

  /// "allreduce_8388608_time", with indices of a traffic pattern between or without.
  void collective(std::string_view metric, double value) {
    const auto first = metric.find('_'), last = metric.rfind('_');
    const auto kind = first == std::string_view::npos ? std::nullopt : collective_in_name(metric.substr(0, first));
    if (!kind || last == first) return;
    auto size = metric.substr(first + 1, last - first - 1);
    if (const auto colon = size.rfind(':'); colon != std::string_view::npos) size = size.substr(colon + 1);
    const auto bytes = parse_int(size);
    if (!bytes || *bytes < 1 || *bytes > std::int64_t(1) << 50) return;
    Size& own = sizes_[*kind][*bytes];
    const auto what = metric.substr(last + 1);
    if (what == "time") own.times.push_back(value);
    if (what == "algbw") own.algorithm.push_back(value);
    if (what == "busbw") own.bus.push_back(value);
  }

  void figure(const Name& name, double value, int line) {
    const std::string metric(name.metric);
    if (metric == "h2d_bw") figures_[{Figure::host_to_device, metric}].push_back(value * 1e9);
    if (metric == "d2h_bw") figures_[{Figure::device_to_host, metric}].push_back(value * 1e9);
    if (metric == "d2d_bw") figures_[{Figure::device_memory, metric}].push_back(value * 1e9);
    if (!name.benchmark.starts_with("ib-") || metric.size() < 4) return;
    const auto end = metric.find('_', 3);
    const bool write = metric.starts_with("ib_write_bw"), delay = metric.starts_with("ib_write_lat");
    if (end == std::string::npos || (!write && !delay)) return;
    // Bandwidth of the largest messages, latency of the smallest.
    const std::string rest = metric.substr(write ? 12 : std::min<std::size_t>(13, metric.size()));
    const auto bytes = parse_int(rest.substr(0, rest.find_first_not_of("0123456789")));
    if (!bytes || *bytes < 1) return out_.note(line, fmt::format("'{}' names no size: left out", shown(metric)));
    auto& [at, values] = write ? widest_ : smallest_;
    if (values.empty() || (write ? *bytes > at : *bytes < at)) values.clear(), at = *bytes;
    if (*bytes == at) values.push_back(value * (write ? 1e9 : 1e-6));
    auto& list = figures_[{write ? Figure::network_card : Figure::card_latency, write ? "ib_write_bw" : "ib_write_lat"}];
    list = values;
  }

  /// The ranks follow from the two bandwidths of the largest size, where rounding matters least.
  int ranks_of(Collective kind, const std::map<std::int64_t, Size>& sizes) const {
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      if (size->second.algorithm.empty() || size->second.bus.empty()) continue;
      const double ratio = size->second.bus.front() / size->second.algorithm.front();
      const double share = kind == Collective::all_reduce ? ratio / 2 : ratio;
      if (kind == Collective::broadcast || kind == Collective::send || share >= 0.999 || share <= 0.4) return 0;
      const double ranks = 1 / (1 - share);
      return std::abs(ranks - std::round(ranks)) < 0.1 ? static_cast<int>(std::round(ranks)) : 0;
    }
    return 0;
  }

  void add_curve(Collective kind, const std::map<std::int64_t, Size>& sizes) {
    RunShape shape;
    const int ranks = ranks_of(kind, sizes);
    if (ranks > 8 && nodes_ > 1 && ranks % nodes_ == 0) shape.nodes = nodes_;
    const auto group = group_of_run(out_, shape, ranks);
    if (!group) return;
    out_.log().nodes = std::max(out_.log().nodes, group->nodes);
    out_.log().devices_per_node = std::max(out_.log().devices_per_node, group->per_node);
    for (const auto& [bytes, size] : sizes) {
      auto times = size.times;
      if (times.empty())
        for (const double rate : size.algorithm) times.push_back(double(bytes) / rate * 1e-3);
      if (times.empty()) continue;
      std::sort(times.begin(), times.end());
      const double whole = double(bytes) * (kind == Collective::all_to_all ? group->size : 1);
      out_.time(0, kind, *group, whole, quantile(times, 0.5) * 1e-6,
                {times.front() * 1e-6, 0, 0, times.back() * 1e-6}, {}, static_cast<int>(times.size()));
    }
  }

  LogBuilder out_;
  int nodes_ = 0;
  std::map<Collective, std::map<std::int64_t, Size>> sizes_;
  std::map<std::pair<Figure, std::string>, std::vector<double>> figures_;
  std::pair<std::int64_t, std::vector<double>> widest_, smallest_;
};

}  // namespace

bool looks_like_superbench(std::string_view start) {
  const auto head = start.substr(0, std::size_t(1) << 20);
  for (const char* sign : {"\"nccl-bw", "\"rccl-bw", "\"ib-loopback", "\"ib-traffic", "\"mem-bw"})
    if (const auto at = head.find(sign); at != std::string_view::npos)
      if (const auto slash = head.find('/', at); slash != std::string_view::npos && slash < at + 80) return true;
  return false;
}

Expected<MeasuredLog> read_superbench(std::string_view text, const std::string& path) {
  SuperbenchReader reader(path);
  if (const auto whole = parse_json(text, path)) {
    if (!whole->is_array()) reader.node(*whole, 1);
    if (whole->is_array() && whole->size() <= kMostNodes)
      for (const auto& node : *whole) reader.node(node, 1);
    return reader.finish();
  }
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    if (trimmed(line.text).empty()) continue;
    const auto node = parse_json(line.text, path);
    if (!node) return bad_input("is no list of JSON objects", fmt::format("{}: line {}", path, line.number));
    reader.node(*node, line.number);
  }
  return reader.finish();
}

}  // namespace turnpoint::logs
