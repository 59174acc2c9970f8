// SPDX-License-Identifier: Apache-2.0
// GPUs made of this machine's processor, so that everything that would run on CUDA devices runs in tests without one:
// libcuda, libnvrtc, libcublasLt, libcudnn, libnccl and NVML with the functions that the probe loads. A process sees
// as many devices as TURNPOINT_EMULATED_GPUS says (else one) and uses one of them; NCCL joins those of several
// processes.
// Kernels are compiled by g++ and really executed, thread by thread of the grid. It is strict where a device is merely
// unforgiving:
//   - work is queued, and done only when somebody waits for it: a missing wait shows;
//   - device memory cannot be read or written by the host: a pointer that is followed there is a fault;
//   - fresh memory holds numbers that are none, and what is written beyond an allocation is seen;
//   - a block's threads must all come to a barrier.
#pragma once

#include <cstddef>
#include <functional>

namespace emulated_gpu {

/// Work on a stream. Streams wait for one another only where an event says so.
void queue(void* stream, std::function<void()> work);

/// Work that is tried again until it says that it is done; what is queued behind it on its stream waits.
void queue_until(void* stream, std::function<bool()> work);
/// Whether [pointer, pointer + bytes) lies in one allocation of the device.
bool holds(const void* pointer, std::size_t bytes);
/// Of this thread's context; -1: it has none.
int current_device();

/// Called by a kernel's thread at a barrier.
using Barrier = void (*)();

/// As CUDA C++ names them.
struct Index {
  unsigned x = 0, y = 0, z = 0;
};
struct Thread {
  Index thread, block, threads, blocks;
};

/// In the "machine code" that the emulated compiler makes: what a compiled file offers for each kernel.
inline constexpr char kImageMark[] = "EMULATED GPU ";

}  // namespace emulated_gpu
