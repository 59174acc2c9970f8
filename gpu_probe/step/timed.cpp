// SPDX-License-Identifier: Apache-2.0
// Timed steps of one rank, and the putting together of what all ranks saw.
#include "gpu_probe/step/timed.h"

#include <algorithm>

#include "core/base/text.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/measure/statistics.h"
#include "gpu_probe/step/meeting.h"
#include "gpu_probe/step/rank_step.h"

namespace turnpoint::step {

namespace {

constexpr int kLeastSteps = 3;
constexpr double kOpening = 300;  // s for gigabytes of weights and the libraries

Spread spread(std::vector<double> seconds) {
  const auto of = probe::spread_of(std::move(seconds));
  return {of.least, of.q1, of.median, of.q3, of.samples};
}

class Measurer {
 public:
  Measurer(const StepJob& job, Communicator& communicator, const StepProgress& progress)
      : job_(job),
        communicator_(communicator),
        progress_(progress),
        meeting_(communicator, job.mode == StepMode::slice) {}

  Expected<StepMeasurement> run() {
    StepOptions options = options_of(job_);
    options.learning_rate = 1e-5;  // many steps on the same random data: far from where numbers get out of hand
    options.quick = true;
    progress_("making parameters", 0, kOpening);
    const auto program = Program::make(*job_.model, job_.plan, options);
    if (!program) return program.error();
    RankStep step(**program, communicator_);
    const double limit = job_.budget_s + 10;
    // The first step finds out how long backward holds what (RankStep::learn), and so holds more than the others do.
    const int warm_up = std::max(1, job_.warm_up);
    for (int i = 0; i < warm_up; ++i) {
      const std::string phase = "warming up: step " + std::to_string(i + 1) + " of " + std::to_string(warm_up);
      progress_(phase.c_str(), static_cast<double>(i) / (warm_up + job_.steps), limit);
      if (auto done = step.run(); !done) return done.error();
    }
    if (auto done = meeting_.barrier(); !done) return done.error();
    counted_memory().reset_peak();
    const double began = probe::host_clock();
    for (int i = 0; i < job_.steps; ++i) {
      progress_("timing steps", static_cast<double>(i) / job_.steps, limit);
      if (auto done = meeting_.barrier(); !done) return done.error();
      if (auto done = communicator_.line_up(); !done) return done.error();
      if (auto done = step.run(); !done) return done.error();
      add_row(step.report(), step.report().seconds_all);
      double over = i + 1 >= kLeastSteps && probe::host_clock() - began > job_.budget_s ? 1 : 0;
      if (auto done = meeting_.broadcast(over); !done) return done.error();
      if (over > 0) break;
    }
    return put_together(step.report());
  }

 private:
  bool alone() const { return meeting_.alone(); }
  Expected<std::vector<double>> gather(const std::vector<double>& mine) { return meeting_.gather(mine); }

  /// The same columns on all ranks: the step, phases of all operators, exchanges.
  void add_row(const StepReport& report, double seconds) {
    columns_ = 1 + 4 * report.seconds.size() + report.traffic.size();
    double moving = 0;
    for (const auto& traffic : report.traffic) moving += traffic.seconds;
    rows_.push_back(job_.mode == StepMode::slice ? seconds - moving : seconds);
    for (const auto& of_operator : report.seconds) rows_.insert(rows_.end(), of_operator.begin(), of_operator.end());
    for (const auto& traffic : report.traffic) rows_.push_back(traffic.seconds);
  }

  /// Of one column the largest or smallest of the ranks, step by step.
  template <class Better>
  std::vector<double> column(const std::vector<double>& all, std::size_t which, const Better& better) const {
    const std::size_t steps = rows_.size() / columns_, ranks = all.size() / rows_.size();
    std::vector<double> result;
    for (std::size_t s = 0; s < steps; ++s) {
      double value = all[s * columns_ + which];
      for (std::size_t r = 1; r < ranks; ++r) {
        const double other = all[r * rows_.size() + s * columns_ + which];
        if (better(other, value)) value = other;
      }
      result.push_back(value);
    }
    return result;
  }

  Expected<StepMeasurement> put_together(const StepReport& report) {
    const auto all = gather(rows_);
    if (!all) return all.error();
    std::vector<double> mine;
    for (const auto& traffic : report.traffic) mine.push_back(traffic.received_bytes + traffic.in_place_bytes);
    for (const double extra : {report.unlisted_weight_bytes, report.inside_bytes}) mine.push_back(extra);
    const auto bytes = gather(mine);
    if (!bytes) return bytes.error();
    const auto most = [&](Held kind) {
      return static_cast<double>(report.ledger.most[static_cast<std::size_t>(kind)]);
    };
    const auto memory =
        gather({most(Held::parameters), most(Held::gradients), most(Held::optimizer), most(Held::kept),
                static_cast<double>(counted_memory().peak()), static_cast<double>(report.ledger.lasting_peak)});
    if (!memory) return memory.error();

    StepMeasurement m;
    m.backend = arithmetic().on_device ? "cuda" : "cpu";
    m.mode = job_.mode;
    m.ranks = alone() ? 1 : communicator_.ranks();
    m.step = spread(column(*all, 0, std::greater<>()));
    add_phases(m, report, *all);
    add_exchanges(m, report, *all, *bytes);
    add_memory(m, *memory);
    add_notes(m, report, *bytes);
    return m;
  }

