// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/redundancy.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace turnpoint::update_sharding {

namespace {

constexpr std::uint32_t kAllAlike = 0;

/// Partitions of the replicas, each kept once, so that values hold numbers and are compared at once.
class AlikeTable {
 public:
  explicit AlikeTable(int replicas) {
    const auto count = static_cast<std::size_t>(replicas);
    number(Alike(count, 0));
    Alike apart(count);
    std::iota(apart.begin(), apart.end(), 0);
    none_ = number(std::move(apart));
  }

  std::uint32_t none() const { return none_; }

  std::uint32_t number(Alike alike) {
    const auto [at, fresh] = numbers_.try_emplace(std::move(alike), static_cast<std::uint32_t>(list_.size()));
    if (fresh) list_.push_back(at->first);
    return at->second;
  }

  /// Alike in both.
  std::uint32_t both(std::uint32_t a, std::uint32_t b) {
    if (a == b || b == kAllAlike) return a;
    if (a == kAllAlike) return b;
    if (a > b) std::swap(a, b);
    if (const auto known = met_.find({a, b}); known != met_.end()) return known->second;
    std::map<std::pair<int, int>, int> first;
    Alike alike(list_[a].size());
    for (std::size_t r = 0; r < alike.size(); ++r)
      alike[r] = first.try_emplace({list_[a][r], list_[b][r]}, static_cast<int>(r)).first->second;
    const std::uint32_t result = number(std::move(alike));
    return met_[{a, b}] = result;
  }

  /// Of what groups make of values that are alike so.
  std::uint32_t groups(const ReplicaGroups& groups, std::uint32_t of) {
    if (groups.empty()) return kAllAlike;
    Alike alike(list_[0].size(), 0);
    std::map<std::vector<int>, int> first;  // by what the members hold
    for (const auto& group : groups) {
      std::vector<int> held;
      for (const int replica : group) held.push_back(list_[of][static_cast<std::size_t>(replica)]);
      const int lowest = *std::min_element(group.begin(), group.end());
      const auto [at, fresh] = first.try_emplace(std::move(held), lowest);
      if (!fresh) at->second = std::min(at->second, lowest);
    }
    for (const auto& group : groups) {
      std::vector<int> held;
      for (const int replica : group) held.push_back(list_[of][static_cast<std::size_t>(replica)]);
      for (const int replica : group) alike[static_cast<std::size_t>(replica)] = first.at(held);
    }
    return number(std::move(alike));
  }

  std::vector<Alike> take() { return std::move(list_); }

 private:
  std::vector<Alike> list_;
  std::map<Alike, std::uint32_t> numbers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> met_;
  std::uint32_t none_ = 0;
};

class RedundancyAnalysis {
 public:
  explicit RedundancyAnalysis(const Program& program)
      : program_(program), table_(program.replicas), of_(program.values.size(), kAllAlike) {}

  void run() {
    // A computation that several instructions call has values of which nothing certain can be said.
    const auto callers = callers_of(program_);
    for (const auto& computation : callers) shared_.push_back(computation.size() > 1);
    walk(program_.entry, kAllAlike);
    for (std::size_t c = 0; c < callers.size(); ++c)
      if (shared_[c] || (callers[ComputationId(c)].empty() && ComputationId(c) != program_.entry))
        for (const InstructionId i : program_.computations[ComputationId(c)].instructions) set_all(i, table_.none());
  }

  IdVector<ValueId, std::uint32_t> take_values() { return std::move(of_); }
  std::vector<Alike> take_table() { return table_.take(); }

 private:
  void set_all(InstructionId i, std::uint32_t alike) {
    for (const ValueId value : program_.instructions[i].outputs) of_[value] = alike;
  }

  /// `under`: alike in whether, and how often, the computation runs.
  void walk(ComputationId id, std::uint32_t under) {
    for (const InstructionId i : program_.computations[id].instructions) {
      const Instruction& instruction = program_.instructions[i];
      // Arguments of a loop or branch were set by the caller.
      if (instruction.kind == Kind::parameter && id != program_.entry) continue;
      visit(i, instruction, under);
    }
  }

