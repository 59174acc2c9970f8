// SPDX-License-Identifier: Apache-2.0
// The Plan dock at its least width: nothing under the edge, whatever the figures.
#include "views/plan/plan_panel.h"

#include <QLabel>
#include <QSignalSpy>
#include <QToolButton>
#include <QTreeView>
#include <QtTest>

#include "core/scenario/scenario.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/plan/breakdown_bar.h"
#include "views/plan/legend_table.h"
#include "views/plan/plan_words.h"
#include "views/plan/weights_section.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

ResultPtr result_of(double gib, double seconds) {
  auto scenario = std::make_shared<Scenario>();
  scenario->model = std::make_shared<Model>();
  scenario->cluster = std::make_shared<Cluster>();
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->points.resize(3);
  for (ResultPoint& point : result->points) {
    point.memory_bytes = std::int64_t(gib * 1073741824.0);
    point.time_s = point.compute_s = seconds;
  }
  return result;
}

}  // namespace

class PlanPanelTest : public QObject {
  Q_OBJECT

 private slots:
  void large_figures_are_not_cut() {
    PlanPanel panel;
    panel.resize(panel.minimumWidth(), 700);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    const auto size_of = [&](double gib, double seconds) {
      panel.set_point(result_of(gib, seconds), 1, QStringLiteral("FT"), false);
      QTest::qWait(20);
      return panel.findChild<QLabel*>(QStringLiteral("picked_memory"))->font().pointSizeF();
    };
    const double usual = size_of(2.8, 0.973);
    QCOMPARE(panel.widget()->width(), panel.viewport()->width());
    const double large = size_of(12776.3, 23090);
    QCOMPARE(panel.widget()->width(), panel.viewport()->width());
    QVERIFY(large < usual);
    for (const QToolButton* button : panel.findChildren<QToolButton*>())
      if (button->isVisible())
        QVERIFY(button->mapTo(panel.viewport(), button->rect().bottomRight()).x() < panel.viewport()->width());
    QCOMPARE(size_of(2.8, 0.973), usual);
  }

  void words_of_a_plan_name_a_pipeline_only_where_there_is_one() {
    Model model;
    Operator op;
    op.dims = {{DimName::batch, DimRole::parallel, 8, true}};
    model.operators.push_back(op);
    Plan plan;
    PlanOperator how;
    how.op = OperatorId(0);
    how.cost.compute[0] = 1;
    plan.operators.push_back(how);
    const QString by_axes = QStringLiteral("\nEvery operator runs repeated.");
    QCOMPARE(describe_plan(plan, model), QStringLiteral("Everything on one device.") + by_axes);
    plan.pipeline = PlanPipeline();
    QCOMPARE(describe_plan(plan, model), QStringLiteral("Everything on one device.") + by_axes);
    plan.pipeline->recompute = plan.pipeline->selective = true;
    QCOMPARE(describe_plan(plan, model),
             QStringLiteral("Everything on one device; checkpointing of attention cores.") + by_axes);
    plan.pipeline->micro_batches = 4;
    plan.pipeline->selective = false;
    QCOMPARE(describe_plan(plan, model),
             QStringLiteral("Everything on one device; 4 micro-batches; checkpointing of layers.") + by_axes);
    plan.pipeline->stages = 2;
    plan.pipeline->micro_batches = 1;
    plan.pipeline->recompute = false;
    plan.pipeline->bubble_s = 0.25;
    QCOMPARE(describe_plan(plan, model),
             QStringLiteral("Pipeline parallel 2.\nStages wait for each other for 250\u00a0ms.") + by_axes);
    plan.operators[0].choice.recompute = plan.operators[0].choice.offload = true;
    QVERIFY(describe_plan(plan, model)
                .startsWith(QStringLiteral(
                    "Pipeline parallel 2; optimizer state of 1 operator at the host; checkpointing in 1 operator.")));
  }

  void a_share_that_rounds_to_nothing_is_not_told() {
    Model model;
    Plan plan;
    const auto add = [&](DimName name, double seconds) {
      Operator op;
      op.dims = {{DimName::batch, DimRole::parallel, 8, true}, {name, DimRole::parallel, 8, true}};
      PlanOperator how;
      how.op = OperatorId(model.operators.size());
      how.split.axis[0] = name == DimName::batch ? 0 : 1;
      how.cost.compute[0] = seconds;
      model.operators.push_back(op);
      plan.operators.push_back(how);
    };
    plan.mesh.axes = {{"x", 8, kIntraNode}};
    add(DimName::batch, 1);
    add(DimName::out_channel, 0.001);
    const QString words = describe_plan(plan, model);
    QVERIFY2(words.contains(QStringLiteral("Nearly all of compute runs batch x, the rest in another way.")),
             qPrintable(words));
    plan.operators[1].cost.compute[0] = 1;
    QVERIFY(describe_plan(plan, model).contains(QStringLiteral("50% of compute runs ")));
  }

