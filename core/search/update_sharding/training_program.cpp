// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/training_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace turnpoint::update_sharding {

namespace {

/// A vector over what the loop carries: weights in the order of the model, their auxiliaries, buffers.
struct CarriedState {
  std::vector<ValueId> weights;
  std::vector<std::vector<ValueId>> auxiliaries;
  std::vector<ValueId> buffers;

  std::vector<ValueId> trained() const {
    std::vector<ValueId> all = weights;
    for (const auto& of_one : auxiliaries) all.insert(all.end(), of_one.begin(), of_one.end());
    return all;
  }
};

class TrainingProgramMaker {
 public:
  TrainingProgramMaker(const Model& model, Optimizer optimizer, const TrainingLoop& loop, int replicas,
                       const TrainingPrecision& precision, const OptimizerNumbers& numbers)
      : m_(model), optimizer_(optimizer), loop_(loop), precision_(precision), numbers_(numbers), b_(replicas) {
    for (std::size_t t = 0; t < m_.tensors.size(); ++t) {
      const Tensor& tensor = m_.tensors[TensorId(t)];
      const bool trained = tensor.role == TensorRole::parameter && tensor.requires_gradient;
      if (tensor.tied_to.valid()) continue;
      if (trained) number_[TensorId(t)] = weights_.size(), weights_.push_back(TensorId(t));
      // What is not trained is only read, so that it needs no update; running statistics are written by forward.
      if (tensor.role == TensorRole::buffer || (tensor.role == TensorRole::parameter && !trained))
        buffer_number_[TensorId(t)] = buffers_.size(), buffers_.push_back(TensorId(t));
    }
  }

  Program run() {
    std::vector<ValueId> carried{b_.constant(0, {}, 8)};
    const auto declare = [&](const std::string& name, const Shape& shape, ParameterRole role) {
      const int bytes = role == ParameterRole::auxiliary ? precision_.auxiliaries : 4;
      carried.push_back(b_.parameter(name, shape, role, true, bytes));
    };
    for (const TensorId t : weights_) declare(m_.tensors[t].name, m_.tensors[t].shape, ParameterRole::weight);
    for (const TensorId t : weights_) {
      int number = 0;
      for (const Shape& shape : auxiliary_shapes(optimizer_, m_.tensors[t].shape))
        declare(fmt::format("{}/{}", m_.tensors[t].name, number++), shape, ParameterRole::auxiliary);
    }
    for (const TensorId t : buffers_) declare(m_.tensors[t].name, m_.tensors[t].shape, ParameterRole::other);

    const ComputationId entry = b_.standing_in(), body = b_.computation("step"), condition = b_.computation("more");
    b_.stand_in(condition);
    parameters_like(carried);
    b_.results({b_.apply(Function::less, {first_parameter(condition), b_.constant(double(loop_.steps), {}, 8)})});
    b_.stand_in(body);
    parameters_like(carried);
    make_step(body);
    b_.stand_in(entry);
    const std::vector<ValueId> last = b_.loop(carried, body, condition, "training loop");
    b_.output({last.begin() + 1, last.end() - static_cast<std::ptrdiff_t>(buffers_.size())}, "final checkpoint");
    return b_.take();
  }

 private:
  void parameters_like(const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      const Value like = b_.value(value);
      b_.parameter(like.name, like.shape, b_.program().producer(value).role, false, like.element_bytes);
    }
  }
  ValueId in_bytes(ValueId value, int bytes) {
    return b_.value(value).element_bytes == bytes ? value : b_.convert(value, bytes);
  }
  /// The weights as the network reads them.
  CarriedState as_read(CarriedState state) {
    for (ValueId& weight : state.weights) weight = in_bytes(weight, precision_.read_weights);
    return state;
  }
  ValueId first_parameter(ComputationId id) const { return b_.program().computations[id].parameters[0]; }

