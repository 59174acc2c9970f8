// SPDX-License-Identifier: Apache-2.0
// perftest's ib_write_bw, ib_read_bw, ib_send_bw and their _lat sisters: one network card between two hosts. "MB/sec"
// counts 2^20 bytes, "Gb/sec" 10^9 bits (perftest's own manual).
#include <fmt/format.h>
#include <algorithm>

#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

class PerftestReader {
 public:
  explicit PerftestReader(const std::string& path) : out_(LogKind::perftest, path) {}

  Expected<MeasuredLog> read(LineReader& lines) {
    for (Line line; lines.next(line);) {
      if (!line.left_out.empty()) {
        out_.warn(line.number, line.left_out + ": left out");
        continue;
      }
      const std::string_view content = without_prefixes(line.text);
      if (content.find("Bidirectional") != std::string_view::npos) both_ways_ = true;
      if (content.starts_with("#bytes"))
        heading(content, line.number);
      else if (const auto cells = words(content); unit_ > 0 && cells.size() >= 4 && all_digits(cells[0]))
        row(cells, line.number);
    }
    if (const auto error = lines.error()) return *error;
    close();
    return out_.finish();
  }

 private:
  void heading(std::string_view text, int line) {
    close();
    latency_ = text.find("t_typical[usec]") != std::string_view::npos;
    const bool bits = text.find("[Gb/sec]") != std::string_view::npos;
    // Cells under "#bytes #iterations BW peak BW average" and "#bytes #iterations t_min t_max t_typical".
    column_ = latency_ ? 4 : 3;
    unit_ = latency_ ? 1e-6 : bits ? 1e9 / 8 : kMiB;
    if (both_ways_ && !latency_) {
      out_.note(line, "both directions at once: left out, since plans need one");
      unit_ = 0;
    }
    both_ways_ = false;
  }

  void row(const std::vector<std::string_view>& cells, int line) {
    const Number value = column_ < cells.size() ? number(cells[column_], 0, 1e12) : Number{0, "is missing"};
    if (!value) return out_.warn(line, "broken row: " + value.problem);
    const double found = value.value * unit_;
    if (found <= 0 || (best_ > 0 && (latency_ ? found >= best_ : found <= best_))) return;
    best_ = found;
    line_ = line;
  }

  void close() {
    if (best_ > 0)
      out_.figure(line_, latency_ ? Figure::card_latency : Figure::network_card, best_,
                  latency_ ? "one way" : "one direction");
    best_ = 0;
  }

  LogBuilder out_;
  bool latency_ = false, both_ways_ = false;
  std::size_t column_ = 0;
  double unit_ = 0, best_ = 0;  ///< best_: of the table at hand
  int line_ = 0;
};

}  // namespace

bool is_perftest_line(std::string_view line) {
  const std::string_view text = without_prefixes(line);
  return text.starts_with("#bytes") && text.find("#iterations") != std::string_view::npos &&
         (text.find("BW average") != std::string_view::npos || text.find("t_typical[usec]") != std::string_view::npos);
}

Expected<MeasuredLog> read_perftest(LineReader& lines, const std::string& path) {
  return PerftestReader(path).read(lines);
}

}  // namespace turnpoint::logs
