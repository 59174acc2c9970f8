// SPDX-License-Identifier: Apache-2.0
// The picked plan layer by layer in the Plan dock: short lists are open, long ones folded until they are opened, and
// paths of any length keep the dock as wide as it is.
#include "views/plan/layers_section.h"

#include <QApplication>
#include <QLabel>
#include <QtTest>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/plan/plan_panel.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

struct Layered {
  std::shared_ptr<Model> model = std::make_shared<Model>();
  std::shared_ptr<Plan> plan = std::make_shared<Plan>();

  /// A layer of one operator, by batch or on all devices.
  void add(const std::string& layer, bool by_batch) {
    Operator op;
    op.name = layer + "/add", op.scope = layer;
    op.dims = {{DimName::batch, DimRole::parallel, 8, true}};
    PlanOperator how;
    how.op = OperatorId(model->operators.size());
    how.split.axis.fill(-1);
    if (by_batch) how.split.axis[0] = 0;
    how.cost.compute[0] = 1;
    how.parameters.resize(1);
    model->operators.push_back(op);
    plan->operators.push_back(how);
  }
};

/// Every other layer otherwise: a line each.
Layered alternating(int layers, const std::string& prefix = "layer") {
  Layered made;
  made.plan->mesh.axes = {{"x", 8, kIntraNode}};
  for (int i = 0; i < layers; ++i) made.add(prefix + std::to_string(i), i % 2 == 0);
  return made;
}

void toggle(LayersSection& section) {
  section.head()->setFocus();
  QTest::keyClick(section.head(), Qt::Key_Space);
}

ScenarioPtr scenario_of(const Layered& made) {
  auto scenario = std::make_shared<Scenario>();
  scenario->model = made.model;
  scenario->cluster = std::make_shared<Cluster>();
  return scenario;
}

}  // namespace

class LayersSectionTest : public QObject {
  Q_OBJECT

 private slots:
  void short_ones_are_open_and_long_ones_folded() {
    LayersSection section;
    QVERIFY(section.isHidden());
    const Layered two = alternating(2), nine = alternating(9);
    section.set_plan(two.plan, two.model);
    QVERIFY(!section.isHidden());
    QCOMPARE(section.text(), QStringLiteral("layer0: data parallel 8\nlayer1: repeated on all devices"));
    section.set_plan(nine.plan, nine.model);
    QCOMPARE(section.text(), QString());
    QCOMPARE(section.head()->accessibleDescription(), QStringLiteral("Show 9 lines"));
    toggle(section);
    QCOMPARE(section.text().count(u'\n'), 8);
    QVERIFY(section.text().endsWith(QStringLiteral("layer8: data parallel 8")));
    QCOMPARE(section.head()->accessibleDescription(), QStringLiteral("Hide"));
    // As it was left, for the plans that follow.
    section.set_plan(two.plan, two.model);
    section.set_plan(nine.plan, nine.model);
    QCOMPARE(section.text().count(u'\n'), 8);
    toggle(section);
    section.set_plan(two.plan, two.model);
    QCOMPARE(section.text(), QString());
    section.set_plan(nullptr, nullptr);
    QVERIFY(section.isHidden());
  }

  void a_plan_of_another_model_is_not_told() {
    LayersSection section;
    section.set_plan(alternating(3).plan, alternating(2).model);
    QVERIFY(section.isHidden());
  }

  void long_paths_keep_the_dock_as_wide() {
    PlanPanel panel;
    panel.resize(panel.minimumWidth(), 700);
    panel.show();
    const Layered made = alternating(2),
                  deep = alternating(2, "language_model.decoder.blocks.with_a_name." + std::string(90, 'w') + ".");
    auto result = std::make_shared<Result>();
    result->scenario = scenario_of(made);
    result->points.resize(1);
    panel.set_point(result, 0, QStringLiteral("FT"), false);
    panel.set_plan(made.plan, result->scenario);
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    auto* section = panel.findChild<LayersSection*>();
    QVERIFY(section && section->isVisible());
    const auto* label = section->findChild<QLabel*>(QStringLiteral("layer_lines"));
    QVERIFY(label->isVisible());
    QTest::qWait(20);
    const int width = panel.widget()->width(), height = label->height();
    panel.set_plan(deep.plan, scenario_of(deep));
    QTest::qWait(20);
    QVERIFY(panel.widget()->width() <= width);  // less by the scroll bar
    QVERIFY2(label->text().contains(QStringLiteral("language_")), qPrintable(label->text()));
    // Ninety letters are more than a line holds.
    QVERIFY2(label->height() > height + 4 * label->fontMetrics().height(),
             qPrintable(QString::number(label->height())));
    // Names are told to others without the places to break.
    QVERIFY(!label->accessibleName().contains(QChar(0x200b)) && label->text().contains(QChar(0x200b)));
  }

  void plans_that_split_no_operators_have_none() {
    PlanPanel panel;
    panel.show();
    const Layered made = alternating(2);
    auto result = std::make_shared<Result>();
    result->scenario = scenario_of(made);
    result->points.resize(1);
    panel.set_point(result, 0, QStringLiteral("FT"), false);
    panel.set_plan(made.plan, result->scenario);
    auto* section = panel.findChild<LayersSection*>();
    QVERIFY(section && section->isVisible());
    panel.set_ratio(std::make_shared<RatioPlan>(), made.plan, result->scenario);
    QVERIFY(!section->isVisible());
    panel.set_plan(made.plan, result->scenario);
    QVERIFY(section->isVisible());
  }

  void names_stand_out_in_light_and_dark() {
    const QPalette before = QApplication::palette();
    LayersSection section;
    const Layered made = alternating(2);
    section.set_plan(made.plan, made.model);
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      QCoreApplication::sendPostedEvents();
      const ThemeColors& colors = theme_colors(section.palette());
      const QString html = section.findChild<QLabel*>(QStringLiteral("layer_lines"))->text();
      QVERIFY(html.contains(colors.text.name()) && html.contains(colors.secondary.name()));
    }
    QApplication::setPalette(before);
  }

  // A letter of two halves is never broken between them.
  void long_names_of_any_letters_can_be_broken() {
    std::string smiles;
    for (int i = 0; i < 60; ++i) smiles += "\xF0\x9F\x98\x80";
    for (const std::string& before : {std::string(), std::string("a"), std::string(23, 'b')}) {
      LayersSection section;
      const Layered made = alternating(1, before + smiles);
      section.set_plan(made.plan, made.model);
      const QString text = section.findChild<QLabel*>(QStringLiteral("layer_lines"))->text();
      QVERIFY(text.isValidUtf16());
      QVERIFY(text.contains(QChar(0x200b)));
    }
  }
};

QTEST_MAIN(LayersSectionTest)
#include "layers_section_test.moc"