  void visit(InstructionId id, const Instruction& i, std::uint32_t under) {
    std::uint32_t alike = under;
    switch (i.kind) {
      case Kind::infeed:
      case Kind::random:
      case Kind::replica_id:
      case Kind::custom_call:
      case Kind::reduce_scatter: alike = table_.none(); break;
      case Kind::parameter: alike = i.same_everywhere ? under : table_.none(); break;
      case Kind::all_reduce:
      case Kind::all_gather: return visit_exchange(i, under);
      case Kind::conditional: return visit_conditional(id, i, under);
      case Kind::loop: return visit_loop(id, i, under);
      default:
        for (const ValueId input : i.inputs) alike = table_.both(alike, of_[input]);
    }
    set_all(id, alike);
  }

  /// Members of a group have the same result, and so do groups whose members held the same one by one: with that, sums
  /// along rows and then along columns are the same everywhere.
  void visit_exchange(const Instruction& i, std::uint32_t under) {
    for (std::size_t k = 0; k < i.outputs.size(); ++k)
      // Which members take part is not known where not all replicas run.
      of_[i.outputs[k]] = under == kAllAlike ? table_.groups(i.groups, of_[i.inputs[k]])
                                             : table_.both(under, table_.groups(i.groups, table_.none()));
  }

  void visit_conditional(InstructionId id, const Instruction& i, std::uint32_t under) {
    if (shared_[i.called[0].index] || shared_[i.called[1].index]) return set_all(id, table_.none());
    const std::uint32_t inside = table_.both(under, of_[i.inputs[0]]);
    std::vector<std::uint32_t> results(i.outputs.size(), inside);
    for (const ComputationId branch : i.called) {
      const Computation& computation = program_.computations[branch];
      for (std::size_t k = 0; k < computation.parameters.size(); ++k)
        of_[computation.parameters[k]] = table_.both(inside, of_[i.inputs[k + 1]]);
      walk(branch, inside);
      for (std::size_t k = 0; k < results.size(); ++k)
        results[k] = table_.both(results[k], of_[computation.results[k]]);
    }
    for (std::size_t k = 0; k < results.size(); ++k) of_[i.outputs[k]] = results[k];
  }

  void visit_loop(InstructionId id, const Instruction& i, std::uint32_t under) {
    if (shared_[i.called[0].index] || shared_[i.called[1].index]) return set_all(id, table_.none());
    const Computation &body = program_.computations[i.called[0]], &condition = program_.computations[i.called[1]];
    std::vector<std::uint32_t> carried;
    for (const ValueId input : i.inputs) carried.push_back(table_.both(under, of_[input]));
    std::uint32_t inside = under;
    for (bool changed = true; changed;) {
      changed = false;
      const auto lower = [&](std::uint32_t& alike, std::uint32_t by) {
        const std::uint32_t next = table_.both(alike, by);
        changed |= next != alike;
        alike = next;
      };
      for (std::size_t k = 0; k < carried.size(); ++k)
        of_[body.parameters[k]] = of_[condition.parameters[k]] = carried[k];
      walk(i.called[1], inside);
      lower(inside, of_[condition.results[0]]);
      walk(i.called[0], inside);
      // Replicas that run the body a different number of times leave the loop with different values.
      for (std::size_t k = 0; k < carried.size(); ++k) lower(carried[k], table_.both(inside, of_[body.results[k]]));
    }
    for (std::size_t k = 0; k < carried.size(); ++k) of_[i.outputs[k]] = carried[k];
  }

  const Program& program_;
  AlikeTable table_;
  IdVector<ValueId, std::uint32_t> of_;
  std::vector<bool> shared_;
};

}  // namespace

Expected<Redundancy> analyse_redundancy(const Program& program) {
  if (auto fine = check(program); !fine) return fine.error();
  RedundancyAnalysis analysis(program);
  analysis.run();
  Redundancy result;
  result.of_ = analysis.take_values();
  result.alike_ = analysis.take_table();
  return result;
}

}  // namespace turnpoint::update_sharding
