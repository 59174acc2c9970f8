// SPDX-License-Identifier: Apache-2.0
// Numbers in the memory of a CUDA device.
#include "gpu_probe/step/values/place.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "gpu_probe/step/cuda/arguments.h"
#include "gpu_probe/step/cuda/device.h"
#include "gpu_probe/step/cuda/walk.h"

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
struct Mail {
  std::mutex mutex;
  Buffers buffers{allocate_there, free_there};
};
Mail& mail() {
  static auto* mine = new Mail;  // to the end of the process, as the device
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
void on_device(const char* doing, const Work& work) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  ++device.queued;
  if (device.good()) device.check(work(device.gpu.driver, device.gpu.stream), doing);
}

// The nearest bf16 of a float, the even one of two that are as near; and back.
std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
float from_half(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::size_t bytes_of(Place place, std::size_t count) { return count * static_cast<std::size_t>(place.element_bytes); }

void wait_here(const char* doing) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  device.wait(doing);
}

}  // namespace

Buffers& counted_memory() {
  thread_local Buffers mine(allocate_there, free_there);
  return mine;
}
Buffers& scratch_memory() {
  thread_local Buffers mine(allocate_there, free_there);
  return mine;
}
Buffers& outside_memory() {
  thread_local Buffers mine(allocate_there, free_there);
  return mine;
}

Moment moment_on(probe::cuda::Stream stream) {
  Waiting& mine = waiting();
  if (mine.events_used == mine.events.size()) {
    probe::cuda::Event event = nullptr;
    on_device("making an event", [&](const auto& driver, auto) { return driver.event_create(&event, 0); });
    mine.events.push_back(event);
  }
  const probe::cuda::Event event = mine.events[mine.events_used++];
  on_device("recording an event", [&](const auto& driver, auto) { return driver.event_record(event, stream); });
  return {event};
}
Moment moment() { return moment_on(Device::get().gpu.stream); }

void hold_until(probe::cuda::Stream stream, const Moment& moment) {
  on_device("waiting for an event", [&](const auto& driver, auto) {
    return driver.stream_wait_event(stream, static_cast<probe::cuda::Event>(moment.event), 0);
  });
}

void between(const Moment& from, const Moment& to, std::function<void(double)> take) {
  waiting().spans.push_back({from.event, to.event, std::move(take)});
}

void hold_back() {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  constexpr double kQueueing = 5e-6, kMost = 0.05;  // s a call, and in all
  Hold hold{};
  const double clock = 1e3 * std::max(device.gpu.attribute(probe::cuda::kClockKilohertz, device.gpu.device), 1000000);
  hold.cycles = static_cast<i64>(std::min(kMost, kQueueing * static_cast<double>(device.queued)) * clock);
  device.launch("hold", 1, 1, 1, 1, hold);
  device.queued = 0;
}

void begin_moments() { waiting().forget(); }

Expected<void> settle() {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  Waiting& mine = waiting();
  device.wait("carrying out a step");
  for (const auto& span : mine.spans) {
    float milliseconds = 0;
    on_device("reading an event", [&](const auto& driver, auto) {
      return driver.event_elapsed(&milliseconds, static_cast<probe::cuda::Event>(span.from),
                                  static_cast<probe::cuda::Event>(span.to));
    });
    if (device.good()) span.take(static_cast<double>(milliseconds) * 1e-3);
  }
  std::vector<double> sums(mine.sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    on_device("reading a sum", [&](const auto& driver, auto stream) {
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

void copy(ConstPlace from, Place to, std::size_t count) {
  if (count == 0) return;
  if (from.element_bytes != to.element_bytes)
    return move_strided({static_cast<std::int64_t>(count)}, from, {1}, to, {1});
  on_device("copying on the device", [&](const auto& driver, auto stream) {
    return driver.copy_on_device(to.address, from.address, bytes_of(to, count), stream);
  });
}

void add(ConstPlace from, Place to, std::size_t count) {
  move_strided({static_cast<std::int64_t>(count)}, from, {1}, to, {1}, true);
}

void fill(Place to, Real value, std::size_t count) {
  if (count == 0) return;
  on_device("filling memory", [&](const auto& driver, auto stream) {
    return to.element_bytes == 2 ? driver.fill_halves(to.address, to_half(value), count, stream)
                                 : driver.fill_words(to.address, std::bit_cast<std::uint32_t>(value), count, stream);
  });
}

void upload(const Real* from, Place to, std::size_t count) {
  if (count == 0) return;
  std::vector<std::uint16_t> halves;
  if (to.element_bytes == 2) std::transform(from, from + count, std::back_inserter(halves), to_half);
  const void* data = halves.empty() ? static_cast<const void*>(from) : halves.data();
  on_device("copying to the device", [&](const auto& driver, auto stream) {
    return driver.copy_to_device(to.address, data, bytes_of(to, count), stream);
  });
  wait_here("copying to the device");
}

void download(ConstPlace from, Real* to, std::size_t count) {
  if (count == 0) return;
  std::vector<std::uint16_t> halves(from.element_bytes == 2 ? count : 0);
  void* data = halves.empty() ? static_cast<void*>(to) : halves.data();
  on_device("copying from the device", [&](const auto& driver, auto stream) {
    return driver.copy_to_host(data, from.address, bytes_of(from, count), stream);
  });
  wait_here("copying from the device");
  std::transform(halves.begin(), halves.end(), to, from_half);
}

void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add) {
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

void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) {
  move_strided({columns, rows}, from, {1, columns}, to, {rows, 1});
}

void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) {
  void* room = outside_memory().take(sizeof(double));
  fill(place_of(room), 0, sizeof(double) / sizeof(Real));
  Weighted weighted{};
  weighted.count = static_cast<i64>(count);
  weighted.a = address(a), weighted.b = address(b);
  weighted.to = static_cast<double*>(room);
  launch_each("weighted_sum", weighted.count, weighted);
  waiting().sums.push_back({room, std::move(take)});
}

void apply(UpdateRule rule, Real rate, ConstPlace g, Place w, Place master, Place m, Place v, std::size_t count) {
  Rule update{};
  update.count = static_cast<i64>(count);
  update.rule = rule == UpdateRule::sgd ? 0 : rule == UpdateRule::momentum ? 1 : 2;
  update.g = address(g), update.w = address(w), update.m = address(m), update.v = address(v);
  if (w.element_bytes < static_cast<int>(sizeof(Real))) update.master = address(master);
  update.rate = rate;
  launch_each("update", update.count, update);
}

Message::Message(ConstNumbers numbers) : size_(numbers.size()) {
  const std::size_t bytes = std::max<std::size_t>(1, bytes_of(numbers.data(), size_));
  void* room = nullptr;
  {
    const std::lock_guard lock(mail().mutex);
    room = mail().buffers.take(bytes);
  }
  owner_ = std::shared_ptr<void>(room, [bytes](void* data) {
    const std::lock_guard lock(mail().mutex);
    mail().buffers.give(data, bytes);
  });
  data_ = place_of(room, numbers.data().element_bytes);
  copy(numbers.data(), data_, size_);
}

Filling::Filling(Place to, std::size_t count) : to_(to), staged_(count), data_(staged_.data()) {}
Filling::~Filling() { upload(data_, to_, staged_.size()); }

}  // namespace turnpoint::step::in_cuda
