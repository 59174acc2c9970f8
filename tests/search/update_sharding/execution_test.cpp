// SPDX-License-Identifier: Apache-2.0
// Programs with sharded updates are carried out beside the programs that they are made of (W6).
#include <QtTest>
#include <cmath>

#include "core/search/update_sharding/rewrite.h"
#include "search/update_sharding/interpreter.h"
#include "search/update_sharding/loops.h"

using namespace turnpoint;
using namespace turnpoint::update_sharding;

namespace {

DecisionOptions options(ShardLayout layout = ShardLayout::flat) {
  DecisionOptions o;
  o.layout = layout;
  o.memory_bandwidth = 800e9;
  o.price = *ring_price(100e9, 5e-6);
  return o;
}

struct Both {
  Program program, sharded;
  std::vector<UpdateCluster> clusters;
  UpdateChoice choice;
};

Both sharded(const test::LoopCase& c, Variant variant, const ShardGroups& groups,
             const DecisionOptions& o = options()) {
  Both both;
  both.program = test::loop_of(c);
  const auto clusters = find_clusters(both.program);
  if (!clusters || clusters->size() != 1) qFatal("no cluster");
  both.clusters = *clusters;
  const auto choice = price_choice(both.program, both.clusters, 0, variant, groups, o);
  if (!choice) qFatal("%s", choice.error().message().c_str());
  both.choice = *choice;
  const auto program = shard_updates(both.program, both.clusters, {both.choice});
  if (!program) qFatal("%s", program.error().message().c_str());
  both.sharded = *program;
  return both;
}

int count(const Program& program, Kind kind) {
  int found = 0;
  for (const Instruction& i : program.instructions) found += i.kind == kind;
  return found;
}

/// The largest difference of what two programs hand to the host, as a share of the larger number; -1 where they hand
/// over different things.
double difference(const Program& a, const Program& b) {
  // Of statistics that are sums of squares.
  std::map<std::string, test::Elements> start;
  for (const ValueId parameter : a.computations[a.entry].parameters)
    if (const Instruction& i = a.producer(parameter); i.role == update_sharding::ParameterRole::auxiliary)
      for (std::int64_t e = 0; e < a.values[parameter].elements(); ++e)
        start[i.name].push_back(test::rounded(1.5 + test::number_of(i.name, static_cast<std::uint64_t>(e), 3), 4));
  const auto first = test::Interpreter(a, start).run(), second = test::Interpreter(b, start).run();
  if (first.size() != second.size() || first.empty()) return -1;
  double most = 0;
  for (std::size_t o = 0; o < first.size(); ++o) {
    if (first[o].name != second[o].name || first[o].values.size() != second[o].values.size()) return -1;
    for (std::size_t k = 0; k < first[o].values.size(); ++k)
      for (std::size_t r = 0; r < first[o].values[k].size(); ++r) {
        const auto &x = first[o].values[k][r], &y = second[o].values[k][r];
        if (x.size() != y.size()) return -1;
        for (std::size_t e = 0; e < x.size(); ++e) {
          if (!std::isfinite(x[e]) || !std::isfinite(y[e])) return -1;
          const double scale = std::max({std::abs(x[e]), std::abs(y[e]), 1e-3});
          most = std::max(most, std::abs(x[e] - y[e]) / scale);
        }
      }
  }
  return most;
}

double difference_of(const Both& both) { return difference(both.program, both.sharded); }

const std::vector<ShardGroups> kWays{{ShardGroups::Way::all, 6, 6},
                                     {ShardGroups::Way::rows, 6, 2},
                                     {ShardGroups::Way::rows, 6, 3},
                                     {ShardGroups::Way::two_phase, 6, 3}};

}  // namespace

class UpdateExecutionTest : public QObject {
  Q_OBJECT

