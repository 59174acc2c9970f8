// SPDX-License-Identifier: Apache-2.0
// Products by the machine's matrix product: loops are sorted into those of both operands and the result (a batch), of
// one operand and the result (rows, columns) and of both operands alone (summed). What does not lie in memory as a
// matrix is copied into one first.
#include <cstring>
#include <optional>

#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/fast/matrix.h"
#include "gpu_probe/step/kernels/fast/nest.h"
#include "gpu_probe/step/kernels/product.h"

namespace turnpoint::step::fast {

namespace {

TURNPOINT_CLONES void add_row(float* to, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}
TURNPOINT_CLONES float sum_row(const float* from, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += from[i];
  return sum;
}

}  // namespace

void copy_strided(const Strides& sizes, const Operand& from, const Strides& to_strides, float* to) {
  Nest<2> nest(sizes, {to_strides, from.strides});
  nest.simplify();
  auto& loops = nest.loops;
  const auto source = std::find_if(loops.begin(), loops.end(), [](const auto& loop) { return loop.strides[1] == 1; });
  if (loops.size() < 2 || loops.back().strides[1] == 1 || source == loops.end()) {
    nest.for_each_row([&](const auto& o, std::int64_t count, const auto& s) {
      const float* x = from.data + o[1];
      float* y = to + o[0];
      if (s[0] == 1 && s[1] == 1)
        std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(float));
      else
        for (std::int64_t i = 0; i < count; ++i) y[i * s[0]] = x[i * s[1]];
    });
    return;
  }
  // Neighbours of the one are far apart in the other: squares of both.
  const auto along = *source, inner = loops.back();
  loops.erase(source);
  loops.back() = {1, {0, 0}};
  constexpr std::int64_t kTile = 16;
  nest.for_each_row([&](const auto& o, std::int64_t, const auto&) {
    for (std::int64_t a = 0; a < along.size; a += kTile)
      for (std::int64_t b = 0; b < inner.size; b += kTile)
        for (std::int64_t i = a; i < std::min(a + kTile, along.size); ++i) {
          const float* x = from.data + o[1] + i;
          float* y = to + o[0] + i * along.strides[0];
          for (std::int64_t j = b; j < std::min(b + kTile, inner.size); ++j)
            y[j * inner.strides[0]] = x[j * inner.strides[1]];
        }
  });
}

void add_strided(const Strides& sizes, const Operand& from, const Strides& to_strides, float* to) {
  Nest<2> nest(sizes, {from.strides, to_strides});
  nest.simplify();
  nest.for_each_row([&](const auto& o, std::int64_t count, const auto& s) {
    const float* x = from.data + o[0];
    float* y = to + o[1];
    if (s[0] == 1 && s[1] == 1)
      add_row(y, x, count);
    else if (s[0] == 1 && s[1] == 0)
      *y += sum_row(x, count);
    else
      for (std::int64_t i = 0; i < count; ++i) y[i * s[1]] += x[i * s[0]];
  });
}

bool contract(const Strides& sizes, const Operand& a, const Operand& b, const Strides& y_strides, float* y) {
  const auto indices = indices_of(sizes, a.strides, b.strides, y_strides);
  if (!indices) return false;
  const auto& [batch, m, n, k] = *indices;
  const auto a_batch = offsets_of(batch, sizes, a.strides), b_batch = offsets_of(batch, sizes, b.strides),
             y_batch = offsets_of(batch, sizes, y_strides);
  const auto a_matrix = as_matrix(m, k, sizes, a.strides), b_matrix = as_matrix(k, n, sizes, b.strides),
             y_matrix = as_matrix(m, n, sizes, y_strides);
  const auto packing = [&](const Index& rows, const Index& columns, const Strides& strides) {
    Packing p;
    p.add(rows, sizes, strides, columns.size);
    p.add(columns, sizes, strides, 1);
    return p;
  };
  const Packing pack_a = packing(m, k, a.strides), pack_b = packing(k, n, b.strides), pack_y = packing(m, n, y_strides);
  Array a_room, b_room, y_room;
  if (!a_matrix) a_room = Array::scratch(static_cast<std::size_t>(m.size * k.size));
  if (!b_matrix) b_room = Array::scratch(static_cast<std::size_t>(k.size * n.size));
  if (!y_matrix) y_room = Array::scratch(static_cast<std::size_t>(m.size * n.size));
  const auto product = probe::blas().function;
  for (std::size_t i = 0; i < y_batch.size(); ++i) {
    const Matrix left = a_matrix.value_or(Matrix{false, k.size}), right = b_matrix.value_or(Matrix{false, n.size}),
                 to = y_matrix.value_or(Matrix{false, n.size});
    const float *left_data = a_matrix ? a.data + a_batch[i] : a_room.as<float>(),
                *right_data = b_matrix ? b.data + b_batch[i] : b_room.as<float>();
    if (!a_matrix) copy_strided(pack_a.sizes, {pack_a.from, a.data + a_batch[i]}, pack_a.to, a_room.data());
    if (!b_matrix) copy_strided(pack_b.sizes, {pack_b.from, b.data + b_batch[i]}, pack_b.to, b_room.data());
    float* result = y_matrix ? y + y_batch[i] : y_room.as<float>();
    // A transposed result is the product of the transposes the other way round.
    if (to.transposed)
      product({n.size, m.size, k.size, !right.transposed, !left.transposed, right.leading, left.leading, to.leading},
              right_data, left_data, 0, result);
    else
      product({m.size, n.size, k.size, left.transposed, right.transposed, left.leading, right.leading, to.leading},
              left_data, right_data, 0, result);
    if (!y_matrix) copy_strided(pack_y.sizes, {pack_y.to, y_room.data()}, pack_y.from, y + y_batch[i]);
  }
  return true;
}