  void add_phases(StepMeasurement& m, const StepReport& report, const std::vector<double>& all) const {
    for (std::size_t i = 0; i < report.seconds.size(); ++i)
      for (std::size_t p = 0; p < 4; ++p) {
        const auto times = column(all, 1 + 4 * i + p, std::greater<>());
        if (*std::max_element(times.begin(), times.end()) <= 0) continue;
        m.phases.push_back({OperatorId(i), static_cast<StepPhase>(p), spread(times)});
      }
  }

  void add_exchanges(StepMeasurement& m, const StepReport& report, const std::vector<double>& all,
                     const std::vector<double>& bytes) const {
    const std::size_t per_rank = report.traffic.size() + 2, ranks = bytes.size() / per_rank,
                      first = 1 + 4 * report.seconds.size();
    for (std::size_t t = 0; t < report.traffic.size(); ++t) {
      const Traffic& traffic = report.traffic[t];
      MeasuredExchange exchange;
      exchange.reshard = traffic.reshard;
      exchange.op = traffic.op;
      exchange.backward = traffic.backward;
      exchange.step = traffic.step;
      exchange.move = traffic.move;
      exchange.planned_bytes = traffic.planned_bytes;
      m.planned_bytes += traffic.planned_bytes;
      if (job_.mode == StepMode::ranks) {
        for (std::size_t r = 0; r < ranks; ++r)
          exchange.received_bytes += bytes[r * per_rank + t] / static_cast<double>(ranks);
        exchange.time = spread(column(all, first + t, std::less<>()));
        m.received_bytes += exchange.received_bytes;
      }
      m.exchanges.push_back(exchange);
    }
  }

  /// Of each kind, that of the rank that held most of it.
  static void add_memory(StepMeasurement& m, const std::vector<double>& all) {
    // Shares may be uneven: the device that holds most weights need not be the one that holds most together.
    const auto at = [&](std::size_t i) {
      double held = 0;
      for (std::size_t r = 0; r < all.size() / 6; ++r) held = std::max(held, all[r * 6 + i]);
      return static_cast<std::int64_t>(held);
    };
    m.memory = {at(0), at(1), at(2), at(3), at(4), at(5)};
  }

  void add_notes(StepMeasurement& m, const StepReport& report, const std::vector<double>& bytes) const {
    const std::size_t per_rank = report.traffic.size() + 2, ranks = bytes.size() / per_rank;
    double unlisted = 0, inside = 0, in_place = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      unlisted += bytes[r * per_rank + per_rank - 2] / static_cast<double>(ranks);
      inside += bytes[r * per_rank + per_rank - 1] / static_cast<double>(ranks);
    }
    for (const auto& traffic : report.traffic) in_place += traffic.in_place_bytes;
    const auto note = [&](double bytes_of, const char* what) {
      if (bytes_of > 0) m.notes.push_back(format_bytes(static_cast<std::int64_t>(bytes_of)) + what);
    };
    if (job_.micro_batches > 1)
      m.notes.push_back(std::to_string(job_.micro_batches) +
                        " micro-batches make a step: times and bytes of operators and exchanges are sums over them");
    note(unlisted, " a device of sharded weights gathered beyond the plan's list");
    note(inside, " a device exchanged inside recurrent operators, which no plan lists");
    note(in_place, " of permutes that rank 0 held already; plans count them as sent");
    note(static_cast<double>(scratch_memory().peak()),
         " of scratch inside kernels and exchanges on rank 0, which no plan lists and the peak leaves out");
    if (report.idle_repeats > 0)
      m.notes.push_back(std::to_string(report.idle_repeats) +
                        (report.idle_repeats == 1
                             ? " resharding that the plan repeats in backward although nobody reads it"
                             : " reshardings that the plan repeats in backward although nobody reads them"));
    if (job_.mode == StepMode::slice)
      m.notes.push_back("exchanges were not made: what they bring was filled with numbers");
    if (!arithmetic().on_device && (job_.floating_bytes != 4 || job_.precision != ProbePrecision::fp32))
      m.notes.push_back("computed in fp32 on CPU ranks; bytes are counted as the plan's precision has them");
    const bool masks = std::any_of(job_.model->tensors.begin(), job_.model->tensors.end(), [](const Tensor& tensor) {
      return tensor.role == TensorRole::internal && !is_floating(tensor.type);
    });
    if (masks)
      m.notes.push_back("masks take " + std::to_string(kept_bytes()) +
                        " bytes an element here; kinds of memory count them as the plan does");
    const bool offload = std::any_of(job_.plan.operators.begin(), job_.plan.operators.end(),
                                     [](const PlanOperator& op) { return op.choice.offload; });
    if (offload)
      m.notes.push_back(
          std::string("offloaded optimizer state: ") +
          (arithmetic().on_device ? "it stayed on the GPU, uncounted" : "device and host are one memory here") +
          ", nothing was moved");
  }

  const StepJob& job_;
  Communicator& communicator_;
  const StepProgress& progress_;
  Meeting meeting_;
  std::vector<double> rows_;
  std::size_t columns_ = 1;
};

}  // namespace

Expected<StepMeasurement> measure_steps(const StepJob& job, Communicator& communicator, const StepProgress& progress) {
  auto measured = Measurer(job, communicator, progress).run();
  if (!measured) communicator.give_up();
  return measured;
}

}  // namespace turnpoint::step
