// SPDX-License-Identifier: Apache-2.0
// What the window says of answers to a scenario that was changed since, of pinned frontiers, and of its keys.
#include <QLabel>
#include <QUndoStack>

#include "app/actions.h"
#include "app/help_pages.h"
#include "views/comparison/comparison_model.h"
#include "views/comparison/comparison_view.h"
#include "views/scenario/methods_model.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

class ChangedScenarioTest : public QObject {
  Q_OBJECT

 private slots:
  void other_methods_are_stale_until_they_have_answered_again() {
    WindowFixture f;
    QVERIFY(f.open());
    const auto stale = [&] {
      int count = 0;
      for (const views::ChartSeries& series : f.chart().data().series) count += series.stale;
      return count;
    };
    const auto ticks = [&] {
      const views::MethodsModel* model = part<views::ScenarioPanel>(f.window)->methods_model();
      int count = 0;
      for (int row = 0; row < model->rowCount(); ++row)
        count += model->index(row).data(views::MethodsModel::kStateRole).toInt() == int(views::MethodRow::State::done);
      return count;
    };
    QCOMPARE(stale(), 0);
    const int all = ticks();
    QVERIFY(all >= 3);
    fake_world().other_ms = 200;
    f.document().set_option("intra-bandwidth-scale", 0.5, 0);
    QCOMPARE(stale(), int(f.chart().data().series.size()) - 1);
    QVERIFY(!f.chart().data().subject()->stale);
    QVERIFY(ticks() <= 1);
    QVERIFY(f.settle());
    QCOMPARE(stale(), 0);
    QCOMPARE(ticks(), all);
    // Undone, it was answered before.
    f.document().undo_stack().undo();
    QCOMPARE(stale(), 0);
    QVERIFY(f.settle());
    QCOMPARE(ticks(), all);
  }

  // Whoever picked the point where the curve bends has it picked again when the curve bends elsewhere.
  void a_picked_turning_point_stays_the_turning_point() {
    WindowFixture f;
    QVERIFY(f.open());
    const auto turning = [&] { return f.chart().data().subject()->result->turning_point; };
    const auto before = turning();
    QVERIFY(before.has_value());
    f.document().selection().pick_point(views::PickedPoint{"ft", *before});
    f.document().set_option("device-memory-scale", 0.5, 0);
    QVERIFY(f.settle());
    QVERIFY(turning().has_value() && turning() != before);
    QVERIFY(turning() != f.chart().data().subject()->result->fastest_that_fits());
    QCOMPARE(f.document().selection().point()->method, std::string("ft"));
    QCOMPARE(f.document().selection().point()->index, *turning());
  }

  void the_table_says_whose_answer_is_whose() {
    WindowFixture f;
    QVERIFY(f.open());
    using Model = views::ComparisonModel;
    const Model* table = part<views::ComparisonView>(f.window)->findChild<Model*>();
    QVERIFY(table);
    const auto cell = [&](const char* method, int column) {
      return table->index(table->row_of(method), column).data().toString();
    };
    QCOMPARE(cell("optcnn", Model::answer), QStringLiteral("exact"));
    fake_world().other_ms = 300;
    f.document().set_option("intra-bandwidth-scale", 0.5, 0);
    QVERIFY(f.settle());
    f.document().set_option("intra-bandwidth-scale", 0.25, 0);
    for (const char* method : {"ft", "optcnn", "data-parallel"}) {
      QVERIFY2(cell(method, Model::answer).contains(QStringLiteral("\u00D70.50")),
               qPrintable(cell(method, Model::answer)));
      QVERIFY(cell(method, Model::against_best).isEmpty());
    }
    QCOMPARE(table->best_row(), -1);
    QCOMPARE(f.chart().data().find("optcnn")->of, QStringLiteral("Intra-node bandwidth \u00D70.50"));
    QVERIFY(f.settle());
    QCOMPARE(cell("optcnn", Model::answer), QStringLiteral("exact"));
    QVERIFY(table->best_row() >= 0);
    // A curve whose search was stopped is as old as everything else.
    fake_world().coarse_ms = 2000;
    f.document().set_option("intra-bandwidth-scale", 2, 0);
    f.runner().stop_all();
    QVERIFY(QTest::qWaitFor([&] { return f.runner().settled() && !f.window->work().tasks.busy(); }, 60000));
    QVERIFY(f.chart().data().subject()->stale);
    QVERIFY(cell("ft", Model::answer).startsWith(QStringLiteral("of ")));
  }

  void a_pinned_frontier_is_named_by_what_differs() {
    WindowFixture f;
    QVERIFY(f.open());
    f.document().set_option("intra-bandwidth-scale", 0.5, 0);
    QVERIFY(f.settle());
    f.window->findChild<QAction*>(QStringLiteral("pin"))->trigger();
    const QString batch = QStringLiteral("batch %1").arg(f.document().scenario()->model->batch);
    QCOMPARE(f.chart().data().pinned.size(), std::size_t(1));
    QVERIFY(!f.chart().data().pinned[0].label.contains(batch));
    QVERIFY(!f.chart().data().pinned[0].label.isEmpty());
    f.document().set_option("batch", 2.0 * double(f.document().scenario()->model->batch), 0);
    QVERIFY(f.settle());
    QVERIFY2(f.chart().data().pinned[0].label.endsWith(batch), qPrintable(f.chart().data().pinned[0].label));
  }

  void the_page_of_keys_is_complete() {
    const QString page = app::shortcut_page({QStringLiteral("Graph"), QStringLiteral("Timeline")});
    for (const app::ActionRecord& record : app::action_table())
      if (*record.shortcut) QVERIFY2(page.contains(QString::fromUtf8(record.text).toHtmlEscaped()), record.text);
    for (const char* words : {"Ctrl+1", "Ctrl+2", "Timeline", "In the graph", "In the chart", "Backspace"})
      QVERIFY2(page.contains(QLatin1String(words)), words);
    QVERIFY(!page.contains(QStringLiteral("Ctrl+3")));
  }

  void a_narrow_window_has_a_status_bar_of_whole_words() {
    WindowFixture f;
    QVERIFY(f.open());
    f.window->resize(1000, 700);  // as narrow as it gets
    QVERIFY(f.settle());
    QTest::qWait(1200);  // it is brought up to date every second
    const int right = f.window->width();
    for (const char* name : {"status_state", "status_messages"}) {
      const auto* label = f.window->findChild<QLabel*>(QLatin1String(name));
      QVERIFY2(label->isVisible() && label->width() >= label->minimumSizeHint().width(), name);
      QVERIFY2(label->mapTo(f.window.get(), label->rect().topRight()).x() < right, name);
    }
    QVERIFY(!f.window->findChild<QLabel*>(QStringLiteral("status_seed"))->isVisible());
    f.window->resize(1600, 1000);
    QTRY_VERIFY(f.window->findChild<QLabel*>(QStringLiteral("status_seed"))->isVisible());
  }
};

QTEST_MAIN(ChangedScenarioTest)
#include "changed_scenario_test.moc"
