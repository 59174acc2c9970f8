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

SideKernels side_kernels(const Scenario& scenario, const Operator& op, const Configuration& split, const Mesh& mesh,
                         bool backward) {
  const Settings& settings = scenario.settings;
  const Model& model = *scenario.model;
  SideKernels beside;
  if (settings.accounting == Accounting::paper || op.outputs.empty()) return beside;
  const Access& made = op.outputs.front();
  const Layout layout = forward_layout(op, made, true, split, mesh.count()).without_partial();
  const auto bytes = double(local_bytes(mesh, layout, model.tensors[made.tensor], settings.precision));
  const bool cast = settings.precision == Precision::fp8 && multiplies_eight_bits(model, op);
  if (backward && !cast && sums_a_bias(model, op)) beside.bytes += bytes, ++beside.kernels;
  if (op.rotates && settings.kernels == Kernels::fused) beside.bytes += 2 * bytes, ++beside.kernels;
  return beside;
}

ExchangeCopies exchange_copies(const Scenario& scenario, const ParameterGroup& group, const GroupElements& elements,
                               const MemoryChoice& choice, std::int64_t shards, const ParameterTraffic& traffic) {
  ExchangeCopies copies;
  if (!sends_pytorch_messages(scenario)) return copies;
  const ParameterBytes real = parameter_bytes(scenario.settings, Accounting::full);
  const auto all = double(elements.all());
  if (shards > 1 && choice.whole_rows && choice.update == Update::sharded_weights)
    for (const double read : traffic.read_bytes) {
      const double copied = 2 * read * (1 + 1 / double(shards));  // read and written: in, out
      copies.forward += copied / 2, copies.backward += copied / 2;
    }
  if (group.partial == 0) return copies;
  if (shards > 1 && sums_every_micro_batch(choice.update))
    copies.backward += all * (real.weight + real.gradient);
  else
    copies.once += all * 2 * real.gradient;
  return copies;
}

}  // namespace turnpoint
