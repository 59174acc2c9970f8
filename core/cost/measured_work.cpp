// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "core/cost/calibration.h"
#include "core/cost/measured_models.h"

namespace turnpoint {

namespace {

constexpr double kBytesPerMiB = 1048576.0;

/// One device on which only work is counted.
Scenario on_one_device(ModelPtr model, Precision precision) {
  Scenario scenario;
  scenario.model = std::move(model);
  auto cluster = std::make_shared<Cluster>();
  cluster->device.memory_bytes = 1;
  cluster->device.peak_fp32 = cluster->device.peak_bf16 = cluster->device.memory_bandwidth = 1;
  cluster->links[kInterNode] = cluster->links[kIntraNode] = {"", 1, 0};
  scenario.cluster = std::move(cluster);
  scenario.settings.precision = precision;
  return scenario;
}

struct RowParts {
  std::vector<MeasuredWork::Part> forward, backward;
  double activation_bytes = 0;
};

/// The work of every row, from the operators in its scope.
std::map<std::string, RowParts> parts_by_row(const ModelPtr& model, Precision precision) {
  const Scenario scenario = on_one_device(model, precision);
  const TensorUses uses = analyse_tensor_uses(*model);
  const ReshardingModel resharding(make_mesh(*scenario.cluster), CollectiveModel(*scenario.cluster, {}), 1);
  const OperatorCostModel costs(scenario, uses, resharding);
  std::set<TensorId> kept;  // results that some backward reads
  for (const auto& op : model->operators) {
    for (const auto& access : op.inputs)
      if (access.saved) kept.insert(access.tensor);
    for (const auto& access : op.outputs)
      if (access.saved) kept.insert(access.tensor);
  }
  const std::set<TensorId> handed_on(model->results.begin(), model->results.end());
  std::map<std::string, RowParts> rows;
  for (const auto& op : model->operators) {
    if (op.scope.empty() || op.is_view() || op.kind == OperatorKind::input) continue;
    RowParts& row = rows[op.scope];
    row.forward.push_back({fitted_kind(*model, op), costs.work(op, {}, false)});
    row.backward.push_back({fitted_kind(*model, op), costs.work(op, {}, true)});
    row.activation_bytes +=
        static_cast<double>(held_inside_bytes(scenario.settings, *model, op, {}, resharding.mesh()));
    for (const auto& access : op.outputs) {
      const Tensor& tensor = model->tensors[access.tensor];
      if (kept.count(access.tensor) || handed_on.count(access.tensor))
        row.activation_bytes += static_cast<double>(tensor.elements()) * element_bytes(tensor, precision);
    }
  }
  return rows;
}

std::vector<MeasuredWork> aceso_rows(const MeasuredLog& log) {
  if (log.operators.empty()) return {};
  const auto& first = log.operators.front();
  const auto made = first.model.starts_with("gpt") ? aceso_gpt(log) : aceso_resnet(log);
  if (!made) return {};
  const auto parts = parts_by_row(made->model, first.precision);
  std::vector<MeasuredWork> rows;
  for (const auto& measured : log.operators) {
    const auto found = parts.find(measured.kind);
    if (found == parts.end() || !(measured.time_s > 0)) continue;
    MeasuredWork row;
    row.name = measured.kind;
    row.phase = measured.phase;
    row.precision = measured.precision;
    row.time_s = measured.time_s;
    const bool forward = measured.phase == "forward";
    row.parts = forward ? found->second.forward : found->second.backward;
    const auto& exchanges = forward ? made->forward : made->backward;
    if (const auto exchange = exchanges.find(measured.kind); exchange != exchanges.end())
      row.exchange = exchange->second;
    row.activation_bytes = found->second.activation_bytes;
    row.measured_activation_bytes = measured.activations_mib.value_or(0) * kBytesPerMiB;
    row.tensor_parallel = measured.tensor_parallel;
    row.micro_batch = measured.micro_batch;
    row.variant = measured.variant;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<MeasuredWork> deepbench_rows(const MeasuredLog& log) {
  std::vector<MeasuredWork> rows;
  for (const auto& measured : log.operators) {
    if (measured.dims.size() < 3 || !(measured.time_s > 0)) continue;
    const double m = static_cast<double>(measured.dims[0].second), n = static_cast<double>(measured.dims[1].second),
                 k = static_cast<double>(measured.dims[2].second);
    const double bytes = measured.precision == Precision::fp32 ? 4 : 2;
    MeasuredWork row;
    row.name = measured.kind;
    row.phase = measured.phase;
    row.precision = measured.precision;
    row.time_s = measured.time_s;
    row.parts = {{"matmul", {2 * m * n * k, bytes * (m * k + k * n + m * n)}}};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<MeasuredWork> measured_work(const MeasuredLog& log) {
  if (log.kind == LogKind::aceso_operators) return aceso_rows(log);
  if (log.kind == LogKind::deepbench_gemm || log.kind == LogKind::aiconfigurator) return deepbench_rows(log);
  return {};
}

}  // namespace turnpoint
