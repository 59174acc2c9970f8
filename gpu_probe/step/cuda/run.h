// SPDX-License-Identifier: Apache-2.0
// Step jobs on GPUs. On one: the part of one device alone, or all ranks of a plan as "virtual devices" whose buffers
// share the GPU and which exchange through its memory. The latter is there for the proof; its times are not those of
// separate devices, and the measurement says so. On several: a process and a GPU for each rank, exchanges by NCCL.
#pragma once

#include <optional>

#include "core/probe/step_job.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/timed.h"
#include "gpu_probe/transport/gpu_collectives.h"

namespace turnpoint::probe::cuda {
struct Gpu;
}

namespace turnpoint::step {

/// Opens the GPU of this number for this process, once. Error: what is missing, in words for people.
Expected<void> open_gpu(int index);
/// Float or bf16 there.
const Arithmetic& on_cuda();
/// The one that is open.
probe::cuda::Gpu& opened_gpu();

/// Why a job is not begun: more memory than the GPU has free for so many ranks, or too many of them. `own`: of a
/// placement, the one device whose tasks run here; -1: all of them.
Expected<void> check_job_on_gpu(const StepJob& job, int ranks, int own = -1);

/// From now on steps on the open GPU are carried out in fp32, in tf32 (products and convolutions multiply so), or in
/// bf16: tensors are kept in it, kernels and products sum in fp32, the update has fp32 masters of the weights. Not
/// while one is. Error: why this GPU does not do so.
Expected<void> compute_on_gpu_in(ProbePrecision precision);

/// How far a step in bf16 is off the unpartitioned one, and how far rounding every tensor that it keeps may bring it.
/// Both recorded, `compared` with each other. The loss counts as no smaller than the root of its summands' squares.
StepRounding rounding_of(const Model& model, const StepOptions& options, const StepRun& step, const StepRun& whole,
                         const Comparison& compared);

/// The partitioned step on the GPU, in fp32 (and once more in bf16 where the job is in that), against the unpartitioned
/// one: in double by plain loops of the CPU where that takes no longer than the job's budget, else on the GPU. Errors
/// of tensors are relative in the sense of Comparison::typical. `how`: in words, for the report.
Expected<StepNumerics> prove_on_gpu(const StepJob& job, std::string& how);

/// Timed steps by the GPU's own clock.
Expected<StepMeasurement> measure_on_gpu(const StepJob& job, const StepProgress& progress);

/// The same where every rank has a GPU; all ranks call these. Numerics and measurement are rank 0's; a rank that fails
/// gives up, so that none waits.
Expected<std::optional<StepNumerics>> prove_on_gpus(const StepJob& job, probe::GpuCollectives& exchanges,
                                                    probe::Transport& transport, std::string& how);
Expected<StepMeasurement> measure_on_gpus(const StepJob& job, probe::GpuCollectives& exchanges,
                                          const StepProgress& progress);

}  // namespace turnpoint::step
