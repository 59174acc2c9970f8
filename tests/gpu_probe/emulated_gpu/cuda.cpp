// SPDX-License-Identifier: Apache-2.0
// The driver of the emulated GPUs. TURNPOINT_EMULATED_GPU_BYTES: how much memory each has (default 1 GiB).
// TURNPOINT_EMULATED_GPU_MAJOR: the generation that they say they are of (default 9).
#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulated_gpu.h"
#include "fibers.h"

namespace emulated_gpu {

namespace {

constexpr int kInvalid = 1, kNoMemory = 2, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kFailed = 719;
constexpr std::size_t kGuard = 256, kAlign = 512, kLarge = std::size_t(16) << 20;

class Gpu {
 public:
  static Gpu& one() {
    static auto* gpu = new Gpu;
    return *gpu;
  }

  std::recursive_mutex mutex;
  std::size_t total = std::size_t(1) << 30, taken = 0;
  int failure = 0;

  int allocate(unsigned long long* pointer, std::size_t bytes) {
    const std::size_t size = (bytes + kGuard + kAlign - 1) / kAlign * kAlign;
    if (bytes == 0) return kInvalid;
    if (taken + size > total) return kNoMemory;
    std::size_t at = 0;
    for (const auto& [begin, end] : allocations_) {
      if (begin - at >= size) break;
      at = end.end;
    }
    if (at + size > room_) return kNoMemory;
    allocations_[at] = {at + size, bytes};
    taken += size;
    high_ = std::max(high_, at + size);
    open(true);
    // A workspace is not touched for nothing: protecting it would cost its pages each time.
    if (bytes <= kLarge) std::memset(arena_ + at, 0xff, bytes);
    std::memset(arena_ + at + bytes, 0xa5, size - bytes);
    open(false);
    *pointer = reinterpret_cast<unsigned long long>(arena_ + at);
    return 0;
  }

  int release(unsigned long long pointer) {
    if (const int failed = flush_all(); failed != 0) return failed;
    const auto found = allocations_.find(static_cast<std::size_t>(reinterpret_cast<char*>(pointer) - arena_));
    if (found == allocations_.end()) return kInvalid;
    taken -= found->second.end - found->first;
    allocations_.erase(found);
    return 0;
  }

  /// Whether [pointer, pointer + bytes) lies in one allocation.
  bool holds(unsigned long long pointer, std::size_t bytes) const {
    const auto at = static_cast<std::size_t>(reinterpret_cast<char*>(pointer) - arena_);
    auto found = allocations_.upper_bound(at);
    if (found == allocations_.begin()) return false;
    --found;
    return at + bytes <= found->first + found->second.bytes;
  }

  void queue(void* stream, std::function<void()> work) {
    queue_until(stream, [work = std::move(work)] { return work(), true; });
  }
  void queue_until(void* stream, std::function<bool()> work) { queues_[stream].push_back(std::move(work)); }

  int flush(void* stream) {
    return wait([&] { return queues_[stream].empty(); });
  }
  int flush_all() {
    return wait([&] {
      for (const auto& [stream, queue] : queues_)
        if (!queue.empty()) return false;
      return true;
    });
  }
  int query(void* stream) {
    progress();
    return queues_[stream].empty() ? failure : kNotReady;
  }
  template <class Done>
  int wait(const Done& done) {
    while (true) {
      progress();
      if (done()) return failure;
      sched_yield();
    }
  }

  /// All streams as far as they go without waiting for other processes.
  void progress() {
    bool any = false;
    for (const auto& [stream, queue] : queues_) any |= !queue.empty();
    if (!any) return;
    open(true);
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& [stream, queue] : queues_)
        for (; !queue.empty() && queue.front()(); moved = true) queue.pop_front();
    }
    for (const auto& [begin, end] : allocations_)
      for (std::size_t i = begin + end.bytes; i < begin + end.bytes + kGuard; ++i)
        if (arena_[i] != char(0xa5) && failure == 0) {
          std::fprintf(stderr, "emulated GPU: something wrote beyond an allocation of %zu bytes\n", end.bytes);
          failure = kIllegalAddress;
        }
    open(false);
  }

  Fibers fibers;

