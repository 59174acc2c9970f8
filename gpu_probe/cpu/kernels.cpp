// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/cpu/pooling.h"
#include "gpu_probe/cpu/vector_math.h"

namespace turnpoint::probe {

namespace {

constexpr float kEpsilon = 1e-5f;

struct Moments {
  float mean, scale;  ///< scale: 1 / standard deviation
};

/// Calls chunk(pointer, elements) over all that is normalised together, twice.
template <class Chunks>
TURNPOINT_INLINE Moments moments(double count, Chunks&& chunks) {
  double sum = 0, squares = 0;
  chunks([&](const float* x, std::int64_t n) {
    float part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = 0; i < n; ++i) part += x[i];
    sum += part;
  });
  const float mean = static_cast<float>(sum / count);
  chunks([&](const float* x, std::int64_t n) {
    float part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = 0; i < n; ++i) part += (x[i] - mean) * (x[i] - mean);
    squares += part;
  });
  return {mean, 1.0f / std::sqrt(static_cast<float>(squares / count) + kEpsilon)};
}

TURNPOINT_INLINE float largest(const float* x, std::int64_t n) {
  float most = x[0];
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;  // std::max is not vectorised
  return most;
}

}  // namespace

TURNPOINT_CLONES void elementwise(std::int64_t elements, const float* const* in, std::int64_t reads, float* const* out,
                                  std::int64_t writes) {
  constexpr std::int64_t kStrip = 1024;  // stays in the first cache between the operands
  float strip[kStrip];
  for (std::int64_t i = 0; i < elements; i += kStrip) {
    const std::int64_t n = std::min(kStrip, elements - i);
    std::fill(strip, strip + n, 1.0f);
    for (std::int64_t t = 0; t < reads; ++t)
      for (std::int64_t j = 0; j < n; ++j) strip[j] += in[t][i + j];
    for (std::int64_t t = 0; t < writes; ++t) std::memcpy(out[t] + i, strip, static_cast<std::size_t>(n) * 4);
  }
}

TURNPOINT_CLONES void softmax(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const float most = largest(x, columns);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < columns; ++i) {
      const float e = vector_exp(x[i] - most);
      y[i] = e;
      sum += e;
    }
    const float share = 1.0f / sum;
    for (std::int64_t i = 0; i < columns; ++i) y[i] *= share;
  }
}

TURNPOINT_CLONES void softmax_backward(std::int64_t rows, std::int64_t columns, const float* y, const float* dy,
                                       float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, y += columns, dy += columns, dx += columns) {
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < columns; ++i) dot += y[i] * dy[i];
    for (std::int64_t i = 0; i < columns; ++i) dx[i] = y[i] * (dy[i] - dot);
  }
}

TURNPOINT_CLONES void layer_norm(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const Moments m = moments(static_cast<double>(columns), [&](auto&& chunk) { chunk(x, columns); });
    for (std::int64_t i = 0; i < columns; ++i) y[i] = (x[i] - m.mean) * m.scale;
  }
}

TURNPOINT_CLONES void layer_norm_backward(std::int64_t rows, std::int64_t columns, const float* x, const float* dy,
                                          float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns, dy += columns, dx += columns) {
    const Moments m = moments(static_cast<double>(columns), [&](auto&& chunk) { chunk(x, columns); });
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (std::int64_t i = 0; i < columns; ++i) {
      sum += dy[i];
      dot += dy[i] * (x[i] - m.mean) * m.scale;
    }
    const float n = static_cast<float>(columns);
    for (std::int64_t i = 0; i < columns; ++i)
      dx[i] = m.scale * (dy[i] - sum / n - (x[i] - m.mean) * m.scale * dot / n);
  }
}

TURNPOINT_CLONES void batch_norm(std::int64_t n, std::int64_t c, std::int64_t plane, const float* x, float* y) {
  for (std::int64_t channel = 0; channel < c; ++channel) {
    const Moments m = moments(static_cast<double>(n * plane), [&](auto&& chunk) {
      for (std::int64_t i = 0; i < n; ++i) chunk(x + (i * c + channel) * plane, plane);
    });
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t base = (i * c + channel) * plane;
      for (std::int64_t j = base; j < base + plane; ++j) y[j] = (x[j] - m.mean) * m.scale;
    }
  }
}

