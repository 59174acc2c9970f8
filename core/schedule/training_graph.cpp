// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/training_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/tensor_use.h"
#include "core/model/backward_reads.h"
#include "core/model/operator_kind.h"
#include "core/plan/micro_batch.h"
#include "core/scenario/task_scenario.h"
#include "core/schedule/cell_parts.h"
#include "core/schedule/unrolling.h"

namespace turnpoint {
namespace {

/// The scenario on a single device of this type.
Scenario on_one_device(const Scenario& scenario, const DeviceType& device) {
  auto cluster = std::make_shared<Cluster>(*scenario.cluster);
  set_nodes(*cluster, 1);
  cluster->devices_per_node = 1;
  cluster->device = device;
  cluster->groups.clear();
  Scenario alone = scenario;
  alone.cluster = std::move(cluster);
  return alone;
}

/// What of an operator does not depend on the micro-batch.
struct Facts {
  CostBreakdown cost;
  bool is_task = false;  ///< not a view
  bool input_gradient = false, weight_gradient = false;
  bool split = false;                             ///< the two gradients are tasks of their own
  std::int64_t output_bytes = 0, kept_bytes = 0;  ///< main outputs; internals, and outputs that its backward reads
  std::int64_t internal_bytes = 0;
  std::int64_t input_gradient_bytes = 0, weight_gradient_bytes = 0;
  std::uint32_t group = kNone;
  bool has_backward() const { return input_gradient || weight_gradient; }
};

/// The tasks of one operator in one micro-batch; kNone where there is none.
struct Tasks {
  TaskIndex forward = kNone;
  TaskIndex backward = kNone;  ///< both gradients, or that of the inputs where split
  TaskIndex weights = kNone;   ///< where split
  TaskIndex makes_weight_gradient(const Facts& facts) const {
    return !facts.weight_gradient ? kNone : facts.split ? weights : backward;
  }
};

class GraphMaker {
 public:
  GraphMaker(const Scenario& scenario, const TrainingGraphOptions& options)
      : scenario_(scenario),
        alone_(on_one_device(scenario, scenario.cluster->device)),
        model_(*scenario.model),
        micro_batches_(options.micro_batches),
        whole_layers_(options.whole_layers),
        uses_(analyse_tensor_uses(model_)),
        bytes_per_second_(alone_.cluster->device.memory_bandwidth * alone_.cluster->device.memory_efficiency *
                          scenario.settings.factors.device_speed),
        resharding_(make_mesh(*alone_.cluster), collectives_of(alone_), bytes_per_second_),
        costs_(alone_, uses_, resharding_) {}

  Expected<TrainingGraph> make() {
    collect_facts();
    collect_groups();
    for (int m = 0; m < micro_batches_; ++m) {
      tasks_.emplace_back(model_.operators.size());
      for (std::size_t i = 0; i < model_.operators.size(); ++i) add_forward(m, OperatorId(i));
      for (std::size_t i = model_.operators.size(); i-- > 0;) add_backward(m, OperatorId(i));
      for (std::size_t i = 0; i < model_.operators.size(); ++i) connect(m, OperatorId(i));
    }
    add_updates();
    describe_cluster();
    builder_.name = model_.name;
    auto graph = builder_.finish(model_.name);
    if (!graph) return graph.error();
    return TrainingGraph{std::move(*graph), std::move(operator_of_), std::move(role_)};
  }

 private:
  const Facts& facts(OperatorId id) const { return facts_[id.index]; }
  Tasks& tasks(int m, OperatorId id) { return tasks_[std::size_t(m)][id.index]; }

  std::int64_t tensor_bytes(TensorId id) const {
    const Tensor& tensor = model_.tensors[id];
    return tensor.elements() * element_bytes(tensor, scenario_.settings.precision);
  }
  bool is_parameter(const Access& access) const { return model_.tensors[access.tensor].role == TensorRole::parameter; }

