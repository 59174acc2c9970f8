// SPDX-License-Identifier: Apache-2.0
// What each kind of operator computes on one rank's blocks, forward and backward: plain loops here, faster
// means of the timed steps in fast/, kernels of a device in step/cuda.
//
// The model says how an operator's tensors walk its loop dimensions, which is all a planner needs, and a little less
// than arithmetic needs. Where something is missing, a canonical meaning is chosen here, always one that reads in
// backward nothing but what the model says is saved:
//   convolution  stride ceil((input - kernel + 1) / output), zero padding, the larger half of what is missing in front;
//                no dilation
//   pooling      window o covers [floor(o H / O), ceil((o + 1) H / O)); maximum where the input is saved and the name
//                says so, else average
//   elementwise  by name (functions.cpp); other names: a smooth function of the kind that the saved tensors allow
//   normalisation over the trailing dimensions that cannot be split; softmax over the last such dimension
//   batch normalisation with the statistics of the rank's own share of the batch, as the model has it; running
//                statistics are not read. The unpartitioned step takes statistics over the same shares.
//   product      of a table that no loop walks (T5's numbers by distance), position p of the result's last dimension
//                takes number p modulo their count; two operands that walk a part of the summed loop each (keys of a
//                head, and what all heads share) hold it one after the other
//   slice        consecutive parts in the order of the readers; a larger output repeats elements (floor(j a / b))
//   gather       Dispatch: per expert the tokens with the largest routing weights, the weight added to each channel;
//                Combine: expert e's slot j goes to token (e slots + j) mod sequence, as y + 0.1 y^2
//   opaque       a fixed quadratic function of all it can see
// Integer data: an index is taken modulo the rows it looks up.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "core/base/expected.h"
#include "core/model/model.h"
#include "gpu_probe/step/values/block.h"
#include "gpu_probe/step/values/options.h"

namespace turnpoint::step {

struct LoopRange {
  std::int64_t offset = 0, size = 1, whole = 1;
  /// Statistics over this loop are taken over so many equal shares of it: 1 on a rank, as many as the plan makes of it
  /// in the unpartitioned step.
  std::int64_t shares = 1;
  friend bool operator==(const LoopRange&, const LoopRange&) = default;
};

/// What a single time step of a recurrent operator, in one direction, takes from the steps around it; [sample][unit].
/// Arrays are replaced, never written to.
struct CellState {
  Array hidden, cell;                    ///< as the step before left them; forward leaves its own cell (LSTM)
  Array hidden_gradient, cell_gradient;  ///< from the step behind; backward leaves those for the step before
};

/// What backward of a recurrent operator's input hands to the gradient of its weights, where the two are tasks of their
/// own: gradients at the arguments of the gates, [direction][row of the input][unit][gate]; of a GRU behind it those at
/// the new gate's as the state's product counts in it, [direction][row][unit].
struct GateGradients {
  Array numbers;
  bool made =
      false;  ///< false: backward leaves them here; true: gradients of weights are made of them and nothing else
};

/// The part of an operator that one rank carries out.
struct LocalOperator {
  const Model* model = nullptr;
  OperatorId id;
  std::vector<LoopRange> loops;
  /// Of all ranks that hold summands of one output, this one adds what must be added once (a bias). Its gradient is
  /// made by all of them, whole.
  bool adds_once = true;
  /// Statistics are taken over each of these parts by itself, instead of over shares of loops. Null: over shares.
  const LoopParts* parts = nullptr;
  std::uint64_t seed = 0;
  /// Where the hidden units of a recurrent operator are split: gathers the state of all units, or sums a gradient over
  /// all and returns the own part, at every time step. Not set: not split.
  std::function<Expected<void>(ConstNumbers mine, std::int64_t rows, Numbers all)> gather_units;
  std::function<Expected<void>(ConstNumbers all, std::int64_t rows, Numbers own)> scatter_units;
  /// Of a recurrent operator: the blocks are those of a single time step, in one direction, all units. Gradients of
  /// weights are then added to what is there. Null: all time steps.
  CellState* state = nullptr;
  GateGradients* gates = nullptr;  ///< of a recurrent operator; null: backward is one task

