// SPDX-License-Identifier: Apache-2.0
// The table printed by nccl-tests and rccl-tests. Columns are counted from the right, since `redop` and `root` may be
// empty or absent; sizes are the whole buffer: for all-gather and reduce-scatter all ranks' parts together, for
// all-to-all what one rank sends (nccl-tests, doc/PERFORMANCE.md and src/*.cu).
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/base/text.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/nccl_shared.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

constexpr int kMostRanks = 65536;
constexpr std::size_t kLeastLead = 2, kMostLead = 5;  // size count [type] [redop] [root]

/// Where the time, algbw and busbw of out-of-place and in-place runs stand, counted from the first "time" column.
struct Columns {
  std::size_t count = 8;
  std::size_t out_of_place = 0, in_place = 4;
  bool has_in_place = true, known = false;
  std::vector<std::size_t> least, most;  ///< of single iterations (-I 1), out-of-place first
};

bool is_header(const std::vector<std::string_view>& cells) {
  const auto has = [&](std::string_view name) { return std::find(cells.begin(), cells.end(), name) != cells.end(); };
  return has("size") && has("time") && has("busbw");
}

bool is_type(std::string_view word) {
  constexpr std::string_view kTypes[] = {"float",  "half",   "double", "bfloat16", "int8",     "uint8",
                                         "int32",  "uint32", "int64",  "uint64",   "fp8_e4m3", "fp8_e5m2",
                                         "f8e4m3", "f8e5m2", "char",   "int"};
  return std::find(std::begin(kTypes), std::end(kTypes), word) != std::end(kTypes);
}

bool is_row(const std::vector<std::string_view>& cells) {
  return cells.size() >= 2 && all_digits(cells[0]) && all_digits(cells[1]);
}

/// "Rank  0 Group  0 Pid 100 on node1 device 0 [0000:04:00] NVIDIA H100".
bool is_rank(const std::vector<std::string_view>& cells) {
  return cells.size() > 5 && cells[0] == "Rank" && all_digits(cells[1]) &&
         std::find(cells.begin(), cells.end(), "device") != cells.end();
}

/// Lines of the heading, whether their '#' was copied from the terminal or not.
bool is_heading(const std::vector<std::string_view>& cells) {
  return is_header(cells) || is_rank(cells) || (!cells.empty() && cells[0] == "nThread");
}

class Reader {
 public:
  explicit Reader(const std::string& path) : out_(LogKind::nccl_tests, path) {}

  Expected<MeasuredLog> read(LineReader& lines) {
    for (Line line; lines.next(line);) {
      if (!line.left_out.empty()) {
        out_.warn(line.number, line.left_out + ": left out");
        continue;
      }
      const std::string_view content = without_prefixes(line.text);
      if (content.empty()) continue;
      if (content.front() == '#')
        comment(content.substr(1), line.number);
      else if (const auto cells = words(content); is_row(cells))
        row(cells, line.number);
      else if (is_heading(cells))
        comment(content, line.number);
      else
        other(content, cells, line.number);
    }
    if (const auto error = lines.error()) return *error;
    close_section();
    return out_.finish();
  }

 private:
  void comment(std::string_view text, int line) {
    const auto cells = words(text);
    if (cells.empty()) return;
    if (is_header(cells)) {
      if (!section_.rows.empty()) close_section();
      header(cells);
    } else if (cells[0] == "nThread" || (cells[0] == "Using" && cells.size() > 1 && cells[1] == "devices")) {
      if (!section_.rows.empty()) close_section();
      for (std::size_t i = 0; i + 1 < cells.size(); ++i)
        if (cells[i] == "nGpus") section_.gpus_per_process = static_cast<int>(parse_int(cells[i + 1]).value_or(0));
    } else if (cells[0] == "Rank") {
      rank(text, cells);
    } else if (cells[0] == "Collective" && text.find("starting:") != std::string_view::npos) {
      if (!section_.rows.empty()) close_section();
      section_.program = std::string(cells.back());
    } else if (cells[0] == "Out" && text.find("bounds") != std::string_view::npos) {
      const auto colon = text.find(':');
      const auto wrong = colon == std::string_view::npos ? words("") : words(text.substr(colon + 1));
      if (!wrong.empty() && wrong[0] != "0")
        out_.warn(line, fmt::format("{} values out of bounds: the run was wrong", shown(wrong[0])));
    } else {
      for (const auto cell : cells)
        if (const double unit = unit_of(cell); unit > 0 && section_.unit_s == 0) section_.unit_s = unit;
    }
  }

  static double unit_of(std::string_view cell) {
    return cell == "(us)" ? 1e-6 : cell == "(ms)" ? 1e-3 : cell == "(s)" ? 1 : cell == "(ns)" ? 1e-9 : 0;
  }

  void header(const std::vector<std::string_view>& cells) {
    const auto first = std::find(cells.begin(), cells.end(), "time");
    columns_ = {};
    columns_.known = true;
    columns_.count = static_cast<std::size_t>(cells.end() - first);
    const auto second = std::find(first + 1, cells.end(), "time");
    columns_.has_in_place = second != cells.end();
    columns_.in_place = static_cast<std::size_t>(second - first);
    for (auto cell = first; cell != cells.end(); ++cell)
      if (*cell == "i_min" || *cell == "i_max")
        (*cell == "i_min" ? columns_.least : columns_.most).push_back(static_cast<std::size_t>(cell - first));
    section_.has_redop = std::find(cells.begin(), first, "redop") != first;
  }

