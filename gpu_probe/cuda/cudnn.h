// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN 9, declared here so that no CUDA is needed to build (see driver.h).
#pragma once

#include <functional>
#include <string>

#include "core/hardware/probe_job.h"
#include "gpu_probe/cuda/driver.h"

namespace turnpoint::probe::cuda {

/// cudnnConvolutionFwdAlgoPerf_t and its two siblings, which are alike.
struct CudnnPerformance {
  int algorithm;
  int status;
  float time;
  std::size_t memory;
  int determinism;
  int math;
  int reserved[3];
};
inline constexpr int kCudnnFloat = 0, kCudnnBf16 = 9, kCudnnNchw = 0, kCudnnNhwc = 1, kCudnnCrossCorrelation = 1,
                     kCudnnDefaultMath = 0, kCudnnTensorMath = 1, kCudnnFmaMath = 3;

class Cudnn {
 public:
  static constexpr std::size_t kMostWorkspace = 1u << 30;

  Cudnn();
  const Library& loaded() const { return library_; }
  std::string version() const;

  struct Plan {
    std::function<int(Stream, Pointer x, Pointer weight, Pointer y, Pointer workspace)> run;
    std::size_t workspace = 0;
    std::string algorithm;
  };
  /// Of x, weight and y whichever the kind of call writes is the result. `channels_last`: they lie innermost, as the
  /// matrix units want them in 16 bits; else before the places.
  Expected<Plan> plan(const ProbeCall& call, ProbePrecision precision, bool channels_last);

 private:
  using Handle = struct CudnnHandleTag*;
  using Descriptor = struct CudnnDescriptorTag*;
  using Choose = int (*)(Handle, Descriptor, Descriptor, Descriptor, Descriptor, int, int*, CudnnPerformance*);
  using Run = int (*)(Handle, const void* alpha, Descriptor, const void*, Descriptor, const void*, Descriptor, int,
                      void*, std::size_t, const void* beta, Descriptor, void*);
  std::string status(int code) const;

  Library library_;
  Handle handle_ = nullptr;
  std::size_t (*version_)() = nullptr;
  const char* (*error_)(int) = nullptr;
  int (*create_)(Handle*) = nullptr;
  int (*set_stream_)(Handle, Stream) = nullptr;
  int (*create_tensor_)(Descriptor*) = nullptr;
  int (*set_tensor_)(Descriptor, int format, int type, int, int, int, int) = nullptr;
  int (*create_filter_)(Descriptor*) = nullptr;
  int (*set_filter_)(Descriptor, int type, int format, int, int, int, int) = nullptr;
  int (*create_convolution_)(Descriptor*) = nullptr;
  int (*set_convolution_)(Descriptor, int, int, int, int, int, int, int mode, int type) = nullptr;
  int (*set_math_)(Descriptor, int) = nullptr;
  int (*set_groups_)(Descriptor, int) = nullptr;
  Choose choose_forward_ = nullptr, choose_data_ = nullptr, choose_filter_ = nullptr;
  Run run_forward_ = nullptr, run_data_ = nullptr, run_filter_ = nullptr;
};

}  // namespace turnpoint::probe::cuda
