// SPDX-License-Identifier: Apache-2.0
// Convolutions of the emulated GPU: two dimensions, fp32 or bf16, channels before places, groups. None at all where
// TURNPOINT_EMULATED_GPU_NO_CONVOLUTIONS is set.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bf16.h"
#include "emulated_gpu.h"

namespace {

struct Descriptor {
  std::int64_t n = 0, c = 0, h = 0, w = 0;  ///< of a filter: outputs, inputs of a group, rows, columns
  std::int64_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, groups = 1;
  int type = 0, format = 0;
};
struct Performance {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};
constexpr int kBad = 2000, kUnsupported = 3000, kBf16 = 9;

int check(const Descriptor& x, const Descriptor& w, const Descriptor& v, const Descriptor& y) {
  if (std::getenv("TURNPOINT_EMULATED_GPU_NO_CONVOLUTIONS")) return kUnsupported;
  for (const auto* one : {&x, &w, &y})
    if ((one->type != 0 && one->type != kBf16) || one->type != x.type || one->format != 0) return kUnsupported;
  const auto out = [](std::int64_t size, std::int64_t pad, std::int64_t kernel, std::int64_t stride,
                      std::int64_t dilation) { return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; };
  const bool fits = x.n == y.n && x.c == w.c * v.groups && y.c == w.n && w.n % v.groups == 0 &&
                    y.h == out(x.h, v.pad_h, w.h, v.stride_h, v.dilation_h) &&
                    y.w == out(x.w, v.pad_w, w.w, v.stride_w, v.dilation_w);
  return fits ? 0 : kBad;
}

/// Calls mac(x, w, y) with the offsets of every multiply-accumulate.
template <class Mac>
void each(const Descriptor& x, const Descriptor& w, const Descriptor& v, const Descriptor& y, const Mac& mac) {
  const std::int64_t outs = w.n / v.groups;
  for (std::int64_t n = 0; n < y.n; ++n)
    for (std::int64_t k = 0; k < y.c; ++k)
      for (std::int64_t p = 0; p < y.h; ++p)
        for (std::int64_t q = 0; q < y.w; ++q)
          for (std::int64_t c = 0; c < w.c; ++c)
            for (std::int64_t r = 0; r < w.h; ++r)
              for (std::int64_t s = 0; s < w.w; ++s) {
                const std::int64_t i = p * v.stride_h - v.pad_h + r * v.dilation_h,
                                   j = q * v.stride_w - v.pad_w + s * v.dilation_w;
                if (i < 0 || i >= x.h || j < 0 || j >= x.w) continue;
                mac(((n * x.c + k / outs * w.c + c) * x.h + i) * x.w + j, ((k * w.c + c) * w.h + r) * w.w + s,
                    ((n * y.c + k) * y.h + p) * y.w + q);
              }
}

/// A tensor as floats; what is written goes back when this ends.
template <class T>
std::vector<float> floats(const Descriptor& of, const void* from) {
  const auto* begin = static_cast<const T*>(from);
  return {begin, begin + of.n * of.c * of.h * of.w};
}
std::vector<float> read(const Descriptor& of, const void* from) {
  return of.type == kBf16 ? floats<emulated_gpu::Bf16>(of, from) : floats<float>(of, from);
}
class Result {
 public:
  Result(const Descriptor& of, void* to, float beta) : of_(of), to_(to), values_(read(of, to)) {
    for (float& value : values_) value = beta == 0 ? 0 : value * beta;
  }
  ~Result() {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (of_.type == kBf16)
        static_cast<emulated_gpu::Bf16*>(to_)[i] = values_[i];
      else
        static_cast<float*>(to_)[i] = values_[i];
  }
  float& operator[](std::int64_t i) { return values_[static_cast<std::size_t>(i)]; }

 private:
  Descriptor of_;
  void* to_;
  std::vector<float> values_;
};

int choose(const Descriptor& x, const Descriptor& w, const Descriptor& v, const Descriptor& y, int wanted, int* count,
           Performance* found) {
  const int status = check(x, w, v, y);
  *count = status == 0 && wanted > 0 ? 1 : 0;
  if (*count == 1) *found = {};
  return status;
}

void* chosen_stream = nullptr;  // of the one handle

}  // namespace

