// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/step_worker.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/plan/step_job.h"
#include "gpu_probe/backend.h"
#include "gpu_probe/cpu/cpu_backend.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

json with_spread(json line, const turnpoint::Spread& spread) {
  line["min_s"] = spread.min_s;
  line["q1_s"] = spread.q1_s;
  line["median_s"] = spread.median_s;
  line["q3_s"] = spread.q3_s;
  line["samples"] = spread.samples;
  return line;
}

/// Numbers too small to matter would cost a hundred times the others; GPUs flush them too.
void flush_denormals() {
#ifdef __SSE2__
  constexpr unsigned int kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFlushToZero | kDenormalsAreZero);
#endif
}

class StepWorker {
 public:
  StepWorker(const WorkerOptions& options, const StepJob& job, SharedRegion& region, int cores)
      : options_(options), job_(job), region_(region), cores_(cores), out_(options.out_file) {}

  int run(const std::function<void()>& pin) {
    const bool first = options_.rank == 0;
    if (first) {
      json hello = make_cpu_backend(options_.ranks, job_.seed)->describe();
      hello["type"] = "hello";
      hello["program"] = "turnpoint-probe";
      hello["protocol"] = 1;
      hello["statistic"] = "q1";
      hello["cold"] = false;
      say(hello);
      if (const auto fine = step::check_job(job_, options_.ranks); !fine) return fail(fine.error());
      if (const auto proven = prove(); !proven) return fail(proven.error());
      pin();
      region_.posted(0, 0).store(1);
    } else {
      // The proof's threads have the machine to themselves.
      while (region_.posted(0, 0).load() == 0) {
        if (region_.aborted()) return kDevice;
        usleep(2000);
      }
    }
    flush_denormals();
    auto measured = step::in_float::measure_rank(
        job_, region_, options_.rank,
        [this](const char* phase, double fraction, double limit_s) { sign_of_life(phase, fraction, limit_s); });
    if (!measured) return fail(measured.error());
    if (first) report(*measured);
    return kDone;
  }

 private:
  void say(const json& line) {
    if (options_.rank == 0) out_.write(line);
  }
  void sign_of_life(const char* phase, double fraction, double limit_s) {
    say({{"type", "start"}, {"phase", phase}, {"fraction", fraction}, {"limit_s", limit_s}});
  }
  int fail(const Error& error) {
    json line = {{"type", "error"}, {"what", error.what}, {"hint", error.hint}, {"where", error.where}};
    // That another rank gave up says less than what that rank has to say.
    line["follows"] = error.what == "another rank gave up";
    if (error.code != ErrorCode::device) line["code"] = to_string(ErrorCode::bad_input);
    out_.write(line);
    return kDevice;
  }

  Expected<void> prove() {
    if (!job_.prove || job_.mode != StepMode::ranks) return {};
    const step::ProofEstimate estimate = step::estimate_proof(job_);
    const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (estimate.seconds > job_.budget_s || estimate.bytes > 0.25 * memory) {
      notes_.push_back(fmt::format(
          "not proven: the step in double by plain loops would take about {:.0f} s and {:.1f} GB, more than "
          "the budget of {:g} s or a quarter of the memory",
          estimate.seconds, estimate.bytes / 1e9, job_.budget_s));
      return {};
    }
    sign_of_life("proving", 0, 30 + 10 * estimate.seconds);
    const auto numerics = step::prove(job_);
    if (!numerics) return numerics.error();
    numerics_ = *numerics;
    return {};
  }

  void report(const StepMeasurement& m) {
    for (const auto& phase : m.phases)
      say(with_spread({{"type", "operator"}, {"op", phase.op.index}, {"phase", to_string(phase.phase)}}, phase.time));
    for (const auto& exchange : m.exchanges) {
      json line = {{"type", "exchange"},
                   {"reshard", exchange.reshard},
                   {"op", exchange.op.index},
                   {"backward", exchange.backward},
                   {"step", exchange.step},
                   {"move", to_string(exchange.move)},
                   {"planned_bytes", exchange.planned_bytes},
                   {"received_bytes", exchange.received_bytes}};
      say(exchange.time ? with_spread(std::move(line), *exchange.time) : line);
    }
    json result = {{"type", "result"},
                   {"mode", to_string(m.mode)},
                   {"ranks", m.ranks},
                   {"cores", cores_},
                   {"step_time", with_spread(json::object(), m.step)},
                   {"memory",
                    {{"parameters", m.memory.parameters},
                     {"gradients", m.memory.gradients},
                     {"optimizer", m.memory.optimizer},
                     {"kept", m.memory.kept},
                     {"peak", m.memory.peak},
                     {"counted_peak", m.memory.counted_peak}}},
                   {"planned_bytes", m.planned_bytes},
                   {"received_bytes", m.received_bytes}};
    if (numerics_)
      result["numerics"] = {{"loss_error", numerics_->loss_error},
                            {"activation_error", numerics_->activation_error},
                            {"gradient_error", numerics_->gradient_error},
                            {"update_error", numerics_->update_error},
                            {"tolerance", numerics_->tolerance},
                            {"precision", numerics_->precision},
                            {"where", numerics_->where}};
    if (job_.backend == ProbeBackend::automatic)
      notes_.push_back("backend auto: steps are carried out on CPU ranks, with or without a GPU");
    notes_.insert(notes_.end(), m.notes.begin(), m.notes.end());
    result["notes"] = notes_;
    say(result);
  }

  const WorkerOptions& options_;
  const StepJob& job_;
  SharedRegion& region_;
  int cores_;
  LineWriter out_;
  std::optional<StepNumerics> numerics_;
  std::vector<std::string> notes_;
};

}  // namespace

bool is_step_job(const std::string& text) {
  const auto document = parse_json(text, "job");
  if (!document || !document->is_object()) return false;
  const auto format = document->find("format");
  return format != document->end() && format->is_string() &&
         format->get<std::string>().starts_with("turnpoint/step-job@");
}

int ranks_of(const StepJob& job) { return job.mode == StepMode::slice ? 1 : job.plan.mesh.devices(); }

int run_step_worker(const WorkerOptions& options, const std::string& text, SharedRegion& region, int cores,
                    const std::function<void()>& pin) {
  const auto job = parse_step_job(text, "job");
  if (!job) {
    LineWriter(options.out_file).write({{"type", "error"}, {"what", job.error().message()}, {"hint", ""}});
    return kDevice;
  }
  return StepWorker(options, *job, region, cores).run(pin);
}

}  // namespace turnpoint::probe
