// SPDX-License-Identifier: Apache-2.0
// What the tasks of a placed step compute: whole operators, by the same kernels as split ones.
#include <algorithm>
#include <cmath>

#include "gpu_probe/step/numbers.h"
#include "gpu_probe/step/placement_rank.h"

namespace turnpoint::step::TURNPOINT_REAL {

namespace {

Region whole_of(const Tensor& tensor) { return {Shape(tensor.shape.size(), 0), tensor.shape}; }

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
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      result->data[static_cast<std::size_t>(j * rows + i)] = value->data[static_cast<std::size_t>(i * columns + j)];
  return result;
}

void add_block(Block& sum, const Block& part) {
  Real* to = sum.data.data();
  const Real* from = part.data.data();
  const std::size_t count = sum.data.size();
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

// The proof is made of plain loops and copies alone.
bool PlacedRank::fast() const { return std::is_same_v<Real, float> && !options().plain; }

Value PlacedRank::make(const Tensor& tensor) {
  return make_block(report_.ledger, whole_of(tensor), element_bytes(tensor, options()));
}

Value PlacedRank::make_clear(const Tensor& tensor) {
  Value value = make(tensor);
  value->data.clear();
  return value;
}

void PlacedRank::record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block) {
  if (options().record)
    report_.recorded.push_back({kind, op, slot, block.region, 0, 0, {block.data.begin(), block.data.end()}});
}

LocalOperator PlacedRank::local(OperatorId id) const {
  LocalOperator at;
  at.model = &model();
  at.id = id;
  at.seed = options().seed;
  for (const auto& dim : op_of(id).dims) at.loops.push_back({0, dim.size, dim.size, 1});
  return at;
}

// Data and buffers: drawn once.
Value PlacedRank::generated(TensorId id) {
  const Tensor& tensor = model().tensors[id];
  Array& drawn = data_[id];
  if (drawn.size() == 0) {
    drawn = Array::outside(static_cast<std::size_t>(tensor.elements()));
    for (std::size_t i = 0; i < drawn.size(); ++i)
      drawn[i] = static_cast<Real>(data_value(tensor, id, options().seed, static_cast<std::uint64_t>(i)));
  }
  return std::make_shared<Block>(report_.ledger, whole_of(tensor), element_bytes(tensor, options()), drawn, true);
}

// One view of a value; where it leaves every element where it is, no copy.
Expected<Value> PlacedRank::seen(OperatorId view, const Value& value) {
  const LocalOperator at = local(view);
  const Tensor& tensor = tensor_of(op_of(view).outputs.front());
  if (fast() && keeps_order(at, value->region, whole_of(tensor)))
    return std::make_shared<Block>(report_.ledger, whole_of(tensor), value->element_bytes, value->data, false);
  Value made = make_clear(tensor);
  Values in(op_of(view).inputs.size()), out{made};
  in[0] = value;
  if (auto done = program_of(view).kernel.forward(at, block_pointers<const Block>(in), block_pointers<Block>(out));
      !done)
    return done.error();
  return made;
}

// The gradient of what was stored from that of what was read of it.
Expected<Value> PlacedRank::pulled_back(const std::vector<OperatorId>& views, Value gradient) {
  for (std::size_t v = views.size(); v-- > 0;) {
    const LocalOperator at = local(views[v]);
    const Operator& op = op_of(views[v]);
    const Tensor& tensor = tensor_of(op.inputs.front());
    if (fast() && keeps_order(at, whole_of(tensor), gradient->region)) {
      gradient =
          std::make_shared<Block>(report_.ledger, whole_of(tensor), gradient->element_bytes, gradient->data, true);
      continue;
    }
    Values in(op.inputs.size()), out(op.outputs.size()), result(op.inputs.size());
    result[0] = make_clear(tensor);
    Values gradients(op.outputs.size());
    gradients[0] = gradient;
    if (auto done =
            program_of(views[v]).kernel.backward(at, block_pointers<const Block>(in), block_pointers<const Block>(out),
                                                 block_pointers<const Block>(gradients), block_pointers<Block>(result));
        !done)
      return done.error();
    gradient = result[0];
  }
  return gradient;
}

// What an operator reads of an activation, of data or of a buffer.
Expected<Value> PlacedRank::input_value(const Access& access) {
  const TensorId stored = storage_of(model(), access.tensor);
  const OperatorId producer = model().tensors[stored].producer;
  Value value;
  if (!producer.valid()) {
    value = generated(stored);
  } else {
    const auto& outputs = op_of(producer).outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].tensor == stored) value = items_[program_.outputs[producer.index][o]];
  }
  for (const OperatorId view : views_before(model(), access.tensor)) {
    auto next = seen(view, value);
    if (!next) return next.error();
    value = std::move(*next);
  }
  return value;
}

