// SPDX-License-Identifier: Apache-2.0
// Collectives of tensor groups beside products: what shows of them by hand, which of a plan they are, and that times of
// steps, of a pipeline and of its evaluation are made of just that.
#include "core/plan/beside_products.h"

#include <QtTest>
#include <map>

#include "core/cost/logical_dims.h"
#include "core/plan/evaluator.h"
#include "core/plan/reprice.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

Plan split(const std::string& words, const ScenarioPtr& scenario) {
  const auto result = run("manual:" + words, scenario);
  if (!result) qFatal("%s: %s", words.c_str(), result.error().message().c_str());
  return (*result)->plans->sharding(0);
}

ScenarioPtr llama(const char* hardware) {
  return scenario_on(builtin("llama-2-7b?layers=3&sequence=512", 8), hardware,
                     [](Settings& s) { s.precision = Precision::bf16; });
}

double forward_s(const Plan& plan, OperatorId op) {
  CostBreakdown cost = plan.operators[op.index].cost;
  return cost[ComputePart::forward];
}
double half_backward_s(const Plan& plan, OperatorId op) {
  CostBreakdown cost = plan.operators[op.index].cost;
  return cost[ComputePart::backward] / 2;
}

}  // namespace

class BesideProductsTest : public QObject {
  Q_OBJECT

 private slots:
  // Four devices: a product of 8 s in parts of 2 s. A gather of 3 s is over while three parts are multiplied; one of 10
  // s is followed by the last part. Each further part has a launch; what runs together is slowed.
  void shows_what_a_product_does_not_hide() {
    QVERIFY(close(shown_in_steps_s(3, 8, 4, {0, 1}), 0));
    QVERIFY(close(shown_in_steps_s(10, 8, 4, {0, 1}), 10 + 2 - 8));
    QVERIFY(close(shown_in_steps_s(6, 8, 4, {0, 1}), 0));  // as long as the three parts beside which it runs
    QVERIFY(close(shown_in_steps_s(3, 8, 4, {0.5, 1}), 1.5));
    QVERIFY(close(shown_in_steps_s(3, 8, 4, {0, 1.2}), 0.2 * 3));
    QVERIFY(close(shown_in_steps_s(10, 8, 4, {0, 1.2}), 4 + 0.2 * 6));
    QVERIFY(close(shown_beside_s(3, 8, {0, 1}), 0));
    QVERIFY(close(shown_beside_s(10, 8, {0, 1}), 2));
    QVERIFY(close(shown_beside_s(10, 8, {9, 1.2}), 2 + 0.2 * 8));  // one launch in any case
    QVERIFY(close(shown_beside_s(3, 8, {0, 1.2}), 0.2 * 3));
  }

  // Of each of three layers: the gathers in front of query, key and value together and in front of gate and up, again
  // in backward, the scatters behind the other two products, and the way back of each. The head's gather stays whole.
  void are_those_of_the_layers() {
    const auto scenario = llama("a100-80gb-1x4");
    const Plan plan = split("tp=4:sequence-parallel:micro-batches=2", scenario);
    const Model& model = *plan.pipeline->micro_batch;
    std::map<std::pair<ReshardRole, bool>, int> found;
    std::size_t most = 0;
    for (const BesideProducts& beside : beside_products(model, plan)) {
      const ReshardStep& step = plan.reshards[beside.reshard].steps(beside.role)[beside.step];
      QVERIFY(step.move == ReshardMove::all_gather || step.move == ReshardMove::reduce_scatter);
      QCOMPARE(plan.mesh.size_of(step.axes), 4);
      for (const OperatorId op : beside.products) QVERIFY(is_weighted_product(model, model.operators[op]));
      most = std::max(most, beside.products.size());
      ++found[{beside.role, step.move == ReshardMove::all_gather}];
      QCOMPARE(beside.in_steps, beside.role == ReshardRole::forward ||
                                    (beside.role == ReshardRole::gradient && step.move == ReshardMove::all_gather));
    }
    QCOMPARE(most, std::size_t(3));
    QCOMPARE((found[{ReshardRole::forward, true}]), 6);
    QCOMPARE((found[{ReshardRole::forward, false}]), 6);
    QCOMPARE((found[{ReshardRole::repeated, true}]), 6);
    QCOMPARE((found[{ReshardRole::gradient, false}]), 6);
    QCOMPARE((found[{ReshardRole::gradient, true}]), 6);
    QCOMPARE(found.size(), std::size_t(5));
    // Without sequence parallelism tensor groups sum whole results: nothing of it is cut.
    QVERIFY(beside_products(model, split("tp=4:micro-batches=2", scenario)).empty());
  }

  // Whole times of the same split without the switch, by the formulas.
  void steps_take_what_shows() {
    for (const char* hardware : {"a100-80gb-1x4", "b200-180gb-1x8"}) {
      const auto scenario = llama(hardware);
      const std::string words = "tp=4:sequence-parallel:micro-batches=2";
      const Plan whole = split(words, scenario), plan = split(words + ":tp-comm-overlap", scenario);
      QVERIFY(plan.pipeline->beside_products && !whole.pipeline->beside_products);
      const double launch = scenario->cluster->device.product_launch(), slow = scenario->cluster->overlap_slowdown;
      QVERIFY(launch > 0 && slow > 1);
      double less = 0;
      for (const BesideProducts& beside : beside_products(*plan.pipeline->micro_batch, plan)) {
        const double before = whole.reshards[beside.reshard].steps(beside.role)[beside.step].time_s,
                     after = plan.reshards[beside.reshard].steps(beside.role)[beside.step].time_s;
        double product = 0;
        for (const OperatorId op : beside.products)
          product += beside.role == ReshardRole::forward ? forward_s(plan, op) : half_backward_s(plan, op);
        double wanted = 0;
        if (beside.in_steps) {
          const double cut = product + 3 * launch;
          wanted = std::max(cut, before + cut / 4) + (slow - 1) * std::min(before, cut * 3 / 4) - product;
        } else {
          wanted = std::max(product, before) + (slow - 1) * std::min(before, product) - product;
        }
        QVERIFY2(close(after, wanted), qPrintable(QString("%1 %2 of %3").arg(after).arg(wanted).arg(before)));
        less += before - after;
      }
      QVERIFY(less > 0);
      QVERIFY(close(whole.cost.time_s() - plan.cost.time_s(), 2 * less));  // of two micro-batches
      const auto evaluated = evaluate_plan(*scenario, plan);
      QVERIFY(evaluated.has_value());
      QVERIFY(close(evaluated->time_s(), plan.cost.time_s()));
      const auto again = repriced(*scenario, plan);
      QVERIFY(again.has_value());
      for (std::size_t r = 0; r < plan.reshards.size(); ++r)
        QVERIFY(close(again->reshards[r].time_s(), plan.reshards[r].time_s()));
    }
  }

  // Engines scatter what is to be split, whatever a library's all-reduce would take.
  void tensor_groups_scatter() {
    const auto scenario = llama("b200-180gb-1x8");
    int scatters = 0;
    for (const PlanReshard& reshard : split("tp=8:dp=1:sequence-parallel:micro-batches=2", scenario).reshards)
      for (const ReshardRole role : kReshardRoles)
        for (const ReshardStep& step : reshard.steps(role)) {
          QVERIFY(step.move != ReshardMove::all_reduce);
          scatters += step.move == ReshardMove::reduce_scatter;
        }
    QVERIFY(scatters >= 12);
  }
};

QTEST_APPLESS_MAIN(BesideProductsTest)
#include "beside_products_test.moc"
