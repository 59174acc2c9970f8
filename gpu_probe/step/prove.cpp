// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "core/base/machine_memory.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/timed.h"
#include "gpu_probe/step/whole_step.h"

namespace turnpoint::step {

namespace {

constexpr int kMostRanks = 8;
// Sums of up to some million terms, a few operators deep, each off by 1.1e-16 of its largest term.
constexpr double kTolerance = 1e-9;

std::string gigabytes(double bytes) {
  const std::string text = std::to_string(bytes / 1e9);
  return text.substr(0, text.find('.') + 2) + " GB";
}

}  // namespace

StepOptions options_of(const StepJob& job) {
  StepOptions options;
  options.seed = job.seed;
  options.micro_batches = job.micro_batches;
  options.floating_bytes = job.floating_bytes;
  options.weight_bytes = job.weight_bytes;
  options.gradient_bytes = job.gradient_bytes;
  options.optimizer_bytes = job.optimizer_bytes;
  options.rule = job.optimizer == "adam"        ? UpdateRule::adam
                 : job.optimizer == "momentum"  ? UpdateRule::momentum
                 : job.optimizer == "lars"      ? UpdateRule::lars
                 : job.optimizer == "lamb"      ? UpdateRule::lamb
                 : job.optimizer == "adafactor" ? UpdateRule::adafactor
                                                : UpdateRule::sgd;
  return options;
}

namespace {

/// Of the operators that are counted; empty: of all.
double least_bytes_of(const StepJob& job, const std::vector<bool>& counted) {
  const Mesh& mesh = job.plan.mesh;
  const StepOptions options = options_of(job);
  const double states = states_of(options.rule);
  const bool halves = job.precision == ProbePrecision::bf16;
  const double weight = halves ? 2 : 4, gradient = weight, master = halves ? 4 : 0;
  double bytes = 0, largest = 0;
  for (const auto& planned : job.plan.operators) {
    if (!counted.empty() && !counted[planned.op.index]) continue;
    const Operator& op = job.model->operators[planned.op];
    for (const auto& access : op.inputs) {
      const Tensor& tensor = job.model->tensors[access.tensor];
      if (tensor.role != TensorRole::parameter || tensor.tied_to.valid()) continue;
      const Layout layout = gradient_layout(op, access, false, planned.split, mesh.count()).without_partial();
      const double elements = static_cast<double>(local_elements(mesh, layout, tensor.shape));
      const Update update = planned.choice.update;
      const double shards =
          update == Update::replicated ? 1 : static_cast<double>(mesh.size_of(planned.choice.update_axes));
      bytes += elements * (weight / (update == Update::sharded_weights ? shards : 1) +
                           gradient / (update >= Update::sharded ? shards : 1) + (4 * states + master) / shards);
    }
    for (const auto& access : op.outputs) {
      const Layout layout = forward_layout(op, access, true, planned.split, mesh.count());
      const auto elements = local_elements(mesh, layout, job.model->tensors[access.tensor].shape);
      largest = std::max(largest, static_cast<double>(elements) * weight);
    }
  }
  return bytes + largest;
}

}  // namespace

double least_bytes(const StepJob& job) { return least_bytes_of(job, {}); }

double least_placed_bytes(const StepJob& job, int first, int count) {
  std::vector<bool> counted(job.model->operators.size(), false);
  for (const auto& task : job.placement->tasks)
    if (static_cast<int>(task.device) >= first && static_cast<int>(task.device) < first + count)
      counted[task.op.index] = true;
  return least_bytes_of(job, counted);
}

Expected<void> check_room(const StepJob& job, double bytes) {
  const auto there = static_cast<double>(machine_memory().available);
  if (there > 0 && bytes > there)
    return Error{ErrorCode::device,
                 "the ranks need more than " + gigabytes(bytes) + ", and " + gigabytes(there) +
                     " can be had on this machine now",
                 job.model->name, "a smaller batch, more sharding, or one device's part alone (slice)"};
  return {};
}

Expected<void> check_job(const StepJob& job, int ranks) {
  if (ranks > kMostRanks)
    return usage_error("a plan for " + std::to_string(ranks) + " devices, and at most " + std::to_string(kMostRanks) +
                           " ranks are carried out here",
                       job.model->name);
  return check_room(job, least_bytes(job) * ranks);
}

StepNumerics numerics_of(const Comparison& compared) {
  const auto worst = [&](Compared kind) { return compared.worst[static_cast<std::size_t>(kind)]; };
  StepNumerics numerics;
  numerics.loss_error = compared.loss;
  numerics.activation_error = worst(Compared::activation);
  numerics.gradient_error = std::max(worst(Compared::activation_gradient), worst(Compared::parameter_gradient));
  numerics.update_error = worst(Compared::new_parameter);
  numerics.tolerance = kTolerance;
  numerics.precision = "fp64";
  numerics.where = compared.where;
  return numerics;
}

Expected<StepNumerics> prove(const StepJob& job) {
  StepOptions options = options_of(job);
  options.record = options.one_step = true;
  WholeStep whole([&] { return run_whole(in_double(), *job.model, job.plan, options); });
  const auto run = run_step(in_double(), *job.model, job.plan, options);
  if (!run) return run.error();
  const auto& unpartitioned = whole.get();
  if (!unpartitioned) return unpartitioned.error();
  const auto compared = compare(*job.model, job.plan, *run, *unpartitioned);
  if (!compared) return compared.error();
  return numerics_of(*compared);
}

}  // namespace turnpoint::step
