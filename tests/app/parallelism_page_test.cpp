// SPDX-License-Identifier: Apache-2.0
// The parallelism tab in the real window on the fake backend: when it searches, what it keeps, what it says, and that
// every edit can be undone.
#include <QComboBox>
#include <QDockWidget>
#include <QDoubleSpinBox>
#include <QFile>
#include <QPushButton>
#include <QToolButton>
#include <QtTest>

#include "app/tabs/parallelism_tab.h"
#include "views/common/format.h"
#include "views/common/toggle_button.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;
using State = views::ParallelismPoint::State;

namespace {

struct Tab : WindowFixture {
  views::ParallelismView& view() { return *part<views::ParallelismView>(window); }
  app::ParallelismTab& page() { return *tab<app::ParallelismTab>(window); }
  const views::ParallelismData& data() { return view().chart()->data(); }
  QDockWidget* dock() { return window->findChild<QDockWidget*>(QStringLiteral("parallelism")); }
  /// Raises the tab and waits for all of its counts.
  bool look() {
    dock()->raise();
    return QTest::qWaitFor([&] { return data().counts.size() > 1 && page().settled() && window->work().settled(); },
                           60000);
  }
  void look_away() {
    window->findChild<QDockWidget*>(QStringLiteral("graph"))->raise();
    QTest::qWait(20);
  }
  const views::ParallelismLine* line(const char* method) {
    for (const auto& each : data().lines)
      if (each.method == method) return &each;
    return nullptr;
  }
};

}  // namespace

class ParallelismPageTest : public QObject {
  Q_OBJECT

 private slots:
  void nothing_is_searched_until_somebody_looks() {
    Tab tab;
    QVERIFY(tab.open());
    QCOMPARE(tab.page().searches(), 0);
    QVERIFY(tab.look());
    QCOMPARE(tab.page().searches(), 1);
    QCOMPARE(tab.data().counts, (std::vector<int>{1, 2, 4, 8, 16}));
    QCOMPARE(tab.data().devices, 16);
    QVERIFY(tab.data().complete());
    for (const char* method : {"ft", "data-parallel", "optcnn"}) {
      QVERIFY(tab.line(method));
      QCOMPARE(tab.line(method)->points.size(), std::size_t(5));
    }
    QVERIFY(!tab.line("layered-expert"));  // not checked
    QVERIFY(tab.line("ft")->at(8)->fits());
    QCOMPARE(tab.line("data-parallel")->at(8)->state, State::does_not_fit);
  }

  void the_charts_own_answer_is_not_searched_again() {
    Tab tab;
    QVERIFY(tab.open());
    const int before = fake_world().exact_runs;
    QVERIFY(tab.look());
    QCOMPARE(fake_world().exact_runs - before, 4);  // 1, 2, 4 and 8; 16 is the chart's
    const app::MethodRun* run = tab.runner().find("ft");
    const auto fastest = run->result->fastest_that_fits();
    QCOMPARE(tab.line("ft")->at(16)->time_s, run->result->points[*fastest].time_s);
  }

  void a_count_can_be_taken_and_taken_back() {
    Tab tab;
    QVERIFY(tab.open());
    QVERIFY(tab.look());
    const int searches = tab.page().searches();
    tab.view().chart()->set_picked(4);
    QCOMPARE(tab.view().use_button()->text(), QStringLiteral("Use 4 devices"));
    tab.view().use_button()->click();
    QVERIFY(QTest::qWaitFor([&] { return tab.scenario_settings().devices == 4; }, 60000));
    QVERIFY(tab.settle());
    QCOMPARE(tab.data().devices, 4);
    QCOMPARE(tab.data().counts, (std::vector<int>{1, 2, 4, 8, 16}));  // still up to the whole hardware
    QCOMPARE(tab.page().searches(), searches);                        // all of it is known
    tab.document().undo_stack().undo();
    QVERIFY(QTest::qWaitFor([&] { return tab.document().scenario()->cluster->devices() == 16; }, 60000));
    QCOMPARE(tab.data().devices, 16);
  }

