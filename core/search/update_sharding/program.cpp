// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/program.h"

#include <fmt/format.h>

#include <array>
#include <functional>

namespace turnpoint::update_sharding {

const char* to_string(Kind kind) {
  static constexpr std::array kNames = {"constant",
                                        "iota",
                                        "parameter",
                                        "infeed",
                                        "random",
                                        "replica-id",
                                        "custom-call",
                                        "elementwise",
                                        "reduce",
                                        "dot",
                                        "convolution",
                                        "network",
                                        "broadcast",
                                        "reshape",
                                        "bitcast",
                                        "pad",
                                        "slice",
                                        "dynamic-slice",
                                        "dynamic-update-slice",
                                        "all-reduce",
                                        "reduce-scatter",
                                        "all-gather",
                                        "conditional",
                                        "loop",
                                        "output"};
  return kNames[static_cast<std::size_t>(kind)];
}

int inputs_of(Function function) {
  switch (function) {
    case Function::copy:
    case Function::convert:
    case Function::negate:
    case Function::absolute:
    case Function::square_root: return 1;
    case Function::select: return 3;
    default: return 2;
  }
}

std::int64_t Value::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

IdVector<ValueId, Readers> readers_of(const Program& program) {
  IdVector<ValueId, Readers> readers(program.values.size());
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[InstructionId(i)];
    for (std::uint32_t input = 0; input < instruction.inputs.size(); ++input)
      readers[instruction.inputs[input]].instructions.push_back({InstructionId(i), input});
  }
  for (const Computation& computation : program.computations)
    for (std::uint32_t k = 0; k < computation.results.size(); ++k) readers[computation.results[k]].results.push_back(k);
  return readers;
}

IdVector<ComputationId, std::vector<InstructionId>> callers_of(const Program& program) {
  IdVector<ComputationId, std::vector<InstructionId>> callers(program.computations.size());
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (const ComputationId called : program.instructions[InstructionId(i)].called)
      callers[called].push_back(InstructionId(i));
  return callers;
}

namespace {

Error in_program(std::string what) { return bad_input(std::move(what), "training program"); }

/// One instruction's shapes and arity. Values that it reads are known to exist.
class ProgramChecker {
 public:
  explicit ProgramChecker(const Program& program) : program_(program) {}

  Expected<void> run() {
    if (program_.replicas < 1) return in_program(fmt::format("has {} replicas, not 1 or more", program_.replicas));
    if (program_.entry.index >= program_.computations.size()) return in_program("has no entry computation");
    for (const Value& value : program_.values)
      if (auto fine = check_value(value); !fine) return fine;
    made_.assign(program_.values.size(), false);
    for (std::size_t c = 0; c < program_.computations.size(); ++c)
      if (auto fine = check_computation(ComputationId(c)); !fine) return fine;
    return check_calls();
  }

 private:
  Expected<void> check_value(const Value& value) const {
    double product = 1;
    for (const std::int64_t size : value.shape) {
      if (size < 0) return in_program(fmt::format("value '{}' has a dimension of size {}", value.name, size));
      product *= static_cast<double>(size);
    }
    if (product > 1e18) return in_program(fmt::format("value '{}' has more elements than can be counted", value.name));
    const int bytes = value.element_bytes;
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
      return in_program(fmt::format("value '{}' has elements of {} bytes, not 1, 2, 4 or 8", value.name, bytes));
    return {};
  }

  Expected<void> check_computation(ComputationId id) {
    const Computation& computation = program_.computations[id];
    for (const InstructionId i : computation.instructions) {
      if (i.index >= program_.instructions.size())
        return in_program(fmt::format("computation '{}' lists an instruction that does not exist", computation.name));
      const Instruction& instruction = program_.instructions[i];
      if (instruction.computation != id)
        return in_program(fmt::format("'{}' is listed by a computation that it does not belong to", instruction.name));
      for (const ValueId value : instruction.inputs)
        if (value.index >= made_.size() || !made_[value.index] ||
            program_.producer(value).computation != instruction.computation)
          return in_program(
              fmt::format("'{}' reads a value before it is made: a cycle, or another computation's", instruction.name));
      for (const ValueId value : instruction.outputs) {
        if (value.index >= made_.size() || made_[value.index] || program_.values[value].producer != i)
          return in_program(fmt::format("'{}' makes a value that is not its own", instruction.name));
        made_[value.index] = true;
      }
      if (auto fine = check_instruction(instruction); !fine) return fine;
    }
    for (const auto& values : {computation.parameters, computation.results})
      for (const ValueId value : values)
        if (value.index >= made_.size() || !made_[value.index] || program_.producer(value).computation != id)
          return in_program(
              fmt::format("computation '{}' has a parameter or result that it does not make", computation.name));
    return {};
  }

