// SPDX-License-Identifier: Apache-2.0
// turnpoint/hardware-profile@1 in and out. Every number is checked against what a machine can be.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/hardware/cluster.h"
#include "core/hardware/library.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

constexpr std::string_view kFormat = "turnpoint/hardware-profile@1";
constexpr const char* kLevelNames[] = {"inter-node", "intra-node"};  // by kInterNode, kIntraNode
constexpr double kMaximumRate = 1e18;                                // FLOP/s or bytes/s of one device or link
constexpr double kMaximumLatency = 10;                               // s
constexpr double kMostTime = 1e6;                                    // s, of one measured item
constexpr double kMaximumBytes = 1e15;
constexpr std::size_t kMaximumSamples = 200'000;
constexpr std::size_t kMaximumText = 64u << 20, kMaximumValues = 2'000'000;

void read_device(JsonFields device, DeviceType& type) {
  type.name = device.text("name", "device");
  type.memory_bytes = device.integer("memory_bytes", 1, std::int64_t(1) << 50);
  JsonFields peak = device.object("peak_flop_per_s");
  type.peak_fp32 = peak.number("fp32", 1, kMaximumRate);
  type.peak_bf16 = peak.number("bf16", 1, kMaximumRate, type.peak_fp32);
  if (peak.has("fp8")) type.peak_fp8 = peak.number("fp8", 1, kMaximumRate);
  type.memory_bandwidth = device.number("memory_bandwidth_bytes_per_s", 1, kMaximumRate);
  JsonFields efficiency = device.object("efficiency");
  const DeviceType defaults;
  type.flop_efficiency = efficiency.number("flop", 1e-6, 1, defaults.flop_efficiency);
  if (efficiency.has("flop_16bit")) type.flop_efficiency_16bit = efficiency.number("flop_16bit", 1e-6, 1);
  if (efficiency.has("flop_16bit_odd")) type.flop_efficiency_odd = efficiency.number("flop_16bit_odd", 1e-6, 1);
  if (efficiency.has("flop_16bit_even")) type.flop_efficiency_even = efficiency.number("flop_16bit_even", 1e-6, 1);
  type.memory_efficiency = efficiency.number("memory", 1e-6, 1, defaults.memory_efficiency);
  type.launch_s = device.number("launch_s", 0, kMaximumLatency, defaults.launch_s);
  type.product_launch_s = device.number("product_launch_s", 0, kMaximumLatency, 0);
  type.reserve_bytes = device.integer("reserve_bytes", 0, std::int64_t(1) << 50, 0);
  if (device.has("reserve_bytes") && type.reserve_bytes >= type.memory_bytes)
    device.fail("reserve_bytes", "leaves nothing of memory_bytes");
  if (device.has("cache")) {
    JsonFields cache = device.object("cache");
    type.cache_bytes = cache.integer("bytes", 1, std::int64_t(1) << 50);
    type.cache_bandwidth = cache.number("bandwidth_bytes_per_s", 1, kMaximumRate);
  }
  if (device.has("price_per_hour")) type.price_per_hour = device.number("price_per_hour", 0, 1e9);
}

void read_link(JsonFields& fields, const char* otherwise, LinkLevel& link) {
  link.name = fields.text("name", otherwise);
  link.bandwidth = fields.number("bandwidth_bytes_per_s", 1, kMaximumRate);
  link.latency_s = fields.number("latency_s", 0, kMaximumLatency, 0);
  link.launch_s = fields.number("launch_s", 0, kMaximumLatency, 0);
  link.switch_reduces = fields.flag("switch_reduces", false);
  const std::string origin = fields.text("origin", to_string(Origin::modelled));
  if (const auto parsed = parse_origin(origin))
    link.origin = *parsed;
  else
    fields.fail("origin", fmt::format("must be measured, calibrated or modelled, not '{}'", origin));
}

/// Links of `nodes` nodes of so many devices.
void read_links(JsonFields& root, int nodes, int devices_per_node, std::array<LinkLevel, 2>& links) {
  bool seen[2] = {};
  root.each("links", [&](JsonFields& link, std::size_t) {
    const std::string level = link.text("level");
    const int index = level == kLevelNames[kInterNode]   ? kInterNode
                      : level == kLevelNames[kIntraNode] ? kIntraNode
                                                         : -1;
    if (index < 0)
      return link.fail("level", fmt::format("must be '{}' or '{}', not '{}'", kLevelNames[0], kLevelNames[1], level));
    if (seen[index]) return link.fail("level", fmt::format("'{}' is given twice", level));
    seen[index] = true;
    read_link(link, kLevelNames[index], links[static_cast<std::size_t>(index)]);
  });
  if (nodes > 1 && !seen[kInterNode]) root.fail("links", "has no 'inter-node' link although there are several nodes");
  if (devices_per_node > 1 && !seen[kIntraNode])
    root.fail("links", "has no 'intra-node' link although a node has several devices");
}

