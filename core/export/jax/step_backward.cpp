// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>

#include "core/export/jax/step_writer.h"

namespace turnpoint::jax {

/// The forward resharding once more, where the plan lists it in backward.
Expected<std::string> StepWriter::repeat(const Way& way, const Tensor& tensor, std::string value,
                                         const std::string& target) {
  if (!way.moves()) return value;
  if (!way.reshard || way.reshard->repeated.empty())
    return bad_input("plan: backward reads a copy of '" + tensor.name + "' that is neither kept nor made again",
                     model_.name);
  return follow(way.reshard->repeated, way.start, tensor, "again(" + value + ")", target, "once more");
}

/// A tensor as its producer left it.
Expected<std::string> StepWriter::produced(std::size_t number) {
  const Flow& flow = ways_.flows[number];
  const OperatorId producer = flow.use->producer;
  const std::string& made = made_[producer.index][flow.use->output];
  if (flow.keeps_source || op_of(producer).kind == OperatorKind::input) return made;
  if (flow.restoring) {
    if (const auto known = restored_.find(number); known != restored_.end()) return known->second;
    const Way& way = *flow.restoring;
    const std::string kept = flow.shared ? shared_[number] : copies_.at({static_cast<int>(number), 0});
    auto there = follow(way.reshard->restored, way.goal, model_.tensors[flow.use->tensor], kept,
                        fmt::format("t{}", flow.use->tensor.index), "back to its producer");
    if (there) restored_[number] = *there;
    return there;
  }
  if (!flow.use->producer_is_view && !ways_.runs_again[producer.index])
    return bad_input("plan: backward reads '" + model_.tensors[flow.use->tensor].name +
                         "', which is neither kept nor computed again",
                     model_.name);
  auto outputs = run_again(producer);
  if (!outputs) return outputs.error();
  return (*outputs)[flow.use->output];
}

/// An operator's input where backward, or a second run, reads it.
Expected<std::string> StepWriter::fetch(OperatorId id, std::size_t input) {
  const auto [at, fresh_one] = fetched_.try_emplace({id.index, input});
  if (!fresh_one) return at->second;
  const auto number = static_cast<std::size_t>(ways_.input_flow[id.index][input]);
  const int reader = ways_.input_reader[id.index][input];
  const Flow& flow = ways_.flows[number];
  const Way& way = flow.ways[static_cast<std::size_t>(reader)];
  const Tensor& tensor = model_.tensors[flow.use->tensor];
  const auto found = [&](std::string value) {
    fetched_[{id.index, input}] = value;
    return value;
  };
  if (way.saved && way.moves() && way.keeps_copy()) return found(copies_.at({static_cast<int>(number), reader}));
  std::string source;
  if (!flow.shared) {
    auto value = produced(number);
    if (!value) return value.error();
    source = *value;
  } else if (!flow.shared->moves() ? flow.keeps_source : flow.shared->saved && flow.shared->keeps_copy()) {
    source = shared_[number];
  } else {
    const auto known = shared_again_.find(number);
    if (known != shared_again_.end()) {
      source = known->second;
    } else {
      auto value = produced(number);
      if (!value) return value.error();
      value = repeat(*flow.shared, tensor, *value, fmt::format("s{}", flow.use->tensor.index));
      if (!value) return value.error();
      source = shared_again_[number] = *value;
    }
  }
  auto value = repeat(way, tensor, source, name("x", id.index, input));
  return value ? Expected<std::string>(found(*value)) : value;
}

/// One more run of an operator in backward; of a view only its input is needed.
Expected<std::vector<std::string>> StepWriter::run_again(OperatorId id) {
  if (const auto known = again_.find(id.index); known != again_.end()) return known->second;
  const Operator& op = op_of(id);
  auto inputs = weights(id, false, true);
  if (!inputs) return inputs.error();
  again_weights_[id.index] = *inputs;
  bool barred = op.is_view();
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    if (!(*inputs)[k].empty()) continue;
    auto value = fetch(id, k);
    if (!value) return value.error();
    (*inputs)[k] = barred ? *value : "again(" + *value + ")";
    barred = true;
  }
  std::vector<std::string> outputs, all(op.outputs.size());
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    if (made_[id.index][o].empty()) continue;
    all[o] = fresh(made_[id.index][o] + "_b");
    outputs.push_back(all[o]);
  }
  lines_.comment(comment_of(id, op.is_view() ? "seen again: " : "runs again: "));
  write_forward(place_of(id), {*inputs, outputs, {}, {}}, lines_);
  return again_[id.index] = all;
}

