// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_program.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace turnpoint::step {

namespace {

bool reads_parameter(const Model& model, const Access& access) {
  return model.tensors[access.tensor].role == TensorRole::parameter;
}

class PlacementMaker {
 public:
  PlacementMaker(const StepJob& job, const StepOptions& options)
      : model_(*job.model), plan_(job.plan), options_(options), made_(std::make_shared<PlacedProgram>()) {
    made_->placement = &*job.placement;
  }

  Expected<std::shared_ptr<const PlacedProgram>> run() {
    auto program = Program::make(model_, plan_, options_);
    if (!program) return program.error();
    made_->program = std::move(*program);
    using Step = Expected<void> (PlacementMaker::*)();
    for (const Step step : {&PlacementMaker::find_tasks, &PlacementMaker::check_tasks, &PlacementMaker::check_weights})
      if (auto done = (this->*step)(); !done) return done.error();
    if (auto done = find_sights(); !done) return done.error();
    add_items();
    add_reads();
    for (const Step step : {&PlacementMaker::add_transfers, &PlacementMaker::check_order})
      if (auto done = (this->*step)(); !done) return done.error();
    return std::shared_ptr<const PlacedProgram>(std::move(made_));
  }

 private:
  const StepPlacement& placement() const { return *made_->placement; }
  const Operator& op_of(OperatorId id) const { return model_.operators[id]; }
  std::uint32_t device_of(TaskIndex task) const { return placement().tasks[task].device; }
  Error refused(const std::string& what, OperatorId op) const {
    return usage_error(what, model_.name + ": operator '" + op_of(op).name + "'");
  }
  Error broken(const std::string& what, OperatorId op) const {
    return bad_input("placement: " + what, model_.name + ": operator '" + op_of(op).name + "'");
  }

  /// How many steps and directions each operator has, as its tasks say; then which task is which.
  Expected<void> find_tasks() {
    made_->tasks_of.resize(model_.operators.size());
    made_->tasks.resize(placement().tasks.size());
    std::vector<std::int64_t> steps(model_.operators.size(), -1);
    for (const auto& task : placement().tasks) {
      if (task.role == TaskRole::accumulate)
        return refused("a placement of several micro-batches cannot be run: all of a batch runs once a step here",
                       task.op);
      if (task.role == TaskRole::update || task.role == TaskRole::weights) continue;
      std::int64_t& known = steps[task.op.index];
      if (known >= 0 && (known == 0) != (task.step < 0))
        return broken("has tasks of single time steps, and of all of them", task.op);
      known = std::max(known, task.step + 1);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      OperatorTasks& all = made_->tasks_of[i];
      if (steps[i] > 0)
        if (auto fine = find_steps(OperatorId(i), steps[i]); !fine) return fine;
      all.pieces.resize(all.stepping.pieces());
    }
    for (TaskIndex t = 0; t < placement().tasks.size(); ++t) {
      const auto& task = placement().tasks[t];
      OperatorTasks& all = made_->tasks_of[task.op.index];
      const bool whole = task.role == TaskRole::update || task.role == TaskRole::weights;
      if (!whole && task.direction >= all.stepping.directions)
        return broken("has no steps of a second direction", task.op);
      if (task.step >= 0 && !whole)
        made_->tasks[t].piece = task.direction * std::size_t(all.stepping.steps) + std::size_t(task.step);
      PieceTasks& piece = all.pieces[made_->tasks[t].piece];
      TaskIndex& place = task.role == TaskRole::forward    ? piece.forward
                         : task.role == TaskRole::backward ? piece.backward
                         : task.role == TaskRole::update   ? all.update
                         : task.role == TaskRole::weights  ? all.weights
                                                           : piece.weights;
      if (place != kNone) return refused("the placement runs it more than once a step", task.op);
      place = t;
    }
    return {};
  }

