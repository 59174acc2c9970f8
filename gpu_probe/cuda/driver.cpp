// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/driver.h"

#include <fmt/format.h>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

Expected<int> Driver::open() {
  if (!library.open({"libcuda.so.1"}))
    return device_error("no NVIDIA driver here: " + library.problem(), "install the driver, or measure CPU ranks");
  const bool all =
      library.load(init, "cuInit") && library.load(driver_version, "cuDriverGetVersion") &&
      library.load(device_count, "cuDeviceGetCount") && library.load(device_get, "cuDeviceGet") &&
      library.load(device_name, "cuDeviceGetName") && library.load(device_memory, "cuDeviceTotalMem_v2") &&
      library.load(device_attribute, "cuDeviceGetAttribute") &&
      library.load(primary_context, "cuDevicePrimaryCtxRetain") && library.load(set_context, "cuCtxSetCurrent") &&
      library.load(memory_info, "cuMemGetInfo_v2") && library.load(allocate, "cuMemAlloc_v2") &&
      library.load(free, "cuMemFree_v2") && library.load(allocate_host, "cuMemAllocHost_v2") &&
      library.load(free_host, "cuMemFreeHost") && library.load(copy_to_device, "cuMemcpyHtoDAsync_v2") &&
      library.load(copy_to_host, "cuMemcpyDtoHAsync_v2") && library.load(copy_on_device, "cuMemcpyDtoDAsync_v2") &&
      library.load(fill_words, "cuMemsetD32Async") && library.load(fill_halves, "cuMemsetD16Async") &&
      library.load(stream_create, "cuStreamCreate") && library.load(stream_synchronize, "cuStreamSynchronize") &&
      library.load(stream_query, "cuStreamQuery") && library.load(stream_wait_event, "cuStreamWaitEvent") &&
      library.load(event_create, "cuEventCreate") && library.load(event_record, "cuEventRecord") &&
      library.load(event_synchronize, "cuEventSynchronize") && library.load(event_elapsed, "cuEventElapsedTime") &&
      library.load(module_load, "cuModuleLoadData") && library.load(module_function, "cuModuleGetFunction") &&
      library.load(launch, "cuLaunchKernel") && library.load(error_name, "cuGetErrorName") &&
      library.load(error_text, "cuGetErrorString");
  if (!all) return device_error("the NVIDIA driver is too old: " + library.problem(), "CUDA 12 or newer is needed");
  if (const Result result = init(0); result != 0) return failure(result, "starting the driver");
  int count = 0;
  if (const Result result = device_count(&count); result != 0) return failure(result, "counting devices");
  if (count == 0) return device_error("the NVIDIA driver shows no device", "check nvidia-smi and CUDA_VISIBLE_DEVICES");
  return count;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name) error_name(result, &name);
  if (error_text) error_text(result, &text);
  return fmt::format("{} ({}): {}", name ? name : "CUDA error", result, text ? text : "no description");
}

Error Driver::failure(Result result, const std::string& doing) const {
  std::string hint;
  if (result == 2) hint = "the device's memory is full: end what else uses it, or ask for smaller items";
  if (result == 100) hint = "no device is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES";
  if (result == 803 || result == 804) hint = "driver and libraries do not fit together: restart after a driver update";
  return device_error(doing + ": " + describe(result), hint);
}

}  // namespace turnpoint::probe::cuda
