// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/measured_log.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/hardware/logs/json_stream.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint {

namespace {

using namespace logs;

constexpr std::size_t kMaximumText = 32u << 20, kMaximumJson = 8u << 20;  // bytes; a log is far smaller

constexpr const char* kKindNames[] = {"nccl-tests table",
                                      "nccl-tests JSON file",
                                      "nvbandwidth log",
                                      "nvbandwidth JSON file",
                                      "nvidia-smi topology",
                                      "NCCL topology",
                                      "Galvatron profile",
                                      "nnScaler profile",
                                      "Vidur table of collectives",
                                      "Vidur table of operators",
                                      "DeepBench table",
                                      "Aceso table of operators",
                                      "Aceso table of collectives",
                                      "Aceso point-to-point table",
                                      "PyTorch profiler trace",
                                      "OSU micro-benchmark",
                                      "Intel MPI benchmark",
                                      "perftest log",
                                      "rocm-smi topology",
                                      "PARAM benchmark",
                                      "superbench results",
                                      "aiconfigurator table",
                                      "Nsight Systems summary",
                                      "device data sheet"};
constexpr const char* kFigureNames[] = {
    "bus bandwidth",      "host to device", "device to host",    "device to device",
    "device memory",      "host latency",   "network of a node", "PCIe wire",
    "overlap slowdown",   "16-bit peak",    "32-bit peak",       "link in the node",
    "link between nodes", "link latency",   "network card",      "network card latency"};

Error unknown_kind(const std::string& path) {
  Error error = bad_input("is no hardware profile and no log of a kind that is read", path);
  error.hint =
      "nccl-tests, nvbandwidth, nvidia-smi topo -m, rocm-smi --showtopo, NCCL topology XML, PyTorch profiler traces, "
      "nsys "
      "stats, OSU, Intel MPI and PARAM benchmarks, perftest, superbench, aiconfigurator, Galvatron, nnScaler, Vidur, DeepBench and Aceso files are";
  return error;
}

Expected<MeasuredLog> read_json_log(std::string_view text, const std::string& path) {
  if (looks_like_kineto(text)) {
    const auto source = text_source(text);
    return read_kineto(*source, path);
  }
  if (looks_like_superbench(text)) return read_superbench(text, path);
  if (text.size() > kMaximumJson) return bad_input(fmt::format("larger than {} MiB", kMaximumJson >> 20), path);
  const auto document = parse_json(text, path);
  if (!document) return document.error();
  if (!document->is_object()) return unknown_kind(path);
  if (document->contains("nvbandwidth")) return read_nvbandwidth_json(*document, path);
  if (document->contains("results") && (document->contains("config") || document->contains("nccl_version")))
    return read_nccl_tests_json(*document, path);
  if (looks_like_galvatron(*document)) return read_galvatron(*document, path);
  if (looks_like_nnscaler(*document)) return read_nnscaler(*document, path);
  if (document->contains("mem_per_GPU_in_GB") || document->contains("peak_fp16_TFLOPS"))
    return read_gpu_specs(*document, path);
  if (document->contains("format")) {
    const auto& format = (*document)["format"];
    Error error = bad_input(
        format.is_string() ? fmt::format("is a '{}', not a measured log", shown(format.get_ref<const std::string&>()))
                           : std::string("is no measured log"),
        path);
    return error;
  }
  return unknown_kind(path);
}

/// The first line with something in it.
std::string_view first_line(std::string_view text) {
  LineReader lines(text);
  for (Line line; lines.next(line);)
    if (!trimmed(line.text).empty()) return trimmed(line.text);
  return {};
}

bool all_numbers(const std::vector<std::string_view>& cells) {
  return cells.size() > 1 &&
         std::all_of(cells.begin(), cells.end(), [](std::string_view cell) { return bool(number(cell)); });
}

/// Tables by their heading; nullopt: no heading that is known.
std::optional<Expected<MeasuredLog>> read_table(LineReader& lines, std::string_view first, const std::string& path) {
  const auto cells = csv_cells(first);
  const auto has = [&](std::string_view column) {
    return std::find(cells.begin(), cells.end(), column) != cells.end();
  };
  if (has("op_name") && has("forward-compute")) return read_aceso_operators(lines, path);
  if (has("data_size(MB)") && has("time(ms)")) return read_aceso_collectives(lines, path);
  if (has("M") && has("N") && has("K") && has("time_ms")) return read_deepbench(lines, path);
  if (has("nccl_dtype") && has("num_gpus") && has("message_size")) return read_aiconfigurator_nccl(lines, path);
  if (has("gemm_dtype") && has("m") && has("n") && has("k")) return read_aiconfigurator_gemm(lines, path);
  if (first.find("time_stats.") != std::string_view::npos)
    return has("collective") && has("size") ? read_vidur_collectives(lines, path)
                                            : read_vidur_compute(lines, first, path);
  return std::nullopt;
}

/// Logs that are told by one of their lines, wherever it stands.
struct LineKind {
  bool (*tells)(std::string_view line);
  Expected<MeasuredLog> (*read)(LineReader& lines, const std::string& path);
};
constexpr LineKind kLineKinds[] = {{is_nccl_tests_line, read_nccl_tests},       {is_osu_line, read_osu},
                                   {is_intel_mpi_line, read_intel_mpi},         {is_perftest_line, read_perftest},
                                   {is_rocm_topology_line, read_rocm_topology}, {is_nsys_line, read_nsys},
                                   {is_param_line, read_param}};

const LineKind* line_kind(LineReader& lines) {
  for (Line line; lines.next(line);)
    for (const auto& kind : kLineKinds)
      if (kind.tells(line.text)) return &kind;
  return nullptr;
}

Expected<MeasuredLog> read_text_log(std::string_view text, const std::string& path) {
  const std::string_view first = first_line(text);
  if (text[text.find_first_not_of(" \t\r\n")] == '<') return read_nccl_topology(text, path);
  LineReader table(text);
  if (auto read = read_table(table, first, path)) return std::move(*read);
  if (looks_like_smi_topology(text)) return read_smi_topology(text, path);
  if (text.substr(0, 65536).find("nvbandwidth") != std::string_view::npos) return read_nvbandwidth(text, path);
  LineReader lines(text), again(text);
  if (const LineKind* kind = line_kind(lines)) return kind->read(again, path);
  if (all_numbers(csv_cells(first)) && file_name(path).find("p2p") != std::string::npos)
    return read_aceso_p2p(text, path);
  return unknown_kind(path);
}

/// A file of which `start` is only the beginning: kinds that are read line by line.
Expected<MeasuredLog> read_long_log(const std::string& start, const std::string& path) {
  auto table = open_bytes(path);
  if (!table) return table.error();
  if (looks_like_kineto(start)) return read_kineto(**table, path);
  LineReader rows(std::move(*table));
  if (auto read = read_table(rows, first_line(start), path)) return std::move(*read);
  auto sought = open_bytes(path), found = open_bytes(path);
  if (!sought || !found) return (sought ? found : sought).error();
  LineReader lines(std::move(*sought)), again(std::move(*found));
  if (const LineKind* kind = line_kind(lines)) return kind->read(again, path);
  if (const auto error = lines.error()) return *error;
  Error error = unknown_kind(path);
  error.what += fmt::format("; it is larger than {} MiB, which only logs of lines may be", kMaximumText >> 20);
  return error;
}

}  // namespace

