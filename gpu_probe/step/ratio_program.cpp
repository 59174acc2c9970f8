// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ratio_program.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "gpu_probe/step/program_parts.h"

namespace turnpoint::step {

namespace {

constexpr std::int64_t kMostRatioElements = std::int64_t(1) << 40;

/// As seen in the transpose of a matrix.
RatioLie turned_lie(RatioLie lie) {
  for (std::int8_t& held : lie.held)
    if (held >= 0) held = static_cast<std::int8_t>(1 - held);
  for (Region& part : lie.part) {
    std::swap(part.offset[0], part.offset[1]);
    std::swap(part.extent[0], part.extent[1]);
  }
  return lie;
}

class RatioMaker {
 public:
  RatioMaker(const StepJob& job, StepOptions options) : program_(std::make_shared<RatioProgram>()), model_(*job.model) {
    program_->model = job.model;
    program_->plan = *job.ratio;
    program_->options = std::move(options);
  }

  Expected<std::shared_ptr<const RatioProgram>> run() {
    for (const auto& tensor : model_.tensors)
      if (tensor.elements() > kMostRatioElements)
        return bad_input("a tensor too large to execute: '" + tensor.name + "'", model_.name);
    auto tree = RatioTree::make(model_, program_->plan);
    if (!tree) return tree.error();
    program_->tree = std::move(*tree);
    if (auto done = check_statistics(); !done) return done.error();
    for (std::size_t o = 0; o < model_.operators.size(); ++o)
      if (auto done = add_operator(OperatorId(o)); !done) return done.error();
    for (std::size_t o = 0; o < model_.operators.size(); ++o)
      for (std::size_t k = 0; k < model_.operators[OperatorId(o)].outputs.size(); ++k)
        if (auto done = add_flow(OperatorId(o), k); !done) return done.error();
    if (auto done = add_weights(); !done) return done.error();
    return std::shared_ptr<const RatioProgram>(std::move(program_));
  }

 private:
  const Tensor& tensor_of(const Access& access) const { return model_.tensors[access.tensor]; }

  // Copies of a batch that are cut unlike would have unlike statistics.
  Expected<void> check_statistics() const {
    const auto parts = statistics_parts(model_, program_->tree);
    for (std::size_t o = 0; o < parts.size(); ++o) {
      std::int64_t covered = 0, all = 1;
      for (const auto& dim : model_.operators[OperatorId(o)].dims) all *= dim.size;
      for (const auto& part : parts[o]) {
        std::int64_t size = 1;
        for (const auto& loop : part) size *= loop[1];
        covered += size;
      }
      if (!parts[o].empty() && covered != all)
        return usage_error(
            "'" + model_.operators[OperatorId(o)].name +
                "' cannot be executed as this ratio plan cuts it: copies of its batch are cut unlike, so "
                "that their statistics would differ",
            model_.name);
    }
    return {};
  }

  Expected<void> add_operator(OperatorId id) {
    const Operator& op = model_.operators[id];
    RatioOperator made;
    for (const Access& access : op.inputs) {
      auto lie = lie_of(model_, program_->tree, id, access, RatioSide::input);
      if (!lie) return lie.error();
      made.inputs.push_back(std::move(*lie));
    }
    for (const Access& access : op.outputs) {
      auto lie = lie_of(model_, program_->tree, id, access, RatioSide::output);
      if (!lie) return lie.error();
      if (access.saved && lie->anywhere_partial())
        return usage_error("'" + op.name +
                               "' cannot be executed as this ratio plan cuts it: backward reads its output, "
                               "of which ranks have summands alone",
                           model_.name);
      made.outputs.push_back(std::move(*lie));
    }
    made.output_flow.assign(op.outputs.size(), -1);
    made.input_weight.assign(op.inputs.size(), -1);
    made.input_tie.assign(op.inputs.size(), -1);
    if (op.kind != OperatorKind::input) {
      const auto kernel = arithmetic().kernel_of(model_, id);
      if (!kernel) return kernel.error();
      made.kernel = *kernel;
    }
    program_->operators.push_back(std::move(made));
    return {};
  }

  /// `line`: of an earlier way whose messages are reported together with these; it is set to what there is then.
  RatioWay way(const RatioLie& from, const RatioLie& to, MeasuredMove::Kind kind, TensorId tensor, OperatorId op,
               int element_bytes, std::int32_t* line = nullptr) {
    RatioWay made{move_between(program_->tree, from, to), -1};
    if (made.move.empty()) return made;
    made.line = line && *line >= 0 ? *line : static_cast<std::int32_t>(program_->lines.size());
    if (line) *line = made.line;
    if (static_cast<std::size_t>(made.line) == program_->lines.size())
      program_->lines.push_back({kind, tensor, op, element_bytes, 0, 0});
    program_->lines[static_cast<std::size_t>(made.line)].fresh += made.move.fresh;
    program_->lines[static_cast<std::size_t>(made.line)].all += made.move.all;
    return made;
  }

