// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/annotated.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include "core/base/text.h"
#include "core/export/engines/engine_settings.h"
#include "core/export/engines/module_names.h"
#include "core/export/jax/groups.h"
#include "core/export/jax/python.h"
#include "core/export/jax/ways.h"

namespace turnpoint::jax {

namespace {

/// More than this part of all optimizer state may not stay whole where the plan shares it out.
constexpr double kMostWhole = 0.01;

std::string dotted(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

class PlanAsAnnotations {
 public:
  PlanAsAnnotations(const Scenario& scenario, const Plan& plan, ModuleNames names, const Ways& ways)
      : model_(*scenario.model), plan_(plan), names_(names), ways_(ways) {
    auto roles = find_transformer_roles(model_, scenario.settings.split_windows);
    if (roles)
      roles_ = std::move(*roles);
    else
      made_.no_roles = roles.error().what;
  }

  Expected<Annotated> run() {
    if (auto error = check_memory_choices()) return *error;
    const auto groups = weight_groups(model_, plan_, ways_.uses);
    if (!groups) return groups.error();
    for (const WeightGroup& group : *groups)
      for (const auto input : group.inputs)
        if (auto error = add_parameter(group, input)) return *error;
    if (auto error = note_whole_states()) return *error;
    add_data();
    for (const Flow& flow : ways_.flows) add_flow(flow);
    add_results();
    for (const Tie& tie : ways_.ties) add_tie(tie);
    note_backward();
    return std::move(made_);
  }

 private:
  using Failure = std::optional<Error>;
  const Operator& op_of(OperatorId id) const { return model_.operators[id]; }
  Configuration split_of(OperatorId id) const { return plan_.operators[id.index].split; }
  std::string lies(OperatorId id) const {
    return fmt::format("{} ({})", op_of(id).name, describe(plan_.mesh, split_of(id), op_of(id)));
  }

  Failure check_memory_choices() const {
    for (const PlanOperator& op : plan_.operators) {
      if (ways_.runs_again[op.op.index])
        return lacking(fmt::format("{} runs again in backward, which no PartitionSpec says", lies(op.op)),
                       "the same without recompute, or the plan as a program (jax:explicit)");
      if (op.choice.offload && !op.parameters.empty())
        return lacking(
            fmt::format("{} keeps its optimizer state at the host, which no PartitionSpec says", lies(op.op)),
            "the same without offload");
    }
    return std::nullopt;
  }

  std::string logical_name(const Operator& op, OperatorId id, const std::vector<std::uint8_t>& walks) const {
    const auto loop = outermost_walker(op, walks);
    if (!loop || !roles_) return {};
    if (op.kind == OperatorKind::input) return std::string(to_string(op.dims[std::size_t(*loop)].name));
    const int known = roles_->dims.at(id, *loop);
    if (known < 0) return {};
    const auto index = static_cast<std::size_t>(known);
    if (roles_->is_vocabulary[index]) return "vocab";
    if (roles_->is_head[index]) return "heads";
    if (roles_->is_inner[index]) return "mlp";
    switch (op.dims[std::size_t(*loop)].name) {
      case DimName::batch: return "batch";
      case DimName::sequence: return "length";
      case DimName::key_sequence: return "kv_length";
      case DimName::head_channel: return "kv";
      case DimName::expert: return "exp";
      default: return "embed";
    }
  }

  LogicalNames logical_names(OperatorId id, const Access& access) const {
    LogicalNames names;
    for (const auto& walks : access.walks) names.push_back(logical_name(op_of(id), id, walks));
    return names;
  }

  // Of Transformers' models in Flax: kernels lead from the first dimension to the last.
  std::string leaf_of(const Operator& op, const Tensor& tensor) const {
    if (op.kind == OperatorKind::embedding) return "embedding";
    if (op.kind == OperatorKind::normalisation) return "weight";
    return tensor.shape.size() == 1 ? "bias" : "kernel";
  }

  Failure add_parameter(const WeightGroup& group, std::uint32_t input) {
    const Operator& op = op_of(group.op);
    const Access& access = op.inputs[input];
    const Tensor& tensor = model_.tensors[access.tensor];
    AnnotatedParameter made;
    made.name = dotted(tensor.name);
    made.shape = tensor.shape;
    made.read =
        dimension_axes(forward_layout(op, access, false, split_of(group.op), plan_.mesh.count()), tensor.shape.size());
    made.logical = logical_names(group.op, access);
    if (op.kind == OperatorKind::normalisation) std::ranges::replace(made.logical, "embed", "norm");
    if (names_.transformers()) {
      const auto module = names_.module(model_, group.op);
      if (!module) return module.error();
      made.name = *module + "." + leaf_of(op, tensor);
      const auto first = outermost_walker(op, access.walks.front());
      if (tensor.shape.size() == 2 && is_weighted_product(model_, op) && first &&
          op.dims[std::size_t(*first)].role == DimRole::parallel) {
        std::ranges::reverse(made.shape);
        std::ranges::reverse(made.read);
        std::ranges::reverse(made.logical);
      }
    }
    made.state = made.read;
    if (group.cut() && plan_.mesh.size_of(group.scattered | group.sliced) > 1) share_out(group, made);
    made_.parameters.push_back(std::move(made));
    return std::nullopt;
  }

  // Channels of the stream between layers are what Flax and MaxText share weights out by, too.
  void share_out(const WeightGroup& group, AnnotatedParameter& made) {
    made.zero = group.weights_cut() ? 3 : group.update == Update::sharded ? 2 : 1;
    std::vector<bool> preferred;
    for (const std::string& name : made.logical) preferred.push_back(name == "embed" || name == "norm");
    const auto cut = cut_further(plan_.mesh, made.read, made.shape, group.scattered | group.sliced, preferred);
    const double share = double(elements_on_one(plan_.mesh, made.read, made.shape)) /
                         double(plan_.mesh.size_of(group.scattered | group.sliced));
    shared_ += share;
    if (cut) {
      made.state = *cut;
      return;
    }
    ++whole_count_;
    whole_ += double(elements_on_one(plan_.mesh, made.read, made.shape)) - share;
    if (whole_count_ == 1)
      first_whole_ = fmt::format("{} {} of {}", made.name, tuple_of(made.shape), lies(group.op)),
      first_ways_ = plan_.mesh.size_of(group.scattered | group.sliced);
  }

  Failure note_whole_states() {
    if (whole_count_ == 0) return std::nullopt;
    if (whole_ > kMostWhole * shared_)
      return lacking(
          fmt::format("the update of {} is shared out among {} devices, and no dimension of it can be divided "
                      "so: a PartitionSpec says nothing else",
                      first_whole_, first_ways_),
          "the plan as a program (jax:explicit), which shares out runs of parameters");
    made_.notes.push_back(fmt::format(
        "{} parameter{} whose dimensions cannot be divided {} updated by every holder, {:.0f} numbers more "
        "for each state on a device: {} first",
        whole_count_, whole_count_ == 1 ? "" : "s", whole_count_ == 1 ? "is" : "are", whole_, first_whole_));
    return std::nullopt;
  }

  std::string name_of(OperatorId id, std::size_t output) const {
    const Operator& op = op_of(id);
    std::string name = dotted(op.name);
    if (names_.transformers()) {
      if (const auto module = names_.module(model_, id))
        name = *module;
      else if (name.starts_with("layer") && name.size() > 5 && std::isdigit(static_cast<unsigned char>(name[5])))
        name = "model.layers." + name.substr(5);
    }
    return output == 0 ? name : fmt::format("{}.{}", name, output);
  }

  AnnotatedTensor described(OperatorId id, const Access& access) const {
    const Tensor& tensor = model_.tensors[access.tensor];
    AnnotatedTensor made;
    made.shape = tensor.shape;
    made.logical = logical_names(id, access);
    for (const DimName dim : tensor.dims) {
      std::string name(to_string(dim));
      std::ranges::replace(name, '-', '_');
      const auto same = std::ranges::count_if(
          made.dims, [&](const std::string& known) { return known == name || known.starts_with(name + "_of_"); });
      made.dims.push_back(same == 0 ? name : fmt::format("{}_of_{}", name, same + 1));
    }
    return made;
  }

  void add_data() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const OperatorId id(i);
      if (op_of(id).kind != OperatorKind::input) continue;
      for (const Access& access : op_of(id).outputs) {
        AnnotatedTensor made = described(id, access);
        made.name = dotted(model_.tensors[access.tensor].name);
        const Layout layout = forward_layout(op_of(id), access, true, split_of(id), plan_.mesh.count());
        made.layouts = {dimension_axes(layout, made.shape.size())};
        made_.data.push_back(std::move(made));
      }
    }
  }

