// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/step_worker.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/machine_memory.h"
#include "core/base/text.h"
#include "core/probe/step_placement.h"
#include "core/probe/step_ratio.h"
#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/cpu_backend.h"
#include "gpu_probe/cpu/double_products.h"
#include "gpu_probe/cuda/describe.h"
#include "gpu_probe/job/backend.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/step/carried_ranks.h"
#include "gpu_probe/step/cuda/run.h"
#include "gpu_probe/step/placement_links.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step/prove_apart.h"
#include "gpu_probe/step/ratio_run.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

json with_spread(json line, const turnpoint::Spread& spread) {
  line.update(write_spread(spread));
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
  StepWorker(const WorkerOptions& options, const StepJob& job, RankLinks& links, int cores)
      : options_(options), job_(job), links_(links), cores_(cores), out_(options.out_file) {}

  int run(const std::function<void()>& pin) {
    const bool first = options_.rank == 0;
    if (const auto chosen = choose_kernels(job_.cpu_kernels); !chosen) return fail(chosen.error());
    if (first) {
      json hello = make_cpu_backend(options_.places, job_.seed)->describe();
      hello["type"] = "hello";
      hello["program"] = "turnpoint-probe";
      hello["protocol"] = 1;
      hello["statistic"] = "q1";
      hello["cold"] = false;
      hello["job"] = fingerprint(job_);
      say(hello);
      if (const auto fine = check_host(); !fine) return fail(fine.error());
      if (const auto proven = prove(); !proven) return fail(proven.error());
      pin();
    } else if (options_.place == 0) {
      if (const auto fine = check_host(); !fine) return fail(fine.error());
    }
    // The proof's threads have the machine to themselves.
    if (!links_.follow_rank_0(prove_apart_)) return kDevice;
    if (prove_apart_) {
      const auto proven = proven_apart();
      if (!proven) return fail(proven.error());
      numerics_ = *proven;
    }
    flush_denormals();
    const auto measured = measure();
    if (!measured) return fail(measured.error());
    if (first) report(*measured);
    return kDone;
  }

  /// All ranks of the job on one GPU, in this process.
  int run_on_gpu() {
    if (const auto opened = open_gpu(); !opened) return fail(opened.error());
    if (!say_hello_of_gpu({})) return kDevice;
    // Of a placement every parameter is there once, wherever it lies.
    if (const auto fine = step::check_job_on_gpu(job_, job_.placement ? 1 : ranks_of(job_)); !fine)
      return fail(fine.error());
    if (proves()) {
      const auto numerics = step::prove_on_gpu(job_, notes_.emplace_back());
      if (!numerics) return fail(numerics.error());
      numerics_ = *numerics;
    }
    return reported(step::measure_on_gpu(job_, progress()));
  }

  /// One rank of several, with a GPU of its own.
  int run_on_gpus() {
    if (const auto opened = open_gpu(); !opened) return fail(opened.error());
    const auto exchanges = GpuCollectives::open(step::opened_gpu(), links_.collectives(), links_.transport());
    if (!exchanges) return fail(exchanges.error());
    if (!say_hello_of_gpu((*exchanges)->version())) return kDevice;
    if (const auto fine = step::check_job_on_gpu(job_, 1, options_.rank); !fine) return fail(fine.error());
    if (const auto joined = (*exchanges)->line_up(); !joined) return fail(joined.error());
    if (proves()) {
      std::string how;
      const auto numerics = step::prove_on_gpus(job_, **exchanges, links_.transport(), how);
      if (!numerics) return fail(numerics.error());
      numerics_ = *numerics;
      notes_.push_back(how);
      // Rank 0's comparison has the machine to itself.
      bool flag = true;
      if (!links_.follow_rank_0(flag)) return kDevice;
    }
    return reported(step::measure_on_gpus(job_, **exchanges, progress()));
  }

 private:
  Expected<void> open_gpu() {
    auto opened = step::open_gpu(job_.device + options_.place);
    if (!opened && options_.ranks > 1) return without_gpu(opened.error(), options_.rank);
    return opened;
  }
  /// `nccl`: its version, where there are several ranks. False once one of them is gone.
  bool say_hello_of_gpu(const std::string& nccl) {
    json hello = cuda::describe(step::opened_gpu());
    hello["type"] = "hello";
    hello["program"] = "turnpoint-probe";
    hello["protocol"] = 1;
    hello["statistic"] = "median";
    hello["cold"] = false;
    hello["job"] = fingerprint(job_);
    if (!nccl.empty()) describe_nccl(hello, nccl, {});
    if (options_.peers_file >= 0 && !gather_devices(hello, links_.collectives())) return false;
    say(hello);
    return true;
  }
  /// Whether there is a proof, which begins then.
  bool proves() {
    if (!job_.prove || job_.mode != StepMode::ranks) return false;
    sign_of_life("proving", 0, 60 + 10 * proof_needs(job_).seconds);
    return true;
  }
  step::StepProgress progress() {
    return [this](const char* phase, double fraction, double limit_s) { sign_of_life(phase, fraction, limit_s); };
  }
  int reported(const Expected<StepMeasurement>& measured) {
    if (!measured) return fail(measured.error());
    cores_ = measured->cores;
    if (options_.rank == 0) report(*measured);
    return kDone;
  }

  void say(const json& line) {
    if (options_.rank == 0) out_.write(line);
  }
  void sign_of_life(const char* phase, double fraction, double limit_s) {
    say({{"type", "start"}, {"phase", phase}, {"fraction", fraction}, {"limit_s", limit_s}});
  }
  int fail(const Error& error) {
    json line = {{"type", "error"}, {"what", error.what}, {"hint", error.hint}, {"where", error.where}};
    // That another rank gave up says less than what that rank has to say.
    line["follows"] = error.what == kAnotherRankGaveUp;
    if (error.code != ErrorCode::device) line["code"] = to_string(ErrorCode::bad_input);
    out_.write(line);
    return kDevice;
  }

  /// Whether this host can take its ranks.
  Expected<void> check_host() const {
    if (job_.ratio) return step::check_ratio_job(job_, options_.places);
    return job_.placement ? step::check_placement_job(job_, options_.rank - options_.place, options_.places)
                          : step::check_job(job_, options_.places);
  }

  step::PlacementCarriers carriers() {
    return {links_.region(), links_.collectives(), links_.transport(), links_.beside()};
  }

  Expected<StepMeasurement> measure() {
    if (job_.ratio) return step::measure_ratio_rank(job_, links_, progress());
    if (!job_.placement) return step::measure_rank(job_, links_, progress());
    if (!links_.several_nodes()) return step::measure_placed_rank(job_, links_.region(), options_.place, progress());
    auto measured = step::measure_placed_rank(job_, carriers(), progress());
    if (measured)
      measured->notes.emplace_back(
          "a transfer between hosts takes what the side takes that waits less for the other: of a short one, the time "
          "to hand it to the network");
    if (measured && &links_.beside() != &links_.transport())
      measured->notes.emplace_back(
          "transfers of the placement went over TCP: MPI waits busily, on the core that computes meanwhile");
    return measured;
  }

  /// On several hosts, over what carries the timed steps too.
  Expected<std::optional<StepNumerics>> proven_apart() {
    if (job_.placement) return step::prove_placement(job_, carriers());
    const auto communicator = step::carried_communicator(links_.collectives(), links_.transport());
    return step::prove_apart(job_, *communicator, links_.transport());
  }

  /// What would make the proof affordable: more time, or less to keep.
  std::string way_to_a_proof(const ProofNeeds& needs) const {
    const std::string smaller = "take a smaller batch, sequence or model",
                      more = format_bytes(whole_bytes(2 * needs.bytes));
    const std::string time =
        fmt::format("allow {:.0f} s (--budget of turnpoint-cli validate)", std::ceil(needs.seconds));
    if (needs.affordable(job_.budget_s, 0)) return smaller + ", or a machine on which " + more + " can be had";
    if (needs.affordable(needs.seconds, machine_memory().available)) return time + ", or " + smaller;
    return smaller + ", or " + time + " on a machine on which " + more + " can be had";
  }

  static std::int64_t whole_bytes(double bytes) { return static_cast<std::int64_t>(std::min(bytes, 4e18)); }

  Expected<void> prove() {
    if (!job_.prove || job_.mode != StepMode::ranks) return {};
    if (job_.ratio && links_.several_nodes()) {
      notes_.emplace_back("not proven: a ratio plan is proven by ranks of one host; run it on one to prove it");
      return {};
    }
    const ProofNeeds needs = proof_needs(job_, {usable_cores(), double_products().library != nullptr});
    if (!needs.affordable(job_.budget_s, machine_memory().available)) {
      notes_.push_back(fmt::format(
          "not proven: the step in double would take about {} and {}, more than the budget of {} or half of the memory "
          "that can be had; to prove it, {}",
          format_seconds(needs.seconds), format_bytes(whole_bytes(needs.bytes)), format_seconds(job_.budget_s),
          way_to_a_proof(needs)));
      return {};
    }
    sign_of_life("proving", 0, 30 + 10 * needs.seconds);
    // Found before there are threads. A refused library is told; that there is none is nothing to be told of.
    if (const auto& products = double_products(); products.refused)
      notes_.push_back("proven by own products; " + products.why);
    // Ranks on several hosts prove it together, over what carries the timed steps too.
    if (links_.several_nodes()) {
      prove_apart_ = true;
      return {};
    }
    const auto numerics = job_.ratio       ? step::prove_ratio(job_)
                          : job_.placement ? step::prove_placement(job_)
                                           : step::prove(job_);
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
    for (const auto& task : m.tasks) say(write_measured(task));
    for (const auto& transfer : m.transfers) say(write_measured(transfer));
    for (const auto& move : m.moves) say(write_measured(move));
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
    for (const auto& device : m.devices) result["devices"].push_back(write_measured(device));
    const auto finite = [](double error) { return error < 1e9 ? error : 1e9; };  // JSON knows no other numbers
    if (numerics_)
      result["numerics"] = {{"loss_error", finite(numerics_->loss_error)},
                            {"activation_error", finite(numerics_->activation_error)},
                            {"gradient_error", finite(numerics_->gradient_error)},
                            {"update_error", finite(numerics_->update_error)},
                            {"tolerance", numerics_->tolerance},
                            {"precision", numerics_->precision},
                            {"where", numerics_->where}};
    if (numerics_ && numerics_->rounding) {
      const StepRounding& rounding = *numerics_->rounding;
      result["numerics"]["rounding"] = {{"precision", rounding.precision},
                                        {"loss_error", rounding.loss_error},
                                        {"gradient_error", rounding.gradient_error},
                                        {"loss_tolerance", rounding.loss_tolerance},
                                        {"gradient_tolerance", rounding.gradient_tolerance},
                                        {"where", rounding.where}};
    }
    if (job_.backend == ProbeBackend::automatic)
      notes_.push_back("backend auto: steps are carried out on CPU ranks, with or without a GPU");
    notes_.insert(notes_.end(), m.notes.begin(), m.notes.end());
    result["notes"] = notes_;
    say(result);
  }

  const WorkerOptions& options_;
  const StepJob& job_;
  RankLinks& links_;
  int cores_;
  LineWriter out_;
  std::optional<StepNumerics> numerics_;
  bool prove_apart_ = false;
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

int ranks_of(const StepJob& job) { return job.mode == StepMode::slice ? 1 : job.devices(); }

int run_step_worker(const WorkerOptions& options, const std::string& text, RankLinks& links, int cores,
                    const std::function<void()>& pin) {
  const auto job = parse_step_job(text, "job");
  if (!job) {
    LineWriter(options.out_file).write({{"type", "error"}, {"what", job.error().message()}, {"hint", ""}});
    return kDevice;
  }
  StepWorker worker(options, *job, links, cores);
  if (options.backend != ProbeBackend::cuda) return worker.run(pin);
  return options.ranks > 1 ? worker.run_on_gpus() : worker.run_on_gpu();
}

}  // namespace turnpoint::probe
