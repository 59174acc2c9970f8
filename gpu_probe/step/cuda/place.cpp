// SPDX-License-Identifier: Apache-2.0
// Numbers in the memory of a CUDA device.

#include <algorithm>
#include <bit>

#include "gpu_probe/step/cuda/arguments.h"
#include "gpu_probe/step/cuda/device.h"
#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/run.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/choose.h"

namespace turnpoint::step::in_cuda {

namespace {

constexpr int kOutOfMemory = 2;

void* allocate_there(std::size_t bytes) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  probe::cuda::Pointer pointer = 0;
  const probe::cuda::Result result = device.gpu.driver.allocate(&pointer, bytes);
  if (result == 0) return reinterpret_cast<void*>(pointer);
  if (result != kOutOfMemory) device.check(result, "allocating memory");
  return nullptr;
}
void free_there(void* data) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  device.gpu.driver.free(reinterpret_cast<probe::cuda::Pointer>(data));
}

/// Memory of messages: given by one rank, returned by another.
struct Letters {
  std::mutex mutex;
  Buffers buffers{allocate_there, free_there};
};
Letters& letters() {
  static auto* mine = new Letters;  // to the end of the process, as the device
  return *mine;
}

/// What settle() has to tell.
struct Waiting {
  std::vector<probe::cuda::Event> events;
  std::size_t events_used = 0;
  struct Span {
    void *from, *to;
    std::function<void(double)> take;
  };
  std::vector<Span> spans;
  struct Sum {
    void* place;
    std::function<void(double)> take;
  };
  std::vector<Sum> sums;

  void forget() {
    events_used = 0;
    spans.clear();
    for (const auto& sum : sums) outside_memory().give(sum.place, sizeof(double));
    sums.clear();
  }
};
Waiting& waiting() {
  thread_local Waiting mine;
  return mine;
}

/// Runs while nothing has failed, one rank at a time.
template <class Work>
void queue(const char* doing, const Work& work) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  ++device.queued;
  if (device.good()) device.check(work(device.gpu.driver, device.gpu.stream), doing);
}

std::size_t bytes_of(Place place, std::size_t count) { return count * static_cast<std::size_t>(place.element_bytes); }

void wait_here(const char* doing) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  device.wait(doing);
}

class OnCuda : public Arithmetic {
 public:
  OnCuda() : Arithmetic(sizeof(float), true) {}
  int kept_bytes() const override { return Device::get().precision == ProbePrecision::bf16 ? 2 : 4; }
  Expected<Kernel> kernel_of(const Model& model, OperatorId id) const override {
    const auto found = choose_kernel<GpuKernels>(model, id);
    if (!found) return found.error();
    return **found;
  }
  Buffers& counted_memory() const override {
    thread_local Buffers mine(allocate_there, free_there);
    return mine;
  }
  Buffers& scratch_memory() const override {
    thread_local Buffers mine(allocate_there, free_there);
    return mine;
  }
  Buffers& outside_memory() const override {
    thread_local Buffers mine(allocate_there, free_there);
    return mine;
  }
  std::shared_ptr<void> mail(std::size_t bytes) const override;
  Moment moment() const override { return moment_on(Device::get().gpu.stream); }
  void between(const Moment& from, const Moment& to, std::function<void(double)> take) const override {
    waiting().spans.push_back({from.event, to.event, std::move(take)});
  }
  void copy(ConstPlace from, Place to, std::size_t count) const override;
  void add(ConstPlace from, Place to, std::size_t count) const override {
    move_strided({static_cast<std::int64_t>(count)}, from, {1}, to, {1}, true);
  }
  void fill(Place to, double value, std::size_t count) const override;
  void upload(const void* from, Place to, std::size_t bytes) const override;
  void download(ConstPlace from, void* to, std::size_t bytes) const override;
  void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add) const override;
  void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) const override {
    move_strided({columns, rows}, from, {1, columns}, to, {rows, 1});
  }
  void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) const override;
  void apply(UpdateRule rule, double rate, ConstPlace g, Place w, Place master, Place m, Place v,
             std::size_t count) const override;
  void hold_back() const override;
  void begin_moments() const override { waiting().forget(); }
  Expected<void> settle() const override;
};

}  // namespace

Moment moment_on(probe::cuda::Stream stream) {
  Waiting& mine = waiting();
  if (mine.events_used == mine.events.size()) {
    probe::cuda::Event event = nullptr;
    queue("making an event", [&](const auto& driver, auto) { return driver.event_create(&event, 0); });
    mine.events.push_back(event);
  }
  const probe::cuda::Event event = mine.events[mine.events_used++];
  queue("recording an event", [&](const auto& driver, auto) { return driver.event_record(event, stream); });
  return {0, event};
}

void hold_until(probe::cuda::Stream stream, const Moment& moment) {
  queue("waiting for an event", [&](const auto& driver, auto) {
    return driver.stream_wait_event(stream, static_cast<probe::cuda::Event>(moment.event), 0);
  });
}

