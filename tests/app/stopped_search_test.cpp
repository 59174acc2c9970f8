// SPDX-License-Identifier: Apache-2.0
// What the user stops in the real window on the real core: the best placement until then is drawn, in Parallelism and
// among pinned frontiers too, is said to be that, and is searched again when asked for.
#include <QDockWidget>
#include <QToolButton>
#include <QtTest>
#include <algorithm>

#include "app/pinned_searches.h"
#include "app/session.h"
#include "app/tabs/parallelism_tab.h"
#include "core/search/placement_search.h"
#include "real_window.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Whoever does not stop these waits for minutes.
const char* const kEndless = "simulated-annealing:calls=1000000000";

bool waits_for_phase(Real& real, const QString& purpose, const QString& words) {
  const auto there = [&] {
    const auto tasks = real.window->work().tasks.tasks();
    return std::any_of(tasks.begin(), tasks.end(), [&](const app::TaskInfo& task) {
      return task.purpose == purpose && task.phase.contains(words) && !task.waiting;
    });
  };
  return QTest::qWaitFor(there, 60000 * test::kSanitizerFactor);
}

}  // namespace

class StoppedSearchTest : public QObject {
  Q_OBJECT

 private slots:
  /// Frontier methods are asked for a sketch first, which of a placement method is the whole search.
  void the_chart_has_the_best_until_then() {
    Real real;
    QVERIFY(real.open(real.random_graph(3, 60)));
    auto& work = real.window->work();
    for (const char* name : {kEndless, "random-search:calls=1000000000"}) {
      QVERIFY(work.runner.add_split(name).has_value());
      QVERIFY(waits_for_phase(real, app::search_purpose(name), QString()));
      QTest::qWait(300);
      work.runner.cancel(name);
      QVERIFY(real.settle());
      const app::MethodRun* run = work.runner.find(name);
      QVERIFY(run->state == app::MethodRun::State::cancelled);
      QVERIFY(run->result && search::stopped_early(*run->result));
      QVERIFY(!run->result->points.empty() && !run->coarse);
      QVERIFY(run->result->points.back().peak_communication_bytes.has_value());
    }
    work.runner.search(kEndless);
    QVERIFY(waits_for_phase(real, app::search_purpose(kEndless), QStringLiteral("annealing")));
    work.tasks.cancel_all();
    QVERIFY(real.settle());
  }

  void parallelism_keeps_it_too() {
    Real real;
    QVERIFY(real.open(real.random_graph(4, 60)));
    auto& work = real.window->work();
    const std::vector<app::MethodRun>& runs = work.runner.runs();
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i].enabled) work.runner.set_enabled(runs[i].name, false);
    QVERIFY(work.runner.add_split(kEndless).has_value());
    QVERIFY(waits_for_phase(real, app::search_purpose(kEndless), QStringLiteral("annealing")));
    work.runner.cancel(kEndless);
    QVERIFY(real.settle());
    auto* view = part<views::ParallelismView>(real.window);
    const auto point = [&](int devices) -> views::ParallelismPoint {
      for (const auto& line : view->chart()->data().lines)
        if (line.method == kEndless && line.at(devices)) return *line.at(devices);
      return {};
    };
    const int own = work.document.scenario()->cluster->devices();
    real.child<QDockWidget>("parallelism")->raise();
    // Its own count is the chart's answer; of the others the first is searched until it is stopped.
    QVERIFY(waits_for_phase(real, QStringLiteral("parallelism"), QStringLiteral("annealing")));
    QVERIFY(point(own).stopped && point(own).fits() && !point(own).coarse);
    const auto counts = view->chart()->data().counts;
    view->run_button()->click();
    QVERIFY(real.settle());
    const int first = counts.front() == own ? counts[1] : counts.front();
    QVERIFY(point(first).stopped && point(first).fits() && point(first).time_s > 0);
    QVERIFY(views::column_text(view->chart()->data(), first).contains(QStringLiteral("stopped early")));
    QVERIFY(!view->chart()->data().complete());
    QCOMPARE(view->state_words(), QStringLiteral("stopped"));
    int pending = 0;
    for (const int count : counts) pending += point(count).state == views::ParallelismPoint::State::pending;
    QCOMPARE(pending, int(counts.size()) - 2);
    // Resumed, both are searched again, and what there was is on show meanwhile.
    view->run_button()->click();
    QVERIFY(waits_for_phase(real, QStringLiteral("parallelism"), QStringLiteral("annealing")));
    QVERIFY(point(first).stopped && point(first).fits());
    view->run_button()->click();
    QVERIFY(real.settle());
  }

  void pinned_frontiers_keep_it_too() {
    Real real;
    QVERIFY(real.open(real.random_graph(5, 60)));
    auto& work = real.window->work();
    const QString path = real.folder.filePath(QStringLiteral("pinned.turnpoint"));
    QVERIFY(real.window->sessions().save(path));
    auto session = app::load_session(path.toStdString());
    QVERIFY(session.has_value());
    session->searches = {{"annealed", kEndless, session->scenario}};
    QVERIFY(app::save_session(*session, path.toStdString()));
    real.window->sessions().open(path);
    for (int time = 0; time < 2; ++time) {
      QVERIFY(waits_for_phase(real, QStringLiteral("pinned_searches"), QStringLiteral("annealing")));
      work.tasks.cancel_purpose(QStringLiteral("pinned_searches"));
      QVERIFY(real.settle());
      QCOMPARE(work.document.pinned().size(), std::size_t(1));
      QCOMPARE(work.document.pinned()[0].label, QStringLiteral("annealed, stopped early"));
      QVERIFY(!work.document.pinned()[0].points.empty());
      // It is still to be searched, and so is it when the session is opened again, without being pinned twice.
      QCOMPARE(work.pinned_searches.waiting().size(), std::size_t(1));
      QVERIFY(real.window->sessions().save(path));
      if (time == 0) real.window->sessions().open(path);
    }
  }
};

QTEST_MAIN(StoppedSearchTest)
#include "stopped_search_test.moc"