/// Levels of the network above the first, from the smallest pods up.
void read_pods(JsonFields& root, Cluster& cluster) {
  root.each("pods", [&](JsonFields& item, std::size_t index) {
    if (index >= kMaxPodLevels)
      return item.fail("nodes", fmt::format("is of more than {} levels of pods", kMaxPodLevels));
    PodLevel level;
    level.nodes = static_cast<int>(item.integer("nodes", 2, kMaximumNodes));
    const int below = cluster.pods.empty() ? 1 : cluster.pods.back().nodes;
    if (!item.error() && (level.nodes <= below || level.nodes % below != 0))
      return item.fail("nodes", fmt::format("is no multiple of the {} of the pods before it", below));
    read_link(item, "between pods", level.link);
    cluster.pods.push_back(std::move(level));
  });
  if (root.error() || cluster.pods.empty()) return;
  if (cluster.mixed()) return root.fail("pods", "cannot be told where the nodes differ");
  set_nodes(cluster, cluster.nodes);
}

/// One that is not known is priced as rings, which whoever reads results must hear of.
void read_library(JsonFields& root, Cluster& cluster) {
  if (!root.has("library")) return;
  const std::string key = root.text("library");
  if (const auto library = parse_library(key)) {
    cluster.library = *library;
    return;
  }
  std::string known;
  for (const LibraryInfo& info : libraries()) known += (known.empty() ? "" : ", ") + std::string(info.key);
  cluster.notes.push_back(fmt::format(
      "the communication library '{}' is not known, so collectives are priced as rings; known are {}", key, known));
}

void read_collective(JsonFields& item, Cluster& cluster) {
  CollectiveSample sample;
  const std::string kind = item.text("kind");
  const auto parsed = parse_collective(kind);
  if (!parsed) return item.fail("kind", fmt::format("unknown collective '{}'", kind));
  sample.kind = *parsed;
  JsonFields group = item.object("group");
  sample.group.size = static_cast<int>(group.integer("size", 2, kMaximumDevices));
  sample.group.nodes = static_cast<int>(group.integer("nodes", 1, kMaximumNodes, 1));
  sample.group.per_node =
      static_cast<int>(group.integer("per_node", 1, kMaximumDevicesPerNode, sample.group.size / sample.group.nodes));
  sample.group.concurrent = static_cast<int>(group.integer("concurrent", 1, kMaximumDevices, 1));
  if (sample.group.nodes * sample.group.per_node != sample.group.size)
    group.fail("size", "is not nodes times per_node");
  sample.group.pods = pods_of(cluster, sample.group.nodes);
  sample.bytes = item.number("bytes", 1, kMaximumBytes);
  sample.time_s = item.number("time_s", 1e-12, kMostTime);
  sample.q1_s = item.number("q1_s", 0, kMostTime, 0);
  sample.q3_s = item.number("q3_s", 0, kMostTime, 0);
  if (item.has("q3_s") && sample.q3_s < sample.q1_s) item.fail("q3_s", "is below q1_s");
  cluster.collectives.push_back(sample);
}

/// Precision and phase of something measured; false where one is wrong. Constants can be of the update, too.
bool read_run(JsonFields& item, Precision& precision, std::string& phase, bool may_update) {
  const std::string name = item.text("precision", "fp32");
  const auto known = parse_precision(name);
  if (!known) return item.fail("precision", fmt::format("must be fp32, bf16 or fp8, not '{}'", name)), false;
  precision = *known;
  phase = item.text("phase", "forward");
  if (phase != "forward" && phase != "backward" && !(may_update && phase == "update"))
    return item.fail("phase", fmt::format("must be forward{} backward{}, not '{}'", may_update ? "," : " or",
                                          may_update ? " or update" : "", phase)),
           false;
  return true;
}

// Recurrent layers launch their kernels every time step (core/cost/phase_work.h), and their fits say so.
constexpr std::string_view kRecurrentKind = "recurrent", kEachStep = "each-step";

void read_terms(JsonFields& item, OperatorFit& fit) {
  fit.launch_s = item.number("launch_s", 0, kMostTime);
  fit.s_per_flop = item.number("s_per_flop", 0, kMostTime);
  fit.s_per_byte = item.number("s_per_byte", 0, kMostTime);
  fit.samples = static_cast<int>(item.integer("samples", 0, kMaximumSamples, 0));
  if (!item.error() && fit.launch_s + fit.s_per_flop + fit.s_per_byte <= 0)
    item.fail("launch_s", "all three terms are 0");
}

