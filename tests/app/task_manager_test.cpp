// SPDX-License-Identifier: Apache-2.0
#include <QSignalSpy>
#include <QTest>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "app/task_manager.h"

using namespace turnpoint;
using namespace turnpoint::app;

namespace {

/// Works until stopped or until `ms` are over.
TaskManager::Work work_for(int ms, std::atomic<int>* ran = nullptr) {
  return [ms, ran](const RunContext& context) {
    if (ran) ++*ran;
    for (int i = 0; i < ms && !context.cancelled(); ++i) {
      context.report("step", static_cast<double>(i) / ms);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
}

}  // namespace

class TaskManagerTest : public QObject {
  Q_OBJECT

 private slots:
  void progress_does_not_fall_within_a_phase() {
    TaskManager tasks;
    std::atomic<int> step = 0;
    bool done = false;
    tasks.start(
        QStringLiteral("a"), QStringLiteral("A"),
        [&](const RunContext& context) {
          const std::pair<const char*, double> reports[] = {{"exact", 0.9}, {"exact", 0.5},  {"bounds", -1},
                                                            {"exact", 0.6}, {"exact", 0.95}, {"points", 0.1}};
          for (int i = 0; i < 6; ++i) {
            context.report(reports[i].first, reports[i].second);
            step = i + 1;
            while (step == i + 1 && !context.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        },
        [&](TaskOutcome) { done = true; });
    for (const double shown : {0.9, 0.9, 0.9, 0.9, 0.95, 0.1}) {
      QTRY_VERIFY(step.load() % 100 != 0 && step < 100);
      QCOMPARE(tasks.newest()->fraction, shown);
      step = 100;
    }
    QTRY_VERIFY(done);
  }

  void finishes_on_the_interface_thread() {
    TaskManager tasks;
    std::optional<TaskOutcome> outcome;
    QThread* where = nullptr;
    tasks.start(QStringLiteral("a"), QStringLiteral("A"), work_for(5), [&](TaskOutcome o) {
      outcome = o;
      where = QThread::currentThread();
    });
    QVERIFY(tasks.busy());
    QTRY_VERIFY(outcome.has_value());
    QCOMPARE(*outcome, TaskOutcome::finished);
    QCOMPARE(where, QThread::currentThread());
    QVERIFY(!tasks.busy());
  }

  void newest_of_a_purpose_wins() {
    TaskManager tasks;
    std::atomic<int> ran = 0;
    QList<TaskOutcome> outcomes;
    for (int i = 0; i < 20; ++i)
      tasks.start(QStringLiteral("a"), QStringLiteral("A"), work_for(2000, &ran),
                  [&](TaskOutcome o) { outcomes << o; });
    tasks.start(QStringLiteral("a"), QStringLiteral("last"), work_for(1, &ran), [&](TaskOutcome o) { outcomes << o; });
    QTRY_COMPARE(outcomes.size(), 21);
    QCOMPARE(outcomes.count(TaskOutcome::superseded), 20);
    QCOMPARE(outcomes.count(TaskOutcome::finished), 1);
    QCOMPARE(ran.load(), 2);
  }

  void a_short_pass_may_finish() {
    TaskManager tasks;
    QList<TaskOutcome> outcomes;
    tasks.start(QStringLiteral("a"), QStringLiteral("coarse"), work_for(30), [&](TaskOutcome o) { outcomes << o; });
    tasks.start(
        QStringLiteral("a"), QStringLiteral("next"), work_for(1), [&](TaskOutcome o) { outcomes << o; },
        Preempt::let_it_finish);
    QTRY_COMPARE(outcomes.size(), 2);
    QCOMPARE(outcomes, (QList<TaskOutcome>{TaskOutcome::finished, TaskOutcome::finished}));
  }

  void cancel_returns_within_a_tenth_of_a_second() {
    TaskManager tasks;
    std::optional<TaskOutcome> outcome;
    const quint64 id =
        tasks.start(QStringLiteral("a"), QStringLiteral("A"), work_for(60000), [&](TaskOutcome o) { outcome = o; });
    QTest::qWait(20);
    tasks.cancel(id);
    QTRY_VERIFY(outcome.has_value());
    QCOMPARE(*outcome, TaskOutcome::cancelled);
  }

  void purposes_run_side_by_side_and_are_listed() {
    TaskManager tasks;
    tasks.start(QStringLiteral("a"), QStringLiteral("A"), work_for(500), {});
    tasks.start(QStringLiteral("b"), QStringLiteral("B"), work_for(500), {});
    QCOMPARE(tasks.tasks().size(), std::size_t(2));
    QCOMPARE(tasks.newest()->title, QStringLiteral("B"));
    QTRY_VERIFY(tasks.newest()->fraction > 0);
    QCOMPARE(tasks.newest()->phase, QStringLiteral("step"));
    QSignalSpy idle(&tasks, &TaskManager::idle);
    tasks.cancel_all();
    QTRY_COMPARE(idle.count(), 1);
  }

  void what_waits_and_what_is_stopping_is_told() {
    TaskManager tasks;
    const quint64 first = tasks.start(QStringLiteral("a"), QStringLiteral("first"), work_for(60000), {});
    const quint64 second =
        tasks.start(QStringLiteral("a"), QStringLiteral("second"), work_for(60000), {}, Preempt::let_it_finish);
    auto listed = tasks.tasks();
    QCOMPARE(listed.size(), std::size_t(2));
    QCOMPARE(listed[0].id, second);
    QVERIFY(listed[0].waiting && !listed[0].stopping);
    QCOMPARE(listed[1].id, first);
    QVERIFY(!listed[1].waiting && !listed[1].stopping);
    tasks.cancel(first);  // it is there until the event loop hears of its end
    listed = tasks.tasks();
    QVERIFY(listed[0].waiting && !listed[0].stopping);
    QVERIFY(!listed[1].waiting && listed[1].stopping);
    QTRY_COMPARE(tasks.tasks().size(), std::size_t(1));
    QVERIFY(!tasks.newest()->waiting && !tasks.newest()->stopping);
    tasks.cancel_all();
    QTRY_VERIFY(!tasks.busy());
  }

  void running_out_of_memory_costs_the_task_only() {
    TaskManager tasks;
    QStringList said;
    QList<TaskOutcome> outcomes;
    connect(&tasks, &TaskManager::failed, this, [&](const Error& error, const QString& title) {
      said << title + ": " + QString::fromStdString(error.what);
    });
    tasks.start(
        QStringLiteral("a"), QStringLiteral("Search"), [](const RunContext&) { throw std::bad_alloc(); },
        [&](TaskOutcome outcome) { outcomes << outcome; });
    tasks.start(QStringLiteral("b"), QStringLiteral("Other"), work_for(5),
                [&](TaskOutcome outcome) { outcomes << outcome; });
    QTRY_COMPARE(outcomes.size(), 2);
    QVERIFY(outcomes.contains(TaskOutcome::failed) && outcomes.contains(TaskOutcome::finished));
    QCOMPARE(said, QStringList{"Search: there is not enough memory for this"});
    QVERIFY(!tasks.busy());
  }

  void destruction_joins() {
    std::atomic<bool> ended = false;
    bool called = false;
    {
      TaskManager tasks;
      tasks.start(
          QStringLiteral("a"), QStringLiteral("A"),
          [&](const RunContext& context) {
            while (!context.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ended = true;
          },
          [&](TaskOutcome) { called = true; });
      QTest::qWait(5);
    }
    QVERIFY(ended);
    QTest::qWait(5);
    QVERIFY(!called);
  }
};

QTEST_GUILESS_MAIN(TaskManagerTest)
#include "task_manager_test.moc"
