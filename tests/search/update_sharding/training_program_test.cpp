// SPDX-License-Identifier: Apache-2.0
// Training programs of networks: what their clusters are, and that sharded as decided they compute the same.
#include <QtTest>

#include "core/search/update_sharding/rewrite.h"
#include "core/search/update_sharding/training_program.h"
#include "search/small_models.h"
#include "search/update_sharding/interpreter.h"

using namespace turnpoint;
using namespace turnpoint::update_sharding;

namespace {

Program program_of(const ModelPtr& model, Optimizer optimizer, const TrainingLoop& loop, int replicas) {
  const auto program = training_program_of(*model, optimizer, loop, replicas);
  if (!program) qFatal("%s", program.error().message().c_str());
  return *program;
}

/// Links so fast that whatever can be sharded is.
DecisionOptions eager_options(int replicas) {
  DecisionOptions o;
  o.memory_bandwidth = 1e9;
  o.price = *ring_price(1e13, 1e-12);
  o.groups = {{ShardGroups::Way::all, replicas, replicas}};
  return o;
}

std::size_t trained(const Model& model) {
  std::size_t count = 0;
  for (const Tensor& tensor : model.tensors)
    count += tensor.role == TensorRole::parameter && tensor.requires_gradient && !tensor.tied_to.valid();
  return count;
}

const WeightDecision& of_weight(const UpdateDecisions& decisions, const std::string& name) {
  for (const WeightDecision& weight : decisions.weights)
    if (weight.weight == name) return weight;
  qFatal("no weight %s", name.c_str());
}

}  // namespace

class TrainingProgramTest : public QObject {
  Q_OBJECT

