// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/nccl_shared.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

constexpr double kGiga = 1e9;
constexpr double kTrustedBandwidth = 1;  // GB/s; smaller ones are printed with too few digits to compute with
constexpr double kTolerance = 0.03;
constexpr int kUsualNode = 8;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : quantile(values, 0.5);
}

/// busbw / algbw, which tells collective and ranks: 2(n-1)/n all-reduce; (n-1)/n gathers and scatters; 1 others. From
/// the rows with the most digits.
double bandwidth_factor(const NcclSection& section) {
  double best = 0, factor = 0;
  for (const auto& row : section.rows)
    if (row.out_of_place.algbw > best) {
      best = row.out_of_place.algbw;
      factor = row.out_of_place.busbw / row.out_of_place.algbw;
    }
  return best >= kTrustedBandwidth ? factor : 0;
}

struct Kind {
  std::optional<Collective> collective;
  std::string refused;  ///< why there is none
};

Kind kind_of(LogBuilder& out, const NcclSection& section, double factor) {
  if (!section.program.empty()) {
    const auto named = collective_in_name(section.program);
    return {named,
            named ? "" : fmt::format("'{}' measures nothing that a profile has a place for", shown(section.program))};
  }
  const int line = section.rows.empty() ? 0 : section.rows.front().line;
  if (const auto named = collective_in_name(file_name(out.log().path))) return {named, ""};
  if (factor <= 0) return {std::nullopt, "neither the log nor its file name says which collective was run"};
  const bool exact_one = std::abs(factor - 1) < 0.005;
  if (factor > 1.005) return {Collective::all_reduce, ""};
  if (section.has_redop) {
    if (exact_one) return {std::nullopt, "the log does not say whether it is an all-reduce of two ranks or a reduce"};
    out.warn(line, "the collective is not named; its bandwidths say reduce-scatter");
    return {Collective::reduce_scatter, ""};
  }
  out.warn(line, fmt::format("the collective is not named; {} assumed", exact_one ? "broadcast" : "all-gather"));
  return {exact_one ? Collective::broadcast : Collective::all_gather, ""};
}

/// How many ranks the ratio of the two bandwidth columns allows, both printed with two decimals; only rings tell.
struct Told {
  double least = 0, most = 0;
  bool any() const { return most > 0; }
  bool allows(int ranks) const { return any() && ranks >= least && ranks <= most; }
  /// The one number of ranks that is allowed; 0: several are.
  int one() const { return any() && std::ceil(least) == std::floor(most) ? static_cast<int>(std::floor(most)) : 0; }
};
Told told_of(const NcclSection& section, Collective kind) {
  if (kind == Collective::broadcast || kind == Collective::send) return {};
  const NcclTimes* best = nullptr;
  for (const auto& row : section.rows)
    if (!best || row.out_of_place.algbw > best->algbw) best = &row.out_of_place;
  if (!best || best->algbw < kTrustedBandwidth) return {};
  const double both = kind == Collective::all_reduce ? 2 : 1, digit = 0.006;
  const double least = (best->busbw - digit) / (best->algbw + digit) / both;  // (n-1)/n
  const double most = (best->busbw + digit) / (best->algbw - digit) / both;
  if (least < 0.3 || least >= 1) return {};
  return {1 / (1 - least), most < 1 ? 1 / (1 - most) : 1e9};
}

/// Who took part, as list, host names and bandwidths say together; 0 nodes: `refused` says why there is no such group.
struct Whole {
  int ranks = 0, nodes = 0;
  std::string refused;
};

int unlisted_ranks(LogBuilder& out, const NcclSection& section, const Told& told) {
  const int line = section.rows.front().line;
  if (const int one = told.one(); one > 1) {
    out.note(line, fmt::format("the log lists no ranks; its bandwidths say {}", one));
    return one;
  }
  if (told.any() && told.most - told.least < 0.25 * told.least) {
    const int about = static_cast<int>(std::lround((told.least + told.most) / 2));
    out.warn(line, fmt::format("the log lists no ranks; its bandwidths say about {}", about));
    return about;
  }
  if (section.gpus_per_process > 1) {
    out.note(line,
             fmt::format("the log lists no ranks; one process with {} devices is assumed", section.gpus_per_process));
    return section.gpus_per_process;
  }
  return 0;
}

