// SPDX-License-Identifier: Apache-2.0
// JSON that other planners profile with: Galvatron's key = value files, nnScaler's curves, llm-analysis's device
// sheets.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

using nlohmann::json;

constexpr std::string_view kGalvatronKeys[] = {"allreduce_size_", "all2all_size_", "allgather_size_", "pp_size_",
                                               "overlap_coe",     "layertype_",    "layernum["};
constexpr std::pair<const char*, Collective> kNnscalerKeys[] = {{"all gather", Collective::all_gather},
                                                                {"all reduce", Collective::all_reduce},
                                                                {"reduce scatter", Collective::reduce_scatter},
                                                                {"all to all", Collective::all_to_all}};

/// Reads the whole number at the front of `text` and drops it with the following `suffix`; nullopt leaves both alone.
std::optional<int> take_number(std::string_view& text, std::string_view suffix) {
  std::size_t end = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const auto value = parse_int(text.substr(0, end));
  if (!value || *value < 1 || *value > 1'000'000 || !text.substr(end).starts_with(suffix)) return std::nullopt;
  text.remove_prefix(end + suffix.size());
  return static_cast<int>(*value);
}

class Galvatron {
 public:
  explicit Galvatron(const std::string& path) : out_(LogKind::galvatron, path) {
    const std::string name = file_name(path);
    const auto nodes = number_before(name, "nodes"), per_node = number_before(name, "gpus_per_node");
    out_.log().nodes = nodes_ = nodes.value_or(0);
    out_.log().devices_per_node = per_node.value_or(0);
    per_node_ = per_node.value_or(8);
    if (!nodes && (name.find("bandwidth") != std::string::npos || name.find("sp_time") != std::string::npos))
      out_.warn(0, "its name does not tell the nodes, as in p2p_bandwidth_2nodes_8gpus_per_node.json: one is assumed");
    precision_ = name.find("fp32") == std::string::npos ? Precision::bf16 : Precision::fp32;
    if (const auto at = name.find("computation_profiling_"); at != std::string::npos)
      model_ = name.substr(at + 22, name.find(".json", at) - at - 22);
  }

  Expected<MeasuredLog> read(const json& document) {
    for (const auto& [key, value] : document.items()) {
      if (!value.is_number()) {
        out_.warn(0, fmt::format("{}: must be a number", shown(key)));
        continue;
      }
      if (!entry(key, value.get<double>())) out_.warn(0, fmt::format("{}: not understood", shown(key)));
    }
    return out_.finish();
  }

 private:
  bool entry(std::string_view key, double value) {
    const std::string label(key);
    if (key == "overlap_coe") return out_.figure(0, Figure::overlap_slowdown, value, label), true;
    const auto prefix = [&](std::string_view text) {
      if (!key.starts_with(text)) return false;
      key.remove_prefix(text.size());
      return true;
    };
    if (prefix("pp_size_")) {
      const auto stages = take_number(key, "");
      if (!stages || !key.empty()) return false;
      const auto group = pair(*stages);
      if (!group)
        return out_.note(0, fmt::format("{}: some of its sends cross nodes and some do not, so it tells of no link: "
                                        "left out",
                                        shown(label))),
               true;
      return out_.figure(0, Figure::bus_bandwidth, value * 1e9, label, Collective::send, *group), true;
    }
    if (key.starts_with("layertype_") || key.starts_with("layernum[")) return layer(key, value);
    const Collective kind = key.starts_with("all2all")     ? Collective::all_to_all
                            : key.starts_with("allgather") ? Collective::all_gather
                                                           : Collective::all_reduce;
    if (!prefix("allreduce_size_") && !prefix("all2all_size_") && !prefix("allgather_size_")) return false;
    const auto size = take_number(key, "_");
    if (!size) return false;
    if (prefix("consec_"))
      return out_.figure(0, Figure::bus_bandwidth, value * 1e9, label, kind, over_nodes(*size, key == "1")), true;
    const auto mib = take_number(key, "MB_time");
    if (!mib || !key.empty()) return false;
    // Measured with nccl-tests: its 1M is 2^20 bytes, and of an all-to-all it prints what one rank sends.
    const double bytes = *mib * kMiB * (kind == Collective::all_to_all ? *size : 1);
    out_.time(0, kind, over_nodes(*size, true), bytes, value * 1e-3);
    return true;
  }

  /// `consecutive` ranks fill a node first; others are spread over all nodes.
  DeviceGroup over_nodes(int size, bool consecutive) const {
    const int nodes = std::max(1, nodes_), per_node = per_node_;
    if (consecutive) return group_over(size, (size + per_node - 1) / per_node);
    return group_over(size, std::min(size, nodes));
  }
  /// Neighbouring stages of a pipeline over all devices: on one node all sends stay inside it; on several, all of them
  /// cross while a stage is a node or more, and of smaller stages only those at a node's end, which one mean hides.
  std::optional<DeviceGroup> pair(int stages) const {
    if (nodes_ <= 1) return DeviceGroup{2, 1, 2, 1};
    if (stages <= nodes_) return DeviceGroup{2, 2, 1, 1};
    return std::nullopt;
  }