/// The gradients of an operator's outputs in its own layout, from all readers and from the loss; empty: none.
Expected<std::vector<std::string>> StepWriter::output_gradients(OperatorId id) {
  const Operator& op = op_of(id);
  std::vector<std::string> gradients(op.outputs.size());
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    const Tensor& tensor = tensor_of(op.outputs[o]);
    if (made_[id.index][o].empty() || !tensor.requires_gradient) continue;
    const std::string target = fmt::format("g{}", op.outputs[o].tensor.index);
    const int number = ways_.output_flow[id.index][o];
    std::vector<std::string> sum;
    if (number >= 0) {
      const auto& met = sums_[static_cast<std::size_t>(number)];
      const Flow& flow = ways_.flows[static_cast<std::size_t>(number)];
      if (!met.empty() && flow.shared && flow.shared->reshard && !flow.shared->reshard->gradient.empty()) {
        std::string value = met.front();
        if (met.size() > 1) {
          value = fresh(target + "_met");
          lines_.add(fmt::format("{} = {}", value, fmt::join(met, " + ")));
        }
        auto there = follow(flow.shared->reshard->gradient, flow.shared->read, tensor, value, target,
                            "gradient to its producer");
        if (!there) return there.error();
        sum = {*there};
      } else {
        sum = met;
      }
    }
    const Place place = place_of(id);
    for (const TensorId result : model_.results)
      if (result == op.outputs[o].tensor && is_floating(tensor.type))
        sum.push_back(tensor.shape.empty() ? "jnp.ones((), jnp.float32)" : weighing(place, o));
    if (sum.empty()) continue;
    gradients[o] = sum.front();
    if (sum.size() == 1 && sum.front().find('(') == std::string::npos) continue;
    gradients[o] = fresh(target);
    lines_.add(fmt::format("{} = {}", gradients[o], fmt::join(sum, " + ")));
  }
  return gradients;
}

/// What arrives whole, where others are still partial sums, is added by one device only.
std::string StepWriter::by_one(const Layout& meeting, const Way& way, const std::string& gradient) const {
  const std::uint32_t arrives = way.meets ? way.read.mask(Layout::kPartial) : 0;
  const std::uint32_t axes = meeting.mask(Layout::kPartial) & ~arrives;
  return axes ? fmt::format("once({}, {})", gradient, axis_list(plan_.mesh, axes)) : gradient;
}

/// Brings an input's gradient to where the tensor's gradients are summed.
Expected<void> StepWriter::send(OperatorId id, std::size_t input, std::string gradient) {
  if (ways_.uses.owns_parameter[id.index][input]) {
    weight_sums_[{id.index, input}].push_back(gradient);
    return {};
  }
  if (const int number = ways_.input_tie[id.index][input]; number >= 0) {
    const Tie& tie = ways_.ties[static_cast<std::size_t>(number)];
    const Access& held = op_of(tie.use->owner).inputs[tie.use->owner_input];
    if (tie.turned) gradient += ".T";
    if (!tie.way.meets && tie.way.reshard) {
      auto there = follow(tie.way.reshard->gradient, tie.way.read, tensor_of(held), gradient,
                          name("gw", id.index, input), "gradient of a tied weight");
      if (!there) return there.error();
      gradient = *there;
    }
    const Layout from = gradient_layout(op_of(tie.use->owner), held, false, plan_.operators[tie.use->owner.index].split,
                                        plan_.mesh.count());
    weight_sums_[{tie.use->owner.index, tie.use->owner_input}].push_back(by_one(from, tie.way, gradient));
    return {};
  }
  const auto number = static_cast<std::size_t>(ways_.input_flow[id.index][input]);
  const Flow& flow = ways_.flows[number];
  const Way& way = flow.ways[static_cast<std::size_t>(ways_.input_reader[id.index][input])];
  if (!way.meets && way.reshard) {
    auto there = follow(way.reshard->gradient, way.read, model_.tensors[flow.use->tensor], gradient,
                        name("gx", id.index, input), "gradient to its producer");
    if (!there) return there.error();
    gradient = *there;
  }
  sums_[number].push_back(by_one(flow.meeting(), way, gradient));
  return {};
}

