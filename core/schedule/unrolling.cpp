// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/unrolling.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cost/operator_cost.h"
#include "core/schedule/cell_parts.h"
#include "core/schedule/step_links.h"

namespace turnpoint {
namespace {

/// Piece `i` of `n` of a whole number; the pieces add up to it.
std::int64_t piece(std::int64_t total, std::int64_t n, std::int64_t i) { return total / n + (i < total % n ? 1 : 0); }

/// "a:gradient #2" of operator "a" becomes "a/WHAT:gradient #2".
std::string inserted(std::string_view name, std::size_t at, const std::string& what) {
  return std::string(name.substr(0, at)) + "/" + what + std::string(name.substr(at));
}

/// One task of the whole graph and the tasks that replace it: `per_step` of them for each direction and position.
struct Expansion {
  TaskIndex first = 0;
  std::uint32_t directions = 1, per_step = 1;
  std::int64_t steps = 0;  ///< 0: the task stays as it is
  const StepwiseOperator* op = nullptr;
  std::int64_t count() const { return steps == 0 ? 1 : std::int64_t(directions) * steps * per_step; }
  std::int64_t pieces() const { return std::int64_t(directions) * steps; }
  TaskIndex at(std::uint32_t direction, std::int64_t position, std::uint32_t part) const {
    return first + TaskIndex((direction * steps + position) * per_step + part);
  }
  /// Where a direction is after `step` steps forward.
  std::int64_t position(std::uint32_t direction, std::int64_t step) const {
    return direction % 2 == 0 ? step : steps - 1 - step;
  }
};

class Unroller {
 public:
  Unroller(const TrainingGraph& whole, const Scenario& scenario, bool in_parts)
      : whole_(whole),
        graph_(*whole.graph),
        precision_(scenario.settings.precision),
        model_(*scenario.model),
        links_(model_, in_parts) {}

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
  bool unsplit(TaskIndex task) const { return role(task) == TaskRole::backward && gradient_bytes_[task] >= 0; }

