// SPDX-License-Identifier: Apache-2.0
// Softmax, layer and batch normalisation. Means and deviations are sums over sets of elements; each is one or more
// launches over the whole tensor, which serves sets of any size and form.
#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::in_cuda {

namespace {

/// Whether rows of these arrays can be kept in the registers of a block; an address of 0 is not read.
bool can_be_held(std::int64_t size, std::initializer_list<Place> arrays) {
  return size % kPack == 0 && size <= std::int64_t{kPack} * kHeld * kBlock &&
         std::all_of(arrays.begin(), arrays.end(), [](const Place& place) {
           return place.address == 0 || place.address % static_cast<u64>(kPack * place.element_bytes) == 0;
         });
}
i64 held(const Soft& soft, std::initializer_list<Place> arrays) {
  for (i64 l = 0; l < soft.rows.loops; ++l)
    if (soft.rows.stride[0][l] % kPack != 0) return 0;
  return soft.stride == 1 && can_be_held(soft.size, arrays) ? 1 : 0;
}

Expected<Soft> soft_of(const LocalOperator& at, const Block& block) {
  const auto within = softmax_loop(at);
  const Strides strides = at.strides(at.op().inputs[0], block);
  Strides sizes = at.sizes();
  Soft soft{};
  soft.size = 1;
  for (std::size_t l = 0; l < within.size(); ++l) {
    if (strides[l] == 0 && !within[l]) sizes[l] = 1;
    if (!within[l]) continue;
    soft.size = sizes[l];
    soft.stride = strides[l];
    sizes[l] = 1;
    if (at.loops[l].shares != 1) return at.error("a softmax whose rows are split");
  }
  soft.rows = walk_of<1>(sizes, {strides});
  soft.logarithm = logarithmic(at) ? 1 : 0;
  return soft;
}

void launch_soft(const char* kernel, const Soft& soft) {
  if (soft.rows.count <= 0) return;
  const int threads = threads_for(soft.held ? soft.size / kPack : soft.size);
  Device::get().launch(kernel, std::min<std::int64_t>(soft.rows.count, 1 << 20), 1, threads, 1, soft);
}

Expected<void> softmax_forward(const LocalOperator& at, Inputs in, Outputs out) {
  auto soft = soft_of(at, *in[0]);
  if (!soft) return soft.error();
  soft->y = address(in[0]->data.data());
  soft->to = address(out[0]->data.data());
  soft->held = held(*soft, {in[0]->data.data(), out[0]->data.data()});
  launch_soft("softmax_forward", *soft);
  return {};
}

Expected<void> softmax_backward(const LocalOperator& at, Inputs, Inputs out, Inputs gradient, Outputs result) {
  if (!result[0]) return {};
  if (!out[0]) return at.error("backward needs its output, which is not there");
  auto soft = soft_of(at, *out[0]);
  if (!soft) return soft.error();
  soft->y = address(out[0]->data.data());
  soft->dy = address(gradient[0]->data.data());
  soft->to = address(result[0]->data.data());
  soft->held = held(*soft, {out[0]->data.data(), gradient[0]->data.data(), result[0]->data.data()});
  launch_soft("softmax_backward", *soft);
  return {};
}

/// Loops in two parts: those that number the sets, then those within a set.
struct Sets {
  Strides sizes, x, set, scale, bias;
  std::int64_t count = 1, elements = 1;  ///< sets, elements of each
};
Sets sets_of(const LocalOperator& at, const Norm& norm, const Block& x, const Block* scale, const Block* bias) {
  const auto& op = at.op();
  const auto operand = [&](int k, const Block* block) {
    return k < 0 || !block ? none(at.loops.size()) : at.strides(op.inputs[static_cast<std::size_t>(k)], *block);
  };
  const Strides xs = at.strides(op.inputs[0], x), ss = operand(norm.scale, scale), bs = operand(norm.bias, bias);
  Sets sets;
  const auto part = [&](std::size_t l, std::int64_t size, std::int64_t times) {
    sets.sizes.push_back(size);
    sets.x.push_back(xs[l] * times);
    sets.scale.push_back(ss[l] * times);
    sets.bias.push_back(bs[l] * times);
  };
  for (std::size_t l = 0; l < at.loops.size(); ++l) {
    const LoopRange& loop = at.loops[l];
    const std::int64_t shares = norm.within[l] ? loop.shares : loop.size;
    part(l, shares, norm.within[l] ? loop.size / shares : 1);
    sets.count *= shares;
  }
  std::int64_t stride = sets.count;
  for (std::size_t l = 0; l < at.loops.size(); ++l) {
    stride /= sets.sizes[l];
    sets.set.push_back(stride);
  }
  for (std::size_t l = 0; l < at.loops.size(); ++l) {
    const LoopRange& loop = at.loops[l];
    part(l, norm.within[l] ? loop.size / loop.shares : 1, 1);
    sets.set.push_back(0);
    sets.elements *= sets.sizes.back();
  }
  return sets;
}

/// Whether sets are consecutive rows, along which scale and bias lie as well.
bool are_rows(const Sets& sets) {
  const auto walk = walk_of<4>(sets.sizes, {sets.x, sets.set, sets.scale, sets.bias});
  if (walk.loops != 2 || walk.stride[0][0] != 1 || walk.size[0] != sets.elements || walk.stride[1][0] != 0 ||
      walk.stride[0][1] != sets.elements || walk.stride[1][1] != 1)
    return false;
  for (const int operand : {2, 3})
    if (walk.stride[operand][1] != 0 || (walk.stride[operand][0] != 1 && walk.stride[operand][0] != 0)) return false;
  return true;
}
/// An operand that is there but not walked by the rows' loop is one number for all: no row of numbers.
bool is_row(const Block* block, const Sets& sets) {
  return !block || block->data.size() == static_cast<std::size_t>(sets.elements);
}
RowsOf rows_of(const Sets& sets, const Norm& norm, Place x, const Block* scale) {
  RowsOf rows{};
  rows.size = sets.elements;
  rows.x = address(x);
  if (scale) rows.scale = address(scale->data.data());
  rows.epsilon = static_cast<float>(kEpsilon);
  rows.centred = norm.centred ? 1 : 0;
  return rows;
}

void launch_norm(RowsOf& rows, std::int64_t count, std::initializer_list<Place> arrays) {
  rows.held = can_be_held(rows.size, arrays) ? 1 : 0;
  launch_rows("norm_rows", count, rows.held ? rows.size / kPack : rows.size, rows);
}

struct Statistics {
  Array mean, inverse;
};
Array room_for(const Sets& sets) { return Array::whole_scratch(static_cast<std::size_t>(sets.count)); }
Statistics statistics(const Sets& sets, const Norm& norm, Place x) {
  const auto count = static_cast<std::size_t>(sets.count);
  Statistics s{Array::whole_scratch(count), Array::whole_scratch(count)};
  const Strides zero = none(sets.sizes.size());
  const double share = 1 / static_cast<double>(sets.elements);
  if (norm.centred)
    sum_over(sets.sizes, {sets.set, sets.x, zero, zero, zero}, SumOf::a, {x, {}, {}, {}, {}}, s.mean.data(), count,
             share);
  else
    s.mean.clear();
  sum_over(sets.sizes, {sets.set, sets.x, zero, sets.set, zero}, SumOf::centred_squares, {x, {}, s.mean.data(), {}, {}},
           s.inverse.data(), count, share);
  Sums finish{};
  finish.of.outer.count = sets.count;
  finish.of.wide = address(s.inverse.data());
  finish.of.factor = static_cast<float>(kEpsilon);
  launch_each("deviations", sets.count, finish);
  return s;
}

const Block* pick(int k, Inputs in) { return k < 0 ? nullptr : in[static_cast<std::size_t>(k)]; }

Expected<void> norm_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Norm norm = norm_of(at);
  const Block *scale = pick(norm.scale, in), *bias = pick(norm.bias, in);
  const Sets sets = sets_of(at, norm, *in[0], scale, bias);
  if (are_rows(sets) && is_row(scale, sets) && is_row(bias, sets)) {
    RowsOf rows = rows_of(sets, norm, in[0]->data.data(), scale);
    if (bias) rows.bias = address(bias->data.data());
    rows.to = address(out[0]->data.data());
    launch_norm(rows, sets.count,
                {in[0]->data.data(), out[0]->data.data(), scale ? scale->data.data() : Place{},
                 bias ? bias->data.data() : Place{}});
    return {};
  }
  const Statistics s = statistics(sets, norm, in[0]->data.data());
  Normalise n{};
  n.walk = walk_of<4>(sets.sizes, {sets.x, sets.set, sets.scale, sets.bias});
  n.x = address(in[0]->data.data());
  n.m = address(s.mean.data()), n.d = address(s.inverse.data());
  if (scale) n.scale = address(scale->data.data());
  if (bias) n.bias = address(bias->data.data());
  n.to = address(out[0]->data.data());
  launch_each("normalise", n.walk.count, n);
  return {};
}

