// SPDX-License-Identifier: Apache-2.0
// Runs turnpoint-probe and listens to it. Whatever it does - crash, hang, print garbage, never come up - ends in one
// Error, within a second after a stop; a launcher that has delivered the result and does not end is ended, and the
// result stands. Any thread may call; several probes may run at once.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/hardware/probe_messages.h"

namespace turnpoint {

/// The variables by which processes of one run know each other. Launchers hand the first on from host to host, but for
/// Open MPI, which does so with what begins as the second.
inline constexpr const char* kRunToken = "TURNPOINT_TOKEN";
inline constexpr const char* kOpenMpiToken = "OMPI_TURNPOINT_TOKEN";

struct ProbeLaunch {
  std::string program;    ///< path of turnpoint-probe
  double silence_s = 10;  ///< without a sound for so long, it counts as hung (it says something every second)
  double ending_s = 0.4;  ///< between asking it to end and ending it by force
  std::function<void(const std::string& line)> on_line;  ///< every line as it comes, for recordings; may be empty
  /// Words in front of the program, which start it on several hosts ("mpirun", "-n", "4"): the first of them is looked
  /// for in PATH. Its standard input must reach rank 0, and rank 0's output its own. Unless the environment has a token
  /// for the run, it is given a random one.
  std::vector<std::string> launcher = {};
};
/// "mpirun -n 4 --hostfile 'my hosts'" as words; quotes and backslashes as in a shell, nothing else of one. Usage
/// error: a quote is not closed.
Expected<std::vector<std::string>> launcher_words(std::string_view text);

/// What is made of the lines of one run.
class ProbeSink {
 public:
  virtual ~ProbeSink() = default;
  /// An error ends the run: the line is no message, or it says what went wrong.
  virtual Expected<void> take(std::string_view line) = 0;
  virtual bool finished() const = 0;  ///< the result is there
  virtual ProbeProgress progress() const = 0;
};

/// Any job, as the text of its document; a run of more than `most_s` is ended. Errors: device (absent, crashed, hung,
/// garbage, cut short, or the probe's own), bad_input (the job was refused), cancelled.
Expected<void> run_probe(const ProbeLaunch& launch, const std::string& job, double most_s, ProbeSink& sink,
                         const RunContext& context);

/// What a job that measures kernels takes at most: its budget, one item that began before its end, and what goes before
/// (ranks that wait for each other; half a gigabyte of libraries of a GPU; its kernels' checks). A probe that only ever says that it
/// lives is ended then.
double most_seconds(const ProbeJob& job);
/// A job that measures kernels. What was measured before an error is in `partial`, if given.
Expected<ProbeMessages> run_probe(const ProbeLaunch& launch, const ProbeJob& job, const RunContext& context,
                                  ProbeMessages* partial = nullptr);

/// turnpoint-probe beside this program, or where the environment variable TURNPOINT_PROBE says; a device error that
/// names where it was looked for.
Expected<std::string> find_probe();

}  // namespace turnpoint