  void add_flow(const Flow& flow) {
    const OperatorId maker = flow.use->producer;
    const Tensor& tensor = model_.tensors[flow.use->tensor];
    // What a loss split by words must know of all of them is inside the user's own loss.
    if (!is_floating(tensor.type) || op_of(maker).kind == OperatorKind::loss_statistics) return;
    const bool is_data = op_of(maker).kind == OperatorKind::input;
    AnnotatedTensor made = described(maker, op_of(maker).outputs[flow.use->output]);
    made.name = is_data ? dotted(tensor.name) : name_of(maker, flow.use->output);
    const auto spec = [&](const Layout& layout) { return dimension_axes(layout, tensor.shape.size()); };
    const Layout read = flow.shared             ? flow.shared->goal
                        : flow.ways.size() == 1 ? flow.ways.front().goal
                                                : flow.produced.without_partial();
    // Sums of a look-up are made before they are cut: told of the cut alone, XLA would gather the table instead.
    const Layout whole = flow.produced.without_partial();
    if (whole != read && (!flow.produced.has_partial() || op_of(maker).kind == OperatorKind::embedding))
      made.layouts.push_back(spec(whole));
    made.layouts.push_back(spec(read));
    for (std::size_t k = 0; flow.shared && k < flow.ways.size(); ++k) {
      const Way& way = flow.ways[k];
      if (!way.moves()) continue;
      AnnotatedTensor copy = made;
      copy.name += " -> " + name_of(flow.use->consumers[k].op, 0);
      copy.layouts = {spec(way.goal)};
      made_.tensors.push_back(std::move(copy));
    }
    made_.tensors.push_back(std::move(made));
  }

