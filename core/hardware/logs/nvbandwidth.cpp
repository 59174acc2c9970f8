// SPDX-License-Identifier: Apache-2.0
// nvbandwidth's matrices, as text (v0.4 to v0.8) and as JSON. What rows and columns are is said in the description
// only: "CPU(row) -> GPU(column) bandwidth (GB/s)".
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

constexpr double kSumTolerance = 0.005;

struct Test {
  std::string name, description;
  int line = 0;
  std::vector<double> cells;  ///< without "N/A"
  double sum = 0;             ///< 0: not given
};

std::optional<Figure> figure_of(std::string_view test) {
  constexpr std::pair<std::string_view, Figure> kTests[] = {
      {"host_to_device_memcpy_ce", Figure::host_to_device},
      {"device_to_host_memcpy_ce", Figure::device_to_host},
      {"device_to_device_memcpy_read_ce", Figure::device_to_device},
      {"device_to_device_memcpy_write_ce", Figure::device_to_device},
      {"device_local_copy", Figure::device_memory},
      {"host_device_latency_sm", Figure::host_latency},
      {"device_to_device_latency_sm", Figure::link_latency}};
  for (const auto& [name, figure] : kTests)
    if (test == name) return figure;
  return std::nullopt;
}

/// The smallest cell counts: what every pair of devices reaches.
void add_test(LogBuilder& out, const Test& test) {
  if (test.cells.empty()) return out.warn(test.line, fmt::format("{}: no number in its matrix", shown(test.name)));
  double total = 0;
  for (const double cell : test.cells) total += cell;
  if (test.sum > 0 && std::abs(total / test.sum - 1) > kSumTolerance)
    out.warn(test.line,
             fmt::format("{}: the matrix adds up to {:.2f}, but SUM says {:.2f}", shown(test.name), total, test.sum));
  const auto figure = figure_of(test.name);
  if (!figure) return;
  const bool latency = *figure == Figure::host_latency || *figure == Figure::link_latency;
  const char* const unit = latency ? "(ns)" : "(GB/s)";
  if (test.description.find(unit) == std::string::npos)
    out.warn(test.line, fmt::format("{}: its unit is not named, {} assumed", shown(test.name), unit));
  const auto [least, most] = std::minmax_element(test.cells.begin(), test.cells.end());
  if (*most > 1.5 * *least)
    out.note(test.line, fmt::format("{}: cells differ from {:.2f} to {:.2f}; the {} counts", shown(test.name), *least,
                                    *most, latency ? "largest" : "smallest"));
  out.figure(test.line, *figure, latency ? *most * 1e-9 : *least * 1e9, test.name);
}

class TextReader {
 public:
  explicit TextReader(const std::string& path) : out_(LogKind::nvbandwidth, path) {}

  Expected<MeasuredLog> read(std::string_view text) {
    LineReader lines(text);
    for (Line line; lines.next(line);) {
      if (!line.left_out.empty()) out_.warn(line.number, line.left_out + ": left out");
      const std::string_view content = without_prefixes(line.text);
      if (content.starts_with("Running "))
        begin(content.substr(8), line.number);
      else if (content.starts_with("Waived"))
        ++waived_;
      else if (content.starts_with("ERROR") || content.starts_with("[ERROR"))
        out_.warn(line.number, shown(content));
      else if (content.starts_with("Device "))
        device(content);
      else if (test_.line > 0)
        inside(content, line.number);
    }
    end();
    if (waived_ > 0) out_.note(0, fmt::format("{} tests were waived", waived_));
    if (devices_ > 0 && widest_ > static_cast<std::size_t>(devices_))
      out_.warn(widest_line_, fmt::format("a matrix has {} columns, but {} device{} listed", widest_, devices_,
                                          devices_ == 1 ? " is" : "s are"));
    return out_.finish();
  }

