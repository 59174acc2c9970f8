// SPDX-License-Identifier: Apache-2.0
// NCCL between emulated GPUs of several processes, over memory that they share. As strict as the driver is:
//   - a communicator is joined by all its ranks at once, each with a GPU of its own;
//   - what is exchanged lies in memory of the device, in place exactly where NCCL allows it;
//   - members that do not call the same wait for ever, and an asynchronous error says so;
//   - a send is over when it has been received, and until then nothing behind it on its stream begins;
//   - sums are taken from the last rank to the first, so that nobody relies on another order.
// Processes with another TURNPOINT_EMULATED_HOST, a number, have other GPUs.
// TURNPOINT_EMULATED_NCCL="ncclAllReduce:3:2:1" makes the 3rd and later calls of a function on device 1 (without it: on
// all) fail with 2; -1: the process ends there; 100 + n: the call succeeds, and then the asynchronous error is n.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bf16.h"
#include "emulated_gpu.h"

namespace {

constexpr int kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5, kFloat32 = 7, kBfloat16 = 9;
constexpr int kMostRanks = 16;
constexpr std::size_t kArea = std::size_t(64) << 20;  // of each pair of ranks; only what is written takes memory

struct Id {
  char path[128];
};

enum class Kind : int { all_reduce, all_gather, reduce_scatter, broadcast };
struct Call {
  Kind kind;
  std::uint64_t count;
  int type, operation, root;
  bool operator==(const Call&) const = default;
};

/// What all ranks of a communicator share; areas of data follow.
struct Shared {
  std::atomic<int> arrived;
  int devices[kMostRanks];
  int ranks[kMostRanks];                                            ///< as each one says
  std::atomic<std::uint64_t> posted[kMostRanks], done[kMostRanks];  ///< collectives
  Call calls[kMostRanks];
  std::atomic<std::uint64_t> sent[kMostRanks][kMostRanks], taken[kMostRanks][kMostRanks];
  std::uint64_t lengths[kMostRanks][kMostRanks];
};
constexpr std::size_t kHead = (sizeof(Shared) + 4095) / 4096 * 4096;

struct Communicator {
  Shared* shared = nullptr;
  int rank = 0, ranks = 0, error = 0;
  bool aborted = false;
  char* area(int from, int to) const {
    return reinterpret_cast<char*>(shared) + kHead + kArea * static_cast<std::size_t>(from * (ranks + 1) + to);
  }
  char* own(int of) const { return area(of, ranks); }
};
using Joined = std::shared_ptr<Communicator>;

std::map<void*, Joined>& joined() {
  static std::map<void*, Joined> all;
  return all;
}

/// 0, or what the environment wants this call to end with.
int wanted_fault(const char* function) {
  static std::map<std::string, long> calls;
  char name[64] = "";
  long call = 0;
  int result = 0, device = -1;
  const char* text = std::getenv("TURNPOINT_EMULATED_NCCL");
  if (!text || std::sscanf(text, "%63[^:]:%ld:%d:%d", name, &call, &result, &device) < 3) return 0;
  if (std::strcmp(name, function) != 0 || (device >= 0 && device != emulated_gpu::current_device())) return 0;
  if (++calls[name] < call) return 0;
  if (result < 0) _exit(9);
  return result;
}

std::size_t bytes_of(int type) { return type == kBfloat16 ? 2 : 4; }
bool is_known(int type) { return type == kFloat32 || type == kBfloat16; }

int wrong(const char* what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  return kInvalidArgument;
}

/// One member's part of a collective, tried again until the others have done theirs.
class Collective {
 public:
  Collective(Joined members, const Call& call, const char* in, char* out, std::size_t in_count)
      : members_(std::move(members)), call_(call), in_(in), out_(out), in_count_(in_count) {}