  void collect_facts() {
    const ParameterBytes sizes = parameter_bytes(scenario_.settings, Accounting::full);
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[OperatorId(i)];
      Facts f;
      f.is_task = !op.is_view();
      f.cost = costs_.cost(OperatorId(i), Configuration()).breakdown;
      int operands = 0;  // that are no parameters
      for (const Access& access : op.inputs) {
        const Tensor& tensor = model_.tensors[access.tensor];
        if (!tensor.requires_gradient || !f.is_task) continue;
        operands += is_parameter(access) ? 0 : 1;
        if (is_parameter(access)) {
          f.weight_gradient = true;
          f.weight_gradient_bytes += tensor.elements() * sizes.gradient;
        } else if (model_.tensors[storage_of(model_, access.tensor)].producer.valid()) {
          f.input_gradient = true;
          f.input_gradient_bytes += tensor_bytes(access.tensor);
        }
      }
      const bool products = record_of(op.kind).products;
      // Of two operands that are multiplied with each other (scores of attention, to which a table is added), the
      // gradient of each needs the other: nothing could begin earlier.
      f.split =
          products && f.input_gradient && f.weight_gradient && (op.kind == OperatorKind::recurrent || operands <= 1);
      for (const Access& access : op.outputs) {
        const bool internal = model_.tensors[access.tensor].role == TensorRole::internal;
        (internal ? f.internal_bytes : f.output_bytes) += tensor_bytes(access.tensor);
        if (internal || access.saved) f.kept_bytes += tensor_bytes(access.tensor);
      }
      facts_.push_back(f);
    }
  }

  bool owns_parameters(std::size_t op) const {
    const auto& owns = uses_.owns_parameter[op];
    return std::find(owns.begin(), owns.end(), true) != owns.end();
  }

  /// Operators with parameters; in whole layers joined where a parameter is shared.
  void collect_groups() {
    std::vector<std::uint32_t> parent(model_.operators.size());
    std::iota(parent.begin(), parent.end(), 0u);
    const auto root = [&](std::uint32_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (const auto& tie : uses_.ties) {
      const std::uint32_t a = root(tie.owner.index), b = root(tie.user.index);
      if (whole_layers_) parent[std::max(a, b)] = std::min(a, b);
    }
    for (std::uint32_t i = 0; i < parent.size(); ++i)
      if (facts_[i].weight_gradient && (whole_layers_ || owns_parameters(i)))
        facts_[i].group = builder_.group(model_.operators[OperatorId(root(i))].name);
  }

  TaskIndex add_task(int m, OperatorId id, TaskKind kind, TaskRole role, const char* suffix, double seconds,
                     std::int64_t output, std::int64_t persistent = 0) {
    const Operator& op = model_.operators[id];
    const std::string name = micro_batches_ == 1 ? op.name + suffix : fmt::format("{}{} #{}", op.name, suffix, m + 1);
    TaskGraphBuilder::Task task;
    task.name = name;
    task.kind = kind;
    task.time_s = seconds;
    task.output_bytes = output;
    task.persistent_bytes = persistent;
    const bool with_weights = role == TaskRole::weights || role == TaskRole::update;
    if (whole_layers_ || with_weights) task.colocate = facts(id).group;
    task.scope = builder_.scope(op.scope);
    operator_of_.push_back(id);
    role_.push_back(role);
    return builder_.add_task(task);
  }

  void add_forward(int m, OperatorId id) {
    Facts f = facts(id);
    if (!f.is_task) return;
    const bool data = model_.operators[id].kind == OperatorKind::input;
    tasks(m, id).forward = add_task(m, id, data ? TaskKind::other : TaskKind::forward, TaskRole::forward, "",
                                    f.cost[ComputePart::forward], f.output_bytes + f.internal_bytes);
  }

  /// What backward of a recurrent operator hands to the gradient of its weights: the gradients of its gates.
  std::int64_t gates_bytes(OperatorId id) const {
    const Operator& op = model_.operators[id];
    const bool handed = !whole_layers_ && facts(id).split && op.kind == OperatorKind::recurrent;
    return handed ? gate_gradients(op, facts(id).internal_bytes) : 0;
  }

  void add_backward(int m, OperatorId id) {
    Facts f = facts(id);
    if (!f.has_backward()) return;
    const double seconds = f.cost[ComputePart::backward];
    Tasks& t = tasks(m, id);
    if (!f.split) {
      t.backward = add_task(m, id, TaskKind::backward, TaskRole::backward, ":gradient", seconds,
                            f.input_gradient_bytes + f.weight_gradient_bytes);
      return;
    }
    t.backward = add_task(m, id, TaskKind::backward, TaskRole::backward, ":input-gradient", seconds - seconds / 2,
                          f.input_gradient_bytes + gates_bytes(id));
    t.weights = add_task(m, id, TaskKind::backward, TaskRole::weight_gradient, ":weight-gradient", seconds / 2,
                         f.weight_gradient_bytes);
  }

  /// What of an operator's outputs another one reads.
  struct Part {
    std::int64_t bytes = 0;
    std::uint32_t slots = 0;  ///< a bit for each output
    /// Tells sets of outputs apart (TaskGraph::out_tensor); the first output alone is 0.
    std::uint32_t tensor() const { return slots - 1; }
  };
  static std::uint32_t slot_bit(std::size_t slot) { return 1u << slot % 31; }

  /// Who made the tensors that an operator's input accesses read, views looked through: distinct tensors by producer.
  template <class Want>
  std::map<OperatorId, Part> producers(const Operator& op, Want&& want) const {
    std::map<OperatorId, Part> parts;
    std::set<TensorId> seen;
    for (const Access& access : op.inputs) {
      if (!want(access)) continue;
      const TensorId stored = storage_of(model_, access.tensor);
      const OperatorId producer = model_.tensors[stored].producer;
      if (!producer.valid() || !seen.insert(stored).second) continue;
      Part& part = parts[producer];
      part.bytes += tensor_bytes(stored);
      const auto& outputs = model_.operators[producer].outputs;
      for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        if (outputs[slot].tensor == stored) part.slots |= slot_bit(slot);
    }
    return parts;
  }

  /// What an operator's own backward reads of what forward made. Where all that others read is in it, too, the same
  /// tensor in another size.
  Part kept_part(const Operator& op, const Facts& f) const {
    Part part{f.kept_bytes, 0};
    std::uint32_t read = 0;
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
      const bool internal = model_.tensors[op.outputs[slot].tensor].role == TensorRole::internal;
      if (internal || op.outputs[slot].saved) part.slots |= slot_bit(slot);
      if (!internal) read |= slot_bit(slot);
    }
    const bool one_output = (read & (read - 1)) == 0;
    if (part.slots == 0 || (one_output && (part.slots & read) == read)) part.slots = read;
    return part;
  }

