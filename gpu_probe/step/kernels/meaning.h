// SPDX-License-Identifier: Apache-2.0
// What an operator means where the model leaves it open (kernels.h), in numbers that any kernel can be made of.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/hardware/probe_job.h"
#include "gpu_probe/step/kernels/functions.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

// --- elementwise functions ---

/// The share of elements that a mask sets to zero; the stream of its numbers.
inline constexpr double kDropped = 0.2;
inline constexpr std::uint64_t kMaskStream = 0xD50;

/// The function of an elementwise operator and what it may read in backward.
struct Call {
  std::unique_ptr<bool[]> inputs, wanted;
  Saved saved;
  Function function;

  explicit Call(const LocalOperator& at) {
    const Operator& op = at.op();
    const std::size_t n = op.inputs.size();
    inputs = std::make_unique<bool[]>(n);
    wanted = std::make_unique<bool[]>(n);
    for (std::size_t k = 0; k < n; ++k) {
      inputs[k] = op.inputs[k].saved;
      wanted[k] = at.input(k).requires_gradient && at.output(0).requires_gradient;
    }
    saved = {{inputs.get(), n}, {wanted.get(), n}, op.outputs[0].saved};
    function = function_of(op.detail, saved);
  }
};

// --- convolution, pooling ---

// One spatial dimension: position s of the small side and kernel position k meet at s x stride + k - pad of the large.
struct Spatial {
  std::int64_t small, large, kernel, stride, pad;
};

struct Geometry {
  std::int64_t batch, groups, out, in;  ///< out and in channels per group, all local
  std::vector<Spatial> spatial;
  bool transposed;
};
Geometry geometry(const LocalOperator& at, const Shape& x, const Shape& w, const Shape& y);
/// The sizes of a kernel for it, forward; of one or two spatial dimensions.
ProbeCall convolution_call(const Geometry& geometry);
/// Of a pooling: the maximum, else the mean.
bool takes_maximum(const LocalOperator& at);

// --- softmax, normalisation ---

/// Which loops run within a row of a softmax.
std::vector<bool> softmax_loop(const LocalOperator& at);
bool logarithmic(const LocalOperator& at);

inline constexpr double kEpsilon = 1e-5;
struct Norm {
  std::vector<bool> within;   ///< loops over which statistics are taken
  int scale = -1, bias = -1;  ///< inputs
  bool centred = true;
};
Norm norm_of(const LocalOperator& at);

// --- reductions, cross-entropy, concatenation ---

enum class Reduction { sum, mean, maximum, squares };
Reduction reduction_of(const LocalOperator& at);
double mean_factor(const LocalOperator& at);

/// Of a cross-entropy or its statistics: classes and rows that a block of logits holds, and those there are.
struct Rows {
  std::int64_t classes, rows, first_class, all_classes, all_rows;

  /// The label that a number stands for, among the classes that are here; -1: elsewhere.
  std::int64_t label(double number) const {
    const std::int64_t here = static_cast<std::int64_t>(std::abs(number)) % all_classes - first_class;
    return here >= 0 && here < classes ? here : -1;
  }
};
Rows rows_of(const LocalOperator& at, const Region& logits);

/// Statistics of a loss (core/model/split_loss.h): blocks of a row, as in the region, and rows; rows in all.
struct LossBlocks {
  std::int64_t blocks, rows, all_rows;
};
LossBlocks blocks_of(const Tensor& statistics, const Region& region);

// Where each operand lies in the result; the joined dimension is the one that no loop walks.
std::vector<Region> places(const LocalOperator& at, const Region& whole);

/// One output of a slice as loops; nullopt: it repeats elements of its input, and not each equally often.
struct Slice {
  Shape sizes;
  std::vector<std::int64_t> x, y;
  std::int64_t start = 0;  ///< offset in x
};
std::optional<Slice> slice_of(const LocalOperator& at, std::size_t k, const Region& x, const Region& y);

}  // namespace turnpoint::step