  bool operator()() {
    Communicator& m = *members_;
    if (m.aborted) return true;
    if (m.error != 0) return false;
    Shared& s = *m.shared;
    if (!posted_) {
      // Nobody reads any more what this rank had to give last.
      number_ = s.posted[m.rank].load();
      for (int r = 0; r < m.ranks; ++r)
        if (s.done[r].load() < number_) return false;
      if (in_) std::memcpy(m.own(m.rank), in_, in_count_ * bytes_of(call_.type));
      s.calls[m.rank] = call_;
      s.posted[m.rank].store(number_ + 1);
      posted_ = true;
    }
    for (int r = 0; r < m.ranks; ++r)
      if (s.posted[r].load() <= number_) return false;
    for (int r = 0; r < m.ranks; ++r)
      if (!(s.calls[r] == call_)) {
        std::fprintf(stderr, "emulated NCCL: ranks %d and %d call different collectives\n", m.rank, r);
        m.error = kInvalidUsage;
        return false;
      }
    take(m);
    s.done[m.rank].store(number_ + 1);
    return true;
  }

 private:
  void take(const Communicator& m) const {
    const std::size_t count = call_.count, me = static_cast<std::size_t>(m.rank);
    const std::size_t bytes = count * bytes_of(call_.type);
    const auto sum = [&](std::size_t from) {
      call_.type == kBfloat16 ? add<emulated_gpu::Bf16>(m, from) : add<float>(m, from);
    };
    switch (call_.kind) {
      case Kind::all_reduce: return sum(0);
      case Kind::reduce_scatter: return sum(me * count);
      case Kind::broadcast: std::memcpy(out_, m.own(call_.root), bytes); return;
      case Kind::all_gather:
        for (int r = 0; r < m.ranks; ++r) std::memcpy(out_ + static_cast<std::size_t>(r) * bytes, m.own(r), bytes);
    }
  }
  /// As rings do: what goes on to the next is rounded.
  template <class T>
  void add(const Communicator& m, std::size_t from) const {
    for (std::size_t i = 0; i < call_.count; ++i) {
      T total{};
      for (int r = m.ranks; r-- > 0;) total = total + reinterpret_cast<const T*>(m.own(r))[from + i];
      reinterpret_cast<T*>(out_)[i] = total;
    }
  }

  Joined members_;
  Call call_;
  const char* in_;
  char* out_;
  std::size_t in_count_;
  std::uint64_t number_ = 0;
  bool posted_ = false;
};

struct Message {
  int peer = 0;
  const char* out = nullptr;
  char* in = nullptr;
  std::size_t bytes = 0;
  std::uint64_t number = 0;  ///< of what was sent to the peer, once it is on its way
};

/// Messages that are on their way at once.
class Messages {
 public:
  Messages(Joined members, std::vector<Message> list) : members_(std::move(members)), left_(std::move(list)) {}
  bool operator()() {
    Communicator& m = *members_;
    if (m.aborted) return true;
    if (m.error != 0) return false;
    Shared& s = *m.shared;
    std::vector<Message> later;
    for (auto& message : left_) {
      // Of several to one peer the first is first.
      bool waits = false;
      for (const auto& earlier : later) waits |= earlier.peer == message.peer && !earlier.out == !message.out;
      if (waits || !(message.out ? send(s, m, message) : receive(s, m, message))) later.push_back(message);
    }
    left_ = std::move(later);
    return left_.empty();
  }

