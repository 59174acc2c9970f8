// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/worker.h"

#include <fmt/format.h>
#include <sched.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "gpu_probe/cpu/cpu_backend.h"
#include "gpu_probe/cuda/cuda_backend.h"
#include "gpu_probe/measure/statistics.h"
#include "gpu_probe/ranks/collectives.h"
#include "gpu_probe/ranks/controller.h"
#include "gpu_probe/ranks/step_worker.h"

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

class Worker {
 public:
  Worker(const WorkerOptions& options, ProbeJob job, SharedRegion& region, std::unique_ptr<Backend> backend)
      : options_(options),
        job_(std::move(job)),
        ranks_(region, options.rank),
        everyone_(ranks_.all()),
        backend_(std::move(backend)),
        out_(options.out_file),
        position_(options.start) {}

  int run() {
    json hello = backend_->describe();
    hello["type"] = "hello";
    hello["program"] = "turnpoint-probe";
    hello["protocol"] = 1;
    hello["statistic"] = backend_->shared_host() ? "q1" : "median";
    hello["cold"] = backend_->cold();
    say(hello);
    if (job_.check && options_.start == 0) {
      for (const auto& message : backend_->check()) say(message);
      if (backend_->broken()) say({{"type", "error"}, {"what", "the device failed during the checks"}, {"hint", ""}});
    }
    const auto order = run_order(job_);
    for (; position_ < order.size(); ++position_) {
      const std::size_t index = order[position_];
      double late = host_clock() >= options_.deadline ? 1 : 0;
      if (!agree(late)) return kDevice;
      if (late > 0) break;
      const bool going = index < job_.operators.size() ? measure_operator(index) : measure_collective(index);
      if (!going) return kDevice;
    }
    say({{"type", "done"}, {"skipped", order.size() - position_}});
    return kDone;
  }

 private:
  void say(const json& line) {
    if (options_.rank == 0) out_.write(line);
  }
  /// Everyone gets the value of rank 0.
  bool agree(double& value) {
    if (ranks_.ranks() == 1) return true;
    float shared = static_cast<float>(value);
    if (!ranks_.broadcast(everyone_, &shared, 1, 0)) return false;
    value = static_cast<double>(shared);
    return true;
  }
  /// Everyone gets the largest value.
  bool largest(double& value) {
    if (ranks_.ranks() == 1) return true;
    const float mine = static_cast<float>(value);
    std::vector<float> all(everyone_.size());
    if (!ranks_.all_gather(everyone_, &mine, all.data(), 1)) return false;
    value = static_cast<double>(*std::max_element(all.begin(), all.end()));
    return true;
  }

  /// Samples in step until rank 0 has enough: warm-ups first. False if a rank died; an error ends the sampling.
  bool sample(const std::function<Expected<double>()>& once, std::vector<double>& times, std::optional<Error>& error) {
    double began = host_clock();
    int warm = 0;
    for (double go_on = 1; go_on > 0;) {
      if (ranks_.ranks() > 1 && !ranks_.barrier(everyone_)) return false;
      const auto time = once();
      double failed = time ? 0 : 1;
      if (!largest(failed)) return false;
      if (failed > 0) {
        error = time ? device_error("failed on another rank") : time.error();
        return true;
      }
      double slowest = *time;
      if (!largest(slowest)) return false;
      const double elapsed = host_clock() - began;
      if (warm < kWarmUps && !(warm > 0 && elapsed > job_.item_s)) {
        if (++warm == kWarmUps || elapsed > job_.item_s) began = host_clock();
      } else {
        times.push_back(slowest);
      }
      go_on = !times.empty() && enough(times, elapsed, job_.item_s) ? 0 : 1;
      if (!agree(go_on)) return false;
      // Ranks whose own clock still says "warming up" follow rank 0.
      if (options_.rank != 0) warm = kWarmUps;
    }
    return true;
  }