extern "C" {
std::size_t cudnnGetVersion() { return 91000; }
const char* cudnnGetErrorString(int code) {
  return code == 0 ? "CUDNN_STATUS_SUCCESS" : code == kBad ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}
int cudnnCreate(void** handle) {
  static int one;
  return *handle = &one, 0;
}
int cudnnSetStream(void*, void* stream) { return chosen_stream = stream, 0; }
int cudnnCreateTensorDescriptor(Descriptor** made) { return *made = new Descriptor, 0; }
int cudnnSetTensor4dDescriptor(Descriptor* d, int format, int type, int n, int c, int h, int w) {
  d->format = format, d->type = type, d->n = n, d->c = c, d->h = h, d->w = w;
  return n > 0 && c > 0 && h > 0 && w > 0 ? 0 : kBad;
}
int cudnnCreateFilterDescriptor(Descriptor** made) { return *made = new Descriptor, 0; }
int cudnnSetFilter4dDescriptor(Descriptor* d, int type, int format, int n, int c, int h, int w) {
  return cudnnSetTensor4dDescriptor(d, format, type, n, c, h, w);
}
int cudnnCreateConvolutionDescriptor(Descriptor** made) { return *made = new Descriptor, 0; }
int cudnnSetConvolution2dDescriptor(Descriptor* d, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                                    int dilation_w, int mode, int) {
  d->pad_h = pad_h, d->pad_w = pad_w, d->stride_h = stride_h, d->stride_w = stride_w;
  d->dilation_h = dilation_h, d->dilation_w = dilation_w;
  return mode == 1 ? 0 : kUnsupported;
}
int cudnnSetConvolutionMathType(Descriptor*, int) { return 0; }
int cudnnSetConvolutionGroupCount(Descriptor* d, int groups) { return d->groups = groups, 0; }
int cudnnGetConvolutionForwardAlgorithm_v7(void*, Descriptor* x, Descriptor* w, Descriptor* v, Descriptor* y,
                                           int wanted, int* count, Performance* found) {
  return choose(*x, *w, *v, *y, wanted, count, found);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, Descriptor* w, Descriptor* y, Descriptor* v, Descriptor* x,
                                                int wanted, int* count, Performance* found) {
  return choose(*x, *w, *v, *y, wanted, count, found);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, Descriptor* x, Descriptor* y, Descriptor* v, Descriptor* w,
                                                  int wanted, int* count, Performance* found) {
  return choose(*x, *w, *v, *y, wanted, count, found);
}
int cudnnConvolutionForward(void*, const void* alpha, Descriptor* lx, const void* x, Descriptor* lw, const void* w,
                            Descriptor* lv, int, void*, std::size_t, const void* beta, Descriptor* ly, void* y) {
  if (const int status = check(*lx, *lw, *lv, *ly); status != 0) return status;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  emulated_gpu::queue(chosen_stream, [=, X = *lx, W = *lw, V = *lv, Y = *ly] {
    const auto from = read(X, x), weight = read(W, w);
    Result to(Y, y, keep);
    each(X, W, V, Y, [&](auto i, auto j, auto o) { to[o] += scale * from[i] * weight[j]; });
  });
  return 0;
}
int cudnnConvolutionBackwardData(void*, const void* alpha, Descriptor* lw, const void* w, Descriptor* ly,
                                 const void* dy, Descriptor* lv, int, void*, std::size_t, const void* beta,
                                 Descriptor* lx, void* dx) {
  if (const int status = check(*lx, *lw, *lv, *ly); status != 0) return status;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  emulated_gpu::queue(chosen_stream, [=, X = *lx, W = *lw, V = *lv, Y = *ly] {
    const auto from = read(Y, dy), weight = read(W, w);
    Result to(X, dx, keep);
    each(X, W, V, Y, [&](auto i, auto j, auto o) { to[i] += scale * from[o] * weight[j]; });
  });
  return 0;
}
int cudnnConvolutionBackwardFilter(void*, const void* alpha, Descriptor* lx, const void* x, Descriptor* ly,
                                   const void* dy, Descriptor* lv, int, void*, std::size_t, const void* beta,
                                   Descriptor* lw, void* dw) {
  if (const int status = check(*lx, *lw, *lv, *ly); status != 0) return status;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  emulated_gpu::queue(chosen_stream, [=, X = *lx, W = *lw, V = *lv, Y = *ly] {
    const auto from = read(Y, dy), in = read(X, x);
    Result to(W, dw, keep);
    each(X, W, V, Y, [&](auto i, auto j, auto o) { to[j] += scale * from[o] * in[i]; });
  });
  return 0;
}
}
