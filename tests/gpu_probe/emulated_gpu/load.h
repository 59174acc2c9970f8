// SPDX-License-Identifier: Apache-2.0
// Makes the emulated GPU the one that this process finds.
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

/// Libraries are found by their names afterwards, since they are loaded already. They are built with the tests: one
/// that does not load is an error, no reason to skip.
inline std::string load_emulated_gpu() {
  if (const auto why = no_emulated_gpu(); !why.empty()) return why;
  for (const char* name : {"libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9"})
    if (!dlopen((std::string(TURNPOINT_EMULATED_GPU_DIR "/") + name).c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      std::fprintf(stderr, "the emulated GPU does not load: %s\n", dlerror());
      std::abort();
    }
  return {};
}

}  // namespace turnpoint::test