 private:
  static bool send(Shared& s, const Communicator& m, Message& message) {
    auto &sent = s.sent[m.rank][message.peer], &taken = s.taken[m.rank][message.peer];
    if (message.number == 0) {
      if (sent.load() != taken.load()) return false;
      std::memcpy(m.area(m.rank, message.peer), message.out, message.bytes);
      s.lengths[m.rank][message.peer] = message.bytes;
      message.number = sent.fetch_add(1) + 1;
    }
    return taken.load() >= message.number;
  }
  static bool receive(Shared& s, Communicator& m, const Message& message) {
    if (s.sent[message.peer][m.rank].load() == s.taken[message.peer][m.rank].load()) return false;
    if (s.lengths[message.peer][m.rank] != message.bytes) {
      std::fprintf(stderr, "emulated NCCL: rank %d waits for a message of another length\n", m.rank);
      m.error = kInvalidUsage;
      return false;
    }
    std::memcpy(message.in, m.area(message.peer, m.rank), message.bytes);
    s.taken[message.peer][m.rank].fetch_add(1);
    return true;
  }
  Joined members_;
  std::vector<Message> left_;
};

thread_local int depth = 0;
thread_local std::map<std::pair<void*, void*>, std::vector<Message>> grouped;  // by communicator and stream

int begin_call(const char* function, void* communicator, const Joined*& found) {
  const int fault = wanted_fault(function);
  const auto at = joined().find(communicator);
  if (at == joined().end()) return wrong("no such communicator");
  found = &at->second;
  if (fault >= 100) (*found)->error = fault - 100;
  return fault >= 100 ? 0 : fault;
}

int collective(const char* function, Kind kind, const void* in, std::size_t in_count, void* out, std::size_t out_count,
               std::size_t count, int type, int operation, int root, void* communicator, void* stream) {
  const Joined* members = nullptr;
  if (const int failed = begin_call(function, communicator, members); failed != 0) return failed;
  const Communicator& m = **members;
  if (!is_known(type) || operation != 0) return wrong("only sums of float and bf16 are emulated");
  const std::size_t each = bytes_of(type), in_bytes = in_count * each, out_bytes = out_count * each;
  if (std::max(in_bytes, out_bytes) > kArea) return wrong("more data than is emulated");
  const bool gives = kind != Kind::broadcast || root == m.rank;
  if ((gives && !emulated_gpu::holds(in, in_bytes)) || !emulated_gpu::holds(out, out_bytes))
    return wrong("a buffer does not lie in the device's memory");
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(out);
  const std::size_t at = count * each * static_cast<std::size_t>(m.rank);
  const bool apart = from + in_bytes <= to || to + out_bytes <= from;
  const bool in_place = kind == Kind::all_gather       ? from == to + at
                        : kind == Kind::reduce_scatter ? to == from + at
                                                       : from == to;
  if (gives && !apart && !in_place) return wrong("buffers overlap");
  emulated_gpu::queue_until(
      stream, Collective(*members, {kind, count, type, operation, root}, gives ? from : nullptr, to, in_count));
  return 0;
}

int message(const char* function, void* communicator, int type, Message one, void* stream) {
  const Joined* members = nullptr;
  if (const int failed = begin_call(function, communicator, members); failed != 0) return failed;
  if (!is_known(type) || one.peer < 0 || one.peer >= (*members)->ranks || one.peer == (*members)->rank)
    return wrong("a message of another type, or to nobody");
  if (one.bytes > kArea) return wrong("more data than is emulated");
  if (!emulated_gpu::holds(one.out ? one.out : one.in, one.bytes))
    return wrong("a message does not lie in the device's memory");
  if (depth > 0)
    grouped[{communicator, stream}].push_back(one);
  else
    emulated_gpu::queue_until(stream, Messages(*members, {one}));
  return 0;
}

}  // namespace

