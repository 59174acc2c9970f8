// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/search/update_sharding/builder.h"

namespace turnpoint::update_sharding {

namespace {

/// A value of the old program as a shard in the new one.
struct Sharded {
  ValueId value;
  std::size_t cluster = 0;
};

class ShardingRewriter {
 public:
  ShardingRewriter(const Program& program, const std::vector<UpdateCluster>& clusters,
                   const std::vector<UpdateChoice>& choices)
      : p_(program), clusters_(clusters), choices_(choices), b_(program.replicas) {
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      if (!choices[c].sharded()) continue;
      gradients_[clusters[c].gradient] = c;
      for (const InstructionId i : clusters[c].sharded) work_[i] = c;
      for (const InstructionId i : clusters[c].partial) sums_[i] = c;
      for (const CarriedPair& pair : clusters[c].pairs)
        if (stays(c, pair)) kept_[{clusters[c].computation, pair.position}] = c;
      for (const ForcedGather& gather : clusters[c].gathers)
        if (!gather.branch.valid()) eager_.insert(gather.value);
      for (const CarriedPair& pair : clusters[c].pairs)
        if (pair.role == ParameterRole::weight && !stays(c, pair)) eager_.insert(pair.after);
    }
  }

  Program run() {
    copy(p_.entry, b_.standing_in(), {});
    return b_.take();
  }

 private:
  bool stays(std::size_t c, const CarriedPair& pair) const {
    return pair.stays && (pair.role == ParameterRole::auxiliary || choices_[c].variant == Variant::stays_sharded);
  }

  std::int64_t shard_elements(std::size_t c) const { return choices_[c].format.shard_elements(); }

  ReplicaGroups row_groups_of(std::size_t c) const {
    const ShardGroups& groups = choices_[c].groups;
    return groups.way == ShardGroups::Way::rows ? *row_groups(groups.replicas, groups.row) : ReplicaGroups{};
  }

  /// Where this replica's shard begins in the padded tensor.
  ValueId offset(std::size_t c) {
    const ShardGroups& groups = choices_[c].groups;
    const std::pair key{shard_elements(c), groups.shards()};
    auto& known = offsets_[b_.standing_in()];
    if (const auto at = known.find(key); at != known.end()) return at->second;
    ValueId number = b_.source(Kind::replica_id, "replica", {}, 8);
    if (groups.way == ShardGroups::Way::rows)
      number = b_.apply(Function::modulo, {number, b_.constant(groups.row, {}, 8)});
    const auto size = b_.constant(static_cast<double>(shard_elements(c)), {}, 8);
    return known[key] = b_.apply(Function::multiply, {number, size}, "offset of the shard");
  }

  ValueId padded_vector(std::size_t c, ValueId whole) {
    const ShardFormat& format = choices_[c].format;
    const ValueId flat = b_.shaped(Kind::reshape, whole, {format.elements});
    if (format.padded_elements() == format.elements) return flat;
    return b_.shaped(Kind::pad, flat, {format.padded_elements()});
  }

  ValueId shard_of(ValueId old, std::size_t c) {
    if (const auto known = shards_.find(old); known != shards_.end() && known->second.cluster == c)
      return known->second.value;
    const Instruction& producer = p_.producer(old);
    const Shape shape{shard_elements(c)};
    ValueId made;
    if (producer.kind == Kind::constant)
      made = b_.constant(producer.literal, shape, p_.values[old].element_bytes);
    else if (producer.kind == Kind::broadcast && p_.values[producer.inputs[0]].shape.empty())
      made = b_.broadcast(full(producer.inputs[0]), shape);
    else
      made = b_.dynamic_slice(padded_vector(c, full(old)), offset(c), shard_elements(c));
    // A value of another cluster keeps the shard that it has there.
    shards_.try_emplace(old, Sharded{made, c});
    return made;
  }

  /// In which precision readers in this computation take a value.
  int gather_bytes(ValueId old, std::size_t c) const {
    const bool in_branch = branch_arguments_.contains(old);
    const ValueId value = in_branch ? branch_arguments_.at(old) : old;
    for (const GatherCost& cost : choices_[c].gathers)
      if (cost.value == value && cost.in_branch == in_branch) return cost.element_bytes;
    return p_.values[old].element_bytes;
  }

  ValueId full(ValueId old) {
    if (const auto known = full_.find(old); known != full_.end()) return known->second;
    const Sharded shard = shards_.at(old);
    const ShardFormat& format = choices_[shard.cluster].format;
    const int own = p_.values[old].element_bytes, travels = gather_bytes(old, shard.cluster);
    ValueId value = travels < own ? b_.convert(shard.value, travels) : shard.value;
    value = b_.collective(Kind::all_gather, value, row_groups_of(shard.cluster), {format.padded_elements()},
                          "gather of " + p_.values[old].name);
    if (format.padded_elements() > format.elements) value = b_.shaped(Kind::slice, value, {format.elements});
    value = b_.shaped(Kind::reshape, value, p_.values[old].shape);
    if (travels < own) value = b_.convert(value, own);
    return full_[old] = value;
  }