 private:
  struct End {
    std::size_t end, bytes;
  };
  Gpu() {
    if (const char* text = std::getenv("TURNPOINT_EMULATED_GPU_BYTES")) total = std::strtoull(text, nullptr, 10);
    room_ = 2 * total + (std::size_t(64) << 20);
    void* memory = mmap(nullptr, room_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    arena_ = static_cast<char*>(memory);
  }
  void open(bool yes) {
    const std::size_t bytes = (high_ + 4095) / 4096 * 4096;
    if (bytes > 0) mprotect(arena_, bytes, yes ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  char* arena_ = nullptr;
  std::size_t room_ = 0, high_ = 0;
  std::map<std::size_t, End> allocations_;
  // Later streams go first: what should have waited for an earlier one shows. (They are numbered, not addresses.)
  std::map<void*, std::deque<std::function<bool()>>, std::greater<>> queues_;
};

struct Module {
  void* library = nullptr;
  Thread** now = nullptr;
};
struct Function {
  Module* module = nullptr;
  void* (*pack)(void**) = nullptr;
  void (*call)(void*) = nullptr;
  void (*drop)(void*) = nullptr;
  std::string name;
};
struct Event {
  double time = 0;
  long recorded = 0, done = 0;  ///< how often
};

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr int kMostDevices = 64;
int contexts[kMostDevices];
thread_local int device_of_thread = -1;

int devices() {
  const char* text = std::getenv("TURNPOINT_EMULATED_GPUS");
  return text ? std::atoi(text) : 1;
}

void barrier() { Gpu::one().fibers.wait(); }

void execute(const Function& function, void* packed, Index blocks, Index threads) {
  Gpu& gpu = Gpu::one();
  Thread here;
  here.blocks = blocks;
  here.threads = threads;
  *function.module->now = &here;
  const unsigned count = threads.x * threads.y * threads.z;
  const auto resumed = [&](unsigned i) {
    here.thread = {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
  };
  const std::function<void(unsigned)> body = [&](unsigned) { function.call(packed); };
  for (unsigned z = 0; z < blocks.z; ++z)
    for (unsigned y = 0; y < blocks.y; ++y)
      for (unsigned x = 0; x < blocks.x; ++x) {
        here.block = {x, y, z};
        if (!gpu.fibers.run(count, body, resumed) && gpu.failure == 0) {
          std::fprintf(stderr, "emulated GPU: threads of %s wait at a barrier to which others never come\n",
                       function.name.c_str());
          gpu.failure = kFailed;
        }
      }
  function.drop(packed);
}

}  // namespace

void queue(void* stream, std::function<void()> work) {
  Gpu& gpu = Gpu::one();
  const std::lock_guard lock(gpu.mutex);
  gpu.queue(stream, std::move(work));
}

void queue_until(void* stream, std::function<bool()> work) {
  Gpu& gpu = Gpu::one();
  const std::lock_guard lock(gpu.mutex);
  gpu.queue_until(stream, std::move(work));
}

bool holds(const void* pointer, std::size_t bytes) {
  Gpu& gpu = Gpu::one();
  const std::lock_guard lock(gpu.mutex);
  return gpu.holds(reinterpret_cast<unsigned long long>(pointer), bytes);
}

int current_device() { return device_of_thread; }

}  // namespace emulated_gpu

using namespace emulated_gpu;

extern "C" {
#define ONE_AT_A_TIME    \
  Gpu& gpu = Gpu::one(); \
  const std::lock_guard lock(gpu.mutex)

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = devices(), 0; }
int cuDeviceGet(int* device, int index) { return *device = index, index >= 0 && index < devices() ? 0 : 101; }
int cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<std::size_t>(size), "Emulated GPU"), 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = Gpu::one().total, 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
  const char* major = std::getenv("TURNPOINT_EMULATED_GPU_MAJOR");
  *value = which == 33   ? device
           : which == 50 ? 0x7e57  // a PCI domain that no machine has
           : which == 75 ? (major ? std::atoi(major) : 9)
           : which == 16 ? 2
           : which == 38 ? 1 << 20
           : which == 36 ? 1000000
           : which == 37 ? 512
                         : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &contexts[device], 0; }
