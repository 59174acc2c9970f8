// SPDX-License-Identifier: Apache-2.0
#include "core/cost/measure_machine.h"

#include <algorithm>
#include <thread>

#include "core/base/json.h"
#include "core/hardware/probe_local.h"

namespace turnpoint {

namespace {

constexpr std::int64_t kLeastBytes = 64, kMostBytes = std::int64_t(16) << 20;
constexpr double kItemLimit = 20;

/// A machine of one core gets two ranks all the same, so that there is something to exchange.
int usual_ranks() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8); }

// What `automatic` means here: asked of the probe by a job of one empty kernel.
Expected<ProbeBackend> backend_here(const std::string& program, const RunContext& context) {
  ProbeJob job;
  job.budget_s = 30;
  ProbeOperator nothing;
  nothing.kind = "launch";
  nothing.calls = {ProbeCall{}};
  job.operators = {nothing};
  ProbeLaunch launch;
  launch.program = program;
  const auto asked = run_probe(launch, job, context);
  if (!asked) return asked.error();
  return asked->hello()->backend == "cuda" ? ProbeBackend::cuda : ProbeBackend::cpu;
}

}  // namespace

ProbeJob measurement_job(const MeasureOptions& options, ProbeBackend backend, std::vector<std::string>& left_out) {
  const bool gpu = backend == ProbeBackend::cuda;
  std::vector<ProbePrecision> precisions = options.precisions;
  if (precisions.empty()) {
    precisions = {ProbePrecision::fp32};
    if (gpu) precisions.insert(precisions.end(), {ProbePrecision::bf16, ProbePrecision::tf32});
  }
  ProbeJob job;
  job.backend = backend;
  job.device = options.device;
  job.ranks = gpu ? 1 : options.ranks > 0 ? options.ranks : usual_ranks();
  job.budget_s = options.budget_s;
  job.item_s = options.item_s;
  job.limit_s = std::max(kItemLimit, 20 * options.item_s);
  job.hot = options.hot;
  job.check = options.check;
  ProbeItems items = standard_items(gpu, precisions);
  left_out = items.left_out;
  if (options.model) {
    ProbeItems own = model_items(*options.model, options.devices > 0 ? options.devices : job.ranks, precisions);
    left_out.insert(left_out.end(), own.left_out.begin(), own.left_out.end());
    // The few standard items without work (copies, launch) come first, then the model, then the other shapes.
    const auto shapes = std::find_if(items.operators.begin(), items.operators.end(),
                                     [](const ProbeOperator& op) { return !op.fit.empty(); });
    items.operators.insert(shapes, std::make_move_iterator(own.operators.begin()),
                           std::make_move_iterator(own.operators.end()));
  }
  job.operators = std::move(items.operators);
  if (!gpu && job.ranks > 1) job.collectives = standard_collectives(job.ranks, kLeastBytes, kMostBytes);
  return job;
}

Expected<Measurement> measure_machine(const MeasureOptions& options, const RunContext& context) {
  ProbeLaunch launch;
  launch.program = options.program;
  if (launch.program.empty()) {
    auto found = find_probe();
    if (!found) return found.error();
    launch.program = *found;
  }
  ProbeBackend backend = options.backend;
  if (backend == ProbeBackend::automatic) {
    const auto asked = backend_here(launch.program, context);
    if (!asked) return asked.error();
    backend = *asked;
  }
  Measurement made;
  launch.on_line = options.on_line;
  auto messages = run_probe(launch, measurement_job(options, backend, made.left_out), context);
  if (!messages) return messages.error();
  made.messages = std::move(*messages);
  auto profile = measured_profile(made.messages, options.base, options.tf32);
  if (!profile) return profile.error();
  made.profile = std::move(*profile);
  return made;
}

Expected<void> keep_as_local(const Cluster& cluster) {
  const auto path = local_profile_path();
  if (path.empty()) return Error{ErrorCode::device, "there is no home folder to keep it in", {}, {}};
  std::error_code ec;
  std::filesystem::create_directories(path.parent_path(), ec);
  return write_file_atomically(path, write_hardware_profile(cluster));
}

}  // namespace turnpoint