Expected<void> StepWriter::backward(OperatorId id) {
  const Operator& op = op_of(id);
  auto gradients = output_gradients(id);
  if (!gradients) return gradients.error();
  const bool any = std::any_of(gradients->begin(), gradients->end(), [](const auto& g) { return !g.empty(); });
  if (any && op.kind != OperatorKind::input) {
    Values values;
    values.inputs.resize(op.inputs.size());
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (tensor_of(op.inputs[k]).role == TensorRole::parameter || !op.inputs[k].saved) continue;
      auto value = fetch(id, k);
      if (!value) return value.error();
      values.inputs[k] = *value;
    }
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      if (made_[id.index][o].empty()) continue;
      values.gradients.push_back((*gradients)[o]);
      values.outputs.push_back(made_[id.index][o]);
      const int number = ways_.output_flow[id.index][o];
      if (!op.outputs[o].saved || number < 0) continue;
      auto value = produced(static_cast<std::size_t>(number));
      if (!value) return value.error();
      values.outputs.back() = *value;
    }
    lines_.comment(comment_of(id, "gradient of "));
    auto held = again_weights_.contains(id.index) ? again_weights_.at(id.index) : weights(id, true, false);
    if (!held) return held.error();
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (values.inputs[k].empty()) values.inputs[k] = (*held)[k];
      const bool wanted = tensor_of(op.inputs[k]).requires_gradient;
      const bool weight = ways_.input_flow[id.index][k] < 0;
      values.results.push_back(wanted ? fresh(name(weight ? "gw" : "gx", id.index, k)) : std::string());
    }
    write_backward(place_of(id), values, lines_);
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (!values.results[k].empty())
        if (auto done = send(id, k, values.results[k]); !done) return done;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].op == id) synchronise(g);
  return {};
}

/// Sums a group's gradients by the plan's steps, as one run where it is cut or has several parameters.
void StepWriter::synchronise(std::size_t number) {
  const WeightGroup& group = groups_[number];
  const Operator& op = op_of(group.op);
  std::vector<std::string> gradients, names;
  for (const auto k : group.inputs) {
    const auto& sum = weight_sums_[{group.op.index, k}];
    const Place place = place_of(group.op);
    gradients.push_back(sum.empty() ? fmt::format("jnp.zeros({}, jnp.float32)", tuple_of(place.shape(op.inputs[k])))
                                    : fmt::format("{}", fmt::join(sum, " + ")));
    names.push_back(escaped(tensor_of(op.inputs[k]).name));
  }
  lines_.comment("gradient of the weights " + joined(names));
  const std::string target = fmt::format("gradient{}", number);
  const bool run = group.cut() || (group.reduced && gradients.size() > 1);
  const std::string list = fmt::format("({}{})", joined(gradients), gradients.size() == 1 ? "," : "");
  if (!run) {
    if (!group.reduced) return lines_.add(fmt::format("{} = {}", target, list));
    return lines_.add(
        fmt::format("{} = (all_reduce({}, {}),)", target, gradients.front(), axis_list(plan_.mesh, group.reduced)));
  }
  lines_.add(fmt::format("{} = pack(GROUPS[{}], {})", target, number, list));
  for (const ReshardStep& step : group.steps->sync) {
    const std::string axes = axis_list(plan_.mesh, step.axes);
    const char* call = step.move == ReshardMove::all_reduce ? "all_reduce({0}, {1})"
                       : step.move == ReshardMove::slice    ? "part({0}, 0, {1})"
                                                            : "reduce_scatter({0}, 0, {1})";
    lines_.add(fmt::format("{} = {}", target, fmt::format(fmt::runtime(call), target, axes)));
  }
  if (!group.cut()) lines_.add(fmt::format("{0} = unpack(GROUPS[{1}], {0})", target, number));
}

void StepWriter::update(std::size_t number) {
  const WeightGroup& group = groups_[number];
  const int states = optimizer_state_bytes(scenario_.settings.optimizer) / 4;
  const std::string none = group.cut() ? "None" : "()";
  const std::string first = states > 0 ? fmt::format("first[{}]", number) : none,
                    second = states > 1 ? fmt::format("second[{}]", number) : none,
                    made = fmt::format("new_weights{0}, new_first{0}, new_second{0}", number);
  lines_.comment("update of " + escaped(op_of(group.op).name));
  if (!group.cut())
    return lines_.add(
        fmt::format("{} = update_each(weights[{}], gradient{}, {}, {}, rate)", made, number, number, first, second));
  std::string own = fmt::format("weights[{}]", number);
  if (!group.weights_cut())
    own = fmt::format("part(pack(GROUPS[{0}], {1}), 0, {2})", number, own, group.order(plan_.mesh));
  lines_.add(fmt::format("{} = update({}, gradient{}, {}, {}, rate)", made, own, number, first, second));
  if (!group.weights_cut())
    lines_.add(fmt::format("new_weights{0} = unpack(GROUPS[{0}], all_gather(new_weights{0}, 0, {1}))", number,
                           group.order(plan_.mesh)));
}

}  // namespace turnpoint::jax
