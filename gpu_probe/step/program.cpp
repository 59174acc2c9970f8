// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/program.h"

#include <algorithm>
#include <map>
#include <string>

#include "gpu_probe/step/program_parts.h"

namespace turnpoint::step {

namespace {

// The largest tensor that is laid out here: a step of real numbers, not an estimate.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

class Maker {
 public:
  Maker(const Model& model, const Plan& plan, StepOptions options)
      : model_(model), plan_(plan), axes_(plan.mesh.count()), program_(std::make_shared<Program>()) {
    program_->model = &model;
    program_->plan = &plan;
    program_->options = std::move(options);
  }

  Expected<std::shared_ptr<const Program>> run() {
    if (plan_.pipeline) return bad("is a pipeline, which is no single step");
    if (plan_.operators.size() != model_.operators.size()) return bad("has another number of operators than the model");
    if (plan_.mesh.devices() > 4096) return bad("has more devices than ranks can be made");
    for (const auto& tensor : model_.tensors)
      if (tensor.elements() > kMaxElements) return bad("has a tensor too large to execute: '" + tensor.name + "'");
    for (const auto& reshard : plan_.reshards) left_.push_back(&reshard);
    for (std::size_t i = 0; i < model_.operators.size(); ++i)
      if (auto done = add_operator(OperatorId(i)); !done) return done.error();
    const auto kept = readers_keep(model_);
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      mark_runs_again(*program_, OperatorId(i));
      if (auto done = add_flows(OperatorId(i), kept); !done) return done.error();
    }
    if (auto done = add_ties(); !done) return done.error();
    for (std::size_t i = 0; i < model_.operators.size(); ++i)
      if (auto done = add_parameters(*program_, OperatorId(i)); !done) return done.error();
    for (const auto* reshard : left_)
      if (reshard)
        return bad("has a resharding of '" + model_.tensors[reshard->tensor].name + "' that nobody asked for");
    return std::shared_ptr<const Program>(std::move(program_));
  }

 private:
  Error bad(const std::string& what) const { return bad_input("plan " + what, model_.name); }
  Error bad_at(const std::string& at, const std::string& what) const {
    return bad_input("plan: " + what, model_.name + ": " + at);
  }

  Expected<void> add_operator(OperatorId id) {
    const Operator& op = model_.operators[id];
    const PlanOperator& planned = plan_.operators[id.index];
    OperatorProgram result;
    result.split = planned.split;
    result.choice = planned.choice;
    std::vector<std::int64_t> parts(op.dims.size(), 1);
    for (int a = 0; a < axes_; ++a) {
      const int loop = planned.split.axis[static_cast<std::size_t>(a)];
      if (loop < 0) continue;
      if (static_cast<std::size_t>(loop) >= op.dims.size()) return bad_at(op.name, "splits a dimension it has not");
      parts[static_cast<std::size_t>(loop)] *= plan_.mesh.axes[static_cast<std::size_t>(a)].size;
      if (op.dims[static_cast<std::size_t>(loop)].size % parts[static_cast<std::size_t>(loop)] != 0)
        return bad_at(op.name, "splits a dimension into parts that are not equal");
    }
    for (const auto& access : op.inputs)
      result.inputs.push_back(gradient_layout(op, access, false, planned.split, axes_));
    for (const auto& access : op.outputs) {
      result.outputs.push_back(forward_layout(op, access, true, planned.split, axes_));
      result.sum_axes |= result.outputs.back().mask(Layout::kPartial);
      if (access.saved && result.outputs.back().has_partial()) return bad_at(op.name, "keeps a partial sum");
    }
    result.input_flow.assign(op.inputs.size(), -1);
    result.input_way.assign(op.inputs.size(), -1);
    result.input_tie.assign(op.inputs.size(), -1);
    result.owned.assign(op.inputs.size(), false);
    const auto is_parameter = [&](const Access& access) {
      return model_.tensors[access.tensor].role == TensorRole::parameter;
    };
    const bool reads_any = std::any_of(op.inputs.begin(), op.inputs.end(),
                                       [&](const Access& access) { return access.saved && is_parameter(access); });
    for (const Access& access : op.inputs) result.along.push_back(reads_any && !access.saved && is_parameter(access));
    result.output_flow.assign(op.outputs.size(), -1);
    if (op.kind != OperatorKind::input) {
      const auto kernel = arithmetic().kernel_of(model_, id);
      if (!kernel) return kernel.error();
      result.kernel = *kernel;
    }
    program_->operators.push_back(std::move(result));
    return {};
  }

  const PlanReshard* take(TensorId tensor, OperatorId consumer, const Layout& from, const Layout* to) {
    for (auto& candidate : left_) {
      if (!candidate || candidate->tensor != tensor || candidate->consumer != consumer) continue;
      if (candidate->from != from || (to && candidate->to != *to)) continue;
      return std::exchange(candidate, nullptr);
    }
    return nullptr;
  }

  // Checks that the steps lead from one layout to another; what each does is checked when it is executed.
  static bool leads(const std::vector<ReshardStep>& steps, const Layout& from, const Layout& to) {
    return steps.empty() ? from == to : steps.back().result == to;
  }

