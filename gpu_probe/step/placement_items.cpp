// SPDX-License-Identifier: Apache-2.0
// What the tasks of a placed step make, and which of them reads what: outputs and their gradients from operator to
// operator, states from time step to time step, weights from where they are held, and their gradients to the update.
#include <algorithm>

#include "core/model/backward_reads.h"
#include "gpu_probe/step/placement_program.h"

namespace turnpoint::step {

namespace {

class ItemMaker {
 public:
  explicit ItemMaker(PlacedProgram& program) : made_(program), model_(*program.program->model) {}

  Expected<void> run() {
    if (auto done = find_sights(); !done) return done;
    add_outputs_and_gradients();
    made_.inner.resize(model_.operators.size());
    made_.readers.resize(model_.operators.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      if (op_of(OperatorId(i)).is_view()) continue;
      add_weights(OperatorId(i));
      if (walks(OperatorId(i))) add_states(OperatorId(i));
    }
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      if (op_of(OperatorId(i)).is_view()) continue;
      for (std::size_t p = 0; p < made_.tasks_of[i].pieces.size(); ++p) add_reads(OperatorId(i), p);
      add_update(OperatorId(i));
    }
    return {};
  }

 private:
  using What = PlacedItem::What;

  const Operator& op_of(OperatorId id) const { return model_.operators[id]; }
  const OperatorTasks& tasks_of(OperatorId id) const { return made_.tasks_of[id.index]; }
  const Stepping& stepping(OperatorId id) const { return tasks_of(id).stepping; }
  bool walks(OperatorId id) const { return op_of(id).kind == OperatorKind::recurrent; }
  /// Whether backward of a recurrent operator hands its weights' gradients what they are made of: in a layer that is
  /// kept whole, and no time steps, the two know nothing of each other.
  bool hands_gates(OperatorId id) const {
    const bool apart = walks(id) && tasks_of(id).pieces[0].weights != kNone;
    return apart && (made_.weights_travel || stepping(id).steps > 0);
  }
  /// Gates of a unit: 4 of an LSTM, 3 of a GRU, 1 of a plain cell.
  std::int64_t gates(OperatorId id) const {
    const auto shape = [&](std::size_t k) { return model_.tensors[op_of(id).inputs[k].tensor].shape; };
    return shape(1)[1] / shape(2)[2];
  }
  static TaskIndex makes_weight_gradient(const PieceTasks& piece) {
    return piece.weights != kNone ? piece.weights : piece.backward;
  }

  std::uint32_t add_item(PlacedItem item) {
    made_.tasks[item.maker].makes.push_back(static_cast<std::uint32_t>(made_.items.size()));
    made_.items.push_back(std::move(item));
    return static_cast<std::uint32_t>(made_.items.size() - 1);
  }

  Expected<void> find_sights() {
    made_.unseen.resize(model_.operators.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      std::map<TensorId, Region> first;
      for (std::size_t k = 0; k < op_of(id).inputs.size(); ++k) {
        made_.unseen[i].push_back(0);
        if (op_of(id).is_view()) continue;
        Sight sight;
        for (std::size_t p = 0; p < stepping(id).pieces(); ++p) {
          sight = made_.sight(id, k, p);
          made_.unseen[i][k] = sight.unseen;
        }
        if (first.try_emplace(sight.tensor, sight.parts.front()).first->second != sight.parts.front())
          return usage_error("a time step of it reads two parts of one tensor",
                             model_.name + ": operator '" + op_of(id).name + "'");
      }
    }
    return {};
  }

  // Items.

  void add_outputs_and_gradients() {
    made_.outputs.resize(model_.operators.size());
    made_.gives.resize(model_.operators.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      const Operator& op = op_of(id);
      if (op.is_view()) continue;
      const auto& pieces = tasks_of(id).pieces;
      for (std::uint32_t o = 0; o < op.outputs.size(); ++o) {
        auto& items = made_.outputs[i].emplace_back();
        for (std::size_t p = 0; p < pieces.size(); ++p)
          items.push_back(
              add_item({What::output, id, o, op.outputs[o].tensor,
                        *part_of(model_, op, op.outputs[o], stepping(id).loops(op, p)), pieces[p].forward}));
      }
    }
    for (std::size_t i = model_.operators.size(); i-- > 0;) {
      const Operator& op = op_of(OperatorId(i));
      if (op.is_view()) continue;
      for (std::size_t k = 0; k < op.inputs.size(); ++k)
        if (returns_gradient(model_, op.inputs[k])) add_gradient(OperatorId(i), k);
    }
  }

