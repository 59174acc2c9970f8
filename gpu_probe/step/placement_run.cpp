// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_run.h"

#include <new>
#include <optional>
#include <thread>

#include "gpu_probe/step/placement_rank.h"
#include "gpu_probe/step/rank_threads.h"
#include "gpu_probe/step/run_apart.h"

namespace turnpoint::step {

namespace {

constexpr char kGaveUpElsewhere[] = "another rank gave up";

/// This rank's part of some steps; its report and bytes are those of the last.
Expected<void> carry_out(PlacedRank& rank, PlacementLinks& links, int steps) {
  for (int s = 1; s <= steps; ++s) {
    if (auto done = rank.run(static_cast<std::uint64_t>(s)); !done) return done;
    if (auto done = links.meet(); !done) return done;
  }
  return {};
}

/// On rank 0 what all ranks have recorded and received.
Expected<PlacementRun> carried_out_apart(const StepJob& job, const PlacedProgram& program, PlacementLinks& links,
                                         probe::Transport& transport, int steps) {
  PlacementRun run;
  PlacedRank rank(program, links);
  if (auto done = carry_out(rank, links, steps); !done) return done.error();
  const auto received = links.gather(rank.received_bytes());
  if (!received) return received.error();
  run.received_bytes.assign(program.transfers.size(), 0);
  for (std::size_t i = 0; i < received->size(); ++i)
    run.received_bytes[i % run.received_bytes.size()] += (*received)[i];
  auto step = gathered(std::move(rank.report()), *job.model, links.rank(), static_cast<int>(program.placement->devices),
                       transport);
  if (!step) return step.error();
  run.step = std::move(*step);
  return run;
}

}  // namespace

std::optional<Error> first_own(const std::vector<std::optional<Error>>& errors) {
  std::optional<Error> first;
  for (const auto& error : errors)
    if (error && (!first || (first->what == kGaveUpElsewhere && error->what != kGaveUpElsewhere) ||
                  (first->code == ErrorCode::device && error->code != ErrorCode::device)))
      first = error;
  return first;
}

Expected<PlacementRun> run_placement(const Arithmetic& in, const StepJob& job, const StepOptions& options, int steps) {
  const ComputeIn here(in);
  const auto program = PlacedProgram::make(job, options);
  if (!program) return program.error();
  const auto board = PlacementBoard::in_memory(board_shape(**program, 0));
  if (!board) return board.error();
  const std::size_t count = job.placement->devices;
  PlacementRun run;
  run.step.ranks.resize(count);
  std::vector<std::vector<double>> received(count);
  std::vector<std::optional<Error>> errors(count);
  std::optional<Error> not_started;
  {
    const auto body = [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      try {
        const auto links = board_links(**program, **board, rank);
        PlacedRank step(**program, *links);
        if (auto done = carry_out(step, *links, steps); !done) errors[r] = done.error();
        run.step.ranks[r] = std::move(step.report());
        received[r] = step.received_bytes();
      } catch (const std::bad_alloc&) {
        errors[r] = Error{ErrorCode::device, "out of memory", job.model->name, "a smaller batch or model"};
      }
      if (errors[r]) (*board)->give_up();
    };
    std::vector<std::jthread> threads;
    not_started = start_ranks(threads, 0, static_cast<int>(count), body, [&] { (*board)->give_up(); });
  }
  if (not_started) return *not_started;
  if (const auto error = first_own(errors)) return *error;
  for (const auto& report : run.step.ranks) run.step.loss += report.loss;
  run.received_bytes.assign((*program)->transfers.size(), 0);
  for (const auto& of_rank : received)
    for (std::size_t t = 0; t < of_rank.size(); ++t) run.received_bytes[t] += of_rank[t];
  return run;
}

Expected<PlacementRun> run_placement_apart(const Arithmetic& in, const StepJob& job, const StepOptions& options,
                                           const LinksOf& links_of, probe::Transport& transport, int steps) {
  const ComputeIn here(in);
  const auto program = PlacedProgram::make(job, options);
  if (!program) return program.error();
  const auto links = links_of(**program);
  if (!links) return links.error();
  auto run = carried_out_apart(job, **program, **links, transport, steps);
  if (!run) (*links)->give_up();
  return run;
}

Expected<PlacementRun> run_placement_apart(const Arithmetic& in, const StepJob& job, const StepOptions& options,
                                           const PlacementCarriers& carriers, int steps) {
  const LinksOf links_of = [&](const PlacedProgram& program) { return host_links(program, carriers); };
  return run_placement_apart(in, job, options, links_of, carriers.transport, steps);
}

}  // namespace turnpoint::step
