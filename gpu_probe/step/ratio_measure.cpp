// SPDX-License-Identifier: Apache-2.0
// Timed steps of a ratio plan: each rank's rows of numbers, and the putting together of what all ranks saw.
#include <algorithm>

#include "core/base/text.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/measure/statistics.h"
#include "gpu_probe/step/carried_ranks.h"
#include "gpu_probe/step/meeting.h"
#include "gpu_probe/step/ratio_run.h"

namespace turnpoint::step {

namespace {

constexpr int kLeastRatioSteps = 3;
constexpr double kRatioOpening = 300;  // s for gigabytes of weights and the libraries

Spread ratio_spread(std::vector<double> seconds) {
  const auto of = probe::spread_of(std::move(seconds));
  return {of.least, of.q1, of.median, of.q3, of.samples};
}

class RatioMeasurer {
 public:
  RatioMeasurer(const StepJob& job, const RatioProgram& program, Communicator& communicator,
                const StepProgress& progress)
      : job_(job),
        program_(program),
        communicator_(communicator),
        progress_(progress),
        meeting_(communicator, false),
        operators_(job.model->operators.size()) {}

  Expected<StepMeasurement> run() {
    progress_("making parameters", 0, kRatioOpening);
    const auto me = static_cast<std::size_t>(communicator_.rank());
    RatioRank step(program_, communicator_, me < job_.slow.size() ? job_.slow[me] : 1);
    const double limit = job_.budget_s + 10;
    for (int i = 0; i < job_.warm_up; ++i) {
      const std::string phase = "warming up: step " + std::to_string(i + 1) + " of " + std::to_string(job_.warm_up);
      progress_(phase.c_str(), static_cast<double>(i) / (job_.warm_up + job_.steps), limit);
      if (auto done = step.run(); !done) return done.error();
    }
    counted_memory().reset_peak();
    const double began = probe::host_clock();
    for (int i = 0; i < job_.steps; ++i) {
      progress_("timing steps", static_cast<double>(i) / job_.steps, limit);
      if (auto done = meeting_.barrier(); !done) return done.error();
      if (auto done = step.run(); !done) return done.error();
      add_row(step);
      double over = i + 1 >= kLeastRatioSteps && probe::host_clock() - began > job_.budget_s ? 1 : 0;
      if (auto done = meeting_.broadcast(over); !done) return done.error();
      if (over > 0) break;
    }
    return put_together(step);
  }

 private:
  std::size_t lines() const { return program_.lines.size(); }
  std::size_t columns() const { return 1 + 4 * operators_ + lines(); }

  void add_row(RatioRank& step) {
    rows_.push_back(step.report().seconds_all);
    for (const auto& of_operator : step.report().seconds)
      rows_.insert(rows_.end(), of_operator.begin(), of_operator.end());
    for (const RatioTraffic& traffic : step.traffic()) rows_.push_back(traffic.seconds);
    ++steps_;
  }

  double at(const std::vector<double>& all, int rank, int step, std::size_t column) const {
    return all[(static_cast<std::size_t>(rank) * static_cast<std::size_t>(steps_) + static_cast<std::size_t>(step)) *
                   columns() +
               column];
  }
  /// Of one column a number made of all ranks', step by step.
  template <class Join>
  std::vector<double> joined(const std::vector<double>& all, std::size_t column, const Join& join) const {
    std::vector<double> values;
    for (int s = 0; s < steps_; ++s) {
      double value = at(all, 0, s, column);
      for (int r = 1; r < communicator_.ranks(); ++r) value = join(value, at(all, r, s, column));
      values.push_back(value);
    }
    return values;
  }
  static double larger(double a, double b) { return std::max(a, b); }

