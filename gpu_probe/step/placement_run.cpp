// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_run.h"

#include <algorithm>
#include <new>
#include <optional>
#include <thread>

#include "core/base/text.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/measure/statistics.h"
#include "gpu_probe/step/placement_rank.h"

namespace turnpoint::step::TURNPOINT_REAL {

namespace {

constexpr int kLeastPlacedSteps = 3;
constexpr char kGaveUpElsewhere[] = "another rank gave up";
constexpr double kPlacementOpening = 300;  // s for gigabytes of weights and the libraries

Spread spread_over(std::vector<double> seconds) {
  const auto of = probe::spread_of(std::move(seconds));
  return {of.least, of.q1, of.median, of.q3, of.samples};
}

/// What a rank says of one step, and of all of them: columns of numbers on the board.
struct PlacementColumns {
  explicit PlacementColumns(const PlacedProgram& program)
      : tasks(program.tasks.size()), transfers(program.transfers.size()) {}
  std::size_t tasks, transfers;
  std::size_t of_step() const { return 1 + tasks + transfers; }  // the step, tasks, transfers
  std::size_t at_end() const { return 7 + transfers; }           // memory, bytes of transfers
  std::size_t all(int steps) const { return static_cast<std::size_t>(steps) * of_step() + at_end(); }
};

/// What a rank has to say by itself comes first.
std::optional<Error> first_of(const std::vector<std::optional<Error>>& errors) {
  std::optional<Error> first;
  for (const auto& error : errors)
    if (error && (!first || (first->what == kGaveUpElsewhere && error->what != kGaveUpElsewhere) ||
                  (first->code == ErrorCode::device && error->code != ErrorCode::device)))
      first = error;
  return first;
}

class PlacementMeasurer {
 public:
  PlacementMeasurer(const StepJob& job, const PlacedProgram& program, PlacementBoard& board, int rank,
                    const StepProgress& progress)
      : job_(job), program_(program), columns_(program), board_(board), rank_(rank), progress_(progress) {}

  Expected<StepMeasurement> run() {
    progress_("making parameters", 0, kPlacementOpening);
    PlacedRank step(program_, board_, rank_);
    const double limit = job_.budget_s + 10;
    for (int i = 0; i < job_.warm_up; ++i) {
      progress_("warming up", 0, limit);
      if (auto done = one(step); !done) return done.error();
    }
    counted_memory().reset_peak();
    const double began = probe::host_clock();
    int steps = 0;
    for (bool over = false; !over; ++steps) {
      progress_("timing steps", static_cast<double>(steps) / job_.steps, limit);
      if (auto done = one(step); !done) return done.error();
      double* row = board_.results(rank_) + static_cast<std::size_t>(steps) * columns_.of_step();
      *row++ = seconds_;
      row = std::copy(step.task_seconds().begin(), step.task_seconds().end(), row);
      std::copy(step.transfer_seconds().begin(), step.transfer_seconds().end(), row);
      // All do as rank 0 says.
      if (rank_ == 0)
        end_of(0)[6] =
            steps + 1 >= job_.steps || (steps + 1 >= kLeastPlacedSteps && probe::host_clock() - began > job_.budget_s);
      if (auto done = board_.meet(++meetings_); !done) return done.error();
      over = end_of(0)[6] != 0;
    }
    const StepReport& report = step.report();
    const auto most = [&](Held kind) {
      return static_cast<double>(report.ledger.most[static_cast<std::size_t>(kind)]);
    };
    double* end = end_of(rank_);
    end[0] = most(Held::parameters), end[1] = most(Held::gradients), end[2] = most(Held::optimizer);
    end[3] = static_cast<double>(counted_memory().peak());
    end[4] = static_cast<double>(report.ledger.peak);
    end[5] = static_cast<double>(scratch_memory().peak());
    std::copy(step.received_bytes().begin(), step.received_bytes().end(), end + 7);
    if (auto done = board_.meet(++meetings_); !done) return done.error();
    return put_together(steps);
  }

