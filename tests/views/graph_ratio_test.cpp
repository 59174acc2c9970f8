// SPDX-License-Identifier: Apache-2.0
// The graph coloured by a ratio plan's shares: offered for such plans alone, with the plan's own figures in the legend.
#include <QApplication>
#include <QComboBox>
#include <QtTest>

#include "core/search/registry.h"
#include "plan/ratio_plans.h"
#include "views/common/ratio_types.h"
#include "views/graph/graph_legend.h"
#include "views/graph/graph_view.h"
#include "views/graph_fixture.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr int kRatioItem = 3;

/// Products of 12 samples, one after the other. The V100 has 4 samples of the first, 6 of 8 outputs of the second; both
/// do the third.
struct ByHand {
  ScenarioPtr scenario;
  RatioPlanPtr plan;
  PlanPtr axes;
  ByHand() {
    ModelBuilder b("products", "test", 12, 0);
    TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("one", x, b.parameter("w1", {10, 8}));
    x = b.linear("two", x, b.parameter("w2", {8, 8}));
    x = b.linear("three", x, b.parameter("w3", {8, 8}));
    scenario = test::rings_on(test::finished(b, x), "v100-16gb-1x1+a100-80gb-1x1");
    RatioPlan made = test::cut_by("batch", 4, *scenario);
    for (std::uint32_t o = 0; o < scenario->model->operators.size(); ++o) {
      const Operator& op = scenario->model->operators[OperatorId(o)];
      if (op.name == "three") made.cuts.front().share[o] = {};
      if (op.name == "two") made.cuts.front().share[o] = {test::loop_of(op, "out-channel"), 6};
    }
    auto priced = evaluate_ratio_plan(*scenario, std::move(made));
    if (!priced) qFatal("%s", priced.error().message().c_str());
    plan = std::make_shared<const RatioPlan>(*std::move(priced));
    axes = std::make_shared<const Plan>(as_axes(*plan));
  }
  OperatorId op(const std::string& name) const {
    for (std::uint32_t o = 0; o < scenario->model->operators.size(); ++o)
      if (scenario->model->operators[OperatorId(o)].name == name) return OperatorId(o);
    return {};
  }
};

struct View {
  GraphView view;
  SelectionModel selection;
  View() {
    view.set_selection(&selection);
    view.resize(900, 420);
  }
  QComboBox* color_box() const {
    for (QComboBox* box : view.findChildren<QComboBox*>())
      if (box->accessibleName() == "Colour") return box;
    return nullptr;
  }
  void show(const ByHand& made) { view.set_plan(made.axes, made.scenario, made.plan); }
};

}  // namespace

class GraphRatioTest : public QObject {
  Q_OBJECT

 private slots:
  void ratio_plans_alone_offer_it_and_the_choice_is_kept() {
    const ByHand made;
    View v;
    v.show(made);
    QComboBox* box = v.color_box();
    QCOMPARE(box->count(), kRatioItem + 1);
    QCOMPARE(box->itemText(kRatioItem), QString("Ratio"));
    QCOMPARE(box->currentIndex(), 0);
    box->setCurrentIndex(kRatioItem);
    // A plan of another kind is coloured by configuration; the next ratio plan by its ratio.
    const auto other = fixture::transformer(3);
    v.view.set_plan(fixture::plan(*other), fixture::scenario(other));
    QCOMPARE(box->count(), kRatioItem);
    QCOMPARE(box->currentIndex(), 0);
    QCOMPARE(v.view.save_state().value("colour").toInt(), kRatioItem);
    v.show(made);
    QCOMPARE(box->currentIndex(), kRatioItem);
    // Who chooses something else meanwhile means it.
    v.view.set_plan(fixture::plan(*other), fixture::scenario(other));
    box->setCurrentIndex(1);
    v.show(made);
    QCOMPARE(box->currentIndex(), 1);
  }

  void the_choice_is_restored_before_and_after_a_plan() {
    const ByHand made;
    View before, after;
    before.view.restore_state({{"colour", kRatioItem}});
    before.show(made);
    QCOMPARE(before.color_box()->currentIndex(), kRatioItem);
    after.show(made);
    after.view.restore_state({{"colour", kRatioItem}});
    QCOMPARE(after.color_box()->currentIndex(), kRatioItem);
    after.view.restore_state({{"colour", 2}});
    QCOMPARE(after.color_box()->currentIndex(), 2);
    QCOMPARE(after.view.save_state().value("colour").toInt(), 2);
  }