void read_fit(JsonFields& item, Cluster& cluster) {
  OperatorFit fit;
  fit.kind = item.text("kind");
  if (!read_run(item, fit.precision, fit.phase, true)) return;
  read_terms(item, fit);
  if (fit.kind == kRecurrentKind && item.text("launched", "") != kEachStep) {
    const std::string_view note =
        "fits of recurrent layers are left out: they are of before launches were counted by time step; measure again";
    if (std::ranges::find(cluster.notes, note) == cluster.notes.end()) cluster.notes.emplace_back(note);
    return;
  }
  if (item.has("warm")) {
    OperatorFit& warm = cluster.warm_fits.emplace_back(fit);
    JsonFields terms = item.object("warm");
    read_terms(terms, warm);
  }
  cluster.fits.push_back(std::move(fit));
}

void read_operator(JsonFields& item, Cluster& cluster) {
  OperatorSample sample;
  sample.kind = item.text("kind");
  const auto dims = item.json().find("dims");
  if (dims == item.json().end() || !dims->is_array() || dims->empty() || dims->size() > 16)
    return item.fail("dims", "must be a list of 1 to 16 sizes");
  for (const auto& dim : *dims) {
    if (!dim.is_number_integer() || dim.get<double>() < 1 || dim.get<double>() > 1e12)
      return item.fail("dims", "sizes must be whole numbers from 1 to 1e12");
    sample.dims.push_back(dim.get<std::int64_t>());
  }
  if (!read_run(item, sample.precision, sample.phase, false)) return;
  sample.time_s = item.number("time_s", 1e-12, kMostTime);
  if (item.has("warm_s")) sample.warm_s = item.number("warm_s", 1e-12, kMostTime);
  cluster.operators.push_back(std::move(sample));
}

/// A list of short texts, such as notes.
std::vector<std::string> read_texts(JsonFields& root, const char* key) {
  std::vector<std::string> texts;
  if (!root.has(key)) return texts;
  const nlohmann::json& list = root.json()[key];
  const bool good = list.is_array() && list.size() <= 10000 &&
                    std::all_of(list.begin(), list.end(), [](const auto& text) { return text.is_string(); });
  if (!good) {
    root.fail(key, "must be a list of texts");
    return texts;
  }
  for (const auto& text : list) texts.push_back(text.get<std::string>());
  return texts;
}

/// The nodes of a mixed cluster: their devices add up to the cluster's, and the weakest one stands for all.
void read_groups(JsonFields& root, Cluster& cluster) {
  std::int64_t devices = 0;
  root.each("groups", [&](JsonFields& item, std::size_t index) {
    if (index >= 64) return item.fail("nodes", "more than 64 groups");
    NodeGroup group;
    group.nodes = static_cast<int>(item.integer("nodes", 1, kMaximumNodes));
    group.devices_per_node =
        static_cast<int>(item.integer("devices_per_node", 1, kMaximumDevicesPerNode, cluster.devices_per_node));
    if (!item.error() && group.devices_per_node % cluster.devices_per_node != 0)
      return item.fail("devices_per_node", fmt::format("is no multiple of the cluster's {}", cluster.devices_per_node));
    read_device(item.object("device"), group.device);
    group.links = cluster.links;
    if (item.has("links")) read_links(item, cluster.nodes, group.devices_per_node, group.links);
    devices += static_cast<std::int64_t>(group.nodes) * group.devices_per_node;
    cluster.groups.push_back(std::move(group));
  });
  if (root.error() || cluster.groups.empty()) return;
  if (devices != cluster.devices())
    return root.fail("groups",
                     fmt::format("have {} devices together, but the cluster has {}", devices, cluster.devices()));
  if (cluster.groups.size() == 1) {
    cluster.device = cluster.groups.front().device;
    cluster.groups.clear();
    return;
  }
  cluster.device = weakest_device(cluster.groups);
  const std::string note = mixed_note(cluster);
  if (std::find(cluster.notes.begin(), cluster.notes.end(), note) == cluster.notes.end()) cluster.notes.push_back(note);
}

