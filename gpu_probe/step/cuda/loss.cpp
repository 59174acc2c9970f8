// SPDX-License-Identifier: Apache-2.0
// The mean cross-entropy, whole or after its statistics (core/model/split_loss.h).
#include "core/model/split_loss.h"
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
  loss.share = static_cast<float>(1 / static_cast<double>(r.all_rows));
  return loss;
}

/// Of a thread block for each block of words; `statistics` is what forward makes, or its gradient.
Loss described(const LocalOperator& at, const Rows& r, const Block& statistics) {
  Loss loss = described(r);
  loss.blocks = blocks_of(at.output(0), statistics.region).blocks;
  loss.width = r.classes / loss.blocks;
  return loss;
}

Expected<void> statistics_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, in[0]->region);
  Loss loss = described(at, r, *out[0]);
  loss.x = address(in[0]->data.data());
  loss.labels = address(in[1]->data.data());
  loss.to = address(out[0]->data.data());
  launch_rows("loss_statistics_forward", r.rows * loss.blocks, loss.width, loss);
  return {};
}

Expected<void> statistics_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[0] || !in[1]) return at.error("backward needs logits and labels");
  const Rows r = rows_of(at, in[0]->region);
  Loss loss = described(at, r, *gradient[0]);
  loss.x = address(in[0]->data.data());
  loss.labels = address(in[1]->data.data());
  loss.dy = address(gradient[0]->data.data());
  loss.to = address(result[0]->data.data());
  launch_rows("loss_statistics_backward", r.rows * loss.blocks, loss.width, loss);
  return {};
}

void add_up(const Array& losses, std::int64_t rows, std::int64_t all_rows, Block& loss) {
  const Strides zero{0};
  sum_over({rows}, {zero, zero, zero, Strides{1}, zero}, SumOf::mean, {{}, {}, losses.data(), {}, {}}, loss.data.data(),
           loss.data.size(), 1 / static_cast<double>(all_rows));
}

Expected<void> loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  Loss loss{};
  loss.x = address(in[0]->data.data());
  if (reads_statistics(at.op())) {
    const LossBlocks b = blocks_of(at.input(0), in[0]->region);
    Array losses = Array::whole_scratch(static_cast<std::size_t>(b.rows));
    loss.blocks = b.blocks;
    loss.losses = address(losses.data());
    launch_rows("split_loss_forward", b.rows, b.blocks, loss);
    add_up(losses, b.rows, b.all_rows, *out[0]);
    return {};
  }
  const Rows r = rows_of(at, in[0]->region);
  Array losses = Array::whole_scratch(static_cast<std::size_t>(r.rows));
  loss = described(r);
  loss.x = address(in[0]->data.data());
  loss.labels = address(in[1]->data.data());
  loss.losses = address(losses.data());
  launch_rows("loss_forward", r.rows, r.classes, loss);
  add_up(losses, r.rows, r.all_rows, *out[0]);
  return {};
}

Expected<void> loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  Loss loss{};
  if (reads_statistics(at.op())) {
    if (!in[0]) return at.error("backward needs statistics");
    const LossBlocks b = blocks_of(at.input(0), in[0]->region);
    loss.blocks = b.blocks;
    loss.share = static_cast<float>(1 / static_cast<double>(b.all_rows));
    loss.x = address(in[0]->data.data());
    loss.dy = address(gradient[0]->data.data());
    loss.to = address(result[0]->data.data());
    launch_rows("split_loss_backward", b.rows, b.blocks, loss);
    return {};
  }
  if (!in[0] || !in[1]) return at.error("backward needs logits and labels");
  const Rows r = rows_of(at, in[0]->region);
  loss = described(r);
  loss.x = address(in[0]->data.data());
  loss.labels = address(in[1]->data.data());
  loss.dy = address(gradient[0]->data.data());
  loss.to = address(result[0]->data.data());
  launch_rows("loss_backward", r.rows, r.classes, loss);
  return {};
}

}  // namespace

const Kernel GpuKernels::loss_statistics{statistics_forward, statistics_backward};
const Kernel GpuKernels::cross_entropy{loss_forward, loss_backward};

}  // namespace turnpoint::step::in_cuda
