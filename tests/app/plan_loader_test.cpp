// SPDX-License-Identifier: Apache-2.0
// What happens to the plan of the picked point when tasks are stopped.
#include "app/plan_loader.h"

#include <QtTest>

#include "core/scenario/scenario.h"
#include "views/common/selection_model.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::app;
using namespace turnpoint::test;

namespace {

/// The loader alone, on the results of a window that has settled.
struct Loading {
  WindowFixture fixture;
  TaskManager tasks;
  views::SelectionModel selection;
  std::unique_ptr<PlanLoader> loader;

  bool open() {
    if (!fixture.open()) return false;
    loader = std::make_unique<PlanLoader>(fixture.runner(), tasks, selection);
    return true;
  }
  void pick(std::size_t index) { selection.pick_point(views::PickedPoint{"ft", index}); }
  bool comes_to_rest() {
    return QTest::qWaitFor([this] { return !tasks.busy(); }, 60000);
  }
};

}  // namespace

class PlanLoaderTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { QApplication::setStyle(QStringLiteral("Fusion")); }

  void a_stopped_load_is_made_up_for_by_the_next_pick() {
    Loading l;
    QVERIFY(l.open());
    l.pick(1);
    QVERIFY(QTest::qWaitFor([&] { return l.loader->up_to_date() && l.loader->plan(); }, 60000));
    QTest::qWait(2 * PlanLoader::kEvery_ms);
    const auto first = l.loader->plan();

    // One is being unrolled, the next one waits for it; both are stopped.
    fake_world().plan_ms = 900;
    l.pick(3);
    QTest::qWait(2 * PlanLoader::kEvery_ms);
    l.pick(5);
    QTest::qWait(2 * PlanLoader::kEvery_ms);
    QVERIFY(l.tasks.busy());
    l.tasks.cancel_all();
    QVERIFY(l.comes_to_rest());
    QCOMPARE(l.loader->plan(), first);
    QVERIFY(!l.loader->up_to_date());

    // The same point again: nothing in the selection changes, and it is loaded all the same.
    fake_world().plan_ms = 0;
    l.pick(5);
    QVERIFY(QTest::qWaitFor([&] { return l.loader->up_to_date(); }, 60000));
    QCOMPARE(l.loader->index(), std::size_t(5));
    QVERIFY(l.loader->plan() != first);
  }

  void picking_what_is_shown_again_loads_nothing() {
    Loading l;
    QVERIFY(l.open());
    l.pick(2);
    QVERIFY(QTest::qWaitFor([&] { return l.loader->up_to_date() && l.loader->plan(); }, 60000));
    QTest::qWait(2 * PlanLoader::kEvery_ms);
    const auto started = l.tasks.started();
    l.pick(2);
    QTest::qWait(2 * PlanLoader::kEvery_ms);
    QCOMPARE(l.tasks.started(), started);
  }
};

QTEST_MAIN(PlanLoaderTest)
#include "plan_loader_test.moc"
