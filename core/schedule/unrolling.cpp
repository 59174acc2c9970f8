// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/unrolling.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cost/operator_cost.h"
#include "core/schedule/cell_parts.h"
#include "core/schedule/expansion.h"

namespace turnpoint {
namespace {

class Unroller {
 public:
  Unroller(const TrainingGraph& whole, const Scenario& scenario, const TrainingGraphOptions& options)
      : whole_(whole),
        graph_(*whole.graph),
        precision_(scenario.settings.precision),
        scenario_(scenario),
        times_(scenario),
        model_(*scenario.model),
        whole_layers_(options.whole_layers),
        kept_gradients_(options.kept_gradients),
        links_(model_, options.cells_in_parts) {}

  Expected<TrainingGraph> run() {
    if (auto planned = plan(); !planned) return planned.error();
    builder_.reserve(std::size_t(tasks_), std::size_t(edges_));
    for (TaskIndex task = 0; task < graph_.task_count(); ++task) add_tasks(task);
    for (TaskIndex task = 0; task < graph_.task_count(); ++task) {
      if (expansions_[task].steps > 0) add_inner_edges(task);
      for (EdgeIndex e = graph_.out_begin[task]; e < graph_.out_begin[task + 1]; ++e) {
        tensor_ = graph_.out_tensor.empty() ? 0 : graph_.out_tensor[e];
        connect(task, graph_.out_to[e], graph_.out_bytes[e]);
      }
    }
    builder_.name = graph_.name;
    builder_.links = graph_.links;
    builder_.devices = graph_.devices;
    builder_.alike = graph_.alike;
    builder_.intended_devices = graph_.intended_devices;
    auto made = builder_.finish(graph_.name);
    if (!made) return made.error();
    result_.graph = std::move(*made);
    return std::move(result_);
  }

 private:
  TaskRole role(TaskIndex task) const { return whole_.role[task]; }
  bool in_steps(TaskIndex task) const {
    return role(task) == TaskRole::forward || role(task) == TaskRole::backward ||
           role(task) == TaskRole::weight_gradient;
  }
  bool recurrent(TaskIndex task) const {
    return model_.operators[whole_.operator_of[task]].kind == OperatorKind::recurrent;
  }
  bool unsplit(TaskIndex task) const { return role(task) == TaskRole::backward && gradient_bytes_[task] >= 0; }

  /// Who is replaced by how many, within bounds.
  Expected<void> plan() {
    expansions_.resize(graph_.task_count());
    gradient_bytes_.assign(graph_.task_count(), -1);
    double tasks = 0, edges = 0;
    for (TaskIndex t = 0; t < graph_.task_count(); ++t) {
      for (EdgeIndex e = graph_.out_begin[t]; e < graph_.out_begin[t + 1]; ++e)
        if (sums(graph_.out_to[e])) gradient_bytes_[t] = std::max(gradient_bytes_[t], graph_.out_bytes[e]);
      Expansion& x = expansions_[t];
      const StepwiseOperator* op = links_.find(whole_.operator_of[t]);
      if (op && in_steps(t)) {
        x.op = op;
        x.steps = op->steps;
        x.directions = op->cell.directions;
        x.per_step = parts_of(t, op->cell);
        for (const CellPart& part : op->cell.parts)
          edges += double(x.pieces()) * double(part.of.size() + part.old.size()) +
                   double(part.all.size()) * double(x.pieces()) * double(x.steps) / 2;
      }
      x.first = TaskIndex(std::min<double>(tasks, kNone));
      tasks += double(x.count());
    }
    for (TaskIndex t = 0; t < graph_.task_count(); ++t)
      for (const TaskIndex to : graph_.successors(t)) {
        const Expansion &a = expansions_[t], &b = expansions_[to];
        const double from = a.steps ? double(a.pieces()) : 1, into = b.steps ? double(b.pieces()) : 1;
        const bool along = a.steps && b.steps && in_step(t, to);
        edges += along ? from * b.directions * 4 : from * into * 4;
      }
    if (tasks > double(kMaxUnrolledTasks) || edges > double(kMaxUnrolledEdges))
      return usage_error(fmt::format("unrolling makes {:.3g} tasks and {:.3g} edges; {} and {} are possible", tasks,
                                     edges, kMaxUnrolledTasks, kMaxUnrolledEdges),
                         model_.source);
    tasks_ = tasks, edges_ = edges;
    return {};
  }