  void notes_of_a_result_stand_with_its_plans() {
    PlanPanel panel;
    panel.show();
    auto* notes = panel.findChild<QLabel*>(QStringLiteral("result_notes"));
    QVERIFY(notes);
    auto noted = std::make_shared<Result>(*result_of(2.8, 0.973));
    noted->notes = {"a batch of 24 cannot be divided over 16 devices", "second"};
    noted->explanations = {"Sharded where it pays."};
    panel.set_point(noted, 1, QStringLiteral("Data-parallel"), false);
    QVERIFY(notes->isVisible());
    QCOMPARE(notes->text(), QStringLiteral("Note: a batch of 24 cannot be divided over 16 devices\nNote: second"));
    // What was decided is told, but not in the colour of a warning.
    auto* explained = panel.findChild<QLabel*>(QStringLiteral("result_explanations"));
    QVERIFY(explained && explained->isVisible());
    QCOMPARE(explained->text(), QStringLiteral("Sharded where it pays."));
    QVERIFY(explained->palette().windowText() != notes->palette().windowText());
    panel.set_point(result_of(2.8, 0.973), 1, QStringLiteral("FT"), false);
    QVERIFY(!notes->isVisible() && !explained->isVisible());
  }

  void weights_say_how_they_are_updated_and_why() {
    PlanPanel panel;
    panel.resize(280, 900);
    panel.show();
    auto shown = std::make_shared<Result>(*result_of(2.8, 0.973));
    for (int i = 0; i < 20; ++i) {
      WeightUpdate one;
      one.weight = "w" + std::to_string(i) + (i == 1 ? ".weight" : "");
      one.replicas = 16, one.shards = i < 5 ? 8 : 1;
      one.padding = i == 0 ? 0.125 : 0;
      one.whole = {1e-3 * (20 - i), 1e-3, 0}, one.chosen = i < 5 ? UpdateSeconds{1e-3, 1e-4, 2e-3} : one.whole;
      one.reason = i < 5 ? "sharded over 8: it takes less" : "whole: too small";
      shown->weights.push_back(one);
    }
    panel.set_point(shown, 1, QStringLiteral("Update sharding"), false);
    auto* section = panel.findChild<WeightsSection*>();
    QVERIFY(section && section->isVisible());
    // Files from before have the updates alone.
    QVERIFY2(section->text().startsWith(QStringLiteral("Of that, updates of weights Before sharding 230")), qPrintable(section->text()));
    QVERIFY(section->text().contains(QStringLiteral("Of that, updates of weights After sharding 151")));
    QVERIFY(!section->text().contains(QStringLiteral("Time of a step")));
    // The step before and after, by parts on one scale.
    Plan plan;
    plan.cost.compute = {0.1, 0.2, 0.01, 0};
    plan.cost.network = {0, 0.03, 0.05, 0, 0, 0, 0};
    auto with_step = std::make_shared<Result>(*shown);
    with_step->whole_updates = plan.cost;
    with_step->whole_updates->compute = {0.1, 0.2, 0.17, 0};
    with_step->whole_updates->network = {0.08, 0, 0, 0, 0, 0, 0};
    panel.set_point(with_step, 1, QStringLiteral("Update sharding"), false);
    const auto bars = [&] { return section->text().contains(QStringLiteral("Time of a step")); };
    QVERIFY(!bars());
    panel.set_plan(std::make_shared<Plan>(plan), with_step->scenario, with_step->whole_updates);
    // Another plan's figures never stand beside this result's, nor this plan's beside another result's: in either
    // order.
    auto other = std::make_shared<Result>(*with_step);
    other->whole_updates->compute = {0.1, 0.2, 0.5, 0};
    QVERIFY(bars());
    panel.set_point(other, 1, QStringLiteral("Update sharding"), false);
    QVERIFY(!bars());
    panel.set_plan(std::make_shared<Plan>(plan), other->scenario, other->whole_updates);
    QVERIFY2(section->text().startsWith(QStringLiteral("Time of a step Before sharding 880")), qPrintable(section->text()));
    panel.set_plan(std::make_shared<Plan>(plan), with_step->scenario, with_step->whole_updates);
    QVERIFY(!bars());
    panel.set_point(with_step, 1, QStringLiteral("Update sharding"), false);
    QVERIFY2(section->text().startsWith(QStringLiteral("Time of a step Before sharding 550")), qPrintable(section->text()));
    QVERIFY2(section->text().contains(QStringLiteral("Time of a step After sharding 390")), qPrintable(section->text()));
    const auto bar_named = [&](const QString& name) {
      for (const auto* bar : section->findChildren<BreakdownBar*>())
        if (bar->accessibleName() == name) return bar->accessibleDescription();
      return QString();
    };
    const QString before_bar = bar_named(QStringLiteral("Time of a step, Before sharding")),
                  after_bar = bar_named(QStringLiteral("Time of a step, After sharding"));
    QVERIFY2(before_bar.contains(QStringLiteral("Update 170")) &&
                 before_bar.contains(QStringLiteral("All-reduce 80")) &&
                 !before_bar.contains(QStringLiteral("All-gather")),
             qPrintable(before_bar));
    QVERIFY2(
        after_bar.contains(QStringLiteral("Reduce-scatter 50")) && !after_bar.contains(QStringLiteral("All-reduce")),
        qPrintable(after_bar));
    QVERIFY(section->text().contains(QStringLiteral("w0 8 of 16")));
    QVERIFY(section->text().contains(QStringLiteral("w7 whole")));
    QVERIFY(section->text().contains(QStringLiteral("w1 8 of 16")));
    QCOMPARE(section->table()->model()->rowCount(), WeightsSection::kShown);
    const QString tip = section->table()->model()->index(0, 0).data(Qt::ToolTipRole).toString();
    QVERIFY2(tip.contains(QStringLiteral("it takes less")) && tip.contains(QStringLiteral("12.5%")), qPrintable(tip));
    emit section->findChild<SectionHead*>()->clicked();
    QCOMPARE(section->table()->model()->rowCount(), 20);
    const QColor before = section->findChildren<BreakdownBar*>().front()->parts().front().color;
    panel.setPalette(make_palette(true));
    QVERIFY(section->findChildren<BreakdownBar*>().front()->parts().front().color != before);
    QSignalSpy picked(section, &WeightsSection::weight_picked);
    section->table()->setCurrentIndex(section->table()->model()->index(3, 0));
    QCOMPARE(picked.last()[0].toString(), QStringLiteral("w3"));
    // The same plan, simulated meanwhile: what was picked stays.
    panel.set_point(std::make_shared<Result>(*with_step), 1, QStringLiteral("Update sharding"), false);
    QCOMPARE(section->table()->currentIndex().row(), 3);
    panel.set_point(result_of(2.8, 0.973), 1, QStringLiteral("FT"), false);
    QVERIFY(!section->isVisible());
  }