  // What the network gives back and nobody reads, but for a loss, which is one number.
  void add_results() {
    for (const TensorId result : model_.results) {
      const Tensor& tensor = model_.tensors[result];
      if (!model_.uses[result].empty() || !tensor.producer.valid() || tensor.shape.empty()) continue;
      const auto& outputs = op_of(tensor.producer).outputs;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (outputs[o].tensor != result) continue;
        AnnotatedTensor made = described(tensor.producer, outputs[o]);
        made.name = name_of(tensor.producer, o);
        const Layout layout =
            forward_layout(op_of(tensor.producer), outputs[o], true, split_of(tensor.producer), plan_.mesh.count());
        made.layouts = {dimension_axes(layout.without_partial(), made.shape.size())};
        made_.tensors.push_back(std::move(made));
      }
    }
  }

  void add_tie(const Tie& tie) {
    if (!tie.way.moves()) return;
    const Operator& owner = op_of(tie.use->owner);
    AnnotatedTensor copy = described(tie.use->owner, owner.inputs[tie.use->owner_input]);
    const Tensor& held = model_.tensors[owner.inputs[tie.use->owner_input].tensor];
    std::string name = dotted(held.name);
    if (names_.transformers()) name = name_of(tie.use->owner, 0) + "." + leaf_of(owner, held);
    copy.name = name + " -> " + name_of(tie.use->user, 0);
    copy.layouts = {dimension_axes(tie.way.goal, copy.shape.size())};
    copy.logical.clear();  // of a weight: no rule of tensors
    made_.tensors.push_back(std::move(copy));
  }

  void note_backward() {
    int gathers = 0, moves = 0;
    for (const PlanOperator& op : plan_.operators)
      for (const ParameterSteps& steps : op.parameters) gathers += steps.gather.size() > 1;
    for (const PlanReshard& reshard : plan_.reshards) moves += !reshard.repeated.empty() || !reshard.restored.empty();
    if (gathers > 0)
      made_.notes.push_back(
          "weights that the plan gathers again for backward are kept from forward, unless your model runs its layers "
          "under jax.checkpoint");
    if (moves > 0)
      made_.notes.push_back(
          fmt::format("{} tensor{} that the plan moves once more in backward, XLA keeps or moves as it sees fit", moves,
                      moves == 1 ? "" : "s"));
  }

  const Model& model_;
  const Plan& plan_;
  const ModuleNames names_;
  const Ways& ways_;
  std::optional<TransformerRoles> roles_;
  Annotated made_;
  double shared_ = 0, whole_ = 0;  ///< elements of one state on a device: shared out by the plan; more than that
  int whole_count_ = 0;
  std::string first_whole_;
  std::int64_t first_ways_ = 0;
};

}  // namespace

Expected<Annotated> Annotated::of(const Scenario& scenario, const Plan& plan) {
  const auto names = ModuleNames::of(*scenario.model);
  if (!names) return names.error();
  const auto ways = Ways::of(*scenario.model, plan);
  if (!ways) return ways.error();
  return PlanAsAnnotations(scenario, plan, *names, **ways).run();
}

}  // namespace turnpoint::jax
