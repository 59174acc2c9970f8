// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/induction.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

namespace turnpoint::update_sharding {

namespace {

/// A carried value as it is when the body begins, plus a whole number.
struct Counted {
  InstructionId loop;
  std::size_t carried = 0;
  std::int64_t offset = 0;
};

class Induction {
 public:
  explicit Induction(const Program& program) : p_(program), callers_(callers_of(program)) {}

  IdVector<ComputationId, RunFrequency> run() {
    IdVector<ComputationId, RunFrequency> result(p_.computations.size());
    const std::function<void(ComputationId)> walk = [&](ComputationId id) {
      for (const InstructionId i : p_.computations[id].instructions) {
        const Instruction& call = p_.instructions[i];
        const double taken = call.kind == Kind::conditional ? share_taken(call) : 1;
        for (std::size_t b = 0; b < call.called.size(); ++b) {
          RunFrequency& frequency = result[call.called[b]];
          frequency = call.kind == Kind::loop ? RunFrequency{} : result[id];
          if (call.kind == Kind::conditional) {
            frequency.branch = true;
            // Of a predicate that is not understood either branch may be taken every time.
            const double own = taken < 0 ? 1 : b == 0 ? taken : 1 - taken;
            frequency.times = std::min(frequency.times, own);
          }
          walk(call.called[b]);
        }
      }
    };
    walk(p_.entry);
    return result;
  }

 private:
  /// What the argument behind a branch's parameter is, in the computation that calls it; invalid elsewhere.
  ValueId argument_of(ValueId parameter) const {
    const ComputationId id = p_.producer(parameter).computation;
    if (callers_[id].size() != 1) return {};
    const Instruction& call = p_.instructions[callers_[id][0]];
    const auto& parameters = p_.computations[id].parameters;
    const auto k =
        static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), parameter) - parameters.begin());
    return call.kind == Kind::conditional && k < parameters.size() ? call.inputs[k + 1] : ValueId();
  }

  static bool passes(const Instruction& i) {
    return i.kind == Kind::elementwise && (i.function == Function::copy || i.function == Function::convert);
  }

  std::optional<std::int64_t> whole_constant(ValueId value) const {
    const Instruction& producer = p_.producer(value);
    if (passes(producer)) return whole_constant(producer.inputs[0]);
    if (producer.kind == Kind::parameter) {
      const ValueId argument = argument_of(value);
      return argument.valid() ? whole_constant(argument) : std::nullopt;
    }
    if (producer.kind != Kind::constant || std::abs(producer.literal) > 1e15) return std::nullopt;
    const auto whole = static_cast<std::int64_t>(producer.literal);
    return static_cast<double>(whole) == producer.literal ? std::optional(whole) : std::nullopt;
  }

  std::optional<Counted> counted(ValueId value) const {
    const Instruction& producer = p_.producer(value);
    if (passes(producer)) return counted(producer.inputs[0]);
    if (producer.kind == Kind::parameter) {
      if (const ValueId argument = argument_of(value); argument.valid()) return counted(argument);
      const ComputationId id = producer.computation;
      if (callers_[id].size() != 1) return std::nullopt;
      const Instruction& loop = p_.instructions[callers_[id][0]];
      if (loop.kind != Kind::loop || loop.called[0] != id) return std::nullopt;
      const auto& parameters = p_.computations[id].parameters;
      const auto at = std::find(parameters.begin(), parameters.end(), value);
      if (at == parameters.end()) return std::nullopt;
      return Counted{callers_[id][0], static_cast<std::size_t>(at - parameters.begin()), 0};
    }
    if (producer.kind != Kind::elementwise) return std::nullopt;
    const bool adds = producer.function == Function::add;
    if (!adds && producer.function != Function::subtract) return std::nullopt;
    for (const std::size_t number : {1u, 0u}) {
      const auto constant = whole_constant(producer.inputs[number]);
      if (!constant || (number == 0 && !adds)) continue;
      auto base = counted(producer.inputs[1 - number]);
      if (base) base->offset += adds ? *constant : -*constant;
      return base;
    }
    return std::nullopt;
  }

  /// Of a conditional: in what share of the iterations its predicate holds; below 0: not known.
  double share_taken(const Instruction& conditional) const {
    constexpr double kUnknown = -1;
    const Instruction* equal = &p_.producer(conditional.inputs[0]);
    while (passes(*equal)) equal = &p_.producer(equal->inputs[0]);
    if (equal->kind != Kind::elementwise || equal->function != Function::equal) return kUnknown;
    for (const std::size_t side : {0u, 1u}) {
      const Instruction* rest = &p_.producer(equal->inputs[side]);
      while (passes(*rest)) rest = &p_.producer(rest->inputs[0]);
      const auto wanted = whole_constant(equal->inputs[1 - side]);
      if (!wanted || rest->kind != Kind::elementwise || rest->function != Function::modulo) continue;
      const auto period = whole_constant(rest->inputs[1]);
      const auto number = counted(rest->inputs[0]);
      if (!period || *period < 1 || !number) return kUnknown;
      const Instruction& loop = p_.instructions[number->loop];
      const auto start = whole_constant(loop.inputs[number->carried]);
      const auto next = counted(p_.computations[loop.called[0]].results[number->carried]);
      if (!start || !next || next->loop != number->loop || next->carried != number->carried || next->offset == 0)
        return kUnknown;
      const std::int64_t common = std::gcd(next->offset, *period);
      if ((*wanted - *start - number->offset) % common != 0) return 0;
      return static_cast<double>(common) / static_cast<double>(*period);
    }
    return kUnknown;
  }

  const Program& p_;
  IdVector<ComputationId, std::vector<InstructionId>> callers_;
};

}  // namespace

IdVector<ComputationId, RunFrequency> run_frequencies(const Program& program) { return Induction(program).run(); }

}  // namespace turnpoint::update_sharding