 private slots:
  void every_weight_is_a_cluster() {
    for (const ModelPtr& model : {test::mlp(), test::residual(), test::attention()})
      for (const auto optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::lars,
                                   Optimizer::lamb, Optimizer::adafactor}) {
        const Program program = program_of(model, optimizer, {1000, 100, 10, 50}, 4);
        const auto clusters = find_clusters(program);
        if (!clusters) QFAIL(clusters.error().message().c_str());
        QCOMPARE(clusters->size(), trained(*model));
        const Redundancy redundancy = *analyse_redundancy(program);
        for (const UpdateCluster& cluster : *clusters) {
          for (const CarriedPair& pair : cluster.pairs)
            QVERIFY(pair.stays && redundancy.redundant(pair.before) && redundancy.redundant(pair.after));
          // What is summed was each replica's own.
          for (const ValueId local : program.instructions[cluster.reduction].inputs)
            QVERIFY(!redundancy.redundant(local));
          double checkpoint = 0, summary = 0, evaluation = 0;
          for (const ForcedGather& gather : cluster.gathers) {
            if (!gather.branch.valid()) continue;
            const std::string& name = program.computations[gather.branch].name;
            (name == "checkpoint" ? checkpoint : name == "summary" ? summary : evaluation) = gather.frequency;
          }
          QCOMPARE(checkpoint, 0.01);
          QCOMPARE(summary, 0.1);
          QCOMPARE(evaluation, 0.02);
        }
      }
  }

  void who_reads_weights_decides_their_precision() {
    const ModelPtr model = test::attention();
    const Program program = program_of(model, Optimizer::adam, {1000, 0, 0, 0}, 4);
    const auto decisions = decide_updates(program, eager_options(4));
    if (!decisions) QFAIL(decisions.error().message().c_str());
    // Products alone read wq; the embedding looks rows of its table up, and a normalisation multiplies by its scale.
    QCOMPARE(of_weight(*decisions, "wq").chosen.gather_element_bytes, 2);
    QCOMPARE(of_weight(*decisions, "wq").chosen.variant, Variant::stays_sharded);
    for (const char* name : {"table", "g", "h"}) QCOMPARE(of_weight(*decisions, name).chosen.gather_element_bytes, 4);
  }

  void sharded_as_decided_it_computes_the_same() {
    for (const ModelPtr& model : {test::mlp(4), test::attention(2, 4)})
      for (const auto optimizer : {Optimizer::momentum, Optimizer::adam, Optimizer::lamb}) {
        // Norms are summed in another order, and a network of sines makes much of little: one step where there are any.
        const bool norms = optimizer == Optimizer::lamb;
        const Program program =
            program_of(model, optimizer, norms ? TrainingLoop{1, 1, 1, 1} : TrainingLoop{3, 3, 2, 1}, 3);
        DecisionOptions o = eager_options(3);
        o.half_products = false;
        const auto decisions = decide_updates(program, o);
        if (!decisions) QFAIL(decisions.error().message().c_str());
        std::vector<UpdateChoice> choices;
        std::size_t sharded = 0;
        for (const WeightDecision& weight : decisions->weights) {
          choices.push_back(weight.chosen);
          sharded += weight.chosen.sharded();
        }
        QCOMPARE(sharded, choices.size());
        const auto rewritten = shard_updates(program, decisions->clusters, choices);
        if (!rewritten) QFAIL(rewritten.error().message().c_str());
        const Program combined = combine_small_sums(*rewritten, 1);
        std::size_t scatters = 0, sums = 0;
        for (const Instruction& i : combined.instructions)
          scatters += i.kind == Kind::reduce_scatter, sums += i.kind == Kind::all_reduce;
        QCOMPARE(scatters, choices.size());
        QCOMPARE(static_cast<int>(sums), decisions->sum_messages);
        QCOMPARE(sums, std::size_t(norms ? 1 : 0));

        std::map<std::string, test::Elements> start;
        for (const ValueId parameter : program.computations[program.entry].parameters)
          if (const Instruction& i = program.producer(parameter); i.role == update_sharding::ParameterRole::auxiliary)
            start[i.name].assign(static_cast<std::size_t>(program.values[parameter].elements()), 0.5);
        const auto a = test::Interpreter(program, start).run(), b = test::Interpreter(combined, start).run();
        QCOMPARE(a.size(), b.size());
        // Evaluations, checkpoints and summaries in their steps, and the last checkpoint.
        QCOMPARE(a.size(), std::size_t(norms ? 4 : 6));
        for (std::size_t k = 0; k < a.size(); ++k) {
          QCOMPARE(a[k].name, b[k].name);
          if (!norms) QVERIFY2(a[k].values == b[k].values, a[k].name.c_str());
        }
        for (std::size_t v = 0; v < a.back().values.size(); ++v)
          for (std::size_t e = 0; e < a.back().values[v][0].size(); ++e) {
            const double x = a.back().values[v][0][e], y = b.back().values[v][0][e];
            QVERIFY(std::isfinite(x) && std::abs(x - y) <= 1e-6 * std::max(1.0, std::abs(x)));
          }
      }
  }

  void precision_is_counted_and_copies_are_gathered() {
    const ModelPtr model = test::attention(2, 4);
    TrainingPrecision precision{2, 2, 2};
    const auto program = training_program_of(*model, Optimizer::adam, {4, 4, 0, 4}, 3, precision);
    if (!program) QFAIL(program.error().message().c_str());
    const auto decisions = decide_updates(*program, eager_options(3));
    std::vector<UpdateChoice> choices;
    for (std::size_t c = 0; c < decisions->clusters.size(); ++c) {
      const UpdateCluster& cluster = decisions->clusters[c];
      const auto elements = static_cast<double>(cluster.elements());
      QCOMPARE(cluster.gradient_bytes, 2 * elements);
      // Gradient 2, weight 4, moments 2 and 2; written weight 4, moments 2 and 2, and the copy 2.
      QCOMPARE(cluster.input_bytes, 10 * elements);
      QCOMPARE(cluster.output_bytes, 10 * elements);
      choices.push_back(decisions->weights[c].chosen);
      QCOMPARE(choices.back().variant, Variant::stays_sharded);
      QCOMPARE(choices.back().gather_element_bytes, 2);  // whoever reads it
      const QString reason = QString::fromStdString(decisions->weights[c].reason);
      QVERIFY2(reason.contains(" in bf16 before forward, as it is read;"), qPrintable(reason));
    }
    const auto rewritten = shard_updates(*program, decisions->clusters, choices);
    if (!rewritten) QFAIL(rewritten.error().message().c_str());
    std::map<std::string, test::Elements> start;
    for (const ValueId parameter : program->computations[program->entry].parameters)
      if (const Instruction& i = program->producer(parameter); i.role == update_sharding::ParameterRole::auxiliary)
        start[i.name].assign(static_cast<std::size_t>(program->values[parameter].elements()), 0.5);
    const auto a = test::Interpreter(*program, start).run(), b = test::Interpreter(*rewritten, start).run();
    QCOMPARE(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) QVERIFY2(a[k].values == b[k].values, a[k].name.c_str());
    // Whole weights, of which each replica makes its copy.
    DecisionOptions o = eager_options(3);
    for (std::size_t c = 0; c < choices.size(); ++c)
      choices[c] = *price_choice(*program, decisions->clusters, c, Variant::gathered_after, o.groups.front(), o);
    for (const GatherCost& cost : choices[0].gathers) QVERIFY(cost.in_branch);  // moments for checkpoints
    const auto whole = shard_updates(*program, decisions->clusters, choices);
    const auto d = test::Interpreter(*whole, start).run();
    for (std::size_t k = 0; k < a.size(); ++k) QVERIFY2(a[k].values == d[k].values, a[k].name.c_str());
    precision.gradients = 3;
    QVERIFY(!training_program_of(*model, Optimizer::adam, {}, 3, precision));
  }

  void messages_hold_weights_sharded_alike() {
    const Program program = program_of(test::attention(), Optimizer::adam, {}, 4);
    DecisionOptions o = eager_options(4);
    const auto decisions = decide_updates(program, o);
    std::vector<std::size_t> seen;
    for (const auto& message : messages_of(*decisions, 10000)) {
      double bytes = 0;
      for (const std::size_t w : message) {
        seen.push_back(w);
        bytes += 4 * static_cast<double>(decisions->weights[w].chosen.format.padded_elements());
      }
      QVERIFY(bytes <= 10000 || message.size() == 1);
    }
    std::sort(seen.begin(), seen.end());
    QCOMPARE(seen.size(), decisions->weights.size());
    for (std::size_t w = 0; w < seen.size(); ++w) QCOMPARE(seen[w], w);
    QCOMPARE(messages_of(*decisions, 1e12).size(), std::size_t(1));
  }

  void bad_loops_are_errors() {
    const ModelPtr model = test::mlp();
    QVERIFY(!training_program_of(*model, Optimizer::sgd, {}, 0));
    QVERIFY(!training_program_of(*model, Optimizer::sgd, {0, 0, 0, 0}, 2));
    QVERIFY(!training_program_of(*model, Optimizer::sgd, {10, -1, 0, 0}, 2));
    QCOMPARE(QString::fromStdString(training_program_of(*model, Optimizer::sgd, {}, -3).error().message()),
             "a training program needs 1 replica or more, not -3");
  }
};

QTEST_APPLESS_MAIN(TrainingProgramTest)
#include "training_program_test.moc"
