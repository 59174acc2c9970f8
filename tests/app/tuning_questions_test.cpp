// SPDX-License-Identifier: Apache-2.0
// The fourteen questions that those who tune distributed training ask (pytorch/pytorch#125323), each answered in the
// opened window by at most three clicks on its widgets, with nothing typed, as resources/manual/tuning-questions.md
// says. A click is a press of the mouse; opening a list and taking an entry are two.
#include <QComboBox>
#include <QContextMenuEvent>
#include <QFile>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QSpinBox>
#include <QTabBar>
#include <QToolButton>
#include <QTreeView>

#include "core/search/explain/forced_answer.h"
#include "core/search/explain/told_answer.h"
#include "core/search/fitting_batch.h"
#include "core/search/largest_batch.h"
#include "core/search/registry.h"
#include "real_window.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/common/toggle_button.h"
#include "views/explain/why_view.h"
#include "views/graph/graph_scene.h"
#include "views/graph/graph_view.h"
#include "views/memory/memory_summary.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/scenario_panel.h"
#include "views/sweep/sweep_view.h"
#include "window_parts.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

using Kind = ForcedChoice::Kind;
constexpr int kLong_ms = 120'000 * kSanitizerFactor, kMostClicks = 3;
const std::string kModel = "builtin:gpt2?layers=2&hidden=256&sequence=64", kHardware = "v100-16gb-2x2";

/// A person with a mouse before the opened window.
struct Person : Real {
  Person() {
    window->opener().open_scenario(kModel, kHardware, 0);
    ready = settle();
  }
  app::Workspace& work() { return window->work(); }
  const ScenarioPtr& scenario() { return work().document.scenario(); }
  const Model& model() { return *scenario()->model; }
  bool idle() {
    return QTest::qWaitFor([&] { return !work().explainer.busy() && work().settled(); }, kLong_ms);
  }

