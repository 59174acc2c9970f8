// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: blocks of the runtime's own, and loops that fold_recurrent() recognised.
#include <array>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

/// x [time, batch, in], w [in + hidden, 4 hidden]; the last output is the sequence of hidden states.
void Lowering::on_block_lstm() {
  if (!needs(2) || !has(4) || !has(8)) return fail("an operand is missing");
  const auto& w = in(4);
  if (!w.shape || w.rank() != 2 || w.kind != Value::Kind::weight || (*w.shape)[1] < 4 || (*w.shape)[1] % 4 != 0 ||
      (*w.shape)[0] <= (*w.shape)[1] / 4 || (*w.shape)[1] > (std::int64_t{1} << 40))
    return fail("its weight matrix does not fit an LSTM");
  const auto hidden = (*w.shape)[1] / 4, inner = (*w.shape)[0] - hidden;
  const auto& matrix = weights_[static_cast<std::size_t>(w.weight)];
  Names operands{plain(1)};
  for (const auto& [suffix, size] : {std::pair{"/input", inner}, std::pair{"/recurrent", hidden}}) {
    operands.push_back(out_.unique(matrix.name + suffix));
    out_.initializer(operands.back(), {DataType::f32, {1, 4 * hidden, size}, false, {}, {}});
  }
  operands.push_back(emit("Unsqueeze", {plain(8), integers("axes", {0})}, {}, "bias"));
  if (failed()) return;
  const auto y = emit("LSTM", operands, Attributes().set("hidden_size", hidden));
  const auto states = emit("Squeeze", {y, integers("directions", {1})}, {}, "states");
  Shape shape{-1, -1, hidden};
  set(6, tensor(states, shape, in(1).type));
}

/// Steps [time, batch, in]; kernels [in, gates x hidden] and [hidden, gates x hidden], or one above the other; bias.
void Lowering::on_folded_recurrent() {
  const bool joint = node_->op == kJointRecurrent;
  const std::size_t matrices = joint ? 1 : 2;
  if (!needs(count())) return;
  for (std::size_t i = 1; i < count(); ++i) {
    if (in(i).kind != Value::Kind::weight || !in(i).shape)
      return fail("a weight of a recurrent layer has no known shape");
  }
  const auto& kernel_shape = *in(1).shape;
  const auto all = kernel_shape[1], gates = node_->axis, hidden = all / gates;
  if (hidden < 1 || hidden > (std::int64_t{1} << 40)) return fail("its weight matrices do not fit a recurrent layer");
  Names operands{plain(0)};
  if (node_->batch_major) operands[0] = emit("Transpose", operands, Attributes().set("perm", {1, 0, 2}), "time_first");
  if (joint) {
    const auto& matrix = weights_[static_cast<std::size_t>(in(1).weight)];
    for (const auto& [suffix, size] :
         {std::pair{"/input", kernel_shape[0] - hidden}, std::pair{"/recurrent", hidden}}) {
      operands.push_back(out_.unique(matrix.name + suffix));
      out_.initializer(operands.back(), {DataType::f32, {1, all, size}, false, {}, {}});
    }
  } else {
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      operands.push_back(write_weight(weights_[static_cast<std::size_t>(in(i).weight)], "recurrent", {1, 0},
                                      {1, all, (*in(i).shape)[0]}));
  }
  if (count() > matrices + 1) {
    const auto& bias = in(matrices + 1);
    const auto rows = bias.rank() == 2 ? (*bias.shape)[0] : 1;
    if (bias.rank() < 1 || bias.rank() > 2 || bias.shape->back() != all || (rows != 1 && rows != 2))
      return fail("the bias of a recurrent layer does not fit its weights");
    operands.push_back(write_weight(weights_[static_cast<std::size_t>(bias.weight)], "row", {}, {1, rows * all}));
  }
  if (failed()) return;
  const auto y = emit(gates == 4   ? "LSTM"
                      : gates == 3 ? "GRU"
                                   : "RNN",
                      operands, Attributes().set("hidden_size", hidden));
  const auto states = emit("Squeeze", {y, integers("directions", {1})}, {}, "states");
  set(0, tensor(states, Shape{-1, -1, hidden}, in(0).type));
}

void Lowering::on_last_step() {
  if (!needs(1)) return;
  const auto y = emit("Gather", {plain(0), scalar("index", -1)}, Attributes().set("axis", std::int64_t{0}));
  MaybeShape shape = in(0).shape;
  if (shape && !shape->empty()) shape->erase(shape->begin());
  set(0, tensor(y, shape, in(0).type));
}

void Lowering::add_recurrent(Table& table) {
  table["BlockLSTM"] = table["BlockLSTMV2"] = &Lowering::on_block_lstm;
  table[std::string(kRecurrent)] = table[std::string(kJointRecurrent)] = &Lowering::on_folded_recurrent;
  table[std::string(kLastStep)] = &Lowering::on_last_step;
}

}  // namespace turnpoint::tensorflow
