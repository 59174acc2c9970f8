// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <cassert>

#include "core/export/jax/step_writer.h"
#include "core/model/operator_kind.h"

namespace turnpoint::jax {

StepWriter::StepWriter(const Scenario& scenario, const Plan& plan, const Ways& ways,
                       const std::vector<WeightGroup>& groups, const std::vector<DataArray>& data)
    : scenario_(scenario),
      model_(*scenario.model),
      plan_(plan),
      ways_(ways),
      groups_(groups),
      data_(data),
      made_(model_.operators.size()),
      shared_(ways.flows.size()),
      sums_(ways.flows.size()),
      reads_(groups.size(), 0) {}

std::string StepWriter::name(const char* letter, std::size_t first, std::size_t second) {
  return fmt::format("{}{}_{}", letter, first, second);
}

/// A name that no other value of the step has.
std::string StepWriter::fresh(const std::string& wanted) {
  const int before = taken_[wanted]++;
  return before == 0 ? wanted : fmt::format("{}_again{}", wanted, before == 1 ? "" : std::to_string(before));
}

std::string StepWriter::comment_of(OperatorId id, const char* what) const {
  const Operator& op = op_of(id);
  std::string split = describe(plan_.mesh, plan_.operators[id.index].split, op);
  for (std::size_t at; (at = split.find(" \u00b7")) != std::string::npos;) split.replace(at, 3, ",");
  return fmt::format("{}{} ({}): {}", what, escaped(op.name), record_of(op.kind).name, split);
}

std::size_t StepWriter::group_of(OperatorId id, std::size_t input) const {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const WeightGroup& group) {
    return group.op == id && std::find(group.inputs.begin(), group.inputs.end(), input) != group.inputs.end();
  });
  assert(found != groups_.end());  // every parameter that an operator owns is in one of its groups
  return static_cast<std::size_t>(found - groups_.begin());
}

/// Assigns the weights of a group, gathered where they are cut.
void StepWriter::read_group(std::size_t group, const std::string& suffix) {
  const WeightGroup& read = groups_[group];
  std::vector<std::string> names;
  for (const auto k : read.inputs) names.push_back(name("w", read.op.index, k) + suffix);
  const std::string targets = joined(names) + (names.size() == 1 ? "," : "");
  if (!read.weights_cut()) return lines_.add(fmt::format("{} = weights[{}]", targets, group));
  const std::string held = fmt::format("weights[{}]", group);
  const std::string run = fmt::format("run{}", group);
  lines_.add(fmt::format("{} = all_gather({}, 0, {})", run, reads_[group] > 0 ? "again(" + held + ")" : held,
                         read.order(plan_.mesh)));
  lines_.add(fmt::format("{} = unpack(GROUPS[{}], {})", targets, group, run));
  ++reads_[group];
}

/// The weights that an operator reads now: all in forward and where it runs again, in backward those it saves and what
/// is fetched along with them.
Expected<std::vector<std::string>> StepWriter::weights(OperatorId id, bool backward_only, bool rerun) {
  const Operator& op = op_of(id);
  std::vector<std::string> values(op.inputs.size());
  const auto want = [&](std::size_t k) { return !backward_only || op.inputs[k].saved || ways_.along[id.index][k]; };
  const bool in_forward = !backward_only && !rerun;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const WeightGroup& group = groups_[g];
    if (group.op != id || std::none_of(group.inputs.begin(), group.inputs.end(), want)) continue;
    if (backward_only && group.weights_cut() &&
        std::none_of(group.inputs.begin(), group.inputs.end(), [&](std::uint32_t k) { return op.inputs[k].saved; })) {
      lines_.comment(fmt::format("the plan gathers weights[{}] once more here; no line reads it", g));
      continue;
    }
    std::string suffix;
    if (in_forward || group.weights_cut()) {
      suffix =
          fresh(name("w", id.index, group.inputs.front())).substr(name("w", id.index, group.inputs.front()).size());
      read_group(g, suffix);
    }
    for (const auto k : group.inputs) values[k] = name("w", id.index, k) + suffix;
  }
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (ways_.input_tie[id.index][k] >= 0 && want(k))
      if (auto done = read_tied(id, k, in_forward, values); !done) return done.error();
  return values;
}

