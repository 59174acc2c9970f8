// SPDX-License-Identifier: Apache-2.0
// Compiles CUDA C++ text at run time, for exactly the device at hand.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "gpu_probe/cuda/library.h"

namespace turnpoint::probe::cuda {

class Nvrtc {
 public:
  Nvrtc();
  const Library& loaded() const { return library_; }
  std::string version() const;  ///< "13.0"; empty where it is not there
  /// Machine code for "sm_90". The compiler's own words are in the error.
  Expected<std::string> compile(const std::string& source, const std::string& architecture) const;

 private:
  using Program = struct ProgramTag*;
  Library library_;
  int (*version_)(int*, int*) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, std::size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*cubin_size_)(Program, std::size_t*) = nullptr;
  int (*cubin_)(Program, char*) = nullptr;
  const char* (*error_)(int) = nullptr;
};

}  // namespace turnpoint::probe::cuda
