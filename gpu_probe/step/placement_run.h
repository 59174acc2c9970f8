// SPDX-License-Identifier: Apache-2.0
// A placed step on ranks that are threads of this process, its proof, and timed steps on ranks that are processes.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "gpu_probe/step/run.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::step {

class PlacementLinks;
struct PlacedProgram;
struct PlacementCarriers;

/// A placed step of all ranks.
struct PlacementRun {
  StepRun step;                        ///< what was recorded; `traffic` stays empty
  std::vector<double> received_bytes;  ///< by transfer
};

/// One thread per device of the job's placement; `steps` one after the other, the last one's are reported. Error: of
/// the first rank that found one.
Expected<PlacementRun> run_placement(const Arithmetic& in, const StepJob& job, const StepOptions& options,
                                     int steps = 1);
/// By what this rank reaches the others that carry out a program. Error: not at all.
using LinksOf = std::function<Expected<std::unique_ptr<PlacementLinks>>(const PlacedProgram&)>;
/// The same by ranks that are processes, all of which call this, of several hosts or with a GPU each; what was recorded
/// is rank 0's to have. A rank that fails gives up.
Expected<PlacementRun> run_placement_apart(const Arithmetic& in, const StepJob& job, const StepOptions& options,
                                           const LinksOf& links_of, probe::Transport& transport, int steps = 1);
Expected<PlacementRun> run_placement_apart(const Arithmetic& in, const StepJob& job, const StepOptions& options,
                                           const PlacementCarriers& carriers, int steps = 1);
/// One rank's part of all steps of a job with a placement, as measure_rank(); in float by ranks of one host, and of
/// several.
Expected<StepMeasurement> measure_placed_rank(const Arithmetic& in, const StepJob& job, const LinksOf& links_of,
                                              const StepProgress& progress);
Expected<StepMeasurement> measure_placed_rank(const StepJob& job, probe::SharedRegion& region, int rank,
                                              const StepProgress& progress);
Expected<StepMeasurement> measure_placed_rank(const StepJob& job, const PlacementCarriers& carriers,
                                              const StepProgress& progress);
/// Of all ranks, which are threads and share a GPU's memory and stream.
Expected<StepMeasurement> measure_placement(const Arithmetic& in, const StepJob& job, const StepProgress& progress);

/// Of several ranks' errors the one that says most; nothing where there is none.
std::optional<Error> first_own(const std::vector<std::optional<Error>>& errors);

/// As check_job(), of a job with a placement, for those of its devices whose ranks this host has.
Expected<void> check_placement_job(const StepJob& job, int first, int count);

/// Error: something that the whole step has was not computed by the placed one.
Expected<void> check_all_computed(const StepJob& job, const Comparison& compared, const StepRun& whole);

/// The placed step, its ranks as threads, against the whole model on one rank, both in double.
Expected<StepNumerics> prove_placement(const StepJob& job);
/// The same by ranks of several hosts, all of which call this. Rank 0 compares; the others get nothing.
Expected<std::optional<StepNumerics>> prove_placement(const StepJob& job, const PlacementCarriers& carriers);

}  // namespace turnpoint::step
