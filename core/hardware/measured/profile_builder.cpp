// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/measured/profile_builder.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/json.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/measured/calibrate_links.h"
#include "core/hardware/measured/take_sheets.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

constexpr std::size_t kMaximumProfileSamples = 150'000;  // what a profile can be read with again
constexpr std::size_t kMaximumFile = 64u << 20;          // bytes

std::string short_name(const MeasuredLog& log) { return logs::file_name(log.path); }

/// A preset to suggest: the device that a path speaks of, the shape that was seen.
std::string likely_preset(const std::vector<MeasuredLog>& logs, int nodes, int per_node) {
  for (const auto& log : logs)
    if (const std::string key = preset_key_of(log.path); !key.empty())
      return key + shape_suffix(std::max(1, nodes), std::max(1, per_node));
  return "a100-80gb" + shape_suffix(std::max(1, nodes), std::max(1, per_node));
}

Expected<ClusterPtr> choose_base(const std::vector<MeasuredLog>& logs, std::vector<std::string>& notes) {
  std::string key, named;
  int nodes = 0, per_node = 0;
  for (const auto& log : logs) {
    nodes = std::max(nodes, log.nodes);
    per_node = std::max(per_node, log.devices_per_node);
    const std::string found = preset_key_of(log.device_name);
    if (found.empty()) continue;
    if (!key.empty() && key != found) {
      Error error =
          usage_error(fmt::format("the files speak of different devices: '{}' and '{}'", named, log.device_name));
      error.hint = "give --base PRESET if they belong together";
      return error;
    }
    key = found;
    named = log.device_name;
  }
  if (key.empty()) {
    Error error = usage_error("no file names a device that a preset is known for");
    error.hint = fmt::format("give --base PRESET, such as {}: it fills in what was not measured",
                             likely_preset(logs, nodes, per_node));
    return error;
  }
  const std::string preset = key + shape_suffix(std::max(1, nodes), std::max(1, per_node));
  notes.push_back(fmt::format("device '{}': what was not measured comes from the preset {}", named, preset));
  return cluster_preset(preset);
}

/// What a size was measured with, over all files.
struct Sizes {
  std::vector<double> times;
  std::vector<RepeatSpread> spreads;
};

/// Curves of the plain variant; others (in-place, strided) only where there is no plain one.
void merge_curves(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  using Key = std::pair<Collective, DeviceGroup>;
  std::map<Key, std::map<double, Sizes>> merged;
  std::map<Key, std::set<std::string>> sources;
  for (const bool plain : {true, false})
    for (const auto& log : logs)
      for (const auto& curve : log.curves) {
        const Key key{curve.kind, curve.group};
        if (curve.variant.empty() != plain || (!plain && merged.count(key))) continue;
        sources[key].insert(log.path);
        for (const auto& point : curve.points) {
          merged[key][point.bytes].times.push_back(point.time_s);
          merged[key][point.bytes].spreads.push_back(point.spread);
        }
      }
  std::size_t left_out = 0;
  for (auto& [key, sizes] : merged) {
    if (sources[key].size() > 1)
      notes.push_back(fmt::format("{} of {} devices was measured in {} files: all sizes kept, medians at equal ones",
                                  to_string(key.first), key.second.size, sources[key].size()));
    if (key.second.nodes > cluster.nodes || key.second.per_node > cluster.devices_per_node)
      notes.push_back(fmt::format("{} of {} x {} devices does not fit the {} x {} of the profile and will not be used",
                                  to_string(key.first), key.second.nodes, key.second.per_node, cluster.nodes,
                                  cluster.devices_per_node));
    for (auto& [bytes, size] : sizes) {
      std::sort(size.times.begin(), size.times.end());
      CollectiveSample sample{key.first, key.second, bytes, logs::quantile(size.times, 0.5), 0, 0};
      if (size.times.size() > 1) {
        sample.q1_s = logs::quantile(size.times, 0.25);
        sample.q3_s = logs::quantile(size.times, 0.75);
      } else if (size.spreads.front().q3_s > 0) {
        sample.q1_s = size.spreads.front().q1_s;
        sample.q3_s = size.spreads.front().q3_s;
      }
      if (cluster.collectives.size() < kMaximumProfileSamples)
        cluster.collectives.push_back(sample);
      else
        ++left_out;
    }
  }
  if (left_out > 0)
    notes.push_back(fmt::format("{} samples left out: a profile holds {}", left_out, kMaximumProfileSamples));
}

