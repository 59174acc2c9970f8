// SPDX-License-Identifier: Apache-2.0
// Clusters of small loops, and what is decided for them: W2, the least time over all groups, and reasons in figures.
#include <QtTest>
#include <cmath>

#include "core/search/update_sharding/decision.h"
#include "core/search/update_sharding/induction.h"
#include "search/update_sharding/loops.h"

using namespace turnpoint;
using namespace turnpoint::update_sharding;

namespace {

const ShardGroups kAll{ShardGroups::Way::all, 8, 8};

/// 1e8 parameters on 8 replicas, as the worked examples have them.
test::LoopCase large(Optimizer optimizer = Optimizer::adam) {
  test::LoopCase c;
  c.shape = {10000, 10000};
  c.optimizer = optimizer;
  c.replicas = 8;
  return c;
}

DecisionOptions worked_options() {
  DecisionOptions o;
  o.memory_bandwidth = 800e9;
  o.price = *ring_price(100e9, 5e-6);
  o.groups = {kAll};
  return o;
}

UpdateDecisions decided(const Program& program, const DecisionOptions& options) {
  const auto result = decide_updates(program, options);
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

UpdateCluster cluster_of(const test::LoopCase& c) {
  const auto clusters = find_clusters(test::loop_of(c));
  if (!clusters || clusters->size() != 1) qFatal("not one cluster");
  return clusters->front();
}

void near(double found, double wanted) {
  if (std::abs(found - wanted) > 1e-9 * std::abs(wanted))
    QFAIL(qPrintable(QString("%1 instead of %2").arg(found, 0, 'g', 12).arg(wanted, 0, 'g', 12)));
}

}  // namespace

class UpdateDecisionTest : public QObject {
  Q_OBJECT

 private slots:
  void clusters_hold_what_the_update_reads_and_writes() {
    const double p = 4e8;
    const std::pair<Optimizer, double> bytes[] = {{Optimizer::sgd, 3 * p},  {Optimizer::momentum, 5 * p},
                                                  {Optimizer::adam, 7 * p}, {Optimizer::lars, 5 * p},
                                                  {Optimizer::lamb, 7 * p}, {Optimizer::adafactor, 3 * p}};
    for (const auto& [optimizer, moved] : bytes) {
      const UpdateCluster cluster = cluster_of(large(optimizer));
      QCOMPARE(cluster.input_bytes + cluster.output_bytes, moved);
      QCOMPARE(cluster.gradient_bytes, p);
      QCOMPARE(cluster.shape, (std::vector<std::int64_t>{10000, 10000}));
      for (const CarriedPair& pair : cluster.pairs) QVERIFY(pair.stays);
      QCOMPARE(cluster.pairs[0].name, std::string("w"));
      QCOMPARE(cluster.keeps_dimensions, optimizer == Optimizer::adafactor);
      // Forward alone needs anything whole.
      QCOMPARE(cluster.gathers.size(), std::size_t(1));
      QVERIFY(cluster.gathers[0].product && cluster.gathers[0].of_weight);
      QCOMPARE(cluster.gathers[0].why, GatherReason::not_redundant);
    }
  }

  void a_grouped_sum_makes_no_cluster() {
    Program program = test::loop_of({});
    for (Instruction& i : program.instructions)
      if (i.kind == Kind::all_reduce) i.groups = *row_groups(4, 2);
    QCOMPARE(find_clusters(program)->size(), std::size_t(0));
    for (Instruction& i : program.instructions)
      if (i.kind == Kind::all_reduce) i.groups = *row_groups(4, 4);
    QCOMPARE(find_clusters(program)->size(), std::size_t(1));
  }

