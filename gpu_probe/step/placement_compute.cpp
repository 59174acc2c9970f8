// SPDX-License-Identifier: Apache-2.0
// What the tasks of a placed step compute: operators and their time steps, by the same kernels as split ones.
#include <algorithm>

#include "gpu_probe/step/placement_rank.h"

namespace turnpoint::step {

namespace {

template <class To, class From>
std::vector<To*> block_pointers(const std::vector<From>& values) {
  std::vector<To*> all;
  for (const auto& value : values) all.push_back(value.get());
  return all;
}

/// Nothing yet, of a state that begins or of a gradient that nobody gives.
Array zeros(std::size_t count) {
  Array array = Array::scratch(count);
  array.clear();
  return array;
}

}  // namespace

// The proof is made of plain loops and copies alone.
bool PlacedRank::fast() const { return !arithmetic().proves() && !options().plain; }

Expected<void> PlacedRank::forward(Piece piece) {
  const OperatorId id = piece.op;
  const Operator& op = op_of(id);
  const auto& made = program_.outputs[id.index];
  Values inputs(op.inputs.size()), outputs;
  const auto make_output = [&](std::size_t o) {
    return make(tensor_of(op.outputs[o]), program_.items[made[o][piece.number]].part);
  };
  if (op.kind == OperatorKind::input) {
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      const Value drawn = generated(op.outputs[o].tensor);
      outputs.push_back(make_output(o));
      copy(drawn->data.data(), outputs.back()->data.data(), drawn->data.size());
    }
  } else {
    read_weights(piece, false, inputs);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k]) continue;
      auto value = input_value(piece, k);
      if (!value) return value.error();
      inputs[k] = std::move(*value);
    }
    for (std::size_t o = 0; o < op.outputs.size(); ++o) outputs.push_back(make_output(o));
    LocalOperator at = local(piece);
    const bool walks = stepwise(id) && op.kind == OperatorKind::recurrent;
    CellState state;
    if (walks) {
      state = state_before(piece);
      at.state = &state;
    }
    const Kernel& kernel = program_of(id).kernel;
    const auto in = block_pointers<const Block>(inputs);
    const auto out = block_pointers<Block>(outputs);
    if (!(fast() && kernel.fast_forward && kernel.fast_forward(at, in, out))) {
      if (!arithmetic().on_device)
        for (auto& value : outputs) value->data.clear();
      if (auto done = kernel.forward(at, in, out); !done) return done;
    }
    if (walks) leave(program_.inner[id.index].cell[piece.number], state.cell);
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    record(Compared::activation, id, static_cast<std::uint32_t>(o), *outputs[o]);
    items_[made[o][piece.number]] = outputs[o];
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (tensor_of(op.outputs[o]).role != TensorRole::internal)
      if (auto done = add_loss(piece, o, outputs[o]); !done) return done;
  return {};
}

// The output of the step before, and the cell as it left it.
CellState PlacedRank::state_before(Piece piece) {
  const auto before = tasks_of(piece.op).stepping.before(piece.number);
  const auto& output = program_.outputs[piece.op.index][0];
  const auto size = static_cast<std::size_t>(program_.items[output[piece.number]].part.elements());
  const auto left = [&](const std::vector<std::uint32_t>& items) {
    const std::uint32_t item = before ? items[*before] : kNone;
    return item != kNone && items_[item] ? items_[item]->data : zeros(size);
  };
  CellState state;
  state.hidden = left(output);
  state.cell = left(program_.inner[piece.op.index].cell);
  return state;
}

// With the gradients that the step behind left.
CellState PlacedRank::state_behind(Piece piece) {
  const auto behind = tasks_of(piece.op).stepping.behind(piece.number);
  const InnerItems& inner = program_.inner[piece.op.index];
  CellState state = state_before(piece);
  const auto left = [&](const std::vector<std::uint32_t>& items) {
    const std::uint32_t item = behind ? items[*behind] : kNone;
    return item != kNone ? items_[item]->data : zeros(state.hidden.size());
  };
  state.hidden_gradient = left(inner.hidden_gradient);
  state.cell_gradient = left(inner.cell_gradient);
  return state;
}

// States are counted nowhere on the device that makes them.
void PlacedRank::leave(std::uint32_t item, const Array& state) {
  if (item == kNone) return;
  items_[item] = std::make_shared<Block>(report_.ledger, program_.items[item].part, 0, state, false);
}