  const Operator& op() const { return model->operators[id]; }
  const Tensor& input(std::size_t k) const { return model->tensors[op().inputs[k].tensor]; }
  const Tensor& output(std::size_t k) const { return model->tensors[op().outputs[k].tensor]; }
  /// Element strides of a block per loop dimension; 0 where the tensor does not walk it.
  std::vector<std::int64_t> strides(const Access& access, const Block& block) const;
  std::vector<std::int64_t> strides(const Access& access, const Region& region) const;
  std::vector<std::int64_t> sizes() const;
  Error error(const std::string& what) const;
};

using Inputs = std::span<const Block* const>;  ///< null: not there
using Outputs = std::span<Block* const>;       ///< null: not wanted; else zero when handed in

struct Kernel {
  Expected<void> (*forward)(const LocalOperator& at, Inputs in, Outputs out);
  /// `in`, `out`: what the model saves; `gradient`: of the outputs, null where nobody has one; `result`: of the inputs.
  Expected<void> (*backward)(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
  /// The same by faster means; results are not initialised. False, and nothing of worth is written: not for this case.
  /// Null: there is none.
  bool (*fast_forward)(const LocalOperator& at, Inputs in, Outputs out) = nullptr;
  bool (*fast_backward)(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) = nullptr;
};

/// Calls `visit(index, offsets)` for every combination of loop indices; offsets[k] = sum of index x strides[k].
template <std::size_t K, class Visit>
void for_each(const std::vector<std::int64_t>& sizes, const std::array<std::vector<std::int64_t>, K>& strides,
              const Visit& visit) {
  const std::size_t n = sizes.size();
  std::vector<std::int64_t> index(n, 0);
  std::array<std::int64_t, K> at{};
  for (const auto size : sizes)
    if (size == 0) return;
  // The innermost loop by itself, where nearly all of the time goes.
  const std::size_t outer = n > 0 ? n - 1 : 0;
  const std::int64_t count = n > 0 ? sizes[outer] : 1;
  std::array<std::int64_t, K> step{};
  for (std::size_t k = 0; k < K && n > 0; ++k) step[k] = strides[k][outer];
  for (;;) {
    std::array<std::int64_t, K> inner = at;
    for (std::int64_t i = 0; i < count; ++i) {
      if (n > 0) index[outer] = i;
      visit(std::as_const(index), std::as_const(inner));
      for (std::size_t k = 0; k < K; ++k) inner[k] += step[k];
    }
    std::size_t l = outer;
    for (; l > 0; --l) {
      if (++index[l - 1] < sizes[l - 1]) {
        for (std::size_t k = 0; k < K; ++k) at[k] += strides[k][l - 1];
        break;
      }
      index[l - 1] = 0;
      for (std::size_t k = 0; k < K; ++k) at[k] -= strides[k][l - 1] * (sizes[l - 1] - 1);
    }
    if (l == 0) return;
  }
}

/// Where output k of a slice starts in its input, per dimension.
Shape slice_start(const LocalOperator& at, std::size_t k);
/// Whether a view leaves every element of its block where it is.
bool keeps_order(const LocalOperator& at, const Region& x, const Region& y);
/// Whether each tensor dimension larger than one is walked.
bool walks_all(const LocalOperator& at, const Access& access);
inline std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Fused attention, the same on every device: it asks for the kernels of what it stands for.
Expected<void> attention_forward(const LocalOperator& at, Inputs in, Outputs out);
Expected<void> attention_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);

/// Of a host: plain loops in both number types, and in float what is faster.
struct HostKernel {
  Kernel in_double, in_float;
};
/// Each in its file of plain/.
struct HostKernels {
  static const HostKernel contraction, convolution, elementwise, softmax, normalisation, batch_normalisation, pooling,
      reduction, view, concat, slice, embedding, loss_statistics, cross_entropy, recurrent, dispatch, combine, opaque,
      attention;
};

}  // namespace turnpoint::step
