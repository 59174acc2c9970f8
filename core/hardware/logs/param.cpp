// SPDX-License-Identifier: Apache-2.0
// PARAM's comms benchmark (facebookresearch/param): rows "COMMS-RES-all_reduce-float32  size  elements  latencies...
// AlgBW BusBW", latencies in microseconds (median first), bandwidths in 10^9 bytes/s. The columns between the size and the
// bandwidths differ from version to version and their heading does not always fit, so the latency is the cell that fits
// the algorithm's bandwidth: size / time. Sizes are whole tensors; of all-to-all those of one rank.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/text.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"
#include "core/hardware/logs/run_shape.h"

namespace turnpoint::logs {

namespace {

constexpr std::string_view kMark = "COMMS-RES-";

class ParamReader {
 public:
  explicit ParamReader(const std::string& path) : out_(LogKind::param, path) {}

  Expected<MeasuredLog> read(LineReader& lines) {
    for (Line line; lines.next(line);) {
      if (!line.left_out.empty()) {
        out_.warn(line.number, line.left_out + ": left out");
        continue;
      }
      const auto mark = line.text.find(kMark);
      if (mark != std::string_view::npos)
        row(words(line.text.substr(mark)), line.number);
      else
        other(line.text);
    }
    if (const auto error = lines.error()) return *error;
    return out_.finish();
  }

 private:
  /// "[Rank   0] allSizes: [...] element_size: 4 local_rank: 0, num_pg 1, groupSize 8", or the launcher's command.
  void other(std::string_view text) {
    constexpr std::string_view kGroup = "groupSize ";
    if (const auto at = text.find(kGroup); at != std::string_view::npos) {
      const auto rest = text.substr(at + kGroup.size());
      ranks_ = static_cast<int>(parse_int(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0));
      group_.reset();
    } else {
      add_command_line(shape_, without_prefixes(text));
    }
  }

  static std::optional<Collective> kind_of(std::string_view name) {
    if (name.find("quant") != std::string_view::npos || name.find("allv") != std::string_view::npos ||
        name.find("_v") != std::string_view::npos)
      return std::nullopt;
    return collective_in_name(name);
  }

  void row(const std::vector<std::string_view>& cells, int line) {
    const std::string name = lower(cells[0].substr(kMark.size()));
    const auto kind = kind_of(name);
    if (!kind) {
      if (said_.insert(name).second)
        out_.note(line, fmt::format("'{}' measures nothing that a profile has a place for: left out", shown(name)));
      return;
    }
    std::vector<double> values;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      const Number value = number(cells[i], 0, 1e15);
      if (!value) return out_.warn(line, "broken row: " + value.problem);
      values.push_back(value.value);
    }
    const auto told = read_row(values);
    if (!told) return out_.warn(line, "broken row: no latency fits the size and the algorithm's bandwidth");
    if (!group_) group_ = group_of_run(out_, shape_, ranks_ > 0 || shape_.ranks > 0 ? ranks_ : ranks_told(*kind, *told));
    if (!*group_) return;
    const DeviceGroup& group = **group_;
    out_.log().nodes = std::max(out_.log().nodes, group.nodes);
    out_.log().devices_per_node = std::max(out_.log().devices_per_node, group.per_node);
    const double ranks = *kind == Collective::all_to_all ? group.size : 1;
    out_.time(line, *kind, group, values[0] * ranks, told->time_s, told->spread);
  }

  struct Told {
    double time_s = 0, ratio = 0;  ///< of the bus bandwidth to the algorithm's
    RepeatSpread spread;
  };
  /// Two bandwidths next to each other of which the first is size / time for one of the cells before.
  static std::optional<Told> read_row(const std::vector<double>& values) {
    const auto fits = [](double a, double b, double rounded) { return std::abs(a - b) <= 0.02 * b + rounded; };
    if (values.size() < 3 || values[0] <= 0) return std::nullopt;
    for (std::size_t bus = values.size() - 1; bus > 2; --bus) {
      const double algorithm = values[bus - 1];
      for (std::size_t at = 1; at + 1 < bus; ++at)
        if (values[at] > 0 && algorithm > 0 && fits(values[0] / values[at] * 1e-3, algorithm, 5e-4) && at > 1) {
          Told told{values[at] * 1e-6, values[bus] / algorithm, {}};
          if (at + 4 < bus) told.spread = {values[at + 3] * 1e-6, 0, 0, values[at + 4] * 1e-6};
          return told;
        }
    }
    // Versions that print bandwidths alone.
    if (values.size() == 3 && values[1] > 0 && values[2] > 0 && values[2] < 2 * values[1])
      return Told{values[0] / values[1] * 1e-9, values[2] / values[1], {}};
    return std::nullopt;
  }

  /// How many ranks the two bandwidths allow: 2 (n - 1) / n for a reduction, (n - 1) / n else; 0: they do not tell.
  static int ranks_told(Collective kind, const Told& told) {
    const double share = kind == Collective::all_reduce ? told.ratio / 2 : told.ratio;
    if (kind == Collective::broadcast || kind == Collective::send || share >= 0.999 || share <= 0.4) return 0;
    const double ranks = 1 / (1 - share);
    return std::abs(ranks - std::round(ranks)) < 0.1 ? static_cast<int>(std::round(ranks)) : 0;
  }

  LogBuilder out_;
  RunShape shape_;
  int ranks_ = 0;
  std::optional<std::optional<DeviceGroup>> group_;  ///< inner: nothing tells it, which was said
  std::set<std::string> said_;
};

}  // namespace

bool is_param_line(std::string_view line) {
  const auto mark = line.find(kMark);
  return mark != std::string_view::npos && words(line.substr(mark)).size() >= 4;
}
Expected<MeasuredLog> read_param(LineReader& lines, const std::string& path) { return ParamReader(path).read(lines); }

}  // namespace turnpoint::logs
