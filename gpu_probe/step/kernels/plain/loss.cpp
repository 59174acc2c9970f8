// SPDX-License-Identifier: Apache-2.0
// The mean cross-entropy, whole or after its statistics (core/model/split_loss.h).
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/model/split_loss.h"
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step {

namespace {

template <class Real>
double log_of_sum(const Real* x, std::int64_t count) {
  const double largest = *std::max_element(x, x + count);
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += std::exp(x[i] - largest);
  return std::log(total) + largest;
}

template <class Real>
std::int64_t label_of(const Rows& r, const Block& labels, std::int64_t row) {
  return r.label(static_cast<double>(labels.as<Real>()[index_of(row)]));
}

template <class Real>
Expected<void> statistics_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  const std::int64_t blocks = blocks_of(at.output(0), out[0]->region).blocks, width = r.classes / blocks;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* x = in[0]->as<Real>() + row * r.classes;
    Real* numbers = out[0]->as<Real>() + row * blocks * kLossNumbers;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const double sum = log_of_sum(x + b * width, width);
      numbers[kLossNumbers * b] = static_cast<Real>(sum);
      numbers[kLossNumbers * b + 1] = static_cast<Real>(sum - static_cast<double>(numbers[kLossNumbers * b]));
      numbers[kLossNumbers * b + 2] = 0;
    }
    if (const std::int64_t label = label_of<Real>(r, *in[1], row); label >= 0)
      numbers[kLossNumbers * (label / width) + 2] = x[label];
  }
  return {};
}

template <class Real>
Expected<void> statistics_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[0] || !in[1]) return at.error("backward needs logits and labels");
  const Rows r = rows_of(at, in[0]->region);
  const std::int64_t blocks = blocks_of(at.output(0), gradient[0]->region).blocks, width = r.classes / blocks;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* dy = gradient[0]->as<Real>() + row * blocks * kLossNumbers;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const Real* x = in[0]->as<Real>() + row * r.classes + b * width;
      Real* d = result[0]->as<Real>() + row * r.classes + b * width;
      const double sum = log_of_sum(x, width), scale = static_cast<double>(dy[kLossNumbers * b]);
      for (std::int64_t i = 0; i < width; ++i) d[i] += static_cast<Real>(scale * std::exp(x[i] - sum));
    }
    if (const std::int64_t label = label_of<Real>(r, *in[1], row); label >= 0)
      result[0]->as<Real>()[row * r.classes + label] += dy[kLossNumbers * (label / width) + 2];
  }
  return {};
}

/// The logarithms of a row's blocks and of all of them; the label's logit.
struct RowOfBlocks {
  std::vector<double> each;
  double all = 0, label = 0;
};
template <class Real>
void read_row(const Real* numbers, RowOfBlocks& row) {
  row.label = 0;
  for (std::size_t b = 0; b < row.each.size(); ++b, numbers += kLossNumbers) {
    row.each[b] = static_cast<double>(numbers[0]) + static_cast<double>(numbers[1]);
    row.label += static_cast<double>(numbers[2]);
  }
  row.all = log_of_sum(row.each.data(), static_cast<std::int64_t>(row.each.size()));
}

template <class Real>
Expected<void> forward_of_blocks(const LocalOperator& at, const Block& statistics, Block& loss) {
  const LossBlocks b = blocks_of(at.input(0), statistics.region);
  RowOfBlocks row{std::vector<double>(index_of(b.blocks))};
  double total = 0;
  for (std::int64_t i = 0; i < b.rows; ++i) {
    read_row(statistics.as<Real>() + i * b.blocks * kLossNumbers, row);
    total += (row.all - row.label) / static_cast<double>(b.all_rows);
  }
  loss.as<Real>()[0] += static_cast<Real>(total);
  return {};
}

template <class Real>
Expected<void> backward_of_blocks(const LocalOperator& at, const Block& statistics, double gradient, Block& result) {
  const LossBlocks b = blocks_of(at.input(0), statistics.region);
  const double scale = gradient / static_cast<double>(b.all_rows);
  RowOfBlocks row{std::vector<double>(index_of(b.blocks))};
  for (std::int64_t i = 0; i < b.rows; ++i) {
    read_row(statistics.as<Real>() + i * b.blocks * kLossNumbers, row);
    Real* d = result.as<Real>() + i * b.blocks * kLossNumbers;
    for (const double each : row.each) {
      d[0] = d[1] = static_cast<Real>(scale * std::exp(each - row.all));
      d[2] = static_cast<Real>(-scale);
      d += kLossNumbers;
    }
  }
  return {};
}

template <class Real>
Expected<void> loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (reads_statistics(at.op())) return forward_of_blocks<Real>(at, *in[0], *out[0]);
  const Rows r = rows_of(at, in[0]->region);
  double total = 0;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* x = in[0]->as<Real>() + row * r.classes;
    total += (log_of_sum(x, r.classes) - x[label_of<Real>(r, *in[1], row)]) / static_cast<double>(r.all_rows);
  }
  out[0]->as<Real>()[0] += static_cast<Real>(total);
  return {};
}

template <class Real>
Expected<void> loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  const double dy = static_cast<double>(gradient[0]->as<Real>()[0]);
  if (reads_statistics(at.op()))
    return in[0] ? backward_of_blocks<Real>(at, *in[0], dy, *result[0]) : at.error("backward needs statistics");
  if (!in[0] || !in[1]) return at.error("backward needs logits and labels");
  const Rows r = rows_of(at, in[0]->region);
  const double scale = dy / static_cast<double>(r.all_rows);
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* x = in[0]->as<Real>() + row * r.classes;
    Real* d = result[0]->as<Real>() + row * r.classes;
    const double sum = log_of_sum(x, r.classes);
    for (std::int64_t c = 0; c < r.classes; ++c) d[c] += static_cast<Real>(scale * std::exp(x[c] - sum));
    d[label_of<Real>(r, *in[1], row)] -= static_cast<Real>(scale);
  }
  return {};
}

}  // namespace

const HostKernel HostKernels::loss_statistics{
    {statistics_forward<double>, statistics_backward<double>},
    {statistics_forward<float>, statistics_backward<float>, fast::statistics_forward, fast::statistics_backward}};
const HostKernel HostKernels::cross_entropy{
    {loss_forward<double>, loss_backward<double>},
    {loss_forward<float>, loss_backward<float>, fast::loss_forward, fast::loss_backward}};

}  // namespace turnpoint::step