  Expected<Way> make_way(const std::string& at, const Tensor& tensor, const Layout& from, bool from_output,
                         const Layout& read, bool saved, const PlanReshard* reshard, bool producer_reads = false) {
    Way way;
    way.from = from;
    way.start = from_output ? from : from.without_partial();
    way.goal = read.without_partial();
    way.read = read;
    way.saved = saved;
    way.reshard = reshard;
    way.meets = !from_output && gradients_meet(from, read);
    way.gradient = tensor.requires_gradient;
    const bool moves_gradient = way.gradient && !way.meets;
    if (!reshard) {
      if (way.moves() || (moves_gradient && read != from.without_partial()))
        return bad_at(at, "a needed resharding is missing");
      return way;
    }
    if (!leads(reshard->forward, way.start, way.goal))
      return bad_at(at, "the steps do not end in the layout that is read");
    const bool repeats = way.moves() && (reshard->keep == Keep::before || reshard->keep == Keep::again);
    if (reshard->repeated.size() != (repeats ? reshard->forward.size() : 0) ||
        (repeats && !leads(reshard->repeated, way.start, way.goal)))
      return bad_at(at, "backward does not repeat the resharding");
    way.restores = producer_reads && saved && way.moves() && reshard->keep == Keep::after;
    if (way.restores && reshard->restored.empty())
      return bad_at(at, "the producer's copy is neither kept nor made again");
    if (way.restores ? !leads(reshard->restored, way.goal, way.start) : !reshard->restored.empty())
      return bad_at(at, "brings back a copy that nobody reads");
    if (moves_gradient && !leads(reshard->gradient, read, from.without_partial()))
      return bad_at(at, "the gradient does not come back to where it belongs");
    if (!moves_gradient && !reshard->gradient.empty()) return bad_at(at, "moves a gradient nobody needs");
    if (saved && way.moves() && reshard->keep == Keep::none)
      return bad_at(at, "backward reads a copy that is not kept");
    return way;
  }

  Expected<void> add_flows(OperatorId id, const std::vector<bool>& kept) {
    const Operator& op = model_.operators[id];
    for (std::uint32_t o = 0; o < op.outputs.size(); ++o) {
      const Tensor& tensor = model_.tensors[op.outputs[o].tensor];
      if (tensor.role == TensorRole::internal) continue;
      Flow flow;
      flow.tensor = op.outputs[o].tensor;
      flow.producer = id;
      flow.output = o;
      flow.producer_saves = op.outputs[o].saved;
      flow.of_view = op.is_view();
      flow.produced = program_->operators[id.index].outputs[o];
      flow.consumers = model_.uses[flow.tensor];
      std::vector<bool> saves;
      for (const auto& use : flow.consumers) {
        const Operator& consumer = model_.operators[use.op];
        const bool passed_on = consumer.is_view() && std::any_of(consumer.outputs.begin(), consumer.outputs.end(),
                                                                 [&](const Access& a) { return kept[a.tensor.index]; });
        saves.push_back(consumer.inputs[use.input].saved || passed_on);
      }
      const bool producer_reads =
          flow.producer_saves && !flow.of_view && tensor.requires_gradient && !program_->operators[id.index].runs_again;
      if (auto done =
              add_shared(flow, tensor, std::find(saves.begin(), saves.end(), true) != saves.end(), producer_reads);
          !done)
        return done;
      const auto number = static_cast<std::int32_t>(program_->flows.size());
      for (std::size_t c = 0; c < flow.consumers.size(); ++c) {
        const auto& use = flow.consumers[c];
        OperatorProgram& consumer = program_->operators[use.op.index];
        const Layout from = flow.shared ? flow.shared->read : flow.produced, read = consumer.inputs[use.input];
        auto way = make_way(tensor.name + " -> " + model_.operators[use.op].name, tensor, from, !flow.shared, read,
                            saves[c], take(flow.tensor, use.op, from, &read), producer_reads && !flow.shared);
        if (!way) return way.error();
        flow.ways.push_back(std::move(*way));
        consumer.input_flow[use.input] = number;
        consumer.input_way[use.input] = static_cast<std::int32_t>(c);
      }
      program_->operators[id.index].output_flow[o] = number;
      program_->flows.push_back(std::move(flow));
    }
    return {};
  }

  // Several readers, or an entry without consumer: one copy is made that all take it from.
  Expected<void> add_shared(Flow& flow, const Tensor& tensor, bool saved, bool producer_reads) {
    const PlanReshard* reshard = take(flow.tensor, OperatorId(), flow.produced, nullptr);
    if (flow.consumers.size() < 2 && !reshard) return {};
    const Layout shared = reshard ? reshard->to : flow.produced.without_partial();
    auto way = make_way(tensor.name, tensor, flow.produced, true, shared, saved, reshard, producer_reads);
    if (!way) return way.error();
    flow.shared = std::move(*way);
    return {};
  }

  Expected<void> add_ties() {
    const auto found = find_ties(model_, *program_);
    if (!found) return found.error();
    for (Tie tie : *found) {
      const Operator &owner = model_.operators[tie.owner], &user = model_.operators[tie.user];
      const Tensor& held = model_.tensors[owner.inputs[tie.owner_input].tensor];
      const Layout from = program_->operators[tie.owner.index].inputs[tie.owner_input];
      Layout to = program_->operators[tie.user.index].inputs[tie.user_input];
      for (auto& value : to.axis)
        if (tie.turned && value >= 0) value = static_cast<std::int8_t>(1 - value);
      auto way = make_way(owner.name + " = " + user.name, held, from, false, to, true,
                          take(owner.inputs[tie.owner_input].tensor, tie.user, from, &to));
      if (!way) return way.error();
      tie.way = std::move(*way);
      program_->operators[tie.user.index].input_tie[tie.user_input] = static_cast<std::int32_t>(program_->ties.size());
      program_->ties.push_back(std::move(tie));
    }
    return {};
  }

  const Model& model_;
  const Plan& plan_;
  int axes_;
  std::shared_ptr<Program> program_;
  std::vector<const PlanReshard*> left_;
};

}  // namespace

Expected<std::shared_ptr<const Program>> Program::make(const Model& model, const Plan& plan, StepOptions options) {
  return Maker(model, plan, std::move(options)).run();
}

}  // namespace turnpoint::step
