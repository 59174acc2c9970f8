// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/walk.h"

#include <algorithm>
#include <optional>

namespace turnpoint::step::in_cuda {

namespace {

/// Loops that the result walks, and those that are summed.
template <std::size_t kArrays>
Reduce<static_cast<int>(kArrays)> reduce_of(const Strides& sizes, const std::array<Strides, kArrays>& strides) {
  Strides outer_sizes, inner_sizes;
  std::array<Strides, kArrays> outer, inner;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    const bool walked = strides[0][l] != 0;
    (walked ? outer_sizes : inner_sizes).push_back(sizes[l]);
    for (std::size_t a = 0; a < kArrays; ++a) (walked ? outer : inner)[a].push_back(strides[a][l]);
  }
  Reduce<static_cast<int>(kArrays)> reduce{};
  reduce.outer = walk_of<kArrays>(outer_sizes, outer);
  reduce.inner = walk_of<kArrays>(inner_sizes, inner);
  reduce.factor = 1;
  return reduce;
}

/// Rows where what is summed lies together, columns where results do; enough blocks to fill the device.
template <int kArrays, class Arguments>
void launch_sum(const char* rows, const char* columns, Reduce<kArrays>& reduce, Arguments& arguments, Place to,
                std::size_t size) {
  if (reduce.outer.count <= 0 || size == 0) return;
  const std::int64_t wanted = Device::get().gpu.multiprocessors * 8;
  const bool together = reduce.inner.loops > 0 && reduce.inner.stride[1][0] == 1;
  const bool down = !together && reduce.outer.loops > 0 && reduce.outer.stride[1][0] == 1 && reduce.inner.count > 1;
  const int block = down ? kColumns : threads_for(reduce.inner.count);
  const std::int64_t blocks =
      down ? (reduce.outer.count + kColumns - 1) / kColumns : std::min<std::int64_t>(reduce.outer.count, 1 << 20);
  const std::int64_t piece = down ? 4 * kColumnRows : 4 * block;
  const std::int64_t pieces = std::clamp<std::int64_t>(
      (wanted + blocks - 1) / blocks, 1, std::min<std::int64_t>(65535, (reduce.inner.count + piece - 1) / piece));
  std::optional<RoomForSums> shared;
  if (pieces > 1)
    reduce.wide = address(shared.emplace(to, size).data());
  else if (reduce.outer.count < static_cast<std::int64_t>(size))
    fill(to, 0, size);
  if (pieces == 1 && to.element_bytes == sizeof(float)) reduce.wide = address(to);
  if (!reduce.wide) reduce.to = address(to);
  reduce.add = pieces > 1 ? 1 : 0;
  Device::get().launch(down ? columns : rows, blocks, pieces, block, down ? kColumnRows : 1, arguments);
}

}  // namespace

RoomForSums::RoomForSums(Place to, std::size_t size) : to_(to), sums_(to), size_(size) {
  if (to.element_bytes < static_cast<int>(sizeof(float))) {
    room_ = Array::whole_scratch(size);
    sums_ = room_.data();
  }
  fill(sums_, 0, size);
}
RoomForSums::~RoomForSums() {
  if (sums_ != to_) copy(sums_, to_, size_);
}

void move_strided(const Strides& sizes, Place from, const Strides& from_strides, Place to, const Strides& to_strides,
                  bool add) {
  Move move{};
  move.walk = walk_of<2>(sizes, {to_strides, from_strides});
  if (from.element_bytes == kept_bytes())
    move.from = address(from);
  else
    move.wide_from = address(from);
  if (to.element_bytes == kept_bytes())
    move.to = address(to);
  else
    move.wide_to = address(to);
  move.add = add ? 1 : 0;
  const bool one_run =
      move.walk.loops == 0 || (move.walk.loops == 1 && move.walk.stride[0][0] == 1 && move.walk.stride[1][0] == 1);
  if (one_run && !add && from.element_bytes == to.element_bytes)
    return copy(from, to, static_cast<std::size_t>(move.walk.count));
  move.packs = in_packs<2>(move.walk, std::array{Walked{0, to}, Walked{1, from}}) ? 1 : 0;
  launch_each("move", move.walk.count, move);
}

void sum_over(const Strides& sizes, const std::array<Strides, 5>& strides, SumOf what, const SumArrays& arrays,
              Place to, std::size_t size, double factor) {
  Sums sums{};
  sums.of = reduce_of<5>(sizes, strides);
  sums.of.factor = static_cast<float>(factor);
  sums.a = address(arrays.a), sums.b = address(arrays.b), sums.m = address(arrays.mean),
  sums.d = address(arrays.inverse), sums.s = address(arrays.scale);
  sums.what = static_cast<i64>(what);
  launch_sum("sums_rows", "sums_columns", sums.of, sums, to, size);
}

void sum_elementwise(const Strides& sizes, const std::array<Strides, 8>& strides, const Elementwise& e, Place to,
                     std::size_t size) {
  ElementwiseSums sums{};
  sums.of = reduce_of<8>(sizes, strides);
  sums.e = e;
  launch_sum("elementwise_sums_rows", "elementwise_sums_columns", sums.of, sums, to, size);
}

