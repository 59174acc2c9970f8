// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/run.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/cuda/device.h"
#include "gpu_probe/step/cuda/gpu_ranks.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step/rank_threads.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/run_apart.h"

namespace turnpoint::step {

using in_cuda::Device;

Expected<void> open_gpu(int index) { return Device::open(index); }
probe::cuda::Gpu& opened_gpu() { return Device::get().gpu; }
Expected<void> compute_on_gpu_in(ProbePrecision precision) { return Device::get().compute_in(precision); }

// Every operator rounds what it makes, to 8 significant bits: a relative error of up to 2^-8, 2^-8 / sqrt(3) in root
// mean square at most, each independent of the others. So after n operators it is sqrt(n) times that in a tensor's root
// mean square; kSpread allows for sums that cancel. Gradients jump beside: of the elements at a kink (a unit near 0,
// the second largest of a window) a share of about the error so far falls to the other side, and a share p of elements
// that are wrong altogether is an error of sqrt(p).
StepRounding rounding_of(const Model& model, const StepOptions& options, const StepRun& step, const StepRun& whole,
                         const Comparison& compared) {
  constexpr double kUnit = 0x1p-8, kSpread = 4;
  const auto typical = [&](Compared kind) { return compared.typical[static_cast<std::size_t>(kind)]; };
  double squares = 0;
  for (const auto& r : whole.ranks.front().recorded) {
    if (r.kind != Compared::activation) continue;
    const TensorId id = model.operators[r.op].outputs[r.slot].tensor;
    if (std::find(model.results.begin(), model.results.end(), id) == model.results.end()) continue;
    for (std::size_t i = 0; i < r.data.size(); ++i) {
      const double summand = loss_factor(model.tensors[id], id, options.seed, static_cast<std::int64_t>(i)) * r.data[i];
      squares += summand * summand;
    }
  }
  const auto finite = [](double error) { return error < 1e9 ? error : 1e9; };  // of what is no number as well
  StepRounding rounding;
  rounding.precision = "bf16";
  rounding.loss_error =
      finite(std::abs(step.loss - whole.loss) / std::max({std::abs(whole.loss), std::sqrt(squares), 1e-30}));
  rounding.gradient_error =
      finite(std::max(typical(Compared::activation_gradient), typical(Compared::parameter_gradient)));
  rounding.loss_tolerance = kSpread * kUnit * std::sqrt(static_cast<double>(model.operators.size()) / 3);
  rounding.gradient_tolerance = std::sqrt(rounding.loss_tolerance);
  rounding.where = compared.where_typical;
  return rounding;
}

namespace {

constexpr int kMostRanks = 64;
// fp32: sums of up to some thousand terms, a few dozen operators deep, each off by 6e-8 of its largest term; beside
// that a unit or a maximum may fall to the other side of a tie.
constexpr double kTolerance = 1e-3;

/// Steps on the GPU, in fp32 when it begins, and again when it ends.
struct InFp32 {
  const ComputeIn here{on_cuda()};
  InFp32() { (void)compute_on_gpu_in(ProbePrecision::fp32); }
  ~InFp32() { (void)compute_on_gpu_in(ProbePrecision::fp32); }
  InFp32(const InFp32&) = delete;
  InFp32& operator=(const InFp32&) = delete;
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

/// The recorded steps, in fp32 and, where the job is in it, in bf16, against the unpartitioned one. `where`: they were
/// carried out, in words.
Expected<StepNumerics> compared_with_whole(const StepJob& job, const StepOptions& options, const StepRun& run,
                                           const std::optional<StepRun>& rounded, const std::string& where,
                                           std::string& how) {
  const bool on_cpu = proof_needs(job).seconds / 2 <= job.budget_s;
  const auto whole = on_cpu ? run_whole(in_double(), *job.model, job.plan, options)
                            : run_whole(on_cuda(), *job.model, job.plan, options);
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
  if (!rounded) return numerics;
  const auto off = compare(*job.model, job.plan, *rounded, *whole);
  if (!off) return off.error();
  numerics.rounding = rounding_of(*job.model, options, *rounded, *whole, *off);
  return numerics;
}

/// `carry_out` in fp32, and then in bf16 where the job is in that.
template <class CarryOut>
Expected<void> carried_out(const StepJob& job, const CarryOut& carry_out, std::optional<StepRun>& run,
                           std::optional<StepRun>& rounded) {
  const InFp32 exact;
  auto first = carry_out();
  if (!first) return first.error();
  run = std::move(*first);
  if (job.precision != ProbePrecision::bf16) return {};
  if (auto fine = compute_on_gpu_in(ProbePrecision::bf16); !fine) return fine;
  auto second = carry_out();
  if (!second) return second.error();
  rounded = std::move(*second);
  return {};
}

Expected<StepMeasurement> measure_one_rank(const StepJob& job, Communicator& communicator,
                                           const StepProgress& progress) {
  try {
    return measure_steps(job, communicator, progress);
  } catch (const std::bad_alloc&) {
    communicator.give_up();
    return out_of_memory();
  }
}

LinksOf links_over(probe::GpuCollectives& exchanges) {
  return [&exchanges](const PlacedProgram& program) { return in_cuda::gpu_links(program, exchanges); };
}

/// Of a placement.
Expected<StepMeasurement> measure_one_device(const StepJob& job, probe::GpuCollectives& exchanges,
                                             const StepProgress& progress) {
  try {
    return measure_placed_rank(on_cuda(), job, links_over(exchanges), progress);
  } catch (const std::bad_alloc&) {
    exchanges.abort();
    return out_of_memory();
  }
}

void add_note(StepMeasurement& m, std::string text) { m.notes.insert(m.notes.begin(), std::move(text)); }

/// How the numbers were computed.
void add_notes(const StepJob& job, StepMeasurement& m) {
  switch (job.precision) {
    case ProbePrecision::fp32: add_note(m, "computed in fp32 throughout, tf32 off"); break;
    case ProbePrecision::tf32: add_note(m, "computed in fp32, matrix products and convolutions in tf32"); break;
    case ProbePrecision::bf16:
      add_note(m, "tensors in bf16, sums in fp32, the update on fp32 masters of the weights");
      if (std::any_of(job.model->operators.begin(), job.model->operators.end(),
                      [](const Operator& op) { return op.kind == OperatorKind::convolution; }))
        add_note(m,
                 "convolutions took their tensors with channels before places, as the step keeps them; measured "
                 "profiles have those of bf16 with channels innermost");
      break;
  }
  const auto& cudnn = opened_gpu().convolutions.loaded();
  if (!cudnn.usable())
    add_note(m, "no cuDNN: convolutions ran by plain kernels of our own (" + cudnn.problem() + ")");
  else if (const int refused = Device::get().convolutions_refused(); refused > 0)
    add_note(m, fmt::format("cuDNN does not take {} of the step's convolutions, which ran by plain kernels of our own",
                            refused));
}

}  // namespace

Expected<void> check_job_on_gpu(const StepJob& job, int ranks, int own) {
  if (ranks > kMostRanks)
    return usage_error(fmt::format("a plan for {} devices, and at most {} share one GPU here", ranks, kMostRanks),
                       job.model->name);
  std::size_t free = 0, total = 0;
  opened_gpu().driver.memory_info(&free, &total);
  const double needed = job.placement && own >= 0 ? least_placed_bytes(job, own, 1) : least_bytes(job) * ranks;
  if (needed <= static_cast<double>(free)) return {};
  return Error{ErrorCode::device,
               fmt::format("the step needs more than {:.1f} GB, and {:.1f} GB of the GPU's memory are free",
                           needed / 1e9, static_cast<double>(free) / 1e9),
               job.model->name, "a smaller batch, more sharding, or one device's part alone (slice)"};
}

Expected<StepNumerics> prove_on_gpu(const StepJob& job, std::string& how) {
  StepOptions options = options_of(job);
  options.record = true;
  std::optional<StepRun> run, rounded;
  const auto carry_out = [&]() -> Expected<StepRun> {
    if (!job.placement) return run_step(on_cuda(), *job.model, job.plan, options);
    auto placed = run_placement(on_cuda(), job, options);
    if (!placed) return placed.error();
    return std::move(placed->step);
  };
  if (auto done = carried_out(job, carry_out, run, rounded); !done) return done.error();
  return compared_with_whole(job, options, *run, rounded, "the GPU", how);
}

Expected<std::optional<StepNumerics>> prove_on_gpus(const StepJob& job, probe::GpuCollectives& exchanges,
                                                    probe::Transport& transport, std::string& how) {
  StepOptions options = options_of(job);
  options.record = true;
  const auto communicator = in_cuda::gpu_communicator(exchanges);
  std::optional<Error> error;
  try {
    std::optional<StepRun> run, rounded;
    const auto carry_out = [&]() -> Expected<StepRun> {
      if (!job.placement) return run_apart(job, options, *communicator, transport);
      auto placed = run_placement_apart(on_cuda(), job, options, links_over(exchanges), transport);
      if (!placed) return placed.error();
      return std::move(placed->step);
    };
    const auto done = carried_out(job, carry_out, run, rounded);
    if (done && exchanges.rank() != 0) return std::optional<StepNumerics>();
    const std::string where =
        fmt::format("{} GPUs with {} by NCCL", exchanges.ranks(), job.placement ? "transfers" : "sums");
    auto numerics = done ? compared_with_whole(job, options, *run, rounded, where, how) : done.error();
    if (numerics) return std::optional(std::move(*numerics));
    error = numerics.error();
  } catch (const std::bad_alloc&) {
    error = out_of_memory();
  }
  communicator->give_up();
  return *error;
}

Expected<StepMeasurement> measure_on_gpus(const StepJob& job, probe::GpuCollectives& exchanges,
                                          const StepProgress& progress) {
  const InFp32 afterwards;
  const auto communicator = in_cuda::gpu_communicator(exchanges);
  if (auto fine = compute_on_gpu_in(job.precision); !fine) {
    communicator->give_up();
    return fine.error();
  }
  auto measured =
      job.placement ? measure_one_device(job, exchanges, progress) : measure_one_rank(job, *communicator, progress);
  if (!measured) return measured;
  measured->cores = exchanges.ranks();
  add_note(*measured,
           fmt::format("a GPU for each of the {} ranks, {} by NCCL {}", exchanges.ranks(),
                       job.placement ? "transfers on a stream of their own" : "exchanges", exchanges.version()));
  add_notes(job, *measured);
  return measured;
}

Expected<StepMeasurement> measure_on_gpu(const StepJob& job, const StepProgress& progress) {
  const InFp32 afterwards;
  if (auto fine = compute_on_gpu_in(job.precision); !fine) return fine.error();
  std::optional<Expected<StepMeasurement>> measured;
  const int count = job.plan.mesh.devices();
  if (job.placement) {
    measured.emplace(measure_placement(on_cuda(), job, progress));
  } else if (job.mode == StepMode::slice) {
    const auto communicator = lone_communicator(count, job.slice_device);
    measured.emplace(measure_one_rank(job, *communicator, progress));
  } else {
    ThreadRanks ranks(count);
    std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
    const auto body = [&](int r) {
      const auto communicator = ranks.communicator(r);
      if (auto done = measure_one_rank(job, *communicator, [](const char*, double, double) {}); !done)
        errors[static_cast<std::size_t>(r)] = done.error();
    };
    const auto communicator = ranks.communicator(0);
    std::vector<std::jthread> threads;
    if (auto missing = start_ranks(threads, 1, count, body, [&] { communicator->give_up(); })) return *missing;
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
