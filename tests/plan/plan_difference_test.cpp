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

  void stages_are_no_sum() {
    Plan plain, staged;
    staged.pipeline.emplace().stages = 2;
    const Model model;
    QVERIFY(difference_of(model, plain, plain));
    const auto refused = difference_of(model, plain, staged);
    QVERIFY(!refused && refused.error().code == ErrorCode::usage);
  }
};

QTEST_APPLESS_MAIN(PlanDifferenceTest)
#include "plan_difference_test.moc"
