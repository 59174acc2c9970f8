// SPDX-License-Identifier: Apache-2.0
// What is the same on all replicas: small graphs of every rule, and random programs whose values are compared between
// replicas that carry them out on different data.
#include <QtTest>
#include <random>

#include "core/search/update_sharding/builder.h"
#include "core/search/update_sharding/redundancy.h"
#include "search/update_sharding/interpreter.h"
#include "search/update_sharding/random_program.h"

using namespace turnpoint;
using namespace turnpoint::update_sharding;

namespace {

Redundancy analysed(const Program& program) {
  const auto result = analyse_redundancy(program);
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

/// A loop that carries `first` and counts to 3; `next` makes the carried value of the next iteration. Returns the value
/// after the loop and those of the body.
struct SmallLoop {
  ValueId after, parameter, result;
};
SmallLoop small_loop(Builder& b, const std::vector<ValueId>& first,
                     const std::function<std::vector<ValueId>(const std::vector<ValueId>&)>& next,
                     const std::function<ValueId(const std::vector<ValueId>&)>& more, std::size_t asked) {
  const ComputationId outside = b.standing_in(), body = b.computation("body"), condition = b.computation("condition");
  std::vector<ValueId> in[2];
  for (const int c : {0, 1}) {
    b.stand_in(c == 0 ? body : condition);
    for (const ValueId value : first) in[c].push_back(b.parameter("p", b.value(value).shape));
  }
  b.results({more(in[1])});
  b.stand_in(body);
  const std::vector<ValueId> results = next(in[0]);
  b.results(results);
  b.stand_in(outside);
  return {b.loop(first, body, condition)[asked], in[0][asked], results[asked]};
}

}  // namespace

class RedundancyTest : public QObject {
  Q_OBJECT

 private slots:
  void sources() {
    Builder b(4);
    const ValueId constant = b.constant(2, {3}), data = b.source(Kind::infeed, "data", {3});
    const ValueId marked = b.parameter("w", {3}, update_sharding::ParameterRole::weight, true),
                  other = b.parameter("x", {3});
    const ValueId sum = b.all_reduce(data), random = b.source(Kind::random, "random", {3});
    const ValueId mixed = b.apply(Function::add, {sum, data}), same = b.apply(Function::add, {sum, marked});
    const ValueId call = b.operation(Kind::custom_call, {constant}, {{3}}, "call")[0];
    const ValueId pure = b.operation(Kind::network, {constant, sum}, {{3}}, "softmax")[0];
    const ValueId number = b.source(Kind::replica_id, "r", {});
    const ValueId scattered = b.collective(Kind::reduce_scatter, b.constant(1, {8}), {}, {2});
    const ValueId gathered = b.collective(Kind::all_gather, scattered, {}, {8});
    const Redundancy found = analysed(b.take());
    for (const ValueId value : {constant, marked, sum, same, pure, gathered}) QVERIFY(found.redundant(value));
    for (const ValueId value : {data, other, random, mixed, call, number, scattered}) {
      QVERIFY(!found.redundant(value));
      QVERIFY(!found.partly(value));
      QVERIFY(!found.same(value, 0, 1));
    }
  }

  void groups_are_alike_inside() {
    Builder b(6);
    const ValueId data = b.source(Kind::infeed, "data", {3});
    const ValueId rows = b.all_reduce(data, *row_groups(6, 3)), columns = b.all_reduce(data, *column_groups(6, 3));
    const ValueId both = b.apply(Function::add, {rows, columns});
    const ValueId constant = b.all_reduce(b.constant(1, {3}), *row_groups(6, 2));
    const ValueId again = b.all_reduce(rows, *column_groups(6, 3));
    const Redundancy found = analysed(b.take());
    QVERIFY(!found.redundant(rows) && found.partly(rows));
    QCOMPARE(found.alike(rows), (Alike{0, 0, 0, 3, 3, 3}));
    QCOMPARE(found.alike(columns), (Alike{0, 1, 2, 0, 1, 2}));
    QCOMPARE(found.alike(both), (Alike{0, 1, 2, 3, 4, 5}));
    QVERIFY(!found.partly(both));
    QVERIFY(found.redundant(constant));
    QVERIFY(found.redundant(again));  // in two phases a sum is over all
  }

  void fixed_point_of_a_loop() {
    // The first carried value takes the second's place, which is per-replica, only in the second iteration.
    Builder b(2);
    const ValueId one = b.constant(1), data = b.source(Kind::infeed, "data", {});
    const auto more = [&](const auto& in) { return b.apply(Function::less, {in[3], b.constant(3)}); };
    const auto step = [&](const auto& in) {
      return std::vector{in[1], in[2], in[2], b.apply(Function::add, {in[3], b.constant(1)})};
    };
    const SmallLoop late = small_loop(b, {one, one, data, one}, step, more, 0);
    const SmallLoop counter = small_loop(b, {one, one, data, one}, step, more, 3);
    const SmallLoop kept = small_loop(
        b, {one, one, one, one},
        [&](const auto& in) {
          return std::vector{b.apply(Function::add, {in[0], b.all_reduce(b.source(Kind::infeed, "more", {}))}), in[1],
                             in[2], b.apply(Function::add, {in[3], b.constant(1)})};
        },
        more, 0);
    const Redundancy found = analysed(b.take());
    QVERIFY(!found.redundant(late.after));
    QVERIFY(!found.redundant(late.parameter));
    QVERIFY(found.redundant(counter.after));
    QVERIFY(found.redundant(kept.after));
    QVERIFY(found.redundant(kept.result));
  }

