// SPDX-License-Identifier: Apache-2.0
// The cross-entropy and its statistics over rows that lie side by side.

#include "core/model/split_loss.h"
#include "gpu_probe/cpu/kernels.h"
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::fast {

namespace {

using probe::log_of_sum, probe::scaled_softmax;

std::int64_t label_of(const Rows& r, const Block& labels, std::int64_t row) {
  return r.label(static_cast<double>(labels.as<float>()[index_of(row)]));
}

}  // namespace

bool statistics_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  const std::int64_t blocks = blocks_of(at.output(0), out[0]->region).blocks, width = r.classes / blocks;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const float* x = in[0]->as<float>() + row * r.classes;
    float* numbers = out[0]->as<float>() + row * blocks * kLossNumbers;
    for (std::int64_t b = 0; b < blocks; ++b) {
      numbers[kLossNumbers * b] = log_of_sum(x + b * width, width);
      numbers[kLossNumbers * b + 1] = numbers[kLossNumbers * b + 2] = 0;
    }
    if (const std::int64_t label = label_of(r, *in[1], row); label >= 0)
      numbers[kLossNumbers * (label / width) + 2] = x[label];
  }
  return true;
}

bool statistics_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0] || !in[0] || !in[1] || result[1]) return false;
  const Rows r = rows_of(at, in[0]->region);
  const std::int64_t blocks = blocks_of(at.output(0), gradient[0]->region).blocks, width = r.classes / blocks;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const float *x = in[0]->as<float>() + row * r.classes, *dy = gradient[0]->as<float>() + row * blocks * kLossNumbers;
    float* d = result[0]->as<float>() + row * r.classes;
    for (std::int64_t b = 0; b < blocks; ++b)
      scaled_softmax(x + b * width, width, log_of_sum(x + b * width, width), dy[kLossNumbers * b], d + b * width);
    if (const std::int64_t label = label_of(r, *in[1], row); label >= 0)
      d[label] += dy[kLossNumbers * (label / width) + 2];
  }
  return true;
}

// The loss after its statistics is a number a row and block: plain loops will do.
bool loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (reads_statistics(at.op())) return false;
  const Rows r = rows_of(at, in[0]->region);
  double total = 0;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const float* x = in[0]->as<float>() + row * r.classes;
    total += double(log_of_sum(x, r.classes) - x[label_of(r, *in[1], row)]);
  }
  out[0]->data.clear();
  out[0]->as<float>()[0] = static_cast<float>(total / static_cast<double>(r.all_rows));
  return true;
}

bool loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (reads_statistics(at.op()) || !gradient[0] || !result[0] || !in[0] || !in[1] || result[1]) return false;
  const Rows r = rows_of(at, in[0]->region);
  const float scale = static_cast<float>(double(gradient[0]->as<float>()[0]) / static_cast<double>(r.all_rows));
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const float* x = in[0]->as<float>() + row * r.classes;
    float* d = result[0]->as<float>() + row * r.classes;
    scaled_softmax(x, r.classes, log_of_sum(x, r.classes), scale, d);
    d[label_of(r, *in[1], row)] -= scale;
  }
  return true;
}

}  // namespace turnpoint::step::fast
