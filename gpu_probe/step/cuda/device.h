// SPDX-License-Identifier: Apache-2.0
// The GPU on which this process carries out steps. All ranks of the process share it and the one stream of computing,
// so that what one queues after another is done after it. The first thing that fails is kept, nothing is queued behind
// it, and the next settle() tells.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "gpu_probe/cuda/gpu.h"
#include "gpu_probe/step/cuda/arguments.h"
#include "gpu_probe/step/cuda/kernel_source.h"
#include "gpu_probe/step/values/place.h"

namespace turnpoint::step::in_cuda {

class Device {
 public:
  /// Opens the GPU of this number, once; later calls find it open. Error: what is missing, in words for people.
  static Expected<void> open(int index);
  static Device& get();  ///< which is open

  /// Everything that follows is done under this lock.
  std::recursive_mutex mutex;
  probe::cuda::Gpu gpu;
  ProbePrecision precision = ProbePrecision::fp32;  ///< in which steps are carried out now
  std::optional<Error> trouble;
  std::int64_t queued = 0;  ///< calls, since hold_back()

  /// From now on steps are carried out in this precision: fp32, tf32 (matrix products and convolutions multiply so) or
  /// bf16 (tensors are kept in it, too). Not while one is. Error: why this GPU does not do so.
  Expected<void> compute_in(ProbePrecision wanted);

  bool good() const { return !trouble; }
  void fail(Error error) {
    if (!trouble) trouble = std::move(error);
  }
  void check(probe::cuda::Result result, const char* doing) {
    if (result != 0 && good()) fail(gpu.failure(result, doing));
  }
  /// All that is queued is done, or something has failed.
  void wait(const char* doing) {
    if (!good()) return;
    if (auto done = gpu.wait(doing); !done) fail(done.error());
  }
  template <class Arguments>
  void launch(const char* kernel, std::int64_t grid_x, std::int64_t grid_y, int block_x, int block_y,
              const Arguments& arguments) {
    const std::lock_guard lock(mutex);
    ++queued;
    if (!good()) return;
    const auto function = gpu.function(kernel, precision == ProbePrecision::bf16 ? halves_ : nullptr);
    if (!function) return fail(function.error());
    const probe::cuda::Launch call =
        probe::cuda::Launch(*function, static_cast<unsigned>(grid_x), static_cast<unsigned>(grid_y),
                            static_cast<unsigned>(block_x), static_cast<unsigned>(block_y))
            .with(arguments);
    check(call(gpu.driver, gpu.stream), kernel);
  }
  /// C = A B; the plan is found again by its sizes.
  void multiply(probe::cuda::LtProduct product, Place a, Place b, Place c, Place bias = {});
  /// A convolution of two dimensions in one of its three directions; sizes as of ProbeCall. False: not by cuDNN.
  bool convolve(const ProbeCall& call, Place x, Place weight, Place y);
  int convolutions_refused();  ///< by cuDNN so far, in this precision: different ones, each direction by itself
  /// A second stream, for what goes on beside computing; made when first asked for.
  probe::cuda::Stream beside();

 private:
  probe::cuda::Module halves_ = nullptr;  ///< kernels for tensors in bf16
  std::map<probe::cuda::LtProduct, probe::cuda::CublasLt::Product> products_;
  struct Planned {
    probe::cuda::Cudnn::Plan plan;
    bool possible = false;
  };
  std::map<std::array<std::int64_t, 19>, Planned> convolutions_;
  probe::cuda::Stream beside_ = nullptr;
};

/// Counts and makes the call that queues an exchange. What failed before shows here too, before others wait in vain.
template <class Call>
Expected<void> queue_exchange(const Call& call) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  ++device.queued;
  if (!device.good()) return *device.trouble;
  Expected<void> done = call();
  if (!done) device.fail(done.error());
  return done;
}

/// As moment(), of any of its streams.
Moment moment_on(probe::cuda::Stream stream);
/// What is queued on the stream from now on begins behind that moment.
void hold_until(probe::cuda::Stream stream, const Moment& moment);

/// As a kernel wants it: a tensor's elements, or floats. The wrong one of the two is a failure of the device.
class Address {
 public:
  explicit Address(Place place) : place_(place) {}
  operator real*() const { return reinterpret_cast<real*>(of_bytes(kept_bytes())); }
  operator float*() const { return reinterpret_cast<float*>(of_bytes(sizeof(float))); }

 private:
  std::uint64_t of_bytes(int wanted) const {
    if (place_.address != 0 && place_.element_bytes != wanted)
      Device::get().fail({ErrorCode::device, "a kernel was handed numbers of another precision", {}, {}});
    return place_.address;
  }
  Place place_;
};
inline Address address(Place place) { return Address(place); }

/// Threads that come in a block for so many elements.
int threads_for(std::int64_t elements);
/// One thread an element, up to what fills the device several times.
template <class Arguments>
void launch_each(const char* kernel, std::int64_t elements, const Arguments& arguments) {
  if (elements <= 0) return;
  Device& device = Device::get();
  const int block = threads_for(elements);
  const std::int64_t blocks = std::min<std::int64_t>((elements + block - 1) / block, device.gpu.multiprocessors * 32);
  device.launch(kernel, blocks, 1, block, 1, arguments);
}
/// One block a row of so many elements.
template <class Arguments>
void launch_rows(const char* kernel, std::int64_t rows, std::int64_t columns, const Arguments& arguments) {
  if (rows <= 0) return;
  Device::get().launch(kernel, rows, 1, threads_for(columns), 1, arguments);
}

}  // namespace turnpoint::step::in_cuda