Expected<PlacedRank::Values*> PlacedRank::output_gradients(Piece piece) {
  const Operator& op = op_of(piece.op);
  Values& gradients = sums_[piece];
  if (!gradients.empty()) return &gradients;
  gradients.resize(op.outputs.size());
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    auto sum = output_gradient(piece, o);
    if (!sum) return sum.error();
    // Where the two halves of backward are apart, each has them.
    if (*sum && is_here(tasks_of(piece.op).pieces[piece.number].backward))
      record(Compared::activation_gradient, piece.op, static_cast<std::uint32_t>(o), **sum);
    gradients[o] = std::move(*sum);
  }
  return &gradients;
}

Expected<void> PlacedRank::backward(Piece piece, bool of_inputs, bool of_weights) {
  const OperatorId id = piece.op;
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  const bool recurrent = op.kind == OperatorKind::recurrent;
  const std::uint32_t handed = recurrent ? program_.inner[id.index].gates_gradient[piece.number] : kNone;
  const bool of_gates = handed != kNone && !of_inputs;  // and of nothing else that backward makes
  Values inputs(op.inputs.size()), outputs(op.outputs.size()), results(op.inputs.size()), gradients(op.outputs.size());
  if (!of_gates) {
    auto sums = output_gradients(piece);
    if (!sums) return sums.error();
    gradients = **sums;
  }
  // What the model says that backward reads.
  const bool weights_only = of_inputs && !of_weights && !recurrent;
  if (of_inputs || (recurrent && !of_gates)) read_weights(piece, true, inputs);
  LocalOperator at = local(piece);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& tensor = tensor_of(op.inputs[k]);
    const bool parameter = tensor.role == TensorRole::parameter;
    if (!parameter && op.inputs[k].saved && !weights_only) {
      auto value = input_value(piece, k);
      if (!value) return value.error();
      inputs[k] = std::move(*value);
    }
    if (!tensor.requires_gradient) continue;
    if (parameter && of_weights) results[k] = weight_gradient(piece, static_cast<std::uint32_t>(k));
    if (!parameter && of_inputs && returns_gradient(model(), op.inputs[k]))
      results[k] = make(tensor, *part_of(model(), op, op.inputs[k], at.loops));
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (op.outputs[o].saved) outputs[o] = items_[program_.outputs[id.index][o][piece.number]];
  const bool walks = stepwise(id) && recurrent;
  CellState state;
  if (walks) {
    state = of_gates ? state_before(piece) : state_behind(piece);
    at.state = &state;
  }
  GateGradients gates;
  if (handed != kNone) {
    if (of_inputs) items_[handed] = room_for_gates(handed);
    gates.numbers = items_[handed]->data;
    if (of_inputs && !gradients[0]) gates.numbers.clear();
    gates.made = of_gates;
    at.gates = &gates;
  }
  const auto in = block_pointers<const Block>(inputs), out = block_pointers<const Block>(outputs),
             gradient = block_pointers<const Block>(gradients);
  const auto result = block_pointers<Block>(results);
  if (!(fast() && here.kernel.fast_backward && here.kernel.fast_backward(at, in, out, gradient, result))) {
    for (std::size_t k = 0; k < result.size() && !arithmetic().on_device; ++k)
      if (result[k] && !(walks && tensor_of(op.inputs[k]).role == TensorRole::parameter)) result[k]->data.clear();
    if (auto done = here.kernel.backward(at, in, out, gradient, result); !done) return done;
  }
  if (walks && of_inputs) {
    leave(program_.inner[id.index].hidden_gradient[piece.number], state.hidden_gradient);
    leave(program_.inner[id.index].cell_gradient[piece.number], state.cell_gradient);
  }
  for (std::size_t k = 0; k < results.size(); ++k)
    if (results[k] && tensor_of(op.inputs[k]).role != TensorRole::parameter)
      if (auto done = give(piece, k, std::move(results[k])); !done) return done;
  return {};
}

// The gradient of what an input reads goes as far towards what is stored as it stays a block.
Expected<void> PlacedRank::give(Piece piece, std::size_t input, Value gradient) {
  const Sight sight = program_.sight(piece.op, input, piece.number);
  auto back = pulled_back(std::span(sight.views).subspan(sight.unseen), std::move(gradient));
  if (!back) return back.error();
  const PlacedGradient& given = program_.given[program_.gives[piece.op.index].at(sight.tensor)];
  Value& sum = items_[given.items[piece.number]];
  if (!sum)
    sum = std::move(*back);
  else
    add((*back)->data.data(), sum->data.data(), sum->data.size());
  return {};
}

}  // namespace turnpoint::step