  void a_price_is_typed_kept_and_undone_without_a_search() {
    Tab tab;
    QVERIFY(tab.open());
    QVERIFY(tab.look());
    QVERIFY(!tab.data().cheapest());
    const int searches = tab.page().searches(), exact = fake_world().exact_runs, coarse = fake_world().coarse_runs;
    tab.view().price_box()->setValue(1.24);
    QVERIFY(tab.settle());
    QCOMPARE(*tab.data().price_per_hour, 1.24);
    QVERIFY(tab.data().cheapest());
    QCOMPARE(tab.page().searches(), searches);
    QCOMPARE(fake_world().exact_runs.load(), exact);
    QCOMPARE(fake_world().coarse_runs.load(), coarse);
    QVERIFY(tab.runner().up_to_date());
    const QString path = tab.folder.filePath(QStringLiteral("priced.turnpoint"));
    QVERIFY(tab.window->sessions().save(path));
    tab.document().undo_stack().undo();
    QVERIFY(tab.settle());
    QVERIFY(!tab.data().price_per_hour);
    QCOMPARE(tab.view().price_box()->value(), 0.0);
    tab.window->sessions().open(path);
    QVERIFY(tab.settle());
    QCOMPARE(tab.scenario_settings().price_per_hour, 1.24);
    QCOMPARE(tab.view().price_box()->value(), 1.24);
  }

  void a_slider_makes_the_tab_follow_with_the_old_lines_dashed() {
    Tab tab;
    QVERIFY(tab.open());
    QVERIFY(tab.look());
    const double before = tab.line("ft")->at(8)->time_s;
    tab.document().set_option("intra-bandwidth-scale", 0.25, 0);
    QVERIFY(tab.line("ft")->at(8)->coarse);  // still there, but of another scenario
    QCOMPARE(tab.line("ft")->at(8)->time_s, before);
    QVERIFY(tab.look());
    QVERIFY(tab.line("ft")->at(8)->time_s > before);
    QVERIFY(tab.data().complete());
  }

  void the_newest_request_wins_and_hidden_tabs_rest() {
    Tab tab;
    QVERIFY(tab.open());
    fake_world().exact_ms = 1000;  // longer than any pause between two searches
    tab.dock()->raise();
    QVERIFY(QTest::qWaitFor([&] { return tab.page().searches() == 1; }, 60000));
    QVERIFY(QTest::qWaitFor([&] { return tab.line("ft") && tab.line("ft")->at(8)->fits(); }, 60000));
    QTest::qWait(400);  // the sketches are over, an exact search is on its way
    const int cancelled = fake_world().cancelled_runs;
    tab.document().set_option("latency-scale", 4, 0);
    fake_world().exact_ms = 150;
    QVERIFY(tab.look());
    QVERIFY(fake_world().cancelled_runs > cancelled);
    QVERIFY(tab.data().complete());
    // Looking away stops the work; looking again goes on with what is missing.
    tab.document().set_option("latency-scale", 2, 0);
    QVERIFY(QTest::qWaitFor([&] { return tab.runner().settled() && tab.page().searches() >= 3; }, 60000));
    tab.look_away();
    QVERIFY(QTest::qWaitFor([&] { return !tab.window->work().tasks.busy(); }, 60000));
    QVERIFY(tab.look());
    QVERIFY(tab.data().complete());
  }

  void it_can_be_stopped_and_resumed() {
    Tab tab;
    fake_world().exact_ms = 400;
    QVERIFY(tab.open());
    tab.dock()->raise();
    QVERIFY(QTest::qWaitFor([&] { return tab.view().state_words().contains(QStringLiteral("searching")); }, 60000));
    tab.view().run_button()->click();
    QVERIFY(QTest::qWaitFor([&] { return tab.view().state_words() == QStringLiteral("stopped"); }, 60000));
    QVERIFY(!tab.data().complete());
    QVERIFY(!tab.window->work().tasks.busy());
    fake_world().exact_ms = 5;
    tab.view().run_button()->click();
    QVERIFY(tab.look());
    QVERIFY(tab.data().complete());
    QVERIFY(tab.view().run_button()->isHidden());
  }

  void failures_of_batches_are_said_in_words() {
    Tab tab;
    QVERIFY(tab.open());
    tab.view().batch_button()->click();
    fake_world().fail_search = true;
    tab.dock()->raise();
    QVERIFY(QTest::qWaitFor([&] { return tab.page().settled() && tab.page().batch_searches() == 1; }, 60000));
    // Of one batch after the other: the method has no answer on any count.
    QCOMPARE(tab.line("ft")->at(8)->state, State::refused);
    QVERIFY(tab.line("ft")->at(8)->reason.contains(QStringLiteral("tables do not agree")));
    QVERIFY2(tab.data().nothing.contains(QStringLiteral("tables do not agree")), qPrintable(tab.data().nothing));
    fake_world().fail_search = false;
    tab.document().set_option("accounting", 1, 0);
    QVERIFY(tab.look());
    QVERIFY(tab.line("ft")->at(8)->fits());
  }