  void w1_by_programs() {
    struct Case {
      Optimizer optimizer;
      double replicated, a, b;
    };
    for (const Case& c : {Case{Optimizer::adam, 10.570, 7.5075, 5.7575}, Case{Optimizer::sgd, 8.570, 7.2575, 5.5075},
                          Case{Optimizer::momentum, 9.570, 7.3825, 5.6325}}) {
      DecisionOptions o = worked_options();
      const UpdateDecisions half = decided(test::loop_of(large(c.optimizer)), o);
      QCOMPARE(half.weights[0].chosen.variant, Variant::stays_sharded);
      QCOMPARE(half.weights[0].chosen.gather_element_bytes, 2);
      near(half.replicated_s, c.replicated / 1e3);
      near(half.chosen_s, c.b / 1e3);
      o.half_products = false;
      const UpdateDecisions full = decided(test::loop_of(large(c.optimizer)), o);
      QCOMPARE(full.weights[0].chosen.variant, Variant::gathered_after);
      near(full.chosen_s, c.a / 1e3);
    }
    // Besides what momentum takes: two norms, as one message over all.
    DecisionOptions o = worked_options();
    const UpdateDecisions lars = decided(test::loop_of(large(Optimizer::lars)), o);
    near(lars.chosen_s, 5.6325e-3 + 14 * (5e-6 + 8 / 8 / 100e9));
    QCOMPARE(lars.sum_elements, 2.0);
    QCOMPARE(lars.sum_messages, 1);
  }

  void w2_profitability() {
    DecisionOptions o = worked_options();
    o.half_products = false;
    test::LoopCase c = large();
    const UpdateDecisions kept = decided(test::loop_of(c), o);
    near(kept.replicated_s - kept.chosen_s, 3.0625e-3);
    c.auxiliaries_out = true;
    const Program program = test::loop_of(c);
    const UpdateDecisions forced = decided(program, o);
    QVERIFY(!forced.weights[0].chosen.sharded());
    QCOMPARE(forced.chosen_s, forced.replicated_s);
    const auto rejected = price_choice(program, forced.clusters, 0, Variant::gathered_after, kAll, o);
    near(rejected->gathers_s, 7.07e-3);
    near(rejected->total(), 14.5775e-3);
    // Once in a hundred steps it pays again.
    c.auxiliaries_out = false;
    c.checkpoint_every = 100;
    const UpdateDecisions seldom = decided(test::loop_of(c), o);
    QVERIFY(seldom.weights[0].chosen.sharded());
    near(seldom.weights[0].chosen.gathers_s, 7.07e-5);
    c.checkpoint_every = 2;
    QVERIFY(!decided(test::loop_of(c), o).weights[0].chosen.sharded());  // 3.535 ms at every step
  }

  void readers_in_full_precision_are_obeyed() {
    test::LoopCase c = large();
    c.read_by_gather = true;
    const UpdateDecisions result = decided(test::loop_of(c), worked_options());
    QCOMPARE(result.weights[0].chosen.gather_element_bytes, 4);
    QCOMPARE(result.weights[0].chosen.variant, Variant::gathered_after);
    near(result.chosen_s, 7.5075e-3);
    QVERIFY2(result.weights[0].reason.find("'lookup' reads it in full precision") != std::string::npos,
             result.weights[0].reason.c_str());
  }

  void the_least_time_over_all_groups() {
    for (const int replicas : {6, 8, 64})
      for (const auto layout : {ShardLayout::flat, ShardLayout::reshape_and_pad})
        for (const Shape& shape : {Shape{3, 3, 256, 256}, Shape{1000}, Shape{4096, 4096}, Shape{30}}) {
          test::LoopCase c;
          c.shape = shape;
          c.replicas = replicas;
          c.optimizer = Optimizer::lamb;
          const Program program = test::loop_of(c);
          DecisionOptions o = worked_options();
          o.groups.clear();
          o.layout = layout;
          const UpdateDecisions result = decided(program, o);
          double least =
              price_choice(program, result.clusters, 0, Variant::replicated, {ShardGroups::Way::whole, replicas, 1}, o)
                  ->total();
          for (int row = 2; row < replicas; ++row)
            if (replicas % row == 0)
              least = std::min(least, price_choice(program, result.clusters, 0, Variant::replicated,
                                                   {ShardGroups::Way::whole, replicas, row}, o)
                                          ->total());
          near(result.replicated_s, least);
          const std::vector<ShardGroups> ways = *shard_groups(replicas);
          for (const ShardGroups& groups : ways)
            for (const auto variant : {Variant::gathered_after, Variant::stays_sharded})
              least = std::min(least, price_choice(program, result.clusters, 0, variant, groups, o)->total());
          near(result.chosen_s, least);
        }
  }

