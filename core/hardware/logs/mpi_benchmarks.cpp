// SPDX-License-Identifier: Apache-2.0
// OSU micro-benchmarks and Intel MPI Benchmarks. Both print one table a benchmark, "size, microseconds"; OSU names the
// benchmark in its title and never the ranks, Intel's names both above each table. Sizes: all-reduce, reduce-scatter
// and broadcast the whole buffer; all-gather what one rank gives; all-to-all the block for one other rank.
#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"
#include "core/hardware/logs/run_shape.h"

namespace turnpoint::logs {

namespace {

/// Bytes of the full logical tensor for one byte of the printed size.
double whole_of_size(Collective kind, int ranks) {
  if (kind == Collective::all_gather) return ranks;
  if (kind == Collective::all_to_all) return static_cast<double>(ranks) * ranks;
  return 1;
}

/// Columns of a table of times: of the size, of the mean, the least and the most; of a bandwidth where it has no time.
struct TimeColumns {
  std::size_t time = 0, least = 0, most = 0, bandwidth = 0;  ///< 0: there is none
  bool any() const { return time > 0 || bandwidth > 0; }
};

class MpiReader {
 public:
  MpiReader(LogKind kind, const std::string& path) : out_(kind, path) {}

  Expected<MeasuredLog> read(LineReader& lines) {
    for (Line line; lines.next(line);) {
      if (!line.left_out.empty()) {
        out_.warn(line.number, line.left_out + ": left out");
        continue;
      }
      const std::string_view content = without_prefixes(line.text);
      if (content.empty()) continue;
      if (content.front() == '#')
        heading(trimmed(content.substr(1)), line.number);
      else if (columns_.any() && row(words(content), line.number))
        continue;
      else
        add_command_line(shape_, content);
    }
    if (const auto error = lines.error()) return *error;
    close();
    return out_.finish();
  }

 private:
  void heading(std::string_view text, int line) {
    const auto cells = words(text);
    if (cells.empty()) return;
    if (cells[0] == "OSU") return start(text, line);
    if (cells[0] == "Benchmarking" && cells.size() > 1) return start(cells[1], line);
    if (cells[0] == "#processes" && cells.size() > 2) {
      ranks_ = static_cast<int>(parse_int(cells[2]).value_or(0));
      group_.reset();
    } else if (cells[0] == "Size") {
      osu_columns(text);
    } else if (cells[0] == "#bytes" || cells[0] == "bytes") {
      intel_columns(cells);
    }
  }

  /// "OSU MPI-CUDA Allreduce Latency Test v7.4", "Allreduce".
  void start(std::string_view title, int line) {
    close();
    columns_ = {};
    group_.reset();
    kind_.reset();
    title_ = shown(title);
    const std::string plain = lower(title);
    const bool pair =
        plain.find("latency test") != std::string::npos || plain.find("bandwidth test") != std::string::npos;
    if (plain.find("bi-directional") != std::string::npos || plain.find("multi") != std::string::npos ||
        plain.find("persistent") != std::string::npos)
      return out_.note(line, fmt::format("'{}': several messages at once, left out", title_));
    kind_ = plain.find("barrier") != std::string::npos ? std::nullopt : collective_of_title(plain);
    if (!kind_ && (plain.starts_with("pingpong") || (pair && plain.find("osu") == 0 && words(plain).size() <= 5)))
      kind_ = Collective::send;
    if (!kind_) out_.note(line, fmt::format("'{}' measures nothing that a profile has a place for: left out", title_));
    const bool device = plain.find("cuda") != std::string::npos || plain.find("rocm") != std::string::npos ||
                        plain.find("nccl") != std::string::npos || plain.find("rccl") != std::string::npos;
    if (kind_ && !device && !host_said_ && out_.log().kind == LogKind::osu) {
      out_.warn(line, "the buffers were in the memory of hosts (the title names no CUDA or ROCm)");
      host_said_ = true;
    }
  }

  void close() {
    if (best_ > 0 && kind_ && group_ && *group_)
      out_.figure(best_line_, Figure::bus_bandwidth, best_, title_, *kind_, **group_);
    best_ = 0;
  }

