// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <algorithm>
#include <string>

#include "gpu_probe/step/run.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::step {

namespace {

constexpr int kMostRanks = 8;
// Sums of up to some million terms, a few operators deep, each off by 1.1e-16 of its largest term.
constexpr double kTolerance = 1e-9;

std::string gigabytes(double bytes) {
  const std::string text = std::to_string(bytes / 1e9);
  return text.substr(0, text.find('.') + 2) + " GB";
}

double memory_of_machine() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

StepOptions options_of(const StepJob& job) {
  StepOptions options;
  options.seed = job.seed;
  options.floating_bytes = job.floating_bytes;
  options.weight_bytes = job.weight_bytes;
  options.gradient_bytes = job.gradient_bytes;
  options.optimizer_bytes = job.optimizer_bytes;
  const bool one = job.optimizer == "momentum" || job.optimizer == "lars",
             two = job.optimizer == "adam" || job.optimizer == "lamb";
  options.rule = two ? UpdateRule::adam : one ? UpdateRule::momentum : UpdateRule::sgd;
  return options;
}

Expected<void> check_job(const StepJob& job, int ranks) {
  if (ranks > kMostRanks)
    return usage_error("a plan for " + std::to_string(ranks) + " devices, and at most " + std::to_string(kMostRanks) +
                           " ranks are carried out here",
                       job.model->name);
  // What certainly has to be there: parameters with gradient and optimizer state, and the largest output.
  const Mesh& mesh = job.plan.mesh;
  const StepOptions options = options_of(job);
  const double states = options.rule == UpdateRule::adam ? 2 : options.rule == UpdateRule::momentum ? 1 : 0;
  double bytes = 0, largest = 0;
  for (const auto& planned : job.plan.operators) {
    const Operator& op = job.model->operators[planned.op];
    for (const auto& access : op.inputs) {
      const Tensor& tensor = job.model->tensors[access.tensor];
      if (tensor.role != TensorRole::parameter || tensor.tied_to.valid()) continue;
      const Layout layout = gradient_layout(op, access, false, planned.split, mesh.count()).without_partial();
      const double elements = static_cast<double>(local_elements(mesh, layout, tensor.shape));
      const Update update = planned.choice.update;
      const double shards =
          update == Update::replicated ? 1 : static_cast<double>(mesh.size_of(planned.choice.update_axes));
      bytes += 4 * elements *
               (1 / (update == Update::sharded_weights ? shards : 1) + 1 / (update >= Update::sharded ? shards : 1) +
                states / shards);
    }
    for (const auto& access : op.outputs) {
      const Layout layout = forward_layout(op, access, true, planned.split, mesh.count());
      const auto elements = local_elements(mesh, layout, job.model->tensors[access.tensor].shape);
      largest = std::max(largest, static_cast<double>(elements) * 4.0);
    }
  }
  bytes = (bytes + largest) * ranks;
  if (bytes > 0.9 * memory_of_machine())
    return Error{
        ErrorCode::device,
        "the ranks need more than " + gigabytes(bytes) + ", and this machine has " + gigabytes(memory_of_machine()),
        job.model->name, "a smaller batch, more sharding, or one device's part alone (slice)"};
  return {};
}

ProofEstimate estimate_proof(const StepJob& job) {
  double macs = 0, elements = 0;
  for (const auto& op : job.model->operators) {
    macs += (op.forward_flop + op.backward_flop) / 2;
    for (const auto& access : op.outputs) elements += static_cast<double>(job.model->tensors[access.tensor].elements());
  }
  elements += static_cast<double>(job.model->parameters) * 4;
  // Twice: with the plan and without. Measured loops of 4 ns a multiply-accumulate and 100 ns an element.
  return {2 * (4e-9 * macs + 1e-7 * elements), 6 * 8 * elements};
}

Expected<StepNumerics> prove(const StepJob& job) {
  StepOptions options = options_of(job);
  options.record = true;
  const auto run = in_double::run_step(*job.model, job.plan, options);
  if (!run) return run.error();
  const auto whole = in_double::run_whole(*job.model, job.plan, options);
  if (!whole) return whole.error();
  const auto compared = compare(*job.model, job.plan, *run, *whole);
  if (!compared) return compared.error();
  const auto worst = [&](Compared kind) { return compared->worst[static_cast<std::size_t>(kind)]; };
  StepNumerics numerics;
  numerics.loss_error = compared->loss;
  numerics.activation_error = worst(Compared::activation);
  numerics.gradient_error = std::max(worst(Compared::activation_gradient), worst(Compared::parameter_gradient));
  numerics.update_error = worst(Compared::new_parameter);
  numerics.tolerance = kTolerance;
  numerics.precision = "fp64";
  numerics.where = compared->where;
  return numerics;
}

}  // namespace turnpoint::step
