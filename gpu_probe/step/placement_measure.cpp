// SPDX-License-Identifier: Apache-2.0
// Timed steps of a placement: each rank's rows of numbers, and the putting together of what all ranks saw.
#include <algorithm>
#include <new>
#include <optional>
#include <thread>

#include "core/base/text.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/measure/statistics.h"
#include "gpu_probe/step/placement_rank.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step/rank_threads.h"

namespace turnpoint::step {

namespace {

constexpr int kLeastPlacedSteps = 3;
constexpr double kPlacementOpening = 300;  // s for gigabytes of weights and the libraries

Spread spread_over(std::vector<double> seconds) {
  const auto of = probe::spread_of(std::move(seconds));
  return {of.least, of.q1, of.median, of.q3, of.samples};
}

/// Many steps on the same random data: far from where numbers get out of hand.
StepOptions timed_options(const StepJob& job) {
  StepOptions options = options_of(job);
  options.learning_rate = 1e-5;
  options.quick = true;
  return options;
}

/// What a rank says of one step, and of all of them: columns of numbers.
struct PlacementColumns {
  explicit PlacementColumns(const PlacedProgram& program)
      : tasks(program.tasks.size()), transfers(program.transfers.size()) {}
  std::size_t tasks, transfers;
  std::size_t of_step() const { return 1 + tasks + 2 * transfers; }  // the step, tasks, transfers, and on their way
  std::size_t at_end() const { return 7 + transfers; }               // memory, bytes of transfers
  std::size_t all(int steps) const { return static_cast<std::size_t>(steps) * of_step() + at_end(); }
};

class PlacementMeasurer {
 public:
  PlacementMeasurer(const StepJob& job, const PlacedProgram& program, PlacementLinks& links,
                    const StepProgress& progress)
      : job_(job), program_(program), columns_(program), links_(links), progress_(progress) {}

  Expected<StepMeasurement> run() {
    progress_("making parameters", 0, kPlacementOpening);
    PlacedRank step(program_, links_);
    const double limit = job_.budget_s + 10;
    for (int i = 0; i < job_.warm_up; ++i) {
      const std::string phase = "warming up: step " + std::to_string(i + 1) + " of " + std::to_string(job_.warm_up);
      progress_(phase.c_str(), static_cast<double>(i) / (job_.warm_up + job_.steps), limit);
      if (auto done = one(step); !done) return done.error();
    }
    counted_memory().reset_peak();
    const double began = probe::host_clock();
    for (bool over = false; !over; ++steps_) {
      progress_("timing steps", static_cast<double>(steps_) / job_.steps, limit);
      if (auto done = one(step); !done) return done.error();
      rows_.push_back(step.report().seconds_all);
      for (const auto& seconds : {step.task_seconds(), step.transfer_seconds(), links_.seconds_on_the_way()})
        rows_.insert(rows_.end(), seconds.begin(), seconds.end());
      // All do as rank 0 says.
      const auto heard = links_.follow(
          steps_ + 1 >= job_.steps || (steps_ + 1 >= kLeastPlacedSteps && probe::host_clock() - began > job_.budget_s));
      if (!heard) return heard.error();
      over = *heard;
    }
    const StepReport& report = step.report();
    for (const Held kind : {Held::parameters, Held::gradients, Held::optimizer})
      rows_.push_back(static_cast<double>(report.ledger.most[static_cast<std::size_t>(kind)]));
    for (const std::int64_t bytes :
         {counted_memory().peak(), report.ledger.peak, scratch_memory().peak(), links_.room_bytes()})
      rows_.push_back(static_cast<double>(bytes));
    rows_.insert(rows_.end(), step.received_bytes().begin(), step.received_bytes().end());
    auto all = links_.gather(rows_);
    if (!all) return all.error();
    all_ = std::move(*all);
    return put_together();
  }

 private:
  int ranks() const { return static_cast<int>(program_.placement->devices); }
  const double* row_of(int rank, int step) const {
    return all_.data() + static_cast<std::size_t>(rank) * rows_.size() +
           static_cast<std::size_t>(step) * columns_.of_step();
  }
  const double* end_of(int rank) const { return row_of(rank, steps_); }

  Expected<void> one(PlacedRank& step) {
    if (auto done = links_.meet(); !done) return done;
    if (auto done = links_.line_up(); !done) return done;
    return step.run(++number_);
  }

  /// Of all steps one number made of all ranks'.
  template <class Join>
  std::vector<double> column(std::size_t which, const Join& join) const {
    std::vector<double> values;
    for (int s = 0; s < steps_; ++s) {
      double value = 0;
      for (int r = 0; r < ranks(); ++r) value = join(value, row_of(r, s)[which]);
      values.push_back(value);
    }
    return values;
  }

  /// Handing over and taking in, and on the way what the side took that waited less for the other.
  std::vector<double> transfer_times(std::size_t t) const {
    auto times = column(1 + columns_.tasks + t, [](double a, double b) { return a + b; });
    const std::size_t way = 1 + columns_.tasks + columns_.transfers + t;
    for (int s = 0; s < steps_; ++s)
      times[static_cast<std::size_t>(s)] +=
          std::min(row_of(program_.transfers[t].from, s)[way], row_of(program_.transfers[t].to, s)[way]);
    return times;
  }

