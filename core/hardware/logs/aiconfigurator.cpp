// SPDX-License-Identifier: Apache-2.0
// Tables that aiconfigurator's collectors write (ai-dynamo/aiconfigurator, nccl_perf and gemm_perf, as text; the parquet
// files hold the same columns). Latencies are in milliseconds. Messages are counted in elements of their type, as
// nccl-tests counts them: whole tensors, of all-to-all those of one rank.
#include <fmt/format.h>
#include <set>

#include "core/hardware/logs/csv_tables.h"
#include "core/hardware/logs/readers.h"
#include "core/hardware/logs/run_shape.h"

namespace turnpoint::logs {

namespace {

constexpr std::int64_t kMostGpus = 1 << 20;

double bytes_of_type(std::string_view type) {
  if (type == "half" || type == "bfloat16" || type == "float16") return 2;
  if (type == "int8" || type == "fp8" || type == "uint8") return 1;
  return type == "float" || type == "float32" ? 4 : 0;
}

}  // namespace

Expected<MeasuredLog> read_aiconfigurator_nccl(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::aiconfigurator, path);
  std::map<int, std::optional<DeviceGroup>> groups;
  std::set<std::string> left_out;
  read_csv(out, lines, [&](CsvRow& row) {
    const int ranks = static_cast<int>(row.integer("num_gpus", 2, kMostGpus));
    const double elements = row.number("message_size", 1), time_s = 1e-3 * row.number("latency");
    if (!row.good()) return;
    const double width = bytes_of_type(row.text("nccl_dtype"));
    const auto kind = collective_in_name(row.text("op_name"));
    if (!kind || width == 0) {
      const std::string what = fmt::format("'{}' of {}", shown(row.text("op_name")), shown(row.text("nccl_dtype")));
      if (left_out.insert(what).second) out.note(row.line(), what + " has no place in a profile: left out");
      return;
    }
    if (const auto device = row.text("device"); !device.empty()) out.log().device_name = shown(device);
    auto found = groups.find(ranks);
    if (found == groups.end()) found = groups.emplace(ranks, group_of_run(out, {}, ranks)).first;
    if (!found->second) return;
    out.log().nodes = std::max(out.log().nodes, found->second->nodes);
    out.log().devices_per_node = std::max(out.log().devices_per_node, found->second->per_node);
    const double whole = *kind == Collective::all_to_all ? ranks : 1;
    out.time(row.line(), *kind, *found->second, elements * width * whole, time_s);
  });
  return out.finish();
}

Expected<MeasuredLog> read_aiconfigurator_gemm(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::aiconfigurator, path);
  std::set<std::string> left_out;
  read_csv(out, lines, [&](CsvRow& row) {
    MeasuredOperator sample;
    sample.kind = "gemm";
    sample.line = row.line();
    sample.precision = Precision::bf16;
    // Row by row: m samples, n outputs. Dimensions are those of DeepBench's columns, M outputs and N samples.
    for (const auto& [name, column] : {std::pair("M", "n"), std::pair("N", "m"), std::pair("K", "k")})
      sample.dims.emplace_back(name, row.integer(column, 1, 1'000'000'000));
    for (const char* flag : {"a_t", "b_t"}) sample.dims.emplace_back(flag, 0);
    sample.time_s = 1e-3 * row.number("latency");
    if (!row.good()) return;
    const auto type = row.text("gemm_dtype");
    if (bytes_of_type(type) != 2) {
      if (left_out.insert(std::string(type)).second)
        out.note(row.line(), fmt::format("products in '{}' are not trained in: left out", shown(type)));
      return;
    }
    if (const auto device = row.text("device"); !device.empty()) out.log().device_name = shown(device);
    out.op(std::move(sample));
  });
  return out.finish();
}

}  // namespace turnpoint::logs
