// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/structure.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/cost/local_sizes.h"
#include "core/cost/operator_cost.h"
#include "core/search/frontier_tracking/equal_operators.h"
#include "core/search/frontier_tracking/questions.h"
#include "core/search/frontier_tracking/search_mesh.h"

namespace turnpoint::search {

namespace {

std::uint32_t class_of(std::vector<Layout>& layouts, std::map<Layout, std::uint32_t>& known, const Layout& layout) {
  const auto [it, fresh] = known.try_emplace(layout, static_cast<std::uint32_t>(layouts.size()));
  if (fresh) layouts.push_back(layout);
  return it->second;
}

// Classes of an output that may be computed again: layout and local sizes, on which alone depends what a forward run of
// a configuration takes.
LayoutClasses sized_classes(const Operator& op, const Access& access, const std::vector<Configuration>& configurations,
                            const Mesh& mesh) {
  LayoutClasses result;
  std::map<std::pair<Layout, std::vector<std::int64_t>>, std::uint32_t> known;
  for (const auto& configuration : configurations) {
    const Layout layout = forward_layout(op, access, true, configuration, mesh.count());
    const auto [it, fresh] = known.try_emplace({layout, local_dims(op, mesh, configuration)},
                                               static_cast<std::uint32_t>(result.layouts.size()));
    if (fresh) result.layouts.push_back(layout);
    result.of.push_back(it->second);
  }
  return result;
}

LayoutClasses classes(const Operator& op, const Access& access, bool is_output, const OperatorChoices& choices,
                      int axes) {
  LayoutClasses result;
  std::map<Layout, std::uint32_t> known[2];
  for (std::size_t c = 0; c < choices.configurations.size(); ++c) {
    const auto& configuration = choices.configurations[c];
    const Layout layout = is_output ? forward_layout(op, access, true, configuration, axes)
                                    : gradient_layout(op, access, false, configuration, axes);
    const bool again = !choices.again.empty() && choices.again[c];
    result.of.push_back(class_of(result.layouts, known[again], layout));
    if (!choices.again.empty() && result.again.size() < result.layouts.size()) result.again.push_back(again);
  }
  return result;
}

std::shared_ptr<const OperatorChoices> make_choices(const Operator& op, const Mesh& mesh, RunAgain again, bool always,
                                                    std::vector<Configuration> configurations) {
  auto choices = std::make_shared<OperatorChoices>();
  choices->configurations = std::move(configurations);
  if (again == RunAgain::carried && always) {
    choices->again.assign(choices->configurations.size(), 1);
  } else if (again == RunAgain::carried) {
    auto& all = choices->configurations;
    const std::size_t count = all.size();
    choices->again.assign(count, 0);
    choices->again.resize(2 * count, 1);
    all.reserve(2 * count);
    all.insert(all.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  }
  for (const auto& access : op.inputs) choices->inputs.push_back(classes(op, access, false, *choices, mesh.count()));
  for (const auto& access : op.outputs)
    choices->outputs.push_back(again == RunAgain::folded ? sized_classes(op, access, choices->configurations, mesh)
                                                         : classes(op, access, true, *choices, mesh.count()));
  return choices;
}

// Layouts that split a tensor over all axes, made from what its neighbours leave or want: their other axes go to one
// dimension each level. Where no such layout divides, those that use the most axes.
std::vector<Layout> fully_split_layouts(const Mesh& mesh, const std::vector<std::int64_t>& shape,
                                        const std::vector<Layout>& bases) {
  const int dims = static_cast<int>(shape.size());
  std::vector<Layout> found;
  int most = -1;
  const auto complete = [&](Layout layout, int across, int inside) {
    int used = 0;
    std::vector<std::int64_t> left = shape;
    for (int a = 0; a < mesh.count(); ++a)
      if (const int d = layout.axis[static_cast<std::size_t>(a)]; d >= 0)
        left[static_cast<std::size_t>(d)] /= mesh.axes[static_cast<std::size_t>(a)].size, ++used;
    for (int a = 0; a < mesh.count(); ++a) {
      const MeshAxis& axis = mesh.axes[static_cast<std::size_t>(a)];
      const int d = axis.level == kInterNode ? across : inside;
      if (layout.axis[static_cast<std::size_t>(a)] >= 0 || d >= dims || left[static_cast<std::size_t>(d)] % axis.size)
        continue;
      left[static_cast<std::size_t>(d)] /= axis.size, ++used;
      layout.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(d);
    }
    if (used < most) return;
    if (used > most) found.clear();
    most = used;
    if (std::find(found.begin(), found.end(), layout) == found.end()) found.push_back(layout);
  };
  for (const Layout& base : bases)
    for (int across = 0; across < std::max(1, dims); ++across)
      for (int inside = 0; inside < std::max(1, dims); ++inside) complete(base.without_partial(), across, inside);
  return found;
}

constexpr double kMostEntries = 1e7;                      // searches of problems with more are not short any more
constexpr double kFineEntries = 1e6, kFineLayouts = 1e6;  // with up to so many, more axes can be afforded

class Builder {
 public:
  Builder(Structure& structure, const Scenario& scenario, const ConfigurationFilter& only)
      : s_(structure), model_(*scenario.model), only_(only) {}

  Expected<void> run(const RunContext& context) {
    s_.uses = analyse_tensor_uses(model_);
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      if (context.cancelled()) return cancelled_error();
      if (auto added = add_operator(OperatorId(i)); !added) return added;
    }
    for (std::uint32_t f = 0; f < s_.uses.flows.size(); ++f) add_flow(f);
    for (std::uint32_t t = 0; t < s_.uses.ties.size(); ++t) add_tie(t);
    return {};
  }

 private:
  Expected<void> add_operator(OperatorId id) {
    const Operator& op = model_.operators[id];
    const RunAgain again = run_again(id);
    OperatorTraits traits = traits_of(model_, s_.uses, id, again);
    if (only_) traits.configurations = only_(id, op, s_.mesh);
    if (!s_.choices.empty()) traits.choice = s_.choices[id.index];
    const auto [it, fresh] = groups_.try_emplace(std::move(traits), static_cast<std::uint32_t>(group_choices_.size()));
    if (fresh) {
      group_choices_.push_back(make_choices(op, s_.mesh, again, !s_.again.empty(),
                                            only_ ? it->first.configurations : configurations_of(op)));
      s_.group_example.push_back(static_cast<std::uint32_t>(s_.variables.size()));
      if (group_choices_.back()->configurations.empty())
        return bad_input("operator '" + op.name + "' has no legal configuration", model_.source);
    }
    Variable variable;
    variable.op = id;
    variable.choices = group_choices_[it->second];
    variable.cost_group = it->second;
    s_.variables.push_back(std::move(variable));
    s_.cost_groups = static_cast<std::uint32_t>(group_choices_.size());
    return {};
  }

  std::vector<Configuration> configurations_of(const Operator& op) const {
    if (s_.split_inputs && op.kind == OperatorKind::input) return {data_parallel_configuration(op, s_.mesh)};
    return enumerate_configurations(model_, op, s_.mesh, s_.split_windows);
  }

  RunAgain run_again(OperatorId id) const {
    const bool may = s_.recompute && (s_.again.empty() || s_.again[id.index]);
    return may ? s_.uses.run_again[id.index] : RunAgain::never;
  }

  // Who leaves the tensor of a pair; nobody for pairs that start at a shared layout or a tied weight.
  OperatorId producer_of(PairKind kind, std::uint32_t flow) const {
    return pair_starts_at_output(kind) ? s_.uses.flows[flow].producer : OperatorId();
  }
  const LayoutClasses& output_classes(const TensorFlow& flow) const {
    return s_.variables[flow.producer.index].choices->outputs[flow.output];
  }
  const LayoutClasses& input_classes(const Model::Use& use) const {
    return s_.variables[use.op.index].choices->inputs[use.input];
  }

  void add_pair(PairKind kind, std::uint32_t from, std::uint32_t to, std::uint32_t flow, std::uint32_t consumer,
                const Tensor& tensor, bool before_is_kept, bool consumer_saves, const LayoutClasses& from_classes,
                const LayoutClasses& to_classes) {
    PairTable table;
    table.kind = kind;
    table.shape = tensor.shape;
    table.element_bytes = element_bytes(tensor, s_.precision);
    table.gradient = tensor.requires_gradient;
    table.before_is_kept = before_is_kept;
    table.consumer_saves = consumer_saves;
    table.producer_reads = pair_starts_at_output(kind) && s_.uses.flows[flow].producer_copy_is_here();
    if (kind == PairKind::to_shared) {
      const auto& saves = s_.uses.flows[flow].consumer_saves;
      table.several_save = std::count(saves.begin(), saves.end(), true) > 1;
    }
    table.restores = table.producer_reads && consumer_saves && table.gradient && s_.memory_choices;
    table.stored_once = s_.sharded_tensors;
    table.gathers_again = s_.gathers_again && pair_starts_at_output(kind);
    table.from_classes = &from_classes;
    table.to_classes = &to_classes;
    const OperatorId producer = producer_of(kind, flow);
    if (producer.valid()) {
      table.producer_again = run_again(producer) == RunAgain::folded;
      table.always_again = table.producer_again && !s_.again.empty();
      table.producer_must_agree = run_again(producer) == RunAgain::carried && !s_.uses.flows[flow].producer_saves;
    }
    const auto [it, fresh] = table_of_.try_emplace(table, static_cast<std::uint32_t>(s_.tables.size()));
    if (fresh) {
      table.from = from_classes.layouts;
      table.to = to_classes.layouts;
      table.from_again = from_classes.again;
      table.to_again = to_classes.again;
      if (table.producer_again) {
        table.again = producer;
        table.from_configurations.resize(table.from.size());
        for (std::size_t c = 0; c < from_classes.of.size(); ++c)
          table.from_configurations[from_classes.of[c]] = s_.variables[from].choices->configurations[c];
      }
      s_.tables.push_back(std::move(table));
    }
    s_.pairs.push_back({from, to, it->second, flow, consumer, &from_classes, &to_classes});
  }

  void add_flow(std::uint32_t index) {
    const TensorFlow& flow = s_.uses.flows[index];
    const Tensor& tensor = model_.tensors[flow.tensor];
    const bool before_is_kept = flow.producer_is_view;
    const LayoutClasses& produced = output_classes(flow);
    if (flow.consumers.empty()) return;
    if (!flow.shared() && !s_.sharded_tensors) {
      const auto& use = flow.consumers.front();
      add_pair(PairKind::direct, flow.producer.index, use.op.index, index, 0, tensor, before_is_kept,
               flow.consumer_saves.front(), produced, input_classes(use));
      return;
    }
    const auto states = shared_states(flow);
    Variable variable;
    variable.flow = index;
    variable.states = states;
    const auto shared = static_cast<std::uint32_t>(s_.variables.size());
    s_.variables.push_back(std::move(variable));
    add_pair(PairKind::to_shared, flow.producer.index, shared, index, 0, tensor, before_is_kept,
             flow.any_consumer_saves(), produced, *states);
    for (std::uint32_t c = 0; c < flow.consumers.size(); ++c) {
      const auto& use = flow.consumers[c];
      add_pair(PairKind::from_shared, shared, use.op.index, index, c, tensor, false, flow.consumer_saves[c], *states,
               input_classes(use));
    }
  }

  // Candidates: whatever a consumer reads, and what the producer leaves. Shared between equal surroundings.
  std::shared_ptr<const LayoutClasses> shared_states(const TensorFlow& flow) {
    std::vector<const void*> key{&output_classes(flow)};
    for (const auto& use : flow.consumers) key.push_back(&input_classes(use));
    auto& states = states_of_[key];
    if (states) return states;
    auto fresh = std::make_shared<LayoutClasses>();
    std::map<Layout, std::uint32_t> known;
    if (s_.sharded_tensors) {
      const auto& shape = model_.tensors[flow.tensor].shape;
      std::vector<Layout> bases = output_classes(flow).layouts;
      for (const auto& use : flow.consumers)
        bases.insert(bases.end(), input_classes(use).layouts.begin(), input_classes(use).layouts.end());
      for (const auto& layout : fully_split_layouts(s_.mesh, shape, bases)) class_of(fresh->layouts, known, layout);
      for (std::uint32_t i = 0; i < fresh->layouts.size(); ++i) fresh->of.push_back(i);
      return states = std::move(fresh);
    }
    for (const auto& layout : output_classes(flow).layouts) class_of(fresh->layouts, known, layout.without_partial());
    for (const auto& use : flow.consumers)
      for (const auto& layout : input_classes(use).layouts) {
        class_of(fresh->layouts, known, layout.without_partial());
        if (model_.tensors[flow.tensor].requires_gradient) class_of(fresh->layouts, known, layout);
      }
    for (std::uint32_t i = 0; i < fresh->layouts.size(); ++i) fresh->of.push_back(i);
    states = std::move(fresh);
    return states;
  }

  void add_tie(std::uint32_t index) {
    const ParameterTie& tie = s_.uses.ties[index];
    const auto& from = s_.variables[tie.owner.index].choices->inputs[tie.owner_input];
    const auto& to = s_.variables[tie.user.index].choices->inputs[tie.user_input];
    const Tensor& tensor = model_.tensors[model_.operators[tie.user].inputs[tie.user_input].tensor];
    const Tensor& owner_tensor = model_.tensors[model_.operators[tie.owner].inputs[tie.owner_input].tensor];
    const LayoutClasses* user = &to;
    if (tensor.shape != owner_tensor.shape) {
      // Used transposed: compare layouts in the owner's orientation. The builder admits no other difference.
      auto turned = std::make_shared<LayoutClasses>(to);
      for (auto& layout : turned->layouts)
        for (auto& value : layout.axis)
          if (value >= 0) value = static_cast<std::int8_t>(1 - value);
      user = turned.get();
      s_.turned.push_back(std::move(turned));
    }
    add_pair(PairKind::tie, tie.owner.index, tie.user.index, index, 0, owner_tensor, true, true, from, *user);
  }

  Structure& s_;
  const Model& model_;
  const ConfigurationFilter& only_;
  std::map<OperatorTraits, std::uint32_t> groups_;
  std::map<PairTraits, std::uint32_t> table_of_;
  std::vector<std::shared_ptr<const OperatorChoices>> group_choices_;
  std::map<std::vector<const void*>, std::shared_ptr<const LayoutClasses>> states_of_;
};

}  // namespace

namespace {

// Entries of all pairs, which is what a search passes over.
double entries(const Structure& structure) {
  double total = 0;
  for (const auto& pair : structure.pairs) {
    const PairTable& table = structure.tables[pair.table];
    total += static_cast<double>(table.from.size()) * static_cast<double>(table.to.size());
  }
  return total;
}

/// Whether a search on the axes of this structure is quick: few entries, and few layouts through which reshardings look
/// for their paths, all of the mesh for every question.
bool is_quick(const Structure& structure) {
  if (entries(structure) > kFineEntries) return false;
  const auto asked = collect_questions(structure.tables);
  double layouts = 0;  // an axis splits a dimension or none, or sums are partial over it
  for (const ReshardQuestion& question : asked->questions)
    layouts += std::pow(static_cast<double>(question.shape.size()) + 2, structure.mesh.count());
  return layouts <= kFineLayouts;
}

Expected<std::shared_ptr<Structure>> build_on(const Scenario& scenario, const SearchSpace& space, int merged_axes,
                                              const RunContext& context) {
  auto structure = std::make_shared<Structure>();
  structure->model = scenario.model;
  structure->merged_axes = merged_axes;
  structure->mesh = merged_axes > 0 ? search_mesh(*scenario.cluster, merged_axes) : make_mesh(*scenario.cluster);
  structure->precision = scenario.settings.precision;
  structure->split_windows = scenario.settings.split_windows;
  structure->split_inputs = scenario.settings.accounting == Accounting::paper;
  structure->memory_choices = space.memory_choices && !space.choice && space.choices.empty();
  structure->choice = space.choice;
  structure->choices = space.choices;
  structure->sharded_tensors = space.sharded_tensors;
  structure->gathers_again = space.gathers_again;
  structure->fewest_collectives = space.fewest_collectives;
  structure->micro_batches = space.micro_batches;
  structure->again = space.again;
  structure->recompute = !space.again.empty() || (structure->memory_choices && scenario.settings.recompute);
  if (structure->mesh.count() > kMaxAxes)
    return usage_error(
        fmt::format("{} devices have more than {} prime factors", scenario.cluster->devices(), kMaxAxes));
  context.report("configurations");
  if (auto built = Builder(*structure, scenario, space.only).run(context); !built) return built.error();
  return structure;
}

}  // namespace

Expected<std::shared_ptr<const Structure>> build_structure(const Scenario& scenario, const SearchSpace& space,
                                                           const RunContext& context) {
  const bool whole = space.only || space.sharded_tensors;
  const int all_axes = make_mesh(*scenario.cluster).count();
  auto built = build_on(scenario, space, whole ? 0 : kSearchAxes, context);
  if (built && !whole && all_axes > kSearchAxes) {
    if (entries(**built) > kMostEntries) built = build_on(scenario, space, kFewSearchAxes, context);
    const bool quick = built && is_quick(**built);
    for (int axes = kSearchAxes + 1; built && quick && axes <= all_axes; ++axes) {
      auto finer = build_on(scenario, space, axes, context);
      if (!finer || is_quick(**finer))
        built = std::move(finer);
      else if (entries(**finer) >
               kMostEntries)  // not at once: axes of equal sizes are interchangeable, so more of them
        break;                // can mean fewer entries
    }
  }
  if (!built) return built.error();
  (*built)->questions = collect_questions((*built)->tables);
  return std::shared_ptr<const Structure>(std::move(*built));
}

bool same_structure(const Structure& a, const Scenario& b) {
  if (a.model != b.model || a.precision != b.settings.precision || a.split_windows != b.settings.split_windows ||
      a.split_inputs != (b.settings.accounting == Accounting::paper) ||
      a.recompute != (a.memory_choices && b.settings.recompute))
    return false;
  const Mesh mesh = a.merged_axes > 0 ? search_mesh(*b.cluster, a.merged_axes) : make_mesh(*b.cluster);
  if (mesh.count() != a.mesh.count()) return false;
  for (int i = 0; i < mesh.count(); ++i) {
    const auto &x = mesh.axes[static_cast<std::size_t>(i)], &y = a.mesh.axes[static_cast<std::size_t>(i)];
    if (x.size != y.size || !x.same_link(y)) return false;
  }
  return true;
}

}  // namespace turnpoint::search
