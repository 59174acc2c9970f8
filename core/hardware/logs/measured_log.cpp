// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/measured_log.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
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
                                      "device data sheet"};
constexpr const char* kFigureNames[] = {"bus bandwidth",    "host to device", "device to host",    "device to device",
                                        "device memory",    "host latency",   "network of a node", "PCIe wire",
                                        "overlap slowdown", "16-bit peak",    "link in the node",  "link between nodes",
                                        "link latency"};

/// The first byte that no UTF-8 text has, NUL included; npos if there is none.
std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t more = byte < 0x80                   ? 0
                             : byte >= 0xc2 && byte < 0xe0 ? 1
                             : byte >= 0xe0 && byte < 0xf0 ? 2
                             : byte >= 0xf0 && byte < 0xf5 ? 3
                                                           : 9;
    if (byte == 0 || more == 9 || i + more >= text.size()) return i;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    i += more + 1;
  }
  return std::string_view::npos;
}

/// Without "ESC [ 4 m" and its like: nvidia-smi underlines its heading even into files.
std::string without_colours(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') {
      std::size_t end = i + 2;
      while (end < text.size() && end < i + 16 && (text[end] < '@' || text[end] > '~')) ++end;
      i = end;
    }
  }
  return plain;
}

Error unknown_kind(const std::string& path) {
  Error error = bad_input("is no hardware profile and no log of a kind that is read", path);
  error.hint =
      "nccl-tests, nvbandwidth, nvidia-smi topo -m, NCCL topology XML, Galvatron, nnScaler, Vidur, DeepBench and Aceso "
      "files are";
  return error;
}

Expected<MeasuredLog> read_json_log(std::string_view text, const std::string& path) {
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

Expected<MeasuredLog> read_text_log(std::string_view text, const std::string& path) {
  const std::string_view first = first_line(text);
  const auto cells = csv_cells(first);
  const auto has = [&](std::string_view column) {
    return std::find(cells.begin(), cells.end(), column) != cells.end();
  };
  if (text[text.find_first_not_of(" \t\r\n")] == '<') return read_nccl_topology(text, path);
  if (has("op_name") && has("forward-compute")) return read_aceso_operators(text, path);
  if (has("data_size(MB)") && has("time(ms)")) return read_aceso_collectives(text, path);
  if (has("M") && has("N") && has("K") && has("time_ms")) return read_deepbench(text, path);
  if (first.find("time_stats.") != std::string_view::npos)
    return has("collective") && has("size") ? read_vidur_collectives(text, path) : read_vidur_compute(text, path);
  if (looks_like_smi_topology(text)) return read_smi_topology(text, path);
  if (text.substr(0, 65536).find("nvbandwidth") != std::string_view::npos) return read_nvbandwidth(text, path);
  if (looks_like_nccl_tests(text)) return read_nccl_tests(text, path);
  if (all_numbers(cells) && file_name(path).find("p2p") != std::string::npos) return read_aceso_p2p(text, path);
  return unknown_kind(path);
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
  // "[1,0]<stdout>:" before every line is a launcher's, not JSON.
  const bool list = text[begin] == '[' && !looks_like_nccl_tests(text);
  if (text[begin] == '{' || list) return read_json_log(text, path);
  if (text.find('\x1b') == std::string_view::npos) return read_text_log(text, path);
  return read_text_log(without_colours(text), path);
}

Expected<MeasuredLog> read_measured_log(const std::string& path) {
  const auto text = read_file(path, kMaximumText);
  if (!text) return text.error();
  return parse_measured_log(*text, path);
}

}  // namespace turnpoint