  // One number looks the same in the chart and beside it.
  void figures_are_written_as_the_chart_writes_them() {
    PlanPanel panel;
    panel.set_point(result_of(0.48, 0.0698), 1, QStringLiteral("FT"), false);
    auto* memory = panel.findChild<QLabel*>(QStringLiteral("picked_memory"));
    auto* time = panel.findChild<QLabel*>(QStringLiteral("picked_time"));
    QCOMPARE(memory->text(), QStringLiteral("492\u00a0MiB"));
    int digits = 2;
    panel.set_figures(
        [&digits](std::int64_t bytes) {
          return QString::number(double(bytes) / 1073741824.0, 'f', digits) + QStringLiteral("\u00a0GiB");
        },
        [](double seconds) { return QString::number(seconds * 1e3, 'f', 1) + QStringLiteral("\u00a0ms"); });
    QCOMPARE(memory->text(), QStringLiteral("0.48\u00a0GiB"));
    QCOMPARE(time->text(), QStringLiteral("69.8\u00a0ms"));
    digits = 3;  // the chart was zoomed
    panel.refresh_figures();
    QCOMPARE(memory->text(), QStringLiteral("0.480\u00a0GiB"));
  }

  void names_of_the_times_parts_have_room_at_any_width() {
    PlanPanel panel;
    panel.show();
    panel.set_point(result_of(2.8, 0.973), 1, QStringLiteral("FT"), false);
    LegendTable *compute = panel.findChild<LegendTable*>(QStringLiteral("compute_legend")),
                *network = panel.findChild<LegendTable*>(QStringLiteral("network_legend"));
    QVERIFY(compute && network);
    const int most = network->width_for({QStringLiteral("Reduce-scatter")}, QStringLiteral("88.8")),
              least = compute->width_for({QStringLiteral("Recompute")}, QStringLiteral("88.8"));
    QVERIFY(compute->width_for({QStringLiteral("Recompute")}, QStringLiteral("888.8")) > least);
    for (int width = panel.minimumWidth(); width < 420; width += 7) {
      panel.resize(width, 900);
      QTest::qWait(5);
      QVERIFY2(compute->width() >= least && network->width() >= most, qPrintable(QString::number(width)));
    }
    QVERIFY(compute->y() == network->y());  // side by side where there is room
  }
};

QTEST_MAIN(PlanPanelTest)
#include "plan_panel_test.moc"