extern "C" {
int ncclGetVersion(int* version) { return *version = 22703, 0; }
const char* ncclGetErrorString(int code) {
  return code == kSystemError ? "emulated system error" : code == kInvalidUsage ? "invalid usage" : "emulated error";
}
const char* ncclGetLastError(void*) { return "made up"; }

int ncclGetUniqueId(Id* id) {
  if (const int failed = wanted_fault(__func__); failed != 0) return failed;
  const int file = memfd_create("emulated-nccl", MFD_CLOEXEC);
  if (file < 0) return kSystemError;
  *id = {};
  std::snprintf(id->path, sizeof id->path, "/proc/%d/fd/%d", static_cast<int>(getpid()), file);
  return 0;
}

int ncclCommInitRank(void** communicator, int ranks, Id id, int rank) {
  if (const int failed = wanted_fault(__func__); failed != 0) return failed;
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return wrong("no such rank");
  if (emulated_gpu::current_device() < 0) return wrong("no device was chosen");
  const int file = open(id.path, O_RDWR | O_CLOEXEC);
  const std::size_t bytes = kHead + kArea * static_cast<std::size_t>(ranks * (ranks + 1));
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kSystemError;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kSystemError;
  auto made = std::make_shared<Communicator>();
  made->shared = static_cast<Shared*>(memory);
  made->rank = rank;
  made->ranks = ranks;
  const char* host = std::getenv("TURNPOINT_EMULATED_HOST");
  made->shared->devices[rank] = 64 * (host ? std::atoi(host) : 0) + emulated_gpu::current_device();
  made->shared->ranks[rank] = ranks;
  made->shared->arrived.fetch_add(1);
  while (made->shared->arrived.load() < ranks) sched_yield();
  for (int a = 0; a < ranks; ++a) {
    if (made->shared->ranks[a] != ranks) return wrong("ranks do not agree on how many they are");
    for (int b = 0; b < a; ++b)
      if (made->shared->devices[a] == made->shared->devices[b]) return kInvalidUsage;
  }
  *communicator = made.get();
  joined()[made.get()] = made;
  return 0;
}

int ncclCommAbort(void* communicator) {
  const auto found = joined().find(communicator);
  if (found == joined().end()) return kInvalidArgument;
  found->second->aborted = true;
  joined().erase(found);
  return 0;
}
int ncclCommDestroy(void* communicator) { return joined().erase(communicator) == 1 ? 0 : kInvalidArgument; }
int ncclCommGetAsyncError(void* communicator, int* error) {
  const auto found = joined().find(communicator);
  if (found == joined().end()) return kInvalidArgument;
  return *error = found->second->error, 0;
}

int ncclGroupStart() { return ++depth, 0; }
int ncclGroupEnd() {
  if (--depth > 0) return 0;
  for (auto& [on, list] : grouped)
    if (const auto found = joined().find(on.first); found != joined().end())
      emulated_gpu::queue_until(on.second, Messages(found->second, std::move(list)));
  grouped.clear();
  return 0;
}

#define MEMBERS                                         \
  const auto found = joined().find(communicator);       \
  if (found == joined().end()) return kInvalidArgument; \
  const auto ranks = static_cast<std::size_t>(found->second->ranks)

int ncclAllReduce(const void* in, void* out, std::size_t count, int type, int operation, void* communicator,
                  void* stream) {
  return collective(__func__, Kind::all_reduce, in, count, out, count, count, type, operation, 0, communicator, stream);
}
int ncclAllGather(const void* in, void* out, std::size_t count, int type, void* communicator, void* stream) {
  MEMBERS;
  return collective(__func__, Kind::all_gather, in, count, out, count * ranks, count, type, 0, 0, communicator, stream);
}
int ncclReduceScatter(const void* in, void* out, std::size_t count, int type, int operation, void* communicator,
                      void* stream) {
  MEMBERS;
  return collective(__func__, Kind::reduce_scatter, in, count * ranks, out, count, count, type, operation, 0,
                    communicator, stream);
}
int ncclBroadcast(const void* in, void* out, std::size_t count, int type, int root, void* communicator, void* stream) {
  return collective(__func__, Kind::broadcast, in, count, out, count, count, type, 0, root, communicator, stream);
}
int ncclSend(const void* data, std::size_t count, int type, int peer, void* communicator, void* stream) {
  return message(__func__, communicator, type, {peer, static_cast<const char*>(data), nullptr, count * bytes_of(type)},
                 stream);
}
int ncclRecv(void* data, std::size_t count, int type, int peer, void* communicator, void* stream) {
  return message(__func__, communicator, type, {peer, nullptr, static_cast<char*>(data), count * bytes_of(type)},
                 stream);
}
}