  static void add_reader(std::vector<RatioReaders>& groups, const Model::Use& use, RatioLie lie) {
    for (RatioReaders& group : groups)
      if (group.lie == lie) return group.uses.push_back(use);
    groups.push_back({{use}, std::move(lie), {}});
  }

  Expected<void> add_flow(OperatorId id, std::size_t output) {
    const Access& access = model_.operators[id].outputs[output];
    const Tensor& tensor = tensor_of(access);
    if (tensor.role == TensorRole::internal) return {};
    RatioFlow flow;
    flow.tensor = access.tensor, flow.producer = id, flow.output = static_cast<std::uint32_t>(output);
    flow.returns = tensor.requires_gradient && tensor.role == TensorRole::activation;
    flow.results = static_cast<int>(std::count(model_.results.begin(), model_.results.end(), access.tensor));
    if (!is_floating(tensor.type)) flow.results = 0;
    const RatioLie& made = program_->operators[id.index].outputs[output];
    for (const Model::Use& use : model_.uses[access.tensor]) {
      add_reader(flow.readers, use, program_->operators[use.op.index].inputs[use.input]);
      if (!flow.returns) continue;
      auto gradient =
          lie_of(model_, program_->tree, use.op, model_.operators[use.op].inputs[use.input], RatioSide::input_gradient);
      if (!gradient) return gradient.error();
      add_reader(flow.gradients, use, std::move(*gradient));
    }
    const int bytes = element_bytes(tensor, program_->options);
    for (RatioReaders& group : flow.readers)
      group.way = way(made, group.lie, MeasuredMove::Kind::activation, flow.tensor, id, bytes);
    const RatioLie back = made.without_partial();
    for (RatioReaders& group : flow.gradients)
      group.way = way(group.lie, back, MeasuredMove::Kind::gradient, flow.tensor, id, bytes);
    program_->operators[id.index].output_flow[output] = static_cast<std::int32_t>(program_->flows.size());
    program_->flows.push_back(std::move(flow));
    return {};
  }

  Expected<void> add_weights() {
    Program owners;  // only who owns what is asked of it
    owners.operators.resize(model_.operators.size());
    for (std::size_t o = 0; o < model_.operators.size(); ++o)
      owners.operators[o].owned.assign(model_.operators[OperatorId(o)].inputs.size(), false);
    const auto ties = find_ties(model_, owners);
    if (!ties) return ties.error();
    for (std::size_t o = 0; o < model_.operators.size(); ++o)
      for (std::uint32_t k = 0; k < owners.operators[o].owned.size(); ++k)
        if (owners.operators[o].owned[k])
          if (auto done = add_weight(OperatorId(o), k); !done) return done;
    for (const Tie& tie : *ties)
      if (auto done = add_tie(tie); !done) return done;
    return {};
  }

  Expected<RatioLie> gradient_at(OperatorId op, std::uint32_t input) const {
    return lie_of(model_, program_->tree, op, model_.operators[op].inputs[input], RatioSide::input_gradient);
  }

  double first_share(std::uint32_t node, OperatorId id) const {
    const StepRatio::Cut* const cut = program_->tree.nodes[node].cut;
    return cut && !cut->updates.empty() ? cut->updates[id.index] : 0;
  }
  bool is_shared_out(OperatorId id, const RatioLie& gradient) const {
    for (std::uint32_t n = 0; n < program_->tree.nodes.size(); ++n)
      if (gradient.held[n] < 0 && first_share(n, id) > 0) return true;
    return false;
  }

  /// The parameter in blocks of which every rank holds all or nothing.
  Boxes blocks_of(const RatioLie& gradient) const {
    Boxes blocks;
    for (const std::uint32_t leaf : program_->tree.leaf_of) {
      const Boxes held = {gradient.part[leaf]};
      Boxes finer = without(held, blocks);
      for (const Region& block : blocks)
        for (const Boxes& part : {common({block}, held), without({block}, held)})
          finer.insert(finer.end(), part.begin(), part.end());
      blocks = std::move(finer);
    }
    return blocks;
  }

  /// Ranks that hold a block of the parameter share out its elements.
  void add_runs(RatioWeight& weight, const RatioLie& gradient) {
    const RatioTree& tree = program_->tree;
    const TensorId tensor = model_.operators[weight.op].inputs[weight.input].tensor;
    weight.runs_of.resize(std::size_t(tree.ranks()));
    std::int32_t summed = -1, handed_on = -1;
    for (Region& block : blocks_of(gradient)) {
      SharedUpdate run;
      RatioLie held;
      std::vector<char> there(tree.nodes.size(), 0);
      for (std::uint32_t n = static_cast<std::uint32_t>(tree.nodes.size()); n-- > 0;)
        there[n] = tree.nodes[n].cut ? there[tree.nodes[n].child[0]] || there[tree.nodes[n].child[1]]
                                     : !common({block}, {gradient.part[n]}).empty();
      for (std::size_t r = 0; r < weight.runs_of.size(); ++r)
        if (there[tree.leaf_of[r]]) weight.runs_of[r].push_back(static_cast<std::uint32_t>(weight.runs.size()));
      run.block = std::move(block);
      lay_run(weight.op, gradient, there, run, held);
      run.scatter = way(held, run.shard, MeasuredMove::Kind::weight_sum, tensor, weight.op,
                        program_->options.gradient_bytes, &summed);
      run.gather = way(run.shard, held.without_partial(), MeasuredMove::Kind::new_weight, tensor, weight.op,
                       program_->options.weight_bytes, &handed_on);
      weight.runs.push_back(std::move(run));
    }
  }

