// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver API that the probe uses, declared here so that no CUDA is needed to build it
// (tests/gpu_probe/cuda_declarations_test.cpp compares with cuda.h where that is installed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "gpu_probe/cuda/library.h"

namespace turnpoint::probe::cuda {

using Result = int;  ///< CUresult; 0 is success
using Device = int;
using Pointer = unsigned long long;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;

/// CUdevice_attribute
enum Attribute : int {
  kMultiprocessors = 16,
  kClockKilohertz = 13,
  kPciBus = 33,
  kPciDevice = 34,
  kMemoryClockKilohertz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kPciDomain = 50,
  kComputeMajor = 75,
  kComputeMinor = 76,
};

struct Driver {
  Library library;
  Result (*init)(unsigned) = nullptr;
  Result (*driver_version)(int*) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*device_get)(Device*, int) = nullptr;
  Result (*device_name)(char*, int, Device) = nullptr;
  Result (*device_memory)(std::size_t*, Device) = nullptr;
  Result (*device_attribute)(int*, Attribute, Device) = nullptr;
  Result (*primary_context)(Context*, Device) = nullptr;
  Result (*set_context)(Context) = nullptr;
  Result (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*allocate)(Pointer*, std::size_t) = nullptr;
  Result (*free)(Pointer) = nullptr;
  Result (*allocate_host)(void**, std::size_t) = nullptr;
  Result (*free_host)(void*) = nullptr;
  Result (*copy_to_device)(Pointer, const void*, std::size_t, Stream) = nullptr;
  Result (*copy_to_host)(void*, Pointer, std::size_t, Stream) = nullptr;
  Result (*copy_on_device)(Pointer, Pointer, std::size_t, Stream) = nullptr;
  Result (*fill_words)(Pointer, unsigned value, std::size_t words, Stream) = nullptr;
  Result (*fill_halves)(Pointer, unsigned short value, std::size_t halves, Stream) = nullptr;
  Result (*stream_create)(Stream*, unsigned) = nullptr;
  Result (*stream_synchronize)(Stream) = nullptr;
  Result (*stream_query)(Stream) = nullptr;  ///< 600: not done yet
  Result (*stream_wait_event)(Stream, Event, unsigned) = nullptr;
  Result (*event_create)(Event*, unsigned) = nullptr;
  Result (*event_record)(Event, Stream) = nullptr;
  Result (*event_synchronize)(Event) = nullptr;
  Result (*event_elapsed)(float* milliseconds, Event, Event) = nullptr;
  Result (*module_load)(Module*, const void* image) = nullptr;
  Result (*module_function)(Function*, Module, const char*) = nullptr;
  Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, Stream,
                   void** parameters, void** extra) = nullptr;
  Result (*error_name)(Result, const char**) = nullptr;
  Result (*error_text)(Result, const char**) = nullptr;

  /// Loads libcuda, starts it and counts devices; the reason is made for people.
  Expected<int> open();
  std::string describe(Result result) const;  ///< "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
  Error failure(Result result, const std::string& doing) const;
};

}  // namespace turnpoint::probe::cuda
