// SPDX-License-Identifier: Apache-2.0
// The run-time compiler of the emulated GPU: CUDA C++ becomes a shared library by g++, where the words that C++ does
// not have are macros. What was compiled once is found again by its text. "Machine code" is the library's name.
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "emulated_gpu.h"

namespace {

struct Program {
  std::string source, log, image;
};

constexpr const char* kPrologue = R"(
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>
struct Index { unsigned x, y, z; };
struct EmulatedThread { Index thread, block, threads, blocks; };
extern "C" EmulatedThread* emulated_now; EmulatedThread* emulated_now = nullptr;
extern "C" void (*emulated_barrier)(); void (*emulated_barrier)() = nullptr;
#define threadIdx (emulated_now->thread)
#define blockIdx (emulated_now->block)
#define blockDim (emulated_now->threads)
#define gridDim (emulated_now->blocks)
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __syncthreads() emulated_barrier()
// By all threads of the block at once, as our kernels call it.
inline float __shfl_xor_sync(unsigned, float x, int lane) {
  static float all[1024];
  const unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
  all[me] = x;
  __syncthreads();
  x = all[me ^ (unsigned)lane];
  __syncthreads();
  return x;
}
template <class T> T atomicAdd(T* to, T value) { const T old = *to; *to += value; return old; }
inline long long clock64() { static long long now = 0; return now += 1ll << 40; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
template <class... A, std::size_t... I> void* emulated_pack_all(void (*)(A...), void** p, std::index_sequence<I...>) {
  return new std::tuple<A...>(*static_cast<A*>(p[I])...);
}
template <class... A> void* emulated_pack(void (*f)(A...), void** p) {
  return emulated_pack_all(f, p, std::index_sequence_for<A...>());
}
template <class... A> void emulated_call(void (*f)(A...), void* packed) {
  std::apply(f, *static_cast<std::tuple<A...>*>(packed));
}
template <class... A> void emulated_drop(void (*)(A...), void* packed) { delete static_cast<std::tuple<A...>*>(packed); }
#line 1 "turnpoint_kernels.cu"
)";

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string compiler() {
  const char* named = std::getenv("TURNPOINT_EMULATED_GPU_COMPILER");
  return named ? named : "g++";
}

int compile(Program& program) {
  std::string text = kPrologue + program.source;
  std::set<std::string> kernels;
  const std::regex head(R"(__global__\s+void\s+(\w+)\s*\()");
  for (std::sregex_iterator it(program.source.begin(), program.source.end(), head), end; it != end; ++it)
    kernels.insert((*it)[1]);
  for (const auto& name : kernels)
    text += "extern \"C\" void* emulated_pack_" + name + "(void** p) { return emulated_pack(&" + name +
            ", p); }\nextern \"C\" void emulated_call_" + name + "(void* p) { emulated_call(&" + name +
            ", p); }\nextern \"C\" void emulated_drop_" + name + "(void* p) { emulated_drop(&" + name + ", p); }\n";
  const char* base = std::getenv("TMPDIR");
  const std::string folder = std::string(base ? base : "/tmp") + "/turnpoint-emulated-gpu-" + std::to_string(getuid());
  mkdir(folder.c_str(), 0700);
  const std::string stem = folder + "/" + std::to_string(std::hash<std::string>()(text + compiler()));
  const std::string library = stem + ".so";
  if (access(library.c_str(), R_OK) != 0) {
    const std::string own = stem + "." + std::to_string(getpid());
    std::ofstream(own + ".cpp") << text;
    const std::string command = compiler() + " -std=c++17 -O1 -fPIC -shared -w -ffp-contract=off -o " + own + ".so " +
                                own + ".cpp >" + own + ".log 2>&1";
    const int failed = std::system(command.c_str());
    program.log = read(own + ".log");
    if (failed != 0 || rename((own + ".so").c_str(), library.c_str()) != 0) return 6;
    unlink((own + ".cpp").c_str());
    unlink((own + ".log").c_str());
  }
  program.image = emulated_gpu::kImageMark + library;
  program.image.push_back('\0');
  return 0;
}

}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program;
  (*program)->source = source;
  return 0;
}
int nvrtcDestroyProgram(Program** program) { return delete *program, 0; }
int nvrtcCompileProgram(Program* program, int, const char* const*) { return compile(*program); }
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) { return *size = program->log.size() + 1, 0; }
int nvrtcGetProgramLog(Program* program, char* log) {
  return std::memcpy(log, program->log.c_str(), program->log.size() + 1), 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) { return *size = program->image.size(), 0; }
int nvrtcGetCUBIN(Program* program, char* image) {
  return std::memcpy(image, program->image.data(), program->image.size()), 0;
}
const char* nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
}