  StepMeasurement put_together() const {
    StepMeasurement m;
    m.backend = arithmetic().on_device ? "cuda" : "cpu";
    m.ranks = ranks();
    m.step = spread_over(column(0, [](double a, double b) { return std::max(a, b); }));
    const std::size_t operators = program_.tasks_of.size();
    std::vector<std::vector<double>> phases(operators * 4), busy(static_cast<std::size_t>(ranks()));
    const auto add = [&](std::vector<double>& to, const std::vector<double>& times) {
      to.resize(times.size(), 0);
      for (std::size_t s = 0; s < times.size(); ++s) to[s] += times[s];
    };
    for (TaskIndex t = 0; t < columns_.tasks; ++t) {
      const auto times = column(1 + t, [](double a, double b) { return a + b; });
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
      transfer.time = spread_over(transfer_times(t));
      m.planned_bytes += transfer.planned_bytes;
      m.received_bytes += transfer.received_bytes;
      m.transfers.push_back(transfer);
    }
    add_devices(m, busy);
    return m;
  }

  void add_devices(StepMeasurement& m, std::vector<std::vector<double>>& busy) const {
    double scratch = 0, rooms = 0;
    for (int r = 0; r < ranks(); ++r) {
      const double* end = end_of(r);
      const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(end[i]); };
      auto& times = busy[static_cast<std::size_t>(r)];
      if (times.empty()) times.assign(static_cast<std::size_t>(steps_), 0);
      MeasuredDevice device;
      device.persistent = at(0) + at(2);
      device.peak = at(3);
      device.busy = spread_over(times);
      m.devices.push_back(device);
      scratch = std::max(scratch, end[5]);
      rooms = std::max(rooms, end[6]);
      if (r == 0 || at(3) > m.memory.peak) m.memory = {at(0), at(1), at(2), 0, at(3), at(4)};
    }
    const auto note = [&](double bytes, const char* what) {
      if (bytes > 0) m.notes.push_back(format_bytes(static_cast<std::int64_t>(bytes)) + what);
    };
    note(scratch, " of scratch inside kernels on one rank, which no plan lists and the peak leaves out");
    note(rooms, " of room for transfers on one GPU, which no plan lists and the peak leaves out");
    if (!arithmetic().on_device && job_.floating_bytes != 4)
      m.notes.emplace_back("computed in fp32 on CPU ranks; bytes are those of the plan");
  }

  const StepJob& job_;
  const PlacedProgram& program_;
  const PlacementColumns columns_;
  PlacementLinks& links_;
  const StepProgress& progress_;
  std::uint64_t number_ = 0;
  int steps_ = 0;                   ///< timed ones
  std::vector<double> rows_, all_;  ///< this rank's, and all ranks'
};

Expected<StepMeasurement> measured_over(const StepJob& job, const PlacedProgram& program, PlacementLinks& links,
                                        const StepProgress& progress) {
  auto measured = PlacementMeasurer(job, program, links, progress).run();
  if (!measured) links.give_up();
  return measured;
}

}  // namespace

Expected<StepMeasurement> measure_placement(const Arithmetic& in, const StepJob& job, const StepProgress& progress) {
  const ComputeIn here(in);
  const auto program = PlacedProgram::make(job, timed_options(job));
  if (!program) return program.error();
  const auto board = PlacementBoard::in_memory(board_shape(**program, PlacementColumns(**program).all(job.steps)));
  if (!board) return board.error();
  std::vector<std::optional<Error>> errors(job.placement->devices);
  std::optional<StepMeasurement> measured;
  std::optional<Error> not_started;
  {
    const auto body = [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const StepProgress silent = [](const char*, double, double) {};
      try {
        const auto links = board_links(**program, **board, rank);
        auto one = measured_over(job, **program, *links, r == 0 ? progress : silent);
        if (!one)
          errors[r] = one.error();
        else if (r == 0)
          measured = std::move(*one);
      } catch (const std::bad_alloc&) {
        errors[r] = Error{ErrorCode::device, "the GPU's memory is too small for this step", job.model->name,
                          "a smaller batch or model"};
      }
      if (errors[r]) (*board)->give_up();
    };
    std::vector<std::jthread> threads;
    not_started = start_ranks(threads, 0, static_cast<int>(errors.size()), body, [&] { (*board)->give_up(); });
  }
  if (not_started) return *not_started;
  if (const auto error = first_own(errors)) return *error;
  return std::move(*measured);
}

Expected<StepMeasurement> measure_placed_rank(const Arithmetic& in, const StepJob& job, const LinksOf& links_of,
                                              const StepProgress& progress) {
  const ComputeIn here(in);
  const auto program = PlacedProgram::make(job, timed_options(job));
  if (!program) return program.error();
  const auto links = links_of(**program);
  if (!links) return links.error();
  return measured_over(job, **program, **links, progress);
}

Expected<StepMeasurement> measure_placed_rank(const StepJob& job, probe::SharedRegion& region, int rank,
                                              const StepProgress& progress) {
  std::unique_ptr<PlacementBoard> board;
  const LinksOf links_of = [&](const PlacedProgram& program) -> Expected<std::unique_ptr<PlacementLinks>> {
    const auto shape = board_shape(program, PlacementColumns(program).all(job.steps));
    auto made = PlacementBoard::in_file(region.file(), shape, [&region] { return region.aborted(); });
    if (!made) return made.error();
    board = std::move(*made);
    return board_links(program, *board, rank);
  };
  return measure_placed_rank(in_float(), job, links_of, progress);
}

Expected<StepMeasurement> measure_placed_rank(const StepJob& job, const PlacementCarriers& carriers,
                                              const StepProgress& progress) {
  const LinksOf links_of = [&](const PlacedProgram& program) { return host_links(program, carriers); };
  return measure_placed_rank(in_float(), job, links_of, progress);
}

}  // namespace turnpoint::step