  void failures_are_said_in_words() {
    Tab tab;
    QVERIFY(tab.open());
    fake_world().fail_search = true;
    tab.dock()->raise();
    QVERIFY(QTest::qWaitFor([&] { return tab.page().settled() && tab.page().searches() == 1; }, 60000));
    QVERIFY2(tab.view().state_words().contains(QStringLiteral("tables do not agree")),
             qPrintable(tab.view().state_words()));
    QCOMPARE(tab.line("ft")->at(8)->state, State::failed);
    fake_world().fail_search = false;
    tab.view().run_button()->click();
    QVERIFY(tab.look());
    QVERIFY(tab.line("ft")->at(8)->fits());
  }

  void empty_states_have_words() {
    Tab tab;
    tab.dock()->raise();
    QTest::qWait(30);
    QVERIFY(tab.data().nothing.contains(QStringLiteral("Open a model")));
    QVERIFY(tab.open());
    for (const char* method : {"ft", "data-parallel", "optcnn"}) tab.runner().set_enabled(method, false);
    QVERIFY(QTest::qWaitFor([&] { return tab.runner().settled(); }, 60000));
    QVERIFY2(tab.data().nothing.contains(QStringLiteral("No method")), qPrintable(tab.data().nothing));
  }

  void more_devices_than_the_hardware_has() {
    Tab tab;
    QVERIFY(tab.open());
    QVERIFY(tab.look());
    QComboBox* box = tab.view().range_box();
    QCOMPARE(box->currentData().toInt(), 16);
    const int index = box->findData(64);
    QVERIFY(index > 0);
    box->setCurrentIndex(index);
    emit box->activated(index);
    QVERIFY(tab.look());
    QCOMPARE(tab.data().counts.back(), 64);
    QVERIFY(tab.data().complete());
    const QString path = tab.folder.filePath(QStringLiteral("wide.turnpoint"));
    QVERIFY(tab.window->sessions().save(path));
    tab.window->sessions().open(path);
    QVERIFY(tab.settle());
    QVERIFY(tab.look());
    QCOMPARE(tab.data().counts.back(), 64);
  }

  /// Under the papers' accounting plain sums say what fits, so that the answers follow from the fake's formula: 256
  /// samples need 2.5 GiB at least with ft, and 2.5 + 14 x 1.45 GiB in data-parallel's one plan.
  void the_largest_batch_of_every_count_and_method() {
    Tab tab;
    QVERIFY(tab.open());
    tab.document().set_option("accounting", 1, 0);
    QVERIFY(tab.look());
    QVERIFY(!tab.data().largest_batch);
    const int searches = tab.page().searches();
    QCOMPARE(tab.page().batch_searches(), 0);
    tab.view().batch_button()->click();
    QVERIFY(tab.data().largest_batch);
    QVERIFY(tab.look());
    QCOMPARE(tab.page().batch_searches(), 1);
    QCOMPARE(tab.page().searches(), searches);
    const double room = double(tab.data().memory_limit) / 1073741824.0;
    for (const auto& [method, gib] : {std::pair("ft", 2.5), std::pair("data-parallel", 2.5 + 14 * 1.45)}) {
      QVERIFY(tab.line(method));
      QCOMPARE(tab.line(method)->points.size(), std::size_t(5));
      for (const auto& point : tab.line(method)->points) {
        QVERIFY2(point.fits() && !point.coarse, qPrintable(point.reason));
        const double most = room / gib * 256;
        QVERIFY2(double(point.batch) <= most && double(point.batch) >= most * 15 / 16 - point.devices,
                 qPrintable(QStringLiteral("%1: %2 of %3").arg(method).arg(point.batch).arg(most)));
        QVERIFY2(point.bound.contains(QStringLiteral("a batch of %1 fits").arg(point.batch)), qPrintable(point.bound));
        QVERIFY(point.memory_bytes <= tab.data().memory_limit);
      }
    }
    const std::int64_t batch = tab.line("ft")->at(8)->batch;
    // Back to the times, and to the batches again: nothing is searched twice.
    tab.view().batch_button()->click();
    QVERIFY(tab.look());
    QCOMPARE(tab.line("ft")->at(8)->batch, std::int64_t(0));
    tab.view().batch_button()->click();
    QVERIFY(tab.look());
    QCOMPARE(tab.page().batch_searches(), 1);
    // Devices and batch can be taken together, and are one step to undo.
    tab.view().chart()->set_picked(8);
    QCOMPARE(tab.view().use_button()->text(),
             QStringLiteral("Use 8 devices, batch %1").arg(views::grouped_number(double(batch), 0)));
    tab.view().use_button()->click();
    QVERIFY(QTest::qWaitFor([&] { return tab.document().scenario()->settings.batch == batch; }, 60000));
    QCOMPARE(tab.document().scenario()->cluster->devices(), 8);
    tab.document().undo_stack().undo();
    QVERIFY(QTest::qWaitFor([&] { return tab.document().scenario()->settings.batch == 256; }, 60000));
    QCOMPARE(tab.document().scenario()->cluster->devices(), 16);
  }