  void make_step(ComputationId body) {
    const std::vector<ValueId> parameters = b_.program().computations[body].parameters;
    auto at = parameters.begin() + 1;
    CarriedState state;
    for (std::size_t k = 0; k < weights_.size(); ++k) state.weights.push_back(*at++);
    for (const TensorId t : weights_) {
      state.auxiliaries.emplace_back();
      for (std::size_t k = auxiliary_shapes(optimizer_, m_.tensors[t].shape).size(); k > 0; --k)
        state.auxiliaries.back().push_back(*at++);
    }
    state.buffers.assign(at, parameters.end());

    const ValueId next = b_.apply(Function::add, {parameters[0], b_.constant(1, {}, 8)}, "steps made");
    std::map<TensorId, ValueId> values;
    CarriedState after = state;
    forward(values, as_read(state), &after.buffers);
    const std::vector<ValueId> losses = losses_of(values);
    const std::vector<ValueId> gradients = backward(values);
    const StepScalars scalars = step_scalars(b_, optimizer_, numbers_, b_.convert(next, 4));
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      if (!gradients[k].valid()) continue;
      const ValueId own = in_bytes(gradients[k], precision_.gradients);
      const ValueId summed = b_.all_reduce(own, {}, "gradient of " + m_.tensors[weights_[k]].name);
      std::vector<ValueId> statistics;
      for (const ValueId kept : state.auxiliaries[k]) statistics.push_back(in_bytes(kept, 4));
      const UpdatedWeight updated =
          append_update(b_, optimizer_, numbers_, scalars, in_bytes(summed, 4), state.weights[k], statistics);
      after.weights[k] = updated.weight;
      for (std::size_t v = 0; v < statistics.size(); ++v)
        after.auxiliaries[k][v] = in_bytes(updated.auxiliaries[v], precision_.auxiliaries);
    }
    std::vector<ValueId> summary = losses;
    summary.insert(summary.end(), after.weights.begin(), after.weights.end());
    every(loop_.checkpoint_every, next, "checkpoint", after.trained(),
          [&](const std::vector<ValueId>& handed) { b_.output(handed, "checkpoint"); });
    every(loop_.summary_every, next, "summary", summary,
          [&](const std::vector<ValueId>& handed) { b_.output(handed, "summary"); });
    std::vector<ValueId> tested = after.weights;
    tested.insert(tested.end(), after.buffers.begin(), after.buffers.end());
    every(loop_.evaluation_every, next, "evaluation", tested, [&](const std::vector<ValueId>& handed) {
      CarriedState fixed;
      const auto buffers = handed.begin() + static_cast<std::ptrdiff_t>(weights_.size());
      fixed.weights.assign(handed.begin(), buffers);
      fixed.buffers.assign(buffers, handed.end());
      std::map<TensorId, ValueId> tests;
      forward(tests, as_read(fixed), nullptr);
      b_.output(losses_of(tests), "evaluation");
    });
    std::vector<ValueId> results{next};
    for (const ValueId value : after.trained()) results.push_back(value);
    results.insert(results.end(), after.buffers.begin(), after.buffers.end());
    b_.results(std::move(results));
  }

  /// A branch that is taken where the steps made are a multiple of `period`.
  template <class Fill>
  void every(std::int64_t period, ValueId steps, const char* name, const std::vector<ValueId>& arguments, Fill fill) {
    if (period == 0) return;
    const ValueId rest = b_.apply(Function::modulo, {steps, b_.constant(double(period), {}, 8)});
    const ValueId predicate =
        b_.apply(Function::equal, {rest, b_.constant(0, {}, 8)}, fmt::format("time for {}", name));
    const ComputationId outside = b_.standing_in(), taken = b_.computation(name),
                        otherwise = b_.computation(fmt::format("no {}", name));
    for (const ComputationId branch : {taken, otherwise}) {
      b_.stand_in(branch);
      parameters_like(arguments);
      if (branch == taken) fill(std::vector<ValueId>(b_.program().computations[taken].parameters));
    }
    b_.stand_in(outside);
    b_.conditional(predicate, arguments, taken, otherwise, name);
  }

  TensorId stored(TensorId tensor) const {
    return m_.tensors[tensor].tied_to.valid() ? m_.tensors[tensor].tied_to : tensor;
  }

  ValueId value_of(std::map<TensorId, ValueId>& values, const CarriedState& state, TensorId tensor) {
    if (const auto weight = number_.find(stored(tensor)); weight != number_.end()) return state.weights[weight->second];
    if (const auto buffer = buffer_number_.find(stored(tensor)); buffer != buffer_number_.end())
      return state.buffers[buffer->second];
    auto [at, fresh] = values.try_emplace(tensor);
    if (fresh) {
      const Tensor& t = m_.tensors[tensor];
      at->second = t.role == TensorRole::constant ? b_.constant(0, t.shape) : b_.source(Kind::infeed, t.name, t.shape);
    }
    return at->second;
  }

  static Kind kind_of(const Operator& op) {
    if (op.kind == OperatorKind::matmul) return Kind::dot;
    return op.kind == OperatorKind::convolution ? Kind::convolution : Kind::network;
  }

  void forward(std::map<TensorId, ValueId>& values, const CarriedState& state, std::vector<ValueId>* statistics) {
    for (const Operator& op : m_.operators) {
      if (op.kind == OperatorKind::input) continue;
      std::vector<ValueId> inputs;
      std::vector<Shape> shapes;
      for (const Access& access : op.inputs) inputs.push_back(value_of(values, state, access.tensor));
      for (const Access& access : op.outputs) shapes.push_back(m_.tensors[access.tensor].shape);
      std::vector<std::size_t> written;
      for (const Access& access : op.inputs)
        if (const auto buffer = buffer_number_.find(stored(access.tensor));
            statistics && op.kind == OperatorKind::batch_normalisation && buffer != buffer_number_.end() &&
            m_.tensors[buffer->first].role == TensorRole::buffer) {
          written.push_back(buffer->second);
          shapes.push_back(m_.tensors[buffer->first].shape);
        }
      // A view is seen through: what reads a transposed weight reads the weight.
      if (op.is_view() && inputs.size() == 1 && shapes.size() == 1 &&
          b_.value(inputs[0]).elements() == m_.tensors[op.outputs[0].tensor].elements()) {
        values[op.outputs[0].tensor] = b_.shaped(Kind::reshape, inputs[0], shapes[0], op.name);
        continue;
      }
      const std::vector<ValueId> outputs = b_.operation(kind_of(op), std::move(inputs), std::move(shapes), op.name);
      for (std::size_t k = 0; k < op.outputs.size(); ++k) values[op.outputs[k].tensor] = outputs[k];
      for (std::size_t k = 0; k < written.size(); ++k) (*statistics)[written[k]] = outputs[op.outputs.size() + k];
    }
    for (const TensorId t : weights_) values[t] = state.weights[number_[t]];
    for (const TensorId t : buffers_) values[t] = state.buffers[buffer_number_[t]];
  }

  std::vector<ValueId> losses_of(const std::map<TensorId, ValueId>& values) {
    std::vector<ValueId> inputs;
    for (const TensorId t : m_.results)
      if (const auto value = values.find(t); value != values.end()) inputs.push_back(value->second);
    inputs.push_back(b_.source(Kind::infeed, "labels", {m_.batch}));
    return b_.operation(Kind::network, inputs, {{}}, "loss");
  }

  /// The gradient of every weight on its replica, invalid where there is none.
  std::vector<ValueId> backward(const std::map<TensorId, ValueId>& values) {
    std::map<TensorId, ValueId> gradients;
    const auto add = [&](TensorId tensor, ValueId part) {
      auto [at, fresh] = gradients.try_emplace(tensor, part);
      if (!fresh) at->second = b_.apply(Function::add, {at->second, part});
    };
    for (const TensorId t : m_.results)
      if (values.contains(t) && m_.tensors[t].requires_gradient)
        add(t, b_.operation(Kind::network, {values.at(t)}, {m_.tensors[t].shape}, "gradient of the loss").front());
    for (std::size_t o = m_.operators.size(); o-- > 0;) {
      const Operator& op = m_.operators[OperatorId(o)];
      std::vector<ValueId> received;
      for (const Access& access : op.outputs)
        if (const auto known = gradients.find(access.tensor); known != gradients.end())
          received.push_back(known->second);
      if (received.empty() || op.kind == OperatorKind::input) continue;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const TensorId to = stored(op.inputs[k].tensor);
        if (!m_.tensors[to].requires_gradient || m_.tensors[to].role == TensorRole::constant ||
            m_.tensors[to].role == TensorRole::buffer)
          continue;
        add(to, gradient(op, k, values, received));
      }
    }
    std::vector<ValueId> of_weights;
    for (const TensorId t : weights_) {
      const auto known = gradients.find(t);
      of_weights.push_back(known == gradients.end() ? ValueId() : known->second);
    }
    return of_weights;
  }

  /// Of input k of an operator. A product's gradients are products too: of the result's gradient and the other factor.
  ValueId gradient(const Operator& op, std::size_t k, const std::map<TensorId, ValueId>& values,
                   const std::vector<ValueId>& received) {
    const Tensor& to = m_.tensors[stored(op.inputs[k].tensor)];
    std::string name = fmt::format("{}, backward to {}", op.name, to.name);
    if (op.is_view() && received.size() == 1 && b_.value(received[0]).elements() == to.elements())
      return b_.shaped(Kind::reshape, received[0], to.shape, std::move(name));
    const bool factor = kind_of(op) != Kind::network && k < 2 && op.inputs.size() >= 2;
    std::vector<ValueId> inputs{received[0]};
    if (factor) {
      if (const auto other = values.find(stored(op.inputs[1 - k].tensor)); other != values.end())
        inputs.push_back(other->second);
      return b_.operation(kind_of(op), std::move(inputs), {to.shape}, std::move(name)).front();
    }
    inputs = received;
    if (kind_of(op) == Kind::network)
      for (const auto& accesses : {op.inputs, op.outputs})
        for (const Access& access : accesses)
          if (const auto known = values.find(stored(access.tensor)); access.saved && known != values.end())
            inputs.push_back(known->second);
    return b_.operation(Kind::network, std::move(inputs), {to.shape}, std::move(name)).front();
  }

  const Model& m_;
  Optimizer optimizer_;
  TrainingLoop loop_;
  TrainingPrecision precision_;
  OptimizerNumbers numbers_;
  Builder b_;
  std::vector<TensorId> weights_, buffers_;
  std::map<TensorId, std::size_t> number_, buffer_number_;
};

}  // namespace

Expected<Program> training_program_of(const Model& model, Optimizer optimizer, const TrainingLoop& loop, int replicas,
                                      const TrainingPrecision& precision, const OptimizerNumbers& numbers) {
  if (replicas < 1) return bad_input(fmt::format("a training program needs 1 replica or more, not {}", replicas));
  if (loop.steps < 1) return bad_input(fmt::format("a training loop needs 1 step or more, not {}", loop.steps));
  if (std::min({loop.checkpoint_every, loop.summary_every, loop.evaluation_every}) < 0)
    return bad_input("checkpoint, summary and evaluation are made every so many steps, which cannot be negative");
  for (const int bytes : {precision.gradients, precision.auxiliaries, precision.read_weights})
    if (bytes != 2 && bytes != 4)
      return bad_input(fmt::format("elements of {} bytes are not trained with, but 2 or 4", bytes));
  Program program = TrainingProgramMaker(model, optimizer, loop, replicas, precision, numbers).run();
  if (auto fine = check(program); !fine) return fine.error();
  return program;
}

}  // namespace turnpoint::update_sharding