 private:
  double* end_of(int rank) { return board_.results(rank) + static_cast<std::size_t>(job_.steps) * columns_.of_step(); }
  int ranks() const { return static_cast<int>(program_.placement->devices); }

  Expected<void> one(PlacedRank& step) {
    if (auto done = board_.meet(++meetings_); !done) return done;
    if (auto done = step.run(++number_); !done) return done;
    seconds_ = step.report().seconds_all;
    return {};
  }

  /// Of all steps one number made of all ranks'.
  template <class Join>
  std::vector<double> column(int steps, std::size_t which, const Join& join) {
    std::vector<double> values;
    for (int s = 0; s < steps; ++s) {
      double value = 0;
      for (int r = 0; r < ranks(); ++r)
        value = join(value, board_.results(r)[static_cast<std::size_t>(s) * columns_.of_step() + which]);
      values.push_back(value);
    }
    return values;
  }

  StepMeasurement put_together(int steps) {
    const auto sum = [](double a, double b) { return a + b; };
    StepMeasurement m;
    m.backend = kOnDevice ? "cuda" : "cpu";
    m.ranks = ranks();
    m.step = spread_over(column(steps, 0, [](double a, double b) { return std::max(a, b); }));
    const std::size_t operators = program_.tasks_of.size();
    std::vector<std::vector<double>> phases(operators * 4), busy(static_cast<std::size_t>(ranks()));
    const auto add = [&](std::vector<double>& to, const std::vector<double>& times) {
      to.resize(times.size(), 0);
      for (std::size_t s = 0; s < times.size(); ++s) to[s] += times[s];
    };
    for (TaskIndex t = 0; t < columns_.tasks; ++t) {
      const auto times = column(steps, 1 + t, sum);
      m.tasks.push_back({t, spread_over(times)});
      const auto& task = program_.placement->tasks[t];
      const auto phase = task.role == TaskRole::forward  ? StepPhase::forward
                         : task.role == TaskRole::update ? StepPhase::update
                                                         : StepPhase::backward;
      add(phases[task.op.index * 4 + static_cast<std::size_t>(phase)], times);
      add(busy[task.device], times);
    }
    for (std::size_t i = 0; i < phases.size(); ++i)
      if (!phases[i].empty())
        m.phases.push_back({OperatorId(i / 4), static_cast<StepPhase>(i % 4), spread_over(phases[i])});
    for (std::size_t t = 0; t < columns_.transfers; ++t) {
      MeasuredTransfer transfer;
      transfer.transfer = static_cast<std::int32_t>(t);
      transfer.planned_bytes = static_cast<double>(program_.placement->transfers[t].bytes);
      transfer.received_bytes = end_of(program_.transfers[t].to)[7 + t];
      transfer.time = spread_over(column(steps, 1 + columns_.tasks + t, sum));
      m.planned_bytes += transfer.planned_bytes;
      m.received_bytes += transfer.received_bytes;
      m.transfers.push_back(transfer);
    }
    double scratch = 0;
    for (int r = 0; r < ranks(); ++r) {
      const double* end = end_of(r);
      const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(end[i]); };
      MeasuredDevice device;
      device.persistent = at(0) + at(2);
      device.peak = at(3);
      if (busy[static_cast<std::size_t>(r)].empty()) busy[static_cast<std::size_t>(r)].assign(std::size_t(steps), 0);
      device.busy = spread_over(busy[static_cast<std::size_t>(r)]);
      m.devices.push_back(device);
      scratch = std::max(scratch, end[5]);
      if (r == 0 || at(3) > m.memory.peak) m.memory = {at(0), at(1), at(2), 0, at(3), at(4)};
    }
    if (scratch > 0)
      m.notes.push_back(format_bytes(static_cast<std::int64_t>(scratch)) +
                        " of scratch inside kernels on one rank, which no plan lists and the peak leaves out");
    if (!kOnDevice && job_.floating_bytes != 4)
      m.notes.emplace_back("computed in fp32 on CPU ranks; bytes are those of the plan");
    return m;
  }

