// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/library.h"

#include <dlfcn.h>

namespace turnpoint::probe {

bool Library::open(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (handle_) {
      name_ = name;
      problem_.clear();
      return true;
    }
    const char* why = dlerror();
    if (!problem_.empty()) problem_ += "; ";
    problem_ += why ? why : std::string(name) + " was not found";
  }
  return false;
}

void* Library::find(const char* symbol) {
  void* found = handle_ ? dlsym(handle_, symbol) : nullptr;
  if (handle_ && !found && problem_.empty()) problem_ = name_ + " has no function " + symbol;
  return found;
}

}  // namespace turnpoint::probe
