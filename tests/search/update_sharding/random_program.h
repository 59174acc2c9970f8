// SPDX-License-Identifier: Apache-2.0
// Random training programs: every kind of source, groups, branches and loops, some under conditions that differ between
// replicas.
#pragma once

#include <random>

#include "core/search/update_sharding/builder.h"

namespace turnpoint::test {

namespace us = turnpoint::update_sharding;

class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed), b_(seed % 3 == 0 ? 6 : 4) {}

  us::Program make() {
    std::vector<us::ValueId> known;
    known.push_back(b_.parameter("marked", {3}, us::ParameterRole::weight, true));
    known.push_back(b_.parameter("own", {3}));
    fill(known, 10 + below(10), 0);
    return b_.take();
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  us::ValueId any(const std::vector<us::ValueId>& known) {
    return known[static_cast<std::size_t>(below(static_cast<int>(known.size())))];
  }

  us::ReplicaGroups groups() {
    const int n = b_.program().replicas;
    switch (below(4)) {
      case 0: return {};
      case 1: return *us::row_groups(n, 2);
      case 2: return *us::column_groups(n, 2);
      default: return *us::row_groups(n, n / 2);
    }
  }

  /// Appends so many instructions on values of three elements.
  void fill(std::vector<us::ValueId>& known, int count, int depth) {
    for (int k = 0; k < count; ++k) {
      const int what = below(depth < 2 ? 14 : 11);
      switch (what) {
        case 0: known.push_back(b_.constant(below(3), {3})); break;
        case 1: known.push_back(b_.source(us::Kind::infeed, "data" + std::to_string(next_++), {3})); break;
        case 2: known.push_back(b_.source(us::Kind::random, "random" + std::to_string(next_++), {3})); break;
        case 3: known.push_back(b_.broadcast(b_.source(us::Kind::replica_id, "r", {}), {3})); break;
        case 4: known.push_back(b_.operation(us::Kind::custom_call, {any(known)}, {{3}}, "call")[0]); break;
        case 5: known.push_back(b_.operation(us::Kind::network, {any(known), any(known)}, {{3}}, "layer")[0]); break;
        case 6:
        case 7: known.push_back(b_.all_reduce(any(known), groups())); break;
        case 8: known.push_back(b_.broadcast(b_.sum(any(known)), {3})); break;
        case 9: known.push_back(b_.apply(us::Function::add, {any(known), any(known)})); break;
        case 10: known.push_back(b_.apply(us::Function::maximum, {any(known), any(known)})); break;
        case 11: branch(known, depth); break;
        default: loop(known, depth); break;
      }
    }
  }

  std::vector<us::ValueId> some(const std::vector<us::ValueId>& known) {
    std::vector<us::ValueId> chosen;
    for (int k = 2 + below(3); k > 0; --k) chosen.push_back(any(known));
    return chosen;
  }

  void branch(std::vector<us::ValueId>& known, int depth) {
    const std::vector<us::ValueId> arguments = some(known);
    const us::ValueId predicate = b_.apply(us::Function::less, {b_.sum(any(known)), b_.constant(0.3)});
    const us::ComputationId outside = b_.standing_in();
    us::ComputationId branches[2];
    for (auto& id : branches) {
      b_.stand_in(id = b_.computation("branch"));
      std::vector<us::ValueId> inside;
      for (std::size_t k = 0; k < arguments.size(); ++k) inside.push_back(b_.parameter("argument", {3}));
      fill(inside, 1 + below(4), depth + 1);
      b_.results({any(inside), inside.back()});
    }
    b_.stand_in(outside);
    for (const us::ValueId value : b_.conditional(predicate, arguments, branches[0], branches[1]))
      known.push_back(value);
  }

  /// Counts from a number between -2 and 2, which may be a replica's own, to 2.
  void loop(std::vector<us::ValueId>& known, int depth) {
    std::vector<us::ValueId> carried = some(known);
    us::ValueId start = b_.constant(-below(2));
    if (below(3) == 0)
      start = b_.apply(us::Function::minimum,
                       {b_.apply(us::Function::maximum, {b_.sum(any(known)), b_.constant(-2)}), b_.constant(2)});
    carried.push_back(start);
    const us::ComputationId outside = b_.standing_in(), body = b_.computation("body"),
                            condition = b_.computation("more");
    const auto parameters = [&] {
      std::vector<us::ValueId> made;
      for (std::size_t k = 0; k + 1 < carried.size(); ++k) made.push_back(b_.parameter("carried", {3}));
      made.push_back(b_.parameter("count", {}));
      return made;
    };
    b_.stand_in(condition);
    b_.results({b_.apply(us::Function::less, {parameters().back(), b_.constant(2)})});
    b_.stand_in(body);
    std::vector<us::ValueId> inside = parameters();
    const us::ValueId count = inside.back();
    inside.pop_back();
    fill(inside, 1 + below(5), depth + 1);
    std::vector<us::ValueId> results;
    for (std::size_t k = 0; k + 1 < carried.size(); ++k)
      results.push_back(below(2) ? any(inside) : inside[(k + 1) % (carried.size() - 1)]);
    results.push_back(b_.apply(us::Function::add, {count, b_.constant(1)}));
    b_.results(results);
    b_.stand_in(outside);
    auto after = b_.loop(carried, body, condition);
    after.pop_back();
    known.insert(known.end(), after.begin(), after.end());
  }

  std::mt19937_64 random_;
  us::Builder b_;
  int next_ = 0;
};

}  // namespace turnpoint::test
