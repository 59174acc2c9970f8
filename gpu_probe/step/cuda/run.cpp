// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/run.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <thread>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/cuda/device.h"
#include "gpu_probe/step/cuda/gpu_ranks.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/run_apart.h"

namespace turnpoint::step {

Expected<void> open_gpu(int index) { return Device::open(index); }
probe::cuda::Gpu& opened_gpu() { return Device::get().gpu; }

namespace {

constexpr int kMostRanks = 64;
// fp32: sums of up to some thousand terms, a few dozen operators deep, each off by 6e-8 of its largest term; beside
// that a unit or a maximum may fall to the other side of a tie.
constexpr double kTolerance = 1e-3;

/// Products in this way until it ends.
class ProductsIn {
 public:
  explicit ProductsIn(ProbePrecision precision) : before_(Device::get().products) {
    Device::get().products = precision == ProbePrecision::tf32 ? ProbePrecision::tf32 : ProbePrecision::fp32;
  }
  ~ProductsIn() { Device::get().products = before_; }
  ProductsIn(const ProductsIn&) = delete;
  ProductsIn& operator=(const ProductsIn&) = delete;

 private:
  ProbePrecision before_;
};

Error out_of_memory() {
  Device& device = Device::get();
  std::size_t free = 0, total = 0;
  device.gpu.driver.memory_info(&free, &total);
  return {ErrorCode::device,
          fmt::format("the GPU's memory of {:.2f} GB is too small for this step", double(total) / 1e9),
          {},
          "a smaller batch, more sharding, or one device's part alone (slice)"};
}

/// The recorded step against the unpartitioned one. `where`: it was carried out, in words.
Expected<StepNumerics> compared_with_whole(const StepJob& job, const StepOptions& options, const StepRun& run,
                                           const std::string& where, std::string& how) {
  const bool on_cpu = proof_needs(*job.model).seconds / 2 <= job.budget_s;
  const auto whole =
      on_cpu ? in_double::run_whole(*job.model, job.plan, options) : in_cuda::run_whole(*job.model, job.plan, options);
  if (!whole) return whole.error();
  const auto compared = compare(*job.model, job.plan, run, *whole);
  if (!compared) return compared.error();
  if (job.placement)
    if (auto all = check_all_computed(job, *compared, *whole); !all) return all.error();
  const auto typical = [&](Compared kind) { return compared->typical[static_cast<std::size_t>(kind)]; };
  how = fmt::format(
      "proven in fp32 on {}, by root mean squares of tensors, against the unpartitioned step {}; the "
      "largest difference of one element is {:.1e} of its tensor's largest, at {}",
      where, on_cpu ? "in double on the CPU" : "on the same GPU (in double on the CPU it would outlast the budget)",
      compared->largest(), compared->where);
  StepNumerics numerics;
  numerics.loss_error = compared->loss;
  numerics.activation_error = typical(Compared::activation);
  numerics.gradient_error = std::max(typical(Compared::activation_gradient), typical(Compared::parameter_gradient));
  numerics.update_error = typical(Compared::new_parameter);
  numerics.tolerance = kTolerance;
  numerics.precision = "fp32";
  numerics.where = compared->where_typical;
  return numerics;
}

Expected<StepMeasurement> measure_one_rank(const StepJob& job, in_cuda::Communicator& communicator,
                                           const StepProgress& progress) {
  try {
    return in_cuda::measure_steps(job, communicator, progress);
  } catch (const std::bad_alloc&) {
    communicator.give_up();
    return out_of_memory();
  }
}

void add_note(StepMeasurement& m, std::string text) { m.notes.insert(m.notes.begin(), std::move(text)); }

/// How the numbers were computed.
void add_notes(const StepJob& job, StepMeasurement& m) {
  add_note(m, job.precision == ProbePrecision::tf32 ? "computed in fp32, matrix products and convolutions in tf32"
                                                    : "computed in fp32 throughout, tf32 off");
  if (job.precision == ProbePrecision::bf16)
    add_note(m,
             "bf16 is not carried out on GPUs yet: bytes are counted as the plan's precision has them, times are those "
             "of fp32");
  const auto& cudnn = opened_gpu().convolutions.loaded();
  if (!cudnn.usable()) add_note(m, "no cuDNN: convolutions ran by plain kernels of our own (" + cudnn.problem() + ")");
}

}  // namespace

Expected<void> check_job_on_gpu(const StepJob& job, int ranks) {
  if (ranks > kMostRanks)
    return usage_error(fmt::format("a plan for {} devices, and at most {} share one GPU here", ranks, kMostRanks),
                       job.model->name);
  std::size_t free = 0, total = 0;
  opened_gpu().driver.memory_info(&free, &total);
  const double needed = least_bytes(job) * ranks;
  if (needed <= static_cast<double>(free)) return {};
  return Error{ErrorCode::device,
               fmt::format("the step needs more than {:.1f} GB, and {:.1f} GB of the GPU's memory are free",
                           needed / 1e9, static_cast<double>(free) / 1e9),
               job.model->name, "a smaller batch, more sharding, or one device's part alone (slice)"};
}

Expected<StepNumerics> prove_on_gpu(const StepJob& job, std::string& how) {
  StepOptions options = options_of(job);
  options.record = true;
  const ProductsIn exact(ProbePrecision::fp32);
  if (job.placement) {
    const auto run = in_cuda::run_placement(job, options);
    if (!run) return run.error();
    return compared_with_whole(job, options, run->step, "the GPU", how);
  }
  const auto run = in_cuda::run_step(*job.model, job.plan, options);
  if (!run) return run.error();
  return compared_with_whole(job, options, *run, "the GPU", how);
}

Expected<std::optional<StepNumerics>> prove_on_gpus(const StepJob& job, probe::GpuCollectives& exchanges,
                                                    probe::Transport& transport, std::string& how) {
  StepOptions options = options_of(job);
  options.record = true;
  const ProductsIn exact(ProbePrecision::fp32);
  const auto communicator = in_cuda::gpu_communicator(exchanges);
  std::optional<Error> error;
  try {
    const auto run = in_cuda::run_apart(job, options, *communicator, transport);
    if (run && exchanges.rank() != 0) return std::optional<StepNumerics>();
    const std::string where = fmt::format("{} GPUs with sums by NCCL", exchanges.ranks());
    const auto numerics = run ? compared_with_whole(job, options, *run, where, how) : run.error();
    if (numerics) return std::optional(*numerics);
    error = numerics.error();
  } catch (const std::bad_alloc&) {
    error = out_of_memory();
  }
  communicator->give_up();
  return *error;
}

Expected<StepMeasurement> measure_on_gpus(const StepJob& job, probe::GpuCollectives& exchanges,
                                          const StepProgress& progress) {
  const ProductsIn products(job.precision);
  const auto communicator = in_cuda::gpu_communicator(exchanges);
  auto measured = measure_one_rank(job, *communicator, progress);
  if (!measured) return measured;
  measured->cores = exchanges.ranks();
  add_note(*measured,
           fmt::format("a GPU for each of the {} ranks, exchanges by NCCL {}", exchanges.ranks(), exchanges.version()));
  add_notes(job, *measured);
  return measured;
}

Expected<StepMeasurement> measure_on_gpu(const StepJob& job, const StepProgress& progress) {
  const ProductsIn products(job.precision);
  std::optional<Expected<StepMeasurement>> measured;
  const int count = job.plan.mesh.devices();
  if (job.placement) {
    measured.emplace(in_cuda::measure_placement(job, progress));
  } else if (job.mode == StepMode::slice) {
    const auto communicator = in_cuda::lone_communicator(count, job.slice_device);
    measured.emplace(measure_one_rank(job, *communicator, progress));
  } else {
    in_cuda::ThreadRanks ranks(count);
    std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
    std::vector<std::jthread> threads;
    for (int r = 1; r < count; ++r)
      threads.emplace_back([&, r] {
        const auto communicator = ranks.communicator(r);
        if (auto done = measure_one_rank(job, *communicator, [](const char*, double, double) {}); !done)
          errors[static_cast<std::size_t>(r)] = done.error();
      });
    const auto communicator = ranks.communicator(0);
    measured.emplace(measure_one_rank(job, *communicator, progress));
    threads.clear();
    if (!*measured && measured->error().what == "another rank gave up")
      for (const auto& error : errors)
        if (error && error->what != "another rank gave up") return *error;
  }
  if (!*measured) return measured->error();
  StepMeasurement& m = **measured;
  m.cores = 1;
  if (m.ranks > 1)
    add_note(m,
             fmt::format("virtual devices: {} ranks took turns on one GPU and exchanged through its memory; times are "
                         "not those of separate devices",
                         m.ranks));
  add_notes(job, m);
  return std::move(**measured);
}

}  // namespace turnpoint::step