 private:
  void begin(std::string_view name, int line) {
    end();
    test_ = {std::string(name.substr(0, name.find_first_of(". "))), {}, line, {}, 0};
  }
  void end() {
    if (test_.line > 0) add_test(out_, test_);
    test_ = {};
    columns_ = 0;
  }
  void device(std::string_view content) {
    const auto colon = content.find(": ");
    if (colon == std::string_view::npos) return;
    ++devices_;
    const auto name = content.substr(colon + 2);
    if (out_.log().device_name.empty())
      out_.log().device_name = std::string(trimmed(name.substr(0, name.find('('))).substr(0, 80));
  }
  void inside(std::string_view content, int line) {
    const auto cells = words(content);
    if (cells.empty()) return;
    if (cells[0] == "SUM") {
      const Number sum = cells.size() > 2 ? number(cells[2]) : Number{0, "is missing"};
      if (sum)
        test_.sum = sum.value;
      else
        out_.warn(line, "SUM " + sum.problem);
      return end();
    }
    if (!all_digits(cells[0])) {
      if (test_.description.empty()) test_.description = std::string(content);
      return;
    }
    if (columns_ == 0) {  // the heading: column numbers
      columns_ = cells.size();
      if (columns_ > widest_) {
        widest_ = columns_;
        widest_line_ = line;
      }
      return;
    }
    if (cells.size() != columns_ + 1)
      return out_.warn(line, fmt::format("broken row: {} cells under {} columns", cells.size() - 1, columns_));
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (cells[i] == "N/A") continue;
      const Number value = number(cells[i], 0, 1e9);
      if (value && value.value > 0)
        test_.cells.push_back(value.value);
      else
        out_.warn(line, value ? "a bandwidth of 0" : "cell " + value.problem);
    }
  }

  LogBuilder out_;
  Test test_;
  std::size_t columns_ = 0, widest_ = 0;
  int devices_ = 0, waived_ = 0, widest_line_ = 0;
};

}  // namespace

Expected<MeasuredLog> read_nvbandwidth(std::string_view text, const std::string& path) {
  return TextReader(path).read(text);
}

Expected<MeasuredLog> read_nvbandwidth_json(const nlohmann::json& document, const std::string& path) {
  LogBuilder out(LogKind::nvbandwidth_json, path);
  const auto& root = document["nvbandwidth"];
  if (!root.is_object()) return bad_input("nvbandwidth: must be an object", path);
  if (const auto devices = root.find("GPU Device list");
      devices != root.end() && devices->is_array() && !devices->empty() && (*devices)[0].is_string()) {
    std::string name = (*devices)[0].get<std::string>();  // "0: NVIDIA H100 80GB HBM3 (00000000:01:00)"
    if (const auto colon = name.find(": "); colon != std::string::npos) name.erase(0, colon + 2);
    out.log().device_name = std::string(trimmed(name.substr(0, name.find('('))).substr(0, 80));
  }
  const auto tests = root.find("testcases");
  if (tests == root.end() || !tests->is_array()) return bad_input("nvbandwidth.testcases: must be a list", path);
  int waived = 0;
  for (const auto& item : *tests) {
    if (!item.is_object()) continue;
    const auto text = [&](const char* key) {
      return item.contains(key) && item[key].is_string() ? item[key].get<std::string>() : std::string();
    };
    Test test{text("name"), text("bandwidth_description"), 0, {}, 0};
    if (text("status") == "Waived") ++waived;
    if (text("status") == "Error") out.warn(0, fmt::format("{}: failed", shown(test.name)));
    const auto matrix = item.find("bandwidth_matrix");
    if (matrix == item.end() || !matrix->is_array()) continue;
    for (const auto& row : *matrix) {
      if (!row.is_array()) continue;
      for (const auto& cell : row) {
        const std::string value = cell.is_string()   ? cell.get<std::string>()
                                  : cell.is_number() ? fmt::format("{}", cell.get<double>())
                                                     : "";
        if (value == "N/A") continue;
        const Number parsed = number(value, 0, 1e9);
        if (parsed && parsed.value > 0)
          test.cells.push_back(parsed.value);
        else
          out.warn(0, fmt::format("{}: cell {}", shown(test.name), parsed ? "is 0" : parsed.problem));
      }
    }
    if (item.contains("sum") && item["sum"].is_number()) test.sum = item["sum"].get<double>();
    add_test(out, test);
  }
  if (waived > 0) out.note(0, fmt::format("{} tests were waived", waived));
  return out.finish();
}

}  // namespace turnpoint::logs
