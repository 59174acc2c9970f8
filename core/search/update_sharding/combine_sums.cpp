// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>

#include "core/search/update_sharding/rewrite.h"

namespace turnpoint::update_sharding {

namespace {

class SumCombiner {
 public:
  SumCombiner(const Program& program, std::int64_t most) : p_(program), most_(most) {}

  Program run() {
    Program result = p_;
    for (std::size_t c = 0; c < p_.computations.size(); ++c) combine(result, ComputationId(c));
    return without_unlisted(std::move(result));
  }

 private:
  bool small_sum(const Instruction& i) const {
    return i.kind == Kind::all_reduce && std::all_of(i.outputs.begin(), i.outputs.end(), [&](ValueId value) {
             return p_.values[value].elements() <= most_;
           });
  }

  void combine(Program& result, ComputationId id) const {
    std::map<ValueId, int> waits;  // for how many small sums, one behind the other
    struct Entry {
      int level;
      bool sum;
      InstructionId id;
    };
    std::vector<Entry> entries;
    for (const InstructionId i : p_.computations[id].instructions) {
      const Instruction& instruction = p_.instructions[i];
      int level = 0;
      for (const ValueId input : instruction.inputs) level = std::max(level, waits[input]);
      const bool sum = small_sum(instruction);
      entries.push_back({level, sum, i});
      for (const ValueId output : instruction.outputs) waits[output] = level + (sum ? 1 : 0);
    }
    // All that needs no sum comes first, then the first sums, and so on: nothing is read before it is made.
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.level, a.sum) < std::tie(b.level, b.sum);
    });
    std::map<std::pair<int, ReplicaGroups>, InstructionId> first;
    std::vector<InstructionId> order;
    for (const Entry& entry : entries) {
      const Instruction& instruction = p_.instructions[entry.id];
      if (entry.sum) {
        const auto [at, fresh] = first.try_emplace({entry.level, instruction.groups}, entry.id);
        if (!fresh) {
          Instruction& joined = result.instructions[at->second];
          joined.inputs.insert(joined.inputs.end(), instruction.inputs.begin(), instruction.inputs.end());
          joined.outputs.insert(joined.outputs.end(), instruction.outputs.begin(), instruction.outputs.end());
          for (const ValueId output : instruction.outputs) result.values[output].producer = at->second;
          continue;
        }
      }
      order.push_back(entry.id);
    }
    result.computations[id].instructions = std::move(order);
  }

  static Program without_unlisted(Program program) {
    IdVector<InstructionId, Instruction> kept;
    IdVector<InstructionId, InstructionId> now(program.instructions.size());
    for (Computation& computation : program.computations)
      for (InstructionId& i : computation.instructions) {
        now[i] = kept.next_id();
        kept.push_back(std::move(program.instructions[i]));
        i = now[i];
      }
    for (Value& value : program.values) value.producer = now[value.producer];
    program.instructions = std::move(kept);
    return program;
  }

  const Program& p_;
  std::int64_t most_;
};

}  // namespace

Program combine_small_sums(const Program& program, std::int64_t most_elements) {
  return SumCombiner(program, most_elements).run();
}

}  // namespace turnpoint::update_sharding
