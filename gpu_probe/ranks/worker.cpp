// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/worker.h"

#include <fmt/format.h>
#include <sched.h>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/cpu_backend.h"
#include "gpu_probe/cuda/cuda_backend.h"
#include "gpu_probe/measure/loop.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/ranks/gpu_team.h"
#include "gpu_probe/ranks/host_team.h"
#include "gpu_probe/ranks/step_worker.h"
#include "gpu_probe/step/timed_operator.h"
#include "gpu_probe/transport/rank_links.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

/// A core for each rank, as long as there are enough of those that we may use.
void pin(int rank, int ranks) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < ranks) return;
  for (int core = 0, index = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &usable) && index++ == rank) {
      cpu_set_t mine;
      CPU_ZERO(&mine);
      CPU_SET(core, &mine);
      sched_setaffinity(0, sizeof mine, &mine);
      return;
    }
}

int refuse(const WorkerOptions& options, const Error& error) {
  // Another rank ended while they met: its own error is the one to tell, whichever comes first.
  const bool follows = error.code == ErrorCode::cancelled;
  LineWriter(options.out_file)
      .write({{"type", "error"}, {"what", error.what}, {"hint", error.hint}, {"follows", follows}});
  return follows ? kFollowed : kDevice;
}

/// Says hello, compares kernels where that was asked, and measures.
int measure(const WorkerOptions& options, const ProbeJob& job, Team& team, Backend& backend,
            const std::function<bool(json&)>& add_to_hello = {}) {
  LineWriter out(options.out_file);
  const auto say = [&](const json& line) {
    if (options.rank == 0) out.write(line);
  };
  json hello = backend.describe();
  hello["type"] = "hello";
  hello["program"] = "turnpoint-probe";
  hello["protocol"] = 1;
  hello["kernels"] = kKernelRevision;
  hello["statistic"] = backend.shared_host() ? "q1" : "median";
  hello["cold"] = backend.cold();
  if (add_to_hello && !add_to_hello(hello)) return kDevice;
  say(hello);
  if (job.check && options.start == 0) {
    for (const auto& message : backend.check()) say(message);
    if (backend.broken()) say({{"type", "error"}, {"what", "the device failed during the checks"}, {"hint", ""}});
  }
  const LoopOptions loop{options.start, options.deadline, host_clock, say};
  return run_loop(job, backend, team, loop) ? kDone : kDevice;
}

/// CPU ranks' kernels alone, and what a step takes for an operator beside them in the place of a launch.
class CoreBackend : public Backend {
 public:
  CoreBackend(int ranks, const ProbeJob& job) : kernels_(make_cpu_backend(ranks, job.seed)) {}
  json describe() override { return kernels_->describe(); }
  Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator& op) override {
    if (op.calls.size() != 1 || op.calls.front().kind != CallKind::launch) return kernels_->prepare(op);
    auto operators = step::timed_operators();
    if (!operators) return operators.error();
    return std::unique_ptr<Prepared>(new Launch(std::move(*operators)));
  }
  std::vector<json> check() override { return kernels_->check(); }
  bool cold() const override { return kernels_->cold(); }
  bool shared_host() const override { return kernels_->shared_host(); }

 private:
  class Launch : public Prepared {
   public:
    explicit Launch(std::unique_ptr<step::TimedOperators> operators) : operators_(std::move(operators)) {}
    Expected<double> sample(bool) override { return operators_->once(); }
    std::string implementation() const override { return "an operator of a step"; }

   private:
    std::unique_ptr<step::TimedOperators> operators_;
  };
  std::unique_ptr<Backend> kernels_;
};

/// One of several ranks with a GPU each.
int measure_gpus(const WorkerOptions& options, const ProbeJob& job, RankLinks& links, GpuBackend& backend) {
  GpuTeam team(backend.gpu(), links.collectives(), links.transport(), options.exchange);
  const int code = measure(options, job, team, backend, [&](json& hello) {
    describe_nccl(hello, team.version(), team.missing());
    return options.peers_file < 0 || gather_devices(hello, links.collectives());
  });
  if (team.trouble() && team.trouble()->what != kAnotherRankGaveUp) return refuse(options, *team.trouble());
  return code;
}

int open_and_run(const WorkerOptions& options) {
  if (options.choose) {
    const auto gpus = visible_gpus();
    LineWriter(options.out_file)
        .write({{"type", "choice"},
                {"backend", gpus ? "cuda" : "cpu"},
                {"gpus", gpus ? *gpus : 0},
                {"why", gpus ? "" : gpus.error().what}});
    return kDone;
  }
  const auto text = read_file(fmt::format("/proc/self/fd/{}", options.job_file));
  if (!text) return refuse(options, text.error());
  auto opened = RankLinks::open(options);
  if (!opened) return refuse(options, opened.error());
  RankLinks& links = **opened;
  const auto ended = [&](int code) {
    if (code == kDone) links.finish();
    return code == kDevice && links.transport().lost() ? kFollowed : code;
  };
  if (is_step_job(*text)) {
    const int cores = options.cores > 0 ? options.cores : usable_cores();
    const bool cpu = options.backend == ProbeBackend::cpu;
    if (cpu && options.rank > 0)
      pin(options.place, options.places);  // rank 0 proves first, with as many threads as ranks
    return ended(run_step_worker(options, *text, links, cores, [&] { pin(options.place, options.places); }));
  }
  auto job = parse_probe_job(*text, "job");
  if (!job) return refuse(options, job.error());
  HostTeam team(links.collectives(), links.transport());
  if (options.backend == ProbeBackend::cuda) {
    const auto gpu = open_cuda_backend(job->device + options.place, job->seed);
    if (!gpu) return refuse(options, options.ranks > 1 ? without_gpu(gpu.error(), options.rank) : gpu.error());
    if (options.ranks > 1) return ended(measure_gpus(options, *job, links, **gpu));
    return ended(measure(options, *job, team, **gpu));
  }
  if (const auto chosen = choose_kernels(job->cpu_kernels); !chosen) return refuse(options, chosen.error());
  CoreBackend backend(options.places, *job);  // counts the cores that it may use
  pin(options.place, options.places);
  return ended(measure(options, *job, team, backend));
}

}  // namespace

int run_worker(const WorkerOptions& options) {
  try {
    return open_and_run(options);
  } catch (const std::bad_alloc&) {
    return refuse(options, device_error("out of host memory", "ask for smaller items or fewer ranks"));
  } catch (const std::exception& error) {
    return refuse(options, device_error(error.what()));
  }
}

}  // namespace turnpoint::probe
