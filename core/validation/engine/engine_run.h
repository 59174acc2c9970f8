// SPDX-License-Identifier: Apache-2.0
// Starts the processes of an engine that carry a plan out, and listens to them. Whatever they do - crash, hang, never
// start, print garbage - ends in one Error, and none of them outlives the run: each looks whether its launcher and the
// run's files are still there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/validation/engine/engine_step.h"

namespace turnpoint {

/// The Python of an engine: `told`, if not empty; else that of the environment that packaging/engines makes, in the
/// folder that TURNPOINT_ENGINES names, or the user's cache. Device error: there is none, with the command that makes
/// one.
Expected<std::string> find_engine_python(const Engine& engine, const std::string& told);

struct EngineLaunch {
  std::string python;
  /// In front of the program: "torchrun", "--nproc-per-node", "4", or "srun", "mpirun". Empty: as many processes as the
  /// plan has devices are started on this machine.
  std::vector<std::string> launcher;
  double most_s = 0;    ///< after which a run is ended; 0: most_engine_seconds()
  double ending_s = 3;  ///< between asking it to end and ending it by force
};

/// What a run takes at most: loading the engine, making and proving the model, and the steps, which may take three
/// times their budget.
double most_engine_seconds(const EngineJob& job, bool launched);

/// The words that start the run of a folder with the program.
std::vector<std::string> engine_command(const EngineJob& job, const EngineLaunch& launch, const std::string& folder);

/// Errors: device (absent, crashed, hung, ended without a result, or what a process says), cancelled. Its files lie in
/// the folder for temporary ones (TMPDIR), which all hosts of a launcher have to see.
Expected<EngineMeasurement> run_engine(const EngineJob& job, const EngineLaunch& launch, const RunContext& context);

}  // namespace turnpoint
