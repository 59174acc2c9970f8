// SPDX-License-Identifier: Apache-2.0
// The unpartitioned step of a proof: as much work as all ranks together, done by one thread, which would leave other
// cores idle after them. So it is carried out beside them where there is memory for both.
#pragma once

#include <functional>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/machine_memory.h"
#include "core/plan/step_job.h"
#include "gpu_probe/step/run.h"

namespace turnpoint::step {

class WholeStep {
 public:
  /// What `run` refers to must outlive this.
  WholeStep(const StepJob& job, std::function<Expected<StepRun>()> run) : run_(std::move(run)) {
    // What GPT-2 and an LSTM took more than one after the other: at most a half. Three quarters of what can be had.
    constexpr double kMore = 1.5, kMost = 0.75;
    const auto there = static_cast<double>(machine_memory().available);
    if (kMore * proof_needs(*job.model, job.plan).bytes > kMost * there) return;
    try {
      thread_ = std::thread([this] { carry_out(); });
    } catch (const std::system_error&) {  // a limit of processes: then after the ranks
    }
  }
  WholeStep(const WholeStep&) = delete;
  WholeStep& operator=(const WholeStep&) = delete;
  ~WholeStep() {
    if (thread_.joinable()) thread_.join();
  }

  /// Once it is done.
  const Expected<StepRun>& get() {
    if (thread_.joinable())
      thread_.join();
    else if (!result_)
      carry_out();
    return *result_;
  }

 private:
  void carry_out() {
    try {
      result_ = run_();
    } catch (const std::bad_alloc&) {
      result_ = Error{ErrorCode::device, "out of memory", {}, "a smaller batch or model"};
    }
  }
  std::function<Expected<StepRun>()> run_;
  std::optional<Expected<StepRun>> result_;
  std::thread thread_;
};

}  // namespace turnpoint::step