/// Replaces what the base knew of the same kind and group.
void drop_replaced(Cluster& cluster, const std::vector<MeasuredLog>& logs) {
  std::set<std::pair<Collective, DeviceGroup>> measured;
  for (const auto& log : logs)
    for (const auto& curve : log.curves) measured.insert({curve.kind, curve.group});
  std::erase_if(cluster.collectives, [&](const CollectiveSample& sample) {
    return measured.count({sample.kind, sample.group}) > 0;
  });
}

/// One card's rate becomes the node's where a topology counts the cards; alone it says too little.
void take_cards(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  std::size_t cards = 0;
  double rate = 0;
  for (const auto& log : logs) {
    if (log.topology) cards = std::max(cards, log.topology->nics.size());
    for (const auto& figure : log.figures)
      if (figure.figure == Figure::network_card) rate = std::max(rate, figure.value);
  }
  if (rate < 1) return;
  LinkLevel& link = cluster.links[kInterNode];
  if (cards == 0) {
    notes.push_back(
        fmt::format("one network card carries {:.1f} GB/s; how many a node has is not told (a topology file "
                    "would), so the link between nodes stays {:.1f} GB/s",
                    rate / 1e9, link.bandwidth / 1e9));
  } else if (link.origin == Origin::modelled) {
    link.bandwidth = rate * static_cast<double>(cards);
    link.origin = Origin::calibrated;
    notes.push_back(fmt::format("link between nodes: {:.1f} GB/s, {} network card{} of {:.1f} GB/s measured",
                                link.bandwidth / 1e9, cards, cards == 1 ? "" : "s", rate / 1e9));
  }
}

void take_figures(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  double host = 0, beside = 0;
  for (const auto& log : logs)
    for (const auto& figure : log.figures) {
      if (figure.figure == Figure::overlap_slowdown) {
        if (figure.value >= 1 && figure.value <= kMostOverlapSlowdown)
          beside = std::max(beside, figure.value);
        else
          notes.push_back(
              fmt::format("{}: {:g} times as long for computing and communicating at once is left out, since "
                          "1 to {:g} are believed",
                          short_name(log), figure.value, kMostOverlapSlowdown));
      }
      if (figure.value < 1) continue;  // no link is that slow
      if (figure.figure == Figure::host_to_device || figure.figure == Figure::device_to_host)
        host = host > 0 ? std::min(host, figure.value) : figure.value;
    }
  take_cards(logs, cluster, notes);
  if (host > 0) {
    cluster.host_link_bandwidth = host;
    notes.push_back(fmt::format("host link: {:.1f} GB/s, the slower direction measured", host / 1e9));
  }
  if (beside > 0) {
    cluster.overlap_slowdown = beside;
    notes.push_back(fmt::format("computing and communicating at once take {:.3g} times as long, measured", beside));
  }
}

/// Column-major C (M x N) = A B without transposes is the forward product of M outputs, N samples and K inputs.
void take_operators(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  std::map<std::tuple<Precision, std::vector<std::int64_t>, std::string>, std::vector<double>> products;
  for (const auto& log : logs) {
    std::size_t raw = 0;
    for (const auto& sample : log.operators) {
      const auto dim = [&](std::size_t i) { return sample.dims[i].second; };
      const bool products_alone = log.kind == LogKind::deepbench_gemm || log.kind == LogKind::aiconfigurator;
      if (products_alone && dim(3) == 0 && dim(4) == 0)
        products[{sample.precision, {dim(1), dim(2), dim(0)}, "forward"}].push_back(sample.time_s);
      else if (log.kind == LogKind::kineto && sample.kind == "matmul")
        products[{sample.precision, {dim(0), dim(1), dim(2)}, sample.phase}].push_back(sample.time_s);
      else
        ++raw;
    }
    if (raw > 0)
      notes.push_back(
          fmt::format("{}: {} operator times are for calibration, not samples of the profile", short_name(log), raw));
  }
  for (auto& [key, times] : products) {
    std::sort(times.begin(), times.end());
    cluster.operators.push_back(
        {"matmul", std::get<1>(key), std::get<0>(key), std::get<2>(key), logs::quantile(times, 0.5)});
  }
}

}  // namespace

