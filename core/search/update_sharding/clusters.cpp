// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/clusters.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/search/update_sharding/induction.h"

namespace turnpoint::update_sharding {

std::int64_t UpdateCluster::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

double UpdateCluster::frequency(ValueId value) const {
  double sum = 0;
  std::set<ComputationId> once;  // one gather serves all readers of a branch
  for (const ForcedGather& gather : gathers)
    if (gather.value == value && once.insert(gather.branch).second) sum += gather.frequency;
  return std::min(sum, 1.0);
}

namespace {

/// What all clusters of a program look things up in.
struct ProgramFacts {
  const Program& program;
  const Redundancy& redundancy;
  IdVector<ValueId, Readers> readers;
  IdVector<ComputationId, RunFrequency> frequencies;
  IdVector<ComputationId, std::vector<InstructionId>> callers;
  IdVector<InstructionId, std::uint32_t> positions;  ///< in their computations
};

IdVector<InstructionId, std::uint32_t> positions_of(const Program& program) {
  IdVector<InstructionId, std::uint32_t> positions(program.instructions.size());
  for (const Computation& computation : program.computations)
    for (std::uint32_t k = 0; k < computation.instructions.size(); ++k) positions[computation.instructions[k]] = k;
  return positions;
}

/// Grows one cluster. `taken`: instructions that belong to a cluster already.
class ClusterGrower {
 public:
  ClusterGrower(const ProgramFacts& facts, std::set<InstructionId>& taken)
      : f_(facts), p_(facts.program), taken_(taken) {}

  bool grow(InstructionId reduction, ValueId gradient, UpdateCluster& cluster) {
    cluster.reduction = reduction;
    cluster.gradient = gradient;
    cluster.computation = p_.instructions[reduction].computation;
    cluster.shape = p_.values[gradient].shape;
    // A scalar cannot be shared out, and would be taken for the scalars that every update reads.
    if (cluster.elements() < 2 || !f_.redundancy.redundant(gradient)) return false;
    c_ = &cluster;
    enter(gradient);
    while (!open_.empty()) {
      const ValueId value = open_.back();
      open_.pop_back();
      for (const Readers::Read& read : f_.readers[value].instructions) consider(read.by);
    }
    const bool weight = std::any_of(cluster.pairs.begin(), cluster.pairs.end(),
                                    [](const CarriedPair& pair) { return pair.role == ParameterRole::weight; });
    if (!weight || work_.empty()) return false;
    taken_.insert(work_.begin(), work_.end());
    cluster.sharded.assign(work_.begin(), work_.end());
    std::sort(cluster.sharded.begin(), cluster.sharded.end(),
              [&](InstructionId a, InstructionId b) { return f_.positions[a] < f_.positions[b]; });
    find_pairs();
    find_sums();
    find_gathers();
    count_bytes();
    return true;
  }

 private:
  void enter(ValueId value) {
    if (values_.insert(value).second) open_.push_back(value);
  }

  bool fits(ValueId value) const { return p_.values[value].shape == c_->shape && f_.redundancy.redundant(value); }

  /// Takes elementwise work of the cluster's shape, and with it all that it reads.
  void consider(InstructionId id) {
    const Instruction& i = p_.instructions[id];
    if (i.kind != Kind::elementwise || work_.contains(id) || taken_.contains(id) || !fits(i.outputs[0])) return;
    work_.insert(id);
    enter(i.outputs[0]);
    for (const ValueId input : i.inputs) {
      if (values_.contains(input) || !fits(input)) continue;
      const InstructionId made = p_.values[input].producer;
      if (p_.instructions[made].kind == Kind::elementwise)
        consider(made);
      else if (add_pair(input))
        enter(input);
    }
  }