int ranks_of(LogBuilder& out, const NcclSection& section, const Told& told) {
  if (section.ranks == 0) return unlisted_ranks(out, section, told);
  const int line = section.rows.front().line, numbered = std::max(section.ranks, section.highest_rank + 1);
  if (!told.any() || told.allows(numbered)) {
    if (numbered != section.ranks)
      out.warn(line, fmt::format("the list shows {} ranks, but numbers them up to {}: {} taken", section.ranks,
                                 numbered - 1, numbered));
    return numbered;
  }
  if (told.allows(section.ranks)) return section.ranks;
  // The program is named, so the collective is sure, and the columns are computed from the true number.
  if (const int one = told.one(); one > 1 && !section.program.empty()) {
    out.warn(line, fmt::format("the log lists {} ranks, but its bandwidth columns say {}: {} taken", section.ranks, one,
                               one));
    return one;
  }
  return numbered;
}

Whole by_hosts(LogBuilder& out, const NcclSection& section, int ranks) {
  const int line = section.rows.front().line;
  int hosts = static_cast<int>(section.hosts.size()), least = ranks, most = 0, shared = 1;
  for (const auto& [device, count] : section.devices) shared = std::max(shared, count);
  for (const auto& [host, count] : section.hosts) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  if (shared > 1) {
    out.warn(line, fmt::format("{} ranks each say that they are on the same device: {} hosts of one name are assumed",
                               shared, hosts * shared));
    hosts *= shared;
    least /= shared;
    most /= shared;
  }
  if (section.ranks < ranks && most > 0 && ranks % most == 0 && ranks / most >= hosts) {
    if (const int nodes = ranks / most; nodes != hosts) {
      out.warn(line, fmt::format("the list names {} host{}, but {} ranks of at most {} a host need {}: {} nodes taken",
                                 hosts, hosts == 1 ? "" : "s", ranks, most, nodes, nodes));
      return {ranks, nodes, {}};
    }
    return {ranks, hosts, {}};
  }
  if (ranks % hosts == 0 && (least == most || section.ranks != ranks)) return {ranks, hosts, {}};
  return {ranks, 0,
          fmt::format("{} ranks on {} hosts of {} to {} devices: a group of unequal nodes has no place in a profile, "
                      "left out",
                      ranks, hosts, least, most)};
}

Whole whole_of(LogBuilder& out, const NcclSection& section, Collective kind) {
  const int ranks = ranks_of(out, section, told_of(section, kind));
  if (ranks < 2)
    return {ranks, 0, ranks == 1 ? "one rank: nothing was communicated" : "the number of ranks is not known"};
  if (!section.hosts.empty()) return by_hosts(out, section, ranks);
  const std::string name = file_name(out.log().path);
  for (const char* word : {"nodes", "node", "hosts"})
    if (const auto count = number_before(name, word); count && ranks % *count == 0) return {ranks, *count, {}};
  if (ranks <= kUsualNode) return {ranks, 1, {}};
  const int nodes = ranks % kUsualNode == 0 ? ranks / kUsualNode : 1;
  out.warn(section.rows.front().line,
           fmt::format("neither the log nor its name says on how many nodes {} ranks ran; {} assumed", ranks, nodes));
  return {ranks, nodes, {}};
}

/// The unit that makes size / time equal to the printed bandwidth; `named` where nothing tells.
double unit_of(LogBuilder& out, const NcclSection& section) {
  std::vector<double> ratios;  // true seconds per printed time
  for (const auto& row : section.rows)
    if (row.out_of_place.algbw >= kTrustedBandwidth && row.out_of_place.time > 0)
      ratios.push_back(row.size / (row.out_of_place.algbw * kGiga) / row.out_of_place.time);
  const int line = section.rows.front().line;
  const double named = section.unit_s > 0 ? section.unit_s : 1e-6;
  if (section.unit_s <= 0)
    out.warn(line, "no unit of time is named: microseconds assumed where the bandwidths do not say else");
  if (ratios.empty()) return named;
  const double told = median(std::move(ratios));
  for (const double unit : {1e-6, 1e-3, 1.0, 1e-9}) {
    if (std::abs(told / unit - 1) > kTolerance) continue;
    if (section.unit_s > 0 && unit != section.unit_s)
      out.warn(line, fmt::format("times are said to be in units of {:g} s, but sizes and bandwidths say {:g} s",
                                 section.unit_s, unit));
    return unit;
  }
  out.warn(line, "sizes, times and bandwidths contradict one another throughout; the times are taken");
  return named;
}

}  // namespace