Expected<void> norm_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  const Norm norm = norm_of(at);
  if (!in[0]) return at.error("backward needs its input, which is not there");
  const Block* scale = pick(norm.scale, in);
  if (norm.scale >= 0 && !scale && result[0])
    return at.error("backward needs its scale, which the model does not save");
  Block* to_scale = norm.scale < 0 ? nullptr : result[static_cast<std::size_t>(norm.scale)];
  Block* to_bias = norm.bias < 0 ? nullptr : result[static_cast<std::size_t>(norm.bias)];
  const Sets sets = sets_of(at, norm, *in[0], scale ? scale : to_scale, to_bias);
  const Place x = in[0]->data.data(), dy = gradient[0]->data.data();
  const bool by_rows = are_rows(sets) && is_row(scale, sets);
  const Statistics s = by_rows ? Statistics{room_for(sets), room_for(sets)} : statistics(sets, norm, x);
  if (by_rows) {
    RowsOf rows = rows_of(sets, norm, x, scale);
    rows.dy = address(dy);
    rows.m = address(s.mean.data()), rows.d = address(s.inverse.data());
    if (result[0]) rows.to = address(result[0]->data.data());
    launch_norm(rows, sets.count,
                {x, dy, result[0] ? result[0]->data.data() : Place{}, scale ? scale->data.data() : Place{}});
  }
  const Strides zero = none(sets.sizes.size());
  const auto sum = [&](const Strides& to_strides, SumOf what, Place to, std::size_t size) {
    sum_over(sets.sizes, {to_strides, sets.x, sets.x, sets.set, sets.scale}, what,
             {dy, x, s.mean.data(), s.inverse.data(), scale ? scale->data.data() : Place{}}, to, size);
  };
  if (to_scale) sum(sets.scale, SumOf::normal, to_scale->data.data(), to_scale->data.size());
  if (to_bias) sum(sets.bias, SumOf::a, to_bias->data.data(), to_bias->data.size());
  if (!result[0] || by_rows) return {};
  const auto count = static_cast<std::size_t>(sets.count);
  Array sums = Array::whole_scratch(count), sums_x = Array::whole_scratch(count);
  sum(sets.set, scale ? SumOf::scaled : SumOf::a, sums.data(), count);
  sum(sets.set, scale ? SumOf::scaled_normal : SumOf::normal, sums_x.data(), count);
  Normalise n{};
  n.walk = walk_of<4>(sets.sizes, {sets.x, sets.set, sets.scale, zero});
  n.x = address(x), n.dy = address(dy);
  n.m = address(s.mean.data()), n.d = address(s.inverse.data());
  n.sum = address(sums.data()), n.sum_x = address(sums_x.data());
  if (scale) n.scale = address(scale->data.data());
  n.to = address(result[0]->data.data());
  n.share = static_cast<float>(1 / static_cast<double>(sets.elements));
  n.centred = norm.centred ? 1 : 0;
  launch_each("normalise_backward", n.walk.count, n);
  return {};
}

}  // namespace

const Kernel GpuKernels::softmax{softmax_forward, softmax_backward};
const Kernel GpuKernels::normalisation{norm_forward, norm_backward};
const Kernel GpuKernels::batch_normalisation{norm_forward, norm_backward};

}  // namespace turnpoint::step::in_cuda