  void put_shard(ValueId old, ValueId shard, std::size_t c) {
    shards_[old] = {shard, c};
    if (eager_.contains(old)) full(old);
  }

  std::optional<std::size_t> kept(ComputationId body, std::size_t position) const {
    const auto known = kept_.find({body, static_cast<std::uint32_t>(position)});
    return known == kept_.end() ? std::nullopt : std::optional(known->second);
  }

  /// `handed`: per parameter the cluster as whose shard it comes, or none.
  void copy(ComputationId from, ComputationId to, const std::vector<std::optional<std::size_t>>& handed) {
    const ComputationId outside = b_.standing_in();
    b_.stand_in(to);
    const Computation& computation = p_.computations[from];
    const auto cluster_of = [&](std::size_t k) { return k < handed.size() ? handed[k] : std::nullopt; };
    for (std::size_t k = 0; k < computation.parameters.size(); ++k) {
      const ValueId old = computation.parameters[k];
      const Instruction& i = p_.producer(old);
      const auto c = cluster_of(k);
      const ValueId made = b_.parameter(i.name, c ? Shape{shard_elements(*c)} : p_.values[old].shape, i.role,
                                        i.same_everywhere, p_.values[old].element_bytes);
      c ? put_shard(old, made, *c) : void(full_[old] = made);
    }
    for (const InstructionId i : computation.instructions)
      if (p_.instructions[i].kind != Kind::parameter) copy_instruction(i);
    std::vector<ValueId> results;
    for (std::size_t k = 0; k < computation.results.size(); ++k) {
      const auto c = kept(from, k);
      results.push_back(c ? shard_of(computation.results[k], *c) : full(computation.results[k]));
    }
    b_.results(std::move(results));
    b_.stand_in(outside);
  }

  void copy_instruction(InstructionId id) {
    const Instruction& i = p_.instructions[id];
    if (const auto work = work_.find(id); work != work_.end()) return do_work(i, work->second);
    if (const auto sum = sums_.find(id); sum != sums_.end()) return do_sum(i, sum->second);
    if (i.kind == Kind::all_reduce) return do_reduction(i);
    if (i.kind == Kind::loop) return do_loop(i);
    if (i.kind == Kind::conditional) return do_conditional(i);
    Instruction same = i;
    for (ValueId& input : same.inputs) input = full(input);
    put_full(i, b_.append(std::move(same), outputs_of(i)));
  }

  std::vector<Value> outputs_of(const Instruction& i) const {
    std::vector<Value> values;
    for (const ValueId output : i.outputs) values.push_back(p_.values[output]);
    return values;
  }

  void put_full(const Instruction& i, const std::vector<ValueId>& made) {
    for (std::size_t k = 0; k < made.size(); ++k) full_[i.outputs[k]] = made[k];
  }

  void do_work(const Instruction& i, std::size_t c) {
    const ValueId old = i.outputs[0];
    // What follows from whole weights alone is computed whole for readers that need it so.
    if (eager_.contains(old) &&
        std::all_of(i.inputs.begin(), i.inputs.end(), [&](ValueId input) { return full_.contains(input); })) {
      Instruction whole = i;
      for (ValueId& input : whole.inputs) input = full(input);
      put_full(i, b_.append(std::move(whole), outputs_of(i)));
    }
    Instruction part = i;
    for (ValueId& input : part.inputs) input = shard_of(input, c);
    Value value = p_.values[old];
    value.shape = {shard_elements(c)};
    put_shard(old, b_.append(std::move(part), {value}).front(), c);
  }

  void do_sum(const Instruction& i, std::size_t c) {
    const ShardFormat& format = choices_[c].format;
    ValueId shard = shard_of(i.inputs[0], c), part;
    if (p_.values[i.outputs[0]].shape.empty()) {
      if (format.padded_elements() > format.elements) {
        const Shape shape{shard_elements(c)};
        const ValueId position = b_.apply(Function::add, {b_.iota(shape[0]), b_.broadcast(offset(c), shape)});
        const ValueId bound = b_.constant(static_cast<double>(format.elements), shape, 8);
        const ValueId inside = b_.apply(Function::less, {position, bound}, "not padding");
        const ValueId zeros = b_.constant(0, shape, p_.values[i.inputs[0]].element_bytes);
        // The result has the type of the last input.
        shard = b_.apply(Function::select, {inside, shard, zeros});
      }
      part = b_.sum(shard, i.name);
    } else {
      const ValueId zeros = b_.constant(0, {format.padded_elements()}, p_.values[i.inputs[0]].element_bytes);
      ValueId placed = b_.dynamic_update_slice(zeros, shard, offset(c));
      if (format.padded_elements() > format.elements) placed = b_.shaped(Kind::slice, placed, {format.elements});
      part = b_.reduce(b_.shaped(Kind::reshape, placed, p_.values[i.inputs[0]].shape), i.dims, i.name);
    }
    full_[i.outputs[0]] = b_.all_reduce(part, row_groups_of(c), "sum of " + i.name);
  }

