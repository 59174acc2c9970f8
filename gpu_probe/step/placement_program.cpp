// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_program.h"

#include <algorithm>
#include <set>
#include <string>

namespace turnpoint::step::TURNPOINT_REAL {

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

  Expected<void> find_tasks() {
    made_->tasks_of.resize(model_.operators.size());
    made_->tasks.resize(placement().tasks.size());
    for (TaskIndex t = 0; t < placement().tasks.size(); ++t) {
      const auto& task = placement().tasks[t];
      OperatorTasks& all = made_->tasks_of[task.op.index];
      if (task.role == TaskRole::accumulate)
        return refused("a placement of several micro-batches cannot be run: whole operators run once a step here",
                       task.op);
      TaskIndex& place = task.role == TaskRole::forward    ? all.forward
                         : task.role == TaskRole::backward ? all.backward
                         : task.role == TaskRole::update   ? all.update
                                                           : all.weights;
      if (place != kNone)
        return refused(
            op_of(task.op).kind == OperatorKind::recurrent || op_of(task.op).kind == OperatorKind::elementwise
                ? "a placement of single time steps of recurrent operators cannot be run: whole operators "
                  "run once a step here"
                : "the placement runs it more than once a step",
            task.op);
      place = t;
    }
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
        if (all.forward != kNone || all.backward != kNone) return broken("a view has a task", id);
        continue;
      }
      const bool gives = std::any_of(op.inputs.begin(), op.inputs.end(),
                                     [&](const Access& access) { return returns_gradient(model_, access); });
      if (all.forward == kNone || (all.backward == kNone && (gives || (trains(op) && all.weights == kNone))))
        return broken("lacks a task", id);
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
        const OperatorTasks& all = made_->tasks_of[i];
        for (const TaskIndex task : {all.forward, all.backward, all.weights})
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

  void add_items() {
    made_->outputs.resize(model_.operators.size());
    made_->gives.resize(model_.operators.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = op_of(OperatorId(i));
      if (op.is_view()) continue;
      for (std::uint32_t o = 0; o < op.outputs.size(); ++o)
        made_->outputs[i].push_back(
            add_item({false, OperatorId(i), o, op.outputs[o].tensor, made_->tasks_of[i].forward}));
    }
    for (std::size_t i = model_.operators.size(); i-- > 0;) {
      const Operator& op = op_of(OperatorId(i));
      if (op.is_view()) continue;
      for (const Access& access : op.inputs) {
        if (!returns_gradient(model_, access)) continue;
        const TensorId stored = storage_of(model_, access.tensor);
        if (made_->gives[i].contains(stored)) continue;
        const std::uint32_t item = add_item({true, OperatorId(i), 0, stored, made_->tasks_of[i].backward});
        made_->gives[i][stored] = item;
        made_->gradients[stored].push_back(item);
      }
    }
  }

  /// The item that holds what an access reads; nothing where no operator made it.
  const std::uint32_t* stored_item(const Access& access) const {
    const TensorId stored = storage_of(model_, access.tensor);
    const OperatorId producer = model_.tensors[stored].producer;
    if (!producer.valid() || reads_parameter(model_, access)) return nullptr;
    const auto& outputs = op_of(producer).outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].tensor == stored) return &made_->outputs[producer.index][o];
    return nullptr;
  }

  void reads(TaskIndex task, std::uint32_t item) {
    auto& list = made_->tasks[task].reads;
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  void add_reads() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = op_of(OperatorId(i));
      const OperatorTasks& all = made_->tasks_of[i];
      if (op.is_view()) continue;
      for (const Access& access : op.inputs)
        if (const auto* item = stored_item(access)) reads(all.forward, *item);
      for (const TaskIndex task : {all.backward, all.weights}) {
        if (task == kNone) continue;
        // The gradient of a product's input is made of the weights and the output's gradient alone.
        const bool weights_only = task == all.backward && all.weights != kNone && op.kind != OperatorKind::recurrent;
        for (const Access& access : op.inputs)
          if (const auto* item = stored_item(access); item && access.saved && !weights_only) reads(task, *item);
        for (std::size_t o = 0; o < op.outputs.size(); ++o) {
          if (op.outputs[o].saved) reads(task, made_->outputs[i][o]);
          const auto gradients = made_->gradients.find(op.outputs[o].tensor);
          if (gradients == made_->gradients.end()) continue;
          for (const std::uint32_t item : gradients->second) reads(task, item);
        }
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
      for (const std::uint32_t item : transfer.items)
        transfer.elements += model_.tensors[made_->items[item].tensor].elements();
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

  /// Runs all orders without computing: each device its next task once everything that it reads has been made.
  Expected<void> check_order() {
    std::vector<std::size_t> next(placement().devices, 0);
    std::vector<char> done(made_->tasks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t d = 0; d < placement().devices; ++d) {
        const auto& order = placement().order[d];
        while (next[d] < order.size() && ready(order[next[d]], done)) done[order[next[d]++]] = 1, moved = true;
      }
    }
    for (std::uint32_t d = 0; d < placement().devices; ++d)
      if (next[d] < placement().order[d].size())
        return broken("the orders of the devices wait for each other, first on device " + std::to_string(d),
                      placement().tasks[placement().order[d][next[d]]].op);
    return {};
  }

  bool ready(TaskIndex task, const std::vector<char>& done) const {
    for (const std::uint32_t item : made_->tasks[task].reads)
      if (!done[made_->items[item].maker]) return false;
    const auto& of = placement().tasks[task];
    if (of.role == TaskRole::backward || of.role == TaskRole::weight_gradient)
      return done[made_->tasks_of[of.op.index].forward] != 0;
    if (of.role != TaskRole::update) return true;
    // All gradients of the weights: of the operator itself and of those tied to it.
    const auto gradient_made = [&](OperatorId op) {
      const OperatorTasks& all = made_->tasks_of[op.index];
      const TaskIndex makes = all.weights != kNone ? all.weights : all.backward;
      return makes == kNone || done[makes];
    };
    bool fine = gradient_made(of.op);
    for (const Tie& tie : made_->program->ties)
      if (tie.owner == of.op) fine = fine && gradient_made(tie.user);
    return fine;
  }

  const Model& model_;
  const Plan& plan_;
  const StepOptions& options_;
  std::shared_ptr<PlacedProgram> made_;
};

}  // namespace

std::vector<OperatorId> views_before(const Model& model, TensorId read) {
  std::vector<OperatorId> views;
  for (OperatorId producer = model.tensors[read].producer; producer.valid() && model.operators[producer].is_view();
       producer = model.tensors[read].producer) {
    views.push_back(producer);
    read = model.operators[producer].inputs.front().tensor;
  }
  std::reverse(views.begin(), views.end());
  return views;
}

bool returns_gradient(const Model& model, const Access& access) {
  const Tensor& tensor = model.tensors[access.tensor];
  return tensor.role != TensorRole::parameter && tensor.requires_gradient &&
         model.tensors[storage_of(model, access.tensor)].producer.valid();
}

Expected<std::shared_ptr<const PlacedProgram>> PlacedProgram::make(const StepJob& job, const StepOptions& options) {
  return PlacementMaker(job, options).run();
}

}  // namespace turnpoint::step::TURNPOINT_REAL