Expected<ClusterPtr> build_profile(const std::vector<MeasuredLog>& logs, const ClusterPtr& given,
                                   std::vector<std::string>& notes) {
  ClusterPtr base = given;
  if (!base) {
    auto chosen = choose_base(logs, notes);
    if (!chosen) return chosen.error();
    base = *chosen;
  }
  auto cluster = std::make_shared<Cluster>(*base);
  // Nobody chose this preset, so whoever reads results of the profile must hear of it.
  if (!given) cluster->notes.push_back(notes.back());
  take_sheets(logs, *cluster, notes);
  for (const auto& log : logs) {
    const std::string found = preset_key_of(log.device_name);
    if (given && log.kind != LogKind::gpu_specs && !found.empty() && !cluster->name.starts_with(found))
      notes.push_back(fmt::format("{} was measured on '{}', the profile is for {}", short_name(log), log.device_name,
                                  cluster->device.name));
  }
  drop_replaced(*cluster, logs);
  merge_curves(logs, *cluster, notes);
  take_topology(logs, *cluster, notes);
  calibrate_links(logs, *cluster, notes);
  take_figures(logs, *cluster, notes);
  take_operators(logs, *cluster, notes);
  const bool measured = std::any_of(logs.begin(), logs.end(), [](const MeasuredLog& log) {
    const bool described = log.kind == LogKind::gpu_specs || log.kind == LogKind::nccl_topology;
    return !described && !(log.curves.empty() && log.figures.empty() && log.operators.empty());
  });
  if (measured && cluster->name.find("measured") == std::string::npos) {
    const std::string suffix = shape_suffix(*base);
    if (cluster->name.ends_with(suffix)) cluster->name.resize(cluster->name.size() - suffix.size());
    cluster->name += "-measured" + shape_suffix(*cluster);
    if (!cluster->mixed()) cluster->title = cluster_title(*cluster);
    cluster->title += ", measured";
  }
  return ClusterPtr(cluster);
}

namespace {

/// Our own documents name their format; no measured log does. Looked for in the text, so that a broken profile is still
/// reported as one.
bool is_profile(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"turnpoint/hardware-profile@") != std::string_view::npos;
}

Expected<ClusterPtr> parse_profile(const FileStart& start, const std::string& path) {
  if (start.whole) return parse_hardware_profile(start.text, path);
  const auto text = read_file(path, kMaximumFile);
  if (!text) return text.error();
  return parse_hardware_profile(*text, path);
}

}  // namespace

Expected<HardwareReport> read_hardware_files(const std::vector<std::string>& paths, const ClusterPtr& base) {
  HardwareReport report;
  ClusterPtr profile;
  std::string profile_path;
  for (const auto& path : paths) {
    const auto start = read_start(path);
    if (start && is_profile(start->text)) {
      if (profile) return usage_error(fmt::format("'{}' and '{}' are both profiles: give one", profile_path, path));
      const auto found = parse_profile(*start, path);
      if (!found) return found.error();
      profile = *found;
      profile_path = path;
      continue;
    }
    auto log = start ? read_measured_log(path, *start) : Expected<MeasuredLog>(start.error());
    if (log)
      report.logs.push_back(std::move(*log));
    else
      report.unread.push_back({path, log.error()});
  }
  if (!report.unread.empty() && report.logs.empty() && !profile) return report.unread.front().error;
  if (profile && base) report.notes.push_back(fmt::format("'{}' is the base, not the preset", profile_path));
  const auto cluster = build_profile(report.logs, profile ? profile : base, report.notes);
  if (!cluster) {
    report.no_cluster = cluster.error().message();
    return report;
  }
  report.cluster = *cluster;
  report.coverage = coverage(**cluster);
  return report;
}

Expected<ClusterPtr> read_hardware_file(const std::string& path) {
  const auto start = read_start(path);
  if (!start) return start.error();
  if (is_profile(start->text)) return parse_profile(*start, path);
  const auto log = read_measured_log(path, *start);
  if (!log) return log.error();
  std::vector<std::string> notes;
  auto cluster = build_profile({*log}, nullptr, notes);
  if (cluster) return cluster;
  Error error =
      bad_input(fmt::format("{} that does not say on which device it was measured", to_string(log->kind)), path);
  error.hint = fmt::format("'turnpoint-cli hardware {} --base PRESET --out PROFILE.json' makes a profile of it", path);
  return error;
}

}  // namespace turnpoint
