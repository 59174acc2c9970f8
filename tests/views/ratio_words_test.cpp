// SPDX-License-Identifier: Apache-2.0
// A ratio plan in words, and in the panel of the picked plan.
#include "views/plan/ratio_words.h"

#include <QLabel>
#include <QtTest>

#include "search/scenarios.h"
#include "views/plan/plan_panel.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

struct Picked {
  ScenarioPtr scenario = test::scenario_on(test::builtin("alexnet", 256), "v100-16gb-1x4+a100-80gb-1x4");
  ResultPtr result = *test::run("accpar", scenario);
  RatioPlanPtr plan = std::get<RatioPlanPtr>(result->plans->plan(0));
};

}  // namespace

class RatioWordsTest : public QObject {
  Q_OBJECT

 private slots:
  void the_first_cut_stands_between_the_kinds() {
    const Picked picked;
    const QString words = describe_ratio(*picked.plan, *picked.scenario);
    QVERIFY2(words.startsWith("8 devices cut in two at 3 levels. \u2460 gives 4 \u00d7 V100-16GB "), qPrintable(words));
    QVERIFY2(words.contains(", 4 \u00d7 A100-80GB "), qPrintable(words));
  }

  void an_operator_has_a_line_for_every_cut() {
    const Picked picked;
    const auto facts = describe_shares(*picked.plan, *picked.scenario, picked.plan->layers.front().op);
    QCOMPARE(facts.size(), std::size_t(3));
    QCOMPARE(facts[0].name, QString("Cut \u2460"));
    QVERIFY2(facts[0].value.startsWith("type I, batch: ") && facts[0].value.endsWith(" of 256 to 4 \u00d7 V100-16GB"),
             qPrintable(facts[0].value));
    QVERIFY2(facts[2].value.endsWith(" to V100-16GB"), qPrintable(facts[2].value));
  }

  void others_say_which_layer_they_follow() {
    const Picked picked;
    const Model& model = *picked.scenario->model;
    int followers = 0;
    for (std::size_t o = 0; o < model.operators.size(); ++o) {
      const OperatorId op(o);
      const auto facts = describe_shares(*picked.plan, *picked.scenario, op);
      const bool follows = facts.front().name == QString("Follows");
      followers += follows;
      const bool layer = std::any_of(picked.plan->layers.begin(), picked.plan->layers.end(),
                                     [&](const RatioPlan::Layer& one) { return one.op == op; });
      QVERIFY(!(layer && follows));
      if (model.operators[op].kind == OperatorKind::pooling) QVERIFY(follows);
      // AlexNet is a chain: a follower goes by the last layer before it.
      std::size_t before = o;
      while (follows && std::none_of(picked.plan->layers.begin(), picked.plan->layers.end(),
                                     [&](const RatioPlan::Layer& one) { return one.op.index == before; }))
        --before;
      if (follows) QCOMPARE(facts.front().value, to_qt(model.operators[OperatorId(before)].name));
    }
    QVERIFY(followers > 5);
  }

  void what_runs_again_says_where() {
    const Picked picked;
    RatioPlan plan = *picked.plan;
    const OperatorId op = plan.layers.front().op;
    plan.reruns = {{{0, 1, 2, 3}, {op}}};
    const auto facts = describe_shares(plan, *picked.scenario, op);
    QCOMPARE(facts.back().name, QString("Runs again"));
    QCOMPARE(facts.back().value, QString("in backward, on 4 \u00d7 V100-16GB"));
    QVERIFY(as_axes(plan).operators[op.index].choice.recompute);
    QCOMPARE(describe_shares(plan, *picked.scenario, plan.layers.back().op).size(), std::size_t(3));
  }

  void shared_out_updates_say_how_much_goes_where() {
    const Picked picked;
    RatioPlan plan = *picked.plan;
    const OperatorId op = plan.layers.front().op, other = plan.layers.back().op;
    plan.cuts[0].updates.assign(plan.operators.size(), 0);
    plan.cuts[0].updates[op.index] = 0.25;
    const auto facts = describe_shares(plan, *picked.scenario, op);
    QVERIFY2(facts[0].value.endsWith("4 \u00d7 V100-16GB; 25% of the weights' update to 4 \u00d7 V100-16GB"),
             qPrintable(facts[0].value));
    QVERIFY(!facts[1].value.contains("update"));
    QVERIFY(!describe_shares(plan, *picked.scenario, other).front().value.contains("update"));
    const Plan axes = as_axes(plan);
    QCOMPARE(axes.operators[op.index].choice.update, Update::sharded);
    QCOMPARE(axes.operators[op.index].choice.update_axes, 1u);
    QCOMPARE(axes.operators[other.index].choice.update, Update::replicated);
  }

  void levels_are_drawn_as_axes() {
    const Picked picked;
    const Plan axes = as_axes(*picked.plan);
    QCOMPARE(axes.mesh.count(), 3);
    QCOMPARE(axes.operators.size(), picked.scenario->model->operators.size());
    QCOMPARE(axes.reshards.size(), picked.plan->exchanges.size());
    QVERIFY(!axes.reshards.empty());
    QVERIFY(test::close(axes.cost.time_s(), picked.result->points.front().time_s));
  }

  void the_panel_says_whose_memory_it_shows() {
    const Picked picked;
    PlanPanel panel;
    panel.set_point(picked.result, 0, QStringLiteral("AccPar"), false);
    panel.set_ratio(picked.plan, std::make_shared<const Plan>(as_axes(*picked.plan)), picked.scenario);
    QStringList texts;
    for (const QLabel* label : panel.findChildren<QLabel*>()) texts << label->text();
    const QString all = texts.join(u'\n');
    QVERIFY2(all.contains("8 devices cut in two at 3 levels."), qPrintable(all));
    QVERIFY2(all.contains("Peak of the fullest device, simulated; plain sum "), qPrintable(all));
    QVERIFY2(!all.contains("Unrolling"), qPrintable(all));
  }

  // Whichever device it is that lacks memory: the fullest one may have room.
  void what_does_not_fit_is_said() {
    const Picked picked;
    for (const bool fits : {true, false}) {
      auto judged = std::make_shared<Result>(*picked.result);
      judged->fits_by_peak = true;
      judged->points[0].fits = fits;
      judged->points[0].simulated_memory_bytes = std::int64_t(20) << 30;
      PlanPanel panel;
      panel.set_point(judged, 0, QStringLiteral("AccPar"), false);
      panel.set_ratio(picked.plan, std::make_shared<const Plan>(as_axes(*picked.plan)), picked.scenario);
      QStringList texts;
      for (const QLabel* label : panel.findChildren<QLabel*>()) texts << label->text();
      QCOMPARE(texts.join(u'\n').contains("does not fit"), !fits);
      QCOMPARE(texts.join(u'\n').contains("Peak of the fullest device, simulated"), fits);
    }
  }
};

QTEST_MAIN(RatioWordsTest)
#include "ratio_words_test.moc"