// All weights, or those that backward reads; as they were in this step's forward.
void PlacedRank::read_weights(OperatorId id, bool backward_only, Values& values) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
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
      values[k] = read_from(id, k);
      continue;
    }
    const Tie& tie = program_.program->ties[static_cast<std::size_t>(here.input_tie[k])];
    const Value held = read_from(tie.owner, tie.owner_input);
    values[k] = tie.turned ? transposed_block(report_.ledger, held) : held;
  }
}

Expected<void> PlacedRank::forward(OperatorId id) {
  const Operator& op = op_of(id);
  const auto& made = program_.outputs[id.index];
  Values inputs(op.inputs.size()), outputs;
  if (op.kind == OperatorKind::input) {
    for (const Access& access : op.outputs) {
      const Value drawn = generated(access.tensor);
      outputs.push_back(make(tensor_of(access)));
      std::copy(drawn->data.begin(), drawn->data.end(), outputs.back()->data.begin());
    }
  } else {
    read_weights(id, false, inputs);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k]) continue;
      auto value = input_value(op.inputs[k]);
      if (!value) return value.error();
      inputs[k] = std::move(*value);
    }
    for (const Access& access : op.outputs) outputs.push_back(make(tensor_of(access)));
    const LocalOperator at = local(id);
    const Kernel& kernel = program_of(id).kernel;
    const auto in = block_pointers<const Block>(inputs);
    const auto out = block_pointers<Block>(outputs);
    if (!(fast() && kernel.fast_forward && kernel.fast_forward(at, in, out))) {
      for (auto& value : outputs) value->data.clear();
      if (auto done = kernel.forward(at, in, out); !done) return done;
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    record(Compared::activation, id, static_cast<std::uint32_t>(o), *outputs[o]);
    items_[made[o]] = outputs[o];
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (tensor_of(op.outputs[o]).role != TensorRole::internal)
      if (auto done = add_loss(id, o, outputs[o]); !done) return done;
  return {};
}

// The results of the network that this output, or a view of it, is.
Expected<void> PlacedRank::add_loss(OperatorId id, std::size_t output, const Value& value) {
  const TensorId stored = op_of(id).outputs[output].tensor;
  for (const TensorId result : model().results) {
    if (!is_floating(model().tensors[result].type) || storage_of(model(), result) != stored) continue;
    Value at = value;
    for (const OperatorId view : views_before(model(), result)) {
      auto next = seen(view, at);
      if (!next) return next.error();
      at = std::move(*next);
    }
    const Array& factors = loss_factors(result);
    double sum = 0;
    for (std::size_t i = 0; i < factors.size(); ++i)
      sum += static_cast<double>(factors[i]) * static_cast<double>(at->data[i]);
    report_.loss += sum;
  }
  return {};
}

const Array& PlacedRank::loss_factors(TensorId id) {
  Array& factors = loss_factors_[id];
  if (factors.size() > 0) return factors;
  const Tensor& tensor = model().tensors[id];
  factors = Array::outside(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < factors.size(); ++i)
    factors[i] = static_cast<Real>(loss_factor(tensor, id, options().seed, static_cast<std::int64_t>(i)));
  return factors;
}

