// SPDX-License-Identifier: Apache-2.0
// A driver without a device, to be found as libcuda.so.1: memory is the host's, kernels do nothing, events tell the
// time. It knows which kernels a module really has. TURNPOINT_FAKE_CUDA="cuLaunchKernel:40:700" makes the 40th call of
// a function and all calls after it fail with 700; "devices:0" shows no device, "devices:4" four.
#include <elf.h>
#include <time.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Fault {
  char function[64] = "";
  long call = 0;
  int result = 0;
};

Fault fault() {
  Fault wanted;
  if (const char* text = std::getenv("TURNPOINT_FAKE_CUDA"))
    if (std::sscanf(text, "%63[^:]:%ld:%d", wanted.function, &wanted.call, &wanted.result) != 3) wanted.result = 0;
  return wanted;
}

int pass(const char* function) {
  static const Fault wanted = fault();
  static long calls = 0;
  if (wanted.result == 0 || std::strcmp(function, wanted.function) != 0) return 0;
  return ++calls >= wanted.call ? wanted.result : 0;
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct FakeModule {
  const char* image;
  std::size_t bytes;
};

}  // namespace

extern "C" {
#define PASS \
  if (const int failed = pass(__func__); failed != 0) return failed

int cuInit(unsigned) {
  PASS;
  return 0;
}
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) {
  const char* text = std::getenv("TURNPOINT_FAKE_CUDA");
  if (!text || std::sscanf(text, "devices:%d", count) != 1) *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<std::size_t>(size), "Fake H200"), 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t(8) << 30, 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
  *value = which == 75   ? 9
           : which == 33 ? device
           : which == 50 ? 0x7e57  // a PCI domain that no machine has
           : which == 76 ? 0
           : which == 16 ? 4
           : which == 38 ? 1 << 20
           : which == 36 ? 1000000
           : which == 37 ? 512
                         : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  PASS;
  static int one;
  return *context = &one, 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) { return *free = *total = std::size_t(8) << 30, 0; }
int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  PASS;
  void* memory = std::malloc(bytes);
  // Numbers that are neither zero nor garbage, in any format.
  if (memory && bytes <= (std::size_t(16) << 20)) std::memset(memory, 0x3e, bytes);
  *pointer = reinterpret_cast<unsigned long long>(memory);
  return memory ? 0 : 2;
}
int cuMemFree_v2(unsigned long long pointer) { return std::free(reinterpret_cast<void*>(pointer)), 0; }
int cuMemAllocHost_v2(void** pointer, std::size_t bytes) { return *pointer = std::malloc(bytes), *pointer ? 0 : 2; }
int cuMemFreeHost(void* pointer) { return std::free(pointer), 0; }
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void*) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void*) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void*) {
  return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes), 0;
}
int cuMemsetD32Async(unsigned long long to, unsigned value, std::size_t words, void*) {
  auto* word = reinterpret_cast<unsigned*>(to);
  for (std::size_t i = 0; i < words; ++i) word[i] = value;
  return 0;
}
int cuMemsetD16Async(unsigned long long to, unsigned short value, std::size_t halves, void*) {
  auto* half = reinterpret_cast<unsigned short*>(to);
  for (std::size_t i = 0; i < halves; ++i) half[i] = value;
  return 0;
}
int cuStreamCreate(void** stream, unsigned) { return *stream = std::malloc(1), 0; }
int cuStreamSynchronize(void*) {
  PASS;
  return 0;
}
int cuStreamQuery(void*) { return 0; }
int cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
int cuEventCreate(void** event, unsigned) { return *event = std::calloc(1, sizeof(double)), 0; }
int cuEventRecord(void* event, void*) { return *static_cast<double*>(event) = now(), 0; }
int cuEventSynchronize(void*) {
  PASS;
  return 0;
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  *milliseconds = static_cast<float>(1e3 * (*static_cast<double*>(to) - *static_cast<double*>(from)));
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  PASS;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 200;
  *module = new FakeModule{static_cast<const char*>(image),
                           header.e_shoff + std::size_t(header.e_shnum) * header.e_shentsize};
  // The caller's text goes away: keep it.
  auto* kept = static_cast<FakeModule*>(*module);
  char* copy = static_cast<char*>(std::malloc(kept->bytes));
  std::memcpy(copy, image, kept->bytes);
  kept->image = copy;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  const auto* of = static_cast<FakeModule*>(module);
  char section[128];
  const int length = std::snprintf(section, sizeof section, ".text.%s", name);
  *function = memmem(of->image, of->bytes, section, static_cast<std::size_t>(length) + 1);
  return *function ? 0 : 500;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned,
                   void*, void**, void**) {
  PASS;
  const bool good =
      function && x > 0 && y > 0 && z > 0 && bx * by * bz > 0 && bx * by * bz <= 1024 && x <= 2147483647u && y <= 65535;
  return good ? 0 : 1;
}
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_FAKE", 0; }
int cuGetErrorString(int, const char** text) { return *text = "made up", 0; }

// The run-time compiler looks for these in whatever driver it finds, and falls over where one is missing.
#define NOT_SUPPORTED(name) \
  int name() { return 801; }
NOT_SUPPORTED(cuCtxGetDevice)
NOT_SUPPORTED(cuCtxGetLimit)
NOT_SUPPORTED(cuCtxPopCurrent)
NOT_SUPPORTED(cuCtxPushCurrent)
NOT_SUPPORTED(cuDevicePrimaryCtxRelease)
NOT_SUPPORTED(cuDevicePrimaryCtxReset)
NOT_SUPPORTED(cuFuncGetAttribute)
NOT_SUPPORTED(cuFuncSetAttribute)
NOT_SUPPORTED(cuGetExportTable)
NOT_SUPPORTED(cuLaunchKernelEx)
NOT_SUPPORTED(cuLinkAddData_v2)
NOT_SUPPORTED(cuLinkAddFile_v2)
NOT_SUPPORTED(cuLinkComplete)
NOT_SUPPORTED(cuLinkCreate_v2)
NOT_SUPPORTED(cuLinkDestroy)
NOT_SUPPORTED(cuMemcpyDtoH_v2)
NOT_SUPPORTED(cuModuleGetGlobal_v2)
NOT_SUPPORTED(cuModuleLoadDataEx)
NOT_SUPPORTED(cuModuleLoadFatBinary)
NOT_SUPPORTED(cuModuleUnload)
NOT_SUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOT_SUPPORTED(cuTensorMapEncodeTiled)
}
