// SPDX-License-Identifier: Apache-2.0
// One GPU with all that was found for it, and the memory of one item.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/cuda/cublaslt.h"
#include "gpu_probe/cuda/cudnn.h"
#include "gpu_probe/cuda/driver.h"
#include "gpu_probe/cuda/nvml.h"
#include "gpu_probe/cuda/nvrtc.h"

namespace turnpoint::probe::cuda {

struct Gpu {
  Driver driver;
  int count = 0, index = 0;
  Device device = 0;
  Context context = nullptr;
  Stream stream = nullptr;
  Event begin = nullptr, end = nullptr;
  std::size_t l2_bytes = 0;
  int multiprocessors = 0;
  std::string architecture;  ///< "sm_90"
  Pointer flushed = 0, workspace = 0;
  std::string no_kernels;  ///< why the probe's own kernels do not run here; empty: they do
  bool broken = false;

  Nvrtc nvrtc;
  Nvml nvml;
  CublasLt matrices;
  Cudnn convolutions;

  /// Compiles `kernels` for the device. `flush`: with memory to empty its cache with.
  Expected<void> open(int wanted, const std::string& kernels, bool flush);
  /// Compiles more of them.
  Expected<Module> load(const std::string& kernels) const;
  /// `of`: from what load() made; null: of those of open().
  Expected<Function> function(const std::string& name, Module of = nullptr);
  /// Waits for all that is queued.
  Expected<void> wait(const std::string& doing);
  /// Where work waits for other GPUs: asked now and then by wait(), which ends with the error that this tells.
  std::function<std::optional<Error>()> interrupted;
  /// Marks the process as useless where the error is one that no later call survives.
  Error failure(Result result, const std::string& doing);
  int attribute(Attribute which, Device of) const;
  std::string pci_address(Device of) const;  ///< "0000:1b:00.0"

 private:
  Module module_ = nullptr;
  std::map<std::pair<Module, std::string>, Function> functions_;
};

/// Device memory of one item.
class DeviceMemory {
 public:
  explicit DeviceMemory(Gpu& gpu) : gpu_(gpu) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// 256-byte aligned; the error names the size and what was free.
  Expected<Pointer> raw(std::size_t bytes);
  Expected<void*> host(std::size_t bytes);  ///< pinned
  /// Random numbers in -0.5 ... 0.5 (`bits16`: bf16), and indices below `below`.
  Expected<Pointer> numbers(std::int64_t count, bool bits16);
  Expected<Pointer> indices(std::int64_t count, std::int64_t below);
  Expected<Pointer> zeros(std::size_t bytes);
  std::uint64_t seed = 1;

 private:
  Gpu& gpu_;
  std::vector<Pointer> device_;
  std::vector<void*> host_;
};

/// One launch with its parameters copied.
class Launch {
 public:
  Launch(Function function, unsigned grid_x, unsigned grid_y, unsigned block_x, unsigned block_y)
      : function_(function), grid_x_(grid_x), grid_y_(grid_y), block_x_(block_x), block_y_(block_y) {}
  template <class T>
  Launch& with(const T& value) {
    static_assert(sizeof(T) <= sizeof(Slot::bytes));
    Slot& slot = slots_.emplace_back();
    __builtin_memcpy(slot.bytes, &value, sizeof value);
    return *this;
  }
  Result operator()(const Driver& driver, Stream stream) const {
    void* parameters[16];
    for (std::size_t i = 0; i < slots_.size(); ++i) parameters[i] = const_cast<unsigned char*>(slots_[i].bytes);
    return driver.launch(function_, grid_x_, grid_y_, 1, block_x_, block_y_, 1, 0, stream, parameters, nullptr);
  }

 private:
  struct Slot {
    alignas(16) unsigned char bytes[2048];
  };
  Function function_;
  unsigned grid_x_, grid_y_, block_x_, block_y_;
  std::vector<Slot> slots_;
};

}  // namespace turnpoint::probe::cuda
