// SPDX-License-Identifier: Apache-2.0
// Why? in the window: asked by a click on the graph, answered as the core answers by itself and as a terminal does, the
// newest question first; and the difference of two plans, as a table and on the graph.
#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QDockWidget>
#include <QListWidget>
#include <QMenu>
#include <QProcess>
#include <QPushButton>
#include <QTextBrowser>
#include <QToolButton>
#include <QTreeView>
#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "app/tabs/graph_tab.h"
#include "core/search/explain/ratio_story.h"
#include "core/search/explain/told_answer.h"
#include "real_window.h"
#include "views/explain/difference_model.h"
#include "views/explain/why_view.h"
#include "views/graph/graph_legend.h"
#include "views/graph/graph_scene.h"
#include "views/graph/graph_view.h"
#include "window_parts.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr int kLong_ms = 120'000 * kSanitizerFactor;
const QString kModel = QStringLiteral("builtin:gpt2?layers=4&hidden=256&sequence=64");

struct Asking : Real {
  Asking() {
    window->opener().open_scenario(kModel.toStdString(), "v100-16gb-1x4", 0);
    ready = settle();
  }
  views::WhyView* view() { return part<views::WhyView>(window); }
  app::Explainer& explainer() { return window->work().explainer; }
  app::PlanLoader& loader() { return window->work().loader; }
  const Model& model() { return *window->work().document.scenario()->model; }
  QToolButton* button(const char* name) { return child<QToolButton>(name); }
  bool idle() {
    return QTest::qWaitFor([&] { return !explainer().busy() && window->work().settled(); }, kLong_ms);
  }
  /// A click on the item with this text; false: there is none, or it is switched off.
  bool click_item(const QString& text) {
    QListWidget* list = view()->list();
    for (int row = 0; row < list->count(); ++row) {
      QListWidgetItem* item = list->item(row);
      if (item->text() != text || !(item->flags() & Qt::ItemIsEnabled)) continue;
      list->scrollToItem(item);
      QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualItemRect(item).center());
      return true;
    }
    return false;
  }
  QStringList items() {
    QStringList texts;
    for (int row = 0; row < view()->list()->count(); ++row) texts << view()->list()->item(row)->text();
    return texts;
  }
  /// Opens the layer's card by a double click where it is folded, then the menu over the operator.
  bool why_of(const std::string& layer, const std::string& name) {
    auto* canvas = part<views::GraphView>(window)->canvas();
    const auto scene = [&] { return canvas->scene(); };
    for (const views::GraphCard& card : scene()->cards)
      if (card.name.toStdString() == layer && !card.open)
        QTest::mouseDClick(canvas->viewport(), Qt::LeftButton, {}, canvas->to_device(card.rect.center()).toPoint());
    const OperatorId op = operator_named(name);
    if (!QTest::qWaitFor([&] { return scene() && scene()->drawn_of[op] >= 0; }, kLong_ms)) return false;
    canvas->show_operator(op);
    const auto d = std::size_t(scene()->drawn_of[op]);
    const QPoint at =
        canvas->to_device({scene()->op_x[d] + scene()->op_w[d] / 2.0, scene()->op_y[d] + scene()->op_h[d] / 2.0})
            .toPoint();
    bool done = false;
    QTimer::singleShot(50, canvas, [&] {
      auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
      if (!menu) return;
      for (QAction* entry : menu->actions())
        if (entry->objectName() == QStringLiteral("graph_why")) entry->trigger(), done = true;
      menu->close();
    });
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, canvas->viewport()->mapToGlobal(at));
    QApplication::sendEvent(canvas->viewport(), &event);
    return done;
  }
  OperatorId operator_named(const std::string& name) {
    for (std::size_t i = 0; i < model().operators.size(); ++i)
      if (model().operators[OperatorId(i)].name == name) return OperatorId(i);
    qFatal("no operator %s", name.c_str());
  }
  /// What the core says of this, by itself.
  ForcedAnswer by_itself(const std::string& pattern, ForcedChoice choice) {
    auto explainer = PointExplainer::make(loader().result(), loader().index());
    if (!explainer) qFatal("%s", explainer.error().message().c_str());
    auto answer = (*explainer)->force({{pattern, choice}}, {});
    if (!answer) qFatal("%s", answer.error().message().c_str());
    return std::move(*answer);
  }
  QString lines(const std::vector<std::string>& all) {
    QString text;
    for (const std::string& line : all) text += QString::fromStdString(line) + u'\n';
    return text;
  }

  bool ready = false;
};

}  // namespace