const char* to_string(LogKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
const char* to_string(Figure figure) { return kFigureNames[static_cast<std::size_t>(figure)]; }

Expected<MeasuredLog> parse_measured_log(std::string_view text, const std::string& path) {
  if (text.size() > kMaximumText) return bad_input(fmt::format("larger than {} MiB", kMaximumText >> 20), path);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    Error error = bad_input("is UTF-16 text", path);
    error.hint = "save it as UTF-8";
    return error;
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (const auto bad = first_bad_byte(text); bad != std::string_view::npos)
    return bad_input("is not UTF-8 text",
                     fmt::format("{}: line {}", path,
                                 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n')));
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return bad_input("is empty", path);
  // "[1,0]<stdout>:" or a time in brackets before every line is a launcher's, not JSON.
  const std::string_view first = first_line(text);
  // So is "[Rank 0]": a list of JSON goes on with a value.
  const auto next = text.find_first_not_of(" \t\r\n", begin + 1);
  const bool value = next == std::string_view::npos || std::string_view("{[]\"-0123456789tfn").find(text[next]) != std::string_view::npos;
  const bool list = text[begin] == '[' && value && without_prefixes(first).size() == first.size();
  if (text[begin] == '{' || list) return read_json_log(text, path);
  if (text.find('\x1b') == std::string_view::npos) return read_text_log(text, path);
  return read_text_log(without_colours(text), path);
}

Expected<FileStart> read_start(const std::string& path) {
  auto source = open_bytes(path);
  if (!source) return source.error();
  FileStart start;
  for (std::string_view piece; start.whole && !(piece = (*source)->next()).empty();) {
    start.text += piece;
    start.whole = start.text.size() <= kMaximumText;
  }
  if ((*source)->error()) return *(*source)->error();
  return start;
}

Expected<MeasuredLog> read_measured_log(const std::string& path, const FileStart& start) {
  return start.whole ? parse_measured_log(start.text, path) : read_long_log(start.text, path);
}

Expected<MeasuredLog> read_measured_log(const std::string& path) {
  const auto start = read_start(path);
  if (!start) return start.error();
  return read_measured_log(path, *start);
}

}  // namespace turnpoint
