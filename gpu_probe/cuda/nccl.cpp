// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/nccl.h"

#include <fmt/format.h>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

namespace {

constexpr char kInstallNccl[] =
    "install the package libnccl2 (or pip's nvidia-nccl-cu12, nvidia-nccl-cu13) and put the folder of libnccl.so.2 "
    "into LD_LIBRARY_PATH";

/// What to look at, by the kind of failure.
std::string nccl_hint(int result) {
  if (result == kNcclSystemError)
    return "NCCL_DEBUG=INFO tells which call of the system failed: often shared memory (df /dev/shm) or the network "
           "interface (NCCL_SOCKET_IFNAME)";
  if (result == kNcclInvalidUsage)
    return "every rank needs a GPU of its own: check nvidia-smi and CUDA_VISIBLE_DEVICES";
  if (result == kNcclRemoteError) return "another rank has ended, or cannot be reached any more";
  return "NCCL_DEBUG=INFO in the environment makes NCCL say more on standard error";
}

}  // namespace

Expected<void> Nccl::open() {
  if (!library.open({"libnccl.so.2"})) return device_error("NCCL is missing: " + library.problem(), kInstallNccl);
  const bool all =
      library.load(get_version, "ncclGetVersion") && library.load(get_id, "ncclGetUniqueId") &&
      library.load(join, "ncclCommInitRank") && library.load(abort, "ncclCommAbort") &&
      library.load(destroy, "ncclCommDestroy") && library.load(asynchronous_error, "ncclCommGetAsyncError") &&
      library.load(error_text, "ncclGetErrorString") && library.load(group_start, "ncclGroupStart") &&
      library.load(group_end, "ncclGroupEnd") && library.load(all_reduce, "ncclAllReduce") &&
      library.load(all_gather, "ncclAllGather") && library.load(reduce_scatter, "ncclReduceScatter") &&
      library.load(broadcast, "ncclBroadcast") && library.load(send, "ncclSend") && library.load(receive, "ncclRecv");
  if (!all) return device_error("NCCL is too old: " + library.problem(), "2.7 or newer is needed");
  Library optional = library;
  optional.load(last_error, "ncclGetLastError");
  return {};
}

std::string Nccl::version() const {
  int code = 0;
  if (!library.usable() || !get_version || get_version(&code) != 0) return {};
  // Up to 2.8 the number was 1000, 100, 1; from 2.9 on it is 10000, 100, 1.
  const int major = code >= 10000 ? 10000 : 1000;
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

Error Nccl::failure(int result, const std::string& doing, NcclCommunicator communicator) const {
  std::string text = fmt::format("{}: NCCL error {}", doing, result);
  if (error_text)
    if (const char* words = error_text(result)) text += fmt::format(" ({})", words);
  if (last_error)
    if (const char* more = last_error(communicator); more && *more) text += fmt::format(": {}", more);
  return device_error(text, nccl_hint(result));
}

}  // namespace turnpoint::probe::cuda
