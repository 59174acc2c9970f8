// SPDX-License-Identifier: Apache-2.0
// The real turnpoint-probe on emulated GPUs: how tests start it, and what is asked of every line that it says.
#pragma once

#include <QProcessEnvironment>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/hardware/probe_client.h"
#include "core/probe/step_client.h"
#include "gpu_probe/emulated_gpu/load.h"
#include "plan_io/schema_check.h"

namespace turnpoint::test {

/// While one lives, processes started from this one find the emulated libraries: so many GPUs, and NCCL only if there
/// are several. What tests set of the emulation (TURNPOINT_EMULATED_...) goes with it.
class EmulatedProbe {
 public:
  explicit EmulatedProbe(int gpus = 1) : path_(qgetenv("LD_LIBRARY_PATH")) {
    if (gpus <= 1) {
      qputenv("LD_LIBRARY_PATH", TURNPOINT_EMULATED_GPU_DIR);
    } else {
      qputenv("LD_LIBRARY_PATH", TURNPOINT_EMULATED_GPU_DIR ":" TURNPOINT_EMULATED_NCCL_DIR);
      qputenv("TURNPOINT_EMULATED_GPUS", QByteArray::number(gpus));
    }
  }
  ~EmulatedProbe() {
    qputenv("LD_LIBRARY_PATH", path_);
    for (const QString& name : QProcessEnvironment::systemEnvironment().keys())
      if (name.startsWith("TURNPOINT_EMULATED_")) qunsetenv(name.toLatin1());
  }
  EmulatedProbe(const EmulatedProbe&) = delete;

  ProbeLaunch launch() {
    ProbeLaunch launch;
    launch.program = TURNPOINT_BINARY_DIR "/turnpoint-probe";
    launch.silence_s = 60;
    lines_.clear();
    launch.on_line = [this](const std::string& line) {
      lines_.push_back(nlohmann::json::parse(line));
      const std::string wrong = schemas_.check("probe-message@1", lines_.back());
      if (!wrong.empty() && wrong_.empty()) wrong_ = line + ": " + wrong;
    };
    return launch;
  }
  /// What the last launch has said.
  const std::vector<nlohmann::json>& lines() const { return lines_; }
  /// The first line of any launch that was not as the schema has it, and why; empty: none.
  const std::string& wrong() const { return wrong_; }

 private:
  SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};
  QByteArray path_;
  std::vector<nlohmann::json> lines_;
  std::string wrong_;
};

inline bool notes_say(const StepMeasurement& m, const std::string& what) {
  return std::any_of(m.notes.begin(), m.notes.end(),
                     [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

/// What is wrong with a proven step on so many GPUs, three times timed; empty: nothing.
inline std::string wrong_with_gpus(const StepMeasurement& m, int gpus) {
  if (m.backend != "cuda" || m.ranks != gpus || m.cores != gpus || m.step.samples != 3 || m.step.min_s <= 0)
    return "head";
  if (!notes_say(m, "a GPU for each of the " + std::to_string(gpus) + " ranks") || notes_say(m, "virtual devices"))
    return "notes";
  if (!m.numerics) return "not proven";
  const StepNumerics& n = *m.numerics;
  const double worst = std::max({n.loss_error, n.activation_error, n.gradient_error, n.update_error});
  if (!(worst < 1e-4) || n.precision != "fp32" || n.tolerance > 1e-3)
    return "differs by " + std::to_string(worst) + " at " + n.where;
  return {};
}

}  // namespace turnpoint::test