Expected<ClusterPtr> read_profile(const nlohmann::json& document, const std::string& path) {
  JsonFields root(document, path);
  const std::string format = root.text("format");
  if (!root.error() && format != kFormat) root.fail("format", fmt::format("is '{}', expected '{}'", format, kFormat));
  auto cluster = std::make_shared<Cluster>();
  cluster->nodes = static_cast<int>(root.integer("nodes", 1, kMaximumNodes));
  cluster->devices_per_node = static_cast<int>(root.integer("devices_per_node", 1, kMaximumDevicesPerNode));
  if (cluster->devices() > kMaximumDevices)
    root.fail("nodes", fmt::format("makes more than {} devices", kMaximumDevices));
  cluster->notes = read_texts(root, "notes");
  if (!root.has("groups") || root.has("device")) read_device(root.object("device"), cluster->device);
  if (!root.error()) read_links(root, cluster->nodes, cluster->devices_per_node, cluster->links);
  if (!root.error()) read_groups(root, *cluster);
  if (!root.error()) read_pods(root, *cluster);
  const std::string interpolation = root.text("interpolation", to_string(Interpolation::time));
  if (const auto parsed = parse_interpolation(interpolation))
    cluster->interpolation = *parsed;
  else
    root.fail("interpolation", fmt::format("must be time or bandwidth, not '{}'", interpolation));
  read_library(root, *cluster);
  cluster->overlap_slowdown =
      root.number("overlap_slowdown", 1, kMostOverlapSlowdown, info_of(cluster->library).overlap_slowdown);
  if (root.has("host_link"))
    cluster->host_link_bandwidth = root.object("host_link").number("bandwidth_bytes_per_s", 1, kMaximumRate);
  std::size_t samples = 0;
  for (const char* list : {"collectives", "operators", "operator_fits"})
    if (root.has(list)) samples += document[list].size();
  if (samples > kMaximumSamples) root.fail("collectives", fmt::format("more than {} measured items", kMaximumSamples));
  std::set<std::tuple<Collective, DeviceGroup, double>> seen;
  root.each("collectives", [&](JsonFields& item, std::size_t) {
    read_collective(item, *cluster);
    if (item.error()) return;
    const auto& sample = cluster->collectives.back();
    if (!seen.insert({sample.kind, sample.group, sample.bytes}).second)
      item.fail("bytes", "this collective, group and size were given before");
  });
  root.each("operators", [&](JsonFields& item, std::size_t) { read_operator(item, *cluster); });
  root.each("operator_fits", [&](JsonFields& item, std::size_t) { read_fit(item, *cluster); });
  if (root.has("topology")) cluster->topology = read_topology(root.object("topology"));
  cluster->name = root.text("name", std::filesystem::path(path).stem().string());
  cluster->title = root.text("title", cluster_title(*cluster));
  if (root.error()) return *root.error();
  return ClusterPtr(cluster);
}

}  // namespace

Expected<ClusterPtr> parse_hardware_profile(std::string_view text, const std::string& where) {
  // Bounds on the text bound the memory of the document: a value takes up to 160 bytes.
  if (text.size() > kMaximumText) return bad_input(fmt::format("larger than {} MiB", kMaximumText >> 20), where);
  const auto values = std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '[' || c == '{'; });
  if (static_cast<std::size_t>(values) > kMaximumValues)
    return bad_input(fmt::format("holds more than {} values", kMaximumValues), where);
  const auto document = parse_json(text, where);
  if (!document) return document.error();
  return read_profile(*document, where);
}

Expected<ClusterPtr> read_hardware_profile(const std::string& path) {
  const auto text = read_file(path, kMaximumText);
  if (!text) return text.error();
  return parse_hardware_profile(*text, path);
}

