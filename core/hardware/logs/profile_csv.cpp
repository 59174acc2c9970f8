// SPDX-License-Identifier: Apache-2.0
// Tables of measured collectives and operators: Vidur's profiles, DeepBench's matrix products.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/hardware/logs/csv_tables.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

constexpr std::string_view kStats = "time_stats.";
constexpr int kMaximumWorkers = 65536;

std::optional<Collective> vidur_collective(std::string_view name) {
  if (name == "send_recv") return Collective::send;
  return parse_collective(name);
}

}  // namespace

/// time_stats.<collective>.{min,max,mean,median,std} in ms, size in bytes of the buffer each rank passes in
/// (all-gather: its own part; reduce-scatter: its own result). One row a size and shape; sizes that occur twice are
/// merged.
Expected<MeasuredLog> read_vidur_collectives(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::vidur_collectives, path);
  read_csv(out, lines, [&](CsvRow& row) {
    const std::string_view name = row.text("collective");
    const auto kind = vidur_collective(name);
    if (!kind) return out.warn(row.line(), fmt::format("broken row: unknown collective '{}'", shown(name)));
    const std::string stem = std::string(kStats) + std::string(name);
    const int workers = static_cast<int>(row.integer("num_workers", 1, kMaximumWorkers));
    const int per_node = static_cast<int>(row.integer("devices_per_node", 1, kMaximumWorkers));
    const double size = row.number("size");
    const double median = row.number(stem + ".median");
    RepeatSpread spread;
    spread.min_s = 1e-3 * row.number(stem + ".min");
    spread.max_s = 1e-3 * row.number(stem + ".max");
    if (!row.good()) return;
    if (workers % per_node != 0)
      return out.warn(row.line(),
                      fmt::format("broken row: {} devices are no multiple of {} a node", workers, per_node));
    if (median * 1e-3 < spread.min_s || median * 1e-3 > spread.max_s)
      return out.warn(row.line(), "broken row: the median lies outside minimum and maximum");
    const DeviceGroup group{workers, workers / per_node, per_node, 1};
    const bool parts =
        *kind == Collective::all_gather || *kind == Collective::reduce_scatter || *kind == Collective::all_to_all;
    if (!out.time(row.line(), *kind, group, size * (parts ? workers : 1), median * 1e-3, spread, {}, 3)) return;
    out.log().nodes = std::max(out.log().nodes, group.nodes);
    int most = per_node;
    if (row.has("max_devices_per_node"))
      most = static_cast<int>(row.integer("max_devices_per_node", 1, kMaximumWorkers));
    out.log().devices_per_node = std::max(out.log().devices_per_node, most);
  });
  return out.finish();
}

/// Operators of one transformer layer, forward, 16 bit: time_stats.<operator>.* in ms by number of tokens and degree of
/// tensor parallelism.
Expected<MeasuredLog> read_vidur_compute(LineReader& lines, std::string_view heading, const std::string& path) {
  LogBuilder out(LogKind::vidur_compute, path);
  const std::string name = file_name(path);
  const std::string model = name.substr(0, name.rfind('.'));
  std::vector<std::string> operators;
  for (const auto cell : csv_cells(heading)) {
    constexpr std::string_view kEnd = ".median";
    if (cell.starts_with(kStats) && cell.ends_with(kEnd) && cell.size() > kStats.size() + kEnd.size())
      operators.emplace_back(cell.substr(kStats.size(), cell.size() - kStats.size() - kEnd.size()));
  }
  read_csv(out, lines, [&](CsvRow& row) {
    MeasuredOperator base;
    base.model = model;
    base.precision = Precision::bf16;
    base.line = row.line();
    base.tensor_parallel = static_cast<int>(row.integer("num_tensor_parallel_workers", 1, kMaximumWorkers));
    for (const char* dim : {"num_tokens", "n_head", "n_kv_head", "n_embd", "n_expanded_embd", "vocab_size"})
      if (row.has(dim)) base.dims.emplace_back(dim, row.integer(dim, 0, 1'000'000'000));
    if (!row.good()) return;
    for (const auto& kind : operators) {
      const std::string stem = std::string(kStats) + kind;
      if (row.text(stem + ".median").empty()) continue;  // not run at this degree
      MeasuredOperator sample = base;
      sample.kind = kind;
      sample.time_s = 1e-3 * row.number(stem + ".median");
      sample.spread.min_s = 1e-3 * row.number(stem + ".min");
      sample.spread.max_s = 1e-3 * row.number(stem + ".max");
      if (!row.good()) return;
      out.op(std::move(sample));
    }
  });
  return out.finish();
}

/// M,N,K,a_t,b_t,time_ms,tflops of dense products, fp32 unless the name says half. Column-major: C (M x N) = A (M x K)
/// B (K x N).
Expected<MeasuredLog> read_deepbench(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::deepbench_gemm, path);
  const std::string name = lower(file_name(path));
  const bool half = name.find("fp16") != std::string::npos || name.find("half") != std::string::npos;
  if (!half && name.find("fp32") == std::string::npos) out.note(0, "the precision is not named: fp32 assumed");
  read_csv(out, lines, [&](CsvRow& row) {
    MeasuredOperator sample;
    sample.kind = "gemm";
    sample.line = row.line();
    sample.precision = half ? Precision::bf16 : Precision::fp32;
    for (const char* dim : {"M", "N", "K"}) sample.dims.emplace_back(dim, row.integer(dim, 1, 1'000'000'000));
    for (const char* flag : {"a_t", "b_t"}) {
      const std::string_view value = row.text(flag);
      if (value != "N" && value != "T")
        return out.warn(row.line(), fmt::format("broken row: {} is neither N nor T", flag));
      sample.dims.emplace_back(flag, value == "T");
    }
    sample.time_s = 1e-3 * row.number("time_ms");
    if (!row.good()) return;
    if (row.has("tflops") && sample.time_s > 0) {
      const double flop = 2.0 * static_cast<double>(sample.dims[0].second) *
                          static_cast<double>(sample.dims[1].second) * static_cast<double>(sample.dims[2].second);
      const double told = 1e12 * row.number("tflops");
      if (row.good() && told > 0 && std::abs(flop / sample.time_s / told - 1) > 0.02)
        out.warn(row.line(),
                 fmt::format("time says {:.2f} TFLOP/s, the column {:.2f}", flop / sample.time_s / 1e12, told / 1e12));
    }
    out.op(std::move(sample));
  });
  return out.finish();
}

}  // namespace turnpoint::logs
