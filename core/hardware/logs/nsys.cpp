// SPDX-License-Identifier: Apache-2.0
// `nsys stats --report cuda_gpu_kern_sum --format csv`: time of kernels by name, in nanoseconds. A summary names
// neither sizes nor groups, so it tells where time went, and no size is costed from it.
#include <fmt/format.h>

#include "core/hardware/logs/csv_tables.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

bool is_nsys_line(std::string_view line) {
  return line.starts_with("Time (%),Total Time (ns),Instances,") && line.find(",Name") != std::string_view::npos;
}

Expected<MeasuredLog> read_nsys(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::nsys, path);
  std::vector<std::string> heading;
  std::size_t exchanges = 0;
  for (Line line; lines.next(line);) {
    if (is_nsys_line(trimmed(line.text))) {
      heading.clear();
      for (const auto cell : csv_cells(trimmed(line.text))) heading.emplace_back(cell);
      continue;
    }
    if (heading.empty() || trimmed(line.text).empty()) continue;
    // Names are the last column and hold commas.
    auto cells = csv_cells(line.text);
    if (cells.size() < heading.size()) {
      out.warn(line.number, fmt::format("broken row: {} cells under {} columns", cells.size(), heading.size()));
      continue;
    }
    const std::string_view first_of_name = cells[heading.size() - 1];
    std::string_view name =
        trimmed(line.text).substr(static_cast<std::size_t>(first_of_name.data() - trimmed(line.text).data()));
    while (!name.empty() && name.back() == '"') name.remove_suffix(1);
    while (!name.empty() && name.front() == '"') name.remove_prefix(1);
    cells.resize(heading.size());
    CsvRow row(out, line.number, heading, std::move(cells));
    MeasuredOperator sample;
    sample.kind = std::string(name.substr(0, 200));
    sample.line = line.number;
    sample.time_s = 1e-9 * row.number(row.has("Med (ns)") ? "Med (ns)" : "Avg (ns)");
    sample.spread.min_s = 1e-9 * row.number("Min (ns)");
    sample.spread.max_s = 1e-9 * row.number("Max (ns)");
    if (!row.good()) continue;
    exchanges += name.starts_with("nccl");
    out.op(std::move(sample));
  }
  if (const auto error = lines.error()) return *error;
  out.note(0, "a summary by kernel: it names no sizes, so nothing is costed from it; a PyTorch profiler trace does");
  if (exchanges > 0) out.note(0, fmt::format("{} kernels of NCCL: neither bytes nor devices are named", exchanges));
  return out.finish();
}

}  // namespace turnpoint::logs