namespace {

nlohmann::ordered_json device_json(const DeviceType& type) {
  nlohmann::ordered_json device = {{"name", type.name},
                                   {"memory_bytes", type.memory_bytes},
                                   {"peak_flop_per_s", {{"fp32", type.peak_fp32}, {"bf16", type.peak_bf16}}},
                                   {"memory_bandwidth_bytes_per_s", type.memory_bandwidth},
                                   {"efficiency", {{"flop", type.flop_efficiency}, {"memory", type.memory_efficiency}}},
                                   {"launch_s", type.launch_s}};
  if (type.flop_efficiency_16bit > 0) device["efficiency"]["flop_16bit"] = type.flop_efficiency_16bit;
  if (type.flop_efficiency_odd > 0) device["efficiency"]["flop_16bit_odd"] = type.flop_efficiency_odd;
  if (type.flop_efficiency_even > 0) device["efficiency"]["flop_16bit_even"] = type.flop_efficiency_even;
  if (type.product_launch_s > 0) device["product_launch_s"] = type.product_launch_s;
  if (type.peak_fp8 > 0) device["peak_flop_per_s"]["fp8"] = type.peak_fp8;
  if (type.reserve_bytes > 0) device["reserve_bytes"] = type.reserve_bytes;
  if (type.cache_bytes > 0)
    device["cache"] = {{"bytes", type.cache_bytes}, {"bandwidth_bytes_per_s", type.cache_bandwidth}};
  if (type.price_per_hour) device["price_per_hour"] = *type.price_per_hour;
  return device;
}

nlohmann::ordered_json terms_json(const OperatorFit& fit) {
  return {{"launch_s", fit.launch_s},
          {"s_per_flop", fit.s_per_flop},
          {"s_per_byte", fit.s_per_byte},
          {"samples", fit.samples}};
}

nlohmann::ordered_json link_json(const char* key, const nlohmann::ordered_json& value, const LinkLevel& link) {
  nlohmann::ordered_json json = {{key, value},
                                 {"name", link.name},
                                 {"bandwidth_bytes_per_s", link.bandwidth},
                                 {"latency_s", link.latency_s},
                                 {"origin", to_string(link.origin)}};
  if (link.launch_s > 0) json["launch_s"] = link.launch_s;
  if (link.switch_reduces) json["switch_reduces"] = true;
  return json;
}

nlohmann::ordered_json links_json(const std::array<LinkLevel, 2>& levels) {
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const int level : {kInterNode, kIntraNode})
    if (const LinkLevel& link = levels[level]; link.bandwidth > 0)
      links.push_back(link_json("level", kLevelNames[level], link));
  return links;
}

}  // namespace

std::string write_hardware_profile(const Cluster& cluster) {
  using json = nlohmann::ordered_json;
  json collectives = json::array(), operators = json::array();
  for (const auto& sample : cluster.collectives) {
    collectives.push_back({{"kind", to_string(sample.kind)},
                           {"group",
                            {{"size", sample.group.size},
                             {"nodes", sample.group.nodes},
                             {"per_node", sample.group.per_node},
                             {"concurrent", sample.group.concurrent}}},
                           {"bytes", sample.bytes},
                           {"time_s", sample.time_s}});
    if (sample.q1_s > 0) collectives.back()["q1_s"] = sample.q1_s;
    if (sample.q3_s > 0) collectives.back()["q3_s"] = sample.q3_s;
  }
  for (const auto& sample : cluster.operators) {
    operators.push_back({{"kind", sample.kind},
                         {"dims", sample.dims},
                         {"precision", to_string(sample.precision)},
                         {"phase", sample.phase},
                         {"time_s", sample.time_s}});
    if (sample.warm_s > 0) operators.back()["warm_s"] = sample.warm_s;
  }
  json root = {{"format", kFormat},
               {"name", cluster.name},
               {"title", cluster.title},
               {"nodes", cluster.nodes},
               {"devices_per_node", cluster.devices_per_node},
               {"device", device_json(cluster.device)},
               {"links", links_json(cluster.links)}};
  for (const PodLevel& level : cluster.pods) root["pods"].push_back(link_json("nodes", level.nodes, level.link));
  if (cluster.library != Library::ring) root["library"] = info_of(cluster.library).key;
  if (cluster.overlap_slowdown != info_of(cluster.library).overlap_slowdown)
    root["overlap_slowdown"] = cluster.overlap_slowdown;
  if (cluster.host_link_bandwidth > 0) root["host_link"] = {{"bandwidth_bytes_per_s", cluster.host_link_bandwidth}};
  if (cluster.mixed()) {
    json groups = json::array();
    for (const NodeGroup& group : cluster.groups)
      groups.push_back({{"nodes", group.nodes},
                        {"devices_per_node", group.devices_per_node},
                        {"device", device_json(group.device)},
                        {"links", links_json(group.links)}});
    root["groups"] = std::move(groups);
  }
  root["interpolation"] = to_string(cluster.interpolation);
  if (const auto topology = topology_json(cluster.topology); !topology.empty()) root["topology"] = topology;
  if (!cluster.notes.empty()) root["notes"] = cluster.notes;
  root["collectives"] = std::move(collectives);
  root["operators"] = std::move(operators);
  for (const auto& fit : cluster.fits) {
    json item = {{"kind", fit.kind}, {"precision", to_string(fit.precision)}, {"phase", fit.phase}};
    item.update(terms_json(fit));
    if (fit.kind == kRecurrentKind) item["launched"] = kEachStep;
    if (const OperatorFit* warm = fit_like(cluster.warm_fits, fit)) item["warm"] = terms_json(*warm);
    root["operator_fits"].push_back(std::move(item));
  }
  // Invalid UTF-8 cannot come from a file we parsed, but a name may be set by a caller.
  return root.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace turnpoint
