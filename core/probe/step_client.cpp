// SPDX-License-Identifier: Apache-2.0
#include "core/probe/step_client.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/probe/step_placement.h"
#include "core/probe/step_ratio.h"

namespace turnpoint {

namespace {

constexpr double kMostMoved = 1e18;
constexpr std::size_t kMostLines = 4'000'000;

Error of_another_job(const std::string& path) {
  Error error = bad_input("is a recording of another job: of another point, batch or model, or of another plan", path);
  error.hint = "give the result, the point and the options that it was recorded with";
  return error;
}

OperatorId read_operator(JsonFields& fields, const Model& model) {
  const auto index = fields.integer("op", 0, static_cast<std::int64_t>(model.operators.size()) - 1);
  return fields.error() ? OperatorId() : OperatorId(static_cast<std::size_t>(index));
}

}  // namespace

MeasuredPhase StepMessages::read_phase(JsonFields& fields) const {
  MeasuredPhase phase;
  phase.op = read_operator(fields, *job_.model);
  const std::string name = fields.text("phase");
  bool known = false;
  for (const auto one : {StepPhase::forward, StepPhase::backward, StepPhase::recompute, StepPhase::update})
    if (name == to_string(one)) phase.phase = one, known = true;
  if (!known) fields.fail("phase", fmt::format("'{}' is no phase of a step", name));
  phase.time = read_spread(fields);
  return phase;
}

MeasuredExchange StepMessages::read_exchange(JsonFields& fields) const {
  MeasuredExchange exchange;
  exchange.reshard = static_cast<std::int32_t>(
      fields.integer("reshard", -1, static_cast<std::int64_t>(job_.plan.reshards.size()) - 1));
  exchange.op = read_operator(fields, *job_.model);
  exchange.backward = fields.flag("backward", false);
  exchange.step = static_cast<std::int32_t>(fields.integer("step", 0, 1'000'000));
  if (fields.error()) return exchange;
  const auto index = static_cast<std::size_t>(std::max(exchange.reshard, 0));
  const std::vector<ReshardStep> steps = exchange.reshard < 0
                                             ? all_steps(job_.plan.operators[exchange.op.index].parameters)
                                         : exchange.backward ? job_.plan.reshards[index].backward()
                                                             : job_.plan.reshards[index].forward;
  if (static_cast<std::size_t>(exchange.step) >= steps.size())
    fields.fail("step", "is none of the plan's");
  else
    exchange.move = steps[static_cast<std::size_t>(exchange.step)].move;
  exchange.planned_bytes = fields.number("planned_bytes", 0, kMostMoved);
  exchange.received_bytes = fields.number("received_bytes", 0, kMostMoved);
  if (fields.has("samples")) exchange.time = read_spread(fields);
  return exchange;
}

void StepMessages::read_result(JsonFields& fields) {
  StepMeasurement& m = measurement_;
  m.backend = hello_->backend;
  m.mode = job_.mode;
  m.ranks = static_cast<int>(fields.integer("ranks", 1, kMaximumProbeRanks));
  m.cores = static_cast<int>(fields.integer("cores", 0, 1'000'000, 0));
  JsonFields step = fields.object("step_time");
  m.step = read_spread(step);
  JsonFields memory = fields.object("memory");
  const auto bytes = [&](const char* key) { return memory.integer(key, 0, std::int64_t(1) << 60); };
  m.memory = {bytes("parameters"), bytes("gradients"), bytes("optimizer"),
              bytes("kept"),       bytes("peak"),      bytes("counted_peak")};
  if (fields.has("numerics")) {
    JsonFields numerics = fields.object("numerics");
    const auto error = [&](const char* key) { return numerics.number(key, 0, 1e300); };
    m.numerics = {error("loss_error"), error("activation_error"),  error("gradient_error"),    error("update_error"),
                  error("tolerance"),  numerics.text("precision"), numerics.text("where", ""), {}};
    if (numerics.has("rounding")) {
      JsonFields item = numerics.object("rounding");
      const auto number = [&](const char* key) { return item.number(key, 0, 1e300); };
      m.numerics->rounding = {item.text("precision"),   number("loss_error"),         number("gradient_error"),
                              number("loss_tolerance"), number("gradient_tolerance"), item.text("where", "")};
    }
  }
  if (job_.placement || job_.ratio) m.devices = read_measured_devices(fields, job_.devices());
  m.planned_bytes = fields.number("planned_bytes", 0, kMostMoved);
  m.received_bytes = fields.number("received_bytes", 0, kMostMoved);
  const auto notes = fields.json().find("notes");
  if (notes != fields.json().end() && notes->is_array())
    for (const auto& note : *notes)
      if (note.is_string() && m.notes.size() < 1000) m.notes.push_back(note.get<std::string>());
}

Expected<void> StepMessages::take(std::string_view line) {
  if (finished_) return Error{ErrorCode::device, "turnpoint-probe went on after its result", {}, {}};
  if (measurement_.phases.size() + measurement_.exchanges.size() + measurement_.tasks.size() +
          measurement_.moves.size() >=
      kMostLines)
    return Error{ErrorCode::device, "turnpoint-probe does not stop", {}, {}};
  const auto message = parse_probe_line(line);
  if (!message) return message.error();
  JsonFields fields(*message, "turnpoint-probe");
  const std::string type = fields.text("type", "");
  if (type == "error") return read_probe_error(fields);
  if (type.empty()) return not_a_probe_message(line);
  if (type == "progress") progress_ = read_probe_progress(fields);
  const bool placed = job_.placement && (type == "task" || type == "transfer");
  const bool unequal = job_.ratio && type == "move";
  const bool content = placed || unequal || type == "operator" || type == "exchange" || type == "result";
  if (content && !hello_) return not_a_probe_message(line);
  if (type == "hello") {
    ProbeHello hello = read_probe_hello(fields);
    if (!fields.error()) hello_ = std::move(hello);
  } else if (type == "operator") {
    MeasuredPhase phase = read_phase(fields);
    if (!fields.error()) measurement_.phases.push_back(std::move(phase));
  } else if (type == "exchange") {
    MeasuredExchange exchange = read_exchange(fields);
    if (!fields.error()) measurement_.exchanges.push_back(std::move(exchange));
  } else if (unequal) {
    measurement_.moves.push_back(read_measured_move(fields, *job_.model));
  } else if (placed && type == "task") {
    measurement_.tasks.push_back(read_measured_task(fields, *job_.placement));
  } else if (placed) {
    measurement_.transfers.push_back(read_measured_transfer(fields, *job_.placement));
  } else if (type == "result") {
    StepMeasurement before = measurement_;
    read_result(fields);
    finished_ = !fields.error();
    if (!finished_) measurement_ = std::move(before);
  }
  if (fields.error()) {
    Error error = *fields.error();
    error.code = ErrorCode::device;
    return error;
  }
  return {};
}

double most_seconds(const StepJob& job, bool launched) {
  constexpr double kStarting = 15, kMeeting = 60, kLoadingLibraries = 135, kMostOpening = 300;
  const bool cpu = job.backend == ProbeBackend::cpu;
  double most = kStarting + (launched ? kMeeting : 0) + (cpu ? 0 : kLoadingLibraries);
  const ProofNeeds proof = proof_needs(job);
  // It is proven where the machine can do it within the budget, of which this side does not know how fast it is.
  constexpr ProofMachine kFastest{64, true};
  const bool perhaps = proof_needs(job, kFastest).seconds <= job.budget_s;
  // On a GPU only one of the proof's two steps is made on the processor, if that.
  if (job.prove && job.mode == StepMode::ranks && (!cpu || perhaps))
    most += 60 + 10 * std::min(proof.seconds, cpu ? job.budget_s : 2 * job.budget_s);
  // Weights are drawn one after the other, those of all ranks on the cores that there are.
  most += std::min(kMostOpening, 10 + 1e-7 * static_cast<double>(job.model->parameters) * job.devices());
  return most + 3 * job.budget_s + 30;
}

Expected<StepMeasurement> measure_step(const ProbeLaunch& launch, const StepJob& job, const RunContext& context,
                                       std::optional<ProbeHello>* hello) {
  StepMessages messages(job);
  const double most = most_seconds(job, !launch.launcher.empty());
  const auto ran = run_probe(launch, write_step_job(job), most, messages, context);
  if (hello) *hello = messages.hello();
  if (!ran) return ran.error();
  return messages.measurement();
}

Expected<StepMeasurement> read_step_recording(const std::string& path, const StepJob& job) {
  const auto text = read_file(path, std::size_t(1) << 28);
  if (!text) return text.error();
  StepMessages messages(job);
  const std::string own = fingerprint(job);
  std::size_t number = 0, lines = 0;
  for (const auto line : split(*text, '\n')) {
    ++number;
    if (line.empty()) continue;
    ++lines;
    if (const auto taken = messages.take(line); !taken) {
      Error error = taken.error();
      const std::string place = fmt::format("{}:{}", path, number);
      error.where = error.where.empty() ? place : place + ": " + error.where;
      error.code = ErrorCode::bad_input;
      return error;
    }
    // Before what it says of operators is held against a plan that does not have them.
    if (messages.hello() && !messages.hello()->job.empty() && messages.hello()->job != own) return of_another_job(path);
  }
  if (lines == 0 || !messages.hello()) return bad_input("holds no messages of turnpoint-probe", path);
  if (!messages.finished()) return bad_input("breaks off before the result: run the job again", path);
  if (messages.measurement().ranks != (job.mode == StepMode::slice ? 1 : job.devices()))
    return bad_input(
        fmt::format("is of {} ranks, and the plan is for {} devices", messages.measurement().ranks, job.devices()),
        path);
  StepMeasurement measurement = messages.measurement();
  if (messages.hello()->job.empty())
    measurement.notes.insert(measurement.notes.begin(),
                             "warning: the recording does not say which job it is of (an older turnpoint-probe wrote "
                             "it): nobody knows whether it belongs to this point");
  return measurement;
}

}  // namespace turnpoint
