// SPDX-License-Identifier: Apache-2.0
// Softmax and normalisations over rows, or over planes of channels, that lie side by side.
#include <algorithm>
#include <cmath>
#include <optional>

#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/cpu/kernels.h"
#include "gpu_probe/cpu/vector_math.h"
#include "gpu_probe/step/kernels/fast/fast.h"

namespace turnpoint::step::fast {

namespace {

constexpr float kEpsilon = 1e-5f;

bool one_share(const LocalOperator& at) {
  return std::all_of(at.loops.begin(), at.loops.end(), [](const LoopRange& loop) { return loop.shares == 1; });
}

struct Rows {
  std::int64_t rows = 1, columns = 1;
};

/// The trailing dimensions that are not split, as the columns of a matrix; nullopt: sets do not lie so.
std::optional<Rows> rows_of(const LocalOperator& at, const Region& region) {
  if (!one_share(at) || !walks_all(at, at.op().inputs[0])) return std::nullopt;
  const auto& walks = at.op().inputs[0].walks;
  Rows r;
  for (std::size_t d = walks.size(); d-- > 0;) {
    if (walks[d].empty()) continue;
    if (at.op().dims[walks[d].front()].splittable) break;
    r.columns *= region.extent[d];
  }
  r.rows = region.elements() / r.columns;
  return r;
}

bool logarithmic(const LocalOperator& at) { return at.op().detail.find("Log") != std::string::npos; }

TURNPOINT_CLONES void log_rows(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    float largest = x[0], total = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 0; c < columns; ++c) largest = x[c] > largest ? x[c] : largest;
#pragma omp simd reduction(+ : total)
    for (std::int64_t c = 0; c < columns; ++c) total += probe::vector_exp(x[c] - largest);
    const float shift = largest + std::log(total);
    for (std::int64_t c = 0; c < columns; ++c) y[c] = x[c] - shift;
  }
}
TURNPOINT_CLONES void log_rows_backward(std::int64_t rows, std::int64_t columns, const float* y, const float* dy,
                                        float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, y += columns, dy += columns, dx += columns) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t c = 0; c < columns; ++c) total += dy[c];
    for (std::int64_t c = 0; c < columns; ++c) dx[c] = dy[c] - probe::vector_exp(y[c]) * total;
  }
}

/// Whether softmax runs along the last dimension, whatever the others are.
std::optional<Rows> softmax_rows(const LocalOperator& at, const Region& region) {
  const auto& walks = at.op().inputs[0].walks;
  if (!one_share(at) || walks.empty()) return std::nullopt;
  for (std::size_t d = walks.size(); d-- > 0;) {
    if (walks[d].empty() || at.op().dims[walks[d].front()].splittable) {
      if (region.extent[d] != 1) return std::nullopt;
      continue;
    }
    if (walks[d].size() != 1) return std::nullopt;
    return Rows{region.elements() / region.extent[d], region.extent[d]};
  }
  return std::nullopt;
}

}  // namespace

bool softmax_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto r = softmax_rows(at, in[0]->region);
  if (!r || out.size() != 1) return false;
  (logarithmic(at) ? log_rows : probe::softmax)(r->rows, r->columns, in[0]->data.data(), out[0]->data.data());
  return true;
}

bool softmax_backward(const LocalOperator& at, Inputs, Inputs out, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0] || !out[0]) return false;
  const auto r = softmax_rows(at, out[0]->region);
  if (!r) return false;
  (logarithmic(at) ? log_rows_backward : probe::softmax_backward)(r->rows, r->columns, out[0]->data.data(),
                                                                  gradient[0]->data.data(), result[0]->data.data());
  return true;
}

// --- normalisations: y = (x - mean) inverse scale + bias
// ---------------------------------------------------------------