  /// Whether the value is a weight or auxiliary that the loop carries.
  bool add_pair(ValueId value) {
    const Instruction& parameter = p_.producer(value);
    if (parameter.kind != Kind::parameter) return false;
    const Computation& body = p_.computations[c_->computation];
    CarriedPair pair{parameter.name, parameter.role, 0, value, {}, false};
    const auto& parameters = body.parameters;
    pair.position =
        static_cast<std::uint32_t>(std::find(parameters.begin(), parameters.end(), value) - parameters.begin());
    const auto& callers = f_.callers[c_->computation];
    const Instruction* loop = callers.size() == 1 ? &p_.instructions[callers[0]] : nullptr;
    if (loop && loop->kind == Kind::loop && loop->called[0] == c_->computation) {
      pair.after = body.results[pair.position];
      if (pair.role == ParameterRole::other) pair.role = p_.producer(loop->inputs[pair.position]).role;
    }
    if (pair.role == ParameterRole::other) return false;
    c_->pairs.push_back(std::move(pair));
    return true;
  }

  void find_pairs() {
    for (CarriedPair& pair : c_->pairs) pair.stays = pair.after.valid() && values_.contains(pair.after);
    std::sort(c_->pairs.begin(), c_->pairs.end(),
              [](const CarriedPair& a, const CarriedPair& b) { return a.position < b.position; });
  }

  void find_sums() {
    const auto& instructions = p_.computations[c_->computation].instructions;
    std::size_t begin = instructions.size();
    for (const ValueId value : values_)
      for (const Readers::Read& read : f_.readers[value].instructions)
        if (p_.instructions[read.by].kind == Kind::reduce) begin = std::min<std::size_t>(begin, f_.positions[read.by]);
    std::unordered_map<ValueId, std::size_t> depth;  // how many sums a value waits for
    for (std::size_t at = begin; at < instructions.size(); ++at) {
      const InstructionId id = instructions[at];
      const Instruction& i = p_.instructions[id];
      std::size_t deepest = 0;
      for (const ValueId input : i.inputs)
        if (const auto known = depth.find(input); known != depth.end()) deepest = std::max(deepest, known->second);
      if (i.kind == Kind::reduce && values_.contains(i.inputs[0])) {
        c_->partial.push_back(id);
        sums_.insert(id);
        if (c_->round_elements.size() <= deepest) c_->round_elements.resize(deepest + 1);
        const auto elements = p_.values[i.outputs[0]].elements();
        c_->round_elements[deepest] += static_cast<double>(elements);
        c_->keeps_dimensions |= elements > 1;
        ++deepest;
      }
      if (deepest > 0)
        for (const ValueId value : i.outputs) depth[value] = deepest;
    }
  }

  void find_gathers() {
    find_weight_values();
    const Computation& body = p_.computations[c_->computation];
    for (const ValueId value : values_) {
      follow(value, value, ComputationId(), 1);
      for (const std::uint32_t result : f_.readers[value].results) {
        const bool own = std::any_of(c_->pairs.begin(), c_->pairs.end(), [&](const CarriedPair& pair) {
          return pair.stays && pair.position == result && body.results[result] == pair.after;
        });
        if (!own) add_gather({value, {}, {}, GatherReason::carried_elsewhere, 1, false, false});
      }
    }
  }

  /// Values that the weights before the update are enough for.
  void find_weight_values() {
    for (const CarriedPair& pair : c_->pairs)
      if (pair.role == ParameterRole::weight) weight_values_.insert(pair.before);
    for (const InstructionId id : c_->sharded) {
      const auto& inputs = p_.instructions[id].inputs;
      const bool from_weight = std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
        return weight_values_.contains(input) || !values_.contains(input);
      });
      if (from_weight) weight_values_.insert(p_.instructions[id].outputs[0]);
    }
  }

  void add_gather(ForcedGather gather) {
    gather.of_weight = weight_values_.contains(gather.value);
    c_->gathers.push_back(gather);
  }