  /// "layertype_0_bsz4_seq2048": ms a layer and sample; "layernum[2]_bsz4_seq2048": ms of a run with that many layers.
  bool layer(std::string_view key, double milliseconds) {
    const auto bsz = key.find("_bsz"), seq = key.find("_seq");
    if (bsz == std::string_view::npos || seq == std::string_view::npos || seq < bsz) return false;
    std::string_view batch_text = key.substr(bsz + 4, seq - bsz - 4), sequence_text = key.substr(seq + 4);
    const auto batch = take_number(batch_text, ""), sequence = take_number(sequence_text, "");
    if (!batch || !sequence || !batch_text.empty() || !sequence_text.empty()) return false;
    MeasuredOperator sample;
    sample.model = model_;
    sample.kind = std::string(key.substr(0, bsz));
    sample.dims = {{"batch", *batch}, {"sequence", *sequence}};
    sample.micro_batch = *batch;
    sample.precision = precision_;
    sample.time_s = milliseconds * 1e-3 * (key.starts_with("layertype_") ? *batch : 1);
    out_.op(std::move(sample));
    return true;
  }

  LogBuilder out_;
  int nodes_ = 0, per_node_ = 8;
  Precision precision_ = Precision::bf16;
  std::string model_;
};

}  // namespace

bool looks_like_galvatron(const json& document) {
  if (!document.is_object()) return false;
  for (const auto& [key, value] : document.items())
    for (const auto prefix : kGalvatronKeys)
      if (std::string_view(key).starts_with(prefix)) return true;
  return false;
}

Expected<MeasuredLog> read_galvatron(const json& document, const std::string& path) {
  return Galvatron(path).read(document);
}

bool looks_like_nnscaler(const json& document) {
  return document.is_object() && std::any_of(std::begin(kNnscalerKeys), std::end(kNnscalerKeys),
                                             [&](const auto& entry) { return document.contains(entry.first); });
}

/// {"all gather": [[MiB, ...], [s, ...]], ...}: sizes are whole tensors for every kind, the profiler divides by the
/// ranks itself. The group is in the name: intra_4.json. Files of several nodes are named by their product only.
Expected<MeasuredLog> read_nnscaler(const json& document, const std::string& path) {
  LogBuilder out(LogKind::nnscaler, path);
  const auto ranks = number_after(file_name(path), "intra_");
  if (!ranks || *ranks < 2) return bad_input("its name must end with the number of ranks, as in intra_4.json", path);
  const DeviceGroup group = group_over(*ranks, *ranks > 8 && *ranks % 8 == 0 ? *ranks / 8 : 1);
  if (group.nodes > 1)
    out.warn(0, fmt::format("{} ranks: nodes of 8 devices assumed, since such files do not say", *ranks));
  out.log().nodes = group.nodes;
  out.log().devices_per_node = group.per_node;
  for (const auto& [key, kind] : kNnscalerKeys) {
    const auto curve = document.find(key);
    if (curve == document.end()) continue;
    const bool paired = curve->is_array() && curve->size() == 2 && (*curve)[0].is_array() && (*curve)[1].is_array();
    if (!paired) {
      out.warn(0, fmt::format("{}: must be two lists, sizes and times", key));
      continue;
    }
    const auto &sizes = (*curve)[0], &times = (*curve)[1];
    if (sizes.size() != times.size())
      out.warn(0, fmt::format("{}: {} sizes, but {} times", key, sizes.size(), times.size()));
    for (std::size_t i = 0; i < std::min(sizes.size(), times.size()); ++i) {
      if (!sizes[i].is_number() || !times[i].is_number())
        out.warn(0, fmt::format("{}[{}]: not a number", key, i));
      else
        out.time(0, kind, group, sizes[i].get<double>() * kMiB, times[i].get<double>());
    }
  }
  return out.finish();
}

/// llm-analysis's sheets: data-sheet figures under keys that carry their units; "GB" and "TFLOPS" are powers of ten.
Expected<MeasuredLog> read_gpu_specs(const json& document, const std::string& path) {
  LogBuilder out(LogKind::gpu_specs, path);
  if (const auto name = document.find("name"); name != document.end() && name->is_string())
    out.log().device_name = name->get<std::string>().substr(0, 80);
  const auto value = [&](const char* key) -> std::optional<double> {
    const auto found = document.find(key);
    if (found == document.end()) return std::nullopt;
    if (!found->is_number() || !(found->get<double>() > 0) || found->get<double>() > 1e9) {
      out.warn(0, fmt::format("{}: must be a positive number", key));
      return std::nullopt;
    }
    return found->get<double>();
  };
  if (const auto memory = value("mem_per_GPU_in_GB")) out.log().memory_bytes = *memory * (std::int64_t(1) << 30);
  constexpr std::tuple<const char*, Figure, double> kKeys[] = {
      {"hbm_bandwidth_in_GB_per_sec", Figure::device_memory, 1e9},
      {"intra_node_bandwidth_in_GB_per_sec", Figure::intra_node_link, 1e9},
      {"inter_node_bandwidth_in_GB_per_sec", Figure::inter_node_link, 1e9},
      {"intra_node_min_message_latency", Figure::link_latency, 1},
      {"peak_fp16_TFLOPS", Figure::peak_16bit, 1e12},
      {"peak_fp32_TFLOPS", Figure::peak_32bit, 1e12}};
  for (const auto& [key, figure, unit] : kKeys)
    if (const auto found = value(key)) out.figure(0, figure, *found * unit, key);
  out.note(0, "data-sheet figures, nothing measured");
  // Such sheets are copied from one another: "v100-sxm-16gb" is said to have 32 GB.
  if (const auto named = number_before(lower(out.log().device_name), "gb"); named && out.log().memory_bytes > 0) {
    const double gib = out.log().memory_bytes / static_cast<double>(std::int64_t(1) << 30);
    if (gib != *named) out.warn(0, fmt::format("mem_per_GPU_in_GB is {:g}, but the name says {}", gib, *named));
  }
  return out.finish();
}

}  // namespace turnpoint::logs
