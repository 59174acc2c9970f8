// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/gpu_team.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "gpu_probe/job/output.h"

namespace turnpoint::probe {

namespace {

using cuda::Pointer;

/// Seconds that one sample lasts at least: shorter exchanges are repeated, up to so often.
constexpr double kShortestOnGpu = 200e-6, kMostOnGpu = 64;

constexpr std::int64_t kFilledAtOnce = std::int64_t(1) << 22;

/// An exchange with its buffers, timed by the GPU's clock.
class GpuExchange : public Prepared {
 public:
  GpuExchange(cuda::Gpu& gpu, GpuCollectives& ranks, const ProbeCollective& wanted, std::optional<Error>& trouble)
      : gpu_(gpu),
        ranks_(ranks),
        memory_(gpu),
        trouble_(trouble),
        wanted_(wanted),
        group_(strided_group(ranks.rank(), wanted.group_size, wanted.stride)) {}

  Expected<void> allocate() {
    const auto members = static_cast<std::int64_t>(group_.size());
    total_ = std::max<std::int64_t>(1, wanted_.bytes / 4);
    part_ = std::max<std::int64_t>(1, total_ / members);
    const std::int64_t most = std::max(total_, part_ * members);
    const auto a = memory_.raw(static_cast<std::size_t>(most) * sizeof(float));
    if (!a) return a.error();
    const auto b = memory_.zeros(static_cast<std::size_t>(most) * sizeof(float));
    if (!b) return b.error();
    a_ = *a, b_ = *b;
    return fill(most);
  }

  /// False once the exchange has failed or a rank has died.
  bool settle(Team& team) {
    const auto begun = ranks_.line_up();
    if (!begun) return note(begun.error());
    for (int i = 0; i < 2; ++i)
      if (const auto run = run_once(); !run) return note(run.error());
    const auto once = sample(false);
    if (!once) return false;
    auto repeats = static_cast<float>(std::clamp(std::ceil(kShortestOnGpu / *once), 1.0, kMostOnGpu));
    if (team.ranks() > 1 && !team.agree({&repeats, 1})) return false;
    repeats_ = static_cast<int>(repeats);
    return true;
  }

  Expected<double> sample(bool) override {
    auto time = timed();
    if (!time) note(time.error());
    return time;
  }
  std::string implementation() const override { return "NCCL " + ranks_.version(); }

 private:
  bool note(const Error& error) {
    if (!trouble_) trouble_ = error;
    ranks_.abort();
    return false;
  }