  Expected<StepMeasurement> put_together(RatioRank& step) {
    const auto all = meeting_.gather(rows_);
    if (!all) return all.error();
    const StepReport& report = step.report();
    std::vector<double> mine;
    for (const Held kind : {Held::parameters, Held::gradients, Held::optimizer, Held::kept})
      mine.push_back(static_cast<double>(report.ledger.most[static_cast<std::size_t>(kind)]));
    for (const std::int64_t bytes : {counted_memory().peak(), report.ledger.lasting_peak, scratch_memory().peak()})
      mine.push_back(static_cast<double>(bytes));
    const std::size_t before = mine.size();
    for (const RatioTraffic& traffic : step.traffic())
      mine.insert(mine.end(), {static_cast<double>(traffic.fresh), static_cast<double>(traffic.all)});
    const auto ends = meeting_.gather(mine);
    if (!ends) return ends.error();
    const auto end = [&](int rank, std::size_t i) { return (*ends)[static_cast<std::size_t>(rank) * mine.size() + i]; };

    StepMeasurement m;
    m.backend = "cpu";
    m.ranks = communicator_.ranks();
    m.step = ratio_spread(joined(*all, 0, larger));
    for (std::size_t o = 0; o < operators_; ++o)
      for (std::size_t p = 0; p < 4; ++p) {
        const auto times = joined(*all, 1 + 4 * o + p, larger);
        if (*std::max_element(times.begin(), times.end()) > 0)
          m.phases.push_back({OperatorId(o), static_cast<StepPhase>(p), ratio_spread(times)});
      }
    for (std::size_t l = 0; l < lines(); ++l) {
      const RatioLine& line = program_.lines[l];
      MeasuredMove move;
      move.kind = line.kind, move.tensor = line.tensor, move.op = line.op;
      for (int r = 0; r < communicator_.ranks(); ++r) {
        move.once_bytes += end(r, before + 2 * l) * line.element_bytes;
        move.received_bytes += end(r, before + 2 * l + 1) * line.element_bytes;
      }
      // What a rank waits for the others is not its own: the time of the one that waited least.
      move.time = ratio_spread(joined(*all, 1 + 4 * operators_ + l, [](double a, double b) { return std::min(a, b); }));
      m.planned_bytes += static_cast<double>(line.fresh) * line.element_bytes;
      m.received_bytes += move.once_bytes;
      m.moves.push_back(move);
    }
    double scratch = 0;
    for (int r = 0; r < communicator_.ranks(); ++r) {
      const auto bytes = [&](std::size_t i) { return static_cast<std::int64_t>(end(r, i)); };
      MeasuredDevice device;
      device.persistent = bytes(0) + bytes(2);
      device.peak = bytes(4);
      device.busy = ratio_spread(busy(*all, r));
      for (std::size_t l = 0; l < lines(); ++l)
        device.received_bytes += end(r, before + 2 * l + 1) * program_.lines[l].element_bytes;
      m.devices.push_back(device);
      m.memory.parameters = std::max(m.memory.parameters, bytes(0));
      m.memory.gradients = std::max(m.memory.gradients, bytes(1));
      m.memory.optimizer = std::max(m.memory.optimizer, bytes(2));
      m.memory.kept = std::max(m.memory.kept, bytes(3));
      m.memory.peak = std::max(m.memory.peak, bytes(4));
      m.memory.counted_peak = std::max(m.memory.counted_peak, bytes(5));
      scratch = std::max(scratch, end(r, 6));
    }
    add_notes(m, scratch);
    return m;
  }

  /// All that a rank computes in a step, step by step.
  std::vector<double> busy(const std::vector<double>& all, int rank) const {
    std::vector<double> seconds;
    for (int s = 0; s < steps_; ++s) {
      double sum = 0;
      for (std::size_t c = 1; c < 1 + 4 * operators_; ++c) sum += at(all, rank, s, c);
      seconds.push_back(sum);
    }
    return seconds;
  }

  void add_notes(StepMeasurement& m, double scratch) const {
    if (scratch > 0)
      m.notes.push_back(format_bytes(static_cast<std::int64_t>(scratch)) +
                        " of scratch inside kernels and messages on one rank, which no plan lists and the peak leaves "
                        "out");
    for (std::size_t r = 0; r < job_.slow.size(); ++r)
      if (job_.slow[r] > 1) {
        std::string factor = std::to_string(job_.slow[r]);
        while (factor.back() == '0') factor.pop_back();
        if (factor.back() == '.') factor.pop_back();
        m.notes.push_back("rank " + std::to_string(r) +
                          " was made slower: behind whatever it had computed it waited "
                          "busily, until it had taken " +
                          factor + " times as long");
      }
  }

  const StepJob& job_;
  const RatioProgram& program_;
  Communicator& communicator_;
  const StepProgress& progress_;
  Meeting meeting_;
  const std::size_t operators_;
  int steps_ = 0;
  std::vector<double> rows_;
};

}  // namespace

Expected<StepMeasurement> measure_ratio_steps(const StepJob& job, Communicator& communicator,
                                              const StepProgress& progress) {
  StepOptions options = options_of(job);
  options.learning_rate = 1e-5;  // many steps on the same random data: far from where numbers get out of hand
  const auto program = RatioProgram::make(job, options);
  auto measured = program ? RatioMeasurer(job, **program, communicator, progress).run()
                          : Expected<StepMeasurement>(program.error());
  if (!measured) communicator.give_up();
  return measured;
}

Expected<StepMeasurement> measure_ratio_rank(const StepJob& job, probe::RankLinks& links,
                                             const StepProgress& progress) {
  const ComputeIn here(in_float());
  const auto communicator = carried_communicator(links.collectives(), links.transport());
  return measure_ratio_steps(job, *communicator, progress);
}

}  // namespace turnpoint::step