  void condition_of_a_loop() {
    Builder b(4);
    const ValueId one = b.constant(1), data = b.source(Kind::infeed, "data", {});
    const ValueId rows = b.all_reduce(data, *row_groups(4, 2));
    const auto step = [&](const auto& in) {
      return std::vector{b.apply(Function::add, {in[0], b.constant(1)}), in[1]};
    };
    const auto more = [&](const auto& in) { return b.apply(Function::less, {in[0], in[1]}); };
    const SmallLoop by_data = small_loop(b, {one, data}, step, more, 0);
    const SmallLoop by_rows = small_loop(b, {one, rows}, step, more, 0);
    const SmallLoop by_constant = small_loop(b, {one, one}, step, more, 0);
    const Redundancy found = analysed(b.take());
    QVERIFY(!found.redundant(by_data.after) && !found.redundant(by_data.result) && !found.partly(by_data.result));
    QCOMPARE(found.alike(by_rows.result), (Alike{0, 0, 2, 2}));
    QVERIFY(found.redundant(by_constant.after) && found.redundant(by_constant.result));
  }

  void conditionals() {
    Builder b(2);
    const ValueId one = b.constant(1), data = b.source(Kind::infeed, "data", {});
    const auto branch = [&](ValueId predicate, bool use_data) {
      const ComputationId outside = b.standing_in(), taken = b.computation("taken"), other = b.computation("other");
      for (const ComputationId c : {taken, other}) {
        b.stand_in(c);
        const ValueId x = b.parameter("x", {}), y = b.parameter("y", {});
        b.results({use_data && c == other ? y : x});
      }
      b.stand_in(outside);
      return b.conditional(predicate, {one, data}, taken, other)[0];
    };
    const ValueId same = branch(one, false), mixed = branch(one, true), by_data = branch(data, false);
    const Redundancy found = analysed(b.take());
    QVERIFY(found.redundant(same));
    QVERIFY(!found.redundant(mixed));
    QVERIFY(!found.redundant(by_data));
  }

  void computations_with_two_callers_are_unknown() {
    Builder b(2);
    const ComputationId entry = b.standing_in(), shared = b.computation("shared");
    b.stand_in(shared);
    const ValueId x = b.parameter("x", {});
    b.results({x});
    b.stand_in(entry);
    const ValueId one = b.constant(1);
    const ValueId result = b.conditional(one, {one}, shared, shared)[0];
    const Redundancy found = analysed(b.take());
    QVERIFY(!found.redundant(result));
    QVERIFY(!found.redundant(x));
  }

  void one_replica_repeats_nothing_alone() {
    Builder b(1);
    const ValueId data = b.source(Kind::infeed, "data", {});
    QVERIFY(analysed(b.take()).redundant(data));
  }

  void random_programs_agree_with_what_replicas_compute() {
    int redundant = 0, partly = 0, apart = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      const Program program = test::RandomProgram(seed).make();
      const Redundancy found = analysed(program);
      test::Interpreter interpreter(program);
      QString wrong;
      interpreter.observe([&](ValueId id, const std::vector<bool>& active, const test::OnReplicas& values) {
        const auto count = static_cast<int>(active.size());
        for (int r = 0; r < count; ++r)
          for (int s = 0; s < r && wrong.isEmpty(); ++s) {
            if (!found.same(id, r, s)) continue;
            const auto a = static_cast<std::size_t>(r), c = static_cast<std::size_t>(s);
            const bool equal = active[a] == active[c] && (!active[a] || values[a] == values[c]);
            if (!equal) wrong = QString("seed %1, value %2, replicas %3 and %4").arg(seed).arg(id.index).arg(r).arg(s);
          }
        redundant += found.redundant(id), partly += found.partly(id);
        apart += !found.redundant(id) && !found.partly(id);
      });
      interpreter.run();
      QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
    }
    // The comparison says something only where all three are frequent.
    QVERIFY2(redundant > 1000 && partly > 200 && apart > 1000,
             qPrintable(QString("%1 %2 %3").arg(redundant).arg(partly).arg(apart)));
  }

  void bad_programs_are_errors() {
    const auto message = [](const Program& program) {
      const auto result = analyse_redundancy(program);
      return result ? QString() : QString::fromStdString(result.error().message());
    };
    Builder groups(4);
    groups.all_reduce(groups.constant(1, {2}), {{0, 1}, {2}});
    QVERIFY(message(groups.take()).contains("groups of different sizes"));
    Builder missing(4);
    missing.all_reduce(missing.constant(1, {2}), {{0, 1}});
    QVERIFY(message(missing.take()).contains("leaves replicas out"));
    QVERIFY(!row_groups(10, 4));
    QCOMPARE(QString::fromStdString(row_groups(10, 4).error().message()), "a group of 4 does not divide 10 replicas");
    Builder uneven(4);
    uneven.collective(Kind::reduce_scatter, uneven.constant(1, {6}), {}, {2});
    QVERIFY(message(uneven.take()).contains("does not divide 6 elements among 4 members"));
    Builder negative(2);
    negative.constant(1, {3, -2});
    QVERIFY(message(negative.take()).contains("a dimension of size -2"));

    Builder cycle(2);
    const ValueId a = cycle.constant(1), c = cycle.apply(Function::negate, {a}), d = cycle.apply(Function::add, {c, a});
    Program program = cycle.take();
    program.instructions[program.values[c].producer].inputs[0] = d;
    QVERIFY(message(program).contains("a cycle"));
    Builder recursive(2);
    const ComputationId entry = recursive.standing_in();
    const ValueId one = recursive.constant(1);
    recursive.conditional(one, {}, entry, entry);
    QVERIFY(message(recursive.take()).contains("calls itself"));
  }
};

QTEST_APPLESS_MAIN(RedundancyTest)
#include "redundancy_test.moc"
