// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/plan_read.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/json_fields.h"
#include "core/base/text.h"
#include "core/cost/operator_cost.h"
#include "core/cost/tensor_use.h"
#include "core/plan/micro_batch.h"
#include "core/plan_io/escape.h"
#include "core/plan_io/plan_check.h"
#include "core/plan_io/plan_names.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostBytesRead = std::int64_t(1) << 62;
constexpr double kMostSecondsRead = 1e30, kMostBytesMoved = 1e24;
constexpr std::int64_t kMostMicroBatches = std::int64_t(1) << 24, kMostFollowed = (std::int64_t(1) << 31) - 1;

/// One entry of `configurations`; loop dimensions by name, since an operator gives them their numbers.
struct ReadConfiguration {
  std::vector<std::pair<std::string, std::uint32_t>> split;
  MemoryChoice choice;
};

class PlanReader {
 public:
  /// `model` null: the plan alone.
  PlanReader(JsonFields fields, const Model* model) : fields_(std::move(fields)), model_(model) {
    if (model) uses_ = analyse_tensor_uses(*model);
  }

  Expected<PlanAlone> read() {
    if (fields_.text("format", std::string()) != "turnpoint/plan@1" ||
        fields_.text("kind", std::string()) != "sharding")
      fields_.fail("kind", "is not that of a turnpoint/plan@1 of kind sharding");
    read_mesh();
    fields_.each("configurations", [&](JsonFields& one, std::size_t) { read_configuration(one); });
    fields_.each("operators", [&](JsonFields& one, std::size_t index) { read_operator(one, index); });
    if (model_ && !fields_.error() && plan_.operators.size() != model_->operators.size())
      fields_.fail("operators",
                   fmt::format("are {}, the model has {}", plan_.operators.size(), model_->operators.size()));
    if (model_)
      for (std::size_t t = 0; t < model_->tensors.size(); ++t)
        tensors_.emplace(valid_utf8(model_->tensors[TensorId(t)].name), TensorId(t));
    for (const PlanOperator& op : plan_.operators)
      if (op.follows.valid() && op.follows.index >= plan_.operators.size() && !fields_.error())
        fields_.fail("operators", fmt::format("operator {} follows {}, and there are {}", op.op.index, op.follows.index,
                                              plan_.operators.size()));
    fields_.each("reshards", [&](JsonFields& one, std::size_t) { read_reshard(one); });
    if (fields_.has("pipeline")) read_pipeline();
    read_total();
    if (fields_.error()) return *fields_.error();
    return std::move(alone_);
  }

 private:
  void read_mesh() {
    fields_.each("mesh", [&](JsonFields& one, std::size_t index) {
      if (index >= static_cast<std::size_t>(kMaxAxes)) return one.fail("axis", "is one of more than a mesh has");
      MeshAxis axis;
      axis.name = one.text("axis");
      axis.size = static_cast<int>(one.integer("size", 1, 1 << 20));
      const std::string level = one.text("level");
      axis.level = level == "intra-node" ? kIntraNode : kInterNode;
      if (level == "inter-pod")
        axis.pod_level = static_cast<int>(one.integer("pod_level", 1, std::int64_t(kMaxPodLevels), 1));
      else if (level != "inter-node" && level != "intra-node")
        one.fail("level", fmt::format("'{}' is not known", level));
      if (!axes_.emplace(axis.name, index).second) one.fail("axis", fmt::format("'{}' is there twice", axis.name));
      plan_.mesh.axes.push_back(std::move(axis));
    });
  }

  /// The axes of a list of names, none twice and none of `taken`, to which they are added.
  std::uint32_t read_axes(JsonFields& fields, const char* key, const json& list, std::uint32_t& taken) {
    std::uint32_t mask = 0;
    if (!list.is_array()) {
      fields.fail(key, "must be a list of axes");
      return 0;
    }
    for (const json& name : list) {
      const auto found = name.is_string() ? axes_.find(name.get<std::string>()) : axes_.end();
      if (found == axes_.end()) {
        fields.fail(key, fmt::format("the mesh has no axis {}", name.dump(-1, ' ', true)));
        return 0;
      }
      const std::uint32_t bit = 1u << found->second;
      if (taken & bit) fields.fail(key, fmt::format("axis '{}' is there twice", found->first));
      taken |= bit;
      mask |= bit;
    }
    return mask;
  }
  std::uint32_t read_axes(JsonFields& fields, const char* key, std::uint32_t& taken) {
    const auto found = fields.json().find(key);
    if (found != fields.json().end()) return read_axes(fields, key, *found, taken);
    fields.fail(key, "is missing");
    return 0;
  }