  void padding_can_cost_more_than_sharing_saves() {
    test::LoopCase c = large();
    c.shape = {2};  // two elements among eight replicas: three quarters of what travels is padding
    const UpdateDecisions small = decided(test::loop_of(c), worked_options());
    QVERIFY(!small.weights[0].chosen.sharded() && small.weights[0].rejected);
    QCOMPARE(small.weights[0].rejected->format.padding(), 3.0);
    QVERIFY2(small.weights[0].reason.find("300.0 % padding") != std::string::npos, small.weights[0].reason.c_str());
    c.shape = {16};
    QVERIFY(decided(test::loop_of(c), worked_options()).weights[0].chosen.sharded());
  }

  void faster_memory_and_links_are_never_slower() {
    test::LoopCase c = large(Optimizer::lamb);
    c.checkpoint_every = 10;
    c.shape = {3, 3, 256, 256};
    c.replicas = 12;
    const Program program = test::loop_of(c);
    DecisionOptions o = worked_options();
    o.groups.clear();
    o.bucket_bytes = 25e6;
    for (const bool memory : {false, true}) {
      double last = 1e9;
      for (double speed = 1e8; speed < 1e13; speed *= 3) {
        if (memory)
          o.memory_bandwidth = speed;
        else
          o.price = *ring_price(speed, 5e-6);
        const double now = decided(program, o).chosen_s;
        QVERIFY(now <= last);
        last = now;
      }
    }
  }

  void one_replica_changes_nothing() {
    test::LoopCase c = large(Optimizer::lamb);
    c.replicas = 1;
    DecisionOptions o = worked_options();
    o.groups.clear();
    const UpdateDecisions result = decided(test::loop_of(c), o);
    QCOMPARE(result.clusters.size(), std::size_t(1));
    QCOMPARE(result.chosen_s, result.replicated_s);
    near(result.chosen_s, 3.5e-3);
    QCOMPARE(result.memory(1e9).peak(), 1e9 + 12e8);
    QCOMPARE(result.weights[0].reason, std::string("left whole: one replica holds it all"));
  }

  void memory_inside_and_outside_the_loop() {
    DecisionOptions o = worked_options();
    const UpdateDecisions b = decided(test::loop_of(large()), o);
    near(b.inside_bytes, 2e8 + 12e8 / 8);
    near(b.outside_bytes, 12e8);
    o.sharded_checkpoints = true;
    near(decided(test::loop_of(large()), o).outside_bytes, 12e8 / 8);
    o.half_products = o.sharded_checkpoints = false;
    const UpdateDecisions a = decided(test::loop_of(large()), o);
    near(a.memory(1e9).peak(), 1.5e9);
    near(a.memory(.2e9).peak(), 1.2e9);
    near(decided(test::loop_of(large(Optimizer::momentum)), o).memory(1e9).peak(), 1.45e9);
  }

  void reasons_have_their_figures() {
    const auto reason = [](const test::LoopCase& c, const DecisionOptions& o) {
      return QString::fromStdString(decided(test::loop_of(c), o).weights[0].reason);
    };
    DecisionOptions o = worked_options();
    QCOMPARE(
        reason(large(), o),
        "sharded over 8: the update falls from 3.50 ms to 438 \u00b5s, and the weight is gathered for 1.79 ms in bf16 "
        "before forward, where only products read it; a step takes 5.76 ms for it instead of 10.6 ms");
    o.half_products = false;
    QCOMPARE(
        reason(large(), o),
        "sharded over 8: the update falls from 3.50 ms to 438 \u00b5s, and the new weight is gathered for 3.54 ms in "
        "fp32; a step takes 7.51 ms for it instead of 10.6 ms");
    test::LoopCase c = large();
    c.auxiliaries_out = true;
    QCOMPARE(
        reason(c, o),
        "left whole: a step takes 10.6 ms for it, and sharded over 8 at best 14.6 ms, though the update would fall "
        "from 3.50 ms to 438 \u00b5s: 'w/0' would be gathered at every step for 3.54 ms, because 'statistics' hands it "
        "to the host");
  }

