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

/// The transpose of a matrix.
Value transposed_block(Ledger& ledger, const Value& value) {
  const std::int64_t rows = value->region.extent[0], columns = value->region.extent[1];
  Value result = make_block(ledger, {{0, 0}, {columns, rows}}, value->element_bytes);
  transpose(value->data.data(), rows, columns, result->data.data());
  return result;
}

/// One direction's part of a recurrent operator's weight or its gradient: directions lie one after the other.
Value direction_of(Ledger& ledger, const Value& value, const Region& part) {
  if (value->region == part) return value;
  const auto elements = static_cast<std::size_t>(part.elements());
  return std::make_shared<Block>(ledger, part, value->element_bytes,
                                 value->data.part(static_cast<std::size_t>(part.offset.front()) * elements, elements),
                                 false);
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

// All weights, or those that backward reads; as they were in this step's forward. Of a time step those of its
// direction.
void PlacedRank::read_weights(Piece piece, bool backward_only, Values& values) {
  const Operator& op = op_of(piece.op);
  const OperatorProgram& here = program_of(piece.op);
  const Loops loops = tasks_of(piece.op).stepping.loops(op, piece.number);
  const auto read_from = [&](OperatorId owner, std::uint32_t input) {
    if (const auto kept = old_.find(owner); kept != old_.end()) return kept->second[input];
    Values of_owner(op_of(owner).inputs.size());
    std::vector<bool> one(of_owner.size(), false);
    one[input] = true;
    for (auto& share : shares_[owner.index])
      if (auto done = share.read(one, false, of_owner); !done) return Value();
    return of_owner[input];
  };
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    if (tensor_of(op.inputs[k]).role != TensorRole::parameter) continue;
    if (backward_only && !op.inputs[k].saved && !here.reads_unsaved[k] && !here.along[k]) continue;
    if (here.input_tie[k] < 0) {
      values[k] = read_from(piece.op, k);
    } else {
      const Tie& tie = program_.program->ties[static_cast<std::size_t>(here.input_tie[k])];
      const Value held = read_from(tie.owner, tie.owner_input);
      values[k] = tie.turned ? transposed_block(report_.ledger, held) : held;
    }
    if (stepwise(piece.op))
      values[k] = direction_of(report_.ledger, values[k], *part_of(model(), op, op.inputs[k], loops));
  }
}

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
    if (walks) walks_[{id, tasks_of(id).stepping.direction(piece.number)}].cell = state.cell;
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

// What forward or backward of a time step begins with: the output of the step before, and the cell as it left it.
CellState PlacedRank::state_before(Piece piece) {
  const Stepping& stepping = tasks_of(piece.op).stepping;
  Walk& walk = walks_[{piece.op, stepping.direction(piece.number)}];
  const auto position = static_cast<std::size_t>(stepping.position(piece.number));
  const auto& output = program_.outputs[piece.op.index][0];
  const auto before = stepping.before(piece.number);
  const auto size = static_cast<std::size_t>(program_.items[output[piece.number]].part.elements());
  if (walk.cells.empty()) {
    walk.cells.resize(static_cast<std::size_t>(stepping.steps));
    walk.gradients_here.resize(walk.cells.size());
  }
  if (walk.cell.size() == 0) walk.cell = zeros(size);
  CellState state;
  state.hidden = before ? items_[output[*before]]->data : zeros(size);
  // Forward comes first to every step.
  if (walk.cells[position].size() == 0) walk.cells[position] = walk.cell;
  state.cell = walk.cells[position];
  return state;
}

Expected<PlacedRank::Values*> PlacedRank::output_gradients(Piece piece) {
  const Operator& op = op_of(piece.op);
  Values& gradients = sums_[piece];
  if (!gradients.empty()) return &gradients;
  gradients.resize(op.outputs.size());
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    auto sum = output_gradient(piece, o);
    if (!sum) return sum.error();
    if (*sum) record(Compared::activation_gradient, piece.op, static_cast<std::uint32_t>(o), **sum);
    gradients[o] = std::move(*sum);
  }
  return &gradients;
}

Expected<void> PlacedRank::backward(Piece piece, bool of_inputs, bool of_weights) {
  const OperatorId id = piece.op;
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  const auto gradients = output_gradients(piece);
  if (!gradients) return gradients.error();
  // What the model says that backward reads.
  const bool weights_only = of_inputs && !of_weights && op.kind != OperatorKind::recurrent;
  Values inputs(op.inputs.size()), outputs(op.outputs.size()), results(op.inputs.size());
  read_weights(piece, true, inputs);
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
  CellState state;
  const bool walks = stepwise(id) && op.kind == OperatorKind::recurrent;
  if (walks) {
    state = state_before_backward(piece, of_inputs);
    at.state = &state;
  }
  const auto in = block_pointers<const Block>(inputs), out = block_pointers<const Block>(outputs),
             gradient = block_pointers<const Block>(**gradients);
  const auto result = block_pointers<Block>(results);
  if (!(fast() && here.kernel.fast_backward && here.kernel.fast_backward(at, in, out, gradient, result))) {
    for (std::size_t k = 0; k < result.size() && !arithmetic().on_device; ++k)
      if (result[k] && !(walks && tensor_of(op.inputs[k]).role == TensorRole::parameter)) result[k]->data.clear();
    if (auto done = here.kernel.backward(at, in, out, gradient, result); !done) return done;
  }
  if (walks) walk_back(piece, std::move(state), of_inputs, of_weights);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k]) continue;
    if (tensor_of(op.inputs[k]).role == TensorRole::parameter) {
      if (!walks) give_weight_gradient(id, k, std::move(results[k]));
    } else if (auto done = give(piece, k, std::move(results[k])); !done) {
      return done;
    }
  }
  if (walks && of_weights) end_of_weights(piece);
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