Expected<void> StepWriter::read_tied(OperatorId id, std::size_t input, bool in_forward,
                                     std::vector<std::string>& values) {
  const int number = ways_.input_tie[id.index][input];
  const Tie& tie = ways_.ties[static_cast<std::size_t>(number)];
  const OperatorId owner = tie.use->owner;
  const Tensor& held = tensor_of(op_of(owner).inputs[tie.use->owner_input]);
  std::string value = name("w", owner.index, tie.use->owner_input);
  const std::size_t group = group_of(owner, tie.use->owner_input);
  if (!in_forward && tie.way.moves()) {
    value = tie_copies_.at(number);
  } else {
    if (groups_[group].weights_cut()) {
      const std::string suffix = fresh(value).substr(value.size());
      read_group(group, suffix);
      value += suffix;
    }
    if (tie.way.moves()) {
      auto moved_there =
          follow(tie.way.reshard->forward, tie.way.start, held, value, name("w", id.index, input), "tied weight");
      if (!moved_there) return moved_there.error();
      value = *moved_there;
      tie_copies_[number] = value;
    }
  }
  values[input] = tie.turned ? value + ".T" : value;
  return {};
}

/// The steps of a resharding, a line each; the last one assigns `target`.
Expected<std::string> StepWriter::follow(const std::vector<ReshardStep>& steps, Layout from, const Tensor& tensor,
                                         std::string value, const std::string& target, const std::string& what) {
  if (!steps.empty()) lines_.comment(fmt::format("{}: {}", escaped(tensor.name), what));
  for (const ReshardStep& step : steps) {
    const auto made = moved(plan_.mesh, tensor, from, step, value);
    if (!made) return made.error();
    value = fresh(target);
    lines_.add(value + " = " + *made);
    from = step.result;
  }
  return value;
}

/// What an operator reads of a tensor in forward.
Expected<std::string> StepWriter::activation(OperatorId id, std::size_t input) {
  const int number = ways_.input_flow[id.index][input], reader = ways_.input_reader[id.index][input];
  const Flow& flow = ways_.flows[static_cast<std::size_t>(number)];
  const Way& way = flow.ways[static_cast<std::size_t>(reader)];
  std::string value =
      flow.shared ? shared_[static_cast<std::size_t>(number)] : made_[flow.use->producer.index][flow.use->output];
  if (!way.reshard) return value;
  const Tensor& tensor = model_.tensors[flow.use->tensor];
  auto there = follow(way.reshard->forward, way.start, tensor, value, name("x", id.index, input), "to its reader");
  if (there) copies_[{number, reader}] = *there;
  return there;
}

Expected<void> StepWriter::forward(OperatorId id) {
  const Operator& op = op_of(id);
  auto& made = made_[id.index];
  for (const Access& access : op.outputs)
    made.push_back(tensor_of(access).role == TensorRole::internal ? std::string()
                                                                  : fmt::format("t{}", access.tensor.index));
  if (op.kind == OperatorKind::input) {
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      for (std::size_t d = 0; d < data_.size(); ++d)
        if (data_[d].tensor == op.outputs[o].tensor) lines_.add(fmt::format("{} = data[{}]", made[o], d));
  } else {
    lines_.comment(comment_of(id, ""));
    auto inputs = weights(id, false, false);
    if (!inputs) return inputs.error();
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!(*inputs)[k].empty()) continue;
      auto value = activation(id, k);
      if (!value) return value.error();
      (*inputs)[k] = *value;
    }
    std::vector<std::string> outputs;
    for (const auto& output : made)
      if (!output.empty()) outputs.push_back(output);
    write_forward(place_of(id), {*inputs, outputs, {}, {}}, lines_);
  }
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    if (made[o].empty()) continue;
    add_loss(id, o);
    const int number = ways_.output_flow[id.index][o];
    if (number < 0) continue;
    const Flow& flow = ways_.flows[static_cast<std::size_t>(number)];
    if (!flow.shared) continue;
    std::string& shared = shared_[static_cast<std::size_t>(number)];
    shared = made[o];
    if (!flow.shared->reshard) continue;
    auto there = follow(flow.shared->reshard->forward, flow.shared->start, tensor_of(op.outputs[o]), shared,
                        fmt::format("s{}", flow.use->tensor.index), "to all its readers");
    if (!there) return there.error();
    shared = *there;
  }
  return {};
}