  void press(QWidget* widget, QPoint at, Qt::MouseButton button = Qt::LeftButton) {
    ++clicks;
    QTest::mouseClick(widget, button, {}, at);
  }
  void press(QWidget* widget) { press(widget, widget->rect().center()); }
  /// Opens a box and takes the entry.
  bool take(QComboBox* box, const QString& entry) {
    const int index = box->findText(entry);
    if (index < 0) return false;
    press(box);
    if (!QTest::qWaitFor([&] { return box->view()->isVisible(); }, kLong_ms)) return false;
    QTest::qWait(QApplication::doubleClickInterval() + 50);  // a release before belongs to the click that opened it
    const QModelIndex at = box->model()->index(index, box->modelColumn());
    box->view()->scrollTo(at);
    QTest::mouseMove(box->view()->viewport(), box->view()->visualRect(at).center());
    press(box->view()->viewport(), box->view()->visualRect(at).center());
    return QTest::qWaitFor([&] { return box->currentIndex() == index; }, kLong_ms);
  }
  bool tab(const QString& title) {
    for (QTabBar* bar : window->findChildren<QTabBar*>())
      for (int i = 0; i < bar->count(); ++i)
        if (bar->tabText(i) == title && bar->isVisible()) {
          press(bar, bar->tabRect(i).center());
          return bar->currentIndex() == i;
        }
    return false;
  }
  /// An entry of an opened menu, by its text; opening it was a click of its own.
  bool entry(QMenu* menu, const QString& text) {
    for (QAction* each : menu->actions())
      if (each->text() == text && each->isEnabled()) {
        press(menu, menu->actionGeometry(each).center());
        return true;
      }
    return false;
  }
  /// A right click, and what comes up.
  template <class Then>
  bool menu_at(QWidget* surface, QPoint at, Then then) {
    bool done = false;
    ++clicks;
    QTimer::singleShot(50, surface, [&] {
      if (auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget())) done = then(menu);
      while (QWidget* left = QApplication::activePopupWidget()) left->close();
    });
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, surface->mapToGlobal(at));
    QApplication::sendEvent(surface, &event);
    return QTest::qWaitFor([&] { return done; }, 1000);
  }
  /// Of the Why tab's list.
  bool question(const QString& text) {
    QListWidget* list = part<views::WhyView>(window)->list();
    for (int row = 0; row < list->count(); ++row) {
      QListWidgetItem* item = list->item(row);
      if (item->text() != text || !(item->flags() & Qt::ItemIsEnabled)) continue;
      list->scrollToItem(item);
      press(list->viewport(), list->visualItemRect(item).center());
      return true;
    }
    return false;
  }
  bool why() {
    press(child<QPushButton>("why_button"));
    return idle();
  }
  /// A right click on a card or an operator of the graph.
  bool why_card(const std::string& name, const QString& entry_text) {
    auto* canvas = part<views::GraphView>(window)->canvas();
    for (const views::GraphCard& card : canvas->scene()->cards)
      if (card.name.toStdString() == name)
        return menu_at(canvas->viewport(), canvas->to_device(card.rect.center()).toPoint(),
                       [&](QMenu* menu) { return entry(menu, entry_text); }) &&
               idle();
    return false;
  }
  /// A layer that was unfolded before, as a person who asks about its operators has it.
  bool why_operator(const std::string& layer, const std::string& name, const QString& entry_text) {
    auto* canvas = part<views::GraphView>(window)->canvas();
    for (const views::GraphCard& card : canvas->scene()->cards)
      if (card.name.toStdString() == layer && !card.open)
        QTest::mouseDClick(canvas->viewport(), Qt::LeftButton, {}, canvas->to_device(card.rect.center()).toPoint());
    OperatorId op;
    for (std::size_t i = 0; i < model().operators.size(); ++i)
      if (model().operators[OperatorId(i)].name == name) op = OperatorId(i);
    if (!op.valid() || !QTest::qWaitFor([&] { return canvas->scene()->drawn_of[op] >= 0; }, kLong_ms)) return false;
    canvas->show_operator(op);
    const auto d = std::size_t(canvas->scene()->drawn_of[op]);
    const QPoint at = canvas
                          ->to_device({canvas->scene()->op_x[d] + canvas->scene()->op_w[d] / 2.0,
                                       canvas->scene()->op_y[d] + canvas->scene()->op_h[d] / 2.0})
                          .toPoint();
    return menu_at(canvas->viewport(), at, [&](QMenu* menu) { return entry(menu, entry_text); }) && idle();
  }
  /// A variant of a method, from its row's menu.
  bool variant(const QString& method, const QString& words) {
    auto* list = part<views::MethodsList>(window);
    QModelIndex found;
    for (int row = 0; row < list->model()->rowCount(); ++row)
      if (list->model()->index(row, 0).data().toString() == method) found = list->model()->index(row, 0);
    if (!found.isValid()) return false;
    list->scrollTo(found);
    return menu_at(list->viewport(), list->visualRect(found).center(),
                   [&](QMenu* menu) {
                     auto* variants = menu->findChild<QMenu*>(QStringLiteral("variants_menu"));
                     if (!variants) return false;
                     variants->popup(menu->pos());  // under the pointer: no click
                     return entry(variants, words);
                   }) &&
           settle();
  }
  /// The marker of a method in the chart.
  void marker(const std::string& method) {
    ++clicks;
    click(method);
  }
  QString peak() { return child<QLabel>("simulated_peak")->text(); }
  QString words() { return part<views::WhyView>(window)->words(); }
  /// What the core says of the choice, with nothing kept.
  QString by_itself(const std::string& pattern, ForcedChoice choice) {
    auto explainer = PointExplainer::make(work().loader.result(), work().loader.index());
    if (!explainer) qFatal("%s", explainer.error().message().c_str());
    const auto answer = (*explainer)->force({{pattern, choice}}, {});
    if (!answer) return QString::fromStdString(answer.error().message());
    QString text;
    for (const std::string& line : describe(*answer, *work().loader.result()))
      text += QString::fromStdString(line) + u'\n';
    return text;
  }
  QString answered() {
    const auto answer = part<views::WhyView>(window)->answer();
    return answer ? answer->text() : QString();
  }

  int clicks = 0;
  bool ready = false;
};

}  // namespace

class TuningQuestionsTest : public QObject {
  Q_OBJECT