class WhyWindowTest : public QObject {
  Q_OBJECT

  /// Asks by itself of a result, and knows what is got ready while nobody asks.
  struct Alone {
    explicit Alone(const ResultPtr& result) : explainer(tasks), plan{result, result->turning_point.value_or(0)} {
      connect(&tasks, &app::TaskManager::changed, &explainer, [this] {
        for (const app::TaskInfo& task : tasks.tasks())
          if (task.title == QStringLiteral("Ready for Why") && !task.stopping && begun.insert(task.id).second &&
              begun.size() == 1 && at_first)
            at_first();
      });
    }
    bool idle() {
      return QTest::qWaitFor([&] { return !tasks.busy() && !explainer.busy(); }, kLong_ms);
    }
    bool goes_on(quint64 id) {
      return std::ranges::any_of(tasks.tasks(), [&](const auto& task) { return task.id == id && !task.stopping; });
    }
    app::TaskManager tasks;
    app::Explainer explainer;
    app::PlacedPlan plan;
    std::set<quint64> begun;
    std::function<void()> at_first;
  };

 private slots:
  void a_click_on_the_graph_asks_and_the_core_answers() {
    Asking window;
    QVERIFY(window.ready);
    QVERIFY(window.why_of("layer1", "layer1/mlp/up"));
    QVERIFY(window.view()->isVisible());
    QVERIFY(window.idle());
    QCOMPARE(window.view()->part_box()->currentText(), QStringLiteral("layer1/mlp/up"));
    // What the plan is comes first, by itself.
    const auto story = story_of(*window.loader().result(), window.loader().index(), {});
    QVERIFY(story);
    QCOMPARE(window.view()->answer()->text(), window.lines(describe(*story, *window.loader().result())));
    // The choices are those that the operator has.
    auto explainer = PointExplainer::make(window.loader().result(), window.loader().index());
    QVERIFY(explainer);
    const auto choices = (*explainer)->choices(window.operator_named("layer1/mlp/up"), {});
    QVERIFY(choices);
    for (const ForcedChoice& choice : *choices)
      QVERIFY2(window.items().contains(QString::fromStdString(describe(choice))), describe(choice).c_str());
    QVERIFY(!window.items().contains(QStringLiteral("expert parallel 2")));

    QVERIFY(window.click_item(QStringLiteral("tensor parallel 4")));
    QVERIFY(window.idle());
    const ForcedAnswer answer = window.by_itself("layer1/mlp/up", {ForcedChoice::Kind::tensor, 4});
    QVERIFY(!answer.already && answer.same_memory.point.time_s > answer.point.time_s);
    QTest::mouseClick(window.button("why_copy"), Qt::LeftButton);
    QCOMPARE(QApplication::clipboard()->text(), window.lines(describe(answer, *window.loader().result())));
    QVERIFY(window.view()->words().contains(
        QString::fromStdString(slower_words(answer.same_memory.point.time_s, answer.point.time_s))));
    // Its price stays beside the question.
    QVERIFY(window.view()->list()->currentItem()->toolTip().contains(
        QString::fromStdString(slower_words(answer.same_memory.point.time_s, answer.point.time_s))));
  }

  void the_copied_commands_say_the_same_in_a_terminal() {
    Asking window;
    QVERIFY(window.ready);
    window.window->work().document.set_option("batch", 32, 0);
    window.window->work().document.set_option("offload", 0, 0);
    QVERIFY(window.settle());
    QVERIFY(window.why_of("layer0", "layer0/mlp/up"));
    QVERIFY(window.idle());
    auto* box = window.view()->part_box();
    const int layer = box->findText(QStringLiteral("layer0/* ("), Qt::MatchStartsWith);
    QVERIFY(layer > 0);
    box->setCurrentIndex(layer);
    emit box->activated(layer);
    QVERIFY(window.idle());
    for (const char* question : {"tensor parallel 2", "What this plan is", "least memory"}) {
      QVERIFY2(window.click_item(QString::fromLatin1(question)), question);
      QVERIFY(window.idle());
      QVERIFY2(!window.view()->answer()->refused, qPrintable(window.view()->words()));
      QTest::mouseClick(window.button("why_command"), Qt::LeftButton);
      QString commands = QApplication::clipboard()->text();
      QCOMPARE(commands.count(u'\n'), 2);
      commands.replace(QStringLiteral("turnpoint-cli"), QStringLiteral(TURNPOINT_BINARY_DIR "/turnpoint-cli"));
      QProcess shell;
      shell.setWorkingDirectory(window.folder.path());
      shell.start(QStringLiteral("sh"), {QStringLiteral("-ec"), commands});
      QVERIFY(shell.waitForFinished(kLong_ms));
      QVERIFY2(shell.exitCode() == 0, shell.readAllStandardError() + commands.toUtf8());
      const QString said = QString::fromUtf8(shell.readAllStandardOutput());
      QVERIFY2(said.endsWith(window.view()->answer()->text()), qPrintable(said + window.view()->answer()->text()));
    }
  }