// From all readers and from the loss; null: none. The first of them is summed into: it is nobody else's.
Expected<Value> PlacedRank::output_gradient(OperatorId id, std::size_t output) {
  const TensorId stored = op_of(id).outputs[output].tensor;
  if (!model().tensors[stored].requires_gradient) return Value();
  Value sum;
  if (const auto gradients = program_.gradients.find(stored); gradients != program_.gradients.end())
    for (const std::uint32_t item : gradients->second) {
      if (!sum)
        sum = items_[item];
      else
        add_block(*sum, *items_[item]);
    }
  for (const TensorId result : model().results) {
    const Tensor& tensor = model().tensors[result];
    if (!is_floating(tensor.type) || storage_of(model(), result) != stored) continue;
    Value of_loss = make(tensor);
    const Array& factors = loss_factors(result);
    std::copy(factors.begin(), factors.end(), of_loss->data.begin());
    auto back = pulled_back(views_before(model(), result), std::move(of_loss));
    if (!back) return back.error();
    if (!sum)
      sum = std::move(*back);
    else
      add_block(*sum, **back);
  }
  if (sum) record(Compared::activation_gradient, id, static_cast<std::uint32_t>(output), *sum);
  return sum;
}

Expected<void> PlacedRank::backward(OperatorId id, bool of_inputs, bool of_weights) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  Values& gradients = sums_[id];
  if (gradients.empty()) {
    gradients.resize(op.outputs.size());
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      auto sum = output_gradient(id, o);
      if (!sum) return sum.error();
      gradients[o] = std::move(*sum);
    }
  }
  // What the model says that backward reads.
  const bool weights_only = of_inputs && !of_weights && op.kind != OperatorKind::recurrent;
  Values inputs(op.inputs.size()), outputs(op.outputs.size()), results(op.inputs.size());
  read_weights(id, true, inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& tensor = tensor_of(op.inputs[k]);
    const bool parameter = tensor.role == TensorRole::parameter;
    if (!parameter && op.inputs[k].saved && !weights_only) {
      auto value = input_value(op.inputs[k]);
      if (!value) return value.error();
      inputs[k] = std::move(*value);
    }
    if (!tensor.requires_gradient) continue;
    if (parameter && of_weights) results[k] = weight_gradient(id, static_cast<std::uint32_t>(k));
    if (!parameter && of_inputs && returns_gradient(model(), op.inputs[k])) results[k] = make(tensor);
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (op.outputs[o].saved) outputs[o] = items_[program_.outputs[id.index][o]];
  const LocalOperator at = local(id);
  const auto in = block_pointers<const Block>(inputs), out = block_pointers<const Block>(outputs),
             gradient = block_pointers<const Block>(gradients);
  const auto result = block_pointers<Block>(results);
  if (!(fast() && here.kernel.fast_backward && here.kernel.fast_backward(at, in, out, gradient, result))) {
    for (auto* block : result)
      if (block) block->data.clear();
    if (auto done = here.kernel.backward(at, in, out, gradient, result); !done) return done;
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k]) continue;
    if (tensor_of(op.inputs[k]).role == TensorRole::parameter) {
      give_weight_gradient(id, k, std::move(results[k]));
      continue;
    }
    auto back = pulled_back(views_before(model(), op.inputs[k].tensor), std::move(results[k]));
    if (!back) return back.error();
    Value& sum = items_[program_.gives[id.index].at(storage_of(model(), op.inputs[k].tensor))];
    if (!sum)
      sum = std::move(*back);
    else
      add_block(*sum, **back);
  }
  return {};
}

// Where the gradient of a weight is computed: in the run that is updated, if it is the first there.
Value PlacedRank::weight_gradient(OperatorId id, std::uint32_t k) {
  if (program_of(id).owned[k])
    for (auto& share : shares_[id.index])
      if (auto target = share.gradient_target(k)) return target;
  return make(tensor_of(op_of(id).inputs[k]));
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
  for (auto& share : shares_[owner.index]) share.add_gradient(input, *gradient, seconds);
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
      kept[k] = make(tensor_of(op_of(id).inputs[k]));
      std::copy(before[k]->data.begin(), before[k]->data.end(), kept[k]->data.begin());
    }
    old_[id] = std::move(kept);
  }
  double seconds = 0;
  for (auto& share : shares_[id.index]) {
    if (auto done = share.synchronise(); !done) return done;
    if (options().record) share.record(report_.recorded, Compared::parameter_gradient);
    if (auto done = share.update(seconds); !done) return done;
    if (options().record) share.record(report_.recorded, Compared::new_parameter);
    share.end();
  }
  return {};
}

}  // namespace turnpoint::step::TURNPOINT_REAL