  bool same_shape(ValueId a, ValueId b) const { return program_.values[a].shape == program_.values[b].shape; }
  std::int64_t elements(ValueId value) const { return program_.values[value].elements(); }

  Expected<void> check_instruction(const Instruction& i) const {
    const auto wrong = [&](const char* what) {
      return in_program(fmt::format("{} '{}' {}", to_string(i.kind), i.name, what));
    };
    const auto has = [&](std::size_t inputs, std::size_t outputs) {
      return i.inputs.size() == inputs && i.outputs.size() == outputs;
    };
    switch (i.kind) {
      case Kind::constant:
      case Kind::iota:
      case Kind::parameter:
      case Kind::infeed:
      case Kind::random:
      case Kind::replica_id: return has(0, 1) ? Expected<void>{} : wrong("has one result and reads nothing");
      case Kind::elementwise:
        if (!has(static_cast<std::size_t>(inputs_of(i.function)), 1)) return wrong("has the wrong number of inputs");
        for (const ValueId input : i.inputs)
          if (!same_shape(input, i.outputs[0])) return wrong("has inputs of other shapes than its result");
        return {};
      case Kind::reduce: return has(1, 1) && reduces(i) ? Expected<void>{} : wrong("sums over dimensions it has not");
      case Kind::broadcast: return has(1, 1) && widens(i) ? Expected<void>{} : wrong("does not fit its input");
      case Kind::reshape:
        return has(1, 1) && elements(i.inputs[0]) == elements(i.outputs[0]) ? Expected<void>{}
                                                                            : wrong("changes the number of elements");
      case Kind::bitcast:
        return has(1, 1) && program_.values[i.inputs[0]].bytes() == program_.values[i.outputs[0]].bytes()
                   ? Expected<void>{}
                   : wrong("changes the number of bytes");
      case Kind::pad:
        return has(1, 1) && elements(i.outputs[0]) >= elements(i.inputs[0]) ? Expected<void>{}
                                                                            : wrong("makes a vector shorter");
      case Kind::slice:
      case Kind::dynamic_slice:
        return has(i.kind == Kind::slice ? 1 : 2, 1) && elements(i.outputs[0]) <= elements(i.inputs[0])
                   ? Expected<void>{}
                   : wrong("takes more elements than there are");
      case Kind::dynamic_update_slice:
        return has(3, 1) && same_shape(i.inputs[0], i.outputs[0]) && elements(i.inputs[1]) <= elements(i.inputs[0])
                   ? Expected<void>{}
                   : wrong("writes more elements than there are");
      case Kind::all_reduce:
      case Kind::reduce_scatter:
      case Kind::all_gather: return check_collective(i);
      case Kind::conditional:
      case Kind::loop: return check_call(i);
      default: return {};
    }
  }

  bool reduces(const Instruction& i) const {
    std::vector<std::int64_t> kept;
    const auto& shape = program_.values[i.inputs[0]].shape;
    std::vector<bool> summed(shape.size(), false);
    for (const int d : i.dims) {
      if (d < 0 || d >= static_cast<int>(shape.size()) || summed[static_cast<std::size_t>(d)]) return false;
      summed[static_cast<std::size_t>(d)] = true;
    }
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (!summed[d]) kept.push_back(shape[d]);
    return kept == program_.values[i.outputs[0]].shape;
  }

  bool widens(const Instruction& i) const {
    const auto& from = program_.values[i.inputs[0]].shape;
    const auto& to = program_.values[i.outputs[0]].shape;
    if (from.size() != i.dims.size()) return false;
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (i.dims[d] < 0 || i.dims[d] >= static_cast<int>(to.size())) return false;
      if (d > 0 && i.dims[d] <= i.dims[d - 1]) return false;
      if (to[static_cast<std::size_t>(i.dims[d])] != from[d]) return false;
    }
    return true;
  }

  Expected<void> check_collective(const Instruction& i) const {
    const auto wrong = [&](const std::string& what) {
      return in_program(fmt::format("{} '{}' {}", to_string(i.kind), i.name, what));
    };
    std::vector<bool> seen(static_cast<std::size_t>(program_.replicas), false);
    std::size_t count = 0;
    for (const auto& group : i.groups) {
      if (group.size() != i.groups[0].size()) return wrong("has groups of different sizes");
      for (const int replica : group) {
        if (replica < 0 || replica >= program_.replicas || seen[static_cast<std::size_t>(replica)])
          return wrong(fmt::format("names replica {} twice, or there is none such", replica));
        seen[static_cast<std::size_t>(replica)] = true;
        ++count;
      }
    }
    if (!i.groups.empty() && count != seen.size()) return wrong("leaves replicas out of its groups");
    if (i.inputs.empty() || i.inputs.size() != i.outputs.size()) return wrong("has not one result for every input");
    const auto members =
        static_cast<std::int64_t>(i.groups.empty() ? static_cast<std::size_t>(program_.replicas) : i.groups[0].size());
    for (std::size_t k = 0; k < i.inputs.size(); ++k) {
      const std::int64_t in = elements(i.inputs[k]), out = elements(i.outputs[k]);
      if (i.kind == Kind::all_reduce && !same_shape(i.inputs[k], i.outputs[k])) return wrong("changes a shape");
      if (i.kind == Kind::reduce_scatter && in != out * members)
        return wrong(fmt::format("does not divide {} elements among {} members", in, members));
      if (i.kind == Kind::all_gather && out != in * members)
        return wrong(fmt::format("does not make {} elements of {} members' {}", out, members, in));
    }
    return {};
  }