  void colours_and_legend_are_the_plan() {
    const ByHand made;
    View v;
    v.show(made);
    v.view.set_fold(GraphView::operators);
    v.color_box()->setCurrentIndex(kRatioItem);
    v.view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&v.view));
    QTRY_VERIFY(!v.view.layout_service()->busy() && v.view.canvas()->scene());
    // The A100 has 8 of 12 samples, and 2 of 8 outputs of "two".
    const auto& rows = v.view.legend()->rows();
    QCOMPARE(rows.size(), std::size_t(3));
    QCOMPARE(rows[0].text, QString("66.67%"));
    QCOMPARE(rows[1].text, QString("25%"));
    QCOMPARE(rows[2].text, QString("all, on both halves"));
    QCOMPARE(rows[0].color, 5);
    QCOMPARE(rows[1].color, 1);
    QCOMPARE(rows[2].color, int(RatioShares::kBothStep));
    QCOMPARE(rows[1].operators, std::vector<OperatorId>{made.op("two")});
    QCOMPARE(rows[2].operators, std::vector<OperatorId>{made.op("three")});
    std::size_t all = 0;
    for (const GraphLegendRow& row : rows) all += row.operators.size();
    QCOMPARE(all, made.scenario->model->operators.size());

    const auto figures =
        PlanFigures::make(made.scenario->model, made.axes, RatioShares::make(made.plan, made.scenario));
    const GraphScene& scene = *v.view.canvas()->scene();
    QVERIFY(!scene.cards.empty());
    for (std::size_t d = 0; d < scene.op_id.size(); ++d)
      QCOMPARE(int(scene.op_color[d]), RatioShares::step_of(figures->ratio()->of(scene.op_id[d])));
    for (const GraphCard& card : scene.cards) {
      float sum = 0;
      for (const float share : card.share) sum += share;
      QVERIFY(std::abs(sum - 1) < 1e-5);
    }

    const QString words = plain_text(operator_hover(*made.scenario->model, made.op("two"), figures.get()));
    QVERIFY2(words.contains("25% on A100-80GB, 75% on V100-16GB"), qPrintable(words));
    QString cards;
    for (const GraphCard& card : scene.cards) cards += plain_text(card_hover(scene, card, figures.get()));
    QVERIFY2(cards.contains(" on A100-80GB, "), qPrintable(cards));

    // A step of the legend picks its operators.
    QTest::mouseClick(v.view.legend(), Qt::LeftButton, {},
                      QPoint(30, 10 + 2 * (QFontMetrics(graph_small_font(v.view.legend()->font())).height() + 4) + 4));
    QCOMPARE(v.selection.operators(), std::set<OperatorId>{made.op("two")});
  }

  void colours_by_configuration_name_types() {
    ByHand made;
    // "one" is of type I, "two" of type III, and "three" is of type II but done by both halves.
    RatioPlan told = *made.plan;
    const auto layer = [&](const char* name, PartitionType type) { told.layers.push_back({made.op(name), {type}}); };
    layer("one", PartitionType::batch), layer("two", PartitionType::output), layer("three", PartitionType::reduction);
    made.plan = std::make_shared<const RatioPlan>(told);
    View v;
    v.show(made);
    const auto texts = [&] {
      QStringList found;
      for (const GraphLegendRow& row : v.view.legend()->rows()) found << row.text;
      found.sort();
      return found;
    };
    QCOMPARE(texts(), QStringList({QStringLiteral("I batch \u2460"), QStringLiteral("III out-channel \u2460"),
                                   QStringLiteral("repeated")}));
    QCOMPARE(v.view.legend()->key(), std::vector<PartitionType>({PartitionType::batch, PartitionType::output}));
    QCOMPARE(v.view.legend()->title(), QString("Type and loops"));
    const auto figures =
        PlanFigures::make(made.scenario->model, made.axes, RatioShares::make(made.plan, made.scenario));
    QVERIFY(plain_text(operator_hover(*made.scenario->model, made.op("two"), figures.get()))
                .contains(QStringLiteral("III out-channel \u2460")));
    // Lines of the key pick nothing.
    const int line = QFontMetrics(graph_small_font(v.view.legend()->font())).height() + 4;
    QTest::mouseClick(v.view.legend(), Qt::LeftButton, {}, QPoint(30, 10 + 4 * line + 4));
    QVERIFY(v.selection.operators().empty());
    QTest::mouseClick(v.view.legend(), Qt::LeftButton, {}, QPoint(30, 10 + line + 4));
    QVERIFY(!v.selection.operators().empty());
    // No other colour names them, nor do plans of another kind.
    v.color_box()->setCurrentIndex(1);
    QVERIFY(v.view.legend()->key().empty());
    v.color_box()->setCurrentIndex(0);
    const auto other = fixture::transformer(3);
    v.view.set_plan(fixture::plan(*other), fixture::scenario(other));
    QVERIFY(v.view.legend()->key().empty());
    QCOMPARE(v.view.legend()->title(), QString("Configuration"));
  }

  // With equal parts a plan of types splits operators: its types follow from the loops that it cuts, and are those that
  // the plan of parts has. By hand: "one" by samples, "two" by outputs, "three" by what it sums over.
  void plans_that_split_operators_name_types_where_their_method_does() {
    const ByHand made;
    Plan plan = *made.axes;
    const auto cut = [&](const char* name, const char* loop) {
      const OperatorId id = made.op(name);
      plan.operators[id.index].split.axis[0] = std::int8_t(test::loop_of(made.scenario->model->operators[id], loop));
    };
    cut("three", "in-channel");
    const auto split = std::make_shared<const Plan>(plan);
    View v;
    v.view.set_plan(split, made.scenario);
    QVERIFY(v.view.legend()->key().empty());
    v.view.set_plan(split, made.scenario, nullptr, true);
    QStringList texts;
    for (const GraphLegendRow& row : v.view.legend()->rows()) texts << row.text;
    texts.sort();
    QCOMPARE(texts, QStringList({QStringLiteral("I batch \u2460"), QStringLiteral("II in-channel \u2460"),
                                 QStringLiteral("III out-channel \u2460")}));
    QCOMPARE(v.view.legend()->key(),
             std::vector<PartitionType>({PartitionType::batch, PartitionType::reduction, PartitionType::output}));
    QCOMPARE(typed_layers(plan, *made.scenario->model),
             QString::fromUtf8("Layers by type: 1 I, 1 II, 1 III along \u2460."));
    QVERIFY(cuts_by_types("accpar", "") && cuts_by_types("owt", "ratio=equal") &&
            cuts_by_types("update-sharding", "of=hypar:checkpoint=10"));
    QVERIFY(!cuts_by_types("ft", "") && !cuts_by_types("update-sharding", "") &&
            !cuts_by_types("update-sharding", "of=optcnn") && !cuts_by_types("no-such-method", ""));
  }

  void followers_have_the_type_of_their_layer() {
    ByHand made;
    RatioPlan told = *made.plan;
    told.layers = {{made.op("one"), {PartitionType::batch}}, {made.op("two"), {PartitionType::output}}};
    told.follows.assign(made.scenario->model->operators.size(), RatioPlan::kNoLayer);
    told.follows[made.op("one").index] = 1;  // a layer's own type is told all the same
    told.follows[made.op("three").index] = 1;
    for (auto& share : told.cuts.front().share)
      if (share.loop < 0) share = {0, 6};
    const auto shares = RatioShares::make(std::make_shared<const RatioPlan>(told), made.scenario);
    QVERIFY(shares->type(made.op("one"), 0) == PartitionType::batch);
    QVERIFY(shares->type(made.op("three"), 0) == PartitionType::output);
    QVERIFY(!shares->type(OperatorId(0), 0));     // data
    QVERIFY(!shares->type(made.op("three"), 1));  // there is no such level
  }

  void a_long_name_leaves_room_beside_it() {
    const ByHand made;
    View v;
    v.show(made);
    v.color_box()->setCurrentIndex(kRatioItem);
    GraphLegend* legend = v.view.legend();
    QCOMPARE(legend->title(), QString("Part of A100-80GB"));
    QCOMPARE(legend->beside_title(), QString("of time"));
    const int beside = QFontMetrics(graph_small_font(legend->font())).horizontalAdvance(legend->beside_title());
    const QFontMetrics metrics(graph_name_font(legend->font()));
    for (const int width : {legend->width(), 160, 120}) {
      legend->setFixedWidth(width);
      QVERIFY2(metrics.horizontalAdvance(legend->title()) + beside < width - 20, qPrintable(legend->title()));
    }
    QVERIFY(legend->title() != QString("Part of A100-80GB") && legend->title().startsWith("Part"));
  }

  void both_themes_paint_their_own_colours() {
    const ByHand made;
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      View v;
      v.show(made);
      v.view.restore_state({{"colour", kRatioItem}});
      v.view.show();
      QVERIFY(QTest::qWaitForWindowExposed(&v.view));
      QTRY_VERIFY(!v.view.layout_service()->busy() && v.view.canvas()->scene());
      const QImage image = v.view.grab().toImage();
      const auto count = [&](const QColor& color) {
        int found = 0;
        for (int y = 0; y < image.height(); ++y)
          for (int x = 0; x < image.width(); ++x) found += image.pixelColor(x, y).rgb() == color.rgb();
        return found;
      };
      const auto& ratio = theme_colors(v.view.palette()).ratio;
      for (const std::size_t step : {std::size_t(1), std::size_t(5), std::size_t(RatioShares::kBothStep)})
        QVERIFY2(count(ratio[step]) > 60, qPrintable(QString::number(step)));
    }
    QApplication::setPalette(make_palette(false));
  }
};

QTEST_MAIN(GraphRatioTest)
#include "graph_ratio_test.moc"
