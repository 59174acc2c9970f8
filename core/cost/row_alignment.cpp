// SPDX-License-Identifier: Apache-2.0
#include "core/cost/row_alignment.h"

#include <fmt/format.h>
#include <algorithm>
#include <vector>

#include "core/cost/local_sizes.h"
#include "core/cost/operator_cost.h"
#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

constexpr std::int64_t kFetched = 8;  // elements of 16 bits in 16 bytes
constexpr double kWorthANote = 0.02;  // of the time of all products: less is within what a prediction is off

Rows kind_of(std::int64_t row) { return row % kFetched == 0 ? Rows::aligned : row % 2 == 0 ? Rows::even : Rows::odd; }

/// Elements of the row that suits the matrix units least.
std::int64_t worst_row(const Model& model, const Operator& op, std::span<const std::int64_t> local) {
  std::int64_t worst = kFetched;
  const auto meet = [&](const Access& access) {
    const Tensor& tensor = model.tensors[access.tensor];
    if (tensor.shape.size() < 2) return;  // a bias has no second row
    const std::int64_t row = local_size(op, tensor, access, tensor.shape.size() - 1, local);
    if (kind_of(row) > kind_of(worst)) worst = row;
  };
  for (const Access& access : op.inputs) meet(access);
  for (const Access& access : op.outputs) meet(access);
  return worst;
}

}  // namespace

Rows rows_of(const Model& model, const Operator& op, std::span<const std::int64_t> local) {
  return op.kind == OperatorKind::matmul ? kind_of(worst_row(model, op, local)) : Rows::aligned;
}

std::string fitted_kind_of(std::string kind, Rows rows) {
  if (rows != Rows::aligned) kind += rows == Rows::odd ? ", odd rows" : ", even rows";
  return kind;
}

double unaligned_rate(const DeviceType& device, Rows rows, double aligned_rate) {
  const double share = rows == Rows::odd    ? device.flop_efficiency_odd
                       : rows == Rows::even ? device.flop_efficiency_even
                                            : 0;
  return share > 0 ? std::min(aligned_rate, share * device.peak_bf16) : aligned_rate;
}

std::string unaligned_rows_note(const Scenario& scenario) {
  const Settings& settings = scenario.settings;
  if (settings.precision == Precision::fp32 || settings.accounting == Accounting::paper) return {};
  const Model& model = *scenario.model;
  const DeviceType& device = scenario.cluster->device;
  const double aligned = device.peak(Precision::bf16) * device.efficiency(Precision::bf16);
  double all_s = 0, most_s = 0, slower = 1;
  std::int64_t row = 0;
  const Operator* worst = nullptr;
  for (const Operator& op : model.operators) {
    if (!record_of(op.kind).products) continue;
    const double flop = op.forward_flop + op.backward_flop;
    all_s += flop / aligned;
    if (op.kind != OperatorKind::matmul || (settings.precision == Precision::fp8 && multiplies_eight_bits(model, op)))
      continue;
    std::vector<std::int64_t> whole;
    for (const LoopDimension& dim : op.dims) whole.push_back(dim.size);
    const std::int64_t least = worst_row(model, op, whole);
    const double rate = unaligned_rate(device, kind_of(least), aligned), lost_s = flop / rate - flop / aligned;
    if (lost_s <= most_s) continue;
    most_s = lost_s, slower = aligned / rate, row = least, worst = &op;
  }
  if (!worst || most_s < kWorthANote * all_s) return {};
  return fmt::format(
      "'{}': rows of {} numbers are no multiple of {}: padded to {}, its 16-bit products would be {:.1f} times as fast",
      worst->name, row, kFetched, (row + kFetched - 1) / kFetched * kFetched, slower);
}

}  // namespace turnpoint