void largest_over(const Strides& sizes, const Strides& x_strides, const Strides& y_strides, Place x, Place dy, Place to,
                  std::size_t size) {
  Sums sums{};
  const Strides zero = none(sizes.size());
  sums.of = reduce_of<5>(sizes, {y_strides, x_strides, zero, zero, zero});
  sums.a = address(x), sums.b = address(dy);
  sums.what = dy.address == 0 ? 0 : 1;
  sums.of.to = address(to);
  fill(to, 0, size);
  launch_each("largest", sums.of.outer.count, sums);
}

bool contract(const Strides& sizes, Place a, const Strides& a_strides, Place b, const Strides& b_strides, Place y,
              const Strides& y_strides, std::size_t y_size, Place bias, const Strides& bias_strides) {
  const auto indices = indices_of(sizes, a_strides, b_strides, y_strides);
  if (!indices) {
    const Strides zero = none(sizes.size());
    sum_over(sizes, {y_strides, a_strides, b_strides, zero, zero}, SumOf::products, {a, b, {}, {}, {}}, y, y_size);
    return false;
  }
  const auto& [batch, m, n, k] = *indices;
  // As many of the batch's loops as lie at even distances in all three are one call.
  Index called, looped = batch;
  while (!looped.loops.empty()) {
    Index more = called;
    more.loops.insert(more.loops.begin(), looped.loops.back());
    more.size *= sizes[looped.loops.back()];
    if (!stride_of(more, sizes, a_strides) || !stride_of(more, sizes, b_strides) || !stride_of(more, sizes, y_strides))
      break;
    called = std::move(more);
    looped.size /= sizes[looped.loops.back()];
    looped.loops.pop_back();
  }
  struct Operand {
    std::optional<Matrix> matrix;
    Packing packing;
    Array room;
    std::int64_t stride = 0;
    Strides offsets;
  };
  const auto operand = [&](const Index& rows, const Index& columns, const Strides& strides) {
    Operand one;
    one.matrix = as_matrix(rows, columns, sizes, strides);
    one.stride = *stride_of(called, sizes, strides);
    one.offsets = offsets_of(looped, sizes, strides);
    if (one.matrix) return one;
    one.packing.add(called, sizes, strides, rows.size * columns.size);
    one.packing.add(rows, sizes, strides, columns.size);
    one.packing.add(columns, sizes, strides, 1);
    one.room = Array::scratch(static_cast<std::size_t>(called.size * rows.size * columns.size));
    one.stride = rows.size * columns.size;
    return one;
  };
  const Operand left = operand(m, k, a_strides), right = operand(k, n, b_strides), result = operand(m, n, y_strides);
  const Matrix lm = left.matrix.value_or(Matrix{false, k.size}), rm = right.matrix.value_or(Matrix{false, n.size}),
               ym = result.matrix.value_or(Matrix{false, n.size});
  probe::cuda::LtProduct product;
  product.batch = called.size;
  product.k = k.size;
  product.leading_c = ym.leading;
  product.stride_c = result.stride;
  if (ym.transposed) {  // the product of the transposes the other way round
    product.m = n.size, product.n = m.size;
    product.transpose_a = !rm.transposed, product.transpose_b = !lm.transposed;
    product.leading_a = rm.leading, product.leading_b = lm.leading;
    product.stride_a = right.stride, product.stride_b = left.stride;
  } else {
    product.m = m.size, product.n = n.size;
    product.transpose_a = lm.transposed, product.transpose_b = rm.transposed;
    product.leading_a = lm.leading, product.leading_b = rm.leading;
    product.stride_a = left.stride, product.stride_b = right.stride;
  }
  // A column's number is the same in every row and product; the library reads it 16 bytes at a time.
  bool along = bias.address != 0 && bias.address % 16 == 0 && !ym.transposed && n.size > 1 &&
               stride_of(n, sizes, bias_strides) == 1;
  for (const Index* other : {&batch, &m})
    for (const auto l : other->loops) along = along && bias_strides[l] == 0;
  const Place added = along ? bias : Place{};
  for (std::size_t i = 0; i < left.offsets.size(); ++i) {
    const auto place = [&](const Operand& one, Place whole) {
      if (one.matrix) return whole + one.offsets[i];
      move_strided(one.packing.sizes, whole + one.offsets[i], one.packing.from, one.room.data(), one.packing.to);
      return one.room.data();
    };
    const Place from = place(left, a), by = place(right, b),
                to = result.matrix ? y + result.offsets[i] : result.room.data();
    if (ym.transposed)
      Device::get().multiply(product, by, from, to);
    else
      Device::get().multiply(product, from, by, to, added);
    if (!result.matrix)
      move_strided(result.packing.sizes, to, result.packing.to, y + result.offsets[i], result.packing.from);
  }
  return along;
}

}  // namespace turnpoint::step::in_cuda