/// Summands of a result all count in the loss, of copies the first.
void StepWriter::add_loss(OperatorId id, std::size_t output) {
  const Operator& op = op_of(id);
  const Tensor& tensor = tensor_of(op.outputs[output]);
  const Layout layout =
      forward_layout(op, op.outputs[output], true, plan_.operators[id.index].split, plan_.mesh.count());
  std::uint32_t copies = 0;
  for (int a = 0; a < plan_.mesh.count(); ++a)
    if (layout.axis[static_cast<std::size_t>(a)] == Layout::kReplicated) copies |= 1u << a;
  for (const TensorId result : model_.results) {
    if (result != op.outputs[output].tensor || !is_floating(tensor.type)) continue;
    std::string value = made_[id.index][output];
    if (!tensor.shape.empty()) value = fmt::format("jnp.sum({} * {})", value, weighing(place_of(id), output));
    lines_.add(fmt::format("loss = loss + {}",
                           copies ? fmt::format("once({}, {})", value, axis_list(plan_.mesh, copies)) : value));
  }
}

Expected<std::string> StepWriter::network() {
  const Mesh none;
  Lines lines;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<std::string> names;
    for (const auto k : groups_[g].inputs) names.push_back(name("w", groups_[g].op.index, k));
    lines.add(fmt::format("{}{} = weights[{}]", joined(names), names.size() == 1 ? "," : "", g));
  }
  for (std::size_t d = 0; d < data_.size(); ++d) lines.add(fmt::format("t{} = data[{}]", data_[d].tensor.index, d));
  std::vector<std::string> losses;
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    const Operator& op = op_of(OperatorId(i));
    Values values;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const int tie = ways_.input_tie[i][k];
      const bool activation = ways_.input_flow[i][k] >= 0;
      std::string value = activation ? fmt::format("t{}", op.inputs[k].tensor.index) : name("w", i, k);
      if (tie >= 0) {
        const Tie& tied = ways_.ties[static_cast<std::size_t>(tie)];
        value = name("w", tied.use->owner.index, tied.use->owner_input) + (tied.turned ? ".T" : "");
      }
      values.inputs.push_back(value);
    }
    const Place place{model_, OperatorId(i), none, {}};
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      const Tensor& tensor = tensor_of(op.outputs[o]);
      const std::string value = fmt::format("t{}", op.outputs[o].tensor.index);
      if (tensor.role != TensorRole::internal) values.outputs.push_back(value);
      for (const TensorId result : model_.results)
        if (result == op.outputs[o].tensor && is_floating(tensor.type))
          losses.push_back(tensor.shape.empty() ? value : fmt::format("jnp.sum({} * {})", value, weighing(place, o)));
    }
    if (op.kind == OperatorKind::input) continue;
    if (auto done = can_write(place); !done) return done.error();
    write_forward(place, values, lines);
  }
  lines.add(fmt::format("return {}", fmt::join(losses, " + ")));
  return lines.text();
}

Expected<std::string> StepWriter::step() {
  lines_.add("loss = 0.0");
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    if (op_of(OperatorId(i)).kind != OperatorKind::input)
      if (auto done = can_write(place_of(OperatorId(i))); !done) return done.error();
    if (auto done = forward(OperatorId(i)); !done) return done.error();
  }
  for (std::size_t i = model_.operators.size(); i-- > 0;)
    if (auto done = backward(OperatorId(i)); !done) return done.error();
  for (std::size_t g = groups_.size(); g-- > 0;) update(g);
  const auto all = [&](const char* letter) {
    std::vector<std::string> names;
    for (std::size_t g = 0; g < groups_.size(); ++g) names.push_back(fmt::format("{}{}", letter, g));
    return "[" + joined(names) + "]";
  };
  const int states = optimizer_state_bytes(scenario_.settings.optimizer) / 4;
  lines_.add(fmt::format("return jnp.reshape(loss, (1,)), {}, {}, {}", all("new_weights"),
                         states > 0 ? all("new_first") : "[]", states > 1 ? all("new_second") : "[]"));
  return lines_.text();
}

}  // namespace turnpoint::jax
