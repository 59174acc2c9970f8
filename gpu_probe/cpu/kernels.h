// SPDX-License-Identifier: Apache-2.0
// The kernels of training on one core, fp32, plain loops. Row-major; images are NCHW.
#pragma once

#include <cstdint>

#include "core/hardware/probe_job.h"
#include "gpu_probe/cpu/gemm.h"
#include "gpu_probe/cpu/pooling.h"

namespace turnpoint::probe {

/// Sizes of a convolution or a pooling, by name.
struct ConvolutionSizes {
  explicit ConvolutionSizes(const ProbeCall& call)
      : n(call[0]),
        c(call[1]),
        h(call[2]),
        w(call[3]),
        k(call[4]),
        r(call[5]),
        s(call[6]),
        p(call[7]),
        q(call[8]),
        stride_h(call[9]),
        stride_w(call[10]),
        pad_h(call[11]),
        pad_w(call[12]),
        dilation_h(call[13]),
        dilation_w(call[14]),
        groups(call[15]) {}
  std::int64_t n, c, h, w, k, r, s, p, q, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
};

/// Whether windows are single elements, each once: a product of matrices that lie in memory already.
bool is_product(const ConvolutionSizes& z);

/// `columns` is scratch of (c / groups) r s p q elements, of none where is_product().
void convolution_forward(const ConvolutionSizes& z, GemmFunction gemm, const float* x, const float* weight, float* y,
                         float* columns);
void convolution_data(const ConvolutionSizes& z, GemmFunction gemm, const float* weight, const float* dy, float* dx,
                      float* columns);
void convolution_filter(const ConvolutionSizes& z, GemmFunction gemm, const float* x, const float* dy, float* dweight,
                        float* columns);

/// out[t] = sum of all inputs (of writes, each the same); reads may be 0.
void elementwise(std::int64_t elements, const float* const* in, std::int64_t reads, float* const* out,
                 std::int64_t writes);
void softmax(std::int64_t rows, std::int64_t columns, const float* x, float* y);
void softmax_backward(std::int64_t rows, std::int64_t columns, const float* y, const float* dy, float* dx);
/// Without scale and bias: mean 0 and variance 1 in every row.
void layer_norm(std::int64_t rows, std::int64_t columns, const float* x, float* y);
void layer_norm_backward(std::int64_t rows, std::int64_t columns, const float* x, const float* dy, float* dx);
void batch_norm(std::int64_t n, std::int64_t c, std::int64_t plane, const float* x, float* y);
void batch_norm_backward(std::int64_t n, std::int64_t c, std::int64_t plane, const float* x, const float* dy,
                         float* dx);
/// Of a pooling's call.
PoolingWindows windows_of(const ProbeCall& call);
void embedding(std::int64_t columns, std::int64_t lookups, const float* table, const std::int64_t* index, float* y);
void embedding_backward(std::int64_t columns, std::int64_t lookups, const std::int64_t* index, const float* dy,
                        float* dtable);
/// log(sum of exp(x)) of n numbers.
float log_of_sum(const float* x, std::int64_t n);
/// y = scale * exp(x - shift): softmax(x), scaled, where `shift` is log_of_sum(x).
void scaled_softmax(const float* x, std::int64_t n, float shift, float scale, float* y);
/// loss[row] = -log softmax(x)[label]; backward writes softmax(x) - one hot.
void cross_entropy(std::int64_t rows, std::int64_t columns, const float* x, const std::int64_t* label, float* loss);
void cross_entropy_backward(std::int64_t rows, std::int64_t columns, const float* x, const std::int64_t* label,
                            float* dx);
void row_sum(std::int64_t rows, std::int64_t columns, const float* x, float* y);
void column_sum(std::int64_t rows, std::int64_t columns, const float* x, float* y);
struct AdamStep {
  float rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  int step = 1;
};
void adam(std::int64_t elements, const AdamStep& step, const float* gradient, float* weight, float* mean,
          float* variance);

}  // namespace turnpoint::probe
