// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/device.h"

#include <fmt/format.h>
#include <algorithm>

namespace turnpoint::step::in_cuda {

namespace {

Device*& the_device() {
  static Device* device = nullptr;  // to the end of the process: threads that end late still give memory back
  return device;
}

}  // namespace

Expected<void> Device::open(int index) {
  static std::mutex opening;
  const std::lock_guard lock(opening);
  if (the_device()) return {};
  auto device = std::make_unique<Device>();
  if (auto opened = device->gpu.open(index, step_kernels(ProbePrecision::fp32), false); !opened) return opened;
  const auto missing = [](const std::string& what, const std::string& library) {
    return Error{ErrorCode::device,
                 "steps cannot be carried out on this GPU: " + what,
                 {},
                 "put the folder of " + library + " of CUDA 12 or 13 into LD_LIBRARY_PATH"};
  };
  if (!device->gpu.no_kernels.empty()) return missing(device->gpu.no_kernels, "libnvrtc");
  if (!device->gpu.matrices.loaded().usable())
    return missing("no cublasLt: " + device->gpu.matrices.loaded().problem(), "libcublasLt");
  the_device() = device.release();
  return {};
}

Device& Device::get() {
  Device& device = *the_device();
  thread_local bool bound = false;
  if (!bound) {
    bound = true;
    const std::lock_guard lock(device.mutex);
    device.check(device.gpu.driver.set_context(device.gpu.context), "opening the device in a thread");
  }
  return device;
}

Expected<void> Device::compute_in(ProbePrecision wanted) {
  const std::lock_guard lock(mutex);
  if (wanted == ProbePrecision::bf16 && !halves_) {
    // The first generation whose matrix units know it.
    constexpr int kLeastMajor = 8;
    if (gpu.attribute(probe::cuda::kComputeMajor, gpu.device) < kLeastMajor)
      return Error{ErrorCode::device,
                   fmt::format("this GPU ({}) does not multiply in bf16, which needs sm_80 or newer", gpu.architecture),
                   {},
                   "search with --precision fp32"};
    auto loaded = gpu.load(step_kernels(ProbePrecision::bf16));
    if (!loaded) return loaded.error();
    halves_ = *loaded;
  }
  precision = wanted;
  return {};
}

void Device::multiply(probe::cuda::LtProduct product, Place a, Place b, Place c, Place bias) {
  const std::lock_guard lock(mutex);
  ++queued;
  if (!good()) return;
  // Algorithms may ask for addresses that are multiples of up to so many bytes.
  const std::uint64_t all = a.address | b.address | c.address | bias.address | 256;
  product.alignment = static_cast<std::uint32_t>(all & (~all + 1));
  product.precision = precision;
  if (precision == ProbePrecision::bf16)
    for (const Place& operand : {a, b, c, bias})
      if (operand.address != 0 && operand.element_bytes != 2)
        return fail({ErrorCode::device, "a product was handed numbers of another precision", {}, {}});
  product.bias = bias.address != 0;
  auto found = products_.find(product);
  if (found == products_.end()) {
    auto planned = gpu.matrices.plan(product, gpu.workspace);
    if (!planned) return fail(planned.error());
    found = products_.emplace(product, std::move(*planned)).first;
  }
  if (const int status = found->second(gpu.stream, a.address, b.address, c.address, bias.address); status != 0)
    fail({ErrorCode::device, fmt::format("cublasLt refused a product (status {})", status), {}, {}});
}

// Tensors of steps lie as models have them.
constexpr bool kChannelsBefore = false;

bool Device::convolve(const ProbeCall& call, Place x, Place weight, Place y) {
  const std::lock_guard lock(mutex);
  if (!good()) return true;
  std::array<std::int64_t, 19> key{static_cast<std::int64_t>(call.kind), static_cast<std::int64_t>(precision)};
  std::copy(call.size.begin(), call.size.end(), key.begin() + 2);
  auto [found, fresh] = convolutions_.try_emplace(key);
  if (fresh && gpu.convolutions.loaded().usable()) {
    if (auto planned = gpu.convolutions.plan(call, precision, kChannelsBefore))
      found->second = {std::move(*planned), true};
  }
  const Planned& planned = found->second;
  if (!planned.possible) return false;
  const std::size_t bytes = planned.plan.workspace;
  void* room = bytes > 0 ? scratch_memory().take(bytes) : nullptr;
  const int status =
      planned.plan.run(gpu.stream, x.address, weight.address, y.address, reinterpret_cast<std::uint64_t>(room));
  if (room) scratch_memory().give(room, bytes);
  if (status != 0) fail({ErrorCode::device, fmt::format("cuDNN refused a convolution (status {})", status), {}, {}});
  return true;
}

int Device::convolutions_refused() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(std::count_if(convolutions_.begin(), convolutions_.end(), [&](const auto& one) {
    return one.first[1] == static_cast<std::int64_t>(precision) && !one.second.possible;
  }));
}

probe::cuda::Stream Device::beside() {
  constexpr unsigned kNonBlocking = 1;
  const std::lock_guard lock(mutex);
  if (!beside_) check(gpu.driver.stream_create(&beside_, kNonBlocking), "making a stream");
  return beside_;
}

int threads_for(std::int64_t elements) {
  int block = 32;
  while (block < kBlock && block < elements) block *= 2;
  return block;
}

}  // namespace turnpoint::step::in_cuda