  void branches_are_taken_as_often_as_their_predicates_say() {
    for (const auto& [every, wanted] : {std::pair{1, 1.0}, std::pair{4, 0.25}, std::pair{100, 0.01}}) {
      test::LoopCase c;
      c.checkpoint_every = every;
      const Program program = test::loop_of(c);
      const auto frequencies = run_frequencies(program);
      int found = 0;
      for (std::size_t k = 0; k < program.computations.size(); ++k) {
        const std::string& name = program.computations[ComputationId(k)].name;
        const RunFrequency& frequency = frequencies[ComputationId(k)];
        if (name == "checkpoint") {
          QCOMPARE(frequency.times, wanted);
          ++found;
        } else if (name == "none") {
          QCOMPARE(frequency.times + wanted, 1.0);
          ++found;
        } else if (name == "step") {
          QVERIFY(frequency.times == 1 && !frequency.branch);
          ++found;
        }
      }
      QCOMPARE(found, 3);
    }
    // By the shape of the predicate: the counter grows by 2, from 1, and never is a multiple of 4; of 3 in a third.
    const auto times = [](double start, double by, double modulus, bool of_data) {
      Builder b(2);
      const ValueId first = b.constant(start);
      const ComputationId entry = b.standing_in(), body = b.computation("body"), more = b.computation("more"),
                          taken = b.computation("taken"), otherwise = b.computation("otherwise");
      b.stand_in(more);
      b.results({b.apply(Function::less, {b.parameter("i", {}), b.constant(99)})});
      b.stand_in(body);
      const ValueId i = b.parameter("i", {});
      const ValueId data = b.source(Kind::infeed, "data", {});
      const ValueId rest = b.apply(Function::modulo, {of_data ? data : i, b.constant(modulus)});
      b.conditional(b.apply(Function::equal, {b.constant(0), rest}), {}, taken, otherwise);
      b.results({b.apply(Function::add, {b.constant(by), i})});
      b.stand_in(entry);
      b.loop({first}, body, more);
      return run_frequencies(b.take())[taken].times;
    };
    QCOMPARE(times(0, 1, 5, false), 0.2);
    QCOMPARE(times(1, 2, 4, false), 0.0);
    QCOMPARE(times(0, 2, 4, false), 0.5);
    QCOMPARE(times(1, 2, 3, false), 1 / 3.0);
    QCOMPARE(times(0, 0, 3, false), 1.0);
    QCOMPARE(times(0, 1, 3, true), 1.0);
  }

  void bad_options_are_errors() {
    const Program program = test::loop_of({});
    const auto message = [&](auto change) {
      DecisionOptions o = worked_options();
      o.groups.clear();
      change(o);
      const auto result = decide_updates(program, o);
      return result ? QString() : QString::fromStdString(result.error().message());
    };
    QCOMPARE(message([](DecisionOptions&) {}), QString());
    QCOMPARE(message([](DecisionOptions& o) {
               o.groups = {{ShardGroups::Way::rows, 4, 3}};
             }),
             "a group of 3 does not divide 4 replicas");
    QVERIFY(message([](DecisionOptions& o) { o.groups = {kAll}; }).contains("does not divide 4 replicas"));
    QCOMPARE(message([](DecisionOptions& o) { o.memory_bandwidth = 0; }), "a memory of 0 bytes/s updates nothing");
    QCOMPARE(message([](DecisionOptions& o) { o.price = nullptr; }), "collectives have no price");
    QCOMPARE(message([](DecisionOptions& o) { o.bucket_bytes = -1; }), "a bucket of -1 bytes holds nothing");
  }
};

QTEST_APPLESS_MAIN(UpdateDecisionTest)
#include "decision_test.moc"
