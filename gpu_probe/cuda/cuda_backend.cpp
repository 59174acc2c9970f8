// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "gpu_probe/cuda/calls.h"
#include "gpu_probe/cuda/check.h"
#include "gpu_probe/cuda/describe.h"
#include "gpu_probe/cuda/kernel_source.h"

namespace turnpoint::probe {

namespace {

using namespace cuda;

/// A run is held back until it is queued, so that queueing is not timed: for so long per kernel, or for as long as the
/// last one took to queue and half of that again, since a library may need far longer for a call than a launch does.
constexpr double kQueueingNanoseconds = 4000, kMostHeldBack = 20e6, kSpare = 1.5;

class CudaPrepared : public Prepared {
 public:
  CudaPrepared(Gpu& gpu, std::unique_ptr<DeviceMemory> memory, std::vector<Step> steps)
      : gpu_(gpu), memory_(std::move(memory)), steps_(std::move(steps)) {
    for (const auto& step : steps_)
      least_queueing_ns_ += kQueueingNanoseconds * static_cast<double>(step.launches) * static_cast<double>(step.count);
    queueing_ns_ = least_queueing_ns_;
  }

  Expected<double> sample(bool cold) override { return timed(1, cold); }
  Expected<double> sample_hot(int repeats) override {
    const auto all = timed(repeats, false);
    if (!all) return all;
    return *all / repeats;
  }
  std::string implementation() const override {
    std::set<std::string> names;
    for (const auto& step : steps_) names.insert(step.implementation);
    return fmt::format("{}", fmt::join(names, " + "));
  }

 private:
  Expected<double> timed(int repeats, bool cold) {
    const Driver& driver = gpu_.driver;
    Result result = 0;
    if (cold) result = driver.fill_words(gpu_.flushed, 0x3f800000u + ++flushes_, gpu_.l2_bytes / 2, gpu_.stream);
    if (result != 0) return gpu_.failure(result, "emptying the cache");
    const auto spin = gpu_.function("spin");
    if (!spin) return spin.error();
    const auto held = static_cast<std::int64_t>(std::min(kMostHeldBack, 10000 + queueing_ns_ * repeats));
    const auto began = std::chrono::steady_clock::now();
    result = Launch(*spin, 1, 1, 1, 1).with(held)(driver, gpu_.stream);
    if (result == 0) result = driver.event_record(gpu_.begin, gpu_.stream);
    if (result != 0) return gpu_.failure(result, "beginning a sample");
    for (int i = 0; i < repeats; ++i)
      for (const auto& step : steps_)
        for (std::int64_t j = 0; j < step.count; ++j)
          if (const int failed = step.run(gpu_.stream); failed != 0) {
            driver.stream_synchronize(gpu_.stream);
            return device_error(fmt::format("{} refused to run (status {})", step.implementation, failed));
          }
    result = driver.event_record(gpu_.end, gpu_.stream);
    const std::chrono::duration<double, std::nano> queueing = std::chrono::steady_clock::now() - began;
    queueing_ns_ = std::max(least_queueing_ns_, kSpare * queueing.count() / repeats);
    if (result == 0) result = driver.event_synchronize(gpu_.end);
    float milliseconds = 0;
    if (result == 0) result = driver.event_elapsed(&milliseconds, gpu_.begin, gpu_.end);
    if (result != 0) return gpu_.failure(result, "running the kernels");
    return std::max(1e-9, static_cast<double>(milliseconds) * 1e-3);
  }

  Gpu& gpu_;
  std::unique_ptr<DeviceMemory> memory_;
  std::vector<Step> steps_;
  double least_queueing_ns_ = 0, queueing_ns_ = 0;  ///< of one run
  unsigned flushes_ = 0;
};

class CudaBackend : public GpuBackend {
 public:
  explicit CudaBackend(std::uint64_t seed) : seed_(seed) {}
  Expected<void> open(int device) { return gpu_.open(device, kernel_source(), true); }

  Gpu& gpu() override { return gpu_; }
  nlohmann::json describe() override { return cuda::describe(gpu_); }

  Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator& op) override {
    auto memory = std::make_unique<DeviceMemory>(gpu_);
    memory->seed = seed_;
    std::vector<Step> steps;
    for (const auto& call : op.calls) {
      auto step = make_step(gpu_, *memory, call, op.precision);
      if (!step) return step.error();
      steps.push_back(std::move(*step));
    }
    if (const Result result = gpu_.driver.stream_synchronize(gpu_.stream); result != 0)
      return gpu_.failure(result, "filling memory");
    return std::unique_ptr<Prepared>(new CudaPrepared(gpu_, std::move(memory), std::move(steps)));
  }

  std::vector<nlohmann::json> check() override { return check_kernels(gpu_); }
  Conditions conditions() override { return gpu_.nvml.conditions(); }
  bool cold() const override { return true; }
  bool shared_host() const override { return false; }
  bool broken() const override { return gpu_.broken; }

 private:
  Gpu gpu_;
  std::uint64_t seed_;
};

}  // namespace

Expected<int> visible_gpus() { return Driver().open(); }

Expected<std::unique_ptr<GpuBackend>> open_cuda_backend(int device, std::uint64_t seed) {
  auto backend = std::make_unique<CudaBackend>(seed);
  if (auto opened = backend->open(device); !opened) return opened.error();
  return std::unique_ptr<GpuBackend>(std::move(backend));
}

}  // namespace turnpoint::probe
