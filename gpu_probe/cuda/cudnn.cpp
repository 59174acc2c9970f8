// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/cudnn.h"

#include <fmt/format.h>
#include <algorithm>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

Cudnn::Cudnn() {
  if (!library_.open({"libcudnn.so.9"})) return;
  library_.load(version_, "cudnnGetVersion") && library_.load(error_, "cudnnGetErrorString") &&
      library_.load(create_, "cudnnCreate") && library_.load(set_stream_, "cudnnSetStream") &&
      library_.load(create_tensor_, "cudnnCreateTensorDescriptor") &&
      library_.load(set_tensor_, "cudnnSetTensor4dDescriptor") &&
      library_.load(create_filter_, "cudnnCreateFilterDescriptor") &&
      library_.load(set_filter_, "cudnnSetFilter4dDescriptor") &&
      library_.load(create_convolution_, "cudnnCreateConvolutionDescriptor") &&
      library_.load(set_convolution_, "cudnnSetConvolution2dDescriptor") &&
      library_.load(set_math_, "cudnnSetConvolutionMathType") &&
      library_.load(set_groups_, "cudnnSetConvolutionGroupCount") &&
      library_.load(choose_forward_, "cudnnGetConvolutionForwardAlgorithm_v7") &&
      library_.load(choose_data_, "cudnnGetConvolutionBackwardDataAlgorithm_v7") &&
      library_.load(choose_filter_, "cudnnGetConvolutionBackwardFilterAlgorithm_v7") &&
      library_.load(run_forward_, "cudnnConvolutionForward") &&
      library_.load(run_data_, "cudnnConvolutionBackwardData") &&
      library_.load(run_filter_, "cudnnConvolutionBackwardFilter");
}

std::string Cudnn::version() const {
  if (!library_.usable()) return {};
  const std::size_t v = version_();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

std::string Cudnn::status(int code) const { return fmt::format("{} ({})", error_(code), code); }

Expected<Cudnn::Plan> Cudnn::plan(const ProbeCall& call, ProbePrecision precision, bool channels_last) {
  if (!library_.usable())
    return device_error("no cuDNN: " + library_.problem(), "put the folder of libcudnn into LD_LIBRARY_PATH");
  if (!handle_)
    if (const int failed = create_(&handle_); failed != 0)
      return device_error("cuDNN does not start: " + status(failed));
  const auto i = [&](std::size_t index) { return static_cast<int>(call[index]); };
  const int type = precision == ProbePrecision::bf16 ? kCudnnBf16 : kCudnnFloat;
  const int format = channels_last ? kCudnnNhwc : kCudnnNchw;
  const int math = precision == ProbePrecision::bf16   ? kCudnnTensorMath
                   : precision == ProbePrecision::tf32 ? kCudnnDefaultMath
                                                       : kCudnnFmaMath;
  Descriptor large = nullptr, small = nullptr, filter = nullptr, convolution = nullptr;
  int failed = create_tensor_(&large);
  if (failed == 0) failed = set_tensor_(large, format, type, i(0), i(1), i(2), i(3));
  if (failed == 0) failed = create_tensor_(&small);
  if (failed == 0) failed = set_tensor_(small, format, type, i(0), i(4), i(7), i(8));
  if (failed == 0) failed = create_filter_(&filter);
  if (failed == 0) failed = set_filter_(filter, type, format, i(4), i(1) / i(15), i(5), i(6));
  if (failed == 0) failed = create_convolution_(&convolution);
  if (failed == 0)
    failed =
        set_convolution_(convolution, i(11), i(12), i(9), i(10), i(13), i(14), kCudnnCrossCorrelation, kCudnnFloat);
  if (failed == 0) failed = set_groups_(convolution, i(15));
  if (failed == 0) failed = set_math_(convolution, math);
  if (failed != 0) return device_error("cuDNN takes no such convolution: " + status(failed));

  CudnnPerformance found[16] = {};
  int count = 0;
  Run run = run_forward_;
  Descriptor first = large, second = filter, result = small;
  std::size_t first_data = 0, second_data = 1, result_data = 2;  // of x, weight, y
  if (call.kind == CallKind::convolution) {
    failed = choose_forward_(handle_, large, filter, convolution, small, 16, &count, found);
  } else if (call.kind == CallKind::convolution_data) {
    failed = choose_data_(handle_, filter, small, convolution, large, 16, &count, found);
    run = run_data_;
    first = filter, second = small, result = large;
    first_data = 1, second_data = 2, result_data = 0;
  } else {
    failed = choose_filter_(handle_, large, small, convolution, filter, 16, &count, found);
    run = run_filter_;
    second = small, result = filter;
    second_data = 2, result_data = 1;
  }
  if (failed != 0) return device_error("cuDNN has no algorithm: " + status(failed));
  const CudnnPerformance *none = found + std::clamp(count, 0, 16), *begin = found;
  const auto* best =
      std::find_if(begin, none, [](const auto& one) { return one.status == 0 && one.memory <= kMostWorkspace; });
  if (best == none)
    return device_error("cuDNN has no algorithm for this convolution that needs at most 1 GiB of workspace");
  set_math_(convolution, best->math);
  Plan plan;
  plan.workspace = best->memory;
  plan.algorithm = fmt::format("algorithm {}", best->algorithm);
  plan.run = [=, this, algorithm = best->algorithm, bytes = best->memory](Stream stream, Pointer x, Pointer weight,
                                                                          Pointer y, Pointer workspace) {
    const float one = 1, zero = 0;
    const Pointer data[] = {x, weight, y};
    const auto pointer = [](Pointer p) { return reinterpret_cast<void*>(p); };
    if (const int wrong = set_stream_(handle_, stream); wrong != 0) return wrong;
    return run(handle_, &one, first, pointer(data[first_data]), second, pointer(data[second_data]), convolution,
               algorithm, pointer(workspace), bytes, &zero, result, pointer(data[result_data]));
  };
  return plan;
}

}  // namespace turnpoint::probe::cuda