  /// Whoever reads `seen`, which is the cluster's `value`, reshaped, or handed to a branch that is taken so often.
  void follow(ValueId value, ValueId seen, ComputationId branch, double frequency) {
    const bool inside = branch.valid();
    for (const Readers::Read& read : f_.readers[seen].instructions) {
      const Instruction& i = p_.instructions[read.by];
      if (!inside && (work_.contains(read.by) || sums_.contains(read.by))) continue;
      if (i.kind == Kind::conditional && read.input > 0 && !inside) {
        for (const ComputationId called : i.called)
          follow(value, p_.computations[called].parameters[read.input - 1], called, f_.frequencies[called].times);
        continue;
      }
      // What only reads it in another shape hands its readers on.
      if (i.kind == Kind::reshape || i.kind == Kind::bitcast) {
        follow(value, i.outputs[0], branch, frequency);
        continue;
      }
      const bool rounds =
          i.kind == Kind::elementwise && i.function == Function::convert && p_.values[i.outputs[0]].element_bytes <= 2;
      const bool product = ((i.kind == Kind::dot || i.kind == Kind::convolution) && read.input < 2) || rounds;
      GatherReason why = GatherReason::unshardable;
      if (i.kind == Kind::output)
        why = GatherReason::program_output;
      else if (std::none_of(i.outputs.begin(), i.outputs.end(), [&](ValueId o) { return f_.redundancy.redundant(o); }))
        why = GatherReason::not_redundant;
      add_gather({value, read.by, branch, why, frequency, product, false});
    }
    if (seen != value && !f_.readers[seen].results.empty())
      add_gather({value,
                  {},
                  branch,
                  inside ? GatherReason::branch_result : GatherReason::carried_elsewhere,
                  frequency,
                  false,
                  false});
  }

  void count_bytes() {
    const auto fusible = [&](ValueId value) {
      const Kind kind = p_.producer(value).kind;
      return kind == Kind::constant || kind == Kind::iota || kind == Kind::broadcast;
    };
    std::set<ValueId> read, written;
    for (const auto& ids : {c_->sharded, c_->partial})
      for (const InstructionId id : ids)
        for (const ValueId input : p_.instructions[id].inputs)
          if (!work_.contains(p_.values[input].producer) && !fusible(input)) read.insert(input);
    for (const InstructionId id : c_->sharded) {
      const ValueId value = p_.instructions[id].outputs[0];
      const bool leaves = !f_.readers[value].results.empty() ||
                          std::any_of(f_.readers[value].instructions.begin(), f_.readers[value].instructions.end(),
                                      [&](const auto& r) { return !work_.contains(r.by) && !sums_.contains(r.by); });
      if (leaves) written.insert(value);
    }
    c_->gradient_bytes = p_.values[c_->gradient].bytes();
    for (const ValueId value : read) c_->input_bytes += p_.values[value].bytes();
    for (const ValueId value : written) c_->output_bytes += p_.values[value].bytes();
  }

  const ProgramFacts& f_;
  const Program& p_;
  std::set<InstructionId>& taken_;
  UpdateCluster* c_ = nullptr;
  std::set<ValueId> values_, weight_values_;
  std::set<InstructionId> work_, sums_;
  std::vector<ValueId> open_;
};

}  // namespace

Expected<std::vector<UpdateCluster>> find_clusters(const Program& program) {
  const auto redundancy = analyse_redundancy(program);
  if (!redundancy) return redundancy.error();
  const ProgramFacts facts{
      program, *redundancy, readers_of(program), run_frequencies(program), callers_of(program), positions_of(program)};
  std::vector<UpdateCluster> clusters;
  std::set<InstructionId> taken;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& reduction = program.instructions[InstructionId(i)];
    if (reduction.kind != Kind::all_reduce) continue;
    if (!reduction.groups.empty() && reduction.groups.size() != 1) continue;
    for (const ValueId gradient : reduction.outputs) {
      UpdateCluster cluster;
      if (ClusterGrower(facts, taken).grow(InstructionId(i), gradient, cluster)) clusters.push_back(std::move(cluster));
    }
  }
  return clusters;
}

}  // namespace turnpoint::update_sharding