void add_rank(NcclSection& section, const std::string& host, const std::string& device) {
  ++section.hosts[host];
  ++section.devices[host + device];
}

std::optional<Collective> collective_in_name(std::string_view name) {
  std::string plain;
  for (const char c : lower(name))
    if (std::isalpha(static_cast<unsigned char>(c))) plain += c;
  constexpr std::pair<std::string_view, Collective> kNames[] = {{"allreduce", Collective::all_reduce},
                                                                {"allgather", Collective::all_gather},
                                                                {"reducescatter", Collective::reduce_scatter},
                                                                {"alltoall", Collective::all_to_all},
                                                                {"alltoall", Collective::all_to_all},
                                                                {"broadcast", Collective::broadcast},
                                                                {"sendrecv", Collective::send}};
  for (const auto& [word, kind] : kNames)
    if (plain.find(word) != std::string::npos) return kind;
  return std::nullopt;
}

void add_nccl_section(LogBuilder& out, const NcclSection& section) {
  const int first_line = section.rows.empty() ? 0 : section.rows.front().line;
  if (section.empty_sizes > 0)
    out.note(first_line,
             fmt::format("{} row{} of size 0 left out", section.empty_sizes, section.empty_sizes == 1 ? "" : "s"));
  if (section.rows.empty()) return;
  const double factor = bandwidth_factor(section);
  const Kind kind = kind_of(out, section, factor);
  if (!kind.collective) return out.warn(first_line, kind.refused);
  const Whole all = whole_of(out, section, *kind.collective);
  if (all.nodes == 0) return out.warn(first_line, all.refused);
  const int ranks = all.ranks;
  const double ring = (ranks - 1.0) / ranks * (*kind.collective == Collective::all_reduce ? 2 : 1);
  const bool ringed = *kind.collective != Collective::broadcast && *kind.collective != Collective::send;
  if (factor > 0 && std::abs(factor / (ringed ? ring : 1) - 1) > 0.02)
    out.warn(first_line,
             fmt::format("busbw / algbw is {:.3f}, but {} of {} ranks has {:.3f}: collective or ranks may be wrong",
                         factor, to_string(*kind.collective), ranks, ringed ? ring : 1));
  const DeviceGroup whole = group_over(ranks, all.nodes);
  out.log().nodes = std::max(out.log().nodes, whole.nodes);
  out.log().devices_per_node = std::max(out.log().devices_per_node, whole.per_node);
  DeviceGroup group = whole;
  // sendrecv: every rank sends to the next one; seen from a pair, all pairs at once.
  if (*kind.collective == Collective::send)
    group = {2, whole.nodes > 1 ? 2 : 1, whole.nodes > 1 ? 1 : 2, std::max(1, ranks / 2)};
  const double unit = unit_of(out, section);
  const double bytes_per_size = *kind.collective == Collective::all_to_all ? ranks : 1;
  for (const auto& row : section.rows) {
    const double told = row.out_of_place.algbw * kGiga,
                 found = row.out_of_place.time > 0 ? row.size / (row.out_of_place.time * unit) : 0;
    if (row.out_of_place.algbw >= kTrustedBandwidth && found > 0 && std::abs(found / told - 1) > 0.05) {
      out.warn(row.line, fmt::format("size / time is {:.2f} GB/s, but algbw says {:.2f}: row left out", found / kGiga,
                                     told / kGiga));
      continue;
    }
    for (const auto& [times, variant] : {std::pair(&row.out_of_place, ""), std::pair(&row.in_place, "in-place")}) {
      const RepeatSpread& spread = times->spread;
      if (times->time > 0)
        out.time(row.line, *kind.collective, group, row.size * bytes_per_size, times->time * unit,
                 {spread.min_s * unit, spread.q1_s * unit, spread.q3_s * unit, spread.max_s * unit}, variant);
    }
  }
}

}  // namespace turnpoint::logs