  void connect(int m, OperatorId id) {
    const Facts& f = facts(id);
    if (!f.is_task) return;
    const Operator& op = model_.operators[id];
    const Tasks t = tasks(m, id);
    for (const auto& [producer, part] : producers(op, [](const Access&) { return true; }))
      builder_.add_tensor(tasks(m, producer).forward, t.forward, part.tensor(), part.bytes);
    if (!f.has_backward()) return;
    connect_saved(m, id, t);
    if (!f.input_gradient) return;
    // The gradient of what it read goes back to whoever made that, to each a tensor of its own.
    const auto wanted = [&](const Access& access) {
      return !is_parameter(access) && model_.tensors[access.tensor].requires_gradient;
    };
    std::uint32_t tensor = 0;
    for (const auto& [producer, part] : producers(op, wanted)) {
      const Tasks& back = tasks(m, producer);
      // Of a recurrent operator that of the weights has what backward makes of them.
      const bool handed = gates_bytes(producer) > 0;
      for (const TaskIndex to : {back.backward, handed ? kNone : back.weights})
        if (to != kNone) builder_.add_tensor(t.backward, to, tensor, part.bytes);
      ++tensor;
    }
  }

  void connect_saved(int m, OperatorId id, const Tasks& t) {
    const Operator& op = model_.operators[id];
    const Facts& f = facts(id);
    // The gradient of a product's input is made of the weights and the output's gradient alone.
    const bool inputs_for_weights_only = f.split && op.kind != OperatorKind::recurrent;
    const auto saved = producers(op, [&](const Access& access) { return access.saved && !is_parameter(access); });
    for (const TaskIndex task : {t.backward, t.weights}) {
      if (task == kNone) continue;
      if (!(inputs_for_weights_only && task == t.backward))
        for (const auto& [producer, part] : saved)
          builder_.add_tensor(tasks(m, producer).forward, task, part.tensor(), part.bytes);
      // Where the network ends no gradient says when backward may begin: its own forward does.
      if (f.kept_bytes > 0 || !has_gradient_consumer(op)) {
        const bool states_only = task == t.weights && gates_bytes(id) > 0;
        const Part kept = states_only ? Part{f.output_bytes, kept_part(op, f).slots} : kept_part(op, f);
        builder_.add_tensor(t.forward, task, kept.tensor(), kept.bytes);
      }
    }
    if (const std::int64_t gates = gates_bytes(id); gates > 0)
      builder_.add_tensor(t.backward, t.weights, kGatesGradient, gates);
  }

