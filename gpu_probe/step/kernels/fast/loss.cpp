// SPDX-License-Identifier: Apache-2.0
// The cross-entropy and its statistics over rows that lie side by side.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/cpu/vector_math.h"
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::fast {

namespace {

TURNPOINT_CLONES float log_of_sum(const float* x, std::int64_t n) {
  float largest = x[0], total = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += probe::vector_exp(x[i] - largest);
  return largest + std::log(total);
}
TURNPOINT_CLONES void scaled_softmax(const float* x, std::int64_t n, float shift, float scale, float* d) {
  for (std::int64_t i = 0; i < n; ++i) d[i] = scale * probe::vector_exp(x[i] - shift);
}

std::int64_t label_of(const Rows& r, const Block& labels, std::int64_t row) {
  return r.label(static_cast<double>(labels.as<float>()[index_of(row)]));
}

/// Sets each of `of_blocks`; returns the logarithm of the whole row.
float log_of_blocks(const Block& statistics, std::int64_t row, std::vector<float>& of_blocks) {
  const std::size_t blocks = of_blocks.size();
  const float* pairs = statistics.as<float>() + index_of(row) * 2 * blocks;
  for (std::size_t b = 0; b < blocks; ++b) of_blocks[b] = pairs[2 * b] + pairs[2 * b + 1];
  return log_of_sum(of_blocks.data(), static_cast<std::int64_t>(blocks));
}

}  // namespace

bool statistics_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  float* pairs = out[0]->as<float>();
  for (std::int64_t block = 0; block < r.rows * r.classes / r.width; ++block) {
    pairs[2 * block] = log_of_sum(in[0]->as<float>() + block * r.width, r.width);
    pairs[2 * block + 1] = 0;
  }
  return true;
}

bool statistics_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0] || !in[0]) return false;
  const Rows r = rows_of(at, in[0]->region);
  for (std::int64_t block = 0; block < r.rows * r.classes / r.width; ++block) {
    const float* x = in[0]->as<float>() + block * r.width;
    scaled_softmax(x, r.width, log_of_sum(x, r.width), gradient[0]->as<float>()[2 * block],
                   result[0]->as<float>() + block * r.width);
  }
  return true;
}

bool loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  std::vector<float> of_blocks(index_of(r.blocks()));
  double total = 0;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const float* x = in[0]->as<float>() + row * r.classes;
    const std::int64_t label = label_of(r, *in[1], row);
    if (label >= 0)
      total += double((r.width > 0 ? log_of_blocks(*in[2], row, of_blocks) : log_of_sum(x, r.classes)) - x[label]);
  }
  out[0]->data.clear();
  out[0]->as<float>()[0] = static_cast<float>(total / static_cast<double>(r.all_rows));
  return true;
}

bool loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  const bool whole = in.size() == 2;
  if (!gradient[0] || !result[0] || !in[1] || !in[whole ? 0 : 2] || result[1]) return false;
  const Rows r = rows_of(at, result[0]->region);
  const float scale = static_cast<float>(double(gradient[0]->as<float>()[0]) / static_cast<double>(r.all_rows));
  std::vector<float> of_blocks(index_of(r.blocks()));
  if (!whole) result[0]->data.clear();
  if (!whole && result[2]) result[2]->data.clear();
  for (std::int64_t row = 0; row < r.rows; ++row) {
    float* d = result[0]->as<float>() + row * r.classes;
    const std::int64_t label = label_of(r, *in[1], row);
    if (whole) {
      const float* x = in[0]->as<float>() + row * r.classes;
      scaled_softmax(x, r.classes, log_of_sum(x, r.classes), scale, d);
    } else if (label >= 0 && result[2]) {
      const float sum = log_of_blocks(*in[2], row, of_blocks);
      float* pairs = result[2]->as<float>() + index_of(row) * 2 * of_blocks.size();
      for (std::size_t b = 0; b < of_blocks.size(); ++b)
        pairs[2 * b] = pairs[2 * b + 1] = scale * std::exp(of_blocks[b] - sum);
    }
    if (label >= 0) d[label] -= scale;
  }
  return true;
}

}  // namespace turnpoint::step::fast
