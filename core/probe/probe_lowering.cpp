// SPDX-License-Identifier: Apache-2.0
// One phase of an operator as kernels. Sizes follow from walks alone; a stride and a padding, which a model does not
// keep, from the sizes before and after.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "core/cost/local_sizes.h"
#include "core/model/operator_kind.h"
#include "core/model/split_loss.h"
#include "core/probe/probe_items.h"

namespace turnpoint {

namespace {

using Calls = std::vector<ProbeCall>;
using Local = std::span<const std::int64_t>;

ProbeCall call(CallKind kind, std::initializer_list<std::int64_t> sizes, std::int64_t count = 1) {
  ProbeCall made;
  made.kind = kind;
  std::copy(sizes.begin(), sizes.end(), made.size.begin());
  made.count = count;
  return made;
}

Error none(const Operator& op, std::string what) {
  return {ErrorCode::device, fmt::format("{}: {}", record_of(op.kind).words, what), {}, {}};
}

std::vector<std::int64_t> local_shape(const Model& model, const Operator& op, const Access& access, Local local) {
  const Tensor& tensor = model.tensors[access.tensor];
  std::vector<std::int64_t> shape(tensor.shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = local_size(op, tensor, access, d, local);
  return shape;
}

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t all = 1;
  for (const auto size : sizes) all *= size;
  return all;
}

std::int64_t local_elements(const Model& model, const Operator& op, const Access& access, Local local) {
  return product(local_shape(model, op, access, local));
}

std::vector<bool> walked(const Operator& op, const Access& access) {
  std::vector<bool> loops(op.dims.size(), false);
  for (const auto& walk : access.walks)
    for (const auto loop : walk) loops[loop] = true;
  return loops;
}

bool wants_gradient(const Model& model, const Operator& op, std::size_t input) {
  return input < op.inputs.size() && model.tensors[op.inputs[input].tensor].requires_gradient;
}

Expected<Calls> matmul(const Model& model, const Operator& op, Local local, bool backward) {
  const auto a = walked(op, op.inputs[0]), b = walked(op, op.inputs[1]), y = walked(op, op.outputs[0]);
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  for (std::size_t i = 0; i < op.dims.size(); ++i) {
    if (a[i] && b[i])
      (y[i] ? batch : k) *= local[i];
    else if (a[i] && y[i])
      m *= local[i];
    else if (b[i] && y[i])
      n *= local[i];
    else
      return none(op, "a sum over a dimension of one operand alone is no matrix product");
  }
  if (!backward) return Calls{call(CallKind::matmul, {batch, m, n, k, 0, 0})};
  Calls calls;
  if (wants_gradient(model, op, 0)) calls.push_back(call(CallKind::matmul, {batch, m, k, n, 0, 1}));
  if (wants_gradient(model, op, 1)) calls.push_back(call(CallKind::matmul, {batch, k, n, m, 1, 0}));
  if (wants_gradient(model, op, 2)) calls.push_back(call(CallKind::column_sum, {batch * m, n}));
  return calls;
}

/// How a window of `kernel` makes `out` of `in`: the fewest padding that does it.
struct Window {
  std::int64_t stride = 1, pad = 0, dilation = 1;
};
std::optional<Window> window_between(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  const std::int64_t guess = std::max<std::int64_t>(1, (in + out / 2) / out);
  for (std::int64_t dilation = 1; dilation <= 4; ++dilation)
    for (const std::int64_t stride : {guess, guess + 1, std::max<std::int64_t>(1, guess - 1)})
      for (std::int64_t pad = 0; pad <= (kernel - 1) * dilation; ++pad) {
        const std::int64_t extent = (kernel - 1) * dilation + 1;
        if (in + 2 * pad >= extent && (in + 2 * pad - extent) / stride + 1 == out) return Window{stride, pad, dilation};
      }
  return std::nullopt;
}

Expected<Calls> convolution(const Model& model, const Operator& op, Local local, bool backward) {
  auto large = local_shape(model, op, op.inputs[0], local), small = local_shape(model, op, op.outputs[0], local),
       weight = local_shape(model, op, op.inputs[1], local);
  const bool transposed = op.detail == "ConvTranspose";
  if (transposed) std::swap(large, small);
  if (large.size() > 4) return none(op, "three spatial dimensions");
  if (large.size() == 3) {  // one row
    large.insert(large.begin() + 2, 1);
    small.insert(small.begin() + 2, 1);
    weight.insert(weight.begin() + 2, 1);
  }
  std::int64_t groups = 1;
  for (std::size_t i = 0; i < op.dims.size(); ++i)
    if (op.dims[i].name == DimName::group) groups = local[i];
  const auto down = window_between(large[2], small[2], weight[2]),
             across = window_between(large[3], small[3], weight[3]);
  if (!down || !across) return none(op, "an output whose stride and padding cannot be told from its size");
  const auto of = [&](CallKind kind) {
    return call(kind, {large[0], large[1], large[2], large[3], small[1], weight[2], weight[3], small[2], small[3],
                       down->stride, across->stride, down->pad, across->pad, down->dilation, across->dilation, groups});
  };
  const CallKind forward = transposed ? CallKind::convolution_data : CallKind::convolution,
                 data = transposed ? CallKind::convolution : CallKind::convolution_data;
  if (!backward) return Calls{of(forward)};
  Calls calls;
  if (wants_gradient(model, op, 0)) calls.push_back(of(data));
  if (wants_gradient(model, op, 1)) calls.push_back(of(CallKind::convolution_filter));
  return calls;
}

/// An LSTM, GRU or RNN layer: the inputs' product for all steps at once, then a product and the gates per step.
Expected<Calls> recurrent(const Model& model, const Operator& op, Local local, bool backward) {
  if (model.tensors[op.inputs[0].tensor].shape.size() != 3) return none(op, "cells made of convolutions");
  std::int64_t time = 1, batch = 1, directions = 1, hidden = 1, features = 1, gates = 1;
  for (std::size_t i = 0; i < op.dims.size(); ++i) switch (op.dims[i].name) {
      case DimName::time: time = local[i]; break;
      case DimName::batch: batch = local[i]; break;
      case DimName::group: directions = local[i]; break;
      case DimName::out_channel: hidden = local[i]; break;
      case DimName::in_channel: features = local[i]; break;
      case DimName::gate: gates = local[i]; break;
      default: return none(op, "a dimension that no cell has");
    }
  const std::int64_t state = model.tensors[op.inputs[2].tensor].shape[2], all = gates * hidden,
                     steps = time * directions;
  if (!backward)
    return Calls{call(CallKind::matmul, {directions, time * batch, all, features, 0, 1}),
                 call(CallKind::matmul, {1, batch, all, state, 0, 1}, steps),
                 call(CallKind::elementwise, {batch * all, 2, 1}, steps),
                 call(CallKind::softmax, {batch, all}, steps)};  // gates are exponentials, too
  // Backward has the gates, and makes anew what a cell hands on.
  Calls calls{call(CallKind::softmax, {batch, hidden}, steps), call(CallKind::elementwise, {batch * all, 3, 1}, steps),
              call(CallKind::matmul, {1, batch, state, all, 0, 0}, steps)};
  if (wants_gradient(model, op, 2))
    calls.push_back(call(CallKind::matmul, {directions, all, state, time * batch, 1, 0}));
  if (wants_gradient(model, op, 1))
    calls.push_back(call(CallKind::matmul, {directions, all, features, time * batch, 1, 0}));
  if (wants_gradient(model, op, 0))
    calls.push_back(call(CallKind::matmul, {directions, time * batch, features, all, 0, 0}));
  return calls;
}

/// Rows, and the columns that are taken together: the dimensions that must not be split.
std::pair<std::int64_t, std::int64_t> rows_of(const Operator& op, Local local) {
  std::int64_t rows = 1, columns = 1;
  for (std::size_t i = 0; i < op.dims.size(); ++i) (op.dims[i].splittable ? rows : columns) *= local[i];
  return {rows, columns};
}

/// The statistics do what a whole loss does with its rows; the loss itself is left with a number a row and block.
Expected<Calls> halves_of_loss(const Model& model, const Operator& op, Local local, bool backward) {
  if (reads_statistics(op))
    return Calls{call(CallKind::elementwise, {local_elements(model, op, op.inputs.front(), local), 1, 1})};
  const std::int64_t words = local_shape(model, op, op.inputs[0], local).back(),
                     rows = local_elements(model, op, op.inputs[0], local) / words;
  return Calls{call(backward ? CallKind::cross_entropy_backward : CallKind::cross_entropy, {rows, words})};
}

Expected<Calls> by_rows(const Model& model, const Operator& op, Local local, bool backward) {
  if (op.kind == OperatorKind::loss_statistics || reads_statistics(op))
    return halves_of_loss(model, op, local, backward);
  const auto [rows, columns] = rows_of(op, local);
  if (op.kind == OperatorKind::softmax)
    return Calls{call(backward ? CallKind::softmax_backward : CallKind::softmax, {rows, columns})};
  if (op.kind == OperatorKind::cross_entropy)
    return Calls{call(backward ? CallKind::cross_entropy_backward : CallKind::cross_entropy, {rows, columns})};
  if (!backward) return Calls{call(CallKind::layer_norm, {rows, columns})};
  Calls calls{call(CallKind::layer_norm_backward, {rows, columns})};
  for (std::size_t i = 1; i < op.inputs.size(); ++i)
    if (wants_gradient(model, op, i)) calls.push_back(call(CallKind::column_sum, {rows, columns}));
  return calls;
}

Expected<Calls> pooling(const Model& model, const Operator& op, Local local, bool backward) {
  const auto x = local_shape(model, op, op.inputs[0], local), y = local_shape(model, op, op.outputs[0], local);
  if (x.size() != 4) return none(op, "other than two spatial dimensions");
  const auto whole = static_cast<double>(model.tensors[op.outputs[0].tensor].elements());
  const double elements = op.forward_flop / whole;
  std::int64_t r = x[2], s = x[3];
  if (y[2] != 1 || y[3] != 1) {
    r = s = std::llround(std::sqrt(elements));
    if (static_cast<double>(r * s) != elements) return none(op, "a window that is not square");
  }
  const auto down = window_between(x[2], y[2], r), across = window_between(x[3], y[3], s);
  if (!down || !across || down->dilation != 1 || across->dilation != 1)
    return none(op, "an output whose stride and padding cannot be told from its size");
  return Calls{call(backward ? CallKind::pooling_backward : CallKind::pooling,
                    {x[0] * x[1], x[2], x[3], y[2], y[3], r, s, down->stride, across->stride,
                     std::min(down->pad, r - 1), std::min(across->pad, s - 1)})};
}

Expected<Calls> elementwise(const Model& model, const Operator& op, Local local, bool backward) {
  const std::int64_t elements = local_elements(model, op, op.outputs[0], local);
  // An operand that is broadcast is read from the cache.
  const auto full = [&](const Access& access) { return 2 * local_elements(model, op, access, local) > elements; };
  std::int64_t reads = 0, writes = 1;
  if (!backward) {
    for (const auto& access : op.inputs) reads += full(access) ? 1 : 0;
  } else {
    reads = 1, writes = 0;
    for (const auto& access : op.inputs) {
      reads += access.saved && full(access) ? 1 : 0;
      writes += model.tensors[access.tensor].requires_gradient && full(access) ? 1 : 0;
    }
    reads += op.outputs[0].saved ? 1 : 0;
  }
  if (reads + writes > 16) return none(op, "more than 16 operands");
  return Calls{call(CallKind::elementwise, {elements, reads, std::max<std::int64_t>(1, writes)})};
}

Expected<Calls> embedding(const Model& model, const Operator& op, Local local, bool backward) {
  const auto table = local_shape(model, op, op.inputs[0], local);
  if (table.size() != 2) return none(op, "a table of other than two dimensions");
  return Calls{call(backward ? CallKind::embedding_backward : CallKind::embedding,
                    {table[0], table[1], local_elements(model, op, op.inputs[1], local)})};
}

Expected<Calls> reduction(const Model& model, const Operator& op, Local local, bool backward) {
  const std::int64_t in = local_elements(model, op, op.inputs[0], local),
                     out = local_elements(model, op, op.outputs[0], local);
  if (backward) return Calls{call(CallKind::elementwise, {in, op.inputs[0].saved ? 1 : 0, 1})};
  return Calls{call(CallKind::row_sum, {out, std::max<std::int64_t>(1, in / out)})};
}

}  // namespace

PhaseWork local_work(const Model& model, const Operator& op, Local local, Precision precision, bool backward) {
  double split = 1;
  for (std::size_t i = 0; i < op.dims.size(); ++i)
    split *= static_cast<double>(op.dims[i].size) / static_cast<double>(local[i]);
  double bytes = 0;
  const auto add = [&](const Access& access, bool output) {
    const Tensor& tensor = model.tensors[access.tensor];
    bytes += times_moved(op, access, tensor, output, backward) *
             static_cast<double>(local_elements(model, op, access, local)) * element_bytes(tensor, precision);
  };
  for (const auto& access : op.inputs) add(access, false);
  for (const auto& access : op.outputs) add(access, true);
  bytes *= backward ? op.backward_passes : op.forward_passes;
  PhaseWork work{(backward ? op.backward_flop : op.forward_flop) / split, bytes};
  work.launches = launches_of(op, local);
  return work;
}

Expected<Calls> probe_calls(const Model& model, const Operator& op, Local local, bool backward) {
  if (backward && op.backward_flop <= 0 && std::none_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
        return model.tensors[access.tensor].requires_gradient;
      }))
    return Calls{};
  switch (op.kind) {
    case OperatorKind::input:
    case OperatorKind::view: return Calls{};
    case OperatorKind::matmul: return matmul(model, op, local, backward);
    case OperatorKind::convolution: return convolution(model, op, local, backward);
    case OperatorKind::recurrent: return recurrent(model, op, local, backward);
    case OperatorKind::embedding: return embedding(model, op, local, backward);
    case OperatorKind::softmax:
    case OperatorKind::normalisation:
    case OperatorKind::loss_statistics:
    case OperatorKind::cross_entropy: return by_rows(model, op, local, backward);
    case OperatorKind::batch_normalisation: {
      const auto x = local_shape(model, op, op.inputs[0], local);
      if (x.size() < 2) return none(op, "fewer than two dimensions");
      return Calls{call(backward ? CallKind::batch_norm_backward : CallKind::batch_norm,
                        {x[0], x[1], product(std::span(x).subspan(2))})};
    }
    case OperatorKind::pooling: return pooling(model, op, local, backward);
    case OperatorKind::elementwise: return elementwise(model, op, local, backward);
    case OperatorKind::reduction: return reduction(model, op, local, backward);
    case OperatorKind::concat:
    case OperatorKind::slice: {
      std::int64_t elements = 0;
      for (const auto& access : op.outputs) elements += local_elements(model, op, access, local);
      return Calls{call(CallKind::copy, {elements})};
    }
    case OperatorKind::gather:
    case OperatorKind::attention:
    case OperatorKind::scan:
    case OperatorKind::opaque: break;
  }
  return none(op, fmt::format("'{}' has no kernel in the probe", op.detail));
}

}  // namespace turnpoint