  /// What reads a tensor twice through the same views gives one gradient of it.
  void add_gradient(OperatorId id, std::size_t k) {
    const auto& pieces = tasks_of(id).pieces;
    PlacedGradient gives;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const Sight sight = made_.sight(id, k, p);
      if (p == 0) {
        if (made_.gives[id.index].contains(sight.tensor)) return;
        gives.reader = id;
        gives.tensor = sight.tensor;
        gives.views.assign(sight.views.begin(), sight.views.begin() + std::ptrdiff_t(sight.unseen));
      }
      gives.items.push_back(add_item({What::gradient, id, 0, sight.tensor, sight.parts.front(), pieces[p].backward}));
    }
    made_.gives[id.index][gives.tensor] = made_.given.size();
    made_.gradients[storage_of(model_, op_of(id).inputs[k].tensor)].push_back(made_.given.size());
    made_.given.push_back(std::move(gives));
  }

  /// Its own parameters where they are sent, those of each direction by themselves, and the gradients of all that it
  /// reads.
  void add_weights(OperatorId id) {
    const Operator& op = op_of(id);
    InnerItems& inner = made_.inner[id.index];
    inner.weights.resize(op.inputs.size());
    inner.weight_gradients.resize(op.inputs.size());
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      if (!reads_parameter(model_, op.inputs[k])) continue;
      const TensorId tensor = op.inputs[k].tensor;
      const auto part = [&](std::size_t p) { return *part_of(model_, op, op.inputs[k], stepping(id).loops(op, p)); };
      const auto [owner, owner_input, turned] = made_.owner_of(id, k);
      if (owner == id && made_.weights_travel)
        for (std::size_t d = 0; d < stepping(id).directions; ++d)
          inner.weights[k].push_back(
              add_item({What::weights, id, k, tensor, part(d * static_cast<std::size_t>(stepping(id).steps)),
                        tasks_of(id).weights}));
      if (!model_.tensors[tensor].requires_gradient) continue;
      made_.readers[owner.index].push_back({id, k, owner_input, turned});
      for (std::size_t p = 0; p < tasks_of(id).pieces.size(); ++p)
        inner.weight_gradients[k].push_back(
            add_item({What::weight_gradient, id, k, tensor, part(p), makes_weight_gradient(tasks_of(id).pieces[p])}));
    }
  }

  /// Time steps hand states on, and backward their gradients; gates' gradients are for those of the weights.
  void add_states(OperatorId id) {
    const Operator& op = op_of(id);
    InnerItems& inner = made_.inner[id.index];
    const bool steps = stepping(id).steps > 0, cells = gates(id) == 4;
    for (std::size_t p = 0; p < tasks_of(id).pieces.size(); ++p) {
      const PieceTasks& tasks = tasks_of(id).pieces[p];
      const Loops loops = stepping(id).loops(op, p);
      const auto state = [&](std::vector<std::uint32_t>& items, What what, bool there, TaskIndex maker) {
        const TensorId output = op.outputs[0].tensor;
        items.push_back(there && maker != kNone
                            ? add_item({what, id, 0, output, *part_of(model_, op, op.outputs[0], loops), maker})
                            : kNone);
      };
      state(inner.cell, What::cell, steps && cells, tasks.forward);
      state(inner.hidden_gradient, What::hidden_gradient, steps, tasks.backward);
      state(inner.cell_gradient, What::cell_gradient, steps && cells, tasks.backward);
      if (!hands_gates(id)) {
        inner.gates_gradient.push_back(kNone);
        continue;
      }
      const std::int64_t kept = part_of(model_, op, op.outputs[1], loops)->elements();
      const std::int64_t count = gates(id) == 3 ? kept / 3 * 4 : kept;
      inner.gates_gradient.push_back(
          add_item({What::gates_gradient, id, 1, op.outputs[1].tensor, {{0}, {count}}, tasks.backward}));
    }
  }

  // Who reads them.

  void reads(TaskIndex task, std::uint32_t item) {
    if (item == kNone) return;
    auto& list = made_.tasks[task].reads;
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  /// Of items, those that hold something of a part of the tensor `of`; all of those of another tensor.
  void reads_of(TaskIndex task, const std::vector<std::uint32_t>& items, TensorId of, const Region& part) {
    for (const std::uint32_t item : items)
      if (made_.items[item].tensor != of || intersection(made_.items[item].part, part).elements() > 0)
        reads(task, item);
  }

  /// What an access of a task's piece reads; nothing where no operator made it.
  void reads_input(TaskIndex task, OperatorId id, std::size_t k) {
    const Access& access = op_of(id).inputs[k];
    const TensorId stored = storage_of(model_, access.tensor);
    const OperatorId producer = model_.tensors[stored].producer;
    if (!producer.valid() || reads_parameter(model_, access)) return;
    const auto& outputs = op_of(producer).outputs;
    const Sight sight = made_.sight(id, k, made_.tasks[task].piece);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].tensor == stored)
        reads_of(task, made_.outputs[producer.index][o], stored,
                 sight.tensor == stored ? sight.parts.front() : whole_of(model_.tensors[stored]));
  }

  /// A parameter, where it is sent; of time steps the part of their direction, if it is their own.
  void reads_weights(TaskIndex task, OperatorId id, std::uint32_t k) {
    if (!reads_parameter(model_, op_of(id).inputs[k])) return;
    const auto [owner, owner_input, turned] = made_.owner_of(id, k);
    const auto& items = made_.inner[owner.index].weights[owner_input];
    const std::size_t direction = stepping(id).direction(made_.tasks[task].piece);
    for (std::size_t d = 0; d < items.size(); ++d)
      if (owner != id || items.size() == 1 || d == direction) reads(task, items[d]);
  }

  void add_reads(OperatorId id, std::size_t p) {
    const Operator& op = op_of(id);
    const PieceTasks& all = tasks_of(id).pieces[p];
    const auto before = walks(id) ? stepping(id).before(p) : std::nullopt;
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      reads_input(all.forward, id, k);
      reads_weights(all.forward, id, k);
    }
    if (before) {
      reads(all.forward, made_.outputs[id.index][0][*before]);
      reads(all.forward, made_.inner[id.index].cell[*before]);
    }
    if (all.backward != kNone) add_backward(id, p);
    if (all.weights != kNone) add_weight_gradient(id, p);
    if (trains(model_, op)) add_sum(id, p);
  }

  /// Gradients of what the operator makes, and what it keeps of that.
  void reads_outputs(TaskIndex task, OperatorId id, std::size_t p) {
    const Operator& op = op_of(id);
    const auto& outputs = made_.outputs[id.index];
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      if (op.outputs[o].saved) reads(task, outputs[o][p]);
      const auto gradients = made_.gradients.find(op.outputs[o].tensor);
      if (gradients == made_.gradients.end()) continue;
      for (const std::size_t given : gradients->second)
        reads_of(task, made_.given[given].items, op.outputs[o].tensor, made_.items[outputs[o][p]].part);
    }
  }

  void reads_saved_inputs(TaskIndex task, OperatorId id) {
    for (std::size_t k = 0; k < op_of(id).inputs.size(); ++k)
      if (op_of(id).inputs[k].saved) reads_input(task, id, k);
  }

  void add_backward(OperatorId id, std::size_t p) {
    const Operator& op = op_of(id);
    const TaskIndex task = tasks_of(id).pieces[p].backward;
    const bool apart = tasks_of(id).pieces[p].weights != kNone;
    // The gradient of a product's input is made of the weights and the output's gradient alone.
    if (!apart || walks(id)) reads_saved_inputs(task, id);
    reads_outputs(task, id, p);
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k)
      if (backward_reads_weights(model_, op, k)) reads_weights(task, id, k);
    if (!walks(id)) return;
    const InnerItems& inner = made_.inner[id.index];
    if (const auto before = stepping(id).before(p)) {
      // An LSTM's gradients at its gates do not ask for the output before.
      if (!apart || gates(id) != 4) reads(task, made_.outputs[id.index][0][*before]);
      reads(task, inner.cell[*before]);
    }
    if (const auto behind = stepping(id).behind(p)) {
      reads(task, inner.hidden_gradient[*behind]);
      reads(task, inner.cell_gradient[*behind]);
    }
  }

  void add_weight_gradient(OperatorId id, std::size_t p) {
    const TaskIndex task = tasks_of(id).pieces[p].weights;
    reads_saved_inputs(task, id);
    if (!hands_gates(id)) return reads_outputs(task, id, p);
    reads(task, made_.inner[id.index].gates_gradient[p]);
    // The states before, all of them in the output where the operator is one task.
    const auto before = stepping(id).before(p);
    if (stepping(id).steps == 0 || before) reads(task, made_.outputs[id.index][0][before ? *before : p]);
  }

  /// The sum of the time steps behind, which this one adds to; in a layer that is kept whole all steps add to the
  /// buffer that the first of them makes, in any order.
  void add_sum(OperatorId id, std::size_t p) {
    const auto from = made_.adds_to(id, p);
    if (!from) return;
    for (const auto& items : made_.inner[id.index].weight_gradients)
      if (!items.empty()) reads(makes_weight_gradient(tasks_of(id).pieces[p]), items[*from]);
  }

  void add_update(OperatorId owner) {
    if (tasks_of(owner).update == kNone) return;
    for (const WeightReader& reader : made_.readers[owner.index]) {
      const auto& items = made_.inner[reader.op.index].weight_gradients[reader.input];
      for (std::size_t p = 0; p < items.size(); ++p)
        if (made_.has_sum(reader.op, p) || !made_.weights_travel) reads(tasks_of(owner).update, items[p]);
    }
  }

  PlacedProgram& made_;
  const Model& model_;
};

}  // namespace

Expected<void> add_items(PlacedProgram& program) { return ItemMaker(program).run(); }

}  // namespace turnpoint::step