TURNPOINT_CLONES void batch_norm_backward(std::int64_t n, std::int64_t c, std::int64_t plane, const float* x,
                                          const float* dy, float* dx) {
  const float count = static_cast<float>(n * plane);
  for (std::int64_t channel = 0; channel < c; ++channel) {
    const Moments m = moments(static_cast<double>(n * plane), [&](auto&& chunk) {
      for (std::int64_t i = 0; i < n; ++i) chunk(x + (i * c + channel) * plane, plane);
    });
    float sum = 0, dot = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t base = (i * c + channel) * plane;
#pragma omp simd reduction(+ : sum, dot)
      for (std::int64_t j = base; j < base + plane; ++j) {
        sum += dy[j];
        dot += dy[j] * (x[j] - m.mean) * m.scale;
      }
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t base = (i * c + channel) * plane;
      for (std::int64_t j = base; j < base + plane; ++j)
        dx[j] = m.scale * (dy[j] - sum / count - (x[j] - m.mean) * m.scale * dot / count);
    }
  }
}

PoolingWindows windows_of(const ProbeCall& call) {
  const std::int64_t h = call[1], w = call[2], p = call[3], q = call[4], r = call[5], s = call[6];
  PoolingWindows windows;
  windows.planes = call[0];
  windows.x_plane = h * w;
  for (std::int64_t i = 0; i < p; ++i)
    for (std::int64_t j = 0; j < q; ++j) {
      windows.first.push_back(static_cast<std::int64_t>(windows.offsets.size()));
      const std::int64_t y0 = i * call[7] - call[9], x0 = j * call[8] - call[10];
      for (std::int64_t a = std::max<std::int64_t>(0, y0); a < std::min(h, y0 + r); ++a)
        for (std::int64_t b = std::max<std::int64_t>(0, x0); b < std::min(w, x0 + s); ++b)
          windows.offsets.push_back(a * w + b);
    }
  windows.first.push_back(static_cast<std::int64_t>(windows.offsets.size()));
  return windows;
}

void embedding(std::int64_t columns, std::int64_t lookups, const float* table, const std::int64_t* index, float* y) {
  for (std::int64_t i = 0; i < lookups; ++i)
    std::memcpy(y + i * columns, table + index[i] * columns, static_cast<std::size_t>(columns) * sizeof(float));
}

void embedding_backward(std::int64_t columns, std::int64_t lookups, const std::int64_t* index, const float* dy,
                        float* dtable) {
  for (std::int64_t i = 0; i < lookups; ++i)
    for (std::int64_t c = 0; c < columns; ++c) dtable[index[i] * columns + c] += dy[i * columns + c];
}

TURNPOINT_CLONES float log_of_sum(const float* x, std::int64_t n) {
  const float most = largest(x, n);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += vector_exp(x[i] - most);
  return most + std::log(sum);
}

TURNPOINT_CLONES void scaled_softmax(const float* x, std::int64_t n, float shift, float scale, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = scale * vector_exp(x[i] - shift);
}

void cross_entropy(std::int64_t rows, std::int64_t columns, const float* x, const std::int64_t* label, float* loss) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns) loss[r] = log_of_sum(x, columns) - x[label[r]];
}

void cross_entropy_backward(std::int64_t rows, std::int64_t columns, const float* x, const std::int64_t* label,
                            float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns, dx += columns) {
    scaled_softmax(x, columns, log_of_sum(x, columns), 1, dx);
    dx[label[r]] -= 1.0f;
  }
}

TURNPOINT_CLONES void row_sum(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < columns; ++i) sum += x[i];
    y[r] = sum;
  }
}

TURNPOINT_CLONES void column_sum(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
  std::fill(y, y + columns, 0.0f);
  for (std::int64_t r = 0; r < rows; ++r, x += columns)
    for (std::int64_t i = 0; i < columns; ++i) y[i] += x[i];
}

TURNPOINT_CLONES void adam(std::int64_t elements, const AdamStep& step, const float* gradient, float* weight,
                           float* mean, float* variance) {
  const float correct1 = 1.0f - std::pow(step.beta1, static_cast<float>(step.step)),
              correct2 = 1.0f - std::pow(step.beta2, static_cast<float>(step.step));
  for (std::int64_t i = 0; i < elements; ++i) {
    const float g = gradient[i];
    mean[i] = step.beta1 * mean[i] + (1 - step.beta1) * g;
    variance[i] = step.beta2 * variance[i] + (1 - step.beta2) * g * g;
    weight[i] -= step.rate * (mean[i] / correct1) / (std::sqrt(variance[i] / correct2) + step.epsilon);
  }
}

}  // namespace turnpoint::probe