  /// Whether some operator's backward sends a gradient for one of the outputs, views looked through.
  bool has_gradient_consumer(const Operator& op) const {
    for (const Access& access : op.outputs)
      if (model_.tensors[access.tensor].role != TensorRole::internal && reaches_gradient(access.tensor)) return true;
    return false;
  }
  bool reaches_gradient(TensorId tensor) const {
    std::vector<TensorId> open{tensor};
    while (!open.empty()) {
      const TensorId next = open.back();
      open.pop_back();
      for (const auto& use : model_.uses[next]) {
        const Operator& consumer = model_.operators[use.op];
        if (!model_.tensors[next].requires_gradient) continue;
        if (!consumer.is_view()) return true;
        for (const Access& access : consumer.outputs) open.push_back(access.tensor);
      }
    }
    return false;
  }

  /// Accumulations; and per operator that owns parameters one update, and where layers are not kept whole its weights.
  void add_updates() {
    std::map<OperatorId, std::set<OperatorId>> users;
    for (std::size_t i = 0; i < facts_.size(); ++i)
      if (facts_[i].weight_gradient && owns_parameters(i)) users[OperatorId(i)].insert(OperatorId(i));
    for (const auto& tie : uses_.ties) users[tie.owner].insert(tie.user);
    for (const auto& [owner, readers] : users) {
      CostBreakdown cost = facts(owner).cost;
      const std::int64_t held = cost[MemoryPart::parameters] + cost[MemoryPart::optimizer];
      const TaskIndex update = add_task(0, owner, TaskKind::update, TaskRole::update, ":update",
                                        cost[ComputePart::update], 0, whole_layers_ ? held : 0);
      for (const OperatorId reader : readers) add_gradients(owner, reader, update);
      if (whole_layers_) continue;
      const TaskIndex weights = add_task(0, owner, TaskKind::other, TaskRole::weights, ":weights", 0, 0, held);
      for (const OperatorId reader : readers)
        for (int m = 0; m < micro_batches_; ++m) add_reads(m, owner, reader, weights);
    }
  }

  using ReadsInput = bool (*)(const Model&, const Operator&, std::size_t input);
  /// The owner's parameters among those that an operator reads, as the reader has them, each once.
  std::set<TensorId> parameters_of(OperatorId owner, OperatorId reader, ReadsInput wanted) const {
    std::map<TensorId, OperatorId> read;
    const Operator& op = model_.operators[reader];
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (is_parameter(op.inputs[k]) && wanted(model_, op, k)) read.emplace(op.inputs[k].tensor, reader);
    for (const auto& tie : uses_.ties)
      if (tie.user == reader)
        if (const auto at = read.find(op.inputs[tie.user_input].tensor); at != read.end()) at->second = tie.owner;
    std::set<TensorId> found;
    for (const auto& [tensor, whose] : read)
      if (whose == owner) found.insert(tensor);
    return found;
  }
  std::int64_t read_bytes(OperatorId owner, OperatorId reader, ReadsInput wanted) const {
    std::int64_t bytes = 0;
    for (const TensorId tensor : parameters_of(owner, reader, wanted)) bytes += tensor_bytes(tensor);
    return bytes;
  }

  /// Forward reads all parameters, backward what core/model/backward_reads.h says.
  void add_reads(int m, OperatorId owner, OperatorId reader, TaskIndex weights) {
    const Tasks& t = tasks(m, reader);
    const auto all = read_bytes(owner, reader, [](const Model&, const Operator&, std::size_t) { return true; });
    const auto backward = read_bytes(owner, reader, backward_reads_weights);
    if (t.forward != kNone && all > 0) builder_.add_edge(weights, t.forward, all);
    if (t.backward != kNone && backward > 0) builder_.add_edge(weights, t.backward, backward);
  }

  /// Of the owner's parameters alone; in whole layers, where gradients never travel, of all that the reader has.
  std::int64_t gradient_bytes(OperatorId owner, OperatorId reader) const {
    if (whole_layers_) return facts(reader).weight_gradient_bytes;
    const std::int64_t each = parameter_bytes(scenario_.settings, Accounting::full).gradient;
    std::int64_t bytes = 0;
    const ReadsInput trained = [](const Model& model, const Operator& op, std::size_t k) {
      return model.tensors[op.inputs[k].tensor].requires_gradient;
    };
    for (const TensorId tensor : parameters_of(owner, reader, trained))
      bytes += model_.tensors[tensor].elements() * each;
    return bytes;
  }