namespace {

struct Norm {
  int scale = -1, bias = -1;  ///< inputs
  bool centred = true;
};
Norm norm_of(const LocalOperator& at) {
  Norm norm;
  norm.centred = at.op().kind == OperatorKind::batch_normalisation || at.op().detail.find("RMS") == std::string::npos;
  for (std::size_t k = 1; k < at.op().inputs.size(); ++k) {
    if (at.input(k).role == TensorRole::buffer) continue;
    (norm.scale < 0 ? norm.scale : norm.bias) = static_cast<int>(k);
  }
  return norm;
}

struct Moments {
  float mean = 0, inverse = 1;
};
TURNPOINT_INLINE float sum_of(const float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
TURNPOINT_INLINE float squares_of(const float* x, std::int64_t n, float mean) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}
TURNPOINT_INLINE Moments row_moments(const float* x, std::int64_t n, bool centred) {
  const float mean = centred ? sum_of(x, n) / static_cast<float>(n) : 0.0f;
  return {mean, 1.0f / std::sqrt(squares_of(x, n, mean) / static_cast<float>(n) + kEpsilon)};
}

TURNPOINT_CLONES void norm_rows(const Rows& r, bool centred, const float* x, const float* scale, const float* bias,
                                float* y) {
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.columns, y += r.columns) {
    const Moments m = row_moments(x, r.columns, centred);
    if (scale)
      for (std::int64_t c = 0; c < r.columns; ++c) y[c] = (x[c] - m.mean) * m.inverse * scale[c];
    else
      for (std::int64_t c = 0; c < r.columns; ++c) y[c] = (x[c] - m.mean) * m.inverse;
    if (bias)
      for (std::int64_t c = 0; c < r.columns; ++c) y[c] += bias[c];
  }
}

TURNPOINT_CLONES void norm_rows_backward(const Rows& r, bool centred, const float* x, const float* scale,
                                         const float* dy, float* dx, float* dscale, float* dbias) {
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.columns, dy += r.columns) {
    const Moments m = row_moments(x, r.columns, centred);
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (std::int64_t c = 0; c < r.columns; ++c) {
      const float g = dy[c] * scale[c];
      sum += g;
      dot += g * (x[c] - m.mean) * m.inverse;
    }
    if (dscale)
      for (std::int64_t c = 0; c < r.columns; ++c) dscale[c] += dy[c] * (x[c] - m.mean) * m.inverse;
    if (dbias)
      for (std::int64_t c = 0; c < r.columns; ++c) dbias[c] += dy[c];
    if (!dx) continue;
    const float n = static_cast<float>(r.columns), mean = centred ? sum / n : 0.0f, along = dot / n;
    for (std::int64_t c = 0; c < r.columns; ++c)
      dx[c] = m.inverse * (dy[c] * scale[c] - mean - (x[c] - m.mean) * m.inverse * along);
    dx += r.columns;
  }
}

struct Planes {
  std::int64_t samples = 1, channels = 1, plane = 1;
};
TURNPOINT_CLONES Moments plane_moments(const Planes& p, const float* x) {
  const float count = static_cast<float>(p.samples * p.plane);
  double sum = 0, squares = 0;
  for (std::int64_t n = 0; n < p.samples; ++n) sum += double(sum_of(x + n * p.channels * p.plane, p.plane));
  const float mean = static_cast<float>(sum) / count;
  for (std::int64_t n = 0; n < p.samples; ++n)
    squares += double(squares_of(x + n * p.channels * p.plane, p.plane, mean));
  return {mean, 1.0f / std::sqrt(static_cast<float>(squares) / count + kEpsilon)};
}

TURNPOINT_CLONES void norm_planes(const Planes& p, const float* x, const float* scale, const float* bias, float* y) {
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const Moments m = plane_moments(p, x + c * p.plane);
    const float times = m.inverse * (scale ? scale[c] : 1.0f), plus = (bias ? bias[c] : 0.0f) - m.mean * times;
    for (std::int64_t n = 0; n < p.samples; ++n) {
      const std::int64_t at = (n * p.channels + c) * p.plane;
      for (std::int64_t i = at; i < at + p.plane; ++i) y[i] = x[i] * times + plus;
    }
  }
}