  /// Who is replaced by how many, within bounds.
  Expected<void> plan() {
    expansions_.resize(graph_.task_count());
    gradient_bytes_.assign(graph_.task_count(), -1);
    double tasks = 0, edges = 0;
    for (TaskIndex t = 0; t < graph_.task_count(); ++t) {
      for (EdgeIndex e = graph_.out_begin[t]; e < graph_.out_begin[t + 1]; ++e)
        if (const TaskRole to = role(graph_.out_to[e]); to == TaskRole::update || to == TaskRole::accumulate)
          gradient_bytes_[t] = std::max(gradient_bytes_[t], graph_.out_bytes[e]);
      Expansion& x = expansions_[t];
      const StepwiseOperator* op = links_.find(whole_.operator_of[t]);
      if (op && role(t) != TaskRole::update && role(t) != TaskRole::accumulate) {
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
        for (std::uint32_t part = 0; part < x.per_step; ++part) {
          const std::string part_name = name_of(task, part);
          const std::string name =
              inserted(graph_.names[task], name_end, part_name.empty() ? step : fmt::format("{}/{}", step, part_name));
          made.name = name;
          made.time_s = graph_.time_s[task] * time_share(task, part) / double(x.pieces());
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

  double time_share(TaskIndex task, std::uint32_t part) const {
    const CellProgram& cell = expansions_[task].op->cell;
    if (!cell.in_parts()) return 1;
    if (role(task) == TaskRole::weight_gradient) return cell.parameter_share[part];
    if (!unsplit(task)) return cell.share[part];
    const auto parts = cell.share.size();
    return (part < parts ? cell.share[part] : cell.parameter_share[part - parts]) / 2;
  }

  std::int64_t internal_bytes(OperatorId id) const {
    std::int64_t bytes = 0;
    for (const Access& access : model_.operators[id].outputs)
      if (const Tensor& tensor = model_.tensors[access.tensor]; tensor.role == TensorRole::internal)
        bytes += tensor.elements() * element_bytes(tensor, precision_);
    return bytes;
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
    const bool first_gradient = p == x.position(d, x.steps - 1);
    switch (role(task)) {
      case TaskRole::forward: {
        if (!cell.in_parts()) return piece(total, x.pieces(), index);
        // The gates' buffer is filled in place by all parts of the step but the last.
        const std::int64_t kept = internal_bytes(whole_.operator_of[task]);
        if (part == 0) return piece(kept, x.pieces(), index);
        return part == cell.output() ? piece(total - kept, x.pieces(), index) : 0;
      }
      case TaskRole::weight_gradient: return first_gradient ? gradient_piece(task, d, part) : 0;
      default: break;
    }
    const std::int64_t weights = std::max<std::int64_t>(gradient_bytes_[task], 0);
    const std::int64_t input = piece(total - weights, x.steps, p);  // each direction has a summand of all of it
    if (!cell.in_parts()) return input + (unsplit(task) && first_gradient ? gradient_piece(task, d, 0) : 0);
    const auto parts = std::uint32_t(cell.parts.size());
    if (part >= parts) return first_gradient ? gradient_piece(task, d, part - parts) : 0;
    return part == 0 ? input : 0;
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
      for_each_step(x, [&](std::uint32_t d, std::int64_t p) { gradients_after(backward, x, d, p, 0); });
      return add_gradient_edges(task, 0);
    }
    const std::int64_t bytes = state_bytes(task);
    const bool forward = role(task) == TaskRole::forward;
    // Backward, the same edges the other way round.
    const auto edge = [&](TaskIndex from, TaskIndex to) {
      builder_.add_edge(forward ? from : to, forward ? to : from, bytes);
    };
    const auto& parts = x.op->cell.parts;
    for (std::uint32_t d = 0; d < x.directions; ++d)
      for (std::int64_t s = 0; s < x.steps; ++s)
        for (std::uint32_t part = 0; part < parts.size(); ++part) {
          const TaskIndex here = x.at(d, x.position(d, s), part);
          for (const std::uint32_t from : parts[part].of) edge(x.at(d, x.position(d, s), from), here);
          if (s == 0) continue;
          for (const std::uint32_t from : parts[part].old) edge(x.at(d, x.position(d, s - 1), from), here);
          for (const std::uint32_t from : parts[part].all)
            for (std::int64_t earlier = 0; earlier < s; ++earlier) edge(x.at(d, x.position(d, earlier), from), here);
        }
    if (!unsplit(task)) return;
    if (x.op->cell.in_parts()) {
      for_each_step(x,
                    [&](std::uint32_t d, std::int64_t p) { gradients_after(x, x, d, p, std::uint32_t(parts.size())); });
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

  /// Gradients of later steps are added to the buffer that the first one makes. Parts from `first` on have gradients.
  void add_gradient_edges(TaskIndex task, std::uint32_t first) {
    const Expansion& x = expansions_[task];
    for (std::uint32_t d = 0; d < x.directions; ++d)
      for (std::int64_t s = 0; s + 1 < x.steps; ++s)
        for (std::uint32_t part = first; part < x.per_step; ++part)
          builder_.add_edge(x.at(d, x.position(d, x.steps - 1), part), x.at(d, x.position(d, s), part), 0);
  }

  /// In `weights`, parts from `first` on are gradients of parameters: each needs what backward of its product needs.
  void gradients_after(const Expansion& backward, const Expansion& weights, std::uint32_t d, std::int64_t p,
                       std::uint32_t first) {
    const CellProgram& cell = weights.op->cell;
    if (!cell.in_parts()) return builder_.add_edge(backward.at(d, p, 0), weights.at(d, p, 0), 0);
    for (std::uint32_t i = 0; i < cell.parameters.size(); ++i) {
      std::uint32_t product = 0;
      for (std::uint32_t part = 0; part < cell.parts.size(); ++part)
        if (cell.parts[part].work == CellPart::Work::product && cell.parts[part].weight == cell.parameters[i])
          product = part;
      for (std::uint32_t part = 0; part < cell.parts.size(); ++part)
        if (const auto& of = cell.parts[part].of; std::find(of.begin(), of.end(), product) != of.end())
          builder_.add_edge(backward.at(d, p, part), weights.at(d, p, first + i), 0);
    }
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
    const bool sums = role(to) == TaskRole::update || role(to) == TaskRole::accumulate;
    if (sums) return connect_sum(from, to);
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
    for_each_step(a, [&](std::uint32_t d, std::int64_t p) {
      const std::int64_t index = d * a.steps + p;
      if (!cell.in_parts()) return add_edge(a.at(d, p, 0), b.at(d, p, 0), piece(bytes, a.pieces(), index));
      std::vector<std::uint32_t> into{0, cell.output()};
      if (role(to) == TaskRole::weight_gradient || unsplit(to)) {
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

  /// Gradients to their update or accumulation, which the model's whole graph has after all of its steps.
  void connect_sum(TaskIndex from, TaskIndex to) {
    const Expansion &a = expansions_[from], &b = expansions_[to];
    if (a.steps == 0) return;  // both are whole: handled before
    const bool parts = a.op->cell.in_parts();
    const std::uint32_t first = parts && role(from) == TaskRole::backward ? std::uint32_t(a.op->cell.parts.size()) : 0;
    for_each_step(a, [&](std::uint32_t d, std::int64_t p) {
      const bool makes = p == a.position(d, a.steps - 1);
      for (std::uint32_t part = first; part < a.per_step; ++part)
        add_edge(a.at(d, p, part), b.first, makes ? gradient_piece(from, d, part - first) : 0);
    });
  }

  const TrainingGraph& whole_;
  const TaskGraph& graph_;
  const Precision precision_;
  const Model& model_;
  const StepLinks links_;
  TaskGraphBuilder builder_;
  std::vector<Expansion> expansions_;         // by task of the whole graph
  std::vector<std::int64_t> gradient_bytes_;  // by task: of its parameters' gradients; -1: makes none
  double tasks_ = 0, edges_ = 0;
  std::uint32_t tensor_ = 0;  // of the edge of the whole graph that is being connected
  TrainingGraph result_;
};

}  // namespace

Expected<TrainingGraph> unroll_steps(const TrainingGraph& whole, const Scenario& scenario, bool in_parts) {
  return Unroller(whole, scenario, in_parts).run();
}

}  // namespace turnpoint
