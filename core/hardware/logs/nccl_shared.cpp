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

int ranks_of(LogBuilder& out, const NcclSection& section, Collective kind, double factor) {
  if (section.ranks > 0) return section.ranks;
  const int line = section.rows.front().line;
  const double part = kind == Collective::all_reduce ? factor / 2 : factor;  // (n-1)/n
  const bool tells = kind != Collective::broadcast && kind != Collective::send && part >= 0.45 && part < 0.999;
  if (tells) {
    const int ranks = static_cast<int>(std::lround(1 / (1 - part)));
    out.note(line, fmt::format("the log lists no ranks; its bandwidths say {}", ranks));
    return ranks;
  }
  if (section.gpus_per_process > 1) {
    out.note(line,
             fmt::format("the log lists no ranks; one process with {} devices is assumed", section.gpus_per_process));
    return section.gpus_per_process;
  }
  return 0;
}

int nodes_of(LogBuilder& out, const NcclSection& section, int ranks) {
  if (!section.hosts.empty()) return static_cast<int>(section.hosts.size());
  const std::string name = file_name(out.log().path);
  for (const char* word : {"nodes", "node", "hosts"})
    if (const auto count = number_before(name, word); count && ranks % *count == 0) return *count;
  if (ranks <= kUsualNode) return 1;
  const int nodes = ranks % kUsualNode == 0 ? ranks / kUsualNode : 1;
  out.warn(section.rows.front().line,
           fmt::format("neither the log nor its name says on how many nodes {} ranks ran; {} assumed", ranks, nodes));
  return nodes;
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
  const int ranks = ranks_of(out, section, *kind.collective, factor);
  if (ranks < 2)
    return out.warn(first_line, ranks == 1 ? "one rank: nothing was communicated" : "the number of ranks is not known");
  const double ring = (ranks - 1.0) / ranks * (*kind.collective == Collective::all_reduce ? 2 : 1);
  const bool ringed = *kind.collective != Collective::broadcast && *kind.collective != Collective::send;
  if (factor > 0 && std::abs(factor / (ringed ? ring : 1) - 1) > 0.02)
    out.warn(first_line,
             fmt::format("busbw / algbw is {:.3f}, but {} of {} ranks has {:.3f}: collective or ranks may be wrong",
                         factor, to_string(*kind.collective), ranks, ringed ? ring : 1));
  const int nodes = nodes_of(out, section, ranks);
  const DeviceGroup whole = group_over(ranks, nodes);
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