 private slots:
  void the_page_has_all_fourteen() {
    QFile file(QStringLiteral(TURNPOINT_SOURCE_DIR "/resources/manual/tuning-questions.md"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QString text = QString::fromUtf8(file.readAll());
    for (int n = 1; n <= 14; ++n)
      QVERIFY2(text.contains(QStringLiteral("\n| %1 |").arg(n)), qPrintable(QString::number(n)));
  }

  void q01_peak_memory_of_a_configuration() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.variant(QStringLiteral("Fully sharded"), QStringLiteral("Sharded: 2")));
    person.marker("fsdp:zero=2");
    QVERIFY(person.settle());
    QCOMPARE(person.work().document.selection().point()->method, std::string("fsdp:zero=2"));
    // The figure at the head of the Plan dock is the peak of the plan's schedule, simulated here once more.
    const auto schedule = plan_schedule(*person.scenario(), *person.work().loader.plan());
    QVERIFY(schedule);
    const std::int64_t peak = views::MemorySummary::make(*schedule)->largest_peak();
    QCOMPARE(person.child<QLabel>("picked_memory")->text(),
             part<views::FrontierChart>(person.window)->memory_words(peak));
    QVERIFY2(person.peak().contains(QStringLiteral("simulated")), qPrintable(person.peak()));
    QVERIFY(person.clicks <= kMostClicks);
  }