  void add_gradients(OperatorId owner, OperatorId reader, TaskIndex update) {
    const Facts& f = facts(reader);
    TaskIndex sum_so_far = tasks(0, reader).makes_weight_gradient(f);
    if (sum_so_far == kNone) return;
    const std::int64_t bytes = gradient_bytes(owner, reader);
    // Beside the gradients of what the task read, those of parameters are tensors of their own, one an owner.
    const std::uint32_t tensor = whole_layers_ ? 0 : kParameterGradient + owner.index;
    const TaskIndex first = sum_so_far;
    for (int m = 1; m < micro_batches_; ++m) {
      const double seconds = 3 * double(bytes) / bytes_per_second_ + alone_.cluster->device.launch_s;
      const TaskIndex sum = add_task(m, reader, TaskKind::backward, TaskRole::accumulate, ":accumulate", seconds,
                                     whole_layers_ ? 0 : bytes);
      builder_.add_tensor(tasks(m, reader).makes_weight_gradient(f), sum, tensor, bytes);
      builder_.add_tensor(whole_layers_ ? first : sum_so_far, sum, tensor, bytes);
      if (whole_layers_) builder_.add_edge(sum, update, 0);
      sum_so_far = sum;
    }
    builder_.add_tensor(whole_layers_ ? first : sum_so_far, update, tensor, bytes);
  }

  /// Of all operators, each once, on a device of this type.
  double seconds_on(const DeviceType& device) const {
    const Scenario alone = on_one_device(scenario_, device);
    const ReshardingModel resharding(
        make_mesh(*alone.cluster), collectives_of(alone),
        device.memory_bandwidth * device.memory_efficiency * scenario_.settings.factors.device_speed);
    const OperatorCostModel costs(alone, uses_, resharding);
    double seconds = 0;
    for (std::size_t i = 0; i < model_.operators.size(); ++i)
      seconds += costs.cost(OperatorId(i), Configuration()).breakdown.compute_s();
    return seconds;
  }

  /// Tasks take what they take on the cluster's weakest device; others are faster by what the whole model gains there.
  void describe_cluster() {
    const Cluster& cluster = *scenario_.cluster;
    builder_.intended_devices = std::uint32_t(cluster.devices());
    const double slowest_s = cluster.mixed() ? seconds_on(cluster.device) : 0;
    for (const RealNode& node : real_nodes(cluster)) {
      const double seconds = cluster.mixed() ? seconds_on(*node.device) : 0;
      const double speed = seconds > 0 ? slowest_s / seconds : 1;
      for (int d = 0; d < node.devices; ++d)
        builder_.devices.push_back({scenario_.memory_limit_of(std::uint32_t(node.first_device + d)), speed});
    }
    builder_.links = links_of(cluster, scenario_.settings.factors);
  }

  const Scenario& scenario_;
  const Scenario alone_;
  const Model& model_;
  const int micro_batches_;
  const bool whole_layers_;
  const TensorUses uses_;
  const double bytes_per_second_;
  const ReshardingModel resharding_;
  const OperatorCostModel costs_;
  TaskGraphBuilder builder_;
  std::vector<Facts> facts_;
  std::vector<OperatorId> operator_of_;    // by task
  std::vector<TaskRole> role_;             // by task
  std::vector<std::vector<Tasks>> tasks_;  // [micro-batch][operator]
};

}  // namespace

Expected<TrainingGraph> training_graph_of(const Scenario& scenario, const TrainingGraphOptions& options) {
  if (options.micro_batches < 1 || options.micro_batches > kMaxMicroBatches)
    return usage_error(
        fmt::format("{} micro-batches; between 1 and {} are possible", options.micro_batches, kMaxMicroBatches));
  auto made = GraphMaker(scenario, options).make();
  if (!made || !(options.unrolled_steps || options.cells_in_parts)) return made;
  return unroll_steps(*made, scenario, options);
}

Expected<TrainingGraph> training_graph_of_batch(const Scenario& scenario, const TrainingGraphOptions& options) {
  if (options.micro_batches <= 1) return training_graph_of(scenario, options);
  const auto part = micro_batch_model(scenario.model, options.micro_batches);
  if (!part) return part.error();
  Scenario one = scenario;
  one.model = *part;
  one.settings.batch = (*part)->batch;
  return training_graph_of(one, options);
}

Expected<TaskGraphPtr> training_graph(const Scenario& scenario, const TrainingGraphOptions& options) {
  auto made = training_graph_of(scenario, options);
  if (!made) return made.error();
  return made->graph;
}

}  // namespace turnpoint