// Backward of a time step leaves what it began with to the gradients of the weights, where those are a task of their
// own.
CellState PlacedRank::state_before_backward(Piece piece, bool of_inputs) {
  const Stepping& stepping = tasks_of(piece.op).stepping;
  CellState state = state_before(piece);
  Walk& walk = walks_[{piece.op, stepping.direction(piece.number)}];
  CellState& here = walk.gradients_here[static_cast<std::size_t>(stepping.position(piece.number))];
  if (of_inputs) {
    if (walk.hidden_gradient.size() == 0) {
      walk.hidden_gradient = zeros(state.hidden.size());
      walk.cell_gradient = zeros(state.hidden.size());
    }
    here.hidden_gradient = walk.hidden_gradient;
    here.cell_gradient = walk.cell_gradient;
  }
  state.hidden_gradient = here.hidden_gradient;
  state.cell_gradient = here.cell_gradient;
  return state;
}

void PlacedRank::walk_back(Piece piece, CellState state, bool of_inputs, bool of_weights) {
  const Stepping& stepping = tasks_of(piece.op).stepping;
  Walk& walk = walks_[{piece.op, stepping.direction(piece.number)}];
  const auto position = static_cast<std::size_t>(stepping.position(piece.number));
  if (of_inputs) {
    walk.hidden_gradient = std::move(state.hidden_gradient);
    walk.cell_gradient = std::move(state.cell_gradient);
  }
  if (!of_weights) return;
  walk.cells[position] = {};
  walk.gradients_here[position] = {};
}

// Where the gradient of a weight is computed: in the run that is updated, its owner's, if it is the first there. Time
// steps add to one buffer.
Value PlacedRank::weight_gradient(Piece piece, std::uint32_t k) {
  const Operator& op = op_of(piece.op);
  const Tensor& tensor = tensor_of(op.inputs[k]);
  const int number = program_of(piece.op).input_tie[k];
  const Tie* tie = number < 0 ? nullptr : &program_.program->ties[static_cast<std::size_t>(number)];
  const auto room = [&]() -> Value {
    if (!tie || !tie->turned)
      for (auto& share : shares_[tie ? tie->owner.index : piece.op.index])
        if (auto target = share.gradient_target(tie ? tie->owner_input : k)) return target;
    return make(tensor, whole_of(tensor));
  };
  if (!stepwise(piece.op)) return room();
  Values& sums = weight_sums_[piece.op];
  sums.resize(op.inputs.size());
  if (!sums[k]) {
    sums[k] = room();
    sums[k]->data.clear();
  }
  const Loops loops = tasks_of(piece.op).stepping.loops(op, piece.number);
  return direction_of(report_.ledger, sums[k], *part_of(model(), op, op.inputs[k], loops));
}

// The last time step gives what all have summed.
void PlacedRank::end_of_weights(Piece piece) {
  if (++weight_steps_[piece.op] < tasks_of(piece.op).pieces.size()) return;
  Values sums = std::move(weight_sums_[piece.op]);
  weight_sums_.erase(piece.op);
  for (std::size_t k = 0; k < sums.size(); ++k)
    if (sums[k]) give_weight_gradient(piece.op, k, std::move(sums[k]));
}

void PlacedRank::give_weight_gradient(OperatorId id, std::size_t k, Value gradient) {
  const OperatorProgram& here = program_of(id);
  OperatorId owner = id;
  auto input = static_cast<std::uint32_t>(k);
  if (here.input_tie[k] >= 0) {
    const Tie& tie = program_.program->ties[static_cast<std::size_t>(here.input_tie[k])];
    if (tie.turned) gradient = transposed_block(report_.ledger, gradient);
    owner = tie.owner;
    input = tie.owner_input;
  }
  double seconds = 0;  // those of the task are taken as a whole
  for (auto& share : shares_[owner.index]) share.add_gradient(input, gradient, false, seconds);
}

// A task that reads the weights may come behind their update: it is to see them as they were.
Expected<void> PlacedRank::update(OperatorId id) {
  int readers = weight_readers_left_[id.index];
  for (const Tie& tie : program_.program->ties)
    if (tie.owner == id) readers += weight_readers_left_[tie.user.index];
  if (readers > 0) {
    Values before(op_of(id).inputs.size()), kept(before.size());
    for (auto& share : shares_[id.index])
      if (auto done = share.read(std::vector<bool>(before.size(), true), false, before); !done) return done;
    for (std::size_t k = 0; k < before.size(); ++k) {
      if (!before[k]) continue;
      const Tensor& tensor = tensor_of(op_of(id).inputs[k]);
      kept[k] = make(tensor, whole_of(tensor));
      copy(before[k]->data.data(), kept[k]->data.data(), kept[k]->data.size());
    }
    old_[id] = std::move(kept);
  }
  double seconds = 0;
  for (auto& share : shares_[id.index]) {
    if (auto done = share.synchronise(true); !done) return done;
    if (options().record) share.record(report_.recorded, Compared::parameter_gradient);
    if (auto done = share.update(seconds); !done) return done;
    if (options().record) share.record(report_.recorded, Compared::new_parameter);
    share.end();
  }
  return {};
}

}  // namespace turnpoint::step
