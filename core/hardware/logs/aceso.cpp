// SPDX-License-Identifier: Apache-2.0
// Aceso's profiles (SuperScaler, profiled-time-eurosys): operators by model, micro-batch, tensor-parallel degree and
// algorithm, which only the file's name tells; collectives (prim_*) and point-to-point bandwidth (p2p_*). "MB" is 2^20
// bytes throughout, times are microseconds for operators and milliseconds for collectives.
#include <fmt/format.h>
#include <algorithm>

#include "core/hardware/logs/csv_tables.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

/// The profiler writes 10^9 ms for sizes it did not try and 10^6 ms for those that failed.
constexpr double kNotMeasuredMs = 1e6;

/// GPT and T5 were profiled with 16-bit numbers, the wide ResNet with 32 (the profiler's model_configs.py).
Precision precision_of(std::string_view model) {
  return model.starts_with("resnet") ? Precision::fp32 : Precision::bf16;
}

}  // namespace

Expected<MeasuredLog> read_aceso_operators(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::aceso_operators, path);
  const std::string name = file_name(path);
  MeasuredOperator base;
  const auto mbs = name.find("_mbs");
  base.model = name.substr(0, mbs == std::string::npos ? name.rfind('.') : mbs);
  base.micro_batch = number_after(name, "_mbs").value_or(0);
  base.tensor_parallel = number_after(name, "_tp").value_or(1);
  base.variant = name.find("_algo1") != std::string::npos ? 1 : 0;
  base.precision = precision_of(base.model);
  if (base.micro_batch == 0 || !number_after(name, "_tp"))
    out.warn(
        0,
        "the name lacks micro-batch or tensor-parallel degree (as in gpt_350M_mbs1_tp2_algo0.csv): they are not known");
  read_csv(out, lines, [&](CsvRow& row) {
    MeasuredOperator sample = base;
    sample.kind = std::string(row.text("op_name").substr(0, 200));
    sample.line = row.line();
    if (sample.kind.empty()) return out.warn(row.line(), "broken row: no operator named");
    const double forward = row.number("forward-compute"), backward = row.number("backward-compute");
    sample.input_mib = row.number("input_size");
    sample.output_mib = row.number("output_size");
    sample.weights_mib = row.number("weights");
    sample.activations_mib = row.number("activations");
    const double forward_reserved = row.number("fwd_reserved"), backward_reserved = row.number("bwd_reserved");
    if (!row.good()) return;
    if (forward >= 1e9 || backward >= 1e9)
      return out.note(row.line(), fmt::format("{}: not measured", shown(sample.kind)));
    sample.time_s = forward * 1e-6;
    sample.reserved_mib = forward_reserved;
    out.op(sample);
    sample.phase = "backward";
    sample.time_s = backward * 1e-6;
    sample.reserved_mib = backward_reserved;
    out.op(std::move(sample));
  });
  return out.finish();
}

Expected<MeasuredLog> read_aceso_collectives(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::aceso_collectives, path);
  const std::string name = file_name(path);
  const auto kind = collective_in_name(name);
  const auto ranks = number_before(name, "gpus");
  if (!kind || !ranks || *ranks < 2)
    return bad_input(
        "its name must tell the collective and the number of devices, as in prim_gpt_1_3B_all_gather_2gpus.csv", path);
  // torch.distributed counts what one rank passes in: for all-gather its part, for all-to-all its block.
  const bool parts = *kind == Collective::all_gather || *kind == Collective::all_to_all;
  out.log().nodes = 1;
  out.log().devices_per_node = *ranks;
  int not_measured = 0;
  read_csv(out, lines, [&](CsvRow& row) {
    const double mib = row.number("data_size(MB)"), milliseconds = row.number("time(ms)");
    if (!row.good()) return;
    if (milliseconds >= kNotMeasuredMs) return void(++not_measured);
    out.time(row.line(), *kind, group_over(*ranks, 1), mib * kMiB * (parts ? *ranks : 1), milliseconds * 1e-3);
  });
  if (not_measured > 0) out.note(0, fmt::format("{} sizes were not measured", not_measured));
  return out.finish();
}

/// Two lines a run: sizes in MiB, bandwidths in GiB/s between two devices.
Expected<MeasuredLog> read_aceso_p2p(std::string_view text, const std::string& path) {
  LogBuilder out(LogKind::aceso_p2p, path);
  const std::string name = file_name(path);
  const bool across = name.find("inter") != std::string::npos;
  if (!across && name.find("intra") == std::string::npos)
    return bad_input("its name must tell whether the two devices share a node, as in p2p_intra_node.csv", path);
  const DeviceGroup pair{2, across ? 2 : 1, across ? 1 : 2, 1};
  out.log().nodes = pair.nodes;
  LineReader lines(text);
  std::vector<std::string_view> sizes;
  for (Line line; lines.next(line);) {
    if (!line.left_out.empty()) out.warn(line.number, line.left_out + ": left out");
    if (trimmed(line.text).empty()) continue;
    auto cells = csv_cells(line.text);
    if (sizes.empty()) {
      sizes = std::move(cells);
      continue;
    }
    if (cells.size() != sizes.size())
      out.warn(line.number, fmt::format("{} bandwidths for {} sizes", cells.size(), sizes.size()));
    for (std::size_t i = 0; i < std::min(cells.size(), sizes.size()); ++i) {
      const Number mib = number(sizes[i], 0, 1e9), rate = number(cells[i], 0, 1e9);
      if (!mib || !rate || rate.value <= 0)
        out.warn(line.number, !mib ? "size " + mib.problem : !rate ? "bandwidth " + rate.problem : "a bandwidth of 0");
      else
        out.time(line.number, Collective::send, pair, mib.value * kMiB, mib.value / 1024 / rate.value);
    }
    sizes.clear();
  }
  return out.finish();
}

}  // namespace turnpoint::logs
