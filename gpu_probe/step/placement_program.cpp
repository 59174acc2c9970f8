// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_program.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace turnpoint::step {

namespace {

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
    if (auto done = add_items(*made_); !done) return done.error();
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
        if (piece.forward == kNone ||
            (piece.backward == kNone && (gives || (trains(model_, op) && piece.weights == kNone))) ||
            (piece.weights == kNone) != (all.pieces[0].weights == kNone))
          return broken("lacks a task", id);
      }
    }
    return {};
  }

  /// Weights lie where they are updated. What reads them is there as well, unless they are sent.
  Expected<void> check_weights() {
    for (const OperatorTasks& all : made_->tasks_of) made_->weights_travel |= all.weights != kNone;
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      for (std::uint32_t k = 0; k < op_of(id).inputs.size(); ++k) {
        if (!reads_parameter(model_, op_of(id).inputs[k])) continue;
        const OperatorId owner = made_->owner_of(id, k).op;
        const TaskIndex update = made_->tasks_of[owner.index].update, held = made_->tasks_of[owner.index].weights;
        if (update == kNone) return refused("has a parameter that is not trained, which cannot be run here", owner);
        if (made_->weights_travel) {
          if (held == kNone) return broken("lacks the task that holds its weights", owner);
          if (device_of(held) != device_of(update))
            return broken("its weights are not on the device that updates them", owner);
          continue;
        }
        for (const PieceTasks& piece : made_->tasks_of[i].pieces)
          for (const TaskIndex task : {piece.forward, piece.backward, piece.weights})
            if (task != kNone && device_of(task) != device_of(update))
              return broken("its tasks are not on the device that holds its weights", id);
      }
    }
    return {};
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
      return broken("device " + std::to_string(key.second) + " reads " + what_is(item) +
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
    return true;
  }

  static const char* what_is(const PlacedItem& item) {
    using What = PlacedItem::What;
    switch (item.what) {
      case What::output:
      case What::weights: return "'";
      case What::gradient:
      case What::weight_gradient:
      case What::hidden_gradient: return "the gradient of '";
      case What::cell: return "the state beside '";
      case What::cell_gradient: return "the gradient of the state beside '";
      case What::gates_gradient: return "the gradients of gates '";
    }
    return "'";
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

bool reads_parameter(const Model& model, const Access& access) {
  return model.tensors[access.tensor].role == TensorRole::parameter;
}

bool trains(const Model& model, const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
    return reads_parameter(model, access) && model.tensors[access.tensor].requires_gradient;
  });
}

std::optional<std::size_t> PlacedProgram::adds_to(OperatorId op, std::size_t piece) const {
  const Stepping& stepping = tasks_of[op.index].stepping;
  auto behind = stepping.behind(piece);
  if (!weights_travel)
    while (behind && stepping.behind(*behind)) behind = stepping.behind(*behind);
  return behind;
}

WeightOwner PlacedProgram::owner_of(OperatorId op, std::uint32_t input) const {
  const std::int32_t number = program->operators[op.index].input_tie[input];
  if (number < 0) return {op, input};
  const Tie& tie = program->ties[static_cast<std::size_t>(number)];
  return {tie.owner, tie.owner_input, tie.turned};
}

Expected<std::shared_ptr<const PlacedProgram>> PlacedProgram::make(const StepJob& job, const StepOptions& options) {
  return PlacementMaker(job, options).run();
}

}  // namespace turnpoint::step