  static WeightGather read_gather(JsonFields& update, Update how) {
    const std::string when = update.text("gathered", "after-update");
    const bool first = when == "before-forward", rounded = update.flag("rounded", false);
    if (!first && when != "after-update") update.fail("gathered", fmt::format("'{}' is not known", when));
    if (first && how == Update::sharded_weights)
      update.fail("gathered", "is of weights that are whole in a step, and these are sharded");
    if (rounded && !first) update.fail("rounded", "is of weights that are gathered before forward");
    return rounded ? WeightGather::before_forward_bf16
           : first ? WeightGather::before_forward
                   : WeightGather::after_update;
  }

  void read_configuration(JsonFields& fields) {
    ReadConfiguration made;
    std::uint32_t taken = 0;
    const auto split = fields.json().find("split");
    if (split == fields.json().end() || !split->is_object()) return fields.fail("split", "must be an object");
    if (split->size() > kMaxAxes) return fields.fail("split", "splits more loop dimensions than a mesh has axes");
    for (const auto& [name, axes] : split->items())
      made.split.emplace_back(name, read_axes(fields, "split", axes, taken));
    read_axes(fields, "repeat", taken);
    if (taken != (1u << plan_.mesh.count()) - 1) fields.fail("repeat", "leaves out an axis that nothing splits");
    made.choice.recompute = fields.flag("recompute", false);
    made.choice.offload = fields.flag("offload", false);
    const auto update = fields.json().find("update");
    if (update != fields.json().end() && update->is_object()) {
      JsonFields sharded = fields.object("update");
      std::uint32_t none = 0;
      made.choice.update_axes = read_axes(sharded, "group", none);
      const auto is_sharded = [&](const char* key, const char* otherwise) {
        const std::string text = sharded.text(key, otherwise);
        if (text != "sharded" && text != "replicated") sharded.fail(key, fmt::format("'{}' is not known", text));
        return text == "sharded";
      };
      made.choice.update = is_sharded("weights", "replicated")  ? Update::sharded_weights
                           : is_sharded("gradients", "sharded") ? Update::sharded
                                                                : Update::sharded_state;
      made.choice.whole_rows = sharded.flag("whole_rows", false);
      made.choice.tiles = sharded.flag("tiles", false);
      made.choice.gather = read_gather(sharded, made.choice.update);
    } else if (update == fields.json().end() || *update != "replicated") {
      fields.fail("update", "must be \"replicated\" or an object");
    }
    configurations_.push_back(std::move(made));
  }