  void the_newest_question_wins_and_a_stopped_one_says_so() {
    Asking window;
    QVERIFY(window.ready);
    QTest::mouseClick(window.child<QPushButton>("why_button"), Qt::LeftButton);
    QVERIFY(window.view()->isVisible());
    QVERIFY(window.idle());
    QVERIFY(window.click_item(QStringLiteral("tensor parallel 2")));
    QVERIFY(window.explainer().busy());
    QVERIFY(!window.view()->answer());  // what is on show never belongs to another question
    QVERIFY(window.button("why_stop")->isVisible());
    QVERIFY(window.click_item(QStringLiteral("tensor parallel 4")));
    QVERIFY(window.idle());
    QVERIFY(window.view()->words().contains(QStringLiteral("tensor parallel 4 in ")));
    QVERIFY(!window.button("why_stop")->isVisible());
    // Questions wait for what goes on before them, so that no answer can come before the stop.
    std::atomic<bool> held{true};
    window.window->work().tasks.start(
        QStringLiteral("why"), QStringLiteral("held"),
        [&held](const RunContext&) {
          while (held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        [](app::TaskOutcome) {});
    QVERIFY(window.click_item(QStringLiteral("context parallel 2")));
    QTest::mouseClick(window.button("why_stop"), Qt::LeftButton);
    held = false;
    QVERIFY(window.idle());
    QVERIFY(!window.view()->answer());
    QVERIFY(window.view()->words().contains(QStringLiteral("Stopped")));
    // It can be asked again.
    QVERIFY(window.click_item(QStringLiteral("context parallel 2")));
    QVERIFY(window.idle());
    QVERIFY(window.view()->words().contains(QStringLiteral("context parallel 2 in ")));
    // What has been answered is there at once.
    QVERIFY(window.click_item(QStringLiteral("tensor parallel 4")));
    QVERIFY(!window.explainer().busy());
    QVERIFY(window.view()->words().contains(QStringLiteral("tensor parallel 4 in ")));
  }

  void getting_ready_ends_with_its_plan() {
    Asking window;
    QVERIFY(window.ready);
    Alone alone(window.loader().result());
    bool went_on = true;
    alone.at_first = [&] {
      alone.explainer.set_plan({});
      went_on = alone.goes_on(*alone.begun.begin());
    };
    alone.explainer.set_plan(alone.plan);
    alone.explainer.ask({});
    QVERIFY(alone.idle());
    QCOMPARE(alone.begun.size(), std::size_t(1));
    QVERIFY(!went_on);
    // The same plan once more is got ready once more.
    alone.explainer.set_plan(alone.plan);
    alone.explainer.ask({});
    QVERIFY(alone.idle());
    QCOMPARE(alone.begun.size(), std::size_t(2));
    // What has been got ready stays so.
    alone.explainer.ask({{{"*", {ForcedChoice::Kind::tensor, 2}}}, {}, {}});
    QVERIFY(alone.idle());
    QVERIFY(alone.explainer.answer());
    QCOMPARE(alone.begun.size(), std::size_t(2));
  }

  void getting_ready_goes_on_after_a_question() {
    Asking window;
    QVERIFY(window.ready);
    Alone alone(window.loader().result());
    alone.at_first = [&] { alone.explainer.ask({{{"*", {ForcedChoice::Kind::tensor, 2}}}, {}, {}}); };
    alone.explainer.set_plan(alone.plan);
    alone.explainer.ask({});
    QVERIFY(alone.idle());
    QVERIFY(alone.explainer.answer());
    QCOMPARE(alone.begun.size(), std::size_t(2));
    // No choice is forced on plans with stages.
    QVERIFY(window.window->work().runner.add_split("pp=2"));
    QVERIFY(window.settle());
    Alone staged(window.window->work().runner.find("manual:pp=2")->result);
    staged.explainer.set_plan(staged.plan);
    staged.explainer.ask({});
    QVERIFY(staged.idle());
    QVERIFY(staged.explainer.answer() && staged.begun.empty());
  }

  void an_answer_is_about_the_plan_on_show() {
    Asking window;
    QVERIFY(window.ready);
    QTest::mouseClick(window.child<QPushButton>("why_button"), Qt::LeftButton);
    QVERIFY(window.idle());
    QVERIFY(window.click_item(QStringLiteral("tensor parallel 2")));
    QVERIFY(window.idle());
    action(window, "least_memory")->trigger();
    QVERIFY(window.settle());
    QVERIFY(QTest::qWaitFor([&] { return window.view()->answer() != nullptr; }, kLong_ms));
    const ForcedAnswer answer = window.by_itself("*", {ForcedChoice::Kind::tensor, 2});
    QCOMPARE(answer.index, std::size_t(0));
    QCOMPARE(window.view()->answer()->text(), window.lines(describe(answer, *window.loader().result())));
    // Another scenario: nothing of the old one stays.
    window.window->work().document.set_option("batch", 64, 0);
    QVERIFY(window.settle());
    QVERIFY(QTest::qWaitFor([&] { return window.view()->answer() && !window.explainer().busy(); }, kLong_ms));
    QCOMPARE(window.explainer().plan().result->scenario, window.window->work().document.scenario());
    QCOMPARE(window.view()->answer()->text(),
             window.lines(describe(window.by_itself("*", {ForcedChoice::Kind::tensor, 2}), *window.loader().result())));
  }

  void a_pinned_plan_of_another_scenario_stands_beside_it() {
    Asking window;
    QVERIFY(window.ready);
    action(window, "pin")->trigger();
    const ResultPtr first = window.loader().result();
    window.window->work().document.set_option("intra-bandwidth-scale", 0.25, 0);
    QVERIFY(window.settle());
    action(window, "turning_point")->trigger();
    QVERIFY(window.settle());
    QTest::mouseClick(window.child<QPushButton>("why_button"), Qt::LeftButton);
    QVERIFY(window.idle());
    QString pinned;
    for (const QString& text : window.items())
      if (text.startsWith(QStringLiteral("pinned: "))) pinned = text;
    QVERIFY2(window.click_item(pinned), qPrintable(window.items().join(u'\n')));
    QVERIFY(window.idle());
    const auto answer = window.view()->answer();
    QVERIFY2(answer && answer->difference, qPrintable(window.view()->words()));
    // The fastest of the pinned plans in as much memory, and the rows add up to the difference of the two.
    const ResultPoint& here = window.loader().result()->points[window.loader().index()];
    std::size_t best = 0;
    for (std::size_t i = 0; i < first->points.size(); ++i)
      if (first->points[i].memory_bytes <= here.memory_bytes) best = i;
    DifferenceParts sum;
    for (const auto& layer : answer->difference->layers) sum += layer.parts;
    QCOMPARE(sum.memory_bytes, first->points[best].memory_bytes - here.memory_bytes);
    QVERIFY(std::abs(sum.time_s() - (first->points[best].time_s - here.time_s)) <= 1e-9 * here.time_s);
    const auto* table = static_cast<views::DifferenceModel*>(window.view()->table()->model());
    QCOMPARE(table->index(0, views::DifferenceModel::memory).data().toString(), views::signed_memory(sum.memory_bytes));
    // No terminal says this of one file, and the button says so.
    QVERIFY(!window.button("why_command")->isEnabled());
    QVERIFY(!window.button("why_command")->toolTip().isEmpty());

    // On the graph: who differs, by the words that tell operators' treatment apart.
    QVERIFY(!answer->difference->changes.empty());
    QTest::mouseClick(window.button("why_graph"), Qt::LeftButton);
    auto* graph = part<views::GraphView>(window.window);
    QVERIFY(QTest::qWaitFor([&] { return graph->isVisible(); }, kLong_ms));
    QCOMPARE(graph->legend()->title(), QStringLiteral("Difference"));
    const Plan a = window.loader().result()->plans->sharding(window.loader().index()), b = first->plans->sharding(best);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < window.model().operators.size(); ++i)
      differ += words_of(window.model(), a.mesh, a.operators[i]) != words_of(window.model(), b.mesh, b.operators[i]);
    std::size_t coloured = 0;
    for (const auto& row : graph->legend()->rows())
      if (row.text == QStringLiteral("treated otherwise")) coloured = row.operators.size();
    QVERIFY(differ > 0);
    QCOMPARE(coloured, differ);
    // With the answer the colour goes.
    action(window, "least_memory")->trigger();
    QVERIFY(window.settle());
    QCOMPARE(graph->legend()->title(), QStringLiteral("Configuration"));
  }

  // Parts of unlike size: what the plan is, as the command line tells it, with the nearest of the other methods;
  // nothing takes the place of one type, and the graph's menu offers no question that has no answer.
  void plans_with_parts_of_unlike_size_are_told() {
    Asking asking;
    asking.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4+a100-80gb-1x2", 0);
    QVERIFY(QTest::qWaitFor([&] { return asking.model().name == "lenet"; }, kLong_ms));
    asking.window->work().runner.set_enabled_methods({"owt", "accpar"});
    QVERIFY(asking.settle());
    asking.window->work().document.selection().pick_point(views::PickedPoint{"owt", 0});
    QVERIFY(asking.settle());
    QPushButton* button = asking.child<QPushButton>("why_button");
    QVERIFY2(button->isEnabled(), qPrintable(button->toolTip()));
    QTest::mouseClick(button, Qt::LeftButton);
    QVERIFY(asking.idle());
    const ResultPtr result = asking.loader().result(), other = asking.window->work().runner.find("accpar")->result;
    const auto story = ratio_story_of(*result, 0, {other});
    QVERIFY(story && story->nearest);
    const views::ExplainedPtr answer = asking.explainer().answer();
    QVERIFY(answer && !answer->refused && answer->sentences == describe(*story, *result));
    QVERIFY(answer->why_no_command.contains(QStringLiteral("--method owt,accpar")));
    QVERIFY2(!asking.items().filter(QStringLiteral("moves parts by hand")).isEmpty(),
             qPrintable(asking.items().join(u'\n')));
    QVERIFY(asking.explainer().plan() && !asking.explainer().has_choices());
    const auto entries = [&](bool on) {
      auto* canvas = part<views::GraphView>(asking.window)->canvas();
      QStringList names;
      const QPoint at = canvas->to_device(canvas->scene()->cards.front().rect.center()).toPoint();
      QTimer::singleShot(50, canvas, [&] {
        auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
        if (!menu) return;
        for (QAction* entry : menu->actions())
          if (entry->objectName().startsWith(QStringLiteral("graph_why")) && entry->isEnabled() == on)
            names << entry->objectName();
        menu->close();
      });
      QContextMenuEvent event(QContextMenuEvent::Mouse, at, canvas->viewport()->mapToGlobal(at));
      QApplication::sendEvent(canvas->viewport(), &event);
      return names;
    };
    asking.window->docks().raise(QStringLiteral("graph"));
    QVERIFY(QTest::qWaitFor(
        [&] {
          auto* canvas = part<views::GraphView>(asking.window)->canvas();
          return canvas->isVisible() && canvas->scene() && !canvas->scene()->cards.empty();
        },
        kLong_ms));
    QVERIFY(asking.settle());
    QCOMPARE(entries(true), QStringList{QStringLiteral("graph_why")});
    asking.explainer().set_plan({});
    QCOMPARE(entries(false).front(), QStringLiteral("graph_why"));
    QVERIFY(entries(true).isEmpty());
  }

  void what_cannot_be_explained_says_why() {
    Real window;
    QVERIFY(window.open(window.random_graph(3, 40)));
    auto* why = window.child<QPushButton>("why_button");
    QVERIFY(!why->isEnabled());
    QVERIFY2(why->toolTip().contains(QStringLiteral("placements")), qPrintable(why->toolTip()));
    // A plan with stages is explained; choices for it are refused with the reason.
    Asking asking;
    QVERIFY(asking.ready);
    QVERIFY(asking.window->work().runner.add_split("pp=2"));
    QVERIFY(asking.settle());
    asking.window->work().document.selection().pick_point(views::PickedPoint{"manual:pp=2", 0});
    QVERIFY(asking.settle());
    QTest::mouseClick(asking.child<QPushButton>("why_button"), Qt::LeftButton);
    QVERIFY(asking.idle());
    QVERIFY2(asking.view()->words().contains(QStringLiteral("Pipeline parallel 2")),
             qPrintable(asking.view()->words()));
    QVERIFY2(!asking.items().filter(QStringLiteral("have no stages")).isEmpty(),
             qPrintable(asking.items().join(u'\n')));
  }
};

QTEST_MAIN(WhyWindowTest)
#include "why_window_test.moc"
