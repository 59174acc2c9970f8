// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/gpu.h"

#include <fmt/format.h>
#include <sched.h>
#include <algorithm>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

namespace {

constexpr Result kOutOfMemory = 2, kNotReady = 600;
constexpr int kPolls = 32;  // between looks at the other ranks

}  // namespace

Error Gpu::failure(Result result, const std::string& doing) {
  // After a fault on the device every call of this process fails; memory that ran out is freed again.
  if (result != kOutOfMemory) broken = true;
  return driver.failure(result, doing);
}

Expected<void> Gpu::wait(const std::string& doing) {
  Result result = interrupted ? driver.stream_query(stream) : driver.stream_synchronize(stream);
  for (int polls = 1; result == kNotReady; ++polls) {
    if (polls % kPolls == 0 && interrupted)
      if (auto error = interrupted()) {
        broken = true;
        return *error;
      }
    sched_yield();
    result = driver.stream_query(stream);
  }
  if (result != 0) return failure(result, doing);
  return {};
}

int Gpu::attribute(Attribute which, Device of) const {
  int value = 0;
  return driver.device_attribute(&value, which, of) == 0 ? value : 0;
}

std::string Gpu::pci_address(Device of) const {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", attribute(kPciDomain, of), attribute(kPciBus, of),
                     attribute(kPciDevice, of));
}

Expected<void> Gpu::open(int wanted, const std::string& kernels, bool flush) {
  const auto found = driver.open();
  if (!found) return found.error();
  count = *found;
  index = wanted;
  if (wanted >= count)
    return device_error(fmt::format("there is no GPU {}: the driver shows {}", wanted, count), "count from 0");
  const auto check = [&](Result result, const char* doing) -> Expected<void> {
    if (result != 0) return failure(result, doing);
    return {};
  };
  if (auto ok = check(driver.device_get(&device, wanted), "choosing the device"); !ok) return ok;
  if (auto ok = check(driver.primary_context(&context, device), "opening the device"); !ok) return ok;
  if (auto ok = check(driver.set_context(context), "opening the device"); !ok) return ok;
  constexpr unsigned kNonBlocking = 1;
  if (auto ok = check(driver.stream_create(&stream, kNonBlocking), "making a stream"); !ok) return ok;
  if (auto ok = check(driver.event_create(&begin, 0), "making an event"); !ok) return ok;
  if (auto ok = check(driver.event_create(&end, 0), "making an event"); !ok) return ok;
  multiprocessors = attribute(kMultiprocessors, device);
  l2_bytes = static_cast<std::size_t>(std::max(attribute(kL2Bytes, device), 1 << 20));
  architecture = fmt::format("sm_{}{}", attribute(kComputeMajor, device), attribute(kComputeMinor, device));
  if (flush)
    if (auto ok = check(driver.allocate(&flushed, 2 * l2_bytes), "allocating the cache flush"); !ok) return ok;
  if (auto ok = check(driver.allocate(&workspace, CublasLt::kWorkspace), "allocating a workspace"); !ok) return ok;
  nvml.select(pci_address(device));
  const auto loaded = load(kernels);
  if (loaded)
    module_ = *loaded;
  else
    no_kernels = loaded.error().what;
  return {};
}

Expected<Module> Gpu::load(const std::string& kernels) const {
  const auto code = nvrtc.compile(kernels, architecture);
  if (!code) return code.error();
  Module made = nullptr;
  if (const Result result = driver.module_load(&made, code->data()); result != 0)
    return device_error("loading the kernels: " + driver.describe(result));
  return made;
}

Expected<Function> Gpu::function(const std::string& name, Module of) {
  if (!no_kernels.empty()) return device_error(no_kernels);
  auto& found = functions_[{of, name}];
  if (!found)
    if (const Result result = driver.module_function(&found, of ? of : module_, name.c_str()); result != 0) {
      found = nullptr;
      return device_error(fmt::format("kernel {}: {}", name, driver.describe(result)));
    }
  return found;
}

DeviceMemory::~DeviceMemory() {
  for (const Pointer pointer : device_) gpu_.driver.free(pointer);
  for (void* pointer : host_) gpu_.driver.free_host(pointer);
}

Expected<Pointer> DeviceMemory::raw(std::size_t bytes) {
  std::size_t free = 0, total = 0;
  gpu_.driver.memory_info(&free, &total);
  // A reserve for what libraries and the driver take by themselves.
  if (bytes + (std::size_t(512) << 20) > free)
    return device_error(
        fmt::format("needs {:.2f} GB more, and {:.2f} of {:.2f} GB are free", static_cast<double>(bytes) / 1e9,
                    static_cast<double>(free) / 1e9, static_cast<double>(total) / 1e9),
        "ask for smaller items");
  Pointer pointer = 0;
  if (const Result result = gpu_.driver.allocate(&pointer, std::max<std::size_t>(bytes, 256)); result != 0)
    return gpu_.failure(result, fmt::format("allocating {} bytes", bytes));
  device_.push_back(pointer);
  return pointer;
}

Expected<void*> DeviceMemory::host(std::size_t bytes) {
  void* pointer = nullptr;
  if (const Result result = gpu_.driver.allocate_host(&pointer, bytes); result != 0)
    return gpu_.failure(result, fmt::format("pinning {} bytes of host memory", bytes));
  host_.push_back(pointer);
  std::fill_n(static_cast<unsigned char*>(pointer), bytes, static_cast<unsigned char>(0x5a));
  return pointer;
}

Expected<Pointer> DeviceMemory::numbers(std::int64_t count, bool bits16) {
  const auto memory = raw(static_cast<std::size_t>(count) * (bits16 ? 2 : 4));
  if (!memory) return memory;
  const auto fill = gpu_.function(bits16 ? "fill_bf16" : "fill_f32");
  if (!fill) return fill.error();
  Launch launch(*fill, static_cast<unsigned>(gpu_.multiprocessors * 8), 1, 256, 1);
  launch.with(count).with(static_cast<unsigned>(seed++)).with(*memory);
  if (const Result result = launch(gpu_.driver, gpu_.stream); result != 0)
    return gpu_.failure(result, "filling memory");
  return memory;
}

Expected<Pointer> DeviceMemory::indices(std::int64_t count, std::int64_t below) {
  const auto memory = raw(static_cast<std::size_t>(count) * 8);
  if (!memory) return memory;
  const auto fill = gpu_.function("fill_index");
  if (!fill) return fill.error();
  Launch launch(*fill, static_cast<unsigned>(gpu_.multiprocessors * 4), 1, 256, 1);
  launch.with(count).with(static_cast<unsigned>(seed++)).with(below).with(*memory);
  if (const Result result = launch(gpu_.driver, gpu_.stream); result != 0)
    return gpu_.failure(result, "filling memory");
  return memory;
}

Expected<Pointer> DeviceMemory::zeros(std::size_t bytes) {
  const auto memory = raw((bytes + 3) / 4 * 4);
  if (!memory) return memory;
  if (const Result result = gpu_.driver.fill_words(*memory, 0, (bytes + 3) / 4, gpu_.stream); result != 0)
    return gpu_.failure(result, "clearing memory");
  return memory;
}

}  // namespace turnpoint::probe::cuda