  void rank(std::string_view text, const std::vector<std::string_view>& cells) {
    ++section_.ranks;
    if (const auto index = cells.size() > 1 ? parse_int(cells[1]) : std::nullopt; index && *index < kMostRanks)
      section_.highest_rank = std::max(section_.highest_rank, static_cast<int>(*index));
    const auto on = std::find(cells.begin(), cells.end(), "on"), device = std::find(on, cells.end(), "device");
    if (cells.end() - on > 1 && section_.ranks <= kMostRanks) {
      std::string which;  // number and bus
      for (auto cell = device; cell != cells.end() && cell - device < 3; ++cell) which += " " + std::string(*cell);
      add_rank(section_, std::string(on[1]), which);
    }
    const auto bracket = text.rfind(']');
    if (bracket != std::string_view::npos && out_.log().device_name.empty())
      out_.log().device_name = std::string(trimmed(text.substr(bracket + 1)).substr(0, 80));
  }

  void row(const std::vector<std::string_view>& cells, int line) {
    if (!columns_.known && section_.rows.empty())
      out_.warn(line, "rows without a header: the usual columns are assumed");
    const std::size_t least = kLeastLead + columns_.count, most = kMostLead + columns_.count;
    if (cells.size() < least || cells.size() > most)
      return out_.warn(line, fmt::format("broken row: {} columns instead of {} to {}", cells.size(), least, most));
    const auto size = number(cells[0], 0, 1e18);
    if (!size) return out_.warn(line, "broken row: size " + size.problem);
    if (size.value == 0) return void(++section_.empty_sizes);
    const auto tail = cells.end() - static_cast<std::ptrdiff_t>(columns_.count);
    NcclRow result{line, size.value, {}, {}};
    if (!times(tail, columns_.out_of_place, line, result.out_of_place)) return;
    if (columns_.has_in_place && !times(tail, columns_.in_place, line, result.in_place)) return;
    section_.rows.push_back(result);
  }

  bool times(std::vector<std::string_view>::const_iterator tail, std::size_t at, int line, NcclTimes& times) {
    if (at > 0 && tail[static_cast<std::ptrdiff_t>(at)] == "N/A") return true;  // not run in place
    double* const targets[] = {&times.time, &times.algbw, &times.busbw};
    for (std::size_t i = 0; i < 3 && at + i < columns_.count; ++i) {
      const auto value = number(tail[static_cast<std::ptrdiff_t>(at + i)], 0, 1e15);
      if (!value) {
        out_.warn(line, "broken row: " + value.problem);
        return false;
      }
      *targets[i] = value.value;
    }
    const std::size_t run = at == columns_.out_of_place ? 0 : 1;
    for (const auto& [where, target] :
         {std::pair(&columns_.least, &times.spread.min_s), std::pair(&columns_.most, &times.spread.max_s)})
      if (run < where->size()) *target = number(tail[static_cast<std::ptrdiff_t>((*where)[run])], 0, 1e15).value;
    if (times.time == 0) {
      out_.warn(line, "broken row: a time of 0");
      return false;
    }
    if (at + 3 < columns_.count) {
      const auto wrong = parse_double(tail[static_cast<std::ptrdiff_t>(at + 3)]);
      // Older versions print the largest error there, a small fraction.
      if (wrong && *wrong >= 1) out_.warn(line, fmt::format("{:g} wrong values: the result was not right", *wrong));
    }
    return true;
  }

  /// Library messages and command lines; what begins like a row but is none is a torn row.
  void other(std::string_view content, const std::vector<std::string_view>& cells, int line) {
    const auto program = content.find("_perf");
    if (program != std::string_view::npos && content.find("NCCL INFO") == std::string_view::npos) {
      auto begin = content.find_last_of("/ \t", program);
      begin = begin == std::string_view::npos ? 0 : begin + 1;
      if (section_.rows.empty()) section_.program = std::string(content.substr(begin, program + 5 - begin));
    }
    if (columns_.known && all_digits(cells[0])) out_.warn(line, fmt::format("broken row: '{}'", shown(content)));
  }

  void close_section() {
    if (!section_.rows.empty() || section_.empty_sizes > 0) add_nccl_section(out_, section_);
    section_ = {};
  }

  LogBuilder out_;
  Columns columns_;
  NcclSection section_;
};

}  // namespace

bool is_nccl_tests_line(std::string_view line) {
  std::string_view content = without_prefixes(line);
  const bool comment = content.starts_with("#");
  if (comment) content.remove_prefix(1);
  if (content.size() < 12) return false;
  const auto cells = words(content);
  if (is_header(cells)) return true;
  return !comment && cells.size() > 5 && is_row(cells) && is_type(cells[2]);
}

Expected<MeasuredLog> read_nccl_tests(LineReader& lines, const std::string& path) { return Reader(path).read(lines); }

}  // namespace turnpoint::logs