  // A layer is what is wrapped: with its weights sharded or not.
  void q02_other_wrapping() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.why_card("layer1", QStringLiteral("Why?")));
    QVERIFY(person.question(QStringLiteral("weights sharded (ZeRO-3)")));
    QVERIFY(person.idle());
    QCOMPARE(person.answered(), person.by_itself("layer1/*", {Kind::zero, 3}));
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q03_the_best_batch() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.tab(QStringLiteral("Parallelism")));
    auto* view = part<views::ParallelismView>(person.window);
    person.press(view->batch_button());
    QVERIFY(QTest::qWaitFor([&] { return view->chart()->data().largest_batch; }, kLong_ms));
    const auto point = [&]() -> const views::ParallelismPoint* {
      const auto* line = view->chart()->data().subject();
      const auto* at = line ? line->at(4) : nullptr;
      return at && at->fits() && !at->coarse ? at : nullptr;
    };
    QVERIFY(QTest::qWaitFor([&] { return point() && person.work().settled(); }, kLong_ms));
    const auto contender = batch_contender(default_method());
    QVERIFY(contender);
    const auto& state = person.work().document.state();
    const auto largest = largest_batches(*contender, *state.source, state.scenario, {4}, {});
    QVERIFY(largest);
    QCOMPARE(point()->batch, (*largest)[0]->scenario->model->batch);
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q03_where_throughput_stops_growing() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.tab(QStringLiteral("Sweep")));
    auto* view = part<views::SweepView>(person.window);
    person.press(view->run_button());
    const auto done = [&] { return view->chart()->data().sweep && view->chart()->data().sweep->complete(); };
    QVERIFY(QTest::qWaitFor(done, kLong_ms));
    const Variation& sweep = *view->chart()->data().sweep;
    QVERIFY(sweep.axis.quantity == Varied::batch && sweep.axis.values.size() == 5);
    double before = 0;
    for (const std::int64_t batch : sweep.axis.values) {
      const VariationCell* cell = sweep.find(batch, "ft");
      QVERIFY(cell && cell->fits());
      const double rate = *cell->tokens_per_second(cell->fastest->time_s);
      QVERIFY2(rate > before,
               qPrintable(QString::number(batch)));  // a larger batch shares out what a step takes anyway
      before = rate;
    }
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q04_the_longest_sequence() {
    Person person;
    QVERIFY(person.ready);
    QMenu* menu = nullptr;
    QAction* head = nullptr;
    for (QAction* each : person.window->menuBar()->actions())
      if (each->text() == QStringLiteral("&Scenario")) menu = each->menu(), head = each;
    QVERIFY(menu);
    person.press(person.window->menuBar(), person.window->menuBar()->actionGeometry(head).center());
    QVERIFY(person.entry(menu, QStringLiteral("Longest sequence that fits")));
    const auto& bar = person.window->voice().bar();
    QVERIFY(QTest::qWaitFor([&] { return bar.current() && bar.current()->what.contains(QStringLiteral("Longest")); },
                            kLong_ms));
    const auto& state = person.work().document.state();
    const auto longest = longest_sequence(*state.source, state.scenario, {});
    QVERIFY(longest && *longest);
    QVERIFY2(bar.current()->what.endsWith(QStringLiteral("about %1.").arg((*longest)->sequence)),
             qPrintable(bar.current()->what));
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q05_other_data_parallel_sizes_and_their_peak() {
    Person person;
    QVERIFY(person.ready);
    const QString before = person.peak();
    auto* nodes = person.child<QSpinBox>("nodes");
    QVERIFY(nodes);
    person.press(nodes, QPoint(nodes->width() - 6, nodes->height() - 5));  // one node less
    QVERIFY(QTest::qWaitFor([&] { return person.scenario()->cluster->devices() == 2; }, kLong_ms));
    QVERIFY(person.settle());
    QVERIFY(person.peak() != before);
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q06_optimizer_state_at_the_host() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.why());
    QVERIFY(person.question(QStringLiteral("optimizer state at the host")));
    QVERIFY(person.idle());
    QCOMPARE(person.answered(), person.by_itself("*", {Kind::offload, 0}));
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q07_which_checkpointing() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.why());
    QVERIFY(person.question(QStringLiteral("run again in backward")));
    QVERIFY(person.idle());
    QCOMPARE(person.answered(), person.by_itself("*", {Kind::recompute, 0}));
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q08_selective_checkpointing_of_one_kind() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.why_operator("layer1", "layer1/mlp/up", QStringLiteral("Why, in every layer?")));
    QVERIFY(person.question(QStringLiteral("run again in backward")));
    QVERIFY(person.idle());
    QCOMPARE(person.answered(), person.by_itself("layer*/mlp/up", {Kind::recompute, 0}));
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q09_other_checkpointing_of_one_layer() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.why_card("layer1", QStringLiteral("Why?")));
    QVERIFY(person.question(QStringLiteral("run again in backward")));
    QVERIFY(person.idle());
    QCOMPARE(person.answered(), person.by_itself("layer1/*", {Kind::recompute, 0}));
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q10_gradients_reduced_in_fp32() {
    Person person;
    QVERIFY(person.ready);
    person.work().document.set_option("precision", double(Precision::bf16), 0);  // a model in 16 bits asks it
    QVERIFY(person.settle());
    const double before = person.point("data-parallel").network_s;
    person.press(person.child<QToolButton>("more_settings"));
    QVERIFY(person.take(person.child<QComboBox>("gradients"), QStringLiteral("fp32")));
    QVERIFY(person.settle());
    QCOMPARE(person.scenario()->settings.gradients, Gradients::fp32);
    QVERIFY(person.point("data-parallel").network_s > before);
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q11_mixed_precision() {
    Person person;
    QVERIFY(person.ready);
    const double before = person.point("data-parallel").time_s;
    QVERIFY(person.take(person.child<QComboBox>("precision"), QStringLiteral("bf16")));
    QVERIFY(person.settle());
    QCOMPARE(person.scenario()->settings.precision, Precision::bf16);
    QVERIFY(person.point("data-parallel").time_s < before);
    QVERIFY(person.clicks <= kMostClicks);
  }

  // Sharded inside a node and whole across nodes, beside sharded among all.
  void q12_when_hybrid_sharding() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.variant(QStringLiteral("Fully sharded"), QStringLiteral("Shards within: node")));
    person.marker("fsdp:group=node");
    QVERIFY(person.settle());
    QCOMPARE(person.work().document.selection().point()->method, std::string("fsdp:group=node"));
    QVERIFY(person.point("fsdp:group=node").memory_bytes > person.point("fsdp").memory_bytes);
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q13_weights_on_a_smaller_mesh() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.variant(QStringLiteral("Fully sharded"), QStringLiteral("Shards within: node")));
    QVERIFY(person.settle());
    const Plan plan = person.work().runner.find("fsdp:group=node")->result->plans->sharding(0);
    int sharded = 0;
    for (const PlanOperator& op : plan.operators) {
      if (op.choice.update != Update::sharded_weights) continue;
      QCOMPARE(plan.mesh.size_of(op.choice.update_axes), 2);
      ++sharded;
    }
    QVERIFY(sharded > 0);
    QVERIFY(person.clicks <= kMostClicks);
  }

  void q14_without_resharding_after_forward() {
    Person person;
    QVERIFY(person.ready);
    QVERIFY(person.why());
    QVERIFY(person.question(QStringLiteral("gradients and optimizer state sharded (ZeRO-2)")));
    QVERIFY(person.idle());
    QCOMPARE(person.answered(), person.by_itself("*", {Kind::zero, 2}));
    QVERIFY(person.clicks <= kMostClicks);
  }
};

QTEST_MAIN(TuningQuestionsTest)
#include "tuning_questions_test.moc"
