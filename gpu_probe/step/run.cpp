// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/run.h"

#include <algorithm>

#include <new>
#include <optional>
#include <thread>
#include <tuple>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/rank_step.h"
#include "gpu_probe/step/rank_threads.h"

namespace turnpoint::step {

Expected<StepRun> run_step(const Arithmetic& in, const Model& model, const Plan& plan, const StepOptions& options) {
  const ComputeIn here(in);
  const auto program = Program::make(model, plan, options);
  if (!program) return program.error();
  const int count = plan.mesh.devices();
  ThreadRanks ranks(count);
  StepRun run;
  run.ranks.resize(static_cast<std::size_t>(count));
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
  std::optional<Error> not_started;
  {
    const auto body = [&](int r) {
      const auto communicator = ranks.communicator(r);
      auto& error = errors[static_cast<std::size_t>(r)];
      try {
        RankStep step(**program, *communicator);
        if (auto done = step.run(); !done) error = done.error();
        run.ranks[static_cast<std::size_t>(r)] = std::move(step.report());  // what it recorded is large
      } catch (const std::bad_alloc&) {
        error = Error{ErrorCode::device, "out of memory", model.name, "a smaller batch or model"};
      }
      if (error) communicator->give_up();
    };
    std::vector<std::jthread> threads;
    not_started = start_ranks(threads, 0, count, body, [&] { ranks.communicator(0)->give_up(); });
  }
  if (not_started) return *not_started;
  const std::optional<Error>* first = nullptr;
  for (const auto& error : errors)
    if (error && (!first || ((*first)->code == ErrorCode::device && error->code != ErrorCode::device))) first = &error;
  if (first) return **first;
  for (const auto& report : run.ranks) run.loss += report.loss;
  return run;
}

Expected<StepRun> run_whole(const Arithmetic& in, const Model& model, const Plan& plan, StepOptions options) {
  options.shares = statistics_shares(model, plan);
  return run_step(in, model, whole_plan(model), options);
}

}  // namespace turnpoint::step
