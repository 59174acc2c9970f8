// SPDX-License-Identifier: Apache-2.0
// Collectives between ranks that have a GPU each: NCCL moves the data, from GPU to GPU; what ranks have to agree on
// before (who is in a group, that all go on) goes through the memory or the sockets that CPU ranks use.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "gpu_probe/cuda/gpu.h"
#include "gpu_probe/cuda/nccl.h"
#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

/// Numbers in the memory of the GPU that go to one rank, and that come from it; either may be none.
struct GpuPart {
  int peer = 0;
  cuda::Pointer out = 0;
  std::int64_t out_count = 0;
  cuda::Pointer in = 0;
  std::int64_t in_count = 0;
  int type = cuda::kNcclFloat32;
};

/// All calls queue on the GPU's stream and return; Gpu::wait() tells how it went, and notices when another rank is
/// gone. Counts are elements as in Communicator, `type` is theirs. Every member of a group makes the same calls in the
/// same order. An error ends what these ranks do together: nothing works here any more.
class GpuCollectives {
 public:
  /// Loads NCCL and changes how `gpu` waits; no rank waits for another. `control` and `transport` are of the same
  /// ranks; all must outlive this.
  static Expected<std::unique_ptr<GpuCollectives>> open(cuda::Gpu& gpu, Communicator& control, Transport& transport);
  ~GpuCollectives();
  GpuCollectives(const GpuCollectives&) = delete;
  GpuCollectives& operator=(const GpuCollectives&) = delete;

  int rank() const { return control_.rank(); }
  int ranks() const { return control_.ranks(); }
  std::string version() const { return nccl_.version(); }

  Expected<void> all_reduce(const Group& group, cuda::Pointer in, cuda::Pointer out, std::int64_t count,
                            int type = cuda::kNcclFloat32);
  /// In place where `in` is this rank's part of `out`.
  Expected<void> all_gather(const Group& group, cuda::Pointer in, cuda::Pointer out, std::int64_t count,
                            int type = cuda::kNcclFloat32);
  /// In place where `out` is this rank's part of `in`.
  Expected<void> reduce_scatter(const Group& group, cuda::Pointer in, cuda::Pointer out, std::int64_t count,
                                int type = cuda::kNcclFloat32);
  Expected<void> broadcast(const Group& group, cuda::Pointer data, std::int64_t count, int root);
  /// All parts at once, none of them for this rank itself. Only the named ranks take part, after all have lined up
  /// once. `stream`: on which it queues, if not on the GPU's own.
  Expected<void> exchange(std::span<const GpuPart> parts, cuda::Stream stream = nullptr);
  /// What is queued behind this begins on all ranks' GPUs at the same time.
  Expected<void> line_up();
  /// Whoever waits for this rank, or will, is told that it is gone.
  void abort();
  /// What these ranks agree by, GPUs apart.
  Communicator& control() { return control_; }

 private:
  GpuCollectives(cuda::Gpu& gpu, Communicator& control, Transport& transport)
      : gpu_(gpu), control_(control), transport_(transport) {}
  Expected<cuda::NcclCommunicator> communicator(const Group& group);
  Expected<void> queued(int result, const char* what, cuda::NcclCommunicator communicator);
  std::optional<Error> interrupted();
  void abort_nccl();

  cuda::Gpu& gpu_;
  Communicator& control_;
  Transport& transport_;
  cuda::Nccl nccl_;
  std::map<Group, cuda::NcclCommunicator> communicators_;
  cuda::Pointer token_ = 0;
};

/// Adds to a hello line what carries data between the GPUs, or why nothing does.
void describe_nccl(nlohmann::json& hello, const std::string& version, const std::optional<Error>& missing);

/// Called by ranks of several hosts: the devices of a hello line become those of all ranks, in their order, as each
/// says of its own. False once a rank is gone.
[[nodiscard]] bool gather_devices(nlohmann::json& hello, Communicator& control);

/// Which of several ranks it is that has no GPU.
Error without_gpu(const Error& error, int rank);

/// The words of an error that says less than what the rank that failed has to say.
inline constexpr char kAnotherRankGaveUp[] = "another rank gave up";

}  // namespace turnpoint::probe
