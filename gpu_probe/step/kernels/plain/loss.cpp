// SPDX-License-Identifier: Apache-2.0
// The mean cross-entropy, whole or after its statistics (core/model/split_loss.h).
#include <algorithm>
#include <cmath>
#include <vector>

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

/// Of a row's blocks; `of_blocks` takes the logarithm of each.
template <class Real>
double log_of_blocks(const Block& statistics, std::int64_t row, std::vector<double>& of_blocks) {
  const std::size_t blocks = of_blocks.size();
  const Real* pairs = statistics.as<Real>() + index_of(row) * 2 * blocks;
  for (std::size_t b = 0; b < blocks; ++b)
    of_blocks[b] = static_cast<double>(pairs[2 * b]) + static_cast<double>(pairs[2 * b + 1]);
  return log_of_sum(of_blocks.data(), static_cast<std::int64_t>(blocks));
}

template <class Real>
Expected<void> statistics_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  Real* pairs = out[0]->as<Real>();
  for (std::int64_t block = 0; block < r.rows * r.classes / r.width; ++block) {
    const double sum = log_of_sum<Real>(in[0]->as<Real>() + block * r.width, r.width);
    pairs[2 * block] = static_cast<Real>(sum);
    pairs[2 * block + 1] = static_cast<Real>(sum - static_cast<double>(pairs[2 * block]));
  }
  return {};
}

template <class Real>
Expected<void> statistics_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[0]) return at.error("backward needs logits");
  const Rows r = rows_of(at, in[0]->region);
  for (std::int64_t block = 0; block < r.rows * r.classes / r.width; ++block) {
    const Real* x = in[0]->as<Real>() + block * r.width;
    Real* d = result[0]->as<Real>() + block * r.width;
    const double sum = log_of_sum(x, r.width), dy = static_cast<double>(gradient[0]->as<Real>()[2 * block]);
    for (std::int64_t i = 0; i < r.width; ++i) d[i] += static_cast<Real>(dy * std::exp(x[i] - sum));
  }
  return {};
}

template <class Real>
Expected<void> loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  std::vector<double> of_blocks(index_of(r.blocks()));
  double total = 0;
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* x = in[0]->as<Real>() + row * r.classes;
    const std::int64_t label = label_of<Real>(r, *in[1], row);
    if (label < 0) continue;
    const double sum = r.width > 0 ? log_of_blocks<Real>(*in[2], row, of_blocks) : log_of_sum(x, r.classes);
    total += (sum - x[label]) / static_cast<double>(r.all_rows);
  }
  out[0]->as<Real>()[0] += static_cast<Real>(total);
  return {};
}

template <class Real>
Expected<void> loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  const bool whole = in.size() == 2;
  if (!in[1] || !in[whole ? 0 : 2]) return at.error("backward needs labels, and logits or their statistics");
  const Rows r = rows_of(at, result[0]->region);
  const double scale = static_cast<double>(gradient[0]->as<Real>()[0]) / static_cast<double>(r.all_rows);
  std::vector<double> of_blocks(index_of(r.blocks()));
  for (std::int64_t row = 0; row < r.rows; ++row) {
    Real* d = result[0]->as<Real>() + row * r.classes;
    const std::int64_t label = label_of<Real>(r, *in[1], row);
    if (whole) {
      const Real* x = in[0]->as<Real>() + row * r.classes;
      const double sum = log_of_sum(x, r.classes);
      for (std::int64_t c = 0; c < r.classes; ++c) d[c] += static_cast<Real>(scale * std::exp(x[c] - sum));
    } else if (label >= 0 && result[2]) {  // of all devices with a part of the words one has the label
      const double sum = log_of_blocks<Real>(*in[2], row, of_blocks);
      Real* pairs = result[2]->as<Real>() + index_of(row) * 2 * of_blocks.size();
      for (std::size_t b = 0; b < of_blocks.size(); ++b)
        for (const std::size_t k : {2 * b, 2 * b + 1})
          pairs[k] += static_cast<Real>(scale * std::exp(of_blocks[b] - sum));
    }
    if (label >= 0) d[label] -= static_cast<Real>(scale);
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