  template <class Values, class Key>
  void read_parts(JsonFields& parts, const char* name, Values& values, const Key& key) {
    if (!parts.has(name)) return;
    JsonFields of = parts.object(name);
    std::int64_t left = kMostBytesRead;  // for the parts that follow: their sum is a number of bytes, too
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_integral_v<typename Values::value_type>)
        left -= values[i] = of.integer(key(i), 0, left, 0);
      else
        values[i] = of.number(key(i), 0, kMostSecondsRead, 0);
    }
  }

  /// Of an operator or a resharding. The plan is their sum, which has to stay a number of bytes.
  std::int64_t read_bytes(JsonFields& fields) {
    const std::int64_t bytes = fields.integer("memory_bytes", 0, bytes_left_);
    bytes_left_ -= bytes;
    return bytes;
  }

  /// Parts into `cost`; their sums must be the totals that `read` has already.
  void read_cost(JsonFields& fields, const char* key, ReadCost& read, CostBreakdown& cost) {
    read.parts = fields.has(key) || (read.memory_bytes == 0 && read.compute_s == 0 && read.network_s == 0);
    if (!fields.has(key)) return;
    JsonFields parts = fields.object(key);
    read_parts(parts, "memory", cost.memory, memory_key);
    read_parts(parts, "compute", cost.compute, compute_key);
    read_parts(parts, "network", cost.network, network_key);
    if (cost.memory_bytes() != read.memory_bytes || !near(cost.time_s(), read.compute_s + read.network_s))
      fields.fail(key, "do not add up to the operator's or resharding's cost");
  }

  void read_operator(JsonFields& fields, std::size_t index) {
    const std::string name = fields.text("name");
    const auto at = fields.integer("configuration", 0, kMostBytesRead);
    ReadCost total{read_bytes(fields), fields.number("compute_s", 0, kMostSecondsRead),
                   fields.number("network_s", 0, kMostSecondsRead)};
    if (!fields.error() && static_cast<std::size_t>(at) >= configurations_.size())
      fields.fail("configuration", fmt::format("{} is outside the {} configurations", at, configurations_.size()));
    if (model_ && index >= model_->operators.size())
      fields.fail("name", fmt::format("'{}' is one operator more than the model has", name));
    else if (model_ && valid_utf8(model_->operators[OperatorId(index)].name) != name)
      fields.fail("name", fmt::format("'{}' is '{}' in the model", name, model_->operators[OperatorId(index)].name));
    if (fields.error()) return;
    const ReadConfiguration& configuration = configurations_[static_cast<std::size_t>(at)];
    Operator unknown;
    if (!model_) unknown = operator_of_file(fields, name, configuration);
    PlanOperator made;
    made.op = OperatorId(index);
    made.split = split_of(fields, configuration, model_ ? model_->operators[made.op] : unknown);
    made.choice = configuration.choice;
    made.stage = static_cast<int>(fields.integer("stage", 0, 1 << 20, 0));
    made.chunk = static_cast<int>(fields.integer("chunk", 0, 1 << 20, 0));
    if (fields.has("follows"))
      made.follows = OperatorId(static_cast<std::uint32_t>(fields.integer("follows", 0, kMostFollowed)));
    layer_of_.push_back(static_cast<int>(fields.integer("layer", 0, 1 << 20, -1)));
    read_cost(fields, "parts", total, made.cost);
    alone_.parts = alone_.parts && total.parts;
    const auto steps = read_steps(fields, "gradient_sync", std::nullopt);
    if (fields.error()) return;
    auto groups = model_ ? parameter_groups(*model_, uses_, made.op, made.split, plan_.mesh.count())
                         : std::vector<ParameterGroup>();
    made.parameters = in_groups(std::move(groups), steps, made.choice);
    operators_.emplace(name, made.op);
    totals_.push_back(total);
    if (!model_) alone_.model.operators.push_back(std::move(unknown));
    plan_.operators.push_back(std::move(made));
  }

  /// With the loop dimensions that the file names, by the outermost axis that splits them.
  Operator operator_of_file(JsonFields& fields, const std::string& name, const ReadConfiguration& configuration) {
    Operator op;
    op.name = name;
    op.detail = fields.text("detail", std::string());
    op.scope = fields.text("scope", std::string());
    for (const auto& [loop, mask] : configuration.split) {
      const auto number = loop.find_last_not_of("0123456789");
      const std::string word = number + 1 < loop.size() && loop[number] == '-' ? loop.substr(0, number) : loop;
      LoopDimension dim;
      int n = 0;
      while (n <= static_cast<int>(DimName::other) && to_string(static_cast<DimName>(n)) != word) ++n;
      if (n > static_cast<int>(DimName::other))
        fields.fail("configuration", fmt::format("splits '{}', which is no loop dimension", loop));
      else
        dim.name = static_cast<DimName>(n);
      op.dims.push_back(dim);
    }
    return op;
  }

  Configuration split_of(JsonFields& fields, const ReadConfiguration& configuration, const Operator& op) {
    Configuration split;
    const auto names = model_ ? loop_names(op) : std::vector<std::string>();
    for (std::size_t k = 0; k < configuration.split.size(); ++k) {
      const auto& [loop, mask] = configuration.split[k];
      std::size_t dim = k;
      if (model_) dim = static_cast<std::size_t>(std::find(names.begin(), names.end(), loop) - names.begin());
      if (model_ && dim == names.size())
        fields.fail("configuration", fmt::format("splits '{}', which '{}' does not have", loop, op.name));
      for (int a = 0; a < plan_.mesh.count(); ++a)
        if (mask >> a & 1u) split.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(dim);
    }
    return split;
  }

  /// `rank`: dimensions of the tensor; unknown where there is no model.
  Layout read_layout(JsonFields& parent, const char* key, std::optional<std::size_t> rank) {
    Layout layout;
    if (!parent.has(key)) {
      parent.fail(key, "is missing");
      return layout;
    }
    JsonFields fields = parent.object(key);
    const auto dims = fields.json().find("dims");
    if (dims == fields.json().end() || !dims->is_array() || dims->size() > 127 || (rank && dims->size() != *rank)) {
      fields.fail("dims", rank ? fmt::format("must have a list for each of {} dimensions", *rank) : "must be a list");
      return layout;
    }
    std::uint32_t taken = 0;
    const auto put = [&](std::uint32_t mask, std::int8_t value) {
      for (int a = 0; a < plan_.mesh.count(); ++a)
        if (mask >> a & 1u) layout.axis[static_cast<std::size_t>(a)] = value;
    };
    for (std::size_t d = 0; d < dims->size(); ++d)
      put(read_axes(fields, "dims", (*dims)[d], taken), static_cast<std::int8_t>(d));
    put(read_axes(fields, "partial", taken), Layout::kPartial);
    return layout;
  }

  void add_partial(JsonFields& fields, const char* key, Layout& layout) {
    std::uint32_t taken = 0;
    const std::uint32_t mask = read_axes(fields, key, taken);
    for (int a = 0; a < plan_.mesh.count(); ++a) {
      if (!(mask >> a & 1u)) continue;
      auto& value = layout.axis[static_cast<std::size_t>(a)];
      if (value != Layout::kReplicated) return fields.fail(key, "names an axis that the layout splits");
      value = Layout::kPartial;
    }
  }

  std::vector<ReshardStep> read_steps(JsonFields& fields, const char* key, std::optional<std::size_t> rank,
                                      bool layouts = false) {
    static constexpr ReshardMove kAll[] = {ReshardMove::all_gather,     ReshardMove::slice,
                                           ReshardMove::all_to_all,     ReshardMove::all_reduce,
                                           ReshardMove::reduce_scatter, ReshardMove::permute};
    std::vector<ReshardStep> steps;
    fields.each(key, [&](JsonFields& one, std::size_t) {
      ReshardStep step;
      const std::string word = one.text("collective");
      const auto move = std::find_if(std::begin(kAll), std::end(kAll), [&](auto m) { return word == to_string(m); });
      if (move == std::end(kAll)) return one.fail("collective", fmt::format("'{}' is not known", word));
      step.move = *move;
      std::uint32_t taken = 0;
      step.axes = read_axes(one, "axes", taken);
      step.bytes = one.number("bytes", 0, kMostBytesMoved);
      step.time_s = one.number("time_s", 0, kMostSecondsRead);
      step.message_bytes = one.number("message_bytes", 0, kMostBytesMoved, 0);
      step.algorithm = parse_algorithm(one.text("algorithm", "")).value_or(Algorithm::direct);
      if (layouts) step.result = read_layout(one, "layout", rank);
      steps.push_back(step);
    });
    return steps;
  }

  OperatorId read_end(JsonFields& fields, const char* key) {
    if (!fields.has(key)) return {};
    const std::string name = fields.text(key);
    const auto found = operators_.find(name);
    if (found != operators_.end()) return found->second;
    fields.fail(key, fmt::format("'{}' is no operator of the plan", name));
    return {};
  }

  void read_reshard(JsonFields& fields) {
    PlanReshard made;
    const std::string tensor = fields.text("tensor");
    std::optional<std::size_t> rank;
    if (model_) {
      const auto found = tensors_.find(tensor);
      if (found == tensors_.end()) return fields.fail("tensor", fmt::format("the model has no '{}'", tensor));
      made.tensor = found->second;
      rank = model_->tensors[made.tensor].shape.size();
    }
    made.producer = read_end(fields, "producer");
    made.consumer = read_end(fields, "consumer");
    if (!made.producer.valid() && !made.consumer.valid()) fields.fail("producer", "is missing, and so is a consumer");
    made.from = read_layout(fields, "from", rank);
    made.to = read_layout(fields, "to", rank);
    if (fields.has("gradient_partial")) {
      JsonFields partial = fields.object("gradient_partial");
      add_partial(partial, "from", made.from);
      add_partial(partial, "to", made.to);
    }
    made.forward = read_steps(fields, "steps", rank, true);
    std::vector<ReshardStep> backward = read_steps(fields, "backward_steps", rank, true);
    const std::string keep = fields.has("keep") ? fields.text("keep") : std::string();
    if (keep.empty())
      made.keep = runs_again(fields, made, backward) ? Keep::again : Keep::none;
    else if (keep == "before" || keep == "after" || keep == "both")
      made.keep = keep == "before" ? Keep::before : keep == "after" ? Keep::after : Keep::both;
    else
      fields.fail("keep", fmt::format("'{}' is not known", keep));
    made.set_backward(std::move(backward));
    const double time = fields.number("time_s", 0, kMostSecondsRead);
    ReadCost total{read_bytes(fields), 0, time};
    read_cost(fields, "parts", total, made.cost);
    if (!fields.has("parts")) {
      for (const ReshardRole role : kReshardRoles) add_network(made.cost, made.steps(role));
      made.cost[MemoryPart::activations] = total.memory_bytes;
      if (!near(made.cost.time_s(), time)) fields.fail("time_s", "is not the sum of the steps");
    }
    plan_.reshards.push_back(std::move(made));
  }

  /// Files of before `again` was written: backward then begins with the way forward, which no gradient takes.
  bool runs_again(JsonFields& fields, const PlanReshard& made, const std::vector<ReshardStep>& backward) {
    if (fields.has("again")) return fields.flag("again", false);
    if (!made.producer.valid() || !plan_.operators[made.producer.index].choice.recompute) return false;
    return !made.forward.empty() && backward.size() >= made.forward.size() &&
           std::equal(made.forward.begin(), made.forward.end(), backward.begin(),
                      [](const ReshardStep& a, const ReshardStep& b) {
                        return a.move == b.move && a.axes == b.axes && a.result == b.result;
                      });
  }

  template <class Number>
  void read_numbers(JsonFields& fields, const char* key, Number most, std::vector<Number>& numbers) {
    const auto list = fields.json().find(key);
    if (list == fields.json().end()) return;
    if (!list->is_array()) return fields.fail(key, "must be a list of numbers");
    for (const json& entry : *list) {
      const bool number = std::is_integral_v<Number> ? entry.is_number_integer() : entry.is_number();
      // As a double, in which no whole number of a file overflows.
      if (!number || !(entry.get<double>() >= 0 && entry.get<double>() <= double(most)))
        return fields.fail(key, "must be a list of numbers from 0 on");
      numbers.push_back(entry.get<Number>());
    }
  }

  void read_pipeline() {
    JsonFields fields = fields_.object("pipeline");
    PlanPipeline made;
    made.stages = static_cast<int>(fields.integer("stages", 1, 1 << 20));
    made.micro_batches = static_cast<int>(fields.integer("micro_batches", 1, kMostMicroBatches));
    made.chunks = static_cast<int>(fields.integer("chunks", 1, (1 << 20) / made.stages, 1));
    made.recompute = fields.flag("recompute", false);
    made.selective = fields.flag("selective", false);
    made.forwards_first = fields.flag("forwards_first", false);
    made.sums_behind = fields.flag("sums_behind", false);
    made.beside_products = fields.flag("beside_products", false);
    made.bubble_s = fields.number("bubble_s", -kMostSecondsRead, kMostSecondsRead);
    read_numbers(fields, "stage_memory_bytes", kMostBytesRead, made.stage_memory_bytes);
    read_numbers(fields, "send_s", kMostSecondsRead, made.send_s);
    read_numbers(fields, "send_back_s", kMostSecondsRead, made.send_back_s);
    fields.each("tied", [&](JsonFields& one, std::size_t) {
      PlanPipeline::TiedSum sum;
      sum.owner_op = read_end(one, "owner"), sum.user_op = read_end(one, "user");
      sum.owner = static_cast<int>(one.integer("owner_stage", 0, made.stages - 1));
      sum.user = static_cast<int>(one.integer("user_stage", 0, made.stages - 1));
      sum.time_s = one.number("time_s", 0, kMostSecondsRead);
      sum.parameter_bytes = one.integer("parameter_bytes", 0, kMostBytesRead);
      sum.gradient_bytes = one.integer("gradient_bytes", 0, kMostBytesRead);
      sum.optimizer_bytes = one.integer("optimizer_bytes", 0, kMostBytesRead);
      sum.gather = read_steps(one, "weights", std::nullopt);
      sum.sync = read_steps(one, "gradient_sync", std::nullopt);
      sum.spread = read_steps(one, "new_weights", std::nullopt);
      sum.update_s = one.number("update_s", 0, kMostSecondsRead, 0);
      made.tied.push_back(std::move(sum));
    });
    made.layer_of = std::move(layer_of_);
    for (const PlanOperator& op : plan_.operators) {
      if (op.stage >= made.stages)
        return fields.fail("stages", fmt::format("are {}, and an operator is on stage {}", made.stages, op.stage));
      if (op.chunk >= made.chunks)
        return fields.fail("chunks", fmt::format("are {}, and an operator is in chunk {}", made.chunks, op.chunk));
    }
    plan_.pipeline = std::move(made);
  }

  void read_total() {
    if (!fields_.has("cost")) return fields_.fail("cost", "is missing");
    JsonFields cost = fields_.object("cost");
    ReadCost total{cost.integer("memory_bytes", 0, kMostBytesRead), cost.number("compute_s", 0, kMostSecondsRead),
                   cost.number("network_s", 0, kMostSecondsRead)};
    read_cost(fields_, "cost", total, plan_.cost);
  }

 public:
  /// Totals by operator, of files without parts.
  const std::vector<ReadCost>& totals() const { return totals_; }

 private:
  JsonFields fields_;
  const Model* model_;
  TensorUses uses_;
  PlanAlone alone_;
  Plan& plan_ = alone_.plan;
  std::unordered_map<std::string, std::size_t> axes_;
  std::vector<ReadConfiguration> configurations_;
  std::unordered_map<std::string, OperatorId> operators_;
  std::unordered_map<std::string, TensorId> tensors_;
  std::vector<ReadCost> totals_;
  std::vector<int> layer_of_;                 ///< by operator
  std::int64_t bytes_left_ = kMostBytesRead;  ///< of what operators and reshardings may still hold
};

}  // namespace

Expected<Plan> read_plan(const nlohmann::json& document, const std::string& where, const Scenario& scenario) {
  JsonFields fields(document, where);
  PlanReader reader(std::move(fields), scenario.model.get());
  auto read = reader.read();
  if (!read) return read.error();
  if (auto same = same_mesh(read->plan.mesh, make_mesh(*scenario.cluster), where); !same) return same.error();
  if (PlanPipeline* pipeline = read->plan.pipeline ? &*read->plan.pipeline : nullptr) {
    auto micro_batch = micro_batch_model(scenario.model, pipeline->micro_batches);
    if (!micro_batch) return bad_input(micro_batch.error().what, where + ": pipeline: micro_batches");
    pipeline->micro_batch = *micro_batch;
  }
  if (!read->parts) give_parts(scenario, read->plan, reader.totals());
  if (auto right = check_costs(scenario, read->plan, read->parts, where); !right) return right.error();
  return std::move(read->plan);
}

Expected<PlanAlone> read_plan_alone(const nlohmann::json& document, const std::string& where) {
  return PlanReader(JsonFields(document, where), nullptr).read();
}

}  // namespace turnpoint
