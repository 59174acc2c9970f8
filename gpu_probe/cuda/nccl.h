// SPDX-License-Identifier: Apache-2.0
// Collectives between GPUs by NCCL, declared here so that no NCCL is needed to build
// (tests/gpu_probe/cuda_declarations_test.cpp compares with nccl.h where that is installed).
#pragma once

#include <string>

#include "core/base/expected.h"
#include "gpu_probe/cuda/driver.h"
#include "gpu_probe/cuda/library.h"

namespace turnpoint::probe::cuda {

/// ncclUniqueId: handed by value. Whoever has it may join the communicator that it names.
struct NcclId {
  char bytes[128];
};
using NcclCommunicator = struct NcclCommunicatorTag*;  ///< ncclComm_t
/// Numbers of ncclResult_t, ncclDataType_t and ncclRedOp_t.
inline constexpr int kNcclSystemError = 2, kNcclInvalidUsage = 5, kNcclRemoteError = 6, kNcclInProgress = 7,
                     kNcclFloat32 = 7, kNcclBfloat16 = 9, kNcclSum = 0;

struct Nccl {
  Library library;
  int (*get_version)(int*) = nullptr;
  int (*get_id)(NcclId*) = nullptr;
  int (*join)(NcclCommunicator*, int ranks, NcclId, int rank) = nullptr;
  int (*abort)(NcclCommunicator) = nullptr;
  int (*destroy)(NcclCommunicator) = nullptr;
  int (*asynchronous_error)(NcclCommunicator, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  const char* (*last_error)(NcclCommunicator) = nullptr;  ///< since 2.13; null before
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int type, int sum, NcclCommunicator, Stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int type, NcclCommunicator, Stream) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int sum, NcclCommunicator, Stream) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, NcclCommunicator, Stream) = nullptr;
  int (*send)(const void*, std::size_t, int type, int peer, NcclCommunicator, Stream) = nullptr;
  int (*receive)(void*, std::size_t, int type, int peer, NcclCommunicator, Stream) = nullptr;

  /// Loads the library. Error: it is missing or too old, and how to get it.
  Expected<void> open();
  std::string version() const;  ///< "2.27.3"; empty where it is not there
  Error failure(int result, const std::string& doing, NcclCommunicator communicator = nullptr) const;
};

}  // namespace turnpoint::probe::cuda