bool contraction_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto product = product_of(at);
  if (!product) return false;
  const Operator& op = at.op();
  Array& result = out[0]->data;
  const auto a = at.strides(op.inputs[0], *in[0]), y = at.strides(op.outputs[0], *out[0]);
  for (const auto& part : product->parts) {
    const bool first = &part == product->parts.data();
    Array room = first ? result : Array::scratch(result.size());
    if (!contract(part.sizes(at), {a, in[0]->data.data() + part.offset(a)},
                  {part.strides(at, *in[part.other]), in[part.other]->data.data()}, y, room.data()))
      return false;
    if (!first) add_row(result.data(), room.data(), static_cast<std::int64_t>(result.size()));
  }
  if (!at.adds_once) return true;
  if (product->table)
    for (const auto& run : table_runs(at, y, in[2]->data.size()))
      add_strided(run.sizes, {run.strides, in[2]->data.data() + run.from}, y, result.data() + run.to);
  if (!product->bias) return true;
  const auto bias = at.strides(op.inputs[2], *in[2]);
  Nest<2> nest(loops_of_result(at, y), {y, bias});
  nest.simplify();
  nest.for_each_row([&](const auto& o, std::int64_t count, const auto& s) {
    float* to = out[0]->data.data() + o[0];
    const float* from = in[2]->data.data() + o[1];
    if (s[0] == 1 && s[1] == 1)
      add_row(to, from, count);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i * s[0]] += from[i * s[1]];
  });
  return true;
}

bool contraction_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  const auto product = product_of(at);
  if (!gradient[0] || !product) return false;
  const Operator& op = at.op();
  const Array& all = gradient[0]->data;
  const auto dy = at.strides(op.outputs[0], *gradient[0]);
  for (const auto& part : product->parts) {
    if ((result[0] && !in[part.other]) || (result[part.other] && !in[0])) return false;
    if (result[0]) {
      const auto strides = at.strides(op.inputs[0], *result[0]);
      if (!contract(part.sizes(at), {dy, all.data()}, {part.strides(at, *in[part.other]), in[part.other]->data.data()},
                    strides, result[0]->data.data() + part.offset(strides)))
        return false;
    }
    if (result[part.other]) {
      const auto strides = at.strides(op.inputs[0], *in[0]);
      if (!contract(part.sizes(at), {dy, all.data()}, {strides, in[0]->data.data() + part.offset(strides)},
                    part.strides(at, *result[part.other]), result[part.other]->data.data()))
        return false;
    }
  }
  if ((!product->bias && !product->table) || !result[2]) return true;
  result[2]->data.clear();
  if (product->bias) {
    add_strided(loops_of_result(at, dy), {dy, all.data()}, at.strides(op.inputs[2], *result[2]),
                result[2]->data.data());
    return true;
  }
  for (const auto& run : table_runs(at, dy, result[2]->data.size()))
    add_strided(run.sizes, {dy, all.data() + run.to}, run.strides, result[2]->data.data() + run.from);
  return true;
}

}  // namespace turnpoint::step::fast