  void add_times(json& item, const std::vector<double>& times) const {
    const Spread spread = spread_of(times);
    item["time_s"] = backend_->shared_host() ? spread.q1 : spread.median;
    item["min_s"] = spread.least;
    item["q1_s"] = spread.q1;
    item["median_s"] = spread.median;
    item["q3_s"] = spread.q3;
    item["samples"] = spread.samples;
    item["noisy"] = spread.relative() > kNoisy;
  }

  bool measure_operator(std::size_t index) {
    const ProbeOperator& op = job_.operators[index];
    say({{"type", "start"}, {"index", index}, {"position", position_}, {"phase", op.kind}});
    json item = operator_header(op);
    item["type"] = "item";
    item["index"] = index;
    auto prepared = prepare(op);
    double failed = prepared ? 0 : 1;
    if (!largest(failed)) return false;
    std::optional<Error> error;
    if (failed > 0) {
      error = prepared ? device_error("another rank could not prepare it") : prepared.error();
    } else {
      std::vector<double> times;
      if (!sample([&] { return (*prepared)->sample(true); }, times, error)) return false;
      if (!error) {
        add_times(item, times);
        item["implementation"] = (*prepared)->implementation();
        if (job_.hot && backend_->cold()) add_hot(item, **prepared);
        add_conditions(item);
      }
    }
    if (error) {
      item["not_measured"] = error->what;
      if (!error->hint.empty()) item["hint"] = error->hint;
    }
    say(item);
    if (!backend_->broken()) return true;
    const Error end = device_error(error ? error->what : "the device failed", error ? error->hint : "");
    say({{"type", "error"}, {"what", end.what}, {"hint", end.hint}});
    return false;
  }

  Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator& op) {
    try {
      return backend_->prepare(op);
    } catch (const std::bad_alloc&) {
      return device_error("out of host memory");
    }
  }

  void add_hot(json& item, Prepared& prepared) {
    const double once = item["time_s"].get<double>();
    const int repeats = std::clamp(static_cast<int>(0.02 / std::max(once, 1e-7)), 4, 100);
    std::vector<double> times;
    for (int i = 0; i < 3; ++i)
      if (const auto time = prepared.sample_hot(repeats)) times.push_back(*time);
    if (!times.empty()) item["hot_s"] = spread_of(times).median;
  }

  void add_conditions(json& item) {
    const Conditions now = backend_->conditions();
    if (now.clock_mhz) item["clock_mhz"] = *now.clock_mhz;
    if (now.temperature_c) item["temperature_c"] = *now.temperature_c;
    if (now.power_w) item["power_w"] = *now.power_w;
    if (!now.throttled.empty()) item["throttled"] = now.throttled;
  }

  bool measure_collective(std::size_t index) {
    const ProbeCollective& wanted = job_.collectives[index - job_.operators.size()];
    say({{"type", "start"}, {"index", index}, {"position", position_}, {"phase", to_string(wanted.kind)}});
    const int size = wanted.group_size, ranks = ranks_.ranks();
    json item = {{"type", "item"},
                 {"index", index},
                 {"collective", to_string(wanted.kind)},
                 {"group", {{"size", size}, {"nodes", 1}, {"per_node", size}, {"concurrent", ranks / size}}},
                 {"bytes", wanted.bytes}};
    if (ranks < size) {
      item["not_measured"] = fmt::format("needs {} devices, and this run has {}", size, ranks);
      say(item);
      return true;
    }
    std::vector<double> times;
    std::optional<Error> error;
    bool alive = true;
    const auto run = exchange(wanted, alive);
    double repeats = 1;
    const auto timed = [&]() -> Expected<double> {
      const double start = host_clock();
      for (int i = 0; i < static_cast<int>(repeats); ++i) run();
      if (!alive) return device_error("another rank died");
      return std::max(1e-9, (host_clock() - start) / repeats);
    };
    for (int i = 0; i < 2; ++i) (void)!timed().has_value();
    const auto once = timed();
    if (!alive) return false;
    repeats = std::clamp(std::ceil(50e-6 / *once), 1.0, 64.0);
    if (!agree(repeats)) return false;
    if (!sample(timed, times, error)) return false;
    if (error) return false;
    add_times(item, times);
    item["implementation"] = "shared memory";
    say(item);
    return true;
  }

  /// The call to be timed, with its buffers.
  std::function<void()> exchange(const ProbeCollective& wanted, bool& alive) {
    const Group group = ranks_.group_of(wanted.group_size);
    const auto members = static_cast<std::int64_t>(group.size());
    const std::int64_t total = std::max<std::int64_t>(1, wanted.bytes / 4),
                       part = std::max<std::int64_t>(1, total / members);
    // All-to-all: the local blocks of all members together are the bytes, each block has a part for every member.
    const std::int64_t piece = std::max<std::int64_t>(1, part / members);
    auto a = std::make_shared<std::vector<float>>(static_cast<std::size_t>(std::max(total, part * members)), 0.5f);
    auto b = std::make_shared<std::vector<float>>(a->size());
    for (std::size_t i = 0; i < a->size(); ++i) (*a)[i] = static_cast<float>((i * 2654435761u) >> 8 & 0xffff) * 1e-5f;
    switch (wanted.kind) {
      case Collective::all_reduce:
        return [=, this, &alive] { alive = alive && ranks_.all_reduce(group, b->data(), total); };
      case Collective::all_gather:
        return [=, this, &alive] { alive = alive && ranks_.all_gather(group, a->data(), b->data(), part); };
      case Collective::reduce_scatter:
        return [=, this, &alive] { alive = alive && ranks_.reduce_scatter(group, a->data(), b->data(), part); };
      case Collective::all_to_all:
        return [=, this, &alive] { alive = alive && ranks_.all_to_all(group, a->data(), b->data(), piece); };
      case Collective::broadcast:
        return [=, this, &alive] { alive = alive && ranks_.broadcast(group, b->data(), total, group.front()); };
      case Collective::send: break;
    }
    // Every member passes its block to the next one, as a permutation does.
    const auto me = static_cast<std::size_t>(std::find(group.begin(), group.end(), ranks_.rank()) - group.begin());
    const int to = group[(me + 1) % group.size()], from = group[(me + group.size() - 1) % group.size()];
    return [=, this, &alive] {
      alive = alive && ranks_.send_receive(to, a->data(), from, b->data(), total) && ranks_.barrier(group);
    };
  }

  const WorkerOptions& options_;
  ProbeJob job_;
  Communicator ranks_;
  Group everyone_;
  std::unique_ptr<Backend> backend_;
  LineWriter out_;
  std::size_t position_;  ///< in the run order
};