  bool sums(TaskIndex task) const { return role(task) == TaskRole::update || role(task) == TaskRole::accumulate; }

  std::uint32_t parts_of(TaskIndex task, const CellProgram& cell) const {
    if (!cell.in_parts()) return 1;
    const auto parts = std::uint32_t(cell.parts.size()), parameters = std::uint32_t(cell.parameters.size());
    if (role(task) == TaskRole::weight_gradient) return parameters;
    return unsplit(task) ? parts + parameters : parts;
  }

  bool in_step(TaskIndex from, TaskIndex to) const {
    const OperatorId a = whole_.operator_of[from], b = whole_.operator_of[to];
    return a == b || links_.in_step(a, b);
  }

  // Tasks.

  void add_tasks(TaskIndex task) {
    const Expansion& x = expansions_[task];
    TaskGraphBuilder::Task made;
    made.kind = graph_.kind[task];
    made.persistent_bytes = graph_.persistent_bytes[task];
    if (graph_.colocate[task] != kNone) made.colocate = builder_.group(graph_.groups[graph_.colocate[task]]);
    const std::string_view scope = graph_.scopes[graph_.scope[task]];
    if (x.steps == 0) {
      made.name = graph_.names[task];
      made.time_s = graph_.time_s[task];
      made.output_bytes = graph_.output_bytes[task];
      made.workspace_bytes = graph_.workspace_bytes[task];
      made.scope = builder_.scope(scope);
      return add(task, made);
    }
    const std::size_t name_end = model_.operators[whole_.operator_of[task]].name.size();
    for (std::uint32_t d = 0; d < x.directions; ++d)
      for (std::int64_t p = 0; p < x.steps; ++p) {
        const std::string step = fmt::format("step{}{}", p, d == 1 ? "-reverse" : "");
        made.scope = builder_.scope(x.op->cell.in_parts() ? fmt::format("{}{}{}", scope, scope.empty() ? "" : "/", step)
                                                          : std::string(scope));
        // Parts of a step share a device; what they make of its weights' gradients need not.
        const bool tied = !whole_layers_ && x.op->cell.in_parts() && role(task) != TaskRole::weight_gradient;
        const std::uint32_t group = tied ? builder_.group(inserted(graph_.names[task], name_end, step)) : made.colocate;
        for (std::uint32_t part = 0; part < x.per_step; ++part) {
          made.colocate = tied && part >= x.op->cell.parts.size() ? kNone : group;
          const std::string part_name = name_of(task, part);
          const std::string name =
              inserted(graph_.names[task], name_end, part_name.empty() ? step : fmt::format("{}/{}", step, part_name));
          made.name = name;
          made.time_s = seconds_of(task, time_share(x.op->cell, role(task), unsplit(task), part));
          made.output_bytes = output_of(task, d, p, part);
          add(task, made);
        }
      }
  }

  void add(TaskIndex whole, const TaskGraphBuilder::Task& task) {
    builder_.add_task(task);
    result_.operator_of.push_back(whole_.operator_of[whole]);
    result_.role.push_back(role(whole));
  }

  std::string name_of(TaskIndex task, std::uint32_t part) const {
    const CellProgram& cell = expansions_[task].op->cell;
    if (!cell.in_parts()) return {};
    const auto parts = std::uint32_t(cell.parts.size());
    const bool weights = role(task) == TaskRole::weight_gradient;
    if (!weights && part < parts) return cell.parts[part].name;
    return fmt::format("parameter{}", weights ? part : part - parts);
  }

