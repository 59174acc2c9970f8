// SPDX-License-Identifier: Apache-2.0
// Carries out a training program on all replicas at once, instruction by instruction: what each replica computes, so
// that claims about values can be compared with values. Replicas that do not run a branch or an iteration wait for the
// others; collectives sum over those that take part.
#pragma once

#include <QtGlobal>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/search/update_sharding/program.h"

namespace turnpoint::test {

namespace us = turnpoint::update_sharding;

using Elements = std::vector<double>;
using OnReplicas = std::vector<Elements>;  ///< a value of every replica; empty where it did not run

/// A number in [-1, 1) of a text and two numbers, the same in every run.
inline double number_of(const std::string& text, std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = 1469598103934665603u;
  const auto mix = [&](std::uint64_t x) { h = (h ^ x) * 1099511628211u, h ^= h >> 29; };
  for (const char c : text) mix(static_cast<unsigned char>(c));
  mix(a + 17), mix(b + 91), mix(h >> 7);
  return static_cast<double>(h % 2000003u) / 1000001.5 - 1;
}

inline double rounded(double x, int bytes) {
  if (bytes >= 8) return x;
  const auto single = static_cast<float>(x);
  if (bytes == 4 || !std::isfinite(single)) return single;
  std::uint32_t bits;
  std::memcpy(&bits, &single, 4);
  bits += 0x7fffu + ((bits >> 16) & 1);
  bits &= 0xffff0000u;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

class Interpreter {
 public:
  using Observer = std::function<void(us::ValueId, const std::vector<bool>& active, const OnReplicas&)>;
  struct Output {
    std::string name;
    std::vector<OnReplicas> values;
  };

  /// `parameters`: of the entry by name; what is missing is made of its name, on every replica its own unless it is
  /// marked as the same everywhere.
  explicit Interpreter(const us::Program& program, std::map<std::string, Elements> parameters = {})
      : p_(program), parameters_(std::move(parameters)), values_(program.values.size()) {}

  void observe(Observer observer) { observer_ = std::move(observer); }
  std::vector<Output> run() {
    const std::vector<bool> all(replicas(), true);
    run(p_.entry, all);
    return std::move(outputs_);
  }
  const OnReplicas& value(us::ValueId id) const { return values_[id]; }

 private:
  std::size_t replicas() const { return static_cast<std::size_t>(p_.replicas); }

  void put(us::ValueId id, const std::vector<bool>& active, OnReplicas on) {
    auto& slot = values_[id];
    slot.resize(replicas());
    for (std::size_t r = 0; r < replicas(); ++r)
      if (active[r]) slot[r] = std::move(on[r]);
    if (observer_) observer_(id, active, slot);
  }

  void run(us::ComputationId id, const std::vector<bool>& active) {
    if (std::none_of(active.begin(), active.end(), [](bool a) { return a; })) return;
    for (const us::InstructionId i : p_.computations[id].instructions) {
      const us::Instruction& instruction = p_.instructions[i];
      if (instruction.kind == us::Kind::parameter && id != p_.entry) continue;
      step(instruction, active);
    }
  }

  void step(const us::Instruction& i, const std::vector<bool>& active) {
    switch (i.kind) {
      case us::Kind::all_reduce:
      case us::Kind::reduce_scatter:
      case us::Kind::all_gather: return collective(i, active);
      case us::Kind::conditional: return conditional(i, active);
      case us::Kind::loop: return loop(i, active);
      case us::Kind::output: {
        Output output{i.name, {}};
        for (const us::ValueId input : i.inputs) {
          output.values.push_back(values_[input]);
          for (std::size_t r = 0; r < replicas(); ++r)
            if (!active[r]) output.values.back()[r].clear();
        }
        outputs_.push_back(std::move(output));
        return;
      }
      default: break;
    }
    for (std::size_t k = 0; k < i.outputs.size(); ++k) {
      OnReplicas on(replicas());
      for (std::size_t r = 0; r < replicas(); ++r)
        if (active[r]) on[r] = local(i, k, r);
      put(i.outputs[k], active, std::move(on));
    }
  }

  const Elements& in(const us::Instruction& i, std::size_t k, std::size_t r) const { return values_[i.inputs[k]][r]; }

  Elements local(const us::Instruction& i, std::size_t output, std::size_t r) {
    const us::Value& value = p_.values[i.outputs[output]];
    Elements out(static_cast<std::size_t>(value.elements()));
    const auto fill = [&](auto number) {
      for (std::size_t e = 0; e < out.size(); ++e) out[e] = rounded(number(e), value.element_bytes);
    };
    switch (i.kind) {
      case us::Kind::constant: fill([&](std::size_t) { return i.literal; }); break;
      case us::Kind::iota: fill([](std::size_t e) { return static_cast<double>(e); }); break;
      case us::Kind::replica_id: fill([&](std::size_t) { return static_cast<double>(r); }); break;
      case us::Kind::parameter:
        if (const auto given = parameters_.find(i.name); given != parameters_.end()) return given->second;
        fill([&](std::size_t e) { return number_of(i.name, e, i.same_everywhere ? 0 : r + 1); });
        break;
      case us::Kind::infeed:
      case us::Kind::random: {
        const std::uint64_t count = counts_[{i.name, r}]++;
        fill([&](std::size_t e) { return number_of(i.name, e + 1000003 * count, r + 1); });
        break;
      }
      case us::Kind::elementwise: fill([&](std::size_t e) { return apply(i, r, e); }); break;
      case us::Kind::reduce: return reduce(i, r, value);
      case us::Kind::broadcast: return broadcast(i, r, value);
      case us::Kind::reshape:
      case us::Kind::bitcast: return in(i, 0, r);
      case us::Kind::pad: fill([&](std::size_t e) { return e < in(i, 0, r).size() ? in(i, 0, r)[e] : 0; }); break;
      case us::Kind::slice: fill([&](std::size_t e) { return in(i, 0, r)[e]; }); break;
      case us::Kind::dynamic_slice: {
        const auto at = static_cast<std::size_t>(in(i, 1, r)[0]);
        fill([&](std::size_t e) { return in(i, 0, r).at(at + e); });
        break;
      }
      case us::Kind::dynamic_update_slice: {
        out = in(i, 0, r);
        const auto at = static_cast<std::size_t>(in(i, 2, r)[0]);
        for (std::size_t e = 0; e < in(i, 1, r).size(); ++e) out.at(at + e) = in(i, 1, r)[e];
        break;
      }
      default: opaque(i, output, r, out);
    }
    return out;
  }

  double apply(const us::Instruction& i, std::size_t r, std::size_t e) const {
    const double a = in(i, 0, r)[e];
    const double b = i.inputs.size() > 1 ? in(i, 1, r)[e] : 0;
    switch (i.function) {
      case us::Function::copy:
      case us::Function::convert: return a;
      case us::Function::negate: return -a;
      case us::Function::absolute: return std::abs(a);
      case us::Function::square_root: return std::sqrt(a);
      case us::Function::add: return a + b;
      case us::Function::subtract: return a - b;
      case us::Function::multiply: return a * b;
      case us::Function::divide: return a / b;
      case us::Function::maximum: return std::max(a, b);
      case us::Function::minimum: return std::min(a, b);
      case us::Function::power: return std::pow(a, b);
      case us::Function::modulo: return std::fmod(a, b);
      case us::Function::equal: return a == b;
      case us::Function::less: return a < b;
      case us::Function::select: return a != 0 ? b : in(i, 2, r)[e];
    }
    return 0;
  }

  /// Row-major strides, 0 for dimensions that `keep` leaves out.
  static std::vector<std::size_t> strides(const std::vector<std::int64_t>& shape, const std::vector<bool>& keep) {
    std::vector<std::size_t> result(shape.size(), 0);
    std::size_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;)
      if (keep[d]) result[d] = stride, stride *= static_cast<std::size_t>(shape[d]);
    return result;
  }
  static std::size_t mapped(std::size_t e, const std::vector<std::int64_t>& shape, const std::vector<std::size_t>& to) {
    std::size_t result = 0;
    for (std::size_t d = shape.size(); d-- > 0;) {
      result += e % static_cast<std::size_t>(shape[d]) * to[d];
      e /= static_cast<std::size_t>(shape[d]);
    }
    return result;
  }

  Elements reduce(const us::Instruction& i, std::size_t r, const us::Value& value) const {
    const auto& shape = p_.values[i.inputs[0]].shape;
    std::vector<bool> keep(shape.size(), true);
    for (const int d : i.dims) keep[static_cast<std::size_t>(d)] = false;
    const auto to = strides(shape, keep);
    Elements out(static_cast<std::size_t>(value.elements()), 0);
    for (std::size_t e = 0; e < in(i, 0, r).size(); ++e) out[mapped(e, shape, to)] += in(i, 0, r)[e];
    for (double& x : out) x = rounded(x, value.element_bytes);
    return out;
  }

  Elements broadcast(const us::Instruction& i, std::size_t r, const us::Value& value) const {
    std::vector<bool> keep(value.shape.size(), false);
    for (const int d : i.dims) keep[static_cast<std::size_t>(d)] = true;
    const auto from = strides(value.shape, keep);
    Elements out(static_cast<std::size_t>(value.elements()));
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = in(i, 0, r)[mapped(e, value.shape, from)];
    return out;
  }

  /// A pure function of all inputs; of a custom call of the replica too. In steps of 2^-10, so that sums over replicas
  /// are the same in whatever order.
  void opaque(const us::Instruction& i, std::size_t output, std::size_t r, Elements& out) const {
    double sum = i.kind == us::Kind::custom_call ? static_cast<double>(r) : 0;
    for (std::size_t k = 0; k < i.inputs.size(); ++k)
      for (std::size_t e = 0; e < in(i, k, r).size(); ++e) sum += in(i, k, r)[e] * (0.1 + number_of("factor", e, k));
    for (std::size_t e = 0; e < out.size(); ++e)
      out[e] = std::round(1024 * std::sin(sum + 0.7 * static_cast<double>(e) + number_of("output", output, 1))) / 1024;
  }

  void collective(const us::Instruction& i, const std::vector<bool>& active) {
    us::ReplicaGroups groups = i.groups;
    if (groups.empty()) groups = *us::row_groups(p_.replicas, p_.replicas);
    for (std::size_t k = 0; k < i.inputs.size(); ++k) {
      OnReplicas on(replicas());
      const us::Value& value = p_.values[i.outputs[k]];
      for (const auto& group : groups) {
        std::vector<std::size_t> members;
        for (const int r : group)
          if (active[static_cast<std::size_t>(r)]) members.push_back(static_cast<std::size_t>(r));
        if (members.empty()) continue;
        Elements all;
        if (i.kind == us::Kind::all_gather) {
          for (const std::size_t r : members) all.insert(all.end(), in(i, k, r).begin(), in(i, k, r).end());
        } else {
          all.assign(in(i, k, members[0]).size(), 0);
          for (const std::size_t r : members)
            for (std::size_t e = 0; e < all.size(); ++e) all[e] += in(i, k, r)[e];
          for (double& x : all) x = rounded(x, value.element_bytes);
        }
        const auto part = static_cast<std::size_t>(value.elements());
        for (std::size_t m = 0; m < members.size(); ++m) {
          const auto at = static_cast<std::ptrdiff_t>(m * part);
          on[members[m]] = i.kind == us::Kind::reduce_scatter
                               ? Elements(all.begin() + at, all.begin() + at + static_cast<std::ptrdiff_t>(part))
                               : all;
        }
      }
      put(i.outputs[k], active, std::move(on));
    }
  }

  void hand(const std::vector<us::ValueId>& parameters, const us::Instruction& i, std::size_t first,
            const std::vector<bool>& active) {
    for (std::size_t k = 0; k < parameters.size(); ++k)
      put(parameters[k], active, OnReplicas(values_[i.inputs[k + first]]));
  }

  void conditional(const us::Instruction& i, const std::vector<bool>& active) {
    std::vector<OnReplicas> results(i.outputs.size(), OnReplicas(replicas()));
    for (std::size_t b = 0; b < 2; ++b) {
      std::vector<bool> inside(replicas());
      for (std::size_t r = 0; r < replicas(); ++r) inside[r] = active[r] && (in(i, 0, r)[0] != 0) == (b == 0);
      const us::Computation& branch = p_.computations[i.called[b]];
      if (std::none_of(inside.begin(), inside.end(), [](bool a) { return a; })) continue;
      hand(branch.parameters, i, 1, inside);
      run(i.called[b], inside);
      for (std::size_t k = 0; k < results.size(); ++k)
        for (std::size_t r = 0; r < replicas(); ++r)
          if (inside[r]) results[k][r] = values_[branch.results[k]][r];
    }
    for (std::size_t k = 0; k < results.size(); ++k) put(i.outputs[k], active, std::move(results[k]));
  }

  void loop(const us::Instruction& i, const std::vector<bool>& active) {
    const us::Computation &body = p_.computations[i.called[0]], &condition = p_.computations[i.called[1]];
    std::vector<OnReplicas> carried;
    for (const us::ValueId input : i.inputs) carried.push_back(values_[input]);
    std::vector<bool> inside = active;
    const auto hand_carried = [&](const us::Computation& to) {
      for (std::size_t k = 0; k < carried.size(); ++k) put(to.parameters[k], inside, OnReplicas(carried[k]));
    };
    for (int round = 0; round < 1000; ++round) {
      if (std::none_of(inside.begin(), inside.end(), [](bool a) { return a; })) break;
      hand_carried(condition);
      run(i.called[1], inside);
      for (std::size_t r = 0; r < replicas(); ++r)
        if (inside[r]) inside[r] = values_[condition.results[0]][r][0] != 0;
      if (std::none_of(inside.begin(), inside.end(), [](bool a) { return a; })) break;
      hand_carried(body);
      run(i.called[0], inside);
      std::vector<OnReplicas> next;
      for (const us::ValueId result : body.results) next.push_back(values_[result]);
      for (std::size_t k = 0; k < carried.size(); ++k)
        for (std::size_t r = 0; r < replicas(); ++r)
          if (inside[r]) carried[k][r] = next[k][r];
    }
    for (std::size_t k = 0; k < carried.size(); ++k) put(i.outputs[k], active, std::move(carried[k]));
  }

  const us::Program& p_;
  std::map<std::string, Elements> parameters_;
  IdVector<us::ValueId, OnReplicas> values_;
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> counts_;
  std::vector<Output> outputs_;
  Observer observer_;
};

}  // namespace turnpoint::test