  Expected<void> check_call(const Instruction& i) const {
    const auto wrong = [&](const char* what) {
      return in_program(fmt::format("{} '{}' {}", to_string(i.kind), i.name, what));
    };
    if (i.called.size() != 2) return wrong("does not call two computations");
    const bool loop = i.kind == Kind::loop;
    const std::size_t first = loop ? 0 : 1;
    if (i.inputs.size() < first) return wrong("has no predicate");
    if (!loop && elements(i.inputs[0]) != 1) return wrong("has a predicate that is no scalar");
    for (std::size_t b = 0; b < 2; ++b) {
      if (i.called[b].index >= program_.computations.size()) return wrong("calls a computation that does not exist");
      const Computation& called = program_.computations[i.called[b]];
      if (called.parameters.size() != i.inputs.size() - first) return wrong("hands over too many or too few arguments");
      for (std::size_t k = 0; k < called.parameters.size(); ++k)
        if (!shape_is(called.parameters[k], i.inputs[k + first]))
          return wrong("hands over an argument of another shape");
      if (loop && b == 1) {
        if (called.results.size() != 1 || program_.values[called.results[0]].elements() != 1)
          return wrong("has a condition that is no scalar");
        continue;
      }
      if (called.results.size() != i.outputs.size()) return wrong("has too many or too few results");
      for (std::size_t k = 0; k < called.results.size(); ++k)
        if (!shape_is(called.results[k], i.outputs[k])) return wrong("has a result of another shape");
    }
    if (loop && i.inputs.size() != i.outputs.size()) return wrong("carries other values than it returns");
    for (std::size_t k = 0; loop && k < i.inputs.size(); ++k)
      if (!shape_is(i.inputs[k], i.outputs[k])) return wrong("carries a value whose shape changes");
    return {};
  }
  bool shape_is(ValueId a, ValueId b) const {
    return a.index < program_.values.size() && b.index < program_.values.size() && same_shape(a, b) &&
           program_.values[a].element_bytes == program_.values[b].element_bytes;
  }

  Expected<void> check_calls() const {
    enum class Mark : std::uint8_t { fresh, open, done };
    std::vector<Mark> marks(program_.computations.size(), Mark::fresh);
    const std::function<bool(ComputationId)> walk = [&](ComputationId id) {
      marks[id.index] = Mark::open;
      for (const InstructionId i : program_.computations[id].instructions)
        for (const ComputationId called : program_.instructions[i].called) {
          if (marks[called.index] == Mark::open) return false;
          if (marks[called.index] == Mark::fresh && !walk(called)) return false;
        }
      marks[id.index] = Mark::done;
      return true;
    };
    for (std::size_t c = 0; c < marks.size(); ++c)
      if (marks[c] == Mark::fresh && !walk(ComputationId(c)))
        return in_program(fmt::format("computation '{}' calls itself", program_.computations[ComputationId(c)].name));
    return {};
  }

  const Program& program_;
  std::vector<bool> made_;
};

Expected<void> divides(int replicas, int size) {
  if (replicas < 1 || size < 1 || replicas % size != 0)
    return bad_input(fmt::format("a group of {} does not divide {} replicas", size, replicas));
  return {};
}

}  // namespace

Expected<void> check(const Program& program) { return ProgramChecker(program).run(); }

Expected<ReplicaGroups> row_groups(int replicas, int size) {
  if (auto fine = divides(replicas, size); !fine) return fine.error();
  ReplicaGroups groups(static_cast<std::size_t>(replicas / size));
  for (int r = 0; r < replicas; ++r) groups[static_cast<std::size_t>(r / size)].push_back(r);
  return groups;
}

Expected<ReplicaGroups> column_groups(int replicas, int size) {
  if (auto fine = divides(replicas, size); !fine) return fine.error();
  ReplicaGroups groups(static_cast<std::size_t>(size));
  for (int r = 0; r < replicas; ++r) groups[static_cast<std::size_t>(r % size)].push_back(r);
  return groups;
}

}  // namespace turnpoint::update_sharding
