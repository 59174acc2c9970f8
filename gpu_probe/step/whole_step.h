// SPDX-License-Identifier: Apache-2.0
// The unpartitioned step of a proof: as much work as all ranks together, done by one thread, which would leave other
// cores idle after them. So it is carried out beside them; ProofNeeds counts the memory of both.
#pragma once

#include <functional>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "gpu_probe/step/run.h"

namespace turnpoint::step {

class WholeStep {
 public:
  /// What `run` refers to must outlive this.
  explicit WholeStep(std::function<Expected<StepRun>()> run) : run_(std::move(run)) {
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
