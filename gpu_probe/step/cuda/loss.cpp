// SPDX-License-Identifier: Apache-2.0
// The mean cross-entropy, whole or after its statistics (core/model/split_loss.h).
#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::in_cuda {

namespace {

Loss described(const Rows& r) {
  Loss loss{};
  loss.classes = r.classes;
  loss.first_class = r.first_class;
  loss.all_classes = r.all_classes;
  loss.blocks = r.blocks();
  loss.share = static_cast<float>(1 / static_cast<double>(r.all_rows));
  return loss;
}

/// A block of words is a row of its own.
Loss of_blocks(const Rows& r) {
  Loss loss = described(r);
  loss.classes = r.width;
  return loss;
}

Expected<void> statistics_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  Loss loss = of_blocks(r);
  loss.x = address(in[0]->data.data());
  loss.to = address(out[0]->data.data());
  launch_rows("loss_statistics_forward", r.rows * r.classes / r.width, r.width, loss);
  return {};
}

Expected<void> statistics_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[0]) return at.error("backward needs logits");
  const Rows r = rows_of(at, in[0]->region);
  Loss loss = of_blocks(r);
  loss.x = address(in[0]->data.data());
  loss.dy = address(gradient[0]->data.data());
  loss.to = address(result[0]->data.data());
  launch_rows("loss_statistics_backward", r.rows * r.classes / r.width, r.width, loss);
  return {};
}

Expected<void> loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  Array losses = Array::whole_scratch(static_cast<std::size_t>(r.rows));
  Loss loss = described(r);
  loss.x = address(in[0]->data.data());
  loss.labels = address(in[1]->data.data());
  loss.losses = address(losses.data());
  if (r.width > 0) {
    loss.statistics = address(in[2]->data.data());
    launch_rows("split_loss_forward", r.rows, r.blocks(), loss);
  } else {
    launch_rows("loss_forward", r.rows, r.classes, loss);
  }
  const Strides zero{0};
  sum_over({r.rows}, {zero, zero, zero, Strides{1}, zero}, SumOf::mean, {{}, {}, losses.data(), {}, {}},
           out[0]->data.data(), out[0]->data.size(), 1 / static_cast<double>(r.all_rows));
  return {};
}

Expected<void> loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  const bool whole = in.size() == 2;
  if (!in[1] || !in[whole ? 0 : 2]) return at.error("backward needs labels, and logits or their statistics");
  const Rows r = rows_of(at, result[0]->region);
  Loss loss = described(r);
  loss.labels = address(in[1]->data.data());
  loss.dy = address(gradient[0]->data.data());
  loss.to = address(result[0]->data.data());
  if (whole) {
    loss.x = address(in[0]->data.data());
    launch_rows("loss_backward", r.rows, r.classes, loss);
    return {};
  }
  loss.statistics = address(in[2]->data.data());
  if (result[2]) loss.to_statistics = address(result[2]->data.data());
  launch_rows("split_loss_backward", r.rows, r.classes, loss);
  return {};
}

}  // namespace

const Kernel GpuKernels::loss_statistics{statistics_forward, statistics_backward};
const Kernel GpuKernels::cross_entropy{loss_forward, loss_backward};

}  // namespace turnpoint::step::in_cuda
