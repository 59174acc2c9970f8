// SPDX-License-Identifier: Apache-2.0
// Layers by their names, and how changes are told; that parts add up is checked where there are plans to compare
// (tests/search/forced_test.cpp).
#include "core/plan/plan_difference.h"

#include <QtTest>

using namespace turnpoint;

namespace {

std::string layer(const char* name, const char* scope = "") {
  Operator op;
  op.name = name;
  op.scope = scope;
  return layer_name(op);
}

}  // namespace

class PlanDifferenceTest : public QObject {
  Q_OBJECT

 private slots:
  void layers() {
    QCOMPARE(layer("layer3/mlp/up", "layer3/mlp"), std::string("layer3"));
    QCOMPARE(layer("model.layers.3.mlp.up"), std::string("model.layers.3"));
    QCOMPARE(layer("q", "encoder/layer12/attention"), std::string("encoder/layer12"));
    QCOMPARE(layer("head/logits", "head"), std::string("head"));
    QCOMPARE(layer("fc1"), std::string("fc1"));  // an operator's own number is no layer's
    QCOMPARE(layer("conv/fc1"), std::string("conv"));
  }

  void in_few_words() {
    QCOMPARE(in_words({"layer0", "layer1", "layer2", "layer4", "head"}), std::string("layer0 to layer2, layer4, head"));
    QCOMPARE(in_words({"layer0", "layer1"}), std::string("layer0, layer1"));
    QCOMPARE(in_words({"h.9", "h.10", "h.11"}), std::string("h.9 to h.11"));
    QCOMPARE(describe_place({false, {"layer0"}, {"q", "k"}, "", ""}), std::string("layer0: q, k"));
    QCOMPARE(describe_place({false, {"fc1"}, {"fc1"}, "", ""}), std::string("fc1"));
  }

  void run_by_run() {
    QCOMPARE(runs_of({"layer0", "layer1", "layer2", "a, b", "head"}),
             (std::vector<std::string>{"layer0 to layer2", "a, b", "head"}));
    QVERIFY(runs_of({}).empty());
  }

  // Of a plan with stages the sums are its own: memory of the largest stage, time of the slowest with its waiting.
  void stages_are_no_sum() {
    Model model;
    for (const char* name : {"layer0/fc", "layer1/fc"}) {
      Operator op;
      op.name = op.scope = name;
      model.operators.push_back(op);
    }
    const auto plan_of = [&](double first_s, double second_s) {
      Plan plan;
      for (const double seconds : {first_s, second_s}) {
        PlanOperator op;
        op.op = OperatorId(plan.operators.size());
        op.cost[ComputePart::forward] = seconds;
        op.cost[NetworkPart::all_reduce] = seconds / 4;
        op.cost[MemoryPart(0)] = 100;
        plan.operators.push_back(op);
        plan.cost += op.cost;
      }
      return plan;
    };
    const Plan plain = plan_of(1, 3);
    Plan staged = plan_of(1, 3);
    staged.pipeline.emplace().stages = 2;
    staged.operators[1].stage = 1;
    staged.cost = staged.operators[1].cost;  // of the slowest, which sends 0.25 s and waits 0.5 s
    staged.cost[NetworkPart::permute] = 0.25;
    staged.cost[NetworkPart::bubble] = 0.5;
    const PlanDifference difference = difference_of(model, plain, staged);
    QVERIFY(difference.of_stages && difference.layers.empty());
    QCOMPARE(difference.total.compute_s, 3.0 - 4.0);
    QCOMPARE(difference.total.weights_s, 0.75 - 1.0);
    QCOMPARE(difference.total.activations_s, 0.25);
    QCOMPARE(difference.total.waiting_s, 0.5);
    QCOMPARE(difference.total.memory_bytes, std::int64_t(-100));
    QCOMPARE(difference.total.time_s(), staged.cost.compute_s() + staged.cost.network_s() - 5.0);
    const PlanDifference back = difference_of(model, staged, plain);
    QCOMPARE(back.total.waiting_s, -0.5);
    QVERIFY(!difference_of(model, plain, plain).of_stages);
  }
};

QTEST_APPLESS_MAIN(PlanDifferenceTest)
#include "plan_difference_test.moc"
