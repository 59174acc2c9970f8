// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/run_apart.h"

#include <algorithm>
#include <optional>
#include <span>

#include "gpu_probe/step/rank_step.h"

namespace turnpoint::step {

namespace {

// Every whole number in a report is exact as a double.
std::vector<double> packed(const StepReport& report) {
  std::vector<double> words{report.loss, static_cast<double>(report.recorded.size())};
  const auto add = [&](auto number) { words.push_back(static_cast<double>(number)); };
  for (const auto& one : report.recorded) {
    add(static_cast<int>(one.kind));
    add(one.op.index);
    add(one.slot);
    add(one.first);
    add(one.partial);
    add(one.region.offset.size());
    words.insert(words.end(), one.region.offset.begin(), one.region.offset.end());
    words.insert(words.end(), one.region.extent.begin(), one.region.extent.end());
    add(one.data.size());
    words.insert(words.end(), one.data.begin(), one.data.end());
  }
  return words;
}

class Reader {
 public:
  explicit Reader(const std::vector<double>& words) : words_(words) {}
  double next() { return at_ < words_.size() ? words_[at_++] : (broken_ = true, 0.0); }
  std::int64_t whole() { return static_cast<std::int64_t>(next()); }
  std::size_t count() {
    const double value = next();
    if (value >= 0 && value <= static_cast<double>(words_.size() - at_)) return static_cast<std::size_t>(value);
    broken_ = true;
    return 0;
  }
  bool good() const { return !broken_ && at_ == words_.size(); }

 private:
  const std::vector<double>& words_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

/// Nothing where the words are not those of a report on this model.
std::optional<StepReport> unpacked(const std::vector<double>& words, const Model& model) {
  Reader read(words);
  StepReport report;
  report.loss = read.next();
  report.recorded.resize(read.count());
  for (auto& one : report.recorded) {
    const std::int64_t kind = read.whole(), op = read.whole();
    if (kind < 0 || kind >= kComparedKinds || op < 0 || op >= static_cast<std::int64_t>(model.operators.size()))
      return std::nullopt;
    one.kind = static_cast<Compared>(kind);
    one.op = OperatorId(static_cast<std::size_t>(op));
    one.slot = static_cast<std::uint32_t>(read.whole());
    one.first = read.whole();
    one.partial = static_cast<std::uint32_t>(read.whole());
    const std::size_t dims = read.count();
    for (auto* side : {&one.region.offset, &one.region.extent})
      for (std::size_t d = 0; d < dims; ++d) side->push_back(read.whole());
    one.data.resize(read.count());
    for (double& value : one.data) value = read.next();
  }
  if (!read.good()) return std::nullopt;
  return report;
}

Error gave_up() { return {ErrorCode::device, "another rank gave up", {}, {}}; }

}  // namespace

Expected<StepRun> gathered(StepReport mine, const Model& model, int rank, int ranks, probe::Transport& transport) {
  StepRun run;
  if (rank != 0) {
    const std::vector<double> words = packed(mine);
    const double size = static_cast<double>(words.size());
    const probe::Part head{0, std::as_bytes(std::span(&size, 1)), {}}, body{0, std::as_bytes(std::span(words)), {}};
    if (!transport.exchange(std::span(&head, 1)) || !transport.exchange(std::span(&body, 1))) return gave_up();
    return run;
  }
  run.ranks.push_back(std::move(mine));
  for (int other = 1; other < ranks; ++other) {
    double size = 0;
    const probe::Part head{other, {}, std::as_writable_bytes(std::span(&size, 1))};
    if (!transport.exchange(std::span(&head, 1))) return gave_up();
    std::vector<double> words(static_cast<std::size_t>(size));
    const probe::Part body{other, {}, std::as_writable_bytes(std::span(words))};
    if (!transport.exchange(std::span(&body, 1))) return gave_up();
    auto report = unpacked(words, model);
    if (!report) return Error{ErrorCode::device, "a rank's report did not arrive as it was sent", {}, {}};
    run.ranks.push_back(std::move(*report));
  }
  for (const auto& report : run.ranks) run.loss += report.loss;
  return run;
}

Expected<StepRun> run_apart(const StepJob& job, const StepOptions& options, Communicator& communicator,
                            probe::Transport& transport) {
  const auto program = Program::make(*job.model, job.plan, options);
  if (!program) return program.error();
  RankStep step(**program, communicator);
  if (auto done = step.run(); !done) return done.error();
  return gathered(std::move(step.report()), *job.model, communicator.rank(), communicator.ranks(), transport);
}

}  // namespace turnpoint::step