int refuse(const WorkerOptions& options, const Error& error) {
  LineWriter(options.out_file).write({{"type", "error"}, {"what", error.what}, {"hint", error.hint}});
  return kDevice;
}

}  // namespace

namespace {

int open_and_run(const WorkerOptions& options) {
  if (options.choose) {
    const auto why = cuda_unavailable();
    LineWriter(options.out_file)
        .write({{"type", "choice"}, {"backend", why ? "cpu" : "cuda"}, {"why", why ? why->what : ""}});
    return kDone;
  }
  const auto text = read_file(fmt::format("/proc/self/fd/{}", options.job_file));
  if (!text) return refuse(options, text.error());
  auto region = SharedRegion::attach(options.region_file, options.ranks);
  if (!region) return refuse(options, region.error());
  if (is_step_job(*text)) {
    const int cores = usable_cores();
    if (options.rank > 0) pin(options.rank, options.ranks);  // rank 0 proves first, with as many threads as ranks
    return run_step_worker(options, *text, *region, cores, [&] { pin(options.rank, options.ranks); });
  }
  auto job = parse_probe_job(*text, "job");
  if (!job) return refuse(options, job.error());
  std::unique_ptr<Backend> backend;
  if (options.backend == ProbeBackend::cuda) {
    auto opened = open_cuda_backend(job->device, job->seed);
    if (!opened) return refuse(options, opened.error());
    backend = std::move(*opened);
  } else {
    backend = make_cpu_backend(options.ranks, job->seed);  // counts the cores that it may use
    pin(options.rank, options.ranks);
  }
  return Worker(options, std::move(*job), *region, std::move(backend)).run();
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