  void batches_belong_to_their_scenario() {
    Tab tab;
    QVERIFY(tab.open());
    tab.document().set_option("accounting", 1, 0);
    tab.view().batch_button()->click();
    QVERIFY(tab.look());
    const std::int64_t before = tab.line("ft")->at(8)->batch;
    QVERIFY(before > 0);
    tab.document().set_memory_limit(std::int64_t(4) << 30, 0);
    QVERIFY(tab.line("ft")->at(8)->coarse);  // still there, but of another scenario
    QCOMPARE(tab.line("ft")->at(8)->batch, before);
    QVERIFY(QTest::qWaitFor([&] { return tab.page().batch_searches() == 2; }, 60000));
    QVERIFY(tab.look());
    QVERIFY(!tab.line("ft")->at(8)->coarse);
    QVERIFY(tab.line("ft")->at(8)->batch < before);
    // A session remembers what is shown.
    const QString path = tab.folder.filePath(QStringLiteral("batches.turnpoint"));
    QVERIFY(tab.window->sessions().save(path));
    tab.view().batch_button()->click();
    tab.window->sessions().open(path);
    QVERIFY(tab.settle());
    QVERIFY(tab.view().batch_button()->isChecked());
  }

  void a_search_for_batches_can_be_stopped_left_and_resumed() {
    Tab tab;
    QVERIFY(tab.open());
    tab.document().set_option("accounting", 1, 0);
    fake_world().other_ms = 400;
    tab.view().batch_button()->click();
    tab.dock()->raise();
    QVERIFY(QTest::qWaitFor([&] { return tab.view().state_words().contains(QStringLiteral("searching")); }, 60000));
    tab.view().run_button()->click();
    QVERIFY(QTest::qWaitFor([&] { return tab.view().state_words() == QStringLiteral("stopped"); }, 60000));
    QVERIFY(!tab.data().complete());
    QVERIFY(QTest::qWaitFor([&] { return !tab.window->work().tasks.busy(); }, 60000));
    tab.view().run_button()->click();
    QVERIFY(QTest::qWaitFor([&] { return tab.view().state_words().contains(QStringLiteral("searching")); }, 60000));
    tab.look_away();
    QVERIFY(QTest::qWaitFor([&] { return !tab.window->work().tasks.busy(); }, 60000));
    QVERIFY(!tab.page().batch_searches() || tab.page().settled());
    fake_world().other_ms = 5;
    QVERIFY(tab.look());
    QVERIFY(tab.data().complete());
    QVERIFY(tab.view().run_button()->isHidden());
    fake_world().other_ms = 10;
  }

  void files_are_written() {
    Tab tab;
    QVERIFY(tab.open());
    QVERIFY(tab.look());
    const QString csv = tab.folder.filePath(QStringLiteral("p.csv")),
                  svg = tab.folder.filePath(QStringLiteral("p.svg"));
    QVERIFY(tab.page().export_to(csv));
    QVERIFY(tab.page().export_to(svg));
    QFile file(csv);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll().count('\n'), 1 + 3 * 5);
    QVERIFY(QFile::exists(svg));
    QVERIFY(!tab.page().export_to(tab.folder.filePath(QStringLiteral("absent/p.csv"))));
    if (const QString pictures = qEnvironmentVariable("TURNPOINT_PICTURES"); !pictures.isEmpty()) {
      tab.view().price_box()->setValue(1.24);
      QVERIFY(tab.look());
      QVERIFY(tab.window->grab().save(pictures + QStringLiteral("/window-parallelism.png")));
    }
  }
};

QTEST_MAIN(ParallelismPageTest)
#include "parallelism_page_test.moc"