void OnCuda::hold_back() const {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  constexpr double kQueueing = 5e-6, kMost = 0.05;  // s a call, and in all
  Hold hold{};
  const double clock = 1e3 * std::max(device.gpu.attribute(probe::cuda::kClockKilohertz, device.gpu.device), 1000000);
  hold.cycles = static_cast<i64>(std::min(kMost, kQueueing * static_cast<double>(device.queued)) * clock);
  device.launch("hold", 1, 1, 1, 1, hold);
  device.queued = 0;
}

Expected<void> OnCuda::settle() const {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  Waiting& mine = waiting();
  device.wait("carrying out a step");
  for (const auto& span : mine.spans) {
    float milliseconds = 0;
    queue("reading an event", [&](const auto& driver, auto) {
      return driver.event_elapsed(&milliseconds, static_cast<probe::cuda::Event>(span.from),
                                  static_cast<probe::cuda::Event>(span.to));
    });
    if (device.good()) span.take(static_cast<double>(milliseconds) * 1e-3);
  }
  std::vector<double> sums(mine.sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    queue("reading a sum", [&](const auto& driver, auto stream) {
      return driver.copy_to_host(&sums[i], reinterpret_cast<probe::cuda::Pointer>(mine.sums[i].place), sizeof(double),
                                 stream);
    });
  device.wait("reading sums");
  if (device.good())
    for (std::size_t i = 0; i < sums.size(); ++i) mine.sums[i].take(sums[i]);
  mine.forget();
  if (device.trouble) return *device.trouble;
  return {};
}

void OnCuda::copy(ConstPlace from, Place to, std::size_t count) const {
  if (count == 0) return;
  if (from.element_bytes != to.element_bytes)
    return move_strided({static_cast<std::int64_t>(count)}, from, {1}, to, {1});
  queue("copying on the device", [&](const auto& driver, auto stream) {
    return driver.copy_on_device(to.address, from.address, bytes_of(to, count), stream);
  });
}

void OnCuda::fill(Place to, double value, std::size_t count) const {
  if (count == 0) return;
  const auto kept = static_cast<float>(value);
  queue("filling memory", [&](const auto& driver, auto stream) {
    return to.element_bytes == 2 ? driver.fill_halves(to.address, to_half(kept), count, stream)
                                 : driver.fill_words(to.address, std::bit_cast<std::uint32_t>(kept), count, stream);
  });
}

void OnCuda::upload(const void* from, Place to, std::size_t bytes) const {
  if (bytes == 0) return;
  queue("copying to the device",
        [&](const auto& driver, auto stream) { return driver.copy_to_device(to.address, from, bytes, stream); });
  wait_here("copying to the device");
}

void OnCuda::download(ConstPlace from, void* to, std::size_t bytes) const {
  if (bytes == 0) return;
  queue("copying from the device",
        [&](const auto& driver, auto stream) { return driver.copy_to_host(to, from.address, bytes, stream); });
  wait_here("copying from the device");
}

void OnCuda::copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add) const {
  const Region both = intersection(from, to);
  if (both.elements() == 0) return;
  const std::size_t rank = both.extent.size();
  Strides from_strides(rank), to_strides(rank);
  std::int64_t read = 0, write = 0, from_stride = 1, to_stride = 1;
  for (std::size_t d = rank; d-- > 0;) {
    from_strides[d] = from_stride;
    to_strides[d] = to_stride;
    read += (both.offset[d] - from.offset[d]) * from_stride;
    write += (both.offset[d] - to.offset[d]) * to_stride;
    from_stride *= from.extent[d];
    to_stride *= to.extent[d];
  }
  move_strided(both.extent, source + read, from_strides, target + write, to_strides, add);
}

void OnCuda::weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) const {
  void* room = outside_memory().take(sizeof(double));
  fill({room, sizeof(float)}, 0, sizeof(double) / sizeof(float));
  Weighted weighted{};
  weighted.count = static_cast<i64>(count);
  weighted.a = address(a), weighted.b = address(b);
  weighted.to = static_cast<double*>(room);
  launch_each("weighted_sum", weighted.count, weighted);
  waiting().sums.push_back({room, std::move(take)});
}

void OnCuda::apply(UpdateRule rule, double rate, ConstPlace g, Place w, Place master, Place m, Place v,
                   std::size_t count) const {
  Rule update{};
  update.count = static_cast<i64>(count);
  update.rule = rule == UpdateRule::sgd ? 0 : rule == UpdateRule::momentum ? 1 : 2;
  update.g = address(g), update.w = address(w), update.m = address(m), update.v = address(v);
  if (w.element_bytes < static_cast<int>(sizeof(float))) update.master = address(master);
  update.rate = static_cast<float>(rate);
  launch_each("update", update.count, update);
}

std::shared_ptr<void> OnCuda::mail(std::size_t bytes) const {
  const std::size_t taken = std::max<std::size_t>(1, bytes);
  const std::lock_guard lock(letters().mutex);
  return {letters().buffers.take(taken), [taken](void* data) {
            const std::lock_guard returning(letters().mutex);
            letters().buffers.give(data, taken);
          }};
}

}  // namespace turnpoint::step::in_cuda

namespace turnpoint::step {

const Arithmetic& on_cuda() {
  static const in_cuda::OnCuda there;
  return there;
}

}  // namespace turnpoint::step