  /// Backward as two tasks in a row, the gradients of inputs and those of weights.
  bool is_half(TaskIndex task) const {
    const auto of_weights = [&](TaskIndex t) {
      return t < graph_.task_count() && role(t) == TaskRole::weight_gradient;
    };
    return of_weights(task) || (role(task) == TaskRole::backward && of_weights(task + 1) &&
                                whole_.operator_of[task + 1] == whole_.operator_of[task]);
  }
  /// Of this share of a time step, which launches its own kernels.
  double seconds_of(TaskIndex task, double share) const {
    const double launch = measured_launch_s(times_, scenario_, model_.operators[whole_.operator_of[task]],
                                            role(task) != TaskRole::forward);
    return seconds_of_share(graph_.time_s[task] / double(expansions_[task].pieces()),
                            is_half(task) ? launch / 2 : launch, share);
  }

  std::int64_t internal_bytes(OperatorId id) const {
    std::int64_t bytes = 0;
    for (const Access& access : model_.operators[id].outputs)
      if (const Tensor& tensor = model_.tensors[access.tensor]; tensor.role == TensorRole::internal)
        bytes += tensor.elements() * element_bytes(tensor, precision_);
    return bytes;
  }

  /// Gradients of gates that backward of all steps hands to those of the weights.
  std::int64_t gates_bytes(TaskIndex task) const {
    const OperatorId id = whole_.operator_of[task];
    return gate_gradients(model_.operators[id], internal_bytes(id));
  }

  /// Of a parameter's gradient, the part that a direction's own weights have.
  std::int64_t gradient_piece(TaskIndex task, std::uint32_t d, std::uint32_t parameter) const {
    const CellProgram& cell = expansions_[task].op->cell;
    const std::int64_t total = piece(std::max<std::int64_t>(gradient_bytes_[task], 0), cell.directions, d);
    if (!cell.in_parts()) return total;
    double before = 0;
    for (std::uint32_t i = 0; i < parameter; ++i) before += cell.parameter_share[i];
    const auto begin = std::int64_t(double(total) * before);
    if (parameter + 1 == cell.parameters.size()) return total - begin;
    return std::int64_t(double(total) * (before + cell.parameter_share[parameter])) - begin;
  }

  std::int64_t output_of(TaskIndex task, std::uint32_t d, std::int64_t p, std::uint32_t part) const {
    const Expansion& x = expansions_[task];
    const std::int64_t index = d * x.steps + p, total = graph_.output_bytes[task];
    const CellProgram& cell = x.op->cell;
    // In whole layers later steps add to the buffer that the first one makes; else each writes the sum anew.
    const bool sums_here = !whole_layers_ || kept_gradients_ || p == x.position(d, x.steps - 1);
    switch (role(task)) {
      case TaskRole::forward: {
        if (!cell.in_parts()) return piece(total, x.pieces(), index);
        // The gates' buffer is filled in place by all parts of the step but the last.
        const std::int64_t kept = internal_bytes(whole_.operator_of[task]);
        if (part == 0) return piece(kept, x.pieces(), index);
        return part == cell.output() ? piece(total - kept, x.pieces(), index) : 0;
      }
      case TaskRole::weight_gradient: return sums_here ? gradient_piece(task, d, part) : 0;
      default: break;
    }
    const std::int64_t weights = std::max<std::int64_t>(gradient_bytes_[task], 0);
    const std::int64_t whole_gates = gives_gates(task) ? gates_bytes(task) : 0;
    // Each direction has a summand of all of it.
    const std::int64_t input = piece(total - weights - (unsplit(task) ? 0 : whole_gates), x.steps, p);
    const std::int64_t gates = piece(whole_gates, x.pieces(), index);
    if (!cell.in_parts()) return input + gates + (unsplit(task) && sums_here ? gradient_piece(task, d, 0) : 0);
    const auto parts = std::uint32_t(cell.parts.size());
    if (part >= parts) return sums_here ? gradient_piece(task, d, part - parts) : 0;
    return (part == 0 ? input : 0) + gates_of(cell, gates, part);
  }