  /// How gradients of a run lie on the parts that hold it, and the shards. A part without it has none of its elements,
  /// as where a cut had split it off.
  void lay_run(OperatorId id, const RatioLie& gradient, const std::vector<char>& there, SharedUpdate& run,
               RatioLie& held) {
    const auto& nodes = program_->tree.nodes;
    const auto part = [&](double from, double to) {
      const auto at = [&](double place) { return std::llround(place * static_cast<double>(run.block.elements())); };
      return Region{{at(from)}, {at(to) - at(from)}};
    };
    std::vector<std::array<double, 2>> shard(nodes.size(), {0, 1});
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      held.part.push_back(there[n] ? part(0, 1) : part(0, 0));
      run.shard.part.push_back(there[n] ? part(shard[n][0], shard[n][1]) : part(0, 0));
      held.held.push_back(Layout::kReplicated);
      run.shard.held.push_back(Layout::kReplicated);
      if (!nodes[n].cut || !there[n]) continue;
      const auto& child = nodes[n].child;
      for (const std::uint32_t inside : child) shard[inside] = shard[n];
      const bool both = there[child[0]] && there[child[1]];
      assert(both == (gradient.held[n] < 0));  // a block is on one side of each cut that splits its parameter
      held.held.back() = both ? gradient.held[n] : std::int8_t(0);
      if (const double first = first_share(n, id); both && first > 0)
        shard[child[0]][1] = shard[child[1]][0] = shard[n][0] + first * (shard[n][1] - shard[n][0]);
      else if (both)
        continue;
      run.shard.held.back() = 0;
    }
  }

  Expected<void> add_weight(OperatorId id, std::uint32_t k) {
    const Access& access = model_.operators[id].inputs[k];
    RatioWeight weight{id, k, {}, {}, {}};
    if (tensor_of(access).requires_gradient) {
      const auto gradient = gradient_at(id, k);
      if (!gradient) return gradient.error();
      if (is_shared_out(id, *gradient)) {
        add_runs(weight, *gradient);
      } else {
        weight.sum = way(*gradient, gradient->without_partial(), MeasuredMove::Kind::weight_sum, access.tensor, id,
                         program_->options.gradient_bytes);
      }
    }
    program_->operators[id.index].input_weight[k] = static_cast<std::int32_t>(program_->weights.size());
    program_->weights.push_back(std::move(weight));
    return {};
  }

  Expected<void> add_tie(const Tie& tie) {
    RatioTie made;
    made.tie = tie;
    made.weight = static_cast<std::size_t>(program_->operators[tie.owner.index].input_weight[tie.owner_input]);
    const auto own = gradient_at(tie.owner, tie.owner_input);
    if (!own) return own.error();
    auto gradient = gradient_at(tie.user, tie.user_input);
    if (!gradient) return gradient.error();
    made.read = program_->operators[tie.user.index].inputs[tie.user_input];
    if (tie.turned) made.read = turned_lie(std::move(made.read)), *gradient = turned_lie(std::move(*gradient));
    const TensorId tensor = model_.operators[tie.owner].inputs[tie.owner_input].tensor;
    made.there = way(own->without_partial(), made.read, MeasuredMove::Kind::tied_weight, tensor, tie.user,
                     program_->options.weight_bytes);
    made.meets = *gradient == *own;
    if (!made.meets)
      made.back = way(*gradient, own->without_partial(), MeasuredMove::Kind::tied_sum, tensor, tie.user,
                      program_->options.gradient_bytes);
    program_->operators[tie.user.index].input_tie[tie.user_input] = static_cast<std::int32_t>(program_->ties.size());
    program_->ties.push_back(std::move(made));
    return {};
  }

  std::shared_ptr<RatioProgram> program_;
  const Model& model_;
};

}  // namespace

Expected<std::shared_ptr<const RatioProgram>> RatioProgram::make(const StepJob& job, StepOptions options) {
  return RatioMaker(job, std::move(options)).run();
}

std::vector<LoopParts> statistics_parts(const Model& model, const RatioTree& tree) {
  std::vector<LoopParts> parts(model.operators.size());
  for (std::size_t o = 0; o < parts.size(); ++o) {
    if (model.operators[OperatorId(o)].kind != OperatorKind::batch_normalisation) continue;
    for (const RatioNode& node : tree.nodes) {
      if (node.cut) continue;
      std::vector<std::array<std::int64_t, 2>> part;
      for (const LoopRange& loop : node.loops[o]) part.push_back({loop.offset, loop.size});
      if (std::find(parts[o].begin(), parts[o].end(), part) == parts[o].end()) parts[o].push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace turnpoint::step