  /// An operator that the placement runs step by step: whether it can be.
  Expected<void> find_steps(OperatorId id, std::int64_t steps) {
    const Operator& op = op_of(id);
    if (steps > std::int64_t(placement().tasks.size())) return broken("lacks a task", id);
    const auto stepping = stepping_of(model_, op, steps);
    if (!stepping)
      return refused("a placement runs it in " + std::to_string(steps) + " time steps, and it has no such steps", id);
    if (op.kind != OperatorKind::recurrent &&
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& a) { return reads_parameter(model_, a); }))
      return refused("of operators with weights only recurrent ones run step by step", id);
    for (std::size_t piece = 0; piece < stepping->pieces(); ++piece) {
      const Loops loops = stepping->loops(op, piece);
      for (const auto* list : {&op.inputs, &op.outputs})
        for (const Access& access : *list)
          if (!part_of(model_, op, access, loops))
            return refused("what a time step of it reads or makes is no block of its tensor", id);
    }
    made_->tasks_of[id.index].stepping = *stepping;
    return {};
  }

  bool trains(const Operator& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
      return reads_parameter(model_, access) && model_.tensors[access.tensor].requires_gradient;
    });
  }

  Expected<void> check_tasks() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      const Operator& op = op_of(id);
      const OperatorTasks& all = made_->tasks_of[i];
      if (op.is_view()) {
        if (all.pieces[0].forward != kNone || all.pieces[0].backward != kNone) return broken("a view has a task", id);
        continue;
      }
      const bool gives = std::any_of(op.inputs.begin(), op.inputs.end(),
                                     [&](const Access& access) { return returns_gradient(model_, access); });
      for (const PieceTasks& piece : all.pieces) {
        if (piece.forward == kNone || (piece.backward == kNone && (gives || (trains(op) && piece.weights == kNone))) ||
            (piece.weights == kNone) != (all.pieces[0].weights == kNone))
          return broken("lacks a task", id);
      }
    }
    return {};
  }

  /// Weights lie where they are updated; everything that reads them has to be there.
  Expected<void> check_weights() {
    const Program& program = *made_->program;
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      for (std::uint32_t k = 0; k < op_of(id).inputs.size(); ++k) {
        const Access& access = op_of(id).inputs[k];
        if (!reads_parameter(model_, access)) continue;
        const std::int32_t tie = program.operators[i].input_tie[k];
        const OperatorId owner = tie >= 0 ? program.ties[std::size_t(tie)].owner : id;
        const TaskIndex update = made_->tasks_of[owner.index].update;
        if (update == kNone) return refused("has a parameter that is not trained, which cannot be run here", owner);
        const TaskIndex held = made_->tasks_of[owner.index].weights;
        if (held != kNone && device_of(held) != device_of(update))
          return broken("its weights are not on the device that updates them", owner);
        for (const PieceTasks& piece : made_->tasks_of[i].pieces)
          for (const TaskIndex task : {piece.forward, piece.backward, piece.weights})
            if (task != kNone && device_of(task) != device_of(update))
              return broken("its tasks are not on the device that holds its weights", id);
      }
    }
    return {};
  }

  std::uint32_t add_item(PlacedItem item) {
    made_->tasks[item.maker].makes.push_back(static_cast<std::uint32_t>(made_->items.size()));
    made_->items.push_back(item);
    return static_cast<std::uint32_t>(made_->items.size() - 1);
  }

  const Stepping& stepping(std::size_t op) const { return made_->tasks_of[op].stepping; }

  Expected<void> find_sights() {
    made_->unseen.resize(model_.operators.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      std::map<TensorId, Region> first;
      for (std::size_t k = 0; k < op_of(id).inputs.size(); ++k) {
        made_->unseen[i].push_back(0);
        if (op_of(id).is_view()) continue;
        Sight sight;
        for (std::size_t p = 0; p < stepping(i).pieces(); ++p) {
          sight = made_->sight(id, k, p);
          made_->unseen[i][k] = sight.unseen;
        }
        if (first.try_emplace(sight.tensor, sight.parts.front()).first->second != sight.parts.front())
          return refused("a time step of it reads two parts of one tensor", id);
      }
    }
    return {};
  }

  void add_items() {
    made_->outputs.resize(model_.operators.size());
    made_->gives.resize(model_.operators.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = op_of(OperatorId(i));
      if (op.is_view()) continue;
      const auto& pieces = made_->tasks_of[i].pieces;
      for (std::uint32_t o = 0; o < op.outputs.size(); ++o) {
        auto& items = made_->outputs[i].emplace_back();
        for (std::size_t p = 0; p < pieces.size(); ++p)
          items.push_back(add_item({false, OperatorId(i), o, op.outputs[o].tensor,
                                    *part_of(model_, op, op.outputs[o], stepping(i).loops(op, p)), pieces[p].forward}));
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
    const auto& pieces = made_->tasks_of[id.index].pieces;
    PlacedGradient gives;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const Sight sight = made_->sight(id, k, p);
      if (p == 0) {
        if (made_->gives[id.index].contains(sight.tensor)) return;
        gives.reader = id;
        gives.tensor = sight.tensor;
        gives.views.assign(sight.views.begin(), sight.views.begin() + std::ptrdiff_t(sight.unseen));
      }
      gives.items.push_back(add_item({true, id, 0, sight.tensor, sight.parts.front(), pieces[p].backward}));
    }
    made_->gives[id.index][gives.tensor] = made_->given.size();
    made_->gradients[storage_of(model_, op_of(id).inputs[k].tensor)].push_back(made_->given.size());
    made_->given.push_back(std::move(gives));
  }

  void reads(TaskIndex task, std::uint32_t item) {
    auto& list = made_->tasks[task].reads;
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  /// Of items, those that hold something of a part of the tensor `of`; all of those of another tensor.
  void reads_of(TaskIndex task, const std::vector<std::uint32_t>& items, TensorId of, const Region& part) {
    for (const std::uint32_t item : items)
      if (made_->items[item].tensor != of || intersection(made_->items[item].part, part).elements() > 0)
        reads(task, item);
  }

  /// What an access of a task's piece reads; nothing where no operator made it.
  void reads_input(TaskIndex task, OperatorId id, std::size_t k) {
    const Access& access = op_of(id).inputs[k];
    const TensorId stored = storage_of(model_, access.tensor);
    const OperatorId producer = model_.tensors[stored].producer;
    if (!producer.valid() || reads_parameter(model_, access)) return;
    const auto& outputs = op_of(producer).outputs;
    const Sight sight = made_->sight(id, k, made_->tasks[task].piece);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].tensor == stored)
        reads_of(task, made_->outputs[producer.index][o], stored,
                 sight.tensor == stored ? sight.parts.front() : whole_of(model_.tensors[stored]));
  }

  void add_reads() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = op_of(OperatorId(i));
      if (op.is_view()) continue;
      for (std::size_t p = 0; p < made_->tasks_of[i].pieces.size(); ++p) add_reads_of(OperatorId(i), p);
    }
  }

  void add_reads_of(OperatorId id, std::size_t p) {
    const Operator& op = op_of(id);
    const PieceTasks& all = made_->tasks_of[id.index].pieces[p];
    const auto& outputs = made_->outputs[id.index];
    // The state that the step before left.
    const auto state = op.kind == OperatorKind::recurrent ? stepping(id.index).before(p) : std::nullopt;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) reads_input(all.forward, id, k);
    if (state) reads(all.forward, outputs[0][*state]);
    for (const TaskIndex task : {all.backward, all.weights}) {
      if (task == kNone) continue;
      // The gradient of a product's input is made of the weights and the output's gradient alone.
      const bool weights_only = task == all.backward && all.weights != kNone && op.kind != OperatorKind::recurrent;
      for (std::size_t k = 0; k < op.inputs.size(); ++k)
        if (op.inputs[k].saved && !weights_only) reads_input(task, id, k);
      if (state) reads(task, outputs[0][*state]);
      for (std::size_t o = 0; o < op.outputs.size(); ++o) {
        if (op.outputs[o].saved) reads(task, outputs[o][p]);
        const auto gradients = made_->gradients.find(op.outputs[o].tensor);
        if (gradients == made_->gradients.end()) continue;
        for (const std::size_t given : gradients->second)
          reads_of(task, made_->given[given].items, op.outputs[o].tensor, made_->items[outputs[o][p]].part);
      }
    }
  }

  Expected<void> add_transfers() {
    std::map<std::pair<TaskIndex, std::uint32_t>, std::set<std::uint32_t>> needed;
    for (TaskIndex t = 0; t < made_->tasks.size(); ++t)
      for (const std::uint32_t item : made_->tasks[t].reads)
        if (const TaskIndex maker = made_->items[item].maker; device_of(maker) != device_of(t))
          needed[{maker, device_of(t)}].insert(item);
    std::vector<std::vector<std::uint32_t>> sent_to(made_->tasks.size());
    for (const auto& listed : placement().transfers) {
      PlacedTransfer transfer;
      transfer.task = listed.task;
      transfer.from = static_cast<int>(device_of(listed.task));
      transfer.to = static_cast<int>(listed.to);
      if (const auto found = needed.find({listed.task, listed.to}); found != needed.end()) {
        transfer.items.assign(found->second.begin(), found->second.end());
        needed.erase(found);
      }
      for (const std::uint32_t item : transfer.items) transfer.elements += made_->items[item].part.elements();
      made_->tasks[listed.task].sends.push_back(static_cast<std::uint32_t>(made_->transfers.size()));
      made_->transfers.push_back(std::move(transfer));
    }
    if (!needed.empty()) {
      const auto& [key, items] = *needed.begin();
      const PlacedItem& item = made_->items[*items.begin()];
      return broken("device " + std::to_string(key.second) + " reads " + (item.gradient ? "the gradient of '" : "'") +
                        model_.tensors[item.tensor].name + "', which no transfer brings there",
                    item.op);
    }
    const std::uint32_t devices = placement().devices;
    made_->arrivals.resize(std::size_t(devices) * devices);
    for (std::uint32_t d = 0; d < devices; ++d)
      for (const TaskIndex task : placement().order[d]) {
        auto& sends = made_->tasks[task].sends;
        std::sort(sends.begin(), sends.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return made_->transfers[a].to < made_->transfers[b].to; });
        for (const std::uint32_t t : sends)
          made_->arrivals[std::size_t(made_->transfers[t].to) * devices + d].push_back(t);
      }
    return {};
  }

  /// About how long a task takes, in units that are whole numbers so that all hosts find the same: a FLOP is one.
  std::int64_t guess_of(TaskIndex task) const {
    constexpr std::int64_t kEach = 50'000'000;  // every task: some launches
    constexpr double kMost = 1e15;
    const auto& of = placement().tasks[task];
    const Operator& op = op_of(of.op);
    const double flop = of.role == TaskRole::forward                                  ? op.forward_flop
                        : of.role == TaskRole::update || of.role == TaskRole::weights ? 0
                                                                                      : op.backward_flop;
    return kEach + static_cast<std::int64_t>(
                       std::min(kMost, flop / static_cast<double>(made_->tasks_of[of.op.index].pieces.size())));
  }

  /// Runs all orders without computing: each device its next task once everything that it reads has been made; of
  /// several that could run, the one that could begin first by a guess of their times.
  Expected<void> check_order() {
    constexpr std::int64_t kPerByte = 100;  // some hundred GB/s beside some ten TFLOP/s
    const std::size_t devices = placement().devices;
    std::vector<std::size_t> next(devices, 0);
    std::vector<char> done(made_->tasks.size(), 0);
    std::vector<std::int64_t> free(devices, 0), finish(made_->tasks.size(), 0), place(finish.size(), 0);
    const auto earliest = [&](std::size_t device, TaskIndex task) {
      std::int64_t start = free[device];
      for (const std::uint32_t item : made_->tasks[task].reads) {
        const PlacedItem& read = made_->items[item];
        const std::int64_t away = device_of(read.maker) == device ? 0 : kPerByte * 4 * read.part.elements();
        start = std::max(start, finish[read.maker] + away);
      }
      return start;
    };
    for (std::int64_t run = 0;; ++run) {
      std::size_t chosen = devices;
      std::int64_t start = 0;
      for (std::size_t d = 0; d < devices; ++d) {
        const auto& order = placement().order[d];
        if (next[d] >= order.size() || !ready(order[next[d]], done)) continue;
        if (const std::int64_t at = earliest(d, order[next[d]]); chosen == devices || at < start)
          chosen = d, start = at;
      }
      if (chosen == devices) break;
      const TaskIndex task = placement().order[chosen][next[chosen]++];
      done[task] = 1;
      free[chosen] = finish[task] = start + guess_of(task);
      place[task] = run;
    }
    for (std::size_t d = 0; d < devices; ++d)
      if (next[d] < placement().order[d].size())
        return broken("the orders of the devices wait for each other, first on device " + std::to_string(d),
                      placement().tasks[placement().order[d][next[d]]].op);
    // Whatever needs a transfer is finished behind the task that sends it, so that order breaks no dependence.
    const auto when = [&](std::uint32_t t) {
      const PlacedTransfer& transfer = made_->transfers[t];
      return std::tuple(finish[transfer.task], place[transfer.task], transfer.to);
    };
    for (std::uint32_t t = 0; t < made_->transfers.size(); ++t) made_->transfer_order.push_back(t);
    std::sort(made_->transfer_order.begin(), made_->transfer_order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return when(a) < when(b); });
    return {};
  }

  bool ready(TaskIndex task, const std::vector<char>& done) const {
    for (const std::uint32_t item : made_->tasks[task].reads)
      if (!done[made_->items[item].maker]) return false;
    const auto& of = placement().tasks[task];
    const OperatorTasks& all = made_->tasks_of[of.op.index];
    if (of.role == TaskRole::weights) return true;
    if (of.role == TaskRole::update) return gradients_made(of.op, done);
    // A recurrent operator's steps hand their state, and backward its gradient, to the next.
    const bool walks = op_of(of.op).kind == OperatorKind::recurrent;
    const std::size_t piece = made_->tasks[task].piece;
    if (of.role == TaskRole::forward) {
      const auto before = walks ? all.stepping.before(piece) : std::nullopt;
      return !before || done[all.pieces[*before].forward];
    }
    if (!done[all.pieces[piece].forward]) return false;
    if (!walks || all.stepping.steps == 0) return true;
    if (of.role == TaskRole::weight_gradient) return done[all.pieces[piece].backward] != 0;
    const auto behind = all.stepping.behind(piece);
    return !behind || done[all.pieces[*behind].backward];
  }

  /// All gradients of the weights: of the operator itself and of those tied to it.
  bool gradients_made(OperatorId owner, const std::vector<char>& done) const {
    const auto made_by = [&](OperatorId op) {
      const auto& pieces = made_->tasks_of[op.index].pieces;
      return std::all_of(pieces.begin(), pieces.end(), [&](const PieceTasks& piece) {
        const TaskIndex makes = piece.weights != kNone ? piece.weights : piece.backward;
        return makes == kNone || done[makes];
      });
    };
    bool fine = made_by(owner);
    for (const Tie& tie : made_->program->ties)
      if (tie.owner == owner) fine = fine && made_by(tie.user);
    return fine;
  }

  const Model& model_;
  const Plan& plan_;
  const StepOptions& options_;
  std::shared_ptr<PlacedProgram> made_;
};

}  // namespace

Sight PlacedProgram::sight(OperatorId op, std::size_t input, std::size_t piece) const {
  const Operator& reader = program->model->operators[op];
  const Access& access = reader.inputs[input];
  const auto part = part_of(*program->model, reader, access, tasks_of[op.index].stepping.loops(reader, piece));
  return sight_of(*program->model, access.tensor, *part, unseen[op.index][input]);
}

bool returns_gradient(const Model& model, const Access& access) {
  const Tensor& tensor = model.tensors[access.tensor];
  return tensor.role != TensorRole::parameter && tensor.requires_gradient &&
         model.tensors[storage_of(model, access.tensor)].producer.valid();
}

Expected<std::shared_ptr<const PlacedProgram>> PlacedProgram::make(const StepJob& job, const StepOptions& options) {
  return PlacementMaker(job, options).run();
}

}  // namespace turnpoint::step