  /// Whether this backward hands the gradients of its gates to tasks that make those of the weights of them.
  bool gives_gates(TaskIndex task) const {
    if (whole_layers_ || !recurrent(task) || role(task) != TaskRole::backward) return false;
    return unsplit(task) ? expansions_[task].op->cell.in_parts() : is_half(task);
  }

  // Edges inside an operator.

  /// Bytes that one step or part hands to another of the same operator.
  std::int64_t state_bytes(TaskIndex task) const {
    const Expansion& x = expansions_[task];
    const OperatorId id = whole_.operator_of[task];
    std::int64_t output = 0;
    for (const Access& access : model_.operators[id].outputs)
      if (const Tensor& tensor = model_.tensors[access.tensor]; tensor.role != TensorRole::internal)
        output += tensor.elements() * element_bytes(tensor, precision_);
    return output / x.pieces() * (x.op->cell.in_parts() ? 1 : x.op->cell.states);
  }

  void add_inner_edges(TaskIndex task) {
    const Expansion& x = expansions_[task];
    if (role(task) == TaskRole::weight_gradient) {
      const Expansion& backward = expansions_[task - 1];  // a split backward is made as two tasks in a row
      const std::int64_t gates = whole_layers_ ? 0 : gates_bytes(task);
      for_each_step(x, [&](std::uint32_t d, std::int64_t p) { gradients_after(backward, x, d, p, 0, gates); });
      return add_gradient_edges(task, 0);
    }
    const std::int64_t bytes = state_bytes(task);
    const bool forward = role(task) == TaskRole::forward;
    // Backward, the same edges the other way round, of tensors that nobody else reads.
    const auto edge = [&](TaskIndex from, TaskIndex to, std::int64_t more = 0) {
      builder_.add_tensor(forward ? from : to, forward ? to : from, forward ? 0 : kStateGradient, bytes + more);
    };
    const bool sum_along = unsplit(task) && !x.op->cell.in_parts() && !whole_layers_ && !kept_gradients_;
    const auto& parts = x.op->cell.parts;
    for (std::uint32_t d = 0; d < x.directions; ++d)
      for (std::int64_t s = 0; s < x.steps; ++s)
        for (std::uint32_t part = 0; part < parts.size(); ++part) {
          const TaskIndex here = x.at(d, x.position(d, s), part);
          for (const std::uint32_t from : parts[part].of) edge(x.at(d, x.position(d, s), from), here);
          if (s == 0) continue;
          for (const std::uint32_t from : parts[part].old)
            edge(x.at(d, x.position(d, s - 1), from), here, sum_along ? gradient_piece(task, d, 0) : 0);
          for (const std::uint32_t from : parts[part].all)
            for (std::int64_t earlier = 0; earlier < s; ++earlier) edge(x.at(d, x.position(d, earlier), from), here);
        }
    if (!unsplit(task)) return;
    if (x.op->cell.in_parts()) {
      const std::int64_t gates = whole_layers_ ? 0 : gates_bytes(task);
      for_each_step(
          x, [&](std::uint32_t d, std::int64_t p) { gradients_after(x, x, d, p, std::uint32_t(parts.size()), gates); });
      add_gradient_edges(task, std::uint32_t(parts.size()));
    } else {
      add_gradient_edges(task, 0);
    }
  }

  template <class Do>
  void for_each_step(const Expansion& x, Do&& act) const {
    for (std::uint32_t d = 0; d < x.directions; ++d)
      for (std::int64_t p = 0; p < x.steps; ++p) act(d, p);
  }

