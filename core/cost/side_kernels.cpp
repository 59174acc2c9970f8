// SPDX-License-Identifier: Apache-2.0
#include "core/cost/side_kernels.h"

#include <algorithm>

#include "core/cost/operator_cost.h"
#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

bool sums_a_bias(const Model& model, const Operator& op) {
  return record_of(op.kind).products && std::ranges::any_of(op.inputs, [&](const Access& access) {
           const Tensor& tensor = model.tensors[access.tensor];
           return tensor.role == TensorRole::parameter && tensor.requires_gradient && tensor.shape.size() == 1;
         });
}

bool sends_pytorch_messages(const Scenario& scenario) {
  if (!scenario.by_library() || scenario.settings.bucket_bytes <= 0) return false;
  switch (scenario.cluster->library) {
    case Library::nccl:
    case Library::nccl_2_18:
    case Library::nccl_2_12:
    case Library::rccl: return true;
    case Library::ring:
    case Library::torus: break;
  }
  return false;
}

}  // namespace

SideKernels side_kernels(const Settings& settings, Library library, const Model& model, const Operator& op,
                         bool backward, double output_bytes) {
  SideKernels beside;
  if (settings.accounting == Accounting::paper) return beside;
  const bool by_product =
      library == Library::torus || (settings.precision == Precision::fp8 && multiplies_eight_bits(model, op));
  if (backward && !by_product && sums_a_bias(model, op)) beside.bytes += output_bytes, ++beside.kernels;
  if (op.rotates && settings.kernels == Kernels::fused) beside.bytes += 2 * output_bytes, ++beside.kernels;
  return beside;
}

SideKernels side_kernels(const Scenario& scenario, const Operator& op, const Configuration& split, const Mesh& mesh,
                         bool backward) {
  if (!record_of(op.kind).products || op.outputs.empty()) return {};
  const Access& made = op.outputs.front();
  const Layout layout = forward_layout(op, made, true, split, mesh.count()).without_partial();
  const Tensor& tensor = scenario.model->tensors[made.tensor];
  return side_kernels(scenario.settings, scenario.cluster->library, *scenario.model, op, backward,
                      double(local_bytes(mesh, layout, tensor, scenario.settings.precision)));
}

double scaling_bytes(const Scenario& scenario, const ParameterGroup& group, const GroupElements& elements) {
  if (group.partial == 0 || !sends_pytorch_messages(scenario)) return 0;
  return 2.0 * double(elements.all()) * parameter_bytes(scenario.settings, Accounting::full).gradient;
}

double bytes_per_update(const Settings& settings, Library library) {
  const ParameterBytes real = parameter_bytes(settings, Accounting::full);
  const bool whole = settings.precision == Precision::fp32;
  const double made = whole ? 0 : library == Library::torus ? 2 : 4 + 2;  // the 16-bit weight
  return real.gradient + 2.0 * (real.optimizer + (whole ? 4 : 0)) + made;
}

}  // namespace turnpoint