  static std::optional<Collective> collective_of_title(const std::string& plain) {
    if (plain.find("bcast") != std::string::npos) return Collective::broadcast;
    for (const char* other : {"allgatherv", "alltoallv", "alltoallw", "reduce_local", "reduce_scatter_block"})
      if (plain.find(other) != std::string::npos) return std::nullopt;
    return collective_in_name(plain);
  }

  /// "Size   Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations", "Size   Bandwidth (MB/s)".
  void osu_columns(std::string_view text) {
    columns_ = {};
    const auto has = [&](std::string_view name) { return text.find(name) != std::string_view::npos; };
    if (has("Bandwidth (MB/s)")) columns_.bandwidth = 1;
    if (has("Latency")) columns_.time = 1;
    if (has("Min Lat")) columns_.least = 2;
    if (has("Max Lat")) columns_.most = 3;
  }

  void intel_columns(const std::vector<std::string_view>& cells) {
    columns_ = {};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] == "t[usec]" || cells[i] == "t_avg[usec]") columns_.time = i;
      if (cells[i] == "t_min[usec]") columns_.least = i;
      if (cells[i] == "t_max[usec]") columns_.most = i;
    }
  }

  bool row(const std::vector<std::string_view>& cells, int line) {
    if (!all_digits(cells[0])) return false;
    if (!kind_) return true;
    const std::size_t value_at = std::max(columns_.time, columns_.bandwidth);
    const auto cell = [&](std::size_t at) {
      return at > 0 && at < cells.size() ? logs::number(cells[at], 0, 1e15) : Number{0, "is missing"};
    };
    const Number size = logs::number(cells[0], 0, 1e15), value = cell(value_at);
    if (!size || !value) {
      out_.warn(line, "broken row: " + (size ? value.problem : size.problem));
      return true;
    }
    if (size.value == 0 || value.value == 0) return true;  // a message of nothing
    if (!group_) group_ = find_group();
    if (!*group_) return true;
    if (columns_.bandwidth > 0) {
      // A window of messages in flight: the best rate is what the link carries.
      if (value.value * 1e6 > best_) {
        best_ = value.value * 1e6;
        best_line_ = line;
      }
      return true;
    }
    out_.time(line, *kind_, **group_, size.value * whole_of_size(*kind_, (*group_)->size), value.value * 1e-6,
              {cell(columns_.least).value * 1e-6, 0, 0, cell(columns_.most).value * 1e-6});
    return true;
  }

  std::optional<DeviceGroup> find_group() {
    if (*kind_ != Collective::send) {
      const auto group = group_of_run(out_, shape_, ranks_);
      if (group) {
        out_.log().nodes = std::max(out_.log().nodes, group->nodes);
        out_.log().devices_per_node = std::max(out_.log().devices_per_node, group->per_node);
      }
      return group;
    }
    const std::string name = lower(file_name(out_.log().path));
    if (name.find("inter") != std::string::npos) return DeviceGroup{2, 2, 1, 1};
    if (name.find("intra") != std::string::npos) return DeviceGroup{2, 1, 2, 1};
    RunShape pair = shape_;
    pair.ranks = 2;
    return group_of_run(out_, pair, 2);
  }

  LogBuilder out_;
  RunShape shape_;
  TimeColumns columns_;
  std::optional<Collective> kind_;
  std::optional<std::optional<DeviceGroup>> group_;  ///< of the table at hand; inner: there is none
  std::string title_;
  int ranks_ = 0;
  bool host_said_ = false;
  double best_ = 0;  ///< bytes/s of a table of bandwidths
  int best_line_ = 0;
};

}  // namespace

bool is_osu_line(std::string_view line) {
  std::string_view text = without_prefixes(line);
  if (!text.starts_with("#")) return false;
  text = trimmed(text.substr(1));
  return text.starts_with("OSU ") && text.find("Test") != std::string_view::npos;
}
bool is_intel_mpi_line(std::string_view line) {
  const std::string_view text = without_prefixes(line);
  return text.starts_with("#") &&
         (text.find("MPI Benchmark") != std::string_view::npos || text.find("# Benchmarking ") == 0);
}
Expected<MeasuredLog> read_osu(LineReader& lines, const std::string& path) {
  return MpiReader(LogKind::osu, path).read(lines);
}
Expected<MeasuredLog> read_intel_mpi(LineReader& lines, const std::string& path) {
  return MpiReader(LogKind::intel_mpi, path).read(lines);
}

}  // namespace turnpoint::logs