  /// The running sum from the last step to the first; in whole layers gradients of later steps are added to the buffer
  /// that the first of them makes. Parts from `first` on have gradients.
  void add_gradient_edges(TaskIndex task, std::uint32_t first) {
    if (kept_gradients_) return;  // each step hands its own to the update
    const Expansion& x = expansions_[task];
    const bool along_states = unsplit(task) && !x.op->cell.in_parts();  // beside them, in one transfer
    for (std::uint32_t d = 0; d < x.directions && !whole_layers_ && !along_states; ++d)
      for (std::int64_t s = x.steps - 1; s > 0; --s)
        for (std::uint32_t part = first; part < x.per_step; ++part)
          builder_.add_tensor(x.at(d, x.position(d, s), part), x.at(d, x.position(d, s - 1), part), kParameterGradient,
                              gradient_piece(task, d, part - first));
    if (!whole_layers_) return;
    for (std::uint32_t d = 0; d < x.directions; ++d)
      for (std::int64_t s = 0; s + 1 < x.steps; ++s)
        for (std::uint32_t part = first; part < x.per_step; ++part)
          builder_.add_edge(x.at(d, x.position(d, x.steps - 1), part), x.at(d, x.position(d, s), part), 0);
  }

  /// In `weights`, parts from `first` on are gradients of parameters: each needs what backward of its product needs,
  /// the gradients of gates, `whole_gates` of all steps.
  void gradients_after(const Expansion& backward, const Expansion& weights, std::uint32_t d, std::int64_t p,
                       std::uint32_t first, std::int64_t whole_gates) {
    const CellProgram& cell = weights.op->cell;
    const std::int64_t gates = piece(whole_gates, weights.pieces(), d * weights.steps + p);
    const std::uint32_t tensor = whole_layers_ ? 0 : kGatesGradient;
    if (!cell.in_parts()) return builder_.add_tensor(backward.at(d, p, 0), weights.at(d, p, 0), tensor, gates);
    for (std::uint32_t i = 0; i < cell.parameters.size(); ++i)
      for (std::uint32_t part = 0; part < cell.parts.size(); ++part)
        if (cell.reads(part, cell.product_of(cell.parameters[i])))
          builder_.add_tensor(backward.at(d, p, part), weights.at(d, p, first + i), tensor,
                              gates_of(cell, gates, part));
  }

  // Edges between operators, and between forward and backward of one.

  void add_edge(TaskIndex from, TaskIndex to, std::int64_t bytes) { builder_.add_tensor(from, to, tensor_, bytes); }

  struct Bytes {
    std::int64_t total = 0;
    bool gradient = false;  ///< each direction hands over its summand of a position's gradient
    std::int64_t of(const Expansion& x, std::uint32_t d, std::int64_t p) const {
      return gradient ? piece(total, x.steps, p) : piece(total, x.pieces(), d * x.steps + p);
    }
  };

  void connect(TaskIndex from, TaskIndex to, std::int64_t bytes) {
    const Expansion &a = expansions_[from], &b = expansions_[to];
    if (a.steps == 0 && b.steps == 0) return add_edge(a.first, b.first, bytes);
    if (sums(to)) return connect_sum(from, to);
    if (role(from) == TaskRole::weights) return hand_out(from, to, bytes);
    // The gradients of weights take that of their step's gates, which backward of the step has made.
    const bool from_gradient = role(from) == TaskRole::backward;
    if (b.steps > 0 && role(to) == TaskRole::weight_gradient && from_gradient) return;
    if (a.steps == 0)
      return for_each_step(b, [&](std::uint32_t d, std::int64_t p) { enter(a.first, from, to, d, p, bytes); });
    if (whole_.operator_of[from] == whole_.operator_of[to]) return keep(from, to, bytes);
    const Bytes each{bytes, role(from) == TaskRole::backward};
    for_each_step(a, [&](std::uint32_t d, std::int64_t p) {
      const TaskIndex made = a.at(d, p, role(from) == TaskRole::forward ? a.op->cell.output() : 0);
      if (b.steps == 0) return add_edge(made, b.first, each.of(a, d, p));
      const bool along = in_step(from, to);
      for_each_step(b, [&](std::uint32_t e, std::int64_t q) {
        if (!along || q == p) enter(made, from, to, e, q, each.of(a, d, p));
      });
    });
  }

