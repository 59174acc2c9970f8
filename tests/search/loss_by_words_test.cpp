// SPDX-License-Identifier: Apache-2.0
// Losses that are split by their words (core/model/split_loss.h): what plans move then, and what that is worth.
#include <QTest>

#include "core/import/huggingface/huggingface.h"
#include "core/model/split_loss.h"
#include "core/plan/evaluator.h"
#include "core/schedule/plan_schedule.h"
#include "core/search/registry.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::search;
using namespace turnpoint::test;

namespace {

ModelPtr decoder(int words, std::int64_t batch) {
  const auto source = parse_huggingface_config(
      R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024,
          "num_hidden_layers": 2, "max_position_embeddings": 64, "vocab_size": )" +
          std::to_string(words) + "}",
      "c.json");
  if (!source) qFatal("%s", source.error().message().c_str());
  return *(*source)->bind({batch, 64});
}

ScenarioPtr scenario(int words, bool split) {
  return scenario_on(decoder(words, 16), "h100-80gb-1x8", [&](Settings& s) {
    s.precision = Precision::bf16;
    s.split_loss = split;
  });
}

ResultPtr answer(const std::string& method, const ScenarioPtr& of) {
  const auto result = run(method, of);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return *result;
}

/// Bytes that change their layout, of the tensors whose names end so.
double moved(const Model& model, const Plan& plan, const char* name) {
  double bytes = 0;
  for (const PlanReshard& reshard : plan.reshards)
    if (model.tensors[reshard.tensor].name.ends_with(name))
      for (const ReshardRole role : kReshardRoles)
        for (const ReshardStep& step : reshard.steps(role)) bytes += step.move == ReshardMove::slice ? 0 : step.bytes;
  return bytes;
}

}  // namespace

class LossByWordsTest : public QObject {
  Q_OBJECT

 private slots:
  void a_tensor_group_leaves_the_logits_where_they_are() {
    for (const char* text : {"manual:tp=2", "manual:tp=8", "manual:tp=4:sequence-parallel", "manual:tp=2:pp=2"}) {
      const ScenarioPtr by_words = scenario(32000, true), whole = scenario(32000, false);
      const ResultPtr now = answer(text, by_words), before = answer(text, whole);
      const Plan plan = now->plans->sharding(0), other = before->plans->sharding(0);
      const Model& model = plan.pipeline ? *plan.pipeline->micro_batch : *by_words->model;
      const Model& of_other = other.pipeline ? *other.pipeline->micro_batch : *whole->model;
      const auto logits = [](const Model& m) {
        for (const Operator& op : m.operators)
          if (op.kind == OperatorKind::loss_statistics ||
              (op.kind == OperatorKind::cross_entropy && !reads_statistics(op)))
            return m.tensors[op.inputs.front().tensor].name;
        qFatal("no loss");
      };
      QCOMPARE(moved(model, plan, logits(model).c_str()), 0.0);
      QVERIFY(moved(of_other, other, logits(of_other).c_str()) > 0);
      QVERIFY(moved(model, plan, "_statistics") > 0);
      // Gathered forward; every member has all of the gradient, and takes its part.
      for (const PlanReshard& reshard : plan.reshards)
        if (model.tensors[reshard.tensor].name.ends_with("_statistics"))
          for (const ReshardStep& step : reshard.gradient) QVERIFY(step.move == ReshardMove::slice);
      QVERIFY2(now->points[0].network_s < before->points[0].network_s, text);
      const auto cost = evaluate_plan(*by_words, plan);
      QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
      QCOMPARE(cost->memory_bytes(), now->points[0].memory_bytes);
      QVERIFY(close(cost->time_s(), now->points[0].time_s));
    }
  }

  /// On one device nothing is won: a launch each way more, and the statistics, of which there is one byte for 160.
  void alone_it_costs_what_it_did() {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const auto on_one = [&](bool split) {
        return answer("data-parallel", scenario_on(decoder(32000, 16), "h100-80gb-1x1", [&](Settings& s) {
                        s.precision = precision;
                        s.split_loss = split;
                      }));
      };
      const auto peak = [](const ResultPtr& of) {
        const auto schedule = plan_schedule(*of->scenario, of->plans->sharding(0));
        if (!schedule) qFatal("%s", schedule.error().message().c_str());
        return (*schedule)->devices.front().peak_bytes;
      };
      const ResultPtr now = on_one(true), before = on_one(false);
      const ResultPoint &by_words = now->points[0], &whole = before->points[0];
      const std::int64_t element = precision == Precision::fp32 ? 4 : 2,
                         statistics = 16 * 64 * 64 * kLossNumbers * element;
      QCOMPARE(by_words.memory_bytes - whole.memory_bytes, statistics);
      // The peak lies where the logits' gradient is made, of which there is one.
      QVERIFY(peak(now) >= peak(before) && peak(now) <= peak(before) + 2 * statistics);
      const double more = by_words.time_s - whole.time_s;
      QVERIFY2(more > 0 && more < 4 * 5e-6 + 10.0 * double(statistics) / 3e12, qPrintable(QString::number(more)));
    }
  }

  void the_frontier_is_nowhere_worse() {
    const ResultPtr by_words = answer("ft:micro-batches=1", scenario(32000, true)),
                    whole = answer("ft:micro-batches=1", scenario(32000, false));
    QVERIFY(by_words->points.back().time_s < whole->points.back().time_s * 1.001);
    QVERIFY(by_words->points.front().memory_bytes <= whole->points.front().memory_bytes * 1.01);
  }

  /// Two blocks cannot be split over four devices: loss and statistics go by positions, and nobody repeats work.
  void a_group_that_cannot_split_the_words_splits_positions() {
    const ScenarioPtr by_words = scenario(30522, true);
    const Plan plan = answer("manual:tp=4", by_words)->plans->sharding(0);
    for (const PlanOperator& op : plan.operators) {
      const Operator& of = by_words->model->operators[op.op];
      if (of.kind != OperatorKind::loss_statistics && of.kind != OperatorKind::cross_entropy) continue;
      for (int a = 0; a < plan.mesh.count(); ++a) QVERIFY2(op.split.axis[std::size_t(a)] >= 0, of.name.c_str());
    }
  }

  /// 32,001 words are odd: nothing changes.
  void odd_words_stay_whole() {
    QVERIFY(answer("manual:tp=2", scenario(32001, true))->points ==
            answer("manual:tp=2", scenario(32001, false))->points);
  }
};

QTEST_APPLESS_MAIN(LossByWordsTest)
#include "loss_by_words_test.moc"