int cuCtxSetCurrent(void* context) {
  device_of_thread = static_cast<int>(static_cast<int*>(context) - contexts);
  return 0;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  ONE_AT_A_TIME;
  *total = gpu.total;
  *free = gpu.total - gpu.taken;
  return 0;
}
int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  ONE_AT_A_TIME;
  return gpu.allocate(pointer, bytes);
}
int cuMemFree_v2(unsigned long long pointer) {
  ONE_AT_A_TIME;
  return gpu.release(pointer);
}
int cuMemAllocHost_v2(void** pointer, std::size_t bytes) { return *pointer = std::malloc(bytes), *pointer ? 0 : 2; }
int cuMemFreeHost(void* pointer) { return std::free(pointer), 0; }
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void* stream) {
  ONE_AT_A_TIME;
  if (!gpu.holds(to, bytes)) return kInvalid;
  const auto* begin = static_cast<const char*>(from);
  gpu.queue(stream, [to, data = std::vector<char>(begin, begin + bytes)] {
    std::memcpy(reinterpret_cast<void*>(to), data.data(), data.size());
  });
  return 0;
}
// As for pinned memory: nothing has arrived before somebody waits.
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* stream) {
  ONE_AT_A_TIME;
  if (!gpu.holds(from, bytes)) return kInvalid;
  gpu.queue(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
  return 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void* stream) {
  ONE_AT_A_TIME;
  if (!gpu.holds(from, bytes) || !gpu.holds(to, bytes)) return kInvalid;
  gpu.queue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
  return 0;
}
int cuMemsetD32Async(unsigned long long to, unsigned value, std::size_t words, void* stream) {
  ONE_AT_A_TIME;
  if (!gpu.holds(to, words * 4) || to % 4 != 0) return kInvalid;
  gpu.queue(stream, [=] {
    auto* word = reinterpret_cast<unsigned*>(to);
    for (std::size_t i = 0; i < words; ++i) word[i] = value;
  });
  return 0;
}
int cuMemsetD16Async(unsigned long long to, unsigned short value, std::size_t halves, void* stream) {
  ONE_AT_A_TIME;
  if (!gpu.holds(to, halves * 2) || to % 2 != 0) return kInvalid;
  gpu.queue(stream, [=] {
    auto* half = reinterpret_cast<unsigned short*>(to);
    for (std::size_t i = 0; i < halves; ++i) half[i] = value;
  });
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  static std::atomic<std::uintptr_t> made = 0;
  return *stream = reinterpret_cast<void*>(++made), 0;
}
int cuStreamSynchronize(void* stream) {
  ONE_AT_A_TIME;
  return gpu.flush(stream);
}
int cuStreamQuery(void* stream) {
  ONE_AT_A_TIME;
  return gpu.query(stream);
}
// Of an event what was recorded last counts, and nothing where it never was.
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ONE_AT_A_TIME;
  const auto* mark = static_cast<Event*>(event);
  gpu.queue_until(stream, [mark, until = mark->recorded] { return mark->done >= until; });
  return 0;
}
int cuEventCreate(void** event, unsigned) { return *event = new Event, 0; }
int cuEventRecord(void* event, void* stream) {
  ONE_AT_A_TIME;
  auto* mark = static_cast<Event*>(event);
  gpu.queue(stream, [mark, number = ++mark->recorded] {
    mark->time = now();
    mark->done = number;
  });
  return 0;
}
int cuEventSynchronize(void* event) {
  ONE_AT_A_TIME;
  const auto* mark = static_cast<Event*>(event);
  return gpu.wait([mark, until = mark->recorded] { return mark->done >= until; });
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  ONE_AT_A_TIME;
  const auto *begin = static_cast<Event*>(from), *end = static_cast<Event*>(to);
  if (begin->recorded == 0 || end->recorded == 0) return 400;
  if (begin->done < begin->recorded || end->done < end->recorded) return kNotReady;
  *milliseconds = static_cast<float>(1e3 * (end->time - begin->time));
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  const auto* text = static_cast<const char*>(image);
  if (std::strncmp(text, kImageMark, std::strlen(kImageMark)) != 0) return 200;
  auto* loaded = new Module;
  loaded->library = dlopen(text + std::strlen(kImageMark), RTLD_NOW | RTLD_LOCAL);
  if (!loaded->library) {
    std::fprintf(stderr, "emulated GPU: %s\n", dlerror());
    return 200;
  }
  loaded->now = static_cast<Thread**>(dlsym(loaded->library, "emulated_now"));
  *static_cast<Barrier*>(dlsym(loaded->library, "emulated_barrier")) = barrier;
  *module = loaded;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto* found = new Function;
  found->module = static_cast<Module*>(module);
  found->name = name;
  const auto symbol = [&](const char* kind) {
    return dlsym(found->module->library, (std::string("emulated_") + kind + "_" + name).c_str());
  };
  found->pack = reinterpret_cast<void* (*)(void**)>(symbol("pack"));
  found->call = reinterpret_cast<void (*)(void*)>(symbol("call"));
  found->drop = reinterpret_cast<void (*)(void*)>(symbol("drop"));
  *function = found;
  return found->pack && found->call && found->drop ? 0 : kNotFound;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned,
                   void* stream, void** parameters, void**) {
  ONE_AT_A_TIME;
  if (!function || x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || x > 2147483647u || bx * by * bz == 0 ||
      bx * by * bz > 1024)
    return kInvalid;
  const auto* what = static_cast<Function*>(function);
  void* packed = what->pack(parameters);
  gpu.queue(stream, [=] { execute(*what, packed, {x, y, z}, {bx, by, bz}); });
  return 0;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == kNoMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_EMULATED";
  return 0;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kNoMemory         ? "out of memory"
          : code == kIllegalAddress ? "an illegal memory access was encountered"
          : code == kFailed         ? "unspecified launch failure"
                                    : "emulated error";
  return 0;
}
}