  /// What comes from another operator enters a step of `to`.
  void enter(TaskIndex made, TaskIndex from, TaskIndex to, std::uint32_t d, std::int64_t p, std::int64_t bytes) {
    const Expansion& b = expansions_[to];
    const CellProgram& cell = b.op->cell;
    if (role(to) == TaskRole::weight_gradient) {
      for (std::uint32_t part = 0; part < b.per_step; ++part) add_edge(made, b.at(d, p, part), bytes);
      return;
    }
    // A gradient enters backward where forward ends; so does an end of the network, whose own forward starts backward.
    const bool gradient = role(to) == TaskRole::backward && role(from) == TaskRole::backward;
    if (gradient) return add_edge(made, b.at(d, p, cell.output()), bytes);
    for (std::uint32_t part = 0; part < cell.parts.size(); ++part)
      if (cell.parts[part].reads_input) add_edge(made, b.at(d, p, part), bytes);
    if (unsplit(to))
      for (auto part = std::uint32_t(cell.parts.size()); part < b.per_step; ++part)
        add_edge(made, b.at(d, p, part), bytes);
  }

  /// What forward of an operator keeps for its own backward, step by step.
  void keep(TaskIndex from, TaskIndex to, std::int64_t bytes) {
    const Expansion &a = expansions_[from], &b = expansions_[to];
    const CellProgram& cell = a.op->cell;
    const std::int64_t gates = std::min(internal_bytes(whole_.operator_of[from]), bytes);
    const bool apart = !whole_layers_ && recurrent(from);
    if (apart) hand_state(from, to);
    if (apart && role(to) == TaskRole::weight_gradient) return;
    for_each_step(a, [&](std::uint32_t d, std::int64_t p) {
      const std::int64_t index = d * a.steps + p;
      if (!cell.in_parts()) return add_edge(a.at(d, p, 0), b.at(d, p, 0), piece(bytes, a.pieces(), index));
      std::vector<std::uint32_t> into{0, cell.output()};
      if (!apart && (role(to) == TaskRole::weight_gradient || unsplit(to))) {
        if (role(to) == TaskRole::weight_gradient) into.clear();
        for (std::uint32_t part = role(to) == TaskRole::weight_gradient ? 0 : std::uint32_t(cell.parts.size());
             part < b.per_step; ++part)
          into.push_back(part);
      }
      for (const std::uint32_t part : into) {
        add_edge(a.at(d, p, 0), b.at(d, p, part), piece(gates, a.pieces(), index));
        add_edge(a.at(d, p, cell.output()), b.at(d, p, part), piece(bytes - gates, a.pieces(), index));
      }
    });
  }

  /// What the steps before left: each step's own backward reads what its step began with, the gradient of its weights
  /// the output among that; and backward of what looks back at all earlier steps reads those.
  void hand_state(TaskIndex from, TaskIndex to) {
    const Expansion &a = expansions_[from], &b = expansions_[to];
    const CellProgram& cell = a.op->cell;
    const auto parts = std::uint32_t(cell.parts.size());
    const bool weights_only = role(to) == TaskRole::weight_gradient;
    const std::int64_t vector = state_bytes(from) / (cell.in_parts() ? 1 : cell.states);
    // Of several states the last output is for the weights' gradient alone.
    const int began_with = unsplit(to) ? cell.states : std::max(1, cell.states - 1);
    for (std::uint32_t d = 0; d < a.directions; ++d)
      for (std::int64_t s = 1; s < a.steps; ++s) {
        const TaskIndex before = a.at(d, a.position(d, s - 1), cell.output());
        const std::int64_t here = a.position(d, s);
        if (!weights_only) add_edge(before, b.at(d, here, cell.output()), began_with * vector);
        for (std::uint32_t part = weights_only ? 0 : parts; part < b.per_step; ++part)
          add_edge(before, b.at(d, here, part), vector);
        if (weights_only) continue;
        for (std::uint32_t part = 0; part < parts; ++part)
          for (const std::uint32_t earlier : cell.parts[part].all)
            for (std::int64_t r = 0; r + (cell.in_parts() ? 0 : 1) < s; ++r)
              add_edge(a.at(d, a.position(d, r), earlier), b.at(d, here, part), vector);
      }
  }