 private slots:
  void sharded_updates_are_the_replicated_ones_data() {
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<double>("within");
    // Elementwise: bit for bit. Norms are summed in another order.
    for (const auto o : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam})
      QTest::newRow(to_string(o)) << static_cast<int>(o) << 0.0;
    for (const auto o : {Optimizer::lars, Optimizer::lamb, Optimizer::adafactor})
      QTest::newRow(to_string(o)) << static_cast<int>(o) << 1e-6;
  }
  void sharded_updates_are_the_replicated_ones() {
    QFETCH(int, optimizer);
    QFETCH(double, within);
    test::LoopCase c;
    c.optimizer = static_cast<Optimizer>(optimizer);
    c.replicas = 6;
    c.checkpoint_every = 2;
    DecisionOptions o = options();
    o.half_products = false;  // so that the network reads the same weights
    for (const Shape& shape : {Shape{6, 4}, Shape{5, 7}, Shape{3, 3, 5}, Shape{2, 2}, Shape{11}})
      for (const auto layout : {ShardLayout::flat, ShardLayout::reshape_and_pad})
        for (const auto variant : {Variant::gathered_after, Variant::stays_sharded})
          for (const ShardGroups& groups : kWays) {
            c.shape = shape;
            o.layout = layout;
            const Both both = sharded(c, variant, groups, o);
            const double found = difference(both.program, both.sharded);
            const auto words = QString("%1, %2 by way %3: %4")
                                   .arg(both.choice.format.words().c_str(), to_string(variant))
                                   .arg(int(groups.way))
                                   .arg(found);
            QVERIFY2(found >= 0 && found <= within, qPrintable(words));
            QCOMPARE(count(both.sharded, Kind::reduce_scatter), 1);
          }
  }

  void weights_gathered_in_16_bits_are_rounded() {
    test::LoopCase c;
    const Both both = sharded(c, Variant::stays_sharded, {ShardGroups::Way::all, 4, 4});
    QCOMPARE(both.choice.gather_element_bytes, 2);
    const double found = difference(both.program, both.sharded);
    // Not the same, as the network reads rounded weights; the update itself works on all of their digits.
    QVERIFY2(found > 0 && found < 0.5, qPrintable(QString::number(found)));
  }

  void checkpoints_gather_in_their_branch() {
    test::LoopCase c;
    c.checkpoint_every = 2;
    const Both both = sharded(c, Variant::stays_sharded, {ShardGroups::Way::all, 4, 4});
    std::map<std::string, int> gathers;
    for (const Instruction& i : both.sharded.instructions)
      if (i.kind == Kind::all_gather) ++gathers[both.sharded.computations[i.computation].name];
    // In the step the weight for the product; in the branch weight and both moments; behind the loop the same.
    QCOMPARE(gathers, (std::map<std::string, int>{{"step", 1}, {"checkpoint", 3}, {"entry", 3}}));
    // What is carried is a shard.
    for (const Computation& computation : both.sharded.computations)
      if (computation.name == "step")
        for (std::size_t k = 1; k < 4; ++k)
          QCOMPARE(both.sharded.values[computation.parameters[k]].elements(), both.choice.format.shard_elements());
    const Both after = sharded(c, Variant::gathered_after, {ShardGroups::Way::all, 4, 4});
    gathers.clear();
    for (const Instruction& i : after.sharded.instructions)
      if (i.kind == Kind::all_gather) ++gathers[after.sharded.computations[i.computation].name];
    QCOMPARE(gathers, (std::map<std::string, int>{{"step", 1}, {"checkpoint", 2}, {"entry", 2}}));
  }

  void what_readers_force_is_gathered_once() {
    for (const bool gradient : {false, true}) {
      test::LoopCase c;
      c.auxiliaries_out = !gradient;
      c.gradient_out = gradient;
      const Both both = sharded(c, Variant::gathered_after, {ShardGroups::Way::all, 4, 4});
      QCOMPARE(difference(both.program, both.sharded), 0.0);
      int in_step = 0;
      for (const Instruction& i : both.sharded.instructions)
        in_step += i.kind == Kind::all_gather && both.sharded.computations[i.computation].name == "step";
      QCOMPARE(in_step, gradient ? 2 : 3);
    }
  }

  void what_a_cluster_carries_in_another_place_stays_sharded() {
    test::LoopCase c;
    c.optimizer = Optimizer::momentum;
    c.swapped = true;  // weight and auxiliary of one cluster
    DecisionOptions o = options();
    o.half_products = false;
    for (const auto variant : {Variant::gathered_after, Variant::stays_sharded})
      QCOMPARE(difference_of(sharded(c, variant, {ShardGroups::Way::all, 4, 4}, o)), 0.0);
  }

  void what_another_cluster_takes_is_gathered() {
    test::LoopCase c;
    c.weights = 2;
    c.swapped = true;  // the two weights
    const Program program = test::loop_of(c);
    const auto clusters = *find_clusters(program);
    QCOMPARE(clusters.size(), std::size_t(2));
    const ShardGroups all{ShardGroups::Way::all, 4, 4};
    QVERIFY(!price_choice(program, clusters, 0, Variant::stays_sharded, all, options()));
    std::vector<UpdateChoice> choices;
    for (const std::size_t w : {0, 1})
      choices.push_back(*price_choice(program, clusters, w, Variant::gathered_after, all, options()));
    QCOMPARE(choices[0].gathers_s, 0.0);  // the weight is gathered anyway
    const auto result = shard_updates(program, clusters, choices);
    if (!result) QFAIL(result.error().message().c_str());
    QCOMPARE(difference(program, *result), 0.0);
    // One of the two left whole: it reads what the other gathers.
    choices[0] = *price_choice(program, clusters, 0, Variant::replicated, all, options());
    QCOMPARE(difference(program, *shard_updates(program, clusters, choices)), 0.0);
    choices[1].variant = Variant::stays_sharded;
    QVERIFY(!shard_updates(program, clusters, choices));
  }

  void norms_travel_in_one_message_a_round() {
    for (const auto& [optimizer, sums, rounds] : {std::tuple{Optimizer::lars, 2, 1}, std::tuple{Optimizer::lamb, 2, 1},
                                                  std::tuple{Optimizer::adafactor, 3, 2}}) {
      test::LoopCase c;
      c.optimizer = optimizer;
      const Both both = sharded(c, Variant::gathered_after, {ShardGroups::Way::all, 4, 4});
      QCOMPARE(both.clusters[0].partial.size(), static_cast<std::size_t>(sums));
      QCOMPARE(both.clusters[0].round_elements.size(), static_cast<std::size_t>(rounds));
      QCOMPARE(count(both.sharded, Kind::all_reduce), sums);
      const Program combined = combine_small_sums(both.sharded, 6);
      if (const auto fine = check(combined); !fine) QFAIL(fine.error().message().c_str());
      QCOMPARE(count(combined, Kind::all_reduce), rounds);
      QCOMPARE(difference(both.sharded, combined), 0.0);
    }
  }

  void bad_choices_are_errors() {
    Both both = sharded({}, Variant::gathered_after, {ShardGroups::Way::all, 4, 4});
    QVERIFY(!shard_updates(both.program, both.clusters, {}));
    UpdateChoice wrong = both.choice;
    wrong.groups.row = 3;
    const auto result = shard_updates(both.program, both.clusters, {wrong});
    QVERIFY(!result);
    QCOMPARE(QString::fromStdString(result.error().message()), "a group of 3 does not divide 4 replicas");
    wrong.groups = {ShardGroups::Way::rows, 4, 2};
    QVERIFY(!shard_updates(both.program, both.clusters, {wrong}));
  }

  void left_whole_the_program_is_as_it_was() {
    test::LoopCase c;
    c.checkpoint_every = 2;
    const Both both = sharded(c, Variant::replicated, {ShardGroups::Way::whole, 4, 1});
    QCOMPARE(count(both.sharded, Kind::all_gather) + count(both.sharded, Kind::reduce_scatter), 0);
    QCOMPARE(both.sharded.instructions.size(), both.program.instructions.size());
    QCOMPARE(difference(both.program, both.sharded), 0.0);
  }
};

QTEST_APPLESS_MAIN(UpdateExecutionTest)
#include "execution_test.moc"