  const StepJob& job_;
  const PlacedProgram& program_;
  const PlacementColumns columns_;
  PlacementBoard& board_;
  int rank_;
  const StepProgress& progress_;
  std::uint64_t meetings_ = 0, number_ = 0;
  double seconds_ = 0;
};

}  // namespace

Expected<PlacementRun> run_placement(const StepJob& job, const StepOptions& options, int steps) {
  const auto program = PlacedProgram::make(job, options);
  if (!program) return program.error();
  const auto board = PlacementBoard::in_memory(board_shape(**program, 0));
  if (!board) return board.error();
  const std::size_t count = job.placement->devices;
  PlacementRun run;
  run.step.ranks.resize(count);
  std::vector<std::vector<double>> received(count);
  std::vector<std::optional<Error>> errors(count);
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < count; ++r)
      threads.emplace_back([&, r] {
        try {
          PlacedRank step(**program, **board, static_cast<int>(r));
          Expected<void> done;
          for (int s = 1; s <= steps && done; ++s) {
            done = step.run(static_cast<std::uint64_t>(s));
            if (done) done = (*board)->meet(static_cast<std::uint64_t>(s));
          }
          if (!done) errors[r] = done.error();
          run.step.ranks[r] = std::move(step.report());
          received[r] = step.received_bytes();
        } catch (const std::bad_alloc&) {
          errors[r] = Error{ErrorCode::device, "out of memory", job.model->name, "a smaller batch or model"};
        }
        if (errors[r]) (*board)->give_up();
      });
  }
  if (const auto error = first_of(errors)) return *error;
  for (const auto& report : run.step.ranks) run.step.loss += report.loss;
  run.received_bytes.assign((*program)->transfers.size(), 0);
  for (const auto& of_rank : received)
    for (std::size_t t = 0; t < of_rank.size(); ++t) run.received_bytes[t] += of_rank[t];
  return run;
}

namespace {

/// Many steps on the same random data: far from where numbers get out of hand.
StepOptions timed_options(const StepJob& job) {
  StepOptions options = options_of(job);
  options.learning_rate = 1e-5;
  options.quick = true;
  return options;
}

}  // namespace

#ifdef TURNPOINT_STEP_CUDA

Expected<StepMeasurement> measure_placement(const StepJob& job, const StepProgress& progress) {
  const auto program = PlacedProgram::make(job, timed_options(job));
  if (!program) return program.error();
  const auto board = PlacementBoard::in_memory(board_shape(**program, PlacementColumns(**program).all(job.steps)));
  if (!board) return board.error();
  std::vector<std::optional<Error>> errors(job.placement->devices);
  std::optional<StepMeasurement> measured;
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < errors.size(); ++r)
      threads.emplace_back([&, r] {
        const StepProgress silent = [](const char*, double, double) {};
        try {
          auto one = PlacementMeasurer(job, **program, **board, static_cast<int>(r), r == 0 ? progress : silent).run();
          if (!one)
            errors[r] = one.error();
          else if (r == 0)
            measured = std::move(*one);
        } catch (const std::bad_alloc&) {
          errors[r] = Error{ErrorCode::device, "the GPU's memory is too small for this step", job.model->name,
                            "a smaller batch or model"};
        }
        if (errors[r]) (*board)->give_up();
      });
  }
  if (const auto error = first_of(errors)) return *error;
  return std::move(*measured);
}

#else

Expected<StepMeasurement> measure_placed_rank(const StepJob& job, probe::SharedRegion& region, int rank,
                                              const StepProgress& progress) {
  const auto program = PlacedProgram::make(job, timed_options(job));
  if (!program) return program.error();
  const auto shape = board_shape(**program, PlacementColumns(**program).all(job.steps));
  const auto board = PlacementBoard::in_file(region.file(), shape, [&region] { return region.aborted(); });
  if (!board) return board.error();
  auto measured = PlacementMeasurer(job, **program, **board, rank, progress).run();
  if (!measured) (*board)->give_up();
  return measured;
}

#endif

}  // namespace turnpoint::step::TURNPOINT_REAL
