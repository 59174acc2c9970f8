// SPDX-License-Identifier: Apache-2.0
// Has turnpoint-probe carry out a step job and reads what it says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/hardware/probe_client.h"
#include "core/probe/step_job.h"

namespace turnpoint {

/// The lines of a step job's run; a recording of them can be read again.
class StepMessages : public ProbeSink {
 public:
  /// What the lines speak of is checked against the job, which must outlive this.
  explicit StepMessages(const StepJob& job) : job_(job) {}
  Expected<void> take(std::string_view line) override;
  bool finished() const override { return finished_; }
  ProbeProgress progress() const override { return progress_; }

  const std::optional<ProbeHello>& hello() const { return hello_; }
  const StepMeasurement& measurement() const { return measurement_; }

 private:
  MeasuredPhase read_phase(JsonFields& fields) const;
  MeasuredExchange read_exchange(JsonFields& fields) const;
  void read_result(JsonFields& fields);

  const StepJob& job_;
  std::optional<ProbeHello> hello_;
  ProbeProgress progress_;
  StepMeasurement measurement_;
  bool finished_ = false;
};

/// What a step job takes at most, by the limits that the probe keeps to itself: what goes before (`launched`: processes
/// on several hosts wait for each other), the proof where it is affordable, and the steps, which may take three times
/// their budget. A probe that only ever says that it lives is ended then.
double most_seconds(const StepJob& job, bool launched);

/// Errors as those of run_probe(): device, bad_input (the plan cannot be executed, and why), cancelled. `hello`, if
/// given, receives what the probe said of itself and its devices.
Expected<StepMeasurement> measure_step(const ProbeLaunch& launch, const StepJob& job, const RunContext& context,
                                       std::optional<ProbeHello>* hello = nullptr);

/// Reads a recording of what the probe printed for this job, elsewhere perhaps. Input error: it belongs to another job,
/// breaks off before its result, or is none; the message names the line. An error that the probe printed is returned
/// as it is.
Expected<StepMeasurement> read_step_recording(const std::string& path, const StepJob& job);

}  // namespace turnpoint