  /// From here: that needs no kernels of ours, which another library has to compile.
  Expected<void> fill(std::int64_t count) {
    std::vector<float> numbers(static_cast<std::size_t>(std::min(count, kFilledAtOnce)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] =
          static_cast<float>(((i + static_cast<std::size_t>(ranks_.rank())) * 2654435761u) >> 8 & 0xffff) * 1e-5f;
    for (std::int64_t at = 0; at < count; at += kFilledAtOnce) {
      const auto bytes = static_cast<std::size_t>(std::min(count - at, kFilledAtOnce)) * sizeof(float);
      if (const cuda::Result result = gpu_.driver.copy_to_device(element(a_, at), numbers.data(), bytes, gpu_.stream);
          result != 0)
        return gpu_.failure(result, "filling memory");
    }
    return gpu_.wait("filling memory");
  }

  Expected<double> timed() {
    const cuda::Driver& driver = gpu_.driver;
    if (auto done = ranks_.line_up(); !done) return done.error();
    cuda::Result result = driver.event_record(gpu_.begin, gpu_.stream);
    for (int i = 0; i < repeats_ && result == 0; ++i)
      if (auto done = run_once(); !done) return done.error();
    if (result == 0) result = driver.event_record(gpu_.end, gpu_.stream);
    if (result != 0) return gpu_.failure(result, "timing an exchange");
    if (auto done = gpu_.wait("exchanging between GPUs"); !done) return done.error();
    float milliseconds = 0;
    result = driver.event_elapsed(&milliseconds, gpu_.begin, gpu_.end);
    if (result != 0) return gpu_.failure(result, "timing an exchange");
    return std::max(1e-9, static_cast<double>(milliseconds) * 1e-3 / repeats_);
  }

  Expected<void> run_once() {
    switch (wanted_.kind) {
      case Collective::all_reduce: return ranks_.all_reduce(group_, a_, b_, total_);
      case Collective::all_gather: return ranks_.all_gather(group_, a_, b_, part_);
      case Collective::reduce_scatter: return ranks_.reduce_scatter(group_, a_, b_, part_);
      case Collective::broadcast: return ranks_.broadcast(group_, b_, total_, group_.front());
      case Collective::all_to_all: return all_to_all();
      case Collective::send: return pass_on();
    }
    return {};
  }
  static Pointer element(Pointer of, std::int64_t index) { return of + 4 * static_cast<Pointer>(index); }

  /// The local blocks of all members together are the bytes; each block has a part for every member. What a member
  /// keeps is copied, as the exchange would.
  Expected<void> all_to_all() {
    const auto members = static_cast<std::int64_t>(group_.size());
    const std::int64_t piece = std::max<std::int64_t>(1, part_ / members);
    std::vector<GpuPart> parts;
    for (std::int64_t i = 0; i < members; ++i) {
      const int peer = group_[static_cast<std::size_t>(i)];
      const Pointer out = element(a_, i * piece), in = element(b_, i * piece);
      if (peer != ranks_.rank()) {
        parts.push_back({peer, out, piece, in, piece});
        continue;
      }
      const auto bytes = static_cast<std::size_t>(piece) * sizeof(float);
      if (const cuda::Result result = gpu_.driver.copy_on_device(in, out, bytes, gpu_.stream); result != 0)
        return gpu_.failure(result, "copying on the device");
    }
    return ranks_.exchange(parts);
  }

  /// Every member passes its block to the next one, as a permutation does.
  Expected<void> pass_on() {
    const auto me = static_cast<std::size_t>(std::find(group_.begin(), group_.end(), ranks_.rank()) - group_.begin());
    const int to = group_[(me + 1) % group_.size()], from = group_[(me + group_.size() - 1) % group_.size()];
    const GpuPart parts[] = {{to, a_, total_, 0, 0}, {from, 0, 0, b_, total_}};
    return ranks_.exchange(parts);
  }

  cuda::Gpu& gpu_;
  GpuCollectives& ranks_;
  cuda::DeviceMemory memory_;
  std::optional<Error>& trouble_;
  const ProbeCollective wanted_;
  Group group_;
  std::int64_t total_ = 1, part_ = 1;
  Pointer a_ = 0, b_ = 0;
  int repeats_ = 1;
};

}  // namespace

GpuTeam::GpuTeam(cuda::Gpu& gpu, Communicator& control, Transport& transport, bool exchange)
    : HostTeam(control), gpu_(gpu) {
  if (!exchange) {
    missing_ = device_error("left out: exchanges between these GPUs have failed several times in a row");
    return;
  }
  auto opened = GpuCollectives::open(gpu, control, transport);
  if (opened)
    exchanges_ = std::move(*opened);
  else
    missing_ = opened.error();
}

Expected<std::unique_ptr<Prepared>> GpuTeam::prepare(const ProbeCollective& collective) {
  std::unique_ptr<GpuExchange> exchange;
  Expected<void> ready = missing_ ? Expected<void>(*missing_) : Expected<void>();
  if (ready) {
    exchange = std::make_unique<GpuExchange>(gpu_, *exchanges_, collective, trouble_);
    ready = exchange->allocate();
  }
  // What a rank finds out by itself is known to all before any of them waits for another.
  float failed = ready ? 0 : 1;
  if (!largest(failed)) return std::unique_ptr<Prepared>();
  if (failed > 0) return ready ? device_error("another rank could not prepare it") : ready.error();
  if (!exchange->settle(*this)) exchange.reset();
  return std::unique_ptr<Prepared>(std::move(exchange));
}

}  // namespace turnpoint::probe