  void do_reduction(const Instruction& i) {
    for (std::size_t k = 0; k < i.outputs.size(); ++k) {
      const auto gradient = gradients_.find(i.outputs[k]);
      if (gradient == gradients_.end()) {
        full_[i.outputs[k]] = b_.all_reduce(full(i.inputs[k]), i.groups, i.name);
        continue;
      }
      const std::size_t c = gradient->second;
      const ShardGroups& groups = choices_[c].groups;
      ValueId shard = b_.collective(Kind::reduce_scatter, padded_vector(c, full(i.inputs[k])), row_groups_of(c),
                                    {shard_elements(c)}, i.name);
      if (groups.way == ShardGroups::Way::rows)
        shard = b_.all_reduce(shard, *column_groups(groups.replicas, groups.row), i.name + ", over columns");
      put_shard(i.outputs[k], shard, c);
    }
  }

  void do_loop(const Instruction& i) {
    std::vector<std::optional<std::size_t>> handed;
    std::vector<ValueId> inputs;
    for (std::size_t k = 0; k < i.inputs.size(); ++k) {
      handed.push_back(kept(i.called[0], k));
      inputs.push_back(handed[k] ? shard_of(i.inputs[k], *handed[k]) : full(i.inputs[k]));
    }
    const ComputationId body = b_.computation(p_.computations[i.called[0]].name);
    const ComputationId condition = b_.computation(p_.computations[i.called[1]].name);
    copy(i.called[0], body, handed);
    copy(i.called[1], condition, handed);
    const auto made = b_.loop(std::move(inputs), body, condition, i.name);
    for (std::size_t k = 0; k < made.size(); ++k)
      handed[k] ? put_shard(i.outputs[k], made[k], *handed[k]) : void(full_[i.outputs[k]] = made[k]);
  }

  void do_conditional(const Instruction& i) {
    std::vector<std::optional<std::size_t>> handed;
    std::vector<ValueId> arguments;
    for (std::size_t k = 1; k < i.inputs.size(); ++k) {
      const auto shard = shards_.find(i.inputs[k]);
      const bool whole = full_.contains(i.inputs[k]) || shard == shards_.end();
      handed.push_back(whole ? std::nullopt : std::optional(shard->second.cluster));
      arguments.push_back(whole ? full(i.inputs[k]) : shard->second.value);
      for (const ComputationId branch : i.called)
        branch_arguments_[p_.computations[branch].parameters[k - 1]] = i.inputs[k];
    }
    const ValueId predicate = full(i.inputs[0]);
    std::vector<ComputationId> branches;
    for (const ComputationId branch : i.called) {
      branches.push_back(b_.computation(p_.computations[branch].name));
      copy(branch, branches.back(), handed);
    }
    put_full(i, b_.conditional(predicate, std::move(arguments), branches[0], branches[1], i.name));
  }

  const Program& p_;
  const std::vector<UpdateCluster>& clusters_;
  const std::vector<UpdateChoice>& choices_;
  Builder b_;
  std::map<ValueId, ValueId> full_;
  std::map<ValueId, Sharded> shards_;
  std::map<ValueId, ValueId> branch_arguments_;
  std::map<ComputationId, std::map<std::pair<std::int64_t, int>, ValueId>> offsets_;
  std::map<ValueId, std::size_t> gradients_;
  std::map<InstructionId, std::size_t> work_, sums_;
  std::map<std::pair<ComputationId, std::uint32_t>, std::size_t> kept_;
  std::set<ValueId> eager_;
};

}  // namespace

Expected<Program> shard_updates(const Program& program, const std::vector<UpdateCluster>& clusters,
                                const std::vector<UpdateChoice>& choices) {
  if (auto fine = check(program); !fine) return fine.error();
  if (choices.size() != clusters.size())
    return bad_input(fmt::format("{} choices are given for {} clusters", choices.size(), clusters.size()));
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    const ShardGroups& groups = choices[c].groups;
    if (!choices[c].sharded()) continue;
    if (groups.replicas != program.replicas || groups.row < 1 || groups.replicas % groups.row != 0)
      return bad_input(fmt::format("a group of {} does not divide {} replicas", groups.row, program.replicas));
    if (choices[c].format.elements != clusters[c].elements() || choices[c].format.shards != groups.shards())
      return bad_input("a choice's format is not that of its cluster and group");
    for (const CarriedPair& pair : clusters[c].pairs)
      if (choices[c].variant == Variant::stays_sharded && pair.role == ParameterRole::weight && !pair.stays)
        return Error{ErrorCode::infeasible, "a weight that the loop carries elsewhere cannot stay sharded", {}, {}};
  }
  Program sharded = ShardingRewriter(program, clusters, choices).run();
  if (auto fine = check(sharded); !fine) return fine.error();
  return sharded;
}

}  // namespace turnpoint::update_sharding