TURNPOINT_CLONES void norm_planes_backward(const Planes& p, const float* x, const float* scale, const float* dy,
                                           float* dx, float* dscale, float* dbias) {
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const Moments m = plane_moments(p, x + c * p.plane);
    double all = 0, all_dot = 0;
    for (std::int64_t n = 0; n < p.samples; ++n) {
      const std::int64_t at = (n * p.channels + c) * p.plane;
      float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
      for (std::int64_t i = at; i < at + p.plane; ++i) {
        sum += dy[i];
        dot += dy[i] * (x[i] - m.mean);
      }
      all += double(sum), all_dot += double(dot);
    }
    const float sum = static_cast<float>(all), dot = static_cast<float>(all_dot) * m.inverse;
    if (dscale) dscale[c] = dot;
    if (dbias) dbias[c] = sum;
    if (!dx) continue;
    const float count = static_cast<float>(p.samples * p.plane), times = m.inverse * scale[c], mean = sum / count,
                along = dot / count * m.inverse;
    for (std::int64_t n = 0; n < p.samples; ++n) {
      const std::int64_t at = (n * p.channels + c) * p.plane;
      for (std::int64_t i = at; i < at + p.plane; ++i) dx[i] = times * (dy[i] - mean - (x[i] - m.mean) * along);
    }
  }
}

/// Batch, channels, then all else; a set is a channel.
std::optional<Planes> planes_of(const LocalOperator& at, const Region& x) {
  if (at.op().kind != OperatorKind::batch_normalisation || !one_share(at) || x.extent.size() < 2) return std::nullopt;
  if (!walks_all(at, at.op().inputs[0])) return std::nullopt;
  return Planes{x.extent[0], x.extent[1], x.elements() / (x.extent[0] * x.extent[1])};
}

/// A vector of one number per column or channel.
bool is_vector(const Block* block, std::int64_t length) { return !block || block->region.elements() == length; }

}  // namespace

bool norm_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (out.size() != 1) return false;
  const Norm norm = norm_of(at);
  const auto operand = [&](int k) { return k < 0 ? nullptr : in[static_cast<std::size_t>(k)]; };
  const Block *scale = operand(norm.scale), *bias = operand(norm.bias);
  const float *s = scale ? scale->as<float>() : nullptr, *b = bias ? bias->as<float>() : nullptr;
  if (const auto planes = planes_of(at, in[0]->region); planes) {
    if (!is_vector(scale, planes->channels) || !is_vector(bias, planes->channels)) return false;
    norm_planes(*planes, in[0]->data.data(), s, b, out[0]->data.data());
    return true;
  }
  if (at.op().kind == OperatorKind::batch_normalisation) return false;
  const auto rows = rows_of(at, in[0]->region);
  if (!rows || !is_vector(scale, rows->columns) || !is_vector(bias, rows->columns)) return false;
  norm_rows(*rows, norm.centred, in[0]->data.data(), s, b, out[0]->data.data());
  return true;
}

bool norm_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !in[0]) return false;
  const Norm norm = norm_of(at);
  const auto block = [&](int k, auto& list) { return k < 0 ? nullptr : list[static_cast<std::size_t>(k)]; };
  const Block* scale = block(norm.scale, in);
  Block *dscale = block(norm.scale, result), *dbias = block(norm.bias, result);
  if (norm.scale >= 0 && !scale && result[0]) return false;
  for (std::size_t k = 1; k < result.size(); ++k)
    if (result[k] && static_cast<int>(k) != norm.scale && static_cast<int>(k) != norm.bias) return false;
  const auto planes = planes_of(at, in[0]->region);
  const auto rows =
      planes || at.op().kind == OperatorKind::batch_normalisation ? std::optional<Rows>() : rows_of(at, in[0]->region);
  if (!planes && !rows) return false;
  const std::int64_t length = planes ? planes->channels : rows->columns;
  if (!is_vector(scale, length) || !is_vector(dscale, length) || !is_vector(dbias, length)) return false;
  Array ones;
  if (!scale) {
    ones = Array::scratch(static_cast<std::size_t>(length));
    fill(ones.data(), 1, ones.size());
  }
  const auto data = [](Block* b) { return b ? b->as<float>() : nullptr; };
  const float *x = in[0]->data.data(), *dy = gradient[0]->data.data(), *s = scale ? scale->data.data() : ones.data();
  if (planes) {
    norm_planes_backward(*planes, x, s, dy, data(result[0]), data(dscale), data(dbias));
    return true;
  }
  for (Block* b : {dscale, dbias})
    if (b) b->data.clear();
  norm_rows_backward(*rows, norm.centred, x, s, dy, data(result[0]), data(dscale), data(dbias));
  return true;
}

}  // namespace turnpoint::step::fast