  /// Weights to the steps that read them: those of each direction, and in parts of each product, are a tensor of their
  /// own.
  void hand_out(TaskIndex from, TaskIndex to, std::int64_t bytes) {
    const TaskIndex held = expansions_[from].first;
    const Expansion& b = expansions_[to];
    const CellProgram& cell = b.op->cell;
    if (!cell.in_parts())
      return for_each_step(b, [&](std::uint32_t d, std::int64_t p) {
        builder_.add_tensor(held, b.at(d, p, 0), d, piece(bytes, cell.directions, d));
      });
    const Operator& op = model_.operators[whole_.operator_of[to]];
    std::vector<std::int64_t> read(cell.parts.size(), 0);
    for (const std::uint32_t parameter : cell.parameters) {
      const Tensor& tensor = model_.tensors[op.inputs[parameter].tensor];
      if (role(to) == TaskRole::backward && !op.inputs[parameter].saved) continue;
      read[cell.product_of(parameter)] += tensor.elements() * element_bytes(tensor, precision_);
    }
    for_each_step(b, [&](std::uint32_t d, std::int64_t p) {
      for (std::uint32_t part = 0; part < read.size(); ++part)
        if (read[part] > 0)
          builder_.add_tensor(held, b.at(d, p, part), 2 * part + d, piece(read[part], cell.directions, d));
    });
  }

  /// Gradients to their update or accumulation, which the model's whole graph has after all of its steps.
  void connect_sum(TaskIndex from, TaskIndex to) {
    const Expansion &a = expansions_[from], &b = expansions_[to];
    if (a.steps == 0) return;  // both are whole: handled before
    const bool parts = a.op->cell.in_parts();
    const std::uint32_t first = parts && role(from) == TaskRole::backward ? std::uint32_t(a.op->cell.parts.size()) : 0;
    for_each_step(a, [&](std::uint32_t d, std::int64_t p) {
      // The step that has the sum: in place the one that made the buffer, else the last to add to it.
      const bool has = kept_gradients_ || p == a.position(d, whole_layers_ ? a.steps - 1 : 0);
      for (std::uint32_t part = first; part < a.per_step && (has || whole_layers_); ++part)
        add_edge(a.at(d, p, part), b.first, has ? gradient_piece(from, d, part - first) : 0);
    });
  }

  const TrainingGraph& whole_;
  const TaskGraph& graph_;
  const Precision precision_;
  const Scenario& scenario_;
  const DeviceTimes times_;  ///< one look-up of fits, for prices and for what calls cost here
  const Model& model_;
  const bool whole_layers_, kept_gradients_;
  const StepLinks links_;
  TaskGraphBuilder builder_;
  std::vector<Expansion> expansions_;         // by task of the whole graph
  std::vector<std::int64_t> gradient_bytes_;  // by task: of its parameters' gradients; -1: makes none
  double tasks_ = 0, edges_ = 0;
  std::uint32_t tensor_ = 0;  // of the edge of the whole graph that is being connected
  TrainingGraph result_;
};

}  // namespace

Expected<TrainingGraph> unroll_steps(const TrainingGraph& whole, const Scenario& scenario,
                                     const TrainingGraphOptions& options) {
  return Unroller(whole, scenario, options).run();
}

}  // namespace turnpoint
