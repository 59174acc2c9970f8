// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/nvrtc.h"

#include <fmt/format.h>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

Nvrtc::Nvrtc() {
  if (!library_.open({"libnvrtc.so.13", "libnvrtc.so.12"})) return;
  library_.load(version_, "nvrtcVersion") && library_.load(create_, "nvrtcCreateProgram") &&
      library_.load(destroy_, "nvrtcDestroyProgram") && library_.load(compile_, "nvrtcCompileProgram") &&
      library_.load(log_size_, "nvrtcGetProgramLogSize") && library_.load(log_, "nvrtcGetProgramLog") &&
      library_.load(cubin_size_, "nvrtcGetCUBINSize") && library_.load(cubin_, "nvrtcGetCUBIN") &&
      library_.load(error_, "nvrtcGetErrorString");
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  return library_.usable() && version_(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : std::string();
}

Expected<std::string> Nvrtc::compile(const std::string& source, const std::string& architecture) const {
  if (!library_.usable())
    return device_error("no run-time compiler: " + library_.problem(), "install libnvrtc of CUDA 12 or 13");
  Program program = nullptr;
  if (const int failed = create_(&program, source.c_str(), "turnpoint_kernels.cu", 0, nullptr, nullptr); failed != 0)
    return device_error(fmt::format("the run-time compiler does not start: {}", error_(failed)));
  const std::string target = "--gpu-architecture=" + architecture;
  const char* const options[] = {target.c_str(), "--std=c++17"};
  const int failed = compile_(program, 2, options);
  std::string result;
  std::size_t size = 0;
  if (failed != 0) {
    if (log_size_(program, &size) == 0 && size > 1) {
      result.resize(size);
      log_(program, result.data());
      result.resize(size - 1);
    }
    destroy_(&program);
    return device_error(
        fmt::format("kernels do not compile for {}: {}: {}", architecture, error_(failed), result.substr(0, 1000)));
  }
  int good = cubin_size_(program, &size);
  result.resize(size);
  if (good == 0) good = cubin_(program, result.data());
  destroy_(&program);
  if (good != 0 || size == 0)
    return device_error(fmt::format("no machine code for {}: {}", architecture, error_(good)));
  return result;
}

}  // namespace turnpoint::probe::cuda
