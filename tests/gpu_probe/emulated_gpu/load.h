// SPDX-License-Identifier: Apache-2.0
// Makes the emulated GPU the one that this process finds; with TURNPOINT_TEST_GPU=real the machine's own is, so that the
// same tests judge the real driver, compiler and libraries.
#pragma once

#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace turnpoint::test {

/// Empty, or why there is none: the emulation compiles kernels while it runs.
inline std::string no_emulated_gpu() {
  if (std::system("g++ --version >/dev/null 2>&1") != 0) return "no g++ here, which the emulated GPU compiles with";
  return {};
}

/// Steps are to be carried out on the GPU that the machine has.
inline bool on_real_gpu() {
  const char* wanted = std::getenv("TURNPOINT_TEST_GPU");
  return wanted && std::string(wanted) == "real";
}

/// Libraries are found by their names afterwards, since they are loaded already. They are built with the tests: one
/// that does not load is an error, no reason to skip.
inline std::string load_emulated_gpu() {
  if (on_real_gpu()) return {};
  if (const auto why = no_emulated_gpu(); !why.empty()) return why;
  for (const char* name : {"libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9"})
    if (!dlopen((std::string(TURNPOINT_EMULATED_GPU_DIR "/") + name).c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      std::fprintf(stderr, "the emulated GPU does not load: %s\n", dlerror());
      std::abort();
    }
  return {};
}

}  // namespace turnpoint::test
